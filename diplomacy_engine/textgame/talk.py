"""`GameTalk`: the offers of one `Game` in a phase, and the deals made of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._suggest import quoted
from ..constants import COMPLETED, HOLD, NONE, phase_kind
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..press.daide import ClauseRow, is_answer, offer_words, read_message
from ..press.deals import Clause, OfferResult, Side, make_offers
from ..press.press import Press, PressRules
from ..rules.notation import read_place
from .position import current_phase

_WHY = {
    OfferResult.ILLEGAL: "it asks for something impossible on this board",
    OfferResult.CONTRADICTS: "it contradicts a promise",
    OfferResult.NOTHING_LEFT: "a unit that must leave has nowhere to go",
    OfferResult.OWN: "a power cannot make a deal with itself",
    OfferResult.DEAD_POWER: "a power without units and centers cannot make deals",
    OfferResult.LATE: "deals can only be made in movement phases",
}


class Offer(NamedTuple):
    """An offer of this phase; `state` is `open`, `deal` or `declined`."""

    number: int
    sender: int
    receiver: int
    clauses: tuple[ClauseRow, ...]
    state: str


class GameTalk:
    """What powers, all by their numbers, say to each other in the game of a VectorGame of one.
    Without `rules` they make no deals, and nothing binds them."""

    def __init__(self, games: VectorGame, rules: PressRules | None = None):
        self.games, self.rules = games, rules
        self.press = None if rules is None else Press(games, *rules)
        self.offers: list[Offer] = []  # of this phase, by number

    def copy(self, games: VectorGame) -> "GameTalk":
        """Return a copy for `games`, a copy of the game."""
        copy = GameTalk(games, self.rules)
        copy.offers = list(self.offers)
        if self.press is not None:
            self.press.talking()  # which forgets the deals of earlier phases
            copy.press.take_up(self.press.deals)
        return copy

    def press_now(self) -> Press:
        """Return the press of this phase; UserError if no deals can be made in it."""
        if self.press is None:
            raise UserError('powers make deals in a Game with press, such as press="offers"')
        phase = current_phase(self.games)
        if phase_kind(phase) != "movement":
            at = "the game is over" if phase == COMPLETED else f"this is {phase}"
            raise UserError(f"deals are made in movement phases; {at}")
        return self.press

    def place_clauses(
        self, powers: tuple[int, int], kind: Clause, side: Side, places: Sequence[str]
    ) -> list[ClauseRow]:
        """Return the clauses of one kind about provinces; UserError names a text that is none."""
        clauses: list[ClauseRow] = []
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

    def put(self, p: int, q: int, clauses: tuple[ClauseRow, ...]) -> Offer:
        """Take an offer in; refuse what could not be confirmed even if nothing else were agreed."""
        press, names = self.press_now(), self.games.map.powers
        mutual, choosing = (press.protocol == name for name in ("mutual", "propose-choose"))
        sent = [o for o in self.offers if o.sender == p and (o.receiver == q or not choosing)]
        if mutual and [clause[0] for clause in clauses] != [Clause.PEACE]:
            raise UserError("with mutual press only peace can be offered")
        same = [o for o in sent if o.receiver == q and o.clauses == clauses]
        if any(mutual or offer.state != "declined" for offer in same):
            raise UserError(f"{names[p]} has already offered it")
        if not mutual and len(sent) >= press.rounds:
            to = f" to {names[q]}" if choosing else ""
            count = f"{press.rounds} offer{'s' * (press.rounds > 1)}{to}"
            raise UserError(f"{names[p]} has sent its {count} of this phase")
        offer = Offer(1 + len(self.offers), p, q, clauses, "open")
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

    def _mark(self, offer: Offer, state: str) -> None:
        self.offers[offer.number - 1] = offer._replace(state=state)

    def _settle(self, press: Press, offer: Offer, what: str) -> None:
        rows = make_offers([(0, offer.sender, offer.receiver, offer.clauses)])
        result = OfferResult(int(press.settle(rows, np.ones(1, bool))[0]))
        if result != OfferResult.CONFIRMED:
            raise UserError(f"{what}: {_WHY[result]}")

    def _alone(self, offer: Offer, what: str = "") -> Press:
        press = Press(self.games, "offers")
        self._settle(press, offer, what)
        return press

    def open_offer(self, q: int, number: int) -> Offer:
        self.press_now()
        offer = next((o for o in self.offers if o.number == number and o.receiver == q), None)
        if offer is None:
            there = f"to {self.games.map.powers[q]} in {current_phase(self.games)}"
            raise UserError(f"there is no offer {quoted(number, 20)} {there}")
        if offer.state != "open":
            raise UserError(f"offer {number} is no longer open: {offer.state}")
        return offer

    def accept(self, offer: Offer) -> None:
        press, pair = self.press_now(), {offer.sender, offer.receiver}
        deals = [o for o in self.offers if o.state == "deal" and {o.sender, o.receiver} == pair]
        if press.protocol == "propose-choose" and len(deals) >= press.rounds:
            names = " and ".join(self.games.map.powers[p] for p in sorted(pair))
            raise UserError(f"{names} have already picked their offer for this phase")
        self._settle(press, offer, f"offer {offer.number} cannot be confirmed")
        self._mark(offer, "deal")

    def decline(self, offer: Offer) -> None:
        self._mark(offer, "declined")

    def read(self, message: Mapping) -> None:
        p, q = (self.games.map.power_number(message[role]) for role in ("sender", "recipient"))
        if is_answer(message["message"]):
            p, q = q, p  # the offer went the other way
        word, clauses = read_message(self.games, p, q, message["message"])
        if word == "PRP":
            self.put(p, q, tuple(clauses))
            return
        wanted = p, q, tuple(clauses), "open"
        offer = next((o for o in self.offers if o[1:] == wanted), None)
        if offer is None:
            raise UserError("it answers no open offer")
        if word == "YES":
            self._settle(self.press_now(), offer, "the deal cannot be confirmed")
        self._mark(offer, "deal" if word == "YES" else "declined")

    def deals(self, p: int) -> Iterator[tuple[Offer, str]]:
        for offer in self.offers:
            if offer.state == "deal" and p in (offer.sender, offer.receiver):
                partner = offer.receiver if offer.sender == p else offer.sender
                yield offer, self.games.map.powers[partner]

    def words(self, offer: Offer) -> str:
        return offer_words(self.games.map, offer.sender, offer.receiver, offer.clauses)

    def peace(self) -> set[tuple[int, int]]:
        return {
            (min(offer[1:3]), max(offer[1:3]))
            for offer in self.offers
            if offer.state == "deal" and any(row[0] == Clause.PEACE for row in offer.clauses)
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
        for offer, _ in self.deals(p):
            counts = np.diff(self._alone(offer).bound(full).order_start)
            for s in np.flatnonzero(mine & (counts < np.diff(full.order_start))):
                name = self.games.map.provinces[full.slot_province[s]]
                by_province.setdefault(name, []).append(offer)
        return by_province

    @property
    def has_deals(self) -> bool:
        return any(offer.state == "deal" for offer in self.offers)

    @property
    def binds(self) -> bool:
        return self.has_deals and self.press.binding

    def left(self) -> set[int]:
        return set(self.bound(self.games.decisions()).order.tolist())

    def why_broken(self, p: int, province: int, number: int) -> str:
        for offer, partner in self.deals(p):
            orders = self.games.new_orders()
            orders[0, province] = number
            self._alone(offer).correct(orders)
            if orders[0, province] != number:
                return f"it breaks the deal with {partner}: {self.words(offer)}"
        return "it breaks an agreement"

    def broken(self, orders: np.ndarray) -> dict[str, list[str]]:
        """Return power -> the powers with which these orders (1, V) break its deals."""
        powers, counts = self.games.map.powers, self.press.judge(orders)[0]
        return {
            power: [other for other, count in zip(powers, row) if count]
            for power, row in zip(powers, counts)
            if row.any()
        }

    def promised(self, orders: np.ndarray) -> dict[int, int]:
        """Return province -> the promised order where others are given, (1, V), or none."""
        promised_orders = orders.copy()
        self.press.correct(promised_orders)
        kinds = self.games.table.kind
        changed = np.flatnonzero(promised_orders[0] != orders[0]).tolist()
        return {
            v: int(promised_orders[0, v])
            for v in changed
            if orders[0, v] != NONE or kinds[promised_orders[0, v]] != HOLD  # which it does anyway
        }
