"""The command line: the first words choose a command, and only its module is imported."""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .._progress import ended_by_reader, fail
from .._suggest import did_you_mean, quoted
from .._version import VERSION
from ..errors import UserError
from ..flags import parse as read_flags
from . import _flags

NAME = "diplomacy-engine"  # of the command that an installation has
# Command -> the class of its flags, and a line about it.
COMMANDS = {
    "policies": ("Policies", "list the trained policies that are included"),
    "play": ("Play", "play against bots and policies, on a local page or in the terminal"),
    "evaluate": ("Evaluate", "play a player as every power against copies of another"),
    "tournament": ("Tournament", "rate players in games that they play together"),
    "population rank": ("Rank", "rank a player among many frozen policies"),
    "population show": ("Show", "show a population as a page"),
    "population make": ("Make", "make a population of training runs"),
    "population add": ("Add", "add a run's policy to a population"),
    "replay": ("Replay", "show saved games as a page, a picture or text"),
    "review": ("Review", "find the worst decisions of games, and better orders"),
    "import-game": ("ImportGame", "turn a game played elsewhere into a saved game"),
    "connect diplomacy": ("Diplomacy", "seat a player on a server of the diplomacy package"),
    "connect webdip": ("Webdip", "seat a player on a webDiplomacy site"),
    "bot": ("Bot", "play for another program, by lines of text"),
    "check-player": ("CheckPlayer", "list the mistakes of a player, or measure its speed"),
    "check-map": ("CheckMap", "list the mistakes of a map file"),
    "import-map": ("ImportMap", "convert the map of another program to a map file"),
    "check-reward": ("CheckReward", "find out whether a reward makes powers rivals"),
    "llm-prompt": ("LlmPrompt", "print the prompt of a language model"),
}
_ABOUT = """\
Tools for Diplomacy. A PLAYER is a bot (dumbbot, random, ...), a run folder or checkpoint, one of
the policies that `policies` lists (such as small-pure-2), a search with a policy (fast:POLICY), a
language model (llm:...), or one of these behind a negotiator that talks (nash+dumbbot).
docs/tournament.md lists them all.

examples:
  {name} policies
  {name} play --map small --against small-pure-2
  {name} evaluate --player small-pure-2 --against dumbbot
  {name} tournament --players small-pure-1 small-pure-2 dumbbot random
  {name} replay runs/small__... --output games.html

commands ({name} COMMAND --help says more):
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code: 0, 2 for bad input, 130 interrupted, 141 if the output is closed."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        with ended_by_reader():
            if not argv or argv[0] in ("-h", "--help"):
                print(overview())
                return 0 if argv else 2
            if argv[0] == "--version":
                print(VERSION)
                return 0
            command, flags = parse(argv)
            return runner(command)(flags)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}")
    except UnicodeEncodeError as error:  # of a file's text or name, on the way to the screen
        letters = error.object[error.start : error.end]
        return fail(f"{letters!a} cannot be shown or written here")
    except UserError as error:
        return fail(error)


def parse(argv: Sequence[str]) -> tuple[str, object]:
    command, rest = _command(list(argv))
    flags = getattr(_flags, COMMANDS[command][0])
    return command, read_flags(flags, rest, f"{program()} {command}")


def runner(command: str) -> Callable[..., int]:
    words = command.replace("-", "_").split()
    return getattr(importlib.import_module(f".{words[0]}", __package__), f"run_{words[-1]}")


def program() -> str:
    return NAME if Path(sys.argv[0]).stem == NAME else "python -m diplomacy_engine"


def overview(group: str = "") -> str:
    rows = [(name, row[1]) for name, row in COMMANDS.items() if name.startswith(group)]
    lines = "\n".join(f"  {name:18} {what}" for name, what in rows)
    return (f"commands:\n{lines}") if group else _ABOUT.format(name=program()) + lines


def _command(argv: list[str]) -> tuple[str, list[str]]:
    for count in (2, 1):
        if " ".join(argv[:count]) in COMMANDS:
            return " ".join(argv[:count]), argv[count:]
    group = [name for name in COMMANDS if name.startswith(f"{argv[0]} ")]
    if group and (len(argv) == 1 or argv[1] in ("-h", "--help")):
        print(overview(f"{argv[0]} "))
        raise SystemExit(0 if len(argv) > 1 else 2)
    word = " ".join(argv[: 2 if group else 1])
    near = did_you_mean(word, group or [name.split()[0] for name in COMMANDS])
    raise UserError(f"there is no command {quoted(word, 60)}{near or f'; see {program()} --help'}")
