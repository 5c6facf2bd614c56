"""The rank of a person who has played rated games with the command `play`."""

from pathlib import Path

import numpy as np
from msgspec import UNSET

from .._suggest import counted
from ..constants import COMPLETED
from ..errors import UserError
from ..matches.population import rank_person
from ..play.file import PLAYER, ListedGame, games_in
from ..play.session import PERSON
from ..players.names import DrawnSpec, is_drawn, parse_player
from ..players.population import population_folder, read_population
from ..replays.replay import Replay, load_replays


def rank(file: Path) -> str:
    """Return the rank of a person by their finished rated games, the last of which is in `file`.

    The games of its folder on the same map against the same population count. The rank is "" if
    the game in `file` is not rated, or if two people played.
    """
    games = games_in(file.parent)
    folders = {path: _drawn_folder(game) for path, game in games.items() if _is_rated(game)}
    if file not in folders:
        return ""
    replays: list[Replay] = []
    for path, folder in folders.items():
        if (folder, games[path].map) != (folders[file], games[file].map):
            continue
        for loaded in load_replays(path):
            replay = loaded._replace(id="")
            if replay not in replays:  # as where both were conceded at once
                replays.append(replay)
    game_map = replays[0].map
    population = read_population(population_folder(folders[file], game_map), game_map)
    rng = np.random.default_rng(games[file].play.seed)
    try:
        rating = rank_person(population, replays, PERSON, rng)
    except UserError:  # two people played
        return ""
    played = counted(len(replays), "rated game")
    return (
        f"{rating.rank} of {rating.of}, after {played} ({rating.best} to {rating.worst} are likely)"
    )


def _is_rated(game: ListedGame) -> bool:
    """Tell whether a game is over that one person has played against drawn members."""
    play = game.play
    people = [seat for seat in (play.seats or {}).values() if seat.kind != PLAYER]
    is_over = game.phases[-1].name == COMPLETED
    return (
        is_over and len(people) == 1 and play.tried is UNSET and any(map(is_drawn, play.opponents))
    )


def _drawn_folder(game: ListedGame) -> str | None:
    """Return the folder of the population that a game's opponents are drawn from."""
    specs = map(parse_player, game.play.opponents)
    return next(spec.folder for spec in specs if isinstance(spec, DrawnSpec))
