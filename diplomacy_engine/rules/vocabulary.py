"""The order vocabulary: every order a unit of a map could ever be given, numbered once and for all.

It is generated from the Board alone, so it is the same on every machine; `OrderVocabulary.hash`
names it, and a checkpoint stores that name. Legal orders, saved orders and network inputs are
numbers in this list; the kernels find a number by arithmetic on the OrderTable, people by its text.

The list has a part for each province, in it a block for each unit that could stand there (kind and
location), and in a block one kind of orders after the other. Of the standard map:

    0     309   697         2678          2905         13500 13635            20008
    +-----+-----+--- ... ---+------+------+--- ... ---+-----+------ ... ------+-------+
    | ADR | AEG |           |     BRE     |           | PAR |                 | WAIVE |
    +-----+-----+--- ... ---+------+------+--- ... ---+-----+------ ... ------+-------+
                            | A BRE| F BRE|           |A PAR|
                            +------+------+           +-----+
                            2678   2800               13500

A block has these kinds, each only if there are such orders: an army inland has no VIA, only a
fleet at sea convoys (or where a map says so), only a home center builds (or, if a map says so,
every center). Of A PAR:

    hold   move         via  support to hold  support a move  convoy  retreat      disband  build
    13500  13501-13504   -   13505-13511      13512-13628       -     13629-13632  13633    13634

So the number of an order is where its kind begins in its block, plus its place in that kind. Moves
stand in the order of the board's neighbors, and A PAR - BUR is number 13501 + 1:

>>> from diplomacy_engine import load_map
>>> standard = load_map("standard")
>>> words, paris = vocabulary(standard), standard.location_index["PAR"]
>>> first = int(words.table.first_move[ARMY, paris])
>>> [standard.locations[near] for near in standard.board.neighbor[ARMY, paris, :4]]
['BRE', 'BUR', 'GAS', 'PIC']
>>> first, first + 1, words.texts[first + 1], words.number["A PAR - BUR"]
(13501, 13502, 'A PAR - BUR', 13502)
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache, reduce
from operator import or_
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ..constants import (
    ARMY,
    BUILD,
    COAST,
    CONVOY,
    DISBAND,
    FLEET,
    HOLD,
    MOVE,
    MOVE_VIA,
    NONE,
    RETREAT,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    WAIVE,
)
from .map import Map, MapError

MAX_CONVOY_SEAS = 64  # a route is a set of bits in a uint64
MAX_CONVOY_ROUTES = 1_000_000  # standard has 2,094
MAX_ORDERS = 2_000_000  # standard has 20,009


class OrderTable(NamedTuple):
    """The vocabulary as arrays: what order a number means, and where to find an order's number.

    (k, l) below is a unit kind at a location, `most` the longest list of its kind. A support of a
    move is found through the *arc* (mover's kind and location, destination): arcs into one province
    are consecutive and sorted by the mover's province.
    """

    # What each order means, (A,)
    kind: np.ndarray  # int8, OrderKind
    unit_kind: np.ndarray  # int8, kind of the ordered unit; NONE for WAIVE
    location: np.ndarray  # int16, location of the ordered unit; NONE for WAIVE
    target: np.ndarray  # int16, location moved to, supported (to hold) or built at; else NONE
    other_kind: np.ndarray  # int8, kind of the supported or convoyed unit; else NONE
    other_location: np.ndarray  # int16, location of the supported or convoyed unit; else NONE
    province_first: np.ndarray  # (V + 1,) int32, where each province's orders begin
    # Numbers of orders; NONE where there is no such order
    hold: np.ndarray  # (2, L) int32
    first_move: np.ndarray  # (2, L) int32, then one per neighbor in the board's order
    via: np.ndarray  # (V, V) int32, army from, to
    support_province: np.ndarray  # (2, L, most) int16, provinces (k, l) can support into, sorted
    support_count: np.ndarray  # (2, L) int16
    support_index: np.ndarray  # (2, L, V) int8, position of a province in support_province, or NONE
    first_support_hold: np.ndarray  # (2, L, most) int32, then + node_rank of the supported unit
    node_rank: np.ndarray  # (2, L) int8, position of (k, l) among those of its province
    first_support_move: np.ndarray  # (2, L, most) int32, then + arc - arc_first - arcs skipped
    own_arcs: np.ndarray  # (2, L, most) int16, arcs from (k, l)'s own province, which are skipped
    move_arc: np.ndarray  # (2, L, most neighbors) int32, arc of each move
    army_arc: np.ndarray  # (V, V) int32, arc of an army's move by land or convoy
    arc_first: np.ndarray  # (V,) int32, first arc into a province
    # Seas here are all provinces where fleets convoy, be they coasts.
    sea_index: np.ndarray  # (V,) int16, position among the seas that can convoy, or NONE
    coast_index: np.ndarray  # (V,) int16, position among the provinces armies embark in, or NONE
    convoy: np.ndarray  # (seas, coasts, coasts) int32, fleet, army from, army to
    # Sets of seas over which an army can be convoyed and of which none can be left out, by origin
    route_first: np.ndarray  # (V + 1,) int32, where each origin's routes begin
    route_goal: np.ndarray  # (routes,) int16, province; ascending within an origin
    route_seas: np.ndarray  # (routes,) uint64, bits of sea_index
    first_retreat: np.ndarray  # (2, L) int32, then one per neighbor
    disband: np.ndarray  # (2, L) int32
    build: np.ndarray  # (2, L) int32, for home centers, or for every center
    waive: int


class OrderVocabulary:
    """All orders of a map: `texts[number]`, `number[text]`, and `table` for the kernels.

    Attributes:
        texts: (A,) order texts in the notation of the `diplomacy` package.
        number: text -> order number.
        hash: sha256 of the texts, one a line; a checkpoint stores it.
        table: see OrderTable.
    """

    def __init__(self, game_map: Map):
        self.map = game_map
        self.table, self.texts = _generate(game_map)
        self.number = {text: i for i, text in enumerate(self.texts)}
        self.hash = hashlib.sha256("\n".join(self.texts).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.texts)

    def __reduce__(self) -> tuple:
        return vocabulary, (self.map,)  # made anew: smaller, and arrays stay read-only


@lru_cache(maxsize=16)
def vocabulary(game_map: Map) -> OrderVocabulary:
    """Return the order vocabulary of a map (one object per map object)."""
    return OrderVocabulary(game_map)


def convoy_routes(game_map: Map) -> dict[tuple[int, int], set[int]]:
    """Return (army from, to) -> the sets of fleets' provinces that just suffice to convoy it.

    A set is the sum of 1 << province. Each of its fleets touches only the one before and the one
    after it, only the first the origin, and only the last the destination; an army's own province
    is none of them. MapError: more than MAX_CONVOY_ROUTES, as a larger map of seas could take
    forever.
    """
    board = game_map.board
    seas = np.flatnonzero(game_map.can_convoy).tolist()
    near = {sea: board.reach[FLEET, board.province_location[sea]] for sea in seas}
    shores = {sea: _mask(near[sea] & (board.terrain == COAST)) for sea in seas}
    touching = {sea: _mask(near[sea] & game_map.can_convoy) for sea in seas}
    routes: dict[tuple[int, int], set[int]] = {}
    walked = 0

    def extend(origin: int, last: int, route: int, passed: int, landed: int) -> None:
        """Go on from a route's `last` fleet; those before it touch `passed` and `landed`."""
        nonlocal walked
        walked += 1
        if walked > MAX_CONVOY_ROUTES:
            reason = f"it has more than {MAX_CONVOY_ROUTES:,} convoy routes"
            raise MapError(game_map.source, [reason])
        for goal in _bits(shores[last] & ~(landed | route | 1 << origin)):
            routes.setdefault((origin, goal), set()).add(route)
        landed |= shores[last]
        for sea in _bits(touching[last] & ~(passed | route | 1 << origin)):
            if not shores[sea] >> origin & 1:
                extend(origin, sea, route | 1 << sea, passed | touching[last], landed)

    for first in seas:
        for origin in _bits(shores[first]):
            extend(origin, first, 1 << first, 0, 0)
    return routes


def _mask(flags: np.ndarray) -> int:
    return sum(1 << v for v in np.flatnonzero(flags).tolist())


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits of a mask, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _generate(game_map: Map) -> tuple[OrderTable, list[str]]:
    board, locations = game_map.board, game_map.locations
    num_locations, num_provinces = len(locations), len(board.terrain)
    unit = game_map.unit_text
    routes = convoy_routes(game_map)
    carriers = {pair: reduce(or_, sets) for pair, sets in routes.items()}
    seas = list(_bits(reduce(or_, carriers.values(), 0)))
    if len(seas) > MAX_CONVOY_SEAS:
        reason = f"armies can be convoyed over {len(seas)} seas; at most {MAX_CONVOY_SEAS} can be"
        raise MapError(game_map.source, [reason])
    nodes = [
        (kind, location)
        for province in range(num_provinces)
        for kind in (ARMY, FLEET)
        for location in range(num_locations)
        if board.location_province[location] == province and board.can_stand[kind, location]
    ]
    nodes_of = {}
    for node in nodes:
        nodes_of.setdefault(int(board.location_province[node[1]]), []).append(node)

    def neighbors(kind: int, location: int) -> list[int]:
        return board.neighbor[kind, location, : board.neighbor_count[kind, location]].tolist()

    def province_of(location: int) -> int:
        return int(board.location_province[location])

    arcs = {
        (kind, location, target) for kind, location in nodes for target in neighbors(kind, location)
    } | {
        (ARMY, int(board.province_location[a]), int(board.province_location[b])) for a, b in routes
    }
    arcs = sorted(arcs, key=lambda arc: (province_of(arc[2]), province_of(arc[1]), *arc))
    arc_number = {arc: i for i, arc in enumerate(arcs)}
    arcs_into = {v: [arc for arc in arcs if province_of(arc[2]) == v] for v in range(num_provinces)}

    def table(*shape: int, kind: type = np.int32) -> np.ndarray:
        return np.full(shape, NONE, kind)

    supports = {
        node: sorted({province_of(target) for target in neighbors(*node)}) for node in nodes
    }
    most_supports = max(1, max(map(len, supports.values())))
    shores = sorted({province for pair in routes for province in pair})
    by_node, by_pair = (2, num_locations), (num_provinces, num_provinces)
    t = SimpleNamespace(
        hold=table(*by_node),
        first_move=table(*by_node),
        via=table(*by_pair),
        support_province=table(*by_node, most_supports, kind=np.int16),
        support_count=np.zeros(by_node, np.int16),
        support_index=table(*by_node, num_provinces, kind=np.int8),
        first_support_hold=table(*by_node, most_supports),
        node_rank=table(*by_node, kind=np.int8),
        first_support_move=table(*by_node, most_supports),
        own_arcs=np.zeros((*by_node, most_supports), np.int16),
        move_arc=table(*by_node, board.neighbor.shape[2]),
        army_arc=table(*by_pair),
        arc_first=table(num_provinces),
        sea_index=table(num_provinces, kind=np.int16),
        coast_index=table(num_provinces, kind=np.int16),
        convoy=table(len(seas), len(shores), len(shores)),
        first_retreat=table(*by_node),
        disband=table(*by_node),
        build=table(*by_node),
    )
    t.sea_index[seas] = np.arange(len(seas))
    t.coast_index[shores] = np.arange(len(shores))
    convoys_of: dict[int, list[tuple[int, int]]] = {sea: [] for sea in seas}
    for pair in sorted(routes):
        for sea in _bits(carriers[pair]):
            convoys_of[sea].append(pair)

    for there in nodes_of.values():
        for rank, node in enumerate(there):
            t.node_rank[node] = rank
    for arc, number in arc_number.items():
        kind, origin, target = arc
        if target in neighbors(kind, origin):
            t.move_arc[kind, origin, neighbors(kind, origin).index(target)] = number
        if kind == ARMY:
            t.army_arc[province_of(origin), province_of(target)] = number
    for province, into in arcs_into.items():
        t.arc_first[province] = arc_number[into[0]] if into else 0

    rows: list[tuple[int, int, int, int, int, int]] = []
    texts: list[str] = []

    def add(kind, node, target=NONE, other=(NONE, NONE), text="") -> int:
        if len(texts) == MAX_ORDERS:
            raise MapError(game_map.source, [f"it has more than {MAX_ORDERS:,} orders"])
        rows.append((kind, *node, target, *other))
        texts.append(text)
        return len(texts) - 1

    province_first = []
    for province in range(num_provinces):
        province_first.append(len(texts))
        for node in nodes_of.get(province, []):
            me, here = unit(*node), node[1]
            near = neighbors(*node)
            t.hold[node] = add(HOLD, node, text=f"{me} H")
            t.first_move[node] = len(texts)
            for target in near:
                add(MOVE, node, target, text=f"{me} - {locations[target]}")
            if node[0] == ARMY:
                for goal in range(num_provinces):
                    if (province, goal) in routes:
                        target = int(board.province_location[goal])
                        text = f"{me} - {locations[target]} VIA"
                        t.via[province, goal] = add(MOVE_VIA, node, target, text=text)
            t.support_count[node] = len(supports[node])
            for i, goal in enumerate(supports[node]):
                t.support_province[node][i] = goal
                t.support_index[node][goal] = i
                t.first_support_hold[node][i] = len(texts)
                for other in nodes_of[goal]:
                    add(SUPPORT_HOLD, node, other[1], other, f"{me} S {unit(*other)}")
            for i, goal in enumerate(supports[node]):
                t.first_support_move[node][i] = len(texts)
                for kind, origin, target in arcs_into[goal]:
                    if province_of(origin) == province:
                        t.own_arcs[node][i] += 1
                        continue
                    text = f"{me} S {unit(kind, origin)} - {locations[target]}"
                    add(SUPPORT_MOVE, node, target, (kind, origin), text)
            if node[0] == FLEET and province in convoys_of:
                for origin, goal in convoys_of[province]:
                    army = (ARMY, int(board.province_location[origin]))
                    target = int(board.province_location[goal])
                    text = f"{me} C {unit(*army)} - {locations[target]}"
                    t.convoy[t.sea_index[province], t.coast_index[origin], t.coast_index[goal]] = (
                        add(CONVOY, node, target, army, text)
                    )
            t.first_retreat[node] = len(texts)
            for target in near:
                add(RETREAT, node, target, text=f"{me} R {locations[target]}")
            t.disband[node] = add(DISBAND, node, text=f"{me} D")
            if board.home_power[province] != NONE or (
                board.build_anywhere and board.province_center[province] != NONE
            ):
                t.build[node] = add(BUILD, node, here, text=f"{me} B")
    province_first.append(len(texts))
    waive = add(WAIVE, (NONE, NONE), text="WAIVE")
    columns = np.array(rows).T
    sea_bits = {
        route: sum(1 << int(t.sea_index[sea]) for sea in _bits(route))
        for route in set().union(*routes.values())
    }
    route_rows = sorted((*pair, sea_bits[route]) for pair in routes for route in routes[pair])
    order_table = OrderTable(
        **vars(t),
        kind=columns[0].astype(np.int8),
        unit_kind=columns[1].astype(np.int8),
        location=columns[2].astype(np.int16),
        target=columns[3].astype(np.int16),
        other_kind=columns[4].astype(np.int8),
        other_location=columns[5].astype(np.int16),
        province_first=np.array(province_first, np.int32),
        route_first=np.searchsorted(
            [origin for origin, _, _ in route_rows], np.arange(num_provinces + 1)
        ).astype(np.int32),
        route_goal=np.array([goal for _, goal, _ in route_rows], np.int16),
        route_seas=np.array([bits for _, _, bits in route_rows], np.uint64),
        waive=waive,
    )
    for array in order_table:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return order_table, texts
