"""The kernels against their plain PyTorch forms: values, gradients, and rows that nothing names."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.positions import act, noise_of, positions, score
from support.self_play import make_agent
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

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
def test_a_network_learns_and_plays_the_same_without_kernels(name, autoregressive, monkeypatch):
    decisions, obs, _ = positions(name)
    agent = make_agent(name, autoregressive=autoregressive)
    network = AgentNetwork(make_agent(name, scale=3.0, autoregressive=autoregressive))
    chosen, _, _ = act(agent, obs, decisions, 2)
    heat = np.linspace(0.5, 2.0, decisions.count, dtype=np.float32)
    noise = noise_of(decisions, 3)

    def outcomes() -> list[list[torch.Tensor]]:
        agent.zero_grad()
        parts = score(agent, obs, decisions, chosen)
        sum((p * random(*p.shape, seed=n)).sum() for n, p in enumerate(parts)).backward()
        grads = [weight.grad.clone() for weight in agent.parameters() if weight.grad is not None]
        cases = (noise,), (noise, heat), (ops.LIKELIEST,)
        drawn = [network.act(obs, decisions, *case) for case in cases]
        assert (drawn[0][0] != drawn[2][0]).any()
        drawn.append(network.explain(obs, decisions))
        return [list(parts), grads, *([torch.as_tensor(part) for part in one] for one in drawn)]

    with_kernels, calls = outcomes(), set()

    def noted(name, function):
        return lambda *args: calls.add(name) or function(*args)

    kernels = {"score_orders", "sum_rows", "mean_provinces", "pass_messages"}
    for name in kernels:
        monkeypatch.setattr(plain_ops, name, noted(name, getattr(plain_ops, name)))
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ())
    for one, two in zip(with_kernels, outcomes(), strict=True):
        assert_same(one, two)
    assert calls == kernels


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_rows_that_nothing_names_change_nothing(name, monkeypatch):
    """The tables have a row for each province that an order names; as if all were computed."""
    decisions, obs, _ = positions(name)
    agent = make_agent(name)
    chosen, _, _ = act(agent, obs, decisions, 3)
    found = score(agent, obs, decisions, chosen)
    orders = agent.inputs.orders(agent.inputs(obs), decisions, chosen)
    whole = len(obs.board) * agent.inputs.num_provinces
    with pytest.raises(ValueError, match="to be sampled"):
        agent.inputs.orders(agent.inputs(obs), decisions).given_provinces  # noqa: B018
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
        orders.named = [torch.arange(whole)] * 3
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


class Scoring(nn.Module):
    def __init__(self, orders: Orders, width: int):
        super().__init__()
        self.orders, self.earlier = orders, ops.Linear(width, width)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ops.score_orders(self.orders, ops.OrderTables(*tensors, self.earlier))


class Sampling(Scoring):
    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tables, noise = ops.OrderTables(*tensors, self.earlier), noise_of(self.orders.decisions, 1)
        chosen, *parts = ops.sample_orders(self.orders, tables, noise)
        return *parts, torch.from_numpy(chosen)


def operations(count: int, width: int) -> dict[str, tuple[Callable, list[torch.Tensor]]]:
    """Return every operation on so many rows, as a function of the tensors that are learned."""
    agent = make_agent("three", hidden=width)
    decisions, obs, _ = positions("three")
    picked = np.arange(count) % decisions.count
    decisions, boards = decisions.take(picked), agent.inputs(obs.take(picked))
    chosen, _, _ = act(agent, obs.take(picked), decisions, 1)
    orders = agent.inputs.orders(boards, decisions, chosen)
    named = [torch.arange(2, 2 + n) for n in (count, 0, 3)]
    rows = torch.randint(-1, 5, (3 * count, 4), generator=torch.Generator().manual_seed(1))

    def layer(module: nn.Module, of: str = "") -> Callable:
        """Return a layer as a function of its input and of the weight and bias of a part."""

        def call(*tensors: torch.Tensor) -> Any:
            *inputs, weight, bias = tensors
            weights = {f"{of}weight": weight, f"{of}bias": bias}
            return torch.func.functional_call(module, weights, tuple(inputs))

        return call

    codes = random(*boards.owner.shape, width)
    tables = [
        tensor.detach() for tensor in agent.order_tables(agent.encode(boards), orders).tensors()
    ]
    return {
        "linear": (
            layer(ops.Linear(width, 64)),
            [random(count, width), random(64, width), random(64)],
        ),
        "normalise": (
            layer(ops.LayerNorm(width)),
            [random(count, width), random(width), random(width)],
        ),
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
        "score_orders": (layer(Scoring(orders, width), "earlier."), tables),
        "sample_orders": (layer(Sampling(orders, width), "earlier."), tables),
    }


def floats(out: Any) -> list[torch.Tensor]:
    parts = list(out) if isinstance(out, (tuple, list)) else [out]
    return [part for part in parts if part.is_floating_point()]


def total(out: Any) -> torch.Tensor:
    return sum((weights(part) * part).sum() for part in floats(out))


def weights(part: torch.Tensor) -> torch.Tensor:
    return torch.arange(part.numel()).cos().view(part.shape).to(part)


def slopes(out: Any, leaves: list[torch.Tensor], **options: Any) -> list[torch.Tensor]:
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    options |= {"allow_unused": True, "materialize_grads": True}
    return list(torch.autograd.grad(total(out), leaves, **options))


def learns(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    out = function(*leaves)
    return [*floats(out), *slopes(out, leaves)]


def learns_twice(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    out = function(*leaves)
    return [*slopes(out, leaves, retain_graph=True), *slopes(out, leaves)]


def learns_one(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    return learns(function, [leaves[0], *(leaf.detach() for leaf in leaves[1:])], plain)


def only_acts(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    with torch.no_grad():
        no_grad = function(*leaves)
    with torch.inference_mode():
        return [*floats(no_grad), *floats(function(*leaves))]


def penalises(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    out = function(*leaves)
    penalty = sum(slope.pow(2).sum() for slope in slopes(out, leaves, create_graph=True))
    return list(torch.autograd.grad(total(out) + penalty, leaves))


def casts(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    with torch.autocast("cpu", torch.bfloat16):
        return learns(function, leaves, plain)


def doubles(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    return learns(function, [leaf.double() for leaf in leaves], plain)


def mixes(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    return trials(
        learns, function, [replaced(leaves, n, leaf.double()) for n, leaf in enumerate(leaves)]
    )


def strides(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    return learns(function, [torch.stack([leaf, leaf], -1)[..., 0] for leaf in leaves], plain)


class Subclass(torch.Tensor):
    pass


def subclasses(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    out = learns(function, [leaf.as_subclass(Subclass) for leaf in leaves], plain)
    return [part.as_subclass(torch.Tensor) for part in out]


def maps(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list[torch.Tensor]:
    several = [torch.stack([leaf, -leaf]) for leaf in leaves]
    out = torch.vmap(lambda *own: tuple(floats(function(*own))))(*several)
    return [*out, *slopes(out, leaves)]


def each_sample(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    several = [torch.stack([leaf, -leaf]).detach() for leaf in leaves]
    slope = torch.func.grad(lambda *own: total(function(*own)), tuple(range(len(leaves))))
    return list(torch.vmap(slope)(*several))


def maps_gradients(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    out = floats(function(*leaves))
    grads = [weights(torch.stack([part, part])) for part in out]
    return list(torch.autograd.grad(out, leaves, grads, is_grads_batched=True))


def goes_forward(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    with forward_ad.dual_level():
        pairs = [forward_ad.make_dual(leaf, weights(leaf)) for leaf in leaves]
        return [forward_ad.unpack_dual(part).tangent for part in floats(function(*pairs))]


def recomputes(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    out = checkpoint(function, *leaves, use_reentrant=False)
    return [*floats(out), *slopes(out, leaves)]


def traces(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    leaves = [leaf.detach() for leaf in leaves]
    function = torch.jit.trace(
        lambda *own: tuple(floats(function(*own))), tuple(leaves), check_trace=False
    )
    return floats(function(*(-leaf for leaf in leaves)))


def compiles(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    torch._dynamo.reset()
    return learns(torch.compile(function, backend="eager"), leaves, plain)


def edits_inputs(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    """Edit in place what was used, where kernels compute: it is an error, or changes nothing."""

    def edits(function: Callable, leaves: list[torch.Tensor], n: int) -> list:
        inputs = [leaf.clone() for leaf in leaves]
        out = function(*inputs)
        if not plain:
            inputs[n].zero_()
        return slopes(out, leaves)

    return [outcome(edits, function, leaves, n) for n in range(len(leaves))]


def edits_outputs(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    def edits(function: Callable, leaves: list[torch.Tensor], n: int) -> list:
        out = floats(function(*(leaf.clone() for leaf in leaves)))
        out[n] = 2 * out[n] if plain else out[n].mul_(2)
        return slopes(out, leaves)

    return [outcome(edits, function, leaves, n) for n in range(len(floats(function(*leaves))))]


def replaced(leaves: list[torch.Tensor], n: int, leaf: torch.Tensor) -> list[torch.Tensor]:
    return [*leaves[:n], leaf, *leaves[n + 1 :]]


def trials(way: Callable, function: Callable, inputs: list[list[torch.Tensor]]) -> list:
    return [outcome(way, function, tensors, True) for tensors in inputs]


def resizes(function: Callable, leaves: list[torch.Tensor], plain: bool) -> list:
    """A tensor is one row or column too long or too short."""
    return trials(
        learns,
        function,
        [
            replaced(leaves, n, leaf.index_select(axis, torch.arange(size + by) % size))
            for n, leaf in enumerate(leaves)
            for axis, size in enumerate(leaf.shape)
            for by in (-1, 1)
            if size
        ],
    )


def outcome(way: Callable, *arguments: Any) -> list:
    try:
        return way(*arguments)
    except Exception as error:
        return [error]


REFUSALS = "second derivatives|inplace|in-place|jvp"
WAYS = (
    learns,
    learns_twice,
    learns_one,
    only_acts,
    penalises,
    casts,
    doubles,
    mixes,
    strides,
    subclasses,
    maps,
    each_sample,
    maps_gradients,
    goes_forward,
    recomputes,
    traces,
    edits_inputs,
    edits_outputs,
    resizes,
)


def assert_same_or_refused(name: str, own: list, plain: list) -> None:
    if own and isinstance(own[0], list):  # of several trials
        for one, two in zip(own, plain, strict=True):
            assert_same_or_refused(name, one, two)
    elif own and isinstance(own[0], Exception):
        refused = re.search(REFUSALS, str(own[0]))
        assert refused or isinstance(plain[0], Exception), (name, own)
    elif plain and isinstance(plain[0], Exception):
        empty = "does not require grad" in str(plain[0])
        assert empty, (name, plain)
    else:
        assert_same(own, plain)


@pytest.mark.filterwarnings("ignore")  # of tracing
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=2, deadline=None)
@given(st.sampled_from([0, 1, 2, 90, 128, 300]) | st.integers(0, 300), st.sampled_from([9, 64, 87]))
def test_an_operation_is_its_plain_form_or_an_error(way, count, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops.products, "FAST", True)  # slow without AVX-512, but the same
        for name, (function, tensors) in operations(count, width).items():
            leaves = [tensor.clone().requires_grad_() for tensor in tensors]
            patch.setattr(ops, "KERNEL_DEVICES", ())
            expected = outcome(way, function, leaves, True)
            patch.setattr(ops, "KERNEL_DEVICES", ("cpu",))
            own = outcome(way, function, leaves, False)
            assert_same_or_refused(name, own, expected)
            for leaf, tensor in zip(leaves, tensors):
                assert torch.equal(leaf, tensor)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_operation_is_its_plain_form():
    for function, tensors in operations(5, 9).values():
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        assert_same(compiles(function, leaves, False), learns(function, leaves, False))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 300), st.integers(1, 9))
def test_slopes_are_those_of_finite_differences(count, width):
    for name, (function, tensors) in operations(count, width).items():
        leaves = [tensor.double().requires_grad_() for tensor in tensors]
        parts = lambda *own, function=function: tuple(floats(function(*own)))  # noqa: E731
        if name != "sample_orders":
            assert torch.autograd.gradcheck(parts, leaves, fast_mode=True)


def twice(layer: nn.Module) -> None:
    forward = layer.forward
    layer.forward = lambda x: 2 * forward(x)


LAYER_EDITS = {
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "old weight_norm": torch.nn.utils.weight_norm,
    "hook": lambda layer: layer.register_forward_hook(lambda module, inputs, out: 2 * out),
    "hook before": lambda layer: layer.register_forward_pre_hook(lambda _, inputs: 2 * inputs[0]),
    "hook of gradients": lambda layer: layer.register_full_backward_pre_hook(
        lambda module, grads: (2 * grads[0],)
    ),
    "no bias": lambda layer: setattr(layer, "bias", None),
    "forward": twice,
    "frozen": lambda layer: layer.requires_grad_(False),
}


LAYERS = "global_features", "norms.0", "near.0", "order_context", "earlier_orders", "critic.2"


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("edit", LAYER_EDITS)
def test_an_edited_layer_is_one_without_kernels(edit, half, monkeypatch):
    """What a network samples and learns with one of its layers edited."""
    decisions, obs, _ = positions("small")
    monkeypatch.setattr(ops.products, "FAST", True)
    monkeypatch.setattr(ops, "KERNEL_DEVICES", ops.KERNEL_DEVICES)
    chosen, _, _ = act(make_agent(), obs, decisions, 1)
    for name in LAYERS[([*LAYER_EDITS].index(edit) + half) % 2 :: 2]:
        outcomes = []
        for ops.KERNEL_DEVICES in ("cpu",), ():
            agent = make_agent(hidden=64)
            if name == "norms.0" and "norm" in edit:  # its weight has one dimension
                continue
            LAYER_EDITS[edit](agent.get_submodule(name))
            action = agent.get_action_and_value(obs, decisions, noise=ops.LIKELIEST)
            out = [action.logprob, action.value, *score(agent, obs, decisions, chosen)]
            total(out).backward()
            grads = [weight.grad for weight in agent.parameters() if weight.grad is not None]
            outcomes.append([*out, *grads])
        if outcomes:
            assert_same(*outcomes)


@pytest.mark.parametrize("row", [5, -2])
def test_a_row_that_a_table_lacks_is_an_error(row, monkeypatch):
    monkeypatch.setattr(ops.products, "FAST", True)
    named, weight = [torch.tensor([row])], random(64, 64)
    with pytest.raises((IndexError, RuntimeError)):
        ops.sum_rows(np.array([[0, row]]), random(5, 64))
    with pytest.raises((IndexError, RuntimeError)):
        ops.linear_by_role(random(5, 64), named, weight, random(64))
