"""Why an order is illegal, in one sentence."""

from ..constants import COASTS, NONE, OrderKind, Terrain, UnitKind, phase_kind
from ..games.vector_game import VectorGame
from ..rules.notation import OrderText, Place, UnitText, place_text, province_of
from ..rules.order_words import unit_phrase
from ..rules.state import can_build_in
from .position import current_phase, owed_adjustments, retreat_places

_POSSIBLE = {  # kind of phase -> orders, and how they are called
    "movement": ("hold move support convoy", "movement orders"),
    "retreats": ("retreat disband", "retreats (R) and disbands (D)"),
    "adjustments": ("build disband waive", "builds (B), disbands (D) and WAIVE"),
}


def why_illegal(games: VectorGame, power: str, order: OrderText, matches: list[int]) -> str:
    """`matches` are the legal orders it might mean; more than one if a coast is not named."""
    name = current_phase(games)
    kinds, words = _POSSIBLE[phase_kind(name)]
    if order.verb not in kinds.split():
        return f"a {order.verb} is not possible in {name}, which has only {words}"
    if matches:
        texts = [games.vocabulary.texts[number] for number in matches]
        return f"the coast must be named: {' or '.join(texts)}"
    if phase_kind(name) == "adjustments":
        return _why_no_adjustment(games, power, order)
    if phase_kind(name) == "retreats":
        return _why_no_retreat(games, power, order)
    state = games.state
    fault = _unit_fault(games, order.unit, state.unit_power, state.unit_kind, power)
    if fault:
        return fault
    here = int(state.unit_location[0, order.unit.place.province])
    if order.kind == OrderKind.MOVE:
        return _why_no_move(games, order.unit.kind, here, order.target, order.via)
    if order.kind == OrderKind.CONVOY:
        return _why_no_convoy(games, order)
    return _why_no_support(games, order, here)


def _unit_fault(games: VectorGame, unit: UnitText, powers, kinds, power: str = "") -> str:
    code = games.map.provinces[unit.place.province]
    owner, kind = powers[0, unit.place.province], kinds[0, unit.place.province]
    if owner == NONE:
        return f"there is no unit in {code}"
    if kind != unit.kind:
        return f"the unit in {code} is {unit_phrase(kind)}, not {unit_phrase(unit.kind)}"
    if power and games.map.unit_powers[owner] != power:
        return f"the unit in {code} belongs to {games.map.unit_powers[owner]}, not to {power}"
    return ""


def _neutral_fault(games: VectorGame, unit: UnitText) -> str:
    v = unit.place.province
    if games.state.unit_power[0, v] != games.num_powers:
        return ""
    return f"the unit in {games.map.provinces[v]} is neutral, so it always holds"


def _why_no_move(games: VectorGame, kind: int, here: int, target: Place, via: bool) -> str:
    board, province = games.board, target.province
    start, goal = games.map.locations[here], place_text(games.map, target)
    code = games.map.provinces[province]
    if province == board.location_province[here]:
        return f"the unit already stands in {code}"
    if kind == UnitKind.ARMY and board.terrain[province] == Terrain.SEA:
        return f"{code} is a sea, which no army can enter"
    if kind == UnitKind.FLEET and board.terrain[province] == Terrain.LAND:
        return f"{code} is inland, where no fleet can go"
    if kind == UnitKind.FLEET and via:
        return "only an army can be convoyed"
    coasts = sorted(games.map.coast_numbers[code])
    if kind == UnitKind.FLEET and coasts and target.coast and goal not in games.map.location_index:
        return f"{code} has no coast {COASTS[target.coast]}, only {' and '.join(coasts)}"
    if kind == UnitKind.FLEET:
        return f"a fleet cannot move from {start} to {goal}"
    if games.table.via[board.location_province[here], province] == NONE:
        how = "be convoyed" if via else "move"
        return f"an army can never {how} from {start} to {code}"
    return f"no fleets on the board could convoy an army from {start} to {code}"


def _why_no_support(games: VectorGame, order: OrderText, here: int) -> str:
    board, state, other = games.board, games.state, order.other
    if other.place.province == order.unit.place.province:
        return "a unit cannot support itself"
    fault = _unit_fault(games, other, state.unit_power, state.unit_kind)
    if not fault and order.kind == OrderKind.SUPPORT_MOVE:
        fault = _neutral_fault(games, other)
    if fault:
        return fault
    goal = order.aim.province
    if goal == order.unit.place.province:
        return "a unit cannot support a move into its own province"
    if not board.reach[order.unit.kind, here, goal]:
        return (
            f"{unit_phrase(order.unit.kind)} in {games.map.locations[here]} cannot move to "
            f"{games.map.provinces[goal]}, so it gives no support there"
        )
    from_here = int(state.unit_location[0, other.place.province])
    if other.kind == UnitKind.FLEET and board.reach[UnitKind.FLEET, from_here, goal]:
        return "the fleet it supports cannot reach that coast"
    reason = _why_no_move(games, other.kind, from_here, order.aim, False)
    if reason.startswith("no fleets"):
        reason += " without this one"
    return reason


def _why_no_convoy(games: VectorGame, order: OrderText) -> str:
    state = games.state
    code = games.map.provinces[order.unit.place.province]
    if order.unit.kind == UnitKind.ARMY:
        return "only a fleet can convoy"
    if not games.map.can_convoy[order.unit.place.province]:
        return f"a fleet in {code} is not at sea, and only there can it convoy"
    if order.other.kind == UnitKind.FLEET:
        return "only an army can be convoyed"
    fault = _unit_fault(games, order.other, state.unit_power, state.unit_kind)
    fault = fault or _neutral_fault(games, order.other)
    if fault:
        return fault
    start = games.map.provinces[order.other.place.province]
    goal = games.map.provinces[order.target.province]
    if start == goal:
        return f"the army already stands in {goal}"
    return f"no convoy from {start} to {goal} over {code} is possible with the fleets on the board"


def _why_no_retreat(games: VectorGame, power: str, order: OrderText) -> str:
    state, code = games.state, games.map.provinces[order.unit.place.province]
    if state.dislodged_power[0, order.unit.place.province] == NONE:
        return f"there is no dislodged unit in {code}"
    fault = _unit_fault(games, order.unit, state.dislodged_power, state.dislodged_kind, power)
    if fault:
        return fault.replace("the unit", "the dislodged unit")
    places = next(
        places for unit, places in retreat_places(games)[power].items() if province_of(unit) == code
    )
    goal = place_text(games.map, order.aim)
    can = f"only to {', '.join(places)}" if places else "nowhere"
    return f"the unit cannot retreat to {goal}, {can}"


def _why_no_adjustment(games: VectorGame, power: str, order: OrderText) -> str:
    owed = owed_adjustments(games).get(power, 0)
    if order.kind in (OrderKind.BUILD, OrderKind.WAIVE) and owed <= 0:
        return f"{power} has no build to make"
    if order.kind == OrderKind.WAIVE:
        return f"{power} has only {owed} to build or waive"
    state, board, v = games.state, games.board, order.unit.place.province
    code = games.map.provinces[v]
    if order.kind == OrderKind.DISBAND:
        fault = _unit_fault(games, order.unit, state.unit_power, state.unit_kind, power)
        return fault or f"{power} has no unit to remove"
    if board.build_anywhere and board.province_center[v] == NONE:
        return f"{code} is not a supply center"
    if not board.build_anywhere and board.home_power[v] != games.map.power_index[power]:
        return f"{code} is not a home center of {power}"
    if state.unit_power[0, v] != NONE:
        return f"{code} is occupied"
    if not can_build_in(board, state, 0, games.map.power_index[power], v):
        return f"{power} does not own {code}"
    if order.unit.kind == UnitKind.FLEET and board.terrain[v] == Terrain.LAND:
        return f"{code} is inland, where no fleet can be built"
    return f"{code} has no coast {COASTS[order.unit.place.coast]}"
