"""What order_blocks.py reads in a text: entries, and remarks on what is left out; and the notes
that people read of the remarks."""

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..._suggest import printable, quoted

_MOST_SHOWN = 5  # texts in a note
_MOST_SPANS = 20  # ranges of lines in a note
# Reasons of remarks that share one note, which has the lines of them all.
NO_ORDERS = "left out, since no order is in it"
COUNTED = "left out, since our rules count it"
HOLDS = "no order for this unit, so it holds"
GROUPED = (NO_ORDERS, COUNTED, HOLDS)
# unit: one in a list, which may hold, be built or removed; position: one below a label such as
# `Positions`; "": nothing but the power's name, which has no orders.
EntryKind = Literal["order", "unit", "position", "center", ""]


class Entry(NamedTuple):
    """An order, a unit or a center of a power, and where it stands."""

    phase: str  # empty where none is named before it
    power: str
    text: str
    line: int
    kind: EntryKind = ""


class Remark(NamedTuple):
    """What a line has that is not read as it is written, and why."""

    line: int
    text: str
    reason: str
    kind: EntryKind = ""  # what it should be

    def __str__(self) -> str:
        return f"{shown_line(self.line, self.text)}, is left out: {self.reason}"


class Report(NamedTuple):
    """All that a text says, in the order of its lines."""

    entries: list[Entry]
    remarks: list[Remark]


def notes_of(remarks: Sequence[Remark]) -> tuple[list[str], list[str]]:
    """Return a note for each remark that may be an order, and one for each reason in GROUPED."""
    groups: dict[str, list[Remark]] = {}
    for remark in remarks:
        groups.setdefault(remark.reason, []).append(remark)
    single = [str(remark) for remark in remarks if remark.reason not in GROUPED]
    return single, [_group_note(groups[reason]) for reason in GROUPED if reason in groups]


def _group_note(group: Sequence[Remark]) -> str:
    """Return the note of remarks of one reason: `lines 3, 7-9, 'a', 'b': left out, ...`."""
    lines = sorted({remark.line for remark in group})
    shown = [quoted(printable(remark.text), 60) for remark in group[:_MOST_SHOWN]]
    if len(group) > _MOST_SHOWN:
        shown.append("...")
    where = f"{'lines' if lines[1:] else 'line'} {_spans(lines)}"
    return f"{where}, {', '.join(shown)}: {group[0].reason}"


def _spans(lines: Sequence[int]) -> str:
    """Return lines in short: `3, 7-9` for [3, 7, 8, 9]."""
    runs = itertools.groupby(enumerate(lines), lambda item: item[1] - item[0])  # without a gap
    spans = [[line for _, line in run] for _, run in runs]
    texts = [f"{span[0]}-{span[-1]}" if span[1:] else str(span[0]) for span in spans]
    if texts[_MOST_SPANS:]:
        texts[_MOST_SPANS:] = [f"and more up to {lines[-1]}"]
    return ", ".join(texts)


def shown_line(line: int, text: str) -> str:
    """Return a text and its line's number for a message."""
    return f"line {line}, {quoted(printable(text), 60)}"
