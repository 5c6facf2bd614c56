"""`GameTalk`: the offers of one `Game` in a phase, and the deals made of them."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .._copies import copied_object
from .._suggest import listed, quoted
from ..constants import COMPLETED, NONE, parse_phase, phase_kind, phase_name
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..press import daide
from ..press.deals import Clause, OfferResult, Side, make_offers
from ..press.press import LaterDeal, Press, phase_number
from ..records import shipped_toml
from ..rules.reading import read_place
from .position import current_phase

_REASONS = shipped_toml(__package__, "words.toml")["refused_offers"]  # by name of OfferResult


def _when(phase: str) -> int:
    return int(phase_number(*map(np.array, parse_phase(phase))))


class Offer(NamedTuple):
    """An offer of this phase; `state` is `open`, `deal`, `declined` or (who conceded) `lapsed`."""

    number: int
    sender: int
    receiver: int
    clauses: tuple[daide.ClauseRow, ...]
    state: str
    others: tuple[int, ...] = ()  # powers that must agree as well
    phase: str = ""  # for which it is, if that is a later one
    agreed: tuple[int, ...] = ()  # who of several has agreed so far

    @property
    def receivers(self) -> tuple[int, ...]:
        return self.receiver, *self.others

    @property
    def powers(self) -> tuple[int, ...]:
        return self.sender, *self.receivers

    @property
    def terms(self) -> daide.Terms:
        return daide.Terms(self.clauses, self.others, self.phase)

    def terms_for(self, q: int) -> daide.Terms:
        """Return what it asks for, as one of its receivers is told."""
        return self.terms._replace(others=tuple(sorted({*self.receivers} - {q})))


class GameTalk:
    """What powers, all by their numbers, say to each other in the game of a VectorGame of one.
    Where its rules have no press they make no deals, and nothing binds them."""

    def __init__(self, games: VectorGame):
        self.games = games
        self.press = None if games.rules.press is None else Press(games)
        self.offers: list[Offer] = []  # of this phase, by number

    def begin_phase(self) -> None:
        """Forget the offers of the phase before; deals for this one begin to hold."""
        self.offers = []
        if self.press is not None and self.press.talking()[0]:
            self._list_due()

    def concede(self, p: int) -> None:
        """End a power's open offers, and its deals for later phases; those for this one hold."""
        for offer in self.offers:
            if p in offer.powers and (
                offer.state == "open" or (offer.state == "deal" and offer.phase)
            ):
                self._mark(offer, "lapsed")
        if self.press is not None:
            self.press.drop_dead()

    @contextlib.contextmanager
    def before_concessions(self, earlier: Sequence[bool] | bool = False) -> Iterator[None]:
        """Here only those powers have conceded that had done so `earlier`, (P,)."""
        conceded = self.games.state.conceded[0]
        now = conceded.copy()
        conceded &= earlier
        try:
            yield
        finally:
            conceded[:] = now

    def hold_due(self) -> None:
        """Let those recalled deals hold that are for this phase."""
        self.table.hold_due()
        self._list_due()

    def _list_due(self) -> None:
        for due in self.table.come_due:
            sides = int(due.sender[0]), int(due.receiver[0])
            self.offers.append(
                Offer(1 + len(self.offers), *sides, daide.clauses_of(due, 0), "deal")
            )

    __deepcopy__ = copied_object

    @property
    def table(self) -> Press:
        """The press; UserError where the rules have none."""
        if self.press is None:
            raise UserError('powers make deals in a Game with press, such as press="offers"')
        return self.press

    def press_now(self) -> Press:
        """Return the press of this phase; UserError if no deals can be made in it."""
        table, phase = self.table, current_phase(self.games)
        if phase_kind(phase) != "movement":
            at = "the game is over" if phase == COMPLETED else f"this is {phase}"
            raise UserError(f"deals are made in movement phases; {at}")
        return table

    def place_clauses(
        self, powers: tuple[int, int], kind: Clause, side: Side, places: Sequence[str]
    ) -> list[daide.ClauseRow]:
        """Return the clauses of one kind about provinces; UserError names a text that is none."""
        clauses: list[daide.ClauseRow] = []
        for text in places:
            unit, place = read_place(self.games.map, text)
            if unit is not None or place.coast:
                raise UserError(f"{quoted(text)} is not a province")
            if kind == Clause.LEAVE:
                power = powers[side]
                if self.games.state.unit_power[0, place.province] != power:
                    raise UserError(f"{self.games.map.powers[power]} has no unit in {text}")
            clauses.append((kind, side, place.province, NONE))
        return clauses

    def put(self, p: int, q: int, terms: daide.Terms) -> Offer:
        """Take an offer in; refuse what could not be confirmed even if nothing else were agreed."""
        press, names, clauses = self.press_now(), self.games.map.powers, terms.clauses
        self._check_terms(press, terms)
        mutual, choosing = (press.protocol == name for name in ("mutual", "propose-choose"))
        sent = [o for o in self.offers if o.sender == p and (o.receiver == q or not choosing)]
        if mutual and [clause[0] for clause in clauses] != [Clause.PEACE]:
            raise UserError("with mutual press only peace can be offered")
        same = [o for o in sent if o.receiver == q and o.terms == terms]
        if any(mutual or offer.state != "declined" for offer in same):
            raise UserError(f"{names[p]} has already offered it")
        if not mutual and len(sent) >= press.rounds:
            to = f" to {names[q]}" if choosing else ""
            count = f"{press.rounds} offer{'s' * (press.rounds > 1)}{to}"
            raise UserError(f"{names[p]} has sent its {count} of this phase")
        offer = Offer(1 + len(self.offers), p, q, clauses, "open", terms.others, terms.phase)
        self._alone(offer, "this cannot be offered")
        other = next((o for o in self.offers if (o.sender, o.receiver) == (q, p)), None)
        if mutual and other is not None:
            wish = np.zeros((1, len(names), len(names)), bool)
            wish[0, p, q] = wish[0, q, p] = True
            press.propose(wish)
            self._mark(other, "deal")
            offer = offer._replace(state="deal")
        self.offers.append(offer)
        return offer

    def _check_terms(self, press: Press, terms: daide.Terms) -> None:
        if (terms.others or terms.phase) and press.protocol != "offers":
            raise UserError(
                'deals among several powers and for later phases need press="offers", not '
                f"{press.protocol}"
            )
        if terms.others and any(side != Side.BOTH for _, side, _, _ in terms.clauses):
            raise UserError("several powers at once can only be offered peace and zones")
        if terms.phase and any(kind == Clause.LEAVE for kind, _, _, _ in terms.clauses):
            raise UserError(f"nobody knows yet which unit would have to leave in {terms.phase}")

    def _mark(self, offer: Offer, state: str) -> None:
        self.offers[offer.number - 1] = offer._replace(state=state)

    def _settle(self, press: Press, offer: Offer, what: str) -> None:
        """Make a deal, of several powers one between any two; UserError, and there is none."""
        pairs, when = list(combinations(offer.powers, 2)), None
        if offer.phase:
            when = np.array([_when(offer.phase)])
        presses = [press]
        if len(pairs) > 1:  # on a copy first, so that all are made or none
            presses.insert(0, Press(self.games, "offers"))
            presses[0].take_up(press.deals, press.later)
        for one in presses:
            for p, q in pairs:
                offers = make_offers([(0, p, q, offer.clauses)])
                (result,) = one.settle(offers, np.ones(1, bool), when=when)
                if result != OfferResult.CONFIRMED:
                    raise UserError(f"{what}: {_REASONS[OfferResult(int(result)).name]}")

    def _alone(self, offer: Offer, what: str = "") -> Press:
        press = Press(self.games, "offers")
        self._settle(press, offer, what)
        return press

    def _holding(self, deal: Offer) -> Press:
        """Return the press of one deal of this phase alone."""
        with self.before_concessions():
            return self._alone(deal)

    def open_offer(self, q: int, number: int) -> Offer:
        self.press_now()
        offer = next((o for o in self.offers if o.number == number and q in o.receivers), None)
        if offer is None:
            there = f"to {self.games.map.powers[q]} in {current_phase(self.games)}"
            raise UserError(f"there is no offer {quoted(number, 20)} {there}")
        if offer.state != "open":
            raise UserError(f"offer {number} is no longer open: {offer.state}")
        if q in offer.agreed:
            raise UserError(f"{self.games.map.powers[q]} has agreed to offer {number} already")
        return offer

    def accept(self, q: int, offer: Offer) -> None:
        """Let a receiver agree; the deal is made once all have."""
        press, pair = self.press_now(), {offer.sender, offer.receiver}
        deals = [o for o in self.offers if o.state == "deal" and {o.sender, o.receiver} == pair]
        if press.protocol == "propose-choose" and len(deals) >= press.rounds:
            names = " and ".join(self.games.map.powers[p] for p in sorted(pair))
            raise UserError(f"{names} have already picked their offer for this phase")
        self._agree(q, offer, f"offer {offer.number} cannot be confirmed")

    def _agree(self, q: int, offer: Offer, what: str) -> None:
        offer = offer._replace(agreed=(*offer.agreed, q))
        everybody = set(offer.agreed) >= set(offer.receivers)
        if everybody:
            self._settle(self.press_now(), offer, what)
        self._mark(offer, "deal" if everybody else "open")

    def decline(self, offer: Offer) -> None:
        self._mark(offer, "declined")

    def read(self, message: Mapping) -> None:
        p, q = (self.games.map.power_number(message[role]) for role in ("sender", "recipient"))
        if daide.is_answer(message["message"]):
            p, q = q, p  # the offer went the other way
        word, terms = daide.read_message(self.games, p, q, message["message"])
        if terms.phase == current_phase(self.games):
            terms = terms._replace(phase="")
        candidates = [o for o in self.offers if o.sender == p and q in o.receivers]
        same = [o for o in candidates if o.state == "open" and o.terms_for(q) == terms]
        if word == "PRP":
            if not (terms.others and same):  # each of several is told
                self.put(p, q, terms)
        elif not same:
            raise UserError("it answers no open offer")
        elif word == "YES":
            self._agree(q, same[0], "the deal cannot be confirmed")
        else:
            self._mark(same[0], "declined")

    def recall(self, messages: Iterable[Mapping]) -> None:
        """Take up the deals for this phase and later ones that an earlier phase's messages made."""
        agreed: dict[tuple[int, tuple[int, ...], daide.Terms], set[int]] = {}
        for message in messages:
            text = message["message"]
            if not (daide.is_daide(text) and daide.is_answer(text) and "FOR" in text):
                continue
            with contextlib.suppress(UserError):  # about the board of its phase, or to all
                number = self.games.map.power_number
                q, p = (number(message[role]) for role in ("sender", "recipient"))
                word, terms = daide.read_message(self.games, p, q, text)
                powers = tuple(sorted((p, q, *terms.others)))
                key = p, powers, terms._replace(others=())
                if word == "REJ":  # then all have to agree anew
                    agreed.pop(key, None)
                    continue
                same = agreed.setdefault(key, {p})
                same |= {q} if terms.phase else set()
                if same == set(powers):
                    sides = combinations((p, *(other for other in powers if other != p)), 2)
                    self.table.later += [
                        LaterDeal(_when(terms.phase), self.games.state.seed[0], offer)
                        for offer in (make_offers([(0, *pair, terms.clauses)]) for pair in sides)
                    ]

    def deals(self, p: int) -> list[Offer]:
        """Return a power's deals for this phase."""
        deals = [offer for offer in self.offers if offer.state == "deal" and not offer.phase]
        return [offer for offer in deals if p in offer.powers]

    def later(self, p: int) -> Iterator[Offer]:
        """Yield a power's deals for phases to come that earlier ones have made; one among several
        is a deal with each of them."""
        agreed = [offer for offer in self.offers if offer.state == "deal" and offer.phase]
        over = current_phase(self.games) == COMPLETED
        for deal in () if over or self.press is None else self.press.later:
            sides = int(deal.offer.sender[0]), int(deal.offer.receiver[0])
            phase = phase_name(deal.when // 2, 2 * (deal.when % 2))
            offer = Offer(0, *sides, daide.clauses_of(deal.offer, 0), "deal", phase=phase)
            alone = offer.terms
            if p in sides and not any(
                set(sides) <= set(other.powers) and other.terms._replace(others=()) == alone
                for other in agreed
            ):
                yield offer

    def partners(self, p: int, offer: Offer) -> str:
        return listed([self.games.map.powers[q] for q in sorted(offer.powers) if q != p])

    def words(self, offer: Offer) -> str:
        return daide.offer_words(self.games.map, offer.sender, offer.receiver, offer.terms)

    def peace(self) -> set[tuple[int, int]]:
        return {
            pair
            for offer in self.offers
            if offer.state == "deal" and not offer.phase
            for pair in combinations(sorted(offer.powers), 2)
            if any(kind == Clause.PEACE for kind, *_ in offer.clauses)
        }

    def bound(self, decisions: Decisions) -> Decisions:
        return decisions if self.press is None else self.press.bound(decisions)

    def bindings(self, p: int) -> dict[str, list[Offer]]:
        """Return province -> the deals that take orders from the power's unit there."""
        by_province: dict[str, list[Offer]] = {}
        if self.press is None or not self.press.binding:
            return by_province
        full = self.games.decisions()
        mine = self.games.state.unit_power[0, full.slot_province] == p
        for offer in self.deals(p):
            counts = np.diff(self._holding(offer).bound(full).order_start)
            for s in np.flatnonzero(mine & (counts < np.diff(full.order_start))):
                name = self.games.map.provinces[full.slot_province[s]]
                by_province.setdefault(name, []).append(offer)
        return by_province

    @property
    def has_deals(self) -> bool:
        return any(offer.state == "deal" and not offer.phase for offer in self.offers)

    @property
    def binds(self) -> bool:
        return self.has_deals and self.table.binding

    def left(self) -> set[int]:
        return set(self.bound(self.games.decisions()).order.tolist())

    def why_broken(self, p: int, province: int, number: int) -> str:
        for offer in self.deals(p):
            orders = self.games.new_orders()
            orders[0, province] = number
            self._holding(offer).correct(orders)
            if orders[0, province] != number:
                return f"it breaks the deal with {self.partners(p, offer)}: {self.words(offer)}"
        return "it breaks an agreement"

    def broken(self, orders: np.ndarray) -> dict[str, list[str]]:
        """Return power -> the powers with which these orders (1, V) break its deals."""
        powers, counts = self.games.map.powers, self.table.judge(orders)[0]
        return {
            power: [other for other, count in zip(powers, row) if count]
            for power, row in zip(powers, counts)
            if row.any()
        }

    def promised(self, orders: np.ndarray) -> dict[int, int]:
        """Return province -> the promised order, or a hold, where others are given, (1, V), or
        none."""
        promised_orders = orders.copy()
        self.table.correct(promised_orders)
        changed = np.flatnonzero(promised_orders[0] != orders[0]).tolist()
        return {v: int(promised_orders[0, v]) for v in changed}
