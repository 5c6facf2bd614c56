"""`check-map`: says what is wrong with a map file."""

import argparse
import sys

from ..rules.map import MapError, load_map
from .import_map import map_counts


def add_check_map(commands) -> None:
    """Describe `check-map`."""
    parser = commands.add_parser(
        "check-map",
        help="list everything that is wrong with a map file",
        description="Read a map file; print everything that is wrong with it, or its counts.",
        needs="FILE",
        examples=("my_map.toml",),
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
    print(f"map {game_map.name} is valid: {map_counts(game_map)}")
    return 0
