"""The loop of a seat elsewhere: read the position, ask the player, send, compare, wait."""

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from ..._suggest import counted
from ...constants import parse_phase
from ...errors import UserError
from ...games.votes import bot_votes
from ...players.advice import orders_by_player
from ...players.protocols import Player
from ...press.negotiators.negotiation import Negotiator
from ...rules.map import Map
from ...rules.order_matching import matching_orders
from ...rules.reading import read_order
from ...rules.state import seed_from
from ...textgame.game import Game
from ...textgame.saved_game import moment
from .connection import Connection, ConnectionLost, PhaseOver, Position, Say, TalkingConnection
from .talk import keeping_promises, rehearse, say_what_is_left

POLL = 30.0  # seconds after which a game is read anew, whatever was heard of it
TALK = 10.0  # seconds of talk in a movement phase
PATIENCE = 600.0  # seconds without a server after which it is given up
_LONGEST_PAUSE = 30.0  # seconds between two tries to connect
_MOST_TRIES = 3  # times that orders are given in one phase, if the server keeps losing them
_MOST_REFUSALS = 5  # in a row
_ELIMINATED = "with our powers eliminated"


@dataclass
class Counts:
    phases: int = 0
    orders: int = 0
    dropped: int = 0
    messages: int = 0
    reconnections: int = 0
    last: dict[str, Position] = field(default_factory=dict)  # by game

    def __str__(self) -> str:
        counted = f"{self.phases} phases, {self.orders} orders, {self.dropped} of them dropped"
        messages = f", {self.messages} messages" if self.messages else ""
        return f"{counted}{messages}, {self.reconnections} reconnections"


@dataclass
class SeatLoop:
    """Plays the seats of a connection. `draws`: every phase is voted a draw, `draws_after`: as bots
    do from that year on. `talk`, at most a third of a phase, and `patience` are seconds; `wait` for
    a server not yet there. `seed` seeds the player, `say` prints a line."""

    connection: Connection
    player: Player
    seed: int = 1
    _: KW_ONLY
    draws: bool = False
    talk: float = TALK
    patience: float = PATIENCE
    wait: bool = False
    say: Say = print
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self.counts = Counts()
        self._given: dict[str, dict[str, int]] = {}  # game -> power -> times in this phase
        self._dealt: dict[str, dict[str, list[str]]] = {}  # game -> power -> deals it ordered by
        self._talked: dict[str, float] = {}  # game -> when the talk of this phase ends
        self._voted: set[str] = set()  # games in which it has voted in this phase
        self._silent: set[str] = set()  # games of which it is told that the player says nothing
        self._pause = POLL  # until what is known now is looked at again
        self._entered = self._ever = False
        self._waited, self._refusals = 0.0, 0
        self._next_pause = 1.0

    def run(self) -> Counts:
        try:
            while not self._round():
                pass
        finally:
            self.connection.close()
        return self.counts

    def saved_games(self) -> list[dict]:
        return [
            position.game.to_saved_game()
            | {"players": dict.fromkeys(position.seats, self.player.name)}
            for position in self.counts.last.values()
        ]

    def _round(self) -> bool:
        try:
            if not self._entered:
                self.connection.enter()
                if self._ever:
                    self.counts.reconnections += 1
                    self.say(f"connected to {self.connection.name} again")
                self._entered = self._ever = True
            positions = [_or_eliminated(position) for position in self.connection.positions()]
            self._waited, self._pause = 0.0, POLL
            for position in positions:
                self._play(position)
            if positions and all(position.over for position in positions):
                return True
            self.connection.wait(self._pause)
        except PhaseOver as error:
            self._refusals += 1
            if self._refusals > _MOST_REFUSALS:
                raise UserError(f"{self.connection.name} accepts no orders: {error}") from None
            self.say(f"{self.connection.name} did not accept orders: {error}")
        except ConnectionLost as error:
            self._recover(error)
        return False

    def _recover(self, error: ConnectionLost) -> None:
        """Wait before the next try: 1, 2, 4 ... 30 seconds, as long as the patience lasts."""
        self.connection.close()
        if not self._ever and not self.wait:
            raise UserError(f"{self.connection.name}: {error}") from None
        if self._entered or not self._waited:
            self.say(f"{self.connection.name}: {error}; trying again")
            self._next_pause = 1.0
        self._entered = False
        if self._waited >= self.patience:
            silence = f"has not answered for {self._waited:.0f} seconds"
            raise UserError(f"{self.connection.name} {silence}: {error}") from None
        pause = min(self._next_pause, max(self.patience - self._waited, 0.1))
        self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)
        self._waited += pause
        self.sleep(pause)

    def _play(self, position: Position) -> None:
        name, phase = position.id, position.game.phase
        last = self.counts.last.get(name)
        self.counts.last[name] = position
        if position.over:
            if last is None or not last.over:
                held = {p: len(position.game.centers[p]) for p in position.seats}
                centers = ", ".join(f"{p} {counted(count, 'center')}" for p, count in held.items())
                self.say(f"{name} is over, {position.over}: {centers}")
            return
        if last is None or last.game.phase != phase:
            self._begin(position, None if last is None else last.game.phase)
        if not position.running:
            return
        if name not in self._voted:
            self._voted.add(name)
            for power in filter(position.game.is_alive, position.seats):
                if self._wants_draw(position.game, power):
                    self.connection.vote_draw(position, power)
        waiting = set(position.game.decisions().power.tolist())
        seats = [p for p in position.seats if position.game.map.power_index[p] in waiting]
        times_given, dealt = self._given[name], self._dealt[name]
        if position.talks and not times_given and self._talk(position, seats):
            return
        for power in seats:
            times, deals = times_given.get(power, 0), position.game.deals(power)
            again = power in position.missing or dealt.get(power) != deals
            if times == 0 or (again and times < _MOST_TRIES):
                self._order(position, power)
                times_given[power], dealt[power] = times + 1, deals

    def _talk(self, position: Position, seats: list[str]) -> bool:
        name, connection = position.id, self.connection
        if not (isinstance(self.player, Negotiator) and isinstance(connection, TalkingConnection)):
            if name not in self._silent:
                self.say(f"{name}: powers may talk in this game, but the player says nothing")
            self._silent.add(name)
            return False
        if name not in self._talked and position.seconds < math.inf:
            for power in seats:
                self.connection.give(position, power, [])  # should the phase end meanwhile
        seconds = min(self.talk, position.seconds / 3)
        remaining = self._talked.setdefault(name, time.monotonic() + seconds) - time.monotonic()
        seed, offering = self._seed(position), remaining > seconds / 2
        try:
            for message in say_what_is_left(position.game, seats, self.player, seed, offering):
                connection.send(position, message)
                self.counts.messages += 1
        except PhaseOver as error:
            self.say(f"{name}: the player's message was refused: {error}")
            remaining = 0.0
            self._talked[name] = -math.inf
        self._pause = min(self._pause, max(remaining, 0.01))
        return remaining > 0

    def _begin(self, position: Position, before: str | None) -> None:
        name, phase = position.id, position.game.phase
        if before is not None and moment(phase) < moment(before):
            self.say(f"{name}: the server has gone back from {before} to {phase}")
        else:
            self.say(f"{name}: {phase}")
        self._given[name], self._dealt[name], self._refusals = {}, {}, 0
        self._talked.pop(name, None)
        self._voted.discard(name)
        self.counts.phases += 1

    def _wants_draw(self, game: Game, power: str) -> bool:
        year = game.rules.draws_after
        if self.draws or year is None:
            return self.draws
        return bool(bot_votes(game.vector_game, year)[0, game.map.power_index[power]])

    def _order(self, position: Position, power: str) -> None:
        if position.seconds < math.inf:  # so that nothing worse than holds comes of a slow player
            self.connection.give(position, power, [])
        seed = self._seed(position)
        (orders,) = orders_by_player(position.game, self.player, [power], seed).values()
        orders = keeping_promises(position.game, power, orders)
        for _ in range(2):
            lost = dropped(position.game, orders, self.connection.give(position, power, orders))
            if not lost:
                break
        self._refusals = 0
        self.counts.orders += len(orders)
        self.counts.dropped += len(lost)
        for text in lost:
            self.say(f"{position.id}: {power}'s order {text} was dropped by the server")
        with contextlib.suppress(PhaseOver):  # at its deadline
            self.connection.finish(position, power)

    def _seed(self, position: Position) -> int:
        return seed_from(self.seed, *parse_phase(position.game.phase))


def _or_eliminated(position: Position) -> Position:
    alive = any(map(position.game.is_alive, position.seats))
    return position if position.over or alive else position._replace(over=_ELIMINATED)


def dropped(game: Game, sent: Sequence[str], accepted: Sequence[str]) -> list[str]:
    """Return the orders that a server has not kept; a text that means the same counts as kept."""
    remaining, lost = list(accepted), []
    for text in sent:
        match = next((other for other in remaining if _means(game, other, text)), None)
        if match is None:
            lost.append(text)
        else:
            remaining.remove(match)
    return lost


def _means(game: Game, text: str, order: str) -> bool:
    if text == order:
        return True
    vocabulary = game.vector_game.vocabulary
    number = vocabulary.number.get(order)
    try:
        read = read_order(game.map, text)
    except UserError:
        return False
    return number is not None and bool(matching_orders(game.map, vocabulary, read, [number]))


def check_plays(player: Player, game_map: Map) -> None:
    """Raise UserError unless a player gives orders; so it is compiled before any deadline."""
    orders_by_player(Game(game_map), player, game_map.powers[:1], 1)
    if isinstance(player, Negotiator):
        rehearse(player, game_map)
