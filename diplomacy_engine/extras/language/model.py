"""Local language models: they write only legal orders, with any tokenizer and weights. Every legal
order is a path of tokens, its line end included, in a trie of its slot, and the model chooses only
where the trie branches. This file alone needs transformers."""

import itertools
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..._suggest import install
from ...errors import UserError

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models come from folders, never from the network

try:
    import transformers
except ImportError:
    raise UserError(
        f"a language model that runs here needs more packages: {install('llm')}"
    ) from None
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from ...clock import Clock
from ...constants import NONE
from ...games.vector_game import VectorGame
from ...rules.map import Map
from ...rules.vocabulary import vocabulary
from .local import Reply
from .prompt import OPENING, prompt_text
from .questions import Question, TalkQuestion, questions_of
from .settings import LanguageSettings
from .thoughts import thought_end

transformers.utils.logging.disable_progress_bar()  # ours stands on that line

LINE_END = "\n"
_TAIL = 40  # letters at the end of a prompt in which a chat template begins a thought
KEPT_TRIES = 20_000


class Trie(dict[int, "Trie"]):
    """Token -> what may follow; where an order ends, its number."""

    number = NONE


def clash(paths: Sequence[Sequence[int]]) -> bool:
    """Return whether any path begins with another, or is the same."""
    pairs = itertools.pairwise(sorted(map(tuple, paths)))
    return any(longer[: len(path)] == path for path, longer in pairs)


class OrderTokens:
    """The tokens of every order of a map, or other line that may be written, with what ends each.

    Orders and line ends become tokens apart. An end of text takes the line end's place where a
    tokenizer drops it or merges it with an order: 1,450 of the standard map's 20,009 orders begin
    with another order, and only what follows tells them apart.
    """

    def __init__(self, tokenizer, texts: Sequence[str]):
        texts = list(texts)
        orders = tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
        end = tokenizer(LINE_END, add_special_tokens=False)["input_ids"]
        self.paths = [[*order, *end] for order in orders]
        if not end or clash(self.paths):
            self.paths = [[*order, tokenizer.eos_token_id] for order in orders]
        self.trie = lru_cache(KEPT_TRIES)(self._make_trie)

    def _make_trie(self, *numbers: int) -> Trie:
        """Return a trie of these orders, of which none begins with another."""
        root = Trie()
        for number in numbers:
            node = root
            for token in self.paths[number]:
                node = node.setdefault(token, Trie())
            node.number = number
        return root


@dataclass
class Draft:
    """A reply while it is written; `done` once all slots have an order. `free` tokens of text
    come first; `opening` gives the tokens that end such a text. The model has not seen the
    `pending` ones yet."""

    prompt: list[int]
    question: Question | TalkQuestion
    orders: OrderTokens
    free: int  # tokens of free text that are left
    opening: Callable[[str], Sequence[int]]
    rng: np.random.Generator
    done: bool = False
    node: Trie | None = None  # None: free text

    def __post_init__(self) -> None:
        self.reply = Reply(self.prompt, [], [], [], [], [], "")  # without its text
        self.pending = list(self.prompt)
        if not self.free:
            self._begin_orders()

    def choices(self) -> list[int] | None:
        """Return the tokens that may come next; None: any."""
        return None if self.node is None else list(self.node)

    def take(self, token: int, logprob: float, text: str = "", end: int | None = None) -> None:
        """Go on with a token that was chosen. `text` is free text with it, if it is that; `end` is
        the token that ends texts."""
        self.reply.at.append(len(self.reply.tokens))
        self.reply.allowed.append(self.choices())
        self.reply.logprobs.append(logprob)
        self._add(token)
        if self.node is None:
            self.free -= 1
            one_line = isinstance(self.question, TalkQuestion) and self.question.one_line
            line = one_line and not self.question.slots and LINE_END in text.lstrip()
            thought = bool(self.question.slots) and thought_end(text) is None
            if line or token == end or self.free <= 0 or thought:
                for other in self.opening(text) if self.question.slots else ():
                    self._add(other)
                self._begin_orders()
            return
        self.node = self.node[token]
        self._follow()

    def _add(self, token: int) -> None:
        self.reply.tokens.append(token)
        self.pending.append(token)

    def _begin_orders(self) -> None:
        self.node = self._next_slot()
        self._follow()

    def _next_slot(self) -> Trie | None:
        slots, numbers = self.question.slots, self.reply.numbers
        if len(numbers) == len(slots):
            self.done = True
            return None
        return self.orders.trie(*self.question.open_slot(slots[len(numbers)], numbers).numbers)

    def _follow(self) -> None:
        while self.node is not None:
            if self.node.number != NONE:
                self.reply.numbers.append(self.node.number)
                self.node = self._next_slot()
            elif len(self.node) == 1:
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
    """A causal language model that writes orders. The network stays in evaluation mode: with
    dropout the probabilities learned from would not be those that were played with."""

    def __init__(self, network, tokenizer, settings: LanguageSettings):
        self.network, self.tokenizer, self.settings = network.eval(), tokenizer, settings
        self.passes = 0  # through the network, while writing
        self.clock = Clock()  # of the stages of writing
        self._orders: dict[str, OrderTokens] = {}

    @property
    def device(self) -> torch.device:
        return self.network.device

    def prompt_text(self, prompt: str, thinking: bool = False) -> str:
        """Return a prompt in the model's chat template, the empty text if it has none. A thought
        that the template begins is ended, unless the model shall think."""
        if not self.tokenizer.chat_template:
            return ""
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=thinking,
        )
        end = thought_end(text[-_TAIL:])
        return f"{text}{end}\n\n" if end and not thinking else text

    def prompt_tokens(self, prompt: str, thinking: bool = False) -> list[int]:
        if text := self.prompt_text(prompt, thinking):
            return self._tokens_of(text)
        tokens = list(self.tokenizer(prompt)["input_ids"])
        while tokens and tokens[-1] == self.tokenizer.eos_token_id:
            tokens.pop()
        return tokens or [self.tokenizer.eos_token_id]

    def text_of(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens)

    def _tokens_of(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def _thinks(self, question: Question | TalkQuestion) -> bool:
        return self.settings.thinking > 0 and not getattr(question, "one_line", False)

    def _opening(self, prompt: str) -> Callable[[str], list[int]]:
        """Return what gives the tokens that end free text after a prompt: the end of a thought that
        is still open, and the line that begins the orders."""
        begun = self.prompt_text(prompt, True)[-_TAIL:]
        return lambda text: self._tokens_of(f"{thought_end(begun + text) or ''}\n{OPENING}\n")

    # --- Writing ------------------------------------------------------------------------------

    @torch.no_grad()
    def replies(
        self,
        prompts: Sequence[str],
        questions: Sequence[Question | TalkQuestion],
        greedy: bool = False,
        free: int | None = None,
    ) -> list[Reply]:
        """Write a line for every slot, after `free` tokens of any text (None: as the settings say).
        What is drawn depends on a question's seed and prompt alone; but a batch of other prompts
        changes the last bits of the probabilities, and so now and then a draw."""
        thinking = self.settings.thinking if free is None else free
        drafts = [
            Draft(
                self.prompt_tokens(prompt, self._thinks(question)),
                question,
                self._tokens(question),
                thinking,
                self._opening(prompt),
                np.random.default_rng([question.seed, zlib.crc32(prompt.encode())]),
            )
            for prompt, question in zip(prompts, questions)
        ]
        for draft in drafts:
            self._check_length(draft)
        cache, mask = None, torch.zeros(len(drafts), 0, dtype=torch.long)
        while not all(draft.done for draft in drafts):
            with self.clock("read" if cache is None else "write"):
                logits, cache, mask = self._feed(drafts, cache, mask)
            with self.clock("choose"):
                self._choose([(d, row) for d, row in zip(drafts, logits) if not d.done], greedy)
        return [draft.reply._replace(text=self._text(draft)) for draft in drafts]

    def _text(self, draft: Draft) -> str:
        # Where there are no lines that it may have to end, the end of text is no part of it.
        end = None if draft.question.slots else self.tokenizer.eos_token_id
        return self.text_of([token for token in draft.reply.tokens if token != end])

    def _feed(self, drafts: Sequence[Draft], cache, mask: torch.Tensor):
        """Show the network what is pending; return logits (B, V), cache and mask (B, seen). Rows
        with less to show are filled up on the left, and what fills them is masked for good: so the
        last column is the last token of every row."""
        # Of a draft that is done nothing is asked any more.
        tokens, shown = self._padded([[] if draft.done else draft.pending for draft in drafts])
        for draft in drafts:
            draft.pending = []
        positions = mask.sum(1, keepdim=True) + shown.cumsum(1) - 1
        mask = torch.cat([mask, shown], 1)
        output = self._run(tokens, mask, positions, cache, logits_to_keep=1, use_cache=True)
        self.passes += 1
        return output.logits[:, -1].float().cpu(), output.past_key_values, mask

    def _run(self, tokens: torch.Tensor, mask: torch.Tensor, positions, cache, **how) -> Any:
        """Return what the network says of tokens (B, T), each at its position; mask (B, seen + T).
        Of `how`: `logits_to_keep`, of how many last tokens there shall be logits; whether to
        `use_cache`."""
        return self.network(
            input_ids=tokens.to(self.device),
            attention_mask=mask.to(self.device),
            position_ids=positions.clamp(min=0).to(self.device),
            past_key_values=cache,
            **how,
        )

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows of tokens (B, T), filled up on the left, and a mask (B, T) of them."""
        width = max(1, max(map(len, rows)))
        tokens = torch.full((len(rows), width), self.tokenizer.eos_token_id)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for row, ids in enumerate(rows):
            first = width - len(ids)
            tokens[row, first:] = torch.tensor(ids, dtype=torch.long)
            mask[row, first:] = 1
        return tokens, mask

    def _choose(self, rows: Sequence[tuple[Draft, torch.Tensor]], greedy: bool) -> None:
        allowed = [draft.choices() for draft, _ in rows]
        logits = torch.stack([row_logits for _, row_logits in rows])
        logprobs, tokens = self._masked(logits, allowed)
        if greedy:
            chosen = logprobs.argmax(1)
        else:
            draws = torch.tensor([[draft.rng.random()] for draft, _ in rows], dtype=torch.float64)
            shares = logprobs.double().exp().cumsum(1)
            chosen = (shares <= draws * shares[:, -1:]).sum(1)
            lengths = [logits.shape[1] if ids is None else len(ids) for ids in allowed]
            chosen = chosen.minimum(torch.tensor(lengths) - 1)
        for row, (draft, _) in enumerate(rows):
            token = int(tokens[row, chosen[row]])
            text = "" if draft.node is not None else self.text_of([*draft.reply.tokens, token])
            draft.take(token, float(logprobs[row, chosen[row]]), text, self.tokenizer.eos_token_id)

    def _masked(
        self, logits: torch.Tensor, allowed: Sequence[Sequence[int] | None]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probabilities among the allowed tokens (n, K), -inf beyond, and these tokens.
        At the temperature of the settings; greedy play has that of 1."""
        size = logits.shape[1]
        lengths = np.array([size if ids is None else len(ids) for ids in allowed])
        tokens = np.zeros((len(allowed), lengths.max()), np.int64)
        for row, ids in enumerate(allowed):
            tokens[row, : lengths[row]] = np.arange(size) if ids is None else ids
        index = torch.from_numpy(tokens).to(logits.device)
        beyond = torch.from_numpy(np.arange(lengths.max()) >= lengths[:, None]).to(logits.device)
        scaled = logits.gather(1, index) / (self.settings.temperature or 1.0)
        # Weights that have blown up give NaN, and then all choices are as good.
        scaled = torch.nan_to_num(scaled, nan=0.0, posinf=1e30, neginf=-1e30)
        return scaled.masked_fill(beyond, -torch.inf).log_softmax(1), index

    def _tokens(self, question: Question | TalkQuestion) -> OrderTokens:
        if isinstance(question, TalkQuestion):
            return OrderTokens(self.tokenizer, question.texts)
        vocabulary = question.game.vector_game.vocabulary
        if vocabulary.hash not in self._orders:
            self._orders[vocabulary.hash] = OrderTokens(self.tokenizer, vocabulary.texts)
        return self._orders[vocabulary.hash]

    def _check_length(self, draft: Draft) -> None:
        most = getattr(self.network.config, "max_position_embeddings", None)
        longest = sum(
            max(len(draft.orders.paths[n]) for n in slot.numbers) for slot in draft.question.slots
        )
        opening = len(draft.opening("")) if draft.free else 0
        length = len(draft.prompt) + draft.free + opening + longest
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
        tokens, mask = self._padded([[*reply.prompt, *reply.tokens] for reply in replies])
        keep = 1 + max(len(reply.tokens) for reply in replies)
        how = {"logits_to_keep": keep, "use_cache": False}
        logits = self._run(tokens, mask, mask.cumsum(1) - 1, None, **how).logits
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


def load_language_model(settings: LanguageSettings, device: str = "cpu") -> LanguageModel:
    """Return the model in a folder, or in a .gguf file; UserError if it cannot be loaded. Nothing
    is taken from the network, and no code that lies in the folder runs."""
    path = Path(settings.model)
    where = {"local_files_only": True, "trust_remote_code": False}
    if path.suffix == ".gguf":
        folder, file, where = path.parent, path, where | {"gguf_file": path.name}
    else:
        folder, file = path, path / "config.json"
    kind = settings.dtype or ("float32" if device == "cpu" else "auto")
    try:
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file.name}")
        tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        network = AutoModelForCausalLM.from_pretrained(folder, dtype=kind, **where)
        network = network.to(device)
        if tokenizer.eos_token_id is None:
            raise ValueError("its tokenizer has no token that ends a text")
    except Exception as error:  # transformers raises nearly anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it needs the code in its folder, and such code is never run"
        raise UserError(f"the model in {path} cannot be loaded: {reason}") from None
    return LanguageModel(network, tokenizer, settings)


def make_tiny_model(game_map: Map, seed: int):
    """Return a random network and a tokenizer trained on a map's orders and prompts."""
    games = VectorGame(game_map, 1, threads=1, auto_reset=False)
    prompts = [prompt_text(q, "minimal") for q in questions_of(games, games.decisions(), {})]
    orders = vocabulary(game_map).texts
    texts = ["\n".join(orders[i : i + 3]) + "\n" for i in range(0, len(orders), 3)]
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<end>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator([*texts, *(len(texts) * prompts)[: len(texts)]], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<end>", pad_token="<end>")
    torch.manual_seed(seed % 2**63)
    shape = {"n_positions": 4096, "n_embd": 64, "n_layer": 2, "n_head": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **shape, **ends)
    return transformers.GPT2LMHeadModel(config), tokenizer
