"""Sessions of people and players: seats, orders, taking back, hints, saving; no network."""

import json
import os
import re
import stat
import threading

import numpy as np
import pytest
from support.search import searcher

from diplomacy_engine.constants import phase_kind
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, Seat, read_session, rebuild
from diplomacy_engine.play.session import PlaySession, Viewer
from diplomacy_engine.play.view import board_view, decision_view, game_view, order_view
from diplomacy_engine.players.advice import advice, has_decision, orders_by_player, value_scale
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.protocols import Explanation
from diplomacy_engine.press.press import PressRules


class Thinker:
    """A player that holds, explains itself, and can be made to fail."""

    name = "thinker"
    broken = False

    def act(self, games, decisions):
        if self.broken:
            raise RuntimeError("out of thoughts")
        return make_bot("hold").act(games, decisions)

    def explain(self, games, decisions):
        counts = np.diff(decisions.order_start)
        shares = np.concatenate([np.arange(1, n + 1) / (n * (n + 1) / 2) for n in counts])
        return Explanation(shares.astype(np.float32), np.full(decisions.count, 2.5, np.float32))


class Sampler:
    """A player that draws from a generator of its own, as policies do; it has `manual_seed`."""

    name = "sampler"

    def __init__(self):
        self.generator = self
        self.manual_seed(0)

    def manual_seed(self, seed):
        self.rng = np.random.default_rng(seed)

    def act(self, games, decisions):
        first, last = decisions.order_start[:-1], decisions.order_start[1:]
        return decisions.order[self.rng.integers(first, last)]


def load(name):
    return {"thinker": Thinker, "sampler": Sampler}.get(name, lambda: make_bot(name))()


def make_session(
    file, opponents=("hold",), seats=None, game_map="small", max_years=2, **changes
) -> PlaySession:
    game = Game(game_map, max_years=max_years)
    return PlaySession(game, file, list(opponents), load, seats, **changes)


def seated(powers: str, file, game_map="small", player="hold", **changes) -> PlaySession:
    """Return a session; `powers` gives each power a letter: h(ost), g(uest), p(layer)."""
    names = Game(game_map).powers
    kinds = {"h": Seat(HOST), "g": Seat(GUEST), "p": Seat(PLAYER, player)}
    seats = {power: kinds[letter] for power, letter in zip(names, powers, strict=True)}
    return make_session(file, seats=seats, game_map=game_map, **changes)


def viewer(session: PlaySession, who: str = "host"):
    return session.viewer(session.tokens[who])


def refused(kind: str, action, *arguments) -> str:
    with pytest.raises(UserError) as error:
        action(*arguments)
    assert getattr(error.value, "kind", "invalid") == kind
    return str(error.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "game.jsonl"


# --- Seats ----------------------------------------------------------------------------------------


def test_the_host_chooses_seats_once(file):
    session = make_session(file)
    host = viewer(session)
    assert host == (None, True) and session.viewer("x" * 24) is None and session.viewer("é") is None
    for choice, words in (
        ({"ENGLAND": "me"}, "RUSSIA must be played by"),
        ({"ENGLAND": "me", "RUSSIA": "/etc/passwd"}, "RUSSIA must be played by"),
        ({"ENGLAND": "me", "RUSSIA": 3}, "RUSSIA must be played by"),
        ({"ENGLAND": "me", "RUSSIA": "hold", "MARS": "hold"}, "'MARS' is not a power"),
    ):
        assert words in refused("invalid", session.choose_seats, host, choice)
    assert "choose who plays" in refused("invalid", session.go_on, host, 0)
    for who in ("watch", "RUSSIA"):
        refused("forbidden", session.choose_seats, viewer(session, who), {})
    session.choose_seats(host, {"ENGLAND": "me", "RUSSIA": "guest"})
    assert viewer(session) == ("ENGLAND", True)
    assert viewer(session, "RUSSIA") == ("RUSSIA", False)
    assert viewer(session, "ENGLAND") == (None, False)  # the host sits there
    assert viewer(session, "watch") == (None, False)
    refused("stale", session.choose_seats, viewer(session), {"ENGLAND": "me", "RUSSIA": "hold"})


def test_a_map_that_cannot_be_saved_is_not_chosen(file, monkeypatch):
    """The links that others have been given stay as they are."""
    maps = {"maps": ["small", "three"], "new_game": lambda name: Game(name, max_years=2)}
    session = make_session(file, **maps)
    tokens, kept = dict(session.tokens), file.read_bytes()

    def full(*_, **__):
        raise UserError("no space left")

    monkeypatch.setattr("diplomacy_engine.play.session.atomic_write", full)
    with pytest.raises(UserError, match="no space left"):
        session.choose_map(viewer(session), "three")
    assert session.tokens == tokens and session.game.map.name == "small"
    assert session.viewer(tokens["RUSSIA"]) is not None and file.read_bytes() == kept
    monkeypatch.undo()
    session.choose_map(viewer(session), "three")
    assert json.loads(file.read_text())["play"]["tokens"] == session.tokens != tokens
    assert set(session.tokens) == {"host", "watch", *session.game.powers}


def test_the_link_of_a_power_that_a_player_plays_lets_nobody_order(file):
    """It is made with the others, and is a guest's once one sits there."""
    session = seated("hp", file)
    assert viewer(session, "RUSSIA") == (None, False)
    refused("forbidden", session.submit, viewer(session, "RUSSIA"), 0, [])
    refused("forbidden", session.hint, viewer(session, "RUSSIA"))


def test_tokens_cannot_be_guessed_and_are_each_their_own(file):
    session = make_session(file, game_map="standard")
    tokens = list(session.tokens.values())
    assert len(set(tokens)) == 9 and min(map(len, tokens)) >= 24
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


# --- Orders ---------------------------------------------------------------------------------------


def test_a_phase_is_played_when_all_people_have_given_orders(file):
    session = seated("gh", file)
    host, guest = viewer(session), viewer(session, "ENGLAND")
    assert session.waiting_for() == ["ENGLAND", "RUSSIA"]
    session.submit(host, 0, ["A MOS - UKR"])
    assert session.game.phase == "S1901M" and session.waiting_for() == ["ENGLAND"]
    assert game_view(session, guest)["given"] is None
    assert "A MOS - UKR" not in json.dumps([game_view(session, guest), board_view(session, guest)])
    assert "A MOS - UKR" not in json.dumps(session.saved_game())
    session.submit(guest, 0, ["a lon - par"])
    assert session.game.phase == "F1901M" and session.now.step == 1
    assert session.game.units == {"ENGLAND": ["A PAR"], "RUSSIA": ["A UKR"]}


def test_bad_orders_are_refused_with_the_reason_and_change_nothing(file):
    session = seated("hp", file)
    before = file.read_bytes()
    for orders, words in (
        (["A LON - MOS"], "A LON - MOS"),
        (["A MOS - UKR"], "A MOS - UKR"),
        (["nonsense"], "nonsense"),
        (["A LON - PAR", "A LON H"], "there is already an order for LON"),
    ):
        assert words in refused("invalid", session.submit, viewer(session), 0, orders)
    refused("forbidden", session.submit, viewer(session, "watch"), 0, [])
    refused("forbidden", session.submit, viewer(session, "RUSSIA"), 0, [])
    assert session.now.step == 0 and file.read_bytes() == before


def test_a_second_submission_replaces_a_retry_counts_once_and_a_stale_one_is_refused(file):
    session = seated("hg", file)
    host, guest = viewer(session), viewer(session, "RUSSIA")
    session.submit(host, 0, ["A LON - PAR"])
    revision = session.revision
    session.submit(host, 0, ["A LON - PAR"])
    assert session.revision == revision
    session.submit(host, 0, ["A LON - HOL"])
    assert session.game.orders["ENGLAND"] == ["A LON - HOL"]
    session.submit(guest, 0, [])
    assert session.now.step == 1 and session.game.units["ENGLAND"] == ["A HOL"]
    session.submit(host, 0, ["A LON - HOL"])  # the answer was lost and it is sent again
    assert session.now.step == 1 and "ENGLAND" not in session.game.orders
    words = refused("stale", session.submit, host, 0, ["A LON - PAR"])
    assert words == "this was meant for step 0 of the game, which has moved on to step 1, F1901M"
    refused("stale", session.submit, host, 2, [])


def test_orders_can_be_withdrawn_until_the_others_have_given_theirs(file):
    session = seated("hg", file)
    host, guest = viewer(session), viewer(session, "RUSSIA")
    refused("invalid", session.withdraw, host, 0)
    session.submit(host, 0, ["A LON - PAR"])
    session.withdraw(host, 0)
    session.submit(guest, 0, [])
    assert session.game.phase == "S1901M" and session.waiting_for() == ["ENGLAND"]
    session.submit(host, 0, ["A LON - PAR"])  # the same again is no retry now
    assert session.now.step == 1
    refused("stale", session.withdraw, host, 0)


def test_submissions_at_the_same_moment_play_one_phase(file):
    session = seated("hg", file)
    errors, gate = [], threading.Barrier(8)

    def give(who):
        gate.wait()
        try:
            session.submit(viewer(session, who), 0, [])
        except UserError as error:
            errors.append(error.kind)

    threads = [threading.Thread(target=give, args=(who,)) for who in ["host", "RUSSIA"] * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and session.now.step == 1 and len(session.game.history) == 1


def test_retreats_builds_and_removals_wait_for_their_own_powers_only(file):
    """A whole game by random orders, every phase through the seats."""
    session = seated("hgppppp", file, "standard", "dumbbot", max_years=9)
    rng, phases = np.random.default_rng(1), set()
    for _ in range(200):
        if session.game.is_over:
            break
        if session.can_go_on():
            session.go_on(viewer(session), session.now.step)
            continue
        phases.add(session.game.phase[-1])
        state, step = session.game.to_state(), session.now.step
        assert session.waiting_for()
        first, second = session.game.powers[:2]
        for who, power in (("host", first), (second, second)):
            if session.now.step != step:
                break  # the second one had nothing to order
            view = decision_view(session.game, power)
            assert (view is not None) == has_decision(state, power)
            if view is None:
                refused("invalid", session.submit, viewer(session, who), step, [])
                continue
            orders = [rng.choice(place["orders"])["text"] for place in view["units"]]
            session.submit(viewer(session, who), step, orders[: view["count"]])
    assert session.game.is_over and phases == set("MRA")
    refused("stale", session.submit, viewer(session), session.now.step, [])


def test_the_eliminated_watch_phase_by_phase(file):
    session = seated("hp", file, max_years=6)
    session.now.game = Game.from_state(
        "small",
        {"name": "S1901M", "units": {"RUSSIA": ["A LON"]}, "centers": {"RUSSIA": ["LON"]}},
        max_years=6,
    )
    assert session.can_go_on() and not session.waiting_for()
    session.go_on(viewer(session), 0)
    assert session.now.step == 1
    refused("stale", session.go_on, viewer(session), 0)
    refused("forbidden", session.go_on, viewer(session, "watch"), 1)


def test_watching(file):
    session = seated("pp", file, max_years=2)
    host = viewer(session)
    assert host == (None, True) and session.now.step == 0 and not session.can_take_back()
    for _ in range(40):
        if session.game.is_over:
            break
        session.go_on(host, session.now.step)
    assert session.game.is_over and not session.can_go_on()
    refused("stale", session.go_on, host, session.now.step)
    session.take_back(host, session.now.step)
    assert session.game.phase == "F1902M" and session.can_go_on()


# --- Taking back ----------------------------------------------------------------------------------


def test_taking_back_returns_to_ones_own_last_orders(file):
    session = seated("hp", file)
    host = viewer(session)
    refused("invalid", session.take_back, host, 0)
    session.submit(host, 0, ["A LON - PAR"])
    session.submit(host, 1, ["A PAR H"])
    assert session.game.phase == "W1901A"
    session.take_back(host, session.now.step)
    assert (session.game.phase, session.now.step) == ("F1901M", 3)
    assert session.game.units["ENGLAND"] == ["A PAR"] and len(session.game.history) == 1
    refused("stale", session.submit, host, 1, ["A PAR H"])  # meant for the game before
    session.take_back(host, 3)
    assert session.game.phase == "S1901M" and session.game.units["ENGLAND"] == ["A LON"]
    refused("forbidden", session.take_back, viewer(session, "watch"), 4)
    assert session.game.to_state() == Game("small").to_state()


@pytest.mark.parametrize("game_map", ["small", "three", "standard"])
def test_a_rebuilt_game_is_the_same_to_a_policy(game_map):
    """What the powers observe, the orders of the last movement phase included, is restored."""
    game, bot = Game(game_map, max_years=6), make_bot("random")
    rng, copies = np.random.default_rng(1), []
    while not game.is_over:
        copies.append(game.copy())
        given = orders_by_player(game, bot, game.powers, int(rng.integers(2**63)))
        for power, texts in given.items():
            game.submit(power, texts)
        game.adjudicate()
    assert {copy.phase[-1] for copy in copies} >= set("MA")
    for number, copy in enumerate(copies):
        again = rebuild(game, number)
        assert again.to_state() == copy.to_state() and again.history == copy.history
        seen = [_observed(one) for one in (again, copy)]
        for one, other in zip(*seen):
            np.testing.assert_array_equal(one, other)


def _observed(game: Game):
    games: VectorGame = game._games
    return games.observe_powers(np.zeros(len(game.powers), int), np.arange(len(game.powers)))


# --- Players --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bot", ["random", "hold", "chaos"])
def test_orders_in_words_are_those_in_numbers(bot):
    """orders_by_player says what the bot writes: the game goes on as the arrays do."""
    game = Game("standard", max_years=8)
    games = VectorGame("standard", 1, seed=9, max_years=8, threads=1, auto_reset=False)
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
    assert winters or bot == "hold"


def test_a_player_that_fails_loses_nothing_and_is_asked_again(file):
    session = seated("hp", file)
    thinker = session._players["hold"] = Thinker()
    thinker.broken = True
    host = viewer(session)
    session.submit(host, 0, ["A LON - PAR"])
    assert session.trouble == "hold could not give orders: out of thoughts"
    assert session.now.step == 0 and session.game.orders == {"ENGLAND": ["A LON - PAR"]}
    assert game_view(session, host)["trouble"] and game_view(session, host)["can_go_on"]
    assert "out of thoughts" in refused("invalid", session.go_on, host, 0)
    thinker.broken = False
    session.go_on(host, 0)
    assert session.now.step == 1 and session.trouble == ""
    assert session.game.units["ENGLAND"] == ["A PAR"]


def test_hints_are_the_explanation_in_words(file):
    session = make_session(
        file, ["hold", "thinker"], {"ENGLAND": Seat(HOST), "RUSSIA": Seat(GUEST)}
    )
    found = session.hint(viewer(session))
    assert found.value == 2.5
    ((unit, ranked),) = found.slots
    legal = session.game.legal_orders("A LON")
    assert unit == "A LON" and [text for text, _ in ranked] == legal[::-1]
    assert ranked[0][1] == pytest.approx(2 / (len(legal) + 1))
    refused("forbidden", session.hint, viewer(session, "watch"))
    assert game_view(session, viewer(session))["can_hint"]


def test_hints_of_a_search_say_what_it_tried(file):
    """Candidates with their values, the others' orders, and who they are after a year's orders."""
    game, player = Game("standard"), searcher("searcher", "dumbbot", "hold", sure=0.0)
    for _ in range(2):
        for power, orders in orders_by_player(
            game, make_bot("dumbbot"), game.powers[1:], 3
        ).items():
            game.submit(power, orders, strict=False)
        game.submit(game.powers[0], [])
        game.adjudicate()
        while phase_kind(game.phase) != "movement":
            game.adjudicate()
    found = advice(game, player, "FRANCE")
    candidates, expected, beliefs = found.tried
    assert found.value is None and sum(c.share for c in candidates) == 1
    assert candidates[0].share == 1 and sum(c.own for c in candidates) == 1
    legal = {text for unit in game.units["FRANCE"] for text in game.legal_orders(unit)}
    assert all(set(c.orders) <= legal and len(c.orders) == 3 for c in candidates)
    values = [c.value for c in candidates[1:] if c.value is not None]
    assert values == sorted(values, reverse=True) and candidates[0].value >= values[0]
    assert set(expected) == set(game.powers) - {"FRANCE"}
    units = game.units["ENGLAND"]
    assert [" ".join(text.split()[:2]) for text, _ in expected["ENGLAND"]] == sorted(
        units, key=lambda unit: game.map.provinces.index(unit.split()[1][:3])
    )
    assert beliefs["AUSTRIA"]["hold"] > 0.9 and beliefs["ENGLAND"]["dumbbot"] > 0.9
    before = game.to_saved_game()
    assert advice(game, player, "FRANCE") == found and game.to_saved_game() == before


def test_hints_in_winter_name_each_build(file):
    state = {"name": "W1901A", "units": {}, "centers": {"FRANCE": ["PAR", "MAR", "BRE"]}}
    found = advice(Game.from_state("standard", state), Thinker(), "FRANCE")
    assert [unit for unit, _ in found.slots] == ["build 1", "build 2", "build 3"]
    assert {text for text, _ in found.slots[0][1]} >= {"A PAR B", "F BRE B", "WAIVE"}
    with pytest.raises(ValueError, match="ITALY has no orders to give in W1901A"):
        advice(Game.from_state("standard", state), Thinker(), "ITALY")


def test_without_an_explaining_player_there_are_no_hints(file):
    session = seated("hp", file)
    assert not game_view(session, viewer(session))["can_hint"]
    assert "no player here gives hints" in refused("invalid", session.hint, viewer(session))
    with pytest.raises(UserError, match="hold cannot give hints"):
        make_session(file.with_name("other"), hint="hold")


# --- Saving ---------------------------------------------------------------------------------------


def reopened(file, seed: int = 1) -> PlaySession:
    game, play = read_session(file)
    hint = play.hint
    return PlaySession(game, file, play.opponents, load, saved=play, hint=hint, seed=seed)


def test_a_session_goes_on_from_its_file_after_every_step(file):
    session = seated("hg", file, seed=7)
    for step in range(4):
        for who in ("host", "RUSSIA"):
            session = reopened(file)
            assert session.now.step == step
            power = viewer(session, who).power
            unit = session.game.units[power][0]
            orders = [session.game.legal_orders(unit)[1]]
            tokens, answered = session.tokens, dict(session.now.answered)
            session.submit(viewer(session, who), step, orders)
            again = reopened(file)
            assert again.tokens == tokens and again.now.answered == session.now.answered
            assert again.now.answered != answered
            assert again.game.to_saved_game() == session.game.to_saved_game()
            assert again.game.orders == session.game.orders
            again.submit(viewer(again, who), step, orders)  # a retry, across the restart
            assert again.now.step == session.now.step
            session = again
        if session.game.phase.endswith("A"):
            break
    (saved,) = read_saved_games(file)
    assert Game.from_saved_game(saved).history == session.game.history


def test_seats_that_are_not_chosen_yet_survive(file):
    make_session(file, ["hold", "random"])
    session = reopened(file)
    assert session.now.seats is None and session.opponents == ["hold", "random"]


def test_what_cannot_be_saved_does_not_happen(file, monkeypatch):
    session = seated("hp", file)
    before = session.now

    def fail(*_, **__):
        raise UserError("no space left")

    monkeypatch.setattr("diplomacy_engine.play.session.atomic_write", fail)
    with pytest.raises(UserError):
        session.submit(viewer(session), 0, ["A LON - PAR"])
    assert session.now is before and session.game.orders == {}
    monkeypatch.undo()
    session.submit(viewer(session), 0, ["A LON - PAR"])
    assert session.now.step == 1


def test_a_second_program_with_the_same_file_is_noticed(file):
    one = seated("hp", file)
    other = reopened(file)
    other.submit(viewer(other), 0, ["A LON - PAR"])
    words = refused("invalid", one.submit, viewer(one), 0, ["A LON - HOL"])
    assert f"another program has changed {file}" in words
    assert reopened(file).game.units["ENGLAND"] == ["A PAR"]


def test_a_deleted_file_is_written_again(file):
    session = seated("hp", file)
    file.unlink()
    session.submit(viewer(session), 0, [])
    assert reopened(file).now.step == 1


def test_draws_are_the_same_after_going_on_with_a_game(file):
    """Those of a player with a generator of its own, too; a game with another seed differs."""

    def played(seed: int, stops: bool) -> list[dict]:
        file.unlink(missing_ok=True)
        session = seated(
            "pp", file, player="sampler", opponents=["sampler"], seed=seed, max_years=3
        )
        while not session.game.is_over:
            session.go_on(viewer(session), session.now.step)
            if stops:
                session = reopened(file, seed)
        return session.game.to_saved_game()["phases"]

    whole = played(5, stops=False)
    assert len(whole) > 6
    assert played(5, stops=True) == whole != played(6, stops=False)


def test_any_saved_game_can_be_gone_on_with(file):
    game = Game("three")
    game.adjudicate()
    file.write_text(
        json.dumps(Game("small").to_saved_game()) + "\n" + json.dumps(game.to_saved_game())
    )
    found, play = read_session(file, max_years=5)
    assert play is None and found.phase == "F1901M" and found.max_years == 5
    assert found.history == game.history


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("", "has no game in it"),
        ("{", "line 1"),
        ("[]", "line 1"),
        ({"map": 3}, "map: "),
        ({"map": "mars"}, "mars"),
        ({"play": 3}, "play: "),
        ({"format": 99}, "play.format: "),
        ({"step": -1}, "play.step: "),
        ({"tokens": {"host": "x"}}, "play.tokens[...]: "),
        ({"tokens": {"host": "ü" * 20}}, "play.tokens[...]: "),
        ({"tokens": {}}, "play.tokens: "),
        ({"seats": {"ENGLAND": 3}}, "play.seats[...]: "),
        ({"seats": {"ENGLAND": ["ghost", "x"]}}, "play.seats[...][0]: "),
        ({"seats": {}}, "play.seats: "),
        ({"answered": {"ENGLAND": [1]}}, "play.answered[...]: "),
        ({"answered": {"ENGLAND": [1, [2]]}}, "play.answered[...][1][0]: "),
        ({"before": {"ENGLAND": [2]}}, "play.before[...][0]: "),
        ({"opponents": "hold"}, "play.opponents: "),
        ({"max_years": 0}, "play.max_years: "),
        ({"draws_after": "soon"}, "play.draws_after: "),
        ({"hint": 3}, "play.hint: "),
        ({"press": {"protocol": "loud"}}, "play.press.protocol: "),
        ({"press": {"sound": 3}}, "play.press.sound: "),
        ({"press": {"rounds": 9}}, "play.press.rounds: "),
    ],
)
def test_files_that_cannot_be_gone_on_with(file, change, name):
    seated("hp", file)
    (saved,) = read_saved_games(file)
    if isinstance(change, dict):
        own = saved if change.keys() <= saved.keys() else saved["play"]
        own.update(change)
        change = json.dumps(saved)
    file.write_text(change)
    with pytest.raises(UserError, match=re.escape(file.name)) as error:
        read_session(file)
    assert name in str(error.value) and "\n" not in str(error.value)


def test_settings_that_a_file_leaves_out(file):
    seated("hp", file)
    (saved,) = read_saved_games(file)
    del saved["play"]["max_years"], saved["play"]["hint"]
    file.write_text(json.dumps(saved))
    game, play = read_session(file)
    assert game.max_years is None and play.hint is None


# --- Views ----------------------------------------------------------------------------------------


def test_orders_in_words():
    game_map = Game("standard").map
    found = {
        text: order_view(game_map, text)
        for text in (
            "A PAR - BUR",
            "A LON - BEL VIA",
            "F MAO - SPA/NC",
            "A MAR S A PAR",
            "A MAR S A PAR - BUR",
            "F NTH C A LON - BEL",
            "A MUN R RUH",
            "A MUN D",
            "F STP/SC B",
            "A PAR H",
        )
    }
    assert [view["words"] for view in found.values()] == [
        "move to Burgundy",
        "move to Belgium by convoy",
        "move to Spain (north coast)",
        "support army Paris to hold",
        "support army Paris to Burgundy",
        "convoy army London to Belgium",
        "retreat to Ruhr",
        "disband",
        "build fleet (south coast)",
        "hold",
    ]
    keys = ("verb", "place", "other")
    assert [tuple(view[key] for key in keys) for view in found.values()] == [
        ("move", "BUR", None),
        ("move", "BEL", None),
        ("move", "SPA", None),
        ("support", "PAR", "PAR"),
        ("support", "BUR", "PAR"),
        ("convoy", "BEL", "LON"),
        ("retreat", "RUH", None),
        ("disband", "MUN", None),
        ("build", "STP", None),
        ("hold", "PAR", None),
    ]


def test_pictures_of_phases_show_their_orders_and_results(file):
    session = seated("hp", file)
    session.submit(viewer(session), 0, ["A LON - PAR"])
    played = board_view(session, viewer(session), 0)
    assert played["title"] == "Spring 1901, movement"
    order = {"power": "ENGLAND", "text": "A LON - PAR", "result": [], "said": ""}
    assert order | {"unit": "Army London", "words": "move to Paris"} in played["orders"]
    assert (
        'data-order="A LON - PAR"' in played["overlay"] and 'data-unit="A LON"' in played["overlay"]
    )
    now = board_view(session, viewer(session), 1)
    assert now == board_view(session, viewer(session)) and now["orders"] == []
    assert 'data-unit="A PAR"' in now["overlay"]
    held = order | {"power": "RUSSIA", "text": "A MOS H", "unit": "Army Moscow", "words": "hold"}
    assert held in played["orders"]
    with pytest.raises(ValueError, match="no phase 2"):
        board_view(session, viewer(session), 2)


def test_only_the_host_sees_links_and_the_file(file):
    session = seated("hg", file)
    shown = game_view(session, viewer(session))
    assert shown["links"] == {name: session.tokens[name] for name in ("RUSSIA", "watch")}
    for who in ("RUSSIA", "watch"):
        text = json.dumps(game_view(session, viewer(session, who)))
        assert str(file) not in text
        assert not any(token in text for token in session.tokens.values())


def test_pages_and_saved_games_name_players_briefly(file, tmp_path):
    """No folder of this machine: a run folder goes by its own name, which can be chosen."""
    folder = tmp_path / "runs" / "small__1"
    folder.mkdir(parents=True)
    (folder / "policy.pt").write_bytes(b"")
    typed = f"{folder}/"

    def made(name):
        return Thinker() if name == typed else load(name)

    game = Game("small", max_years=2)
    session = PlaySession(game, file, [typed], made, offered=lambda _: ["hold"])
    host = session.viewer(session.tokens[HOST])
    view = game_view(session, host)
    assert view["opponents"] == ["small__1"] and view["choices"] == ["small__1", "hold"]
    session.choose_seats(host, {"ENGLAND": "me", "RUSSIA": "small__1"})
    assert session.now.seats["RUSSIA"] == Seat(PLAYER, typed)
    assert game_view(session, host)["powers"][1]["player"] == "small__1"
    assert session.saved_game()["players"]["RUSSIA"] == "small__1"
    assert read_session(file)[1].opponents == [typed]  # to go on with


def test_a_pasted_game_begins_the_session(tmp_path):
    game = Game("standard", max_years=9)
    session = PlaySession(Game("standard", max_years=9), tmp_path / "g.jsonl", ["hold"], make_bot)
    host = session.viewer(session.tokens["host"])
    with pytest.raises(UserError) as error:
        session.paste(session.viewer(session.tokens["watch"]), "France: A Par")
    assert error.value.kind == "forbidden"
    for text, reason in (
        (json.dumps(Game("small").to_saved_game()), "this game is on map small, not on standard"),
        (json.dumps(game.to_state() | {"name": "COMPLETED"}), "this game is over"),
        ("", "no phase with orders was found"),
    ):
        with pytest.raises(UserError, match=reason):
            session.paste(host, text)
    assert session.game.phase == "S1901M" and len(session.game.units["FRANCE"]) == 3
    assert session.paste(host, "Fall 1901\nFrance: A Par\nItaly: A Rom") == []
    assert session.game.units["FRANCE"] == ["A PAR"] and session.game.max_years == 9
    session.choose_seats(host, {p: "me" if p == "FRANCE" else "hold" for p in session.game.powers})
    assert read_session(tmp_path / "g.jsonl")[0].phase == "F1901M"
    with pytest.raises(UserError) as error:
        session.paste(host, "France: A Par")
    assert error.value.kind == "stale"


def test_a_pasted_game_has_the_press_of_the_session(tmp_path):
    rules = PressRules("offers", 2)
    game = Game("standard", press="offers", press_rounds=2)
    session = PlaySession(game, tmp_path / "g.jsonl", ["hold"], make_bot, press=rules)
    session.paste(session.viewer(session.tokens["host"]), "France: A Par\nItaly: A Rom")
    assert session.game.press == "offers" and session.game.table.rounds == 2


def test_a_sandbox(file):
    """One person gives everybody's orders, steps back, and lets players order."""
    session = PlaySession(
        Game("three", max_years=3), file, ["hold"], make_bot, offered=lambda _: ["random"]
    )
    host = viewer(session)
    refused(
        "invalid", session.choose_seats, host, {"ENGLAND": "me", "ITALY": "me", "RUSSIA": "hold"}
    )
    session.choose_seats(host, dict.fromkeys(session.game.powers, "me"))
    token = session.tokens[HOST]
    assert session.is_sandbox and session.viewer(token) == Viewer("ENGLAND", True)
    assert session.viewer(token, "RUSSIA").power == "RUSSIA"
    assert session.viewer(token, "MARS").power == "ENGLAND"
    assert session.viewer(session.tokens["RUSSIA"]) == Viewer(None)
    session.submit(session.viewer(token), 0, ["A LON - WAL"])
    assert session.viewer(token).power == "ITALY", "the next without orders"
    drawn = board_view(session, session.viewer(token))["overlay"]
    assert 'data-order="A LON - WAL"' in drawn, "all given orders are shown"
    refused("invalid", session.let_order, session.viewer(token), 0, "mars", ["ITALY"])
    refused("invalid", session.let_order, session.viewer(token), 0, "random", ["ENGLAND", 3])
    refused("stale", session.let_order, session.viewer(token), 7, "random", ["ITALY"])
    session.let_order(session.viewer(token), 0, "random", ["ITALY"])
    assert session.waiting_for() == ["RUSSIA"] and session.game.phase == "S1901M"
    session.let_order(session.viewer(token), 0, "hold", ["RUSSIA", "ITALY"])
    assert session.game.phase == "F1901M" and session.game.units["ENGLAND"] == ["A WAL"]
    session.take_back(session.viewer(token), session.now.step)
    assert session.game.phase == "S1901M" and session.now.before["ENGLAND"] == ["A LON - WAL"]
    again, play = read_session(file)
    assert again.phase == "S1901M" and {seat.kind for seat in play.seats.values()} == {HOST}
    other = seated("hp", file.with_name("other.jsonl"))
    refused("forbidden", other.let_order, viewer(other), 0, "hold", ["RUSSIA"])


def test_orders_can_be_typed(file):
    session = seated("hp", file)
    host = viewer(session)
    assert session.read_orders(host, "a lon - par", []) == ["A LON - PAR"]
    assert session.read_orders(host, "A LON H;", ["A LON - PAR"]) == ["A LON H"]
    assert session.read_orders(host, "Lon-Par", []) == ["A LON - PAR"]
    assert session.read_orders(host, "- **A LON**: H, (Lon-Par)", []) == ["A LON - PAR"]
    assert "A MOS" in refused("invalid", session.read_orders, host, "A MOS H", [])
    refused("invalid", session.read_orders, host, "A LON - ", [])


def test_on_another_map_others_are_offered(file):
    """An opponent that does not play there makes room for the best one that does."""
    offers = {"small": ["random", "hold"], "three": ["chaos", "hold"]}
    session = PlaySession(
        Game("small"), file, ["random"], make_bot, offered=offers.get, maps=["small", "three"],
        new_game=Game,
    )  # fmt: skip
    assert list(session.choices) == ["random", "hold"]
    session.choose_map(viewer(session), "three")
    assert session.opponents == ["chaos"] and list(session.choices) == ["chaos", "hold"]


def test_what_a_value_counts():
    class Trained:
        settings = {"reward_mix": "sum_of_squares=1,center_delta=1,draw_size=0.5"}  # noqa: RUF012

    scale = value_scale(Trained())
    assert (scale.solo, scale.more) == (1.5, True) and "draw_size: 1 for a solo" in scale.words
    Trained.settings = {"reward": "first_place"}
    assert value_scale(Trained())[1:] == (1, False)
    Trained.settings = {"reward": "mine:reward"}
    assert value_scale(Trained()) == ("It was trained on mine:reward.", None, True)
    assert value_scale(object()) == ("", None, False)
