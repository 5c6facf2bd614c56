"""Many frozen networks that are asked together."""

import copy
import itertools
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from ..games.decisions import Decisions
from ..games.observation import BoardViews
from . import ops
from .checkpoints import check_weights


def frozen_copy(agent: nn.Module, weights: Mapping[str, torch.Tensor] | None = None) -> nn.Module:
    """Return a copy of an agent that never learns, with other weights if some are given.

    Raises:
        ValueError: the weights are not those of such an agent.
    """
    frozen = copy.deepcopy(agent).requires_grad_(False).eval()
    if weights is not None:
        check_weights(weights, frozen.state_dict())
        frozen.load_state_dict(weights)
    return frozen


def update_average(average: nn.Module, agent: nn.Module, updates: int, power: float) -> None:
    """Take new weights into the average of those after each of `updates` updates before.

    Polynomial decay (Shamir & Zhang 2013): the weights after update n count about as n ** power.
    """
    for kept, new in zip(average.parameters(), agent.parameters()):
        kept.lerp_(new.detach(), (power + 1) / (power + 1 + updates))


@torch.inference_mode()
def act(
    agents: Mapping[int, nn.Module],
    who: np.ndarray,
    obs: BoardViews,
    decisions: Decisions,
    noise: np.ndarray,
    temperature: np.ndarray | None = None,
) -> np.ndarray:
    """Choose the orders of D decisions, each by a network of its own.

    Args:
        agents: by number.
        who: (D,) which of them decides, in ascending order.
        obs: (D,) of the deciding powers.
        decisions: D of them.
        noise: (N,), see `ops.draw_orders`.
        temperature: (D,), the same.

    Returns:
        (S,) int64, positions of the chosen orders in the slots' lists.
    """
    chosen = np.empty(len(decisions.slot_province), np.int64)
    if not len(who):
        return chosen
    numbers, firsts = np.unique(who, return_index=True)
    firsts = np.append(firsts, len(who))  # (K + 1,), of K networks
    inputs = agents[int(numbers[0])].inputs
    # A board is there once for each network that looks at it, one network's after the other's.
    network = np.repeat(np.arange(len(numbers)), np.diff(firsts))
    count = len(obs.board)
    kept, row = np.unique(network * count + obs.row, return_inverse=True)
    edges = np.searchsorted(kept, np.arange(len(firsts)) * count)  # (K + 1,)
    board, last_order, scalars = (array[kept % count] for array in obs[:3])
    obs = obs._replace(board=board, last_order=last_order, scalars=scalars, row=row)
    boards = inputs(obs)
    orders = inputs.orders(boards, decisions)
    parts = zip(
        numbers.tolist(),
        itertools.pairwise(firsts.tolist()),
        boards.split(firsts, edges),
        orders.split(firsts, edges * inputs.num_provinces),
    )
    for number, (first, last), seen, legal in parts:
        agent = agents[number]
        tables = agent.order_tables(agent.encode(seen), legal)
        slots = slice(decisions.slot_start[first], decisions.slot_start[last])
        begin, end = decisions.order_start[slots.start], decisions.order_start[slots.stop]
        heat = None if temperature is None else temperature[first:last]
        own_noise = noise[begin:end] if len(noise) else noise
        chosen[slots], _, _ = ops.draw_orders(legal, tables, own_noise, heat)
    return chosen
