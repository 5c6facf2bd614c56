"""The `jit` decorators of the project, with a compilation cache that cannot go stale.

numba's own cache notices a change in the file of a kernel, but not in a kernel of another file that
was compiled into it. Here a kernel that Python calls lies in a file of its own, under a hash of its
source file, of all that this imports from the package, and so on, and of the types of its
arguments. All clones and installations share their kernels. Kernels release the interpreter lock;
VectorGame runs them on slices of its games in threads.
"""

import contextlib
import hashlib
import os
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import ModuleRef, parse_assembly
from numba.core import event, serialize, sigutils, types
from numba.core.base import BaseContext
from numba.core.caching import NullCache
from numba.core.codegen import Codegen, JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.registry import CPUDispatcher

from . import _records  # noqa: F401 (numba then knows records)

try:
    import fcntl
except ImportError:  # no POSIX: processes that start together compile the same kernels
    fcntl = None

_PACKAGE = Path(__file__).parent
_IMPORT = rb"^\s*from (\.+)([\w.]*) import \(?\s*(\w+)"  # `from . import` names one


@cache
def _kernel_sources(kernels: Path) -> dict[str, bytes]:
    """Return the files that a file of kernels is compiled from, by their path in the package."""
    pending, sources = [kernels], {}
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
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    homes = [os.environ.get("NUMBA_CACHE_DIR")]
    if not cache.startswith("~"):  # where there is no home, that stays as it is
        homes.append(os.path.join(cache, "diplomacy_engine"))
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

    def __init__(self, kernel: CPUDispatcher, allocates: bool):
        self.kernel, self.allocates = kernel, allocates
        self.compiling = contextlib.ExitStack()

    def file(self, signature: object, codegen: Codegen) -> Path:
        function = self.kernel.py_func
        arguments, _ = sigutils.normalize_signature(signature)
        kind = sys.version, numba.__version__, codegen.magic_tuple(), arguments
        digest = hashlib.sha256(repr(kind).encode())
        for name, text in _kernel_sources(Path(function.__code__.co_filename)).items():
            digest.update(name.encode() + text)
        name = f"{function.__module__}.{function.__qualname__}".removeprefix(f"{__package__}.")
        return Path(CACHE_FOLDER) / f"{name}-{digest.hexdigest()[:24]}.kernel"

    def load_overload(self, sig: object, target_context: BaseContext) -> CompileResult | None:
        """Return a kernel that was compiled before. Else other processes wait for this one."""
        if self.allocates:  # else that would load all that numba compiles with, for some 0.15 s
            target_context.refresh()
        file = self.file(sig, target_context.codegen())
        kernel = _load(file, target_context)
        if kernel is None and fcntl:
            with contextlib.suppress(OSError):
                lock = self.compiling.enter_context(file.with_suffix(".lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                kernel = _load(file, target_context)
                if kernel is not None:
                    self.compiling.close()
        return kernel

    def save_overload(self, sig: object, data: CompileResult) -> None:
        file = self.file(sig, data.codegen)
        part = file.with_suffix(f".{os.getpid()}")
        *parts, inner = data._reduce()
        inner = [one for one in inner if one.consts]  # others only import modules of numba
        try:
            part.write_bytes(serialize.dumps((*parts, inner)))
            part.replace(file)
            file.with_suffix(".lock").unlink(missing_ok=True)
        except OSError as error:
            if not KernelCache.warned:
                KernelCache.warned = True
                print(
                    f"compiled kernels cannot be saved in {CACHE_FOLDER} "
                    f"({error.strerror or error}), so every start compiles them again",
                    file=sys.stderr,
                    flush=True,
                )
        self.compiling.close()


def _load(file: Path, target_context: Any) -> CompileResult | None:
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


def announce_compilation() -> None:
    """Say it when kernels are compiled, from now on; if there are none yet, say so at once."""
    if numba.config.DISABLE_JIT or _Compilation.current is not None:
        return
    _Compilation.current = compilation = _Compilation()
    event.register("numba:compile", compilation)
    if not kernels_are_cached():
        compilation.announce("this takes about a minute")


class _Compilation(event.Listener):
    """Announces compilation, and counts kernels on a terminal's line."""

    current: "_Compilation | None" = None
    SILENT = 2.0  # seconds of compilation that need no words

    def __init__(self) -> None:
        self.announced = False
        self.kernels = self.depth = 0
        self.started = self.seconds = 0.0

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


class _Library(JITCodeLibrary):
    """Of a kernel that Python calls. numba's own would optimize twice, for reference counting."""

    _object_caching_enabled = True
    _compiled_object, _compiled = None, False

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _get_module_for_linking(self) -> ModuleRef:
        """Return only the names that it defines, which loading needs. Nothing is linked with
        it; as bitcode it would take more room in the file and in memory than as machine code."""
        defined = (*self._final_module.functions, *self._final_module.global_variables)
        names = [value.name for value in defined if not value.is_declaration]
        return parse_assembly("\n".join(f'@"{name}" = global i8 0' for name in names))


class _InnerLibrary(JITCodeLibrary):
    """Of a kernel that another one calls: it is optimized, and made machine code, as a part of that
    one alone."""

    codegen = property(lambda self: self)

    def set_env(self, *_: Any) -> None:
        """Nothing runs here."""

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    def _optimize_final_module(self) -> None:
        """Left to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _Compiler(Compiler):
    library = _Library

    def __init__(self, typing: Any, target: Any, _library: Any, *others: Any):
        super().__init__(typing, target, self.library(target.codegen(), "kernel"), *others)


class _InnerCompiler(_Compiler):
    library = _InnerLibrary


class _Kernel(CPUDispatcher):
    """A kernel with an entry for Python; other kernels are compiled with its `inner` one."""

    def __init__(self, function: Callable, **options: Any):
        options |= {"nopython": True, "nogil": True, "error_model": "numpy"}
        options |= {"no_cfunc_wrapper": True}
        super().__init__(function, None, options, _Compiler)
        options = options | {"no_cpython_wrapper": True}
        self.inner = CPUDispatcher(function, None, options, _InnerCompiler)
        self._cache = KernelCache(self, options.get("_nrt", True))

    def get_call_template(self, args: tuple, kws: dict) -> tuple:
        """Return what another kernel calls. It takes each signed integer as one of 64 bits, so it
        is not compiled for each width."""
        wide = [
            types.int64
            if isinstance(kind, types.IntEnumMember) or getattr(kind, "signed", False)
            else kind
            for kind in args
        ]
        return self.inner.get_call_template(wide, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.inner.get_overload(sig)


def _decorator(**options: Any) -> Callable[[Callable], Callable]:
    def decorated(function: Callable) -> Callable:
        return function if numba.config.DISABLE_JIT else _Kernel(function, **options)

    return decorated


jit_allocating = _decorator()
# Without numba's reference counting, which touches some hundred arrays at every call of a kernel
# that is not inlined (measured: DumbBot 12.2 -> 4.7 us a decision). Such a kernel makes no array.
jit = _decorator(_nrt=False)
# For sums of floats, which the compiler may then reorder to use vector instructions.
jit_float = _decorator(_nrt=False, fastmath={"reassoc", "contract", "nsz"})
# A kernel that is compiled into its callers: it runs often, and is called from one place only. A
# call copies the pointer, shape and strides of every array among its arguments; without these calls
# random games take a quarter less time.
jit_merged = _decorator(_nrt=False, forceinline=True)


def compiled(kernel: CPUDispatcher, *arguments: object) -> Callable:
    """Return the machine code of a kernel for arguments of the types of these, which nothing
    checks. Called itself, a kernel looks up the types of all arrays: some 60 us for the tables of a
    map, where this takes 4."""
    if numba.config.DISABLE_JIT:
        return kernel
    signature = tuple(map(numba.typeof, arguments))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
