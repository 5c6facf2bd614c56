"""Reports of games as text: mails, forums, chats, markdown, judges; see docs/elsewhere.md.

A line that names a phase begins it (`Movement results for Spring of 1901. (game.001)`, `S01`,
`Turn 2: Autumn 1902 Retreats`). A power's name, alone or before a colon, begins its orders, or its
units and `centers: Par, Mar`. Each line is a heading, orders, or a remark, which is passed over
with a note. A remark that may be a heading is a doubt: no orders are read below it.
"""

import html
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ..._suggest import printable, quoted
from ...constants import NONE, Terrain, phase_kind, phase_name
from ...errors import UserError
from ...rules import notation, reading
from ...rules.map import Map
from ..order_texts import order_texts, without_symbols
from .headings import DASHES, LABEL_OF, LIKE, Heading, Headings, more_powers, words_of

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE = 2000
_MOST_SHOWN, _MOST_SPANS = 5, 20  # texts and ranges of lines in a note
FORMS = (
    "a line names a phase (Spring 1901, S1901M, Movement results for Spring of 1901), and below it "
    "stand each power's name and orders (France: A Par-Bur, F Bre-MAO)"
)
# Why a text is passed over, or how it is read; one note has all lines of a reason.
NO_ORDERS, COUNTED = "left out, since no order is in it", "left out, since our rules count it"
HOLDS = "no order for this unit, so it holds"
GROUPED = (NO_ORDERS, COUNTED, HOLDS)
# Of an entry; position: a unit below such a label; "": a power without orders.
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
        return f"{_shown(self.line, self.text)}, is left out: {self.reason}"


class Report(NamedTuple):
    entries: list[Entry]
    remarks: list[Remark]


def read_report(game_map: Map, text: str) -> Report:
    """Return what a text says. UserError: orders stand under no power's name, or below a line that
    may be a heading and is not understood."""
    if len(text) > MOST_LETTERS:
        raise UserError(f"a text of orders may have at most {MOST_LETTERS:,} characters")
    reader = _Reader(game_map)
    for number, raw in enumerate(text.splitlines(), 1):
        if len(raw) > _MOST_OF_A_LINE:
            raise UserError(f"line {number} has more than {_MOST_OF_A_LINE:,} characters")
        for line in more_powers(game_map).split(_plain(game_map, raw)):
            if words_of(line := LIKE["idle_units"].sub("", line)):
                reader.read(number, line, marked=raw.lstrip().startswith("#"))
    return Report(reader.entries, reader.remarks)


def _plain(game_map: Map, line: str) -> str:
    """Return a line without marks of mails, markdown and HTML, and without orders struck out."""
    line = LIKE["struck"].sub(
        lambda m: m[0] if reading.no_order(game_map, m[1] or m[3]) else "", line
    )
    line = LIKE["tags"].sub("", without_symbols(html.unescape(line)))
    line = LIKE["dots"].sub("; ", LIKE["marks"].sub("", line.strip(), count=1)).replace("`", "")
    line = LIKE["marks"].sub("", line.strip("; \t"), count=1)
    plain = line.rstrip("=#*_~;- \t")
    return plain + "-" * (line[len(plain) :].count("-") == 1)  # A PAR - is no unit


class _Reader:
    """Reads line by line, and knows whose orders come next, and of which phase."""

    def __init__(self, game_map: Map):
        self.map = game_map
        self.entries: list[Entry] = []
        self.remarks: list[Remark] = []
        self.phase = self.section = self.power = ""  # of a power's line, and of those above it
        self.label = self.section_label = ""
        self.year = 0
        self.doubts: list[tuple[str, str]] = []  # phase or power that may be named, and the line

    def read(self, number: int, line: str, marked: bool) -> None:
        headings = Headings(self.map, self.phase, self.year)
        heading, rest = headings.split(line)
        if heading is None:
            if doubt := headings.doubt(line, marked):
                self.doubts.append((doubt, _shown(number, line)))
            heading = Heading(label=self.label)
        else:
            self._begin(heading, _shown(number, line), alone=not rest)
        self.label = heading.label or self.section_label
        phase = heading.phase or self.phase  # Retreats: A Mun - Sil
        entries, remarks = _read_line(self.map, phase, self.power, rest, number, self.label)
        orders = [entry for entry in entries if entry.kind != "center"]
        if orders and self.doubts:
            shown = "; ".join(f"{shown}, looks like a heading" for _, shown in self.doubts)
            raise UserError(
                f"{shown} and is not understood, so it is not clear whose orders are those of "
                f"line {number}, or when"
            )
        if orders and not self.power:
            raise UserError(f"{_shown(number, line)}, is under no power's name")
        if heading.power and not entries:
            entries = [Entry(phase, self.power, "", number)]
        self.entries += entries
        self.remarks += remarks

    def _begin(self, heading: Heading, shown: str, alone: bool) -> None:
        if heading.dated:
            self.phase = self.section = heading.phase
            self.year, self.power, self.section_label = heading.year, heading.power, heading.label
            self.doubts = [] if heading.phase else [("phase", shown)]
        elif heading.power:
            self.phase, self.power = heading.phase or self.section, heading.power
            self.doubts = [doubt for doubt in self.doubts if doubt[0] != "power"]
        elif alone:
            self.phase = self.section = heading.phase or self.section
            self.section_label = heading.label


def _read_line(
    game_map: Map, phase: str, power: str, line: str, number: int, label: str
) -> tuple[list[Entry], list[Remark]]:
    """Return what a line, behind its heading, has below a label, and what of it is not read."""
    entries, wrong = [], []
    if label == "centers" and LIKE["nobody"].match(line):
        return [], [Remark(number, line, NO_ORDERS)]
    for text, now in _labelled(game_map, phase, line, label):
        kind, written, reason = _classify(game_map, text, now)
        if reason:
            wrong.append(Remark(number, text, reason, kind))
        else:
            entries.append(Entry(phase, power, written, number, kind))
    if any(remark.kind == "center" for remark in wrong):  # the others may be nobody's
        entries = [entry for entry in entries if entry.kind != "center"]
    elif wrong and not entries:
        serious = power and any(_is_like_order(game_map, remark.text) for remark in wrong)
        wrong = [Remark(number, line, wrong[0].reason if serious else NO_ORDERS)]
    return entries, wrong


def _labelled(game_map: Map, phase: str, line: str, label: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line with their labels. Units of a winter's list have the verb or sign
    before them: `builds A Par, F Bre`, `+A Ber`."""
    winter = bool(phase) and phase_kind(phase) == "adjustments"
    for text, begins_centers in _with_results(game_map, line, winter):
        kind, listed = reading.order_kind(game_map, text), reading.listed_unit(game_map, text)
        label = "centers" if begins_centers else LABEL_OF.get(kind, label)
        if label == "centers" and (kind != NONE or listed):
            label = ""
        if text:
            takes_verb = winter and listed and label in LABEL_OF.values()
            yield (f"{label} {text}" if takes_verb else text), label


def _with_results(game_map: Map, line: str, winter: bool) -> list[tuple[str, bool]]:
    """Return the texts of a line, and whether `Centers` stands before each; behind it there may be
    none. Results that commas cut off come back to their order: `A Par-Bur, bounced`."""
    texts: list[tuple[str, bool]] = []
    parts = (_parts(game_map, text) for text in order_texts(line))
    for part in itertools.chain.from_iterable(parts):
        centers = LIKE["centers"].match(part)
        text = (centers[1] if centers else part).lstrip("" if winter else DASHES)
        text = LIKE["idle_units"].sub("", text)
        no_order = reading.order_kind(game_map, text) == NONE
        result = no_order and (reading.is_result(text) or told_retreat(game_map, f"({text})"))
        if result and text and not winter and texts and texts[-1][0]:
            texts[-1] = (f"{texts[-1][0]} ({text})", texts[-1][1])
        elif text and not LIKE["nothing"].match(text) and not reading.is_result(text):
            texts.append((text, bool(centers)))
        elif centers:
            texts.append(("", True))
    return texts


def _parts(game_map: Map, text: str) -> list[str]:
    """Return the orders of a text in which one may follow the other without a sign."""
    for match in LIKE["orders_begin"].finditer(text):
        head, rest = text[: match.start()], text[match.start() :]
        is_order = reading.order_kind(game_map, head) != NONE
        if is_order and LIKE["unit"].match(rest) and not LIKE["cause"].search(head):
            parts = _parts(game_map, rest)
            if reading.order_kind(game_map, parts[0]) != NONE:
                return [head.strip(), *parts]
    return [text]


def _classify(game_map: Map, text: str, label: str) -> tuple[EntryKind, str, str]:
    """Return the kind of an entry, how it is written, and why the text is none, or nothing."""
    unit = reading.listed_unit(game_map, text)
    if label != "centers" and unit is not None:
        return ("position" if label == "position" else "unit"), unit, ""
    if label != "centers":
        return "order", text, reading.no_order(game_map, text)
    try:
        kind, place = reading.read_place(game_map, text)
    except UserError as error:
        return "center", text, str(error)
    code = game_map.provinces[place.province]
    is_center = kind is None and game_map.board.province_center[place.province] != NONE
    return "center", code, "" if is_center else f"{code} is not a center"


def _is_like_order(game_map: Map, text: str) -> bool:
    """Tell whether a text may be an order with a mistake: it begins with a unit or a place."""
    unit = reading.ordered_unit(game_map, text, likely_kinds(game_map))
    return not LIKE["routine"].search(text) and bool(unit or LIKE["unit"].match(text))


def likely_kinds(game_map: Map) -> list[int]:
    """Return the UnitKind that is likely in each province."""
    return (game_map.board.terrain == Terrain.SEA).astype(int).tolist()


def told_retreat(game_map: Map, remark: str) -> str:
    """Return what a remark behind a movement order says of the unit's retreat: `R SIL`, `D`, or
    nothing."""
    for goal in LIKE["retreats"].findall(remark):
        try:
            return f"R {notation.place_text(game_map, reading.read_place(game_map, goal)[1])}"
        except UserError:
            continue
    return "D" if LIKE["disbands"].search(remark) else ""


def read_position(game_map: Map, report: Report) -> dict | None:
    """Return the state that a report of units says; None if it has orders."""
    units, centers = (
        by_power(report.entries, *kinds) for kinds in (("unit", "position"), ("center",))
    )
    if not units or any(entry.kind == "order" for entry in report.entries):
        return None
    for line, text, reason, _ in report.remarks:
        if reason not in GROUPED:
            raise UserError(f"{_shown(line, text)}, is no unit or center: {reason}")
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
    """Return power -> its centers: `named`, else those on which it stands, and its home if nobody
    else does."""
    board = game_map.board
    stands = {notation.province_of(text): power for power, texts in units.items() for text in texts}
    owned = {power: list(codes) for power, codes in named.items()}
    taken = {code for codes in named.values() for code in codes}
    for v, code in enumerate(game_map.provinces):
        home = board.home_power[v]
        owner = stands.get(code, game_map.powers[home] if home != NONE else None)
        if board.province_center[v] != NONE and code not in taken and owner not in (None, *named):
            owned.setdefault(owner, []).append(code)
    return owned


def notes_of(remarks: Iterable[Remark]) -> tuple[list[str], list[str]]:
    """Return a note for each remark that may be an order, and one for each reason of the others,
    which has all their lines."""
    own: list[str] = []
    groups: dict[str, list[Remark]] = {reason: [] for reason in GROUPED}
    for remark in remarks:
        if remark.reason in groups:
            groups[remark.reason].append(remark)
        else:
            own.append(str(remark))
    return own, [_group_note(group) for group in groups.values() if group]


def _group_note(group: Sequence[Remark]) -> str:
    lines = sorted({remark.line for remark in group})
    cuts = [i for i, line in enumerate(lines) if not i or line > lines[i - 1] + 1]
    spans = [lines[first:end] for first, end in zip(cuts, [*cuts[1:], None])]
    numbers = [f"{span[0]}-{span[-1]}" if span[1:] else str(span[0]) for span in spans]
    if numbers[_MOST_SPANS:]:
        numbers[_MOST_SPANS:] = [f"and more up to {lines[-1]}"]
    shown = [quoted(printable(remark.text), 60) for remark in group[:_MOST_SHOWN]]
    shown += ["..."] * (len(group) > _MOST_SHOWN)
    plural = "s" * (len(lines) > 1)
    return f"line{plural} {', '.join(numbers)}, {', '.join(shown)}: {group[0].reason}"


def _shown(line: int, text: str) -> str:
    return f"line {line}, {quoted(printable(text), 60)}"
