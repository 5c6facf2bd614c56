"""`Diplomacy-MAP-deals-v0`: the negotiation environment of the thesis' later code, on every map.

The agent chooses among four kinds of deals before each movement phase, by nine numbers. Somebody
else gives all orders. docs/other_libraries.md explains it. Of the deals of a kind one is drawn, as in the
code that this follows: neither what is likely nor what is worth most counts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import MultiDiscrete

from ..constants import MOVE, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ..games.decisions import Decisions
from ..players.negotiators.options import Options, is_support, promise
from ..players.negotiators.planners import Planner
from ..press.deals import Side, make_offers
from ..press.table import PEACE_ALONE
from .negotiation_env import NegotiationEnv

AGREED, CENTER = 10.0, 100.0  # what the reward `deals` pays
PHASES_AHEAD = 10


class Kept(NamedTuple):
    """A deal that was made for a later movement phase."""

    due: int  # number of that phase
    other: int
    clauses: Sequence


class DealsEnv(NegotiationEnv):
    """One power of one game that talks; `step` makes offers and plays to the next movement phase.

    Spaces, after the thesis' later code:
        observation: of each of V provinces two numbers: who has a unit there or else owns the
            center (0 nobody, else 1 + power), whether there is a center; at the end the own power.
        action: whether to offer a deal to defend each other's units, and for which own unit;
            whether to offer peace, and to which power; whether to ask for support of an attack, and
            of which own unit; whether to offer support, and by which own unit; for how many
            movement phases ahead, 0 being the one at hand.

    A unit's number counts the own ones by their provinces, a power's the other living ones; numbers
    beyond the last mean the last. With whom and where a unit helps or is helped is drawn from what
    the board allows; where nothing is possible no offer is made. A deal for a later phase is agreed
    to or not at once: looking ahead is nobody's skill here, so that it brings nobody anything. When
    the phase comes, it binds if it is still possible.

    Args:
        map, power, answers, orders_by, max_years, draw_votes, draws_after: as for NegotiationEnv.
        reward: `deals`, as without one (10 for each deal, 100 for each center gained or lost), or
            one of scoring/rewards.py, or a mix, paid for the phases up to the next offers.

    `info` has `offered` and `agreed`, how many offers of each kind of fate, and `power`.
    """

    own_reward = "deals"

    def _spaces(self) -> tuple[MultiDiscrete, MultiDiscrete]:
        board, powers = self._games.board, self._games.num_powers
        holders = len(self._games.map.unit_powers) + 1
        units = max(1, int(board.victory_centers))
        self._kept: list[Kept] = []
        self._phase = 0
        return (
            MultiDiscrete([holders, 2] * len(board.terrain) + [powers]),
            MultiDiscrete([2, units, 2, powers - 1, 2, units, 2, units, PHASES_AHEAD]),
        )

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Start a new game; see gymnasium.Env.reset. There are no options."""
        self._kept, self._phase = [], 0
        return super().reset(seed=seed, options=options)

    def _nothing_said(self) -> dict:
        return {"offered": 0, "agreed": 0}

    def _own_reward(self, said: dict, gained: int) -> float:
        return AGREED * said["agreed"] + CENTER * gained

    def _speak(self, decisions: Decisions, numbers: list[int]) -> dict:
        """Make the offers of an action, after those that were agreed to earlier for this phase."""
        for kept in self._kept:
            if kept.due == self._phase:
                offers = make_offers([(0, self._power, kept.other, kept.clauses)])
                self._press.settle(offers, np.ones(1, bool), decisions)
        self._kept = [kept for kept in self._kept if kept.due > self._phase]
        options, found = Options(self._games, decisions, 0), []
        kinds = (self._defences, self._peace, self._attacks, self._favors)
        for possible, wanted, number in zip(kinds, numbers[0:8:2], numbers[1:8:2]):
            offers = possible(options, number) if wanted else []
            if offers:
                found.append(offers[self.np_random.integers(len(offers))])
        agreed = sum(self._put_ahead(decisions, *offer, numbers[8]) for offer in found)
        self._phase += 1
        return {"offered": len(found), "agreed": agreed}

    def _put_ahead(self, decisions: Decisions, other: int, clauses: Sequence, ahead: int) -> bool:
        """Put an offer to a power; return whether it is agreed to."""
        if ahead == 0:
            return self._put(decisions, other, clauses)
        if not isinstance(self._partner, Planner):
            return False
        talk, sender = self._asked(decisions, other), np.array([self._power])
        agreed = bool(self._partner.agrees(talk, sender, np.zeros(1))[0])
        if agreed:
            self._kept.append(Kept(self._phase + ahead, other, clauses))
        return agreed

    def _unit(self, number: int) -> int:
        """Return the province of an own unit by its number."""
        units = np.flatnonzero(self._games.state.unit_power[0] == self._power)
        return int(units[min(number, len(units) - 1)]) if len(units) else NONE

    def _peace(self, options: Options, number: int) -> list[tuple[int, tuple]]:
        """Return (power, clauses) of peace with the other living power of a number."""
        alive = self._games.outcomes().alive[0].copy()
        alive[self._power] = False
        others = np.flatnonzero(alive)
        return [(int(others[min(number, len(others) - 1)]), PEACE_ALONE)] if len(others) else []

    def _defences(self, options: Options, number: int) -> list[tuple[int, tuple]]:
        """Return (power, clauses) by which a unit and a neighbor support each other to hold."""
        mine, found = self._unit(number), []
        for support in options.of_kind(mine, SUPPORT_HOLD).tolist():
            theirs = int(options.helped(support))
            other, back = int(options.unit_power[theirs]), options.holds(theirs, mine)
            if other != self._power and len(back):
                found.append((other, _orders((mine, support), (theirs, int(back[0])))))
        return found

    def _attacks(self, options: Options, number: int) -> list[tuple[int, tuple]]:
        """Return (power, clauses) by which a neighbor supports a move of a unit."""
        mine, found = self._unit(number), []
        moves = options.of_kind(mine, MOVE)
        for theirs in options.orders:
            other = int(options.unit_power[theirs])
            for support in options.of_kind(theirs, SUPPORT_MOVE).tolist():
                for move in moves[is_support(options.table, support, moves)].tolist():
                    if other != self._power and self._holder(move) != other:
                        found.append((other, _orders((mine, move), (theirs, support))))
        return found

    def _favors(self, options: Options, number: int) -> list[tuple[int, tuple]]:
        """Return (power, clauses) by which a unit supports a move of a neighbor."""
        mine, found = self._unit(number), []
        for support in options.of_kind(mine, SUPPORT_MOVE).tolist():
            theirs = int(options.helped(support))
            other, moves = int(options.unit_power[theirs]), options.of_kind(theirs, MOVE)
            for move in moves[is_support(options.table, support, moves)].tolist():
                if other != self._power and self._holder(move) not in (other, self._power):
                    found.append((other, _orders((mine, support), (theirs, move))))
        return found

    def _holder(self, move: int) -> int:
        """Return the power of the unit where a move goes; NONE without one."""
        province = self._games.board.location_province[self._games.table.target[move]]
        return int(self._games.state.unit_power[0, province])

    def _observation(self) -> np.ndarray:
        board, state = self._games.board, self._games.state
        seen = np.zeros((len(board.terrain), 2), np.int64)
        seen[board.center_province, 0] = 1 + state.center_owner[0]
        standing = state.unit_power[0] != NONE
        seen[standing, 0] = 1 + state.unit_power[0, standing]
        seen[:, 1] = board.province_center != NONE
        return np.append(seen.ravel(), self._power)


def _orders(mine: tuple[int, int], theirs: tuple[int, int]) -> tuple:
    """Return the clauses that promise one order of each side, (province, order number) each."""
    return promise(Side.SENDER, *mine), promise(Side.RECEIVER, *theirs)
