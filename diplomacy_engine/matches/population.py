"""Ranks among a base population: one seat or team a game; members' ratings are anchors."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Unpack

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from ..errors import UserError
from ..players.population import Population, PopulationMember
from ..players.protocols import Player
from ..records import read_json
from ..replays.replay import Replay
from ..rules.vocabulary import vocabulary
from .figures import Z, mean_text, percent
from .match import MatchOptions, match_settings
from .ratings import DEVIATION, MEAN, bootstrap_errors, fit_ratings
from .tables import play_tables
from .tournament import balanced_seats, cross_table

GAMES = {"small": 2000, "three": 1500}  # of a rank; elsewhere OTHER_GAMES
OTHER_GAMES = 700
MOST_RANKS = 10_000_000  # bytes of a file of ranks
PROVISIONAL = 20  # fewer games say little of a person


def rank_games(map_name: str) -> int:
    return GAMES.get(map_name, OTHER_GAMES)


def candidate_seats(
    members: int, powers: int, num_games: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the seats, (E, powers): 0 the player, 1 + i member i.

    Each table is played in every rotation. No member is seated again before all were seated, or
    twice at a table.
    """
    if members < powers - 1:
        raise UserError(f"a table of {powers} needs {powers - 1} members besides the player")
    tables: list[list[int]] = []
    deck: list[int] = []
    while len(tables) * powers < num_games:
        if len(deck) < powers - 1:
            fresh = rng.permutation(members).tolist()
            # Those who are at this table already come last of the new deal.
            deck += [i for i in fresh if i not in deck] + [i for i in fresh if i in deck]
        tables.append([0, *(1 + i for i in deck[: powers - 1])])
        deck = deck[powers - 1 :]
    return np.array([np.roll(table, turn) for table in tables for turn in range(powers)])


_Rating = Annotated[float, Meta(gt=-1e9, lt=1e9)]
_Count = Annotated[int, Meta(ge=0, lt=10**9)]


class PopulationRank(Struct, frozen=True, forbid_unknown_fields=True):
    value: _Rating
    low: _Rating  # of its 95% interval
    high: _Rating
    rank: _Count  # 1 + members rated above
    best: _Count  # the ranks at both ends of the interval
    worst: _Count
    of: _Count  # members and the player
    share: _Rating  # mean over members of the share of games that end above that member
    games: _Count

    def text(self) -> str:
        return (
            f"rank {self.rank} of {self.of} ({self.best} to {self.worst}), rating "
            f"{mean_text(asdict(self))}, population share {percent(self.share, 0)}"
        )


class _Ranks(Struct):
    map: str
    players: dict[Annotated[str, Meta(pattern=r"\A[^\x00-\x1f]{1,200}\Z")], PopulationRank]
    population: str = ""
    teams: str = ""


def read_ranks(path: str | Path, population: Population) -> dict[str, PopulationRank]:
    """Return the ranks of a file; UserError if they are of another map or population, or of teams.
    A file in a population's folder is of that population, wherever the folder was then."""
    ranks, name = read_json(_Ranks, path, MOST_RANKS), population.map.name
    if ranks.map != name or ranks.teams:
        what = f"map {ranks.map!r:.60}" + f", teams {ranks.teams:.60}" * bool(ranks.teams)
        raise UserError(f"{path}: ranks of {what}, not of map {name!r} without teams")
    there, here = (Path(each).resolve() for each in (ranks.population, population.shown_folder))
    if there != here and Path(path).resolve().parent != population.folder.resolve():
        raise UserError(
            f"{path}: ranks in population {ranks.population!r:.200}, not in "
            f"{population.shown_folder!r}"
        )
    return ranks.players


def rank_after_games(
    ratings: np.ndarray,
    seats: np.ndarray,
    ranks: np.ndarray,
    rng: np.random.Generator,
    others: int = 0,
) -> PopulationRank:
    """Where a player ranks.

    `seats` (E, seats): 0 is the player, once a game, 1 + i member i, whose `ratings` stay, then
    `others`, rated along. `ranks` (E, seats): 1 = best; `rng` breaks ties.
    """
    members = len(ratings)
    mean = np.array([MEAN, *ratings, *[MEAN] * others])
    deviation = np.array([DEVIATION, *[0.0] * members, *[DEVIATION] * others])
    fitted, errors = fit_ratings(mean, deviation, seats, ranks, rng)
    value, error, games = float(fitted[0]), float(errors[0]), len(seats)
    if games > 1:  # where all resamples are alike, the model's own error is larger
        error = max(error, float(bootstrap_errors(mean, deviation, seats, ranks, rng)[0]))
    low, high = value - Z * error, value + Z * error
    rank, worst, best = (1 + int((ratings > rating).sum()) for rating in (value, low, high))
    met, above = _met_and_above(seats, ranks, len(mean))
    some = np.flatnonzero(met[1 : members + 1]) + 1
    share = float((above[some] / met[some]).mean()) if len(some) else 0.0
    return PopulationRank(value, low, high, rank, best, worst, members + 1, share, games)


def _met_and_above(
    seats: np.ndarray, ranks: np.ndarray, players: int
) -> tuple[np.ndarray, np.ndarray]:
    mine = ranks[seats == 0][:, None]
    ahead = (mine < ranks) + 0.5 * (mine == ranks)
    met, above = np.zeros((2, players))
    np.add.at(met, seats, 1.0)
    np.add.at(above, seats, ahead)
    return met, above


def rank_player(
    population: Population,
    player: Player,
    members: Sequence[Player],
    num_games: int,
    progress: Callable[[float], None] | None = None,
    **settings: Unpack[MatchOptions],
) -> PopulationRank:
    """Play a player against all members; `settings` of MatchSettings and
    GameRules replace the population's.
    `progress` is told how many games have been played."""
    return _ranked(population, player, members, num_games, progress, **settings)[0]


def add_member(
    population: Population,
    member: PopulationMember,
    player: Player,
    members: Sequence[Player],
    num_games: int,
    progress: Callable[[float], None] | None = None,
    **settings: Unpack[MatchOptions],
) -> tuple[Population, PopulationRank]:
    """Return a population with one more, the last, rated as `rank_player` does; other ratings
    stay."""
    stands, seats, ranks = _ranked(population, player, members, num_games, progress, **settings)
    rated = _rated(member, stands.value, (stands.high - stands.value) / Z)
    tables = [np.pad(table, (0, 1)) for table in (population.met, population.above)]
    met, above = _met_and_above(seats, ranks, len(members) + 1)
    tables[0][-1, :-1] = tables[0][:-1, -1] = met[1:]
    tables[1][-1, :-1], tables[1][:-1, -1] = above[1:], (met - above)[1:]
    everybody = (*population.members, rated)
    return replace(population, members=everybody, met=tables[0], above=tables[1]), stands


def _rated(member: PopulationMember, rating: float, sigma: float) -> PopulationMember:
    return replace(member, rating=round(float(rating), 3), sigma=round(float(sigma), 3))


def _ranked(
    population: Population,
    player: Player,
    members: Sequence[Player],
    num_games: int,
    progress: Callable[[float], None] | None = None,
    **settings: Unpack[MatchOptions],
) -> tuple[PopulationRank, np.ndarray, np.ndarray]:
    """Return where a player ranks among members, and seats and ranks of its games with them."""
    rules = match_settings(population.rules, **settings)
    rng, teams = np.random.default_rng(rules.seed), rules.game_map.teams
    if len(teams.names) == 1:
        raise UserError(f"--teams {teams.text} leaves nobody to rank the player against")
    seats = candidate_seats(len(members), len(teams.names), num_games, rng)
    report = play_tables(rules, (player, *members), seats[:, teams.of_power], progress=progress)
    ranks = report.figures()[1]["rank"]
    return rank_after_games(population.ratings, seats, ranks, rng), seats, ranks


def rate_members(
    population: Population,
    players: Sequence[Player],
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Population:
    """Return the population with the ratings of its members by games among all of them."""
    count, powers = len(players), len(population.map.powers)
    if count < powers:
        raise UserError(f"a population of {population.map.name} needs at least {powers} members")
    settings = match_settings(population.rules, seed=population.seed, threads=threads)
    rng = np.random.default_rng(population.seed)
    seats = balanced_seats(count, powers, population.games, rng)
    ranks = play_tables(settings, players, seats, progress=progress).figures()[1]["rank"]
    newcomers = np.full(count, MEAN), np.full(count, DEVIATION)
    ratings = fit_ratings(*newcomers, seats, ranks, rng)
    met = cross_table(seats, ranks, np.zeros_like(ranks), count)
    members = tuple(map(_rated, population.members, *ratings))
    return replace(population, members=members, met=met["games"], above=met["above"])


def rank_person(
    population: Population, replays: Sequence[Replay], person_name: str, rng: np.random.Generator
) -> PopulationRank:
    """Return where a person ranks, by a power's name or one in the games' `players`.

    Members are recognized by their names; other players are rated along, each name as one.
    """
    names = {name: 1 + i for i, name in enumerate(m.name for m in population.members)}
    num_members, seats, finals = len(names), [], []
    games = [replay._replace(id="") for replay in replays]
    for number, replay in enumerate(replays):
        if games[number] in games[:number]:
            raise UserError(f"game {replay.id!r:.60} is there twice")
        if vocabulary(replay.map).hash != vocabulary(population.map).hash or replay.map.teams.text:
            raise UserError(f"game {replay.id!r:.60} is not one of map {population.map.name}")
        row = []
        for power in replay.map.powers:
            name = replay.players.get(power, "").removesuffix(".npz")
            person = power == person_name.upper() or name == person_name
            name = name or f"{power}, unknown"
            row.append(0 if person else names.setdefault(name, len(names) + 1))
        if replay.winners and row.count(0) == 1 and len(set(row)) == len(row):
            seats.append(row)
            finals.append(replay.ranks)
    if not any(0 < number <= num_members for row in seats for number in row):
        raise UserError(
            f"no finished game has {person_name} and a member of {population.title} in it"
        )
    return rank_after_games(
        population.ratings, np.array(seats), np.array(finals), rng, len(names) - num_members
    )
