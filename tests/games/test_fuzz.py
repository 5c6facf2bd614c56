"""Damaged input of every kind: loaded as it says, or refused with a UserError in one line.

Most of what is tried is sound input with a few changes, which gets further than noise. Noise is
tried in test_notation.py, test_position.py, test_saved_game.py, test_map.py and test_game.py.
"""

import copy
import json
import random
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from attack.mutations import JUNK, mutated
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.orders import ReferenceMap, legal_orders
from support.games import orderable, play_randomly, state
from support.maps import TRIBES

from diplomacy_engine.constants import MOVE, RETREAT, phase_kind
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.rules.map import MAPS_FOLDER, Map, MapError, load_map, read_map_file
from diplomacy_engine.rules.notation import read_order, read_unit
from diplomacy_engine.rules.vocabulary import vocabulary
from tests.support.games import append_saved_game

STANDARD = load_map("standard")
# Seas, split coasts, convoys of one and two fleets, aliases and long names, in few provinces.
SEAS = """\
name = "seas"
powers = ["EAST", "WEST"]
victory_supply_centers = 4
max_years = 3

[start_units]
EAST = ["A PAL", "F GUL"]
WEST = ["F ROC", "A ISL", "F SOU"]

[provinces]
CAN = { name = "Canal Town", terrain = "coast", coasts = ["NC", "SC"], supply_center = true }
GUL = { name = "Gulf of St. Ann", terrain = "sea", aliases = ["GULF", "Ann"] }
HIL = { name = "Hills", terrain = "land", supply_center = true }
ISL = { name = "Island", terrain = "coast", supply_center = true, home_of = "WEST" }
PAL = { name = "Palm Bay", terrain = "coast", supply_center = true, home_of = "EAST" }
ROC = { name = "Rocky-Cape", terrain = "coast", supply_center = true, position = [1, 2.5] }
SOU = { name = "South Sea", terrain = "sea" }

[army_borders]
CAN = "HIL PAL ROC"
HIL = "PAL ROC"

[fleet_borders]
"CAN/NC" = "GUL PAL ROC"
"CAN/SC" = "SOU"
GUL = "ISL PAL ROC SOU"
SOU = "ISL"
"""


@cache
def corpus() -> tuple[Game, ...]:
    """Return positions of all phase kinds from random play on the standard map."""
    games = []
    for seed in range(3):
        game, rng = Game("standard"), random.Random(seed)
        for _ in range(14):
            games.append(game.copy())
            play_randomly(game, rng)
    assert {game.phase[-1] for game in games} == set("MRA")
    return tuple(games)


def one_line(error: Exception) -> bool:
    text = str(error)
    return bool(text.strip()) and "\n" not in text and len(text) < 700


# Orders

WORDS = re.findall(
    r"\S+",
    "A F ARMY - -> / NC (SC) H S C R D B VIA CONVOY BY TO HOLDS WAIVE BUILD REMOVE * PAR STP STP/NC"
    " SPA Bulgaria North Sea MAO NTH LON ENGLAND 0 . \u00df",
)


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


def meaning(text: str, game: Game) -> tuple:
    """Return what an order text says, but for coasts and VIA, which may be filled in."""
    order = read_order(STANDARD, text, game.unit_kinds)
    if phase_kind(game.phase) == "retreats" and order.kind == MOVE:
        order = order._replace(kind=RETREAT)  # a move says it, too
    units = [(unit.kind, unit.place.province) for unit in (order.unit, order.other) if unit]
    return order.kind, units, order.target and order.target.province


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_changed_orders_are_refused_or_mean_what_they_say(data):
    game = data.draw(st.sampled_from(corpus())).copy()
    power, places = data.draw(st.sampled_from(sorted(orderable(game).items())))
    own = {text for place in places for text in game.legal_orders(place)}
    words = data.draw(st.sampled_from(sorted(own))).split()
    text = data.draw(st.sampled_from([" ", " ", ""])).join(changed_words(data, words, WORDS))
    try:
        game.submit(power, [text])
    except UserError as error:
        assert one_line(error) and str(error).startswith(repr(text)[:200] + ": ")
        game.submit(power, [text], strict=False)
        assert game.orders[power] == [text]
    else:
        (order,) = game.orders[power]
        assert order in own | {listed.rpartition("/")[0] for listed in own}
        assert meaning(order, game) == meaning(text, game)
    game.adjudicate()


# States, saved games and positions

NAMES = ["S1901M", "F1902R", "W1903A", "S1904R", "COMPLETED", "S10000M", "X1901M", "S-1M"]
UNITS = ["A PAR", "F BRE", "F STP/NC", "F STP", "A STP/SC", "*A MUN", "*F SPA/SC", "A XXX", "F NTH"]
PLACES = ["PAR", "MUN", "SPA/NC", "SPA", "ENG", "STP/SC", "TUN", "XXX"]
POWERS = ["FRANCE", "GERMANY", "TURKEY", "France", "GAUL"]
PARTS = [*NAMES, *UNITS, *PLACES, *POWERS, *JUNK]


CANONICAL = re.compile(r"\*?[AF] [A-Z]{3}(/[NESW]C)?")


def units_of(game: Game, texts: set[str]) -> set[tuple]:
    """Return kind, province and whether dislodged; a state may cut a name, such as `A PARI`."""
    read = (read_unit(game.map, text) for text in texts)
    return {(unit.kind, unit.place.province, starred) for unit, starred in read}


def check_board(game: Game, given: dict) -> None:
    """Check that a loaded board holds exactly what the state says, but for space around a name."""
    if not game.is_over:
        assert game.phase == given["name"]
    dislodged: dict[str, set[str]] = {}
    for power, units in (given.get("retreats") or {}).items():
        dislodged.setdefault(power.upper(), set()).update(f"*{unit.lstrip('*')}" for unit in units)
    for key, found in (("units", game.to_state()["units"]), ("centers", game.centers)):
        wanted: dict[str, set[str]] = {}
        for power, texts in (given.get(key) or {}).items():
            wanted.setdefault(power.upper(), set()).update(texts)
        for power, texts in found.items():
            asked = wanted.pop(power, set())
            if key == "centers":
                assert {text.strip() for text in asked} == set(texts)
                continue
            assert all(CANONICAL.fullmatch(text) for text in texts)
            asked |= dislodged.get(power, set())
            assert units_of(game, set(texts)) == units_of(game, asked)
        assert not any(wanted.values())


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_changed_states_are_refused_or_loaded_as_they_say(data):
    given_state = copy.deepcopy(data.draw(st.sampled_from(corpus())).to_state())
    for key in data.draw(st.sets(st.sampled_from(["influence", "homes", "builds", "note"]))):
        del given_state[key]
    given_state = mutated(data.draw(st.randoms()), given_state, PARTS)
    try:
        game = Game.from_state("standard", given_state)
    except UserError as error:
        assert one_line(error)
        return
    check_board(game, given_state)
    assert Game.from_state("standard", game.to_state()).to_state() == game.to_state()
    if not game.is_over:
        play_randomly(game, random.Random(1), 2)


@cache
def saved_games() -> tuple[str, ...]:
    """Return saved games as lines of JSON."""
    lines = []
    for name, phases in (("small", 3), ("standard", 2), ("standard", 7)):
        game = Game(name)
        play_randomly(game, random.Random(phases), phases)
        play_order = next(iter(orderable(game).items()))
        game.submit(play_order[0], [game.legal_orders(play_order[1][0])[0], "A XXX H"], False)
        lines.append(json.dumps(game.to_saved_game()))
    return tuple(lines)


def load_and_go_on(saved: dict) -> None:
    """Load a saved game or refuse it with a UserError; what is loaded can be played and saved."""
    try:
        game = Game.from_saved_game(saved)
    except UserError as error:
        assert one_line(error)
        return
    last = saved["phases"][-1]
    check_board(game, last["state"])
    again = game.to_saved_game()
    assert [phase["orders"] for phase in again["phases"][:-1]] == [
        phase["orders"] for phase in saved["phases"][:-1]
    ]
    if not game.is_over:
        game.adjudicate()
        json.dumps(game.to_saved_game())


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_changed_saved_games_are_refused_or_played_on(data):
    saved = json.loads(data.draw(st.sampled_from(saved_games())))
    load_and_go_on(mutated(data.draw(st.randoms()), saved, PARTS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@given(data=st.data())
@settings(deadline=None, max_examples=200)
def test_damaged_lines_are_refused_with_their_number(folder, data):
    line = data.draw(st.sampled_from(saved_games())).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(line)))
        end = start + data.draw(st.integers(0, 12))
        line = line[:start] + data.draw(st.binary(max_size=4)) + line[end:]
    path = folder / "games.jsonl"
    path.write_bytes(saved_games()[0].encode() + b"\n" + line)
    try:
        for saved in read_saved_games(path):
            load_and_go_on(saved)
    except UserError as error:
        assert one_line(error) and re.search(r"games\.jsonl, line \d+: ", str(error))


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_changed_position_lines_are_refused_or_loaded_as_they_say(data):
    line = data.draw(st.sampled_from(corpus())).to_position()
    words = re.findall(r"[^\s;,=]+|[;,=]", line)
    pool = [*UNITS[0].split(), *PLACES, *POWERS, *";,=>*", "*A", "small", *NAMES]
    line = " ".join(changed_words(data, words, pool))
    try:
        game = Game.from_position(line)
    except UserError as error:
        assert one_line(error)
        return
    written = game.to_position()
    assert Game.from_position(written).to_state() == game.to_state()

    def codes(text: str) -> set[str]:
        return {word[:3] for word in re.findall(r"(?<![A-Z])[A-Z]{3}(?![A-Z\d])", text)}

    assert codes(written) == codes(line)


# Maps

MAP_WORDS = r'"[^"]*"|[^\s"]+'
NASTY = re.findall(
    MAP_WORDS,
    'PAL-H "PAL H" "HIL - ROC" VIA A "F" "CAN NC" "" "." NC "GUL C A PAL - CAN" "Palm Bay" PAL 3 '
    'land coast sea true false [] {} [1,2] WEST NORTH "CAN/NC" "CAN/SC" HIL SOU GUL ISL ROC nan '
    '0xff "HIL SOU" "ROC PAL GUL" "CAN/NC ISL" "CAN" "land" "coast" "sea" "NC" "A HIL" "F SOU" '
    '"any" "home" "TRIBES" "RIVER" "A MOU" "F MOU/RIVER" "VIA" TRIBES neutral builds convoys',
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
    text = data.draw(st.sampled_from([SEAS, TRIBES]))
    lines = [re.findall(MAP_WORDS, line) for line in text.splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(lines) - 1))
        lines[i] = changed_words(data, lines[i], NASTY) if lines[i] else lines[i - 1]
    game_map = load_changed_map(folder, "\n".join(" ".join(words) for words in lines))
    if game_map is None:
        return
    texts = vocabulary(game_map).texts
    reference = ReferenceMap.from_facts(game_map.facts)
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
        Map(tomllib.loads(SEAS) | {"max_years": value})


@pytest.mark.parametrize(
    "line",
    [
        "victory_supply_centers = 0x1" + "0" * 5000,
        "powers = [0x1" + "0" * 5000 + "]",
        "name" + ".a" * 99 + " = 1",
    ],
)
def test_map_values_that_python_cannot_write(folder, line):
    key = line.partition(" ")[0].partition(".")[0]
    text = re.sub(f"^{key} = .*$", line, SEAS, count=1, flags=re.MULTILINE)
    assert text != SEAS and load_changed_map(folder, text) is None


def test_map_files_that_would_take_forever(folder):
    path = folder / "endless.toml"
    path.write_bytes(b"a" + b".a" * 400_000 + b" = 1")
    with pytest.raises(MapError, match=r"endless\.toml: more than 100 dots in line 1$"):
        read_map_file(path)
    path.write_bytes(SEAS.encode() + b"#" * 10**6)
    with pytest.raises(
        MapError, match=r"endless\.toml: cannot be read: it is longer than 1,000,000 bytes$"
    ):
        read_map_file(path)
    sizes = [path.stat().st_size for path in MAPS_FOLDER.glob("*.toml")]
    assert max(sizes) < 20_000, "real maps are far below the limit"


def test_a_problem_of_a_map_is_one_line(folder):
    for old, new in (("GUL = {", '"G\\nL" = {'), ('"CAN/SC" =', '"CAN/\\r\\nSC" =')):
        assert load_changed_map(folder, SEAS.replace(old, new)) is None


def test_a_position_is_two_finite_numbers():
    for number in ("nan", "inf", "1e9"):
        with pytest.raises(MapError, match="position"):
            Map(tomllib.loads(SEAS.replace("2.5", number)))


@pytest.mark.parametrize(
    "name", ["HIL H", "Hil - Pal", "hil S A PAL", "PAL via", "CAN/NC", "Can (SC)", "ROC by convoy"]
)
def test_a_name_that_begins_like_an_order_names_nothing(name):
    sound = Map(tomllib.loads(SEAS))
    for code in ("HIL", "CAN"):
        facts = tomllib.loads(SEAS)
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


def test_position_lines_are_read_in_time():
    for line in ("small S1901M; " + "A" * 10**6, "small S1901M; A" + " " * 10**6 + "x"):
        with pytest.raises(UserError, match="is not of the form"):
            Game.from_position(line)
    with pytest.raises(UserError, match="is not of the form"):
        Game.from_position("small S1901M; ENGLAND A LON = LON = LON")


@pytest.mark.parametrize(
    "influence",
    [None, 3, [], {"ENGLAND": 3}, {"ENGLAND": [[], 3, "LON"]}, {"GAUL": ["LON"]}, {3: []}, "none"],
)
def test_influence_of_earlier_phases_is_taken_as_far_as_it_is_sound(influence, folder):
    game = Game("small")
    play_randomly(game, random.Random(1), 3)
    saved = game.to_saved_game()
    for phase in saved["phases"][1:]:
        if influence == "none":
            del phase["state"]["influence"]
        else:
            phase["state"]["influence"] = influence
    again = Game.from_saved_game(saved).to_saved_game()
    assert again["phases"][0]["state"]["influence"] == {"ENGLAND": ["LON"], "RUSSIA": ["MOS"]}
    for phase in again["phases"]:
        assert list(phase["state"]["influence"]) == game.powers
    append_saved_game(folder / "influence.jsonl", again)
