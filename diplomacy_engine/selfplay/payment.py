"""What the learners' streams are paid after a phase, and when they end.

A stream ends with its power's team. A member that is out gives no more orders, but what becomes of
its team is still credited to its last decision; otherwise no sacrifice could be learned.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..constants import RUNNING, YEAR_LIMIT
from ..errors import UserError
from ..games.vector_game import StepResult
from ..scoring.rewards import reward_input
from ..training.parallel import TrainingError
from .seating import Seating

# Of a learner's policy, games and powers, (n,) each: the value of the current positions.
Values = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


def pay_learners(
    seating: Seating, result: StepResult, progress: float, truncates: bool, values: Values
) -> None:
    """Pay the learners' streams, and close those whose team's game is over.

    Args:
        seating: who plays what.
        result: of the step, before games start anew.
        progress: share of the training done, 0..1, by which a reward mix may anneal.
        truncates: whether games at the year limit are cut off, not drawn.
        values: for the streams of games that are cut off.

    Raises:
        TrainingError: a reward of the user's own cannot be paid.
    """
    seats, board = seating.seats, seating.games.board
    found = reward_input(result, board.victory_centers, not truncates)
    lives = seating.alive_sides(result.alive)
    for learner in seating.pool.learners:
        row, power = seats.of_learner(learner.number)
        stream, buffer = seats.stream[row, power], learner.buffer
        paid = {}
        for name, reward in learner.reward.parts.items():
            paid[name] = np.zeros(buffer.num_streams, np.float32)
            try:
                paid[name][stream] = reward(found)[row, power]
            except UserError as error:
                raise TrainingError(str(error)) from error
        buffer.reward(learner.reward.weigh(paid, progress), paid)
        goes_on = lives[row, power]
        buffer.finish(stream[~goes_on])
        # Who was out before has nothing open; with him a batch is as it was without teams.
        over = (result.ended != RUNNING)[row] & ~(result.eliminated[row, power] & ~goes_on)
        if truncates:
            cut = over & (result.ended == YEAR_LIMIT)[row]
            who = _living(result.alive, board.team, row[cut], power[cut])
            buffer.finish(stream[cut], values(learner.player, row[cut], who))
            over &= ~cut
        buffer.finish(stream[over])


def close_streams(seating: Seating, values: Values) -> None:
    """Close what is open at the end of training with the value of the current positions."""
    alive, team = seating.games.outcomes().alive, seating.games.board.team
    for learner in seating.pool.learners:
        row, power = seating.seats.of_learner(learner.number)
        stream = seating.seats.stream[row, power]
        is_open = learner.buffer.open[stream]
        row, power, stream = row[is_open], power[is_open], stream[is_open]
        found = values(learner.player, row, _living(alive, team, row, power))
        learner.buffer.finish(stream, found, game_over=False)


def _living(alive: np.ndarray, team: np.ndarray, row: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Return the powers (n,), or for those that are out a living one of their team.

    What a position is worth to a power that will never order again, a policy has not learned.
    """
    mates = alive[row] & (team == team[power][:, None])
    return np.where(alive[row, power] | ~mates.any(1), power, mates.argmax(1))
