"""`Press`: the protocol of talk in many games, and the orders that deals leave. The games
themselves do not depend on it; the deals of a phase end when the games move on."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Int32s, Int64s, new_arrays
from .._copies import copied_object
from ..constants import CONVOY, NONE, RUNNING, Phase
from ..games.decisions import Decisions, empty_decisions, filled, join_decisions
from ..games.vector_game import VectorGame
from ..rules.game_rules import GameRules, Protocol
from ..rules.state import in_movement, is_alive
from . import binding as kernels
from .deals import (
    REFUSALS,
    Clause,
    Deals,
    OfferResult,
    Offers,
    Side,
    Words,
    empty_deals,
    make_offers,
    order_aims,
    province_bits,
    province_words,
)

PEACE_ALONE = ((Clause.PEACE, Side.BOTH, NONE, NONE),)  # the clauses of an offer of peace


class LaterDeal(NamedTuple):
    """A deal for a movement phase to come."""

    when: int  # its `phase_number`
    seed: int  # of the game
    offer: Offers  # one


def phase_number(year: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Return numbers of movement phases, which grow by one from each to the next."""
    return 2 * year.astype(np.int64) + (phase >= Phase.FALL_MOVEMENT)


class Tally(NamedTuple):
    """Counts of the talk in every game since it began; each wish of peace counts as an offer."""

    offered: Annotated[Int64s, "E"]
    agreed: Annotated[Int64s, "E"]  # deals; a peace of two wishes is one
    refused: Annotated[Int64s, "E, results"]  # by OfferResult: declined, or accepted without effect
    phases: Annotated[Int64s, "E"]  # movement phases
    with_deals: Annotated[Int64s, "E"]  # those of them with at least one deal
    broken: Annotated[Int64s, "E, P, P"]  # orders of one power against deals with another
    broken_year: Annotated[Int32s, "E, P, P", NONE]  # year of the last such order, or NONE
    words: Annotated[Int64s, "E, P"]  # words given: a deal has one of each side
    words_kept: Annotated[Int64s, "E, P"]  # those of them that no order of the phase broke


class PressView(NamedTuple):
    """D powers' view of the deals of this phase; powers are numbered from the observer on."""

    bound: np.ndarray  # (D, V) bool, own units that do not have all their orders any more
    closed: np.ndarray  # (D, P, V) bool, provinces a power keeps out of by a deal with the observer
    peace: np.ndarray  # (D, P) bool, with the observer


class Press:
    """The talk of E games, which are not changed, by their rules, or by fields of GameRules given
    here.

    Their `press` is `mutual`: peace between two powers that both wish it; `offers`: in each round a
    power may send one offer to one other power, which accepts or declines; or `propose-choose`: it
    may send one to each other power, and each side of a pair picks one of the pair's two offers, or
    none; an offer that both pick is a deal (Kramar et al. 2022). Unless `binding`, broken deals are
    only counted; with `open_press` all powers see which powers have peace.
    """

    def __init__(
        self,
        games: VectorGame,
        press: Protocol | None = None,
        press_rounds: int = 1,
        binding: bool = True,
        open_press: bool = False,
    ):
        rules = games.rules
        if press is not None:
            rules = GameRules(
                games.map,
                press=press,
                press_rounds=press_rounds,
                binding=binding,
                open_press=open_press,
            )
        self.games = games
        self.protocol, self.rounds, self.binding, self.open_press = rules.talk
        self.log: list[tuple[Offers, np.ndarray, Words]] | None = None
        self.logged = 0
        count = games.num_games
        self._aims = order_aims(games.map)
        self._sets = np.zeros((2, province_words(games.board)), np.uint64)
        self._kept = empty_deals(games.board, 1)
        self.deals = empty_deals(games.board, count)
        self.tally = new_arrays(Tally, E=count, P=games.num_powers, results=len(OfferResult))
        self._bound = np.zeros(count, bool)  # games with a deal in this phase
        self.later: list[LaterDeal] = []
        self.come_due: list[Offers] = []  # deals of this phase that earlier ones agreed upon
        self._seed, self._turn = games.state.seed.copy(), np.full(count, NONE, np.int32)
        self.talking()

    __deepcopy__ = copied_object

    def talking(self) -> np.ndarray:
        """Return which games are in a movement phase, (E,) bool; forget deals of earlier ones."""
        state = self.games.state
        fresh = (state.turn != self._turn) | (state.seed != self._seed)
        moving = self._moving()
        if fresh.any():
            other = fresh & (state.seed != self._seed)
            if other.any():  # the row has another game
                for array in self.tally:
                    array[other] = 0
                self.tally.broken_year[other] = NONE
            self._turn[fresh], self._seed[fresh] = state.turn[fresh], state.seed[fresh]
            self.tally.phases[fresh & moving] += 1
            stale = fresh & self._bound
            for array, value in zip(map(np.asarray, self.deals), (NONE, 0, 0, 0, False, False)):
                array[stale] = value
            self._bound[stale] = False
            self.come_due = []
            if self.later:
                self.hold_due()
        return moving

    def _moving(self) -> np.ndarray:
        state = self.games.state
        return in_movement(state) & (state.end == RUNNING)

    def drop_dead(self) -> None:
        """Let those deals for later phases lapse of which a side is eliminated or has conceded."""
        state = self.games.state
        self.later = [
            deal
            for deal in self.later
            if all(is_alive(state, deal.offer.game[0], side[0]) for side in deal.offer[1:3])
        ]

    def hold_due(self) -> None:
        """Let those deals for later phases hold that are for this one, in the order in which they
        were made, and list them as `come_due`; what has become impossible lapses."""
        self.drop_dead()
        state, deals, decisions, self.later = self.games.state, self.later, None, []
        now, moving = phase_number(state.year, state.phase), self._moving()
        for deal in deals:
            (e,) = deal.offer.game
            first = now[e] + (not moving[e])  # the next movement phase, if this is none
            if deal.seed != state.seed[e] or deal.when < first:
                continue
            if deal.when > now[e]:
                self.later.append(deal)
                continue
            decisions = self.games.decisions() if decisions is None else decisions
            (result,) = self._confirm(deal.offer, np.ones(1, bool), moving, decisions)
            if result == OfferResult.CONFIRMED:
                self.come_due.append(deal.offer)
                self.tally.with_deals[e] += not self._bound[e]
                self._bound[e] = True

    def _note_deals(self, agreed: np.ndarray) -> None:
        self.tally.agreed[:] += agreed
        new = (agreed > 0) & ~self._bound
        self.tally.with_deals[new] += 1
        self._bound |= new

    def propose(self, wish: np.ndarray) -> np.ndarray:
        """Make peace where two living powers wish it of each other; return how many pairs, (E,).
        `wish` is (E, P, P) bool, of the second power by the first."""
        games = self.games
        shape = (games.num_games, games.num_powers, games.num_powers)
        if wish.shape != shape or wish.dtype != bool:
            raise ValueError(f"wish must be bool of shape {shape}, not {wish.dtype} {wish.shape}")
        talking, agreed = self.talking(), np.zeros(games.num_games, np.int64)
        wish = np.ascontiguousarray(wish)

        def slice_of(first: int, last: int) -> None:
            sets = np.zeros((games.num_powers, self._sets.shape[1]), np.uint64)
            games.call(
                kernels.make_peace, games.board, games.state, self.deals, wish, talking, first,
                last, sets, agreed,
            )  # fmt: skip

        games.run(slice_of, games.num_games)
        if self.log is not None:
            heard = wish[: self.logged] & talking[: self.logged, None, None]
            rows = [(*seats, PEACE_ALONE) for seats in np.argwhere(heard) if seats[1] != seats[2]]
            offers = make_offers(rows)
            silence = [""] * offers.count
            self.log.append((offers, np.full(offers.count, NONE, np.int8), (silence, silence)))
        own = wish[:, np.arange(shape[1]), np.arange(shape[1])].sum(1)
        self.tally.offered[talking] += (wish.sum((1, 2)) - own)[talking]
        self._note_deals(agreed)
        return agreed

    def settle(
        self,
        offers: Offers,
        agreed: np.ndarray,
        decisions: Decisions | None = None,
        words: Words | None = None,
        when: np.ndarray | None = None,
    ) -> np.ndarray:
        """Confirm the offers of a round that were agreed to, in a rotation of the powers that each
        game's seed and turn give; return the OfferResult (O,) of each.

        `offers` are at most one of each sender in a game (with `propose-choose`, to each receiver);
        `agreed` (O,): the receiver said yes, or both sides picked it; `decisions`: all legal orders
        of these games, if at hand; `words` are kept in the log. `when` (O,): the `phase_number` of
        the movement phase for which each is, None: this one. A deal for a later phase is confirmed
        again when that comes, and lapses if it then cannot be kept.
        """
        games = self.games
        count, powers = games.num_games, games.num_powers
        sides = offers.sender, offers.receiver
        for array, most in zip((offers.game, *sides), (count, powers, powers)):
            if array.size and not 0 <= array.min() <= array.max() < most:
                raise ValueError(f"games must be 0..{count - 1}, powers 0..{powers - 1}")
        talking = self.talking()
        decisions = games.decisions() if decisions is None else decisions
        first = np.zeros(count, np.int64)
        games.call(kernels.draw_rotations, games.state, powers, first)
        turns = (offers.sender - first[offers.game]) % powers
        receiver = offers.receiver.astype(np.int64)
        rows = np.lexsort(((receiver - first[offers.game]) % powers, turns, offers.game))
        results = np.empty(offers.count, np.int8)
        now = phase_number(games.state.year, games.state.phase)[offers.game]
        when = now if when is None else when
        later = when != now
        results[rows] = self._confirm(
            offers.take(rows), (agreed & ~later)[rows], talking, decisions
        )
        for o in np.flatnonzero(later & agreed).tolist():
            deal = LaterDeal(int(when[o]), games.state.seed[offers.game[o]], offers.take([o]))
            results[o] = self._why_not(deal, talking, now[o])
            if results[o] == OfferResult.CONFIRMED:
                self.later.append(deal)
        if self.log is not None:
            heard = rows[offers.game[rows] < self.logged]
            sentences = [[texts[o] for o in heard] for texts in words or 2 * ([""] * offers.count,)]
            self.log.append((offers.take(heard), results[heard], sentences))
        self.tally.offered[:] += np.bincount(offers.game, minlength=count)
        confirmed = results == OfferResult.CONFIRMED
        np.add.at(self.tally.refused, (offers.game, results), ~confirmed)
        self._note_deals(np.bincount(offers.game[confirmed & ~later], minlength=count))
        self.tally.agreed[:] += np.bincount(offers.game[confirmed & later], minlength=count)
        return results

    def _why_not(self, deal: LaterDeal, talking: np.ndarray, now: int) -> OfferResult:
        """Return CONFIRMED, or why a deal for a later phase can be none on any board."""
        games, offer = self.games, deal.offer
        (e,), (p,), (q,) = offer[:3]
        if not talking[e] or deal.when < now:
            return OfferResult.LATE
        if p == q:
            return OfferResult.OWN
        if not (is_alive(games.state, e, p) and is_alive(games.state, e, q)):
            return OfferResult.DEAD_POWER
        for kind, _, v, order in zip(*offer[4:]):
            if kind != Clause.PEACE and not 0 <= v < len(games.board.terrain):
                return OfferResult.ILLEGAL
            if kind == Clause.ORDER:
                if not 0 <= order < len(games.table.kind) or games.table.kind[order] > CONVOY:
                    return OfferResult.ILLEGAL
                if games.board.location_province[games.table.location[order]] != v:
                    return OfferResult.ILLEGAL
        return OfferResult.CONFIRMED

    def _confirm(
        self, offers: Offers, agreed: np.ndarray, talking: np.ndarray, decisions: Decisions
    ) -> np.ndarray:
        games, results = self.games, np.empty(offers.count, np.int8)
        rows = np.full((games.num_games, games.num_powers), NONE, np.int64)
        rows[decisions.game, decisions.power] = np.arange(decisions.count)
        boards = games.board, games.table.kind, self._aims, games.state, self.deals
        questions = talking, decisions, rows, offers, np.ascontiguousarray(agreed, bool)
        games.call(kernels.confirm_offers, *boards, *questions, self._sets, self._kept, results)
        return results

    def _call(self, kernel: Callable, *arguments: object) -> None:
        self.games.call(kernel, self.games.table.kind, self._aims, self.deals, *arguments)

    def _held(self, honest: np.ndarray | None) -> np.ndarray:
        self.talking()
        shape = self.games.num_games, self.games.num_powers
        if self.binding or honest is None:
            honest = np.full(shape, self.binding)
        return honest & self._bound[:, None]

    def bound(self, decisions: Decisions, honest: np.ndarray | None = None) -> Decisions:
        """Return the decisions with what the deals leave of their lists; none becomes empty.
        `honest` (E, P) bool are those who keep deals that may be broken; None: nobody needs to."""
        held = self._held(honest)
        return self._filtered(decisions, held) if held.any() else decisions

    def _filtered(self, decisions: Decisions, held: np.ndarray) -> Decisions:
        games = self.games

        def slice_of(first: int, last: int) -> Decisions:
            slots = decisions.slot_start[first], decisions.slot_start[last]
            orders = decisions.order_start[slots[0]], decisions.order_start[slots[1]]
            size = last - first, int(slots[1] - slots[0]), int(orders[1] - orders[0])
            out, counts = empty_decisions(*size), np.zeros(2, np.int64)
            sets = np.empty_like(self._sets)
            self._call(kernels.bind_slots, held, decisions, first, last, sets, counts, out)
            return filled(out, last - first, *counts.tolist())

        parts = games.run(slice_of, decisions.count)
        return parts[0] if len(parts) == 1 else join_decisions(parts)

    def correct(
        self, orders: np.ndarray, bound: Decisions | None = None, honest: np.ndarray | None = None
    ) -> None:
        """Replace orders (E, V) that break a deal by the promised one, else hold, else a way out.
        `bound` is what `bound` returned for all decisions, if it is at hand; `honest` as there."""
        held = self._held(honest)
        if not held.any():
            return
        games = self.games
        games.check_orders(orders)
        bound = self.bound(games.decisions(), honest) if bound is None else bound
        games.call_slices(kernels.correct_orders, bound.count, (held, bound), (orders,))

    def judge(self, orders: np.ndarray, decisions: Decisions | None = None) -> np.ndarray:
        """Count the orders (E, V) about to be given that break a deal, (E, P, P) int64. The first
        power's orders against its deals with the second; they are added to the tally."""
        self.talking()
        games = self.games
        games.check_orders(orders)
        broken = np.zeros_like(self.tally.broken)
        if not self._bound.any():
            return broken
        decisions = games.decisions() if decisions is None else decisions

        def slice_of(first: int, last: int) -> None:
            self._call(kernels.count_broken, self._bound, decisions, first, last, orders, broken)

        games.run(slice_of, decisions.count)
        self.tally.broken[:] += broken
        years = np.broadcast_to(games.state.year[:, None, None], broken.shape)
        self.tally.broken_year[broken > 0] = years[broken > 0]
        self.tally.words[:] += self.deals.dealt.sum(2)
        self.tally.words_kept[:] += (self.deals.dealt & (broken == 0)).sum(2)
        return broken

    def breaches(self, game: np.ndarray, power: np.ndarray) -> np.ndarray:
        """Return how many years ago each power last broke a deal with these, (n, P), or NONE."""
        self.talking()
        last = self.tally.broken_year[game, :, power]
        ago = self.games.state.year[game][:, None] - last
        return np.where(last == NONE, NONE, ago).astype(np.int32)

    @property
    def memory(self) -> tuple[np.ndarray, np.ndarray]:
        """The games' seeds, and when deals were last broken in them: for `remember`."""
        return self._seed, self.tally.broken_year

    def remember(self, seed: np.ndarray, broken_year: np.ndarray) -> None:
        self._seed[:], self.tally.broken_year[:] = seed, broken_year

    def known(self, game: np.ndarray, power: np.ndarray) -> Deals:
        """Return what powers (n,) of games (n,) know of the deals there, as Deals of n games. Those
        are their own deals, and with open press also who else has peace."""
        self.talking()
        n, powers = np.arange(len(game)), self.games.num_powers
        promised, to, closed, vacate, peace, dealt = (array[game] for array in self.deals)
        mine = self.games.state.unit_power[game] == power[:, None]
        involved = (to >> power.astype(np.uint64)[:, None]) & np.uint64(1) != 0
        promised = np.where(mine | involved, promised, NONE).astype(np.int32)
        bit = (np.uint64(1) << power.astype(np.uint64))[:, None]
        to = np.where(mine, to, np.where(involved, bit, np.uint64(0)))
        party = np.zeros((len(game), powers, powers), bool)
        party[n, power] = party[n, :, power] = True
        closed, vacate = (
            np.where(party[..., None], sets, np.uint64(0)) for sets in (closed, vacate)
        )
        return Deals(
            promised, to, closed, vacate, peace if self.open_press else peace & party, dealt & party
        )

    def observe(self, game: np.ndarray, power: np.ndarray) -> PressView:
        deals = self.known(game, power)
        n, powers = np.arange(len(game)), self.games.num_powers
        provinces = len(self.games.board.terrain)
        seats = (power[:, None] + np.arange(powers)) % powers
        mine = self.games.state.unit_power[game] == power[:, None]
        closed = province_bits(deals.closed, provinces)  # (n, P, P, V)
        leaving = province_bits(deals.vacate[n, power], provinces).any(1)
        limited = mine & (
            (deals.promised != NONE) | leaving | closed[n, power].any((1, 2))[:, None]
        )
        return PressView(
            limited,
            closed[n[:, None], seats, power[:, None]],
            deals.peace[n[:, None], power[:, None], seats],
        )

    def take_up(self, deals: Deals, later: Sequence[LaterDeal] = ()) -> None:
        self.talking()
        for mine, theirs in zip(map(np.asarray, self.deals), deals):
            mine[:] = theirs
        self._bound[:] = deals.dealt.any((1, 2))
        self.later = list(later)


_TALLIED = ("offered", "agreed", "phases", "with_deals", "broken")


class TalkCounter:
    def __init__(self) -> None:
        self.counts: Counter = Counter()  # games; what a Tally has; by OfferResult; player, what

    def __add__(self, other: "TalkCounter") -> "TalkCounter":
        both = TalkCounter()
        for counter in (self, other):
            both.counts.update(counter.counts)
        return both

    def add(self, press: Press, seat_player: np.ndarray) -> None:
        tally = press.tally
        self.counts["games"] += len(tally.offered)
        self.counts.update({name: int(getattr(tally, name).sum()) for name in _TALLIED})
        self.counts.update(dict(zip(OfferResult, tally.refused.sum(0).tolist())))
        for number in np.unique(seat_player).tolist():
            mine = seat_player == number
            self.counts[number, "given"] += int(tally.words[mine].sum())
            self.counts[number, "kept"] += int(tally.words_kept[mine].sum())

    def figures(self) -> dict:
        """Return the talk as matches report it, per game: `refused` by reason, though the receiver
        agreed; `deal_phases`, the share of movement phases with deals; orders `broken`; `kept`,
        the share of words (one of each side of a deal; 1 without any), of all and by player."""
        counts, games = self.counts, max(1, self.counts["games"])
        in_vain = {name: counts[result] for name, result in zip(REFUSALS, list(OfferResult)[2:])}
        players = sorted(key[0] for key in counts if isinstance(key, tuple) and key[1] == "given")
        return {
            "offered": counts["offered"] / games,
            "agreed": counts["agreed"] / games,
            "declined": counts[OfferResult.DECLINED] / games,
            "refused": sum(in_vain.values()) / games,
            "refused_because": {name: count / games for name, count in in_vain.items() if count},
            "deal_phases": counts["with_deals"] / max(1, counts["phases"]),
            "broken": counts["broken"] / games,
            "kept": self._kept(players),
            "kept_by_player": [self._kept([player]) for player in players],
        }

    def _kept(self, players: Sequence[int]) -> float:
        num_promises, num_kept = (
            sum(self.counts[p, what] for p in players) for what in ("given", "kept")
        )
        return num_kept / num_promises if num_promises else 1.0
