"""A program that answers lines on its standard output with lines on its standard input."""

import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import uuid
import weakref
from collections import deque
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from ..._suggest import quoted
from ...errors import UserError
from .lines import MOST_BYTES

GRACE = 2.0  # seconds that a program has to end by itself once its input is closed
SHOWN = 300  # letters of what it said last
_MOST_WAITING = 1000  # lines that a program is ahead of what is read of it
_MARK = "DIPLOMACY_ENGINE_PROGRAM"  # a variable that all have which a program starts


class Process:
    """One running program. Each fault is a UserError with its name and what it last said, and ends
    it; so does dropping the object, or the end of this process. Threads wait for its pipes, so that
    a time limit holds whoever else has them open."""

    def __init__(self, command: str, timeout: float):
        """`command`: words as a shell writes them, run without one; `timeout`: seconds a line."""
        self.command, self.timeout = command, timeout
        mark = uuid.uuid4().hex
        try:
            words = shlex.split(command)
            if not words:
                raise ValueError("there is no command, as in cmd:python mine.py")
            self._child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us, and it ends with all it has started
                env=os.environ | {_MARK: f"{os.environ.get(_MARK, '')} {mark}"},
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"program {quoted(command, 300)} cannot be started: {reason}") from None
        self._last_words: deque[bytes] = deque(maxlen=20)
        self._answers: queue.Queue[bytes] = queue.Queue(_MOST_WAITING)
        self._sent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listener, *_ = (
            _start(_listen, self._child.stderr, self._last_words),
            _start(_read, self._child.stdout, self._answers),
            _start(_write, self._child.stdin, self._sent),
        )
        self._end = weakref.finalize(self, _end, self._child, self._sent, mark)
        _end_in_order()

    def ask(self, *lines: bytes, phase: str = "") -> bytes:
        """Send lines, and return the next one that comes, without its end."""
        self._sent.put(b"".join(line + b"\n" for line in lines))
        try:
            answer = self._answers.get(timeout=self.timeout)
        except queue.Empty:
            self._sent.put(None)
            raise self.fault(f"gave no answer in {self.timeout:g} seconds", phase) from None
        if len(answer) > MOST_BYTES:
            raise self.fault(f"sent a line of more than {MOST_BYTES:,} bytes", phase)
        if not answer.endswith(b"\n"):
            self._answers.put(b"")  # for whoever asks again
            raise self.fault("has ended", phase)
        return answer.rstrip(b"\r\n")

    def fault(self, what: str, phase: str = "", output: bytes = b"") -> UserError:
        """Return the error that a program has done something; it is over with it."""
        self.close()
        self._listener.join(GRACE)
        last = output or b"".join(self._last_words)
        text = " ".join(last[-4 * SHOWN :].decode(errors="replace").split())
        more = f"; it said {quoted(text[-SHOWN:], SHOWN)}" if text else ""
        where = f" in {phase}" if phase else ""
        return UserError(f"program {quoted(self.command, 300)} {what}{where}{more}")

    def close(self) -> None:
        """End the program: its input is closed, and if that does not, it is killed."""
        self._end()


def _start(target, *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _listen(errors: BufferedReader, last_words: deque[bytes]) -> None:
    with suppress(OSError, ValueError):
        while chunk := errors.read1(4096):
            last_words.append(chunk)


def _read(out: IO[bytes], answers: queue.Queue[bytes]) -> None:
    line = b"\n"
    while line.endswith(b"\n"):
        try:
            line = out.readline(MOST_BYTES + 1)
        except (OSError, ValueError):
            line = b""
        answers.put(line)


def _write(into: IO[bytes], sent: queue.SimpleQueue[bytes | None]) -> None:
    for text in iter(sent.get, None):
        with suppress(OSError, ValueError):  # it has ended: its last line may say why
            into.write(text)
            into.flush()
    with suppress(OSError):
        into.close()


def _kill(child: subprocess.Popen, mark: str) -> None:
    """Kill a program with what it has started: its session, and where there is /proc what has its
    mark."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    for variables in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in variables.read_bytes():
                os.kill(int(variables.parent.name), signal.SIGKILL)


def _end(child: subprocess.Popen, sent: queue.SimpleQueue[bytes | None], mark: str) -> None:
    sent.put(None)  # which closes its input
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _kill(child, mark)
    child.wait()


def _end_in_order() -> None:
    """Let SIGTERM end this process as Ctrl-C does, so that programs end with it."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
