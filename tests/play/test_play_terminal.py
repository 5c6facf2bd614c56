"""Games in the terminal, and the command `play`."""

import contextlib
import dataclasses
import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.search import searcher

from diplomacy_engine.commands import _flags
from diplomacy_engine.commands.cli import main, parse
from diplomacy_engine.commands.play import offered
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.play.file import HOST, PLAYER, Seat
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.play.terminal import TextGame
from diplomacy_engine.players.bots import BOTS, make_bot
from diplomacy_engine.players.policy.files import (
    policies_of,
    ready_policies,
    wins_against_dumbbot,
)
from diplomacy_engine.rules.map import MAP_NAMES

ROOT = Path(__file__).parents[2]


def typed(session: PlaySession, *lines: str) -> str:
    """Return what a terminal shows when these lines are typed."""
    waiting, shown = list(lines), []

    def read(prompt: str) -> str:
        shown.append(prompt)
        if not waiting:
            raise EOFError
        shown.append(waiting[0])
        return waiting.pop(0)

    TextGame(session, read, shown.append).run()
    assert not waiting
    return "\n".join(shown)


def make_session(tmp_path, game=None, host="ENGLAND", player="hold", chosen=True) -> PlaySession:
    game = game or Game("small", max_years=2)
    seats = {power: Seat(PLAYER, player) for power in game.powers} | {host: Seat(HOST)}
    if host is None:
        del seats[None]
    file = tmp_path / "game.jsonl"
    return PlaySession(game, file, [player], make_bot, seats if chosen else None)


def test_results_name_the_units(tmp_path):
    state = {"name": "S1901M", "units": {"ENGLAND": ["A LON"], "RUSSIA": ["A PAR"]}}
    session = make_session(tmp_path, Game.from_state("small", state))
    shown = typed(session, "Lon-Par", "go", "quit")
    assert re.search(r"ENGLAND +A LON - PAR   \(bounced with A PAR\)\n", shown)


def test_a_whole_game_in_the_terminal(tmp_path):
    session = make_session(tmp_path, chosen=False)
    moves = ["a lon - par", "go", "A PAR H", "go", "", "A LON B", "go"]
    shown = typed(session, "mars", "", "eng", *moves, "go", "go", "board", "go", "quit")
    assert "Which power do you play (ENGLAND, RUSSIA)?" in shown
    assert shown.count("Please name one of them.") == 2
    assert "--- Spring 1901, movement ---" in shown
    assert re.search(r"ENGLAND +A LON - PAR\n", shown) and "orders: A LON B" in shown
    assert session.game.is_over and "The game is over: ENGLAND, RUSSIA share a draw." in shown
    assert f"The game is saved in {tmp_path / 'game.jsonl'}." in shown


def test_wrong_orders_get_the_reason_and_keep_the_others(tmp_path):
    session = make_session(tmp_path)
    shown = typed(session, "A LON - PAR", "A LON - MOS", "A MOS H", "xyz", "board", "go")
    assert shown.count("No: ") == 3
    assert "'A LON - MOS'" in shown and "'xyz'" in shown
    assert session.game.units["ENGLAND"] == ["A PAR"]


def test_an_order_replaces_the_units_last_and_drop_forgets_it(tmp_path):
    session = make_session(tmp_path, Game("standard", max_years=1), "FRANCE")
    shown = typed(
        session,
        "A PAR - BUR; A MAR S A PAR - BUR",
        "A PAR - PIC",
        "drop A MAR",
        "drop A MAR",
        "",
        "go",
    )
    assert "without one: A MAR, F BRE" in shown and "No: there is no order for A MAR" in shown
    assert session.game.history[0]["orders"]["FRANCE"] == ["A PAR - PIC"]


def test_words_after_a_command_are_not_passed_over(tmp_path):
    """Else `go A LON - PAR` would give the orders without that one."""
    session = make_session(tmp_path)
    shown = typed(session, "go A LON - PAR", "quit now", "A LON - MOON", "quit")
    assert session.now.step == 0
    assert shown.count("No: nothing may follow") == 2
    assert "did you mean MOS?\n" in shown, "one mark at the end of a sentence"


def test_undo_save_legal_hint_and_help(tmp_path):
    session = make_session(tmp_path)
    copy = tmp_path / "copy.jsonl"
    shown = typed(
        session,
        *("undo", "hint", "help", "legal", "legal A LON", "legal nowhere", "legal MOS"),
        *("A LON - HOL", "go", "undo", f"save {copy}", f"save {copy}", "save", "exit"),
    )
    assert "No: there is no phase to take back." in shown
    assert "No: no player here gives hints" in shown
    assert "TAB completes" in shown and "A LON H; A LON - HOL; A LON - PAR" in shown
    assert "nowhere" in shown.lower() and "MOS: you have no orders to give" in shown
    assert "exists already" in shown and "save needs the name of a file" in shown
    assert session.game.phase == "S1901M"
    (saved,) = read_saved_games(copy)
    assert "play" not in saved and Game.from_saved_game(saved).phase == "S1901M"


def test_reasons_are_shown_at_every_turn_if_wished(tmp_path):
    player = searcher("searcher", "dumbbot", "hold")
    game = Game("small", max_years=2)
    seats = {"ENGLAND": Seat(HOST), "RUSSIA": Seat(PLAYER, "searcher")}
    load = {"searcher": player}.__getitem__
    session = PlaySession(game, tmp_path / "game.jsonl", ["searcher"], load, seats)
    shown: list[str] = []
    lines = iter(["hint", "go", "quit"])
    TextGame(session, lambda prompt: next(lines), shown.append, explain=True).run()
    text = "\n".join(shown)
    assert text.count("its first thought") == 3, "at two turns, and once when asked"
    assert re.search(r"  expects of RUSSIA \(like dumbbot 50%, hold 50%\): A MOS.* \d+%", text)
    assert re.search(r"played 100%", text) and "nan" not in text
    assert text.count("it had nothing to compare:\n  not tried") == 2, "not at the second turn"


def test_watching_in_the_terminal(tmp_path):
    session = make_session(tmp_path, host=None)
    shown = typed(session, "help", "", "next", "A LON H", "undo", "", "", "", "", "undo", "quit")
    assert "(Enter)       the next phase" in shown and "over> " in shown
    assert session.game.phase == "F1902M"


def test_retreats_and_removals_in_the_terminal(tmp_path):
    units = {"FRANCE": ["A BUR", "*A MUN"], "GERMANY": ["A RUH"]}
    state = {"name": "F1901R", "units": units, "retreats": {"FRANCE": {"A MUN": ["BOH", "TYR"]}}}
    game = Game.from_state("standard", state | {"centers": {"FRANCE": ["PAR"]}}, max_years=5)
    session = make_session(tmp_path, game, "FRANCE")
    shown = typed(session, "legal", "A MUN R TYR", "go", "A TYR D", "A BUR D", "go")
    assert "A MUN is dislodged; it may retreat to BOH TYR" in shown
    assert "A MUN: A MUN R BOH; A MUN R TYR; A MUN D" in shown
    assert "FRANCE must remove 1." in shown and "FRANCE has only 1 to build or remove" not in shown
    assert "No: 'A BUR D': FRANCE has only 1 to remove" in shown
    assert session.game.phase == "S1902M" and session.game.units["FRANCE"] == ["A BUR"]


def test_tab_completes_legal_orders(tmp_path):
    game = TextGame(make_session(tmp_path))
    assert game._completions("a lon -") == [
        f"A LON - {code}" for code in ("HOL", "PAR", "POR", "WAL")
    ]
    assert game._completions("h") == ["hint", "help"]
    assert "A MOS H" not in game._completions("")


# --- The command ----------------------------------------------------------------------------------


def run(*words: str, folder: Path, typed: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "diplomacy_engine", "play", *map(str, words)],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=300,
    )


def test_play_in_the_terminal_and_go_on(tmp_path):
    words = [
        "--map",
        "small",
        "--text",
        "--power",
        "england",
        "--against",
        "hold",
        "--max-years",
        3,
        "--seed",
        4,
    ]
    first = run(*words, "--save", "g.jsonl", folder=tmp_path, typed="A LON - PAR\ngo\n")
    assert first.returncode == 0 and "Fall 1901, movement (F1901M)" in first.stdout, first.stderr
    again = run("--text", "--resume", "g.jsonl", folder=tmp_path, typed="undo\nquit\n")
    assert again.returncode == 0 and "=== Spring 1901" in again.stdout, again.stderr
    (saved,) = read_saved_games(tmp_path / "g.jsonl")
    play = saved["play"]
    assert (play["seed"], play["max_years"], play["step"]) == (4, 3, 2)
    assert play["seats"] == {"ENGLAND": [HOST, ""], "RUSSIA": [PLAYER, "hold"]}


def test_a_file_chooses_no_code_and_no_server(tmp_path, monkeypatch, capsys):
    """It may be somebody else's: what it is played with runs once it is named by who goes on."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("raise SystemExit('this must not run')")
    words = [
        "play",
        "--map",
        "small",
        "--text",
        "--power",
        "england",
        "--against",
        "hold",
        "--save",
        "g.jsonl",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    assert main(words) == 0
    text = Path("g.jsonl").read_text()
    for name in (
        "mine.py:small-pure-1",
        "fast(assume=mine.py:a):small-pure-1",
        "llm:m@http://h/v1",
    ):
        Path("g.jsonl").write_text(text.replace('"hold"', json.dumps(name)))
        assert main(["play", "--text", "--resume", "g.jsonl"]) == 2
        found = capsys.readouterr().err.splitlines()[-1]
        assert "asks a server or runs a script; if you trust it, name it with --against" in found
    Path("mine.py").write_text("ran = True")
    Path("g.jsonl").write_text(text.replace('"hold"', '"mine.py:small-pure-1"'))
    words = ["play", "--text", "--resume", "g.jsonl", "--against", "mine.py:small-pure-1"]
    assert main(words) == 2
    assert "mine.py is not a learner: it does not call registry.register" in capsys.readouterr().err


def test_players_take_turns_and_the_file_has_a_name(tmp_path):
    words = ["--text", "--watch", "--map", "three", "--against", "hold", "random"]
    found = run(*words, folder=tmp_path, typed="\n")
    assert found.returncode == 0, found.stderr
    (file,) = (tmp_path / "runs" / "play").iterdir()
    assert file.name.startswith("three-") and str(file.relative_to(tmp_path)) in found.stdout
    (saved,) = read_saved_games(file)
    players = [seat[1] for seat in saved["play"]["seats"].values()]
    assert players == ["hold", "random", "hold"] and len(saved["phases"]) == 2


@pytest.mark.parametrize(
    "words, said",
    [
        ("--watch --power ENGLAND", "--watch seats nobody"),
        ("--text --guest ENGLAND", "--guest needs the page"),
        ("--map small --power GAUL", "'GAUL' is not a power of map small (ENGLAND, RUSSIA)"),
        (
            "--map small --power france",
            "'france' is not a power of map small (ENGLAND, RUSSIA); --map standard",
        ),
        ("--map small --power Italy", "--map three or --map standard has it"),
        ("--map small --guest ITALY", "'ITALY' is not a power of map small"),
        ("--power ENGLAND --guest ENGLAND", "ENGLAND is both yours and a guest's"),
        ("--map mars", "mars"),
        ("--against nobody", "there is no player 'nobody'"),
        ("--hint random", "random cannot give hints"),
        ("--explain", "--explain has no effect without --text"),
        ("--assume dumbbot", "--assume has no effect"),
        ("--port 99999", "--port"),
        ("--host 192.0.2.1", "--host 192.0.2.1 is not an address of this machine"),
        ("--host nowhere.invalid", "cannot listen on address 'nowhere.invalid'"),
        ("--save .", "is a folder"),
        ("--save no/such/folder.jsonl", "there is no folder no/such"),
        ("--save kept.jsonl", "--resume kept.jsonl"),
        ("--resume missing.jsonl", "missing.jsonl: No such file"),
        ("--resume kept.jsonl", "kept.jsonl cannot be continued"),
        ("--resume empty.jsonl", "empty.jsonl has no game in it"),
        ("--resume three.jsonl --map small", "three.jsonl cannot be continued"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("kept.jsonl").write_text("{}\n")
    Path("empty.jsonl").write_text("")
    Path("three.jsonl").write_text(json.dumps(Game("three").to_saved_game()))
    try:
        code = main(["play", "--port", "0", *words.split()])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("compiling")]
    assert code == 2 and out == "" and len(lines) == 1 and said in lines[0], (out, err)
    assert sorted(os.listdir(tmp_path)) in (
        ["empty.jsonl", "kept.jsonl", "three.jsonl"],
        ["empty.jsonl", "kept.jsonl", "runs", "three.jsonl"],
    )
    assert not list(tmp_path.glob("runs/play/*")) and Path("kept.jsonl").read_text() == "{}\n"


def test_a_port_in_use_ends_the_command_before_a_file_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["play", "--port", str(port), "--against", "hold", "--power", "RUSSIA"]) == 2
    assert f"port {port} of 127.0.0.1 is not available" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_who_gives_hints_is_asked_for_one_before_the_game_begins(tmp_path, monkeypatch, capsys):
    """Else the first hint would find out what is wrong, and keep everybody waiting meanwhile."""

    class Mute:
        name = "mute"

        def act(self, games, decisions):
            return make_bot("hold").act(games, decisions)

        def explain(self, games, decisions):
            raise RuntimeError("no words")

    def load(name, **options):
        return Mute() if name == "mute" else make_bot(name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("diplomacy_engine.commands.play.load_player", load)
    words = ["--map", "small", "--against", "hold", "--power", "RUSSIA", "--hint", "mute"]
    assert main(["play", "--text", *words]) == 2
    assert "mute cannot give orders or hints: RuntimeError: no words" in capsys.readouterr().err
    assert not list(tmp_path.glob("**/*.jsonl"))


def test_the_commands_of_the_manual_are_commands():
    text = (ROOT / "docs" / "playing.md").read_text()
    lines = re.findall(r"^python -m diplomacy_engine (play.*)$", text, re.MULTILINE)
    assert len(lines) >= 6
    found = [parse(shlex.split(line)) for line in lines]
    assert {command for command, _ in found} == {"play"}
    for flag in re.findall(r"`(--[a-z-]+)", text):
        assert flag in _play_help(), flag


def _play_help() -> str:
    with pytest.raises(SystemExit), contextlib.redirect_stdout(io.StringIO()) as shown:
        main(["play", "--help"])
    return shown.getvalue()


def test_help_begins_with_the_options_to_begin_with():
    first = [field.name for field in dataclasses.fields(_flags.Play)][:5]
    assert first == ["map", "against", "power", "text", "resume"]


def test_help_explains_the_protocols_that_there_are():
    """People cannot talk by all of them."""
    assert "offers: deals of" in _play_help()
    assert "propose-choose" not in _play_help()


def test_members_of_a_population_are_told_afterwards(tmp_path, monkeypatch, capsys):
    """Who was drawn stands neither on the screen nor in the file before the game is over."""
    file = tmp_path / "game.jsonl"
    words = ["play", "--map", "small", "--text", "--watch", "--against", "population"]
    words += ["--max-years", "1", "--seed", "3", "--save", str(file)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\nquit\n"))
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "population#1" in shown and " was " not in shown
    (saved,) = read_saved_games(file)
    assert set(saved["players"].values()) == {"population#1", "population#2"}
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\n\nquit\n"))
    assert main(["play", "--text", "--resume", str(file), "--seed", "4"]) == 2
    assert "--seed would draw different members" in capsys.readouterr().err
    assert main(["play", "--text", "--resume", str(file)]) == 0
    shown = capsys.readouterr().out
    (saved,) = read_saved_games(file)
    for power, name in saved["players"].items():
        assert not name.startswith("population") and f"{power} was {name}: " in shown


def test_what_the_page_offers(monkeypatch, tmp_path):
    """Trained policies of the map, those that win most first, and searches; bots alone in need."""
    for name in MAP_NAMES:
        found = offered(name, talk=False)
        ready = [one for one in ready_policies() if one.startswith(f"{name}-")]
        wins = [wins_against_dumbbot(ready_policies()[one])["value"] for one in found[: len(ready)]]
        assert set(found[: len(ready)]) == set(ready) and wins == sorted(wins, reverse=True)
        assert f"fast:{found[0]}" in found and set(BOTS) < set(found)
    assert offered("small", talk=True)[0] == f"nash+{offered('small', talk=False)[0]}"
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(
        ("small__old", "small__new", "standard__other", "small__empty")
    ):
        (tmp_path / "runs" / folder).mkdir(parents=True)
        if folder != "small__empty":
            (file := tmp_path / "runs" / folder / "checkpoint.pt").touch()
            os.utime(file, (number, number))
    after = offered("small", talk=False)[len(policies_of("small")) :]
    assert after[:3] == ["runs/small__new", "runs/small__old", f"fast:{policies_of('small')[0]}"]
    monkeypatch.setattr("diplomacy_engine.commands.play.find_spec", lambda name: None)
    assert offered("standard", talk=False)[0] == "dumbbot"
