"""What the loop asks of a connection. A server is a stranger: its texts are only quoted."""

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from ..._files import read_file
from ..._suggest import printable, quoted
from ...errors import UserError
from ...textgame.game import Game

_MOST_SECRET = 10_000  # bytes of a file that holds one
_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+")


class ConnectionLost(UserError):
    """The line is down, or the server does not answer: worth trying again."""


class PhaseOver(UserError):
    """The server refuses a message, for example since its phase is over: read the game again."""


class Refused(UserError):
    """The server says no, and would say it again; the message has its own words."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Position(NamedTuple):
    id: str  # of the game, for people
    game: Game
    seats: Sequence[str]  # powers that this connection plays
    missing: frozenset[str]  # those of them that have no orders there in this phase
    running: bool = True  # whether orders are taken now
    seconds: float = math.inf  # that a phase lasts at most, whether we order or not
    talks: bool = False  # whether powers may talk now; then the game has press
    over: str = ""  # how the game has ended, in a word; empty while it goes on


class Connection(Protocol):
    """Seats on a server. After ConnectionLost `enter` is called again; UserError ends it all."""

    name: str  # of the server, for people

    def enter(self) -> None:
        """Connect, log in and take the seats; again after the connection was lost."""

    def positions(self) -> list[Position]:
        """Return the games, as they stand now."""

    def give(self, position: Position, power: str, orders: list[str]) -> list[str]:
        """Send a power's orders, as Game writes them, in place of all before; return the texts of
        those that the server has kept. PhaseOver if they are not taken."""

    def finish(self, position: Position, power: str) -> None:
        """Say that a power has given its orders, so that the phase may end; PhaseOver if it has."""

    def vote_draw(self, position: Position, power: str) -> None:
        """Vote for a draw in this phase."""

    def wait(self, seconds: float) -> None:
        """Return as soon as something may have changed, at the latest after so many seconds."""

    def close(self) -> None:
        """Hang up; the seats stay taken."""


@runtime_checkable
class TalkingConnection(Connection, Protocol):
    def send(self, position: Position, message: Mapping) -> None:
        """Send a message of a saved game; PhaseOver if the server refuses it."""


Say = Callable[[str], None]


def read_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    sound = colon and _HOST.fullmatch(host) and port.isascii() and port.isdigit()
    if not sound or not 0 < int(port[:9]) < 65536:
        raise UserError(f"{quoted(text)} is not a server's address, such as localhost:8432")
    return Address(host, int(port))


def read_secret(path: str | Path, what: str) -> str:
    """Return the first line of a file; no error repeats its content."""
    try:
        content = read_file(path, _MOST_SECRET)
    except OSError as error:
        raise UserError(f"{path} with the {what} cannot be read: {error.strerror}") from None
    text = content.decode(errors="surrogateescape")  # which is not printable
    return checked_secret(text.strip("\r\n"), f"{path} holds", what)


def environment_secret(name: str, what: str) -> str:
    text = os.environ.get(name, "").strip()
    return checked_secret(text, f"{name} holds", what) if text else ""


def checked_secret(text: str, where: str, what: str) -> str:
    if not text or not text.isprintable():
        raise UserError(f"{where} no {what}: it must be one line of printable characters")
    return text


def words_of(text: object, width: int = 200) -> str:
    """Return a server's text, shortened and on one line, to be quoted in a sentence."""
    return printable(" ".join(str(text)[: 4 * width].split()))[:width].rstrip(". ")
