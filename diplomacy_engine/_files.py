"""Files that are read within bounds, and written whole or not at all.

Reading raises OSError, with its reason in `strerror` as the system has it; the caller's sentence
says what the file was for. Writing raises UserError.
"""

import contextlib
import errno
import hashlib
import io
import os
import stat
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import UserError


def _shipped(folder: str, in_clone: str) -> Path:
    """Return where a folder lies: setup.py puts it into the package, a clone has it beside it."""
    package = Path(__file__).parent
    inside = package / folder
    return inside if inside.is_dir() else package.parent / in_clone


CONFIGS = _shipped("configs", "configs")
REFERENCE = _shipped("reference", "runs/reference")  # policies


def open_file(path: str | Path) -> io.BufferedReader:
    """Open a file for reading; OSError unless it is an ordinary one. A pipe would wait for somebody
    who writes into it, and a device may never end."""
    binary = getattr(os, "O_BINARY", 0)  # Windows would end lines its own way
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | binary)
    except ValueError:
        raise OSError(
            errno.EINVAL, "a file name cannot contain a NUL character", str(path)
        ) from None
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
        return os.fdopen(handle, "rb")
    except OSError:
        os.close(handle)
        raise


def read_file(path: str | Path, most: int) -> bytes:
    """Return what is in an ordinary file; OSError if that is more than `most` bytes."""
    with open_file(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most:,} bytes", str(path))
    return content


class FolderLock:
    """Keeps other processes from locking the same folder, until `close` or the end of this one.

    The folder itself is locked, so no file stays behind, however the process ends. Where the system
    cannot do that (Windows, some network drives) nothing is locked. BlockingIOError: it is locked.
    """

    def __init__(self, path: str | Path):
        self.close: Callable[[], object] = lambda: None
        try:
            import fcntl
        except ImportError:  # Windows
            return
        handle = os.open(path, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise
        except OSError:  # not on this drive
            self.close()


@contextlib.contextmanager
def refusing(path: str | Path, what: str) -> Iterator[None]:
    """Turn what the system refuses in a block into a UserError: `path` cannot be `what`."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename not in (None, str(path)) else ""
        raise UserError(f"{path} cannot be {what}: {where}{_reason(error)}") from error


def atomic_write(
    path: str | Path, content: bytes | Callable[[BinaryIO], None], mode: int = 0o666
) -> None:
    """Write a file whole or not at all: what was there stays until the new content is on the disk.
    `content` is bytes, or a function that writes them into an open binary file. UserError if it
    cannot be written; then, as after any other exception of `content`, nothing is left behind."""
    device = os.path.exists(path) and not os.path.isfile(path)  # or a pipe: none can be replaced
    path = Path(path if device else os.path.realpath(path))  # a link stays one
    write = content if callable(content) else lambda file: file.write(content)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if device:
            with open(path, "wb") as file:
                write(file)
            return
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {_reason(error)}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder outlast a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def check_writable(folder: str | Path) -> None:
    probe = Path(folder) / f".probe.{os.getpid()}.tmp"
    try:
        probe.write_bytes(b"x")  # a byte, since an empty file fits on a full disk
    except OSError as error:
        raise UserError(f"nothing can be written in {folder}: {_reason(error)}") from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def check_target(name: str | Path | None) -> None:
    """Raise UserError before the work begins if a result could not be written afterwards; None:
    there is none to write."""
    if not name:
        return
    file = Path(name)
    if file.is_dir():
        raise UserError(f"{file} is a folder, not a file to write to")
    if file.exists() and not file.is_file():
        return  # a device or pipe
    if not file.parent.is_dir():
        raise UserError(f"{file} cannot be written: there is no folder {file.parent}")
    check_writable(file.parent)


def file_sha256(path: str | Path) -> str:
    with refusing(path, "read"), open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
