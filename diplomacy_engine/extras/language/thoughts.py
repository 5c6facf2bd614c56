"""Find the decision in a reply: thoughts and drafts are no orders, and are not sent.

A thought ends where a mark says so. Text after the last end is what counts, wherever the thought
began: many chat templates open it, and the reply has its end alone.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...records import shipped_patterns, shipped_toml

MOST_LINES = 1000  # of a reply that are looked at, the last ones
_LONGEST_HEADING = 200  # letters
DRAFT, PLAIN, FINAL = -1, 0, 1  # kinds of sections

_REPLIES = shipped_toml(__package__, "replies.toml")


def patterns(part: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns of a part of replies.toml."""
    return shipped_patterns(_REPLIES[part], _REPLIES["standing_for"])


_LIKE, _HEADINGS = patterns("thoughts"), patterns("headings")
# The first whose words stand in a heading counts.
_KINDS = (
    (FINAL, _HEADINGS["decision"]),
    (DRAFT, _HEADINGS["draft"]),
    (FINAL, _HEADINGS["orders"]),
    (DRAFT, _HEADINGS["remarks"]),
)
_ENDS = {"START_": "END_", "start_": "end_", "begin_of_": "end_of_", "unused94": "unused95"}


class Section(NamedTuple):
    """Consecutive lines of a reply below a heading, or within a code fence."""

    kind: int  # DRAFT, PLAIN or FINAL
    lines: list[str]


def without_thoughts(text: str) -> str:
    """Return a reply without its thoughts; nothing of one that is cut off within them. In one pass:
    a pattern for a whole thought would look for its end once for each beginning."""
    parts, start, inside = [], 0, False
    for mark in _LIKE["mark"].finditer(text):
        if mark["end"]:
            if not inside:
                parts.clear()
            inside, start = False, mark.end()
        elif not inside:
            parts.append(text[start : mark.start()])
            inside = True
    return "" if inside else _LIKE["special"].sub("\n", "".join([*parts, text[start:]]))


def thought_end(text: str) -> str | None:
    """Return the mark that ends the thought in which a text stops; "" if it has no marks, None if
    the last one has ended the thought."""
    marks = [*_LIKE["mark"].finditer(text)][-1:]
    if not marks:
        return ""
    begin = marks[0][0]
    if marks[0]["end"]:
        return None
    for word, end in _ENDS.items():
        if word in begin:
            return begin.replace(word, end)
    if "channel" in begin or begin[0] not in "<[\u25c1":
        return "<channel|>"
    return re.sub(r"(<\||.)", r"\1/", begin, count=1)


def decided(parts: Sequence[Section], read: Callable[[Section], list]) -> list:
    """Return what is read of the final sections, or else of the plain ones."""
    for kind in (FINAL, PLAIN):
        if lines := [line for part in parts if part.kind == kind for line in read(part)]:
            return lines
    return []


def heading_kind(line: str) -> int:
    """Return the kind of section that a heading begins."""
    kinds = (kind for kind, words in _KINDS if words.search(line))
    return next(kinds, PLAIN)


def _without_struck(line: str) -> str:
    """Leave out what is struck through, and from 200 letters before a cross on all: an order is not
    longer. A cross that is itself struck through does not count."""
    pieces, at, cross = [], 0, _LIKE["cross"].search(line)
    for struck in _LIKE["struck"].finditer(line):
        if cross and max(at, cross.start() - 200) < struck.start():
            break
        pieces.append(line[at : struck.start()])
        at = struck.end()
        if cross and cross.start() < at:
            cross = _LIKE["cross"].search(line, at)
    pieces.append(line[at : max(at, cross.start() - 200)] if cross else line[at:])
    return "".join(pieces)


def sections(text: str) -> list[Section]:
    """Return the sections of a reply in their order, without thoughts, headings and code fences."""
    text = _LIKE["answer"].sub(
        lambda tag: "\nRemarks:\n" if tag["end"] else "\nFinal:\n", without_thoughts(text)
    )
    lines = [*map(_without_struck, text.splitlines()[-MOST_LINES:])]
    boxes = [box[1].strip() if (box := _LIKE["box"].match(line)) else None for line in lines]
    if any(boxes):  # of boxes those with a cross count
        lines = [line for line, box in zip(lines, boxes) if box != ""]
    parts, fenced = [Section(PLAIN, [])], False
    for line in lines:
        kind, begin = parts[-1].kind, line[:_LONGEST_HEADING]
        if fence := _LIKE["fence"].match(begin):
            fenced = not fenced
            inner = DRAFT if heading_kind(fence[1]) == DRAFT else kind or FINAL
            parts.append(Section(inner if fenced else PLAIN, []))
        elif fenced:
            parts[-1].lines.append(line)
        elif begin == line and _LIKE["heading"].fullmatch(line) and (kind := heading_kind(line)):
            parts.append(Section(kind, []))
        elif (label := _LIKE["label"].match(begin)) and (kind := heading_kind(label[1])):
            parts.append(Section(kind, [line[label.end() :]]))
            if kind == DRAFT:
                parts.append(Section(parts[-2].kind, []))
        else:
            parts[-1].lines.append(line)
    return parts
