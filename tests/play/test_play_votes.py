"""Votes for a draw and concessions in play: the session, its file, the terminal, the server."""

import json
import urllib.error
import urllib.request

import pytest
from support.commands import refusal
from support.serving import serving

from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.pictures.replays.replay import make_replay
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, Seat, read_session
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.play.terminal import TextGame
from diplomacy_engine.play.view import board_view, decision_view, game_view
from diplomacy_engine.players.bots import make_bot


def seated(file, letters="hgp", game=None, draws_after=1901, **changes) -> PlaySession:
    """Return a session; `letters` gives each power a letter: h(ost), g(uest), p(layer)."""
    votes = draws_after is not None
    game = game or Game("three", max_years=3, draw_votes=votes)
    kinds = {"h": Seat(HOST), "g": Seat(GUEST), "p": Seat(PLAYER, "hold")}
    seats = {power: kinds[letter] for power, letter in zip(game.powers, letters, strict=True)}
    return PlaySession(game, file, ["hold"], make_bot, seats, draws_after=draws_after, **changes)


def viewer(session, who="host"):
    return session.viewer(session.tokens[who])


def resumed(file) -> PlaySession:
    game, play = read_session(file)
    return PlaySession(
        game, file, play.opponents, make_bot, saved=play, draws_after=play.draws_after
    )


def votes(session, who="host"):
    return game_view(session, viewer(session, who))["votes"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "game.jsonl"


def test_the_last_vote_ends_the_game_at_once(file):
    session = seated(file)
    assert votes(session) == {"mine": False, "given": 1, "needed": 3}, "the bot has voted"
    session.submit(viewer(session), 0, ["A LON H"])
    for _ in range(2):  # the same again changes nothing
        session.vote(viewer(session), 0, True)
    assert votes(session) == {"mine": True, "given": 2, "needed": 3}
    assert votes(session, "ITALY") == {"mine": False, "given": 2, "needed": 3}
    session.vote(viewer(session), 0, False)
    session.vote(viewer(session), 0, False)
    assert votes(session)["given"] == 1 and not session.game.is_over
    session.vote(viewer(session), 0, True)
    session = resumed(file)
    assert votes(session) == {"mine": True, "given": 2, "needed": 3}
    session.vote(viewer(session, "ITALY"), 0, True)
    assert session.game.is_agreed and session.now.step == 1
    view = game_view(session, viewer(session))
    assert view["agreed"] and view["draw"] and view["votes"] is None and not view["can_concede"]
    session = resumed(file)
    assert session.game.is_agreed
    board = board_view(session, viewer(session), 0)
    assert board["orders"] == [] and board["talk"] == [
        (power, "", "votes for a draw") for power in session.game.powers
    ]
    session.take_back(viewer(session), 1)
    assert session.game.phase == "S1901M" and votes(session)["given"] == 1
    assert session.waiting_for() == ["ENGLAND", "ITALY"]


def test_votes_fall_after_a_phase_and_nobody_is_told_whose_they_are(file):
    session = seated(file)
    session.vote(viewer(session), 0, True)
    others = [game_view(session, viewer(session, "ITALY")), session.saved_game()]
    assert "ENGLAND" not in json.dumps(others[0]["votes"])
    assert "votes" not in others[1]["phases"][-1]
    for who in ("host", "ITALY"):
        session.submit(viewer(session, who), 0, [])
    assert session.now.step >= 1 and votes(session)["given"] == 1
    assert session.game.history[0]["votes"] == ["ENGLAND", "RUSSIA"]


def test_bots_vote_from_their_year_on(file):
    session = seated(file, draws_after=1902)
    while session.game.phase != "S1902M":
        assert votes(session)["given"] == 0
        for who in ("host", "ITALY"):
            session.submit(viewer(session, who), session.now.step, [])
    assert votes(session)["given"] == 1


def test_who_concedes_is_not_waited_for(file):
    session = seated(file)
    session.submit(viewer(session), 0, ["A LON H"])
    session.concede(viewer(session), session.now.step)
    session.concede(viewer(session), session.now.step)  # again changes nothing
    assert session.waiting_for() == ["ITALY"] and session.now.step == 0
    view = game_view(session, viewer(session))
    assert view["decision"] is None and not view["can_concede"] and view["votes"]["needed"] == 2
    assert [p["conceded"] for p in view["powers"]] == [True, False, False]
    with pytest.raises(UserError, match="ENGLAND has no orders to give in S1901M"):
        session.submit(viewer(session), 0, ["A LON H"])
    with pytest.raises(UserError, match="ENGLAND cannot vote: it has conceded"):
        session.vote(viewer(session), 0, True)
    session = resumed(file)
    assert session.game.conceded == ["ENGLAND"] and session.waiting_for() == ["ITALY"]
    session.submit(viewer(session, "ITALY"), 0, [])
    assert session.game.phase == "F1901M" and session.game.conceded == ["ENGLAND"]
    session.concede(viewer(session, "ITALY"), session.now.step)
    session = resumed(file)
    assert session.game.is_conceded and session.game.winners == ["RUSSIA"]
    assert make_replay(session.saved_game()).result.startswith("Russia (hold) wins")


def test_taking_back_a_phase_takes_a_later_concession_back(file):
    session = seated(file, "hpp", draws_after=None)
    session.submit(viewer(session), 0, [])
    session.concede(viewer(session), session.now.step)
    assert session.game.conceded == ["ENGLAND"] and session.game.phase == "F1901M"
    assert session.can_go_on(), "the host plays on when it likes"
    session.go_on(viewer(session), session.now.step)
    session.take_back(viewer(session), session.now.step)
    assert session.game.phase == "S1901M" and session.game.conceded == []
    assert decision_view(session.game, "ENGLAND") is not None


def test_a_concession_that_leaves_all_others_agreed_ends_the_game(file):
    session = seated(file, "hpp")
    session.concede(viewer(session), session.now.step)
    assert session.game.is_agreed and session.game.winners == ["ITALY", "RUSSIA"]


def test_what_cannot_be_voted(file):
    session = seated(file, draws_after=None)
    with pytest.raises(UserError, match="nobody votes for draws in this game"):
        session.vote(viewer(session), 0, True)
    with pytest.raises(UserError, match="you are watching"):
        session.concede(viewer(session, "watch"), 0)
    with pytest.raises(UserError, match="this was meant for step 7"):
        session.concede(viewer(session), 7)
    assert game_view(session, viewer(session, "watch"))["can_concede"] is False


def test_a_file_without_votes(file):
    seated(file)
    saved = json.loads(file.read_text())
    del saved["play"]["draws_after"]  # of earlier versions
    file.write_text(json.dumps(saved))
    assert read_session(file)[1].draws_after is None


def typed(session, *lines) -> str:
    waiting, shown = list(lines), []
    TextGame(session, lambda prompt: waiting.pop(0), shown.append).run()
    assert not waiting
    return "\n".join(shown)


def test_votes_in_the_terminal(file):
    session = seated(file, "hpp")
    shown = typed(session, "draw maybe", "draw no", "help", "concede", "concede ITALY", "quit")
    assert "votes for a draw: 2 of 3" in shown and "draw no       take that back" in shown
    assert shown.count("to give up for good, type: concede ENGLAND") == 2
    assert "No: type: draw, or to take it back: draw no." in shown
    shown = typed(session, "draw", "quit")
    assert "ENGLAND votes for a draw" in shown
    assert "The game is over: ENGLAND, ITALY, RUSSIA have agreed to a draw." in shown


def test_conceding_in_the_terminal(tmp_path):
    session = seated(tmp_path / "a.jsonl", "hpp", draws_after=None)
    shown = typed(session, "draw", "concede england", "", "quit")
    assert "nobody votes for draws in this game: begin one with --draws-after" in shown
    assert "[has conceded]" in shown and session.game.phase == "F1901M"
    game = Game("small", max_years=2)
    session = seated(tmp_path / "b.jsonl", "hp", game, draws_after=None)
    shown = typed(session, "concede ENGLAND", "quit")
    assert "The game is over: RUSSIA wins, as all others have conceded." in shown


def test_votes_over_the_network(file):
    session = seated(file)

    def post(path, body, who="host"):
        request = urllib.request.Request(
            f"{address}{path}",
            json.dumps(body).encode(),
            {"X-Play-Token": session.tokens[who], "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]

    with serving(session) as server:
        address = server.link("host").partition("/#")[0]
        for body in ({"step": 0}, {"step": 0, "draw": 1}, {"draw": True}):
            status, told = post("/api/vote", body)
            assert status == 400 and "the request: " in told
        assert post("/api/vote", {"step": 3, "draw": True})[0] == 409
        assert post("/api/vote", {"step": 0, "draw": True})[1]["votes"]["mine"] is True
        assert post("/api/vote", {"step": 0, "draw": True}, "watch")[0] == 403
        status, view = post("/api/concede", {"step": 0})
        assert status == 200 and view["can_concede"] is False
        assert post("/api/concede", {"step": 0}, "watch")[0] == 403


def test_a_game_is_resumed_with_its_own_votes(file, capsys):
    seated(file)
    told = refusal("play", "--text", "--resume", file, "--draws-after", "1907", capsys=capsys)
    assert "has different votes for draws, which cannot change" in told
