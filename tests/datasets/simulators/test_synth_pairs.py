"""The data Synth: what its pairs tell, and how often they tell the truth."""

from __future__ import annotations

import numpy as np
import pytest

from netclust.datasets.simulators.synth_pairs import region_count, region_of, synth_pairs
from netclust.errors import InputError
from netclust.structures.pairs import all_pairs


def told(example, features, active):
    """The pair of clusters whose features each pair of points has."""
    regions = example.pairs.psi.indices.reshape(-1, active) // features
    assert (regions == regions[:, :1]).all()
    return regions[:, 0]


def true_regions(example, k):
    left, right = all_pairs(len(example.labels))
    return region_of(example.labels[left], example.labels[right], k)


def test_the_published_sizes_are_the_default():
    sets = synth_pairs()
    assert len(sets) == 5
    for example in sets:
        assert example.pairs.psi.shape == (4950, 750)
        assert np.bincount(example.labels).tolist() == [20] * 5
        assert set(example.pairs.psi.data.tolist()) == {1.0}
        assert set(np.diff(example.pairs.psi.indptr).tolist()) == {5}
        assert example.pairs.psi.has_canonical_format  # no feature twice


def test_seven_pairs_in_ten_keep_the_right_index():
    share = np.mean([(told(s, 50, 5) == true_regions(s, 5)).mean() for s in synth_pairs(sets=10)])
    assert share == pytest.approx(0.706, abs=0.01)


def test_without_noise_every_pair_is_right_and_with_noise_one_none_is_better_than_chance():
    for example in synth_pairs(noise=0.0):
        assert np.array_equal(told(example, 50, 5), true_regions(example, 5))
    share = np.mean([(told(s, 50, 5) == true_regions(s, 5)).mean() for s in synth_pairs(noise=1.0)])
    # two draws from 5 give (i, i) in 1 of 25 cases, (i, j) in 2 of 25
    within = (
        (true_regions(synth_pairs(sets=1)[0], 5)[:, None] == region_of(np.arange(5), np.arange(5), 5)).any(1).mean()
    )
    assert share == pytest.approx(within / 25 + (1 - within) * 2 / 25, abs=0.01)


def test_regions_are_numbered_once_each():
    for k in (1, 2, 5, 8):
        a, b = np.divmod(np.arange(k * k), k)
        regions = region_of(a, b, k)
        assert np.array_equal(regions, region_of(b, a, k))
        assert sorted(set(regions.tolist())) == list(range(region_count(k)))
    within = region_of(np.arange(5), np.arange(5), 5)
    assert (len(within), region_count(5) - len(within)) == (5, 10)


def test_other_sizes_and_the_seed_are_obeyed():
    small = synth_pairs(sets=3, k=4, points=10, features=6, active=6, seed=1)
    assert [s.pairs.psi.shape for s in small] == [(45, 60)] * 3
    assert np.bincount(small[0].labels).tolist() == [3, 2, 3, 2]
    again, other = synth_pairs(seed=4), synth_pairs(seed=5)
    assert (again[0].pairs.psi != synth_pairs(seed=4)[0].pairs.psi).nnz == 0
    assert (again[0].pairs.psi != other[0].pairs.psi).nnz > 0
    assert (again[0].pairs.psi != again[1].pairs.psi).nnz > 0


@pytest.mark.parametrize(
    "bad",
    [{"sets": 0}, {"k": 0}, {"k": 11, "points": 10}, {"active": 0}, {"active": 51}, {"noise": -0.1}, {"noise": 2}],
)
def test_sizes_that_make_no_sense_are_refused(bad):
    with pytest.raises(InputError):
        synth_pairs(**bad)
