"""The command line of the engine's tools.

Each command has a function `add_...` that describes its flags and one `run_...` that does it.
Bad input ends in one sentence on standard error and exit code 2.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from .._progress import forget
from ..errors import UserError
from ..players.bots import BOTS
from ..rules.map import MAP_NAMES
from ._parser import Parser
from .bench import add_bench, versions
from .check_map import add_check_map
from .check_reward import add_check_reward
from .connect import add_connect
from .evaluate import add_evaluate
from .import_game import add_import_game
from .import_map import add_import_map
from .llm_prompt import add_llm_prompt
from .play import add_play
from .policies import add_policies
from .population import add_population
from .replay import add_replay
from .tournament import add_tournament

NAME = "diplomacy-engine"  # of the command that an installation has
_DESCRIPTION = f"""\
Tools for Diplomacy on the maps {", ".join(MAP_NAMES)}, or on a map file of your own. A PLAYER is a
bot ({", ".join(BOTS)}), a run folder or checkpoint, one of the policies that `policies` lists (such
as small-pure-2), a search with a policy (fast:POLICY), a language model (llm:...), or one of these
behind a negotiator that talks (nash+dumbbot). docs/tournament.md lists them all.
"""
_EXAMPLES = (
    "policies",
    "play --map small --against small-pure-2",
    "evaluate --player small-pure-2 --against dumbbot",
    "tournament --players small-pure-1 small-pure-2 dumbbot random",
    "replay runs/small__... --output games.html",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    0, or 2 for bad input, 130 when interrupted, 141 when nobody reads the output any more.
    """
    try:
        try:
            arguments = parser().parse_args(argv)
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


def parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog=NAME if Path(sys.argv[0]).stem == NAME else "python -m diplomacy_engine",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=versions()["diplomacy_engine"])
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_policies(commands)
    add_play(commands)
    add_evaluate(commands)
    add_tournament(commands)
    add_population(commands)
    add_replay(commands)
    add_import_game(commands)
    add_connect(commands)
    add_check_map(commands)
    add_import_map(commands)
    add_check_reward(commands)
    add_llm_prompt(commands)
    add_bench(commands)
    return parser
