"""The operations of ops.py for any device. None waits for a GPU but the end of `sample_orders`."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import NONE
from ..games.decisions import ragged_rows
from ..players.policy.inputs import FIRST_RELATION, NUM_BOARD, RELATION, ROWS
from .boards import BLOCKED, MOST, PER_COUNT, BoardInputs, Boards, Orders, on_device

LOWEST = -1e30  # score of what cannot be chosen; times a probability of 0 it is 0


class OrderTables(NamedTuple):
    provinces: torch.Tensor  # (named, H), of `Orders.named`
    kinds: torch.Tensor  # (num_kinds, H), of classes, standings and relations
    context: torch.Tensor  # (D, H), what all orders of a decision have in common
    weight: torch.Tensor  # (H,)
    earlier: nn.Module | None  # through it a unit's orders see what earlier units were given

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return all of them, and the weight and bias of `earlier`, if there is one."""
        layer = () if self.earlier is None else (self.earlier.weight, self.earlier.bias)
        return *self[:4], *layer


class Networks(NamedTuple):
    """Of K networks that choose at once: `kinds` and `provinces` are one network's rows after the
    other's, `weight` is (K, H), and `earlier` is Layers."""

    of_decision: np.ndarray  # (D,) int64
    shifts: np.ndarray  # (K, NUM_BOARD) int64, of a place among the provinces, by its role


class Layers(NamedTuple):
    weight: torch.Tensor  # (K, H, H)
    bias: torch.Tensor  # (K, H)


class _Sums(torch.autograd.Function):
    """Sums of rows of a table, without a copy of the rows, also for many tables at once."""

    @staticmethod
    def forward(rows: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(rows, table, mode="sum")

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: torch.Tensor) -> None:
        ctx.rows, ctx.count = inputs[0], len(inputs[1])

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        parts = grad_output[:, None].expand(*ctx.rows.shape, -1)
        gradient = torch.ops.aten.embedding_dense_backward
        return None, gradient(parts, ctx.rows, ctx.count, -1, False)

    @staticmethod
    def vmap(info, in_dims: tuple, rows: torch.Tensor, table: torch.Tensor):
        rows, table = (
            part.movedim(axis, 0) if axis is not None else part.expand(info.batch_size, *part.shape)
            for part, axis in zip((rows, table), in_dims)
        )
        first = torch.arange(len(table), device=table.device, dtype=rows.dtype) * table.shape[1]
        sums = _Sums.apply((rows + first[:, None, None]).flatten(0, 1), table.flatten(0, 1))
        return sums.view(*rows.shape[:2], -1), 0


def sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    rows = rows if isinstance(rows, torch.Tensor) else on_device(rows, table.device)
    padded = F.pad(table, (0, 0, 1, 0))  # row 0 stands for NONE
    sums = _Sums.apply(rows + 1, padded)
    if starts is None:
        return sums
    shape = len(starts), len(rows) // max(1, len(starts))
    return (sums.unflatten(0, shape) + starts[:, None]).flatten(0, 1)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.arange(1 + boards.num_powers, device=codes.device)[:, None]
    owned = boards.owner[:, None] == numbers
    owned[:, 0] = True  # the board's mean
    owned = owned.to(codes.dtype)  # (G, 1 + P, V)
    means = (owned / owned.sum(-1, keepdim=True).clamp(min=1)) @ codes
    return means.split([1, boards.num_powers], 1)


def pass_messages(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    borders = inputs.borders.to(near.dtype).expand(len(own), -1, -1)
    return F.relu(torch.baddbmm(own, borders, near))


def score_orders(orders: Orders, tables: OrderTables) -> tuple[torch.Tensor, torch.Tensor]:
    decisions, device = orders.decisions, tables.context.device
    lengths = np.diff(decisions.order_start)
    slot = np.repeat(np.arange(len(lengths)), lengths)  # (N,)
    # The rows of an order, its decision's context, and what its unit's orders see of earlier ones.
    rows = np.column_stack([decisions.slot_decision[slot], orders.rows, slot])
    table, shift = _one_table(tables, tables.context)
    rows = _in_table(rows, on_device(shift, device))
    if tables.earlier is not None:
        chosen = rows.index_select(0, on_device(orders.given, device))[:, : 1 + RELATION]
        codes = tables.earlier(F.relu(_Sums.apply(chosen, table)))
        table = torch.cat([table, sum_of_earlier(codes, orders)])
    else:
        rows = rows[:, :-1]
    most = int(lengths.max(initial=1))
    place = slot * most + np.arange(len(slot)) - np.repeat(decisions.order_start[:-1], lengths)
    scores = np.full((len(lengths), most), LOWEST, np.float32)
    scores.flat[place] = np.where(orders.lookup.blocked, LOWEST, 0)
    greatest = np.log(np.count_nonzero(scores == 0, 1), dtype=np.float32)
    greatest = np.bincount(decisions.slot_decision, greatest, decisions.count)
    scores = on_device(scores, device)
    own = F.relu(_Sums.apply(rows, table)) @ tables.weight
    own = own.to(torch.promote_types(own.dtype, scores.dtype))
    own = scores.flatten().to(own).index_add(0, on_device(place, device), own)
    logprobs = own.view_as(scores).log_softmax(1)
    logprob = logprobs.flatten().index_select(0, on_device(place[orders.given], device))
    entropy = sum_slots((logprobs.exp() * logprobs).sum(1), orders)
    greatest = on_device(-np.maximum(greatest, 1e-6).astype(np.float32), device)
    return sum_slots(logprob, orders), entropy / greatest


def _one_table(tables: OrderTables, *more: torch.Tensor) -> tuple[torch.Tensor, np.ndarray]:
    """Return all tables in one, behind a row for NONE, and (1 + ROWS + 1,) int32, how far the rows
    of each column have moved: those of `more`, of an order, and of what is added behind."""
    nothing = tables.kinds.new_zeros(1, tables.kinds.shape[1])
    parts = nothing, tables.kinds, tables.provinces, *more
    starts = np.cumsum([len(part) for part in parts])
    columns = np.repeat([2, 1, 0, 3], [1, NUM_BOARD, ROWS - NUM_BOARD, 1])
    return torch.cat(parts), starts[np.minimum(columns, len(parts) - 1)].astype(np.int32)


def _in_table(rows: np.ndarray, shift: torch.Tensor) -> torch.Tensor:
    rows = on_device(rows.astype(np.int32, copy=False), shift.device)
    return (rows + shift).masked_fill_(rows == NONE, 0)


def sum_slots(parts: torch.Tensor, orders: Orders) -> torch.Tensor:
    return parts.new_zeros(orders.decisions.count).index_add(0, orders.decision, parts)


def sum_of_earlier(codes: torch.Tensor, orders: Orders) -> torch.Tensor:
    turns = _turns(orders)
    back = np.arange(1, turns.max(initial=1) + 1)
    rows = np.where(back <= turns[:, None], np.arange(len(turns))[:, None] - back, NONE)
    return sum_rows(rows, codes)


def sample_orders(
    orders: Orders,
    tables: OrderTables,
    noise: np.ndarray,
    temperature: np.ndarray | None = None,
    networks: Networks | None = None,
) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """All first units choose, then all second ones: as many steps as the longest decision has."""
    decisions, device, count = orders.decisions, tables.context.device, orders.decisions.count
    turns, lengths = _turns(orders), np.diff(decisions.order_start)
    # Long decisions first: those that have a unit in a turn are the first ones. Slots by their
    # turn, and the orders of these one after the other: a turn's are a slice.
    by_size = np.argsort(-np.diff(decisions.slot_start), kind="stable")
    rank = np.argsort(by_size)  # of a decision
    slots = np.lexsort((rank[decisions.slot_decision], turns))
    turns, lengths, decider = turns[slots], lengths[slots], rank[decisions.slot_decision[slots]]
    steps = int(turns.max(initial=-1)) + 1
    slot_edges = np.searchsorted(turns, np.arange(steps + 1))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    order_edges = starts[slot_edges]
    number = ragged_rows(decisions.order_start[slots], starts)  # (N,)
    # A turn's scores are also a matrix (slots, longest list), and these one after the other.
    most = np.maximum.reduceat(lengths, slot_edges[:-1]) if steps else lengths
    cells = np.concatenate([[0], np.cumsum(np.diff(slot_edges) * most)])
    first_cell = (np.arange(len(slots)) - slot_edges[turns]) * most[turns]
    cell = np.arange(len(number)) + np.repeat(first_cell - starts[:-1], lengths)
    decision = np.repeat(decider, lengths)  # (N,), places in `by_size`
    if len(noise):
        scale = 1.0 if temperature is None else temperature[by_size[decision]]
        gumbel = np.zeros(cells[-1], np.float32)
        gumbel[cell + np.repeat(cells[turns], lengths)] = noise[number] * scale
        gumbel = on_device(gumbel, device)

    order = on_device(decisions.order[number], device)
    own, past = orders.facts.index_select(0, order).chunk(2, 1)  # (N, FACTS) each
    first = 1 + FIRST_RELATION + 36.0 * orders.columns.kind[decisions.order[number]]
    (table, shift), layer, weight = _one_table(tables), tables.earlier, tables.weight
    shift = shift[None, 1:-1]
    if networks is not None:
        several, of_decision = len(networks.shifts), networks.of_decision[by_size]
        before = np.arange(several) * (len(tables.kinds) // several)  # rows of other networks
        first += before[of_decision[decision]]
        shift = np.tile(shift, (several, 1))
        shift[:, :NUM_BOARD] += networks.shifts
        shift[:, NUM_BOARD:] += before[:, None]
        shift = shift[of_decision[decision]]
        mine = on_device(of_decision, device)
        weight = weight.index_select(0, mine)
        if layer is not None:
            layer = Layers(*(part.index_select(0, mine) for part in layer))
    first = np.asarray(first, np.float32)
    first, cell, decision = (on_device(x, device) for x in (first, cell, decision))
    rows = _in_table(orders.rows[number], on_device(shift, device))
    codes = _Sums.apply(rows[:, :RELATION], table)  # (N, H), without what earlier units were given

    of_count, limit = on_device(np.array([PER_COUNT, MOST], np.float32), device)
    sorted_context = tables.context.index_select(0, on_device(by_size, device))
    bases, logprob = sorted_context.clone(), sorted_context.new_zeros(count)
    earlier_facts = past.new_zeros(count, steps, past.shape[1])  # of the orders of earlier units
    picks, logprobs = decision.new_zeros(len(slots)), []
    for turn in range(steps):
        (a, b), (begin, end) = slot_edges[turn : turn + 2], order_edges[turn : turn + 2]
        mine, of_order, place = b - a, decision[begin:end], cell[begin:end]
        earlier = earlier_facts[:mine, :turn].index_select(0, of_order)  # (n, turn, FACTS)
        counts = (earlier == own[begin:end, None]).sum(1, dtype=torch.float32)
        counts = torch.minimum(counts, limit)
        parts = codes[begin:end] + bases.index_select(0, of_order)
        if layer is not None:
            relation = torch.addmv(first[begin:end], counts, of_count)
            parts = parts + table.index_select(0, relation.int())
        parts = F.relu(parts)
        if networks is None:
            scores = parts @ weight
        else:
            scores = (parts * weight.index_select(0, of_order)).sum(1)
        scores = scores.masked_fill(counts[:, BLOCKED] > 0, -torch.inf)
        matrix = scores.new_full((int(mine * most[turn]),), -torch.inf)
        matrix = matrix.index_copy_(0, place, scores).view(mine, -1)
        perturbed = matrix
        if len(noise):
            perturbed = matrix + gumbel[cells[turn] : cells[turn + 1]].view_as(matrix)
        pick = perturbed.argmax(1)  # the first of those that are best
        log_softmax = matrix.log_softmax(1)
        logprob[:mine] += log_softmax.gather(1, pick[:, None])[:, 0]
        logprobs.append(log_softmax.flatten().index_select(0, place))
        picks[a:b] = pick = pick + on_device(starts[a:b], device)
        if turn + 1 == steps:
            break
        earlier_facts[:mine, turn] = past.index_select(0, pick)
        if layer is not None:
            plain = F.relu(sorted_context[:mine] + codes.index_select(0, pick))
            bases[:mine] += _apply(layer, plain)
    chosen = np.empty(len(slots), np.int64)
    chosen[slots] = picks.cpu().numpy() - starts[:-1]
    probability = codes.new_empty(len(number))
    if steps:
        probability.index_copy_(0, on_device(number.astype(np.int64), device), torch.cat(logprobs))
    return chosen, logprob.index_select(0, on_device(rank, device)), probability.exp_()


def _apply(layer: nn.Module | Layers, x: torch.Tensor) -> torch.Tensor:
    if not isinstance(layer, Layers):
        return layer(x)
    weight, bias = layer.weight[: len(x)], layer.bias[: len(x)]
    return torch.baddbmm(bias[:, None], x[:, None], weight.mT)[:, 0]


def _turns(orders: Orders) -> np.ndarray:
    decisions = orders.decisions
    starts = np.repeat(decisions.slot_start[:-1], np.diff(decisions.slot_start))
    return np.arange(len(starts)) - starts
