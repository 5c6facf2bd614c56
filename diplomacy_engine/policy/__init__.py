"""What a network is told of boards and orders, and its draws, in compiled kernels."""

from .inputs import (
    FIRST_CLASS,
    FIRST_RELATION,
    NUM_BOARD,
    NUM_KINDS,
    RELATION,
    feature_offsets,
    feature_rows,
    global_features,
    num_globals,
    order_columns,
    order_rows,
    province_borders,
    province_reach,
)
from .order_logits import RowSums, SlotScores, draw_orders

__all__ = [
    "FIRST_CLASS",
    "FIRST_RELATION",
    "NUM_BOARD",
    "NUM_KINDS",
    "RELATION",
    "RowSums",
    "SlotScores",
    "draw_orders",
    "feature_offsets",
    "feature_rows",
    "global_features",
    "num_globals",
    "order_columns",
    "order_rows",
    "province_borders",
    "province_reach",
]
