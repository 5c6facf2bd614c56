"""Lists of legal orders that a policy makes shorter, and what it answers in terms of the full ones.

`own` decisions are those of the policy: the same slots, in any order within a decision, with some
of their orders.
"""

import numpy as np

from .decisions import Decisions, row_edges


def without_orders(decisions: Decisions, unwanted: np.ndarray) -> Decisions:
    """Return decisions without the orders that are `unwanted`, (N,) bool.

    A slot all of whose orders are unwanted keeps them.
    """
    lengths = np.diff(decisions.order_start)
    slot = np.repeat(np.arange(len(lengths)), lengths)
    some = np.bincount(slot[~unwanted], minlength=len(lengths)) > 0
    wanted = ~(unwanted & some[slot])
    order_start = row_edges(wanted)[decisions.order_start]
    return decisions._replace(order_start=order_start, order=decisions.order[wanted])


def matched(decisions: Decisions, own: Decisions, numbers: np.ndarray) -> np.ndarray:
    """Return the order numbers (S,) of the slots of `own` in the slots of `decisions`."""
    if own is decisions:
        return numbers
    reordered = np.empty_like(numbers)
    reordered[_slots(decisions, own)] = numbers
    return reordered


def order_places(decisions: Decisions, own: Decisions) -> np.ndarray:
    """Return the place (N',) of each order of `own` in `decisions`."""
    slot, size = _slots(decisions, own), int(decisions.order.max(initial=0)) + 1
    key = decisions.order_slot * size + decisions.order
    wanted = np.repeat(slot, np.diff(own.order_start)) * size + own.order
    by_key = np.argsort(key)
    return by_key[np.searchsorted(key, wanted, sorter=by_key)]


def _slots(decisions: Decisions, own: Decisions) -> np.ndarray:
    """Return which slot (S,) of `decisions` each slot of `own` is."""
    full, mine = (np.lexsort((d.slot_province, d.slot_decision)) for d in (decisions, own))
    slot = np.empty(len(mine), np.int64)
    slot[mine] = full
    return slot
