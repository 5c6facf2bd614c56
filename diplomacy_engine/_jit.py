"""The `jit` decorators of the project, with a compilation cache that cannot go stale.

numba's own cache notices a change in the file of a kernel, but not in a kernel of another file
that was compiled into it. Keying the folder by a hash of all files that kernels are compiled from
closes that gap.
Kernels release the interpreter lock; VectorGame runs them on slices of its games in threads.
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numba
from numba.core.registry import CPUDispatcher

_PACKAGE = Path(__file__).parent
_IMPORT = rb"^\s*from (\.+)([\w.]*) import"


def _kernel_sources(package: Path) -> dict[str, bytes]:
    """Return the files of `package` with kernels, and all they import, by path."""
    files = {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    pending = [path for path, text in files.items() if re.search(rb"^@jit", text, re.MULTILINE)]
    found = set()
    while pending:
        path = pending.pop()
        if path in found or path not in files:
            continue
        found.add(path)
        for dots, module in re.findall(_IMPORT, files[path], re.MULTILINE):
            target = path.parents[len(dots) - 1].joinpath(*module.decode().split("."))
            pending += [target.with_suffix(".py"), target / "__init__.py"]
    return {str(path.relative_to(package)): files[path] for path in sorted(found)}


def _sources_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for name, text in _kernel_sources(_PACKAGE).items():
        digest.update(name.encode())
        digest.update(text)
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    """Return a writable folder for compiled kernels of exactly these sources."""
    homes = [
        os.environ.get("NUMBA_CACHE_DIR"),
        os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "diplomacy_engine"
        ),
    ]
    for home in filter(None, homes):
        folder = Path(home) / f"kernels-{_sources_hash()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return tempfile.mkdtemp(prefix="diplomacy_engine-kernels-")


CACHE_FOLDER = _cache_folder()
numba.config.CACHE_DIR = CACHE_FOLDER


def kernels_are_cached() -> bool:
    """Tell whether an earlier process has left compiled kernels of these sources."""
    try:
        return bool(numba.config.DISABLE_JIT) or any(Path(CACHE_FOLDER).rglob("*.nbi"))
    except OSError:
        return False


def announce_compilation() -> None:
    """Say, if it is so, that the first start after an installation takes longer."""
    if not kernels_are_cached():
        print(
            "compiling the game kernels for this machine, once: this takes about a minute",
            file=sys.stderr,
            flush=True,
        )


_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
jit_allocating = numba.njit(**_OPTIONS)
# Without numba's reference counting, which touches some hundred arrays at every call of a kernel
# that is not inlined (measured: DumbBot 12.2 -> 4.7 us a decision). Such a kernel makes no array.
jit = numba.njit(**_OPTIONS, _nrt=False)
# For sums of floats, which the compiler may then reorder to use vector instructions.
jit_float = numba.njit(**_OPTIONS, _nrt=False, fastmath={"reassoc", "contract", "nsz"})
_INNER = _OPTIONS | {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_without_entry = numba.njit(**_INNER)
_without_call = numba.njit(**_INNER, forceinline=True)


class _Inner(CPUDispatcher):
    """A kernel that only other kernels call; a call from Python would end the process."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise TypeError(f"{self.py_func.__name__} can only be called by another kernel")


def jit_inner(function: Callable) -> Callable:
    """`jit` for a kernel that only other kernels call.

    It has no entry from Python, which for kernels with a map's tables among their arguments is much
    of the code: before its first update, training compiles for 70 s instead of 87.
    """
    return _as_inner(_without_entry(function))


def jit_merged(function: Callable) -> Callable:
    """`jit_inner` for a kernel that is compiled into its callers, so that nothing calls it.

    A call copies the pointer, shape and strides of every array among its arguments: 211 words for
    the orders of one unit, 762 for those of a game. Without these calls random games take a quarter
    less time. It is for kernels that run often and are called from one place only.
    """
    return _as_inner(_without_call(function))


def _as_inner(kernel: Callable) -> Callable:
    if isinstance(kernel, CPUDispatcher):  # else compilation is switched off
        kernel.__class__ = _Inner
    return kernel


def compiled(kernel: Callable, *arguments: object) -> Callable:
    """Return the machine code of a kernel for arguments of the types of these.

    Called itself, a kernel looks up the types of all arrays it is given: some 60 us for the tables
    of a map, where this takes 4. Whoever calls it vouches for the types; nothing checks them.
    """
    if numba.config.DISABLE_JIT:
        return kernel
    if isinstance(kernel, _Inner):
        raise TypeError(f"{kernel.py_func.__name__} can only be called by another kernel")
    signature = tuple(map(numba.typeof, arguments))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
