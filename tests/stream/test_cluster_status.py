"""`netclust shards status`: what waits and how far shards are, of a cluster that stands or runs; changes nothing."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import cluster_cases as cases
import pytest
from cluster_cases import PARTITIONS, ClusterProcess
from daemon_cases import cli

from netclust.errors import InputError
from netclust.stream.bus.base import Outgoing
from netclust.stream.cluster.recovery import prepare
from netclust.stream.cluster.status import ClusterStatus, cluster_status, plain_state
from netclust.stream.daemon.config import ClusterConfig, Config, load_config, parse_config

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Outgoing]:
    return cases.messages(cases.office(tmp_path_factory.mktemp("office")))[:60]


def by_lane(messages: list[Outgoing]) -> list[int]:
    return [sum(m.lane == lane for m in messages) for lane in range(PARTITIONS)]


def status_of(cluster: ClusterProcess) -> ClusterStatus:
    config = load_config(cluster.config)
    assert config.cluster is not None
    return cluster_status(config, config.cluster)


# Of the whole story one broker is enough each time: what a bus says of its lanes is test_bus_conformance.py's.
@pytest.mark.parametrize(
    "broker",
    ["redis", pytest.param("nats", marks=pytest.mark.long), pytest.param("kafka", marks=pytest.mark.long)],
    indirect=True,
)
def test_what_waits_and_how_far_shards_are(broker: Any, sent: list[Outgoing], tmp_path: Path) -> None:
    half = len(sent) // 2
    with ClusterProcess(tmp_path / "c", broker.url) as cluster:
        cluster.send(sent[:half])
        found = status_of(cluster)
        assert [lane.waiting for lane in found.lanes] == by_lane(sent[:half])
        assert {(lane.position, lane.records_waiting, lane.kept) for lane in found.lanes} == {(None, None, "")}
        assert not (tmp_path / "c" / "recovery").exists()

        assert cluster.start(2, "--until-idle", "2").wait() == 0, cluster.log.read_text()
        cluster.send(sent[half:])
        told = cli("shards", "status", "-c", str(cluster.config), "--json", "-")
        assert told.returncode == 0, told.stderr
        body = json.loads(told.stdout)
        expected = cases.alone(sent[:half], cases.settings())
        assert [lane["waiting"] for lane in body["lanes"]] == by_lane(sent[half:])
        assert [lane["messages"] for lane in body["lanes"]] == by_lane(sent[:half])
        for lane, outputs in zip(body["lanes"], expected, strict=True):
            lines = [json.loads(line) for o in outputs if o.kind == "verdicts" for line in o.body.splitlines()]
            assert lane["records"] == len(lines)
            assert lane["records_waiting"] == round(lane["waiting"] * len(lines) / lane["messages"])
            assert (lane["verdicts"], lane["events"]) == (
                len(cases.by_kind(outputs, "verdicts")),
                len(cases.by_kind(outputs, "events")),
            )
            alerts = {a["event"]["id"] for a in cases.alerts(cases.by_kind(outputs, "events"))}
            assert lane["alerts_open"] <= lane["alerts"] <= len(alerts)
            assert lane["last_time"][:4] == "2024"
            assert lane["kept"] > "2024"
        assert sum(lane["alerts"] for lane in body["lanes"]) > 0
        told_now: set[str] = set()
        for _, event in _campaigns(cluster):
            told_now -= {event["campaign"], *event.get("was", [])}  # one that took in others stands for them
            if event["action"] != "end":
                told_now.add(event["campaign"])
        assert body["campaigns"] == len(told_now)

        cluster.start(1)  # goes on, looked at while it runs
        cluster.until(lambda: not any(lane.waiting for lane in status_of(cluster).lanes), "end of what waits")
        assert cluster.stop() == 0
        expected = cases.alone(sent, cases.settings())
        for p in range(PARTITIONS):
            for kind in ("verdicts", "events"):
                assert cluster.received(kind, p) == cases.by_kind(expected[p], kind), (kind, p)


def _campaigns(cluster: ClusterProcess) -> list[tuple[int, Any]]:
    return [(number, json.loads(body)) for number, body in cluster.received("campaigns", 0)]


def in_memory(folder: Path, partitions: int = 2) -> tuple[Config, ClusterConfig]:
    config = parse_config(
        f'[cluster]\ninput = "memory://{folder.name}/in"\nevents = "memory://{folder.name}/out"\n'
        f'partitions = {partitions}\nrecovery = "{folder}/recovery"\n[model]\npath = "conn"\n'
    )
    assert config.cluster is not None
    return config, config.cluster


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    config, cluster = in_memory(tmp_path)
    store = prepare(Path(cluster.recovery), cluster)
    assert cluster_status(config, cluster).campaigns is None
    with pytest.raises(InputError, match="the state of 2 partitions"):
        cluster_status(*in_memory(tmp_path, partitions=3))
    (store / "part-1.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"part-1\.sqlite3: file is not a database"):
        cluster_status(config, cluster)


class Bomb:
    def __reduce__(self) -> Any:
        return os._exit, (3,)


def test_nothing_that_was_kept_is_run(tmp_path: Path) -> None:
    config, cluster = in_memory(tmp_path)
    store = prepare(Path(cluster.recovery), cluster)
    with sqlite3.connect(store / "part-0.sqlite3") as base:
        row = ("netclust.lanes", "00000", 1, pickle.dumps(Bomb()))
        base.execute("INSERT INTO snaps (step_id, state_key, snap_epoch, ser_change) VALUES (?, ?, ?, ?)", row)
    base.close()
    with pytest.raises(InputError, match="is no position"):
        cluster_status(config, cluster)
    with pytest.raises(InputError, match="cannot be read"):
        plain_state(b"\x80\x04\x8c\xff")
    assert plain_state(pickle.dumps(b"bytes" * 1000)) == b"bytes" * 1000
