"""The kernels against their plain PyTorch forms: values, gradients, and rows that nothing names."""

import numpy as np
import pytest
import torch
from support.positions import act, noise_of, positions, score
from support.self_play import make_agent

from diplomacy_engine.learning import ops, plain_ops
from diplomacy_engine.learning.boards import Orders
from diplomacy_engine.learning.players import AgentNetwork

HIDDEN = 9


def orders_of(name: str, related: bool = True) -> Orders:
    decisions, obs, _ = positions(name)
    agent = make_agent(name, autoregressive=related)
    chosen, _, _ = act(agent, obs, decisions, 1)
    inputs = agent.inputs
    orders = inputs.orders(inputs(obs), decisions, chosen, related)
    assert orders.lookup.blocked.any() and not orders.lookup.blocked[orders.picked].any()
    return orders


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator)


def with_gradients(function, *tensors: torch.Tensor) -> tuple[list, list]:
    """Return what a function returns, and the gradients of a random sum of it."""
    own = [tensor.clone().requires_grad_(True) for tensor in tensors]
    found = function(*own)
    parts = found if isinstance(found, tuple) else (found,)
    loss = sum((p * random(*p.shape, seed=n)).sum() for n, p in enumerate(parts) if p.requires_grad)
    loss.backward()
    return list(parts), [tensor.grad for tensor in own]


def assert_same(one: list, two: list) -> None:
    for found, expected in zip(one, two, strict=True):
        scale = float(expected.detach().abs().max())
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * max(scale, 1))


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", ["three", "standard"])
def test_a_network_learns_the_same_without_kernels(name, autoregressive, monkeypatch):
    decisions, obs, _ = positions(name)
    agent = make_agent(name, autoregressive=autoregressive)
    chosen, _, _ = act(agent, obs, decisions, 2)

    def learned() -> tuple[list, list]:
        agent.zero_grad()
        parts = score(agent, obs, decisions, chosen)
        sum((p * random(*p.shape, seed=n)).sum() for n, p in enumerate(parts)).backward()
        return parts, [
            weight.grad.clone() for weight in agent.parameters() if weight.grad is not None
        ]

    found = learned()
    calls = set()

    def noted(name, function):
        return lambda *args: calls.add(name) or function(*args)

    kernels = {"score_orders", "sum_rows", "mean_provinces", "exchange"}
    for name in kernels:
        monkeypatch.setattr(plain_ops, name, noted(name, getattr(plain_ops, name)))
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    expected = learned()
    assert calls == kernels
    for one, two in zip(found, expected):
        assert_same(one, two)


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", ["three", "standard"])
def test_orders_drawn_without_kernels_are_the_same(name, autoregressive, monkeypatch):
    decisions, obs, _ = positions(name)
    agent = AgentNetwork(make_agent(name, scale=3.0, autoregressive=autoregressive))
    heat = np.linspace(0.5, 2.0, decisions.count, dtype=np.float32)
    noise = noise_of(decisions, 3)

    def drawn() -> list:
        cases = (noise,), (noise, heat), (ops.LIKELIEST,)
        found = [agent.act(obs, decisions, *case) for case in cases]
        return [*found, agent.explain(obs, decisions)]

    found = drawn()
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    for one, two in zip(found, drawn()):
        for own, plain in zip(one, two):
            np.testing.assert_allclose(own, plain, rtol=1e-4, atol=1e-5)
    assert (found[0][0] != found[2][0]).any()


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_rows_that_nothing_names_change_nothing(name, monkeypatch):
    """The tables have a row for each province that an order names; as if all were computed."""
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, _, _ = act(agent, obs, decisions, 3)
    found = score(agent, obs, decisions, chosen)
    orders = agent.inputs.orders(agent.inputs(obs), decisions, chosen)
    whole = len(obs.board) * agent.inputs.num_provinces
    assert all(len(np.unique(named)) == len(named) < whole for named in orders.named)

    make = agent.inputs.orders

    def all_rows(*args):
        orders = make(*args)
        starts = np.cumsum([0, *map(len, orders.named)])
        rows = orders.lookup.rows.copy()
        for role, (start, named) in enumerate(zip(starts, orders.named)):
            used = rows[:, role] != -1
            assert (rows[used, role] >= start).all()
            rows[used, role] = role * whole + named.numpy()[rows[used, role] - start]
        orders.lookup = orders.lookup._replace(rows=rows)
        orders.rows, orders.named = rows, [torch.arange(whole)] * 3
        return orders

    monkeypatch.setattr(agent.inputs, "orders", all_rows)
    assert_same(list(found), list(score(agent, obs, decisions, chosen)))


@pytest.mark.parametrize("width", [9, 64, 87])  # in vectors, in blocks of them, and what is left
def test_sums_of_rows_are_those_of_pytorch(width, monkeypatch):
    rows = torch.randint(-1, 5, (6, 4), generator=torch.Generator().manual_seed(1))

    def sums(table, starts):
        return ops.sum_rows(rows, table, starts)

    tensors = random(5, width), random(3, width, seed=1)
    one = with_gradients(sums, *tensors)
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    for own, plain in zip(one, with_gradients(sums, *tensors)):
        assert_same(own, plain)


def test_no_decision_at_all():
    """A rank may have no part of a minibatch."""
    decisions, obs, _ = positions("small")
    none = np.zeros(0, np.int64)
    agent = make_agent()
    parts = score(agent, obs.take(none), decisions.take(none), none)
    assert [len(part) for part in parts] == [0, 0, 0]
    sum(part.sum() for part in parts).backward()
    assert all(w.grad is None or (w.grad == 0).all() for w in agent.parameters())


@pytest.mark.parametrize("count", [1, 7, 301])
def test_products_are_those_of_pytorch(count, monkeypatch):
    monkeypatch.setattr(ops.products, "FAST", True)  # slow without AVX-512, but the same
    monkeypatch.setattr(ops, "MANY", 0)
    named = [torch.arange(7, 7 + count), torch.arange(count), torch.arange(0, count, 2)]

    def products(x, weight, bias):
        layer = ops.Linear(128, 64)
        parameters = {"weight": weight[:64], "bias": bias[:64]}
        alone = torch.func.functional_call(layer, parameters, x.view(5, -1, 128))
        return alone, ops.linear_by_role(x, named, weight, bias)

    tensors = random(310, 128), random(192, 128), random(192)
    one = with_gradients(products, *tensors)
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    for own, plain in zip(one, with_gradients(products, *tensors)):
        assert_same(own, plain)
