"""The state of a game that people play, and the moves that each may make; no players, no file.

A session copies its state, changes the copy by one of the moves here, and saves it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._suggest import quoted
from ..errors import UserError
from ..players.advice import has_decision
from ..players.protocols import Player
from ..press.daide import is_daide
from ..textgame.game import Game
from ..textgame.saved_game import in_disorder
from .file import GUEST, HOST, PLAYER, Seat, rebuild
from .talk import answer_offer, broken_orders, make_offer


class PlayError(UserError):
    """A request cannot be granted. `kind`: `invalid`, `unknown` (who asks), `forbidden` or `stale`,
    that is too late."""

    def __init__(self, message: str, kind: str = "invalid"):
        super().__init__(message)
        self.kind = kind


@dataclass
class SessionState:
    """All of a session that changes; replaced as a whole once it is saved."""

    game: Game
    seats: dict[str, Seat] = field(default_factory=dict)  # none: the host has not chosen yet
    step: int = 0  # grows with every phase played or taken back
    answered: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    # Power -> orders that its person has chosen and not given, or has taken back.
    drafts: dict[str, list[str]] = field(default_factory=dict)

    # Why players declined offers of this phase, by the offers' numbers; not kept in the file.
    reasons: dict[int, str] = field(default_factory=dict)

    def copy(self) -> "SessionState":
        own = dict(self.answered), dict(self.drafts), dict(self.reasons)
        return SessionState(self.game.copy(), self.seats, self.step, *own)

    # --- Who plays, and what there is to do -----------------------------------------------------

    def powers_of(self, *kinds: str) -> list[str]:
        return [p for p in self.game.powers if p in self.seats and self.seats[p].kind in kinds]

    def people(self) -> list[str]:
        return self.powers_of(HOST, GUEST)

    def players(self) -> dict[str, list[str]]:
        powers_of: dict[str, list[str]] = {}
        for power, seat in self.seats.items():
            if seat.kind == PLAYER:
                powers_of.setdefault(seat.player, []).append(power)
        return powers_of

    @property
    def is_sandbox(self) -> bool:
        return 1 < len(self.game.powers) == len(self.powers_of(HOST))

    def waiting_for(self) -> list[str]:
        state = self.game.to_state()
        return [
            power
            for power in self.people()
            if self.decides(state, power) and power not in self.game.orders
        ]

    def decides(self, state: Mapping, power: str) -> bool:
        """Tell whether a power is waited for in this phase: it has more than one thing to order."""
        if not has_decision(state, power) or power in self.game.conceded:
            return False
        removed, units = -self.game.adjustments.get(power, 0), self.game.units[power]
        if removed > 0:
            return removed < len(units)
        dislodged = self.game.dislodged.get(power, ())
        return not dislodged or any(len(self.game.legal_orders(unit)) > 1 for unit in dislodged)

    def leads(self, power: str) -> bool:
        """Tell whether a power has more centers than every other: it would not take a draw."""
        counts = {name: len(owned) for name, owned in self.game.centers.items()}
        return counts.pop(power) > max(counts.values(), default=0)

    def can_concede(self, power: str | None) -> bool:
        return power in self.people() and self.game.is_alive(power) and not self.game.is_over

    def can_go_on(self) -> bool:
        return bool(self.seats) and not self.game.is_over and not self.waiting_for()

    def last_own_phase(self) -> int | None:
        """Return the number of the last phase in which a person could order; watching, the last."""
        if not self.seats:
            return None
        history, people, conceded = self.game.history, self.people(), self.game.conceded
        for number in range(len(history) - 1, -1, -1):
            state = history[number]["state"]
            playing = [p for p in people if p not in conceded or not in_disorder(state, p)]
            if not people or any(has_decision(state, power) for power in playing):
                return number
        return None

    # --- What people do -------------------------------------------------------------------------

    def draft(self, power: str, orders: list[str]) -> None:
        self.drafts[power] = orders

    def submit(self, power: str, orders: list[str]) -> None:
        if not self.decides(self.game.to_state(), power):
            raise PlayError(f"{power} has no orders to give in {self.game.phase}")
        self.game.submit(power, orders)
        self.answered[power] = self.step, orders

    def withdraw(self, power: str) -> None:
        """Take a power's orders back, if it has given any; its person begins with them again."""
        if power in self.game.orders:
            self.drafts[power] = self.game.orders[power]
            self.answered.pop(power, None)
            self.game.withdraw(power)

    def vote(self, power: str, draw: bool) -> None:
        if not self.game.rules.draw_votes:
            raise PlayError("nobody votes for draws in this game: begin one with --draws-after")
        if draw != (power in self.game.votes):
            self.game.vote(power, draw)
        if self.game.all_agree():
            self.adjudicate()

    def concede(self, power: str) -> None:
        self.game.concede(power)
        self.answered.pop(power, None)
        self.drafts.pop(power, None)
        if self.game.all_agree():
            self.game.adjudicate()
        self.step += self.game.is_over

    def offer(
        self,
        power: str,
        receiver: str | Sequence[str],
        terms: Mapping,
        players: Mapping[str, Player],
        seed: int,
    ) -> None:
        self.reasons |= make_offer(self.game, power, receiver, terms, players, seed)
        self._withdraw_broken()

    def answer(self, power: str, number: int, agreed: bool) -> None:
        answer_offer(self.game, power, number, agreed)
        self._withdraw_broken()

    def say(self, power: str, receiver: str, text: str) -> None:
        if not text.strip() or is_daide(text):  # what looks like an offer would be read as one
            raise PlayError(f"{quoted(text)} is no sentence")
        if receiver not in self.game.powers:
            raise PlayError(f"{quoted(receiver)} is no power of this game")
        self.game.send(power, receiver, " ".join(text.split()))

    def _withdraw_broken(self) -> None:
        """Withdraw submitted orders that a deal excludes."""
        for power in broken_orders(self.game):
            self.withdraw(power)

    def adjudicate(self) -> None:
        self.game.adjudicate()
        self.step += 1
        self.drafts = {}

    def take_back(self) -> None:
        """Go back to the last phase of one's own; people begin with the orders they gave there."""
        back = self.last_own_phase()
        if back is None:
            raise PlayError("there is no phase to take back")
        orders = self.game.history[back]["orders"]
        self.game = rebuild(self.game, back)
        self.step += 1
        self.answered = {}
        self.drafts = {power: list(orders.get(power) or ()) for power in self.people()}
