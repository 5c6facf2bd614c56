"""What the commands share: kinds of arguments, and a word about compilation."""

import argparse
import sys

from ._jit import kernels_are_cached
from .arena import YEAR_LIMITS


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


def add_match_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that plays matches and reports their result."""
    add = parser.add_argument
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


def announce_compilation() -> None:
    """Say that the first start after an installation takes longer."""
    if not kernels_are_cached():
        print("compiling the game kernels, once: this takes about a minute", file=sys.stderr)
