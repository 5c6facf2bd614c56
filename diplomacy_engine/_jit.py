"""The `jit` decorators of the project.

Kernels release the interpreter lock; VectorGame runs them on slices of its games in threads. They
are compiled when they are first called, and kept for later processes (`_kernel_cache`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from . import _records  # noqa: F401 (numba then knows records)
from ._compiler import InnerCompiler, KernelCompiler
from ._kernel_cache import KernelCache


class _Kernel(CPUDispatcher):
    """A kernel, which Python calls, and other kernels.

    A dispatcher of numba compiles a function for the types of each call. Here there are two of
    them for one function. The kernel itself is the one for Python: its machine code can be called
    from there, and is kept in a file. `inner` is the one for other kernels: numba asks for it by
    `get_call_template` and `get_overload` when it compiles a kernel that calls this one, and its
    code becomes a part of that one's, so it is neither kept nor made ready for Python.
    """

    def __init__(self, function: Callable, **options: Any):
        options |= {"nopython": True, "nogil": True, "error_model": "numpy"}
        options |= {"no_cfunc_wrapper": True}
        super().__init__(function, None, options, KernelCompiler)
        inner_options = options | {"no_cpython_wrapper": True}
        self.inner = CPUDispatcher(function, None, inner_options, InnerCompiler)
        self._cache = KernelCache(self, allocates=options.get("_nrt", True))

    def compile(self, sig: object) -> object:
        """Return the machine code for a signature: the one in memory, the kept one, or a new one.

        The cache takes a lock on the kernel's file before a compilation. It is this method's to let
        go of, also where the kernel cannot be compiled; then other processes may compile it.
        """
        with global_compiler_lock, self._cache.lock:
            return super().compile(sig)

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
        """Return the machine code that another kernel calls."""
        return self.inner.get_overload(sig)


def jit_allocating(function: Callable, **options: object) -> Callable:
    """Decorate a kernel that may make arrays; `options` are those of `numba.jit`."""
    return function if numba.config.DISABLE_JIT else _Kernel(function, **options)


# Without numba's reference counting, which touches some hundred arrays at every call of a kernel
# that is not inlined (measured: DumbBot 12.2 -> 4.7 us a decision). Such a kernel makes no array.
jit = partial(jit_allocating, _nrt=False)
# For sums of floats, which the compiler may then reorder to use vector instructions.
jit_float = partial(jit_allocating, _nrt=False, fastmath={"reassoc", "contract", "nsz"})
# A kernel that is compiled into its callers: it runs often, and is called from one place only. A
# call copies the pointer, shape and strides of every array among its arguments; without these calls
# random games take a quarter less time.
jit_merged = partial(jit_allocating, _nrt=False, forceinline=True)


def compiled(kernel: CPUDispatcher, *arguments: object) -> Callable:
    """Return the machine code of a kernel for arguments of the types of these, which nothing
    checks. Called itself, a kernel looks up the types of all arrays: some 60 us for the tables of a
    map, where this takes 4."""
    if numba.config.DISABLE_JIT:
        return kernel
    signature = tuple(map(numba.typeof, arguments))
    kernel.compile(signature)
    return kernel.overloads[signature].entry_point
