"""Evaluations: one player as every power (or team) equally often against copies of another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..players.protocols import Player
from ..rules.map import Map, load_map
from ..scoring.outcomes import FIGURES
from ..textgame.game import Game
from .figures import by_side, named_teams, ranges_of, summarize
from .match import MatchReport, MatchSettings, match_settings
from .tables import play_tables

# Map -> games, and of each power the shares of solos and wins of `dumbbot` in that seat against
# copies of itself, since no map is even: `evaluate --map MAP --player dumbbot --against dumbbot
# --seed 1 --games N`, to the map's own year limit.
_PAR = {
    "small": (40_000, {"ENGLAND": (0.0588, 0.0588), "RUSSIA": (0.9410, 0.9410)}),
    "three": (
        30_000,
        {"ENGLAND": (0.0164, 0.0212), "ITALY": (0.0001, 0.0001), "RUSSIA": (0.8481, 0.8508)},
    ),
    "standard": (
        7_000,
        {
            "AUSTRIA": (0.006, 0.022),
            "ENGLAND": (0.047, 0.464),
            "FRANCE": (0.062, 0.128),
            "GERMANY": (0.001, 0.005),
            "ITALY": (0.040, 0.091),
            "RUSSIA": (0.013, 0.056),
            "TURKEY": (0.035, 0.169),
        },
    ),
}


def known_results(game_map: Map, player: str, max_years: int, year_limit: str) -> dict:
    if game_map.name not in _PAR or player != "dumbbot" or year_limit != "draw":
        return {}
    bundled = load_map(game_map.name)  # a file may have that name, too
    if game_map.teams.text or bundled.facts != game_map.facts or max_years != bundled.max_years:
        return {}
    games, seats = _PAR[game_map.name]
    shares = {
        figure: {power: both[i] for power, both in seats.items()}
        for i, figure in enumerate(("solo", "win"))
    }
    return {"par": {"player": player, "games": games} | shares}


class Evaluation(MatchReport):
    """The report of an evaluation: of two players, whose first has one side of every game."""

    def result(self, per_game: bool = False) -> dict:
        """Return the figures of the first player as `evaluate --json` writes them.

        `overall` and `by_power` are FIGURES with 95% intervals, `orders` OrderCounter.shares,
        `style` OrderCounter.style, `by_result` ResultCounter.figures, `press` TalkCounter.figures
        where powers talk. With teams `overall` and `by_team` are the team's, `by_power` each
        power's by itself. `par`, if known: what the other player wins in each seat against copies
        of itself. With `per_game`, too: for each game `game` (from 1 on), `power` (or `team`), and
        figures.
        """
        settings, (player, against) = self.settings, self.players
        game_map, years, teams = settings.game_map, settings.max_years, settings.game_map.teams
        every, of_sides = self.figures()
        sides = len(teams.names)  # as many as powers without teams
        seat = self.number % sides
        values = {name: of_sides[name][np.arange(len(seat)), seat] for name in FIGURES}
        ranges = ranges_of(teams.names, game_map, years, teams.victory_centers)
        by_power = by_side(
            game_map.powers, every, self.seats == 0, ranges_of(game_map.powers, game_map, years)
        )
        result = {
            "map": game_map.name,
            "player": player,
            "against": against,
            "games": len(seat),
            "seed": settings.seed,
            "max_years": years,
            "year_limit": settings.year_limit,
            "greedy": self.greedy[0],
            "overall": summarize(values, seat, ranges),
            "by_power": by_power,
            "orders": self.orders.shares(),
            "style": self.orders.style(len(seat)),
            "by_result": self.orders.results.figures(),
        } | self.draws()
        if teams.text:
            mine = np.arange(sides) == seat[:, None]
            by_team = by_side(teams.names, of_sides, mine, ranges)
            result |= named_teams(game_map) | {"by_team": by_team}
        if self.talk is not None:
            result["press"] = settings.press._asdict() | self.talk.figures()
        elif settings.draws_after is None:
            result |= known_results(game_map, against, years, settings.year_limit)
        if per_game:
            rows = zip(self.number.tolist(), *(values[figure].tolist() for figure in FIGURES))
            columns = ("game", "team" if teams.text else "power", *FIGURES)
            result["per_game"] = [
                dict(zip(columns, (number + 1, teams.names[number % sides], *row)))
                for number, *row in rows
            ]
        return result


def evaluate_player(
    match: MatchSettings | Map | str | Path,
    player: Player,
    against: Player,
    num_games: int,
    *,
    part: tuple[int, int] = (0, 1),
    samples: int = 0,
    think: Callable[[Game, str], dict] | None = None,
    progress: Callable[[float], None] | None = None,
    keep_finished: bool = False,
    **settings: Any,
) -> Evaluation:
    """Play a player as every power equally often against copies of another.

    On a map with teams (`Map.with_teams`) it plays each team in turn, all powers of it.

        evaluate_player("small", player, make_bot("dumbbot"), num_games=200, seed=1).result()

    Games can be shared among processes: `MatchReport.join` of the reports of all parts is the
    report of the whole, whatever the number of parts. Each game has the same seats and seed; so
    games of bots are the same, while a policy draws from a generator of its own, which should have
    another seed in each part.

    Args:
        match: a map's name or file, a Map, or all settings.
        player: the one whose results are tallied.
        against: plays every other power.
        num_games: rounded up to a multiple of the powers, or of the teams.
        part: (k, n): the games of part k of n, from 0 on.
        samples: so many of the whole match's first games are saved, as far as this part has them.
        think: of a Game and the player's power, returns the `thoughts` that the samples keep.
        progress, keep_finished: see `play_tables`.
        settings: fields of MatchSettings, such as `seed` or `max_years`.

    UserError if a number is out of range.
    """
    rules = match_settings(match, **settings)
    teams, powers = rules.game_map.teams, rules.game_map.powers
    sides, (k, n) = len(teams.names), part
    num_games = -(-num_games // sides) * sides
    number = np.arange(k * num_games // n, (k + 1) * num_games // n)
    seat = number % sides  # of the player; with one opponent nothing is to be drawn
    seats = (teams.of_power != seat[:, None]).astype(np.int8)  # 0: the player's

    def own_thoughts(game_number: int, game: Game) -> dict:
        own = teams.of_power == game_number % sides
        return {k: v for p, mine in zip(powers, own) if mine for k, v in think(game, p).items()}

    report = play_tables(
        rules,
        (player, against),
        seats,
        first=int(number[0]),
        samples=samples,
        think=think and own_thoughts,
        counted=0,
        progress=progress,
        keep_finished=keep_finished,
        kind=Evaluation,
    )
    for game_number, saved in report.sampled.items():
        saved["id"] += f"-{teams.names[game_number % sides]}"
    return report
