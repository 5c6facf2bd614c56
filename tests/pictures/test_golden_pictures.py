"""Pictures are drawn as the golden ones are, which were looked at; see golden/README.md."""

import itertools
from pathlib import Path

import pytest
from pictures.golden.renew import COMMAND, FOLDER, SCENES, draw

from diplomacy_engine import load_map
from diplomacy_engine.pictures.colors import power_color


@pytest.mark.parametrize("name", SCENES)
def test_a_golden_picture(name):
    golden = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").splitlines()
    for number, (new, old) in enumerate(
        itertools.zip_longest(draw(name).splitlines(), golden, fillvalue="(nothing)"), 1
    ):
        assert new == old, (
            f"tests/pictures/golden/{name}.svg is drawn differently from line {number} on. "
            f"If it shall be, run `{COMMAND}`, look at the pictures that changed, and say so "
            "in its README.md"
        )


def test_all_golden_pictures_are_compared_and_described():
    files = {file.stem for file in FOLDER.glob("*.svg")}
    assert files == SCENES.keys()
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in files if f"`{name}`" not in text] == []
    assert sum((FOLDER / f"{name}.svg").stat().st_size for name in files) < 400_000


def test_the_animation_of_the_readme_has_the_colors_of_the_powers():
    """A palette of what is frequent would paint Austria, Germany and the crosses brown."""
    image = pytest.importorskip("PIL.Image")
    frame = image.open(Path(__file__).parents[2] / "docs" / "replay.gif").convert("RGB")
    found = {"#{:02x}{:02x}{:02x}".format(*color) for _, color in frame.getcolors(1 << 20)}
    game_map = load_map("standard")
    assert {power_color(game_map, power) for power in game_map.powers} <= found
