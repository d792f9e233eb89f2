"""Linker: the online engine. Links each record of a stream to its best earlier referent or to the root.

>>> from netclust.models.network.train_network import train_network
>>> from netclust.datasets.simulators.simulate import KNOWN, HELD_BACK, simulate
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> linker = Linker(model, LinkerConfig.stream(referent_window=200))
>>> today = model.encoding.encode(simulate(500, seed=2, day=1).table())
>>> verdicts = linker.process(today)
>>> len(verdicts), linker.tick
(500, 500)
>>> snapshot = linker.snapshot()
>>> Linker.restore(model, snapshot).process(today).score.tobytes() == linker.process(today).score.tobytes()
True
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.linking import link as kernels
from netclust.kernels.linking import representatives as keep
from netclust.kernels.linking.score import LANES
from netclust.linking.clusters import ClusterSummary, cluster_summary, summaries
from netclust.linking.evidence import Collector, Evidence, Which
from netclust.linking.feedback import LabelEvent, LabelledMembers, Scope, apply_label, apply_undo
from netclust.linking.linker_config import Feedback, Keep, LinkerConfig
from netclust.linking.linker_memory import LinkerMemory
from netclust.linking.search import ReferentSearch, Search
from netclust.linking.snapshot import Frozen, carry_over_snapshot, count_on, freeze_snapshot, goes_on, open_snapshot
from netclust.linking.state import MAX_NUMBER, NANOSECONDS, PartitionState
from netclust.linking.verdicts import NO_REFERENT, Verdicts, reference_index
from netclust.records.batch import Batch
from netclust.records.labels import LabelTable
from netclust.scoring.model import Model

__all__ = ["Feedback", "Keep", "Linker", "LinkerConfig"]

_POLICIES = {"reservoir": keep.RESERVOIR, "medoid": keep.MEDOID, "difficulty": keep.DIFFICULTY}


class Linker:
    """A model at work on a stream. One call a batch; results do not depend on how the stream is cut into batches."""

    def __init__(
        self, model: Model, config: LinkerConfig | None = None, *, search: Search = "auto", threads: int = 1
    ) -> None:
        """`search` and `threads` (partitions that are linked at a time) change what it costs, never what comes out."""
        if not 1 <= threads <= 256:
            raise InputError(f"threads must lie between 1 and 256, not {threads}")
        self.model = model
        self.config = config or LinkerConfig()
        self.threads = min(threads, self.config.partitions)
        if self.config.partitions > 1 and model.encoding.schema.with_role("key") is None:
            raise InputError(f"schema {model.encoding.schema.name} has no key attribute, so there is 1 partition")
        self.memory = LinkerMemory.new(model, self.config)
        self.referent_search = ReferentSearch(
            search, model, self.config.kept, len(model.reference), self.config.partitions
        )
        most = max(len(model.reference), self.config.referent_window, self.config.representatives)
        # Room for those that work at the same time.
        apart = self.config.partitions if self.threads > 1 else 1
        self._acc = [np.zeros(most + LANES, np.float32) for _ in range(apart)]
        self._matches = [np.zeros(len(model.encoding.widths), np.float32) for _ in range(apart)]

    @property
    def labels(self) -> LabelTable:
        """The names of labels: the model's, and those that records brought."""
        return self.memory.labels

    @property
    def tick(self) -> int:
        """The number of records so far, which is the arrival number of the next one."""
        return self.memory.tick

    @property
    def events(self) -> list[LabelEvent]:
        """Labels that were given and can be undone, oldest first."""
        return self.memory.events

    def process(self, batch: Batch) -> Verdicts:
        """Link every record of the batch, in order; a record sees the earlier ones of its own batch."""
        return self._process(batch, None)

    def process_with_evidence(self, batch: Batch, which: Which = "anomalous") -> tuple[Verdicts, Evidence]:
        """The same, and what the best referents of either side looked like, for `explanation.explain`."""
        collector = Collector(which, batch.num.shape[1], batch.code.shape[1])
        verdicts = self._process(batch, collector)
        return verdicts, collector.evidence()

    def score_only(self, batch: Batch) -> Verdicts:
        """Return what each record would be linked to if it came next, without remembering it.

        Labels and maturing that are due with the next record do not count yet. A record that would link to the root
        has no cluster (-1).
        """
        verdicts = Verdicts.empty(len(batch))
        normal = self.labels.is_normal
        count = np.uint64(self.config.partitions)
        for p, part in enumerate(self.memory.partitions):
            rows = np.flatnonzero(batch.key % count == p)
            found = Verdicts.empty(len(rows))
            self._run(np.arange(len(rows)), self.tick, self._records(batch[rows]), p, part, normal, found, keep=False)
            for f in fields(Verdicts):
                getattr(verdicts, f.name)[rows] = getattr(found, f.name)
        return verdicts

    def judge(self, batch: Batch) -> Verdicts:
        """Deprecated: the old name of `score_only`, which the next release will not have."""
        warnings.warn("Linker.judge is now Linker.score_only", DeprecationWarning, stacklevel=2)
        return self.score_only(batch)

    def _records(self, batch: Batch) -> kernels.Records:
        """The batch as kernels see it, refused if it would lead them astray."""
        if len(batch) and int(batch.label.max()) >= len(self.labels):
            raise InputError("the batch has label numbers that the linker does not know: encode it with linker.labels")
        references = self.memory.references
        if batch.num.shape[1] != len(references.num) or batch.code.shape[1] != len(references.code):
            raise InputError("the batch was not encoded with this model's encoding")
        if (batch.code >= self.model.layout.width).any():
            raise InputError("the batch has codes that this model's vocabularies do not have")
        if not np.isfinite(batch.num).all():
            raise InputError("the batch has numbers that are not finite")
        return kernels.Records(
            num=batch.num,
            code=batch.code,
            root=self.model.root_scores(batch),
            label=batch.label,
            time=batch.time,
            source=batch.source,
            seq=batch.seq,
        )

    def _process(self, batch: Batch, collector: Collector | None) -> Verdicts:
        records = self._records(batch)
        verdicts = Verdicts.empty(len(batch))
        first = self.tick
        start = 0
        while True:
            due = min((e.from_tick for e in self.events if not e.applied), default=first + len(batch))
            stop = min(max(due - first, start), len(batch))
            self._link(records, batch.key, first, start, stop, verdicts, collector)
            start = stop
            self.memory.tick = first + stop
            self._apply_due()
            if stop == len(batch):
                return verdicts

    def _link(
        self,
        records: kernels.Records,
        key: NDArray[np.uint64],
        first: int,
        start: int,
        stop: int,
        verdicts: Verdicts,
        collector: Collector | None,
    ) -> None:
        """Run the kernel over records start..stop, partition by partition, as far as the window's buffer has room."""
        count = self.config.partitions
        rows = np.arange(start, stop, dtype=np.int64)
        of = (key[start:stop] % np.uint64(count)).astype(np.int64) if count > 1 else None
        normal = self.labels.is_normal

        def link(p: int) -> None:
            part = self.memory.partitions[p]
            index = rows if of is None else rows[of == p]
            at = 0
            while True:
                room = part.make_room() if self.config.kept else len(index)
                representatives = part.copy_representatives() if collector is not None else None
                self._run(index[at : at + room], first, records, p, part, normal, verdicts)
                if collector is not None and representatives is not None:
                    end = int(part.cursor[kernels.END])
                    collector.gather(
                        index[at : at + room], verdicts, self.memory.references, part.window, end, representatives
                    )
                at += room
                if at >= len(index):
                    break

        if self.threads == 1:
            for p in range(count):
                link(p)
            return
        self.referent_search.references(self.memory.references, 0)  # made before they are shared
        with ThreadPoolExecutor(self.threads) as pool:  # kernels let others run meanwhile
            list(pool.map(link, range(count)))

    def _run(
        self,
        index: NDArray[np.int64],
        first: int,
        records: kernels.Records,
        p: int,
        part: PartitionState,
        normal: NDArray[np.bool_],
        verdicts: Verdicts,
        *,
        keep: bool = True,
    ) -> None:
        """Link some records of one partition."""
        refs_groups, refs_search = self.referent_search.references(self.memory.references, p)
        groups, search = self.referent_search.window(p, part)
        # Without room to search the kernel is a smaller one.
        scratch = self.referent_search.scratch(p) if search or refs_search else None
        kernels.link_records(
            index, first, records, self.model.scorer, self.memory.references, refs_groups, part.window, groups,
            scratch, part.kept, part.clusters, part.cursor, self._settings(p, keep, search, refs_search),
            normal, self._acc[p % len(self._acc)], self._matches[p % len(self._matches)], verdicts.columns(),
        )  # fmt: skip

    def _settings(self, p: int, keep: bool, search: int, refs_search: int) -> kernels.LinkSettings:
        c = self.config
        number, count = (p, c.partitions) if c.shard is None else c.shard
        return kernels.LinkSettings(
            referent_window=c.referent_window,
            gap=c.gap if c.referent_window else 0,
            whole=c.whole,
            delay=-1 if c.label_delay is None else c.label_delay,
            mature_after=-1 if c.mature_after is None else int(c.mature_after * NANOSECONDS),
            mature_cap=c.mature_cap,
            classes=len(self.model.encoding.labels),
            partitions=count,
            partition=number,
            keep=keep,
            search=search,
            search_references=refs_search,
            policy=_POLICIES[c.keep],
        )

    # Feedback

    def label_record(self, record_id: str, label: str, *, from_tick: int | None = None) -> LabelEvent:
        """Say what a record was. It counts for records from arrival number `from_tick` on (default: the next one)."""
        source, number = _record(record_id)
        return self._add_event("record", label, from_tick, source=source, number=number)

    @property
    def normal_label(self) -> str:
        """The word for normal in this model's schema: `linker.label_cluster(c, linker.normal_label)`."""
        return self.model.encoding.schema.normal[0]

    def label_cluster(self, cluster: int, label: str, *, from_tick: int | None = None) -> LabelEvent:
        """Say what a cluster is: covers its members that can still be linked to, and its future joiners."""
        return self._add_event("cluster", label, from_tick, number=_number(cluster, "a cluster id"))

    def undo(self, event: int | LabelEvent, *, from_tick: int | None = None) -> LabelEvent:
        """Take a label back: what would be in force without it is restored, also when others came after it."""
        number = _number(event.event if isinstance(event, LabelEvent) else event, "a label event")
        known = next((e for e in self.events if e.event == number and e.scope != "undo"), None)
        if known is None:
            raise InputError(f"label event {number} is not known, or too old to be undone")
        if known.undone or any(e.scope == "undo" and e.number == number for e in self.events):
            raise InputError(f"label event {number} was already undone")
        return self._add_event("undo", None, from_tick, number=number)

    def _add_event(
        self, scope: Scope, label: str | None, from_tick: int | None, *, number: int, source: int = 0
    ) -> LabelEvent:
        when = self.tick if from_tick is None else _number(from_tick, "from_tick")
        if when < self.tick:
            raise InputError(
                f"verdicts do not change: a label can count from arrival number {self.tick} on, not {when}"
            )
        event = LabelEvent(event=self.memory.next_event, scope=scope, from_tick=when, source=source, number=number)
        # What waits to come into force, or to be undone, cannot be forgotten.
        waiting = [e for e in [*self.events, event] if not e.applied and e.from_tick > self.tick]
        held = {e.event for e in waiting} | {e.number for e in waiting if e.scope == "undo"}
        if len(held) > self.config.max_events:
            raise InputError(f"{self.config.max_events} label events wait already: no more before some come into force")
        event.label = -1 if label is None else self.labels.add(label)
        self.memory.next_event += 1
        self.events.append(event)
        self._apply_due()
        if len(self.events) > self.config.max_events:
            oldest = min((e for e in self.events if e.event not in held), key=lambda e: e.order)
            self.memory.events = [e for e in self.events if e is not oldest]
        return event

    def _apply_due(self) -> None:
        """Apply what counts from the next record on, in the order of (arrival number, event)."""
        due = [e for e in self.events if not e.applied and e.from_tick <= self.tick]
        if not due:
            return
        memory, maturing = self.memory, self.config.mature_after is not None
        store = LabelledMembers(memory.references, memory.partitions, self.labels.is_normal, maturing=maturing)
        self.referent_search.changed()
        for event in sorted(due, key=lambda e: e.order):
            event.applied = True
            if event.scope != "undo":
                if not event.undone:  # taken back before it came into force
                    apply_label(event, store)
                continue
            undone = next((e for e in self.events if e.event == event.number and e.scope != "undo"), None)
            if undone is not None:
                undone.applied = True
                apply_undo(event, undone, self.events, store)

    # What it knows

    def clusters(self, since: int = 0) -> list[ClusterSummary]:
        """Summaries of the clusters, which outlive the referent window; oldest first.

        With `since`, an arrival number: those that have grown from then on.
        """
        return summaries([part.clusters for part in self.memory.partitions], self.labels, since)

    def knows_cluster(self, cluster: int) -> bool:
        """Whether a label on it would reach anything: its summary is kept, or a member can still be linked to."""
        return any(
            bool((part.clusters.ident == cluster).any())
            or any((members.cluster[live] == cluster).any() for members, live in part.groups())
            for part in self.memory.partitions
        )

    def number_clusters_after(self, cluster: int) -> None:
        """Give clusters that open from now on higher numbers than this one, which was given by somebody else."""
        partitions = self.config.partitions if self.config.shard is None else self.config.shard[1]
        opened = max(cluster - len(self.model.encoding.labels), -1) // partitions + 1
        for part in self.memory.partitions:
            part.cursor[kernels.NEXT_CLUSTER] = max(int(part.cursor[kernels.NEXT_CLUSTER]), opened)

    def members(
        self, *, cluster: int | None = None, record_id: str | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.uint16]]:
        """What can be linked to of a cluster, or of one record, besides references: numbers and codes, a row each."""
        nums, codes = [], []
        source, seq = _record(record_id) if record_id is not None else (0, 0)
        for win, live in (group for part in self.memory.partitions for group in part.groups()):
            match = (win.source[live] == source) & (win.seq[live] == seq) if record_id else win.cluster[live] == cluster
            at = np.flatnonzero(match) + live.start
            nums.append(win.num[:, at].T)
            codes.append(win.code[:, at].T)
        return np.concatenate(nums), np.concatenate(codes)

    def counters(self) -> dict[str, int]:
        """Counts for metrics: what is remembered, and how often a bound was hit."""
        slots = {
            "trusted": kernels.TRUSTED,
            "matured_total": kernels.MATURED_TOTAL,
            "clusters_opened_total": kernels.NEXT_CLUSTER,
            "clusters_forgotten_total": kernels.FORGOTTEN,
            "records_unsummed_total": kernels.UNSUMMED,
        }
        counts = {name: sum(int(part.cursor[slot]) for part in self.memory.partitions) for name, slot in slots.items()}
        counts["referents"] = sum(part.live.stop - part.live.start for part in self.memory.partitions)
        counts["representatives"] = sum(int(part.kept.size[0]) for part in self.memory.partitions)
        counts["records_total"] = self.tick
        return counts

    def find_referent(self, handle: int) -> tuple[NDArray[np.float32], NDArray[np.uint16]] | None:
        """Return numbers and codes of the record behind a handle; None for the root and what was forgotten."""
        if handle in (NO_REFERENT, kernels.ROOT):
            return None
        if handle < 0:
            k = reference_index(handle)
            return self.model.reference.num[k], self.model.reference.code[k]
        return next((found for part in self.memory.partitions if (found := part.find(handle)) is not None), None)

    def withhold_references(self, indices: Iterable[int]) -> None:
        """Link to these references no longer."""
        for index in indices:
            self.memory.references.side[index] = kernels.WITHHELD
            self.referent_search.changed()

    def cluster(self, ident: int) -> ClusterSummary | None:
        """Return the summary of a cluster, also of a class that no record has joined; None if nothing is kept of it."""
        return cluster_summary([part.clusters for part in self.memory.partitions], ident, self.labels)

    # Snapshot

    def freeze(self, since: int | None = None) -> Frozen:
        """A copy of everything that the next verdict depends on, besides the model: quickly, to be packed elsewhere.

        With `since`, an arrival number at which an earlier one was made under the same model: what has changed since.
        """
        return freeze_snapshot(self.memory, self.model, self.config, since)

    def snapshot(self) -> bytes:
        """Everything that the next verdict depends on, besides the model."""
        return self.freeze().pack()

    @classmethod
    def restore(
        cls,
        model: Model,
        snapshot: bytes,
        where: str = "snapshot",
        base: bytes | None = None,
        *,
        search: Search = "auto",
        threads: int = 1,
    ) -> Linker:
        """Go on where a snapshot was taken, bit for bit, with the same model; one of changes needs its `base`."""
        opened = open_snapshot(model, snapshot, where, base)
        linker = cls(model, opened.config, search=search, threads=threads)
        opened.restore(linker.memory, model, where)
        return linker

    def with_model(self, model: Model, config: LinkerConfig | None = None) -> Linker:
        """Return a linker with another model that continues this one's count; do not use this one again.

        Where both have the same encoding and configuration, and the new reference set begins with the old one,
        everything that is remembered stays. Else referent window, clusters and label events are given up.
        """
        chosen = config or self.config
        linker = Linker(model, chosen, search=self.referent_search.search, threads=self.threads)
        if chosen == self.config and goes_on(self.model, model):
            carry_over_snapshot(self.memory, linker.memory, model, len(self.model.reference))
            linker.referent_search.take_over(self.referent_search)
        else:
            count_on(self.memory, linker.memory, len(self.model.encoding.labels))
        return linker

    def adopt(self, model: Model, config: LinkerConfig | None = None) -> Linker:
        """Deprecated: the old name of `with_model`, which the next release will not have."""
        warnings.warn("Linker.adopt is now Linker.with_model", DeprecationWarning, stacklevel=2)
        return self.with_model(model, config)


def _record(record_id: str) -> tuple[int, int]:
    """Source and seq of a record id."""
    found = re.fullmatch(r"([0-9]{1,20}):([0-9]{1,20})", record_id) if isinstance(record_id, str) else None
    if found is None or int(found[1]) >= 1 << 16 or int(found[2]) >= 1 << 64:
        raise InputError(f"a record id is source:seq, such as 0:1234, not {str(record_id)[:100]!r}")
    return int(found[1]), int(found[2])


def _number(value: int, what: str) -> int:
    """A whole number from outside, numpy's included, as Python's own."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{what} is a whole number, not {str(value)[:100]!r}") from None
    if not 0 <= number < MAX_NUMBER:
        raise InputError(f"{what} lies between 0 and {MAX_NUMBER - 1}, not {number}")
    return number
