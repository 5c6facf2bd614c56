"""Messages of the `diplomacy` package's server: JSON texts over a websocket. A request has `name`
and `request_id`, its answer the same id; a message without an id is a notification."""

import contextlib
import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from ..._suggest import install
from ...errors import UserError
from ...records import convert, parse_json
from .connection import Address, ConnectionLost, Refused, words_of

MOST_BYTES = 16 * 2**20  # of a message; a phase of history has about 3,000
ANSWER_SECONDS = 30.0
_MOST_NOTES = 10_000  # that are kept until somebody looks
_MOST_QUEUED = 64  # messages that are read ahead
_TOO_BIG = 1009  # with which a line is closed whose message was too long


class ServerError(Refused):
    """The server has answered with an error."""


class Wire:
    """A line to a server; `authority` is a file of certificates in place of the system's."""

    def __init__(
        self,
        address: Address,
        secure: bool = False,
        authority: str | Path | None = None,
        seconds: float = ANSWER_SECONDS,
    ):
        self.name, self._address = str(address), address
        self._url = f"{'wss' if secure else 'ws'}://{address}/"
        self._seconds = seconds
        self._trust = _trusted(authority) if secure else None
        self._connect, self._error = _websockets()
        self._stack = contextlib.ExitStack()
        self._socket = None
        self._notes: deque[dict] = deque(maxlen=_MOST_NOTES)
        self._number = 0

    def open(self) -> None:
        self.close()
        with self._losses("cannot be reached"):
            line = socket.create_connection(self._address, self._seconds)
            self._stack.callback(line.close)
            self._socket = self._stack.enter_context(
                self._connect(
                    self._url,
                    ssl=self._trust,
                    sock=line,  # a line of ours cannot be led to another server
                    compression=None,  # so that no short message becomes a long one
                    max_size=MOST_BYTES,
                    max_queue=_MOST_QUEUED,
                    open_timeout=self._seconds,
                    close_timeout=1.0,
                    proxy=None,
                )
            )

    def close(self) -> None:
        self._socket = None
        self._notes.clear()
        with contextlib.suppress(Exception):
            self._stack.close()

    @contextlib.contextmanager
    def _losses(self, what: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise ConnectionLost(f"{what}: no answer in time") from None
        except ssl.SSLCertVerificationError as error:
            why = words_of(error.verify_message)
            raise Refused(f"{self.name} cannot prove its identity: {why}") from None
        except OSError as error:
            raise ConnectionLost(f"{what}: {words_of(error.strerror or error)}") from None
        except ValueError:  # of a line that shall be led elsewhere
            raise ConnectionLost(f"{what}: it points to another server") from None
        except self._error as error:
            if getattr(getattr(error, "sent", None), "code", None) == _TOO_BIG:
                raise UserError(f"{self.name} sent over {MOST_BYTES:,} bytes") from None
            raise ConnectionLost(f"{what}: {words_of(error)}") from None

    def ask(self, name: str, **fields: object) -> object:
        """Send a request; return the `data` of its answer, or all of an answer without."""
        self._number += 1
        number = str(self._number)
        request = {"name": name, "request_id": number} | fields
        until = time.monotonic() + self._seconds
        if self._socket is None:
            raise ConnectionLost("the connection is closed")
        with self._losses("the connection broke off"):
            self._socket.send(json.dumps(request))
        while True:
            answer = self._read(until - time.monotonic())
            if answer is None:
                raise ConnectionLost("no answer in time")
            if answer.get("request_id") == number:
                return self._data(answer)
            self._notes.append(answer)

    def _read(self, seconds: float) -> dict | None:
        if self._socket is None:
            raise ConnectionLost("the connection is closed")
        with self._losses("the connection broke off"):
            try:
                text = self._socket.recv(max(seconds, 0.0))
            except TimeoutError:
                return None
        where = f"a message of {self.name}"
        return convert(dict, parse_json(text, where), where)

    def _data(self, answer: dict) -> object:
        if answer.get("name") == "error":
            kind, words = (words_of(answer.get(key) or "") for key in ("error_type", "message"))
            if kind == "TokenException":
                raise ConnectionLost(f"it has forgotten who we are ({words})")
            raise ServerError(f"{self.name} refuses: {words or kind}")
        return answer.get("data", answer)

    def wait(self, seconds: float) -> dict | None:
        return self._notes.popleft() if self._notes else self._read(seconds)


def _trusted(authority: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authority)
    except OSError as error:  # also of what SSL cannot read
        why = error.strerror or "nothing in it can be read"
        raise UserError(f"{authority} holds no certificates (a .pem file): {why}") from None


def _websockets() -> tuple[Callable, type[Exception]]:
    try:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
    except ImportError:
        raise UserError(f"this needs one more package: {install('connect')}") from None
    return connect, WebSocketException
