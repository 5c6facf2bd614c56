"""A seat on a webDiplomacy site, against recorded answers: each request is the recorded one."""

import json

import pytest
from support.tables import read_table
from support.webdip import Site, history, orders, variant

from diplomacy_engine import Game, UserError, load_map, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.extras.connections import webdip_site
from diplomacy_engine.extras.connections.connection import ConnectionLost, PhaseOver
from diplomacy_engine.extras.connections.loop import SeatLoop, dropped
from diplomacy_engine.extras.connections.webdip import WebdipSeat, convoy_path, kept_texts
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.textgame.imports.games import read_games
from diplomacy_engine.textgame.imports.webdiplomacy import classic, order_row, read_variant

STANDARD = load_map("standard")
FRANCE = 2
POWERS = ("ENGLAND", "FRANCE", "ITALY", "GERMANY", "AUSTRIA", "TURKEY", "RUSSIA")  # from 1 on
KINDS_OF_ORDERS = {
    *("Hold", "Move", "Move by sea", "Support hold", "Support move", "Support move by sea"),
    *("Convoy by sea", "Retreat", "Disband", "Destroy", "Build Army", "Build Fleet", "Wait"),
}


@pytest.fixture
def site(request):
    """Return the site of the exchange that bears the test's name, or that of its parameter."""
    name = request.node.originalname.removeprefix("test_").replace("_", " ")
    parameter = getattr(request, "param", None)
    with Site(name if parameter is None else parameter.format(name)) as site:
        yield site


def exchanges(*names: str):
    return pytest.mark.parametrize("site", names, indirect=True)


def seat(site, country=FRANCE, key=None, game=5, years=None, **options) -> WebdipSeat:
    page = webdip_site.Site(site.url, key or f"key-{country}", seconds=5)
    options = {"sleep": lambda seconds: None, "say": lambda text: None} | options
    rules = GameRules("standard", max_years=years)
    return WebdipSeat(page, game, None, rules, **options)


def loop_of(connection, player="dumbbot", told=None) -> SeatLoop:
    say = (lambda text: None) if told is None else told.append
    return SeatLoop(connection, make_bot(player), say=say, sleep=lambda seconds: None)


def test_numbers_and_names():
    """Names of variant.json and the numbers known without it are one."""
    known, of_site = classic(STANDARD), read_variant(variant(), STANDARD)
    assert known.places == of_site.places and known.numbers == of_site.numbers
    assert [known.powers[n] for n in range(1, 8)] == list(POWERS)
    assert [of_site.powers[n] for n in range(1, 8)] == list(POWERS)
    assert known.numbers["BUL/EC"] == 80 and len(known.numbers) == 81
    assert order_row(known, "F STP/SC D", True)["terrID"] == 32  # in winter, the province's


def test_every_legal_order_is_kept():
    """Each alone: our order -> the row that the site took -> the row that it kept -> our order."""
    known, checked = classic(STANDARD), dict.fromkeys(KINDS_OF_ORDERS, 0)
    for state, texts in orders():
        game = Game.from_state(STANDARD, state)
        for text, row, kept in texts:
            path = convoy_path(game, text)
            assert order_row(known, text, game.phase[-1] == "A", path) == row
            assert dropped(game, [text], kept_texts(known, game, kept)) == [], row
            checked[row["type"] + (" by sea" if row.get("convoyPath") else "")] += 1
    assert sum(checked.values()) > 2000 and all(checked.values()), checked


def same_movements(mine: Game, theirs: dict) -> None:
    """Check that two games had the same positions, but for phases that only the site has."""
    known = {record["name"]: record["state"] for record in theirs["phases"]}
    for record in mine.history:
        state = known[record["name"]]
        if record["name"].endswith("M"):
            assert record["state"]["units"] == state["units"]
            assert record["state"]["centers"] == state["centers"]


@exchanges(*(f"{{}} {kind}" for kind in ("Hold", "Move", "Support hold", "Support move", "Convoy")))
def test_silent_drops_are_found(site, request):
    kind = request.node.callspec.params["site"].removeprefix("{} ")
    connection = seat(site)
    (now,) = connection.positions()
    orders = ["A PAR - BUR", "A GAS H", "F MAO S A GAS", "A BRE - WAL VIA", "F ENG C A BRE - WAL"]
    if kind == "Support move":
        orders[2] = "F MAO S A BRE - GAS"
    lost = dropped(now.game, orders, connection.give(now, "FRANCE", orders))
    first = {"Hold": [], "Move": [orders[0], orders[3]], "Convoy": [orders[4]]}
    assert lost == first.get(kind, [orders[2]])  # a hold is what a unit does anyway


def test_ready_comes_after_the_orders_are_compared(site):
    told = []
    loop = loop_of(seat(site), told=told)
    loop._round()
    bodies = site.bodies("game/orders")
    moves = [row for row in bodies[-2]["orders"] if row["type"] == "Move"]
    assert [body["ready"] for body in bodies] == ["No", "No", "No", "Yes"]  # holds, twice, ready
    assert bodies[0]["orders"] == bodies[3]["orders"] == []
    assert loop.counts.dropped == len(moves) == sum("was dropped" in text for text in told)


@exchanges("a player sees")
def test_what_a_player_sees(site):
    """The position of the files is the game's, its last orders and retreats too."""
    for _ in range(3):
        (now,) = seat(site, years=35).positions()
        state = now.game.to_state()
        for key, value in site.mark().items():
            assert state[key] == value, key


def test_retreats_of_another_adjudicator(site):
    """Where history and board do not fit, the board counts, with the retreats that it allows."""
    (now,) = seat(site, POWERS.index("GERMANY") + 1).positions()
    near = {"BER", "BOH", "BUR", "KIE", "RUH", "SIL", "TYR"}
    assert set(now.game.dislodged["GERMANY"]["A MUN"]) == near - {"BUR", "BOH", "SIL"}


def test_files_that_are_behind_are_asked_again(site):
    connection = seat(site)
    connection.positions()
    (now,) = connection.positions()
    assert now.game.phase == "F1901M"


def test_unchanged_files_are_not_fetched_again(site):
    """They are recorded once, and asked for without a key."""
    connection = seat(site)
    for _ in range(3):
        connection.positions()


@exchanges("{} 500-False", "{} 503-True", "{} 504-True", "{} 0-True")
def test_trouble_after_a_write(site):
    """Whether it was done is not known: the position is read, and orders are given again."""
    loop = loop_of(seat(site))
    for _ in range(4):
        loop._round()
    assert site.bodies("game/orders")[-1]["ready"] == "Yes"
    assert loop.counts.reconnections == 1 and loop.counts.dropped == 0


def test_a_stale_turn(site):
    connection = seat(site)
    (now,) = connection.positions()
    with pytest.raises(PhaseOver, match="Invalid turn, expected `1`"):
        connection.give(now, "FRANCE", ["A PAR H"])


def test_the_end(site):
    """A finished game, one that is cancelled, and a phase that is being processed."""
    connection = seat(site)
    assert not connection.positions()[0].running
    (now,) = connection.positions()
    assert now.over == "a draw agreed by all powers" and now.game.is_agreed
    for _ in (400, 404, 410):
        assert connection.positions()[0].over == "gone from the site"


def test_a_game_that_has_not_begun(site):
    told = []
    connection = seat(site, say=told.append)
    connection.enter()
    assert connection.positions() == connection.positions() == []
    assert connection.positions()[0].game.phase == "S1901M"
    assert told == ["game 5: it has not begun"]


def test_press_is_told(site):
    told = []
    seat(site, say=told.append).positions()
    assert told == ["game 5: powers may talk in it, but the player says nothing"]


# Bad input.


@pytest.fixture
def environment(monkeypatch):
    for name, value in (("API_KEY", "key-2"), ("GAME_ID", "5"), ("COUNTRY_ID", "2"), ("SEED", "7")):
        monkeypatch.setenv(f"WEBDIP_{name}", value)
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
    environment.setenv("WEBDIP_URL", site.url)
    file = tmp_path / "game.jsonl"
    assert main([*WEBDIP, "--save", str(file)]) == 0
    out, err = capsys.readouterr()
    assert (
        "game 5 is over, France wins with 19 centers: FRANCE 19 centers" in out
        and "1 orders, 0 of them dropped" in err
    )
    assert "key-2" not in out + err + file.read_text()
    assert "nobody would hear it" in failing(capsys, "--player", "nash+dumbbot")


@pytest.mark.parametrize(("name", "value", "sentence"), read_table(__file__, "before_any_request"))
def test_a_bad_environment(environment, capsys, name, value, sentence):
    environment.setenv("WEBDIP_URL", "http://127.0.0.1:1")
    environment.setenv(name, value)
    assert sentence in failing(capsys)


@pytest.mark.parametrize(
    ("name", "value", "sentence"), read_table(__file__, "a_refusal_or_nonsense")
)
def test_a_refusal_or_nonsense_ends_with_a_sentence(environment, capsys, name, value, sentence):
    with Site(sentence) as site:
        environment.setenv("WEBDIP_URL", site.url)
        environment.setenv(name, value)
        line = failing(capsys)
    assert sentence in line and "\x1b" not in line


@exchanges("the only game is found")
def test_the_only_game_is_found(site):
    connection = seat(site, game=None)
    connection.enter()
    assert connection.positions()[0].id == "game 5"


@pytest.mark.parametrize(
    "url", ["http://example.org/x.json", "/etc/passwd", "../x", "a/../b", "a//b", "x?y=1"]
)
def test_files_are_the_sites_own(url):
    page = webdip_site.Site("http://127.0.0.1:1", "key-2")
    with pytest.raises(UserError, match="not its own"):
        page.file(url, "1")


def test_an_answer_that_is_too_long(site, monkeypatch):
    monkeypatch.setattr(webdip_site, "MOST_BYTES", 1000)
    with pytest.raises(UserError, match="1,000 bytes"):
        seat(site).positions()


@exchanges("a key that is repeated")
def test_a_key_that_the_site_repeats(site):
    page = webdip_site.Site(site.url, "key-2")
    with pytest.raises(ConnectionLost) as caught:
        page.get(dict, "game/playercontext")
    assert "[key] is" in str(caught.value) and "\x1b" not in str(caught.value)


# Whole games, and what the site does that our rules do not


def play(site, loops) -> dict:
    """Let seats play in turn to the next mark; return the game as the site has it there."""
    for _ in range(400):
        for loop in loops:
            loop._round()
        assert not site.strange
        if site.at_mark:
            return site.mark()
    raise AssertionError("the game stands still")


def read_again(site, tmp_path):
    """Return the game of the site's last history, as `import-game` reads it."""
    file = tmp_path / "history.json"
    histories = [row for row in site.rows if "/history.json" in row.get("request", "")]
    file.write_text(json.dumps(histories[-1]["answer"]))
    (saved,) = read_games(file)
    return histories[-1]["answer"], Game.from_saved_game(saved)


@pytest.mark.slow
def test_a_whole_game_to_a_solo(site, tmp_path):
    """Of two powers, with every kind of phase and order, while five others have left."""
    loops = [loop_of(seat(site)), loop_of(seat(site, 3))]
    theirs = play(site, loops)
    history_file, again = read_again(site, tmp_path)
    for saved in (*loops[0].saved_games(), *loops[1].saved_games()):
        game = Game.from_saved_game(saved)
        same_movements(game, theirs)
        assert game.winners == again.winners and len(game.winners) == 1
        assert len(game.centers[game.winners[0]]) >= 18 and game.centers == again.centers
    assert [loop.counts.dropped for loop in loops] == [0, 0]
    archived = {row["type"] for phase in history_file["phases"] for row in phase["orders"]}
    assert archived >= {"Retreat", "Disband", "Build Army", "Build Fleet", "Destroy"}


@exchanges("{} Diplomacy", "{} Retreats", "{} Builds")
def test_a_game_to_a_draw(site, tmp_path):
    """In a phase of any kind; a member who has left has no vote."""
    told = []
    loops = [loop_of(seat(site), told=told), loop_of(seat(site, 3))]
    play(site, loops)
    for loop in loops:
        loop.draws = True
        loop.counts.last.clear()  # a vote is given when a phase begins
    theirs = play(site, loops)["phases"][-1]["state"]
    assert told[-1].startswith("game 5 is over, a draw agreed by all powers: FRANCE ")
    (saved,) = loops[0].saved_games()
    assert make_replay(saved).result.startswith("a draw agreed by")
    _, again = read_again(site, tmp_path)
    assert again.is_draw
    for power, units in theirs["units"].items():
        assert again.units[power] == [unit for unit in units if unit[0] != "*"]
    assert again.centers == Game.from_saved_game(saved).centers


def test_the_last_who_stays_has_won(site):
    """Without the centers for it: only the members of `game.json` tell."""
    france = loop_of(seat(site))
    play(site, [france])
    play(site, [france])
    (saved,) = france.saved_games()
    assert make_replay(saved).winners == ["FRANCE"]


def test_a_phase_of_retreats_that_our_rules_skip(site):
    """The site has one whenever a unit is dislodged: it is played, and so is what comes after."""
    texts = ["A SER - BUL", "A RUM S A SER - BUL", "A GRE S A SER - BUL"]
    connection = seat(site, 5)
    (now,) = connection.positions()
    assert dropped(now.game, texts, connection.give(now, "AUSTRIA", texts)) == []
    told = []
    turkey = loop_of(seat(site, 6, say=told.append), told=told)
    austria = loop_of(seat(site, 5))
    (now,) = turkey.connection.positions()
    assert now.game.phase == "S1901R" and now.game.dislodged["TURKEY"] == {"A BUL": []}
    assert "A SER - BUL" in now.game.to_state()["last_orders"]["AUSTRIA"]
    turkey._round()
    turkey._round()
    austria._round()
    assert told[:2] == ["game 5: S1901R", "game 5: F1901M"] and turkey.counts.dropped == 0


def test_a_winter_in_which_nobody_can_build(site):
    """The site has one whenever units and centers differ in number, and archives no waiting."""
    france, italy = loop_of(seat(site), "hold"), loop_of(seat(site, 3), "hold")
    france._round()
    italy._round()
    (now,) = france.connection.positions()
    assert now.game.phase == "W1901A" and now.missing == frozenset()
    play(site, [france, italy])


@exchanges("a movement is missing")
def test_a_history_without_a_movement(site):
    """The player sees the position, and plays on."""
    told = []
    loop = loop_of(seat(site, say=told.append))
    for _ in range(2):
        loop._round()
        assert loop.counts.last["game 5"].game.units == site.mark()["units"]
    assert loop.counts.phases == 2 and loop.counts.orders > 3 and loop.counts.dropped == 0
    assert any("no record of F1901M" in text for text in told)


def test_the_answers_of_2025_are_read(tmp_path):
    """Those of its route game/status, with other types and gameOver beside the phases."""
    _, new = history("long")
    _, data = history("long")
    for phase in data["phases"]:
        for row in (*phase["units"], *phase["orders"]):
            row |= {k: "Yes" if f else "No" for k, f in row.items() if isinstance(f, bool)}
            row |= {k: 0 for k, f in row.items() if f is None and k != "unitType"}
        for row in phase["units"]:
            row["unitType"] = row.pop("type")
        for row in phase["orders"]:
            row["unitType"] = row["unitType"] or ""
    for name, content in (("old", data | {"gameOver": "No"}), ("new", new)):
        (tmp_path / name).write_text(json.dumps(content))
    (old,), (new,) = (read_games(tmp_path / name) for name in ("old", "new"))
    assert old == new
