"""Queues between readers and linker: bounded, in order, nothing lost from what waits, nothing late from what cannot."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.stream.daemon.notify import Notifier
from netclust.stream.daemon.queues import SLICE_RECORDS, Inbox
from netclust.stream.sources.base import MemorySource

TABLE = simulate(5000, seed=1).table()


def drain(inbox: Inbox) -> list[tuple[int, int, bool]]:
    """(source, records, has a state) of every arrival, until all have ended."""
    found = []
    while not inbox.finished:
        got = inbox.get(timeout=0.2)
        if got is not None:
            found.append((got[0], len(got[1].table), got[1].state is not None))
    return found


def test_a_long_arrival_is_cut_and_its_state_belongs_to_the_last_piece() -> None:
    inbox = Inbox([MemorySource("a", TABLE.schema, [TABLE])], records=100_000, seconds=10)
    inbox.start()
    found = [piece for piece in drain(inbox) if piece[1]]
    assert [n for _, n, _ in found] == [SLICE_RECORDS, SLICE_RECORDS, 5000 - 2 * SLICE_RECORDS]
    assert [state for *_, state in found] == [False, False, True]


def test_a_source_that_can_wait_waits_and_gives_everything_in_order() -> None:
    source = MemorySource("a", TABLE.schema, [TABLE[k : k + 100] for k in range(0, 5000, 100)])
    inbox = Inbox([source], records=250, seconds=0.01)
    inbox.start()
    seqs = []
    while not inbox.finished:
        time.sleep(0.001)
        got = inbox.get(timeout=0.2)
        assert inbox.queues[0].records <= 250
        if got is not None:
            seqs.append(got[1].table.seq)
    assert np.concatenate(seqs).tolist() == list(range(5000))


def test_what_cannot_wait_is_dropped_and_counted_and_never_late() -> None:
    source = MemorySource("a", TABLE.schema, [TABLE[k : k + 100] for k in range(0, 5000, 100)], sheds=True)
    inbox = Inbox([source], records=250, seconds=10)
    inbox.start()
    while not inbox.queues[0].ended:
        time.sleep(0.01)
    taken = sum(n for _, n, _ in drain(inbox))
    assert taken == 200
    assert inbox.queues[0].counters["late"] == 4800


def test_sources_take_turns_and_a_busy_one_does_not_starve_the_others() -> None:
    busy = MemorySource("busy", TABLE.schema, [TABLE[k : k + 10] for k in range(0, 5000, 10)])
    calm = MemorySource("calm", TABLE.schema, [TABLE[:10]])
    inbox = Inbox([busy, calm], records=200, seconds=10)
    inbox.start()
    while len(inbox.queues[0].arrivals) < 5 or not inbox.queues[1].arrivals:
        time.sleep(0.001)
    first = [inbox.get(timeout=1) for _ in range(4)]
    assert 1 in [number for number, _ in first if number is not None]
    inbox.stop(deadline=10)


def test_a_held_source_is_not_taken_from_until_it_is_released() -> None:
    inbox = Inbox([MemorySource("a", TABLE.schema, [TABLE[:10]])], records=100, seconds=10)
    inbox.pause(0)
    inbox.start()
    assert inbox.get(timeout=0.3) is None
    inbox.resume()
    assert inbox.get(timeout=5) is not None


def test_stopping_does_not_wait_for_a_reader_whose_queue_is_full() -> None:
    source = MemorySource("a", TABLE.schema, [TABLE[:100], TABLE[100:200], TABLE[200:300]])
    inbox = Inbox([source], records=100, seconds=10)
    inbox.start()
    while not inbox.queues[0].records:
        time.sleep(0.01)
    assert inbox.stop(deadline=10)
    assert inbox.queues[0].records == 0


def test_the_watchdog_is_fed_twice_as_often_as_systemd_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "400000")
        notifier = Notifier()
        began = time.monotonic()
        while time.monotonic() - began < 1.0:
            notifier.alive()
            time.sleep(0.01)
        got = []
        sock.setblocking(False)
        try:
            while True:
                got.append(sock.recv(100))
        except BlockingIOError:
            pass
    assert set(got) == {b"WATCHDOG=1"}
    assert 3 <= len(got) <= 6


def test_nothing_is_left_running_when_all_have_stopped() -> None:
    before = threading.active_count()
    inbox = Inbox([MemorySource("a", TABLE.schema, [], ended=False)], records=10, seconds=1)
    inbox.start()
    assert inbox.stop(deadline=10)
    assert threading.active_count() == before
