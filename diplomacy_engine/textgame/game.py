"""One game in texts: `Game`, one row of a VectorGame, for people, tests and viewers."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Unpack, cast

import numpy as np

from .. import constants
from .._copies import copied, copied_object
from .._suggest import quoted
from ..constants import (
    AGREED,
    NONE,
    YEAR_LIMIT,
    OrderKind,
    UnitKind,
    canonical_phase,
    parse_phase,
    phase_kind,
)
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import History, VectorGame
from ..pictures.board import scene_svg
from ..pictures.drawing import Scene, drawing_of
from ..press.daide import ClauseRow, Terms, is_daide, offer_text
from ..press.deals import Clause, Side
from ..press.press import Press
from ..rules import notation, reading
from ..rules.game_rules import GameRules, RuleOptions
from ..rules.map import Map, load_map
from ..rules.order_matching import matching_orders
from ..rules.phases import end_by_victory
from ..rules.state import GameState
from ..scoring.outcomes import figure_values
from . import position as positions
from . import saved_game as saved_games
from .causes import played_orders, result_words
from .refusals import why_illegal
from .talk import GameTalk, Offer

_STAYS = (" H", " HOLD", " D", "WAIVE")  # how orders end that change nothing for neutral units


class _Played(NamedTuple):
    """A phase that was played, which becomes a record of `Game.history` when somebody reads it."""

    game_map: Map
    before: GameState  # a copy
    orders: dict[str, list[str] | None]
    results: dict[str, int]  # result bits by unit
    notes: dict

    def as_saved(self) -> saved_games.SavedPhase:
        # Without the last orders, which are in the phase before.
        games = VectorGame(self.game_map, 1, threads=1, auto_reset=False)
        games.state = self.before
        state = positions.state_dictionary(games)
        record = {"name": positions.current_phase(games), "state": state}
        played = {"orders": self.orders, "results": self.result_words()}
        return cast(saved_games.SavedPhase, record | played | self.notes)

    def result_words(self) -> dict[str, list[str]]:
        return {text: positions.result_words(bits) for text, bits in self.results.items()}


class Game:
    """One game of a map, in which powers may make deals before they order.

    Args:
        game_map: `standard`, `small`, `three`, a path to a map file, a Map, or GameRules.
        rules: fields of GameRules, such as `max_years=10`, `press="offers"` or `draw_votes=True`.
            Without `binding` the history lists broken deals under `broken`.

    Attributes:
        map: the Map.
        id: identifier of the game in saved games.
        messages: the messages of this phase so far, as in a saved game.

    `adjudicate` returns the result of each order, `causes` the units responsible:

        game = Game.from_position("small S1901M; ENGLAND A LON =; RUSSIA A PAR =")
        game.submit("ENGLAND", ["A LON - PAR"])
        game.adjudicate()   # {"A LON": ["bounce"], "A PAR": []}
        game.causes()       # {"A LON": {"bounce": ["A PAR"]}}
    """

    def __init__(
        self, game_map: str | Path | Map | GameRules = "standard", **rules: Unpack[RuleOptions]
    ):
        """See the class for the arguments."""
        base = game_map if isinstance(game_map, GameRules) else GameRules(load_map(game_map))
        base = replace(base, **rules) if rules else base
        self._games = VectorGame(base, 1, threads=1, auto_reset=False)
        self.map = self._games.map
        self.id = "game"
        self._history: tuple[saved_games.SavedPhase | _Played, ...] = ()
        self.messages: list[dict] = []
        self._talk = GameTalk(self._games)
        self._begin_phase()

    def _begin_phase(self) -> None:
        # power -> (text, legal order numbers it may mean, none if it is void)
        self._submitted: dict[str, list[tuple[str, list[int]]]] = {}
        self._lists: dict[int, list[int]] | None = None
        self._games.state.votes[0] = False
        self._talk.begin_phase()

    @property
    def history(self) -> list[saved_games.SavedPhase]:
        """The adjudicated phases as in a saved game: name, state, orders, results, messages."""
        saved = [p.as_saved() if isinstance(p, _Played) else p for p in self._history]
        self._history = tuple(saved)
        return saved

    @history.setter
    def history(self, phases: Sequence[saved_games.SavedPhase]) -> None:
        self._history, self._games.history = tuple(phases), None

    @property
    def rules(self) -> GameRules:
        """All rules of the game."""
        return self._games.rules

    @property
    def phase(self) -> str:
        """The phase, such as `S1901M`; `COMPLETED` once the game is over."""
        return positions.current_phase(self._games)

    @property
    def powers(self) -> list[str]:
        """All powers of the map, alphabetical."""
        return list(self.map.powers)

    @property
    def units(self) -> dict[str, list[str]]:
        """Every power's units, without the `dislodged` ones; neutral units are listed under the
        map's name for them (`neutral`)."""
        return positions.standing_units(self._games)

    @property
    def centers(self) -> dict[str, list[str]]:
        """Every power's supply centers."""
        return positions.owned_centers(self._games)

    @property
    def dislodged(self) -> dict[str, dict[str, list[str]]]:
        """In a retreat phase: power -> dislodged unit -> places it may retreat to."""
        return positions.retreat_places(self._games)

    @property
    def adjustments(self) -> dict[str, int]:
        """In winter (W....A): power -> number of builds (positive) or removals (negative), if
        any."""
        return positions.owed_adjustments(self._games)

    @property
    def winners(self) -> list[str]:
        """The winner and its team, or in a draw the surviving powers; [] before the end."""
        return positions.winners(self._games)

    @property
    def conceded(self) -> list[str]:
        """The powers that have conceded, see `concede`."""
        return positions.named(self._games, self._games.state.conceded[0])

    @property
    def is_draw(self) -> bool:
        """Whether the game ended without a winner."""
        return bool(self._games.state.end[0] in (YEAR_LIMIT, AGREED))

    @property
    def is_agreed(self) -> bool:
        """Whether the game ended in a draw for which all powers voted."""
        return bool(self._games.state.end[0] == AGREED)

    @property
    def is_conceded(self) -> bool:
        """Whether the game ended because all other surviving powers conceded."""
        return positions.won_by_concession(self._games)

    @property
    def result(self) -> str:
        """The result, such as `France wins with 18 centers`; empty before the end."""
        return positions.result_text(self._games)

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return bool(self._games.state.end[0] != constants.RUNNING)

    @property
    def orders(self) -> dict[str, list[str]]:
        """The orders submitted for this phase, void ones included, by power."""
        return {
            name: [text for text, _ in submitted] for name, submitted in self._submitted.items()
        }

    @property
    def alive(self) -> list[str]:
        """The powers that have a unit, a dislodged one included, or a supply center, and have not
        conceded."""
        return positions.named(self._games, self._games.outcomes().alive[0])

    def is_alive(self, power: str) -> bool:
        """Tell whether a power is among those `alive`."""
        return self.map.powers[self.map.power_number(power)] in self.alive

    def legal_orders(self, place: str) -> list[str]:
        """Return the legal orders of a unit; in winter also the builds of a center.

        Orders that break a deal are left out. `place` is a unit such as `A PAR` (in a retreat phase
        the dislodged one), or a province; UserError if there is no such place on the map.
        """
        kind, where = reading.read_place(self.map, place)
        table = self._games.table
        numbers = self._legal().get(where.province, [])
        builds = bool(numbers) and table.kind[numbers[0]] == constants.BUILD
        if kind is not None and numbers and (builds or table.unit_kind[numbers[0]] != kind):
            return []  # of no unit, or of one of the other kind
        if self._talk.binds:
            unbound = self._talk.left()
            numbers = [number for number in numbers if number in unbound]
        texts = [self._games.vocabulary.texts[number] for number in numbers]
        return [*texts, "WAIVE"] if builds else texts

    def _legal(self) -> dict[int, list[int]]:
        """Province -> numbers of the legal orders there, WAIVE left out."""
        if self._lists is None:
            self._lists = positions.legal_numbers(self._games)
        return self._lists

    def submit(self, power: str, orders: list[str], strict: bool = True) -> list[str]:
        """Set a power's orders for this phase, in place of its earlier ones.

        Args:
            orders: order texts; units without an order hold or disband.
            strict: refuse all orders if one is illegal. Otherwise an illegal order is kept as
                `void` and has no effect, orders for neutral units have none either, and an army
                without a possible convoy goes by land.

        Returns the orders that were changed: each void order with its reason, and each convoy that
        became a move by land. UserError: unknown power, not a list of texts, or (strict) an illegal
        order, with its reason; then the earlier orders stay.
        """
        name = self.map.unit_powers[self.map.power_number(power, or_neutral=not strict)]
        texts = _texts(orders, f"the orders of {name}")
        if name not in self.map.power_index:
            moved = [text for text in texts if not text.upper().endswith(_STAYS)]
            return [f"{text!r:.200}: nobody plays {name}, whose units hold" for text in moved]
        meanings: list[tuple[str, list[int]]] = []
        wrong = []
        for text in texts:
            numbers, reason = self._understand(name, text, meanings)
            if reason and not strict:
                numbers = self._by_land(name, text, meanings)
                reason = "no fleet could convoy it, so it goes by land" if numbers else reason
            if reason:
                wrong.append(f"{text!r:.200}: {reason}")
            if reason and strict:
                raise UserError(wrong[0])
            meanings.append((self._order_text(text, numbers), numbers))
        conceded = self._games.state.conceded[0, self.map.power_index[name]]
        self._submitted[name] = [] if conceded else meanings
        return wrong

    def withdraw(self, power: str) -> None:
        """Remove a power's orders for this phase."""
        self._submitted.pop(self.map.powers[self.map.power_number(power)], None)

    @property
    def votes(self) -> list[str]:
        """The powers that have voted for a draw in this phase."""
        return positions.named(self._games, self._games.state.votes[0])

    def vote(self, power: str, draw: bool = True) -> None:
        """Vote for a draw in this phase, or withdraw the vote.

        If all surviving powers vote for a draw in one phase, `adjudicate` plays no orders: the game
        ends in a draw between them. With teams every power votes for itself. UserError: the game is
        over or has no votes; the power is unknown, eliminated or has conceded; it has already voted
        in this phase, or has no vote to withdraw.
        """
        name = self._contender(power, "vote")
        if not self.rules.draw_votes:
            raise UserError("there are no votes for a draw in this game: it needs draw_votes=True")
        if draw == (name in self.votes):
            has = "has already" if draw else "has not"
            raise UserError(f"{name} {has} voted for a draw in {self.phase}")
        self._games.state.votes[0, self.map.power_index[name]] = draw

    def concede(self, power: str) -> None:
        """Let a power concede: it is in civil disorder from this phase on.

        Its units hold, or disband if dislodged; it builds nothing, and removals follow the rule of
        civil disorder. Draws do not need its vote and do not include it, and it counts as
        eliminated in `figures`. The last power, or team, that has not conceded wins as by a solo.
        UserError: the game is over; the power is unknown, eliminated or has conceded.
        """
        name = self._contender(power, "concede")
        state, number = self._games.state, self.map.power_index[name]
        state.conceded[0, number], state.votes[0, number] = True, False
        self._submitted.pop(name, None)
        self._talk.concede(number)
        self._lists = None
        record = self._record({power: [] for power in self.map.powers})
        if end_by_victory(self._games.board, state, 0, False):
            self._close(record)

    def _contender(self, power: str, what: str) -> str:
        name = self.map.powers[self.map.power_number(power)]
        over, gone = self.is_over, name in self.conceded
        if over or gone or name not in self.alive:
            why = "the game is over" if over else "it has conceded" if gone else "it is eliminated"
            raise UserError(f"{name} cannot {what}: {why}")
        return name

    def send(self, sender: str, recipient: str, message: str) -> dict:
        """Send a message in this phase; return it as in a saved game. `sender` is a power or
        `SYSTEM`, `recipient` another power or `GLOBAL`; else UserError, as at the end."""
        if self.is_over:
            raise UserError("nothing can be said after the end of the game")
        if not isinstance(message, str):
            raise UserError(f"a message is a text, not {quoted(message)}")
        others = [power for power in self.map.powers if power != sender]
        for name, role, allowed in (
            (sender, "sender", (saved_games.REFEREE, *self.map.powers)),
            (recipient, "recipient", (saved_games.EVERYONE, *others)),
        ):
            if name not in allowed:
                names = ", ".join(allowed)
                raise UserError(f"the {role} of a message is one of {names}, not {quoted(name)}")
        sent = sum(len(phase["messages"]) for phase in self.history) + len(self.messages)
        names = {"sender": sender, "recipient": recipient, "time_sent": sent}  # no clock: repeats
        self.messages.append(names | {"phase": self.phase, "message": message})
        return self.messages[-1]

    @property
    def table(self) -> Press | None:
        """The Press whose only game is this one, for negotiators; None without press."""
        return self._talk.press

    def offer(
        self,
        sender: str,
        receiver: str | Sequence[str],
        *,
        ours: Sequence[str] = (),
        theirs: Sequence[str] = (),
        zone: Sequence[str] = (),
        we_keep_out: Sequence[str] = (),
        they_keep_out: Sequence[str] = (),
        we_leave: Sequence[str] = (),
        they_leave: Sequence[str] = (),
        peace: bool = False,
        phase: str | None = None,
    ) -> int:
        """Offer a deal; return its number, for `accept` and `decline`.

        With `mutual` press only peace can be offered; it holds as soon as both powers have offered
        it.

        Args:
            sender, receiver: two powers; or several receivers, to offer peace and zones among all,
                which hold between any two of them once all have agreed.
            ours, theirs: promised orders of the sender's units, of the receiver's units.
            zone: provinces that both sides keep out of and leave.
            we_keep_out, they_keep_out: provinces at which no order of that side aims.
            we_leave, they_leave: provinces from which that side's units must move.
            peace: each side keeps out of the other's centers and of provinces with its units.
            phase: movement phase of the deal, such as F1902M; by default this one. For a later
                phase any orders of the map can be promised; the deal lapses if one is illegal then.

        UserError if the offer is impossible; then nothing has changed.
        """
        self._talk.press_now()
        receivers = [self.map.power_number(name) for name in _texts(receiver)]
        if not receivers or len({*receivers}) < len(receivers):
            raise UserError("an offer goes to one power, or to several different ones")
        receivers.sort()
        powers, phase = (self.map.power_number(sender), receivers[0]), self._later_phase(phase)
        clauses: list[ClauseRow] = []
        for side, texts in ((Side.SENDER, ours), (Side.RECEIVER, theirs)):
            name = self.map.powers[powers[side]]
            clauses += self._promises(side, name, _texts(texts), phase)
        for kind, side, places in (
            (Clause.ZONE, Side.BOTH, zone),
            (Clause.KEEP_OUT, Side.SENDER, we_keep_out),
            (Clause.KEEP_OUT, Side.RECEIVER, they_keep_out),
            (Clause.LEAVE, Side.SENDER, we_leave),
            (Clause.LEAVE, Side.RECEIVER, they_leave),
        ):
            clauses += self._talk.place_clauses(powers, kind, side, _texts(places))
        if peace:
            clauses.append((Clause.PEACE, Side.BOTH, NONE, NONE))
        return self._put(*powers, Terms(tuple(clauses), tuple(receivers[1:]), phase))

    def _later_phase(self, phase: str | None) -> str:
        """Return a movement phase by its usual name, or nothing for this one."""
        name = canonical_phase(phase or self.phase)
        if phase_kind(name) != "movement" or parse_phase(name) < parse_phase(self.phase):
            raise UserError(f"{quoted(phase)} is no movement phase from {self.phase} on")
        return "" if name == self.phase else name

    def _promises(
        self, side: Side, power: str, texts: Sequence[str], phase: str
    ) -> list[ClauseRow]:
        clauses: list[ClauseRow] = []
        for text in texts:
            if phase:
                number = self._games.vocabulary.number.get(text, NONE)
                numbers, reason = [number], "" if number != NONE else "no order of this map"
            else:
                numbers, reason = self._legal_meaning(power, text, [])
            if len(numbers) > 1:
                coasts = " or ".join(self._games.vocabulary.texts[number] for number in numbers)
                reason = f"name the coast: {coasts}"
            if reason:
                raise UserError(f"{quoted(text, 200)}: {reason}")
            clauses.append((Clause.ORDER, side, self._province_of(numbers[0]), numbers[0]))
        return clauses

    def put(self, sender: str, receiver: str, clauses: Sequence[ClauseRow]) -> int:
        """Offer a deal in rows of press.deals.Offers, as negotiators write it."""
        p, q = self.map.power_number(sender), self.map.power_number(receiver)
        return self._put(p, q, Terms(tuple(clauses)))

    def _put(self, p: int, q: int, terms: Terms) -> int:
        offer = self._talk.put(p, q, terms)
        for receiver in offer.receivers:
            names = self.map.powers[p], self.map.powers[receiver]
            self.send(*names, self._daide(offer, receiver))
        return offer.number

    def _daide(self, offer: Offer, receiver: int) -> str:
        return offer_text(self._games, offer.sender, receiver, offer.terms_for(receiver))

    def offers(self, power: str) -> dict[int, str]:
        """Return the open offers to a power in words, by number."""
        q = self.map.power_number(power)
        return {
            offer.number: f"{self.map.powers[offer.sender]}: {self._talk.words(offer)}"
            for offer in self._talk.offers
            if q in offer.receivers and q not in offer.agreed and offer.state == "open"
        }

    def said(self, power: str | None = None) -> list[Offer]:
        """Return all offers of this phase, answered or not, or those from or to a power."""
        if power is None:
            return list(self._talk.offers)
        p = self.map.power_number(power)
        return [offer for offer in self._talk.offers if p in offer.powers]

    def peace(self) -> list[tuple[str, str]]:
        """Return the pairs of powers that are at peace in this phase."""
        return [(self.map.powers[p], self.map.powers[q]) for p, q in sorted(self._talk.peace())]

    def accept(self, power: str, number: int) -> None:
        """Accept an offer; the deal holds once all receivers have accepted. UserError, and nothing
        has changed, if the power has no such open offer, or other deals exclude it."""
        offer = self._talk.open_offer(self.map.power_number(power), number)
        if self.rules.press == "mutual":
            self.offer(power, self.map.powers[offer.sender], peace=True)
            return
        receiver = self.map.power_number(power)
        self._talk.accept(receiver, offer)
        self._answer(offer, receiver, "YES")

    def decline(self, power: str, number: int) -> None:
        """Decline an offer; UserError if the power has no such open offer."""
        receiver = self.map.power_number(power)
        offer = self._talk.open_offer(receiver, number)
        self._talk.decline(offer)
        self._answer(offer, receiver, "REJ")

    def _answer(self, offer: Offer, receiver: int, word: str) -> None:
        names = self.map.powers[receiver], self.map.powers[offer.sender]
        self.send(*names, f"{word} ( {self._daide(offer, receiver)} )")

    def deals(self, power: str) -> list[str]:
        """Return the deals of a power for this phase and later ones in words: partners and
        clauses."""
        deals = [offer for offer in self.said(power) if offer.state == "deal"]
        deals += self.later_deals(power)
        lines = [f"with {self.partners(power, o)}: {self.words(o)}" for o in deals]
        return list(dict.fromkeys(lines))  # a peace of two offers is one deal

    def partners(self, power: str, offer: Offer) -> str:
        """Return the other powers of a power's offer, in words."""
        return self._talk.partners(self.map.power_number(power), offer)

    def words(self, offer: Offer) -> str:
        """Return the clauses of an offer in words."""
        return self._talk.words(offer)

    def later_deals(self, power: str) -> list[Offer]:
        """Return the deals of a power for later phases that were made in earlier phases."""
        return list(self._talk.later(self.map.power_number(power)))

    def bindings(self, power: str) -> dict[str, list[Offer]]:
        """Return province -> the deals that take orders from the power's unit there."""
        return self._talk.bindings(self.map.power_number(power))

    def change_rules(self, rules: GameRules | None = None, **changes: Unpack[RuleOptions]) -> None:
        """Continue by other rules of the same map, or with other fields of the rules; for another
        kind of press see `take_up_talk`. UserError, and then nothing has changed."""
        rules = replace(rules or self.rules, **changes)
        if rules.map != self.map:
            raise UserError("the map of a game cannot change")
        before, self._games.rules = self.rules, rules
        if rules.talk != before.talk:
            try:
                self.take_up_talk()
            except UserError:
                self._games.rules = before
                raise

    def take_up_talk(self, strict: bool = True) -> None:
        """Restore deals from the messages so far. Messages that are no valid offers or answers have
        no effect; with `strict`, UserError."""
        talk = GameTalk(self._games)
        if talk.press:
            before = self.history[-1]["state"] if self.history else {}
            earlier = [saved_games.in_disorder(before, power) for power in self.map.powers]
            with talk.before_concessions(earlier):
                for phase in self.history:
                    talk.recall(phase["messages"])
                talk.hold_due()
            with talk.before_concessions():
                self._read_messages(talk, strict)
            for power in self.conceded:
                talk.concede(self.map.power_index[power])
        self._talk = talk

    def _read_messages(self, talk: GameTalk, strict: bool) -> None:
        for number, message in enumerate(self.messages, 1):
            if is_daide(message["message"]):
                try:
                    talk.read(message)
                except UserError as error:
                    if strict:
                        text = f"message {number} of {self.phase}: {error}"
                        raise UserError(text) from None

    @property
    def vector_game(self) -> VectorGame:
        """The VectorGame whose row 0 is this game, for players; stepping it is up to the Game."""
        if self._games.history is None:
            self._games.history = self._replayed()
        return self._games

    def _replayed(self) -> History:
        """Return what came before, as far as the phases played can be played here, too."""
        past, history = None, History(self._games)
        with contextlib.suppress(UserError):  # another program has played by other rules
            for phase in self.history:
                if past is None:
                    past = Game.from_state(self.rules, phase["state"])
                    past._games.history = history
                for power, texts in phase["orders"].items():
                    past.submit(power, texts or [], strict=False)
                past.adjudicate()
        return history

    def decisions(self) -> Decisions:
        """Return the decisions of all powers, without orders that break a deal."""
        return self._talk.bound(self._games.decisions())

    def _order_text(self, text: str, numbers: list[int]) -> str:
        if not numbers:
            return text
        legal = self._games.vocabulary.texts[numbers[0]]
        return legal.rpartition("/")[0] if len(numbers) > 1 else legal  # a move to any coast

    def _understand(
        self, power: str, text: str, orders_before: list[tuple[str, list[int]]]
    ) -> tuple[list[int], str]:
        numbers, reason = self._legal_meaning(power, text, orders_before)
        if not numbers or not self._talk.binds:
            return numbers, reason
        unbound = self._talk.left()
        allowed = [number for number in numbers if number in unbound]
        if allowed:
            return allowed, ""
        number, p = numbers[0], self.map.power_index[power]
        return [], self._talk.why_broken(p, self._province_of(number), number)

    def _legal_meaning(
        self, power: str, text: str, orders_before: list[tuple[str, list[int]]]
    ) -> tuple[list[int], str]:
        """Of two legal orders for one unit, or adjustments beyond those owed, the first ones count
        (DATC 4.D.4, 4.D.5, 4.D.6)."""
        if self.is_over:
            return [], "the game is over"
        games, table, p = self._games, self._games.table, self.map.power_index[power]
        if games.state.conceded[0, p]:
            return [], f"{power} has conceded and gives no more orders"
        winter = games.state.phase[0] == constants.WINTER_ADJUSTMENTS
        owed = positions.owed_adjustments(games).get(power, 0) if winter else 0
        numbers = [games.vocabulary.number.get(text, NONE)]
        province = self._province_of(numbers[0])
        if numbers[0] not in self._own_orders(p, province):  # not as we write it
            try:
                order = reading.read_order(self.map, text, self.unit_kinds)
            except UserError as error:
                return [], str(error)
            if order.kind == OrderKind.MOVE and self._is_retreat:
                order = order._replace(kind=OrderKind.RETREAT)  # as judges write it
            province = order.unit.place.province if order.units else NONE
            waives = [table.waive] if owed > 0 else []
            numbers = self._own_orders(p, province) if order.units else waives
            numbers = matching_orders(self.map, games.vocabulary, order, numbers)
            if not numbers or (len(numbers) > 1 and order.kind != OrderKind.SUPPORT_MOVE):
                return [], why_illegal(games, power, order, numbers)
        valid = [other[0] for _, other in orders_before if other]
        ordered = {self._province_of(number) for number in valid if number != table.waive}
        if province in ordered:
            return [], f"there is already an order for {self.map.provinces[province]}"
        if winter and len(valid) >= abs(owed):
            what = "build or waive" if owed > 0 else "remove"
            return [], f"{power} has only {abs(owed)} to {what}"
        return numbers, ""

    def _by_land(
        self, power: str, text: str, orders_before: list[tuple[str, list[int]]]
    ) -> list[int]:
        """Return the move by land that stands for one with VIA that is illegal, if there is one."""
        try:
            order = reading.read_order(self.map, text, self.unit_kinds)
        except UserError:
            return []
        by_sea = order.via and order.unit.kind == UnitKind.ARMY
        if not by_sea or self._legal_meaning(power, text, [])[0]:
            return []
        unit, goal = notation.unit_text(self.map, order.unit), order.target
        move = f"{unit} - {notation.place_text(self.map, goal)}"
        return self._understand(power, move, orders_before)[0]

    def _own_orders(self, power: int, province: int) -> list[int]:
        numbers = self._legal().get(province, [])
        if numbers and self._games.table.kind[numbers[0]] == constants.BUILD:
            center = self._games.board.province_center[province]
            owner = self._games.state.center_owner[0, center]
        else:
            owner = self._ordered_units()[0][province]
        return numbers if owner == power else []

    @property
    def unit_kinds(self) -> np.ndarray:
        """(V,) the kind of the unit that this phase orders in each province, or NONE."""
        return self._ordered_units()[1]

    @property
    def _is_retreat(self) -> bool:
        return constants.PHASE_LETTERS[self._games.state.phase[0]] == "R"

    def _ordered_units(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(power, kind, location), (V,) each, of the units that this phase orders."""
        state = self._games.state
        if self._is_retreat:
            return state.dislodged_power[0], state.dislodged_kind[0], state.dislodged_location[0]
        return state.unit_power[0], state.unit_kind[0], state.unit_location[0]

    def _province_of(self, number: int) -> int:
        return int(self._games.board.location_province[self._games.table.location[number]])

    def adjudicate(self) -> dict[str, list[str]]:
        """Adjudicate the phase with the submitted orders and move on to the next phase.

        If all powers vote for a draw, the game ends instead; see `vote`. A unit with a void order
        or none gets its promised order, if any. UserError once the game is over.

        Returns:
            Unit (its text before the phase) -> result words: every unit in a movement phase, the
            dislodged ones in a retreat phase, units built, removed or with a void order in winter.
            No words mean success.
        """
        if self.is_over:
            raise UserError("the game is over")
        if self.all_agree():
            record = self._record({power: [] for power in self.map.powers})
            self._games.step(self._games.new_orders())
            return self._close(record)
        broken = {}
        if self._talk.binds:
            self._keep_promises()
        elif self._talk.has_deals:
            broken = self._talk.broken(self._order_array(self.order_numbers()))
        record = self._record({**{power: [] for power in self.map.powers}, **self.orders})
        chosen = self.order_numbers()
        if self._games.state.phase[0] == constants.WINTER_ADJUSTMENTS:
            results = self._adjudicate_winter(chosen)
        elif self._is_retreat:
            results = self._adjudicate_retreats(chosen)
        else:
            results = self._adjudicate_movement(chosen)
        record.notes.update({"broken": broken} if broken else {})
        return self._close(record._replace(results=results))

    def _keep_promises(self) -> None:
        promised = self._talk.promised(self._order_array(self.order_numbers()))
        for v, number in promised.items():
            name = self.map.powers[self._games.state.unit_power[0, v]]
            if name in self.conceded:
                continue
            submitted = self._submitted.get(name, [])
            # The unit's other orders, void ones too, would count when the game is read back.
            others = [order for order in submitted if not self._orders_unit_in(v, order[0])]
            if len(others) < len(submitted) or self._games.table.kind[number] != OrderKind.HOLD:
                text = self._games.vocabulary.texts[number]
                self._submitted[name] = [*others, (text, [number])]

    def _orders_unit_in(self, province: int, text: str) -> bool:
        unit = reading.ordered_unit(self.map, text, self.unit_kinds)
        return unit is not None and unit.place.province == province

    def all_agree(self) -> bool:
        """Tell whether all powers have voted for a draw, so that `adjudicate` ends the game."""
        return bool(self._games.state.votes.any() and self._games.agreed()[0])

    def _record(self, orders: dict[str, list[str] | None]) -> _Played:
        """Return a record of this phase, before it is played; `results` are still to come."""
        notes = {"messages": list(self.messages)} | ({"votes": self.votes} if self.votes else {})
        return _Played(self.map, copied(self._games.state, {}), orders, {}, notes)

    def _close(self, played: _Played) -> dict[str, list[str]]:
        self._history = *self._history, played
        self.messages = []
        self._begin_phase()
        return played.result_words()

    def order_numbers(self) -> dict[int, int]:
        """Return province -> number of the one legal order submitted for it, without waives."""
        submitted = [numbers for orders in self._submitted.values() for _, numbers in orders]
        waive = self._games.table.waive
        meanings = {self._province_of(n[0]): n for n in submitted if n and n[0] != waive}
        return positions.settle_coasts(self._games, meanings)

    def _void_units(self, chosen: dict[int, int]) -> set[int]:
        """Return the provinces of units that their own power has given void orders alone."""
        powers, kinds, _ = self._ordered_units()
        return {
            v
            for power, unit, _ in self._void_orders()
            if (v := unit.place.province) not in chosen
            and (powers[v], kinds[v]) == (self.map.power_index[power], unit.kind)
        }

    def _void_orders(self) -> Iterator[tuple[str, notation.UnitText, str]]:
        """Yield power, unit and text of each void order that names a unit."""
        for power, submitted in self._submitted.items():
            for text in (text for text, numbers in submitted if not numbers):
                unit = reading.ordered_unit(self.map, text, self.unit_kinds)
                if unit is not None:
                    yield power, unit, text

    def _order_array(self, chosen: dict[int, int]) -> np.ndarray:
        orders = self._games.new_orders()
        for v, number in chosen.items():
            orders[0, v] = number
        return orders

    # Each plays a phase and returns result bits by unit.

    def _adjudicate_movement(self, chosen: dict[int, int]) -> dict[str, int]:
        state, void = self._games.state, self._void_units(chosen)
        units = self._unit_texts()
        self._games.step(self._order_array(chosen))
        results = state.last_result[0].tolist()
        for v in void:
            results[v] |= constants.VOID
        return {text: results[v] for v, text in units.items()}

    def _unit_texts(self) -> dict[int, str]:
        powers, kinds, locations = (array.tolist() for array in self._ordered_units())
        return {
            v: self.map.unit_text(kinds[v], locations[v])
            for v, power in enumerate(powers)
            if power != NONE
        }

    def _adjudicate_retreats(self, chosen: dict[int, int]) -> dict[str, int]:
        state, table = self._games.state, self._games.table
        void, units = self._void_units(chosen), self._unit_texts()
        gone = constants.DISBANDED
        results = {t: gone | constants.VOID if v in void else gone for v, t in units.items()}
        goals = {}
        for v, number in list(chosen.items()):
            if table.kind[number] != OrderKind.RETREAT:
                continue
            goals[v] = self._games.board.location_province[table.target[number]]
            results[units[v]] = constants.BOUNCE | gone
            if state.unit_power[0, goals[v]] != NONE:
                # Only a loaded position can offer a retreat to an occupied province.
                chosen[v] = table.disband[table.unit_kind[number], table.location[number]]
                del goals[v]
        self._games.step(self._order_array(chosen))
        for v, goal in goals.items():
            if state.unit_power[0, goal] != NONE:
                results[units[v]] = 0
        return results

    def _adjudicate_winter(self, chosen: dict[int, int]) -> dict[str, int]:
        state, table = self._games.state, self._games.table
        units, own = self._unit_texts(), self._void_units(chosen)
        foreign = {text for v, text in units.items() if v not in own}
        results = {}
        for _, unit, text in self._void_orders():
            v, builds = unit.place.province, reading.order_kind(self.map, text) == constants.BUILD
            stands = v in own and not builds
            results[units[v] if stands else notation.unit_text(self.map, unit)] = constants.VOID
        for text in foreign:
            results.pop(text, None)
        for number in chosen.values():
            text = self.map.unit_text(table.unit_kind[number], table.location[number])
            results[text] = 0
        self._games.step(self._order_array(chosen))
        for v, text in units.items():
            if state.unit_power[0, v] == NONE and chosen.get(v, NONE) == NONE:
                results[text] = constants.DISBANDED | results.get(text, 0)
        return results

    def causes(self, phase: str | None = None) -> dict[str, dict[str, list[str]]]:
        """Return the units that made orders of an adjudicated phase fail.

        `phase` is a name such as `S1901M`; None: the last phase. Returns unit -> result word ->
        responsible units, all by their texts before the phase: units with which a move or retreat
        bounced (`bounce`), that cut a support (`cut`), that dislodged the unit (`dislodged`), the
        dislodged fleets of a convoy (`no convoy`). Other units are left out. UserError: no such
        phase was adjudicated, or its position (of a saved game) is impossible.
        """
        played = {record["name"]: record for record in self.history}
        if not played:
            raise UserError("no phase has been played yet")
        names = list(played)
        name = names[-1] if phase is None else canonical_phase(str(phase).upper())
        if name not in played:
            span = f"only {names[0]} to {names[-1]}"
            raise UserError(f"{quoted(phase, 40)} was not played, {span}")
        record, games = played[name], VectorGame(self.map, 1, threads=1, auto_reset=False)
        positions.load_state(games, record["state"])
        return played_orders(games, record["orders"], result_words(record["results"]))[1]

    def to_state(self) -> dict:
        """Return the position as the `state` dictionary of a saved game, with `last_orders` and
        `last_results`, which policies observe, if there was a movement phase."""
        return positions.state_dictionary(self._games) | positions.last_orders(self._games)

    @classmethod
    def from_state(
        cls,
        game_map: str | Path | Map | GameRules,
        state: Mapping,
        agreed: bool = False,
        conceded: Sequence[str] = (),
        **rules: Unpack[RuleOptions],
    ) -> "Game":
        """Return a game that continues from a state dictionary; other arguments are those of Game.

        `state` must have `name` (the phase) and `units`. Optional are `centers`, `retreats` and,
        for policies, `last_orders`, power -> texts of the last movement phase, and `last_results`,
        unit -> result words. Other keys are ignored, but a misspelt one is an error. `agreed`: a
        game that is over ended in a draw by votes; `conceded` are the powers that have conceded.
        UserError if the state is impossible, with the place and the reason.
        """
        game = cls(game_map, **rules)
        positions.load_state(game._games, state, agreed, conceded)
        return game

    def to_svg(
        self,
        orders: Mapping[str, Sequence[str]] | None = None,
        outcome: Mapping[str, Sequence[str]] | None = None,
        theme: str = "auto",
        width: int | None = None,
    ) -> str:
        """Return a picture (SVG) of the position, `width` pixels wide; None: as its frame.

        Orders are arrows; without `orders` these are the submitted ones. Orders that fail by
        `outcome`, a result of `adjudicate`, are crossed. pictures/board.py describes the SVG.
        """
        orders = self.orders if orders is None else orders
        by_power = {power.upper(): texts for power, texts in orders.items()}
        scene = self.scene().with_orders(self.map, by_power, outcome or {})
        return scene_svg(drawing_of(self.map), scene, theme, width)

    def scene(self) -> Scene:
        """Return the position as pictures/board.py draws it."""
        passed: dict[str, str] = {}
        for table in (*(phase["state"]["units"] for phase in self.history), self.units):
            for power, units in table.items():
                standing = [unit for unit in units or () if not unit.startswith("*")]
                passed.update(dict.fromkeys(map(notation.province_of, standing), power))
        return Scene(self.phase, self.units, self.dislodged, self.centers, passed)

    def to_position(self) -> str:
        """Return the position as one line, such as `small S1901M; ENGLAND A LON = LON; ...`. It
        does not have the last orders, which `to_state` has."""
        return positions.position_line(self._games)

    @classmethod
    def from_position(
        cls,
        position: str,
        game_map: str | Path | Map | GameRules | None = None,
        **rules: Unpack[RuleOptions],
    ) -> "Game":
        """Return a game that continues from a line of `to_position`; `game_map` None is the map
        that the line names, other arguments are those of Game. UserError if the line cannot be
        read, or the position is impossible."""
        name, state = positions.parse_position_line(position)
        return cls.from_state(game_map or name, state, **rules)

    def to_saved_game(self) -> dict:
        """Return the whole game in the format of the `diplomacy` package, with additional keys for
        its `winners` and the `rules` that differ from their defaults."""
        # None: nothing was submitted yet.
        pending = {power: self.orders.get(power) for power in self.map.powers}
        phases = [*self.history, self._record(pending).as_saved()]
        ending = saved_games.Ending(self.is_agreed, tuple(self.conceded))
        own_end = self.is_draw or bool(self.is_over and self.conceded)
        silent = self.table is None and not any(phase["messages"] for phase in phases)
        saved = saved_games.saved_game_dictionary(self.id, self.rules, phases, silent, own_end)
        return saved | ending.notes() | {"winners": self.winners}

    @classmethod
    def from_saved_game(
        cls,
        saved: Mapping,
        game_map: str | Path | Map | GameRules | None = None,
        **changes: Unpack[RuleOptions],
    ) -> "Game":
        """Return the game of a saved game, which continues from its last phase.

        Args:
            game_map: None: the map that it names; GameRules replace all its rules.
            changes: fields of GameRules that replace its own.

        UserError: it is no saved game, its last position or that of its last movement phase is
        impossible, or (with `press` here) messages of its last phase are no offers or answers.
        """
        game_id, rules, phases, ending = saved_games.read_saved_game(saved, game_map)
        game = cls.from_state(rules, phases[-1]["state"], *ending, **changes)
        game.id, game.history = game_id, phases[:-1]
        last = game.history[-1]["name"] if game.is_over and game.history else ""
        if phase_kind(last):  # the state of its end does not tell the year
            game._games.state.year[0] = parse_phase(last)[0]
        other_rules = isinstance(game_map, GameRules) or "draw_votes" in changes
        if game.rules.draw_votes or not other_rules:
            for power in phases[-1].get("votes", ()):
                game.vote(power)
        if "last_orders" not in phases[-1]["state"]:
            game.take_up_last_movement()
        game.messages = phases[-1]["messages"]
        for power, orders in phases[-1]["orders"].items():
            if orders is not None and not game.is_over:
                game.submit(power, orders, strict=False)
        game.take_up_talk(strict="press" in changes)
        return game

    def take_up_last_movement(self) -> None:
        """Take over the orders and results of the history's last movement phase that was
        adjudicated, not ended by a draw or concession."""
        phases = [phase for phase in self.history if phase_kind(phase["name"]) == "movement"]
        if phases and (self.is_agreed or self.conceded) and not phases[-1]["results"]:
            phases.pop()
        if not phases:
            return
        try:
            earlier = Game.from_state(self.map, phases[-1]["state"])
            for power, orders in phases[-1]["orders"].items():
                earlier.submit(power, orders or [], strict=False)
        except UserError as error:
            name = quoted(phases[-1]["name"], 40)
            raise UserError(f"phase {name} of the saved game is impossible: {error}") from None
        earlier.adjudicate()
        for key in ("last_order", "last_power", "last_result"):
            getattr(self._games.state, key)[0] = getattr(earlier._games.state, key)[0]
        positions.forbid_retreats(self._games)

    def figures(self) -> dict[str, dict[str, float]]:
        """Return power -> figure of scoring/outcomes.py -> value, of a finished game, else
        UserError."""
        if not self.is_over:
            raise UserError(f"the game is not over yet, it is in {self.phase}")
        centers, limit = self.map.board.victory_centers, self.rules.year_limit
        values = figure_values(self._games.outcomes(), centers, limit)
        return {
            power: {name: float(value[0, number]) for name, value in values.items()}
            for number, power in enumerate(self.map.powers)
        }

    @classmethod
    def from_row(cls, games: VectorGame, row: int) -> "Game":
        """Return a copy of one row of a VectorGame, with an empty history."""
        game = cls(games.rules)
        if games.history is not None:
            game._games.history = History(game._games)
        game._games.copy_from(games, np.array([row]), np.zeros(1, int), keep_seeds=True)
        return game

    def copy(self) -> "Game":
        """Return an independent copy, as `copy.copy` does. It shares the records of past phases;
        `copy.deepcopy` copies these, too."""
        return self.__copy__()

    def __copy__(self) -> "Game":
        return self.__deepcopy__({id(self._history): self._history})

    __deepcopy__ = copied_object

    _repr_svg_ = to_svg  # in a notebook

    def __repr__(self) -> str:
        return f"Game({self.map.name!r}, {self.phase})"


def _texts(texts: Sequence[str], what: str = "what an offer names") -> list[str]:
    items = [texts] if isinstance(texts, str) else texts
    if not isinstance(items, list | tuple) or not all(isinstance(text, str) for text in items):
        raise UserError(f"{what} must be a list of texts, not {quoted(texts)}")
    return list(items)
