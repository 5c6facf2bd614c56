"""Movement phases: orders are matched, decided and carried out.

`decide` goes over what is still open until every answer is known; almost always two or three rounds
do, and `paradoxes.py` looks at the rest.
"""

from typing import Annotated, NamedTuple

from ..._arrays import Int32s, Uint8s, new_arrays
from ..._jit import jit, jit_merged
from ...constants import (
    BOUNCE,
    CUT,
    DISBANDED,
    DISLODGED,
    DISRUPTED,
    NO_CONVOY,
    NONE,
    VOID,
    OrderKind,
    UnitKind,
)
from ..map import Board
from ..state import clear_dislodged
from . import equations as eq
from .convoys import has_route, mark_routes, path_answer
from .paradoxes import TRUTH_SIZE, settle_core, turn_rings


class MovementScratch(NamedTuple):
    """Working memory of one thread. Nothing in it outlives a call."""

    facts: Annotated[Int32s, "V, NUM_FACTS"]  # see equations.py
    units: Annotated[Int32s, "3, V"]  # provinces: units, movers, armies by convoy
    undecided: Annotated[Int32s, "V"]  # provinces of movers and supporters without an answer
    queue: Annotated[Int32s, "2, V"]  # see convoys.py
    needs: Annotated[Uint8s, "2 V, 2 V"]  # see paradoxes.py
    lists: Annotated[Int32s, "6, 2 V"]  # see paradoxes.py
    truth: Annotated[Uint8s, "TRUTH_SIZE"]  # see paradoxes.py


def movement_scratch(board: Board) -> MovementScratch:
    """Return working memory for `adjudicate_movement`; each thread needs its own."""
    sizes = {"V": len(board.terrain), "NUM_FACTS": eq.NUM_FACTS, "TRUTH_SIZE": TRUTH_SIZE}
    return new_arrays(MovementScratch, **sizes)


@jit
def adjudicate_movement(board, table, state, e, orders, scratch):
    """Adjudicate the movement orders of one game.

    Reads   state.unit_*, orders (E, V): an order number by the province of the unit; anything that
            is no movement order of just that unit is a hold
    Writes  state.unit_*, state.dislodged_*, state.retreat_options, state.last_*; units that are
            dislodged without a retreat are off the board
    Rule    rulebook, movement; DATC 2.5 preferences, Szykman's rule for convoy paradoxes
    """
    num_units, num_movers = read_orders(board, table, state, e, orders, scratch)
    num_supports = match_orders(board, table, state, e, scratch, num_units)
    facts = scratch.facts
    num_armies = 0
    for i in range(num_movers):
        v = scratch.units[1, i]
        scratch.undecided[num_supports + i] = v
        if facts[v, eq.BY_CONVOY] == 0 and facts[v, eq.FIRST_CONVOYER] == NONE:
            continue
        by_land = board.reach[UnitKind.ARMY, state.unit_location[e, v], facts[v, eq.GOAL]]
        choose_way(board.reach, board.province_location, facts, scratch.queue, v, by_land)
        if facts[v, eq.ARRIVES] == eq.MAYBE:
            scratch.units[2, num_armies] = v
            num_armies += 1
    decide(board, scratch, num_supports + num_movers, num_armies)
    note_results(board, table, state, e, scratch.facts, scratch.queue, scratch.units, num_units)
    carry_out(board, table, state, e, scratch.facts, scratch.units, num_units, num_movers)


@jit
def adjudicate_rows(board, table, state, orders, scratch):
    """Adjudicate the movement of every game, which `bench` times alone."""
    for e in range(orders.shape[0]):
        adjudicate_movement(board, table, state, e, orders, scratch)


@jit
def read_orders(board, table, state, e, orders, scratch):
    """Read the orders, and link the moves to their goals.

    Reads   state.unit_*, orders (E, V)
    Writes  facts; units[0], units[1]; state.last_*; empties state.dislodged_*
    Returns `(number of units, number of movers)`
    """
    facts, units = scratch.facts, scratch.units
    num_units, num_movers = 0, 0
    clear_dislodged(state, e)
    for v in range(facts.shape[0]):
        for column in range(eq.NUM_FACTS):
            facts[v, column] = NONE
    for v in range(facts.shape[0]):
        state.last_result[e, v] = 0
        power = state.unit_power[e, v]
        state.last_power[e, v] = power
        if power == NONE:
            state.last_order[e, v] = NONE
            continue
        kind, location = state.unit_kind[e, v], state.unit_location[e, v]
        order = orders[e, v]
        if order < table.hold[kind, location] or order >= table.first_retreat[kind, location]:
            order = table.hold[kind, location]
        state.last_order[e, v] = order
        facts[v, eq.POWER] = power
        facts[v, eq.ROLE] = eq.STANDS
        units[0, num_units] = v
        num_units += 1
        what = table.kind[order]
        if what in (OrderKind.MOVE, OrderKind.MOVE_VIA):
            goal = board.location_province[table.target[order]]
            facts[v, eq.ROLE] = eq.MOVES
            facts[v, eq.GOAL] = goal
            facts[v, eq.GOAL_LOCATION] = table.target[order]
            facts[v, eq.ARRIVES] = eq.YES
            facts[v, eq.ANSWER] = eq.MAYBE
            facts[v, eq.BY_CONVOY] = 1 if what == OrderKind.MOVE_VIA else 0
            facts[v, eq.STOPPED] = 0
            facts[v, eq.NEXT_ATTACKER] = facts[goal, eq.FIRST_ATTACKER]
            facts[goal, eq.FIRST_ATTACKER] = v
            units[1, num_movers] = v
            num_movers += 1
    return num_units, num_movers


@jit
def match_orders(board, table, state, e, scratch, num_units):
    """Link each support and convoy that fits another order to the unit it is for.

    Reads   state.unit_*, state.last_order, units[0, :num_units]
    Writes  facts; state.last_result VOID for those that fit none; undecided
    Returns the number of supporters in `undecided`
    Rule    rulebook: a support or convoy must match the order given to the other unit; a support
            may name a coast, which must then match as well (DATC 4.B.4)
    """
    facts = scratch.facts
    num_supports = 0
    for i in range(num_units):
        v = scratch.units[0, i]
        order = state.last_order[e, v]
        what = table.kind[order]
        if what in (OrderKind.HOLD, OrderKind.MOVE, OrderKind.MOVE_VIA):
            continue
        location = table.other_location[order]
        other = board.location_province[location]
        is_there = (
            state.unit_location[e, other] == location
            and state.unit_kind[e, other] == table.other_kind[order]
        )
        if what == OrderKind.SUPPORT_HOLD:
            matches = is_there and facts[other, eq.ROLE] != eq.MOVES
        else:
            matches = (
                is_there
                and facts[other, eq.ROLE] == eq.MOVES
                and facts[other, eq.GOAL_LOCATION] == table.target[order]
            )
        if not matches:
            state.last_result[e, v] = VOID
        elif what == OrderKind.CONVOY:
            facts[v, eq.NEXT_CONVOYER] = facts[other, eq.FIRST_CONVOYER]
            facts[other, eq.FIRST_CONVOYER] = v
        else:
            facts[v, eq.ROLE] = eq.SUPPORTS
            facts[v, eq.GOAL] = other if what == OrderKind.SUPPORT_HOLD else facts[other, eq.GOAL]
            facts[v, eq.NEXT_BACKER] = facts[other, eq.FIRST_BACKER]
            facts[other, eq.FIRST_BACKER] = v
            if facts[v, eq.FIRST_ATTACKER] == NONE:
                facts[v, eq.ANSWER] = eq.YES
            else:
                facts[v, eq.ANSWER] = eq.MAYBE
                scratch.undecided[num_supports] = v
                num_supports += 1
    return num_supports


@jit
def choose_way(reach, province_location, facts, queue, v, by_land):
    """Decide whether an army that moves goes by convoy.

    Reads   board.reach, board.province_location, facts; BY_CONVOY tells whether the order says VIA,
            `by_land` whether the goal is adjacent
    Writes  facts BY_CONVOY, ARRIVES (MAYBE if the convoy may be disrupted); queue, as scratch
    Rule    DATC 4.A.3: to an adjacent province by convoy if the order says so or an own fleet has
            an order to convoy it; if no complete route was ordered, by land
    """
    wanted = facts[v, eq.BY_CONVOY] == 1 or not by_land
    attacked = False
    fleet = facts[v, eq.FIRST_CONVOYER]
    while fleet != NONE:
        if facts[fleet, eq.POWER] == facts[v, eq.POWER]:
            wanted = True
        if facts[fleet, eq.FIRST_ATTACKER] != NONE:
            attacked = True
        fleet = facts[fleet, eq.NEXT_CONVOYER]
    if wanted and has_route(reach, province_location, facts, queue, v, eq.YES):
        facts[v, eq.BY_CONVOY] = 1
        if attacked:
            facts[v, eq.ARRIVES] = eq.MAYBE
    elif by_land:
        facts[v, eq.BY_CONVOY] = 0
    else:
        facts[v, eq.BY_CONVOY] = 1
        facts[v, eq.ARRIVES] = eq.NO


@jit_merged
def decide(board, scratch, count, num_armies):
    """Answer every open decision, those of `count` undecided movers and supporters, and of armies
    whose convoy may be disrupted."""
    facts, undecided, armies = scratch.facts, scratch.undecided, scratch.units[2]
    reach, province_location = board.reach, board.province_location
    while True:
        grew = False
        for i in range(num_armies):
            if facts[armies[i], eq.ARRIVES] == eq.MAYBE:
                answer = path_answer(reach, province_location, facts, scratch.queue, armies[i])
                if answer != eq.MAYBE:
                    facts[armies[i], eq.ARRIVES] = answer
                    grew = True
        num_undecided = 0
        for i in range(count):
            v = undecided[i]
            supports = facts[v, eq.ROLE] == eq.SUPPORTS
            answer = eq.support_answer(facts, v) if supports else eq.move_answer(facts, v)
            if answer == eq.MAYBE:
                undecided[num_undecided] = v
                num_undecided += 1
            else:
                facts[v, eq.ANSWER] = answer
                grew = True
        count = num_undecided
        if grew:
            continue
        if count == 0:
            return
        if not turn_rings(facts, undecided, count):
            settle_core(reach, province_location, scratch, count, num_armies)


@jit
def note_results(board, table, state, e, facts, queue, units, num_units):
    """Say what became of each order, but for dislodgement."""
    for i in range(num_units):
        v = units[0, i]
        if facts[v, eq.ROLE] == eq.MOVES:
            if facts[v, eq.ANSWER] == eq.YES:
                facts[facts[v, eq.GOAL], eq.ATTACKED_BY] = v
            elif facts[v, eq.ARRIVES] == eq.YES:
                state.last_result[e, v] = BOUNCE
            else:
                state.last_result[e, v] = NO_CONVOY
    for i in range(num_units):
        v = units[0, i]
        order = state.last_order[e, v]
        if facts[v, eq.ROLE] == eq.SUPPORTS:
            other = board.location_province[table.other_location[order]]
            if facts[other, eq.ROLE] == eq.MOVES and facts[other, eq.ARRIVES] == eq.NO:
                state.last_result[e, v] = NO_CONVOY
            elif facts[v, eq.ANSWER] == eq.NO:
                state.last_result[e, v] = CUT
            elif facts[other, eq.ROLE] == eq.MOVES and is_against_own(facts, v, other):
                state.last_result[e, v] = VOID
        elif table.kind[order] == OrderKind.CONVOY and state.last_result[e, v] == 0:
            army = board.location_province[table.other_location[order]]
            state.last_result[e, v] = convoy_result(
                board.reach, board.province_location, facts, queue, v, army
            )


@jit
def is_against_own(facts, v, other):
    """Tell whether a support helps the strongest move against a unit of its own power that stays:
    by the rulebook it then does not count."""
    goal = facts[other, eq.GOAL]
    if facts[goal, eq.POWER] != facts[v, eq.POWER]:
        return False
    if facts[goal, eq.ROLE] == eq.MOVES and facts[goal, eq.ANSWER] == eq.YES:
        return False
    strength, _ = eq.strength_range(facts, other, NONE)
    rival = facts[goal, eq.FIRST_ATTACKER]
    while rival != NONE:
        if rival != other and facts[rival, eq.ARRIVES] == eq.YES:
            resistance, _ = eq.strength_range(facts, rival, NONE)
            if strength <= resistance:
                return False
        rival = facts[rival, eq.NEXT_ATTACKER]
    return True


@jit
def convoy_result(reach, province_location, facts, queue, fleet, army):
    """Return the result bits of a convoy order that fits an army's move."""
    if facts[army, eq.BY_CONVOY] == 0:
        return VOID | NO_CONVOY
    if facts[fleet, eq.ON_ROUTE] == NONE:
        mark_routes(reach, province_location, facts, queue, army)
    if facts[fleet, eq.ON_ROUTE] == NONE:
        return VOID | NO_CONVOY
    if facts[army, eq.ARRIVES] == eq.YES or facts[fleet, eq.ATTACKED_BY] != NONE:
        return 0
    stopped = facts[army, eq.STOPPED] == 1
    if stopped and has_route(reach, province_location, facts, queue, army, eq.NO):
        return DISRUPTED
    return NO_CONVOY


@jit
def carry_out(board, table, state, e, facts, units, num_units, num_movers):
    """Move the units, and give those that are dislodged their retreats; a neutral unit has none."""
    num_dislodged = 0
    for i in range(num_units):
        v = units[0, i]
        moves = facts[v, eq.ROLE] == eq.MOVES and facts[v, eq.ANSWER] == eq.YES
        if not moves and facts[v, eq.ATTACKED_BY] == NONE:
            continue
        if not moves:
            state.dislodged_power[e, v] = state.unit_power[e, v]
            state.dislodged_kind[e, v] = state.unit_kind[e, v]
            state.dislodged_location[e, v] = state.unit_location[e, v]
            state.last_result[e, v] |= DISLODGED
            num_dislodged += 1
        state.unit_power[e, v] = NONE
        state.unit_kind[e, v] = NONE
        state.unit_location[e, v] = NONE
    for i in range(num_movers):
        v = units[1, i]
        if facts[v, eq.ANSWER] == eq.YES:
            goal = facts[v, eq.GOAL]
            state.unit_power[e, goal] = facts[v, eq.POWER]
            state.unit_kind[e, goal] = table.unit_kind[state.last_order[e, v]]
            state.unit_location[e, goal] = facts[v, eq.GOAL_LOCATION]
    if num_dislodged == 0:
        return
    for i in range(num_units):
        v = units[0, i]
        if state.dislodged_power[e, v] == NONE:
            continue
        options = retreat_options(board, state, e, facts, v)
        if options != 0 and state.dislodged_power[e, v] != board.num_powers:
            state.retreat_options[e, v] = options
        else:
            state.last_result[e, v] |= DISBANDED
            state.dislodged_power[e, v] = NONE
            state.dislodged_kind[e, v] = NONE
            state.dislodged_location[e, v] = NONE


@jit
def retreat_options(board, state, e, facts, v):
    """Return the neighbors that the dislodged unit of province v may retreat to, as bits.

    Reads   state.unit_power, after the moves; state.dislodged_*; facts
    Rule    rulebook, retreats: not to an occupied province, nor to one left vacant by a standoff,
            nor to where the attacker came from, unless it came by convoy (DATC 4.A.5)
    """
    kind, location = state.dislodged_kind[e, v], state.dislodged_location[e, v]
    attacker = facts[v, eq.ATTACKED_BY]
    options = 0
    for near in range(board.neighbor_count[kind, location]):
        province = board.location_province[board.neighbor[kind, location, near]]
        if state.unit_power[e, province] != NONE:
            continue
        if province == attacker and facts[attacker, eq.BY_CONVOY] == 0:
            continue
        if not is_standoff(facts, province):
            options |= 1 << near
    return options


@jit
def is_standoff(facts, province):
    """Tell whether some unit bounced in a province; one beaten head to head by it did not."""
    mover = facts[province, eq.FIRST_ATTACKER]
    while mover != NONE:
        if facts[mover, eq.ARRIVES] == eq.YES and facts[mover, eq.ANSWER] == eq.NO:
            leaves = facts[province, eq.ANSWER] == eq.YES
            if not (leaves and eq.fights(facts, mover, province)):
                return True
        mover = facts[mover, eq.NEXT_ATTACKER]
    return False
