"""What servers send is read or refused in a sentence, whatever it is; files are in tests/attack."""

import json
import random

import pytest
from attack.mutations import mutated
from attack.watching import tried
from support.diplomacy_server import StandIn
from support.games import play_randomly
from support.webdip import Site, variant

from diplomacy_engine.extras.connections import webdip_site
from diplomacy_engine.extras.connections.diplomacy_server import _GameData, _GameReader
from diplomacy_engine.extras.connections.webdip import WebdipSeat, _Board
from diplomacy_engine.records import convert
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.textgame.game import Game
from diplomacy_engine.textgame.imports.games import replayed
from diplomacy_engine.textgame.imports.webdiplomacy import history_phases, read_variant

STANDARD = load_map("standard")


@pytest.fixture(scope="module")
def game():
    """Return a game with somebody to retreat."""
    game, rng = Game("standard"), random.Random(6)
    play_randomly(game, rng, 4)
    while not game.dislodged:
        play_randomly(game, rng)
    return game


def data_of_a_server(game):
    with StandIn(rules="POWER_CHOICE") as server:
        server.game = game.copy()
        server.game.send("ENGLAND", "FRANCE", "PRP ( PCE ( ENG FRA ) )")
        data = server.data("FRANCE")
    reader = _GameReader(STANDARD, False, None)
    return data, lambda changed: reader.position(
        "g", [convert(_GameData, changed, "the game")], ["FRANCE"]
    )


def board_of_a_site(game):
    with Site("a board") as site:
        seat = WebdipSeat(webdip_site.Site(site.url, "key-2"), 5, None, STANDARD)
        (position,) = seat.positions()
        board = site.mark()["board"]
    assert position.game.dislodged
    past = next(row["answer"] for row in site.rows if "/history.json" in row["request"])
    last = history_phases(seat._variant, past)[-1]

    def read(changed):
        found = convert(_Board, changed, "the board")
        seat._ended(position.game, found, "Won")
        return replayed([last._replace(retreats=seat._retreats(found, last))], STANDARD)

    return board, read


def names_of_a_site(game):
    return variant(), lambda changed: read_variant(changed, STANDARD)


@pytest.mark.parametrize("source", [data_of_a_server, board_of_a_site, names_of_a_site])
def test_what_a_server_sends(game, source):
    data, read = source(game)
    data, rng = json.loads(json.dumps(data)), random.Random(1)
    ends = [tried(lambda: read(mutated(rng, data, most=1))) for _ in range(50)]
    assert ends.count(None) > 3
