"""Sampled best response: the candidate that does best against draws of what the others may do.

Anthony et al. 2020, *Learning to Play No-Press Diplomacy with Best Response Policy Iteration*,
algorithm 1: candidates of the power are drawn from a policy, profiles of the others from what they
are taken for, and each candidate is worth its mean value over the profiles after one phase.
"""

from typing import NamedTuple

import numpy as np

from ...constants import FALL_MOVEMENT, NONE, SPRING_MOVEMENT
from ...games.decisions import Decisions, order_numbers
from ...games.vector_game import VectorGame
from ..bots.dumbbot import Dumbbot
from ..policy import PolicyPlayer
from .draws import Draws, PlayerDraws, PolicyDraws
from .leaves import Critic, Leaves
from .noise import CANDIDATES, FOLLOWING, PLAIN, PROFILES, order_noise, phase_seeds

HASH = np.random.default_rng(0x0D1B).integers(1, 2**62, 4096) * 2 + 1


class Settings(NamedTuple):
    """How much is tried."""

    draws: int = 48  # own joint orders drawn
    candidates: int = 12  # of these tried, at most
    profiles: int = 14  # of the others' orders that each candidate meets
    halvings: tuple[int, ...] = (4, 8)  # profiles after which the worse half of them is dropped
    sure: float = 1.0  # standard errors by which the best must be ahead of the policy's own draw
    temperature: float = 1.0  # of the candidates' draws


FAST = Settings()
FULL = Settings(draws=96, candidates=24, profiles=128, halvings=(16, 32, 64))


class Search(NamedTuple):
    """What a search of D decisions found; K candidates, R profiles."""

    candidates: (
        np.ndarray
    )  # (D, K, V) int32, order numbers by province; the first is the policy's own
    count: np.ndarray  # (D,) int64, of them; the rest are none
    values: np.ndarray  # (D, K, R) float64, NaN where it was not tried
    profiles: np.ndarray  # (D, R, V) int32, orders of the others
    choice: np.ndarray  # (D,) int64, which candidate is played


def distinct(drawn: np.ndarray, logprob: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which draws are tried, (D, K) int64, and how many of each row that are, (D,).

    The first draw, the likeliest ones, and for a quarter of the room those that were drawn next,
    so that unlikely ones are among them. No two are the same.

    Args:
        drawn: (D, n, V) int32.
        logprob: (D, n).
        most: K.
    """
    hashed = (drawn.astype(np.int64) * HASH[: drawn.shape[2]]).sum(2)
    kept, count = np.zeros((len(drawn), most), np.int64), np.empty(len(drawn), np.int64)
    for d, row in enumerate(hashed):
        _, first = np.unique(row, return_index=True)
        first.sort()
        ranked = first[1:][np.argsort(-logprob[d, first[1:]], kind="stable")]
        likely = ranked[: most - 1 - most // 4]
        rest = first[1:][~np.isin(first[1:], likely)]
        chosen = np.concatenate([first[:1], likely, rest])[:most]
        kept[d, : len(chosen)], count[d] = chosen, len(chosen)
    return kept, count


class BestResponse:
    """A policy that tries its orders against what the others may do before it gives them."""

    def __init__(
        self,
        policy: PolicyPlayer,
        name: str,
        settings: Settings = FAST,
        assumed: Draws | None = None,
    ):
        self.policy, self.name, self.settings = policy, name, settings
        self.own = PolicyDraws(policy, settings.temperature)
        self.assumed = assumed or PolicyDraws(policy)
        self.critic = Critic(policy)
        self._leaves: Leaves | None = None

    def _room(self, games: VectorGame) -> Leaves:
        made = self._leaves
        if (
            made is None
            or made.spare.max_years != games.max_years
            or made.spare.vocabulary.hash != games.vocabulary.hash
        ):
            made = self._leaves = Leaves(games, self.critic, Dumbbot())
        return made

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32."""
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        moving = np.isin(games.state.phase[decisions.game], (SPRING_MOVEMENT, FALL_MOVEMENT))
        for searched in (False, True):
            rows = np.flatnonzero(moving == searched)
            if not len(rows):
                continue
            asked = decisions.take(rows)
            if searched:
                found = self.search(games, asked)
                given = found.candidates[np.arange(asked.count), found.choice]
                row = np.repeat(np.arange(asked.count), np.diff(asked.slot_start))
                given = given[row, asked.slot_province]
            else:
                given = self._plain(games, asked)
            slots = np.repeat(moving == searched, np.diff(decisions.slot_start))
            numbers[slots] = given
        return numbers

    def _plain(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        seeds = phase_seeds(games, decisions.game, decisions.power, PLAIN, 1)[:, 0]
        obs = self.policy.observe(games, decisions.game, decisions.power)
        noise = order_noise(decisions, seeds)
        chosen, _, _ = self.policy.agent.act(obs, decisions, noise=noise, greedy=self.policy.greedy)
        return order_numbers(decisions, chosen)

    def search(self, games: VectorGame, decisions: Decisions) -> Search:
        """Try orders for movement decisions."""
        settings, leaves = self.settings, self._room(games)
        seeds = phase_seeds(games, decisions.game, decisions.power, CANDIDATES, settings.draws)
        drawn, logprob = self.own.draw(games, decisions, seeds)
        likeliest = self.own.likeliest(games, decisions)
        at = 0 if self.policy.greedy else 1
        drawn = np.insert(drawn, at, likeliest[0][:, 0], 1)
        logprob = np.insert(logprob, at, likeliest[1][:, 0], 1)
        kept, count = distinct(drawn, logprob, settings.candidates)
        candidates = np.take_along_axis(drawn, kept[:, :, None], 1)
        profiles = self.profiles(games, decisions)
        follow = phase_seeds(games, decisions.game, decisions.power, FOLLOWING, settings.profiles)
        tries, width = decisions.count, settings.candidates
        values = np.full((tries, width, settings.profiles), np.nan)
        alive = (np.arange(width) < count[:, None]) & (count > 1)[:, None]
        edges = [0, *(h for h in settings.halvings if h < settings.profiles), settings.profiles]
        for first, last in zip(edges[:-1], edges[1:]):
            if first:
                mean = np.where(
                    alive,
                    np.nanmean(np.where(alive[:, :, None], values[:, :, :first], 0), 2),
                    -np.inf,
                )
                rank = np.argsort(np.argsort(-mean, 1, kind="stable"), 1, kind="stable")
                half = np.maximum(-(-alive.sum(1) // 2), 2)
                keep = rank < half[:, None]
                keep[:, 0] = True
                alive &= keep
            d, k = np.nonzero(alive)
            d, k, r = (
                np.repeat(d, last - first),
                np.repeat(k, last - first),
                np.tile(np.arange(first, last), len(d)),
            )
            mine = candidates[d, k]
            orders = np.where(mine != NONE, mine, profiles[d, r])
            values[d, k, r] = leaves.evaluate(
                games, decisions.game[d], decisions.power[d], orders, follow[d, r]
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

    def profiles(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return draws of what the others order, (D, R, V) int32."""
        every = games.decisions(np.unique(decisions.game))
        start = (
            np.searchsorted(every.game, decisions.game),
            np.searchsorted(every.game, decisions.game, "right"),
        )
        owner = np.repeat(np.arange(decisions.count), start[1] - start[0])
        which = np.concatenate([np.arange(a, b) for a, b in zip(*start)])
        other = every.power[which] != decisions.power[owner]
        owner, which = owner[other], which[other]
        asked = every.take(which)
        profiles = np.full(
            (decisions.count, self.settings.profiles, len(games.board.terrain)), NONE, np.int32
        )
        if asked.count:
            salt = PROFILES + 1000 * (1 + decisions.power[owner].astype(np.int64))
            seeds = np.empty((asked.count, self.settings.profiles), np.uint64)
            for value in np.unique(salt):
                mine = salt == value
                seeds[mine] = phase_seeds(
                    games, asked.game[mine], asked.power[mine], int(value), self.settings.profiles
                )
            drawn, _ = self.assumed.draw(games, asked, seeds)
            for i, d in enumerate(owner):
                profiles[d] = np.where(drawn[i] != NONE, drawn[i], profiles[d])
        return profiles
