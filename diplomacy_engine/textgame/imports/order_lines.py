"""A line of a report, without its heading: the orders, units and centers in it.

The stages, for the line `A Par-Bur, bounced, F Bre-MAO F Mar S A Par-Bur`:

1. `_pieces` cuts it into `A Par-Bur (bounced)`, `F Bre-MAO` and `F Mar S A Par-Bur`: results go
   back to the order before them.
2. `_labelled` says below which label each piece stands, such as `centers` behind `Centers:`.
3. `_classify` says of each what it is, an order, a unit or a center, and if it cannot be read, why.
4. `read_line` makes entries of those that can be read, and remarks of the others.
"""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ...constants import NONE, phase_kind
from ...errors import UserError
from ...rules import notation, reading
from ...rules.map import Map
from ..order_texts import order_texts
from .headings import LABEL_OF
from .lexicon import DASHES, PATTERNS
from .reports import NO_ORDERS, Entry, EntryKind, Remark


class Line(NamedTuple):
    """A line without its heading, and what the headings before it say of it."""

    number: int
    text: str
    phase: str
    power: str
    label: str  # build, remove, position, centers or nothing

    @property
    def in_winter(self) -> bool:
        return bool(self.phase) and phase_kind(self.phase) == "adjustments"


class _Piece(NamedTuple):
    """A part of a line: an order, a unit or a center, with the results behind it."""

    text: str  # "": `Centers` alone
    begins_centers: bool  # whether `Centers` stands before it


class _Classified(NamedTuple):
    """What a piece is."""

    kind: EntryKind  # what it is, or should be
    text: str  # how an entry has it
    why_unread: str  # "": it can be read


def read_line(game_map: Map, line: Line) -> tuple[list[Entry], list[Remark]]:
    """Return what a line says, and what of it is not read.

    Where a center cannot be read, those beside it may be nobody's (`Centers: Par, Mar, 3 neutral`),
    so all of them are left out. Where nothing can be read, one remark has the whole line.
    """
    if line.label == "centers" and PATTERNS.nobody.match(line.text):
        return [], [Remark(line.number, line.text, NO_ORDERS)]
    entries, remarks = [], []
    for text, label in _labelled(game_map, line):
        piece = _classify(game_map, text, label)
        if piece.why_unread:
            remarks.append(Remark(line.number, text, piece.why_unread, piece.kind))
        else:
            entries.append(Entry(line.phase, line.power, piece.text, line.number, piece.kind))
    if any(remark.kind == "center" for remark in remarks):
        return [entry for entry in entries if entry.kind != "center"], remarks
    if remarks and not entries:
        return [], [_remark_on_all(game_map, line, remarks)]
    return entries, remarks


def _remark_on_all(game_map: Map, line: Line, remarks: list[Remark]) -> Remark:
    """Return one remark on a line of which nothing can be read. Below a power's name, with what may
    be an order, it is a mistake; any other line is talk."""
    is_mistake = line.power and any(_is_like_order(game_map, remark.text) for remark in remarks)
    return Remark(line.number, line.text, remarks[0].reason if is_mistake else NO_ORDERS)


def _labelled(game_map: Map, line: Line) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a line with the labels they stand below.

    In winter an order's verb goes for the units behind it, too: `builds A Par, F Bre` yields
    `builds A Par` and `build F Bre`, both below `build`.
    """
    label = line.label
    for text, begins_centers in _pieces(game_map, line):
        kind, unit = reading.order_kind(game_map, text), reading.listed_unit(game_map, text)
        if begins_centers:
            label = "centers"
        elif kind in LABEL_OF:
            label = LABEL_OF[kind]
        if label == "centers" and (kind != NONE or unit):  # an order or a unit ends their list
            label = ""
        if text and unit and line.in_winter and label in LABEL_OF.values():
            yield f"{label} {text}", label
        elif text:
            yield text, label


def _pieces(game_map: Map, line: Line) -> list[_Piece]:
    """Return the pieces of a line. Results that commas cut off come back to their order: `A
    Par-Bur, bounced` is `A Par-Bur (bounced)`; in winter nothing has a result."""
    pieces: list[_Piece] = []
    parts = (_parts(game_map, text) for text in order_texts(line.text))
    for part in itertools.chain.from_iterable(parts):
        piece = _piece(part, line.in_winter)
        text = piece.text
        last = pieces[-1] if pieces else None
        if last and last.text and text and not line.in_winter and _is_result(game_map, text):
            pieces[-1] = last._replace(text=f"{last.text} ({text})")
        elif text and not PATTERNS.nothing.match(text) and not reading.is_result(text):
            pieces.append(piece)
        elif piece.begins_centers:
            pieces.append(_Piece("", True))
    return pieces


def _piece(part: str, in_winter: bool) -> _Piece:
    """Return a part of a line without what may stand before it: `Centers:`, the sign of a list and
    `No moves received:`."""
    centers = PATTERNS.centers.match(part)
    text = centers[1] if centers else part
    if not in_winter:  # there a dash removes: `- A Tyr`
        text = text.lstrip(DASHES)
    return _Piece(PATTERNS.idle_units.sub("", text), bool(centers))


def _parts(game_map: Map, text: str) -> list[str]:
    """Return the orders of a text that may have no sign between them: `A Par-Bur F Bre-MAO`, or
    behind a result no letter: `Par-Bur (bounced) Bre-MAO`."""
    words = [*PATTERNS.words.finditer(text)]
    ends = {match.end() for match in words if match[1][-1] in ".)]"}
    results = {match.end() for match in words if reading.is_result(match[1])}
    units = {match.start() for match in PATTERNS.orders_begin.finditer(text)}
    begins = sorted(ends | results | {n for n in units if PATTERNS.unit.match(text, n)})

    @cache
    def parts_from(start: int) -> list[str]:
        for begin in (begin for begin in begins if begin > start):
            head = text[start:begin].strip()
            if reading.order_kind(game_map, head) != NONE and not PATTERNS.cause.search(head):
                first, *others = parts_from(begin)
                is_order = reading.order_kind(game_map, first) != NONE
                if begin in ends and not _is_result(game_map, first):
                    is_order |= _is_like_order(game_map, first)
                if is_order:
                    return [head, first, *others]
        return [text[start:]]

    return parts_from(0)


def _is_result(game_map: Map, text: str) -> bool:
    """Tell whether a text is the result of an order: `bounced`, `retreats to Silesia`; not
    `A Mun R Sil`."""
    if reading.order_kind(game_map, text) != NONE:
        return False
    return reading.is_result(text) or bool(retreat_in_remark(game_map, f"({text})"))


def _classify(game_map: Map, text: str, label: str) -> _Classified:
    """Return what a text below a label is or should be."""
    if label == "centers":
        return _read_center(game_map, text)
    unit = reading.listed_unit(game_map, text)
    if unit is not None:
        return _Classified("position" if label == "position" else "unit", unit, "")
    return _Classified("order", text, reading.no_order(game_map, text))


def _read_center(game_map: Map, text: str) -> _Classified:
    """Return the code of a center, and if a text is none, why."""
    try:
        kind, place = reading.read_place(game_map, text)
    except UserError as error:
        return _Classified("center", text, str(error))
    code = game_map.provinces[place.province]
    is_center = kind is None and game_map.board.province_center[place.province] != NONE
    return _Classified("center", code, "" if is_center else f"{code} is not a center")


def _is_like_order(game_map: Map, text: str) -> bool:
    """Tell whether a text may be an order with a mistake: it begins with a unit or a place."""
    unit = reading.ordered_unit(game_map, text, reading.likely_kinds(game_map))
    return not PATTERNS.routine.search(text) and bool(unit or PATTERNS.unit.match(text))


def retreat_in_remark(game_map: Map, remark: str) -> str:
    """Return what a remark behind a movement order says of the unit's retreat: `R SIL` of
    `dislodged, retreats to Silesia`, `D` of `disbanded`, or nothing."""
    for goal in PATTERNS.retreats.findall(remark):
        try:
            return f"R {notation.place_text(game_map, reading.read_place(game_map, goal)[1])}"
        except UserError:
            continue
    return "D" if PATTERNS.disbands.search(remark) else ""
