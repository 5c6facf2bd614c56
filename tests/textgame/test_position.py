"""Positions: loaded from states and from lines, written back, and refused if impossible."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import entangled_orders, nonempty, play_randomly, random_units, standard
from support.maps import tribes
from support.tables import read_table

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


def test_load_what_is_given():
    """Other keys do not count, centers left out are nobody's, powers left out have nothing."""
    position = Game("standard").to_state()
    for key in set(position) - {"name", "units"}:
        del position[key]
    game = Game.from_state("standard", position | {"note": 3, "builds": "x", "influence": None})
    assert nonempty(game.centers) == {}
    game = standard("S1905M", {"FRANCE": ["A PAR"]}, centers={}, retreats={})
    assert nonempty(game.units) == {"FRANCE": ["A PAR"]}
    assert nonempty(game.centers) == {}
    crowd = [f"A {code}" for code in game.map.provinces if not code.startswith("S")]
    inland = [
        unit for unit in crowd if game.map.board.terrain[game.map.province_index[unit[2:]]] < 2
    ]
    assert standard(units={"FRANCE": inland}).units["FRANCE"] == inland
    assert standard(units={"France": ["a Paris", "fleet stp(sc)"]}).units["FRANCE"] == [
        "A PAR",
        "F STP/SC",
    ]


def test_what_is_owed_is_counted_anew():
    units = {"FRANCE": ["A PAR"], "ITALY": ["A ROM", "A VEN"]}
    game = standard("W1903A", units, centers={"FRANCE": ["BRE", "PAR", "SPA"], "ITALY": ["ROM"]})
    assert game.adjustments == {"FRANCE": 1, "ITALY": -1}, "only one home center is open"


def test_retreats_that_the_rules_forbid_are_not_offered():
    """Without the orders before, only occupied places are known to be forbidden."""
    game = standard(
        "S1901R",
        {"FRANCE": ["A MUN", "A BUR"]},
        retreats={"GERMANY": {"A MUN": ["BUR", "SIL"], "A BUR": ["RUH"]}},
    )
    assert game.dislodged == {"GERMANY": {"A BUR": ["RUH"], "A MUN": ["SIL"]}}
    assert Game.from_state("standard", game.to_state()).to_state() == game.to_state()


def test_a_retreat_to_where_a_convoyed_attacker_came_from():
    game = standard(units={"ENGLAND": ["A HOL", "A RUH", "F NTH"], "FRANCE": ["A BEL"]})
    orders = ["A HOL - BEL VIA", "F NTH C A HOL - BEL", "A RUH S A HOL - BEL"]
    game.submit("ENGLAND", orders)
    game.adjudicate()
    assert "HOL" in game.dislodged["FRANCE"]["A BEL"]
    assert Game.from_state("standard", game.to_state()).dislodged == game.dislodged


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


@pytest.mark.parametrize(
    ("units", "retreats"),
    read_table(__file__, "a_dislodged_unit_without_a_retreat_stays_until_adjudicated"),
)
def test_a_dislodged_unit_without_a_retreat_stays_until_adjudicated(units, retreats):
    game = standard("F1901R", units, retreats=retreats)
    assert game.phase == "F1901R"
    assert game.dislodged == {"GERMANY": {"A MUN": []}}
    assert game.to_state()["units"]["GERMANY"] == ["A BER", "*A MUN"]
    for place in ("A MUN", "*A MUN", "MUN"):
        assert game.legal_orders(place) == ["A MUN D"]
    assert game.adjudicate() == {"A MUN": ["disband"]}
    assert game.dislodged == {}
    assert nonempty(game.units) == {"FRANCE": ["A MUN"], "GERMANY": ["A BER"]}


BAD_STATES = read_table(__file__, "bad_states")


@pytest.mark.parametrize(("position", "sentence"), BAD_STATES)
def test_impossible_states(position, sentence):
    with pytest.raises(ValueError, match=r".") as caught:
        Game.from_state("standard", position)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("line", "sentence"), read_table(__file__, "impossible_position_lines"))
def test_impossible_position_lines(line, sentence):
    with pytest.raises(ValueError, match=r".") as caught:
        Game.from_position(line)
    assert sentence in str(caught.value)


def test_position_line():
    assert Game("small").to_position() == "small S1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS"
    line = "standard F1902R; FRANCE A MUN, F SPA/NC = MUN PAR; GERMANY *A MUN > BER BOH ="
    assert Game.from_position(line).to_position() == line
    assert Game.from_position(line, "standard").dislodged == {"GERMANY": {"A MUN": ["BER", "BOH"]}}
