"""Start positions from random play."""

import numpy as np

from ..constants import RUNNING
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.bots.random_bots import RandomBot


def warm_up(games: VectorGame, most_phases: int, seed: int = 0) -> np.ndarray:
    """Start every game anew and play it 0..most_phases phases with random legal orders.

    Games that end on the way are started anew and stay in the opening.

    Args:
        games: E games; all are reset first.
        most_phases: the number of phases is drawn uniformly up to this, for each game.
        seed: of those numbers; the orders come from the games' own seeds.

    Returns:
        (E,) int64, the phases asked for in each game.
    """
    if most_phases < 0:
        raise UserError(f"most_phases must be 0 or more, not {most_phases}")
    phases = np.random.default_rng(seed).integers(0, most_phases + 1, games.num_games)
    games.reset()
    kept = games.snapshot()
    running = games.state.end == RUNNING
    bot = RandomBot()
    for played in range(1, most_phases + 1):
        orders = games.new_orders()
        bot.act(games, games.decisions(), orders)
        running &= games.step(orders).ended == RUNNING
        rows = np.flatnonzero(running & (phases == played))
        for name, array in games.state._asdict().items():
            kept[name][rows] = array[rows]
    games.restore(kept)
    return phases
