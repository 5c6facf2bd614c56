"""Files of base populations: what is refused, and that what is kept comes back."""

import dataclasses
import functools
import hashlib
import json
import operator
from types import SimpleNamespace

import numpy as np
import pytest
from support.populations import write_population as write_members
from support.tables import read_table

from diplomacy_engine import MAP_NAMES, UserError, load_map, load_player
from diplomacy_engine.players.loading import load_members, policy_map
from diplomacy_engine.players.names import drawn_names
from diplomacy_engine.players.population import (
    FOLDERS,
    POPULATION,
    drawn_member,
    pack_weights,
    population_folder,
    read_population,
    read_weights,
    write_population,
)

SMALL = FOLDERS / "small"


@pytest.fixture
def copy(tmp_path):
    """Return a folder with a population of the first members of that of small."""
    write_members(tmp_path / "copy", range(3))
    return tmp_path / "copy"


def refused(function, *arguments, **given) -> str:
    with pytest.raises(UserError) as error:
        function(*arguments, **given)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_populations_that_come_along():
    """At least 95 policies and the five bots, every file with its sha256, and small enough.

    References are near the top, DumbBot beats `random`, and there are rungs between.
    """
    total = 0
    assert {file.parent.name for file in FOLDERS.glob(f"*/{POPULATION}")} == set(MAP_NAMES)
    for file in sorted(FOLDERS.glob(f"*/{POPULATION}")):
        folder, population = file.parent, read_population(file.parent)
        policies = [member for member in population.members if member.file]
        assert len(policies) >= 95 and len(population.members) == len(policies) + 5
        assert {member.file for member in policies} == {p.name for p in folder.glob("*.npz")}
        for member in policies:
            weights = read_weights(population, member)
            assert all(weight.dtype == np.float32 for weight in weights.values())
            learned = member.scheme == "standard-human"  # from people's games, by no such command
            assert member.command.startswith("ppo_selfplay_diplomacy.py --map ") != learned
        total += sum(path.stat().st_size for path in folder.iterdir())
        assert max(path.stat().st_size for path in folder.iterdir()) < 20e6
        assert (np.diff(population.ratings) <= 0).all()
        assert len({member.scheme for member in policies}) > 10
        assert "a reference policy" in [member.scheme for member in population.members[:10]]
        places = [member.name for member in population.members]
        assert places.index("dumbbot") < len(places) / 2 < places.index("random")
        assert np.diff(population.ratings[:-1]).min() > -9  # `hold` may be far below
        met = population.met + np.eye(len(population.members))
        assert (population.met == population.met.T).all() and met.min() >= 0
        assert np.allclose(population.above + population.above.T, population.met, atol=0.02)
    assert total < 60e6


def test_a_population_comes_back_as_it_was_written(copy):
    population = read_population(copy)
    write_population(population)
    before = (copy / POPULATION).read_bytes()
    write_population(read_population(copy))
    assert (copy / POPULATION).read_bytes() == before
    assert population.map is load_map("small") and population.ratings[0] > population.ratings[-1]


def test_members_play_by_the_names_of_their_files(copy):
    population = read_population(copy)
    best = next(member for member in population.members if member.file)
    player = load_player(copy / best.file, game_map=load_map("small"), careful=True)
    assert player.name == best.name and policy_map(copy / best.file).name == "small"
    assert player.careful, "as any policy among people"
    assert load_player(f"greedy:{copy / best.file}").name == f"greedy:{best.name}"
    assert "no member 'nobody'" in refused(load_player, copy / "nobody.npz")
    other = load_map("three")
    assert "map: small, not three" in refused(load_player, copy / best.file, game_map=other)


def test_a_member_that_is_missing_or_changed_is_named(copy):
    population = read_population(copy)
    first, second, _ = (member for member in population.members if member.file)
    (copy / first.file).unlink()
    assert f"member {first.name}: No such file" in refused(load_members, population, [first])
    content = bytearray((copy / second.file).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / second.file).write_bytes(content)
    found = refused(load_members, population, [second])
    assert f"member {second.name}: has changed" in found


def test_files_that_are_no_weights(copy):
    population = read_population(copy)
    member = next(member for member in population.members if member.file)

    def put(content: bytes):
        (copy / member.file).write_bytes(content)
        return dataclasses.replace(member, sha256=hashlib.sha256(content).hexdigest())

    assert f"member {member.name}: " in refused(read_weights, population, put(b"PK nonsense"))
    pickled = pack_weights({"own": np.zeros(3)}).replace(b"'<f2'", b"'|O' ")
    assert f"member {member.name}: " in refused(read_weights, population, put(pickled[:-5]))
    other = put(pack_weights({"own": np.zeros(3)}))
    found = refused(load_members, population, [other])
    assert member.file in found and "weights do not match" in found
    with pytest.raises(UserError, match="cannot be kept"):
        pack_weights({"own": np.array([1e6])})


def test_lists_that_are_refused(copy):
    """Changes are a path to a value, and another value."""
    assert "nowhere/population.json" in refused(read_population, copy / "nowhere")
    good = (copy / POPULATION).read_text()
    for (*path, last), value, name in read_table(__file__, "lists_that_are_refused"):
        changed = json.loads(good)
        place = functools.reduce(operator.getitem, path, changed)
        place[last] = value
        (copy / POPULATION).write_text(json.dumps(changed))
        assert f"{POPULATION}: {name}: " in refused(read_population, copy), (path, last, value)
    (copy / POPULATION).write_text("{")
    assert f"{POPULATION}: not JSON" in refused(read_population, copy)
    strait = SimpleNamespace(name="strait")
    assert "no base population of map strait" in refused(population_folder, None, strait)


def test_drawn_members():
    game_map = load_map("small")
    assert drawn_names(["population"], 2) == ["population#1", "population#2"]
    assert drawn_names(["dumbbot", "population"], 2) == ["dumbbot", "population#2"]
    found = [drawn_member(None, n, game_map, 5)[1].name for n in (1, 2, 3)]
    assert len(set(found)) == 3
    assert drawn_member(str(SMALL), 2, game_map, 5)[1].name == found[1]
    assert "`play`" in refused(load_player, "population")
    assert policy_map(f"population:{SMALL}").name == "small" and policy_map("population") is None
