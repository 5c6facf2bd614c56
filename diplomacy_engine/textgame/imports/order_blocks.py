"""Reports of games as text: mails, forums, chats, markdown, judges; see docs/elsewhere.md.

A line that names a phase begins it (`Movement results for Spring of 1901. (game.001)`, `S01`,
`Turn 2: Autumn 1902 Retreats`). A power's name, alone or before a colon, begins its orders, or its
units and `centers: Par, Mar`. What is neither a heading nor orders is passed over with a remark.
Where such a line may be a heading, it is in doubt whose the orders below it are: an error.

The stages of a line: `_plain` takes its marks away; `HeadingReader.split` (headings.py) cuts off
its heading, which `_Reader` takes up; `read_line` (order_lines.py) reads the orders in the rest.
The result is a `Report` (reports.py), of which report_games.py makes a game.
"""

import html
import re

from ...errors import UserError
from ...rules import reading
from ...rules.map import Map
from ..order_texts import without_symbols
from .headings import Doubt, Heading, HeadingReader
from .lexicon import PATTERNS, power_begins_pattern, words_of
from .order_lines import Line, read_line
from .reports import Entry, Remark, Report, shown_line

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
        marked = raw.lstrip().startswith("#")  # as a heading of markdown
        for part in power_begins_pattern(game_map).split(_plain(game_map, raw)):
            line = PATTERNS.idle_units.sub("", part)
            if words_of(line):
                reader.read(number, line, marked)
    return Report(reader.entries, reader.remarks)


def _plain(game_map: Map, line: str) -> str:
    """Return a line without marks of mails, markdown and HTML, and without orders struck out:
    `A Par-Bur; F Bre-MAO` for `> - **A Par-Bur** | F Bre-MAO ~~A Mar H~~`."""
    line = _without_struck_orders(game_map, line)
    line = without_symbols(html.unescape(line))
    line = PATTERNS.tags.sub("", line)
    line = PATTERNS.marks.sub("", line.strip(), count=1)
    line = PATTERNS.dots.sub("; ", line)
    line = line.replace("`", "")
    line = PATTERNS.marks.sub("", line.strip("; \t"), count=1)  # those behind a dot
    plain = line.rstrip("=#*_~;- \t")
    # A single dash stays, since `A PAR -` is an order with a mistake, and no unit.
    if line[len(plain) :].count("-") == 1:
        return f"{plain}-"
    return plain


def _without_struck_orders(game_map: Map, line: str) -> str:
    """Return a line without the orders that are struck out; other struck text stays."""

    def text_that_stays(match: re.Match[str]) -> str:
        why_no_order = reading.no_order(game_map, match["markdown"] or match["html"])
        return match[0] if why_no_order else ""

    return PATTERNS.struck.sub(text_that_stays, line)


class _Reader:
    """Reads line by line, and knows whose orders come next, and of which phase.

    Spring 1901              names the phase: a section begins
    France: A Par-Bur        the power, and the first of its orders
    F Bre-MAO                another one of FRANCE
    Germany, retreats        the power, and a phase for it alone
    A Mun R Sil              of S1901R
    Italy                    the power; the phase is the section's
    centers: Ven, Rom        the label of this line alone
    Builds                   a phase, and the label of all lines of the section
    """

    def __init__(self, game_map: Map):
        self.map = game_map
        # What has been read.
        self.entries: list[Entry] = []
        self.remarks: list[Remark] = []
        # Of the lines that come.
        self.phase = ""
        self.power = ""
        self.label = ""
        # Of the powers that come.
        self.section_phase = ""
        self.section_label = ""
        self.year = 0  # where the last date was a year alone
        # Lines that may be headings with a mistake: what they may name, and the line.
        self.doubts: list[tuple[Doubt, str]] = []

    def read(self, number: int, text: str, marked: bool) -> None:
        """Read a line; `marked`: it looks like a heading of markdown."""
        heading_reader = HeadingReader(self.map, self.phase, self.year)
        heading, rest = heading_reader.split(text)
        if heading is not None:
            self._begin(heading, shown_line(number, text), alone=not rest)
            self.label = heading.label or self.section_label
        else:
            self.label = self.label or self.section_label
            if doubt := heading_reader.doubt(text, marked):
                self.doubts.append((doubt, shown_line(number, text)))
        # `Retreats: A Mun - Sil` names the phase of this line alone.
        phase = heading.phase if heading and heading.phase else self.phase
        entries, remarks = read_line(self.map, Line(number, rest, phase, self.power, self.label))
        if any(entry.kind != "center" for entry in entries):
            self._check_owner(number, text)
        if heading and heading.power and not entries:
            entries = [Entry(phase, self.power, "", number)]
        self.entries += entries
        self.remarks += remarks

    def _begin(self, heading: Heading, shown: str, alone: bool) -> None:
        """Take up a heading, the line `shown`; `alone`: no orders follow in the line."""
        if heading.dated:  # `Spring 1901`: a section begins
            self.phase = self.section_phase = heading.phase
            self.section_label = heading.label
            self.power = heading.power
            self.year = heading.year
            self.doubts = [] if heading.phase else [("phase", shown)]
        elif heading.power:  # `France: A Par-Bur`; `Germany, retreats`, a phase for it alone
            self.phase = heading.phase or self.section_phase
            self.power = heading.power
            self.doubts = [doubt for doubt in self.doubts if doubt[0] != "power"]
        elif alone:  # `Builds`, for the section; not `centers: Ven, Rom`, for its line
            self.phase = self.section_phase = heading.phase or self.section_phase
            self.section_label = heading.label

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
