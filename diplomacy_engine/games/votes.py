"""When bots vote for a draw."""

import numpy as np

from .vector_game import VectorGame


def bot_votes(games: VectorGame, draws_after: int) -> np.ndarray:
    """Return which powers vote for a draw as bots do, (E, P) bool: from the year `draws_after` on
    all but those near a victory, their own or, where teams win by centers, their team's."""
    centers, teams = games.centers(), games.map.teams
    near = centers >= near_victory(games.board.victory_centers)
    if teams.victory_centers:
        mates = (teams.of_power[:, None] == teams.of_power).astype(np.int16)
        near |= centers @ mates >= near_victory(teams.victory_centers)
    return ~near & (games.state.year >= draws_after)[:, None]


def near_victory(centers: int) -> int:
    """Five sixths of the centers that win: 15 for 18."""
    return int(centers) * 5 // 6
