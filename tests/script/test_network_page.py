"""The changes of docs/network.md, made to a copy of the script, train and are played as they learn.

Each block of code of the page goes where its sentence says.
"""

import re

import pytest
import torch
from support.edits import fork_ranks
from support.pages import ROOT
from support.training import load, main

SCRIPT = (ROOT / "ppo_selfplay_diplomacy.py").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "network.md").read_text(), re.S)
LAYERS, LOOP, CURIOSITY, MADE, PAID, LEARNED = BLOCKS
TINY = "--total-timesteps 200 --num-envs 16 --num-minibatches 2 --hidden 16 --eval-games 1"
TINY += " --eval-bots random --capture-games 0 --eval-interval 1000000"


def replaced(text: str, pattern: str, block: str) -> str:
    found = re.findall(pattern, text, re.S | re.M)
    assert len(found) == 1, pattern
    return text.replace(found[0], block)


def before(text: str, line: str, block: str) -> str:
    assert text.count(line) == 1, line
    return text.replace(line, block + line)


@pytest.fixture
def train(tmp_path, imported, monkeypatch):
    """Return a function (script, flags) that trains with a script and returns its checkpoint."""

    def training(script: str, flags: str) -> dict:
        path = tmp_path / "by_the_page.py"
        path.write_text(script)
        words = f"{TINY} {flags} --runs-folder {tmp_path / 'runs'}"
        fork_ranks(monkeypatch)
        assert main(words.split(), imported(path)) == 0
        (run,) = tmp_path.glob("runs/small__by_the_page__1__*")
        saved = load(run)
        assert saved["script_name"] == path.name and (run / path.name).read_text() == script
        return saved

    return training


def test_attention_trains_and_plays(train):
    text = replaced(SCRIPT, r"^        self\.own, self\.near, self\.out = .*?\n", LAYERS)
    text = replaced(text, r"^        for norm, own, near, out in .*?\n(?=        x = self)", LOOP)
    saved = train(text, "--num-layers 2 --processes 1")
    assert "attention.1.in_proj_weight" in saved["model"] and "own.0.weight" not in saved["model"]


@pytest.mark.slow
def test_curiosity_pays_learns_and_is_kept(train):
    text = before(SCRIPT, "class Run:\n", CURIOSITY + "\n\n")
    average = "        self.average = "
    text = replaced(text, average, MADE + average)
    text = before(text, "    buffer.pay(streams, rewards)\n", PAID)
    step = "        run.optimizer.step()\n"
    kept = train(replaced(text, re.escape(step), step + LEARNED), "--processes 2")["run"]
    assert len(kept["curious_optimizer"]["state"]) > 1
    guess, target = (
        kept["curiosity"][f"{name}.province_features.weight"] for name in ("guess", "target")
    )
    assert not torch.equal(guess, target)
