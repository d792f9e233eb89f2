"""Sequences of labels as a task of the command line: rows of a table, in order, a column telling sequences apart.

>>> table = TextTable({"sequence": ("a", "a", "a", "b", "b"), "seen": ("2.0", "-0.1", "-2.0", "1.5", "-1.9"),
...                    "label": ("n", "n", "m", "n", "m")})
>>> raw, settings = read_sequences(table), ChainSettings(C=100.0)
>>> len(raw), raw.names
(2, ('a', 'b'))
>>> encoder = TASK.fit(raw, settings)
>>> learned = TASK.learn(settings, TASK.problem(encoder, settings), TASK.encode(encoder, raw))
>>> x, y = TASK.encode(encoder, raw)[0]
>>> [encoder.labels[k] for k in TASK.problem(encoder, settings).predict(x, learned.w)], x.shape
(['n', 'n', 'm'], (3, 2))

Columns become features as in `netclust.models.attractive.tables`: numbers are centred and scaled, texts have a feature
a value, and the last feature is a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.text_tables import TextTable
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.attractive.tables import MAX_VALUES, Field, field_notes, fit_field
from netclust.models.chains.chain_inference import Labelling
from netclust.models.chains.chain_problem import ChainExample, ChainProblem
from netclust.models.chains.crf import Likelihood, train_crf
from netclust.models.structured_model import know_task
from netclust.models.structured_task import LearnedTask, StructuredTask, SvmSettings, learn_svm

__all__ = ["TASK", "ChainColumns", "ChainEncoder", "ChainSettings", "ChainTask", "Sequences", "read_sequences"]


class ChainColumns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of a table's columns."""

    sequence: str = "sequence"
    """Rows with one value here are one sequence, in their order."""
    label: str = "label"
    fields: tuple[str, ...] = ()
    """What places are judged by. Empty: every other column."""


class ChainSettings(SvmSettings, frozen=True, kw_only=True):
    """How sequences are learned."""

    model: Literal["m3n", "svm", "crf"] = "m3n"
    """m3n: max-margin with transitions; svm: without, every place by itself; crf: by the likelihood of labels."""
    mean: Literal["labels", "sequences"] = "labels"
    """Does a wrong label count the same everywhere, or is every sequence worth the same, short ones too?"""


class ChainEncoder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model knows of tables besides weights."""

    columns: ChainColumns
    labels: tuple[str, ...]
    fields: tuple[Field, ...]
    places: float
    """The mean length of training sequences."""

    def __post_init__(self) -> None:
        """Refuse what cannot have been fitted."""
        if not 2 <= len(self.labels) <= MAX_VALUES or len(set(self.labels)) < len(self.labels):
            raise InputError(f"{len(self.labels)} labels, expected 2 to {MAX_VALUES}, each once")
        if not self.fields or not (np.isfinite(self.places) and self.places > 0):
            raise InputError("places have nothing to be judged by, or sequences no length")

    @property
    def feature_names(self) -> list[str]:
        """What places have weights for."""
        return [name for one in self.fields for name in one.feature_names] + ["constant"]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences of a table: names, and the rows of each."""

    table: TextTable
    names: tuple[str, ...]
    rows: tuple[NDArray[np.int64], ...]
    columns: ChainColumns

    def __len__(self) -> int:
        """How many sequences."""
        return len(self.names)

    def take(self, chosen: Sequence[int]) -> Sequences:
        """Some of the sequences."""
        return Sequences(
            self.table, tuple(self.names[i] for i in chosen), tuple(self.rows[i] for i in chosen), self.columns
        )

    def column(self, name: str) -> list[str]:
        """A column of all sequences' rows, one sequence after the other."""
        own = self.table.column(name)
        return [own[row] for rows in self.rows for row in rows.tolist()]


def read_sequences(table: TextTable, columns: ChainColumns | None = None, most: int | None = None) -> Sequences:
    """The sequences of a table by first appearance; longer ones than `most` are cut into even parts."""
    columns = columns or ChainColumns()
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(table.column(columns.sequence)):
        groups.setdefault(name, []).append(row)
    names: list[str] = []
    parts: list[NDArray[np.int64]] = []
    for name, rows in groups.items():
        for part in np.array_split(np.array(rows), 1 if most is None else -(-len(rows) // most)):
            names.append(name)
            parts.append(part)
    return Sequences(table, tuple(names), tuple(parts), columns)


class ChainTask(StructuredTask):
    """See `StructuredTask`: raw examples are `Sequences`."""

    name, settings, encoder = "chains", ChainSettings, ChainEncoder

    def fit(self, raw: Sequences, settings: ChainSettings) -> ChainEncoder:
        """Labels, scales and values, and how long sequences are."""
        columns = raw.columns
        labels = tuple(sorted(set(raw.column(columns.label))))
        if "" in labels:
            row = raw.table.column(columns.label).index("") + 1
            raise InputError(f"row {row} has no label in column {columns.label!r}, and all need one to learn from")
        if len(labels) < 2:
            raise InputError(f"all rows have the label {sanitize(labels[0])!r}: nothing can be learned")
        taken = (columns.sequence, columns.label)
        names = columns.fields or tuple(name for name in raw.table.columns if name not in taken)
        if not names:
            raise InputError(f"no column is left to judge rows by besides {' and '.join(map(sanitize, taken))}")
        fields = tuple(fit_field(name, raw.column(name)) for name in names)
        mean = float(np.mean([len(rows) for rows in raw.rows]))
        return ChainEncoder(columns=columns, labels=labels, fields=fields, places=mean)

    def encode(self, encoder: ChainEncoder, raw: Sequences) -> list[tuple[NDArray[np.float64], Labelling | None]]:
        """Features [L, m] of every sequence, and labels where the table has them."""
        count = sum(len(rows) for rows in raw.rows)
        parts = [one.features(raw.column(one.name), "rows") for one in encoder.fields]
        x = np.column_stack([*parts, np.ones(count)])
        cuts = np.cumsum([len(rows) for rows in raw.rows])[:-1]
        y = self._labels(encoder, raw)
        xs = np.split(x, cuts)
        return [(own, None) for own in xs] if y is None else list(zip(xs, np.split(y, cuts), strict=True))

    def notes(self, encoder: ChainEncoder, raw: Sequences, examples: Sequence[Any]) -> list[str]:
        """Which columns are numbers and which texts."""
        return field_notes(encoder.fields, (), raw.column)

    def _labels(self, encoder: ChainEncoder, raw: Sequences) -> Labelling | None:
        if encoder.columns.label not in raw.table.columns:
            return None
        texts = raw.column(encoder.columns.label)
        place = {label: k for k, label in enumerate(encoder.labels)}
        if texts and not place.keys() & set(texts):
            known = sanitize(", ".join(encoder.labels[:10]))
            raise InputError(f"no row has a label that the model knows ({known}): is --truth, or --normal, missing?")
        # a label that was not trained on is never right
        return np.array([place.get(text, -1) for text in texts], np.int64) if all(texts) else None

    def problem(self, encoder: ChainEncoder, settings: ChainSettings) -> ChainProblem:
        """Weights of features by label, of first labels, of neighbouring labels."""
        return ChainProblem(
            len(encoder.labels),
            len(encoder.feature_names),
            transitions=settings.model != "svm",
            places=encoder.places if settings.mean == "labels" else 0.0,
        )

    def weight_names(self, encoder: ChainEncoder, settings: ChainSettings) -> list[str]:
        """As `ChainProblem` lays them out."""
        labels = encoder.labels
        found = [f"{label}: {name}" for label in labels for name in encoder.feature_names]
        if settings.model == "svm":
            return found
        pairs = [f"{before} -> {after}" for before in labels for after in labels]
        return found + [f"first {label}" for label in labels] + pairs

    def measure(self, pairs: Sequence[tuple[Labelling, Labelling]]) -> Mapping[str, float]:
        """In percent: wrong labels, their mean over sequences, sequences that are all right; mean F1 of labels."""
        y, h = (np.concatenate([pair[k] for pair in pairs]) for k in range(2))
        shares = [float((a != b).mean()) for a, b in pairs if len(a)]
        f1 = [200.0 * ((y == k) & (h == k)).sum() / ((y == k).sum() + (h == k).sum()) for k in np.unique(y)]
        return {
            "wrong labels": 100.0 * float((y != h).mean()) if len(y) else 0.0,
            "wrong labels, mean of sequences": 100.0 * float(np.mean(shares)) if shares else 0.0,
            "all right": 100.0 * float(np.mean([share == 0 for share in shares])) if shares else 100.0,
            "mean F1": float(np.mean(f1)) if f1 else 100.0,
        }

    def take(self, raw: Sequences, chosen: Sequence[int]) -> Sequences:
        """Some of the sequences."""
        return raw.take(chosen)

    def learn(
        self,
        settings: Any,
        problem: Any,
        examples: Sequence[ChainExample],
        *,
        warm: Any = None,
        on_iteration: Any = None,
    ) -> LearnedTask:
        """By the structural SVM that the settings name, or the likelihood."""
        if settings.model != "crf":
            return learn_svm(settings, problem, examples, warm=warm, on_iteration=on_iteration)
        fit = train_crf(problem, examples, C=settings.C, max_iterations=settings.max_iterations)
        # the objective curves by at least |w|^2/2: this far from its minimum, at most
        _, slope = Likelihood(problem, examples, settings.C)(fit.w)
        return LearnedTask(fit.w, fit.iterations, fit.converged, fit.objective, float(slope @ slope) / 2, "likelihood")


TASK = ChainTask()
know_task("chains", lambda: TASK)
