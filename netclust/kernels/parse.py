"""Delimited text to columns: numbers, interned symbols, times and text spans, checked as they are read.

One call parses as many whole lines as it can and stops at the first bad one, saying which column and why; the
caller decides whether to go on behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import kernel

# What a column is.
SKIP, NUMBER, INTEGER, SYMBOL, TEXT, TIME = range(6)

# Why a call returned.
DONE, BAD_LINE, GROW, FULL = range(4)

# What is wrong with a field (COLUMNS: with the line).
COLUMNS, NOT_A_NUMBER, OUT_OF_RANGE, NOT_INTEGER, TOO_LONG, NOT_A_TIME = range(6)

MAX_SYMBOL_BYTES = 255

# Slots of the result array.
STATUS, ROWS, CONSUMED, LINES, COLUMN, START, LENGTH, REASON, FOUND, OVERFLOW = range(10)


class Plan(NamedTuple):
    """What each column is, where it goes, and what it may hold."""

    kind: NDArray[np.int8]
    dest: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    strip: NDArray[np.uint8]  # a final byte to drop, 0 for none
    required: int
    delimiter: int
    comment: int
    time_scale: int
    key_column: int
    max_values: int


class Interner(NamedTuple):
    """An open-addressing table of (column, bytes) to small ids; grown by the caller, never here."""

    slots: NDArray[np.int32]  # entry + 1, 0 for free; a power of two
    hashes: NDArray[np.uint64]
    column: NDArray[np.int32]
    offset: NDArray[np.int64]
    length: NDArray[np.int32]
    ident: NDArray[np.int32]
    arena: NDArray[np.uint8]
    counts: NDArray[np.int64]  # values per column; last two: entries, bytes of the arena in use


class Columns(NamedTuple):
    """Where parsed rows go."""

    num: NDArray[np.float64]
    sym: NDArray[np.int32]
    text: NDArray[np.int64]  # [rows, columns, 2]: start and length in the buffer
    time: NDArray[np.int64]
    key: NDArray[np.uint64]


@kernel
def fnv1a(buf: Any, start: int, length: int, seed: int) -> Any:
    """64-bit FNV-1a of some bytes, after one step over `seed`."""
    h = (np.uint64(0xCBF29CE484222325) ^ np.uint64(seed)) * np.uint64(0x100000001B3)
    for i in range(start, start + length):
        h = (h ^ np.uint64(buf[i])) * np.uint64(0x100000001B3)
    return h ^ (h >> np.uint64(32))


@kernel
def intern(buf: Any, start: int, length: int, col: int, table: Any, max_values: int) -> Any:
    """The id of a symbol of that column: 1 and up, 0 if the column is full, -1 if the table must grow first."""
    h = fnv1a(buf, start, length, col + 1)
    mask = len(table.slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while True:
        entry = table.slots[slot] - 1
        if entry < 0:
            break
        if table.hashes[entry] == h and table.column[entry] == col and table.length[entry] == length:
            at = table.offset[entry]
            same = True
            for i in range(length):
                if table.arena[at + i] != buf[start + i]:
                    same = False
                    break
            if same:
                return np.int64(table.ident[entry])
        slot = (slot + 1) & mask
    columns = len(table.counts) - 2
    if table.counts[col] >= max_values:
        return 0
    entry = table.counts[columns]
    used = table.counts[columns + 1]
    if 2 * (entry + 1) > len(table.slots) or used + length > len(table.arena):
        return -1
    for i in range(length):
        table.arena[used + i] = buf[start + i]
    table.counts[col] += 1
    table.hashes[entry] = h
    table.column[entry] = col
    table.offset[entry] = used
    table.length[entry] = length
    table.ident[entry] = table.counts[col]
    table.slots[slot] = entry + 1
    table.counts[columns] = entry + 1
    table.counts[columns + 1] = used + length
    return np.int64(table.counts[col])


@kernel
def parse_number(buf: Any, start: int, end: int) -> Any:
    """(value, ok) of decimal text. Exact up to 15 digits, within an ulp or two beyond."""
    i = start
    negative = False
    if i < end and (buf[i] == 45 or buf[i] == 43):
        negative = buf[i] == 45
        i += 1
    mantissa = np.uint64(0)
    digits = 0
    exponent = 0
    seen = False
    fraction = False
    while i < end:
        c = buf[i]
        if 48 <= c <= 57:
            seen = True
            if digits < 18:
                mantissa = mantissa * np.uint64(10) + np.uint64(c - 48)
                if mantissa > 0:
                    digits += 1
                if fraction:
                    exponent -= 1
            elif not fraction:
                exponent += 1
        elif c == 46 and not fraction:
            fraction = True
        else:
            break
        i += 1
    if not seen:
        return 0.0, False
    if i < end and (buf[i] == 101 or buf[i] == 69):
        i += 1
        sign = 1
        if i < end and (buf[i] == 45 or buf[i] == 43):
            sign = -1 if buf[i] == 45 else 1
            i += 1
        if i == end:
            return 0.0, False
        power = 0
        while i < end and 48 <= buf[i] <= 57:
            power = min(power * 10 + (buf[i] - 48), 9999)
            i += 1
        exponent += sign * power
    if i != end:
        return 0.0, False
    value = np.float64(mantissa)
    if exponent < 0:
        # One division by an exact power of ten is correctly rounded; beyond 10^22 two steps keep it finite.
        if exponent < -22:
            value /= 10.0**22
            exponent += 22
        value = value / 10.0 ** np.float64(-exponent)
    elif exponent > 0:
        value = value * 10.0 ** np.float64(exponent)
    if negative:
        value = -value
    return value, np.isfinite(value)


@kernel
def parse_time(buf: Any, start: int, end: int, scale: int) -> Any:
    """Nanoseconds of a decimal number of units of `scale` nanoseconds, exact; -1 if it is not one, or negative."""
    whole = np.int64(0)
    i = start
    while i < end and 48 <= buf[i] <= 57:
        whole = whole * 10 + np.int64(buf[i] - 48)
        i += 1
        if whole > np.int64(9_000_000_000_000_000_000) // scale:
            return -1
    if i == start:
        return -1
    total = whole * scale
    if i < end and buf[i] == 46:
        i += 1
        unit = scale
        while i < end and 48 <= buf[i] <= 57:
            unit //= 10
            total += np.int64(buf[i] - 48) * unit
            i += 1
    return total if i == end else -1


@kernel
def count_columns(buf: Any, start: int, end: int, delimiter: int) -> int:
    """Columns of one line, quotes respected."""
    columns = 1
    quote = 0
    fresh = True
    for i in range(start, end):
        c = buf[i]
        if quote != 0:
            if c == quote:
                quote = 0
        elif c == delimiter:
            columns += 1
            fresh = True
        elif fresh and (c == 34 or c == 39):
            quote = c
            fresh = False
        elif c != 32:
            fresh = False
    return columns


@kernel
def parse_lines(buf: Any, end: int, row: int, plan: Any, table: Any, out: Any, result: Any) -> None:
    """Parse the whole lines of buf[:end] into `out` from `row` on; `result` tells what happened."""
    columns = len(plan.kind)
    rows = len(out.time)
    result[:] = 0
    position = 0
    lines = 0
    while position < end:
        newline = position
        while newline < end and buf[newline] != 10:
            newline += 1
        stop = newline
        if stop > position and buf[stop - 1] == 13:
            stop -= 1
        first = position
        while first < stop and (buf[first] == 32 or buf[first] == 9):
            first += 1
        if first == stop or (plan.comment != 0 and buf[first] == plan.comment):
            lines += 1
            position = newline + 1
            continue
        if row == rows:
            result[STATUS] = FULL
            break
        column = 0
        at = position
        reason = -1
        begin = at
        close = at
        while True:
            begin = at
            while begin < stop and buf[begin] == 32:
                begin += 1
            if begin < stop and (buf[begin] == 34 or buf[begin] == 39):
                quote = buf[begin]
                begin += 1
                close = begin
                while close < stop and buf[close] != quote:
                    close += 1
                at = close + 1
                while at < stop and buf[at] != plan.delimiter:
                    at += 1
            else:
                at = begin
                while at < stop and buf[at] != plan.delimiter:
                    at += 1
                close = at
                while close > begin and (buf[close - 1] == 32 or buf[close - 1] == 9):
                    close -= 1
            if column >= columns:
                reason = COLUMNS
                break
            kind = plan.kind[column]
            dest = plan.dest[column]
            if kind in (NUMBER, INTEGER):
                value, ok = parse_number(buf, begin, close)
                if not ok:
                    reason = NOT_A_NUMBER
                    break
                if value < plan.low[column] or value > plan.high[column]:
                    reason = OUT_OF_RANGE
                    break
                if kind == INTEGER and value != np.floor(value):
                    reason = NOT_INTEGER
                    break
                out.num[row, dest] = value
            elif kind == SYMBOL:
                if plan.strip[column] != 0 and close > begin and buf[close - 1] == plan.strip[column]:
                    close -= 1
                if close - begin > MAX_SYMBOL_BYTES:
                    reason = TOO_LONG
                    break
                ident = 0
                if close > begin and not (close - begin == 1 and buf[begin] == 63):  # "?" is missing, as in ARFF
                    ident = intern(buf, begin, close - begin, dest, table, plan.max_values)
                    if ident == 0:
                        result[OVERFLOW] += 1
                if ident < 0:
                    result[STATUS] = GROW
                    result[ROWS] = row
                    result[CONSUMED] = position
                    result[LINES] = lines
                    return
                out.sym[row, dest] = ident
            elif kind == TEXT:
                out.text[row, dest, 0] = begin
                out.text[row, dest, 1] = close - begin
            elif kind == TIME:
                time = parse_time(buf, begin, close, plan.time_scale)
                if time < 0:
                    reason = NOT_A_TIME
                    break
                out.time[row] = time
            if column == plan.key_column:
                out.key[row] = fnv1a(buf, begin, close - begin, 0)
            column += 1
            if at >= stop:
                break
            at += 1
        if reason < 0 and column < plan.required:
            reason = COLUMNS
        if reason >= 0:
            found = count_columns(buf, position, stop, plan.delimiter)
            if found < plan.required or found > columns:
                reason = COLUMNS
            result[STATUS] = BAD_LINE
            result[COLUMN] = column
            result[START] = begin
            result[LENGTH] = close - begin
            result[REASON] = reason
            result[FOUND] = found
            result[ROWS] = row
            result[CONSUMED] = min(newline + 1, end)
            result[LINES] = lines + 1
            return
        # An optional column that is absent must not keep what an earlier batch left in its place.
        for c in range(column, columns):
            if plan.kind[c] == SYMBOL:
                out.sym[row, plan.dest[c]] = 0
            elif plan.kind[c] == TEXT:
                out.text[row, plan.dest[c], 0] = stop
                out.text[row, plan.dest[c], 1] = 0
            elif plan.kind[c] == TIME:
                out.time[row] = -1
        row += 1
        lines += 1
        position = newline + 1
    result[ROWS] = row
    result[CONSUMED] = min(position, end)
    result[LINES] = lines
