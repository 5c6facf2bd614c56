"""Baselines beside plain self-play: a network for each power, a critic that sees more, and the mean
of what other orders would have brought."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from support.training import TINY, differences, load, metrics, stop_in_step, write_config

import ppo_baselines_diplomacy as baselines
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame, evaluate_player, load_map, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.games import order_numbers
from diplomacy_engine.scoring import make_reward_mix
from diplomacy_engine.selfplay import LEARNER, Member, RolloutBuffer

SCHEMES = ("independent", "central", "counterfactual")
SEED = torch.Generator


def agent_of(scheme: str, name: str = "three", seed: int = 1) -> ppo.Agent:
    torch.manual_seed(seed)
    network = {"hidden": 16, "num_layers": 1, "autoregressive": True, "value_shares": False}
    return baselines.make_agent(network | {"scheme": scheme}, load_map(name))


def asked(games: VectorGame):
    """Return decisions of games that random orders have spread, and what is seen of them."""
    bot = make_bot("random")
    for _ in range(7):
        decisions, orders = games.decisions(), games.new_orders()
        games.write_orders(orders, decisions, bot.act(games, decisions))
        games.step(orders)
    decisions = games.decisions()
    return games.view_boards(decisions.game, decisions.power), decisions


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_what_is_learned_from_is_what_was_drawn(scheme):
    agent = agent_of(scheme)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    for greedy in (False, True):
        chosen, logprob, value = agent.act(obs, decisions, SEED().manual_seed(1), greedy)
        with torch.no_grad():
            again = agent.get_logprob_entropy_value(obs, decisions, chosen)
        assert np.allclose(again[0].numpy(), logprob, atol=1e-4)
        assert np.allclose(again[2].numpy(), value, atol=1e-4)
    shares = agent.explain(obs, decisions).probability
    of_slot = np.add.reduceat(shares, decisions.order_start[:-1])
    assert np.allclose(of_slot, 1, atol=1e-4)


def test_a_power_s_loss_touches_its_own_network_alone():
    agent = agent_of("independent")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    mine = np.flatnonzero(decisions.power == 1)
    obs, decisions = obs.take(mine), decisions.take(mine)
    chosen, _, _ = agent.act(obs, decisions, SEED().manual_seed(1))
    logprob, entropy, value = agent.get_logprob_entropy_value(obs, decisions, chosen)
    (logprob + entropy + value).sum().backward()
    moved = [
        any(p.grad is not None and p.grad.any() for p in own.parameters()) for own in agent.powers
    ]
    assert moved == [False, True, False]


def test_each_power_plays_by_its_own_network():
    agent = agent_of("independent")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = ppo.draw_noise(decisions, SEED().manual_seed(2))
    chosen, logprob, value = agent.act(obs, decisions, noise=noise)
    starts = decisions.order_start[decisions.slot_start]
    for power, own in enumerate(agent.powers):
        rows = np.flatnonzero(decisions.power == power)
        slots = np.concatenate([np.arange(*decisions.slot_start[r : r + 2]) for r in rows])
        orders = np.concatenate([np.arange(*starts[r : r + 2]) for r in rows])
        found = own.act(obs.take(rows), decisions.take(rows), noise=noise[orders])
        assert np.array_equal(found[0], chosen[slots])
        assert np.allclose(found[1], logprob[rows]) and np.allclose(found[2], value[rows])
        assert np.allclose(own.values(obs.take(rows)), agent.values(obs)[rows])


def test_orders_do_not_depend_on_what_the_central_critic_sees():
    agent, plain = agent_of("central"), agent_of("counterfactual")
    plain.load_state_dict(agent.state_dict(), strict=False)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = ppo.draw_noise(decisions, SEED().manual_seed(2))
    chosen, logprob, value = agent.act(obs, decisions, noise=noise)
    others = plain.act(obs, decisions, noise=noise)
    assert np.array_equal(chosen, others[0]) and np.array_equal(logprob, others[1])
    assert not np.allclose(value, others[2])
    assert np.array_equal(agent.values(obs), plain.values(obs))


def test_the_central_critic_sees_the_orders_of_the_same_board_alone():
    agent = agent_of("central")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    chosen, _, value = agent.act(obs, decisions, SEED().manual_seed(1))
    changed = int(np.flatnonzero(np.diff(decisions.slot_start) > 0)[0])
    slot = decisions.slot_start[changed]
    sizes = np.diff(decisions.order_start)
    assert sizes[slot] > 1
    chosen[slot] = (chosen[slot] + 1) % sizes[slot]
    with torch.no_grad():
        after = agent.get_logprob_entropy_value(obs, decisions, chosen)[2].numpy()
    moved = ~np.isclose(after, value, atol=1e-6)
    beside = (obs.row == obs.row[changed]) & (np.arange(len(obs.row)) != changed)
    assert beside.any() and np.array_equal(moved, beside)


def counterfactual(count: int, agent: ppo.Agent) -> baselines.CounterfactualSelfPlay:
    """Return one running game in which the learner plays one power."""
    args = baselines.Args(map="small", num_envs=1, scheme="counterfactual", alternatives=count)
    reward = make_reward_mix("center_delta")
    member = Member(LEARNER, agent, buffer=RolloutBuffer(8, 1), reward=reward)
    pool = ppo.OpponentPool(args, ppo.frozen_copy(agent), [member])
    return baselines.CounterfactualSelfPlay(args, load_map("small"), pool, np.random.default_rng(1))


def test_the_baseline_is_the_mean_over_all_orders_given_those_of_the_others():
    """Against all joint orders of ENGLAND's first phase, each by how likely the policy gives it."""
    agent = agent_of("counterfactual", "small")
    play = counterfactual(4000, agent)
    games = play.games
    decisions, orders = games.decisions(), games.new_orders()
    numbers = make_bot("dumbbot").act(games, decisions)
    games.write_orders(orders, decisions, numbers)
    mine = decisions.take(np.array([0]))
    found = play.baselines(mine, orders)

    slots = [range(n) for n in np.diff(mine.order_start)]
    every = np.array(list(itertools.product(*slots)))
    many = mine.take(np.zeros(len(every), np.int64))
    obs = games.view_boards(many.game, many.power)
    with torch.no_grad():
        logprob = agent.get_logprob_entropy_value(obs, many, every.reshape(-1))[0].numpy()
    assert np.exp(logprob).sum() == pytest.approx(1, abs=1e-4)
    given = np.repeat(orders, len(every), 0)
    given[:, mine.slot_province] = order_numbers(many, every.reshape(-1)).reshape(len(every), -1)
    brought = play.leaves.evaluate(
        games, many.game, many.power, given, np.zeros(len(every), np.uint64)
    )
    mean, square = (float(np.exp(logprob) @ part) for part in (brought, brought**2))
    error = ((square - mean**2) / 4000) ** 0.5
    assert error > 0 and abs(found[0] - mean) < 5 * error


def test_a_power_whose_orders_cannot_matter_has_no_advantage():
    """In the last phase before the year limit a draw pays the same whatever ENGLAND orders."""
    agent = agent_of("counterfactual", "small")
    play = counterfactual(16, agent)
    play.prospects.reward = make_reward_mix("draw_size")
    games = VectorGame("small", 1, max_years=1, auto_reset=False)
    hold = make_bot("hold")
    decisions, orders = games.decisions(), games.new_orders()
    games.write_orders(orders, decisions, hold.act(games, decisions))
    games.step(orders)  # spring
    play.games, play.leaves = games, baselines.Leaves(games, play.prospects, hold)
    decisions, orders = games.decisions(), games.new_orders()
    games.write_orders(orders, decisions, hold.act(games, decisions))
    mine = decisions.take(np.array([0]))
    found = play.baselines(mine, orders)
    actual = play.leaves.evaluate(games, mine.game, mine.power, orders, np.zeros(1, np.uint64))
    assert found[0] == actual[0] == 0.5
    assert (games.state.last_order != NONE).any()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_resumed_equals_uninterrupted(scheme, tmp_path, monkeypatch):
    config = write_config(tmp_path / "tiny.toml", map="three", num_envs=12, learner_seats=2)
    flags = ["--config", config, "--scheme", scheme, "--alternatives", "2"]
    runs = [tmp_path / name for name in ("whole", "parts")]

    def train(argv):
        assert ppo.main(argv, baselines.Run) == 0

    train([*flags, "--runs-folder", str(runs[0])])
    with monkeypatch.context() as patch:
        stop_in_step(patch, 9)
        train([*flags, "--runs-folder", str(runs[1])])
    whole, parts = (next(folder.iterdir()) for folder in runs)
    assert load(parts)["global_step"] < TINY["total_timesteps"]
    train(["--resume", str(parts)])
    for name in ("model", "optimizer", "buffer", "self_play", "pool"):
        assert differences(load(whole)[name], load(parts)[name]) == []
    assert metrics(whole) == metrics(parts)
    # Its policies are played by the script that trained them, which the checkpoint names.
    player = load_player(whole)
    assert type(player.agent).__name__ == type(agent_of(scheme)).__name__
    result = evaluate_player("three", player, make_bot("hold"), 6, max_years=2).result()
    assert result["games"] == 6


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_learns_to_beat_random(scheme, tmp_path):
    config = write_config(
        tmp_path / "tiny.toml",
        num_envs=64,
        num_steps=16,
        total_timesteps=40_000,
        hidden=32,
        num_layers=2,
        learning_rate=2e-3,
        num_minibatches=4,
        reward="sum_of_squares",
        pool_interval=5000,
        eval_interval=10**9,
        eval_games=2,
        learner_seats=2 if scheme == "central" else 1,
    )
    runs = tmp_path / "runs"
    flags = ["--config", config, "--runs-folder", str(runs), "--scheme", scheme]
    assert ppo.main(flags, baselines.Run) == 0
    player = load_player(next(runs.iterdir()))
    result = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1).result()
    assert result["overall"]["win"]["low"] > 0.8


def test_a_team_of_two_networks_learns_against_a_policy_of_plain_self_play(tmp_path):
    config = write_config(tmp_path / "tiny.toml", map="three", total_timesteps=300)
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    flags += ["--exploit", "runs/reference/three__pure__1", "--teams", "ENGLAND+ITALY"]
    flags += ["--learner-powers", "ENGLAND", "ITALY", "--scheme", "independent"]
    assert ppo.main(flags, baselines.Run) == 0
    saved = load(next((tmp_path / "runs").iterdir()))
    assert any(name.startswith("powers.2.") for name in saved["model"])
    assert not any(name.startswith("powers.") for name in saved["exploited"]["model"])


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_a_run_begins_with_a_policy_of_plain_self_play(scheme, tmp_path):
    config = write_config(tmp_path / "tiny.toml", map="three", total_timesteps=300, learning_rate=0)
    start = ppo.READ(Path("runs/reference/three__pure__2/policy.pt"))
    sizes = [
        f"--{name.replace('_', '-')}={start['args'][name]}" for name in ("hidden", "num_layers")
    ]
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs"), "--scheme", scheme]
    flags += ["--start-from", "runs/reference/three__pure__2", "--learner-seats", "2", *sizes]
    assert ppo.main(flags, baselines.Run) == 0
    model = load(next((tmp_path / "runs").iterdir()))["model"]
    for name, weight in start["model"].items():
        own = [f"powers.{p}.{name}" for p in range(3)] if scheme == "independent" else [name]
        assert all(torch.equal(model[key], weight) for key in own), name
    assert len(model) > len(start["model"])


def test_a_policy_of_another_scheme_is_no_beginning(tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", total_timesteps=300)
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    assert ppo.main([*flags, "--scheme", "independent"], baselines.Run) == 0
    (first,) = (tmp_path / "runs").iterdir()
    flags += ["--start-from", str(first)]
    assert ppo.main([*flags, "--scheme", "central", "--learner-seats", "2"], baselines.Run) == 2
    assert "has other weights than a network that" in capsys.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == [first]


def test_a_central_critic_needs_something_to_see(tmp_path, capsys):
    assert ppo.main(["--scheme", "central", "--runs-folder", str(tmp_path)], baselines.Run) == 2
    assert "--scheme central needs a learner with several seats" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_its_help_has_the_trainer_s_flags_and_the_scheme(capsys):
    with pytest.raises(SystemExit) as left:
        ppo.main(["--help"], baselines.Run)
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert "--scheme" in text and "--alternatives" in text and "--num-envs" in text
    assert text.index("Games") < text.index("--num-envs")  # under its heading, as in the trainer's
