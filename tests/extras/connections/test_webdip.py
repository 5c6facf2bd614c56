"""A seat on a webDiplomacy site, against one that is as strict and as silent as the real one."""

import json
import random

import pytest
from support.games import orderable, play_randomly, random_units
from support.webdip import CENTERS, CODE, NUMBER, POWERS, Site, history, variant

from diplomacy_engine.commands.cli import main
from diplomacy_engine.errors import UserError
from diplomacy_engine.extras.connections import webdip_site
from diplomacy_engine.extras.connections.connection import ConnectionLost, PhaseOver
from diplomacy_engine.extras.connections.loop import SeatLoop, dropped
from diplomacy_engine.extras.connections.webdip import WebdipSeat, convoy_path, kept_texts
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.textgame.game import Game
from diplomacy_engine.textgame.imports.games import read_games
from diplomacy_engine.textgame.imports.webdiplomacy import classic, order_row, read_variant

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
    assert order_row(known, "F STP/SC D", True)["terrID"] == 32  # in winter, the province's


def position(units, name="S1901M", **more) -> Game:
    return Game.from_state("standard", {"name": name, "units": units} | more)


@pytest.mark.parametrize(
    "count", [20, pytest.param(500, marks=pytest.mark.slow)], ids=["20 positions", "500 positions"]
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
                site._take(power, kept, [row])
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


def _is_lost_at_sea(game, text):
    words = text.split()
    by_sea = " VIA" in text or words[2] == "C"
    if words[2] == "S" and len(words) > 5 and words[3] == "A":
        walks = game.legal_orders(f"A {words[4]}")
        by_sea = f"A {words[4]} - {words[6]}" not in walks
    return by_sea and not convoy_path(game, text)


def same_movements(mine: Game, theirs: Game) -> None:
    """Check that two games had the same positions, but for phases that only the site has."""
    known = {record["name"]: record["state"] for record in theirs.history}
    for record in mine.history:
        state = known[record["name"]]
        if record["name"].endswith("M"):
            assert record["state"]["units"] == state["units"]
            assert record["state"]["centers"] == state["centers"]


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
    rng, game = random.Random(3), Game("standard")
    compared = 0
    while compared < 3:
        play_randomly(game, rng)
        site.game = game
        if game.dislodged:
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
    assert len(paths) == len(set(paths)) == 2
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
    with pytest.raises(PhaseOver, match="Invalid turn, expected `1`"):
        connection.give(now, "FRANCE", ["A PAR H"])


def test_the_end(site):
    """A finished game, one that is cancelled, and a phase that is being processed."""
    site.processing = True
    connection = seat(site)
    assert not connection.positions()[0].running
    site.processing = False
    for country in range(1, 8):
        site._vote(country)
    (now,) = connection.positions()
    assert now.over == "a draw" and now.game.is_agreed
    for site.cancelled in (400, 404, 410):
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
    units = {"FRANCE": ["A PAR"], "ITALY": ["A VEN"]}
    owned = sorted(CENTERS, key=NUMBER.get)[:19]
    site.game = position(units, name="F1905M", centers={"FRANCE": owned})
    site.status = {3: "ready"}
    file = tmp_path / "game.jsonl"
    assert main([*WEBDIP, "--save", str(file)]) == 0
    out, err = capsys.readouterr()
    assert (
        "game 5 is over, a solo of FRANCE: FRANCE 19 centers" in out
        and "1 orders, 0 of them dropped" in err
    )
    assert "key-2" not in out + err + file.read_text()
    assert "nobody would hear it" in failing(capsys, "--player", "nash+dumbbot")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WEBDIP_URL", "", "or set WEBDIP_URL"),
        ("WEBDIP_URL", "ftp://example.org", "the site: "),
        ("WEBDIP_URL", "http://me:key-2@example.org", "the site: "),
        ("WEBDIP_URL", "http://127.0.0.1:1", "no connection: Connection refused"),
        ("WEBDIP_GAME_ID", "7", "has no game 7"),
        ("WEBDIP_COUNTRY_ID", "3", "our country in game 5 is 2"),
        ("WEBDIP_API_KEY", "wrong-key", "its answer is empty"),
        ("WEBDIP_API_KEY", "", "WEBDIP_API_KEY"),
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
        ("game/playercontext", b'{"game": {"phase": 3}}', "game.phase: "),
        ("/variants/Classic/cache/variant.json", b'{"territories": []}', "countries: "),
        ("/cache/games/0/5/history.json", b'{"phases": []}', "phases: "),
        ("/cache/games/0/5/history.json", b'{"phases": [{"turn": 1e9}]}', "phases[0].turn: "),
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


# Whole games, and what the site does that our rules do not


def play(site, loops, rounds=400, is_done=lambda: False):
    """Let seats play until all are over, or `is_done`; a phase that stands still ends."""
    kinds = set()
    for _ in range(rounds):
        before = site._now(), site._version
        kinds.add(site._now()[1])
        if all([loop._round() for loop in loops]) or is_done():
            return kinds
        if (site._now(), site._version) == before:
            site.process()
    raise AssertionError(f"the game stands still in {site._now()}")


def in_civil_disorder(site, *playing):
    """Let all countries but these have left the game."""
    for country, power in enumerate(POWERS, 1):
        if power not in playing:
            site.members[country] = "Left"


def read_again(site, tmp_path):
    """Return the game of the site's history, as `import-game` reads it."""
    file = tmp_path / "history.json"
    file.write_text(json.dumps(site._archive.history(site.game, bool(site.over))))
    (saved,) = read_games(file)
    return Game.from_saved_game(saved)


def test_a_whole_game_to_a_solo(site, tmp_path):
    """Of two powers, with every kind of phase and order, while five others have left."""
    in_civil_disorder(site, "FRANCE", "ITALY")
    loops = [loop_of(seat(site)), loop_of(seat(site, 3))]
    kinds = play(site, loops)
    assert kinds == {"Diplomacy", "Retreats", "Builds", "Finished"} and site.over == "Won"
    (winner,) = [country for country, status in site.members.items() if status == "Won"]
    for saved in (*loops[0].saved_games(), *loops[1].saved_games()):
        game = Game.from_saved_game(saved)
        same_movements(game, site.game)
        again = read_again(site, tmp_path)
        assert game.winners == again.winners == [POWERS[winner - 1]]
        assert len(game.centers[POWERS[winner - 1]]) >= 18 and game.centers == again.centers
    assert [loop.counts.dropped for loop in loops] == [0, 0]
    archived = {row["type"] for row in site._archive.rows}
    assert archived >= {"Retreat", "Disband", "Build Army", "Build Fleet", "Destroy"}


@pytest.mark.parametrize("phase", ["Diplomacy", "Retreats", "Builds"])
def test_a_game_to_a_draw(site, tmp_path, phase):
    """In a phase of any kind; a member who has left has no vote."""
    in_civil_disorder(site, "FRANCE", "ITALY")
    told = []
    loops = [loop_of(seat(site), told=told), loop_of(seat(site, 3))]
    play(site, loops, is_done=lambda: site._now()[0] > 1 and site._now()[1] == phase)
    for loop in loops:
        loop.draws = True
        loop.counts.last.clear()  # a vote is given when a phase begins
    play(site, loops)
    assert site.over == "Drawn" and site.members[2] == "Drawn" and site.members[1] == "Resigned"
    assert told[-1].startswith("game 5 is over, a draw: FRANCE ")
    (saved,) = loops[0].saved_games()
    assert make_replay(saved).result.startswith("a draw agreed by")
    again = read_again(site, tmp_path)
    assert again.is_draw and again.units == site.game.units
    assert again.centers == Game.from_saved_game(saved).centers


def test_the_last_who_stays_has_won(site):
    """Without the centers for it: only the members of `game.json` tell."""
    in_civil_disorder(site, "FRANCE", "ITALY")
    france = loop_of(seat(site))
    play(site, [france], is_done=lambda: site._now()[0] == 2)
    site.members[3] = "Left"
    play(site, [france])
    assert site.over == "Won" and site.members[2] == "Won" and site.members[3] == "Resigned"
    (saved,) = france.saved_games()
    assert make_replay(saved).winners == ["FRANCE"]


def test_a_phase_of_retreats_that_our_rules_skip(site):
    """The site has one whenever a unit is dislodged: it is played, and so is what comes after."""
    units = {"AUSTRIA": ["A SER", "A RUM", "A GRE"], "TURKEY": ["A BUL", "A CON"]}
    site.game = position(units, centers={"AUSTRIA": ["VIE"], "TURKEY": ["ANK"]})
    in_civil_disorder(site, "TURKEY", "AUSTRIA")
    texts = ["A SER - BUL", "A RUM S A SER - BUL", "A GRE S A SER - BUL"]
    connection = seat(site, 5)
    (now,) = connection.positions()
    assert dropped(now.game, texts, connection.give(now, "AUSTRIA", texts)) == []
    site.process()
    assert site._now() == (0, "Retreats")
    told = []
    turkey = loop_of(seat(site, 6, say=told.append), told=told)
    austria = loop_of(seat(site, 5))
    (now,) = turkey.connection.positions()
    assert now.game.phase == "S1901R" and now.game.dislodged["TURKEY"] == {"A BUL": []}
    assert "A SER - BUL" in now.game.to_state()["last_orders"]["AUSTRIA"]
    turkey._round()
    assert site._now() == (1, "Diplomacy")  # nobody else who is there has anything to order
    turkey._round()
    austria._round()
    assert told[:2] == ["game 5: S1901R", "game 5: F1901M"] and turkey.counts.dropped == 0


def test_a_winter_in_which_nobody_can_build(site):
    """The site has one whenever units and centers differ in number, and archives no waiting."""
    units = {"FRANCE": ["A PAR", "A MAR", "F BRE"], "ITALY": ["A ROM"]}
    centers = {"FRANCE": ["PAR", "MAR", "BRE", "SPA"], "ITALY": ["ROM"]}
    site.game = position(units, "F1901M", centers=centers)
    in_civil_disorder(site, "FRANCE", "ITALY")
    france, italy = loop_of(seat(site), "hold"), loop_of(seat(site, 3), "hold")
    france._round()
    italy._round()
    assert site._now() == (1, "Builds")
    (now,) = france.connection.positions()
    assert now.game.phase == "W1901A" and now.missing == frozenset()
    site.process()
    play(site, [france, italy], is_done=lambda: site._now()[0] == 3)
    assert [row["phase"] for row in site._archive.history(site.game, False)["phases"]] == [
        *["Diplomacy"] * 3
    ]


def test_a_history_that_our_rules_cannot_play(site):
    """A movement is missing in it: the player sees the position, and plays on."""
    for _ in range(3):
        site.process()
    whole, told = site._archive.history, []

    def without_a_movement(game, is_over):
        data = whole(game, is_over)
        return data | {"phases": data["phases"][:1] + data["phases"][2:]}

    site._archive.history = without_a_movement
    loop = loop_of(seat(site, say=told.append))
    for _ in range(2):
        units = site.game.units
        loop._round()
        assert loop.counts.last["game 5"].game.units == units
        site.process()
    assert loop.counts.phases == 2 and loop.counts.orders > 3 and loop.counts.dropped == 0
    assert any("F1901M" in text for text in told), told


def test_the_answers_of_2025_are_read(tmp_path):
    """Those of its route game/status, with other types and gameOver beside the phases."""
    game = Game("standard")
    play_randomly(game, random.Random(5), 12)
    data = history(game)
    for phase in data["phases"]:
        for row in (*phase["units"], *phase["orders"]):
            row |= {k: "Yes" if f else "No" for k, f in row.items() if isinstance(f, bool)}
            row |= {k: 0 for k, f in row.items() if f is None and k != "unitType"}
        for row in phase["units"]:
            row["unitType"] = row.pop("type")
        for row in phase["orders"]:
            row["unitType"] = row["unitType"] or ""
    for name, content in (("old", data | {"gameOver": "No"}), ("new", history(game))):
        (tmp_path / name).write_text(json.dumps(content))
    (old,), (new,) = (read_games(tmp_path / name) for name in ("old", "new"))
    assert old == new
