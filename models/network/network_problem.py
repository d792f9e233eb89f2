"""The network task as a structured problem: records link to earlier ones, and any learner of structures can train it.

An example is a stretch of a labelled stream: every record of it takes the best arc from one of the records before it,
within the training window, or from the root. With stretches of one record LSP and LSPA learn what
`netclust.models.network.stream_perceptron` learns; longer stretches are one constraint each for a structural SVM.

>>> from netclust.records.batch import Batch
>>> from netclust.learners.perceptron import Lsp
>>> a = np.array([0.1, 0.9, 0.2, 0.8, 0.5, 0.15], np.float32)
>>> stream = Batch(num=a[:, None], code=np.zeros((6, 0), np.uint16), label=np.array([0, 1, 0, 1, 2, 0]))
>>> problem = NetworkProblem(WeightLayout(features=1, widths=(), roots=1), window=3)
>>> fitted = Lsp().fit(problem, cut_network_slices(stream), epochs=2)
>>> fitted.last.round(2).tolist(), fitted.updates
([2.15, 0.0], 9)

The loss is Delta_F (5.5), or has a price a kind of wrong arc (`netclust.models.network.arc_prices`). I. Haponchyk,
"Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.models.network.arc_prices import PASSED_OVER, ArcPrices, edge_prices
from netclust.models.network.stream_perceptron import Absent, first_of_class
from netclust.records.batch import Batch
from netclust.scoring.similarity import RootFeatures, WeightLayout, root_features
from netclust.structures.pairs import Vector

if TYPE_CHECKING:
    from netclust.kernels.linking.sequence_features import StreamRecords

__all__ = ["Arcs", "NetworkProblem", "StreamLabels", "StreamSlice", "cut_network_slices"]

Matrix = NDArray[np.float64]
ROOT = -1


@dataclass(frozen=True, eq=False)
class StreamSlice:
    """Records lo..hi of a stream; those before them are candidates. The stream is shared, not copied."""

    records: StreamRecords
    lo: int
    hi: int


@dataclass(frozen=True, eq=False)
class StreamLabels:
    """The class of every record of the stream, whether it is the first of it, and normal; shared by its stretches."""

    label: NDArray[np.int32]
    first: NDArray[np.bool_]
    normal: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Arcs:
    """The structure of a stretch: `parents[k]` is the record that record lo + k links to, -1 the root, -2 none."""

    lo: int
    parents: NDArray[np.int64]


def cut_network_slices(
    batch: Batch, *, length: int = 1, root: RootFeatures = "bias", is_normal: NDArray[np.bool_] | None = None
) -> list[tuple[StreamSlice, StreamLabels]]:
    """Cut a labelled stream into examples of so many records, in their order.

    `is_normal` says which classes are normal; without it none is, which is all the same to Delta_F.
    """
    from netclust.kernels.linking.score import score_columns
    from netclust.kernels.linking.sequence_features import StreamRecords

    if length < 1:
        raise InputError(f"a stretch has at least 1 record, not {length}")
    if not len(batch) or (batch.label < 0).any():
        raise InputError("every training record needs a label, and there must be at least one")
    records = StreamRecords(score_columns(batch.num), score_columns(batch.code), root_features(batch, root))
    normal = np.zeros(len(batch), np.bool_) if is_normal is None else is_normal[batch.label]
    y = StreamLabels(batch.label, first_of_class(batch.label), normal)
    return [(StreamSlice(records, lo, min(lo + length, len(batch))), y) for lo in range(0, len(batch), length)]


@dataclass(frozen=True)
class NetworkProblem:
    """Best earlier links within a window, or the root: the names are those of `StreamRule`."""

    layout: WeightLayout
    window: int = 100
    r: float = 1.0
    absent: Absent = "window"
    sign: int = -1
    prices: ArcPrices | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be used."""
        if self.window < 1:
            raise InputError(f"the training window is at least 1, not {self.window}")

    @property
    def dimension(self) -> int:
        """How many weights."""
        return self.layout.dimension

    def joint_features(self, x: StreamSlice, h: Arcs) -> Vector:
        """Return the sum of the features of the arcs."""
        from netclust.kernels.linking.sequence_features import CodedWeightLayout, sum_arcs

        g = np.zeros(self.dimension)
        sum_arcs(x.records, CodedWeightLayout(self.layout.at, self.layout.width), self.sign, h.lo, h.parents, g)
        return g

    def predict(self, x: StreamSlice, w: Vector) -> Arcs:
        """Return the best arc of every record; of equal ones the root, then the oldest."""
        return self._best(x.lo, self._scores(x, w))

    def max_violating(self, x: StreamSlice, y: StreamLabels, w: Vector, C: float) -> tuple[Arcs, float]:
        """Return the arcs of Algorithm 5, and their loss."""
        right, loss = self._right(y, x.lo, x.hi), self._losses(y, x.lo, x.hi)
        h = self._best(x.lo, self._scores(x, w) + C * loss, right)
        return h, self._total(loss, h)

    def gold(self, x: StreamSlice, y: StreamLabels, w: Vector) -> Arcs:
        """Return the best right arc of every record."""
        right = self._right(y, x.lo, x.hi)
        return self._best(x.lo, np.where(right, self._scores(x, w), -np.inf), right)

    def loss(self, y: StreamLabels, h: Arcs) -> float:
        """Return Delta_F of the arcs, or what they cost at the prices."""
        return self._total(self._losses(y, h.lo, h.lo + len(h.parents)), h)

    def _scores(self, x: StreamSlice, w: Vector) -> Matrix:
        """[records, 1 + window]: the root, then the candidates from the oldest; -inf where there is none."""
        from netclust.kernels.linking.sequence_features import CodedWeightLayout, score_arcs

        layout = self.layout
        if x.records.num.shape[0] != layout.features or x.records.root.shape[1] != layout.roots:
            raise InputError("the records' attributes or root features are not those of the weights' layout")
        if len(x.records.code) != len(layout.widths) or np.shape(w) != (self.dimension,):
            raise InputError("the records' coded attributes or the number of weights are not those of the layout")
        scores = np.empty((x.hi - x.lo, 1 + self.window))
        score_arcs(x.records, CodedWeightLayout(layout.at, layout.width), w, self.sign, self.window, x.lo, x.hi, scores)
        return scores

    def _candidates(self, lo: int, hi: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """[records, window]: the records before each, from the oldest, and which of them there are."""
        record = np.arange(lo, hi)[:, None]
        candidate = np.maximum(0, record - self.window) + np.arange(self.window)
        return np.minimum(candidate, hi - 1), candidate < record

    def _same(self, y: StreamLabels, lo: int, hi: int) -> NDArray[np.bool_]:
        """[records, window]: which candidates have the record's class."""
        candidate, there = self._candidates(lo, hi)
        return np.asarray(there & (y.label[candidate] == y.label[lo:hi, None]), np.bool_)

    def _right(self, y: StreamLabels, lo: int, hi: int) -> NDArray[np.bool_]:
        """[records, 1 + window]: which arcs are right; a row without one is passed over."""
        same = self._same(y, lo, hi)
        root = ~same.any(axis=1)
        if self.absent == "global":
            root &= y.first[lo:hi]
        return np.column_stack([root, same])

    def _losses(self, y: StreamLabels, lo: int, hi: int) -> Matrix:
        candidate, _ = self._candidates(lo, hi)
        price = (self.prices or edge_prices(self.r)).table[y.normal[lo:hi].astype(np.int64)]
        links = np.take_along_axis(price, y.normal[candidate].astype(np.int64), axis=1)
        return np.where(self._right(y, lo, hi), 0.0, np.column_stack([price[:, 2], links]))

    def _best(self, lo: int, scores: Matrix, right: NDArray[np.bool_] | None = None) -> Arcs:
        at = scores.argmax(axis=1)
        start = np.maximum(0, np.arange(lo, lo + len(at)) - self.window)
        parents = np.where(at == 0, ROOT, start + at - 1)
        if right is not None:
            parents[~right.any(axis=1)] = PASSED_OVER
        return Arcs(lo, parents)

    def _total(self, loss: Matrix, h: Arcs) -> float:
        rows = np.flatnonzero(h.parents != PASSED_OVER)
        parents = h.parents[rows]
        start = np.maximum(0, h.lo + rows - self.window)
        return float(loss[rows, np.where(parents == ROOT, 0, parents - start + 1)].sum())
