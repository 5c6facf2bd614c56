"""Scripts of the user's own, imported as the engine does."""

import shutil
import sys
from pathlib import Path

import pytest

from diplomacy_engine.learning import probes, registry


@pytest.fixture
def copied(trained, tmp_path):
    """Return a copy of the run folder that tests share."""
    return Path(shutil.copytree(trained(), tmp_path / "copied"))


@pytest.fixture
def imported(monkeypatch):
    """Return a function that imports a script by its path; afterwards nobody knows it."""
    monkeypatch.setattr(registry, "_learners", dict(registry._learners))
    probes._note.cache_clear()
    before = set(sys.modules)
    yield lambda path: sys.modules[registry.of_file(path).args_class.__module__]
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "LEARNER_SPEC", None):
            del sys.modules[name]
