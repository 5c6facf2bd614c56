"""Checkpoints from somebody else: each is refused in one sentence, at once and in little memory."""

import io
import math
import os
import zipfile
from pathlib import Path

import pytest
import torch
from support.training import REPOSITORY

from diplomacy_engine.errors import UserError
from diplomacy_engine.learning import checkpoints, registry

POLICY = REPOSITORY / "runs" / "reference" / "small__pure__1" / "policy.pt"


def nested(depth: int) -> list:
    """Return a list that is written in a moment, and would take 2 ** depth parts to print."""
    found = [1]
    for _ in range(depth):
        found = [found, found]
    return found


def saved_with(path: Path, **changes) -> Path:
    saved = torch.load(POLICY, weights_only=True) | changes
    torch.save({name: value for name, value in saved.items() if value is not None}, path)
    return path


def args_with(**changes) -> dict:
    return torch.load(POLICY, weights_only=True)["args"] | changes


def weights_with(value: float) -> dict:
    model = torch.load(POLICY, weights_only=True)["model"]
    return model | {"score.weight": torch.full_like(model["score.weight"], value)}


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        registry.policy_of_checkpoint(checkpoints.read(path))
    sentence = str(caught.value)
    assert str(path) in sentence and sentence.isprintable() and len(sentence) < 400, sentence
    return sentence


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"args": args_with(hidden=4096)}, "the shape of"),
        ({"args": args_with(hidden=10**9)}, "args: hidden: expected int <= 1000000"),
        ({"args": args_with(hidden=nested(60))}, "damaged"),
        ({"args": args_with(num_layers=1024)}, "weights do not match"),
        ({"model": weights_with(math.nan)}, "not numbers"),
        ({"model": weights_with(1e20)}, "not numbers, or beyond 1,000,000"),
        ({"model": {"\x1b[2J" * 1000: torch.zeros(1)}}, "weights do not match"),
        ({"observation_version": "\x1b[2J\n" * 1000}, "made for observations of version"),
        ({"map_name": "\x1b[2J"}, "does not name the map"),
        ({"map_facts": {"name": "small", "\x1b[2J": nested(3)}}, "does not fit"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value[:30],
)
def test_a_changed_policy_is_refused(tmp_path, changes, message):
    assert message in refusal(saved_with(tmp_path / "policy.pt", **changes))


def test_a_weight_that_is_larger_than_its_file(tmp_path):
    registry.policy_of_checkpoint(checkpoints.read(saved_with(tmp_path / "policy.pt")))
    model = weights_with(0.0)
    model["score.weight"] = torch.zeros(1).expand(10**12)
    assert "the shape of" in refusal(saved_with(tmp_path / "policy.pt", model=model))


def test_a_file_that_unpacks_to_more_than_itself(tmp_path):
    bomb = tmp_path / "policy.pt"
    with zipfile.ZipFile(POLICY) as parts, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as out:
        for part in parts.namelist():
            out.writestr(part, parts.read(part) + bytes(0 if part.endswith("pkl") else 2**22))
    assert "not a checkpoint of this project" in refusal(bomb)


def test_the_largest_that_is_read(monkeypatch):
    with zipfile.ZipFile(POLICY) as parts:
        named = max(part.file_size for part in parts.infolist() if part.filename.endswith("pkl"))
    for limit, most in (("MOST_BYTES", Path(POLICY).stat().st_size), ("MOST_PICKLE_BYTES", named)):
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, limit, most)
            checkpoints.read(POLICY)
            patch.setattr(checkpoints, limit, most - 1)
            assert "not a checkpoint of this project" in refusal(POLICY)


def test_a_size_that_is_not_so(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as out:
        out.writestr("policy/data.pkl", bytes(100))
        out.infolist()[0].file_size = out.infolist()[0].compress_size = 2**31
    path = tmp_path / "policy.pt"
    path.write_bytes(content.getvalue())
    assert "not a checkpoint of this project" in refusal(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "policy.pt"
    os.mkfifo(pipe)
    assert "it is a pipe or a device" in refusal(pipe)
    assert "it is a pipe or a device" in refusal(Path("/dev/zero"))
