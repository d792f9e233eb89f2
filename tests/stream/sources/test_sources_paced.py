"""A paced source: nothing is lost or reordered, nothing comes early, and it stops when it is told."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.records.table import Table
from netclust.shipped.loading import load_shipped
from netclust.stream.config import SourceConfig
from netclust.stream.daemon.build import build_source
from netclust.stream.sources.base import MemorySource
from netclust.stream.sources.paced import PacedSource

SECOND = 10**9


def table_of(seconds: list[float]) -> Table:
    table = simulate(len(seconds), seed=1).table()
    table.time = np.array([round(s * SECOND) if s >= 0 else -1 for s in seconds], np.int64)
    return table


def paced(tables: list[Table], pace: float) -> PacedSource:
    return PacedSource(MemorySource("test", tables[0].schema, tables), pace)


def test_records_do_not_come_early_and_none_is_lost() -> None:
    source = paced([table_of([0, 1, 2, 30, 31]), table_of([60, 61])], pace=50.0)
    began, came, states = time.monotonic(), [], []
    for arrival in source:
        seconds = (time.monotonic() - began) * 50.0
        came += [(int(seq), t / SECOND) for seq, t in zip(arrival.table.seq, arrival.table.time, strict=True)]
        states.append(arrival.state is not None)
        assert all(t / SECOND <= seconds + 1 for t in arrival.table.time)
    assert came == [(0, 0), (1, 1), (2, 2), (3, 30), (4, 31), (5, 60), (6, 61)]
    assert states.count(False) > 2, "between records a quiet source gives empty arrivals"
    assert states[-1]


def test_records_without_a_time_come_at_once() -> None:
    source = paced([table_of([-1.0] * 20)], pace=0.001)
    assert sum(len(arrival.table) for arrival in source) == 20


def test_a_record_far_in_the_past_does_not_hold_up_others() -> None:
    source = paced([table_of([100, 5, 101])], pace=1000.0)
    assert [int(s) for arrival in source for s in arrival.table.seq] == [0, 1, 2]


def test_a_stop_is_not_slept_through() -> None:
    source = paced([table_of([0, 10_000])], pace=1.0)
    threading.Timer(0.3, source.stop).start()
    began = time.monotonic()
    assert sum(len(arrival.table) for arrival in source) == 2
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "given",
    [
        SourceConfig(kind="records", name="in", path="tcp://127.0.0.1:0", pace=2.0),
        SourceConfig(kind="records", name="in", path="x.txt", follow=True, pace=2.0),
        SourceConfig(kind="records", name="in", path="x.txt", pace=-1.0),
    ],
)
def test_what_cannot_be_paced_is_refused(given: SourceConfig) -> None:
    with pytest.raises(InputError, match="pace"):
        build_source(given, load_shipped("kdd"))
