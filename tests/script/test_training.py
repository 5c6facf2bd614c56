"""Whole runs through the command line: what they leave, seeds, stopping and resuming, bad luck.

Every run takes a tiny settings file of its own, so that the tuned ones may change freely.
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
from pathlib import Path

import numpy as np
import pytest
import torch
from support.training import (
    REPOSITORY,
    SETTINGS,
    SMALL_MAP,
    STOPPED,
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
from diplomacy_engine.learning import evaluations, frozen, registry, run_log, startup
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.ranks import TrainingError
from diplomacy_engine.matches.evaluation import evaluate_player
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.names import short_names
from diplomacy_engine.rules.map import MapError, load_map

FEW = {"total_timesteps": 200, "eval_games": 2}


@pytest.fixture
def copied(trained, tmp_path):
    """A finished tiny run, to change."""
    return Path(shutil.copytree(trained(), tmp_path / "copied"))


# --- Whole runs -----------------------------------------------------------------------------------


def test_a_run_leaves_what_it_promises(trained):
    run = trained()
    assert re.fullmatch(r"small__ppo_selfplay_diplomacy__1__\d+", run.name)
    args = json.loads((run / "args.json").read_text())
    assert args["num_envs"] == 8 and args["gamma"] == ppo.Args.gamma
    script = REPOSITORY / "ppo_selfplay_diplomacy.py"
    assert (run / script.name).read_bytes() == script.read_bytes()
    saved = load(run)
    assert saved["global_step"] == saved["run"]["results"]["counters"]["global_step"] >= 600
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
    raw = (run / "metrics.jsonl").read_text()
    assert "charts/decisions_per_second" in raw and "timing/outside_network_share" in raw
    evaluated = [line["global_step"] for line in lines if "eval/random/win" in line]
    assert len(evaluated) == 2 and 300 <= evaluated[0] < 320  # at 300, and once at the end
    assert "eval/lookahead/win" in lines[-1] and "eval/lookahead/win" not in set().union(
        *lines[:-1]
    )
    kept = {f"{step:012d}.{kind}" for step in evaluated for kind in ("jsonl", "html")}
    assert kept == set(games(run))
    for step in evaluated:
        found = list(read_saved_games(run / "games" / f"{step:012d}.jsonl"))
        assert found and all(game["map"] == "small" for game in found)
    tags = {tag for _, tag, _ in events(run)}
    assert {"settings/text_summary", "custom_scalars__config__"} <= tags
    assert {name for name in names if "/" in name} <= tags | {"charts/decisions_per_second"}
    rates = [line["charts/learning_rate"] for line in lines if "charts/learning_rate" in line]
    assert rates == sorted(rates, reverse=True) and 0 < rates[-1] < rates[0] / 3
    assert 0.9e-3 < rates[0] <= 1e-3


def test_the_best_policy_is_kept(trained):
    """By what it wins against the last of --eval-bots."""
    run, won = trained(), {}
    for line in metrics(run):
        if "eval/hold/win" in line:
            won.setdefault(line["eval/hold/win"], line["global_step"])
    best = torch.load(run / "best.pt", weights_only=True)
    assert best["global_step"] == won[max(won)] and "run" not in best


def test_the_same_seed_gives_the_same_run(trained, tmp_path):
    torch.rand(7)
    np.random.rand(7)
    again = train(tmp_path / "runs")
    assert_same_run(trained(), again)
    other = train(tmp_path / "runs", "--seed", "2", **FEW)
    assert (load(other)["model"]["score.weight"] != load(again)["model"]["score.weight"]).any()
    one, two = (load(run)["ranks"][0]["games"]["row_seed"] for run in (again, other))
    assert (one != two).any() and metrics(other)[0] != metrics(again)[0]


def test_the_average_is_what_is_frozen_evaluated_and_kept(tmp_path, monkeypatch):
    runs, evaluated, copied = [], [], []

    def made(run, *args, **kwargs):
        runs.append(run)
        return original(run, *args, **kwargs)

    original, freeze = ppo.Run.__init__, frozen.frozen_copy
    evaluate = evaluations.evaluate_player
    monkeypatch.setattr(ppo.Run, "__init__", made)
    monkeypatch.setattr(frozen, "frozen_copy", lambda agent: copied.append(agent) or freeze(agent))
    monkeypatch.setattr(
        evaluations,
        "evaluate_player",
        lambda game_map, player, *args, **kwargs: (
            evaluated.append(player.agent.agent) or evaluate(game_map, player, *args, **kwargs)
        ),
    )
    folder = train(tmp_path / "runs", average_power=1.0)
    (run,) = runs
    assert evaluated and all(agent is run.average for agent in evaluated)
    # At the start the agent is the average itself and the pool's first copy.
    assert len(copied) > 4 and all(agent is run.average for agent in copied[2:])
    saved, average, learner = load(folder), run.average.state_dict(), run.agent.state_dict()
    assert differences(dict(saved["model"]), dict(average)) == []
    assert differences(dict(saved["run"]["agent"]), dict(learner)) == []
    assert differences(dict(average), dict(learner)) != []


def test_evaluations_and_checkpoints_do_not_change_the_training(trained, tmp_path):
    rare = train(tmp_path / "runs", eval_interval=10**9, save_interval=10**9, eval_games=2)
    one, two = state(trained()), state(rare)
    assert differences(one["ranks"], two["ranks"]) == []
    for name in ("agent", "optimizer", "pool", "results"):
        assert differences(one["run"][name], two["run"][name], name) == []


def test_any_player_is_evaluated_against(tmp_path):
    """A checkpoint and a search on it, too; and the run can be resumed."""
    policy = str(REPOSITORY / "runs" / "reference" / "small__pure__1")
    bots = ["hold", policy, f"fast(candidates=2 draws=4 profiles=2):{policy}"]
    run = train(tmp_path / "runs", eval_bots=bots, **FEW)
    for name in short_names(bots):
        assert 0 <= metrics(run)[-1][f"eval/{name}/win"] <= 1
    assert resume(run, "--total-timesteps", "300") == 0


@pytest.mark.parametrize("name", SETTINGS)
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
    counters = saved["run"]["results"]["counters"]
    assert sum(sizes) == saved["global_step"] and len(sizes) == counters["updates"]
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
    assert wilson_interval(trained * 300, 300)[0] > 0.8, (trained, untrained)
    assert wilson_interval(untrained * 300, 300)[1] < 0.6, (trained, untrained)


def win_rate(player) -> float:
    found = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1).result()
    return found["overall"]["win"]["value"]


def test_a_map_of_ones_own(tmp_path):
    """It is trained on, and the checkpoint goes on without the file."""
    path = tmp_path / "mine.toml"
    path.write_text(SMALL_MAP.read_text().replace('name = "small"', 'name = "mine"', 1))
    run = train(tmp_path / "runs", map=str(path), total_timesteps=100, eval_games=2)
    assert run.name.startswith("mine__")
    path.unlink()
    assert resume(run, "--total-timesteps", "150") == 0
    assert registry.load_player(run / "checkpoint.pt").agent.vocabulary_hash


def test_a_run_begins_with_the_policy_of_another(trained, tmp_path):
    """Whose settings are older: those that have gone do not matter, others have their defaults."""
    saved = load(trained())
    saved["args"] |= {"gone_since": 0.5}
    del saved["args"]["average_power"]
    torch.save(saved, tmp_path / "older.pt")
    flags = "--start-from", str(tmp_path / "older.pt")
    still, moving = (
        load(train(tmp_path / "runs", *flags, "--learning-rate", rate, **FEW))
        for rate in ("0", "1e-3")
    )
    before = dict(saved["model"])
    assert differences(dict(still["model"]), before) == []
    assert differences(dict(still["run"]["pool"]["agents"][1]), before) == []
    assert still["args"]["start_from"] == str(tmp_path / "older.pt")
    assert differences(dict(moving["model"]), before) != []


# --- Stopping and resuming ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_resumed_equals_uninterrupted(name, trained, tmp_path, monkeypatch, capsys):
    """Stopped before and after evaluations, and resumed: identical bit for bit."""
    with monkeypatch.context() as patch:
        stop_in_step(patch, 3)
        run = train(tmp_path / "runs", status=STOPPED, **SETTINGS[name])
    assert f"--resume {run}" in capsys.readouterr().out
    steps = [0, load(run)["global_step"]]
    for number in (11,) if name == "rich" else (55, 2):  # each start of two processes takes long
        with monkeypatch.context() as patch:
            stop_in_step(patch, number)
            assert resume(run) == STOPPED
        saved = load(run)
        steps.append(saved["global_step"])
        # What the rest of the run depends on is there at the stop, or nothing would be shown.
        assert all(own["buffer"]["open"].any() for own in saved["ranks"])
        assert any(saved["run"]["pool"]["games"].values())
    settings = TINY | SETTINGS[name]
    assert steps == sorted(set(steps)) and steps[-1] < settings["total_timesteps"]
    assert steps[2] > settings["eval_interval"]
    assert resume(run) == 0
    assert_same_run(trained(name), run)
    if name == "rich":
        pool = load(run)["run"]["pool"]
        assert len(load(run)["ranks"]) == 2
        gone = pool["agents"].keys() - set(pool["copies"])
        assert gone, "a copy that has left the pool should still be playing"


KILLED = """
import os, signal, sys
from support.training import main
from diplomacy_engine import _files

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
main(sys.argv[1:])
"""


def run_python(code: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *words],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def killed_while_saving(folder: Path, number: int) -> Path:
    """Return the folder of a run killed by SIGKILL halfway through its number-th checkpoint."""
    folder.mkdir()
    words = "--config", write_config(folder.parent / "tiny.toml"), "--runs-folder", str(folder)
    done = run_python(KILLED.replace("{number}", str(number)), *words)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (run,) = folder.iterdir()
    assert list(run.glob(".checkpoint.pt.*.tmp"))
    return run


def test_resumed_after_a_kill_in_the_middle_of_a_checkpoint(trained, tmp_path):
    run = killed_while_saving(tmp_path / "runs", 2)
    saved = load(run)
    assert 200 <= saved["global_step"] < 400
    assert metrics(run)[-1]["global_step"] > saved["global_step"], "there should be lines to cut"
    (copy,) = (run / "checkpoints").iterdir()
    assert copy.read_bytes() == (run / "checkpoint.pt").read_bytes()
    assert resume(run) == 0
    assert_same_run(trained(), run)
    assert not list(run.rglob("*.tmp"))


def test_killed_in_the_middle_of_the_first_checkpoint(tmp_path, capsys):
    run = killed_while_saving(tmp_path / "runs", 1)
    refused(["--resume", str(run)], str(run), "has no checkpoint.pt", capsys=capsys)


def test_a_copy_that_a_kill_prevented_is_made_on_resume(copied):
    saved = load(copied)
    newest = copied / "checkpoints" / f"{saved['global_step']:012d}.pt"
    content = newest.read_bytes()
    newest.unlink()
    (copied / "checkpoints" / f".{newest.name}.77.tmp").write_bytes(b"half")
    assert resume(copied, "--total-timesteps", str(saved["global_step"] + 20)) == 0
    assert newest.read_bytes() == content
    *_, last = sorted((copied / "checkpoints").iterdir())
    assert last.samefile(copied / "checkpoint.pt") and not list(copied.rglob("*.tmp"))


def test_a_finished_run_is_resumed(copied, capsys):
    """Without more to do it says so and stays as it is; with more --total-timesteps it goes on."""
    before, contents = load(copied), files(copied)
    assert resume(copied) == 0
    assert "--total-timesteps" in capsys.readouterr().out
    after, now = load(copied), files(copied)
    for name, content in contents.items():
        if "tfevents" not in name:  # a new writer, and nothing in it
            assert now[name] == content, name
    for name in ("model", "run", "ranks"):
        assert differences(before[name], after[name], name) == []
    assert resume(copied, "--total-timesteps", "900") == 0
    saved = load(copied)
    assert saved["global_step"] >= 900
    assert (saved["model"]["score.weight"] != before["model"]["score.weight"]).any()
    steps = [line["global_step"] for line in metrics(copied)]
    assert steps == sorted(steps)
    # The longer run is what goes on from now: no flag is needed again.
    settings = json.loads((copied / "args.json").read_text())
    assert settings["total_timesteps"] == 900 and settings["seed"] == saved["args"]["seed"]
    assert saved["args"]["total_timesteps"] == 900


def test_a_resumed_run_asks_for_the_gpu_again(copied, capsys):
    args = json.loads((copied / "args.json").read_text())
    (copied / "args.json").write_text(json.dumps(args | {"cuda": True}))
    assert resume(copied, "--total-timesteps", "700") == 0
    assert torch.cuda.is_available() or "no GPU was found" in capsys.readouterr().out


def test_the_copy_of_the_script_is_that_of_the_checkpoint(copied, capsys):
    script = copied / "ppo_selfplay_diplomacy.py"
    script.write_text("# as it was\n")
    saved = load(copied) | {"script_sha256": "0" * 64}
    torch.save(saved, copied / "checkpoint.pt")
    assert resume(copied, "--total-timesteps", "700") == 0
    assert f"note: {script.name}" in capsys.readouterr().out
    assert file_sha256(script) == load(copied)["script_sha256"]


def test_one_process_at_a_time(copied, capsys):
    """A lock does not outlive its process, nor a run."""
    code = f"""
    import sys
    from diplomacy_engine.learning.run_folder import RunFolder
    folder = RunFolder.open({str(copied)!r})
    print("locked", flush=True)
    sys.stdin.readline()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "locked\n"
        before = files(copied)
        refused(["--resume", str(copied)], "another process", str(copied), capsys=capsys)
        assert files(copied) == before
    finally:
        holder.kill()
        holder.communicate()
    assert resume(copied) == resume(copied) == 0


def test_interrupted_before_the_games_begin(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(startup, "new_run", interrupted)
    assert main(["--runs-folder", str(tmp_path), "--processes", "1"]) == STOPPED
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize("kind", [UserError, MapError, TrainingError])
def test_ranks_can_tell_each_other_of_errors(kind):
    error = kind("somewhere", ["a reason"]) if kind is MapError else kind("a reason")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error)


# --- What a checkpoint keeps ----------------------------------------------------------------------


class Curious(ppo.Run):
    """A run with a network more, which learns by an optimizer of its own, as a curiosity does."""

    def __init__(self, setup, ranks):
        super().__init__(setup, ranks)
        self.curiosity = torch.nn.Linear(4, 4)
        self.curiosity_optimizer = torch.optim.Adam(self.curiosity.parameters(), 1e-2)

    def values_of(self, rows, powers):
        """Take a step: it depends on the random numbers, the weights and Adam's moments."""
        self.curiosity_optimizer.zero_grad()
        self.curiosity(torch.rand(4)).square().sum().backward()
        self.curiosity_optimizer.step()
        return super().values_of(rows, powers)


def test_what_a_changed_run_has_more_is_kept(tmp_path, monkeypatch):
    """Without being named anywhere; the resumed run equals the unbroken one bit for bit."""
    monkeypatch.setattr(ppo, "Run", Curious)
    changes = {"year_limit": "truncate", "max_years": 2, "total_timesteps": 300}
    whole = train(tmp_path / "whole", **changes)
    kept = load(whole)["run"]
    assert kept["curiosity_optimizer"]["state"][0]["step"] > 3
    with monkeypatch.context() as patch:
        stop_in_step(patch, 20)
        stopped = train(tmp_path / "stopped", status=STOPPED, **changes)
    before = load(stopped)["run"]["curiosity_optimizer"]["state"][0]["step"]
    assert 0 < before < kept["curiosity_optimizer"]["state"][0]["step"]
    assert resume(stopped) == 0
    assert_same_run(whole, stopped)


def test_what_cannot_be_kept_is_named_at_the_start(tmp_path, monkeypatch, capsys):
    class Unkept(ppo.Run):
        def __init__(self, setup, ranks):
            super().__init__(setup, ranks)
            self.opened = {"here": object()}

    monkeypatch.setattr(ppo, "Run", Unkept)
    runs = tmp_path / "runs"
    argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(runs)]
    refused(argv, "run.opened.here", "object", "REBUILT", capsys=capsys)
    assert not runs.exists()
    Unkept.REBUILT = (*ppo.Run.REBUILT, "opened")
    assert "opened" not in load(train(runs, **FEW))["run"]


# --- A checkpoint plays ---------------------------------------------------------------------------


def test_a_checkpoint_plays_its_own_map_only(trained, capsys):
    """It can be evaluated on its map, and is refused on others, by the tools and by itself."""
    argv = ["evaluate", "--player", str(trained()), "--against", "hold", "--games", "2"]
    assert cli.main([*argv, "--map", "small"]) == 0
    capsys.readouterr()
    assert cli.main([*argv, "--map", "three"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "small" in err and "three" in err
    player = registry.load_player(trained() / "checkpoint.pt")
    games = VectorGame("three", 1, threads=1)
    with pytest.raises(UserError, match="another map"):
        player.act(games, games.decisions())


def test_a_checkpoint_plays_as_it_was_trained(trained):
    """Loading gives the very weights; seeds and greediness make play repeatable."""
    path = trained() / "checkpoint.pt"
    one = registry.load_player(path, seed=3)
    saved = load(trained())["model"]
    assert all(
        (saved[name] == weight).all() for name, weight in one.agent.agent.state_dict().items()
    )
    games = VectorGame("small", 30, threads=1)
    decisions = games.decisions()

    def orders(**options):
        player = registry.load_player(path, **options)
        return player.act(games, decisions).reshape(30, -1)

    assert (orders(seed=3) == orders(seed=3)).all() and (orders(seed=3) != orders(seed=4)).any()
    greedy = orders(greedy=True, seed=3)
    assert (greedy == orders(greedy=True, seed=4)).all() and (greedy == greedy[0]).all()


# --- Bad luck -------------------------------------------------------------------------------------


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
            from support.training import main
            {drop}
            sys.exit(main(["--resume", {str(copied)!r}]))
            """
        )
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"error: nothing can be written in {copied}: Permission denied\n"
    assert files(copied) == before


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


def start_refused(tmp_path: Path, *words: str, capsys, **changes) -> tuple[Path, str]:
    """Check that a new run begins and ends in one sentence; return its folder and the sentence."""
    runs = tmp_path / "runs"
    config = write_config(tmp_path / "tiny.toml", **changes)
    said = refused(["--config", config, "--runs-folder", str(runs)], *words, capsys=capsys)
    (run,) = runs.iterdir()
    return run, said


# TensorBoard's own thread writes the events, and complains on its own as well.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("what", ["checkpoint", "metrics", "events"])
def test_full_disk(what, tmp_path, monkeypatch, capsys):
    """Whatever cannot be written, one sentence says so and the earlier checkpoint is intact."""
    earlier: dict[str, bytes] = {}
    steps, pay_learner = itertools.count(1), ppo.pay_learner

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
        return pay_learner(*args)

    with monkeypatch.context() as patch, small_disk() as set_limit:
        patch.setattr(ppo, "pay_learner", filling)
        run, said = start_refused(tmp_path, "the last checkpoint is intact", capsys=capsys)
    assert str(run) in said and ("File too large" in said or "no room" in said)
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


def test_a_loss_that_is_not_finite(tmp_path, monkeypatch, capsys):
    """The run ends, and its last checkpoint is from before."""
    calls, loss = itertools.count(1), ppo.ppo_loss

    def poisoned(*args):
        found, figures = loss(*args)
        return (found * np.nan, figures * np.nan) if next(calls) == 25 else (found, figures)

    monkeypatch.setattr(ppo, "ppo_loss", poisoned)
    before = signal.getsignal(signal.SIGTERM)
    run, _ = start_refused(tmp_path, "not finite", capsys=capsys)
    assert signal.getsignal(signal.SIGTERM) is before, "processes started later would inherit it"
    saved = load(run)
    assert 200 <= saved["global_step"] < 600
    assert all(torch.isfinite(weight).all() for weight in saved["model"].values())
    monkeypatch.undo()
    assert resume(run) == 0


@pytest.mark.parametrize("rate", [1e7, 1e9])
def test_a_learning_rate_beyond_all_bounds(rate, tmp_path, capsys):
    """It ends the first update, also if that is the last; no checkpoint has what came of it."""
    changes = {"learning_rate": rate, "num_minibatches": 1, "update_epochs": 1}
    changes |= {"save_interval": 1, "eval_interval": 10**9}
    run, said = start_refused(tmp_path, "not finite", capsys=capsys, **changes)
    kept = (run / "checkpoint.pt").exists()
    assert ("the last checkpoint is intact" in said) == kept
    assert not kept or all(weight.abs().max() < 1e3 for weight in load(run)["model"].values())
    assert not (run / "metrics.jsonl").exists()


def test_a_picture_never_costs_a_run(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise UserError("resvg cannot draw this picture")

    monkeypatch.setattr(run_log, "show_games", fail)
    run = train(tmp_path / "runs", total_timesteps=60, eval_bots=["hold"])
    assert "resvg cannot draw this picture" in capsys.readouterr().out
    assert (run / "checkpoint.pt").is_file()
