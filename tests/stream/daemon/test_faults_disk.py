"""Faults of disks: full, unwritable, read-only, corrupt. Detection goes on, and nothing is lost that need not be."""

from __future__ import annotations

import errno
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_cases import Settled, append, attack_lines, each_once, followed, jsonl, lines_of, mounted, records
from needed import need_root

from netclust.datasets.simulators.simulate import simulate
from netclust.stream.store.store import Store

pytestmark = pytest.mark.system


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB."""
    need_root("to mount a small file system")
    try:
        disk = mounted(tmp_path / "disk", "-o", "size=24m")
        folder = disk.__enter__()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the right to mount a small file system: this machine's root lacks it ({error})")
    try:
        yield folder
    finally:
        disk.__exit__(None, None, None)


def fill(folder: Path) -> Path:
    """A file that leaves no room for any other."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return ballast


def test_full_disk(small_disk: Path, tmp_path: Path) -> None:
    """Checkpoints fail and are counted, verdicts go on; with room again all is caught up."""
    feed, alerts = tmp_path / "feed.txt", tmp_path / "alerts.jsonl"
    feed.write_bytes(attack_lines(tmp_path, 500, seed=1))
    daemon = f'state_dir = "{small_disk}/state"\n'
    with Settled(tmp_path / "run", followed(feed), daemon=daemon, more=jsonl(alerts)) as running:
        running.ready()
        running.until(lambda: running.judged() == 500)
        ballast = fill(small_disk)
        running.until(lambda: running.total("netclust_checkpoints_total", result="failed") >= 2, "failures")
        assert "No space left" in running.text()
        append(feed, attack_lines(tmp_path, 1500, seed=2))
        running.until(lambda: running.judged() == 2000, "verdicts on a full disk")
        assert running.get("/healthz")[0] == 200
        append(feed, attack_lines(tmp_path, 100, seed=3))
        running.until(lambda: running.judged() == 2100, "more verdicts")
        ballast.unlink()
        good = running.total("netclust_checkpoints_total", result="ok")
        running.until(lambda: running.total("netclust_checkpoints_total", result="ok") > good, "a checkpoint again")
        told = {line["netclust"]["alert"]["id"] for line in lines_of(alerts)}
        with Store(small_disk / "state" / "netclust.db", read_only=True) as store:
            running.until(lambda: {a.id for a in store.alerts(limit=1000)} >= told, "alerts in the store")
        assert running.stop() == 0
    assert each_once(running, 2100)
    assert len(told) > 3


def test_unwritable_log(small_disk: Path, tmp_path: Path) -> None:
    """Logs on a full disk: their lines wait, outlive a kill, and are written once when there is room."""
    feed, alerts = tmp_path / "feed.txt", small_disk / "alerts.jsonl"
    verdicts = f'[verdicts]\npath = "{small_disk}/verdicts.jsonl"\nwhich = "all"\n'
    feed.write_bytes(attack_lines(tmp_path, 300, seed=1))
    running = Settled(tmp_path / "run", followed(feed), more=verdicts + jsonl(alerts))
    with running:
        running.ready()
        running.until(lambda: running.judged() == 300)
        ballast = fill(small_disk)
        append(feed, attack_lines(tmp_path, 1500, seed=2))
        running.until(lambda: running.judged() == 1800, "verdicts")
        running.until(lambda: running.total("netclust_sink_errors_total", sink="verdicts"), "verdicts counted")
        running.until(lambda: running.total("netclust_sink_errors_total", sink="file"), "alerts counted")
        assert set(running.status()["troubles"]) >= {"verdicts", "file"}
        before = len(lines_of(small_disk / "verdicts.jsonl"))
        assert before < 1800
        checkpoints = running.total("netclust_checkpoints_total")
        running.until(lambda: running.total("netclust_checkpoints_total") >= checkpoints + 2)
        running.kill()
    ballast.unlink()
    with running:
        running.ready()
        append(feed, attack_lines(tmp_path, 100, seed=3))
        running.until(lambda: len(lines_of(small_disk / "verdicts.jsonl")) >= 1900, "all verdicts")
        assert running.stop() == 0
    seen = [line["record"] for line in lines_of(small_disk / "verdicts.jsonl")]
    assert seen == [f"0:{seq}" for seq in range(1900)]
    events = [line["event"]["id"] for line in lines_of(alerts)]
    assert len(events) == len(set(events)) > 3


def test_a_log_that_cannot_be_reopened(tmp_path: Path) -> None:
    """A folder stands where the log should be: the old file stays in use until there is room for a new one."""
    feed, alerts = tmp_path / "feed.txt", tmp_path / "alerts.jsonl"
    feed.write_bytes(attack_lines(tmp_path, 300, seed=1))
    with Settled(tmp_path / "run", followed(feed), more=jsonl(alerts)) as running:
        running.ready()
        running.until(lambda: running.judged() == 300)
        logs = (alerts, running.verdict_log)
        for path in logs:
            path.rename(f"{path}.1")
            path.mkdir()
        running.signal(signal.SIGUSR1)
        running.until(lambda: set(running.status()["troubles"]) >= {"verdicts", "file"}, "trouble told")
        append(feed, attack_lines(tmp_path, 300, seed=2))
        running.until(lambda: len(lines_of(Path(f"{running.verdict_log}.1"))) == 600, "the old log")
        for path in logs:
            path.rmdir()
        running.signal(signal.SIGUSR1)
        running.until(lambda: all(path.is_file() for path in logs), "new logs")
        append(feed, attack_lines(tmp_path, 300, seed=3))
        running.until(lambda: len(running.verdicts()) == 300, "the new log")
        running.until(lambda: not running.status()["troubles"], "no trouble")
        assert running.stop() == 0


def test_a_log_device_that_is_always_full(tmp_path: Path) -> None:
    feed = tmp_path / "feed.txt"
    feed.write_bytes(attack_lines(tmp_path, 1500))
    logs = (
        '[verdicts]\npath = "/dev/full"\nwhich = "all"\n[[sink]]\nkind = "jsonl"\nname = "file"\npath = "/dev/full"\n'
    )
    with Settled(tmp_path / "run", followed(feed), more=logs, daemon="shutdown_timeout = 4\n") as running:
        running.ready()
        running.until(lambda: running.judged() == 1500)
        running.until(lambda: running.total("netclust_sink_errors_total", sink="verdicts"))
        running.until(lambda: running.total("netclust_checkpoints_total", result="ok") > 1, "checkpoints all the same")
        running.signal(signal.SIGTERM)
        assert running.wait(20) == 0


def test_a_corrupt_newest_checkpoint(tmp_path: Path) -> None:
    """Bytes flipped: the one before is used, and the logs are those of one run."""
    day = tmp_path / "day.txt"
    simulate(60_000, seed=6).write(day)
    whole = Settled(tmp_path / "whole", records(str(day)), more=jsonl(tmp_path / "whole.jsonl"), warmup=600)
    assert whole.run_to_end() == 0, whole.text()
    daemon = "checkpoint_seconds = 0.1\n"
    cut = Settled(tmp_path / "cut", records(str(day)), more=jsonl(tmp_path / "cut.jsonl"), warmup=600, daemon=daemon)
    with cut:
        cut.until(lambda: len(list(cut.state.glob("checkpoint-*"))) == 2 and cut.verdicts()[5000:], "checkpoints")
        cut.kill()
    newest = max(cut.state.glob("checkpoint-*.netclust"))
    damaged = bytearray(newest.read_bytes())
    for at in range(100, len(damaged), 997):
        damaged[at] ^= 0x55
    newest.write_bytes(damaged)
    assert cut.run_to_end() == 0, cut.text()
    assert "a checkpoint cannot be used, an older one is tried" in cut.text()
    assert "goes on after record" in cut.text()
    assert cut.verdict_log.read_bytes() == whole.verdict_log.read_bytes()
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_corrupt_sqlite(tmp_path: Path) -> None:
    """Spoiled while it runs: detection goes on. At the next start the file is set aside and a new one begun."""
    feed = tmp_path / "feed.txt"
    feed.write_bytes(attack_lines(tmp_path, 500))
    running = Settled(tmp_path / "run", followed(feed))
    database = running.state / "netclust.db"
    with running:
        running.ready()
        running.until(lambda: running.judged() == 500)
        with database.open("r+b") as file:
            file.write(b"\xa5" * max(database.stat().st_size, 65536))
        append(feed, attack_lines(tmp_path, 500, seed=3))
        running.until(lambda: running.judged() == 1000, "verdicts")
        assert running.get("/healthz")[0] == 200
        assert running.stop() == 0
    database.write_bytes(b"SQLite format 3\0" + b"\xa5" * 65536)
    with running:
        running.ready()
        append(feed, attack_lines(tmp_path, 500, seed=4))
        running.until(lambda: running.judged() == 500, "verdicts after the restart")
        assert running.stop() == 0
    assert "the store is corrupt: a new one is begun" in running.text()
    assert list(running.state.glob("netclust.db*damaged*"))
    assert each_once(running, 1500)
    with Store(database, read_only=True) as store:
        assert store.alerts(limit=10)


def test_read_only_state_folder(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "state").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    feed = tmp_path / "feed.txt"
    feed.write_bytes(b"")
    refused = Settled(tmp_path / "run", followed(feed), daemon=f'state_dir = "{small_disk}/state"\n')
    assert refused.run_to_end() == 2
    assert "Read-only file system: set daemon.state_dir" in refused.text()
    assert "Traceback" not in refused.text()
