"""A language model in this process as a player; the model itself is in model.py.
Here are only texts and numbers, so that the engine needs no PyTorch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from ...constants import NONE
from .player import Answer, Exchange, LanguagePlayer
from .questions import Question, TalkQuestion
from .replies import Reading, read_reply
from .settings import LanguageSettings

MOST_SPOKEN = 40  # tokens of a sentence
_FREE, _FREE_OF_AN_ORDER = 100, 20  # tokens of an unconstrained reply


class Reply(NamedTuple):
    """What a local model has written, as it is needed to learn from it."""

    prompt: list[int]  # tokens
    tokens: list[int]  # of the reply, forced ones and line ends included
    numbers: list[int]  # order number of each slot
    at: list[int]  # positions in `tokens` where the model had a choice
    allowed: list[list[int] | None]  # tokens it chose from at each; None: all
    logprobs: list[float]  # of what it chose among these, at the temperature of the draw
    text: str  # the reply


class Writer(Protocol):
    """What is called of a LanguageModel of model.py."""

    def replies(
        self,
        prompts: Sequence[str],
        questions: Sequence[Question | TalkQuestion],
        greedy: bool = False,
        free: int | None = None,
    ) -> list[Reply]: ...

    def prompt_tokens(self, prompt: str) -> list[int]: ...

    def text_of(self, tokens: Sequence[int]) -> str: ...


class LocalPlayer(LanguagePlayer):
    """Asks a model of this process; each of its orders is legal, and none is missing, unless it is
    not constrained. While `recording`, `trace` grows with every decision: (row, phase, power,
    Reply), for training."""

    def __init__(self, name: str, settings: LanguageSettings, model: Writer, greedy: bool = False):
        super().__init__(name, settings)
        self.model = model
        self.greedy = greedy or settings.temperature == 0
        self.recording = False
        self.trace: list[tuple[int, str, str, Reply]] = []

    def answers(self, questions: Sequence[Question | TalkQuestion]) -> list[Answer]:
        free = self.settings.constraint == "none" and isinstance(questions[0], Question)
        write, size = self._write_freely if free else self._write, self.settings.batch
        answers = []
        for first in range(0, len(questions), size):
            batch = questions[first : first + size]
            prompts = [self.prompt(question) for question in batch]
            for prompt, question, (reply, reading) in zip(prompts, batch, write(prompts, batch)):
                numbers = [reading.numbers.get(s, NONE) for s in range(len(question.slots))]
                messages = [{"role": "user", "content": prompt}]
                tokens = len(reply.prompt), len(reply.tokens)
                exchange = Exchange(question, messages, reply.text, reading.verdict, *tokens, 0.0)
                answers.append(
                    Answer(numbers, len(reading.numbers), [exchange], 0, "no legal order")
                )
                if self.recording and not free and isinstance(question, Question):
                    self.trace.append((question.row, question.game.phase, question.power, reply))
        return answers

    def _write(
        self, prompts: Sequence[str], questions: Sequence[Question | TalkQuestion]
    ) -> Iterator[tuple[Reply, Reading]]:
        """Have legal lines written, or a sentence for questions about deals without slots."""
        free = None
        if isinstance(questions[0], TalkQuestion):
            free = 0 if questions[0].slots else MOST_SPOKEN
        for reply in self.model.replies(prompts, questions, self.greedy, free):
            yield reply, Reading(dict(enumerate(reply.numbers)), [])

    def _write_freely(
        self, prompts: Sequence[str], questions: Sequence[Question | TalkQuestion]
    ) -> Iterator[tuple[Reply, Reading]]:
        """Have any text written, and read it as that of a server."""
        limit = _FREE + self.settings.thinking
        of_orders = [question for question in questions if isinstance(question, Question)]
        limit += _FREE_OF_AN_ORDER * max(len(question.slots) for question in of_orders)
        free = [
            TalkQuestion.of(question, prompt, [], [])._replace(one_line=False)
            for question, prompt in zip(of_orders, prompts)
        ]
        replies = self.model.replies(prompts, free, self.greedy, limit)
        for question, reply in zip(of_orders, replies):
            slots, cut_off = range(len(question.slots)), len(reply.tokens) >= limit
            yield reply, read_reply(question, slots, {}, reply.text, cut_off)
