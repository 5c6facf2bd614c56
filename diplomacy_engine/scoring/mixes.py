"""Weighted sums of rewards, whose weights may change during training, paid to powers or teams."""

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from .._suggest import did_you_mean, quoted
from ..errors import UserError
from .rewards import COMPARING, REWARDS, Reward, RewardInput, make_reward
from .teams import Level, TeamMap, levels_of, pay_teams, team_name

# A level or a team, before the name of a reward.
_LEVEL = re.compile(r"^(team\d*|power|[^:+]+(\+[^:+]+)+):")


class _Part(NamedTuple):
    """One reward of a mix; its weight goes from `first` to `last` by progress `until`."""

    name: str
    reward: Reward
    first: float
    last: float
    until: float

    def weight(self, progress: float) -> float:
        way = min(max(progress / self.until, 0.0), 1.0)
        return self.first + way * (self.last - self.first)


class RewardMix:
    """A weighted sum of rewards, as `make_reward_mix` reads it."""

    def __init__(self, parts: list[_Part]):
        self._parts = parts

    @property
    def parts(self) -> dict[str, Reward]:
        """Each reward of the mix, without its weight, by name."""
        return {part.name: part.reward for part in self._parts}

    def weights(self, progress: float) -> dict[str, float]:
        """Return the weight of each reward at a training progress of 0..1."""
        return {part.name: part.weight(progress) for part in self._parts}

    def weigh(self, paid: Mapping[str, np.ndarray], progress: float = 0.0) -> np.ndarray:
        """Return the weighted sum, float32, of the parts' rewards, at a progress of 0..1."""
        return np.sum([np.float32(w) * paid[n] for n, w in self.weights(progress).items()], axis=0)

    def __call__(self, game: RewardInput, progress: float = 0.0) -> np.ndarray:
        """Return the rewards of a step, (E, P) float32, at a training progress of 0..1."""
        return self.weigh({name: part(game) for name, part in self.parts.items()}, progress)


def make_reward_mix(text: str, game_map: TeamMap | None = None) -> RewardMix:
    """Return the mix that a text such as `sum_of_squares=1,center_delta=0.5..0@0.8` describes.

    Parts stand between commas. `name` alone has weight 1, `name=w` weight w throughout,
    `name=a..b` a weight that goes evenly from a at the start of training to b at its end, and
    `name=a..b@f` reaches b after the fraction f of training and then stays. On a map with
    teams (None: every power plays alone) a level may stand before a name, as in
    `team:sum_of_squares=1,power:center_delta=0.2`, or a team, as in `ENGLAND+ITALY:center_delta`,
    which compares its members and pays nobody else; without one it is the level of the teams.

    Raises:
        UserError: the text cannot be read, names an unknown reward, level, or one twice, or a
            reward of teams that compares where all powers are in one.
    """
    levels = levels_of(game_map.powers, game_map.teams) if game_map else {}
    parts: list[_Part] = []
    for piece in text.split(","):
        name, equals, weight = (word.strip() for word in piece.partition("="))
        if name in (part.name for part in parts):
            raise UserError(f"reward mix {quoted(text)} names {quoted(name)} twice")
        ramp, at, until = weight.partition("@") if equals else ("1", "", "")
        first, dots, last = ramp.partition("..")
        try:
            numbers = [float(first), float(last if dots else first), float(until if at else 1)]
        except ValueError:
            numbers = [math.nan]
        finite = all(map(math.isfinite, numbers))
        if not (name and finite) or not 0 < numbers[2] <= 1 or (at and not dots):
            raise UserError(
                f"reward mix {quoted(text)}: {quoted(piece)} is not a name, or name=weight with a "
                "weight such as 1, 0.5..0 or 0.5..0@0.8"
            )
        parts.append(_Part(name, _of_level(name, levels), *numbers))
    return RewardMix(parts)


def make_steady_mix(text: str, game_map: TeamMap | None = None) -> RewardMix:
    """`make_reward_mix` where progress is unknown: UserError for weights that change."""
    mix = make_reward_mix(text, game_map)
    if mix.weights(0.0) != mix.weights(1.0):
        raise UserError(
            f"reward mix {quoted(text)}: weights that change during training are the trainer's; an "
            "environment does not know how far the training is"
        )
    return mix


def code_of(text: str) -> set[str]:
    """The modules of all `module:function` in a mix."""
    names = (_LEVEL.sub("", piece.partition("=")[0].strip()) for piece in text.split(","))
    return {name.partition(":")[0] for name in names if ":" in name}


def _of_level(name: str, levels: dict[str, Level]) -> Reward:
    by_name: dict[str, Level | None] = {**levels} or {"power": None}
    level, rest = next(iter(by_name)), name
    before, _, after = name.partition(":")  # a level and a name, or a module and a function of it
    if _LEVEL.match(name) and (levels or after in REWARDS):
        level, rest = before, after
        if "+" in level:
            level = team_name(level.upper().split("+"))
    elif after in REWARDS and did_you_mean(before, by_name):
        level = before
    if level not in by_name:
        raise UserError(
            f"reward {quoted(name)}: there is no level {quoted(level, 60)} of teams; "
            f"there are: {', '.join(by_name)}"
        )
    reward, place = make_reward(rest), by_name[level]
    if rest in COMPARING and place is not None and not place.member.any():
        raise UserError(
            f"reward {quoted(name)} compares teams, and all powers are in one: it would pay the "
            "same whatever happens. Take one of the team's own centers, such as score or "
            "center_delta, or one of the powers, such as power:weakest"
        )
    return reward if place is None or place.is_flat else partial(pay_teams, reward, level=place)
