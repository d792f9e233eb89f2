"""Every bus keeps the same promises: order in partitions, reading on from a position, nothing doubled, coming back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from brokers import PATIENCE, Broker, nats_broker, patiently, redis_broker, running
from needed import need_module

from netclust.errors import InputError
from netclust.stream.bus.base import BusError, Incoming, Outgoing, PartitionReader, PartitionWriter
from netclust.stream.bus.factory import UNDIVIDED, open_reader, open_writer

KINDS = ("memory", *(pytest.param(kind, marks=pytest.mark.system) for kind in ("redis", "nats", "kafka")))


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:100].strip("-")


@pytest.fixture
def opened() -> Iterator[Callable[..., Any]]:
    """Readers and writers that are closed in the end."""
    used: list[Any] = []

    def keep(one: Any, *position: Any) -> Any:
        used.append(one)
        one.open(*position)
        return one

    yield keep
    for one in used:
        one.close()


def taken(reader: PartitionReader, count: int, most: int = 100) -> list[Incoming]:
    found: list[Incoming] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < deadline:
        found += reader.take(0.2, most)
    return found


def messages(partition: int, numbers: range) -> list[Outgoing]:
    return [Outgoing(partition, number, f"{partition}:{number}".encode()) for number in numbers]


def test_order_within_lanes(broker: Any, topic: str, opened: Any) -> None:
    writer: PartitionWriter = opened(open_writer(broker.url(topic), 3))
    for begin in (1, 8):
        batch = [m for partition in range(3) for m in messages(partition, range(begin, begin + 7))]
        writer.send(sorted(batch, key=lambda m: m.number))
    for partition in range(3):
        found = taken(opened(open_reader(broker.url(topic), partition), None), 14)
        assert [(m.number, m.body) for m in found] == [(n, f"{partition}:{n}".encode()) for n in range(1, 15)]


def test_reading_goes_on_behind_any_position(broker: Any, topic: str, opened: Any) -> None:
    opened(open_writer(broker.url(topic), 1)).send(messages(0, range(1, 9)))
    whole = taken(opened(open_reader(broker.url(topic), 0), None), 8)
    for i in (0, 4, 7):
        rest = taken(opened(open_reader(broker.url(topic), 0), whole[i].position), 7 - i)
        assert [m.number for m in rest] == list(range(i + 2, 9))


def test_most_and_nothing(broker: Any, topic: str, opened: Any) -> None:
    writer = opened(open_writer(broker.url(topic), 1))
    reader = opened(open_reader(broker.url(topic), 0), None)
    assert reader.take(0.0, 5) == []
    writer.send(messages(0, range(1, 8)))
    first = taken(reader, 1, most=3)
    assert 1 <= len(first) <= 3
    assert [m.number for m in first + taken(reader, 7 - len(first), most=3)] == list(range(1, 8))


def test_the_last_number(broker: Any, topic: str, opened: Any) -> None:
    writer = opened(open_writer(broker.url(topic), 2))
    assert (writer.last(0), writer.last(1)) == (0, 0)
    writer.send(messages(1, range(1, 6)))
    assert (writer.last(0), writer.last(1)) == (0, 5)


def test_how_many_are_waiting(broker: Any, topic: str, opened: Any) -> None:
    url = broker.url(topic)
    opened(open_writer(url, 2)).send(messages(1, range(1, 151)) + messages(0, range(1, 4)))
    onlooker = open_reader(url, 1)
    assert (onlooker.waiting(None), open_reader(url, 0).waiting(None)) == (150, 3)
    reader = opened(open_reader(url, 1), None)
    found = taken(reader, 10, most=10)
    assert [m.number for m in found] == list(range(1, 11))
    for i in (0, 9):
        assert onlooker.waiting(found[i].position) == 149 - i
    rest = taken(reader, 140)
    assert [m.number for m in rest] == list(range(11, 151))  # who reads goes on as if nobody had asked
    assert onlooker.waiting(rest[-1].position) == 0
    with pytest.raises(InputError, match="position"):
        onlooker.waiting("nowhere at all")


def test_what_is_sent_again_is_not_doubled(broker: Any, topic: str, opened: Any) -> None:
    if broker.url("x").startswith("memory"):
        pytest.skip("the bus in memory takes everything")
    opened(open_writer(broker.url(topic), 1)).send(messages(0, range(1, 6)))
    again = opened(open_writer(broker.url(topic), 1))  # as after a restart
    again.send(messages(0, range(3, 9)))
    again.send(messages(0, range(7, 10)))
    found = taken(opened(open_reader(broker.url(topic), 0), None), 9)
    assert [m.number for m in found] == list(range(1, 10))


def test_the_topic_itself(broker: Any, topic: str, opened: Any) -> None:
    bodies = [b"line %d" % i for i in range(6)]
    opened(open_writer(broker.url(topic), 0)).send([Outgoing(UNDIVIDED, 0, body) for body in bodies])
    reader = opened(open_reader(broker.url(topic), UNDIVIDED), None)
    found = taken(reader, 6)
    assert sorted(m.body for m in found) == bodies  # of Kafka: of all partitions
    rest = taken(opened(open_reader(broker.url(topic), UNDIVIDED), found[3].position), 2)
    assert sorted(m.body for m in rest) == sorted(m.body for m in found[4:])  # Kafka orders a partition, not a topic


def test_a_body_is_any_bytes(broker: Any, topic: str, opened: Any) -> None:
    bodies = [bytes(range(256)) * 1500, b"", b"\r\n\0"]
    opened(open_writer(broker.url(topic), 1)).send([Outgoing(0, i, body) for i, body in enumerate(bodies, 1)])
    assert [m.body for m in taken(opened(open_reader(broker.url(topic), 0), None), 3)] == bodies


def test_what_cannot_be_is_refused(broker: Any, topic: str, opened: Any) -> None:
    writer = opened(open_writer(broker.url(topic), 2))
    with pytest.raises(InputError, match="partition"):
        writer.send([Outgoing(2, 1, b"")])
    writer.send([Outgoing(0, 1, b"good")])
    with pytest.raises(InputError, match="position"):
        open_reader(broker.url(topic), 0).open("nowhere at all")


class Killed(NamedTuple):
    broker: Broker
    writer: PartitionWriter
    reader: PartitionReader
    position: str


@pytest.fixture(params=[redis_broker, nats_broker])
def killed(request: pytest.FixtureRequest, tmp_path: Path, opened: Any) -> Iterator[Killed]:
    """A broker that was killed after three messages were written and read."""
    with request.param(tmp_path) as broker:
        writer = opened(open_writer(broker.url("t"), 1))
        reader = opened(open_reader(broker.url("t"), 0), None)
        writer.send(messages(0, range(1, 4)))
        found = taken(reader, 3)
        assert len(found) == 3
        broker.kill()
        yield Killed(broker, writer, reader, found[-1].position)


@pytest.mark.system
def test_a_broker_that_was_killed_is_reached_again(killed: Killed) -> None:
    broker, writer, reader, position = killed
    with pytest.raises(BusError):
        writer.send(messages(0, range(4, 6)))
    with pytest.raises(BusError):
        taken(reader, 1)
    broker.start()
    patiently(lambda: writer.send(messages(0, range(3, 8))))  # some of it is there already
    patiently(lambda: reader.open(position))
    assert [m.number for m in taken(reader, 4)] == [4, 5, 6, 7]
    assert patiently(lambda: writer.last(0)) == 7


@pytest.mark.system
def test_a_reader_goes_on_by_itself(killed: Killed) -> None:
    """Without being opened again: a later call works."""
    killed.broker.start()
    patiently(lambda: killed.writer.send(messages(0, range(4, 6))))
    found: list[Incoming] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < 2 and time.monotonic() < deadline:
        found += patiently(lambda: killed.reader.take(0.1, 10))
    assert [m.number for m in found] == [4, 5]


@pytest.mark.system
@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:{port}/t", "nats://127.0.0.1:{port}/t", "kafka://127.0.0.1:{port}/t"]
)
def test_where_nobody_listens(url: str, tmp_path: Path) -> None:
    need_module({"nats": "nats", "redis": "redis", "kafka": "confluent_kafka"}[url.partition(":")[0]])
    where = url.format(port=Broker("", [], tmp_path).port) + "?timeout=1"
    reader, writer = open_reader(where, 0), open_writer(where, 1)
    for call in (lambda: reader.open(None), lambda: reader.waiting(None), writer.open):
        with pytest.raises(BusError, match=r"(?i)connect|broker"):
            call()
    reader.close()
    writer.close()


@pytest.mark.system
def test_redis_tells_what_it_has_forgotten(tmp_path: Path, opened: Any) -> None:
    with redis_broker(tmp_path) as broker:
        url = broker.url("t") + "&maxlen=1"
        writer = opened(open_writer(url, 1))
        writer.send([Outgoing(0, 1, b"x" * 5000)])
        reader = opened(open_reader(url, 0), None)
        position = taken(reader, 1)[0].position
        writer.send([Outgoing(0, number, b"x" * 5000) for number in range(2, 9)])
        reader.open(position)
        assert reader.lost == 1
        assert [m.number for m in taken(reader, 1)] == [8]


@pytest.mark.system
def test_redis_numbered_and_not_do_not_mix(tmp_path: Path, opened: Any) -> None:
    with redis_broker(tmp_path) as broker:
        writer = opened(open_writer(broker.url("t"), 1))
        writer.send([Outgoing(0, 0, b"not numbered")])
        with pytest.raises(InputError, match="not numbered"):
            writer.send([Outgoing(0, 1, b"numbered")])


@pytest.mark.system
def test_redis_lists_are_not_streams(tmp_path: Path) -> None:
    redis = need_module("redis")
    with redis_broker(tmp_path) as broker:
        with redis.Redis(port=broker.port) as client:
            client.lpush("eve", "a line")
        with pytest.raises(InputError, match="mode: stream"):
            open_reader(broker.url("eve"), UNDIVIDED).open(None)


@pytest.mark.system
def test_nats_is_asked_and_makes_no_stream(tmp_path: Path) -> None:
    with nats_broker(tmp_path) as broker:
        for _ in range(2):
            with pytest.raises(BusError, match="not there"):
                open_reader(broker.url("t"), 0).waiting(None)


@pytest.mark.system
def test_nats_refuses_what_is_too_large(tmp_path: Path, opened: Any) -> None:
    with nats_broker(tmp_path) as broker:
        writer = opened(open_writer(broker.url("t"), 1))
        with pytest.raises(InputError, match="max_payload"):
            writer.send([Outgoing(0, 0, bytes(2 << 20))])
        writer.send([Outgoing(0, 0, b"small")])


@pytest.mark.system
def test_nats_without_jetstream_says_how_to_start_it(tmp_path: Path) -> None:
    plain = nats_broker(tmp_path)
    plain._words.remove("-js")
    with plain:
        reader = open_reader(plain.url("records"), 0)
        with pytest.raises(BusError, match="nats-server -js"):
            reader.open(None)
        reader.close()
