"""The network: what is drawn, scored and explained agrees, and only legal orders are chosen."""

import itertools

import numpy as np
import pytest
import torch
from support.positions import act, positions, score, slot_ranges, two_slot_decision
from support.self_play import make_agent

from diplomacy_engine import BoardViews, Decisions, UserError, VectorGame, order_numbers
from diplomacy_engine.constants import RUNNING, WAIVE, Phase
from diplomacy_engine.learning.players import AgentNetwork, policy_player
from ppo_selfplay_diplomacy import Agent

MAPS = ("small", "three", "standard")


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", MAPS)
def test_what_was_sampled_is_what_is_scored(name, autoregressive):
    decisions, obs, phases = positions(name)
    agent = make_agent(name, autoregressive=autoregressive)
    chosen, logprob, value = act(agent, obs, decisions, 1)
    assert chosen.shape == decisions.slot_province.shape
    assert (chosen >= 0).all() and (chosen < np.diff(decisions.order_start)).all()
    newlogprob, entropy, newvalue = score(agent, obs, decisions, chosen)
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


@pytest.mark.parametrize("name", MAPS)
def test_one_decision_does_not_change_another(name):
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, logprob, value = act(agent, obs, decisions, 2)
    for d in np.random.default_rng(0).choice(decisions.count, 12, replace=False):
        a, b = decisions.slot_start[d : d + 2]
        alone = score(agent, obs.take(np.array([d])), decisions.take(np.array([d])), chosen[a:b])
        np.testing.assert_allclose(alone[0].item(), logprob[d], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(alone[2].item(), value[d], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MAPS)
def test_only_legal_orders_are_chosen(name):
    """The games take every order of the network, and no province is adjusted twice."""
    games = VectorGame(name, 8, seed=2, max_years=5, threads=1, auto_reset=False)
    agents = [make_agent(name, scale=0.3, autoregressive=seeing) for seeing in (True, False)]
    generator, kinds = np.random.default_rng(3), set()
    texts, table = games.vocabulary.texts, games.table
    for step in range(30):
        agent, decisions = agents[step % 2], games.decisions()
        chosen, _, _ = act(
            agent, games.view_boards(decisions.game, decisions.power), decisions, generator
        )
        numbers = order_numbers(decisions, chosen)
        phase = games.state.phase[decisions.game]
        for d, (a, b) in enumerate(slot_ranges(decisions)):
            if phase[d] == Phase.WINTER_ADJUSTMENTS:
                given = [n for n in numbers[a:b] if table.kind[n] != WAIVE]
                places = games.board.location_province[table.location[given]]
                assert len(set(places.tolist())) == len(given), [texts[n] for n in given]
                kinds |= set(table.kind[given].tolist()) if len(given) > 1 else set()
        orders = games.new_orders()
        games.write_orders(orders, decisions, numbers)
        moving = np.isin(games.state.phase, (Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT))
        games.step(orders)
        np.testing.assert_array_equal(games.state.last_order[moving], orders[moving])
        games.reset(games.state.end != RUNNING)
    assert name != "standard" or kinds, "several units should have been built or removed together"


def enumerate_decision(agent: Agent, decisions: Decisions, obs: BoardViews, d: int) -> np.ndarray:
    counts = np.diff(decisions.order_start)[decisions.slot_start[d] : decisions.slot_start[d + 1]]
    combinations = np.array(list(itertools.product(*map(range, counts))))
    rows = np.full(len(combinations), d)
    logprob, _, _ = score(agent, obs.take(rows), decisions.take(rows), combinations.ravel())
    return logprob.detach().double().exp().numpy().reshape(counts)


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize(
    ("name", "phase"), [("three", Phase.FALL_MOVEMENT), ("standard", Phase.WINTER_ADJUSTMENTS)]
)
def test_sampling_follows_the_probabilities(name, phase, autoregressive):
    decisions, obs, _ = positions(name)
    d = two_slot_decision(name, phase)
    agent = make_agent(name, autoregressive=autoregressive, scale=0.3)
    probability = enumerate_decision(agent, decisions, obs, d)
    assert probability.sum() == pytest.approx(1.0, abs=1e-4)
    after = probability / probability.sum(1, keepdims=True)  # of the second order, by the first
    if phase == Phase.WINTER_ADJUSTMENTS:
        assert (probability == 0).any() and (probability > 0).any()
    else:  # only with this does the second unit see what the first was given
        assert (np.ptp(after, 0).max() > 1e-3) == autoregressive
    draws, generator = 0, np.random.default_rng(7)
    observed = np.zeros(probability.shape)
    rows = np.full(1000, d)
    for _ in range(6):
        chosen, _, _ = act(agent, obs.take(rows), decisions.take(rows), generator)
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


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize(
    ("name", "phase"), [("three", Phase.FALL_MOVEMENT), ("standard", Phase.WINTER_ADJUSTMENTS)]
)
def test_greedy_picks_the_likeliest(name, phase, autoregressive):
    """Unit by unit: the likeliest first order, then the likeliest second one after it.

    An explanation has the probabilities of both.
    """
    decisions, obs, _ = positions(name)
    d = two_slot_decision(name, phase)
    firsts = set()
    for seed in range(6):
        agent = make_agent(name, seed=seed, autoregressive=autoregressive)
        probability = enumerate_decision(agent, decisions, obs, d)
        asked = obs.take(np.array([d])), decisions.take(np.array([d]))
        chosen, _, _ = act(agent, *asked, None)
        first = probability.sum(1).argmax()
        assert chosen.tolist() == [first, probability[first].argmax()]
        expected = probability.sum(1), probability[first] / probability[first].sum()
        shares = AgentNetwork(agent).explain(*asked)[0]
        np.testing.assert_allclose(shares, np.concatenate(expected), rtol=1e-3, atol=1e-5)
        firsts.add(int(first))
    assert len(firsts) > 1


def test_entropy_is_a_share_of_the_greatest_possible():
    decisions, obs, _ = positions("three")
    counts = np.diff(decisions.order_start)
    free = np.array([counts[a:b].max() > 1 for a, b in slot_ranges(decisions)])
    chosen = np.zeros(len(counts), np.int64)
    for scale, low, high in ((0.0, 1 - 1e-5, 1 + 1e-5), (1e4, -1e-6, 0.2)):
        agent = make_agent("three", scale=scale)
        chosen, _, _ = act(agent, obs, decisions, None)
        share = score(agent, obs, decisions, chosen)[1].detach().numpy()
        assert low <= np.median(share[free]) <= high
        assert (share >= -1e-6).all() and (share <= 1 + 1e-5).all()
        if scale == 0:
            assert (share[free] >= low).all()
        assert (share[~free] == 0).all()


@pytest.mark.parametrize("name", ["three", "standard"])
def test_gradients_are_finite_and_reach_every_weight(name):
    """Also where orders are ruled out with -inf."""
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, _, _ = act(agent, obs, decisions, 5)
    logprob, entropy, value = score(agent, obs, decisions, chosen)
    (logprob.sum() + entropy.sum() + value.sum()).backward()
    for parameter_name, parameter in agent.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), parameter_name
        if parameter_name != "score.bias":  # shifts all scores alike
            assert parameter.grad.abs().sum() > 0, parameter_name


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
        chosen, logprob, _ = act(agent, many, lists, 3, hot)
        with torch.no_grad():
            plain, _, _ = score(agent, many, lists, chosen)
        np.testing.assert_allclose(logprob, plain, rtol=1e-3, atol=1e-4)
        share = np.bincount(chosen[::2], minlength=counts[0]) / len(rows)
        entropy.append(-(share[share > 0] * np.log(share[share > 0])).sum())
    assert entropy[0] < entropy[1] < entropy[2]
    assert entropy[2] == pytest.approx(np.log(counts[0]), abs=0.01)  # each order alike


def test_a_policy_plays_its_own_map_alone():
    player, games = policy_player(make_agent("three"), "me"), VectorGame("small", 1)
    with pytest.raises(UserError, match="me was trained on another map"):
        player.act(games, games.decisions())
