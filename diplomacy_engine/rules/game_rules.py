"""`GameRules`: all that defines a game beside its position, in one record.

Games, matches, saved games, the play page, environments and connections hold it whole;
`dataclasses.replace` makes variants.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal, TypedDict, Unpack, get_args

from msgspec import Meta, Struct

from .._suggest import quoted
from ..errors import UserError
from ..records import OnlyIf, changed, convert, refuse_without_effect
from .map import Map, load_map

Protocol = Literal["mutual", "offers", "propose-choose"]
PROTOCOLS = get_args(Protocol)
MOST_ROUNDS = 4
MOST_YEARS = 1000  # the largest year limit, as in map files and commands
_NEEDS_PRESS = OnlyIf("it needs press", lambda rules: rules.press)


@dataclass(frozen=True, kw_only=True)
class _Options:
    max_years: Annotated[int, Meta(ge=0, le=MOST_YEARS)] | None = None
    """game years after which a game ends; None or 0: no limit, and None stands here"""
    year_limit: Annotated[
        Literal["draw", "truncate"], OnlyIf("it needs max_years", lambda rules: rules.max_years)
    ] = "draw"
    """how a game that reaches the limit counts: as a draw, or as cut off, which pays no reward"""
    draw_votes: bool = False
    """whether powers may vote for a draw"""
    draws_after: Annotated[int, Meta(ge=0, le=30_000)] | None = None
    """first year in which players vote for a draw (games/votes.py), which implies `draw_votes`;
    None: they do not vote"""
    press: Protocol | None = None
    """how powers make deals before they order, as in docs/press.md; None: they do not"""
    press_rounds: Annotated[Annotated[int, Meta(ge=1)] | None, _NEEDS_PRESS] = None
    """number of offers that a power may send in a phase, with `propose-choose` to each other power;
    None: 4 with `offers`, else 1"""
    binding: Annotated[bool, _NEEDS_PRESS] = True
    """whether deals exclude the orders that would break them"""
    open_press: Annotated[bool, _NEEDS_PRESS] = False
    """whether all powers see which powers are at peace with each other"""
    break_cost: Annotated[
        float, Meta(ge=0), OnlyIf("no deal can be broken", lambda rules: not rules.binding)
    ] = 0.0
    """penalty of a power for each partner with which it breaks deals in a phase"""


OPTIONS = tuple(field.name for field in fields(_Options))  # all fields but the map


class TeamOptions(TypedDict, total=False):
    teams: str
    team_victory: int


class EndOptions(TypedDict, total=False):
    """The fields of GameRules that say how a game may end."""

    max_years: int | None
    year_limit: Literal["draw", "truncate"]
    draw_votes: bool


class RuleOptions(EndOptions, total=False):
    """The fields of GameRules but its map, as keyword arguments; GameRules has their ranges."""

    draws_after: int | None
    press: Protocol | None
    press_rounds: int | None
    binding: bool
    open_press: bool
    break_cost: float


class GameOptions(RuleOptions, TeamOptions, total=False):
    """The keyword arguments of `GameRules.of`."""


class _SavedMap(Struct):
    map: str
    map_facts: dict | None = None  # of a map that is not included
    teams: str | None = None
    team_victory: int = 0


@dataclass(frozen=True)
class GameRules(_Options):
    """The rules of a game; UserError if a field is out of range."""

    map: Map
    """the map, with its teams, or its name or file"""

    def __post_init__(self) -> None:
        options = convert(_Options, {name: getattr(self, name) for name in OPTIONS}, "these rules")
        values = vars(options) | {"map": load_map(self.map), "max_years": self.max_years or None}
        values["draw_votes"] |= self.draws_after is not None
        most, rounds = MOST_ROUNDS, self.press_rounds
        if self.press is None:
            rounds = None
            values |= {"binding": True, "open_press": False, "break_cost": 0.0}
        elif rounds is None:
            rounds = most if self.press == "offers" else 1
        most = 1 if self.press == "mutual" else most  # wishes are not answered
        if rounds is not None and rounds > most:
            raise UserError(f"{self.press} press has 1 to {most} rounds, not {quoted(rounds)}")
        for name, value in (values | {"press_rounds": rounds}).items():
            object.__setattr__(self, name, value)

    def __deepcopy__(self, _memo: dict) -> "GameRules":
        return self

    @classmethod
    def of(
        cls,
        game: "str | Path | Map | GameRules",
        teams: str = "",
        team_victory: int = 0,
        **options: Unpack[RuleOptions],
    ) -> "GameRules":
        """Return the rules of these settings; without `max_years` the limit is that of `game`, a
        map or other rules. UserError: one has no effect."""
        if not isinstance(game, GameRules):
            game = cls(load_map(game))
            game = replace(game, max_years=game.map.max_years)
        if teams or team_victory:
            game = replace(game, map=game.map.with_teams(teams, team_victory))
        rules = replace(game, **options) if options else game
        usual = {field.name: field.default for field in fields(cls)}
        changes = {name for name, value in options.items() if value != usual[name]}
        refuse_without_effect(rules, changes | (changed(rules) - {"map"}))
        return rules

    @property
    def talk(self) -> tuple:
        """How powers make deals: press, rounds, whether these are binding, and open."""
        return self.press, self.press_rounds, self.binding, self.open_press

    def flags(self, without: Collection[str] = ()) -> list[str]:
        """Return the flags of a command for rules that differ from the map's usual ones, except
        rules without a flag and the fields `without`."""
        teams, usual = self.map.teams, GameRules(self.map, max_years=self.map.max_years)
        words = ["--teams", teams.text] if teams.text else []
        words += ["--team-victory", str(teams.victory_centers)] if teams.victory_centers else []
        for name in OPTIONS:
            value, flag = getattr(self, name), f"--{name.replace('_', '-')}"
            if name in ("draw_votes", "break_cost", *without) or value is None:
                continue
            if value != getattr(usual, name):
                words += [flag] if value is True else [flag, "no" if value is False else str(value)]
        return words

    def to_json(self) -> dict[str, object]:
        """Return the rules for a saved game: those that differ from their defaults, and the map,
        with all its facts if it is not an included one."""
        game_map, teams = self.map, self.map.teams
        notes: dict[str, object] = {"map": game_map.name}
        if not game_map.is_included:
            notes["map_facts"] = game_map.facts
        if teams.text:
            notes |= {"teams": teams.text, "team_victory": teams.victory_centers}
        values = ((field, getattr(self, field.name)) for field in fields(_Options))
        return notes | {field.name: value for field, value in values if value != field.default}

    @classmethod
    def from_json(
        cls, notes: Mapping, game_map: "str | Path | Map | GameRules | None", source: str
    ) -> "GameRules":
        """Return the rules of a saved game; `game_map`, another map or rules, replaces its own."""
        if isinstance(game_map, GameRules):
            return game_map
        saved = convert(_SavedMap, notes, source)
        if game_map is None and saved.map_facts is not None:
            played = Map(saved.map_facts, "of the saved game")
        else:
            played = load_map(game_map or saved.map)
        if not played.teams.text and saved.teams is not None:
            played = played.with_teams(saved.teams, saved.team_victory)
        options = convert(_Options, {k: notes[k] for k in OPTIONS if k in notes}, source)
        return cls(played, **vars(options))
