"""What a power sees of a game, as compact integers relative to it. Version 1.

Powers are numbered from the observer: 0 is the observer, then in the order of the map, cyclically.
Everything here is open to a human player too, and the observer's own index is given, since maps are
not symmetric. A neutral unit, which nobody plays, has a kind and no owner.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np

from .._jit import jit
from .._suggest import array_shapes
from ..constants import NONE
from ..rules.state import adjustments_owed, count_centers, count_units, is_winter

OBSERVATION_VERSION = 1

# Features of a province, the last axis of Observation.board, with how many values each takes;
# `P` is the number of powers. An owner is 0 for none, else 1 + relative power.
BOARD_FEATURES = (
    ("unit_kind", "3"),  # 0 none, 1 army, 2 fleet
    ("unit_owner", "P + 1"),
    ("unit_coast", "5"),  # index into COASTS
    ("dislodged_kind", "3"),
    ("dislodged_owner", "P + 1"),
    ("dislodged_coast", "5"),
    ("center_owner", "P + 2"),  # 0 no supply center, 1 unowned, else 2 + relative power
    ("home_of", "P + 1"),
    ("last_owner", "P + 1"),  # who ordered a unit here in the last movement phase
    ("last_result", "128"),  # its result bits
)
NUM_BOARD_FEATURES = len(BOARD_FEATURES)
UNIT_KIND, UNIT_OWNER, UNIT_COAST = range(3)  # columns of Observation.board
DISLODGED_KIND, DISLODGED_OWNER, DISLODGED_COAST = range(3, 6)
CENTER_OWNER, HOME_OF, LAST_OWNER, LAST_RESULT = range(6, NUM_BOARD_FEATURES)
# Observation.scalars: these four, then P values each of the three below, by relative power.
SCALARS = ("phase", "years_played", "years_left", "power")
POWER_SCALARS = ("centers", "units", "owed")
NUM_SCALARS = len(SCALARS)
PHASE, YEARS_PLAYED, YEARS_LEFT, POWER = range(NUM_SCALARS)  # columns of Observation.scalars,
CENTERS, UNITS, OWED = range(len(POWER_SCALARS))  # and blocks of P columns after them


class Observation(NamedTuple):
    """Observations of D decisions; every array has them as its first axis."""

    board: np.ndarray  # (D, V, F) int8, columns of BOARD_FEATURES
    last_order: np.ndarray  # (D, V) int32, order given here in the last movement phase, or NONE
    scalars: np.ndarray  # (D, 4 + 3 P) int16; years_left is -1 without a year limit

    def __repr__(self) -> str:
        return array_shapes(self)


_Views = TypeVar("_Views", bound="BoardViews")


class BoardViews(NamedTuple):
    """Views of G boards by D powers; each board is there once, as the map's first power sees it."""

    board: np.ndarray  # (G, V, F) int8, these three as in Observation
    last_order: np.ndarray  # (G, V) int32
    scalars: np.ndarray  # (G, 4 + 3 P) int16
    row: np.ndarray  # (D,) int64, which of the boards it is
    power: np.ndarray  # (D,) int8, who looks at it

    def __repr__(self) -> str:
        return array_shapes(self)

    def take(self, rows: np.ndarray) -> Self:
        """Return the views of the given rows, in that order, and only the boards they need."""
        boards, row = np.unique(self.row[rows], return_inverse=True)
        of_boards = (array[boards] for array in self[:3])
        return type(self)(*[*of_boards, row, *(array[rows] for array in self[4:])])

    def part(self, first: int, last: int) -> Self:
        return self.take(np.arange(first, last))

    @staticmethod
    def join(parts: Sequence[_Views]) -> _Views:
        """Return all views of `parts`, one part after the other."""
        first = np.cumsum([0, *(len(part.board) for part in parts)])
        columns = [list(arrays) for arrays in zip(*parts)]
        columns[3] = [rows + start for rows, start in zip(columns[3], first)]
        return type(parts[0])(*map(np.concatenate, columns))


def feature_sizes(num_powers: int) -> list[int]:
    """How many values each column of Observation.board takes."""
    sizes = {"P + 1": num_powers + 1, "P + 2": num_powers + 2}
    return [sizes.get(size) or int(size) for _, size in BOARD_FEATURES]


@jit
def _owner(power, observer, num_powers):
    if power == NONE or power >= num_powers:  # nobody, or neutral
        return 0
    relative = power - observer
    return 1 + (relative if relative >= 0 else relative + num_powers)


@jit
def observe(board, state, games, powers, first, last, max_years, out_board, out_order, out_scalars):
    """Write the observations of decisions first..last-1: `games` (D,) as `powers` (D,) see them."""
    num_powers = board.num_powers
    for d in range(first, last):
        e, me = games[d], powers[d]
        for v in range(board.terrain.shape[0]):
            row = out_board[d, v]
            row[:] = 0
            if state.unit_power[e, v] != NONE:
                row[UNIT_KIND] = 1 + state.unit_kind[e, v]
                row[UNIT_OWNER] = _owner(state.unit_power[e, v], me, num_powers)
                row[UNIT_COAST] = board.location_coast[state.unit_location[e, v]]
            if state.dislodged_power[e, v] != NONE:
                row[DISLODGED_KIND] = 1 + state.dislodged_kind[e, v]
                row[DISLODGED_OWNER] = _owner(state.dislodged_power[e, v], me, num_powers)
                row[DISLODGED_COAST] = board.location_coast[state.dislodged_location[e, v]]
            if board.province_center[v] != NONE:
                owner = state.center_owner[e, board.province_center[v]]
                row[CENTER_OWNER] = 1 + _owner(owner, me, num_powers)
            row[HOME_OF] = _owner(board.home_power[v], me, num_powers)
            row[LAST_OWNER] = _owner(state.last_power[e, v], me, num_powers)
            row[LAST_RESULT] = state.last_result[e, v]
            out_order[d, v] = state.last_order[e, v]
        played = state.year[e] - board.first_year
        out_scalars[d, PHASE] = state.phase[e]
        out_scalars[d, YEARS_PLAYED] = played
        out_scalars[d, YEARS_LEFT] = max_years - 1 - played if max_years > 0 else -1
        out_scalars[d, POWER] = me
        for r in range(num_powers):
            power = (me + r) % num_powers
            out_scalars[d, NUM_SCALARS + CENTERS * num_powers + r] = count_centers(state, e, power)
            out_scalars[d, NUM_SCALARS + UNITS * num_powers + r] = count_units(state, e, power)
            owed = 0
            if is_winter(state.phase[e]):
                owed = adjustments_owed(board, state, e, power)
            out_scalars[d, NUM_SCALARS + OWED * num_powers + r] = owed
