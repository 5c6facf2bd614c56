"""A seat on a DAIDE server, in the version that the `diplomacy` package's server speaks.

Its peculiarities: each SUB replaces all orders given before; MIS tells which units have none; the
outcome is told only of one's own units, so that the position comes from NOW and SCO alone; and
nobody can come back to a seat once the connection is closed.
"""

import contextlib
import socket
import time
from collections.abc import Sequence

from ..constants import phase_kind
from ..errors import UserError
from ..games.game import Game
from ..rules.map import Map
from .connection import Address, ConnectionLost, PhaseOver, Position, Refused, Say, words_of
from .daide_words import (
    Word,
    decode,
    encode,
    order_words,
    read_centers,
    read_position,
    read_power,
    shown,
)

SECONDS = 30.0  # that an answer may take
_INITIAL, _REPRESENTATION, _DIPLOMACY, _FINAL, _ERROR = range(5)
_HELLO = b"\x00\x01\xda\x10"
_KINDS = ("initial", "representation", "diplomacy", "final", "error")


class DaideSeat:
    """A seat in the game of a DAIDE server.

    Args:
        address: of the server.
        power: to ask for; None: whichever it gives.
        game_map: the map of the player, the standard one.
        max_years: as for Game.
        say: told what is worth knowing.
        seconds: that an answer may take.
    """

    def __init__(
        self,
        address: Address,
        power: str | None,
        game_map: Map,
        *,
        max_years: int | None = None,
        say: Say = print,
        seconds: float = SECONDS,
    ):
        if game_map.name != "standard":
            raise UserError(f"DAIDE has no names for map {game_map.name}")
        self.name = str(address)
        self._address, self._asked, self._map = address, power, game_map
        self._max_years, self._say, self._seconds = max_years, say, seconds
        self._line: socket.socket | None = None
        self._read = b""
        self._power: str | None = None
        self._centers: dict[str, list[str]] = {}
        self._now: Sequence[Word] | None = None
        self._over = ""
        self._position: Position | None = None

    def enter(self) -> None:
        """See connection.Connection."""
        self.close()
        if self._power is not None:
            raise Refused(
                f"the connection to {self.name} was lost, and DAIDE does not allow rejoining"
            )
        try:
            self._line = socket.create_connection(self._address, self._seconds)
        except OSError as error:
            reason = words_of(error.strerror or error)
            raise ConnectionLost(f"cannot be reached: {reason}") from None
        self._send_frame(_INITIAL, _HELLO)
        try:
            kind, _ = self._frame(self._until())
        except TimeoutError:
            raise ConnectionLost("no answer in time") from None
        if kind == _ERROR:
            raise Refused(f"{self.name} does not speak version 1 of DAIDE")
        if kind != _REPRESENTATION:
            raise UserError(
                f"{self.name} is not a DAIDE server: its first answer is {_KINDS[kind]}"
            )
        prefix = f"{self._asked[:3]}:" if self._asked else ""
        self._send("NME", [f"'{prefix}engine'"], ["'1'"])
        self._expect(["YES", ["NME"]], f"no seat is free for {self._asked or 'anybody'}")
        words = self._expect(["MAP"], "it names no map")
        if words[1:] != [["'standard'"]]:
            raise Refused(f"{self.name} plays on {shown(words[1:])[:60]}, not on the standard map")
        self._send("YES", words)

    def positions(self) -> list[Position]:
        """See connection.Connection."""
        if self._over and self._position is not None:
            return [self._position._replace(over=self._over)]
        if self._power is None or self._now is None:
            return []
        position = self._position
        if position is None:
            state = read_position(self._map, self._now, self._centers)
            game = Game.from_state(self._map, state, self._max_years)
            position = Position(self.name, game, [self._power], frozenset())
            self._position = position
        return [position]

    def give(self, position: Position, power: str, orders: list[str]) -> list[str]:
        """See connection.Connection."""
        self._still(position)
        if not orders:
            return []
        sent = [order_words(position.game, power, text) for text in orders]
        self._send("SUB", *sent)
        taken = []
        for order in sent:
            answer = self._expect(["THX"], "it accepts no orders")
            match answer:
                case ["THX", list(), ["MBV"]]:
                    taken.append(order)
        if phase_kind(position.game.phase) != "movement":
            return [text for text, order in zip(orders, sent) if order in taken]
        missing = self._missing()
        return [text for text, order in zip(orders, sent) if order[0] not in missing]

    def _missing(self) -> list[Word]:
        """Return the units that the server says have no orders."""
        self._send("MIS")
        return self._expect(["MIS"], "it does not say what is missing")[1:]

    def finish(self, position: Position, power: str) -> None:
        """See connection.Connection."""
        self._still(position)
        self._send("GOF")
        self._expect(["YES", ["GOF"]], "it does not accept our orders as complete")

    def _still(self, position: Position) -> None:
        """Raise PhaseOver if another position has come meanwhile."""
        if self._position is None or position.game is not self._position.game:
            raise PhaseOver(f"{position.game.phase} has passed")

    def vote_draw(self, position: Position, power: str) -> None:
        """See connection.Connection."""
        self._send("DRW")
        self._expect(["YES", ["DRW"]], "it accepts no vote for a draw")

    def wait(self, seconds: float) -> None:
        """See connection.Connection."""
        until = time.monotonic() + seconds
        while not self._over and (self._position is not None or self._now is None):
            words = self._message(until)
            if words is None:
                return
            self._note(words)

    def close(self) -> None:
        """See connection.Connection."""
        if self._line is not None:
            with contextlib.suppress(OSError):
                self._send_frame(_FINAL, b"")
            self._line.close()
        self._line, self._read = None, b""

    def _note(self, words: Sequence[Word]) -> None:
        """Take in a message that nobody waits for."""
        match words:
            case ["HLO", [power], *_]:
                found = read_power(self._map, power)
                if self._asked not in (None, found):
                    raise Refused(f"{self.name} gave {found} instead of {self._asked}")
                self._power = found
            case ["SCO", *rows]:
                self._centers = read_centers(self._map, rows)
            case ["NOW", *rows]:
                self._now, self._position = list(rows), None
            case ["DRW"]:
                self._end("a draw")
            case ["SLO", [power]]:
                self._end(f"a solo of {read_power(self._map, power)}")
            case ["OFF"]:
                self._end("the server shut down")
            case ["CCD" | "NOT", *_]:
                self._say(f"{self.name}: {words_of(shown(words), 80)}")

    def _end(self, how: str) -> None:
        self.positions()  # the last one that was told
        self._over = self._over or how

    def _expect(self, beginning: Sequence[Word], otherwise: str) -> list[Word]:
        """Return the answer that begins with these words; of lists only their beginnings count.

        Raises:
            PhaseOver: REJ is answered, and the phase has changed since.
            Refused: REJ is answered.
        """
        until, before = self._until(), self._now
        while True:
            words = self._message(until)
            if words is None:
                raise ConnectionLost("no answer in time")
            if _begins(words, beginning):
                return words
            if words[:1] == ["REJ"]:
                if self._now is not before:
                    raise PhaseOver("the phase has passed")
                raise Refused(f"{self.name}: {otherwise}: {words_of(shown(words), 100)}")
            self._note(words)
            if self._now is not before and beginning[:1] in (["THX"], ["MIS"]):
                raise PhaseOver("the phase has passed")

    def _until(self) -> float:
        return time.monotonic() + self._seconds

    def _send(self, *words: Word) -> None:
        self._send_frame(_DIPLOMACY, encode(words))

    def _send_frame(self, kind: int, body: bytes) -> None:
        if self._line is None:
            raise ConnectionLost("the connection is closed")
        try:
            self._line.sendall(bytes((kind, 0)) + len(body).to_bytes(2, "big") + body)
        except OSError as error:
            raise ConnectionLost(f"the connection failed: {words_of(error.strerror)}") from None

    def _message(self, until: float) -> list[Word] | None:
        """Return the next message's words; None if none comes in time."""
        while True:
            try:
                kind, body = self._frame(until)
            except TimeoutError:
                return None
            if kind == _DIPLOMACY:
                try:
                    return decode(body)
                except UserError as error:
                    raise UserError(f"a message of {self.name} is malformed: {error}") from None
            if kind == _FINAL:
                if self._position is None and self._now is None:
                    raise Refused(f"{self.name} closed the connection")
                self._end("the server shut down")
                return ["OFF"]
            if kind == _ERROR:
                code = int.from_bytes(body[:2], "big")
                raise Refused(f"{self.name} closed the connection with error {code}")

    def _frame(self, until: float) -> tuple[int, bytes]:
        """Return kind and body of the next frame; TimeoutError if it does not come in time."""
        self._fill(4, until)
        kind, length = self._read[0], int.from_bytes(self._read[2:4], "big")
        if kind >= len(_KINDS):
            raise UserError(f"{self.name} is not a DAIDE server: a frame is of kind {kind}")
        self._fill(4 + length, until)
        body, self._read = self._read[4 : 4 + length], self._read[4 + length :]
        return kind, body

    def _fill(self, count: int, until: float) -> None:
        while len(self._read) < count:
            if self._line is None:
                raise ConnectionLost("the connection is closed")
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._line.settimeout(left)
            try:
                part = self._line.recv(65_536)
            except TimeoutError:
                raise
            except OSError as error:
                raise ConnectionLost(f"the connection failed: {words_of(error.strerror)}") from None
            if not part:
                raise ConnectionLost("the connection was closed")
            self._read += part


def _begins(words: Sequence[Word], beginning: Sequence[Word]) -> bool:
    """Tell whether a message begins so, and its lists as well."""
    if len(words) < len(beginning):
        return False
    pairs = zip(words, beginning)
    return all(
        _begins(word, wanted)
        if isinstance(word, list) and isinstance(wanted, list)
        else word == wanted
        for word, wanted in pairs
    )
