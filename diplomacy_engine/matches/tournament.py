"""Tournaments: mixed tables of several players, their ratings, and who ends ahead of whom.

Every seat of a game is some player's. With more players than powers some sit out; with fewer, some
have several seats at a table. Where a share is of games, each game counts once, however many seats
the players have in it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import UserError
from ..players.protocols import Player
from ..press.table import PressRules, TalkCounter, notes_of
from ..rules.map import Map, load_map
from ..scoring.outcomes import FIGURES, check_year_limit, figure_values
from .arena import (
    Rescue,
    by_side,
    figure_values_of_teams,
    map_ranges,
    named_teams,
    play_tables,
    team_ranges,
)
from .ratings import DEVIATION, MEAN, RESAMPLES, bootstrap_errors, rate_games
from .statistics import Z, summarize, wilson_interval


def balanced_seats(
    players: int, powers: int, num_games: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the players (E, P) at the powers of so many games, for tournaments and leagues.

    Every `players` games in a row each player has each power once; over all games, two players'
    numbers of games with a power differ by at most 1. In every game players have equally many
    seats, or some one more. A block of `players * powers` games seats tables drawn at random, each
    once in every rotation of the powers, so that those who meet meet with each other's powers too.
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
    """Return what each player did in the games it shares with each other one.

    Args:
        seats: (E, P), the player at each seat.
        ranks: (E, P), 1 = best; equal ones are ties.
        solo: (E, P), 1 at the seat that won a solo.
        players: how many.

    Returns:
        `games`, `above` and `solos`, (players, players) each: the games that two players share; the
        sum over these games of the share of their pairs of seats in which the first ranks above the
        second, a tie being half; the games in which the first wins a solo. The diagonals are 0.
    """
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


def play_tournament(
    game_map: str | Map,
    players: Sequence[Player],
    num_games: int,
    seed: int = 1,
    max_years: int | None = None,
    year_limit: str = "draw",
    threads: int | None = None,
    report: Callable[[float], None] | None = None,
    samples: int = 0,
    per_game: bool = False,
    press: PressRules | None = None,
    rescue: Rescue | None = None,
) -> tuple[dict, list[dict]]:
    """Play mixed tables of several players with different names, and compare the players.

    On a map with teams (`Map.with_teams`) a player has all powers of a team, and what is said of
    powers here is said of teams; only `by_power` is of each power by itself.

    Args:
        game_map: a map's name or file, or a Map.
        players: two or more; the result lists them best rating first.
        num_games: at least as many as players.
        seed: of seats and games; the same seed gives the same result whatever the threads.
        max_years: game years after which a game ends; None: the map's own.
        year_limit: `draw` or `truncate`, see arena.figure_values.
        threads: of the games; None: as many as there are processors.
        report: called now and then with how many games have been played, running ones in part.
        samples: so many games are returned as saved games.
        per_game: whether the result has `per_game`, too: a dictionary for each seat of each game
            with `game` (from 1 on), `power`, `player` and the figures.
        press: how powers may talk before they order; the result then has `press`, as in
            `evaluate_player`.
        rescue: keeps the finished games if the tournament breaks off, see `play_tables`; the result
            is then of these and of those who played in them.

    Returns:
        The result as `tournament --json` writes it, and the saved games, whose `players` are the
        names of those who played each power. In the result, of each player: `rating` (its value,
        openskill's deviation `sigma`, the standard error `bootstrap` over games, and a 95 %
        interval by the larger of the two: where one player always wins all resamples are alike),
        `seats` (how many it played), and as in `evaluate` `overall`, `by_power` and, with teams,
        `by_team`. Of each pair in
        `cross_table`: the games that both play in, and in these how often the first ends `above`
        the second (a tie is half) and has a solo (`solos`), with Wilson intervals; null where they
        never meet.

    Raises:
        UserError: too few players, games or years, or two players of one name.
    """
    game_map = load_map(game_map)
    max_years = game_map.max_years if max_years is None else max_years
    names, powers = [player.name for player in players], game_map.powers
    check_tournament(names, game_map, num_games)
    if max_years < 1:
        raise UserError("a tournament needs at least one year")
    check_year_limit(year_limit)
    count, rng, teams = len(players), np.random.default_rng(seed), game_map.teams
    seats = balanced_seats(count, len(teams.names), num_games, rng)
    of_power = seats[:, teams.of_power]
    talk = None if press is None else TalkCounter(press)
    outcomes, sampled = play_tables(
        game_map,
        players,
        of_power,
        seed,
        max_years,
        threads,
        report,
        samples,
        talk=talk,
        rescue=rescue,
    )
    played = np.arange(num_games) if rescue is None or rescue.cause is None else rescue.finished
    seats, of_power = seats[played], of_power[played]
    saved_games = []
    for row, game, sitting in zip(played.tolist(), sampled, of_power):
        game.id = f"{seed}-{row}"
        who = {power: names[player] for power, player in zip(powers, sitting)}
        saved_games.append(game.to_saved_game() | {"players": who} | notes_of(press))
    every = figure_values(outcomes, game_map.board.victory_centers, year_limit)
    values = figure_values_of_teams(outcomes, game_map, year_limit) if teams.text else every
    ranks = values["rank"]
    newcomers = np.full(count, MEAN), np.full(count, DEVIATION)
    mean, deviation = rate_games(*newcomers, seats, ranks, rng)
    error = bootstrap_errors(count, seats, ranks, rng)
    ranges = team_ranges(game_map, max_years)
    met = cross_table(seats, ranks, values["solo"], count)

    def compare(one: int, other: int) -> dict | None:
        games = int(met["games"][one, other])
        if not games:
            return None
        shares = {name: _share(met[name][one, other], games) for name in ("above", "solos")}
        return {"games": games} | shares

    def results(number: int) -> dict:
        game, side = np.nonzero(seats == number)
        mine = {name: values[name][game, side] for name in FIGURES}
        value, half = float(mean[number]), float(Z * max(error[number], deviation[number]))
        rating = {"value": value, "low": value - half, "high": value + half}
        spread = {"sigma": float(deviation[number]), "bootstrap": float(error[number])}
        found = {
            "rating": rating | spread,
            "seats": len(game),
            "overall": summarize(mine, side, ranges),
            "by_power": by_side(powers, every, of_power == number, map_ranges(game_map, max_years)),
        }
        if teams.text:
            found["by_team"] = by_side(teams.names, values, seats == number, ranges)
        return found

    best_first = [i for i in np.argsort(-mean, kind="stable").tolist() if (seats == i).any()]
    result = {
        "map": game_map.name,
        "games": len(played),
        "seed": seed,
        "max_years": max_years,
        "year_limit": year_limit,
        "greedy": any(getattr(player, "greedy", False) for player in players),
        "resamples": RESAMPLES,
        "players": {names[i]: results(i) for i in best_first},
        "cross_table": {
            names[i]: {names[j]: compare(i, j) for j in best_first if j != i} for i in best_first
        },
    }
    if teams.text:
        result |= named_teams(game_map)
    if talk is not None:
        result["press"] = talk.figures()
    if per_game:
        columns = ("game", "team" if teams.text else "power", "player", *FIGURES)
        result["per_game"] = [
            dict(
                zip(
                    columns,
                    (int(played[game]) + 1, teams.names[side], names[seats[game, side]], *figures),
                )
            )
            for (game, side), figures in zip(
                np.ndindex(seats.shape),
                np.stack([values[f] for f in FIGURES], 2).reshape(-1, len(FIGURES)).tolist(),
            )
        ]
    return result, saved_games


def check_tournament(names: Sequence[str], game_map: Map, num_games: int) -> None:
    """Raise UserError unless these players can have a tournament of so many games."""
    if len(names) < 2:
        raise UserError("a tournament needs at least two players")
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"player {name!r} is named twice in one tournament")
    if len(game_map.powers) < 2:
        raise UserError(f"map {game_map.name!r} has one power, and so no tournaments")
    if num_games < len(names):
        raise UserError(
            f"a tournament of {len(names)} players needs at least {len(names)} games, "
            "so that each plays every power"
        )


def _share(sum_of_games: float, games: int) -> dict[str, float]:
    low, high = wilson_interval(float(sum_of_games), games)
    return {"value": float(sum_of_games) / games, "low": low, "high": high}
