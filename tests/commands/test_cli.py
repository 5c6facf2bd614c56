"""The command line of the tools, and players by name or from a checkpoint."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import SCRIPT, refusal, write_checkpoint

from diplomacy_engine.commands import _flags
from diplomacy_engine.commands.cli import COMMANDS, main, parse, runner
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.players import loading
from diplomacy_engine.players.bots import BOTS
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.players.policy.files import ready_policies
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.scoring.outcomes import FIGURES


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_evaluate(tmp_path, capsys):
    result_file, games_file = tmp_path / "result.json", tmp_path / "games.jsonl"
    words = "evaluate --map small --player dumbbot --against random --games 1e1 --seed 3"
    words += f" --max-years 9 --threads 2 --save-count 3 --json {result_file}"
    assert main([*words.split(), "--save-games", str(games_file)]) == 0
    shown = capsys.readouterr().out
    assert (
        "dumbbot against random on map small: 10 games, seed 3; at most 9 years, then a draw;"
        in shown
    )
    result = json.loads(result_file.read_text())
    assert result["overall"]["draw"]["value"] == 0
    same = {"elimination", "solo", "most_centers"}  # what others say by rule
    rows = set(re.findall(r"^(\w+(?: \w+)*?)  +[-\d]", shown, re.MULTILINE))
    assert rows == {figure.replace("_", " ") for figure in FIGURES if figure not in same}
    assert "no game was drawn: every win is a solo" in shown
    overall = result["overall"]["win"]
    value, low, high = (f"{100 * overall[key]:.1f}" for key in ("value", "low", "high"))
    assert f" {value}% ({low} to {high}) " in shown
    assert (result["games"], result["max_years"], result["greedy"]) == (10, 9, False)
    games = list(read_saved_games(games_file))
    assert len(games) == 3
    assert Game.from_saved_game(games[0], max_years=9).map.name == "small"
    assert sorted(os.listdir(tmp_path)) == ["games.jsonl", "result.json"]


def test_evaluate_many_seats(capsys):
    words = "evaluate --map three --player chaos --against hold --games 4 --max-years 2 --greedy"
    assert main([*words.split(), "--year-limit", "truncate"]) == 0
    shown = capsys.readouterr().out
    assert "6 games, seed 1; at most 2 years, then cut off; greedy" in shown
    assert "win: a solo or, at the year limit, more centers" in shown
    assert re.search(r"^solo +", shown, re.MULTILINE)
    assert re.search(r"ENGLAND +ITALY +RUSSIA", shown)


def test_bad_input_is_one_sentence(tmp_path, capsys):
    def refused(*words):
        return refusal("evaluate", *words, capsys=capsys)

    assert "did you mean 'dumbbot'" in refused("--player", "dumbot")
    assert "did you mean 'small'" in refused("--player", "hold", "--map", "smal")
    assert "games" in refused("--player", "hold", "--games", "0")
    assert "many" in refused("--player", "hold", "--games", "many")
    assert "nan" in refused("--player", "hold", "--games", "nan")
    assert "--player" in refused()
    assert "--year-limit" in refused("--player", "hold", "--year-limit", "never")
    assert "--sed" in refused("--player", "hold", "--sed", "1")
    assert f"no folder {tmp_path / 'none'}" in refused(
        "--player", "hold", "--json", tmp_path / "none" / "x.json"
    )
    assert "is a folder" in refused("--player", "hold", "--save-games", tmp_path)
    (tmp_path / "map.toml").write_text("name = ")
    assert "map.toml: not TOML" in refused("--player", "hold", "--map", tmp_path / "map.toml")
    found = refusal("evaluat", capsys=capsys)
    assert found.startswith("there is no command 'evaluat'; did you mean 'evaluate'?")
    assert "small" in refusal("population", "show", "small", capsys=capsys)
    assert "--games" in refused("--player", "hold", "--gamez", "3")
    assert main([]) == 2 and "COMMAND" in capsys.readouterr().out


def test_a_failed_write_leaves_the_earlier_result(tmp_path, capsys, monkeypatch):
    file = tmp_path / "result.json"
    file.write_text("earlier")

    def full(handle):
        raise OSError(28, "No space left on device")

    words = f"evaluate --player hold --against hold --games 2 --max-years 1 --json {file}".split()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(words) == 2
    assert f"error: {file} cannot be written: No space left" in capsys.readouterr().err
    assert file.read_text() == "earlier" and os.listdir(tmp_path) == ["result.json"]


def test_check_map(tmp_path, capsys):
    assert main(["check-map", "small"]) == 0
    assert "map small is valid: 2 powers, 19 provinces" in capsys.readouterr().out
    text = (Path(loading.__file__).parents[1] / "maps" / "small.toml").read_text()
    bad = text.replace("LON", "LOX", 1).replace('"land"', '"lend"', 1)
    assert bad != text
    (tmp_path / "bad.toml").write_text(bad)
    assert main(["check-map", str(tmp_path / "bad.toml")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and all(line.startswith("error: map ") for line in err.splitlines())
    (tmp_path / "worse.toml").write_text("powers = 3\nprovince = {}\n")
    assert main(["check-map", str(tmp_path / "worse.toml")]) == 2
    assert len(capsys.readouterr().err.splitlines()) > 3
    assert "there is no map of that name" in refusal("check-map", "none", capsys=capsys)
    message = refusal("check-map", tmp_path, capsys=capsys)
    assert str(tmp_path) in message and "this is a folder; a map is one file (TOML)" in message


def test_help(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {command} " in shown for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_examples_that_can_be_pasted(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])
    shown = capsys.readouterr().out
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


def test_bots_by_name():
    for name in BOTS:
        assert load_player(name, greedy=True, seed=3).name == name


def test_checkpoints(tmp_path, script, capsys):
    path = write_checkpoint(tmp_path / "run" / "checkpoint.pt", script)
    player = load_player(path, script=script, greedy=True, seed=5, device="meta")
    assert (player.name, player.greedy, player.seed, player.device) == ("run", True, 5, "meta")
    assert load_player(tmp_path / "run", script=script).name == "run"
    assert load_player(str(path), script=script, game_map=load_map("small")).seed == 0
    file = tmp_path / "x.json"
    words = f"evaluate --player {path} --against hold --games 4 --script {script} --json {file}"
    assert main(words.split()) == 0
    result = json.loads(file.read_text())
    assert result["player"] == "run" and result["overall"]["solo"]["value"] == 1


def test_a_checkpoint_of_another_map(tmp_path, script):
    path = write_checkpoint(tmp_path / "a.pt", script)
    with pytest.raises(UserError, match=r"a\.pt was trained on map 'small', not on 'three'"):
        load_player(path, script=script, game_map=load_map("three"))
    path = write_checkpoint(tmp_path / "b.pt", script, vocabulary_hash="0")
    with pytest.raises(UserError, match=r"b\.pt was trained on another version of map 'small'"):
        load_player(path, script=script, game_map=load_map("small"))


def test_a_checkpoint_that_does_not_fit_its_own_script(tmp_path, script):
    path = write_checkpoint(tmp_path / "a.pt", script, plays="no bot")
    with pytest.raises(UserError, match=r"checkpoint .*a\.pt cannot be played: there is no bot"):
        load_player(path, script=script)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\x80\x04", '{"map_name": 3}'])
def test_damaged_checkpoints(tmp_path, script, content):
    path = tmp_path / "bad.pt"
    path.write_text(content)
    with pytest.raises(UserError, match=r"bad\.pt"):
        load_player(path, script=script)


def test_a_folder_without_a_policy(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty has neither checkpoint\.pt nor policy\.pt"):
        load_player(tmp_path / "empty")


def test_scripts_that_cannot_play(tmp_path, script):
    path = write_checkpoint(tmp_path / "a.pt", script)
    with pytest.raises(UserError, match=r"there is no script .*none\.py"):
        load_player(path, script=tmp_path / "none.py")
    (tmp_path / "other.py").write_text("x = 1\n")
    with pytest.raises(
        UserError, match=r"other\.py is not a learner: it does not call registry.register"
    ):
        load_player(path, script=tmp_path / "other.py")
    (tmp_path / "needs.py").write_text("import no_such_module\n")
    with pytest.raises(UserError, match=r"needs\.py cannot be loaded: No module named"):
        load_player(path, script=tmp_path / "needs.py")
    (tmp_path / "text.txt").write_text("x")
    with pytest.raises(UserError, match="not a Python script"):
        load_player(path, script=tmp_path / "text.txt")
    (tmp_path / "typo.py").write_text("def f(:\n")
    with pytest.raises(UserError, match=r"typo\.py cannot be loaded: invalid syntax"):
        load_player(path, script=tmp_path / "typo.py")


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
