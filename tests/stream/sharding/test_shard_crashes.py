"""Workers that are killed at any moment and resumed on 1, 2 and 4: every record one verdict, and the same alerts."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
import shard_cases as cases
from brokers import redis_broker
from shard_cases import PARTITIONS, ShardsProcess

pytestmark = pytest.mark.system

WORKERS = (2, 1, 4)


def killed_again_and_again(folder: Path, crashes: int, *, hours: float, seed: int) -> None:
    """Feed partitions while workers are killed; every third time all are stopped and resumed on another number of them.

    Every kill has a share of the messages of its own, so that there is work, and kills one worker, so that it ends.
    """
    rng = random.Random(seed)
    table = cases.office(folder, hours=hours, seed=seed)
    sent = cases.messages(table, rows=16)
    expected = cases.alone(sent, cases.settings(warmup=400))
    (folder / "broker").mkdir()
    share = len(sent) // (crashes + 1)
    assert share > 0
    with (
        redis_broker(folder / "broker") as broker,
        ShardsProcess(folder / "c", broker.url, epoch=0.2, warmup=400) as engine,
    ):
        for kill in range(crashes):
            if kill % 3 == 0:
                if kill:
                    engine.stop()
                engine.start(WORKERS[kill // 3 % len(WORKERS)])
            before = engine.judged()
            engine.send(sent[kill * share : (kill + 1) * share])
            if rng.random() < 0.7:  # at work
                engine.until(lambda before=before: engine.judged() > before, "verdict")
                time.sleep(rng.random() * 0.4)
            else:  # while it starts
                engine.until(lambda: engine.workers() != [], "worker")
                time.sleep(rng.random() * 4)
            victims = engine.workers()
            os.kill(rng.choice(victims), signal.SIGKILL)
            engine.until(lambda victims=victims: set(engine.workers()) - set(victims) != set(), "new worker")
        engine.stop()
        engine.send(sent[crashes * share :])
        engine.start(2)
        engine.until(lambda: engine.judged() == len(table), "verdict of every record")
        assert engine.stop() == 0
        verdicts = [engine.received("verdicts", p) for p in range(PARTITIONS)]
        events = [engine.received("events", p) for p in range(PARTITIONS)]
    lines = [json.loads(line) for partition in verdicts for _, body in partition for line in body.splitlines()]
    assert Counter(line["seq"] for line in lines) == Counter(range(len(table)))  # none lost, none twice
    assert verdicts == [cases.by_kind(outputs, "verdicts") for outputs in expected]
    assert events == [cases.by_kind(outputs, "events") for outputs in expected]
    assert sum(1 for partition in events for _ in cases.alerts(partition)) > 10


def test_killed_workers_lose_and_double_nothing(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 3, hours=0.1, seed=3)


@pytest.mark.long
def test_killed_fifty_times(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 50, hours=0.2, seed=4)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_supervisor_gives_up_after_too_many(workers: int, tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    with (
        redis_broker(tmp_path / "broker") as broker,
        ShardsProcess(tmp_path / "c", broker.url) as engine,
    ):
        text = engine.config.read_text().replace("max_restarts = 1000", "max_restarts = 1")
        engine.config.write_text(text)
        engine.start(workers)
        for _ in range(2):
            engine.until(lambda: len(engine.workers()) == workers, "worker")
            victims = engine.workers()
            os.kill(victims[-1], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while set(victims) & set(engine.workers()) and time.monotonic() < deadline:
                time.sleep(0.05)
        assert engine.wait() == 1
        assert "died too often" in engine.log.read_text()
