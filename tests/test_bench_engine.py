"""The benchmark: what it counts, what it writes, and what it refuses. No time is asserted."""

import json
import os

import numpy as np
import pytest
from support.tables import read_table

from benchmarks import bench_engine as bench
from diplomacy_engine import VectorGame, load_map
from diplomacy_engine.constants import End, Phase
from diplomacy_engine.players.bots import BOTS, RandomBot


def bench_words(file, *more: str) -> list[str]:
    words = "--games 20 --seconds 0.001 --until-year 1903 --threads 2 --seed 7"
    return [*words.split(), "--json", str(file), *more]


@pytest.mark.slow
def test_figures(tmp_path, capsys, monkeypatch):
    file = tmp_path / "bench.json"
    monkeypatch.setattr(bench, "SEARCHED", 1)
    assert bench.main(bench_words(file, "--map", "three")) == 0
    assert os.listdir(tmp_path) == ["bench.json"]
    found = json.loads(file.read_text())
    asked = [found[key] for key in ("map", "threads", "games", "until_year", "seed")]
    assert asked == ["three", 2, 20, 1903, 7]
    assert found["phases"] > 0 and found["phases"] % 20 == 0, "no row ever rests"
    assert 0 <= found["games_finished"] <= found["phases"]
    for count, rate in (("phases", "phases_per_second"), ("games_finished", "games_per_second")):
        assert found[rate] == pytest.approx(found[count] / found["seconds"])
    assert list(found["stage_microseconds"]) == list(bench.STAGES)
    assert list(found["bot_microseconds"]) == list(BOTS)
    taken = found["stage_microseconds"] | found["bot_microseconds"]
    del taken["retreats"]  # of which so few games have none
    assert all(0 < microseconds < 1e6 for microseconds in taken.values())
    assert found["machine"]["cpu"] and found["machine"]["cores"] >= 1
    assert found["versions"]["numpy"] == np.__version__
    assert all(found["versions"].values())
    out, err = capsys.readouterr()
    assert "random play on map three to 1903: 2 threads, 20 games at once" in out
    for name in (*bench.STAGES, *BOTS):
        assert name.replace("_", " ") in out
    assert err == "" or err.startswith("compiling the game kernels")


class Counting:
    def __init__(self):
        self.phases, self.begun = 0, -12

    def act(self, games, decisions):
        self.phases += len(np.unique(decisions.game))
        self.begun += np.count_nonzero(games.state.turn == 0)
        return RandomBot().act(games, decisions)


def test_counts_are_those_of_the_games_played():
    games = VectorGame("small", 12, seed=3, max_years=2, threads=2)
    player, played = Counting(), bench.Play(0, 0, 0.0)
    while played.games < 12:
        more = bench.play(games, player, 0.0)
        assert more.phases == 12, "no time means one phase of each"
        played = bench.Play(played.phases + more.phases, played.games + more.games, more.seconds)
    begun = player.begun + np.count_nonzero(games.state.turn == 0)
    assert (played.phases, played.games) == (player.phases, begun)


def test_positions_are_of_all_phases_of_whole_games():
    positions = bench.sample_positions(load_map("standard"), 3, seed=2)
    years, counts = np.unique(positions.state.year, return_counts=True)
    assert years.tolist() == [1901, 1902, 1903]
    assert counts.min() > counts.max() / 2, "late years weigh as much as early ones"
    assert set(positions.state.phase) == set(map(int, Phase))
    assert (positions.state.end == End.RUNNING).all()
    games = VectorGame("standard", 50, seed=2, max_years=3)
    assert bench.place_positions(games, positions, (Phase.FALL_RETREATS,), seed=1)
    assert (games.state.phase == Phase.FALL_RETREATS).all()
    assert (games.state.dislodged_power >= 0).any(1).all()
    assert len(set(games.state.seed.tolist())) == 50
    assert not bench.place_positions(games, positions, (), seed=1)


def test_a_stage_that_never_comes_up_has_no_figure(monkeypatch):
    """One year is played without a winter."""
    game_map = load_map("small")
    monkeypatch.setattr(bench, "BOTS", {})
    monkeypatch.setattr(bench, "adjudicate_rows", lambda *_: None)  # compiled for this alone
    positions, games = bench.sample_positions(game_map, 1, seed=1), VectorGame(game_map, 2)
    found = bench.time_stages(games, positions, 0.0, 1)
    assert found["stage_microseconds"]["adjustments"] is None
    assert found["stage_microseconds"]["legal_orders"] > 0


def test_the_median_and_what_is_not_timed(monkeypatch):
    """Calls of 4, 1, 9 and 5 seconds; the budget is looked at after the third and the fourth."""
    clock = iter([0, 0, 4, 4, 5, 5, 14, 0.5, 0, 5, 1])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: next(clock))
    calls = []
    found = bench.median_microseconds(
        lambda: calls.append("call"), 2, 1.0, lambda: calls.append("prepare")
    )
    assert calls == ["prepare", "call"] * 5, "the first is not timed"
    assert found == 1e6 * 4.5 / 2
    assert next(clock, None) is None


@pytest.mark.parametrize(("words", "name"), read_table(__file__, "refusals"))
def test_refusals(words, name, capsys):
    assert bench.main(words.split()) == 2
    assert name in capsys.readouterr().err
