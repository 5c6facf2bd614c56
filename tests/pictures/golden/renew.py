"""The golden pictures: positions and orders, drawn as SVG files beside this one.

    python tests/pictures/golden/renew.py

draws them anew. Then look at those that `git status` names (a browser opens them), and say in
README.md what was seen. tests/pictures/test_golden_pictures.py compares them with what is drawn
now.
"""

import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from support.tables import read_table, read_text

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[2]))


from diplomacy_engine import Game, Map

FOLDER = Path(__file__).parent
COMMAND = "python tests/pictures/golden/renew.py"

# A map of one's own: a sea, a province of two coasts, and powers that share their first letter.
STRAIT = tomllib.loads(read_text(__file__, "strait.toml"))


class Scene(NamedTuple):
    """What a golden picture shows; the position is a line of `Game.to_position`."""

    theme: str
    position: str
    orders: dict[str, list[str]]


SCENES = {name: Scene(*rest) for name, *rest in read_table(__file__, "scenes")}


def draw(name: str) -> str:
    """Return a golden picture as it is drawn now; each element begins a line, to be compared."""
    scene = SCENES[name]
    game_map = Map(STRAIT) if scene.position.startswith("strait") else None
    game = Game.from_position(scene.position, game_map)
    for power, texts in scene.orders.items():
        game.submit(power, texts)
    before = game.copy()
    svg = before.to_svg(outcome=game.adjudicate(), theme=scene.theme)
    return svg.replace("><", ">\n<") + "\n"


def main() -> None:
    """Write all pictures."""
    for name in SCENES:
        (FOLDER / f"{name}.svg").write_text(draw(name), encoding="utf-8", newline="\n")
        print(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
