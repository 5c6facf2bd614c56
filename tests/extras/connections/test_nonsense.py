"""What strangers send is read or refused in a sentence, whatever it is."""

import json
import random

import pytest
from attack.mutations import mutated
from support.diplomacy_server import StandIn
from support.games import play_randomly
from support.webdip import Site, history, variant

from diplomacy_engine.errors import UserError
from diplomacy_engine.extras.connections import webdip_site
from diplomacy_engine.extras.connections.diplomacy_server import _GameData, _GameReader
from diplomacy_engine.extras.connections.webdip import WebdipSeat, _Board
from diplomacy_engine.extras.imports.games import replayed
from diplomacy_engine.extras.imports.order_blocks import read_blocks
from diplomacy_engine.extras.imports.webdiplomacy import classic, history_phases, read_variant
from diplomacy_engine.games.game import Game
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

    assert survives(read, data, random.Random(2), 300) > 20


def test_variants():
    def read(changed):
        read_variant(changed, STANDARD)

    assert survives(read, variant(), random.Random(3), 200) > 20


def test_boards_of_a_site(game):
    rng = random.Random(6)
    while not game.dislodged:
        play_randomly(game, rng)
    with Site(game) as site:
        connection = WebdipSeat(webdip_site.Site(site.url, "key-2"), 5, None, STANDARD)
        connection.positions()
        board = json.loads(json.dumps(site._board()))
        last = history_phases(connection._variant, history(game))[-1]

    def read(changed):
        connection._ended(game, convert(_Board, changed, "the board"), "Won")
        retreats = connection._retreats(convert(_Board, changed, "the board"), last)
        replayed([last._replace(retreats=retreats)], STANDARD)

    assert survives(read, board, random.Random(4), 200) > 20


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
