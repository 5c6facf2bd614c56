"""Draws by agreement and concessions: rules, many games at once, saved games, when bots vote."""

import json
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.games import play_randomly, random_orders
from support.tables import read_table
from support.webdip import history

from diplomacy_engine import MAP_NAMES, Game, UserError, VectorGame
from diplomacy_engine.constants import AGREED, RUNNING
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.textgame.imports.games import read_games


def reloaded(game: Game) -> Game:
    saved = json.loads(json.dumps(game.to_saved_game()))
    return type(game).from_saved_game(saved, game.map)


def with_votes(game: Game, *powers: str) -> Game:
    game.change_rules(draw_votes=True)
    for power in powers:
        game.vote(power)
    return game


def test_without_votes_a_game_is_as_before():
    games = [Game("small", max_years=3, draw_votes=votes) for votes in (False, True)]
    for game in games:
        play_randomly(game, random.Random(5), 20)
    plain, other = (game.to_saved_game() for game in games)
    assert other.pop("draw_votes") is True
    assert plain == other and not {"conceded", "draw_agreed", "draw_votes"} & set(plain)
    assert not any("votes" in phase for phase in plain["phases"])
    assert games[0].is_draw and not games[0].is_agreed


@settings(max_examples=25)
@example(2749, "standard")  # ends before retreats, with a unit still dislodged
@given(st.integers(0, 2**32), st.sampled_from(MAP_NAMES))
def test_games_with_votes_and_concessions_are_saved_and_gone_on_with(seed, name):
    rng = random.Random(seed)
    game = Game(name, max_years=4, draw_votes=True)
    for _ in range(60):
        if game.is_over:
            break
        alive = [p for p in game.powers if game.units[p] or game.centers[p] or p in game.dislodged]
        playing = [power for power in alive if power not in game.conceded]
        if rng.random() < 0.1 and len(playing) > 1:
            game.concede(rng.choice(playing))
            assert game.is_over == (len(playing) == 2)
            continue
        voters = [power for power in playing if rng.random() < 0.75]
        with_votes(game, *voters)
        for power, texts in random_orders(game, rng).items():
            game.submit(power, texts)
        other = reloaded(game)
        assert other.votes == sorted(voters) and other.conceded == game.conceded
        assert other.to_saved_game() == game.to_saved_game()
        agreed, position = len(voters) == len(playing), game.to_position()
        mine, theirs = game.adjudicate(), other.adjudicate()
        assert mine == theirs and game.to_state() == other.to_state()
        if agreed:
            parts, over = position.split("; ", 1)[1], f"Victory by: {', '.join(game.winners)}"
            assert game.to_position().split("; ", 1)[1] == f"{parts}; {over}"
    assert reloaded(game).to_state() == game.to_state(), "what was not played is no last order"


@pytest.mark.parametrize(
    ("change", "words"), read_table(__file__, "a_saved_game_that_says_nonsense_of_draws")
)
def test_a_saved_game_that_says_nonsense_of_draws(change, words):
    line = "standard S1905M; FRANCE A PAR, F BRE = PAR; ITALY A ROM = ROM; TURKEY = CON"
    saved = Game.from_position(line, draw_votes=True).to_saved_game()
    for key, value in change.items():
        (saved["phases"][-1] if key == "votes" else saved)[key] = value
    with pytest.raises(UserError, match=words):
        Game.from_saved_game(saved)


@pytest.mark.parametrize(("over", "agreed"), [("Drawn", True), ("Won", False), (None, False)])
def test_a_drawn_game_of_webdiplomacy(tmp_path, over, agreed):
    _, data = history("drawn")
    data |= {"gameOver": over} if over else {}
    (tmp_path / "history.json").write_text(json.dumps(data))
    (saved,) = read_games(tmp_path / "history.json")
    assert Game.from_saved_game(saved).is_agreed == agreed
    assert make_replay(saved).result.startswith("a draw agreed by" if agreed else "a draw between")


def test_only_the_rows_played_are_voted_on():
    games = VectorGame("small", 4, auto_reset=False, threads=1)
    games.state.votes[:] = True
    result = games.step(games.new_orders(), np.array([2, 0]))
    assert result.ended.tolist() == [AGREED, AGREED]
    assert games.state.end.tolist() == [AGREED, RUNNING, AGREED, RUNNING]
    again = games.step(games.new_orders())
    assert again.ended.tolist() == [RUNNING, AGREED, RUNNING, AGREED]
