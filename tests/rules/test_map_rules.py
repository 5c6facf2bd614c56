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
from support.tables import read_table

from diplomacy_engine import MAP_NAMES, Game, Map, UserError, VectorGame, load_map, vocabulary
from diplomacy_engine.constants import COASTS, NONE
from diplomacy_engine.rules.reading import read_order


@pytest.fixture(scope="module")
def game_map() -> Map:
    return tribes()


def at(game_map: Map, phase: str, centers: dict | None = None, **units: list[str]) -> Game:
    """Return a position; nobody owns a center unless said."""
    return Game.from_state(game_map, {"name": phase, "units": units, "centers": centers or {}})


def played(game: Game, **orders: list[str]) -> dict[str, list[str]]:
    """Give the orders, all of which must be legal, and return the results."""
    for power, texts in orders.items():
        game.submit(power, texts)
    return game.adjudicate()


# Builds


def test_builds_at_home_only_unless_said():
    game = at(tribes(builds="home"), "W1901A", {"EAST": ["CAP", "ISL"]}, EAST=[])
    assert game.to_state()["builds"]["EAST"] == {"count": 1, "homes": ["CAP"]}
    with pytest.raises(UserError, match="ISL is not a home center of EAST"):
        game.submit("EAST", ["F ISL B"])
    texts = vocabulary(game.map).texts
    assert {text for text in texts if text.endswith(" B")} == {
        "A CAP B",
        "F CAP B",
        "A ROC B",
        "F ROC B",
    }


# Neutral units


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


def test_a_dislodged_neutral_unit_is_off_the_board_at_once(game_map):
    """Though it could retreat; nobody else has a retreat phase for it."""
    game = at(game_map, "S1901M", EAST=["A CAP", "A MOU"], WEST=["A BAY"], TRIBES=["A HIL"])
    results = played(game, EAST=["A CAP - HIL", "A MOU S A CAP - HIL"])
    assert results["A HIL"] == ["dislodged", "disband"] and game.phase == "F1901M"
    assert nonempty(game.units) == {"EAST": ["A HIL", "A MOU"], "WEST": ["A BAY"]}


def test_neutral_units_win_nothing_and_keep_no_game_alive():
    """They are no power: not for a solo, not for the last one alive, in no score."""
    game_map = tribes(victory_supply_centers=2)
    units = {"EAST": ["A CAP"], "TRIBES": ["A HIL", "F DUN", "A BAY", "A ROC"]}
    game = at(game_map, "F1901M", {"EAST": ["CAP"]}, **units)
    game.adjudicate()
    assert not game.is_over and game.phase == "S1902M"
    outcomes = game.vector_game.outcomes()
    assert outcomes.centers.tolist() == [[1, 0]] and outcomes.alive.tolist() == [[True, False]]
    game = at(game_map, "F1901M", {"EAST": ["CAP", "ISL"]}, **units)
    game.adjudicate()
    assert game.winners == ["EAST"]
    assert set(game.figures()) == {"EAST", "WEST"}


@pytest.mark.parametrize("rebuilds", [False, True])
def test_lost_neutral_units_come_back_where_the_rules_say_so(rebuilds):
    """In the winter, be it skipped, and only in centers that nobody has taken."""
    game_map = tribes(neutral_rebuilds=rebuilds)
    game = at(
        game_map, "F1901M", {"EAST": ["CAP"], "WEST": ["DUN"]}, EAST=["A CAP"], WEST=["A ROC"]
    )
    game.adjudicate()  # F DUN and A HIL are lost, and DUN is taken
    assert game.phase == "W1901A" if game.adjustments else "S1902M"
    while not game.phase.endswith("M"):
        game.adjudicate()
    assert game.units["TRIBES"] == (["A HIL"] if rebuilds else [])


def test_a_position_with_neutral_units_is_kept(game_map):
    game = Game(game_map)
    played(game, EAST=["A CAP - MOU"])
    state = game.to_state()
    assert state["units"]["TRIBES"] == ["A HIL", "F DUN"]
    assert state["last_orders"]["TRIBES"] == ["F DUN H", "A HIL H"]
    again = Game.from_state(game_map, state)
    assert again.to_state() == state
    assert Game.from_position(game.to_position(), game_map).units == game.units
    saved = game.to_saved_game()
    assert Game.from_saved_game(saved, game_map).to_state() == state


def test_a_neutral_unit_is_seen_as_one_of_nobody(game_map):
    games = VectorGame(game_map, 1, threads=1)
    seen = games.observe(games.decisions())
    hills = game_map.province_index["HIL"]
    assert seen.board[:, hills, :2].tolist() == [[1, 0], [1, 0]]
    cape = game_map.province_index["CAP"]
    assert seen.board[:, cape, :2].tolist() == [[1, 1], [1, 2]]


# Coasts that convoy


def test_a_coast_that_convoys(game_map):
    """NOR and SOU do not touch: the fleet on the island is the middle of the convoy."""
    game = at(game_map, "S1901M", EAST=["A CAP", "F NOR", "F ISL"], WEST=["F SOU"])
    assert "A CAP - ROC VIA" in game.legal_orders("A CAP")
    assert "F ISL C A CAP - ROC" in game.legal_orders("F ISL")
    results = played(
        game,
        EAST=["A CAP - ROC", "F NOR C A CAP - ROC", "F ISL C A CAP - ROC"],
        WEST=["F SOU C A CAP - ROC"],
    )
    assert nonempty(results) == {} and "A ROC" in game.units["EAST"]


# Coasts of other names


def test_coasts_of_other_names_are_read_and_written(game_map):
    board = game_map.board
    numbers = {
        text: COASTS[board.location_coast[i]]
        for text, i in game_map.location_index.items()
        if "/" in text
    }
    assert numbers == {"MOU/NC": "NC", "MOU/RIVER": "EC"}  # the first that is free
    game = at(game_map, "S1901M", EAST=["F LAK", "F NOR"])
    assert game.legal_orders("F LAK") == ["F LAK H", "F LAK - MOU/RIVER", "F LAK S F NOR - MOU/NC"]
    for text in ("F LAK - MOU", "f lak-mou/river", "F LAK - Mouth (River)"):
        game.submit("EAST", [text])
        assert game.orders["EAST"] == ["F LAK - MOU/RIVER"]
    assert played(game) == {"F LAK": [], "F NOR": []}
    assert "F MOU/RIVER" in game.units["EAST"]
    for text in vocabulary(game_map).texts:
        assert read_order(game_map, text) is not None


@pytest.mark.parametrize(
    ("position", "order", "reason"), read_table(__file__, "orders_that_are_refused")
)
def test_orders_that_are_refused(game_map, position, order, reason):
    game = Game.from_position(f"tribes {position}", game_map)
    with pytest.raises(UserError, match=reason):
        game.submit("EAST", [order])


# All of it, beside the slow reference


@pytest.mark.parametrize("seed", range(12))
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
