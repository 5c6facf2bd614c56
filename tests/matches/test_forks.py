"""Forked rollouts: copies of positions, also of random beginnings, are played on and compared."""

import numpy as np
import pytest

from diplomacy_engine import Game, UserError, VectorGame, load_map, make_bot
from diplomacy_engine.constants import RUNNING, TEAM
from diplomacy_engine.matches import forks
from diplomacy_engine.replays.replay import make_replay


def positions(count: int, copies: int, threads: int = 1) -> VectorGame:
    games = VectorGame("small", count * (1 + copies), seed=2, threads=threads, auto_reset=False)
    forks.random_beginnings(games, 12, seed=3)
    return games


def test_copies_of_a_position_go_their_own_ways():
    games = positions(5, 8)
    kept = games.snapshot()
    first_year = games.state.year[:5].copy()
    noted = []
    result = forks.fork(
        games,
        range(5),
        8,
        years=2,
        players=[make_bot("random")],
        note=lambda games, decisions, orders: noted.append(decisions.count),
    )
    assert result.score.shape == (5, 8, 2) and np.allclose(result.score.sum(2), 1)
    for name, array in games.state._asdict().items():
        assert np.array_equal(array[:5], kept[name][:5])  # the positions stay
    rows = forks.destinations(games, 5, 8)
    assert rows.min() == 5 and rows.max() == 44
    assert np.array_equal(forks.center_share(games, rows.ravel()).reshape(5, 8, 2), result.score)
    running = result.ended == 0
    assert (result.years == (first_year + 2)[:, None])[running].all() and running.any()
    assert len({games.state.unit_power[row].tobytes() for row in rows[0]}) > 1
    assert np.allclose(result.advantage.mean(1), 0, atol=1e-5)
    assert sum(noted) > 5 * 8 * 4


def test_a_teams_victory_counts_by_centers():
    """Its largest power has no solo."""
    three = load_map("three").with_teams("ENGLAND+ITALY", 2)
    games = VectorGame(three, 2, auto_reset=False)
    result = forks.fork(games, [0], 1, years=2, players=[make_bot("hold")])
    assert result.ended == [[TEAM]]
    assert np.allclose(result.score, games.centers()[1] / games.centers()[1].sum())


def test_copies_that_are_recorded_can_be_replayed():
    """From the position on to where each copy stands, orders and results of every phase."""
    games = positions(3, 4)
    players = [make_bot("random"), make_bot("chaos")]
    result = forks.fork(games, range(3), 4, years=2, players=players, seats=[0, 1], record=2)
    all_ids = [f"{n}-{k}" for n in range(3) for k in range(4)]
    more = forks.fork(positions(3, 4), range(3), 4, years=1, players=players[:1], record=9)
    assert [saved["id"] for saved in more.saved_games] == all_ids
    rows = forks.destinations(games, 3, 4)
    kept = [name for name in all_ids if int(name[-1]) < 2]
    assert [saved["id"] for saved in result.saved_games] == kept
    for saved, row in zip(result.saved_games, rows[:, :2].ravel()):
        assert list(saved["players"].values()) == ["random", "chaos"]
        last = Game.from_saved_game(saved)
        assert last.to_state() == Game.from_row(games, row).to_state()
        assert len(make_replay(saved).frames) > 4
        first = Game.from_row(games, int(saved["id"][0]))
        assert saved["phases"][0]["state"]["units"] == first.units


def test_parts_join_to_the_whole(tmp_path):
    """Of bots to the digit; a shard that is missing, there twice, or none is named."""
    whole = forks.fork(
        positions(5, 4), range(5), 4, years=1, players=[make_bot("random")], record=1
    )
    paths = [tmp_path / f"{k}.npz" for k in (3, 1, 2)]
    for path in paths:
        games, part = positions(5, 4), f"{path.stem}/3"
        bots = [make_bot("random")]
        forks.fork(games, range(5), 4, years=1, players=bots, record=1, part=part).save(path)
    joined = forks.join_rollouts(paths)
    for name, here, there in zip(whole._fields, joined, whole):
        assert here == there if name == "saved_games" else np.array_equal(here, there), name
    with pytest.raises(UserError, match="position 1 is in 0 of the shards"):
        forks.join_rollouts(paths[:2])
    with pytest.raises(UserError, match="in 2 of the shards"):
        forks.join_rollouts([*paths, paths[0]])
    paths[0].write_bytes(b"PK")
    with pytest.raises(UserError, match=r"3\.npz"):
        forks.join_rollouts(paths)
    for text in ("0/3", "4/3", "1", "a/b"):
        with pytest.raises(UserError, match="a part is K/N"):
            forks.fork(games, range(5), 4, years=1, players=bots, part=text)


def test_seats():
    """Who plays which power matters: DumbBot's seat does better than the one that holds."""
    games = VectorGame("small", 1 + 60, seed=1, auto_reset=False)
    players = [make_bot("dumbbot"), make_bot("hold")]
    result = forks.fork(games, [0], 60, years=8, players=players, seats=[0, 1])
    assert result.score[..., 0].mean() > 0.6
    assert (result.ended == 1).any() and set(np.unique(result.score[result.ended == 1])) == {0, 1}


def test_group_advantages():
    score = np.array([[[1.0], [3.0]], [[2.0], [2.0]]])
    assert forks.group_advantages(score).tolist() == [[[-1.0], [1.0]], [[0.0], [0.0]]]


@pytest.mark.parametrize("name", ["small", "standard"])
def test_games_are_as_far_as_asked(name):
    games = VectorGame(name, 64, seed=3, threads=1)
    phases = forks.random_beginnings(games, 9, seed=4)
    assert set(phases) == set(range(10))
    assert (games.state.end == RUNNING).all()
    # A game that ended on the way is back in the opening; every other one is as far as asked.
    turn = games.state.turn
    assert (turn == phases).all() and (phases > 0).mean() > 0.8
    assert len({row.tobytes() for row in games.state.unit_power}) > 10


def test_a_share_of_the_games_begins_in_the_opening():
    turns = forks.random_beginnings(VectorGame("small", 400, seed=3, threads=1), 9, seed=4)
    games = VectorGame("small", 400, seed=3, threads=1)
    some = forks.random_beginnings(games, 9, seed=4, opening_share=0.5)
    opening = some == 0
    assert 170 < opening.sum() < 270 and (some == turns)[~opening].all()
    assert (games.state.turn[opening] == 0).all() and (games.state.turn[~opening] > 0).all()
