"""Offers and answers that are carried as messages: what is said, what is read, what binds."""

import threading

import pytest
from support.commands import refusal
from support.diplomacy_server import StandIn, Until
from support.tables import read_table

from diplomacy_engine import Game, load_map, make_bot
from diplomacy_engine.extras.connections.diplomacy_server import Account, DiplomacySeats
from diplomacy_engine.extras.connections.diplomacy_wire import Wire
from diplomacy_engine.extras.connections.loop import SeatLoop, check_plays
from diplomacy_engine.extras.connections.talk import (
    keeping_promises,
    known_messages,
    say_what_is_left,
)
from diplomacy_engine.press.deals import make_offers
from diplomacy_engine.press.negotiators.negotiation import Silent
from diplomacy_engine.press.negotiators.planners import Nash
from diplomacy_engine.rules.game_rules import GameRules

STANDARD = load_map("standard")
PEACE = "PRP ( PCE ( ENG FRA ) )"


class Scripted(Silent):
    """Makes the offers that it is told to make, one after the other, and agrees to everything."""

    def __init__(self, *offers):
        super().__init__(make_bot("dumbbot"), "scripted")
        self.left = list(offers)

    def offers(self, talk):
        return make_offers([(0, *self.left.pop(0))] if self.left else [])

    def answers(self, talk, offers):
        return [True] * offers.count


def order(game, sender, receiver, **terms):
    """Return an offer as negotiators write it."""
    trial = game.copy()
    trial.offer(sender, receiver, **terms)
    said = trial.said()[-1]
    return said.sender, said.receiver, said.clauses


def said(sender, recipient, text, time=0):
    return {"sender": sender, "recipient": recipient, "message": text, "time_sent": time}


def test_offers_are_answered_and_made():
    game = Game("standard", press="offers")
    game.offer("ENGLAND", "FRANCE", peace=True)
    player = Nash(make_bot("dumbbot"), "nash", profiles=4)
    messages = say_what_is_left(game, ["FRANCE"], player, 1, True)
    assert messages[0]["message"] in (f"YES ( {PEACE} )", f"REJ ( {PEACE} )")
    assert {m["sender"] for m in messages} == {"FRANCE"}
    assert not game.offers("FRANCE")
    assert not say_what_is_left(game, ["FRANCE"], player, 1, False)  # nothing is left to be said


def test_nothing_is_said_that_contradicts_an_open_offer():
    """Whoever gets it may say yes at any moment."""
    game = Game("standard", press="offers")
    player = Scripted(
        order(game, "FRANCE", "ENGLAND", ours=["A PAR - BUR"]),
        order(game, "FRANCE", "ITALY", ours=["A PAR - GAS"]),
    )
    say_what_is_left(game, ["FRANCE"], player, 1, True)
    say_what_is_left(game, ["FRANCE"], player, 1, True)
    assert [offer.receiver for offer in game.said("FRANCE")] == [STANDARD.power_index["ENGLAND"]]
    game.offer("GERMANY", "FRANCE", theirs=["A PAR - PIC"])
    game.offer("GERMANY", "FRANCE", theirs=["F BRE - ENG"])
    messages = say_what_is_left(game, ["FRANCE"], player, 1, True)
    assert [m["message"][:3] for m in messages] == ["REJ", "YES"]
    game.accept("ENGLAND", 1)
    assert game.deals("FRANCE") == ["with ENGLAND: A PAR - BUR", "with GERMANY: F BRE - ENG"]


def test_a_unit_that_was_not_ordered_keeps_its_promise():
    game = Game("standard", press="offers")
    assert keeping_promises(game, "FRANCE", ["A MAR H"]) == ["A MAR H"]
    game.accept("ENGLAND", game.offer("FRANCE", "ENGLAND", ours=["A PAR - BUR"]))
    assert set(keeping_promises(game, "FRANCE", ["A MAR H"])) == {"A MAR H", "A PAR - BUR"}


def test_only_messages_that_may_be_offers_are_read():
    found = known_messages(
        STANDARD,
        [
            said("ENGLAND", "FRANCE", PEACE, 9),
            said("ENGLAND", "FRANCE", f"YES({PEACE})", 10),
            said("ENGLAND", "FRANCE", "\x1b[31mhello", 1),
            said("ENGLAND", "GLOBAL", PEACE, 2),
            said("SYSTEM", "FRANCE", PEACE, 3),
            said("MARS", "FRANCE", PEACE, 4),
            said("ENGLAND", "FRANCE", PEACE + " " * 5000, 5),
            *(said("ITALY", "FRANCE", PEACE, 20 + n) for n in range(1000)),
        ],
    )
    assert [m["time_sent"] for m in found[:2]] == [9, 10]
    assert len(found) == 52


@pytest.mark.parametrize(
    "text", read_table(__file__, "messages_that_mean_nothing_here_have_no_effect")
)
def test_messages_that_mean_nothing_here_have_no_effect(text):
    saved = Game("standard").to_saved_game()
    messages = [said("ENGLAND", "FRANCE", text), said("ENGLAND", "FRANCE", "PRP(PCE(ENG FRA))", 1)]
    saved["phases"][-1]["messages"] = [m | {"phase": "S1901M"} for m in messages]
    game = Game.from_saved_game(saved, GameRules(STANDARD, press="offers"))
    assert list(game.offers("FRANCE").values()) == ["ENGLAND: peace between ENGLAND and FRANCE"]


@pytest.fixture
def server():
    with StandIn(n_controls=2, rules="POWER_CHOICE") as server:
        yield server


def until(server, power, phase, **options) -> Until:
    accounts = {power: Account(f"user_{power}", "word")}
    return Until(
        DiplomacySeats(Wire(server.address), GameRules("standard"), "g", accounts, **options), phase
    )


def alone(server, player, told=None, **options) -> SeatLoop:
    """Return a loop of FRANCE that waits for nothing, where somebody else has ENGLAND."""
    server.controllers["ENGLAND"] = "somebody", 1
    seat = until(server, "FRANCE", "F1901M")
    seat.connection.wait = lambda seconds: None
    return SeatLoop(seat, player, say=str if told is None else told.append, **options)


def test_two_negotiate_over_the_wire_and_keep_their_word(server):
    first = Game("standard", press="offers")
    offers = [order(first, "FRANCE", "ENGLAND", ours=["A PAR - PIC"], theirs=["F LON - NTH"])]
    seats = {power: until(server, power, "F1901M") for power in ("FRANCE", "ENGLAND")}
    loops = [
        SeatLoop(seat, Scripted(*(offers if power == "FRANCE" else [])), talk=3, say=str)
        for power, seat in seats.items()
    ]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    (phase,) = server.game.history
    assert [m["message"][:3] for m in phase["messages"]] == ["PRP", "YES"]
    assert "A PAR - PIC" in phase["orders"]["FRANCE"]
    assert "F LON - NTH" in phase["orders"]["ENGLAND"]
    assert [loop.counts.messages for loop in loops] == [1, 1]
    assert [m["message"] for m in loops[0].saved_games()[0]["phases"][0]["messages"]] == [
        m["message"] for m in phase["messages"]
    ]


def test_an_answer_after_the_orders_changes_them(server):
    """The phase may go on for long when one's own talk is over."""
    first = Game("standard", press="offers")
    player = Scripted(order(first, "FRANCE", "ENGLAND", ours=["A PAR - PIC"]))
    loop = alone(server, player, talk=0.1)
    while not server.given.get("FRANCE"):
        loop._round()
    assert "A PAR - PIC" not in server.given["FRANCE"]
    server.game.send("ENGLAND", "FRANCE", f"YES ( {server.game.messages[0]['message']} )")
    loop._round()
    assert "A PAR - PIC" in server.given["FRANCE"]
    loop.connection.close()


def test_what_is_not_taken_ends_the_talk_of_the_phase(server):
    told = []
    error = {"name": "error", "error_type": "ResponseException", "message": "no\x1b[31m more"}
    server.instead(
        "send_game_message", lambda request: error | {"request_id": request["request_id"]}
    )
    first = Game("standard", press="offers")
    player = Scripted(order(first, "FRANCE", "ENGLAND", ours=["A PAR - PIC"]))
    loop = alone(server, player, told, talk=1000)
    while not server.given.get("FRANCE"):
        loop._round()
    assert any("the player's message was refused" in text for text in told)
    assert not any("\x1b" in text for text in told)
    loop.connection.close()


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("POWER_CHOICE NO_PRESS", "nobody may talk in g"),
        ("POWER_CHOICE PUBLIC_PRESS", "powers may only talk to all in g"),
    ],
)
def test_a_game_in_which_nobody_can_talk_is_refused(server, capsys, rules, reason):
    server.rules = rules.split()
    where = ["connect", "diplomacy", str(server.address), "--game-id", "g", "--power", "FRANCE"]
    text = refusal(*where, "--player", "silent+dumbbot", capsys=capsys)
    assert reason in text and "give the player behind its + alone" in text
    assert not server.controllers  # the seat is free again


@pytest.mark.parametrize(
    ("arguments", "words"), read_table(__file__, "talk_that_cannot_be_carried_is_refused")
)
def test_talk_that_cannot_be_carried_is_refused(capsys, arguments, words):
    game = [] if "all-dummies" in arguments else ["--game-id", "g"]
    command = ["connect", "diplomacy", "localhost:1", *game, *arguments]
    assert words in refusal(*command, capsys=capsys)


def test_a_player_that_talks_is_rehearsed():
    asked = []

    class Watched(Scripted):
        def offers(self, talk):
            asked.append(talk.power[0])
            return super().offers(talk)

    check_plays(Watched(), STANDARD)
    assert len(asked) == 7
