"""What a run cannot begin or go on with: each is refused by name, with exit status 2, at once.

Nothing is written then. A table has what is said on a command line, in a settings file or in a run
folder, and the words that must occur in the answer.
"""

import json
import os
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from support.training import REPOSITORY, SMALL_MAP, files, load, refused, train, write_config

from diplomacy_engine.learning.ranks import Ranks

KEPT = "runs/reference/small__pure__1"
FLAGS = [
    # tyro's
    ("--num-env 3", "--num-env, 3", "--num-envs INT"),
    ("--kl-coef 0.5", "--kl-coef"),
    ("--num-envs many", "--num-envs", "'many'"),
    ("--total-timesteps 1.5", "--total-timesteps", "'1.5'"),
    ("--pool-sampling newest", "--pool-sampling", "'pfsp'"),
    ("small", "small"),
    # ranges
    ("--num-envs 0", "--num-envs: ", ">= 1"),
    ("--num-envs -1", "--num-envs: ", ">= 1"),
    ("--num-envs 1e20", "--num-envs: ", "<= 1000000"),
    ("--num-steps 1", "--num-steps: ", ">= 2"),
    ("--gamma 1.5", "--gamma: ", "<= 1"),
    ("--opponent-temperature 0", "--opponent-temperature: "),
    ("--learning-rate 1e38", "--learning-rate: "),
    ("--learning-rate nan", "--learning-rate: ", "finite"),
    ("--seed 1e30", "--seed: "),
    ("--target-kl -1", "--target-kl: "),
    ("--average-power -1", "--average-power: "),
    # words of other programs, and what is easily mistaken
    ("--batch-size 256", "--batch-size", "--num-envs and --num-steps"),
    ("--anneal-lr maybe", "maybe"),
    ("--map configs/three.toml", "--map configs/three.toml", "--config configs/three.toml"),
    ("--config small", "settings file small", "--map small"),
    ("--config small_dumbbot", "small_dumbbot", "configs/small_dumbbot.toml"),
    ("--config nowhere.toml", "nowhere.toml"),
    ("--config ", "--config is empty"),
    ("--start-from ", "--start-from is empty"),
    ("--resume ", "--resume is empty"),
    ("--resume nowhere", "--resume nowhere", "no such folder"),
    ("--resume {config}", "tiny.toml", "args.json"),
    ("--resume small-pure-1", "--resume small-pure-1", "--start-from small-pure-1"),
    (f"--resume {KEPT}", f"--start-from {KEPT}"),
    ("--resume {run}/games", "{run}/games", "did you mean the folder above"),
    # players
    ("--pool-bots dumbbot,random", "--pool-bots 'dumbbot,random'", "spaces"),
    ("--pool-bots nobody", "'nobody'"),
    ("--eval-bots nobody", "'nobody'"),
    ("--eval-bots random hold random", "--eval-bots", "'random' twice"),
    ("--eval-bots nash+dumbbot", "--eval-bots 'nash+dumbbot'", "diplomacy_learners.press"),
    ("--pool-bots nash+dumbbot", "--pool-bots 'nash+dumbbot'"),
    (f"--pool-bots fast(assume=infer:self,hold):{KEPT}", "--pool-bots", "infer:"),
    ("--pool-bots fast:runs/reference/three__pure__1", "map 'three'"),
    # against the map, each other, or what this machine has
    ("--map nowhere", "'nowhere'"),
    ("--reward winning", "'winning'"),
    ("--reward no_such_module:reward", "no_such_module"),
    ("--reward score=much", "'much'"),
    ("--learner-seats 3", "--learner-seats", "1 to 2"),
    ("--year-limit truncate --max-years 0", "--year-limit truncate", "--max-years"),
    ("--num-envs 1 --processes 2", "--num-envs 1", "2 processes"),
    ("--num-envs 1 --num-steps 2 --num-minibatches 2", "--num-envs 1", "--num-minibatches"),
    ("--hidden 1000000", "--hidden 1000000", "memory"),
    ("--num-envs 1000000 --hidden 65536", "--num-envs 1000000", "memory"),
    ("--exp-name a/b", "'a/b'"),
    ("--runs-folder {config}", "{config} is a file"),
    ("--runs-folder {config}/runs --processes 2", "{config} is a file"),
    # another's policy to begin with
    ("--start-from dumbbot", "--start-from", "'dumbbot' is a bot"),
    ("--start-from nowhere.pt", "nowhere.pt"),
    ("--start-from {run}/nothing.pt", "{run}/nothing.pt", "did you mean the folder above"),
    ("--start-from {config}", "{config}", "not a checkpoint of this project"),
    ("--start-from runs/population/small/uniform-400108.npz", "uniform-400108.npz", "population"),
    ("--start-from {run} --map three", "--start-from {run}", "'small'", "'three'"),
    ("--start-from {run} --hidden 24", "--hidden is 16 there and 24 here"),
    ("--start-from {run} --num-layers 3", "--num-layers is 1 there and 3 here"),
    # a run that goes on
    ("--resume {run} --total-timesteps 0", "--total-timesteps: "),
    ("--resume {run} --start-from {run}", "--start-from cannot be changed"),
    ("--resume {run} --seed 3 --learning-rate 0.1", "--learning-rate, --seed cannot be changed"),
    ("--resume {run} --map three --hidden 8", "--hidden, --map cannot be changed"),
]


@pytest.fixture
def begins(monkeypatch):
    """Fail if processes are started, whatever they would say."""

    def start(*_):
        raise AssertionError("processes are started")

    monkeypatch.setattr(Ranks, "start", start)


@pytest.mark.parametrize(("flags", "words"), [(row[0], row[1:]) for row in FLAGS])
def test_command_lines(flags, words, trained, begins, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("COLUMNS", "300")  # so that tyro's box breaks no word
    config, runs = write_config(tmp_path / "tiny.toml"), tmp_path / "runs"
    places = {"run": trained(), "config": config}
    argv = flags.format(**places).split(" ")
    before = files(trained())
    argv = ["--runs-folder", str(runs), *argv] if "--resume" not in argv else argv
    argv = ["--config", config, *argv] if not {"--config", "--resume"} & {*argv} else argv
    refused(argv, *(word.format(**places) for word in words), capsys=capsys)
    assert not runs.exists() and files(trained()) == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("num_env = 8", ("num_env: unknown", "num_envs")),
        ('num_envs = "eight"', ("num_envs: ",)),
        ("hidden = 3e-4", ("hidden: ",)),
        ("hidden = 0", ("hidden: ", ">= 1")),
        ("pool_bots = [1]", ("pool_bots[0]: ",)),
        ('pool_sampling = "uniform"', ("pool_sampling: ", "latest, recency, pfsp")),
        ("num_envs = 1\nnum-envs = 2", ("num_envs: is set twice",)),
        ('config = "other.toml"', ("config: ",)),
        ("[network]\nhidden = 2", ("network: unknown",)),
        ("gamma = ", ("TOML",)),
        (f"gamma = {'9' * 5000}", ("TOML",)),
        (b"\xff\xfe", ("TOML",)),
    ],
)
def test_settings_files(line, words, tmp_path, capsys):
    path, runs = tmp_path / "bad.toml", tmp_path / "runs"
    path.write_bytes(line if isinstance(line, bytes) else line.encode())
    refused(["--config", str(path), "--runs-folder", str(runs)], str(path), *words, capsys=capsys)
    assert not runs.exists()


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("[provinces]", "[provinces", "TOML"),
        ('ANK = "BUL GRE UKR"', 'ANK = "BUL GRE XXX"', "XXX"),
        ("victory_supply_centers = 5", "victory_supply_centers = 50", "50"),
        ('ENGLAND = ["A LON"]', 'FRANCE = ["A LON"]', "FRANCE"),
    ],
)
def test_map_files(old, new, word, tmp_path, capsys):
    text, path, runs = SMALL_MAP.read_text(), tmp_path / "mine.toml", tmp_path / "runs"
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    refused(["--map", str(path), "--runs-folder", str(runs)], "mine", word, capsys=capsys)
    assert not runs.exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flat", ("own_reward:flat", "(3, 2)", "(3,)")),
        ("infinite", ("own_reward:infinite", "finite")),
        ("bare", ("own_reward:bare", "TypeError")),
        ("wrong", ("own_reward:wrong", "'center'", "line")),
    ],
)
def test_rewards_of_ones_own(name, words, tmp_path, monkeypatch, capsys):
    module, runs = types.ModuleType("own_reward"), tmp_path / "runs"
    module.flat = lambda game: np.zeros(3)
    module.infinite = lambda game: np.full(game.alive.shape, np.inf)
    module.bare = lambda: 1.0
    module.wrong = lambda game: game.center * 1.0
    module.good = lambda game: game.captured[:, None] * 1.0 + np.zeros(game.alive.shape)
    monkeypatch.setitem(sys.modules, "own_reward", module)
    argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(runs)]
    refused([*argv, "--reward", f"own_reward:{name}"], *words, capsys=capsys)
    assert not runs.exists()
    if name == "flat":
        train(runs, reward="own_reward:good", total_timesteps=60, eval_games=2)


# --- Run folders ----------------------------------------------------------------------------------


def edit(run: Path, change) -> None:
    """Change the dictionary of a run's checkpoint."""
    saved = load(run)
    change(saved)
    torch.save(saved, run / "checkpoint.pt")


def write_args(run: Path, **changes) -> None:
    args = json.loads((run / "args.json").read_text())
    (run / "args.json").write_text(json.dumps(args | changes))


DAMAGES = {
    "no dictionary": (lambda run: (run / "args.json").write_text("[]"), ("args.json",)),
    "no JSON": (lambda run: (run / "args.json").write_text("{"), ("args.json", "JSON")),
    "unknown setting": (lambda run: write_args(run, num_env=3), ("args.json: num_env: unknown",)),
    "range": (lambda run: write_args(run, gamma=1.5), ("args.json: gamma: ",)),
    "other games": (lambda run: write_args(run, num_envs=16), ("cannot be continued",)),
    "other network": (lambda run: write_args(run, hidden=4096), ("args.json: hidden: ", "16")),
    "other map": (lambda run: write_args(run, map="three"), ("args.json: map: ", "'small'")),
    "processes": (
        lambda run: write_args(run, processes=1000),
        ("a run of 1 process ", "1000", "--nproc_per_node=1"),
    ),
    "no checkpoint": (lambda run: (run / "checkpoint.pt").unlink(), ("has no checkpoint.pt",)),
    "format": (lambda run: edit(run, lambda saved: saved.update(run_format=3)), ("--start-from",)),
    "missing part": (
        lambda run: edit(run, lambda saved: saved["run"].pop("optimizer")),
        ("cannot be continued", "optimizer"),
    ),
    "script": (
        lambda run: edit(run, lambda saved: saved.update(script_name="mine.py")),
        ("a run of 'mine.py'",),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_run_folders(damage, trained, begins, tmp_path, capsys):
    run = Path(shutil.copytree(trained(), tmp_path / "run"))
    change, words = DAMAGES[damage]
    change(run)
    before = files(run)
    refused(["--resume", str(run)], str(run), *words, capsys=capsys)
    assert files(run) == before


def test_more_processes_than_there_is_memory_for(trained, begins, tmp_path, monkeypatch, capsys):
    run = Path(shutil.copytree(trained(), tmp_path / "run"))
    edit(run, lambda saved: saved.update(ranks=saved["ranks"] * 1000))
    write_args(run, num_envs=1000, processes=1000)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}.get)
    refused(["--resume", str(run)], "--processes 1000", "memory", capsys=capsys)
