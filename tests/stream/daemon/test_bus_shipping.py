"""Shipping and what receives it, in this process: nothing waits for the bus, nothing is lost or doubled unseen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brokers import PATIENCE, MockKafka

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.records.table import Table
from netclust.stream.bus.base import Incoming, Outgoing
from netclust.stream.bus.factory import memory_bus, open_reader, open_writer
from netclust.stream.bus.record_messages import (
    LabelMessage,
    RecordMessage,
    pack_label,
    pack_records,
    unpack_message,
)
from netclust.stream.config import ShipConfig, SourceConfig, parse_config
from netclust.stream.daemon import shipping as shipping_module
from netclust.stream.daemon.build import check_config
from netclust.stream.daemon.shipping import Shipping
from netclust.stream.sinks.base import Facts
from netclust.stream.sources.base import Arrival, MemorySource
from netclust.stream.sources.bus_records import BusSource
from netclust.stream.sources.records import open_text_source

TABLE = simulate(300, seed=1).table()
TABLE.key = np.arange(300, dtype=np.uint64) * np.uint64(7919)


def arrival(begin: int, end: int) -> Arrival:
    return Arrival(TABLE[begin:end], None, time.monotonic())


def source(name: str = "in", *, replayable: bool = True, sheds: bool = False) -> MemorySource:
    made = MemorySource(name, TABLE.schema, sheds=sheds)
    made.replayable = replayable
    return made


@pytest.fixture
def bus(request: pytest.FixtureRequest) -> Any:
    return memory_bus("".join(c for c in request.node.name if c.isalnum())[:60])


@pytest.fixture
def ship(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Shipping]]:
    name = "".join(c for c in request.node.name if c.isalnum())[:60]
    opened: list[Shipping] = []

    def make(
        sources: list[MemorySource], *, facts: Facts | None = None, kept: dict[str, str] | None = None, **settings: Any
    ) -> Shipping:
        config = ShipConfig(**({"url": f"memory://{name}/records", "partitions": 3, "batch_seconds": 0.05} | settings))
        numbers = {s.name: i for i, s in enumerate(sources)}
        made = Shipping(config, sources, numbers, sensor="probe", spool=tmp_path, kept=kept)
        for runner in made.runners.values():
            runner._first_wait = runner._longest_wait = 0.05
        made.open(facts)
        opened.append(made)
        return made

    yield make
    for one in opened:
        one.close(2.0)


def partitions_of(bus: Any, partitions: int = 3) -> dict[int, list[RecordMessage]]:
    found: dict[int, list[RecordMessage]] = {}
    for partition in range(partitions):
        for message in bus.partition("records", partition):
            records = unpack_message(message.body, TABLE.schema, "test")
            assert isinstance(records, RecordMessage)
            found.setdefault(partition, []).append(records)
    return found


def eventually(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_records_go_to_the_lane_of_their_key_in_order(ship: Any, bus: Any) -> None:
    sources = [source("a"), source("b")]
    shipping = ship(sources, batch_records=40)
    for begin in range(0, 300, 30):
        shipping.submit(sources[0], arrival(begin, begin + 30))
    shipping.submit(sources[1], arrival(0, 10))
    shipping.mark().result(PATIENCE)
    numbers: dict[str, list[int]] = {}
    for partition, messages in partitions_of(bus).items():
        last: dict[str, int] = {}
        for message in messages:
            assert (message.table.key % np.uint64(3) == partition).all()
            assert len(message.table) <= 40
            assert int(message.table.seq[0]) > last.get(message.source, -1)
            last[message.source] = int(message.table.seq[-1])
            numbers.setdefault(message.source, []).extend(message.table.seq.tolist())
    assert {name: sorted(found) for name, found in numbers.items()} == {"a": list(range(300)), "b": list(range(10))}
    assert shipping.runners["records"].sink.records == 310  # type: ignore[attr-defined]


def test_what_is_shown_of_records_is_shipped_too(ship: Any, bus: Any) -> None:
    given = source()
    shipping = ship([given])
    lazy = Arrival(
        TABLE[0:5], None, 0.0, context=lambda rows: {"source": np.array([f"10.0.0.{k}" for k in rows], object)}
    )
    shipping.submit(given, lazy)
    shipping.mark().result(PATIENCE)
    found = {
        int(seq): address
        for messages in partitions_of(bus).values()
        for message in messages
        for seq, address in zip(message.table.seq, message.table.context["source"], strict=True)
    }
    assert found == {k: f"10.0.0.{k}" for k in range(5)}


def test_a_bus_that_is_away_holds_up_nothing_and_gets_all_of_it_later(ship: Any, bus: Any) -> None:
    bus.down = True
    given = source()
    shipping = ship([given], batch_records=10)
    for begin in range(0, 150, 10):
        shipping.submit(given, arrival(begin, begin + 10))
    facts = shipping.mark().result(PATIENCE)  # durable, although nothing was sent
    assert shipping.troubles()
    shipping.submit(given, arrival(150, 160))
    shipping.close(2.0)
    again = ship([given], facts=facts, kept=shipping.streams, batch_records=10)
    assert again.streams == shipping.streams
    for begin in range(150, 300, 10):  # as from the checkpoint
        again.submit(given, arrival(begin, begin + 10))
    bus.down = False
    eventually(lambda: not again.runners["records"].pending and again.runners["records"].sink.records >= 300)
    assert not again.troubles()
    for partition, messages in partitions_of(bus).items():
        order = [seq for message in messages for seq in message.table.seq.tolist()]
        new = [seq for i, seq in enumerate(order) if seq > max(order[:i], default=-1)]
        assert new == [seq for seq in range(300) if TABLE.key[seq] % np.uint64(3) == partition]
        assert {message.stream for message in messages} == {shipping.streams["in"]}


def test_a_full_spool_drops_the_oldest_and_counts(ship: Any, bus: Any) -> None:
    bus.down = True
    given = source()
    big = TABLE[0:200]
    big.context = {"payload": np.array([f"{k:0500d}" for k in range(200)], object)}
    shipping = ship([given], partitions=1, batch_records=200, spool_bytes=1 << 20)
    for _ in range(40):  # each some 170 kB
        shipping.submit(given, Arrival(big, None, 0.0))
        shipping.mark().result(PATIENCE)
    counters = {name: value for metric, (_, name), value in _messages(shipping) for _ in [metric]}
    assert counters["dropped"] > 20
    assert 0 < counters["spooled"] <= 40
    assert shipping.runners["records"].spool_bytes <= 1 << 20


def _messages(shipping: Shipping) -> Iterator[Any]:
    return (sample for sample in shipping.samples() if sample[0] == "ship_messages_total")


def test_where_packing_falls_behind_a_live_source_is_passed_over(ship: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    live = source("live", replayable=False, sheds=True)
    slow: Any = pack_records

    def pack_slowly(*args: Any, **names: Any) -> bytes:
        time.sleep(0.2)
        return bytes(slow(*args, **names))

    monkeypatch.setattr(shipping_module, "pack_records", pack_slowly)
    shipping = ship([live], queue_records=100, batch_records=10, partitions=1)
    for _ in range(50):
        shipping.submit(live, arrival(0, 50))
    assert shipping.counters["skipped"] >= 1000
    assert ("ship_records_skipped_total", (), shipping.counters["skipped"]) in list(shipping.samples())


def test_long_messages_are_cut(ship: Any, bus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping_module, "MAX_BODY", 20_000)
    given = source()
    shipping = ship([given], partitions=1, batch_records=300)
    shipping.submit(given, arrival(0, 300))
    shipping.mark().result(PATIENCE)
    messages = bus.partition("records", 0)
    assert len(messages) > 2
    assert all(len(message.body) <= 20_000 for message in messages)
    assert [s for m in partitions_of(bus, 1)[0] for s in m.table.seq.tolist()] == list(range(300))


def test_a_stream_is_the_same_only_where_numbers_mean_the_same(ship: Any) -> None:
    kept = {"file": "1", "live": "2"}
    sources = [source("file"), source("live", replayable=False), source("new")]
    shipping = ship(sources, kept=kept)
    assert shipping.streams["file"] == "1"
    assert shipping.streams["live"] != "2"
    assert len({*shipping.streams.values()}) == 3
    sources[0].counters["lost_position"] += 1  # other records get the numbers that follow
    shipping.submit(sources[0], arrival(0, 1))
    assert shipping.streams["file"] != "1"


def test_shipping_over_kafka() -> None:
    kafka = MockKafka()
    config = ShipConfig(url=kafka.url("records"), partitions=2, batch_records=50)
    given = source()
    shipping = Shipping(config, [given], {"in": 0}, sensor="probe", spool=Path("/nonexistent"))
    for runner in shipping.runners.values():
        runner._spool_path = None
    shipping.open(None)
    shipping.submit(given, arrival(0, 200))
    shipping.mark().result(PATIENCE)
    shipping.close(5.0)
    receiver = BusSource("in", kafka.url("records"), TABLE.schema, partitions=2)
    receiver.open(None)
    try:
        assert sum(len(a.table) for a in until_records(receiver, 200)) == 200
    finally:
        receiver.close()


# ---- what receives it


def until_records(receiver: BusSource, count: int) -> list[Arrival]:
    found: list[Arrival] = []
    deadline = time.monotonic() + PATIENCE
    for one in receiver:
        found.append(one)
        if sum(len(a.table) for a in found) >= count or time.monotonic() > deadline:
            receiver.want_state()
            break
    return found


def send(url: str, bodies: list[tuple[int, bytes]]) -> None:
    writer = open_writer(url, 2)
    writer.open()
    writer.send([Outgoing(partition, 0, body) for partition, body in bodies])


def packed(begin: int, end: int, sensor: str = "a", stream: str = "1") -> bytes:
    return pack_records(TABLE[begin:end], sensor=sensor, stream=stream, source="eth0")


def test_records_of_many_sensors_count_once_and_are_numbered_anew() -> None:
    url = "memory://receiving/records"
    first = [(0, packed(0, 50)), (1, packed(50, 90)), (0, packed(30, 80)), (0, packed(0, 10, sensor="b"))]
    send(url, [*first, (1, b"garbage"), (0, pack_label(LabelMessage(id="1", label="x", by="me", cluster=1)))])
    receiver = BusSource("in", url, TABLE.schema, partitions=2)
    receiver.open(None)
    (got,) = until_records(receiver, 130)
    assert got.table.seq.tolist() == list(range(130))  # 50 + 30 + 10 of partition 0, 40 of partition 1
    assert sorted(set(got.table.context["sensor"].tolist())) == ["a", "b"]
    assert (receiver.counters["sent_twice"], receiver.counters["bad_value"]) == (20, 1)
    assert "partition 1" in receiver.first_skipped[0]
    state = next(iter(receiver)).state
    assert state is not None
    receiver.close()

    send(url, [(0, packed(60, 100)), (1, packed(0, 5, stream="2"))])
    again = BusSource("in", url, TABLE.schema, partitions=2)
    again.open(state)
    (got,) = until_records(again, 25)
    assert got.table.seq.tolist() == list(range(130, 155))
    assert again.counters["sent_twice"] == 20
    with pytest.raises(InputError, match="it has read 2 so far"):
        BusSource("in", url, TABLE.schema, partitions=1).open(state)


def test_rows_are_those_that_were_sent() -> None:
    url = "memory://rows/records"
    send(url, [(0, packed(0, 50)), (0, packed(50, 60, sensor="b"))])
    receiver = BusSource("in", url, TABLE.schema, partitions=1)
    receiver.open(None)
    (got,) = until_records(receiver, 60)
    assert got.table.num.tobytes() == TABLE.num[:60].tobytes()
    assert names(got.table) == names(TABLE[0:60])


def names(table: Table) -> list[list[str]]:
    return [[table.symbols[s][k] for k in table.sym[:, s]] for s in range(table.sym.shape[1])]


def test_a_text_source_on_a_bus_goes_on_behind_its_state() -> None:
    url = "memory://text/lines"
    lines = [line.encode() for line in simulate(20, seed=4).lines()]
    writer = open_writer(url, 0)
    writer.send([Outgoing(-1, 0, line) for line in lines[:10]])
    first = open_text_source(SourceConfig(kind="records", name="in", path=url))
    first.open(None)
    arrivals = iter(first)
    got = next(arrivals)
    while not len(got.table):
        got = next(arrivals)
    assert len(got.table) == 10
    writer.send([Outgoing(-1, 0, line) for line in lines[10:]])
    again = open_text_source(SourceConfig(kind="records", name="in", path=url))
    again.open(got.state)
    rest = next(iter(again))
    assert rest.table.seq.tolist() == list(range(10, 20))
    again.stop()
    assert sum(len(a.table) for a in again) == 0


def test_a_bus_that_goes_away_is_trouble_and_then_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = memory_bus("trouble")
    bus.down = True
    receiver = open_text_source(SourceConfig(kind="records", name="in", path="memory://trouble/lines"))
    receiver.open(None)
    arrivals = iter(receiver)
    while not receiver.trouble:
        next(arrivals)
    bus.down = False
    bus.partition("lines", -1).append(Incoming("1", next(iter(simulate(1, seed=1).lines())).encode()))
    while not len(next(arrivals).table):
        pass
    assert not receiver.trouble
    assert receiver.counters["unreachable"] >= 1


# ---- configurations

BUS = '[[source]]\nkind = "bus"\npath = "memory://a/records"\n[model]\npath = "kdd"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[source]]\nkind = "bus"\npath = "records.txt"\n', "source bus: records.txt: no bus"),
        ('[[source]]\nkind = "bus"\npath = "redis://a/b?x=1"\n', "source bus.*no option x"),
        ('[[source]]\nkind = "capture"\npath = "redis://a/b"\n', "packets do not come over a bus"),
        ('[[source]]\nkind = "eve"\npath = "redis://a/b"\npartitions = 2\n', "partitions is for a source of kind bus"),
        ('[[source]]\nkind = "eve"\npath = "redis://a/b"\npace = 2.0\n', "pace"),
        (f"{BUS}[[sink]]\nkind = 'bus'\n", "needs url"),
        (f"{BUS}[[sink]]\nkind = 'bus'\nurl = 'redis://me:pw@a/b'\n", "password_file"),
        (f"{BUS}[ship]\nurl = 'kafka://'\n", "ship.url"),
        (f"{BUS}[ship]\nverdicts_url = 'x'\n", "ship.verdicts_url: x: no bus"),
        (f"{BUS}[ship]\nurl = 'memory://a/b'\nverdicts_url = 'memory://a/b'\n", "same topic"),
        (f"{BUS}[ship]\nurl = 'memory://a/b'\npartitions = 0\n", "ship.partitions"),
        (f"{BUS}[ship]\nurl = 'memory://a/b'\nbatch_records = 0\n", "batch_records"),
        (f"{BUS}[ship]\nurl = 'memory://a/b'\nbatch_seconds = 0\n", "batch_seconds"),
        (f"{BUS}[ship]\nurl = 'memory://a/b'\nspool_bytes = 5\n", "spool_bytes"),
        (f"{BUS}[ship]\nsensor = '{'x' * 65}'\n", "ship.sensor"),
    ],
)
def test_mistakes_are_found_before_the_start(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        check_config(parse_config(text))


def test_a_configuration_with_all_of_it_is_sound() -> None:
    ship = "[ship]\nurl = 'nats://a/records'\nverdicts_url = 'redis://a/verdicts'\npartitions = 4\n"
    check_config(parse_config(f"{BUS}{ship}[[sink]]\nkind = 'bus'\nurl = 'kafka://a,b/alerts'\n"))


def test_a_reader_of_a_lane_that_nobody_wrote_to_waits() -> None:
    reader = open_reader("memory://empty/t", 0)
    reader.open(None)
    assert reader.take(0.01, 5) == []
