"""Powers under other names: whatever has an axis of powers permutes, and nothing else changes.

The powers of a map are numbered by their names, so renaming them in a circle moves every number on
by one. What a power sees is relative to it and must be equal; other arrays must be permuted.
"""

import copy
from typing import NamedTuple

import numpy as np
import pytest
import torch
from support.maps import renamed
from support.self_play import CPU
from support.tables import slow_but

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame, load_map, make_bot, order_numbers
from diplomacy_engine.clock import Clock
from diplomacy_engine.environments import parallel_env
from diplomacy_engine.environments.pettingzoo_env import STEPS
from diplomacy_engine.games.observation import POWER
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.startup import Setup
from diplomacy_engine.players.bots import BOTS
from diplomacy_engine.press.talk_views import SLOTS
from diplomacy_engine.scoring.outcomes import figure_values
from diplomacy_engine.scoring.rewards import REWARDS, make_reward, reward_input
from diplomacy_learners import press

GAMES = 12
BY_POWER = ("peace", "closed", "breaches", "offers")  # parts of an observation, by power


def permuted(record: NamedTuple, number: np.ndarray) -> dict[str, np.ndarray]:
    """Return a record's arrays as they must be under the old names, by the shapes they declare."""
    return {
        name: turned(name, getattr(record, name), hint.__metadata__[0].split(", "), number)
        for name, hint in type(record).__annotations__.items()
    }


def turned(name: str, array: np.ndarray, axes: list[str], number: np.ndarray, first: int = 0):
    """Return an array whose `axes` stand from the `first` on, for powers of these numbers."""
    for axis, letter in enumerate(axes):
        array = np.take(array, number, first + axis) if letter == "P" else array
    if name in ("winner", "choice"):  # numbers of powers
        slots = SLOTS if name == "choice" else 1
        renumbered = np.argsort(number)[array // slots] * slots + array % slots
        array = np.where(array < 0, array, renumbered)
    return array


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
    "settings",
    [{}, *({"press": kind, "binding": bound} for kind in STEPS for bound in (True, False))],
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
            own = game_map.power_index[agent]
            if "offer" in actions[agent] and steps % 3 != own:  # numbers rank offers that clash
                actions[agent]["offer"][2] = own  # is none
        seen, rewards, *_, infos = env.step(actions)
        theirs = {new[agent]: copy.deepcopy(action) for agent, action in actions.items()}
        for action in theirs.values() if settings else ():
            reply = "wish" if "wish" in action else "answer"
            action[reply][number] = action[reply].copy()
            if "offer" in action:
                action["offer"][2] = number[action["offer"][2]]  # to whom
        also, same_rewards, *_ = other.step(theirs)
        assert {new[agent]: paid for agent, paid in rewards.items()} == same_rewards
        steps += 1
    assert steps >= 6 and not other.agents


@pytest.mark.parametrize("talk", [None, *press.KINDS])
def test_names_of_powers_change_no_buffer(talk):
    """All powers are the learner's, and give the same orders after the same talk."""
    game_map = load_map("three")
    other_map, number = renamed(game_map)
    shared = {"map": "three", "seed": 1, "num_envs": 6, "num_steps": 40, "hidden": 8}
    shared |= {"num_layers": 1, "max_years": 4, "learner_seats": 3, "average_exponent": 0.0}
    spec, kind = ppo.LEARNER_SPEC, ppo.Run
    args = ppo.Args(**shared)
    if talk:
        spec, kind = press.LEARNER_SPEC, press.TalkRun
        args = press.Args(**shared, press=talk, binding="no")
    pair = [kind(Setup(spec, args, m, CPU), Ranks()) for m in (game_map, other_map)]
    games, powers = np.arange(args.num_envs), np.arange(3)
    for run, seat in zip(pair, (powers, np.argsort(number))):
        members = np.zeros((len(games), 3), np.int64)
        run.fill_seats(games, members == 0, np.tile(seat, (len(games), 1)), members)
    rng, clock = np.random.default_rng(1), Clock()
    for _ in range(30):
        if talk:
            run, other = pair
            run.phase_talk = run.kind.hold(run.press, run, run.games.decisions(), clock)
            for name, hint in run.kind.views.__annotations__.items():
                if name not in run.phase_talk:
                    continue
                array = np.take(run.phase_talk[name], np.argsort(number), 1)
                axes = hint.__metadata__[0].split(", ")
                other.phase_talk[name] = turned(name, array, axes[1:], np.argsort(number), 2)
        picked = None
        for run, old in zip(pair, (powers, np.argsort(number))):
            own = run.games.decisions()
            own = run.agent.legal_orders(
                run.games, own.take(np.lexsort((old[own.power], own.game)))
            )
            most = np.diff(own.order_start)
            picked = rng.integers(0, most) if picked is None else picked
            obs = run.observe(run.agent, own.game, own.power)
            seen = run.games.observe_powers(own.game, own.power).board.sum(2)
            values = torch.from_numpy(np.sin(seen).mean(1).astype(np.float32))
            action = ppo.Action(picked, logprob=values / 2, value=values)
            orders = run.games.new_orders()
            run.games.write_orders(orders, own, order_numbers(own, picked))
            ppo.Run.store(run, Experience(obs, own, picked), action, orders)
            result = run.games.step(orders)
            ppo.pay_learner(run, result)
            run.games.reset(ppo.games_over(run, result)[0])
    ours, theirs = (run.buffer.take_batch(ppo.compute_gae(run.buffer, 0.99, 0.9)) for run in pair)
    for name in ours._fields[1:]:
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), atol=1e-5)
    assert len(ours.returns) > 100 and ours.returns.any()
    decisions, renumbered = ours.experience.decisions, theirs.experience.decisions
    renumbered = renumbered._replace(power=np.argsort(number)[renumbered.power])
    for name, array in decisions._asdict().items():
        np.testing.assert_array_equal(getattr(renumbered, name), array, name)
    views, also = ours.experience.obs, theirs.experience.obs
    np.testing.assert_array_equal(also.power, number[views.power])
    for name, array in permuted(also, number).items() if talk else ():
        np.testing.assert_array_equal(array, getattr(views, name), name)


# Searches take minutes, and `brane` half of one; `lookahead` takes longer than that.
QUICK = [bot for bot in BOTS if bot not in ("brane", "lookahead", "mcts", "mcts-plain", "osla")]


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
