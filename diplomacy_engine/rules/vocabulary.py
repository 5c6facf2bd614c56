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
>>> first = int(words.table.first_move[UnitKind.ARMY, paris])
>>> [standard.locations[near] for near in standard.board.neighbor[UnitKind.ARMY, paris, :4]]
['BRE', 'BUR', 'GAS', 'PIC']
>>> first, first + 1, words.texts[first + 1], words.number["A PAR - BUR"]
(13501, 13502, 'A PAR - BUR', 13502)
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Int8s, Int16s, Int32s, new_arrays
from ..constants import NONE, OrderKind, UnitKind
from .convoy_routes import convoy_routes
from .map import Map, MapError

MAX_ORDERS = 2_000_000  # standard has 20,009
_SIGN = (" H", " - ", " - ", " S ", " S ", " C ", " R ", " D", " B", "WAIVE")  # by OrderKind


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
    hold: Annotated[Int32s, "2, L", NONE]
    first_move: Annotated[Int32s, "2, L", NONE]  # then one per neighbor in the board's order
    via: Annotated[Int32s, "V, V", NONE]  # army from, to
    # provinces (k, l) can support into, sorted
    support_province: Annotated[Int16s, "2, L, most", NONE]
    support_count: Annotated[Int16s, "2, L"]
    # position of a province in support_province, or NONE
    support_index: Annotated[Int8s, "2, L, V", NONE]
    # then + node_rank of the supported unit
    first_support_hold: Annotated[Int32s, "2, L, most", NONE]
    node_rank: Annotated[Int8s, "2, L", NONE]  # position of (k, l) among those of its province
    # then + arc - arc_first - arcs skipped
    first_support_move: Annotated[Int32s, "2, L, most", NONE]
    own_arcs: Annotated[Int16s, "2, L, most"]  # arcs from (k, l)'s own province, which are skipped
    move_arc: Annotated[Int32s, "2, L, neighbors", NONE]  # arc of each move
    army_arc: Annotated[Int32s, "V, V", NONE]  # arc of an army's move by land or convoy
    arc_first: np.ndarray  # (V,) int32, first arc into a province
    # Seas here are all provinces where fleets convoy, be they coasts.
    sea_index: Annotated[Int16s, "V", NONE]  # position among the seas that can convoy, or NONE
    # position among the provinces armies embark in, or NONE
    coast_index: Annotated[Int16s, "V", NONE]
    convoy: Annotated[Int32s, "seas, coasts, coasts", NONE]  # fleet, army from, army to
    # Sets of seas over which an army can be convoyed and of which none can be left out, by origin
    route_first: np.ndarray  # (V + 1,) int32, where each origin's routes begin
    route_goal: np.ndarray  # (routes,) int16, province; ascending within an origin
    route_seas: np.ndarray  # (routes,) uint64, bits of sea_index
    first_retreat: Annotated[Int32s, "2, L", NONE]  # then one per neighbor
    disband: Annotated[Int32s, "2, L", NONE]
    build: Annotated[Int32s, "2, L", NONE]  # for home centers, or for every center
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

    @cached_property
    def number(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.texts)}

    @cached_property
    def hash(self) -> str:
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.texts)

    def __deepcopy__(self, _memo: dict) -> "OrderVocabulary":
        return self

    def __reduce__(self) -> tuple:
        return vocabulary, (self.map,)  # made anew: smaller, and arrays stay read-only


def vocabulary(game_map: Map) -> OrderVocabulary:
    """Return the order vocabulary of a map (one object for all maps of that content)."""
    return _vocabulary(game_map.with_teams(""))


_vocabulary = lru_cache(maxsize=16)(OrderVocabulary)


def _generate(game_map: Map) -> tuple[OrderTable, list[str]]:
    board, locations, unit = game_map.board, game_map.locations, game_map.unit_text
    num_locations, num_provinces = len(locations), len(board.terrain)
    province_of, army_at = board.location_province.tolist(), board.province_location.tolist()
    routes = convoy_routes(game_map)
    route_pairs = np.stack((routes.origin, routes.goal))
    pair_first = np.flatnonzero(np.diff(route_pairs, prepend=NONE).any(axis=0))
    pairs = route_pairs[:, pair_first].astype(int)
    carriers = routes.fleets[:0]
    if len(pair_first):
        carriers = np.bitwise_or.reduceat(routes.fleets, pair_first)
    nodes = [(kind, place) for kind, place in np.argwhere(board.can_stand).tolist()]
    nodes.sort(key=lambda node: (province_of[node[1]], *node))
    near = {node: board.neighbor[node][: board.neighbor_count[node]].tolist() for node in nodes}
    arcs = {(*node, target) for node in nodes for target in near[node]}
    arcs |= {(UnitKind.ARMY, army_at[origin], army_at[goal]) for origin, goal in pairs.T.tolist()}
    arcs = sorted(arcs, key=lambda arc: (province_of[arc[2]], province_of[arc[1]], *arc))
    arc_number = {arc: i for i, arc in enumerate(arcs)}
    arc_ways = [(province_of[target], province_of[origin]) for _, origin, target in arcs]

    supports = {node: sorted({province_of[target] for target in near[node]}) for node in nodes}
    shores = np.unique(pairs)
    sizes = {"V": num_provinces, "L": num_locations, "neighbors": board.neighbor.shape[2]}
    sizes |= {"most": max(1, *map(len, supports.values()))}
    t = new_arrays(OrderTable, **sizes, seas=len(routes.seas), coasts=len(shores))
    t.sea_index[routes.seas] = np.arange(len(routes.seas))
    t.coast_index[shores] = np.arange(len(shores))
    every = range(num_provinces + 1)
    first_node = [bisect_left(nodes, v, key=lambda node: province_of[node[1]]) for v in every]
    first_arc = [bisect_left(arc_ways, (v,)) for v in every]
    for number, node in enumerate(nodes):
        t.node_rank[node] = number - first_node[province_of[node[1]]]
        t.move_arc[node][: len(near[node])] = [arc_number[*node, target] for target in near[node]]
    for number, ((kind, _, _), (goal, origin)) in enumerate(zip(arcs, arc_ways)):
        if kind == UnitKind.ARMY:
            t.army_arc[origin, goal] = number

    # What an order is about, besides its unit: nothing, a location, one by convoy, a unit, an arc.
    about = [(NONE, NONE, NONE)]
    about += 2 * [(location, NONE, NONE) for location in range(num_locations)]
    about += [(here, kind, here) for kind, here in nodes]
    about += [(target, kind, origin) for kind, origin, target in arcs]
    words = ["", *locations, *(f"{location} VIA" for location in locations)]
    words += [unit(*node) for node in nodes]
    words += [f"{unit(kind, origin)} - {locations[target]}" for kind, origin, target in arcs]
    by_convoy = 1 + num_locations
    a_unit = by_convoy + num_locations
    an_arc = a_unit + len(nodes)
    blocks: list[tuple[int, int, int, int]] = []  # kind, unit's kind and location, count
    subjects: list[int] = []  # of each order, an index of `about`
    texts: list[str] = []

    def add(kind: int, node: tuple[int, int], new: Sequence[int] = (0,)) -> int:
        """Add orders of a unit about each of `new`; return the first one's number."""
        if len(texts) + len(new) > MAX_ORDERS:
            raise MapError(game_map.source, [f"it has more than {MAX_ORDERS:,} orders"])
        blocks.append((kind, *node, len(new)))
        subjects.extend(new)
        start = (unit(*node) if node[1] != NONE else "") + _SIGN[kind]
        texts.extend([start + words[subject] for subject in new])
        return len(texts) - len(new)

    province_first = []
    pair_arc = t.army_arc[pairs[0], pairs[1]]
    first_pair = np.searchsorted(pairs[0], every)
    for province in range(num_provinces):
        province_first.append(len(texts))
        for node in nodes[first_node[province] : first_node[province + 1]]:
            targets = [1 + target for target in near[node]]
            t.hold[node] = add(OrderKind.HOLD, node)
            t.first_move[node] = add(OrderKind.MOVE, node, targets)
            if node[0] == UnitKind.ARMY:
                goals = pairs[1, first_pair[province] : first_pair[province + 1]]
                via = (by_convoy + board.province_location[goals]).tolist()
                t.via[province, goals] = add(OrderKind.MOVE_VIA, node, via) + np.arange(len(goals))
            t.support_count[node] = len(supports[node])
            for i, goal in enumerate(supports[node]):
                t.support_province[node][i] = goal
                t.support_index[node][goal] = i
                there = range(a_unit + first_node[goal], a_unit + first_node[goal + 1])
                t.first_support_hold[node][i] = add(OrderKind.SUPPORT_HOLD, node, there)
            for i, goal in enumerate(supports[node]):
                own = bisect_left(arc_ways, (goal, province))
                after = bisect_right(arc_ways, (goal, province))
                t.own_arcs[node][i] = after - own
                others = [*range(first_arc[goal], own), *range(after, first_arc[goal + 1])]
                t.first_support_move[node][i] = add(
                    OrderKind.SUPPORT_MOVE, node, [an_arc + arc for arc in others]
                )
            sea = t.sea_index[province]
            if node[0] == UnitKind.FLEET and sea != NONE:
                rows = np.flatnonzero(carriers >> np.uint64(sea) & np.uint64(1))
                first = add(OrderKind.CONVOY, node, (an_arc + pair_arc[rows]).tolist())
                origins, goals = t.coast_index[pairs[:, rows]]
                t.convoy[sea, origins, goals] = first + np.arange(len(rows))
            t.first_retreat[node] = add(OrderKind.RETREAT, node, targets)
            t.disband[node] = add(OrderKind.DISBAND, node)
            if board.home_power[province] != NONE or (
                board.build_anywhere and board.province_center[province] != NONE
            ):
                t.build[node] = add(OrderKind.BUILD, node)
    province_first.append(len(texts))
    waive = add(OrderKind.WAIVE, (NONE, NONE))
    block_rows = np.array(blocks).T
    kind, unit_kind, location = np.repeat(block_rows[:3], block_rows[3], axis=1)
    target, other_kind, other_location = np.array(about).T[:, subjects]
    target[kind == OrderKind.BUILD] = location[kind == OrderKind.BUILD]
    order_table = t._replace(
        kind=kind.astype(np.int8),
        unit_kind=unit_kind.astype(np.int8),
        location=location.astype(np.int16),
        target=target.astype(np.int16),
        other_kind=other_kind.astype(np.int8),
        other_location=other_location.astype(np.int16),
        province_first=np.array(province_first, np.int32),
        arc_first=np.array(first_arc[:-1], np.int32),
        route_first=np.searchsorted(routes.origin, every).astype(np.int32),
        route_goal=routes.goal,
        route_seas=routes.fleets,
        waive=waive,
    )
    for array in order_table:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return order_table, texts
