"""What a power sees, column by column."""

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine.constants import NONE
from diplomacy_engine.games import observation
from diplomacy_engine.games.observation import BOARD_FEATURES, NUM_SCALARS, POWER_SCALARS, SCALARS
from diplomacy_engine.textgame.game import Game


def test_columns_are_named_as_they_stand():
    for names in ([name for name, _ in BOARD_FEATURES], SCALARS, POWER_SCALARS):
        assert [getattr(observation, name.upper()) for name in names] == list(range(len(names)))


@pytest.mark.parametrize(
    ("position", "orders", "power", "expected"), read_table(__file__, "what_powers_see")
)
def test_what_a_power_sees(position, orders, power, expected):
    """What is not 0 of provinces, of the powers in the map's order, of the game; last orders."""
    game = Game.from_position(position, max_years=5)
    for name, texts in orders.items():
        game.submit(name, texts)
    if orders:
        game.adjudicate()
    games, viewer = game.vector_game, game.map.power_index[power]
    seen = games.observe_powers(np.zeros(1, np.int32), np.array([viewer], np.int8))
    names, last = [name for name, _ in BOARD_FEATURES], seen.last_order[0]
    found = {
        code: {name: n for name, n in zip(names, row) if n}
        for code, row in zip(game.map.provinces, seen.board[0].tolist())
    }
    row = seen.scalars[0]
    blocks = row[NUM_SCALARS:].reshape(len(POWER_SCALARS), -1)
    blocks = np.roll(blocks, viewer, axis=1)  # from the powers' order as seen to the map's
    found |= dict(zip(SCALARS, row.tolist())) | dict(zip(POWER_SCALARS, blocks.tolist()))
    found["last_order"] = [games.vocabulary.texts[n] for n in last if n != NONE]
    assert found == expected
