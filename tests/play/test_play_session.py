"""Sessions of people and players: what each may do, what comes of it, and what is kept."""

import json
import random
import re
import shutil
import stat
import threading
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.games import random_orders
from support.players import Thinker
from support.search import searcher
from support.serving import FREE, UNITS, Partner, by_name, deals, reopened, seated, viewer
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
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.textgame.saved_game import read_saved_games

pytestmark = pytest.mark.usefixtures("compiled")
WITHOUT_STEP = ("choose_settings", "choose_seats", "hint", "paste", "read_orders")


def load(name):
    own = {"thinker": Thinker, "sampler": RandomBot, "partner": Partner}
    return own[name]() if name in own else make_bot(name)


def three(**options) -> Game:
    return Game("three", max_years=3, **options)


def voting(file, letters: str, first_year: int = 1901) -> PlaySession:
    return seated(file, letters, three(draws_after=first_year))


def refused(expected: str, action, *arguments) -> None:
    """`expected` is the kind of a refusal, and perhaps `: ` and what it names."""
    kind, _, words = expected.partition(": ")
    with pytest.raises(UserError) as error:
        action(*arguments)
    assert getattr(error.value, "kind", "invalid") == kind and words in str(error.value), expected


def played(session, rows):
    """Play rows of who, which move (with a step, or for the current one), its values, and either
    why it is refused or the phase and who is waited for then. Return the session.

    What is refused changes nothing; after everything else the session goes on from its file.
    """
    for who, move, *values, expected in rows:
        row, file = (who, move, *values), session.file
        name, _, step = move.partition(" ")
        if name not in WITHOUT_STEP:
            values.insert(0, int(step or session.now.step))
        before, kept, asks = session.now, file.read_bytes(), viewer(session, who)
        if expected.partition(":")[0] in ("invalid", "forbidden", "stale"):
            refused(expected, getattr(session, name), asks, *values)
            assert session.now is before and file.read_bytes() == kept, row
            continue
        getattr(session, name)(asks, *values)
        game = session.game
        assert " ".join([game.phase, *session.now.waiting_for()]) == expected, row
        session = reopened(file, session._load_here)
        again = session.game
        assert again.to_saved_game() == game.to_saved_game() and again.orders == game.orders
        assert (again.votes, again.conceded) == (game.votes, game.conceded)
    return session


@pytest.fixture
def file(tmp_path):
    return tmp_path / "game.jsonl"


# Scene -> how it begins; what is done in it stands in tables/scenes.jsonl.
SCENES = {
    "seats are chosen once": partial(seated, letters=None),
    "a phase is played once all have ordered": partial(seated, letters="gh"),
    "retries count once, what is late is refused": partial(seated, letters="hg"),
    "orders can be changed until the last are given": partial(seated, letters="hg"),
    "bad orders, and those who have none to give": partial(seated, letters="hp"),
    "phases are taken back one by one": partial(seated, letters="hp"),
    "watching": partial(seated, letters="pp"),
    "the eliminated watch": lambda file: seated(
        file, game=Game.from_position("small S1901M; RUSSIA A LON = LON", max_years=6)
    ),
    "a sandbox": lambda file: seated(file, None, three(), opponents=["hold", "random"]),
    "the last vote ends the game at once": partial(voting, letters="hgp"),
    "who concedes is not waited for": partial(voting, letters="hgp"),
    "a concession that leaves all others agreed ends the game": partial(voting, letters="hpp"),
    "a concession is taken back with its phase": lambda file: seated(file, "hpp", three()),
    "deals": deals,
    "deals that may be broken": partial(deals, **FREE, binding=False),
    "a player that is lost for words": partial(deals, letters="hpp", partner=Partner(None)),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Return a function (name) -> the session after this scene, played once."""
    found = {}

    def get(name):
        if name not in found:
            rows = [row for scene, *row in read_table(__file__, "scenes") if scene == name]
            session = SCENES[name](tmp_path_factory.mktemp("scene") / "game.jsonl")
            found[name] = played(session, rows)
        return found[name]

    return get


@pytest.mark.parametrize("name", SCENES)
def test_a_scene(scene, name):
    scene(name)


def test_only_the_two_know_of_a_broken_deal_until_the_end(scene):
    """A player that is asked next knows it as well."""
    session = scene("deals that may be broken")
    for who in ("host", "ITALY", "watch", "RUSSIA"):
        asks, knows = viewer(session, who), who in ("host", "ITALY")
        said = [tuple(line) for line in game_view(session, asks, "S1901M")["said"]]
        assert (("ENGLAND", "ITALY", "no hard feelings") in said) == knows
        assert (("ENGLAND", "ITALY", "breaks the deal") in said) == knows
        broken = session.saved_game(asks)["phases"][0]["broken"]
        assert broken == ({"ENGLAND": ["ITALY"]} if knows else {})
    assert asked(session.game, "ITALY", Partner(), 1).breaches.tolist() == [[0, NONE, NONE]]
    assert asked(session.game, "RUSSIA", Partner(), 1).breaches.tolist() == [[NONE] * 3]


def test_what_came_of_the_scenes(scene):
    def units(name):
        return scene(name).game.units

    assert units("a phase is played once all have ordered") == dict(
        ENGLAND=["A PAR"], RUSSIA=["A UKR"]
    )
    late = scene("retries count once, what is late is refused")
    assert late.game.units["ENGLAND"] == ["A HOL"] and late.now.step == 1
    assert units("orders can be changed until the last are given")["ENGLAND"] == ["A PAR"]
    assert scene("a sandbox").now.drafts["ENGLAND"] == ["A LON - WAL"]
    back = scene("phases are taken back one by one")
    assert back.game.units["ENGLAND"] == ["A HOL"] and len(back.game.history) == 1
    assert scene("a concession is taken back with its phase").game.conceded == []
    conceded = scene("who concedes is not waited for")
    assert conceded.game.is_conceded and conceded.game.winners == ["RUSSIA"]
    assert make_replay(conceded.saved_game()).result.startswith("Russia (hold) wins")
    agreed = scene("a concession that leaves all others agreed ends the game").game
    assert agreed.is_agreed and agreed.winners == ["ITALY", "RUSSIA"]
    history = scene("deals").game.history
    assert history == [] and list(scene("deals").game.offers("ENGLAND")) == [1]


# --- Seats, links, maps ---------------------------------------------------------------------------


def test_who_has_which_link(file):
    session = seated(file, "hgp", Game("three"))
    for token in ("x" * 24, "é"):
        refused("unknown", session.viewer, token)
    asks = {who: tuple(viewer(session, who)) for who in session.tokens}
    assert asks == dict(
        host=("ENGLAND", True),
        watch=(None, False),
        ENGLAND=(None, False),  # the host sits there
        ITALY=("ITALY", False),
        RUSSIA=(None, False),
    )
    tokens = list(session.tokens.values())
    assert len(set(tokens)) == 5 and min(map(len, tokens)) >= 24
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = game_view(session, viewer(session))
    assert shown["links"] == {name: session.tokens[name] for name in ("ITALY", "watch")}
    for who in ("ITALY", "watch"):
        text = json.dumps(game_view(session, viewer(session, who)))
        assert str(file) not in text and not any(token in text for token in tokens)


def test_the_host_of_a_sandbox_orders_for_the_next_or_whom_it_names(file):
    session = seated(file, "hhh", Game("three"))
    token = session.tokens["host"]
    session.submit(session.viewer(token), 0, ["A LON - WAL"])
    asked = {name: session.viewer(token, name).power for name in (None, "RUSSIA", "MARS")}
    assert asked == {None: "ITALY", "RUSSIA": "RUSSIA", "MARS": "ITALY"}
    drawn = game_view(session, session.viewer(token))["board"]["overlay"]
    assert 'data-order="A LON - WAL"' in drawn, "all given orders are shown"


def test_another_map(file, monkeypatch):
    """It has other powers, links and opponents; where it cannot be saved nothing changes."""
    offers = {"small": {"random": "any", "hold": ""}, "three": {"chaos": "", "hold": ""}}
    choices = Choices(offers.get, maps=["small", "three"])
    session = seated(file, None, player="random", choices=choices)
    host, tokens, kept = viewer(session), session.tokens, file.read_bytes()
    assert list(session.choices) == ["random", "hold"]
    refused("invalid: 'mars'", session.choose_map, host, "mars")
    refused("forbidden", session.choose_map, viewer(session, "watch"), "three")

    def full(*_, **__):
        raise UserError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("diplomacy_engine.play.session.atomic_write", full)
        refused("invalid: no space", session.choose_map, host, "three")
    assert session.tokens == tokens and file.read_bytes() == kept
    assert session.game.map.name == "small" and session.record.opponents == ["random"]
    session.choose_map(host, "three")
    assert session.record.opponents == ["chaos"] and list(session.choices) == ["chaos", "hold"]
    assert json.loads(file.read_text())["play"]["tokens"] == session.tokens != tokens
    assert set(session.tokens) == {"host", "watch", *session.game.powers}
    assert session.tokens["host"] == tokens["host"]


def test_a_mixed_table_seats_different_players_by_the_seed():
    pool, named = ["a", "b", "c", "d"], dict.fromkeys("FGIRT", MIXED) | {"E": "hold"}
    tables = [mixed_table(named, pool, seed) for seed in range(30)]
    for table in tables:
        assert table["E"] == "hold" and {table[power] for power in "FGIRT"} == set(pool)
        assert len({table[power] for power in "FGIR"}) == 4, "each once before any twice"
    assert len({tuple(table.values()) for table in tables}) > 15
    assert tables[3] == mixed_table(named, pool, 3)


def test_settings_and_another_game(file):
    """What was set, mixed seats drawn anew, a file of its own, the same links."""
    pool = ["chaos", "random", "dumbbot"]
    offered = {MIXED: "drawn"} | dict.fromkeys(pool, "")
    choices = Choices(lambda *_: offered, lambda *_: pool)
    session = seated(file, None, Game("three"), MIXED, choices=choices, seed=1)
    session.choose_settings(viewer(session), 1901, 1901, "mutual", False, True, 7)
    game, record = read_session(file)
    assert record.seed == 7
    assert game.rules == GameRules(
        "three", max_years=1, draws_after=1901, press="mutual", binding=False
    )
    seats = dict.fromkeys(session.game.powers, MIXED)
    session.choose_seats(viewer(session), seats)
    first = [seat.player for seat in session.now.seats.values()]
    assert sorted(first) == sorted(pool)
    refused("invalid: not over", session.new_game, viewer(session))
    while not session.game.is_over:
        session.go_on(viewer(session), session.now.step)
    refused("forbidden", session.new_game, viewer(session, "watch"))
    old, tokens, step = session.game.to_saved_game(), session.tokens, session.now.step
    session.new_game(viewer(session))
    kept = reopened(file, load)
    assert kept.game.to_saved_game() == old and session.file.name == "game-2.jsonl"
    assert not {*kept.tokens.values()} & {*tokens.values()}, "it is still to be had"
    assert not session.now.seats and session.now.step > step and session.tokens == tokens
    again, record = read_session(session.file)
    assert again.rules == game.rules and record.seats is None
    assert game_view(session, viewer(session))["chosen"] == seats
    tables = {tuple(first)}
    for seed in range(8):
        tables.add(tuple(mixed_table(seats, pool, record.seed + seed).values()))
    assert len(tables) > 2


def test_a_game_is_tried_again_from_one_of_its_phases(tmp_path):
    game = Game("three", max_years=1)
    session = seated(tmp_path / "a.jsonl", "hpp", game)
    host = viewer(session)
    with pytest.raises(PlayError, match="not over"):
        session.try_from(host, 0, "ITALY")
    while not session.game.is_over:
        session.submit(host, session.now.step, [])
    for phase, power in ((99, "ITALY"), (1, "NOBODY")):
        with pytest.raises(PlayError, match="not one of"):
            session.try_from(host, phase, power)
    phase = session.game.history[1]["name"]
    tried = session.try_from(host, 1, "ITALY")
    assert tried.game.phase == phase and tried.file.name == "a-try-2.jsonl"
    assert tried.now.powers_of(HOST) == ["ITALY"] and len(tried.now.players()) == 1
    assert session.game.is_over and tried.parent_token() == session.tokens[HOST]
    entries = {one["file"]: one for one in session.games(host)}
    assert entries["a-try-2.jsonl"]["parent"] == "a.jsonl" and entries["a.jsonl"]["over"]


@pytest.mark.parametrize("name", ["small", "standard"])
def test_texts_of_a_phase_can_be_pasted(tmp_path, name):
    """In every phase of a random game the position is read again as it was, retreats and all, and
    the orders lead to what came next; neither shows what is not played yet."""
    rng, game = random.Random(name), Game(name, max_years=6)
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


def test_who_leads_does_not_vote_for_a_draw(file):
    """A year of votes is no wish: the leader would win."""
    units = {"ENGLAND": ["A PAR"], "ITALY": ["A ROM"], "RUSSIA": ["A MOS"]}
    centers = {"ENGLAND": ["PAR", "LON"], "ITALY": ["ROM"], "RUSSIA": ["MOS"]}
    state = {"name": "S1901M", "units": units, "centers": centers}
    game = Game.from_state("three", state, draws_after=1901)
    assert seated(file, "ppp", game).game.votes == ["ITALY", "RUSSIA"]


def test_nobody_votes_for_who_has_conceded_where_a_game_is_tried_again(file):
    session = voting(file, "hgp")
    session.submit(viewer(session), 0, [])
    session.concede(viewer(session, "ITALY"), 0)
    while not session.game.is_over:
        session.submit(viewer(session), session.now.step, [])
    tried = session.try_from(viewer(session), 1, "ENGLAND")
    assert tried.game.phase == "F1901M" and tried.game.votes == ["RUSSIA"]


def test_orders_chosen_in_a_sandbox_are_kept(file):
    session = seated(file, "hhh", Game.from_state("three", {"name": "S1901M", "units": UNITS}))
    session.draft(session.viewer(session.tokens[HOST], "ITALY"), 0, ["A PIE - TUS"])
    session.let_order(viewer(session), 0, "hold", ["ITALY", "RUSSIA"])
    assert session.game.orders["ITALY"] == ["A PIE - TUS", "A MAR H"]
    assert session.game.orders["RUSSIA"] == ["A BER H", "A MUN H"]
    session.draft(viewer(session), 0, ["A PAR - MOS"])
    refused("invalid", session.let_order, viewer(session), 0, "hold", ["ENGLAND"])
    assert "ENGLAND" not in session.game.orders


def test_a_build_chosen_in_a_sandbox_takes_the_place_of_another_unit_there(file):
    class Builder:
        name = "builder"

        def act(self, games, decisions):
            texts = games.vocabulary.texts
            return np.array([texts.index(text) for text in ("F BRE B", "A PAR B")], np.int32)

    state = {"name": "W1901A", "units": {}, "centers": {"FRANCE": ["BRE", "PAR"]}}
    game = Game.from_state("standard", state)
    session = seated(file, "hhhhhhh", game, "builder", lambda name: Builder())
    session.draft(session.viewer(session.tokens[HOST], "FRANCE"), 0, ["A BRE B"])
    session.let_order(viewer(session), 0, "builder", ["FRANCE"])
    assert session.game.history[0]["orders"]["FRANCE"] == ["A BRE B", "A PAR B"]


def test_a_pasted_game_begins_the_session(file):
    game = Game("standard", max_years=9, press="offers", press_rounds=2, draws_after=1901)
    session = seated(file, None, game)
    host = viewer(session)
    refused("forbidden", session.paste, viewer(session, "watch"), "France: A Par")
    for text, reason in (
        (json.dumps(Game("small").to_saved_game()), "map small, not on standard"),
        ("", "no phase with orders"),
    ):
        refused(f"invalid: {reason}", session.paste, host, text)
    assert len(session.game.units["FRANCE"]) == 3
    assert session.paste(host, "Fall 1901\nFrance: A Par\nItaly: A Rom") == []
    assert session.game.units["FRANCE"] == ["A PAR"] and session.game.rules == game.rules
    session.choose_seats(host, dict.fromkeys(session.game.powers, "hold") | {"FRANCE": "me"})
    assert read_session(file)[0].phase == "F1901M"
    assert game_view(session, viewer(session))["votes"]["given"] > 0, "it has votes, too"


def test_a_pasted_game_may_be_over(file):
    session, over = seated(file, None), Game("small", max_years=1)
    while not over.is_over:
        over.adjudicate()
    host = viewer(session)
    session.paste(host, json.dumps(over.to_saved_game()))
    session.new_game(host)  # nobody has sat anywhere
    assert session.game.phase == "S1901M" and session.chosen == {"ENGLAND": "me", "RUSSIA": "hold"}
    session.paste(host, json.dumps(over.to_saved_game()))
    session.choose_settings(host, 1903, None, None, True, True, None)
    session.choose_seats(host, {"ENGLAND": "me", "RUSSIA": "hold"})
    assert game_view(session, viewer(session))["can_review"]


def test_players_are_named_briefly(file, tmp_path):
    """No folder of this machine: a run folder goes by its own name, which can be chosen."""
    folder = tmp_path / "runs" / "small__1"
    folder.mkdir(parents=True)
    (folder / "policy.pt").write_bytes(b"")
    typed, choices = f"{folder}/", Choices(lambda *_: {"hold": ""})
    session = seated(file, None, player=typed, load=lambda name: make_bot("hold"), choices=choices)
    view = game_view(session, viewer(session))
    assert view["chosen"]["RUSSIA"] == "small__1" and view["choices"] == ["small__1", "hold"]
    session.choose_seats(viewer(session), {"ENGLAND": "me", "RUSSIA": "small__1"})
    assert session.now.seats["RUSSIA"] == Seat(PLAYER, typed)
    assert game_view(session, viewer(session))["powers"][1]["player"] == "small__1"
    assert session.saved_game()["players"]["RUSSIA"] == "small__1"
    assert read_session(file)[1].opponents == [typed]  # to go on with


# --- Orders ---------------------------------------------------------------------------------------


def test_nobody_sees_orders_and_votes_of_others(file):
    session = voting(file, "hgp")
    session.submit(viewer(session), 0, ["A LON - WAL"])
    session.vote(viewer(session), 0, True)
    guest = viewer(session, "ITALY")
    view, saved = game_view(session, guest), session.saved_game()
    assert view["given"] is None and view["votes"] == {"mine": False, "given": 2, "needed": 3}
    assert "A LON - WAL" not in json.dumps([view, saved])
    assert "votes" not in saved["phases"][-1]
    session.vote(guest, 0, True)
    view = game_view(session, viewer(session), "S1901M")
    assert view["said"] == [(power, "", "votes for a draw") for power in session.game.powers]
    view = game_view(session, viewer(session))
    assert view["result"] == "a draw agreed by all powers" and view["votes"] is None
    assert not view["can_concede"]


def test_votes_are_of_a_phase_and_bots_give_theirs_from_a_year_on(file):
    session, given = voting(file, "hgp", 1902), {}
    session.vote(viewer(session), 0, True)
    while session.game.phase != "F1902M":
        given[session.game.phase] = game_view(session, viewer(session))["votes"]["given"]
        for who in ("host", "ITALY"):
            session.submit(viewer(session, who), session.now.step, [])
        session = reopened(file)
    assert given == {"S1901M": 1, "F1901M": 0, "S1902M": 1}
    assert session.game.history[0]["votes"] == ["ENGLAND"]


def test_who_has_conceded_has_nothing_to_do(file):
    session = voting(file, "hgp")
    session.concede(viewer(session), 0)
    view = game_view(session, viewer(session))
    assert view["decision"] is None and not view["can_concede"] and view["votes"]["needed"] == 2
    assert [p["conceded"] for p in view["powers"]] == [True, False, False]
    assert game_view(session, viewer(session, "watch"))["can_concede"] is False


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


def test_a_player_that_fails_loses_nothing_and_is_asked_again(file):
    class Failing(Thinker):
        broken = True

        def act(self, games, decisions):
            if self.broken:
                raise RuntimeError("out of thoughts")
            return super().act(games, decisions)

    thinker = Failing()
    session = seated(file, load=lambda name: thinker)
    host = viewer(session)
    session.submit(host, 0, ["A LON - PAR"])
    assert session.trouble == "hold could not give orders: out of thoughts"
    assert session.now.step == 0 and session.game.orders == {"ENGLAND": ["A LON - PAR"]}
    assert game_view(session, host)["trouble"] and game_view(session, host)["can_go_on"]
    refused("invalid: out of thoughts", session.go_on, host, 0)
    thinker.broken = False
    session.go_on(host, 0)
    assert session.now.step == 1 and session.trouble == ""
    assert session.game.units["ENGLAND"] == ["A PAR"]


def test_hints_are_the_explanation_in_words(file):
    session = seated(file, "hg", load=load, opponents=["hold", "thinker"])
    found = session.hint(viewer(session))
    ((unit, ranked),) = found.slots
    legal = session.game.legal_orders("A LON")
    assert found.value == 2.25 and unit == "A LON" and [text for text, _ in ranked] == legal
    assert [share for _, share in ranked[:2]] == pytest.approx([0.5, 0.5 / (len(legal) - 1)])
    assert game_view(session, viewer(session))["can_hint"]
    refused("forbidden", session.hint, viewer(session, "watch"))
    session = seated(file.with_name("named"), "hp", load=load, hint="thinker")
    assert session.hint(viewer(session)).value == 2.25
    assert not game_view(seated(file.with_name("none")), viewer(session))["can_hint"]
    with pytest.raises(PlayError, match="hold cannot give hints"):
        seated(file.with_name("other"), hint="hold")
    session = seated(file.with_name("pool"), "hp", load=load, choices=Choices(mixed=best_thinker))
    assert session.hinting().name == "thinker", "the map's best, not an unknown opponent"


def best_thinker(*_):
    return ["thinker"]


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
    """Be it that the game goes on meanwhile. Whoever is an opponent later on can give some."""
    session = seated(file, "hp", load=load, player="thinker")
    drawing = lambda *_: session.submit(viewer(session), 0, [])  # noqa: E731
    monkeypatch.setattr("diplomacy_engine.play.view.orders_svg", drawing)
    assert hint_view(session, viewer(session))["step"] == 0 < session.now.step
    choices = Choices(lambda *_: {"hold": "", "thinker": ""})
    session = seated(file.with_name("later"), None, load=load, choices=choices)
    wanted = game_view(session, viewer(session))["settings"]["hints"]
    session.choose_settings(viewer(session), None, None, None, True, wanted, None)
    session.choose_seats(viewer(session), {"ENGLAND": "me", "RUSSIA": "thinker"})
    assert game_view(session, viewer(session))["can_hint"]


def test_rated_games_have_no_hints_and_end_with_a_rank(file):
    game = Game("small", max_years=1)
    record = PlayRecord(
        opponents=["thinker"], seats={"ENGLAND": Seat(HOST), "RUSSIA": Seat(PLAYER, "thinker")}
    )
    session = PlaySession(game, file, by_name(load), record, draw=drawn_at, rank=rank)
    view = game_view(session, viewer(session))
    assert view["rated"] and not (view["can_hint"] or view["can_take_back"] or view["rank"])
    with pytest.raises(PlayError, match="a rated game has no hints"):
        session.hint(viewer(session))
    session.submit(viewer(session), 0, [])
    refused("forbidden", session.take_back, viewer(session), session.now.step)
    session.concede(viewer(session), session.now.step)
    while not session.game.is_over:
        session.go_on(viewer(session), session.now.step)
    assert game_view(session, viewer(session))["rank"] == "rank of latest-1"
    session = session.try_from(viewer(session), 0, "ENGLAND")
    game, record = read_session(session.file)
    session = PlaySession(game, session.file, by_name(load), record, draw=drawn_at)
    view = game_view(session, viewer(session))
    assert view["can_hint"] and not view["rated"], "a game that is tried again, also resumed"
    session.submit(viewer(session), session.now.step, [])
    session.take_back(viewer(session), session.now.step)
    session.concede(viewer(session), session.now.step)
    while not session.game.is_over:
        session.go_on(viewer(session), session.now.step)
    assert game_view(session, viewer(session))["rank"] == "", "of a game that was tried again"
    assert session.record.seed == 1, "the same members are drawn when it is resumed"
    with pytest.raises(PlayError, match="it has no hints"):
        record = PlayRecord(opponents=["thinker"], hint="thinker")
        PlaySession(Game("small"), file.with_name("hint"), by_name(load), record, draw=drawn_at)


def test_a_rated_game_is_chosen_on_the_page(file):
    """And left again; where powers talk there is none."""
    choices = Choices(lambda *_: {"hold": "", "random": ""}, rated=lambda name: ["thinker"])
    record = PlayRecord(opponents=["hold"])
    draw = lambda now, _: {name: "latest" for name in now.opponents if name == "thinker"}  # noqa: E731
    session = PlaySession(Game("small"), file, by_name(load), record, choices, draw, rank)
    for rated, names in ((True, ["thinker"]), (False, ["hold", "random"])):
        session.choose_rated(viewer(session), rated)
        view = game_view(session, viewer(session))
        assert (view["rated"], view["choices"], view["can_rate"]) == (rated, names, True)
        assert view["chosen"] == {"ENGLAND": "me", "RUSSIA": names[0]}
    session.choose_settings(viewer(session), None, None, "mutual", True, True, None)
    refused("invalid: without talk", session.choose_rated, viewer(session), True)


def test_a_sandbox_goes_on_from_any_phase_and_leaves_the_game_as_it_is(file):
    session = seated(file, "hg", Game("small", max_years=3))
    session.submit(viewer(session), 0, ["A LON - PAR"])
    session.submit(viewer(session, "RUSSIA"), 0, [])
    before = file.read_text()
    for phase, name in ((0, "S1901M"), (None, "F1901M"), (99, "F1901M")):
        opened = session.sandbox(viewer(session, "RUSSIA"), phase)
        assert opened.game.phase == name and opened.now.is_sandbox
        assert not set(opened.tokens.values()) & set(session.tokens.values())
    opened.let_order(viewer(opened), 0, "hold", ["ENGLAND", "RUSSIA"])
    assert opened.game.phase == "W1901A" and len(session.opened) == 3
    assert file.read_text() == before and session.game.phase == "F1901M"
    assert opened.parent_token() == session.tokens[HOST]
    refused("forbidden", session.sandbox, viewer(session, "watch"), None)


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
    assert session.chosen == {"ENGLAND": "thinker", "RUSSIA": "me"}


def drawn_at(record, game_map):
    return {"thinker": f"latest-{record.seed}"}


def rank(file):
    (saved,) = read_saved_games(file)
    return f"rank of {saved['players']['RUSSIA']}"


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


def talk(session, who):
    return game_view(session, viewer(session, who))["talk"]


def test_offers_and_deals_are_seen_by_their_sides_alone(file):
    session = deals(file)
    host, guest = viewer(session), viewer(session, "ITALY")
    (first,) = talk(session, "host")["offers"]  # the player's, made as the phase began
    assert (first["sender"], first["state"]) == ("RUSSIA", "open")
    assert [clause["words"] for clause in first["clauses"]] == ["peace"]
    assert talk(session, "ITALY")["offers"] == [] and talk(session, "watch")["offers"] == []
    partners = {p["power"]: p for p in talk(session, "host")["partners"]}
    assert list(partners) == ["ITALY", "RUSSIA"]
    support = {pair["support"]: pair for pair in partners["ITALY"]["help"]}["A MAR S A PAR - GAS"]
    assert support["order"] == "A PAR - GAS"
    assert support["words"] == "Army Marseilles: support army Paris to Gascony"
    terms = {"ours": ["A PAR - GAS"], "theirs": ["A MAR S A PAR - GAS"], "we_keep_out": ["MUN"]}
    before = [session.saved_game(viewer(session, who)) for who in ("watch", "RUSSIA", "ITALY")]
    session.offer(host, 0, "ITALY", terms)
    after = [session.saved_game(viewer(session, who)) for who in ("watch", "RUSSIA", "ITALY")]
    assert after[:2] == before[:2] and after[2] != before[2], "nobody learns that others talk"
    (got,) = talk(session, "ITALY")["offers"]
    assert got["number"] == 1 and got["clauses"][2]["words"] == "keeps out of Munich"
    session.submit(host, 0, ["A PAR - PIC", "A PIC - BEL"])
    session.answer(guest, 0, 1, True)
    view = game_view(session, host)
    assert view["given"] is None and session.now.drafts["ENGLAND"] == ["A PAR - PIC", "A PIC - BEL"]
    assert view["decision"]["draft"] == {"A PAR": "A PAR - GAS", "A PIC": "A PIC - BEL"}
    drawn = re.findall('data-order="(.*?)"', view["board"]["overlay"])
    assert {*drawn} == {"A PAR - GAS", "A PIC - BEL"}
    units = {unit["unit"]: unit for unit in view["decision"]["units"]}
    assert units["A PAR"]["bound"] == ["ITALY"] and len(units["A PAR"]["orders"]) == 1
    assert units["A PIC"]["bound"] == []
    assert "GAS" not in json.dumps(talk(session, "watch")) and talk(session, "ITALY")["peace"] == []
    session.submit(host, 0, ["A PIC - BEL"])
    session.submit(guest, 0, [])
    orders = session.game.history[0]["orders"]["ENGLAND"]
    assert orders == ["A PIC - BEL", "A PAR - GAS"], "a promise is kept without an order"
    said = game_view(session, guest, "S1901M")["said"]
    assert [line[:2] for line in said] == [("ENGLAND", "ITALY"), ("ITALY", "ENGLAND")]
    for who, count in (("host", 3), ("ITALY", 2), ("watch", 0)):
        asks = viewer(session, who)
        assert len(game_view(session, asks, "S1901M")["said"]) == count
        messages = session.saved_game(asks)["phases"][0]["messages"]
        assert [message["time_sent"] for message in messages] == list(range(count))


@pytest.mark.parametrize("open_press", [False, True])
def test_mutual_press_and_who_sees_it(file, open_press):
    session = deals(file, press="mutual", open_press=open_press)
    session.offer(viewer(session), 0, "RUSSIA", {"peace": True})  # which wished it, too
    session.offer(viewer(session, "ITALY"), 0, "RUSSIA", {"peace": True})  # which did not
    assert talk(session, "ITALY")["offers"][-1]["state"] == "declined"
    for who in ("host", "ITALY", "watch"):
        seen = open_press or who == "host"
        assert talk(session, who)["peace"] == [("ENGLAND", "RUSSIA")] * seen
    assert talk(session, "host")["left"] is None


@pytest.mark.parametrize("press", ["mutual", "offers"])
def test_players_talk_through_a_whole_game(file, press):
    """A game between players goes on to its end; no order that is kept breaks a deal."""
    game = Game("three", max_years=4, press=press)
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


def test_who_talks_can_still_give_hints(file):
    """Hints are those of the player that gives the orders, and name none that a deal rules out."""
    partner = Partner()
    partner.player = Thinker()
    session = deals(file, "hpp", partner=partner)
    session.offer(viewer(session), 0, "ITALY", {"ours": ["A PAR - GAS"]})
    assert talk(session, "host")["offers"][-1]["state"] == "deal", "a player answers at once"
    slots = dict(session.hint(viewer(session)).slots)
    assert [text for text, _ in slots["A PAR"]] == ["A PAR - GAS"] and len(slots["A PIC"]) > 3


@pytest.mark.parametrize(
    "name, terms, reason", read_table(__file__, "a_player_says_why_it_declines")
)
def test_a_player_says_why_it_declines(file, name, terms, reason):
    session = deals(file, "hpp", partner=load_player(name, game_map="three"))
    session.offer(viewer(session), 0, "ITALY", terms)
    (offer,) = [one for one in talk(session, "host")["offers"] if one["receiver"] == "ITALY"]
    assert offer["state"] == "declined" and offer["reason"].startswith(reason)


# --- The file -------------------------------------------------------------------------------------


def test_what_cannot_be_saved_does_not_happen(file, monkeypatch):
    session, before = seated(file), file.read_bytes()
    now = session.now

    def fail(*_, **__):
        raise UserError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("diplomacy_engine.play.session.atomic_write", fail)
        refused("invalid: no space", session.submit, viewer(session), 0, ["A LON - PAR"])
    assert session.now is now and session.game.orders == {} and file.read_bytes() == before
    file.unlink()  # it is written again
    session.submit(viewer(session), 0, ["A LON - PAR"])
    assert reopened(file).now.step == 1


def test_a_second_program_with_the_same_file_is_noticed(file):
    one = seated(file)
    other = reopened(file)
    other.submit(viewer(other), 0, ["A LON - PAR"])
    refused(f"invalid: {file}", one.submit, viewer(one), 0, ["A LON - HOL"])
    assert reopened(file).game.units["ENGLAND"] == ["A PAR"]


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
