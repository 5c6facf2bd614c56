"""What objects show of themselves in a notebook or at Python's prompt: a board, or one line."""

import pytest

from diplomacy_engine import BOTS, Game, VectorGame, evaluate_player, load_player, make_bot


def test_a_notebook_shows_the_board_of_a_game():
    game = Game("small")
    game.submit("ENGLAND", ["A LON H"])
    assert game._repr_svg_() == game.to_svg() != Game("small")._repr_svg_()


def test_arrays_show_their_shapes():
    games = VectorGame("small", 4)
    decisions = games.decisions()
    assert repr(games) == "VectorGame('small', 4 games)"
    assert repr(decisions).startswith("Decisions(game int32[8], power int8[8], slot_start int32[9]")
    assert repr(games.observe(decisions)).startswith("Observation(board int8[8, 19, 10], ")
    assert repr(games.step(games.new_orders())).startswith("StepResult(ended int8[4], winner ")


@pytest.mark.parametrize("name", (*BOTS, "nash+dumbbot", "small-pure-1", "fast:small-pure-1"))
def test_a_player_shows_its_name(name):
    player = load_player(name)
    assert repr(player) == f"{type(player).__name__}({name!r})"


def test_a_report_shows_who_played():
    report = evaluate_player("small", make_bot("hold"), make_bot("random"), num_games=2)
    assert repr(report) == "Evaluation('hold' and 'random' on small, 2 games)"
