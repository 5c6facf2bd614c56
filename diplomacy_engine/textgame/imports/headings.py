"""Headings of reports: the lines that name a phase or a power.

The stages, for the line `France (Kevin), Spring 1901: A Par-Bur`:

1. `HeadingReader.split` tries where the heading may end, the likeliest place first; here before
   `A Par-Bur`, since orders begin there.
2. `HeadingReader.read` takes what is before that place for a heading if each of its words has a
   meaning. It tries again without dates and names of games, and then part by part, so that parts
   which name nothing may stand beside: `(Kevin)` is a bracket.
3. `_meaning` sorts the words: the season and year are Spring 1901, the power is FRANCE. `_named`
   refuses words that contradict each other, and makes a `Heading` of the others.

A line that is no heading may be one with a mistake; `HeadingReader.doubt` tells what it may name.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from ...constants import NONE, OrderKind, Phase, parse_phase, phase_name
from ...rules import reading
from ...rules.map import Map
from ...rules.names import power_called
from ..order_texts import order_texts
from . import lexicon
from .lexicon import DASHES, PATTERNS, SEASONS, PhaseKind, power_names, words_of

_MOST_LETTERS = 120  # of a heading
_MOST_WORDS = 20  # of a heading
_FEW_WORDS = 4  # of a short line, which may be a heading with a mistake
_WORDS_OF_A_PERSON = 3
_MOST_BEGINS = 8  # places of a line that may be where its orders begin
_MOST_YEARS = 99  # of a game; other numbers are no years
_SHORT_SEASON = 3  # letters; such a word is a season only beside a year: `sp 01`
# The label below which a unit stands behind an order of this kind, in the same line.
LABEL_OF = {OrderKind.BUILD: "build", OrderKind.DISBAND: "remove"}
_HEADING_WORDS = {*SEASONS, *lexicon.KINDS, *lexicon.FILLERS, *lexicon.IDLE}
_LONG_SEASONS = "|".join(word for word in SEASONS if len(word) > _SHORT_SEASON)
_SEASON_LIKE = re.compile(rf"\b(?:{_LONG_SEASONS})\b|\b[sfw]\d\d", re.IGNORECASE)

Doubt = Literal["phase", "power", ""]  # what a line may name; "": nothing


class Heading(NamedTuple):
    """What a line says of the lines below it."""

    phase: str = ""
    power: str = ""
    dated: bool = False  # whether it names a season or a year
    year: int = 0  # of a line that names no season
    label: str = ""  # what is below it: build, remove, position, centers


class _Date(NamedTuple):
    """A season that words name, with the year beside it."""

    season: int  # the Phase with which the season begins
    year: int | None  # None: there is none beside it


class _Meaning(NamedTuple):
    """What the words of a text say."""

    dates: set[_Date]
    kind: PhaseKind | None  # of several the first
    label: str
    numbers: list[str]  # years of seasons are not among them
    idle: bool  # whether there are words of IDLE
    power: str  # "": none, or several
    has_unknown_words: bool  # words that have no other meaning, and name no single power

    def is_year(self) -> bool:
        """Tell whether it names a year and nothing else: `1901`, `Results of 1901`; not
        `France 1901`."""
        has_single_year = len(self.numbers) == 1 and len(self.numbers[0]) == 4
        names_power = self.power or self.has_unknown_words
        return has_single_year and not (self.dates or self.kind or self.idle or names_power)

    def has_other_number(self) -> bool:
        """Tell whether there is a number without a meaning: `Fall 1901 2`, `France 1901`.

        Beside a power and no season, numbers of one or two digits count a player's mails, and have
        a meaning: `France 2`.
        """
        counts_mails = self.power and not self.dates and all(len(n) <= 2 for n in self.numbers)
        return bool(self.numbers) and not counts_mails

    def is_idle_talk(self) -> bool:
        """Tell whether nothing is said of anybody: `no moves received`; not `France: no moves`."""
        return self.idle and not (self.power or self.label)

    def is_later_kind(self) -> bool:
        """Tell whether it names retreats or adjustments, and no movement: `Retreats`, `Builds`; not
        `Moves and retreats`."""
        return self.kind not in (None, PhaseKind.MOVEMENT)


class HeadingReader:
    """Reads the heading of one line.

    `phase_before` is the phase that is in force above the line, if there is one, and `year` the
    year that the last date named alone, without a season, or 0.
    """

    def __init__(self, game_map: Map, phase_before: str = "", year: int = 0):
        self.map = game_map
        self.phase_before = phase_before
        self.year = year
        self.first_year = int(game_map.board.first_year)  # years of two digits are in its century

    # --- Where the heading of a line ends ---------------------------------------------------------

    def split(self, line: str) -> tuple[Heading | None, str]:
        """Return the heading with which a line begins, if it has one, and the rest of the line."""
        for head, rest in self._cuts(line):
            if not head:
                return None, rest
            heading = self.read(head)
            if heading is None:
                continue
            # `Spring 1901 orders are due on Friday` begins no phase.
            where = head if self._begins_orders(rest) else line
            if not (heading.dated and PATTERNS.due.search(where)):
                return heading, rest
        return None, line

    def _cuts(self, line: str) -> Iterator[tuple[str, str]]:
        """Yield a line cut in two where its heading may end, the likeliest place first."""
        matches = itertools.islice(PATTERNS.orders_begin.finditer(line), _MOST_BEGINS)
        begins = [match.start() for match in matches]
        for at in begins:
            if self._begins_orders(line[at:]):
                yield line[:at], line[at:]
        yield line, ""
        if self._begins_orders(line):
            yield "", line
        power = power_names(self.map).match(line)
        if power and self._begins_orders(line[power.end() :]):
            yield line[: power.end()], line[power.end() :]
        for at in begins:
            if line[:at].endswith(":"):
                yield line[:at], line[at:]

    def _begins_orders(self, text: str) -> bool:
        """Tell whether a text begins with an order, or says that there are none."""
        first = next((part.lstrip(DASHES) for part in order_texts(text)), "")
        return bool(first) and (bool(PATTERNS.nothing.match(first)) or is_order(self.map, first))

    # --- What a heading names ---------------------------------------------------------------------

    def read(self, head: str) -> Heading | None:
        """Return what a text names, None if it is no heading.

        Brackets, names of games and of persons may stand beside, but nothing that may name
        something else: `France (Kevin)` and `Spring 1901 of the game Berlin` are headings,
        `France and Kevin` is none.
        """
        if len(head) > _MOST_LETTERS:
            return None
        plain = PATTERNS.aside.sub(" ", head)
        without_game = PATTERNS.game.sub("", plain)
        heading = self._named(plain) or self._named(without_game)
        return heading or self._among_others(without_game)

    def _named(self, text: str) -> Heading | None:
        """Return what the words of a text name if each of them says something."""
        words = words_of(text)
        if not 0 < len(words) <= _MOST_WORDS:
            return None
        meaning = self._meaning(words)
        if meaning.is_year():
            return Heading(dated=True, year=int(meaning.numbers[0]))
        if len(meaning.dates) > 1 or meaning.has_unknown_words:  # `Spring 1901, Fall 1901`; `Kevin`
            return None
        if meaning.has_other_number() or meaning.is_idle_talk():
            return None
        dated = bool(meaning.dates)
        phase = self._phase_of(meaning)
        if not phase and (dated or (meaning.is_later_kind() and not self.phase_before)):
            return None  # `Spring` where no line has named a year; `Retreats` of no phase
        return Heading(phase, meaning.power, dated, label=meaning.label)

    def _meaning(self, words: Sequence[str]) -> _Meaning:
        """Sort words by what they say. Beside a season a single letter is a kind, as in `S1901M`,
        and `builds` names the phase, not what is below."""
        dates, rest = self._dates(words)
        kind_words = [word for word in rest if word in lexicon.KINDS and (dates or len(word) > 1)]
        labels = {lexicon.LABELS[word] for word in words if word in lexicon.LABELS}
        label = labels.pop() if len(labels) == 1 else ""
        names_phase = bool(dates) and label in LABEL_OF.values()
        rest = [word for word in rest if word not in lexicon.FILLERS and word not in kind_words]
        others = " ".join(
            word for word in rest if not word.isdecimal() and word not in lexicon.IDLE
        )
        power = self._power(others) if others else ""
        return _Meaning(
            dates,
            kind=min((lexicon.KINDS[word] for word in kind_words), default=None),
            label="" if names_phase else label,
            numbers=[word for word in rest if word.isdecimal()],
            idle=any(word in lexicon.IDLE for word in rest),
            power=power,
            has_unknown_words=bool(others) and not power,
        )

    def _dates(self, words: Sequence[str]) -> tuple[set[_Date], list[str]]:
        """Return the seasons and years that words name, and the other words: of `spring 1901
        orders`, `{_Date(Phase.SPRING_MOVEMENT, 1901)}` and `["orders"]`."""
        dates: set[_Date] = set()
        used: set[int | None] = set()
        for at, word in enumerate(words):
            if word in SEASONS:
                year_at = _year_beside(words, at)
                if year_at is None and len(word) <= _SHORT_SEASON:  # `s` alone is no season
                    continue
                year = None if year_at is None else self._year(words[year_at])
                dates.add(_Date(SEASONS[word], year))
                used |= {at, year_at}
        return dates, [word for at, word in enumerate(words) if at not in used]

    def _year(self, digits: str) -> int | None:
        """Return a year, in the map's century if it has two digits; None if it is none."""
        century = self.first_year // 100 * 100 if len(digits) < 3 else 0
        return int(digits) + century if len(digits) < 5 and int(digits) else None

    def _power(self, text: str) -> str:
        """Return the power that a text names, or nothing if it names none, several, or more than
        that."""
        names = power_names(self.map).findall(text)
        powers = {power_called(self.map, name) for name in names or [text]}
        between = power_names(self.map).sub("", text).strip() if names else ""
        return (powers.pop() or "") if len(powers) == 1 and not between else ""

    def _phase_of(self, meaning: _Meaning) -> str:
        """Return the phase that words name, or nothing.

        Without a year, a season is of the year in the line above, or else of the phase before, and
        comes after this: `Fall` below S1901M is F1901M, and `Spring` is nothing. Without a season,
        a kind is of the season before: `Retreats` below S1901M are S1901R.
        """
        year_before, number_before = parse_phase(self.phase_before) if self.phase_before else (0, 0)
        if meaning.dates:
            season, named_year = next(iter(meaning.dates))
            year = named_year or self.year or year_before
            is_later = (year, season) > (year_before, number_before)
            if not year or not (named_year or is_later):
                return ""
        elif self.phase_before and (
            meaning.is_later_kind() or (meaning.kind and not meaning.power)
        ):
            year = year_before
            season = _season(min(number_before, Phase.FALL_RETREATS))  # a winter is of its fall
        else:  # `France: moves` names no phase
            return ""
        if not meaning.is_later_kind() or season == Phase.WINTER_ADJUSTMENTS:
            return phase_name(year, season)
        retreats = meaning.kind == PhaseKind.RETREATS
        return phase_name(year, _season(season) + 1 if retreats else Phase.WINTER_ADJUSTMENTS)

    # --- A heading with parts beside it that name nothing -----------------------------------------

    def _among_others(self, head: str) -> Heading | None:
        """Return what a text names beside parts that name nothing: `France (Kevin)`."""
        parts = PATTERNS.parts.split(head)
        own = [self._is_of_heading(part) for part in parts]
        heading = self._named(" ".join(itertools.compress(parts, own)))
        if heading is None or not (heading.dated or heading.power):
            return None
        if any(map(PATTERNS.unit.match, parts)):  # an order with a mistake
            return None
        first = own.index(True)
        for at, part in enumerate(parts):
            if own[at] or not words_of(part) or part[0] in "([{":  # `France (Kevin)`
                continue
            if self._may_name_another(part):  # `France, until Fall`
                return None
            # `Spring 1901, at last`; `France - Kevin`
            if not (heading.dated or _is_person_beside(parts, at, first)):
                return None
        return heading

    def _is_of_heading(self, part: str) -> bool:
        """Tell whether each word of a part is of a phase, a number, or of one power: `Spring 1901`,
        `for Austria`; not `Kevin`, nor `(3)`, a count."""
        words = words_of(part)
        others = " ".join(w for w in words if w not in _HEADING_WORDS and not w.isdecimal())
        is_count = re.fullmatch(r"[(\[{]\d{1,3}[)\]}]", part)
        return bool(words) and not is_count and (not others or bool(self._power(others)))

    def _may_name_another(self, part: str) -> bool:
        """Tell whether a part beside a heading may name another phase or power: `until Fall`."""
        names = power_names(self.map).search(part) or _SEASON_LIKE.search(part)
        return bool(lexicon.ABOUT & {*words_of(part)} or names)

    # --- Lines that may be headings with a mistake ------------------------------------------------

    def doubt(self, line: str, marked: bool) -> Doubt:
        """Return what a line that is no heading may name all the same: `phase` of `Sprng 1901`,
        `power` of `Kevin:`. `marked`: it looks like a heading of markdown."""
        if any(is_order(self.map, text) for text in order_texts(line)[:1]):
            return ""
        if self._may_name_phase(line):
            return "phase"
        return "power" if marked or self._may_name_power(line) else ""

    def _may_name_phase(self, line: str) -> bool:
        """Tell whether a line may name another phase: `Turn 3`, `Autumn at last`; not `No retreats
        in spring`, nor `Spring 1901 is late` in the spring of 1901."""
        words = words_of(line)
        has_digit = re.search(r"\d", line)
        short = len(words) <= _FEW_WORDS
        season = any(len(word) > _SHORT_SEASON and word in SEASONS for word in words)
        year = any(
            word.isdecimal() and 0 <= int(word) - self.first_year < _MOST_YEARS for word in words
        )
        has_date = (season and (short or has_digit)) or (year and short)
        denied = PATTERNS.no_phase.search(line) and not has_digit
        return (
            bool(has_date or PATTERNS.phase.match(line)) and not denied and not self._is_now(words)
        )

    def _is_now(self, words: Sequence[str]) -> bool:
        """Tell whether words name no season but that of the phase at hand."""
        dates, _ = self._dates(words)
        first = (self.first_year, 0)
        year, phase = parse_phase(self.phase_before) if self.phase_before else first
        return dates == {_Date(_season(phase), year)}

    def _may_name_power(self, line: str) -> bool:
        """Tell whether a line may name another power: `France and Kevin`, `Kevin (late):`,
        `Kevin: A Par-Bur`; not `I think that France has won`."""
        name = power_names(self.map)
        if name.match(line) or (len(words_of(line)) <= _FEW_WORDS and name.search(line)):
            return True
        head, colon, rest = re.sub(r"[(\[].*?[)\]]", " ", line).partition(":")
        orders_follow = bool(colon) and (not rest or self._begins_orders(rest))
        return orders_follow and len(words_of(head)) <= _FEW_WORDS


def is_order(game_map: Map, text: str) -> bool:
    """Tell whether a text is an order, or a unit alone, which may hold or be built."""
    is_unit = reading.listed_unit(game_map, text) is not None
    return is_unit or reading.order_kind(game_map, text) != NONE


def _season(phase: int) -> int:
    """Return the phase with which the season of a phase begins."""
    return phase // 2 * 2


def _year_beside(words: Sequence[str], at: int) -> int | None:
    """Return where the year of the season `at` stands, behind it or before it: 3 of `spring moves
    of 1901` with 0, 0 of `1901 spring` with 1."""
    for step in (1, -1):
        i = at + step
        while 0 <= i < len(words) and (words[i] in lexicon.FILLERS or words[i] in lexicon.KINDS):
            i += step
        if 0 <= i < len(words) and words[i].isdecimal():
            return i
    return None


def _is_person_beside(parts: Sequence[str], at: int, first: int) -> bool:
    """Tell whether part `at` is a person's name that may stand beside a power, of which part
    `first` is the first one: behind it, or before it in brackets: `France - Kevin`,
    `Kevin (France)`; not `Kevin: France`."""
    is_behind = at > first and parts[at - 1].strip() not in (",", ":", ".")
    is_before_bracket = at < first and parts[first][0] in "([{"
    return (is_behind or is_before_bracket) and _is_person(parts[at])


def _is_person(part: str) -> bool:
    """Tell whether a part may be a person's name: `Kevin B`, `@kevin`, `kevin97`; not `so far`."""
    names = part.split()
    return len(names) <= _WORDS_OF_A_PERSON and all(
        name[0].isupper() or name[0] == "@" or any(map(str.isdecimal, name)) for name in names
    )
