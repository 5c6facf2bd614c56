"""What kinds of orders a player of a match gives."""

import numpy as np

from ..constants import (
    BOUNCE,
    CONVOY,
    HOLD,
    MOVE,
    MOVE_VIA,
    NONE,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    OrderKind,
)
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from .style import StyleCounter


class OrderCounter:
    """Counts the kinds of orders that one of a match's players gives in movement phases."""

    def __init__(self, player: int):
        self.player, self.style = player, StyleCounter()
        self.given = np.zeros(len(OrderKind), np.int64)
        self.bounced = 0
        # Of powers with allies: supports and convoys in all and for allies, moves in all and
        # against allies.
        self.among_allies = np.zeros(4, np.int64)

    def __add__(self, other: "OrderCounter") -> "OrderCounter":
        both = OrderCounter(self.player)
        both.style = self.style + other.style
        both.given = self.given + other.given
        both.bounced = self.bounced + other.bounced
        both.among_allies = self.among_allies + other.among_allies
        return both

    def look(
        self, games: VectorGame, decisions: Decisions, orders: np.ndarray, seat_player: np.ndarray
    ) -> None:
        """Count what there is to count before the `orders` (E, V) of a phase are played."""
        self.style.look(games, decisions, orders, seat_player == self.player)

    def note(
        self,
        games: VectorGame,
        seat_player: np.ndarray,
        moved: np.ndarray,
        owner: np.ndarray | None,
    ) -> None:
        """Count the orders of games (E,) bool that have just played a movement phase.

        `owner` (E, C) are the owners of the centers before it, needed where there are teams.
        """
        state = games.state
        if games.map.teams.text:
            mine = (seat_player == self.player) & moved[:, None]
            nobody = np.zeros((len(mine), 1), bool)  # in the place of NONE, which is -1
            given = np.take_along_axis(np.hstack([mine, nobody]), state.last_power, 1)
            at = np.flatnonzero(given)
            self._note_allies(games, at, owner)
        else:
            seat = (seat_player == self.player).argmax(1).astype(np.int8)
            seat[~moved] = NONE - 1  # nobody's
            at = np.flatnonzero(state.last_power == seat[:, None])
        kinds = games.table.kind.take(state.last_order.take(at))
        self.style.note(games, moved, at)
        self.given += np.bincount(kinds, minlength=len(OrderKind))
        self.bounced += np.count_nonzero(state.last_result.take(at) & BOUNCE)

    def _note_allies(self, games: VectorGame, at: np.ndarray, owner: np.ndarray) -> None:
        """Count which of the orders at the flat indices `at` (of (E, V)) are about allies."""
        board, table, state = games.board, games.table, games.state
        size = np.bincount(board.team)
        power, number = state.last_power.take(at), state.last_order.take(at)
        known = (size[board.team[power]] > 1) & (number != NONE)
        at, power, number = at[known], power[known], number[known]
        game, kind = at // len(board.terrain), table.kind[number]

        def is_ally(other: np.ndarray, who: np.ndarray) -> np.ndarray:
            other = np.where(other == board.num_powers, NONE, other)  # of a neutral unit
            return (other != NONE) & (other != who) & (board.team[other] == board.team[who])

        helps = np.isin(kind, (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY))
        there = board.location_province[table.other_location[number[helps]]]
        helped = is_ally(state.last_power[game[helps], there], power[helps])
        moves = np.isin(kind, (MOVE, MOVE_VIA))
        row, mover = game[moves], power[moves]
        goal = board.location_province[table.target[number[moves]]]
        order = state.last_order[row, goal]
        leaves = (order != NONE) & np.isin(table.kind[order], (MOVE, MOVE_VIA))
        stays = np.where(leaves, NONE, state.last_power[row, goal])
        center = board.province_center[goal]
        holder = np.where(center == NONE, NONE, owner[row, center])
        attacked = is_ally(stays, mover) | is_ally(holder, mover)
        self.among_allies += [helps.sum(), helped.sum(), moves.sum(), attacked.sum()]

    def shares(self) -> dict[str, float]:
        """Return the shares of the kinds in all orders, which add up to 1; and one of moves alone.

        `hold`, `move` (but not by convoy), `convoyed_move`, `support`, `convoy`; `bounced` is the
        share of the moves, with and without convoy, that have bounced. An illegal order is a hold.
        Where powers had allies: `ally_support`, the share of supports and convoys that are for an
        ally's unit; `ally_attack`, that of moves to where an ally's unit stays or has its center.
        """
        given = self.given
        counts = {
            "hold": given[HOLD],
            "move": given[MOVE],
            "convoyed_move": given[MOVE_VIA],
            "support": given[SUPPORT_HOLD] + given[SUPPORT_MOVE],
            "convoy": given[CONVOY],
        }
        shares = {name: float(count / max(1, given.sum())) for name, count in counts.items()}
        moves = counts["move"] + counts["convoyed_move"]
        shares |= {"bounced": float(self.bounced / max(1, moves))}
        helps, helped, moves, attacks = self.among_allies.tolist()
        if helps or moves:
            shares |= {
                "ally_support": helped / max(1, helps),
                "ally_attack": attacks / max(1, moves),
            }
        return shares
