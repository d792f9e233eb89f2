"""Telling the processor which memory will be wanted soon, so that it is there by then."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.extending import intrinsic

LINE = 64  # bytes that come at a time


def _prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Ask for the line with item `at` of a C-ordered array, counted as if it had one dimension. Changes nothing."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, value=args[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        name = "llvm.prefetch.p0i8"
        ask = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        builder.call(ask, [builder.bitcast(builder.gep(data, [args[1]]), byte), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.intp), generate


prefetch: Any = intrinsic(_prefetch)
