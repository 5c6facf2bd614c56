"""Operators are PyTorch's: whatever is done with them ends as with the plain forms, or in an error;
and orders that kernels draw are those of the plain forms."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

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

from diplomacy_engine.learning import ops
from diplomacy_engine.learning.players import AgentNetwork


class Call(NamedTuple):
    """An operator, what it takes, and which of that a network learns."""

    operator: ops.Operator
    tensors: list[torch.Tensor | None]
    learned: list[int]

    def of(self, parts, also=lambda tensor: tensor) -> list:
        """Return what it takes, with other tensors for those that are learned."""
        parts = dict(zip(self.learned, parts, strict=True))
        others = [t if t is None or not t.is_floating_point() else also(t) for t in self.tensors]
        return [parts.get(n, other) for n, other in enumerate(others)]

    def leaves(self, change=lambda tensor: tensor) -> list[torch.Tensor]:
        return [change(self.tensors[n]).clone().requires_grad_() for n in self.learned]


def calls(name: str, count: int, seed: int, **sizes) -> list[Call]:
    """Return how a network calls operators to score orders of so many decisions, all that it
    learns drawn anew."""
    decisions, obs, _ = positions(name)
    rows = np.random.default_rng(seed).integers(decisions.count, size=count)
    decisions, obs = decisions.take(rows), obs.take(rows)
    agent = make_agent(name, **sizes)
    chosen, _, _ = act(agent, obs, decisions, 1)
    made: list[Call] = []
    generator, run = torch.Generator().manual_seed(seed), ops.Operator.run

    def noted(operator, *tensors):
        learned = [n for n, t in enumerate(tensors) if t is not None and t.requires_grad]
        drawn = [
            torch.randn(t.shape, generator=generator) if n in learned else t
            for n, t in enumerate(tensors)
        ]
        made.append(Call(operator, drawn, learned))
        return run(operator, *tensors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops.Operator, "run", noted)
        score(agent, obs, decisions, chosen)
    assert {type(call.operator) for call in made} == {*ops.Operator.__subclasses__()}
    assert sizes["hidden"] != 64 or all(call.operator.fits(*call.tensors) for call in made)
    return list({(type(call.operator), len(call.tensors)): call for call in made}.values())


def parts(out) -> list[torch.Tensor]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def total(out) -> torch.Tensor:
    return sum((part * weights(part.shape)).sum() for part in parts(out))


def weights(shape) -> torch.Tensor:
    return torch.arange(math.prod(shape)).cos().reshape(shape)


def slopes(out, leaves, **options) -> list[torch.Tensor]:
    own = [leaf for leaf in leaves if leaf.requires_grad]
    return list(
        torch.autograd.grad(total(out), own, allow_unused=True, materialize_grads=True, **options)
    )


def learns(run, call: Call, change=lambda tensor: tensor) -> list:
    leaves = call.leaves(change)
    out = run(*call.of(leaves, change))
    return [*parts(out), *slopes(out, leaves)]


def cast(kind: torch.dtype):
    return lambda run, call: learns(run, call, lambda tensor: tensor.to(kind))


def penalty(run, call: Call) -> list:
    leaves = call.leaves()
    first = slopes(run(*call.of(leaves)), leaves, create_graph=True)
    return slopes([total(run(*call.of(leaves))), sum(d.pow(2).sum() for d in first)], leaves)


def autocast(run, call: Call) -> list:
    leaves = call.leaves()
    with torch.autocast("cpu", torch.bfloat16):
        out = parts(run(*call.of(leaves)))
        return [*out, *slopes(out, leaves)]


def batched(run, call: Call) -> list:
    several = [torch.stack([leaf, -leaf]) for leaf in call.leaves()]
    with torch.no_grad():
        return parts(torch.vmap(lambda *own: tuple(parts(run(*call.of(own)))))(*several))


def per_sample(run, call: Call) -> list:
    several = [torch.stack([leaf, -leaf]).detach() for leaf in call.leaves()]
    numbers = tuple(range(len(several)))
    return list(
        torch.vmap(torch.func.grad(lambda *own: total(run(*call.of(own))), numbers))(*several)
    )


def batch_of_gradients(run, call: Call) -> list:
    leaves = call.leaves()
    out = parts(run(*call.of(leaves)))
    of_outputs = [weights((2, *part.shape)) for part in out]
    return list(torch.autograd.grad(out, leaves, of_outputs, is_grads_batched=True))


def forward_mode(run, call: Call) -> list:
    with forward_ad.dual_level():
        pairs = [forward_ad.make_dual(leaf, weights(leaf.shape)) for leaf in call.leaves()]
        return [forward_ad.unpack_dual(part).tangent for part in parts(run(*call.of(pairs)))]


def checkpointed(run, call: Call) -> list:
    leaves = call.leaves()
    out = checkpoint(lambda *own: run(*call.of(own)), *leaves, use_reentrant=False)
    return [*parts(out), *slopes(out, leaves)]


def traced(run, call: Call) -> list:
    leaves = tuple(leaf.detach() for leaf in call.leaves())
    function = torch.jit.trace(
        lambda *own: tuple(parts(run(*call.of(own)))), leaves, check_trace=False
    )
    return parts(function(*(-leaf for leaf in leaves)))


def unlearned(run, call: Call) -> list:
    with torch.no_grad():
        return parts(run(*call.tensors))


def inference(run, call: Call) -> list:
    with torch.inference_mode():
        return parts(run(*call.tensors))


def one_learns(run, call: Call) -> list:
    leaves = [leaf.requires_grad_(n == 0) for n, leaf in enumerate(call.leaves())]
    out = run(*call.of(leaves))
    return [*parts(out), *slopes(out, leaves)]


def strided(run, call: Call) -> list:
    return learns(run, call, lambda t: torch.stack([t, t], -1)[..., 0] if t.dim() else t)


class Subclass(torch.Tensor):
    pass


def subclasses(run, call: Call) -> list:
    return [
        part.as_subclass(torch.Tensor)
        for part in learns(run, call, lambda t: t.as_subclass(Subclass))
    ]


def compiled(run, call: Call) -> list:
    torch._dynamo.reset()
    return learns(torch.compile(lambda *tensors: run(*tensors), backend="eager"), call)


def edited_input(run, call: Call) -> list:
    """As if no input were edited once it has been used; the plain form sees no edit."""
    ends, own = [], run == call.operator.run
    for n, tensor in enumerate(call.tensors):
        if tensor is not None:

            def use(run, call, n=n) -> list:
                leaves = call.leaves()
                inputs = [t if t is None else t.clone() for t in call.of(leaves)]
                out = run(*inputs)
                if own:
                    inputs[n].zero_()
                return slopes(out, leaves)

            ends.append(outcome(use, run, call))
    return ends


def edited_output(run, call: Call) -> list:
    ends = []
    for n in range(len(parts(run(*call.tensors)))):

        def use(run, call, n=n) -> list:
            leaves = call.leaves()
            out = parts(run(*call.of([leaf.clone() for leaf in leaves])))
            out[n] = out[n].mul_(2) if run == call.operator.run else 2 * out[n]
            return slopes(out, leaves)

        ends.append(outcome(use, run, call))
    return ends


def resized(run, call: Call, by: int) -> list:
    ends = []
    for n, tensor in enumerate(call.tensors):
        for axis in range(0 if tensor is None else tensor.dim()):
            size, other = tensor.shape[axis], [*call.tensors]
            if size:
                other[n] = tensor.index_select(axis, torch.arange(size + by) % size)
                ends.append(outcome(learns, run, call._replace(tensors=other)))
    return ends


def out_of_range(run, call: Call) -> list:
    ends = []
    for n, tensor in enumerate(call.tensors):
        if tensor is not None and not tensor.is_floating_point() and tensor.numel():
            for number in (100, -2, 2**30):
                other = [*call.tensors]
                other[n] = tensor.clone()
                other[n].flatten()[-1:] = min(number, torch.iinfo(tensor.dtype).max)
                ends.append(outcome(learns, run, call._replace(tensors=other)))
    return ends


WAYS = {
    "gradient": learns,
    "penalty": penalty,
    "float64": cast(torch.float64),
    "bfloat16": cast(torch.bfloat16),
    "float16": cast(torch.float16),
    "autocast": autocast,
    "vmap": batched,
    "per sample": per_sample,
    "batch of gradients": batch_of_gradients,
    "forward mode": forward_mode,
    "checkpoint": checkpointed,
    "trace": traced,
    "no_grad": unlearned,
    "inference": inference,
    "one learns": one_learns,
    "strided": strided,
    "subclass": subclasses,
    "edited input": edited_input,
    "edited output": edited_output,
    "out of range": out_of_range,
    "too few": partial(resized, by=-1),
    "too many": partial(resized, by=1),
}


def outcome(way: Callable, run: Callable, call: Call) -> list:
    try:
        return way(run, call)
    except Exception as error:
        return [error]


def assert_same(one: list, two: list, rounding: float = 1e-5) -> None:
    """A code within rounding of 0 may be on either side: one entry of 10,000 may differ."""
    assert len(one) == len(two) or isinstance(one[0], Exception), (one[:1], two[:1])
    for own, plain in zip(one, two):
        if isinstance(own, list):  # of several trials
            assert_same(own, plain)
        elif isinstance(own, Exception):
            refused = "inplace" in str(own) or "jvp" in str(own)
            assert refused or isinstance(plain, Exception), (own, plain)
        else:
            assert not isinstance(plain, Exception), (own, plain)
            assert own.dtype == plain.dtype and own.shape == plain.shape
            own, plain = own.detach().double(), plain.detach().double()
            scale = max(float(plain.abs().max()) if plain.numel() else 0, 1)
            differ = ~torch.isclose(
                own, plain, rtol=10 * rounding, atol=rounding * scale, equal_nan=True
            )
            assert differ.sum() <= differ.numel() // 10_000


def outcomes(way: Callable, call: Call) -> tuple[list, list]:
    return outcome(way, call.operator.run, call), outcome(way, call.operator.plain, call)


COUNTS = st.sampled_from([0, 1, 2, 90, 101, 300]) | st.integers(0, 300)
SIZES = st.fixed_dictionaries(
    {"hidden": st.sampled_from([9, 64, 87]), "autoregressive": st.booleans()}
)
NAMES = st.sampled_from(["small", "three"])


@pytest.fixture(autouse=True, scope="module")
def all_kernels():
    """Those of products too, which without AVX-512 are slow, and for few rows anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops.products, "FAST", True)
        patch.setattr(ops, "MANY", -1)
        yield


@pytest.mark.filterwarnings("ignore")  # of tracing
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=1, deadline=None)
@given(NAMES, COUNTS, st.integers(0, 2**32), SIZES)
def test_an_operator_is_its_plain_form(way, name, count, seed, sizes):
    for call in calls(name, count, seed, **sizes):
        before = [t if t is None else t.clone() for t in call.tensors]
        assert_same(*outcomes(WAYS[way], call))
        for tensor, old in zip(call.tensors, before):
            assert tensor is old or torch.equal(tensor, old)


@pytest.mark.slow  # compilers take seconds
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_operator_is_its_plain_form():
    for call in calls("three", 101, 1, hidden=64, autoregressive=True):
        own, plain = outcomes(compiled, call)
        assert_same(own, plain)
        assert_same(own, learns(call.operator.run, call))


def test_slopes_are_those_of_finite_differences():
    for call in calls("three", 3, 2, hidden=4, autoregressive=True):
        leaves = call.leaves(lambda tensor: tensor.double())

        def run(*own, call=call):
            return call.operator.run(*call.of(own, lambda tensor: tensor.double()))

        assert torch.autograd.gradcheck(run, leaves, fast_mode=True)
        assert torch.autograd.gradgradcheck(run, leaves, fast_mode=True)


def hook(layer: nn.Module) -> None:
    layer.register_forward_hook(lambda module, inputs, out: 2 * out)


def hook_before(layer: nn.Module) -> None:
    layer.register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],))


def without_bias(layer: nn.Module) -> None:
    layer.bias = None


def another_forward(layer: nn.Module) -> None:
    forward = layer.forward
    layer.forward = lambda x: 2 * forward(x)


def frozen(layer: nn.Module) -> None:
    layer.requires_grad_(False)


LAYER_EDITS = (
    parametrizations.weight_norm,
    parametrizations.spectral_norm,
    torch.nn.utils.weight_norm,
    hook,
    hook_before,
    without_bias,
    another_forward,
    frozen,
)
LAYERS = [name for name, layer in make_agent().named_modules() if hasattr(layer, "weight")]


def of_network(agent: nn.Module, chosen: np.ndarray) -> list:
    """Return what a network learns from orders that it draws, and from others."""
    decisions, obs = some_positions()
    agent.zero_grad()
    action = agent.get_action_and_value(obs, decisions, noise=ops.LIKELIEST)
    total(action.logprob).backward()
    scores = score(agent, obs, decisions, chosen)
    total(scores).backward()
    grads = [weight.grad for weight in agent.parameters() if weight.grad is not None]
    return [*scores, action.logprob, *(grad.clone() for grad in grads)]


def some_positions() -> tuple:
    decisions, obs, _ = positions("three")
    rows = np.arange(0, decisions.count, 3)
    return decisions.take(rows), obs.take(rows)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("edit", LAYER_EDITS)
def test_an_edited_layer_is_one_without_kernels(edit):
    decisions, obs = some_positions()
    for name in LAYERS:
        agent = make_agent("three", hidden=64)
        chosen, _, _ = act(agent, obs, decisions, 1)
        try:
            edit(agent.get_submodule(name))
        except (RuntimeError, ValueError):  # nothing that can be normalised, or has a bias
            continue
        agent.eval()

        own = outcome(of_network, agent, chosen)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ops, "KERNEL_DEVICES", ())
            assert_same(own, outcome(of_network, agent, chosen), 1e-3)  # of many layers


def test_a_network_is_called_with_other_weights():
    """Their gradients, too, are those of the plain forms."""
    decisions, obs, _ = positions("three")
    agent = make_agent("three", hidden=64)
    chosen, _, _ = act(agent, obs, decisions, 1)

    class Scored(nn.Module):
        def __init__(self):
            super().__init__()
            self.agent = agent

        def forward(self):
            return score(self.agent, obs, decisions, chosen)

    def called() -> list:
        other = {n: (1.1 * w).detach().requires_grad_() for n, w in Scored().named_parameters()}
        scores = torch.func.functional_call(Scored(), other, ())
        return [*scores, *slopes(scores, [*other.values()])]

    own = called()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ops, "KERNEL_DEVICES", ())
        assert_same(own, called())


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
        orders.named = [torch.arange(whole)] * 3
        return orders

    monkeypatch.setattr(agent.inputs, "orders", all_rows)
    assert_same(list(found), list(score(agent, obs, decisions, chosen)))
