"""Delimited text to columns: numbers, interned symbols, times and text spans, checked as they are read.

One call parses as many whole lines as it can and stops at the first bad one, saying which column and why; the
caller decides whether to go on behind it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel

# What a column is.
SKIP, NUMBER, INTEGER, SYMBOL, TEXT, TIME = range(6)

# Why a call returned.
DONE, BAD_LINE, GROW, FULL = range(4)

# What is wrong with a field, or (COLUMNS, LONG_LINE, SPARSE) with the line.
COLUMNS, NOT_A_NUMBER, OUT_OF_RANGE, NOT_INTEGER, TOO_LONG, NOT_A_TIME, LONG_LINE, SPARSE = range(8)

MAX_SYMBOL_BYTES = 255
NO_SEED = np.int64(0)
MAX_POWER = 99_999_999  # of ten, as written; more than a line has digits

# Slots of the result array.
STATUS, ROWS, CONSUMED, LINES, COLUMN, START, LENGTH, REASON, FOUND, OVERFLOW = range(10)


class ParsePlan(NamedTuple):
    """What each column is, where it goes, and what it may hold."""

    kind: NDArray[np.int8]
    dest: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    strip: NDArray[np.uint8]  # a final byte to drop, 0 for none
    required: int
    delimiter: int
    comment: int  # what begins a comment line in ARFF, 0 in CSV
    time_scale: int  # nanoseconds
    key_column: int
    max_values: int
    max_line: int


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


class ParsedColumns(NamedTuple):
    """Where parsed rows go."""

    num: NDArray[np.float64]
    sym: NDArray[np.int32]
    text: NDArray[np.int64]  # [rows, columns, 2]: start and length in the buffer
    time: NDArray[np.int64]
    key: NDArray[np.uint64]
    scratch: NDArray[np.uint8]  # a symbol without its doubled quotes


@borrowing(inner)
def _fnv1a(buf: Any, start: Any, length: Any, seed: Any) -> Any:
    """Return the 64-bit FNV-1a of some bytes, after one step over `seed`."""
    h = (np.uint64(0xCBF29CE484222325) ^ np.uint64(seed)) * np.uint64(0x100000001B3)
    for i in range(start, start + length):
        h = (h ^ np.uint64(buf[i])) * np.uint64(0x100000001B3)
    return h ^ (h >> np.uint64(32))


@borrowing(inner)
def _intern(buf: Any, start: Any, length: Any, col: Any, table: Any, max_values: Any) -> Any:
    """Return the id of a symbol of that column: 1 and up, 0 if the column is full, -1 if the table must grow first."""
    h = _fnv1a(buf, start, length, col + 1)
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


@borrowing(kernel)
def hash_texts(buf: Any, spans: Any, out: Any) -> None:
    """The key hashes of some spans (start, length) of a buffer."""
    for k in range(len(spans)):
        out[k] = _fnv1a(buf, spans[k, 0], spans[k, 1], NO_SEED)


@borrowing(kernel)
def copy_symbols(old: Any, table: Any, max_values: Any) -> None:
    """Intern all symbols of one table in another, larger one: ids stay as they are."""
    for entry in range(old.counts[len(old.counts) - 2]):
        _intern(
            old.arena, old.offset[entry], np.int64(old.length[entry]), np.int64(old.column[entry]), table, max_values
        )


@borrowing(inner)
def parse_number(buf: Any, start: Any, end: Any) -> Any:
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
            power = min(power * 10 + (buf[i] - 48), MAX_POWER)
            i += 1
        exponent += sign * power
    if i != end:
        return 0.0, False
    value = np.float64(mantissa)
    if mantissa == 0:
        exponent = 0
    if exponent < 0:
        # One division by an exact power of ten is correctly rounded; beyond 10^22 steps keep the powers finite.
        if exponent < -300:
            value /= 10.0**300
            exponent += 300
        if exponent < -22:
            value /= 10.0**22
            exponent += 22
        value = value / 10.0 ** np.float64(-exponent)
    elif exponent > 0:
        value = value * 10.0 ** np.float64(exponent)
    if negative:
        value = -value
    return value, np.isfinite(value)


@borrowing(inner)
def _parse_time(buf: Any, start: Any, end: Any, scale: Any) -> Any:
    """Return nanoseconds of a decimal number of units of `scale` nanoseconds, exact; -1 if it is none, or negative."""
    whole = np.int64(0)
    i = start
    while i < end and 48 <= buf[i] <= 57:
        if whole > np.int64(900_000_000_000_000_000) // scale:  # one digit more would leave 64 bits
            return -1
        whole = whole * 10 + np.int64(buf[i] - 48)
        i += 1
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


@borrowing(inner)
def _parse_digits(buf: Any, start: Any, end: Any, count: Any) -> Any:
    """Return the number of exactly `count` digits, -1 if they are not there."""
    if start + count > end:
        return -1
    value = 0
    for i in range(start, start + count):
        if not 48 <= buf[i] <= 57:
            return -1
        value = value * 10 + (buf[i] - 48)
    return value


@borrowing(inner)
def parse_iso_time(buf: Any, start: Any, end: Any) -> Any:
    """Nanoseconds of an ISO 8601 date and time, UTC unless it names a zone; -1 if it is not one from 1970 to 2261."""
    two = np.int64(2)  # a literal would compile _parse_digits once for each value
    year = _parse_digits(buf, start, end, np.int64(4))
    month = _parse_digits(buf, start + 5, end, two)
    day = _parse_digits(buf, start + 8, end, two)
    if not (1970 <= year <= 2261 and 1 <= month <= 12 and day >= 1 and buf[start + 4] == 45 and buf[start + 7] == 45):
        return -1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > (28 + leap if month == 2 else 30 + (month + month // 8) % 2):
        return -1
    years = year - 1 if month <= 2 else year  # a year that begins in March ends with its leap day
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 719_469
    hour, minute, second, fraction, zone = 0, 0, 0, 0, 0
    i = start + 10
    if i < end:
        hour, minute = _parse_digits(buf, i + 1, end, two), _parse_digits(buf, i + 4, end, two)
        if not (buf[i] in (84, 116, 32) and 0 <= hour <= 23 and 0 <= minute <= 59 and buf[i + 3] == 58):
            return -1
        i += 6
        if i < end and buf[i] == 58:
            second = _parse_digits(buf, i + 1, end, two)
            if not 0 <= second <= 60:
                return -1
            i += 3
            if i < end and buf[i] in (44, 46):
                i += 1
                unit = 1_000_000_000
                while i < end and 48 <= buf[i] <= 57:
                    unit //= 10
                    fraction += (buf[i] - 48) * unit
                    i += 1
        if i < end and buf[i] in (90, 122):
            i += 1
        elif i < end and buf[i] in (43, 45):
            sign = 1 if buf[i] == 43 else -1
            hours, minutes = _parse_digits(buf, i + 1, end, two), 0
            i += 3
            if i < end:
                i += buf[i] == 58
                minutes = _parse_digits(buf, i, end, two)
                i += 2
            if not (0 <= hours <= 23 and 0 <= minutes <= 59):
                return -1
            zone = sign * (hours * 3600 + minutes * 60)
    if i != end:
        return -1
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second - zone
    return seconds * 1_000_000_000 + fraction if seconds >= 0 else -1


@borrowing(inner)
def _count_columns(buf: Any, start: Any, end: Any, delimiter: Any) -> Any:
    """Count the columns of one line, quotes respected."""
    columns = 1
    quote = 0
    fresh = True
    i = start
    while i < end:
        c = buf[i]
        if quote != 0:
            if c == quote:
                if i + 1 < end and buf[i + 1] == quote:
                    i += 1
                else:
                    quote = 0
        elif c == delimiter:
            columns += 1
            fresh = True
        elif fresh and (c == 34 or c == 39):
            quote = c
            fresh = False
        elif c != 32:
            fresh = False
        i += 1
    return columns


@borrowing(inner)
def _unquote(buf: Any, start: Any, end: Any, quote: Any, scratch: Any) -> Any:
    """Copy a value to `scratch` with single quotes for doubled ones; its length, or the first that does not fit."""
    length = 0
    i = start
    while i < end and length < len(scratch):
        scratch[length] = buf[i]
        length += 1
        i += 2 if buf[i] == quote else 1
    return length


@borrowing(kernel)
def parse_lines(
    buf: Any, start: Any, end: Any, row: Any, plan: Any, iso: Any, table: Any, out: Any, result: Any
) -> None:
    """Parse the whole lines of buf[start:end] into `out` from `row` on; `result` tells what happened."""
    columns = len(plan.kind)
    rows = len(out.time)
    result[:] = 0
    position = start
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
        long = newline - position > plan.max_line
        if not long and (first == stop or (plan.comment != 0 and buf[first] == plan.comment)):
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
        if long:
            reason = LONG_LINE
        elif plan.comment != 0 and buf[first] == 123:
            reason = SPARSE
        while reason < 0:
            begin = at
            quote = 0
            doubled = False
            while begin < stop and buf[begin] == 32 and plan.delimiter != 32:
                begin += 1
            if begin < stop and (buf[begin] == 34 or buf[begin] == 39):
                quote = buf[begin]
                begin += 1
                close = begin
                while close < stop:
                    if buf[close] == quote:
                        if close + 1 == stop or buf[close + 1] != quote:
                            break
                        doubled = True
                        close += 1
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
                source, at_symbol, length = buf, begin, close - begin
                if doubled:
                    source, at_symbol = out.scratch, 0
                    length = _unquote(buf, begin, close, quote, out.scratch)
                if length > MAX_SYMBOL_BYTES:
                    reason = TOO_LONG
                    break
                ident = 0
                if length > 0 and not (length == 1 and buf[begin] == 63):  # "?" is missing, as in ARFF
                    ident = _intern(source, at_symbol, length, dest, table, plan.max_values)
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
                scale = plan.time_scale
                time = parse_iso_time(buf, begin, close) if iso else _parse_time(buf, begin, close, scale)
                if time < 0:
                    reason = NOT_A_TIME
                    break
                out.time[row] = time
            if column == plan.key_column:
                out.key[row] = _fnv1a(buf, begin, close - begin, NO_SEED)
            column += 1
            if at >= stop:
                break
            at += 1
        if reason < 0 and column < plan.required:
            reason = COLUMNS
        if reason >= 0:
            found = 0
            if reason != LONG_LINE and reason != SPARSE:
                found = _count_columns(buf, position, stop, plan.delimiter)
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
            if c == plan.key_column:
                out.key[row] = 0
        row += 1
        lines += 1
        position = newline + 1
    result[ROWS] = row
    result[CONSUMED] = min(position, end)
    result[LINES] = lines
