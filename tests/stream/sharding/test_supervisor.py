"""Workers that are told to stop before all have begun, and processes that lose another: they end, and say how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import shard_cases as cases
from brokers import redis_broker
from shard_cases import ShardsProcess

from netclust.stream.sharding.supervisor import free_ports

pytestmark = pytest.mark.system


@pytest.mark.parametrize("late", [0, 1])
def test_a_stop_does_not_wait_for_a_worker_that_never_began(late: int, tmp_path: Path) -> None:
    """The other one has no ear for signals until they have found each other."""
    more = "[daemon]\nstop_seconds = 300.0\n"
    with ShardsProcess(tmp_path, lambda topic: f"memory://here/{topic}", more) as engine:
        engine.start(2)
        engine.until(lambda: len(engine.workers()) == 2, "workers")
        held = engine.workers()[late]
        os.kill(held, signal.SIGSTOP)
        engine.until(lambda: "worker begins" in engine.log.read_text(), "begin of the other one")
        assert engine.process is not None
        engine.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # both are told
        os.kill(held, signal.SIGCONT)
        assert engine.wait() == 0, engine.log.read_text()
        assert "did not stop in time" not in engine.log.read_text()


def test_a_process_that_loses_another_ends_with_1(tmp_path: Path) -> None:
    """As whoever starts it again is told. With work under way: threads are then at any place."""
    sent = cases.messages(cases.office(tmp_path), rows=4)
    (tmp_path / "broker").mkdir()
    with redis_broker(tmp_path / "broker") as broker:
        engine = ShardsProcess(tmp_path / "c", broker.url)
        engine.send(sent)
        addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(3))
        words = [sys.executable, "-m", "netclust", "shards", "run", "-c", str(engine.config)]
        with engine.log.open("wb") as log:
            processes = [
                subprocess.Popen([*words, "--process-id", str(i), "--addresses", addresses], stdout=log, stderr=log)
                for i in range(3)
            ]
        try:
            deadline = time.monotonic() + cases.PATIENCE
            while not engine.judged() and time.monotonic() < deadline:
                time.sleep(0.05)
            processes[1].kill()
            assert [process.wait(60) for process in processes] == [1, -signal.SIGKILL, 1], engine.log.read_text()
        finally:
            for process in processes:
                process.kill()
                process.wait()
