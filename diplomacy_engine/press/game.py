"""`Game` with talk: offers, answers and deals in words, kept in saved games as DAIDE."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._suggest import quoted
from ..constants import COMPLETED, HOLD, NONE, phase_kind
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.game import Game as PlainGame
from ..games.saved_game import NO_PRESS
from ..rules.map import Map
from ..rules.notation import read_place
from .daide import ClauseRow, is_answer, is_daide, offer_text, read_message
from .deals import CONFIRMED, MAX_CLAUSES, Clause, OfferResult, Side, make_offers
from .press import MOST_ROUNDS, Press, PressRules, notes_of
from .words import offer_words

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


class Game(PlainGame):
    """One game of a map in which powers may make deals before they order.

        game = Game("standard", press="offers")
        game.offer("FRANCE", "ENGLAND", ours=["A PAR - PIC"], zone=["ENG"])   # 1
        game.offers("ENGLAND")     # {1: "FRANCE: A PAR - PIC; ENGLAND and FRANCE keep out ..."}
        game.accept("ENGLAND", 1)
        game.deals("FRANCE")       # ["with ENGLAND: A PAR - PIC; ENGLAND and FRANCE keep out ..."]
        game.legal_orders("PAR")   # ["A PAR - PIC"]

    Args:
        game_map, max_years, draw_votes: as for games.game.Game, which says what else there is.
        press: None: nobody makes deals. `mutual`: peace between two powers that offer it to each
            other. `offers`: deals of any kind. `propose-choose`: deals of any kind, of which two
            powers make one in a round.
        press_rounds: how many offers a power may send in a phase, if the press is `offers`; or to
            each other power, if it is `propose-choose`.
        binding: whether orders that break a deal cannot be given. Else the history tells under
            `broken` with whom a power broke a deal, and saved games keep that they could.
    """

    def __init__(
        self,
        game_map: str | Path | Map = "standard",
        max_years: int | None = None,
        press: str | None = None,
        press_rounds: int | None = None,
        binding: bool = True,
        draw_votes: bool = False,
    ):
        super().__init__(game_map, max_years, draw_votes)
        self._talk_by(press, press_rounds, binding)

    def _talk_by(self, press: str | None, press_rounds: int | None, binding: bool) -> None:
        self._press: Press | None = None
        self._offers: list[Offer] = []
        self._offers_phase = self.phase
        if press is not None:
            rounds = MOST_ROUNDS if press == "offers" else 1  # of propose-choose, as of commands
            rounds = rounds if press_rounds is None else press_rounds
            self._press = Press(self._games, *PressRules(press, rounds, binding))
        elif press_rounds is not None:
            raise UserError("press_rounds has no effect without press")
        elif not binding:
            raise UserError("binding=False has no effect without press")

    @property
    def press(self) -> str | None:
        """How powers talk, such as `mutual`; None if they make no deals."""
        return None if self._press is None else self._press.protocol

    @property
    def table(self) -> Press | None:
        """The Press whose only game is this one, for negotiators; None without press."""
        return self._press

    def _this_phase(self) -> list[Offer]:
        if self._offers_phase != self.phase:
            self._offers, self._offers_phase = [], self.phase
        return self._offers

    def _talking(self) -> Press:
        if self._press is None:
            raise UserError('powers make deals in a Game with press, such as press="offers"')
        if phase_kind(self.phase) != "movement":
            at = "the game is over" if self.phase == COMPLETED else f"this is {self.phase}"
            raise UserError(f"deals are made in movement phases; {at}")
        return self._press

    def offer(
        self,
        sender: str,
        receiver: str,
        *,
        ours: Sequence[str] = (),
        theirs: Sequence[str] = (),
        zone: Sequence[str] = (),
        we_keep_out: Sequence[str] = (),
        they_keep_out: Sequence[str] = (),
        we_leave: Sequence[str] = (),
        they_leave: Sequence[str] = (),
        peace: bool = False,
    ) -> int:
        """Offer a deal for this phase; return its number, by which it is answered.

        With `mutual` press only peace can be offered; it is made as soon as both have offered it.

        Args:
            sender, receiver: two powers.
            ours, theirs: orders that the sender's, the receiver's units will be given.
            zone: provinces that both keep out of and leave.
            we_keep_out, they_keep_out: provinces that nothing of one side aims at.
            we_leave, they_leave: provinces that one side's units there must move out of.
            peace: both keep out of where the other has a unit or a center.

        Raises:
            UserError: what is asked for is impossible; nothing has been changed then.
        """
        press = self._talking()
        p, q = self.map.power_number(sender), self.map.power_number(receiver)
        clauses: list[ClauseRow] = []
        for side, power, texts in ((Side.SENDER, p, ours), (Side.RECEIVER, q, theirs)):
            for text in _texts(texts):
                numbers, reason = super()._understand(self.map.powers[power], text, [])
                if reason:
                    raise UserError(f"{quoted(text, 200)}: {reason}")
                if len(numbers) > 1:
                    texts = [self._games.vocabulary.texts[number] for number in numbers]
                    raise UserError(f"{quoted(text, 200)}: name the coast: {' or '.join(texts)}")
                clauses.append((Clause.ORDER, side, self._province_of(numbers[0]), numbers[0]))
        for kind, side, places in (
            (Clause.ZONE, Side.BOTH, zone),
            (Clause.KEEP_OUT, Side.SENDER, we_keep_out),
            (Clause.KEEP_OUT, Side.RECEIVER, they_keep_out),
            (Clause.LEAVE, Side.SENDER, we_leave),
            (Clause.LEAVE, Side.RECEIVER, they_leave),
        ):
            for text in _texts(places):
                unit, place = read_place(self.map, text)
                if unit is not None or place.coast:
                    raise UserError(f"{quoted(text)} is not a province")
                power = (p, q, p)[side]
                if (
                    kind == Clause.LEAVE
                    and self._games.state.unit_power[0, place.province] != power
                ):
                    raise UserError(f"{self.map.powers[power]} has no unit in {text}")
                clauses.append((kind, side, place.province, NONE))
        if peace:
            clauses.append((Clause.PEACE, Side.BOTH, NONE, NONE))
        if not 1 <= len(clauses) <= MAX_CLAUSES:
            raise UserError(f"an offer has 1 to {MAX_CLAUSES} clauses, not {len(clauses)}")
        return self._put(press, p, q, tuple(clauses), write=True)

    def put(self, sender: str, receiver: str, clauses: Sequence[ClauseRow]) -> int:
        """Offer a deal in rows of press.deals.Offers, as negotiators write it."""
        p, q = self.map.power_number(sender), self.map.power_number(receiver)
        return self._put(self._talking(), p, q, tuple(clauses), write=True)

    def _put(
        self, press: Press, p: int, q: int, clauses: tuple[ClauseRow, ...], write: bool
    ) -> int:
        """Take an offer in; refuse what could not be confirmed even if nothing else were agreed."""
        mutual = press.protocol == "mutual"
        choosing = press.protocol == "propose-choose"
        sent = [offer for offer in self._this_phase() if offer.sender == p]
        sent = [offer for offer in sent if offer.receiver == q or not choosing]
        if mutual and [clause[0] for clause in clauses] != [Clause.PEACE]:
            raise UserError("with mutual press only peace can be offered")
        same = [o for o in sent if o.receiver == q and o.clauses == clauses]
        if any(mutual or offer.state != "declined" for offer in same):
            raise UserError(f"{self.map.powers[p]} has already offered it")
        if not mutual and len(sent) >= press.rounds:
            to = f" to {self.map.powers[q]}" if choosing else ""
            count = f"{press.rounds} offer{'s' * (press.rounds > 1)}{to}"
            raise UserError(f"{self.map.powers[p]} has sent its {count} of this phase")
        self._settle(Press(self._games, "offers"), p, q, clauses, "this cannot be offered")
        number = 1 + len(self._offers)
        offer = Offer(number, p, q, clauses, "open")
        other = next((o for o in self._offers if (o.sender, o.receiver) == (q, p)), None)
        if mutual and other is not None:
            wish = np.zeros((1, len(self.map.powers), len(self.map.powers)), bool)
            wish[0, p, q] = wish[0, q, p] = True
            press.propose(wish)
            self._offers[other.number - 1] = other._replace(state="deal")
            offer = offer._replace(state="deal")
        self._offers.append(offer)
        if write:
            names = self.map.powers[p], self.map.powers[q]
            self.send(*names, offer_text(self._games, p, q, clauses))
        return number

    def _settle(self, press: Press, p: int, q: int, clauses: Sequence, what: str) -> None:
        result = OfferResult(
            int(press.settle(make_offers([(0, p, q, clauses)]), np.ones(1, bool))[0])
        )
        if result != CONFIRMED:
            raise UserError(f"{what}: {_WHY[result]}")

    def offers(self, power: str) -> dict[int, str]:
        """Return the open offers to a power in words, by number."""
        q = self.map.power_number(power)
        return {
            offer.number: f"{self.map.powers[offer.sender]}: {self._offer_words(offer)}"
            for offer in self._this_phase()
            if offer.receiver == q and offer.state == "open"
        }

    def said(self, power: str | None = None) -> list[Offer]:
        """Return the offers of this phase, whatever came of them; those from or to a power."""
        if power is None:
            return list(self._this_phase())
        p = self.map.power_number(power)
        return [offer for offer in self._this_phase() if p in (offer.sender, offer.receiver)]

    def peace(self) -> list[tuple[str, str]]:
        """Return the pairs of powers that are at peace in this phase."""
        pairs = {
            tuple(sorted((offer.sender, offer.receiver)))
            for offer in self._this_phase()
            if offer.state == "deal" and any(row[0] == Clause.PEACE for row in offer.clauses)
        }
        return [(self.map.powers[p], self.map.powers[q]) for p, q in sorted(pairs)]

    def accept(self, power: str, number: int) -> None:
        """Agree to an offer, which binds both sides at once.

        Raises:
            UserError: it is no open offer to that power, or it cannot be confirmed beside the
                deals that there are; nothing has been changed then.
        """
        press, offer = self._talking(), self._open(power, number)
        if press.protocol == "mutual":
            self.offer(power, self.map.powers[offer.sender], peace=True)
            return
        pair = {offer.sender, offer.receiver}
        made = [o for o in self._offers if o.state == "deal" and {o.sender, o.receiver} == pair]
        if press.protocol == "propose-choose" and len(made) >= press.rounds:
            names = " and ".join(self.map.powers[p] for p in sorted(pair))
            raise UserError(f"{names} have already picked their offer for this phase")
        what = f"offer {number} cannot be confirmed"
        self._settle(press, offer.sender, offer.receiver, offer.clauses, what)
        self._answer(offer, "deal", "YES")

    def decline(self, power: str, number: int) -> None:
        """Say no to an offer; UserError if it is no open offer to that power."""
        self._talking()
        self._answer(self._open(power, number), "declined", "REJ")

    def _open(self, power: str, number: int) -> Offer:
        q, offers = self.map.power_number(power), self._this_phase()
        if type(number) is not int or not 1 <= number <= len(offers):
            raise UserError(f"there is no offer {quoted(number, 20)} in {self.phase}")
        offer = offers[number - 1]
        if offer.receiver != q:
            raise UserError(f"offer {number} was not made to {self.map.powers[q]}")
        if offer.state != "open":
            raise UserError(f"offer {number} is no longer open: {offer.state}")
        return offer

    def _answer(self, offer: Offer, state: str, word: str, write: bool = True) -> None:
        self._offers[offer.number - 1] = offer._replace(state=state)
        if write:
            text = offer_text(self._games, offer.sender, offer.receiver, offer.clauses)
            names = self.map.powers[offer.receiver], self.map.powers[offer.sender]
            self.send(*names, f"{word} ( {text} )")

    def deals(self, power: str) -> list[str]:
        """Return the deals of a power in this phase in words: with whom, and what is agreed."""
        p, found = self.map.power_number(power), []
        for offer in self._this_phase():
            if offer.state == "deal" and p in (offer.sender, offer.receiver):
                partner = offer.receiver if offer.sender == p else offer.sender
                found.append(f"with {self.map.powers[partner]}: {self._offer_words(offer)}")
        return list(dict.fromkeys(found))  # a peace of two offers is one deal

    def _offer_words(self, offer: Offer) -> str:
        return offer_words(self.map, offer.sender, offer.receiver, offer.clauses)

    def decisions(self) -> Decisions:
        """Return what every power has to decide, without the orders that break a deal."""
        decisions = super().decisions()
        return decisions if self._press is None else self._press.bound(decisions)

    def bindings(self, power: str) -> dict[str, list[Offer]]:
        """Return province -> the deals that take orders from the power's unit there."""
        p, found = self.map.power_number(power), {}
        if self._press is not None and not self._press.binding:
            return found
        full = self._games.decisions()
        mine = self._games.state.unit_power[0, full.slot_province] == p
        for offer in self._this_phase():
            if offer.state != "deal" or p not in (offer.sender, offer.receiver):
                continue
            alone = Press(self._games, "offers")
            self._settle(alone, offer.sender, offer.receiver, offer.clauses, "")
            left = np.diff(alone.bound(full).order_start)
            for s in np.flatnonzero(mine & (left < np.diff(full.order_start))):
                found.setdefault(self.map.provinces[full.slot_province[s]], []).append(offer)
        return found

    def _has_deals(self) -> bool:
        return self._press is not None and any(o.state == "deal" for o in self._this_phase())

    def _bound_lists(self) -> dict[int, set[int]] | None:
        """Return province -> orders that the deals leave; None where nothing binds."""
        if not self._has_deals() or not self._press.binding:
            return None
        bound = self.decisions()
        return {
            int(v): set(bound.order[bound.order_start[s] : bound.order_start[s + 1]].tolist())
            for s, v in enumerate(bound.slot_province)
        }

    def legal_orders(self, place: str) -> list[str]:
        """Return the orders a unit can be given, those that break a deal left out."""
        texts, bound = super().legal_orders(place), self._bound_lists()
        if bound is None:
            return texts
        number, left = self._games.vocabulary.number, set().union(*bound.values())
        return [text for text in texts if number[text] in left]

    def _understand(
        self, power: str, text: str, given: list[tuple[str, list[int]]]
    ) -> tuple[list[int], str]:
        numbers, reason = super()._understand(power, text, given)
        bound = self._bound_lists()
        if bound is None or not numbers:
            return numbers, reason
        kept = [n for n in numbers if n in bound[self._province_of(n)]]
        return (kept, "") if kept else ([], self._why_broken(power, numbers[0]))

    def _why_broken(self, power: str, number: int) -> str:
        for offer in self._this_phase():
            p = self.map.power_index[power]
            if offer.state != "deal" or p not in (offer.sender, offer.receiver):
                continue
            alone = Press(self._games, "offers")
            self._settle(alone, offer.sender, offer.receiver, offer.clauses, "")
            orders = self._games.new_orders()
            orders[0, self._province_of(number)] = number
            alone.correct(orders)
            if orders[0, self._province_of(number)] != number:
                partner = offer.receiver if offer.sender == p else offer.sender
                name = self.map.powers[partner]
                return f"it breaks the deal with {name}: {self._offer_words(offer)}"
        return "it breaks an agreement"

    def adjudicate(self) -> dict[str, list[str]]:
        """Play the phase; units without an order, or with a void one, keep what was promised."""
        broken = {}
        if self.all_agree():  # no orders are played, so none breaks or keeps a promise
            return super().adjudicate()
        if self._bound_lists() is not None:
            self._keep_promises()
        elif self._has_deals():
            powers, found = self.map.powers, self._press.judge(self._given_orders())[0]
            broken = {
                power: [other for other, count in zip(powers, row) if count]
                for power, row in zip(powers, found)
                if row.any()
            }
        results = super().adjudicate()
        if broken:
            self.history[-1]["broken"] = broken
        return results

    def _given_orders(self) -> np.ndarray:
        orders = self._games.new_orders()
        for v, number in self.order_numbers().items():
            orders[0, v] = number
        return orders

    def _keep_promises(self) -> None:
        orders = self._given_orders()
        given = orders.copy()
        self._press.correct(orders)
        kinds = self._games.table.kind
        for v in np.flatnonzero(orders[0] != given[0]):
            number = int(orders[0, v])
            if given[0, v] == NONE and kinds[number] == HOLD:
                continue  # which it does anyway
            name = self.map.powers[self._games.state.unit_power[0, v]]
            text = self._games.vocabulary.texts[number]
            self._submitted.setdefault(name, []).append((text, [number]))

    @classmethod
    def from_saved_game(
        cls,
        saved: Mapping,
        game_map: str | Path | Map | None = None,
        max_years: int | None = None,
        press: str | None = None,
        press_rounds: int | None = None,
        binding: bool | None = None,
    ) -> "Game":
        """Return the game of a saved game, with the deals of its last phase.

        Args:
            saved, game_map, max_years: as for games.game.Game.from_saved_game.
            press, press_rounds: as for Game; the format does not store them.
            binding: as for Game; None: as the saved game says.

        Raises:
            UserError: it is no saved game, its last position is impossible, or (with press) what
                was said in its last phase are no offers and answers; other talk is kept as it is.
        """
        game = super().from_saved_game(saved, game_map, max_years)
        if press is not None:
            binding = saved.get("binding") is not False if binding is None else binding
            game.take_up_talk(press, press_rounds, binding)
        return game

    def take_up_talk(
        self,
        press: str,
        press_rounds: int | None = None,
        binding: bool = True,
        strict: bool = True,
    ) -> None:
        """Let powers talk from here on; the `messages` of this phase are read back to deals.

        Args:
            press, press_rounds, binding: as for Game.
            strict: False: messages that are no offers and answers here have no effect.

        Raises:
            UserError: they are none, with `strict`.
        """
        self._talk_by(press, press_rounds, binding)
        for number, message in enumerate(self.messages, 1):
            if is_daide(message["message"]):
                try:
                    self._read(message)
                except UserError as error:
                    if strict:
                        text = f"message {number} of {self.phase}: {error}"
                        raise UserError(text) from None

    def _read(self, message: Mapping) -> None:
        press = self._talking()
        p, q = (self.map.power_number(message[role]) for role in ("sender", "recipient"))
        if is_answer(message["message"]):
            p, q = q, p  # the offer went the other way
        word, clauses = read_message(self._games, p, q, message["message"])
        if word == "PRP":
            self._put(press, p, q, tuple(clauses), write=False)
            return
        found = [
            o
            for o in self._this_phase()
            if (o.sender, o.receiver, o.state) == (p, q, "open") and list(o.clauses) == clauses
        ]
        if not found:
            raise UserError("it answers no open offer")
        if word == "YES":
            self._settle(press, p, q, clauses, "the deal cannot be confirmed")
        self._answer(found[0], "deal" if word == "YES" else "declined", word, write=False)

    def to_saved_game(self) -> dict:
        """Return the game in the format of the `diplomacy` package.

        Where deals can be broken, it says so with a `binding` of ours. Its rules are those of the
        press, whether anybody has said anything or not.
        """
        saved = super().to_saved_game()
        if self._press is None:
            return saved
        rules = [rule for rule in saved["rules"] if rule != NO_PRESS]
        return saved | {"rules": rules} | notes_of(PressRules(binding=self._press.binding))

    def copy(self) -> "Game":
        """Return a game that goes on from here on its own."""
        game = super().copy()
        if self._press is not None:
            game._talk_by(self._press.protocol, self._press.rounds, self._press.binding)
            game._offers = list(self._this_phase())
            self._press.talking()  # which forgets the deals of earlier phases
            game._press.take_up(self._press.deals)
        return game


def _texts(texts: Sequence[str]) -> list[str]:
    found = [texts] if isinstance(texts, str) else texts
    if not isinstance(found, list | tuple) or not all(isinstance(text, str) for text in found):
        raise UserError(
            f"a deal must name orders and provinces as lists of texts, not {quoted(texts)}"
        )
    return list(found)
