"""Faults of input: garbage, half records, endless lines, clocks that jump, interfaces that vanish."""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
from pathlib import Path

import pytest
from daemon_cases import (
    Settled,
    Within,
    append,
    attack_lines,
    each_once,
    followed,
    jsonl,
    lines_of,
    open_folders,
    records,
)
from daemon_process import free_port
from namespaces import Link, ip, joined_or_skip, make_again
from needed import need_filters

pytestmark = pytest.mark.system

link = pytest.fixture(joined_or_skip)
open_folder = pytest.fixture(open_folders)

PATIENT = "max_queue_age = 60\nqueue_records = 1000000\n"
"""Nothing is shed, however slow the machine is."""


def send(port: int, *parts: bytes) -> None:
    """A writer that comes, writes and goes; who listens may hang up on it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as writer:
        for part in parts:
            writer.sendall(part)


def peak_kilobytes(daemon: Settled) -> int:
    """The most memory that it ever used."""
    assert daemon.process is not None
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def garbage(seed: int) -> bytes:
    """Bytes of every kind: random ones, long ones without an end, commas and numbers that are no records."""
    rng = random.Random(seed)
    almost = b"\n".join(b",".join(b"%d" % rng.randrange(1 << 70) for _ in range(41)) for _ in range(50))
    return rng.randbytes(200_000) + almost + b"\n" + rng.randbytes(3 << 20).replace(b"\n", b"") + b"\0\xff\n{}\n"


def test_garbage_on_the_socket(tmp_path: Path) -> None:
    """What a good writer sends beside it is judged to the last record, and the garbage is counted."""
    port = free_port()
    lines = attack_lines(tmp_path, 3000).splitlines(keepends=True)
    with Settled(tmp_path / "run", records(f"tcp://127.0.0.1:{port}"), daemon=PATIENT) as running:
        running.ready()
        spoilers = [threading.Thread(target=send, args=(port, garbage(k), b"and half a")) for k in range(6)]
        good = [threading.Thread(target=send, args=(port, *lines[k::3])) for k in range(3)]
        for writer in (*spoilers, *good):
            writer.start()
        for writer in (*spoilers, *good):
            writer.join()
        running.until(lambda: running.judged() == 3000, "the good records")
        assert running.total("netclust_input_errors_total") >= 6
        assert running.total("netclust_records_shed_total") == 0
        send(port, *lines[:10])
        running.until(lambda: running.judged() == 3010, "a writer that comes later")
        assert running.stop() == 0
    assert len(running.verdicts()) == 3010
    assert "Traceback" not in running.text()


def test_a_half_written_record(tmp_path: Path) -> None:
    """It is judged once it is whole, also over a restart; a socket closed in the middle of one gives none."""
    port, feed = free_port(), tmp_path / "feed.txt"
    lines = attack_lines(tmp_path, 30).splitlines(keepends=True)
    feed.write_bytes(b"".join(lines[:10]) + lines[10][:40])
    sources = f'{followed(feed)}[[source]]\nkind = "records"\nname = "net"\npath = "tcp://127.0.0.1:{port}"\n'
    running = Settled(tmp_path / "run", sources, daemon=PATIENT)
    with running:
        running.ready()
        running.until(lambda: running.judged() == 10)
        send(port, lines[0], lines[1], lines[2][:-10])
        running.until(lambda: running.total("netclust_input_errors_total", reason="half_line") == 1, "half a line")
        append(feed, lines[10][40:] + lines[11] + lines[12][:50])
        running.until(lambda: running.judged() == 14)
        assert running.stop() == 0
    with running:
        running.ready()
        append(feed, lines[12][50:] + lines[13])
        running.until(lambda: running.judged() == 2, "the record that was completed")
        assert running.total("netclust_input_errors_total", source="in") == 0
        assert running.stop() == 0
    seen = sorted(line["record"] for line in running.verdicts())
    assert seen == sorted([f"0:{seq}" for seq in range(14)] + ["1:0", "1:1"])


@pytest.mark.parametrize("megabytes", [64, pytest.param(1024, marks=pytest.mark.long)])
def test_a_1_gb_line(megabytes: int, tmp_path: Path) -> None:
    """In a file and on a socket: it costs no memory, and the records behind it are judged."""
    port, feed = free_port(), tmp_path / "feed.txt"
    lines = attack_lines(tmp_path, 100)
    feed.write_bytes(lines)
    sources = f'{followed(feed)}[[source]]\nkind = "records"\nname = "net"\npath = "tcp://127.0.0.1:{port}"\n'
    with Settled(tmp_path / "run", sources, daemon=PATIENT) as running:
        running.ready()
        send(port, lines)
        running.until(lambda: running.judged() == 200)
        before = peak_kilobytes(running)
        piece = b"0123456789,tcp,," * 65536
        for _ in range(megabytes):
            append(feed, piece)
        append(feed, b"\n" + lines)
        send(port, *[piece] * megabytes, b"\n" + lines)
        running.until(lambda: running.judged() == 400, "what is behind the line")
        assert running.total("netclust_input_errors_total", reason="long_line") == 2
        assert peak_kilobytes(running) - before < 32 << 10
        assert running.stop() == 0


def connection(number: int, seconds: float) -> str:
    """A line of Zeek's log: somebody looks through the ports of a host."""
    return json.dumps({
        "ts": seconds, "uid": f"C{number}", "id.orig_h": "10.0.0.66", "id.orig_p": 40000 + number % 20000,
        "id.resp_h": "10.0.0.9", "id.resp_p": 1 + number, "proto": "tcp", "duration": 0.001, "orig_bytes": 0,
        "resp_bytes": 0, "conn_state": "REJ", "missed_bytes": 0, "history": "Sr", "orig_pkts": 1,
        "orig_ip_bytes": 60, "resp_pkts": 1, "resp_ip_bytes": 40,
    }) + "\n"  # fmt: skip


STEPPING_CLOCK = """
import time
real, real_ns, since = time.time, time.time_ns, time.monotonic()
def shift():
    # Two hours back and forth, every half second.
    return (0, 7200, -7200)[int((time.monotonic() - since) / 0.5) % 3]
time.time = lambda: real() + shift()
time.time_ns = lambda: real_ns() + shift() * 10**9
"""


def test_a_clock_step(tmp_path: Path) -> None:
    """Times of records and the daemon's own wall clock jump by hours: nothing stops, nothing is told thousand-fold."""
    log, alerts = tmp_path / "conn.log", tmp_path / "alerts.jsonl"
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(STEPPING_CLOCK)
    source = f'[[source]]\nkind = "zeek"\nname = "in"\npath = "{log}"\nfollow = true\n'
    start, number = 1.7e9, 0
    log.write_bytes(b"")
    running = Settled(tmp_path / "run", source, more=jsonl(alerts))
    running.start(PYTHONPATH=str(tmp_path / "clock"))
    try:
        running.ready()
        for shift in (0, 5 * 3600, -3 * 3600, 0, 86400, 60):
            rows = [connection(number + k, start + shift + k * 0.01) for k in range(300)]
            append(log, "".join(rows).encode())
            number += 300
            running.until(lambda n=number: running.judged() == n, "verdicts")
            good = running.total("netclust_checkpoints_total", result="ok")
            running.until(lambda g=good: running.total("netclust_checkpoints_total", result="ok") > g, "checkpoints")
            assert running.get("/healthz")[0] == 200
        assert running.total("netclust_checkpoints_total", result="failed") == 0
        assert 0 <= running.metrics()["netclust_checkpoint_age_seconds"] < 60
        assert running.total("netclust_verdict_latency_seconds_bucket", le="10.0") == number
        assert running.stop() == 0
    finally:
        running.__exit__()
    assert each_once(running, number)
    assert 1 <= len({line["netclust"]["alert"]["id"] for line in lines_of(alerts)}) <= 20


def test_a_flood_while_the_site_is_learned(tmp_path: Path) -> None:
    """Nothing but known attacks: it learns later instead of ending, also after a restart."""
    feed = tmp_path / "feed.txt"
    flood = [line for line in attack_lines(tmp_path, 3000).splitlines(keepends=True) if b"udp_flood" in line]
    assert len(flood) >= 200
    feed.write_bytes(b"".join(flood[:200]))
    running = Settled(tmp_path / "run", followed(feed), warmup=200)
    with running:
        running.ready()
        running.until(lambda: "the site could not be learned yet" in running.text(), "the notice")
        assert running.status()["warming_up"] is True
        running.kill()
    with running:
        running.ready()
        append(feed, attack_lines(tmp_path, 500, seed=5))
        running.until(lambda: running.status()["warming_up"] is False, "the end of the warm-up")
        running.until(lambda: len(running.verdicts()) == 700, "all of it")
        assert running.stop() == 0
    assert each_once(running, 700)


def test_a_vanished_interface(link: Link, open_folder: Path) -> None:
    """It is waited for, the metric tells, and it is watched again by a daemon that is no longer root."""
    need_filters()
    source = '[[source]]\nkind = "live"\nname = "wire"\ninterfaces = ["vb"]\nbpf = "udp"\n'
    running = Within(link.b, open_folder / "run", source)
    with running:
        running.ready()
        link.send(3)
        running.until(lambda: running.total("netclust_packets_total") == 4, "packets")
        ip("-n", link.b, "link", "del", "vb")
        running.until(lambda: running.total("netclust_source_up") == 0, "the metric")
        assert running.get("/healthz")[0] == 200
        assert "vb" in running.status()["sources"]["wire"]["trouble"]
        make_again(link)
        running.until(lambda: running.total("netclust_source_up") == 1, "the interface")
        link.send(5)
        running.until(lambda: running.total("netclust_packets_total") == 10, "packets of the new one")
        assert running.total("netclust_source_events_total", reason="interface_lost") == 1
        good = running.total("netclust_checkpoints_total", result="ok")
        running.until(lambda: running.total("netclust_checkpoints_total", result="ok") > good, "checkpoints")
        running.signal(signal.SIGTERM)
        assert running.wait(30) == 0
    assert "gave up root" in running.text()
    assert "error" not in running.text()
