"""Blocks of order texts by power and phase, as in mails, forums and chats; see docs/elsewhere.md. A
line that names a phase begins it (`Movement results for Spring of 1901. (game.001)`, `S01`); a
power's name, alone or before a colon, begins its orders, or its units and `centers: Par, Mar`."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..._suggest import printable, quoted
from ...constants import NONE, UNIT_LETTERS, parse_phase, phase_kind, phase_name
from ...errors import UserError
from ...rules.map import Map
from ...rules.names import power_called
from ...rules.notation import no_order, order_texts, place_text, province_of, read_place

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE, _MOST_OF_A_NAME = 2000, 60  # letters
_SEASONS = {"spring": 0, "summer": 1, "fall": 2, "autumn": 2, "winter": 4, "s": 0, "f": 2, "w": 4}
_KINDS = {
    **dict.fromkeys(("movement", "moves", "diplomacy", "m"), 0),
    **dict.fromkeys(("retreat", "retreats", "r"), 1),
    **dict.fromkeys(("adjustment", "adjustments", "builds", "unit placement", "a"), 2),
}
_BESIDE = {"", "of", "the", "for", "results", "result", "orders", "order", "phase", "turn", "and"}
_BESIDE |= {"adjudication", "season", "status", "date", "report", "removals", "disbands", "year"}
# Names of games: `(game.001)`, `of the game X`
_ASIDE = re.compile(r"\([^)]*[\d.][^)]*\)|(?<=\d)\s.*?\b(?:(?:of the game|for|in)\b|turn \d).*")
_CENTERS = re.compile(r"^(?:(?:supply\s+)?cent(?:er|re)s?|scs?)\b\s*:?\s*(.*)$", re.IGNORECASE)
_OF_POWER = re.compile(
    r"([^:]{3,60}?)(?::|\s+(?:[-\u2013\u2014]\s*)?(?=[(*\[<]*(?:[AF]|army|fleet)\b))(.*)",
    re.IGNORECASE,
)
_TAGS = re.compile(r"\*\*|__|[<\[]/?(?:b|i|u|s|em|strong|li|ul|ol|p|br)/?[>\]]", re.IGNORECASE)
_NOTHING = ("none", "no orders", "nmr", "-")
FORMS = (
    "a line names a phase (Spring 1901, S1901M, Movement results for Spring of 1901), and below it "
    "stand each power's name and orders (France: A Par-Bur, F Bre-MAO)"
)


class Block(NamedTuple):
    phase: str  # empty where none is named before it
    power: str
    orders: list[str]
    line: int


def read_blocks(
    game_map: Map, text: str, note: Callable[[str], object] = lambda text: None
) -> list[Block]:
    """Return the blocks of a text; `note` is told what belongs to none."""
    if len(text) > MOST_LETTERS:
        raise UserError(f"a text of orders may have at most {MOST_LETTERS:,} characters")
    blocks: list[Block] = []
    phase = power = ""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > _MOST_OF_A_LINE:
            raise UserError(f"line {number} has more than {_MOST_OF_A_LINE:,} characters")
        line = _plain(line)
        if not line:
            continue
        named = read_phase(line, phase, int(game_map.board.first_year))
        if named:
            power = "" if re.search(r"\d", line) else power
            phase = named
            continue
        head, line = _heading(game_map, line)
        power = head or power
        orders = [t for t in order_texts(line) if t.lower() not in _NOTHING]
        if power and (orders or head):
            blocks.append(Block(phase, power, orders, number))
            continue
        if not all(no_order(game_map, order) for order in orders):
            shown = quoted(printable(line), 60)
            raise UserError(f"line {number}, {shown}, is under no power's name")
        if orders:
            note(left_out(number, line, "it is under no power's name"))
    return blocks


def left_out(line: int, text: str, reason: str) -> str:
    return f"line {line}, {quoted(printable(text), 60)}, is left out: {reason}"


def read_position(game_map: Map, blocks: Sequence[Block]) -> dict | None:
    """Return the state that blocks of units say; None if the first entry is an order. A power whose
    centers are not named owns those on which it stands, and its home if nobody else does."""
    entries = [(block, text) for block in blocks for text in block.orders]
    if not entries or _unit(game_map, entries[0][1]) is None:
        return None
    units: dict[str, list[str]] = {}
    centers: dict[str, list[str]] = {}
    line = 0  # on which centers are listed
    for block, text in entries:
        named = _CENTERS.match(text)
        if named:
            line, text = block.line, named[1]
        if line == block.line:
            centers.setdefault(block.power, []).extend(_center(game_map, text, line))
            continue
        unit = _unit(game_map, text)
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


def _unit(game_map: Map, text: str) -> str | None:
    try:
        kind, place = read_place(game_map, text)
    except UserError:
        return None
    return None if kind is None else f"{UNIT_LETTERS[kind]} {place_text(game_map, place)}"


def _center(game_map: Map, text: str, line: int) -> list[str]:
    if not text:
        return []
    try:
        _, place = read_place(game_map, text)
    except UserError as error:
        raise UserError(f"line {line}: {error}") from None
    if game_map.board.province_center[place.province] == NONE:
        raise UserError(f"line {line}: {game_map.provinces[place.province]} is not a center")
    return [game_map.provinces[place.province]]


def all_centers(
    game_map: Map, units: Mapping[str, Sequence[str]], named: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    board = game_map.board
    stands = {province_of(text): power for power, texts in units.items() for text in texts}
    found = {power: list(codes) for power, codes in named.items()}
    taken = {code for codes in named.values() for code in codes}
    for v, code in enumerate(game_map.provinces):
        home = board.home_power[v]
        owner = stands.get(code, game_map.powers[home] if home != NONE else None)
        if board.province_center[v] != NONE and code not in taken and owner not in (None, *named):
            found.setdefault(owner, []).append(code)
    return found


def _plain(line: str) -> str:
    return _TAGS.sub("", line).strip().lstrip("#>\u2022*-= \t").rstrip("= \t")


def read_phase(line: str, before: str = "", first_year: int = 1901) -> str:
    """Return the phase that a line names, such as F1901R, or nothing. `Retreats` alone are those of
    the phase `before`; years of two digits are in the century of `first_year`."""
    if len(line) > _MOST_OF_A_NAME:
        return ""
    text = _ASIDE.sub(" ", line.lower())
    words = [word.replace("-", " ") for word in re.findall(r"unit.placement|[^\W\d_]+|\d+", text)]
    years = [int(word) for word in words if word.isdecimal()]
    seasons = [_SEASONS[word] for word in words if word in _SEASONS]
    kinds = [_KINDS[word] for word in words if word in _KINDS]
    beside = sum(word in _BESIDE for word in words)
    if len(years) + len(seasons) + len(kinds) + beside != len(words):
        return ""
    if before and kinds and not years and not seasons and len(words[0]) > 1:
        years, number = [parse_phase(before)[0]], min(parse_phase(before)[1], 3) // 2 * 2
    elif len(years) == len(seasons) == 1 and 0 < years[0] < 10_000:
        number = seasons[0]
    else:
        return ""
    year = years[0] + (first_year // 100 * 100 if years[0] < 100 <= first_year else 0)
    if kinds and number != 4:
        number = 4 if kinds[0] == 2 else number // 2 * 2 + max(kinds[0], number % 2)
    return phase_name(year, number)


def _heading(game_map: Map, line: str) -> tuple[str, str]:
    found = _OF_POWER.match(line)
    power = found and power_called(game_map, found[1])
    if power:
        return power, found[2]
    power = power_called(game_map, line) if len(line) <= _MOST_OF_A_NAME else None
    return (power, "") if power else ("", line)
