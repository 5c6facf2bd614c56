"""Counts of a player's orders in a match: their kinds, the openings, and odd orders."""

from collections import Counter
from math import comb, log2

import numpy as np

from ..constants import BOUNCE, NONE, RUNNING, OrderKind, Phase
from ..games.decisions import Decisions
from ..games.own_help import fitting
from ..games.vector_game import StepResult, VectorGame
from ..rules.state import GameState
from ..scoring.outcomes import Outcomes

GAMES = 100  # in which different positions are counted
OPENINGS = 10  # that are told, the most frequent ones
RESULTS = ("won", "drawn", "lost")


def kind_shares(counts: np.ndarray) -> dict[str, float]:
    sums = {
        "hold": counts[OrderKind.HOLD],
        "move": counts[OrderKind.MOVE],
        "convoyed_move": counts[OrderKind.MOVE_VIA],
        "support": counts[OrderKind.SUPPORT_HOLD] + counts[OrderKind.SUPPORT_MOVE],
        "convoy": counts[OrderKind.CONVOY],
    }
    return {name: float(count / max(1, counts.sum())) for name, count in sums.items()}


class ResultCounter:
    def __init__(self):
        # By result, what, and name: games, orders by kind, openings; games and centers by year.
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._forget()

    def _forget(self) -> None:
        """Forget the running games."""
        self._orders: list[tuple[np.ndarray, np.ndarray]] = []  # rows, kinds
        self._years: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # rows, years, centers
        self._openings: dict[int, str] = {}

    def see(self, result: StepResult, mine: np.ndarray) -> None:
        """See the centers of the player's powers `mine` (E, P) where a step has counted them."""
        rows = np.flatnonzero(result.captured)
        held = np.where(mine, result.centers, 0)[rows].sum(1)
        self._years.append((rows, result.year[rows], held))

    def note(self, games: VectorGame, rows: np.ndarray, orders: np.ndarray) -> None:
        """See the player's orders in a movement phase; `rows` (n,) ascend."""
        self._orders.append((rows, games.table.kind[orders]))
        for row in np.unique(rows) if len(self._openings) < games.num_games else ():
            if int(row) not in self._openings:
                texts = (games.vocabulary.texts[number] for number in orders[rows == row])
                self._openings[int(row)] = ", ".join(texts)

    def end(
        self, games: VectorGame, rows: np.ndarray, outcomes: Outcomes, mine: np.ndarray
    ) -> None:
        """Count all that was seen of `rows`, which have ended; `mine` (n, P) as in `see`."""
        teams = games.map.teams
        win = outcomes.of_teams(teams.of_power).win()
        own = win[np.arange(len(rows)), teams.of_power[mine.argmax(1)]]
        result = np.full(games.num_games, NONE)
        result[rows] = np.where(own, 0, np.where(win.any(1), 2, 1))

        def add(
            what: str, where: np.ndarray, names: np.ndarray, amount: np.ndarray | int = 1
        ) -> None:
            has_result = result[where] != NONE
            keys, column = np.unique(names[has_result], return_inverse=True)
            totals = np.zeros((len(RESULTS), len(keys)), np.int64)
            amount = np.broadcast_to(amount, where.shape)[has_result]
            np.add.at(totals, (result[where][has_result], column), amount)
            for i, k in np.argwhere(totals):
                self.counts[RESULTS[i], what, str(keys[k])] += int(totals[i, k])

        add("games", rows, rows * 0)
        for where, kinds in self._orders:
            add("orders", where, kinds)
        for where, years, centers in self._years:
            add("years", where, years)
            add("centers", where, years, centers)
        add("openings", np.array([*self._openings], int), np.array([*self._openings.values()], str))
        self._forget()

    def figures(self) -> dict[str, dict]:
        """Return for `won`, `drawn` and `lost` how many `games`, shares of orders by kind and of
        the most frequent `openings`, and mean `centers` after each year of games that still ran."""
        by_result = {}
        for result in RESULTS:
            parts = {what: {} for what in ("games", "orders", "openings", "years", "centers")}
            for (of, what, name), count in sorted(self.counts.items()):
                if of == result:
                    parts[what][name] = count
            games, openings = sum(parts["games"].values()), Counter(parts["openings"])
            if not games:
                continue
            kind_counts = np.array([parts["orders"].get(str(int(kind)), 0) for kind in OrderKind])
            by_result[result] = {
                "games": games,
                "orders": kind_shares(kind_counts),
                "openings": {text: n / games for text, n in openings.most_common(OPENINGS)},
                "centers": {
                    year: parts["centers"].get(year, 0) / n for year, n in parts["years"].items()
                },
            }
        return by_result


class OrderCounter:
    def __init__(self, player: int):
        self.player = player
        self.given = np.zeros(len(OrderKind), np.int64)
        self.counts: Counter[str] = Counter()
        self.positions: Counter[bytes] = Counter()  # after the first year
        self.results = ResultCounter()
        self._failed = self._times = np.zeros((0, 0), np.int32)  # (E, V), moves that bounced
        self._owner = np.zeros((0, 0), np.int8)  # (E, C), of the centers before a phase

    def __add__(self, other: "OrderCounter") -> "OrderCounter":
        both = OrderCounter(self.player)
        for name in ("given", "counts", "positions"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        both.results.counts = self.results.counts + other.results.counts
        return both

    def look(
        self, games: VectorGame, decisions: Decisions, orders: np.ndarray, seat_player: np.ndarray
    ) -> None:
        state, table = games.state, games.table
        self._owner = state.center_owner.copy()
        second = (state.year == games.board.first_year + 1) & (state.phase == Phase.SPRING_MOVEMENT)
        second &= state.end == RUNNING
        arrays = state.unit_power, state.unit_kind, state.unit_location, state.center_owner
        rows = np.hstack([array[second] for array in arrays])
        self.positions.update(row.tobytes() for row in rows)
        builds = decisions.order[decisions.order_start[1:] - 1] == table.waive
        mine = seat_player == self.player
        own_slots = mine[decisions.game, decisions.power][decisions.slot_decision]
        row, province = np.nonzero((orders != NONE) & (table.kind[orders] == OrderKind.BUILD))
        builder = state.center_owner[row, games.board.province_center[province]]
        owed, built = int((builds & own_slots).sum()), int(mine[row, builder].sum())
        self.counts.update(builds=owed, waived=owed - built)

    def note(self, games: VectorGame, seat_player: np.ndarray, moved: np.ndarray) -> None:
        """Count the orders of games (E,) bool that have just played a movement phase."""
        state, table, board = games.state, games.table, games.board
        mine = (seat_player == self.player) & moved[:, None]
        nobody = np.zeros((len(mine), 1), bool)  # in the place of NONE, which is -1
        is_own = np.take_along_axis(np.hstack([mine, nobody]), state.last_power, 1)
        at = np.flatnonzero(is_own)  # flat indices of (E, V)
        row, power = at // is_own.shape[1], state.last_power.take(at)
        order, result = state.last_order.take(at), state.last_result.take(at)
        kind = table.kind[order]
        self.results.note(games, row, order)
        self.given += np.bincount(kind, minlength=len(OrderKind))
        moves = np.isin(kind, (OrderKind.MOVE, OrderKind.MOVE_VIA))
        supports = np.isin(kind, (OrderKind.SUPPORT_HOLD, OrderKind.SUPPORT_MOVE))
        about, fits = fitting(games, state.last_order, row, order)
        whose = state.last_power[row, about]  # whose unit it is that an order is about
        own, bounced = whose == power, result & BOUNCE > 0
        times = self._note_bounces(state, moved, at, order, bounced)
        flags = {
            "convoyed": (kind == OrderKind.MOVE_VIA) & (result == 0),
            "own_supports": supports & own,
            "own_unmatched": supports & own & ~fits,
            "foreign_supports": supports & ~own,
            "foreign_unmatched": supports & ~own & ~fits,
            "moves": moves,
            "against_own": moves & own & ~fits,
            "bounced": bounced,
            "bounced_again": bounced & (times > 2),
        }
        if games.map.teams.text:

            def is_ally(other: np.ndarray) -> np.ndarray:
                other = np.where(other == board.num_powers, NONE, other)  # of a neutral unit
                return (other != NONE) & (other != power) & (board.team[other] == board.team[power])

            center = board.province_center[about]
            holder = np.where(center == NONE, NONE, self._owner[row, center])
            attacks = is_ally(np.where(fits, NONE, whose)) | is_ally(holder)
            has_ally = np.bincount(board.team)[board.team[power]] > 1
            helps = has_ally & (supports | (kind == OrderKind.CONVOY))
            flags |= {
                "helps": helps,
                "helps_ally": helps & is_ally(whose),
                "moves_beside_ally": moves & has_ally,
                "moves_against_ally": moves & has_ally & attacks,
            }
        self.counts.update({name: int(here.sum()) for name, here in flags.items()})

    def _note_bounces(
        self,
        state: GameState,
        moved: np.ndarray,
        at: np.ndarray,
        order: np.ndarray,
        bounced: np.ndarray,
    ) -> np.ndarray:
        """Return how often in a row each `order` (n,) at the flat indices `at` has been tried, this
        time included; `moved` (E,) and `bounced` (n,) are bool."""
        if self._failed.shape != state.last_order.shape:
            self._failed, self._times = np.zeros((2, *state.last_order.shape), np.int32)
        self._failed[state.turn == 1] = NONE  # games that have just begun
        times = 1 + self._times.take(at) * (self._failed.take(at) == order)
        self._failed[moved] = NONE
        self._failed.put(at[bounced], order[bounced])
        self._times.put(at[bounced], times[bounced])
        return times

    def shares(self) -> dict[str, float]:
        """Return shares of the kinds in all orders (`move` is without convoy), and `bounced` of
        all moves. An illegal order is a hold. `ally_support`: of supports and convoys, those for
        an ally's unit; `ally_attack`: of moves, those to where an ally's unit stays or has its
        center."""
        counts = self.counts
        shares = kind_shares(self.given) | {"bounced": counts["bounced"] / max(1, counts["moves"])}
        if counts["helps"] or counts["moves_beside_ally"]:
            shares |= {
                "ally_support": counts["helps_ally"] / max(1, counts["helps"]),
                "ally_attack": counts["moves_against_ally"] / max(1, counts["moves_beside_ally"]),
            }
        return shares

    def style(self, games: int) -> dict[str, float]:
        """Return how the player played so many games.

        `positions`: how many different ones 100 of the games have after the first year
        (`position_entropy` in bits). Shares: of supports those that did not fit the order given
        there; of moves those against an own unit that stayed; of bounced moves those tried in vain
        in the two movement phases before; of builds those waived.
        """
        counts, total = self.counts, self.positions.total()
        drawn, position_counts = min(GAMES, total), self.positions.values()
        missed = sum(comb(total - n, drawn) / comb(total, drawn) for n in position_counts)
        shares = {
            "unmatched_own_supports": ("own_unmatched", "own_supports"),
            "unmatched_foreign_supports": ("foreign_unmatched", "foreign_supports"),
            "moves_against_own": ("against_own", "moves"),
            "repeated_failures": ("bounced_again", "bounced"),
            "waived_builds": ("waived", "builds"),
        }
        return {
            "positions": round(len(position_counts) - missed, 9),
            "position_entropy": sum(sorted(n / total * log2(total / n) for n in position_counts)),
            "convoyed_armies": counts["convoyed"] / games,
        } | {
            name: counts[part] / max(1, counts[total_name])
            for name, (part, total_name) in shares.items()
        }
