"""Saved games: the format of the `diplomacy` package, written, read back and played on."""

import json
import os
import random
import re

import pytest
from support.games import append_saved_game, play_randomly
from support.maps import tribes
from support.tables import read_table

from diplomacy_engine import MAP_NAMES, Game, GameRules, UserError, load_map, load_player
from diplomacy_engine.matches.tournament import play_tournament
from diplomacy_engine.replays.replay import load_replays, make_replay
from diplomacy_engine.rules.map import MAPS_FOLDER
from diplomacy_engine.textgame import saved_game
from diplomacy_engine.textgame.saved_game import read_saved_games

STATE_KEYS = {
    *("timestamp", "zobrist_hash", "note", "name", "units", "retreats", "centers", "homes"),
    *("influence", "civil_disorder", "builds"),
}


# Of the diplomacy package: the hash after each phase, and the orders of that phase.
PACKAGE_HASHES = read_table(__file__, "package_hashes")


def played(name: str, seed: int, phases: int, **options) -> Game:
    """Return a game after some random phases."""
    game = Game(name, **options)
    play_randomly(game, random.Random(seed), phases)
    return game


def test_format():
    game = played("standard", 3, 40)
    saved = game.to_saved_game()
    assert list(saved) == ["id", "map", "rules", "phases", "winners"]
    assert saved["winners"] == []
    assert saved["map"] == "standard"
    assert all(isinstance(rule, str) for rule in saved["rules"])
    assert len(saved["phases"]) == 41
    for phase in saved["phases"]:
        assert list(phase) == ["name", "state", "orders", "results", "messages"]
        assert set(phase["state"]) == STATE_KEYS
        assert phase["state"]["name"] == phase["name"]
        assert isinstance(phase["state"]["timestamp"], int)
        assert isinstance(phase["state"]["zobrist_hash"], str)
        assert list(phase["orders"]) == game.powers
        for key in ("units", "retreats", "centers", "homes", "influence", "builds"):
            assert list(phase["state"][key]) == game.powers
        for power in game.powers:
            starred = [unit[1:] for unit in phase["state"]["units"][power] if unit[0] == "*"]
            assert starred == list(phase["state"]["retreats"][power])
            assert set(phase["state"]["builds"][power]) == {"count", "homes"}
        dislodged = [unit for units in phase["state"]["retreats"].values() for unit in units]
        assert bool(dislodged) == phase["name"].endswith("R")
        units = [unit for own in phase["state"]["units"].values() for unit in own]
        ordered = {"M": units, "R": dislodged}.get(phase["name"][-1], list(phase["results"]))
        assert phase is saved["phases"][-1] or sorted(phase["results"]) == sorted(ordered)
    times = [phase["state"]["timestamp"] for phase in saved["phases"]]
    assert times == sorted(set(times))
    last = saved["phases"][-1]
    assert last["results"] == {}
    assert set(last["orders"].values()) == {None}, "nothing has been submitted yet"
    assert json.loads(json.dumps(saved)) == saved


def test_influence_that_is_missing_or_of_others():
    game = Game("standard")
    game.adjudicate()
    game.adjudicate()
    saved = game.to_saved_game()
    for phase, influence in zip(saved["phases"], (None, {}, {"GAUL": ["LON"]}), strict=True):
        phase["state"]["influence"] = influence
    again = Game.from_saved_game(saved).to_saved_game()["phases"]
    assert [phase["state"]["influence"]["ENGLAND"] for phase in again[:2]] == [[], []]


def in_letters_of(change, powers, value, key=""):
    """Return what a saved game says, with the powers' names in other letters."""
    if isinstance(value, dict):
        renamed = {change(k) if k in powers else k: v for k, v in value.items()}
        return {k: in_letters_of(change, powers, v, k) for k, v in renamed.items()}
    if isinstance(value, list):
        return [in_letters_of(change, powers, each, "sender") for each in value]
    return change(value) if key in ("sender", "recipient") and value in powers else value


@pytest.fixture(scope="module")
def games_with_talk() -> list[dict]:
    """Saved games in which all is said that names powers, some of them not over."""
    rules = GameRules("three", max_years=3, press="offers", binding=False, draws_after=1903)
    players = [load_player(f"{voice}+dumbbot") for voice in ("breaker", "nash", "dealer")]
    saved = list(play_tournament(rules, players, 3, samples=3).saved_games)
    for one in list(saved):
        one = {key: own for key, own in one.items() if key not in ("draw_agreed", "conceded")}
        first, second = one["phases"][:2]
        second = {key: second[key] for key in ("name", "state", "orders")}
        game = Game.from_saved_game({**one, "phases": [first, second]})
        game.vote("ENGLAND")
        game.offer("RUSSIA", "ITALY", peace=True)
        game.send("ITALY", "RUSSIA", "let us attack England")
        game.concede("RUSSIA")
        game.adjudicate()
        saved.append(game.to_saved_game() | {"players": {"ITALY": "somebody"}})
    for one in saved:
        one["phases"][0] |= {
            "thoughts": {"ENGLAND": {"value": 0.5}},
            "broken": {"ITALY": ["RUSSIA"]},
        }
    return saved


@pytest.mark.parametrize("change", [str.lower, str.title], ids=["lower", "title"])
def test_names_in_other_letters_are_the_powers(games_with_talk, change):
    """Whatever a saved game says of powers, it is read as if it named them as the map does."""
    said = {key for one in games_with_talk for phase in one["phases"] for key in phase}
    assert said >= {"votes", "broken", "thoughts"}
    assert any(one.get("conceded") for one in games_with_talk)
    for saved in games_with_talk:
        other = in_letters_of(change, load_map("three").powers, saved)
        assert other != saved and make_replay(other) == make_replay(saved)
        again = Game.from_saved_game(other)
        assert again.to_saved_game() == Game.from_saved_game(saved).to_saved_game()
        assert again.votes == Game.from_saved_game(saved).votes
    twice = json.loads(json.dumps(saved))
    twice["phases"][0]["orders"]["england"] = []
    with pytest.raises(UserError, match="orders: has a power twice"):
        Game.from_saved_game(twice)


def test_a_game_of_a_map_file(tmp_path):
    """It names the map, not the file, and is read where the file is not."""
    path = tmp_path / "mine.toml"
    path.write_text((MAPS_FOLDER / "small.toml").read_text().replace('"small"', '"mine"'))
    saved = json.loads(json.dumps(played(str(path), 1, 4).to_saved_game()))
    assert saved["map"] == "mine" and str(tmp_path) not in json.dumps(saved)
    assert Game.from_saved_game(saved, path).to_saved_game() == saved
    path.unlink()
    again = Game.from_saved_game(saved)
    assert again.to_saved_game() == saved
    assert {make_replay(saved).map, make_replay(saved).map} == {again.map}, "it is laid out once"
    (tmp_path / "games.jsonl").write_text(json.dumps(saved) + "\n")
    (replay,) = load_replays(tmp_path / "games.jsonl")
    assert replay.map.powers == ["ENGLAND", "RUSSIA"]
    del saved["map_facts"]
    with pytest.raises(UserError, match=r"'mine'.*import-map.*--map"):
        Game.from_saved_game(saved)


def test_a_map_file_with_the_name_of_an_included_map(tmp_path):
    path = tmp_path / "small.toml"
    text = (MAPS_FOLDER / "small.toml").read_text()
    path.write_text(text)
    assert "map_facts" not in played(str(path), 1, 2).to_saved_game()
    path.write_text(re.sub(r"victory_supply_centers = \d+", "victory_supply_centers = 6", text))
    other = played(str(path), 1, 2)
    assert Game.from_saved_game(other.to_saved_game()).map == other.map != Game("small").map


@pytest.mark.parametrize("talk", [None, {}, {"protocol": "offers", "rounds": 2, "binding": False}])
def test_rules_of_what_people_played_before_version_0_6(talk):
    """They are in a key of their own, with those of talk apart."""
    saved = played("small", 1, 2).to_saved_game()
    saved["play"] = {"format": 1, "max_years": 7, "draws_after": 1903}
    saved["play"] |= {} if talk is None else {"press": talk}
    rules = Game.from_saved_game(saved).rules
    assert (rules.max_years, rules.draws_after) == (7, 1903)
    expected = None if talk is None else talk.get("protocol", "mutual")
    assert rules.press == expected
    if talk is not None:
        kept = rules.press_rounds, rules.binding, rules.open_press
        assert kept == (talk.get("rounds", 1), talk.get("binding", True), False)


def test_years_have_four_digits_or_more(tmp_path):
    """As in the package, whose ancient map begins in the year 1; both forms are read."""
    game = Game(tribes(first_phase="S1M"))
    assert game.phase == "S0001M"
    play_randomly(game, random.Random(1), 3)
    saved = game.to_saved_game()
    short = json.loads(re.sub(r'"([SFW])0001([MRA])"', r'"\g<1>1\2"', json.dumps(saved)))
    assert short["phases"][0]["name"] == short["phases"][0]["state"]["name"] == "S1M"
    assert Game.from_saved_game(short).to_saved_game() == saved
    assert Game.from_state(game.map, short["phases"][0]["state"]).phase == "S0001M"
    assert Game(tribes(first_phase="S0001M")).phase == "S0001M"
    late = Game(tribes(first_phase="S9998M"))
    play_randomly(late, random.Random(1), 12)
    assert int(late.phase[1:-1]) > 9999 and Game.from_saved_game(late.to_saved_game()).history
    assert game.causes("S1M") == game.causes("S0001M")
    replay = make_replay(short)
    assert replay.find("s1m") == replay.find("S0001M") == 0
    assert replay.frames[0].scene.phase == "S0001M"


def test_jsonl(tmp_path):
    path = tmp_path / "games.jsonl"
    games = [played(name, seed, 6).to_saved_game() for seed, name in enumerate(MAP_NAMES)]
    for saved in games:
        append_saved_game(path, saved)
    assert len(path.read_text().splitlines()) == 3
    assert list(read_saved_games(path)) == games
    path.write_text(path.read_text() + "\n{broken\n")
    with pytest.raises(UserError, match="line 5"):
        list(read_saved_games(path))
    for content in (b"[1]", b"7", b'"x"', b"\xff\xfe\x00", b"\x89PNG", b"[" * 100_000, b"\0"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"games\.jsonl, line 1: "):
            list(read_saved_games(path))


def test_files_without_an_end(tmp_path, monkeypatch):
    """Neither a pipe nor a line that goes on and on is read to its end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for endless in (pipe, "/dev/zero"):
        with pytest.raises(OSError, match="a pipe or a device"):
            list(read_saved_games(endless))
    monkeypatch.setattr(saved_game, "MAX_GAME_BYTES", 100)
    path = tmp_path / "games.jsonl"
    path.write_text("{}\n" + "[" * 101)
    with pytest.raises(UserError, match=r"line 2: .*100 bytes"):
        list(read_saved_games(path))


def test_phases_come_in_their_order():
    saved = played("small", 1, 4).to_saved_game()
    saved["phases"][:2] = saved["phases"][1::-1]
    with pytest.raises(UserError, match="S1901M comes behind F1901M"):
        Game.from_saved_game(saved)


@pytest.mark.parametrize(("saved", "name"), read_table(__file__, "what_is_no_saved_game"))
def test_what_is_no_saved_game(saved, name):
    with pytest.raises(UserError) as caught:
        Game.from_saved_game(saved)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("phases", "orders", "letters", "name"),
    [
        (501, 500, [], "250,000"),
        (1, 0, [10_000_001], "10,000,000"),
        (1, 0, [100_000] * 101, "10,000,000"),
    ],
)
def test_a_saved_game_has_no_more_than(phases, orders, letters, name):
    saved = Game("small").to_saved_game()
    phase, talk = saved["phases"][0], {"sender": "ENGLAND", "recipient": "RUSSIA"}
    phase["orders"] = {"ENGLAND": ["A LON H"] * orders}
    phase["messages"] = [
        talk | {"time_sent": 0, "phase": "S1901M", "message": "x" * count} for count in letters
    ]
    saved["phases"] = [phase] * phases
    with pytest.raises(UserError) as caught:
        Game.from_saved_game(saved)
    assert name in str(caught.value)


def test_we_open_the_games_of_the_diplomacy_package():
    package = pytest.importorskip("diplomacy")
    export = pytest.importorskip("diplomacy.utils.export")
    theirs, rng = package.Game(), random.Random(7)
    for _ in range(30):
        possible = theirs.get_all_possible_orders()
        for power in theirs.powers:
            places = theirs.get_orderable_locations(power)
            orders = [rng.choice(possible[place]) for place in places if possible[place]]
            theirs.set_orders(power, orders)
        theirs.process()
        saved = json.loads(json.dumps(export.to_saved_game_format(theirs)))
        game = Game.from_saved_game(saved)
        assert game.phase == theirs.get_current_phase()
        state = game.to_state()
        for power in game.powers:
            assert sorted(state["units"][power]) == sorted(theirs.get_units(power))
            assert state["centers"][power] == sorted(theirs.get_centers(power))
        if theirs.is_game_done:
            break
    assert len(game.history) == len(saved["phases"]) - 1


def test_hashes_are_those_of_the_diplomacy_package():
    """The numbers were printed by version 1.1.2 of the package."""
    game = Game("standard")
    assert game.to_state()["zobrist_hash"] == "1919110489198082658"
    for expected, orders in PACKAGE_HASHES:
        for power, texts in orders.items():
            game.submit(power, texts)
        game.adjudicate()
        assert game.to_state()["zobrist_hash"] == expected, game.phase
