"""DAIDE's language on the wire: two bytes a token; and our orders and positions in its words.

A message is a list of words: tokens such as FRA, numbers, texts in quotes, and lists for brackets.
The token list is a public document of daide.org.uk; provinces are those of the standard map, in
groups by what they are, each in the alphabet of DAIDE's codes.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from .._suggest import quoted
from ..constants import LAND, NONE, SEA, parse_phase, phase_name
from ..errors import UserError
from ..games.game import Game
from ..press.daide import COAST_NAMES, power_names, province_names
from ..rules.map import Map, load_map
from ..rules.notation import province_of, read_order
from .sea_paths import convoy_path

Word = str | int | list
_MOST_DEPTH = 50
_TEXT, _BRACKETS = 0x4B, (0x4000, 0x4001)
_GROUPS = {  # class of tokens -> its words by their second byte; a dash stands for none
    0x41: "AUS ENG FRA GER ITA RUS TUR",
    0x42: "AMY FLT",
    0x44: "MBV BPR CST ESC FAR HSC NAS NMB NMR NRN NRS NSA NSC NSF NSP - NSU NVR NYU YSC",
    0x45: "SUC BNC CUT DSR FLD NSO RET",
    0x46: "NCS - NEC - ECS - SEC - SCS - SWC - WCS - NWC",
    0x47: "SPR SUM FAL AUT WIN",
    0x48: "CCD DRW FRM GOF HLO HST HUH IAM LOD MAP MDF MIS NME NOT NOW OBS OFF ORD OUT PRN REJ SCO "
    "SLO SND SUB SVE THX TME YES ADM SMR",
    0x49: "AOA BTL ERR LVL MRT MTL NPB NPR PDA PTL RTL UNO - DSD",
}
_ORDERS = {
    "CTO": 0x20,
    "CVY": 0x21,
    "HLD": 0x22,
    "MTO": 0x23,
    "SUP": 0x24,
    "VIA": 0x25,
    "DSB": 0x40,
    "RTO": 0x41,
    "BLD": 0x80,
    "REM": 0x81,
    "WVE": 0x82,
}
_SEASONS = ("SPR", "SUM", "FAL", "AUT", "WIN")  # by our numbers of phases


@lru_cache(maxsize=1)
def _tokens() -> tuple[dict[str, int], dict[int, str]]:
    """Return the numbers of the words, and the words of the numbers."""
    numbers = {
        word: group << 8 | second
        for group, words in _GROUPS.items()
        for second, word in enumerate(words.split())
        if word != "-"
    }
    numbers |= {word: 0x43 << 8 | second for word, second in _ORDERS.items()}
    numbers |= _province_tokens(load_map("standard"))
    return numbers, {number: word for word, number in numbers.items()}


def _province_tokens(game_map: Map) -> dict[str, int]:
    board, names, groups = game_map.board, province_names(game_map), {}
    split = set(board.location_province[board.location_coast > 0].tolist())
    for v, name in enumerate(names):
        kind = {LAND: 0, SEA: 2}.get(int(board.terrain[v]), 4)
        group = kind + int(board.province_center[v] != NONE)
        groups.setdefault(7 if v in split else group, []).append(name)
    numbers, second = {}, 0
    for group in sorted(groups):
        for name in sorted(groups[group]):
            numbers[name] = (0x50 + group) << 8 | second
            second += 1
    return numbers


def encode(words: Sequence[Word]) -> bytes:
    """Return a message's bytes; UserError for a word that is none."""
    content = bytearray()
    for word in words:
        if isinstance(word, list):
            content += b"\x40\x00" + encode(word) + b"\x40\x01"
        elif isinstance(word, int):
            if not -8192 <= word <= 8191:
                raise UserError(f"{word} is not a number of a message")
            content += (word & 0x3FFF).to_bytes(2, "big")
        elif word.startswith("'"):
            content += b"".join(bytes((_TEXT, ord(letter) & 0x7F)) for letter in word[1:-1])
        elif word in _tokens()[0]:
            content += _tokens()[0][word].to_bytes(2, "big")
        else:
            raise UserError(f"{quoted(word, 40)} is not a word of a message")
    return bytes(content)


def decode(content: bytes) -> list[Word]:
    """Return a message's words.

    Raises:
        UserError: a token is unknown, or the brackets do not fit.
    """
    if len(content) % 2:
        raise UserError("a message has an odd number of bytes")
    stack: list[list] = [[]]
    for at in range(0, len(content), 2):
        number = content[at] << 8 | content[at + 1]
        if number == _BRACKETS[0]:
            stack.append([])
            if len(stack) > _MOST_DEPTH:
                raise UserError("its brackets are nested too deeply")
        elif number == _BRACKETS[1]:
            if len(stack) == 1:
                raise UserError("a closing bracket has no opening one")
            done = stack.pop()
            stack[-1].append(done)
        elif number < 0x4000:
            stack[-1].append(number - 0x4000 if number & 0x2000 else number)
        elif number >> 8 == _TEXT:
            last = stack[-1][-1] if stack[-1] else None
            letter = chr(number & 0x7F)
            if isinstance(last, str) and last.startswith("'"):
                stack[-1][-1] = f"{last[:-1]}{letter}'"
            else:
                stack[-1].append(f"'{letter}'")
        elif number in _tokens()[1]:
            stack[-1].append(_tokens()[1][number])
        else:
            raise UserError(f"there is no token {number:04X}")
    if len(stack) > 1:
        raise UserError("a bracket is not closed")
    return stack[0]


def shown(words: Sequence[Word]) -> str:
    """Return a message as it is written, for people."""
    parts = (f"( {shown(w)} )" if isinstance(w, list) else str(w) for w in words)
    return " ".join(parts)


def turn_words(phase: str) -> list[Word]:
    """Return a phase such as `SPR 1901`."""
    year, number = parse_phase(phase)
    return [_SEASONS[number], year]


def read_turn(words: object) -> str:
    """Return our name of a phase; UserError if it is none."""
    match words:
        case [str(season), int(year)] if season in _SEASONS and year > 0:
            return phase_name(year, _SEASONS.index(season))
    raise UserError(f"{quoted(words)} is not a phase")


def place_words(game_map: Map, place: str) -> Word:
    """Return a location such as `STP/SC` as `( STP SCS )`."""
    code, _, coast = place.partition("/")
    name = province_names(game_map)[game_map.province_index[code]]
    return [name, f"{coast}S"] if coast else name


def read_place_words(game_map: Map, words: object) -> str:
    """Return our text of a location; UserError if there is none."""
    names = province_names(game_map)
    match words:
        case str(name) if name in names:
            return game_map.provinces[names.index(name)]
        case [str(name), str(coast)] if name in names and coast in COAST_NAMES[1:]:
            place = f"{game_map.provinces[names.index(name)]}/{coast[:2]}"
            if place in game_map.location_index:
                return place
    raise UserError(f"{quoted(words)} is not a place")


def read_power(game_map: Map, word: object) -> str:
    """Return the power of a token; UserError if there is none."""
    names = power_names(game_map)
    if word not in names:
        raise UserError(f"{quoted(word)} is not a power")
    return game_map.powers[names.index(word)]


def unit_words(game: Game, power: str, unit: str) -> list[Word]:
    """Return a unit such as `( FRA AMY PAR )`."""
    name = power_names(game.map)[game.map.power_index[power]]
    kind = "AMY" if unit[0] == "A" else "FLT"
    return [name, kind, place_words(game.map, unit[2:])]


def read_unit_words(game_map: Map, words: object) -> tuple[str, str]:
    """Return power and unit; UserError if it is none."""
    match words:
        case [power, "AMY" | "FLT" as kind, place]:
            return read_power(game_map, power), f"{kind[0]} {read_place_words(game_map, place)}"
    raise UserError(f"{quoted(words)} is not a unit")


def order_words(game: Game, power: str, text: str) -> list[Word]:
    """Return an order of ours in DAIDE's words.

    A support names no coast of where it helps to, and an army at sea the fleets of one way.
    """
    name = power_names(game.map)[game.map.power_index[power]]
    if text == "WAIVE":
        return [name, "WVE"]
    order, words = read_order(game.map, text), text.split()
    unit, verb = unit_words(game, power, " ".join(words[:2])), words[2]
    kind = game.phase[-1]
    if verb == "D":
        return [unit, "REM" if kind == "A" else "DSB"]
    if verb in "HBR":
        goal = [place_words(game.map, words[3])] if verb == "R" else []
        return [unit, {"H": "HLD", "B": "BLD", "R": "RTO"}[verb], *goal]
    if verb == "-":
        goal = place_words(game.map, words[3])
        if not order.via:
            return [unit, "MTO", goal]
        seas = [place_words(game.map, place) for place in convoy_path(game, text)[1:]]
        return [unit, "CTO", goal, "VIA", seas]
    other = _standing(game, game.map.provinces[order.other.place.province])
    if order.target is None:
        return [unit, "SUP", other]
    goal = place_words(game.map, game.map.provinces[order.target.province])
    if verb == "S":
        return [unit, "SUP", other, "MTO", goal]
    return [unit, "CVY", other, "CTO", goal]


def _standing(game: Game, province: str) -> list[Word]:
    """Return the unit in a province."""
    for power, units in game.units.items():
        for unit in units:
            if province_of(unit) == province:
                return unit_words(game, power, unit)
    raise UserError(f"there is no unit in {province}")


def read_order_words(game_map: Map, words: Sequence[Word]) -> str:
    """Return our text of an order; UserError if it is none."""
    match words:
        case [str(), "WVE"]:
            return "WAIVE"
        case [unit, "HLD" | "DSB" | "REM" | "BLD" as verb]:
            letter = {"HLD": "H", "BLD": "B"}.get(verb, "D")
            return f"{read_unit_words(game_map, unit)[1]} {letter}"
        case [unit, "MTO" | "RTO" as verb, place]:
            sign = "-" if verb == "MTO" else "R"
            goal = read_place_words(game_map, place)
            return f"{read_unit_words(game_map, unit)[1]} {sign} {goal}"
        case [unit, "CTO", place, "VIA", list()]:
            goal = read_place_words(game_map, place)
            return f"{read_unit_words(game_map, unit)[1]} - {goal} VIA"
        case [unit, "SUP", other]:
            helped = read_unit_words(game_map, other)[1]
            return f"{read_unit_words(game_map, unit)[1]} S {helped}"
        case [unit, "SUP" | "CVY" as verb, other, "MTO" | "CTO", place]:
            helped, goal = read_unit_words(game_map, other)[1], read_place_words(game_map, place)
            return f"{read_unit_words(game_map, unit)[1]} {verb[0]} {helped} - {goal}"
    raise UserError(f"{quoted(list(words))} is not an order")


def read_position(game_map: Map, now: Sequence[Word], centers: Mapping[str, list[str]]) -> dict:
    """Return the state dictionary of a NOW message's words after its name."""
    if not now:
        raise UserError("NOW names no phase")
    state: dict = {"name": read_turn(now[0]), "centers": dict(centers)}
    units: dict[str, list[str]] = {power: [] for power in game_map.powers}
    retreats: dict[str, dict[str, list[str]]] = {}
    for words in now[1:]:
        match words:
            case [power, kind, place, "MRT", list(places)]:
                owner, unit = read_unit_words(game_map, [power, kind, place])
                found = [read_place_words(game_map, goal) for goal in places]
                retreats.setdefault(owner, {})[unit] = found
            case _:
                owner, unit = read_unit_words(game_map, words)
                units[owner].append(unit)
    return state | {"units": units, "retreats": retreats}


def read_centers(game_map: Map, words: Sequence[Word]) -> dict[str, list[str]]:
    """Return the centers of a SCO message by power; those that nobody owns are left out."""
    found: dict[str, list[str]] = {}
    for row in words:
        if not isinstance(row, list) or not row:
            raise UserError(f"{quoted(row)} is not a list of centers")
        if row[0] != "UNO":
            places = [read_place_words(game_map, place) for place in row[1:]]
            found[read_power(game_map, row[0])] = places
    return found
