"""A search in which all powers think: regret matching among the candidates of each.

Regret matching: Hart and Mas-Colell 2000; its plus variant with linear averaging: Tammelin 2014.
Mixtures that stay near a policy: piKL, Jacob et al. 2022, *Modeling Strong and Human-Like Gameplay
with KL-Regularized Search*; the schedule is that of Bakhtin et al. 2023.
"""

from typing import NamedTuple

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.state import Salt
from ..protocols import Reasons
from .best_response import distinct, with_likeliest
from .draws import Draws, phase_seeds, pick_shares, unit_places
from .leaves import LeafValue
from .player import SearchPlayer

UNLIKELY = 0.02  # candidates with a smaller share of the mixture are never played
LEAST = -20.0  # log-probability of orders that the policy itself would never draw
SHOWN = 32  # profiles of the others that reasons hold


class Sides(NamedTuple):
    """The movement decisions of G games, with K candidates for each."""

    decisions: Decisions  # D of them, in the order of games and powers
    game: np.ndarray  # (D,) int64, 0..G-1
    orders: np.ndarray  # (D, K, V) int32, order numbers by province
    logprob: np.ndarray  # (D, K) float32, of the orders, LEAST at least; 0 if not known
    count: np.ndarray  # (D,) int64, candidates; the rest are none
    follow: np.ndarray  # (G,) uint64, seeds of what comes after the phase

    def find(self, decisions: Decisions) -> np.ndarray:
        """Return which of its decisions these are."""
        own, wanted = (
            found.game.astype(np.int64) * 1000 + found.power
            for found in (self.decisions, decisions)
        )
        return np.searchsorted(own, wanted)


def mixtures_of(regret: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return mixtures (..., K) of regret matching: shares of the positive regrets, else even."""
    positive = np.maximum(regret, 0.0) * possible
    total = positive.sum(-1, keepdims=True)
    even = possible / possible.sum(-1, keepdims=True)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), even)


def anchored(
    value: np.ndarray,
    logprob: np.ndarray,
    anchor: float,
    exploring: np.ndarray | float,
    possible: np.ndarray,
) -> np.ndarray:
    """Return the mixtures (..., K) of piKL: exp((value + anchor * logprob) / (exploring + anchor)).

    With a great `anchor`, the cost of a nat of distance from the policy, they are the policy; with
    0 those of Hedge. `exploring` falls with the iterations.
    """
    temperature = np.maximum(exploring + anchor, 1e-12)
    logit = np.where(possible, (value + anchor * logprob) / temperature, -np.inf)
    share = np.exp(logit - logit.max(-1, keepdims=True))
    return share / share.sum(-1, keepdims=True)


def without_unlikely(shares: np.ndarray) -> np.ndarray:
    shares = np.where(shares < UNLIKELY, 0.0, shares)
    return shares / shares.sum(1, keepdims=True)


class Equilibrium(SearchPlayer):
    """Draws from the average mixture of regret matching among candidates of all powers.

    Gray et al. 2021, *Human-Level Performance in No-Press Diplomacy via Equilibrium Search*,
    section 3.2: in each iteration one profile is drawn from all mixtures, and every candidate of
    every power is valued against the others' part of it. The candidates of all come from `own`,
    the best of `draws`. With an `anchor` the mixtures are those of piKL.
    """

    def __init__(
        self,
        own: Draws,
        value: LeafValue,
        name: str,
        candidates: int = 8,
        iterations: int = 64,
        draws: int = 32,
        anchor: float | None = None,
    ):
        super().__init__(own, value, name)
        self.candidates, self.iterations, self.draws = candidates, iterations, draws
        self.anchor = anchor

    def sides(self, games: VectorGame, rows: np.ndarray) -> Sides:
        asked = games.decisions(rows)
        game = np.searchsorted(rows, asked.game)
        seeds = phase_seeds(games, asked.game, asked.power, Salt.CANDIDATES, self.draws)
        drawn, logprob = self.own.draw(games, asked, seeds)
        drawn, logprob = with_likeliest(self.own, games, asked, drawn, logprob)
        kept, count = distinct(drawn, logprob, self.candidates)
        orders = np.take_along_axis(drawn, kept[:, :, None], 1)
        follow = phase_seeds(games, rows, np.zeros(len(rows), np.int64), Salt.FOLLOWING, 1)[:, 0]
        logprob = np.maximum(np.take_along_axis(logprob, kept, 1), LEAST)
        return Sides(asked, game, orders, logprob, count, follow)

    def choose(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        rows = np.unique(decisions.game)
        sides = self.sides(games, rows)
        shares, _ = self.solve(games, sides)
        shares, mine = without_unlikely(shares), sides.find(decisions)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CHOICE, 1)[:, 0]
        which = pick_shares(shares[mine], unit_places(seeds))
        return sides.orders[mine, which]

    def reasons(self, games: VectorGame, decisions: Decisions) -> list[Reasons]:
        sides = self.sides(games, np.unique(decisions.game))
        shares, values = self.solve(games, sides)
        shares, reasons = without_unlikely(shares), []
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CHOICE, SHOWN, first=1)
        for d, mine in enumerate(sides.find(decisions)):
            count = sides.count[mine]
            expected = np.full((SHOWN, sides.orders.shape[2]), NONE, np.int32)
            for other in np.flatnonzero(sides.game == sides.game[mine]):
                if other != mine:
                    places = unit_places(seeds[d] * np.uint64(2 * other + 1))
                    which = pick_shares(shares[other], places)
                    theirs = sides.orders[other, which]
                    expected = np.where(theirs != NONE, theirs, expected)
            found = sides.orders[mine, :count], values[mine, :count], np.full(count, np.nan)
            reasons.append(Reasons(*found, shares[mine, :count], expected, {}))
        return reasons

    def solve(self, games: VectorGame, sides: Sides) -> tuple[np.ndarray, np.ndarray]:
        """Return the mixture of every decision's candidates, and what each is worth, (D, K)."""
        asked, orders, count = sides.decisions, sides.orders, sides.count
        possible = np.arange(orders.shape[1]) < count[:, None]
        regret, total, worth = (np.zeros(possible.shape) for _ in range(3))
        seeds = phase_seeds(games, asked.game, asked.power, Salt.CHOICE, self.iterations, first=1)
        place = unit_places(seeds)
        d, k = np.nonzero(possible & (count > 1)[:, None])
        known: dict[bytes, float] = {}  # mixtures narrow, so most leaves come again
        met = []
        for n in range(self.iterations):
            mixture = mixtures_of(regret, possible)
            if self.anchor is not None:  # the schedule of Bakhtin et al. 2023
                spread = np.std(met, 0)[:, None] if met else np.ones((len(mixture), 1))
                exploring = 3 * spread / (10 * np.sqrt(n + 1))
                so_far = worth / max(1, n * (n + 1) / 2)
                mixture = anchored(so_far, sides.logprob, self.anchor, exploring, possible)
            which = pick_shares(mixture, place[:, n])
            profile = np.full((sides.game.max(initial=0) + 1, orders.shape[2]), NONE, np.int32)
            for drawn in range(asked.count):
                own = orders[drawn, which[drawn]]
                profile[sides.game[drawn]] = np.where(own != NONE, own, profile[sides.game[drawn]])
            tried = orders[d, k]
            own = orders[d, which[d]] != NONE  # the power's own units
            tried = np.where(own, tried, profile[sides.game[d]])
            leaves = [b"%d:" % i + row.tobytes() for i, row in zip(d.tolist(), tried)]
            new: dict[bytes, int] = {}
            for i, leaf in enumerate(leaves):
                if leaf not in known:
                    new.setdefault(leaf, i)
            if new:
                some = np.fromiter(new.values(), np.int64, len(new))
                at = d[some]
                found = self.leaves(games).evaluate(
                    games,
                    asked.game[at],
                    asked.power[at],
                    tried[some],
                    sides.follow[sides.game[at]],
                )
                known |= zip(new, found.tolist())
            value = np.zeros(possible.shape)
            value[d, k] = [known[leaf] for leaf in leaves]
            mean = (value * mixture).sum(1, keepdims=True)
            met.append(mean[:, 0])
            regret += (n + 1) * (value - mean) * possible
            total += (n + 1) * mixture
            worth += (n + 1) * value
        weight = self.iterations * (self.iterations + 1) / 2
        return total / total.sum(1, keepdims=True), worth / weight
