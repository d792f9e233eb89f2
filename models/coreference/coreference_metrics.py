"""How good a coreference response is against its key: MUC, B3, CEAF, BLANC, LEA, MELA, and mention detection.

A clustering is a sequence of sets of mentions, which are anything that can be compared and hashed. A side may lack
mentions that the other one has:

>>> found = score_documents([[{1, 6}, {2, 3, 5, 7}, {4}]], [[{1, 6}, {2, 3, 8}, {5, 7}, {9}]])
>>> for name in ("muc", "b3", "ceafe", "mela"):
...     print(f"{name:5} P {found[name].precision:.4f} R {found[name].recall:.4f} F1 {found[name].f1:.4f}")
muc   P 0.7500 R 0.7500 F1 0.7500
b3    P 0.6667 R 0.5714 F1 0.6154
ceafe P 0.4167 R 0.5556 F1 0.4762
mela  P 0.6111 R 0.6257 F1 0.6139

The score of several documents is that of the sums over them, not the mean of their scores. What would be 0/0 is 0.
A mention counts once on a side: where it is repeated, only its first place does. In training, where both sides cluster
the same mentions, labels are enough:

>>> round(mela_of_labels(np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])), 4)
0.7333

The numbers are those of the reference scorer, version 8.01: S. Pradhan et al., "Scoring coreference partitions of
predicted mentions: a reference implementation", ACL 2014; X. Luo et al., "An extension of BLANC to system mentions",
ACL 2014; N. S. Moosavi and M. Strube, "Which coreference evaluation metric do you trust? A proposal for a link-based
entity aware metric", ACL 2016.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.losses.partition_loss import Contingency
from netclust.metrics.clustering_metrics import PrecisionRecall, scores_of_sums

__all__ = [
    "METRICS",
    "BlancCounts",
    "Clusters",
    "Counts",
    "Sums",
    "best_assignment",
    "coreference_scores",
    "document_counts",
    "label_counts",
    "mela_of_labels",
    "mention_table",
    "score_documents",
    "total_counts",
]

METRICS = ("mentions", "muc", "b3", "ceafm", "ceafe", "blanc", "lea", "mela")
"""The names that scores have, in their order."""

MELA_PARTS = ("muc", "b3", "ceafe")

Clusters = Iterable[Iterable[Hashable]]


class Counts(NamedTuple):
    """What a metric sums over a document: of what the key wants, how much came; of what is claimed, how much is so."""

    recalled: float
    wanted: float
    precise: float
    claimed: float

    def plus(self, other: Counts) -> Counts:
        """The sums of both."""
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def scores(self) -> PrecisionRecall:
        """Precision, recall and F1."""
        return scores_of_sums(self.precise, self.claimed, self.recalled, self.wanted, nothing=0.0)


class BlancCounts(NamedTuple):
    """BLANC counts pairs of mentions twice: those in one cluster, and those that are apart."""

    coreferent: Counts
    apart: Counts

    def plus(self, other: BlancCounts) -> BlancCounts:
        """The sums of both."""
        return BlancCounts(self.coreferent.plus(other.coreferent), self.apart.plus(other.apart))

    def scores(self) -> PrecisionRecall:
        """The means of the two kinds of pairs; the score of one kind where the key has none of the other."""
        kinds = [kind.scores() for kind in self if kind.wanted]
        return _mean(kinds) if kinds else PrecisionRecall(0.0, 0.0, 0.0)


Sums = dict[str, Counts | BlancCounts]
"""The counts of metrics by name; MELA has none of its own."""


def score_documents(
    key: Sequence[Clusters], response: Sequence[Clusters], metrics: Iterable[str] = METRICS
) -> dict[str, PrecisionRecall]:
    """The scores of responses to several documents, from the sums over all of them."""
    if len(key) != len(response):
        raise InputError(f"{len(key)} documents in the key and {len(response)} in the response: one each is needed")
    chosen = _check(metrics)
    return coreference_scores(
        total_counts(document_counts(k, r, chosen) for k, r in zip(key, response, strict=True)), chosen
    )


def document_counts(key: Clusters, response: Clusters, metrics: Iterable[str] = METRICS) -> Sums:
    """The sums of one document.

    >>> document_counts([{"a"}, {"b", "c"}], [{"a", "b", "c"}], ["muc"])
    {'muc': Counts(recalled=1.0, wanted=1.0, precise=1.0, claimed=2.0)}
    """
    ours, theirs = _places(key), _places(response)
    mentions = [*ours, *(mention for mention in theirs if mention not in ours)]
    y = np.fromiter((ours.get(mention, -1) for mention in mentions), np.int64, len(mentions))
    z = np.fromiter((theirs.get(mention, -1) for mention in mentions), np.int64, len(mentions))
    return _counts(_table(y, z), _check(metrics))


def label_counts(y: ArrayLike, z: ArrayLike, metrics: Iterable[str] = METRICS) -> Sums:
    """The sums of one document whose mentions have labels in the key and in the response; below 0: it is not there."""
    return _counts(mention_table(y, z), _check(metrics))


def mela_of_labels(y: ArrayLike, z: ArrayLike) -> float:
    """MELA of one document, 0 to 1: the mean F1 of MUC, B3 and CEAF_e."""
    return coreference_scores(_counts(mention_table(y, z), MELA_PARTS), ["mela"])["mela"].f1


def total_counts(documents: Iterable[Sums]) -> Sums:
    """The sums over documents; nothing where there are none."""
    total: dict[str, Any] = {}
    for document in documents:
        for name, counts in document.items():
            total[name] = total[name].plus(counts) if name in total else counts
    return total


def coreference_scores(
    counts: Mapping[str, Counts | BlancCounts], metrics: Iterable[str] = METRICS
) -> dict[str, PrecisionRecall]:
    """Return scores by name. MELA's precision and recall are means as its F1 is; only that is in use."""
    nothing = Counts(0.0, 0.0, 0.0, 0.0)
    found = {}
    for name in _check(metrics):
        parts = MELA_PARTS if name == "mela" else (name,)
        found[name] = _mean([counts.get(part, nothing).scores() for part in parts])
    return found


def mention_table(y: ArrayLike, z: ArrayLike) -> Contingency:
    """The table of two labellings of the same mentions: one that is labelled below 0 is not on that side.

    Clusters keep their numbers where these are small; a number without mentions has size 0.
    """
    ours, theirs = _labels(y), _labels(z)
    if len(ours) != len(theirs):
        raise InputError(f"{len(ours)} labels in the key and {len(theirs)} in the response: one each a mention")
    return _table(ours, theirs)


def _table(y: NDArray[np.int64], z: NDArray[np.int64]) -> Contingency:
    from netclust.models.coreference.coreference_count_kernels import cells_of

    rows, columns = (np.empty(side.max(initial=-1) + 1, np.int64) for side in (y, z))
    row, column, size = np.empty((3, len(y)), np.int64)
    count = cells_of(y, z, rows, columns, row, column, size)
    return Contingency(size[:count], row[:count], column[:count], rows, columns)


def _counts(table: Contingency, metrics: Sequence[str]) -> Sums:
    """The sums of the chosen metrics, those that MELA needs among them."""
    from netclust.models.coreference import coreference_count_kernels as kernels

    sums = np.empty((6, 4))
    kernels.sum_table(table.rows, table.columns, table.row, table.column, table.cells, sums)
    lines = [Counts(*line) for line in sums.tolist()]
    wanted = {part for name in metrics for part in (MELA_PARTS if name == "mela" else (name,))}
    found: Sums = {}
    for name in METRICS:
        if name not in wanted:
            continue
        if name == "ceafe":
            shared = best_assignment(table, by_mention=False)
            found[name] = Counts(shared, _clusters(table.rows), shared, _clusters(table.columns))
        elif name == "ceafm":
            shared, mentions = best_assignment(table, by_mention=True), lines[kernels.MENTIONS]
            found[name] = Counts(shared, mentions.wanted, shared, mentions.claimed)
        elif name == "blanc":
            found[name] = BlancCounts(lines[kernels.COREFERENT], lines[kernels.APART])
        else:
            line = {"mentions": kernels.MENTIONS, "muc": kernels.MUC, "b3": kernels.B3, "lea": kernels.LEA}[name]
            found[name] = lines[line]
    return found


def best_assignment(table: Contingency, *, by_mention: bool) -> float:
    """Psi of CEAF: the highest total similarity when every cluster is given to at most one of the other side."""
    from netclust.models.coreference.coreference_count_kernels import assignment_blocks

    total, shapes, values = assignment_blocks(
        table.rows, table.columns, table.row, table.column, table.cells, by_mention
    )
    if not len(shapes):
        return float(total)
    assign = require_optional("scipy.optimize", "CEAF").linear_sum_assignment
    at = 0
    for high, wide in shapes.tolist():
        block = values[at : at + high * wide].reshape(high, wide)
        total += block[assign(block, maximize=True)].sum()
        at += high * wide
    return float(total)


def _clusters(sizes: NDArray[np.int64]) -> float:
    return float(np.count_nonzero(sizes))


def _places(clusters: Clusters) -> dict[Hashable, int]:
    """The cluster of every mention: the first that has it."""
    found: dict[Hashable, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            found.setdefault(mention, number)
    return found


def _labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Labels as numbers that tables can be indexed with."""
    given: NDArray[Any] = np.asarray(labels)
    if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
        raise InputError(f"labels are {given.dtype} of shape {list(given.shape)}: one whole number a mention is needed")
    if len(given) and given.max() >= 2 * len(given):
        values, places = np.unique(given, return_inverse=True)
        given = np.where(given < 0, -1, places.ravel() - np.count_nonzero(values < 0))
    return np.ascontiguousarray(given, np.int64)


def _check(metrics: Iterable[str]) -> list[str]:
    chosen = list(metrics)
    for name in chosen:
        if name not in METRICS:
            raise InputError(f"no metric {name!r}: there are {', '.join(METRICS)}")
    return chosen


def _mean(scores: Sequence[PrecisionRecall]) -> PrecisionRecall:
    return PrecisionRecall(*(sum(part) / len(scores) for part in zip(*scores, strict=True)))
