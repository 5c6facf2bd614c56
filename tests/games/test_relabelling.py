"""Powers under other names: whatever has an axis of powers permutes, and nothing else changes.

The powers of a map are numbered by their names, so renaming them in a circle moves every number on
by one. What a power sees is relative to it and must be equal; other arrays must be permuted.
"""

import copy
from typing import NamedTuple

import numpy as np
import pytest
from support.maps import renamed
from support.tables import slow_but

from diplomacy_engine import VectorGame, load_map, make_bot
from diplomacy_engine.environments import parallel_env
from diplomacy_engine.games.observation import POWER
from diplomacy_engine.players.bots import BOTS
from diplomacy_engine.scoring.outcomes import figure_values
from diplomacy_engine.scoring.rewards import REWARDS, make_reward, reward_input

GAMES = 12
BY_POWER = ("peace", "closed", "breaches")  # parts of an observation with absolute numbers


def permuted(record: NamedTuple, number: np.ndarray) -> dict[str, np.ndarray]:
    """Return a record's arrays as they must be under the old names, by the shapes they declare."""
    arrays = {}
    for name, hint in type(record).__annotations__.items():
        array = getattr(record, name)
        axes = hint.__metadata__[0].split(", ")
        for axis, letter in enumerate(axes):
            array = np.take(array, number, axis) if letter == "P" else array
        if name == "winner":
            array = np.where(array < 0, array, np.argsort(number)[array])
        arrays[name] = array
    return arrays


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_names_of_powers_change_no_game(name):
    game_map = load_map(name)
    other_map, number = renamed(game_map)
    games, others = (VectorGame(m, GAMES, 3, max_years=6) for m in (game_map, other_map))
    assert others.vocabulary.texts == games.vocabulary.texts
    rng = np.random.default_rng(5)
    for _ in range(40):
        decisions, theirs = games.decisions(), others.decisions()
        rows = np.lexsort((np.argsort(number)[theirs.power], theirs.game))
        theirs = theirs.take(rows)
        np.testing.assert_array_equal(theirs.power, number[decisions.power])
        for field in set(decisions._fields) - {"power"}:
            np.testing.assert_array_equal(getattr(theirs, field), getattr(decisions, field))
        seen = games.observe_powers(decisions.game, decisions.power)
        also = others.observe_powers(theirs.game, theirs.power)
        np.testing.assert_array_equal(also.scalars[:, POWER], number[seen.scalars[:, POWER]])
        also.scalars[:, POWER] = seen.scalars[:, POWER]
        for field, array in seen._asdict().items():
            np.testing.assert_array_equal(getattr(also, field), array, field)

        picked = decisions.order[
            rng.integers(decisions.order_start[:-1], decisions.order_start[1:])
        ]
        results = []
        for each, pending in ((games, decisions), (others, theirs)):
            orders = each.new_orders()
            each.write_orders(orders, pending, picked)
            results.append((each.step(orders), each.outcomes()))
        for ours, others_too in zip(*results):
            for field, array in permuted(others_too, number).items():
                np.testing.assert_array_equal(array, getattr(ours, field), field)
        victory = games.board.victory_centers
        for reward in REWARDS:
            paid, also_paid = (make_reward(reward)(reward_input(r[0], victory)) for r in results)
            np.testing.assert_array_equal(also_paid[:, number], paid, reward)
        figures, same = (figure_values(r[1], victory) for r in results)
        for figure, values in figures.items():
            np.testing.assert_array_equal(same[figure][:, number], values, figure)


@pytest.mark.parametrize(
    "settings", [{}, {"press": "mutual"}, {"press": "mutual", "binding": False}]
)
def test_names_of_powers_change_no_environment(settings):
    game_map = load_map("three")
    other_map, number = renamed(game_map)
    powers = list(game_map.powers)
    new = {name: powers[number[p]] for p, name in enumerate(powers)}
    env, other = (parallel_env(map=m, max_years=3, **settings) for m in (game_map, other_map))
    (seen, infos), (also, _) = env.reset(seed=2), other.reset(seed=2)
    rng, steps = np.random.default_rng(1), 0
    while env.agents:
        assert {new[agent] for agent in env.agents} == set(other.agents)
        for agent in env.agents:
            ours, theirs = seen[agent], also[new[agent]]
            theirs["scalars"][POWER] = ours["scalars"][POWER]
            for part, array in ours.items():
                same = theirs[part][number] if part in BY_POWER else theirs[part]
                np.testing.assert_array_equal(same, array, part)
        actions = {}
        for agent in env.agents:
            env.action_space(agent).seed(int(rng.integers(2**31)))
            actions[agent] = env.action_space(agent).sample(infos[agent]["action_mask"])
        seen, rewards, *_, infos = env.step(actions)
        theirs = {new[agent]: copy.deepcopy(action) for agent, action in actions.items()}
        for action in theirs.values() if settings else ():
            action["wish"][number] = action["wish"].copy()
        also, same_rewards, *_ = other.step(theirs)
        assert {new[agent]: paid for agent, paid in rewards.items()} == same_rewards
        steps += 1
    assert steps >= 6 and not other.agents


# Searches take minutes; `lookahead` takes longer than that.
QUICK = [bot for bot in BOTS if bot not in ("lookahead", "mcts", "mcts-plain", "osla")]


@pytest.mark.parametrize("name", slow_but(QUICK, [bot for bot in BOTS if bot != "lookahead"]))
def test_names_of_powers_change_no_bot(name):
    """Draws depend on a power's number, so that only the means of many games are equal."""
    game_map, games = load_map("three"), 200
    other_map, number = renamed(game_map)
    centers = []
    for each in (game_map, other_map):
        vector, bot = VectorGame(each, games, 11, max_years=8), make_bot(name)
        for _ in range(12):
            decisions, orders = vector.decisions(), vector.new_orders()
            vector.write_orders(orders, decisions, bot.act(vector, decisions))
            step = vector.step(orders)
        centers.append(step.centers_before)
    ours, theirs = centers[0], centers[1][:, number]
    error = np.sqrt((ours.var(0) + theirs.var(0)) / games)
    assert (np.abs(ours.mean(0) - theirs.mean(0)) <= 5 * error).all()
