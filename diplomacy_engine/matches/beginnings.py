"""Random beginnings: positions to start from that games reach by random orders.

Three parts of the project have them, and count their phases each in its own way:

    random_beginnings            0 to `most_phases` phases of every power; for each game of many at
                                 once, before anything else happens in them
    environments/agent_games.py  0 to `warm_up_phases` phases of every power, drawn from the game's
                                 own seed: games begin at any time, and a game must be the same
                                 whatever games are beside it
    selfplay/seating.py          1 to `warm_up_phases` phases of a single power, for a share of the
                                 seats; the others play as they would
"""

import numpy as np

from ..constants import RUNNING
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.asking import orders_of
from ..players.bots.random_bots import RandomBot


def random_beginnings(
    games: VectorGame, most_phases: int, seed: int = 0, opening_share: float = 0.0
) -> np.ndarray:
    """Start every game anew and play it 0..most_phases phases with random legal orders.

    Games that end on the way are started anew and stay in the opening.

    Args:
        games: E games; all are reset first.
        most_phases: the number of phases is drawn uniformly up to this, for each game.
        seed: of those numbers; the orders come from the games' own seeds.
        opening_share: probability that a game has none of these phases.

    Returns:
        (E,) int64, the phases asked for in each game.
    """
    if most_phases < 0:
        raise UserError(f"most_phases must be 0 or more, not {most_phases}")
    rng = np.random.default_rng(seed)
    phases = rng.integers(0, most_phases + 1, games.num_games)
    phases[rng.random(games.num_games) < opening_share] = 0
    games.reset()
    bot, rows = RandomBot(), np.arange(games.num_games)
    for played in range(most_phases):
        rows = rows[phases[rows] > played]
        if not len(rows):
            break
        ended = games.step(orders_of(games, bot, games.decisions(rows)), rows).ended != RUNNING
        if not games.auto_reset:
            games.reset(rows[ended])
        rows = rows[~ended]
    return phases
