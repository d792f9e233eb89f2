"""Parts of kernels: functions that are compiled only into those that call them.

numba optimises every function by itself, turns it into machine code, and does both once more for everything that it
is linked into. Nobody runs a part by itself, so its code waits until the kernel that contains it is optimised: once.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _PartLibrary(JITCodeLibrary):
    """Code to be linked into other code: neither optimised as a whole nor turned into machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _without_entry(library: Any, description: Any, env: Any) -> Any:
    library._ensure_finalized()
    name = description.qualname.split(".")[-1]
    return _dynfunc.make_function(description.lookup_module(), name, "", 0, env, (library,))


class PartCompiler(Compiler):
    """numba's compiler, with a library for parts."""

    def compile_extra(self, function: Any) -> Any:
        """Compile a function."""
        if self.state.library is None:
            self.state.library = _PartLibrary(self.state.targetctx.codegen(), function.__qualname__)
            self.state.targetctx.get_executable = _without_entry
        return super().compile_extra(function)
