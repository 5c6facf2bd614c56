"""Order numbers and positions in lists say the same; each slot is one of its decision."""

import numpy as np
import pytest

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.games.decisions import order_numbers, order_positions
from diplomacy_engine.players.asking import orders_of


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_positions_are_those_of_the_numbers(name):
    games, rng = VectorGame(name, 20, auto_reset=False), np.random.default_rng(1)
    kinds = set()
    for _ in range(12):
        decisions = games.decisions()
        chosen = rng.integers(0, np.diff(decisions.order_start))
        numbers = order_numbers(decisions, chosen)
        assert order_positions(decisions, numbers).tolist() == chosen.tolist()
        counts = enumerate(np.diff(decisions.slot_start).tolist())
        assert decisions.slot_decision.tolist() == [d for d, count in counts for _ in range(count)]
        kinds |= set(games.state.phase.tolist())
        games.step(orders_of(games, make_bot("dumbbot")))
    assert len(kinds) > 2
    decisions = VectorGame(name, 1).decisions()
    with pytest.raises(ValueError, match="not in the list of its slot"):
        order_positions(decisions, np.full(len(decisions.slot_province), -1, np.int32))
