"""What only who steps games by numbers can order: more than is owed, or what is not legal.

The rules themselves are in test_datc.py and, beside a slow reference, in test_second_opinion.py.
"""

import pytest
from support.games import nonempty

from diplomacy_engine.textgame.game import Game

# name: map and phase, position, orders by place, units afterwards
CASES = {
    "orders that are not of the unit are holds": (
        "standard S1901M",
        {"units": {"FRANCE": ["A MAR", "A PAR", "F BRE", "F STP/SC"]}},
        {"PAR": "A MAR - BUR", "BRE": "A BRE - GAS", "STP": "F STP/NC - BAR", "MAR": "A MAR D"},
        {"FRANCE": ["A MAR", "A PAR", "F BRE", "F STP/SC"]},
    ),
    "two retreats to one place are gone, and so is one to where it may not go": (
        "small S1901R",
        {
            "units": {"RUSSIA": ["A PAR"]},
            "retreats": {
                "ENGLAND": {"A PAR": ["ROM", "SPA"], "A ANK": ["BUL"]},
                "RUSSIA": {"A MUN": ["ROM", "BER"], "A LON": ["WAL"]},
            },
        },
        {"PAR": "A PAR R ROM", "MUN": "A MUN R ROM", "LON": "A LON R WAL", "ANK": "A ANK R GRE"},
        {"RUSSIA": ["A PAR", "A WAL"]},
    ),
    "too many builds: the first provinces count": (
        "standard W1901A",
        {"units": {"FRANCE": ["A GAS"]}, "centers": {"FRANCE": ["PAR", "BRE"]}},
        {"PAR": "A PAR B", "BRE": "F BRE B"},
        {"FRANCE": ["A GAS", "F BRE"]},
    ),
    "no build in an occupied, a lost or a foreign home": (
        "standard W1901A",
        {
            "units": {"FRANCE": ["A PAR"], "GERMANY": ["A SIL"]},
            "centers": {"FRANCE": ["PAR", "MAR", "SPA", "POR"], "GERMANY": ["BRE", "BER"]},
        },
        {"PAR": "A PAR B", "BRE": "A BRE B", "MAR": "F MAR B"},
        {"FRANCE": ["A PAR", "F MAR"], "GERMANY": ["A SIL"]},
    ),
    "too many removals: the first provinces count": (
        "standard W1901A",
        {"units": {"FRANCE": ["A PAR", "A PIC", "F ENG"]}, "centers": {"FRANCE": ["PAR", "BRE"]}},
        {"PAR": "A PAR D", "ENG": "F ENG D", "PIC": "A PIC D"},
        {"FRANCE": ["A PAR", "A PIC"]},
    ),
    "a removal without need is none": (
        "standard W1901A",
        {"units": {"FRANCE": ["A PIC"]}, "centers": {"FRANCE": ["PAR", "BRE"]}},
        {"PIC": "A PIC D"},
        {"FRANCE": ["A PIC"]},
    ),
    "Gulf of Lyon comes before Tyrrhenian Sea, whatever their codes": (
        "standard W1901A",
        {"units": {"ITALY": ["F LYO", "F ION", "F HEL"]}, "centers": {"ITALY": ["TUN", "SPA"]}},
        {},
        {"ITALY": ["F ION", "F LYO"]},
    ),
    "orders come first, disorder does the rest": (
        "standard W1901A",
        {"units": {"RUSSIA": ["A MOS", "A GAS", "F BAR"]}, "centers": {"RUSSIA": ["MOS"]}},
        {"MOS": "A MOS D"},
        {"RUSSIA": ["F BAR"]},
    ),
}


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
