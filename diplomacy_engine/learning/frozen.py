"""Many frozen networks that are asked together."""

import copy
import itertools
import pickle
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

import numpy as np
import torch
from torch import nn

from ..errors import UserError
from ..games.decisions import Decisions, join_decisions
from ..games.observation import BoardViews
from ..games.vector_game import VectorGame
from . import batched, ops
from .boards import BoardInputs
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
    Buffers are the newest, but those that a module names in `AVERAGED` count as weights do."""
    share = (power + 1) / (power + 1 + updates)
    for mean, new in zip(average.parameters(), agent.parameters(), strict=True):
        mean.lerp_(new.detach(), share)
    for module, newest in zip(average.modules(), agent.modules(), strict=True):
        for name, mean in module.named_buffers(recurse=False):
            new = newest.get_buffer(name)
            if name in getattr(module, "AVERAGED", ()):
                new = torch.where(mean == new, new, mean.lerp(new, share))  # -inf stays
            mean.copy_(new)


def settings_of(agent: nn.Module) -> dict[str, Hashable]:
    """Return what an agent is beside its weights and buffers; equal for those that are alike."""
    attributes = sorted(vars(agent).keys() - _MODULE)
    try:
        return {"": type(agent), **{n: pickle.dumps(vars(agent)[n]) for n in attributes}}
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
    view: Callable[[nn.Module, np.ndarray, np.ndarray], BoardViews] | None = None,
) -> tuple[Decisions, BoardViews]:
    """Return D decisions with the legal orders that networks choose from, and what they see; `who`
    (D,), ascending, decides. `view(agent, rows, powers)` (None: `observe`) says what an agent sees.
    Networks that are alike but for their weights, and declare `observes_alike`, are asked in one
    call."""

    def answer(agent: nn.Module, first: int, last: int) -> tuple[Decisions, BoardViews]:
        legal = agent.legal_orders(games, decisions.part(first, last))
        rows, powers = legal.game, legal.power
        return legal, view(agent, rows, powers) if view else agent.observe(games, rows, powers)

    numbers = np.unique(who).tolist() or [next(iter(agents))]
    parts = []
    for _, alike in itertools.groupby(numbers, lambda number: settings_of(agents[number])):
        group = list(alike)
        edges = np.searchsorted(who, [*group, group[-1] + 1]).tolist()
        if getattr(agents[group[0]], "observes_alike", False):
            try:
                parts.append(answer(without_weights(agents[group[0]]), edges[0], edges[-1]))
            except (AttributeError, LookupError) as error:
                why = f"observe or legal_orders reads a weight or a buffer ({error})"
                raise UserError(f"{why}: set observes_alike = False in Agent") from error
        else:
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
) -> np.ndarray:
    """Return the orders (S,) as positions in their lists; `who` (D,), ascending, decides. Gumbel
    `noise` (N,); empty: the likeliest."""
    chosen = np.empty(len(decisions.slot_province), np.int64)
    if not len(who):
        return chosen
    numbers, firsts = np.unique(who, return_index=True)
    firsts = np.append(firsts, len(who))  # (K + 1,), of K networks
    asked = tuple(agents[int(number)] for number in numbers)

    def of_part(first: int, last: int) -> tuple[slice, np.ndarray, np.ndarray | None]:
        """Return the slots of some decisions, and their noise and temperature."""
        slots = slice(*decisions.slot_start[[first, last]])
        own_noise = noise[slice(*decisions.order_start[[slots.start, slots.stop]])]
        return slots, own_noise, None if temperature is None else temperature[first:last]

    if not hasattr(asked[0], "get_action"):  # each is several networks
        for agent, first, last in zip(asked, firsts, firsts[1:]):
            slots, *sampled_by = of_part(first, last)
            own = obs.part(first, last), decisions.part(first, last)
            chosen[slots] = agent.get_action_and_value(*own, None, *sampled_by).chosen
        return chosen
    inputs = asked[0].inputs
    # A board is there once for each network that looks at it, one network's after the other's.
    network = np.repeat(np.arange(len(numbers)), np.diff(firsts))
    count = len(obs.board)
    board_keys, row = np.unique(network * count + obs.row, return_inverse=True)
    edges = np.searchsorted(board_keys, np.arange(len(firsts)) * count)  # (K + 1,)
    board, last_order, scalars = (array[board_keys % count] for array in obs[:3])
    obs = obs._replace(board=board, last_order=last_order, scalars=scalars, row=row)
    boards = inputs(obs)
    orders = inputs.orders(boards, decisions)
    if not ops.uses_kernels(boards.globals) and len(asked) > 1 and alike(asked):
        together = batched.act(asked, boards, orders, firsts, edges, noise, temperature)
        if together is not None:
            return together
    parts = boards.split(firsts, edges), orders.split(firsts, edges * inputs.num_provinces)
    for agent, first, last, own_boards, own in zip(asked, firsts, firsts[1:], *parts):
        slots, *sampled_by = of_part(first, last)
        chosen[slots] = agent.get_action(agent.encode(own_boards), own, *sampled_by).chosen
    return chosen
