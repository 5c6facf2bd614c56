"""Which script plays a checkpoint: found by name beside the trainer's, before PyTorch is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.training import REPOSITORY

from diplomacy_engine import load_map, load_player, vocabulary
from diplomacy_engine.players import loading
from diplomacy_engine.players.checkpoints import script_name

SCRIPT = """
import torch
from diplomacy_engine import make_bot

def checkpoint_header(path):
    return torch.load(path, weights_only=True)

def load_policy_player(path, greedy=False, seed=0, device="cpu"):
    bot = make_bot("hold")
    bot.made_by = "WHO"
    return bot
"""


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository with the trainer and a sibling of it."""
    root = tmp_path / "repository"
    root.mkdir()
    for name in ("ppo_selfplay_diplomacy", "grpo_diplomacy"):
        (root / f"{name}.py").write_text(SCRIPT.replace("WHO", name))
    monkeypatch.setattr(loading, "SCRIPT", root / "ppo_selfplay_diplomacy.py")
    return root


def write(path: Path, script: str) -> Path:
    torch.save(
        {
            "args": {"exp_name": "script"},
            "map_name": "small",
            "model": {"weight": torch.zeros(3)},
            "script_name": script,
            "script_sha256": "0" * 64,
            "vocabulary_hash": vocabulary(load_map("small")).hash,
        },
        path,
    )
    return path


@pytest.mark.parametrize(
    ("script", "plays"),
    [
        ("grpo_diplomacy.py", "grpo_diplomacy"),
        ("ppo_selfplay_diplomacy.py", "ppo_selfplay_diplomacy"),
        ("gone.py", "ppo_selfplay_diplomacy"),
        ("../evil.py", "ppo_selfplay_diplomacy"),
        ("folder/evil.py", "ppo_selfplay_diplomacy"),
        ("evil", "ppo_selfplay_diplomacy"),
        ("installed.py", "ppo_selfplay_diplomacy"),
        ("", "ppo_selfplay_diplomacy"),
    ],
)
def test_a_sibling_script_plays_what_it_trained(repository, tmp_path, script, plays):
    """Scripts elsewhere, such as the copy that lies beside the checkpoint, are never run."""
    for folder in (tmp_path, repository / "folder"):
        folder.mkdir(exist_ok=True)
        (folder / "evil.py").write_text("raise SystemExit('this must not run')")
    for file in (tmp_path / "gone.py", repository / "installed.py"):
        file.write_text("raise SystemExit('this must not run')")
    path = write(tmp_path / "checkpoint.pt", script)
    assert script_name(path) == script
    assert load_player(path).made_by == plays


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04broken", b"{}", b"\x80\x02."])
def test_a_file_that_names_no_script(tmp_path, content):
    path = tmp_path / "file.pt"
    path.write_bytes(content)
    assert script_name(path) is None


def test_a_pickle_is_only_looked_through(tmp_path):
    """A pickle that would run code when it is loaded does nothing here."""

    class Hostile:
        def __reduce__(self):
            return print, ("run",)

    path, marker = tmp_path / "hostile.pt", Hostile()
    torch.save({"evil": marker, "script_name": "grpo_diplomacy.py"}, path)
    code = f"""
import sys
from diplomacy_engine.players.checkpoints import script_name
print(script_name({str(path)!r}), "torch" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True)
    assert found.stdout == b"grpo_diplomacy.py False\n", found.stderr


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/y.pt", "a\0b", "fast:" + "x" * 300])
def test_a_name_that_no_file_can_have(name):
    for action in (load_player, loading.policy_map):
        with pytest.raises(loading.PlayerError, match="there is no player"):
            action(name)
    with pytest.raises(loading.PlayerError, match="there is no script"):
        load_player("small-pure-1", script=name)
