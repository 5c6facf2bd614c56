"""What DumbBot thinks a place is worth: its map of nodes and the values it computes on it.

`rules` everywhere says which version of DumbBot it is (dumbbot_rules.py). A *node* is a (unit kind,
location) pair on which a unit can stand. All values are whole numbers held in float64, where they
are exact up to 2^53 (true fractions with `keeps_fractions`).
"""

from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np

from ..._arrays import Float64s, Int32s, new_arrays
from ..._jit import jit
from ...constants import (
    ARMY,
    FALL_MOVEMENT,
    FALL_RETREATS,
    FLEET,
    NONE,
    SPRING_MOVEMENT,
    WINTER_ADJUSTMENTS,
)
from ...rules.map import Board, Map
from .dumbbot_rules import NORMAN, DumbbotRules

LEVELS = 10  # steps of proximity, the place itself included
SPRING_ATTACK, SPRING_DEFENSE = 700, 300  # also in winter
FALL_ATTACK, FALL_DEFENSE = 600, 400
SPRING_WEIGHTS = (100, 1000, 30, 10, 6, 5, 4, 3, 2, 1)  # of proximity 0, 1, ...
FALL_WEIGHTS = (1000, 100, 30, 10, 6, 5, 4, 3, 2, 1)  # also for builds and removals
STRENGTH_WEIGHT = COMPETITION_WEIGHT = WINTER_DEFENSE_WEIGHT = 1000


class NodeGraph(NamedTuple):
    """The nodes of a map and how they touch; lists are rows first[n]..first[n + 1]-1.

    Indices are unsigned where they never are NONE, which halves the time of the inner loop. Nodes
    are numbered by province. With `mixes_kinds` all armies come first, values flow from units of
    either kind, and an army's and a fleet's place in one location are two candidates.
    """

    kind: np.ndarray  # (nodes,) int8, UnitKind
    location: np.ndarray  # (nodes,) int16
    province: np.ndarray  # (nodes,) uint16
    number: np.ndarray  # (2, L) int16, node of a unit kind at a location, or NONE
    flow_first: np.ndarray  # (nodes + 1,) uint32
    flow: np.ndarray  # uint16, nodes whose proximity flows in, each in full
    group_first: np.ndarray  # (nodes + 1,) uint32
    member_first: np.ndarray  # (groups + 1,) uint32
    member: np.ndarray  # uint16, groups of nodes of one province, of which the largest flows in
    way_first: np.ndarray  # (nodes + 1,) uint32
    way_node: np.ndarray  # uint16, destinations of a unit at the node
    way_neighbor: np.ndarray  # uint16, the position in board.neighbor of each of them
    weights: np.ndarray  # (2, LEVELS) float64, proximity weights: spring; fall and winter


class PowerValues(NamedTuple):
    """What the map is worth to one power in one position, and what that is computed from."""

    size: Annotated[Float64s, "P + 1"]  # of each power; last, of nobody
    presence: Annotated[Int32s, "P, V"]  # units of a power in or next to a province
    base: Annotated[Float64s, "V"]  # proximity 0
    threat: Annotated[Float64s, "C"]  # size of the largest power but its owner that can enter
    defense: Annotated[Float64s, "V"]  # the threat to own centers, elsewhere 0
    proximity: Annotated[Float64s, "LEVELS, nodes"]
    strength: Annotated[Int32s, "V"]  # own units in or next to a province
    competition: Annotated[Int32s, "V"]  # the most that any other power has there
    value: Annotated[Float64s, "nodes"]  # destination value


@lru_cache(maxsize=16)
def node_graph(game_map: Map, rules: DumbbotRules = NORMAN) -> NodeGraph:
    board = game_map.board
    nodes = [
        (kind, location)
        for kind in (ARMY, FLEET)
        for location in range(len(board.location_province))
        if board.can_stand[kind, location]
    ]

    def province(node: tuple[int, int]) -> int:
        return int(board.location_province[node[1]])

    def neighbors(node: tuple[int, int]) -> list[int]:
        return board.neighbor[node][: board.neighbor_count[node]].tolist()

    if not rules.mixes_kinds:
        nodes.sort(key=lambda node: (province(node), *node))
    number = {node: n for n, node in enumerate(nodes)}
    standing = {}
    for node in nodes:
        standing.setdefault(node[1], []).append(node)

    flows, groups, ways = [], [], []
    for node in nodes:
        kind, location = node
        if rules.mixes_kinds:
            goals = {location, int(board.province_location[province(node)])}
            flows.append([number[m] for m in nodes if goals & set(neighbors(m))])
            groups.append([[number[m] for m in nodes if province(m) == province(node)]])
            reached = [(m, i) for i, t in enumerate(neighbors(node)) for m in standing[t]]
            ways.append(sorted((number[m], i) for m, i in reached))
        else:
            alike = {}
            for target in neighbors(node):
                v = board.location_province[target]
                coast = rules.merges_coasts and target != board.province_location[v]
                alike.setdefault("coasts" if coast else v, []).append(number[kind, target])
            flows.append([number[node]] + [m for (m, *more) in alike.values() if not more])
            groups.append([members for members in alike.values() if len(members) > 1])
            ways.append([(number[kind, t], i) for i, t in enumerate(neighbors(node))])

    def starts(lists: list[list]) -> np.ndarray:
        return np.cumsum([0] + [len(row) for row in lists]).astype(np.uint32)

    def flat(lists: list[list]) -> np.ndarray:
        return np.array([item for row in lists for item in row], np.uint16)

    table = np.full(board.can_stand.shape, NONE, np.int16)
    for node, n in number.items():
        table[node] = n
    all_groups = [members for row in groups for members in row]
    return NodeGraph(
        kind=np.array([kind for kind, _ in nodes], np.int8),
        location=np.array([location for _, location in nodes], np.int16),
        province=np.array([province(node) for node in nodes], np.uint16),
        number=table,
        flow_first=starts(flows),
        flow=flat(flows),
        group_first=starts(groups),
        member_first=starts(all_groups),
        member=flat(all_groups),
        way_first=starts(ways),
        way_node=flat([[n for n, _ in row] for row in ways]),
        way_neighbor=flat([[i for _, i in row] for row in ways]),
        weights=np.array([SPRING_WEIGHTS, FALL_WEIGHTS], np.float64),
    )


def new_values(board: Board, graph: NodeGraph) -> PowerValues:
    sizes = {"P": board.num_powers, "V": len(board.terrain), "C": len(board.center_province)}
    return new_arrays(PowerValues, **sizes, nodes=len(graph.kind), LEVELS=LEVELS)


@jit
def survey_game(board, state, e, rules, values):
    """Compute what all powers of game e share: sizes, presence and threats.

    Reads   state.center_owner, state.unit_*
    Writes  values.size, values.presence, values.threat
    Rule    size x*x + 4x + 16 of x centers, unowned ones counted as those of one more power. A unit
            is present in its own province (`counts_occupant`) and in each next to it, in one both
            of whose coasts are next to it perhaps twice (`counts_each_coast`). The threat to a
            center is the size of the largest power but its owner with a unit that could move there
            now. Neutral units never move
    """
    neutral = board.num_powers
    for p in range(neutral + 1):
        values.size[p] = 0
    for c in range(board.center_province.shape[0]):
        owner = state.center_owner[e, c]
        values.size[neutral if owner == NONE else owner] += 1
    for p in range(neutral + 1):
        values.size[p] = values.size[p] * values.size[p] + 4 * values.size[p] + 16
    values.presence[:] = 0
    values.threat[:] = 0
    for v in range(board.terrain.shape[0]):
        p = state.unit_power[e, v]
        if p in (NONE, neutral):
            continue
        if rules.counts_occupant:
            values.presence[p, v] += 1
        kind, here = state.unit_kind[e, v], state.unit_location[e, v]
        before = NONE
        for i in range(board.neighbor_count[kind, here]):
            q = board.location_province[board.neighbor[kind, here, i]]
            # Coasts of a province are next to each other.
            if rules.counts_each_coast or q != before:
                values.presence[p, q] += 1
            before = q
            center = board.province_center[q]
            if center != NONE and state.center_owner[e, center] != p:
                values.threat[center] = max(values.threat[center], values.size[p])


@jit
def _compute_base(board, state, e, power, attack_weight, defense_weight, rules, values):
    """Compute what the centers themselves are worth to a power.

    Rule    a foreign center: its owner's size, perhaps nobody's (`values_unowned`); an own one: the
            threat
    """
    values.defense[:] = 0
    values.base[:] = 0
    for c in range(board.center_province.shape[0]):
        v = board.center_province[c]
        owner = state.center_owner[e, c]
        if owner == power:
            values.defense[v] = values.threat[c]
            values.base[v] = values.threat[c] * defense_weight
        elif owner != NONE:
            values.base[v] = values.size[owner] * attack_weight
        elif rules.values_unowned:
            values.base[v] = values.size[board.num_powers] * attack_weight


@jit
def _spread_proximity(graph, weights, rules, values):
    """Let the value of the centers spread over the board, a step a level, and sum it up.

    Rule    a fifth of the sum over the node itself and the provinces next to it, perhaps without
            the fraction (`keeps_fractions`); of two coasts that a fleet touches the better counts
    """
    nodes = graph.kind.shape[0]
    before = values.proximity[0]
    for n in range(nodes):
        before[n] = values.base[graph.province[n]]
        values.value[n] = weights[0] * before[n]
    for level in range(1, LEVELS):
        now = values.proximity[level]
        for n in range(nodes):
            total = 0.0
            for i in range(graph.flow_first[n], graph.flow_first[n + 1]):
                total += before[graph.flow[i]]
            for g in range(graph.group_first[n], graph.group_first[n + 1]):
                best = 0.0
                for i in range(graph.member_first[g], graph.member_first[g + 1]):
                    best = max(best, before[graph.member[i]])
                total += best
            now[n] = total / 5 if rules.keeps_fractions else np.floor(total / 5)
        for n in range(nodes):
            values.value[n] += weights[level] * now[n]
        before = now
    if rules.wholes_values:
        for n in range(nodes):
            values.value[n] = np.trunc(values.value[n])


@jit
def compute_values(board, graph, state, e, power, rules, values):
    """Compute the destination value of every node for one power.

    Reads   values.size, presence and threat as left by `survey_game`
    Writes  the rest of values
    Rule    weighted proximities, plus 1000 * (strength - competition); in winter 1000 * defense.
            A neutral unit competes for its own province, with itself. With `lags_seasons` attack
            and defense weigh nothing in spring, and only strength and competition tell places apart
    """
    phase = state.phase[e]
    winter = phase == WINTER_ADJUSTMENTS
    fall = phase in (FALL_MOVEMENT, FALL_RETREATS)
    late = phase in (FALL_RETREATS, WINTER_ADJUSTMENTS) if rules.lags_seasons else fall
    attack, defense = (FALL_ATTACK, FALL_DEFENSE) if late else (SPRING_ATTACK, SPRING_DEFENSE)
    if rules.lags_seasons and phase == SPRING_MOVEMENT:
        attack, defense = 0, 0
    _compute_base(board, state, e, power, attack, defense, rules, values)
    weights = graph.weights[1 if fall or winter else 0]
    _spread_proximity(graph, weights, rules, values)
    for v in range(board.terrain.shape[0]):
        values.strength[v] = values.presence[power, v]
        values.competition[v] = state.unit_power[e, v] == board.num_powers
    for p in range(board.num_powers):
        if p != power:
            for v in range(board.terrain.shape[0]):
                values.competition[v] = max(values.competition[v], values.presence[p, v])
    for n in range(graph.kind.shape[0]):
        v = graph.province[n]
        if winter:
            values.value[n] += WINTER_DEFENSE_WEIGHT * values.defense[v]
        else:
            values.value[n] += STRENGTH_WEIGHT * values.strength[v]
            values.value[n] -= COMPETITION_WEIGHT * values.competition[v]
