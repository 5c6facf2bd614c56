"""How a player plays, besides how much it wins: what a person at the board would notice."""

from collections import Counter
from math import comb, log2

import numpy as np

from ..constants import (
    BOUNCE,
    BUILD,
    MOVE,
    MOVE_VIA,
    NONE,
    RUNNING,
    SPRING_MOVEMENT,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
)
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame

GAMES = 100  # in which different positions are counted


class StyleCounter:
    """Counts what is odd in the orders of one player, and the positions after the first year."""

    def __init__(self):
        self.counts, self.positions = Counter(), Counter()
        self._failed = self._times = np.zeros((0, 0), np.int32)  # (E, V), moves that bounced

    def __add__(self, other: "StyleCounter") -> "StyleCounter":
        both = StyleCounter()
        both.counts = self.counts + other.counts
        both.positions = self.positions + other.positions
        return both

    def look(
        self, games: VectorGame, decisions: Decisions, orders: np.ndarray, mine: np.ndarray
    ) -> None:
        """Count positions and builds before a phase; the player has the seats `mine` (E, P)."""
        state, table = games.state, games.table
        second = (state.year == games.board.first_year + 1) & (state.phase == SPRING_MOVEMENT)
        second &= state.end == RUNNING
        if second.any():
            arrays = state.unit_power, state.unit_kind, state.unit_location, state.center_owner
            rows = np.hstack([array[second] for array in arrays])
            self.positions.update(row.tobytes() for row in rows)
        builds = decisions.order[decisions.order_start[1:] - 1] == table.waive
        asked = mine[decisions.game, decisions.power][decisions.slot_decision]
        row, province = np.nonzero((orders != NONE) & (table.kind[orders] == BUILD))
        builder = state.center_owner[row, games.board.province_center[province]]
        owed, given = int((builds & asked).sum()), int(mine[row, builder].sum())
        self.counts.update(builds=owed, waived=owed - given)

    def note(self, games: VectorGame, moved: np.ndarray, at: np.ndarray) -> None:
        """Count the orders of the player's units, at the flat indices `at` (of (E, V)), in games
        `moved` (E,) bool that have just played a movement phase."""
        board, table, state = games.board, games.table, games.state
        if self._failed.shape != state.last_order.shape:
            self._failed, self._times = np.zeros((2, *state.last_order.shape), np.int32)
        self._failed[state.turn == 1] = NONE  # games that have just begun
        at = at[state.last_order.take(at) != NONE]
        order, result = state.last_order.take(at), state.last_result.take(at)
        kind, row = table.kind[order], at // len(board.terrain)
        moves = (kind == MOVE) | (kind == MOVE_VIA)
        helps = (kind == SUPPORT_HOLD) | (kind == SUPPORT_MOVE)
        goal = board.location_province[table.target[order]]
        about = np.where(moves, goal, board.location_province[table.other_location[order]])
        own = state.last_power[row, about] == state.last_power.take(at)
        there = state.last_order[row, about]  # what the unit was ordered that this is about
        leaves = (there != NONE) & np.isin(table.kind[there], (MOVE, MOVE_VIA))
        goes = leaves & (board.location_province[table.target[there]] == goal)
        unmatched = helps & np.where(kind == SUPPORT_HOLD, leaves, ~goes)

        failed = moves & (result & BOUNCE > 0)
        times = 1 + self._times.take(at) * (self._failed.take(at) == order)
        self._failed[moved] = NONE
        self._failed.put(at[failed], order[failed])
        self._times.put(at[failed], times[failed])
        found = {
            "convoyed": (kind == MOVE_VIA) & (result == 0),
            "own_supports": helps & own,
            "own_unmatched": unmatched & own,
            "foreign_supports": helps & ~own,
            "foreign_unmatched": unmatched & ~own,
            "moves": moves,
            "against_own": moves & own & ~leaves,
            "failed": failed,
            "failed_again": failed & (times > 2),
        }
        self.counts.update({name: int(here.sum()) for name, here in found.items()})

    def figures(self, games: int) -> dict[str, float]:
        """Return the figures of so many games.

        `positions`: how many different ones 100 of the games have after the first year, with all
        powers' units and centers (of fewer games: all of them); `position_entropy` of these, in
        bits; `convoyed_armies` a game. The others are shares, 0..1: of supports for own and for
        other powers' units those that did not fit the order given there; of moves those against an
        own unit that was not ordered to move; of moves that bounced those that the same unit had
        tried in vain in the two movement phases before; of builds those waived.
        """
        counts, total = self.counts, self.positions.total()
        drawn, seen = min(GAMES, total), self.positions.values()

        def share(part: str, whole: str) -> float:
            return counts[part] / max(1, counts[whole])

        return {
            "positions": round(
                sum(1 - comb(total - n, drawn) / comb(total, drawn) for n in seen), 9
            ),
            "position_entropy": sum(sorted(n / total * log2(total / n) for n in seen)),
            "convoyed_armies": counts["convoyed"] / games,
            "unmatched_own_supports": share("own_unmatched", "own_supports"),
            "unmatched_foreign_supports": share("foreign_unmatched", "foreign_supports"),
            "moves_against_own": share("against_own", "moves"),
            "repeated_failures": share("failed_again", "failed"),
            "waived_builds": share("waived", "builds"),
        }
