"""The rules: one kernel for each kind of phase.

`adjudicate_movement`, `adjudicate_retreats` and `adjudicate_adjustments` turn the orders of one
game into its next position; they do not advance the phase.
"""

from .adjustments import adjudicate_adjustments
from .movement import adjudicate_movement, movement_scratch
from .retreats import adjudicate_retreats

__all__ = [
    "adjudicate_adjustments",
    "adjudicate_movement",
    "adjudicate_retreats",
    "movement_scratch",
]
