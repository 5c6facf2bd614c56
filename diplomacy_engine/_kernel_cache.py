"""Where compiled kernels are kept, so that a kernel which has changed is never loaded.

numba's own cache notices a change in the file of a kernel, but not in a kernel of another file that
was compiled into it. Here a kernel that Python calls lies in a file of its own, under a hash of its
source file, of all that this imports from the package, and so on, and of the types of its
arguments. All clones and installations share their kernels.
"""

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize, sigutils
from numba.core.base import BaseContext
from numba.core.caching import NullCache
from numba.core.codegen import Codegen
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher

try:
    import fcntl
except ImportError:  # no POSIX: processes that start together compile the same kernels
    fcntl = None  # type: ignore[assignment]  # the usual way to say so

_PACKAGE = Path(__file__).parent
# A relative import: its dots, its module, and the first name. `from . import` has one name, a
# module. tests/test_jit.py compares it with Python's own reading of all files that have kernels
# (test_no_import_of_a_kernel_file_is_missed).
_IMPORT = rb"^\s*from (\.+)([\w.]*) import \(?\s*(\w+)"


@cache
def _kernel_sources(kernels: Path) -> dict[str, bytes]:
    """Return the files that a file of kernels is compiled from, by their path in the package."""
    pending = [kernels]
    sources: dict[Path, bytes] = {}
    while pending:
        path = pending.pop()
        if path in sources or not path.is_file():
            continue
        sources[path] = path.read_bytes()
        for dots, module, name in re.findall(_IMPORT, sources[path], re.MULTILINE):
            target = path.parents[len(dots) - 1].joinpath(*(module or name).decode().split("."))
            pending += [target.with_suffix(".py"), target / "__init__.py"]
    return {os.path.relpath(path, _PACKAGE): sources[path] for path in sorted(sources)}


def _cache_folder() -> str:
    """Return a folder for compiled kernels. It is writable, unless there is no such folder at all:
    then nothing is kept, see `KernelCache`."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    homes = [os.environ.get("NUMBA_CACHE_DIR")]
    if not cache_home.startswith("~"):  # where there is no home, that stays as it is
        homes.append(os.path.join(cache_home, "diplomacy_engine"))
    folders = [Path(home) / "kernels" for home in homes if home]
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    try:
        return tempfile.mkdtemp(prefix="diplomacy_engine-kernels-")
    except OSError:
        return str(folders[0]) if folders else os.devnull


CACHE_FOLDER = _cache_folder()


class KernelCache(NullCache):
    """Keeps a compiled kernel if there is room on the disk; without room it works all the same."""

    warned = False  # that nothing can be kept

    def __init__(self, kernel: CPUDispatcher, *, allocates: bool):
        """`allocates`: whether the kernel may make arrays."""
        self.kernel = kernel
        self.allocates = allocates
        # The lock on the file that is to be written, or nothing: `load_overload` takes it, and
        # `_Kernel.compile`, which has called that, lets go of it.
        self.lock = contextlib.ExitStack()

    def file(self, signature: object, codegen: Codegen) -> Path:
        """Return the file of the machine code for a signature. Another Python, numba, processor or
        source has another one."""
        function = self.kernel.py_func
        arguments, _ = sigutils.normalize_signature(signature)
        versions = sys.version, numba.__version__, codegen.magic_tuple(), arguments
        digest = hashlib.sha256(repr(versions).encode())
        for source, text in _kernel_sources(Path(function.__code__.co_filename)).items():
            digest.update(source.encode() + text)
        name = f"{function.__module__}.{function.__qualname__}".removeprefix(f"{__package__}.")
        return Path(CACHE_FOLDER) / f"{name}-{digest.hexdigest()[:24]}.kernel"

    def load_overload(self, sig: object, target_context: BaseContext) -> CompileResult | None:
        """Return a kernel that was compiled before. Else take the kernel's lock, so that other
        processes wait until this one has compiled it."""
        if self.allocates:  # else that would load all that numba compiles with, for some 0.15 s
            target_context.refresh()
        file = self.file(sig, target_context.codegen())
        kernel = _load(file, target_context)
        if kernel is None and fcntl:
            with contextlib.suppress(OSError):
                file_of_lock = self.lock.enter_context(file.with_suffix(".lock").open("w"))
                fcntl.flock(file_of_lock, fcntl.LOCK_EX)
                kernel = _load(file, target_context)
        return kernel

    def save_overload(self, sig: object, data: CompileResult) -> None:
        """Keep a compiled kernel. Its file is there at once or not at all, since other processes
        may be reading it; where it cannot be written, this is said once."""
        file = self.file(sig, data.codegen)
        temporary = file.with_suffix(f".{os.getpid()}")
        *header, environments = data._reduce()
        # Others only import modules of numba.
        environments = [environment for environment in environments if environment.consts]
        try:
            temporary.write_bytes(serialize.dumps((*header, environments)))
            temporary.replace(file)
            file.with_suffix(".lock").unlink(missing_ok=True)
        except OSError as error:
            if not KernelCache.warned:
                KernelCache.warned = True
                where = f"cannot be saved in {CACHE_FOLDER} ({error.strerror or error})"
                note = f"compiled kernels {where}, so every start compiles them again"
                print(note, file=sys.stderr, flush=True)


def _load(file: Path, target_context: Any) -> CompileResult | None:
    """Return the kernel in a file; None if there is none, or if the file is damaged."""
    try:
        return CompileResult._rebuild(target_context, *pickle.loads(file.read_bytes()))
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def kernels_are_cached() -> bool:
    """Tell whether an earlier process has left compiled kernels."""
    try:
        return bool(numba.config.DISABLE_JIT) or any(Path(CACHE_FOLDER).glob("*.kernel"))
    except OSError:
        return False
