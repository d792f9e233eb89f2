"""A file sink whose process is killed at any time, with a sink that often fails: each event is there once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sink_events as make
from needed import need_program, need_root

from netclust.stream.alerts.alert_events import Notice
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.jsonl import JsonLines
from netclust.stream.sinks.runner import SinkRunner

pytestmark = pytest.mark.system

CHILD = """
import json, random, resource, signal, sys, time
from pathlib import Path
from netclust.foundation.container import write_container_bytes
from netclust.stream.alerts.alert_events import Notice
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.jsonl import JsonLines
from netclust.stream.sinks.runner import SinkRunner

folder, count, room = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
if room:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))


class Flaky(JsonLines):
    def write(self, events):
        if random.random() < 0.3:
            raise SinkError("now and then")
        super().write(events)


state_file, previous = folder / "state.json", folder / "previous.json"
if previous.exists() and random.random() < 0.3:  # as if the newest checkpoint were corrupt
    state_file.unlink(missing_ok=True)
found = [f for f in (state_file, previous) if f.exists()]
state = json.loads(found[0].read_text()) if found else {"next": 0, "facts": None}


def save(number, facts):
    if state_file.exists():
        state_file.rename(previous)
    write_container_bytes(state_file, json.dumps({"next": number, "facts": facts}).encode())


runner = SinkRunner(Flaky("log", folder / "log"), queue_events=5, spool_path=folder / "spool", spool_bytes=1 << 20,
                    first_wait=0.002, longest_wait=0.01, patience=0.01)
runner.open(state["facts"])
if not found:  # a file is cut back to a checkpoint: there must be one before the first event
    save(0, runner.mark().result(timeout=20))
print("ready", flush=True)
number = state["next"]
while number < count:
    for _ in range(random.randrange(1, 6)):
        runner.submit([Notice(topic="drift", time=number, key=f"n-{number}", message="x" * 200)])
        number += 1
    try:
        facts = runner.mark().result(timeout=20)
    except SinkError:
        if room:
            continue
        raise
    save(number, facts)
    print(number, flush=True)
if room:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
save(number, runner.mark().result(timeout=20))
while runner.pending:
    time.sleep(0.01)
runner.close(20.0)
print(json.dumps(runner.counters), flush=True)
"""


def start(folder: Path, count: int, room: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), str(count), str(room)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told(folder: Path) -> list[int]:
    return [int(json.loads(line)["event"]["id"][2:]) for line in (folder / "log").read_text().splitlines()]


def test_killed_at_any_time_no_event_is_lost_or_there_twice(tmp_path: Path) -> None:
    chance = random.Random()
    for _ in range(8):
        child = start(tmp_path, 10**9)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.0, 0.4))
        child.kill()
        child.communicate()
    saved = [json.loads(f.read_text())["next"] for f in tmp_path.glob("*.json")]
    last = start(tmp_path, max(saved, default=0) + 50)
    output, _ = last.communicate(timeout=60)
    assert last.returncode == 0, output
    found = told(tmp_path)
    assert len(found) > 50
    assert found == list(range(len(found)))


def test_full_disk_for_the_log_loses_nothing_that_the_spool_holds(tmp_path: Path) -> None:
    child = start(tmp_path, 400, room=20_000)  # bytes of any one file
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0, output
    found = told(tmp_path)
    assert found == list(range(len(found)))
    assert len(found) >= 400


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    need_root("to mount a small file system")
    need_program("mount")
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system: this machine's root lacks it")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk_for_log_and_spool_leaves_whole_lines_and_counts_what_is_lost(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(160_000))
    sink = JsonLines("log", small_disk / "log")
    runner = SinkRunner(
        sink, queue_events=10, spool_path=small_disk / "spool", first_wait=0.01, longest_wait=0.02, mark_seconds=0.3
    )
    runner.open(None)
    for number in range(1000):
        runner.submit([Notice(topic="drift", time=number, key=f"n-{number}", message="x" * 200)])
        if number % 20 == 0:
            time.sleep(0.01)
    make.until(lambda: runner.depth <= 10)
    assert "No space left" in runner.trouble
    with pytest.raises(SinkError):
        runner.mark().result(timeout=20)
    assert runner.counters["dropped"] > 0
    told(small_disk)  # whole lines
    filler.unlink()
    (small_disk / "log").rename(small_disk / "log.1")
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    make.until(lambda: runner.pending == 0)
    runner.mark().result(timeout=20)
    runner.close(5.0)
    found = [int(json.loads(line)["event"]["id"][2:]) for line in (small_disk / "log.1").read_text().splitlines()]
    assert found == sorted(set(found))
    assert found[-1] == 999
    assert len(found) + runner.counters["dropped"] + runner.counters["spool_dropped"] == 1000
