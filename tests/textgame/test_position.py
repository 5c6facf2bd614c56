"""Positions: loaded from states and from lines, written back, and refused if impossible."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import (
    entangled_orders,
    nonempty,
    play_randomly,
    random_units,
    standard,
    state,
)

from diplomacy_engine.rules.map import MAP_NAMES, load_map
from diplomacy_engine.textgame.game import Game


def without_orders(position: dict) -> dict:
    """Return a state without its last orders, which a position line leaves out."""
    return {key: value for key, value in position.items() if not key.startswith("last_")}


@given(seed=st.integers(0, 2**32), phases=st.integers(0, 60), name=st.sampled_from(MAP_NAMES))
@settings(deadline=None, max_examples=25)
def test_positions_round_trip(seed, phases, name):
    game, rng = Game(name), random.Random(seed)
    play_randomly(game, rng, phases)
    loaded = Game.from_state(name, game.to_state())
    line = Game.from_position(game.to_position())
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
    [
        ({"FRANCE": ["A MUN"], "GERMANY": ["*A MUN", "A BER"]}, {}),
        ({"FRANCE": ["A MUN"], "GERMANY": ["*A MUN", "A BER"]}, None),
        ({"FRANCE": ["A MUN"], "GERMANY": ["*A MUN", "A BER"]}, {"GERMANY": {"A MUN": []}}),
        ({"FRANCE": ["A MUN"], "GERMANY": ["A BER"]}, {"GERMANY": {"A MUN": []}}),
    ],
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


BAD_STATES = [
    ({}, "name: "),
    ({"name": "S1901M"}, "units: "),
    (state(centres={}, center={}), "an unknown key 'centres'; did you mean 'centers'"),
    (state("Spring 1901"), "is not a phase"),
    (state("S0M"), "is not 1 to 9999"),
    (state("S99999M"), "is not 1 to 9999"),
    (state(units={"GAUL": ["A PAR"]}), "'GAUL' is not a power of map standard"),
    (state(units={"FRANCE": "A PAR"}), "units[...]: "),
    (state(units={"FRANCE": ["PAR"]}), "'PAR' is not a unit: it begins with A or F"),
    (state(units={"FRANCE": ["A ENG"]}), "an army cannot stand at ENG"),
    (state(units={"FRANCE": ["F PAR"]}), "a fleet cannot stand at PAR"),
    (state(units={"FRANCE": ["F SPA"]}), "a fleet cannot stand at SPA"),
    (state(units={"FRANCE": ["F BRE/NC"]}), "a fleet cannot stand at BRE/NC"),
    (state(units={"FRANCE": ["A SPA/NC"]}), "an army cannot stand at SPA/NC"),
    (state(units={"FRANCE": ["A PAR", "A PAR"]}), "A PAR and A PAR are in one province"),
    (state(units={"FRANCE": ["F SPA/NC"], "ITALY": ["A SPA"]}), "are in one province"),
    (state(units={"FRANCE": ["*A PAR"]}), "S1901M is not a retreat phase, but a unit is dislodged"),
    (state(retreats={"FRANCE": {"A PAR": []}}), "is not a retreat phase"),
    (state("S1901R", retreats={"FRANCE": {"A PAR": "BUR"}}), "retreats[...][...]: "),
    (state("S1901R", retreats={"FRANCE": {"A PAR": ["MUN"]}}), "cannot retreat to 'MUN'"),
    (state("S1901R", retreats={"FRANCE": {"A PAR": ["A BUR"]}}), "cannot retreat to 'A BUR'"),
    (state("S1901R", retreats={"FRANCE": {"F MAO": ["SPA"]}}), "name the coast"),
    (state("S1901R", retreats={"FRANCE": {"F GAS": ["SPA/SC"]}}), "cannot retreat"),
    (
        state("S1901R", {"FRANCE": ["A PAR"]}, retreats={"FRANCE": {"A PAR": []}}),
        "A PAR is dislodged by its own power",
    ),
    (state("S1901R", {"FRANCE": ["*A PAR", "*A PAR"]}), "appears twice"),
    (
        state("S1901R", retreats={"FRANCE": {"A PAR": []}, "ITALY": {"A PAR": []}}),
        "are in one province",
    ),
    (state(centers={"FRANCE": "PAR"}), "centers[...]: "),
    (state(centers={"FRANCE": ["BUR"]}), "'BUR' is not a supply center"),
    (state(centers={"FRANCE": ["PAR"], "ITALY": ["PAR"]}), "belongs to both FRANCE and ITALY"),
]


@pytest.mark.parametrize(("position", "sentence"), BAD_STATES)
def test_impossible_states(position, sentence):
    with pytest.raises(ValueError, match=r".") as caught:
        Game.from_state("standard", position)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "a position begins with a map and a phase"),
        ("nowhere S1901M", "there is no map of that name"),
        ("small S1901", "is not a phase"),
        ("small S1901M; ENGLAND", "is not of the form"),
        ("small S1901M; ENGLAND A LON", "is not of the form"),
        ("small S1901M; ENGLAND A LON = LON; ENGLAND = PAR", "once for each power"),
        ("small S1901M; ENGLAND A LON, A LON = ", "are in one province"),
        ("small S1901M; FRANCE = LON", "is not a power of map small"),
    ],
)
def test_impossible_position_lines(line, sentence):
    with pytest.raises(ValueError, match=r".") as caught:
        Game.from_position(line)
    assert sentence in str(caught.value)


def test_position_line():
    assert Game("small").to_position() == "small S1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS"
    line = "standard F1902R; FRANCE A MUN, F SPA/NC = MUN PAR; GERMANY *A MUN > BER BOH ="
    assert Game.from_position(line).to_position() == line
    assert Game.from_position(line, "standard").dislodged == {"GERMANY": {"A MUN": ["BER", "BOH"]}}
