"""What the commands share: kinds of arguments, options of matches, a word about compilation."""

import argparse
import json
import sys
from collections.abc import Sequence

from .._files import atomic_write
from .._jit import kernels_are_cached
from ..players.loading import load_player
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.outcomes import YEAR_LIMITS


def whole_number(least: int, most: int):
    """Return a type for argparse: a whole number, also written 1e6, from `least` to `most`."""

    def convert(text: str) -> int:
        try:
            number = float(text)
            if number.is_integer() and least <= number <= most:
                return int(text) if text.lstrip("+-").isdigit() else int(number)
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(
            f"must be a whole number from {least} to {most}, not {text!r:.40}"
        )

    return convert


def add_match_options(parser: argparse.ArgumentParser, games: str) -> None:
    """Add the options of every command that plays matches and reports their result.

    `games` says what else there is to know of their number.
    """
    add = parser.add_argument
    add(
        "--map",
        default="small",
        help="small, three, standard, or the path of a map file (default: small)",
    )
    add(
        "--games",
        type=whole_number(1, 10**7),
        default=1000,
        metavar="N",
        help=f"games, {games} (default: 1000)",
    )
    add(
        "--seed",
        type=whole_number(0, 2**62),
        default=1,
        metavar="N",
        help="the same seed gives the same result (default: 1)",
    )
    add(
        "--max-years",
        type=whole_number(1, 1000),
        metavar="N",
        help="years after which a game ends (default: the map's; 20, on standard 35)",
    )
    add(
        "--year-limit",
        choices=YEAR_LIMITS,
        default="draw",
        help="what the limit is: a draw by rule, or a cut that pays no reward (default: draw)",
    )
    add(
        "--greedy",
        action="store_true",
        help="policies give their likeliest orders instead of sampling",
    )
    add(
        "--threads",
        type=whole_number(1, 1024),
        metavar="N",
        help="threads of the games (default: as many as there are processors)",
    )
    add(
        "--script",
        metavar="FILE",
        help="trainer's script that plays checkpoints (default: the repository's own)",
    )
    add("--json", metavar="FILE", help="write the result to a file")


def load_players(
    names: Sequence[str], game_map: Map, arguments: argparse.Namespace
) -> list[Player]:
    """Return the players of a match, each with a seed of its own; see `players.load_player`."""
    return [
        load_player(
            name,
            game_map=game_map,
            script=arguments.script,
            greedy=arguments.greedy,
            seed=len(names) * arguments.seed + number,
        )
        for number, name in enumerate(names)
    ]


def write_result(path: str | None, result: dict) -> None:
    """Write what a command found as JSON, if a file for it was named."""
    if path:
        atomic_write(path, (json.dumps(result, indent=2) + "\n").encode())


def announce_compilation() -> None:
    """Say that the first start after an installation takes longer."""
    if not kernels_are_cached():
        print("compiling the game kernels, once: this takes about a minute", file=sys.stderr)
