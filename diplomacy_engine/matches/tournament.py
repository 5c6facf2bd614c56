"""Tournaments: mixed tables of several players, their ratings, and a cross table.

With more players than powers some sit out; with fewer some have several seats. Where a share is of
games, each game counts once, however many seats the players have in it.
"""

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np

from ..errors import UserError
from ..players.protocols import Player
from .figures import Z, share_of
from .match import Match, MatchOptions, MatchReport, match_settings, names_apart
from .ratings import DEVIATION, MEAN, RESAMPLES, bootstrap_errors, fit_ratings
from .tables import play_tables


def balanced_seats(
    players: int, powers: int, num_games: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the players (E, P) at the powers of so many games.

    Every `players` games in a row each has each power once. A block of `players * powers` games
    seats tables drawn at random, each in every rotation of the powers, so that players who meet
    also meet with exchanged powers.
    """
    seats = np.empty((num_games, powers), np.int64)
    first, chair = np.arange(players)[:, None], np.arange(powers)
    for start in range(0, num_games, players):
        turn = start // players % powers
        if turn == 0:
            order, chairs = rng.permutation(players), rng.permutation(powers)
        block = np.empty((players, powers), np.int64)
        block[:, chairs[(chair + turn) % powers]] = order[(first + chair) % players]
        seats[start : start + players] = block[: num_games - start]
    return seats


def cross_table(seats: np.ndarray, ranks: np.ndarray, solo: np.ndarray, players: int) -> dict:
    """Return each player's results in games with each other one, (players, players) each:
    `games`, `above` (the sum over games of the share of pairs of seats in which it ranks above, a
    tie being half) and `solos`. `seats`, `ranks` (1 = best) and `solo` are (E, P)."""
    games, above, solos = np.zeros((3, players, players))
    has = seats[:, :, None] == np.arange(players)  # (E, P, players)
    sits = has.any(1)
    won = (has * solo[:, :, None]).sum(1)
    ahead = (ranks[:, :, None] < ranks[:, None, :]) + 0.5 * (ranks[:, :, None] == ranks[:, None, :])
    for one in range(players):
        for other in range(players):
            shared = sits[:, one] & sits[:, other]
            if one == other or not shared.any():
                continue
            pairs = has[shared, :, one][:, :, None] & has[shared, :, other][:, None, :]
            games[one, other] = shared.sum()
            above[one, other] = ((ahead[shared] * pairs).sum((1, 2)) / pairs.sum((1, 2))).sum()
            solos[one, other] = won[shared, one].sum()
    return {"games": games, "above": above, "solos": solos}


class Tournament(MatchReport):
    def result(self, per_game: bool = False) -> dict:
        """Return the result as `tournament --json` writes it, best rating first, without those who
        did not play. Each has `rating` (value, the model's standard error `sigma`, `bootstrap` over
        games, and a 95% interval by the larger: where one always wins all resamples are alike),
        `seats`, and as in `evaluate` `overall`, `by_power`, `by_team`. Of each pair `cross_table`
        has the shared games, how often the first ends `above` the second (a tie is half) and has a
        solo (`solos`), with Wilson intervals; null where they never meet. `per_game`, too: for each
        seat of each game `game` (from 1 on), `power` (or `team`), `player` and figures."""
        settings, names, count = self.settings, self.players, len(self.players)
        figures, seats = self.figures(), self.side_seats()
        values = figures[1]
        rng = np.random.default_rng([settings.seed, count])
        newcomers = np.full(count, MEAN), np.full(count, DEVIATION)
        mean, deviation = fit_ratings(*newcomers, seats, values["rank"], rng)
        error = bootstrap_errors(*newcomers, seats, values["rank"], rng)
        met = cross_table(seats, values["rank"], values["solo"], count)

        def compare(one: int, other: int) -> dict | None:
            games = int(met["games"][one, other])
            if not games:
                return None
            sums = {name: float(met[name][one, other]) for name in ("above", "solos")}
            return {"games": games} | {name: share_of(n, games) for name, n in sums.items()}

        def results(number: int) -> dict:
            value, half = float(mean[number]), float(Z * max(error[number], deviation[number]))
            rating = {"value": value, "low": value - half, "high": value + half}
            spread = {"sigma": float(deviation[number]), "bootstrap": float(error[number])}
            sat = int((seats == number).sum())
            return {"rating": rating | spread, "seats": sat} | self.standing(number, figures)

        best_first = [i for i in np.argsort(-mean, kind="stable").tolist() if (seats == i).any()]
        result: dict = {
            "games": len(seats),
            **settings.facts(),
            "greedy": all(self.greedy),
            "resamples": RESAMPLES,
            "players": {names[i]: results(i) for i in best_first},
            "cross_table": {
                names[i]: {names[j]: compare(i, j) for j in best_first if j != i}
                for i in best_first
            },
        } | self.talk_and_draws()
        if per_game:
            result["per_game"] = self.rows(values)
        return result


def play_tournament(
    match: Match,
    players: Sequence[Player],
    num_games: int,
    *,
    samples: int = 0,
    progress: Callable[[float], None] | None = None,
    keep_finished: bool = False,
    **settings: Unpack[MatchOptions],
) -> Tournament:
    """Play mixed tables of different players.

    With teams a player has all powers of a team, and results are per team; only `by_power` is of
    each power by itself.
    """
    rules = match_settings(match, **settings)
    names = names_apart(players)
    teams, rng = rules.game_map.teams, np.random.default_rng(rules.seed)
    twice = [name for name in names if names.count(name) > 1]
    for reason, wrong in (
        ("a tournament needs at least two players", len(names) < 2),
        (f"a player is named twice: {twice[:1]}", twice),
        (f"all powers of map {rules.game_map.name!r} are on one side", len(teams.names) < 2),
        (f"{len(names)} players need at least {len(names)} games", num_games < len(names)),
    ):
        if wrong:
            raise UserError(reason)
    seats = balanced_seats(len(players), len(teams.names), num_games, rng)
    return play_tables(
        rules,
        players,
        seats[:, teams.of_power],
        samples=samples,
        progress=progress,
        keep_finished=keep_finished,
        kind=Tournament,
    )
