"""Positions: loaded from states and from lines, written back, and refused if impossible."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import entangled_orders, play_randomly, random_units, standard
from support.maps import tribes

from diplomacy_engine import MAP_NAMES, Game, load_map


def without_orders(position: dict) -> dict:
    """Return a state without its last orders, which a position line leaves out."""
    return {key: value for key, value in position.items() if not key.startswith("last_")}


MAPS = st.sampled_from([*map(load_map, MAP_NAMES), tribes()])  # the last has neutral units


@given(seed=st.integers(0, 2**32), phases=st.integers(0, 60), game_map=MAPS)
@settings(max_examples=25)
def test_positions_round_trip(seed, phases, game_map):
    game, rng = Game(game_map), random.Random(seed)
    play_randomly(game, rng, phases)
    loaded = Game.from_state(game_map, game.to_state())
    line = Game.from_position(game.to_position(), game_map)
    saved = Game.from_saved_game(game.to_saved_game(), game_map)
    assert loaded.to_state() == saved.to_state() == game.to_state()
    for other in (loaded, line, game.copy()):
        assert without_orders(other.to_state()) == without_orders(game.to_state())
        assert other.to_position() == game.to_position()
        assert (other.phase, other.winners) == (game.phase, game.winners)
    if not game.is_over:
        twins = [game, loaded, line, game.copy()]
        for twin in twins:
            play_randomly(twin, random.Random(seed))
        assert all(twin.history[-1] == game.history[-1] for twin in twins)
        for twin in twins:
            assert without_orders(twin.to_state()) == without_orders(game.to_state())


def test_places_offered_for_retreat_are_those_of_the_rules():
    """Of all neighbors, the orders before leave the places that the game itself offers."""
    rng, compared, cut = random.Random(4), 0, 0
    for _ in range(60):
        game = standard("F1901M", random_units(load_map("standard"), rng, 7))
        for power, texts in entangled_orders(game, rng).items():
            game.submit(power, texts)
        game.adjudicate()
        if game.dislodged:
            state, board = game.to_state(), game.map.board
            for units in state["retreats"].values():
                for unit in units:
                    kind, here = "AF".index(unit[0]), game.map.location_index[unit[2:]]
                    near = board.neighbor[kind, here, : board.neighbor_count[kind, here]]
                    units[unit] = [game.map.locations[place] for place in near]
                    cut += len(near)
            assert Game.from_state("standard", state).dislodged == game.dislodged
            saved = game.to_saved_game()
            saved["phases"][-1]["state"] = {k: v for k, v in state.items() if "last_" not in k}
            assert Game.from_saved_game(saved).dislodged == game.dislodged
            compared += 1
    assert compared > 12 and cut > 30
