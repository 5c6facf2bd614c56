"""Many frozen networks that are asked together."""

import copy
import itertools
import pickle
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import nn

from ..constants import NONE
from ..games.decisions import Decisions, join_decisions
from ..games.observation import BoardViews
from ..games.vector_game import VectorGame
from . import batched, ops
from .boards import BoardInputs, Boards, Codes
from .checkpoints import check_weights


def frozen_copy(agent: nn.Module, weights: Mapping[str, torch.Tensor] | None = None) -> nn.Module:
    """Return a copy of an agent that never learns, with other weights if some are given."""
    frozen = copy.deepcopy(agent).requires_grad_(False).eval()
    if weights is not None:
        check_weights(weights, frozen.state_dict())
        frozen.load_state_dict(weights)
    return frozen


def update_average(average: nn.Module, agent: nn.Module, updates: int, power: float) -> None:
    """Weights after update n count about as n ** power (polynomial decay, Shamir & Zhang 2013).
    So do running statistics, which then fit them; buffers of whole numbers are the newest."""
    share = (power + 1) / (power + 1 + updates)
    for mean, new in zip(average.parameters(), agent.parameters(), strict=True):
        mean.lerp_(new.detach(), share)
    for mean, new in zip(average.buffers(), agent.buffers(), strict=True):
        if mean.is_floating_point():
            new = torch.where(mean == new, new, mean.lerp(new, share))  # -inf stays
        mean.copy_(new)


def stackable(agent: nn.Module) -> bool:
    """Tell whether `Stack` finds all weights of an agent, which may have layers of its own."""
    linears = nn.Linear, ops.Linear
    stacked_names = "province_features", "power", "order_kinds", "inputs"
    return all(
        name in stacked_names or isinstance(layer, nn.LayerNorm) or type(layer) in linears
        for name, layer in agent.named_modules()
        if [*layer.parameters(recurse=False), *layer.buffers(recurse=False)]
    )


class Stack:
    """Plain agents of one shape, by number, whose boards are encoded in one call."""

    def __init__(self, agents: Mapping[int, nn.Module]):
        self.numbers = np.array(list(agents))
        models = list(agents.values())
        self.whole = frozen_copy(models[0])
        self.layers = []
        for name, layer in list(self.whole.named_modules()):
            if isinstance(layer, nn.Linear | nn.LayerNorm):
                self.layers.append(_Layers([model.get_submodule(name) for model in models]))
                self.whole.set_submodule(name, self.layers[-1])
        self.rows = self.whole.province_features.num_embeddings
        tables = [model.province_features.weight for model in models]
        self.whole.province_features = _Table(torch.cat(tables).detach())
        self.powers = torch.stack([model.power.weight for model in models]).detach()
        self.whole.power = _Table(self.powers)

    def encode(self, boards: Boards, numbers: np.ndarray, sizes: np.ndarray) -> Codes:
        places = np.searchsorted(self.numbers, numbers)
        for layer in self.layers:
            layer.places, layer.sizes = places.tolist(), sizes.tolist()
        network = torch.from_numpy(np.repeat(places, sizes))
        self.whole.power.weight = self.powers[network]  # (G, P, H)
        of_board = boards.features.view(len(network), -1)
        first = (network * self.rows).to(torch.int32)[:, None]
        features = torch.where(of_board == NONE, of_board, of_board + first)
        return self.whole.encode(boards._replace(features=features.view_as(boards.features)))


class _Layers(nn.Module):
    def __init__(self, layers: list[nn.Module]):
        super().__init__()
        self.each = [layer.forward for layer in layers]
        self.places: list[int] = []
        self.sizes: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = zip(self.places, x.split(self.sizes))
        return torch.cat([self.each[place](part) for place, part in parts])


class _Table(nn.Module):
    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = weight


def settings_of(agent: nn.Module) -> dict[str, Hashable]:
    """Return what an agent is beside its weights and buffers; equal for those that are alike."""
    attributes = sorted(vars(agent).keys() - _MODULE)
    try:
        return {"": type(agent)} | {n: pickle.dumps(vars(agent)[n]) for n in attributes}
    except Exception:  # of what cannot be compared nothing is known
        return {"": id(agent)}


@lru_cache(maxsize=16)  # the same copies choose in many phases
def alike(agents: tuple[nn.Module, ...]) -> bool:
    """Tell whether frozen agents differ in what their weights are alone."""
    first, *others = (
        settings_of(agent) | {"": [type(agent), *(part.shape for part in agent.parameters())]}
        for agent in agents
    )
    return all(other == first for other in others)


_MODULE = vars(nn.Module()).keys()


def without_weights(agent: nn.Module) -> nn.Module:
    """Return an agent's methods and settings; it has no weight, buffer or layer."""
    bare = copy.copy(agent)
    inputs = {n: part for n, part in agent.named_children() if isinstance(part, BoardInputs)}
    vars(bare).update(_parameters={}, _buffers={}, _modules=inputs)
    return bare


def ask(
    agents: Mapping[int, nn.Module],
    who: np.ndarray,
    games: VectorGame,
    decisions: Decisions,
    view: Callable[[nn.Module, Decisions], BoardViews] | None = None,
) -> tuple[Decisions, BoardViews]:
    """Return D decisions with the legal orders that networks choose from, and what they see; `who`
    (D,), ascending, decides. `view` (None: `observe`) says what an agent sees. Networks that are
    alike but for their weights are asked in one call, unless the answer depends on these."""

    def answer(agent: nn.Module, first: int, last: int) -> tuple[Decisions, BoardViews]:
        legal = agent.legal_orders(games, decisions.part(first, last))
        obs = view(agent, legal) if view else agent.observe(games, legal.game, legal.power)
        return legal, obs

    numbers = np.unique(who).tolist() or [next(iter(agents))]
    parts = []
    for _, alike in itertools.groupby(numbers, lambda number: settings_of(agents[number])):
        group = list(alike)
        edges = np.searchsorted(who, [*group, group[-1] + 1]).tolist()
        try:
            parts.append(answer(without_weights(agents[group[0]]), edges[0], edges[-1]))
        except (AttributeError, LookupError):
            spans = zip(group, itertools.pairwise(edges))
            parts += [answer(agents[number], *span) for number, span in spans]
    if len(parts) == 1:
        return parts[0]
    legal, obs = zip(*parts)
    return join_decisions(legal), obs[0].join(obs)


@torch.inference_mode()
def act(
    agents: Mapping[int, nn.Module],
    who: np.ndarray,
    obs: BoardViews,
    decisions: Decisions,
    noise: np.ndarray,
    temperature: np.ndarray | None = None,
    stacks: Sequence[Stack] = (),
) -> np.ndarray:
    """Return the orders (S,) as positions in their lists; `who` (D,), ascending, decides. Gumbel
    `noise` (N,); empty: the likeliest. `stacks` have agents of numbers that follow each other."""
    chosen = np.empty(len(decisions.slot_province), np.int64)
    if not len(who):
        return chosen
    numbers, firsts = np.unique(who, return_index=True)
    firsts = np.append(firsts, len(who))  # (K + 1,), of K networks
    inputs = agents[int(numbers[0])].inputs
    # A board is there once for each network that looks at it, one network's after the other's.
    network = np.repeat(np.arange(len(numbers)), np.diff(firsts))
    count = len(obs.board)
    board_keys, row = np.unique(network * count + obs.row, return_inverse=True)
    edges = np.searchsorted(board_keys, np.arange(len(firsts)) * count)  # (K + 1,)
    board, last_order, scalars = (array[board_keys % count] for array in obs[:3])
    obs = obs._replace(board=board, last_order=last_order, scalars=scalars, row=row)
    boards = inputs(obs)
    orders = inputs.orders(boards, decisions)
    asked = tuple(agents[int(number)] for number in numbers)
    if not ops.uses_kernels(boards.globals) and len(asked) > 1 and alike(asked):
        together = batched.act(asked, boards, orders, firsts, edges, noise, temperature)
        if together is not None:
            return together
    codes = _codes(agents, numbers, boards, firsts, edges, stacks)
    parts = orders.split(firsts, edges * inputs.num_provinces)
    for number, first, last, code, own in zip(numbers, firsts, firsts[1:], codes, parts):
        slots = slice(decisions.slot_start[first], decisions.slot_start[last])
        begin, end = decisions.order_start[slots.start], decisions.order_start[slots.stop]
        own_temperature = None if temperature is None else temperature[first:last]
        own_noise = noise[begin:end] if len(noise) else noise
        chosen[slots] = agents[int(number)].get_action(code, own, own_noise, own_temperature).chosen
    return chosen


def _codes(
    agents: Mapping[int, nn.Module],
    numbers: np.ndarray,
    boards: Boards,
    firsts: np.ndarray,
    edges: np.ndarray,
    stacks: Sequence[Stack],
) -> Iterator[Codes]:
    """Yield the codes that each network makes of its boards; those of a stack are made together."""
    of_number = {int(number): stack for stack in stacks for number in stack.numbers}
    which = [of_number.get(int(number), int(number)) for number in numbers]
    begins = [k for k in range(len(which)) if k == 0 or which[k] is not which[k - 1]]
    ends = np.array([*begins, len(which)])
    for part, k, end in zip(boards.split(firsts[ends], edges[ends]), ends, ends[1:]):
        if not isinstance(which[k], Stack):
            yield agents[which[k]].encode(part)
            continue
        sizes = np.diff(edges[k : end + 1])
        codes_of_stack = which[k].encode(part, numbers[k:end], sizes)
        views = np.diff(firsts[k : end + 1]).tolist()
        of_boards = (
            codes.split(sizes.tolist())
            for codes in (codes_of_stack.provinces, codes_of_stack.powers)
        )
        yield from map(Codes, *of_boards, codes_of_stack.view.split(views))
