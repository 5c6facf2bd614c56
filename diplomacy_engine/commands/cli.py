"""The command line of the engine's tools.

Each command has a function `add_...` that describes its flags and one `run_...` that does it.
Bad input ends in one sentence on standard error and exit code 2.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .._progress import forget
from ..errors import UserError
from ..players.bots import BOTS
from ..rules.map import MAP_NAMES
from .bench import add_bench, versions
from .check_map import add_check_map
from .check_reward import add_check_reward
from .connect import add_connect
from .evaluate import add_evaluate
from .import_game import add_import_game
from .import_map import add_import_map
from .llm_prompt import add_llm_prompt
from .play import add_play
from .population import add_population
from .replay import add_replay
from .tournament import add_tournament

NAME = "diplomacy-engine"  # of the command that an installation has
_DESCRIPTION = f"""\
Tools for Diplomacy on the maps {", ".join(MAP_NAMES)}, or on your own map file.
A player is a bot ({", ".join(BOTS)}),
the path of a checkpoint, a run folder, a policy that comes along such as small-pure-2
(greedy:POLICY gives its likeliest orders, mine.py:POLICY is played by a script of your own),
a search with one such as fast:POLICY, a language model, or any of these with a negotiator
that talks before it, such as nash+dumbbot (docs/tournament.md).
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    0, or 2 for bad input, 130 when interrupted, 141 when nobody reads the output any more.
    """
    try:
        try:
            arguments = _parser().parse_args(argv)
            return arguments.run(arguments)
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be told
    except BrokenPipeError:  # of a reader such as `head`, which has seen enough
        forget(sys.stdout)
        return 141
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
    except UnicodeEncodeError as error:  # of a file's text or name, on the way to the screen
        letters = error.object[error.start : error.end]
        print(f"error: {letters!a} cannot be shown or written here", file=sys.stderr)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=NAME if Path(sys.argv[0]).stem == NAME else "python -m diplomacy_engine",
        allow_abbrev=False,
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=versions()["diplomacy_engine"])
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_evaluate(commands)
    add_tournament(commands)
    add_play(commands)
    add_bench(commands)
    add_check_map(commands)
    add_import_map(commands)
    add_check_reward(commands)
    add_replay(commands)
    add_import_game(commands)
    add_connect(commands)
    add_llm_prompt(commands)
    add_population(commands)
    return parser
