"""A fast engine for Diplomacy: rules, maps, bots, deals, matches. The names in __init__.pyi are
public, each imported when it is first asked for, so that commands start without what they do not
need."""

import ast
import importlib
import sys
from pathlib import Path

from ._version import VERSION

__version__ = VERSION

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_IMPORTS = [node for node in _STUB.body if isinstance(node, ast.ImportFrom)]
_HOME = {alias.name: f".{node.module}" for node in _IMPORTS for alias in node.names}
__all__ = list(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


if sys.argv[:1] != ["-m"]:  # a command of `python -m diplomacy_engine` makes no environment by id
    importlib.import_module(".environments", __name__).register_environments()
