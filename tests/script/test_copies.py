"""Copies of the script that somebody has changed: what they change is what is trained and played.

Where it is not, a run does not start, or a policy is not played; nothing differs in silence.
"""

import shutil
from pathlib import Path

import pytest
from support.commands import refusal
from support.edits import drawn_by, drawn_by_player, learned_agent, write
from support.training import load, refused, resume, train, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import load_player
from diplomacy_engine.commands import cli
from diplomacy_engine.learning import checkpoints, registry, settings

FEW = {"total_timesteps": 60, "eval_bots": ["hold"]}
SETTING = "    gamma: Share = "
LAST_NORM = "        x = self.norms[-1](x)\n"


@pytest.fixture
def mine(made_once, imported, monkeypatch) -> tuple[Path, Path]:
    """Return a script of another formula, but the same shapes, and a run of it; it is unknown.

    It has a setting of its own, too.
    """

    def make(folder: Path) -> Path:
        edits = (
            (LAST_NORM, f"{LAST_NORM[:-1]}.tanh() * 3\n"),
            (SETTING, f"    mine: int = 1\n{SETTING}"),
        )
        script = imported(write(folder / "mine.py", *edits))
        return train(folder / "runs", script=script, learning_rate=0.01, **FEW)

    run = made_once("mine", make)
    known = {
        path: learner for path, learner in registry._learners.items() if path.name != "mine.py"
    }
    monkeypatch.setattr(registry, "_learners", known)
    return run.parents[1] / "mine.py", run


COMMANDS = ["evaluate --games 2 --player {run}", "tournament --games 2 --players hold {run}"]
FLAGS = ["--start-from {run}", "--resume {run}", "--pool-bots {run}", "--eval-bots {run}"]


def test_no_other_script_uses_it(mine, tmp_path, capsys):
    _, run = mine
    runs = tmp_path / "runs"
    for words in COMMANDS:
        said = refusal(*words.format(run=run).split(), capsys=capsys)
        assert "'mine.py'" in said and f"{run}/mine.py:{run}/checkpoint.pt" in said
    for flag in FLAGS:
        argv = flag.format(run=run).split()
        if argv[0] != "--resume":
            argv += ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(runs)]
        refused(argv, "mine.py", capsys=capsys)
        assert not runs.exists()


def test_its_script_plays_it_where_it_is_named(mine, imported, tmp_path, capsys):
    script, run = mine
    drawn, otherwise = drawn_by_player(f"{script}:{run}"), drawn_by(learned_agent(ppo, run))
    assert load_player(f"{script}:{run}").name == f"mine.py:{run.name}"
    assert drawn == drawn_by_player(str(run), script="own") != otherwise
    words = ["evaluate", "--games", "2", "--against", "hold", "--player", str(run)]
    assert cli.main([*words, "--script", "own"]) == 0
    argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(tmp_path / "on")]
    refused(
        [*argv, "--start-from", f"{ppo.__file__}:{run}"], Path(ppo.__file__).name, capsys=capsys
    )
    started = train(
        tmp_path / "on", "--start-from", f"{script}:{run}", script=imported(script), **FEW
    )
    assert load(started)["args"]["start_from"] == f"{script}:{run}"
    copy = shutil.copytree(run, tmp_path / "copy")
    assert resume(copy, "--total-timesteps", "100", script=imported(script)) == 0


def test_defaults_of_a_copy_are_what_runs(mine, imported, tmp_path):
    edits = [
        ("gamma: Share = 0.99", "gamma: Share = 0.5"),
        ("num_layers: Annotated[int, Meta(ge=0, le=1024)] = 0", "num_layers: int = 3"),
    ]
    script = imported(write(tmp_path / "changed.py", *edits))
    for argv in ([], ["--map", "small"]):
        args = settings.parse_args(script.Args, argv)
        assert args == script.Args() and (args.gamma, args.num_layers) == (0.5, 3)
    args = settings.parse_args(script.Args, ["--map", "three", "--num-layers", "1"])
    assert (args.gamma, args.num_layers, args.learner_seats) == (0.5, 1, 2.8)
    _, run = mine
    assert run.name.startswith("small__mine__1__") and (run / "mine.py").is_file()
    args = checkpoints.read(run / "checkpoint.pt")["args"]
    assert (args["mine"], args["exp_name"]) == (1, "mine")
