"""Operations of a policy over legal orders, which are ragged lists: kernels on a CPU, else PyTorch.

An order's code is a sum of rows of tables, and its score the inner product of a weight with the
positive part of that code. On a CPU compiled kernels are several times as fast as operations on
whole arrays of codes, which would be (N, H).
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import NONE
from ..games.decisions import Decisions
from ..policy import order_logits, sums
from ..policy.inputs import NUM_BOARD, NetworkInputs
from .boards import BoardInputs, Boards, Orders

LIKELIEST = np.zeros(0, np.float32)  # in the place of noise


class OrderTables(NamedTuple):
    """What the scores of legal orders are computed from."""

    provinces: torch.Tensor  # (named, H), of `Orders.named`
    kinds: torch.Tensor  # (num_kinds, H), of classes, standings and relations
    context: torch.Tensor  # (D, H), what all orders of a decision have in common
    weight: torch.Tensor  # (H,)
    earlier: nn.Linear | None  # through it a unit's orders see what earlier units were given


def flatten(agent: nn.Module) -> nn.Parameter:
    """Lay all weights of a network into one vector, which is returned, with all their gradients.

    Adam and clipping treat every weight alike, so that one pass over the vector does for all.
    """
    parts = list(agent.parameters())
    weights = nn.Parameter(torch.cat([part.detach().flatten() for part in parts]))
    weights.grad = torch.zeros_like(weights)
    sizes = [part.numel() for part in parts]
    rows = zip(parts, weights.detach().split(sizes), weights.grad.split(sizes))
    for part, values, slopes in rows:
        part.data, part.grad = values.view_as(part), slopes.view_as(part)
    return weights


class LayerNorm(nn.LayerNorm):
    """PyTorch's layer normalisation, with a kernel for rows as short as a province's code."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cpu":
            return super().forward(x)
        return _apply(_Normalised, x, self.weight, self.bias, self.eps)


def draw_noise(decisions: Decisions, generator: torch.Generator | None = None) -> np.ndarray:
    """Return (N,) Gumbel noise, by which orders are drawn; None for torch's own generator."""
    return gumbel(len(decisions.order), generator)


def gumbel(count: int, generator: torch.Generator | None = None) -> np.ndarray:
    """Return (count,) float32 Gumbel noise: the highest of scores plus noise is a softmax draw."""
    uniform = torch.rand(count, generator=generator).clamp_(1e-20, 1 - 1e-7)
    return uniform.log_().neg_().log_().neg_().numpy()


def draw_orders(
    orders: Orders,
    tables: OrderTables,
    noise: np.ndarray,
    temperature: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose orders, unit by unit; always on a CPU, since each unit waits for the one before.

    Args:
        orders: of which nothing is picked yet.
        tables: what their scores are computed from.
        noise: (N,) Gumbel noise, by which they are drawn; LIKELIEST: the likeliest ones.
        temperature: (D,), divides the scores that are drawn from; None for 1.

    Returns:
        (S,) int64, positions of the chosen orders in the slots' lists; (D,) float32,
        log-probability of all orders of a decision together, at temperature 1; (N,) float32,
        probabilities.
    """
    if tables.earlier is None:
        width = len(tables.weight)
        layer = tables.weight.new_zeros(width, width), tables.weight.new_zeros(width)
    else:
        layer = tables.earlier.weight, tables.earlier.bias
    provinces, kinds, context, weight, *layer = (
        table.detach().cpu().contiguous().numpy() for table in (*tables[:4], *layer)
    )
    if temperature is None:
        temperature = np.ones(len(context), np.float32)
    return order_logits.draw_orders(
        orders.columns,
        orders.decisions,
        orders.lookup,
        provinces,
        kinds,
        context,
        weight,
        tuple(layer),
        tables.earlier is not None,
        noise,
        temperature,
    )


def sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the sums (sums, H) of rows (sums, any) of a table; NONE stands for no row.

    `starts` (n, H) are what the sums begin with, each for as many of them that follow each other.
    """
    if table.device.type == "cpu":
        starts = table.new_empty(0, table.shape[1]) if starts is None else starts
        return _apply(_RowSums, torch.as_tensor(rows).numpy(), table, starts)
    return plain_sum_rows(rows, table, starts)


def plain_sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    """Do as `sum_rows` on any device, by operations of PyTorch."""
    rows = torch.as_tensor(rows).to(table.device)
    padded = F.pad(table, (0, 0, 1, 0))  # row 0 stands for NONE
    found = F.embedding(rows.long() + 1, padded).sum(1)
    if starts is None:
        return found
    return found + starts.repeat_interleave(len(rows) // len(starts), 0)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
    """Return means of provinces' codes (G, V, H): of all, (G, 1, H), and by power (G, P, H).

    A power's are those where its units are; the mean of none is 0.
    """
    if codes.device.type != "cpu":
        return plain_mean_provinces(codes, boards)
    means = _apply(_ProvinceMeans, codes, boards.owner.numpy(), boards.num_powers)
    return means[:, :1], means[:, 1:]


def plain_mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
    """Do as `mean_provinces` on any device, by operations of PyTorch."""
    numbers = torch.arange(1, 1 + boards.num_powers, device=codes.device)[:, None]
    owned = (boards.owner[:, None] == numbers).to(codes.dtype)  # (G, P, V)
    shares = owned / owned.sum(-1, keepdim=True).clamp(min=1)
    return codes.mean(1, keepdim=True), shares @ codes


def exchange(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    """Return the positive part (G, V, H) of `own` plus the mean of the neighbors' `near`."""
    if own.device.type == "cpu":
        return _apply(_Exchange, own, near, inputs.network)
    return plain_exchange(own, near, inputs)


def plain_exchange(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    """Do as `exchange` on any device, by operations of PyTorch."""
    return F.relu(own + inputs.borders @ near)


def score_orders(
    orders: Orders, tables: OrderTables, bases: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Score orders that have been chosen, against all that could have been.

    Args:
        orders: with what was picked.
        tables: of which `provinces`, `kinds` and `weight` are used.
        bases: (S, H), added to the code of each order of a slot.

    Returns:
        (S,) log-probability of the picked order, entropy of the slot's policy, and the greatest
        entropy possible, in nats.
    """
    if bases.device.type == "cpu":
        return _SlotScores.apply(orders, tables.provinces, tables.kinds, bases, tables.weight)
    return plain_score_orders(orders, tables, bases)


def plain_score_orders(
    orders: Orders, tables: OrderTables, bases: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Do as `score_orders` on any device, by operations of PyTorch."""
    device, slots = bases.device, len(bases)
    lengths = np.diff(orders.decisions.order_start)
    slot = torch.from_numpy(np.repeat(np.arange(slots), lengths)).to(device)  # (N,)
    rows = torch.from_numpy(orders.rows).to(device)
    possible = ~torch.from_numpy(orders.lookup.blocked).to(device)
    codes = bases.index_select(0, slot)
    codes = codes + plain_sum_rows(rows[:, :NUM_BOARD], tables.provinces)
    codes = codes + plain_sum_rows(rows[:, NUM_BOARD:], tables.kinds)
    scores = (F.relu(codes) @ tables.weight).masked_fill(~possible, -torch.inf)
    highest = scores.new_full((slots,), -torch.inf).scatter_reduce(0, slot, scores, "amax")
    exponents = (scores - highest.detach().index_select(0, slot)).exp()
    total = scores.new_zeros(slots).index_add(0, slot, exponents)
    logprobs = scores - (highest.detach() + total.log()).index_select(0, slot)
    each = -torch.where(possible, logprobs.exp() * logprobs.masked_fill(~possible, 0.0), 0.0)
    entropy = scores.new_zeros(slots).index_add(0, slot, each)
    count = scores.new_zeros(slots).index_add(0, slot, possible.to(scores.dtype))
    picked = torch.from_numpy(orders.picked.astype(np.int64)).to(device)
    return logprobs.index_select(0, picked), entropy, count.log()


def sum_slots(parts: torch.Tensor, orders: Orders) -> torch.Tensor:
    """Return the sums (D,) over each decision's slots of `parts` (S,)."""
    return parts.new_zeros(orders.decisions.count).index_add(0, orders.decision, parts)


def sum_of_earlier(codes: torch.Tensor, orders: Orders) -> torch.Tensor:
    """Return for each slot the sum (S, H) of the codes (S, H) of its decision's earlier slots."""
    if codes.device.type == "cpu":
        return _EarlierSums.apply(codes, orders.decisions.slot_start)
    return plain_sum_of_earlier(codes, orders)


def plain_sum_of_earlier(codes: torch.Tensor, orders: Orders) -> torch.Tensor:
    """Do as `sum_of_earlier` on any device, by operations of PyTorch."""
    starts, decision = orders.decisions.slot_start, orders.decisions.slot_decision
    most = int(np.diff(starts).max(initial=0))
    place = decision * most + np.arange(len(codes)) - starts[:-1][decision]
    where = torch.from_numpy(place).to(codes.device)
    table = codes.new_zeros(orders.decisions.count * most, codes.shape[1])
    table = table.index_copy(0, where, codes).view(orders.decisions.count, most, codes.shape[1])
    return (table.cumsum(1) - table).flatten(0, 1).index_select(0, where)


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> torch.Tensor:
    """Apply a function; many small networks that only act would notice what `apply` costs."""
    if torch.is_grad_enabled():
        return function.apply(*arguments)
    return function.forward(SimpleNamespace(), *arguments)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: np.ndarray, table: torch.Tensor, starts: torch.Tensor):
        ctx.rows, ctx.counts = rows, (len(table), len(starts))
        return torch.from_numpy(sums.sum_rows(rows, _array(table), _array(starts)))

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        found = sums.spread_rows(ctx.rows, _array(slopes), *ctx.counts)
        return None, *map(torch.from_numpy, found)


class _ProvinceMeans(torch.autograd.Function):
    @staticmethod
    def forward(ctx, codes: torch.Tensor, owner: np.ndarray, num_powers: int):
        ctx.owner = owner
        return torch.from_numpy(sums.mean_provinces(owner, _array(codes), num_powers))

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        return torch.from_numpy(sums.spread_means(ctx.owner, _array(slopes))), None, None


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own: torch.Tensor, near: torch.Tensor, network: NetworkInputs):
        out = sums.exchange(network.neighbors, _array(own), _array(near))
        ctx.back, ctx.out = network.neighbor_of, out
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        found = sums.spread_exchange(ctx.back, _array(slopes), ctx.out)
        return *map(torch.from_numpy, found), None


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float):
        rows, weight = _array(x).reshape(-1, len(weight)), _array(weight)
        out, moments = sums.normalise(rows, weight, _array(bias), eps)
        ctx.saved = rows, weight, moments
        return torch.from_numpy(out).view_as(x)

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        rows, weight, moments = ctx.saved
        found = sums.normalise_back(rows, weight, moments, _array(slopes).reshape(rows.shape))
        d_x, d_weight, d_bias = map(torch.from_numpy, found)
        return d_x.view_as(slopes), d_weight, d_bias, None


class _EarlierSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, codes: torch.Tensor, slot_start: np.ndarray):
        ctx.slot_start = slot_start
        return torch.from_numpy(sums.sum_earlier(slot_start, _array(codes)))

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        found = sums.sum_earlier(ctx.slot_start, _array(slopes), backwards=True)
        return torch.from_numpy(found), None


class _SlotScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, orders: Orders, *tables: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tables = tuple(map(_array, tables))
        about = orders.decisions, orders.lookup
        *policy, logprob, entropy, greatest = order_logits.score_orders(
            *about, *tables, orders.picked
        )
        ctx.saved = *about, *tables, orders.picked, *policy, entropy
        logprob, entropy, greatest = map(torch.from_numpy, (logprob, entropy, greatest))
        ctx.mark_non_differentiable(greatest)
        return logprob, entropy, greatest

    @staticmethod
    def backward(ctx, d_logprob: torch.Tensor, d_entropy: torch.Tensor, _):
        slopes = _array(d_logprob), _array(d_entropy)
        return None, *map(torch.from_numpy, order_logits.score_gradients(*ctx.saved, *slopes))


assert NONE == -1  # so that rows + 1 are those of a padded table
