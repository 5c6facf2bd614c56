"""What a power sees, column by column."""

import numpy as np
from support.tables import read_table

from diplomacy_engine.constants import BOUNCE, DISLODGED, NONE, Phase
from diplomacy_engine.games import observation
from diplomacy_engine.games.observation import (
    BOARD_FEATURES,
    CENTERS,
    NUM_SCALARS,
    OWED,
    POWER_SCALARS,
    SCALARS,
    UNITS,
)
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.textgame.game import Game
from diplomacy_engine.textgame.position import load_state


def test_columns_are_named_as_they_stand():
    for names in ([name for name, _ in BOARD_FEATURES], SCALARS, POWER_SCALARS):
        assert [getattr(observation, name.upper()) for name in names] == list(range(len(names)))


def test_a_position_by_hand():
    """France has just dislodged a German army from Munich; another one of Germany's bounced."""
    games = VectorGame("standard", 1, max_years=5, threads=1)
    position = "standard F1902M; FRANCE A BUR, A RUH, F SPA/SC = PAR SPA; "
    position += "GERMANY A MUN, A BER = BER MUN; RUSSIA A SIL = WAR"
    load_state(games, Game.from_position(position).to_state())
    provinces, powers = games.map.province_index, games.map.power_index
    orders = games.new_orders()
    given = ("A BUR - MUN", "A RUH S A BUR - MUN", "A BER - SIL")
    for text in given:
        orders[0, provinces[text[2:5]]] = games.vocabulary.number[text]
    games.step(orders)
    viewers = np.array([powers["FRANCE"], powers["GERMANY"]], np.int8)
    seen = games.observe_powers(np.zeros(2, np.int32), viewers)

    def features(viewer: int, province: str) -> dict[str, int]:
        row = seen.board[viewer, provinces[province]]
        columns = {name: getattr(observation, name.upper()) for name, _ in BOARD_FEATURES}
        found = {name: int(row[column]) for name, column in columns.items() if row[column]}
        words = {DISLODGED: "dislodged", BOUNCE: "bounce"}
        if "last_result" in found:
            found["last_result"] = words[found["last_result"]]
        return found

    for viewer, power in enumerate(["FRANCE", "GERMANY"]):
        for whose, province, expected in read_table(__file__, "features_of_provinces"):
            if whose == power:
                assert features(viewer, province) == expected, province
    berlin = features(1, "BER")
    assert (berlin["unit_owner"], berlin["last_owner"], berlin["last_result"]) == (1, 1, "bounce")
    assert features(0, "BRE")["home_of"] == 1
    for text in given:
        number = games.vocabulary.number[text]
        assert (seen.last_order[:, provinces[text[2:5]]] == number).all()
    assert (seen.last_order[:, provinces["NTH"]] == NONE).all()

    for viewer, power in enumerate(viewers):
        row = seen.scalars[viewer]
        expected = {"phase": Phase.FALL_RETREATS, "years_played": 1, "years_left": 3}
        expected |= {"power": power}
        assert {name: row[getattr(observation, name.upper())] for name in SCALARS} == expected
        blocks = row[NUM_SCALARS:].reshape(len(POWER_SCALARS), games.num_powers)
        absolute = np.roll(blocks, power, axis=1)  # from the powers' order as seen to the map's
        names = games.map.powers
        centers = {name: int(n) for name, n in zip(names, absolute[CENTERS]) if n}
        assert centers == {"FRANCE": 2, "GERMANY": 2, "RUSSIA": 1}
        units = {name: int(n) for name, n in zip(names, absolute[UNITS]) if n}
        assert units == {"FRANCE": 3, "GERMANY": 2, "RUSSIA": 1}
        assert not absolute[OWED].any()

    load_state(games, {"name": "W1902A", "units": {"ITALY": ["A ROM", "A VEN"]}, "centers": {}})
    row = games.observe_powers(np.zeros(1, np.int32), np.array([powers["ITALY"]])).scalars[0]
    assert row[NUM_SCALARS + OWED * games.num_powers] == -2
