"""Retreat phases: dislodged units go to their new places, or off the board."""

from ..._jit import jit
from ...constants import NONE
from ..state import clear_dislodged


@jit
def retreat_goal(board, table, state, e, orders, v):
    """Return the location that the dislodged unit of province v retreats to, or NONE.

    Reads   state.dislodged_*, state.retreat_options, state.unit_power, orders (E, V)
    Rule    rulebook, retreats: a unit without a possible order is disbanded
    """
    if state.dislodged_power[e, v] == NONE:
        return NONE
    kind, location = state.dislodged_kind[e, v], state.dislodged_location[e, v]
    near = orders[e, v] - table.first_retreat[kind, location]
    if near < 0 or near >= board.neighbor_count[kind, location]:
        return NONE
    if (state.retreat_options[e, v] >> near) & 1 == 0:
        return NONE
    return board.neighbor[kind, location, near]


@jit
def retreat_is_contested(board, table, state, e, orders, v, province):
    """Tell whether a dislodged unit other than that of province v retreats to a province."""
    for other in range(state.dislodged_power.shape[1]):
        if other != v:
            goal = retreat_goal(board, table, state, e, orders, other)
            if goal != NONE and board.location_province[goal] == province:
                return True
    return False


@jit
def adjudicate_retreats(board, table, state, e, orders):
    """Carry out the retreats of one game.

    Reads   state.dislodged_*, state.retreat_options, orders (E, V), by the province dislodged from
    Writes  state.unit_*; empties state.dislodged_*, state.retreat_options
    Rule    rulebook, retreats: units that retreat to the same province are all disbanded
    """
    for v in range(state.dislodged_power.shape[1]):
        if state.dislodged_power[e, v] == NONE:
            continue
        goal = retreat_goal(board, table, state, e, orders, v)
        if goal == NONE:
            continue
        province = board.location_province[goal]
        # A loaded position may offer an occupied province.
        if state.unit_power[e, province] != NONE or retreat_is_contested(
            board, table, state, e, orders, v, province
        ):
            continue
        state.unit_power[e, province] = state.dislodged_power[e, v]
        state.unit_kind[e, province] = state.dislodged_kind[e, v]
        state.unit_location[e, province] = goal
    clear_dislodged(state, e)
