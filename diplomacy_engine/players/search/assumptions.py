"""Models of the other players: one player, or several with probabilities inferred from orders."""

import numpy as np

from ...constants import NONE, End, Phase
from ...games.decisions import Decisions
from ...games.draws import phase_seeds, pick_shares, unit_places
from ...games.vector_game import VectorGame
from ...rules.state import Salt, in_movement
from .draws import Draws

TRIES = 24  # joint orders drawn from each hypothesis to see how likely what was ordered is
SMOOTHING = 0.5  # draws that every legal order of a unit is given besides
LEAST = 0.02  # share of the profiles that a hypothesis keeps, so that a change of mind is possible


class Assumptions:
    """Probabilities of several players for each other power.

    They are uniform at the start of a game, then follow Bayes' rule on the orders of each unit; an
    order's likelihood is its smoothed share of samples. Without `learns` each profile samples a
    player.
    """

    def __init__(self, hypotheses: dict[str, Draws], learns: bool = True):
        self.hypotheses, self.learns = hypotheses, learns and len(hypotheses) > 1
        self._past: VectorGame | None = None
        self._log: np.ndarray = np.zeros((0, 0, len(hypotheses)))  # (E, P, H), not normalised
        self._when: np.ndarray = np.zeros(0, np.int64)  # (E,) movement phase that `_past` holds

    def begin(self, games: VectorGame, rows: np.ndarray) -> None:
        if not self.learns:
            return
        if not self._remembers(games):
            self._remember(games)
        self._log[rows], self._when[rows] = 0.0, NONE

    def _remember(self, games: VectorGame) -> None:
        self._past = games.spare(games.num_games)
        self._log = np.zeros((games.num_games, games.num_powers, len(self.hypotheses)))
        self._when = np.full(games.num_games, NONE)

    def _remembers(self, games: VectorGame) -> bool:
        """Tell whether these are the games played, not copies on which somebody tries something."""
        past = self._past
        return past is not None and past.num_games == games.num_games and past.is_like(games)

    def probabilities(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return how likely each hypothesis is for each power, (n, P, H), which add up to 1."""
        log = np.zeros((len(rows), games.num_powers, len(self.hypotheses)))
        if self._remembers(games):
            log = self._log[rows]
        shares = np.exp(log - log.max(2, keepdims=True))
        return shares / shares.sum(2, keepdims=True)

    def watch(self, games: VectorGame, rows: np.ndarray) -> None:
        """Learn from the orders of the last movement phase, if it was remembered; then remember the
        present position if it is one of a movement phase."""
        if self.learns and self._past is None:
            self._remember(games)
        if not self._remembers(games):
            return
        state = games.state
        phase, year = state.phase[rows], state.year[rows].astype(np.int64)
        moved = np.isin(phase, (Phase.FALL_RETREATS, Phase.WINTER_ADJUSTMENTS))  # in fall
        last = 2 * year + moved - (phase == Phase.SPRING_MOVEMENT)
        ordered_rows = rows[(self._when[rows] == last) & (state.end[rows] == End.RUNNING)]
        if len(ordered_rows):
            self._learn(games, ordered_rows)
            self._when[ordered_rows] = NONE
        moving = rows[in_movement(state, rows)]
        self._past.copy_from(games, moving, moving, keep_seeds=True)
        now = 2 * state.year[moving].astype(np.int64) + (state.phase[moving] == Phase.FALL_MOVEMENT)
        self._when[moving] = now

    def _learn(self, games: VectorGame, rows: np.ndarray) -> None:
        past, state = self._past, games.state
        past_decisions = past.decisions(rows)
        seeds = phase_seeds(past, past_decisions.game, past_decisions.power, Salt.WATCHING, TRIES)
        legal = np.diff(past_decisions.order_start)
        decision = past_decisions.slot_decision
        last_orders = state.last_order[past_decisions.game[decision], past_decisions.slot_province]
        for number, draws in enumerate(self.hypotheses.values()):
            drawn, _ = draws.draw(past, past_decisions, seeds)
            same = drawn[decision, :, past_decisions.slot_province] == last_orders[:, None]
            share = (same.sum(1) + SMOOTHING) / (TRIES + SMOOTHING * legal)
            log = np.where(last_orders == NONE, 0.0, np.log(share))
            np.add.at(
                self._log,
                (past_decisions.game[decision], past_decisions.power[decision], number),
                log,
            )

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

    def pick(self, copies: VectorGame, decisions: Decisions, games: VectorGame, rows: np.ndarray):
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
