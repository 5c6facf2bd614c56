"""Reads orders, units and places generously, whoever has written them.

Input may have any letter case, full province names, aliases, words such as HOLDS or VIA CONVOY, any
usual style of coasts, and the wordings of other sites, judges and zines; a result behind an order
is left out.
"""

import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import NamedTuple

import numpy as np

from .._suggest import quoted
from ..constants import COASTS, NONE, UNIT_LETTERS, OrderKind, Terrain, UnitKind, phase_kind
from ..errors import UserError
from ..records import filled_pattern
from .map import Map, coast_numbers
from .names import PLACES, POWERS, WORDS
from .notation import OrderText, Place, UnitText, province_of, unit_text

MAX_TEXT = 200  # characters; no order of any map comes near
# Hyphens, dashes, minus and arrows of the Unicode tables count as the dash of a move.
_DASHES = "\\-\u2010-\u2015\u2212\u2192\u21a6\u21d2\u25b6\u25b8\u25ba\u2794\u2799-\u27af="
_DASHES += "\u27f6\u27f9\u2b95"
DASH = re.compile(f"[{_DASHES}>]")
_SIGNS = ".,:;|!_`'\"{}<>"  # say nothing in an order
_TOKEN = re.compile(f"[{_DASHES}]+>?|(?<= )>+(?= )|[/()*]|[^\\s{_DASHES}/()*{_SIGNS}]+")
_UNIT_WORDS = {"UNIT": NONE} | dict.fromkeys(("A", "ARMY", "AMY"), int(UnitKind.ARMY))
_UNIT_WORDS |= dict.fromkeys(("F", "FLEET", "FLT"), int(UnitKind.FLEET))  # AMY, FLT: as in DAIDE
_VERBS = {verb: OrderKind[name.upper()] for name, verbs in WORDS["verbs"].items() for verb in verbs}
_USUAL_COASTS = coast_numbers(COASTS[1:])
_COASTS_OF_DAIDE = {f"{coast}S": coast for coast in COASTS[1:]}
_LONG_COASTS = {"NORTH": "NC", "EAST": "EC", "SOUTH": "SC", "WEST": "WC"}
NATIONS = "|".join(name for names in POWERS.items() for name in (names[0], *names[1]))
_STANDING_FOR = {
    "NATIONS": NATIONS,
    "DASHES": _DASHES,
    "FROM_PLACE": r"(.+?) FROM ([^(*]+(?:\(\w+ COAST\))?)",
}
# What sites, judges and zines write -> as it is read here.
_WORDINGS = [
    (filled_pattern(pattern, _STANDING_FOR), read) for pattern, read in WORDS["wordings"]["rows"]
]
# An order, unit or place as we write it: no wording applies, whatever a map's codes are.
_LOCATION = r"[A-Z]{3}(?:/[A-Z]+)?"
_OWN_TEXT = re.compile(
    r"(?:\*?[AF] )?L(?: (?:[HBD]|[-R] L|- L VIA|S [AF] L(?: - L)?|C A L - L))?".replace(
        "L", _LOCATION
    )
)
# What may come behind an order: its result, in words or brackets.
_RESULTS = {*WORDS["results"]}
# What may come after a province in an order.
_AFTER_PLACE = {*_VERBS, *COASTS[1:], *_LONG_COASTS, *_RESULTS, "/", "VIA", "BY", "FROM"}
# Words of names that people leave out or add.
_OF_PLACES = ("-", "PROVINCE", "OF", "SEA", "OCEAN", "GULF", "PENINSULA", "ISLAND")

Kinds = Sequence[int] | np.ndarray


class GivenOrder(NamedTuple):
    """An order text of a power, what it says and what became of it."""

    power: str
    text: str
    order: OrderText | None  # None if the text is no order
    unit: str  # the ordered unit as it stands on the board, else as written; "" if there is none
    words: tuple[str, ...] = ()  # result words; none if it succeeded, or nothing is known
    said: str = ""  # the result for people
    counts: bool = True  # False if another order of this unit counts, or it is not the power's unit

    @classmethod
    def missing(cls, power: str, unit: str, words: tuple[str, ...]) -> "GivenOrder":
        """Return what stands for the order of a unit that has none."""
        return cls(power, f"{unit} (no order)", None, unit, words)

    @property
    def is_missing(self) -> bool:
        """Whether the unit has no order."""
        return self.text == f"{self.unit} (no order)"


class UnknownProvince(UserError):
    """A word names no province; the nearest one that does is only looked for when it is told."""

    def __str__(self) -> str:
        game_map, word = self.args
        names = {" ".join(key): provinces[0] for key, provinces in _names(game_map)[0].items()}
        near = difflib.get_close_matches(word.upper()[:40], names, 1, 0.5)
        hint = f"; did you mean {game_map.provinces[names[near[0]]]}?" if near else ""
        return str(UserError(f"there is no province {word!r:.50} on this map{hint}"))


def _remembered(read: Callable) -> Callable:
    """Remember what a text says: in a game the same few hundred come again and again."""
    cached = lru_cache(maxsize=1 << 13)(read)

    @wraps(read)
    def reading(game_map: Map, text: str):
        return cached(game_map, text) if isinstance(text, str) else read(game_map, text)

    return reading


def read_order(game_map: Map, text: str, kinds: Kinds | None = None) -> OrderText:
    """UserError, which does not repeat the text, if it cannot be read. `kinds` (V,): the kind of
    each province's unit or NONE, for units without A or F; None: there may be no such unit."""
    order = _read_order(game_map, text)
    if NONE not in [unit.kind for unit in order.units]:
        return order
    return order._replace(units=tuple(_with_kind(game_map, unit, kinds) for unit in order.units))


def _with_kind(game_map: Map, unit: UnitText, kinds: Kinds | None) -> UnitText:
    v = unit.place.province
    if unit.kind != NONE:
        return unit
    code = game_map.provinces[v]
    if kinds is None or kinds[v] == NONE:
        letter = f"a unit begins with A or F, not {code!r}"
        raise UserError(letter if kinds is None else f"there is no unit in {code}")
    return unit._replace(kind=int(kinds[v]))


def likely_kinds(game_map: Map) -> list[int]:
    """Return the UnitKind that is likely in each province."""
    return (game_map.board.terrain == Terrain.SEA).astype(int).tolist()


def ordered_unit(game_map: Map, text: str, kinds: Kinds | None = None) -> UnitText | None:
    """Return the unit that a text orders, or None; `kinds` as in `read_order`."""
    try:
        reader = _Reader(game_map, text)
        reader.begin()
        return _with_kind(game_map, reader.unit(), kinds)
    except UserError:
        return None


@_remembered
def read_place(game_map: Map, text: str) -> tuple[int | None, Place]:
    """`(unit kind or None, place)` of `A PAR`, `*A MUN` or `PAR`; UserError if it is none."""
    try:
        reader = _Reader(game_map, text)
        unit = reader.unit()
        reader.end()
    except UserError as error:
        raise UserError(f"{quoted(text)} is not a unit or province: {error}") from None
    return None if unit.kind == NONE else unit.kind, unit.place


@_remembered
def read_unit(game_map: Map, text: str) -> tuple[UnitText, bool]:
    """A unit and whether it is starred as dislodged (`*A PAR`); UserError if it is none."""
    kind, place = read_place(game_map, text)
    if kind is None:
        raise UserError(f"{quoted(text)} is not a unit: it begins with A or F")
    return UnitText(kind, place), text.lstrip().startswith("*")


@_remembered
def listed_unit(game_map: Map, text: str) -> str | None:
    """Return the unit that is all a text has, such as `A PAR`; None if it is none."""
    try:
        reader = _Reader(game_map, text)
        unit = reader.unit()
        reader.end()
    except UserError:  # its hints would take too long for each line of a long text
        return None
    return None if unit.kind == NONE else unit_text(game_map, unit)


@_remembered
def order_kind(game_map: Map, text: str) -> int:
    """Return the OrderKind of a text, NONE if it is no order."""
    try:
        return _read_order(game_map, text).kind
    except UserError:
        return NONE


def no_order(game_map: Map, text: str) -> str:
    """Return why a text is no order, or nothing if it is one."""
    try:
        _read_order(game_map, text)
    except UnknownProvince as error:  # the hint takes too long for each line of a long text
        return f"there is no province {error.args[1]!r:.50} on this map"
    except UserError as error:
        return str(error)
    return ""


def is_result(text: str) -> bool:
    """Tell whether a text has only words of results, such as `(bounced)`."""
    return set(_tokens(text)) <= _RESULTS


def read_orders(
    game_map: Map,
    phase: str,
    units: Mapping[str, Collection[str]],
    orders: Mapping[str, Sequence[str] | None],
    results: Mapping[str, Sequence[str]],
    choose: Callable[[list[GivenOrder]], GivenOrder] | None = None,
) -> dict[str, list[GivenOrder]]:
    """The orders of a phase by power of the map, each with what became of it (`results`: unit ->
    words, or empty). `units` are those that the phase orders, by power. `choose` tells which of
    several orders of one unit counts (None: the first that can be read); the others are void, as
    are orders of another power's unit."""
    winter = phase_kind(phase) == "adjustments"
    choose = choose or (lambda several: next((one for one in several if one.order), several[0]))
    standing = {unit for own in units.values() for unit in own}
    by_power = {}
    for power, texts in orders.items():
        if power not in game_map.power_index:
            continue
        own = {(unit[0], province_of(unit)): unit for unit in units.get(power, ())}
        by_unit: dict[str, list[GivenOrder]] = {}
        by_power[power] = []
        for text in texts or ():
            order_text = _read_given(game_map, power, text, own)
            order = order_text.order
            if order is not None and order.kind in (OrderKind.BUILD, OrderKind.WAIVE):
                order_text = order_text._replace(counts=winter and order_text.unit not in standing)
            by_power[power].append(order_text)
            if order_text.counts and order_text.unit:
                by_unit.setdefault(order_text.unit, []).append(order_text)
        counting = {
            unit: several[0] if len(several) == 1 else choose(several)
            for unit, several in by_unit.items()
        }
        for i, order_text in enumerate(by_power[power]):
            counts = order_text.counts and counting.get(order_text.unit, order_text) is order_text
            words = tuple(results.get(order_text.unit, ())) if counts else ("void",)
            by_power[power][i] = order_text._replace(
                words=words, said=", ".join(words), counts=counts
            )
    return by_power


def _read_given(game_map: Map, power: str, text: str, own: Mapping) -> GivenOrder:
    try:
        order = read_order(game_map, text)
        unit = next(iter(order.units), None)
    except UserError:
        order, unit = None, ordered_unit(game_map, text)
    if unit is None:
        return GivenOrder(power, text, order, "", counts=order is not None)
    written = unit_text(game_map, unit)
    if order is not None and order.kind == OrderKind.BUILD:
        return GivenOrder(power, text, order, written)
    key = UNIT_LETTERS[unit.kind], game_map.provinces[unit.place.province]
    return GivenOrder(power, text, order, own.get(key, written), counts=key in own)


@_remembered
def _read_order(game_map: Map, text: str) -> OrderText:
    """The kind of a unit without a letter is NONE."""
    return _Reader(game_map, text).order()


class _Reader:
    def __init__(self, game_map: Map, text: str):
        if not isinstance(text, str) or len(text) > MAX_TEXT:
            raise UserError(f"an order is a text of at most {MAX_TEXT} characters")
        self.map = game_map
        self.tokens = _own_tokens(game_map, text) or _order_tokens(text)
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        comes_next = self.tokens[self.next : self.next + len(words)] == words
        if comes_next:
            self.next += len(words)
        return comes_next

    def end(self, may_follow: Iterable[str] = ("",)) -> None:
        if ")" in may_follow:
            self.take(")")  # of a bracket around the order; A RUH-H)OL is no hold
        both = self.tokens[self.next + 1 : self.next + 2] if self.peek() == "AND" else ()
        if not {self.peek(), *both}.issubset(may_follow):
            rest = " ".join(self.tokens[self.next :])
            raise UserError(f"{rest!r} at the end has no meaning")

    def unit(self) -> UnitText:
        """Read a unit; without A or F its kind is NONE."""
        word = self.peek()
        self.next += word in _UNIT_WORDS
        kind, place = _UNIT_WORDS.get(word, NONE), self.place()
        if kind == NONE:  # Paris army, Paris (army); a letter only at the end
            behind = self.tokens[self.next :]
            for word, tokens in ((w, t) for w in _UNIT_WORDS for t in ((w,), ("(", w, ")"))):
                if behind[: len(tokens)] == tokens and (len(word) > 1 or tokens == behind):
                    self.next += len(tokens)
                    kind = _UNIT_WORDS[word]
        return UnitText(kind, place)

    def place(self) -> Place:
        rest = self.tokens[self.next :]
        if not rest:
            raise UserError("a province is missing at its end")
        length, provinces = _find(self.map, rest)
        if not provinces:
            raise UnknownProvince(self.map, " ".join(rest[:length]))
        codes = [self.map.provinces[index] for index in provinces]
        if len(provinces) > 1:
            raise UserError(f"{' '.join(rest[:length])!r:.50} may be {' or '.join(codes)}")
        self.next += length
        while self.peek() in _OF_PLACES[1:]:
            self.next += 1
        return Place(provinces[0], self.coast(codes[0]))

    def coast(self, province: str) -> int:
        """Read `/SC`, `(SC)`, `SC` or `SOUTH COAST`, if a coast comes next. Coasts of other names
        are read after a slash or in brackets only."""
        begin = self.next
        closing = self.take("(")
        slash = not closing and self.take("/")
        numbers = self.map.coast_numbers[province]
        ahead = self.tokens[begin + 1 : begin + 2]
        if numbers and ahead and ahead[0] in COASTS and ahead[0] not in self.map.province_index:
            slash = self.take("-") or slash  # SPA-NC
        word = self.peek()
        if word not in numbers or not (closing or slash):
            word = _COASTS_OF_DAIDE.get(word, word)
            word += "C" * ((closing or slash) and len(word) == 1)  # SPA(N)
        if set(numbers) <= set(COASTS):
            numbers = _USUAL_COASTS  # needless and wrong ones are left to the rules
        if word in numbers and (word in COASTS or closing or slash):
            coast = numbers[word]
            self.next += 1
        elif _LONG_COASTS.get(word) in numbers and (
            self.take(word, "COAST") or (closing and self.take(word))
        ):
            coast = numbers[_LONG_COASTS[word]]
        elif closing:  # a result
            self.next = begin
            return 0
        elif slash:
            *others, last = numbers
            names = f"{', '.join(others)} or {last}"
            raise UserError(f"{word!r} after {province} is not a coast ({names})")
        else:
            return 0
        if closing and not self.take(")"):
            raise UserError(f"the bracket after {province} is not closed")
        return coast

    def begin(self) -> int | None:
        """Step over the verb before an order's unit, if there is one, and return its kind."""
        word, kind = self.peek(), self.verb()
        letter = (
            len(word) == 1
            and word != "M"
            and not {*self.tokens[self.next + 1 : self.next + 2]} & {*_UNIT_WORDS}
        )
        behind_unit = kind in (None, OrderKind.SUPPORT_HOLD, OrderKind.CONVOY)
        if behind_unit or word in ("-", "TO", "INTO") or letter:
            return None
        self.next += 1
        return kind

    def verb(self) -> int | None:
        return _VERBS.get(self.peek())

    def names_place(self) -> bool:
        return bool(_find(self.map, self.tokens[self.next :])[1])

    def via(self) -> bool:
        """Read VIA, and step over the seas of the convoy if they are named."""
        if not self.take("VIA"):
            return False
        while self.peek() not in _RESULTS:
            self.take("-")
            self.take("F")
            v = self.place().province
            if not self.map.can_convoy[v]:
                raise UserError(f"no fleet can convoy in {self.map.provinces[v]}")
            self.take("AND")
        return True

    def order(self) -> OrderText:
        """Read an order, whose unit may have no letter (then its kind is NONE)."""
        if not self.tokens:
            raise UserError("the order is empty")
        if self.take("WAIVE"):
            self.end(_RESULTS)
            return OrderText(OrderKind.WAIVE)
        first = self.begin()
        unit = self.unit()
        if first in (OrderKind.BUILD, OrderKind.DISBAND, OrderKind.HOLD):
            order = OrderText(first, (unit,))
        elif first is not None:
            self.next += self.verb() in (OrderKind.MOVE, OrderKind.RETREAT)
            order = self._rest(unit, first)
        else:
            verb = self.verb()
            if verb is None and not (unit.kind != NONE and self.names_place()):  # A PAR BUR moves
                word = repr(self.peek()) if self.peek() else "nothing after the unit"
                raise UserError(f"{word} is not one of H, -, S, C, R, D and B")
            self.next += verb is not None
            order = self._rest(unit, OrderKind.MOVE if verb is None else verb)
        self.end(_RESULTS)
        return order

    def _rest(self, unit: UnitText, verb: int) -> OrderText:
        """Read what comes behind an order's verb."""
        going = verb in (OrderKind.MOVE, OrderKind.RETREAT)
        disbands = self.verb() == OrderKind.DISBAND and len(self.peek()) > 1
        if going and disbands and self.peek() not in self.map.province_index:
            self.next += 1  # A MUN retreats OTB
            return OrderText(OrderKind.DISBAND, (unit,))
        if verb == OrderKind.MOVE:
            self.take("-")
            target, via, fleet = self.place(), False, unit.kind == UnitKind.FLEET
            while not fleet and self.map.can_convoy[target.province] and self.take("-"):
                target, via = self.place(), True  # an army's way over the sea
            return OrderText(OrderKind.MOVE, (unit,), (target,), self.via() or via)
        if verb == OrderKind.RETREAT:
            return OrderText(OrderKind.RETREAT, (unit,), (self.place(),))
        if verb not in (OrderKind.SUPPORT_HOLD, OrderKind.CONVOY):
            return OrderText(verb, (unit,))
        moving = OrderKind.CONVOY if verb == OrderKind.CONVOY else OrderKind.SUPPORT_MOVE
        word = self.tokens[self.next - 1]
        other = self.unit()
        following = self.verb()
        holds = following == OrderKind.HOLD
        if moving != OrderKind.CONVOY and word != "SM" and (holds or self.peek() in _RESULTS):
            self.next += holds
            return OrderText(OrderKind.SUPPORT_HOLD, (unit, other))
        if word == "SH":
            raise UserError("it supports a hold, but the other unit is to go somewhere")
        if following != OrderKind.MOVE and not self.names_place():
            raise UserError("it does not say where the other unit is to go")
        self.next += following == OrderKind.MOVE
        target = self.place()
        self.via()
        return OrderText(moving, (unit, other), (target,))


def _own_tokens(game_map: Map, text: str) -> tuple[str, ...]:
    """Return the tokens of a text that the vocabulary could have, else none."""
    text = text.upper()
    if not _OWN_TEXT.fullmatch(text):
        return ()
    locations = re.findall(rf"(?:^| )({_LOCATION})(?= |$)", text.removesuffix(" VIA"))
    is_own = all(location in game_map.location_index for location in locations)
    return tuple(re.findall("[A-Z]+|[-/]", text)) if is_own else ()


@lru_cache(maxsize=1 << 13)
def _order_tokens(text: str) -> tuple[str, ...]:
    """The same text is read several times: for its unit, for its verb, and for what is wrong."""
    text = text.upper()
    for wording, read in _WORDINGS:
        text = wording.sub(read, text)
    return _tokens(text)


def _tokens(text: str) -> tuple[str, ...]:
    if not text.isascii():  # e with an accent is e
        text = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
    matches = _TOKEN.findall(text.upper().replace("[", "(").replace("]", ")"))
    return tuple("-" if DASH.match(token) else token for token in matches if token != "THE")


@lru_cache(maxsize=16)
def _names(game_map: Map) -> tuple[dict[tuple[str, ...], tuple[int, ...]], list]:
    """Return token sequences -> the provinces they name, and the full names in short. Codes come
    first, then aliases and full names, then PLACES. What begins like an order names nothing: were
    "Par H" a name, nobody could tell PAR to hold."""
    codes = {(code,): (index,) for code, index in game_map.province_index.items()}
    exact: dict[tuple[str, ...], tuple[int, ...]] = {key: own for key, own in codes.items()}
    plain: list[tuple] = []
    named = [(name.upper(), code) for code, name in game_map.province_names.items()]
    for name, code in (*game_map.aliases.items(), *named):
        index, tokens = game_map.province_index[code], _tokens(name)
        if len(name) > 3:
            plain.append((_plain(tokens), index))
        short = tokens[:-1] if len(tokens) > 2 and tokens[-1] in _OF_PLACES else tokens
        keys = {tuple(t for t in key if t != "-") for key in (tokens, short)}
        for key in {tokens, short, *keys}:
            if key[:1] in codes and key[1:2] and key[1] in _AFTER_PLACE:
                continue
            if key and key not in codes and index not in exact.get(key, ()):
                exact[key] = (*exact.get(key, ()), index)
    for other, name in PLACES.items():
        if _tokens(name) in exact:
            exact.setdefault(_tokens(other), exact[_tokens(name)])
    return exact, plain


def _plain(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(token for token in tokens if token not in _OF_PLACES)


def _find(game_map: Map, tokens: tuple[str, ...]) -> tuple[int, tuple[int, ...]]:
    """Return how many of the first tokens name a place, and which provinces they may mean. Names
    that are not known exactly may be cut: `N Atl`, `Western Med`."""
    exact, plain = _names(game_map)
    for length in range(len(tokens), 0, -1):
        key = tokens[:length]
        joined = tuple(token for token in key if token != "-")  # Mid-Atlantic for Mid Atlantic
        own = exact.get(joined) == exact.get(key[:1]) and key[2:] not in exact  # no move from it
        if key[-1] != "-" and (own or tokens[0] not in game_map.province_index):
            key = key if key in exact else joined
        if key in exact:
            return length, exact[key]
    ends = (i for i in range(1, len(tokens)) if tokens[i] in _AFTER_PLACE)
    length = next(ends, len(tokens))
    words = _plain(tokens[:length])
    if len("".join(words)) < 3:
        return length, ()
    provinces = dict.fromkeys(
        index
        for name, index in plain
        if len(words) <= len(name) and all(map(str.startswith, name, words))
    )
    return length, tuple(provinces)
