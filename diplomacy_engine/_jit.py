"""The `jit` decorators of the project, with a compilation cache that cannot go stale.

numba's own cache notices a change in the file of a kernel, but not in a kernel of another file that
was compiled into it, and compiles a file's kernels anew wherever it was edited. Here each kernel
lies in a file of its own, under a hash of all that its machine code is made of: its bytecode, the
kernels, constants and records that it names, and so on, and the types of its arguments. All clones
and installations share their kernels. Kernels release the interpreter lock; VectorGame runs them on
slices of its games in threads.
"""

import atexit
import enum
import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numba
import numpy as np
from numba.core import event, serialize, sigutils
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.registry import CPUDispatcher
from numba.extending import _Intrinsic

from ._cores import usable_cores

_PACKAGE = Path(__file__).parent


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
_VERSIONS = sys.version, numba.__version__, np.__version__
_FOREIGN = sys.stdlib_module_names | {"numba", "llvmlite", "numpy"}


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _home(value: object) -> str:
    return getattr(value, "__module__", value.__name__).partition(".")[0]


def _description(value: object, names: set[str], known: dict[int, int]) -> Iterator[str]:
    """Yield what machine code depends on of a value that a kernel names, whatever the process.
    Of modules only `names` count; `known` numbers those (by id) that were described before."""
    if isinstance(value, set | frozenset):
        yield from sorted(map(repr, value))
    elif isinstance(value, tuple):
        for item in value:
            yield from _description(item, names, known)
    elif isinstance(value, enum.Enum):
        yield f"{value!r}"
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, CodeType):
        yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars}"
        yield from _description(value.co_consts, names, known)
    elif isinstance(value, CPUDispatcher):
        for option in sorted(value.targetoptions.items()):
            yield from _description(option, names, known)
        yield from _description(value.py_func, names, known)
    elif isinstance(value, _Intrinsic):
        yield from _description(value._defn, names, known)
    elif not isinstance(value, type | FunctionType | ModuleType):
        yield f"{value!r}"
    elif id(value) in known or _home(value) in _FOREIGN:
        yield f"{value.__name__} {known.get(id(value))}"
    elif isinstance(value, ModuleType):
        for name in sorted(names & vars(value).keys()):
            yield from _description(getattr(value, name), names, known)
    elif isinstance(value, type):
        known[id(value)] = len(known)
        yield f"{value.__qualname__} {getattr(value, '_fields', '')}"
        members = value.__members__ if issubclass(value, enum.Enum) else vars(value)
        for name, member in members.items():
            if isinstance(member, FunctionType | int | float | str) and name != "__doc__":
                yield name
                yield from _description(member, names, known)
    else:
        known[id(value)] = len(known)
        code, used = value.__code__, _names(value.__code__)
        if value.__doc__:
            code = code.replace(co_consts=(None, *code.co_consts[1:]))
        yield from _description(code, used, known)
        cells = (cell.cell_contents for cell in value.__closure__ or ())
        yield from _description((value.__defaults__, *cells), used, known)
        for name in sorted(used & value.__globals__.keys()):
            yield name
            yield from _description(value.__globals__[name], used, known)


def _type_names(kind: numba.types.Type) -> str:
    """The name of a type, with those of the fields of records, by which kernels read them."""
    fields = getattr(kind, "fields", ())
    return f"{kind.name} {fields} {[_type_names(part) for part in getattr(kind, 'types', ())]}"


class KernelCache(NullCache):
    """Keeps a compiled kernel if there is room on the disk; without room it works all the same."""

    told = False  # whether it was said that nothing can be kept

    def __init__(self, kernel: CPUDispatcher, allocates: bool):
        self.kernel, self.allocates = kernel, allocates

    def file(self, signature: object, codegen: object) -> Path:
        function, digest = self.kernel.py_func, hashlib.sha256(Path(__file__).read_bytes())
        arguments, _ = sigutils.normalize_signature(signature)
        parts = _description(self.kernel, set(), {})
        for text in (*_VERSIONS, codegen.magic_tuple(), *map(_type_names, arguments), *parts):
            digest.update(f"{text}\n".encode())
        name = f"{function.__module__}.{function.__qualname__}".removeprefix(f"{__package__}.")
        return Path(CACHE_FOLDER) / f"{name}-{digest.hexdigest()[:24]}.kernel"

    def load_overload(self, sig: object, target_context: object) -> CompileResult | None:
        if self.allocates:  # else that would load all that numba compiles with, for some 0.15 s
            target_context.refresh()
        try:
            content = self.file(sig, target_context.codegen()).read_bytes()
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def save_overload(self, sig: object, data: CompileResult) -> None:
        file = self.file(sig, data.codegen)
        part = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            part.write_bytes(serialize.dumps(data._reduce()))
            part.replace(file)
        except OSError as error:
            if not KernelCache.told:
                KernelCache.told = True
                print(
                    f"compiled kernels cannot be saved in {CACHE_FOLDER} "
                    f"({error.strerror or error}), so every start compiles them again",
                    file=sys.stderr,
                    flush=True,
                )


def kernels_are_cached() -> bool:
    """Tell whether an earlier process has left compiled kernels."""
    try:
        return bool(numba.config.DISABLE_JIT) or any(Path(CACHE_FOLDER).glob("*.kernel"))
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
        """Have a second process compile HELPED."""
        paths = [str(_PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        try:
            self.helper = subprocess.Popen(
                [sys.executable, "-c", self.HELPER],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return  # then everything is compiled here
        atexit.register(self.helper.kill)

    def await_helper(self) -> None:
        """Wait for what the second process compiles; what it fails to is compiled here."""
        if self.helper is not None:
            self.show("the last kernels are compiled by a second process")
            self.helper.wait()
            self.show("")


class _InnerLibrary(JITCodeLibrary):
    """Of a kernel that only others call: it is optimized, and made machine code, as a part of them
    alone. Before its first update, training then compiles for XX s instead of 70."""

    codegen = property(lambda self: self)

    def set_env(self, *_: object) -> None:
        """Nothing runs here."""

    def get_pointer_to_function(self, _name: str) -> int:
        return 0

    def _optimize_final_module(self) -> None:
        """Left to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _InnerCompiler(Compiler):
    def __init__(self, typing: object, target: object, library: object, *others: object):
        library = _InnerLibrary(target.codegen(), "inner")
        super().__init__(typing, target, library, *others)


class _Kernel(CPUDispatcher):
    """A kernel with an entry for Python; other kernels are compiled with its `inner` one."""

    inner: CPUDispatcher

    def get_call_template(self, args: tuple, kws: dict) -> tuple:
        return self.inner.get_call_template(args, kws)

    def get_overload(self, sig: object) -> object:
        return self.inner.get_overload(sig)


def _decorator(**options: object) -> Callable[[Callable], Callable]:
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    inner = numba.njit(**options, no_cpython_wrapper=True, pipeline_class=_InnerCompiler)
    decorate = numba.njit(**options)

    def decorated(function: Callable) -> Callable:
        kernel = decorate(function)
        if isinstance(kernel, CPUDispatcher):  # else compilation is switched off
            kernel.__class__ = _Kernel
            kernel.inner = inner(function)
            kernel._cache = KernelCache(kernel, options.get("_nrt", True))
        return kernel

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
jit_inner = jit  # of one day: what was written before uses it


def compiled(kernel: Callable, *arguments: object) -> Callable:
    """Return the machine code of a kernel for arguments of the types of these, which nothing
    checks. Called itself, a kernel looks up the types of all arrays: some 60 us for the tables of a
    map, where this takes 4."""
    if numba.config.DISABLE_JIT:
        return kernel
    current = _Compilation.current
    if current is not None and kernel.py_func.__name__ == current.HELPED:
        current.await_helper()
    signature = tuple(map(numba.typeof, arguments))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
