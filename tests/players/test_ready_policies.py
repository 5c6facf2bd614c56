"""Policies by short names: in the clone from runs/reference, in a wheel from inside the package."""

import shutil

import pytest
from support.training import REPOSITORY

from diplomacy_engine import UserError, load_player
from diplomacy_engine.players.loading import policy_map
from diplomacy_engine.players.policy import files as policy_files
from diplomacy_engine.players.policy.files import policy_file, ready_policies, training_of


def test_short_names():
    found = ready_policies()
    assert set(found) >= {"small-pure-1", "small-pure-2", "small-pure-3", "standard-pure-2"}
    assert found["small-pure-2"] == REPOSITORY / "runs/reference/small__pure__2/policy.pt"
    assert policy_file("small-pure-2") == found["small-pure-2"]
    assert all(map(training_of, found))
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
