"""What a game is worth: rewards, and who won."""

from .outcomes import Outcomes, figure_values
from .rewards import REWARDS, RewardInput, make_reward, make_reward_mix, reward_input
from .teams import pay_teams

__all__ = [
    "REWARDS",
    "Outcomes",
    "RewardInput",
    "figure_values",
    "make_reward",
    "make_reward_mix",
    "pay_teams",
    "reward_input",
]
