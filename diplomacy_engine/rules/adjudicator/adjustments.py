"""Winter: builds, removals and civil disorder."""

from ..._jit import jit
from ...constants import BUILD, DISBAND, FLEET, NONE
from ..state import adjustments_owed, can_build_in


@jit
def adjudicate_adjustments(board, table, state, e, orders):
    """Carry out the builds and removals of one game.

    Reads   state.center_owner, orders (E, V): a BUILD by its center, a DISBAND by unit
    Writes  state.unit_*
    Rule    rulebook, builds and removals; of too many orders the first in province order count,
            builds not ordered are waived, removals not ordered are made by civil disorder
    """
    for power in range(board.num_powers):
        owed = adjustments_owed(board, state, e, power)
        for v in range(state.unit_power.shape[1]):
            if owed == 0:
                break
            order = orders[e, v]
            if order < 0 or order >= table.kind.shape[0]:
                continue
            location = table.location[order]
            if location == NONE or board.location_province[location] != v:
                continue
            if owed > 0 and table.kind[order] == BUILD and can_build_in(board, state, e, power, v):
                state.unit_power[e, v] = power
                state.unit_kind[e, v] = table.unit_kind[order]
                state.unit_location[e, v] = location
                owed -= 1
            elif (
                owed < 0
                and table.kind[order] == DISBAND
                and state.unit_power[e, v] == power
                and state.unit_kind[e, v] == table.unit_kind[order]
                and state.unit_location[e, v] == location
            ):
                remove_unit(state, e, v)
                owed += 1
        while owed < 0:
            remove_unit(state, e, civil_disorder_removal(board, state, e, power))
            owed += 1


@jit
def remove_unit(state, e, v):
    state.unit_power[e, v] = NONE
    state.unit_kind[e, v] = NONE
    state.unit_location[e, v] = NONE


@jit
def civil_disorder_removal(board, state, e, power):
    """Return the province of the unit that a power loses next if it does not say which.

    Reads   state.unit_*, state.center_owner, board.distance, board.removal_rank
    Rule    2023 rulebook, DATC 4.D.8: the unit farthest from all centers the power owns, by steps
            over any border; fleets before armies; then by the full names of the provinces
    """
    worst, worst_distance = NONE, 0
    for v in range(state.unit_power.shape[1]):
        if state.unit_power[e, v] != power:
            continue
        distance = state.unit_power.shape[1]
        for c in range(board.center_province.shape[0]):
            if state.center_owner[e, c] == power:
                distance = min(distance, board.distance[v, board.center_province[c]])
        if worst == NONE:
            replaces = True
        elif distance != worst_distance:
            replaces = distance > worst_distance
        elif state.unit_kind[e, v] != state.unit_kind[e, worst]:
            replaces = state.unit_kind[e, v] == FLEET
        else:
            replaces = board.removal_rank[v] < board.removal_rank[worst]
        if replaces:
            worst, worst_distance = v, distance
    return worst
