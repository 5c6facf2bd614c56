"""The command line of the tools: helps, refusals, and how it ends."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from support.commands import SCRIPT, refusal, write_checkpoint
from support.tables import read_table
from support.training import REPOSITORY

import diplomacy_engine
from diplomacy_engine import UserError, load_map, vocabulary
from diplomacy_engine.commands import _flags
from diplomacy_engine.commands.cli import COMMANDS, main, parse, runner
from diplomacy_engine.learning import checkpoints
from diplomacy_engine.players.loading import load_player, policy_map
from diplomacy_engine.players.policy.files import ready_policies


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == diplomacy_engine.__version__


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_that_can_be_pasted(command, capsys, golden, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    golden(f"help of {command}", shown.split("\n"))
    assert caught.value.code == 0 and not re.search(r"\{[A-Z]\w+\}", shown.replace("{None}", ""))
    about = getattr(_flags, COMMANDS[command][0]).__doc__
    for example in re.findall(rf"^ +({command} .*)$", about, re.MULTILINE):
        assert parse(shlex.split(example))[0] == command and f"  {example}" in shown
    assert runner(command).__name__ == f"run_{command.split()[-1].replace('-', '_')}"


def test_a_file_may_follow_a_switch():
    assert parse(["replay", "--text", "games.jsonl"])[1].file == "games.jsonl"
    assert parse(["replay", "--text=False", "games.jsonl", "--output", "a.png"])[1].text is False


def test_a_help_imports_no_engine():
    """What a command does is imported when it is done."""
    code = "import sys; sys.argv = ['-m']; from diplomacy_engine.commands.cli import main\n"
    code += "try: main(['evaluate', '--help'])\nexcept SystemExit: pass\n"
    code += "print('numba' in sys.modules, 'torch' in sys.modules, 'gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False False"


TRAINER, TOOLS = "ppo_selfplay_diplomacy.py", "-m diplomacy_engine"


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        pytest.param(f"{TRAINER} --help", (141,), marks=pytest.mark.slow),  # imports PyTorch
        (f"{TOOLS} --help", (0, 141)),
        (f"{TOOLS} evaluate --player hold --games 2 --max-years 1", (141,)),
    ],
)
def test_a_reader_that_has_seen_enough(words, codes):
    """As `| head -n 1`: no traceback, and the status is that of a closed pipe, or 0 for a help."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": REPOSITORY}
    process = subprocess.Popen([sys.executable, *words.split()], **options)
    process.stdout.close()
    _, err = process.communicate(timeout=300)
    assert process.returncode in codes
    lines = [line for line in err.splitlines() if line.strip()]
    # A slow one shows its progress, the first compiles the kernels.
    assert all(b"% | " in line or line.startswith(b"compiling the ") for line in lines), err


HOLD = "evaluate --player hold "


@pytest.mark.parametrize(("words", "name"), read_table(__file__, "refusals"))
def test_refusals(words, name, tmp_path, capsys):
    (tmp_path / "map.toml").write_text("name = ")
    (tmp_path / "train.py").write_text(SCRIPT)
    write_checkpoint(tmp_path / "a.pt", tmp_path / "train.py")
    before = sorted(os.listdir(tmp_path))
    words = shlex.split(words.replace("HERE", str(tmp_path)))
    assert name.replace("HERE", str(tmp_path)) in refusal(*words, capsys=capsys)
    assert sorted(set(os.listdir(tmp_path)) - {"__pycache__"}) == before


def test_policies(capsys):
    assert main(["policies", "--map", "small"]) == 0
    shown = capsys.readouterr().out
    names = re.findall(r"^(small-[\w-]+) +small ", shown, re.MULTILINE)
    assert set(names) == {name for name in ready_policies() if name.startswith("small-")}
    wins = [float(share) for share in re.findall(r" (\d+\.\d)% \(\d+\.\d to \d+\.\d\)", shown)]
    assert len(wins) == len(names) and wins == sorted(wins, reverse=True)
    assert "three-pure" not in shown
    (line,) = re.findall(r"python -m diplomacy_engine (play .*)", shown)
    assert parse(line.split())[1].against == (names[0],)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_players_by_name(tmp_path, script):
    path = write_checkpoint(tmp_path / "run" / "checkpoint.pt", script)
    player = load_player(path, script=script, greedy=True, device="meta")
    assert (player.name, player.greedy, player.device) == ("run", True, "meta")
    assert load_player(tmp_path / "run", script=script).name == "run"
    assert not load_player(str(path), script=script, game_map=load_map("small")).greedy


@pytest.mark.parametrize(
    ("changes", "settings", "name"), read_table(__file__, "checkpoints_that_cannot_be_played")
)
def test_checkpoints_that_cannot_be_played(changes, settings, name, tmp_path, script):
    for file, text in read_table(__file__, "scripts_that_are_none"):
        (tmp_path / file).write_text(text)
    path = write_checkpoint(tmp_path / "a.pt", script, **changes)
    game_map = settings.get("game_map")
    with pytest.raises(UserError) as error:
        load_player(
            path,
            script=tmp_path / settings.get("script", "train.py"),
            game_map=game_map and load_map(game_map),
        )
    assert name in str(error.value)


def test_the_map_is_the_checkpoints(tmp_path, script, capsys):
    own = load_map("three")
    about = {"map_name": own.name, "map_facts": own.facts, "vocabulary_hash": vocabulary(own).hash}
    path = write_checkpoint(tmp_path / "run" / "checkpoint.pt", script, **about)
    assert policy_map(path) is own and policy_map("dumbbot") is None
    options = f"--games 3 --max-years 1 --script {script}"
    for words, name in (
        (f"{HOLD} --against {path.parent} {options}", "three"),
        (f"tournament --players hold {path} {options}", "three"),
        (f"{HOLD} --games 2 --max-years 1", "small"),
    ):
        assert main(words.split()) == 0
        assert f"on map {name}" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"empty has neither checkpoint\.pt nor policy\.pt"):
        (tmp_path / "empty").mkdir()
        load_player(tmp_path / "empty")


def test_a_checkpoint_is_read_once_until_it_changes(tmp_path, script, monkeypatch):
    paths, read = [], checkpoints.read
    monkeypatch.setattr(checkpoints, "read", lambda path: paths.append(path) or read(path))
    path = write_checkpoint(tmp_path / "a.pt", script)
    assert policy_map(path).name == "small" and load_player(path, script=script)
    assert len(paths) == 1
    own = load_map("three")
    about = {"map_name": own.name, "map_facts": own.facts, "vocabulary_hash": vocabulary(own).hash}
    write_checkpoint(path, script, **about)
    assert policy_map(path) is own and len(paths) == 2


def test_a_map_of_ones_own_comes_with_the_checkpoint(tmp_path, script):
    facts = dict(load_map("three").facts) | {"name": "mine"}
    about = {"map_facts": facts, "vocabulary_hash": vocabulary(load_map("three")).hash}
    mine = write_checkpoint(tmp_path / "a.pt", script, map_name="mine", **about)
    assert policy_map(mine).name == "mine"
    assert policy_map(mine).powers == load_map("three").powers
    for wrong, name in (({}, "map"), ({"map_facts": 3}, "map_facts"), ({"map_facts": {}}, "map")):
        other = write_checkpoint(tmp_path / "b.pt", script, map_name="mine", **wrong)
        with pytest.raises(UserError, match=rf"b\.pt.* {name}"):
            policy_map(other)
