"""Long texts of one delimiter: nothing that reads a text from outside is quadratic in one of them.

Most take some milliseconds, all less than a second; a quadratic pattern takes minutes or hours.
"""

import json

import pytest
from attack.watching import tried
from support.limits import within

from diplomacy_engine.extras.language.remote import ChatServer
from diplomacy_engine.games.game import Game
from diplomacy_engine.pictures.replays.replay import load_replays
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.press.daide import is_daide, read_message
from diplomacy_engine.press.words import message_words
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.teams import read_teams
from diplomacy_engine.scoring.mixes import make_reward_mix

pytestmark = pytest.mark.usefixtures("compiled")
LENGTH = 2**20
DELIMITERS = (
    *"(){}[]<>\"'`\\/|*+-=,;:#@.&% \n\t0aA\u2028\u2013", "->", "- ", "( ", "PRP ( ", "AND ( ", "A ",
    "A PAR - ", "A PAR - BUR ", "(SC)", "{}", "[]", '{"a":', '"\\', "=\n", "[a.", "a.b=1\n",
    "'''", '"""', "<think>", "(at ", "fast(", "llm:", "ENGLAND+", "\\u", "VIA ",
)  # fmt: skip


@pytest.fixture(scope="module")
def press_game():
    return Game("standard", press="offers")


def order(text, game, folder):
    game = Game("standard")
    tried(lambda: game.submit("FRANCE", [text, f"A PAR {text}"]))
    game.submit("FRANCE", [text], strict=False)


def position(text, game, folder):
    tried(lambda: Game.from_position(text))
    tried(lambda: Game.from_position(f"standard S1901M; FRANCE {text}"))


def offer(text, game, folder):
    for said in (text, f"PRP ( {text}"):
        is_daide(said)
        tried(lambda: read_message(game.vector_game, 0, 1, said))  # noqa: B023
        message = {"sender": "FRANCE", "recipient": "ENGLAND", "message": said}
        message_words(game.vector_game, message)


def teams(text, game, folder):
    tried(lambda: read_teams(text, game.powers))


def player(text, game, folder):
    for name in (text, f"fast({text}):x", f"nash({text})+x"):
        tried(lambda: load_player(name[:100_000]))  # noqa: B023


def reward(text, game, folder):
    for given in (text, f"score={text}", f"{text}:score", f"score,{text}=1"):
        if ":" not in text:  # a module of one's own
            tried(lambda: make_reward_mix(given, game.map.teams))  # noqa: B023


def map_file(text, game, folder):
    file = folder / "map.toml"
    for given in (text, text[:60_000], f'name = "{text[:60_000]}'):
        file.write_text(given)
        tried(lambda: load_map(file))


def settings_file(text, game, folder):
    file = folder / "x.toml"
    for given in (text, text[:90_000], f"model = '{text[:90_000]}"):
        file.write_text(given)
        tried(lambda: load_player(f"llm:{file}"))


def saved_game(text, game, folder):
    file = folder / "game.jsonl"
    for given in (text, json.dumps(Game("small").to_saved_game() | {"id": text, "map": text})):
        file.write_text(given)
        tried(lambda: load_replays(file))


def error_of_a_server(text, game, folder):
    server = ChatServer("http://127.0.0.1:9", "m", "key")
    assert len(server._message(text.encode())) <= 200


READERS = (
    order, position, offer, teams, player, reward, map_file, settings_file, saved_game,
    error_of_a_server,
)  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_no_text_takes_long(reader, press_game, tmp_path):
    for delimiter in DELIMITERS:
        with within(60, (reader.__name__, delimiter)):
            reader(delimiter * (LENGTH // len(delimiter)), press_game, tmp_path)
