"""All that reads a text from outside: for each, sound texts, words, and what is done with one.

test_attack.py gives them these texts with a few changes, and long texts of one delimiter.
"""

import json
import random
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from attack.watching import tried, watched
from reference.orders import ReferenceMap, legal_orders
from support.games import orderable, play_randomly
from support.language import question_of_game
from support.maps import TRIBES
from support.tables import read_table, read_text

from diplomacy_engine import Game, Map, load_map, load_player, make_reward_mix, vocabulary
from diplomacy_engine.extras.language.replies import read_reply
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.extras.maps.draft import map_file_text
from diplomacy_engine.press.daide import is_daide, message_words, read_message
from diplomacy_engine.replays.replay import load_replays, make_replay
from diplomacy_engine.rules.map import MAPS_FOLDER
from diplomacy_engine.rules.reading import read_order
from diplomacy_engine.rules.teams import read_teams
from diplomacy_engine.textgame.imports.games import read_pasted


def order(text: str, folder: Path) -> object:
    game = Game("standard")
    found = tried(lambda: game.submit("FRANCE", [text]))
    tried(lambda: game.submit("FRANCE", [f"A PAR {text}"]))
    game.submit("FRANCE", [text], strict=False)
    game.adjudicate()
    return found


def position(text: str, folder: Path) -> object:
    tried(lambda: Game.from_position(f"standard S1901M; FRANCE {text}"))
    found = tried(lambda: Game.from_position(text, max_years=9))
    if found is not None:
        assert places_of(found.to_position()) == places_of(text)
        if not found.is_over:
            play_randomly(found, random.Random(1), 2)
    return found


def places_of(line: str) -> set[str]:
    return {word[:3] for word in re.findall(r"(?<![A-Z])[A-Z]{3}(?![A-Z\d])", line)}


@cache
def offering() -> Game:
    game = Game("standard", press="offers")
    game.offer("FRANCE", "ENGLAND", ours=["A PAR - PIC"], theirs=["F LON - NTH"], zone=["ENG"])
    game.offer("FRANCE", "ENGLAND", peace=True, we_leave=["MAR"], they_keep_out=["BRE"])
    game.accept("ENGLAND", 1)
    return game


def offer(text: str, folder: Path) -> object:
    vector_game, powers = offering().vector_game, offering().map.power_index
    for said in (f"PRP ( {text}", text):
        is_daide(said)
        sides = powers["FRANCE"], powers["ENGLAND"]
        found = tried(lambda: read_message(vector_game, *sides, said))  # noqa: B023
        message = {"sender": "FRANCE", "recipient": "ENGLAND", "message": said}
        message_words(vector_game, message)
    return found


def teams(text: str, folder: Path) -> object:
    return tried(lambda: read_teams(text, load_map("standard").powers))


def player(text: str, folder: Path) -> object:
    if re.match(r"[a-z+()=0-9 ]*(llm:local|.*\.py)", text[:600]):
        return None  # the user's own to load
    load_map("small")
    with watched(folder):
        for name in (f"fast({text}):x", f"nash({text})+x", text):
            found = tried(lambda: load_player(name[:100_000], game_map=load_map("small")))  # noqa: B023
    return found


def reward(text: str, folder: Path) -> object:
    found = None
    for given in (f"score={text}", f"{text}:score", f"score,{text}=1", text):
        if ":" not in text:  # a module of one's own
            found = tried(lambda: make_reward_mix(given, load_map("small")))  # noqa: B023
    return found


def map_file(text: str, folder: Path) -> object:
    file = folder / "map.toml"
    for given in (text[:60_000], f'name = "{text[:60_000]}', text):
        file.write_text(given, errors="replace")
        found = tried(lambda: load_map(file))
    if found is not None:
        played_by_the_rules(found)
    return found


def played_by_the_rules(game_map: Map) -> None:
    """Check that every list of orders is the reference's, and that every order reads as itself."""
    reference = ReferenceMap(game_map.facts)
    game, rng = Game(game_map, max_years=2), random.Random(1)
    while not game.is_over:
        expected = legal_orders(reference, game.to_state())
        for power, places in orderable(game).items():
            for place in places:
                assert sorted(game.legal_orders(place)) == expected[place]
                for text in game.legal_orders(place):
                    game.submit(power, [text])
                    assert game.orders[power] == [text]
            game.submit(power, [])
        play_randomly(game, rng)
    texts = vocabulary(game_map).texts
    for text in rng.sample(texts, min(len(texts), 60)):
        read_order(game_map, text)


def map_of_another(text: str, folder: Path) -> object:
    """A `.map` file: what is read can be played."""
    file = folder / "gulf.map"
    file.write_text(text, errors="replace")
    found = tried(lambda: read_dpjudge(file).finished())
    if found is not None:
        assert Map(tomllib.loads(map_file_text(found.facts, "file"))).board is not None
    return found


def settings_file(text: str, folder: Path) -> object:
    file = folder / "x.toml"
    for given in (text[:90_000], f"model = '{text[:90_000]}", text):
        file.write_text(given, errors="replace")
        found = tried(lambda: load_player(f"llm:{file}"))
    return found


def saved_game(text: str, folder: Path) -> object:
    file = folder / "game.jsonl"
    named = Game("small").to_saved_game() | {"id": text, "map": text}
    for given in (json.dumps(named), text):
        file.write_text(given, errors="replace")
        found = tried(lambda: load_replays(file))
    return found


@cache
def question():
    return question_of_game(Game("standard"), "FRANCE")


def replies() -> Iterable[str]:
    text = "\n".join(slot.texts[0] for slot in question().slots)
    return text, json.dumps(text.splitlines()), f"<think>{text}</think>{text}"


def reply(text: str, folder: Path) -> object:
    """What a language model has written."""
    found = read_reply(question(), range(len(question().slots)), {}, text)
    for slot, number in found.numbers.items():
        assert number in question().slots[slot].numbers
    return found.numbers or None


REPORT = read_text(__file__, "report.txt")
MARKDOWN = read_text(__file__, "markdown.txt")


def report(text: str, folder: Path) -> object:
    notes: list[str] = []
    saved = tried(lambda: read_pasted(text, load_map("standard"), notes.append))
    if isinstance(saved, dict):
        tried(lambda: make_replay(saved))
    assert all(note.isprintable() for note in notes)
    return saved


WORDS = read_table(__file__, "words")
NAMES = read_table(__file__, "names")
MAP_WORDS = read_table(__file__, "map_words")
GULF = Path(__file__).parents[1] / "extras" / "maps" / "files" / "gulf.map"
ORDERS = ("A PAR - BUR", "A MAR S A PAR - BUR", "F BRE - PIC VIA", "A PAR H")
SETTINGS_FILE = 'model = "m"\nbase_url = "http://127.0.0.1:9/v1"\nprompt = "list"\nretries = 0\n'
# Each takes a text and a folder, and returns None if the text is refused: its sound texts, and
# words to put into them.
READERS = {
    order: (ORDERS, WORDS),
    position: (lambda: [Game("standard").to_position()], WORDS),
    offer: (lambda: [m["message"] for m in offering().messages], ("REJ", "CVY", "SUP")),
    teams: (["ENGLAND+(FRANCE+ITALY), RUSSIA"], ("+", "(", ")", ",")),
    player: (NAMES, ("llm:", "fast:", "+", "=", *NAMES)),
    reward: (["sum_of_squares=1..0@0.5,score,lead_delta=2"], ("..", "@", "=")),
    map_file: (
        lambda: [(MAPS_FOLDER / "small.toml").read_text(), TRIBES, TRIBES.replace("any", "home")],
        MAP_WORDS,
    ),
    map_of_another: (lambda: [GULF.read_text()], tuple(GULF.read_text().split())),
    settings_file: ([SETTINGS_FILE], ()),
    saved_game: (lambda: [json.dumps(Game("small").to_saved_game())], ()),
    reply: (replies, ("<think>", "</think>", "Orders:", "{", *WORDS)),
    report: ([REPORT, MARKDOWN], (*WORDS, "Spring 1901", "Italy:", "\n", "·", "✓", "Turn 3", "+")),
}
