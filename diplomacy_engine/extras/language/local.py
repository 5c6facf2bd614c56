"""A language model in this process as a player; the model itself is in model.py.
Here are only texts and numbers, so that the engine needs no PyTorch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.protocols import Explanation, Seedable
from .player import Answer, Exchange, LanguagePlayer
from .questions import Question, TalkQuestion
from .replies import read_reply
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


class LocalPlayer(LanguagePlayer):
    """Asks a model of this process; each of its orders is legal, and none is missing, unless it is
    not constrained. While `recording`, `trace` grows with every decision: (row, phase, power,
    Reply), for training."""

    def __init__(self, name: str, settings: LanguageSettings, model: Any, greedy: bool = False):
        super().__init__(name, settings)
        self.model = model  # a LanguageModel, of model.py
        self.greedy = greedy or settings.temperature == 0
        self.recording = False
        self.trace: list[tuple[int, str, str, Reply]] = []

    @property
    def generator(self) -> Seedable:
        return self.model.generator

    def explain(self, games: VectorGame, decisions: Decisions) -> Explanation:
        """It knows no values (NaN)."""
        shares = []
        for question in self.questions(games, decisions):
            shares += self.model.order_shares(self.prompt(question), question)
        value = np.full(decisions.count, np.nan, np.float32)
        return Explanation(np.concatenate(shares).astype(np.float32), value)

    def _answers(self, questions: Sequence[Question | TalkQuestion]) -> list[Answer]:
        if self.settings.constraint == "none" and isinstance(questions[0], Question):
            return self._free_answers(questions)
        answers, size = [], self.settings.batch
        about_deals = isinstance(questions[0], TalkQuestion)
        free = (0 if questions[0].slots else MOST_SPOKEN) if about_deals else None
        for first in range(0, len(questions), size):
            asked = questions[first : first + size]
            prompts = [self.prompt(question) for question in asked]
            for prompt, question, reply in zip(
                prompts, asked, self.model.replies(prompts, asked, self.greedy, free)
            ):
                messages = [{"role": "user", "content": prompt}]
                tokens = len(reply.prompt), len(reply.tokens)
                exchange = Exchange(question, messages, reply.text, "legal", *tokens, 0.0)
                answers.append(Answer(reply.numbers, len(reply.numbers), [exchange]))
                if self.recording and not about_deals:
                    self.trace.append((question.row, question.game.phase, question.power, reply))
        return answers

    def _free_answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Ask for any text, and read it as that of a server."""
        answers, size = [], self.settings.batch
        for first in range(0, len(questions), size):
            asked = questions[first : first + size]
            prompts = [self.prompt(question) for question in asked]
            limit = _FREE + self.settings.thinking
            limit += _FREE_OF_AN_ORDER * max(len(question.slots) for question in asked)
            free = [
                TalkQuestion.of(question, prompt, [], [])._replace(one_line=False)
                for question, prompt in zip(asked, prompts)
            ]
            replies = self.model.replies(prompts, free, self.greedy, limit)
            for prompt, question, reply in zip(prompts, asked, replies):
                slots = range(len(question.slots))
                cut_off = len(reply.tokens) >= limit
                reading = read_reply(question, slots, {}, reply.text, cut_off)
                numbers = [reading.numbers.get(s, NONE) for s in slots]
                verdict = "; ".join(reading.complaints) or "legal"
                messages = [{"role": "user", "content": prompt}]
                tokens = len(reply.prompt), len(reply.tokens)
                exchange = Exchange(question, messages, reply.text, verdict, *tokens, 0.0)
                answers.append(
                    Answer(numbers, len(reading.numbers), [exchange], reason="no legal order")
                )
        return answers
