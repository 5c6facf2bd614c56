"""The loop and the client of the `diplomacy` server, against a stand-in that may misbehave."""

import json
import re
import socket
import sys
import threading
from contextlib import ExitStack
from functools import partial

import pytest
from support.commands import refusal
from support.diplomacy_server import StandIn, Until, free_port
from support.tables import read_table
from support.transcripts import follow, names_of
from support.waiting import until

from diplomacy_engine import Game, UserError, load_map, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.extras.connections import diplomacy_wire
from diplomacy_engine.extras.connections.connection import Address, ConnectionLost, PhaseOver
from diplomacy_engine.extras.connections.diplomacy_server import (
    Account,
    DiplomacyDummies,
    DiplomacySeats,
    _GameData,
)
from diplomacy_engine.extras.connections.diplomacy_wire import Wire
from diplomacy_engine.extras.connections.loop import SeatLoop, dropped
from diplomacy_engine.records import convert
from diplomacy_engine.replays.replay import load_replays
from diplomacy_engine.rules.game_rules import GameRules

STANDARD = load_map("standard")
RULES = GameRules(STANDARD)


@pytest.fixture
def server():
    with StandIn() as server:
        yield server


def seats(server, *powers, seconds=10.0, rules=RULES, **options) -> DiplomacySeats:
    accounts = {power: Account(f"user_{power}", "word") for power in powers or ["FRANCE"]}
    return DiplomacySeats(Wire(server.address, seconds=seconds), rules, "g", accounts, **options)


def play(connection, phase="S1902M", **options):
    told = []
    loop = SeatLoop(
        Until(connection, phase),
        make_bot("dumbbot"),
        say=told.append,
        sleep=lambda seconds: told.append(f"{seconds:g} s"),
        **options,
    )
    return loop.run(), told


SHOWN = ("set_orders", "vote", "leave_game", "join_powers")


class Moves:
    """Does the lines of a transcript: moves of a stand-in, and of loops that play at it."""

    def __init__(self, stack):
        self.stack, self.loops, self.told, self.now = stack, {}, [], ""

    def do(self, line: str) -> str:
        name, _, rest = line.partition(" ")
        self.told.clear()
        try:
            getattr(self, f"_{name}")(*json.loads(f"[{rest.replace('LONG', '9' * 5000)}]"))
        except UserError as error:
            self.told.append(f"error: {error}")
        assert "\x1b" not in "".join(self.told)
        lines, at = [*self.told], self.at
        for request in at.asked[self.seen :]:
            if request["name"] in SHOWN:
                what = request.get("orders", request.get("power_names", request.get("vote", "")))
                lines.append(f"  {request['name']} {request.get('game_role', '')} {what}")
        self.seen, before = len(at.asked), self.now
        users = {power: user for power, (user, _) in at.controllers.items()}
        self.now = f"  at the server: {at.game.phase} {at.status} {users} {sorted(at.votes)}"
        text = "\n".join([*lines, self.now] if self.now != before else lines)
        return re.sub("broke off: .*; ", "broke off; ", text).replace(str(at.address), "SERVER")

    def _server(self, changes=()):
        self.at, self.seen = self.stack.enter_context(StandIn()), 0
        self._change(dict(changes))

    def _change(self, changes):
        for name, value in changes.items():
            if name == "game":
                value = Game.from_position(value) if ";" in value else Game(value)
            if name == "controllers":
                value = {power: (user, 1) for power, user in value.items()}
            setattr(self.at, name, value)

    def _seat(self, power, options=None):
        options = options or {}
        rules = GameRules(STANDARD, draws_after=options.pop("draws_after", None))
        if power == "dummies":
            connection = DiplomacyDummies(Wire(self.at.address), rules, say=self.told.append)
        else:
            powers = [power, *options.pop("more", ())]
            connection = seats(self.at, *powers, rules=rules, say=self.told.append)
        self.stack.callback(connection.close)
        own = {"say": self.told.append, "sleep": lambda seconds: self.told.append(f"{seconds:g} s")}
        self.loops[power] = SeatLoop(connection, make_bot("dumbbot"), **own, **options)

    def _round(self, power):
        self.loops[power].connection.wait = lambda seconds: None
        self.loops[power]._round()

    def _play(self, power, phase):
        loop = self.loops[power]
        loop.connection = Until(loop.connection, phase)
        self.told.append(str(loop.run()))
        assert loop.connection.is_closed

    def _forget(self, power):
        del self.at.given[power]

    def _hang_up(self):
        self.at.hang_up()

    def _instead(self, name, *answers):
        self.at.instead(name, *(partial(self._answer, answer) for answer in answers))

    def _answer(self, answer, request):
        number = {"request_id": request["request_id"]}
        match answer:
            case {"error": [kind, words]}:
                return number | {"name": "error", "error_type": kind, "message": words}
            case {"bytes": text}:
                return text.encode("latin-1")
            case {"data": changes}:
                return number | {"name": "data_game", "data": self.at.data("FRANCE") | changes}
            case {"powers": powers}:
                data = self.at.data("FRANCE")
                data["powers"] |= powers
                return number | {"name": "data_game", "data": data}
        return answer


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_a_transcript(name):
    with ExitStack() as stack:
        follow(__file__, "transcripts", name, partial(map, Moves(stack).do))


def test_a_player_sees_what_was_played_before(server):
    """Policies look at the last orders, and those that learn from the past at all of it."""
    server.game.submit("FRANCE", ["A PAR - BUR"])
    server.game.adjudicate()
    connection = seats(server)
    connection.enter()
    (position,) = connection.positions()
    assert position.game.to_state() == server.game.to_state()
    assert [phase["name"] for phase in position.game.history] == ["S1901M"]
    connection.close()


@pytest.mark.parametrize(
    ("sent", "kept", "lost"), read_table(__file__, "kept_orders_are_compared_by_their_meaning")
)
def test_kept_orders_are_compared_by_their_meaning(sent, kept, lost):
    assert dropped(Game("standard"), sent, kept) == lost


def test_a_player_that_is_too_slow(server):
    """Its orders are for a phase that has passed: this is told, and the next one is played."""

    class Slow(Until):
        def give(self, position, power, orders):
            if (
                position.game.phase in ("S1901M", "F1901M")
                and server.game.phase == position[1].phase
            ):
                server.process()
            return self.connection.give(position, power, orders)

    counts, told = [], []
    loop = SeatLoop(Slow(seats(server), "S1903M"), make_bot("dumbbot"), say=told.append)
    counts = loop.run()
    assert sum("did not accept orders" in text for text in told) == 2
    assert counts.orders >= 7


# Nobody there, wrong names.


def test_a_server_that_is_waited_for():
    """Another try after 1, 2, 4 ... 30 seconds, until the patience is at its end."""
    wire = Wire(Address("127.0.0.1", free_port()))
    connection = DiplomacySeats(wire, RULES, "g", {"FRANCE": Account("u", "w")})
    with pytest.raises(UserError, match=r"127\.0\.0\.1:\d+: cannot be reached"):
        play(connection)
    said, slept, options = [], [], {"wait": True, "patience": 100}
    loop = SeatLoop(connection, make_bot("hold"), say=said.append, sleep=slept.append, **options)
    with pytest.raises(UserError, match="has not answered for 100 seconds"):
        loop.run()
    assert slept == [1, 2, 4, 8, 16, 30, 30, 9]
    assert [text.endswith("; trying again") for text in said] == [True], "once"


def command(server, *words, player="dumbbot"):
    address = f"127.0.0.1:{server.address.port}" if hasattr(server, "address") else server
    return ["connect", "diplomacy", address, *words, *(["--player", player] if player else [])]


SEAT = ("--game-id", "g", "--power", "FRANCE")


@pytest.mark.parametrize(("words", "sentence"), read_table(__file__, "bad_command_lines"))
def test_bad_command_lines(words, sentence, capsys):
    assert sentence in refusal("connect", "diplomacy", *words, "--player", "hold", capsys=capsys)


def test_without_the_package_that_it_needs(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets.sync.client", None)
    words = ["connect", "diplomacy", "localhost:80", *SEAT, "--player", "hold"]
    assert "pip install '.[connect]'" in refusal(*words, capsys=capsys)


def failing(server, capsys, *words):
    """Return the last line that a command ends with, and its exit code must be 2."""
    assert main(command(server, *words)) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_the_servers_words(server, capsys, tmp_path):
    server.users["me"] = "another"
    (tmp_path / "word").write_text("secret-word\n")
    user = ["--user", "me", "--password-file", str(tmp_path / "word")]
    line = failing(server, capsys, *SEAT, *user)
    assert line.endswith("refuses: Invalid user") and "secret-word" not in line
    assert "Invalid game ID" in failing(server, capsys, "--game-id", "x", "--power", "FRANCE")
    server.controllers["FRANCE"] = "somebody", 1
    line = failing(server, capsys, *SEAT)
    assert "control a power that is taken" in line
    assert line.endswith("free powers of g: AUSTRIA, ENGLAND, GERMANY, ITALY, RUSSIA, TURKEY")


def test_a_result_that_the_server_notes(server):
    """A draw of two, which leaves Turkey out, and a solo without the centers for it."""
    units = {"FRANCE": ["A PAR"], "ITALY": ["A VEN"], "TURKEY": ["A CON"]}
    server.game = Game.from_state("standard", {"name": "COMPLETED", "units": units})
    seats = DiplomacySeats(Wire(server.address), RULES, "g", {})
    for note, winners in (("FRA, ITA", ["FRANCE", "ITALY"]), ("ITA", ["ITALY"])):
        data = server.data("FRANCE") | {"note": f"Victory by: {note}"}
        game = seats._position("g", [convert(_GameData, data, "the game")], ["FRANCE"]).game
        assert Game.from_saved_game(game.to_saved_game()).winners == winners


# Broken lines.


def test_a_server_that_points_elsewhere(server):
    """Nobody else is connected to, whatever a server says."""
    with socket.create_server(("127.0.0.1", 0)) as other:

        def redirect():
            line, _ = other.accept()
            where = f"ws://127.0.0.1:{server.address.port}/"
            head = f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n"
            with line:
                line.recv(10_000)
                line.sendall(head.encode())

        threading.Thread(target=redirect, daemon=True).start()
        wire = Wire(Address("127.0.0.1", other.getsockname()[1]), seconds=5)
        with pytest.raises(ConnectionLost, match="points to another server"):
            wire.open()
    assert server._lines == []


@pytest.mark.parametrize("request_name", ["sign_in", "join_game", "set_orders", "set_wait_flag"])
def test_a_line_that_breaks(server, request_name):
    """The loop connects again, and every phase is played once."""
    server.instead(request_name, None)
    server_answers = server.answers[request_name]
    counts, told = play(seats(server), wait=True)
    assert not server_answers and "1 s" in told
    assert counts.orders >= 7 and counts.dropped == 0


def test_no_answer_in_time(server):
    never = threading.Event()
    server.instead("join_game", lambda r: never.wait(2) or None)
    wire = Wire(server.address, seconds=0.2)
    wire.open()
    token = wire.ask("sign_in", username="u", password="w")
    with pytest.raises(ConnectionLost, match="no answer in time"):
        wire.ask("join_game", token=token, game_id="g")
    never.set()
    wire.close()


def test_a_seat_that_was_taken_is_taken_again(server):
    said = []
    connection = seats(server, say=said.append)
    connection.enter()
    connection.positions()
    server.n_controls = 99
    server.kick("FRANCE")
    until(lambda: connection.wait(1) or said)  # that the game has begun is news, too
    assert said == ["g: FRANCE was taken from us"]
    assert server.controllers == {}
    (position,) = connection.positions()
    assert list(server.controllers) == ["FRANCE"] and position.missing == {"FRANCE"}
    connection.close()


def test_a_seat_that_somebody_else_has(server):
    connection = seats(server, say=lambda text: None)
    connection.enter()
    connection.positions()
    server.kick("FRANCE", to="somebody")
    connection.wait(20)
    with pytest.raises(UserError, match="control a power that is taken; free powers of g: AUS"):
        connection.positions()
    connection.close()


def test_unknown_messages_are_passed_over_and_a_stale_phase_is_not_taken(server):
    connection = seats(server)
    connection.enter()
    server.tell("omniscient_updated", grade=1)
    server.tell("a name that nobody knows", phase_data=[])
    server.tell("game_deleted", game_id="another")
    (position,) = connection.positions()
    connection.wait(0.05)
    assert position.game.phase == "S1901M"
    server.process()
    with pytest.raises(PhaseOver, match="Invalid order phase"):
        connection.give(position, "FRANCE", ["A PAR H"])
    connection.close()


# Nonsense.


def test_a_message_that_is_too_long(server, monkeypatch, capsys):
    monkeypatch.setattr(diplomacy_wire, "MOST_BYTES", 10_000)
    server.instead("join_game", lambda r: json.dumps({"x": "y" * 20_000}))
    assert "over 10,000 bytes" in failing(server, capsys, *SEAT)


# The command.


def test_the_command(server, capsys, tmp_path):
    """A whole game by the command, kept for `replay`; secrets are nowhere."""
    units = {"FRANCE": ["A PAR"], "ITALY": ["A VEN"]}
    owned = [STANDARD.provinces[v] for v in STANDARD.board.center_province][:18]
    state = {"name": "F1905M", "units": units, "centers": {"FRANCE": owned}}
    server.game = Game.from_state("standard", state)
    word = tmp_path / "word"
    word.write_text("secret-word\n")
    file = tmp_path / "game.jsonl"
    words = command(server, *SEAT, "--user", "me", "--password-file", str(word))
    assert main([*words, "--save", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "g is over, completed: FRANCE 19 centers" in out
    assert "1 phases, 1 orders, 0 of them dropped" in err
    assert "secret-word" not in out + err + file.read_text()
    assert "token of" not in out + err + file.read_text()
    (replay,) = load_replays(file)
    assert replay.players == {"FRANCE": "dumbbot"} and replay.winners == ["FRANCE"]
    assert "exists already" in failing(server, capsys, *SEAT, "--save", str(file))


def test_the_list(server, capsys):
    server.controllers["FRANCE"] = "somebody", 1
    assert main(command(server, "--list", player="")) == 0
    out = capsys.readouterr().out
    assert "S1901M" in out and "AUSTRIA ENGLAND GERMANY" in out and "FRANCE" not in out
