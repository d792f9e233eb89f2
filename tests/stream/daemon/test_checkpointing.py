"""When checkpoints are cut: in time, once every source is at rest, one at a time; a failure is counted, not the end."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.stream.daemon import checkpointing
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut
from netclust.stream.daemon.checkpointing import PATIENCE_SECONDS, Checkpointer
from netclust.stream.daemon.queues import Inbox
from netclust.stream.logs import Log
from netclust.stream.sinks.base import SinkError
from netclust.stream.sources.base import Arrival, MemorySource, SourceState
from netclust.stream.telemetry.telemetry import Telemetry

TABLE = simulate(10, seed=1).table()
EVERY = 60.0


class Asked(MemorySource):
    """A source that counts how often it is asked for its state."""

    asked = 0

    def want_state(self) -> None:
        self.asked += 1


class Bench:
    """A checkpointer with two sources, on a clock that tests turn."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: self.now)
        monkeypatch.setattr(checkpointing, "time", clock)
        self.sources = [Asked(name, TABLE.schema) for name in "ab"]
        self.inbox = Inbox(self.sources, records=100, seconds=1.0)
        self.telemetry = Telemetry()
        self.output = io.StringIO()
        self.store = CheckpointStore(folder)
        self.cuts = 0
        self.marks: list[tuple[str, Any]] = []
        write = self.store.write

        def takes_half_a_second(cut: Cut) -> Any:
            self.now += 0.5
            return write(cut)

        monkeypatch.setattr(self.store, "write", takes_half_a_second)
        self.pointer = Checkpointer(
            self.store, self.inbox, self.telemetry, Log("json", "debug", self.output), seconds=EVERY
        )

    def cut(self) -> tuple[Cut, list[tuple[str, Any]]]:
        self.cuts += 1
        self.now += 0.25  # what detection waits for
        return Cut({"number": self.cuts}, {"a": np.arange(3)}), self.marks

    def progress(self) -> int:
        """Let it look; how many checkpoints were cut by that."""
        before = self.cuts
        self.pointer.progress(self.cut)
        return self.cuts - before

    def arrive(self, source: int, *, state: bool, records: int = 10) -> None:
        at = SourceState({"seq": 1}) if state else None
        self.pointer.taken(source, Arrival(TABLE[:records], at, 0.0))

    def rest(self) -> None:
        for source in range(len(self.sources)):
            self.arrive(source, state=True)

    def held(self) -> list[bool]:
        return [queue.paused for queue in self.inbox.queues]

    def written(self) -> None:
        """Wait for the thread, which has its own time."""
        with self.pointer._wake:
            assert self.pointer._wake.wait_for(lambda: not self.pointer._busy, timeout=10)

    def total(self, result: str) -> float:
        return self.telemetry.value("checkpoints_total", result=result)

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.getvalue().splitlines()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench(tmp_path, monkeypatch)
    yield bench
    bench.pointer.close(10)
    assert not bench.pointer._thread.is_alive()


def test_a_checkpoint_is_cut_when_it_is_time_and_every_source_is_at_rest(bench: Bench) -> None:
    bench.rest()
    assert bench.progress() == 0
    bench.now += EVERY - 0.1
    assert bench.progress() == 0
    bench.now += 0.1
    assert bench.progress() == 1
    bench.written()
    found = bench.store.load()
    assert found is not None
    assert found.facts == {"number": 1, "sinks": {}}
    assert bench.total("ok") == 1
    assert bench.telemetry.value("checkpoint_pause_seconds") == 0.25
    assert bench.telemetry.value("checkpoint_bytes") == found.path.stat().st_size
    assert bench.telemetry.value("checkpoint_seconds") == 0.5
    assert bench.held() == [False, False]
    assert bench.progress() == 0  # the next one in its time
    bench.now += EVERY
    assert bench.progress() == 1
    bench.written()
    assert bench.pointer.failures == 0


def test_nothing_is_taken_from_a_source_at_rest_until_the_others_are(bench: Bench) -> None:
    bench.arrive(0, state=True)
    bench.arrive(1, state=False)
    bench.now += EVERY
    assert bench.progress() == 0
    assert bench.pointer.requested
    assert bench.held() == [True, False]
    assert [source.asked for source in bench.sources] == [0, 1]
    bench.now += 1.0
    assert bench.progress() == 0
    assert [source.asked for source in bench.sources] == [0, 1]  # asked once
    bench.arrive(1, state=True)
    assert bench.held() == [True, True]
    assert bench.progress() == 1
    assert bench.held() == [False, False]
    bench.written()


def test_records_without_a_state_end_the_rest_of_a_source_and_an_empty_arrival_does_not(bench: Bench) -> None:
    bench.rest()
    bench.arrive(0, state=False, records=0)
    assert bench.pointer.states[0] is not None
    bench.arrive(0, state=False, records=1)
    assert bench.pointer.states[0] is None
    assert bench.held() == [False, False]  # nobody asked for a checkpoint


def test_a_source_that_does_not_come_to_rest_holds_up_the_others_for_a_while_only(bench: Bench) -> None:
    bench.arrive(0, state=True)
    bench.now += EVERY
    assert bench.progress() == 0
    bench.now += PATIENCE_SECONDS
    assert bench.progress() == 0
    assert bench.held() == [True, False]
    bench.now += 0.1
    assert bench.progress() == 0
    assert bench.held() == [False, False]
    assert not bench.pointer.requested
    assert bench.total("failed") == 1
    assert [line["level"] for line in bench.logged()] == ["warning"]
    bench.rest()
    bench.now += EVERY - 0.1
    assert bench.progress() == 0  # it is asked again in its time
    bench.now += 0.1
    assert bench.progress() == 1
    bench.written()


def test_a_checkpoint_can_be_asked_for_before_its_time(bench: Bench) -> None:
    bench.rest()
    bench.pointer.request()
    assert bench.held() == [True, True]
    assert bench.progress() == 1
    bench.written()
    assert bench.progress() == 0


def test_while_one_is_written_none_is_cut(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    write = bench.store.write

    def slow(cut: Cut) -> Any:
        assert may_end.wait(10)
        return write(cut)

    monkeypatch.setattr(bench.store, "write", slow)
    bench.rest()
    bench.now += EVERY
    assert bench.progress() == 1
    bench.now += 10 * EVERY
    assert bench.progress() == 0
    assert not bench.pointer.requested
    may_end.set()
    bench.written()
    assert bench.progress() == 1
    bench.written()


@pytest.mark.parametrize("error", [InputError("no room"), SinkError("sink is full"), OSError(28, "full")])
def test_a_state_that_cannot_be_copied_is_a_failure_and_the_next_time_it_is_tried_again(
    bench: Bench, error: Exception
) -> None:
    def fails() -> Any:
        bench.now += 0.5
        raise error

    bench.rest()
    bench.now += EVERY
    bench.pointer.progress(fails)
    assert (bench.pointer.failures, bench.total("failed"), bench.total("ok")) == (1, 1, 0)
    assert bench.telemetry.value("checkpoint_pause_seconds") == 0.5
    assert bench.held() == [False, False]
    assert bench.logged()[-1]["why"] == str(error)
    assert bench.progress() == 0
    bench.now += EVERY
    assert bench.progress() == 1
    bench.written()
    assert bench.total("ok") == 1


def test_a_disk_that_refuses_is_a_failure_and_the_thread_lives_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Cut) -> Any:
        bench.now += 2.0
        raise ValueError

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "write", full)
        bench.rest()
        bench.now += EVERY
        assert bench.progress() == 1
        bench.written()
    assert (bench.pointer.failures, bench.total("failed")) == (1, 1)
    assert bench.logged()[-1]["why"] == "ValueError"
    assert bench.telemetry.value("checkpoint_seconds") == 2.0
    assert bench.telemetry.value("checkpoint_pause_seconds") == 0.25
    bench.now += EVERY
    assert bench.progress() == 1
    bench.written()
    assert bench.total("ok") == 1


def test_a_checkpoint_waits_for_the_marks_of_sinks(bench: Bench) -> None:
    durable: Future[dict[str, Any]] = Future()
    bench.marks = [("file", durable)]
    bench.rest()
    bench.pointer.request()
    assert bench.progress() == 1
    assert bench.store.load() is None
    durable.set_result({"bytes": 7})
    bench.written()
    found = bench.store.load()
    assert found is not None
    assert found.facts["sinks"] == {"file": {"bytes": 7}}


def test_waiting_says_whether_all_is_written_and_the_end_waits_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, telemetry = CheckpointStore(tmp_path), Telemetry()
    pointer = Checkpointer(store, Inbox([], records=1, seconds=1), telemetry, Log(stream=io.StringIO()), seconds=EVERY)
    assert pointer.wait(0.0)
    may_end, write = threading.Event(), store.write

    def slow(cut: Cut) -> Any:
        assert may_end.wait(10)
        return write(cut)

    monkeypatch.setattr(store, "write", slow)
    pointer.cut_now(lambda: (Cut({"number": 1}), []))
    assert not pointer.wait(0.02)
    threading.Timer(0.05, may_end.set).start()
    pointer.close(10)
    assert not pointer._thread.is_alive()
    assert store.load() is not None
