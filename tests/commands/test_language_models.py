"""Language models in the commands: estimates, counters, prompts and replies in files."""

import json
import os
import signal
import threading
import time

import pytest
from support.language import FakeServer, holds

from diplomacy_engine.commands.cli import main
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import make_replay

SHORT = "llm:llm.toml"  # what the models of `write_settings` are called


def reply(body, number):
    """Forget one unit of ten, and order the others to hold."""
    return "A MOS - LON" if number % 10 == 9 else holds(body)


def write_settings(folder, url, **settings):
    lines = {"model": "m", "base_url": url, "reasks": 0, "prompt": "minimal"} | settings
    file = folder / "llm.toml"
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    return f"llm:{file}"


def test_a_match_has_counters_prompts_and_replies(tmp_path, capsys):
    files = {name: tmp_path / f"result.{name}" for name in ("json", "jsonl")}
    with FakeServer(reply) as server:
        name = write_settings(tmp_path, server.url)
        options = ["--json", files["json"], "--save-games", files["jsonl"], "--save-count", 2]
        words = ["evaluate", "--map", "small", "--player", name, "--against", "random", "--games"]
        assert main([str(word) for word in (*words, 4, "--max-years", 3, *options)]) == 0
    out, err = capsys.readouterr()
    assert "4 games have about 34 decisions of language models" in err
    assert "legal at once" in out and "orders come from its fallback, hold" in out
    counts = json.loads(files["json"].read_text())["llm"][SHORT]
    assert counts["requests"] == len(server.requests) == counts["decisions"] > 10
    assert counts["fell_back"] == counts["orders"] - counts["legal_at_once"] > 0
    games = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    assert len(games) == 2
    for game in games:
        (mine,) = [power for power, player in game["players"].items() if player == SHORT]
        first = game["phases"][0]["thoughts"]
        assert list(first) == [mine] and first[mine]["prompt"].startswith("Diplomacy, map small")
        shown = make_replay(game).frames[0].thoughts[mine]
        assert shown.reply == first[mine]["reply"]
    assert "details" in page([make_replay(games[0])], "test")


def test_a_model_against_itself_is_counted_twice(tmp_path, capsys):
    files = {name: tmp_path / f"result.{name}" for name in ("json", "jsonl")}
    with FakeServer(reply) as server:
        name = write_settings(tmp_path, server.url)
        options = ["--json", files["json"], "--save-games", files["jsonl"], "--save-count", 1]
        words = ["evaluate", "--map", "small", "--player", name, "--against", name, "--games"]
        assert main([str(word) for word in (*words, 2, "--max-years", 2, *options)]) == 0
    counts = json.loads(files["json"].read_text())["llm"]
    assert list(counts) == [SHORT, f"{SHORT} (2)"]
    assert sum(each["requests"] for each in counts.values()) == len(server.requests)
    (game,) = map(json.loads, files["jsonl"].read_text().splitlines())
    assert game["phases"][0]["thoughts"].keys() == {"ENGLAND", "RUSSIA"}


def gone(handler):
    handler.server.shutdown()
    handler.server.server_close()


def until_year(year, end):
    """Return a server's reply: none of use, so that the fallback orders; from a year on, an end."""
    return lambda body, number: end if year in body["messages"][0]["content"] else "?"


def broken_off(tmp_path, capsys, words, reply, expected):
    """Play a match that breaks off; return its result and saved games."""
    files = {name: tmp_path / f"result.{name}" for name in ("json", "jsonl", "csv", "games.csv")}
    named = ("--json", "--save-games", "--csv", "--per-game")
    options = [word for flag, file in zip(named, files.values()) for word in (flag, str(file))]
    with FakeServer(reply) as server:
        name = write_settings(tmp_path, server.url, retries=0, fallback="dumbbot")
        words = [name if word == "MODEL" else word for word in words]
        assert main([*words, *options, "--save-count", "12"]) == expected
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert last.startswith("error: ") and "that had ended" in last
    assert "asked of language models" in out
    result = json.loads(files["json"].read_text())
    saved = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    assert result["games"] == len(saved) and 0 < len(saved) < 12
    assert f"the {len(saved)} of 12 games" in last
    assert result["llm"][SHORT]["requests"] > 0
    numbers = {line.split(",")[0] for line in files["games.csv"].read_text().splitlines()[1:]}
    assert numbers == {str(int(game["id"].split("-")[1]) + 1) for game in saved}
    for game in saved:
        mine = next(power for power, player in game["players"].items() if player == SHORT)
        assert mine in game["phases"][0]["thoughts"]
    return last


EVALUATE = ["evaluate", "--map", "small", "--player", "MODEL", "--against", "random"]
TOURNAMENT = ["tournament", "--map", "small", "--players", "MODEL", "random"]


@pytest.mark.parametrize("words", [EVALUATE, TOURNAMENT])
def test_finished_games_are_kept_when_the_server_dies(tmp_path, capsys, words):
    words = [*words, "--games", "12", "--max-years", "8"]
    assert "no longer answers" in broken_off(tmp_path, capsys, words, until_year("1904", gone), 2)


def test_finished_games_are_kept_when_the_user_stops(tmp_path, capsys):
    once = threading.Lock()

    def stop(handler):
        if once.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

    words = [*EVALUATE, "--games", "12", "--max-years", "8"]
    # Where the tests run in the background, the shell has them ignore what Ctrl-C sends.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        last = broken_off(tmp_path, capsys, words, until_year("1904", stop), 130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert last.startswith("error: interrupted")


def test_with_no_game_finished_there_is_one_sentence(tmp_path, capsys):
    with FakeServer(until_year("F1901M", gone)) as server:
        name = write_settings(tmp_path, server.url, retries=0)
        words = ["evaluate", "--map", "small", "--player", name, "--games", "4"]
        assert main([*words, "--json", str(tmp_path / "result.json")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "no longer answers" in err.splitlines()[-1]
    assert not (tmp_path / "result.json").exists()
