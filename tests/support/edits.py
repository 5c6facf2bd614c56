"""Edits of the script that readers make, as replacements in its text, and what becomes of them.

An edit is a list of (old text, new text). Each old text stands in the script exactly once.
"""

import multiprocessing
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import torch
from support.training import REPOSITORY, load, refused, resume, train, write_config

from diplomacy_engine import VectorGame, load_map, load_player, order_numbers
from diplomacy_engine.commands import cli
from diplomacy_engine.games.order_lists import matched
from diplomacy_engine.learning import ops

Replacements = Sequence[tuple[str, str]]
SCRIPT = "ppo_selfplay_diplomacy.py"
TEXT = (REPOSITORY / SCRIPT).read_text()
# A run of a few updates, one evaluation and one checkpoint, with an average of its weights.
FEW = {
    "total_timesteps": 150,
    "eval_bots": ["hold"],
    "eval_interval": 10**9,
    "average_exponent": 1.0,
    "max_years": 4,
}


class Edit(NamedTuple):
    """An edit of a file of tests/script/edits."""

    kind: str  # works, refused, stopped, ...
    edits: Replacements
    names: list[str]  # in the refusal
    processes: list[int]  # with which it is tried
    settings: dict  # of the run, and what the test checks


def read_edits() -> dict[str, Edit]:
    """Return the edits of what a policy sees, orders and meets, and of how it learns."""
    texts = [path.read_text() for path in (REPOSITORY / "tests/script/edits").glob("*.toml")]
    tables = tomllib.loads("\n".join(texts))
    defaults = {"names": [], "processes": [1, 2]}
    return {
        title: Edit(*[table.pop(name, defaults.get(name)) for name in Edit._fields[:4]], table)
        for title, table in tables.items()
    }


def named(edits: dict[str, Edit], *kinds: str) -> list[str]:
    return [title for title, edit in edits.items() if edit.kind in kinds]


def write(path: Path, *edits: tuple[str, str]) -> Path:
    """Write the script as it is after `edits`; return the path."""
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fork_ranks(patch: pytest.MonkeyPatch) -> None:
    """Have processes that train together forked: they share what is imported, the edited script
    included, and start at once."""
    fork = multiprocessing.get_context("fork")
    patch.setattr(multiprocessing, "get_context", lambda method: fork)


def train_edited(
    edits: Replacements,
    imported: Callable[[Path], ModuleType],
    folder: Path,
    processes: int = 1,
    **changes,
) -> tuple[ModuleType, Path]:
    """Train the edited script below `folder`; return it and its run folder."""
    script = imported(write(folder / "mine.py", *edits))
    with pytest.MonkeyPatch.context() as patch:
        fork_ranks(patch)
        settings = FEW | {"processes": processes} | changes
        return script, train(folder / "runs", script=script, **settings)


def assert_refused(
    edits: Replacements,
    imported: Callable[[Path], ModuleType],
    folder: Path,
    *words: str,
    capsys: pytest.CaptureFixture,
    processes: int = 1,
    begins: bool = False,
    **changes,
) -> str:
    """Check that the edited script ends in an error that names `words`; return what is said.

    It does so before it makes a run folder, unless it `begins`.
    """
    script, runs = imported(write(folder / "mine.py", *edits)), folder / "runs"
    config = write_config(folder / "tiny.toml", **FEW, **{"processes": processes} | changes)
    with pytest.MonkeyPatch.context() as patch:
        fork_ranks(patch)
        argv = ["--config", config, "--runs-folder", str(runs)]
        message = refused(argv, *words, capsys=capsys, script=script)
    assert runs.exists() == begins
    return message


def learned_agent(script: ModuleType, run: Path) -> torch.nn.Module:
    """Return the network of a run's policy on `small`, as the script itself makes it."""
    saved = load(run)
    agent = script.make_agent(saved["args"], load_map("small")).eval()
    agent.load_state_dict(saved["model"])
    return agent


def drawn_by(agent: torch.nn.Module, seed: int = 1) -> list[int]:
    """Return the orders that a network gives in 400 new games on `small`, as the learner does."""
    games = VectorGame("small", 400, seed=seed, threads=1)
    decisions = games.decisions()
    own = agent.legal_orders(games, decisions)
    noise = ops.sample_noise(games, own)
    obs = agent.observe(games, own.game, own.power)
    with torch.no_grad():
        chosen = agent.get_action_and_value(obs, own, noise=noise).chosen
    return matched(decisions, own, order_numbers(own, chosen)).tolist()


def drawn_by_player(name: str, **options) -> list[int]:
    """Return the orders that a player gives in the same games."""
    games = VectorGame("small", 400, seed=1, threads=1)
    return load_player(name, **options).act(games, games.decisions()).tolist()


def assert_usable(script: ModuleType, run: Path, steps: int = 200) -> None:
    """Check that a run's policy is evaluated, chooses as its network does, and learns on."""
    name = f"{script.__file__}:{run}"
    words = ["evaluate", "--games", "2", "--max-years", "3", "--against", "hold", "--player"]
    assert cli.main([*words, name]) == 0
    assert drawn_by_player(name) == drawn_by(learned_agent(script, run))
    with pytest.MonkeyPatch.context() as patch:
        fork_ranks(patch)
        assert resume(run, "--total-timesteps", str(steps), script=script) == 0
    assert load(run)["global_step"] >= steps
