"""Negotiators that compute the gain of a deal. `breaker` breaks deals, `grudge` and `sanction`
retaliate (Kramar et al. 2022). They consider only deals about the likeliest moves."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from ...constants import MOVE, MOVE_VIA, NONE, SUPPORT_HOLD
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.protocols import Player
from ...rules.state import in_movement
from ..deals import Clause, Offers, Side, make_offers
from ..press import PEACE_ALONE
from .negotiation import Silent, Talk, best_of_pairs, partner_of
from .neighbors import PowerReach
from .templates import is_support
from .trials import EPSILON, Trials

GRUDGE_YEARS = 3
MOST_MOVES = 2  # of a power, for which it asks for support; the likeliest
OURS, THEIRS = Side.SENDER, Side.RECEIVER


def promise(side: Side, province: int, order: int) -> tuple[int, int, int, int]:
    return Clause.ORDER, side, province, order


class LikelyOptions:
    """The part of a game that possible deals need; these are about likely moves. `profiles` (K, V)
    are those of the game; `orders` are the legal ones, by the province of the unit."""

    def __init__(self, talk: Talk, row: int, around: PowerReach, profiles: np.ndarray):
        games, decisions, game = talk.games, talk.decisions, int(talk.game[row])
        self.board, self.table = games.board, games.table
        self.unit_power = games.state.unit_power[game]
        first, last = np.searchsorted(decisions.game, [game, game + 1])
        starts = decisions.order_start
        self.orders = {
            int(decisions.slot_province[s]): decisions.order[starts[s] : starts[s + 1]]
            for s in range(decisions.slot_start[first], decisions.slot_start[last])
        }
        self.around, self.row, self.profiles = around, row, profiles
        self.likely_moves = cache(self._likely_moves)

    def units(self, power: int) -> list[int]:
        return [v for v in self.orders if self.unit_power[v] == power]

    def _likely_moves(self, power: int) -> list[tuple[int, int]]:
        """Return (province, order number) of the moves that most profiles have, likeliest first. Of
        equally likely ones those into centers come first, and among these other powers' ones."""
        board, table, likely = self.board, self.table, []
        for v in self.units(power):
            numbers, counts = np.unique(self.profiles[:, v], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist()):
                if number == NONE or table.kind[number] not in (MOVE, MOVE_VIA):
                    continue
                goal = board.location_province[table.target[number]]
                center = board.province_center[goal] != NONE
                own = self.around.held[self.row, power, goal]
                likely.append((-count, not center, own, v, number))
        return [(v, n) for *_, v, n in sorted(likely)[:MOST_MOVES]]

    def supports(self, power: int, move: int) -> list[tuple[int, int]]:
        return [
            (v, int(number))
            for v in self.units(power)
            for number in self.orders[v][is_support(self.table, self.orders[v], move)][:1]
        ]

    def defences(self, power: int, other: int) -> list[tuple[int, int]]:
        """Return (province, order number) of supports to hold by which a power helps another. Of
        each unit only the first that it could help."""
        supports_by_unit = []
        for v in self.units(power):
            supports = self.orders[v][self.table.kind[self.orders[v]] == SUPPORT_HOLD]
            helped = self.board.location_province[self.table.other_location[supports]]
            theirs = supports[self.unit_power[helped] == other]
            supports_by_unit += [(v, int(number)) for number in theirs[:1]]
        return supports_by_unit


def support_deals(options: LikelyOptions, me: int, other: int, mine: bool) -> list[tuple]:
    attacker, helper = (me, other) if mine else (other, me)
    sides = (OURS, THEIRS) if mine else (THEIRS, OURS)
    return [
        (promise(sides[0], *move), promise(sides[1], *helps[0]))
        for move in options.likely_moves(attacker)
        if (helps := options.supports(helper, move[1]))
    ]


def swaps(options: LikelyOptions, me: int, other: int) -> list[tuple]:
    deals = []
    for ours in options.likely_moves(me):
        for theirs in options.likely_moves(other):
            helps = [u for u in options.supports(other, ours[1]) if u[0] != theirs[0]]
            mine = [u for u in options.supports(me, theirs[1]) if u[0] != ours[0]]
            if helps and mine:
                sides = (OURS, ours), (THEIRS, helps[0]), (THEIRS, theirs), (OURS, mine[0])
                deals.append(tuple(promise(side, *order) for side, order in sides))
    return deals


def closed_centers(options: LikelyOptions, me: int, other: int) -> list[tuple]:
    units = options.around.open_to_both(options.row, me, other)
    if not units.any():
        return []
    center = int(options.board.center_province[units.argmax()])
    return [tuple((Clause.KEEP_OUT, side, center, NONE) for side in (OURS, THEIRS))]


def defence_deals(options: LikelyOptions, me: int, other: int) -> list[tuple]:
    mine, theirs = options.defences(me, other), options.defences(other, me)
    if not mine or not theirs:
        return []
    return [(promise(OURS, *mine[0]), promise(THEIRS, *theirs[0]))]


class Planner(Silent):
    """Offers the best of some templates, by its gain on `profiles`: orders of all powers drawn from
    this negotiator's player."""

    value = "claims"

    def __init__(self, player: Player, name: str, profiles: int = 8):
        super().__init__(player, name)
        self.trials = Trials(player, profiles, self.value)

    def templates(self, options: LikelyOptions, me: int, other: int) -> Iterator[tuple]:
        raise NotImplementedError

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        """Return how much offers are wanted, from both sides' gains; at 0 and below not at all."""
        raise NotImplementedError

    def agrees(self, talk: Talk, sender: np.ndarray, gain: np.ndarray) -> np.ndarray:
        return gain > EPSILON

    def partners(self, talk: Talk, around: PowerReach) -> np.ndarray:
        return around.near()[self._seats(talk)]

    def worth(self, talk: Talk, gains: np.ndarray) -> np.ndarray:
        return gains[self._seats(talk)]

    def wishes(self, talk: Talk) -> np.ndarray:
        around = PowerReach(talk.games, talk.game)
        seat, other = np.nonzero(self.partners(talk, around))
        wish = np.zeros((len(talk.game), talk.games.num_powers), bool)
        if len(seat):
            pairs = zip(*np.array([talk.game[seat], talk.power[seat], other]).tolist())
            rows = [(*pair, PEACE_ALONE) for pair in pairs]
            gains, possible = self.trials.gains(talk, seat, make_offers(rows))
            asking = talk.take(seat)
            gain = self.worth(asking, gains)
            wish[seat, other] = possible & self.agrees(asking, other, gain)
        return wish

    def offers(self, talk: Talk) -> Offers:
        return self._best(talk, lambda seats, others: seats)

    def proposals(self, talk: Talk) -> Offers:
        powers = talk.games.num_powers
        return self._best(talk, lambda seats, others: seats * powers + others)

    def _best(self, talk: Talk, group: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Offers:
        around = PowerReach(talk.games, talk.game)
        games, which = np.unique(talk.game, return_inverse=True)
        profiles = self.trials.draw(talk.games, games)
        rows, options_by_game = [], {}
        for seat, other in zip(*np.nonzero(self.partners(talk, around))):
            game = which[seat]
            if game not in options_by_game:
                options_by_game[game] = LikelyOptions(talk, seat, around, profiles[game])
            me, q = int(talk.power[seat]), int(other)
            rows += [(seat, q, clauses) for clauses in self.templates(options_by_game[game], me, q)]
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
        gains, possible = self.trials.gains(talk, np.arange(len(talk.game)), offers)
        return possible & self.agrees(talk, offers.sender, self.worth(talk, gains))

    def refusal(self, talk: Talk, offers: Offers) -> str:
        gains, possible = self.trials.gains(talk, np.arange(len(talk.game)), offers)
        if not possible[0]:
            return "it conflicts with the deals of this phase"
        worth = self.worth(talk, gains)[0]
        if worth > -0.005:
            return "it reckons the deal would gain it nothing"
        of_board = self.trials.value == "claims"
        cost = f"{-worth:.0%} of the board" if of_board else f"{-worth:.2f} centers"
        return f"it reckons the deal would cost it {cost}"

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        n = np.arange(len(talk.game))
        gains, possible = self.trials.gains(talk, n, offers)
        theirs = gains[n, partner_of(talk, offers)]
        score = self.score(self.worth(talk, gains), theirs)
        return best_of_pairs(talk, offers, np.where(possible, score, 0.0))

    @staticmethod
    def _seats(talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(talk.game)), talk.power


class Nash(Planner):
    """Offers the deal with the largest product of both sides' gains, if both gain: the solution of
    Nash (1950), with no deal as the disagreement point. Accepts deals from which it gains."""

    def templates(self, options: LikelyOptions, me: int, other: int) -> Iterator[tuple]:
        yield PEACE_ALONE
        yield from closed_centers(options, me, other)
        yield from support_deals(options, me, other, mine=True)
        yield from support_deals(options, me, other, mine=False)
        yield from swaps(options, me, other)

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        return np.where((mine > EPSILON) & (theirs > EPSILON), mine * theirs, 0.0)


class Dealer(Planner):
    """Counts centers only, as the partners in the DeepDip thesis' later environment. Offers the
    deal that gains it the most centers. Accepts deals that gain it centers, and deals without
    effect on its centers if the sender has at least two centers fewer."""

    value = "centers"

    def templates(self, options: LikelyOptions, me: int, other: int) -> Iterator[tuple]:
        """Yield the thesis' four: help each other's units, peace, help my attack, help yours."""
        yield from defence_deals(options, me, other)
        yield PEACE_ALONE
        yield from support_deals(options, me, other, mine=True)
        yield from support_deals(options, me, other, mine=False)

    def score(self, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        return np.where(mine > EPSILON, mine, 0.0)

    def agrees(self, talk: Talk, sender: np.ndarray, gain: np.ndarray) -> np.ndarray:
        owner = talk.games.state.center_owner[talk.game]
        own = (owner == talk.power[:, None]).sum(1)
        theirs = (owner == np.asarray(sender)[:, None]).sum(1)
        return (gain > EPSILON) | ((np.abs(gain) <= EPSILON) & (theirs <= own - 2))


class Responder(Nash):
    """A `nash` that sometimes plays the best response to partners that keep their deals, chosen
    among its player's orders and those of the profiles."""

    breaks_deals = False
    _talk: Talk | None = None

    def hear(self, talk: Talk) -> None:
        state = talk.games.state
        self._talk = talk
        self._heard = state.seed[talk.game].copy(), state.turn[talk.game].copy()

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        """Return which powers play a best response (n,) bool, and weights of shares (n, P)."""
        raise NotImplementedError

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = super().act(games, decisions)
        talk, state = self._talk, games.state
        if talk is None or talk.games is not games:
            return numbers
        present = (state.seed[talk.game] == self._heard[0]) & (
            state.turn[talk.game] == self._heard[1]
        )
        wanted, weights = self.weights(talk)
        seat_of = np.full((games.num_games, games.num_powers), NONE, np.int64)
        looking = np.flatnonzero(present & wanted)
        seat_of[talk.game[looking], talk.power[looking]] = looking
        seats = seat_of[decisions.game, decisions.power]
        rows = np.flatnonzero(in_movement(state, decisions.game) & (seats != NONE))
        if not len(rows):
            return numbers
        provinces = len(games.board.terrain)
        own, seats = decisions.by_province(numbers, provinces)[rows], seats[rows]
        best = self.trials.respond(talk.take(seats), own, weights[seats], not self.breaks_deals)
        orders = np.full((decisions.count, provinces), NONE, np.int32)
        orders[rows] = best
        row = decisions.slot_decision
        is_own = np.isin(row, rows)
        numbers = numbers.copy()
        numbers[is_own] = orders[row[is_own], decisions.slot_province[is_own]]
        return numbers


class Breaker(Responder):
    """Makes deals as `nash`, then plays the best response to partners that keep theirs."""

    breaks_deals = True

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        dealt = talk.known.dealt[self._seats(talk)].any(1)
        return dealt, (np.arange(talk.games.num_powers) == talk.power[:, None]).astype(float)


class Grudge(Nash):
    """As `nash`, but for `years` makes no deals with a power that broke one with it."""

    def __init__(self, player: Player, name: str, profiles: int = 8, years: int = GRUDGE_YEARS):
        super().__init__(player, name, profiles)
        self.years = years

    def distrusts(self, talk: Talk) -> np.ndarray:
        """Return which powers broke a deal with each of those asked of late, (n, P) bool."""
        if talk.breaches is None:
            return np.zeros((len(talk.game), talk.games.num_powers), bool)
        return (talk.breaches != NONE) & (talk.breaches < self.years)

    def partners(self, talk: Talk, around: PowerReach) -> np.ndarray:
        return super().partners(talk, around) & ~self.distrusts(talk)

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        n = np.arange(len(talk.game))
        return super().answers(talk, offers) & ~self.distrusts(talk)[n, offers.sender]

    def refusal(self, talk: Talk, offers: Offers) -> str:
        if self.distrusts(talk)[0, offers.sender[0]]:
            return "it has not forgotten that you broke a deal"
        return super().refusal(talk, offers)

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        distrusted = self.distrusts(talk)[np.arange(len(talk.game)), partner_of(talk, offers)]
        return super().choices(talk, offers) & ~distrusted


class Sanction(Grudge, Responder):
    """As `grudge`, and values a breaker's loss as much as its own gain."""

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        distrusts = self.distrusts(talk)
        own = np.arange(talk.games.num_powers) == talk.power[:, None]
        return np.logical_or.reduce(distrusts, 1), own.astype(float) - distrusts

    def worth(self, talk: Talk, gains: np.ndarray) -> np.ndarray:
        return (gains * self.weights(talk)[1]).sum(1)
