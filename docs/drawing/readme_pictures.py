"""Draw the pictures of README.md from a game of the bots: docs/board.png and docs/replay.gif.

pip install -r requirements.txt -e '.[dev]' && python docs/drawing/readme_pictures.py
"""

import io
import sys
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from diplomacy_engine import evaluate_player, make_bot
from diplomacy_engine.pictures.colors import variables
from diplomacy_engine.pictures.png import png
from diplomacy_engine.pictures.replays.replay import frame_svg, make_replay

ROOT = Path(__file__).parents[2]
SEED, STILL, LAST = 22, "S1903M", "W1905A"  # the game, the board shown, the animation's end
WIDTH, SECONDS = 640, 1.1


def main() -> None:
    """Play a game, and write its pictures."""
    bot = make_bot("dumbbot")
    (saved,) = evaluate_player(
        "standard", bot, bot, 1, seed=SEED, samples=1, max_years=6
    ).saved_games
    replay = make_replay(saved)
    still = frame_svg(replay, replay.find(STILL), "light")
    (ROOT / "docs" / "board.png").write_bytes(_smaller(png(still, replay.map, width=1000)))
    frames = []
    for number in range(replay.find(LAST) + 1):
        picture = png(frame_svg(replay, number, "light"), replay.map, width=WIDTH)
        frames.append(Image.open(io.BytesIO(picture)).convert("RGB"))
    palette = _palette(frames, variables(replay.map, False).values())
    frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    frames[0].save(
        ROOT / "docs" / "replay.gif",
        save_all=True,
        append_images=frames[1:],
        duration=round(1000 * SECONDS),
        loop=0,
        optimize=True,
    )
    for name in ("board.png", "replay.gif"):
        print(f"docs/{name}: {(ROOT / 'docs' / name).stat().st_size:,} bytes")


def _palette(frames: list[Image.Image], colors: Iterable[str]) -> Image.Image:
    """Return one palette for all frames, else the ground flickers.

    Small marks in strong colors are outvoted by large grounds, so each color gets an area as well.
    """
    width, height = frames[0].size
    sample = Image.new("RGB", (width, 3 * height))
    for number, frame in enumerate((frames[len(frames) // 2], frames[-1])):
        sample.paste(frame, (0, number * height))
    distinct = sorted(set(colors))
    side = width // 10
    for number, color in enumerate(distinct):
        x, y = number % 10 * side, 2 * height + number // 10 * side
        sample.paste(color, (x, y, x + side, y + side))
    return sample.quantize(128, Image.Quantize.MEDIANCUT)


def _smaller(picture: bytes) -> bytes:
    """Return a PNG with a palette of 128 colors."""
    file = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128, dither=0).save(
        file, "PNG", optimize=True
    )
    return file.getvalue()


if __name__ == "__main__":
    main()
