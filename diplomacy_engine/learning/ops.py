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
from ..players.policy.inputs import NetworkInputs
from ..players.policy.player import LIKELIEST  # noqa: F401
from . import plain_ops
from .boards import BoardInputs, Boards, Orders, SharedOrders, on_device
from .plain_ops import OrderTables

MANY = 100  # rows from which on a call of a kernel for products pays
KERNEL_DEVICES = ("cpu",)  # tests empty it, and so do on a CPU what a GPU does


def uses_kernels(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type in KERNEL_DEVICES
        and tensor.dtype is torch.float32
        and not torch.is_autocast_enabled("cpu")
    )


class LayerNorm(nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not uses_kernels(x):
            return super().forward(x)
        return _apply(_Normalised, x, self.weight, self.bias, self.eps)


class Linear(nn.Linear):
    """Where nothing is learned, a row comes out the same whatever rows stand beside it: MKL sums
    fewer than four in another order, and so does it where there is one column, but of fours."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, acts = math.prod(x.shape[:-1]), not torch.is_grad_enabled()
        kernel = uses_kernels(x) and products.fits(self.weight.shape) and (acts or count > MANY)
        if not kernel:
            few = count < 4 or self.out_features == 1
            if not (acts and count % 4 and few and uses_kernels(x)):
                return super().forward(x)
            rows = F.pad(x.reshape(count, -1), (0, 0, 0, -count % 4))
            return super().forward(rows)[:count].view(*x.shape[:-1], -1)
        return _apply(_Products, x, self.weight, self.bias, [np.arange(count)])


def linear_by_role(
    codes: torch.Tensor, named: Sequence[torch.Tensor], weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """Return (all named, H) what each part of a layer, (roles * H, K) and (roles * H,), makes of
    those of the codes (..., K), counted as one list, that are named (any,) for its role, one role
    after the other."""
    if uses_kernels(codes) and products.fits((len(weight) // len(named), weight.shape[1])):
        return _apply(_Products, codes, weight, bias, [rows.numpy() for rows in named])
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
    if not uses_kernels(tables.context):
        return plain_ops.sample_orders(orders, tables, noise, temperature)
    arrays = [_array(tensor) for tensor in tables.tensors()]
    score_tables = order_logits.ScoreTables(*arrays[:4])
    earlier = tuple(arrays[4:]) or (np.empty((0, 0), np.float32), np.empty(0, np.float32))
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
    if uses_kernels(table):
        starts = table.new_empty(0, table.shape[1]) if starts is None else starts
        return _apply(_RowSums, torch.as_tensor(rows), table, starts)
    return plain_ops.sum_rows(rows, table, starts)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, ...]:
    """Return the codes (G, V, H) of provinces, their means (G, 1, H), and those of each power's
    units (G, P, H). Who goes on with these codes has their gradients summed in one pass."""
    if not uses_kernels(codes):
        return codes, *plain_ops.mean_provinces(codes, boards)
    return _apply(_ProvinceMeans, codes, boards.owner, boards.num_powers)


def pass_messages(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    """Return the positive part (G, V, H) of `own` plus the mean of the neighbors' `near`."""
    if uses_kernels(own):
        return _apply(_Exchange, own, near, inputs.network)
    return plain_ops.pass_messages(own, near, inputs)


def score_orders(orders: Orders, tables: OrderTables) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probability and entropy (share of the greatest), (D,), of the orders picked."""
    if not uses_kernels(tables.context):
        return plain_ops.score_orders(orders, tables)
    return _Scores.apply(orders, *tables.tensors())


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    if torch.is_grad_enabled():  # many small networks that only act would notice what it costs
        return function.apply(*arguments)
    return function.forward(SimpleNamespace(save_for_backward=lambda *_: None), *arguments)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def _saved(ctx: Any) -> tuple[torch.Tensor, ...]:
    """Return what a gradient is computed from, unless it was edited, or is to have a gradient."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            "kernels have no second derivatives; with `ops.KERNEL_DEVICES = ()` PyTorch's own "
            "operations are used, which have"
        )
    return ctx.saved_tensors


class _Products(torch.autograd.Function):
    """Takes and returns arrays as they are: a gradient that is a view of another tensor could not
    be added to in place."""

    @staticmethod
    def forward(ctx, x, weight, bias, rows: Sequence[np.ndarray]):
        ctx.save_for_backward(x, weight)
        ctx.rows = rows
        bias = None if bias is None else _array(bias).reshape(len(rows), -1)
        out = products.multiply(*_by_role(x, weight, rows), bias)
        out = out.reshape(*x.shape[:-1], len(weight)) if len(rows) == 1 else out
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        if torch.is_grad_enabled() and len(ctx.rows) == 1:  # as with too few rows for a kernel
            x, weight = ctx.saved_tensors
            grad = grad_output.flatten(0, -2)
            d_bias = grad.sum(0) if ctx.needs_input_grad[2] else None
            return grad_output @ weight, grad.T @ x.flatten(0, -2), d_bias, None
        x, weight = _saved(ctx)
        grad = _array(grad_output).reshape(-1, grad_output.shape[-1])
        d_x, d_weights, d_bias = products.multiply_gradients(*_by_role(x, weight, ctx.rows), grad)
        d_x, d_weights = d_x.reshape(x.shape), d_weights.reshape(weight.shape)
        d_bias = torch.from_numpy(d_bias.ravel()) if ctx.needs_input_grad[2] else None
        return torch.from_numpy(d_x), torch.from_numpy(d_weights), d_bias, None


def _by_role(x: torch.Tensor, weight: torch.Tensor, rows: Sequence[np.ndarray]) -> tuple:
    weights = _array(weight).reshape(len(rows), -1, weight.shape[1])
    return _array(x).reshape(-1, x.shape[-1]), rows, weights


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: torch.Tensor, table: torch.Tensor, starts: torch.Tensor):
        ctx.save_for_backward(rows)
        ctx.counts = len(table), len(starts)
        return torch.from_numpy(sums.sum_rows(rows.numpy(), _array(table), _array(starts)))

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        (rows,) = _saved(ctx)
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
        (owner,) = _saved(ctx)
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
        (out,) = _saved(ctx)
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
        x, weight = _saved(ctx)
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
        inputs = decisions, orders.lookup, tables, orders.picked
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
        _, _, _, _, *layer = _saved(ctx)
        arrays, decision, hidden, orders, most = ctx.arrays
        d_slots = _array(d_logprob)[decision], (_array(d_share) / most)[decision]
        d_provinces, d_kinds, d_bases, d_weight = order_logits.score_gradients(*arrays, *d_slots)
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
