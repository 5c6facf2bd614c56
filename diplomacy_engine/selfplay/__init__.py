"""The learner's opponents, seats, transitions and league."""

from .league import League
from .opponent_pool import LEARNER, Member, OpponentPool
from .rollout_buffer import Batch, Experience, RolloutBuffer
from .seating import Seating, Seats

__all__ = [
    "LEARNER",
    "Batch",
    "Experience",
    "League",
    "Member",
    "OpponentPool",
    "RolloutBuffer",
    "Seating",
    "Seats",
]
