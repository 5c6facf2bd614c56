"""Offers as DAIDE texts, which saved games keep, and back; and in words.

    PRP ( PCE ( ENG FRA ) )                                     peace
    PRP ( XDO ( ( FRA AMY BUR ) MTO BEL ) )                     an order
    PRP ( DMZ ( ENG FRA ) ( ECH ) )                             a zone
    PRP ( DMZ ( FRA ) ( ECH ) )                                 one side keeps out
    PRP ( NOT ( XDO ( ( ENG FLT ECH ) HLD ) ) )                 one side leaves
    PRP ( DMZ ( ENG FRA GER ) ( ECH ) )                         a zone among several
    PRP ( FOR ( FAL 1902 ) ( XDO ( ( FRA AMY BUR ) MTO BEL ) ) ) in a later phase
    PRP ( AND ( ... ) ( ... ) )                                 several of these
    YES ( PRP ( ... ) )   REJ ( PRP ( ... ) )                   the answers

A province has the name that DAIDE gives it, which for three seas of the standard map is another
than ours. Of an army that is convoyed DAIDE names the seas; here that is one way that fleets on the
board allow, and any is read. A support of a fleet's move names the coast, which DAIDE leaves out.
Whom a unit helps in a later phase is nobody's yet: UNO.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from .._suggest import listed, quoted
from ..constants import CONVOY, NONE, OrderKind, Phase, UnitKind, parse_phase, phase_name
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..rules.map import Map
from ..rules.order_words import order_words
from ..rules.state import in_movement
from ..rules.vocabulary import vocabulary
from .deals import Clause, OfferResult, Offers, Side, Words

ANSWERS = ("YES", "REJ")
_SEAS = {"ENG": "ECH", "BOT": "GOB", "LYO": "GOL"}  # ours -> DAIDE's
COAST_NAMES = ("", "NCS", "ECS", "SCS", "WCS")
_KINDS = {UnitKind.ARMY: "AMY", UnitKind.FLEET: "FLT"}
_NOBODY = "UNO"  # the owner of a neutral unit, as of a center that nobody has
MOST_SIGNS = 5000  # of a message that is read
_MOST_DEPTH = 12
_VERBS = {"PRP": "offers a deal", "YES": "agrees to the deal", "REJ": "declines the deal"}
_MOST_SAID = 2000  # letters that are shown of a free message
_SEASONS = {"SPR": Phase.SPRING_MOVEMENT, "FAL": Phase.FALL_MOVEMENT}
ClauseRow = tuple[int, int, int, int]  # kind, side, province, order, as in Offers


class Terms(NamedTuple):
    """What an offer asks for."""

    clauses: tuple[ClauseRow, ...]
    others: tuple[int, ...] = ()  # powers that must agree as well, ascending
    phase: str = ""  # for which it is, such as F1902M; this one if there is none


def clauses_of(offers: Offers, o: int) -> tuple[ClauseRow, ...]:
    """Return the clauses of offer number o."""
    rows = zip(*(array[slice(*offers.clause_start[o : o + 2])] for array in offers[4:]))
    return tuple((int(kind), int(side), int(v), int(order)) for kind, side, v, order in rows)


def offer_text(games: VectorGame, sender: int, receiver: int, terms: Terms) -> str:
    parts = [_clause_text(games, (sender, receiver), clause, terms) for clause in terms.clauses]
    inside = parts[0] if len(parts) == 1 else " ".join(["AND", *(f"( {part} )" for part in parts)])
    if terms.phase:
        year, phase = parse_phase(terms.phase)
        (season,) = (name for name, number in _SEASONS.items() if number == phase)
        inside = f"FOR ( {season} {year} ) ( {inside} )"
    return f"PRP ( {inside} )"


@lru_cache(maxsize=16)
def power_names(game_map: Map) -> list[str]:
    """Return DAIDE's names of the powers: three letters, the whole name where two share them."""
    short = [name[:3].upper() for name in game_map.powers]
    return [
        code if short.count(code) == 1 else name.upper()
        for code, name in zip(short, game_map.powers)
    ]


@lru_cache(maxsize=16)
def province_names(game_map: Map) -> list[str]:
    return [
        other if (other := _SEAS.get(code)) and other not in game_map.provinces else code
        for code in game_map.provinces
    ]


def _location_text(game_map: Map, location: int) -> str:
    board = game_map.board
    name = province_names(game_map)[board.location_province[location]]
    coast = COAST_NAMES[board.location_coast[location]]
    return f"( {name} {coast} )" if coast else name


def _unit_text(games: VectorGame, kind: int, location: int, owner: str | None = None) -> str:
    v = games.board.location_province[location]
    owner = owner or [*power_names(games.map), _NOBODY][games.state.unit_power[0, v]]
    return f"( {owner} {_KINDS[UnitKind(kind)]} {_location_text(games.map, location)} )"


def _order_text(games: VectorGame, number: int, owner: str | None = None) -> str:
    """`owner` is who will have the unit in a later phase; None: this phase."""
    table, board = games.table, games.board
    kind, target = int(table.kind[number]), int(table.target[number])
    unit = _unit_text(games, table.unit_kind[number], table.location[number], owner)
    other = table.other_location[number]
    if kind == OrderKind.HOLD:
        return f"{unit} HLD"
    if kind == OrderKind.MOVE:
        return f"{unit} MTO {_location_text(games.map, target)}"
    if kind == OrderKind.MOVE_VIA:
        v = board.location_province[table.location[number]]
        seas = " ".join(_route(games, v, board.location_province[target], owner is not None))
        return f"{unit} CTO {_location_text(games.map, target)} VIA ( {seas} )"
    helped = _unit_text(games, table.other_kind[number], other, owner and _NOBODY)
    if kind == OrderKind.SUPPORT_HOLD:
        return f"{unit} SUP {helped}"
    if kind == OrderKind.SUPPORT_MOVE:
        return f"{unit} SUP {helped} MTO {_location_text(games.map, target)}"
    return f"{unit} CVY {helped} CTO {_location_text(games.map, target)}"


def _route(games: VectorGame, origin: int, goal: int, later: bool) -> list[str]:
    table, names = games.table, province_names(games.map)
    for r in range(table.route_first[origin], table.route_first[origin + 1]):
        seas = [
            v
            for v, index in enumerate(table.sea_index.tolist())
            if index != NONE and int(table.route_seas[r]) >> index & 1
        ]
        sails = later or (games.state.unit_power[0, seas] != NONE).all()
        if table.route_goal[r] == goal and sails:
            return [names[v] for v in seas]
    return []


def _clause_text(
    games: VectorGame, powers: tuple[int, int], clause: ClauseRow, terms: Terms
) -> str:
    kind, side, v, number = clause
    names, provinces = power_names(games.map), province_names(games.map)
    both = " ".join(sorted(names[power] for power in (*powers, *terms.others)))
    if kind == Clause.PEACE:
        return f"PCE ( {both} )"
    if kind == Clause.ZONE:
        return f"DMZ ( {both} ) ( {provinces[v]} )"
    if kind == Clause.KEEP_OUT:
        return f"DMZ ( {names[powers[side]]} ) ( {provinces[v]} )"
    if kind == Clause.LEAVE:
        state = games.state
        hold = games.table.hold[state.unit_kind[0, v], state.unit_location[0, v]]
        return f"NOT ( XDO ( {_order_text(games, int(hold))} ) )"
    owner = names[powers[side]] if terms.phase else None
    return f"XDO ( {_order_text(games, number, owner)} )"


def is_daide(text: str) -> bool:
    return re.match(r"\s*(PRP|YES|REJ)\s*\(", text) is not None


def is_answer(text: str) -> bool:
    return not text.lstrip().startswith("PRP")


def read_message(games: VectorGame, sender: int, receiver: int, text: str) -> tuple[str, Terms]:
    """Return PRP, YES or REJ, and what the offer asks for, in the position of `games` (one).
    `sender` and `receiver` are those of the offer, also where the text is an answer to it.
    UserError does not repeat the text."""
    tree = _tree(text)
    verb = "PRP"
    if tree[:1] and tree[0] in ANSWERS and len(tree) == 2 and isinstance(tree[1], list):
        verb, tree = tree[0], tree[1]
    if len(tree) != 2 or tree[0] != "PRP" or not isinstance(tree[1], list):
        raise UserError("it is neither PRP ( ... ) nor an answer to one")
    body, phase = tree[1], ""
    match body:
        case ["FOR", [str(season), str(year)], list(body)] if season in _SEASONS:
            if not re.fullmatch(r"[0-9]{1,5}", year):
                raise UserError(f"{quoted(year)} is no year")
            phase = phase_name(int(year), _SEASONS[season])
    parts = body[1:] if body[:1] == ["AND"] else [body]
    read = [_read_clause(games, (sender, receiver), part, phase) for part in parts]
    others = {powers for _, powers in read}
    if len(others) != 1:
        raise UserError("its clauses are not all among the same powers")
    return verb, Terms(tuple(clause for clause, _ in read), others.pop(), phase)


def _tree(text: str) -> list:
    if len(text) > MOST_SIGNS:
        raise UserError(f"it is longer than {MOST_SIGNS:,} signs")
    words = re.findall(r"[()]|[^\s()]+", text)
    depths = [0, *accumulate({"(": 1, ")": -1}.get(word, 0) for word in words)]
    if min(depths) < 0 or depths[-1] or max(depths) >= _MOST_DEPTH:
        raise UserError(f"its brackets do not match, or are nested {_MOST_DEPTH} deep")
    stack: list[list] = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0]


def _read_clause(
    games: VectorGame, powers: tuple[int, int], part: object, phase: str
) -> tuple[ClauseRow, tuple[int, ...]]:
    """Return a clause, and which other powers it is among."""
    names, provinces = power_names(games.map), province_names(games.map)
    both = {names[power] for power in powers}

    def others_of(members: list) -> tuple[int, ...] | None:
        """Return None if these are not both powers, perhaps with others."""
        named = set(map(str, members))
        if len(named) != len(members) or not both <= named <= set(names):
            return None
        return tuple(sorted(map(names.index, named - both)))

    match part:
        case ["PCE", list(members)] if (others := others_of(members)) is not None:
            return (Clause.PEACE, Side.BOTH, NONE, NONE), others
        case ["DMZ", list(members), [str(code)]] if code in provinces:
            v = provinces.index(code)
            if (others := others_of(members)) is not None:
                return (Clause.ZONE, Side.BOTH, v, NONE), others
            for side, power in zip((Side.SENDER, Side.RECEIVER), powers):
                if members == [names[power]]:
                    return (Clause.KEEP_OUT, side, v, NONE), ()
        case ["NOT", ["XDO", [list(unit), "HLD"]]] if not phase:
            side, v, _ = _read_order(games, powers, [unit, "HLD"], False)
            return (Clause.LEAVE, side, v, NONE), ()
        case ["XDO", [list(unit), *rest]]:
            return (Clause.ORDER, *_read_order(games, powers, [unit, *rest], bool(phase))), ()
    raise UserError(f"{quoted(part)} is not a clause between {' and '.join(sorted(both))}")


def _read_order(
    games: VectorGame, powers: tuple[int, int], tokens: list, later: bool
) -> tuple[Side, int, int]:
    """Return side, province and number of an order: a legal one, or of a `later` phase, of which
    nobody knows what is legal, any of the map."""
    names, provinces = power_names(games.map), province_names(games.map)
    owner, _, place = (*tokens[0], None, None, None)[:3]
    code = place[0] if isinstance(place, list) and place else place
    sides = [side for side in (Side.SENDER, Side.RECEIVER) if owner == names[powers[side]]]
    if sides and code in provinces:
        v = provinces.index(code)
        for number in _orders_of(games, v, later):
            written = _order_text(games, number, owner if later else None)
            if _is_meant(_tree(written), tokens):
                return sides[0], v, number
    either = " or ".join(games.map.powers[power] for power in powers)
    raise UserError(f"{quoted(tokens)} is not an order that a unit of {either} can be given")


def _orders_of(games: VectorGame, v: int, later: bool) -> list[int]:
    """Return the movement orders of the unit in a province."""
    if later:
        here = games.board.location_province[games.table.location] == v
        return np.flatnonzero(here & (games.table.kind <= CONVOY)).tolist()
    decisions = games.decisions()
    slots = np.flatnonzero(decisions.slot_province == v) if in_movement(games.state)[0] else ()
    return [n for s in slots for n in decisions.order[slice(*decisions.order_start[s : s + 2])]]


def _is_meant(written: list, tokens: list) -> bool:
    """Tell whether an order as we write it is that; of DAIDE routes and some coasts may differ."""
    if written[1] == "CTO":  # VIA may be a province
        return written[:-1] == tokens[:-1] and isinstance(tokens[-1], list)
    if written[1] == "SUP" and isinstance(written[-1], list) and written[-2] == "MTO":
        written = [*written[:-1], tokens[-1] if tokens[-1] == written[-1][0] else written[-1]]
    return written == tokens


def messages_of(
    games: VectorGame, offers: Offers, results: np.ndarray, words: Words
) -> Iterator[tuple[int, int, str]]:
    """Yield (sender, recipient, text) of what was said in a one-game VectorGame. Of `results` (O,)
    NONE is an offer that nobody answers, such as a wish for peace; what was agreed to in vain
    stands as declined."""
    messages = []
    for o, result in enumerate(results):
        p, q = int(offers.sender[o]), int(offers.receiver[o])
        text = offer_text(games, p, q, Terms(clauses_of(offers, o)))
        messages.append((p, q, text, "YES" if result == OfferResult.CONFIRMED else "REJ"))
    for (p, q, text, _), sentence in zip(messages, words[0]):
        yield p, q, text
        if sentence:
            yield p, q, sentence
    for (p, q, text, answer), result, sentence in zip(messages, results, words[1]):
        if result != NONE:
            yield q, p, f"{answer} ( {text} )"
            if sentence:
                yield q, p, sentence


def offer_words(game_map: Map, sender: int, receiver: int, terms: Terms, full: bool = False) -> str:
    """With `full` names as people write them, rather than as orders are written."""
    names = [power.capitalize() if full else power for power in game_map.powers]
    among = listed(sorted(names[power] for power in (sender, receiver, *terms.others)))
    words = "; ".join(
        _clause_words(game_map, (names[sender], names[receiver]), among, row, full)
        for row in terms.clauses
    )
    return f"in {terms.phase}: {words}" if terms.phase else words


def _clause_words(
    game_map: Map, sides: tuple[str, str], among: str, clause: ClauseRow, full: bool
) -> str:
    kind, side, v, number = clause
    if kind == Clause.PEACE:
        return f"peace between {among}"
    if kind == Clause.ORDER:
        text = vocabulary(game_map).texts[number]
        return ": ".join(order_words(game_map, text)) if full else text
    where = game_map.provinces[v]
    where = game_map.province_names[where] if full else where
    if kind == Clause.ZONE:
        return f"{among} keep out of {where} and leave it"
    return f"{sides[side]} {'keeps out of' if kind == Clause.KEEP_OUT else 'leaves'} {where}"


def message_words(games: VectorGame, message: Mapping) -> str:
    """Return a message of a saved game in words; what means nothing as it stands. `games` is of one
    game, in the position in which it was said."""
    text, powers = message["message"], games.map.power_index
    p, q = (powers.get(message[role], NONE) for role in ("sender", "recipient"))
    if is_daide(text) and NONE not in (p, q):
        if is_answer(text):
            p, q = q, p  # an answer to an offer
        try:
            verb, terms = read_message(games, p, q, text)
        except UserError:
            return text[:_MOST_SAID]
        return f"{_VERBS[verb]} ({offer_words(games.map, p, q, terms, full=True)})"
    return text[:_MOST_SAID]
