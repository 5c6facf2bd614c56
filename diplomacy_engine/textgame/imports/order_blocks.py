"""Blocks of order texts by power and phase, as in mails, forums, chats and markdown; see
docs/elsewhere.md. A line that names a phase begins it (`Movement results for Spring of 1901.
(game.001)`, `S01`, `Turn 2: Autumn 1902 Retreats`); a power's name, alone or before a colon, begins
its orders, or its units and `centers: Par, Mar`. No orders are read below a line that looks like a
heading and is not understood."""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..._suggest import printable, quoted
from ...constants import NONE, OrderKind, parse_phase, phase_kind, phase_name
from ...errors import UserError
from ...records import shipped_patterns, shipped_toml
from ...rules import notation
from ...rules.map import Map
from ...rules.names import POWERS, power_called

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE, _MOST_OF_A_HEADING, _MOST_WORDS = 2000, 120, 20
_FEW_WORDS, _MOST_OF_A_PERSON, _MOST_BEGINS = 4, 3, 8
_WORDS = shipped_toml(__package__, "headings.toml")
_SEASONS = {
    word: number
    for number, name in ((0, "spring"), (1, "summer"), (2, "fall"), (4, "winter"))
    for word in _WORDS["seasons"][name].split()
}
_KINDS = {
    word: kind for kind, words in enumerate(_WORDS["kinds"].values()) for word in words.split()
}
_VERBS = {word: verb for verb, words in _WORDS["verbs"].items() for word in words.split()}
_BESIDE = {*_WORDS["beside"].split(), *_VERBS} - {*_KINDS}
_IDLE, _ABOUT = ({*_WORDS[name].split()} for name in ("idle", "about"))
_LIKE = shipped_patterns(_WORDS["patterns"], {"MONTH": _WORDS["month"]})
_DASHES = "+-\u2013\u2212 "
_VERB_OF = {OrderKind.BUILD: "build", OrderKind.DISBAND: "remove"}
_NOTHING = ("none", "no orders", "nmr", "-")
FORMS = (
    "a line names a phase (Spring 1901, S1901M, Movement results for Spring of 1901), and below it "
    "stand each power's name and orders (France: A Par-Bur, F Bre-MAO)"
)


class Block(NamedTuple):
    """The orders of one power in one phase, and the line on which they begin."""

    phase: str  # empty where none is named before it
    power: str
    orders: list[str]
    line: int


class _Heading(NamedTuple):
    phase: str = ""
    power: str = ""
    dated: bool = False  # whether it names a season or a year
    year: int = 0  # of a line that names no season
    verb: str = ""  # of the units below it: build, remove


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


def read_blocks(
    game_map: Map, text: str, note: Callable[[str], object] = lambda text: None
) -> list[Block]:
    """Return the blocks of a text; `note` is told what belongs to none. UserError: orders stand
    under no power's name, or below a line that looks like a heading and is not understood."""
    if len(text) > MOST_LETTERS:
        raise UserError(f"a text of orders may have at most {MOST_LETTERS:,} characters")
    blocks: list[Block] = []
    phase = section = power = verb = label_verb = ""
    year = 0
    doubts: dict[str, str] = {}  # phase or power -> the line that may have named another one
    for number, raw in enumerate(text.splitlines(), 1):
        if len(raw) > _MOST_OF_A_LINE:
            raise UserError(f"line {number} has more than {_MOST_OF_A_LINE:,} characters")
        for line in _more_powers(game_map).split(_plain(game_map, raw)):
            if not _words(line):
                continue
            shown = f"line {number}, {quoted(printable(line), 60)}"
            reader = Headings(game_map, phase, year)
            heading, rest = reader.split(line)
            if heading is None:
                heading, doubt = _Heading(verb=verb), reader.doubt(line, raw)
                doubts |= {doubt: shown} if doubt else {}
            elif heading.dated:
                phase = section = heading.phase
                year, power, label_verb = heading.year, heading.power, ""
                doubts = {} if phase else {"phase": shown}
            elif heading.power:
                phase, power = heading.phase or section, heading.power
                doubts.pop("power", None)
            elif not rest:
                phase = section = heading.phase or section
                label_verb = heading.verb
            verb = heading.verb or label_verb
            now = heading.phase or phase  # Retreats: A Mun - Sil
            orders = _texts(game_map, rest, now, verb)
            sound = any(_is_order(game_map, order) for order in orders)
            if sound and doubts:
                raise UserError(
                    f"{next(iter(doubts.values()))}, looks like a heading and is not understood, "
                    f"so it is not clear whose orders are those of line {number}, or when"
                )
            if power and (orders or heading.power):
                blocks.append(Block(now, power, orders, number))
            elif sound:
                raise UserError(f"{shown}, is under no power's name")
            elif orders:
                note(left_out(number, rest, "it is under no power's name"))
    return blocks


@lru_cache(maxsize=16)
def _more_powers(game_map: Map) -> re.Pattern:
    """Match before the name of a power that begins its orders within a line."""
    named = rf"(?={_names(game_map).pattern}(?:\s*\([^()]*\))?\s*:)"
    return re.compile(rf"(?<=[:;.,|])\s*{named}|\s\s{named}", re.IGNORECASE)


def _texts(game_map: Map, line: str, phase: str, verb: str) -> list[str]:
    """Return the orders of a line. Results that commas cut off come back to their order, and units
    of a winter's list have the verb or sign before them: `builds A Par, F Bre`, `+A Ber`."""
    winter = bool(phase) and phase_kind(phase) == "adjustments"
    texts: list[str] = []
    for part in notation.order_texts(line):
        text = part if winter else part.lstrip(_DASHES)
        if not text or text.lower() in _NOTHING:
            continue
        kind = notation.order_kind(game_map, text)
        result = kind == NONE and (notation.is_result(text) or told_retreat(game_map, f"({text})"))
        if result and texts and not winter:
            texts[-1] += f" ({text})"
        elif not notation.is_result(text):
            verb = _VERB_OF.get(kind, verb)
            listed = winter and verb and notation.listed_unit(game_map, text)
            texts.append(f"{verb} {text}" if listed else text)
    return texts


def told_retreat(game_map: Map, remark: str) -> str:
    """Return what a remark behind a movement order says of the unit's retreat: `R SIL`, `D`, or
    nothing."""
    for goal in _LIKE.retreats.findall(remark):
        try:
            return f"R {notation.place_text(game_map, notation.read_place(game_map, goal)[1])}"
        except UserError:
            continue
    return "D" if _LIKE.disbands.search(remark) else ""


def _is_order(game_map: Map, text: str) -> bool:
    return (
        notation.order_kind(game_map, text) != NONE
        or notation.listed_unit(game_map, text) is not None
    )


def left_out(line: int, text: str, reason: str) -> str:
    """Return the note that a text of a line is not read, and why."""
    return f"line {line}, {quoted(printable(text), 60)}, is left out: {reason}"


def read_position(game_map: Map, blocks: Sequence[Block]) -> dict | None:
    """Return the state that blocks of units say; None if the first entry is an order. A power whose
    centers are not named owns those on which it stands, and its home if nobody else does."""
    entries = [(block, text) for block in blocks for text in block.orders]
    if not entries or notation.listed_unit(game_map, entries[0][1]) is None:
        return None
    units: dict[str, list[str]] = {}
    centers: dict[str, list[str]] = {}
    line = 0  # on which centers are listed
    for block, text in entries:
        named = _LIKE.centers.match(text)
        if named:
            line, text = block.line, named[1]
        if line == block.line:
            centers.setdefault(block.power, []).extend(_center(game_map, text, line))
            continue
        unit = notation.listed_unit(game_map, text)
        if unit is None:
            raise UserError(f"line {block.line}: {quoted(printable(text), 60)} is not a unit")
        units.setdefault(block.power, []).append(unit)
    phases = {block.phase for block in blocks}
    if len(phases) > 1:
        raise UserError(f"a position has one phase, not {' and '.join(sorted(phases))}")
    name = phases.pop() or phase_name(int(game_map.board.first_year), 0)
    if phase_kind(name) == "retreats":
        raise UserError(f"{name}: it needs the orders before, which decide the retreats")
    state = {"name": name, "units": units}
    return state | {"centers": all_centers(game_map, units, centers)}


def _center(game_map: Map, text: str, line: int) -> list[str]:
    if not text:
        return []
    try:
        _, place = notation.read_place(game_map, text)
    except UserError as error:
        raise UserError(f"line {line}: {error}") from None
    if game_map.board.province_center[place.province] == NONE:
        raise UserError(f"line {line}: {game_map.provinces[place.province]} is not a center")
    return [game_map.provinces[place.province]]


def all_centers(
    game_map: Map, units: Mapping[str, Sequence[str]], named: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return power -> its centers: `named`, else where it stands, else its home."""
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
    line = _LIKE.struck.sub(
        lambda m: m[0] if notation.no_order(game_map, m[1] or m[3]) else "", line
    )
    line = _LIKE.tags.sub("", notation.without_symbols(html.unescape(line)))
    line = _LIKE.dots.sub("; ", _LIKE.marks.sub("", line.strip(), count=1)).replace("`", "")
    line = _LIKE.marks.sub("", line.strip("; \t"), count=1)
    plain = line.rstrip("=#*_~;- \t")
    return plain + "-" * (line[len(plain) :].count("-") == 1)  # A PAR - is no unit


class Headings:
    """What lines name after the phase `before`, below a line that named only the year `year`."""

    def __init__(self, game_map: Map, before: str = "", year: int = 0):
        self.map, self.before, self.year = game_map, before, year
        self.first_year = int(game_map.board.first_year)  # years of two digits are in its century

    def split(self, line: str) -> tuple[_Heading | None, str]:
        """Return the heading with which a line begins, if it has one, and the rest of the line."""
        begins = [match.start() for match in _LIKE.orders_begin.finditer(line)][:_MOST_BEGINS]
        for at in begins:
            if self._orderly(line[at:]):
                heading = self.read(line[:at]) if at else None
                if heading or not at:
                    return heading, line[at:]
        heading = self.read(line)
        if heading:
            return heading, ""
        if self._orderly(line):
            return None, line
        named = _names(self.map).match(line)
        cuts = [named.end()] if named and self._orderly(line[named.end() :]) else []
        cuts += [at for at in begins if at and line[at - 1] == ":"]
        for at in cuts:
            heading = self.read(line[:at])
            if heading and (heading.power or heading.dated or at != cuts[0]):
                return heading, line[at:]
        return None, line

    def _orderly(self, text: str) -> bool:
        texts = [text.lstrip(_DASHES) for text in notation.order_texts(text)]
        first = texts[0] if texts else ""
        return bool(first) and (first.lower() in _NOTHING or _is_order(self.map, first))

    def doubt(self, line: str, raw: str) -> str:
        """Return what a line that was not understood may have named: `phase`, `power`, nothing."""
        if any(_is_order(self.map, text) for text in notation.order_texts(line)[:1]):
            return ""
        head, colon, rest = re.sub(r"[(\[].*?[)\]]", " ", line).partition(":")
        words = _words(line)
        seasons = [w for w in words if len(w) > 3 and w in _SEASONS]
        short, digit = len(words) <= _FEW_WORDS, re.search(r"\d", line)
        years = [w for w in words if w.isdecimal() and abs(int(w) - self.first_year - 49) < 50]
        if _LIKE.phase.match(line) or (seasons and (short or digit)) or (years and short):
            return "phase"
        name = _names(self.map)
        headed = colon and len(_words(head)) <= _FEW_WORDS and (not rest or self._orderly(rest))
        marked = raw.lstrip().startswith("#")
        return (
            "power" if name.match(line) or (short and name.search(line)) or headed or marked else ""
        )

    def read(self, head: str) -> _Heading | None:
        """Return what a text names, None if it is no heading. Brackets, names of games and of
        persons may stand beside, but nothing that may name something else."""
        if len(head) > _MOST_OF_A_HEADING:
            return None
        head = _LIKE.aside.sub(" ", head)
        heading = self._named(head) or self._named(head := _LIKE.game.sub("", head))
        if heading:
            return heading
        parts = _LIKE.parts.split(head)
        own = [at for at, part in enumerate(parts) if self._is_of_heading(part)]
        first = own[0] if own else len(parts)
        heading = self._named(" ".join(parts[at] for at in own))
        if heading is None or not (heading.dated or heading.power):
            return None
        for at, part in enumerate(parts):
            if _LIKE.unit.match(part):  # an order with a mistake, not what stands beside
                return None
            if at in own or not _words(part) or part[0] in "([{":
                continue
            if _names(self.map).search(part) or _ABOUT & {*_words(part)}:
                return None
            names = part.split()
            person = len(names) <= _MOST_OF_A_PERSON and all(map(_is_name, names))
            beside = at > first and parts[at - 1].strip() not in (",", ":", ".")
            before = at < first and parts[first][0] in "([{"
            if _SEASON_LIKE.search(part) or not (heading.dated or (person and (beside or before))):
                return None
        return heading

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

    def _named(self, text: str) -> _Heading | None:
        """Return what the words of a text name if each of them says something."""
        words = _words(text)
        if not words or len(words) > _MOST_WORDS:
            return None
        seasons = {i: _year_beside(words, i) for i, word in enumerate(words) if word in _SEASONS}
        seasons = {i: at for i, at in seasons.items() if at is not None or len(words[i]) > 3}
        dates = {
            (_SEASONS[words[i]], 0 if at is None else self._century(words[at]))
            for i, at in seasons.items()
        }
        beside = {*seasons, *seasons.values()}
        rest = [word for i, word in enumerate(words) if i not in beside]
        sure = [w for w in rest if w in _KINDS and (dates or len(w) > 1)]
        rest = [w for w in rest if w not in sure and w not in _BESIDE]
        numbers = [w for w in rest if w.isdecimal()]
        idle = [w for w in rest if w in _IDLE]
        others = [w for w in rest if w not in numbers and w not in idle]
        power = self._power(" ".join(others)) if others else ""
        if (others and not power) or len(dates) > 1 or (idle and not power):
            return None
        if numbers and not dates and not power and not sure and len(numbers) == 1:
            return _Heading(dated=True, year=int(numbers[0])) if len(numbers[0]) == 4 else None
        if numbers and (dates or not power or max(map(len, numbers)) > 2):
            return None
        kinds = [_KINDS[w] for w in sure]
        verbs = {_VERBS[w] for w in words if w in _VERBS}
        verb = verbs.pop() if len(verbs) == 1 and not dates else ""
        if dates:
            phase = self._phase(*dates.pop(), kinds)
            return _Heading(phase, power, True) if phase else None
        if kinds and self.before and (not power or min(kinds)):
            year, number = parse_phase(self.before)
            return _Heading(self._phase(min(number, 3) // 2 * 2, year, kinds), power, verb=verb)
        return None if kinds and min(kinds) and not self.before else _Heading("", power, verb=verb)

    def _century(self, year: str) -> int:
        century = self.first_year // 100 * 100 if len(year) < 3 else 0
        return int(year) + century if len(year) < 5 and int(year) else 0

    def _phase(self, number: int, year: int, kinds: Sequence[int]) -> str:
        """Return the phase of a season's number, or nothing. Without a year it is that of the line
        above or of the phase before, and comes after this."""
        before = parse_phase(self.before) if self.before else (0, 0)
        if not year:
            year = self.year or before[0]
            if (year, number) <= before:
                return ""
        if not year:
            return ""
        if kinds and number != 4:
            number = 4 if min(kinds) == 2 else number // 2 * 2 + max(min(kinds), number % 2)
        return phase_name(year, number)
