"""Whether input from outside makes the program do what it must not: reach out, run, write."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from diplomacy_engine._kernel_cache import CACHE_FOLDER
from diplomacy_engine.errors import UserError

_REACHING = (
    "socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system",
    "os.exec", "os.posix_spawn", "pty.spawn", "webbrowser.open",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class ReachedOut(BaseException):
    """Input has made the program do what it must not; nothing catches this by accident."""


class _Watch:
    folder: Path | None = None
    seen = ""


def _look(event: str, arguments: tuple) -> None:
    if _Watch.folder is None:
        return
    if event in _REACHING:
        _refuse(f"{event} {arguments!r:.200}")
    if event == "exec" and arguments[0].co_filename.startswith(str(_Watch.folder)):
        _refuse(f"{arguments[0].co_filename} is run")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        path = (
            os.path.realpath(os.fsdecode(arguments[0])) if not isinstance(arguments[0], int) else ""
        )
        kept = ("/dev/", "/proc/", os.path.realpath(CACHE_FOLDER))
        if path and not path.startswith((str(_Watch.folder), *kept)):
            _refuse(f"{path} is opened to be written")
    if event in ("os.remove", "os.rename", "os.rmdir", "shutil.rmtree"):
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if not path.startswith((str(_Watch.folder), os.path.realpath(CACHE_FOLDER))):
            _refuse(f"{event} {path}")


def _refuse(what: str) -> None:
    _Watch.seen = what
    raise ReachedOut(what)


_hooked = False


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Fail if this process connects, starts a program, or writes outside of a folder meanwhile.

    By Python's audit events, which no Python code gets around: see the library's table of them.
    """
    global _hooked
    if not _hooked:
        sys.addaudithook(_look)  # it stays, and looks away when nothing is watched
        _hooked = True
    _Watch.seen = ""
    _Watch.folder = Path(os.path.realpath(folder))
    try:
        yield
    finally:
        _Watch.folder = None
    assert not _Watch.seen, _Watch.seen


def tried(work: Callable[[], object], *more: type[Exception]) -> object:
    """Return what `work` returns, or None if UserError or `more` refuses it with one sentence."""
    try:
        return work() or True
    except UserError as error:
        text = str(error)
        assert text.strip() and "\n" not in text and len(text) < 1500, repr(text)[:2000]
        assert all(sign.isprintable() or sign in "\u3000" for sign in text), repr(text)[:500]
    except more:
        pass
    return None
