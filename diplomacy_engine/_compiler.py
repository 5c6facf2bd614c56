"""How kernels are compiled: numba's compiler without the work that no kernel here needs.

These classes replace private methods of numba's, so pyproject.toml admits only the version of numba
that the tests passed with.
"""

from typing import Any

from llvmlite.binding import ModuleRef, parse_assembly
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext
from numba.core.typing.context import BaseContext


class _Library(JITCodeLibrary):
    """The code of a kernel that Python calls."""

    # What numba sets for a cache of its own (`enable_object_caching`): the machine code is kept at
    # hand, and KernelCache saves it.
    _object_caching_enabled = True
    _compiled_object = None
    _compiled = False

    def _optimize_final_module(self) -> None:
        """Optimize once. numba does it before and after it removes reference counts, which most
        kernels do not have."""
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _get_module_for_linking(self) -> ModuleRef:
        """Return a module of placeholders with the names that it defines, which loading needs.
        Nothing is linked with it; as bitcode it would take more room in the file and in memory than
        as machine code."""
        defined = (*self._final_module.functions, *self._final_module.global_variables)
        names = [value.name for value in defined if not value.is_declaration]
        return parse_assembly("\n".join(f'@"{name}" = global i8 0' for name in names))


class _InnerLibrary(JITCodeLibrary):
    """The code of a kernel that another one calls. It is optimized, and made machine code, only as
    a part of that one; so what numba does with machine code is left out here."""

    @property
    def codegen(self) -> "_InnerLibrary":
        """Return this library, so that numba, which ends a compilation with
        `library.codegen.set_env(...)`, calls the one below."""
        return self

    def set_env(self, *_: Any) -> None:
        """There is no machine code to write into."""

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0, numba's answer where a library has no such symbol."""
        return 0

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Do what numba does but for making machine code and verifying it."""
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):
    """Compiles a kernel for Python."""

    library = _Library

    def __init__(self, typing: BaseContext, target: CPUContext, _library: object, *others: object):
        super().__init__(typing, target, self.library(target.codegen(), "kernel"), *others)


class InnerCompiler(KernelCompiler):
    """Compiles a kernel for other kernels."""

    library = _InnerLibrary
