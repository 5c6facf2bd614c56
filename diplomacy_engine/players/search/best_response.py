"""Sampled best response: a search one phase ahead, for `fast:POLICY` and `lookahead`.

Anthony et al. 2020, *Learning to Play No-Press Diplomacy with Best Response Policy Iteration*,
algorithm 1: candidates are sampled from a policy, and profiles of the others' orders from models of
the other players; a candidate's value is its mean over the profiles a phase later.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.draws import phase_seeds
from ...games.vector_game import VectorGame
from ...rules.state import Salt
from ..bots.dumbbot import Dumbbot
from ..protocols import Reasons
from .assumptions import Assumptions
from .draws import Draws, PlayerDraws, VariedDraws
from .leaves import CenterClaims, LeafValue
from .player import SearchPlayer

HASH = np.random.default_rng(0x0D1B).integers(1, 2**62, 4096) * 2 + 1


class SearchSettings(NamedTuple):
    draws: int = 48  # own joint orders sampled
    candidates: int = 12  # of these tried, at most
    profiles: int = 14  # of the others' orders that each candidate meets
    halving: bool = True  # whether the worse half of them is dropped now and then, see `rounds`
    ahead: int = 0  # movement phases that are played on before a board is valued
    sure: float = 1.0  # standard errors by which the best must be ahead of the policy's own draw

    def rounds(self) -> list[int]:
        """Return 0, after how many profiles the worse half of the candidates is dropped, and all.

        First after an eighth of them (at least 4), then each time that twice as many were met.
        """
        after = max(4, self.profiles // 8)
        edges = [0]
        while self.halving and after < self.profiles:
            edges.append(after)
            after *= 2
        return [*edges, self.profiles]


FAST = SearchSettings(ahead=1)
ONE_STEP = SearchSettings(draws=48, candidates=48, profiles=8, halving=False, sure=0.0)


class Search(NamedTuple):
    """What a search of D decisions found; K candidates, R profiles."""

    candidates: np.ndarray  # (D, K, V) int32, order numbers by province; first the player's own
    count: np.ndarray  # type: ignore[assignment]  # (D,) int64, of them; the rest are none
    values: np.ndarray  # (D, K, R) float64, NaN where it was not tried
    profiles: np.ndarray  # (D, R, V) int32, orders of the others
    choice: np.ndarray  # (D,) int64, which candidate is played


def distinct(drawn: np.ndarray, logprob: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which draws (D, n) are tried, (D, most) int64, and how many of each row that are.

    The first draw, the likeliest ones, and for a quarter of the room those that were drawn next, so
    that unlikely ones are among them. No two are the same.
    """
    hashed = (drawn.astype(np.int64) * HASH[: drawn.shape[2]]).sum(2)
    indices, count = np.zeros((len(drawn), most), np.int64), np.empty(len(drawn), np.int64)
    for d, row in enumerate(hashed):
        _, first = np.unique(row, return_index=True)
        first.sort()
        ranked = first[1:][np.argsort(-logprob[d, first[1:]], kind="stable")]
        likely = ranked[: most - 1 - most // 4]
        rest = first[1:][~np.isin(first[1:], likely)]
        chosen = np.concatenate([first[:1], likely, rest])[:most]
        indices[d, : len(chosen)], count[d] = chosen, len(chosen)
    return indices, count


def better_half(mean: np.ndarray, alive: np.ndarray, always: list[int]) -> np.ndarray:
    """Return which of those alive (D, K) go on, by their mean (D, K): the better half, two at
    least, and those in the columns `always`."""
    worst_last = np.argsort(-np.where(alive, mean, -np.inf), 1, kind="stable")
    rank = np.argsort(worst_last, 1, kind="stable")
    going = rank < np.maximum(-(-alive.sum(1) // 2), 2)[:, None]
    going[:, always] = True
    return going & alive


def with_likeliest(
    own: Draws, games: VectorGame, decisions: Decisions, drawn: np.ndarray, logprob: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws with the likeliest orders second, or first if the player is greedy."""
    likeliest, its_logprob = own.likeliest(games, decisions)
    at = 0 if own.greedy else 1
    return (
        np.concatenate([drawn[:, :at], likeliest, drawn[:, at:]], 1),
        np.concatenate([logprob[:, :at], its_logprob, logprob[:, at:]], 1),
    )


class BestResponse(SearchPlayer):
    """Tries candidates against profiles. `note`, if set, gets every `Search` of `act`."""

    note: Callable[[Search], None] | None = None

    def __init__(
        self,
        own: Draws,
        value: LeafValue,
        name: str,
        assumed: Assumptions | None = None,
        settings: SearchSettings = FAST,
    ):
        super().__init__(own, value, name)
        self.assumed = assumed or Assumptions({"self": own})
        self.settings = settings

    @property
    def reads_history(self) -> bool:
        return self.assumed.learns or super().reads_history

    def choose(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        result = self.search(games, decisions)
        if self.note is not None:
            self.note(result)
        return result.candidates[np.arange(decisions.count), result.choice]

    def reasons(self, games: VectorGame, decisions: Decisions) -> list[Reasons]:
        result, reasons = self.search(games, decisions), []
        shares = self.assumed.probabilities(games, decisions.game)
        for d, count in enumerate(result.count):
            tried = ~np.isnan(result.values[d, :count])
            met = tried.sum(1)
            total = np.where(tried, result.values[d, :count], 0.0)
            mean = total.sum(1) / np.where(met, met, np.nan)
            spread = np.where(tried, (total - mean[:, None]) ** 2, 0.0).sum(1)
            error = np.sqrt(spread / np.where(met > 1, (met - 1) * met, np.nan))
            share = (np.arange(count) == result.choice[d]).astype(float)
            beliefs = dict(zip(self.assumed.hypotheses, shares[d].T))
            candidates, expected = result.candidates[d, :count], result.profiles[d]
            reasons.append(Reasons(candidates, mean, error, share, expected, beliefs))
        return reasons

    def search(self, games: VectorGame, decisions: Decisions) -> Search:
        settings, leaves = self.settings, self.leaves(games)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CANDIDATES, settings.draws)
        drawn, logprob = self.own.draw(games, decisions, seeds)
        drawn, logprob = with_likeliest(self.own, games, decisions, drawn, logprob)
        indices, count = distinct(drawn, logprob, settings.candidates)
        candidates = np.take_along_axis(drawn, indices[:, :, None], 1)
        profiles = self.profiles(games, decisions)
        follow = phase_seeds(
            games, decisions.game, decisions.power, Salt.FOLLOWING, settings.profiles
        )
        tries, width = decisions.count, settings.candidates
        values = np.full((tries, width, settings.profiles), np.nan)
        alive = (np.arange(width) < count[:, None]) & (count > 1)[:, None]
        for first, last in pairwise(settings.rounds()):
            if first:
                alive = better_half(values[:, :, :first].mean(2), alive, [0])
            d, k = np.nonzero(alive)
            r = np.tile(np.arange(first, last), len(d))
            d, k = np.repeat(d, last - first), np.repeat(k, last - first)
            mine, seats = candidates[d, k], (decisions.game[d], decisions.power[d])
            orders = np.where(mine != NONE, mine, profiles[d, r])
            values[d, k, r] = leaves.evaluate(
                games, *seats, orders, follow[d, r], settings.ahead, partial(self._play_on, games)
            )
        choice = np.zeros(tries, np.int64)
        for d in np.flatnonzero(count > 1):
            k = np.flatnonzero(alive[d])
            best = k[values[d, k].mean(1).argmax()]
            ahead = values[d, best] - values[d, 0]
            error = ahead.std(ddof=1) / np.sqrt(len(ahead)) if len(ahead) > 1 else 0.0
            if ahead.mean() > settings.sure * error:
                choice[d] = best
        return Search(candidates, count, values, profiles, choice)

    def _play_on(
        self,
        games: VectorGame,
        copies: VectorGame,
        decisions: Decisions,
        rows: np.ndarray,
        powers: np.ndarray,
    ) -> np.ndarray:
        draws = [self.own, *self.assumed.hypotheses.values()]
        policy_of = 1 + self.assumed.pick(copies, decisions, games, rows)
        policy_of[decisions.power == powers] = 0
        first: dict[int, int] = {}  # draws of one player are made in one call
        same = np.array([first.setdefault(id(part.player), n) for n, part in enumerate(draws)])
        policy_of = same[policy_of]
        numbers = np.empty(len(decisions.slot_province), np.int32)
        slots = policy_of[decisions.slot_decision]
        for number in np.unique(policy_of):
            numbers[slots == number] = draws[number].plain(
                copies, decisions.take(policy_of == number)
            )
        return numbers

    def profiles(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        every = games.decisions(np.unique(decisions.game))
        firsts = np.searchsorted(every.game, decisions.game)
        lasts = np.searchsorted(every.game, decisions.game, "right")
        owner = np.repeat(np.arange(decisions.count), lasts - firsts)
        which = np.concatenate([np.arange(a, b) for a, b in zip(firsts, lasts)])
        other = every.power[which] != decisions.power[owner]
        owner, which = owner[other], which[other]
        others = every.take(which)
        profiles = np.full(
            (decisions.count, self.settings.profiles, len(games.board.terrain)), NONE, np.int32
        )
        if others.count:
            salt = Salt.PROFILES + decisions.power[owner].astype(np.int64)
            seeds = np.empty((others.count, self.settings.profiles), np.uint64)
            for value in np.unique(salt):
                mine = salt == value
                seeds[mine] = phase_seeds(
                    games, others.game[mine], others.power[mine], int(value), self.settings.profiles
                )
            drawn = self.assumed.draw(games, others, seeds)
            for i, d in enumerate(owner):
                profiles[d] = np.where(drawn[i] != NONE, drawn[i], profiles[d])
        return profiles


class Lookahead(BestResponse):
    """Looks one step ahead: of 48 joint orders it gives the best against eight of the others'.

    DumbBot proposes them, half with another order for one unit, and `CenterClaims` values the
    boards. It is one-step look-ahead as PyTAG's OSLA, but since all move at once the others are
    modeled as DumbBots.
    """

    name = "lookahead"

    def __init__(self):
        expected = Assumptions({"dumbbot": PlayerDraws(Dumbbot())})
        super().__init__(
            VariedDraws(PlayerDraws(Dumbbot())), CenterClaims(), self.name, expected, ONE_STEP
        )
