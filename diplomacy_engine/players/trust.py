"""Which players a file may name by itself, and which the command line must name as well.

A saved game, or the settings in a run folder, may come from anybody. A player that reads settings,
asks a server or runs a script does so as soon as it is loaded. So code that loads players named by
a file calls `check_named` first; this function alone decides.
"""

import re
from collections.abc import Collection, Iterable

from .._suggest import quoted
from ..errors import UserError

# What may stand before a player within a name: `fast:PATH`, `pool:FOLDER`, `population:FOLDER`.
_BEFORE = ("greedy", "fast", "pool", "infer", "population")
_PARTS = re.compile(r"[+(),=\s]")  # between the players in a name, and what else it is made of
_PROGRAM = re.compile(r"(?:^|[+(,=:\s])(?:cmd|dui)[(:]")  # which a name starts
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")  # begins a path on Windows


def needs_naming(name: str) -> bool:
    """Tell whether a player's name is, or has within it, more than bots, policies and populations.

    That is a colon with anything else before it (`llm:...`, `module:Class`, `FILE.py:PATH`), or a
    file of settings or code. A path with a colon in it looks the same, and is taken for that.
    """
    return bool(_PROGRAM.search(name)) or any(map(_does_something, _PARTS.split(name)))


def _does_something(part: str) -> bool:
    part = _DRIVE.sub("", part, count=1)
    before, colon, after = part.partition(":")
    if colon:
        return before not in ("", *_BEFORE) or _does_something(after)
    return part.lower().endswith((".toml", ".py"))


def check_named(
    names: Iterable[str], typed_names: Collection[str], source: object, flag: str = "--against"
) -> None:
    """Raise UserError unless the command line names the players of a file that must be named.

    `typed_names` are the names on the command line, where `flag` names players; `source` is what
    the message calls the file.
    """
    for name in names:
        if needs_naming(name) and name not in typed_names:
            raise UserError(
                f"{source} names the player {quoted(name, 300)}, which reads settings, asks a "
                f"server or runs a script; if you trust it, name it with {flag}"
            )
