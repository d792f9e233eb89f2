"""Inference in fully connected binary networks: f(y) = sum_u theta_u y_u + sum_{u<v} J_uv y_u y_v, many rows at a time.

`greedy` flips single labels, `lbp` is max-product belief propagation, `combine` the better of both: what they find may
be less than the best. `exact` tries all labellings. `lp` and `cut` relax: a label may be 1/2, and then the value is at
least the best; they solve the same program, `cut` by a maximum flow (QPBO, roof duality), and their whole labels agree
with some best labelling.

>>> theta = np.array([[1.0, 1.0, 1.0], [-0.5, -0.5, 0.2]])  # two rows, one network
>>> pair = -1.5 * (1 - np.eye(3))
>>> for method in ("greedy", "lbp", "exact", "cut"):
...     found = infer(theta, pair, method)
...     print(method, found.labels.tolist(), binary_network_value(theta, pair, found.labels).tolist())
greedy [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] [1.0, 0.2]
lbp [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]] [0.0, 0.2]
exact [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] [1.0, 0.2]
cut [[0.5, 0.5, 0.5], [0.0, 0.0, 1.0]] [1.5, 0.2]

Given labels a and b, the best value of a relaxed pair is min(a, b) where the pair attracts and max(0, a + b - 1) where
it does not; for 0, 1/2 and 1 this is a*b, and 1/4 more or less where both are 1/2.

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, section 5.2; T. Finley
and T. Joachims, "Training structural SVMs when exact inference is intractable", ICML 2008; E. Boros and P. Hammer,
"Pseudo-Boolean optimization", Discrete Applied Mathematics 123, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = [
    "METHODS",
    "MOST_EXACT",
    "Inference",
    "Labelling",
    "NormalForm",
    "binary_network_value",
    "infer",
    "infer_degraded",
    "normal_form",
]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Inference = Literal["greedy", "lbp", "combine", "exact", "lp", "cut"]
METHODS: tuple[Inference, ...] = get_args(Inference)

MOST_EXACT = 20
"""Labels of which all labellings are tried: a million a row."""
MOST_PROGRAM = 200
"""Labels of a linear program: 20,000 columns, and minutes a row."""
MOST_LABELS = 2000
"""Every pair has a number: 4 million of them."""


@dataclass(frozen=True, eq=False)
class Labelling:
    """Labels 0, 1/2 or 1 of every row, and which pairs attract: they say what a pair of two halves is worth."""

    labels: Matrix
    attractive: NDArray[np.bool_]

    @property
    def open(self) -> NDArray[np.bool_]:
        """Which labels are left open (1/2)."""
        return np.asarray(self.labels == 0.5)

    def integral(self) -> bool:
        """Whether no label is left open."""
        return not self.open.any()

    def pair_sums(self) -> Vector:
        """The sum over rows of y_uv, for u < v in row order."""
        sums = self.labels.T @ self.labels
        halves = self.open
        if halves.any():
            both = halves.astype(np.float64).T @ halves
            sums += np.where(self.attractive, 0.25, -0.25) * both
        return np.asarray(sums[np.triu_indices(len(sums), 1)])

    def pairs(self) -> Matrix:
        """y_uv of every row, for u < v in row order."""
        left, right = np.triu_indices(self.labels.shape[1], 1)
        a, b = self.labels[:, left], self.labels[:, right]
        return np.asarray(np.where(self.attractive[left, right], np.minimum(a, b), np.maximum(0.0, a + b - 1.0)))


def infer(theta: Matrix, pair: Matrix, method: Inference = "exact") -> Labelling:
    """The labels that a method finds, a row an example; `pair` is symmetric with diagonal 0, and shared by the rows."""
    theta, pair = _checked(theta, pair)
    labels = np.zeros_like(theta)
    if method == "lp":
        from netclust.models.multilabel.binary_program import solve_rows

        if theta.shape[1] > MOST_PROGRAM:
            raise InputError(
                f"{theta.shape[1]} labels: a linear program takes {MOST_PROGRAM} at most, cut solves the same"
            )
        labels = solve_rows(theta, pair)
    elif method == "cut":
        from netclust.models.multilabel.binary_cut_kernels import cut_labels

        cut_labels(theta, pair, labels, np.empty(len(theta)))
    elif method == "exact":
        from netclust.models.multilabel.binary_network_kernels import exact_labels

        _check_exact(theta.shape[1])
        exact_labels(theta, pair, labels)
    elif method in METHODS:
        from netclust.models.multilabel import binary_network_kernels as kernels

        run = {"greedy": kernels.greedy_labels, "lbp": kernels.lbp_labels, "combine": kernels.combined_labels}[method]
        run(theta, pair, labels)
    else:
        raise InputError(f"inference {method!r} is not known: it is one of {', '.join(METHODS)}")
    return Labelling(labels, pair > 0)


def infer_degraded(theta: Matrix, pair: Matrix, rho: float, offset: Vector | None = None) -> Labelling:
    """An exact search made worse on purpose: the best labelling of those with at most `rho` times the best value.

    `offset` is added to every value of a row (what is constant in its loss). A row without such a labelling gets the
    worst one.

    >>> theta, pair = np.array([[3.0, 2.0]]), np.zeros((2, 2))  # values 0, 3, 2, 5
    >>> [infer_degraded(theta, pair, rho).labels.tolist() for rho in (1.0, 0.9, 0.5)]
    [[[1.0, 1.0]], [[1.0, 0.0]], [[0.0, 1.0]]]
    """
    from netclust.models.multilabel.binary_network_kernels import degraded_labels

    theta, pair = _checked(theta, pair)
    _check_exact(theta.shape[1])
    if not 0 <= rho <= 1:
        raise InputError(f"rho is {rho}: it is a share of the best value, 0 to 1")
    offset = np.zeros(len(theta)) if offset is None else np.ascontiguousarray(offset, np.float64)
    if offset.shape != (len(theta),):
        raise InputError(f"{offset.shape} offsets for {len(theta)} rows")
    labels = np.zeros_like(theta)
    degraded_labels(theta, pair, offset, float(rho), labels)
    return Labelling(labels, pair > 0)


def binary_network_value(theta: Matrix, pair: Matrix, labels: Matrix) -> Vector:
    """Return f(y) of every row; labels are 0, 1/2 or 1, and pairs of halves have their best value.

    >>> pair = np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> binary_network_value(np.array([[1.0, 1.0]]), pair, np.array([[0.5, 0.5]])).tolist()
    [2.5]
    """
    theta, pair = _checked(theta, pair)
    labels = np.asarray(labels, np.float64)
    if labels.shape != theta.shape:
        raise InputError(f"labels have shape {labels.shape}, the potentials {theta.shape}")
    halves = (labels == 0.5).astype(np.float64)
    if not np.isin(labels, (0.0, 0.5, 1.0)).all():
        raise InputError("labels are 0, 1/2 or 1")
    total = (theta * labels).sum(axis=1) + ((labels @ pair) * labels).sum(axis=1) / 2
    if halves.any():
        total += ((halves @ np.abs(pair)) * halves).sum(axis=1) / 8
    return np.asarray(total)


class NormalForm(NamedTuple):
    """A network whose labels are worth nothing when off; `constant` is what its values lack."""

    theta: Vector
    pair: Matrix
    constant: float


def normal_form(single: Matrix, double: Matrix) -> NormalForm:
    """Any binary pairwise network in this form; differences of scores are the same.

    `single[u, a]` is the potential of u = a, `double[u, v, a, b]` that of u = a and v = b; it is read for u < v.

    >>> double = np.zeros((2, 2, 2, 2))
    >>> double[0, 1] = [[4, 1], [2, 8]]
    >>> theta, pair, constant = normal_form(np.array([[0.0, 1.0], [2.0, 0.0]]), double)
    >>> theta.tolist(), pair.tolist(), constant  # 01: 6 - 5 = 1 + 0, 11: 6 - 1 - 5 + 9 = 1 + 8
    ([-1.0, -5.0], [[0.0, 9.0], [9.0, 0.0]], 6.0)
    """
    single, double = np.asarray(single, np.float64), np.asarray(double, np.float64)
    count = len(single)
    if single.shape != (count, 2) or double.shape != (count, count, 2, 2):
        raise InputError(f"potentials have shapes {single.shape} and {double.shape}: expected [l, 2] and [l, l, 2, 2]")
    above = np.triu(np.ones((count, count)), 1)
    alone_u = (double[:, :, 1, 0] - double[:, :, 0, 0]) * above
    alone_v = (double[:, :, 0, 1] - double[:, :, 0, 0]) * above
    both = (double[:, :, 1, 1] + double[:, :, 0, 0] - double[:, :, 1, 0] - double[:, :, 0, 1]) * above
    theta = single[:, 1] - single[:, 0] + alone_u.sum(axis=1) + alone_v.sum(axis=0)
    return NormalForm(theta, both + both.T, float(single[:, 0].sum() + (double[:, :, 0, 0] * above).sum()))


def _checked(theta: Matrix, pair: Matrix) -> tuple[Matrix, Matrix]:
    theta, pair = np.ascontiguousarray(theta, np.float64), np.ascontiguousarray(pair, np.float64)
    if theta.ndim != 2 or pair.shape != (theta.shape[1],) * 2:
        raise InputError(f"potentials have shapes {theta.shape} and {pair.shape}: expected [n, l] and [l, l]")
    if not 1 <= theta.shape[1] <= MOST_LABELS:
        raise InputError(f"{theta.shape[1]} labels: a fully connected network has 1 to {MOST_LABELS:,}")
    if not (np.isfinite(theta).all() and np.isfinite(pair).all()):
        raise InputError("potentials are finite numbers: check the weights and the features")
    if pair.diagonal().any() or not (pair == pair.T).all():
        raise InputError("potentials of pairs are a symmetric matrix with diagonal 0")
    return theta, pair


def _check_exact(labels: int) -> None:
    if labels > MOST_EXACT:
        raise InputError(
            f"{labels} labels have too many labellings to try them all, {MOST_EXACT} have not: use combine, or cut"
        )
