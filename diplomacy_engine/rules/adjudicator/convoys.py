"""Convoys: whether the fleets ordered to carry an army form a route, and which of them matter."""

from ..._jit import jit
from ...constants import FLEET, NONE
from . import equations as eq


@jit
def has_route(reach, province_location, facts, queue, army, risk):
    """Tell whether fleets ordered to convoy an army lead from its province to its goal.

    Reads   board.reach, board.province_location, facts; `risk` is the greatest answer to "is it
            dislodged?" that a fleet may have: NO (safe ones only), MAYBE, or YES (all of them)
    Writes  queue (2, V) int32, as scratch: fleets reached, fleets not reached
    Rule    rulebook, convoys: one complete route suffices (DATC 4.A.1)
    """
    goal = facts[army, eq.GOAL]
    head, tail, waiting = 0, 0, 0
    fleet = facts[army, eq.FIRST_CONVOYER]
    while fleet != NONE:
        if risk == eq.YES or eq.is_dislodged(facts, fleet) <= risk:
            if reach[FLEET, province_location[fleet], army]:
                queue[0, tail] = fleet
                tail += 1
            else:
                queue[1, waiting] = fleet
                waiting += 1
        fleet = facts[fleet, eq.NEXT_CONVOYER]
    while head < tail:
        location = province_location[queue[0, head]]
        head += 1
        if reach[FLEET, location, goal]:
            return True
        num_waiting = 0
        for i in range(waiting):
            if reach[FLEET, location, queue[1, i]]:
                queue[0, tail] = queue[1, i]
                tail += 1
            else:
                queue[1, num_waiting] = queue[1, i]
                num_waiting += 1
        waiting = num_waiting
    return False


@jit
def path_answer(reach, province_location, facts, queue, army):
    """Answer whether the convoy of an army has a route without a dislodged fleet."""
    if has_route(reach, province_location, facts, queue, army, eq.NO):
        return eq.YES
    if has_route(reach, province_location, facts, queue, army, eq.MAYBE):
        return eq.MAYBE
    return eq.NO


@jit
def mark_routes(reach, province_location, facts, queue, army):
    """Mark the convoying fleets of an army that are part of a complete route.

    Reads   board.reach, board.province_location, facts
    Writes  facts ON_ROUTE of its fleets; queue (2, V) int32, as scratch: the path so far
    Rule    a route has no needless fleet: each touches only the one before and the one after it,
            the first alone touches the origin and the last alone the goal
    """
    depth = 0
    candidate = facts[army, eq.FIRST_CONVOYER]
    while True:
        while candidate != NONE and not _extends(
            reach, province_location, queue, army, depth, candidate
        ):
            candidate = facts[candidate, eq.NEXT_CONVOYER]
        if candidate == NONE:
            if depth == 0:
                return
            depth -= 1
            candidate = facts[queue[0, depth], eq.NEXT_CONVOYER]
            continue
        queue[0, depth] = candidate
        depth += 1
        if reach[FLEET, province_location[candidate], facts[army, eq.GOAL]]:
            for i in range(depth):
                facts[queue[0, i], eq.ON_ROUTE] = 1
            depth -= 1
            candidate = facts[candidate, eq.NEXT_CONVOYER]
        else:
            candidate = facts[army, eq.FIRST_CONVOYER]


@jit
def _extends(reach, province_location, queue, army, depth, candidate):
    """Tell whether a path of fleets may go on with a candidate."""
    location = province_location[candidate]
    if reach[FLEET, location, army] != (depth == 0):
        return False
    for i in range(depth):
        if queue[0, i] == candidate or reach[FLEET, location, queue[0, i]] != (i == depth - 1):
            return False
    return True
