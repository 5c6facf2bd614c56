"""The decisions of a movement phase, and the equations they satisfy.

Every question of the rulebook that depends on others is a decision, answered NO, YES or MAYBE (not
known yet). A province's row of `facts` holds all that is known of the unit standing there:

    ARRIVES   does the army of this move have a convoy? Moves over land or sea: always YES
    ANSWER    a mover: does it succeed? a supporter: is the support given?

An equation counts what is certain and what is possible. It answers MAYBE only if both answers are
open, whatever else becomes known; so an answer, once found, stays.

The words of DATC chapter 5, and where they are. A strength is one for the unit and one for each
support that is given: `strength_range(facts, v, without)`, which returns the chapter's minimum and
maximum, and does not count the supports by the power `without`. What is 0 there is a case of its
own here.

    path              ARRIVES: `path_answer` in convoys.py, after `choose_way` in movement.py has
                      settled whether the army goes by convoy. A move by land or sea has a path
    attack strength   in `wins`: strength_range(v, without the power of the unit in the goal), or
                      of all supports if that unit leaves. 0 without a path, or against a unit of
                      the own power that stays: `move_answer` answers NO at once
    hold strength     `move_answer` hands it to `wins` as the defence: 0 for a province that is
                      empty or left, 1 for a unit that tried to leave and failed, else
                      strength_range(goal) of all its supports
    defend strength   the same strength_range(goal) if the two units attack each other: `fights`
    prevent strength  in `wins`: strength_range(rival) of all its supports. 0 for a rival without
                      a path, or beaten head to head by the unit that leaves the goal
    move              ANSWER of a mover: `move_answer`, by comparing the strengths in `wins`
    support           ANSWER of a supporter: `support_answer`, YES if given and NO if cut
    dislodged         `is_dislodged` while moves are still open; then ATTACKED_BY of a unit that
                      stays, which `note_results` in movement.py sets
"""

from ..._jit import jit
from ...constants import NONE

NO, MAYBE, YES = 0, 1, 2

# Columns of facts (V, NUM_FACTS) int32, by the province of the unit.
POWER = 0  # of the unit, or NONE
ROLE = 1  # NOBODY, STANDS, SUPPORTS or MOVES
GOAL = 2  # mover: province moved to; supporter: province at which the support is aimed
GOAL_LOCATION = 3  # mover: location moved to
ARRIVES = 4
ANSWER = 5
BY_CONVOY = 6  # mover: 1 if it goes by convoy
STOPPED = 7  # mover: 1 if the paradox rule has stopped it
# Lists, linked through the provinces of their members and ended by NONE.
FIRST_ATTACKER, NEXT_ATTACKER = 8, 9  # movers into this province
FIRST_BACKER, NEXT_BACKER = 10, 11  # supporters of this unit whose support fits its order
FIRST_CONVOYER, NEXT_CONVOYER = 12, 13  # fleets whose convoy fits this army's move
ATTACKED_BY = 14  # the mover that comes in, once all is known
ON_ROUTE = 15  # convoying fleet: 1 if it is part of a complete ordered route
NUM_FACTS = 16

# All of facts starts as NONE, so that is the role of an empty province.
NOBODY, STANDS, SUPPORTS, MOVES = NONE, 0, 1, 2


@jit
def fights(facts, one, two):
    """Tell whether two units attack each other's province, neither by convoy.

    Rule    DATC 4.A.7 b: a head-to-head battle is fought over land or sea only
    """
    return (
        facts[one, ROLE] == MOVES
        and facts[two, ROLE] == MOVES
        and facts[one, GOAL] == two
        and facts[two, GOAL] == one
        and facts[one, BY_CONVOY] == 0
        and facts[two, BY_CONVOY] == 0
    )


@jit
def strength_range(facts, v, without):
    """Return the least and the greatest strength of a unit: itself and the supports it is given.

    Supports by the power `without` (or NONE) do not count.
    Rule    rulebook, support; nobody helps to dislodge a unit of the own power
    """
    least, greatest = 1, 1
    backer = facts[v, FIRST_BACKER]
    while backer != NONE:
        if facts[backer, POWER] != without:
            answer = facts[backer, ANSWER]
            if answer != NO:
                greatest += 1
                if answer == YES:
                    least += 1
        backer = facts[backer, NEXT_BACKER]
    return least, greatest


@jit
def wins(facts, v, without, defence_least, defence_greatest, leaves):
    """Answer whether a move overcomes the defence of its goal and all its rivals.

    Reads   facts; `without` is the power whose supports do not count (or NONE), `leaves` tells
            whether the unit in the goal gets away
    Rule    rulebook: equal strength bounces; a unit beaten head to head keeps nobody out of the
            province its opponent left; an army without a convoy keeps nobody out
    """
    goal = facts[v, GOAL]
    alone = facts[goal, FIRST_ATTACKER] == v and facts[v, NEXT_ATTACKER] == NONE
    if alone and defence_greatest == 0:
        return facts[v, ARRIVES]
    least, greatest = strength_range(facts, v, without)
    if greatest <= defence_least:
        return NO
    certain = facts[v, ARRIVES] == YES and least > defence_greatest
    rival = facts[goal, FIRST_ATTACKER]
    while rival != NONE:
        arrives = facts[rival, ARRIVES]
        if rival != v and arrives != NO and not (leaves and fights(facts, rival, goal)):
            rival_least, rival_greatest = strength_range(facts, rival, NONE)
            if arrives == YES and greatest <= rival_least:
                return NO
            if least <= rival_greatest:
                certain = False
        rival = facts[rival, NEXT_ATTACKER]
    return YES if certain else MAYBE


@jit
def move_answer(facts, v):
    """Answer whether the move of the unit in province v succeeds.

    Rule    rulebook, moves; a unit never dislodges one of its own power
    """
    if facts[v, ARRIVES] == NO:
        return NO
    goal = facts[v, GOAL]
    if facts[goal, ROLE] == NOBODY:
        return wins(facts, v, NONE, 0, 0, True)
    owner = facts[goal, POWER]
    if facts[goal, ROLE] != MOVES or fights(facts, v, goal):
        if owner == facts[v, POWER]:
            return NO
        least, greatest = strength_range(facts, goal, NONE)
        return wins(facts, v, owner, least, greatest, False)
    leaves = facts[goal, ANSWER]
    if leaves == YES:
        return wins(facts, v, NONE, 0, 0, True)
    if owner == facts[v, POWER]:
        stays_answer = NO
    elif facts[v, FIRST_BACKER] == NONE:
        stays_answer = NO  # a unit alone moves no other one out of its place
    else:
        stays_answer = wins(facts, v, owner, 1, 1, False)
    if leaves == NO:
        return stays_answer
    leaves_answer = wins(facts, v, NONE, 0, 0, True)
    return leaves_answer if leaves_answer == stays_answer else MAYBE


@jit
def support_answer(facts, v):
    """Answer whether the support by the unit in province v is given.

    Reads   facts
    Rule    rulebook, cutting support: any foreign attack cuts it, but one from the province at
            which the support is aimed only by dislodging the unit; an army under convoy attacks
            from where it stood (DATC 4.A.4)
    """
    answer = YES
    attacker = facts[v, FIRST_ATTACKER]
    while attacker != NONE:
        cuts = facts[attacker, ARRIVES]
        if cuts != NO and facts[attacker, POWER] != facts[v, POWER]:
            if attacker == facts[v, GOAL] and facts[attacker, ANSWER] != YES:
                cuts = facts[attacker, ANSWER]
            if cuts == YES:
                return NO
            if cuts == MAYBE:
                answer = MAYBE
        attacker = facts[attacker, NEXT_ATTACKER]
    return answer


@jit
def is_dislodged(facts, v):
    """Answer whether the unit in province v, which does not move, is dislodged."""
    answer = NO
    attacker = facts[v, FIRST_ATTACKER]
    while attacker != NONE:
        if facts[attacker, ANSWER] == YES:
            return YES
        if facts[attacker, ANSWER] == MAYBE:
            answer = MAYBE
        attacker = facts[attacker, NEXT_ATTACKER]
    return answer
