"""Start positions from random play."""

import numpy as np
import pytest

from diplomacy_engine.constants import RUNNING
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.matches.forks import random_beginnings


@pytest.mark.parametrize("name", ["small", "standard"])
def test_games_are_as_far_as_asked(name):
    games = VectorGame(name, 64, seed=3, threads=1)
    phases = random_beginnings(games, 9, seed=4)
    assert set(phases) == set(range(10))
    assert (games.state.end == RUNNING).all()
    # A game that ended on the way is back in the opening; every other one is as far as asked.
    turn = games.state.turn
    assert ((turn == phases) | (turn == 0)).all()
    assert (turn == phases).mean() > 0.8
    assert len({row.tobytes() for row in games.state.unit_power}) > 10


def test_the_same_seeds_give_the_same_positions_whatever_the_threads():
    positions = []
    for threads in (1, 2):
        games = VectorGame("small", 64, seed=3, threads=threads, auto_reset=False)
        random_beginnings(games, 6, seed=4)
        positions.append(games.snapshot())
    for name, array in positions[0].items():
        np.testing.assert_array_equal(array, positions[1][name])


def test_a_share_of_the_games_begins_in_the_opening():
    games = VectorGame("small", 400, seed=3, threads=1)
    turns = random_beginnings(games, 9, seed=4)
    some = random_beginnings(games, 9, seed=4, opening_share=0.5)
    opening = some == 0
    assert 170 < opening.sum() < 270 and (some == turns)[~opening].all()
    assert (games.state.turn[opening] == 0).all() and (games.state.turn[~opening] > 0).mean() > 0.8


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="most_phases"):
        random_beginnings(VectorGame("small", 2), -1)
