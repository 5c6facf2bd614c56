"""What strangers send is read or refused in a sentence, whatever it is."""

import json
import random

import pytest
from attack.mutations import mutated
from support.diplomacy_server import StandIn
from support.games import play_randomly
from support.webdip import Site, history, variant

from diplomacy_engine.connections import webdip_site
from diplomacy_engine.connections.daide_words import (
    decode,
    read_centers,
    read_order_words,
    read_position,
)
from diplomacy_engine.connections.diplomacy_server import _GameData, _GameReader
from diplomacy_engine.connections.webdip import WebdipSeat, _Board
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.imports import replayed
from diplomacy_engine.games.order_blocks import read_blocks
from diplomacy_engine.games.webdiplomacy import classic, history_phases, read_variant
from diplomacy_engine.records import convert
from diplomacy_engine.rules.map import load_map

STANDARD = load_map("standard")


def survives(read, data, rng, times):
    """Read changed data many times; return how often it was refused."""
    refused = 0
    for _ in range(times):
        changed = mutated(rng, data, most=1)
        try:
            read(changed)
        except UserError as error:
            refused += 1
            assert str(error).isprintable() and len(str(error)) < 1000
    return refused


@pytest.fixture(scope="module")
def game():
    game = Game("standard")
    play_randomly(game, random.Random(4), 9)
    return game


@pytest.mark.parametrize("rules", ["POWER_CHOICE NO_PRESS", "POWER_CHOICE"])
def test_games_of_a_diplomacy_server(game, rules):
    with StandIn(rules=rules) as server:
        server.game = game.copy()
        server.game.send("ENGLAND", "FRANCE", "PRP ( PCE ( ENG FRA ) )")
        data = json.loads(json.dumps(server.data("FRANCE")))
    reader = _GameReader(STANDARD, False, None)

    def read(changed):
        reader.position("g", [convert(_GameData, changed, "the game")], ["FRANCE"])

    assert survives(read, data, random.Random(1), 150) > 20


def test_histories(game):
    known, data = classic(STANDARD), json.loads(json.dumps(history(game)))

    def read(changed):
        replayed(history_phases(known, changed), STANDARD)

    assert survives(read, data, random.Random(2), 100) > 20


def test_variants():
    def read(changed):
        read_variant(changed, STANDARD)

    assert survives(read, variant(), random.Random(3), 100) > 20


def test_boards_of_a_site(game):
    with Site(game) as site:
        connection = WebdipSeat(webdip_site.Site(site.url, "key-2"), 5, None, STANDARD)
        (now,) = connection.positions()
        board = json.loads(json.dumps(site._board()))

    def read(changed):
        phase = connection._board(convert(_Board, changed, "the board"), now.game.phase)
        replayed([phase], STANDARD)

    assert survives(read, board, random.Random(4), 100) > 20


def test_daide(game):
    rng = random.Random(5)
    for _ in range(3000):
        count = rng.randrange(0, 30)
        groups = (0x40, 0x40, 0x41, 0x42, 0x43, 0x47, 0x48, 0x50, 0x51, 0x55, 0x57, 7, 0x4B)
        content = bytes(b for _ in range(count) for b in (rng.choice(groups), rng.randrange(0x50)))
        for read in (read_order_words, read_position, read_centers):
            more = [{}] if read is read_position else []
            try:
                read(STANDARD, decode(content), *more)
            except UserError as error:
                assert str(error).isprintable()


def test_blocks_of_anything():
    rng = random.Random(6)
    words = [
        "France",
        ":",
        "A",
        "Par",
        "-",
        "Bur",
        ",",
        ";",
        "\n",
        "Spring 1901",
        "S",
        "*",
        "(",
        ")",
    ]
    words += [
        "\x1b",
        "\u2028",
        "**",
        "fails",
        "The army at",
        "Winter",
        "1901",
        "x" * 300,
        "SPA(sc)",
    ]
    for _ in range(500):
        text = " ".join(rng.choice(words) for _ in range(rng.randrange(30)))
        try:
            read_blocks(STANDARD, text)
        except UserError as error:
            assert str(error).isprintable()
