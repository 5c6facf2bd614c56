"""What is tried against policies from somebody else; see attacks.py."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import torch
from attack.mutations import JUNK, mutated, mutated_bytes
from attack.watching import tried, watched
from support.training import REPOSITORY

from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning import registry
from diplomacy_engine.players.loading import load_player

Try = Callable[[random.Random], str]
POLICY = REPOSITORY / "runs" / "reference" / "small__pure__1" / "policy.pt"
TENSORS = (
    torch.zeros(0), torch.ones(3), torch.full((2, 2), math.nan), torch.full((), 2**62),
    torch.full((8,), -1), torch.zeros(8, dtype=torch.bool), torch.zeros(1).expand(10**9),
)  # fmt: skip


def load_pytorch() -> None:
    """Load all learners; PyTorch has programs of its own, which it starts when it is loaded."""
    for module in registry.BUNDLED.values():
        import_module(module)


def mutated_checkpoint(rng: random.Random, saved: dict, path: Path) -> None:
    """Write a checkpoint of which one part is changed, in its file if nowhere else."""
    key = rng.choice(list(saved))
    part = mutated(rng, {key: saved[key]}, (*JUNK, *TENSORS))
    others = {name: value for name, value in saved.items() if name != key}
    torch.save(others | part if isinstance(part, dict) else part, path)
    if rng.random() < 0.1:
        path.write_bytes(mutated_bytes(rng, path.read_bytes()))


@contextmanager
def checkpoints(folder: Path) -> Iterator[Try]:
    """The checkpoint of a policy; what is loaded gives legal orders."""
    load_pytorch()
    saved, file = torch.load(POLICY, weights_only=True), folder / "checkpoint.pt"
    games = VectorGame("small", 2, threads=1, auto_reset=False)
    decisions = games.decisions()

    def one(rng: random.Random) -> str:
        mutated_checkpoint(rng, saved, file)
        with watched(folder):
            player = tried(lambda: load_player(file))
            if player is None:
                return "refused"
            numbers = tried(lambda: player.act(games, decisions).tolist())
        for s, number in enumerate(() if numbers is None else numbers):
            first, last = decisions.order_start[s : s + 2]
            assert number in decisions.order[first:last]
        return "taken" if numbers is not None else "refused later"

    yield one
