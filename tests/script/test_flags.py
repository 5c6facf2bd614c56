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
from diplomacy_engine.learning import registry, startup
from diplomacy_engine.training.settings import _about_fields, parse_args

FILES = sorted(path.stem for path in (REPOSITORY / "diplomacy_learners").glob("[a-z]*.py"))
LEARNERS = ["ppo_selfplay_diplomacy", *(f"diplomacy_learners.{name}" for name in FILES)]
WITH_SETTINGS = [name for name in LEARNERS[1:] if not name.endswith("exploit")]  # which has none
# What a learner has of its own: settings that mean something else, and other defaults.
OWN_MEANING = {
    "distill": {"max_years"},
    "language_model": {"resume", "eval_interval", "save_interval"},
    "population_based": {"resume", "processes"},
}
OWN_DEFAULTS = {
    "distill": {"learning_rate"},
    "language_model": {"eval_games", "max_grad_norm"},
    "population_based": {"league_games"},
}
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
        parse_args(ppo.Args, ["--help"], startup.CONFIGS)
    shown = capsys.readouterr().out
    for heading in ("Games", "PPO", "Network", "Opponents", "Evaluation and records"):
        assert f"\n{heading}:\n" in shown
    for field in dataclasses.fields(ppo.Args):
        assert f"--{field.name.replace('_', '-')}" in shown


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs_as_a_command(name, monkeypatch, capsys):
    """A test that imports it and calls its main function leaves out its last line."""
    imported(name)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(registry, "_known", dict(registry._known))  # it registers once more
    with pytest.raises(SystemExit) as end:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    assert end.value.code in (0, None) and "--seed" in capsys.readouterr().out


def imported(name: str) -> types.ModuleType:
    if name.endswith("language_model"):
        pytest.importorskip("transformers")
    return pytest.importorskip(name, exc_type=ImportError)


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_flags_that_learners_share_say_the_same(name):
    """Each has its own settings; a reader of two is not to wonder what differs."""
    both, name = (ppo.Args, imported(name).Args), name.rpartition(".")[2]
    ours, theirs = (_about_fields(args) for args in both)
    hints = [typing.get_type_hints(args, include_extras=True) for args in both]
    fields = [{field.name: field.default for field in dataclasses.fields(args)} for args in both]
    shared = fields[0].keys() & fields[1].keys() - OWN_MEANING.get(name, set())
    assert len(shared) > 3
    for field in sorted(shared):
        sentences = ours[field][1], theirs[field][1]  # one may go on where the other ends
        assert max(sentences, key=len).startswith(min(sentences, key=len)), (field, sentences)
        assert hints[0][field] == hints[1][field], field
    others = {field for field in shared if fields[0][field] != fields[1][field]}
    assert others - {"exp_name"} == OWN_DEFAULTS.get(name, set())


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
