"""Policies by short names: in the clone from runs/reference, in a wheel from inside the package."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.training import REPOSITORY

from diplomacy_engine import load_player
from diplomacy_engine.commands import cli
from diplomacy_engine.errors import UserError
from diplomacy_engine.players.loading import policy_map
from diplomacy_engine.players.policy import files as policy_files
from diplomacy_engine.players.policy.files import policy_file, ready_policies


def test_short_names():
    found = ready_policies()
    assert set(found) >= {"small-pure-1", "small-pure-2", "small-pure-3", "standard-pure-2"}
    assert found["small-pure-2"] == REPOSITORY / "runs/reference/small__pure__2/policy.pt"
    assert policy_file("small-pure-2") == found["small-pure-2"]
    assert policy_map("small-pure-2").name == "small"
    assert hasattr(load_player("fast:three-pure-1"), "act")


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small-pure-2").write_text("no checkpoint")
    with pytest.raises(UserError, match=r"small-pure-2: .*not a checkpoint"):
        load_player("small-pure-2")


def test_an_installed_package_has_its_own(tmp_path, monkeypatch):
    """The folder inside the package takes the place of runs/reference."""
    folder = tmp_path / "small__pure__7"
    folder.mkdir()
    shutil.copy(ready_policies()["small-pure-2"], folder / "policy.pt")
    monkeypatch.setattr(policy_files, "REFERENCE", tmp_path)
    assert list(ready_policies()) == ["small-pure-7"]
    assert hasattr(load_player("small-pure-7"), "act")


@pytest.mark.slow
def test_a_wheel_plays(tmp_path):
    """Installed, with this environment's packages beside it, and called from another folder."""
    kept = ("diplomacy_engine", "diplomacy_learners", "configs", "runs/reference")
    for name in kept:
        shutil.copytree(REPOSITORY / name, tmp_path / "source" / name)
    for path in [*REPOSITORY.glob("*.*"), REPOSITORY / "LICENSE"]:
        if path.is_file():
            shutil.copy(path, tmp_path / "source")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin_folder = Path(tmp_path / "venv" / "bin")
    words = [bin_folder / "pip", "install", "--quiet", "--no-deps", tmp_path / "source"]
    subprocess.run(words, check=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # At the end of the path, so that the installed package comes first.
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    words = ["evaluate", "--player", "small-pure-2", "--games", "20", "--json", "result.json"]
    (tmp_path / "elsewhere").mkdir()
    options = {"cwd": tmp_path / "elsewhere", "capture_output": True, "text": True}
    done = subprocess.run([bin_folder / cli.NAME, *words], **options)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "elsewhere" / "result.json").read_text())
    assert result["map"] == "small" and result["games"] == 20
    assert result["player"] == "small-pure-2"
    code = "from diplomacy_engine.players.policy.files import REFERENCE; print(REFERENCE)"
    where = subprocess.run([bin_folder / "python", "-c", code], **options).stdout
    assert where.strip() == str(site / "diplomacy_engine" / "reference")
    for learner in ("ppo_selfplay_diplomacy", "diplomacy_learners.press"):
        words = [bin_folder / "python", "-m", learner, "--map", "three", "--help"]
        shown = subprocess.run(words, **options)
        assert shown.returncode == 0, shown.stderr  # 0.95 as in configs/three.toml
        assert "0.95" in shown.stdout.partition("--gae-lambda")[2][:400]
