"""A client of an HTTP server: each request ends within its time and size, for any answer. No
redirect is followed, and a key stands in no text."""

import contextlib
import http.client
import io
import json
import socket
import time
import zlib
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from ._suggest import printable
from .errors import UserError

_CHUNK = 65_536
_PACKED = ("gzip", "x-gzip", "deflate")


class NoReply(UserError):
    """No answer that could be used came; the message is why."""


class TooLate(NoReply):
    """It did not come in time."""


class TooLong(NoReply):
    """It is longer than allowed."""


class Unreachable(NoReply):
    """Nobody listens at the server's address."""


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def read_url(text: str, source: str) -> SplitResult:
    """Return a server's address; UserError, which does not repeat it, if that is none."""
    try:
        url = urlsplit(text)
        sound = url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port)
    except ValueError:
        sound = False
    if not sound or url.username or url.password or url.query or url.fragment:
        raise UserError(f"{source}: must be an address such as https://host:8000/path, with no key")
    return url


class Server:
    """A server; its `key`, if it has one, goes with the requests `with_key`, in a header, and is
    replaced wherever the server repeats it."""

    def __init__(self, url: SplitResult, key: str = ""):
        self._url, self._key = url, key
        self._open: set[socket.socket] = set()

    def ask(
        self,
        method: str,
        path: str,
        until: float,
        most: int,
        body: dict | None = None,
        with_key: bool = True,
    ) -> Reply:
        """Return the answer to a request, whose `body` is sent as JSON; NoReply unless it comes
        whole. That is before `until` of time.monotonic(), and of at most `most` bytes."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if with_key and self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body).encode()
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=_left(until))
        connection.response_class = lambda sock, **options: http.client.HTTPResponse(  # type: ignore[assignment]  # is only called
            _Timed(sock, until),  # type: ignore[arg-type]  # of a socket only `makefile` is called
            **options,
        )
        sock = None
        try:
            try:
                connection.connect()
            except TimeoutError:
                raise
            except OSError as error:
                raise Unreachable(f"no connection: {self._why(error)}") from None
            sock = connection.sock
            self._open.add(sock)
            sock.settimeout(_left(until))
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            answer = _read(response, most)
            _left(until)  # the end of an abandoned answer is none
            return Reply(response.status, response.headers, answer)
        except TimeoutError:
            raise TooLate("no answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= until:
                raise TooLate("no answer in time") from None
            raise NoReply(f"the connection broke off: {self._why(error)}") from None
        finally:
            self._open.discard(sock)
            connection.close()

    def abandon(self) -> None:
        """End all requests under way, in whatever threads."""
        for connection in self._open.copy():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def clean(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def said(self, text: str, most: int) -> str:
        """Return a text of the server for a message: without the key, on one line, cut."""
        return printable(" ".join(self.clean(text).split()))[:most]

    def _why(self, error: Exception) -> str:
        text = str(getattr(error, "strerror", None) or error)
        return self.said(text, 100) or type(error).__name__


class _Timed(io.RawIOBase):
    """A socket as http.client reads an answer from it, up to a moment; TimeoutError after that. A
    socket's own timeout begins anew with every byte that comes."""

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


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    content = bytearray()
    while part := response.read1(_CHUNK):
        content += part
        if len(content) > most:
            raise TooLong(f"an answer of more than {most:,} bytes")
    if response.length:
        raise NoReply("an answer that is cut off")
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    return _unpacked(bytes(content), most) if coding in _PACKED else bytes(content)


def _unpacked(content: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib
    try:
        plain = unpacker.decompress(content, most + 1)
    except zlib.error:
        raise NoReply("an answer that cannot be unpacked") from None
    if len(plain) > most:
        raise TooLong(f"an answer of more than {most:,} bytes")
    if not unpacker.eof:
        raise NoReply("an answer that is cut off")
    return plain


def _left(until: float) -> float:
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TooLate("no answer in time")
    return seconds
