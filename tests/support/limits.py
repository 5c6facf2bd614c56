"""A limit for work that would take for ever if it were done wrongly."""

import signal
from contextlib import contextmanager


@contextmanager
def within(seconds: float, what: object = "this"):
    """Fail after so many seconds, also within one long call such as that of a pattern.

    The limit is a hundred times what the work takes, so that a busy machine does not reach it.
    """

    def fail(*_):
        raise AssertionError(f"{str(what)[:300]} took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
