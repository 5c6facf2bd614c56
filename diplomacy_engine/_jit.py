"""The `jit` decorators of the project, with a compilation cache that cannot go stale.

numba's own cache notices a change in the file of a kernel, but not in a kernel of another file that
was compiled into it. So the folder is keyed by a hash of all files that kernels are compiled from,
named by their path in the package: all clones and installations share their kernels. Kernels
release the interpreter lock; VectorGame runs them on slices of its games in threads.
"""

import atexit
import contextlib
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numba
from numba.core import event
from numba.core.caching import FunctionCache, UserProvidedCacheLocator
from numba.core.registry import CPUDispatcher

from ._cores import usable_cores

_PACKAGE = Path(__file__).parent
_IMPORT = rb"^\s*from (\.+)([\w.]*) import \(?\s*(\w+)"  # `from . import` names one


def _kernel_sources(package: Path) -> dict[str, bytes]:
    files = {path: path.read_bytes() for path in sorted(package.rglob("*.py"))}
    pending = [path for path, text in files.items() if re.search(rb"^@jit", text, re.MULTILINE)]
    found = set()
    while pending:
        path = pending.pop()
        if path in found or path not in files:
            continue
        found.add(path)
        for dots, module, name in re.findall(_IMPORT, files[path], re.MULTILINE):
            target = path.parents[len(dots) - 1].joinpath(*(module or name).decode().split("."))
            pending += [target.with_suffix(".py"), target / "__init__.py"]
    return {str(path.relative_to(package)): files[path] for path in sorted(found)}


def _sources_hash() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for name, text in _kernel_sources(_PACKAGE).items():
        digest.update(name.encode())
        digest.update(text)
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    """Return a folder for compiled kernels of exactly these sources. It is writable, unless there
    is no such folder at all: then nothing is kept, see `KernelCache`."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    homes = [os.environ.get("NUMBA_CACHE_DIR")]
    if not cache.startswith("~"):  # where there is no home, that stays as it is
        homes.append(os.path.join(cache, "diplomacy_engine"))
    folders = [Path(home) / f"kernels-{_sources_hash()}" for home in homes if home]
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
numba.config.CACHE_DIR = CACHE_FOLDER


class CacheLocator(UserProvidedCacheLocator):
    """Says where numba keeps a kernel of this package; functions of others are left to numba."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return "_".join(Path(py_file).relative_to(_PACKAGE).parts[:-1]) or "."

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> UserProvidedCacheLocator | None:
        # Whether the folder can be written to is seen when there is something to write.
        return cls(py_func, py_file) if Path(py_file).is_relative_to(_PACKAGE) else None


class KernelCache(FunctionCache):
    """Keeps a compiled kernel if there is room on the disk; without room it works all the same."""

    told = False  # whether it was said that nothing can be kept
    allocates = True

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            if self.allocates:
                return super().load_overload(sig, target_context)
            # numba would first load all that it could compile with, for some 0.15 s at every start.
            return self._load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            if not KernelCache.told:
                KernelCache.told = True
                print(
                    f"compiled kernels cannot be saved in {CACHE_FOLDER} "
                    f"({error.strerror or error}), so every start compiles them again",
                    file=sys.stderr,
                    flush=True,
                )


_OTHERS = "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator,IPythonCacheLocator"
numba.config.CACHE_LOCATOR_CLASSES = f"{__name__}.{CacheLocator.__name__},{_OTHERS}"


def kernels_are_cached() -> bool:
    """Tell whether an earlier process has left compiled kernels of these sources."""
    try:
        return bool(numba.config.DISABLE_JIT) or any(Path(CACHE_FOLDER).rglob("*.nbi"))
    except OSError:
        return False


def announce_compilation() -> None:
    """Say it when kernels are compiled, from now on; if there are none yet, say so at once. Then a
    second process compiles half of them, if there is a processor for it."""
    if numba.config.DISABLE_JIT or _Compilation.current is not None:
        return
    _Compilation.current = compilation = _Compilation()
    event.register("numba:compile", compilation)
    if not kernels_are_cached():
        compilation.announce("this takes about a minute")
        if usable_cores() > 1:
            compilation.start_helper()


class _Compilation(event.Listener):
    """Announces compilation, counts kernels on a terminal's line, and shares the work."""

    current: "_Compilation | None" = None
    SILENT = 2.0  # seconds of compilation that need no words
    # Half of the work before the first phase of a game is over, and needed last.
    HELPED = "_step_games"
    HELPER = """
from diplomacy_engine.games.vector_game import VectorGame
games = VectorGame("small", 1)
games.step(games.new_orders())
"""

    def __init__(self) -> None:
        self.announced = False
        self.kernels = self.depth = 0
        self.started = self.seconds = 0.0
        self.helper: subprocess.Popen | None = None
        self.lock = threading.Lock()

    def announce(self, how_long: str) -> None:
        self.announced = True
        print(
            f"compiling the game kernels for this machine, once: {how_long}",
            file=sys.stderr,
            flush=True,
        )

    def on_start(self, _event: event.Event) -> None:
        if self.depth == 0:
            self.started = time.monotonic()
        self.depth += 1

    def on_end(self, _event: event.Event) -> None:
        self.depth -= 1
        self.kernels += 1
        now = time.monotonic()
        if not self.announced and self.seconds + now - self.started > self.SILENT:
            self.announce("some are still missing")
        if self.depth == 0:
            self.seconds += now - self.started
        self.show(f"{self.kernels} kernels compiled" if self.depth else "")

    def show(self, text: str) -> None:
        """Show a text on the terminal's last line in place of what stood there; "": clear it."""
        terminal = sys.__stderr__  # the trainer's status line makes lines of what sys.stderr gets
        if self.announced and terminal is not None and terminal.isatty():
            print(f"\r\x1b[K{text}", end="", file=terminal, flush=True)

    def start_helper(self) -> None:
        """Have a second process compile HELPED, with a cache of its own: two processes that save
        the same kernel for other types at once can mix them up in one cache."""
        paths = [str(_PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        try:
            self.folder = Path(tempfile.mkdtemp(dir=CACHE_FOLDER, prefix="second-"))
            own = {
                "NUMBA_CACHE_DIR": str(self.folder),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            }
            self.helper = subprocess.Popen(
                [sys.executable, "-c", self.HELPER],
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return  # then everything is compiled here
        atexit.register(self.end_helper)

    def await_helper(self) -> None:
        """Take over what the second process compiles; what it fails to is compiled here."""
        with self.lock:  # games of several threads wait
            if self.helper is None:
                return
            self.show("the last kernels are compiled by a second process")
            self.helper.wait()
            self.show("")
            with contextlib.suppress(OSError):
                self.adopt()
            self.end_helper()

    def adopt(self) -> None:
        source = self.folder / Path(CACHE_FOLDER).name
        for index in sorted(source.rglob("*.nbi")):
            target = CACHE_FOLDER / index.relative_to(source)
            if target.exists():
                continue
            target.parent.mkdir(exist_ok=True)
            for code in index.parent.glob(f"{glob.escape(index.stem)}.*.nbc"):
                code.replace(target.with_name(code.name))
            index.replace(target)  # last: it names the others

    def end_helper(self) -> None:
        if self.helper is not None:
            self.helper.kill()
            self.helper.wait()
            self.helper = None
            shutil.rmtree(self.folder, ignore_errors=True)


def _decorator(**options: object) -> Callable[[Callable], Callable]:
    decorate = numba.njit(cache=True, nogil=True, error_model="numpy", **options)

    def decorated(function: Callable) -> Callable:
        kernel = decorate(function)
        if isinstance(kernel, CPUDispatcher):  # else compilation is switched off
            kernel._cache.__class__ = KernelCache
            kernel._cache.allocates = options.get("_nrt", True)
        return kernel

    return decorated


jit_allocating = _decorator()
# Without numba's reference counting, which touches some hundred arrays at every call of a kernel
# that is not inlined (measured: DumbBot 12.2 -> 4.7 us a decision). Such a kernel makes no array.
jit = _decorator(_nrt=False)
# For sums of floats, which the compiler may then reorder to use vector instructions.
jit_float = _decorator(_nrt=False, fastmath={"reassoc", "contract", "nsz"})
_INNER = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_without_entry = _decorator(**_INNER)
_without_call = _decorator(**_INNER, forceinline=True)


class _Inner(CPUDispatcher):
    """A kernel that only other kernels call; a call from Python would end the process."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        raise TypeError(f"{self.py_func.__name__} can only be called by another kernel")


def jit_inner(function: Callable) -> Callable:
    """`jit` for a kernel that only other kernels call. It has no entry from Python, which is much
    of the code: before its first update, training compiles for 70 s instead of 87."""
    return _as_inner(_without_entry(function))


def jit_merged(function: Callable) -> Callable:
    """`jit_inner` for a kernel that is compiled into its callers: it runs often, and is called from
    one place only. A call copies the pointer, shape and strides of every array among its arguments;
    without these calls random games take a quarter less time."""
    return _as_inner(_without_call(function))


def _as_inner(kernel: Callable) -> Callable:
    if isinstance(kernel, CPUDispatcher):  # else compilation is switched off
        kernel.__class__ = _Inner
    return kernel


def compiled(kernel: Callable, *arguments: object) -> Callable:
    """Return the machine code of a kernel for arguments of the types of these, which nothing
    checks. Called itself, a kernel looks up the types of all arrays: some 60 us for the tables of a
    map, where this takes 4."""
    if numba.config.DISABLE_JIT:
        return kernel
    if isinstance(kernel, _Inner):
        raise TypeError(f"{kernel.py_func.__name__} can only be called by another kernel")
    current = _Compilation.current
    if current is not None and kernel.py_func.__name__ == current.HELPED:
        current.await_helper()
    signature = tuple(map(numba.typeof, arguments))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
