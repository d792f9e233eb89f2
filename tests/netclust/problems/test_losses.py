"""Edge losses: fixture F2, zero exactly at the gold clustering, and where the two forms of Delta_F part."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from netclust.losses.edge_loss import ArcLoss, delta_f, delta_yj
from netclust.structures.tree import arc_sum, best_tree, candidate_arcs, gold_arcs, tree_clusters

F2_Y = np.array([1, 2, 2, 3, 2, 1, 2])


def trees(n):
    return [np.array(h) for h in product(*(range(j) for j in range(1, n + 1)))]


def induces(h, y):
    return tree_clusters(h).tolist() == [sorted(set(y), key=y.index).index(label) for label in y]


@pytest.mark.parametrize(
    ("parents", "f", "yj"),
    [
        ([0, 0, 0, 0, 0, 1, 0], (3, 6, 9), (3, 3)),
        ([0, 0, 2, 0, 0, 0, 0], (3, 6, 9), (3, 3)),
        ([0, 0, 2, 0, 3, 1, 5], (0, 0, 0), (0, 0)),
        ([0, 1, 2, 3, 4, 5, 6], (5, 5, 5), (3.5, 5.5)),
        ([0, 0, 0, 0, 0, 0, 0], (4, 8, 12), (4, 4)),
    ],
)
def test_f2(parents, f, yj):
    h = np.array(parents)
    assert tuple(delta_f(F2_Y, r).total(h) for r in (0, 1, 2)) == f
    assert tuple(delta_yj(F2_Y, r).total(h) for r in (0.1, 0.5)) == pytest.approx(yj, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_zero_exactly_when_the_tree_induces_y(n):
    for y in product(range(n), repeat=n):
        f, yj = delta_f(np.array(y), r=1.0), delta_yj(np.array(y), r=0.1)
        for h in trees(n):
            right = induces(h, y)
            assert (f.total(h) == 0) == right
            assert (yj.total(h) == 0) == right
            assert f.total(h) >= 0
            assert yj.total(h) >= 0


def delta_f_original(gold, r=1.0):
    """Return Delta_F as first published, against a gold tree: 1 for a wrong parent, 1 + r for a missed root arc."""
    n = len(gold)
    arcs = candidate_arcs(n).astype(np.float64)
    arcs[np.arange(n), gold] = 0.0
    arcs[gold == 0] *= 1.0 + r
    return ArcLoss(arcs)


def count_where_the_adopted_exceeds_the_original(r):
    """Over every label vector in {1..n}^n, every gold tree that induces it and every tree; n = 2, 3, 4."""
    cases = violations = 0
    for n in (2, 3, 4):
        everything = trees(n)
        rows = np.arange(n)
        original = {tuple(gold): [delta_f_original(gold, r).total(h) for h in everything] for gold in everything}
        for y in product(range(n), repeat=n):
            labels = np.array(y)
            loss, allowed = delta_f(labels, r), gold_arcs(labels)
            adopted = np.array([loss.total(h) for h in everything])
            for gold in everything:
                if allowed[rows, gold].all():
                    cases += len(everything)
                    violations += int((adopted > original[tuple(gold)]).sum())
    return violations, cases


def test_the_original_delta_f_does_not_dominate_the_adopted_one():
    assert count_where_the_adopted_exceeds_the_original(r=1.0) == (1250, 7964)
    assert count_where_the_adopted_exceeds_the_original(r=0.0) == (0, 7964)


@pytest.mark.parametrize("r", [0.5, 1.0, 2.0])
def test_smallest_case_of_that_erratum(r):
    gold, h = np.array([0, 1]), np.array([0, 0])
    assert delta_f_original(gold, r).total(h) == 1
    assert delta_f(np.array([1, 1]), r).total(h) == 1 + r


def test_original_charges_a_missing_root_arc():
    loss = delta_f_original(np.array([0, 0, 2]), r=2.0)
    assert loss.total(np.array([0, 0, 2])) == 0
    assert loss.total(np.array([0, 1, 2])) == 3
    assert loss.total(np.array([0, 1, 0])) == 4


@pytest.mark.parametrize("loss", [delta_f, delta_yj])
@pytest.mark.parametrize("C", [0.5, 1.0, 4.0])
def test_max_violating_tree_maximises_score_plus_loss(loss, C):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 5):
        for _ in range(5):
            scores, arc_loss = rng.normal(size=(n, n + 1)), loss(rng.integers(0, 3, n))
            h = best_tree(scores + C * arc_loss.arcs)
            best = max(arc_sum(scores, t) + C * arc_loss.total(t) for t in trees(n))
            assert arc_sum(scores, h) + C * arc_loss.total(h) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("loss", [delta_f, delta_yj])
def test_names_of_the_labels_do_not_matter(loss):
    renamed = np.array([9, -4, -4, 0, -4, 9, -4])
    assert (loss(F2_Y).arcs == loss(renamed).arcs).all()
    assert loss(F2_Y).constant == loss(renamed).constant


@pytest.mark.parametrize("loss", [delta_f(F2_Y), delta_yj(F2_Y), delta_f_original(np.zeros(7, int))])
def test_matrices_cover_the_candidate_arcs_only(loss):
    assert loss.arcs.shape == (7, 8)
    assert not loss.arcs[~candidate_arcs(7)].any()
