"""What the commands share: kinds of arguments, and a word about compilation."""

import argparse
import sys

from ._jit import kernels_are_cached


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


def announce_compilation() -> None:
    """Say that the first start after an installation takes longer."""
    if not kernels_are_cached():
        print("compiling the game kernels, once: this takes about a minute", file=sys.stderr)
