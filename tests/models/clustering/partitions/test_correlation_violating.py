"""The search for the most violating partition: incremental losses, H, both rescalings, brute force."""

from __future__ import annotations

import numpy as np
import pytest
from correlation_twins import (
    F2,
    FIG_3_2,
    partitions,
    plain_violating,
    plain_violating_moves,
    random_scores,
    stored,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.losses.partition_loss import mitre_loss, pairwise_loss, with_pairwise_loss
from netclust.models.clustering.partitions.greedy import (
    greedy_clusters,
    greedy_violating,
    greedy_violation,
    kernel_target,
)
from netclust.models.clustering.partitions.local_search import local_violating
from netclust.models.clustering.partitions.merging_kernels import Merges, merge_violating
from netclust.models.clustering.partitions.moves_kernels import move_violating
from netclust.structures.pairs import PairIndex
from netclust.structures.partition import PairScores, canonical_partition

KINDS = [(loss, rescaling) for loss in ("pairwise", "mitre") for rescaling in ("margin", "slack")]
kinds = st.sampled_from(KINDS)
weights = st.sampled_from([0.0, 0.02, 1.0])


def truth_of(seed: int, items: int) -> np.ndarray:
    return canonical_partition(np.random.default_rng(seed + 1).integers(max(1, items // 2), size=items))


def kernel_merges(scores: PairScores, y: np.ndarray, loss, rescaling, weight, gold) -> list[tuple[int, int, float]]:
    target = kernel_target(y, loss, rescaling, weight, gold)
    counts = np.zeros((scores.items, target.truths), np.int64)
    counts[np.arange(scores.items), y] = 1
    room = Merges(np.empty(scores.items, np.int64), np.empty(scores.items, np.int64), np.empty(scores.items))
    done = merge_violating(scores.matrix(), counts, 0.0, target, room)
    return [(int(room.a[k]), int(room.b[k]), float(room.gain[k])) for k in range(done)]


# --- the kernels


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    items=st.integers(1, 11),
    whole=st.booleans(),
    kind=kinds,
    weight=weights,
)
def test_no_merge_differs_from_a_search_that_computes_every_loss_anew(
    seed: int, items: int, whole: bool, kind: tuple[str, str], weight: float
) -> None:
    scores, y = random_scores(seed, items, whole), truth_of(seed, items)
    gold = scores.within(y)
    expected = plain_violating(scores.matrix(), y, *kind, weight, gold)
    assert kernel_merges(scores, y, *kind, weight, gold) == expected


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), items=st.integers(2, 25), kind=kinds)
def test_the_incremental_loss_is_the_recomputed_one_after_every_merge(
    seed: int, items: int, kind: tuple[str, str]
) -> None:
    loss, rescaling = kind
    scores, y = random_scores(seed, items), truth_of(seed, items)
    scores = PairScores(items, scores.values + 0.5)  # so that many merges help
    z = np.arange(items)
    for a, b, gain in kernel_merges(scores, y, loss, rescaling, 0.05, 0.3):
        before = greedy_violation(scores, y, z, loss=loss, rescaling=rescaling, weight=0.05, gold_score=0.3)
        z[z == b] = a
        after = greedy_violation(scores, y, z, loss=loss, rescaling=rescaling, weight=0.05, gold_score=0.3)
        assert after - before == pytest.approx(gain, rel=1e-9, abs=1e-9)


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), items=st.integers(2, 9), kind=kinds, weight=st.sampled_from([0.02, 1.0]))
def test_no_move_differs_from_a_search_that_computes_every_loss_anew(
    seed: int, items: int, kind: tuple[str, str], weight: float
) -> None:
    scores, y = random_scores(seed, items, whole=True), truth_of(seed, items)
    gold = scores.within(y)
    start = canonical_partition(np.random.default_rng(seed).integers(items, size=items))
    expected = plain_violating_moves(scores.matrix(), y, start, *kind, weight, gold)
    labels, target = start.copy(), kernel_target(y, *kind, weight, gold)
    G, counts = np.empty((items, items)), np.empty((items, target.truths), np.int64)
    within = move_violating(scores.matrix(), labels, y, G, counts, scores.within(start), target, 1e-10)
    assert labels.tolist() == expected.tolist()
    assert within == scores.within(labels)
    together = labels[None, :] == np.arange(items)[:, None]
    assert np.array_equal(G, together @ scores.matrix())
    assert np.array_equal(counts, together.astype(int) @ (y[:, None] == np.arange(target.truths)))


# --- what the searches return


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), items=st.integers(1, 7), kind=kinds, weight=weights)
def test_no_search_is_above_brute_force_or_below_its_starts(
    seed: int, items: int, kind: tuple[str, str], weight: float
) -> None:
    loss, rescaling = kind
    scores, y = random_scores(seed, items), truth_of(seed, items)
    options = {"loss": loss, "rescaling": rescaling, "weight": weight, "gold_score": scores.within(y)}

    def cost(z: np.ndarray) -> float:
        delta = (pairwise_loss if loss == "pairwise" else mitre_loss)(y, z)
        score = scores.within(z)
        return score + weight * delta if rescaling == "margin" else delta * (1 + score - scores.within(y))

    most = max(cost(z) for z in partitions(items))
    greedy, local = greedy_violating(scores, y, **options), local_violating(scores, y, **options)
    for z in (greedy, local):
        assert z.tolist() == canonical_partition(z).tolist()
        assert cost(z) == greedy_violation(scores, y, z, **options) <= most + 1e-9
    assert cost(greedy) >= cost(np.arange(items)) - 1e-9
    assert cost(local) >= max(cost(greedy), cost(y))


@pytest.mark.parametrize(("loss", "rescaling"), KINDS)
def test_local_search_finds_the_most_violating_partition_almost_always(loss, rescaling) -> None:
    found = 0
    for seed in range(40):
        scores, y = random_scores(seed, 6), truth_of(seed, 6)
        options = {"loss": loss, "rescaling": rescaling, "weight": 0.05, "gold_score": scores.within(y)}
        most = max(greedy_violation(scores, y, z, **options) for z in partitions(6))
        found += greedy_violation(scores, y, local_violating(scores, y, **options), **options) >= most - 1e-9
    assert found >= 36


def test_figure_3_2_and_f2_as_oracles() -> None:
    y = np.array([0, 0, 0, 1, 1])
    for search in (greedy_violating, local_violating):
        z = search(FIG_3_2, y)
        assert z.tolist() == [0, 1, 1, 1, 1]
        assert greedy_violation(FIG_3_2, y, z) == pytest.approx(23 + 40)
        scaled = PairScores(5, F2.values / 25)
        assert search(scaled, y).tolist() == [0, 0, 1, 1, 0]
        assert greedy_violation(scaled, y, search(scaled, y)) == pytest.approx(60.048)
        assert search(F2, y).tolist() == [0, 0, 1, 1, 0]
        assert greedy_violation(F2, y, search(F2, y)) == pytest.approx(61.2)


@pytest.mark.parametrize(
    ("z", "delta_p", "delta_m"),
    [
        ([0, 0, 0, 1, 1, 2], 0, 0),
        ([0, 0, 0, 0, 0, 0], 220 / 3, 25),
        ([0, 1, 2, 3, 4, 5], 80 / 3, 100),
        ([0, 0, 3, 1, 1, 2], 40 / 3, 20),
        ([0, 0, 0, 1, 1, 1], 40 / 3, 100 / 7),
        ([0, 0, 1, 1, 2, 2], 100 / 3, 200 / 3),
    ],
)
def test_f1_losses_inside_h(z: list[int], delta_p: float, delta_m: float) -> None:
    y, zeros = np.array([0, 0, 0, 1, 1, 2]), PairScores(6, np.zeros(15))
    assert greedy_violation(zeros, y, np.array(z)) == pytest.approx(delta_p)
    assert greedy_violation(zeros, y, np.array(z), loss="mitre", weight=0.5) == pytest.approx(delta_m / 2)
    slack = greedy_violation(zeros, y, np.array(z), loss="mitre", rescaling="slack", gold_score=-2.0)
    assert slack == pytest.approx(3 * delta_m)


def test_one_missed_link_costs_all_under_mitre_and_slack_rescaling_weighs_it() -> None:
    """Section 6.2: with only items 0 and 1 together, all singletons lose 100, though one pair's features differ."""
    m, psi, y = 5, np.array([1.0, 2.0]), np.array([0, 0, 1, 2, 3])
    w = 40 * psi  # beta = C / m^2 with C = 1000
    scores = PairScores(m, np.concatenate([[w @ psi], np.full(9, -1e4)]) / m**2)
    gold = scores.within(y)
    assert mitre_loss(y, np.arange(m)) == 100.0
    z = greedy_violating(scores, y, loss="mitre", gold_score=gold)
    assert z.tolist() == list(range(m))
    assert greedy_violation(scores, y, z, loss="mitre") - gold == pytest.approx(92.0)
    slack = greedy_violation(scores, y, z, loss="mitre", rescaling="slack", gold_score=gold)
    assert slack == pytest.approx(100 * (1 - 8))
    best = local_violating(scores, y, loss="mitre", rescaling="slack", gold_score=gold)
    assert best.tolist() == y.tolist()  # the margin of 1 is met: nothing is violated, H = 0


def test_margin_and_pairwise_is_greedy_on_shifted_scores_also_of_stored_pairs() -> None:
    scores, y = random_scores(3, 30), truth_of(3, 30)
    for kept in (scores, stored(PairScores(30, np.where(scores.values > 0.5, scores.values, 0)), 1)):
        z = greedy_violating(kept, y, weight=2.0)
        assert z.tolist() == greedy_clusters(with_pairwise_loss(kept, y, 2.0)).tolist()
        local = local_violating(kept, y, weight=2.0)
        assert greedy_violation(kept, y, local, weight=2.0) >= greedy_violation(kept, y, z, weight=2.0)


@pytest.mark.parametrize(("loss", "rescaling"), KINDS)
def test_dense_and_stored_pairs_do_not_give_different_oracles(loss, rescaling) -> None:
    scores, y = random_scores(9, 14), truth_of(9, 14)
    options = {"loss": loss, "rescaling": rescaling, "weight": 0.1, "gold_score": scores.within(y)}
    same = stored(scores, 5)
    assert greedy_violating(scores, y, **options).tolist() == greedy_violating(same, y, **options).tolist()
    a, b = (local_violating(s, y, **options) for s in (scores, same))
    assert greedy_violation(scores, y, a, **options) == pytest.approx(
        greedy_violation(scores, y, b, **options), rel=0.02
    )


@pytest.mark.parametrize(("loss", "rescaling"), KINDS)
@pytest.mark.parametrize("items", [0, 1])
def test_sets_without_pairs(items: int, loss, rescaling) -> None:
    for index in (None, PairIndex(np.zeros(0, np.int64), np.zeros(0, np.int64))):
        scores = PairScores(items, np.zeros(0), index)
        for search in (greedy_violating, local_violating):
            z = search(scores, np.zeros(items, np.int64), loss=loss, rescaling=rescaling)
            assert z.tolist() == list(range(items))


def test_a_start_is_never_lost() -> None:
    scores, y = random_scores(2, 8), truth_of(2, 8)
    options = {"loss": "mitre", "rescaling": "slack", "gold_score": scores.within(y)}
    for start in list(partitions(5))[::7]:
        whole = np.concatenate([start, [9, 9, 8]])
        z = local_violating(scores, y, start=whole, **options)
        assert greedy_violation(scores, y, z, **options) >= greedy_violation(scores, y, whole, **options)


def test_what_cannot_be_aimed_at_is_refused() -> None:
    scores, y = random_scores(0, 4), np.zeros(4, np.int64)
    for search in (greedy_violating, local_violating):
        with pytest.raises(InputError, match="true labels"):
            search(scores, y[:3])
        with pytest.raises(InputError, match="loss 'rand' is not known"):
            search(scores, y, loss="rand")
        with pytest.raises(InputError, match="rescaling 'none' is not known"):
            search(scores, y, rescaling="none")
        with pytest.raises(InputError, match="weight"):
            search(scores, y, weight=-1.0)
        with pytest.raises(InputError, match="gold_score"):
            search(scores, y, gold_score=float("nan"))
        with pytest.raises(InputError, match="pair score 0 is nan"):
            search(PairScores(4, np.full(6, np.nan)), y)
    with pytest.raises(InputError, match="to start from"):
        local_violating(scores, y, start=y[:2])


def test_a_matrix_that_has_no_room_is_refused_before_it_is_made() -> None:
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match="100000 items need a matrix of 80 GB"):
        greedy_violating(PairScores(100_000, np.zeros(0), PairIndex(none, none)), np.zeros(100_000), loss="mitre")
