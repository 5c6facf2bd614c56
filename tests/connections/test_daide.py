"""DAIDE: bytes and words, and a seat on a server that is as quirky as the real one."""

import random

import pytest
from support.commands import refusal
from support.daide import DaideServer, frame
from support.games import orderable, play_randomly

from diplomacy_engine.commands.cli import main
from diplomacy_engine.connections.connection import ConnectionLost, PhaseOver
from diplomacy_engine.connections.daide import DaideSeat
from diplomacy_engine.connections.daide_words import (
    decode,
    encode,
    order_words,
    place_words,
    read_order_words,
    read_place_words,
    read_position,
    read_turn,
    shown,
    turn_words,
)
from diplomacy_engine.connections.loop import SeatLoop, dropped
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.press.daide import power_names, province_names
from diplomacy_engine.rules.map import load_map

STANDARD = load_map("standard")


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (["GOF"], "48 03"),
        ([["SPR", 1901]], "40 00 47 00 07 6D 40 01"),
        ([-1], "3F FF"),
        ([8191, -8192, 0], "1F FF 20 00 00 00"),
        (["NME", ["'FRA'"]], "48 0C 40 00 4B 46 4B 52 4B 41 40 01"),
        (["BOH", "UKR", "BUD", "WAR", "ADR", "WES"], "50 00 50 06 51 07 51 0D 52 0E 52 20"),
        (["ALB", "YOR", "ANK", "VEN"], "54 21 54 2F 55 30 55 47"),
        (["BUL", "SPA", "STP", "ECH", "GOB", "GOL"], "57 48 57 49 57 4A 52 14 52 15 52 16"),
        (["FRA", "AMY", "CTO", "VIA", "WVE", "MRT"], "41 02 42 00 43 20 43 25 43 82 49 04"),
        (["NCS", "ECS", "SCS", "WCS", "NYU", "SMR"], "46 00 46 04 46 08 46 0C 44 12 48 1E"),
    ],
)
def test_bytes(words, content):
    assert encode(words).hex(" ").upper() == content
    assert decode(bytes.fromhex(content)) == words


def test_names_are_all_there():
    """75 provinces, 8 coasts and places without one, and 7 powers, both ways."""
    names = [*province_names(STANDARD), *power_names(STANDARD)]
    assert decode(encode(names)) == names and len(names) == 82
    for place in STANDARD.locations:
        words = decode(encode([place_words(STANDARD, place)]))
        assert read_place_words(STANDARD, words[0]) == place
    for phase in ("S1901M", "S1901R", "F1901M", "F1901R", "W1901A"):
        assert read_turn(decode(encode(turn_words(phase)))) == phase


@pytest.mark.parametrize("seed", range(2))
def test_every_legal_order_there_and_back(seed):
    """As words, as bytes, and ours again; the coast of a supported move aside."""
    rng, game, count = random.Random(seed), Game("standard"), 0
    for _ in range(14):
        play_randomly(game, rng)
        if game.is_over:
            break
        for power, places in orderable(game).items():
            for text in {text for place in places for text in game.legal_orders(place)}:
                words = decode(encode(order_words(game, power, text)))
                assert dropped(game, [text], [read_order_words(STANDARD, words)]) == []
                count += 1
    assert count > 1000


def test_orders_in_words():
    units = {"FRANCE": ["A PIC", "A PAR"], "ENGLAND": ["F ENG"], "RUSSIA": ["F STP/SC"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units})
    for power, text, words in (
        ("FRANCE", "A PIC - WAL VIA", "( FRA AMY PIC ) CTO WAL VIA ( ECH )"),
        ("ENGLAND", "F ENG C A PIC - WAL", "( ENG FLT ECH ) CVY ( FRA AMY PIC ) CTO WAL"),
        ("FRANCE", "A PAR S A PIC - BUR", "( FRA AMY PAR ) SUP ( FRA AMY PIC ) MTO BUR"),
        ("RUSSIA", "F STP/SC - BOT", "( RUS FLT ( STP SCS ) ) MTO GOB"),
    ):
        assert shown(order_words(game, power, text)) == words


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x40", "odd number of bytes"),
        (b"\x40\x00" * 60, "too deep"),
        (b"\x40\x00", "not closed"),
        (b"\x40\x01", "a closing bracket has no opening one"),
        (b"\x48\xff", "no token 48FF"),
        (b"\x57\x4b", "no token 574B"),
    ],
)
def test_bad_bytes(content, sentence):
    with pytest.raises(UserError, match=sentence):
        decode(content)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [["SPR"]],
        [["SPR", 0]],
        [["SPR", 1901], ["FRA", "AMY"]],
        [["SPR", 1901], ["XXX", "AMY", "PAR"]],
        [["SPR", 1901], ["FRA", "AMY", ["PAR", "NCS"]]],
        [["SPR", 1901], ["FRA", "AMY", "PAR", "MRT", "BUR"]],
        ["SPR", 3],
    ],
)
def test_bad_positions(words):
    with pytest.raises(UserError):
        read_position(STANDARD, words, {})


@pytest.fixture
def server():
    with DaideServer() as server:
        yield server


def seat(server, power="FRANCE", **options):
    options = {"seconds": 5, "say": lambda text: None} | options
    return DaideSeat(server.address, power, STANDARD, **options)


def play(server, *, told=None, **options):
    say = (lambda text: None) if told is None else told.append
    loop = SeatLoop(seat(server), make_bot("dumbbot"), say=say, **options)
    return loop.run()


def test_a_year_is_played(server):
    told = []
    counts = play(server, told=told)
    assert server.hello.hex(" ").upper() == "00 00 00 04 00 01 DA 10"
    assert counts.orders >= 7 and counts.dropped == 0
    assert told[0] == f"{server.address}: S1901M" and "is over, a draw" in told[-1]
    names = [words[0] for words in server.heard]
    assert names[:2] == ["NME", "YES"] and names.count("GOF") == counts.phases


@pytest.mark.parametrize("power", ["FRANCE", None])
def test_the_position_is_the_servers(server, power):
    connection = seat(server, power)
    connection.enter()
    assert connection.positions() == []
    connection.wait(5)
    (now,) = connection.positions()
    assert now.game.units == server.game.units and now.game.centers == server.game.centers
    assert now.seats == ["FRANCE"]
    connection.close()


def test_retreats_and_builds():
    """A dislodged army goes where it may; in winter builds, waives and removals are given."""
    state = {
        "name": "F1901R",
        "units": {"FRANCE": ["A PAR"], "GERMANY": ["A BUR", "A MAR"]},
        "retreats": {"FRANCE": {"A BUR": ["GAS", "PIC"]}},
        "centers": {"FRANCE": ["PAR", "BRE", "MAR", "SPA", "POR"], "GERMANY": ["MUN"]},
    }
    with DaideServer(Game.from_state("standard", state)) as server:
        counts = play(server)
        subs = [shown(words) for words in server.heard if words[0] == "SUB"]
    assert "( FRA AMY BUR )" in subs[0] and ("RTO" in subs[0] or "DSB" in subs[0])
    assert "BLD" in subs[1] and counts.dropped == 0


def test_dropped_orders_are_found(server):
    connection = seat(server)
    connection.enter()
    connection.wait(5)
    (now,) = connection.positions()
    orders = ["A PAR - BUR", "F BRE - MAO", "A MAR - SPA"]
    assert connection.give(now, "FRANCE", orders) == orders
    server.drops = {"A PAR - BUR"}  # the notes of those after it are tainted, too
    assert connection.give(now, "FRANCE", orders) == orders[1:]
    assert connection.give(now, "FRANCE", []) == []
    connection.finish(now, "FRANCE")
    connection.wait(5)
    connection.positions()
    with pytest.raises(PhaseOver, match="S1901M has passed"):
        connection.give(now, "FRANCE", orders)
    connection.close()


def test_votes(server):
    play(server, draws=True)
    assert ["DRW"] in server.heard


def draw(name):
    return frame(2, encode([name]))


@pytest.mark.parametrize(
    ("request_name", "answer", "sentence"),
    [
        ("IM", frame(4, b"\x00\x05"), "does not speak version 1"),
        ("IM", b"HTTP", "is not a DAIDE server"),
        ("IM", frame(2, b""), "its first answer is diplomacy"),
        ("NME", frame(2, encode(["REJ", ["NME", ["'x'"]]])), "no seat is free for FRANCE"),
        (
            "NME",
            frame(2, encode([["YES"]])) + frame(4, b"\x00\x0e"),
            "closed the connection with error 14",
        ),
        ("NME", frame(2, b"\x48\xff"), "is malformed: there is no token 48FF"),
        ("NME", frame(2, b"\x40"), "odd number"),
        ("NME", frame(3, b""), "closed the connection"),
        ("SUB", frame(2, encode(["REJ", ["SUB"]])), "it accepts no orders"),
    ],
)
def test_what_goes_wrong(server, request_name, answer, sentence, capsys):
    server.instead[request_name] = answer
    words = ["connect", "daide", str(server.address), "--power", "FRANCE", "--player", "hold"]
    assert main(words) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert sentence in line and line.startswith("error: ")


def test_another_map(server):
    server.instead["NME"] = frame(2, encode(["YES", ["NME"]])) + frame(2, encode(["MAP", ["'x'"]]))
    with pytest.raises(UserError, match="plays on"):
        play(server)


def test_another_power():
    with DaideServer(gives="TUR") as server, pytest.raises(UserError, match="gave TURKEY instead"):
        play(server)


def test_nobody_can_come_back(server):
    server.instead["GOF"] = None
    with pytest.raises(UserError, match="DAIDE does not allow rejoining"):
        play(server, sleep=lambda seconds: None)


def test_no_answer(server):
    server.instead["IM"] = b""
    with pytest.raises(ConnectionLost, match="no answer in time"):
        seat(server, seconds=0.1).enter()


def test_bad_command_lines(capsys):
    words = ("connect", "daide", "localhost:1", "--player", "hold")
    assert "--power" in refusal(*words, capsys=capsys)
    assert "NARNIA" in refusal(*words, "--power", "NARNIA", capsys=capsys)
    small = ("--power", "ENGLAND", "--map", "small")
    assert "no names for map small" in refusal(*words, *small, capsys=capsys)
