"""A language model on a server as a player: asked, checked, asked again with the reason."""

import json
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPMessage
from typing import NamedTuple
from urllib.parse import urlsplit

from ..._http import NoReply, Server, TooLate, Unreachable
from ...constants import NONE
from ...errors import UserError
from .constraints import parts, request_fields
from .player import Answer, Exchange, LanguagePlayer
from .prompt import prompt_text
from .questions import Question, TalkQuestion
from .replies import Reading, complaint, read_choices, read_reply
from .settings import LanguageSettings

MOST_BYTES = 4 * 2**20  # of a reply
BUSY = (408, 409, 425, 429)  # and all from 500 on: worth another try
_FIRST_PAUSE = 0.5  # seconds before a request is sent again, then twice as many each time
_LONGEST_PAUSE = 8.0
_SHORTEST_PAUSE = 0.1  # while a model is loaded, whatever the server says
_TOKENS_OF_AN_ORDER = 40  # more than any tokenizer needs, names of JSON included
_TOKENS = 100  # of a reply besides, since some models say a word first
THOUGHTS = 4096  # tokens of a reply besides, for models that think unasked
_MORE = 4  # times as many once a reply is cut off
_ENDING = (401, 402, 403, 404)  # every other request would be refused, too
_TOO_LONG = re.compile(
    r"context|too (?:long|large|many)|maximum.{0,40}length|exceed", re.IGNORECASE
)
_LOADING = re.compile(r"load|start|warm|not ready|initiali", re.IGNORECASE)


class Refused(NoReply):
    """This request is refused; another may not be."""


class RequestTooLong(Refused):
    """Prompt and reply do not fit into the model's context."""


class RemotePlayer(LanguagePlayer):
    """Asks a server for each decision, several at a time, all within one deadline a phase."""

    def __init__(self, name: str, settings: LanguageSettings, greedy: bool = False):
        super().__init__(name, settings)
        self.greedy = greedy
        self.server = ChatServer(
            settings.base_url, settings.model, settings.api_key(), settings.retries
        )

    def answers(self, questions: Sequence[Question | TalkQuestion]) -> list[Answer]:
        until = time.monotonic() + self.settings.deadline
        probing, answers = not self.server.answered, []
        # One request finds out whether there is a server.
        for part in (questions[:1], questions[1:]) if probing else (questions,):
            conversations = [_Conversation(self, question, until) for question in part]
            self._run(conversations, until)
            self.counted.retried = self.server.retried
            answers += [conversation.answer() for conversation in conversations]
            trouble = [conversation.unreachable for conversation in conversations]
            if probing and not self.server.answered and not conversations[0].late:
                trouble = [conversations[0].trouble]
            if trouble and all(trouble):
                how = "no longer answers" if self.server.answered else "does not answer"
                raise UserError(f"the server at {self.server.name} {how}: {trouble[0]}")
            probing = False
        return answers

    def _run(self, conversations: Sequence["_Conversation"], until: float) -> None:
        todo, errors, stopped = iter(conversations), [], threading.Event()

        def work() -> None:
            for conversation in todo:  # which all threads share
                try:
                    conversation.run(stopped)
                except Exception as error:
                    errors.append(error)

        # Daemons: a server that drips must not keep the program from ending.
        count = min(self.settings.concurrency, len(conversations))
        threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            _join(threads, until + 0.05)
        finally:  # also after Ctrl-C
            stopped.set()
            self.server.abandon()
        _join(threads, time.monotonic() + 1.0)
        if errors:
            raise errors[0]


def _join(threads: Sequence[threading.Thread], until: float) -> None:
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


@dataclass
class _Conversation:
    """What is said about one question, until all its orders are legal or nothing helps."""

    player: RemotePlayer
    question: Question | TalkQuestion
    until: float
    numbers: dict[int, int] = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    at_once: int = 0
    late: int = 0
    trouble: str = ""
    unreachable: str = ""
    too_long: bool = False
    thoughts: int = 0  # tokens that the next request has room for
    cut_off: bool = False
    waiting: bool = False  # for a reply

    def answer(self) -> Answer:
        """Return what has come of it, also while a request that does not end is under way."""
        numbers = [self.numbers.get(s, NONE) for s in range(len(self.question.slots))]
        late = self.late + self.waiting
        reason = TOO_LATE if late else self.trouble
        return Answer(numbers, self.at_once, list(self.exchanges), late, reason)

    def run(self, stopped: threading.Event) -> None:
        settings, prompt = self.player.settings, self.player.prompt(self.question)
        slots = self.question.slots
        indices = {slot.unit: s for s, slot in enumerate(slots)}
        # About deals nobody is asked again: what is no possible answer is silence.
        reasks = 0 if isinstance(self.question, TalkQuestion) else settings.reasks
        for part in parts(settings.constraint, slots) if slots else [[]]:
            open_slots = [indices[slot.unit] for slot in part]
            messages = [{"role": "user", "content": prompt + self._so_far(open_slots)}]
            for attempt in range(reasks + 1):
                before = self.trouble
                if stopped.is_set():
                    return
                reading, text = self._ask_in_full(messages, open_slots)
                if reading is None:
                    break
                self.numbers |= reading.numbers
                if attempt == 0:
                    self.at_once += len(reading.numbers)
                open_slots = [s for s in open_slots if s not in self.numbers]
                same = self.trouble == before != ILLEGAL
                if not open_slots or attempt == reasks or same:
                    break
                again = complaint(reading, self._open(open_slots))
                if self.trouble == ILLEGAL:
                    messages = [*messages, {"role": "assistant", "content": text[:4000]}]
                    messages.append({"role": "user", "content": again})
                else:  # nothing of it is worth repeating
                    again = f"{prompt}{self._so_far(open_slots)}\n{again}"
                    messages = [{"role": "user", "content": again}]
            if reading is None:
                return  # the server does not answer, so no other part is asked for

    def _ask_in_full(
        self, messages: list[dict], open_slots: list[int]
    ) -> tuple[Reading | None, str]:
        """Ask, and once more with less of everything if that is too much for the model."""
        server, prompt = self.player.server, self.player.prompt(self.question)
        self.thoughts = server.thoughts
        reading, text = self._ask(messages, open_slots)
        if self.too_long and self.thoughts:
            self.thoughts = 0
            if not server.has_room:
                server.thoughts = 0  # the context is too small for them with any prompt
            reading, text = self._ask(messages, open_slots)
        if self.too_long and isinstance(self.question, Question):
            short = prompt_text(self.question, "minimal") + self._so_far(open_slots)
            if len(short) < len(prompt):
                messages[:] = [{"role": "user", "content": short}]
                reading, text = self._ask(messages, open_slots)
        return reading, text

    def _read(self, open_slots: Sequence[int], completion: "Completion") -> Reading:
        question, cut_off = self.question, completion.ending == CUT_OFF
        if isinstance(question, TalkQuestion):
            return read_choices(question, open_slots, completion.text, cut_off)
        return read_reply(question, open_slots, self.numbers, completion.text, cut_off)

    def _so_far(self, open_slots: Sequence[int]) -> str:
        slots = self.question.slots
        if len(open_slots) == len(slots):
            return ""
        orders = self.question.written(self.numbers.values())
        lines = ["Ordered already:", *orders] if orders else []
        return "\n".join([*lines, "Now only:", *(slots[s].unit for s in open_slots)]) + "\n"

    def _open(self, open_slots: Sequence[int]) -> list:
        ordered = list(self.numbers.values())
        return [self.question.open_slot(self.question.slots[s], ordered) for s in open_slots]

    def _ask(self, messages: list[dict], open_slots: list[int]) -> tuple[Reading | None, str]:
        player, settings = self.player, self.player.settings
        begun = time.monotonic()
        until = min(self.until, begun + settings.timeout)
        fields = {}
        if open_slots:
            fields = request_fields(settings.server, settings.constraint, self._open(open_slots))
        fields["temperature"] = 0 if player.greedy else settings.temperature
        limit = "max_completion_tokens" if settings.server == "openai" else "max_tokens"
        free = settings.thinking or self.thoughts
        fields[limit] = _TOKENS + _TOKENS_OF_AN_ORDER * len(open_slots) + free * _MORE**self.cut_off
        self.waiting, self.too_long = True, False
        text, tokens, reading = "", (0, 0), None
        try:
            completion = player.server.complete(messages, until, **fields)
            player.server.has_room |= self.thoughts > 0
            text, tokens = completion.text, (completion.tokens_in, completion.tokens_out)
            reading = self._read(open_slots, completion)
            if reading.complaints and completion.ending:
                reading.complaints.insert(0, completion.ending)
            self.trouble = completion.ending or ILLEGAL
            self.cut_off = completion.ending == CUT_OFF and free > 0
            verdict = reading.verdict
        except NoReply as error:
            verdict = self.trouble = str(error)
            self.late += isinstance(error, TooLate)
            self.too_long = isinstance(error, RequestTooLong)
            if isinstance(error, Unreachable):
                self.unreachable = verdict
        self.waiting = False
        seconds = time.monotonic() - begun
        self.exchanges.append(
            Exchange(self.question, list(messages), text, verdict, *tokens, seconds)
        )
        return reading, text


# Reasons for which a reply has no orders.
CUT_OFF = "cut at the token limit, which `thinking` raises"
IN_THOUGHTS = "all text is in the thoughts"
DECLINED = "the model refused"
EMPTY = "an empty reply"
ILLEGAL = "no legal order"
TOO_LATE = "no answer in time"


class Completion(NamedTuple):
    """A server's answer; tokens are 0 where it does not count them."""

    text: str
    tokens_in: int
    tokens_out: int
    ending: str = ""  # why it is empty or cut off, one of the reasons above


class ChatServer(Server):
    """An OpenAI-compatible server; the key is sent with each request, and kept out of all texts."""

    def __init__(self, base_url: str, model: str, key: str = "", retries: int = 2):
        url = urlsplit(base_url)
        super().__init__(url, key)
        self.name = f"{url.scheme}://{url.netloc}{url.path}".rstrip("/")
        self.model, self.retries = model, retries
        self._path = f"{url.path.rstrip('/')}/chat/completions"
        self.answered = False  # whether it ever has
        self.thoughts = THOUGHTS  # tokens of a reply besides its orders
        self.has_room = False  # whether it has answered a request with room for them
        self.retried = 0

    def complete(self, messages: Sequence[dict], until: float, **more: object) -> Completion:
        """Return the server's answer to messages, given up at `until` of time.monotonic(). `more`
        are other fields. UserError: the request itself is refused, as every other would be."""
        body = {"model": self.model, "messages": list(messages)} | more
        pause, tries = _FIRST_PAUSE, self.retries
        while True:
            wait, loading = None, False
            try:
                status, headers, content = self.ask("POST", self._path, until, MOST_BYTES, body)
                answer = _read_json(content)
                status = _error_in(answer) if status < 300 else status
                if status < 300:
                    return self._completion(answer)
                reason = self._message(content, answer)
                trouble: NoReply = NoReply(f"status {status}: {reason}")
                loading = status == 503 and _LOADING.search(reason) is not None
                if status < 500 and status not in BUSY:
                    raise self._refusal(status, content, str(trouble))
                wait = _retry_after(headers)
            except NoReply as error:
                trouble = error
            if isinstance(trouble, TooLate | Refused) or not (tries or loading):
                raise trouble
            wait = pause if wait is None else max(wait, _SHORTEST_PAUSE * loading)
            if time.monotonic() + wait >= until:
                late = TooLate(f"no time is left to try again after {trouble}")
                raise trouble if loading else late
            time.sleep(wait)
            tries -= not loading
            self.retried += 1
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _refusal(self, status: int, content: bytes, trouble: str) -> UserError:
        """Return what a refused request means: it alone is, or all would be."""
        text = content[:2000].decode(errors="replace")
        too_long = status == 413 or (status in (400, 422) and _TOO_LONG.search(text))
        filtered = status not in _ENDING[:1] and re.search(r"content.{0,20}(?:filter|policy)", text)
        self.answered |= bool(too_long or filtered)
        if too_long:
            return RequestTooLong(f"too long: {trouble}")
        if filtered:
            return Refused(f"filtered: {trouble}")
        if self.answered and status not in _ENDING:
            return Refused(f"refused: {trouble}")
        return UserError(
            f"the server at {self.name} refuses a request for model {self.model[:80]!r} "
            f"with {trouble}"
        )

    def _completion(self, answer: dict) -> Completion:
        try:
            choice = answer["choices"][0]
            message = choice["message"]
            text = _text_of(message.get("content"))
            refusal = message.get("refusal")
            thoughts = any(message.get(name) for name in ("reasoning_content", "reasoning"))
            thoughts = thoughts or (not text and bool(message.get("content")))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
            raise NoReply("an answer that is not a chat completion") from None
        self.answered = True
        ending = {"length": CUT_OFF, "content_filter": DECLINED}.get(
            str(choice.get("finish_reason")), ""
        )
        if not ending and not text.strip():
            ending = DECLINED if refusal else IN_THOUGHTS if thoughts else EMPTY
        usage = answer.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        tokens = [counts.get(name) for name in ("prompt_tokens", "completion_tokens")]
        tokens = [n if type(n) is int and 0 <= n < 10**9 else 0 for n in tokens]
        return Completion._make([self.clean(text or str(refusal or "")), *tokens, ending])

    def _message(self, content: bytes, answer: dict) -> str:
        text = content.decode(errors="replace")
        if answer:
            error = answer.get("error", answer)
            text = str(error.get("message", error) if isinstance(error, dict) else error)
        return self.said(text, 200) or "no reason given"


def _text_of(content: str | list | None) -> str:
    """Return the text of a message: of its parts those that are no thoughts."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif part.get("type", "text") in ("text", "output_text"):
            texts.append(_text_of(part.get("text")))
    return "".join(texts)


def _read_json(content: bytes) -> dict:
    answer = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(content.decode(errors="replace").lstrip("\ufeff"))
    return answer if isinstance(answer, dict) else {}


def _error_in(answer: dict) -> int:
    """Return the status of an error that an answer holds in place of a completion; 200: none."""
    error = answer.get("error")
    if not error or answer.get("choices"):
        return 200
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int and 400 <= code <= 599 else 500


def _retry_after(headers: HTTPMessage) -> float | None:
    try:
        wait = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return wait if 0 <= wait <= 3600 else None
