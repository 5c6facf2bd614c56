"""Seconds spent in the stages of a loop."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Adds up the time of `with clock("stage"):` blocks; one inside another counts by itself.
    `now` tells the seconds: processor time, for example, is another than the wall's."""

    def __init__(self, network: tuple[str, ...] = (), now: Callable[[], float] = time.perf_counter):
        self.network, self.now = network, now
        self.seconds: dict[str, float] = {}
        self._inside = 0.0  # seconds of blocks inside the one that runs
        self._started = now()

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start, before, self._inside = self.now(), self._inside, 0.0
        try:
            yield
        finally:
            seconds = self.now() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds - self._inside
            self._inside = before + seconds

    def figures(self) -> dict[str, float]:
        total = self.now() - self._started
        network = sum(self.seconds.get(stage, 0.0) for stage in self.network)
        return self.seconds | {
            "other": total - sum(self.seconds.values()),
            "outside_network_share": 1.0 - network / total,
        }
