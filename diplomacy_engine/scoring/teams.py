"""Rewards of teams: a team is treated as one power, and pays each of its powers what it earns.

With one node above all powers of a team this is the social tree of Song et al. 2019 (Arena, section
2.3.2) with two levels: members share everything, teams are rewarded against each other.
"""

from collections.abc import Callable

import numpy as np

from ..constants import NONE
from .rewards import RewardInput


def team_input(powers: RewardInput, team: np.ndarray) -> RewardInput:
    """Return what a step did to teams, in place of powers.

    A team has the centers of all its powers and lives while one of them does; the team of a solo's
    winner has won.

    Args:
        team: (E, P) integers from 0 on, the team of each power.

    Returns:
        With a column for each team instead of each power.
    """
    count = int(team.max(initial=0)) + 1
    belongs = team[:, :, None] == np.arange(count)  # (E, P, teams)
    alive = (powers.alive[:, :, None] & belongs).any(1)
    lost_one = (powers.eliminated[:, :, None] & belongs).any(1)
    game = np.arange(len(team))
    return powers._replace(
        winner=np.where(powers.winner == NONE, NONE, team[game, powers.winner]).astype(np.int8),
        centers=(powers.centers[:, :, None] * belongs).sum(1, dtype=np.int16),
        centers_before=(powers.centers_before[:, :, None] * belongs).sum(1, dtype=np.int16),
        alive=alive,
        eliminated=lost_one & ~alive,
    )


def pay_teams(
    reward: Callable[..., np.ndarray], powers: RewardInput, team: np.ndarray, *more: object
) -> np.ndarray:
    """Return what each power is paid, (E, P) float32, where teams are rewarded as if one power.

    Args:
        reward: of a RewardInput and of `more`.
        team: (E, P) integers from 0 on. Where each power is a team of its own, this is `reward`.
    """
    if (team == np.arange(team.shape[1])).all():
        return reward(powers, *more)
    return np.take_along_axis(reward(team_input(powers, team), *more), team, 1)
