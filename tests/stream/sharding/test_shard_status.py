"""`netclust shards status`: what waits and how far shards are, of a cluster that stands or runs; changes nothing."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import shard_cases as cases
from daemon_cases import cli
from shard_cases import PARTITIONS, ShardsProcess

from netclust.errors import InputError
from netclust.stream.bus.base import Outgoing
from netclust.stream.config import Config, ShardingConfig, load_config, parse_config
from netclust.stream.sharding.recovery import prepare_recovery
from netclust.stream.sharding.status import ShardingStatus, plain_state, sharding_status

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Outgoing]:
    return cases.messages(cases.office(tmp_path_factory.mktemp("office")))[:60]


def by_partition(messages: list[Outgoing]) -> list[int]:
    return [sum(m.partition == partition for m in messages) for partition in range(PARTITIONS)]


def status_of(engine: ShardsProcess) -> ShardingStatus:
    config = load_config(engine.config)
    assert config.sharding is not None
    return sharding_status(config, config.sharding)


# Of the whole story one broker is enough each time: what a bus says of its partitions is test_bus_conformance.py's.
@pytest.mark.parametrize(
    "broker",
    ["redis", pytest.param("nats", marks=pytest.mark.long), pytest.param("kafka", marks=pytest.mark.long)],
    indirect=True,
)
def test_what_waits_and_how_far_shards_are(broker: Any, sent: list[Outgoing], tmp_path: Path) -> None:
    half = len(sent) // 2
    with ShardsProcess(tmp_path / "c", broker.url) as engine:
        engine.send(sent[:half])
        found = status_of(engine)
        assert [partition.waiting for partition in found.partition_statuses] == by_partition(sent[:half])
        assert {
            (partition.position, partition.records_waiting, partition.kept) for partition in found.partition_statuses
        } == {(None, None, "")}
        assert not (tmp_path / "c" / "recovery").exists()

        assert engine.start(2, "--until-idle", "2").wait() == 0, engine.log.read_text()
        engine.send(sent[half:])
        told = cli("shards", "status", "-c", str(engine.config), "--json", "-")
        assert told.returncode == 0, told.stderr
        body = json.loads(told.stdout)
        expected = cases.alone(sent[:half], cases.settings())
        assert [partition["waiting"] for partition in body["lanes"]] == by_partition(sent[half:])
        assert [partition["messages"] for partition in body["lanes"]] == by_partition(sent[:half])
        for partition, outputs in zip(body["lanes"], expected, strict=True):
            lines = [json.loads(line) for o in outputs if o.kind == "verdicts" for line in o.body.splitlines()]
            assert partition["records"] == len(lines)
            assert partition["records_waiting"] == round(partition["waiting"] * len(lines) / partition["messages"])
            assert (partition["verdicts"], partition["events"]) == (
                len(cases.by_kind(outputs, "verdicts")),
                len(cases.by_kind(outputs, "events")),
            )
            alerts = {a["event"]["id"] for a in cases.alerts(cases.by_kind(outputs, "events"))}
            assert partition["alerts_open"] <= partition["alerts"] <= len(alerts)
            assert partition["last_time"][:4] == "2024"
            assert partition["kept"] > "2024"
        assert sum(partition["alerts"] for partition in body["lanes"]) > 0
        told_now: set[str] = set()
        for _, event in _campaigns(engine):
            told_now -= {event["campaign"], *event.get("was", [])}  # one that took in others stands for them
            if event["action"] != "end":
                told_now.add(event["campaign"])
        assert body["campaigns"] == len(told_now)

        engine.start(1)  # goes on, looked at while it runs
        engine.until(
            lambda: not any(partition.waiting for partition in status_of(engine).partition_statuses),
            "end of what waits",
        )
        assert engine.stop() == 0
        expected = cases.alone(sent, cases.settings())
        for p in range(PARTITIONS):
            for kind in ("verdicts", "events"):
                assert engine.received(kind, p) == cases.by_kind(expected[p], kind), (kind, p)


def _campaigns(engine: ShardsProcess) -> list[tuple[int, Any]]:
    return [(number, json.loads(body)) for number, body in engine.received("campaigns", 0)]


def in_memory(folder: Path, partitions: int = 2) -> tuple[Config, ShardingConfig]:
    config = parse_config(
        f'[sharding]\ninput = "memory://{folder.name}/in"\nevents = "memory://{folder.name}/out"\n'
        f'partitions = {partitions}\nrecovery = "{folder}/recovery"\n[model]\npath = "conn"\n'
    )
    assert config.sharding is not None
    return config, config.sharding


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    config, engine = in_memory(tmp_path)
    store = prepare_recovery(Path(engine.recovery), engine)
    assert sharding_status(config, engine).campaigns is None
    with pytest.raises(InputError, match="the state of 2 partitions"):
        sharding_status(*in_memory(tmp_path, partitions=3))
    (store / "part-1.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"part-1\.sqlite3: file is not a database"):
        sharding_status(config, engine)


class Bomb:
    def __reduce__(self) -> Any:
        return os._exit, (3,)


def test_nothing_that_was_kept_is_run(tmp_path: Path) -> None:
    config, engine = in_memory(tmp_path)
    store = prepare_recovery(Path(engine.recovery), engine)
    with sqlite3.connect(store / "part-0.sqlite3") as base:
        row = ("netclust.lanes", "00000", 1, pickle.dumps(Bomb()))
        base.execute("INSERT INTO snaps (step_id, state_key, snap_epoch, ser_change) VALUES (?, ?, ?, ?)", row)
    base.close()
    with pytest.raises(InputError, match="is no position"):
        sharding_status(config, engine)
    with pytest.raises(InputError, match="cannot be read"):
        plain_state(b"\x80\x04\x8c\xff")
    assert plain_state(pickle.dumps(b"bytes" * 1000)) == b"bytes" * 1000
