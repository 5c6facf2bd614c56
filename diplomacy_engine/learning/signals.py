"""Stopping a long run cleanly from outside."""

import os
import signal
import sys
import time
from contextlib import suppress

GRACE = 1.0  # seconds; a second Ctrl-C within them is a slip, or the same one told twice
_ANSWER = b"\nstopping after this step; a checkpoint will be saved (Ctrl-C again: not saved)\n"


class StopSignals:
    """`stop.received` tells of a SIGINT or SIGTERM, so that a loop can finish its step and save. A
    SIGINT later than GRACE after the first interrupts; a sooner one does nothing."""

    def __init__(self, announce: bool = True):
        self.announce = announce

    def __enter__(self) -> "StopSignals":
        self.received = False
        self._first, self._since = 0, 0.0  # signal, and when it came
        self._before = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if not (number == self._first == signal.SIGINT and self._in_grace()):
                signal.signal(number, handler)

    def _in_grace(self) -> bool:
        return self.received and time.monotonic() - self._since <= GRACE

    def _note(self, number: int, _frame: object) -> None:
        if not self.received:
            self.received, self._first, self._since = True, number, time.monotonic()
            if self.announce:
                # Not by print: the signal may have come in the middle of another one.
                with suppress(OSError, ValueError, AttributeError):
                    os.write(sys.stderr.fileno(), _ANSWER)
        elif number == signal.SIGINT and not self._in_grace():
            signal.signal(number, self._before[number])  # if the loop is over
            raise KeyboardInterrupt
