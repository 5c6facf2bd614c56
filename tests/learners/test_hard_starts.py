"""Games that begin shortly before a power loses a home center."""

import numpy as np
import pytest
from support.training import refused, write_config

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.rules.state import in_movement
from diplomacy_learners import hard_starts


def test_a_home_center_is_lost_within_three_movement_phases():
    player, bot = load_player("three-pure-1"), load_player("dumbbot")
    games = VectorGame("three", 30, 5, 0, auto_reset=False)
    power = games.map.power_index["ENGLAND"]
    positions = hard_starts.positions_before_losses(player, bot, games, power)
    home = games.board.home_power[games.board.center_province] == power

    def holds_all():
        return (positions.state.center_owner[:, home] == power).all(1)

    assert holds_all().all() and in_movement(positions.state).all()
    assert len(set(positions.state.year.tolist())) > 1
    held = np.ones(positions.num_games, bool)
    for _ in range(3 * 3):
        decisions = positions.decisions()
        decider = 1 * (decisions.power != power)
        positions.step(ask_players(positions, decisions, [player, bot], decider))
        held &= holds_all()
    assert not held.any()


@pytest.mark.parametrize("powers", [["TURKEY"], ["ENGLAND", "NOBODY"]])
def test_powers_that_the_map_lacks_are_named(powers, tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", map="three", num_envs=4)
    flags = ["--runs-folder", str(tmp_path / "runs"), "--processes", "1"]
    argv = ["--config", config, "--anchor", "three-pure-1", "--hard-powers", *powers, *flags]
    refused(argv, "--hard-powers", powers[-1], capsys=capsys, script=hard_starts)
