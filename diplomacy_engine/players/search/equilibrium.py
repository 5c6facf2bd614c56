"""Searches in which all powers think: regret matching for any number, exact matrices for two."""

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
from .matrix_games import anchored, mixtures_of, solve_near, solve_zero_sum
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


def without_unlikely(shares: np.ndarray) -> np.ndarray:
    """Return mixtures (D, K) without what is less likely than UNLIKELY."""
    shares = np.where(shares < UNLIKELY, 0.0, shares)
    return shares / shares.sum(1, keepdims=True)


class Equilibrium(SearchPlayer):
    """Draws from the average mixture of regret matching among candidates of all powers.

    Gray et al. 2021, *Human-Level Performance in No-Press Diplomacy via Equilibrium Search*,
    section 3.2: in each iteration one profile is drawn from all mixtures, and every candidate of
    every power is valued against the others' part of it.

    Args:
        own, value, name: see `SearchPlayer`; the others' candidates are drawn from it, too.
        candidates: of each power.
        iterations: of regret matching.
        draws: joint orders drawn to find those candidates.
        anchor: mixtures are those of piKL, near the policy that draws: what a nat of distance from
            it costs. None: plain regret matching.
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
        """Return the candidates of every power that moves in `rows` (G,)."""
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
        """Return the orders of movement decisions, (D, V) int32 by province."""
        rows = np.unique(decisions.game)
        sides = self.sides(games, rows)
        shares, _ = self.solve(games, sides)
        shares, mine = without_unlikely(shares), sides.find(decisions)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CHOICE, 1)[:, 0]
        which = pick_shares(shares[mine], unit_places(seeds))
        return sides.orders[mine, which]

    def reasons(self, games: VectorGame, decisions: Decisions) -> list[Reasons]:
        """Return the reasons for each of `decisions`, of a movement phase. Changes nothing."""
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
        known, met = _Known(), []
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
            new, names = known.look(d, tried)
            if len(new):
                at = d[new]
                found = self.leaves(games).evaluate(
                    games, asked.game[at], asked.power[at], tried[new], sides.follow[sides.game[at]]
                )
                known.add(names, new, found)
            value = np.zeros(possible.shape)
            value[d, k] = known.values(names)
            mean = (value * mixture).sum(1, keepdims=True)
            met.append(mean[:, 0])
            regret += (n + 1) * (value - mean) * possible
            total += (n + 1) * mixture
            worth += (n + 1) * value
        weight = self.iterations * (self.iterations + 1) / 2
        return total / total.sum(1, keepdims=True), worth / weight


class _Known:
    """The values of leaves that were tried before: mixtures narrow, so most come again."""

    def __init__(self):
        self._value: dict[bytes, float] = {}

    def look(self, d: np.ndarray, orders: np.ndarray) -> tuple[np.ndarray, list[bytes]]:
        """Return which of the leaves are new, each once, and the names of all."""
        names = [b"%d:" % i + row.tobytes() for i, row in zip(d.tolist(), orders)]
        new: dict[bytes, int] = {}
        for place, name in enumerate(names):
            if name not in self._value and name not in new:
                new[name] = place
        return np.fromiter(new.values(), np.int64, len(new)), names

    def add(self, names: list[bytes], new: np.ndarray, values: np.ndarray) -> None:
        """Keep the values of new leaves."""
        for place, value in zip(new.tolist(), values.tolist()):
            self._value[names[place]] = value

    def values(self, names: list[bytes]) -> np.ndarray:
        """Return the values of leaves that are known."""
        return np.array([self._value[name] for name in names])


class Matrix(Equilibrium):
    """Tries all pairs of two powers' candidates, and plays the exact solution of that matrix game.

    What one power wins, the other loses: a pair is worth half the difference of the two values.

    Args:
        own, value, name, candidates, draws: see `Equilibrium`.
        anchor: the game is solved so that both stay near the policy (piKL); None: exactly.
    """

    def __init__(
        self,
        own: Draws,
        value: LeafValue,
        name: str,
        candidates: int = 30,
        draws: int = 120,
        anchor: float | None = None,
    ):
        super().__init__(own, value, name, candidates, 0, draws, anchor)

    def solve(self, games: VectorGame, sides: Sides) -> tuple[np.ndarray, np.ndarray]:
        """Return the mixture of every decision's candidates, and what each is worth, (D, K)."""
        asked, orders = sides.decisions, sides.orders
        shares, values = np.zeros(orders.shape[:2]), np.zeros(orders.shape[:2])
        begin = np.searchsorted(sides.game, np.arange(len(sides.follow)))
        end = np.searchsorted(sides.game, np.arange(len(sides.follow)), "right")
        tried, rows, powers, seeds = [], [], [], []
        for first, last, seed in zip(begin, end, sides.follow):
            pairs = orders[first, : sides.count[first], None]
            if last - first == 2:
                others = orders[first + 1, None, : sides.count[first + 1]]
                pairs = np.where(pairs != NONE, pairs, others)
            pairs = pairs.reshape(-1, orders.shape[2])
            for power in range(2):
                tried.append(pairs)
                rows.append(np.full(len(pairs), asked.game[first], np.int64))
                powers.append(np.full(len(pairs), power, np.int8))
                seeds.append(np.full(len(pairs), seed, np.uint64))
        whole = map(np.concatenate, (rows, powers, tried, seeds))
        found = np.split(
            self.leaves(games).evaluate(games, *whole), np.cumsum([len(part) for part in rows])[:-1]
        )
        for number, (first, last) in enumerate(zip(begin, end)):
            worth = (found[2 * number] - found[2 * number + 1]) / 2
            if last - first == 2:
                payoff = worth.reshape(sides.count[first], sides.count[first + 1])
                if self.anchor is None:
                    x, y, _ = solve_zero_sum(payoff)
                else:
                    near = [sides.logprob[d, : sides.count[d]] for d in (first, first + 1)]
                    x, y = solve_near(payoff, *near, self.anchor)
                shares[first, : len(x)], shares[first + 1, : len(y)] = x, y
                values[first, : len(x)], values[first + 1, : len(y)] = payoff @ y, -(x @ payoff)
            else:  # only one power moves
                worth = worth if asked.power[first] == 0 else -worth
                shares[first, worth.argmax()], values[first, : len(worth)] = 1.0, worth
        return shares, values
