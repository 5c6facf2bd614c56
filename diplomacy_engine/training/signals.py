"""Stopping a long run cleanly from outside."""

import signal


class StopSignals:
    """Inside `with StopSignals() as stop:`, `stop.received` tells of a SIGINT or SIGTERM.

    The first one only sets it, so that the loop can finish its step and save; a second SIGINT
    interrupts as usual.
    """

    def __enter__(self) -> "StopSignals":
        self.received = False
        self._before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = True
