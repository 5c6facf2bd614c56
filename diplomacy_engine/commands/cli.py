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
from ..records import shipped_toml
from . import _flags

NAME = "diplomacy-engine"  # of the command that an installation has
_TEXTS = shipped_toml(__package__, "texts.toml")
COMMANDS: dict[str, list[str]] = _TEXTS["commands"]  # the class of its flags, a line about it


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
    return (f"commands:\n{lines}") if group else _TEXTS["about"].format(name=program()) + lines


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
