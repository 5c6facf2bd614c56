"""What only who calls the kernels himself can order: more than is owed, or what is not legal.

The rules themselves are in test_datc.py and, beside a slow reference, in test_second_opinion.py.
"""

import numpy as np
import pytest

from diplomacy_engine.constants import NONE, UNIT_LETTERS
from diplomacy_engine.rules.adjudicator import (
    adjudicate_adjustments,
    adjudicate_movement,
    adjudicate_retreats,
    movement_scratch,
)
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.state import allocate_state
from diplomacy_engine.rules.vocabulary import vocabulary


class Table:
    """A map and one game on it, set and read by texts."""

    def __init__(self, name: str, num_games: int = 1):
        self.map = load_map(name)
        self.board = self.map.board
        self.vocabulary = vocabulary(self.map)
        self.state = allocate_state(self.board, num_games)
        for array in self.state:
            array[:] = NONE if array.dtype.kind == "i" else 0
        self.orders = np.full((num_games, len(self.board.terrain)), NONE, np.int32)

    def province(self, unit: str) -> int:
        return self.map.province_index[unit[2:5]]

    def put(self, power: str, unit: str, e: int = 0, prefix: str = "unit") -> None:
        v = self.province(unit)
        getattr(self.state, f"{prefix}_power")[e, v] = self.map.power_index[power]
        getattr(self.state, f"{prefix}_kind")[e, v] = UNIT_LETTERS.index(unit[0])
        getattr(self.state, f"{prefix}_location")[e, v] = self.map.location_index[unit[2:]]

    def put_dislodged(self, power: str, unit: str, places: str) -> None:
        self.put(power, unit, prefix="dislodged")
        v, kind = self.province(unit), UNIT_LETTERS.index(unit[0])
        near = self.board.neighbor[kind, self.map.location_index[unit[2:]]]
        for place in places.split():
            bit = near.tolist().index(self.map.location_index[place])
            self.state.retreat_options[0, v] |= np.uint32(1 << bit)

    def own(self, power: str, centers: str) -> None:
        for code in centers.split():
            center = self.board.province_center[self.map.province_index[code]]
            self.state.center_owner[0, center] = self.map.power_index[power]

    def order(self, text: str, e: int = 0) -> None:
        self.orders[e, self.province(text)] = self.vocabulary.number[text]

    def units(self, e: int = 0) -> list[str]:
        state = self.state
        return sorted(
            f"{self.map.powers[power]} "
            f"{self.map.unit_text(state.unit_kind[e, v], state.unit_location[e, v])}"
            for v, power in enumerate(state.unit_power[e])
            if power != NONE
        )

    def movement(self, e: int = 0) -> None:
        scratch = movement_scratch(self.board)
        table = self.vocabulary.table
        adjudicate_movement(self.board, table, self.state, e, self.orders, scratch)

    def retreat(self) -> None:
        adjudicate_retreats(self.board, self.vocabulary.table, self.state, 0, self.orders)
        assert (self.state.dislodged_power == NONE).all()
        assert (self.state.retreat_options == 0).all()

    def winter(self) -> None:
        adjudicate_adjustments(self.board, self.vocabulary.table, self.state, 0, self.orders)


def test_orders_that_are_not_of_the_unit_are_holds():
    table = Table("standard")
    number, first = table.vocabulary.number, table.province
    for unit in ("A PAR", "F BRE", "F STP/SC", "A MAR"):
        table.put("FRANCE", unit)
    table.orders[0, first("A PAR")] = number["A MAR - BUR"]
    table.orders[0, first("F BRE")] = number["A BRE - GAS"]
    table.orders[0, first("F STP/SC")] = number["F STP/NC - BAR"]
    table.orders[0, first("A MAR")] = number["A MAR D"]
    before = table.units()
    table.movement()
    assert table.units() == before
    assert not table.state.last_result.any()
    given = {table.vocabulary.texts[order] for order in table.state.last_order[0] if order != NONE}
    assert given == {"A PAR H", "F BRE H", "F STP/SC H", "A MAR H"}


def test_last_orders_and_powers_are_those_of_before_the_moves():
    table = Table("small")
    table.put("ENGLAND", "A LON")
    table.order("A LON - PAR")
    table.movement()
    london, paris = table.province("A LON"), table.province("A PAR")
    assert table.vocabulary.texts[table.state.last_order[0, london]] == "A LON - PAR"
    assert table.map.powers[table.state.last_power[0, london]] == "ENGLAND"
    assert table.state.last_order[0, paris] == table.state.last_power[0, paris] == NONE


def test_only_the_row_given_is_touched():
    table = Table("small", num_games=3)
    for e in range(3):
        table.put("ENGLAND", "A LON", e)
        table.order("A LON - PAR", e)
    table.movement(e=1)
    assert [table.units(e)[0] for e in range(3)] == [
        "ENGLAND A LON",
        "ENGLAND A PAR",
        "ENGLAND A LON",
    ]


def test_retreats():
    """One succeeds, two to one place are gone, and so is one to where it may not go."""
    table = Table("small")
    table.put("RUSSIA", "A PAR")
    for power, unit, places, order in (
        ("ENGLAND", "A PAR", "ROM SPA", "A PAR R ROM"),
        ("RUSSIA", "A MUN", "ROM BER", "A MUN R ROM"),
        ("RUSSIA", "A LON", "WAL", "A LON R WAL"),
        ("ENGLAND", "A ANK", "BUL", "A ANK R GRE"),
    ):
        table.put_dislodged(power, unit, places)
        table.order(order)
    table.retreat()
    assert table.units() == ["RUSSIA A PAR", "RUSSIA A WAL"]


def test_a_retreat_does_not_replace_a_unit():
    table = Table("small")
    table.put("RUSSIA", "A ROM")
    table.put_dislodged("ENGLAND", "A PAR", "ROM SPA")
    table.order("A PAR R ROM")
    table.retreat()
    assert table.units() == ["RUSSIA A ROM"]


# name: units, centers, orders, units afterwards
WINTER_CASES = {
    "too many builds: the first provinces count": (
        ["FRANCE A GAS"],
        {"FRANCE": "PAR BRE"},
        ["A PAR B", "F BRE B"],
        ["FRANCE A GAS", "FRANCE F BRE"],
    ),
    "no build in an occupied, a lost or a foreign home": (
        ["FRANCE A PAR", "GERMANY A SIL"],
        {"FRANCE": "PAR MAR SPA POR", "GERMANY": "BRE BER"},
        ["A PAR B", "A BRE B", "F MAR B"],
        ["FRANCE A PAR", "FRANCE F MAR", "GERMANY A SIL"],
    ),
    "too many removals: the first provinces count": (
        ["FRANCE A PAR", "FRANCE A PIC", "FRANCE F ENG"],
        {"FRANCE": "PAR BRE"},
        ["A PAR D", "F ENG D", "A PIC D"],
        ["FRANCE A PAR", "FRANCE A PIC"],
    ),
    "a removal without need is none": (
        ["FRANCE A PIC"],
        {"FRANCE": "PAR BRE"},
        ["A PIC D"],
        ["FRANCE A PIC"],
    ),
    "Gulf of Lyon comes before Tyrrhenian Sea, whatever their codes": (
        ["ITALY F LYO", "ITALY F ION", "ITALY F HEL"],
        {"ITALY": "TUN SPA"},
        [],
        ["ITALY F ION", "ITALY F LYO"],
    ),
    "orders come first, disorder does the rest": (
        ["RUSSIA A MOS", "RUSSIA A GAS", "RUSSIA F BAR"],
        {"RUSSIA": "MOS"},
        ["A MOS D"],
        ["RUSSIA F BAR"],
    ),
}


@pytest.mark.parametrize("name", WINTER_CASES)
def test_winter(name):
    units, centers, orders, after = WINTER_CASES[name]
    table = Table("standard")
    for line in units:
        table.put(*line.split(" ", 1))
    for power, owned in centers.items():
        table.own(power, owned)
    for text in orders:
        table.order(text)
    table.winter()
    assert table.units() == sorted(after)
