"""Workers that are killed at any moment and resumed on 1, 2 and 4: every record one verdict, and the same alerts."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import cluster_cases as cases
import pytest
from brokers import redis_broker
from cluster_cases import PARTITIONS, ClusterProcess

pytestmark = pytest.mark.system

WORKERS = (2, 1, 4)


def killed_again_and_again(folder: Path, crashes: int, *, hours: float, seed: int) -> None:
    """Feed lanes while workers are killed; every third time all are stopped and resumed on another number of them.

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
        ClusterProcess(folder / "c", broker.url, epoch=0.2, warmup=400) as cluster,
    ):
        for kill in range(crashes):
            if kill % 3 == 0:
                if kill:
                    cluster.stop()
                cluster.start(WORKERS[kill // 3 % len(WORKERS)])
            before = cluster.judged()
            cluster.send(sent[kill * share : (kill + 1) * share])
            if rng.random() < 0.7:  # at work
                cluster.until(lambda before=before: cluster.judged() > before, "verdict")
                time.sleep(rng.random() * 0.4)
            else:  # while it starts
                cluster.until(lambda: cluster.workers() != [], "worker")
                time.sleep(rng.random() * 4)
            victims = cluster.workers()
            os.kill(rng.choice(victims), signal.SIGKILL)
            cluster.until(lambda victims=victims: set(cluster.workers()) - set(victims) != set(), "new worker")
        cluster.stop()
        cluster.send(sent[crashes * share :])
        cluster.start(2)
        cluster.until(lambda: cluster.judged() == len(table), "verdict of every record")
        assert cluster.stop() == 0
        verdicts = [cluster.received("verdicts", p) for p in range(PARTITIONS)]
        events = [cluster.received("events", p) for p in range(PARTITIONS)]
    lines = [json.loads(line) for lane in verdicts for _, body in lane for line in body.splitlines()]
    assert Counter(line["seq"] for line in lines) == Counter(range(len(table)))  # none lost, none twice
    assert verdicts == [cases.by_kind(outputs, "verdicts") for outputs in expected]
    assert events == [cases.by_kind(outputs, "events") for outputs in expected]
    assert sum(1 for lane in events for _ in cases.alerts(lane)) > 10


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
        ClusterProcess(tmp_path / "c", broker.url) as cluster,
    ):
        text = cluster.config.read_text().replace("max_restarts = 1000", "max_restarts = 1")
        cluster.config.write_text(text)
        cluster.start(workers)
        for _ in range(2):
            cluster.until(lambda: len(cluster.workers()) == workers, "worker")
            victims = cluster.workers()
            os.kill(victims[-1], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while set(victims) & set(cluster.workers()) and time.monotonic() < deadline:
                time.sleep(0.05)
        assert cluster.wait() == 1
        assert "died too often" in cluster.log.read_text()
