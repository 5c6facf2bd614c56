"""What a text of orders says, as order_blocks.py has read it: as a position, and in notes."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from ..._suggest import printable, quoted
from ...constants import NONE, phase_kind, phase_name
from ...errors import UserError
from ...rules.map import Map
from ...rules.notation import province_of

_MOST_SHOWN, _MOST_SPANS = 5, 20  # texts and ranges of lines in a note
# Reasons of remarks that share one note, which has the lines of them all.
NO_ORDERS, COUNTED = "left out, since no order is in it", "left out, since our rules count it"
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


def read_position(game_map: Map, report: Report) -> dict | None:
    """Return the state that a report of units says; None if it has orders."""
    units, centers = (
        by_power(report.entries, *kinds) for kinds in (("unit", "position"), ("center",))
    )
    if not units or any(entry.kind == "order" for entry in report.entries):
        return None
    for line, text, reason, _ in report.remarks:
        if reason not in GROUPED:
            raise UserError(f"{shown_line(line, text)}, is no unit or center: {reason}")
    phases = {entry.phase for entry in report.entries}
    if len(phases) > 1:
        raise UserError(f"a position has one phase, not {' and '.join(sorted(phases))}")
    name = phases.pop() or phase_name(int(game_map.board.first_year), 0)
    if phase_kind(name) == "retreats":
        raise UserError(f"{name}: it needs the orders before, which decide the retreats")
    return {"name": name, "units": units, "centers": all_centers(game_map, units, centers)}


def by_power(entries: Iterable[Entry], *kinds: EntryKind) -> dict[str, list[str]]:
    """Return power -> the texts of its entries of some kinds."""
    texts: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind in kinds:
            texts.setdefault(entry.power, []).append(entry.text)
    return texts


def all_centers(
    game_map: Map, units: Mapping[str, Sequence[str]], named: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return power -> its centers: those `named`, or of powers of which none are, the centers on
    which it stands and those of its home on which nobody does. `units` are texts by power."""
    board = game_map.board
    standing = {province_of(text): power for power, own in units.items() for text in own}
    owned = {power: list(codes) for power, codes in named.items()}
    taken = {code for codes in named.values() for code in codes}
    for v, code in enumerate(game_map.provinces):
        home = board.home_power[v]
        owner = standing.get(code, game_map.powers[home] if home != NONE else None)
        if board.province_center[v] != NONE and code not in taken and owner not in (None, *named):
            owned.setdefault(owner, []).append(code)
    return owned


def notes_of(remarks: Sequence[Remark]) -> tuple[list[str], list[str]]:
    """Return a note for each remark that may be an order, and one for each reason in GROUPED."""
    groups: dict[str, list[Remark]] = {}
    for remark in remarks:
        groups.setdefault(remark.reason, []).append(remark)
    own = [str(remark) for remark in remarks if remark.reason not in GROUPED]
    return own, [_group_note(groups[reason]) for reason in GROUPED if reason in groups]


def _group_note(group: Sequence[Remark]) -> str:
    """Return the note of remarks of one reason: `lines 3, 7-9, 'a', 'b': left out, ...`."""
    lines = sorted({remark.line for remark in group})
    runs = itertools.groupby(enumerate(lines), lambda item: item[1] - item[0])  # without a gap
    spans = [[line for _, line in run] for _, run in runs]
    numbers = [f"{span[0]}-{span[-1]}" if span[1:] else str(span[0]) for span in spans]
    if numbers[_MOST_SPANS:]:
        numbers[_MOST_SPANS:] = [f"and more up to {lines[-1]}"]
    shown = [quoted(printable(remark.text), 60) for remark in group[:_MOST_SHOWN]]
    shown += ["..."] * (len(group) > _MOST_SHOWN)
    plural = "s" * (len(lines) > 1)
    return f"line{plural} {', '.join(numbers)}, {', '.join(shown)}: {group[0].reason}"


def shown_line(line: int, text: str) -> str:
    """Return a text and its line's number for a message."""
    return f"line {line}, {quoted(printable(text), 60)}"
