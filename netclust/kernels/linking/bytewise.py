"""Sums of small integers for 64 columns at a time, in vectors of bytes: what `boxes` adds up for members and boxes.

Written in the compiler's own vectors, since loops over so few columns spend more on being set up than on the work. An
array is passed with the place of its first item, counted as if it had one dimension; it must be C-ordered. Bytes are
added two rows at a time, held at 255, and only then widened: still a lower bound of the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic

from netclust.kernels.jit import inlined

WIDE = 64
ROWS = 2  # bytes of so many rows are added before the sum is widened

_BYTE, _WORD, _LONG = ir.IntType(8), ir.IntType(16), ir.IntType(64)
_BYTES, _WORDS = ir.VectorType(_BYTE, WIDE), ir.VectorType(_WORD, WIDE)
_INDEX = numba.types.intp
_Away = Callable[[Any, Any, Any, Any], Any]


def _declared(module: Any, name: str, kind: Any) -> Any:
    return module.globals.get(name) or ir.Function(module, kind, name)


class _Vectors:
    """What the parts below write with: a place to write to, and arrays as pointers."""

    def __init__(self, context: Any, builder: Any, signature: Any) -> None:
        self.context, self.b, self.signature = context, builder, signature

    def place(self, which: int, args: Any, at: Any) -> Any:
        """A pointer to item `at` of an argument."""
        made = self.context.make_array(self.signature.args[which])(self.context, self.b, value=args[which])
        return self.b.gep(made.data, [at])

    def length(self, which: int, args: Any, dimension: int = 0) -> Any:
        made = self.context.make_array(self.signature.args[which])(self.context, self.b, value=args[which])
        return self.b.extract_value(made.shape, dimension)

    def vector(self, pointer: Any, kind: Any) -> Any:
        return self.b.load(self.b.bitcast(pointer, kind.as_pointer()), align=1)

    def put(self, value: Any, pointer: Any) -> None:
        self.b.store(value, self.b.bitcast(pointer, value.type.as_pointer()), align=1)

    def all(self, item: Any, kind: Any) -> Any:
        """A vector of the same item everywhere."""
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), item, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE)
        return self.b.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def call(self, name: str, *args: Any) -> Any:
        kind = args[0].type
        full = f"llvm.{name}.v{WIDE}i{kind.element.width}"
        return self.b.call(_declared(self.b.module, full, ir.FunctionType(kind, [kind] * len(args))), list(args))

    def less(self, a: Any, b: Any) -> Any:
        """a - b, 0 where b is greater."""
        return self.call("usub.sat", a, b)

    def units(self, away: Any, cap: Any) -> Any:
        """The whole units in so many steps: one less, up to the cap less one."""
        one = ir.Constant(_BYTES, [1] * WIDE)
        return self.call("umin", self.less(away, one), self.less(self.all(cap, _BYTES), one))

    def bits(self, truth: Any) -> Any:
        return self.b.bitcast(truth, _LONG)


def _sum_rows(v: _Vectors, total: Any, begin: Any, stride: Any, args: Any, at: tuple[int, int, int], rows: Any,
              away: _Away) -> None:  # fmt: skip
    """total += the units of rows, from the first to before the last, `away` steps each; `at`: where in args the rows,
    the steps and the caps are.
    """
    builder, (first, last) = v.b, rows
    part = cgutils.alloca_once(builder, _BYTES)

    def add(j: Any) -> None:
        pointer = v.place(at[0], args, builder.add(begin, builder.mul(j, stride)))
        d = away(v, pointer, stride, v.all(builder.load(v.place(at[1], args, j)), _BYTES))
        units = v.units(d, builder.load(v.place(at[2], args, j)))
        builder.store(v.call("uadd.sat", builder.load(part), units), part)

    def widen() -> None:
        builder.store(builder.add(builder.load(total), builder.zext(builder.load(part), _WORDS)), total)

    several = ir.Constant(_LONG, ROWS)
    whole = builder.sdiv(builder.sub(last, first), several)
    with cgutils.for_range(builder, whole) as loop:
        builder.store(ir.Constant(_BYTES, [0] * WIDE), part)
        base = builder.add(first, builder.mul(loop.index, several))
        for k in range(ROWS):
            add(builder.add(base, ir.Constant(_LONG, k)))
        widen()
    done = builder.add(first, builder.mul(whole, several))
    builder.store(ir.Constant(_BYTES, [0] * WIDE), part)
    with cgutils.for_range(builder, builder.sub(last, done)) as loop:
        add(builder.add(done, loop.index))
    widen()


def _from_point(v: _Vectors, pointer: Any, wide: Any, step: Any) -> Any:
    value = v.vector(pointer, _BYTES)
    return v.b.or_(v.less(value, step), v.less(step, value))


def _from_span(v: _Vectors, pointer: Any, wide: Any, step: Any) -> Any:
    # A row is two: the least and the greatest, so the stride is given for the pair.
    low, high = v.vector(pointer, _BYTES), v.vector(v.b.gep(pointer, [v.b.sdiv(wide, ir.Constant(_LONG, 2))]), _BYTES)
    return v.b.or_(v.less(low, step), v.less(step, high))


def _sum_members(typing_context: Any, rows: Any, begin: Any, stride: Any, code: Any, price: Any, step: Any, cap: Any,
                 last: Any, out: Any, at: Any) -> Any:  # fmt: skip
    """sum_members(rows, begin, stride, code, price, step, cap, last, out, at): out[at:] = what 64 members lack by their
    first row, by the rows of codes behind it, where one is another than `code`, and by the first rows of steps.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = _Vectors(context, builder, signature)
        begin, stride, coded = args[1], args[2], v.length(3, args)
        total = cgutils.alloca_once_value(builder, builder.zext(v.vector(v.place(0, args, begin), _BYTES), _WORDS))
        behind = builder.add(begin, stride)
        with cgutils.for_range(builder, coded) as loop:
            row = v.vector(v.place(0, args, builder.add(behind, builder.mul(loop.index, stride))), _BYTES)
            other = builder.icmp_unsigned("!=", row, v.all(builder.load(v.place(3, args, loop.index)), _BYTES))
            worth = v.all(builder.load(v.place(4, args, loop.index)), _WORDS)
            more = builder.select(other, worth, ir.Constant(_WORDS, [0] * WIDE))
            builder.store(builder.add(builder.load(total), more), total)
        behind = builder.add(behind, builder.mul(coded, stride))
        _sum_rows(v, total, behind, stride, args, (0, 5, 6), (ir.Constant(_LONG, 0), args[7]), _from_point)
        v.put(builder.load(total), v.place(8, args, args[9]))
        return context.get_dummy_value()

    kinds = (rows, _INDEX, _INDEX, code, price, step, cap, _INDEX, out, _INDEX)
    return numba.types.void(*kinds), generate


def _add_points(typing_context: Any, rows: Any, begin: Any, stride: Any, step: Any, cap: Any, first: Any, last: Any,
                out: Any, at: Any) -> Any:  # fmt: skip
    """add_points(rows, begin, stride, step, cap, first, last, out, at): what 64 members lack by more rows of steps."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = _Vectors(context, builder, signature)
        target = v.place(7, args, args[8])
        total = cgutils.alloca_once_value(builder, v.vector(target, _WORDS))
        _sum_rows(v, total, args[1], args[2], args, (0, 3, 4), (args[5], args[6]), _from_point)
        v.put(builder.load(total), target)
        return context.get_dummy_value()

    return numba.types.void(rows, _INDEX, _INDEX, step, cap, _INDEX, _INDEX, out, _INDEX), generate


def _sum_boxes(typing_context: Any, least: Any, mask: Any, span: Any, at: Any, k: Any, bit: Any, price: Any, step: Any,
               cap: Any, out: Any) -> Any:  # fmt: skip
    """sum_boxes(least, mask, span, at, k, bit, price, step, cap, out): out[k:] = what any member of 64 boxes lacks: by
    the row of `least`, by masks without `bit`, and by steps outside of spans. Rows are as long as those of `least`.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = _Vectors(context, builder, signature)
        which, k, stride, coded, stepped = args[3], args[4], v.length(0, args, 1), v.length(5, args), v.length(7, args)
        begin = builder.add(builder.mul(which, stride), k)
        total = cgutils.alloca_once_value(builder, builder.zext(v.vector(v.place(0, args, begin), _BYTES), _WORDS))
        none, two = ir.Constant(_WORDS, [0] * WIDE), ir.Constant(_LONG, 2)
        with cgutils.for_range(builder, coded) as loop:
            row = builder.add(builder.mul(which, coded), loop.index)
            masks = v.vector(v.place(1, args, builder.add(builder.mul(row, stride), k)), _WORDS)
            common = builder.and_(masks, v.all(builder.load(v.place(5, args, loop.index)), _WORDS))
            worth = v.all(builder.load(v.place(6, args, loop.index)), _WORDS)
            more = builder.select(builder.icmp_unsigned("==", common, none), worth, none)
            builder.store(builder.add(builder.load(total), more), total)
        pair = builder.mul(two, stride)
        begin = builder.add(builder.mul(builder.mul(which, stepped), pair), k)
        _sum_rows(v, total, begin, pair, args, (2, 7, 8), (ir.Constant(_LONG, 0), stepped), _from_span)
        v.put(builder.load(total), v.place(9, args, k))
        return context.get_dummy_value()

    return numba.types.void(least, mask, span, _INDEX, _INDEX, bit, price, step, cap, out), generate


def _within(typing_context: Any, sums: Any, at: Any, most: Any) -> Any:
    """within(sums, at, most): a bit for each of 64 sums that is not above."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = _Vectors(context, builder, signature)
        return v.bits(builder.icmp_unsigned("<=", v.vector(v.place(0, args, args[1]), _WORDS), v.all(args[2], _WORDS)))

    return numba.types.uint64(sums, _INDEX, numba.uint16), generate


def _least(typing_context: Any, sums: Any, at: Any, among: Any) -> Any:
    """least(sums, at, among): bits of the least of the 64 sums whose bit is in `among`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        v = _Vectors(context, builder, signature)
        chosen = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), WIDE))
        sums = v.vector(v.place(0, args, args[1]), _WORDS)
        sums = builder.select(chosen, sums, ir.Constant(_WORDS, [0xFFFF] * WIDE))
        name = f"llvm.vector.reduce.umin.v{WIDE}i16"
        lowest = builder.call(_declared(builder.module, name, ir.FunctionType(_WORD, [_WORDS])), [sums])
        return builder.and_(v.bits(builder.icmp_unsigned("==", sums, v.all(lowest, _WORDS))), args[2])

    return numba.types.uint64(sums, _INDEX, numba.uint64), generate


def _first(typing_context: Any, bits: Any) -> Any:
    """first_bit(bits): the place of the lowest bit; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count = _declared(builder.module, "llvm.cttz.i64", ir.FunctionType(_LONG, [_LONG, ir.IntType(1)]))
        return builder.call(count, [args[0], ir.Constant(ir.IntType(1), 0)])

    return numba.types.int64(numba.uint64), generate


sum_members: Any = intrinsic(_sum_members)
add_points: Any = intrinsic(_add_points)
sum_boxes: Any = intrinsic(_sum_boxes)
within: Any = intrinsic(_within)
least: Any = intrinsic(_least)
first_bit: Any = intrinsic(_first)


@inlined
def first_bits(n: Any) -> Any:
    """The lowest n bits; all where n is above 63."""
    return np.uint64(0xFFFFFFFFFFFFFFFF) if n >= WIDE else (np.uint64(1) << np.uint64(n)) - np.uint64(1)
