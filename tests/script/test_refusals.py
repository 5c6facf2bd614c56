"""What a run cannot begin or go on with: each is refused by name, with exit status 2, at once.

Nothing is written then. A table has what is said on a command line, in a settings file or in a run
folder, and the words that must occur in the answer.
"""

import json
import os
import sys
import types

import numpy as np
import pytest
import torch
from support.tables import read_table
from support.training import REPOSITORY, files, refused, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, load_map
from diplomacy_engine.learning.checks import check_memory
from diplomacy_engine.learning.ranks import Ranks


@pytest.fixture
def begins(monkeypatch):
    def start(*_):
        raise AssertionError("processes are started")

    monkeypatch.setattr(Ranks, "start", start)


def table_of(name: str) -> list[tuple]:
    """Return the rows of a table: what is refused, and words of the answer."""
    return [(row[0], row[1:]) for row in read_table(__file__, name)]


@pytest.mark.parametrize(("flags", "words"), table_of("command_lines"))
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


@pytest.mark.parametrize(("text", "words"), table_of("settings_files"))
def test_settings_files(text, words, tmp_path, capsys):
    path, runs = tmp_path / "bad.toml", tmp_path / "runs"
    path.write_bytes(text.replace("{digits}", "9" * 5000).encode("latin-1"))
    refused(["--config", str(path), "--runs-folder", str(runs)], str(path), *words, capsys=capsys)
    assert not runs.exists()


def test_rewards_of_ones_own(tmp_path, monkeypatch, capsys):
    module, runs = types.ModuleType("own_reward"), tmp_path / "runs"
    module.flat = lambda game: np.zeros(3)
    module.bare = lambda: 1.0
    module.wrong = lambda game: game.center * 1.0
    monkeypatch.setitem(sys.modules, "own_reward", module)
    argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(runs)]
    rewards = {"flat": ("(3, 2)", "(3,)"), "bare": ("TypeError",), "wrong": ("'center'", "line")}
    for name, words in rewards.items():
        own = f"own_reward:{name}"
        refused([*argv, "--reward", own], own, *words, capsys=capsys)
        assert not runs.exists()


def test_processes_take_memory(monkeypatch):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 * 2**18}  # 16 GiB
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    args, small = ppo.Args(num_envs=1024, processes=1024), load_map("small")
    with pytest.raises(UserError, match=r"--processes 1024 .* 181 of 16 GiB"):
        check_memory(args, small, 10_000, 1024)
    check_memory(args, small, 10_000, 4)  # torchrun's, whatever --processes says


@pytest.mark.parametrize(("damage", "words"), table_of("run_folders"))
def test_run_folders(damage, words, copied, begins, capsys):
    run, args, checkpoint = copied, copied / "args.json", copied / "checkpoint.pt"
    match damage:
        case {"args.json": text}:
            args.write_text(text)
        case {"args": changes}:
            args.write_text(json.dumps(json.loads(args.read_text()) | changes))
        case {"saved": changes}:
            saved = torch.load(checkpoint, weights_only=True) | changes
            torch.save({name: part for name, part in saved.items() if part is not None}, checkpoint)
        case {"moved": name}:
            (run / name).rename(run / "mine.py")
    before = files(run)
    refused(["--resume", str(run)], str(run), *words, capsys=capsys)
    assert files(run) == before
