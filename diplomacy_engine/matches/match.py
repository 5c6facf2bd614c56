"""A match: the settings of all its games, and their outcomes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self, Unpack

import numpy as np

from ..constants import AGREED, YEAR_LIMIT
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.asking import reads_history
from ..players.names import numbered
from ..players.protocols import Player
from ..press.press import TalkCounter
from ..rules.game_rules import GameOptions, GameRules
from ..rules.map import Map
from ..scoring.outcomes import FIGURES, Outcomes, figure_ranges, figure_values
from .figures import by_side, share_of, summarize
from .order_counts import OrderCounter

BATCH = 1024  # games at once; bounds the memory a network needs for their decisions


@dataclass(frozen=True)
class MatchSettings:
    """Settings of a match; UserError if one is out of range."""

    rules: GameRules
    """of all its games, which need a year limit; a map or its name stands for its usual rules"""
    seed: int = 1
    """of the games and, where they are drawn, of seats; the same seed gives the same result"""
    threads: int | None = None
    """of the games, which change no result; None: as many as processors may be used"""
    batch: int = BATCH
    """games at once, which change no result"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", GameRules.of(self.rules))
        if self.rules.max_years is None:
            raise UserError("a match needs a year limit")

    @property
    def game_map(self) -> Map:
        return self.rules.map

    def facts(self) -> dict[str, str | int | None]:
        """Return the settings that results contain."""
        teams = self.game_map.teams
        facts: dict[str, str | int | None] = {"map": self.game_map.name, "seed": self.seed}
        facts |= {"max_years": self.rules.max_years, "year_limit": self.rules.year_limit}
        if teams.text:
            facts |= {"teams": teams.text, "team_victory": teams.victory_centers}
        return facts

    def new_games(self, count: int, players: Sequence[Player]) -> VectorGame:
        """Return so many games of players, without auto-reset."""
        how = {"auto_reset": False, "keep_history": reads_history(*players)}
        return VectorGame(self.rules, count, 1, threads=self.threads, **how)

    def game_seeds(self, first: int, count: int) -> np.ndarray:
        """Return the seeds, uint64, of games from number `first` (counted from 0) on; a seed
        depends on the game's number alone."""
        return np.random.SeedSequence(self.seed).generate_state(first + count, np.uint64)[first:]


def full_rounds(num_games: int, sides: int) -> int:
    """Return a number of games, rounded up so that all sides are played equally often."""
    return -(-num_games // sides) * sides


Match = MatchSettings | GameRules | Map | str | Path


class MatchOptions(GameOptions, total=False):
    """Fields of MatchSettings and GameRules as keyword arguments."""

    seed: int
    threads: int | None
    batch: int


def match_settings(match: Match, **changes: Unpack[MatchOptions]) -> MatchSettings:
    """Return settings with other fields of MatchSettings or GameRules, in which `max_years` of None
    is the map's."""
    options: dict = {**changes}
    own = {f.name: options.pop(f.name) for f in fields(MatchSettings) if f.name in options}
    if options.get("max_years", 0) is None:
        del options["max_years"]
    if isinstance(match, MatchSettings):
        return replace(match, rules=GameRules.of(match.rules, **options), **own)
    return MatchSettings(GameRules.of(match, **options), **own)


def identity(player: Player) -> Hashable:
    """Return the identity of a player: its specification, if it was loaded by one."""
    return getattr(player, "spec", player.name)


def names_apart(players: Sequence[Player]) -> tuple[str, ...]:
    """Return the players' names, others for others: the second of a name is `NAME (2)`."""
    names = numbered({identity(player): player.name for player in players})
    return tuple(names[identity(player)] for player in players)


@dataclass(frozen=True)
class MatchReport:
    """The outcomes of a match's games or of a part of them; G games, P powers."""

    settings: MatchSettings
    players: tuple[str, ...]  # names, for print
    identities: tuple[Hashable, ...]  # of the players, see `identity`
    greedy: tuple[bool, ...]  # whether each player gives its likeliest orders
    number: np.ndarray  # (G,) int64, of each game in the whole match, from 0 on, ascending
    seats: np.ndarray  # (G, P) integers, which of `players` played each power
    outcomes: Outcomes
    sampled: dict[int, dict]  # number -> saved game, of some of the first
    orders: OrderCounter | None = None  # of one player; None: nobody counted
    talk: TalkCounter | None = None  # None: nobody could talk
    # What ended the match early; then only games that had ended are here, but `orders` and `talk`
    # have what others began with.
    cause: BaseException | None = None

    def __repr__(self) -> str:
        names = " and ".join(map(repr, self.players))
        where = self.settings.game_map.name
        return f"{type(self).__name__}({names} on {where}, {len(self.number)} games)"

    @property
    def saved_games(self) -> list[dict]:
        """The saved games, by number; `players` of each has the name of each power's player."""
        return [self.sampled[number] for number in sorted(self.sampled)]

    @property
    def saved_by_seed(self) -> dict[int, dict]:
        """The same games by the seeds that they drew from."""
        seeds = self.settings.game_seeds(0, 1 + max(self.sampled, default=-1)).tolist()
        return {seeds[number]: saved for number, saved in self.sampled.items()}

    @classmethod
    def join(cls, reports: "Sequence[Self]") -> Self:
        """Return the report of a match that was played in parts; UserError if they are of several
        matches, or have a game twice."""
        first = reports[0]
        number = np.concatenate([report.number for report in reports])
        matches = {(replace(r.settings, threads=None, batch=BATCH), r.identities) for r in reports}
        if len(matches) > 1 or len(np.unique(number)) < len(number):
            raise UserError("these reports are not the parts of one match, each once")
        order = np.argsort(number)
        parts = zip(*(report.outcomes for report in reports))
        return replace(
            first,
            number=number[order],
            seats=np.concatenate([report.seats for report in reports])[order],
            outcomes=Outcomes(*(np.concatenate(part)[order] for part in parts)),
            sampled={n: game for report in reports for n, game in report.sampled.items()},
            orders=first.orders and sum((r.orders for r in reports[1:] if r.orders), first.orders),
            talk=first.talk and sum((r.talk for r in reports[1:] if r.talk), first.talk),
            cause=next((report.cause for report in reports if report.cause is not None), None),
        )

    def figures(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return FIGURES of every power in every game, (G, P) float64 each, and the same of every
        team; without teams these are the powers' too."""
        game_map, year_limit = self.settings.game_map, self.settings.rules.year_limit
        victory, teams = game_map.board.victory_centers, game_map.teams
        powers = figure_values(self.outcomes, victory, year_limit)
        if not teams.text:
            return powers, powers
        by_team = self.outcomes.of_teams(teams.of_power)
        return powers, figure_values(by_team, teams.victory_centers or victory, year_limit)

    def side_seats(self) -> np.ndarray:
        """Return which of `players` played each team, or each power without teams, (G, sides)."""
        of_power = self.settings.game_map.teams.of_power
        return self.seats[:, np.unique(of_power, return_index=True)[1]]

    def standing(self, player: int, figures: tuple[dict, dict]) -> dict[str, dict]:
        """Return a player's FIGURES with 95% intervals, `overall`, `by_power` and, with teams,
        `by_team`; `figures` are those of `figures()`."""
        game_map, years = self.settings.game_map, self.settings.rules.max_years
        board, teams, seats = game_map.board, game_map.teams, self.side_seats()
        centers, victory = len(board.center_province), board.victory_centers
        of_powers, of_sides = figures
        power_ranges = figure_ranges(len(game_map.powers), centers, victory, years)
        victory = teams.victory_centers or victory
        ranges = figure_ranges(len(teams.names), centers, victory, years)
        game, side = np.nonzero(seats == player)
        values = {name: of_sides[name][game, side] for name in FIGURES}
        standing = {
            "overall": summarize(values, side, ranges, game),
            "by_power": by_side(game_map.powers, of_powers, self.seats == player, power_ranges),
        }
        if teams.text:
            standing["by_team"] = by_side(teams.names, of_sides, seats == player, ranges)
        return standing

    def rows(self, values: dict[str, np.ndarray], player: int | None = None) -> list[dict]:
        """Return a row for each seat in each game, or those of a player: the number `game` from 1
        on, `power` or `team`, `player` where all are told, and its FIGURES of `values`."""
        teams, seats = self.settings.game_map.teams, self.side_seats()
        kind = "team" if teams.text else "power"
        return [
            {"game": int(self.number[game]) + 1, kind: teams.names[side]}
            | ({"player": self.players[seats[game, side]]} if player is None else {})
            | {figure: float(values[figure][game, side]) for figure in FIGURES}
            for game, side in np.argwhere(seats >= 0 if player is None else seats == player)
        ]

    def talk_and_draws(self) -> dict[str, dict]:
        """Return the keys `press` and `draws` of a result, nothing without talk or votes: the
        shares of games that all powers alive `agreed` to draw, and drawn at the `year_limit`, with
        95% intervals."""
        after, count = self.settings.rules.draws_after, len(self.number)
        named = zip(("protocol", "rounds", "binding", "open_press"), self.settings.rules.talk)
        press = self.talk and {"press": dict(named) | self.talk.figures()}
        if after is None:
            return press or {}
        drawn = {
            name: share_of(int((self.outcomes.ended == end).sum()), count)
            for name, end in (("agreed", AGREED), ("year_limit", YEAR_LIMIT))
        }
        return (press or {}) | {"draws": {"after": after} | drawn}
