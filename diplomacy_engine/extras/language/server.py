"""Requests to an OpenAI-compatible server."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ..._http import NoReply, Server, TooLate
from ...errors import UserError

MOST_BYTES = 4 * 2**20  # of a reply
BUSY = (408, 409, 425, 429)  # and all from 500 on: worth another try
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0  # seconds before a request is sent again


class Completion(NamedTuple):
    text: str
    tokens_in: int
    tokens_out: int


class ChatServer(Server):
    """An OpenAI-compatible server; the key is sent with each request, and kept out of all texts."""

    def __init__(self, base_url: str, model: str, key: str = "", retries: int = 2):
        url = urlsplit(base_url)
        super().__init__(url, key)
        self.name = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
        self.model, self.retries = model, retries
        self._path = f"{url.path.rstrip('/')}/chat/completions"
        self.answered = False  # whether it ever has
        self.retried = 0

    def complete(self, messages: Sequence[dict], until: float, **more: object) -> Completion:
        """Return the server's answer to messages, given up at `until` of time.monotonic().

        `more` are other fields. UserError: the request itself is refused, as every other would be.
        """
        body = json.dumps({"model": self.model, "messages": list(messages)} | more).encode()
        sent = {"Content-Type": "application/json"}
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        pause = _FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            wait = None
            try:
                status, headers, content = self.ask(
                    "POST", self._path, until, MOST_BYTES, body, sent
                )
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
        text = content.decode(errors="replace")
        try:
            found = json.loads(text)
            error = found.get("error", found)
            text = str(error.get("message", error) if isinstance(error, dict) else error)
        except (ValueError, AttributeError, RecursionError):
            pass
        return self.said(text, 200) or "no reason given"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        wait = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return wait if 0 <= wait <= 3600 else None


def _count(usage: dict, name: str) -> int:
    value = usage.get(name)
    return value if type(value) is int and 0 <= value < 10**9 else 0
