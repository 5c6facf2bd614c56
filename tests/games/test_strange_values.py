"""Maps and values that changes at random, as tests/attack makes them, hardly ever meet."""

import re
import tomllib

import pytest
from support.games import state
from support.maps import TRIBES, tribes

from diplomacy_engine import Game, Map, MapError, UserError, load_map, vocabulary
from diplomacy_engine.rules.map import MAPS_FOLDER, read_map_file
from diplomacy_engine.rules.reading import read_order


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


def test_map_files_that_would_take_forever(tmp_path):
    path = tmp_path / "endless.toml"
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


def test_a_problem_of_a_map_is_one_line(tmp_path):
    path = tmp_path / "changed.toml"
    for old, new in (("NOR = {", '"N\\nR" = {'), ('"MOU/NC" =', '"MOU/\\r\\nNC" =')):
        path.write_text(TRIBES.replace(old, new))
        with pytest.raises(MapError, match=re.escape(str(path))) as error:
            load_map(path)
        assert error.value.problems and not any("\n" in text for text in error.value.problems)


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
