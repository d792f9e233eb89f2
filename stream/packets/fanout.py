"""Several capture threads that build flows, and one time-ordered stream of what they found.

The Linux kernel shares packets out by flow, so a worker sees both directions of its flows and nobody else's; attributes
that look at the traffic as a whole are made behind the merge. Kernels release the GIL: workers run side by side.
Fragments are shared out by address alone, so they may reach another worker than the rest of their flow.

    with FanoutFlows.on(["eth0"], FlowTable, workers=4) as flows:
        for records, now in flows:
            ...
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.stream.packets.live import NEW_GROUP, LiveCapture, LivePacketSource
from netclust.stream.packets.packet_blocks import PacketBlock

QUEUE_BLOCKS = 64
"""Results that wait for the consumer, for each worker; then the worker waits, and the ring may drop."""

_FOREVER = 2**63 - 1
_PUT_SECONDS = 0.2


class Flows(Protocol):
    """What a worker does with its packets; records have a field "time" (nanoseconds) that never goes back."""

    @property
    def now(self) -> int:
        """The traffic time so far (nanoseconds): no later record is earlier than this."""
        ...

    def feed(self, block: PacketBlock) -> NDArray[Any]:
        """Take packets; the records that are finished."""
        ...

    def advance(self, now: int) -> NDArray[Any]:
        """Take note of the time; the records that are finished."""
        ...

    def finish(self) -> NDArray[Any]:
        """The records that are left."""
        ...


class Timed(NamedTuple):
    """Records, and the time (nanoseconds) that no later record of the same stream is earlier than."""

    records: NDArray[Any]
    now: int


def merge_by_time(streams: Sequence[Iterable[Timed]], counters: Counter[str] | None = None) -> Iterator[Timed]:
    """Records of all streams in the order of (time, stream, place in the stream), each once no earlier one can come.

    The stream that is behind is read next, so what waits here stays small and the result, cuts included, depends on the
    streams alone. A record that breaks its stream's promise comes as soon as it can and is counted (late_records).

    >>> first = [Timed(np.array([(1,), (5,)], [("time", "i8")]), 5), Timed(np.array([(7,)], [("time", "i8")]), 9)]
    >>> second = [Timed(np.array([(2,), (7,)], [("time", "i8")]), 8)]
    >>> [released.records["time"].tolist() for released in merge_by_time([first, second]) if len(released.records)]
    [[1, 2], [5, 7, 7]]
    """
    sources = [iter(stream) for stream in streams]
    waiting: list[deque[NDArray[Any]]] = [deque() for _ in streams]
    reached = [-1] * len(sources)
    released = latest = -1
    while sources and released < _FOREVER:
        behind = reached.index(min(reached))
        item = next(sources[behind], None)
        if item is None:
            reached[behind] = _FOREVER
        else:
            late = int(np.count_nonzero(item.records["time"] < reached[behind]))
            if late and counters is not None:
                counters["late_records"] += late
            empty = item.records[:0]
            waiting[behind].append(item.records)
            reached[behind] = max(reached[behind], item.now)
            latest = max(latest, item.now)
        if min(reached) > released:
            released = min(reached)
            parts = [part for records in waiting for part in _before(records, released)]
            if parts:
                records = _in_order(parts)
                yield Timed(records, min(released, max(latest, int(records["time"][-1]))))
            elif released < _FOREVER:
                yield Timed(empty, released)


def _before(records: deque[NDArray[Any]], now: int) -> Iterator[NDArray[Any]]:
    """Take the records before a time; all of them at the end of time."""
    while records:
        part = records[0]
        count = len(part) if now == _FOREVER else int(np.searchsorted(part["time"], now, side="left"))
        if count:
            yield part[:count]
        if count < len(part):
            records[0] = part[count:]
            return
        records.popleft()


def _in_order(parts: list[NDArray[Any]]) -> NDArray[Any]:
    together = np.concatenate(parts)
    return together[np.argsort(together["time"], kind="stable")]


class FanoutFlows:
    """Flow records of several captures, each read by a thread with a table of its own, in the order of time.

    Iterating starts the threads; it ends after `stop`, when the sources end, or with the first worker's error.
    """

    def __init__(
        self, sources: Sequence[LivePacketSource], make_table: Callable[[], Flows], *, queue_blocks: int = QUEUE_BLOCKS
    ) -> None:
        self._sources = list(sources)
        self._tables = [make_table() for _ in self._sources]
        self._queues: list[queue.Queue[Timed | BaseException | None]] = [queue.Queue(queue_blocks) for _ in sources]
        self._given_up = threading.Event()
        self._merge_counters: Counter[str] = Counter(late_records=0)

    @classmethod
    def on(
        cls, interfaces: Sequence[str], make_table: Callable[[], Flows], *, workers: int, **options: Any
    ) -> FanoutFlows:
        """Captures of the same interfaces in fanout groups of their own; `options` are those of LiveCapture."""
        if workers < 1:
            raise InputError(f"{workers} workers: needs one at least")
        sources: list[LivePacketSource] = []
        groups = [NEW_GROUP] * len(interfaces)
        try:
            for _ in range(workers):
                capture = LiveCapture(interfaces, fanout=groups, **options)
                groups = capture.fanout or groups
                sources.append(capture)
            return cls(sources, make_table)
        except BaseException:
            for source in sources:
                source.close()
            raise

    @property
    def counters(self) -> Counter[str]:
        """The counters of all captures together, and late_records."""
        total = Counter(self._merge_counters)
        for source in self._sources:
            total.update(dict(source.counters))
        return total

    def __iter__(self) -> Iterator[Timed]:
        """Records in the order of time, and how far the time has come in all workers."""
        threads = [
            threading.Thread(target=self._work, args=work, name=f"netclust-flows-{k}", daemon=True)
            for k, work in enumerate(zip(self._sources, self._tables, self._queues, strict=True))
        ]
        for thread in threads:
            thread.start()
        try:
            yield from merge_by_time([_taken(results) for results in self._queues], self._merge_counters)
        finally:
            self._given_up.set()
            self.stop()
            for thread in threads:
                thread.join()

    def _work(self, source: LivePacketSource, table: Flows, results: queue.Queue[Timed | BaseException | None]) -> None:
        """What a thread does: packets to records, records to the queue."""
        try:
            for block in source:
                found = [table.feed(block)]
                if block.now >= 0:
                    found.append(table.advance(block.now))
                # Copied by this: a table may use its arrays again.
                self._put(results, Timed(np.concatenate(found), table.now))
            self._put(results, Timed(table.finish(), table.now))
            self._put(results, None)
        except BaseException as err:
            self._put(results, err)

    def _put(self, results: queue.Queue[Timed | BaseException | None], item: Timed | BaseException | None) -> None:
        """Wait for room, but not for a consumer that has gone."""
        while not self._given_up.is_set():
            try:
                return results.put(item, timeout=_PUT_SECONDS)
            except queue.Full:
                continue
        return None

    def stop(self) -> None:
        """End all captures; the iteration then gives what is left and ends."""
        for source in self._sources:
            source.stop()

    def close(self) -> None:
        """Close the captures, after the iteration has ended."""
        for source in self._sources:
            source.close()

    def __enter__(self) -> FanoutFlows:
        """The flows themselves."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _taken(results: queue.Queue[Timed | BaseException | None]) -> Iterator[Timed]:
    """What a worker put, to its end; its error is raised here."""
    while (item := results.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item
