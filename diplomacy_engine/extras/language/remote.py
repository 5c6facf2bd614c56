"""A language model on a server as a player: asked, checked, asked again with the reason."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from queue import Empty, SimpleQueue

from ..._http import NoReply, TooLate, Unreachable
from ...constants import NONE
from ...errors import UserError
from .constraints import parts, request_fields
from .player import Answer, Exchange, LanguagePlayer
from .questions import Question, TalkQuestion
from .replies import Reading, complaint, read_choices, read_reply
from .server import ChatServer
from .settings import LanguageSettings

_TOKENS_OF_AN_ORDER = 40  # more than any tokenizer needs, names of JSON included
_TOKENS = 100  # of a reply besides, since some models say a word first


class RemotePlayer(LanguagePlayer):
    """Asks a server for each decision, several at a time, all within one deadline a phase."""

    def __init__(self, name: str, settings: LanguageSettings, greedy: bool = False):
        super().__init__(name, settings)
        self.greedy = greedy
        self.server = ChatServer(
            settings.base_url, settings.model, settings.api_key(), settings.retries
        )

    def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        """What is not there at the deadline is given up."""
        until = time.monotonic() + self.settings.deadline
        first = []
        if not self.server.answered:  # one request finds out whether there is a server
            first, questions = [self._asked(questions[0], until)], questions[1:]
        conversations = [_Conversation(self, question, until) for question in questions]
        self._run(conversations, until)
        answers = [conversation.answer() for conversation in conversations]
        self.counted.retried = self.server.retried
        troubled = [c.unreachable for c in conversations]
        if troubled and all(troubled):
            raise UserError(f"the server at {self.server.name} no longer answers: {troubled[0]}")
        return first + answers

    def _asked(self, question: Question, until: float) -> Answer:
        conversation = _Conversation(self, question, until)
        self._run([conversation], until)
        if not self.server.answered and not conversation.late:
            raise UserError(
                f"the server at {self.server.name} does not answer: {conversation.trouble}"
            )
        return conversation.answer()

    def _run(self, conversations: Sequence["_Conversation"], until: float) -> None:
        todo: SimpleQueue = SimpleQueue()
        futures = []
        for conversation in conversations:
            future: Future = Future()
            futures.append(future)
            todo.put((conversation, future))
        for _ in range(min(self.settings.concurrency, len(conversations))):
            # Daemons: a server that drips must not keep the program from ending.
            threading.Thread(target=_work, args=(todo,), daemon=True).start()
        try:
            done, pending = wait(futures, max(0.0, until - time.monotonic()) + 0.05)
        except BaseException:  # Ctrl-C
            self._give_up(conversations)
            raise
        if pending:
            self._give_up(conversations)
            wait(pending, 1.0)
        for future in done:
            future.result()  # raises what a request was refused with

    def _give_up(self, conversations: Sequence["_Conversation"]) -> None:
        for conversation in conversations:
            conversation.stop()
        self.server.abandon()


def _work(todo: SimpleQueue) -> None:
    while True:
        try:
            conversation, future = todo.get_nowait()
        except Empty:
            return
        try:
            conversation.run()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)


class _Conversation:
    """What is said about one question, until all its orders are legal or nothing helps."""

    def __init__(self, player: RemotePlayer, question: Question, until: float):
        self.player, self.question, self.until = player, question, until
        self.numbers: dict[int, int] = {}
        self.exchanges: list[Exchange] = []
        self.at_once = 0
        self.trouble = self.unreachable = ""
        self.late = 0
        self._under_way: tuple[list[dict], float] | None = None  # a request, and since when
        self._stopped = False
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            if self._under_way and not self._stopped:
                self.late += 1
                self._note(*self._under_way, "", "no answer in time", (0, 0))
            self._stopped = True

    def _note(
        self, messages: list[dict], begun: float, reply: str, verdict: str, tokens: tuple[int, int]
    ) -> None:
        seconds = time.monotonic() - begun
        self.exchanges.append(Exchange(self.question, messages, reply, verdict, *tokens, seconds))

    def answer(self) -> Answer:
        with self._lock:
            self._stopped = True
            numbers = [self.numbers.get(s, NONE) for s in range(len(self.question.slots))]
            return Answer(numbers, self.at_once, list(self.exchanges), self.late)

    def run(self) -> None:
        settings, prompt = self.player.settings, self.player.prompt(self.question)
        slots = self.question.slots
        indices = {slot.unit: s for s, slot in enumerate(slots)}
        # About deals nobody is asked again: what is no possible answer is silence.
        reasks = 0 if isinstance(self.question, TalkQuestion) else settings.reasks
        for part in parts(settings.constraint, slots) if slots else [[]]:
            asked = [indices[slot.unit] for slot in part]
            messages = [{"role": "user", "content": prompt + self._so_far(asked)}]
            for attempt in range(reasks + 1):
                reading, text = self._ask(messages, asked)
                if reading is None:
                    return  # the server does not answer, so no other part is asked for
                with self._lock:
                    if self._stopped:
                        return
                    self.numbers |= reading.numbers
                    if attempt == 0:
                        self.at_once += len(reading.numbers)
                asked = [s for s in asked if s not in self.numbers]
                if not asked or attempt == reasks:
                    break
                again = complaint(reading, self._open(asked))
                messages = [
                    *messages,
                    {"role": "assistant", "content": text[:4000]},
                    {"role": "user", "content": again},
                ]

    def _read(self, asked: Sequence[int], text: str) -> Reading:
        question = self.question
        if isinstance(question, TalkQuestion):
            return read_choices(question, asked, text)
        return read_reply(question, asked, self.numbers, text)

    def _so_far(self, asked: Sequence[int]) -> str:
        slots = self.question.slots
        if len(asked) == len(slots):
            return ""
        given = self.question.written(self.numbers.values())
        lines = ["Ordered already:", *given] if given else []
        return "\n".join([*lines, "Now only:", *(slots[s].unit for s in asked)]) + "\n"

    def _open(self, asked: Sequence[int]) -> list:
        given = list(self.numbers.values())
        return [self.question.open_slot(self.question.slots[s], given) for s in asked]

    def _ask(self, messages: list[dict], asked: list[int]) -> tuple[Reading | None, str]:
        """Send one request; return what came of it, None if nothing did."""
        player, settings = self.player, self.player.settings
        begun = time.monotonic()
        until = min(self.until, begun + settings.timeout)
        fields = {}
        if asked:
            fields = request_fields(settings.server, settings.constraint, self._open(asked))
        fields["temperature"] = 0 if player.greedy else settings.temperature
        limit = "max_completion_tokens" if settings.server == "openai" else "max_tokens"
        fields[limit] = _TOKENS + _TOKENS_OF_AN_ORDER * len(asked) + settings.thinking
        text, tokens, reading, late = "", (0, 0), None, False
        with self._lock:
            if self._stopped:
                return None, ""
            self._under_way = messages, begun
        try:
            found = player.server.complete(messages, until, **fields)
            text, tokens = found.text, (found.tokens_in, found.tokens_out)
            reading = self._read(asked, text)
            verdict = "; ".join(reading.complaints) or "legal"
        except NoReply as error:
            verdict, late = str(error), isinstance(error, TooLate)
            self.trouble = verdict
            if isinstance(error, Unreachable):
                self.unreachable = verdict
        with self._lock:
            self._under_way = None
            if not self._stopped:
                self.late += late
                self._note(messages, begun, text, verdict, tokens)
        return reading, text
