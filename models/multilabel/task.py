"""The task `multilabel`: rows with any number of labels, which are found together by a fully connected binary network.

>>> from netclust.models.structured_task import learn
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(60, 2))
>>> Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(np.uint8)
>>> table = LabelSetTable(("a", "b"), ("east", "north"), X, Y, tuple(map(str, range(60))))
>>> settings = LabelSettings(C=100.0, epsilon=1.0)
>>> encoder = TASK.fit(table, settings)
>>> examples = TASK.encode(encoder, table)
>>> w = learn(TASK, settings, encoder, examples).w
>>> found = TASK.problem(encoder, settings).predict(LabelRows(encoder.rows(np.array([[2.0, -2.0]]))), w)
>>> decided_labels(found).tolist()
[[1, 0]]

**Features.** Where a quarter of the training numbers or more is not 0, columns are centred and divided by their
standard deviation. Otherwise they stay sparse: divided by their largest absolute value, never centred. Which of both
depends on the numbers, not on the format of the file. One constant feature is appended: how frequent a label is cannot
be said without.

**Search.** `auto` trains with `cut`, the relaxed search: of the approximate ones it is the one that leaves no violated
constraint behind, its cost does not grow with 2^labels, and what it trains predicts much the same with any search but
greedy. `auto` predicts with `exact` up to 12 labels and with `combine` above, which leaves none open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.label_sets import LabelSetTable
from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.learners.cutting_plane import OnIteration, SvmFit
from netclust.models.multilabel.binary_network import Inference, Labelling
from netclust.models.multilabel.label_metrics import measure_labels
from netclust.models.multilabel.multilabel_problem import LabelRows, MultilabelProblem
from netclust.models.structured_model import know_task
from netclust.models.structured_task import LearnedTask, StructuredTask, SvmSettings, learn_svm

__all__ = ["TASK", "LabelEncoder", "LabelSettings", "LabelTask", "Search", "decided_labels", "describe_labels"]

Search = Literal["auto", "greedy", "lbp", "combine", "exact", "lp", "cut"]
FEW_LABELS = 12
"""So many have 4,096 labellings: to try them all costs no more than the other searches."""
DENSE_SHARE = 0.25
_MOST_SINGLE = 50_000_000  # numbers that learners with a vector a row may keep: 400 MB


class LabelSettings(SvmSettings, frozen=True, kw_only=True):
    """How a multi-label model is learned and applied."""

    oracle: Search = "auto"
    """What finds the most violated labelling in training."""
    predictor: Search = "auto"
    """What finds the labels of a row."""
    edges: bool = True
    """Whether pairs of labels have weights; without, labels are told one by one."""
    scale: Literal["auto", "none"] = "auto"
    """What is done to features: see the module."""


class LabelEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names, and what is taken off and divided by; `centre` is empty where nothing is taken off."""

    features: tuple[str, ...]
    labels: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if not self.features or not self.labels:
            raise InputError("a multi-label model needs features and labels")
        if len(self.scale) != len(self.features) or len(self.centre) not in (0, len(self.features)):
            raise InputError("a multi-label model has one centre and one scale a feature")
        scale = np.array(self.scale)
        if not (np.isfinite(self.centre).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise InputError("centres are numbers, and scales above 0")

    @classmethod
    def of(cls, features: Sequence[str], labels: Sequence[str], X: Any, scaled: bool = True) -> LabelEncoder:
        """From the training rows."""
        names, wanted = tuple(features), tuple(labels)
        if not scaled:
            return cls(names, wanted, () if _is_sparse(X) else (0.0,) * len(names), (1.0,) * len(names))
        filled = X.nnz if _is_sparse(X) else np.count_nonzero(X)
        if filled >= DENSE_SHARE * X.shape[0] * X.shape[1]:
            dense = X.toarray() if _is_sparse(X) else X
            spread = dense.std(axis=0)
            centre = tuple(dense.mean(axis=0).tolist())
        else:
            most = abs(X).max(axis=0)
            spread = np.asarray(most.toarray() if _is_sparse(most) else most).ravel()
            centre = ()
        # a column that is constant but for rounding is worth nothing, whatever it is divided by
        tiny = 1e-12 * np.abs(np.array(centre)) if centre else 0.0
        return cls(names, wanted, centre, tuple(np.where(spread > tiny, spread, 1.0).tolist()))

    def rows(self, X: Any) -> Any:
        """Features as the problem has them, the constant one last: dense where columns are centred, else CSR."""
        if X.shape[1] != len(self.features):
            raise InputError(f"rows have {X.shape[1]} features, the model {len(self.features)}")
        if self.centre:
            dense = X.toarray() if _is_sparse(X) else np.asarray(X, np.float64)
            return np.column_stack([(dense - np.array(self.centre)) / np.array(self.scale), np.ones(len(dense))])
        sparse = require_optional("scipy.sparse", "multi-label models of sparse features")
        scaled = sparse.csr_matrix(X) @ sparse.diags(1.0 / np.array(self.scale))
        return sparse.hstack([scaled, np.ones((X.shape[0], 1))], format="csr")


class LabelTask(StructuredTask):
    """Raw examples are a `LabelSetTable`; all of its rows are one example of the problem."""

    name: ClassVar[str] = "multilabel"
    settings: ClassVar[type[Any]] = LabelSettings
    encoder: ClassVar[type[Any]] = LabelEncoder
    grid: ClassVar[Sequence[float]] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

    def fit(self, raw: LabelSetTable, settings: LabelSettings) -> LabelEncoder:
        """Names and scales."""
        if raw.Y is None:
            raise InputError("the rows have no labels: there is nothing to learn from")
        return LabelEncoder.of(raw.features, raw.labels, raw.X, settings.scale == "auto")

    def encode(self, encoder: LabelEncoder, raw: LabelSetTable) -> list[tuple[LabelRows, NDArray[np.uint8] | None]]:
        """One block of rows."""
        return [(LabelRows(encoder.rows(raw.X)), raw.Y)]

    def problem(self, encoder: LabelEncoder, settings: LabelSettings) -> MultilabelProblem:
        """The network."""
        labels = len(encoder.labels)
        oracle: Inference = "cut" if settings.oracle == "auto" else settings.oracle
        chosen: Inference = "exact" if labels <= FEW_LABELS else "combine"
        predictor: Inference = chosen if settings.predictor == "auto" else settings.predictor
        return MultilabelProblem(labels, len(encoder.features) + 1, oracle, predictor, settings.edges)

    def weight_names(self, encoder: LabelEncoder, settings: LabelSettings) -> list[str]:
        """Label and feature, or two labels."""
        names = [f"{label}: {name}" for label in encoder.labels for name in (*encoder.features, "constant")]
        if not settings.edges:
            return names
        left, right = np.triu_indices(len(encoder.labels), 1)
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        return names + [f"{encoder.labels[u]} + {encoder.labels[v]}" for u, v in pairs]

    def measure(self, pairs: Sequence[tuple[NDArray[np.uint8], Labelling]]) -> Mapping[str, float]:
        """In percent; an open label is half wrong for the loss, and off for the other measures."""
        Y = np.concatenate([y for y, _ in pairs])
        found = np.concatenate([h.labels for _, h in pairs])
        scores = measure_labels(Y, found > 0.5)
        return {
            "Hamming loss": 100 * float(np.abs(Y - found).mean()),
            "exact matches": 100 * scores.subset_accuracy,
            "F1 by row": 100 * scores.example_f1,
            "F1 over all": 100 * scores.micro_f1,
            "F1 by label": 100 * scores.macro_f1,
            "Jaccard": 100 * scores.jaccard,
            "labels left open": 100 * float((found == 0.5).mean()),
        }

    def take(self, raw: LabelSetTable, chosen: Sequence[int]) -> LabelSetTable:
        """Some of the rows."""
        return raw.rows(chosen)

    def learn(
        self,
        settings: LabelSettings,
        problem: Any,
        examples: Sequence[tuple[Any, Any]],
        *,
        warm: SvmFit | None = None,
        on_iteration: OnIteration | None = None,
    ) -> LearnedTask:
        """One-slack on the block as it is; learners that treat examples one by one get every row as one."""
        if settings.learner != "one-slack":
            rows = sum(len(x) for x, _ in examples)
            if rows * problem.dimension > _MOST_SINGLE:
                what = f"{rows:,} rows with {problem.dimension:,} weights each"
                raise InputError(f"{settings.learner} keeps {what}, which is too much: use one-slack")
            examples = [(x.take(slice(i, i + 1)), y[i : i + 1]) for x, y in examples for i in range(len(x))]
        return learn_svm(settings, problem, examples, warm=warm, on_iteration=on_iteration)


def decided_labels(found: Labelling) -> NDArray[np.uint8]:
    """Return the labels of every row, open ones off."""
    return np.asarray(found.labels > 0.5, np.uint8)


def describe_labels(settings: LabelSettings, labels: int) -> str:
    """What is searched with, for people.

    >>> describe_labels(LabelSettings(), 6), describe_labels(LabelSettings(edges=False), 6)
    ('trained with cut, predicts with exact', 'labels one by one')
    """
    if not settings.edges:
        return "labels one by one"
    encoder = LabelEncoder(("x",), tuple(map(str, range(labels))), (), (1.0,))
    problem = TASK.problem(encoder, settings)
    return f"trained with {problem.oracle}, predicts with {problem.predictor}"


def _is_sparse(X: Any) -> bool:
    return not isinstance(X, np.ndarray)


TASK = LabelTask()
know_task("multilabel", lambda: TASK)
