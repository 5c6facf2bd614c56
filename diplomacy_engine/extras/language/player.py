"""A language model as a player: it asks, counts, logs, and falls back for single units only."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._files import check_target, refusing
from ..._suggest import player_name
from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.asking import ask_player
from ...players.bots import make_bot
from ...players.protocols import CountingPlayer
from ...textgame.game import Game
from .prompt import last_movement, prompt_text
from .questions import Question, TalkQuestion, orders_with_results, questions_of
from .settings import LanguageSettings


@dataclass
class Counts:
    """Counts of a model's requests and orders. `orders` = `legal_at_once` + `repaired` +
    `fell_back`."""

    decisions: int = 0
    orders: int = 0  # one for each unit or adjustment
    legal_at_once: int = 0  # in the first reply
    repaired: int = 0  # in a later one, after being told what was wrong
    fell_back: int = 0  # given by the fallback
    timed_out: int = 0  # requests that ran out of time
    requests: int = 0  # without those that were only sent again
    retried: int = 0  # sent again after a lost connection or a busy server
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0  # that games have waited
    talks: int = 0  # questions about deals, and sentences
    not_understood: int = 0  # questions about deals without a possible answer
    fallback_reasons: dict[str, int] = field(default_factory=dict)  # reason -> orders


class Exchange(NamedTuple):
    """A request with its reply."""

    question: Question | TalkQuestion
    messages: list[dict]  # role and content
    reply: str
    verdict: str  # `legal`, or what was wrong
    tokens_in: int
    tokens_out: int
    seconds: float


class Answer(NamedTuple):
    """What came of a question."""

    numbers: list[int]  # of each slot; NONE where no legal one came
    at_once: int  # slots ordered in the first reply
    exchanges: list[Exchange]
    timed_out: int = 0  # requests
    reason: str = ""  # why an order is missing, with details after a colon


def add_thoughts(
    saved_games: Mapping[int, dict], players: Sequence[tuple[str, CountingPlayer]]
) -> None:
    """Add the prompts and replies that language models have kept to saved games, by the games'
    seeds, as `thoughts`. `players` come with the names that these games know them by, which several
    may share."""
    for seed, saved in saved_games.items():
        for phase in saved["phases"]:
            for name, player in players:
                for power in (p for p, plays in saved["players"].items() if plays == name):
                    thoughts = player.thoughts(seed, phase["name"], power)
                    if thoughts:
                        phase.setdefault("thoughts", {})[power] = thoughts


class LanguagePlayer:
    """A language model as a player, wherever it runs; `answers` says how it is asked. Of games with
    seeds in `keep` the last prompt and reply of each decision are kept for `thoughts`."""

    def __init__(self, name: str, settings: LanguageSettings):
        self.name, self.settings = name, settings
        self.counted = Counts()
        self.keep: Collection[int] = ()
        self._deals: dict[tuple[int, str], tuple[str, list[str]]] = {}  # seed, power: phase, deals
        self._fallback = make_bot(settings.fallback)
        self._numbers: dict[int, int] = {}  # seed of a game -> its number in the log
        self._thoughts: dict[tuple[int, str, str], dict] = {}
        self._log = Path(settings.log) if settings.log else None
        if self._log is not None:
            check_target(self._log)
            _append(self._log, [])

    __repr__ = player_name

    @property
    def reads_history(self) -> bool:
        return bool(self.settings.history)

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        if not decisions.count:
            return np.zeros(0, np.int32)
        questions = self.questions(games, decisions)
        answers = self._timed_answers(questions)
        numbers = np.array([n for answer in answers for n in answer.numbers], np.int32)
        for question, answer in zip(questions, answers):
            self._count(question, answer)
        return self._with_fallback(games, decisions, questions, numbers)

    def questions(self, games: VectorGame, decisions: Decisions) -> list[Question]:
        rows = np.unique(decisions.game).tolist() if self.settings.prompt != "minimal" else []
        past = {row: self._past(games, row) for row in rows}
        return [self._with_deals(q) for q in questions_of(games, decisions, past)]

    def _past(self, games: VectorGame, row: int) -> list[tuple[str, list[str]]]:
        """Return the last movement phases of a game, with their orders and results."""
        if not self.settings.history:
            return []
        after = [Game.from_row(games, row)]
        if games.history is not None:
            rows = games.history.rows_of(row)[1:][-self.settings.history :]
            after = [*(Game.from_row(games.history.games, one) for one in rows), *after]
        past = [(last_movement(game.phase), orders_with_results(game)) for game in after]
        return [phase for phase in past if phase[1]][-self.settings.history :]

    def converse(self, questions: Sequence[TalkQuestion]) -> list[Answer]:
        """Ask about deals, or for sentences; what is no possible answer is NONE."""
        if not questions:
            return []
        answers = self._timed_answers(questions)
        for question, answer in zip(questions, answers):
            self.counted.talks += 1
            self.counted.not_understood += NONE in answer.numbers
            self._count_requests(question, answer)
        return answers

    def _timed_answers(self, questions: Sequence[Question | TalkQuestion]) -> list[Answer]:
        begun = time.monotonic()
        answers = self.answers(questions)
        self.counted.seconds += time.monotonic() - begun
        return answers

    def learn_deals(self, position: Question, deals: list[str]) -> None:
        self._deals[position.game_seed, position.power] = position.game.phase, deals

    def _with_deals(self, question: Question) -> Question:
        phase, deals = self._deals.get((question.game_seed, question.power), ("", None))
        if deals is None:
            return question
        return question._replace(deals=deals if phase == question.game.phase else [])

    def prompt(self, question: Question | TalkQuestion) -> str:
        if isinstance(question, TalkQuestion):
            return question.prompt
        settings = self.settings
        return prompt_text(question, settings.prompt, settings.history, settings.thinking)

    def counts(self) -> dict:
        counts = asdict(self.counted)
        return counts | {"seconds": round(counts["seconds"], 3), "fallback": self.settings.fallback}

    def thoughts(self, game_seed: int, phase: str, power: str) -> dict:
        return self._thoughts.get((game_seed, phase, power), {})

    def answers(self, questions: Sequence[Question | TalkQuestion]) -> list[Answer]:
        """Ask, and nothing more: nothing is counted, logged, or left to the fallback."""
        raise NotImplementedError

    def _count(self, question: Question, answer: Answer) -> None:
        legal = sum(number != NONE for number in answer.numbers)
        counted = self.counted
        counted.decisions += 1
        counted.orders += len(answer.numbers)
        counted.legal_at_once += answer.at_once
        counted.repaired += legal - answer.at_once
        missing = len(answer.numbers) - legal
        counted.fell_back += missing
        if missing:
            reason = answer.reason.partition(":")[0]
            counted.fallback_reasons[reason] = counted.fallback_reasons.get(reason, 0) + missing
        self._count_requests(question, answer)
        if question.game_seed in self.keep and answer.exchanges:
            last = answer.exchanges[-1]
            prompt = "\n".join(message["content"] for message in last.messages)
            key = question.game_seed, question.game.phase, question.power
            self._thoughts[key] = {"prompt": prompt, "reply": last.reply}

    def _count_requests(self, question: Question | TalkQuestion, answer: Answer) -> None:
        counted = self.counted
        counted.timed_out += answer.timed_out
        counted.requests += len(answer.exchanges)
        for exchange in answer.exchanges:
            counted.tokens_in += exchange.tokens_in
            counted.tokens_out += exchange.tokens_out
        number = self._numbers.setdefault(question.game_seed, len(self._numbers))
        if self._log is not None:
            about = {"game": number, "phase": question.game.phase, "power": question.power}
            lines = []
            for exchange in answer.exchanges:
                line = about | exchange._asdict() | {"seconds": round(exchange.seconds, 3)}
                del line["question"]
                lines.append(json.dumps(line) + "\n")
            _append(self._log, lines)

    def _with_fallback(
        self,
        games: VectorGame,
        decisions: Decisions,
        questions: Sequence[Question],
        numbers: np.ndarray,
    ) -> np.ndarray:
        rows = [d for d, first in enumerate(decisions.slot_start[:-1])
                if (numbers[first : decisions.slot_start[d + 1]] == NONE).any()]  # fmt: skip
        if not rows:
            return numbers
        incomplete = decisions.take(np.array(rows))
        other = ask_player(games, incomplete, self._fallback)
        for i, d in enumerate(rows):
            own = numbers[decisions.slot_start[d] : decisions.slot_start[d + 1]]
            theirs = other[incomplete.slot_start[i] : incomplete.slot_start[i + 1]]
            taken = [int(number) for number in own if number != NONE]
            for s in np.flatnonzero(own == NONE):
                slot = questions[d].open_slot(questions[d].slots[s], taken)
                choices = [int(n) for n in (theirs[s], *theirs) if n in slot.numbers]
                # In winter the model may have taken what the fallback chose.
                choices += slot.harmless() or slot.numbers
                taken.append(choices[0])
                own[s] = choices[0]
        return numbers


def _append(log: Path, lines: Sequence[str]) -> None:
    with refusing(log, "written"), open(log, "a", encoding="utf-8") as file:
        file.writelines(lines)
