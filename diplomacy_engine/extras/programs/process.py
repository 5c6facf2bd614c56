"""A program that answers lines on its standard output with lines on its standard input."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress

from ..._suggest import printable, quoted
from ...errors import UserError
from .lines import MOST_BYTES

GRACE = 2.0  # seconds that a program has to end by itself once its input is closed
SHOWN = 300  # letters of what it said last


class Process:
    """One running program. Each fault is a UserError with its name and what it last said, and ends
    it; so does dropping the object, or the end of this process."""

    def __init__(self, command: str, timeout: float):
        """`command`: words as a shell writes them, run without one; `timeout`: seconds a line."""
        self.command, self.timeout = command, timeout
        try:
            words = shlex.split(command)
            self._child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us, and it ends with all it has started
            )
        except (OSError, ValueError, IndexError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "it is empty"
            raise UserError(f"program {quoted(command, 300)} cannot be started: {reason}") from None
        self._last_words: deque[bytes] = deque(maxlen=20)
        errors = self._child.stderr
        self._listener = threading.Thread(
            target=_listen, args=(errors, self._last_words), daemon=True
        )
        self._listener.start()
        self._end = weakref.finalize(self, _end, self._child)
        _end_in_order()

    def ask(self, *lines: bytes, phase: str = "") -> bytes:
        """Send lines, and return the next one that comes, without its end."""
        slow = threading.Event()

        def give_up() -> None:
            slow.set()
            _kill(self._child)

        timer = threading.Timer(self.timeout, give_up)
        timer.start()
        try:
            with suppress(OSError, ValueError):  # it has ended: its last line may say why
                self._child.stdin.write(b"".join(line + b"\n" for line in lines))
                self._child.stdin.flush()
            answer = self._child.stdout.readline(MOST_BYTES + 1)
        except (OSError, ValueError):
            answer = b""
        finally:
            timer.cancel()
        if slow.is_set():
            raise self.fault(f"gave no answer in {self.timeout:g} seconds", phase)
        if len(answer) > MOST_BYTES:
            raise self.fault(f"sent a line of more than {MOST_BYTES:,} bytes", phase)
        if not answer.endswith(b"\n"):
            raise self.fault("has ended", phase)
        return answer.rstrip(b"\r\n")

    def fault(self, what: str, phase: str = "", output: bytes = b"") -> UserError:
        """Return the error that a program has done something; it is over with it."""
        self.close()
        self._listener.join(GRACE)
        last = output or b"".join(self._last_words)
        text = " ".join(printable(last[-4 * SHOWN :].decode(errors="replace")).split())
        more = f"; it said {quoted(text[-SHOWN:], SHOWN)}" if text else ""
        where = f" in {phase}" if phase else ""
        return UserError(f"program {quoted(self.command, 300)} {what}{where}{more}")

    def close(self) -> None:
        """End the program: its input is closed, and if that does not, it is killed."""
        self._end()


def _listen(errors, last_words: deque[bytes]) -> None:
    with suppress(OSError, ValueError):
        while chunk := errors.read1(4096):
            last_words.append(chunk)


def _kill(child: subprocess.Popen) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)  # with what it has started
        else:
            child.kill()


def _end(child: subprocess.Popen) -> None:
    with suppress(OSError):
        child.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _kill(child)
    child.wait()


def _end_in_order() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that programs end with it."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
