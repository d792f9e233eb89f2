"""The one decorator of every kernel, and of the parts that kernels consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core.registry import CPUDispatcher

from netclust.kernels import announcing
from netclust.kernels.cache import KernelCache
from netclust.kernels.cache_folder import choose, warn
from netclust.kernels.digests import name_of
from netclust.kernels.parts import PartCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_FOLDER, _OBJECTIONS = choose()
"""The folder of compiled kernels; None means that every start compiles again."""

if CACHE_FOLDER is None:
    warn(_OBJECTIONS)


def kernel(function: Function) -> Function:
    """Compile: nopython, GIL released, cached where possible; never fastmath, so that results are exact."""
    compiled: Any = _compiled(function, no_cfunc_wrapper=True)
    compiled.__class__ = Kernel
    compiled._cache = KernelCache(compiled, CACHE_FOLDER)
    kept: Function = compiled
    return kept


def inner(function: Function, **options: bool) -> Function:
    """Compile as a part of other kernels: no entry from Python and no cache of its own, which is quicker to compile."""
    compiled: Any = _compiled(
        function, no_cfunc_wrapper=True, no_cpython_wrapper=True, pipeline_class=PartCompiler, **options
    )
    compiled.__class__ = _Part
    part: Function = compiled
    return part


def inlined(function: Function) -> Function:
    """As `inner`, and always copied into its callers: for the small steps of a hot loop, where passing arrays costs."""
    return inner(function, forceinline=True)


class Kernel(CPUDispatcher):
    """A kernel that announces when it is compiled."""

    def compile(self, sig: Any) -> Any:
        try:
            entry = super().compile(sig)
            announcing.finish(name_of(self))
        finally:
            announcing.erase()
        return entry

    def forget_cache(self) -> None:
        """Neither read nor write kept code from now on."""
        self._cache.disable()


class _Part(CPUDispatcher):
    """A kernel that only kernels can call: without an entry, a call from Python would crash the process."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a part of other kernels, call those (or its .py_func)")

    def compile(self, sig: Any) -> Any:
        entry = super().compile(sig)
        announcing.finish(name_of(self))
        return entry


def _compiled(function: Function, **options: Any) -> Function:
    loosely_typed: Any = numba
    compiled: Function = loosely_typed.njit(nogil=True, error_model="numpy", **options)(function)
    return compiled
