"""Kernels of deals: confirming them, filtering the lists of legal orders, finding broken ones."""

import numpy as np

from .._jit import jit
from ..constants import NONE, OrderKind
from ..rules.state import Salt, decision_seed, is_alive, random_below
from .deals import Clause, OfferResult, Side

PRESS_SALT = int(Salt.PRESS)


@jit
def _has(words, v):
    """Tell whether province v (or V, for nowhere) is in a set."""
    at = np.uint64(v)
    return (words[at >> np.uint64(6)] >> (at & np.uint64(63))) & np.uint64(1) != 0


@jit
def _add(words, v):
    at = np.uint64(v)
    words[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))


@jit
def _moves(kinds, number):
    return kinds[number] == OrderKind.MOVE or kinds[number] == OrderKind.MOVE_VIA


@jit
def _fulfils(kinds, number, promise):
    """Tell whether an order keeps a promise; one to hold is also kept by any support."""
    if number == promise:
        return True
    supports = kinds[number] == OrderKind.SUPPORT_HOLD or kinds[number] == OrderKind.SUPPORT_MOVE
    return kinds[promise] == OrderKind.HOLD and supports


@jit
def _gather(deals, e, power, sets):
    """Write which provinces all deals of a power close to it and make it leave, sets (2, W); tell
    whether that is anything."""
    some = np.uint64(0)
    for w in range(sets.shape[1]):
        closed, vacate = np.uint64(0), np.uint64(0)
        for other in range(deals.closed.shape[1]):
            closed |= deals.closed[e, power, other, w]
            vacate |= deals.vacate[e, power, other, w]
        sets[0, w], sets[1, w] = closed, vacate
        some |= closed | vacate
    return some != 0


@jit
def _keeps(kinds, aims, number, promise, leaving, sets):
    """Tell whether an order keeps all deals of its power: it fulfils the promise, aims at no closed
    province, and moves if its unit must leave."""
    if promise != NONE and not _fulfils(kinds, number, promise):
        return False
    return not _has(sets[0], aims[number]) and (not leaving or _moves(kinds, number))


@jit
def bind_slots(kinds, aims, deals, active, decisions, first, last, sets, counts, out):
    """Write decisions first..last-1 with those orders alone that keep all deals of `active` powers
    (E, P) to out, the arrays of a Decisions; counts (2,) are slots and orders."""
    game, power_of, slot_start, slot_province, order_start, order = out
    s, n = 0, 0
    for d in range(first, last):
        e, power = decisions.game[d], decisions.power[d]
        game[d - first], power_of[d - first] = e, power
        slot_start[d - first] = s
        dealing = active[e, power]
        bound = dealing and _gather(deals, e, power, sets)
        for old in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            v = decisions.slot_province[old]
            slot_province[s], order_start[s] = v, n
            s += 1
            start, stop = decisions.order_start[old], decisions.order_start[old + 1]
            promise = deals.promised[e, v] if dealing else NONE
            leaving = bound and _has(sets[1], v)
            if promise != NONE or bound:
                for i in range(start, stop):
                    number = decisions.order[i]
                    order[n] = number
                    n += np.int64(_keeps(kinds, aims, number, promise, leaving, sets))
            else:
                for i in range(start, stop):
                    order[n + i - start] = decisions.order[i]
                n += stop - start
    slot_start[last - first] = s
    order_start[s] = n
    counts[0], counts[1] = s, n


@jit
def correct_orders(active, decisions, first, last, orders):
    """Replace orders (E, V) of `active` powers that are not in their lists by the list's first: the
    promised order, else the hold, else (the unit must leave) a move."""
    for d in range(first, last):
        e = decisions.game[d]
        if not active[e, decisions.power[d]]:
            continue
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            v = decisions.slot_province[s]
            start, listed = decisions.order_start[s], False
            for i in range(start, decisions.order_start[s + 1]):
                listed = listed or decisions.order[i] == orders[e, v]
            if not listed:
                orders[e, v] = decisions.order[start]


@jit
def count_broken(kinds, aims, deals, active, decisions, first, last, orders, broken):
    """Count the orders of decisions first..last-1 that break a deal, to broken (E, P, P), by the
    power whose order it is, and whom it had the deal with.

    Rule    an order that is not legal counts as hold, the first of each list; the order counts, not
            what came of it
    """
    for d in range(first, last):
        e, power = decisions.game[d], decisions.power[d]
        if not active[e]:
            continue
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            v = decisions.slot_province[s]
            start = decisions.order_start[s]
            number = decisions.order[start]
            for i in range(start, decisions.order_start[s + 1]):
                if decisions.order[i] == orders[e, v]:
                    number = orders[e, v]
            promise = deals.promised[e, v]
            failed = promise != NONE and not _fulfils(kinds, number, promise)
            for other in range(broken.shape[1]):
                promised = (deals.promised_to[e, v] >> np.uint64(other)) & np.uint64(1) != 0
                stays = _has(deals.vacate[e, power, other], v) and not _moves(kinds, number)
                enters = _has(deals.closed[e, power, other], aims[number])
                if (failed and promised) or stays or enters:
                    broken[e, power, other] += 1


@jit
def _close_to(board, state, e, owner, words):
    for v in range(board.terrain.shape[0]):
        if state.unit_power[e, v] == owner:
            _add(words, v)
    for c in range(board.center_province.shape[0]):
        if state.center_owner[e, c] == owner:
            _add(words, board.center_province[c])


@jit
def make_peace(board, state, deals, wish, talking, first, last, sets, agreed):
    """Make peace in `talking` games where two living powers both wish it, wish (E, P, P); agreed
    (E,): how many pairs newly made peace."""
    for e in range(first, last):
        agreed[e] = 0
        if not talking[e]:
            continue
        for p in range(board.num_powers):
            sets[p] = 0
            _close_to(board, state, e, p, sets[p])
        for p in range(board.num_powers):
            for q in range(p + 1, board.num_powers):
                if not (wish[e, p, q] and wish[e, q, p]) or deals.peace[e, p, q]:
                    continue
                if not (is_alive(state, e, p) and is_alive(state, e, q)):
                    continue
                for one, other in ((p, q), (q, p)):
                    for w in range(sets.shape[1]):
                        deals.closed[e, one, other, w] |= sets[other, w]
                    deals.peace[e, one, other] = True
                    deals.dealt[e, one, other] = True
                agreed[e] += 1


@jit
def _find_slot(decisions, d, v):
    """Return the slot of the unit in province v among those of decision d, or NONE."""
    if d == NONE:
        return NONE
    for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
        if decisions.slot_province[s] == v:
            return s
    return NONE


@jit
def _agree(board, state, deals, decisions, d, offers, o, me, other, side):
    """Add what offer o asks of one side, that of decision d (NONE if it has no unit), to the deals;
    return why it cannot be, or CONFIRMED."""
    e, provinces = offers.game[o], board.terrain.shape[0]
    for k in range(offers.clause_start[o], offers.clause_start[o + 1]):
        kind, v, of_side = offers.kind[k], offers.province[k], offers.side[k]
        both = kind in (Clause.PEACE, Clause.ZONE)
        if not Side.SENDER <= of_side <= Side.BOTH or both != (of_side == Side.BOTH):
            return OfferResult.ILLEGAL
        if not both and of_side != side:
            continue
        if kind == Clause.PEACE:
            _close_to(board, state, e, other, deals.closed[e, me, other])
            deals.peace[e, me, other] = True
            continue
        if not 0 <= v < provinces:
            return OfferResult.ILLEGAL
        if kind == Clause.ORDER:
            s = _find_slot(decisions, d, v)
            if s == NONE:
                return OfferResult.ILLEGAL
            legal = False
            for i in range(decisions.order_start[s], decisions.order_start[s + 1]):
                legal = legal or decisions.order[i] == offers.order[k]
            if not legal:
                return OfferResult.ILLEGAL
            if deals.promised[e, v] != NONE and deals.promised[e, v] != offers.order[k]:
                return OfferResult.CONTRADICTS
            deals.promised[e, v] = offers.order[k]
            deals.promised_to[e, v] |= np.uint64(1) << np.uint64(other)
        elif kind in (Clause.KEEP_OUT, Clause.LEAVE, Clause.ZONE):
            if kind != Clause.LEAVE:
                _add(deals.closed[e, me, other], v)
            if kind != Clause.KEEP_OUT:
                _add(deals.vacate[e, me, other], v)
        else:
            return OfferResult.ILLEGAL
    return OfferResult.CONFIRMED


@jit
def _check_side(kinds, aims, deals, decisions, d, sets):
    """Return why the units of decision d cannot keep all deals of their power, or CONFIRMED."""
    if d == NONE:
        return OfferResult.CONFIRMED
    e = decisions.game[d]
    _gather(deals, e, decisions.power[d], sets)
    for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
        v = decisions.slot_province[s]
        promise, leaving = deals.promised[e, v], _has(sets[1], v)
        if promise != NONE:
            if not _keeps(kinds, aims, promise, promise, leaving, sets):
                return OfferResult.CONTRADICTS
        elif leaving:  # else hold is left
            has_keeping = False
            for i in range(decisions.order_start[s], decisions.order_start[s + 1]):
                number = decisions.order[i]
                has_keeping = has_keeping or _keeps(kinds, aims, number, NONE, leaving, sets)
            if not has_keeping:
                return OfferResult.NOTHING_LEFT
    return OfferResult.CONFIRMED


@jit
def _copy_pair(source, i, p, q, target, j):
    """Copy what concerns deals of p with q, and all promises, of row i to row j of other deals."""
    for v in range(source.promised.shape[1]):
        target.promised[j, v] = source.promised[i, v]
        target.promised_to[j, v] = source.promised_to[i, v]
    for one, other in ((p, q), (q, p)):
        for w in range(source.closed.shape[3]):
            target.closed[j, one, other, w] = source.closed[i, one, other, w]
            target.vacate[j, one, other, w] = source.vacate[i, one, other, w]
        target.peace[j, one, other] = source.peace[i, one, other]
        target.dealt[j, one, other] = source.dealt[i, one, other]


@jit
def confirm_offers(
    board, kinds, aims, state, deals, talking, decisions, decision_of, offers, agreed, sets, backup,
    results,
):  # fmt: skip
    """Confirm offers, one after the other, each whole or not at all; results (O,) OfferResult.

    Rule    every unit of both sides must keep an order under all confirmed deals together
    """
    for o in range(offers.game.shape[0]):
        e, p, q = offers.game[o], offers.sender[o], offers.receiver[o]
        result = OfferResult.CONFIRMED
        if not agreed[o]:
            result = OfferResult.DECLINED
        elif not talking[e]:
            result = OfferResult.LATE
        elif p == q:
            result = OfferResult.OWN
        elif not (is_alive(state, e, p) and is_alive(state, e, q)):
            result = OfferResult.DEAD_POWER
        if result != OfferResult.CONFIRMED:
            results[o] = result
            continue
        _copy_pair(deals, e, p, q, backup, 0)
        for me, other, side in ((p, q, Side.SENDER), (q, p, Side.RECEIVER)):
            if result == OfferResult.CONFIRMED:
                d = decision_of[e, me]
                result = _agree(board, state, deals, decisions, d, offers, o, me, other, side)
        for me in (p, q):
            if result == OfferResult.CONFIRMED:
                result = _check_side(kinds, aims, deals, decisions, decision_of[e, me], sets)
        if result == OfferResult.CONFIRMED:
            deals.dealt[e, p, q] = deals.dealt[e, q, p] = True
        else:
            _copy_pair(backup, 0, p, q, deals, e)
        results[o] = result


@jit
def draw_rotations(state, powers, out):
    """Draw which power's offers come first in each game, from its seed and turn alone."""
    for e in range(out.shape[0]):
        _, out[e] = random_below(decision_seed(state, e, 0, PRESS_SALT), powers)
