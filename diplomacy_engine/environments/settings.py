"""The arguments of the environments: their types, defaults and errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypedDict, TypeVar

from msgspec import Meta

from .._suggest import did_you_mean
from ..errors import UserError
from ..players.protocols import Player
from ..records import OnlyIf, changed, convert, refuse_without_effect
from ..rules.game_rules import OPTIONS, EndOptions, GameRules, RuleOptions, TeamOptions
from ..rules.map import Map
from ..scoring.mixes import RewardMix, make_steady_mix

Count = Annotated[int, Meta(ge=0, le=1000)]
Positive = Annotated[int, Meta(ge=1)]
FormName = Literal["provinces", "sequential", "deepdip", "text"]
Opponents = str | Path | Player | Sequence[str | Path | Player]

# Each environment has its keyword arguments twice: as a TypedDict, for type checkers, and, but for
# rules of the game, as a dataclass with ranges and defaults. That the two agree is tested by
# tests/test_types.py, test_keywords_are_those_of_their_records. A dataclass has the type `object`
# for what is neither converted nor checked here.


class EnvOptions(EndOptions, TeamOptions, total=False):
    """The keyword arguments of every environment; docs/environments.md explains them."""

    reward: str
    start: Literal["opening", "random"]
    warm_up_phases: int
    strict: bool
    flat: bool


class AgentOptions(EnvOptions, total=False):
    draws_after: int | None
    opponents: Opponents
    power: str | None
    script: str | Path | None


class PowersOptions(EnvOptions, total=False):
    render_mode: Literal["rgb_array", "ansi"] | None
    press: Literal["mutual", "offers"] | None
    binding: bool
    break_cost: float


class TalkOptions(TypedDict, total=False):
    max_years: int | None
    binding: bool
    draw_votes: bool
    draws_after: int | None
    power: str | None
    reward: str
    answers: str
    orders_by: str


@dataclass(frozen=True, kw_only=True)
class _EnvSettings:
    """The OPTIONS of an environment that are not about rules of its games, and what it sets itself;
    FIXED: fields of GameRules that are always so."""

    OPTIONS: ClassVar[type]
    FIXED: ClassVar[RuleOptions] = {}


@dataclass(frozen=True, kw_only=True)
class EnvSettings(_EnvSettings):
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
    def most_warm_up_phases(self) -> int:
        return self.warm_up_phases if self.start == "random" else 0


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    OPTIONS: ClassVar = AgentOptions
    form: FormName = "provinces"
    num_envs: Positive = 1
    threads: Positive | None = None
    opponents: object = "random"  # these as in OPTIONS
    power: str | None = None
    script: object = None


@dataclass(frozen=True, kw_only=True)
class PowersSettings(EnvSettings):
    OPTIONS: ClassVar = PowersOptions
    FIXED: ClassVar[RuleOptions] = {"press_rounds": 1}


@dataclass(frozen=True, kw_only=True)
class TalkSettings(_EnvSettings):
    OPTIONS: ClassVar = TalkOptions
    FIXED: ClassVar[RuleOptions] = {"press": "offers", "press_rounds": 1}
    power: str | None = None
    reward: str = "valid"
    answers: str = "dealer"
    orders_by: str = "dumbbot"


_Settings = TypeVar("_Settings", bound=_EnvSettings)


def env_settings(
    cls: type[_Settings],
    game: str | Path | Map | GameRules,
    arguments: Mapping[str, object],
    env: object,
    **own: object,
) -> tuple[_Settings, GameRules]:
    """Return the rules of an environment's games, and its other keyword arguments as settings, with
    those that it sets itself.

    TypeError: there is no such argument; libraries look for Python's words of it. UserError: a
    value does not fit, or the environment does not play by such rules."""
    _check_names(arguments, cls.OPTIONS, type(env).__name__)
    others = {field.name: arguments[field.name] for field in fields(cls) if field.name in arguments}
    settings = convert(cls, others | own, "this environment")
    refuse_without_effect(settings, changed(settings))
    options: dict = {n: v for n, v in arguments.items() if n not in others and v is not None}
    return settings, _env_rules(cls, GameRules.of(game), options)


def _check_names(arguments: Iterable[str], options: type, env_name: str) -> None:
    for name in arguments:
        if name not in options.__annotations__:
            like = did_you_mean(name, options.__annotations__)
            unexpected = f"got an unexpected keyword argument {name!r}{like}"
            raise TypeError(f"{env_name}.__init__() {unexpected}")


def _env_rules(cls: type[_EnvSettings], base: GameRules, options: Mapping) -> GameRules:
    # FIXED comes first, since some options have an effect only with it (`binding` with press), and
    # last, since an option may change it (`press` without rounds sets its own).
    rules = replace(GameRules.of(replace(base, **cls.FIXED), **options), **cls.FIXED)
    for name in changed(base).intersection(OPTIONS) - cls.OPTIONS.__annotations__.keys():
        if getattr(base, name) != cls.FIXED.get(name):
            raise UserError(f"{name} has no effect in this environment")
    return rules
