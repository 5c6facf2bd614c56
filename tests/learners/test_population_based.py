"""Population-based training: members that pause, meet and take over from each other."""

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.populations import write_population
from support.tables import read_table
from support.training import REPOSITORY, command, load, metrics, write_config
from support.training import train as train_alone

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.settings import parse_args
from diplomacy_learners import population_based as pbt

FLAGS = ["--metric", "eval/random/win", "--eval-population", "0", "--members", "3"]
FIRST = {
    "learning_rate": 1e-3,
    "gae_lambda": 0.8,
    "gamma": 1.0,
    "weak_seats": 0.95,
    "update_epochs": 3,
    "reward": "sum_of_squares=1..0@0.5,team:score",
}


@pytest.mark.parametrize("anew", [0, 1])
def test_settings_that_are_drawn_are_golden(anew, golden):
    """By a factor of 0.8 or 1.2, also of what is missing to 1 in a share, which stays below; or,
    anew, around the first, of which `other` has long gone."""
    first, other = SimpleNamespace(**FIRST), FIRST | {"learning_rate": 5.0, "reward": "score=7"}
    rng, start = np.random.default_rng(1), other if anew else FIRST
    drawn = [pbt.explored(start, first, rng, anew=anew) for _ in range(40)]
    rates = np.array([settings["learning_rate"] for settings in drawn])
    assert 3e-4 < rates.min() < rates.max() < 3.1e-3
    golden(f"explored {anew}", map(json.dumps, drawn))


main = partial(command, pbt)
TINY = {"pool_size": 4, "anneal": False}


def population(folder: Path, *flags: str, **changes) -> list[pbt.Member]:
    config = write_config(folder / "tiny.toml", **TINY | changes)
    words = ["--config", config, "--runs-folder", str(folder / "runs"), *FLAGS, *flags]
    args = parse_args(pbt.Args, words)
    pbt.check(args)
    home = pbt.make_folder(args, pbt.check_members(args))
    return [pbt.Member(home, number, args) for number in range(args.members)]


@pytest.fixture(scope="module")
def evaluated_once(tmp_path_factory) -> list[pbt.Member]:
    members = population(tmp_path_factory.mktemp("population"))
    for member in members[:2]:
        member.train(1)
    return members


@pytest.fixture
def members(evaluated_once, tmp_path) -> list[pbt.Member]:
    home = Path(shutil.copytree(evaluated_once[0].home, tmp_path / "population"))
    return [pbt.Member(home, member.number, member.args) for member in evaluated_once]


def test_how_members_stand_is_golden(evaluated_once, golden):
    folders = {"runs_folder": None, "config": None}
    lines = [member.stand() | vars(member.own_args()) | folders for member in evaluated_once]
    golden("population_based", map(json.dumps, lines), rel=0.01)


@pytest.mark.slow
def test_pauses_and_ranks_change_nothing(members, tmp_path, monkeypatch):
    """A member that meets nobody learns what the same training learns without pauses.

    It is ranked in the base population after each evaluation, once.
    """
    first, before = members[0].stand(), load(members[0].folder)
    assert first["evaluations"] == 1 and 300 <= first["global_step"] < 500 and not first["done"]
    assert first["score"] == metrics(members[0].folder)[-1]["eval/random/win"]
    assert members[0].train(1) == first and load(members[0].folder)["seconds"] == before["seconds"]
    write_population(tmp_path / "base")
    monkeypatch.setattr(pbt, "population_folder", lambda *_: tmp_path / "base")
    ranked = {"mates": 0, "eval_population": 6, "metric": "population/rating"}
    member = pbt.Member(members[0].home, 0, replace(members[0].args, **ranked))
    last = member.train(2)
    assert last["done"] and last["evaluations"] == 2
    curve = metrics(member.folder)
    assert member.train(2) == last and metrics(member.folder) == curve
    whole = train_alone(tmp_path / "whole", **TINY)
    assert metrics(whole) == curve[:-1]
    assert curve[-1]["global_step"] == last["global_step"]
    assert curve[-1]["population/rating"] == last["score"]
    assert 1 <= curve[-1]["population/best"] <= curve[-1]["population/rank"]


def test_a_member_takes_over(members):
    better, worse, third = members
    stand, before, curve = better.stand(), worse.stand(), metrics(worse.folder)
    settings = {"learning_rate": 7e-4, "reward": "score=0.5"}
    varied = pbt.Member(worse.home, 1, worse.args, worse.settings | settings)
    varied.take_over(worse.folder / "checkpoint.pt")  # its own: nothing happens
    assert not (worse.home / "exploits.jsonl").exists()
    varied.take_over(better.folder / "checkpoint.pt")
    theirs, found = load(better.folder), load(worse.folder)
    assert all(torch.equal(found["model"][name], w) for name, w in theirs["model"].items())
    (note,) = map(json.loads, (worse.home / "exploits.jsonl").read_text().splitlines())
    assert (note["member"], note["from"]) == (1, 0)
    assert note["score"] == before["score"] and note["score_from"] == stand["score"]
    args = json.loads((worse.folder / "args.json").read_text())
    assert settings.items() <= note["settings"].items() <= args.items() and args["seed"] == 2
    assert note["before"] == worse.settings != note["settings"]
    varied.take_over(better.folder / "checkpoint.pt")  # again, since a kill came
    assert len((worse.home / "exploits.jsonl").read_text().splitlines()) == 1
    assert varied.stand()["score"] == before["score"]
    # It trains on with them, after its own curve.
    assert pbt.Member(worse.home, 1, worse.args).settings == varied.settings
    assert varied.train(2)["done"]
    assert metrics(worse.folder)[: len(curve)] == curve and len(metrics(worse.folder)) > len(curve)
    rates = {group["lr"] for group in load(worse.folder)["run"]["optimizer"]["param_groups"]}
    assert rates == {7e-4}
    assert third.stand() == {"evaluations": 0}  # the others went on without it


def test_members_meet(members):
    """After each evaluation a copy of another member joins the pool, and the own one stays last."""
    first, second, _ = members
    before = load(first.folder)["run"]["pool"]
    setup = first.begin()
    run = ppo.Run(setup, startup.Ranks())
    assert setup.resume(run, startup.Ranks())
    pool = run.pool
    setup.folder.close()
    assert len(pool.copies) == 4 and pool.copies[-1] == before["copies"][-1]
    assert pool.copies[-2] == before["next_number"] == pool.next_number - 1
    met, theirs = pool.agents[pool.copies[-2]].state_dict(), load(second.folder)
    assert all(torch.equal(met[name], weights) for name, weights in theirs["model"].items())
    assert pool.frozen_at[pool.copies[-2]] == theirs["global_step"]
    assert load(first.folder)["run"]["pool"]["copies"] == before["copies"]  # until it has trained


@pytest.mark.parametrize(
    ("flags", "words"), read_table(__file__, "population_based_what_cannot_be")
)
def test_what_cannot_be(flags, words, tmp_path, capsys, monkeypatch):
    def init(*_, **__):
        raise ConnectionError("no cluster")

    found = None if words == "needs Ray" else "ray"
    monkeypatch.setattr(pbt, "find_spec", lambda name: found)  # what is wrong is said before
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    assert main([*FLAGS, "--runs-folder", str(tmp_path / "runs"), *flags]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # runpy finds it imported
def test_a_population_goes_on_unchanged(tmp_path, capsys, monkeypatch):
    """Its settings are of the module, not of `__main__`, by which Ray could not send them."""
    home = population(tmp_path)[0].home
    begun = []
    monkeypatch.setattr(pbt, "find_spec", lambda name: name)
    monkeypatch.setattr(pbt, "connected", lambda address: nullcontext())
    monkeypatch.setattr(pbt, "train_population", lambda *given: begun.append(given))
    assert main(["--resume", str(home), "--seed", "2"]) == 2 and not begun
    assert "--seed" in capsys.readouterr().err
    argv = [pbt.__file__, "--resume", str(home), "--address", "auto"]
    monkeypatch.setattr(sys, "argv", argv)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(pbt.__name__, run_name="__main__")
    assert end.value.code == 0 and type(begun[0][1]) is pbt.Args
    assert begun[0][0] == home and begun[0][1].address == "auto"
    assert begun[0][1].members == 3


@pytest.mark.slow
def test_a_killed_population_goes_on(tmp_path):
    """What it comes to is what it comes to without the kill, with a reward of one's own.

    A member may have no run folder yet when it goes on.
    """
    pytest.importorskip("ray")
    (tmp_path / "own.py").write_text("def mine(game):\n    return game.centers.astype('float32')\n")
    write_config(tmp_path / "tiny.toml", total_timesteps=900, reward="own:mine=1,score")
    command = [sys.executable, "-m", "diplomacy_learners.population_based"]
    flags = [*command, *FLAGS, "--mates", "0", "--config", "tiny.toml", "--runs-folder"]
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    here = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": path}}
    assert subprocess.run([*flags, "whole"], check=False, **here).returncode == 0
    killed = subprocess.Popen([*flags, "runs"], start_new_session=True, **here)
    deadline = time.monotonic() + 300
    while len(list(tmp_path.glob("runs/*/*/checkpoint.pt"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    (home,) = (tmp_path / "runs").iterdir()
    time.sleep(5)  # Ray's processes notice that nobody is there
    again = [*command, "--resume", f"runs/{home.name}"]
    assert subprocess.run(again, check=False, **here).returncode == 0
    args = pbt.Args(eval_interval=300, total_timesteps=900, reward="score")
    (whole,) = (tmp_path / "whole").iterdir()
    for number in range(3):
        stands = [pbt.Member(folder, number, args).stand() for folder in (whole, home)]
        assert all(stand["done"] for stand in stands)
        assert stands[0] == stands[1]
    notes = [(folder / "exploits.jsonl").read_text() for folder in (whole, home)]
    assert notes[0].count("\n") == 2  # one of three members after each evaluation but the last
    assert sorted(notes[0].splitlines()) == sorted(notes[1].splitlines())
    rewards = [json.loads(p.read_text())["reward"] for p in home.glob("*__member-*/args.json")]
    assert len(rewards) == 3 and all(reward.startswith("own:mine=") for reward in rewards)
    (gone,) = home.glob("*__member-2__*")
    gone.rename(tmp_path / "gone")
    assert subprocess.run(again, check=False, **here).returncode == 0
    assert len(list(home.glob("*__member-2__*/checkpoint.pt"))) == 1
