"""Requests to an OpenAI-compatible server, each within its time and size, whatever it answers.

Only the standard library is needed: one kind of request is made, and how long it may take, how much
is read and what is tried again are all to be known here.
"""

import contextlib
import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ..._suggest import printable
from ...errors import UserError

MOST_BYTES = 4 * 2**20  # of a reply
BUSY = (408, 409, 425, 429)  # and all from 500 on: worth another try
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0  # seconds before a request is sent again
_CHUNK = 65_536


class Completion(NamedTuple):
    """What a server has answered."""

    text: str
    tokens_in: int
    tokens_out: int


class NoReply(UserError):
    """No answer that could be used came; the message is why. The units' orders fall back."""


class TooLate(NoReply):
    """It did not come in time."""


class Unreachable(NoReply):
    """Nobody listens at the server's address, or it is of no use."""


class ChatServer:
    """An OpenAI-compatible server.

    Args:
        base_url: its address, such as http://127.0.0.1:8000/v1.
        model: the name that it knows the model by.
        key: sent with each request, and kept out of all texts; empty: none.
        retries: times that a request is sent again.
    """

    def __init__(self, base_url: str, model: str, key: str = "", retries: int = 2):
        url = urlsplit(base_url)
        self.name = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
        self.model, self._key, self.retries = model, key, retries
        self._secure, self._host = url.scheme == "https", url.hostname
        self._port = url.port
        self._path = f"{url.path.rstrip('/')}/chat/completions"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.answered = False  # whether it ever has
        self.retried = 0

    def complete(self, messages: Sequence[dict], until: float, **more: object) -> Completion:
        """Return the server's answer to a conversation.

        Args:
            messages: of the conversation, with role and content.
            until: moment of time.monotonic() at which it is given up.
            more: other fields of the request.

        Raises:
            NoReply: no answer that can be used.
            UserError: the request itself is refused, as every other would be.
        """
        body = json.dumps({"model": self.model, "messages": list(messages)} | more).encode()
        pause = _FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            wait = None
            try:
                status, headers, content = self._post(body, until)
                if status < 300:
                    return self._completion(content)
                trouble: NoReply = NoReply(f"status {status}: {self._message(content)}")
                if status < 500 and status not in BUSY:
                    raise UserError(
                        f"the server at {self.name} refuses a request for model "
                        f"{self.model[:80]!r} with {trouble}"
                    )
                wait = _retry_after(headers)
            except NoReply as error:
                trouble = error
            if not left or isinstance(trouble, TooLate):
                raise trouble
            wait = pause if wait is None else wait
            if time.monotonic() + wait >= until:
                raise TooLate(f"no time is left to try again after {trouble}")
            time.sleep(wait)
            self.retried += 1
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError("a request is answered or not")

    def abandon(self) -> None:
        """End all requests under way."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def clean(self, text: str) -> str:
        """Return a text of the server without the key, which it may have repeated."""
        return text.replace(self._key, "[key]") if self._key else text

    def _post(self, body: bytes, until: float) -> tuple[int, http.client.HTTPMessage, bytes]:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=_left(until))
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection.response_class = lambda sock, **options: http.client.HTTPResponse(
            _Timed(sock, until), **options
        )
        sock = None
        try:
            try:
                connection.connect()
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise TooLate("it took too long to connect") from None
                raise Unreachable(f"no connection: {error.strerror or error}") from None
            sock = connection.sock
            with self._lock:
                self._open.add(sock)
            sock.settimeout(_left(until))
            connection.request("POST", self._path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, _read(response)
        except TimeoutError:
            raise TooLate("no answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= until:
                raise TooLate("no answer in time") from None
            reason = self._said(str(error), 100) or type(error).__name__
            raise NoReply(f"the connection broke off: {reason}") from None
        finally:
            with self._lock:
                self._open.discard(sock)
            connection.close()

    def _completion(self, content: bytes) -> Completion:
        try:
            found = json.loads(content)
            message = found["choices"][0]["message"]
            text = message.get("content")
            if text is None:
                refusal = message.get("refusal")
                text = "" if refusal is None else str(refusal)
            if not isinstance(text, str):
                raise TypeError
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            raise NoReply("an answer that is not a chat completion") from None
        self.answered = True
        usage = found.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        return Completion(
            self.clean(text), _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
        )

    def _message(self, content: bytes) -> str:
        """Return what the body of an error says, on one line."""
        text = content.decode(errors="replace")
        try:
            found = json.loads(text)
            error = found.get("error", found)
            text = str(error.get("message", error) if isinstance(error, dict) else error)
        except (ValueError, AttributeError, RecursionError):
            pass
        return self._said(text, 200) or "no reason given"

    def _said(self, text: str, most: int) -> str:
        """Return a text of the server for a message: without the key, on one line, cut."""
        return printable(" ".join(self.clean(text).split()))[:most]


class _Timed(io.RawIOBase):
    """What a server sends up to a moment, as http.client reads it; TimeoutError after that.

    A socket's own timeout begins anew with every byte that comes.
    """

    def __init__(self, connection: socket.socket, until: float):
        self._connection, self._until = connection, until
        self._raw = connection.makefile("rb", buffering=0)  # keeps the connection open

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        self._connection.settimeout(_left(self._until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _read(response: http.client.HTTPResponse) -> bytes:
    """Return a reply's body; NoReply if it is too long or cut off."""
    content = bytearray()
    while part := response.read1(_CHUNK):
        content += part
        if len(content) > MOST_BYTES:
            raise NoReply(f"an answer of more than {MOST_BYTES:,} bytes")
    if response.length:
        raise NoReply("an answer that is cut off")
    return bytes(content)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TooLate("no answer in time")
    return left


def _retry_after(headers: http.client.HTTPMessage) -> float | None:
    """Return for how many seconds a server asks to be left alone, if it does."""
    try:
        wait = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return wait if 0 <= wait <= 3600 else None


def _count(usage: dict, name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and 0 <= value < 10**9 else 0
