"""The link forest as people see it: of all records that were linked, some thousand that are kept to be drawn.

Every first record of a cluster and every anomalous one is kept while the rate allows, and a sample of the normal ones;
each hangs on its nearest kept ancestor. Records are taken in by the detector's thread, and asked for by others.

>>> from netclust.records.batch import Batch
>>> verdicts = Verdicts.empty(3)
>>> verdicts.verdict[:], verdicts.parent[:] = 2, [ROOT_HANDLE, 0, 1]
>>> forest = LinkForest()
>>> forest.take(0, Batch(num=np.zeros((3, 1)), code=np.zeros((3, 0))), verdicts, ["normal"], None, now=0)
>>> forest.nodes().link.tolist(), [step.record for step in forest.path(2)]
([-1, 0, 1], ['0:2', '0:1', '0:0', 'root'])
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.kernels.linking.lineage import UNKNOWN, follow_lineage, new_lineage, walk_lineage
from netclust.linking.verdicts import NORMAL, ROOT, ROOT_HANDLE, VERDICTS, VIAS, Verdicts, reference_index
from netclust.records.batch import Batch
from netclust.records.encoding import ShownRecord
from netclust.records.labels import NOVEL_NAME
from netclust.stream.token_bucket import Bucket

__all__ = ["CAPACITY", "LinkForest", "Node", "Nodes", "Step", "load_forest_kernels"]

CAPACITY = 10_000
"""Nodes in memory: what a page can draw thirty times a second."""
LINEAGE_BITS = 17
"""Links of so many records (2 to that power) are remembered for paths, shown or not."""
PATH_NEWEST, PATH_OLDEST = 8, 4
RATES = {"first": (2000.0, 100.0), "anomalous": (6000.0, 150.0), "normal": (2000.0, 30.0)}
"""Of each kind: how many may come at once, and a second after that."""
SAVED = {"first": (500.0, 2.0), "anomalous": (1500.0, 2.0), "normal": (500.0, 0.5)}
"""The same for what is stored for later."""

Context = Callable[[NDArray[np.int64]], dict[str, NDArray[np.object_]]]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A station on the way from a record to the root; `hops` links lead to the next one (0: unknown how many)."""

    kind: Literal["record", "reference", "root"]
    record: str
    tick: int = -1
    time: int = -1
    label: str = ""
    verdict: str = ""
    score: float | None = None
    cluster: int = -1
    hops: int = 1


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it is shown: what became of it, and its values, context among them."""

    tick: int
    record: str
    time: int
    verdict: str
    label: str
    score: float | None
    cluster: int
    via: str
    link: int
    hops: int
    values: dict[str, float | str | None]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Kept records as columns, oldest first. `label` counts in `LinkForest.labels`."""

    tick: NDArray[np.int64]
    link: NDArray[np.int64]
    hops: NDArray[np.int64]
    cluster: NDArray[np.int64]
    label: NDArray[np.int32]
    verdict: NDArray[np.uint8]
    score: NDArray[np.float32]
    time: NDArray[np.int64]

    def __len__(self) -> int:
        """How many."""
        return len(self.tick)


class _Seen(NamedTuple):
    """What became of every record of the lineage, at the same places."""

    cluster: NDArray[np.int64]
    label: NDArray[np.int32]
    verdict: NDArray[np.uint8]
    score: NDArray[np.float32]
    time: NDArray[np.int64]
    source: NDArray[np.uint16]
    seq: NDArray[np.uint64]


_KINDS = {"label": np.int32, "verdict": np.uint8, "score": np.float32, "source": np.uint16, "seq": np.uint64}
"""Of the columns that are not int64."""


class _Details(NamedTuple):
    """What is written out only when somebody looks at the node."""

    record: str
    via: str
    context: dict[str, float | str | None]
    shown: ShownRecord | None = None


def _spread(rows: NDArray[np.int64], bucket: Bucket, now: float) -> NDArray[np.int64]:
    """As many of the rows as may be taken, evenly spread."""
    room = bucket.take_some(now, len(rows))
    if room == len(rows):
        return rows
    return rows[np.linspace(0, len(rows) - 1, room).astype(np.int64)] if room else rows[:0]


class LinkForest:
    """The last CAPACITY kept records, and the links of all of the last 2^LINEAGE_BITS."""

    def __init__(self, capacity: int = CAPACITY, bits: int = LINEAGE_BITS, clock: Callable[[], float] = time.monotonic):
        self.labels: list[str] = []
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._lineage = new_lineage(bits)
        n = 1 << bits
        self._seen = _Seen(**{name: np.zeros(n, _KINDS.get(name, np.int64)) for name in _Seen._fields})
        self._kept = Nodes(**{f.name: np.zeros(2 * capacity, _KINDS.get(f.name, np.int64)) for f in fields(Nodes)})
        self._count = 0  # of the kept, from the front of a buffer of twice their number
        self._details: deque[_Details] = deque(maxlen=capacity)
        self._numbers: dict[str, int] = {}
        self._rates = {kind: Bucket(*rate, clock()) for kind, rate in RATES.items()}
        self._saving = {kind: Bucket(*rate, clock()) for kind, rate in SAVED.items()}
        self._saved = -1  # nodes up to this tick were given to be stored

    def take(
        self,
        first: int,
        batch: Batch,
        verdicts: Verdicts,
        labels: Sequence[str],
        shown: Callable[[int], ShownRecord] | None,
        context: Context | None = None,
        *,
        now: int,
    ) -> None:
        """Take in the records of a batch, from arrival number `first` on; `now` stands for times that are not known.

        `shown` and `context` give what is shown of the rows that are kept.
        """
        n = len(verdicts)
        if not n:
            return
        chosen = self._choose(verdicts)
        keep = np.zeros(n, np.uint8)
        keep[chosen] = 1
        times = np.where(batch.time >= 0, batch.time, now)
        numbers = self._label_numbers(verdicts.label, labels)
        follow_lineage(first, verdicts.parent, keep, self._lineage)
        places = np.arange(first, first + n) & (len(self._lineage.tick) - 1)
        seen = self._seen
        seen.cluster[places], seen.label[places], seen.verdict[places] = verdicts.cluster, numbers, verdicts.verdict
        seen.score[places], seen.time[places] = verdicts.score, times
        seen.source[places], seen.seq[places] = batch.source, batch.seq
        if not len(chosen):
            return
        columns = {} if context is None else context(chosen)
        details = [
            _Details(
                f"{batch.source[row]}:{batch.seq[row]}", VIAS[verdicts.via[row]],
                {name: str(column[i]) for name, column in columns.items()}, None if shown is None else shown(row),
            )
            for i, row in enumerate(chosen.tolist())
        ]  # fmt: skip
        at = places[chosen]
        lineage = self._lineage
        self._append(
            details, first + chosen, lineage.link[at], lineage.hops[at], seen.cluster[at], seen.label[at],
            seen.verdict[at], seen.score[at], seen.time[at],
        )  # fmt: skip

    def restore(self, nodes: Sequence[Node]) -> None:
        """Begin with records that were stored in an earlier run, oldest first. Before the first batch."""
        numbers = [self._number(node.label) for node in nodes]
        scores = [np.inf if node.score is None else node.score for node in nodes]
        verdicts = [VERDICTS.index(node.verdict) for node in nodes]
        ticks, links, hops, clusters, times = (
            np.array([getattr(node, name) for node in nodes], np.int64)
            for name in ("tick", "link", "hops", "cluster", "time")
        )
        details = [_Details(node.record, node.via, node.values) for node in nodes]
        self._append(details, ticks, links, hops, clusters, numbers, verdicts, scores, times)
        self._saved = int(ticks.max(initial=-1))

    def _append(self, details: list[_Details], *columns: Any) -> None:
        with self._lock:
            self._make_room(len(details))
            stop = self._count + len(details)
            for f, column in zip(fields(Nodes), columns, strict=True):
                getattr(self._kept, f.name)[self._count : stop] = column
            self._count = stop
            self._details.extend(details)

    def _choose(self, verdicts: Verdicts) -> NDArray[np.int64]:
        now = self._clock()
        first = np.equal(verdicts.via, ROOT)
        anomalous = verdicts.anomalous & ~first
        rows = {"first": first, "anomalous": anomalous, "normal": ~(first | anomalous)}
        taken = [_spread(np.flatnonzero(mask), self._rates[kind], now) for kind, mask in rows.items()]
        return np.sort(np.concatenate(taken))[-self._capacity :]

    def _label_numbers(self, label: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """The linker's numbers as ours: its table changes when a model takes over, what is kept stays."""
        ours = np.zeros(len(names) + 1, np.int32)
        for number in np.unique(label).tolist():
            ours[max(number, -1)] = self._number(names[number] if number >= 0 else NOVEL_NAME)
        return ours[np.maximum(label, -1)]

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.labels)
            self.labels.append(name)
        return self._numbers[name]

    def _make_room(self, more: int) -> None:
        if self._count + more > 2 * self._capacity:
            last = self._count - (self._capacity - more)
            for f in fields(Nodes):
                column = getattr(self._kept, f.name)
                column[: self._count - last] = column[last : self._count].copy()
            self._count -= last

    # What is shown

    def nodes(self, after: int = -1, limit: int = CAPACITY) -> Nodes:
        """The newest kept records, of those behind an arrival number; a copy."""
        with self._lock:
            start = max(0, self._count - self._capacity)
            start += int(np.searchsorted(self._kept.tick[start : self._count], after, side="right"))
            start = max(start, self._count - limit)
            return self._copy(slice(start, self._count))

    def _copy(self, part: slice) -> Nodes:
        return Nodes(**{f.name: getattr(self._kept, f.name)[part].copy() for f in fields(Nodes)})

    def of_cluster(self, cluster: int, limit: int = 100) -> list[Node]:
        """The newest kept records of a cluster, newest first."""
        nodes = self.nodes()
        ticks = nodes.tick[np.flatnonzero(nodes.cluster == cluster)[::-1][:limit]]
        return self.found(ticks.tolist())

    def node(self, tick: int) -> Node | None:
        """One kept record."""
        with self._lock:
            at = int(np.searchsorted(self._kept.tick[: self._count], tick))
            behind = self._count - at
            if at == self._count or self._kept.tick[at] != tick or behind > len(self._details):
                return None
            row, details = self._copy(slice(at, at + 1)), self._details[-behind]
        return self._shown(row, 0, details)

    def _shown(self, nodes: Nodes, i: int, details: _Details) -> Node:
        values = dict(details.context)
        if details.shown is not None:
            values |= details.shown.values()
        return Node(
            tick=int(nodes.tick[i]), record=details.record, time=int(nodes.time[i]),
            verdict=VERDICTS[nodes.verdict[i]], label=self.labels[nodes.label[i]], score=_finite(nodes.score[i]),
            cluster=int(nodes.cluster[i]), via=details.via, link=int(nodes.link[i]), hops=int(nodes.hops[i]),
            values=values,
        )  # fmt: skip

    def found(self, ticks: Sequence[int]) -> list[Node]:
        """Those of the records that are still kept."""
        return [node for tick in ticks if (node := self.node(tick)) is not None]

    def to_save(self) -> list[int]:
        """Kept records that were not given before, as far as the rate of storing allows. Detector's thread."""
        nodes = self.nodes(self._saved)
        if not len(nodes):
            return []
        self._saved = int(nodes.tick[-1])
        now = self._clock()
        first = nodes.link == -1
        anomalous = (nodes.verdict != NORMAL) & ~first
        masks = {"first": first, "anomalous": anomalous, "normal": ~(first | anomalous)}
        rows = np.sort(np.concatenate([_spread(np.flatnonzero(masks[k]), self._saving[k], now) for k in masks]))
        ticks: list[int] = nodes.tick[rows].tolist()
        return ticks

    def path(self, tick: int) -> list[Step]:
        """The links from a record up to the root or a reference, as far as they are remembered. Detector's thread."""
        newest, oldest = np.zeros(PATH_NEWEST, np.int64), np.zeros(PATH_OLDEST, np.int64)
        count = walk_lineage(self._lineage, tick, newest, oldest)
        if not count:
            return []
        steps = list(range(min(count, PATH_NEWEST)))
        steps += [k for k in range(max(count - PATH_OLDEST, 0), count) if k not in steps]
        places = [int(newest[k] if k < PATH_NEWEST else oldest[k % PATH_OLDEST]) for k in steps]
        gaps = [after - before for before, after in zip(steps, [*steps[1:], steps[-1] + 1], strict=True)]
        gaps[-1] = int(self._lineage.depth[places[-1]])  # of which the links that are no longer remembered
        found = [self._step(at, hops) for at, hops in zip(places, gaps, strict=True)]
        return [*found, *self._end(places[-1], found[-1].label)]

    def _step(self, at: int, hops: int) -> Step:
        seen = self._seen
        return Step(
            kind="record", record=f"{seen.source[at]}:{seen.seq[at]}", tick=int(self._lineage.tick[at]),
            time=int(seen.time[at]), label=self.labels[seen.label[at]], verdict=VERDICTS[seen.verdict[at]],
            score=_finite(seen.score[at]), cluster=int(seen.cluster[at]), hops=hops,
        )  # fmt: skip

    def _end(self, at: int, label: str) -> list[Step]:
        """What the path of the oldest remembered record ends on; nothing if that is not known."""
        end = int(self._lineage.end[at])
        if end == UNKNOWN:
            return []
        if end == ROOT_HANDLE:
            return [Step(kind="root", record="root", hops=0)]
        return [Step(kind="reference", record=f"reference {reference_index(end)}", label=label, hops=0)]


def _finite(score: Any) -> float | None:
    """Return A score as JSON can hold it: without any normal referent it is infinite."""
    return float(score) if np.isfinite(score) else None


def load_forest_kernels() -> None:
    """Compile what takes records into a forest and follows their links, or load it from the cache."""
    lineage = new_lineage(1)
    follow_lineage(0, np.zeros(0, np.int64), np.zeros(0, np.uint8), lineage)
    walk_lineage(lineage, 0, np.zeros(1, np.int64), np.zeros(1, np.int64))
