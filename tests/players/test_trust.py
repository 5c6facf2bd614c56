"""Players that a file may name by itself, and those that the command line must name too."""

import io
import json
import os
import sys
import types

import pytest
from support.language import FakeServer, holds
from support.serving import seated
from support.tables import read_table

from diplomacy_engine.commands.cli import main
from diplomacy_engine.errors import UserError
from diplomacy_engine.play.file import PLAYER
from diplomacy_engine.players.policy.player import Objective
from diplomacy_engine.players.trust import check_named, needs_naming


@pytest.mark.parametrize("name", read_table(__file__, "what_is_only_read_needs_no_naming"))
def test_what_is_only_read_needs_no_naming(name):
    assert not needs_naming(name)
    check_named([name], [], "a file")


@pytest.mark.parametrize("name", read_table(__file__, "what_does_something_must_be_named"))
def test_what_does_something_must_be_named(name):
    assert needs_naming(name)
    with pytest.raises(UserError) as refused:
        check_named(["dumbbot", name], ["dumbbot", f"{name}x"], "game.jsonl", "--eval-bot")
    said = str(refused.value)
    assert said.startswith("game.jsonl names the player ") and "--eval-bot" in said
    assert repr(name) in said and "\n" not in said
    check_named(["dumbbot", name], [name], "game.jsonl")


def saved(tmp_path, asker, place):
    """Return the file of a game that names a player as opponent, in a seat, or for hints."""
    file = tmp_path / "game.jsonl"
    seated(file, "pp")
    game = json.loads(file.read_text())
    match place:
        case "opponents":
            game["play"]["opponents"] = ["hold", asker]
        case "seats":
            game["play"]["seats"]["RUSSIA"] = [PLAYER, asker]
        case "hint":
            game["play"]["hint"] = asker
    file.write_text(json.dumps(game))
    return file


@pytest.mark.parametrize("place", ["opponents", "seats", "hint"])
@pytest.mark.parametrize("kind", ["address", "settings", "within"])
def test_a_saved_game_asks_no_server_and_reads_no_settings(
    kind, place, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("MY_PASSWORD", "hush")
    log = tmp_path / "log.jsonl"
    with FakeServer(lambda body, number: holds(body)) as server:
        settings = {"model": "m", "base_url": server.url, "log": str(log)}
        settings |= {"api_key_env": "MY_PASSWORD"}
        toml = tmp_path / "player.toml"
        toml.write_text("".join(f"{key} = {json.dumps(v)}\n" for key, v in settings.items()))
        asker = f"llm:m@{server.url}" if kind == "address" else f"llm:{toml}"
        asker = f"fast(assume={asker}):small-pure-2" if kind == "within" else asker
        file = saved(tmp_path, asker, place)
        before = file.read_bytes()
        assert main(["play", "--text", "--resume", str(file)]) == 2
        assert server.requests == []
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {file} names the player {asker[:40]!r}"[:-1])
    assert err.count("\n") == 1 and ("--hint" if place == "hint" else "--against") in err
    assert not log.exists() and file.read_bytes() == before
    assert out == "" and sorted(os.listdir(tmp_path)) == ["game.jsonl", "player.toml"]


def test_a_player_that_is_named_as_well_plays_where_it_sat(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with FakeServer(lambda body, number: holds(body)) as server:
        asker = f"llm:m@{server.url}"
        file = saved(tmp_path, asker, "opponents")
        game = json.loads(file.read_text())
        game["play"]["seats"] = {"ENGLAND": [PLAYER, asker], "RUSSIA": [PLAYER, asker]}
        file.write_text(json.dumps(game))
        assert main(["play", "--text", "--resume", str(file), "--against", "hold", asker]) == 0
        assert server.requests
    seats = json.loads(file.read_text())["play"]["seats"]
    assert set(map(tuple, seats.values())) == {(PLAYER, asker)}, capsys.readouterr().err


def test_a_search_does_not_import_the_reward_of_a_policys_file(tmp_path, monkeypatch):
    """Whoever trusts it imports it first."""
    (tmp_path / "strangers_reward.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"reward": "strangers_reward:pay", "gamma": 1.0, "year_limit": "draw"}
    with pytest.raises(UserError, match="strangers_reward"):
        Objective.of(settings)
    own = types.ModuleType("strangers_reward")
    own.pay = lambda game: game.centers
    monkeypatch.setitem(sys.modules, "strangers_reward", own)
    assert Objective.of(settings).gamma == 1.0
