"""Killed at any moment, the daemon goes on: no record is lost or judged twice, and its logs are those of one run."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
from daemon_process import DaemonProcess

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.datasets.simulators.simulate import simulate

pytestmark = pytest.mark.system

LONG = bool(os.environ.get("NETCLUST_LONG"))
KILLS = 200 if LONG else 6


def configuration(folder: Path, source: str) -> str:
    return f"""
{source}
[warmup]
records = 600
references = 300
[verdicts]
path = "{folder}/verdicts.jsonl"
which = "all"
[[sink]]
kind = "jsonl"
path = "{folder}/alerts.jsonl"
"""


def whole_run(folder: Path, source: str) -> tuple[bytes, bytes]:
    daemon = DaemonProcess(folder, configuration(folder, source)).start()
    assert daemon.wait() == 0, daemon.text()[-3000:]
    return (folder / "verdicts.jsonl").read_bytes(), (folder / "alerts.jsonl").read_bytes()


def killed_run(folder: Path, source: str, kills: int, seed: int) -> tuple[bytes, bytes, int]:
    """The same, killed at random moments of ingestion, reload and checkpoint; how often it was killed."""
    rng = random.Random(seed)
    daemon = DaemonProcess(folder, configuration(folder, source))
    verdicts = folder / "verdicts.jsonl"
    done = 0
    while True:
        before = verdicts.stat().st_size if verdicts.exists() else 0
        daemon.start()
        if done < kills:
            # From the first line of this run on, or while it starts; sometimes in a reload.
            if rng.random() < 0.8:
                while daemon.process.poll() is None and (not verdicts.exists() or verdicts.stat().st_size == before):
                    time.sleep(0.005)
            time.sleep(rng.random() * 0.5)
            if rng.random() < 0.3 and daemon.process.poll() is None:
                daemon.signal(signal.SIGHUP)
                time.sleep(rng.random() * 0.05)
            if daemon.process.poll() is None:
                daemon.kill()
            if daemon.process.returncode < 0:  # also by a HUP so early that nothing could catch it
                done += 1
                continue
        assert daemon.wait() == 0, daemon.text()[-3000:]
        return verdicts.read_bytes(), (folder / "alerts.jsonl").read_bytes(), done


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    simulate_capture(folder / "day.pcap", labels=folder / "day.csv", hours=6.0 if LONG else 0.5, seed=5, attacks="all")
    return folder / "day.pcap"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kills") / "day.txt"
    simulate(400_000 if LONG else 30_000, seed=6).write(path)
    return path


@pytest.mark.parametrize("kind", ["capture", "records"])
def test_kill_9_at_any_moment_changes_no_verdict_and_no_alert(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = request.getfixturevalue(kind)
    source = f'[[source]]\nkind = "{kind}"\npath = "{path}"\n'
    expected = whole_run(tmp_path / "whole", source)
    verdicts, alerts, kills = killed_run(tmp_path / "killed", source, KILLS // 2, seed=1)
    assert kills > 0
    assert verdicts == expected[0]
    assert alerts == expected[1]
    if LONG:
        sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
        from common import save

        lines = {"verdicts": verdicts.count(b"\n"), "alert_lines": alerts.count(b"\n")}
        save(f"kills-{kind}", {"kills": kills, "same_verdicts_and_alerts": True, **lines})
