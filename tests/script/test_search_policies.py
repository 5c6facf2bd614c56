"""Searches on trained policies: draws by their probability, boards by paid reward and value."""

import itertools

import numpy as np
import pytest

from diplomacy_engine import VectorGame, load_map, load_player, make_bot, reward_input
from diplomacy_engine.constants import FALL_MOVEMENT, NONE, RUNNING
from diplomacy_engine.games.draws import phase_seeds
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.policy.player import Objective
from diplomacy_engine.players.search.best_response import FAST, BestResponse
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.leaves import Critic, Leaves
from diplomacy_engine.scoring.mixes import make_reward_mix

THREE, STANDARD = "runs/reference/three__pure__1", "runs/reference/standard__pure__2"


def after_a_year(name: str, count: int, fall: bool = False) -> VectorGame:
    games = VectorGame(name, count, seed=8, threads=1, auto_reset=False)
    year = games.board.first_year + 1
    while (early := games.state.year < year).any():
        games.step(orders_of(games, make_bot("dumbbot")), np.flatnonzero(early))
    if fall:
        while (early := games.state.phase < FALL_MOVEMENT).any():
            games.step(orders_of(games, make_bot("dumbbot")), np.flatnonzero(early))
    return games


def test_joint_orders_are_drawn_as_often_as_their_probability_says():
    games, draws = after_a_year("three", 3), PolicyDraws(load_player(THREE))
    asked = games.decisions()
    count = 4000
    drawn, logprob = draws.draw(games, asked, phase_seeds(games, asked.game, asked.power, 9, count))
    own = games.state.unit_power[asked.game] == asked.power[:, None]
    assert ((drawn != NONE) == own[:, None]).all()  # only who moves has orders
    statistic, freedom = 0.0, 0
    for d in range(asked.count):
        _, first, tally = np.unique(drawn[d], axis=0, return_index=True, return_counts=True)
        expected = count * np.exp(logprob[d, first].astype(float))
        assert expected.sum() <= count * 1.001
        often = expected > 5
        rest = count - expected[often].sum(), count - tally[often].sum()
        parts = np.append(expected[often], rest[0]), np.append(tally[often], rest[1])
        seen = parts[0] > 5
        statistic += ((parts[1] - parts[0])[seen] ** 2 / parts[0][seen]).sum()
        freedom += seen.sum() - 1
    assert freedom > 10
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_the_likeliest_orders_are_those_of_greedy_play():
    games, player = after_a_year("three", 5), load_player(THREE, greedy=True)
    asked = games.decisions()
    likeliest, logprob = PolicyDraws(player).likeliest(games, asked)
    numbers = player.act(games, asked)
    row = asked.slot_decision
    assert likeliest[row, 0, asked.slot_province].tolist() == numbers.tolist()
    one = FAST._replace(candidates=1)
    search = BestResponse(PolicyDraws(player), Critic(player), "search", settings=one)
    assert search.act(games, asked).tolist() == numbers.tolist()
    assert (logprob <= 0).all()


@pytest.mark.parametrize("fall", [False, True])
def test_a_board_is_worth_what_was_paid_and_the_discounted_value(fall):
    """Looked at when the power decides next; until then dumbbot plays for the others."""
    policy = load_player(STANDARD)
    games, critic = after_a_year("standard", 12, fall), Critic(policy)
    asked = games.decisions()
    rows, powers = asked.game, asked.power
    orders = orders_of(games, make_bot("dumbbot"))[rows]
    seeds = np.arange(len(rows), dtype=np.uint64) + np.uint64(99)
    found = Leaves(games, critic, make_bot("dumbbot")).evaluate(games, rows, powers, orders, seeds)
    reward = make_reward_mix("sum_of_squares=1,center_delta=1,draw_size=1")
    assert Objective.of(policy.settings).gamma == 0.99
    for i in range(0, len(rows), 7):
        one = games.spare(1)
        one.copy_from(games, rows[[i]], np.zeros(1, int))
        one.seed_games(np.zeros(1, int), seeds[[i]])
        given, total, power = orders[[i]], 0.0, powers[i]
        while True:
            result = one.step(given)
            total += reward(reward_input(result, one.board.victory_centers), 1.0)[0, power]
            if result.ended[0] != RUNNING or not result.alive[0, power]:
                break
            if (one.decisions().power == power).any():
                obs = policy.observe(one, np.zeros(1, int), np.array([power], np.int8))
                total += 0.99 * policy.agent.values(obs)[0]
                break
            given = orders_of(one, make_bot("dumbbot"))
        assert found[i] == pytest.approx(total, abs=1e-5)


def test_playing_on_sees_a_phase_further():
    policy = load_player(THREE)
    games = after_a_year("three", 6)
    asked = games.decisions()
    values = []
    for ahead in (0, 1):
        settings = FAST._replace(candidates=4, profiles=6, halving=False, ahead=ahead)
        search = BestResponse(PolicyDraws(policy), Critic(policy), "search", settings=settings)
        found = search.search(games, asked)
        again = search.search(games, asked.take(np.arange(1)))
        np.testing.assert_allclose(again.values[0], found.values[0], atol=1e-5)
        values.append(found.values)
    tried = ~np.isnan(values[0])
    assert tried.any() and np.abs(values[0][tried] - values[1][tried]).mean() > 1e-3
    assert np.corrcoef(values[0][tried], values[1][tried])[0, 1] > 0.5


@pytest.mark.parametrize("protocol", ["mutual", "offers"])
def test_a_policy_that_talks_can_search(protocol):
    """What it sees has more parts than what others see; where nobody talks there are no deals."""
    press = pytest.importorskip("diplomacy_learners.press", exc_type=ImportError)
    learner = press.LEARNER_SPEC
    args = learner.args_class(map="three", hidden=8, press=protocol)
    agent = learner.make_agent(vars(args), load_map("three"))
    policy = learner.make_player(agent, "new", False, vars(args))
    games = after_a_year("three", 2)
    asked = games.decisions()
    settings = FAST._replace(candidates=2, draws=2, profiles=1)
    search = BestResponse(PolicyDraws(policy), Critic(policy), "search", settings=settings)
    numbers = search.act(games, asked)
    legal = [set(asked.order[a:b]) for a, b in itertools.pairwise(asked.order_start)]
    assert all(number in orders for number, orders in zip(numbers, legal, strict=True))
