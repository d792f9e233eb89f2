"""The runner of sinks: what happens when a receiver is down, slow, refuses, hangs or surprises."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sink_events as make
from sink_receivers import HttpReceiver, StreamReceiver

from netclust.stream.alerts.alert_events import Event
from netclust.stream.sinks.base import Facts, MemorySink, SinkError
from netclust.stream.sinks.http_post import RetryLaterError
from netclust.stream.sinks.jsonl import JsonLines
from netclust.stream.sinks.runner import SinkRunner
from netclust.stream.sinks.syslog import Syslog
from netclust.stream.sinks.webhook import Webhook


@contextmanager
def running(sink: Any, spool: Path | None = None, facts: Facts | None = None, **given: Any) -> Iterator[SinkRunner]:
    options = {"queue_events": 1000, "first_wait": 0.01, "longest_wait": 0.05, "patience": 0.1, "mark_seconds": 1.0}
    runner = SinkRunner(sink, spool_path=spool, **(options | given))
    runner.open(facts)
    try:
        yield runner
    finally:
        runner.close(5.0)


class Receiver(MemorySink):
    """Tells apart what a receiver at the other end of a wire would: nothing is cut back. `hold` makes it hang."""

    cuts_back = False

    def __init__(self, batch_events: int = 256) -> None:
        super().__init__("receiver")
        self.batch_events = batch_events
        self.free = threading.Event()
        self.free.set()
        self.batches: list[int] = []

    def open(self, facts: Facts | None) -> None:
        """Nothing to cut back."""

    def write(self, events: Sequence[Event]) -> None:
        assert self.free.wait(20)
        super().write(events)
        self.batches.append(len(events))

    def sync(self) -> Facts:
        return {}


def keys(events: Sequence[Event]) -> list[str]:
    return [event.key for event in events]


def in_order_at_least_once(got: Sequence[str], sent: Sequence[Event]) -> bool:
    """Each is there, and the first time of each comes in order; nothing else is."""
    return list(dict.fromkeys(got)) == keys(sent)


def test_a_sink_that_is_down_gets_every_event_in_order_once_it_is_up(tmp_path: Path) -> None:
    receiver = HttpReceiver()
    events = make.alert_events(60)
    with running(Webhook("w", receiver.url), tmp_path / "spool", queue_events=10) as runner:
        runner.submit(events[:20])
        make.until(lambda: len(receiver.requests) == 20)
        receiver.stop()
        runner.submit(events[20:40])
        make.until(lambda: runner.counters["errors"] > 2)
        assert "refused" in runner.trouble
        runner.submit(events[40:])
        make.until(lambda: runner.depth == 0)
        assert runner.spool_bytes > 0
        again = HttpReceiver(receiver.port)
        make.until(lambda: runner.pending == 0)
        assert runner.trouble == ""
    again.stop()
    assert receiver.keys + again.keys == keys(events)
    assert runner.counters["delivered"] == 60
    assert runner.spool_bytes == 0


def test_a_syslog_server_that_is_down_gets_every_event(tmp_path: Path) -> None:
    receiver = StreamReceiver()
    sink = Syslog("s", f"tcp://127.0.0.1:{receiver.port}", timeout=2.0)
    with running(sink, tmp_path / "spool") as runner:
        runner.submit(make.alert_events(5))
        make.until(lambda: len(receiver.messages) == 5)
        receiver.stop()
        runner.submit(make.alert_events(5, first=5))
        make.until(lambda: runner.counters["errors"] > 1)
        again = StreamReceiver(receiver.port)
        make.until(lambda: runner.pending == 0)
        make.until(lambda: len(again.messages) >= 5)
    again.stop()
    assert all(b'id="a-%06d"' % i in m for i, m in enumerate(receiver.messages + again.messages))


def test_a_spool_outlives_a_restart(tmp_path: Path) -> None:
    events = [*make.alert_events(700), make.nasty_event()]
    down = Receiver()
    down.fail = True
    with running(down, tmp_path / "spool", queue_events=50, mark_seconds=5.0) as runner:
        runner.submit(events[:400])
        facts = runner.mark().result(timeout=10)
        runner.submit(events[400:])
    assert runner.depth == 0
    assert runner.counters["dropped"] + runner.counters["spool_dropped"] == 0
    up = Receiver()
    with running(up, tmp_path / "spool", facts) as runner:
        make.until(lambda: runner.pending == 0)
        runner.submit(make.alert_events(1, first=9999))
    assert keys(up.events)[:-2] == keys(events)[:-1]
    assert keys(up.events)[-1] == "a-009999:0"
    assert up.events[-2].alert.top_score == float("inf")  # type: ignore[union-attr]


def test_a_spool_does_not_outgrow_its_bound(tmp_path: Path) -> None:
    sink = Receiver()
    sink.fail = True
    events = make.alert_events(3000)
    with running(sink, tmp_path / "spool", spool_bytes=100_000) as runner:
        for i in range(0, 3000, 100):
            runner.submit(events[i : i + 100])
            make.until(lambda: runner.depth == 0)
            assert sum(f.stat().st_size for f in (tmp_path / "spool").glob("*.spool")) <= 100_000
        assert runner.counters["spool_dropped"] > 0
        sink.fail = False
        make.until(lambda: runner.pending == 0)
    assert len(sink.events) + runner.counters["spool_dropped"] == 3000
    assert keys(sink.events) == keys(events)[-len(sink.events) :]


def test_a_torn_tail_of_the_spool_is_not_read(tmp_path: Path) -> None:
    sink = Receiver()
    sink.fail = True
    with running(sink, tmp_path / "spool") as runner:
        runner.submit(make.alert_events(5))
    (file,) = (tmp_path / "spool").glob("*.spool")
    file.write_bytes(file.read_bytes()[:-3])
    sink.fail = False
    with running(sink, tmp_path / "spool") as runner:
        runner.submit(make.alert_events(2, first=5))
        make.until(lambda: runner.pending == 0)
    assert keys(sink.events) == [f"a-00000{i}:0" for i in (0, 1, 2, 3, 5, 6)]


def test_a_spool_that_cannot_be_written_costs_the_oldest_only(tmp_path: Path) -> None:
    sink = Receiver()
    sink.fail = True
    with running(sink, tmp_path / "spool", queue_events=10) as runner:
        (tmp_path / "spool").rename(tmp_path / "away")
        runner.submit(make.alert_events(5))
        make.until(lambda: "spool" in runner.trouble)
        with pytest.raises(SinkError, match="not safe"):
            runner.mark().result(timeout=10)
        for i in range(5, 40):
            runner.submit(make.alert_events(1, first=i))
        assert runner.depth <= 11
        sink.fail = False
        make.until(lambda: runner.pending == 0)
        assert len(sink.events) + runner.counters["dropped"] == 40
        assert keys(sink.events)[-10:] == keys(make.alert_events(10, first=30))


def test_a_hanging_sink_does_not_hold_up_who_submits_nor_a_mark(tmp_path: Path) -> None:
    sink = Receiver()
    sink.free.clear()
    events = make.alert_events(500)
    with running(sink, tmp_path / "spool", queue_events=20) as runner:
        began = time.monotonic()
        for i in range(0, 500, 50):
            runner.submit(events[i : i + 50])
        assert time.monotonic() - began < 5
        make.until(lambda: runner.depth < 20)
        facts = runner.mark().result(timeout=10)
        assert facts["spool"]["write"] > facts["spool"]["read"]
        assert runner.counters["delivered"] == 0
        sink.free.set()
        make.until(lambda: runner.pending == 0)
    assert in_order_at_least_once(keys(sink.events), events[-len(set(keys(sink.events))) :])
    assert len(sink.events) + runner.counters["dropped"] == 500


def test_closing_does_not_wait_for_a_hanging_sink_and_keeps_its_events(tmp_path: Path) -> None:
    sink = Receiver()
    sink.free.clear()
    runner = SinkRunner(sink, queue_events=100, spool_path=tmp_path / "spool")
    runner.open(None)
    runner.submit(make.alert_events(30))
    runner.close(0.2)
    with pytest.raises(RuntimeError, match="closed"):
        runner.submit(make.alert_events(1))
    with pytest.raises(SinkError, match="closed"):
        runner.mark().result(timeout=1)
    up = Receiver()
    with running(up, tmp_path / "spool") as again:
        make.until(lambda: again.pending == 0)
    assert keys(up.events) == keys(make.alert_events(30))
    sink.free.set()


def test_one_refused_event_does_not_take_others_with_it() -> None:
    class Picky(Receiver):
        def write(self, events: Sequence[Event]) -> None:
            if any(e.key in ("a-000003:0", "a-000007:0") for e in events):
                raise SinkError("will not take it", retry=False)
            super().write(events)

    sink = Picky()
    with running(sink) as runner:
        runner.submit(make.alert_events(20))
        make.until(lambda: runner.pending == 0)
    assert keys(sink.events) == [k for k in keys(make.alert_events(20)) if k not in ("a-000003:0", "a-000007:0")]
    assert runner.counters["refused"] == 2


def test_a_surprise_does_not_end_the_thread() -> None:
    class Buggy(Receiver):
        def write(self, events: Sequence[Event]) -> None:
            if any(e.key == "a-000003:0" for e in events):
                raise ZeroDivisionError("oh")
            super().write(events)

        def tick(self) -> None:
            raise KeyError("tick")

        def reopen(self) -> None:
            raise ValueError("reopen")

    sink = Buggy()
    with running(sink) as runner:
        runner.submit(make.alert_events(6))
        make.until(lambda: runner.pending == 0)
        runner.reopen()
        make.until(lambda: "reopen" in runner.trouble)
        make.until(lambda: "tick" in runner.trouble)
        runner.submit(make.alert_events(1, first=6))
        make.until(lambda: runner.pending == 0)
    assert keys(sink.events) == [f"a-00000{i}:0" for i in (0, 1, 2, 4, 5, 6)]
    assert runner.counters["refused"] == 1


def test_a_pause_that_was_asked_for_is_kept() -> None:
    class Busy(Receiver):
        tries: list[float] = []  # noqa: RUF012

        def write(self, events: Sequence[Event]) -> None:
            self.tries.append(time.monotonic())
            if len(self.tries) == 1:
                raise RetryLaterError("busy", 0.3)
            super().write(events)

    sink = Busy()
    with running(sink) as runner:
        runner.submit(make.alert_events(1))
        make.until(lambda: runner.pending == 0)
    assert sink.tries[1] - sink.tries[0] >= 0.29


def test_blocking_waits_and_drops_nothing(tmp_path: Path) -> None:
    sink = Receiver(batch_events=1)
    events = make.alert_events(200)
    with running(sink, overflow="block", queue_events=5) as runner:
        sink.free.clear()
        writer = threading.Thread(target=runner.submit, args=(events,))
        writer.start()
        make.until(lambda: runner.depth == 5)
        assert writer.is_alive()
        sink.free.set()
        writer.join(20)
        runner.mark().result(timeout=10)
    assert keys(sink.events) == keys(events)


def test_events_after_a_mark_are_not_in_what_it_says(tmp_path: Path) -> None:
    with running(JsonLines("log", tmp_path / "log"), tmp_path / "spool", patience=20.0, mark_seconds=20.0) as runner:
        marks = []
        for i in range(50):
            runner.submit(make.alert_events(3, first=3 * i))
            marks.append(runner.mark())
        lengths = [mark.result(timeout=10)["sink"]["length"] for mark in marks]
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    assert lengths == [sum(map(len, lines[: 3 * (i + 1)])) for i in range(50)]


def test_a_rotated_log_is_reopened_by_its_thread(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(JsonLines("log", log)) as runner:
        runner.submit(make.alert_events(1))
        runner.mark().result(timeout=10)
        log.rename(tmp_path / "log.1")
        runner.reopen()
        make.until(log.exists)
        runner.submit(make.alert_events(1, first=1))
    assert b"a-000001" in log.read_bytes()
    assert b"a-000001" not in (tmp_path / "log.1").read_bytes()
