"""Random deals, and what they leave to order, said plainly; a player of fixed orders."""

from typing import NamedTuple

import numpy as np

from diplomacy_engine import Decisions, VectorGame
from diplomacy_engine.constants import NONE, OrderKind
from diplomacy_engine.press.deals import Clause, OfferResult, Offers, Side, make_offers
from diplomacy_engine.press.press import Press

# ENGLAND and ITALY each attack a center of RUSSIA that one unit holds.
ATTACK = (
    "three S1901M; ENGLAND A GRE, A GAL = LON GRE; ITALY A VIE, A ALB = ROM VIE; "
    "RUSSIA A SER, A BUD = MOS SER BUD NWY SWE"
)
MOVES = (OrderKind.MOVE, OrderKind.MOVE_VIA)
SUPPORTS = (OrderKind.SUPPORT_HOLD, OrderKind.SUPPORT_MOVE)


class Asked(NamedTuple):
    """What one clause of a confirmed deal asks of one power."""

    game: int
    power: int
    other: int
    kind: Clause
    province: int
    order: int


def asked_by(games: VectorGame, offers: Offers, o: int) -> list[Asked]:
    """Return what offer o asks of both sides, `peace` and `zone` taken apart."""
    asked, e, state = [], int(offers.game[o]), games.state
    sides = ((offers.sender[o], offers.receiver[o]), (offers.receiver[o], offers.sender[o]))
    for k in range(offers.clause_start[o], offers.clause_start[o + 1]):
        kind, v, order = Clause(offers.kind[k]), int(offers.province[k]), int(offers.order[k])
        for side, (me, other) in zip((Side.SENDER, Side.RECEIVER), sides):
            if offers.side[k] not in (side, Side.BOTH):
                continue
            parts = {Clause.ZONE: (Clause.KEEP_OUT, Clause.LEAVE)}.get(kind, (kind,))
            provinces = [v]
            if kind == Clause.PEACE:
                owned = games.board.center_province[state.center_owner[e] == other]
                provinces = {*np.flatnonzero(state.unit_power[e] == other), *owned}
                parts = (Clause.KEEP_OUT,)
            asked += [
                Asked(e, int(me), int(other), p, int(v), order) for p in parts for v in provinces
            ]
    return asked


def breaks(games: VectorGame, power: int, v: int, number: int, asked: Asked) -> bool:
    """Tell whether an order of the unit in province v breaks what was asked of its power."""
    table = games.table
    kind = OrderKind(int(table.kind[number]))
    aiming = (*MOVES, OrderKind.SUPPORT_MOVE, OrderKind.CONVOY)
    aim = games.board.location_province[table.target[number]] if kind in aiming else None
    if asked.power != power:
        return False
    if asked.kind == Clause.KEEP_OUT:
        return aim == asked.province
    if asked.province != v:
        return False
    if asked.kind == Clause.LEAVE:
        return kind not in MOVES
    holds = table.kind[asked.order] == OrderKind.HOLD
    return number != asked.order and not (holds and kind in SUPPORTS)


def random_offers(games: VectorGame, decisions: Decisions, rng: np.random.Generator) -> Offers:
    """Return an offer of every deciding power to anybody; most could be confirmed."""
    rows, provinces = [], len(games.board.terrain)
    index = {(e, p): d for d, (e, p) in enumerate(zip(decisions.game, decisions.power))}
    for e, p in index:
        q = int(rng.integers(games.num_powers))
        clauses = []
        for _ in range(rng.integers(1, 4)):
            kind = Clause(int(rng.integers(5)))
            side = Side(int(rng.integers(2)))
            other = index.get((e, p if side == Side.SENDER else q))
            if kind == Clause.ORDER:
                if other is None:
                    continue
                s = rng.integers(decisions.slot_start[other], decisions.slot_start[other + 1])
                n = rng.integers(decisions.order_start[s], decisions.order_start[s + 1])
                clauses.append((kind, side, decisions.slot_province[s], decisions.order[n]))
            elif kind == Clause.PEACE:
                clauses.append((kind, Side.BOTH, -1, -1))
            else:
                side = Side.BOTH if kind == Clause.ZONE else side
                clauses.append((kind, side, rng.integers(provinces), -1))
        if clauses:
            rows.append((e, p, q, clauses))
    return make_offers(rows)


def talk_at_random(press: Press, rng: np.random.Generator) -> tuple[list[Asked], np.ndarray]:
    """Hold the rounds of a phase with random offers and answers; return what was confirmed."""
    games, asked, results = press.games, [], []
    for _ in range(press.rounds):
        decisions = games.decisions()
        moving = press.talking()
        offers = random_offers(games, decisions.take(moving[decisions.game]), rng)
        found = press.settle(offers, rng.random(offers.count) < 0.8, decisions)
        for o in np.flatnonzero(found == OfferResult.CONFIRMED):
            asked += asked_by(games, offers, o)
        results.append(found)
    return asked, np.concatenate(results)


class FixedOrders:
    """Gives the same orders in every position; units without one hold."""

    name = "fixed"

    def __init__(self, *texts: str):
        self.texts = texts

    def act(self, games, decisions):
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        given = [games.vocabulary.number[text] for text in self.texts]
        where = {
            int(games.board.location_province[games.table.location[number]]): number
            for number in given
        }
        for s, v in enumerate(decisions.slot_province.tolist()):
            numbers[s] = where.get(v, NONE)
        return numbers
