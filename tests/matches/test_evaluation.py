"""Matches: seats, figures by hand-worked games, intervals, repeatability, saved games."""

import json
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from diplomacy_engine import Game, Map, MatchReport, UserError, load_map, load_player, make_bot
from diplomacy_engine.constants import AGREED, NONE, SOLO, YEAR_LIMIT
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


def test_result_of_an_evaluation():
    report = evaluate_player(
        "three", make_bot("dumbbot"), make_bot("hold"), 100, seed=5, max_years=12, samples=4
    )
    result, saved_games = report.result(per_game=True), report.saved_games
    json.dumps(result, allow_nan=False)
    assert not {"draws", "par", "press", "teams", "team_victory", "by_team"} & set(result)
    assert (result["map"], result["player"], result["against"]) == ("three", "dumbbot", "hold")
    assert (result["games"], result["seed"], result["max_years"]) == (102, 5, 12)
    assert list(result["by_power"]) == ["ENGLAND", "ITALY", "RUSSIA"]
    for part in (result["overall"], *result["by_power"].values()):
        assert tuple(part) == FIGURES
        value = {name: part[name]["value"] for name in FIGURES}
        assert value["solo"] + value["draw"] + value["loss"] == pytest.approx(1)
        assert value["survival"] + value["elimination"] == pytest.approx(1)
        for figure in part.values():
            assert list(figure) == ["value", "low", "high"]
            assert figure["low"] <= figure["value"] <= figure["high"]
    assert result["overall"]["win"]["value"] > 0.95
    for name in FIGURES:
        mean = np.mean([part[name]["value"] for part in result["by_power"].values()])
        assert result["overall"][name]["value"] == pytest.approx(mean)
    assert [game["id"] for game in saved_games] == [
        "5-0-ENGLAND",
        "5-1-ITALY",
        "5-2-RUSSIA",
        "5-3-ENGLAND",
    ]
    rows = result["per_game"]
    assert [row["game"] for row in rows] == list(range(1, 103))
    assert [row["power"] for row in rows[:4]] == ["ENGLAND", "ITALY", "RUSSIA", "ENGLAND"]
    for figure in FIGURES:
        mean = np.mean([row[figure] for row in rows])
        assert mean == pytest.approx(result["overall"][figure]["value"])
    dumbbot, hold = "dumbbot", "hold"
    assert saved_games[1]["players"] == {"ENGLAND": hold, "ITALY": dumbbot, "RUSSIA": hold}


def test_games_end_in_draws_from_a_year_on():
    bots, rules = [make_bot("dumbbot")] * 2, {"draws_after": 1903, "max_years": 5}
    report = evaluate_player("standard", *bots, 14, seed=3, samples=3, **rules)
    assert (report.outcomes.ended == AGREED).all() and (report.outcomes.years == 3).all()
    result = report.result(per_game=True)
    assert result["draws"]["after"] == 1903
    assert result["draws"]["agreed"]["value"] == result["overall"]["draw"]["value"] == 1
    assert result["draws"]["year_limit"]["value"] == 0 and "par" not in result
    assert result["overall"]["win"]["value"] == 0, "only the year limit has a winner on points"
    for saved in report.saved_games:
        game = Game.from_saved_game(saved)
        assert game.is_agreed and saved["phases"][-2]["name"] == "S1903M"
        assert saved["phases"][-2]["votes"] == game.winners


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


def test_par_is_said_only_of_the_games_that_it_was_measured_on():
    dumbbot, hold = make_bot("dumbbot"), make_bot("hold")
    teams = load_map("three").with_teams("ENGLAND+ITALY", 0)
    facts = load_map("small").facts
    changed = Map(facts | {"victory_supply_centers": facts["victory_supply_centers"] + 1}, "small")
    for game_map, against, years in [
        ("small", hold, None),
        ("small", dumbbot, 3),
        (teams, dumbbot, None),
        (changed, dumbbot, None),
    ]:
        result = evaluate_player(game_map, hold, against, 2, max_years=years).result()
        assert "par" not in result
    result = evaluate_player("small", hold, dumbbot, 2).result()
    assert result["par"]["player"] == "dumbbot"
