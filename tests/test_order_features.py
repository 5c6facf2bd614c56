"""What the network is told of orders and borders, checked against the orders' texts and the map."""

import numpy as np
import pytest

from diplomacy_engine.constants import OrderKind
from diplomacy_engine.map import load_map
from diplomacy_engine.order_features import order_columns, province_borders
from diplomacy_engine.orders import vocabulary

STANDARD = load_map("standard")
COLUMNS = order_columns(STANDARD)


def column(text: str) -> list[int]:
    return COLUMNS[:, vocabulary(STANDARD).texts.index(text)].tolist()


def province(name: str) -> int:
    if not name:
        return len(STANDARD.board.terrain)
    return int(STANDARD.board.location_province[STANDARD.locations.index(name)])


@pytest.mark.parametrize(
    ("text", "kind", "source", "place", "other", "helped"),
    [
        ("A PAR H", OrderKind.HOLD, "PAR", "PAR", "", "PAR"),
        ("A PAR - BUR", OrderKind.MOVE, "PAR", "BUR", "", "PAR"),
        ("A LON - BEL VIA", OrderKind.MOVE_VIA, "LON", "BEL", "", "LON"),
        ("F MAO - SPA/NC", OrderKind.MOVE, "MAO", "SPA", "", "MAO"),
        ("A PAR S A MAR - BUR", OrderKind.SUPPORT_MOVE, "PAR", "BUR", "MAR", "MAR"),
        ("A PAR S A BUR", OrderKind.SUPPORT_HOLD, "PAR", "BUR", "BUR", "BUR"),
        ("F NTH C A LON - BEL", OrderKind.CONVOY, "NTH", "BEL", "LON", "LON"),
    ],
)
def test_columns(text, kind, source, place, other, helped):
    expected = [kind, *(province(name) for name in (source, place, other, helped))]
    assert column(text)[:5] == expected


def test_the_class_tells_kinds_of_unit_and_coasts_apart():
    texts = ("A MAR - SPA", "F MAO - SPA/NC", "F MAO - SPA/SC", "A PAR H", "F LON H")
    assert len({column(text)[5] for text in texts}) == 5
    assert column("A MAR - SPA")[5] == column("A PAR - BUR")[5]
    assert (COLUMNS >= 0).all() and COLUMNS.dtype == np.int64


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_borders(name):
    game_map = load_map(name)
    borders = province_borders(game_map.board)
    assert borders.dtype == np.float32
    np.testing.assert_allclose(borders.sum(1), 1.0, rtol=1e-6)
    assert ((borders > 0) == (borders > 0).T).all() and not borders.diagonal().any()


def test_each_neighbor_has_an_equal_share():
    row = province_borders(STANDARD.board)[province("PAR")]
    near = {province(name) for name in ("BRE", "PIC", "BUR", "GAS")}
    assert set(np.flatnonzero(row)) == near and np.unique(row[row > 0]).tolist() == [0.25]
