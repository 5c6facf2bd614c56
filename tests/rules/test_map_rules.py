"""Rules that a map may have and the standard map has not: docs/own_map.md says what they are."""

import itertools
import random

import numpy as np
import pytest
from reference.adjudicator import adjudicate_adjustments, adjudicate_retreats
from reference.movement import adjudicate_movement
from reference.orders import ReferenceMap, legal_orders
from support.games import nonempty, orderable
from support.maps import tribes

from diplomacy_engine import MAP_NAMES, Game, Map, UserError, VectorGame, load_map
from diplomacy_engine.constants import NONE


@pytest.fixture(scope="module")
def game_map() -> Map:
    return tribes()


def test_neutral_units_have_no_decisions_and_hold(game_map):
    games = VectorGame(game_map, 1, threads=1)
    decisions = games.decisions()
    stands = {games.map.province_index[code] for code in ("HIL", "DUN")}
    assert stands.isdisjoint(decisions.slot_province.tolist()) and decisions.count == 2
    orders = games.new_orders()
    for v in stands:
        hold = int(games.table.hold[games.state.unit_kind[0, v], games.state.unit_location[0, v]])
        orders[0, v] = hold + 1  # a move, which only who steps the kernels himself can give
    games.step(orders)
    assert (games.state.unit_power[0, list(stands)] == games.num_powers).all()
    game = Game(game_map)
    assert game.units["TRIBES"] == ["A HIL", "F DUN"] and game.legal_orders("A HIL") == []
    with pytest.raises(UserError, match="TRIBES"):
        game.submit("TRIBES", ["A HIL - MOU"])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["tribes", *MAP_NAMES])
def test_random_games_by_the_reference(name, seed):
    """Lists, movement, retreats and winters of whole games, from positions full of units."""
    builds = {"builds": "home" if seed % 3 == 2 else "any", "neutral_rebuilds": bool(seed % 2)}
    game_map = tribes(**builds) if name == "tribes" else load_map(name)
    reference, rng = ReferenceMap(game_map.facts), random.Random(seed)
    game = Game(game_map, max_years=6)
    while not game.is_over:
        state = game.to_state()
        listed = legal_orders(reference, state)
        for places in orderable(game).values():
            for place in places:
                assert sorted(game.legal_orders(place)) == listed[place]
        orders = {}
        for power, places in orderable(game).items():
            owed = abs(game.adjustments.get(power, len(places)))
            chosen = [rng.choice(game.legal_orders(place)) for place in places]
            orders[power] = rng.sample(chosen, owed)
            game.submit(power, orders[power])
        units, phase = state["units"], game.phase
        results = game.adjudicate()
        if phase.endswith("A"):
            found = adjudicate_adjustments(reference, units, state["centers"], orders)
        else:
            given = itertools.chain.from_iterable(orders.values())
            texts = {" ".join(text.split()[:2]): text for text in given}
            if phase.endswith("R"):
                found = adjudicate_retreats(units, state["retreats"], texts)
            else:
                moved = adjudicate_movement(reference, units, texts)
                found = moved.units
                for unit, words in moved.results.items():
                    gone = [] if moved.dislodged.get(unit, ["somewhere"]) else ["disband"]
                    assert results[unit] == words + gone, (unit, state)
        now = nonempty(game.units)
        if game_map.facts.get("neutral_rebuilds") and game.phase.startswith("S"):
            lost = set(now.pop("TRIBES", [])) - set(found.pop("TRIBES", []))
            assert lost <= {"A HIL", "F DUN"}
        assert now == nonempty(found), state
        if phase.startswith("F") and not game.phase.startswith("F"):  # centers change hands
            for power, owned in game.centers.items():
                before = set(state["centers"][power])
                stood = {unit[2:5] for unit in found.get(power, [])} & set(reference.centers)
                assert stood <= set(owned) <= before | stood
    assert (game.vector_game.state.center_owner != game.vector_game.num_powers).all()
    assert NONE in np.unique(game.vector_game.state.unit_power)
