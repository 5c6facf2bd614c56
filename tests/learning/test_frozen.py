"""Many frozen networks: asked together as each alone, and averages of their weights."""

from functools import partial

import numpy as np
import pytest
import torch
from support.positions import noise_of, positions
from support.self_play import make_agent

from benchmarks.bench_trainer import operations
from diplomacy_engine.learning import batched, frozen, ops
from ppo_selfplay_diplomacy import Agent


class Aside(Agent):
    """Looks at arrays of its own, which are of all networks at once."""

    def encode(self, boards):
        codes = super().encode(boards)
        years = torch.from_numpy(boards.views.scalars[:, 1]).to(codes.provinces)
        return codes._replace(provinces=codes.provinces + years[:, None, None])


class Careful(Agent):
    """Does not take what it has sampled."""

    def get_action(self, *asked):
        action = super().get_action(*asked)
        return action._replace(chosen=np.zeros_like(action.chosen))


class Bold(Agent):
    """Has another score and another noise, which can be computed for all at once."""

    def order_tables(self, codes, orders):
        tables = super().order_tables(codes, orders)
        return tables._replace(context=tables.context + codes.powers.mean(1).sum(1).mean())

    def get_action(self, codes, orders, noise, temperature):
        return super().get_action(codes, orders, noise * np.float32(0.5), temperature)


@pytest.mark.parametrize("name", ["three", "standard"])
@pytest.mark.parametrize("kind", [Agent, Bold, Aside, Careful])
def test_many_choose_at_once_without_kernels(kind, name, monkeypatch, capsys):
    """Or one after the other, as those do that cannot; each as by itself."""
    decisions, obs, _ = positions(name)
    auto = {"autoregressive": name == "standard"}
    agents = {n: make_agent(name, n, kind=kind, **auto) for n in (2, 4, 7, 9)}
    rng = np.random.default_rng(1)
    who = np.sort(rng.choice([2, 4, 9], decisions.count, p=[0.7, 0.28, 0.02]))
    noise = noise_of(decisions, 3)
    heat = rng.uniform(0.5, 3, decisions.count).astype(np.float32)
    cases = (noise, heat), (ops.LIKELIEST, None)
    expected = [frozen.act(agents, who, obs, decisions, *case) for case in cases]
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    monkeypatch.setattr(batched, "_alone", set())
    answers, act = [], batched.act
    monkeypatch.setattr(batched, "act", lambda *args: answers.append(act(*args)) or answers[-1])
    found = [frozen.act(agents, who, obs, decisions, *case) for case in cases]
    at_once = kind in (Agent, Bold)
    assert [answer is not None for answer in answers] == [at_once, at_once]
    for one, two in zip(found, expected):
        assert one.tolist() == two.tolist()
    assert capsys.readouterr().out.count("one after the other") == (0 if at_once else 1)


def test_operations_do_not_grow_with_the_pool(monkeypatch):
    decisions, obs, _ = positions("small")
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    totals = set()
    for count in (2, 5):
        agents = {number: make_agent(seed=number) for number in range(count)}
        who = np.arange(decisions.count) * count // decisions.count
        act = partial(frozen.act, agents, who, obs, decisions, ops.LIKELIEST)
        act()  # puts the weights together
        totals.add(operations(act).total())
    assert len(totals) == 1


def test_the_average_counts_late_weights_more():
    agents = [make_agent(seed=seed) for seed in (1, 2, 3, 4)]
    for power, shares in ((1.0, (1, 2, 3, 4)), (2.0, (2, 6, 12, 20))):  # n (n + 1) for power 2
        average = frozen.frozen_copy(make_agent(seed=9))  # forgotten at the first update
        for updates, agent in enumerate(agents):
            frozen.update_average(average, agent, updates, power)
        for kept, *weights in zip(average.parameters(), *(a.parameters() for a in agents)):
            wanted = sum(share * weight for share, weight in zip(shares, weights)) / sum(shares)
            torch.testing.assert_close(kept, wanted)
    assert all(not kept.requires_grad for kept in average.parameters())


def with_buffers(mean: float, count: int) -> torch.nn.Module:
    agent = make_agent()
    agent.register_buffer("mean", torch.tensor([mean, -torch.inf]))
    agent.register_buffer("count", torch.tensor(count))
    return agent


@pytest.mark.parametrize(("names", "mean"), [((), 4.0), (("mean",), 3.0)])
def test_the_average_takes_the_newest_buffers_or_averages_those_named(names, mean, monkeypatch):
    monkeypatch.setattr(Agent, "AVERAGED", names, raising=False)
    average = frozen.frozen_copy(with_buffers(100.0, 0))
    for updates, agent in enumerate((with_buffers(1.0, 3), with_buffers(4.0, 7))):
        frozen.update_average(average, agent, updates, 1.0)
    assert average.mean.tolist() == pytest.approx([mean, -torch.inf]) and average.count == 7
