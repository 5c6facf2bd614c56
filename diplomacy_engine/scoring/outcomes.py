"""Who won, drew or lost a finished game, and the figures that are reported of it.

Of one power in one game, rates are 0 or 1:

    solo            it reached the victory count, ahead of everyone else
    win             solo, or at the year limit more centers than any other power
    draw            nobody solos
    survival        it has a unit or a center at the end
    elimination     it has none
    loss            another power solos; solo + draw + loss = 1
    most_centers    no power has more centers at the end (ties included)

and means:

    centers         at the end
    rank            by centers at the end, 1 = best, ties averaged
    sum_of_squares  1 for a solo, 0 if another power solos, else its squared centers over the sum
                    of all powers' squares
    deepdip_reward  the reward `deepdip` of rewards.py; with the year limit `truncate` a game cut
                    there pays none
    game_years      years played, the last one included
"""

from typing import NamedTuple

import numpy as np

from ..constants import SOLO
from .rewards import RewardInput, make_reward, ranks, reward_input

RATES = ("solo", "win", "draw", "survival", "elimination", "loss", "most_centers")
MEANS = ("centers", "rank", "sum_of_squares", "deepdip_reward", "game_years")
FIGURES = RATES + MEANS
YEAR_LIMITS = ("draw", "truncate")


class Outcomes(NamedTuple):
    """How finished games ended."""

    ended: np.ndarray  # (E,) int8, End
    winner: np.ndarray  # (E,) int8, power that won a solo, or NONE
    centers: np.ndarray  # (E, P) int16
    alive: np.ndarray  # (E, P) bool, has a unit or a center
    years: np.ndarray  # (E,) int16, game years played


def figure_values(
    outcomes: Outcomes, victory_centers: int, year_limit: str = "draw"
) -> dict[str, np.ndarray]:
    """Return FIGURES of every power of every game, (E, P) float64 each."""
    centers, alive = outcomes.centers, outcomes.alive
    powers = alive.shape[1]
    someone = np.broadcast_to((outcomes.ended == SOLO)[:, None], alive.shape)
    solo = someone & (np.arange(powers) == outcomes.winner[:, None])
    most = centers == centers.max(1, keepdims=True)
    alone = most & (most.sum(1, keepdims=True) == 1)
    squares = centers.astype(np.float64) ** 2
    share = squares / np.maximum(squares.sum(1, keepdims=True), 1)
    # The end of every power, whenever it came, as if it all were this step's.
    ends = RewardInput(
        outcomes.ended,
        outcomes.winner,
        np.ones(len(alive), bool),
        centers,
        centers,
        alive,
        ~alive,
        victory_centers,
    )
    paid = make_reward("deepdip")(
        reward_input(ends, victory_centers, pay_year_limit=year_limit != "truncate")
    )
    values = {
        "solo": solo,
        "win": solo | (alone & ~someone),
        "draw": ~someone,
        "survival": alive,
        "elimination": ~alive,
        "loss": someone & ~solo,
        "most_centers": most,
        "centers": centers,
        "rank": ranks(centers),
        "sum_of_squares": np.where(someone, solo, share),
        "deepdip_reward": paid,
        "game_years": np.broadcast_to(outcomes.years[:, None], alive.shape),
    }
    return {name: values[name].astype(np.float64) for name in FIGURES}
