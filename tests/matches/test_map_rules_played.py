"""Everybody plays a map with neutral units, builds anywhere and a coast that convoys."""

import numpy as np
import pytest
from support.maps import TRIBES, tribes
from support.players import power_values
from support.tables import read_table

from diplomacy_engine import Game
from diplomacy_engine.commands import cli
from diplomacy_engine.players.bots.dumbbot_rules import DEEPDIP, NORMAN, PAQUETTE
from diplomacy_engine.players.policy.inputs import NUM_BOARD, NetworkInputs
from diplomacy_engine.textgame.saved_game import read_saved_games


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "tribes.toml"
    path.write_text(TRIBES)
    return str(path)


@pytest.mark.parametrize(("player", "flags"), read_table(__file__, "players"))
def test_players(player, flags, path, tmp_path, capsys):
    """What they order is legal, and their games are the same when played again by texts."""
    saved = tmp_path / "games.jsonl"
    argv = f"evaluate --map {path} --player {player} --against random --games 2 --max-years 2"
    assert cli.main([*argv.split(), "--save-games", str(saved), *flags.split()]) == 0
    capsys.readouterr()
    for found in read_saved_games(saved):
        game = Game(path, max_years=2)
        for phase in found["phases"][:-1]:
            assert game.to_state()["units"] == phase["state"]["units"]
            for power, orders in phase["orders"].items():
                game.submit(power, orders)
            game.adjudicate()
        assert game.is_over and game.centers == found["phases"][-1]["state"]["centers"]
    assert cli.main(["replay", str(saved), "--output", str(tmp_path / "game.html")]) == 0


def test_dumbbot_counts_a_neutral_unit_as_one_that_stays():
    """It competes for its own province and for no other, whoever its neighbors are."""
    game_map = tribes()
    game = Game.from_state(
        game_map, {"name": "S1901M", "units": {"EAST": ["A CAP"], "TRIBES": ["A HIL", "F DUN"]}}
    )
    power = game_map.power_index["EAST"]
    for rules in (NORMAN, PAQUETTE, DEEPDIP):
        _, values = power_values(game_map, game.vector_game.state, 0, power, rules)
        competing = {game_map.provinces[v] for v in np.flatnonzero(values.competition)}
        assert competing == {"HIL", "DUN"}


def test_a_network_is_told_of_a_neutral_unit_as_of_anothers():
    """Where an order's goal has a unit, it says whether that is one's own."""
    inputs, found = NetworkInputs(tribes()), {}
    for who in ("TRIBES", "WEST", "EAST", ""):
        units = (
            {"EAST": ["A CAP"], who: ["A HIL"]} if who != "EAST" else {"EAST": ["A CAP", "A HIL"]}
        )
        units.pop("", None)
        game = Game.from_state(tribes(), {"name": "S1901M", "units": units})
        games, decisions = game.vector_game, game.decisions()
        views = games.view_boards(decisions.game, decisions.power)
        place = inputs.orders(views, decisions).rows[:, 2 * NUM_BOARD - 2]
        (at,) = np.flatnonzero(decisions.order == games.vocabulary.number["A CAP - HIL"])
        found[who] = int(place[at]) // NUM_BOARD // 64  # nobody, oneself, another
    assert found == {"TRIBES": 2, "WEST": 2, "EAST": 1, "": 0}
