"""Games in the terminal, and the command `play`."""

import io
import json
import os
import re
import socket
from pathlib import Path

import pytest
from support.commands import refusal
from support.search import searcher
from support.serving import begun, seated
from support.transcripts import follow, names_of

from diplomacy_engine import BOTS, MAP_NAMES, make_bot
from diplomacy_engine.commands._flags import Play
from diplomacy_engine.commands._opponents import mixed, offered, rated
from diplomacy_engine.commands.cli import main
from diplomacy_engine.commands.play import _game_of_file
from diplomacy_engine.play.file import PLAYER, Seat
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.play.terminal import TextGame
from diplomacy_engine.players.policy.files import policies_of, ready_policies, wins_against_dumbbot
from diplomacy_engine.textgame.saved_game import read_saved_games


@pytest.fixture
def file(tmp_path):
    return tmp_path / "game.jsonl"


def typed(session: PlaySession, lines: list[str], **options) -> list[str]:
    """Return what a terminal shows first, and after each of these lines."""
    waiting, shown = iter(lines), [""]

    def read(prompt: str) -> str:
        shown[-1] += prompt
        if (line := next(waiting, None)) is None:
            raise EOFError
        shown.append("")
        return line

    def write(text: str) -> None:
        shown[-1] += f"{text}\n"

    TextGame(session, read, write, **options).run()
    assert next(waiting, None) is None
    return shown


@pytest.mark.parametrize("name", names_of(__file__, "terminal"))
def test_a_game_in_the_terminal(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def play(lines):
        return typed(begun(Path("game.jsonl"), **json.loads(lines[0])), lines[1:])

    follow(__file__, "terminal", name, play)


def test_reasons_are_shown_at_every_turn_if_wished(file):
    player = searcher("searcher", "dumbbot", "hold")
    session = seated(file, player="searcher", load=lambda name: player)
    text = "".join(typed(session, ["hint", "go", "quit"], explain=True))
    assert text.count("its first thought") == 3, "at two turns, and once when asked"
    assert re.search(r"  expects of RUSSIA \(like dumbbot 50%, hold 50%\): A MOS.* \d+%", text)
    assert re.search(r"played 100%", text) and "nan" not in text
    assert text.count("it had nothing to compare:\n  not tried") == 2, "not at the second turn"


def test_tab_completes_legal_orders(file):
    game = TextGame(seated(file))
    places = ("HOL", "PAR", "POR", "WAL")
    assert game._completions("a lon -") == [f"A LON - {code}" for code in places]
    assert game._completions("h") == ["hint", "help"]
    assert "A MOS H" not in game._completions("")


# --- The command ----------------------------------------------------------------------------------


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Return a function (words, typed) that plays in the terminal and returns what it shows."""
    monkeypatch.chdir(tmp_path)

    def run(words: str, typed: str = "quit\n") -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["play", "--text", *words.split()]) == 0
        return capsys.readouterr().out

    return run


def refused(words: str, capsys) -> str:
    return refusal("play", *words.split(), capsys=capsys)


@pytest.mark.parametrize("named", [(), ("hint",), ("seed",), ("against",), ("hint", "against")])
def test_a_game_goes_on_as_its_file_says_but_for_flags(named, file):
    seated(file, player="random", load=lambda _: searcher(), hint="small-pure-1", seed=4)
    flags = {"hint": "small-pure-2", "seed": 5, "against": ("hold",)}
    flags = {name: flags[name] for name in named}
    kept = {"hint": "small-pure-1", "seed": 4, "against": ("random",)} | flags
    record = _game_of_file(Play(resume=str(file), **flags), str(file))[1]
    assert (record.hint, record.seed, tuple(record.opponents)) == tuple(kept.values())
    assert record.seats["RUSSIA"] == Seat(PLAYER, *kept["against"])


def test_a_port_in_use_ends_the_command_before_a_file_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = refused(f"--port {port} --against hold --power RUSSIA", capsys)
    assert f"port {port} of '127.0.0.1'" in found and "--port" in found
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
    monkeypatch.setattr("diplomacy_engine.commands._matches.load_player", load)
    found = refused("--text --map small --against hold --power RUSSIA --hint mute", capsys)
    assert "mute cannot give orders or hints: RuntimeError: no words" in found
    assert not list(tmp_path.glob("**/*.jsonl"))


def test_members_of_a_population_are_told_afterwards(play, capsys):
    """Who was drawn stands neither on the screen nor in the file before the game is over."""
    new = "--map small --watch --against population --max-years 1 --seed 3 --save g.jsonl"
    shown = play(new, "\nquit\n")
    assert "population#1" in shown and " was " not in shown
    (saved,) = read_saved_games("g.jsonl")
    assert set(saved["players"].values()) == {"population#1", "population#2"}
    assert "--seed" in refused("--text --resume g.jsonl --seed 4", capsys)
    assert "--assume" in refused("--text --resume g.jsonl --assume dumbbot", capsys)
    changed = Path("changed.jsonl")
    changed.write_text(Path("g.jsonl").read_text().replace("population#1", "population"))
    assert "'population'" in refused("--text --resume changed.jsonl", capsys)
    shown = play("--resume g.jsonl", "\n\n\nquit\n")
    (saved,) = read_saved_games("g.jsonl")
    for power, name in saved["players"].items():
        assert not name.startswith("population") and f"{power} was {name}: " in shown
    assert "population rank" not in shown  # nobody played


def test_rated_games_of_a_folder_add_up(play, capsys):
    flags = "--map small --power RUSSIA --against population --max-years 1"
    for number, count in enumerate(("1 rated game", "2 rated games")):
        shown = play(f"{flags} --seed {number} --save {number}.jsonl", "go\n" * 5 + "quit\n")
        assert re.search(rf"^Your rank: \d+ of \d+, after {count} ", shown, re.MULTILINE), shown


def test_what_the_page_offers(monkeypatch, tmp_path):
    """Trained policies of the map, those that win most first, and searches; bots alone in need."""
    for name in MAP_NAMES:
        assert next(iter(offered(name, talk=False))) == "mixed"
        found = list(offered(name, talk=False))[1:]
        ready = [one for one in ready_policies() if one.startswith(f"{name}-")]
        wins = [wins_against_dumbbot(ready_policies()[one])["value"] for one in found[: len(ready)]]
        assert set(found[: len(ready)]) == set(ready) and wins == sorted(wins, reverse=True)
        assert f"fast:{found[0]}" in found and set(BOTS) < set(found)
    assert mixed("small", talk=False) == policies_of("small")
    assert mixed("small", talk=True)[0] == list(offered("small", talk=True))[1]
    assert "wins 94% against dumbbot" in offered("small", talk=False)["small-dumbbot-2"]
    monkeypatch.chdir(tmp_path)
    runs = ("small__old", "small__new", "standard__other", "small__empty")
    for number, folder in enumerate(runs):
        (tmp_path / "runs" / folder).mkdir(parents=True)
        if folder != "small__empty":
            (file := tmp_path / "runs" / folder / "checkpoint.pt").touch()
            os.utime(file, (number, number))
    after = list(offered("small", talk=False))[1 + len(policies_of("small")) :]
    assert after[:3] == ["runs/small__new", "runs/small__old", f"fast:{policies_of('small')[0]}"]
    assert rated("small")
    with monkeypatch.context() as patch:  # no wheel has populations
        patch.setattr("diplomacy_engine.players.population.FOLDERS", tmp_path)
        assert not rated("small")
    monkeypatch.setattr("diplomacy_engine.commands._opponents.find_spec", lambda name: None)
    assert next(iter(offered("standard", talk=False))) == "dumbbot"
