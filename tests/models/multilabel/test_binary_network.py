"""Inference in binary networks: fixtures, enumeration, twins, relaxations that agree, labels that persist."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.jit import kernel
from netclust.models.multilabel.binary_network import (
    METHODS,
    Inference,
    Labelling,
    binary_network_value,
    infer,
    infer_degraded,
    normal_form,
)

Matrix = NDArray[np.float64]

FIXTURES: dict[str, tuple[list[float], dict[tuple[int, int], float], dict[str, list[float]], float, float]] = {
    # potentials, edges, labels by method, best value, relaxed value (Finley and Joachims 2008, ours)
    "repelling": (
        [1.0, 1.0, 1.0],
        {(0, 1): -1.5, (0, 2): -1.5, (1, 2): -1.5},
        {
            "greedy": [1, 0, 0],
            "lbp": [0, 0, 0],
            "combine": [1, 0, 0],
            "exact": [1, 0, 0],
            "lp": [0.5, 0.5, 0.5],
            "cut": [0.5, 0.5, 0.5],
        },
        1.0,
        1.5,
    ),
    "stuck": (
        [-0.5, -0.5, 0.2],
        {(0, 1): 2.0, (0, 2): -1.0, (1, 2): -1.0},
        {
            "greedy": [0, 0, 1],
            "lbp": [1, 1, 0],
            "combine": [1, 1, 0],
            "exact": [1, 1, 0],
            "lp": [1, 1, 0],
            "cut": [1, 1, 0],
        },
        1.0,
        1.0,
    ),
    "half open": (
        [3.0, 1.0, 1.0, 1.0],
        {(0, 1): 0.2, (1, 2): -1.5, (1, 3): -1.5, (2, 3): -1.5},
        {"greedy": [1, 1, 0, 0], "exact": [1, 1, 0, 0], "lp": [1, 0.5, 0.5, 0.5], "cut": [1, 0.5, 0.5, 0.5]},
        4.2,
        4.6,
    ),
}


def network(rng: np.random.Generator, labels: int, rows: int = 1, *, uniform: bool = False) -> tuple[Matrix, Matrix]:
    draw = (lambda size: rng.uniform(-1, 1, size)) if uniform else (lambda size: rng.normal(size=size))
    above = np.triu(draw((labels, labels)), 1)
    return draw((rows, labels)), above + above.T


def every_labelling(labels: int, values: tuple[float, ...] = (0.0, 1.0)) -> Matrix:
    return np.array([y[::-1] for y in product(values, repeat=labels)])  # in the order of their codes


def plain_value(theta: Matrix, pair: Matrix, y: Any) -> float:
    total = float(sum(t * a for t, a in zip(theta, y, strict=True)))
    for u in range(len(y)):
        for v in range(u):
            both = min(y[u], y[v]) if pair[u, v] > 0 else max(0.0, y[u] + y[v] - 1)
            total += pair[u, v] * both
    return total


def plain_greedy(theta: Matrix, pair: Matrix) -> Matrix:
    y, gain = np.zeros(len(theta)), theta.copy()
    while True:
        change = (1 - 2 * y) * gain
        u = int(change.argmax())
        if change[u] <= 1e-12 * (np.abs(theta) + np.abs(pair).sum(axis=1)).max():
            return y
        sign = 1 - 2 * y[u]
        y[u] += sign
        gain = gain + sign * pair[u]


def plain_lbp(theta: Matrix, pair: Matrix) -> Matrix:
    count = len(theta)
    told = np.zeros((count, count))  # [v, u]: what u tells v
    for _ in range(200):
        b = beliefs(theta, told)[:, None] - told  # [u, v]: without what v told
        new = np.maximum(0, b + pair) - np.maximum(0, b)
        fresh = 0.5 * new.T + 0.5 * told
        change, told = np.abs(fresh - told).max(), fresh
        if change <= 1e-6:
            break
    return (beliefs(theta, told) > 0).astype(np.float64)


def beliefs(theta: Matrix, told: Matrix) -> Matrix:
    belief = theta.copy()
    for t in range(len(theta)):
        belief += told[:, t]
    return belief


@pytest.mark.parametrize("name", FIXTURES)
def test_the_fixtures_hold(name: str) -> None:
    potentials, edges, expected, best, bound = FIXTURES[name]
    theta, pair = np.array([potentials]), np.zeros((len(potentials),) * 2)
    for (u, v), weight in edges.items():
        pair[u, v] = pair[v, u] = weight
    for method, labels in expected.items():
        found = infer(theta, pair, method)  # type: ignore[arg-type]
        assert found.labels[0].tolist() == labels
        if method in ("exact", "lp", "cut"):
            assert binary_network_value(theta, pair, found.labels)[0] == pytest.approx(
                best if method == "exact" else bound
            )


@pytest.mark.parametrize("labels", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("seed", range(3))
def test_exact_search_equals_trying_all(labels: int, seed: int) -> None:
    theta, pair = network(np.random.default_rng([labels, seed]), labels, 8)
    all_ = every_labelling(labels)
    values = np.array([binary_network_value(np.repeat(row[None], len(all_), 0), pair, all_) for row in theta])
    found = infer(theta, pair, "exact")
    assert (found.labels == all_[values.argmax(axis=1)]).all()
    for rho in (1.0, 0.9, 0.5, 0.0):
        offset = np.full(len(theta), 0.3)
        got = infer_degraded(theta, pair, rho, offset)
        reached, bar = binary_network_value(theta, pair, got.labels) + offset, rho * (values.max(axis=1) + 0.3)
        below = np.where(values + 0.3 <= bar[:, None] + 1e-9, values + 0.3, -np.inf).max(axis=1)
        assert np.allclose(reached, np.where(np.isfinite(below), below, values.min(axis=1) + 0.3))


def test_twenty_labels_are_searched_and_more_are_refused() -> None:
    theta, pair = network(np.random.default_rng(0), 20, 2)
    best = binary_network_value(theta, pair, infer(theta, pair, "exact").labels)
    for method in ("greedy", "lbp", "combine"):
        assert (binary_network_value(theta, pair, infer(theta, pair, method).labels) <= best + 1e-9).all()  # type: ignore[arg-type]
    theta, pair = network(np.random.default_rng(0), 21)
    for search in (lambda: infer(theta, pair), lambda: infer_degraded(theta, pair, 0.9)):
        with pytest.raises(InputError, match="21 labels have too many labellings to try them all, 20 have not"):
            search()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10_000), st.booleans())
def test_kernels_equal_their_twins(labels: int, seed: int, uniform: bool) -> None:
    theta, pair = network(np.random.default_rng(seed), labels, 3, uniform=uniform)
    greedy, lbp = infer(theta, pair, "greedy").labels, infer(theta, pair, "lbp").labels
    both = infer(theta, pair, "combine").labels
    for i, row in enumerate(theta):
        assert greedy[i].tolist() == plain_greedy(row, pair).tolist()
        assert lbp[i].tolist() == plain_lbp(row, pair).tolist()
        a, b = plain_value(row, pair, greedy[i]), plain_value(row, pair, lbp[i])
        assert plain_value(row, pair, both[i]) == pytest.approx(max(a, b))


def test_belief_propagation_finds_the_best_of_a_tree() -> None:
    rng = np.random.default_rng(5)
    for labels in (2, 5, 9, 12):
        theta, full = network(rng, labels, 20)
        pair = np.zeros_like(full)
        for v in range(1, labels):
            u = int(rng.integers(v))
            pair[u, v] = pair[v, u] = full[u, v]
        assert (infer(theta, pair, "lbp").labels == infer(theta, pair, "exact").labels).all()


@kernel
def best_half_integral(theta, pair, labels):  # type: ignore[no-untyped-def]
    """Find the best of all 3^l labellings by 0, 1/2 and 1, which the linear program must find."""
    n, count = theta.shape
    y, codes = np.empty(count), 3**count
    for i in range(n):
        best = -np.inf
        for code in range(codes):
            rest, value = code, 0.0
            for u in range(count):
                y[u] = 0.5 * (rest % 3)
                rest //= 3
                value += theta[i, u] * y[u]
                for v in range(u):
                    both = min(y[u], y[v]) if pair[u, v] > 0.0 else max(0.0, y[u] + y[v] - 1.0)
                    value += pair[u, v] * both
            if value > best:
                best = value
                labels[i] = y


@pytest.mark.parametrize("uniform", [False, True])
def test_the_linear_program_equals_the_half_integral_labellings(uniform: bool) -> None:
    rng = np.random.default_rng(1)
    for labels in (1, 2, 4, 7):
        theta, pair = network(rng, labels, 15, uniform=uniform)
        all_ = every_labelling(labels, (0.0, 0.5, 1.0)) if labels < 6 else None
        reference = np.zeros_like(theta)
        best_half_integral(theta, pair, reference)
        bound = binary_network_value(theta, pair, reference)
        found = infer(theta, pair, "lp")
        assert binary_network_value(theta, pair, found.labels) == pytest.approx(bound)
        assert (bound >= binary_network_value(theta, pair, infer(theta, pair).labels) - 1e-9).all()
        if all_ is not None:
            for row, best in zip(theta, bound, strict=True):
                assert max(plain_value(row, pair, y) for y in all_) == pytest.approx(best)


def test_pairs_of_halves_add_up() -> None:
    rng = np.random.default_rng(2)
    theta, pair = network(rng, 6, 40)
    labels = rng.choice([0.0, 0.5, 1.0], (40, 6))
    found = Labelling(labels, pair > 0)
    assert np.allclose(found.pairs().sum(axis=0), found.pair_sums())
    above = pair[np.triu_indices(6, 1)]
    values = (theta * labels).sum(axis=1) + found.pairs() @ above
    assert np.allclose(values, binary_network_value(theta, pair, labels))
    assert np.allclose(values, [plain_value(row, pair, y) for row, y in zip(theta, labels, strict=True)])


def test_the_normal_form_keeps_differences_of_scores() -> None:
    rng = np.random.default_rng(3)
    single, double = rng.normal(size=(5, 2)), rng.normal(size=(5, 5, 2, 2))
    theta, pair, constant = normal_form(single, double)
    for y in every_labelling(5).astype(int):
        direct = sum(single[u, y[u]] for u in range(5))
        direct += sum(double[u, v, y[u], y[v]] for v in range(5) for u in range(v))
        assert plain_value(theta, pair, y) + constant == pytest.approx(direct)
    with pytest.raises(InputError, match=r"expected \[l, 2\] and \[l, l, 2, 2\]"):
        normal_form(single, double[:3])


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_and_one_label_are_searched(method: Inference) -> None:
    assert infer(np.zeros((0, 3)), np.zeros((3, 3)), method).labels.shape == (0, 3)
    found = infer(np.array([[2.0], [-1.0]]), np.zeros((1, 1)), method)
    assert found.labels.tolist() == [[1.0], [0.0]]


def test_rows_do_not_depend_on_their_neighbours() -> None:
    theta, pair = network(np.random.default_rng(4), 8, 30)
    for method in METHODS:
        together = infer(theta, pair, method).labels
        alone = np.concatenate([infer(row[None], pair, method).labels for row in theta])
        assert (together == alone).all(), method


def test_bad_potentials_are_refused() -> None:
    good, pair = np.zeros((2, 3)), np.zeros((3, 3))
    lopsided = pair.copy()
    lopsided[0, 1] = 1.0
    for theta, J, message in (
        (good[0], pair, r"expected \[n, l\] and \[l, l\]"),
        (good, pair[:2], r"expected \[n, l\] and \[l, l\]"),
        (good * np.nan, pair, "finite"),
        (good, lopsided, "symmetric"),
        (good, pair + np.eye(3), "symmetric matrix with diagonal 0"),
        (np.zeros((1, 0)), np.zeros((0, 0)), "0 labels"),
    ):
        with pytest.raises(InputError, match=message):
            infer(theta, J)
    with pytest.raises(InputError, match="inference 'magic' is not known"):
        infer(good, pair, "magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="201 labels: a linear program takes 200 at most"):
        infer(np.zeros((1, 201)), np.zeros((201, 201)), "lp")
    with pytest.raises(InputError, match="rho is 2"):
        infer_degraded(good, pair, 2.0)
    with pytest.raises(InputError, match="offsets for 2 rows"):
        infer_degraded(good, pair, 1.0, np.zeros(3))
    with pytest.raises(InputError, match="labels are 0, 1/2 or 1"):
        binary_network_value(good, pair, good + 0.3)
    with pytest.raises(InputError, match="labels have shape"):
        binary_network_value(good, pair, good[:1])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000), st.booleans())
def test_a_cut_finds_the_value_of_the_linear_program(labels: int, seed: int, uniform: bool) -> None:
    from netclust.models.multilabel.binary_cut_kernels import cut_labels

    rng = np.random.default_rng(seed)
    theta, pair = network(rng, labels, 4, uniform=uniform)
    if seed % 3 == 0:  # sparse, with ties
        pair *= np.triu(rng.random((labels, labels)) < 0.4, 1) | np.triu(rng.random((labels, labels)) < 0.4, 1).T
        pair, theta = np.round(pair + pair.T), np.round(2 * theta) / 2
    found, bound = np.zeros_like(theta), np.zeros(len(theta))
    cut_labels(theta, pair, found, bound)
    program = infer(theta, pair, "lp").labels
    assert binary_network_value(theta, pair, found) == pytest.approx(bound)  # labels reach what the flow says
    assert binary_network_value(theta, pair, program) == pytest.approx(bound)
    assert (infer(theta, pair, "cut").labels == found).all()


def test_whole_labels_persist() -> None:
    rng = np.random.default_rng(6)
    for uniform in (False, True):
        theta, pair = network(rng, 8, 60, uniform=uniform)
        theta, pair = 2 * theta, pair / 2  # so that some, and not all, are open
        best = binary_network_value(theta, pair, infer(theta, pair).labels)
        for method in ("lp", "cut"):
            found = infer(theta, pair, method)  # type: ignore[arg-type]
            assert 0 < found.open.mean() < 1
            for row, y, top in zip(theta, found.labels, best, strict=True):
                pinned = np.where(y == 1, 1e3, np.where(y == 0, -1e3, row))[None]
                around = infer(pinned, pair).labels
                assert binary_network_value(row[None], pair, around)[0] == pytest.approx(top)


def test_attracting_pairs_leave_no_labels_open() -> None:
    theta, pair = network(np.random.default_rng(7), 9, 40)
    found = infer(theta, np.abs(pair), "cut")
    assert found.integral()
    assert (found.labels == infer(theta, np.abs(pair)).labels).all()


def test_cuts_of_many_labels_are_not_below_combined_search() -> None:
    theta, pair = network(np.random.default_rng(8), 40, 5)
    relaxed = binary_network_value(theta, pair, infer(theta, pair, "cut").labels)
    assert (relaxed >= binary_network_value(theta, pair, infer(theta, pair, "combine").labels) - 1e-9).all()
    assert relaxed == pytest.approx(binary_network_value(theta, pair, infer(theta, pair, "lp").labels))
