"""The arguments of the environments: what each means, what is left out, and what is refused."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from .._suggest import did_you_mean
from ..errors import UserError
from ..records import convert
from ..rules.map import Map, load_map
from ..scoring.mixes import RewardMix, make_steady_mix

Count = Annotated[int, Meta(ge=0, le=1000)]
Positive = Annotated[int, Meta(ge=1)]
FormName = Literal["provinces", "sequential", "deepdip", "text"]
# An argument -> the one without which it would have no effect.
_NEEDS = {
    "draws_after": "draw_votes",
    "warm_up_phases": "start",
    "binding": "press",
    "break_cost": "binding",
}


def settings_of(cls: Any, arguments: dict, env: object, **own: Any) -> Any:
    """Return the keyword arguments of an environment as settings, with those that it sets itself.

    TypeError: there is no such argument; libraries look for Python's words of it. UserError: a
    value does not fit."""
    names = [field.name for field in fields(cls) if field.name not in own]
    for name in arguments:
        if name not in names:
            raise TypeError(
                f"{type(env).__name__}.__init__() got an unexpected keyword argument {name!r}"
                f"{did_you_mean(name, names)}"
            )
    settings = convert(cls, arguments | own, "this environment")
    usual = [field.name for field in fields(cls) if getattr(settings, field.name) == field.default]
    for name, other in _NEEDS.items():
        if name in names and name not in usual and other in usual:
            raise UserError(f"{name}: has no effect with {other}={getattr(settings, other)!r}")
    return settings


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """The keyword arguments of every environment; docs/environments.md says what they mean."""

    render_mode: Literal["rgb_array", "ansi"] | None = None
    reward: str = "sum_of_squares"
    teams: str = ""
    team_victory: Count = 0
    max_years: Count | None = None
    year_limit: Literal["draw", "truncate"] = "draw"
    start: Literal["opening", "random"] = "opening"
    warm_up_phases: Count = 10
    strict: bool = False
    draw_votes: bool = False
    flat: bool = False

    def map_of(self, game_map: str | Path | Map) -> Map:
        loaded_map = load_map(game_map)
        if self.teams or self.team_victory:
            loaded_map = loaded_map.with_teams(self.teams, self.team_victory)
        return loaded_map

    def reward_of(self, game_map: Map) -> RewardMix:
        return make_steady_mix(self.reward, game_map)

    @property
    def most_phases(self) -> int:
        return self.warm_up_phases if self.start == "random" else 0

    @property
    def pays_limit(self) -> bool:
        return self.year_limit == "draw"


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    form: FormName = "provinces"
    num_envs: Positive = 1
    threads: Positive | None = None
    opponents: Any = "random"
    power: Any = None
    script: Any = None
    draws_after: Positive | None = None


@dataclass(frozen=True, kw_only=True)
class PowersSettings(EnvSettings):
    press: Literal["mutual", "offers"] | None = None
    binding: bool = True
    break_cost: Annotated[float, Meta(ge=0)] = 0.0


@dataclass(frozen=True, kw_only=True)
class TalkSettings:
    power: str | None = None
    reward: str = "valid"
    answers: str = "dealer"
    orders_by: str = "dumbbot"
    binding: bool = True
    max_years: Count | None = None
    draw_votes: bool = False
    draws_after: Positive | None = None
