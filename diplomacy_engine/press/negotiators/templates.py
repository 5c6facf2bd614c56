"""The deals that a trained policy chooses among: at most eight with each power that it can meet.
They come from the board alone; those of all games are found at once, by sorting."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...constants import MOVE, MOVE_VIA, NONE, SUPPORT_MOVE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.vocabulary import OrderTable
from ..deals import Clause, Offers, Side
from ..talk_views import PLACES, SLOTS, TEMPLATE_OF, Template
from .negotiation import Talk
from .neighbors import PowerReach

OURS, THEIRS, BOTH = map(int, (Side.SENDER, Side.RECEIVER, Side.BOTH))
# Kind and side of all that an offer may have: the orders of PossibleDeals, a zone, peace.
CLAUSES = np.array(
    [(Clause.ORDER, side) for side in (OURS, THEIRS, THEIRS, OURS)]
    + [(Clause.KEEP_OUT, OURS), (Clause.KEEP_OUT, THEIRS), (Clause.PEACE, BOTH)]
)
_, ZONES, ASKS, HELPS, SWAPS = (np.flatnonzero(kind == TEMPLATE_OF) for kind in Template)


class PossibleDeals(NamedTuple):
    """What each power of n games could offer each other one; see talk_views.Template."""

    able: np.ndarray  # (n, P, P, SLOTS) bool, by sender and receiver: whether there is such a deal
    # (n, P, P, SLOTS, 4) int32, order numbers or NONE: the sender's move and the receiver's support
    # of it, the receiver's move and the sender's support of it
    orders: np.ndarray
    places: np.ndarray  # (n, P, P, SLOTS, PLACES) int16, provinces, as in OfferViews


def is_support(table: OrderTable, support: np.ndarray, move: int | np.ndarray) -> np.ndarray:
    return (
        (table.kind[support] == SUPPORT_MOVE)
        & (table.target[support] == table.target[move])
        & (table.other_location[support] == table.location[move])
        & (table.other_kind[support] == table.unit_kind[move])
    )


class DealChooser:
    """A negotiator that chooses among possible deals in one place: `_offers_to` takes a talk and
    groups (any, P) of partners, and returns at most one offer of each power to one of each."""

    _offers_to: Callable[[Talk, np.ndarray], Offers]

    def offers(self, talk: Talk) -> Offers:
        return self._offers_to(talk, np.ones((1, talk.games.num_powers), bool))

    def proposals(self, talk: Talk) -> Offers:
        return self._offers_to(talk, np.eye(talk.games.num_powers, dtype=bool))


def possible_deals(games: VectorGame, decisions: Decisions, rows: np.ndarray) -> PossibleDeals:
    """Return the deals that powers with units can offer each other in movement phases.

    Peace; that both keep out of a center that both can reach and neither holds (two of those that
    most units can reach); that one supports a move of the other (two for each side, into different
    provinces: centers of third powers first, then of nobody); and a support for a support.
    `decisions` are all of games `rows`, in rising order, with all legal orders.
    """
    n, powers = len(rows), games.num_powers
    shape = n, powers, powers, SLOTS
    able, orders = np.zeros(shape, bool), np.full((*shape, 4), NONE, np.int32)
    places = np.full((*shape, PLACES), NONE, np.int16)
    deals = PossibleDeals(able, orders, places)
    around, index = PowerReach(games, rows), np.full(games.num_games, NONE)
    index[rows] = np.arange(n)
    has_units = np.zeros((n, powers), bool)
    mine = index[decisions.game] != NONE
    has_units[index[decisions.game[mine]], decisions.power[mine]] = True
    meets = around.near() & has_units[:, :, None] & has_units[:, None]
    able[..., Template.PEACE] = meets
    _find_zones(deals, games, around, meets)
    _find_supports(deals, games, decisions, rows, index, meets)
    _find_swaps(deals, games)
    places[..., [0, 3]], places[..., [2, 5]] = (
        _province_of(games, games.table.location, orders[..., part]) for part in ([0, 2], [1, 3])
    )
    targets = _province_of(games, games.table.target, orders[..., [0, 2]])
    places[..., [1, 4]] = np.where(targets == NONE, places[..., [1, 4]], targets)
    return deals


def _province_of(games: VectorGame, locations: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers == NONE, NONE, games.board.location_province[locations[numbers]])


def _find_zones(
    deals: PossibleDeals, games: VectorGame, around: PowerReach, meets: np.ndarray
) -> None:
    centers, powers = games.board.center_province, np.arange(games.num_powers)
    row = np.arange(len(meets))[:, None, None]
    units = around.open_to_both(row, powers[:, None], powers) * meets[..., None]
    for slot in ZONES:
        best = units.argmax(-1)[..., None]
        possible = np.take_along_axis(units, best, -1)[..., 0] > 0
        deals.able[..., slot] = possible
        where = np.where(possible, centers[best[..., 0]], NONE)
        deals.places[..., slot, 1] = deals.places[..., slot, 4] = where
        np.put_along_axis(units, best, 0, -1)


def _find_supports(
    deals: PossibleDeals,
    games: VectorGame,
    decisions: Decisions,
    rows: np.ndarray,
    index: np.ndarray,
    meets: np.ndarray,
) -> None:
    """Write the supports that can be offered to `deals`; `index` (E,) of `rows`, or NONE."""
    table, board, state, powers = games.table, games.board, games.state, games.num_powers
    provinces, locations = len(board.terrain), len(board.location_province)
    of_slot = decisions.slot_decision
    of_order = np.repeat(of_slot, np.diff(decisions.order_start))
    kinds = table.kind[decisions.order]

    def of_kind(*wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows (of n) and powers that could give an order of a kind, and its number."""
        at = np.flatnonzero(np.isin(kinds, wanted))
        at = at[index[decisions.game[of_order[at]]] != NONE]
        d = of_order[at]
        return index[decisions.game[d]], decisions.power[d].astype(np.int64), decisions.order[at]

    g, helper, support = of_kind(SUPPORT_MOVE)
    e, goal = rows[g], table.target[support].astype(np.int64)
    source = board.location_province[table.other_location[support]].astype(np.int64)
    place = board.location_province[goal].astype(np.int64)
    mover, there = state.unit_power[e, source].astype(np.int64), state.unit_power[e, place]
    other = (there != NONE) & (there != mover) & (there != helper)
    valid = meets[g, mover, helper] & ((there == NONE) | other)
    center = board.province_center[place]
    owner = np.where(center == NONE, NONE, state.center_owner[e, center])
    third = (owner != NONE) & (owner != mover) & (owner != helper)
    neutral = (center != NONE) & (owner == NONE)
    rank = np.select([third, neutral, other], [0, 1, 2], 3)
    # The move itself, by game, source and goal; by land or sea if it can be had both ways.
    row, _, move = of_kind(MOVE, MOVE_VIA)
    where = board.location_province[table.location[move]].astype(np.int64)
    keys = ((row * provinces + where) * locations + table.target[move]) * 2
    keys += table.kind[move] == MOVE_VIA
    order = np.argsort(keys, kind="stable")
    keys, move = keys[order] >> 1, move[order]
    wanted = (g * provinces + source) * locations + goal
    at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    valid &= keys[at] == wanted if len(keys) else False
    # The best into each province, and of these the best of each pair.
    pair = (g * powers + mover) * powers + helper
    into = ((pair * 4 + rank) * provinces + place) * provinces + source
    valid = np.flatnonzero(valid)
    valid = valid[np.argsort(into[valid], kind="stable")]
    valid = valid[_first_of(into[valid] // provinces)]
    begins = np.flatnonzero(_first_of(pair[valid]))
    turn = np.arange(len(valid)) - np.repeat(begins, np.diff([*begins, len(valid)]))
    for number, (ask, help_) in enumerate(zip(ASKS, HELPS)):
        some = valid[turn == number]
        what = np.column_stack([move[at[some]], support[some]])
        deals.able[g[some], mover[some], helper[some], ask] = True
        deals.orders[g[some], mover[some], helper[some], ask, :2] = what
        deals.able[g[some], helper[some], mover[some], help_] = True
        deals.orders[g[some], helper[some], mover[some], help_, 2:] = what


def _first_of(keys: np.ndarray) -> np.ndarray:
    return np.diff(keys, prepend=NONE) != 0


def _find_swaps(deals: PossibleDeals, games: VectorGame) -> None:
    """Add the first deal in which each supports the other and no unit is promised twice."""
    able, orders, _ = deals
    (slot,) = SWAPS
    for ask in ASKS[::-1]:
        for help_ in HELPS[::-1]:
            joined = np.concatenate([orders[..., ask, :2], orders[..., help_, 2:]], -1)
            units = _province_of(games, games.table.location, joined)
            twice = (units[..., 0] == units[..., 3]) | (units[..., 1] == units[..., 2])
            both = able[..., ask] & able[..., help_] & ~twice
            orders[..., slot, :] = np.where(both[..., None], joined, orders[..., slot, :])
            able[..., slot] |= both


def deal_offers(
    possible: PossibleDeals,
    row: np.ndarray,
    game: np.ndarray,
    sender: np.ndarray,
    receiver: np.ndarray,
    slot: np.ndarray,
) -> Offers:
    """Return offers (O,) of possible deals; `row` is where these have each of `game`."""
    at = row, sender, receiver, slot
    numbers, places, template = possible.orders[at], possible.places[at], TEMPLATE_OF[slot]
    is_zone, is_peace = template == Template.ZONE, template == Template.PEACE
    nothing = np.full(len(game), NONE)
    # In the order of CLAUSES, (O, 7); those that an offer has are kept.
    has = np.column_stack([numbers != NONE, is_zone, is_zone, is_peace])
    province = np.column_stack([places[:, [0, 2, 3, 5, 1, 4]], nothing])
    order = np.column_stack([numbers, nothing, nothing, nothing])
    kind, side = (np.broadcast_to(column, has.shape) for column in CLAUSES.T)
    clauses = (column[has] for column in (kind, side, province, order))
    return Offers.of(game, sender, receiver, np.cumsum([0, *has.sum(1)]), *clauses)


def read_offers(games: VectorGame, offers: Offers) -> tuple[np.ndarray, np.ndarray]:
    """Return the template (O,) of each offer, NONE for one that is of none, and its places. Places
    are (O, PLACES) int16, from the sender's side. Whoever wrote the offers, the same deal is read
    alike; a demilitarised zone is read as one to keep out of."""
    template = np.full(offers.count, NONE, np.int8)
    places = np.full((offers.count, PLACES), NONE, np.int16)
    for o in range(offers.count):
        clauses = slice(*offers.clause_start[o : o + 2])
        kind, side, province, order = (array[clauses] for array in offers[4:])
        if kind.tolist() == [Clause.PEACE]:
            template[o] = Template.PEACE
        elif kind.tolist() == [Clause.ZONE] or (
            (kind.tolist(), sorted(side)) == ([Clause.KEEP_OUT] * 2, [OURS, THEIRS])
            and province[0] == province[1]
        ):
            if 0 <= province[0] < len(games.board.terrain):
                template[o], places[o, [1, 4]] = Template.ZONE, province[0]
        elif (kind == Clause.ORDER).all():
            template[o], places[o] = _read_orders(games, side, order)
    return template, places


def _read_orders(games: VectorGame, side: np.ndarray, order: np.ndarray) -> tuple[int, np.ndarray]:
    table, nothing = games.table, (NONE, np.full(PLACES, NONE, np.int16))
    legal = ((order >= 0) & (order < len(table.kind))).all()
    if not legal or not np.isin(table.kind[order], (MOVE, MOVE_VIA, SUPPORT_MOVE)).all():
        return nothing
    supports = table.kind[order] == SUPPORT_MOVE
    by = {(int(from_side), bool(helps)): n for from_side, helps, n in zip(side, supports, order)}
    moves = [mover for mover in (OURS, THEIRS) if (mover, False) in by]
    # None at all, two of one side, or a move without support.
    if not 0 < len(by) == len(order) == 2 * len(moves):
        return nothing
    places = nothing[1].copy()
    for mover in moves:
        move, support = by[mover, False], by.get((THEIRS if mover == OURS else OURS, True))
        if support is None or not is_support(table, support, move):
            return nothing
        where = [table.location[move], table.target[move], table.location[support]]
        first = 0 if mover == OURS else 3
        places[first : first + 3] = games.board.location_province[where]
    if len(moves) == 2:
        return Template.SWAP, places
    return Template.ASK if moves == [OURS] else Template.HELP, places
