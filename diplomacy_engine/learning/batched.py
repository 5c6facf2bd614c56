"""Networks that are alike but for their weights choose orders in one pass: on a GPU it takes as
many operations as one network does. `encode` and `get_action` run once, by torch.vmap."""

from functools import lru_cache

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, stack_module_state

from .._progress import say
from . import ops, plain_ops
from .boards import Boards, Orders, SharedOrders, on_device

FAILURES = AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError
_alone: set[type] = set()  # agents that were tried, and have to choose one after the other


def act(
    agents: tuple[nn.Module, ...],
    boards: Boards,
    orders: Orders,
    firsts: np.ndarray,
    edges: np.ndarray,
    noise: np.ndarray,
    temperature: np.ndarray | None,
) -> np.ndarray | None:
    """Return the orders (S,) as `frozen.act` does; agent k has the boards from edges[k] on, and
    the decisions from firsts[k] on. None: these agents have to be asked one after the other."""
    kind = type(agents[0])
    if kind in _alone:
        return None
    try:
        sampled_by = _tables(agents, boards, orders, firsts, edges, noise, temperature)
        tables, (noise, temperature) = sampled_by
    except torch.OutOfMemoryError:
        raise
    except FAILURES as error:
        _alone.add(kind)
        why = str(error).partition("\n")[0]
        say(f"note: copies choose one after the other, which is slow on a GPU: {why:.150}")
        return None
    shifts = _shifts(_edges_by_role(orders, edges * agents[0].inputs.num_provinces))
    networks = plain_ops.Networks(np.repeat(np.arange(len(agents)), np.diff(firsts)), shifts)
    return plain_ops.sample_orders(orders, tables, noise, temperature, networks=networks)[0]


class _Tables(nn.Module):
    """What one network's orders are sampled from, by its `encode` and `get_action`."""

    def __init__(self, agent: nn.Module):
        super().__init__()
        self.agent = agent

    def forward(
        self, orders: SharedOrders, sampled_by: tuple, named: list, *of_boards: torch.Tensor
    ) -> list[torch.Tensor]:
        boards = Boards._make([*of_boards, None, self.agent.inputs.num_powers])
        orders.named = named
        action = self.agent.get_action(self.agent.encode(boards), orders, *sampled_by)
        if action.chosen is not orders.chosen:
            raise TypeError("get_action changes what was sampled")
        if not ops.is_linear(orders.tables.earlier):
            raise TypeError("the layer of earlier orders is more than its weight and bias")
        return list(orders.tables.tensors())


def _tables(agents, boards, orders, firsts, edges, noise, temperature):
    """Return the order tables of K agents, one's rows after the other's, and the noise (N,) and the
    temperature (D,) that their `get_action` samples by. `firsts`, `edges` (K + 1,): where the
    decisions and the boards of each begin."""
    device, inputs = boards.globals.device, agents[0].inputs
    of_boards, _ = _rectangle(edges)
    board = on_device(of_boards.ravel(), device)
    features = boards.features.view(len(boards.globals), -1)
    features, globals_, owner = (
        part.index_select(0, board).unflatten(0, of_boards.shape)
        for part in (features, boards.globals, boards.owner)
    )
    features = features.view(len(agents), -1, boards.features.shape[1])
    of_views, _ = _rectangle(firsts)
    viewer = boards.views.row.astype(np.int64) * inputs.num_powers + boards.views.power
    viewer = viewer[of_views] - edges[:-1, None] * inputs.num_powers
    named, first = [], edges * inputs.num_provinces
    for places, begin in zip(orders.lookup.named, _edges_by_role(orders, first)):
        rows, is_own = _rectangle(begin)
        own = np.append(places, 0)[rows] - first[:-1, None]
        named.append(on_device(np.where(is_own, own, 0), device))

    of_all, base = SharedOrders(), _Tables(agents[0])

    def ask(weights: dict, named: list, *of_boards: torch.Tensor) -> list[torch.Tensor]:
        about = of_all, (noise, temperature), named, *of_boards
        return functional_call(base, weights, about)

    parts = features, globals_, owner, on_device(viewer, device)
    provinces, kinds, context, weight, *layer = torch.vmap(ask)(_stacked(agents), named, *parts)
    before = np.arange(len(agents)) * context.shape[1] - firsts[:-1]
    places = np.arange(firsts[-1]) + np.repeat(before, np.diff(firsts))
    tables = plain_ops.OrderTables(
        provinces.flatten(0, 1),
        kinds.flatten(0, 1),
        context.flatten(0, 1).index_select(0, on_device(places, device)),
        weight,
        plain_ops.Layers(*layer) if layer else None,
    )
    return tables, of_all.sampled_by


@lru_cache(maxsize=1)  # of those that chose last
def _stacked(agents: tuple[nn.Module, ...]) -> dict[str, torch.Tensor]:
    """Return the weights and buffers of frozen networks by name, each stacked."""
    weights, buffers = stack_module_state([_Tables(agent) for agent in agents])
    return weights | buffers


def _rectangle(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (K, most) the numbers from edges[k] to edges[k + 1], and the first one again in the
    place of what others have more; and (K, most), which are not these."""
    sizes = np.diff(edges)[:, None]
    place = np.arange(sizes.max())
    return edges[:-1, None] + np.where(place < sizes, place, 0), place < sizes


def _edges_by_role(orders: Orders, first: np.ndarray) -> np.ndarray:
    """Return (roles, K + 1), where the named ones of the provinces from first[k] on begin."""
    return np.array([np.searchsorted(places, first) for places in orders.lookup.named])


def _shifts(begin: np.ndarray) -> np.ndarray:
    """Return (K, roles), how far a named province is behind its place in `Orders.named` once all
    networks have tables of one length, role by role."""
    sizes = np.diff(begin).max(1)
    behind = np.cumsum(sizes) - sizes - np.cumsum([0, *begin[:-1, -1]])
    of_network = np.arange(begin.shape[1] - 1)[:, None] * sizes.sum()
    return of_network + (behind[:, None] - begin[:, :-1]).T
