"""What is tried against checkpoints and run folders from somebody else; see attacks.py."""

import io
import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
import torch
from attack.mutations import JUNK, mutate_folder, mutated, mutated_bytes
from attack.watching import tried, watched
from support.training import REPOSITORY, stop_in_step, train

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning import registry, startup
from diplomacy_engine.players.loading import load_player

Try = Callable[[random.Random], str]
POLICY = REPOSITORY / "runs" / "reference" / "small__pure__1" / "policy.pt"
TENSORS = (
    torch.zeros(0), torch.ones(3), torch.full((2, 2), math.nan), torch.full((), 2**62),
    torch.full((8,), -1), torch.zeros(8, dtype=torch.bool), torch.zeros(1).expand(10**9),
)  # fmt: skip


def load_pytorch() -> None:
    """Load all learners; PyTorch has programs of its own, which it starts when it is loaded."""
    for module in set(registry.COME_ALONG.values()):
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


# What a stopped run is to have under way; each of it is a part of its checkpoint.
SETTINGS = {
    "total_timesteps": 300, "pool_bots": ["dumbbot"], "warm_up_share": 0.3, "average": 1.0,
    "eval_bots": ["hold"], "eval_interval": 150, "eval_games": 2, "league_games": 2,
    "opponent_temperature": 2.0, "capture_games": 0, "max_years": 4,
}  # fmt: skip
# Settings that may say any length of a run, and the most of them here.
LENGTHS = {
    "total_timesteps": 300, "eval_games": 2, "league_games": 2, "max_years": 5, "update_epochs": 2,
    "num_minibatches": 4, "capture_games": 1,
}  # fmt: skip


def train_briefly(begun: startup.Begun, ranks: startup.Ranks) -> bool:
    """Train with the settings of a run, but not as long as these may say."""
    args = vars(begun.args)
    short = {name: min(args[name], most) for name, most in LENGTHS.items() if args[name]}
    short |= {"eval_interval": 150, "save_interval": 100}
    return ppo.train(replace(begun, args=replace(begun.args, **short)), ranks)


@contextmanager
def run_folders(folder: Path) -> Iterator[Try]:
    """A run folder with another checkpoint, other settings or other files in it is gone on with.

    What is refused has changed nothing in it.
    """
    load_pytorch()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        stop_in_step(patch, 27)
        source = train(folder / "runs", **SETTINGS)
    saved = torch.load(source / "checkpoint.pt", weights_only=True)
    settings = json.loads((source / "args.json").read_text())
    given = folder / "run"

    def resume() -> tuple[int, str]:
        err = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(err):
            words = ["--resume", str(given)]
            return startup.main(ppo.LEARNER_HERE, train_briefly, words), err.getvalue()

    shutil.copytree(source, given)
    assert resume() == (0, "")  # with all that is loaded on the way

    def one(rng: random.Random) -> str:
        shutil.rmtree(given)
        shutil.copytree(source, given)
        match rng.randrange(3):
            case 0:
                mutated_checkpoint(rng, saved, given / "checkpoint.pt")
            case 1:
                found = mutated(rng, settings)
                if isinstance(found, dict) and found.get("track"):
                    return "skipped"  # W&B's own: whoever goes on with such a run has it logged
                (given / "args.json").write_text(json.dumps(found))
            case 2:
                mutate_folder(rng, given)
        before = kept(given)
        with watched(folder):
            status, said = resume()
        if status == 0:
            assert said == "", said
            return "taken"
        assert status == 2 and re.fullmatch("error: .+\n", said) and len(said) < 1500, said[:2000]
        assert said.strip().isprintable(), ascii(said)
        if "the last checkpoint is intact" in said:  # as of weights that have blown up
            return "stopped"
        assert kept(given) == before
        return "refused"

    yield one


def kept(run: Path) -> dict[str, bytes]:
    """Return the files of a run folder but those that a link leads to, and those of the lock."""
    found = {}
    for path in sorted(run.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            found[str(path.relative_to(run))] = path.read_bytes()
    return found
