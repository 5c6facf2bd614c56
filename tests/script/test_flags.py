"""Flags, and the help that explains them."""

import dataclasses
import json
import runpy
import subprocess
import sys
import types
import typing

import pytest
from support.training import REPOSITORY, main

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine._fields import check_values
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning import launch
from diplomacy_engine.training.settings import _about_fields, parse_args

FILES = sorted(path.stem for path in (REPOSITORY / "diplomacy_learners").glob("[a-z]*.py"))
LEARNERS = ["ppo_selfplay_diplomacy", *(f"diplomacy_learners.{name}" for name in FILES)]
OWN_DEFAULTS = {"exp_name"}
TINY = "--num-envs 4 --num-steps 4 --total-timesteps 20 --eval-games 2 --hidden 8 --processes 1"


def test_every_number_has_a_range():
    """None may be below 0, and the defaults keep to their ranges."""
    defaults = dataclasses.asdict(ppo.Args())
    assert check_values(ppo.Args, defaults, "the defaults") == defaults
    numbers = [name for name, value in defaults.items() if type(value) in (int, float)]
    assert len(numbers) > 30
    for name in (*numbers, "max_years", "target_kl", "freeze_score"):
        flag = f"--{name.replace('_', '-')}"
        with pytest.raises(UserError, match=f"^{flag} must be .* from .*, not '-1'$"):
            parse_args(ppo.Args, [f"{flag}=-1"])


def test_names_of_version_0_2_are_understood(tmp_path, capsys):
    """In settings files and as flags, so that recipes that people have kept still run."""
    config = tmp_path / "mix.toml"
    config.write_text('reward_mix = "score=1,leader=2"\nthreads = 1\n')
    few = [word for word in TINY.split() if word not in ("--processes", "1")]
    argv = ["--config", str(config), *few, "--runs-folder", str(tmp_path / "runs")]
    for flags, reward in (([], "score=1,leader=2"), (["--reward-mix", "deepdip"], "deepdip")):
        settings = parse_args(ppo.Args, [*argv, *flags]).args
        assert (settings.reward, settings.processes) == (reward, 1)
    assert main(argv) == 0, capsys.readouterr().err
    (run,) = (tmp_path / "runs").iterdir()
    args = json.loads((run / "args.json").read_text())
    assert args["reward"] == "score=1,leader=2" and "reward_mix" not in args
    with pytest.raises(UserError, match="unknown flag --kl-coef"):
        parse_args(ppo.Args, ["--kl-coef", "1"])


def test_every_setting_of_the_trainer_is_explained_in_a_group(capsys):
    with pytest.raises(SystemExit):
        parse_args(ppo.Args, ["--help"], launch.CONFIGS)
    shown = capsys.readouterr().out
    for heading in ("Games", "PPO", "Network", "Opponents", "Evaluation and records"):
        assert f"{heading} options" in shown
    for field in dataclasses.fields(ppo.Args):
        assert f"--{field.name.replace('_', '-')}" in shown


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs_as_a_command(name, monkeypatch, capsys):
    """A test that imports it and calls its main function leaves out its last line."""
    imported(name)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    assert end.value.code in (0, None) and "--seed" in capsys.readouterr().out


def imported(name: str) -> types.ModuleType:
    if name.endswith("language_model"):
        pytest.importorskip("transformers")
    return pytest.importorskip(name, exc_type=ImportError)


@pytest.mark.parametrize("name", LEARNERS[1:])
def test_flags_that_learners_share_say_the_same(name):
    """Each has its own settings; a reader of two is not to wonder what differs."""
    module = imported(name)
    ours, theirs = (_about_fields(args) for args in (ppo.Args, module.Args))
    hints = [typing.get_type_hints(args, include_extras=True) for args in (ppo.Args, module.Args)]
    shared = ours.keys() & theirs.keys() - OWN_DEFAULTS
    assert len(shared) > 3
    for field in sorted(shared):
        assert theirs[field][1] == ours[field][1], field
        assert hints[0][field] == hints[1][field], field
        assert getattr(module.Args, field) == getattr(ppo.Args, field), field


def test_help_for_a_reader_that_leaves():
    """As `| head` does."""
    process = subprocess.Popen(
        [sys.executable, "ppo_selfplay_diplomacy.py", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 0
    process.stderr.close()
