"""Population-based training: members that pause, meet and take over from each other."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.training import REPOSITORY, load, main, metrics, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, make_reward_mix
from diplomacy_engine.learning import startup
from diplomacy_engine.training.settings import parse_args
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


def test_settings_change_by_a_factor():
    first, rng = SimpleNamespace(**FIRST), np.random.default_rng(1)
    for _ in range(20):
        found = pbt.explored(FIRST, first, rng, anew=0)
        assert found.keys() == FIRST.keys() <= set(pbt.VARIED)
        assert found["learning_rate"] in (8e-4, 1.2e-3) and found["gae_lambda"] in (0.84, 0.76)
        # What is missing to 1 is varied, and no share is above 1.
        assert found["gamma"] == 1 and found["weak_seats"] in (0.76, 1) and found["update_epochs"]
        squares, score = found["reward"].split(",")
        assert squares in ("sum_of_squares=0.8..0@0.5", "sum_of_squares=1.2..0@0.5")
        assert score in ("team:score=0.8", "team:score=1.2")


def test_settings_are_drawn_around_the_first():
    first, rng = SimpleNamespace(**FIRST), np.random.default_rng(2)
    other = FIRST | {"learning_rate": 5.0, "reward": "score=7"}
    drawn = [pbt.explored(other, first, rng, anew=1) for _ in range(200)]
    rates = np.array([found["learning_rate"] for found in drawn])
    assert rates.min() > 3e-4 and rates.max() < 3.1e-3 and np.median(rates / 1e-3) > 0.8
    lambdas = np.array([found["gae_lambda"] for found in drawn])
    assert lambdas.min() > 0.39 and lambdas.max() < 0.94
    assert {found["update_epochs"] for found in drawn} >= {1, 2, 5, 8}
    mixes = [found["reward"].replace("team:", "") for found in drawn]
    weights = [make_reward_mix(mix).weights(0)["sum_of_squares"] for mix in mixes]
    assert 0.3 < min(weights) < 0.5 and 2 < max(weights) < 3.1


def population(folder: Path, *flags: str, **changes) -> list[pbt.Member]:
    """Return members of a new population of tiny trainings."""
    config = write_config(folder / "tiny.toml", **{"league_games": 0} | changes)
    words = ["--config", config, "--runs-folder", str(folder / "runs"), *FLAGS, *flags]
    args = parse_args(pbt.Args, words, startup.CONFIGS).args
    pbt.check(args)
    home = pbt.make_folder(args, pbt.check_members(args))
    return [pbt.Member(home, number, args) for number in range(args.members)]


def test_members_begin_with_settings_of_their_own(tmp_path):
    members = population(tmp_path, reward="score=1,center_delta")
    given, found = members[0].args, [member.own_args() for member in members]
    own = {"runs_folder", "exp_name", "config", "seed", "save_interval", "resume"}
    for name in vars(found[0]).keys() - own:
        assert getattr(found[0], name) == getattr(given, name), name
    assert len({args.learning_rate for args in found}) == len({a.reward for a in found}) == 3
    assert [args.seed for args in found] == [1, 2, 3]
    assert all(args.clip_coef == given.clip_coef for args in found)
    assert all(args.save_interval == given.eval_interval == 300 for args in found)


def test_pauses_change_nothing(tmp_path):
    """A member that meets nobody learns what the same training learns without pauses."""
    (member, *_) = population(tmp_path, "--mates", "0")
    first = member.train(1)
    assert first["evaluations"] == 1 and 300 <= first["global_step"] < 500 and not first["done"]
    before = load(member.folder)
    assert member.train(1) == first and load(member.folder)["seconds"] == before["seconds"]
    last = member.train(2)
    assert last["done"] and last["evaluations"] == 2
    assert member.train(2) == last
    assert last["score"] == metrics(member.folder)[-1]["eval/random/win"]
    config = write_config(tmp_path / "whole.toml", league_games=0, save_interval=300)
    assert main(["--config", config, "--runs-folder", str(tmp_path / "whole")]) == 0
    (whole,) = (tmp_path / "whole").iterdir()
    assert metrics(whole) == metrics(member.folder)


def test_a_member_takes_over(tmp_path):
    better, worse, third = population(tmp_path, anneal_lr=False, opponent_temperature=2.0)
    stand = better.train(1)
    before, curve = worse.train(1), metrics(worse.folder)
    settings, own = {"learning_rate": 7e-4, "reward": "score=0.5"}, load(worse.folder)
    varied = pbt.Member(worse.home, 1, worse.args, worse.settings | settings)
    varied.take_over(worse.folder / "checkpoint.pt")  # its own: nothing happens
    assert not (worse.home / "exploits.jsonl").exists()
    varied.take_over(better.folder / "checkpoint.pt")
    theirs, found = load(better.folder), load(worse.folder)
    assert all(torch.equal(found["model"][name], w) for name, w in theirs["model"].items())
    for name in ("torch_generator", "rng"):  # it draws what it would have drawn
        assert str(found["ranks"][0][name]) == str(own["ranks"][0][name])
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


def test_members_meet(tmp_path):
    """After each evaluation a copy of another member joins the pool, and the own one stays last."""
    first, second, _ = population(tmp_path, pool_size=4, pool_interval=100)
    second.train(1), first.train(1)
    before = load(first.folder)["run"]["pool"]
    begun = first.begin()
    pool = ppo.Run(begun, startup.Ranks()).pool
    begun.folder.close()
    assert len(pool.copies) == 4 and pool.copies[-1] == before["copies"][-1]
    assert pool.copies[-2] == before["next_number"] == pool.next_number - 1
    met, theirs = pool.agents[pool.copies[-2]].state_dict(), load(second.folder)
    assert all(torch.equal(met[name], weights) for name, weights in theirs["model"].items())
    assert pool.frozen_at[pool.copies[-2]] == theirs["global_step"]
    assert load(first.folder)["run"]["pool"]["copies"] == before["copies"]  # until it has trained
    assert first.train(2)["done"]


def test_a_member_is_ranked_in_the_base_population(tmp_path):
    (member, *_) = population(tmp_path, "--eval-population", "6", "--metric", "population/rating")
    stand = member.train(1)
    curve = metrics(member.folder)
    assert curve[-1]["global_step"] == stand["global_step"]
    assert curve[-1]["population/rating"] == stand["score"]
    assert 1 <= curve[-1]["population/best"] <= curve[-1]["population/rank"]
    assert member.train(1) == stand and metrics(member.folder) == curve  # once
    assert member.train(2)["done"]
    assert metrics(member.folder)[: len(curve)] == curve
    assert sum("population/rating" in line for line in metrics(member.folder)) == 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--explore", "hidden"], "--explore hidden: these can be varied"),
        (["--metric", "population/rating"], "--metric population/rating needs --eval-population"),
        (["--pool-size", "1"], "--mates needs a pool of several copies"),
        (
            ["--eval-population", "9", "--teams", "ENGLAND+RUSSIA"],
            "cannot be combined with --teams",
        ),
        (["--processes", "2"], "one core each"),
        (["--track"], "one core each"),
        (["--members", "1"], "--members"),
        (["--reward", "nothing"], "nothing"),
        (["--map", "small.dip"], "small.dip"),
        (["--address", "127.0.0.1:1"], "no Ray cluster at 127.0.0.1:1: "),
        (["--address", "127.0.0.1:99999999"], "no Ray cluster at 127.0.0.1:99999999: "),
        (["--address", "a..b:6379"], "no Ray cluster at a..b:6379: "),
        (["--resume", "nowhere"], "nowhere"),
        (["--resume", "nowhere", "--seed", "2"], "only --address may be given with --resume"),
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


@pytest.mark.parametrize(
    ("named", "flags"),
    [
        ({"reward": "own:mine"}, ["--reward", "own:mine"]),
        ({"eval_bots": ["random", "own.py:x"]}, ["--eval-bots", "random", "own.py:x"]),
        ({"pool_bots": ["llm:m@http://127.0.0.1:1/v1"]}, ["--pool-bots", "llm:m@http://127.0.0.1:1/v1"]),
    ],
)  # fmt: skip
def test_code_that_a_folder_names_is_named_on_the_command_line(
    named, flags, tmp_path, capsys, monkeypatch
):
    """Members that have no run folder yet would begin with it."""
    home = population(tmp_path)[0].home
    args = json.loads((home / "args.json").read_text())
    (home / "args.json").write_text(json.dumps(args | named))
    monkeypatch.setattr(pbt, "find_spec", lambda name: name)
    begun = []
    monkeypatch.setattr(pbt, "connected", lambda _: nullcontext())
    monkeypatch.setattr(pbt, "train_population", lambda *given: begun.append(given))
    assert pbt.main(["--resume", str(home)]) == 2 and not begun
    shown = capsys.readouterr().err
    assert "names code to run or a server to ask" in shown and " ".join(flags[:1]) in shown
    assert pbt.main(["--resume", str(home), *flags]) == 0 and begun[0][0] == home


def test_a_members_folder_names_no_other_code(tmp_path):
    """Its own settings are from the same folder, and nobody has named what stands there."""
    member, *_ = population(tmp_path)
    member.train(1)
    kept = json.loads((member.folder / "args.json").read_text())

    def change(**changes):
        (member.folder / "args.json").write_text(json.dumps(kept | changes))

    change(reward="own:mine")
    with pytest.raises(UserError, match=r"args\.json: a reward of the parts of 'score' is needed"):
        pbt.Member(member.home, 0, member.args)
    for flag, players in (("pool", ["own.py:x"]), ("eval", ["own.py:x"])):
        change(**{f"{flag}_bots": players})
        with pytest.raises(UserError, match=f"--{flag}-bots cannot be changed on resume"):
            pbt.Member(member.home, 0, member.args).begin()
    change(track=True)
    begun = pbt.Member(member.home, 0, member.args).begin()
    begun.folder.close()
    assert not begun.args.track


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


def command(*words: str) -> list[str]:
    """Return a command line of population-based training."""
    return [sys.executable, "-m", "diplomacy_learners.population_based", *words]


def everywhere(folder: Path) -> dict:
    """Return how a command is run in a folder that is not the repository."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return {"cwd": folder, "env": os.environ | {"PYTHONPATH": path}}


@pytest.mark.slow
def test_a_killed_population_goes_on(tmp_path):
    """What it comes to is what it comes to without the kill."""
    pytest.importorskip("ray")
    write_config(tmp_path / "tiny.toml", total_timesteps=900, league_games=0)
    flags = command(*FLAGS, "--mates", "0", "--config", "tiny.toml", "--runs-folder")
    here = everywhere(tmp_path)
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
    again = command("--resume", f"runs/{home.name}")
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


@pytest.mark.slow
def test_a_reward_of_ones_own_goes_through_ray(tmp_path):
    """Also where a member has no run folder yet when the population goes on."""
    pytest.importorskip("ray")
    (tmp_path / "own.py").write_text("def mine(game):\n    return game.centers.astype('float32')\n")
    write_config(tmp_path / "tiny.toml", league_games=0, reward="own:mine=1,score")
    here = everywhere(tmp_path) | {"stderr": subprocess.PIPE, "text": True}
    words = ["--config", "tiny.toml", "--runs-folder", "runs", *FLAGS]
    assert subprocess.run(command(*words), check=False, **here).returncode == 0
    (home,) = (tmp_path / "runs").iterdir()
    rewards = [json.loads(p.read_text())["reward"] for p in home.glob("*__member-*/args.json")]
    assert len(rewards) == 3 and all(reward.startswith("own:mine=") for reward in rewards)
    (gone,) = home.glob("*__member-2__*")
    gone.rename(tmp_path / "gone")
    refused = subprocess.run(command("--resume", str(home)), check=False, **here)
    assert refused.returncode == 2 and "names code to run" in refused.stderr
    assert not list(home.glob("*__member-2__*"))
    named = command("--resume", str(home), "--reward", "own:mine=1,score")
    assert subprocess.run(named, check=False, **here).returncode == 0
    assert len(list(home.glob("*__member-2__*/checkpoint.pt"))) == 1
