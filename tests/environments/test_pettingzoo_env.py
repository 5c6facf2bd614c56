"""The PettingZoo environment: its interface, and that it plays the same game."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test

from diplomacy_engine import MAP_NAMES, UserError, VectorGame, make_bot
from diplomacy_engine.constants import phase_kind
from diplomacy_engine.environments.pettingzoo_env import env, parallel_env
from diplomacy_engine.scoring.rewards import make_reward, reward_input


@pytest.mark.parametrize("name", MAP_NAMES)
def test_parallel_api(name):
    parallel_api_test(parallel_env(map=name), num_cycles=100)
    parallel_seed_test(lambda: parallel_env(map=name), num_cycles=50)


@pytest.mark.filterwarnings("ignore::UserWarning")  # names of agents, Dict spaces
def test_aec():
    api_test(env(map="three"), num_cycles=50)
    seed_test(lambda: env(map="small"), num_cycles=50)


def sample(game, infos) -> dict:
    return {
        name: game.action_space(name).sample(infos[name]["action_mask"]) for name in game.agents
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["three", "small"])
def test_parallel_api_with_press(name):
    parallel_api_test(parallel_env(map=name, press="mutual"), num_cycles=100)
    parallel_seed_test(lambda: parallel_env(map=name, press="mutual"), num_cycles=40)
    if name == "small":
        api_test(env(map=name, press="mutual"), num_cycles=30)


def test_wishes_then_orders():
    """A movement phase has two steps; peace takes orders from the masks of the second."""
    game = parallel_env(map="three", press="mutual", strict=True, max_years=8)
    peace = bound = 0
    for number, space in enumerate(game.action_spaces.values()):
        space.seed(number)
    for seed in range(8):
        seen, infos = game.reset(seed=seed)
        while game.agents:
            phase, wishing = game.game.phase, phase_kind(game.game.phase) == "movement"
            before = game.game.to_state()
            assert {infos[n]["step"] for n in game.agents} == {"wishes" if wishing else "orders"}
            if wishing:
                actions = sample(game, infos)
                pairs = {
                    (p, q)
                    for p, name in enumerate(game.possible_agents)
                    if name in game.agents
                    for q in np.flatnonzero(actions[name]["wish"])
                }
                assert all(p != q for p, q in pairs)
                seen, rewards, terminated, truncated, infos = game.step(actions)
                assert game.game.to_state() == before and set(rewards.values()) == {0.0}
                assert not any((*terminated.values(), *truncated.values()))
                for p, name in enumerate(game.possible_agents):
                    if name not in game.agents:
                        continue
                    wanted = [(p, q) in pairs and (q, p) in pairs for q in range(3)]
                    assert seen[name]["peace"].tolist() == wanted
                    assert seen[name]["closed"].any(1).tolist() <= wanted
                    assert game.observation_space(name).contains(seen[name])
                    masks = infos[name]["action_mask"]
                    assert not any(may for _, may in masks["wish"])
                    peace += sum(wanted)
                    # A bound unit has fewer orders than the position would give it.
                    texts = game.game.units[name]
                    codes = [text.split()[1][:3] for text in texts]
                    for text, code in zip(texts, codes):
                        v = game.game.map.province_index[code]
                        left = int(masks["orders"][v].sum())
                        fewer = left < len(game.game.legal_orders(text))
                        assert fewer <= bool(seen[name]["bound"][v])
                        bound += fewer
                assert game.game.phase == phase
            seen, rewards, terminated, truncated, infos = game.step(sample(game, infos))
    assert peace > 20 and bound > 5


def test_wrong_wishes():
    game = parallel_env(map="small", press="mutual")
    game.reset(seed=1)
    nothing = {"orders": np.zeros(19, int), "wish": np.zeros(2, int)}
    for wrong, words in (
        (np.zeros(19, int), "dictionary of orders and wish"),
        ({"orders": np.zeros(19, int)}, "dictionary of orders and wish"),
        (nothing | {"wish": np.zeros(3, int)}, "shape"),
        (nothing | {"wish": np.array([0, 2])}, "must be 0 or 1"),
        (nothing | {"orders": np.zeros(3, int)}, "shape"),
    ):
        with pytest.raises(UserError, match=words):
            game.step({"ENGLAND": nothing, "RUSSIA": wrong})
    with pytest.raises(UserError, match="press must be 'mutual'"):
        parallel_env(press="offers")


def test_it_plays_the_game():
    """The same orders in a VectorGame lead to the same ends, rewards and eliminations."""
    game = parallel_env(map="three", reward="deepdip", strict=True, max_years=12)
    games = VectorGame("three", 1, max_years=12, auto_reset=False)
    eliminated = limits = 0
    for seed in range(12):
        _, infos = game.reset(seed=seed)
        for name, space in game.action_spaces.items():
            space.seed(seed + len(name))
        games.reset()
        alive = set(game.possible_agents)
        while game.agents:
            assert set(game.agents) == alive
            actions = sample(game, infos)
            orders = games.new_orders()
            for name in game.possible_agents:
                for v, k in enumerate(actions.get(name, ())):
                    if k:
                        orders[0, v] = games.table.province_first[v] + k - 1
            seen, rewards, terminated, truncated, infos = game.step(actions)
            result = games.step(orders)
            paid = make_reward("deepdip")(reward_input(result, games.board.victory_centers))[0]
            assert game.game.units == {
                name: units for name, units in game.game.from_row(games, 0).units.items()
            }
            for power, name in enumerate(game.possible_agents):
                if name in alive:
                    assert rewards[name] == paid[power] and infos[name]["illegal_orders"] == 0
                    assert terminated[name] + truncated[name] <= 1
                    gone = not result.alive[0, power]
                    eliminated += gone
                    assert terminated[name] == (gone or result.ended[0] == 1)
                    assert truncated[name] == (not gone and result.ended[0] == 2)
                    limits += truncated[name]
            assert set(seen) == set(rewards) == set(infos) == alive
            alive = {name for name in alive if not (terminated[name] or truncated[name])}
    assert eliminated and limits


def test_warm_ups_and_seeds():
    game = parallel_env(map="small", start="random", warm_up_phases=15)
    phases = set()
    for seed in range(15):
        seen, infos = game.reset(seed=seed)
        phases.add(game.game.phase)
        assert data_equivalence((seen, infos), game.reset(seed=seed), exact=True)
    assert len(phases) > 4


def test_bad_input():
    with pytest.raises(ValueError, match="smal"):
        parallel_env(map="smal")
    with pytest.raises(ValueError, match="did you mean 'score'"):
        parallel_env(reward="scores")
    with pytest.raises(ValueError, match="this environment: opponents: "):
        parallel_env(opponents="random")
    with pytest.raises(ValueError, match="max_years: "):
        parallel_env(max_years=True)
    game = parallel_env(map="small", strict=True)
    with pytest.raises(ValueError, match=r"call reset\(\) first"):
        game.step({})
    _, infos = game.reset(seed=1)
    actions = sample(game, infos)
    with pytest.raises(ValueError, match="the action of RUSSIA is missing"):
        game.step({"ENGLAND": actions["ENGLAND"]})
    with pytest.raises(ValueError, match="'FRANCE' is not an agent of ENGLAND, RUSSIA"):
        game.step(actions | {"FRANCE": actions["ENGLAND"]})
    with pytest.raises(ValueError, match=r"integers of shape \(19,\)"):
        game.step(actions | {"RUSSIA": [0]})
    with pytest.raises(ValueError, match="RUSSIA, A MOS: action 0 "):
        game.step(actions | {"RUSSIA": np.zeros(19, int)})
    assert game.game.phase == "S1901M"
    lenient = parallel_env(map="small")
    lenient.reset(seed=1)
    *_, infos = lenient.step({name: np.zeros(19, int) for name in lenient.agents})
    assert infos["RUSSIA"]["illegal_orders"] == 1
    assert lenient.game.units["RUSSIA"] == ["A MOS"]
    assert make_bot("hold").name == "hold"
