"""The script's parts against slow references: advantages, network, loss, self-play, games."""

import copy
import functools
import itertools

import numpy as np
import pytest
import torch
from support.self_play import (
    SlowStream,
    learner_powers,
    make_agent,
    make_args,
    make_pool,
    make_run,
    play_phase,
    slow_advantages,
    take_batch,
)

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.constants import (
    NONE,
    RUNNING,
    WAIVE,
    YEAR_LIMIT,
    OrderKind,
    Phase,
    phase_name,
)
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.decisions import Decisions, join_decisions
from diplomacy_engine.games.observation import BoardViews
from diplomacy_engine.games.position import load_state
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.protocols import ExplainingPlayer
from diplomacy_engine.scoring import make_reward_mix, reward_input
from diplomacy_engine.selfplay.opponent_pool import LEARNER
from diplomacy_engine.selfplay.rollout_buffer import Batch, Experience
from diplomacy_engine.training.clock import Clock
from diplomacy_engine.training.parallel import TrainingError
from ppo_selfplay_diplomacy import (
    Agent,
    Run,
    Workers,
    compute_gae,
    frozen_copy,
    ppo_loss,
    update,
)

CPU = torch.device("cpu")
MAPS = ("small", "three", "standard")


# --- Advantages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_gae_equals_a_loop_over_streams(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 13), rng.integers(1, 9)
    gamma, gae_lambda = rng.choice([0.0, 0.5, 0.9, 0.99, 1.0], 2)
    # Beyond a stream's closed transitions stands noise, which must not matter.
    rewards, values, next_values = rng.normal(size=(3, *shape)).astype(np.float32)
    ends = rng.random(shape) < 0.3
    terminal = ends & (rng.random(shape) < 0.5)
    next_values[terminal] = 0.0
    count = rng.integers(0, shape[0] + 1, shape[1])
    closed = np.arange(shape[0])[:, None] < count
    found = compute_gae(rewards, values, next_values, ends, closed, gamma, gae_lambda)
    assert found.shape == shape and (found[~closed] == 0).all()
    for s in range(shape[1]):
        columns = (array[: count[s], s] for array in (rewards, values, next_values, ends))
        expected = slow_advantages(list(zip(*columns)), gamma, gae_lambda)
        np.testing.assert_allclose(found[: count[s], s], expected, rtol=1e-4, atol=1e-5)


def test_gae_by_hand():
    """Three streams: a game that ends, one that is truncated, one that the update cuts."""
    rewards = np.array([[1, 1, 1], [2, 2, 2]], np.float32)
    values = np.array([[4, 4, 4], [6, 6, 6]], np.float32)
    next_values = np.array([[6, 6, 6], [0, 8, 10]], np.float32)
    ends = np.array([[0, 0, 0], [1, 1, 0]], bool)
    found = compute_gae(rewards, values, next_values, ends, np.ones_like(ends), 0.5, 0.5)
    # Second row: 2 - 6, 2 + 4 - 6, 2 + 5 - 6; first row: 1 + 3 - 4 plus a quarter of the second.
    np.testing.assert_allclose(found, [[-1, 0, 0.25], [-4, 0, 1]])


# --- Network --------------------------------------------------------------------------------------


def play_bots(games: VectorGame, rng: np.random.Generator) -> None:
    """Play one phase: half of the powers at random, half as dumbbot, for dislodgements."""
    decisions = games.decisions()
    clever = rng.random(decisions.count) < 0.5
    players = [make_bot("random"), make_bot("dumbbot")]
    games.step(ask_players(games, decisions, players, clever))


@functools.cache
def positions(name: str) -> tuple[Decisions, BoardViews, np.ndarray]:
    """Return decisions of games in all five phase kinds, their observations and phases."""
    rng = np.random.default_rng(0)
    games = VectorGame(name, 24, seed=5, max_years=12, threads=1)
    parts, kept = [], np.zeros(len(Phase), int)
    several = {OrderKind.BUILD: 0, OrderKind.DISBAND: 0}  # winter decisions of several slots
    enough = {"small": (0, 0), "three": (0, 4), "standard": (8, 4)}[name]
    for _ in range(600):
        decisions = games.decisions()
        phase = games.state.phase[decisions.game]
        slots = np.diff(decisions.slot_start)
        rows = []
        for kind in Phase:
            new = np.flatnonzero(phase == kind)
            new = new[np.argsort(-slots[new], kind="stable")][: max(0, min(8, 40 - kept[kind]))]
            kept[kind] += len(new)
            rows.extend(new)
        first_order = decisions.order[decisions.order_start[decisions.slot_start[:-1]]]
        for kind in several:
            here = (phase == Phase.WINTER_ADJUSTMENTS) & (slots > 1)
            new = np.flatnonzero(here & (games.table.kind[first_order] == kind))
            if several[kind] < 10:
                several[kind] += len(new)
                rows.extend(new)
        if rows:
            some = decisions.take(np.array(rows))
            obs = games.view_boards(some.game, some.power)
            parts.append((some, obs, phase[rows]))
        if kept.min() >= 20 and all(map(int.__ge__, several.values(), enough)):
            break
        play_bots(games, rng)
    assert kept.min() >= 20, f"games of {name} reached the phases {kept} times"
    assert all(map(int.__ge__, several.values(), enough)), several
    decisions, obs, phases = zip(*parts)
    return join_decisions(decisions), BoardViews.join(obs), np.concatenate(phases)


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", MAPS)
def test_what_was_sampled_is_what_is_scored(name, autoregressive):
    """act() and get_logprob_entropy_value() agree, in all phases, on every map."""
    decisions, obs, phases = positions(name)
    agent = make_agent(name, autoregressive=autoregressive)
    chosen, logprob, value = agent.act(obs, decisions, torch.Generator().manual_seed(1))
    assert chosen.shape == decisions.slot_province.shape
    assert (chosen >= 0).all() and (chosen < np.diff(decisions.order_start)).all()
    newlogprob, entropy, newvalue = agent.get_logprob_entropy_value(obs, decisions, chosen)
    for kind in Phase:
        here = phases == kind
        assert here.any() and logprob[here].std() > 0.01
        np.testing.assert_allclose(newlogprob.detach()[here], logprob[here], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(newvalue.detach()[here], value[here], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(agent.get_value(obs).detach(), value, rtol=1e-4, atol=1e-4)
    assert np.isfinite(logprob).all() and (logprob <= 1e-6).all()
    share = entropy.detach().numpy()
    assert (share >= -1e-6).all() and (share <= 1 + 1e-5).all()
    counts = np.diff(decisions.order_start)
    several = np.array([counts[a:b].max() > 1 for a, b in slot_ranges(decisions)])
    assert (share[several] > 0).all() and share[several].min() < 0.97


def slot_ranges(decisions: Decisions) -> list[tuple[int, int]]:
    return list(itertools.pairwise(decisions.slot_start.tolist()))


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", MAPS)
def test_an_explanation_follows_the_likeliest_orders(name, autoregressive):
    """Its probabilities are those that scoring gives, slot by slot, after the greedy orders."""
    decisions, obs, phases = positions(name)
    agent = make_agent(name, autoregressive=autoregressive)
    probability, value = agent.explain(obs, decisions)
    assert (probability.dtype, probability.shape) == (np.float32, decisions.order.shape)
    assert (value.dtype, value.shape) == (np.float32, (decisions.count,))
    np.testing.assert_allclose(
        np.add.reduceat(probability, decisions.order_start[:-1]), 1, rtol=1e-5
    )
    chosen, logprob, expected = agent.act(obs, decisions, greedy=True)
    np.testing.assert_array_equal(value, expected)
    likeliest = np.log(probability[decisions.order_start[:-1] + chosen])
    np.testing.assert_allclose(
        np.add.reduceat(likeliest, decisions.slot_start[:-1]), logprob, rtol=1e-3, atol=1e-4
    )
    several = np.diff(decisions.slot_start) > 1
    rows = [np.flatnonzero((phases == kind) & several)[:2] for kind in Phase]
    rows = np.concatenate([*rows, [0]])
    assert len(rows) > 4
    for d in rows:
        a, b = decisions.slot_start[d : d + 2]
        for s in (a, b - 1):
            begin, end = decisions.order_start[a], decisions.order_start[s + 1]
            alone = Decisions(
                decisions.game[d : d + 1],
                decisions.power[d : d + 1],
                np.array([0, s + 1 - a], np.int32),
                decisions.slot_province[a : s + 1],
                decisions.order_start[a : s + 2] - begin,
                decisions.order[begin:end],
            )
            count = np.diff(decisions.order_start)[s]
            paths = [np.append(chosen[a:s], column) for column in range(count)]
            scored = agent.get_logprob_entropy_value(
                obs.take(np.repeat(d, count)),
                join_decisions([alone] * count),
                np.concatenate(paths),
            )[0].detach()
            scored = np.exp(scored.numpy() - likeliest[a:s].sum())
            here = slice(decisions.order_start[s], decisions.order_start[s + 1])
            np.testing.assert_allclose(probability[here], scored, rtol=1e-3, atol=1e-5)


def test_a_policy_player_explains_without_drawing():
    agent = make_agent("three")
    games = VectorGame("three", 3, seed=1, threads=1)
    decisions = games.decisions()
    player, fresh = (ppo.policy_player(agent, "me", seed=4) for _ in range(2))
    assert isinstance(player, ExplainingPlayer)
    assert not isinstance(make_bot("random"), ExplainingPlayer)
    probability, value = player.explain(games, decisions)
    assert len(probability) == len(decisions.order) and len(value) == decisions.count
    np.testing.assert_array_equal(player.act(games, decisions), fresh.act(games, decisions))
    with pytest.raises(UserError, match="me was trained on another map"):
        player.explain(VectorGame("small", 1), decisions)


@pytest.mark.parametrize("name", MAPS)
def test_one_decision_does_not_change_another(name):
    """A batch of decisions is scored as each is alone."""
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, logprob, value = agent.act(obs, decisions, torch.Generator().manual_seed(2))
    for d in np.random.default_rng(0).choice(decisions.count, 12, replace=False):
        a, b = decisions.slot_start[d : d + 2]
        alone = agent.get_logprob_entropy_value(
            obs.take(np.array([d])), decisions.take(np.array([d])), chosen[a:b]
        )
        np.testing.assert_allclose(alone[0].item(), logprob[d], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(alone[2].item(), value[d], rtol=1e-4, atol=1e-4)


def test_only_autoregressive_units_see_earlier_orders():
    decisions, obs, phases = positions("three")
    units = np.diff(decisions.slot_start)
    rows = np.flatnonzero((units >= 2) & (phases == Phase.SPRING_MOVEMENT))[:8]
    decisions, obs = decisions.take(rows), obs.take(rows)
    first = np.zeros(len(decisions.slot_province), np.int64)
    other = first.copy()
    other[decisions.slot_start[:-1]] = 1  # the first unit of each decision moves instead of holding
    shares = {}
    for autoregressive in (True, False):
        agent = make_agent("three", autoregressive=autoregressive)
        logprobs = []
        for chosen in (first, other):
            whole = agent.get_logprob_entropy_value(obs, decisions, chosen)[0].detach().numpy()
            # What the first unit alone contributes: the same decision without the other units
            alone = Decisions(
                decisions.game,
                decisions.power,
                np.arange(len(rows) + 1, dtype=np.int32),
                decisions.slot_province[decisions.slot_start[:-1]],
                *first_lists(decisions),
            )
            begin = chosen[decisions.slot_start[:-1]]
            logprobs.append(
                whole - agent.get_logprob_entropy_value(obs, alone, begin)[0].detach().numpy()
            )
        shares[autoregressive] = np.abs(logprobs[0] - logprobs[1])
    assert (shares[True] > 1e-3).all() and (shares[False] < 1e-4).all()


def first_lists(decisions: Decisions) -> tuple[np.ndarray, np.ndarray]:
    """Return order_start and order of the first slot of every decision alone."""
    lists = [
        decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
        for s in decisions.slot_start[:-1]
    ]
    starts = np.append(0, np.cumsum([len(orders) for orders in lists])).astype(np.int32)
    return starts, np.concatenate(lists)


@pytest.mark.parametrize("name", MAPS)
def test_only_legal_orders_are_chosen(name):
    """The games take every order of the network, and no province is adjusted twice."""
    games = VectorGame(name, 8, seed=2, max_years=5, threads=1, auto_reset=False)
    agent, generator = make_agent(name, scale=0.3), torch.Generator().manual_seed(3)
    texts, table = games.vocabulary.texts, games.table
    for _ in range(30):
        decisions = games.decisions()
        chosen, _, _ = agent.act(
            games.view_boards(decisions.game, decisions.power), decisions, generator
        )
        numbers = ppo.order_numbers(decisions, chosen)
        phase = games.state.phase[decisions.game]
        for d, (a, b) in enumerate(slot_ranges(decisions)):
            if phase[d] == Phase.WINTER_ADJUSTMENTS:
                given = [n for n in numbers[a:b] if table.kind[n] != WAIVE]
                places = games.board.location_province[table.location[given]]
                assert len(set(places.tolist())) == len(given), [texts[n] for n in given]
        orders = games.new_orders()
        games.write_orders(orders, decisions, numbers)
        moving = np.isin(games.state.phase, (Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT))
        games.step(orders)
        np.testing.assert_array_equal(games.state.last_order[moving], orders[moving])
        games.reset(games.state.end != RUNNING)


def test_no_province_is_adjusted_twice():
    """Winter slots list the same provinces; of several, each is chosen once at most."""
    decisions, obs, phases = positions("standard")
    rows = np.flatnonzero(
        (phases == Phase.WINTER_ADJUSTMENTS) & (np.diff(decisions.slot_start) > 1)
    )
    assert len(rows) >= 12
    rows = np.repeat(rows, 10)
    decisions, obs = decisions.take(rows), obs.take(rows)
    games = VectorGame("standard", 1, threads=1)
    kinds = set()
    for autoregressive, greedy in itertools.product((True, False), (True, False)):
        agent = make_agent("standard", autoregressive=autoregressive)
        chosen, logprob, _ = agent.act(
            obs, decisions, torch.Generator().manual_seed(4), greedy=greedy
        )
        numbers = ppo.order_numbers(decisions, chosen)
        for a, b in slot_ranges(decisions):
            given = [n for n in numbers[a:b] if games.table.kind[n] != WAIVE]
            kinds.update(int(games.table.kind[n]) for n in given)
            places = games.board.location_province[games.table.location[given]]
            assert len(set(places.tolist())) == len(given)
        again, entropy, _ = agent.get_logprob_entropy_value(obs, decisions, chosen)
        np.testing.assert_allclose(again.detach(), logprob, rtol=1e-4, atol=1e-4)
        assert (entropy > -1e-6).all() and (entropy < 1 + 1e-5).all()
    assert len(kinds) == 2, "both builds and removals should have occurred"


def enumerate_decision(agent: Agent, decisions: Decisions, obs: BoardViews, d: int) -> np.ndarray:
    """Return the probability of every combination of orders of a decision of two slots."""
    counts = np.diff(decisions.order_start)[decisions.slot_start[d] : decisions.slot_start[d + 1]]
    combinations = np.array(list(itertools.product(*map(range, counts))))
    rows = np.full(len(combinations), d)
    logprob, _, _ = agent.get_logprob_entropy_value(
        obs.take(rows), decisions.take(rows), combinations.ravel()
    )
    return logprob.detach().double().exp().numpy().reshape(counts)


def two_slot_decision(name: str, phase: Phase, most: int = 150) -> int:
    decisions, _, phases = positions(name)
    counts = np.diff(decisions.order_start)
    for d, (a, b) in enumerate(slot_ranges(decisions)):
        fits = b - a == 2 and counts[a:b].min() > 1 and counts[a:b].prod() <= most
        if fits and phases[d] == phase:
            return d
    raise AssertionError(f"no fitting decision of {name} in {phase!r}")


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize(
    ("name", "phase"),
    [("three", Phase.FALL_MOVEMENT), ("standard", Phase.WINTER_ADJUSTMENTS)],
)
def test_sampling_follows_the_probabilities(name, phase, autoregressive):
    decisions, obs, _ = positions(name)
    d = two_slot_decision(name, phase)
    agent = make_agent(name, autoregressive=autoregressive, scale=0.3)
    probability = enumerate_decision(agent, decisions, obs, d)
    assert probability.sum() == pytest.approx(1.0, abs=1e-4)
    if phase == Phase.WINTER_ADJUSTMENTS:
        assert (probability == 0).any() and (probability > 0).any()
    draws, generator = 0, torch.Generator().manual_seed(7)
    observed = np.zeros(probability.shape)
    rows = np.full(1000, d)
    for _ in range(6):
        chosen, _, _ = agent.act(obs.take(rows), decisions.take(rows), generator)
        np.add.at(observed, tuple(chosen.reshape(-1, 2).T), 1)
        draws += len(rows)
    assert (observed[probability == 0] == 0).all()
    expected = probability * draws
    many, few = expected >= 5, (expected < 5) & (expected > 0)
    terms = (observed[many] - expected[many]) ** 2 / expected[many]
    chi2, freedom = terms.sum(), many.sum() - 1
    if expected[few].sum() >= 5:
        chi2 += (observed[few].sum() - expected[few].sum()) ** 2 / expected[few].sum()
        freedom += 1
    assert freedom >= 3
    # The seed is fixed; 4.5 standard deviations of a chi-square, far below any systematic error
    assert chi2 < freedom + 4.5 * (2 * freedom) ** 0.5
    uniform = (observed - draws / observed.size) ** 2 / (draws / observed.size)
    assert uniform.sum() > 2 * (freedom + 4.5 * (2 * freedom) ** 0.5)  # the check has teeth


@pytest.mark.parametrize(
    ("name", "phase"),
    [("three", Phase.FALL_MOVEMENT), ("standard", Phase.WINTER_ADJUSTMENTS)],
)
def test_greedy_picks_the_likeliest(name, phase):
    """Unit by unit: the likeliest first order, then the likeliest second one after it."""
    decisions, obs, _ = positions(name)
    d = two_slot_decision(name, phase)
    firsts = set()
    for seed in range(6):
        agent = make_agent(name, seed=seed)
        probability = enumerate_decision(agent, decisions, obs, d)
        chosen, _, _ = agent.act(
            obs.take(np.array([d])), decisions.take(np.array([d])), greedy=True
        )
        first = probability.sum(1).argmax()
        assert chosen.tolist() == [first, probability[first].argmax()]
        firsts.add(int(first))
    assert len(firsts) > 1


def test_entropy_is_a_share_of_the_greatest_possible():
    decisions, obs, _ = positions("three")
    counts = np.diff(decisions.order_start)
    free = np.array([counts[a:b].max() > 1 for a, b in slot_ranges(decisions)])
    chosen = np.zeros(len(counts), np.int64)
    for scale, low, high in ((0.0, 1 - 1e-5, 1 + 1e-5), (1e4, -1e-6, 0.2)):
        agent = make_agent("three", scale=scale)
        chosen, _, _ = agent.act(obs, decisions, greedy=True)
        share = agent.get_logprob_entropy_value(obs, decisions, chosen)[1].detach().numpy()
        assert low <= np.median(share[free]) <= high
        assert (share >= -1e-6).all() and (share <= 1 + 1e-5).all()
        if scale == 0:
            assert (share[free] >= low).all()
        assert (share[~free] == 0).all()


def test_a_slot_without_legal_orders_is_refused():
    """Its row would be all -inf, which turns into a policy out of nothing."""
    decisions, obs, _ = positions("small")
    row = decisions.take(np.array([0]))
    empty = Decisions(*row[:4], np.zeros_like(row.order_start), row.order[:0])
    agent = make_agent()
    with pytest.raises(AssertionError, match="without a legal order"):
        agent.act(obs.take(np.array([0])), empty)
    chosen = np.zeros(len(row.slot_province), np.int64)
    with pytest.raises(AssertionError, match="without a legal order"):
        agent.get_logprob_entropy_value(obs.take(np.array([0])), empty, chosen)


@pytest.mark.parametrize("name", ["three", "standard"])
def test_gradients_are_finite_and_reach_every_weight(name):
    """Also where orders are ruled out with -inf."""
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, _, _ = agent.act(obs, decisions, torch.Generator().manual_seed(5))
    logprob, entropy, value = agent.get_logprob_entropy_value(obs, decisions, chosen)
    (logprob.sum() + entropy.sum() + value.sum()).backward()
    for parameter_name, parameter in agent.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), parameter_name
        if parameter_name != "score.bias":  # shifts all scores alike
            assert parameter.grad.abs().sum() > 0, parameter_name


def test_draws_come_from_the_generator_alone():
    decisions, obs, _ = positions("small")
    agent = make_agent(scale=0.3)
    torch.manual_seed(1)
    one, _, _ = agent.act(obs, decisions, torch.Generator().manual_seed(9))
    state = torch.get_rng_state()
    two, _, _ = agent.act(obs, decisions, torch.Generator().manual_seed(9))
    other, _, _ = agent.act(obs, decisions, torch.Generator().manual_seed(10))
    assert (one == two).all() and (one != other).any()
    assert (torch.get_rng_state() == state).all()


# --- Loss and update ------------------------------------------------------------------------------


@pytest.mark.parametrize("clip_vloss", [True, False])
def test_loss_equals_a_loop_over_rows(clip_vloss):
    args = make_args(clip_vloss=clip_vloss, clip_coef=0.2, vf_coef=0.7)
    rng = np.random.default_rng(0)
    count = 40
    new, old = rng.normal(size=(2, count)) * 0.4
    entropy = rng.random(count)
    newvalue, value, advantage, returns = rng.normal(size=(4, count))
    tensors = (torch.tensor(x) for x in (new, entropy, newvalue, old, value, advantage, returns))
    loss, figures = ppo_loss(args, 0.03, *tensors)

    policy, values, clipped, kl, old_kl = 0.0, 0.0, 0, 0.0, 0.0
    for i in range(count):
        ratio = np.exp(new[i] - old[i])
        policy -= min(ratio * advantage[i], min(max(ratio, 0.8), 1.2) * advantage[i])
        error = (newvalue[i] - returns[i]) ** 2
        if clip_vloss:
            near = value[i] + min(max(newvalue[i] - value[i], -0.2), 0.2)
            error = max(error, (near - returns[i]) ** 2)
        values += 0.5 * error
        clipped += abs(ratio - 1) > 0.2
        kl += ratio - 1 - np.log(ratio)
        old_kl -= np.log(ratio)
    expected = {
        "policy_loss": policy / count,
        "value_loss": values / count,
        "entropy": entropy.mean(),
        "clipfrac": clipped / count,
        "approx_kl": kl / count,
        "old_approx_kl": old_kl / count,
    }
    assert {name: value.item() for name, value in figures.items()} == pytest.approx(expected)
    total = policy / count - 0.03 * entropy.mean() + 0.7 * values / count
    assert loss.item() == pytest.approx(total)
    assert 0 < clipped < count


def test_a_clipped_row_has_no_gradient():
    args = make_args(clip_coef=0.2)
    new = torch.tensor([0.5, 0.5, -0.5, -0.5, 0.1], requires_grad=True)
    zeros = torch.zeros(5)
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    ppo_loss(args, 0.0, new, zeros, zeros, zeros, zeros, advantages, zeros)[0].backward()
    assert (new.grad == 0).tolist() == [True, False, False, True, False]


def some_batch(agent: Agent, count: int = 30, name: str = "small") -> Batch:
    """Return a batch whose `values` tell the transitions apart."""
    decisions, obs, _ = positions(name)
    rows = np.arange(count)
    experience = Experience(obs.take(rows), decisions.take(rows), None)
    chosen, logprobs, _ = agent.act(
        experience.obs, experience.decisions, torch.Generator().manual_seed(0)
    )
    advantages = np.random.default_rng(0).normal(size=count).astype(np.float32)
    values = rows.astype(np.float32)
    return Batch(
        experience._replace(chosen=chosen), logprobs, values, advantages, values * 0.1, 0 * values
    )


def test_update_learns_from_every_transition_once_an_epoch(monkeypatch):
    agent = make_agent()
    before = copy.deepcopy(agent.state_dict())
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    seen, loss = [], ppo.ppo_loss

    def spy(args, ent_coef, newlogprob, entropy, newvalue, logprobs, values, *rest):
        if not seen:  # before the first step, the new policy is the old one
            np.testing.assert_allclose(newlogprob.detach(), logprobs, rtol=1e-4, atol=1e-4)
        seen.append(values.tolist())
        return loss(args, ent_coef, newlogprob, entropy, newvalue, logprobs, values, *rest)

    monkeypatch.setattr(ppo, "ppo_loss", spy)
    args = make_args(update_epochs=3, num_minibatches=4, target_kl=None)
    rng = np.random.default_rng(0)
    figures = update(args, agent, optimizer, some_batch(agent), 0.01, rng, Clock())
    epochs = [list(itertools.chain(*seen[i : i + 4])) for i in (0, 4, 8)]
    assert all(sorted(epoch) == list(range(30)) for epoch in epochs) and epochs[0] != epochs[1]
    assert all(np.isfinite(value) for value in figures.values())
    assert any((agent.state_dict()[name] != before[name]).any() for name in before)

    seen.clear()
    args = make_args(update_epochs=3, num_minibatches=4, target_kl=0.0)
    update(args, agent, optimizer, some_batch(agent), 0.01, rng, Clock())
    assert len(seen) == 4, "the first epoch's divergence should have stopped the update"
    seen.clear()
    args = make_args(update_epochs=1, num_minibatches=50, target_kl=None)
    update(args, agent, optimizer, some_batch(agent), 0.01, rng, Clock())
    assert sorted(itertools.chain(*seen)) == list(range(30)), "more minibatches than transitions"


def test_advantages_are_normalized_over_the_minibatch(monkeypatch):
    agent, seen, loss = make_agent(), [], ppo.ppo_loss

    def spy(*values):
        seen.append(values[-2])
        return loss(*values)

    monkeypatch.setattr(ppo, "ppo_loss", spy)
    monkeypatch.setattr("sys.platform", "darwin")  # the spy sees both parts in one process
    workers = Workers(2, {LEARNER: agent})
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    for norm_adv in (True, False):
        seen.clear()
        args = make_args(update_epochs=1, num_minibatches=1, norm_adv=norm_adv)
        batch = some_batch(agent)
        batch.advantages[:] += 5
        rng = np.random.default_rng(0)
        update(args, agent, optimizer, batch, 0.01, rng, Clock(), workers)
        assert len(seen) == 2
        together = torch.cat(seen)
        found = (together.mean().item(), together.std().item())
        expected = (0, 1) if norm_adv else (batch.advantages.mean(), batch.advantages.std(ddof=1))
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["small", "three"])
def test_two_workers_take_the_steps_of_one(name):
    torch.set_num_threads(1)  # as Run does: a forked process cannot use PyTorch's own threads

    def learned(count: int) -> tuple[dict, dict]:
        agent = make_agent(name)
        workers = Workers(count, {LEARNER: agent.share_memory()})
        optimizer = torch.optim.SGD(agent.parameters(), lr=0.05)
        args = make_args(update_epochs=2, num_minibatches=3, target_kl=None)
        rng = np.random.default_rng(0)
        batch = some_batch(agent, 31, name)
        figures = update(args, agent, optimizer, batch, 0.01, rng, Clock(), workers)
        return agent.state_dict(), figures

    one, figures = learned(1)
    for workers in (2, 5, 40):
        many, same = learned(workers)
        assert same == pytest.approx(figures, rel=1e-3, abs=1e-5)
        for key, tensor in one.items():
            torch.testing.assert_close(many[key], tensor, rtol=1e-3, atol=1e-5)
    again, _ = learned(2)
    assert all((again[key] == tensor).all() for key, tensor in learned(2)[0].items())


def test_the_average_counts_late_weights_more():
    agents = [make_agent(seed=seed) for seed in (1, 2, 3, 4)]
    for power, shares in ((1.0, (1, 2, 3, 4)), (2.0, (2, 6, 12, 20))):  # n (n + 1) for power 2
        average = frozen_copy(make_agent(seed=9))  # forgotten at the first update
        for updates, agent in enumerate(agents):
            ppo.update_average(average, agent, updates, power)
        for kept, *weights in zip(average.parameters(), *(a.parameters() for a in agents)):
            wanted = sum(share * weight for share, weight in zip(shares, weights)) / sum(shares)
            torch.testing.assert_close(kept, wanted)
    assert all(not kept.requires_grad for kept in average.parameters())


def test_the_pull_is_towards_the_average():
    agent, average = make_agent(seed=1), make_agent(seed=2)
    changes = {"norm_adv": False, "vf_coef": 0.0, "target_kl": None, "num_minibatches": 2}
    args, rng = make_args(kl_coef=0.5, **changes), np.random.default_rng(0)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    distances = []  # KL divergences of the agent from the average, as sampled
    for _ in range(10):
        batch = some_batch(agent, 60)
        batch.advantages[:] = 0  # so that nothing but the pull teaches
        with torch.no_grad():
            kept = average.get_logprob_entropy_value(*batch.experience)[0].numpy()
        distances.append((batch.logprobs - kept).mean())
        term = ppo.kl_to_average(args, frozen_copy(average), batch)
        np.testing.assert_allclose(term, 0.5 * (kept - batch.logprobs), rtol=1e-4, atol=1e-4)
        update(args, agent, optimizer, batch._replace(kl_term=term), 0.0, rng, Clock())
    assert distances[-1] < 0.6 * distances[0], distances


def test_values_that_are_shares():
    """Those of all powers of a board add up to a whole, and the scale learns."""
    agent = make_agent("three", value_shares=True)
    games = VectorGame("three", 2, seed=3)
    rows, powers = np.repeat([0, 1], 3), np.tile(np.arange(3, dtype=np.int8), 2)
    with torch.no_grad():
        agent.share_scale.copy_(torch.tensor([0.25, 2.0]))
    values = agent.get_value(games.view_boards(rows, powers)).view(2, 3)
    torch.testing.assert_close(values.sum(1), torch.full((2,), 3 * 0.25 + 2.0))
    assert values.std() > 0
    values[:, 0].sum().backward()
    assert (agent.share_scale.grad != 0).all() and agent.critic[0].weight.grad.any()


def test_a_loss_that_is_not_finite_is_refused():
    agent = make_agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    batch = some_batch(agent)
    batch.advantages[3] = np.nan
    with pytest.raises(TrainingError, match="not finite"):
        update(make_args(), agent, optimizer, batch, 0.01, np.random.default_rng(0), Clock())


# --- Opponent pool --------------------------------------------------------------------------------


def test_a_member_does_not_change_when_the_learner_learns():
    agent = make_agent(hidden=8, num_layers=1)
    pool = make_pool(make_copy=functools.partial(frozen_copy, agent))
    member = pool.members[0].player
    live = {tensor.data_ptr() for tensor in (*agent.parameters(), *agent.buffers())}
    assert not live & {tensor.data_ptr() for tensor in (*member.parameters(), *member.buffers())}
    before = copy.deepcopy(member.state_dict())
    decisions, obs, _ = positions("small")
    chosen = member.act(obs, decisions, torch.Generator().manual_seed(1))
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.05)
    update(make_args(), agent, optimizer, some_batch(agent), 0.0, np.random.default_rng(0), Clock())
    assert any((agent.state_dict()[name] != before[name]).any() for name in before)
    assert all((member.state_dict()[name] == before[name]).all() for name in before)
    again = member.act(obs, decisions, torch.Generator().manual_seed(1))
    assert all((one == two).all() for one, two in zip(chosen, again))
    assert not any(parameter.requires_grad for parameter in member.parameters())
    pool.freeze(frozen_copy(agent), 50)
    newest = pool.members[-1].player.state_dict()
    assert all((newest[name] == tensor).all() for name, tensor in agent.state_dict().items())


def test_pool_state_round_trip():
    changes = {"pool_size": 2, "pool_bots": ("hold",), "pool_bot_prob": 0.5}
    agent = make_agent(hidden=8, num_layers=1)
    pool = make_pool(4, functools.partial(frozen_copy, agent), **changes)
    with torch.no_grad():
        agent.score.weight.add_(1.0)
    pool.freeze(frozen_copy(agent), 400)
    bot = pool.bots[0].number
    assert bot == 1  # after the learner; the copies follow
    pool.forget_unused(np.array([[LEARNER, 3], [bot, 5]]))
    pool.record(np.array([[LEARNER, 3], [LEARNER, bot], [6, LEARNER]]), np.array([1.0, 0.5, 0.0]))
    saved = copy.deepcopy(pool.state_dict())
    with torch.no_grad():
        agent.score.weight.add_(1.0)  # what was saved is not what is live
    other = make_pool(1, **changes)
    other.load_state_dict(saved, functools.partial(frozen_copy, agent))
    assert [m.number for m in other.members] == [m.number for m in pool.members] == [5, 6]
    assert set(other.all) == set(pool.all) == {LEARNER, bot, 3, 5, 6}
    assert other.next_number == pool.next_number == 7
    for number, member in pool.all.items():
        found = other.all[number]
        assert (found.games, found.score, found.frozen_at) == (
            member.games,
            member.score,
            member.frozen_at,
        )
        if number not in (LEARNER, bot):
            weights = member.player.state_dict()
            assert all((found.player.state_dict()[n] == w).all() for n, w in weights.items())
    np.testing.assert_array_equal(
        pool.draw(np.random.default_rng(0), (50,)), other.draw(np.random.default_rng(0), (50,))
    )


# --- Self-play ------------------------------------------------------------------------------------


class Spy:
    """Watches a run's self-play: what each player was asked, what it answered, what came of it."""

    def __init__(self, run: Run, monkeypatch):
        self.run = run
        self.asked: list[tuple[Agent, Decisions, np.ndarray]] = []
        self.added = None
        act, add, step = Agent.act, run.buffer.add, run.self_play.games.step

        def spying_act(agent, obs, decisions, *rest, **options):
            found = act(agent, obs, decisions, *rest, **options)
            self.asked.append((agent, decisions, found[0]))
            return found

        def spying_add(streams, experience, logprobs, values):
            self.added = streams.copy(), experience, logprobs.copy(), values.copy()
            add(streams, experience, logprobs, values)

        def spying_step(orders):
            self.orders = orders.copy()
            self.result = step(orders)
            self.after = run.self_play.games.snapshot()
            return self.result

        monkeypatch.setattr(Agent, "act", spying_act)
        monkeypatch.setattr(run.buffer, "add", spying_add)
        monkeypatch.setattr(run.self_play.games, "step", spying_step)

    def step(self, progress: float = 0.0) -> dict[str, int]:
        """Play one phase, after noting who sits where and what is to be decided."""
        self_play = self.run.self_play
        self.asked.clear()
        self.added = None
        self.seats = self_play.seating.seats.member.copy()
        self.learner_power = learner_powers(self_play.seating)
        self.members = dict(self_play.pool.all)
        self.decisions = self_play.games.decisions()
        self.players = self.seats[self.decisions.game, self.decisions.power]
        self.mine = self.decisions.take(self.players == LEARNER)
        self.obs = self_play.games.view_boards(self.mine.game, self.mine.power)
        self.phase = self_play.games.state.phase.copy()
        return play_phase(self.run, progress)


def same_decisions(one: Decisions, two: Decisions) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two))


@pytest.mark.parametrize("learner_seats", [1, 2])
def test_everybody_plays_his_own_seats(monkeypatch, learner_seats):
    """In every step each player is asked for its own seats' decisions only, its answers are what is
    ordered, the learner's alone are stored, and nobody changes seats within a game. New copies
    push old ones out of the pool all the time; these play on until their games are over."""
    run = make_run(
        map="three",
        num_envs=12,
        num_steps=400,
        learner_seats=learner_seats,
        max_years=3,
        pool_size=2,
        pool_bots=("hold",),
        pool_bot_prob=0.3,
    )
    self_play, pool = run.self_play, run.pool
    spy = Spy(run, monkeypatch)
    departed = finished = 0
    for step in range(60):
        counts = spy.step()
        finished += counts["games"]
        assert counts["global_step"] == spy.mine.count and counts["env_steps"] == 12
        assert counts["order_steps"] == len(spy.mine.slot_province)
        number_of = {id(member.player): number for number, member in spy.members.items()}
        number_of[id(run.agent)] = LEARNER
        asked = {}
        for agent, decisions, chosen in spy.asked:
            number = number_of[id(agent)]
            assert number not in asked
            asked[number] = chosen
            assert same_decisions(decisions, spy.decisions.take(spy.players == number))
            numbers = ppo.order_numbers(decisions, chosen)
            game = np.repeat(decisions.game, np.diff(decisions.slot_start))
            standing = decisions.slot_province != NONE
            given = spy.orders[game[standing], decisions.slot_province[standing]]
            np.testing.assert_array_equal(given, numbers[standing])
        bot = pool.bots[0].number
        assert set(asked) == set(spy.players.tolist()) - {bot}
        members = {member.number for member in pool.members}
        departed += len(set(asked) - members - {LEARNER})
        # The learner's decisions, all of them and no others, with what it saw and chose
        if not spy.mine.count:
            assert spy.added is None
            continue
        streams, experience, _, _ = spy.added
        assert same_decisions(experience.decisions, spy.mine)
        assert all(np.array_equal(a, b) for a, b in zip(experience.obs, spy.obs))
        np.testing.assert_array_equal(experience.chosen, asked[LEARNER])
        for stream, game, power in zip(streams, spy.mine.game, spy.mine.power):
            seat = spy.learner_power[game].tolist().index(power)
            assert stream == game * learner_seats + seat
        # Nobody changes seats within a game, and exactly those over begin anew
        new = self_play.games.state.turn == 0
        assert new.sum() == counts["games"]
        np.testing.assert_array_equal(self_play.seating.seats.member[~new], spy.seats[~new])
        powers = learner_powers(self_play.seating)
        np.testing.assert_array_equal(powers[~new], spy.learner_power[~new])
        in_games = set(np.unique(self_play.seating.seats.member).tolist()) - {LEARNER}
        assert in_games <= set(pool.all) and len(pool.members) <= 2
        if step % 3 == 2:
            pool.freeze(frozen_copy(run.agent), 10 * step)
    assert departed > 10 and finished > 12
    self_play.seating.forget_unused()
    assert set(pool.all) - {LEARNER, bot} <= in_games | {member.number for member in pool.members}


@pytest.mark.parametrize(
    ("learner_seats", "year_limit", "finish_games"),
    [(1, "draw", False), (1, "truncate", False), (2, "truncate", True), (2, "draw", True)],
)
def test_transitions_equal_a_slow_reference(monkeypatch, learner_seats, year_limit, finish_games):
    """Rewards, whenever they come, reach the power's last decision; ends are terminal (worth 0) or
    truncated (worth the value of the final position); each stream is one seat of one row."""
    mix = "center_delta=3,deepdip=1..0.5"
    run = make_run(
        map="three",
        num_envs=16,
        num_steps=400,
        learner_seats=learner_seats,
        year_limit=year_limit,
        finish_games=finish_games,
        max_years=6,
        reward="deepdip",
        reward_mix=mix,
        pool_bots=("dumbbot",),
        pool_bot_prob=0.8,
    )
    games, reward = run.self_play.games, make_reward_mix(mix)
    spy = Spy(run, monkeypatch)
    final = VectorGame(games.map, games.num_games, max_years=6, threads=1)
    streams = [SlowStream() for _ in range(16 * learner_seats)]
    events = dict.fromkeys(("idle pay", "eliminated", "limit", "solo", "idle end"), 0)
    for step in range(90):
        progress = step / 90
        spy.step(progress)
        if spy.added is not None:
            for stream, logprob, value in zip(spy.added[0], *spy.added[2:]):
                streams[stream].close(value, False)
                streams[stream].open = {"reward": 0.0, "value": value, "logprob": logprob}
        result = spy.result
        paid = reward(
            reward_input(result, games.board.victory_centers, year_limit == "draw"), progress
        )
        final.restore(spy.after)
        for row in range(16):
            for seat, power in enumerate(spy.learner_power[row]):
                stream = streams[row * learner_seats + seat]
                if stream.open is None:
                    continue
                decided = ((spy.mine.game == row) & (spy.mine.power == power)).any()
                stream.open["reward"] += paid[row, power]
                events["idle pay"] += not decided and paid[row, power] != 0
                over = result.ended[row]
                if result.eliminated[row, power]:
                    events["eliminated"] += 1
                    stream.close(0.0, True)
                elif over == YEAR_LIMIT and year_limit == "truncate":
                    events["limit"] += 1
                    obs = final.view_boards(np.array([row]), np.array([power]))
                    stream.close(run.agent.get_value(obs).item(), True)
                elif over != RUNNING:
                    events["limit" if over == YEAR_LIMIT else "solo"] += 1
                    stream.close(0.0, True)
                events["idle end"] += not decided and stream.open is None
    for number, stream in enumerate(streams):
        count = len(stream)
        assert run.buffer.count[number] == count
        assert run.buffer.open[number] == (stream.open is not None)
        done = len(stream.closed)
        assert (run.buffer.closed[:, number] == (np.arange(400) < done)).all()
        for name, key in (
            ("rewards", "reward"),
            ("values", "value"),
            ("logprobs", "logprob"),
            ("next_values", "next_value"),
            ("ends", "end"),
        ):
            found = getattr(run.buffer, name)[:done, number]
            expected = [transition[key] for transition in stream.closed]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    for name in ("idle pay", "eliminated", "limit"):
        assert events[name] > 0, events


def test_the_seed_decides_weights_games_and_seats():
    one, same, other = (make_run(seed=seed, num_envs=50) for seed in (1, 1, 2))
    for find in (
        lambda run: run.agent.critic[0].weight.detach().numpy(),
        lambda run: run.self_play.games.row_seed,
        lambda run: run.self_play.seating.seats.member,
    ):
        assert (find(one) == find(same)).all() and (find(one) != find(other)).any()


def test_the_number_of_workers_does_not_change_what_is_played():
    def played(threads: int) -> Run:
        run = make_run(map="three", threads=threads, learner_seats=2)
        for step in range(9):
            if step in (3, 5):
                with torch.no_grad():
                    run.agent.order_kinds.weight.mul_(2.0)  # as an update would
                run.pool.freeze(frozen_copy(run.agent), 0)
            play_phase(run)
            run.self_play.seating.forget_unused()
        run.self_play.close_all()
        return run

    one = played(1)
    for threads in (2, 3):
        many = played(threads)
        games, expected = (run.self_play.games.snapshot() for run in (many, one))
        assert all(np.array_equal(games[name], expected[name]) for name in expected)
        for name in ("logprobs", "values", "rewards", "next_values", "row"):
            np.testing.assert_array_equal(getattr(many.buffer, name), getattr(one.buffer, name))


# --- Games by hand --------------------------------------------------------------------------------


class Script:
    """Stands in for the learner's network: orders from a script by phase, numbered values."""

    def __init__(self, games: VectorGame, orders: dict[str, list[str]]):
        self.games, self.orders = games, orders
        self.phases: list[str] = []

    def act(self, obs, decisions, generator=None, greedy=False, temperature=None, noise=None):
        assert decisions.count == 1
        state, texts, chosen = self.games.state, self.games.vocabulary.texts, []
        phase = phase_name(int(state.year[0]), int(state.phase[0]))
        wanted = list(self.orders[phase])
        for start, stop in itertools.pairwise(decisions.order_start):
            legal = [texts[number] for number in decisions.order[start:stop]]
            order = next(text for text in wanted if text in legal)
            wanted.remove(order)
            chosen.append(legal.index(order))
        assert not wanted
        self.phases.append(phase)
        number = np.float32([len(self.phases)])
        return np.array(chosen), -number, number * 10

    def get_value(self, obs):
        return torch.full((len(obs.board),), 77.0)


def scripted_run(power: str, orders: dict[str, list[str]], **changes) -> tuple[Run, Script]:
    """Return a run of one game in which the learner plays a power by script; the others hold."""
    for seed in range(200):
        changes = {"num_envs": 1, "pool_bots": ("hold",), "pool_bot_prob": 1.0} | changes
        run = make_run(seed=seed, **changes)
        powers = run.self_play.games.map.powers
        if powers[learner_powers(run.self_play.seating)[0, 0]] == power:
            break
    script = Script(run.self_play.games, orders)
    run.agent.act, run.agent.get_value = script.act, script.get_value
    return run, script


def play(run: Run, steps: int, progress: float = 0.0) -> int:
    """Play so many phases; return how many games were over."""
    return sum(play_phase(run, progress)["games"] for _ in range(steps))


SOLO_SCRIPT = {
    "S1901M": ["A LON - PAR"],
    "F1901M": ["A PAR H"],
    "W1901A": ["A LON B"],
    "S1902M": ["A PAR - ROM", "A LON - POR"],
    "F1902M": ["A ROM H", "A POR H"],
    "W1902A": ["A LON B"],
    "S1903M": ["A ROM - GRE", "A POR H", "A LON H"],
    "F1903M": ["A GRE - BUL", "A POR H", "A LON H"],
}


def test_rewards_of_a_solo_by_hand():
    """England takes Paris, then Rome and Portugal, then Bulgaria: 1, 2, 4, 5 of 5 centers."""
    run, script = scripted_run(
        "ENGLAND", SOLO_SCRIPT, reward_mix="center_delta=5,terminal=1", max_years=5
    )
    assert play(run, 7) == 0 and play(run, 1) == 1
    assert script.phases == list(SOLO_SCRIPT)
    buffer = run.buffer
    assert buffer.count.tolist() == [8] and not buffer.open.any()
    assert buffer.closed[:8, 0].all() and not buffer.closed[8:, 0].any()
    assert buffer.rewards[:8, 0].tolist() == [0, 1, 0, 0, 2, 0, 0, 2]
    assert buffer.values[:8, 0].tolist() == [10, 20, 30, 40, 50, 60, 70, 80]
    assert buffer.next_values[:8, 0].tolist() == [20, 30, 40, 50, 60, 70, 80, 0]
    assert buffer.ends[:8, 0].tolist() == [False] * 7 + [True]
    assert buffer.take_episodes() == {
        "episodic_length": 8,
        "episodic_return": 5,
        "episodic_return_center_delta": pytest.approx(4 / 5),  # without its weight of 5
        "episodic_return_terminal": 1,
    }
    figures = run.self_play.seating.take_statistics(8)
    assert (figures["win"], figures["solo"], figures["draw"], figures["loss"]) == (1, 1, 0, 0)
    assert (figures["games"], figures["centers"], figures["years"]) == (1, 5, 3)
    batch = take_batch(buffer, 1.0, 1.0)
    np.testing.assert_allclose(batch.returns, [5, 5, 4, 4, 4, 2, 2, 2])
    assert batch.logprobs.tolist() == [-1, -2, -3, -4, -5, -6, -7, -8]


def test_a_solo_is_terminal_also_where_the_limit_truncates():
    run, _ = scripted_run(
        "ENGLAND", SOLO_SCRIPT, reward="terminal", year_limit="truncate", max_years=3
    )
    assert play(run, 8) == 1
    assert run.buffer.rewards[7, 0] == 1 and run.buffer.next_values[7, 0] == 0
    assert run.buffer.ends[7, 0]


@pytest.mark.parametrize("year_limit", ["draw", "truncate"])
def test_the_year_limit_by_hand(year_limit):
    """One year, in which England comes to own two of three centers."""
    run, _ = scripted_run(
        "ENGLAND",
        SOLO_SCRIPT,
        reward_mix="center_delta=5,sum_of_squares=1",
        year_limit=year_limit,
        max_years=1,
    )
    assert play(run, 2) == 1
    buffer = run.buffer
    assert buffer.count.tolist() == [2] and buffer.ends[:2, 0].tolist() == [False, True]
    end_reward = 4 / 5 if year_limit == "draw" else 0.0
    np.testing.assert_allclose(buffer.rewards[:2, 0], [0, 1 + end_reward])
    assert buffer.next_values[:2, 0].tolist() == [20, 0 if year_limit == "draw" else 77]
    assert run.self_play.games.state.turn[0] == 0
    figures = run.self_play.seating.take_statistics(2)
    assert (figures["win"], figures["solo"], figures["draw"], figures["loss"]) == (1, 0, 1, 0)


def test_rewards_in_a_phase_in_which_only_the_opponent_decides():
    """Russia dislodges an army in the fall; it owns Armenia only after England's retreat."""
    run, script = scripted_run(
        "RUSSIA",
        {"F1901M": ["A MOS - ARM", "A UKR S A MOS - ARM"], "W1901A": ["A MOS B"]},
        reward="center_delta",
        max_years=5,
    )
    load_state(
        run.self_play.games,
        {
            "name": "F1901M",
            "units": {"ENGLAND": ["A ARM", "A LON"], "RUSSIA": ["A MOS", "A UKR"]},
            "centers": {"ENGLAND": ["ARM", "LON"], "RUSSIA": ["BUD", "MOS"]},
        },
    )
    play(run, 1)
    assert run.self_play.games.state.phase[0] == Phase.FALL_RETREATS
    assert run.buffer.rewards[0, 0] == 0 and run.buffer.open[0]
    play(run, 1)
    assert script.phases == ["F1901M"] and run.buffer.open[0]
    np.testing.assert_allclose(run.buffer.rewards[0, 0], 1 / 5)
    play(run, 1)
    assert script.phases == ["F1901M", "W1901A"]
    np.testing.assert_allclose(run.buffer.rewards[:2, 0], [1 / 5, 0])
    assert run.buffer.next_values[0, 0] == 20 and not run.buffer.ends[0, 0]


def doomed_england(finish_games: bool, **changes) -> tuple[Run, Script]:
    """Return a game on `three` in which England loses London, its last center, in the fall, since
    a Russian army stands there, and its last army in winter."""
    run, script = scripted_run(
        "ENGLAND",
        {"F1901M": ["A WAL H"], "W1901A": ["A WAL D"]},
        map="three",
        finish_games=finish_games,
        **changes,
    )
    load_state(
        run.self_play.games,
        {
            "name": "F1901M",
            "units": {"ENGLAND": ["A WAL"], "ITALY": ["A ROM"], "RUSSIA": ["A MOS", "A LON"]},
            "centers": {"ENGLAND": ["LON"], "ITALY": ["ROM"], "RUSSIA": ["MOS"]},
        },
    )
    return run, script


@pytest.mark.parametrize("finish_games", [False, True])
@pytest.mark.parametrize("year_limit", ["draw", "truncate"])
def test_elimination(finish_games, year_limit):
    """It pays at once, ends the stream, and starts a new game unless games are played out."""
    run, script = doomed_england(
        finish_games, reward="terminal", max_years=3, year_limit=year_limit
    )
    assert play(run, 1) == 0 and run.buffer.rewards[0, 0] == 0
    over = play(run, 1)
    buffer, games = run.buffer, run.self_play.games
    assert script.phases == ["F1901M", "W1901A"]
    assert buffer.rewards[:2, 0].tolist() == [0, -1]
    assert buffer.ends[:2, 0].tolist() == [False, True]
    assert buffer.next_values[:2, 0].tolist() == [20, 0] and not buffer.open.any()
    if not finish_games:
        assert over == 1 and games.state.turn[0] == 0 and games.state.year[0] == 1901
        figures = run.self_play.seating.take_statistics(2)
        assert (figures["win"], figures["draw"], figures["loss"]) == (0, 0, 1)
        return
    assert over == 0 and games.state.year[0] == 1902
    seats = run.self_play.seating.seats.member.copy()
    assert play(run, 3) == 0, "England has nothing left to decide"
    np.testing.assert_array_equal(run.self_play.seating.seats.member, seats)
    assert buffer.count.tolist() == [2] and not buffer.open.any()
    assert play(run, 1) == 1 and games.state.turn[0] == 0
    assert buffer.rewards[:, 0].sum() == -1, "the end of the game pays the eliminated nothing"
    figures = run.self_play.seating.take_statistics(2)
    assert (figures["win"], figures["draw"], figures["loss"]) == (0, 0, 1)


def test_a_game_goes_on_while_a_learner_seat_is_alive():
    """With two learner seats, the end of one closes its stream only."""
    run = make_run(map="three", num_envs=1, learner_seats=2, pool_bots=("hold",), pool_bot_prob=1.0)
    games, self_play = run.self_play.games, run.self_play
    powers = games.map.powers
    lost, kept = (powers[p] for p in learner_powers(self_play.seating)[0])
    (third,) = set(powers) - {lost, kept}
    home = {"ENGLAND": "LON", "ITALY": "ROM", "RUSSIA": "MOS"}
    load_state(
        games,
        {
            "name": "W1901A",
            "units": {lost: ["A PAR"], kept: [f"A {home[kept]}"], third: [f"A {home[third]}"]},
            "centers": {kept: [home[kept]], third: [home[third]]},
        },
    )
    assert play(run, 1) == 0
    assert run.buffer.count.tolist() == [1, 0] and run.buffer.ends[0, 0]
    play(run, 1)
    assert run.buffer.count.tolist() == [1, 1] and run.buffer.open.tolist() == [False, True]


def test_what_is_left_at_the_end_is_closed_with_its_value():
    run, _ = scripted_run("ENGLAND", SOLO_SCRIPT, reward_mix="center_delta=5", max_years=5)
    play(run, 5)
    run.self_play.close_all()
    assert run.buffer.closed[:5, 0].all() and not run.buffer.open.any()
    assert run.buffer.next_values[:5, 0].tolist() == [20, 30, 40, 50, 77]
    assert run.buffer.rewards[:5, 0].tolist() == [0, 1, 0, 0, 2]


def test_the_reward_mix_follows_the_progress():
    run, _ = scripted_run("ENGLAND", SOLO_SCRIPT, reward_mix="center_delta=5..15", max_years=5)
    play(run, 2, progress=0.0)
    play(run, 3, progress=0.5)
    assert run.buffer.rewards[:5, 0].tolist() == [0, 1, 0, 0, 4]


def test_scores_of_games_reach_the_pool():
    run, _ = scripted_run("ENGLAND", SOLO_SCRIPT, max_years=5)
    play(run, 8)
    bot = run.pool.bots[0]
    assert (bot.games, bot.score) == (1.0, 1.0)
    run, _ = doomed_england(False)
    play(run, 2)
    assert (run.pool.bots[0].games, run.pool.bots[0].score) == (1.0, 0.0)


def test_no_age_of_opponents_that_are_no_copies():
    run = make_run(num_envs=8, max_years=1, pool_bots=("hold",), pool_bot_prob=1.0)
    while not run.self_play.seating.statistics:
        play_phase(run)
    assert "opponent_age" not in run.self_play.seating.take_statistics(100)


# --- Random beginnings ----------------------------------------------------------------------------


def test_no_policy_decides_while_a_power_warms_up():
    run = make_run(num_envs=60, warm_up_share=0.5, warm_up_phases=6, hidden=8, num_steps=40)
    self_play = run.self_play
    asked: list[tuple[int, int]] = []

    def watch(act):
        def watched(obs, decisions, *rest, **named):
            asked.extend(zip(decisions.game.tolist(), decisions.power.tolist()))
            return act(obs, decisions, *rest, **named)

        return watched

    for agent in (run.agent, *(member.player for member in run.pool.members)):
        agent.act = watch(agent.act)
    silenced = 0
    for _ in range(12):
        asked.clear()
        decisions = self_play.games.decisions()
        pending = set(zip(decisions.game.tolist(), decisions.power.tolist()))
        warm = self_play.seating.seats.warm_up.copy()
        play_phase(run)
        assert sorted(asked) == sorted((e, p) for e, p in pending if not warm[e, p])
        silenced += len(pending) - len(asked)
    assert silenced > 50


def test_a_game_that_ends_before_the_learner_takes_part_is_not_counted():
    run = make_run(num_envs=30, warm_up_share=1.0, warm_up_phases=40, max_years=1, hidden=8)
    run.self_play.seating.seats.warm_up[:] = 40
    run.self_play.seating.seats.warm_up[:10] = 0
    counts = [play_phase(run) for _ in range(3)]
    # The year ends with the second phase, or the third where something was dislodged.
    assert sum(count["games"] for count in counts) == 10
    assert run.self_play.seating.take_statistics(0)["games"] == 10
    assert (run.self_play.games.state.end == RUNNING).all()


# --- Weak seats and hot opponents -----------------------------------------------------------------


def test_win_shares_are_running_means_of_each_power():
    run = make_run(map="three", num_envs=40, max_years=4, learner_seats=2, hidden=8, num_steps=400)
    seating, expected = run.self_play.seating, np.zeros(3)
    finished, end_phase = 0, seating.end_phase

    def watching(result):
        nonlocal finished
        for row in np.flatnonzero(result.ended != RUNNING):
            centers = result.centers[row]
            for power in learner_powers(seating)[row]:
                others = np.delete(centers, power).max()
                limit = result.ended[row] == YEAR_LIMIT
                won[power].append(
                    result.winner[row] == power or (limit and centers[power] > others)
                )
        found = end_phase(result)
        for power, wins in enumerate(won):  # those that ended together count as one
            if wins:
                expected[power] += (1 - 0.995 ** len(wins)) * (np.mean(wins) - expected[power])
                finished += len(wins)
                wins.clear()
        return found

    won = [[], [], []]
    seating.end_phase = watching
    for _ in range(120):
        play_phase(run)
    assert finished > 60 and (seating.win_share > 0).all()
    np.testing.assert_allclose(seating.win_share, expected, rtol=1e-6)
    figures = seating.take_statistics(0)
    shares = [figures[f"win_{p}"] for p in ("ENGLAND", "ITALY", "RUSSIA")]
    assert shares == pytest.approx(expected.tolist())


def test_temperature_divides_the_scores_of_draws_only():
    decisions, obs, _ = positions("three")
    d = two_slot_decision("three", Phase.FALL_MOVEMENT)
    agent = make_agent("three", scale=1.0)
    rows = np.full(4000, d)
    many, lists = obs.take(rows), decisions.take(rows)
    counts = np.diff(decisions.order_start)[decisions.slot_start[d] : decisions.slot_start[d] + 2]
    entropy = []
    for temperature in (0.05, 1.0, 1e6):
        hot = np.full(len(rows), temperature, np.float32)
        generator = torch.Generator().manual_seed(3)
        chosen, logprob, _ = agent.act(many, lists, generator, temperature=hot)
        with torch.no_grad():
            plain, _, _ = agent.get_logprob_entropy_value(many, lists, chosen)
        np.testing.assert_allclose(logprob, plain, rtol=1e-3, atol=1e-4)
        share = np.bincount(chosen[::2], minlength=counts[0]) / len(rows)
        entropy.append(-(share[share > 0] * np.log(share[share > 0])).sum())
    assert entropy[0] < entropy[1] < entropy[2]
    assert entropy[2] == pytest.approx(np.log(counts[0]), abs=0.01)  # each order alike
    greedy, _, _ = agent.act(many, lists, greedy=True)
    cold = np.full(len(rows), 1e-4, np.float32)
    chosen, _, _ = agent.act(many, lists, torch.Generator().manual_seed(3), temperature=cold)
    assert (chosen == greedy).mean() > 0.99
