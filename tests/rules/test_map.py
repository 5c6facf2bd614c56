"""Maps: the three that come with the package, and every way in which a map file can be wrong."""

import os
import pickle
import tomllib

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine.constants import ARMY, FLEET, NONE, SEA
from diplomacy_engine.errors import UserError
from diplomacy_engine.rules import convoy_routes as routes_module
from diplomacy_engine.rules import vocabulary as vocabulary_module
from diplomacy_engine.rules.convoy_routes import MAX_CONVOY_ROUTES, MAX_CONVOY_SEAS
from diplomacy_engine.rules.map import (
    MAP_NAMES,
    MAPS_FOLDER,
    Map,
    MapError,
    load_map,
    read_map_file,
)
from diplomacy_engine.rules.vocabulary import OrderVocabulary, vocabulary

SMALL = (MAPS_FOLDER / "small.toml").read_text()

# name: powers, provinces, locations, supply centers, start units, victory, army and fleet borders
COUNTS = {
    "small": (2, 19, 19, 9, 2, 5, 30, 0),
    "three": (3, 37, 37, 15, 3, 8, 52, 0),
    "standard": (7, 75, 81, 34, 22, 18, 111, 141),
}


@pytest.mark.parametrize("name", MAP_NAMES)
def test_counts(name):
    game_map, board = load_map(name), load_map(name).board
    borders = [int(board.neighbor_count[kind].sum()) // 2 for kind in (ARMY, FLEET)]
    found = (
        len(game_map.powers),
        len(game_map.provinces),
        len(game_map.locations),
        len(board.center_province),
        int((board.start_unit_power != NONE).sum()),
        board.victory_centers,
        *borders,
    )
    assert found == COUNTS[name]
    homes = np.bincount(board.home_power[board.home_power != NONE])
    assert sorted(homes) == ([3] * 6 + [4] if name == "standard" else [1] * len(homes))


def test_board_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        load_map("small").board.terrain[0] = SEA


def test_maps_of_one_dictionary_that_changes_are_different():
    facts, maps = tomllib.loads(SMALL), []
    for facts["victory_supply_centers"] in (5, 6):
        maps.append(Map(facts))
    assert [game_map.facts["victory_supply_centers"] for game_map in maps] == [5, 6]
    assert maps[0] != maps[1] and pickle.loads(pickle.dumps(maps[0])).board.victory_centers == 5


# What is replaced in small.toml, by what, and the sentence that must come of it.
WRONG = read_table(__file__, "wrong_maps")


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG)
def test_wrong_map_file(tmp_path, old, new, sentence):
    assert old in SMALL
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(MapError) as caught:
        load_map(path)
    assert any(sentence in problem for problem in caught.value.problems), caught.value.problems
    assert str(path) in str(caught.value)


def test_all_problems_are_listed(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(SMALL.replace('BUL = "GRE"', 'BUL = "GRE XYZ"').replace("A LON", "A ABC"))
    with pytest.raises(MapError, match="and 1 more problems") as caught:
        load_map(path)
    assert len(caught.value.problems) == 2


def test_other_malformed_maps():
    def problems(**changes) -> list[str]:
        facts = tomllib.loads(SMALL) | changes
        with pytest.raises(MapError) as caught:
            Map(facts)
        return caught.value.problems

    facts = tomllib.loads(SMALL)
    lonely = facts["provinces"] | {"ZZZ": {"name": "Nowhere", "terrain": "land"}}
    assert problems(provinces=lonely) == ["province ZZZ has no border"]
    star = {f"A{chr(65 + i // 26)}{chr(65 + i % 26)}": i for i in range(33)}
    many = facts["provinces"] | {c: {"name": c, "terrain": "land"} for c in star}
    borders = facts["army_borders"] | {"WAL": " ".join(star)}
    found = problems(provinces=many, army_borders=borders)
    assert found == ["WAL has 35 neighbors; at most 32 are possible"]
    crowd = {f"{chr(65 + i // 26)}{chr(65 + i % 26)}A": {} for i in range(501)}
    assert "provinces: expected" in problems(provinces=crowd)[0]
    assert "provinces: expected" in problems(provinces={})[0]
    twice = {
        code: province | ({"aliases": ["cap"]} if code in ("LON", "MOS") else {})
        for code, province in facts["provinces"].items()
    }
    assert problems(provinces=twice) == ["provinces.MOS.aliases: 'cap' also names LON"]


def sea_map(rows: int, columns: int) -> Map:
    """Return a map of a grid of seas with an island at two corners."""
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    grid = {cell: f"{chr(65 + n // 26)}{chr(65 + n % 26)}S" for n, cell in enumerate(cells)}
    borders = {
        code: " ".join(grid[at] for at in ((i, j + 1), (i + 1, j), (i + 1, j + 1)) if at in grid)
        for (i, j), code in grid.items()
    }
    borders |= {"ONE": grid[0, 0], "TWO": grid[rows - 1, columns - 1]}
    provinces = {code: {"name": code, "terrain": "sea"} for code in grid.values()}
    for code in ("ONE", "TWO"):
        island = {"name": code, "terrain": "coast", "supply_center": True, "home_of": code}
        provinces[code] = island
    return Map(
        {
            "name": "seas",
            "powers": ["ONE", "TWO"],
            "victory_supply_centers": 2,
            "start_units": {},
            "provinces": provinces,
            "army_borders": {},
            "fleet_borders": borders,
        }
    )


def test_maps_with_too_many_convoy_routes_are_refused_in_time(monkeypatch):
    assert len(vocabulary(sea_map(3, 3))) and MAX_CONVOY_ROUTES == 1_000_000
    with pytest.raises(MapError, match="more than 1,000,000 convoy routes"):
        vocabulary(sea_map(9, 9))
    with pytest.raises(MapError, match=f"at most {MAX_CONVOY_SEAS} can be"):
        vocabulary(sea_map(1, 65))
    monkeypatch.setattr(routes_module, "MAX_CONVOY_ROUTES", 10)
    with pytest.raises(MapError, match="more than 10 convoy routes"):
        OrderVocabulary(sea_map(3, 3))


def test_maps_with_too_many_orders_are_refused(monkeypatch):
    orders = len(vocabulary(load_map("small")))
    monkeypatch.setattr(vocabulary_module, "MAX_ORDERS", orders - 1)
    with pytest.raises(MapError, match=f"more than {orders - 1} orders"):
        OrderVocabulary(Map(tomllib.loads(SMALL)))
    monkeypatch.setattr(vocabulary_module, "MAX_ORDERS", orders)
    assert len(OrderVocabulary(Map(tomllib.loads(SMALL)))) == orders


def test_a_map_file_is_read_once_while_it_stays_the_same(tmp_path):
    path, copy = tmp_path / "mine.toml", tmp_path / "copy.toml"
    for file in (path, copy):
        file.write_text(SMALL.replace('"small"', '"mine"'))
    mine, words = load_map(path), vocabulary(load_map(path))
    assert load_map(str(path)) is load_map(mine) is mine and load_map(copy) is not mine
    for other in (load_map(copy), mine.with_teams("ENGLAND+RUSSIA"), Map(mine.facts)):
        assert vocabulary(other) is words
    assert load_map(copy).source == str(copy), "an error names the file that was given"
    path.write_text(SMALL.replace('"small"', '"mine"').replace("max_years", "# max_years"))
    assert load_map(path) is not mine and load_map(path).hash != mine.hash
    assert len({mine, Map(mine.facts), mine.with_teams("ENGLAND+RUSSIA"), load_map(path)}) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "map.toml")
    with pytest.raises(MapError, match="no such file"):
        load_map(tmp_path / "map.toml")


def test_missing_map():
    with pytest.raises(MapError, match="did you mean 'standard'"):
        load_map("standrad")
    with pytest.raises(MapError, match=r"'colonial'.*`import-map`.*`--map FILE`"):
        load_map("colonial")
    for name in ("nowhere.toml", "x" * 5000, "\0", "\ud800", ".", ""):
        with pytest.raises(MapError, match="there is no map of that name"):
            load_map(name)
    for name in (b"small", None, 3, {}, []):
        with pytest.raises(MapError, match="given by its name"):
            load_map(name)
    with pytest.raises(MapError, match="cannot be read"):
        read_map_file(MAPS_FOLDER)


def test_map_that_is_not_utf8(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes(SMALL.replace("London", "L\u00f6ndon").encode("latin-1"))
    with pytest.raises(MapError, match=r"latin\.toml: not TOML"):
        load_map(path)


def test_a_power_is_found_by_its_name():
    game_map = load_map("small")
    assert [game_map.power_number(name) for name in ("ENGLAND", "russia")] == [0, 1]
    for name, message in read_table(__file__, "powers_by_name"):
        with pytest.raises(UserError, match=message):
            game_map.power_number(name)
