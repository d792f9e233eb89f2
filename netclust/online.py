"""Online: linking from the first record on, with no training file and no schema. What `netclust.river` stands on.

Records are dicts whose features may come and go. The last ones are remembered as they came; from time to time (when the
number of records has doubled, then once a window, or when new features emerge) the schema and the units of difference
are made anew from them. Distances are the unlearned ones: differences in standard deviations, symbols that differ.

>>> rng = np.random.default_rng(0)
>>> online = OnlineDetector(window=200, grace=50, false_alarm_rate=0.05)
>>> online.learn([{"bytes": float(v), "kind": "web"} for v in rng.normal(100, 10, 300)])
>>> online.scores([{"bytes": 101.0, "kind": "web"}, {"bytes": 900.0, "kind": "web"}]).round(1) > 0
array([False,  True])
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.explanation import own_score
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import Verdicts
from netclust.records.batch import Batch
from netclust.records.frames import as_table, is_missing
from netclust.records.table import Table
from netclust.scoring.calibration import Calibration, calibrate
from netclust.scoring.model import distance_model

__all__ = ["OnlineClusterer", "OnlineDetector", "OnlineLinker", "plain"]

Row = dict[str, float | str]
NORMAL = "normal"
HELD_OUT = 5
"""One normal record in so many calibrates the root."""
MOST = 0.95
"""So many of the remembered records say how far apart records of a cluster are."""
SETTLE = 10
"""So many records at least between two changes of the schema: features that emerge in between wait."""


def plain(x: Mapping[Any, Any]) -> Row:
    """A record as it is remembered: names as text, finite numbers, anything else as text; what is missing is left out.

    >>> plain({"a": 1, "b": True, 3: "x", "d": None, "e": float("nan")})
    {'a': 1.0, 'b': 'True', '3': 'x'}
    """
    row: Row = {}
    for name, value in x.items():
        if isinstance(value, bool | np.bool_ | str):
            row[str(name)] = str(value)
        elif isinstance(value, int | float | np.number):
            if math.isfinite(value):
                row[str(name)] = float(value)
        elif not is_missing(value):
            row[str(name)] = str(value)
    return row


def _number(value: float | str | None, fill: float) -> float:
    return value if isinstance(value, float) else fill


class OnlineLinker(ABC):
    """Remembers the last `window` records, and has a linker over them once there are `grace`."""

    def __init__(self, window: int = 1000, grace: int = 100) -> None:
        if not 2 <= grace <= window:
            raise InputError(f"grace is 2 or more and no more than the window, not {grace} and {window}")
        self.window, self.grace = window, grace
        self.seen = 0
        self.memory: deque[tuple[Row, str]] = deque(maxlen=window)
        self.linker: Linker | None = None
        self._fill: dict[str, float] = {}
        self._codes: list[dict[str, int]] = []
        self._built = 0

    @abstractmethod
    def _build(self, table: Table) -> Linker:
        """A linker over what is remembered."""

    @abstractmethod
    def _note(self, verdicts: Verdicts, first: int) -> None:
        """What was decided about the last records that were learned, from `first` of the memory on."""

    def learn(self, rows: Sequence[Mapping[Any, Any]], labels: Iterable[str] | None = None) -> None:
        """Learn records, in order. Cut into calls as one likes: the state after them is the same."""
        said = [NORMAL] * len(rows) if labels is None else list(labels)
        if len(said) != len(rows):
            raise InputError(f"{len(said)} labels for {len(rows)} records")
        waiting: list[tuple[Row, str]] = []
        for x, label in zip(rows, said, strict=True):
            row = plain(x)
            if self._due(row):
                self._link(waiting)
                waiting = []
                self._rebuild()
            self.memory.append((row, label))
            self.seen += 1
            if self.linker is not None:
                waiting.append((row, label))
        self._link(waiting)

    def judge(self, rows: Sequence[Mapping[Any, Any]]) -> Verdicts | None:
        """Deprecated: the old name of `score_only`, which the next release will not have."""
        warnings.warn(f"{type(self).__name__}.judge is now score_only", DeprecationWarning, stacklevel=2)
        return self.score_only(rows)

    def score_only(self, rows: Sequence[Mapping[Any, Any]]) -> Verdicts | None:
        """Return what the records would be linked to, each by itself; None before there is anything to link to."""
        if self.linker is None:
            return None
        return self.linker.score_only(self._encode([(plain(x), "") for x in rows]))

    def _due(self, row: Row) -> bool:
        since = self.seen - self._built
        if self.linker is None:
            return since >= self.grace
        if since >= min(max(self._built, self.grace), self.window):
            return True
        return since >= SETTLE and not row.keys() <= self._features

    @property
    def _features(self) -> set[str]:
        return {a.name for a in self.linker.model.encoding.schema.features} if self.linker else set()

    def _rebuild(self) -> None:
        """Schema, units and referents from what is remembered. Where that is impossible, what there is stays."""
        self._built = self.seen
        names = sorted({name for row, _ in self.memory for name in row})
        columns = {name: np.array([row.get(name) for row, _ in self.memory], object) for name in names}
        numeric = {name: [v for v in column if isinstance(v, float)] for name, column in columns.items()}
        for name, column in columns.items():
            if len(numeric[name]) < sum(v is not None for v in column):  # some are text, so all are
                columns[name] = np.array([None if v is None else str(v) for v in column], object)
        fill = {name: float(np.median(values)) for name, values in numeric.items() if values}
        try:
            table = as_table(columns, [label for _, label in self.memory], normal=NORMAL, fill=fill)
            self.linker = self._build(table)
        except InputError:  # every attribute is constant, or nothing is normal
            return
        self._fill = fill
        vocabularies = self.linker.model.encoding.vocabularies
        self._codes = [{value: c for c, value in enumerate(values, 1)} for values in vocabularies]

    def _encode(self, rows: Sequence[tuple[Row, str]]) -> Batch:
        """As `Encoding.encode` would, from dicts: a table for every record would cost ten times the linking."""
        linker = self.linker
        if linker is None:
            raise RuntimeError("records are encoded before there is a schema")
        encoding = linker.model.encoding
        raw = np.array(
            [[_number(row.get(a.name), self._fill[a.name]) for a in encoding.numeric] for row, _ in rows], np.float64
        ).reshape(len(rows), len(encoding.kept))
        code = [
            [
                codes.get(str(row.get(a.name, "")), 0)
                for a, codes in zip(encoding.schema.coded, self._codes, strict=True)
            ]
            for row, _ in rows
        ]
        label = [linker.labels.add(label) if label else -1 for _, label in rows]
        return Batch(
            num=encoding.scale(raw),
            code=np.array(code, np.uint16).reshape(len(rows), len(self._codes)),
            label=np.array(label, np.int32),
            seq=np.arange(self.seen - len(rows), self.seen, dtype=np.int64).astype(np.uint64),
        )

    def _link(self, rows: Sequence[tuple[Row, str]]) -> None:
        if rows and self.linker is not None:
            self._note(self.linker.process(self._encode(rows)), len(self.memory) - len(rows))


class OnlineDetector(OnlineLinker):
    """What is unlike all normal records of the window is an anomaly; what is learned without a label is normal."""

    def __init__(self, window: int = 1000, grace: int = 100, false_alarm_rate: float = 0.01) -> None:
        super().__init__(window, grace)
        if not 0 < false_alarm_rate < 1:
            raise InputError(f"a false-alarm rate lies between 0 and 1, not {false_alarm_rate}")
        self.false_alarm_rate = false_alarm_rate

    def _build(self, table: Table) -> Linker:
        whole = distance_model(table)
        normal = np.flatnonzero(whole.encoding.label_table().is_normal[whole.reference.label])
        held = normal[HELD_OUT - 1 :: HELD_OUT]
        if not len(held):
            raise InputError("too few normal records to calibrate on")
        rest = np.setdiff1d(np.arange(len(table)), held)
        linker = Linker(replace(whole, reference=whole.reference[rest]), LinkerConfig(referent_window=0))
        unlabelled = replace(whole.reference[held], label=np.full(len(held), -1, np.int32))
        verdicts = linker.process(unlabelled)
        rate = max(self.false_alarm_rate, 1.01 / (len(held) + 1))  # as little as so many records can promise
        best = np.maximum(verdicts.normal, verdicts.other)
        calibrated = whole.with_root(calibrate(best, rate, verdicts.anomalous))
        return Linker(calibrated, LinkerConfig(referent_window=self.window, label_delay=0))

    def _note(self, verdicts: Verdicts, first: int) -> None:
        """Nothing: what was said of a record counts, not what it was judged to be."""

    def scores(self, rows: Sequence[Mapping[Any, Any]]) -> NDArray[np.float64]:
        """Above 0 is anomalous; 0 before anything is known."""
        verdicts = self.score_only(rows)
        return np.zeros(len(rows)) if verdicts is None else verdicts.score.astype(np.float64)


class OnlineClusterer(OnlineLinker):
    """Every record joins the cluster of its best earlier one, or opens a new one if that is too far away.

    Too far: farther than `radius`, or, without one, than `stretch` times what 19 of 20 remembered records were.
    """

    def __init__(self, window: int = 1000, grace: int = 100, stretch: float = 2.0, radius: float | None = None) -> None:
        super().__init__(window, grace)
        if not 0 < stretch < math.inf:
            raise InputError(f"stretch is above 0, not {stretch}")
        if radius is not None and not radius >= 0:
            raise InputError(f"a radius is 0 or more, not {radius}")
        self.stretch, self.radius = stretch, radius
        self.clusters = 0
        """How many clusters there have been."""
        self._names: dict[int, int] = {}

    def _build(self, table: Table) -> Linker:
        whole = distance_model(table)
        bare = replace(whole, reference=whole.reference[:0])
        unlabelled = replace(whole.reference, label=np.full(len(table), -1, np.int32))
        window = LinkerConfig(referent_window=self.window)
        same = own_score(whole, (whole.reference.num[0], whole.reference.code[0]))
        radius = self.radius
        if radius is None:
            links = Linker(bare, window).process(unlabelled).link
            settled = links[len(links) // 2 :]  # the first records have few earlier ones, and are far from these
            radius = self.stretch * float(np.quantile(np.maximum(same - settled, 0), MOST))
        root = float(np.nextafter(np.float32(same - radius), np.float32(-np.inf)))
        calibration = Calibration(root=root, false_alarm_rate=1 - MOST, obtained=1 - MOST, records=len(table))
        if self.clusters:  # what is remembered keeps its clusters: they become the classes of the reference set
            labels = whole.encoding.labels
            self._names = {k: int(name) for k, name in enumerate(labels)}
            return Linker(whole.with_root(calibration), window)
        linker = Linker(bare.with_root(calibration), window)
        self.linker, self._names = linker, {}
        self._note(linker.process(unlabelled), 0)
        return linker

    def _note(self, verdicts: Verdicts, first: int) -> None:
        for i, cluster in enumerate(verdicts.cluster.tolist()):
            if cluster not in self._names:
                self._names[cluster] = self.clusters
                self.clusters += 1
            if first + i >= 0:
                row, _ = self.memory[first + i]
                self.memory[first + i] = (row, str(self._names[cluster]))

    def predict(self, rows: Sequence[Mapping[Any, Any]]) -> NDArray[np.int64]:
        """The cluster of each record; a number not given yet for one that would open a cluster."""
        verdicts = self.score_only(rows)
        if verdicts is None:
            return np.zeros(len(rows), np.int64)
        return np.array([self._names.get(c, self.clusters) for c in verdicts.cluster.tolist()], np.int64)
