"""Matches of teams: whole teams take turns, figures per team, help and attacks among allies."""

import numpy as np

from diplomacy_engine import Game, load_map
from diplomacy_engine.matches.order_counts import OrderCounter

THREE = load_map("three").with_teams("ENGLAND+ITALY", 8)


def test_help_and_attacks_among_allies():
    position = (
        "three F1901M; ENGLAND A LON, A BER = LON BER; ITALY A PRU, A MUN = ROM; RUSSIA A BOH = MOS"
    )
    game = Game.from_position(position, THREE)
    game.submit("ENGLAND", ["A BER S A MUN", "A LON - WAL"])  # for an ally; against nobody
    game.submit("ITALY", ["A PRU - BER", "A MUN S A PRU - BER"])
    games = game.vector_game
    orders = games.new_orders()
    for v, number in game.order_numbers().items():
        orders[0, v] = number
    counters, seats = [OrderCounter(number) for number in range(2)], np.array([[0, 0, 1]])
    for counter in counters:
        counter.look(games, games.decisions(), orders, seats)
    games.step(orders)
    for counter in counters:
        counter.note(games, seats, np.array([True]))
    # ITALY moves against ENGLAND's army, which stays; its support is for a unit of its own.
    kinds = ("helps", "helps_ally", "moves_beside_ally", "moves_against_ally")
    assert [counters[0].counts[kind] for kind in kinds] == [2, 1, 2, 1]
    shares = counters[0].shares()
    assert shares["ally_support"] == shares["ally_attack"] == 0.5
    assert "ally_support" not in counters[1].shares()  # RUSSIA has no ally
