"""Sessions of people and players: what each may do, what comes of it, and what is kept."""

import json
import random
import re
import shutil
import stat
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.games import random_orders
from support.players import Thinker
from support.search import searcher
from support.serving import Partner, by_name, reopened, seated, viewer
from support.tables import read_table

from diplomacy_engine import Game, UserError, VectorGame, load_player, make_bot
from diplomacy_engine._files import atomic_write
from diplomacy_engine.constants import NONE, phase_kind
from diplomacy_engine.play.file import HOST, PLAYER, PlayRecord, Seat, pasted_game, read_session
from diplomacy_engine.play.review import outlook
from diplomacy_engine.play.session import MIXED, Choices, PlaySession, mixed_table
from diplomacy_engine.play.state import PlayError, SessionState
from diplomacy_engine.play.view import game_view, hint_view, texts_view
from diplomacy_engine.players.advice import advice, asked, orders_by_player
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import RandomBot
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.textgame.saved_game import read_saved_games

pytestmark = pytest.mark.usefixtures("compiled")


def load(name):
    return Thinker() if name == "thinker" else make_bot(name)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "game.jsonl"


# --- Seats, links, maps ---------------------------------------------------------------------------


def test_who_has_which_link(file):
    session = seated(file, "hgp", Game("three"))
    for token in ("x" * 24, "é"):
        with pytest.raises(PlayError, match="not one of this game's"):
            session.viewer(token)
    tokens = list(session.tokens.values())
    assert len(set(tokens)) == 5 and min(map(len, tokens)) >= 24
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for who in ("ITALY", "watch"):
        text = json.dumps(game_view(session, viewer(session, who)))
        assert str(file) not in text and not any(token in text for token in tokens)


def test_a_mixed_table_seats_different_players_by_the_seed():
    pool, named = ["a", "b", "c", "d"], dict.fromkeys("FGIRT", MIXED) | {"E": "hold"}
    tables = [mixed_table(named, pool, seed) for seed in range(30)]
    for table in tables:
        assert table["E"] == "hold" and {table[power] for power in "FGIRT"} == set(pool)
        assert len({table[power] for power in "FGIR"}) == 4, "each once before any twice"
    assert len({tuple(table.values()) for table in tables}) > 15
    assert tables[3] == mixed_table(named, pool, 3)


@pytest.mark.parametrize(("name", "years"), [("small", 6), ("standard", 3)])
def test_texts_of_a_phase_can_be_pasted(tmp_path, name, years):
    """In every phase of a random game the position is read again as it was, retreats and all, and
    the orders lead to what came next; neither shows what is not played yet."""
    rng, game = random.Random(name), Game(name, max_years=years)
    while not game.is_over:
        for power, texts in random_orders(game, rng).items():
            game.submit(power, texts)
        game.adjudicate()
    letters = "h" + "p" * (len(game.powers) - 1)
    session = seated(tmp_path / "a.jsonl", letters, game)
    states = [*(phase["state"] for phase in game.history), game.to_state()]
    assert len({state["name"][-1] for state in states}) >= 3
    for state, after in pairwise(states):
        texts = texts_view(session, viewer(session), state["name"])
        found = {kind: pasted_game(text, game.rules)[0] for kind, text in texts.items()}
        assert _core(found["position"].to_state()) == _core(state), texts["position"]
        if after["name"] != "COMPLETED":
            assert _core(found["orders"].to_state())[:3] == _core(after)[:3], texts["orders"]


def _core(state):
    tables = ({p: sorted(t) for p, t in state[key].items() if t} for key in ("units", "centers"))
    return state["name"], *tables, state.get("retreats")


# --- Orders ---------------------------------------------------------------------------------------


def test_submissions_at_the_same_moment_play_one_phase(file):
    session = seated(file, "hg")
    errors, gate = [], threading.Barrier(8)

    def give(who):
        gate.wait()
        try:
            session.submit(viewer(session, who), 0, [])
        except UserError as error:
            errors.append(error)

    threads = [threading.Thread(target=give, args=(who,)) for who in ["host", "RUSSIA"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and session.now.step == 1 and len(session.game.history) == 1


def test_orders_can_be_typed(file):
    session = seated(file)
    for text, kept, found in read_table(__file__, "orders_can_be_typed"):
        assert session.read_orders(viewer(session), text, kept) == [found]


# --- Players --------------------------------------------------------------------------------------


def test_orders_in_words_are_those_in_numbers():
    """orders_by_player says what the bot writes: the game goes on as the arrays do."""
    bot = "random"
    game = Game("standard", max_years=5)
    games = VectorGame("standard", 1, seed=9, max_years=5, threads=1, auto_reset=False)
    winters = 0
    while not game.is_over:
        decisions = games.decisions()
        orders = orders_of(games, make_bot(bot), decisions)
        game._games.state.turn[0] = games.state.turn[0]
        given = orders_by_player(game, make_bot(bot), game.powers, int(games.state.seed[0]))
        assert len(given) == decisions.count
        for power, texts in given.items():
            game.submit(power, texts)
        winters += game.phase.endswith("A")
        game.adjudicate()
        games.step(orders)
        assert game.to_position() == Game.from_row(games, 0).to_position()
    assert winters


class Eager(Thinker):
    """Would have other powers' moves supported, and own units that do not stay."""

    def explain(self, games, decisions):
        found = super().explain(games, decisions)
        texts = [games.vocabulary.texts[number] for number in decisions.order]
        wanted = {"A PAR S A MUN - BUR": 0.9, "A PAR S A MAR": 0.8, "A MAR - SPA": 0.9}
        likely = np.array([wanted.get(text, 0.1) for text in texts], np.float32)
        return found._replace(probability=likely)


@pytest.mark.parametrize("press", [None, "offers"])
def test_hints_are_mended_and_help_nobody_who_cannot_be_asked(press):
    units = {"FRANCE": ["A PAR", "A MAR"], "GERMANY": ["A MUN"], "ITALY": ["A GAS"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units})
    if press:
        game.change_rules(press=press, press_rounds=2)
    first = dict(advice(game, Eager(), "FRANCE").slots)["A PAR"][0][0]
    assert first == ("A PAR S A MUN - BUR" if press else "A PAR H")


def test_a_hint_is_of_the_position_that_it_names(file, monkeypatch):
    """Be it that the game goes on meanwhile."""
    session = seated(file, "hp", load=load, player="thinker")
    drawing = lambda *_: session.submit(viewer(session), 0, [])  # noqa: E731
    monkeypatch.setattr("diplomacy_engine.play.view.orders_svg", drawing)
    assert hint_view(session, viewer(session))["step"] == 0 < session.now.step


def test_a_new_game_keeps_seats_and_links_and_draws_others(file, monkeypatch):
    record = PlayRecord(
        opponents=["thinker"], seats={"ENGLAND": Seat(PLAYER, "thinker"), "RUSSIA": Seat(HOST)}
    )
    session = PlaySession(Game("small", max_years=1), file, by_name(load), record, draw=drawn_at)
    session.concede(viewer(session), 0)
    links, drawn = session.tokens, session.drawn
    held = []

    def noted(*written, **more):
        held.append(session.tokens)
        atomic_write(*written, **more)

    monkeypatch.setattr("diplomacy_engine.play.session.atomic_write", noted)
    session.new_game(viewer(session))
    assert held == [links] * 2, "whoever looks meanwhile has no link"
    assert session.tokens == links and session.drawn != drawn
    assert not {*reopened(file, load).tokens.values()} & {*links.values()}, (
        "the old game has others"
    )
    assert session.chosen == {"ENGLAND": "thinker", "RUSSIA": "me"}


def drawn_at(record, game_map):
    return {"thinker": f"latest-{record.seed}"}


def test_hints_say_how_usual_orders_are_among_people(file):
    players = {"thinker": Thinker(), "small-human": Thinker()}
    choices = Choices(mixed=lambda *_: ["small-human"])
    session = seated(file, load=players.get, player="thinker", choices=choices)
    ((_, ranked),) = session.hint(viewer(session)).slots
    (slot,) = hint_view(session, viewer(session))["slots"]
    assert [one["usual"] for one in slot["orders"]] == [share for _, share in ranked]
    session = seated(file.with_name("without"), load=players.get, player="thinker")
    (slot,) = hint_view(session, viewer(session))["slots"]
    assert {one["usual"] for one in slot["orders"]} == {None}


def test_an_outlook_plays_on_beside_the_game():
    """Its draws are its own; who has conceded holds; it ends once nobody waits for it."""
    units = {"RUSSIA": ["A BUD", "A CON"], "ENGLAND": ["A LON"], "ITALY": ["A ROM"]}
    centers = {"RUSSIA": ["MOS", "BER", "GRE", "HOL", "NWY", "SER"], "ENGLAND": ["LON"]}
    state = {"name": "F1901M", "units": units, "centers": centers}
    game, player = Game.from_state("three", state, max_years=1), RandomBot()
    before = game.to_saved_game()
    alone = dict.fromkeys(game.powers, Thinker())
    found = outlook(game, alone)
    assert found["RUSSIA"] == (32, 32, 8.0, 0.0) and found["ENGLAND"] == (32, 0, 1.0, 0.0)
    assert outlook(game, dict.fromkeys(game.powers, player))["RUSSIA"].won < 32
    assert outlook(game, alone | {"RUSSIA": player})["RUSSIA"].won < 32
    assert outlook(game, alone, orders={"RUSSIA": ["A BUD - GAL"]})["RUSSIA"].centers == 7
    assert game.to_saved_game() == before
    game.concede("RUSSIA")
    assert outlook(game, dict.fromkeys(game.powers, player))["RUSSIA"] == (32, 0, 0.0, 0.0)
    assert outlook(game, alone, lambda: False) is None


def test_an_outlook_does_not_tell_what_others_have_submitted(file):
    """In a sandbox it knows what the one person has submitted for the other powers."""
    units = {"ENGLAND": ["A LON"], "RUSSIA": ["A ANK"]}
    centers = {"ENGLAND": ["LON", "BUL"], "RUSSIA": ["ANK"]}
    state = {"name": "F1901M", "units": units, "centers": centers}
    for letters, who, after in (("hg", "RUSSIA", 2), ("hh", HOST, 1)):
        game = Game.from_state("small", state, max_years=1)
        session = seated(file.with_name(letters), letters, game, "thinker", load)
        (before,) = session.outlook(viewer(session), 0, [["A LON H"]])
        session.submit(session.viewer(session.tokens[who], "RUSSIA"), 0, ["A ANK - BUL"])
        host = session.viewer(session.tokens[HOST], "ENGLAND")
        (outlook_after,) = session.outlook(host, 0, [["A LON H"]])
        assert (before.centers, outlook_after.centers) == (2, after)


def test_hints_of_a_search_say_what_it_tried():
    """Candidates with their values, the others' orders, and who they are after a year's orders."""
    game, player = Game("standard"), searcher("searcher", "dumbbot", "hold", sure=0.0)
    for _ in range(2):
        given = orders_by_player(game, make_bot("dumbbot"), game.powers[1:], 3)
        for power, orders in given.items():
            game.submit(power, orders, strict=False)
        game.submit(game.powers[0], [])
        game.adjudicate()
        while phase_kind(game.phase) != "movement":
            game.adjudicate()
    before, found = game.to_saved_game(), advice(game, player, "FRANCE")
    candidates, expected, beliefs = found.tried
    assert found.value is None and sum(c.share for c in candidates) == 1
    assert candidates[0].share == 1 and sum(c.own for c in candidates) == 1
    legal = {text for unit in game.units["FRANCE"] for text in game.legal_orders(unit)}
    assert all(set(c.orders) <= legal and len(c.orders) == 3 for c in candidates)
    assert set(expected) == set(game.powers) - {"FRANCE"}
    assert beliefs["AUSTRIA"]["hold"] > 0.9 and beliefs["ENGLAND"]["dumbbot"] > 0.9
    assert not advice(Game("small"), searcher(), "ENGLAND").tried.beliefs, "nothing to choose among"
    assert game.to_saved_game() == before


def test_hints_in_winter_name_each_build():
    state = {"name": "W1901A", "units": {}, "centers": {"FRANCE": ["PAR", "MAR", "BRE"]}}
    game = Game.from_state("standard", state)
    found = advice(game, Thinker(), "FRANCE")
    assert [unit for unit, _ in found.slots] == ["build 1", "build 2", "build 3"]
    assert {text for text, _ in found.slots[0][1]} >= {"A PAR B", "F BRE B", "WAIVE"}
    with pytest.raises(UserError, match="ITALY has no orders to give in W1901A"):
        advice(game, Thinker(), "ITALY")


# --- Deals ----------------------------------------------------------------------------------------


def test_only_the_two_know_of_a_broken_deal():
    game = Game("three", press="offers", binding=False)
    game.accept("ITALY", game.offer("ENGLAND", "ITALY", zone=["WAL"]))
    game.submit("ENGLAND", ["A LON - WAL"])
    game.adjudicate()
    known = {power: asked(game, power, Partner(), 1).breaches.tolist() for power in game.powers}
    assert known["ITALY"] == [[0, NONE, NONE]] and known["RUSSIA"] == [[NONE] * 3]


@pytest.mark.parametrize("press", ["mutual", "offers"])
def test_players_talk_through_a_whole_game(file, press):
    """A game between players goes on to its end; no order that is kept breaks a deal."""
    game = Game("three", max_years=3, press=press)
    names, made = ["peaceful+dumbbot", "dealer+dumbbot"], {}
    seats = {power: Seat(PLAYER, names[n % 2]) for n, power in enumerate(game.powers)}

    def get(name):
        return made.setdefault(name, load_player(name, game_map=game.map))

    session = seated(file, None, game, load=get, opponents=names, seats=seats)
    while not session.game.is_over:
        session.go_on(viewer(session), session.now.step)
        again, _ = read_session(file)
        assert again.said() == session.game.said() and again.peace() == session.game.peace()
    history = session.game.history
    assert sum(len(phase["messages"]) for phase in history) > 4
    assert any(phase["name"].endswith("A") for phase in history)
    assert not any("void" in words for phase in history for words in phase["results"].values())


# --- The file -------------------------------------------------------------------------------------


def test_a_second_program_with_the_same_file_is_noticed(file):
    one = seated(file)
    other = reopened(file)
    other.submit(viewer(other), 0, ["A LON - PAR"])
    with pytest.raises(PlayError, match=re.escape(str(file))):
        one.submit(viewer(one), 0, ["A LON - HOL"])
    assert reopened(file).game.units["ENGLAND"] == ["A PAR"]
    file.unlink()  # it is written again
    one.submit(viewer(one), 0, ["A LON - HOL"])
    assert reopened(file).game.units["ENGLAND"] == ["A HOL"]


def test_any_saved_game_can_be_gone_on_with(file):
    game = Game("three")
    game.adjudicate()
    file.write_text("\n".join(json.dumps(g.to_saved_game()) for g in (Game("small"), game)))
    found, play = read_session(file, max_years=5)
    assert play is None and found.phase == "F1901M" and found.rules.max_years == 5
    assert found.history == game.history


def test_a_file_of_an_earlier_version_goes_on(file):
    """Rules that were in the key `play` go over to the game; later settings may be missing."""
    shutil.copy(Path(__file__).parent / "session-0.3.jsonl", file)
    session = reopened(file)
    assert session.game.votes == []
    assert session.game.rules == GameRules("small", max_years=2, draws_after=1902)
    host = session.viewer("YJYTr8bHhyUriojlRve5yd1y")  # its links stay, too
    session.submit(host, 3, ["A PAR - LON"])
    assert session.now.step == 4 and session.game.units["ENGLAND"] == ["A LON"]
    (saved,) = read_saved_games(file)
    for name in ("hint", "before"):
        del saved["play"][name]
    press = {"protocol": "offers", "rounds": 2, "binding": False, "open_press": True}
    saved["play"] |= {"format": 1, "max_years": 9, "press": press}
    del saved["max_years"], saved["draws_after"]
    file.write_text(json.dumps(saved))
    game, record = read_session(file)
    rules = {"press": "offers", "press_rounds": 2, "binding": False, "open_press": True}
    rules["draw_votes"] = True
    assert record.hint is None and game.rules == GameRules("small", max_years=9, **rules)


@pytest.mark.parametrize(
    ("change", "name"), read_table(__file__, "files_that_cannot_be_gone_on_with")
)
def test_files_that_cannot_be_gone_on_with(file, change, name):
    seated(file)
    (saved,) = read_saved_games(file)
    if isinstance(change, dict):
        own = saved if change.keys() <= saved.keys() else saved["play"]
        own.update(change)
        change = json.dumps(saved)
    file.write_text(change)
    with pytest.raises(UserError, match=re.escape(file.name)) as error:
        read_session(file)
    assert name in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("position", "waiting"),
    [
        ("S1902R; FRANCE A BEL, A PIC = PAR; GERMANY *A BEL > HOL RUH = MUN", ["GERMANY"]),
        ("S1902R; FRANCE A BEL, A PIC = PAR; GERMANY *A BEL > HOL = MUN", ["GERMANY"]),
        ("S1902R; FRANCE A BEL, A PIC = PAR; GERMANY *A BEL = MUN", []),
        ("W1902A; FRANCE A BEL, A PIC = PAR; GERMANY A HOL, A RUH = HOL MUN", ["FRANCE"]),
        ("W1902A; FRANCE A BEL, A PIC =; GERMANY A HOL = HOL MUN", ["GERMANY"]),
    ],
)
def test_nobody_is_waited_for_who_can_order_only_one_thing(position, waiting):
    game = Game.from_position(f"standard {position}")
    now = SessionState(game, dict.fromkeys(game.powers, Seat(HOST)))
    assert now.waiting_for() == waiting
