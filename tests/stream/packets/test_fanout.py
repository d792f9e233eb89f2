"""The merge of workers' records, and what happens to a worker that fails, waits or is abandoned."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.stream.packets.fanout import FanoutFlows, Timed, merge_by_time
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock

FUZZ = settings(max_examples=2000 if os.environ.get("NETCLUST_LONG") else 150, deadline=None)
RECORD = np.dtype([("time", np.int64), ("worker", np.int32), ("place", np.int32)])


@st.composite
def streams(draw: st.DrawFn) -> list[list[Timed]]:
    """Workers' results: times never go back, and no record is earlier than the time that was told before it."""
    made = []
    for worker in range(draw(st.integers(0, 4))):
        now, place, stream = 0, 0, []
        for _ in range(draw(st.integers(0, 5))):
            times = []
            for step in draw(st.lists(st.integers(0, 3), max_size=5)):
                now += step
                times.append(now)
            records = np.array([(t, worker, place + k) for k, t in enumerate(times)], RECORD)
            place += len(times)
            now += draw(st.integers(0, 4)) if draw(st.booleans()) else 0
            stream.append(Timed(records, now))
        made.append(stream)
    return made


def rows(released: list[Timed]) -> list[tuple[int, ...]]:
    return [tuple(row) for part in released for row in part.records.tolist()]


@FUZZ
@given(streams())
def test_no_record_is_lost_or_out_of_order(made: list[list[Timed]]) -> None:
    counters: Counter[str] = Counter()
    released = list(merge_by_time(made, counters))
    assert rows(released) == sorted(row for stream in made for part in stream for row in part.records.tolist())
    assert counters["late_records"] == 0


@FUZZ
@given(streams())
def test_no_later_record_is_earlier_than_the_time_given(made: list[list[Timed]]) -> None:
    told = -1
    for part in merge_by_time(made):
        assert all(part.records["time"] >= told)
        assert part.now >= told
        told = part.now


@FUZZ
@given(streams())
def test_the_cuts_depend_on_the_streams_alone(made: list[list[Timed]]) -> None:
    once, again = list(merge_by_time(made)), list(merge_by_time(made))
    assert [(part.records.tolist(), part.now) for part in once] == [(p.records.tolist(), p.now) for p in again]


@FUZZ
@given(streams())
def test_records_do_not_pile_up_in_the_merge(made: list[list[Timed]]) -> None:
    read = [0] * len(made)

    def counted(worker: int) -> Iterator[Timed]:
        for part in made[worker]:
            read[worker] += 1
            yield part

    for part in merge_by_time([counted(worker) for worker in range(len(made))]):
        for worker, count in enumerate(read):  # of what is behind the time told, one result a worker has been read
            assert sum(result.now > part.now for result in made[worker][:count]) <= 1


def test_a_record_that_comes_too_late_is_kept_and_counted() -> None:
    counters: Counter[str] = Counter()
    late = [Timed(np.array([(9, 0, 0)], RECORD), 9), Timed(np.array([(3, 0, 1)], RECORD), 20)]
    assert len(rows(list(merge_by_time([late, [Timed(np.empty(0, RECORD), 30)]], counters)))) == 2
    assert counters["late_records"] == 1


class Source:
    """A live source of made-up blocks; their `now` is all that they carry."""

    note = ""

    def __init__(self, times: list[int], endless: bool = False) -> None:
        self.counters: Counter[str] = Counter(kernel_drops=1)
        self.times, self.endless, self.closed = times, endless, False
        self.stopped = threading.Event()

    def __iter__(self) -> Iterator[PacketBlock]:
        for now in self.times:
            yield PacketBlock(np.empty(0, np.uint8), np.empty(0, INDEX), now)
        while self.endless and not self.stopped.wait(0.01):
            yield PacketBlock(np.empty(0, np.uint8), np.empty(0, INDEX), self.times[-1])

    def stop(self) -> None:
        self.stopped.set()

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Table:
    """One record for each time that it is told, in an array that it uses again, and one at the end."""

    def __init__(self, fails_at: int = -1) -> None:
        self.now, self.fails_at, self.array = 0, fails_at, np.zeros(1, RECORD)

    def feed(self, block: PacketBlock) -> NDArray[Any]:
        return self.array[:0]

    def advance(self, now: int) -> NDArray[Any]:
        if now == self.fails_at:
            raise ValueError(f"broken at {now}")
        self.array["time"] = self.now = now
        return self.array

    def finish(self) -> NDArray[Any]:
        return self.advance(self.now + 1)


def test_no_record_is_lost_between_threads() -> None:
    with FanoutFlows([Source([1, 4, 6]), Source([2, 3, 50]), Source([5])], Table, queue_blocks=1) as flows:
        assert [row[0] for row in rows(list(flows))] == [1, 2, 3, 4, 5, 6, 6, 7, 50, 51]
        assert flows.counters["kernel_drops"] == 3


def test_an_error_in_a_worker_is_raised() -> None:
    tables = iter([Table(), Table(fails_at=7)])
    sources = [Source([1, 20], endless=True), Source([2, 7])]
    flows = FanoutFlows(sources, lambda: next(tables))
    with pytest.raises(ValueError, match="broken at 7"):
        list(flows)
    assert all(source.stopped.is_set() for source in sources)


def test_no_records_are_lost_when_stopped() -> None:
    flows = FanoutFlows([Source([1], endless=True), Source([2], endless=True)], Table)
    seen = []
    for part in flows:
        seen.append(part)
        flows.stop()
    assert {1, 2, 3} <= {row[0] for row in rows(seen)}


def test_a_worker_does_not_wait_for_a_consumer_that_has_gone() -> None:
    flows = FanoutFlows([Source([1], endless=True), Source([2], endless=True)], Table, queue_blocks=1)
    before = threading.active_count()
    iteration = iter(flows)
    next(iteration)
    assert threading.active_count() == before + 2
    iteration.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_captures_for_no_worker_are_refused() -> None:
    with pytest.raises(InputError, match="0 workers"):
        FanoutFlows.on(["lo"], Table, workers=0)
