"""Runs that begin with the policy of another."""

from pathlib import Path

import pytest
import torch
from support.training import differences, load, refused, train, write_config

from diplomacy_engine.learning import registry

CHANGES = {"total_timesteps": 200, "eval_games": 2}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return the folder of a run with a network of its own."""
    return train(tmp_path_factory.mktemp("first") / "runs", hidden=24, **CHANGES)


def test_the_weights_are_those_of_the_policy(first, tmp_path):
    before = load(first)["model"]
    flags = "--start-from", str(first), "--hidden", "24"
    run = train(tmp_path / "still", *flags, "--learning-rate", "0", **CHANGES)
    saved = load(run)
    assert differences(dict(saved["model"]), dict(before)) == []
    assert differences(dict(saved["run"]["pool"]["agents"][1]), dict(before)) == []
    assert saved["args"]["start_from"] == str(first)
    run = train(tmp_path / "moving", *flags, **CHANGES)
    assert differences(dict(load(run)["model"]), dict(before)) != []


def test_a_policy_may_have_other_settings_than_todays(first, tmp_path):
    """Those that have gone since do not matter, those that came since have their defaults."""
    saved = load(first)
    saved["args"] |= {"gone_since": 0.5}
    del saved["args"]["average"]
    torch.save(saved, tmp_path / "older.pt")
    assert registry.load_player(tmp_path / "older.pt").agent.vocabulary_hash
    flags = "--start-from", str(tmp_path / "older.pt"), "--hidden", "24"
    run = train(tmp_path / "on", *flags, "--learning-rate", "0", **CHANGES)
    assert differences(dict(load(run)["model"]), dict(saved["model"])) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("dumbbot", "--start-from needs a checkpoint, and 'dumbbot' is a bot"),
        ("nowhere.pt", "--start-from nowhere.pt: there is no such checkpoint"),
        ("{first}/nothing.pt", "no such checkpoint; did you mean the folder above, "),
        ("{first}/checkpoints", "has neither .*; did you mean the folder above, "),
        ("{config}", "--start-from: .*not a checkpoint of this project"),
        ("{damaged}", "damaged, or not a checkpoint"),
        (
            "runs/population/small/uniform-400108.npz",
            "a member of a population, which can only play",
        ),
        (
            "{first} --map three",
            "--start-from .* was trained on map 'small' or on another version of it",
        ),
        ("{first}", "has a different network: --hidden is 24 there and 16 here"),
        ("{first} --hidden 24 --num-layers 3", "--num-layers is 1 there and 3 here"),
        ("{foreign}", "does not fit|another order vocabulary"),
        ("{first} --resume {first}", "--start-from cannot be changed on resume"),
    ],
)
def test_wrong_use(flags, message, first, tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", hidden=16)
    foreign = tmp_path / "foreign.pt"
    saved = load(first)
    saved["model"]["score.weight"] = torch.zeros(1, 3)
    torch.save(saved, foreign)
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(Path("runs/population/small/uniform-400108.npz").read_bytes()[:5000])
    flags = flags.format(config=config, first=first, foreign=foreign, damaged=damaged).split()
    argv, runs = ["--start-from", *flags], tmp_path / "runs"
    if "--resume" not in argv:
        argv += ["--config", config, "--runs-folder", str(runs)]
    refused(argv, message, capsys)
    assert not runs.exists()
