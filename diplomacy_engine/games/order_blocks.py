"""Blocks of order texts by power and phase, as in mails, forums and chats.

    Spring 1901
    France: A Par-Bur, F Bre-MAO, A Mar S A Par-Bur *fails*
    GERMANY
    A Ber - Kie; F Kie - Den

A line that names a phase begins that phase; one that begins with a power's name and a colon, or is
just the name, begins the orders of that power. Orders stand one a line, or with commas or
semicolons between. What is said about an order's outcome is left out. A unit's letter may be
missing where the board tells it.

Blocks of units in place of orders are a position; a line `centers: Par, Mar` in a power's block
says what it owns:

    Fall 1902
    France: A Par, F Bre
    centers: Par, Mar, Bre, Spa
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .._suggest import printable, quoted
from ..constants import NONE, UNIT_LETTERS, phase_kind, phase_name
from ..errors import UserError
from ..rules.map import Map
from ..rules.notation import place_text, province_of, read_order, read_place

MOST_LETTERS = 1_000_000
_MOST_OF_A_LINE, _MOST_OF_A_NAME = 2000, 60  # letters
_CODE = re.compile(r"([SFW])(\d{1,4})([MRA])")
_SEASON = re.compile(
    r"(spring|summer|fall|autumn|winter)[\s,]*(?:of[\s,]+)?(\d{1,4})\b[\s,:.-]*([a-z ]*)[\s:.]*",
    re.IGNORECASE,
)
_SEASONS = {"spring": 0, "summer": 1, "fall": 2, "autumn": 2, "winter": 4}
_WORDS = {
    "": 0,
    "movement": 0,
    "moves": 0,
    "diplomacy": 0,
    "orders": 0,
    "retreat": 1,
    "retreats": 1,
    "adjustments": 0,
    "adjustment": 0,
    "builds": 0,
}
_REMARKS = re.compile(
    r"\*[^*]*\*|\((?!\s*(?:[nesw]c|(?:north|east|south|west)\s+coast)\s*\))[^)]*\)|\[[^\]]*\]|[_`]|"
    r"\*+$",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\s+(?:fails?|failed|bounced?s?|succeeds?|succeeded|dislodged|cut|void|no convoy)$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"^the\s+(army|fleet)\s+(?:at|in)\s+", re.IGNORECASE)
_HELP = re.compile(
    r"^(.*?\s(?:s|supports?|c|convoys?)\s+)(?:(?:hold|move)\s+(?:to|from)\s+)?(.*)$", re.I
)
_CENTERS = re.compile(r"^(?:(?:supply\s+)?cent(?:er|re)s?|scs?)\b\s*:?\s*(.*)$", re.IGNORECASE)
_LETTERS = ("", "A ", "F ")


class Block(NamedTuple):
    """Orders of one power, as they stand in a text."""

    phase: str  # empty where none is named before it
    power: str
    orders: list[str]
    line: int


def read_blocks(game_map: Map, text: str) -> list[Block]:
    """Return the blocks of a text.

    Raises:
        UserError: it is too long, or a line belongs to no power.
    """
    if len(text) > MOST_LETTERS:
        raise UserError(f"a text of orders may have at most {MOST_LETTERS:,} characters")
    blocks: list[Block] = []
    phase = power = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = _plain(line)
        if not line:
            continue
        if len(line) > _MOST_OF_A_LINE:
            raise UserError(f"line {number} has more than {_MOST_OF_A_LINE:,} characters")
        named = read_phase(line)
        if named:
            phase, power = named, ""
            continue
        head, rest = _heading(game_map, line)
        if head:
            power, line = head, rest
        orders = list(_orders(line))
        if not power:
            raise UserError(
                f"line {number}, {quoted(printable(line), 60)}, is under no power's name, such "
                f"as {game_map.powers[0]}"
            )
        if orders or head:
            blocks.append(Block(phase, power, orders, number))
    return blocks


def read_position(game_map: Map, blocks: Sequence[Block]) -> dict | None:
    """Return the state that blocks of units say; None if these are blocks of orders.

    The first entry tells which they are. A power whose centers are not named owns its home centers,
    unless somebody else stands there, and the centers on which its units stand.

    Raises:
        UserError: an entry is no unit or center, or there are two phases, or one of retreats.
    """
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
        raise UserError(
            f"{name}: the possible retreats are unknown; include the orders before them"
        )
    state = {"name": name, "units": units}
    return state | {"centers": _all_centers(game_map, units, centers)}


def _unit(game_map: Map, text: str) -> str | None:
    """Return a unit's text as the games write it; None for what is none."""
    try:
        kind, place = read_place(game_map, text)
    except UserError:
        return None
    return None if kind is None else f"{UNIT_LETTERS[kind]} {place_text(game_map, place)}"


def _center(game_map: Map, text: str, line: int) -> list[str]:
    """Return the code of a center that is named, if any is."""
    if not text:
        return []
    try:
        _, place = read_place(game_map, text)
    except UserError as error:
        raise UserError(f"line {line}: {error}") from None
    if game_map.board.province_center[place.province] == NONE:
        raise UserError(f"line {line}: {game_map.provinces[place.province]} is not a center")
    return [game_map.provinces[place.province]]


def _all_centers(
    game_map: Map, units: Mapping[str, Sequence[str]], named: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return the centers of all powers: those that are named, and the likely ones of the others."""
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


def is_blocks(game_map: Map, text: str) -> bool:
    """Tell whether a text begins as such blocks do: with a phase's or a power's name."""
    for line in text.splitlines():
        line = _plain(line)
        if line:
            return bool(read_phase(line) or _heading(game_map, line)[0])
    return False


def _plain(line: str) -> str:
    """Return a line without the marks of a list, quotation or heading."""
    return line.replace("**", "").strip().lstrip("#>\u2022*-= \t").rstrip("= \t")


def read_phase(line: str) -> str:
    """Return the phase that a line names, such as F1901R; empty if it names none."""
    if len(line) > _MOST_OF_A_NAME:
        return ""
    code = _CODE.fullmatch(line.rstrip(":").upper())
    if code:
        return code[0]
    found = _SEASON.fullmatch(line)
    if found is None:
        return ""
    season, year, word = found[1].lower(), int(found[2]), " ".join(found[3].lower().split())
    if word not in _WORDS or year == 0:
        return ""
    number = _SEASONS[season]
    if _WORDS[word] and number in (0, 2):
        number += 1
    return phase_name(year, number)


def _heading(game_map: Map, line: str) -> tuple[str, str]:
    """Return the power whose name a line begins with, and the rest of the line."""
    name, colon, rest = line.partition(":")
    if len(name) > _MOST_OF_A_NAME:
        return "", line
    name = re.sub(r"[*_`]|\(.*?\)", "", name).strip().upper()
    matching = [p for p in game_map.powers if len(name) >= 3 and p.startswith(name)]
    return (matching[0], rest if colon else "") if len(matching) == 1 else ("", line)


def _orders(line: str) -> Iterator[str]:
    for part in re.split(r"[;,]|\s{3,}|(?<=\w)\.\s+(?=[AF]\s)", line):
        text = " ".join(_REMARKS.sub(" ", part).split()).rstrip(".")
        text = _SENTENCE.sub(r"\1 ", _OUTCOME.sub("", text).rstrip("-=>: "))
        if text and text.lower() not in ("none", "no orders", "nmr", "-"):
            yield text


def completed(game_map: Map, text: str, units: Mapping[str, str]) -> str:
    """Return an order with the unit letters that it leaves out.

    Args:
        game_map: the map.
        text: the order.
        units: province -> A or F, of the units on the board.
    """
    helped = _HELP.match(text)
    for letter in _LETTERS:
        for other in _LETTERS if helped else ("",):
            tried = f"{letter}{helped[1]}{other}{helped[2]}" if helped else letter + text
            try:
                order = read_order(game_map, tried)
            except UserError:
                continue
            named = [unit for unit in (order.unit, order.other) if unit is not None]
            if letter or other:
                there = [units.get(game_map.provinces[unit.place.province]) for unit in named]
                if there != ["AF"[unit.kind] for unit in named]:
                    continue
            return tried
    return text
