"""The rules of the three phase kinds, one short case each, straight on the kernels.

`movement_cases.txt` holds a paragraph for each movement case: a title with the map's name, and
lines `POWER ORDER | words`: the result words of constants.py, none if the order succeeds, and after
`dislodged` the places the unit may retreat to. Where everything stands afterwards follows from
that and is checked as well.
"""

from pathlib import Path

import numpy as np
import pytest

from diplomacy_engine.constants import NONE, RESULT_WORDS, UNIT_LETTERS
from diplomacy_engine.rules.adjudicator import (
    adjudicate_adjustments,
    adjudicate_movement,
    adjudicate_retreats,
    movement_scratch,
)
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.state import allocate_state
from diplomacy_engine.rules.vocabulary import vocabulary

CASES = Path(__file__).parent / "movement_cases.txt"


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

    def retreats(self, v: int) -> list[str]:
        kind, here = self.state.dislodged_kind[0, v], self.state.dislodged_location[0, v]
        near = self.board.neighbor[kind, here, : self.board.neighbor_count[kind, here]]
        options = int(self.state.retreat_options[0, v])
        return [self.map.locations[place] for i, place in enumerate(near) if options >> i & 1]

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


def play(table: Table, lines: list[str]) -> None:
    """Adjudicate a movement case and compare everything it says."""
    wanted, after = {}, []
    for line in lines:
        order, _, outcome = line.partition("|")
        power, text = order.strip().split(" ", 1)
        unit = " ".join(text.split()[:2])
        words, _, places = outcome.strip().partition(":")
        table.put(power, unit)
        if text in table.vocabulary.number:
            table.order(text)
        wanted[unit] = ([word.strip() for word in words.split(",") if words], places.split())
        goal = text.replace(" VIA", "").rpartition(" - ")[2]
        if not words and text[6:].lstrip("CENSW/ ").startswith("-"):
            after.append(f"{power} {unit[0]} {goal}")
        elif "dislodged" not in words:
            after.append(f"{power} {unit}")
    table.movement()
    found = {}
    for unit in wanted:
        v = table.province(unit)
        bits = int(table.state.last_result[0, v])
        words = [word for i, word in enumerate(RESULT_WORDS) if bits >> i & 1]
        found[unit] = (words, table.retreats(v))
    assert found == wanted
    assert table.units() == sorted(after)


def read_cases() -> list:
    """Return the movement cases of the file: title with the map's name in brackets, and lines."""
    cases = []
    for paragraph in CASES.read_text().strip().split("\n\n"):
        title, *lines = paragraph.split("\n")
        cases.append(pytest.param(title, [line.strip() for line in lines], id=title))
    return cases


@pytest.mark.parametrize("title, lines", read_cases())
def test_movement(title, lines):
    play(Table(title.rpartition("(")[2].rstrip(")")), lines)


def test_no_movement_case_is_lost():
    assert len(read_cases()) == 49


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


RETREAT_CASES = {
    "a retreat succeeds": (["ENGLAND A PAR R ROM"], ["ENGLAND A ROM"]),
    "without an order the unit is gone": (["ENGLAND A PAR"], []),
    "so it is when told": (["ENGLAND A PAR D"], []),
    "and when it may not go there": (["ENGLAND A PAR R HOL"], []),
    "two to one place are both gone": (
        ["ENGLAND A PAR R ROM", "RUSSIA A MUN R ROM"],
        [],
    ),
    "the others go on": (
        ["ENGLAND A PAR R ROM", "RUSSIA A MUN R ROM", "RUSSIA A LON R WAL"],
        ["RUSSIA A WAL"],
    ),
}
MAY_GO = {"A PAR": "ROM SPA", "A MUN": "ROM BER", "A LON": "WAL"}


@pytest.mark.parametrize("name", RETREAT_CASES)
def test_retreats(name):
    orders, after = RETREAT_CASES[name]
    table = Table("small")
    table.put("RUSSIA", "A PAR")
    for line in orders:
        power, text = line.split(" ", 1)
        table.put_dislodged(power, text[:5], MAY_GO[text[:5]])
        if text in table.vocabulary.number:
            table.order(text)
    table.retreat()
    assert table.units() == sorted(["RUSSIA A PAR", *after])


def test_a_retreat_does_not_replace_a_unit():
    table = Table("small")
    table.put("RUSSIA", "A ROM")
    table.put_dislodged("ENGLAND", "A PAR", "ROM SPA")
    table.order("A PAR R ROM")
    table.retreat()
    assert table.units() == ["RUSSIA A ROM"]


# name: units, centers, orders, units afterwards
WINTER_CASES = {
    "builds": (
        ["FRANCE A GAS"],
        {"FRANCE": "PAR BRE MAR"},
        ["F BRE B", "A PAR B"],
        ["FRANCE A GAS", "FRANCE A PAR", "FRANCE F BRE"],
    ),
    "too many builds: the first provinces count": (
        ["FRANCE A GAS"],
        {"FRANCE": "PAR BRE"},
        ["A PAR B", "F BRE B"],
        ["FRANCE A GAS", "FRANCE F BRE"],
    ),
    "no order, no build": (["FRANCE A GAS"], {"FRANCE": "PAR BRE"}, [], ["FRANCE A GAS"]),
    "no build in an occupied, a lost or a foreign home": (
        ["FRANCE A PAR", "GERMANY A SIL"],
        {"FRANCE": "PAR MAR SPA POR", "GERMANY": "BRE BER"},
        ["A PAR B", "A BRE B", "F MAR B"],
        ["FRANCE A PAR", "FRANCE F MAR", "GERMANY A SIL"],
    ),
    "a coast is named": (["RUSSIA A MOS"], {"RUSSIA": "STP MOS"}, ["F STP/NC B"], None),
    "removals": (
        ["FRANCE A PAR", "FRANCE A PIC", "FRANCE F ENG"],
        {"FRANCE": "PAR BRE"},
        ["A PAR D"],
        ["FRANCE A PIC", "FRANCE F ENG"],
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
    "civil disorder: the farthest unit": (
        ["RUSSIA A MOS", "RUSSIA A GAS", "RUSSIA F BAR"],
        {"RUSSIA": "MOS STP"},
        [],
        ["RUSSIA A MOS", "RUSSIA F BAR"],
    ),
    "distance is from any owned center": (
        ["RUSSIA A GAS", "RUSSIA A GAL"],
        {"RUSSIA": "SPA"},
        [],
        ["RUSSIA A GAS"],
    ),
    "then fleets before armies": (
        ["RUSSIA A LVN", "RUSSIA F BAR"],
        {"RUSSIA": "STP"},
        [],
        ["RUSSIA A LVN"],
    ),
    "then by the full name": (
        ["RUSSIA A FIN", "RUSSIA A LVN"],
        {"RUSSIA": "STP"},
        [],
        ["RUSSIA A LVN"],
    ),
    "Gulf of Lyon comes before Tyrrhenian Sea, whatever their codes": (
        ["ITALY F LYO", "ITALY F ION", "ITALY F HEL"],
        {"ITALY": "TUN SPA"},
        [],
        ["ITALY F ION", "ITALY F LYO"],
    ),
    "a power without centers loses everything": (
        ["RUSSIA A FIN", "RUSSIA A LVN", "FRANCE A PAR"],
        {"FRANCE": "PAR"},
        [],
        ["FRANCE A PAR"],
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
    if after is None:
        after = [*units, "RUSSIA F STP/NC"]
    assert table.units() == sorted(after)
