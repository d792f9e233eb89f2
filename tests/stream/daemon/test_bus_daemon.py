"""Real daemons on a real bus: killed, cut off and brought back, every record counts exactly once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from brokers import Broker, nats_broker, redis_broker
from daemon_cases import Settled, append, cli, each_once, followed
from needed import need_module

from netclust.datasets.simulators.simulate import simulate
from netclust.records.schema import load_schema
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.factory import UNDIVIDED, open_reader, open_writer
from netclust.stream.bus.record_messages import RecordMessage, pack_records, unpack_message

pytestmark = pytest.mark.system

EVE = (
    '{{"timestamp":"2026-01-02T03:04:{0:02d}.0+0000","flow_id":{1},"event_type":"flow","src_ip":"10.0.0.{2}",'
    '"src_port":4000,"dest_ip":"10.0.1.2","dest_port":443,"proto":"TCP","app_proto":"tls","flow":{{"pkts_toserver":9,'
    '"pkts_toclient":8,"bytes_toserver":{3},"bytes_toclient":5000,"start":"2026-01-02T03:04:{0:02d}.0+0000",'
    '"end":"2026-01-02T03:04:{0:02d}.5+0000"}},"tcp":{{"tcp_flags_ts":"1b","tcp_flags_tc":"1b"}}}}'
)


def eve_lines(begin: int, end: int) -> list[bytes]:
    return [EVE.format(i * 60 // 5000 % 60, i, 1 + i % 200, 700 + i % 13).encode() for i in range(begin, end)]


def suricata_writes(broker: Broker, lines: list[bytes]) -> None:
    """As Suricata does in stream mode: the line in a field `eve`."""
    redis = need_module("redis")
    with redis.Redis(port=broker.port) as client:
        pipe = client.pipeline(transaction=False)
        for line in lines:
            pipe.xadd("suricata", {"eve": line}, maxlen=100_000, approximate=True)
        pipe.execute()


def shipped(url: str, partitions: int) -> tuple[dict[tuple[str, str, str], list[int]], int]:
    """The numbers of all records that are on the partitions, once each, by who sent them; and how many came twice."""
    found: dict[tuple[str, str, str], list[int]] = {}
    doubled = 0
    for partition in range(partitions):
        reader = open_reader(url, partition)
        reader.open(None)
        last: dict[tuple[str, str, str], int] = {}
        while messages := reader.take(0.3, 1000):
            for message in messages:
                records = unpack_message(message.body, load_schema("kdd"), "test")
                assert isinstance(records, RecordMessage)
                origin = records.sensor, records.stream, records.source
                assert set((records.table.key % partitions).tolist()) <= {partition}
                for seq in records.table.seq.tolist():
                    doubled += seq <= last.get(origin, -1)
                    if seq > last.get(origin, -1):
                        found.setdefault(origin, []).append(seq)
                        last[origin] = seq
        reader.close()
    return found, doubled


def test_suricata_over_redis_with_kills(tmp_path: Path) -> None:
    with redis_broker(tmp_path) as broker:
        source = f'[[source]]\nkind = "eve"\nname = "in"\npath = "redis://127.0.0.1:{broker.port}/suricata?timeout=1"\n'
        daemon = Settled(tmp_path / "d", source)
        try:
            daemon.start()
            suricata_writes(broker, eve_lines(0, 4000))
            daemon.until(lambda: len(daemon.verdicts()) > 500, "verdicts")
            daemon.kill()
            suricata_writes(broker, eve_lines(4000, 6000))
            daemon.start()
            broker.kill()  # and the broker, too
            daemon.ready()
            daemon.until(lambda: daemon.total("netclust_source_events_total", reason="unreachable") > 0, "an outage")
            broker.start()
            suricata_writes(broker, eve_lines(6000, 7000))
            daemon.until(lambda: len(daemon.verdicts()) >= 7000, "all verdicts")
            assert daemon.stop() == 0, daemon.text()[-2000:]
        finally:
            daemon.__exit__()
        assert each_once(daemon, 7000)


@pytest.mark.parametrize("make", [redis_broker, nats_broker])
def test_cut_off_it_goes_on_alone_and_ships_later(make: Any, tmp_path: Path) -> None:
    """The bus is away from the start, comes, is killed while records flow, and so is the daemon."""
    log = tmp_path / "in.txt"
    lines = [line.encode() + b"\n" for line in simulate(6000, seed=9).lines()]
    broker = make(tmp_path)
    url = broker.url("records")
    ship = f'[ship]\nurl = "{url}&{"maxlen" if broker.scheme == "redis" else "max_bytes"}=100000000"\npartitions = 3\n'
    append(log, b"".join(lines[:2000]))
    daemon = Settled(tmp_path / "d", followed(log), more=f'{ship}sensor = "probe"\nbatch_records = 100\n')
    try:
        daemon.start().ready()
        daemon.until(lambda: len(daemon.verdicts()) >= 2000, "verdicts without a bus")
        assert daemon.metrics()['netclust_ship_down{shipped="records"}'] == 1
        daemon.until(lambda: daemon.metrics().get('netclust_ship_spool_bytes{shipped="records"}', 0) > 0, "a spool")
        daemon.kill()  # what is in the spool is there after that
        broker.start()
        daemon.start().ready()
        append(log, b"".join(lines[2000:4000]))
        daemon.until(lambda: daemon.total("netclust_ship_records_total") > 2000, "records on the bus")
        broker.kill()
        append(log, b"".join(lines[4000:]))
        daemon.until(lambda: len(daemon.verdicts()) >= 6000, "all verdicts, again without a bus")
        broker.start()
        # The first run had no bus at all: the second ships everything.
        daemon.until(lambda: daemon.total("netclust_ship_records_total") >= 6000, "everything on the bus")
        assert daemon.stop() == 0, daemon.text()[-2000:]
        assert each_once(daemon, 6000)
        found, _ = shipped(url, 3)
        ((origin, numbers),) = found.items()  # a file can be read again: the stream stayed the same
        assert (origin[0], origin[2]) == ("probe", "in")
        assert Counter(numbers) == Counter(range(6000))
    finally:
        daemon.__exit__()
        broker.kill()


def test_one_daemon_judges_what_sensors_ship(tmp_path: Path) -> None:
    """A sensor that is killed and sends some again, one that says everything twice, and an engine that is killed."""
    with redis_broker(tmp_path) as broker:
        url = broker.url("records")
        engine = Settled(
            tmp_path / "engine",
            f'[[source]]\nkind = "bus"\nname = "in"\npath = "{url}"\npartitions = 2\n[model]\npath = "kdd"\n',
        )
        log = tmp_path / "in.txt"
        append(log, b"".join(line.encode() + b"\n" for line in simulate(1500, seed=3).lines()))
        ship = f'[ship]\nurl = "{url}"\npartitions = 2\nsensor = "one"\nverdicts_url = "{broker.url("verdicts")}"\n'
        sensor = Settled(tmp_path / "sensor", followed(log), more=ship)
        twice = pack_records(simulate(500, seed=4).table(), sensor="two", stream="1", source="x")
        writer = open_writer(url, 2)
        writer.open()
        writer.send([Outgoing(1, 0, twice), Outgoing(1, 0, twice)])
        writer.close()
        try:
            engine.start()
            sensor.start()
            sensor.until(lambda: len(sensor.verdicts()) >= 1500, "verdicts of the sensor")
            engine.until(lambda: len(engine.verdicts()) >= 500, "verdicts of the engine")
            sensor.kill()
            engine.kill()
            engine.start()
            sensor.start().ready()
            engine.until(lambda: len(engine.verdicts()) >= 2000, "all verdicts of the engine")
            assert sensor.stop() == 0, sensor.text()[-2000:]
            assert engine.stop() == 0, engine.text()[-2000:]
        finally:
            sensor.__exit__()
            engine.__exit__()
        assert each_once(engine, 2000)
        reader = open_reader(broker.url("verdicts"), UNDIVIDED)
        reader.open(None)
        told = [json.loads(line) for m in reader.take(0.5, 10_000) for line in m.body.splitlines()]
        reader.close()
        assert {(line["sensor"], line["source"], line["record"]) for line in told} == {
            ("one", "in", f"0:{seq}") for seq in range(1500)
        }


@pytest.mark.story
def test_alerts_go_to_a_bus(tmp_path: Path) -> None:
    log = tmp_path / "in.txt"
    simulate(3000, seed=2, day=1).write(log)
    with nats_broker(tmp_path) as broker:
        more = f'[[sink]]\nkind = "bus"\nname = "alerts"\nurl = "{broker.url("alerts")}"\n'
        daemon = Settled(tmp_path / "d", f'[[source]]\nkind = "records"\nname = "in"\npath = "{log}"\n', more=more)
        try:
            assert daemon.start().wait() == 0, daemon.text()[-2000:]
        finally:
            daemon.__exit__()
        reader = open_reader(broker.url("alerts"), UNDIVIDED)
        reader.open(None)
        documents = [json.loads(message.body) for message in reader.take(1.0, 1000)]
        reader.close()
    assert documents
    assert all(document["event"]["id"] for document in documents)


def test_watching_a_bus(tmp_path: Path) -> None:
    with redis_broker(tmp_path) as broker:
        suricata_writes(broker, [*eve_lines(0, 50), b"no JSON"])
        url = f"redis://127.0.0.1:{broker.port}/suricata"
        done = cli("watch", url, "--kind", "eve", "--warmup", "0", "--for", "2")
        quiet = cli("watch", f"{url}-too", "--kind", "eve", "--for", "1")
    assert "50 records" in done.stdout, done
    assert done.returncode == 0
    assert quiet.returncode == 0, quiet  # nobody has written to it yet, which is no mistake
    assert "suricata-too: nothing came" in quiet.stderr
    asked = cli("watch", url)
    assert asked.returncode == 2
    assert "--kind eve" in asked.stderr


def test_lines_on_a_bus_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    with nats_broker(tmp_path) as broker:
        url = broker.url("lines")
        good = [line.encode() for line in simulate(50, seed=2).lines()]
        writer = open_writer(url, 0)
        writer.open()
        bodies = [good[0], b"no record", b"\n".join(good[1:]) + b"\n", b"x" * 900_000]
        writer.send([Outgoing(UNDIVIDED, 0, body) for body in bodies])
        writer.close()
        daemon = Settled(tmp_path / "d", f'[[source]]\nkind = "records"\nname = "in"\npath = "{url}"\n')
        try:
            daemon.start().ready()
            daemon.until(lambda: len(daemon.verdicts()) >= 50, "verdicts")
            daemon.until(lambda: daemon.total("netclust_input_errors_total") >= 2, "errors")
            assert daemon.stop() == 0
        finally:
            daemon.__exit__()
        assert each_once(daemon, 50)
