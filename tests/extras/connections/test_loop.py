"""The loop and the client of the `diplomacy` server, against a stand-in that may misbehave."""

import json
import socket
import sys
import threading

import pytest
from support.commands import refusal
from support.diplomacy_server import StandIn, Until, free_port
from support.tables import read_table
from support.waiting import until

from diplomacy_engine import Game, UserError, load_map, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.constants import NONE
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


def waiting_for_nothing(connection, told=None) -> SeatLoop:
    connection.wait = lambda seconds: None
    say = (lambda text: None) if told is None else told.append
    return SeatLoop(connection, make_bot("dumbbot"), say=say, sleep=lambda seconds: None)


def test_a_year_is_played(server):
    counts, told = play(seats(server))
    assert counts.orders >= 7 and counts.dropped == counts.reconnections == 0
    assert [text for text in told if " " in text][-1].startswith("g is over, enough")
    given = [phase["orders"]["FRANCE"] for phase in server.game.history]
    assert all(given)


def test_several_seats_each_have_a_user(server):
    server.n_controls = 2
    counts, _ = play(seats(server, "FRANCE", "ITALY"), "F1901M")
    assert counts.orders == 6
    holders = {power: user for power, (user, _) in server.controllers.items()}
    assert holders == {"FRANCE": "user_FRANCE", "ITALY": "user_ITALY"}


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


def test_what_is_dropped_is_sent_again_and_told(server):
    orders = []

    class Watched(Until):
        def give(self, position, power, texts):
            orders.append(texts)
            server.drops = {texts[0]} if position.game.phase == "S1901M" else set()
            return self.connection.give(position, power, texts)

    server.n_controls = 99  # so that the phase does not end at once
    told = []
    connection = Watched(seats(server), "F1901M")
    loop = SeatLoop(connection, make_bot("dumbbot"), say=told.append)
    loop._round = lambda: True
    connection.enter()
    (position,) = connection.positions()
    loop._play(position)
    connection.close()
    assert len(orders) == 2 and orders[0] == orders[1]
    assert loop.counts.dropped == 1
    assert told[-1] == f"g: FRANCE's order {orders[0][0]} was dropped by the server"


@pytest.mark.parametrize(
    ("sent", "kept", "lost"), read_table(__file__, "kept_orders_are_compared_by_their_meaning")
)
def test_kept_orders_are_compared_by_their_meaning(sent, kept, lost):
    assert dropped(Game("standard"), sent, kept) == lost


def test_orders_lost_in_a_crash_are_given_again(server):
    server.n_controls = 99
    loop = waiting_for_nothing(seats(server))
    loop._round()
    assert server.given["FRANCE"]
    given = server.given.pop("FRANCE")
    loop._round()
    assert server.given["FRANCE"] == given
    loop._round()
    assert server.names().count("set_orders") == 2
    loop.connection.close()


def test_holds_come_first_where_a_deadline_may_pass():
    with StandIn(deadline=60) as server:
        play(seats(server), "F1901M")
        first, second = (r for r in server.asked if r["name"] == "set_orders")
        assert first["orders"] == [] != second["orders"] and first["wait"] is second["wait"] is True


@pytest.mark.parametrize(("options", "centers", "votes"), read_table(__file__, "votes_for_a_draw"))
def test_votes_for_a_draw(server, options, centers, votes):
    if centers > 3:
        owners = server.game.vector_game.state.center_owner
        owners[0, :centers] = server.game.map.power_index["FRANCE"]
    rules = GameRules("standard", draws_after=options.pop("draws_after", None))
    play(seats(server, rules=rules), "F1901M", **options)
    assert server.votes == ({"FRANCE"} if votes else set())


def test_a_paused_game_is_left_alone(server):
    server.status = "paused"
    loop = waiting_for_nothing(seats(server, say=lambda text: None))
    loop.draws = True
    loop._round()
    assert not {"set_orders", "vote"} & {*server.names()}
    server.status = "active"
    loop._round()
    assert server.names().count("set_orders") == server.names().count("vote") == 1
    loop.connection.close()


def test_who_has_centers_alone_votes_for_a_draw(server):
    units = server.game.vector_game.state.unit_power
    units[units == server.game.map.power_index["FRANCE"]] = NONE
    loop = waiting_for_nothing(seats(server))
    loop.draws = True
    loop._round()
    assert server.votes == {"FRANCE"}
    loop.connection.close()


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


def test_a_finished_game(server, capsys):
    server.game = Game.from_state("standard", {"name": "COMPLETED", "units": {}})
    assert "This game is finished" in failing(server, capsys, *SEAT)


def test_a_phase_that_our_rules_skip(server):
    """It is the server's: what is cornered disbands, whoever has nothing to order waits."""
    state = {"name": "S1901R", "units": {"AUSTRIA": ["A BUL", "A GRE"], "FRANCE": ["A PAR"]}}
    state |= {"retreats": {"TURKEY": {"A BUL": []}}, "centers": {"TURKEY": ["CON"]}}
    server.game, server.n_controls = Game.from_state("standard", state), 2
    told = {}
    for power in ("FRANCE", "TURKEY"):
        connection = seats(server, power, say=lambda text: None)
        loop = waiting_for_nothing(connection, told.setdefault(power, []))
        loop._round()
        assert loop.counts.orders == (power == "TURKEY") and loop.counts.dropped == 0
        connection.close()
    assert told == {"FRANCE": ["g: S1901R"], "TURKEY": ["g: S1901R"]}


def test_a_result_that_the_server_notes(server):
    """A draw of two, which leaves Turkey out, and a solo without the centers for it."""
    units = {"FRANCE": ["A PAR"], "ITALY": ["A VEN"], "TURKEY": ["A CON"]}
    server.game = Game.from_state("standard", {"name": "COMPLETED", "units": units})
    seats = DiplomacySeats(Wire(server.address), RULES, "g", {})
    for note, winners in (("FRA, ITA", ["FRANCE", "ITALY"]), ("ITA", ["ITALY"])):
        data = server.data("FRANCE") | {"note": f"Victory by: {note}"}
        game = seats._position("g", [convert(_GameData, data, "the game")], ["FRANCE"]).game
        assert Game.from_saved_game(game.to_saved_game()).winners == winners


def test_a_power_at_random(server, capsys):
    server.given_power = "TURKEY"
    line = failing(server, capsys, *SEAT)
    assert "TURKEY instead of FRANCE" in line
    assert server.controllers == {}  # the seat was given back


def test_any_power(server):
    server.given_power = "TURKEY"
    connection = DiplomacySeats(
        Wire(server.address), RULES, "g", {"any": Account("u", "w")}, say=lambda text: None
    )
    counts, told = play(connection, "F1901M")
    assert counts.orders == 3 and "TURKEY" in told[-1]


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


def test_a_token_that_is_forgotten(server):
    server.instead("join_game", lambda r: _error(r, "TokenException", "Invalid token."))
    counts, told = play(seats(server))
    assert counts.reconnections == 1 and any("forgotten who we are" in text for text in told)


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


def test_a_server_that_has_gone_back(server):
    """The position counts, whatever was played before; and it is told."""
    connection, told = seats(server, say=lambda text: None), []
    loop = waiting_for_nothing(connection, told)
    loop._round()
    loop._round()
    assert server.game.phase not in ("S1901M", "F1901M")
    server.game, server.n_controls = Game("standard"), 99
    server.hang_up()
    loop._round()
    loop._round()
    connection.close()
    assert told[-1] == "g: the server has gone back from F1901M to S1901M"
    assert server.game.phase == "F1901M" and loop.counts.reconnections == 1


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


def test_orders_that_are_never_taken(server):
    refuse = [lambda r: _error(r, "ResponseException", "Not \x1b[2J now.")] * 10
    server.instead("set_orders", *refuse)
    with pytest.raises(UserError, match=r"accepts no orders: .* Not .* now") as caught:
        play(seats(server))
    assert "\x1b" not in str(caught.value)


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


def test_an_eliminated_seat_ends(server):
    units = {"ITALY": ["A VEN"]}
    server.game = Game.from_state("standard", {"name": "S1905M", "units": units})
    counts, told = play(seats(server))
    assert counts.orders == 0
    assert told == ["g is over, with our powers eliminated: FRANCE 0 centers"]


def test_powers_that_nobody_plays(server):
    """They are played in every game on the player's map, and others are passed over, told once."""
    server.controllers["FRANCE"] = "somebody", 1
    server.given["FRANCE"], server.waits["FRANCE"], server.status = [], False, "active"
    said = []
    connection = DiplomacyDummies(Wire(server.address), RULES, say=said.append)
    loop = waiting_for_nothing(connection, said)
    loop._round()
    assert server.game.phase == "F1901M" and loop.counts.orders == 19
    loop._round()
    server.given.clear()
    server.map_name = "ancmed"
    loop._round()
    loop._round()
    connection.close()
    assert said[:2] == ["g: S1901M", "g: F1901M"] and len(said) == 3
    assert said[2].startswith("g is skipped: the game is on map 'ancmed'")


# Nonsense.


def _error(request, kind, words):
    number = request["request_id"]
    return {"request_id": number, "name": "error", "error_type": kind, "message": words}


def _data(change):
    def answer(request):
        with StandIn() as other:
            data = other.data("FRANCE")
        return {"request_id": request["request_id"], "name": "data_game", "data": change(data)}

    return answer


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda r: "no JSON", "a message of"),
        (lambda r: b"\xff\xfe", "a message of"),
        (lambda r: '{"request_id": ' + "9" * 5000 + "}", "a message of"),
        (_data(lambda d: d | {"role": 7}), "role: "),
        (_data(lambda d: d | {"powers": d["powers"] | {"X\x1b": {}}}), "powers[...].units: "),
        (_data(lambda d: d | {"phase_abbr": "../etc"}), "is not a phase"),
        (_data(lambda d: d | {"state_history": {"S1901M": 3}}), "state_history[...]: "),
        (_data(lambda d: d | {"map_name": "/etc/passwd\x1b[31m"}), "is on map '/etc/passwd"),
    ],
)
def test_nonsense_ends_with_a_sentence(server, answer, sentence, capsys):
    server.instead("join_game", answer)
    line = failing(server, capsys, *SEAT)
    assert sentence in line and line.startswith("error: ") and "\x1b" not in line


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
