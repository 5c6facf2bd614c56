"""Operations of a policy over legal orders, which are ragged lists. An order's code is a sum of
rows of tables, its score the inner product of a weight with the code's positive part. On a CPU
kernels are several times as fast as whole arrays, (N, H); elsewhere see plain_ops.py."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import NONE
from ..games.draws import sample_noise  # noqa: F401 (part of this module's names)
from ..players.policy import order_logits, products, sums
from ..players.policy.inputs import NUM_KINDS, NetworkInputs
from ..players.policy.player import LIKELIEST  # noqa: F401
from . import plain_ops
from .boards import BoardInputs, Boards, Orders, SharedOrders, on_device
from .plain_ops import OrderTables

MANY = 100  # rows from which on a call of a kernel for products pays
HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
KERNEL_DEVICES = ("cpu",)  # tests empty it, and so do on a CPU what a GPU does


def uses_kernels(*tensors: torch.Tensor | None) -> bool:
    """Return whether kernels compute with tensors: not while PyTorch does more with an operation
    than run it and record its gradient. None stands for no tensor."""
    for tensor in tensors:  # `device.type` would take fifteen times as long
        if tensor is not None and not (
            type(tensor) in (torch.Tensor, nn.Parameter)
            and tensor.dtype is torch.float32
            and tensor.is_cpu
        ):
            return False
    return "cpu" in KERNEL_DEVICES and not (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()  # vmap and others of torch.func
        or torch.is_autocast_enabled("cpu")
        or torch.jit.is_tracing()
    )


class LayerNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape, weight, bias = self.normalized_shape, self.weight, self.bias
        fits = weight is not None and bias is not None
        fits = fits and x.shape[-1:] == weight.shape == bias.shape == shape
        if not (fits and uses_kernels(x, weight, bias)):
            return F.layer_norm(x, shape, weight, bias, self.eps)
        return _apply(_Normalised, x, weight, bias, self.eps)


class Linear(nn.Linear):
    """Where nothing is learned, a row comes out the same whatever rows stand beside it: MKL sums
    fewer than four in another order, and so does it where there is one column, but of fours."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias = self.weight, self.bias  # once: a parametrized one is another each time
        if not uses_kernels(x, weight, bias):
            return F.linear(x, weight, bias)
        count, acts = math.prod(x.shape[:-1]), not torch.is_grad_enabled()
        if (acts or count > MANY) and _fits(x, weight, bias):
            return _apply(_Products, x, weight, bias)
        if not (acts and count % 4 and (count < 4 or len(weight) == 1)):
            return F.linear(x, weight, bias)
        rows = F.pad(x.reshape(count, -1), (0, 0, 0, -count % 4))
        return F.linear(rows, weight, bias)[:count].view(*x.shape[:-1], -1)


def _fits(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, roles: int = 1) -> bool:
    return (
        weight.dim() == 2
        and products.fits((len(weight) // roles, weight.shape[1]))
        and x.shape[-1:] == weight.shape[1:]
        and (bias is None or bias.shape == weight.shape[:1])
    )


def linear_by_role(
    codes: torch.Tensor,
    named: Sequence[torch.Tensor],
    weight: torch.Tensor,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    """Return (all named, H) what each part of a layer, (roles * H, K) and (roles * H,), makes of
    those of the codes (..., K), counted as one list, that are named (any,) for its role, one role
    after the other."""
    if (
        uses_kernels(codes, weight, bias)
        and _fits(codes, weight, bias, len(named))
        and all(_are_below(rows, math.prod(codes.shape[:-1])) for rows in named)
    ):
        return _apply(_Products, codes, weight, bias, *named)
    roles = np.repeat(np.arange(len(named)), [len(rows) for rows in named])
    places = torch.add(on_device(roles, codes.device), torch.cat([*named]), alpha=len(named))
    return (
        F.linear(codes.flatten(0, -2), weight, bias)
        .unflatten(1, (len(named), -1))
        .flatten(0, 1)
        .index_select(0, places)
    )


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
    if not _kernels_score(orders, tables) or (
        torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tables.tensors())
    ):
        return plain_ops.sample_orders(orders, tables, noise, temperature)
    arrays = [_array(tensor) for tensor in tables.tensors()]
    score_tables = order_logits.ScoreTables(*arrays[:4])
    none = np.empty((0, 0), np.float32), np.empty(0, np.float32)
    earlier = (arrays[4], arrays[5]) if arrays[4:] else none
    if temperature is None:
        temperature = np.ones(len(score_tables.base), np.float32)
    chosen, *tensors = order_logits.sample_orders(
        orders.columns, orders.decisions, orders.lookup, score_tables, earlier, noise, temperature
    )
    return chosen, *map(torch.from_numpy, tensors)


def sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the sums (sums, H) of rows (sums, any) of a table; NONE stands for no row. `starts`
    (n, H) are what the sums begin with, each for as many of them that follow each other."""
    if isinstance(rows, np.ndarray):
        rows = on_device(rows.copy(), table.device)  # it may be changed before the gradient
    begins = table[:0] if starts is None else starts
    if (
        uses_kernels(table, begins)
        and rows.dim() == table.dim() == 2
        and begins.shape[1:] == table.shape[1:]
        and (starts is None or len(rows) == 0 or (len(starts) and len(rows) % len(starts) == 0))
        and _are_below(rows, len(table))
    ):
        return _apply(_RowSums, rows, table, begins)
    return plain_ops.sum_rows(rows, table, starts)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, ...]:
    """Return the codes (G, V, H) of provinces, their means (G, 1, H), and those of each power's
    units (G, P, H). Who goes on with these codes has their gradients summed in one pass."""
    fits = codes.dim() == 3 and codes.shape[:2] == boards.owner.shape
    if not (fits and uses_kernels(codes) and _are_below(boards.owner, boards.num_powers + 1)):
        return codes, *plain_ops.mean_provinces(codes, boards)
    return _apply(_ProvinceMeans, codes, boards.owner, boards.num_powers)


def pass_messages(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    """Return the positive part (G, V, H) of `own` plus the mean of the neighbors' `near`."""
    fits = own.dim() == 3 and own.shape == near.shape and own.shape[1] == len(inputs.borders)
    if fits and uses_kernels(own, near) and not inputs.borders.requires_grad:
        return _apply(_Exchange, own, near, inputs.network)
    return plain_ops.pass_messages(own, near, inputs)


def score_orders(orders: Orders, tables: OrderTables) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probability and entropy (share of the greatest), (D,), of the orders picked."""
    if not _kernels_score(orders, tables):
        return plain_ops.score_orders(orders, tables)
    return _Scores.apply(orders, *tables.tensors())


def is_linear(layer: nn.Module | None) -> bool:
    """Return whether a layer does what its weight and bias say and no more, or there is none."""
    return layer is None or (
        type(layer) in (nn.Linear, Linear)
        and layer.bias is not None
        and "forward" not in vars(layer)
        and not any(getattr(layer, name) for name in HOOKS)
        and not nn.modules.module._has_any_global_hook()
    )


def _kernels_score(orders: Orders, tables: OrderTables) -> bool:
    if not (is_linear(tables.earlier) and uses_kernels(*(tensors := tables.tensors()))):
        return False
    *parts, weight = tensors[:4]
    return (
        all(part.shape[1:] == weight.shape for part in parts)
        and [part.shape for part in tensors[4:]] in ([], [weight.shape * 2, weight.shape])
        and len(tables.context) == orders.decisions.count
        and len(tables.provinces) == sum(map(len, orders.named))
        and len(tables.kinds) >= NUM_KINDS
    )


def _are_below(rows: torch.Tensor, limit: int) -> bool:
    """Return whether rows are NONE or below a limit; only where gradients are on, as acting would
    take longer, and what acts has learned before."""
    if not torch.is_grad_enabled():
        return True
    array = rows.numpy()
    return bool(array.min(initial=NONE) >= NONE and array.max(initial=NONE) < limit)


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    if torch.is_grad_enabled():  # many small networks that only act would notice what it costs
        return function.apply(*arguments)
    return function.forward(SimpleNamespace(save_for_backward=lambda *_: None), *arguments)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def _saved(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
    _check_first(*grads)
    return ctx.saved_tensors


def _check_first(*grads: torch.Tensor) -> None:
    """Raise RuntimeError if kernels are to compute more than one first derivative."""
    if torch.is_grad_enabled() or any(map(torch._C._functorch.is_legacy_batchedtensor, grads)):
        raise RuntimeError(
            "kernels have no second derivatives and no batches of gradients; with "
            "`ops.KERNEL_DEVICES = ()` PyTorch's own operations are used, which have"
        )


class _Products(torch.autograd.Function):
    """Takes and returns arrays as they are: a gradient that is a view of another tensor could not
    be added to in place."""

    @staticmethod
    def forward(ctx, x, weight, bias, *named: torch.Tensor):
        ctx.save_for_backward(x, weight, *named)
        bias = None if bias is None else _array(bias).reshape(max(1, len(named)), -1)
        out = products.multiply(*_by_role(x, weight, named), bias=bias)
        return torch.from_numpy(out if named else out.reshape(*x.shape[:-1], len(weight)))

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        x, weight, *named = ctx.saved_tensors
        if torch.is_grad_enabled() and not named:  # as with too few rows for a kernel
            grad = grad_output.flatten(0, -2)
            d_bias = grad.sum(0) if ctx.needs_input_grad[2] else None
            return grad_output @ weight, grad.T @ x.flatten(0, -2), d_bias
        _check_first(grad_output)
        grad = _array(grad_output).reshape(-1, grad_output.shape[-1])
        d_x, d_weights, d_bias = products.multiply_gradients(*_by_role(x, weight, named), grad=grad)
        d_x, d_weights = d_x.reshape(x.shape), d_weights.reshape(weight.shape)
        d_bias = torch.from_numpy(d_bias.ravel()) if ctx.needs_input_grad[2] else None
        return torch.from_numpy(d_x), torch.from_numpy(d_weights), d_bias, *[None] * len(named)


def _by_role(
    x: torch.Tensor, weight: torch.Tensor, named: Sequence[torch.Tensor]
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    codes = _array(x).reshape(-1, x.shape[-1])
    rows = [part.numpy() for part in named] or [np.arange(len(codes))]
    return codes, rows, _array(weight).reshape(len(rows), -1, weight.shape[1])


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: torch.Tensor, table: torch.Tensor, starts: torch.Tensor):
        ctx.save_for_backward(rows)
        ctx.counts = len(table), len(starts)
        return torch.from_numpy(sums.sum_rows(rows.numpy(), _array(table), _array(starts)))

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        (rows,) = _saved(ctx, grad_output)
        gradients = sums.spread_rows(rows.numpy(), _array(grad_output), *ctx.counts)
        return None, *map(torch.from_numpy, gradients)


class _ProvinceMeans(torch.autograd.Function):
    @staticmethod
    def forward(ctx, codes: torch.Tensor, owner: torch.Tensor, num_powers: int):
        ctx.save_for_backward(owner)
        means = sums.mean_provinces(owner.numpy(), _array(codes), num_powers)
        return codes, torch.from_numpy(means[:, :1]), torch.from_numpy(means[:, 1:])

    @staticmethod
    def backward(ctx, d_codes: torch.Tensor, d_mean: torch.Tensor, d_units: torch.Tensor):
        (owner,) = _saved(ctx, d_codes, d_mean, d_units)
        d_means = np.concatenate([_array(d_mean), _array(d_units)], 1)
        d_codes = sums.spread_means(owner.numpy(), _array(d_codes), d_means)
        return torch.from_numpy(d_codes), None, None


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own: torch.Tensor, near: torch.Tensor, network: NetworkInputs):
        out = torch.from_numpy(sums.exchange(network.neighbors, _array(own), _array(near)))
        ctx.save_for_backward(out)
        ctx.back = network.neighbor_of
        return out

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        (out,) = _saved(ctx, grad_output)
        gradients = sums.spread_exchange(ctx.back, _array(grad_output), out.numpy())
        return *map(torch.from_numpy, gradients), None


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float):
        ctx.save_for_backward(x, weight)
        rows = _array(x).reshape(-1, len(weight))
        out, ctx.moments = sums.normalise(rows, _array(weight), _array(bias), eps)
        return torch.from_numpy(out.reshape(x.shape))

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        x, weight = _saved(ctx, grad_output)
        rows, grad = (_array(part).reshape(-1, len(weight)) for part in (x, grad_output))
        d_x, *gradients = sums.normalise_back(rows, _array(weight), ctx.moments, grad)
        d_x = torch.from_numpy(d_x.reshape(grad_output.shape))
        return d_x, *map(torch.from_numpy, gradients), None


class _Scores(torch.autograd.Function):
    """All of `plain_ops.score_orders` at once: its twenty operations are short."""

    @staticmethod
    def forward(ctx, orders: Orders, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.save_for_backward(*tensors)
        provinces, kinds, context, weight, *layer = map(_array, tensors)
        decisions = orders.decisions
        decision, hidden = decisions.slot_decision, None
        bases = context[decision]  # (S, H)
        if layer:  # a unit's orders see what earlier units were given
            hidden = sums.sum_rows(orders.given_provinces, provinces, bases)
            hidden = sums.sum_rows(orders.given_kinds, kinds, hidden)
            np.maximum(hidden, 0, out=hidden)
            codes = F.linear(torch.from_numpy(hidden), *map(torch.from_numpy, layer))
            bases += sums.sum_earlier(decisions.slot_start, _array(codes))
        tables = order_logits.ScoreTables(provinces, kinds, bases, weight)
        inputs = decisions, orders.lookup, tables, orders.given
        scores = order_logits.score_orders(*inputs)
        logprob, share, most = (
            np.bincount(decision, part, len(context)).astype(np.float32)
            for part in (scores.logprob, scores.entropy, scores.greatest)
        )
        most = np.maximum(most, 1e-6)
        ctx.arrays = (*inputs, scores), decision, hidden, orders, most
        return torch.from_numpy(logprob), torch.from_numpy(share / most)

    @staticmethod
    def backward(ctx, d_logprob: torch.Tensor, d_share: torch.Tensor):
        _, _, _, _, *layer = _saved(ctx, d_logprob, d_share)
        (decisions, lookup, scored, picked, scores), decision, hidden, orders, most = ctx.arrays
        d_slots = _array(d_logprob)[decision], (_array(d_share) / most)[decision]
        d_provinces, d_kinds, d_bases, d_weight = order_logits.score_gradients(
            decisions, lookup, scored, picked, scores, *d_slots
        )
        d_layer = []
        if layer:
            slot_start = orders.decisions.slot_start
            d_codes = torch.from_numpy(sums.sum_earlier(slot_start, d_bases, backwards=True))
            d_hidden = (d_codes @ layer[0]).numpy() * (hidden > 0)
            d_layer = [d_codes.T @ torch.from_numpy(hidden), d_codes.sum(0)]
            sums.add_to_rows(orders.given_provinces, d_hidden, d_provinces)
            sums.add_to_rows(orders.given_kinds, d_hidden, d_kinds)
            d_bases += d_hidden
        d_context = sums.zeros(len(most), d_bases.shape[1])
        sums.add_to_rows(decision[:, None], d_bases, d_context)
        gradients = map(torch.from_numpy, (d_provinces, d_kinds, d_context, d_weight))
        return None, *gradients, *d_layer


assert NONE == -1  # so that rows + 1 are those of a padded table
