"""Runs of learners that tests share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.learners import train


@pytest.fixture(scope="session")
def trained(made_once) -> Callable[[str], Path]:
    return lambda name: made_once(f"learner-{name}", lambda folder: train(name, folder / "runs"))
