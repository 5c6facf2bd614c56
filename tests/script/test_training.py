"""Whole runs through the command line: seeds, stopping and resuming, learning, bad input.

Every run here takes a tiny settings file of its own, so that the tuned ones may change freely.
"""

import contextlib
import itertools
import json
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from support.training import (
    REPOSITORY,
    SETTINGS,
    SMALL_MAP,
    TINY,
    assert_same_run,
    differences,
    events,
    files,
    games,
    load,
    main,
    metrics,
    refused,
    resume,
    state,
    stop_in_step,
    train,
    write_config,
)

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine._files import file_sha256
from diplomacy_engine.commands import cli
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning import frozen, registry, run_log, startup
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.ranks import TrainingError
from diplomacy_engine.matches.evaluation import evaluate_player
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.rules.map import MapError, load_map


@pytest.fixture(autouse=True)
def frozen_soon(monkeypatch):
    """Have --freeze-score ask for fewer games than a tiny run has."""
    monkeypatch.setattr(ppo, "FREEZE_GAMES", 24)


# Everything below is read only, except in copies.
@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function that gives the uninterrupted run of some settings, made once."""
    runs = {}

    def get(name: str = "plain") -> Path:
        if name not in runs:
            folder = tmp_path_factory.mktemp(f"whole-{name}") / "runs"
            runs[name] = train(folder, **SETTINGS[name])
        return runs[name]

    return get


@pytest.fixture
def copied(whole, tmp_path):
    """A finished tiny run, to damage."""
    return Path(shutil.copytree(whole(), tmp_path / "copied"))


# --- Whole runs -----------------------------------------------------------------------------------


def test_a_run_leaves_what_it_promises(whole, capsys):
    run = whole()
    assert re.fullmatch(r"small__ppo_selfplay_diplomacy__1__\d+", run.name)
    args = json.loads((run / "args.json").read_text())
    assert args["num_envs"] == 8 and args["gamma"] == ppo.Args.gamma
    script = REPOSITORY / "ppo_selfplay_diplomacy.py"
    assert (run / script.name).read_bytes() == script.read_bytes()
    saved = load(run)
    assert saved["global_step"] == saved["run"]["counters"]["global_step"] >= 600
    assert len(list((run / "checkpoints").iterdir())) >= 3
    lines = metrics(run)
    steps = [line["global_step"] for line in lines]
    assert steps == sorted(steps) and steps[-1] == saved["global_step"]
    names = set().union(*lines)
    losses = "policy_loss value_loss entropy approx_kl old_approx_kl clipfrac explained_variance"
    assert {f"losses/{name}" for name in losses.split()} <= names
    assert {"charts/learning_rate", "charts/games", "charts/env_steps", "selfplay/win"} <= names
    assert {"charts/ent_coef", "charts/episodic_return", "charts/episodic_length"} <= names
    assert {"eval/hold/orders/move", "eval/hold/orders/bounced"} <= names
    assert "charts/episodic_return_score" not in names  # of a mix only
    assert {"selfplay/opponent_age", "eval/random/win", "eval/hold/solo"} <= names
    rated = "learner", "learner_deviation", "random", "hold", "pool_newest", "pool_oldest"
    assert {f"league/rating_{name}" for name in rated} <= names
    assert {line.get("league/rating_random", 25.0) for line in lines} == {25.0}  # the anchor
    assert len({line.get("league/rating_learner") for line in lines} - {None}) == 2
    raw = (run / "metrics.jsonl").read_text()
    assert "charts/SPS" in raw and "timing/outside_network_share" in raw
    evaluated = [line["global_step"] for line in lines if "eval/random/win" in line]
    assert len(evaluated) == 2 and 300 <= evaluated[0] < 320  # at 300, and once at the end
    kept = {f"{step:012d}.{kind}" for step in evaluated for kind in ("jsonl", "html")}
    assert kept == set(games(run))
    for step in evaluated:
        found = list(read_saved_games(run / "games" / f"{step:012d}.jsonl"))
        assert found and all(game["map"] == "small" for game in found)
    tags = {tag for _, tag, _ in events(run)}
    assert {"settings/text_summary", "custom_scalars__config__"} <= tags
    assert {name for name in names if "/" in name} <= tags | {"charts/SPS"}
    rates = [line["charts/learning_rate"] for line in lines if "charts/learning_rate" in line]
    assert rates == sorted(rates, reverse=True) and 0 < rates[-1] < rates[0] / 3
    assert 0.9e-3 < rates[0] <= 1e-3


def test_the_same_seed_gives_the_same_run(whole, tmp_path):
    torch.rand(7)
    np.random.rand(7)
    again = train(tmp_path / "runs")
    assert_same_run(whole(), again)
    other = train(tmp_path / "runs", "--seed", "2")
    assert (load(other)["model"]["score.weight"] != load(again)["model"]["score.weight"]).any()
    one, two = (load(run)["ranks"][0]["games"]["row_seed"] for run in (again, other))
    assert (one != two).any()
    assert metrics(other)[0] != metrics(again)[0]


def test_the_average_is_what_is_frozen_evaluated_and_kept(tmp_path, monkeypatch):
    runs, evaluated, copied = [], [], []

    def made(run, *args, **kwargs):
        runs.append(run)
        return original(run, *args, **kwargs)

    original, freeze = ppo.Run.__init__, frozen.frozen_copy
    evaluate = ppo.engine.evaluate_player
    monkeypatch.setattr(ppo.Run, "__init__", made)
    monkeypatch.setattr(frozen, "frozen_copy", lambda agent: copied.append(agent) or freeze(agent))
    monkeypatch.setattr(
        ppo.engine,
        "evaluate_player",
        lambda game_map, player, *args, **kwargs: (
            evaluated.append(player.agent.agent) or evaluate(game_map, player, *args, **kwargs)
        ),
    )
    folder = train(tmp_path / "runs", average=1.0)
    (run,) = runs
    assert evaluated and all(agent is run.average for agent in evaluated)
    # At the start the agent is the average itself and the pool's first copy.
    assert len(copied) > 4 and all(agent is run.average for agent in copied[2:])
    saved, average, learner = load(folder), run.average.state_dict(), run.agent.state_dict()
    assert differences(dict(saved["model"]), dict(average)) == []
    assert differences(dict(saved["run"]["agent"]), dict(learner)) == []
    assert differences(dict(average), dict(learner)) != []


def test_evaluations_and_checkpoints_do_not_change_the_training(whole, tmp_path):
    changes = {"eval_interval": 10**9, "save_interval": 10**9, "eval_games": 2, "league_games": 0}
    rare = train(tmp_path / "runs", **changes)
    one, two = state(whole()), state(rare)
    assert differences(one["ranks"], two["ranks"]) == []
    for name in ("agent", "optimizer", "pool", "counters", "win_share"):
        assert differences(one["run"][name], two["run"][name], name) == []


def test_any_player_is_evaluated_against(tmp_path):
    """A checkpoint and a search on it, too; the run can be resumed, and its copies are rated."""
    policy = str(REPOSITORY / "runs" / "reference" / "small__pure__1")
    bots = ["hold", policy, f"fast(candidates=2 draws=4 profiles=2):{policy}"]
    run = train(tmp_path / "runs", eval_bots=bots, total_timesteps=400)
    (last,) = [line for line in metrics(run) if "eval/hold/win" in line][-1:]
    for name in bots:
        assert 0 <= last[f"eval/{name}/win"] <= 1
    games = sorted(path.name for path in (run / "games").glob("*.jsonl"))
    assert games and resume(run, "--total-timesteps", "500") == 0


@pytest.mark.parametrize("name", ["plain", "rich"])
def test_every_decision_is_trained_on_once(name, monkeypatch, tmp_path):
    """Also those still open or not yet learned from when the run ends."""
    sizes, update = [], ppo.update

    def spy(run, batch, *rest):
        sizes.append(len(batch.values))
        return update(run, batch, *rest)

    monkeypatch.setattr(ppo, "update", spy)
    changes = {"eval_interval": 10**9, "eval_games": 2, "processes": 1}
    run = train(tmp_path / "runs", **SETTINGS[name] | changes)
    saved = load(run)
    assert sum(sizes) == saved["global_step"] and len(sizes) == saved["run"]["counters"]["updates"]
    logged = [line["charts/batch_size"] for line in metrics(run) if "charts/batch_size" in line]
    assert logged == sizes
    buffer = saved["ranks"][0]["buffer"]
    assert buffer["num_rows"] == 0 and not buffer["open"].any()


def test_learning_beats_random(tmp_path):
    """A tiny run clearly beats `random`, which an untrained policy does not."""
    run = train(
        tmp_path / "runs",
        num_envs=64,
        num_steps=16,
        total_timesteps=20_000,
        hidden=32,
        num_layers=2,
        learning_rate=2e-3,
        num_minibatches=4,
        reward="sum_of_squares",
        pool_interval=5000,
        eval_interval=10**9,
        eval_games=2,
    )
    trained = win_rate(registry.load_player(run / "checkpoint.pt", seed=1))
    torch.manual_seed(1)
    fresh = ppo.Agent(load_map("small"), 32, 2)
    untrained = win_rate(policy_player(fresh, "untrained", 1))
    # LEARNED
    assert wilson_interval(trained * 300, 300)[0] > 0.8, (trained, untrained)
    assert wilson_interval(untrained * 300, 300)[1] < 0.6, (trained, untrained)


def win_rate(player) -> float:
    found = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1).result()
    return found["overall"]["win"]["value"]


# --- Stopping and resuming ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_resumed_equals_uninterrupted(name, whole, tmp_path, monkeypatch, capsys):
    """Stopped before and after evaluations, and resumed: identical bit for bit."""
    settings = TINY | SETTINGS[name]
    with monkeypatch.context() as patch:
        stop_in_step(patch, 3)
        run = train(tmp_path / "runs", **SETTINGS[name])
    assert f"--resume {run}" in capsys.readouterr().out
    steps = [0, load(run)["global_step"]]
    for number in (11,) if name == "rich" else (55, 2):  # each start of two processes takes long
        with monkeypatch.context() as patch:
            stop_in_step(patch, number)
            assert resume(run) == 0
        saved = load(run)
        steps.append(saved["global_step"])
        # What the rest of the run depends on is there at the stop, or nothing would be shown.
        assert all(own["buffer"]["open"].any() for own in saved["ranks"])
        assert saved["run"]["league"]["ratings"]["learner"][1] > 0
        assert any(saved["run"]["pool"]["games"].values())
    assert steps == sorted(set(steps)) and steps[-1] < settings["total_timesteps"]
    assert steps[2] > settings["eval_interval"]
    assert resume(run) == 0
    assert_same_run(whole(name), run)
    pool = load(run)["run"]["pool"]
    if name == "rich":
        assert len(load(run)["ranks"]) == 2
        gone = pool["agents"].keys() - set(pool["copies"])
        assert gone, "a copy that has left the pool should still be playing"
    if name == "frozen":
        assert pool["next_number"] > 2


KILLED = """
import os, signal, sys
from diplomacy_engine import _files
from diplomacy_engine.learning import startup
import ppo_selfplay_diplomacy as ppo

class Dying:
    def __init__(self, file):
        self.file = file
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

writes = 0
def open_to_die(path, mode="r", *rest, **options):
    global writes
    file = open(path, mode, *rest, **options)
    writes += ".checkpoint.pt" in str(path)
    return Dying(file) if writes == {number} and ".checkpoint.pt" in str(path) else file

_files.open = open_to_die
startup.main(ppo.LEARNER_HERE, ppo.train, sys.argv[1:])
"""


def killed_while_saving(folder: Path, number: int) -> Path:
    """Return the folder of a run killed by SIGKILL halfway through its number-th checkpoint."""
    folder.mkdir()
    config = write_config(folder.parent / "tiny.toml")
    command = [sys.executable, "-c", KILLED.replace("{number}", str(number))]
    command += ["--config", config, "--runs-folder", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (run,) = folder.iterdir()
    assert list(run.glob(".checkpoint.pt.*.tmp"))
    return run


def test_resumed_after_a_kill_in_the_middle_of_a_checkpoint(whole, tmp_path):
    run = killed_while_saving(tmp_path / "runs", 2)
    saved = load(run)
    assert 200 <= saved["global_step"] < 400
    assert metrics(run)[-1]["global_step"] > saved["global_step"], "there should be lines to cut"
    (copy,) = (run / "checkpoints").iterdir()
    assert copy.read_bytes() == (run / "checkpoint.pt").read_bytes()
    assert resume(run) == 0
    assert_same_run(whole(), run)
    assert not list(run.rglob("*.tmp"))


def test_killed_in_the_middle_of_the_first_checkpoint(tmp_path, capsys):
    run = killed_while_saving(tmp_path / "runs", 1)
    refused(["--resume", str(run)], r"has no checkpoint\.pt", capsys)


def test_a_finished_run_is_resumed(copied, capsys):
    """Without more to do it stays as it is; with more --total-timesteps it goes on."""
    before, contents = load(copied), files(copied)
    assert resume(copied) == 0
    after, now = load(copied), files(copied)
    for name, content in contents.items():
        if "tfevents" not in name:  # a new writer, and nothing in it
            assert now[name] == content, name
    for name in ("model", "run", "ranks"):
        assert differences(before[name], after[name], name) == []
    assert resume(copied, "--total-timesteps", "900") == 0
    saved = load(copied)
    assert saved["global_step"] >= 900 and saved["run"]["counters"]["updates"] > 10
    assert (saved["model"]["score.weight"] != before["model"]["score.weight"]).any()
    steps = [line["global_step"] for line in metrics(copied)]
    assert steps == sorted(steps)
    # The longer run is what goes on from now: no flag is needed again.
    settings = json.loads((copied / "args.json").read_text())
    assert settings["total_timesteps"] == 900 and settings["seed"] == saved["args"]["seed"]
    assert saved["args"]["total_timesteps"] == 900


@pytest.mark.parametrize("steps", ["0", "-5"])
def test_a_resumed_run_needs_decisions(steps, copied, capsys):
    before = files(copied)
    flags = ["--resume", str(copied), "--total-timesteps", steps]
    refused(flags, "--total-timesteps must be a whole number from 1 on", capsys)
    assert files(copied) == before


@pytest.mark.parametrize("flag", ["--resume", "--start-from", "--config"])
def test_an_empty_text_is_not_as_if_nothing_was_given(flag, tmp_path, capsys):
    runs = tmp_path / "runs"
    refused([flag, "", "--runs-folder", str(runs)], f"{flag} is empty", capsys)
    assert not runs.exists()


def test_a_resumed_run_asks_for_the_gpu_again(copied, capsys):
    args = json.loads((copied / "args.json").read_text())
    (copied / "args.json").write_text(json.dumps(args | {"cuda": True}))
    assert resume(copied, "--total-timesteps", "700") == 0
    assert torch.cuda.is_available() or "no GPU was found" in capsys.readouterr().out


def test_the_copy_of_the_script_is_that_of_the_checkpoint(copied, capsys):
    script = copied / "ppo_selfplay_diplomacy.py"
    script.write_text("# as it was\n")
    edit(copied, lambda saved: saved.update(script_sha256="0" * 64))
    assert resume(copied, "--total-timesteps", "700") == 0
    assert "has changed since the last checkpoint" in capsys.readouterr().out
    assert file_sha256(script) == load(copied)["script_sha256"]


def test_interrupted_before_the_games_begin(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(startup, "new_run", interrupted)
    assert main(["--runs-folder", str(tmp_path), "--processes", "1"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize("kind", [UserError, MapError, TrainingError])
def test_ranks_can_tell_each_other_of_errors(kind):
    error = kind("somewhere", ["a reason"]) if kind is MapError else kind("a reason")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error)


@pytest.mark.parametrize(
    "flags", ["--seed 3", "--num-envs 16", "--learning-rate 0.1", "--map three --hidden 8"]
)
def test_what_may_not_change_on_resume(flags, copied, capsys):
    before = files(copied)
    name = flags.split()[0]
    refused(["--resume", str(copied), *flags.split()], f"{name}.* cannot be changed", capsys)
    assert files(copied) == before


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--map nowhere", "'?nowhere'?"),
        ("--map nowhere.toml", r"nowhere\.toml"),
        ("--reward winning", "unknown reward 'winning'"),
        ("--reward no_such_module:reward", "cannot import 'no_such_module'"),
        ("--reward score=much", "'much' is not a weight"),
        ("--pool-sampling uniform --latest-prob 0.3", "--latest-prob has no effect"),
        ("--self-play-share 2", "--self-play-share must be a number from 0 to 1"),
        ("--wandb-entity me", "--wandb-entity has no effect: it needs --track"),
        ("--kl-coef 0.5", "unknown flag --kl-coef"),
        ("--freeze-score 2", "--freeze-score must be a number from 0 to 1"),
        ("--pool-bot-prob 0.5", "--pool-bot-prob has no effect: it needs --pool-bots"),
        ("--average -1", "--average must be a number from 0 on, not '-1'"),
        ("--hidden 1000000", "--hidden 1000000 would take at least .* GiB of memory, and this"),
        ("--num-envs 1000000 --hidden 65536", "--num-envs 1000000 would take at least"),
        ("--learning-rate 1e38", "--learning-rate must be a number from 0 on"),
        ("--year-limit truncate --max-years 0", "truncate needs a year limit"),
        ("--learner-seats 3", "--learner-seats must be from 1 to 2"),
        ("--num-envs 0", "--num-envs must be a whole number from 1 to 1,000,000"),
        ("--opponent-temperature 0", "--opponent-temperature must be a number from 0.01 to 100"),
        ("--num-steps 1", "--num-steps must be a whole number from 2 to 1,000,000"),
        ("--gamma 1.5", "--gamma must be a number from 0 to 1, not '1.5'"),
        ("--clip-coef -0.1", "--clip-coef must be a number from 0 on"),
        ("--seed -1", "--seed must be a whole number from 0 on"),
        ("--seed 1e30", "--seed must be a whole number from 0 on"),
        ("--num-envs 1e20", "--num-envs must be a whole number from 1 to 1,000,000"),
        ("--hidden 1e9", "--hidden must be a whole number from 1 to 1,000,000"),
        ("--processes 1e9", "--processes must be a whole number from 1 to 1,024"),
        ("--league-games -1", "--league-games must be a whole number from 0 to 1,000,000"),
        ("--num-envs many", "--num-envs must be a whole number"),
        ("--num-env 3", "unknown flag --num-env; did you mean '--num-envs'"),
        ("--pool-sampling newest", "--pool-sampling must be one of"),
        ("--pool-bots nobody", "no player 'nobody'"),
        (
            "--pool-bots fast(assume=infer:self,hold):runs/reference/small__pure__1",
            "cannot be used here",
        ),
        ("--pool-bots fast:runs/reference/three__pure__1", "was trained on map 'three'"),
        ("--eval-bots nobody", "no player 'nobody'"),
        ("--eval-bots nash+dumbbot", "talks: that needs diplomacy_learners.press"),
        ("--exp-name a/b", "without slashes"),
        ("--runs-folder /proc/runs", "/proc/runs"),
        ("--runs-folder {config}", "not a folder|Not a directory"),
        ("--config nowhere.toml", r"nowhere\.toml cannot be read"),
        ("--resume nowhere", "--resume nowhere is not a run to continue: there is no such folder"),
        ("--resume {config}", r"tiny.toml is not a run to continue: it has no args\.json"),
        ("--eval-bots --map small", "--eval-bots is empty: name one or more of random, hold"),
        ("--eval-bots random hold random", "--eval-bots names 'random' twice"),
        (
            "--num-envs 1 --num-steps 2",
            "--num-envs 1 is too few: an update then has at most 2 decisions",
        ),
    ],
)
def test_bad_command_lines(flags, message, tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml")
    runs = tmp_path / "runs"
    argv = flags.replace("{config}", config).split()
    if "--config" not in argv and "--resume" not in argv:
        argv = ["--config", config, *argv]
    if "--runs-folder" not in argv and "--resume" not in argv:
        argv = ["--runs-folder", str(runs), *argv]
    refused(argv, message, capsys)
    assert not runs.exists() and (tmp_path / "tiny.toml").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("num_env = 8", "unknown setting 'num_env'.*num_envs"),
        ('num_envs = "eight"', "'num_envs' must be a whole number"),
        ("hidden = 3e-4", "'hidden' must be a whole number"),
        ("hidden = 0", "'hidden' must be a whole number from 1 to 1,000,000, not 0"),
        ('reward = "winning"', "unknown reward 'winning'"),
        ("gamma = ", "is not TOML"),
    ],
)
def test_bad_settings_files(line, message, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(f"{line}\n")
    runs = tmp_path / "runs"
    sentence = refused(["--config", str(path), "--runs-folder", str(runs)], message, capsys)
    if "reward" not in line:
        assert str(path) in sentence
    assert not runs.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[provinces]", "[provinces", "TOML"),
        ('ANK = "BUL GRE UKR"', 'ANK = "BUL GRE XXX"', "XXX"),
        ("victory_supply_centers = 5", "victory_supply_centers = 50", "50"),
        ('ENGLAND = ["A LON"]', 'ENGLAND = ["F LON"]', "LON"),
        (', home_of = "ENGLAND"', "", "ENGLAND.*home|home.*ENGLAND"),
        ('ENGLAND = ["A LON"]', 'FRANCE = ["A LON"]', "FRANCE"),
    ],
)
def test_malformed_map_files(old, new, message, tmp_path, capsys):
    text = SMALL_MAP.read_text()
    assert text.count(old) == 1
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new))
    runs = tmp_path / "runs"
    sentence = refused(
        ["--map", str(path), "--processes", "1", "--runs-folder", str(runs)], message, capsys
    )
    assert "mine" in sentence and not runs.exists()


def test_a_map_of_ones_own(tmp_path):
    """It is trained on, and the checkpoint goes on without the file."""
    path = tmp_path / "mine.toml"
    path.write_text(SMALL_MAP.read_text().replace('name = "small"', 'name = "mine"', 1))
    run = train(tmp_path / "runs", map=str(path), total_timesteps=100, eval_games=2)
    assert run.name.startswith("mine__")
    path.unlink()
    assert resume(run, "--total-timesteps", "200") == 0
    player = registry.load_player(run / "checkpoint.pt")
    assert player.agent.vocabulary_hash


def edit(run: Path, change) -> None:
    """Change the dictionary of a run's checkpoint."""
    saved = load(run)
    change(saved)
    torch.save(saved, run / "checkpoint.pt")


class Hostile:
    """Runs a command when it is unpickled carelessly."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


def damage_truncated(run: Path, marker: Path) -> None:
    path = run / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage_one_bit(run: Path, marker: Path) -> None:
    """Flip a bit in the middle of the greatest tensor: still a checkpoint, to torch.load."""
    path = run / "checkpoint.pt"
    with zipfile.ZipFile(path) as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
    content = bytearray(path.read_bytes())
    content[largest.header_offset + 200 + largest.file_size // 2] ^= 4
    path.write_bytes(content)


def damage_empty(run: Path, marker: Path) -> None:
    (run / "checkpoint.pt").write_bytes(b"")


def damage_hostile(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved.update(model=Hostile(marker)))


def damage_hostile_pickle(run: Path, marker: Path) -> None:
    (run / "checkpoint.pt").write_bytes(pickle.dumps({"format": 1, "model": Hostile(marker)}, 2))


def damage_no_dictionary(run: Path, marker: Path) -> None:
    torch.save([1, 2, 3], run / "checkpoint.pt")


def damage_format(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved.update(format=99))


def damage_vocabulary(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved.update(vocabulary_hash="0" * 64))


def damage_observation(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved.update(observation_version=99))


def damage_map(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved.update(map_facts=load_map("three").facts, map_name="three"))


def damage_map_facts(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved["map_facts"].update(victory_supply_centers=99))


def damage_weights(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved["model"].update({"score.weight": torch.zeros(1, 3)}))


def damage_missing_weights(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved["model"].pop("score.weight"))


def damage_missing_part(run: Path, marker: Path) -> None:
    edit(run, lambda saved: saved["run"].pop("optimizer"))


def damage_number_of_games(run: Path, marker: Path) -> None:
    args = json.loads((run / "args.json").read_text())
    (run / "args.json").write_text(json.dumps(args | {"num_envs": 16}))


def damage_unknown_setting(run: Path, marker: Path) -> None:
    args = json.loads((run / "args.json").read_text())
    (run / "args.json").write_text(json.dumps(args | {"num_env": 16}))


def damage_range(run: Path, marker: Path) -> None:
    args = json.loads((run / "args.json").read_text())
    (run / "args.json").write_text(json.dumps(args | {"gamma": 1.5}))


def damage_args(run: Path, marker: Path) -> None:
    (run / "args.json").write_text("{")


DAMAGES = {
    damage_truncated: "damaged",
    damage_one_bit: "damaged",
    damage_empty: "damaged",
    damage_hostile: "damaged, or not a checkpoint",
    damage_hostile_pickle: "damaged, or not a checkpoint",
    damage_no_dictionary: "not a checkpoint of this project",
    damage_format: "not a checkpoint of this project",
    damage_vocabulary: "another order vocabulary",
    damage_observation: "observations of version 99",
    damage_map: "does not fit|another order vocabulary",
    damage_map_facts: "99",
    damage_weights: "does not fit",
    damage_missing_weights: "does not fit",
    damage_missing_part: "cannot be continued.*optimizer",
    damage_number_of_games: "cannot be continued",
    damage_unknown_setting: r"args\.json: unknown setting 'num_env'",
    damage_range: r"args\.json: 'gamma' must be a number from 0 to 1, not 1\.5",
    damage_args: r"args\.json is not JSON",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_run_is_refused(damage, copied, tmp_path, capsys):
    marker = tmp_path / "marker"
    damage(copied, marker)
    before = files(copied)
    sentence = refused(["--resume", str(copied)], DAMAGES[damage], capsys)
    assert str(copied) in sentence
    assert files(copied) == before and not marker.exists()


@pytest.mark.slow
def test_the_checkpoint_of_another_run_is_refused(copied, whole, capsys):
    """Its map is not the one that the folder's settings are for."""
    shutil.copy(whole("rich") / "checkpoint.pt", copied / "checkpoint.pt")
    before = files(copied)
    sentence = refused(["--resume", str(copied)], "made with map 'three'.*'small'", capsys)
    assert str(copied) in sentence and files(copied) == before


HOSTILE = [
    damage
    for damage in DAMAGES
    if "args" not in DAMAGES[damage] and "continued" not in DAMAGES[damage]
]


@pytest.mark.parametrize("damage", HOSTILE, ids=lambda damage: damage.__name__)
def test_a_damaged_checkpoint_does_not_play(damage, copied, tmp_path, capsys):
    marker = tmp_path / "marker"
    damage(copied, marker)
    capsys.readouterr()
    with pytest.raises(UserError, match=DAMAGES[damage]):
        registry.load_player(copied / "checkpoint.pt")
    argv = ["evaluate", "--map", "small", "--player", str(copied), "--against", "hold"]
    assert cli.main([*argv, "--games", "2"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    assert not marker.exists()


def test_a_checkpoint_plays_its_own_map_only(copied, capsys):
    """It can be evaluated on its map, and is refused on others, by the tools and by itself."""
    argv = ["evaluate", "--player", str(copied), "--against", "hold", "--games", "2"]
    assert cli.main([*argv, "--map", "small"]) == 0
    capsys.readouterr()
    assert cli.main([*argv, "--map", "three"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "small" in err and "three" in err
    player = registry.load_player(copied / "checkpoint.pt")
    games = VectorGame("three", 1, threads=1)
    with pytest.raises(UserError, match="another map"):
        player.act(games, games.decisions())


def test_a_checkpoint_plays_as_it_was_trained(copied):
    """Loading gives the very weights; seeds and greediness make play repeatable."""
    one = registry.load_player(copied / "checkpoint.pt", seed=3)
    saved = load(copied)["model"]
    assert all(
        (saved[name] == weight).all() for name, weight in one.agent.agent.state_dict().items()
    )
    games = VectorGame("small", 30, threads=1)
    decisions = games.decisions()

    def orders(**options):
        player = registry.load_player(copied / "checkpoint.pt", **options)
        return player.act(games, decisions).reshape(30, -1)

    assert (orders(seed=3) == orders(seed=3)).all() and (orders(seed=3) != orders(seed=4)).any()
    greedy = orders(greedy=True, seed=3)
    assert (greedy == orders(greedy=True, seed=4)).all() and (greedy == greedy[0]).all()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_read_only_run_folder(copied):
    """A superuser may write anywhere, so a child process gives up that right if we have it."""
    before = files(copied)
    drop = "os.setuid(65534)" if os.getuid() == 0 else ""
    opened = [path for path in (copied, *copied.parents) if path.stat().st_uid == os.getuid()]
    modes = {path: path.stat().st_mode for path in opened if path != Path("/")}
    for path in modes:
        path.chmod(0o555)
    try:
        done = run_python(
            f"""
            import os, sys
            from diplomacy_engine.learning import startup
            import ppo_selfplay_diplomacy as ppo
            {drop}
            sys.exit(startup.main(ppo.LEARNER_HERE, ppo.train, ["--resume", {str(copied)!r}]))
            """
        )
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"error: nothing can be written in {copied}: Permission denied\n"
    assert files(copied) == before


def run_python(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=600,
    )


@contextlib.contextmanager
def small_disk(size: int | None = None):
    """Give a function that sets a limit on the size of files, which stands for a full disk; set it
    at once if `size` is given. The limit goes with the block, for pytest writes files too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def set_limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    try:
        if size is not None:
            set_limit(size)
        yield set_limit
    finally:
        set_limit(soft)


def start_refused(tmp_path: Path, message: str, capsys, **changes) -> tuple[Path, str]:
    """Check that a new run begins and ends in one sentence; return its folder and the sentence."""
    runs = tmp_path / "runs"
    config = write_config(tmp_path / "tiny.toml", **changes)
    sentence = refused(["--config", config, "--runs-folder", str(runs)], message, capsys)
    (run,) = runs.iterdir()
    return run, sentence


# TensorBoard's own thread writes the events, and complains on its own as well.
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "what",
    [
        "checkpoint",
        "metrics",
        pytest.param(
            "events",
            marks=pytest.mark.filterwarnings(
                "ignore::pytest.PytestUnhandledThreadExceptionWarning"
            ),
        ),
    ],
)
def test_full_disk(what, tmp_path, monkeypatch, capsys):
    """Whatever cannot be written, one sentence says so and the earlier checkpoint is intact."""
    earlier: dict[str, bytes] = {}
    steps, play_phase = itertools.count(1), ppo.play_phase

    def filling(*args):
        if next(steps) == 33:
            (run,) = (tmp_path / "runs").iterdir()
            assert (run / "checkpoint.pt").is_file()
            earlier.update(files(run))
            (events_file,) = run.glob("events*")
            room = {
                "checkpoint": (run / "checkpoint.pt").stat().st_size // 2,
                "metrics": (run / "metrics.jsonl").stat().st_size + 10,
                "events": events_file.stat().st_size + 10,
            }
            set_limit(room[what])
        return play_phase(*args)

    with monkeypatch.context() as patch, small_disk() as set_limit:
        patch.setattr(ppo, "play_phase", filling)
        run, sentence = start_refused(tmp_path, "File too large|no room for the whole line", capsys)
    assert str(run) in sentence
    later = files(run)
    assert later.keys() >= earlier.keys() and not list(run.rglob("*.tmp"))
    for name, content in earlier.items():
        assert later[name].startswith(content), name
    assert later["checkpoint.pt"] == earlier["checkpoint.pt"]
    assert resume(run) == 0


def test_a_full_disk_at_the_start(tmp_path, capsys):
    argv = ["--config", write_config(tmp_path / "tiny.toml")]
    with small_disk(100):
        refused([*argv, "--runs-folder", str(tmp_path / "runs")], "File too large", capsys)


def test_a_loss_that_is_not_finite(tmp_path, monkeypatch, capsys):
    """The run ends, and its last checkpoint is from before."""
    calls, loss = itertools.count(1), ppo.ppo_loss

    def poisoned(*args):
        found, figures = loss(*args)
        return (found * np.nan, figures * np.nan) if next(calls) == 25 else (found, figures)

    monkeypatch.setattr(ppo, "ppo_loss", poisoned)
    before = signal.getsignal(signal.SIGTERM)
    run, _ = start_refused(tmp_path, "not finite", capsys)
    assert signal.getsignal(signal.SIGTERM) is before, "processes started later would inherit it"
    saved = load(run)
    assert 200 <= saved["global_step"] < 600
    assert all(torch.isfinite(weight).all() for weight in saved["model"].values())
    monkeypatch.undo()
    assert resume(run) == 0


@pytest.mark.parametrize("rate", [1e7, 1e9])
def test_a_learning_rate_beyond_all_bounds(rate, tmp_path, capsys):
    """It ends the first update, also if that is the last; no checkpoint has what came of it."""
    run, sentence = start_refused(
        tmp_path,
        "not finite",
        capsys,
        learning_rate=rate,
        num_minibatches=1,
        update_epochs=1,
        save_interval=1,
        eval_interval=10**9,
    )
    kept = (run / "checkpoint.pt").exists()
    assert ("the last checkpoint is intact" in sentence) == kept
    assert not kept or all(weight.abs().max() < 1e3 for weight in load(run)["model"].values())
    assert not (run / "metrics.jsonl").exists()


def test_a_picture_never_costs_a_run(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise UserError("resvg cannot draw this picture")

    monkeypatch.setattr(run_log, "show_games", fail)
    run = train(tmp_path / "runs", total_timesteps=60, eval_bots=["hold"], league_games=0)
    note = "note: no pictures of the sample games: resvg cannot draw this picture"
    assert note in capsys.readouterr().out and (run / "checkpoint.pt").is_file()


def test_a_reward_of_ones_own_that_goes_wrong(tmp_path, monkeypatch, capsys):
    module = types.ModuleType("own_reward")
    module.flat = lambda game: np.zeros(3)
    module.infinite = lambda game: np.full(game.alive.shape, np.inf)
    module.good = lambda game: game.captured[:, None] * 1.0 + np.zeros(game.alive.shape)
    monkeypatch.setitem(sys.modules, "own_reward", module)
    module.bare = lambda: 1.0
    module.wrong = lambda game: game.center * 1.0
    for name, message in (
        ("flat", r"must return \(3, 2\) finite numbers, not \(3,\)"),
        ("infinite", r"must return \(3, 2\) finite numbers, not them"),
        ("bare", r"cannot be paid: TypeError: .* takes 0 positional arguments but 1 was given$"),
        ("wrong", r"cannot be paid: AttributeError: .* no attribute 'center'.* \(line \d+\)$"),
    ):
        runs = tmp_path / name
        argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(runs)]
        refused([*argv, "--reward", f"own_reward:{name}"], message, capsys)
        assert not runs.exists()  # nothing has begun
    run = train(tmp_path / "runs", reward="own_reward:good", total_timesteps=100, eval_games=2)
    assert load(run)["global_step"] >= 100
