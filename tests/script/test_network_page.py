"""The changes of docs/network.md, made to a copy of the script, train and are played as they learn.

Each block of code of the page goes where its sentence says.
"""

import re
import subprocess
import sys

import torch
from support.pages import ROOT

SCRIPT = (ROOT / "ppo_selfplay_diplomacy.py").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "network.md").read_text(), re.S)
LAYERS, LOOP, CURIOSITY, MADE, PAID, LEARNED = BLOCKS
TINY = "--total-timesteps 600 --num-envs 16 --num-minibatches 2 --hidden 16 --eval-games 2"
TINY += " --eval-bots random --capture-games 0 --eval-interval 1000000"


def replaced(text: str, pattern: str, block: str) -> str:
    found = re.findall(pattern, text, re.S | re.M)
    assert len(found) == 1, pattern
    return text.replace(found[0], block)


def before(text: str, line: str, block: str) -> str:
    assert text.count(line) == 1, line
    return text.replace(line, block + line)


def train(folder, script: str, flags: str) -> dict:
    path = folder / "mine.py"
    path.write_text(script)
    words = f"{path} {TINY} {flags} --runs-folder {folder / 'runs'}"
    argv = [sys.executable, *words.split()]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (run,) = folder.glob("runs/small__mine__1__*")
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    assert saved["script_name"] == "mine.py" and (run / "mine.py").read_text() == script
    return saved


def test_attention_trains_and_plays(tmp_path):
    text = replaced(SCRIPT, r"^        self\.own, self\.near, self\.out = .*?\n", LAYERS)
    text = replaced(text, r"^        for norm, own, near, out in .*?\n(?=        x = self)", LOOP)
    saved = train(tmp_path, text, "--num-layers 2 --processes 1")
    assert "attention.1.in_proj_weight" in saved["model"] and "own.0.weight" not in saved["model"]


def test_curiosity_pays_learns_and_is_kept(tmp_path):
    text = before(SCRIPT, "class Run(Kept):\n", CURIOSITY + "\n\n")
    end = '\n    @property\n    def step(self) -> int:\n        """Learner decisions'
    text = before(text, end, MADE)
    text = before(text, "    buffer.pay(streams, rewards)\n", PAID)
    step = "            run.optimizer.step()\n"
    kept = train(tmp_path, replaced(text, re.escape(step), step + LEARNED), "--processes 2")["run"]
    assert len(kept["curious_optimizer"]["state"]) == 1
    guess, target = (
        kept["curiosity"][f"{name}.province_features.weight"] for name in ("guess", "target")
    )
    assert not torch.equal(guess, target)
