"""Legal orders of every unit and adjustment: the exact lists from which players choose.

Movement lists hold exactly the orders that can take effect given the units on the board: an army is
convoyed only over fleets that are there, a fleet convoys only on a route that needs it, and a fleet
that every route needs does not support the move it must convoy.
"""

from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Int32s, Uint32s, Uint64s, new_arrays
from .._jit import jit, jit_merged
from ..constants import ARMY, FLEET, NONE
from .map import Board
from .state import adjustments_owed, can_build_in, is_movement, is_retreat
from .vocabulary import OrderTable

# Columns of LegalScratch.aim
GOAL, SUPPORT_HOLD, BEFORE, AFTER, ARC, ARCS = range(6)
CHUNK = 4  # numbers written at a time, wanted or not: cheaper than loops that stop exactly


class LegalScratch(NamedTuple):
    """Tables of a map, and working arrays of a thread that lists the orders of one game at a time.

    A node is kind * L + location. An aim is a province into which a node can support; its columns:

        GOAL            the province
        SUPPORT_HOLD    number of a support to hold, less the supported unit's rank, from one
        BEFORE, AFTER   number of a support of a move, less the move's arc (counted from the first
                        into that province), if the mover's province is before or after the node's
        ARC, ARCS       the node's own first arc into the province, and how many it has

    What serves as an index is unsigned: kernels look at signed ones for whether they are negative.
    """

    hold: np.ndarray  # (2 * L,) int32, number of a node's hold; its moves follow
    hold_and_moves: np.ndarray  # (2 * L,) uint32, how many orders these are
    aim_first: np.ndarray  # (2 * L + 1,) uint32, where each node's aims begin
    aim: np.ndarray  # (aims, 6) int32
    rank: np.ndarray  # (2 * L,) uint32, of a node among those of its province, from one
    fleet_bit: np.ndarray  # (2 * L,) uint64, bit of the sea_index; 0 for what does not convoy
    shore: np.ndarray  # (V,) uint64, seas next to it
    convoy: np.ndarray  # (seas, coasts * coasts) int32, OrderTable.convoy
    # The units of the game in province order, and their nodes and powers
    unit_province: Annotated[Uint32s, "V + 1"]
    unit_power: Annotated[Uint32s, "V + 1"]
    unit_node: Annotated[Uint32s, "V + 1"]
    by_power: Annotated[Uint32s, "V + 1"]  # the units again, by power and then province
    power_last: Annotated[Uint32s, "P + 2"]  # end of a power's units in by_power
    standing: Annotated[Uint32s, "V"]  # rank of the unit in a province; 0 without one
    # Moves into each province that units on the board can make by themselves
    land_count: Annotated[Uint32s, "V"]
    land_arc: Annotated[Int32s, "V, land"]  # from the first into it, by the mover's province
    land_own: Annotated[Uint32s, "V + 1, supports"]  # where a unit's own stand in that row
    # Moves that armies can make only over fleets
    over_count: Annotated[Uint32s, "V"]
    over_arc: Annotated[Int32s, "V, over"]
    over_from: Annotated[Uint32s, "V, over"]  # province of the army
    over_needs: Annotated[Uint64s, "V, over"]  # seas without which that move is impossible
    # Convoyable moves, by army
    pair_first: Annotated[Uint32s, "V + 2"]  # where each unit's begin
    pair_to: Annotated[Uint32s, "pairs"]  # destination
    pair_cell: Annotated[Uint32s, "pairs"]  # column of convoy
    pair_seas: Annotated[Uint64s, "pairs"]  # fleets that lie on some route


def legal_scratch(board: Board, table: OrderTable) -> LegalScratch:
    provinces, locations = len(board.terrain), len(board.location_province)
    aims, aim_first = _support_aims(board, table)
    arcs_into = np.bincount(aims[:, GOAL], aims[:, ARCS], provinces)
    seas = [(v, int(table.sea_index[v])) for v in np.flatnonzero(table.sea_index != NONE)]
    fleet_bit, shore = np.zeros((2, locations), np.uint64), np.zeros(provinces, np.uint64)
    for v, index in seas:
        fleet_bit[FLEET, board.province_location[v]] = 1 << index
        shore[board.reach[FLEET, board.province_location[v]]] |= np.uint64(1 << index)
    sizes = {
        "V": provinces,
        "P": board.num_powers,
        "land": int(arcs_into.max(initial=0)) + CHUNK,
        "supports": table.support_province.shape[2],
        "over": max(1, int((table.via != NONE).sum(axis=0).max())),
        "pairs": max(1, int((table.via != NONE).sum())),
    }
    return new_arrays(LegalScratch, **sizes)._replace(
        hold=table.hold.ravel(),
        hold_and_moves=(board.neighbor_count.ravel() + 1).astype(np.uint32),
        aim_first=aim_first,
        aim=aims,
        rank=(table.node_rank.ravel() + 1).astype(np.uint32),
        fleet_bit=fleet_bit.ravel(),
        shore=shore,
        convoy=table.convoy.reshape(len(table.convoy), table.convoy[0].size if seas else 0),
    )


def _support_aims(board: Board, table: OrderTable) -> tuple[np.ndarray, np.ndarray]:
    most = table.support_province.shape[2]
    is_aim = np.arange(most) < table.support_count[..., None]
    near = np.where(board.neighbor == NONE, NONE, board.location_province[board.neighbor])
    leads = near[:, :, None] == table.support_province[..., None]  # to each of a goal's coasts
    goal, number = table.support_province[is_aim], table.first_support_move[is_aim]
    first_arc = np.take_along_axis(table.move_arc, leads.argmax(axis=3), axis=2)[is_aim]
    aims = (
        goal,
        table.first_support_hold[is_aim] - 1,
        number,
        number - table.own_arcs[is_aim],
        first_arc - table.arc_first[goal],
        leads.sum(axis=3)[is_aim],
    )
    first = np.cumsum([0, *table.support_count.ravel()])
    return np.stack(aims, axis=1).astype(np.int32), first.astype(np.uint32)


@jit
def _find_units(board, state, e, scratch):
    """Find the units of game e and their order by power; return how many, and the fleets that can
    convoy, as bits. Neutral units stand behind those of all powers."""
    provinces, locations = board.terrain.shape[0], board.location_province.shape[0]
    units, fleets = 0, np.uint64(0)
    for power in range(board.num_powers + 1):
        scratch.power_last[power] = 0
    for v in range(provinces):
        scratch.land_count[v] = 0
        scratch.over_count[v] = 0
        scratch.standing[v] = 0
        # Every province is written at the end of the list, and the end moves on if a unit is there.
        here = state.unit_power[e, v] != NONE
        scratch.unit_province[units] = v
        units += here
    for u in range(units):
        v = scratch.unit_province[u]
        node = np.int64(state.unit_kind[e, v]) * locations + state.unit_location[e, v]
        scratch.unit_node[u] = node
        scratch.standing[v] = scratch.rank[node]
        power = state.unit_power[e, v]
        scratch.unit_power[u] = power
        scratch.power_last[power + 1] += np.uint32(1)
        fleets |= scratch.fleet_bit[node] * np.uint64(power != board.num_powers)
    for power in range(board.num_powers):
        scratch.power_last[power + 1] += scratch.power_last[power]
    for u in range(units):  # what was the first of the power's units becomes the last
        power = scratch.unit_power[u]
        scratch.by_power[scratch.power_last[power]] = u
        scratch.power_last[power] += np.uint32(1)
    return units, fleets


@jit
def _find_moves(num_powers, units, scratch):
    """Find the moves into every province that units make by themselves; neutral ones have none."""
    for u in range(units):
        if scratch.unit_power[u] == num_powers:
            continue
        node = np.uint64(scratch.unit_node[u])
        first = np.int64(scratch.aim_first[node])
        for s in range(first, np.int64(scratch.aim_first[node + np.uint64(1)])):
            goal = np.uint64(scratch.aim[s, GOAL])
            n = np.uint64(scratch.land_count[goal])
            arc, arcs = scratch.aim[s, ARC], scratch.aim[s, ARCS]
            scratch.land_own[u, s - first] = n
            scratch.land_arc[goal, n] = arc
            scratch.land_arc[goal, n + np.uint64(1)] = arc + 1  # counts if it has two
            if arcs > 2:
                for i in range(2, arcs):
                    scratch.land_arc[goal, n + np.uint64(i)] = arc + i
            scratch.land_count[goal] = n + np.uint64(arcs)


@jit
def _find_convoys(board, table, units, fleets, scratch):
    """Find the moves that armies can make over `fleets`, bits of the places where one convoys.

    Reads   scratch.unit_*
    Writes  scratch.pair_*, over_*
    Rule    rulebook, movement and convoys: an army moves over a chain of fleets in sea provinces;
            a map may say where else fleets convoy
    """
    locations, coasts = board.location_province.shape[0], table.convoy.shape[2]
    pairs = 0
    for u in range(units):
        scratch.pair_first[u] = pairs
        v = np.int64(scratch.unit_province[u])
        if scratch.shore[v] & fleets == 0 or scratch.unit_node[u] >= locations:
            continue
        if scratch.unit_power[u] == board.num_powers:
            continue
        previous, by_land, shared = NONE, False, np.uint64(0)
        for r in range(table.route_first[v], table.route_first[v + 1]):
            seas = table.route_seas[r]
            if seas & ~fleets != 0:
                continue
            goal = np.int64(table.route_goal[r])
            if goal == previous:
                scratch.pair_seas[pairs - 1] |= seas
                shared &= seas
                if not by_land:
                    scratch.over_needs[goal, scratch.over_count[goal] - 1] = shared
                continue
            scratch.pair_to[pairs] = goal
            scratch.pair_cell[pairs] = table.coast_index[v] * coasts + table.coast_index[goal]
            scratch.pair_seas[pairs] = shared = seas
            pairs += 1
            previous = goal
            by_land = board.reach[ARMY, board.province_location[v], goal]
            if not by_land:
                n = scratch.over_count[goal]
                scratch.over_arc[goal, n] = table.army_arc[v, goal] - table.arc_first[goal]
                scratch.over_from[goal, n] = v
                scratch.over_needs[goal, n] = shared
                scratch.over_count[goal] = n + 1
    scratch.pair_first[units] = pairs
    return pairs


@jit
def _write_range(number, count, order, n):
    """Write number, number + 1, ... to order[n:], `count` numbers in whole chunks."""
    for done in range(0, count, CHUNK):
        at = n + np.uint64(done)
        for i in range(CHUNK):
            order[at + np.uint64(i)] = number + done + i
    return n + np.uint64(count)


@jit
def _write_supports(arcs, goal, first, last, number, order, n):
    """Write number + arcs[goal, i] for i in first..last-1 to order[n:], in whole chunks, but one.
    Having at least one chunk saves a branch that could go either way."""
    done = first
    while True:
        at = n + (done - first)
        for i in range(CHUNK):
            order[at + np.uint64(i)] = number + arcs[goal, done + np.uint64(i)]
        done += np.uint64(CHUNK)
        if done >= last:
            return n + (last - first)


@jit_merged
def _movement_orders(u, pairs, via, sea_index, scratch, order, n):
    """Write the legal movement orders of unit u to order[n:]; return the new n.

    Reads   scratch as left by the kernels above; `pairs` counts the convoyable moves
    Writes  order, and up to CHUNK numbers more than those that count
    Rule    design of the lists: hold, moves, convoyed moves, supports, convoys
    """
    v, node = np.uint64(scratch.unit_province[u]), np.uint64(scratch.unit_node[u])
    own_sea = scratch.fleet_bit[node]
    n = _write_range(scratch.hold[node], np.int64(scratch.hold_and_moves[node]), order, n)
    if pairs:
        for p in range(np.int64(scratch.pair_first[u]), np.int64(scratch.pair_first[u + 1])):
            order[n] = via[v, scratch.pair_to[p]]
            n += np.uint64(1)
    first = np.int64(scratch.aim_first[node])
    last = np.int64(scratch.aim_first[node + np.uint64(1)])
    for s in range(first, last):
        rank = scratch.standing[np.uint64(scratch.aim[s, GOAL])]
        order[n] = scratch.aim[s, SUPPORT_HOLD] + rank
        n += np.uint64(rank != 0)
    for s in range(first, last):
        goal = np.uint64(scratch.aim[s, GOAL])
        before, after = scratch.aim[s, BEFORE], scratch.aim[s, AFTER]
        # A province into which a unit supports is one that it could attack itself.
        own = np.uint64(scratch.land_own[u, s - first])
        n = _write_supports(scratch.land_arc, goal, np.uint64(0), own, before, order, n)
        own += np.uint64(scratch.aim[s, ARCS])
        ends = np.uint64(scratch.land_count[goal])
        n = _write_supports(scratch.land_arc, goal, own, ends, after, order, n)
        if pairs:
            for i in range(scratch.over_count[goal]):
                number = after if scratch.over_from[goal, i] > v else before
                order[n] = number + scratch.over_arc[goal, i]
                n += np.uint64(scratch.over_needs[goal, i] & own_sea == 0)
    if pairs and own_sea != 0:
        sea = np.uint64(sea_index[v])
        for p in range(pairs):
            order[n] = scratch.convoy[sea, scratch.pair_cell[p]]
            n += np.uint64(scratch.pair_seas[p] & own_sea != 0)
    return n


@jit
def unit_retreat_orders(board, table, state, e, v, buffer, n):
    """Write the legal retreat orders of the dislodged unit of province v; return the new n."""
    kind, here = state.dislodged_kind[e, v], state.dislodged_location[e, v]
    for i in range(board.neighbor_count[kind, here]):
        if (state.retreat_options[e, v] >> np.uint32(i)) & np.uint32(1):
            buffer[n] = table.first_retreat[kind, here] + i
            n += 1
    buffer[n] = table.disband[kind, here]
    return n + 1


@jit
def build_orders(board, table, v, buffer, n):
    """Write every build possible in center v (each kind and coast); return the new n.

    Rule    rulebook, builds: an army on land, a fleet on a coast; a split coast must be named
    """
    for here in range(board.location_province.shape[0]):
        if board.location_province[here] == v:
            for kind in (ARMY, FLEET):
                if board.can_stand[kind, here]:
                    buffer[n] = table.build[kind, here]
                    n += 1
    return n


@jit
def _adjustment_list(board, table, state, e, power, builds, buffer, n):
    """Write the builds, else the removals, of a power from buffer[n] on; return the new n."""
    for v in range(board.terrain.shape[0]):
        if builds:
            if can_build_in(board, state, e, power, v):
                n = build_orders(board, table, v, buffer, n)
        elif state.unit_power[e, v] == power:
            buffer[n] = table.disband[state.unit_kind[e, v], state.unit_location[e, v]]
            n += 1
    if builds:
        buffer[n] = table.waive
        n += 1
    return n


@jit_merged
def list_game(board, table, state, e, scratch, most_orders, counts, buffers):
    """Append the pending decisions of game e; return False if a buffer could overflow.

    Reads   row e of state
    Writes  counts (3,) int64: decisions, slots and orders written so far, and `buffers`, the arrays
            (game, power, slot_start, slot_province, order_start, order) of a Decisions
    Rule    a power that has not conceded has a decision if it has a unit to order, a retreat or an
            adjustment to make; `most_orders` is how many one unit or adjustment can have at most
    """
    game, power_of, slot_start, slot_province, order_start, order = buffers
    provinces = board.terrain.shape[0]
    if (
        counts[0] + board.num_powers >= game.shape[0]
        or counts[1] + 2 * provinces >= slot_province.shape[0]
        or counts[2] + most_orders * 2 * provinces >= order.shape[0]
    ):
        return False
    phase = state.phase[e]
    moving, retreating = is_movement(phase), is_retreat(phase)
    pairs = 0
    if moving:
        units, fleets = _find_units(board, state, e, scratch)
        _find_moves(board.num_powers, units, scratch)
        if fleets != 0:
            pairs = _find_convoys(board, table, units, fleets, scratch)
    d, s, n = counts[0], counts[1], counts[2]
    done = 0  # units listed
    for power in range(board.num_powers):
        first_slot = s
        if state.conceded[e, power]:
            if moving:
                done = np.int64(scratch.power_last[power])
        elif moving:
            while done < scratch.power_last[power]:
                u = np.int64(scratch.by_power[done])
                slot_province[s] = scratch.unit_province[u]
                order_start[s] = n
                at = np.uint64(n)
                n = np.int64(
                    _movement_orders(u, pairs, table.via, table.sea_index, scratch, order, at)
                )
                s += 1
                done += 1
        elif retreating:
            for v in range(provinces):
                if state.dislodged_power[e, v] == power:
                    slot_province[s] = v
                    order_start[s] = n
                    s += 1
                    n = unit_retreat_orders(board, table, state, e, v, order, n)
        else:
            owed = adjustments_owed(board, state, e, power)
            for _ in range(abs(owed)):
                slot_province[s] = NONE
                order_start[s] = n
                s += 1
                n = _adjustment_list(board, table, state, e, power, owed > 0, order, n)
        if s > first_slot:
            game[d] = e
            power_of[d] = power
            slot_start[d] = first_slot
            d += 1
    counts[0], counts[1], counts[2] = d, s, n
    return True
