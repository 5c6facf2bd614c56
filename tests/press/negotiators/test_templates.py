"""The deals that a policy chooses among: all can be made, none that should be there is missing."""

import numpy as np
import pytest

from diplomacy_engine import Game, VectorGame, make_bot
from diplomacy_engine.constants import NONE, OrderKind
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.press.deals import Clause, OfferResult, Side, make_offers
from diplomacy_engine.press.negotiators import templates
from diplomacy_engine.press.negotiators.neighbors import PowerReach
from diplomacy_engine.press.press import Press
from diplomacy_engine.press.talk_views import TEMPLATE_OF, TEMPLATES, Template
from tests.support.press import ATTACK

CLAUSE_FIELDS = ("kind", "side", "province", "order")


def plain_supports(games, decisions, e: int) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """Return (move, support) by mover and helper, from every pair of orders of two powers."""
    table, unit_power = games.table, games.state.unit_power[e]
    province = games.board.location_province
    orders: dict[int, list[int]] = {}
    for d in np.flatnonzero(decisions.game == e):
        first, last = decisions.order_start[decisions.slot_start[[d, d + 1]]]
        orders[int(decisions.power[d])] = decisions.order[first:last].tolist()
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for mover, moves in orders.items():
        for move in moves:
            goal = province[table.target[move]]
            if table.kind[move] not in (OrderKind.MOVE, OrderKind.MOVE_VIA):
                continue
            for helper, supports in orders.items():
                if helper == mover or unit_power[goal] in (mover, helper):
                    continue
                found.setdefault((mover, helper), set()).update(
                    (move, support)
                    for support in supports
                    if table.kind[support] == OrderKind.SUPPORT_MOVE
                    and table.other_location[support] == table.location[move]
                    and table.target[support] == table.target[move]
                )
    return found


@pytest.mark.parametrize(
    "map_name, count, phases, plain",
    [
        ("small", 20, 30, 3),
        ("three", 20, 40, 3),
        pytest.param("standard", 8, 12, 1, marks=pytest.mark.slow),
    ],
)
def test_what_is_possible_can_be_agreed_upon(map_name, count, phases, plain):
    """Each deal is confirmed if it is the first, and read back; nothing better was left out."""
    rng = np.random.default_rng(3)
    games = VectorGame(map_name, count, seed=3, threads=1)
    press, bot, seen, swaps = Press(games, "offers"), make_bot("chaos"), set(), 0
    for _ in range(phases):
        full, rows = games.decisions(), np.flatnonzero(press.talking())
        found = templates.possible_deals(games, full, rows)
        assert not (found.able & ~found.able[..., [Template.PEACE]]).any()
        deals = rng.permutation(np.argwhere(found.able))
        row, sender, receiver, slot = deals[np.unique(deals[:, 0], return_index=True)[1]].T
        offers = templates.deal_offers(found, row, rows[row], sender, receiver, slot)
        template, places = templates.read_offers(games, offers)
        assert (template == TEMPLATE_OF[slot]).all()
        assert (places == found.places[row, sender, receiver, slot]).all()
        results = press.settle(offers, np.ones(offers.count, bool), full)
        assert (results == OfferResult.CONFIRMED).all()
        seen |= set(template.tolist())
        near = PowerReach(games, rows).near()
        for n in range(min(plain, len(rows))):
            for (mover, helper), pairs in plain_supports(games, full, rows[n]).items():
                if not near[n, mover, helper]:
                    assert not found.able[n, mover, helper].any()
                    continue
                check_supports(games, found, n, int(rows[n]), mover, helper, pairs)
            check_zones(games, full, found, n, int(rows[n]), near[n])
            swaps += check_swaps(games, found, n)
        bound = press.bound(full)
        orders = orders_of(games, bot, bound)
        press.correct(orders, bound)
        games.step(orders)
    assert seen >= {Template.PEACE, Template.ZONE, Template.ASK, Template.HELP} and swaps


def check_supports(games, found, n, e, mover, helper, pairs) -> None:
    """The best two goals of all pairs of orders are there, from both sides."""
    board, state = games.board, games.state

    def rank(goal: int) -> int:
        center, unit = board.province_center[goal], state.unit_power[e, goal]
        owner = NONE if center == NONE else state.center_owner[e, center]
        if owner not in (NONE, mover, helper):
            return 0
        if center != NONE and owner == NONE:
            return 1
        return 2 if unit != NONE else 3

    goals = {int(board.location_province[games.table.target[move]]) for move, _ in pairs}
    expected = sorted(goals, key=lambda goal: (rank(goal), goal))[: len(templates.ASKS)]
    asked = found.orders[n, mover, helper, templates.ASKS, :2]
    assert (found.orders[n, helper, mover, templates.HELPS, 2:] == asked).all()
    assert found.able[n, mover, helper, templates.ASKS].sum() == len(expected)
    for goal, pair in zip(expected, asked.tolist()):
        assert tuple(pair) in pairs
        assert board.location_province[games.table.target[pair[0]]] == goal


def check_zones(games, decisions, found, n, e, near) -> None:
    """Of the centers that units of both can move to and neither holds, the best two are there."""
    board, state, table = games.board, games.state, games.table
    centers = board.center_province.tolist()
    reach = np.zeros((games.num_powers, len(board.terrain)), int)
    for d in np.flatnonzero(decisions.game == e):
        for slot in range(*decisions.slot_start[d : d + 2]):
            orders = decisions.order[slice(*decisions.order_start[slot : slot + 2])]
            goals = table.target[orders[table.kind[orders] == OrderKind.MOVE]]
            reach[decisions.power[d], np.unique(board.location_province[goals])] += 1
    for p, q in np.argwhere(near):
        expected = {}
        for c, center in enumerate(centers):
            held = {state.center_owner[e, c], state.unit_power[e, center]}
            if reach[p, center] and reach[q, center] and not held & {p, q}:
                expected[center] = reach[p, center] + reach[q, center]
        best = sorted(expected, key=lambda center: (-expected[center], centers.index(center)))
        best = best[: len(templates.ZONES)]
        assert found.able[n, p, q, templates.ZONES].tolist() == [
            k < len(best) for k in range(len(templates.ZONES))
        ]
        places = found.places[n, p, q, templates.ZONES[: len(best)]]
        assert places[:, 1].tolist() == places[:, 4].tolist() == best
        assert (places[:, [0, 2, 3, 5]] == NONE).all()


def check_swaps(games, found, n) -> int:
    """Those that support each other promise four different units; return how many there are."""
    place, (swap,), count = games.table.location, templates.SWAPS, 0
    for p, q in np.argwhere(~np.eye(games.num_powers, dtype=bool)):
        expected = None
        for ask in templates.ASKS[found.able[n, p, q, templates.ASKS]]:
            for help_ in templates.HELPS[found.able[n, p, q, templates.HELPS]]:
                move, support = found.orders[n, p, q, ask, :2].tolist()
                other_move, other_support = found.orders[n, p, q, help_, 2:].tolist()
                four = [move, support, other_move, other_support]
                units = games.board.location_province[place[four]].tolist()
                if expected is None and len(set(units)) == 4:
                    expected = four
        assert found.able[n, p, q, swap] == (expected is not None)
        count += expected is not None
        assert expected in (None, found.orders[n, p, q, swap].tolist())
    return count


def test_a_power_without_units_does_not_talk():
    """Not even one whose center somebody stands beside."""
    games = Game.from_position(
        "three S1901M; ENGLAND A GAL = LON; ITALY = VIE; RUSSIA A SER = MOS"
    ).vector_game
    rows, powers = np.zeros(1, np.int64), games.map.power_index
    assert PowerReach(games, rows).near()[0, powers["ENGLAND"], powers["ITALY"]]
    found = templates.possible_deals(games, games.decisions(), rows)
    assert not found.able[0, powers["ITALY"]].any() and not found.able[0, :, powers["ITALY"]].any()
    assert found.able[0, powers["ENGLAND"], powers["RUSSIA"], Template.PEACE]


def test_offers_of_others_are_read():
    """A zone by its own clause is one; what no template has is of none."""
    games = Game.from_position(ATTACK).vector_game
    number, index = games.vocabulary.number, games.map.province_index
    both, ours, theirs = Side.BOTH, Side.SENDER, Side.RECEIVER

    def promise(text: str, side: Side) -> tuple[int, int, int, int]:
        return Clause.ORDER, side, index[text[2:5]], number[text]

    move, support = "A GRE - SER", "A ALB S A GRE - SER"
    cases = (
        ([(Clause.ZONE, both, index["BUL"], NONE)], Template.ZONE),
        ([(Clause.ZONE, both, len(games.map.provinces), NONE)], NONE),
        ([(Clause.ZONE, both, -2, NONE)], NONE),
        ([(Clause.KEEP_OUT, s, index["BUL"], NONE) for s in (theirs, ours)], Template.ZONE),
        ([(Clause.KEEP_OUT, s, index["BUL"], NONE) for s in (ours, ours)], NONE),
        ([(Clause.KEEP_OUT, ours, index["BUL"], NONE)], NONE),
        ([(Clause.PEACE, both, NONE, NONE)], Template.PEACE),
        ([(Clause.PEACE, both, NONE, NONE)] * 2, NONE),
        ([promise(support, theirs), promise(move, ours)], Template.ASK),
        ([promise(support, ours), promise(move, theirs)], Template.HELP),
        ([promise(support, ours), promise(move, ours)], NONE),
        ([promise("A GAL H", ours), promise(move, ours)], NONE),
        ([promise(move, ours)], NONE),
        ([promise("A ALB S A SER", theirs), promise(move, ours)], NONE),
        ([promise("A GAL S A VIE - BUD", theirs), promise(move, ours)], NONE),
        ([(Clause.ORDER, ours, 0, NONE), promise(support, theirs)], NONE),
        ([(Clause.ORDER, ours, 0, 10**9), promise(support, theirs)], NONE),
    )
    offers = make_offers([(0, 0, 1, clauses) for clauses, _ in cases])
    template, places = templates.read_offers(games, offers)
    assert template.tolist() == [expected for _, expected in cases]
    empty = offers.take(np.zeros(1, np.int64))._replace(
        clause_start=np.zeros(2, np.int32), **dict.fromkeys(CLAUSE_FIELDS, np.zeros(0, np.int64))
    )
    assert templates.read_offers(games, empty)[0].tolist() == [NONE]
    known = template != NONE
    assert (places[~known] == NONE).all() and (places[template == Template.PEACE] == NONE).all()
    asked = [games.map.provinces[v] for v in places[8, :3]]
    assert asked == ["GRE", "SER", "ALB"] and (places[8, 3:] == NONE).all()
    assert (places[9, 3:] == places[8, :3]).all()
    assert len(TEMPLATES) == 1 + TEMPLATE_OF.max()
