"""What the network is told: the kernels against plain definitions. test_ops has its scores."""

import functools

import numpy as np
import pytest

from diplomacy_engine import BoardViews, VectorGame, make_bot
from diplomacy_engine.constants import NONE, RESULT_WORDS, OrderKind
from diplomacy_engine.games.observation import feature_sizes
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.policy.inputs import (
    FIRST_CLASS,
    FIRST_RELATION,
    NUM_BOARD,
    NUM_KINDS,
    NUM_STANDINGS,
    RELATION,
    ROWS,
    NetworkInputs,
    province_borders,
    province_reach,
)
from diplomacy_engine.players.policy.order_logits import ScoreTables, score_orders

MAPS = ("small", "three", "standard")
HIDDEN = 9
MOVES = (OrderKind.MOVE, OrderKind.MOVE_VIA)
SUPPORTS = (OrderKind.SUPPORT_HOLD, OrderKind.SUPPORT_MOVE)
ADJUSTMENTS = (OrderKind.BUILD, OrderKind.DISBAND)


@functools.cache
def played(name: str, phases: int):
    """Return games after some phases of dumbbot and random play, decisions, views and choices."""
    games = VectorGame(name, 3, seed=phases, threads=1)
    for phase in range(phases):
        games.step(orders_of(games, make_bot("random" if phase % 3 == 0 else "dumbbot")))
    decisions = games.decisions()
    obs = games.view_boards(decisions.game, decisions.power)
    lengths = np.diff(decisions.order_start)
    chosen = np.random.default_rng(phases).integers(0, lengths)
    return games, decisions, obs, decisions.order_start[:-1] + chosen


PLAYED = pytest.mark.parametrize(
    ("name", "phases"), [(name, phases) for name in MAPS for phases in (0, 9, 12, 14, 17)]
)


def slots_of(decisions):
    """Yield (decision, first slot of it, slot, its legal orders' positions)."""
    for d in range(len(decisions.game)):
        begin, end = decisions.slot_start[d], decisions.slot_start[d + 1]
        for slot in range(begin, end):
            yield (
                d,
                begin,
                slot,
                range(decisions.order_start[slot], decisions.order_start[slot + 1]),
            )


@PLAYED
def test_views_are_boards_seen_by_the_first_power(name, phases):
    games, decisions, obs, _ = played(name, phases)
    assert len(obs.board) == len(np.unique(decisions.game)) < len(obs.row)
    rows = np.random.default_rng(0).permutation(len(obs.row))[: len(obs.row) // 2 + 1]
    joined = BoardViews.join([obs.take(rows), obs])
    for views, asked in (
        (obs, decisions),
        (joined.take(np.arange(len(rows))), decisions.take(rows)),
    ):
        first = games.observe_powers(asked.game, np.zeros(len(asked.game), np.int8))
        for array, expected in zip(views[:3], first):
            np.testing.assert_array_equal(array[views.row], expected)
        np.testing.assert_array_equal(views.power, asked.power)


@PLAYED
def test_features_of_provinces(name, phases):
    games, _, obs, _ = played(name, phases)
    provinces, inputs = len(games.board.terrain), NetworkInputs(games.map)
    columns, offsets = inputs.columns, inputs.offsets
    rows = inputs.features(obs).reshape(len(obs.board), provinces, -1)
    sizes = feature_sizes(games.num_powers)[:-1]
    assert offsets[len(sizes)] == sum(sizes)
    assert rows.max() < offsets[-1]
    for g in range(len(obs.board)):
        for v in range(provinces):
            *seen, bits = obs.board[g, v].tolist()
            last = obs.last_order[g, v]
            about = [columns.kind, columns.place, columns.other]
            values = seen + [0 if last == NONE else column[last] + 1 for column in about] + [v]
            expected = [offset + value for offset, value in zip(offsets, values)]
            expected += [offsets[-2] + i for i in range(len(RESULT_WORDS)) if bits & 2**i]
            assert sorted(expected) == sorted(rows[g, v][rows[g, v] != NONE])


def slow_standing(games, game: int, power: int, province: int) -> int:
    state, board = games.state, games.board
    who = state.unit_power[game, province]
    unit = 0 if who == NONE else 1 if who == power else 2
    center = 0
    if board.province_center[province] != NONE:
        owner = state.center_owner[game, board.province_center[province]]
        center = 1 if owner == NONE else 2 if owner == power else 3
    near = [0, 0]
    reach = province_reach(board)
    for v in range(len(board.terrain)):
        other = state.unit_power[game, v]
        if other != NONE:
            near[int(other != power)] += int(reach[state.unit_kind[game, v], v, province])
    return ((unit * 4 + center) * 4 + min(near[0], 3)) * 4 + min(near[1], 3)


def slow_relation(columns, earlier: list[int], number: int) -> tuple[int, bool]:
    kind, source, place, other, helped, _ = (column[number] for column in columns)
    concerned = place if other == NONE else other
    into = sum(columns.kind[e] in MOVES and columns.place[e] == place for e in earlier)
    status = 0
    for e in earlier:
        if columns.source[e] == concerned:
            status = 1 if columns.kind[e] not in MOVES else 2 if columns.place[e] == place else 3
    same = sum(
        columns.kind[e] in SUPPORTS and columns.helped[e] == helped and columns.place[e] == place
        for e in earlier
    )
    taken = any(
        kind in ADJUSTMENTS and columns.kind[e] in ADJUSTMENTS and columns.source[e] == source
        for e in earlier
    )
    return ((kind * 3 + min(into, 2)) * 4 + status) * 3 + min(same, 2), taken


@PLAYED
def test_rows_of_orders(name, phases):
    games, decisions, obs, picked = played(name, phases)
    inputs = NetworkInputs(games.map)
    columns = inputs.columns._make(column.tolist() for column in inputs.columns)
    found = inputs.orders(obs, decisions, picked)
    relations, used = set(), [set(), set(), set()]
    standing = functools.cache(functools.partial(slow_standing, games))
    named = [(role, place) for role in range(NUM_BOARD) for place in found.named[role].tolist()]
    at = {where: number for number, where in enumerate(named)}
    for d, begin, slot, orders in slots_of(decisions):
        earlier = decisions.order[picked[begin:slot]].tolist()
        for n in orders:
            number = decisions.order[n]
            about = columns.source[number], columns.place[number], columns.other[number]
            expected = np.full(ROWS, NONE)
            for role, province in enumerate(about):
                if province != NONE:
                    place = obs.row[d] * len(games.board.terrain) + province
                    expected[role] = at[role, place]
                    used[role].add(place)
                    stands = standing(decisions.game[d], decisions.power[d], province)
                    expected[NUM_BOARD + role] = stands * NUM_BOARD + role
                    assert stands < NUM_STANDINGS
            relation, taken = slow_relation(columns, earlier, number)
            relations.add(relation)
            expected[-2:] = FIRST_CLASS + columns.order_class[number], FIRST_RELATION + relation
            np.testing.assert_array_equal(found.rows[n], expected)
            assert found.blocked[n] == taken
    # Only what an order names has a row.
    assert [named.tolist() for named in found.named] == [sorted(places) for places in used]
    assert found.rows[:, NUM_BOARD:].max() < NUM_KINDS
    assert phases == 0 or len(relations) > 4
    apart = inputs.orders(obs, decisions, picked, related=False)
    assert (apart.rows[:, RELATION] == NONE).all()
    np.testing.assert_array_equal(apart.rows[:, :RELATION], found.rows[:, :RELATION])
    np.testing.assert_array_equal(apart.blocked, found.blocked)


@pytest.mark.parametrize("name", MAPS)
def test_borders_share_one(name):
    board = VectorGame(name, 1).board
    borders = province_borders(board)
    for v in range(len(board.terrain)):
        here = np.flatnonzero(board.location_province == v)
        reached = board.reach[:, here].any((0, 1))
        np.testing.assert_allclose(borders[v], reached / max(1, reached.sum()))


def test_an_order_that_is_blocked_has_no_chance():
    """Two removals cannot be of one unit."""
    for phases in range(8, 20):
        games, decisions, obs, picked = played("standard", phases)
        kinds = games.table.kind[decisions.order]
        for d in range(len(decisions.game)):
            begin, end = decisions.slot_start[d], decisions.slot_start[d + 1]
            if end - begin < 2 or kinds[decisions.order_start[begin]] not in ADJUSTMENTS:
                continue
            picked = decisions.order_start[:-1].astype(np.int64)
            found = NetworkInputs(games.map).orders(obs, decisions, picked)
            sizes = 10**4, NUM_KINDS, len(picked)
            tables = [np.zeros((size, HIDDEN), np.float32) for size in sizes]
            tables = ScoreTables(*tables, weight=np.ones(HIDDEN, np.float32))
            logprob = score_orders(decisions, found, tables, picked).logprob
            assert np.isfinite(logprob[begin]) and logprob[begin + 1] == -np.inf
            return
    raise AssertionError("no decision of two adjustments was found")
