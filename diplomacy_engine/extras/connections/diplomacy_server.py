"""Seats in a game of the `diplomacy` package's server, and the powers there that nobody plays."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from ...constants import COMPLETED, phase_kind
from ...errors import UserError
from ...records import convert
from ...rules.game_rules import GameRules
from ...rules.map import MAP_NAMES
from ...textgame.game import Game
from ...textgame.saved_game import Message
from .connection import ConnectionLost, PhaseOver, Position, Refused, Say, words_of
from .diplomacy_wire import ServerError, Wire
from .talk import known_messages

ANY = "any"  # in place of a power: whichever is free
# The account by which the server lets a program give the orders of powers that nobody plays. Every
# server has it, and it opens nothing else.
_BOT = (
    "#bot@2e723r43tr70fh2239-qf3947-3449-21128-9dh1321d12dm13d83820d28-9dm,xw201=ed283994f4n832483",
    "#bot:password:28131821--mx1fh5g7hg5gg5g\u00b4[],s222222223djdjje399333x93901deedd|e[[[]{{|@S{@244f",
)
_DUMMY_POLL = 1.0  # seconds
_MOST_GAMES = 1000  # that are asked for at once
_FINISHED = ("completed", "canceled")
_NO_PRESS, _PUBLIC_PRESS = "NO_PRESS", "PUBLIC_PRESS"
_MESSAGE = "game_message_received"
_NEWS = ("game_processed", "game_phase_update", "game_status_update", "game_deleted")


class Account(NamedTuple):
    """A user of a server; one that it does not know yet is made by logging in."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Account({self.user!r})"


class _Power(Struct):
    units: list[str]
    centers: list[str]
    retreats: dict | None = None
    order_is_set: int | None = None
    controller: dict | None = None  # by the moment since which somebody plays it
    orders: dict | None = None  # by unit
    adjust: list[str] | None = None


class _GameData(Struct):
    role: str
    map_name: str
    status: str
    phase_abbr: str
    powers: dict[str, _Power]
    state_history: dict[str, dict]
    order_history: dict[str, dict | None]
    result_history: dict[str, dict | None]
    note: str | None = None
    rules: list[str] | None = None
    messages: list[Message] | None = None
    message_history: dict[str, list[Message] | None] | None = None
    deadline: int | None = None

    @property
    def silence(self) -> str:
        """Why nobody can talk to one power; empty if one can."""
        rules = self.rules or ()
        if _NO_PRESS in rules:
            return "nobody may talk"
        return "powers may only talk to all" if _PUBLIC_PRESS in rules else ""


class _Note(Struct):
    """A notification; its name determines its other keys."""

    name: str | None = None
    game_id: str | None = None
    powers: dict = {}  # who plays which power, and since when
    timestamps: dict[str, int | None] = {}
    current_phase_data: dict = {}


class _Row(Struct):
    game_id: str
    map_name: str
    phase: str
    status: str
    registration_password: bool
    deadline: int | None = None


@dataclass
class _Seats:
    """What is asked for a power whose seat is held, in the phase of a position."""

    wire: Wire
    rules: GameRules
    _: KW_ONLY
    any_map: bool = False  # whether the game's map may have another name
    say: Say = print  # prints a line

    def __post_init__(self) -> None:
        self.name = self.wire.name
        self._tokens: dict[str, object] = {}
        self._unsure: set[str] = set()  # powers whose seat may have been lost

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except ServerError as error:
            self._unsure = set(self._tokens)  # we may have been kicked
            raise PhaseOver(str(error)) from None

    def _ask(self, name: str, position: Position, power: str, **fields: object) -> None:
        where = {"game_id": position.game.id, "game_role": power, "phase": position.game.phase}
        with self._refusals():
            self.wire.ask(name, token=self._tokens[power], **where, **fields)

    def give(self, position: Position, power: str, orders: list[str]) -> list[str]:
        """Send orders, and return those that the server has kept: its answer does not say. It waits
        for us then, until `finish`, so that they can be looked at before they are played."""
        self._ask("set_orders", position, power, orders=orders, wait=True)
        where = {"token": self._tokens[power], "game_id": position.game.id}
        with self._refusals():
            data = _game_data(self.wire, power_name=power, **where)
        if data.phase_abbr != position.game.phase:
            raise PhaseOver(f"{position.game.phase} has passed")
        accepted = _own(data, power)
        texts = [f"{unit} {text}" for unit, text in (accepted.orders or {}).items()]
        return texts + (accepted.adjust or [])

    def finish(self, position: Position, power: str) -> None:
        self._ask("set_wait_flag", position, power, wait=False)

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            note = self.wire.wait(remaining)
            if note is not None and self._is_news(note):
                return

    def _is_news(self, content: dict) -> bool:
        return False

    def close(self) -> None:
        self.wire.close()

    def _position(self, game_id: str, views: Sequence[_GameData], seats: Sequence[str]) -> Position:
        data = views[-1]
        name, status = data.map_name, data.status
        if name != self.rules.map.name and not self.any_map:
            shown = words_of(name, 40)
            hint = f"--map {name}"
            if name not in MAP_NAMES:
                hint = "--map FILE, with a map file of it, which import-map makes"
            own = self.rules.map.name
            raise UserError(f"the game is on map {shown!r}, not on {own!r}: say {hint}")
        phases = [*_history(data), _present(data)]
        for phase in () if data.silence else phases:
            phase["messages"] = self._messages(views, phase["name"], phase is phases[-1])
        saved = {"id": game_id, "map": name, "phases": phases}
        rules = self.rules if data.silence else replace(self.rules, press="offers")
        try:
            game = Game.from_saved_game(saved, rules)
        except UserError as error:
            raise UserError(f"it is impossible on map {self.rules.map.name}: {error}") from None
        missing = [p for p in seats if p not in data.powers or not data.powers[p].order_is_set]
        over = status if status in _FINISHED else "completed" if game.is_over else ""
        return Position(
            words_of(game_id, 60),
            game,
            list(seats),
            frozenset(missing),
            status == "active" or (data.silence != "" and status == "forming"),  # talk comes first
            data.deadline or math.inf,
            not data.silence and phase_kind(game.phase) == "movement",
            over,
        )

    def _messages(self, views: Sequence[_GameData], phase: str, is_last: bool) -> list[Mapping]:
        messages: dict[int, dict] = {}
        for data in views:
            rows = data.messages if is_last else (data.message_history or {}).get(phase)
            for row in rows or ():
                if row.phase == phase:  # the seats were not read in one moment
                    messages[row.time_sent] = asdict(row)
        return known_messages(self.rules.map, list(messages.values()))


@dataclass
class DiplomacySeats(_Seats):
    """Seats in one game."""

    game_id: str
    accounts: Mapping[str, Account]  # power or ANY -> account
    _: KW_ONLY
    registration: str = ""  # the game's password
    must_talk: bool = False  # whether to play only if powers may talk

    def __post_init__(self) -> None:
        super().__post_init__()
        self._since: dict[str, int] = {}  # power -> moment at which its seat was taken
        self._alive: list[str] = []
        self._talks = False
        self._phase = ""
        self._told = ""  # the status, as it was last told

    def enter(self) -> None:
        self.wire.open()
        self._tokens = {power: _sign_in(self.wire, a) for power, a in self.accounts.items()}
        self._unsure = set(self._tokens)

    def positions(self) -> list[Position]:
        views, failed = [], {}
        wanted = self._alive if self._talks else self._alive[:1]  # each sees what it said and heard
        for power in sorted(self._unsure.union(wanted) if self._talks else self._unsure or wanted):
            try:
                views.append(self._join(power))
            except Refused as error:
                if power not in self._since:
                    raise
                failed[power] = error
        position = self._position(self.game_id, views or [self._watch()], list(self._tokens))
        self._alive = list(filter(position.game.is_alive, self._tokens))
        for power, error in failed.items():
            if power in self._alive and not position.over:
                raise error
        self._unsure = set()
        self._phase, self._talks = position.game.phase, position.talks
        if views:
            self._note(views[-1])
        return [position]

    def _watch(self) -> _GameData:
        """Return the game as somebody sees it who plays nobody, as of a finished one. A token has
        one role in a game, and keeps it where a vote has ended the game."""
        token = _sign_in(self.wire, next(iter(self.accounts.values())))
        return _game_data(self.wire, **self._where(token))

    def _where(self, token: object) -> dict:
        password = {"registration_password": self.registration} if self.registration else {}
        return {"token": token, "game_id": self.game_id} | password

    def _join(self, power: str) -> _GameData:
        wanted, token = power, self._tokens[power]
        if wanted == ANY:
            playable = self.rules.map.power_index
            free = free_powers(self.wire, token, self.game_id)
            wanted = next((name for name in free if name in playable), None)
            if wanted is None:
                raise Refused(f"{self.game_id} has no free power")
        try:
            data = _game_data(self.wire, power_name=wanted, **self._where(token))
        except ServerError as error:
            raise self._refusal(error, token) from None
        role = data.role
        if data.silence and self.must_talk:
            self._leave(data, token)
            raise Refused(f"{data.silence} in {self.game_id}: give the player behind its + alone")
        if role == power:
            self._since[power] = _controlled_since(data, power)
            return data
        if power != ANY:
            self._leave(data, token)
            role_text = words_of(role, 40)
            raise Refused(
                f"{self.game_id} gives {role_text} instead of {power}; --power {ANY} takes any"
            )
        self.say(f"{self.game_id}: this is {words_of(role, 40)}")
        self._tokens = {role: token}
        self.accounts = {role: self.accounts[ANY]}
        self._since = {role: _controlled_since(data, role)}
        return data

    def _leave(self, data: _GameData, token: object) -> None:
        where = {"game_id": self.game_id, "game_role": data.role, "phase": data.phase_abbr}
        self.wire.ask("leave_game", token=token, **where)

    def _refusal(self, error: ServerError, token: object) -> UserError:
        try:
            free = free_powers(self.wire, token, self.game_id)
        except ServerError:
            return error
        return Refused(f"{error}; free powers of {self.game_id}: {', '.join(free) or 'none'}")

    def _note(self, data: _GameData) -> None:
        status = data.status
        if status not in ("active", *_FINISHED, self._told):
            self.say(f"{self.game_id}: the game is {words_of(status, 20)}")
        self._told = status

    def send(self, position: Position, message: Mapping) -> None:
        fields = {key: message[key] for key in ("sender", "recipient", "message")}
        fields["phase"] = position.game.phase
        self._ask("send_game_message", position, message["sender"], message=fields)

    def vote_draw(self, position: Position, power: str) -> None:
        try:
            self._ask("vote", position, power, vote="yes")
        except PhaseOver as error:
            self.say(f"{position.id}: {error}")

    def _is_news(self, content: dict) -> bool:
        note = convert(_Note, content, f"a message of {self.name}")
        if note.game_id not in (None, self.game_id):
            return False
        if note.name == "powers_controllers":
            lost = {
                power
                for power in self._alive
                if note.powers.get(power) != self.accounts[power].user
                and (note.timestamps.get(power) or 0) > self._since[power]  # else it is old news
            }
            for power in sorted(lost):
                self.say(f"{self.game_id}: {power} was taken from us")
            self._unsure |= lost
            return bool(lost)
        if note.name == "game_processed":  # it comes once for each seat
            return note.current_phase_data.get("name") != self._phase
        return note.name in _NEWS or (self._talks and note.name == _MESSAGE)


class DiplomacyDummies(_Seats):
    """The powers that nobody plays, in all games of a server on maps like the standard one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._token: object = None
        self._passed_over: set[str] = set()

    def enter(self) -> None:
        self.wire.open()
        self._token = _sign_in(self.wire, Account(*_BOT))

    def positions(self) -> list[Position]:
        waiting = self.wire.ask(
            "get_dummy_waiting_powers", token=self._token, buffer_size=_MOST_GAMES
        )
        games, positions = convert(dict[str, list[str]], waiting, f"the games of {self.name}"), []
        for game_id, powers in games.items():
            try:
                position = self._taken(game_id, powers)
            except ConnectionLost:
                raise
            except ServerError as error:  # the game has gone on, or is gone
                self.say(f"{words_of(game_id, 60)}: {error}")
                continue
            except UserError as error:
                if game_id not in self._passed_over:
                    self.say(f"{words_of(game_id, 60)} is skipped: {error}")
                self._passed_over.add(game_id)
                continue
            positions.append(position)
        return positions

    def _taken(self, game_id: str, powers: list[str]) -> Position:
        where = {"token": self._token, "game_id": game_id}
        self.wire.ask("join_powers", power_names=powers, **where)
        self._tokens |= dict.fromkeys(powers, self._token)
        data = _game_data(self.wire, power_name=powers[0] if powers else None, **where)
        return self._position(game_id, [data], powers)._replace(talks=False)

    def vote_draw(self, position: Position, power: str) -> None:
        """Do nothing: powers that nobody plays have no vote."""

    def wait(self, seconds: float) -> None:
        super().wait(min(seconds, _DUMMY_POLL))  # nobody is told that one waits


def _history(data: _GameData) -> list[dict]:
    return [
        {
            "name": name,
            "state": state,
            "orders": data.order_history.get(name) or {},
            "results": data.result_history.get(name) or {},
        }
        for name, state in data.state_history.items()
    ]


def _present(data: _GameData) -> dict:
    name = data.phase_abbr
    state: dict = {"name": name, "units": {}, "centers": {}, "retreats": {}}
    state["note"] = data.note or ""
    for power, held in data.powers.items():
        state["units"][power], state["centers"][power] = held.units, held.centers
        if name != COMPLETED:
            state["retreats"][power] = held.retreats or {}
    return {"name": name, "state": state, "orders": {}, "results": {}}


def _controlled_since(data: _GameData, power: str) -> int:
    """Return the server's moment, in microseconds, since which a power has its present user."""
    times = _own(data, power).controller or {}
    return max((int(time) for time in times if time.isdecimal() and len(time) < 20), default=0)


def _sign_in(wire: Wire, account: Account) -> object:
    return wire.ask("sign_in", username=account.user, password=account.password)


def _game_data(wire: Wire, **fields: object) -> _GameData:
    present = {key: value for key, value in fields.items() if value is not None}
    return convert(_GameData, wire.ask("join_game", **present), f"the game of {wire.name}")


def _own(data: _GameData, power: str) -> _Power:
    if power not in data.powers:
        raise UserError(f"the game has no power {words_of(power, 40)}")
    return data.powers[power]


def free_powers(wire: Wire, token: object, game_id: str) -> list[str]:
    powers = wire.ask("get_playable_powers", token=token, game_id=game_id)
    names = convert(list[str], powers or [], f"the free powers of {wire.name}")
    return sorted(words_of(name, 40) for name in names)


LISTED = ("map", "phase", "status", "free powers", "deadline")


def list_games(wire: Wire, account: Account) -> list[tuple[str, list[str]]]:
    """Return the name of each running game, and its LISTED values."""
    wire.open()
    try:
        token = _sign_in(wire, account)
        answer = wire.ask("list_games", token=token, include_protected=True)
        rows = []
        for row in convert(list[_Row], answer, f"the list of {wire.name}"):
            if row.status in _FINISHED:
                continue
            texts = [words_of(text, 40) for text in (row.map_name, row.phase, row.status)]
            texts.append(" ".join(free_powers(wire, token, row.game_id)) or "-")
            texts.append(f"{row.deadline} s" if row.deadline else "none")
            asks = " (asks a password)" if row.registration_password else ""
            rows.append((words_of(row.game_id, 60) + asks, texts))
        return rows
    finally:
        wire.close()
