"""Boards one phase ahead, and what they are worth to a power."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ..._jit import jit
from ...constants import FALL_MOVEMENT, FALL_RETREATS, NONE, RUNNING, SOLO, SPRING_RETREATS
from ...games.decisions import Decisions
from ...games.observation import BoardViews
from ...games.vector_game import StepResult, VectorGame
from ...rules.state import in_movement
from ...scoring.rewards import reward_input, squared_shares
from ..asking import orders_of
from ..policy.player import Objective, PolicyPlayer
from ..protocols import Player
from .draws import CHUNK

ROOM = 1024  # boards tried at once
# Weight of the claims to a center before and after captures; the rest is for who has it now.
CLAIMED_BEFORE, CLAIMED_AFTER = 0.9, 0.35
# How much a power has to say about a center, in units that stand in it or can go there.
STANDING, OWNING = 1.5, 0.5


class LeafValue(Protocol):
    """Says what a board is worth to powers."""

    discount: float  # of the value of a board
    at_once: bool  # whether that is seen right after the phase, or at the power's next decision

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        """Return what a step of n games has brought every power, (n, P)."""

    def values(self, boards: list) -> np.ndarray: ...

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> object:
        """Return whatever is needed to value rows (n,) for powers (n,) later on."""


# (copies, decisions, rows, powers) -> orders (S,) of D movement decisions in copies of games:
# Of each decision's game: the row that it is a copy of (D,), and for which power it is tried (D,).
PlayOn = Callable[[VectorGame, Decisions, np.ndarray, np.ndarray], np.ndarray]


def values_of(policy: PolicyPlayer, boards: Sequence[BoardViews]) -> np.ndarray:
    """Return the values (n,) that a policy gives boards."""
    obs = boards[0].join(boards)  # views of a policy that talks have more to them
    parts = np.split(np.arange(len(obs.row)), range(CHUNK, len(obs.row), CHUNK))
    return np.concatenate([policy.agent.values(obs.take(part)) for part in parts])


class Critic:
    """The value that a policy has learned: of the reward from a power's next decision on.

    It is discounted once. So a step counts with the reward that it has paid, and a board is valued
    when the power has to decide something there.
    """

    def __init__(self, policy: PolicyPlayer):
        self.policy, self.objective = policy, Objective.of(policy.settings)
        self.discount, self.at_once = self.objective.gamma, False

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        position = reward_input(result, victory_centers, self.objective.pays_year_limit)
        return self.objective.reward(position, 1.0)

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        return self.policy.observe(games, rows, powers)

    def values(self, boards: list) -> np.ndarray:
        return values_of(self.policy, boards)


@jit
def _value_boards(board, state, rows, first, last, near, expected, out):
    """Value games rows[first:last] for every power.

    Reads   state.unit_*, state.center_owner, state.phase, state.end
    Writes  out (n, P), shares that add up to 1; near (P, V) and expected (P,), to work with
    Rule    a finished game: 1 for a solo, else squared centers over the sum of all powers' squares.
            A running one: the same of expected centers. A power's claim to a center is the number
            of its units that stand there or can move there, and more for the one that stands
            there and for its owner; the center counts for each power as its squared claim among
            all of them, and besides for the power that has it
    """
    for i in range(first, last):
        e = rows[i]
        expected[:] = 0
        if state.end[e] == SOLO:
            out[i] = 0
            out[i, state.winner[e]] = 1
            continue
        phase = state.phase[e]
        before = phase in (SPRING_RETREATS, FALL_MOVEMENT)
        share = CLAIMED_BEFORE if before else CLAIMED_AFTER
        if state.end[e] == RUNNING and phase != FALL_RETREATS:
            near[:] = 0
            for v in range(board.terrain.shape[0]):
                p = state.unit_power[e, v]
                if p == NONE or p == board.num_powers:
                    continue
                near[p, v] += STANDING
                kind, here = state.unit_kind[e, v], state.unit_location[e, v]
                came = NONE
                for n in range(board.neighbor_count[kind, here]):
                    q = board.location_province[board.neighbor[kind, here, n]]
                    if q != came:  # coasts of a province are next to each other
                        near[p, q] += 1
                    came = q
        else:
            share = 0.0
        for c in range(board.center_province.shape[0]):
            v = board.center_province[c]
            holder, owner = state.unit_power[e, v], state.center_owner[e, c]
            if holder == NONE or holder == board.num_powers or state.end[e] != RUNNING:
                holder = owner
            if holder != NONE:
                expected[holder] += 1 - share
            if share == 0:
                continue
            total = 0.0
            for p in range(board.num_powers):
                if near[p, v] > 0 or p == owner:
                    claim = near[p, v] + (OWNING if p == owner else 0.0)
                    total += claim * claim
            if total > 0:
                for p in range(board.num_powers):
                    claim = near[p, v] + (OWNING if p == owner else 0.0)
                    expected[p] += share * claim * claim / total
        total = 0.0
        for p in range(board.num_powers):
            if state.conceded[e, p]:
                expected[p] = 0
            total += expected[p] * expected[p]
        for p in range(board.num_powers):
            out[i, p] = expected[p] * expected[p] / max(total, 1e-9)


class CenterClaims:
    """The value of a board by centers: owned, stood in, and within reach.

    From 0 to 1. A finished game counts with its exact result, as `sum_of_squares` of
    scoring/outcomes.py.
    """

    discount = 1.0
    at_once = True

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        winner = result.winner[:, None] == np.arange(result.centers.shape[1])
        exact = np.where((result.ended == SOLO)[:, None], winner, squared_shares(result.centers))
        return np.where((result.ended == RUNNING)[:, None], 0.0, exact)

    def look(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        return self.shares(games, rows)[np.arange(len(rows)), powers]

    def values(self, boards: list) -> np.ndarray:
        return np.concatenate(boards)

    def shares(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return what games are worth to every power, (n, P), which add up to 1."""
        powers, provinces = games.num_powers, len(games.board.terrain)
        rows = np.ascontiguousarray(rows, np.int64)
        out = np.empty((len(rows), powers))

        def value_slice(first: int, last: int) -> None:
            part = games.board, games.state, rows, first, last
            games.call(_value_boards, *part, np.empty((powers, provinces)), np.empty(powers), out)

        games.run(value_slice, len(rows))
        return out


def holders(games: VectorGame, rows: np.ndarray) -> np.ndarray:
    """Return which power stands in each center, or owns it with nobody there, (n, C); else NONE,
    or P for a neutral unit."""
    standing = games.state.unit_power[rows][:, games.board.center_province]
    return np.where(standing == NONE, games.state.center_owner[rows], standing)


class Leaves:
    """Tries joint orders on copies of games, and values what comes of them.

    `following` gives all orders until the power has to decide again.
    """

    def __init__(self, games: VectorGame, value: LeafValue, following: Player):
        self.value, self.following = value, following
        self.spare = games.spare(ROOM)
        self.tried = 0  # leaves so far
        self._orders = self.spare.new_orders()

    def evaluate(
        self,
        games: VectorGame,
        rows: np.ndarray,
        powers: np.ndarray,
        orders: np.ndarray,
        seeds: np.ndarray,
        ahead: int | np.ndarray = 0,
        play_on: PlayOn | None = None,
    ) -> np.ndarray:
        """Return what joint orders (n, V) of all powers are worth to `powers` (n,), float64.

        The seeds (n,) are of the draws that follow; `play_on` gives the orders of the `ahead` (n,)
        movement phases that are played on.
        """
        spare, count, ahead = self.spare, len(rows), 0 if play_on is None else ahead
        if count > ROOM:
            arrays = rows, powers, orders, seeds, np.broadcast_to(ahead, count)
            parts = zip(*(np.split(array, range(ROOM, count, ROOM)) for array in arrays))
            values = [self.evaluate(games, r, p, o, s, a, play_on) for r, p, o, s, a in parts]
            return np.concatenate(values)
        self.tried += count
        copies = np.arange(count)
        spare.copy_from(games, rows, copies)
        spare.seed_games(copies, seeds)
        self._orders[:count] = orders
        total, boards, at = np.zeros(count), [], []
        discount, played = np.ones(count), np.zeros(count, np.int64)
        pending, pending_orders = copies, self._orders
        while len(pending):
            result = spare.step(pending_orders, pending)
            mine = np.arange(len(pending)), powers[pending]
            paid = self.value.paid(result, spare.board.victory_centers)[mine]
            total[pending] += discount[pending] * paid
            pending = pending[(result.ended == RUNNING) & result.alive[mine]]
            decisions = spare.decisions(pending)
            deciding = np.zeros(count, bool)
            deciding[decisions.game[decisions.power == powers[decisions.game]]] = True
            discount[deciding] *= self.value.discount
            looked = (deciding | self.value.at_once) & (played >= ahead)
            now, pending = pending[looked[pending]], pending[~looked[pending]]
            if len(now):
                boards.append(self.value.look(spare, now, powers[now]))
                at.append(now)
            if not len(pending):
                break
            decisions = decisions.take(~looked[decisions.game])
            on = in_movement(spare.state, decisions.game) & (played < ahead)[decisions.game]
            pending_orders = orders_of(spare, self.following, decisions.take(~on))
            if play_on is not None and on.any():
                playing = decisions.take(on)
                numbers = play_on(spare, playing, rows[playing.game], powers[playing.game])
                spare.write_orders(pending_orders, playing, numbers)
                played[np.unique(playing.game)] += 1
        if boards:
            at = np.concatenate(at)
            total[at] += discount[at] * self.value.values(boards)
        return total
