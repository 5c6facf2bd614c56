"""Baselines beside plain self-play: a network for each power, a critic that sees more, and the mean
of what other orders would have brought; the learner's own powers, and partners of the pool."""

import itertools
import os
import signal

import numpy as np
import pytest
import torch
from support.training import differences, load, metrics, write_config

import diplomacy_learners.baselines as baselines
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import (
    Game,
    VectorGame,
    evaluate_player,
    load_map,
    load_player,
    make_bot,
    order_numbers,
)
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.position import load_state
from diplomacy_engine.learning import checkpoints, ops, startup
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.policy_files import policy_file
from diplomacy_engine.players.search.leaves import Leaves
from diplomacy_engine.rules.state import in_movement
from diplomacy_engine.training.clock import Clock

SCHEMES = ("independent", "central", "counterfactual")
SEED = torch.Generator
CPU = torch.device("cpu")
SMALL = {"num_steps": 64, "hidden": 16, "num_layers": 1, "reward": "score"}


def main(argv: list[str]) -> int:
    """Run the script in this process, as its command line does; return the exit status."""
    return startup.main(baselines.LEARNER_HERE, baselines.train, argv)


def refused(flags: list[str], message: str, tmp_path, capsys) -> None:
    """Check that flags end in one sentence and exit status 2, and leave nothing behind."""
    config = write_config(tmp_path / "tiny.toml", map="three")
    runs = tmp_path / "refused"
    capsys.readouterr()
    status, err = (
        main(["--config", config, "--runs-folder", str(runs), *flags]),
        capsys.readouterr(),
    )
    assert status == 2 and message in err.err and err.err.count("\n") == 1, err.err
    assert not runs.exists()


def agent_of(scheme: str, name: str = "three", seed: int = 1) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = {"hidden": 16, "num_layers": 1, "autoregressive": True}
    return baselines.make_agent(network | {"scheme": scheme}, load_map(name))


def make_run(**changes) -> ppo.Run:
    args = baselines.Args(**SMALL | {"map": "three"} | changes)
    game_map = load_map(args.map).with_teams(args.teams)
    baselines.check_seating(args, game_map)
    begun = startup.Begun(baselines.LEARNER_HERE, args, game_map, CPU)
    return baselines.make_run(begun, Ranks())


def play_phase(run: ppo.Run) -> dict:
    """Play one phase as the loop does; return what is counted."""
    result, counts = baselines.play_phase(run, Clock())
    baselines.pay_learner(run, result)
    rows, finished = baselines.games_over(run, result)
    run.count(counts | finished)
    run.games.reset(rows)
    baselines.assign_seats(run, rows)
    return counts | finished


def asked(games: VectorGame):
    """Return decisions of games that random orders have spread, and what is seen of them."""
    bot = make_bot("random")
    for _ in range(7):
        decisions, orders = games.decisions(), games.new_orders()
        games.write_orders(orders, decisions, bot.act(games, decisions))
        games.step(orders)
    decisions = games.decisions()
    return games.view_boards(decisions.game, decisions.power), decisions


# --- Networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_what_is_learned_from_is_what_was_drawn(scheme):
    agent = agent_of(scheme)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = ops.draw_noise(decisions, SEED().manual_seed(1))
    with torch.no_grad():
        chosen, logprob, none, value = agent.get_action_and_value(obs, decisions, noise=noise)
        same, again, entropy, value_again = agent.get_action_and_value(obs, decisions, chosen)
    assert np.array_equal(same, chosen) and none is None
    assert torch.allclose(again, logprob, atol=1e-4) and torch.allclose(value_again, value)
    assert ((entropy > 0) & (entropy <= 1 + 1e-6)).any()
    player = baselines.make_player(agent, "it")
    played, of_player, _ = player.agent.act(obs, decisions, noise=noise)
    assert np.array_equal(played, chosen) and np.allclose(of_player, logprob, atol=1e-5)
    shares = player.agent.explain(obs, decisions).probability
    of_slot = np.add.reduceat(shares, decisions.order_start[:-1])
    assert np.allclose(of_slot, 1, atol=1e-4)


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_no_decisions_are_decisions_too(scheme):
    """In a phase in which all of the learner's powers begin at random, for example."""
    agent = agent_of(scheme)
    obs, decisions = asked(VectorGame("three", 2, seed=3))
    nothing = np.zeros(0, np.int64)
    obs, decisions = obs.take(nothing), decisions.take(nothing)
    chosen, logprob, _, value = agent.get_action_and_value(obs, decisions)
    assert chosen.shape == logprob.shape == value.shape == agent.get_value(obs).shape == (0,)


def test_a_power_s_loss_touches_its_own_network_alone():
    agent = agent_of("independent")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    mine = np.flatnonzero(decisions.power == 1)
    obs, decisions = obs.take(mine), decisions.take(mine)
    chosen, *_ = agent.get_action_and_value(obs, decisions)
    _, logprob, entropy, value = agent.get_action_and_value(obs, decisions, chosen)
    (logprob + entropy + value).sum().backward()
    moved = [
        any(p.grad is not None and p.grad.any() for p in own.parameters()) for own in agent.powers
    ]
    assert moved == [False, True, False]


def test_each_power_plays_by_its_own_network():
    agent = agent_of("independent")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    network = baselines.make_player(agent, "it").agent
    noise = ops.draw_noise(decisions, SEED().manual_seed(2))
    heat = np.linspace(0.5, 2, decisions.count, dtype=np.float32)
    chosen, logprob, value = network.act(obs, decisions, noise=noise, temperature=heat)
    likeliest, *_ = network.act(obs, decisions, greedy=True)
    starts = decisions.order_start[decisions.slot_start]
    for power, own in enumerate(agent.powers):
        plain = ppo.LEARNER_HERE.make_player(own, "own").agent
        rows = np.flatnonzero(decisions.power == power)
        slots = np.concatenate([np.arange(*decisions.slot_start[r : r + 2]) for r in rows])
        orders = np.concatenate([np.arange(*starts[r : r + 2]) for r in rows])
        mine = obs.take(rows), decisions.take(rows)
        found = plain.act(*mine, noise=noise[orders], temperature=heat[rows])
        assert np.array_equal(found[0], chosen[slots])
        assert np.allclose(found[1], logprob[rows]) and np.allclose(found[2], value[rows])
        assert np.array_equal(plain.act(*mine, greedy=True)[0], likeliest[slots])
        assert np.allclose(plain.values(mine[0]), network.values(obs)[rows])


def test_a_frozen_copy_plays_each_power_by_that_power_s_network(monkeypatch):
    run = make_run(scheme="independent", num_envs=40)
    with torch.no_grad():
        for weight in run.agent.parameters():
            weight += 0.1
    run.pool.freeze(run.agent, 1)
    baselines.assign_seats(run, np.arange(40))
    seen, act = set(), baselines.groups.act

    def watched(agents, who, obs, decisions, *rest):
        for number, game, power in zip(who.tolist(), decisions.game, decisions.power):
            member = int(run.seats.member[game, power])
            assert agents[number] is run.pool.agents[member].powers[power]
            seen.add((member, int(power)))
        return act(agents, who, obs, decisions, *rest)

    monkeypatch.setattr(baselines.groups, "act", watched)
    play_phase(run)
    assert seen == set(itertools.product(run.pool.copies, range(3)))


def test_orders_do_not_depend_on_what_the_central_critic_sees():
    agent, plain = agent_of("central"), agent_of("counterfactual")
    plain.load_state_dict(agent.state_dict(), strict=False)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = ops.draw_noise(decisions, SEED().manual_seed(2))
    with torch.no_grad():
        chosen, logprob, _, value = agent.get_action_and_value(obs, decisions, noise=noise)
        others = plain.get_action_and_value(obs, decisions, noise=noise)
        assert np.array_equal(chosen, others[0]) and torch.equal(logprob, others[1])
        assert not torch.allclose(value, others[3])
        assert torch.equal(agent.get_value(obs), plain.get_value(obs))


def test_the_central_critic_sees_the_orders_of_the_same_board_alone():
    agent = agent_of("central")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    with torch.no_grad():
        chosen, _, _, value = agent.get_action_and_value(obs, decisions)
        changed, slot = 0, decisions.slot_start[0]
        sizes = np.diff(decisions.order_start)
        assert sizes[slot] > 1
        chosen[slot] = (chosen[slot] + 1) % sizes[slot]
        _, _, _, after = agent.get_action_and_value(obs, decisions, chosen)
    moved = ~np.isclose(after.numpy(), value.numpy(), atol=1e-6)
    beside = (obs.row == obs.row[changed]) & (np.arange(len(obs.row)) != changed)
    assert beside.any() and np.array_equal(moved, beside)


# --- What other orders would have brought ---------------------------------------------------------


def test_the_baseline_is_the_mean_over_all_orders_given_those_of_the_others():
    """Against all joint orders of ENGLAND's first phase, each by how likely the policy gives it."""
    run = make_run(map="small", num_envs=1, alternatives=1000, reward="center_delta")
    tried, games = baselines.Counterfactual(run), run.games
    decisions, orders = games.decisions(), games.new_orders()
    numbers = make_bot("dumbbot").act(games, decisions)
    games.write_orders(orders, decisions, numbers)
    mine = decisions.take(np.array([0]))
    found = tried.expected(games, mine, orders)

    slots = [range(n) for n in np.diff(mine.order_start)]
    every = np.array(list(itertools.product(*slots)))
    many = mine.take(np.zeros(len(every), np.int64))
    obs = games.view_boards(many.game, many.power)
    with torch.no_grad():
        _, logprob, _, _ = run.agent.get_action_and_value(obs, many, every.reshape(-1))
    share = np.exp(logprob.numpy())
    assert share.sum() == pytest.approx(1, abs=1e-4)
    given = np.repeat(orders, len(every), 0)
    given[:, mine.slot_province] = order_numbers(many, every.reshape(-1)).reshape(len(every), -1)
    brought = tried.leaves.evaluate(
        games, many.game, many.power, given, np.zeros(len(every), np.uint64)
    )
    mean, square = (float(share @ part) for part in (brought, brought**2))
    error = ((square - mean**2) / 1000) ** 0.5
    assert error > 0 and abs(found[0] - mean) < 5 * error


def test_a_power_whose_orders_cannot_matter_has_no_advantage():
    """In the last phase before the year limit a draw pays the same whatever ENGLAND orders."""
    run = make_run(map="small", num_envs=1, alternatives=16, reward="draw_size", max_years=1)
    tried, games, hold = baselines.Counterfactual(run), run.games, make_bot("hold")
    tried.leaves = Leaves(games, tried.leaves.value, hold)
    decisions, orders = games.decisions(), games.new_orders()
    games.write_orders(orders, decisions, hold.act(games, decisions))
    games.step(orders)  # spring
    decisions, orders = games.decisions(), games.new_orders()
    games.write_orders(orders, decisions, hold.act(games, decisions))
    mine = decisions.take(np.array([0]))
    found = tried.expected(games, mine, orders)
    actual = tried.leaves.evaluate(games, mine.game, mine.power, orders, np.zeros(1, np.uint64))
    assert found[0] == actual[0] == 0.5
    assert (games.state.last_order != NONE).any()


def test_the_learner_s_movement_decisions_alone_have_another_value():
    run = make_run(num_envs=12, num_steps=200, scheme="counterfactual", alternatives=3)
    tried, mean = baselines.Counterfactual(run), 7.5
    tried.expected = lambda games, decisions, orders: np.full(decisions.count, mean)
    phases = set()
    for _ in range(12):
        before = run.buffer.count.copy()
        decisions = run.games.decisions()
        kind = dict(zip(decisions.game, in_movement(run.games.state, decisions.game)))
        result, _ = baselines.play_phase(run, Clock(), tried)
        for stream in np.flatnonzero(run.buffer.count > before):
            value = run.buffer.values[before[stream], stream]
            assert (value == mean) == kind[stream]
            phases.add(bool(kind[stream]))
        rows, _ = baselines.games_over(run, result)
        assert not len(rows)
    assert phases == {False, True}


# --- Seats ----------------------------------------------------------------------------------------

TEAM = {"teams": "ENGLAND+ITALY", "learner_seats": 2}
MIXED = TEAM | {"partners": "pool"}
BOTS = {"pool_bots": ("hold", "random"), "pool_bot_prob": 0.6}
LOST = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"


def test_without_its_own_flags_seats_are_those_of_plain_self_play():
    changes = {"num_envs": 50, "learner_seats": 2, "weak_seats": 0.5, "opponent_temperature": 2.0}
    run = make_run(**changes, **BOTS)
    rows, found = np.arange(50), []
    for assign in (ppo.assign_seats, baselines.assign_seats):
        run.rng = np.random.default_rng(5)
        assign(run, rows)
        found.append([array.copy() for array in run.seats])
    np.testing.assert_equal(*found)


@pytest.mark.parametrize("changes", [TEAM, {"learner_seats": 2}], ids=["team", "alone"])
def test_the_learner_can_have_the_same_powers_in_every_game(changes):
    run = make_run(num_envs=50, learner_powers=("ITALY", "ENGLAND"), **changes)
    learns = run.seats.stream != NONE
    assert learns.tolist() == [[True, True, False]] * 50
    assert sorted(run.seats.stream[learns]) == list(range(100))


def test_partners_of_the_pool():
    run = make_run(num_envs=400, **MIXED, **BOTS)
    learns, member = run.seats.stream != NONE, run.seats.member
    assert (learns.sum(1) == 1).all()  # one power of each game
    assert (np.abs(learns.mean(0) - (0.25, 0.25, 0.5)) < 0.08).all()  # teams in turn, then powers
    england = learns[:, 0]
    # The partner is a copy or a bot, drawn with its team.
    assert (member[england, 1] != ppo.LEARNER).all()
    assert (member[england, 1] != member[england, 2]).mean() > 0.3
    assert np.array_equal(run.seats.stream[learns] // 2, np.arange(400))
    mine = make_run(num_envs=50, learner_powers=("ITALY",), **MIXED).seats.stream != NONE
    assert mine.tolist() == [[False, True, False]] * 50


def test_a_partners_game_is_the_learners():
    """A learner that is out is paid what its partner still brings; the partner is no opponent."""
    bots = {"pool_bots": ("hold",), "pool_bot_prob": 1.0}
    years = {"max_years": 6, "reward": "sum_of_squares"}
    run = make_run(num_envs=1, learner_powers=("ENGLAND",), **MIXED, **bots, **years)
    games, buffer = run.games, run.buffer
    load_state(games, Game.from_position(LOST).to_state())
    stream = int(run.seats.stream[0, 0])
    assert play_phase(run)["games"] == 0 and buffer.open[stream]
    assert not games.outcomes().alive[0, 0]
    assert play_phase(run)["games"] == 0
    last = play_phase(run)  # the end of 1906: 4 of 5 squares are the team's
    assert buffer.rewards[0, stream] == pytest.approx(4 / 5) and buffer.ends[0, stream]
    assert last["games"] == 1 and last["win"] == 1
    assert last["side_games"].tolist() == [1, 0] and last["side_wins"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--scheme central", "--scheme central needs a learner with several seats"),
        (
            "--scheme central --teams ENGLAND+ITALY --partners pool",
            "--scheme central needs a learner with several seats",
        ),
        (
            "--teams ENGLAND+ITALY --learner-powers ITALY RUSSIA",
            "--learner-powers ITALY RUSSIA must be one team of ENGLAND+ITALY, RUSSIA",
        ),
        ("--learner-powers ITALY italy --learner-seats 2", "names a power twice"),
        ("--learner-powers FRANCE", "'FRANCE' is not a power of map three"),
        ("--learner-powers ITALY ENGLAND", "needs as many seats: --learner-seats 2"),
        ("--partners pool", "--partners pool needs --teams"),
        ("--scheme other", "--scheme must be one of self_play, independent"),
        ("--alternatives 0", "--alternatives must be a whole number"),
    ],
)
def test_what_cannot_be(flags, message, tmp_path, capsys):
    refused(flags.split(), message, tmp_path, capsys)


# --- Runs -----------------------------------------------------------------------------------------


def stop_in_step(monkeypatch, number: int) -> None:
    """Have the process asked to stop while it plays that env step."""
    steps, play = itertools.count(1), baselines.play_phase

    def stopping(*args):
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return play(*args)

    monkeypatch.setattr(baselines, "play_phase", stopping)


@pytest.mark.parametrize("scheme", [*SCHEMES, "partners"])
def test_resumed_equals_uninterrupted(scheme, tmp_path, monkeypatch):
    changes = {"num_envs": 12, "league_games": 0, "capture_games": 0, "learner_seats": 2}
    changes |= {"total_timesteps": 400, "eval_games": 3, "eval_bots": ["hold"]}
    if scheme == "partners":
        changes |= {"teams": "ENGLAND+ITALY", "partners": "pool", "learner_powers": ["ENGLAND"]}
    config = write_config(tmp_path / "tiny.toml", map="three", **changes)
    flags = ["--config", config, "--alternatives", "2"]
    flags += [] if scheme == "partners" else ["--scheme", scheme]
    runs = [tmp_path / name for name in ("whole", "parts")]
    assert main([*flags, "--runs-folder", str(runs[0])]) == 0
    with monkeypatch.context() as patch:
        stop_in_step(patch, 9)
        assert main([*flags, "--runs-folder", str(runs[1])]) == 0
    whole, parts = (next(folder.iterdir()) for folder in runs)
    assert load(parts)["global_step"] < 400
    assert main(["--resume", str(parts)]) == 0
    for name in ("model", "run", "ranks"):
        assert differences(load(whole)[name], load(parts)[name]) == []
    assert metrics(whole) == metrics(parts)
    # Its policies are played by the script that trained them, which the checkpoint names.
    player = load_player(whole)
    assert isinstance(player.agent, baselines.IndependentNetwork) == (scheme == "independent")
    result = evaluate_player("three", player, make_bot("hold"), 6, max_years=2).result()
    assert result["games"] == 6


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_a_policy_of_version_0_2_plays_as_it_did(scheme, tmp_path):
    """Its weights have the names of then: `powers.0.` before each, or `mates.` beside the plain."""
    agent = agent_of(scheme)
    names = agent.state_dict().keys()
    plain = agent_of("self_play").state_dict().keys()
    if scheme == "independent":
        assert names == {f"powers.{p}.{name}" for p in range(3) for name in plain}
    else:
        mates = {f"mates.{part}" for part in ("0.weight", "0.bias", "2.weight")}
        assert names == plain | mates
    settings = {"scheme": scheme, "map": "three", "threads": 1, "hidden": 16, "num_layers": 1}
    settings |= {"reward_mix": "", "reward": "score", "partners": "self", "exploit": None}
    saved = checkpoints.policy_dict(
        baselines.__file__, settings, load_map("three"), agent.state_dict(), 0
    )
    torch.save(saved | {"script_name": "ppo_baselines_diplomacy.py"}, tmp_path / "policy.pt")
    player = load_player(tmp_path / "policy.pt", seed=1)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = ops.draw_noise(decisions, SEED().manual_seed(2))
    with torch.no_grad():
        expected, *_ = agent.get_action_and_value(obs, decisions, noise=noise)
    assert np.array_equal(player.agent.act(obs, decisions, noise=noise)[0], expected)


def test_a_team_of_networks_learns_against_a_policy_of_plain_self_play(tmp_path):
    config = write_config(tmp_path / "tiny.toml", map="three", total_timesteps=300)
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    flags += ["--pool-bots", "three-pure-1", "--pool-bot-prob", "1", "--teams", "ENGLAND+ITALY"]
    flags += ["--learner-powers", "ENGLAND", "ITALY", "--scheme", "independent"]
    assert main(flags) == 0
    saved = load(next((tmp_path / "runs").iterdir()))
    member = saved["ranks"][0]["seats"]["member"]
    assert (member == torch.tensor([0, 0, 1])).all()
    torch.manual_seed(1)
    before = baselines.make_agent(saved["args"], load_map("three")).state_dict()
    moved = {name.split(".")[1] for name, w in saved["model"].items() if (w != before[name]).any()}
    assert moved == {"0", "1"}  # RUSSIA is never the learner's


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_a_run_begins_with_a_policy_of_plain_self_play(scheme, tmp_path):
    config = write_config(tmp_path / "tiny.toml", map="three", total_timesteps=300, learning_rate=0)
    start = checkpoints.read(policy_file("three-pure-2"))
    sizes = [
        f"--{name.replace('_', '-')}={start['args'][name]}" for name in ("hidden", "num_layers")
    ]
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs"), "--scheme", scheme]
    flags += ["--start-from", "three-pure-2", "--learner-seats", "2", *sizes]
    assert main(flags) == 0
    model = load(next((tmp_path / "runs").iterdir()))["model"]
    for name, weight in start["model"].items():
        own = [f"powers.{p}.{name}" for p in range(3)] if scheme == "independent" else [name]
        assert all(torch.equal(model[key], weight) for key in own), name
    assert len(model) > len(start["model"])


def test_a_policy_of_another_scheme_is_no_beginning(tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", map="three", total_timesteps=100, eval_games=3)
    flags = ["--config", config, "--runs-folder", str(tmp_path / "runs")]
    assert main([*flags, "--scheme", "independent"]) == 0
    (first,) = (tmp_path / "runs").iterdir()
    flags = ["--start-from", str(first), "--scheme", "central", "--learner-seats", "2"]
    refused(flags, "has weights that do not fit the network", tmp_path, capsys)


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
    assert main(["--config", config, "--runs-folder", str(runs), "--scheme", scheme]) == 0
    player = load_player(next(runs.iterdir()))
    result = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1).result()
    assert result["overall"]["win"]["low"] > 0.8
