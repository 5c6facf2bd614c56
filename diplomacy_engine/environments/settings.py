"""The arguments of the environments: their types, defaults and errors.

They are written twice. XOptions, a TypedDict for type checkers, has all of them. XSettings, a
dataclass, has ranges and defaults of those that are no rules of the game; GameRules has the rules.
`env_settings` makes both of what somebody passes. So
`gymnasium.make("Diplomacy-small-v0", reward="score", max_years=5)` leads to

    AgentSettings(reward="score")
    GameRules(map=small, max_years=5)

A new argument that is a rule goes into GameRules and XOptions, another into XOptions and XSettings;
tests/test_types.py checks that the two agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypedDict, TypeVar

from msgspec import Meta

from .._suggest import did_you_mean
from ..errors import UserError
from ..players.protocols import Player
from ..records import OnlyIf, changed, convert, refuse_without_effect
from ..rules.game_rules import OPTIONS as RULE_NAMES
from ..rules.game_rules import EndOptions, GameRules, RuleOptions, TeamOptions
from ..rules.map import Map
from ..scoring.mixes import RewardMix, make_steady_mix

Count = Annotated[int, Meta(ge=0, le=1000)]
Positive = Annotated[int, Meta(ge=1)]
FormName = Literal["provinces", "sequential", "deepdip", "text"]
Opponents = str | Path | Player | Sequence[str | Path | Player]


class EnvOptions(EndOptions, TeamOptions, total=False):
    """The keyword arguments of every environment; docs/environments.md explains them."""

    reward: str
    start: Literal["opening", "random"]
    warm_up_phases: int
    strict: bool
    flat: bool


class AgentOptions(EnvOptions, total=False):
    """The keyword arguments of the environments of Gymnasium, in which one power learns."""

    draws_after: int | None
    opponents: Opponents
    power: str | None
    script: str | Path | None


class PowersOptions(EnvOptions, total=False):
    """The keyword arguments of the environments of PettingZoo, in which every power learns."""

    render_mode: Literal["rgb_array", "ansi"] | None
    press: Literal["mutual", "offers"] | None
    binding: bool
    break_cost: float


class TalkOptions(TypedDict, total=False):
    """The keyword arguments of the environment in which one power negotiates, and another player
    orders."""

    max_years: int | None
    binding: bool
    draw_votes: bool
    draws_after: int | None
    power: str | None
    reward: str
    answers: str
    orders_by: str


@dataclass(frozen=True, kw_only=True)
class _AnySettings:
    """What an environment is made with, rules of the game apart: keyword arguments, and settings
    that the environment makes itself.

    A setting of type `object` is neither converted nor checked here, but where its players are
    loaded.
    """

    ARGUMENTS: ClassVar[type]  # the keyword arguments, rules of the game among them
    FIXED: ClassVar[RuleOptions] = {}  # rules that no argument changes


@dataclass(frozen=True, kw_only=True)
class EnvSettings(_AnySettings):
    """The settings of every environment whose agents order units."""

    render_mode: Literal["rgb_array", "ansi"] | None = None
    reward: str = "sum_of_squares"
    start: Literal["opening", "random"] = "opening"
    warm_up_phases: Annotated[
        Count, OnlyIf('it needs start="random"', lambda settings: settings.start == "random")
    ] = 10
    strict: bool = False
    flat: bool = False

    def reward_of(self, game_map: Map) -> RewardMix:
        """Return the rewards that `reward` names; UserError: there is no such reward."""
        return make_steady_mix(self.reward, game_map)

    @property
    def most_warm_up_phases(self) -> int:
        """Phases of random play before a game begins, at most."""
        return self.warm_up_phases if self.start == "random" else 0


@dataclass(frozen=True, kw_only=True)
class AgentSettings(EnvSettings):
    """The settings of the environments of Gymnasium, which make `form`, `num_envs` and `threads`
    themselves."""

    ARGUMENTS: ClassVar = AgentOptions
    form: FormName = "provinces"
    num_envs: Positive = 1
    threads: Positive | None = None
    opponents: object = "random"  # of the type Opponents
    power: str | None = None
    script: object = None


@dataclass(frozen=True, kw_only=True)
class PowersSettings(EnvSettings):
    """The settings of the environments of PettingZoo."""

    ARGUMENTS: ClassVar = PowersOptions
    FIXED: ClassVar[RuleOptions] = {"press_rounds": 1}


@dataclass(frozen=True, kw_only=True)
class TalkSettings(_AnySettings):
    """The settings of the environment in which one power negotiates."""

    ARGUMENTS: ClassVar = TalkOptions
    FIXED: ClassVar[RuleOptions] = {"press": "offers", "press_rounds": 1}
    power: str | None = None
    reward: str = "valid"
    answers: str = "dealer"
    orders_by: str = "dumbbot"


_Settings = TypeVar("_Settings", bound=_AnySettings)


def env_settings(
    cls: type[_Settings],
    game: str | Path | Map | GameRules,
    arguments: Mapping[str, object],
    env: object,
    **made_by_environment: object,
) -> tuple[_Settings, GameRules]:
    """Return the settings of an environment and the rules of its games.

    Args:
        cls: the dataclass of its settings.
        game: the map, or rules that `arguments` change.
        arguments: its keyword arguments, settings and rules; a rule of None stays as it is.
        env: the environment, for messages.
        made_by_environment: settings that are no arguments, such as `form`.

    Raises:
        TypeError: there is no such argument; libraries look for Python's words of it.
        UserError: a value does not fit, or the environment does not play by such rules.
    """
    names = cls.ARGUMENTS.__annotations__
    for name in arguments:
        if name not in names:
            wrong = f"got an unexpected keyword argument {name!r}{did_you_mean(name, names)}"
            raise TypeError(f"{type(env).__name__}.__init__() {wrong}")
    setting_names = {field.name for field in fields(cls)}
    values = {name: value for name, value in arguments.items() if name in setting_names}
    settings = convert(cls, values | made_by_environment, "this environment")
    refuse_without_effect(settings, changed(settings))
    rules: dict = {n: v for n, v in arguments.items() if n not in setting_names and v is not None}
    return settings, _with_rules(cls, GameRules.of(game), rules)


def _with_rules(cls: type[_AnySettings], game: GameRules, rules: dict) -> GameRules:
    """Return the rules of a game with those of the arguments. UserError: they contradict each
    other, or the game has one that is no argument of the environment."""
    # FIXED comes first, since some rules have an effect only with it (`binding` with press), and
    # last, since an argument may change it (`press` without rounds sets its own).
    result = replace(game, **cls.FIXED)
    result = GameRules.of(result, **rules)
    result = replace(result, **cls.FIXED)
    names = changed(game).intersection(RULE_NAMES)  # rules that the game brings with it
    names |= {"teams"} if game.map.teams.text else set()
    for name in names - cls.ARGUMENTS.__annotations__.keys():  # which may change here
        if getattr(game, name, True) != cls.FIXED.get(name):
            raise UserError(f"{name} has no effect in this environment")
    return result
