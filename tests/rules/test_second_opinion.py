"""Movement by the kernels and by the slow reference, on positions made to be difficult.

A position is built around seas that convoy: armies go over them, fleets attack them, and the units
where the armies land support those attacks or the convoying fleets, in rings of up to six convoys.
That gives bounces, cut supports, rings and paradoxes in numbers which random play never shows.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest
from reference.movement import adjudicate_movement
from reference.orders import ReferenceMap

from diplomacy_engine import Map, VectorGame, load_map, vocabulary
from diplomacy_engine.constants import (
    ARMY,
    COAST,
    CONVOY,
    FLEET,
    LAND,
    MOVE,
    MOVE_VIA,
    NONE,
    RESULT_WORDS,
    SEA,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
)
from diplomacy_engine.rules.adjudicator import movement as engine

CHUNK = 25  # positions a test


class Table:
    """A map, both adjudicators, and one game to put positions on."""

    def __init__(self, name: str):
        self.map: Map = load_map(name)
        self.board = self.map.board
        self.vocabulary = vocabulary(self.map)
        self.orders = self.vocabulary.table
        self.games = VectorGame(self.map, 1, threads=1)
        self.scratch = engine.movement_scratch(self.board)
        self.reference = ReferenceMap(self.map.facts)

    def place(self, units: dict[int, tuple[int, int, int]]) -> None:
        """Put units on the board: province -> (power, kind, location)."""
        state = self.games.state
        for array in (state.unit_power, state.unit_kind, state.unit_location):
            array[0] = NONE
        for v, (power, kind, location) in units.items():
            state.unit_power[0, v] = power
            state.unit_kind[0, v] = kind
            state.unit_location[0, v] = location
        state.phase[0] = 0

    def legal(self) -> dict[int, np.ndarray]:
        """Return the legal order numbers of each unit, by province."""
        decisions = self.games.decisions()
        starts = decisions.order_start
        return {
            int(v): decisions.order[starts[slot] : starts[slot + 1]]
            for slot, v in enumerate(decisions.slot_province)
        }

    def text(self, v: int) -> str:
        """Return the text of the unit in a province."""
        state = self.games.state
        return self.map.unit_text(state.unit_kind[0, v], state.unit_location[0, v])

    def by_power(self) -> dict[str, list[str]]:
        units: dict[str, list[str]] = {}
        for v, power in enumerate(self.games.state.unit_power[0]):
            if power != NONE:
                units.setdefault(self.map.powers[power], []).append(self.text(v))
        return {power: sorted(texts) for power, texts in sorted(units.items())}

    def texts(self, chosen: dict[int, int]) -> dict[str, str]:
        """Return unit -> text of its order, of order numbers by province."""
        return {self.text(v): self.vocabulary.texts[number] for v, number in chosen.items()}


@pytest.fixture(scope="module")
def standard() -> Table:
    return Table("standard")


class Knot(NamedTuple):
    """Units and orders that entangle convoys: each lands where a fleet has a say over the next."""

    units: dict[int, tuple[int, int]]  # province -> side and unit kind; convoys are of side 0
    orders: list[tuple[int, tuple[int, ...], int, int]]  # province, kinds, other's, goal's province


def tie_knot(table: Table, rng: np.random.Generator, knot: Knot) -> None:
    """Add a ring, or a chain if it does not close, of one to six convoys."""
    board = table.board
    at = board.province_location
    seas = np.flatnonzero(table.orders.sea_index != NONE).tolist()
    shores = {
        sea: {v for v in np.flatnonzero(board.reach[FLEET, at[sea]]) if board.terrain[v] == COAST}
        for sea in seas
    }

    def take(provinces: Iterable[int], side: int, kind: int) -> int:
        free = [v for v in sorted(provinces) if v not in knot.units]
        v = int(rng.choice(free)) if free else NONE
        if v != NONE:
            knot.units[v] = (side, kind)
        return v

    sea = first = take(seas, 0, FLEET)
    for left in range(int(rng.choice([0, 1, 1, 2, 2, 3, 5])), -1, -1):
        back = shores[first] if left == 1 else shores[sea]
        near = [s for s in seas if shores[s] & shores[sea] and shores[s] & back]
        after = first if left == 0 else take(near, 0, FLEET)
        landing = take(shores[sea] & shores.get(after, set()), 1, FLEET)
        if after == NONE or landing == NONE:
            break
        army = take(shores[sea], 0, ARMY)
        attacker = take(np.flatnonzero(board.reach[FLEET, at[after]]).tolist(), 1, FLEET)
        knot.orders.append((sea, (CONVOY,), army, landing))
        knot.orders.append((army, (MOVE, MOVE_VIA), NONE, landing))
        knot.orders.append((attacker, (MOVE,), NONE, after))
        if rng.random() < 0.6:
            knot.orders.append((landing, (SUPPORT_MOVE,), attacker, after))
        else:
            knot.orders.append((landing, (SUPPORT_HOLD,), after, after))
            helper = take(np.flatnonzero(board.reach[FLEET, at[after]]).tolist(), 1, FLEET)
            knot.orders.append((helper, (SUPPORT_MOVE,), attacker, after))
        sea = after


def random_units(
    table: Table, rng: np.random.Generator, knot: Knot
) -> dict[int, tuple[int, int, int]]:
    """Crowd units of a few powers around one to four seas, or around one land province."""
    board = table.board
    seas = np.flatnonzero(table.orders.sea_index != NONE)
    centers = rng.choice(seas, rng.integers(1, 5))
    if rng.random() < 0.1:
        centers = [rng.integers(len(board.terrain))]
    nearness = board.distance[centers].min(axis=0) + rng.random(len(board.terrain)) * 1.5
    wanted = rng.integers(4, 35) if not knot.units else rng.integers(0, 30) * rng.integers(0, 2)
    powers = rng.choice(len(table.map.powers), rng.integers(3 if knot.units else 1, 8))
    units = {}
    for v in [*knot.units, *np.argsort(nearness)[:wanted].tolist()]:
        if v in units or rng.random() < (0.02 if v in knot.units else 0.15):
            continue
        terrain = board.terrain[v]
        kind = FLEET if terrain == SEA or (terrain != LAND and rng.random() < 0.5) else ARMY
        kind = knot.units[v][1] if v in knot.units else kind
        here = np.flatnonzero((board.location_province == v) & board.can_stand[kind])
        if len(here):
            power = int(rng.choice(powers))
            if v in knot.units and rng.random() < 0.9:
                power = knot.units[v][0]
            units[v] = (power, kind, int(rng.choice(here)))
    return units


class Plan:
    """The orders chosen so far for the position on the board, and ways to choose more."""

    def __init__(self, table: Table, rng: np.random.Generator):
        self.table, self.rng = table, rng
        self.orders, self.board = table.orders, table.board
        self.legal = table.legal()
        self.chosen: dict[int, int] = {}

    def pick(self, v: int, mask: np.ndarray) -> int | None:
        """Choose one of the masked orders for the unit in province v; return its number."""
        if v in self.chosen or not mask.any():
            return None
        self.chosen[v] = int(self.rng.choice(self.legal[v][mask]))
        return self.chosen[v]

    def kinds(self, v: int) -> np.ndarray:
        return self.orders.kind[self.legal[v]]

    def provinces(self, places: np.ndarray) -> np.ndarray:
        """Return the provinces of locations; NONE stays NONE."""
        return np.where(places == NONE, NONE, self.board.location_province[places])

    def tied(self, knot: Knot) -> None:
        """Give the orders of a knot, as far as they are legal."""
        for v, kinds, other, goal in knot.orders:
            if v not in self.legal or self.rng.random() < 0.03:
                continue
            mask = np.isin(self.kinds(v), kinds)
            mask &= self.provinces(self.orders.target[self.legal[v]]) == goal
            others = self.provinces(self.orders.other_location[self.legal[v]])
            self.pick(v, mask & (others == other))

    def convoys(self) -> None:
        """Let fleets convoy, mostly on routes of one sea, and the armies go."""
        idle = self.rng.uniform(0, 0.3)
        for v in self.rng.permutation([v for v in self.legal if self.board.terrain[v] == SEA]):
            if self.rng.random() < idle:
                continue
            numbers = self.legal[v]
            mask = self.kinds(v) == CONVOY
            if self.rng.random() < 0.8:
                touches = self.board.reach[FLEET, self.board.province_location[v]]
                goals = self.provinces(self.orders.target[numbers])
                origins = self.provinces(self.orders.other_location[numbers])
                mask = mask & touches[goals] & touches[origins]
            number = self.pick(v, mask)
            if number is not None:
                army = self.board.location_province[self.orders.other_location[number]]
                goal = self.orders.target[number]
                moves = np.isin(self.kinds(army), (MOVE, MOVE_VIA))
                self.pick(army, moves & (self.orders.target[self.legal[army]] == goal))

    def fill(self) -> None:
        """Give the others moves, and then supports and convoys that mostly fit."""
        moving, fitting = self.rng.uniform(0.1, 0.8), self.rng.uniform(0.6, 1.0)
        for v in self.legal:
            if self.rng.random() < moving:
                by_convoy = self.kinds(v) == MOVE_VIA
                over_sea = by_convoy.any() and self.rng.random() < 0.5
                self.pick(v, by_convoy if over_sea else self.kinds(v) == MOVE)
        for v, numbers in self.legal.items():
            others = self.provinces(self.orders.other_location[numbers])
            theirs = np.array([self.chosen.get(int(other), NONE) for other in others])
            goes = np.isin(self.orders.kind[theirs], (MOVE, MOVE_VIA)) & (theirs != NONE)
            fits = np.where(
                self.kinds(v) == SUPPORT_HOLD,
                ~goes & (self.rng.random(len(numbers)) < 0.3),
                np.isin(self.kinds(v), (SUPPORT_MOVE, CONVOY))
                & goes
                & (self.orders.target[theirs] == self.orders.target[numbers]),
            )
            if self.rng.random() < fitting:
                self.pick(v, fits)
            if self.rng.random() < 0.9:
                self.pick(v, self.kinds(v) != MOVE_VIA)


def random_orders(table: Table, rng: np.random.Generator, knot: Knot) -> dict[int, int]:
    """Return order numbers by province: those of the knot, convoys, anything."""
    plan = Plan(table, rng)
    plan.tied(knot)
    if rng.random() < (0.2 if knot.units else 0.8):
        plan.convoys()
    plan.fill()
    return plan.chosen


def compare(table: Table, chosen: dict[int, int]) -> tuple[dict, dict]:
    """Return what the engine and the reference make of the position on the board."""
    state, board = table.games.state, table.board
    before = {v: table.text(v) for v in np.flatnonzero(state.unit_power[0] != NONE)}
    numbers = np.full((1, len(board.terrain)), NONE, np.int32)
    numbers[0, list(chosen)] = list(chosen.values())
    expected = adjudicate_movement(table.reference, table.by_power(), table.texts(chosen))
    engine.adjudicate_movement(board, table.orders, state, 0, numbers, table.scratch)
    results, dislodged = {}, {}
    for v, unit in before.items():
        bits = int(state.last_result[0, v])
        results[unit] = [word for i, word in enumerate(RESULT_WORDS) if bits >> i & 1]
        if "dislodged" in results[unit]:
            kind, here = state.dislodged_kind[0, v], state.dislodged_location[0, v]
            options = int(state.retreat_options[0, v])
            near = board.neighbor[kind, here, : board.neighbor_count[kind, here]]
            dislodged[unit] = sorted(
                table.map.locations[place] for i, place in enumerate(near) if options >> i & 1
            )
        if "disband" in results[unit]:
            results[unit].remove("disband")
            assert dislodged[unit] == []
    found = {"units": table.by_power(), "dislodged": dislodged, "results": results}
    wanted = {"units": expected.units, "dislodged": expected.dislodged, "results": expected.results}
    return found, wanted


def set_up(table: Table, seed: int) -> dict[int, int]:
    """Put a position on the board and return order numbers for it, by province."""
    rng = np.random.default_rng(seed)
    knot = Knot({}, [])
    for _ in range(rng.integers(-2, 4)):
        tie_knot(table, rng, knot)
    table.place(random_units(table, rng, knot))
    return random_orders(table, rng, knot)


def check(table: Table, seed: int) -> None:
    chosen = set_up(table, seed)
    units = table.by_power()
    found, wanted = compare(table, chosen)
    texts = [table.vocabulary.texts[number] for number in chosen.values()]
    for key in wanted:
        assert found[key] == wanted[key], f"seed {seed}, {key}\n{units}\n{texts}"


@pytest.mark.parametrize("chunk", range(12))
def test_movement_agrees_with_the_reference(standard: Table, chunk: int):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(standard, seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(12, 800))
def test_movement_agrees_with_the_reference_on_many_positions(standard: Table, chunk: int):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(standard, seed)
