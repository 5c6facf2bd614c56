"""Who can sit at the tables of self-play: learners, frozen copies of them, and scripted bots.

The pool knows no network. It is handed finished copies, which never learn, and asks of them only
that `state_dict()` returns their weights.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..players.loading import load_player
from ..scoring.mixes import RewardMix
from .rollout_buffer import RolloutBuffer

LEARNER = 0  # number of the learner, of the first if there are several


@dataclass
class Member:
    """Somebody who can sit at a table. One with a buffer learns, from each of its seats."""

    number: int
    player: Any  # the trainer's policy, or a players.Player
    frozen_at: int | None = None  # learner decisions when it was frozen; None: it is no copy
    buffer: RolloutBuffer | None = None  # what it learns from
    reward: RewardMix | None = None  # what it is paid by while it learns
    games: float = 0.0  # games of a learner against it
    score: float = 0.0  # its sum of the learner's scores: 1 win, 0.5 draw, 0 loss


class PoolSettings(Protocol):
    """The settings that a pool reads, explained in the trainer's Args."""

    pool_size: int
    pool_interval: int
    pool_sampling: str
    latest_prob: float
    recency_decay: float
    pool_bots: tuple[str, ...]
    pool_bot_prob: float
    pool_schedule: str
    staged_interval: int
    staged_threshold: float
    staged_games: int
    exploit: str | None


class OpponentPool:
    """The opponents: the last `pool_size` frozen copies of the learner, and perhaps bots.

    `members` are the copies that new games draw from, oldest first. A copy that has left the pool
    lives on in `all` while a game still uses it. `all` finds everybody by number: `learners` have
    the numbers from LEARNER on, then come `bots`, then the copies as they are frozen.

    Args:
        player: the first frozen copy.
        learners: numbered from LEARNER on.
        gather: returns a value of each process; those that train together have the same pool.
    """

    def __init__(
        self,
        args: PoolSettings,
        player: Any,
        learners: Sequence[Member],
        gather: Callable[[Any], list] = lambda value: [value],
    ):
        self.args, self.learners, self.gather = args, list(learners), gather
        bots = enumerate(args.pool_bots, LEARNER + len(self.learners))
        self.bots = [Member(number, load_player(name)) for number, name in bots]
        self.next_number = LEARNER + len(self.learners) + len(self.bots)
        self.members: list[Member] = []
        self.all = {member.number: member for member in [*self.learners, *self.bots]}
        self.recent: deque[float] = deque(maxlen=args.staged_games)
        self.freeze(player, 0)

    def freeze(self, player: Any, global_step: int) -> None:
        """Add `player`, a copy of the learner as it is now; the oldest copy leaves a full pool."""
        member = Member(self.next_number, player, frozen_at=global_step)
        self.next_number += 1
        size = 1 if self.args.pool_schedule == "staged" else self.args.pool_size
        self.members = [*self.members, member][-size:]
        self.all[member.number] = member
        self.recent.clear()

    def is_due(self, global_step: int) -> bool:
        """Tell whether the learner is to be frozen now."""
        if self.args.exploit:  # the policy given is the only opponent
            return False
        if self.args.pool_schedule == "staged":
            passed = len(self.recent) == self.recent.maxlen
            passed = passed and np.mean(self.recent) >= self.args.staged_threshold
            interval = self.args.staged_interval
        else:
            passed, interval = False, self.args.pool_interval
        return passed or global_step - self.members[-1].frozen_at >= interval

    def players(self, kind: type) -> dict[int, Any]:
        """Return the players of one class by their members' numbers."""
        found = {number: member.player for number, member in self.all.items()}
        return {number: player for number, player in found.items() if isinstance(player, kind)}

    def weights(self) -> np.ndarray:
        """Return the probabilities (members,) with which a seat gets each frozen copy.

        latest: the newest copy has `latest_prob`, the older ones share the rest equally.
        recency: each copy weighs `recency_decay` times the next newer one.
        pfsp: weight (1 - the learner's score against it) squared (Vinyals et al. 2019, f_hard).
        """
        count = len(self.members)
        if self.args.pool_sampling == "latest" and count > 1:
            latest = self.args.latest_prob
            return np.append(np.full(count - 1, (1 - latest) / (count - 1)), latest)
        weights = np.ones(count)
        if self.args.pool_sampling == "recency":
            weights = self.args.recency_decay ** np.arange(count)[::-1]
        elif self.args.pool_sampling == "pfsp":
            scores = [(member.score + 1.0) / (member.games + 2.0) for member in self.members]
            weights = (1 - np.array(scores)) ** 2 + 1e-3
        return weights / weights.sum()

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return member numbers of the given shape."""
        numbers = np.array([member.number for member in self.members])
        drawn = rng.choice(numbers, shape, p=self.weights())
        if self.bots:
            bots = rng.choice([bot.number for bot in self.bots], shape)
            drawn = np.where(rng.random(shape) < self.args.pool_bot_prob, bots, drawn)
        return drawn

    def record(self, seats: np.ndarray, scores: np.ndarray) -> None:
        """Count finished games: `seats` (games, P) numbers, `scores` (games,) of the learners."""
        for number in set(np.unique(seats).tolist()) - {m.number for m in self.learners}:
            games = (seats == number).any(1)
            self.all[number].games += float(games.sum())
            self.all[number].score += float(scores[games].sum())
        if self.args.pool_schedule == "staged":
            newest = (seats == self.members[-1].number).any(1)
            self.recent.extend(scores[newest].tolist())

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint."""
        copies = [
            {
                "number": member.number,
                "frozen_at": member.frozen_at,
                "games": member.games,
                "score": member.score,
                "model": None if member.frozen_at is None else member.player.state_dict(),
            }
            for member in self.all.values()
            if member not in self.learners
        ]
        return {
            "all": copies,
            "members": [member.number for member in self.members],
            "next_number": self.next_number,
            "recent": list(self.recent),
        }

    def load_state_dict(self, saved: dict, make_player: Callable[[Any], Any]) -> None:
        """Go on from a `state_dict()`; `make_player` makes a frozen copy from its weights.

        Raises:
            KeyError, TypeError, ValueError: it is none, or its bots are not those of this pool.
        """
        bots = {bot.number: bot for bot in self.bots}
        self.all = {member.number: member for member in self.learners}
        own, copies = len(self.learners) + len(bots), set()
        for entry in saved["all"]:
            number, games, score = entry["number"], entry["games"], entry["score"]
            if not _counts(number, games, score) or score > games or number in self.all:
                raise ValueError("a member of the pool has numbers that cannot be")
            if entry["model"] is None:
                bots[number].games, bots[number].score = games, score
                self.all[number] = bots[number]
                continue
            frozen_at = entry["frozen_at"]
            if not _counts(number - own, frozen_at) or type(frozen_at) is not int:
                raise ValueError("a copy in the pool has numbers that cannot be")
            player = make_player(entry["model"])
            self.all[number] = Member(number, player, frozen_at, games=games, score=score)
            copies.add(number)
        if not bots.keys() <= self.all.keys():
            raise ValueError("a bot of the pool is missing")
        numbers, next_number, recent = saved["members"], saved["next_number"], saved["recent"]
        if not numbers or len(set(numbers)) < len(numbers) or not set(numbers) <= copies:
            raise ValueError("'members' are not copies in the pool")
        if type(next_number) is not int or not max(self.all) < next_number < 2**62:
            raise ValueError("'next_number' is taken")
        if not _counts(0, *recent) or max(recent, default=0) > 1:
            raise ValueError("'recent' has scores that cannot be")
        self.members = [self.all[number] for number in numbers]
        self.next_number = next_number
        self.recent.clear()
        self.recent.extend(recent)

    def forget_unused(self, seats: np.ndarray) -> None:
        """Drop copies that are neither in the pool nor in a game; `seats` holds all in use."""
        here = [*self.learners, *self.bots, *self.members]
        used = set(np.unique(seats).tolist()) | {member.number for member in here}
        self.all = {number: member for number, member in self.all.items() if number in used}


def _counts(whole: object, *others: object) -> bool:
    """Tell whether the first is a whole number, and all are numbers from 0 to 2^62."""
    numbers = all(type(number) in (int, float) and 0 <= number < 2**62 for number in others)
    return type(whole) is int and 0 <= whole < 2**62 and numbers
