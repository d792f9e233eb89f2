"""The reference set: one of every class, the rest in proportion, and never more than there are."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.reference import allocate, draw_reference

FUZZ = settings(max_examples=3000 if os.environ.get("NETCLUST_LONG") else 300, deadline=None)

NSL_KDD = {
    "normal": (67343, 138), "neptune": (41214, 85), "satan": (3633, 9), "ipsweep": (3599, 8), "portsweep": (2931, 7),
    "smurf": (2646, 6), "nmap": (1493, 4), "back": (956, 3), "teardrop": (892, 3), "warezclient": (890, 3),
    "pod": (201, 2), "guess_passwd": (53, 1), "buffer_overflow": (30, 1), "warezmaster": (20, 1), "land": (18, 1),
    "imap": (11, 1), "rootkit": (10, 1), "loadmodule": (9, 1), "ftp_write": (8, 1), "multihop": (7, 1), "phf": (4, 1),
    "perl": (3, 1), "spy": (2, 1),
}  # fmt: skip


def test_the_toy_allocation_differs() -> None:
    assert allocate([60, 30, 9, 1], 10) == [5, 3, 1, 1]


def test_the_published_allocation_differs() -> None:
    sizes = [size for size, _ in NSL_KDD.values()]
    assert dict(zip(NSL_KDD, allocate(sizes, 280), strict=True)) == {name: k for name, (_, k) in NSL_KDD.items()}


@FUZZ
@given(st.lists(st.integers(0, 30) | st.integers(0, 100_000), min_size=1, max_size=30), st.integers(0, 2000))
def test_a_class_gets_nothing_or_more_than_it_has(counts: list[int], total: int) -> None:
    classes = sum(count > 0 for count in counts)
    if total < classes:
        with pytest.raises(InputError, match=f"reference set of {total} cannot hold one record of each of {classes}"):
            allocate(counts, total)
        return
    taken = allocate(counts, total)
    assert sum(taken) == min(total, sum(counts))
    assert all(min(1, count) <= k <= count for k, count in zip(taken, counts, strict=True))


@FUZZ
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.integers(1, 500))
def test_a_larger_class_gets_fewer(counts: list[int], total: int) -> None:
    total = max(total, len(counts))
    taken = allocate(counts, total)
    for (a, i), (b, k) in zip(
        sorted(zip(counts, taken, strict=True))[:-1], sorted(zip(counts, taken, strict=True))[1:], strict=True
    ):
        assert i <= k + (a == b)


@FUZZ
@given(st.lists(st.integers(50, 1000), min_size=1, max_size=8), st.integers(8, 40))
def test_a_share_is_off_by_more_than_one(counts: list[int], total: int) -> None:
    spare = total - len(counts)
    for k, count in zip(allocate(counts, total), counts, strict=True):
        assert abs(k - 1 - spare * count / sum(counts)) < 1


@FUZZ
@given(st.lists(st.integers(-1, 5), min_size=1, max_size=80), st.integers(1, 60), st.integers(0, 9))
def test_a_draw_repeats_a_record_or_misses_a_class(labels: list[int], total: int, seed: int) -> None:
    label = np.array(labels, np.int32)
    classes = set(labels) - {-1}
    if not classes:
        with pytest.raises(InputError, match="no labelled record"):
            draw_reference(label, total, np.random.default_rng(seed))
        return
    if total < len(classes):
        with pytest.raises(InputError, match="cannot hold"):
            draw_reference(label, total, np.random.default_rng(seed))
        return
    rows = draw_reference(label, total, np.random.default_rng(seed))
    assert rows.dtype == np.int64
    assert len(rows) == min(total, int((label >= 0).sum()))
    assert (np.diff(rows) > 0).all()  # stream order, no record twice
    assert set(label[rows].tolist()) == classes
    assert rows.tolist() == draw_reference(label, total, np.random.default_rng(seed)).tolist()


def test_every_seed_draws_the_same() -> None:
    label = np.repeat(np.arange(3, dtype=np.int32), 200)
    draws = {tuple(draw_reference(label, 30, np.random.default_rng(seed)).tolist()) for seed in range(5)}
    assert len(draws) == 5


def test_a_draw_prefers_some_records() -> None:
    label = np.zeros(20, np.int32)
    drawn = np.zeros(20)
    for seed in range(400):
        drawn[draw_reference(label, 5, np.random.default_rng(seed))] += 1
    assert drawn.min() > 60  # 100 expected, standard deviation 8.7
    assert drawn.max() < 140
