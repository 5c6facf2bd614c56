"""What only who steps games by numbers can order: more than is owed, or what is not legal.

The rules themselves are in test_datc.py and, beside a slow reference, in test_second_opinion.py.
"""

import pytest
from support.games import nonempty
from support.tables import read_table

from diplomacy_engine.textgame.game import Game

# name: map and phase, position, orders by place, units afterwards
CASES = {name: case for name, *case in read_table(__file__, "adjudicator_cases")}


@pytest.mark.parametrize("name", CASES)
def test_orders_by_number(name):
    begin, position, orders, after = CASES[name]
    map_name, phase = begin.split()
    games = Game.from_state(map_name, {"name": phase} | position).vector_game
    numbers = games.new_orders()
    for place, text in orders.items():
        numbers[0, games.map.province_index[place]] = games.vocabulary.number[text]
    games.step(numbers)
    game = Game.from_row(games, 0)
    assert nonempty(game.units) == after
    if phase.endswith("M"):
        last = {"FRANCE": ["F BRE H", "A MAR H", "A PAR H", "F STP/SC H"]}
        assert nonempty(game.to_state()["last_orders"]) == last
        assert not game.to_state()["last_results"]
