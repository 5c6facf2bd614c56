"""Pictures are drawn as the golden ones are, which were looked at; see golden/README.md."""

import itertools

import pytest
from golden.renew import COMMAND, FOLDER, SCENES, draw


@pytest.mark.parametrize("name", SCENES)
def test_a_golden_picture(name):
    golden = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").splitlines()
    for number, (new, old) in enumerate(
        itertools.zip_longest(draw(name).splitlines(), golden, fillvalue="(nothing)"), 1
    ):
        assert new == old, (
            f"tests/golden/{name}.svg is drawn differently from line {number} on. If it shall be, "
            f"run `{COMMAND}`, look at the pictures that changed, and say so in its README.md"
        )


def test_all_golden_pictures_are_compared_and_described():
    files = {file.stem for file in FOLDER.glob("*.svg")}
    assert files == SCENES.keys()
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in files if f"`{name}`" not in text] == []
    assert sum((FOLDER / f"{name}.svg").stat().st_size for name in files) < 400_000
