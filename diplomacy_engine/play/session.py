"""One game between people and players: seats, orders, taking back, saving; no network, no page.

A session is kept in one file, a saved game (one line of a .jsonl) with the key `play` beside the
format's own: seats, links, the number of the step. It is replaced atomically after every change,
before anybody is told of it, so a session that is stopped at any moment goes on from its file with
the same links.

Whoever comes is known by a token: the host's, one for each power, and one to watch with.
"""

import dataclasses
import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from .._files import atomic_write
from .._suggest import quoted
from ..errors import UserError
from ..games.game import Game
from ..games.saved_game import EVERYONE, in_disorder
from ..games.votes import bot_votes
from ..players.advice import (
    Advice,
    ValueScale,
    advice,
    has_decision,
    ordering,
    orders_by_player,
    value_scale,
)
from ..players.names import short_name, short_names
from ..players.protocols import ExplainingPlayer, Player
from ..press.press import PressRules
from ..rules.notation import order_texts
from ..rules.state import seed_from
from .file import FORMAT, GUEST, HOST, PLAYER, WATCH, PlayRecord, Seat, pasted_game, rebuild
from .talk import answer_offer, broken_orders, make_offer, players_talk

PERSON = "a person"  # in a saved game, who had a person's seat
MAX_IDLE = 10  # phases that go by at most while people who are not eliminated can only wait


class PlayError(UserError):
    """A request cannot be granted; one sentence. `kind`: `invalid`, `forbidden` or `stale`."""

    def __init__(self, message: str, kind: str = "invalid"):
        super().__init__(message)
        self.kind = kind


class Viewer(NamedTuple):
    """Who asks."""

    power: str | None  # the power they play
    host: bool = False  # may choose seats, take back, go on


@dataclasses.dataclass
class SessionState:
    """All of a session that changes; replaced as a whole once it is saved."""

    game: Game
    seats: dict[str, Seat] | None = None  # None: the host has not chosen yet
    step: int = 0  # grows with every phase played or taken back
    answered: dict[str, tuple[int, list[str]]] = dataclasses.field(default_factory=dict)
    # What people had ordered in this phase before they took it back, to begin with.
    before: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    # Why players declined offers of this phase, by the offers' numbers; not kept in the file.
    reasons: dict[int, str] = dataclasses.field(default_factory=dict)

    def copy(self) -> "SessionState":
        own = dict(self.answered), dict(self.before), dict(self.reasons)
        return SessionState(self.game.copy(), self.seats, self.step, *own)


class PlaySession:
    """A game that people and players play.

    Args:
        game: where it begins.
        file: where it is kept; UserError if it cannot be written.
        opponents: names of players for the powers that no person plays.
        load: returns the player of a name.
        seats: who plays what; None lets the host choose.
        hint: name of the player that gives hints; None for the first opponent that can.
        seed: of the bots' draws.
        saved: the key `play` of the file, to go on with a session.
        offered: names of more players that the host may choose on a map of that name, best first;
            they are loaded when they are chosen.
        maps: names of maps among which the host may choose before the game begins; on another one
            opponents that are not offered there make room for the first that is.
        new_game: begins a game on one of these.
        press: how powers talk; `game` then has the same press. None: nobody makes deals.
        drawn: names of opponents -> who they really are, which is told once the game is over.
        draws_after: year from which the players vote for a draw (games/votes.py); None: no votes.

    Attributes:
        now: the SessionState.
        choices: short names of the players that the host may choose -> names.
        revision: grows with every change.
        trouble: why the players could not go on, if they could not.
        asking: who is ordering just now, player -> powers; read it without holding `lock`.
        tokens: HOST, WATCH and every power -> token.
    """

    def __init__(
        self,
        game: Game,
        file: str | Path,
        opponents: Sequence[str],
        load: Callable[[str], Player],
        seats: Mapping[str, Seat] | None = None,
        hint: str | None = None,
        seed: int = 1,
        saved: PlayRecord | None = None,
        offered: Callable[[str], Sequence[str]] = lambda _: (),
        maps: Sequence[str] = (),
        new_game: Callable[[str], Game] | None = None,
        press: PressRules | None = None,
        drawn: Mapping[str, str] | None = None,
        draws_after: int | None = None,
    ):
        self.file, self.seed, self.press = Path(file), seed, press
        self.draws_after = draws_after
        self.drawn = dict(drawn or {})
        self.opponents, self._load = list(dict.fromkeys(opponents)), load
        self._offered = offered
        self._offer(game.map.name)
        self.maps, self._new_game = list(maps), new_game
        self.lock = threading.RLock()
        self.revision, self.trouble = 0, ""
        self.asking: dict[str, list[str]] = {}
        self.tokens = {who: secrets.token_urlsafe(18) for who in (HOST, WATCH, *game.powers)}
        self._players = {name: load(name) for name in self.opponents}
        first = SessionState(game)
        if saved is not None:
            first.step, first.seats, first.before = saved.step, saved.seats, saved.before
            first.answered, self.tokens = saved.answered, saved.tokens
        if seats is not None:
            first.seats = dict(seats)
        for seat in (first.seats or {}).values():
            if seat.kind == PLAYER and seat.player not in self._players:
                self._players[seat.player] = load(seat.player)
        self.hint_name = hint
        self._hint: ExplainingPlayer | None = None
        if hint is not None:
            self._hint = ordering(self._players.get(hint) or load(hint))
            if not isinstance(self._hint, ExplainingPlayer):
                raise PlayError(f"{hint} cannot give hints, only a checkpoint can")
        self._find_hint()
        self._written: tuple[int, int] | None = None
        if saved is None:
            self._begin_phase(first)
        self._commit(first)
        self._go_on()

    def _offer(self, map_name: str) -> None:
        """Note who may be chosen on a map."""
        named = list(dict.fromkeys([*self.opponents, *self._offered(map_name)]))
        self._short = dict(zip(named, short_names(named)))
        self.choices = {short: name for name, short in self._short.items()}

    def _find_hint(self) -> None:
        """Let the first player give hints that can, unless one does already."""
        if self._hint is None:
            players = map(ordering, self._players.values())
            self._hint = next((one for one in players if isinstance(one, ExplainingPlayer)), None)

    # --- Who and what ---------------------------------------------------------------------------

    @property
    def game(self) -> Game:
        """The game as it stands; read it only while holding `lock`."""
        return self.now.game

    def viewer(self, token: str, power: str | None = None) -> Viewer | None:
        """Return whose token it is; None if nobody's.

        Args:
            power: in a sandbox, whose orders are to be given; None for the next without any.
        """
        found = self._owner(token)
        if found is None:
            return None
        with self.lock:
            if found == HOST:
                if not self.is_sandbox:
                    return Viewer(self._host_power(), True)
                waiting = [*self.waiting_for(), self._host_power()]
                return Viewer(power if power in self.game.powers else waiting[0], True)
            return Viewer(found if self._is_person(found, GUEST) else None)

    @property
    def is_sandbox(self) -> bool:
        """Whether one person gives everybody's orders."""
        seats = list((self.now.seats or {}).values())
        return len(seats) > 1 and all(seat.kind == HOST for seat in seats)

    def knows(self, token: str) -> bool:
        """Tell whether a token is one of this game's; waits for nobody, as `viewer` may."""
        return self._owner(token) is not None

    def _owner(self, token: str) -> str | None:
        found = None
        for who, known in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                found = who
        return found

    def _host_power(self) -> str | None:
        seats = self.now.seats or {}
        return next((power for power, seat in seats.items() if seat.kind == HOST), None)

    def _is_person(self, power: str, *kinds: str) -> bool:
        seat = (self.now.seats or {}).get(power)
        return seat is not None and seat.kind in (kinds or (HOST, GUEST))

    def people(self) -> list[str]:
        """Return the powers that people play."""
        return [power for power in self.game.powers if self._is_person(power)]

    def waiting_for(self) -> list[str]:
        """Return the powers of people who have something to order and have not."""
        state = self.game.to_state()
        return [
            power
            for power in self.people()
            if self._decides(state, power) and power not in self.game.orders
        ]

    def _decides(self, state: Mapping, power: str) -> bool:
        return has_decision(state, power) and power not in self.game.conceded

    def is_alive(self, power: str) -> bool:
        """Tell whether a power has a unit or a center."""
        return self._lives(self.game, power)

    @staticmethod
    def _lives(game: Game, power: str) -> bool:
        return bool(game.units[power] or game.centers[power] or game.dislodged.get(power))

    def can_concede(self, power: str | None) -> bool:
        """Tell whether a power is a person's that still plays."""
        plays = power is not None and self._is_person(power) and self.is_alive(power)
        return plays and power not in self.game.conceded and not self.game.is_over

    def can_go_on(self) -> bool:
        """Tell whether the next phase is played when the host says so."""
        return self.now.seats is not None and not self.game.is_over and not self.waiting_for()

    def can_take_back(self) -> bool:
        """Tell whether there is a phase to take back."""
        return self.now.seats is not None and self._last_own_phase() is not None

    def can_hint(self) -> bool:
        """Tell whether there is a player that gives hints."""
        return self._hint is not None

    # --- What people do -------------------------------------------------------------------------

    def choose_map(self, viewer: Viewer, name: str) -> None:
        """Begin on another map, before anybody sits anywhere.

        Raises:
            UserError: not the host, begun already, or no map to be chosen here.
        """
        with self.lock:
            self._only_host_before_the_game(viewer)
            if self._new_game is None or name not in self.maps:
                raise PlayError(f"{quoted(name, 40)} is not one of the maps to choose from")
            after = self.now.copy()
            after.game = self._new_game(name)
            offered = self._offered(name)
            kept = [one for one in self.opponents if one in offered]
            self.opponents = kept or list(offered[:1]) or self.opponents
            self._players = {one: self._load(one) for one in self.opponents}
            self._hint = None
            self._offer(name)
            self._find_hint()
            kept = {who: self.tokens[who] for who in (HOST, WATCH)}
            new = {power: secrets.token_urlsafe(18) for power in after.game.powers}
            self._commit(after, kept | new)

    def paste(self, viewer: Viewer, text: str) -> list[str]:
        """Begin from a pasted position or game, before anybody sits anywhere.

        Returns:
            What in it does not agree with our rules, in sentences.

        Raises:
            UserError: not the host, begun already, or there is no game in the text.
        """
        with self.lock:
            self._only_host_before_the_game(viewer)
            after, now = self.now.copy(), self.game
            after.game, notes = pasted_game(text, now.map, now.max_years, self.press)
            self._commit(after)
            return notes

    def choose_seats(self, viewer: Viewer, choice: Mapping[str, str]) -> None:
        """Begin the game.

        Args:
            viewer: the host.
            choice: every power -> `me`, `guest`, or one of `choices`. `me` stands once, or for all
                powers, which is a sandbox.

        Raises:
            UserError: not the host, begun already, or a power has none of these.
        """
        with self.lock:
            self._only_host_before_the_game(viewer)
            powers = self.game.powers
            for power in choice:
                if power not in powers:
                    raise PlayError(f"{quoted(power, 40)} is not a power of this map")
            seats = {}
            for power in powers:
                who = choice.get(power)
                if who in ("me", "guest"):
                    seats[power] = Seat(HOST if who == "me" else GUEST)
                elif who in self.choices:
                    seats[power] = Seat(PLAYER, self.choices[who])
                else:
                    raise PlayError(f"{power} must be played by me, guest or one of the players")
            if 1 < sum(seat.kind == HOST for seat in seats.values()) < len(seats):
                raise PlayError("you can play one power, or all of them; give the others a link")
            for seat in seats.values():
                if seat.kind == PLAYER and seat.player not in self._players:
                    self._players[seat.player] = self._load(seat.player)
            self._find_hint()
            after = self.now.copy()
            after.seats = seats
            self._begin_phase(after)
            self._commit(after)
            self._go_on()

    def submit(self, viewer: Viewer, step: int, orders: list[str]) -> None:
        """Give the viewer's orders; the phase is played once all people have given theirs.

        The same orders for the same step again change nothing, even when it was played meanwhile.

        Raises:
            UserError: no seat, another step than the current one, or an illegal order.
        """
        with self.lock:
            power = self._only_seat(viewer)
            if self.now.answered.get(power) == (step, orders):
                return
            self._only_now(step)
            if self.game.is_over:
                raise PlayError("the game is over", "stale")
            if not self._decides(self.game.to_state(), power):
                raise PlayError(f"{power} has no orders to give in {self.game.phase}")
            after = self.now.copy()
            after.game.submit(power, orders)
            after.answered[power] = (step, orders)
            self._commit(after)
            self._go_on()

    def let_order(self, viewer: Viewer, step: int, name: str, powers: Sequence[str]) -> None:
        """In a sandbox, let a player give the orders of powers that have given none.

        Raises:
            UserError: no sandbox, another step than the current one, no such player or power, or
                the player cannot order.
        """
        with self.lock:
            self._only_host(viewer)
            self._only_now(step)
            if not self.is_sandbox:
                raise PlayError("players can order for others only in a sandbox", "forbidden")
            if name not in self.choices:
                raise PlayError(f"{quoted(name, 40)} is not one of the players to choose from")
            waiting = self.waiting_for()
            powers = [power for power in powers if power in waiting]
            if not powers:
                raise PlayError("these powers need no orders now")
            chosen = self.choices[name]
            if chosen not in self._players:
                self._players[chosen] = self._load(chosen)
                self._find_hint()
            after = self.now.copy()
            player = self._players[chosen]
            given = self._ask(after.game, chosen, player, powers, self._draws(after))
            for power in powers:
                after.game.submit(power, given.get(power, []), strict=False)
            self._commit(after)
            self._go_on()

    def read_orders(self, viewer: Viewer, text: str, orders: Sequence[str]) -> list[str]:
        """Return orders with those of a text added, which take the place of the same units'.

        Args:
            text: one or more orders, as rules/notation.py finds them.
            orders: legal ones, from before.

        Raises:
            UserError: no seat, or why one of them cannot be given.
        """
        with self.lock:
            power, kept = self._only_seat(viewer), list(orders)
            for part in order_texts(text):
                trial = self.game.copy()
                trial.submit(power, [part])
                (order,) = trial.orders[power]
                unit = order.split()[:2]
                kept = [old for old in kept if old.split()[:2] != unit or old == "WAIVE"]
                trial.submit(power, [*kept, order])
                kept.append(order)
            return kept

    def withdraw(self, viewer: Viewer, step: int) -> None:
        """Take the viewer's orders of this phase back, while others have not given theirs."""
        with self.lock:
            power = self._only_seat(viewer)
            self._only_now(step)
            if power not in self.game.orders:
                raise PlayError(f"{power} has given no orders for {self.game.phase} yet")
            after = self.now.copy()
            self._give_back(after, power)
            self._commit(after)

    @staticmethod
    def _give_back(after: SessionState, power: str) -> None:
        after.before[power] = after.game.orders[power]
        after.answered.pop(power, None)
        after.game.withdraw(power)

    def vote(self, viewer: Viewer, step: int, draw: bool) -> None:
        """Vote for a draw in this phase, or take that back; the last vote of all ends the game.

        The same vote again changes nothing.

        Raises:
            UserError: no seat, another step than the current one, or why there can be no vote.
        """
        with self.lock:
            power = self._only_seat(viewer)
            self._only_now(step)
            if not self.game.draw_votes:
                raise PlayError("nobody votes for draws in this game: begin one with --draws-after")
            if draw == (power in self.game.votes) and not self.game.is_over:
                return
            after = self.now.copy()
            after.game.vote(power, draw)
            if after.game.all_agree():
                after.game.adjudicate()
                after.step += 1
                after.before = {}
            self._commit(after)

    def concede(self, viewer: Viewer, step: int) -> None:
        """Give the viewer's power up; who has done so already changes nothing.

        Raises:
            UserError: no seat, another step than the current one, or why it cannot be.
        """
        with self.lock:
            power = self._only_seat(viewer)
            if power in self.game.conceded:
                return
            self._only_now(step)
            after = self.now.copy()
            after.game.concede(power)
            after.answered.pop(power, None)
            after.before.pop(power, None)
            if after.game.all_agree():
                after.game.adjudicate()
            after.step += after.game.is_over
            self._commit(after)
            self._go_on()

    def offer(self, viewer: Viewer, step: int, receiver: str, terms: Mapping) -> None:
        """Offer a deal; where a player gets it, it answers at once.

        Args:
            receiver: a power.
            terms: keywords of Game.offer.

        Raises:
            UserError: no seat, another step than the current one, or why there can be no such offer
                or deal.
        """
        with self.lock:
            power, after = self._only_talker(viewer, step), self.now.copy()
            players, draws = self._speakers(after), self._draws(after)
            self._agree(after, make_offer, power, receiver, terms, players, draws)

    def answer(self, viewer: Viewer, step: int, number: int, agreed: bool) -> None:
        """Accept or decline an offer; the same answer again changes nothing.

        Args:
            number: which of the offers from and to the viewer in this phase, from 1 on.

        Raises:
            UserError: no seat, another step than the current one, no open offer to the viewer, or
                why there can be no such deal.
        """
        with self.lock:
            power, after = self._only_talker(viewer, step), self.now.copy()
            self._agree(after, answer_offer, power, number, agreed)

    def _agree(self, after: SessionState, action: Callable, *arguments: object) -> None:
        """Do something about a deal; who has given orders that it rules out orders again."""
        declined = action(after.game, *arguments)
        if declined is not None:
            after.reasons.update([declined])
        for power in broken_orders(after.game):
            self._give_back(after, power)
        self._commit(after)

    def _only_talker(self, viewer: Viewer, step: int) -> str:
        power = self._only_seat(viewer)
        self._only_now(step)
        if self.press is None:
            raise PlayError("nobody makes deals in this game")
        return power

    def take_back(self, viewer: Viewer, step: int) -> None:
        """Go back to the last phase in which a person could give orders; watching, to the last.

        Raises:
            UserError: not the host, another step than the current one, or nothing to take back.
        """
        with self.lock:
            self._only_host(viewer)
            self._only_now(step)
            back = self._last_own_phase()
            if self.now.seats is None or back is None:
                raise PlayError("there is no phase to take back")
            after = self.now.copy()
            after.game = rebuild(after.game, back, press=self.press)
            after.step += 1
            after.answered = {}
            given = self.game.history[back]["orders"]
            after.before = {power: list(given.get(power) or ()) for power in self.people()}
            self.trouble = ""
            self._begin_phase(after)
            self._commit(after)

    def _last_own_phase(self) -> int | None:
        history, people, conceded = self.game.history, self.people(), self.game.conceded
        for number in range(len(history) - 1, -1, -1):
            state = history[number]["state"]
            left = [p for p in people if p not in conceded or not in_disorder(state, p)]
            if not people or any(has_decision(state, power) for power in left):
                return number
        return None

    def go_on(self, viewer: Viewer, step: int) -> None:
        """Play one phase that waits for nobody: to watch, or once the people are eliminated."""
        with self.lock:
            self._only_host(viewer)
            self._only_now(step)
            if self.now.seats is None:
                raise PlayError("choose who plays before the game begins")
            if self.game.is_over:
                raise PlayError("the game is over", "stale")
            if self.waiting_for():
                raise PlayError(f"the game waits for {', '.join(self.waiting_for())}")
            self._play_phase()
            self._go_on()

    def hint_scale(self) -> ValueScale:
        """Return what the value of a hint counts; see `value_scale`."""
        return value_scale(self._hint)

    def hint(self, viewer: Viewer) -> Advice:
        """Return what the player that gives hints would do in the viewer's place."""
        with self.lock:
            power = self._only_seat(viewer)
            if self._hint is None:
                raise PlayError(
                    "no player here gives hints: play against a checkpoint, or name one"
                )
            if self.game.is_over:
                raise PlayError("the game is over")
            return advice(self.game, self._hint, power)

    def _only_host(self, viewer: Viewer) -> None:
        if not viewer.host:
            raise PlayError("only the person who started the game can do this", "forbidden")

    def _only_host_before_the_game(self, viewer: Viewer) -> None:
        self._only_host(viewer)
        if self.now.seats is not None:
            raise PlayError("the game has already begun", "stale")

    def _only_seat(self, viewer: Viewer) -> str:
        if viewer.power is None or not self._is_person(viewer.power):
            raise PlayError("you are watching and play no power", "forbidden")
        return viewer.power

    def _only_now(self, step: int) -> None:
        if step != self.now.step:
            raise PlayError(
                f"this was meant for step {step} of the game, which has moved on to step "
                f"{self.now.step}, {self.game.phase}",
                "stale",
            )

    # --- Playing --------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Play on until a person is to give orders, or the game needs somebody to say so."""
        idle = 0
        while self.can_go_on() and idle < MAX_IDLE:
            state = self.game.to_state()
            given = any(power in self.game.orders for power in self.people())
            deciding = any(self._decides(state, power) for power in self.people())
            if not given and not deciding and not any(map(self.can_concede, self.people())):
                return
            idle += not given
            try:
                self._play_phase()
            except PlayError:
                return  # `trouble` says why; what people gave is kept

    def _play_phase(self) -> None:
        """Ask the players for their orders and adjudicate."""
        after = self.now.copy()
        game, seats, draws = after.game, after.seats, self._draws(after)
        for name in dict.fromkeys(s.player for s in seats.values() if s.kind == PLAYER):
            powers = [power for power, seat in seats.items() if seat == Seat(PLAYER, name)]
            given = self._ask(game, name, self._players[name], powers, draws)
            for power, texts in given.items():
                game.submit(power, texts, strict=False)
        game.adjudicate()
        after.step += 1
        after.before = {}
        self.trouble = ""
        self._begin_phase(after)
        self._commit(after)

    def _draws(self, after: SessionState) -> int:
        """Return the seed of what players draw in a step."""
        return seed_from(self.seed, after.step)

    def _speakers(self, after: SessionState) -> dict[str, Player]:
        """Return the powers that players play, and these."""
        return {
            power: self._players[seat.player]
            for power, seat in after.seats.items()
            if seat.kind == PLAYER
        }

    def _begin_phase(self, after: SessionState) -> None:
        """Let the players vote for a draw, and make their offers."""
        if self.draws_after is not None and after.seats is not None and not after.game.is_over:
            votes = bot_votes(after.game.vector_game, self.draws_after)[0]
            for power, wants in zip(after.game.powers, votes):
                if wants and after.seats[power].kind == PLAYER and self._lives(after.game, power):
                    after.game.vote(power)
        self._begin_talk(after)

    def _begin_talk(self, after: SessionState) -> None:
        """Let the players make their offers of a phase that begins."""
        after.reasons = {}
        if self.press is None or after.seats is None or after.game.is_over:
            return
        speakers = self._speakers(after)
        self.asking = {"the other powers": list(speakers)}
        try:
            players_talk(after.game, speakers, self._draws(after))
        except Exception as error:  # a checkpoint's script is the user's own
            self._note_trouble(f"the players could not talk: {error}")
        finally:
            self.asking = {}

    def _note_trouble(self, text: str) -> None:
        self.trouble = " ".join(text.split())[:300]
        self.revision += 1

    def _ask(
        self, game: Game, name: str, player: Player, powers: list[str], seed: int
    ) -> dict[str, list[str]]:
        self.asking = {name: powers}
        try:
            return orders_by_player(game, player, powers, seed)
        except Exception as error:  # a checkpoint's script is the user's own
            self._note_trouble(f"{name} could not give orders: {error}")
            raise PlayError(self.trouble) from error
        finally:
            self.asking = {}

    # --- Keeping --------------------------------------------------------------------------------

    def _commit(self, after: SessionState, tokens: dict[str, str] | None = None) -> None:
        """Save a state, and perhaps new tokens, and only then make them the current ones."""
        tokens = tokens or self.tokens
        if self._written is not None and _stamp(self.file) not in (None, self._written):
            raise PlayError(
                f"another program has changed {self.file}, perhaps a second game with the same "
                "file; nothing was saved"
            )
        saved = after.game.to_saved_game() | {"players": self._told_players(after)}
        saved["play"] = self._play_key(after, tokens)
        atomic_write(self.file, (json.dumps(saved) + "\n").encode(), mode=0o600)
        self._written = _stamp(self.file)
        self.now, self.tokens = after, tokens
        self.revision += 1

    def _play_key(self, after: SessionState, tokens: dict[str, str]) -> dict:
        seats = after.seats
        return {
            "format": FORMAT,
            "step": after.step,
            "seats": None if seats is None else {power: list(s) for power, s in seats.items()},
            "answered": {power: list(answer) for power, answer in after.answered.items()},
            "before": after.before,
            "tokens": tokens,
            "opponents": self.opponents,
            "hint": self.hint_name,
            "seed": self.seed,
            "max_years": after.game.max_years,
            "press": None if self.press is None else self.press._asdict(),
            "draws_after": self.draws_after,
        }

    def may_hear(self, viewer: Viewer, message: Mapping) -> bool:
        """Tell whether a viewer may know a message: its own, what all heard, all in the end."""
        sides = message["sender"], message["recipient"]
        return (
            self.press is None
            or self.game.is_over
            or not {viewer.power, EVERYONE}.isdisjoint(sides)
        )

    def _phases_heard(self, viewer: Viewer, phases: Sequence[dict]) -> list[dict]:
        times, found = count(), []  # what is left out leaves no gap
        for phase in phases:
            known = [m for m in phase["messages"] if self.may_hear(viewer, m)]
            found.append(phase | {"messages": [m | {"time_sent": next(times)} for m in known]})
        return found

    def saved_game(self, viewer: Viewer = Viewer(None)) -> dict:  # noqa: B008
        """Return the game to be shared: no links, and no orders that are not played yet.

        Until it is over it has only the talk that the viewer may know.
        """
        with self.lock:
            saved = self.game.to_saved_game()
            last = saved["phases"][-1] | {"orders": {power: None for power in self.game.powers}}
            last.pop("votes", None)
            phases = [*saved["phases"][:-1], last]
            if self.press is not None:
                phases = self._phases_heard(viewer, phases)
            return saved | {"phases": phases, "players": self._told_players(self.now)}

    def told(self, name: str, game: Game) -> str:
        """Return a player's short name as the host may be told it now."""
        if name in self.drawn and game.is_over:
            return self.drawn[name]
        return self._short.get(name) or short_name(name)

    def shown(self, name: str, viewer: Viewer) -> str:
        """Return a player's name for a viewer: to others than the host no folder or address."""
        name = self.told(name, self.game)
        return name if viewer.host else name.partition("@")[0]

    def _told_players(self, now: SessionState) -> dict[str, str]:
        """Return who plays each power, for a saved game: no folders of this machine."""
        return {
            power: self.told(seat.player, now.game) if seat.kind == PLAYER else PERSON
            for power, seat in (now.seats or {}).items()
        }


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what changes whenever a file is replaced; None if it is gone."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
