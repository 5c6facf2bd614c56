"""How DumbBot orders the units of a power in a movement phase, and how it picks from a list."""

from typing import Annotated, NamedTuple

import numpy as np

from ..._arrays import Bools, Float64s, Int8s, Int16s, Int32s, Int64s, new_arrays
from ..._jit import jit
from ...constants import ARMY, FLEET, NONE
from ...rules.map import Board
from ...rules.state import next_random, random_below
from .dumbbot_rules import REAL, ROUNDED
from .dumbbot_values import NodeGraph

KEYS = 32768  # random keys by which a power's units are ordered
PLAY_ALTERNATIVE = 50  # percent: chance to look at the next candidate at all
DIFFERENCE_MODIFIER = 500
PATIENCE = 1000  # waits in one phase without keys; the ports' own code could wait for ever
UNORDERED, HOLDING, MOVING, SUPPORTING = 0, 1, 2, 3


class OrderScratch(NamedTuple):
    """Working arrays of a thread that orders a power's units; (V,) is by province unless said."""

    queue: Annotated[Int16s, "V"]  # provinces of the units still to order
    key: Annotated[Int64s, "V"]
    status: Annotated[Int8s, "V"]  # UNORDERED, HOLDING, MOVING or SUPPORTING
    mover: Annotated[Int16s, "V", NONE]  # by destination: province of its unit, or NONE
    mover_neighbor: Annotated[Int16s, "V", NONE]  # by destination: which neighbor of that unit
    avoid: Annotated[Bools, "V, V"]  # provinces of the units that wait for this one
    way_count: Annotated[Int32s, "V", NONE]  # destinations of a unit; NONE before they are listed
    way_rank: Annotated[Float64s, "V, most"]  # destinations, best first: value,
    way_node: Annotated[Int16s, "V, most"]  # node,
    way_neighbor: Annotated[Int16s, "V, most"]  # and which neighbor it is, NONE to stay
    rank: Annotated[Float64s, "longest"]  # the same of the list now picked from
    node: Annotated[Int16s, "longest"]
    neighbor: Annotated[Int16s, "longest"]


def order_scratch(board: Board, graph: NodeGraph) -> OrderScratch:
    provinces = len(board.terrain)
    most = int(np.diff(graph.way_first).max(initial=0)) + 1
    longest = max(most, provinces, len(graph.kind))
    return new_arrays(OrderScratch, V=provinces, most=most, longest=longest)


@jit
def insert(candidates, count, rank, node, neighbor, merges):
    """Insert a candidate into a list (ranks, nodes, neighbors) kept best first; return the list's
    new length.

    Of candidates with equal value all are kept, in order, or the first inserted alone
    (`merges_equals`).
    """
    ranks, nodes, neighbors = candidates
    at = count
    while at > 0 and ranks[at - 1] < rank:
        at -= 1
    if merges and at > 0 and ranks[at - 1] == rank:
        return count
    for i in range(count, at, -1):
        ranks[i], nodes[i], neighbors[i] = ranks[i - 1], nodes[i - 1], neighbors[i - 1]
    ranks[at], nodes[at], neighbors[at] = rank, node, neighbor
    return count + 1


@jit
def remove(candidates, count, at):
    ranks, nodes, neighbors = candidates
    for i in range(at, count - 1):
        ranks[i], nodes[i], neighbors[i] = ranks[i + 1], nodes[i + 1], neighbors[i + 1]
    return count - 1


@jit
def pick(ranks, count, sign, kind, rng):
    """Return `(new rng, index)` of a random candidate, mostly one of the first.

    `sign` is 1 where ranks are values and -1 where they are negated values (removals: worst first).
    Rule    walk down the list: from a candidate to the next with 50 % times (100 - chance) %, where
            chance grows with the drop in value; signed, so never a hindrance where values grow.
            The chance is a whole number, TRUNCATED or ROUNDED. REAL makes the step 50 % minus the
            chance, and takes the drop without its sign
    """
    at = 0
    while at + 1 < count:
        value, following = sign * ranks[at], sign * ranks[at + 1]
        chance = 0.0
        if kind == REAL:
            if value != 0:
                chance = abs(value - following) * DIFFERENCE_MODIFIER / value
            if chance >= PLAY_ALTERNATIVE:
                break
            rng, bits = next_random(rng)
            draw = bits * (100 / 4294967296)
            if draw >= PLAY_ALTERNATIVE or draw < chance:
                break
        else:
            if value != 0:
                chance = (value - following) * DIFFERENCE_MODIFIER / value
                chance = np.floor(chance + 0.5) if kind == ROUNDED else np.trunc(chance)
            if chance >= 100:
                break  # the same without the draws; keeps long mutual waiting cheap
            rng, draw = random_below(rng, 100)
            if draw >= PLAY_ALTERNATIVE:
                break
            rng, draw = random_below(rng, 100)
            if draw < chance:
                break
        at += 1
    return rng, at


@jit
def wander(ranks, count, rng):
    """Return `(new rng, index)` of a random candidate of a list in any order.

    Rule    every candidate in turn takes the place of the one before it with the chance of `pick`,
            whether or not an earlier one has
    """
    at = 0
    for following in range(1, count):
        chance = 0.0
        if ranks[at] != 0:
            chance = np.trunc((ranks[at] - ranks[following]) * DIFFERENCE_MODIFIER / ranks[at])
        rng, draw = random_below(rng, 100)
        if draw < PLAY_ALTERNATIVE:
            rng, draw = random_below(rng, 100)
            if draw >= chance:
                at = following
    return rng, at


@jit
def queue_units(powers, e, power, scratch, rules, rng):
    """Queue a power's units of `powers` (E, V); return rng, count.

    Rule    by descending random key; with equal keys, as without `shuffles`, by province
    """
    count = 0
    for v in range(powers.shape[1]):
        if powers[e, v] == power:
            key = 0
            if rules.shuffles:
                rng, key = random_below(rng, KEYS)
            at = count
            while at > 0 and scratch.key[scratch.queue[at - 1]] < key:
                scratch.queue[at] = scratch.queue[at - 1]
                at -= 1
            scratch.queue[at] = v
            scratch.key[v] = key
            count += 1
    return rng, count


@jit
def _list_ways(graph, value, node, v, rules, scratch):
    """List the destinations of the unit at `node` in province v, staying included; that may count 1
    more than the node's value (`prefers_staying`)."""
    ways = scratch.way_rank[v], scratch.way_node[v], scratch.way_neighbor[v]
    count = 0
    for i in range(graph.way_first[node], graph.way_first[node + 1]):
        to, neighbor = graph.way_node[i], graph.way_neighbor[i]
        count = insert(ways, count, value[to], to, neighbor, rules.merges_equals)
    stay = value[node] + 1 if rules.prefers_staying else value[node]
    scratch.way_count[v] = insert(ways, count, stay, node, NONE, rules.merges_equals)


@jit
def _copy_ways(graph, v, rules, scratch):
    """Copy the destinations of the unit in province v to the list picked from; return how many.
    With `avoids_waiting` it leaves out the provinces of friends that wait for it."""
    count = 0
    for i in range(scratch.way_count[v]):
        node = scratch.way_node[v, i]
        if not (rules.avoids_waiting and scratch.avoid[v, graph.province[node]]):
            scratch.rank[count] = scratch.way_rank[v, i]
            scratch.node[count] = node
            scratch.neighbor[count] = scratch.way_neighbor[v, i]
            count += 1
    return count


@jit
def support_hold(table, state, e, v, q):
    kind, here = state.unit_kind[e, v], state.unit_location[e, v]
    rank = table.node_rank[state.unit_kind[e, q], state.unit_location[e, q]]
    return table.first_support_hold[kind, here, table.support_index[kind, here, q]] + rank


@jit
def support_move(table, state, e, v, q, scratch):
    """Return the order of the unit in v to support the move of `scratch.mover[q]` to province q."""
    kind, here = state.unit_kind[e, v], state.unit_location[e, v]
    origin = scratch.mover[q]
    arc = table.move_arc[
        state.unit_kind[e, origin], state.unit_location[e, origin], scratch.mover_neighbor[q]
    ]
    i = table.support_index[kind, here, q]
    number = table.first_support_move[kind, here, i] + arc - table.arc_first[q]
    return number - table.own_arcs[kind, here, i] if origin > v else number


@jit
def _order_unit(table, graph, state, e, power, v, values, scratch, free, rules, orders, rng):
    """Order the unit in province v; return new rng, and NONE or the friend it must wait for.

    Rule    pick a destination. A friend that stays there is supported against two or more enemies,
            a friend that moves there against one; else the destination is rejected and the pick
            repeated. Nobody waits when `free`, or for a friend whose key has become negative
    """
    kind, here = state.unit_kind[e, v], state.unit_location[e, v]
    candidates = scratch.rank, scratch.node, scratch.neighbor
    count = _copy_ways(graph, v, rules, scratch)
    while count > 0:
        rng, at = pick(scratch.rank, count, 1, rules.chance, rng)
        neighbor = scratch.neighbor[at]
        if neighbor == NONE:
            break
        q = graph.province[scratch.node[at]]
        friend = state.unit_power[e, q] == power
        if friend and rules.sees_nodes:
            at_node = graph.number[state.unit_kind[e, q], state.unit_location[e, q]]
            friend = at_node == scratch.node[at]
        if friend and scratch.status[q] == UNORDERED and not free and scratch.key[q] >= 0:
            return rng, q
        if friend and (scratch.status[q] == HOLDING or scratch.status[q] == SUPPORTING):
            if values.competition[q] > 1:
                scratch.status[v] = SUPPORTING
                orders[e, v] = support_hold(table, state, e, v, q)
                return rng, NONE
        elif scratch.mover[q] != NONE:
            if values.competition[q] > 0:
                scratch.status[v] = SUPPORTING
                orders[e, v] = support_move(table, state, e, v, q, scratch)
                return rng, NONE
        else:
            scratch.status[v] = MOVING
            scratch.mover[q] = v
            scratch.mover_neighbor[q] = neighbor
            orders[e, v] = table.first_move[kind, here] + neighbor
            return rng, NONE
        count = remove(candidates, count, at)
    scratch.status[v] = HOLDING
    orders[e, v] = table.hold[kind, here]
    return rng, NONE


@jit
def begin_movement(state, e, power, scratch):
    """Note that no unit of a power is ordered yet."""
    for v in range(state.unit_power.shape[1]):
        scratch.mover[v] = NONE
        if state.unit_power[e, v] == power:
            scratch.status[v] = UNORDERED


@jit
def movement_orders(board, table, graph, state, e, power, values, scratch, rules, orders, rng):
    """Write the movement orders (E, V) of the units of one power that have none yet.

    Rule    one that must wait for a friend goes back into the queue directly behind it, with the
            friend's key less 1 (`has_keys`); that ends the waiting of two units for each other.
            With `avoids_waiting` the friend may not go to the waiting unit's province
    """
    provinces = board.terrain.shape[0]
    for v in range(provinces):
        if state.unit_power[e, v] == power and scratch.status[v] == UNORDERED:
            node = graph.number[state.unit_kind[e, v], state.unit_location[e, v]]
            _list_ways(graph, values.value, node, v, rules, scratch)
            if rules.avoids_waiting:
                scratch.avoid[v, :] = False
    rng, units = queue_units(state.unit_power, e, power, scratch, rules, rng)
    count = 0
    for u in range(units):
        if scratch.status[scratch.queue[u]] == UNORDERED:
            scratch.queue[count] = scratch.queue[u]
            count += 1
    head, waits = 0, 0
    while head < count:
        v = scratch.queue[head]
        free = not rules.has_keys and waits > PATIENCE
        rng, friend = _order_unit(
            table, graph, state, e, power, v, values, scratch, free, rules, orders, rng
        )
        if friend == NONE:
            head += 1
            continue
        waits += 1
        if rules.avoids_waiting:
            scratch.avoid[friend, v] = True
        if rules.has_keys:
            scratch.key[v] = scratch.key[friend] - 1
        at = head
        while scratch.queue[at] != friend:
            scratch.queue[at] = scratch.queue[at + 1]
            at += 1
        scratch.queue[at - 1], scratch.queue[at] = friend, v
    for v in range(provinces):
        if rules.uses_holds and state.unit_power[e, v] == power and scratch.status[v] == HOLDING:
            _use_wasted_hold(
                board, table, graph, state, e, power, v, values, scratch, rules, orders
            )


@jit
def _use_wasted_hold(board, table, graph, state, e, power, v, values, scratch, rules, orders):
    """Let the holding unit in province v support the friend whose place is worth most, if any.

    Rule    a friend moving to where an enemy is near, or staying where two are. Its worth is the
            value of the destination, and an army overlooks a province with coasts that a fleet in
            its place could reach. With `values_origin` it is that of the node the friend now stands
            on, and a friend that stays in a province with coasts is overlooked by fleets
    """
    kind, here = state.unit_kind[e, v], state.unit_location[e, v]
    best, best_order = 0.0, NONE
    for i in range(board.neighbor_count[kind, here]):
        to = board.neighbor[kind, here, i]
        q = board.location_province[to]
        moved = scratch.mover[q] != NONE
        stays = not moved and state.unit_power[e, q] == power and scratch.status[q] != MOVING
        if not (moved and values.competition[q] > 0) and not (stays and values.competition[q] > 1):
            continue
        node = graph.number[kind, to]
        coasts = not board.can_stand[FLEET, board.province_location[q]]
        if coasts and not rules.values_origin and kind == ARMY and board.reach[FLEET, here, q]:
            continue
        if rules.values_origin:
            if stays and to != board.province_location[q]:
                continue
            friend = scratch.mover[q] if moved else q
            node = graph.number[state.unit_kind[e, friend], state.unit_location[e, friend]]
        if values.value[node] > best:
            best = values.value[node]
            if moved:
                best_order = support_move(table, state, e, v, q, scratch)
            else:
                best_order = support_hold(table, state, e, v, q)
    if best_order != NONE:
        scratch.status[v] = SUPPORTING
        orders[e, v] = best_order
