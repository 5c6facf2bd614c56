"""Requests to a webDiplomacy site: each within its time and size, whatever is answered.

The key goes to the site's `api.php` alone, in a header, and into no text.
"""

import http.client
import json
import re
import time
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from .._suggest import quoted
from ..errors import UserError
from .connection import ConnectionLost, Fields, PhaseOver, Refused, words_of

MOST_BYTES = 16 * 2**20
_CHUNK = 65_536
_SECONDS = 30.0
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")


class Gone(UserError):
    """The game is over or cancelled, and the site knows nothing of it any more."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes


class Site:
    """A webDiplomacy site.

    Args:
        url: its address, such as https://webdiplomacy.net.
        key: of a user, kept out of all texts.
        seconds: that an answer may take.

    Raises:
        UserError: the address is none.
    """

    def __init__(self, url: str, key: str, seconds: float = _SECONDS):
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts = port = None
        plain = parts and not (parts.username or parts.password or parts.query or parts.fragment)
        if not plain or parts.scheme not in ("http", "https") or not parts.hostname:
            # Not repeated: a key may stand in it.
            raise UserError("a site's address looks like https://webdiplomacy.net, without a key")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, port
        self._base = parts.path.rstrip("/")
        self.name = f"{parts.hostname}{f':{port}' if port else ''}{self._base}"
        self._key, self._seconds = key, seconds

    def get(self, route: str, **fields: object) -> Fields:
        """Return what a route answers; errors as for `post`."""
        try:
            found = self._read(self._ask("GET", f"route={route}&{urlencode(fields)}", None), route)
        except PhaseOver as error:  # no phase is named in it: the game is not known
            raise Gone(str(error)) from None
        return Fields(found, f"the answer of {self.name} to {route}")

    def post(self, route: str, body: dict) -> object:
        """Return the JSON that a route answers.

        Raises:
            ConnectionLost: nothing usable came; what was sent may have been taken or not.
            PhaseOver: it does not fit the site's phase.
            Gone: there is no such game any more.
            Refused: the site says no.
        """
        return self._read(self._ask("POST", f"route={route}", body), route)

    def post_plain(self, route: str, body: dict) -> None:
        """Send what is answered by a text that says nothing; errors as for `post`."""
        self._checked(self._ask("POST", f"route={route}", body), route)

    def file(self, url: str, version: str) -> Fields:
        """Return one of the site's files, which need no key; ConnectionLost if it is not there."""
        if not _FILE.fullmatch(url) or ".." in url or len(version) > 100:
            raise UserError(f"{self.name} names a file that is not its own: {quoted(url)}")
        path = f"{self._base}/{url}?{urlencode({'v': version})}"
        answer = self._send("GET", path, None, {})
        if answer.status != 200:
            raise ConnectionLost(f"its file {words_of(url, 60)} answers with {answer.status}")
        return Fields(self._json(answer, url), f"{words_of(url, 60)} of {self.name}")

    def _ask(self, method: str, query: str, body: dict | None) -> Answer:
        headers = {"Authorization": f"Bearer {self._key}"}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        return self._send(method, f"{self._base}/api.php?{query}", content, headers)

    def _read(self, answer: Answer, route: str) -> object:
        self._checked(answer, route)
        if not answer.body.strip():
            raise Refused(f"the key is not known at {self.name}: its answer is empty")
        return self._json(answer, route)

    def _checked(self, answer: Answer, route: str) -> None:
        """Raise what an answer's status means."""
        words = words_of(self._clean(answer.body[:2000].decode(errors="replace")))
        status = answer.status
        if status == 200:
            return
        if status in (404, 410):
            raise Gone(words or "there is no such game")
        if status >= 500 or status in (408, 429):
            raise ConnectionLost(f"it answers with {status}: {words or 'no reason given'}")
        if status == 400:
            raise PhaseOver(words or "a bad request")
        if status == 401:
            raise Refused(f"the key is not known at {self.name}: {words or 'no reason given'}")
        raise Refused(f"{self.name} refuses {route} with {status}: {words or 'no reason given'}")

    def _json(self, answer: Answer, what: str) -> object:
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            where = f"{self.name} for {words_of(what, 60)}"
            raise UserError(f"the answer from {where} is not JSON") from None

    def _clean(self, text: str) -> str:
        """Return a text of the site without the key, which it may have repeated."""
        return text.replace(self._key, "[key]")

    def _send(self, method: str, path: str, body: bytes | None, headers: dict) -> Answer:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        until = time.monotonic() + self._seconds
        connection = kind(self._host, self._port, timeout=self._seconds)
        try:
            connection.request(method, path, body, headers | {"Accept": "application/json"})
            response = connection.getresponse()
            content = bytearray()
            while part := response.read1(_CHUNK):
                content += part
                if len(content) > MOST_BYTES:
                    raise UserError(f"{self.name} sent over {MOST_BYTES:,} bytes")
                if time.monotonic() > until:
                    raise TimeoutError
            if response.length:
                raise ConnectionLost("its answer is cut off")
            return Answer(response.status, bytes(content))
        except TimeoutError:
            raise ConnectionLost("no answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            words = words_of(self._clean(str(getattr(error, "strerror", None) or error)))
            raise ConnectionLost(
                f"the connection failed: {words or type(error).__name__}"
            ) from None
        finally:
            connection.close()
