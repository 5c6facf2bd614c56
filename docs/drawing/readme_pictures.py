"""Draw the pictures of README.md from a game of the bots: docs/board.png and docs/replay.gif.

pip install -r requirements.txt -e '.[dev]' && python docs/drawing/readme_pictures.py
"""

import io
import sys
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from diplomacy_engine import evaluate_player, make_bot
from diplomacy_engine.pictures.png import png
from diplomacy_engine.replays.gif import gif
from diplomacy_engine.replays.replay import frame_svg, make_replay

ROOT = Path(__file__).parents[2]
SEED, STILL, LAST = 22, "S1903M", "W1905A"  # the game, the board shown, the animation's end


def main() -> None:
    """Play a game, and write its pictures."""
    bot = make_bot("dumbbot")
    (saved,) = evaluate_player(
        "standard", bot, bot, 1, seed=SEED, samples=1, max_years=6
    ).saved_games
    replay = make_replay(saved)
    still = frame_svg(replay, replay.find(STILL), "light")
    (ROOT / "docs" / "board.png").write_bytes(_smaller(png(still, replay.map, width=1000)))
    moving = gif(replay, last=replay.find(LAST))
    (ROOT / "docs" / "replay.gif").write_bytes(moving)
    for name in ("board.png", "replay.gif"):
        print(f"docs/{name}: {(ROOT / 'docs' / name).stat().st_size:,} bytes")


def _smaller(picture: bytes) -> bytes:
    """Return a PNG with a palette of 128 colors."""
    file = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128, dither=0).save(
        file, "PNG", optimize=True
    )
    return file.getvalue()


if __name__ == "__main__":
    main()
