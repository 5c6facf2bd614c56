"""Tournaments: balance of seats, cross tables by hand, order of the bots, the command."""

import json

import numpy as np
import pytest

from diplomacy_engine import Game, load_player, make_bot
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.matches.tournament import balanced_seats, cross_table, play_tournament
from diplomacy_engine.scoring.outcomes import FIGURES

LADDER = ("random", "dumbbot", "dumbbot-paquette")  # not in the order of strength


def test_a_small_block_of_seats_by_hand():
    """Three players and two powers: every pair meets, and then with the powers exchanged."""
    for seed in range(8):
        seats = balanced_seats(3, 2, 6, np.random.default_rng(seed))
        pairs = sorted(map(tuple, seats.tolist()))
        assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


@pytest.mark.parametrize("powers", [2, 7])
@pytest.mark.parametrize("players", [3, 9])
@pytest.mark.parametrize("num_games", [9, 100])
def test_seats_are_balanced(players, powers, num_games):
    seats = balanced_seats(players, powers, num_games, np.random.default_rng(num_games))
    assert seats.shape == (num_games, powers)
    counts = (seats[:, :, None] == np.arange(players)).sum(0)  # (P, players)
    assert counts.min() >= 1 and np.ptp(counts, axis=1).max() <= 1
    if num_games % players == 0:
        assert (counts == num_games // players).all()
    at_table = (seats[:, :, None] == np.arange(players)).sum(1)  # (E, players)
    assert np.ptp(at_table, axis=1).max() <= 1
    if players >= powers:
        assert at_table.max() == 1


def test_cross_table_by_hand():
    seats = np.array([[0, 1, 1], [1, 0, 2], [2, 2, 0]])
    ranks = np.array([[2, 1, 3], [1.5, 1.5, 3], [1, 3, 2]])
    solo = np.array([[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    found = cross_table(seats, ranks, solo, 4)
    assert found["games"].tolist() == [[0, 2, 2, 0], [2, 0, 1, 0], [2, 1, 0, 0], [0] * 4]
    # 0 and 1: one of two pairs of seats in game 0, a tie in game 1. 0 and 2: ahead in game 1,
    # one of two pairs in game 2. 1 and 2: ahead in game 1.
    expected = [[0, 0.5 + 0.5, 1 + 0.5, 0], [0.5 + 0.5, 0, 1, 0], [0.5, 0, 0, 0], [0] * 4]
    assert found["above"].tolist() == expected
    assert found["solos"].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0] * 4]


@pytest.fixture(scope="module")
def ladder() -> dict:
    players = [make_bot(name) for name in LADDER]
    return play_tournament("small", players, 90, seed=3, threads=1).result()


def test_a_tournament_orders_the_bots(ladder):
    assert list(ladder["players"]) == ["dumbbot", "dumbbot-paquette", "random"]
    ratings = [found["rating"] for found in ladder["players"].values()]
    values = [rating["value"] for rating in ratings]
    assert values == sorted(values, reverse=True)
    assert ratings[0]["low"] > ratings[-1]["high"]
    for rating in ratings:
        half = 1.96 * max(rating["sigma"], rating["bootstrap"])
        assert rating["high"] - rating["value"] == pytest.approx(half, rel=1e-3)
        assert rating["value"] - rating["low"] == pytest.approx(half, rel=1e-3)


def test_what_a_tournament_returns(ladder):
    json.dumps(ladder, allow_nan=False)
    for found in ladder["players"].values():
        assert found["seats"] == 60  # 90 games of two seats, three players
        assert list(found["by_power"]) == ["ENGLAND", "RUSSIA"]
        assert tuple(found["overall"]) == FIGURES
        means = [part["centers"]["value"] for part in found["by_power"].values()]
        assert found["overall"]["centers"]["value"] == pytest.approx(np.mean(means))
    table = ladder["cross_table"]
    for one, row in table.items():
        for other, pair in row.items():
            assert pair["games"] == table[other][one]["games"] == 30
            both = pair["above"]["value"] + table[other][one]["above"]["value"]
            assert both == pytest.approx(1)
            low, high = wilson_interval(30 * pair["above"]["value"], 30)
            assert (pair["above"]["low"], pair["above"]["high"]) == (low, high)
    assert table["dumbbot"]["random"]["solos"]["value"] > 0.9


@pytest.mark.parametrize("other", ["small-pure-1", "greedy:small-pure-2"])
def test_a_tournament_is_greedy_if_all_players_are(other):
    players = load_player("greedy:small-pure-1"), load_player(other)
    report = play_tournament("small", players, 2, max_years=1, threads=1)
    assert report.result()["greedy"] == other.startswith("greedy")


def test_games_and_seats_of_a_tournament():
    """Saved games name who played what; so does every row, and rows add up to the result."""
    players = [make_bot(name) for name in LADDER]
    options = {"seed": 3, "max_years": 5, "threads": 1}
    report = play_tournament("three", players, 9, samples=4, **options)
    result, saved_games = report.result(per_game=True), report.saved_games
    rows = result["per_game"]
    assert [(row["game"], row["power"]) for row in rows[:4]] == [
        (1, "ENGLAND"), (1, "ITALY"), (1, "RUSSIA"), (2, "ENGLAND")
    ]  # fmt: skip
    assert len(rows) == 27 and list(rows[0])[:3] == ["game", "power", "player"]
    for name, found in result["players"].items():
        mine = [row for row in rows if row["player"] == name]
        assert len(mine) == found["seats"]
        for figure in FIGURES:
            mean = np.mean([row[figure] for row in mine])
            assert mean == pytest.approx(found["overall"][figure]["value"])
    assert [saved["id"] for saved in saved_games] == ["3-0", "3-1", "3-2", "3-3"]
    for number, saved in enumerate(saved_games, 1):
        seated = {row["power"]: row["player"] for row in rows if row["game"] == number}
        assert saved["players"] == seated
        last = Game.from_saved_game(saved, max_years=5)
        centers = {row["power"]: row["centers"] for row in rows if row["game"] == number}
        assert {power: len(owned) for power, owned in last.centers.items()} == centers
