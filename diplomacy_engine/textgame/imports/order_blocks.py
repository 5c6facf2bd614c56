"""Reports of games as text: mails, forums, chats, markdown, judges; see docs/elsewhere.md.

A line that names a phase begins it (`Movement results for Spring of 1901. (game.001)`, `S01`,
`Turn 2: Autumn 1902 Retreats`). A power's name, alone or before a colon, begins its orders, or its
units and `centers: Par, Mar`. Each line is a heading, orders, or a remark, which is passed over
with a note. A remark that may be a heading is a doubt: no orders are read below it.
"""

import html
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..._suggest import printable, quoted
from ...constants import NONE, OrderKind, Terrain, parse_phase, phase_kind, phase_name
from ...errors import UserError
from ...records import shipped_patterns, shipped_toml
from ...rules import notation, reading
from ...rules.map import Map
from ...rules.names import POWERS, power_called
from ..order_texts import order_texts, without_symbols

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE, _MOST_OF_A_HEADING, _MOST_WORDS = 2000, 120, 20
_FEW_WORDS, _MOST_OF_A_PERSON, _MOST_BEGINS = 4, 3, 8
_MOST_SHOWN, _MOST_SPANS = 5, 20  # texts and ranges of lines in a note
_WORDS = shipped_toml(__package__, "headings.toml")
_SEASONS = {
    word: number
    for number, name in ((0, "spring"), (1, "summer"), (2, "fall"), (4, "winter"))
    for word in _WORDS["seasons"][name].split()
}
_KINDS = {
    word: kind for kind, words in enumerate(_WORDS["kinds"].values()) for word in words.split()
}
_LABELS = {word: label for label, words in _WORDS["labels"].items() for word in words.split()}
_BESIDE = {*_WORDS["beside"].split(), *_LABELS} - {*_KINDS}
_IDLE, _ABOUT = ({*_WORDS[name].split()} for name in ("idle", "about"))
_LIKE = shipped_patterns(
    _WORDS["patterns"], {name.upper(): _WORDS[name] for name in ("time", "month")}
)
_DASHES = "+-\u2013\u2212 "
_LABEL_OF = {OrderKind.BUILD: "build", OrderKind.DISBAND: "remove"}
FORMS = (
    "a line names a phase (Spring 1901, S1901M, Movement results for Spring of 1901), and below it "
    "stand each power's name and orders (France: A Par-Bur, F Bre-MAO)"
)
# Why a text is passed over, or how it is read; one note has all lines of a reason.
NO_ORDERS, COUNTED = "left out, since no order is in it", "left out, since our rules count it"
HOLDS = "no order for this unit, so it holds"
GROUPED = (NO_ORDERS, COUNTED, HOLDS)


class Entry(NamedTuple):
    """An order, a unit or a center of a power, and where it stands."""

    phase: str  # empty where none is named before it
    power: str
    text: str
    line: int
    kind: str = ""  # order; unit; position (a unit below such a label); center; else no orders


class Remark(NamedTuple):
    """What a line has that is not read as it is written, and why."""

    line: int
    text: str
    reason: str
    kind: str = ""  # what it should be, as of an entry

    def __str__(self) -> str:
        return f"{_shown(self.line, self.text)}, is left out: {self.reason}"


class Report(NamedTuple):
    entries: list[Entry]
    remarks: list[Remark]


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


class Heading(NamedTuple):
    """What a line says of the lines below it."""

    phase: str = ""
    power: str = ""
    dated: bool = False  # whether it names a season or a year
    year: int = 0  # of a line that names no season
    label: str = ""  # what is below it: build, remove, position, centers


_PHASE_WORDS = {*_SEASONS, *_KINDS, *_BESIDE, *_IDLE}
_SEASON_LIKE = re.compile(
    rf"\b(?:{'|'.join(word for word in _SEASONS if len(word) > 3)})\b|\b[sfw]\d\d", re.IGNORECASE
)


def _is_name(word: str) -> bool:
    return word[0].isupper() or word[0] == "@" or any(map(str.isdecimal, word))


@lru_cache(maxsize=16)
def _names(game_map: Map) -> re.Pattern:
    """Match what a map's powers are called, with `Orders for the` before it."""
    names = [name for power in game_map.powers for name in (power, *POWERS.get(power, ()))]
    spaced = [r"[\W_]+".join(map(re.escape, re.split(r"[\W_]+", name))) for name in names]
    either = "|".join(sorted(spaced, key=len, reverse=True))
    return re.compile(rf"(?:\b(?:orders|moves|of|for|the)\s+)*\b(?:{either})\b", re.IGNORECASE)


@lru_cache(maxsize=16)
def _more_powers(game_map: Map) -> re.Pattern:
    """Match before the name of a power that begins its orders within a line."""
    named = rf"(?={_names(game_map).pattern}(?:\s*\([^()]*\))?\s*:)"
    return re.compile(rf"(?<=[:;.,|])\s*{named}|\s\s{named}", re.IGNORECASE)


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = re.sub("['\u2019]s\\b|[\u0300-\u036f]", "", plain)
    names = re.findall(r"unit.placement|[^\W\d_]+|\d+", plain)
    return [word.replace(" ", "-") for word in names]


def _year_beside(words: Sequence[str], at: int) -> int | None:
    """Return where the year of the season `at` stands: behind it or before it."""
    for step in (1, -1):
        i = at + step
        while 0 <= i < len(words) and (words[i] in _BESIDE or words[i] in _KINDS):
            i += step
        if 0 <= i < len(words) and words[i].isdecimal():
            return i
    return None


def _shown(line: int, text: str) -> str:
    return f"line {line}, {quoted(printable(text), 60)}"


def read_report(game_map: Map, text: str) -> Report:
    """Return what a text says. UserError: orders stand under no power's name, or below a line that
    may be a heading and is not understood."""
    if len(text) > MOST_LETTERS:
        raise UserError(f"a text of orders may have at most {MOST_LETTERS:,} characters")
    reader = _Reader(game_map)
    for number, raw in enumerate(text.splitlines(), 1):
        if len(raw) > _MOST_OF_A_LINE:
            raise UserError(f"line {number} has more than {_MOST_OF_A_LINE:,} characters")
        for line in _more_powers(game_map).split(_plain(game_map, raw)):
            if _words(line := _LIKE["idle_units"].sub("", line)):
                reader.read(number, line, marked=raw.lstrip().startswith("#"))
    return Report(reader.entries, reader.remarks)


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
            doubt = headings.doubt(line, marked)
            self.doubts += [(doubt, _shown(number, line))] * bool(doubt)
            heading = Heading(label=self.label)
        else:
            self._begin(heading, _shown(number, line), alone=not rest)
        self.label = heading.label or self.section_label
        phase = heading.phase or self.phase  # Retreats: A Mun - Sil
        entries, remarks = _read_line(self.map, Entry(phase, self.power, rest, number), self.label)
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


def _read_line(game_map: Map, line: Entry, label: str) -> tuple[list[Entry], list[Remark]]:
    """Return what the text of a line has below a label, and what of it is not read."""
    entries, wrong = [], []
    if label == "centers" and _LIKE["nobody"].match(line.text):
        return [], [Remark(line.line, line.text, NO_ORDERS)]
    for text, now in _labelled(game_map, line, label):
        kind, written, reason = _read(game_map, text, now)
        if reason:
            wrong.append(Remark(line.line, text, reason, kind))
        else:
            entries.append(line._replace(text=written, kind=kind))
    if any(remark.kind == "center" for remark in wrong):  # the others may be nobody's
        entries = [entry for entry in entries if entry.kind != "center"]
    elif wrong and not entries:
        serious = line.power and any(_is_like_order(game_map, remark.text) for remark in wrong)
        wrong = [Remark(line.line, line.text, wrong[0].reason if serious else NO_ORDERS)]
    return entries, wrong


def _labelled(game_map: Map, line: Entry, label: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line with their labels. Results that commas cut off come back to their
    order, and units of a winter's list have the verb or sign before them: `builds A Par, F Bre`,
    `+A Ber`."""
    winter = bool(line.phase) and phase_kind(line.phase) == "adjustments"
    last = ""
    parts = (_parts(game_map, text) for text in order_texts(line.text))
    for part in itertools.chain.from_iterable(parts):
        centers = _LIKE["centers"].match(part)
        text = (centers[1] if centers else part).lstrip("" if winter else _DASHES)
        text = _LIKE["idle_units"].sub("", text)
        kind = reading.order_kind(game_map, text)
        result = kind == NONE and (reading.is_result(text) or told_retreat(game_map, f"({text})"))
        if result and last and not winter:
            last += f" ({text})"
        elif text and not _LIKE["nothing"].match(text) and not reading.is_result(text):
            if last:
                yield last, label
            listed = reading.listed_unit(game_map, text)
            label = "centers" if centers else _LABEL_OF.get(kind, label)
            if label == "centers" and (kind != NONE or listed):
                label = ""
            verb = f"{label} " * bool(winter and listed and label in _LABEL_OF.values())
            last = verb + text
        elif centers:
            label = "centers"
    if last:
        yield last, label


def _parts(game_map: Map, text: str) -> list[str]:
    """Return the orders of a text in which one may follow the other without a sign."""
    for match in _LIKE["orders_begin"].finditer(text):
        head, rest = text[: match.start()], text[match.start() :]
        is_order = reading.order_kind(game_map, head) != NONE
        if is_order and _LIKE["unit"].match(rest) and not _LIKE["cause"].search(head):
            parts = _parts(game_map, rest)
            if reading.order_kind(game_map, parts[0]) != NONE:
                return [head.strip(), *parts]
    return [text]


def _read(game_map: Map, text: str, label: str) -> tuple[str, str, str]:
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
    return not _LIKE["routine"].search(text) and bool(unit or _LIKE["unit"].match(text))


def likely_kinds(game_map: Map) -> list[int]:
    """Return the UnitKind that is likely in each province."""
    return (game_map.board.terrain == Terrain.SEA).astype(int).tolist()


def told_retreat(game_map: Map, remark: str) -> str:
    """Return what a remark behind a movement order says of the unit's retreat: `R SIL`, `D`, or
    nothing."""
    for goal in _LIKE["retreats"].findall(remark):
        try:
            return f"R {notation.place_text(game_map, reading.read_place(game_map, goal)[1])}"
        except UserError:
            continue
    return "D" if _LIKE["disbands"].search(remark) else ""


def _is_order(game_map: Map, text: str) -> bool:
    is_unit = reading.listed_unit(game_map, text) is not None
    return is_unit or reading.order_kind(game_map, text) != NONE


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


def by_power(entries: Iterable[Entry], *kinds: str) -> dict[str, list[str]]:
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


def _plain(game_map: Map, line: str) -> str:
    """Return a line without marks of mails, markdown and HTML, and without orders struck out."""
    line = _LIKE["struck"].sub(
        lambda m: m[0] if reading.no_order(game_map, m[1] or m[3]) else "", line
    )
    line = _LIKE["tags"].sub("", without_symbols(html.unescape(line)))
    line = _LIKE["dots"].sub("; ", _LIKE["marks"].sub("", line.strip(), count=1)).replace("`", "")
    line = _LIKE["marks"].sub("", line.strip("; \t"), count=1)
    plain = line.rstrip("=#*_~;- \t")
    return plain + "-" * (line[len(plain) :].count("-") == 1)  # A PAR - is no unit


class Headings:
    """What lines name after the phase `before`, below a line that named only the year `year`."""

    def __init__(self, game_map: Map, before: str = "", year: int = 0):
        self.map, self.before, self.year = game_map, before, year
        self.first_year = int(game_map.board.first_year)  # years of two digits are in its century

    def split(self, line: str) -> tuple[Heading | None, str]:
        """Return the heading with which a line begins, if it has one, and the rest of the line."""
        for head, rest in self._cuts(line):
            heading = self.read(head)
            about = head if self._orderly(rest) else line
            late = heading and heading.dated and _LIKE["due"].search(about)
            if not head or (heading and not late):
                return heading, rest
        return None, line

    def _cuts(self, line: str) -> Iterator[tuple[str, str]]:
        """Yield where the heading of a line may end, the likeliest first."""
        matches = itertools.islice(_LIKE["orders_begin"].finditer(line), _MOST_BEGINS)
        begins = [match.start() for match in matches]
        cuts = [at for at in begins if self._orderly(line[at:])] + [len(line)]
        cuts += [0] * self._orderly(line)
        named = _names(self.map).match(line)
        cuts += [named.end()] if named and self._orderly(line[named.end() :]) else []
        cuts += [at for at in begins if at and line[at - 1] == ":"]
        yield from ((line[:at], line[at:]) for at in cuts)

    def _orderly(self, text: str) -> bool:
        texts = [text.lstrip(_DASHES) for text in order_texts(text)]
        return bool(texts and texts[0]) and (
            bool(_LIKE["nothing"].match(texts[0])) or _is_order(self.map, texts[0])
        )

    def doubt(self, line: str, marked: bool) -> str:
        """Return what a line that was not understood may name: `phase`, `power` or nothing.
        `marked`: whether it looks like a heading of markdown."""
        head, colon, rest = re.sub(r"[(\[].*?[)\]]", " ", line).partition(":")
        words, digit = _words(line), re.search(r"\d", line)
        short, name = len(words) <= _FEW_WORDS, _names(self.map)
        seasons = any(len(word) > 3 and word in _SEASONS for word in words)
        years = any(w.isdecimal() and abs(int(w) - self.first_year - 49) < 50 for w in words)
        phase = _LIKE["phase"].match(line) or (seasons and (short or digit)) or (years and short)
        none = _LIKE["no_phase"].search(line) and not digit
        headed = colon and len(_words(head)) <= _FEW_WORDS and (not rest or self._orderly(rest))
        power = name.match(line) or (short and name.search(line)) or headed or marked
        if any(_is_order(self.map, text) for text in order_texts(line)[:1]):
            return ""
        if phase and not none and not self._is_now(words):
            return "phase"
        return "power" if power else ""

    def _is_now(self, words: Sequence[str]) -> bool:
        """Tell whether words name no season but that of the phase at hand."""
        dates, _ = self._dates(words)
        year, number = parse_phase(self.before) if self.before else (self.first_year, 0)
        return dates == {(number // 2 * 2, year)}

    def read(self, head: str) -> Heading | None:
        """Return what a text names, None if it is no heading. Brackets, names of games and of
        persons may stand beside, but nothing that may name something else."""
        if len(head) > _MOST_OF_A_HEADING:
            return None
        plain = _LIKE["aside"].sub(" ", head)
        short = _LIKE["game"].sub("", plain)
        return self._named(plain) or self._named(short) or self._among_others(short)

    def _among_others(self, head: str) -> Heading | None:
        """Return what those parts of a text name that are of a heading."""
        parts = _LIKE["parts"].split(head)
        own = [self._is_of_heading(part) for part in parts]
        heading = self._named(" ".join(itertools.compress(parts, own)))
        if heading is None or not (heading.dated or heading.power):
            return None
        if any(map(_LIKE["unit"].match, parts)):  # an order with a mistake
            return None
        first, others = own.index(True), (at for at in range(len(parts)) if not own[at])
        fit = all(self._is_beside(parts, at, first, heading.dated) for at in others)
        return heading if fit else None

    def _is_beside(self, parts: Sequence[str], at: int, first: int, dated: bool) -> bool:
        """Tell whether a part may stand beside those of a heading, of which `first` is one: a
        person, a bracket; beside a phase also something else."""
        part, names = parts[at], parts[at].split()
        other = _names(self.map).search(part) or _ABOUT & {*_words(part)}
        person = len(names) <= _MOST_OF_A_PERSON and all(map(_is_name, names))
        behind = at > first and parts[at - 1].strip() not in (",", ":", ".")
        before = at < first and parts[first][0] in "([{"
        stands = not other and not _SEASON_LIKE.search(part)
        if not _words(part) or part[0] in "([{":
            return True
        return bool(stands and (dated or (person and (behind or before))))

    def _is_of_heading(self, part: str) -> bool:
        words = _words(part)
        others = " ".join(w for w in words if w not in _PHASE_WORDS and not w.isdecimal())
        count = re.fullmatch(r"[(\[{]\d{1,3}[)\]}]", part)
        return bool(words) and not count and (not others or self._power(others) is not None)

    def _power(self, text: str) -> str | None:
        names = _names(self.map).findall(text)
        powers = {power_called(self.map, name) for name in names or [text]}
        between = _names(self.map).sub("", text).strip() if names else ""
        return powers.pop() if len(powers) == 1 and not between else None

    def _named(self, text: str) -> Heading | None:
        """Return what the words of a text name if each of them says something."""
        words = _words(text)[: _MOST_WORDS + 1]
        if not 0 < len(words) <= _MOST_WORDS:
            return None
        dates, rest = self._dates(words)
        kinds = [_KINDS[w] for w in rest if w in _KINDS and (dates or len(w) > 1)]
        labels = {_LABELS[w] for w in words if w in _LABELS}
        label = labels.pop() if len(labels) == 1 else ""
        label = "" if dates and label in _LABEL_OF.values() else label
        rest = [w for w in rest if w not in _BESIDE and not (w in _KINDS and (dates or len(w) > 1))]
        numbers, idle = [w for w in rest if w.isdecimal()], [w for w in rest if w in _IDLE]
        others = [w for w in rest if w not in numbers and w not in idle]
        power = self._power(" ".join(others)) if others else ""
        counted = not numbers or (power and not dates and max(map(len, numbers)) <= 2)
        if len(rest) == len(numbers) == 1 and len(rest[0]) == 4 and not dates and not kinds:
            return Heading(dated=True, year=int(rest[0]))
        if len(dates) > 1 or power is None or not counted or (idle and not (power or label)):
            return None
        phase, dated = "", bool(dates)
        if dates:
            phase = self._phase(*dates.pop(), kinds)
        elif kinds and self.before and (not power or min(kinds)):
            year, number = parse_phase(self.before)
            phase = self._phase(min(number, 3) // 2 * 2, year, kinds)
        needs_phase = dated or (kinds and min(kinds) and not self.before)
        return None if needs_phase and not phase else Heading(phase, power, dated, label=label)

    def _dates(self, words: Sequence[str]) -> tuple[set[tuple[int, int]], list[str]]:
        """Return the seasons and years that words name, 0 for no year, and the other words."""
        years = {i: _year_beside(words, i) for i, word in enumerate(words) if word in _SEASONS}
        years = {i: at for i, at in years.items() if at is not None or len(words[i]) > 3}
        dates = {
            (_SEASONS[words[i]], 0 if at is None else self._century(words[at]))
            for i, at in years.items()
        }
        return dates, [w for i, w in enumerate(words) if i not in {*years, *years.values()}]

    def _century(self, year: str) -> int:
        century = self.first_year // 100 * 100 if len(year) < 3 else 0
        return int(year) + century if len(year) < 5 and int(year) else 0

    def _phase(self, number: int, year: int, kinds: Sequence[int]) -> str:
        """Return the phase of a season's number, or nothing. Without a year it is that of the line
        above or of the phase before, and comes after this."""
        before = parse_phase(self.before) if self.before else (0, 0)
        if not year:
            year = self.year or before[0]
            if not year or (year, number) <= before:
                return ""
        if kinds and number != 4:
            number = 4 if min(kinds) == 2 else number // 2 * 2 + max(min(kinds), number % 2)
        return phase_name(year, number)
