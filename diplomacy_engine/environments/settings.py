"""The arguments of the environments: their types, defaults and errors."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from .._suggest import did_you_mean
from ..errors import UserError
from ..records import OnlyIf, changed, convert, refuse_without_effect
from ..rules.game_rules import OPTIONS, GameRules
from ..rules.map import Map
from ..scoring.mixes import RewardMix, make_steady_mix

Count = Annotated[int, Meta(ge=0, le=1000)]
Positive = Annotated[int, Meta(ge=1)]
FormName = Literal["provinces", "sequential", "deepdip", "text"]


def settings_of(
    cls: Any, game: str | Path | Map | GameRules, arguments: dict, env: object, **own: Any
) -> tuple[Any, GameRules]:
    """Return the rules of an environment's games, and its other keyword arguments as settings, with
    those that it sets itself.

    TypeError: there is no such argument; libraries look for Python's words of it. UserError: a
    value does not fit, or the environment does not play by such rules."""
    names = [field.name for field in fields(cls) if field.name not in own]
    names += cls.RULES
    for name in arguments:
        if name not in names:
            raise TypeError(
                f"{type(env).__name__}.__init__() got an unexpected keyword argument {name!r}"
                f"{did_you_mean(name, names)}"
            )
    others = {name: value for name, value in arguments.items() if name not in cls.RULES}
    settings = convert(cls, others | own, "this environment")
    refuse_without_effect(settings, changed(settings))
    options = {name: arguments[name] for name in cls.RULES if arguments.get(name) is not None}
    base = GameRules.of(game)
    rules = replace(GameRules.of(replace(base, **cls.FIXED), **options), **cls.FIXED)
    for name in changed(base).intersection(OPTIONS).difference(cls.RULES):
        if getattr(base, name) != cls.FIXED.get(name):
            raise UserError(f"{name} has no effect in {type(env).__name__}")
    return settings, rules


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """The keyword arguments of every environment; docs/environments.md explains them.

    RULES: those that are about rules of the games; FIXED: fields of GameRules that are always so.
    """

    RULES: ClassVar = ("teams", "team_victory", "max_years", "year_limit", "draw_votes")
    FIXED: ClassVar = {}
    render_mode: Literal["rgb_array", "ansi"] | None = None
    reward: str = "sum_of_squares"
    start: Literal["opening", "random"] = "opening"
    warm_up_phases: Annotated[
        Count, OnlyIf('it needs start="random"', lambda settings: settings.start == "random")
    ] = 10
    strict: bool = False
    flat: bool = False

    def reward_of(self, game_map: Map) -> RewardMix:
        return make_steady_mix(self.reward, game_map)

    @property
    def most_phases(self) -> int:
        return self.warm_up_phases if self.start == "random" else 0


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    RULES: ClassVar = (*EnvSettings.RULES, "draws_after")
    form: FormName = "provinces"
    num_envs: Positive = 1
    threads: Positive | None = None
    opponents: Any = "random"
    power: Any = None
    script: Any = None


@dataclass(frozen=True, kw_only=True)
class PowersSettings(EnvSettings):
    RULES: ClassVar = (*EnvSettings.RULES, "press", "binding", "break_cost")
    FIXED: ClassVar = {"press_rounds": 1}


@dataclass(frozen=True, kw_only=True)
class TalkSettings:
    RULES: ClassVar = ("max_years", "binding", "draw_votes", "draws_after")
    FIXED: ClassVar = {"press": "offers", "press_rounds": 1}
    power: str | None = None
    reward: str = "valid"
    answers: str = "dealer"
    orders_by: str = "dumbbot"
