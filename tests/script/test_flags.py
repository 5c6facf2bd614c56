"""Flags, and the help that explains them."""

import dataclasses
import json
import runpy
import subprocess
import sys

import pytest
from support.training import REPOSITORY

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.errors import UserError
from diplomacy_engine.training.settings import check_values, parse_args

SCRIPTS = [path.name for path in REPOSITORY.glob("*_diplomacy.py")]
TINY = "--num-envs 4 --num-steps 4 --total-timesteps 20 --eval-games 2 --hidden 8 --threads 1"


def test_every_number_has_a_range():
    """None may be below 0, and the defaults keep to their ranges."""
    defaults = dataclasses.asdict(ppo.Args())
    assert check_values(ppo.Args, defaults, "the defaults") == defaults
    numbers = [name for name, value in defaults.items() if type(value) in (int, float)]
    assert len(numbers) > 30
    for name in (*numbers, "max_years", "target_kl"):
        flag = f"--{name.replace('_', '-')}"
        with pytest.raises(UserError, match=f"^{flag} must be .* from .*, not '-1'$"):
            parse_args(ppo.Args, [f"{flag}=-1"])


def test_a_reward_flag_wins_over_the_mix_of_the_settings_file(tmp_path, capsys):
    config = tmp_path / "mix.toml"
    config.write_text('reward_mix = "score=1,leader=2"\n')
    argv = ["--config", str(config), *TINY.split(), "--runs-folder", str(tmp_path / "runs")]
    for flags, reward, mix in (
        ([], "sum_of_squares", "score=1,leader=2"),
        (["--reward", "deepdip"], "deepdip", ""),
    ):
        assert ppo.main(argv + flags) == 0, capsys.readouterr().err
        run = max((tmp_path / "runs").iterdir(), key=lambda path: path.name)
        args = json.loads((run / "args.json").read_text())
        assert (args["reward"], args["reward_mix"]) == (reward, mix)
    assert ppo.main([*argv, "--reward", "deepdip", "--reward-mix", "score"]) == 2
    assert "--reward has no effect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--map three --teams ENGLAND+ITALY", "--eval-population ranks powers, and goes without"),
        ("--map three", "there is no base population of map three"),
    ],
)
def test_ranks_that_cannot_be_had_leave_no_run_behind(
    flags, sentence, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("diplomacy_engine.players.population.FOLDERS", tmp_path / "none")
    words = ["--eval-population", "20", "--runs-folder", str(tmp_path / "runs"), *TINY.split()]
    assert ppo.main([*flags.split(), *words]) == 2
    assert sentence in capsys.readouterr().err and not (tmp_path / "runs").exists()


def test_every_setting_of_the_trainer_is_explained_in_a_group(capsys):
    with pytest.raises(SystemExit):
        parse_args(ppo.Args, ["--help"], ppo.CONFIGS)
    shown = capsys.readouterr().out
    for heading in ("Games", "PPO", "Network", "Opponents", "Evaluation and records"):
        assert f"{heading} options" in shown
    for field in dataclasses.fields(ppo.Args):
        assert f"--{field.name.replace('_', '-')}" in shown


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_every_script_runs_as_a_command(name, monkeypatch, capsys):
    """A test that imports it and calls its main function leaves out its last line."""
    source = REPOSITORY / name
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    if "__main__" not in source.read_text():
        pytest.skip("it is imported by others only")
    if name == "grpo_llm_diplomacy.py":
        pytest.importorskip("transformers")
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(source), run_name="__main__")
    assert end.value.code in (0, None) and "--seed" in capsys.readouterr().out


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
