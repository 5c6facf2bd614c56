"""A network's inputs: the rows of embedding tables that boards and orders are the sum of.

An order's embedding is the sum of those of the provinces it is about, and of rows for how these
stand to the deciding power, its class, and how it relates to the orders of earlier units. Nothing
here grows with the order vocabulary.
"""

from typing import NamedTuple

import numpy as np

from ..._jit import jit
from ...constants import (
    ARMY,
    BUILD,
    COASTS,
    DISBAND,
    FLEET,
    HOLD,
    MOVE,
    MOVE_VIA,
    NONE,
    RESULT_WORDS,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    OrderKind,
    Phase,
)
from ...games import observation
from ...games.decisions import Decisions
from ...rules.map import Board, Map
from ...rules.vocabulary import OrderTable, vocabulary
from .sums import Neighbors

NUM_BOARD = 3  # the provinces an order is about, each in its role: source, place, other
ORDER_CLASS, RELATION = 2 * NUM_BOARD, 2 * NUM_BOARD + 1  # after these and how they stand
ROWS = RELATION + 1
NUM_STANDINGS = 3 * 4 * 4 * 4
NUM_CLASSES = len(OrderKind) * 2 * len(COASTS)
NUM_RELATIONS = len(OrderKind) * 36
FIRST_CLASS = NUM_BOARD * NUM_STANDINGS
FIRST_RELATION = FIRST_CLASS + NUM_CLASSES
NUM_KINDS = FIRST_RELATION + NUM_RELATIONS  # rows of the table of kinds, the board's apart


class OrderColumns(NamedTuple):
    """What the orders of a vocabulary are about, (A,) int32 each; NONE where there is nothing."""

    kind: np.ndarray
    source: np.ndarray  # province of the ordered unit
    place: np.ndarray  # province where it, or the unit it helps, ends up if it succeeds
    other: np.ndarray  # province of the supported or convoyed unit
    helped: np.ndarray  # province of the unit whose success the order serves: other, else source
    order_class: np.ndarray  # kind, kind of unit and coast of the target in one number


def order_columns(board: Board, table: OrderTable) -> OrderColumns:
    def province_of(locations: np.ndarray) -> np.ndarray:
        return np.where(locations == NONE, NONE, board.location_province[locations])

    source, other = province_of(table.location), province_of(table.other_location)
    place = np.where(table.kind == HOLD, source, province_of(table.target))
    helped = np.where(other == NONE, source, other)
    coast = np.where(table.target == NONE, 0, board.location_coast[table.target])
    order_class = (table.kind.astype(np.int32) * 2 + np.maximum(table.unit_kind, 0)) * len(COASTS)
    columns = table.kind, source, place, other, helped, order_class + coast
    return OrderColumns(*(column.astype(np.int32) for column in columns))


def feature_offsets(board: Board) -> np.ndarray:
    """Return where each block of a province's features begins in their table; last, its length."""
    provinces = len(board.terrain)
    sizes = observation.feature_sizes(board.num_powers)[:-1]
    sizes += [len(OrderKind) + 1, provinces + 1, provinces + 1, provinces, len(RESULT_WORDS)]
    return np.cumsum([0, *sizes]).astype(np.int32)


@jit
def _features(columns, offsets, boards, last_order, rows):
    games, provinces, features = boards.shape
    for g in range(games):
        for v in range(provinces):
            out = rows[g * provinces + v]
            for f in range(features - 1):
                out[f] = offsets[f] + boards[g, v, f]
            f = features - 1
            last = last_order[g, v]
            out[f] = offsets[f]
            out[f + 1] = offsets[f + 1]
            out[f + 2] = offsets[f + 2]
            if last != NONE:
                out[f] += 1 + columns.kind[last]
                out[f + 1] += 1 + columns.place[last]
                out[f + 2] += 1 + columns.other[last]
            out[f + 3] = offsets[f + 3] + v
            bits = boards[g, v, observation.LAST_RESULT]
            for bit in range(out.shape[0] - f - 4):
                out[f + 4 + bit] = offsets[f + 4] + bit if (bits >> bit) & 1 else NONE


def num_globals(num_powers: int) -> int:
    return len(Phase) + 3 + num_powers * len(observation.POWER_SCALARS)


def province_borders(board: Board) -> np.ndarray:
    """Return (V, V) float32: each province's row shares 1 among its neighbors, if it has any."""
    borders = province_reach(board).max(0).astype(np.float32)
    return borders / np.maximum(borders.sum(1, keepdims=True), 1.0)


def province_reach(board: Board) -> np.ndarray:
    reach = np.zeros((2, len(board.terrain), len(board.terrain)), np.int8)
    for kind in (ARMY, FLEET):
        np.maximum.at(reach[kind], board.location_province, board.reach[kind])
    return reach


@jit
def _stand(reach, boards, row, power, out, near, near_other):
    """Write how each province stands to the deciding power to out (D, V): who is there, whose
    center it is, how many own and other units reach it. Decision d sees boards (G, V, F) row[d]."""
    provinces = boards.shape[1]
    for d in range(row.shape[0]):
        board = boards[row[d]]
        me = power[d] + 1
        near[:] = 0
        near_other[:] = 0
        for v in range(provinces):
            kind = board[v, observation.UNIT_KIND]
            if kind != 0:  # a neutral unit has a kind and no owner
                count = near if board[v, observation.UNIT_OWNER] == me else near_other
                reached = reach[kind - 1, v]
                for u in range(provinces):
                    count[u] += reached[u]
        for v in range(provinces):
            owner = board[v, observation.UNIT_OWNER]
            unit = 0 if board[v, observation.UNIT_KIND] == 0 else (1 if owner == me else 2)
            center = int(board[v, observation.CENTER_OWNER])
            if center >= 2:
                center = 2 if center == me + 1 else 3
            index = (unit * 4 + center) * 4 + min(near[v], 3)
            out[d, v] = index * 4 + min(near_other[v], 3)


@jit
def relate(columns, slot_orders, begin, slot, number):
    """Say how an order relates to `slot_orders`, those of the slots begin..slot-1 of its decision.

    Returns a number below NUM_RELATIONS, by kind: own moves into the same province (0, 1, 2+), what
    the unit concerned does (nothing yet, stays, goes to that province, goes elsewhere), supports of
    the same deed (0, 1, 2+); and whether its province was adjusted already.
    """
    kind, source, place = columns.kind[number], columns.source[number], columns.place[number]
    helped = columns.helped[number]
    concerned = place if columns.other[number] == NONE else columns.other[number]
    adjusts = kind in (BUILD, DISBAND)
    into, status, same, taken = 0, 0, 0, False
    for earlier in range(begin, slot):
        past = slot_orders[earlier]
        past_kind = columns.kind[past]
        goes = past_kind in (MOVE, MOVE_VIA)
        there = columns.place[past] == place
        if goes and there:
            into += 1
        if columns.source[past] == concerned:
            status = (2 if there else 3) if goes else 1
        helps = past_kind in (SUPPORT_HOLD, SUPPORT_MOVE)
        if helps and there and columns.helped[past] == helped:
            same += 1
        if adjusts and past_kind in (BUILD, DISBAND):
            taken = taken or columns.source[past] == source
    return ((kind * 3 + min(into, 2)) * 4 + status) * 3 + min(same, 2), taken


@jit
def _index(columns, decisions, row, standing, slot_orders, related, rows, blocked):
    """Write rows (N, ROWS) and blocked (N,); row (D,), standing (D, V), slot_orders (S,)."""
    slot_start, order_start, order = decisions.slot_start, decisions.order_start, decisions.order
    provinces = standing.shape[1]
    for d in range(row.shape[0]):
        begin, end = slot_start[d], slot_start[d + 1]
        for slot in range(begin, end):
            for n in range(order_start[slot], order_start[slot + 1]):
                number = order[n]
                rows[n, ORDER_CLASS] = FIRST_CLASS + columns.order_class[number]
                for role in range(NUM_BOARD):
                    province = columns.source[number]
                    if role == 1:
                        province = columns.place[number]
                    elif role == 2:
                        province = columns.other[number]
                    rows[n, role] = rows[n, NUM_BOARD + role] = NONE
                    if province != NONE:
                        rows[n, role] = (row[d] * provinces + province) * NUM_BOARD + role
                        rows[n, NUM_BOARD + role] = standing[d, province] * NUM_BOARD + role
                rows[n, RELATION] = NONE
                blocked[n] = False
                if related:
                    relation, blocked[n] = relate(columns, slot_orders, begin, slot, number)
                    rows[n, RELATION] = FIRST_RELATION + relation


@jit
def _compact(rows, place):
    """Count the provinces' rows that are named, and let `rows` (N, ROWS) name them by their new
    places; place (G V NUM_BOARD,): where a row stands among these, role by role."""
    place[:] = NONE
    for n in range(rows.shape[0]):
        for role in range(NUM_BOARD):
            if rows[n, role] != NONE:
                place[rows[n, role]] = 0
    count = 0
    for role in range(NUM_BOARD):
        for row in range(role, place.shape[0], NUM_BOARD):
            if place[row] != NONE:
                place[row] = count
                count += 1
    for n in range(rows.shape[0]):
        for role in range(NUM_BOARD):
            if rows[n, role] != NONE:
                rows[n, role] = place[rows[n, role]]


class OrderRows(NamedTuple):
    rows: np.ndarray  # (N, ROWS) int32, rows that are summed up; NONE for none
    blocked: np.ndarray  # (N,) bool, its province was adjusted by an earlier slot
    # Of each role the provinces that are named, by board * V + province: the rest needs no code.
    # The first NUM_BOARD columns of `rows` are places in the list of all of them, role by role.
    named: tuple[np.ndarray, ...]


class NetworkInputs:
    """What a network is told of the boards and orders of one map."""

    def __init__(self, game_map: Map):
        board = game_map.board
        self.columns = order_columns(board, vocabulary(game_map).table)
        self.reach, self.offsets = province_reach(board), feature_offsets(board)
        self.borders = province_borders(board)
        self.neighbors = Neighbors.of(self.borders)
        self.neighbor_of = Neighbors.of(self.borders.T)
        self.num_features, self.num_globals = int(self.offsets[-1]), num_globals(board.num_powers)
        self.num_kinds = NUM_KINDS

    def features(self, views: observation.BoardViews) -> np.ndarray:
        """Return the rows of each province's features, (G V, features) int32, board by board."""
        games, provinces = views.last_order.shape
        features = observation.NUM_BOARD_FEATURES + 3 + len(RESULT_WORDS)
        rows = np.empty((games * provinces, features), np.int32)
        _features(self.columns, self.offsets, views.board, views.last_order, rows)
        return rows

    def globals(self, views: observation.BoardViews) -> np.ndarray:
        """Return what holds for whole boards, (G, num_globals) float32: which phase it is, the
        years played and left, and each power's centers, units and owed builds."""
        scalars = views.scalars.astype(np.float32)
        phase, years, years_left = (
            scalars[:, [column]]
            for column in (observation.PHASE, observation.YEARS_PLAYED, observation.YEARS_LEFT)
        )
        endless = years_left < 0
        return np.concatenate(
            [
                phase == np.arange(len(Phase)),
                np.minimum(years / 10, 3),
                endless,
                np.where(endless, 1, np.minimum(years_left / 10, 1)),
                scalars[:, len(observation.SCALARS) :] / 4,
            ],
            1,
            dtype=np.float32,
        )

    def orders(
        self,
        views: observation.BoardViews,
        decisions: Decisions,
        picked: np.ndarray | None = None,
        related: bool = True,
    ) -> OrderRows:
        """Look up the table rows of every legal order.

        `picked` (S,) is the index among the N orders of each slot's own, if the orders are to be
        scored. Without `related` no relations to earlier orders are looked up.
        """
        lengths = np.diff(decisions.order_start)
        assert lengths.min(initial=1) > 0, "a slot without a legal order would have no policy"
        games, provinces = views.last_order.shape
        standing = np.empty((len(views.row), provinces), np.int32)
        near = np.zeros((2, provinces), np.int32)
        _stand(self.reach, views.board, views.row, views.power, standing, *near)
        rows = np.empty((len(decisions.order), ROWS), np.int32)
        blocked = np.empty(len(decisions.order), bool)
        scoring = picked is not None
        slot_orders = decisions.order[picked] if scoring else np.empty(0, np.int32)
        _index(self.columns, decisions, views.row, standing, slot_orders, scoring, rows, blocked)
        if not related:
            rows[:, RELATION] = NONE
        place = np.empty(games * provinces * NUM_BOARD, np.int32)
        _compact(rows, place)
        named = tuple(np.flatnonzero(place[role::NUM_BOARD] != NONE) for role in range(NUM_BOARD))
        return OrderRows(rows, blocked, named)
