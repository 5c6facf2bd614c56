"""When bots vote for a draw."""

import numpy as np

from .vector_game import VectorGame

NEAR_VICTORY = 5 / 6  # of the centers that win: 15 of 18


def bot_votes(games: VectorGame, draws_after: int) -> np.ndarray:
    """Return which powers of which games would vote for a draw as bots do, (E, P) bool.

    From the year `draws_after` on a bot votes for a draw in every phase, unless it is near a
    victory itself: with five sixths of the centers that win, its team's where teams win by centers.
    """
    centers, teams = games.centers(), games.map.teams
    near = centers >= NEAR_VICTORY * games.board.victory_centers
    if teams.victory_centers:
        mates = (teams.of_power[:, None] == teams.of_power).astype(np.int16)
        near |= centers @ mates >= NEAR_VICTORY * teams.victory_centers
    return ~near & (games.state.year >= draws_after)[:, None]
