"""Hashed pairs: what they refuse, and plain twins of everything that they sum."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_cases import dense_psi, random_pairs
from hypothesis import given
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.kernels.structured.sparse_rows import (
    add_rows,
    keep_slots,
    score_some_rows,
    signed_slots,
    sum_signed_slots,
)
from netclust.structures.hashed_pairs import HashedPairs

SEEDS = st.integers(0, 2**32 - 1)


def rows_of(x):
    """The slots of every row, as lists."""
    return [x.slots[x.at[r] : x.at[r + 1]].tolist() for r in range(len(x.at) - 1)]


def made(items=2, dimension=4, starts=(0, 0, 1), at=(0, 2), slots=(1, 3)):
    return HashedPairs(items, dimension, np.array(starts, np.int64), np.array(at, np.int64), np.array(slots, np.uint32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": 3}, "3 items need 4 starts"),
        ({"items": -1, "starts": ()}, "-1 items"),
        ({"starts": ()}, "starts of rows"),
        ({"starts": (1, 1, 1)}, "rising from 0"),
        ({"starts": (0, 1, 0)}, "rising from 0"),
        ({"starts": (0, 1, 1)}, "more candidates than there are items before it"),
        ({"starts": (0, 0, 2), "at": (0, 1, 2)}, "more candidates"),
        ({"at": (0,)}, "1 pairs need one more start"),
        ({"at": (1, 2)}, "rising from 0"),
        ({"starts": (0, 0, 1, 3), "items": 3, "at": (0, 2, 1, 2)}, "rising from 0"),
        ({"slots": (1,)}, "slots must be 2 numbers below 4"),
        ({"slots": (1, 4)}, "slots must be 2 numbers below 4"),
    ],
)
def test_rows_that_would_be_read_out_of_bounds_are_refused(change, message):
    assert made().items == 2
    with pytest.raises(InputError, match=message):
        made(**change)


def test_lengths_that_differ_are_refused():
    x = made()
    with pytest.raises(InputError, match="3 weights for 4 slots"):
        x.scores(np.zeros(3))
    with pytest.raises(InputError, match="2 numbers for 1 pairs"):
        x.weighted_sum(np.zeros(2))
    with pytest.raises(InputError, match="from 0 to 3"):
        x.with_slots(np.array([4]))
    with pytest.raises(InputError, match="from 0 to 3"):
        x.with_slots(np.array([-1]))
    with pytest.raises(InputError, match="twice"):
        x.with_slots(np.array([1, 1]))


@pytest.mark.parametrize("items", [0, 1, 2])
def test_a_set_without_pairs_has_empty_sums(items):
    x = HashedPairs.of_rows(items, 3, [0] * max(0, items - 1), [])
    assert x.scores(np.ones(3)).shape == (0,)
    assert x.weighted_sum(np.zeros(0)).tolist() == [0, 0, 0]
    assert len(x.index.left) == 0
    assert x.with_slots(np.array([2], np.int64)).items == items
    assert (x.self_scores(np.ones(3)).shape, x.self_sum(np.ones(items)).shape) == ((items,), (3,))


@given(st.integers(0, 9), SEEDS)
def test_sums_equal_those_of_dense_rows(n, seed):
    rng = np.random.default_rng(seed)
    x = random_pairs(rng, n) if n else HashedPairs.of_rows(0, 6, [], [])
    psi, w, e = dense_psi(x), rng.integers(-8, 9, 6) / 4, rng.integers(-2, 3, len(x.at) - 1) / 2
    assert x.scores(w).tolist() == (psi @ w).tolist()
    assert x.weighted_sum(e).tolist() == (psi.T @ e).tolist()


@given(st.integers(1, 9), SEEDS)
def test_pairs_are_with_the_items_right_before_oldest_first(n, seed):
    x = random_pairs(np.random.default_rng(seed), n)
    want = [(i, j) for j in range(n) for i in range(j - int(x.starts[j + 1] - x.starts[j]), j)]
    assert list(zip(x.index.left.tolist(), x.index.right.tolist(), strict=True)) == want


@given(st.integers(1, 8), SEEDS)
def test_chosen_slots_keep_their_order_and_rows(n, seed):
    rng = np.random.default_rng(seed)
    x = random_pairs(rng, n)
    chosen = rng.permutation(6)[: rng.integers(0, 7)]
    fewer = x.with_slots(chosen)
    number = {int(slot): k for k, slot in enumerate(chosen)}
    assert rows_of(fewer) == [[number[slot] for slot in row if slot in number] for row in rows_of(x)]
    assert (fewer.dimension, fewer.items) == (len(chosen), n)
    assert fewer.starts.tolist() == x.starts.tolist()


def test_choosing_slots_leaves_the_pairs_unchanged():
    x = made()
    x.with_slots(np.array([3]))
    assert (x.slots.tolist(), x.dimension) == ([1, 3], 4)


@given(st.integers(1, 9), SEEDS)
def test_kernels_of_some_rows_equal_their_plain_twins(n, seed):
    rng = np.random.default_rng(seed)
    x = random_pairs(rng, n)
    rows, w = rows_of(x), rng.normal(size=6)
    some, others = (rng.permutation(len(rows))[: rng.integers(0, len(rows) + 1)] for _ in range(2))

    scores = np.full(len(rows), 7.0)
    score_some_rows(x.at, x.slots, some, w, scores)
    want = [7.0] * len(rows)
    for r in some:
        want[r] = 0.0
        for slot in rows[r]:
            want[r] += w[slot]
    assert scores.tolist() == want

    total, plain = w.copy(), w.copy()
    add_rows(x.at, x.slots, some, -0.3, total)
    for r in some:
        for slot in rows[r]:
            plain[slot] += -0.3
    assert total.tolist() == plain.tolist()

    keys = np.full(len(x.slots) * 2, -1, np.int64)
    count = signed_slots(x.at, x.slots, some, others, keys)
    signed = [2 * s for r in some for s in rows[r]] + [2 * s + 1 for r in others for s in rows[r]]
    assert keys[:count].tolist() == signed
    slots, values = np.zeros(count, np.int64), np.zeros(count)
    kept = sum_signed_slots(np.sort(keys[:count]), slots, values)
    sums = {s: sum(1 - 2 * (k & 1) for k in signed if k >> 1 == s) for s in range(6)}
    assert dict(zip(slots[:kept].tolist(), values[:kept].tolist(), strict=True)) == {s: v for s, v in sums.items() if v}


def test_kept_slots_are_written_within_the_rows():
    at, kept = np.full(3, 9, np.int64), np.full(4, 9, np.uint32)
    slots, number = np.array([0, 2, 1, 2], np.uint32), np.array([-1, -1, 0], np.int64)
    assert keep_slots(np.array([0, 2, 4]), slots, number, at, kept) == 2
    assert (at.tolist(), kept.tolist()) == ([0, 1, 2], [0, 0, 9, 9])
