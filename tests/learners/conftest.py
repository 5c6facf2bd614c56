"""Runs of learners that tests share."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.learners import train


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function: the run folder of a learner of LEARNERS, which nobody is to change."""
    folder = tmp_path_factory.mktemp("learners")
    return cache(lambda name: train(name, folder / name))
