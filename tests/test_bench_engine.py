"""The benchmark of the engine: what it counts and times. No time is asserted."""

import numpy as np
import pytest

from benchmarks import bench_engine as bench
from diplomacy_engine import BOTS, VectorGame, load_map
from diplomacy_engine.constants import End, Phase


@pytest.mark.slow
def test_every_stage_and_bot_is_timed(monkeypatch, capsys):
    monkeypatch.setattr(bench, "SEARCHED", 1)
    bench.main(["--map", "three", "--games", "40", "--seconds", "0.001", "--threads", "2"])
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 1 + 2 * len(bench.KINDS) + 1 + len(BOTS)
    assert all(float(figure.replace(",", "")) > 0 for figure, *_ in rows)
    with pytest.raises(SystemExit):
        bench.main(["--map", "nowhere"])


def test_counts_are_those_of_the_games_played():
    games, total = VectorGame("small", 12, seed=3, max_years=2, threads=2), 0
    while total < 12:
        phases, finished, _ = bench.play(games, 0.0)
        assert phases == 12, "no time means one phase of each"
        assert finished == np.count_nonzero(games.state.turn == 0)
        total += finished


def test_positions_are_of_all_phases_of_whole_games():
    positions = bench.sample_positions(load_map("standard"), 3, seed=2)
    years, counts = np.unique(positions.state.year, return_counts=True)
    assert years.tolist() == [1901, 1902, 1903]
    assert counts.min() > counts.max() / 2, "late years weigh as much as early ones"
    assert set(positions.state.phase) == set(map(int, Phase))
    assert (positions.state.end == End.RUNNING).all()
    games = VectorGame("standard", 50, seed=2, max_years=3)
    assert bench.place(games, positions, (Phase.FALL_RETREATS,), seed=1)
    assert (games.state.phase == Phase.FALL_RETREATS).all()
    assert (games.state.dislodged_power >= 0).any(1).all()
    assert not bench.place(games, positions, (), seed=1)
