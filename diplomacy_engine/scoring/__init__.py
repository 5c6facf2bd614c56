"""What a game is worth: rewards, and who won."""

from .mixes import RewardMix, make_reward_mix
from .outcomes import Outcomes, figure_values
from .rewards import REWARDS, RewardInput, make_reward, reward_input
from .teams import Level, alive_with_team, living_mate, pay_teams

__all__ = [
    "REWARDS",
    "Level",
    "Outcomes",
    "RewardInput",
    "RewardMix",
    "alive_with_team",
    "figure_values",
    "living_mate",
    "make_reward",
    "make_reward_mix",
    "pay_teams",
    "reward_input",
]
