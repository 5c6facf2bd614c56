"""The tools' command line, and a learner without a network."""

from pathlib import Path

import torch
from support.tables import read_text

from diplomacy_engine.commands.cli import main
from diplomacy_engine.learning.checkpoints import policy_dict
from diplomacy_engine.rules.map import load_map

# A learner whose policy is the bot that its settings name.
SCRIPT = read_text(__file__, "policy_script.py.txt")


def write_checkpoint(path: Path, script: Path, plays: str = "dumbbot", **changes) -> Path:
    """Write a checkpoint of such a script."""
    model = torch.nn.Linear(1, 1).state_dict()
    settings = {"map": "small", "plays": plays}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(policy_dict(script, settings, load_map("small"), model, 7) | changes, path)
    return path


def refusal(*words: str, capsys) -> str:
    """Return how a bad command line is answered: a sentence of ours, or tyro's box."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    assert code == 2, err
    if err.startswith("error: "):
        assert err.count("\n") == 1 and out == "", err
        return err.removeprefix("error: ").strip()
    return " ".join((out + err).replace("│", " ").split())
