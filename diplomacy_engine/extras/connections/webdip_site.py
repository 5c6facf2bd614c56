"""Requests to a webDiplomacy site. The key goes to its `api.php` alone, in a header."""

import re
import time
from typing import TypeVar
from urllib.parse import urlencode

from ..._http import NoReply, Reply, Server, TooLong, read_url
from ..._suggest import quoted
from ...errors import UserError
from ...records import convert, parse_json
from .connection import ConnectionLost, PhaseOver, Refused, words_of

MOST_BYTES = 16 * 2**20
_SECONDS = 30.0
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_Record = TypeVar("_Record")


class Gone(UserError):
    """The game is over or cancelled, and the site knows nothing of it any more."""


class Site:
    """A webDiplomacy site, such as https://webdiplomacy.net; the key of a user is in no text."""

    def __init__(self, url: str, key: str, seconds: float = _SECONDS):
        parts = read_url(url, "the site")
        self._base = parts.path.rstrip("/")
        self.name = f"{parts.netloc}{self._base}"
        self._server = Server(parts, key)
        self._seconds = seconds

    def get(self, record: type[_Record], route: str, **fields: object) -> _Record:
        try:
            answer = self._read(self._ask("GET", f"route={route}&{urlencode(fields)}"), route)
        except PhaseOver as error:  # no phase is named in it: the game is not known
            raise Gone(str(error)) from None
        return convert(record, answer, f"the answer of {self.name} to {route}")

    def post(self, route: str, body: dict) -> object:
        """Return a route's JSON answer. ConnectionLost: the request may have been carried out or
        not; PhaseOver, Gone or Refused."""
        return self._read(self._ask("POST", f"route={route}", body), route)

    def post_plain(self, route: str, body: dict) -> None:
        """Send what is answered by a text that says nothing; errors as for `post`."""
        self._checked(self._ask("POST", f"route={route}", body), route)

    def file(self, url: str, version: str) -> dict:
        """Return one of the site's files, which need no key; ConnectionLost if it is not there."""
        if not _FILE.fullmatch(url) or ".." in url or len(version) > 100:
            raise UserError(f"{self.name} names a file that is not its own: {quoted(url)}")
        path = f"{self._base}/{url}?{urlencode({'v': version})}"
        answer = self._send("GET", path, with_key=False)
        if answer.status != 200:
            raise ConnectionLost(f"its file {words_of(url, 60)} answers with {answer.status}")
        return convert(dict, self._json(answer, url), f"{words_of(url, 60)} of {self.name}")

    def _ask(self, method: str, query: str, body: dict | None = None) -> Reply:
        return self._send(method, f"{self._base}/api.php?{query}", body)

    def _read(self, answer: Reply, route: str) -> object:
        self._checked(answer, route)
        if not answer.body.strip():
            raise Refused(f"the key is not known at {self.name}: its answer is empty")
        return self._json(answer, route)

    def _checked(self, answer: Reply, route: str) -> None:
        words = words_of(self._server.clean(answer.body[:2000].decode(errors="replace")))
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

    def _json(self, answer: Reply, what: str) -> object:
        return parse_json(answer.body, f"the answer of {self.name} to {words_of(what, 60)}")

    def _send(
        self, method: str, path: str, body: dict | None = None, with_key: bool = True
    ) -> Reply:
        until = time.monotonic() + self._seconds
        try:
            return self._server.ask(method, path, until, MOST_BYTES, body, with_key)
        except TooLong as error:
            raise UserError(f"{self.name}: {error}") from None
        except NoReply as error:
            raise ConnectionLost(str(error)) from None
