"""Language models are loaded when they are named, and nothing of them before."""

import subprocess
import sys

import pytest
import torch
from support.tables import read_text

from diplomacy_engine import UserError, load_map, load_player
from diplomacy_engine.learning import checkpoints


@pytest.mark.slow
def test_without_the_extra_training_is_refused_in_one_sentence():
    code = read_text(__file__, "without_transformers.py.txt")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 2
    assert found.stderr == "error: language models need more packages: pip install '.[llm]'\n"


def test_without_the_extra_players_are_refused_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for name in ("diplomacy_engine.extras.language.model", "diplomacy_learners.language_model"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    saved = checkpoints.policy_dict(__file__, {"map": "small"}, load_map("small"), {}, 0)
    torch.save(saved | {"script_name": "language_model.py"}, tmp_path / "policy.pt")
    for name in (f"llm:local:{tmp_path}", tmp_path / "policy.pt"):
        with pytest.raises(UserError, match=r"pip install '\.\[llm\]'"):
            load_player(name)
