"""Best responses to known others, found among all joint orders; searches can be repeated."""

import re

import numpy as np
import pytest
from support.search import AllOrders, OwnCenters, joint_orders

from diplomacy_engine import VectorGame, load_player, make_bot
from diplomacy_engine.constants import FALL_MOVEMENT, NONE, RUNNING
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.protocols import ReasoningPlayer
from diplomacy_engine.players.search.assumptions import Assumptions
from diplomacy_engine.players.search.best_response import FAST, BestResponse, distinct
from diplomacy_engine.players.search.draws import PlayerDraws
from diplomacy_engine.players.search.leaves import ROOM


def played(name: str, count: int, moves: int, seed: int = 1, threads: int = 1) -> VectorGame:
    """Return games before a movement phase, after so many of them played by dumbbot."""
    games = VectorGame(name, count, seed=seed, threads=threads, auto_reset=False)
    year, fall = games.board.first_year + moves // 2, moves % 2
    state = games.state
    while len(
        early := np.flatnonzero(
            (state.year < year) | ((state.year == year) & (state.phase < FALL_MOVEMENT * fall))
        )
    ):
        games.step(orders_of(games, make_bot("dumbbot")), early)
    return games


def search_player(**changes) -> BestResponse:
    dumbbot = PlayerDraws(make_bot("dumbbot"))
    return BestResponse(dumbbot, OwnCenters(), "search", settings=FAST._replace(**changes))


@pytest.mark.parametrize("moves", [0, 1])
def test_the_best_of_all_joint_orders_is_found(moves):
    """Against powers that hold, the choice takes as many centers as any joint order."""
    games = played("small", 1, moves)
    for decision in range(games.decisions().count):
        mine = games.decisions().take(np.array([decision]))
        every = joint_orders(mine)
        settings = FAST._replace(draws=every, candidates=every, profiles=2, halving=False, sure=0.0)
        holding = Assumptions({"hold": PlayerDraws(make_bot("hold"))})
        player = BestResponse(AllOrders(), OwnCenters(), "all", holding, settings)
        found = player.search(games, mine)
        assert found.count[0] == every  # no two are the same
        best = 0.0
        power, hold = mine.power[0], orders_of(games, make_bot("hold"))
        for k in range(every):
            own = found.candidates[0, k]
            after = games.spare(1)
            after.copy_from(games, np.zeros(1, int), np.zeros(1, int))
            after.step(np.where(own != NONE, own, hold[0])[None])
            while not (after.decisions().power == power).any() and after.state.end[0] == RUNNING:
                after.step(after.new_orders())
            worth = OwnCenters().look(after, np.zeros(1, int), np.array([power]))[0]
            assert found.values[0, k].tolist() == [worth, worth]
            best = max(best, worth)
        assert found.values[0, found.choice[0], 0] == best > 0
        expected = np.where(found.candidates[0, 0] != NONE, NONE, hold[0])
        assert (found.profiles[0] == expected).all()


def test_candidates_are_distinct_and_the_first_is_the_first_draw():
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, 3, (5, 40, 4)).astype(np.int32)
    logprob = rng.normal(size=(5, 40)).astype(np.float32)
    for most in (1, 2, 12, 60):
        kept, count = distinct(drawn, logprob, most)
        for d in range(5):
            chosen = drawn[d, kept[d, : count[d]]]
            every = len(np.unique(drawn[d], axis=0))
            assert len(np.unique(chosen, axis=0)) == count[d] == min(most, every)
            assert kept[d, 0] == 0


def test_the_likeliest_are_among_the_candidates_and_a_quarter_is_as_drawn():
    drawn = np.arange(40, dtype=np.int32).reshape(1, 40, 1)
    kept, _ = distinct(drawn, np.arange(40, dtype=np.float32)[None], 12)
    assert kept[0].tolist() == [0, 39, 38, 37, 36, 35, 34, 33, 32, 1, 2, 3]


def test_no_more_leaves_than_allowed_and_parts_are_like_the_whole(monkeypatch):
    games = played("three", 40, 5)
    asked = games.decisions()
    player = search_player(halving=False)
    whole = player.search(games, asked)
    most = asked.count * player.settings.candidates * player.settings.profiles
    assert 0 < player.leaves(games).tried <= most
    halved = search_player()
    halved.search(games, asked)
    assert halved.leaves(games).tried < player.leaves(games).tried
    monkeypatch.setattr("diplomacy_engine.players.search.leaves.ROOM", 5)
    small = search_player(halving=False)
    parts = small.search(games, asked)
    assert small.leaves(games).spare.num_games == 5 < ROOM
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.choice, whole.choice)


@pytest.mark.parametrize(
    ("profiles", "rounds"),
    [(2, [0, 2]), (4, [0, 4]), (14, [0, 4, 8, 14]), (64, [0, 8, 16, 32, 64])],
)
def test_the_worse_half_is_dropped_each_time_that_twice_as_many_profiles_were_met(profiles, rounds):
    assert FAST._replace(profiles=profiles).rounds() == rounds
    assert FAST._replace(profiles=profiles, halving=False).rounds() == [0, profiles]


def test_one_candidate_is_the_players_own_draw():
    games = played("three", 20, 5)
    asked = games.decisions()
    found = search_player(candidates=1).search(games, asked)
    assert (found.count == 1).all() and (found.choice == 0).all() and np.isnan(found.values).all()


def test_the_own_draw_is_kept_unless_another_is_surely_better():
    games = played("standard", 6, 5)
    asked = games.decisions()
    certain = search_player(sure=100.0).search(games, asked)
    for d, choice in enumerate(certain.choice):
        ahead = certain.values[d, choice] - certain.values[d, 0]
        ahead = ahead[~np.isnan(ahead)]
        assert choice == 0 or ahead.std() == 0 < ahead.mean()
    assert (search_player(sure=0.0).search(games, asked).choice != 0).mean() > 0.1


@pytest.mark.parametrize(
    "name", ["lookahead", "osla", "mcts", "mcts-plain", "fast", "fast(assume=infer:self,dumbbot)"]
)
def test_what_a_search_orders_is_golden(name, golden):
    """With what it compared, in each phase of a short game; a policy gives fast its draws."""
    player = load_player(f"{name}:three-pure-1" if name.startswith("fast") else name)
    games, lines = VectorGame("three", 1 + (name[0] != "m"), seed=5, auto_reset=False), []
    texts = games.vocabulary.texts

    def words(rows):
        return ["; ".join(texts[n] for n in row if n != NONE) for row in rows]

    for number in range(4):
        decisions = games.decisions()
        if isinstance(player, ReasoningPlayer) and number < 2:
            for one in player.reasons(games, decisions):
                shown = one._replace(candidates=words(one.candidates), expected=words(one.expected))
                for key, part in shown._asdict().items():
                    lines.append(f"  {key} {part.tolist() if hasattr(part, 'tolist') else part}")
        orders = orders_of(games, player)
        lines += words(orders)
        games.step(orders)
    golden(re.sub("[^a-z]+", " ", name), lines, rel=0.01)
