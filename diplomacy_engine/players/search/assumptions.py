"""Models of the other players: one player, or several with probabilities inferred from orders."""

import hashlib

import numpy as np

from ...constants import NONE, Phase
from ...games.decisions import Decisions
from ...games.draws import phase_seeds, pick_shares, unit_places
from ...games.vector_game import History, VectorGame
from ...rules.state import GameState, Salt, in_movement
from .draws import Draws

TRIES = 24  # joint orders drawn from each hypothesis to see how likely what was ordered is
SMOOTHING = 0.5  # draws that every legal order of a unit is given besides
MOST_JUDGED = 100_000  # phases that are kept, of which each is judged once
LEAST = 0.02  # share of the profiles that a hypothesis keeps, so that a change of mind is possible


class Assumptions:
    """Probabilities of several players for each other power.

    They are uniform at the start of a game, and where games keep no history; then they follow
    Bayes' rule on the orders of each unit; an order's likelihood is its smoothed share of samples.
    Without `learns` each profile samples a player.
    """

    def __init__(self, hypotheses: dict[str, Draws], learns: bool = True):
        self.hypotheses, self.learns = hypotheses, learns and len(hypotheses) > 1
        self._judged: dict[bytes, np.ndarray] = {}  # a phase and its orders -> (P, H)

    def probabilities(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return how likely each hypothesis is for each power, (n, P, H), which add up to 1."""
        rows, place = np.unique(rows, return_inverse=True)
        log = np.zeros((len(rows), games.num_powers, len(self.hypotheses)))
        if self.learns:
            self._judge(games, rows, log)
        shares = np.exp(log - log.max(2, keepdims=True))
        return (shares / shares.sum(2, keepdims=True))[place]

    def _judge(self, games: VectorGame, rows: np.ndarray, log: np.ndarray) -> None:
        """Add to `log` (n, P, H) how likely, as logarithms, all orders that powers have given in
        the movement phases of `rows` (n,) are by each hypothesis."""
        if (history := games.history) is None:
            return
        place, past, orders = _phases(games, history, rows)
        keys = [_key(history.games, *phase) for phase in zip(past, orders)]
        new = [n for n, key in enumerate(keys) if key not in self._judged]
        if len(self._judged) + len(new) > MOST_JUDGED:
            self._judged, new = {}, list(range(len(keys)))
        if new:
            logs = self._log_likelihood(history.games, past[new], orders[new])
            self._judged |= zip((keys[n] for n in new), logs)
        for n, key in zip(place, keys):
            log[n] += self._judged[key]

    def _log_likelihood(self, past: VectorGame, rows: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """Return the logarithms (n, P, H) of one phase each, with the orders (n, V) given there."""
        decisions, order = past.decisions(rows), np.argsort(rows)
        phase = order[np.searchsorted(rows[order], decisions.game)]
        seeds = phase_seeds(past, decisions.game, decisions.power, Salt.WATCHING, TRIES)
        legal, decision = np.diff(decisions.order_start), decisions.slot_decision
        ordered = orders[phase[decision], decisions.slot_province]
        log = np.zeros((len(rows), past.num_powers, len(self.hypotheses)))
        for number, draws in enumerate(self.hypotheses.values()):
            drawn, _ = draws.draw(past, decisions, seeds)
            same = drawn[decision, :, decisions.slot_province] == ordered[:, None]
            share = (same.sum(1) + SMOOTHING) / (TRIES + SMOOTHING * legal)
            of_slot = np.where(ordered == NONE, 0.0, np.log(share))
            np.add.at(log, (phase[decision], decisions.power[decision], number), of_slot)
        return log

    def draw(self, games: VectorGame, decisions: Decisions, seeds: np.ndarray) -> np.ndarray:
        """Return draws of what other powers order, (D, R, V) by province, from seeds (D, R)."""
        if len(self.hypotheses) == 1:
            (draws,) = self.hypotheses.values()
            return draws.draw(games, decisions, seeds)[0]
        which = self._pick_hypotheses(games, decisions.game, decisions.power, seeds)
        orders = np.full((*seeds.shape, len(games.board.terrain)), NONE, np.int32)
        for number, draws in enumerate(self.hypotheses.values()):
            d, r = np.nonzero(which == number)
            if len(d):
                orders[d, r] = draws.draw(games, decisions.take(d), seeds[d, r][:, None])[0][:, 0]
        return orders

    def pick(
        self, copies: VectorGame, decisions: Decisions, games: VectorGame, rows: np.ndarray
    ) -> np.ndarray:
        """Return which hypothesis gives orders when copies of `rows` (D,) are played on, (D,)."""
        if len(self.hypotheses) == 1:
            return np.zeros(decisions.count, np.int64)
        seeds = phase_seeds(copies, decisions.game, decisions.power, Salt.WATCHING, 1)
        return self._pick_hypotheses(games, rows, decisions.power, seeds)[:, 0]

    def _pick_hypotheses(
        self, games: VectorGame, rows: np.ndarray, powers: np.ndarray, seeds: np.ndarray
    ) -> np.ndarray:
        shares = np.maximum(self.probabilities(games, rows), LEAST)
        shares = shares[np.arange(len(rows)), powers]
        return pick_shares(shares[:, None], unit_places(seeds))


def _key(games: VectorGame, row: int, orders: np.ndarray) -> bytes:
    """Return what tells a position and the orders (V,) given there from others."""
    parts = [array[row].tobytes() for array in games.state] + [orders.tobytes()]
    rules = f"{games.map.hash} {games.max_years}".encode()
    return hashlib.blake2b(b"".join([rules, *parts]), digest_size=16).digest()


def _phases(games: VectorGame, history: History, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the M movement phases that `rows` (n,) have had, each row's in order.

    These are the place in `rows` (M,), the row of the history's games (M,), and the orders, (M, V)
    order numbers by province. A phase is left out if the one after it is missing, from which its
    orders are read.
    """
    count, state = history.count, history.games.state
    place = np.repeat(np.arange(len(rows)), count[rows])
    number = np.concatenate([np.arange(0), *map(np.arange, count[rows])])
    past = number * len(count) + rows[place]
    newest = number == count[rows][place] - 1
    after = np.where(newest, 0, past + len(count))
    orders, last = state.last_order[after], _last_movement(state)[after]
    orders[newest] = games.state.last_order[rows[place[newest]]]
    last[newest] = _last_movement(games.state)[rows[place[newest]]]
    next_ones = last == _last_movement(state)[past] + 1
    return place[next_ones], past[next_ones], orders[next_ones]


def _last_movement(state: GameState) -> np.ndarray:
    """Return the number (E,) of the movement phase that was played last, two a year."""
    in_fall = state.phase >= Phase.FALL_MOVEMENT
    return 2 * state.year.astype(np.int64) + in_fall - in_movement(state)
