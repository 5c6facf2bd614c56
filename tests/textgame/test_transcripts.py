"""Games in transcripts: what methods of `Game` return, word for word.

A paragraph of a file in transcripts/ has a title, then expressions, in which names are attributes
of the game: one that returns a game begins with it, of others the value or the error is indented
below. `PYTHONPATH=tests python tests/textgame/test_transcripts.py` writes them anew; then look at
what `git diff` shows.
"""

import json
from pathlib import Path
from pprint import pformat
from textwrap import indent

import pytest
from support.games import nonempty, standard
from support.maps import tribes

from diplomacy_engine import Game

FILES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


class Names(dict):
    """Functions of a transcript, and attributes of its game."""

    def __missing__(self, name: str) -> object:
        if not hasattr(self["game"], name):
            raise KeyError(name)
        return getattr(self["game"], name)


def read_back(saved: dict, *arguments, **changes) -> Game:
    """Return the game of a saved game that went through a file."""
    return Game.from_saved_game(json.loads(json.dumps(saved)), *arguments, **changes)


def paragraphs(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").strip().split("\n\n")


def played(paragraph: str) -> str:
    """Return a transcript with what its lines return now."""
    functions = [Game, nonempty, read_back, standard, tribes]
    names = Names({each.__name__: each for each in functions})
    lines = []
    for line in paragraph.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line.startswith("#"):
            continue
        try:
            value = eval(line, names)
        except ValueError as error:
            lines.append(f"  error: {error}")
        else:
            if isinstance(value, Game):
                names["game"] = value
            elif value is not None:
                lines.append(indent(pformat(value, width=98, sort_dicts=False), "  "))
    return "\n".join(lines)


@pytest.mark.parametrize(
    "paragraph",
    [each for path in FILES for each in paragraphs(path)],
    ids=lambda p: p.split("\n")[0],
)
def test_transcript(paragraph):
    assert played(paragraph) == paragraph


if __name__ == "__main__":
    for path in FILES:
        path.write_text("\n\n".join(map(played, paragraphs(path))) + "\n", encoding="utf-8")
