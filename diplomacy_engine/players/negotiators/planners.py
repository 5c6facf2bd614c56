"""`dealer` and `nash`: negotiators that try what a deal would bring before they offer or agree."""

from collections.abc import Callable, Iterator

import numpy as np

from ...constants import MOVE, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from ...games.decisions import Decisions
from ...press.deals import Clause, Offers, Side, make_offers
from ...press.table import PEACE_ALONE
from ..negotiation import Silent, Talk, best_of_pairs, partner_of
from ..protocols import Player
from .neighbors import Surroundings
from .trials import EPSILON, Trials

MOST_MOVES = 2  # of a power, for which it asks for support; the likeliest
OURS, THEIRS = Side.SENDER, Side.RECEIVER


class Position:
    """One game of a talk, as far as templates of deals need it.

    Args:
        talk, row: somebody of this game.
        around: of the talk.
        profiles: (K, V) int32 of the game.
    """

    def __init__(self, talk: Talk, row: int, around: Surroundings, profiles: np.ndarray):
        self.games, self.decisions, self.profiles = talk.games, talk.decisions, profiles
        self.around, self.row, self.game = around, row, int(talk.game[row])
        first = np.searchsorted(talk.decisions.game, self.game)
        last = np.searchsorted(talk.decisions.game, self.game, "right")
        self.decision_of = {int(talk.decisions.power[d]): d for d in range(first, last)}
        self._lists: dict[int, list[tuple[int, np.ndarray]]] = {}
        self._moves: dict[int, list[tuple[int, int]]] = {}
        self._supports: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def lists(self, power: int) -> list[tuple[int, np.ndarray]]:
        """Return (province, legal orders) of a power's units."""
        if power not in self._lists:
            decisions: Decisions = self.decisions
            d = self.decision_of.get(power)
            slots = () if d is None else range(*decisions.slot_start[d : d + 2])
            self._lists[power] = [
                (
                    int(decisions.slot_province[s]),
                    decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]],
                )
                for s in slots
            ]
        return self._lists[power]

    def likely_moves(self, power: int) -> list[tuple[int, int]]:
        """Return (province, order number) of the moves that most profiles have, likeliest first.

        Of equally likely ones those into centers come first, and among these other powers' ones.
        """
        if power in self._moves:
            return self._moves[power]
        board, table = self.games.board, self.games.table
        found = []
        for v, _ in self.lists(power):
            numbers, counts = np.unique(self.profiles[:, v], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist()):
                if number == NONE or table.kind[number] not in (MOVE, MOVE_VIA):
                    continue
                goal = board.location_province[table.target[number]]
                center = board.province_center[goal] != NONE
                own = self.around.held[self.row, power, goal]
                found.append((-count, not center, own, v, number))
        likely = self._moves[power] = [(v, n) for *_, v, n in sorted(found)[:MOST_MOVES]]
        return likely

    def supports(self, power: int, number: int) -> list[tuple[int, int]]:
        """Return (province, order number) of a power's supports of a move."""
        if (power, number) in self._supports:
            return self._supports[power, number]
        table, found = self.games.table, []
        for v, orders in self.lists(power):
            same = table.target[orders] == table.target[number]
            same &= table.kind[orders] == SUPPORT_MOVE
            same &= table.other_location[orders] == table.location[number]
            same &= table.other_kind[orders] == table.unit_kind[number]
            found += [(v, int(n)) for n in orders[same][:1]]
        self._supports[power, number] = found
        return found

    def defences(self, power: int, other: int) -> list[tuple[int, int]]:
        """Return (province, order number) of supports to hold by which a power helps another."""
        table, unit_power = self.games.table, self.games.state.unit_power[self.game]
        found = []
        for v, orders in self.lists(power):
            holds = orders[table.kind[orders] == SUPPORT_HOLD]
            where = self.games.board.location_province[table.target[holds]]
            found += [(v, int(n)) for n in holds[unit_power[where] == other][:1]]
        return found


def _order(side: Side, pick: tuple[int, int]) -> tuple[int, int, int, int]:
    return Clause.ORDER, side, *pick


def support_deals(position: Position, me: int, other: int, mine: bool) -> list[tuple]:
    """Return deals by which one side supports a likely move of the other; one a move."""
    attacker, helper = (me, other) if mine else (other, me)
    sides = (OURS, THEIRS) if mine else (THEIRS, OURS)
    return [
        (_order(sides[0], move), _order(sides[1], helps[0]))
        for move in position.likely_moves(attacker)
        if (helps := position.supports(helper, move[1]))
    ]


def swaps(position: Position, me: int, other: int) -> list[tuple]:
    """Return deals by which each side supports a likely move of the other."""
    found = []
    for ours in position.likely_moves(me):
        for theirs in position.likely_moves(other):
            helps = [u for u in position.supports(other, ours[1]) if u[0] != theirs[0]]
            mine = [u for u in position.supports(me, theirs[1]) if u[0] != ours[0]]
            if helps and mine:
                found.append(
                    (
                        _order(OURS, ours),
                        _order(THEIRS, helps[0]),
                        _order(THEIRS, theirs),
                        _order(OURS, mine[0]),
                    )
                )
    return found


def closed_centers(position: Position, me: int, other: int) -> list[tuple]:
    """Return the deal that both keep out of a center that both can reach and neither holds."""
    around, row, board = position.around, position.row, position.games.board
    both = (around.reach[row, me] > 0) & (around.reach[row, other] > 0)
    free = both & ~around.held[row, me] & ~around.held[row, other]
    goals = board.center_province[free[board.center_province]]
    if not len(goals):
        return []
    units = around.reach[row, me, goals] + around.reach[row, other, goals]
    goal = int(goals[units.argmax()])
    return [tuple((Clause.KEEP_OUT, side, goal, NONE) for side in (OURS, THEIRS))]


def defence_deals(position: Position, me: int, other: int) -> list[tuple]:
    """Return the deal that each side supports a unit of the other to hold."""
    mine, theirs = position.defences(me, other), position.defences(other, me)
    if not mine or not theirs:
        return []
    return [(_order(OURS, mine[0]), _order(THEIRS, theirs[0]))]


class Planner(Silent):
    """Offers the best of some templates, by what it would bring with orders as its player gives.

    Args:
        player: gives the orders, and is taken to give those of everybody when deals are tried.
        name: shown in results.
        profiles: joint orders on which each deal is tried.
    """

    value = "claims"

    def __init__(self, player: Player, name: str, profiles: int = 8):
        super().__init__(player, name)
        self.trials = Trials(player, profiles, self.value)

    def templates(self, position: Position, me: int, other: int) -> Iterator[tuple]:
        """Yield the clauses of each deal to try with another power."""
        raise NotImplementedError

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return how much offers are wanted, from both sides' gains; at 0 and below not at all."""
        raise NotImplementedError

    def agrees(self, talk: Talk, sender: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Return whether powers (n,) agree to what brings them `gain`."""
        return gain > EPSILON

    def partners(self, talk: Talk, around: Surroundings) -> np.ndarray:
        """Return with whom each power would deal at all, (n, P) bool."""
        return around.near()[self._seats(talk)]

    def worth(self, talk: Talk, gains: np.ndarray) -> np.ndarray:
        """Return what gains (n, P) of all powers are to those asked, (n,)."""
        return gains[self._seats(talk)]

    def wishes(self, talk: Talk) -> np.ndarray:
        """Return with whom each power wishes peace, (n, P) bool: neighbors, if it would agree."""
        around = Surroundings(talk.games, talk.game)
        seat, other = np.nonzero(self.partners(talk, around))
        wish = np.zeros((len(talk.game), talk.games.num_powers), bool)
        if len(seat):
            rows = [(talk.game[s], talk.power[s], q, PEACE_ALONE) for s, q in zip(seat, other)]
            gains, possible = self.trials.gains(talk, seat, make_offers(rows))
            asking = talk.take(seat)
            gain = self.worth(asking, gains)
            wish[seat, other] = possible & self.agrees(asking, other, gain)
        return wish

    def offers(self, talk: Talk) -> Offers:
        """Return at most one offer of each power."""
        return self._best(talk, lambda seats, others: seats)

    def proposals(self, talk: Talk) -> Offers:
        """Return at most one offer of each power to each other one."""
        powers = talk.games.num_powers
        return self._best(talk, lambda seats, others: seats * powers + others)

    def _best(self, talk: Talk, group: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Offers:
        """Return the best offer of each group of seats and partners, if any is wanted."""
        around = Surroundings(talk.games, talk.game)
        games, which = np.unique(talk.game, return_inverse=True)
        profiles = self.trials.draw(talk.games, games)
        rows, seen = [], {}
        for seat, other in zip(*np.nonzero(self.partners(talk, around))):
            game = which[seat]
            if game not in seen:
                seen[game] = Position(talk, seat, around, profiles[game])
            me, q = int(talk.power[seat]), int(other)
            rows += [(seat, q, clauses) for clauses in self.templates(seen[game], me, q)]
        if not rows:
            return make_offers([])
        seats, others = (np.array(column) for column in list(zip(*rows))[:2])
        offers = make_offers([(talk.game[s], talk.power[s], q, clauses) for s, q, clauses in rows])
        gains, possible = self.trials.gains(talk, seats, offers)
        n = np.arange(len(rows))
        score = self.score(self.worth(talk.take(seats), gains), gains[n, others])
        score = np.where(possible, score, -np.inf)
        groups = group(seats, others)
        best = np.lexsort((n, -score, groups))  # of each group its best comes first
        best = best[np.unique(groups[best], return_index=True)[1]]
        return offers.take(best[score[best] > 0])

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return whether each offer is agreed to, (n,) bool."""
        n = np.arange(len(talk.game))
        gains, possible = self.trials.gains(talk, n, offers)
        return possible & self.agrees(talk, offers.sender, self.worth(talk, gains))

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return which offers are picked, (n,) bool: those that it would rather make itself."""
        n = np.arange(len(talk.game))
        gains, possible = self.trials.gains(talk, n, offers)
        theirs = gains[n, partner_of(talk, offers)]
        score = self.score(self.worth(talk, gains), theirs)
        return best_of_pairs(talk, offers, np.where(possible, score, 0.0))

    @staticmethod
    def _seats(talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(talk.game)), talk.power


class Nash(Planner):
    """Offers the deal with the largest product of both sides' gains, if both gain.

    This is the solution of Nash (1950), with no deal as the disagreement point. Agrees to what
    brings a gain.
    """

    def templates(self, position: Position, me: int, other: int) -> Iterator[tuple]:
        """Yield peace, a center closed to both, supports of likely moves, and swaps of these."""
        yield PEACE_ALONE
        yield from closed_centers(position, me, other)
        yield from support_deals(position, me, other, mine=True)
        yield from support_deals(position, me, other, mine=False)
        yield from swaps(position, me, other)

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return the product of the gains."""
        return np.where((mine > EPSILON) & (theirs > EPSILON), mine * theirs, 0.0)


class Dealer(Planner):
    """Looks at centers alone, as the partners of the DeepDip thesis' later environment do.

    Offers what brings itself most of them. Agrees to what brings more, or as many if the sender has
    at least two centers less than itself.
    """

    value = "centers"

    def templates(self, position: Position, me: int, other: int) -> Iterator[tuple]:
        """Yield the thesis' four: help each other's units, peace, help my attack, help yours."""
        yield from defence_deals(position, me, other)
        yield PEACE_ALONE
        yield from support_deals(position, me, other, mine=True)
        yield from support_deals(position, me, other, mine=False)

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return the own gain."""
        return np.where(mine > EPSILON, mine, 0.0)

    def agrees(self, talk: Talk, sender: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Return whether powers (n,) agree to what brings them `gain` centers."""
        owner = talk.games.state.center_owner[talk.game]
        own = (owner == talk.power[:, None]).sum(1)
        theirs = (owner == np.asarray(sender)[:, None]).sum(1)
        return (gain > EPSILON) | ((np.abs(gain) <= EPSILON) & (theirs <= own - 2))
