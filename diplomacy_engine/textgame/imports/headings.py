"""Headings of reports: the lines that name a phase or a power, in the words of headings.toml.

`Headings.split` cuts a line, such as `France, Spring 1901: A Par-Bur`, where `read` takes what is
before the cut for a heading: each of its words must have a meaning, or stand in a part of the line
that names nothing, as a person's name in brackets. `doubt` tells of any other line whether it may
be a heading all the same.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ...constants import NONE, OrderKind, Phase, parse_phase, phase_name
from ...records import shipped_patterns, shipped_toml
from ...rules import reading
from ...rules.map import Map
from ...rules.names import POWERS, power_called
from ..order_texts import order_texts

# Letters and words of a heading; words of a short line and of a person's name; places of a line at
# which orders may begin.
_MOST_LETTERS, _MOST_WORDS, _FEW_WORDS, _WORDS_OF_A_PERSON, _MOST_BEGINS = 120, 20, 4, 3, 8
_MOST_YEARS = 99  # of a game; other numbers are no years
_WORDS = shipped_toml(__package__, "headings.toml")
# A season is given by the phase with which it begins.
_BEGINS = {"spring": Phase.SPRING_MOVEMENT, "summer": Phase.SPRING_RETREATS}
_BEGINS |= {"fall": Phase.FALL_MOVEMENT, "winter": Phase.WINTER_ADJUSTMENTS}
_SEASONS = {w: phase for name, phase in _BEGINS.items() for w in _WORDS["seasons"][name].split()}
_Kind = IntEnum("_Kind", ["MOVEMENT", "RETREATS", "ADJUSTMENTS"])
_KINDS = {word: kind for kind in _Kind for word in _WORDS["kinds"][kind.name.lower()].split()}
_LABELS = {word: label for label, words in _WORDS["labels"].items() for word in words.split()}
# Words that say nothing; that say nothing beside a power; that tell of another phase.
_BESIDE = {*_WORDS["beside"].split(), *_LABELS} - {*_KINDS}
_IDLE, _ABOUT = ({*_WORDS[name].split()} for name in ("idle", "about"))
LIKE = shipped_patterns(
    _WORDS["patterns"], {name.upper(): _WORDS[name] for name in ("time", "month")}
)
DASHES = "+-\u2013\u2212 "
LABEL_OF = {OrderKind.BUILD: "build", OrderKind.DISBAND: "remove"}
_PHASE_WORDS = {*_SEASONS, *_KINDS, *_BESIDE, *_IDLE}
_SEASON_LIKE = re.compile(
    rf"\b(?:{'|'.join(word for word in _SEASONS if len(word) > 3)})\b|\b[sfw]\d\d", re.IGNORECASE
)


class Heading(NamedTuple):
    """What a line says of the lines below it."""

    phase: str = ""
    power: str = ""
    dated: bool = False  # whether it names a season or a year
    year: int = 0  # of a line that names no season
    label: str = ""  # what is below it: build, remove, position, centers


class _Words(NamedTuple):
    """The words of a heading, by what they say."""

    dates: set[tuple[Phase, int]]  # seasons and years
    kinds: list[_Kind]
    label: str
    numbers: list[str]
    idle: list[str]
    others: list[str]  # perhaps a power's name


class Headings:
    """What lines name after the phase `before`, below a line that named only the year `year`."""

    def __init__(self, game_map: Map, before: str = "", year: int = 0):
        self.map, self.before, self.year = game_map, before, year
        self.first_year = int(game_map.board.first_year)  # years of two digits are in its century

    def split(self, line: str) -> tuple[Heading | None, str]:
        """Return the heading with which a line begins, if it has one, and the rest of the line."""
        for head, rest in self._cuts(line):
            heading = self.read(head)
            # `Spring 1901 orders are due on Friday` begins no phase.
            where = head if self._begins_orders(rest) else line
            says_when_due = heading and heading.dated and LIKE["due"].search(where)
            if not head or (heading and not says_when_due):
                return heading, rest
        return None, line

    def _cuts(self, line: str) -> Iterator[tuple[str, str]]:
        """Yield where the heading of a line may end, the likeliest first."""
        matches = itertools.islice(LIKE["orders_begin"].finditer(line), _MOST_BEGINS)
        begins = [match.start() for match in matches]
        cuts = [at for at in begins if self._begins_orders(line[at:])]
        cuts += [len(line)] + [0] * self._begins_orders(line)  # all of it, or nothing
        power = power_names(self.map).match(line)
        cuts += [power.end()] if power and self._begins_orders(line[power.end() :]) else []
        cuts += [at for at in begins if at and line[at - 1] == ":"]
        yield from ((line[:at], line[at:]) for at in cuts)

    def _begins_orders(self, text: str) -> bool:
        """Tell whether a text begins with an order, or says that there are none."""
        texts = [text.lstrip(DASHES) for text in order_texts(text)]
        return bool(texts and texts[0]) and (
            bool(LIKE["nothing"].match(texts[0])) or is_order(self.map, texts[0])
        )

    def doubt(self, line: str, marked: bool) -> str:
        """Return what a line that was not understood may name: `phase`, `power` or nothing.
        `marked`: whether it looks like a heading of markdown."""
        head, colon, rest = re.sub(r"[(\[].*?[)\]]", " ", line).partition(":")
        words, digit = words_of(line), re.search(r"\d", line)
        if any(is_order(self.map, text) for text in order_texts(line)[:1]):
            return ""
        short, power = len(words) <= _FEW_WORDS, power_names(self.map)
        season = any(len(word) > 3 and word in _SEASONS for word in words)
        year = any(w.isdecimal() and 0 <= int(w) - self.first_year < _MOST_YEARS for w in words)
        phase = LIKE["phase"].match(line) or (season and (short or digit)) or (year and short)
        no_phase = LIKE["no_phase"].search(line) and not digit  # `No retreats in spring`
        if phase and not no_phase and not self._is_now(words):
            return "phase"
        orders_below = colon and (not rest or self._begins_orders(rest))  # `Kevin:`
        headed = orders_below and len(words_of(head)) <= _FEW_WORDS
        named = power.match(line) or (short and power.search(line))
        return "power" if named or headed or marked else ""

    def _is_now(self, words: Sequence[str]) -> bool:
        """Tell whether words name no season but that of the phase at hand."""
        dates, _ = self._dates(words)
        year, number = parse_phase(self.before) if self.before else (self.first_year, 0)
        return dates == {(_season(number), year)}

    def read(self, head: str) -> Heading | None:
        """Return what a text names, None if it is no heading. Brackets, names of games and of
        persons may stand beside, but nothing that may name something else."""
        if len(head) > _MOST_LETTERS:
            return None
        plain = LIKE["aside"].sub(" ", head)
        short = LIKE["game"].sub("", plain)
        return self._named(plain) or self._named(short) or self._among_others(short)

    def _among_others(self, head: str) -> Heading | None:
        """Return what a text names beside parts that name nothing: `France (Kevin)`."""
        parts = LIKE["parts"].split(head)
        own = [self._is_of_heading(part) for part in parts]
        heading = self._named(" ".join(itertools.compress(parts, own)))
        if heading is None or not (heading.dated or heading.power):
            return None
        if any(map(LIKE["unit"].match, parts)):  # an order with a mistake
            return None
        first, others = own.index(True), (at for at in range(len(parts)) if not own[at])
        fit = all(self._is_beside(parts, at, first, heading.dated) for at in others)
        return heading if fit else None

    def _is_beside(self, parts: Sequence[str], at: int, first: int, dated: bool) -> bool:
        """Tell whether a part may stand beside those of a heading, of which `first` is one: a
        person, a bracket; beside a phase also something else."""
        part, words, names = parts[at], words_of(parts[at]), parts[at].split()
        if not words or part[0] in "([{":
            return True
        if _ABOUT & {*words} or power_names(self.map).search(part) or _SEASON_LIKE.search(part):
            return False
        person = len(names) <= _WORDS_OF_A_PERSON and all(
            word[0].isupper() or word[0] == "@" or any(map(str.isdecimal, word)) for word in names
        )
        behind = at > first and parts[at - 1].strip() not in (",", ":", ".")
        before = at < first and parts[first][0] in "([{"
        return dated or (person and (behind or before))

    def _is_of_heading(self, part: str) -> bool:
        """Tell whether each word of a part says something: of a phase, a number, one power."""
        words = words_of(part)
        others = " ".join(w for w in words if w not in _PHASE_WORDS and not w.isdecimal())
        count = re.fullmatch(r"[(\[{]\d{1,3}[)\]}]", part)
        return bool(words) and not count and (not others or self._power(others) is not None)

    def _power(self, text: str) -> str | None:
        """Return the power that a text names; None if it names another number of them, or more."""
        names = power_names(self.map).findall(text)
        powers = {power_called(self.map, name) for name in names or [text]}
        between = power_names(self.map).sub("", text).strip() if names else ""
        return powers.pop() if len(powers) == 1 and not between else None

    def _named(self, text: str) -> Heading | None:
        """Return what the words of a text name if each of them says something."""
        words = words_of(text)[: _MOST_WORDS + 1]
        if not 0 < len(words) <= _MOST_WORDS:
            return None
        dates, kinds, label, numbers, idle, others = self._by_meaning(words)
        power = self._power(" ".join(others)) if others else ""
        if not (dates or kinds or idle or others) and [len(n) for n in numbers] == [4]:
            return Heading(dated=True, year=int(numbers[0]))
        if len(dates) > 1 or power is None:  # `Spring 1901, Fall 1901`; `Kevin`
            return None
        if numbers and (not power or dates or max(map(len, numbers)) > 2):  # `France 1901`
            return None
        if idle and not (power or label):  # `no moves received`
            return None
        phase, dated = "", bool(dates)
        if dates:
            phase = self._phase(*dates.pop(), kinds)
        elif kinds and self.before and (not power or min(kinds) != _Kind.MOVEMENT):
            year, number = parse_phase(self.before)
            number = _season(min(number, Phase.FALL_RETREATS))  # a winter is of its fall
            phase = self._phase(number, year, kinds)
        needs_phase = dated or (kinds and min(kinds) != _Kind.MOVEMENT and not self.before)
        return None if needs_phase and not phase else Heading(phase, power, dated, label=label)

    def _by_meaning(self, words: Sequence[str]) -> _Words:
        """Sort the words of a heading by what they say. Beside a season a single letter is a kind,
        and `builds` names the phase, not what is below."""
        dates, rest = self._dates(words)
        kind_words = [w for w in rest if w in _KINDS and (dates or len(w) > 1)]
        labels = {_LABELS[w] for w in words if w in _LABELS}
        label = labels.pop() if len(labels) == 1 else ""
        label = "" if dates and label in LABEL_OF.values() else label
        rest = [w for w in rest if w not in _BESIDE and w not in kind_words]
        numbers, idle = [w for w in rest if w.isdecimal()], [w for w in rest if w in _IDLE]
        others = [w for w in rest if w not in numbers and w not in idle]
        return _Words(dates, [_KINDS[w] for w in kind_words], label, numbers, idle, others)

    def _dates(self, words: Sequence[str]) -> tuple[set[tuple[Phase, int]], list[str]]:
        """Return the seasons and years that words name, 0 for no year, and the other words."""
        years = {i: _year_beside(words, i) for i, word in enumerate(words) if word in _SEASONS}
        years = {i: at for i, at in years.items() if at is not None or len(words[i]) > 3}
        dates = {
            (_SEASONS[words[i]], 0 if at is None else self._century(words[at]))
            for i, at in years.items()
        }
        return dates, [w for i, w in enumerate(words) if i not in {*years, *years.values()}]

    def _century(self, year: str) -> int:
        """Return a year, in the map's century if it has two digits; 0 if it is none."""
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
        if kinds and number != Phase.WINTER_ADJUSTMENTS and min(kinds) != _Kind.MOVEMENT:
            retreats = min(kinds) == _Kind.RETREATS
            number = _season(number) + 1 if retreats else Phase.WINTER_ADJUSTMENTS
        return phase_name(year, number)


def _season(phase: int) -> int:
    """Return the phase with which the season of a phase begins."""
    return phase // 2 * 2


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in small letters, without accents and a final 's."""
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


@lru_cache(maxsize=16)
def power_names(game_map: Map) -> re.Pattern:
    """Match what a map's powers are called, with `Orders for the` before it."""
    names = [name for power in game_map.powers for name in (power, *POWERS.get(power, ()))]
    spaced = [r"[\W_]+".join(map(re.escape, re.split(r"[\W_]+", name))) for name in names]
    either = "|".join(sorted(spaced, key=len, reverse=True))
    return re.compile(rf"(?:\b(?:orders|moves|of|for|the)\s+)*\b(?:{either})\b", re.IGNORECASE)


@lru_cache(maxsize=16)
def more_powers(game_map: Map) -> re.Pattern:
    """Match before the name of a power that begins its orders within a line."""
    named = rf"(?={power_names(game_map).pattern}(?:\s*\([^()]*\))?\s*:)"
    return re.compile(rf"(?<=[:;.,|])\s*{named}|\s\s{named}", re.IGNORECASE)


def is_order(game_map: Map, text: str) -> bool:
    """Tell whether a text is an order, or a unit alone, which may hold or be built."""
    is_unit = reading.listed_unit(game_map, text) is not None
    return is_unit or reading.order_kind(game_map, text) != NONE
