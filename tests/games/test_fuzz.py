"""Damaged maps, and values in any input that Python cannot write: one error in one line.

Damaged orders, states and saved games are tried in tests/attack.
"""

import random
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.orders import ReferenceMap, legal_orders
from support.games import orderable, play_randomly, state
from support.maps import TRIBES, tribes

from diplomacy_engine.errors import UserError
from diplomacy_engine.rules.map import MAPS_FOLDER, Map, MapError, load_map, read_map_file
from diplomacy_engine.rules.notation import read_order
from diplomacy_engine.rules.vocabulary import vocabulary
from diplomacy_engine.textgame.game import Game

STANDARD = load_map("standard")
HOMES = TRIBES.replace("any", "home")


def one_line(error: Exception) -> bool:
    text = str(error)
    return bool(text.strip()) and "\n" not in text and len(text) < 700


def changed_words(data, words: list[str], pool: list[str]) -> list[str]:
    """Return the words with one to three of them left out, doubled, swapped or replaced."""
    words = list(words)
    for _ in range(data.draw(st.integers(1, 3))):
        if not words:
            break
        i = data.draw(st.integers(0, len(words) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                del words[i]
            case 1:
                words.insert(i, words[i])
            case 2:
                j = data.draw(st.integers(0, len(words) - 1))
                words[i], words[j] = words[j], words[i]
            case 3:
                words[i] = data.draw(st.sampled_from(pool))
    return words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


# Maps

MAP_WORDS = r'"[^"]*"|[^\s"]+'
NASTY = re.findall(
    MAP_WORDS,
    'CAP-H "CAP H" "HIL - ROC" VIA A "F" "MOU NC" "" "." NC "NOR C A CAP - DUN" "Bay" CAP 3 land '
    'coast sea true false [] {} [1,2] [1,2.5] WEST NORTH "MOU/NC" HIL SOU ISL ROC nan 0xff '
    '"HIL SOU" "ROC CAP NOR" "MOU/NC ISL" "MOU" "land" "coast" "sea" "NC" "A HIL" "F SOU" "any" '
    '"home" "TRIBES" "RIVER" "A MOU" "F MOU/RIVER" "VIA" TRIBES neutral builds convoys aliases',
)


def load_changed_map(folder: Path, text: str) -> Map | None:
    """Return the map of a file of this text, None if it is refused as it should be."""
    path = folder / "changed.toml"
    path.write_text(text)
    try:
        game_map = load_map(path)
        vocabulary(game_map)
    except MapError as error:
        assert all(one_line(problem) for problem in map(UserError, error.problems))
        assert str(path) in str(error)
        return None
    return game_map


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_changed_maps_are_refused_or_played_by_the_rules(folder, data):
    """Every list of orders is the reference's, and every order reads as itself."""
    text = data.draw(st.sampled_from([HOMES, TRIBES]))
    lines = [re.findall(MAP_WORDS, line) for line in text.splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        lines[i] = changed_words(data, lines[i], NASTY) if lines[i] else lines[i - 1]
    game_map = load_changed_map(folder, "\n".join(" ".join(words) for words in lines))
    if game_map is None:
        return
    texts = vocabulary(game_map).texts
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
    for text in rng.sample(texts, min(len(texts), 60)):
        read_order(game_map, text)


# Found by the tests above, or by looking for more of the kind


def nested(depth: int) -> list:
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def shared(depth: int) -> list:
    """Return a list whose text would double with every level."""
    found: list = []
    for _ in range(depth):
        found = [found, found]
    return found


SHOWN = r"something of type (int|list)|\[\[\[\.\.\.\]|\[\[\[\.\.\., \.\.\.\], "


@pytest.mark.parametrize(
    "value", [nested(10**5), shared(100), 10**5000], ids=["deep", "shared", "long"]
)
def test_values_that_python_cannot_write(value):
    """Such as come out of files; an error message shows their beginning or names their type."""
    for given_state, path in (
        (state(value), "name"),
        (state(units={"FRANCE": [value]}), "units"),
        (state("S1901R", retreats={"FRANCE": {"A PAR": [value]}}), "retreats"),
        (state(centers={"FRANCE": [value]}), "centers"),
    ):
        with pytest.raises(UserError, match=path):
            Game.from_state("standard", given_state)
    with pytest.raises(UserError, match=f"must be a list of texts, not ({SHOWN})"):
        Game("small").submit("ENGLAND", [value], strict=False)
    with pytest.raises(UserError, match=SHOWN):
        Game("small").legal_orders(value)
    saved = Game("small").to_saved_game() | {"id": [value]}
    with pytest.raises(UserError, match="id"):
        Game.from_saved_game(saved)
    with pytest.raises(MapError, match="max_years: expected"):
        tribes(max_years=value)


def test_map_files_that_would_take_forever(folder):
    path = folder / "endless.toml"
    path.write_bytes(b"a" + b".a" * 400_000 + b" = 1")
    with pytest.raises(MapError, match=r"endless\.toml: more than 100 dots in line 1$"):
        read_map_file(path)
    path.write_bytes(TRIBES.encode() + b"#" * 10**6)
    with pytest.raises(
        MapError, match=r"endless\.toml: cannot be read: it is longer than 1,000,000 bytes$"
    ):
        read_map_file(path)
    sizes = [path.stat().st_size for path in MAPS_FOLDER.glob("*.toml")]
    assert max(sizes) < 20_000, "real maps are far below the limit"


def test_a_problem_of_a_map_is_one_line(folder):
    for old, new in (("NOR = {", '"N\\nR" = {'), ('"MOU/NC" =', '"MOU/\\r\\nNC" =')):
        assert load_changed_map(folder, TRIBES.replace(old, new)) is None


def test_a_position_is_two_finite_numbers():
    for number in ("nan", "inf", "1e9"):
        with pytest.raises(MapError, match="position"):
            Map(tomllib.loads(TRIBES.replace('"Bay"', f'"Bay", position = [1, {number}]')))


@pytest.mark.parametrize(
    "name", ["HIL H", "Hil - Cap", "hil S A CAP", "CAP via", "MOU/NC", "Mou (NC)", "ROC by convoy"]
)
def test_a_name_that_begins_like_an_order_names_nothing(name):
    sound = tribes()
    for code in ("HIL", "MOU"):
        facts = tomllib.loads(TRIBES)
        facts["provinces"][code]["name"] = name
        game_map = Map(facts)
        for text in vocabulary(sound).texts:
            assert read_order(game_map, text) == read_order(sound, text)
    facts["provinces"]["HIL"]["name"] = "Hil of Fame"
    assert read_order(Map(facts), "A Hil of Fame H") == read_order(sound, "A HIL H")


def test_a_year_of_too_many_digits():
    for digits in (10, 5000):
        with pytest.raises(UserError, match="is not a phase such as"):
            Game.from_state("small", state("S" + "9" * digits + "M"))
