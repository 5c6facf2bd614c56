"""A limit for work that would take for ever if it were done wrongly."""

import signal
from contextlib import contextmanager


@contextmanager
def within(seconds: float, what: object = "this"):
    """Fail after so many seconds of processor time, also within one long call such as that of a
    pattern. What other programs do meanwhile does not count."""

    def fail(*_):
        raise AssertionError(f"{str(what)[:300]} took more than {seconds} seconds")

    before = signal.signal(signal.SIGPROF, fail)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
