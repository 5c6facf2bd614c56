"""Operations of a policy over legal orders, which are ragged lists: kernels on a CPU, else PyTorch.

An order's code is a sum of rows of tables, and its score the inner product of a weight with the
positive part of that code. On a CPU compiled kernels are several times as fast as operations on
whole arrays of codes, which would be (N, H).
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import NONE
from ..games.decisions import Decisions
from ..policy import order_logits as kernels
from ..policy.inputs import NUM_BOARD
from .boards import Orders

LIKELIEST = np.zeros(0, np.float32)  # in the place of noise


class OrderTables(NamedTuple):
    """What the scores of legal orders are computed from."""

    provinces: torch.Tensor  # (named, H), of `Orders.named`
    kinds: torch.Tensor  # (num_kinds, H), of classes, standings and relations
    context: torch.Tensor  # (D, H), what all orders of a decision have in common
    weight: torch.Tensor  # (H,)
    earlier: nn.Linear | None  # through it a unit's orders see what earlier units were given


def draw_noise(decisions: Decisions, generator: torch.Generator | None = None) -> np.ndarray:
    """Return (N,) uniform in (0, 1), by which orders are drawn; None for torch's own generator."""
    return uniform(len(decisions.order), generator)


def uniform(count: int, generator: torch.Generator | None = None) -> np.ndarray:
    """Return (count,) float32 in (0, 1), both ends left out."""
    return torch.rand(count, generator=generator).clamp(1e-20, 1 - 1e-7).numpy()


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
        noise: (N,) in (0, 1), by which they are drawn; LIKELIEST: the likeliest ones.
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
    return kernels.draw_orders(
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


def sum_rows(rows: torch.Tensor | np.ndarray, table: torch.Tensor) -> torch.Tensor:
    """Return (sums, H) the sums of rows (sums, any) of a table; NONE stands for no row."""
    rows = torch.as_tensor(rows)
    if table.device.type == "cpu":
        if not torch.is_grad_enabled():  # many small networks notice what `apply` costs
            return torch.from_numpy(kernels.sum_rows(rows.numpy(), table.contiguous().numpy()))
        return _RowSums.apply(rows.numpy(), table)
    return plain_sum_rows(rows.to(table.device), table)


def plain_sum_rows(rows: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Do as `sum_rows` on any device, by operations of PyTorch."""
    padded = F.pad(table, (0, 0, 1, 0))  # row 0 stands for NONE
    return F.embedding(rows.long() + 1, padded).sum(1)


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
    starts, decision = orders.decisions.slot_start, orders.decisions.slot_decision
    most = int(np.diff(starts).max(initial=0))
    place = decision * most + np.arange(len(codes)) - starts[:-1][decision]
    where = torch.from_numpy(place).to(codes.device)
    table = codes.new_zeros(orders.decisions.count * most, codes.shape[1])
    table = table.index_copy(0, where, codes).view(orders.decisions.count, most, codes.shape[1])
    return (table.cumsum(1) - table).flatten(0, 1).index_select(0, where)


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: np.ndarray, table: torch.Tensor) -> torch.Tensor:
        ctx.rows, ctx.count = rows, len(table)
        return torch.from_numpy(kernels.sum_rows(rows, table.detach().contiguous().numpy()))

    @staticmethod
    def backward(ctx, slopes: torch.Tensor):
        slopes = slopes.contiguous().numpy()
        return None, torch.from_numpy(kernels.spread_rows(ctx.rows, slopes, ctx.count))


class _SlotScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, orders: Orders, *tables: torch.Tensor) -> tuple[torch.Tensor, ...]:
        tables = tuple(table.detach().contiguous().numpy() for table in tables)
        about = orders.decisions, orders.lookup
        probability, *of_slots = kernels.score_orders(*about, *tables, orders.picked)
        ctx.saved = *about, *tables, orders.picked, probability, of_slots[1]
        logprob, entropy, greatest = map(torch.from_numpy, of_slots)
        ctx.mark_non_differentiable(greatest)
        return logprob, entropy, greatest

    @staticmethod
    def backward(ctx, d_logprob: torch.Tensor, d_entropy: torch.Tensor, _):
        slopes = d_logprob.contiguous().numpy(), d_entropy.contiguous().numpy()
        return None, *map(torch.from_numpy, kernels.score_gradients(*ctx.saved, *slopes))


assert NONE == -1  # so that rows + 1 are those of a padded table
