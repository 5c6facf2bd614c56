"""The cross table of many players."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from diplomacy_engine.pictures.matrix import LABELS, SHADES, SIDE, TOP, matrix_svg


@pytest.mark.parametrize("count", [3, 100])
def test_a_square_is_a_share_beside_the_name_of_its_row(count):
    """Those who never met, and a player against itself, have none."""
    rng = np.random.default_rng(count)
    names = [f"player {n}" for n in range(count)]
    shares = np.where(rng.random((count, count)) < 0.3, np.nan, rng.random((count, count)))
    picture, cell = ElementTree.fromstring(matrix_svg(names, shares)), SIDE / count
    space = "{http://www.w3.org/2000/svg}"
    squares = {
        (round((float(y) - TOP) / cell), round((float(x) - LABELS) / cell)): path.get("fill")
        for path in picture.iter(f"{space}path")
        for x, y in re.findall(r"M(\S+) ([\d.]+)h", path.get("d"))
    }
    expected = {
        (row, column): SHADES[int(share * len(SHADES))]
        for (row, column), share in np.ndenumerate(shares)
        if row != column and not np.isnan(share)
    }
    assert squares == expected
    labels = {text.text: float(text.get("y")) for text in picture.iter(f"{space}text")}
    for row, name in enumerate(names):
        assert TOP + row * cell < labels[name] < TOP + (row + 1) * cell + 0.05
