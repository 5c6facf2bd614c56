"""Waiting for what another process or thread is about to do."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a condition; fail if it does not hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
