"""A seat on a webDiplomacy site, against one that is as strict and as silent as the real one."""

import json
import random

import pytest
from support.commands import refusal
from support.games import orderable, play_randomly, random_units
from support.webdip import CODE, NUMBER, POWERS, Site, history, row_of, variant

from diplomacy_engine.commands.cli import main
from diplomacy_engine.connections import webdip_site
from diplomacy_engine.connections.connection import ConnectionLost, PhaseOver
from diplomacy_engine.connections.loop import SeatLoop, dropped
from diplomacy_engine.connections.sea_paths import convoy_path
from diplomacy_engine.connections.webdip import WebdipSeat, _letters, kept_texts
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.webdiplomacy import (
    OrderRow,
    classic,
    order_row,
    order_text,
    read_variant,
)
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.records import convert
from diplomacy_engine.rules.map import load_map

STANDARD = load_map("standard")
FRANCE = 2
KINDS_OF_ORDERS = {
    *("Hold", "Move", "Move by sea", "Support hold", "Support move", "Support move by sea"),
    *("Convoy by sea", "Retreat", "Disband", "Destroy", "Build Army", "Build Fleet", "Wait"),
}


@pytest.fixture
def site():
    with Site() as site:
        yield site


def seat(site, country=FRANCE, key=None, game=5, **options) -> WebdipSeat:
    page = webdip_site.Site(site.url, key or f"key-{country}", seconds=5)
    options = {"sleep": lambda seconds: None, "say": lambda text: None} | options
    return WebdipSeat(page, game, None, STANDARD, **options)


def loop_of(connection, player="dumbbot", told=None) -> SeatLoop:
    say = (lambda text: None) if told is None else told.append
    return SeatLoop(connection, make_bot(player), say=say, sleep=lambda seconds: None)


def test_numbers_and_names():
    """Names of variant.json, the numbers known without it, and the site's list are one."""
    for known in (classic(STANDARD), read_variant(variant(), STANDARD)):
        assert known.places == CODE and known.numbers == NUMBER
        assert [known.powers[n] for n in range(1, 8)] == list(POWERS)
    assert NUMBER["BUL/EC"] == 80 and len(NUMBER) == 81


def position(units, name="S1901M", **more) -> Game:
    return Game.from_state("standard", {"name": name, "units": units} | more)


def test_paths_and_parents():
    known = classic(STANDARD)
    game = position({"ENGLAND": ["A LON", "F NTH"], "FRANCE": ["F SPA/SC", "A GAS"]})
    row = order_row(known, "A LON - BEL VIA", False, convoy_path(game, "A LON - BEL VIA"))
    assert row["convoyPath"] == [6, 53] and row["viaConvoy"] == "Yes"
    game = position({"RUSSIA": ["F STP/SC", "A FIN"]})
    row = order_row(known, "A FIN S F STP/SC", False)
    assert (row["type"], row["toTerrID"]) == ("Support hold", 32)
    assert order_row(known, "F STP/SC D", True)["terrID"] == 32
    assert order_row(known, "F STP/SC D", False)["terrID"] == 79


def test_a_convoy_goes_over_its_fleet_and_a_support_not():
    game = position(
        {"ENGLAND": ["A LON", "F NTH", "F ENG", "F HEL"], "FRANCE": ["F BEL"]}, name="F1901M"
    )
    assert convoy_path(game, "A LON - BEL VIA") in (["LON", "NTH"], ["LON", "ENG"])
    assert convoy_path(game, "F ENG C A LON - BEL") == ["LON", "ENG"]
    assert convoy_path(game, "F NTH S A LON - BEL") == ["LON", "ENG"]
    assert convoy_path(game, "F HEL C A LON - HOL") == ["LON", "NTH", "HEL"]
    assert convoy_path(game, "F HEL C A LON - BEL") == []
    assert convoy_path(game, "A LON - YOR") == convoy_path(game, "WAIVE") == []


@pytest.mark.parametrize("seed", range(3))
def test_legal_orders_are_kept(site, seed):
    """What our rules allow is taken as it is, with its coasts and convoys.

    Convoys over fleets that are not there are not: the site wants to know the whole way.
    """
    rng, game = random.Random(seed), Game("standard")
    play_randomly(game, rng, 8 + 7 * seed)
    connections = {}
    checked = 0
    for _ in range(6):
        site.game = game
        site._version += 1
        for power in game.powers:
            if game.is_over or power not in site._waiting():
                continue
            country = POWERS.index(power) + 1
            connection = connections.setdefault(power, seat(site, country))
            (now,) = connection.positions()
            assert now.game.phase == game.phase and now.seats == [power]
            orders = _some_orders(game, power, rng)
            site.kept = {}
            kept = connection.give(now, power, orders)
            assert dropped(game, orders, kept) == []
            checked += len(orders)
        play_randomly(game, rng)
    assert checked > 40


@pytest.mark.parametrize(
    "count", [50, pytest.param(500, marks=pytest.mark.slow)], ids=["50 positions", "500 positions"]
)
def test_every_legal_order_is_kept(site, count):
    """Each alone: our order -> its row -> the site takes it -> its row -> our order."""
    known, rng, game = classic(STANDARD), random.Random(9), Game("standard")
    checked: dict[str, int] = {}
    for number in range(count):
        site.game = game
        if number % 3 == 0:  # units all over the board have more convoys than any game
            units = random_units(STANDARD, rng, 7)
            site.game = position(units, name=rng.choice(["S1901M", "F1901M"]))
        for power, places in orderable(site.game).items():
            before = site._defaults(power)
            for text in {text for place in places for text in site.game.legal_orders(place)}:
                if text != "WAIVE" and _is_lost_at_sea(site.game, text):
                    continue
                path = convoy_path(site.game, text)
                kept = [dict(row) for row in before]
                row = json.loads(
                    json.dumps(order_row(known, text, site.game.phase[-1] == "A", path))
                )
                site._take(power, kept, set(), row)
                texts = kept_texts(known, site.game, kept)
                assert dropped(site.game, [text], texts) == [], row
                kind = row["type"] + (" by sea" if row.get("convoyPath") else "")
                checked[kind] = checked.get(kind, 0) + 1
        play_randomly(game, rng, rng.randint(1, 3))
        while number % 10 == 5 and not (game.dislodged or game.is_over):
            play_randomly(game, rng)
        if game.is_over:
            game = Game("standard")
    assert sum(checked.values()) > 100 * count, checked
    assert set(checked) >= KINDS_OF_ORDERS, checked


def _some_orders(game, power, rng):
    if game.phase.endswith("A"):
        owed = game.adjustments[power]
        places = game.to_state()["builds"][power]["homes"] if owed > 0 else game.units[power]
        chosen = rng.sample([rng.choice(game.legal_orders(place)) for place in places], abs(owed))
        return chosen if owed < 0 else [t for t in chosen if t != "WAIVE"] or ["WAIVE"]
    units = game.dislodged[power] if game.phase.endswith("R") else game.units[power]
    return [
        rng.choice([t for t in game.legal_orders(u) if not _is_lost_at_sea(game, t)]) for u in units
    ]


def _is_lost_at_sea(game, text):
    words = text.split()
    by_sea = " VIA" in text or words[2] == "C"
    if words[2] == "S" and len(words) > 5 and words[3] == "A":
        walks = game.legal_orders(f"A {words[4]}")
        by_sea = f"A {words[4]} - {words[6]}" not in walks
    return by_sea and not convoy_path(game, text)


def test_a_game_of_seven_seats(site):
    """An episode as on a ladder: no order is dropped, and its history is our game again."""
    loops = [loop_of(seat(site, country)) for country in range(1, 8)]
    while site.game.phase != "S1904M":
        for loop in loops:
            loop._round()
    assert sum(loop.counts.dropped for loop in loops) == 0
    assert sum(loop.counts.orders for loop in loops) > 200
    ready = [route for method, route, _ in site.asked if method == "POST"]
    assert set(ready) == {"game/orders"}
    last = loops[0].counts.last["game 5"].game
    for mine, theirs in zip(last.history, site.game.history):
        assert mine["state"]["units"] == theirs["state"]["units"]
        assert mine["state"]["centers"] == theirs["state"]["centers"]


@pytest.mark.parametrize("kind", ["Hold", "Move", "Support hold", "Support move", "Convoy"])
def test_silent_drops_are_found(site, kind):
    site.game = position(
        {
            "FRANCE": ["A PAR", "A GAS", "F MAO", "A BRE", "F ENG"],
            "ENGLAND": ["F LON"],
        },
        centers={"FRANCE": ["PAR"]},
    )
    site.drops = {kind}
    connection = seat(site)
    (now,) = connection.positions()
    orders = ["A PAR - BUR", "A GAS H", "F MAO S A GAS", "A BRE - WAL VIA", "F ENG C A BRE - WAL"]
    if kind == "Support move":
        orders[2] = "F MAO S A BRE - GAS"
    lost = dropped(site.game, orders, connection.give(now, "FRANCE", orders))
    first = {"Hold": [], "Move": [orders[0], orders[3]], "Convoy": [orders[4]]}
    assert lost == first.get(kind, [orders[2]])  # a hold is what a unit does anyway


def test_ready_comes_after_the_orders_are_compared(site):
    told = []
    site.drops = {"Move"}
    loop = loop_of(seat(site), told=told)
    bodies = []
    take = site._orders
    site._orders = lambda country, data: bodies.append(data) or take(country, data)
    loop._round()
    moves = [row for row in bodies[-2]["orders"] if row["type"] == "Move"]
    assert [body["ready"] for body in bodies] == ["No", "No", "No", "Yes"]  # holds, twice, ready
    assert bodies[0]["orders"] == bodies[3]["orders"] == []
    assert loop.counts.dropped == len(moves) == sum("was dropped" in text for text in told)


def test_what_a_player_sees(site):
    """The position of the files is the game's, its last orders and retreats too."""
    rng = random.Random(3)
    compared = 0
    while compared < 3:
        play_randomly(site.game, rng)
        if site.game.dislodged:
            site._version += 1
            (now,) = seat(site, max_years=35).positions()
            ours, theirs = now.game.to_state(), site.game.to_state()
            for key in ("units", "centers", "retreats", "last_orders", "last_results"):
                assert ours[key] == theirs[key], key
            compared += 1


def test_retreats_of_another_adjudicator(site):
    """Where history and board do not fit, the board counts, with the retreats that it allows."""
    site.game = position(
        {"FRANCE": ["A BUR", "A MAR"], "GERMANY": ["*A MUN"], "AUSTRIA": ["A MUN"]},
        name="F1901R",
        retreats={"GERMANY": {"A MUN": ["RUH", "KIE"]}},
        centers={"GERMANY": ["BER"]},
    )
    told = []
    told_board = site._board()
    told_board["territories"] += [
        {"terrID": NUMBER["MUN"], "occupiedFromTerrID": NUMBER["BOH"]},
        {"terrID": NUMBER["SIL"], "standoff": True},
    ]
    site._board = lambda: told_board
    (now,) = seat(site, POWERS.index("GERMANY") + 1, say=told.append).positions()
    near = {"BER", "BOH", "BUR", "KIE", "RUH", "SIL", "TYR"}
    assert set(now.game.dislodged["GERMANY"]["A MUN"]) == near - {"BUR", "BOH", "SIL"}


def test_files_that_are_behind_are_asked_again(site):
    connection = seat(site)
    connection.positions()
    site.process()
    site.behind = 2
    (now,) = connection.positions()
    assert now.game.phase == "F1901M" and site.behind == 0


def test_unchanged_files_are_not_fetched_again(site):
    connection = seat(site)
    for _ in range(3):
        connection.positions()
    paths = [route for _, route, _ in site.asked if route.startswith("/")]
    assert len(paths) == len(set(paths)) == 3
    assert {key for _, route, key in site.asked if route.startswith("/")} == {""}  # no key


@pytest.mark.parametrize(("status", "is_done"), [(500, False), (503, True), (504, True), (0, True)])
def test_trouble_after_a_write(site, status, is_done):
    """Whether it was done is not known: the position is read, and orders are given again."""
    site.trouble["game/orders"] = [(200, True), (status, is_done)]
    loop = loop_of(seat(site))
    for _ in range(4):
        loop._round()
    assert site.status[FRANCE] == "ready"
    assert loop.counts.reconnections == 1 and loop.counts.dropped == 0


def test_a_stale_turn(site):
    connection = seat(site)
    (now,) = connection.positions()
    site.process()
    with pytest.raises(PhaseOver, match="Invalid turn, expected 1"):
        connection.give(now, "FRANCE", ["A PAR H"])


def test_the_end(site):
    """A finished game, one that is cancelled, and a phase that is being processed."""
    site.processing = True
    connection = seat(site)
    assert not connection.positions()[0].running
    site.processing = False
    site.game = Game.from_state("standard", site.game.to_state() | {"name": "COMPLETED"})
    site._version += 1
    (now,) = connection.positions()
    assert now.over == "finished" and now.game.is_over
    site.cancelled = True
    assert connection.positions()[0].over == "gone from the site"


def test_a_game_that_has_not_begun(site):
    site.waits, told = True, []
    connection = seat(site, say=told.append)
    connection.enter()
    assert connection.positions() == connection.positions() == []
    site.waits = False
    assert connection.positions()[0].game.phase == "S1901M"
    assert told == ["game 5: it has not begun"]


def test_press_is_told(site):
    site.press, told = "Regular", []
    seat(site, say=told.append).positions()
    assert told == ["game 5: powers may talk in it, but the player says nothing"]


def test_votes(site):
    loop = loop_of(seat(site))
    loop.draws = True
    loop._round()
    assert site.votes == {FRANCE}


# Bad input.


@pytest.fixture
def environment(site, monkeypatch):
    monkeypatch.setenv("WEBDIP_URL", site.url)
    monkeypatch.setenv("WEBDIP_API_KEY", "key-2")
    monkeypatch.setenv("WEBDIP_GAME_ID", "5")
    monkeypatch.setenv("WEBDIP_COUNTRY_ID", "2")
    monkeypatch.setenv("WEBDIP_SEED", "7")
    return monkeypatch


WEBDIP = ["connect", "webdip", "--player", "dumbbot"]


def failing(capsys, *words):
    assert main([*WEBDIP, *words]) == 2
    out, err = capsys.readouterr()
    line = err.splitlines()[-1]
    assert "key-2" not in out + err and line.startswith("error: ")
    return line


def test_the_command(site, environment, capsys, tmp_path):
    """A whole game by the environment alone, as a ladder starts a bot."""
    owned = [CODE[n] for n in sorted({NUMBER[c] for c in _centers()})][:19]
    units = {"FRANCE": ["A PAR"], "ITALY": ["A VEN"]}
    site.game = position(units, name="F1905M", centers={"FRANCE": owned})
    history_then = history(site.game)
    assert history_then["phases"][-1]["phase"] == "Diplomacy"
    site.status = {3: "ready"}
    file = tmp_path / "game.jsonl"
    assert main([*WEBDIP, "--save", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "game 5 is over, finished: FRANCE" in out and "1 orders, 0 of them dropped" in err
    assert "key-2" not in out + err + file.read_text()


def _centers():
    return {STANDARD.provinces[v] for v in STANDARD.board.center_province}


def test_an_unknown_key(site, environment, capsys):
    environment.setenv("WEBDIP_API_KEY", "wrong-key")
    assert "its answer is empty" in failing(capsys)
    environment.delenv("WEBDIP_API_KEY")
    assert "WEBDIP_API_KEY" in failing(capsys)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WEBDIP_URL", "", "or set WEBDIP_URL"),
        ("WEBDIP_URL", "ftp://example.org", "the site: "),
        ("WEBDIP_URL", "http://me:key-2@example.org", "the site: "),
        ("WEBDIP_URL", "http://[", "the site: "),
        ("WEBDIP_URL", "http://127.0.0.1:1", "no connection: Connection refused"),
        ("WEBDIP_GAME_ID", "7", "has no game 7"),
        ("WEBDIP_GAME_ID", "x", "WEBDIP_GAME_ID"),
        ("WEBDIP_COUNTRY_ID", "3", "our country in game 5 is 2"),
        ("WEBDIP_END_YEAR", "1800", "WEBDIP_END_YEAR"),
    ],
)
def test_a_bad_environment(site, environment, capsys, name, value, sentence):
    environment.setenv(name, value)
    assert sentence in failing(capsys)


def test_the_only_game_is_found(site):
    connection = seat(site, game=None)
    connection.enter()
    assert connection.positions()[0].id == "game 5"


@pytest.mark.parametrize(
    ("route", "content", "sentence"),
    [
        ("game/playercontext", b"<html>", "not JSON"),
        ("game/playercontext", b"[" * 100_000, "not JSON"),
        ("game/playercontext", b"[]", "expected object"),
        ("game/playercontext", b'{"game": {"phase": 3}}', "game.phase: "),
        ("/variants/Classic/cache/variant.json", b'{"territories": []}', "countries: "),
        ("/variants/Classic/cache/variant.json", b'{"territories": [{}]}', "territories[0].id: "),
        ("/cache/games/0/5/history.json", b'{"phases": []}', "phases: "),
        ("/cache/games/0/5/history.json", b'{"phases": [{"turn": 1e9}]}', "phases[0].turn: "),
        ("/cache/games/0/5/game.json", b'{"turn": 0, "phase": "Diplomacy"}', "units: "),
    ],
)
def test_nonsense_ends_with_a_sentence(site, environment, capsys, route, content, sentence):
    site.instead[route] = lambda: content
    line = failing(capsys)
    assert sentence in line and "\x1b" not in line


@pytest.mark.parametrize(
    "url", ["http://example.org/x.json", "/etc/passwd", "../x", "a/../b", "a//b", "x?y=1"]
)
def test_files_are_the_sites_own(site, url):
    page = webdip_site.Site(site.url, "key-2")
    with pytest.raises(UserError, match="not its own"):
        page.file(url, "1")


def test_an_answer_that_is_too_long(site, monkeypatch):
    monkeypatch.setattr(webdip_site, "MOST_BYTES", 1000)
    site.instead["game/playercontext"] = lambda: b"x" * 2000
    with pytest.raises(UserError, match="1,000 bytes"):
        seat(site).positions()


def test_a_key_that_the_site_repeats(site):
    page = webdip_site.Site(site.url, "key-2")
    site.trouble["game/playercontext"] = [(500, False)]
    site.answer = lambda *_: (500, b"key-2 is \x1b[2J bad")
    with pytest.raises(ConnectionLost) as caught:
        page.get(dict, "game/playercontext")
    assert "[key] is" in str(caught.value) and "\x1b" not in str(caught.value)


def test_the_command_line(capsys, monkeypatch):
    for name in ("URL", "API_KEY", "GAME_ID", "COUNTRY_ID"):
        monkeypatch.delenv(f"WEBDIP_{name}", raising=False)
    assert "WEBDIP_URL" in refusal(*WEBDIP, capsys=capsys)


def test_history_rows_are_json():
    game = Game("standard")
    play_randomly(game, random.Random(1), 3)
    assert json.loads(json.dumps(history(game)))["phases"]
    assert row_of(game, "WAIVE")["type"] == "Wait"


@pytest.mark.parametrize("seed", range(2))
def test_every_legal_order_there_and_back(site, seed):
    """In the site's words and in ours again it is the same order, coast of a support aside."""
    rng, game, known = random.Random(seed), Game("standard"), classic(STANDARD)
    count = 0
    for _ in range(14):
        play_randomly(game, rng)
        if game.is_over:
            break
        site.game, letters = game, _letters(game)
        for power, places in orderable(game).items():
            assert power in POWERS
            for text in {text for place in places for text in game.legal_orders(place)}:
                row = order_row(known, text, game.phase.endswith("A"))
                assert (
                    dropped(
                        game, [text], [order_text(known, convert(OrderRow, row, "it"), letters)]
                    )
                    == []
                )
                kind = {"A": "Army", "F": "Fleet"}.get(text[0])
                theirs = "WAIVE" if text == "WAIVE" else site.text(row, kind)
                assert dropped(game, [text], [theirs]) == []
                count += 1
    assert count > 1000
