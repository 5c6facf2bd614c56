"""Population-based training: members that pause, meet and take over from each other."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.training import REPOSITORY, load, metrics, write_config

import ppo_population_based_diplomacy as pbt
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.training import Ranks
from diplomacy_engine.training.settings import parse_args

FLAGS = ["--metric", "eval/random/win", "--eval-population", "0", "--members", "3"]


def population(folder: Path, *flags: str, **changes) -> list[pbt.Member]:
    """Return members of a new population of tiny trainings."""
    config = write_config(folder / "tiny.toml", **{"league_games": 0} | changes)
    words = ["--config", config, "--runs-folder", str(folder / "runs"), *FLAGS, *flags]
    map_name, args = pbt.check(parse_args(pbt.Args, words, ppo.CONFIGS).args, False)
    home = pbt.make_folder(args, map_name)
    return [pbt.Member(home, number, args) for number in range(args.members)]


def test_members_begin_with_settings_of_their_own(tmp_path):
    members = population(tmp_path, total_timesteps=900, reward_mix="score=1,center_delta")
    files = [["--config", member.write_settings()] for member in members]
    found = [parse_args(ppo.Args, flags, ppo.CONFIGS).args for flags in files]
    given = members[0].args
    for name in vars(found[0]).keys() - {"runs_folder", "exp_name", "config", "save_interval"}:
        assert getattr(found[0], name) == getattr(given, name), name
    assert len({args.learning_rate for args in found}) == len({a.reward_mix for a in found}) == 3
    assert [args.seed for args in found] == [1, 2, 3]
    assert all(args.clip_coef == given.clip_coef for args in found)


def test_pauses_change_nothing(tmp_path):
    """A member that meets nobody learns what the same training learns without pauses."""
    (member, *_) = population(tmp_path, "--mates", "0")
    first = member.train(1)
    assert first["evaluations"] == 1 and 300 <= first["global_step"] < 500 and not first["done"]
    before = load(member.folder)
    assert member.train(1) == first and load(member.folder)["seconds"] == before["seconds"]
    last = member.train(2)
    assert last["done"] and last["evaluations"] == 2
    assert member.train(3)["global_step"] == last["global_step"]
    assert last["score"] == metrics(member.folder)[-1]["eval/random/win"]
    flags = ["--config", member.write_settings(), "--runs-folder", str(tmp_path / "whole")]
    ppo.run_training(ppo.Run, flags, Ranks())
    (whole,) = (tmp_path / "whole").iterdir()
    assert metrics(whole) == metrics(member.folder)


def test_a_member_takes_over(tmp_path):
    better, worse, third = population(tmp_path, anneal_lr=False, opponent_temperature=2.0)
    stand = better.train(1)
    before, curve = worse.train(1), metrics(worse.folder)
    worse.take_over(stand)
    theirs, own = load(better.folder), load(worse.folder)
    assert all(torch.equal(own["model"][name], w) for name, w in theirs["model"].items())
    assert not torch.equal(own["torch_generator"], theirs["torch_generator"])
    (note,) = map(json.loads, (worse.home / "exploits.jsonl").read_text().splitlines())
    assert (note["member"], note["from"]) == (1, 0)
    assert note["score"] == before["score"] and note["score_from"] == stand["score"]
    settings = json.loads((worse.folder / "args.json").read_text())
    assert note["settings"].items() <= settings.items() and settings["seed"] == 2
    assert note["before"] == before["settings"] != note["settings"] != stand["settings"]
    # It trains on with them, after its own curve.
    assert worse.train(2)["done"]
    assert metrics(worse.folder)[: len(curve)] == curve and len(metrics(worse.folder)) > len(curve)
    rates = {group["lr"] for group in load(worse.folder)["optimizer"]["param_groups"]}
    assert rates == {note["settings"]["learning_rate"]}
    assert third.stand() == {"evaluations": 0}  # the others went on without it


def test_members_meet(tmp_path, monkeypatch):
    """After each evaluation a copy of another member joins the pool, and the own one stays last."""
    first, second, _ = population(tmp_path, pool_size=4, pool_interval=100)
    other, _ = second.train(1), first.train(1)
    newest = load(first.folder)["pool"]["members"][-1]
    seen = []
    monkeypatch.setattr(ppo, "train", lambda run, *_: seen.append(run) or True)
    first.train(2)
    members = seen[0].pool.members
    assert members[-1].number == newest and len(members) == 4
    model = torch.load(second.home / "newest" / "member-1.pt", weights_only=True)["model"]
    met = members[-2].player.state_dict()
    assert all(torch.equal(met[name], weights) for name, weights in model.items())
    assert other["global_step"] and load(second.folder)["model"].keys() == model.keys()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--explore", "hidden"], "--explore hidden: these can be varied"),
        (["--metric", "population/rating"], "--metric population/rating needs --eval-population"),
        (["--pool-schedule", "staged"], "--mates needs a pool of several copies"),
        (["--reward", "my:own"], "rewards that come along"),
        (["--threads", "2"], "one core each"),
        (["--members", "1"], "--members"),
        (["--map", "small.dip"], "small.dip"),
        (["--address", "127.0.0.1:1"], "no Ray cluster at 127.0.0.1:1: "),
        (["--address", "127.0.0.1:99999999"], "no Ray cluster at 127.0.0.1:99999999: "),
        (["--address", "a..b:6379"], "no Ray cluster at a..b:6379: "),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume", "nowhere", "--seed", "2"], "only --address goes with --resume"),
    ],
)
def test_what_cannot_be(flags, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pbt, "find_spec", lambda name: name)  # what is wrong is said before
    words = [*FLAGS, "--runs-folder", str(tmp_path / "runs"), *flags]
    words = flags if "--resume" in flags else words
    assert pbt.main(words) == 2
    shown = capsys.readouterr().err
    assert message in shown and shown.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_address_in_brackets():
    """Those of the sixth version of the protocol are written [::1]:6379."""
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no such addresses")
    with server:
        pbt.check_address(f"[::1]:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    ("said", "hinted"),
    [("Authentication token is missing", True), ("Could not find any running Ray instance", False)],
)
def test_a_cluster_that_turns_away(said, hinted, tmp_path, capsys, monkeypatch):
    """Nothing is begun, and tokens are named only where they matter."""

    def init(*_, **__):
        raise ConnectionError(said)

    monkeypatch.setattr(pbt, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    assert pbt.main([*FLAGS, "--address", "auto", "--runs-folder", str(tmp_path / "runs")]) == 2
    shown = capsys.readouterr().err
    assert said in shown and ("RAY_AUTH_MODE" in shown) == hinted and shown.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_without_ray(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pbt, "find_spec", lambda name: None)
    assert pbt.main([*FLAGS, "--runs-folder", str(tmp_path / "runs")]) == 2
    assert 'needs Ray: pip install "ray[tune]' in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_killed_population_goes_on(tmp_path, capfd):
    """What it comes to is what it comes to without the kill."""
    pytest.importorskip("ray")
    flags = [sys.executable, str(REPOSITORY / "ppo_population_based_diplomacy.py"), *FLAGS]
    write_config(tmp_path / "tiny.toml", total_timesteps=1200, league_games=0)
    flags += ["--mates", "0", "--config", "tiny.toml", "--runs-folder"]
    here = {"cwd": tmp_path}
    assert subprocess.run([*flags, "whole"], check=False, **here).returncode == 0
    killed = subprocess.Popen([*flags, "runs"], start_new_session=True, **here)
    deadline = time.monotonic() + 300
    while len(list(tmp_path.glob("runs/*/newest/*.pt"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    (home,) = (tmp_path / "runs").iterdir()
    time.sleep(5)  # Ray's processes notice that nobody is there
    again = [*flags[:2], "--resume", f"runs/{home.name}"]
    assert subprocess.run(again, check=False, **here).returncode == 0
    args = pbt.Args(eval_interval=300, total_timesteps=1200, metric="eval/random/win", members=3)
    (whole,) = (tmp_path / "whole").iterdir()
    for number in range(3):
        stands = [pbt.Member(folder, number, args).stand() for folder in (whole, home)]
        assert all(stand["done"] for stand in stands)
        assert stands[0]["score"] == stands[1]["score"]
    assert (home / "exploits.jsonl").is_file()
