"""The kernels against their plain PyTorch forms: values, gradients, and rows that nothing names."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.positions import act, noise_of, positions, score
from support.self_play import make_agent
from torch.nn import functional as F

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


def assert_same(one: list, two: list) -> None:
    for found, expected in zip(one, two, strict=True):
        scale = float(expected.detach().abs().max()) if expected.numel() else 0.0
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

    kernels = {"score_orders", "sum_rows", "mean_provinces", "pass_messages"}
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


def test_no_decision_at_all():
    """A rank may have no part of a minibatch."""
    decisions, obs, _ = positions("small")
    none = np.zeros(0, np.int64)
    agent = make_agent()
    parts = score(agent, obs.take(none), decisions.take(none), none)
    assert [len(part) for part in parts] == [0, 0, 0]
    sum(part.sum() for part in parts).backward()
    assert all(w.grad is None or (w.grad == 0).all() for w in agent.parameters())


def operations(count: int, width: int) -> dict[str, tuple[Callable, list[torch.Tensor]]]:
    """Return every operation on so many rows, as a function of the tensors that are learned."""
    agent = make_agent("three", hidden=width)
    decisions, obs, _ = positions("three")
    picked = np.arange(count) % decisions.count
    decisions, boards = decisions.take(picked), agent.inputs(obs.take(picked))
    chosen, _, _ = act(agent, obs.take(picked), decisions, 1)
    orders = agent.inputs.orders(boards, decisions, chosen)
    named = [torch.arange(2, 2 + n) for n in (count, 0, 3)]
    layer = ops.Linear(width, 64)
    rows = torch.randint(-1, 5, (3 * count, 4), generator=torch.Generator().manual_seed(1))

    def linear(x, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, x)

    def normalise(x, weight, bias):
        norm = ops.LayerNorm(width)
        return torch.func.functional_call(norm, {"weight": weight, "bias": bias}, x)

    def score_orders(provinces, kinds, context, weight, *earlier):
        tables = ops.OrderTables(provinces, kinds, context, weight, Earlier(*earlier))
        return ops.score_orders(orders, tables)

    codes = random(*boards.owner.shape, width)
    tables = agent.order_tables(agent.encode(boards), orders).tensors()
    return {
        "linear": (linear, [random(count, width), random(64, width), random(64)]),
        "normalise": (normalise, [random(count, width), random(width), random(width)]),
        "linear_by_role": (
            lambda x, weight, bias: ops.linear_by_role(x, named, weight, bias),
            [random(count + 5, width), random(3 * 64, width), random(3 * 64)],
        ),
        "sum_rows": (
            lambda table, starts: ops.sum_rows(rows, table, starts),
            [random(5, width), random(count, width, seed=1)],
        ),
        "mean_provinces": (lambda x: ops.mean_provinces(x, boards), [codes]),
        "pass_messages": (
            lambda x, near: ops.pass_messages(x, near, agent.inputs),
            [codes, 2 * codes],
        ),
        "score_orders": (score_orders, [tensor.detach() for tensor in tables]),
    }


class Earlier(NamedTuple):
    """The layer of a network, with a weight that is no parameter."""

    weight: torch.Tensor
    bias: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *self)


def total(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return sum((part * random(*part.shape, seed=n).to(part)).sum() for n, part in enumerate(parts))


def run(function: Callable, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    out = function(*leaves)
    return list(out) if isinstance(out, tuple) else [out]


def learns(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    out = run(function, leaves)
    return [*out, *torch.autograd.grad(total(out), leaves)]


def penalises(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    out = total(run(function, leaves))
    slopes = torch.autograd.grad(out, leaves, create_graph=True)
    penalty = sum(slope.pow(2).sum() for slope in slopes)
    return list(torch.autograd.grad(out + penalty, leaves))


def casts(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    with torch.autocast("cpu", torch.bfloat16):
        return learns(function, leaves, plain)


def doubles(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    return learns(function, [leaf.double() for leaf in leaves], plain)


def edits_inputs(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    """Edit in place what was used, where kernels compute: it is an error, or changes nothing."""
    inputs = [leaf.clone() for leaf in leaves]
    out = run(function, inputs)
    if not plain:
        inputs[0].mul_(2)
    return list(torch.autograd.grad(total(out), leaves))


def edits_output(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    out = run(function, [leaf.clone() for leaf in leaves])
    out[-1] = 2 * out[-1] if plain else out[-1].mul_(2)
    return list(torch.autograd.grad(total(out), leaves))


def outcome(way: Callable, *arguments: Any) -> list[torch.Tensor] | str:
    try:
        return way(*arguments)
    except RuntimeError as error:
        return str(error)


WAYS = learns, penalises, casts, doubles, edits_inputs, edits_output


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=6)
@given(st.sampled_from([0, 1, 2, 90, 128, 300]), st.sampled_from([9, 64, 87]))
def test_an_operation_is_its_plain_form_or_an_error(way, count, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops.products, "FAST", True)  # slow without AVX-512, but the same
        for function, tensors in operations(count, width).values():
            leaves = [tensor.clone().requires_grad_() for tensor in tensors]
            patch.setattr(ops, "KERNEL_DEVICES", ())
            expected = outcome(way, function, leaves, True)
            patch.setattr(ops, "KERNEL_DEVICES", ("cpu",))
            own = outcome(way, function, leaves, False)
            if isinstance(expected, str):  # PyTorch's own say so: types differ, or there is no row
                assert isinstance(own, str) or (way is penalises and count == 0), expected
            elif isinstance(own, str):
                assert way in (penalises, edits_inputs, edits_output)
                assert re.search(
                    "second derivatives|modified by an inplace|modified inplace|in-place", own
                ), own
            else:
                assert_same(own, expected)
