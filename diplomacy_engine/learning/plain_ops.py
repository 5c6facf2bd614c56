"""The operations of ops.py for any device. None waits for a GPU but the end of `sample_orders`."""

import itertools
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..constants import BUILD, DISBAND, MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ..games.decisions import ragged_rows
from ..players.policy.inputs import FIRST_RELATION, NUM_BOARD, RELATION
from .boards import BoardInputs, Boards, Orders, on_device


class OrderTables(NamedTuple):
    provinces: torch.Tensor  # (named, H), of `Orders.named`
    kinds: torch.Tensor  # (num_kinds, H), of classes, standings and relations
    context: torch.Tensor  # (D, H), what all orders of a decision have in common
    weight: torch.Tensor  # (H,)
    earlier: nn.Linear | None  # through it a unit's orders see what earlier units were given


def sum_rows(
    rows: torch.Tensor | np.ndarray, table: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    rows = rows if isinstance(rows, torch.Tensor) else on_device(rows, table.device)
    sums = _sum_padded(rows, _padded(table))
    if starts is None:
        return sums
    return sums + starts.repeat_interleave(len(rows) // max(1, len(starts)), 0)


def mean_provinces(codes: torch.Tensor, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.arange(1, 1 + boards.num_powers, device=codes.device)[:, None]
    owned = (boards.owner[:, None] == numbers).to(codes.dtype)  # (G, P, V)
    shares = owned / owned.sum(-1, keepdim=True).clamp(min=1)
    return codes.mean(1, keepdim=True), shares @ codes


def exchange(own: torch.Tensor, near: torch.Tensor, inputs: BoardInputs) -> torch.Tensor:
    return F.relu(own + inputs.borders @ near)


def score_orders(orders: Orders, tables: OrderTables) -> tuple[torch.Tensor, torch.Tensor]:
    bases = tables.context.index_select(0, orders.decision)  # (S, H)
    if tables.earlier is not None:  # a unit's orders see what earlier units were given
        hidden = bases + sum_rows(orders.given_provinces, tables.provinces)
        hidden = hidden + sum_rows(orders.given_kinds, tables.kinds)
        bases = bases + sum_of_earlier(tables.earlier(F.relu(hidden)), orders)
    logprob, entropy, max_entropy = score_slots(orders, tables, bases)
    share = sum_slots(entropy, orders) / sum_slots(max_entropy, orders).clamp(min=1e-6)
    return sum_slots(logprob, orders), share


def sum_slots(parts: torch.Tensor, orders: Orders) -> torch.Tensor:
    return parts.new_zeros(orders.decisions.count).index_add(0, orders.decision, parts)


def score_slots(
    orders: Orders, tables: OrderTables, bases: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    device, slots = bases.device, len(bases)
    lengths = np.diff(orders.decisions.order_start)
    slot = on_device(np.repeat(np.arange(slots), lengths), device)  # (N,)
    rows = on_device(orders.rows, device)
    blocked = on_device(orders.lookup.blocked, device)
    codes = bases.index_select(0, slot)
    codes = codes + sum_rows(rows[:, :NUM_BOARD], tables.provinces)
    codes = codes + sum_rows(rows[:, NUM_BOARD:], tables.kinds)
    scores = (F.relu(codes) @ tables.weight).masked_fill(blocked, -torch.inf)
    logprobs = _log_softmax(scores, slot, slots)
    each = -torch.where(blocked, 0.0, logprobs.exp() * logprobs.masked_fill(blocked, 0.0))
    entropy = scores.new_zeros(slots).index_add(0, slot, each)
    count = scores.new_zeros(slots).index_add(0, slot, (~blocked).to(scores.dtype))
    picked = on_device(orders.picked.astype(np.int64), device)
    return logprobs.index_select(0, picked), entropy, count.log()


def sum_of_earlier(codes: torch.Tensor, orders: Orders) -> torch.Tensor:
    decisions = orders.decisions
    most = int(np.diff(decisions.slot_start).max(initial=0))
    place = decisions.slot_decision * most + _turns(orders)
    where = on_device(place, codes.device)
    table = codes.new_zeros(decisions.count * most, codes.shape[1])
    table = table.index_copy(0, where, codes).view(decisions.count, most, codes.shape[1])
    return (table.cumsum(1) - table).flatten(0, 1).index_select(0, where)


def sample_orders(
    orders: Orders,
    tables: OrderTables,
    noise: np.ndarray,
    temperature: np.ndarray | None = None,
) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """All first units choose, then all second ones: as many steps as the longest decision has."""
    decisions, device = orders.decisions, tables.context.device
    turns, lengths = _turns(orders), np.diff(decisions.order_start)
    # Slots by their turn, and the orders of these one after the other: a step's are a slice.
    slots = np.argsort(turns, kind="stable")
    order_ends = np.concatenate([[0], np.cumsum(lengths[slots])])
    number = ragged_rows(decisions.order_start[slots], order_ends)  # (N,)
    steps = np.arange(turns.max(initial=-1) + 2)
    slot_edges = np.searchsorted(turns[slots], steps)  # (steps + 1,)
    order_edges = order_ends[slot_edges]

    columns, order = orders.columns, decisions.order[number]
    other = columns.other[order]
    concerned = np.where(other == NONE, columns.place[order], other)
    about = columns.kind, columns.source, columns.place, columns.helped
    facts = _Facts(*on_device(np.stack([*(c[order] for c in about), concerned]), device))
    rows = on_device(orders.rows[number], device)
    slot = on_device(np.repeat(np.arange(len(slots)), lengths[slots]), device)  # (N,)
    decider = on_device(decisions.slot_decision[slots], device)  # (S,)
    count = decisions.count
    temperature = np.ones(count, np.float32) if temperature is None else temperature
    gumbel = on_device(noise[number], device) if len(noise) else slot.new_zeros(len(slot)).float()
    gumbel = gumbel * on_device(temperature, device)[decider[slot]]

    bases, logprob = tables.context.clone(), tables.context.new_zeros(count)
    # Which of the N orders each earlier unit was given.
    earlier_orders = decider.new_zeros(count, len(steps) - 1)
    picks, logprobs = torch.empty_like(decider), torch.empty_like(gumbel)
    provinces, kinds = _padded(tables.provinces), _padded(tables.kinds)  # once for all turns
    spans = zip(itertools.pairwise(slot_edges.tolist()), itertools.pairwise(order_edges.tolist()))
    for turn, ((first, last), (begin, end)) in enumerate(spans):
        mine, own, who = slot[begin:end] - first, rows[begin:end], decider[first:last]
        parts = _sum_padded(own[:, :NUM_BOARD], provinces)
        parts = parts + _sum_padded(own[:, NUM_BOARD:RELATION], kinds)
        relation, blocked = _relate(facts, slice(begin, end), earlier_orders[who[mine], :turn])
        codes = bases[who[mine]] + parts
        if tables.earlier is not None:
            codes = codes + tables.kinds[FIRST_RELATION + relation]
        scores = (F.relu(codes) @ tables.weight).masked_fill(blocked, -torch.inf)
        perturbed = scores + gumbel[begin:end]
        best = _highest(perturbed, mine, last - first)[mine]
        place = torch.arange(end - begin, device=device)
        pick = place.new_full((last - first,), end - begin)  # the first of those that are best
        pick = pick.scatter_reduce(0, mine, place.where(perturbed == best, end - begin), "amin")
        logprobs[begin:end] = _log_softmax(scores, mine, last - first)
        logprob.index_add_(0, who, logprobs[begin + pick])
        earlier_orders[who, turn] = picks[first:last] = begin + pick
        if tables.earlier is not None:
            plain = tables.context[who] + parts[pick]
            bases.index_add_(0, who, tables.earlier(F.relu(plain)))
    chosen = np.empty(len(slots), np.int64)
    chosen[slots] = number[picks.cpu().numpy()] - decisions.order_start[slots]
    probability = torch.empty_like(logprobs)
    probability[on_device(number, device).long()] = logprobs.exp()
    return chosen, logprob, probability


class _Facts(NamedTuple):
    """What orders are about, (N,) each; see `OrderColumns`."""

    kind: torch.Tensor
    source: torch.Tensor
    place: torch.Tensor
    helped: torch.Tensor
    concerned: torch.Tensor  # province of the supported or convoyed unit, else `place`


def _relate(facts: _Facts, mine: slice, earlier: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Do as `relate` of policy/inputs.py for n orders, each with the `earlier` (n, any) ones."""
    own = _Facts(*(fact[mine, None] for fact in facts))
    past = _Facts(*(fact[earlier] for fact in facts))
    goes, adjusts = _is(past.kind, MOVE, MOVE_VIA), _is(own.kind, BUILD, DISBAND)
    helps, there = _is(past.kind, SUPPORT_HOLD, SUPPORT_MOVE), past.place == own.place
    into = (goes & there).sum(1).clamp(max=2)
    same = (helps & there & (past.helped == own.helped)).sum(1).clamp(max=2)
    does = torch.where(goes, torch.where(there, 2, 3), 1) * (past.source == own.concerned)
    status = F.pad(does, (1, 0)).amax(1)  # of one unit at most, as a province has one
    taken = adjusts & _is(past.kind, BUILD, DISBAND) & (past.source == own.source)
    return ((own.kind[:, 0] * 3 + into) * 4 + status) * 3 + same, taken.any(1)


def _is(kind: torch.Tensor, one: int, other: int) -> torch.Tensor:
    return (kind == one) | (kind == other)


def _padded(table: torch.Tensor) -> torch.Tensor:
    return F.pad(table, (0, 0, 1, 0))  # row 0 stands for NONE


def _sum_padded(rows: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
    return F.embedding(rows.long() + 1, padded).sum(1)


def _turns(orders: Orders) -> np.ndarray:
    decisions = orders.decisions
    starts = np.repeat(decisions.slot_start[:-1], np.diff(decisions.slot_start))
    return np.arange(len(starts)) - starts


def _highest(scores: torch.Tensor, slot: torch.Tensor, slots: int) -> torch.Tensor:
    lowest = scores.new_full((slots,), -torch.inf)
    return lowest.scatter_reduce(0, slot, scores.detach(), "amax")


def _log_softmax(scores: torch.Tensor, slot: torch.Tensor, slots: int) -> torch.Tensor:
    """Return the log-probabilities (N,) of orders by slot; some may have a score of -inf."""
    highest = _highest(scores, slot, slots)
    exponents = (scores - highest.index_select(0, slot)).exp()
    total = scores.new_zeros(slots).index_add(0, slot, exponents)
    return scores - (highest + total.log()).index_select(0, slot)
