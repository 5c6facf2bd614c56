"""Who won, drew or lost a finished game, and the figures that are reported of it.

Of one power in one game, rates are 0 or 1:

    solo            it reached the victory count, ahead of everyone else
    win             solo, or alive at the year limit with more centers than any other power
    draw            nobody solos, at the year limit or by agreement (a team's victory without a solo
                    is a draw of its powers)
    survival        it has a unit or a center at the end
    elimination     it has none
    loss            another power solos; solo + draw + loss = 1
    most_centers    no power has more centers at the end (ties included)

and means:

    centers         at the end
    centers_behind  centers less than the power that has the most at the end, so 0 for that power:
                    who has won, where somebody has. The mean over all games; over those that it has
                    not led, it is centers_behind / (1 - most_centers)
    rank            a solo first, then by centers at the end, 1 = best, ties averaged
    sum_of_squares  1 for a solo, 0 if another power solos, else its squared centers over the sum
                    of all powers' squares
    deepdip_reward  the reward `deepdip` of rewards.py; with the year limit `truncate` a game cut
                    there pays none
    game_years      years played, the last one included

Who has conceded counts as eliminated: it has no centers then, and no part in a draw.
`Outcomes.of_teams` treats teams as powers, so that all figures are of teams as well: they have the
centers of their powers, live while one does, and have a solo when a power has or they have won as a
team.
"""

from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Bools, Int8s, Int16s
from ..constants import AGREED, NONE, RUNNING, SOLO, TEAM, YEAR_LIMIT
from .rewards import RewardInput, deepdip, lead, mean_ranks, reward_input, squared_shares

RATES = ("solo", "win", "draw", "survival", "elimination", "loss", "most_centers")
MEANS = ("centers", "centers_behind", "rank", "sum_of_squares", "deepdip_reward", "game_years")
FIGURES = RATES + MEANS


def figure_ranges(
    powers: int, centers: int, victory_centers: int, max_years: int | None
) -> dict[str, tuple[float, float]]:
    """The least and the greatest value that each of MEANS can have."""
    return {
        "centers": (0, centers),
        "centers_behind": (0, centers),
        "rank": (1, powers),
        "sum_of_squares": (0, 1),
        "deepdip_reward": (-victory_centers, centers + victory_centers),
        "game_years": (1, max_years or np.inf),
    }


class Outcomes(NamedTuple):
    """The standing of games, finished or not: winners, draws, losses and survivors.

    The engine decides when a game ends; a power that has conceded is not alive here, without
    centers.
    """

    ended: Annotated[Int8s, "E"]  # End
    winner: Annotated[Int8s, "E"]  # power that won a solo, or NONE; of a TEAM's, one of its powers
    centers: Annotated[Int16s, "E, P"]
    alive: Annotated[Bools, "E, P"]  # has a unit or a center
    years: Annotated[Int16s, "E"]  # game years played

    def of_teams(self, team: np.ndarray) -> "Outcomes":
        """The same with a column for each team instead of each power; `team` is (P,), from 0 on."""
        belongs = team[:, None] == np.arange(int(team.max()) + 1)  # (P, teams)
        return self._replace(
            ended=np.where(self.ended == TEAM, SOLO, self.ended).astype(np.int8),
            winner=np.where(self.winner == NONE, NONE, team[self.winner]).astype(np.int8),
            centers=(self.centers[:, :, None] * belongs).sum(1, dtype=np.int16),
            alive=(self.alive[:, :, None] & belongs).any(1),
        )

    def solo(self) -> np.ndarray:
        """(E, P) bool."""
        powers = np.arange(self.alive.shape[1])
        return (self.ended == SOLO)[:, None] & (powers == self.winner[:, None])

    def win(self) -> np.ndarray:
        """(E, P) bool."""
        at_limit = (self.ended == YEAR_LIMIT)[:, None]
        return self.solo() | (at_limit & (lead(self.centers) > 0) & self.alive)

    def winners(self, team: np.ndarray) -> np.ndarray:
        """(E, P) bool, the winner and its team, or at a draw all that are alive; nobody until then.
        `team` is (P,), of each power its own where there are no teams."""
        won = (self.winner != NONE)[:, None]
        over = (self.ended != RUNNING)[:, None]
        return np.where(won, team[self.winner][:, None] == team, over & self.alive)

    def draw(self) -> np.ndarray:
        """(E,) bool."""
        return (self.ended == YEAR_LIMIT) | (self.ended == TEAM) | (self.ended == AGREED)

    def loss(self) -> np.ndarray:
        """(E, P) bool."""
        return (self.ended == SOLO)[:, None] & ~self.solo()


def figure_values(
    outcomes: Outcomes, victory_centers: int, year_limit: str = "draw"
) -> dict[str, np.ndarray]:
    """Return FIGURES of every power of every finished game, (E, P) float64 each."""
    ended, winner, centers, alive, years = outcomes
    solo, loss = outcomes.solo(), outcomes.loss()
    draw = np.broadcast_to(outcomes.draw()[:, None], alive.shape)
    behind = centers.max(1, keepdims=True) - centers
    # The end of every power, whenever it came, as if it all were this step's.
    captured = np.ones(len(alive), bool)
    ends = RewardInput(ended, winner, captured, centers, centers, alive, ~alive, victory_centers)
    paid = deepdip(reward_input(ends, victory_centers, year_limit != "truncate"))
    values = {
        "solo": solo,
        "win": outcomes.win(),
        "draw": draw,
        "survival": alive,
        "elimination": ~alive,
        "loss": loss,
        "most_centers": behind == 0,
        "centers": centers,
        "centers_behind": behind,
        "rank": mean_ranks(np.where(solo, np.iinfo(np.int16).max, centers)),
        "sum_of_squares": np.where(draw, squared_shares(np.where(alive, centers, 0)), solo),
        "deepdip_reward": paid,
        "game_years": np.broadcast_to(years[:, None], alive.shape),
    }
    return {name: values[name].astype(np.float64) for name in FIGURES}
