"""Baselines beside plain self-play: a network for each power, a critic that sees more, the mean of
what other orders would have brought; teams, the learner's own powers, partners of the pool."""

import itertools

import numpy as np
import pytest
import torch
from support import self_play
from support.positions import noise_of
from support.self_play import make_args
from support.tables import read_table
from support.training import LEARNS, load, metrics, refused, train, write_config

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
from diplomacy_engine.clock import Clock
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import checkpoints, frozen, ops, pickling, startup
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.policy.files import policy_file
from diplomacy_engine.rules.state import in_movement
from diplomacy_engine.textgame.position import load_state

SCHEMES = ("independent", "central", "counterfactual")
SEED = torch.Generator
SMALL = {"map": "three", "num_envs": 256, "hidden": 16}


def agent_of(scheme: str, name: str = "three", seed: int = 1, board: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = {"hidden": 16, "num_layers": 1, "autoregressive": True, "cross_support": True}
    return baselines.make_agent(network | {"scheme": scheme, "board": board}, load_map(name))


def make_run(**changes) -> baselines.SchemeRun:
    """Return a new run, its games with seats; with teams, give `learner_seats` as well."""
    args = make_args(baselines.Args, **SMALL | changes)
    return self_play.begin(baselines.SchemeRun, baselines.LEARNER_SPEC, args)


play_phase = self_play.play_phase


def asked(games: VectorGame):
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
    noise = noise_of(decisions, 1)
    with torch.no_grad():
        drawn = agent.get_action_and_value(obs, decisions, noise=noise)
        scored = agent.get_action_and_value(obs, decisions, drawn.chosen)
    chosen, logprob = drawn.chosen, drawn.logprob
    assert np.array_equal(scored.chosen, chosen) and torch.allclose(scored.value, drawn.value)
    assert torch.allclose(scored.logprob, logprob, atol=1e-4)
    assert ((scored.entropy > 0) & (scored.entropy <= 1 + 1e-6)).any()
    player = baselines.make_player(agent, "it")
    played, of_player, _ = player.agent.act(obs, decisions, noise=noise)
    assert np.array_equal(played, chosen) and np.allclose(of_player, logprob, atol=1e-5)
    shares = player.agent.explain(obs, decisions).probability
    of_slot = np.add.reduceat(shares, decisions.order_start[:-1])
    assert np.allclose(of_slot, 1, atol=1e-4)
    # In a phase in which all of the learner's powers begin at random there are no decisions.
    obs, decisions = (part.take(np.zeros(0, np.int64)) for part in (obs, decisions))
    drawn = agent.get_action_and_value(obs, decisions, noise=ops.LIKELIEST)
    assert {*map(len, (drawn.chosen, drawn.logprob, drawn.value, agent.get_value(obs)))} == {0}


def test_each_power_plays_by_its_own_network():
    agent = agent_of("independent")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    network = baselines.make_player(agent, "it").agent
    noise = noise_of(decisions, 2)
    heat = np.linspace(0.5, 2, decisions.count, dtype=np.float32)
    chosen, logprob, value = network.act(obs, decisions, noise, heat)
    likeliest, *_ = network.act(obs, decisions, ops.LIKELIEST)
    starts = decisions.order_start[decisions.slot_start]
    for power, own in enumerate(agent.powers):
        plain = ppo.LEARNER_SPEC.make_player(own, "own").agent
        rows = np.flatnonzero(decisions.power == power)
        slots = np.concatenate([np.arange(*decisions.slot_start[r : r + 2]) for r in rows])
        orders = np.concatenate([np.arange(*starts[r : r + 2]) for r in rows])
        mine = obs.take(rows), decisions.take(rows)
        found = plain.act(*mine, noise[orders], heat[rows])
        assert np.array_equal(found[0], chosen[slots])
        assert np.allclose(found[1], logprob[rows]) and np.allclose(found[2], value[rows])
        assert np.array_equal(plain.act(*mine, ops.LIKELIEST)[0], likeliest[slots])
        assert np.allclose(plain.values(mine[0]), network.values(obs)[rows])


def test_a_frozen_copy_plays_each_power_by_that_power_s_network():
    pool = make_run(scheme="independent", num_envs=4).pool
    pool.freeze(agent_of("independent", seed=2), 1)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    who = np.sort(np.random.default_rng(1).choice(pool.copies, decisions.count))
    cold = np.full(decisions.count, 1e-6, np.float32)  # so that noise decides nothing
    found = frozen.act(pool.agents, who, obs, decisions, noise_of(decisions, 1), cold)
    players = [baselines.make_player(pool.agents[number], "it").agent for number in pool.copies]
    likeliest = [player.act(obs, decisions, ops.LIKELIEST)[0] for player in players]
    first = who[decisions.slot_decision] == pool.copies[0]
    assert np.array_equal(found, np.where(first, *likeliest))
    assert not np.array_equal(*likeliest)


def test_orders_do_not_depend_on_what_the_central_critic_sees():
    agent, plain = agent_of("central"), agent_of("self_play")
    plain.load_state_dict(agent.state_dict(), strict=False)
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    noise = noise_of(decisions, 2)
    with torch.no_grad():
        drawn = agent.get_action_and_value(obs, decisions, noise=noise)
        other = plain.get_action_and_value(obs, decisions, noise=noise)
        assert np.array_equal(drawn.chosen, other.chosen)
        assert torch.equal(drawn.logprob, other.logprob)
        assert not torch.allclose(drawn.value, other.value)
        first = obs.take(np.zeros(1, np.int64)), decisions.take(np.zeros(1, np.int64))
        value = agent.get_action_and_value(
            *first, noise=ops.LIKELIEST
        ).value  # where no mate orders anything
        assert torch.allclose(value, agent.get_value(first[0]))
        assert not torch.allclose(value, plain.get_value(first[0]))


def test_the_central_critic_sees_the_orders_of_the_same_board_alone():
    agent = agent_of("central")
    obs, decisions = asked(VectorGame("three", 12, seed=3))
    with torch.no_grad():
        drawn = agent.get_action_and_value(obs, decisions, noise=ops.LIKELIEST)
        chosen, value = drawn.chosen, drawn.value
        changed, slot = 0, decisions.slot_start[0]
        sizes = np.diff(decisions.order_start)
        assert sizes[slot] > 1
        chosen[slot] = (chosen[slot] + 1) % sizes[slot]
        after = agent.get_action_and_value(obs, decisions, chosen).value
    moved = ~np.isclose(after.numpy(), value.numpy(), atol=1e-6)
    beside = (obs.row == obs.row[changed]) & (np.arange(len(obs.row)) != changed)
    assert beside.any() and np.array_equal(moved, beside)


def test_the_baseline_is_the_mean_over_all_orders_given_those_of_the_others():
    """Against all joint orders of ENGLAND's first phase, each by how likely the policy gives it."""
    run = make_run(map="small", num_envs=1, alternatives=300, reward="center_delta")
    games = run.games
    decisions, orders = games.decisions(), games.new_orders()
    numbers = make_bot("dumbbot").act(games, decisions)
    games.write_orders(orders, decisions, numbers)
    mine = decisions.take(np.array([0]))
    found = run.baselines(mine, orders)

    slots = [range(n) for n in np.diff(mine.order_start)]
    every = np.array(list(itertools.product(*slots)))
    many = mine.take(np.zeros(len(every), np.int64))
    obs = games.view_boards(many.game, many.power)
    with torch.no_grad():
        scored = run.agent.get_action_and_value(obs, many, every.reshape(-1))
    share = np.exp(scored.logprob.numpy())
    assert share.sum() == pytest.approx(1, abs=1e-4)
    given = np.repeat(orders, len(every), 0)
    given[:, mine.slot_province] = order_numbers(many, every.reshape(-1)).reshape(len(every), -1)
    brought = run.leaves.evaluate(
        games, many.game, many.power, given, np.zeros(len(every), np.uint64)
    )
    mean, square = (float(share @ part) for part in (brought, brought**2))
    error = ((square - mean**2) / 300) ** 0.5
    assert error > 0 and abs(found[0] - mean) < 5 * error


def test_the_learner_s_movement_decisions_alone_have_another_value():
    run = make_run(
        num_envs=12, num_steps=200, learner_seats=1, scheme="counterfactual", alternatives=3
    )
    mean = 7.5
    run.baselines = lambda decisions, orders: np.full(decisions.count, mean)
    phases = set()
    for _ in range(12):
        before = run.buffer.count.copy()
        decisions = run.games.decisions()
        kind = dict(zip(decisions.game, in_movement(run.games.state, decisions.game)))
        result, _ = run.play(Clock())
        for stream in np.flatnonzero(run.buffer.count > before):
            value = run.buffer.transitions["values"][before[stream], stream]
            assert (value == mean) == kind[stream]
            phases.add(bool(kind[stream]))
        rows, _ = ppo.games_over(run, result)
        assert not len(rows)
    assert phases == {False, True}


# --- Seats and teams ------------------------------------------------------------------------------

TEAM = {"teams": "ENGLAND+ITALY", "learner_seats": 2}
MIXED = TEAM | {"partners": "pool"}
BOTS = {"pool_bots": ("hold", "random"), "pool_bot_prob": 0.6}
HOLD = {"pool_bots": ("hold",), "pool_bot_prob": 1.0}
LOST = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"


def test_without_flags_of_its_own_it_plays_as_plain_self_play_bit_for_bit():
    settings = {"map": "three", "num_envs": 24, "num_steps": 200, "max_years": 4, "hidden": 8}
    settings |= {"learner_seats": 2, "random_start_prob": 0.3, "opponent_temperature": 2.0}
    settings |= {"pool_bots": ("dumbbot",), "pool_bot_prob": 0.4, "weak_seats": 0.7}
    settings |= {"reward": "sum_of_squares=1,lead_delta=0.5..0"}
    found = []
    for make in (self_play.make_run, make_run):
        run = make(**settings)
        for _ in range(60):
            play_phase(run)
        parts = run.buffer, run.seats, run.results.win_share
        found.append(pickling.dumps(parts, {})[0])
    assert found[0] == found[1]


@pytest.mark.parametrize("changes", [TEAM, {"learner_seats": 2}], ids=["team", "alone"])
def test_the_learner_can_have_the_same_powers_in_every_game(changes):
    run = make_run(num_envs=50, learner_powers=("ITALY", "ENGLAND"), **changes)
    learns = run.seats.stream != NONE
    assert learns.tolist() == [[True, True, False]] * 50
    assert sorted(run.seats.stream[learns]) == list(range(100))


def test_every_team_has_one_player():
    run = make_run(**TEAM, num_envs=300, pool_bots=("hold", "random"), pool_bot_prob=0.6)
    seats, learns = run.seats, run.seats.stream != NONE
    england, italy, _ = seats.member.T
    assert (england == italy).all() and len(np.unique(england)) > 2
    alone = learns[:, 2]
    assert (learns[:, 0] != alone).all() and (learns[:, 1] != alone).all()
    assert 100 < alone.sum() < 200  # each team in about half of the games
    assert (seats.stream[alone, 2] == 2 * np.flatnonzero(alone)).all()
    assert (seats.stream[~alone, 0] == 2 * np.flatnonzero(~alone)).all()
    assert (seats.stream[~alone, 1] == 2 * np.flatnonzero(~alone) + 1).all()
    assert (seats.stream[alone, :2] == NONE).all()


def test_a_power_that_is_out_is_paid_at_its_teams_end():
    """With its last decision; else no sacrifice could be learned."""
    run = make_run(num_envs=1, max_years=6, reward="sum_of_squares", **TEAM, **HOLD)
    while (run.seats.stream[0] != NONE).tolist() != [True, True, False]:
        run.seat(np.zeros(1, np.int64))
    games, buffer, seats = run.games, run.buffer, run.seats
    load_state(games, Game.from_position(LOST).to_state())
    play_phase(run)
    assert not games.outcomes().alive[0, 0]
    assert buffer.open.tolist() == [True, False] and buffer.transitions["rewards"][0, 0] == 0
    here, powers = np.zeros(2, np.int64), np.array([0, 1])
    assert np.ptp(run.values_of(here, powers)) == 0  # where a cut comes, the living one's stands
    # The army of ITALY stays in Rome: 4 of 5 squares belong to the team at the end of 1906.
    for _ in range(2):
        ppo.pay_learner(run, games.step(games.new_orders()))
    assert buffer.transitions["rewards"][0, 0] == pytest.approx(4 / 5)
    assert (
        not buffer.open.any()
        and buffer.transitions["ends"][0, 0]
        and buffer.transitions["next_values"][0, 0] == 0
    )
    assert (seats.stream[0] == [0, 1, NONE]).all()


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
    years = {"max_years": 6, "reward": "sum_of_squares"}
    run = make_run(num_envs=1, learner_powers=("ENGLAND",), **MIXED, **HOLD, **years)
    games, buffer = run.games, run.buffer
    load_state(games, Game.from_position(LOST).to_state())
    stream = int(run.seats.stream[0, 0])
    assert play_phase(run)["games"] == 0 and buffer.open[stream]
    assert not games.outcomes().alive[0, 0]
    assert play_phase(run)["games"] == 0
    last = play_phase(run)  # the end of 1906: 4 of 5 squares are the team's
    assert (
        buffer.transitions["rewards"][0, stream] == pytest.approx(4 / 5)
        and buffer.transitions["ends"][0, stream]
    )
    assert last["games"] == 1 and last["win"] == 1
    assert last["side_games"].tolist() == [1, 0] and last["side_wins"].tolist() == [1, 0]


def test_all_in_one_team_learn_together_and_are_evaluated_apart(tmp_path, capsys):
    together = {"teams": "ENGLAND+ITALY+RUSSIA", "reward": "power:weakest=1,team:center_delta=1"}
    run = make_run(learner_seats=3, num_envs=4, **together)
    assert (run.seats.stream != NONE).all()
    for _ in range(8):
        play_phase(run)
    paid = run.buffer.transitions["rewards"].sum(0).reshape(4, 3)
    assert (paid == paid[:, :1]).all() and (paid > 0).any()
    few = {"total_timesteps": 60, "map": "three", "max_years": 4}
    folder = train(tmp_path / "runs", script=baselines, **few, **together)
    assert f"--against {folder} --teams ENGLAND+ITALY+RUSSIA" in capsys.readouterr().out
    shown = set().union(*(line.keys() for line in metrics(folder)))
    assert "eval/random/win_RUSSIA" in shown and "selfplay/win" not in shown


# --- A board of a team ----------------------------------------------------------------------------

FRIENDS = load_map("three").with_teams("ENGLAND+ITALY")
ENGLAND, ITALY, RUSSIA = range(3)


def reading(agent: baselines.Broadcasting) -> baselines.Broadcasting:
    """Return an agent that makes something of the board; a new one does not."""
    with torch.no_grad():
        agent.read.weight.normal_(0.0, 2.0, generator=SEED().manual_seed(1))
    return agent


def test_a_new_board_changes_nothing_and_no_weight_is_drawn_otherwise():
    agent, plain = agent_of("self_play", board=3), agent_of("self_play")
    assert type(plain) is ppo.Agent
    weights = plain.state_dict()
    model = agent.state_dict()
    assert model.keys() - weights.keys() == {"write.weight", "write.bias", "read.weight"}
    assert all(torch.equal(model[name], weight) for name, weight in weights.items())
    games = VectorGame(FRIENDS, 12, seed=3)
    decisions = asked(games)[1]
    with torch.no_grad():
        said, unsaid = (
            one.get_action_and_value(
                one.observe(games, decisions.game, decisions.power), decisions, noise=ops.LIKELIEST
            )
            for one in (agent, plain)
        )
    assert np.array_equal(said.chosen, unsaid.chosen)
    assert torch.equal(said.logprob, unsaid.logprob) and torch.equal(said.value, unsaid.value)


def test_mates_that_are_asked_together_read_what_the_other_writes():
    """Not who plays alone, is asked alone, or has no team in this game."""
    agent = reading(agent_of("self_play", board=3))
    games, apart = (VectorGame(game_map, 12, seed=3) for game_map in (FRIENDS, "three"))
    decisions = asked(games)[1]
    asked(apart)

    def scored(games, decisions) -> torch.Tensor:
        obs = agent.observe(games, decisions.game, decisions.power)
        first = np.zeros(len(decisions.slot_province), np.int64)
        return agent.get_action_and_value(obs, decisions, first).logprob

    pairs = [np.isin(decisions.game, decisions.game[decisions.power == p]) for p in range(2)]
    mates = np.array(pairs)[1 - decisions.power.clip(max=1), np.arange(decisions.count)]
    mates &= decisions.power != RUSSIA
    assert mates.any() and not mates[decisions.power != RUSSIA].all()
    together = scored(games, decisions)
    alone = torch.cat([scored(games, decisions.take(np.array([d]))) for d in range(len(mates))])
    differs = ~np.isclose(together.detach(), alone.detach(), atol=1e-4)
    assert np.array_equal(differs, mates)
    assert torch.allclose(scored(apart, decisions), alone, atol=1e-4)
    # The gradient of what one power does reaches what its mate writes, and nobody else's.
    for d in (np.flatnonzero(mates)[0], np.flatnonzero(~mates)[0]):
        (gradient,) = torch.autograd.grad(together[d], agent.write.weight, retain_graph=True)
        assert bool(gradient.any()) == mates[d]


@pytest.mark.slow
def test_a_power_learns_to_write_what_its_mate_needs():
    """ENGLAND is to give its first orders where ITALY stands in Rome, else its last ones. Only the
    layers of the board learn, and one that always writes the same does much worse."""
    games = VectorGame(FRIENDS, 60, seed=3)
    decisions = asked(games)[1]
    decisions = decisions.take(in_movement(games.state, decisions.game))
    mine = decisions.power == ENGLAND
    rows = np.flatnonzero(mine & np.isin(decisions.game, decisions.game[decisions.power == ITALY]))
    stands = games.state.unit_power[decisions.game, FRIENDS.provinces.index("ROM")] == ITALY
    last = np.diff(decisions.order_start) - 1
    chosen = np.where(stands[decisions.slot_decision], 0, last)

    def loss_after_learning(writes: bool) -> float:
        agent = agent_of("self_play", board=2)
        with torch.no_grad():
            agent.score.weight *= 30  # so that the orders' probabilities can move
            agent.order_kinds.weight *= 5
            if not writes:
                agent.write.weight.zero_()
                agent.write.bias.fill_(1.0)
        learned = [agent.read.weight, *(agent.write.parameters() if writes else ())]
        optimizer = torch.optim.Adam(learned, 0.03)
        obs = agent.observe(games, decisions.game, decisions.power)
        for _ in range(60):
            optimizer.zero_grad()
            loss = -agent.get_action_and_value(obs, decisions, chosen).logprob[rows].mean()
            loss.backward()
            optimizer.step()
        return loss.item()

    assert 0.2 < stands[rows].mean() < 0.5
    assert loss_after_learning(writes=True) < 0.7 * loss_after_learning(writes=False)


def test_learning_scores_what_was_written_in_the_rollout():
    """Also where a mate's decision of the same phase is in another batch."""
    run = make_run(num_envs=12, num_steps=16, board=3, max_years=3, **TEAM)
    reading(run.agent)
    for _ in range(2):
        while run.buffer.count.max() < run.args.num_steps:
            play_phase(run)
        batch = self_play.take_batch(run.buffer, 0.99, 0.95)
        with torch.no_grad():
            scored = run.agent.get_action_and_value(*batch.experience)
        np.testing.assert_allclose(scored.logprob, batch.logprobs, atol=1e-4)
        np.testing.assert_allclose(scored.value, batch.values, atol=1e-4)


@pytest.mark.parametrize(("flags", "words"), read_table(__file__, "what_cannot_be"))
def test_what_cannot_be(flags, words, tmp_path, capsys):
    argv = ["--config", write_config(tmp_path / "tiny.toml", map="three"), *flags.split()]
    argv += ["--runs-folder", str(tmp_path / "runs")]
    refused(argv, words, capsys=capsys, script=baselines)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_team_of_networks_learns_against_a_policy_of_plain_self_play(tmp_path):
    changes = {"total_timesteps": 300, "pool_bots": ["three-pure-1"], "pool_bot_prob": 1.0}
    changes |= {"teams": "ENGLAND+ITALY", "learner_powers": ["ENGLAND", "ITALY"]}
    changes |= {"scheme": "independent", "map": "three"}
    saved = load(train(tmp_path / "runs", script=baselines, **changes))
    member = saved["ranks"][0]["seats"]["member"]
    assert (member == torch.tensor([0, 0, 1])).all()
    assert saved["args"]["learner_seats"] == 2
    torch.manual_seed(1)
    before = baselines.make_agent(saved["args"], load_map("three")).state_dict()
    moved = {name.split(".")[1] for name, w in saved["model"].items() if (w != before[name]).any()}
    assert moved == {"0", "1"}  # RUSSIA is never the learner's


@pytest.mark.parametrize("scheme", ["independent", "central"])
def test_a_run_begins_with_a_policy_of_plain_self_play(scheme):
    start = checkpoints.read(policy_file("three-pure-2"))
    network = {name: start["args"][name] for name in ("hidden", "num_layers")}
    given = {"scheme": scheme, "start_from": "three-pure-2", "learner_seats": 2}
    args = make_args(baselines.Args, **SMALL | network | given)
    run = baselines.SchemeRun(startup.new_run(baselines.LEARNER_SPEC, args, Ranks()), Ranks())
    model = run.agent.state_dict()
    for name, weight in start["model"].items():
        own = [f"powers.{p}.{name}" for p in range(3)] if scheme == "independent" else [name]
        assert all(torch.equal(model[key], weight) for key in own), name
    assert len(model) > len(start["model"])


@pytest.mark.slow
def test_a_policy_of_another_scheme_is_no_beginning(trained, tmp_path, capsys):
    flags = ["--start-from", str(trained("independent")), "--runs-folder", str(tmp_path / "runs")]
    flags += ["--scheme", "central", "--learner-seats", "2", "--hidden", "8", "--num-layers", "1"]
    refused(flags, "--start-from", "--scheme", capsys=capsys, script=baselines)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_wins_are_counted_by_team(trained):
    shown = set().union(*metrics(trained("partners")))
    assert {"selfplay/win_ENGLAND+ITALY", "selfplay/win_RUSSIA"} <= shown


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_learns_to_beat_random(scheme, tmp_path):
    changes = LEARNS | {"scheme": scheme, "total_timesteps": 40_000}
    changes["learner_seats"] = 2 if scheme == "central" else 1
    player = load_player(train(tmp_path / "runs", script=baselines, **changes))
    result = evaluate_player("small", player, make_bot("random"), 300, seed=4, threads=1).result()
    assert result["overall"]["win"]["low"] > 0.8
