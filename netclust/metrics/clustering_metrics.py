"""How good a clustering is against the truth: pair, link and item measures, all from one contingency table.

>>> y, z = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
>>> found = measure_clustering(y, z)
>>> for name in ("rand", "pair_f1", "muc_f1", "b3_f1", "adjusted_rand", "v_measure", "delta_p", "delta_m"):
...     print(f"{name} {found[name]:.3f}")
rand 0.600
pair_f1 0.500
muc_f1 0.667
b3_f1 0.733
adjusted_rand 0.167
v_measure 0.433
delta_p 40.000
delta_m 33.333
>>> mean, sd = measure_sets([(y, y), (y, z)])["rand"]
>>> print(f"{mean:.3f} {sd:.3f}")
0.800 0.283

Measures are fractions from 0 to 1 (the adjusted Rand index can be below 0); `delta_p` and `delta_m` are losses in
percent, `clusters` and `true_clusters` are counts. A precision or recall that would be 0/0 is 1: nothing was claimed,
or nothing was to be found. `edge_accuracy` is the share of pairs rightly put together or apart, as B. Taskar reports it
("Learning Structured Prediction Models: A Large Margin Approach", PhD thesis, Stanford University, 2004; chapter 11):
the Rand index by another name.

M. Vilain et al., "A model-theoretic coreference scoring scheme", MUC-6, 1995. A. Bagga and B. Baldwin, "Algorithms for
scoring coreference chains", LREC workshop on linguistic coreference, 1998. T. Finley, "Supervised Clustering with
Structural SVMs", PhD thesis, Cornell University, 2009; section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.losses.partition_loss import Contingency, pairs_within, partition_contingency
from netclust.structures.pairs import pair_count
from netclust.structures.partition import canonical_partition

__all__ = [
    "MEASURES",
    "PrecisionRecall",
    "Summary",
    "b3_scores",
    "clustering_pair_scores",
    "measure_clustering",
    "measure_sets",
    "muc_scores",
    "scores_of_sums",
]

MEASURES = (
    "rand",
    "edge_accuracy",
    "pair_precision",
    "pair_recall",
    "pair_f1",
    "muc_precision",
    "muc_recall",
    "muc_f1",
    "b3_precision",
    "b3_recall",
    "b3_f1",
    "adjusted_rand",
    "nmi",
    "homogeneity",
    "completeness",
    "v_measure",
    "delta_p",
    "delta_m",
    "clusters",
    "true_clusters",
)
"""The names that `measure_clustering` gives, in its order."""


class PrecisionRecall(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


class Summary(NamedTuple):
    """A measure over several sets; the deviation is that of a sample, 0 for a single set."""

    mean: float
    sd: float


def measure_clustering(y: ArrayLike, z: ArrayLike) -> dict[str, float]:
    """Every measure of the clustering z of a set against the truth y."""
    true, found = _labels(y), _labels(z)
    if len(true) != len(found):
        raise InputError(f"{len(true)} true labels and {len(found)} found ones: there must be one of each an item")
    table = partition_contingency(true, found)
    pairs, muc, b3 = clustering_pair_scores(table), muc_scores(table), b3_scores(table)
    within = pairs_within(table.rows) + pairs_within(table.columns) - 2 * pairs_within(table.cells)
    rand = 1 - within / max(pair_count(len(true)), 1)
    sklearn = require_optional("sklearn.metrics", "measuring a clustering")
    homogeneity, completeness, v_measure = sklearn.homogeneity_completeness_v_measure(true, found)
    values = (
        *(rand, rand),
        *(*pairs, *muc, *b3),
        sklearn.adjusted_rand_score(true, found),
        sklearn.normalized_mutual_info_score(true, found),
        *(homogeneity, completeness, v_measure),
        *(100 * (1 - rand), 100 * (1 - muc.f1)),
        *(len(table.columns), len(table.rows)),
    )
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def measure_sets(pairs: Iterable[tuple[ArrayLike, ArrayLike]]) -> dict[str, Summary]:
    """Mean and standard deviation of every measure over sets, each given as its (true, found) labels."""
    measured = [measure_clustering(y, z) for y, z in pairs]
    if not measured:
        raise InputError("no sets to measure")
    columns = {name: np.array([found[name] for found in measured]) for name in MEASURES}
    return {
        name: Summary(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0)
        for name, values in columns.items()
    }


def clustering_pair_scores(table: Contingency) -> PrecisionRecall:
    """Return pair precision and recall: the pairs put together that belong together, and the reverse."""
    both = pairs_within(table.cells)
    return scores_of_sums(both, pairs_within(table.columns), both, pairs_within(table.rows))


def muc_scores(table: Contingency) -> PrecisionRecall:
    """MUC or MITRE: the links that a cluster needs (one less than its items), and how many of them are right.

    >>> table = partition_contingency(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]))  # A-B-C-D, found A-B and C-D
    >>> muc_scores(table)
    PrecisionRecall(precision=1.0, recall=0.6666666666666666, f1=0.8)
    """
    items = int(table.rows.sum())
    right = items - len(table.cells)
    return scores_of_sums(right, items - len(table.columns), right, items - len(table.rows))


def b3_scores(table: Contingency) -> PrecisionRecall:
    """B-cubed: of an item's cluster the share that belongs with it, and of those that belong the share found; meaned.

    >>> [round(part, 3) for part in b3_scores(partition_contingency(np.array([0, 0, 1]), np.array([0, 0, 0])))]
    [0.556, 1.0, 0.714]
    """
    items = float(table.rows.sum())
    square = table.cells.astype(np.float64) ** 2
    precise, recalled = square / table.columns[table.column], square / table.rows[table.row]
    return scores_of_sums(float(precise.sum()), items, float(recalled.sum()), items)


def scores_of_sums(
    precise: float, claimed: float, recalled: float, wanted: float, *, nothing: float = 1.0
) -> PrecisionRecall:
    """Precision and recall of what was claimed and wanted, and their harmonic mean; 0/0 is what `nothing` says.

    >>> scores_of_sums(1, 2, 1, 1), scores_of_sums(0, 0, 0, 3).precision
    (PrecisionRecall(precision=0.5, recall=1.0, f1=0.6666666666666666), 1.0)
    """
    precision = precise / claimed if claimed else nothing
    recall = recalled / wanted if wanted else nothing
    both = precision + recall
    return PrecisionRecall(precision, recall, 2 * precision * recall / both if both else 0.0)


def _labels(labels: ArrayLike) -> NDArray[np.int64]:
    given: NDArray[Any] = np.asarray(labels)
    if given.ndim != 1 or not len(given):
        raise InputError(f"labels have shape {list(given.shape)}: a set has one label an item and at least one item")
    if given.dtype.kind in "fc" and not np.isfinite(given).all():
        raise InputError("a label is not a number: every item needs a cluster")
    return canonical_partition(given)
