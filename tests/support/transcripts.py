"""Transcripts: texts beside a test file of what is done, line by line, and of what comes of it.

A line that begins with `$ ` is done, with the lines behind it that begin with `> `; below stands
what comes of it. Environment variable RENEW=1 writes anew what comes of it: read the difference
before you commit it.
"""

import difflib
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from pprint import pformat

from gymnasium.error import ResetNeeded

from diplomacy_engine import Game, __version__
from diplomacy_engine.commands.cli import main


def names_of(file: str, folder: str) -> list[str]:
    """Return the names of the transcripts in a folder beside a test file."""
    return sorted(path.stem for path in (Path(file).parent / folder).glob("*.txt"))


def follow(file: str, folder: str, name: str, do: Callable[[list[str]], Iterable[str]]) -> None:
    """Do the lines of a transcript, and compare what comes of each; behind `  # ` stands a comment.

    Args:
        file, folder, name: of a test, beside it, of the transcript.
        do: of all lines, returns what comes of each.
    """
    path = Path(file).parent / folder / f"{name}.txt"
    old = path.read_text(encoding="utf-8")
    done = re.findall(r"^\$ .*\n(?:> .*\n)*", old, re.M)
    lines = [re.sub("^[$>] ", "", re.sub("  # .*", "", text), flags=re.M)[:-1] for text in done]
    came = ("".join(f"{line.rstrip()}\n" for line in text.splitlines()) for text in do(lines))
    new = old[: old.index("$ ")] + "".join(a + b for a, b in zip(done, came, strict=True))
    if os.environ.get("RENEW"):
        path.write_text(new, encoding="utf-8", newline="\n")
    changed = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "now", n=9)
    assert new == old, "\n".join(changed)


class Names(dict):
    """Functions of a transcript, and attributes of its subject."""

    def __missing__(self, name: str) -> object:
        if not hasattr(self["subject"], name):
            raise KeyError(name)
        return getattr(self["subject"], name)


def expressions(kind: type, *functions: Callable) -> Callable[[list[str]], Iterable[str]]:
    """Return what evaluates lines, in which names are functions or attributes of the last value of
    a kind, the subject: of other values, and of errors, it returns texts. `# ` begins a title."""

    def do(lines: list[str]) -> Iterable[str]:
        names = Names({each.__name__: each for each in functions})
        for line in lines:
            try:
                value = None if line.startswith("# ") else eval(line, names)
            except (ValueError, ResetNeeded) as error:
                yield f"error: {error}"
                continue
            if isinstance(value, kind):
                names["subject"] = value
            shown = value is not None and not isinstance(value, kind)
            yield pformat(value, width=98, sort_dicts=False) if shown else ""

    return do


class Shell:
    """Does command lines in a folder, which is the current one; further lines are typed. PYTHON is
    the one that runs.

    Besides the commands of the package there are `write FILE` of the typed lines, `copy FILE NAME`
    from tests/, `replace FILE OLD NEW`, `show FILE PART...` (a JSON file's first line, or a whole
    text), `files`, and `game FILE POSITION`, which saves a game after a phase without orders.
    """

    def __init__(self, monkeypatch, capsys):
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, lines: list[str]) -> Iterable[str]:
        for text in lines:
            line, _, typed = text.partition("\n")
            name, *words = shlex.split(line.replace("PYTHON", sys.executable))
            if name.startswith("COLUMNS="):
                self.monkeypatch.setenv(*name.split("="))
                name, *words = words
            own = getattr(self, f"_{name}", None)
            came = (
                own(typed, *words) if own else self._command(typed, [name, *words] if name else [])
            )
            if name == "check-player":  # how many positions it tries is a matter of time
                came = re.sub(r"[\d,]{2,} ", "N ", came)
            here = came.replace(f"{os.getcwd()}/", "").replace(os.getcwd(), "HERE")
            here = here.replace(sys.executable, "PYTHON").replace(__version__, "VERSION")
            here = re.sub(r"\d{8}-\d{6}", "DATE", re.sub(r"\d+\.\d\d MB", "SIZE", here))
            yield re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.4g}", here)

    def _command(self, typed: str, words: list[str]) -> str:
        lines = io.BytesIO(f"{typed}\n".encode() * bool(typed))
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines))
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        out, err = self.capsys.readouterr()
        # What depends on how fast the machine is is left out.
        lines = re.sub(r"^compiling the .*\n|^.*% \| .* left\n", "", err, flags=re.M).splitlines()
        return "\n".join([out, *lines, f"(status {code})" * bool(code)]).strip("\n")

    def _write(self, typed: str, file: str) -> str:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(f"{typed}\n" * bool(typed))
        return ""

    def _copy(self, _: str, file: str, name: str) -> str:
        shutil.copy(Path(__file__).parents[1] / file, name)
        return ""

    def _replace(self, _: str, file: str, old: str, new: str) -> str:
        text = Path(file).read_text()
        old, new = (part.replace("\\n", "\n") for part in (old, new))
        assert old in text, old
        Path(file).write_text(text.replace(old, new))
        return ""

    def _show(self, _: str, file: str, *parts: str) -> str:
        text = Path(file).read_text()
        if not parts:
            return text
        found = []
        for part in parts:
            value = json.loads(text if file.endswith(".json") else text.splitlines()[0])
            for key in part.split("."):
                value = value[int(key) if isinstance(value, list) else key]
            found.append(f"{part}: {json.dumps(value)}")
        return "\n".join(found)

    def _files(self, _: str) -> str:
        return "\n".join(sorted(str(p) for p in Path().rglob("*") if p.is_file()))

    def _game(self, _: str, file: str, position: str) -> str:
        game = Game.from_position(position) if ";" in position else Game(position)
        game.adjudicate()
        with open(file, "a") as saved:
            saved.write(json.dumps(game.to_saved_game()) + "\n")
        return ""
