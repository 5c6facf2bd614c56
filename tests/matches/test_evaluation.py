"""Matches: seats, figures by hand-worked games, intervals, repeatability, saved games."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from diplomacy_engine import MatchReport, UserError, load_map, load_player, make_bot
from diplomacy_engine.constants import NONE, SOLO, YEAR_LIMIT
from diplomacy_engine.matches.evaluation import Evaluation, evaluate_player
from diplomacy_engine.matches.match import match_settings
from diplomacy_engine.scoring.outcomes import FIGURES, Outcomes, figure_values

OUTCOMES = Outcomes(
    ended=np.array([SOLO, YEAR_LIMIT, YEAR_LIMIT], np.int8),
    winner=np.array([1, NONE, NONE], np.int8),
    centers=np.array([[2, 6, 1, 0], [4, 3, 2, 0], [3, 3, 0, 0]], np.int16),
    alive=np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0]], bool),
    years=np.array([7, 20, 20], np.int16),
)


def test_figures_by_hand():
    values = figure_values(OUTCOMES, victory_centers=6)
    assert tuple(values) == FIGURES
    expected = {
        "solo": [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        "win": [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
        "draw": [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]],
        "survival": [[1, 1, 1, 0]] * 3,
        "elimination": [[0, 0, 0, 1]] * 3,
        "loss": [[1, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        "most_centers": [[0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]],
        "centers": OUTCOMES.centers,
        "centers_behind": [[4, 0, 5, 6], [0, 1, 2, 4], [0, 0, 3, 3]],
        "rank": [[2, 1, 3, 4], [1, 2, 3, 4], [1.5, 1.5, 3.5, 3.5]],
        "sum_of_squares": [[0, 1, 0, 0], [16 / 29, 9 / 29, 4 / 29, 0], [1 / 2, 1 / 2, 0, 0]],
        "deepdip_reward": [[-4, 12, -5, -6], [4, 3, 2, -6], [3, 3, 0, -6]],
        "game_years": [[7] * 4, [20] * 4, [20] * 4],
    }
    for name in FIGURES:
        np.testing.assert_allclose(values[name], expected[name], err_msg=name)
    cut = figure_values(OUTCOMES, 6, "truncate")
    np.testing.assert_allclose(
        cut["deepdip_reward"], [[-4, 12, -5, -6], [0, 0, 0, -6], [0, 0, 0, -6]]
    )
    np.testing.assert_allclose(cut["sum_of_squares"], expected["sum_of_squares"])


@pytest.mark.parametrize("batch", [7, 1024])
def test_order_shares_are_those_of_the_saved_games(batch):
    report = evaluate_player(
        "standard", make_bot("random"), make_bot("hold"), 21, max_years=3, samples=21, batch=batch
    )
    result, saved = report.result(), report.saved_games
    found, bounced = Counter(), 0
    for number, game in enumerate(saved):
        power = sorted(game["players"])[number % 7]
        for phase in game["phases"]:
            if not phase["name"].endswith("M"):
                continue
            for order in phase["orders"].get(power, []):
                unit, kind = " ".join(order.split()[:2]), order.split()[2]
                kind = "VIA" if order.endswith(" VIA") else kind
                found[kind] += 1
                bounced += kind in ("-", "VIA") and "bounce" in phase["results"][unit]
    names = {"H": "hold", "-": "move", "VIA": "convoyed_move", "S": "support", "C": "convoy"}
    assert found.keys() == names.keys()
    expected = {name: found[kind] / found.total() for kind, name in names.items()}
    expected["bounced"] = bounced / (found["-"] + found["VIA"])
    assert result["orders"] == pytest.approx(expected)


def orders(report: MatchReport) -> list[list]:
    return [[phase["orders"] for phase in game["phases"]] for game in report.saved_games]


@pytest.mark.parametrize(
    ("name", "bots", "options"),
    [
        ("small", ("random", "dumbbot"), {"batch": 5}),
        (
            "three",
            ("nash(profiles=2)+random", "coin+chaos"),
            {"press": "offers"},
        ),
        (load_map("three").with_teams("ENGLAND+ITALY", 8), ("chaos", "dumbbot"), {}),
    ],
)
def test_parts_join_to_the_whole(name, bots, options):
    """Each game has its seats and its seed by its number, whatever is played beside it."""
    settings = match_settings(name, seed=4, max_years=4, **options)
    games = 6 * len(settings.game_map.teams.names) - 1

    def play(k: int, n: int) -> Evaluation:
        players = [load_player(bot) for bot in bots]
        return evaluate_player(settings, *players, num_games=games, part=(k, n), samples=5)

    with pytest.raises(UserError, match="part 2 of 2"):
        play(2, 2)
    whole = play(0, 1)
    assert len(whole.number) == games + 1 and len(whole.saved_games) == 5
    for n in (2, 5):
        parts = [pickle.loads(pickle.dumps(play(k, n))) for k in reversed(range(n))]
        joined = MatchReport.join(parts)
        assert joined.result(per_game=True) == whole.result(per_game=True)
        assert [game["id"] for game in joined.saved_games] == [g["id"] for g in whole.saved_games]
        assert orders(joined) == orders(whole)
        assert joined.orders.given.tolist() == whole.orders.given.tolist()
        for one, other in zip(joined.outcomes, whole.outcomes):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(joined.seats, whole.seats)
        longer = replace(
            whole, settings=match_settings(settings, max_years=5), number=whole.number + 99
        )
        for wrong in (parts + parts[:1], [whole, longer]):
            with pytest.raises(UserError, match="parts of one match"):
                MatchReport.join(wrong)


@pytest.mark.parametrize("name", ["small", "three"])
def test_par_is_what_dumbbot_wins_in_each_seat(name):
    powers = load_map(name).powers
    dumbbot = make_bot("dumbbot")
    result = evaluate_player(name, dumbbot, dumbbot, 300 * len(powers), seed=3).result()
    par = result["par"]
    for figure in ("solo", "win"):
        for power in powers:
            known, found = par[figure][power], result["by_power"][power][figure]["value"]
            error = (known * (1 - known) / 300) ** 0.5  # of the 300 games
            assert abs(found - known) < 4 * error + 0.003, (figure, power)
