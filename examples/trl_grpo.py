"""GRPO by Hugging Face's trl (1.16.0) on forked games; the model writes legal orders only.

    pip install trl==1.16.0 '.[llm]'
    python examples/trl_grpo.py

A prompt asks for one power's orders in one position. trl passes each prompt `num_generations` times
in a row: the copies of a position, which are played on for a year against random orders. What the
model wrote first is the completion, its centers a year on the reward. The loss of trl takes the
probability of a token among all tokens; here it is that among the legal ones, with which the player
drew it (docs/language_models.md compares the two).
"""

import tempfile
from collections.abc import Sequence

import numpy as np
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from diplomacy_engine import VectorGame, load_map, load_player
from diplomacy_engine.extras.language.local import LocalPlayer, Reply
from diplomacy_engine.extras.language.model import LanguageModel, make_tiny_model
from diplomacy_engine.extras.language.settings import LanguageSettings
from diplomacy_engine.matches.forks import fork, random_beginnings

SETTINGS = LanguageSettings(model="tiny", constraint="trie", prompt="minimal", batch=128)


class Positions:
    """Positions of a power by the prompt that asks for its orders, and room to play copies."""

    def __init__(self, player: LocalPlayer, power: str, count: int, copies: int, seed: int):
        self.player, self.copies = player, copies
        game_map = load_map("small")
        self.power = game_map.power_number(power)
        self.games = VectorGame(game_map, count * (1 + copies), seed, threads=1, auto_reset=False)
        random_beginnings(self.games, 5, seed, opening_share=0.5)
        decisions = self.games.decisions(np.arange(count))
        questions = player.questions(self.games, decisions.take(decisions.power == self.power))
        self.rows = {player.prompt(question): question.row for question in questions}
        self.opponent = load_player("random")
        self.replies: dict[tuple[int, ...], Reply] = {}  # by the tokens of prompt and reply

    def rollout(self, prompts: Sequence[str], trainer: GRPOTrainer) -> dict[str, list]:
        """Play a position for each run of equal prompts; see trl's `rollout_func`."""
        player, size = self.player, len(prompts)
        player.trace, player.recording = [], True
        seats = np.ones(self.games.num_powers, int)
        seats[self.power] = 0
        played = fork(
            self.games,
            [self.rows[prompt] for prompt in prompts[:: self.copies]],
            self.copies,
            years=1,
            players=[player, self.opponent],
            seats=seats,
            score=lambda games, rows: games.centers()[rows],
        )
        first = {row: reply for row, _, _, reply in reversed(player.trace)}
        replies = [first[row] for row in sorted(first)]
        assert len(replies) == size
        self.replies = {(*reply.prompt, *reply.tokens): reply for reply in replies}
        return {
            "prompt_ids": [reply.prompt for reply in replies],
            "completion_ids": [reply.tokens for reply in replies],
            "logprobs": [[0.0] * len(reply.tokens) for reply in replies],  # vLLM's alone are read
            "env_mask": [[int(i in r.at) for i in range(len(r.tokens))] for r in replies],
            "centers": played.score[:, :, self.power].ravel().tolist(),
        }


class LegalTrainer(GRPOTrainer):
    """Takes its loss among the legal tokens. What it overrides is private in trl."""

    positions: Positions

    def _get_per_token_logps_and_entropies(
        self, model, input_ids, attention_mask, logits_to_keep, **_
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        """Return log-probabilities and entropies of the completions (B, T), 0 without a choice."""
        rows = [ids[mask == 1].tolist() for ids, mask in zip(input_ids, attention_mask)]
        replies = [self.positions.replies[tuple(row)] for row in rows]
        chosen = self.positions.player.model.log_probabilities(replies)
        places = chosen.reply, torch.tensor([at for reply in replies for at in reply.at])
        nothing = torch.zeros(len(replies), logits_to_keep)
        logprobs = nothing.index_put(places, chosen.logprob)
        return logprobs, nothing.index_put(places, chosen.entropy.detach()), None


def train(steps: int = 30, groups: int = 8, copies: int = 16, seed: int = 1) -> list[float]:
    """Return the mean centers of each step."""
    network, tokenizer = make_tiny_model(load_map("small"), seed)
    player = LocalPlayer("model", SETTINGS, LanguageModel(network, tokenizer, SETTINGS))
    positions = Positions(player, "ENGLAND", groups, copies, seed)  # fewer where prompts are alike
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=len(positions.rows) * copies,
            num_generations=copies,
            learning_rate=1e-3,
            seed=seed,
            use_cpu=True,
            bf16=False,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            gradient_checkpointing=False,
            disable_dropout=True,  # else trl plays with it, too
            disable_tqdm=True,
        )
        trainer = LegalTrainer(
            model=network,
            processing_class=tokenizer,
            args=config,
            reward_funcs=lambda centers, **_: centers,
            train_dataset=Dataset.from_list([{"prompt": p} for p in positions.rows] * groups),
            rollout_func=positions.rollout,
        )
        trainer.positions = positions
        trainer.train()
    return [log["reward"] for log in trainer.state.log_history if "reward" in log]


if __name__ == "__main__":
    print("centers:", " ".join(f"{mean:.2f}" for mean in train()))
