"""Stopping a long run cleanly from outside."""

import ctypes
import os
import signal
import sys
import time

from .._progress import forget

GRACE = 1.0  # seconds; a second Ctrl-C within them is a slip, or the same one told twice
_ANSWER = b"\nstopping after this step; a checkpoint will be saved (Ctrl-C again: not saved)\n"
HANG_UP = getattr(signal, "SIGHUP", None)  # of a terminal that is closed; not on Windows


class Stopped(Exception):
    """A signal has asked to stop, and nothing is half done: a checkpoint can be saved."""


class StopSignals:
    """`stop.received` tells of a SIGINT, SIGTERM or SIGHUP, so that a loop can finish its step and
    save. A SIGINT later than GRACE after the first interrupts; a sooner one does nothing. `flag`:
    a ctypes value that processes share, so that one of them tells all."""

    def __init__(self, announce: bool = True, flag: ctypes.c_bool | None = None):
        self.announce = announce
        self._flag = ctypes.c_bool() if flag is None else flag

    @property
    def received(self) -> bool:
        return bool(self._flag.value)

    def check(self, _: object = None) -> None:
        """Raise `Stopped` if a signal has come; the `progress` of a match that may break off."""
        if self.received:
            raise Stopped

    def __enter__(self) -> "StopSignals":
        self._first, self._since = 0, 0.0  # signal, and when it came
        numbers = [signal.SIGINT, signal.SIGTERM]
        if HANG_UP and signal.getsignal(HANG_UP) != signal.SIG_IGN:  # as nohup has it
            numbers.append(HANG_UP)
        self._before = {s: signal.signal(s, self._note) for s in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            if not (number == self._first == signal.SIGINT and self._in_grace()):
                signal.signal(number, handler)

    def _in_grace(self) -> bool:
        return self._first > 0 and time.monotonic() - self._since <= GRACE

    def _note(self, number: int, _frame: object) -> None:
        if not self._first:
            self._flag.value = True
            self._first, self._since = number, time.monotonic()
            # Not by print: the signal may have come in the middle of another one.
            for file, text in ((sys.stdout, b""), (sys.stderr, _ANSWER * self.announce)):
                try:
                    os.write(file.fileno(), text)
                except (ValueError, AttributeError):
                    pass
                except OSError:  # its terminal has hung up
                    forget(file)
        elif number == signal.SIGINT and not self._in_grace():
            signal.signal(number, self._before[signal.SIGINT])  # if the loop is over
            raise KeyboardInterrupt
