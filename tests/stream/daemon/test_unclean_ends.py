"""Daemons whose sources cannot be read again, killed again and again: they start, and number every record once."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from daemon_cases import Settled, Within, attack_lines, jsonl, lines_of, open_folders, records
from daemon_process import free_port
from namespaces import Link, inside, ip, joined_or_skip
from needed import need_filters

from netclust.datasets.simulators.capture_simulator import simulate_capture

pytestmark = pytest.mark.system

link = pytest.fixture(joined_or_skip)
open_folder = pytest.fixture(open_folders)

KILLS = 10
PATIENT = "max_queue_age = 60\nqueue_records = 1000000\n"


class Numbers:
    """The verdicts that were ever written, by record: what is lost does not come again, so no log is cut back."""

    def __init__(self, daemon: Settled) -> None:
        self._daemon = daemon
        self._seen: dict[str, dict[str, Any]] = {}

    def look(self) -> int:
        """Read the log; how many records have a verdict so far. No number has ever stood for two records."""
        lines = self._daemon.verdicts()
        assert len({line["record"] for line in lines}) == len(lines)
        assert self._seen == {line["record"]: line for line in lines[: len(self._seen)]}
        self._seen = {line["record"]: line for line in lines}
        return len(self._seen)

    def epochs(self) -> list[int]:
        """The epochs of all numbers, in order."""
        return sorted({int(record.partition(":")[2]) >> 32 for record in self._seen})


def killed_ten_times(
    daemon: Settled, name: str, feed: Callable[[int], object], killed: Callable[[], object] = lambda: None
) -> Numbers:
    """Start it, feed it, kill it, ten times; each start comes up, and judges. It runs in the end."""
    numbers = Numbers(daemon)
    for run in range(KILLS + 1):
        daemon.start()
        daemon.ready()
        assert daemon.total("netclust_source_gaps_total", source=name) == run
        assert daemon.total("netclust_source_states_refused_total", source=name) == 0
        before = numbers.look()
        feed(run)
        daemon.until(lambda before=before: numbers.look() > before, "verdicts")
        if run % 3 == 1:  # also behind a checkpoint of this run
            good = daemon.total("netclust_checkpoints_total", result="ok")
            daemon.until(
                lambda good=good: daemon.total("netclust_checkpoints_total", result="ok") > good, "a checkpoint"
            )
            numbers.look()
        if run < KILLS:
            daemon.kill()
            killed()
            numbers.look()
    assert daemon.total("netclust_source_gap_seconds_total", source=name) > 0
    assert daemon.text().count("a source continues with a gap") == KILLS
    assert f"source={name} since=20" in daemon.text()
    return numbers


def send(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as writer:
        writer.sendall(data)


def test_a_socket_source_starts_after_ten_kills(tmp_path: Path) -> None:
    port = free_port()
    lines = attack_lines(tmp_path, 2200).splitlines(keepends=True)
    alerts = tmp_path / "alerts.jsonl"
    kept = [b""]

    def feed(run: int) -> None:
        assert alerts.read_bytes().startswith(kept[-1])  # no alert is taken back
        send(port, b"".join(lines[run * 200 : run * 200 + 200]))

    running = Settled(tmp_path / "run", records(f"tcp://127.0.0.1:{port}"), more=jsonl(alerts), daemon=PATIENT)
    try:
        numbers = killed_ten_times(running, "in", feed, lambda: kept.append(alerts.read_bytes()))
        running.until(lambda: running.judged() == 200, "all of the last run")
        assert running.stop() == 0
    finally:
        running.__exit__()
    numbers.look()
    assert numbers.epochs() == list(range(KILLS + 1))
    told = [line["netclust"]["alert"]["last_record"] for line in lines_of(alerts)]
    assert int(told[-1].partition(":")[2]) >> 32 == KILLS  # alerts continue in the last run
    running.start()
    try:
        running.ready()
        assert running.total("netclust_source_gaps_total") == KILLS  # it has ended in order
        assert running.stop() == 0
    finally:
        running.__exit__()


def test_a_live_source_starts_after_ten_kills(link: Link, open_folder: Path) -> None:
    need_filters()
    source = '[[source]]\nkind = "live"\nname = "wire"\ninterfaces = ["vb"]\nbpf = "udp or tcp"\n'
    running = Within(link.b, open_folder / "run", source)

    def talk(run: int) -> None:
        """Connections that are refused at once, and one that stays open."""
        for port in range(20):
            with inside(link.a, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as sock:
                assert sock.connect_ex(("10.77.0.2", 2000 + 100 * run + port))
        link.send(3)

    try:
        numbers = killed_ten_times(running, "wire", talk)
        assert running.stop() == 0
    finally:
        running.__exit__()
    numbers.look()
    assert numbers.epochs() == list(range(KILLS + 1))


@contextmanager
def written_to(fifo: Path, data: bytes) -> Iterator[None]:
    """A writer of a named pipe, which stays there."""

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(fifo, "wb", buffering=0) as pipe:
            pipe.write(data)
            left.wait()

    left = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        left.set()
        writer.join()


def test_a_piped_capture_starts_after_ten_kills(tmp_path: Path) -> None:
    fifo = tmp_path / "packets"
    os.mkfifo(fifo)
    source = f'[[source]]\nkind = "capture"\nname = "pipe"\npath = "{fifo}"\n'
    running = Settled(tmp_path / "run", source)
    with contextlib.ExitStack() as writers:

        def pipe(run: int) -> None:
            path = tmp_path / f"{run}.pcap"
            simulate_capture(path, hours=0.02, hosts=10, attacks="syn_flood", start=f"2026-01-{run + 1:02}T08:00:00Z")
            writers.enter_context(written_to(fifo, path.read_bytes()))

        try:
            numbers = killed_ten_times(running, "pipe", pipe, writers.close)
            assert running.stop() == 0
        finally:
            running.__exit__()
            writers.close()
    numbers.look()
    assert numbers.epochs() == list(range(KILLS + 1))


def test_a_live_source_starts_while_its_interface_is_away(link: Link, open_folder: Path) -> None:
    """As after a power cut: nothing says that a link must be up before the daemon."""
    source = '[[source]]\nkind = "live"\nname = "wire"\ninterfaces = ["vb"]\n'
    running = Within(link.b, open_folder / "run", source)
    with running:
        running.ready()
        running.kill()
    ip("-n", link.b, "link", "set", "vb", "down")
    with running:
        running.ready()
        assert running.total("netclust_source_up") == 0
        running.until(lambda: "source wire does not work" in running.text(), "the log")
        ip("-n", link.b, "link", "set", "vb", "up")
        running.until(lambda: running.total("netclust_source_up") == 1, "the interface")
        running.kill()
    running.settle(source=source.replace('["vb"]', '["lo"]'))  # other interfaces than those of the state
    with running:
        running.ready()
        assert running.total("netclust_source_gaps_total") == 2
        assert running.stop() == 0
