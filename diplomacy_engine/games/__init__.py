"""Games that run: many at once in arrays, or one in texts."""

from .decisions import Decisions, order_numbers, order_positions
from .game import Game
from .observation import OBSERVATION_VERSION, UNIT_OWNER, BoardViews, Observation
from .vector_game import StepResult, VectorGame

__all__ = [
    "OBSERVATION_VERSION",
    "UNIT_OWNER",
    "BoardViews",
    "Decisions",
    "Game",
    "Observation",
    "StepResult",
    "VectorGame",
    "order_numbers",
    "order_positions",
]
