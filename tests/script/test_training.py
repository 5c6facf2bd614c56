"""Whole runs through the command line: what they leave, stopping and resuming, bad luck.

Every run takes a tiny settings file of its own, so that the tuned ones may change freely.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.edits import fork_ranks
from support.maps import write_coastal_map
from support.tables import read_text, slow_but
from support.training import (
    LEARNS,
    REPOSITORY,
    SETTINGS,
    STOPPED,
    TINY,
    assert_same_run,
    differences,
    events,
    files,
    load,
    main,
    metrics,
    refused,
    resume,
    signal_others_in_step,
    state,
    stop_in_evaluation,
    stop_in_step,
    train,
    write_config,
)

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import MAP_NAMES, UserError, evaluate_player, load_map, load_player, make_bot
from diplomacy_engine._files import file_sha256
from diplomacy_engine.learning import evaluations, run_log, startup
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.probes import probe_positions
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.textgame.saved_game import read_saved_games

FEW = {"total_timesteps": 200}


def test_a_run_leaves_what_it_promises(trained):
    """The names of its files and all its figures are golden, see below."""
    run = trained()
    assert re.fullmatch(r"small__ppo_selfplay_diplomacy__1__\d+", run.name)
    args = json.loads((run / "args.json").read_text())
    assert args["num_envs"] == 8 and args["gamma"] == ppo.Args.gamma
    script = REPOSITORY / "ppo_selfplay_diplomacy.py"
    assert (run / script.name).read_bytes() == script.read_bytes()
    raw = (run / "metrics.jsonl").read_text()
    assert "charts/decisions_per_second" in raw and "timing/outside_network_share" in raw
    evaluated = [line for line in metrics(run) if "eval/random/win" in line]
    steps = [line["global_step"] for line in evaluated]
    assert len(steps) == 2 and 300 <= steps[0] < 320  # at 300, and once at the end
    for step in steps:
        found = list(read_saved_games(run / "games" / f"{step:012d}.jsonl"))
        assert found and all(game["map"] == "small" for game in found)
    best = torch.load(run / "best.pt", weights_only=True)  # by wins against the last of the bots
    won = [line["eval/hold/win"] for line in evaluated]
    assert best["global_step"] == steps[won.index(max(won))] and "run" not in best


@pytest.mark.parametrize("name", SETTINGS)
def test_every_decision_is_trained_on_once(name, trained):
    run = trained(name)
    saved, counters = load(run), load(run)["run"]["results"]["counters"]
    sizes = [line["charts/batch_size"] for line in metrics(run) if "charts/batch_size" in line]
    assert sum(sizes) == saved["global_step"] and len(sizes) == counters["updates"]
    for own in saved["ranks"]:
        assert own["buffer"]["num_decisions"] == 0 and not own["buffer"]["open"].any()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_figures_and_files_of_a_run_are_golden(name, trained, golden):
    run = trained(name)
    names = [path for path in files(run) if ".tfevents" not in path]
    tags = sorted({f"{tag}" for _, tag, _ in events(run)})
    golden(name, [*names, *tags, *map(json.dumps, metrics(run))], rel=0.01)


def test_the_average_is_what_is_frozen_evaluated_and_kept(tmp_path, monkeypatch):
    used = []  # the run, then what it freezes and evaluates

    def make(run, *rest):
        used.extend([] if used else [run])  # a later one is that of the check before it trains
        made(run, *rest)

    def freeze(pool, agent, step):
        used.extend([agent] if pool is used[0].pool else [])
        froze(pool, agent, step)

    def evaluate(game_map, player, *rest, **options):
        used.append(player.agent.agent)
        return evaluated(game_map, player, *rest, **options)

    made, froze, evaluated = ppo.Run.__init__, ppo.OpponentPool.freeze, evaluations.evaluate_player
    monkeypatch.setattr(ppo.Run, "__init__", make)
    monkeypatch.setattr(ppo.OpponentPool, "freeze", freeze)
    monkeypatch.setattr(evaluations, "evaluate_player", evaluate)
    saved = load(train(tmp_path / "runs", average_exponent=1.0, **FEW))
    run, first, *rest = used
    assert first is run.agent and len(rest) > 3 and all(agent is run.average for agent in rest)
    average, learner = dict(run.average.state_dict()), dict(run.agent.state_dict())
    assert differences(dict(saved["model"]), average) == []
    assert differences(dict(saved["run"]["agent"]), learner) == []
    assert differences(average, learner) != []


def test_evaluations_and_checkpoints_do_not_change_the_training(trained, tmp_path):
    rare = train(tmp_path / "runs", eval_interval=10**9)
    one, two = state(trained()), state(rare)
    assert differences(one["ranks"], two["ranks"]) == []
    for name in ("agent", "optimizer", "pool", "results"):
        assert differences(one["run"][name], two["run"][name], name) == []


SOON = {"total_timesteps": 4000, "learning_rate": 0.004, "num_envs": 32}
SOON |= {"num_minibatches": 8, "update_epochs": 3}


@pytest.mark.parametrize(
    ("changes", "least"),
    [(SOON | {"eval_bots": ["hold"]}, 0.6), pytest.param({}, 0.8, marks=pytest.mark.slow)],
)
def test_learning_beats_random(changes, least, tmp_path):
    def win_rate(player) -> float:
        match = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1)
        return match.result()["overall"]["win"]["value"]

    run = train(tmp_path / "runs", **LEARNS | changes)
    trained = win_rate(load_player(run / "checkpoint.pt"))
    torch.manual_seed(1)
    untrained = win_rate(policy_player(ppo.Agent(load_map("small"), 32, 2), "untrained"))
    assert wilson_interval(trained * 300, 300)[0] > least, (trained, untrained)
    assert wilson_interval(untrained * 300, 300)[1] < 0.6, (trained, untrained)


@pytest.mark.parametrize("size", [(80, 4), pytest.param((200, 8), marks=pytest.mark.slow)])
def test_a_map_of_ones_own(size, tmp_path, monkeypatch, capsys):
    """With more orders than an int16 can count; the checkpoint goes on without the map's file. Both
    times it is said if kernels of such a size are compiled."""
    monkeypatch.setattr(startup, "announce_compilation", lambda: print("compiling"))
    path = write_coastal_map(tmp_path / "coastal.toml", *size)
    settings = {"map": path, "num_envs": 4, "max_years": 2, "hidden": 8}
    run = train(tmp_path / "runs", total_timesteps=100, eval_bots=["dumbbot"], **settings)
    saved = load(run)
    assert run.name.startswith("coastal__") and "eval/dumbbot/win" in metrics(run)[-1]
    assert saved["run"]["results"]["counters"]["updates"] >= 3
    assert all(torch.isfinite(weight).all() for weight in saved["model"].values())
    Path(path).unlink()
    assert capsys.readouterr().out.count("compiling") == 1
    assert resume(run, "--total-timesteps", "150") == 0
    printed = capsys.readouterr().out
    raised = re.search(r"rate rises again, from (\S+) to (\S+), ", printed)
    assert printed.count("compiling") == 1
    assert 0 < float(raised[1]) < float(raised[2]) < load(run)["args"]["learning_rate"]
    assert load(run)["global_step"] >= 150
    assert load_player(run / "checkpoint.pt").agent.vocabulary_hash


def test_a_run_begins_with_the_policy_of_another(trained, tmp_path):
    """Whose settings are older: those that have gone do not matter, others have their defaults."""
    saved = torch.load(trained() / "checkpoint.pt", weights_only=True)
    older = tmp_path / "older.pt"
    saved["args"] |= {"gone_since": 0.5}
    del saved["args"]["average_exponent"]
    torch.save(saved, older)
    flags = "--start-from", str(older), "--learning-rate", "0"
    run = load(train(tmp_path / "runs", *flags, **FEW))
    for found in (run["model"], run["run"]["pool"]["agents"][1]):
        assert differences(dict(found), dict(saved["model"])) == []
    assert run["args"]["start_from"] == str(older)


@pytest.mark.parametrize("name", slow_but(["rich"], SETTINGS))
def test_resumed_equals_uninterrupted(name, trained, tmp_path, monkeypatch, capsys):
    """Where there are two processes, the signal is sent to the second: none of them is left."""
    fork_ranks(monkeypatch)  # the whole run's are started as users' are
    torch.rand(7)  # what this process has drawn before does not matter
    np.random.rand(7)
    changes, folder, steps = SETTINGS[name], None, [0]
    for number in (12,) if name == "rich" else (3, 55, 2):  # two processes take long to start
        with monkeypatch.context() as patch:
            others = []
            if name == "rich":
                others = signal_others_in_step(patch, number, signal.SIGTERM)
            else:
                stop_in_step(patch, number)
            if folder is None:
                folder = train(tmp_path / "runs", status=STOPPED, **changes)
            else:
                assert resume(folder) == STOPPED
        assert not multiprocessing.active_children() and len(others) == (name == "rich")
        for process in others:
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)
        saved = load(folder)
        steps.append(saved["global_step"])
    assert f"--resume {folder}" in capsys.readouterr().out
    # What the rest of the run depends on is there at the stop, or nothing would be shown.
    assert all(own["buffer"]["open"].any() for own in saved["ranks"])
    assert any(saved["run"]["pool"]["games"].values())
    settings = TINY | changes
    assert steps == sorted(set(steps))
    assert settings["eval_interval"] < steps[-1] < settings["total_timesteps"]
    assert resume(folder) == 0
    assert_same_run(trained(name), folder)


class Looking:
    """Plays at random, and sees all that came before in its games."""

    name = "looking"

    def __init__(self, *_: object, **settings: object): ...

    def act(self, games, decisions):
        year, phase = games.state.year[decisions.game], games.state.phase[decisions.game]
        played = 2 * (year - games.board.first_year) + (phase > 0) + (phase > 2)
        assert (games.history.count[decisions.game] == played).all()
        return ppo.RANDOM_BOT.act(games, decisions)


@pytest.mark.parametrize(
    ("owner", "where"),
    slow_but([(engine, "ask_player")], [(engine, "ask_player"), (evaluations, "evaluate_player")]),
)
def test_a_bot_that_fails_loses_nothing(owner, where, tmp_path, monkeypatch, capsys):
    """In the games or in an evaluation; a run that goes on once the bot works again is the same,
    and the bot sees there what came before."""
    for module in (engine, evaluations):
        monkeypatch.setattr(module, "load_player", Looking)
    changes = {"pool_bots": ["hold"], "pool_bot_prob": 0.5}
    changes |= {"total_timesteps": 200, "eval_interval": 150}
    whole = train(tmp_path / "whole", **changes)
    calls, original = itertools.count(1), getattr(owner, where)

    def failing(*args, **options):
        if next(calls) == (20 if where == "ask_player" else 2):
            raise UserError("hold: it has died")
        return original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, failing)
        run = train(tmp_path / "runs", status=2, **changes)
    assert re.search("it has died.*checkpoint", capsys.readouterr().err)
    assert 0 < load(run)["global_step"] < 200
    assert resume(run) == 0
    assert_same_run(whole, run)


STOPS = {1: signal.SIGHUP, 2: signal.SIGINT, 3: signal.SIGINT}


@pytest.mark.parametrize(
    ("name", "numbers"),
    slow_but([("plain", (2,))], [("plain", (2,)), ("plain", (1, 2)), ("rich", (1, 3))]),
)
def test_an_evaluation_is_broken_off_and_done_anew(
    name, numbers, trained, tmp_path, monkeypatch, capsys
):
    """The last, or first another, against the second of its bots; nothing of it is logged."""
    for map_name in MAP_NAMES:  # whose steps would count as the evaluation's
        probe_positions(load_map(map_name))
    fork_ranks(monkeypatch)
    folder, total = None, (TINY | SETTINGS[name])["total_timesteps"]
    for number in numbers:
        with monkeypatch.context() as patch:
            stop_in_evaluation(patch, 2 * number, STOPS[number])
            if folder is None:
                folder = train(tmp_path / "runs", status=STOPPED, **SETTINGS[name])
            else:
                assert resume(folder) == STOPPED
        assert f"--resume {folder}" in capsys.readouterr().out
        saved = load(folder)
        evaluated = [line for line in metrics(folder) if "eval/hold/win" in line]
        assert len(evaluated) == saved["run"]["evaluations"] == number - 1
    assert saved["global_step"] >= total > saved["run"]["evaluated_at"] > 0
    assert resume(folder) == 0
    assert_same_run(trained(name), folder)


@pytest.mark.slow
def test_resumed_after_a_kill_in_the_middle_of_a_checkpoint(trained, tmp_path):
    """By SIGKILL, halfway through the second; the copy of the first has gone, too."""
    runs = tmp_path / "runs"
    config = write_config(tmp_path / "tiny.toml", **SETTINGS["plain"])
    words = "--config", config, "--runs-folder", str(runs)
    done = subprocess.run(
        [sys.executable, "-c", read_text(__file__, "killed.py.txt"), *words],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    (run,) = runs.iterdir()
    saved, content = load(run), (run / "checkpoint.pt").read_bytes()
    assert list(run.glob(".checkpoint.pt.*.tmp")) and 200 <= saved["global_step"] < 400
    assert metrics(run)[-1]["global_step"] > saved["global_step"], "there should be lines to cut"
    (first,) = (run / "checkpoints").iterdir()
    assert first.read_bytes() == content
    first.rename(first.with_name(f".{first.name}.77.tmp"))
    assert resume(run) == 0
    assert_same_run(trained(), run)
    assert first.read_bytes() == content and not list(run.rglob("*.tmp"))
    *_, last = sorted((run / "checkpoints").iterdir())
    assert last.samefile(run / "checkpoint.pt")


def test_a_finished_run_is_resumed(copied, capsys):
    """Without more to do it says so and stays as it is; with more --total-timesteps it goes on.

    Then it asks for a GPU again, and the copy of its script becomes that of the checkpoint.
    """
    before, contents = load(copied), files(copied)
    assert resume(copied) == 0
    assert "--total-timesteps" in capsys.readouterr().out
    after, now = load(copied), files(copied)
    for name, content in contents.items():
        if "tfevents" not in name:  # a new writer, and nothing in it
            assert now[name] == content, name
    for name in ("model", "run", "ranks"):
        assert differences(before[name], after[name], name) == []

    args, script = copied / "args.json", copied / "ppo_selfplay_diplomacy.py"
    args.write_text(json.dumps(json.loads(args.read_text()) | {"cuda": True}))
    script.write_text("# as it was\n")
    path = copied / "checkpoint.pt"
    torch.save(torch.load(path, weights_only=True) | {"script_sha256": "0" * 64}, path)
    assert resume(copied, "--total-timesteps", "700") == 0
    said, saved = capsys.readouterr().out, load(copied)
    assert torch.cuda.is_available() or "no GPU was found" in said
    assert f"note: {script.name}" in said and file_sha256(script) == saved["script_sha256"]
    assert saved["global_step"] >= 700 and differences(before["model"], saved["model"]) != []
    steps = [line["global_step"] for line in metrics(copied)]
    assert steps == sorted(steps)
    # The longer run is what goes on from now: no flag is needed again.
    assert json.loads(args.read_text())["total_timesteps"] == 700
    assert saved["args"]["total_timesteps"] == 700


def test_one_process_at_a_time(copied, capsys):
    holder, before = RunFolder.open(copied), files(copied)
    refused(["--resume", str(copied)], "another process", str(copied), capsys=capsys)
    assert files(copied) == before
    holder.close()
    assert resume(copied) == resume(copied) == 0


def test_interrupted_before_the_games_begin(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(startup, "new_run", interrupted)
    assert main(["--runs-folder", str(tmp_path), "--processes", "1"]) == STOPPED
    assert capsys.readouterr().err == "error: interrupted\n"


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


# TensorBoard's own thread writes the events, and complains on its own as well.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("checkpoint.pt", "File too large"),
        pytest.param("events*", "run", marks=pytest.mark.slow),
        pytest.param("", "not finite", marks=pytest.mark.slow),
    ],
)
def test_what_ends_a_run(what, word, tmp_path, monkeypatch, capsys):
    """A disk that is full for one of its files, or a loss: it says so, and is resumed later."""
    runs, earlier, losses = tmp_path / "runs", {}, ppo.ppo_loss
    steps, pay_learner = itertools.count(1), ppo.pay_learner

    def poisoned(*args):
        loss, metrics = losses(*args)
        return loss * np.nan, {name: value * np.nan for name, value in metrics.items()}

    def failing(*args):
        if next(steps) == 33:
            (run,) = runs.iterdir()
            earlier.update(files(run))
            if what:
                (full,) = run.glob(what)
                set_limit(full.stat().st_size // (2 if what == "checkpoint.pt" else 1) + 10)
            else:
                patch.setattr(ppo, "ppo_loss", poisoned)
        return pay_learner(*args)

    before = signal.getsignal(signal.SIGTERM)
    config = write_config(tmp_path / "tiny.toml", eval_interval=200)
    argv = ["--config", config, "--runs-folder", str(runs)]
    with monkeypatch.context() as patch, small_disk() as set_limit:
        patch.setattr(ppo, "pay_learner", failing)
        refused(argv, word, "the last checkpoint is intact", capsys=capsys)
    assert signal.getsignal(signal.SIGTERM) is before, "processes started later would inherit it"
    (run,) = runs.iterdir()
    later = files(run)
    assert later.keys() >= earlier.keys() and not list(run.rglob("*.tmp"))
    for name, content in earlier.items():
        assert later[name].startswith(content), name
    assert later["checkpoint.pt"] == earlier["checkpoint.pt"]
    assert resume(run) == 0


def test_a_full_disk_at_the_start(tmp_path, capsys):
    argv = ["--config", write_config(tmp_path / "tiny.toml")]
    with small_disk(100):
        refused([*argv, "--runs-folder", str(tmp_path / "runs")], "File too large", capsys=capsys)


def test_a_picture_never_costs_a_run(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise UserError("resvg cannot draw this picture")

    monkeypatch.setattr(run_log, "show_games", fail)
    run = train(tmp_path / "runs", total_timesteps=60, eval_bots=["hold"], capture_games=1)
    assert "resvg cannot draw this picture" in capsys.readouterr().out
    assert (run / "checkpoint.pt").is_file()
