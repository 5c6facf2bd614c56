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


class KernelCompiler(Compiler):
    """Compiles a kernel for Python."""

    library = _Library

    def __init__(self, typing: BaseContext, target: CPUContext, _library: object, *others: object):
        super().__init__(typing, target, self.library(target.codegen(), "kernel"), *others)


class InnerCompiler(KernelCompiler):
    """Compiles a kernel for other kernels."""

    library = _InnerLibrary
