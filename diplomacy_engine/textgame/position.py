"""Row 0 of a one-game VectorGame as the `diplomacy` package's state or one line, and back."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from .. import constants
from .._suggest import counted, did_you_mean, listed, quoted
from ..constants import (
    AGREED,
    COMPLETED,
    NONE,
    SOLO,
    TEAM,
    YEAR_LIMIT,
    OrderKind,
    UnitKind,
    parse_phase,
    phase_name,
)
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..records import convert
from ..rules import notation, reading
from ..rules.map import Map
from ..rules.order_matching import matching_orders
from ..rules.order_words import unit_phrase
from ..rules.phases import end_by_victory
from ..rules.state import LAST_YEAR, adjustments_owed, can_build_in, is_retreat, reset_game
from .saved_game import victors

STATE_KEYS = ("name", "units", "retreats", "centers", "last_orders", "last_results")


def current_phase(games: VectorGame) -> str:
    """Return the name of the phase of row 0, such as `S1901M` or `COMPLETED`."""
    if games.state.end[0] != constants.RUNNING:
        return COMPLETED
    return phase_name(int(games.state.year[0]), int(games.state.phase[0]))


def standing_units(games: VectorGame) -> dict[str, list[str]]:
    """Sorted; neutral units under their own name."""
    state, units = games.state, {name: [] for name in games.map.unit_powers}
    arrays = state.unit_power, state.unit_kind, state.unit_location
    for power, kind, location in zip(*(array[0].tolist() for array in arrays)):
        if power != NONE:
            units[games.map.unit_powers[power]].append(games.map.unit_text(kind, location))
    return {name: sorted(texts) for name, texts in units.items()}


def owned_centers(games: VectorGame) -> dict[str, list[str]]:
    """Return power -> codes of the centers that it owns."""
    centers = {name: [] for name in games.map.powers}
    for c, owner in enumerate(games.state.center_owner[0].tolist()):
        if owner != NONE:
            code = games.map.provinces[games.board.center_province[c]]
            centers[games.map.powers[owner]].append(code)
    return centers


def retreat_places(games: VectorGame) -> dict[str, dict[str, list[str]]]:
    """Power -> dislodged unit -> places it may retreat to, for powers that have any."""
    state, board, by_power = games.state, games.board, {}
    for v in np.flatnonzero(state.dislodged_power[0] != NONE):
        kind, here = state.dislodged_kind[0, v], state.dislodged_location[0, v]
        options = int(state.retreat_options[0, v])
        places = [
            games.map.locations[board.neighbor[kind, here, i]]
            for i in range(board.neighbor_count[kind, here])
            if options >> i & 1
        ]
        units = by_power.setdefault(games.map.unit_powers[state.dislodged_power[0, v]], {})
        units[games.map.unit_text(kind, here)] = places
    return dict(sorted(by_power.items()))


def owed_adjustments(games: VectorGame) -> dict[str, int]:
    """Power -> builds (positive) or removals (negative) owed, in winter only."""
    if (
        games.state.phase[0] != constants.WINTER_ADJUSTMENTS
        or games.state.end[0] != constants.RUNNING
    ):
        return {}
    owed = {
        name: int(adjustments_owed(games.board, games.state, 0, power))
        for power, name in enumerate(games.map.powers)
    }
    return {name: number for name, number in owed.items() if number}


def legal_numbers(games: VectorGame) -> dict[int, list[int]]:
    """Return province -> numbers of the legal orders there, WAIVE left out."""
    decisions, table = games.decisions(), games.table
    order, first = decisions.order.tolist(), decisions.order_start.tolist()
    if games.state.phase[0] != constants.WINTER_ADJUSTMENTS:
        places = decisions.slot_province.tolist()
        return {v: order[i:j] for v, i, j in zip(places, first, first[1:])}
    by_province: dict[int, list[int]] = {}
    for s in decisions.slot_start[:-1].tolist():  # all slots of a decision list the same orders
        for number in order[first[s] : first[s + 1]]:
            if number != table.waive:
                v = int(games.board.location_province[table.location[number]])
                by_province.setdefault(v, []).append(number)
    return by_province


def settle_coasts(games: VectorGame, meanings: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return province -> one number of the orders that each may mean: of a support that names no
    coast the one to the coast that the fleet moves to (DATC 4.B.4)."""
    table, province = games.table, games.board.location_province
    chosen = {v: numbers[0] for v, numbers in meanings.items()}
    for v, numbers in meanings.items():
        mover = int(province[table.other_location[numbers[0]]])
        if len(numbers) > 1 and mover in chosen:
            target = table.target[chosen[mover]]
            chosen[v] = next((n for n in numbers if table.target[n] == target), numbers[0])
    return chosen


def named(games: VectorGame, powers: Sequence[bool]) -> list[str]:
    """Return the names of those powers (P,)."""
    return [name for name, is_one in zip(games.map.powers, powers) if is_one]


def winners(games: VectorGame) -> list[str]:
    """The winner and its team, or at a draw all that are alive; nobody while the game goes on."""
    return named(games, games.outcomes().winners(games.board.team)[0])


def won_by_concession(games: VectorGame) -> bool:
    """Whether the game is over because all others that were left have conceded."""
    state, outcomes = games.state, games.outcomes()
    won, winner = outcomes.winners(games.board.team)[0], state.winner[0]
    by_centers = games.centers()[0, winner] >= games.board.victory_centers
    otherwise = (outcomes.alive[0] & ~won).any() or (state.end[0] == SOLO and by_centers)
    return bool(winner != NONE and not otherwise and (state.conceded[0] & ~won).any())


def result_text(games: VectorGame, called: Callable[[str], str] = str.capitalize) -> str:
    """Return what came of the game, such as `a draw agreed by France and Italy`, or an empty text
    while it goes on; powers are `called` by name, but of more than two without it."""
    won, end, centers = winners(games), games.state.end[0], games.centers()[0]
    if not won:
        return "" if end == constants.RUNNING else "nobody is left"
    is_draw = end in (YEAR_LIMIT, AGREED)
    names = listed([called(name) if len(won) < 3 else name.capitalize() for name in won])
    if is_draw and (len(won) > 1 or end == AGREED):
        names = "all powers" if 2 < len(won) == len(games.map.powers) else names
        return f"a draw {'agreed by' if end == AGREED else 'between'} {names}"
    held = int(centers[[games.map.power_index[name] for name in won]].sum())
    verb = "wins" if len(won) == 1 else "win"
    if is_draw:
        return f"{names} is left"
    if won_by_concession(games):
        return f"{names} {verb}, as all others have conceded"
    if end == TEAM or held >= games.board.victory_centers:
        return f"{names} {verb} with {counted(held, 'center')}"
    return f"{names} {verb}, as the game's note says"


def state_dictionary(games: VectorGame) -> dict:
    """Return the position in the format of the `diplomacy` package, where powers that have
    conceded are in civil disorder. A saved game adds to `influence` what was passed through."""
    name, powers = current_phase(games), games.map.powers
    units, centers, retreats = standing_units(games), owned_centers(games), retreat_places(games)
    owed = owed_adjustments(games)
    influence = {power: set(map(notation.province_of, units[power])) for power in units}
    occupied = set().union(*influence.values())
    year, phase = (LAST_YEAR + 1, 0) if name == COMPLETED else parse_phase(name)
    homes = {power: [] for power in powers}
    for v in np.flatnonzero(games.board.home_power != NONE):
        homes[powers[games.board.home_power[v]]].append(games.map.provinces[v])
    return {
        "timestamp": year * 5 + phase,  # grows from phase to phase, in place of a clock's
        "zobrist_hash": str(zobrist_hash(games)),
        "note": _ending_note(games),
        "name": name,
        "units": {p: units[p] + [f"*{unit}" for unit in retreats.get(p, {})] for p in units},
        "retreats": {power: retreats.get(power, {}) for power in units},
        "centers": centers,
        "homes": homes,
        "influence": {
            power: sorted(influence[power] | (set(centers[power]) - occupied)) for power in powers
        },
        "civil_disorder": dict(zip(powers, games.state.conceded[0].astype(int).tolist())),
        "builds": {
            power: {"count": owed.get(power, 0), "homes": _open_homes(games, power, owed)}
            for power in powers
        },
    }


def _open_homes(games: VectorGame, power: str, owed: Mapping[str, int]) -> list[str]:
    """Return the centers in which a power that is `owed` builds may build."""
    index, centers = games.map.power_index[power], games.board.center_province.tolist()
    centers = centers if owed.get(power, 0) > 0 else []
    may_build = (v for v in centers if can_build_in(games.board, games.state, 0, index, v))
    return [games.map.provinces[v] for v in may_build]


@lru_cache(maxsize=16)
def _zobrist_numbers(game_map: Map) -> tuple[list[list[int]], ...]:
    """By unit kind or power, and location: the six tables that the `diplomacy` package draws."""
    centers = "-".join(game_map.provinces[v] for v in game_map.board.center_province)
    places, powers = len(game_map.locations), len(game_map.unit_powers)
    # The seed and the order of the draws are the package's, so that its hashes come out.
    seed = 12345 + places + sum(ord(letter) * 7**i for i, letter in enumerate(centers))
    draw = random.Random(seed % 2**32).randint
    return tuple(
        [[draw(1, 2**63 - 1) for _ in range(places)] for _ in range(rows)]
        for rows in (2, powers, 2, powers, powers, powers)
    )


def zobrist_hash(games: VectorGame) -> int:
    """The hash that the `diplomacy` package's validator expects: the exclusive or of the numbers of
    units, supply centers and home centers."""
    board, state, hash_value = games.board, games.state, 0
    kinds, owners, fled_kinds, fled_owners, centers, homes = _zobrist_numbers(games.map)
    standing = (kinds, owners, state.unit_kind, state.unit_power, state.unit_location)
    fled = (state.dislodged_kind, state.dislodged_power, state.dislodged_location)
    for by_kind, by_power, kind, power, location in (standing, (fled_kinds, fled_owners, *fled)):
        for v in np.flatnonzero(power[0] != NONE).tolist():
            here = location[0, v]
            hash_value ^= by_kind[kind[0, v]][here] ^ by_power[power[0, v]][here]
    for c, owner in enumerate(state.center_owner[0].tolist()):
        if owner != NONE:
            hash_value ^= centers[owner][board.province_location[board.center_province[c]]]
    for v in np.flatnonzero(board.home_power != NONE).tolist():
        hash_value ^= homes[board.home_power[v]][board.province_location[v]]
    return hash_value


def result_words(bits: int) -> list[str]:
    """Return the words of an order's result bits; none if it succeeded."""
    return [word for i, word in enumerate(constants.RESULT_WORDS) if bits >> i & 1] if bits else []


def last_orders(games: VectorGame) -> dict[str, dict]:
    """Return the last movement phase as `state` dictionaries keep it: power -> texts, with a hold
    for a void or missing order, and unit -> result words, of those that have any."""
    state, orders, results = games.state, {}, {}
    for v in np.flatnonzero(state.last_order[0] != NONE).tolist():
        text = games.vocabulary.texts[state.last_order[0, v]]
        orders.setdefault(games.map.unit_powers[state.last_power[0, v]], []).append(text)
        bits = int(state.last_result[0, v])
        if bits:
            results[notation.unit_of(text)] = result_words(bits)
    return {"last_orders": orders, "last_results": results} if orders else {}


def _load_last_orders(games: VectorGame, orders: Mapping | None, results: Mapping) -> None:
    table, state = games.table, games.state
    for power, texts in _by_power(games, orders):
        for text in texts:
            try:
                order = reading.read_order(games.map, text)
            except UserError as error:
                raise UserError(f"{quoted(text, 60)} is not an order: {error}") from None
            number = v = NONE
            if order.kind < OrderKind.RETREAT:  # it is one of a movement phase
                v = order.unit.place.province
                numbers = range(table.province_first[v], table.province_first[v + 1])
                exact = games.vocabulary.number.get(text, NONE)
                meanings = matching_orders(games.map, games.vocabulary, order, numbers)
                number = exact if exact in numbers else min(meanings, default=NONE)
            if number == NONE:
                raise UserError(f"nobody can have ordered {quoted(text, 60)} in a movement phase")
            if state.last_order[0, v] != NONE:
                raise UserError(f"'last_orders' has two orders for {games.map.provinces[v]}")
            state.last_order[0, v], state.last_power[0, v] = number, power
    for text, words in results.items():
        v = reading.read_unit(games.map, text)[0].place.province
        if state.last_order[0, v] == NONE:
            raise UserError(f"{quoted(text, 40)} has a last result, but no last order")
        state.last_result[0, v] = sum(1 << constants.RESULT_WORDS.index(w) for w in set(words))


def position_line(games: VectorGame) -> str:
    """Such as `small S1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS`. Units, then `=` and the
    supply centers; a dislodged unit reads `*A MUN > BOH RUH` with the places it may retreat to. At
    the end `Victory by: ENGLAND` names the winner, or who shares the draw."""
    units, centers, retreats = standing_units(games), owned_centers(games), retreat_places(games)
    parts = [f"{games.map.name} {current_phase(games)}"]
    for power in games.map.unit_powers:
        texts = units[power] + [
            " ".join([f"*{unit}", ">", *places]).strip()
            for unit, places in retreats.get(power, {}).items()
        ]
        owned = centers.get(power, [])
        if texts or owned:
            parts.append(f"{power} {', '.join(texts)} = {' '.join(owned)}".strip())
    return "; ".join([*parts, *filter(None, [_ending_note(games)])])


def _ending_note(games: VectorGame) -> str:
    over = winners(games)
    return f"Victory by: {', '.join(over)}" if over else ""


def parse_position_line(text: str) -> tuple[str, dict]:
    """`(map name, state dictionary)` of a position line; UserError if it is none."""
    head, *parts = (part.strip() for part in text.split(";"))
    if len(head.split()) != 2:
        raise UserError(f"a position begins with a map and a phase, not {head!r:.60}")
    map_name, name = head.split()
    state: dict = {"name": name, "units": {}, "centers": {}, "retreats": {}}
    for part in parts:
        if part.lower().startswith("victory by:"):
            state["note"] = part
            continue
        head, equals, centers = part.partition("=")
        form = re.match(r"[A-Za-z_]+", head)
        if form is None or not equals or "=" in centers or form[0] in state["units"]:
            once = "'POWER UNIT, UNIT = CENTER CENTER', once for each power"
            raise UserError(f"{part!r:.80} is not of the form {once}")
        power, units = form[0], head[form.end() :]
        state["centers"][power] = centers.split()
        state["units"][power] = []
        for unit in filter(None, (unit.strip() for unit in units.split(","))):
            if unit.startswith("*"):
                unit, _, places = unit[1:].partition(">")
                state["retreats"].setdefault(power, {})[unit.strip()] = places.split()
            else:
                state["units"][power].append(unit)
    return map_name, state


_ByPower = dict[str, list[str]]


class _State(Struct):
    name: str
    units: _ByPower
    retreats: dict[str, _ByPower] | None = None  # unit -> places of each power
    centers: _ByPower | None = None
    last_orders: _ByPower | None = None
    # Of units; a type checker does not know the words.
    last_results: dict[str, list[Literal[tuple(constants.RESULT_WORDS)]]] | None = None  # type: ignore[valid-type]


def load_state(
    games: VectorGame, state: Mapping, agreed: bool = False, conceded: Sequence[str] = ()
) -> None:
    """Set up the position of a state dictionary; UserError leaves the board undefined. Other keys
    than STATE_KEYS are ignored, but for misspelt ones. Centers left out, and neutral units', are
    nobody's. Nothing is skipped, eliminated or ended. Retreats that the rules forbid are left out.
    A finished game has ended in a draw that was `agreed`, as `note` says, or else as its centers
    and the powers that have `conceded` do."""
    fields = convert(_State, state, "the state")
    missing = [key for key in STATE_KEYS if key not in state]
    for key in state:
        meant = did_you_mean(key, missing) if isinstance(key, str) else ""
        if key not in STATE_KEYS and meant:
            raise UserError(f"the state has an unknown key {quoted(key)}{meant}")
    row = games.state
    reset_game(games.board, row, 0, row.seed[0])
    row.unit_power[0], row.unit_kind[0], row.unit_location[0] = NONE, NONE, NONE
    row.center_owner[0] = NONE
    _load_name(games, fields.name)
    standing, dislodged = [], {}
    for power, texts in _by_power(games, fields.units):
        for text in texts:
            unit, starred = reading.read_unit(games.map, text)
            if starred and (power, unit) in dislodged:
                raise UserError(f"{quoted(text)} appears twice in the state")
            if starred:
                dislodged[power, unit] = []
            else:
                standing.append((power, unit))
    for power, units in _by_power(games, fields.retreats):
        for text, places in units.items():
            dislodged[power, reading.read_unit(games.map, text)[0]] = places
    # A draw that was agreed, or a concession, may also have ended the game before the retreats.
    retreating = is_retreat(row.phase[0])
    if dislodged and not retreating and row.end[0] == constants.RUNNING:
        raise UserError(f"{fields.name} is not a retreat phase, but a unit is dislodged")
    for power, unit in standing:
        _place_unit(games, power, unit, row.unit_power, row.unit_kind, row.unit_location)
    for (power, unit), places in dislodged.items():
        arrays = row.dislodged_power, row.dislodged_kind, row.dislodged_location
        v = _place_unit(games, power, unit, *arrays)
        if row.unit_power[0, v] == power:
            raise UserError(f"{notation.unit_text(games.map, unit)} is dislodged by its own power")
        row.retreat_options[0, v] = _retreat_bits(games, unit, places)
    _load_centers(games, fields.centers)
    _load_last_orders(games, fields.last_orders, fields.last_results or {})
    forbid_retreats(games)
    for power in conceded:
        row.conceded[0, games.map.power_number(power)] = True
    if row.end[0] != constants.RUNNING:
        _load_result(games, agreed, victors(games.map, state))
    elif agreed:
        raise UserError(f"a draw was agreed, but the game goes on in {current_phase(games)}")


def _load_name(games: VectorGame, name: str) -> None:
    if name == COMPLETED:
        games.state.end[0] = YEAR_LIMIT
        return
    year, phase = parse_phase(name)
    if not 1 <= year <= LAST_YEAR:
        raise UserError(f"the year of {name!r:.40} is not 1 to {LAST_YEAR}")
    games.state.year[0], games.state.phase[0] = year, phase


def _load_result(games: VectorGame, agreed: bool, won_by: Sequence[str]) -> None:
    """Let the game have ended as it is noted to have been `won_by` one side or shared by several,
    else as the position says. Who has no share of a draw counts as if it had conceded."""
    state, team = games.state, games.board.team
    noted, alive = np.isin(games.map.powers, won_by), games.outcomes().alive[0]
    one_side = bool(won_by) and np.array_equal(noted, team == team[noted.argmax()])
    state.end[0] = AGREED if agreed else YEAR_LIMIT
    if won_by and not one_side:
        state.conceded[0] |= alive & ~noted
    elif not agreed:
        end_by_victory(games.board, state, 0, True)
        if one_side and (noted != alive).any() and state.winner[0] not in np.flatnonzero(noted):
            state.winner[0] = np.where(noted, games.centers()[0], NONE).argmax()
            state.end[0] = TEAM if games.map.teams.text else SOLO


def _by_power(games: VectorGame, table: Mapping | None) -> list[tuple[int, Any]]:
    number = games.map.power_number
    return [(number(power, or_neutral=True), value) for power, value in (table or {}).items()]


def _place_unit(
    games: VectorGame, power: int, unit: notation.UnitText, powers, kinds, locations
) -> int:
    """Put a unit into arrays (1, V) of the units by province, and return its province."""
    province, code = unit.place.province, notation.place_text(games.map, unit.place)
    location = games.map.location_index.get(code)
    text = notation.unit_text(games.map, unit)
    if location is None or not games.board.can_stand[unit.kind, location]:
        raise UserError(f"{unit_phrase(unit.kind)} cannot stand at {code}: {text}")
    if powers[0, province] != NONE:
        other = games.map.unit_text(kinds[0, province], locations[0, province])
        raise UserError(f"{text} and {other} are in one province")
    powers[0, province] = power
    kinds[0, province] = unit.kind
    locations[0, province] = location
    return province


def _retreat_bits(games: VectorGame, unit: notation.UnitText, places: list[str]) -> int:
    board, bits = games.board, 0
    here = games.map.location_index[notation.place_text(games.map, unit.place)]
    near = board.neighbor[unit.kind, here, : board.neighbor_count[unit.kind, here]].tolist()
    shown = notation.unit_text(games.map, unit)
    for text in places:
        kind, place = reading.read_place(games.map, text)
        on_coast = 0 if unit.kind != UnitKind.FLEET else place.coast
        options = [
            i
            for i, location in enumerate(near)
            if board.location_province[location] == place.province
            and on_coast in (0, board.location_coast[location])
        ]
        if kind is not None or len(options) != 1:
            why = ": name the coast" if options and kind is None else ""
            raise UserError(f"{shown} cannot retreat to {quoted(text, 40)}{why}")
        bits |= 1 << options[0]
    return bits


def forbid_retreats(games: VectorGame) -> None:
    """Leave out retreats to where somebody stands, a standoff was, or the attacker came from,
    unless by convoy (DATC 4.A.5). Of the latter two only the last orders and results tell."""
    state, board, index = games.state, games.board, games.map.province_index
    gone = np.flatnonzero(state.dislodged_power[0] != NONE).tolist()
    bounced, came, convoyed = set(), set(), set()
    for v in np.flatnonzero(state.last_order[0] != NONE).tolist() if gone else ():
        _, _, verb, *more = games.vocabulary.texts[state.last_order[0, v]].split()
        bits = int(state.last_result[0, v])
        if verb == "C" and not bits & constants.NO_CONVOY:
            convoyed.add((index[more[1]], index[more[3]]))
        elif verb == "-" and bits & constants.BOUNCE:
            bounced.add((v, index[notation.province_of(more[0])]))
        elif verb == "-" and not bits:
            came.add((v, index[notation.province_of(more[0])]))
    came -= convoyed
    vacated = {goal for v, goal in bounced if (goal, v) not in came}  # but in a lost head to head
    for v in gone:
        kind, here = state.dislodged_kind[0, v], state.dislodged_location[0, v]
        for i, near in enumerate(board.neighbor[kind, here, : board.neighbor_count[kind, here]]):
            place = int(board.location_province[near])
            occupied = state.unit_power[0, place] != NONE
            if occupied or place in vacated or (place, v) in came:
                state.retreat_options[0, v] &= ~np.uint32(1 << i)


def _load_centers(games: VectorGame, centers: Mapping | None) -> None:
    for power, codes in _by_power(games, centers):
        for code in codes:
            kind, place = reading.read_place(games.map, code)
            center = games.board.province_center[place.province]
            if kind is not None or place.coast or center == NONE:
                raise UserError(f"{quoted(code, 40)} is not a supply center")
            if power == games.num_powers:
                continue
            owner = games.state.center_owner[0, center]
            if owner not in (NONE, power):
                both = f"{games.map.powers[owner]} and {games.map.powers[power]}"
                raise UserError(f"{quoted(code, 40)} belongs to both {both}")
            games.state.center_owner[0, center] = power
