"""What operators of shards hear: a bus that is away, a wrong topic, other partitions, other schemas, a lost state."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
import shard_cases as cases
from brokers import redis_broker
from daemon_cases import cli
from daemon_process import free_port
from shard_cases import CONN, PARTITIONS, ShardsProcess

from netclust.errors import InputError
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.factory import memory_bus, open_writer
from netclust.stream.config import ShardingConfig
from netclust.stream.logs import Log
from netclust.stream.sharding import shard_warnings as module
from netclust.stream.sharding.partitions import Progress
from netclust.stream.sharding.recovery import prepare_recovery, refuse_used_topics
from netclust.stream.sharding.shard import Shard
from netclust.stream.sharding.shard_metrics import Measures
from netclust.stream.sharding.shard_warnings import ShardWarnings

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Outgoing]:
    return cases.messages(cases.office(tmp_path_factory.mktemp("office")))


class Hearing:
    """ShardWarnings of a process, and what they wrote."""

    def __init__(self, name: str, *, first: bool = False) -> None:
        self.out, self.progress, self.url = io.StringIO(), Progress(), f"memory://{name}/records"
        log = Log("json", "info", self.out)
        self.complaints = ShardWarnings(log, self.progress, self.url, PARTITIONS, first=first)

    def lines(self) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.out.getvalue().splitlines()]
        self.out.seek(0)
        self.out.truncate()
        return found


def test_what_a_shard_passes_over_is_told_once_a_minute_and_in_the_end(sent: list[Outgoing]) -> None:
    hearing = Hearing("passed-over")
    shard = Shard(CONN, cases.settings(), 0, PARTITIONS)
    shard.counters["unreadable"] = 5  # before a restart
    hearing.complaints.watch(shard)
    hearing.complaints.look()
    assert hearing.lines() == []
    shard.step([b"garbage", next(m.body for m in sent if m.partition == 1)])
    hearing.complaints.look()
    unreadable, wrong = hearing.lines()
    assert unreadable["count"] == 1
    assert "not a netclust file" in unreadable["why"]
    assert wrong["count"] > 0
    assert "do sensors ship to as many partitions" in wrong["message"]
    shard.step([b"garbage"])
    hearing.complaints.look()
    assert hearing.lines() == []
    hearing.complaints.look(hurry=True)
    assert [line["count"] for line in hearing.lines()] == [1]


def test_a_quiet_lane_pages_nobody(sent: list[Outgoing]) -> None:
    """The daemon's rules hold for shards: stuck, behind, without a checkpoint or not warmed up is something else."""
    progress = Progress()
    measures = Measures(progress)

    def ask() -> dict[str, float]:
        lines = measures.telemetry.exposition()[0].decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    assert ask()["netclust_ready"] == 0
    shard = Shard(CONN, cases.settings(), 1, PARTITIONS, seen=measures.seen)
    measures.watch(shard)
    shard.step([m.body for m in sent if m.partition == 1])
    progress.first, progress.last = time.time() - 2000, time.time() - 1000
    found = ask()
    assert found['netclust_shard_behind_seconds{shard="1"}'] > 1000
    assert found["netclust_checkpoint_age_seconds"] > 1000  # something came that was never kept
    progress.kept, progress.polled = time.time() - 990, time.time()
    progress.caught_up.add(1)
    found = ask()
    assert found['netclust_shard_behind_seconds{shard="1"}'] == 0
    assert found["netclust_checkpoint_age_seconds"] == 0
    assert time.time() - found["netclust_heartbeat_timestamp_seconds"] < 60
    assert found["netclust_ready"] == found["netclust_warmup_progress_ratio"] == 1


def test_silence_and_lanes_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    hearing = Hearing("silence", first=True)
    hearing.complaints.look()
    assert hearing.lines() == []
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(hearing.complaints, "_above", 0.0)
    open_writer(hearing.url, 2 * PARTITIONS).send([Outgoing(PARTITIONS, 1, b"x")])
    for _ in range(2):
        hearing.complaints.look()
    silent, above = hearing.lines()
    assert "nothing has come yet" in silent["message"]
    assert silent["input"] == hearing.url
    assert above["lane"] == PARTITIONS


def test_a_new_state_is_refused_where_topics_have_the_messages_of_an_old_one(tmp_path: Path) -> None:
    """Its numbers begin with 1 again, and alerts would be left out silently until there are as many as before."""
    bus = memory_bus(tmp_path.name)
    engine = ShardingConfig(
        input=f"memory://{tmp_path.name}/records", events=f"memory://{tmp_path.name}/events", partitions=PARTITIONS
    )
    folder = tmp_path / "recovery"
    refuse_used_topics(folder, engine)
    prepare_recovery(folder, engine)
    bus.writer("events", PARTITIONS).send([Outgoing(3, 1, b"an alert")])
    refuse_used_topics(folder, engine)  # that is its own state
    with pytest.raises(InputError, match="of an earlier state"):
        refuse_used_topics(tmp_path / "another", engine)


CLUSTER = '[sharding]\ninput = "redis://127.0.0.1:1/in"\nevents = "redis://127.0.0.1:1/out"\n'
MODEL = '[model]\npath = "conn"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (MODEL, "neither [[source]] nor [sharding]"),
        (MODEL + '[[source]]\nkind = "records"\npath = "-"\n', "no [sharding]"),
        (CLUSTER + MODEL + "[warmup]\nrecords = 100\n", "100 records more than references"),
        (CLUSTER + MODEL + "[window]\nreferent_window = -1\n", "referent_window"),
        (CLUSTER + '[model]\npath = "con"\n', "none of the shipped ones"),
        (CLUSTER + 'campaigns = "http://a/b"\n' + MODEL, "sharding.campaigns: http://a/b: no bus"),
        (CLUSTER + 'verdicts = "redis://a/b?maxlen=x"\n' + MODEL, "sharding.verdicts: redis://a:6379/0/b: maxlen=x"),
        (CLUSTER + 'metrics = "9481"\n' + MODEL, "sharding.metrics: listen '9481'"),
    ],
)
def test_a_check_names_the_file_and_the_setting(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    said = cli("shards", "check", "-c", str(path))
    assert said.returncode == 2
    assert str(path) in said.stderr
    assert why in said.stderr


def test_a_check_looks_at_the_state_and_says_what_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    more = f'recovery = "{tmp_path}/r"\n{MODEL}[[sink]]\nkind = "jsonl"\npath = "a"\n[ship]\nsensor = "x"\n'
    path.write_text(CLUSTER + more)
    said = cli("shards", "check", "-c", str(path))
    assert said.returncode == 0, said.stderr
    assert "which is new" in said.stdout
    assert "[[sink]], [ship]: the daemon's" in said.stderr
    assert not (tmp_path / "r").exists()
    prepare_recovery(tmp_path / "r", ShardingConfig(input="redis://127.0.0.1:1/in", partitions=1))
    assert "goes on from" in cli("shards", "check", "-c", str(path)).stdout
    path.write_text(CLUSTER + "partitions = 2\n" + more)
    said = cli("shards", "check", "-c", str(path))
    assert said.returncode == 2
    assert "the state of 1 partitions" in said.stderr


def test_a_bus_that_is_away_is_named_and_waited_for(tmp_path: Path) -> None:
    """However long, and whatever `max_restarts` is: when it is back, nobody has to be called."""
    port = free_port()
    with ShardsProcess(tmp_path / "c", lambda topic: f"redis://127.0.0.1:{port}/{topic}?timeout=1") as engine:
        engine.start(1)
        engine.until(lambda: "the bus does not answer" in engine.log.read_text(), "complaint")
        assert f"127.0.0.1:{port}" in engine.log.read_text()
        assert engine.stop() == 0
        text = engine.config.read_text().replace("max_restarts = 1000", "max_restarts = 0")
        engine.config.write_text(text)
        config = cases.parse_config(text)
        assert config.sharding is not None
        prepare_recovery(tmp_path / "c" / "recovery", config.sharding)  # as if it had run before
        engine.start(1)
        engine.until(lambda: "the bus is away: all start again" in engine.log.read_text(), "second start")
        assert engine.stop() == 0
    assert "why=the bus does not answer: redis://" in engine.log.read_text()
    assert "gives up" not in engine.log.read_text()


def test_a_process_of_its_own_ends_with_its_own_code_while_the_bus_is_away(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER + f'recovery = "{tmp_path}/r"\n{MODEL}')
    said = cli("shards", "run", "-c", str(path), "--process-id", "0", "--addresses", "127.0.0.1:1")
    assert said.returncode == 75
    assert "redis://127.0.0.1:1/0/out" in said.stderr


def test_an_outage_while_nothing_comes_is_told_and_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    folder.mkdir()
    with redis_broker(folder) as broker, ShardsProcess(tmp_path / "c", broker.url) as engine:
        engine.start(1)
        engine.until(lambda: "worker begins" in engine.log.read_text(), "begin")
        time.sleep(1.0)
        broker.kill()
        engine.until(lambda: "the bus does not answer: it is asked again" in engine.log.read_text(), "complaint")
        broker.start()
        engine.until(lambda: "the bus answers again" in engine.log.read_text(), "end of it")
        assert engine.stop() == 0


def test_a_daemon_that_stops_says_what_the_bus_does_not_have(tmp_path: Path) -> None:
    records = tmp_path / "records.txt"
    assert cli("simulate", "records", "-o", str(records), "--records", "300").returncode == 0
    path = tmp_path / "sensor.toml"
    path.write_text(
        f'[[source]]\nkind = "records"\npath = "{records}"\n[ship]\nurl = "redis://127.0.0.1:1/records?timeout=1"\n'
        f'[daemon]\nstate_dir = "{tmp_path}/state"\n[http]\nlisten = ""\n'
    )
    assert "records (1 partition) to redis://127.0.0.1:1/0/records" in cli("check-config", str(path)).stdout
    said = cli("run", "-c", str(path), timeout=120.0)
    assert said.returncode == 0
    assert "waits on disk, and goes first at the next start  what=shipping of records messages=1" in said.stderr
