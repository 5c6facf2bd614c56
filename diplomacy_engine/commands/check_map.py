"""`check-map`: says what is wrong with a map file."""

import argparse
import sys

from ..games.vector_game import VectorGame
from ..rules.map import MapError, load_map


def add_check_map(commands) -> None:
    """Describe `check-map`."""
    parser = commands.add_parser(
        "check-map",
        help="say everything that is wrong with a map file",
        description="Read a map file; print everything that is wrong with it, or its counts.",
    )
    parser.add_argument("file", metavar="FILE", help="a map file (TOML), or the name of a map")
    parser.set_defaults(run=run_check_map)


def run_check_map(arguments: argparse.Namespace) -> int:
    """Check a map file; return 2 if something is wrong."""
    try:
        game_map = load_map(arguments.file)
    except MapError as error:
        for problem in error.problems:
            print(f"error: map {error.source}: {problem}", file=sys.stderr)
        return 2
    games = VectorGame(game_map, 1, threads=1)
    board = games.board
    print(
        f"map {game_map.name} is sound: {len(game_map.powers)} powers, "
        f"{len(game_map.provinces)} provinces, {len(game_map.locations)} locations, "
        f"{len(board.center_province)} supply centers, {board.victory_centers} to win, "
        f"{len(games.vocabulary):,} orders"
    )
    return 0
