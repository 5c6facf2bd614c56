"""Language models that run here: they play by legal orders alone, and learn from forked games.

    python grpo_llm_diplomacy.py --seats ENGLAND                  # a small random model learns
    python grpo_llm_diplomacy.py --model FOLDER --lora 16 --learning-rate 1e-5
    python grpo_llm_diplomacy.py --resume runs/small__grpo__1__...
    python -m diplomacy_engine evaluate --player runs/small__grpo__1__... --against random
    python -m diplomacy_engine evaluate --player llm:local:FOLDER --against random --games 20

*Playing.* Every order that a unit may be given is a path of tokens, its line end included, in a
trie of its slot, and the model chooses only where the trie branches. So each order is legal and
none is missing, whatever the tokenizer and the weights. Where there is nothing to choose no pass
through the model is made.

*Learning* is group-relative policy optimization (GRPO, Shao et al. 2024). A position is played on
in many copies; a reply is better than the others of its group by what its copy scored more, and
the choices in it become likelier or less likely by that much. Only choices count: tokens that
were forced are left out, and probabilities are those among the tokens that the trie allowed.

docs/language_models.md tells more.

Contents: Trie, Draft (one reply being written), LanguageModel, load_language_model; then Args,
play_groups, learn, and the loop `train`.
"""

import importlib.util
import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models come from folders, never from the network

if __name__ == "__main__" and importlib.util.find_spec("transformers") is None:
    print("error: language models need more packages: pip install '.[llm]'", file=sys.stderr)
    raise SystemExit(2)

import contextlib
import copy
import hashlib
import io
import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from diplomacy_engine import UserError, VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine._suggest import did_you_mean, quoted
from diplomacy_engine.matches.beginnings import random_beginnings
from diplomacy_engine.matches.forks import center_share, destinations, fork
from diplomacy_engine.players import Player, checkpoints
from diplomacy_engine.players.language.local import LocalPlayer, Reply
from diplomacy_engine.players.language.prompt import OPENING, prompt_text
from diplomacy_engine.players.language.questions import Question, Slot, questions_of
from diplomacy_engine.players.language.settings import LanguageSettings
from diplomacy_engine.players.names import VoiceSpec, parse_player
from diplomacy_engine.players.protocols import SamplingPlayer
from diplomacy_engine.rules.map import Map
from diplomacy_engine.rules.vocabulary import OrderVocabulary, vocabulary
from diplomacy_engine.training.clock import Clock
from diplomacy_engine._progress import Progress
from diplomacy_engine._fields import Between, Natural, NonNegative, Positive
from diplomacy_engine.training.run_folder import RunFolder
from diplomacy_engine.training.settings import args_from_dictionary, parse_args
from diplomacy_engine.training.signals import StopSignals

LINE_END = "\n"
END_OF_THOUGHT = "</think>"
SCORED = 64  # whole orders whose probability is computed at once
KEPT_TRIES = 20_000

# token -> what may follow; where an order ends, its number
Trie = dict[int, "Trie | int"]


def make_trie(paths: Sequence[Sequence[int]], numbers: Sequence[int]) -> Trie:
    """Return a trie of orders.

    Args:
        paths: the tokens of each, of which none begins with another.
        numbers: of the same orders.
    """
    root: Trie = {}
    for path, number in zip(paths, numbers):
        node = root
        for token in path[:-1]:
            node = node.setdefault(token, {})
        node[path[-1]] = number
    return root


def has_prefixes(paths: Sequence[Sequence[int]]) -> bool:
    """Tell whether one of the paths begins with another, or is the same."""
    ordered = sorted(map(tuple, paths))
    return any(later[: len(first)] == first for first, later in itertools.pairwise(ordered))


class OrderTokens:
    """The tokens of every order of a map, each with what ends it.

    Orders and line ends become tokens apart, and what a tokenizer makes of two texts in a row is
    never asked. An end of text takes the line end's place where a tokenizer drops it or writes it
    like a part of an order: 1,450 of the standard map's 20,009 orders begin with another order, and
    only what follows tells them apart.

    Raises:
        UserError: the tokenizer writes two orders alike.
    """

    def __init__(self, tokenizer, vocabulary: OrderVocabulary):
        texts = list(vocabulary.texts)
        orders = tokenizer(texts, add_special_tokens=False)["input_ids"]
        end = tokenizer(LINE_END, add_special_tokens=False)["input_ids"]
        self.paths = [[*order, *end] for order in orders]
        if not end or has_prefixes(self.paths):
            self.paths = [[*order, tokenizer.eos_token_id] for order in orders]
            if has_prefixes(self.paths):
                seen: dict[tuple, str] = {}
                for path, text in zip(self.paths, texts):
                    other = seen.setdefault(tuple(path), text)
                    if other != text:
                        raise UserError(
                            f"the model's tokenizer cannot tell {other!r} and {text!r} apart"
                        )
                raise UserError("the model's tokenizer cannot tell some orders apart")
        self._tries: dict[tuple[int, ...], Trie] = {}

    def trie(self, slot: Slot) -> Trie:
        """Return the trie of a slot's legal orders."""
        key = tuple(slot.numbers)
        if key not in self._tries:
            if len(self._tries) >= KEPT_TRIES:
                self._tries.clear()
            self._tries[key] = make_trie([self.paths[n] for n in key], key)
        return self._tries[key]


class Draft:
    """A reply while it is written.

    Args:
        prompt: its tokens.
        question: what is asked.
        orders: the tokens of the map's orders.
        thinking: tokens of free text before the orders.
        opening: tokens that end the free text.
        skip: whether tokens without an alternative are passed over at once.

    Attributes:
        pending: tokens that the model has not seen yet; its next choice comes after them.
        done: whether all slots have an order.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        question: Question,
        orders: OrderTokens,
        thinking: int = 0,
        opening: Sequence[int] = (),
        skip: bool = True,
    ):
        self.question, self.orders, self.skip = question, orders, skip
        self.prompt, self.pending = list(prompt), list(prompt)
        self.tokens: list[int] = []
        self.numbers: list[int] = []
        self.at: list[int] = []
        self.allowed: list[list[int] | None] = []
        self.logprobs: list[float] = []
        self.free, self.opening, self.done = thinking, list(opening), False
        self.node: Trie | int | None = None  # None: free text
        if not thinking:
            self._begin_orders()

    def choices(self) -> list[int] | None:
        """Return the tokens that may come next; None: any."""
        return None if self.node is None else list(self.node)

    def take(self, token: int, logprob: float, text: str = "", end: int | None = None) -> None:
        """Go on with a token.

        Args:
            token: the one chosen.
            logprob: its log-probability among the choices.
            text: of the free text with it, if it is free text.
            end: the token that ends texts.
        """
        if self.node is None or len(self.node) > 1:
            self.at.append(len(self.tokens))
            self.allowed.append(self.choices())
            self.logprobs.append(logprob)
        self._add(token)
        if self.node is None:
            self.free -= 1
            if token == end or self.free <= 0 or END_OF_THOUGHT in text:
                for other in self.opening:
                    self._add(other)
                self._begin_orders()
            return
        self.node = self.node[token]
        self._follow()

    def reply(self, text: str) -> Reply:
        """Return what was written, with its text."""
        return Reply(
            self.prompt, self.tokens, self.numbers, self.at, self.allowed, self.logprobs, text
        )

    def _add(self, token: int) -> None:
        self.tokens.append(token)
        self.pending.append(token)

    def _begin_orders(self) -> None:
        self.node = self._next_slot()
        self._follow()

    def _next_slot(self) -> Trie | None:
        slots = self.question.slots
        if len(self.numbers) == len(slots):
            self.done = True
            return None
        slot = self.question.open_slot(slots[len(self.numbers)], self.numbers)
        return self.orders.trie(slot)

    def _follow(self) -> None:
        """Go on to the next choice, past ends of orders and tokens without an alternative."""
        while not self.done:
            if isinstance(self.node, int):
                self.numbers.append(self.node)
                self.node = self._next_slot()
            elif len(self.node) == 1 and self.skip:
                ((token, self.node),) = self.node.items()
                self._add(token)
            else:
                return


class LogProbabilities(NamedTuple):
    """Of every choice in some replies, one reply after the other; with gradients."""

    logprob: torch.Tensor  # (n,) of what was chosen, among what was allowed
    entropy: torch.Tensor  # (n,) of the choice
    reply: torch.Tensor  # (n,) int64, which of the replies


class LanguageModel:
    """A causal language model that writes orders.

    Args:
        network: of transformers; it stays in evaluation mode, since with dropout the probabilities
            learned from would not be those that were played with.
        tokenizer: of the same.
        settings: temperature and thinking are used.
        seed: of the draws.
        skip: whether tokens without an alternative are passed over at once; it changes no order.

    Raises:
        UserError: the tokenizer has no end of text.
    """

    def __init__(self, network, tokenizer, settings: LanguageSettings, seed: int = 0, skip=True):
        if tokenizer.eos_token_id is None:
            raise UserError(f"the tokenizer in {settings.model} has no token that ends a text")
        self.network, self.tokenizer, self.settings = network.eval(), tokenizer, settings
        self.generator = torch.Generator().manual_seed(seed % 2**63)
        self.skip = skip
        self.passes = 0  # through the network, while writing
        self.clock = Clock()  # of the stages of writing
        self._orders: dict[str, OrderTokens] = {}
        opening = f"\n{OPENING}\n"
        self._opening = tokenizer(opening, add_special_tokens=False)["input_ids"]

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.network.device

    def prompt_tokens(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt, in the model's chat form if it has one."""
        if self.tokenizer.chat_template:
            messages = [{"role": "user", "content": prompt}]
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
            return self.tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens = list(self.tokenizer(prompt)["input_ids"])
        while tokens and tokens[-1] == self.tokenizer.eos_token_id:
            tokens.pop()
        return tokens or [self.tokenizer.eos_token_id]

    # --- Writing ------------------------------------------------------------------------------

    @torch.no_grad()
    def replies(
        self, prompts: Sequence[str], questions: Sequence[Question], greedy: bool = False
    ) -> list[Reply]:
        """Write an order for every slot, each from its slot's legal ones.

        A batch of other prompts changes the last bits of the probabilities, and so now and then a
        draw: equal batches and seeds give equal replies.
        """
        thinking = self.settings.thinking
        drafts = [
            Draft(tokens, question, self._tokens(question), thinking, self._opening, self.skip)
            for tokens, question in zip(map(self.prompt_tokens, prompts), questions)
        ]
        for draft in drafts:
            self._check_length(draft)
        cache, mask = None, torch.zeros(len(drafts), 0, dtype=torch.long)
        while not all(draft.done for draft in drafts):
            with self.clock("read" if cache is None else "write"):
                logits, cache, mask = self._feed(drafts, cache, mask)
            with self.clock("choose"):
                self._choose([(d, row) for d, row in zip(drafts, logits) if not d.done], greedy)
        return [draft.reply(self.tokenizer.decode(draft.tokens)) for draft in drafts]

    def _feed(self, drafts: Sequence[Draft], cache, mask: torch.Tensor):
        """Show the network what is pending; return logits (B, V), cache and mask (B, seen).

        Rows with less to show are filled up on the left, and what fills them is masked for good: so
        the last column is the last token of every row.
        """
        width = max(1, max(len(draft.pending) for draft in drafts if not draft.done))
        tokens = np.full((len(drafts), width), self.tokenizer.eos_token_id)
        shown = np.zeros((len(drafts), width), np.int64)
        for row, draft in enumerate(drafts):
            if draft.done:  # nothing is asked of it any more
                continue
            count = len(draft.pending)
            tokens[row, width - count :] = draft.pending
            shown[row, width - count :] = 1
            draft.pending = []
        positions = mask.sum(1, keepdim=True) + torch.from_numpy(shown).cumsum(1) - 1
        mask = torch.cat([mask, torch.from_numpy(shown)], 1)
        found = self.network(
            input_ids=torch.from_numpy(tokens).to(self.device),
            attention_mask=mask.to(self.device),
            position_ids=positions.clamp(min=0).to(self.device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.passes += 1
        return found.logits[:, -1].float().cpu(), found.past_key_values, mask

    def _choose(self, rows: Sequence[tuple[Draft, torch.Tensor]], greedy: bool) -> None:
        """Let each draft go on with a token: the likeliest, or one that is drawn."""
        allowed = [draft.choices() for draft, _ in rows]
        logits = torch.stack([found for _, found in rows])
        logprobs, tokens = self._masked(logits, allowed)
        if greedy:
            chosen = logprobs.argmax(1)
        else:
            draws = torch.rand(len(rows), 1, generator=self.generator, dtype=torch.float64)
            shares = logprobs.double().exp().cumsum(1)
            chosen = (shares <= draws * shares[:, -1:]).sum(1)
            lengths = [logits.shape[1] if ids is None else len(ids) for ids in allowed]
            chosen = chosen.minimum(torch.tensor(lengths) - 1)
        for row, (draft, _) in enumerate(rows):
            token = int(tokens[row, chosen[row]])
            text = "" if draft.node is not None else self.tokenizer.decode([*draft.tokens, token])
            draft.take(token, float(logprobs[row, chosen[row]]), text, self.tokenizer.eos_token_id)

    def _masked(
        self, logits: torch.Tensor, allowed: Sequence[Sequence[int] | None]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities among the allowed tokens (n, K), -inf beyond, and these tokens.

        At the temperature of the settings; greedy play has that of 1.
        """
        size = logits.shape[1]
        lengths = np.array([size if ids is None else len(ids) for ids in allowed])
        tokens = np.zeros((len(allowed), lengths.max()), np.int64)
        for row, ids in enumerate(allowed):
            tokens[row, : lengths[row]] = np.arange(size) if ids is None else ids
        index = torch.from_numpy(tokens).to(logits.device)
        beyond = torch.from_numpy(np.arange(lengths.max()) >= lengths[:, None]).to(logits.device)
        found = logits.gather(1, index) / (self.settings.temperature or 1.0)
        # Weights that have blown up give NaN, and then all choices are as good.
        found = torch.nan_to_num(found, nan=0.0, posinf=1e30, neginf=-1e30)
        return found.masked_fill(beyond, -torch.inf).log_softmax(1), index

    def _tokens(self, question: Question) -> OrderTokens:
        vocabulary = question.game.vector_game.vocabulary
        if vocabulary.hash not in self._orders:
            self._orders[vocabulary.hash] = OrderTokens(self.tokenizer, vocabulary)
        return self._orders[vocabulary.hash]

    def _check_length(self, draft: Draft) -> None:
        """Raise UserError if a prompt and its longest reply do not fit into the model."""
        most = getattr(self.network.config, "max_position_embeddings", None)
        longest = sum(
            max(len(draft.orders.paths[n]) for n in slot.numbers) for slot in draft.question.slots
        )
        length = len(draft.prompt) + draft.free + len(draft.opening) + longest
        if most is not None and length > most:
            raise UserError(
                f"a prompt of {len(draft.prompt):,} tokens and a reply of up to "
                f"{length - len(draft.prompt):,} do not fit into the "
                f"model's {most:,}; the prompt 'minimal' is shorter"
            )

    # --- Learning -----------------------------------------------------------------------------

    def log_probabilities(self, replies: Sequence[Reply]) -> LogProbabilities:
        """Return the log-probabilities of choices in replies, as they were written but with
        gradients: in the same tries, at the same temperature; forced tokens are left out."""
        whole = [[*reply.prompt, *reply.tokens] for reply in replies]
        width = max(map(len, whole))
        tokens = np.full((len(whole), width), self.tokenizer.eos_token_id)
        mask = np.zeros((len(whole), width), np.int64)
        for row, found in enumerate(whole):
            tokens[row, width - len(found) :] = found
            mask[row, width - len(found) :] = 1
        keep = 1 + max(len(reply.tokens) for reply in replies)
        logits = self.network(
            input_ids=torch.from_numpy(tokens).to(self.device),
            attention_mask=torch.from_numpy(mask).to(self.device),
            position_ids=torch.from_numpy((mask.cumsum(1) - 1).clip(0)).to(self.device),
            use_cache=False,
            logits_to_keep=keep,
        ).logits
        places = [
            (row, keep - len(reply.tokens) + at - 1, reply.tokens[at], allowed)
            for row, reply in enumerate(replies)
            for at, allowed in zip(reply.at, reply.allowed)
        ]
        rows = torch.tensor([place[0] for place in places], dtype=torch.long, device=self.device)
        if not places:
            nothing = logits.sum() * torch.zeros(0, device=self.device)
            return LogProbabilities(nothing, nothing, rows)
        columns = torch.tensor([place[1] for place in places], device=self.device)
        picked = logits[rows, columns].float()
        logprobs, index = self._masked(picked, [place[3] for place in places])
        taken = torch.tensor([place[2] for place in places], device=self.device)
        chosen = (index == taken[:, None]) & logprobs.isfinite()
        first = chosen.to(torch.int8).argmax(1, keepdim=True)
        entropy = -(logprobs.exp() * logprobs.clamp(min=-1e4)).sum(1)
        return LogProbabilities(logprobs.gather(1, first)[:, 0], entropy, rows)

    # --- Hints --------------------------------------------------------------------------------

    @torch.no_grad()
    def order_shares(self, prompt: str, question: Question) -> list[np.ndarray]:
        """Return, for each slot, the probability of each of its legal orders as a whole.

        What the model would write if nothing constrained it, given that it writes a legal order:
        the first tokens of an order know how much lies behind them, other than in `replies`. Each
        slot comes after the likeliest orders of those before; in winter what these took has 0.
        """
        orders, given, shares = self._tokens(question), [], []
        last, cache, seen = self._show(self.prompt_tokens(prompt), None, 0)
        for slot in question.slots:
            legal = question.open_slot(slot, given)
            paths = [orders.paths[number] for number in legal.numbers]
            scores = np.concatenate(
                [
                    self._scores(paths[first : first + SCORED], last, cache, seen)
                    for first in range(0, len(paths), SCORED)
                ]
            )
            found = np.exp(scores - scores.max())
            share = dict(zip(legal.numbers, found / found.sum()))
            shares.append(np.array([share.get(number, 0.0) for number in slot.numbers]))
            best = int(scores.argmax())
            given.append(legal.numbers[best])
            if len(given) < len(question.slots):
                last, cache, seen = self._show(paths[best], cache, seen)
        return shares

    def _show(self, tokens: Sequence[int], cache, seen: int):
        """Show the network one more text; return log-probabilities (V,), cache, tokens seen."""
        found = self.network(
            input_ids=torch.tensor([tokens], device=self.device),
            position_ids=torch.arange(seen, seen + len(tokens), device=self.device)[None],
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        last = found.logits[0, -1].float().log_softmax(0)
        return last, found.past_key_values, seen + len(tokens)

    def _scores(
        self, paths: Sequence[Sequence[int]], last: torch.Tensor, cache, seen: int
    ) -> np.ndarray:
        """Return the log-probability of each path after a text, all in one batch."""
        width = max(1, max(map(len, paths)) - 1)
        tokens = np.full((len(paths), width), self.tokenizer.eos_token_id)
        mask = np.zeros((len(paths), width), np.int64)
        for row, path in enumerate(paths):
            tokens[row, : len(path) - 1] = path[:-1]
            mask[row, : len(path) - 1] = 1
        cache = copy.deepcopy(cache)
        cache.batch_repeat_interleave(len(paths))
        before = torch.ones(len(paths), seen, dtype=torch.long)
        logits = self.network(
            input_ids=torch.from_numpy(tokens).to(self.device),
            attention_mask=torch.cat([before, torch.from_numpy(mask)], 1).to(self.device),
            position_ids=torch.arange(seen, seen + width, device=self.device)[None].expand(
                len(paths), -1
            ),
            past_key_values=cache,
            use_cache=True,
        ).logits
        after = logits.float().log_softmax(2)
        scores = [
            float(last[path[0]])
            + sum(float(after[row, i, token]) for i, token in enumerate(path[1:]))
            for row, path in enumerate(paths)
        ]
        return np.nan_to_num(np.array(scores), nan=0.0, neginf=-1e30)


def load_language_model(
    settings: LanguageSettings, device: str = "cpu", seed: int = 0
) -> LanguageModel:
    """Return the model in a folder, or in a .gguf file; nothing is taken from the network.

    Raises:
        UserError: there is none, or it cannot be loaded.
    """
    path = Path(settings.model)
    where = {"local_files_only": True}
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UserError(f"there is no model file {path}")
        folder, where = path.parent, where | {"gguf_file": path.name}
    else:
        folder = path
        if not path.is_dir():
            raise UserError(f"there is no folder {path} with a model")
        if not (path / "config.json").is_file():
            raise UserError(f"the folder {path} has no model: there is no config.json in it")
    kind = settings.dtype or ("float32" if device == "cpu" else "auto")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        network = AutoModelForCausalLM.from_pretrained(folder, dtype=kind, **where)
        network = network.to(device)
    except Exception as error:  # transformers raises nearly anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"the model in {path} cannot be loaded: {reason}") from None
    return LanguageModel(network, tokenizer, settings, seed)


# --- Training -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Args:
    """Settings of a training run."""

    resume: str | None = None
    """folder of a run to go on with; of the other settings only --steps may then be given"""

    # The model
    model: str = "tiny"
    """folder or .gguf file of a model; tiny: a small one with random weights"""
    lora: Annotated[int, Between(0, 4096)] = 0
    """rank of the small matrices that are learned beside the weights (LoRA); 0: all weights are"""
    device: str = "cpu"
    """where the model computes, as PyTorch names it"""
    prompt: Literal["minimal", "windows", "list"] = "minimal"
    """form of the prompts"""
    history: Annotated[int, Between(0, 20)] = 0
    """past movement phases whose orders prompts tell; not with minimal ones"""
    temperature: Annotated[float, Between(0.01, 10)] = 1.0
    """of the draws; what is learned are the probabilities at this temperature"""
    batch: Positive = 128
    """decisions that are written at once"""

    # The games
    map: str = "small"
    """map to play on"""
    seats: str = "each"
    """power that the model plays; each: one a step, in turn; all: the model plays all of them"""
    opponent: str = "random"
    """player of all other powers"""
    groups: Positive = 8
    """positions of a step"""
    copies: Annotated[int, Between(2, 10_000)] = 16
    """times that each position is played on"""
    years: Positive = 1
    """springs until a copy is scored"""
    warm_up: Natural = 0
    """most phases of random orders before a position; each has 0 up to so many"""
    score: Literal["centers", "share"] = "centers"
    """what is learned: own centers, or the share of all centers (1 for a solo)"""

    # Learning
    steps: Annotated[int, Between(1, 10**9)] = 60
    """times that groups are played and learned from"""
    credit: Literal["first", "all"] = "all"
    """decisions of a copy that are learned: the first, which alone is in the group's position, or
    all of them"""
    min_spread: NonNegative = 0.01
    """groups whose scores have a smaller standard deviation are left out"""
    epochs: Positive = 2
    """passes over a step's decisions"""
    batch_size: Positive = 64
    """decisions of a minibatch"""
    learning_rate: NonNegative = 1e-3
    """step size of Adam; a real model wants about 1e-5"""
    clip_low: Annotated[float, Between(0, 1)] = 0.2
    """how far below 1 the ratio of probabilities still counts"""
    clip_high: NonNegative = 0.28
    """how far above 1"""
    kl_coef: NonNegative = 0.0
    """weight of the distance (KL) from the model at the start"""
    kl_warm_up: Natural = 20
    """steps in which that weight grows from 0"""
    max_grad_norm: NonNegative = 1.0
    """clipping norm of the gradient"""

    # Evaluation, files
    eval_bot: str = "random"
    """fixed player to evaluate against, as every power"""
    eval_games: Positive = 20
    """games of an evaluation"""
    eval_interval: Natural = 20
    """steps between evaluations; 0: none"""
    save_interval: Positive = 10
    """steps between checkpoints"""
    seed: Annotated[int, Between(0, 2**62)] = 1
    """seed of everything random"""
    threads: Annotated[int, Between(1, 1024)] = 1
    """threads of the games and of the model"""
    exp_name: str = "grpo"
    """name of the experiment, part of the run folder's"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""


class Sample(NamedTuple):
    """A reply to learn from."""

    reply: Reply
    advantage: float
    row: int  # of the game that it was written in


def make_tiny_model(game_map: Map, seed: int):
    """Return a random network and a tokenizer of the map's orders; both are small."""
    games = VectorGame(game_map, 1, threads=1, auto_reset=False)
    prompts = [prompt_text(q, "minimal") for q in questions_of(games, games.decisions(), {})]
    orders = vocabulary(game_map).texts
    texts = ["\n".join(orders[i : i + 3]) + "\n" for i in range(0, len(orders), 3)]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<end>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator([*texts, *(len(texts) * prompts)[: len(texts)]], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<end>")
    torch.manual_seed(seed % 2**63)
    shape = {"n_positions": 4096, "n_embd": 64, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape, **ends)), tokenizer


def make_model(args: Args, game_map: Map, seed: int = 0) -> LanguageModel:
    """Return the model of a run as it is before the first step; its parts to learn want gradients.

    Raises:
        UserError: it cannot be had, or --lora needs a package.
    """
    settings = LanguageSettings(
        model=args.model,
        constraint="trie",
        prompt=args.prompt,
        history=args.history,
        temperature=args.temperature,
        batch=args.batch,
    )
    if args.model == "tiny":
        network, tokenizer = make_tiny_model(game_map, args.seed)
        model = LanguageModel(network.to(args.device), tokenizer, settings, seed)
    else:
        model = load_language_model(settings, args.device, seed)
    if args.lora:
        if importlib.util.find_spec("peft") is None:
            raise UserError("--lora needs the package peft: pip install '.[llm]'")
        import peft

        torch.manual_seed(args.seed % 2**63)  # of the new matrices
        config = peft.LoraConfig(
            r=args.lora,
            lora_alpha=2 * args.lora,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        model.network = peft.get_peft_model(model.network, config).eval()
    return model


def learned_weights(network: nn.Module) -> dict[str, nn.Parameter]:
    """Return what is learned, by name."""
    return {name: part for name, part in network.named_parameters() if part.requires_grad}


class Reference:
    """The model as it was at the start, for the distance from it."""

    def __init__(self, model: LanguageModel, lora: bool):
        self._model = model
        self._lora = lora
        if not lora:
            self._model = copy.copy(model)
            self._model.network = copy.deepcopy(model.network)

    @torch.no_grad()
    def log_probabilities(self, replies: Sequence[Reply]) -> torch.Tensor:
        """Return the log-probability (n,) of every choice, see LanguageModel."""
        off = self._model.network.disable_adapter() if self._lora else contextlib.nullcontext()
        with off:
            return self._model.log_probabilities(replies).logprob


class Learner(LocalPlayer):
    """The model as it plays while it is trained; the time it takes goes to the model's clock."""

    def act(self, games, decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32."""
        with self.model.clock("player"):
            return super().act(games, decisions)


def own_centers(games: VectorGame, rows: np.ndarray) -> np.ndarray:
    """Return the centers of each power: (rows, P) float32."""
    return games.centers()[rows].astype(np.float32)


def learning_powers(args: Args, game_map: Map, step: int) -> list[int]:
    """Return the powers that the model plays in a step, by number."""
    powers = list(game_map.powers)
    if args.seats == "all":
        return list(range(len(powers)))
    return [step % len(powers) if args.seats == "each" else powers.index(args.seats)]


def seeds_of(args: Args, step: int) -> list[int]:
    """Return the seeds of a step: of games, positions, draws, minibatches and evaluation.

    All that is random in a step comes from them, so a resumed run needs no generator's state.
    """
    return np.random.SeedSequence([args.seed, step]).generate_state(5, np.uint64).tolist()


def play_groups(
    args: Args, player: LocalPlayer, opponent: Player, game_map: Map, step: int
) -> tuple[list[Sample], dict[str, float]]:
    """Play the groups of a step; return what there is to learn, and figures.

    Replies of groups whose scores have no spread are left out.
    """
    seed, seed_of_positions, seed_of_draws = seeds_of(args, step)[:3]
    rows = args.groups * (1 + args.copies)
    games = VectorGame(game_map, rows, seed, threads=args.threads, auto_reset=False)
    random_beginnings(games, args.warm_up, seed_of_positions)
    for number, one in enumerate((player, opponent)):
        if isinstance(one, SamplingPlayer):
            one.generator.manual_seed(seed_of_draws // 2 + number)
    mine = learning_powers(args, game_map, step)
    seats = np.ones(games.num_powers, np.int64)
    seats[mine] = 0
    player.trace, player.recording = [], True
    result = fork(
        games,
        np.arange(args.groups),
        args.copies,
        years=args.years,
        players=[player, opponent],
        seats=seats,
        score=own_centers if args.score == "centers" else center_share,
    )
    player.recording = False
    wide = result.score.std(1) >= max(args.min_spread, 1e-6)  # (groups, P)
    group_of = destinations(games, args.groups, args.copies)
    first = int(group_of[0, 0])
    names, seen, samples = list(game_map.powers), set(), []
    for row, _, name, reply in player.trace:
        power, (group, copied) = names.index(name), divmod(row - first, args.copies)
        early = (row, power) not in seen
        seen.add((row, power))
        if reply.at and wide[group, power] and (early or args.credit == "all"):
            samples.append(Sample(reply, float(result.advantage[group, copied, power]), row))
    replies = [entry[-1] for entry in player.trace]
    figures = {
        "charts/episodic_return": float(result.score[:, :, mine].mean()),
        "charts/groups_without_spread": float(1 - wide[:, mine].mean()),
        "charts/reply_tokens": float(np.mean([len(reply.tokens) for reply in replies] or 0)),
        "charts/choices": float(np.mean([len(reply.at) for reply in replies] or 0)),
        "charts/decisions": len(replies),
    }
    figures |= {f"charts/return_{names[p]}": float(result.score[:, :, p].mean()) for p in mine}
    return samples, figures


def learn(
    args: Args,
    model: LanguageModel,
    reference: Reference | None,
    optimizer: torch.optim.Optimizer,
    samples: Sequence[Sample],
    step: int,
) -> dict[str, float]:
    """Learn from a step's replies in epochs of minibatches; return mean figures of them.

    The loss of a choice is -min(ratio * A, clip(ratio) * A) + kl_coef * KL, and that of a minibatch
    the mean over its choices, however many a reply has.
    """
    if not samples:
        return {}
    rng = np.random.default_rng(seeds_of(args, step)[3])
    weight = args.kl_coef * min(1.0, step / max(1, args.kl_warm_up))
    weights = list(learned_weights(model.network).values())
    figures = []
    for _ in range(args.epochs):
        order = rng.permutation(len(samples))
        for picked in np.array_split(order, -(-len(samples) // args.batch_size)):
            replies = [samples[i].reply for i in picked]
            found = model.log_probabilities(replies)
            before = torch.tensor([p for reply in replies for p in reply.logprobs])
            advantage = torch.tensor([samples[i].advantage for i in picked])
            advantage = advantage.to(found.reply.device)[found.reply]
            change = found.logprob - before.to(found.logprob)
            ratio = change.exp()
            clipped = ratio.clamp(1 - args.clip_low, 1 + args.clip_high)
            policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            distance = torch.zeros_like(change)
            if reference is not None:
                apart = reference.log_probabilities(replies) - found.logprob
                distance = apart.exp() - 1 - apart
            optimizer.zero_grad()
            (policy_loss + weight * distance.mean()).backward()
            norm = nn.utils.clip_grad_norm_(weights, args.max_grad_norm)
            if not bool(norm.isfinite()):
                raise UserError(
                    f"the gradient of step {step + 1} is no number; take a smaller --learning-rate"
                )
            optimizer.step()
            with torch.no_grad():
                figures.append(
                    {
                        "policy_loss": policy_loss.item(),
                        "entropy": found.entropy.mean().item(),
                        "approx_kl": (ratio - 1 - change).mean().item(),
                        "clipfrac": (ratio != clipped).float().mean().item(),
                        "largest_ratio": ratio.max().item(),
                        "reference_kl": distance.mean().item(),
                    }
                )
    names = [name for name in figures[0] if reference is not None or name != "reference_kl"]
    return {f"losses/{name}": float(np.mean([found[name] for found in figures])) for name in names}


class Run:
    """A run under way.

    Attributes:
        step: steps done.
        decisions: that the model has made in them.
    """

    def __init__(self, args: Args, game_map: Map):
        self.args, self.game_map = args, game_map
        torch.set_num_threads(args.threads)
        self.model = make_model(args, game_map)
        self.reference = Reference(self.model, args.lora > 0) if args.kl_coef else None
        self.player = Learner("model", self.model.settings, self.model)
        self.opponent = load_player(args.opponent, game_map=game_map)
        self.optimizer = torch.optim.Adam(
            list(learned_weights(self.model.network).values()), lr=args.learning_rate
        )
        self.step = self.decisions = 0

    def advance(self) -> dict[str, float]:
        """Do one step; return its figures."""
        began, clock = time.perf_counter(), Clock()
        self.model.clock = clock
        with clock("rollout"):
            samples, figures = play_groups(
                self.args, self.player, self.opponent, self.game_map, self.step
            )
        with clock("update"):
            figures |= learn(
                self.args, self.model, self.reference, self.optimizer, samples, self.step
            )
        self.step += 1
        self.decisions += int(figures["charts/decisions"])
        interval = self.args.eval_interval
        if interval and (self.step % interval == 0 or self.step == self.args.steps):
            with clock("evaluate"):
                self.model.clock = Clock()
                figures |= self.evaluate()
        seconds = time.perf_counter() - began
        figures["charts/SPS"] = figures["charts/decisions"] / seconds
        return figures | {f"timing/{name}": x for name, x in waterfall(clock, seconds).items()}

    def evaluate(self) -> dict[str, float]:
        """Return figures of games against the fixed bot."""
        args = self.args
        seed = seeds_of(args, self.step)[4] // 2
        self.model.generator.manual_seed(seed)
        bot = load_player(args.eval_bot, game_map=self.game_map)
        result = evaluate_player(
            self.game_map, self.player, bot, args.eval_games, seed=seed, threads=args.threads
        ).result()
        names = "win", "solo", "draw", "loss", "centers"
        found = {name: result["overall"][name]["value"] for name in names}
        return {f"eval/{args.eval_bot}/{name}": value for name, value in found.items()}

    def save(self, folder: RunFolder) -> None:
        """Write a checkpoint; the run can go on from it, and it can be played."""
        content = io.BytesIO()
        weights = {n: p.detach().cpu() for n, p in learned_weights(self.model.network).items()}
        args = asdict(self.args)
        whole = checkpoints.policy_dict(__file__, args, self.game_map, weights, self.decisions)
        whole |= {"step": self.step, "files": folder.sizes()}
        whole |= {"tokenizer": tokenizer_hash(self.model)}
        torch.save(whole | {"optimizer": self.optimizer.state_dict()}, content)
        folder.save_checkpoint(self.step, content.getvalue())

    def load(self, saved: dict) -> None:
        """Take up a checkpoint."""
        take_weights(self.model, saved)
        checkpoints.check_moments(saved["optimizer"], self.optimizer)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step, self.decisions = saved["step"], saved["global_step"]
        if type(self.step) is not int or not 0 <= self.step < 2**31:
            raise ValueError("'step' cannot be")

    def export(self, folder: Path) -> None:
        """Write the model and its tokenizer as transformers does, LoRA's matrices worked in."""
        network = self.model.network
        if self.args.lora:
            network = network.merge_and_unload()
        network.save_pretrained(folder)
        self.model.tokenizer.save_pretrained(folder)


def waterfall(clock: Clock, seconds: float) -> dict[str, float]:
    """Return where the time of a step went; the parts add up to all of it.

    `prompt`: positions to texts, texts to tokens, tries; `read`: the model's pass over prompts;
    `write`: its passes over replies; `choose`: masks and draws; `engine`: games and opponents;
    then `update`, `evaluate` and `other`.
    """
    found = {name: clock.seconds.get(name, 0.0) for name in ("read", "write", "choose")}
    player, rollout = clock.seconds.get("player", 0.0), clock.seconds["rollout"]
    found["prompt"] = player - sum(found.values())
    found |= {"engine": rollout - player, "update": clock.seconds["update"]}
    found["evaluate"] = clock.seconds.get("evaluate", 0.0)
    return found | {"other": seconds - sum(found.values())}


def tokenizer_hash(model: LanguageModel) -> str:
    """Return what tells a model's tokenizer from others."""
    text = model.tokenizer.backend_tokenizer.to_str()
    return hashlib.sha256(text.encode()).hexdigest()


def take_weights(model: LanguageModel, saved: dict) -> None:
    """Put a checkpoint's weights into a model; an error unless they are of such a one."""
    if saved["tokenizer"] != tokenizer_hash(model):
        raise UserError("the checkpoint was made with another tokenizer")
    own = learned_weights(model.network)
    checkpoints.check_weights(saved["model"], own)
    with torch.no_grad():
        for name, part in own.items():
            part.copy_(saved["model"][name])


def read_checkpoint(path: str | Path) -> dict:
    """Return a checkpoint's dictionary; UserError if it is none."""
    return checkpoints.read_checkpoint(
        path, lambda file: torch.load(file, map_location="cpu", weights_only=True)
    )


def checkpoint_header(path: str | Path) -> dict:
    """Return what a checkpoint says of itself."""
    return checkpoints.header(read_checkpoint(path))


def load_policy_player(
    path: str | Path, greedy: bool = False, seed: int = 0, device: str = "cpu"
) -> LocalPlayer:
    """Return the model of a checkpoint as a player; UserError if it cannot be played.

    What the run started from must be where it was.
    """
    saved = read_checkpoint(path)
    with checkpoints.fitting(path, __file__):
        args = args_from_dictionary(Args, saved["args"], f"{path}, args")
        game_map = checkpoints.map_of(saved, path)
        model = make_model(replace(args, device=device), game_map, seed)
        take_weights(model, saved)
    model.network.requires_grad_(False)
    return LocalPlayer(str(path), model.settings, model, greedy)


def check_args(args: Args, game_map: Map) -> None:
    """Raise UserError for settings that cannot be."""
    names = ("each", "all", *game_map.powers)
    if args.seats not in names:
        raise UserError(
            f"--seats {quoted(args.seats, 40)} is none of {', '.join(names)}"
            f"{did_you_mean(args.seats, names)}"
        )
    try:
        torch.zeros(1, device=args.device)
    except (RuntimeError, AssertionError):
        raise UserError(f"--device {quoted(args.device, 40)} cannot be used here") from None
    if args.history and args.prompt == "minimal":
        raise UserError("--history has no effect: minimal prompts, the default, tell no past")
    for flag, name in (("opponent", args.opponent), ("eval-bot", args.eval_bot)):
        if isinstance(parse_player(name), VoiceSpec):
            raise UserError(f"--{flag} {quoted(name, 60)} would be silent: name the player alone")
    if args.eval_interval:
        load_player(args.eval_bot, game_map=game_map)


def start_run(args: Args) -> tuple[Run, RunFolder]:
    """Begin a run in a new folder."""
    game_map = load_map(args.map)
    check_args(args, game_map)
    run = Run(args, game_map)
    given = asdict(args)
    folder = RunFolder.create(
        args.runs_folder, game_map.name, args.exp_name, args.seed, given, __file__
    )
    return run, folder


def resume_run(args: Args, given: frozenset[str]) -> tuple[Run, RunFolder]:
    """Go on with the run in the folder --resume."""
    other = given - {"resume", "steps"}
    if other:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(other))
        raise UserError(f"{flags} cannot be changed on resume; only --steps can")
    folder = RunFolder.open(str(args.resume))
    try:
        saved = read_checkpoint(folder.checkpoint)
        source = str(folder.path / "args.json")
        kept = args_from_dictionary(Args, folder.load_args(), source)
        if "steps" in given:
            kept = replace(kept, steps=args.steps)
        with checkpoints.fitting(folder.checkpoint, __file__):
            game_map = checkpoints.map_of(saved, folder.checkpoint)
            check_args(kept, game_map)
            run = Run(kept, game_map)
            run.load(saved)
            folder.cut_back(dict(saved["files"]))
        if "steps" in given:
            folder.save_args(asdict(kept))
    except BaseException:
        folder.close()
        raise
    return run, folder


def train(argv: list[str]) -> None:
    """Train as the command line says."""
    args, given, _ = parse_args(Args, argv)
    run, folder = resume_run(args, given) if args.resume else start_run(args)
    args = run.args
    print(f"run folder: {folder.path}", flush=True)
    transformers.utils.logging.disable_progress_bar()
    with (
        contextlib.closing(folder),
        StopSignals() as stop,
        contextlib.closing(SummaryWriter(str(folder.path))) as writer,
        Progress(args.steps, run.step, unit="steps") as progress,
    ):
        while run.step < args.steps and not stop.received:
            figures = run.advance()
            for name, value in figures.items():
                writer.add_scalar(name, value, run.step)
            folder.log(run.step, figures)
            shown = {"score": figures["charts/episodic_return"]}
            if f"eval/{args.eval_bot}/win" in figures:
                shown[f"win_{args.eval_bot}"] = figures[f"eval/{args.eval_bot}/win"]
            progress.update(run.step, **shown)
            if run.step % args.save_interval == 0 or run.step == args.steps or stop.received:
                writer.flush()
                run.save(folder)
        if run.step < args.steps:
            progress.message(f"stopped; go on with --resume {folder.path}")
            return
        run.export(folder.path / "model")
        progress.close(
            {
                "run folder": str(folder.path),
                "steps": run.step,
                "decisions": run.decisions,
                "model": "in the run folder's model/",
            }
        )


def main(argv: list[str] | None = None) -> int:
    """Train; return the exit status."""
    try:
        train(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted; the last checkpoint is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
