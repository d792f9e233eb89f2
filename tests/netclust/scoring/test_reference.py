"""The reference set: one of every class, the rest in proportion, and never more than there are."""

from __future__ import annotations

import os
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.kernels.linking.covering_sample import draw_cover, make_room
from netclust.kernels.linking.score import score_columns
from netclust.records.batch import Batch
from netclust.scoring.reference import POOL, Choice, allocate_references, covering_reference, draw_reference
from netclust.scoring.similarity import in_units

FUZZ = settings(max_examples=3000 if os.environ.get("NETCLUST_LONG") else 300, deadline=None)

NSL_KDD = {
    "normal": (67343, 138), "neptune": (41214, 85), "satan": (3633, 9), "ipsweep": (3599, 8), "portsweep": (2931, 7),
    "smurf": (2646, 6), "nmap": (1493, 4), "back": (956, 3), "teardrop": (892, 3), "warezclient": (890, 3),
    "pod": (201, 2), "guess_passwd": (53, 1), "buffer_overflow": (30, 1), "warezmaster": (20, 1), "land": (18, 1),
    "imap": (11, 1), "rootkit": (10, 1), "loadmodule": (9, 1), "ftp_write": (8, 1), "multihop": (7, 1), "phf": (4, 1),
    "perl": (3, 1), "spy": (2, 1),
}  # fmt: skip


def test_the_toy_allocation_is_met() -> None:
    assert allocate_references([60, 30, 9, 1], 10) == [5, 3, 1, 1]


def test_the_published_allocation_is_met() -> None:
    sizes = [size for size, _ in NSL_KDD.values()]
    assert dict(zip(NSL_KDD, allocate_references(sizes, 280), strict=True)) == {
        name: k for name, (_, k) in NSL_KDD.items()
    }


@FUZZ
@given(st.lists(st.integers(0, 30) | st.integers(0, 100_000), min_size=1, max_size=30), st.integers(0, 2000))
def test_every_class_gets_one_and_no_more_than_it_has(counts: list[int], total: int) -> None:
    classes = sum(count > 0 for count in counts)
    if total < classes:
        with pytest.raises(InputError, match=f"reference set of {total} cannot hold one record of each of {classes}"):
            allocate_references(counts, total)
        return
    taken = allocate_references(counts, total)
    assert sum(taken) == min(total, sum(counts))
    assert all(min(1, count) <= k <= count for k, count in zip(taken, counts, strict=True))


@FUZZ
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.integers(1, 500))
def test_a_larger_class_gets_no_fewer(counts: list[int], total: int) -> None:
    total = max(total, len(counts))
    taken = allocate_references(counts, total)
    for (a, i), (b, k) in zip(
        sorted(zip(counts, taken, strict=True))[:-1], sorted(zip(counts, taken, strict=True))[1:], strict=True
    ):
        assert i <= k + (a == b)


@FUZZ
@given(st.lists(st.integers(50, 1000), min_size=1, max_size=8), st.integers(8, 40))
def test_a_share_is_off_by_less_than_one(counts: list[int], total: int) -> None:
    spare = total - len(counts)
    for k, count in zip(allocate_references(counts, total), counts, strict=True):
        assert abs(k - 1 - spare * count / sum(counts)) < 1


@FUZZ
@given(st.lists(st.integers(-1, 5), min_size=1, max_size=80), st.integers(1, 60), st.integers(0, 9))
def test_a_draw_repeats_no_record_and_misses_no_class(labels: list[int], total: int, seed: int) -> None:
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


def test_every_seed_draws_differently() -> None:
    label = np.repeat(np.arange(3, dtype=np.int32), 200)
    draws = {tuple(draw_reference(label, 30, np.random.default_rng(seed)).tolist()) for seed in range(5)}
    assert len(draws) == 5


def test_a_draw_prefers_no_records() -> None:
    label = np.zeros(20, np.int32)
    drawn = np.zeros(20)
    for seed in range(400):
        drawn[draw_reference(label, 5, np.random.default_rng(seed))] += 1
    assert drawn.min() > 60  # 100 expected, standard deviation 8.7
    assert drawn.max() < 140


# Covering


def some_records(seed: int, n: int, values: int = 3) -> Batch:
    """With many duplicates, so that distances of 0 occur."""
    rng = np.random.default_rng(seed)
    num = rng.integers(0, values, (n, 3)).astype(np.float32) / np.float32(7)
    return Batch(num=num, code=rng.integers(0, values, (n, 2)).astype(np.uint16))


def cover_twin(batch: Batch, first: int, chance: np.ndarray) -> list[int]:
    """One record after the other, float32 distances in schema order, float64 sums from the first record on."""
    drawn: list[int] = []
    nearest = np.full(len(batch), np.inf, np.float32)
    at = first
    for share in chance:
        drawn.append(at)
        gap = np.full(len(batch), -np.float32(batch.code.shape[1]), np.float32)
        for f in range(batch.num.shape[1]):
            gap -= np.abs(batch.num[at, f] - batch.num[:, f])
        for s in range(batch.code.shape[1]):
            if batch.code[at, s]:
                gap += (batch.code[:, s] == batch.code[at, s]).astype(np.float32)
        nearest = np.minimum(nearest, -gap)
        nearest[drawn] = 0
        left = np.setdiff1d(np.arange(len(batch)), drawn)
        if not len(left):
            break
        passed = np.cumsum(nearest.astype(np.float64))
        beyond = [i for i in left if passed[-1] == 0 or passed[i] > share * passed[-1]]
        at = int(beyond[0] if beyond else left[-1])
    return drawn


@FUZZ
@given(st.integers(0, 1000), st.integers(1, 70), st.integers(1, 4), st.data())
def test_the_kernel_equals_its_numpy_twin(seed: int, n: int, values: int, data: st.DataObject) -> None:
    batch = some_records(seed, n, values)
    k, first = data.draw(st.integers(1, n)), data.draw(st.integers(0, n - 1))
    chance = np.random.default_rng(seed).random(k)
    out = np.empty(k, np.int64)
    room = make_room(n, batch.num.shape[1], batch.code.shape[1])
    draw_cover(batch.num, batch.code, score_columns(batch.num), score_columns(batch.code), first, chance, room, out)
    assert out.tolist() == cover_twin(batch, first, chance)
    assert len(set(out.tolist())) == k


def test_a_record_far_from_all_others_is_found() -> None:
    num = np.concatenate([np.random.default_rng(0).normal(0, 0.01, (999, 2)), [[50.0, 50.0]]]).astype(np.float32)
    batch = Batch(num=num, code=np.zeros((1000, 0), np.uint16))
    found = sum(999 in covering_reference(batch, 5, np.random.default_rng(seed)) for seed in range(50))
    assert found >= 48  # a plain draw has it in 1 of 200


def test_a_covering_set_leaves_less_uncovered_than_a_plain_one() -> None:
    rng = np.random.default_rng(5)
    num = (rng.exponential(1, (3000, 3)) ** 3).astype(np.float32)  # most records alike, a few far out
    batch = in_units(Batch(num=num, code=rng.integers(0, 2, (3000, 1)).astype(np.uint16)), [True])
    label = rng.choice(3, 3000, p=[0.7, 0.29, 0.01]).astype(np.int32)
    uncovered = {}
    for choice in get_args(Choice)[::2]:
        rows = draw_reference(label, 60, np.random.default_rng(2), choice, apart=batch)
        assert len(set(rows.tolist())) == 60
        assert np.bincount(label[rows]).tolist() == allocate_references(np.bincount(label).tolist(), 60)
        assert (np.diff(rows) > 0).all()
        gap = (
            np.abs(batch.num[:, None] - batch.num[rows]).sum(axis=2) + (batch.code[:, None] != batch.code[rows])[..., 0]
        )
        uncovered[choice] = gap.min(axis=1).mean()
    assert uncovered["covering"] < 0.8 * uncovered["proportional"]


def test_a_large_class_is_drawn_from_a_pool() -> None:
    batch = some_records(6, POOL + 5000, 30)
    rows = draw_reference(np.zeros(len(batch), np.int32), 40, np.random.default_rng(3), "covering", apart=batch)
    assert len(rows) == 40
    assert rows.max() > POOL  # the pool is drawn from all of it


def test_a_balanced_set_goes_by_the_roots_of_sizes_a_proportional_one_by_sizes_and_normal_has_no_other():
    label = np.repeat([0, 1, 2, -1], [700, 200, 100, 50]).astype(np.int32)
    normal = np.array([True, False, False])
    for choice, expected in (("balanced", [31, 17, 12]), ("proportional", [41, 12, 7]), ("normal", [60])):
        for known in (normal, None) if choice != "normal" else (normal,):
            rows = draw_reference(label, 60, np.random.default_rng(1), choice, known)
            assert np.bincount(label[rows]).tolist() == expected
            assert (np.diff(rows) > 0).all()


def test_classes_with_equal_remainders_are_served_in_their_order():
    assert allocate_references([10] * 40, 100, balanced=False) == [3] * 20 + [2] * 20
