"""Sums of bytes in vectors against plain numpy: equal in every column, whatever the number of rows."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.kernels.jit import kernel
from netclust.kernels.linking import bytewise

WIDE, ROWS = bytewise.WIDE, bytewise.ROWS


@kernel
def of_members(rows, leaf, chunk, code, price, step, cap, first, out):
    begin = (leaf * rows.shape[1] + chunk) * rows.shape[2] * WIDE
    bytewise.sum_members(rows, begin, WIDE, code, price, step, cap, first, out, chunk * WIDE)
    begin += (1 + len(code)) * WIDE
    bytewise.add_points(rows, begin, WIDE, step, cap, first, len(step), out, chunk * WIDE)


@kernel
def of_boxes(least, mask, span, at, k, bit, price, step, cap, out):
    bytewise.sum_boxes(least, mask, span, at, k, bit, price, step, cap, out)


@kernel
def choices(sums, at, most, among):
    bits = bytewise.within(sums, at, most)
    return bits, bytewise.least(sums, at, among), bytewise.first_bit(bits), bytewise.first_bits(at // 8)


def units(away, cap):
    """Rows of steps apart to units: one less, at most the cap less one; sums of ROWS rows stop at 255."""
    each = np.minimum(np.maximum(away - 1, 0), cap[:, None].astype(int) - 1)
    return sum(np.minimum(each[i : i + ROWS].sum(axis=0), 255) for i in range(0, len(each), ROWS))


@pytest.mark.parametrize(("coded", "stepped", "first"), [(0, 0, 0), (3, 1, 1), (2, 11, 8), (8, 26, 8)])
def test_members(coded, stepped, first) -> None:
    rng = np.random.default_rng(stepped)
    rows = rng.integers(0, 256, (3, 2, 1 + coded + stepped, WIDE)).astype(np.uint8)
    rows[:, :, 1 : 1 + coded] %= 3
    code, price = rng.integers(0, 3, coded).astype(np.uint8), rng.integers(0, 900, coded).astype(np.uint16)
    step, cap = rng.integers(0, 256, stepped).astype(np.uint8), rng.integers(1, 256, stepped).astype(np.uint8)
    out = np.full(2 * WIDE, 7, np.uint16)
    of_members(rows, 2, 1, code, price, step, cap, first, out)
    block = rows[2, 1].astype(int)
    wanted = block[0] + ((block[1 : 1 + coded] != code[:, None]) * price[:, None].astype(int)).sum(axis=0)
    away = np.abs(block[1 + coded :] - step[:, None].astype(int))
    wanted = wanted + units(away[:first], cap[:first]) + units(away[first:], cap[first:])
    assert np.array_equal(out[WIDE:], wanted)
    assert np.array_equal(out[:WIDE], np.full(WIDE, 7))


@pytest.mark.parametrize(("coded", "stepped"), [(0, 0), (3, 1), (8, 26)])
def test_boxes(coded, stepped) -> None:
    rng = np.random.default_rng(stepped)
    width = 2 * WIDE
    least = rng.integers(0, 256, (2, width)).astype(np.uint8)
    mask = rng.integers(0, 65536, (2, coded, width)).astype(np.uint16)
    ends = np.sort(rng.integers(0, 256, (2, stepped, 2, width)), axis=2)
    span = np.ascontiguousarray(ends.reshape(2, 2 * stepped, width).astype(np.uint8))
    bit = (1 << rng.integers(0, 16, coded)).astype(np.uint16)
    price = rng.integers(0, 900, coded).astype(np.uint16)
    step, cap = rng.integers(0, 256, stepped).astype(np.uint8), rng.integers(1, 256, stepped).astype(np.uint8)
    out = np.zeros(width, np.uint16)
    for k in (0, WIDE):
        of_boxes(least, mask, span, 1, k, bit, price, step, cap, out)
    lacking = (mask[1] & bit[:, None]) == 0
    value = step[:, None].astype(int)
    away = np.maximum(ends[1, :, 0] - value, 0) + np.maximum(value - ends[1, :, 1], 0)
    wanted = least[1].astype(int) + (lacking * price[:, None].astype(int)).sum(axis=0) + units(away, cap)
    assert np.array_equal(out, wanted)


def test_bits() -> None:
    rng = np.random.default_rng(0)
    for at in (0, 64, 512):
        sums = rng.integers(0, 40, 1024).astype(np.uint16)
        among = int(rng.integers(1, 2**63))
        bits, lowest, first, low = choices(sums, at, np.uint16(3), np.uint64(among))
        part = sums[at : at + WIDE]
        assert bits == sum(1 << i for i in range(WIDE) if part[i] <= 3)
        chosen = [i for i in range(WIDE) if among >> i & 1]
        assert lowest == sum(1 << i for i in chosen if part[i] == part[chosen].min())
        assert first == min((i for i in range(WIDE) if part[i] <= 3), default=WIDE)
        assert low == 2 ** (at // 8) - 1
