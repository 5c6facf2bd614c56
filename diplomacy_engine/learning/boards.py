"""Boards and legal orders as a network takes them: arrays of the games become tensors."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from ..constants import BUILD, DISBAND, MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ..games.decisions import Decisions
from ..games.observation import NUM_BOARD_FEATURES, UNIT_OWNER, BoardViews
from ..players.policy import inputs
from ..rules.map import Map
from ..rules.vocabulary import vocabulary


def on_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return an array as a tensor on a device, without waiting for a copy to a GPU."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _slices(edges: np.ndarray) -> list[slice]:
    return [slice(*pair) for pair in itertools.pairwise(edges.tolist())]


class Boards(NamedTuple):
    features: torch.Tensor  # (G V, features) int32, rows of the table of province features
    globals: torch.Tensor  # (G, num_globals) float32, what holds for a whole board
    owner: torch.Tensor  # (G, V) int8, the power 1..P of a province's unit; 0: none
    viewer: torch.Tensor  # (D,) int64, board * P + power of those who look
    views: BoardViews
    num_powers: int  # P

    def split(self, firsts: np.ndarray, boards: np.ndarray) -> "Iterator[Boards]":
        """Yield K parts, of the views from firsts[k] on, which look at boards from boards[k] on."""
        views, sizes, provinces = np.diff(firsts), np.diff(boards), self.owner.shape[1]
        before = np.repeat(boards[:-1], views)
        viewer = self.viewer - on_device(before * self.num_powers, self.viewer.device)
        row = self.views.row - before
        tensors = zip(
            self.features.split((sizes * provinces).tolist()),
            self.globals.split(sizes.tolist()),
            self.owner.split(sizes.tolist()),
            viewer.split(views.tolist()),
        )
        of_boards, of_views = self.views[:3], (row, *self.views[4:])
        for part, own, looking in zip(tensors, _slices(boards), _slices(firsts)):
            arrays = *(array[own] for array in of_boards), *(array[looking] for array in of_views)
            yield Boards(*part, type(self.views)(*arrays), self.num_powers)


class Codes(NamedTuple):
    provinces: torch.Tensor  # (G, V, H)
    powers: torch.Tensor  # (G, P, 3 H)
    view: torch.Tensor  # (D, 3 H), of those who decide


NEVER = -(2**30)
# What an order has in common with earlier ones is counted, each up to MOST; the counts add up to
# the relation of policy/inputs.py, PER_COUNT each. Of BLOCKED there is none among possible orders.
MOST, PER_COUNT, BLOCKED = (2, 1, 1, 1, 2, 1), (12, 3, 6, -3, 1, 0), 5


def order_facts(columns: inputs.OrderColumns) -> np.ndarray:
    """Return (A, 12) int32 of the orders of a vocabulary: six facts, then six that later orders
    compare with those of theirs: `relate` of policy/inputs.py in numbers that are equal or not."""
    kind, source, place, other, helped, _ = columns
    goes, helps, adjusts = (
        np.isin(kind, kinds)
        for kinds in ((MOVE, MOVE_VIA), (SUPPORT_HOLD, SUPPORT_MOVE), (BUILD, DISBAND))
    )
    concerned = np.where(other == NONE, place, other)
    size = place.max(initial=0) + 2
    facts = {  # own fact -> past one, and of which orders it is one
        "into": (place, place, goes),
        "concerned": (concerned, source, True),
        "concerned goes": (concerned, source, goes),
        "concerned goes there": (concerned * size + place, source * size + place, goes),
        "same deed": (place * size + helped, place * size + helped, helps),
        "taken": (np.where(adjusts, source, NEVER - 1), source, adjusts),
    }
    own, past, of = zip(*facts.values())
    past = [np.where(orders, fact, NEVER) for fact, orders in zip(past, of)]
    return np.stack([*own, *past], 1).astype(np.int32)


class Orders:
    """The legal orders of D decisions: `rows` (N, ROWS) of the tables of policy/inputs.py that each
    is the sum of, the provinces `named` in the first, role by role, and those `picked` (S,)."""

    def __init__(
        self,
        columns: inputs.OrderColumns,
        decisions: Decisions,
        lookup: inputs.OrderRows,
        named: Sequence[torch.Tensor],
        picked: np.ndarray | None,
        facts: torch.Tensor,
    ):
        """`columns` and `facts` (`order_facts`) are of the whole vocabulary; `lookup` has the rows
        and the provinces that they name."""
        self.columns, self.decisions, self.lookup, self.facts = columns, decisions, lookup, facts
        self.named, self.picked = named, picked

    def split(self, firsts: np.ndarray, provinces: np.ndarray) -> "Iterator[Orders]":
        """Yield the orders of K parts of the decisions, from firsts[k] on; nothing is picked yet.
        They name provinces from provinces[k] on, by board * V + province."""
        decisions, (rows, blocked, named) = self.decisions, self.lookup
        begins = decisions.order_start[decisions.slot_start[firsts]]
        edges = np.array(
            [np.searchsorted(province_rows, provinces) for province_rows in named]
        )  # (roles, K + 1)
        sizes = np.diff(edges)
        # A part's table has only what it names, again role by role.
        before = np.cumsum([0, *edges[:-1, -1]])[:, None] + edges[:, :-1]
        shift = (np.cumsum(sizes, 0) - sizes - before).T.astype(np.int32)
        places = rows[:, : inputs.NUM_BOARD]
        places += np.where(places == NONE, 0, np.repeat(shift, np.diff(begins), 0))
        parts = []
        for province_rows, size in zip(self.named, sizes):
            first = on_device(np.repeat(provinces[:-1], size), province_rows.device)
            parts.append((province_rows - first).split(size.tolist()))
        for part, own, *of_part in zip(_slices(firsts), _slices(begins), *parts):
            lookup = inputs.OrderRows(rows[own], blocked[own], ())
            deciding = decisions.part(part.start, part.stop)
            yield Orders(self.columns, deciding, lookup, of_part, None, self.facts)

    @property
    def rows(self) -> np.ndarray:
        return self.lookup.rows

    @property
    def given(self) -> np.ndarray:
        """Those `picked`; ValueError if none are."""
        if self.picked is None:
            raise ValueError("these orders are to be sampled: none of them is picked")
        return self.picked

    @property
    def chosen(self) -> np.ndarray:
        return self.given - self.decisions.order_start[:-1]

    @cached_property
    def decision(self) -> torch.Tensor:
        return on_device(self.decisions.slot_decision, self.named[0].device)

    @cached_property
    def given_provinces(self) -> np.ndarray:
        return self.rows[self.given, : inputs.NUM_BOARD]

    @cached_property
    def given_kinds(self) -> np.ndarray:
        """Without what an order has to do with earlier ones: later orders see it by themselves."""
        return self.rows[self.given, inputs.NUM_BOARD : inputs.RELATION]


class HasContext(Protocol):
    """What is read of the OrderTables of plain_ops.py, which lies above this file."""

    @property
    def context(self) -> torch.Tensor: ...

    @property
    def earlier(self) -> nn.Module | None: ...

    def tensors(self) -> Iterable[torch.Tensor]: ...


class SharedOrders:
    """Orders of a network that samples together with others, by batched.py: only what is `named`
    is known of them. `ops.sample_orders` leaves here what they are to be sampled from."""

    picked = None

    def __init__(self):
        self.named, self.chosen = [], np.empty(0, np.int64)

    def sample(self, tables: HasContext, *sampled_by: np.ndarray | None) -> tuple:
        self.tables, self.sampled_by = tables, sampled_by
        nothing = tables.context.new_zeros(len(tables.context))
        return self.chosen, nothing, nothing


class BoardInputs(nn.Module):
    """Makes tensors on an agent's device of a map's games; nothing to learn. The table of order
    kinds has `kind_sizes` rows for how provinces are held, order kinds, and relations."""

    def __init__(self, game_map: Map):
        super().__init__()
        self.game_map, self.network = game_map, inputs.NetworkInputs(game_map)
        self.vocabulary_hash = vocabulary(game_map).hash
        self.num_powers, self.num_provinces = len(game_map.powers), len(game_map.provinces)
        self.num_features, self.num_globals = self.network.num_features, self.network.num_globals
        self.num_kinds = self.network.num_kinds
        self.kind_sizes = np.diff(
            [0, inputs.FIRST_CLASS, inputs.FIRST_RELATION, self.num_kinds]
        ).tolist()
        arrays = {"borders": self.network.borders, "facts": order_facts(self.network.columns)}
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def __deepcopy__(self, _: dict) -> "BoardInputs":
        return self

    def __reduce__(self) -> tuple:
        return type(self), (self.game_map,), {"_buffers": self._buffers}  # on their device

    def forward(self, views: BoardViews) -> Boards:
        device = self.borders.device
        owner = np.ascontiguousarray(views.board[..., UNIT_OWNER])
        viewer = views.row * np.int64(self.num_powers) + views.power
        # Columns of one's own after these are for `encode`, which finds them in `Boards.views`.
        plain = views._replace(board=np.ascontiguousarray(views.board[..., :NUM_BOARD_FEATURES]))
        arrays = self.network.features(plain), self.network.globals(views), owner, viewer
        tensors = (on_device(array, device) for array in arrays)
        return Boards._make([*tensors, views, self.num_powers])

    def orders(
        self,
        boards: Boards,
        decisions: Decisions,
        chosen: np.ndarray | None = None,
        related: bool = True,
    ) -> Orders:
        """Return the legal orders of those who view the boards; `chosen` (S,) were given, if any.
        `related`: whether orders are told how they relate to those given to earlier units."""
        picked = None if chosen is None else decisions.order_start[:-1] + chosen
        lookup = self.network.orders(boards.views, decisions, picked, related)
        named = [on_device(rows, self.borders.device) for rows in lookup.named]
        return Orders(self.network.columns, decisions, lookup, named, picked, self.facts)
