"""The kernel that `bench` times on its own; apart, so that edits there recompile nothing."""

from .._jit import jit
from ..rules.adjudicator.movement import adjudicate_movement


@jit
def adjudicate_rows(board, table, state, orders, scratch):
    """Adjudicate the movement of every game.

    Reads   orders (E, V)
    Writes  state
    """
    for e in range(orders.shape[0]):
        adjudicate_movement(board, table, state, e, orders, scratch)
