"""Which script plays a checkpoint: by name of those that come along, any other only by its path."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.commands import SCRIPT, write_checkpoint
from support.training import REPOSITORY, main, metrics, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, VectorGame, load_player
from diplomacy_engine._files import file_sha256
from diplomacy_engine.learning import checkpoints, registry

TRAINER = REPOSITORY / "ppo_selfplay_diplomacy.py"
POLICY = REPOSITORY / "runs" / "reference" / "small__pure__1" / "policy.pt"
FEW = {"total_timesteps": 20, "num_envs": 4, "num_steps": 4, "hidden": 8, "max_years": 2}


def policy_of(script: Path, path: Path, **weights: torch.Tensor) -> Path:
    saved = torch.load(POLICY, weights_only=True)
    saved |= {"script_name": script.name, "script_sha256": file_sha256(script)}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(saved | {"model": saved["model"] | weights}, path)
    return path


def edited(path: Path) -> Path:
    text, place = TRAINER.read_text(), "        self.norms = "
    assert text.count(place) == 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        text.replace(place, "        self.mine = nn.Parameter(torch.ones(3))\n" + place)
    )
    return path


def asked(name: object, **options) -> list[int]:
    games = VectorGame("small", 3, seed=1, threads=1)
    return load_player(name, **options).act(games, games.decisions()).tolist()


def test_an_edited_script_and_the_copy_in_the_run_folder(tmp_path, capsys):
    run = tmp_path / "runs" / "x"
    copy = edited(run / TRAINER.name)
    policy_of(copy, run / "checkpoint.pt", mine=torch.ones(3))
    with pytest.raises(UserError, match=r"does not fit.*--script own"):
        load_player(run)
    assert copy not in registry._learners  # it was pointed out, not run
    named = f"{copy}:{run}"
    expected = asked(POLICY)  # the weight more has no effect
    assert asked(named) == asked(run, script=copy) == asked(run, script="own") == expected
    assert hasattr(load_player(named).agent.agent, "mine")
    assert hasattr(load_player(f"fast(candidates=2 draws=4 profiles=2):{named}"), "search")
    # A player of another run, as an opponent and to be evaluated against.
    config = write_config(tmp_path / "tiny.toml", **FEW, pool_bots=[named], eval_bots=[named])
    argv = ["--config", config, "--runs-folder", str(tmp_path / "mine"), "--pool-bot-prob", "1"]
    assert main(argv) == 0, capsys.readouterr().err
    (mine,) = (tmp_path / "mine").iterdir()
    assert "eval/ppo_selfplay_diplomacy.py:x/win" in metrics(mine)[-1]
    copy.write_text(SCRIPT)  # no longer the script that trained it
    with pytest.raises(UserError, match=r"does not fit [^;]*$"):
        load_player(run)


def test_scripts_of_one_name_are_told_apart(tmp_path, monkeypatch):
    players = []
    searched = [str(tmp_path / "a"), *sys.path]
    monkeypatch.setattr(sys, "path", [*searched])
    for folder, bot in (("a", "hold"), ("b", "dumbbot")):
        script = tmp_path / folder / "twin.py"
        script.parent.mkdir()
        script.write_text(SCRIPT.replace('"dumbbot"', f'"{bot}"') + f"# {folder}\n")
        path = write_checkpoint(tmp_path / folder / "1.pt", script)
        saved = torch.load(path)
        del saved["args"]["plays"]  # so that the script's own default says it
        torch.save(saved, path)
        players.append(load_player(f"{script}:{path}"))
    assert [player.bot.name for player in players] == ["hold", "dumbbot"]
    assert type(players[0]) is not type(players[1])
    again = tmp_path / "a" / "twin.py"
    assert registry.of_file(again) is registry.of_file(str(again))  # imported once
    assert sys.path == searched, "a folder that was there stays where it was"


EVIL = ("../../evil.py", "/etc/passwd", "evil.py", "folder/evil.py", "evil", "os", "", "x\ny")


@pytest.mark.parametrize(
    ("name", "script"), [*((name, None) for name in EVIL), (EVIL[0], "own"), (EVIL[1], "own")]
)
def test_no_checkpoint_chooses_code(name, script, tmp_path, monkeypatch):
    """Whatever it says, neither a file nor a module is run, but for one beside the policy."""
    monkeypatch.chdir(tmp_path / "..")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = tmp_path / "runs" / "run"
    (run / "folder").mkdir(parents=True)
    for folder in (tmp_path, run / "folder", *([] if script == "own" else [run])):
        (folder / "evil.py").write_text("raise SystemExit('this must not run')")
    saved = torch.load(POLICY, weights_only=True) | {"script_name": name}
    saved["script_sha256"] = file_sha256(tmp_path / "evil.py")
    torch.save(saved, run / "checkpoint.pt")
    with pytest.raises(UserError, match="name that script") as caught:
        load_player(run, script=script)
    assert str(caught.value).isprintable() and repr(name)[1:-1] in str(caught.value)


def test_bundled_learners_are_found_by_name():
    for name, module in registry.BUNDLED.items():
        file = REPOSITORY / (module.replace(".", "/") + ".py")
        assert file.is_file() and file.name == name
    found = registry.of_checkpoint(checkpoints.read(POLICY))
    assert found is ppo.LEARNER_SPEC and found.file == TRAINER.resolve()


def test_a_pickle_with_code_is_not_loaded(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (tmp_path / "marker").touch, ()

    torch.save({"format": 1, "evil": Hostile()}, tmp_path / "hostile.pt")
    with pytest.raises(UserError, match="damaged, or not a checkpoint"):
        load_player(tmp_path / "hostile.pt")
    assert not (tmp_path / "marker").exists()


@pytest.mark.slow
def test_a_policy_is_loaded_without_pytorchs_compiler():
    """Which alone takes more than a second, and only training uses."""
    code = (
        "import sys; from diplomacy_engine import load_player; load_player('small-pure-1'); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, timeout=300).returncode == 0


def test_a_policy_of_version_0_4_plays_as_it_did(tmp_path):
    """Its settings have other names; as a default, `cross_support` would give it other orders."""
    saved = torch.load(POLICY.parents[1] / "standard__own__1" / "policy.pt", weights_only=True)
    names = {new: old for old, new in checkpoints.RENAMED.items()}
    args = {names.get(name, name): value for name, value in saved["args"].items()}
    assert args["help_others"] is False
    torch.save({**saved, "args": args}, tmp_path / "policy.pt")
    assert not load_player(tmp_path / "policy.pt").agent.agent.cross_support
