"""Matches in which players vote for a draw from a year on, and how their results tell it."""

from diplomacy_engine import Game, evaluate_player, make_bot
from diplomacy_engine.constants import AGREED


def evaluated(**settings):
    return evaluate_player(
        "standard", make_bot("dumbbot"), make_bot("dumbbot"), 14, seed=3, threads=1, **settings
    )


def test_games_end_in_draws_from_a_year_on():
    report = evaluated(draws_after=1903, max_years=5, samples=3)
    ended, years = report.outcomes.ended, report.outcomes.years
    assert (ended == AGREED).all() and (years == 3).all()
    result = report.result(per_game=True)
    assert result["draws"]["after"] == 1903
    assert result["draws"]["agreed"]["value"] == result["overall"]["draw"]["value"] == 1
    assert result["draws"]["year_limit"]["value"] == 0 and "par" not in result
    assert result["overall"]["win"]["value"] == 0, "only the year limit has a winner on points"
    for saved in report.saved_games:
        game = Game.from_saved_game(saved)
        assert game.is_agreed and saved["phases"][-2]["name"] == "S1903M"
        assert saved["phases"][-2]["votes"] == game.winners
