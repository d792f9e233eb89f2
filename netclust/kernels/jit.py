"""The one decorator of every kernel, and of the parts that kernels consist of."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack

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


def kernel(function: Function, **options: bool) -> Function:
    """Compile: nopython, GIL released, cached where possible; never fastmath, so that results are exact."""
    compiled: Any = _compiled(function, no_cfunc_wrapper=True, **options)
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


def inlined(function: Function, **options: bool) -> Function:
    """As `inner`, and always copied into its callers: for the small steps of a hot loop, where passing arrays costs."""
    return inner(function, forceinline=True, **options)


def borrowing(decorator: Callable[..., Function]) -> Callable[[Function], Function]:
    """Return the decorator for functions that make no array, so that references to arrays are not counted.

    Where tuples of many arrays are passed on, counting is half of what there is to compile.
    """
    return partial(decorator, _nrt=False)


class _Typed(CPUDispatcher):
    """A compiled function that knows who may call it: arrays are given back only among those that count, or not."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a call is typed, if it is allowed."""
        template = super().get_call_template(args, kws)
        caller = ConfigStack().top_or_none()
        if caller is not None and caller.nrt == self._borrows and self._gives_arrays(self.nopython_signatures):
            raise TypeError(
                f"{self.py_func.__name__} returns arrays, so its callers must borrow them if and only if it does"
            )
        return template

    @property
    def _borrows(self) -> bool:
        return not self.targetoptions.get("_nrt", True)

    def _gives_arrays(self, signatures: Any) -> bool:
        models = self.targetctx.data_model_manager
        return any(models[s.return_type].contains_nrt_meminfo() for s in signatures)


class Kernel(_Typed):
    """A kernel that announces when it is compiled."""

    _cache: KernelCache

    def compile(self, sig: Any) -> Any:
        """Compile for some types, or read what was kept."""
        collecting = gc.isenabled()
        gc.disable()  # a compiler makes millions of objects that stay: looking through them takes an eighth of the time
        try:
            entry = super().compile(sig)
            announcing.finish(name_of(self))
        finally:
            announcing.erase()
            if collecting:
                gc.enable()
        if self._borrows and self._gives_arrays(self.nopython_signatures):
            raise TypeError(f"{self.py_func.__name__} returns arrays, which a borrowing kernel cannot")
        return entry

    def forget_cache(self) -> None:
        """Neither read nor write kept code from now on."""
        self._cache.disable()


class _Part(_Typed):
    """A kernel that only kernels can call: without an entry, a call from Python would crash the process."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a part of other kernels, call those (or its .py_func)")

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a call is typed; one with a literal is that of any value, not a specialisation of its own."""
        plain = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template([types.unliteral(kind) for kind in args], plain)

    def compile(self, sig: Any) -> Any:
        """Compile for some types."""
        entry = super().compile(sig)
        announcing.finish(name_of(self))
        return entry


def _compiled(function: Function, **options: Any) -> Function:
    loosely_typed: Any = numba
    compiled: Function = loosely_typed.njit(nogil=True, error_model="numpy", **options)(function)
    return compiled
