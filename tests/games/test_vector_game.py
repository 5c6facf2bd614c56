"""VectorGame: copies between games, seeds of rows, how games stand."""

import copy
import pickle

import numpy as np
import pytest
from support.maps import TRIBES

from diplomacy_engine import Game, Map, VectorGame, load_map, make_bot
from diplomacy_engine.players.asking import orders_of


def played(name="three", count=6, seed=1, phases=7, **options) -> VectorGame:
    games = VectorGame(name, count, seed=seed, auto_reset=False, **options)
    for _ in range(phases):
        games.step(orders_of(games, make_bot("random")))
    return games


def same_position(one: VectorGame, row: int, other: VectorGame, other_row: int) -> bool:
    fields = [name for name in one.state._fields if name != "seed"]
    return all(
        np.array_equal(getattr(one.state, n)[row], getattr(other.state, n)[other_row])
        for n in fields
    )


@pytest.mark.parametrize("keep_seeds", [False, True])
def test_positions_are_copied_from_other_games(keep_seeds):
    source, games = played(), VectorGame("three", 4, seed=9, auto_reset=False)
    before, untouched = source.snapshot(), Game.from_row(games, 3).to_position()
    games.copy_from(source, np.array([5, 0, 5]), np.array([0, 1, 2]), keep_seeds=keep_seeds)
    for row, origin in enumerate((5, 0, 5)):
        assert same_position(games, row, source, origin)
        same = games.state.seed[row] == source.state.seed[origin]
        assert same == keep_seeds
    assert Game.from_row(games, 3).to_position() == untouched
    assert all(np.array_equal(array, before[name]) for name, array in source.snapshot().items())
    bot = make_bot("random")
    mine, theirs = orders_of(games, bot), orders_of(source, bot)
    assert np.array_equal(mine[1], theirs[0]) == keep_seeds
    assert np.array_equal(mine[0], mine[2]) == keep_seeds


def test_maps_of_the_same_orders_are_not_alike():
    """A search on one would play to the other's victory, and a copy read centers that it lacks."""
    facts = load_map("small").facts
    other = VectorGame(Map(facts | {"victory_supply_centers": 6}), 1)
    games = VectorGame("small", 1)
    assert games.vocabulary.hash == other.vocabulary.hash and not games.is_like(other)
    assert games.is_like(games.spare(3))
    with pytest.raises(ValueError, match="cannot be copied"):
        games.copy_from(other, np.zeros(1, int), np.zeros(1, int))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["three", "tribes", "teams"])
def test_copies_and_pickles_go_on_the_same_way(name, threads, tmp_path):
    """Also of a map of one's own, and with teams; tables are shared, and stay read-only."""
    (tmp_path / "tribes.toml").write_text(TRIBES)
    maps = {"tribes": tmp_path / "tribes.toml"}
    game_map = load_map(maps.get(name, "three"))
    game_map = game_map.with_teams("ENGLAND+ITALY", 9) if name == "teams" else game_map
    games = VectorGame(game_map, 70, seed=3, max_years=4, threads=threads)
    bot = make_bot("random")
    for _ in range(5):
        games.step(orders_of(games, bot))
    data = pickle.dumps(games)
    assert len(data) < 200_000  # not its tables
    copies = [pickle.loads(data), copy.deepcopy(games)]
    for one in copies:
        assert one.threads == threads and one.max_years == 4 and one.auto_reset
        assert one.is_like(games) and one.vocabulary is copies[0].vocabulary
        assert (one.map is load_map("three")) == (name == "three")
        assert one.map.teams.text == games.map.teams.text
        assert not one.board.terrain.flags.writeable and not one.table.kind.flags.writeable
    for _ in range(30):
        ends = [one.step(orders_of(one, bot)).ended.tolist() for one in (*copies, games)]
        assert ends[0] == ends[1] == ends[2]
    for one in copies:
        assert all(np.array_equal(a, games.snapshot()[n]) for n, a in one.snapshot().items())
    assert game_map.teams.text == ("ENGLAND+ITALY" if name == "teams" else "")
