"""Reports of games as text: mails, forums, chats, markdown, judges; see docs/elsewhere.md.

A line that names a phase begins it (`Movement results for Spring of 1901. (game.001)`, `S01`,
`Turn 2: Autumn 1902 Retreats`). A power's name, alone or before a colon, begins its orders, or its
units and `centers: Par, Mar`. What is neither a heading nor orders is passed over with a remark.
Where such a line may be a heading, it is in doubt whose the orders below it are: an error.
"""

import html
import itertools
from collections.abc import Iterator

from ...constants import NONE, Terrain, phase_kind
from ...errors import UserError
from ...rules import notation, reading
from ...rules.map import Map
from ..order_texts import order_texts, without_symbols
from .headings import DASHES, LABEL_OF, LIKE, Heading, Headings, more_powers, words_of
from .reports import NO_ORDERS, Entry, EntryKind, Remark, Report, shown_line

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE = 2000
FORMS = (
    "a line names a phase (Spring 1901, S1901M, Movement results for Spring of 1901), and below it "
    "stand each power's name and orders (France: A Par-Bur, F Bre-MAO)"
)


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
    # A single dash stays, since `A PAR -` is an order with a mistake, and no unit.
    return plain + "-" * (line[len(plain) :].count("-") == 1)


class _Reader:
    """Reads line by line, and knows whose orders come next, and of which phase."""

    def __init__(self, game_map: Map):
        self.map = game_map
        self.entries: list[Entry] = []
        self.remarks: list[Remark] = []
        self.phase = self.power = self.label = ""  # of the line at hand
        self.section = self.section_label = ""  # phase and label of the powers that come
        self.year = 0  # where a line has named nothing else
        self.doubts: list[tuple[str, str]] = []  # what may be named (phase, power), and the line

    def read(self, number: int, line: str, marked: bool) -> None:
        headings = Headings(self.map, self.phase, self.year)
        heading, rest = headings.split(line)
        if heading is not None:
            self._begin(heading, shown_line(number, line), alone=not rest)
        elif doubt := headings.doubt(line, marked):
            self.doubts.append((doubt, shown_line(number, line)))
        heading = heading or Heading(label=self.label)
        self.label = heading.label or self.section_label
        phase = heading.phase or self.phase  # Retreats: A Mun - Sil
        entries, remarks = _read_line(self.map, phase, self.power, rest, number, self.label)
        if any(entry.kind != "center" for entry in entries):
            self._check_owner(number, line)
        if heading.power and not entries:
            entries = [Entry(phase, self.power, "", number)]
        self.entries += entries
        self.remarks += remarks

    def _check_owner(self, number: int, line: str) -> None:
        """Raise UserError if it is in doubt whose the orders of a line are, or when."""
        if self.doubts:
            shown = "; ".join(f"{shown}, looks like a heading" for _, shown in self.doubts)
            raise UserError(
                f"{shown} and is not understood, so it is not clear whose orders are those of "
                f"line {number}, or when"
            )
        if not self.power:
            raise UserError(f"{shown_line(number, line)}, is under no power's name")

    def _begin(self, heading: Heading, shown: str, alone: bool) -> None:
        """Take up a heading, the line `shown`; `alone`: no orders follow in the line."""
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
    """Return what a line, without its heading, says below a label, and what of it is not read."""
    entries, wrong = [], []
    if label == "centers" and LIKE["nobody"].match(line):
        return [], [Remark(number, line, NO_ORDERS)]
    for text, own_label in _labelled(game_map, phase, line, label):
        kind, written, reason = _classify(game_map, text, own_label)
        if reason:
            wrong.append(Remark(number, text, reason, kind))
        else:
            entries.append(Entry(phase, power, written, number, kind))
    if any(remark.kind == "center" for remark in wrong):  # the others may be nobody's
        entries = [entry for entry in entries if entry.kind != "center"]
    elif wrong and not entries:  # one remark for the line; of a line of talk it is no mistake
        serious = power and any(_is_like_order(game_map, remark.text) for remark in wrong)
        wrong = [Remark(number, line, wrong[0].reason if serious else NO_ORDERS)]
    return entries, wrong


def _labelled(game_map: Map, phase: str, line: str, label: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line with their labels. In winter an order's verb goes for the units
    behind it: `builds A Par, F Bre` yields `builds A Par` and `build F Bre`."""
    winter = bool(phase) and phase_kind(phase) == "adjustments"
    for text, begins_centers in _with_results(game_map, line, winter):
        kind, listed = reading.order_kind(game_map, text), reading.listed_unit(game_map, text)
        label = "centers" if begins_centers else LABEL_OF.get(kind, label)
        if label == "centers" and (kind != NONE or listed):  # units end a list of centers
            label = ""
        if text:
            takes_verb = winter and listed and label in LABEL_OF.values()
            yield (f"{label} {text}" if takes_verb else text), label


def _with_results(game_map: Map, line: str, winter: bool) -> list[tuple[str, bool]]:
    """Return the texts of a line, and whether `Centers` stands before each, which may stand alone.
    Results that commas cut off come back to their order: `A Par-Bur, bounced`."""
    texts: list[tuple[str, bool]] = []
    parts = (_parts(game_map, text) for text in order_texts(line))
    for part in itertools.chain.from_iterable(parts):
        centers = LIKE["centers"].match(part)
        text = (centers[1] if centers else part).lstrip("" if winter else DASHES)
        text = LIKE["idle_units"].sub("", text)
        no_order = reading.order_kind(game_map, text) == NONE
        result = no_order and (reading.is_result(text) or retreat_in_remark(game_map, f"({text})"))
        if result and text and not winter and texts and texts[-1][0]:
            texts[-1] = (f"{texts[-1][0]} ({text})", texts[-1][1])
        elif text and not LIKE["nothing"].match(text) and not reading.is_result(text):
            texts.append((text, bool(centers)))
        elif centers:
            texts.append(("", True))
    return texts


def _parts(game_map: Map, text: str) -> list[str]:
    """Return the orders of a text that may have no sign between them: `A Par-Bur F Bre-MAO`."""
    for match in LIKE["orders_begin"].finditer(text):
        head, rest = text[: match.start()], text[match.start() :]
        is_order = reading.order_kind(game_map, head) != NONE
        if is_order and LIKE["unit"].match(rest) and not LIKE["cause"].search(head):
            parts = _parts(game_map, rest)
            if reading.order_kind(game_map, parts[0]) != NONE:
                return [head.strip(), *parts]
    return [text]


def _classify(game_map: Map, text: str, label: str) -> tuple[EntryKind, str, str]:
    """Return what a text below a label is or should be, how it is written there, and if it cannot
    be read, why."""
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


def retreat_in_remark(game_map: Map, remark: str) -> str:
    """Return what a remark behind a movement order says of the unit's retreat: `R SIL`, `D`, or
    nothing."""
    for goal in LIKE["retreats"].findall(remark):
        try:
            return f"R {notation.place_text(game_map, reading.read_place(game_map, goal)[1])}"
        except UserError:
            continue
    return "D" if LIKE["disbands"].search(remark) else ""
