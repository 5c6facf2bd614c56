"""What a network is told of boards and orders, and its draws, in compiled kernels."""

from .inputs import FIRST_CLASS, FIRST_RELATION, NetworkInputs
from .order_logits import RowSums, SlotScores, draw_orders

__all__ = [
    "FIRST_CLASS",
    "FIRST_RELATION",
    "NetworkInputs",
    "RowSums",
    "SlotScores",
    "draw_orders",
]
