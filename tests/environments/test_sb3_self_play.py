"""The example of self-play with Stable-Baselines3, if that is installed: a short run of it."""

import importlib.util
import runpy
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from diplomacy_engine import evaluate_player, load_player, make_bot
from examples import sb3_self_play


@pytest.mark.slow
def test_the_example_trains_promotes_and_plays(tmp_path, monkeypatch, capsys):
    """A few hundred steps: promotions at the steps said, a picture of them, a model that plays."""
    monkeypatch.setattr(sb3_self_play, "NUM_ENVS", 16)
    flags = "--steps 1024 --promote-by steps --promote-at 512 --games 4"
    monkeypatch.setattr(sys, "argv", ["example", *flags.split(), "--folder", str(tmp_path)])
    sb3_self_play.main()
    said = capsys.readouterr().out.splitlines()
    promoted = [int(line.split()[0].replace(",", "")) for line in said if "promotion " in line]
    assert promoted == [512, 1024] and "1,024 steps, 2 promotions" in said
    assert any(line.startswith("against dumbbot, 4 games won: all") for line in said)
    assert said[-1].startswith("among the population of small: rank ")
    assert all((tmp_path / f"copy_{n}.zip").is_file() for n in (1, 2))
    picture = ET.fromstring((tmp_path / "curve.svg").read_text())
    dashed = [part for part in picture if "stroke-dasharray" in part.attrib]
    assert [float(part.attrib["x1"]) for part in dashed] == [
        pytest.approx(60 + 720 * steps / 1024, abs=0.06) for steps in promoted
    ]
    name = f"examples.sb3_self_play:player:{tmp_path / 'model.zip'}"

    def centers():
        player = load_player(name)
        found = evaluate_player("small", player, make_bot("dumbbot"), 8, seed=1, max_years=4)
        return found.result()["overall"]["centers"]["value"]

    assert load_player(name).name == "examples.sb3_self_play:player:model.zip"
    assert centers() == centers()  # its draws come from the games' seeds


def test_games_begin_from_the_seed_that_sb3_tells_the_environments():
    def boards(seed):
        envs = sb3_self_play.NativeVecEnv("Diplomacy-small-v0", 4, opponents="random")
        envs.seed(seed)
        envs.reset()
        edges, seen = np.cumsum(envs.action_space.nvec)[:-1], []
        for _ in range(8):
            masks = np.split(np.stack(envs.env_method("action_masks")), edges, 1)
            seen.append(envs.step(np.stack([mask.argmax(1) for mask in masks], 1))[0]["board"])
        return np.stack(seen)

    assert np.array_equal(boards(3), boards(3)) and not np.array_equal(boards(3), boards(4))


def test_a_stage_counts_its_own_games():
    """Those that were begun against the opponents before do not count."""
    play = sb3_self_play.SelfPlay("win-rate", 0.5, 60, 3, None)
    play.locals = {"dones": [True, True], "infos": [{"win": True}, {"win": False}]}
    play.of_before = {0}
    play._on_step()
    play._on_step()
    assert (play.episodes, list(play.wins)) == (3, [False, True, False])


def test_without_the_packages(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install stable-baselines3 sb3-contrib"):
        runpy.run_path(sb3_self_play.__file__, run_name="__main__")
