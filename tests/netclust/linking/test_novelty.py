"""Novelty against plain numpy, bit for bit: distances, their k-th smallest, thresholds, explanations, stored state."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.kernels.linking.novelty_scan import BLOCK
from netclust.linking.novelty import MAX_REFERENTS, SiteNovelty, _kth
from netclust.records.batch import Batch
from netclust.records.table import Table, concat_tables
from netclust.shipped.loading import load_shipped
from netclust.stream.config import SourceConfig
from netclust.stream.sources.records import open_text_source

WIDTHS = (3, 1, 7)


def records(rng, n: int, features: int = 6, widths=WIDTHS, spread: float = 1.0) -> Batch:
    """Few distinct values, so that distances tie; the last attribute is constant."""
    num = (rng.integers(0, 6, (n, features)) / 5 * spread).astype(np.float32)
    num[:, features - 1 :] = 0.5
    code = [rng.integers(0, width, n) for width in widths]
    return Batch(num=num, code=np.stack(code, 1) if code else np.zeros((n, 0)))


def twin_distances(site: SiteNovelty, batch: Batch, price=None) -> np.ndarray:
    """Distances of every record to every referent, in the order of additions that the definition names."""
    price = site.price if price is None else price
    zero, out = np.float32(0), np.zeros((len(batch), len(site)), np.float32)
    for f, slope in enumerate(site.slope):
        if slope == 0:
            continue
        span = (site.high[f] - site.low[f]) * slope
        middle = np.clip((site.middle[f] - site.low[f]) * slope, zero, span)
        there = np.clip((site.num[:, f] - site.low[f]) * slope, zero, span)
        with np.errstate(invalid="ignore"):
            here = np.clip((batch.num[:, f] - site.low[f]) * slope, zero, span)
        here = np.where(np.isnan(batch.num[:, f]), zero if middle > span - middle else span, here)
        out += np.abs(here[:, None] - there[None])
    first = 0
    for s, width in enumerate(site.widths):
        cost = price[first : first + width][batch.code[:, s]]
        out += np.where(batch.code[:, s][:, None] == site.code[:, s][None], zero, cost[:, None])
        first += width
    return out


def twin_scores(site: SiteNovelty, batch: Batch) -> np.ndarray:
    if not len(site):
        return np.full(len(batch), np.inf, np.float32)
    k = max(1, math.ceil(site.share * len(site)))
    return np.sort(twin_distances(site, batch), axis=1)[:, k - 1]


@pytest.mark.parametrize("share", [0.001, 0.25, 0.5, 1.0])
@pytest.mark.parametrize(
    ("n", "features", "widths"),
    [(1, 6, WIDTHS), (31, 4, (2,)), (32, 9, ()), (33, 1, WIDTHS), (BLOCK + 1, 2, (40, 3)), (700, 16, WIDTHS)],
)
def test_scores_equal_their_numpy_twin_bit_for_bit(n, features, widths, share) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        site = SiteNovelty.fit(records(rng, n, features, widths), widths, share=share)
        batch = records(rng, 50, features, widths, spread=1.7)
        want = twin_scores(site, batch)
        assert site.scores(batch).tobytes() == want.tobytes()
        for threshold in (0.0, float(np.median(want)), float(want[0]), np.inf):
            assert np.array_equal(site.exceeds(batch, threshold), want > np.float32(threshold))
        assert np.array_equal(site.exceeds(batch, np.roll(want, 1)), want > np.roll(want, 1))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_numbers_give_the_score_of_brute_force(data) -> None:
    number = st.floats(-1e6, 1e6, width=32)
    n = data.draw(st.integers(1, 12))
    rows = data.draw(st.lists(st.tuples(number, number, st.integers(0, 2)), min_size=n, max_size=n))
    site = SiteNovelty.fit(as_batch(rows), (3,), share=data.draw(st.floats(0.01, 1.0)))
    anything = st.floats(width=32)
    asked = as_batch(data.draw(st.lists(st.tuples(anything, anything, st.integers(0, 2)), min_size=1, max_size=6)))
    scores = site.scores(asked)
    assert scores.tobytes() == twin_scores(site, asked).tobytes()
    assert np.isfinite(scores).all()
    limit = data.draw(st.floats(-1.0, 40.0, width=32))
    assert np.array_equal(site.exceeds(asked, limit), scores > np.float32(limit))
    for row in range(len(asked)):
        found = site.explain(asked, row)
        assert math.fsum(found.contributions) == found.score == float(scores[row])


def priced(share: float) -> float:
    return math.sqrt(-2 * math.log(share))


def as_batch(rows) -> Batch:
    return Batch(num=np.array([row[:2] for row in rows], np.float32), code=np.array([row[2:] for row in rows]))


def test_explanations_name_the_first_of_equally_far_referents_and_the_attributes_that_differ() -> None:
    num = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, np.float32)
    site = SiteNovelty.fit(Batch(num=num, code=np.ones((20, 1))), (3,), share=1.0)
    record = Batch(num=np.array([[1, 1]], np.float32), code=np.array([[2]]))
    found = site.explain(record, 0)
    distances = twin_distances(site, record)[0]
    assert found.referent == np.flatnonzero(distances == distances.max())[0]
    assert np.array_equal(site.num[found.referent], [0, 0])
    unit = 1 / 1.349
    assert found.contributions == pytest.approx((1 / unit, 1 / unit, priced(1 / 22)))


def test_what_is_constant_at_the_site_or_beyond_its_range_adds_nothing() -> None:
    rng = np.random.default_rng(0)
    site = SiteNovelty.fit(records(rng, 300), WIDTHS)
    batch = records(rng, 20)
    far, other = batch.num.copy(), batch.num.copy()
    far[:, 0] = np.where(far[:, 0] == 1, 1e6, far[:, 0])
    other[:, -1] = -1e6
    for num in (far, other):
        assert np.array_equal(site.scores(replace(batch, num=num)), site.scores(batch))


def test_a_number_that_is_missing_counts_as_the_farther_end_of_the_range() -> None:
    num = np.array([[0.0]] * 3 + [[1.0]] * 7, np.float32)
    site = SiteNovelty.fit(Batch(num=num, code=np.zeros((10, 0))), (), share=0.5)
    scores = site.scores(Batch(num=np.array([[np.nan], [0.0], [1.0]], np.float32), code=np.zeros((3, 0))))
    assert scores[0] == scores[1] > scores[2] == 0


def test_no_value_is_a_value_like_any_other_and_what_was_never_seen_is_the_dearest() -> None:
    code = np.array([0] * 60 + [1] * 39 + [2])[:, None]
    site = SiteNovelty.fit(Batch(num=np.zeros((100, 1)), code=code), (4,), share=0.6)
    scores = site.scores(Batch(num=np.zeros((4, 1)), code=np.arange(4)[:, None]))
    assert scores == pytest.approx([0, *(priced(share / 102) for share in (40, 2, 1))])


def test_a_share_of_attacks_below_k_in_the_warm_up_leaves_them_unlike_the_site() -> None:
    rng = np.random.default_rng(1)
    normal = rng.normal(0.3, 0.05, (1000, 5)).astype(np.float32)
    attack = rng.normal(0.7, 0.01, (250, 5)).astype(np.float32)
    scores = {}
    for share in (0.05, 0.25):
        site = SiteNovelty.fit(Batch(num=np.concatenate([normal, attack]), code=np.zeros((1250, 0))), (), share=share)
        scores[share] = [
            np.median(site.scores(Batch(num=num, code=np.zeros((50, 0))))) for num in (normal[:50], attack[:50])
        ]
    assert scores[0.05][1] < scores[0.05][0]
    assert scores[0.25][1] > 3 * scores[0.25][0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(2, 80), share=st.floats(0.01, 1.0))
def test_own_scores_are_those_of_a_site_without_the_referent(seed, n, share) -> None:
    site = SiteNovelty.fit(records(np.random.default_rng(seed), n), WIDTHS, share=share)
    own = site.own_scores
    batch = Batch(num=site.num, code=site.code)
    for j in range(n):
        rest = np.arange(n) != j
        counts = [np.bincount(site.code[rest, s], minlength=width) for s, width in enumerate(WIDTHS)]
        price = np.sqrt(-2 * np.log((np.concatenate(counts) + 1) / (n + 1))).astype(np.float32)
        distances = twin_distances(replace(site, num=site.num[rest], code=site.code[rest]), batch[j : j + 1], price)
        assert own[j] == np.sort(distances[0])[_kth(share, n - 1) - 1]
    assert (np.diff(own) >= 0).all()


def test_p_values_and_thresholds_agree() -> None:
    rng = np.random.default_rng(3)
    site = SiteNovelty.fit(records(rng, 400), WIDTHS)
    scores = site.scores(records(rng, 300, spread=1.5))
    p = site.p_values(scores)
    assert p.min() >= 1 / 401
    assert p.max() <= 1
    by_hand = [(1 + (site.own_scores >= score).sum()) / 401 for score in scores]
    assert np.array_equal(p, by_hand)
    for rate in (0.01, 0.05, 0.2):
        assert np.array_equal(scores > site.threshold(rate), p <= rate)
    assert site.threshold(0.05, site.code[:, 0] == 1) >= 0
    with pytest.raises(InputError, match="needs at least 999"):
        site.threshold(0.001)


def test_new_records_of_the_same_traffic_exceed_a_threshold_as_often_as_was_asked() -> None:
    exceeded = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        num = rng.gamma(2.0, 1.0, (1500, 6)).astype(np.float32)
        code = rng.geometric(0.5, (1500, 2)).clip(max=9)
        everything = Batch(num=num, code=code)
        site = SiteNovelty.fit(everything[:500], (10, 10))
        exceeded.append(site.exceeds(everything[500:], site.threshold(0.05)).mean())
    assert 0.04 < np.mean(exceeded) < 0.06


def test_a_site_without_referents_takes_everything_for_novel() -> None:
    site = SiteNovelty.fit(records(np.random.default_rng(0), 0), WIDTHS)
    batch = records(np.random.default_rng(1), 3)
    assert np.isposinf(site.scores(batch)).all()
    assert site.exceeds(batch, 1e9).all()
    assert not site.exceeds(batch, np.inf).any()
    with pytest.raises(InputError, match="without referents"):
        site.explain(batch, 0)
    with pytest.raises(InputError, match="held-out"):
        site.threshold(0.1)
    assert len(SiteNovelty.from_arrays(site.arrays(), WIDTHS, 6, "here")) == 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_referents_are_enough_for_a_score(n) -> None:
    site = SiteNovelty.fit(records(np.random.default_rng(0), n), WIDTHS)
    assert site.k == 1
    assert np.array_equal(site.scores(Batch(num=site.num, code=site.code)), np.zeros(n))
    assert np.isposinf(site.own_scores).all() == (n == 1)


def test_more_records_than_referents_are_sampled_uniformly_and_repeatably() -> None:
    rng = np.random.default_rng(0)
    batch = Batch(num=rng.random((5000, 1)), code=(np.arange(5000) < 1000).astype(int)[:, None])
    one, again, other = (SiteNovelty.fit(batch, (2,), referents=500, seed=seed) for seed in (0, 0, 1))
    assert len(one) == 500
    assert np.array_equal(one.num, again.num)
    assert not np.array_equal(one.num, other.num)
    assert 0.15 < one.code.mean() < 0.25


def test_scores_do_not_depend_on_how_records_are_cut_into_batches() -> None:
    rng = np.random.default_rng(2)
    site = SiteNovelty.fit(records(rng, 200), WIDTHS)
    batch = records(rng, 101)
    cut = [site.scores(batch[a:b]) for a, b in ((0, 0), (0, 1), (1, 50), (50, 101))]
    assert np.concatenate(cut).tobytes() == site.scores(batch).tobytes()


def test_stored_state_comes_back_as_it_was() -> None:
    rng = np.random.default_rng(4)
    site = SiteNovelty.fit(records(rng, 333), WIDTHS, share=0.3)
    stored, _ = container.unpack_container(
        container.pack_container("netclust.test", site.arrays(), {}), "netclust.test", "here"
    )
    again = SiteNovelty.from_arrays(stored, WIDTHS, 6, "here")
    batch = records(rng, 100)
    assert again.scores(batch).tobytes() == site.scores(batch).tobytes()
    assert again.own_scores.tobytes() == site.own_scores.tobytes()
    assert again.explain(batch, 5) == site.explain(batch, 5)


def _break(name: str, change) -> dict:
    arrays = {k: v.copy() for k, v in SiteNovelty.fit(records(np.random.default_rng(0), 50), WIDTHS).arrays().items()}
    arrays[f"novelty.{name}"] = change(arrays[f"novelty.{name}"])
    return arrays


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("num", lambda a: a[:, :-1]),
        ("num", lambda a: a * np.float32(np.nan)),
        ("num", lambda a: a + np.float32(1e7)),
        ("code", lambda a: a + np.uint16(9)),
        ("code", lambda a: a[:-1]),
        ("low", lambda a: a + np.float32(5)),
        ("slope", lambda a: -a - 1),
        ("slope", lambda a: a * np.float32(100)),
        ("price", lambda a: -a - 1),
        ("price", lambda a: a * np.float32(1e6) + 1e6),
        ("share", lambda a: a * 0),
        ("share", lambda a: a + 1),
    ],
)
def test_stored_state_that_makes_no_sense_is_refused(name, change) -> None:
    with pytest.raises(ModelError, match="here"):
        SiteNovelty.from_arrays(_break(name, change), WIDTHS, 6, "here")


def test_wrong_arguments_are_refused() -> None:
    batch = records(np.random.default_rng(0), 50)
    site = SiteNovelty.fit(batch, WIDTHS)
    for share in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(InputError, match="share"):
            SiteNovelty.fit(batch, WIDTHS, share=share)
    for referents in (0, MAX_REFERENTS + 1):
        with pytest.raises(InputError, match="referents"):
            SiteNovelty.fit(batch, WIDTHS, referents=referents)
    num = batch.num.copy()
    num[3, 1] = np.inf
    with pytest.raises(InputError, match="not finite"):
        SiteNovelty.fit(replace(batch, num=num), WIDTHS)
    with pytest.raises(InputError, match="code"):
        site.scores(replace(batch, code=batch.code + 7))
    with pytest.raises(InputError, match="other attributes"):
        site.scores(Batch(num=batch.num[:, 1:], code=batch.code))
    with pytest.raises(InputError, match="not a number"):
        site.exceeds(batch, math.nan)


def read_day(path) -> Table:
    source = open_text_source(SourceConfig(kind="zeek", name="day", path=str(path)))
    source.open(None)
    table = concat_tables([arrival.table for arrival in source if len(arrival.table)])
    source.close()
    return table


@pytest.mark.peers
@pytest.mark.parametrize("poison", [0.0, 0.2])
def test_real_attacks_of_the_second_half_of_a_day_are_unlike_the_first(data_folder, poison) -> None:
    """Nearly all of these attacks begin outside, which by itself tells them apart: no claim about detection."""
    encoding = load_shipped("conn").encoding
    for day in ("008", "010"):
        table = read_day(data_folder / "real" / "zeek-days" / f"{day}.conn.log.labeled")
        batch, label = encoding.encode(table), table.label_names()
        middle = np.median(table.time[label == "Benign"])
        first, rng = table.time <= middle, np.random.default_rng(0)
        benign = np.flatnonzero(first & (label == "Benign"))
        attacks = np.flatnonzero(first & (label == "Malicious"))
        added = rng.choice(attacks, int(len(benign) * poison / (1 - poison)))
        site = SiteNovelty.fit(batch[np.concatenate([benign, added])], encoding.widths)
        scores = [site.scores(batch[np.flatnonzero(~first & (label == name))]) for name in ("Malicious", "Benign")]
        above = np.searchsorted(np.sort(scores[1]), scores[0]).mean() / len(scores[1])
        assert above > 0.98
