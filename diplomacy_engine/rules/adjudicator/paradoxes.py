"""What stays open when no equation gives an answer any more: rings of moves and paradoxes.

Open decisions are taken core by core. A core is a smallest set of open decisions whose equations
depend on nothing open outside of it; every way to answer it consistently is searched for:

    one way                          it is the answer
    several, moves only              a ring: all of its moves succeed
    none or several, with convoys    a paradox: its armies stay, without effect (Szykman's rule)

Without convoys only plain rings can stay open: a supporter does not move, so nothing aimed at its
province by a support is ever attacked from there, and every support is decided at once. With them,
an army that lands has a say over one support, and that over one fleet, so that cores are rings of
convoys, which have no answer or two; the search takes nothing of that for granted.

A decision has a number: v for the move or support of the unit in province v, V + v for the convoy
of the army in province v.
"""

from ..._jit import jit
from ...constants import NONE
from . import equations as eq
from .convoys import path_answer

# Of an equation with more open inputs than this each counts as needed: 2^n cases must stay few.
MOST_INPUTS = 12
TRUTH_SIZE = 1 << MOST_INPUTS

# Rows of lists (6, 2 V).
OPEN, INPUTS, CORE, SOLUTION, TRAIL, GUESSES = 0, 1, 2, 3, 4, 5


@jit
def turn_rings(facts, undecided, count):
    """Let the open moves that only wait for each other in a ring succeed; tell if there were any.

    Reads   undecided[:count], provinces of open movers and supporters
    Writes  facts ANSWER
    Rule    rulebook: three or more units may trade places in a ring, and two if one goes by convoy
    """
    any_ring = False
    for i in range(count):
        first = undecided[i]
        v, steps = first, 0
        while steps < count and _waits_for_goal_only(facts, v):
            v = facts[v, eq.GOAL]
            steps += 1
            if v == first:
                break
        if steps > 0 and v == first:
            any_ring = True
            while facts[v, eq.ANSWER] == eq.MAYBE:
                facts[v, eq.ANSWER] = eq.YES
                v = facts[v, eq.GOAL]
    return any_ring


@jit
def _waits_for_goal_only(facts, v):
    """Tell whether an open move succeeds exactly if the open move of its goal's unit does."""
    goal = facts[v, eq.GOAL]
    if facts[v, eq.ROLE] != eq.MOVES or facts[v, eq.ANSWER] != eq.MAYBE:
        return False
    if facts[goal, eq.ROLE] != eq.MOVES or facts[goal, eq.ANSWER] != eq.MAYBE:
        return False
    facts[goal, eq.ANSWER] = eq.YES
    if_it_leaves = eq.move_answer(facts, v)
    facts[goal, eq.ANSWER] = eq.NO
    if_it_stays = eq.move_answer(facts, v)
    facts[goal, eq.ANSWER] = eq.MAYBE
    return if_it_leaves == eq.YES and if_it_stays == eq.NO


@jit
def get_answer(facts, decision):
    """Return the answer to a decision, known or MAYBE."""
    provinces = facts.shape[0]
    if decision < provinces:
        return facts[decision, eq.ANSWER]
    return facts[decision - provinces, eq.ARRIVES]


@jit
def set_answer(facts, decision, answer):
    provinces = facts.shape[0]
    if decision < provinces:
        facts[decision, eq.ANSWER] = answer
    else:
        facts[decision - provinces, eq.ARRIVES] = answer


@jit
def equation(reach, province_location, facts, queue, decision):
    """Answer a decision from the answers to the others."""
    provinces = facts.shape[0]
    if decision >= provinces:
        return path_answer(reach, province_location, facts, queue, decision - provinces)
    if facts[decision, eq.ROLE] == eq.SUPPORTS:
        return eq.support_answer(facts, decision)
    return eq.move_answer(facts, decision)


@jit
def _add_open(facts, inputs, count, decision):
    if get_answer(facts, decision) == eq.MAYBE:
        inputs[count] = decision
        count += 1
    return count


@jit
def _add_backers(facts, inputs, count, v):
    backer = facts[v, eq.FIRST_BACKER]
    while backer != NONE:
        count = _add_open(facts, inputs, count, backer)
        backer = facts[backer, eq.NEXT_BACKER]
    return count


@jit
def open_inputs(facts, inputs, decision):
    """List the open decisions that an equation may look at, each once; return how many."""
    provinces = facts.shape[0]
    count = 0
    if decision >= provinces:
        fleet = facts[decision - provinces, eq.FIRST_CONVOYER]
        while fleet != NONE:
            attacker = facts[fleet, eq.FIRST_ATTACKER]
            while attacker != NONE:
                count = _add_open(facts, inputs, count, attacker)
                attacker = facts[attacker, eq.NEXT_ATTACKER]
            fleet = facts[fleet, eq.NEXT_CONVOYER]
    elif facts[decision, eq.ROLE] == eq.SUPPORTS:
        attacker = facts[decision, eq.FIRST_ATTACKER]
        while attacker != NONE:
            if facts[attacker, eq.POWER] != facts[decision, eq.POWER]:
                count = _add_open(facts, inputs, count, provinces + attacker)
                if attacker == facts[decision, eq.GOAL]:
                    count = _add_open(facts, inputs, count, attacker)
            attacker = facts[attacker, eq.NEXT_ATTACKER]
    else:
        goal = facts[decision, eq.GOAL]
        if facts[goal, eq.ROLE] == eq.MOVES:
            count = _add_open(facts, inputs, count, goal)
        if facts[goal, eq.ROLE] != eq.NOBODY:
            count = _add_backers(facts, inputs, count, goal)
        rival = facts[goal, eq.FIRST_ATTACKER]
        while rival != NONE:
            count = _add_open(facts, inputs, count, provinces + rival)
            count = _add_backers(facts, inputs, count, rival)
            rival = facts[rival, eq.NEXT_ATTACKER]
    return count


@jit
def find_needs(reach, province_location, facts, queue, lists, needs, truth, count):
    """Find out which open decisions depend on which.

    Reads   lists[OPEN, :count]
    Writes  needs[i, j] = 1 if the answer to the i-th turns with the j-th alone in some case;
            lists[INPUTS], truth, as scratch
    """
    for i in range(count):
        for j in range(count):
            needs[i, j] = 0
    inputs = lists[INPUTS]
    for i in range(count):
        decision = lists[OPEN, i]
        number = open_inputs(facts, inputs, decision)
        complete = number <= MOST_INPUTS
        if complete:
            for case in range(1 << number):
                for k in range(number):
                    set_answer(facts, inputs[k], eq.YES if (case >> k) & 1 else eq.NO)
                truth[case] = equation(reach, province_location, facts, queue, decision)
            for k in range(number):
                set_answer(facts, inputs[k], eq.MAYBE)
        for k in range(number):
            turns = not complete
            if complete:
                for case in range(1 << number):
                    if truth[case] != truth[case ^ (1 << k)]:
                        turns = True
                        break
            if turns:
                for j in range(count):
                    if lists[OPEN, j] == inputs[k]:
                        needs[i, j] = 1


@jit
def find_core(lists, needs, count):
    """List the smallest set of open decisions closed under dependence (CORE); return its size."""
    smallest = 0
    marks, waiting = lists[INPUTS], lists[TRAIL]
    for i in range(count):
        for j in range(count):
            marks[j] = 0
        size, tail = 0, 1
        waiting[0] = i
        while tail > 0:
            tail -= 1
            k = waiting[tail]
            for j in range(count):
                if needs[k, j] == 1 and marks[j] == 0:
                    marks[j] = 1
                    size += 1
                    waiting[tail] = j
                    tail += 1
        if size > 0 and (smallest == 0 or size < smallest):
            smallest, num_open = size, 0
            for j in range(count):
                if marks[j] == 1:
                    lists[CORE, num_open] = lists[OPEN, j]
                    num_open += 1
    return smallest


@jit
def follow(reach, province_location, facts, queue, lists, size, length):
    """Answer all of a core that follows from what is guessed; return whether that is consistent,
    and the new length of lists[TRAIL]."""
    grew = True
    while grew:
        grew = False
        for i in range(size):
            decision = lists[CORE, i]
            answer = equation(reach, province_location, facts, queue, decision)
            previous = get_answer(facts, decision)
            if previous == eq.MAYBE:
                if answer != eq.MAYBE:
                    set_answer(facts, decision, answer)
                    lists[TRAIL, length] = decision
                    length += 1
                    grew = True
            elif answer != eq.MAYBE and answer != previous:
                return False, length
    return True, length


@jit
def count_solutions(reach, province_location, facts, queue, lists, size):
    """Count the consistent ways to answer a core; 2 stands for two or more.

    Reads   lists[CORE, :size]
    Writes  lists[SOLUTION, :size], the first one found; facts are left as they were;
            lists[TRAIL], lists[GUESSES], as scratch
    """
    num_solutions, length, depth = 0, 0, 0
    while True:
        consistent, length = follow(reach, province_location, facts, queue, lists, size, length)
        if consistent:
            guess = NONE
            for i in range(size):  # convoys last in the core: once they are known, most follows
                if get_answer(facts, lists[CORE, i]) == eq.MAYBE:
                    guess = lists[CORE, i]
            if guess != NONE:
                lists[GUESSES, depth] = length
                depth += 1
                set_answer(facts, guess, eq.YES)
                lists[TRAIL, length] = guess
                length += 1
                continue
            num_solutions += 1
            if num_solutions == 1:
                for i in range(size):
                    lists[SOLUTION, i] = get_answer(facts, lists[CORE, i])
        # Back to the last guess that has not been tried both ways.
        again = False
        while not again and depth > 0 and num_solutions < 2:
            start = lists[GUESSES, depth - 1]
            guess = lists[TRAIL, start]
            again = get_answer(facts, guess) == eq.YES
            while length > start:
                length -= 1
                set_answer(facts, lists[TRAIL, length], eq.MAYBE)
            if again:
                set_answer(facts, guess, eq.NO)
                length += 1
            else:
                depth -= 1
        if not again:
            while length > 0:
                length -= 1
                set_answer(facts, lists[TRAIL, length], eq.MAYBE)
            return num_solutions


@jit
def settle_core(reach, province_location, scratch, count, num_armies):
    """Take the decisions of one core.

    Reads   scratch.undecided[:count], provinces of open movers and supporters;
            scratch.units[2, :num_armies], of all armies by convoy
    Writes  facts ANSWER, ARRIVES, STOPPED; lists, needs, truth, as scratch
    Rule    DATC 4.A.2, Szykman's rule: the armies of a convoy paradox stay and have no effect
    """
    facts, queue, lists, needs = scratch.facts, scratch.queue, scratch.lists, scratch.needs
    armies, provinces, num_open = scratch.units[2], facts.shape[0], count
    for i in range(count):
        lists[OPEN, i] = scratch.undecided[i]
    for i in range(num_armies):
        if facts[armies[i], eq.ARRIVES] == eq.MAYBE:
            lists[OPEN, num_open] = provinces + armies[i]
            num_open += 1
    find_needs(reach, province_location, facts, queue, lists, needs, scratch.truth, num_open)
    size = find_core(lists, needs, num_open)
    if count_solutions(reach, province_location, facts, queue, lists, size) == 1:
        for i in range(size):
            set_answer(facts, lists[CORE, i], lists[SOLUTION, i])
        return
    stopped = False
    for i in range(size):
        army = lists[CORE, i] - provinces
        if army >= 0:
            facts[army, eq.ARRIVES] = eq.NO
            facts[army, eq.STOPPED] = 1
            stopped = True
    if not stopped:
        for i in range(size):
            facts[lists[CORE, i], eq.ANSWER] = eq.YES
