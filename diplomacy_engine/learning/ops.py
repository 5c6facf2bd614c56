"""Operations of a policy over legal orders, which are ragged lists. An order's code is a sum of
rows of tables, its score the inner product of a weight with the code's positive part. On a CPU
kernels are several times as fast as whole arrays, (N, H); elsewhere see plain_ops.py."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import NONE
from ..games.draws import sample_noise  # noqa: F401 (part of this module's names)
from ..players.policy import order_logits, products, sums
from ..players.policy.inputs import NUM_BOARD, ROWS, NetworkInputs
from ..players.policy.player import LIKELIEST  # noqa: F401
from . import plain_ops
from .boards import BoardInputs, Boards, Orders, SharedOrders, on_device
from .plain_ops import OrderTables

MANY = 100  # rows from which on a call of a kernel for products pays
KERNEL_DEVICES = ("cpu",)  # tests empty it, and so do on a CPU what a GPU does
KERNEL_TYPES = torch.float32, torch.int8, torch.int32, torch.int64


def uses_kernels(*tensors: torch.Tensor | None) -> bool:
    """Return whether kernels compute with tensors, of a processor and of KERNEL_TYPES: not while
    PyTorch does more with operations than run them and record their gradients."""
    return not (
        torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()  # vmap and others of torch.func
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()
    ) and all(
        part is None
        or (
            type(part) in (torch.Tensor, nn.Parameter)
            and part.dtype in KERNEL_TYPES
            and part.device.type in KERNEL_DEVICES
            and part.layout is torch.strided
        )
        for part in tensors
    )


class LayerNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Normalise(self.normalized_shape, self.eps).run(x, self.weight, self.bias)


class Linear(nn.Linear):
    """Where nothing is learned, a row comes out the same whatever rows stand beside it: MKL sums
    fewer than four in another order, and so does it where there is one column, but of fours."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, acts = math.prod(x.shape[:-1]), not torch.is_grad_enabled()
        tensors, operator = (x, self.weight, self.bias), Products()
        if (acts or count > MANY) and uses_kernels(*tensors) and operator.fits(*tensors):
            return operator.run(*tensors)
        few = count < 4 or self.out_features == 1
        if not (acts and count % 4 and few and uses_kernels(x)):
            return super().forward(x)
        rows = F.pad(x.reshape(count, -1), (0, 0, 0, -count % 4))
        return super().forward(rows)[:count].view(*x.shape[:-1], -1)


def linear_by_role(
    codes: torch.Tensor,
    named: Sequence[torch.Tensor],
    weight: torch.Tensor,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """Return (all named, H) what each part of a layer, (roles * H, K) and (roles * H,), makes of
    those of the codes (..., K), counted as one list, that are named (any,) for its role, one role
    after the other."""
    return Products().run(codes, weight, bias, *named)


def sample_orders(
    orders: Orders,
    tables: OrderTables,
    noise: np.ndarray | None = None,
    temperature: np.ndarray | None = None,
) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """Choose orders, unit by unit, by Gumbel `noise` (N,) or LIKELIEST; return positions (S,) in
    the slots' lists, log-probabilities (D,) at temperature 1, and probabilities (N,)."""
    if isinstance(orders, SharedOrders):
        return orders.sample(tables, noise, temperature)
    if noise is None:
        raise ValueError("orders are sampled by `noise`: ops.sample_noise, or ops.LIKELIEST")
    tensors = tables.tensors() if is_linear(tables.earlier) else ()
    learns = torch.is_grad_enabled() and any(t.requires_grad for t in tensors if t is not None)
    if not tensors or learns or not uses_kernels(*tensors) or not Scores(orders).fits(*tensors):
        return plain_ops.sample_orders(orders, tables, noise, temperature)
    arrays = [*map(_array, tensors)]
    if arrays[4] is None:
        arrays[4:] = np.empty((0, 0), np.float32), np.empty(0, np.float32)
    if temperature is None:
        temperature = np.ones(orders.decisions.count, np.float32)
    inputs = orders.columns, orders.decisions, orders.copy().lookup
    score_tables = order_logits.ScoreTables(*arrays[:4])
    chosen, *tensors = order_logits.sample_orders(
        *inputs, score_tables, tuple(arrays[4:]), noise, temperature
    )
    return chosen, *map(torch.from_numpy, tensors)


def sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the sums (sums, H) of rows (sums, any) of a table; NONE stands for no row. `starts`
    (n, H) are what the sums begin with, each for as many of them that follow each other."""
    if isinstance(rows, np.ndarray):
        rows = on_device(rows.copy(), table.device)
    return RowSums().run(rows, table, starts)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, ...]:
    """Return the codes (G, V, H) of provinces, their means (G, 1, H), and those of each power's
    units (G, P, H). Who goes on with these codes has their gradients summed in one pass."""
    return ProvinceMeans(boards.num_powers).run(codes, boards.owner)


def exchange(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    """Return the positive part (G, V, H) of `own` plus the mean of the neighbors' `near`."""
    return Exchange(inputs.network).run(own, near, inputs.borders)


def score_orders(orders: Orders, tables: OrderTables) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probability and entropy (share of the greatest), (D,), of the orders picked."""
    if not is_linear(tables.earlier):
        return plain_ops.score_orders(orders, tables)
    return Scores(orders.copy()).run(*tables.tensors())


def is_linear(layer: nn.Module | None) -> bool:
    """Return whether a layer's weight and bias are all that it does, or there is none."""
    forward = getattr(layer.forward, "__func__", None) if layer else nn.Linear.forward
    hooks = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
    plain = forward in (nn.Linear.forward, Linear.forward)
    return plain and not any(getattr(layer, name, None) for name in hooks)


class Operator:
    """An operation that kernels compute, and for PyTorch one like its own: autograd sees all that
    its gradient needs, and no input is changed. `plain` does the same in PyTorch's operations,
    where the kernels do not fit, and for second derivatives.

    Methods take the same tensors, or arrays; those of whole numbers have no gradient, None stands
    for no tensor. `gradients` takes those of the outputs first and, if `saves_output`, the output
    last; it returns one for each input. What else it needs `compute` leaves in attributes.
    """

    saves_output = False
    fits: Any
    compute: Any
    gradients: Any
    plain: Any

    def run(self, *tensors: torch.Tensor | None) -> Any:
        if not (uses_kernels(*tensors) and self.fits(*tensors)):
            return self.plain(*tensors)
        if torch.is_inference_mode_enabled():  # many small networks would notice what `apply` costs
            return _Kernels.forward(None, self, *tensors)
        return _Kernels.apply(self, *tensors)


class _Kernels(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operator: Operator, *tensors: torch.Tensor | None):
        arrays = [*map(_array, tensors)]
        outputs = operator.compute(*arrays)
        parts = outputs if isinstance(outputs, tuple) else (outputs,)
        # Where an input is returned, the same tensor is.
        inputs = {id(array): tensor for array, tensor in zip(arrays, tensors)}
        parts = tuple(inputs.get(id(part), part) for part in parts)
        parts = tuple(torch.from_numpy(p) if isinstance(p, np.ndarray) else p for p in parts)
        if ctx is not None:
            ctx.operator = operator
            ctx.save_for_backward(*tensors, *(parts if operator.saves_output else ()))
        return parts if isinstance(outputs, tuple) else parts[0]

    @staticmethod
    def backward(ctx, *grads: torch.Tensor):
        needed, saved = ctx.needs_input_grad[1:], ctx.saved_tensors
        again = torch.is_grad_enabled()  # for second derivatives
        with torch.autocast("cpu", enabled=False):
            batched = any(map(torch._C._functorch.is_legacy_batchedtensor, grads))
            if not (again or batched) and uses_kernels(*grads):
                partials = ctx.operator.gradients(*map(_array, grads), *map(_array, saved))
                return None, *(
                    torch.from_numpy(d) if need else None for d, need in zip(partials, needed)
                )
            with torch.enable_grad():
                inputs = [part if part is None else part.view_as(part) for part in saved]
                outputs = ctx.operator.plain(*inputs[: len(needed)])
            partials = torch.autograd.grad(
                outputs, [*compress(inputs, needed)], grads, create_graph=again, allow_unused=True
            )
        partials = iter(partials)
        return None, *(next(partials) if need else None for need in needed)


def _array(tensor: torch.Tensor | None) -> np.ndarray | None:
    return None if tensor is None else tensor.detach().contiguous().numpy()


def _are_below(rows: torch.Tensor | np.ndarray, limits: int | np.ndarray) -> bool:
    """Return whether rows (n, any) are NONE or below a limit, or those (any,) of their columns.
    Only where gradients are on, as acting would take longer; what acts has learned before."""
    if not torch.is_grad_enabled():
        return True
    rows = np.asarray(rows)
    highest = (rows + 1).view(f"u{rows.itemsize}")  # anything below NONE becomes the highest
    if isinstance(limits, np.ndarray):  # 64 rows at once: a column alone takes ten times as long
        last = len(rows) // 64 * 64
        blocks = highest[:last].reshape(-1, 64 * len(limits)).max(0, initial=0)
        highest = np.concatenate([blocks.reshape(64, -1), highest[last:]]).max(0)
        return bool((highest <= limits).all())
    return bool(highest.max(initial=0) <= limits)


class Products(Operator):
    """Of all rows x, or of those that are named, role by role."""

    def fits(self, x, weight, bias, *named) -> bool:
        roles, rows = max(len(named), 1), math.prod(x.shape[:-1])
        return (
            products.FAST
            and weight.dim() == 2
            and (bias is None or bias.shape == weight.shape[:1])
            and not len(weight) % roles
            and products.fits((len(weight) // roles, weight.shape[1]))
            and x.is_floating_point()
            and x.shape[-1:] == weight.shape[1:]
            and all(own.dim() == 1 and _are_below(own, rows) for own in named)
        )

    def compute(self, x, weight, bias, *named):
        bias = None if bias is None else bias.reshape(max(len(named), 1), -1)
        out = products.multiply(*self._by_role(x, weight, named), bias)
        return out if named else out.reshape(*x.shape[:-1], len(weight))

    def gradients(self, grad, x, weight, bias, *named):
        grad = grad.reshape(-1, grad.shape[-1])
        gradients = products.multiply_gradients(*self._by_role(x, weight, named), grad)
        d_x, d_weights, d_bias = gradients
        return d_x.reshape(x.shape), d_weights.reshape(weight.shape), d_bias.ravel(), *named

    def _by_role(self, x, weight, named):
        x = x.reshape(-1, x.shape[-1])
        rows = named or [np.arange(len(x))]
        return x, rows, weight.reshape(len(rows), -1, weight.shape[1])

    plain = staticmethod(plain_ops.products)


class RowSums(Operator):
    def fits(self, rows, table, starts) -> bool:
        count = 1 if starts is None else len(starts)
        return (
            rows.dim() == table.dim() == 2
            and rows.dtype is not torch.float32
            and table.dtype is torch.float32
            and (starts is None or starts.shape[1:] == table.shape[1:])
            and (not len(rows) % count if count else not len(rows))
            and _are_below(rows, len(table))
        )

    def compute(self, rows, table, starts):
        return sums.sum_rows(rows, table, table[:0] if starts is None else starts)

    def gradients(self, grad, rows, table, starts):
        count = 0 if starts is None else len(starts)
        return None, *sums.spread_rows(rows, grad, len(table), count)

    plain = staticmethod(plain_ops.sum_rows)


class ProvinceMeans(Operator):
    def __init__(self, num_powers: int):
        self.num_powers = num_powers

    def fits(self, codes, owner) -> bool:
        fits = codes.dim() == 3 and codes.shape[:2] == owner.shape and owner.dtype is torch.int8
        return fits and _are_below(owner, self.num_powers + 1)

    def compute(self, codes, owner):
        means = sums.mean_provinces(owner, codes, self.num_powers)
        return codes, means[:, :1], means[:, 1:]

    def gradients(self, d_codes, d_mean, d_units, codes, owner):
        return sums.spread_means(owner, d_codes, np.concatenate([d_mean, d_units], 1)), None

    def plain(self, codes, owner):
        return codes, *plain_ops.mean_provinces(codes, owner, self.num_powers)


class Exchange(Operator):
    saves_output = True

    def __init__(self, network: NetworkInputs):
        self.network = network

    def fits(self, own, near, borders) -> bool:
        return (
            own.dim() == 3
            and own.shape == near.shape
            and own.shape[1] == len(borders)
            and not borders.requires_grad
            and np.array_equal(borders.numpy(), self.network.borders)
        )

    def compute(self, own, near, borders):
        return sums.exchange(self.network.neighbors, own, near)

    def gradients(self, grad, own, near, borders, out):
        return *sums.spread_exchange(self.network.neighbor_of, grad, out), None

    plain = staticmethod(plain_ops.exchange)


class Normalise(Operator):
    def __init__(self, shape: tuple[int, ...], eps: float):
        self.shape, self.eps = shape, eps

    def fits(self, x, weight, bias) -> bool:
        return (
            weight is not None
            and bias is not None
            and x.is_floating_point()
            and len(self.shape) == 1
            and x.shape[-1:] == weight.shape == bias.shape == self.shape
        )

    def compute(self, x, weight, bias):
        rows = x.reshape(-1, len(weight))
        out, self.moments = sums.normalise(rows, weight, bias, self.eps)
        return out.reshape(x.shape)

    def gradients(self, grad, x, weight, bias):
        rows, grad = x.reshape(-1, len(weight)), grad.reshape(-1, len(weight))
        d_x, *gradients = sums.normalise_back(rows, weight, self.moments, grad)
        return d_x.reshape(x.shape), *gradients

    def plain(self, x, weight, bias):
        return F.layer_norm(x, self.shape, weight, bias, self.eps)


class Scores(Operator):
    """All of `plain_ops.score_orders` at once: its twenty operations are short."""

    def __init__(self, orders: Orders):
        self.orders = orders

    def fits(self, provinces, kinds, context, weight, layer, bias) -> bool:
        """Take what `OrderTables.tensors` returns, as the other methods do."""
        width, tables = weight.shape, (provinces, kinds, context)
        limits = np.repeat([len(provinces), len(kinds)], [NUM_BOARD, ROWS - NUM_BOARD])
        return (
            len(width) == 1
            and all(table.dim() == 2 and table.shape[1:] == width for table in tables)
            and (layer is None or (layer.shape == width * 2 and bias.shape == width))
            and len(context) == self.orders.decisions.count
            and _are_below(self.orders.rows, limits)
        )

    def compute(self, provinces, kinds, context, weight, layer, bias):
        """Return log-probabilities and entropies (D,)."""
        orders, decisions = self.orders, self.orders.decisions
        decision, self.hidden = orders.decision.numpy(), None
        bases = context[decision]  # (S, H)
        if layer is not None:  # a unit's orders see what earlier units were given
            hidden = sums.sum_rows(orders.given_provinces, provinces, bases)
            hidden = sums.sum_rows(orders.given_kinds, kinds, hidden)
            self.hidden = np.maximum(hidden, 0, out=hidden)
            codes = F.linear(*map(torch.from_numpy, (hidden, layer, bias)))
            bases += sums.sum_earlier(decisions.slot_start, codes.numpy())
        tables = order_logits.ScoreTables(provinces, kinds, bases, weight)
        inputs = decisions, orders.lookup, tables, orders.picked
        scores = order_logits.score_orders(*inputs)
        logprob, share, most = (
            np.bincount(decision, part, len(context)).astype(np.float32)
            for part in (scores.logprob, scores.entropy, scores.greatest)
        )
        self.most, self.saved = np.maximum(most, 1e-6), (*inputs, scores)
        return logprob, share / self.most

    def gradients(self, d_logprob, d_share, provinces, kinds, context, weight, layer, bias):
        """Take gradients of log-probabilities and entropies (D,) first."""
        orders, hidden, decision = self.orders, self.hidden, self.orders.decision.numpy()
        d_slots = d_logprob[decision], (d_share / self.most)[decision]
        gradients = order_logits.score_gradients(*self.saved, *d_slots)
        d_provinces, d_kinds, d_bases, d_weight = gradients
        d_layer = None, None
        if layer is not None:
            slot_start = orders.decisions.slot_start
            d_codes = torch.from_numpy(sums.sum_earlier(slot_start, d_bases, backwards=True))
            d_layer = (d_codes.T @ torch.from_numpy(hidden)).numpy(), d_codes.sum(0).numpy()
            d_hidden = (d_codes @ torch.from_numpy(layer)).numpy() * (hidden > 0)
            sums.add_to_rows(orders.given_provinces, d_hidden, d_provinces)
            sums.add_to_rows(orders.given_kinds, d_hidden, d_kinds)
            d_bases += d_hidden
        d_context = sums.zeros(*context.shape)
        sums.add_to_rows(decision[:, None], d_bases, d_context)
        return d_provinces, d_kinds, d_context, d_weight, *d_layer

    def plain(self, provinces, kinds, context, weight, layer, bias):
        """Return what `compute` does."""
        earlier = None if layer is None else partial(F.linear, weight=layer, bias=bias)
        tables = OrderTables(provinces, kinds, context, weight, earlier)
        return plain_ops.score_orders(self.orders, tables)


assert NONE == -1  # so that rows + 1 are those of a padded table
