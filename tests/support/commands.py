"""The tools' command line, and a trainer's script without a network."""

import json
from pathlib import Path

from diplomacy_engine._files import file_sha256
from diplomacy_engine.commands.cli import main
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.vocabulary import vocabulary

# A trainer's script without a network: a checkpoint is JSON, its policy the bot it names.
SCRIPT = """
import json
from dataclasses import dataclass
from diplomacy_engine.errors import UserError
from diplomacy_engine.players.bots import make_bot

@dataclass
class Policy:
    name: str
    greedy: bool
    seed: int
    device: str
    bot: object

    def act(self, games, decisions):
        return self.bot.act(games, decisions)

def checkpoint_header(path):
    try:
        saved = json.load(open(path))
    except ValueError:
        raise UserError(f"{path}: not a checkpoint") from None
    if "map_name" not in saved:
        raise UserError(f"{path}: not a checkpoint")
    return saved

def load_policy_player(path, greedy=False, seed=0, device="cpu"):
    saved = json.load(open(path))
    return Policy(str(path), greedy, seed, device, make_bot(saved["PLAYS"]))
"""


def write_checkpoint(path: Path, script: Path, **changes) -> Path:
    saved = {
        "map_name": "small",
        "vocabulary_hash": vocabulary(load_map("small")).hash,
        "script_name": script.name,
        "script_sha256": file_sha256(script),
        "PLAYS": "dumbbot",
    } | changes
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(saved))
    return path


def refusal(*words: str, capsys) -> str:
    """Return the one sentence that a bad command line is answered with."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    assert code == 2 and out == "" and err.count("\n") == 1 and err.startswith("error: "), err
    return err.removeprefix("error: ").strip()
