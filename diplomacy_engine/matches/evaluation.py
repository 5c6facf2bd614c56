"""Evaluations: one player plays every power (or team) equally often, another plays the others."""

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np

from ..errors import UserError
from ..players.protocols import Player
from ..records import shipped_toml
from ..rules.game_rules import GameRules
from ..rules.map import MAP_NAMES
from ..textgame.game import Game
from .match import Match, MatchOptions, MatchReport, MatchSettings, full_rounds, match_settings
from .tables import play_tables


def baseline(settings: MatchSettings, player: str) -> dict:
    """Return `par`, the results of `player` as each power against itself; nothing if they are not
    known."""
    name = settings.game_map.name
    # A file may have that name, too.
    if name not in MAP_NAMES or player != "dumbbot" or settings.rules != GameRules.of(name):
        return {}
    return {"par": {"player": player} | shipped_toml(__package__, "baselines.toml")[name]}


class Evaluation(MatchReport):
    """The report of an evaluation: the first of two players has one side of every game."""

    def result(self, per_game: bool = False) -> dict:
        """Return the figures of the first player as `evaluate --json` writes them.

        `overall` and `by_power` are FIGURES with 95% intervals, `orders` OrderCounter.shares,
        `style` OrderCounter.style, `by_result` ResultCounter.figures, `press` TalkCounter.figures
        where powers talk. With teams `overall` and `by_team` are about teams, `by_power` about
        single powers. `par`, if known, has the other player's results as each power against itself.
        With `per_game` each game has a number `game` (from 1 on), `power` (or `team`) and FIGURES.
        """
        settings, (player, against) = self.settings, self.players
        figures, games = self.figures(), len(self.number)
        result: dict = {
            "map": settings.game_map.name,
            "player": player,
            "against": against,
            "games": games,
            **settings.facts(),
            "greedy": self.greedy[0],
            **self.standing(0, figures),
        }
        if (counter := self.orders) is not None:
            result |= {"orders": counter.shares(), "style": counter.style(games)}
            result |= {"by_result": counter.results.figures()}
        result |= self.talk_and_draws() | baseline(settings, against)
        if per_game:
            result["per_game"] = self.rows(figures[1], 0)
        return result


def evaluate_player(
    match: Match,
    player: Player,
    against: Player,
    num_games: int,
    *,
    part: tuple[int, int] = (0, 1),
    samples: int = 0,
    think: Callable[[Game, str], dict] | None = None,
    progress: Callable[[float], None] | None = None,
    keep_finished: bool = False,
    **settings: Unpack[MatchOptions],
) -> Evaluation:
    """Play a player as every power equally often against another player as all other powers.

    On a map with teams (`Map.with_teams`) it plays the teams in turn, with all powers of a team.

        evaluate_player("small", player, make_bot("dumbbot"), num_games=200, seed=1).result()

    Games can be shared among processes: `MatchReport.join` joins the reports of all parts. A game
    has the same seats and seed, and so the same course, for any number of parts.

    Args:
        match: a map's name or file, a Map, GameRules, or all settings.
        player: plays one power (or team) of each game, and is evaluated.
        against: plays all other powers.
        num_games: rounded up to a multiple of the powers, or of the teams.
        part: (k, n): play part k of n, counted from 0.
        samples: number of games to save, the first ones; each part saves its share.
        think: called with a Game and a power of the player; returns `thoughts` for saved games.
        progress, keep_finished: see `play_tables`.
        settings: fields of MatchSettings and GameRules, such as `seed` or `max_years`.

    Raises:
        UserError: a number is out of range.
    """
    all_settings = match_settings(match, **settings)
    teams, powers = all_settings.game_map.teams, all_settings.game_map.powers
    sides, (k, n) = len(teams.names), part
    if not 0 <= k < n:
        raise UserError(f"there is no part {k} of {n}, which are counted from 0")
    num_games = full_rounds(num_games, sides)
    numbers = np.arange(k * num_games // n, (k + 1) * num_games // n)
    side = numbers % sides  # (games,), the player's
    seats = (teams.of_power != side[:, None]).astype(np.int8)  # (games, P), 0: the player's

    def own_thoughts(think: Callable, game_number: int, game: Game) -> dict:
        own = np.flatnonzero(teams.of_power == game_number % sides)
        return {name: text for p in own for name, text in think(game, powers[p]).items()}

    report = play_tables(
        all_settings,
        (player, against),
        seats,
        first=int(numbers[0]),
        samples=samples,
        think=think and partial(own_thoughts, think),
        counted=0,
        progress=progress,
        keep_finished=keep_finished,
        kind=Evaluation,
    )
    for game_number, saved in report.sampled.items():
        saved["id"] += f"-{teams.names[game_number % sides]}"
    return report
