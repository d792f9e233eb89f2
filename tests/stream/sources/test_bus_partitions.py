"""Partitions that are followed: how long a bus that went away is left alone, and where reading continues."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from netclust.stream.bus.base import BusError, Incoming
from netclust.stream.sources import bus_partitions
from netclust.stream.sources.bus_partitions import FIRST_WAIT, LONGEST_WAIT, FollowedPartition, Patience


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(bus_partitions, "time", SimpleNamespace(monotonic=lambda: self.now))

    def wait_of(self, patience: Patience) -> float:
        """Seconds until the bus may be asked again, to a hundredth; the clock then stands there."""
        began = self.now
        while patience.pauses(0.0):
            self.now += 0.01
        return round(self.now - began, 2)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_waits_double_up_to_the_longest_and_start_again_once_the_bus_works(clock: Clock) -> None:
    patience = Patience(Counter())
    assert clock.wait_of(patience) == 0.0  # nothing went wrong yet
    waits = []
    for _ in range(8):
        patience.failed(BusError("gone"))
        waits.append(clock.wait_of(patience))
    assert waits == pytest.approx([0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0], abs=0.02)
    assert (FIRST_WAIT, LONGEST_WAIT) == (0.25, 5.0)
    patience.works()
    assert clock.wait_of(patience) == 0.0
    patience.failed(BusError("gone"))
    assert clock.wait_of(patience) == pytest.approx(0.25, abs=0.02)


def test_a_bus_that_works_again_is_asked_at_once(clock: Clock) -> None:
    patience = Patience(Counter())
    patience.failed(BusError("gone"))
    assert patience.pauses(0.0)
    patience.works()
    assert not patience.pauses(0.0)


def test_each_failure_is_counted_and_named_until_the_bus_works() -> None:
    patience = Patience(Counter())
    patience.failed(BusError("no route to host"))
    assert patience.trouble == "no route to host"
    patience.failed(TimeoutError())
    assert patience.trouble == "TimeoutError"
    assert patience.counters["unreachable"] == 2
    patience.works()
    assert patience.trouble == ""


def test_a_pause_ends_early_when_the_source_is_stopped() -> None:
    patience = Patience(Counter())
    patience.failed(BusError("gone"))
    patience.stopped.set()
    assert patience.pauses(3600.0)  # returns at once: an event that is set is not waited for


class Flaky:
    """A reader that fails when it is told to, and counts what it lost."""

    def __init__(self) -> None:
        self.opened: list[str | None] = []
        self.waiting: list[Incoming] = []
        self.fails = False
        self.lost = 0
        self.closed = False

    def open(self, position: str | None) -> None:
        if self.fails:
            raise BusError("away")
        self.opened.append(position)

    def take(self, timeout: float, most: int) -> list[Incoming]:
        if self.fails:
            raise BusError("away")
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        return taken

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Flaky:
    flaky = Flaky()
    monkeypatch.setattr(bus_partitions, "open_reader", lambda url, partition: flaky)
    return flaky


def message(position: str) -> Incoming:
    return Incoming(position=position, body=b"line")


def test_a_lane_is_opened_again_behind_the_last_message(clock: Clock, reader: Flaky) -> None:
    patience = Patience(Counter())
    partition = FollowedPartition("memory://any/lines", 0, patience)
    partition.begin("7")
    reader.waiting = [message("8"), message("9"), message("10")]
    assert [m.position for m in partition.take(0.0, 2)] == ["8", "9"]
    assert (partition.position, reader.opened) == ("9", ["7"])
    reader.fails = True
    assert partition.take(0.0, 2) == []
    assert partition.position == "9"
    reader.fails = False
    assert partition.take(0.0, 2) == []  # too early
    assert reader.opened == ["7"]
    clock.now += FIRST_WAIT
    assert [m.position for m in partition.take(0.0, 2)] == ["10"]
    assert reader.opened == ["7", "9"]
    assert partition.take(0.0, 2) == []
    assert partition.position == "10"
    assert reader.opened == ["7", "9"]  # a partition that works stays open
    partition.close()
    assert reader.closed


def test_lost_messages_are_counted_once(clock: Clock, reader: Flaky) -> None:
    patience = Patience(Counter())
    partition = FollowedPartition("memory://any/lines", 0, patience)
    partition.begin(None)
    for lost, counted in ((0, 0), (3, 3), (3, 3), (5, 5)):
        reader.lost = lost
        partition.take(0.0, 1)
        assert patience.counters["lost_position"] == counted
