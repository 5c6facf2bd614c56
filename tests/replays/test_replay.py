"""Replays: what a page holds, pictures and texts of a phase, and files that are no games."""

import base64
import io
import json
import re
import sys
import zlib

import pytest
from PIL import Image
from support.players import Thinker
from support.search import searcher
from support.tables import read_table

from diplomacy_engine import Game, UserError, evaluate_player, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.commands.replay import show
from diplomacy_engine.learning.sample_games import IMAGE_WIDTH, show_games, thoughts
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import frame_svg, load_replays, make_replay
from diplomacy_engine.replays.text import frame_text
from tests.support.games import append_saved_game


def played(name: str, phases: int, bot: str = "dumbbot") -> Game:
    """Return a game that a bot has played with itself, so many phases long."""
    (saved,) = evaluate_player(
        name, make_bot(bot), make_bot(bot), 1, samples=1, max_years=phases
    ).saved_games
    return Game.from_saved_game(saved)


@pytest.fixture(scope="module")
def small_game() -> dict:
    return played("small", 4).to_saved_game()


@pytest.fixture
def small_file(tmp_path, small_game):
    path = tmp_path / "games.jsonl"
    for number in (1, 2):
        append_saved_game(path, small_game | {"id": f"<b>game {number}</b>"})
    return path


def facts_of(text: str) -> dict:
    """Return what is stored in a page."""
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    return json.loads(data)


def unpack(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()


def test_a_page_holds_every_phase_and_nothing_from_elsewhere(small_file, small_game):
    text = page(load_replays(small_file), 'title of "<games>"')
    assert "<title>title of &quot;&lt;games&gt;&quot;</title>" in text
    assert "<b>game" not in text, "the name of a game is data, not HTML"
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", text)
    assert (
        "@import" not in text and text.replace("http://www.w3.org/2000/svg", "").count("://") == 0
    )
    facts = facts_of(text)
    assert [game["id"] for game in facts["games"]] == ["<b>game 1</b>", "<b>game 2</b>"]
    assert len(facts["maps"]) == 1
    names = [phase["name"] for phase in small_game["phases"]]
    assert facts["games"][0]["phases"] == names
    frames = json.loads(unpack(facts["games"][0]["data"]))
    for frame, phase in zip(frames, small_game["phases"], strict=True):
        for power, centers in phase["state"]["centers"].items():
            assert frame["powers"][power]["centers"] == len(centers)
            for unit in phase["state"]["units"][power]:
                assert f'data-unit="{unit.lstrip("*")}" data-power="{power}"' in frame["overlay"]
            told = {line["text"] for line in frame["orders"] if line["power"] == power}
            assert told >= set(phase["orders"][power] or ())
    assert "<svg" in unpack(facts["games"][0]["chart"])


def test_results_that_nobody_ordered_are_listed():
    state = {
        "name": "W1901A",
        "units": {"FRANCE": ["A PAR", "A MAR"]},
        "centers": {"FRANCE": ["PAR"]},
    }
    game = Game.from_state("standard", state)
    game.adjudicate()
    replay = make_replay(game.to_saved_game())
    (line,) = replay.frames[0].scene.orders["FRANCE"]
    assert line.text.endswith("(no order)") and line.words == ("disband",)
    assert "(no order)  disband" in frame_text(replay, 0)


def test_results_name_the_units():
    """In the page's lists, in the pictures' tooltips and in the text."""
    units = {"FRANCE": ["A PAR", "A MAR"], "GERMANY": ["A BUR", "A RUH"], "ITALY": ["A PIE"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units})
    game.submit("FRANCE", ["A PAR - BUR", "A MAR S A PAR - BUR"])
    game.submit("GERMANY", ["A BUR H", "A RUH S A BUR"])
    game.submit("ITALY", ["A PIE - MAR"])
    game.adjudicate()
    replay = make_replay(game.to_saved_game())
    text = frame_text(replay, 0)
    assert re.search(r"A PAR - BUR +bounced with A BUR\n", text)
    assert re.search(r"A MAR S A PAR - BUR +cut by A PIE\n", text)
    (entry,) = facts_of(page([replay], "t"))["games"]
    frame = json.loads(unpack(entry["data"]))[0]
    assert frame["orders"][0] == {
        "power": "FRANCE", "text": "A PAR - BUR", "unit": "Army Paris",
        "words": "move to Burgundy", "result": ["bounce"], "sentence": "bounced with army Burgundy",
    }  # fmt: skip
    for picture in (frame["overlay"], frame_svg(replay, 0)):
        assert 'data-result="bounce"><title>A PAR - BUR (France): bounced with A BUR<' in picture
        assert "<title>A PIE - MAR (Italy): bounced with A MAR<" in picture


def test_pictures_and_pages_from_the_command_line(small_file, tmp_path, capsys):
    begins = {"a.svg": b"<svg", "b.PNG": b"\x89PNG", "c.html": b"<!DOCTYPE", "d.gif": b"GIF8"}
    for name, start in begins.items():
        words = ["replay", str(small_file), "--output", str(tmp_path / name)]
        assert main(words + ["--phase", "F1901M"] * (name != "c.html")) == 0
        assert (tmp_path / name).read_bytes().startswith(start)
    with Image.open(tmp_path / "d.gif") as moving:
        assert moving.n_frames == 1 + load_replays(small_file)[0].find("F1901M")
    assert b"F1901M" in (tmp_path / "a.svg").read_bytes()
    capsys.readouterr()
    assert main(["replay", str(small_file), "--text", "--phase", "F1901M", "--game", "2"]) == 0
    assert capsys.readouterr().out.count("<b>game 2</b>") == 1


def test_the_games_of_a_run_folder(small_file, tmp_path):
    games = tmp_path / "run" / "games"
    games.mkdir(parents=True)
    for name in ("000000200000", "000000075000"):
        (games / f"{name}.jsonl").write_bytes(small_file.read_bytes())
    replays = load_replays(tmp_path / "run")
    own = [replay.id for replay in load_replays(small_file)]
    moments = [f"75,000 decisions, {name}" for name in own]
    assert [replay.id for replay in replays] == moments + [f"200,000 decisions, {n}" for n in own]
    assert main(["replay", str(tmp_path / "run"), "--output", str(tmp_path / "a.html")]) == 0
    assert "75,000 decisions" in (tmp_path / "a.html").read_text()
    assert len(load_replays(games)) == len(replays)


def test_a_game_of_another_map():
    with pytest.raises(UserError, match=r"'AUSTRIA' .*names map standard"):
        make_replay(Game("standard").to_saved_game(), game_map="small")


def test_a_text_that_no_screen_can_show(tmp_path, capsys):
    path = tmp_path / "games.jsonl"
    append_saved_game(path, Game("small").to_saved_game() | {"id": "\ud800\x1b[2J"})
    assert main(["replay", str(path), "--text"]) == 0
    shown = capsys.readouterr().out
    assert r"game \ud800\x1b[2J" in shown and shown.replace("\n", "").isprintable()
    assert main(["replay", str(path), "--output", str(tmp_path / "page.html")]) == 0


def test_stepping_in_a_terminal(small_game, monkeypatch, capsys):
    replay = make_replay(small_game)
    for end in ("q\n", ""):  # or the end of what is typed
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"p\n\nn\nP\n{end}"))
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        show(replay)
        seen = re.findall(r"phase (\d+) of", capsys.readouterr().out)
        assert seen == ["1", "1", "2", "3", "2"]


def test_sampled_games_keep_what_the_player_thought():
    player = Thinker()
    games = evaluate_player(
        "small", player, make_bot("dumbbot"), 2, samples=2, max_years=3,
        think=lambda game, power: thoughts(player, game, power),
    ).saved_games  # fmt: skip
    for saved, mine in zip(games, ("ENGLAND", "RUSSIA")):
        first = saved["phases"][0]
        assert first["thoughts"].keys() == {mine}
        assert first["thoughts"][mine]["value"] == 2.25
        for unit, choices in first["thoughts"][mine]["orders"].items():
            assert choices[0][1] == 0.5 and all(text.startswith(unit) for text, _ in choices)
        assert "thoughts" not in saved["phases"][-1]
    page, images = show_games({"dumbbot": games}, "a run")
    assert images.keys() == {"games/dumbbot/board", "games/dumbbot/centers"}
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + IMAGE_WIDTH.to_bytes(4, "big")
    assert all(image.startswith(header) for image in images.values())
    facts = facts_of(page)
    assert len(facts["games"]) == 2 and facts["games"][0]["id"].endswith("against dumbbot")
    frames = json.loads(unpack(facts["games"][0]["data"]))
    assert "data-thought=" in frames[0]["thoughts"]
    again = Game.from_saved_game(games[0])
    assert again.history[0]["thoughts"] == games[0]["phases"][0]["thoughts"]


def test_what_a_search_has_tried_is_kept_and_shown():
    player = searcher()
    games = evaluate_player(
        "small", player, make_bot("dumbbot"), 2, samples=2, max_years=3,
        think=lambda game, power: thoughts(player, game, power),
    ).saved_games  # fmt: skip
    tried = games[0]["phases"][0]["thoughts"]["ENGLAND"]["tried"]
    assert sum(share for *_, share in tried) == 1 and tried[0][2] == 1
    frames = json.loads(unpack(facts_of(page([make_replay(games[0])], "t"))["games"][0]["data"]))
    shown = frames[0]["powers"]["ENGLAND"]["thought"]["tried"]
    assert shown[0][0] == ", ".join(tried[0][0]) and shown[0][1:] == tried[0][1:]


@pytest.mark.parametrize("found", read_table(__file__, "thoughts_of_a_foreign_file"))
def test_thoughts_of_a_foreign_file_are_not_believed(found):
    saved = Game("small").to_saved_game()
    saved["phases"][0]["thoughts"] = found
    text = page([make_replay(saved)], "t")
    frames = json.loads(unpack(facts_of(text)["games"][0]["data"]))
    assert frames[0]["thoughts"] == ""


def test_a_title_tells_what_came_of_it():
    hold = make_bot("hold")
    (saved,) = evaluate_player("three", hold, hold, 1, samples=1, max_years=1).saved_games
    assert make_replay(saved).title == "A draw between all powers"
    assert make_replay(Game("small").to_saved_game()).title == "Not over, in Spring 1901, movement"
