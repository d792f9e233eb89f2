"""Readers and writers of partitions, made from a URL; each bus's client library is loaded when it is used.

>>> writer = open_writer("memory://example/records", 2)
>>> writer.open()
>>> writer.send([Outgoing(partition=1, number=1, body=b"hello")])
>>> reader = open_reader("memory://example/records", 1)
>>> reader.open(None)
>>> [message.body for message in reader.take(0.0, 10)]
[b'hello']
"""

from __future__ import annotations

from collections.abc import Callable

from netclust.errors import InputError
from netclust.stream.bus.addresses import MAX_PARTITIONS, UNDIVIDED, BusUrl, is_bus, parse_bus_url
from netclust.stream.bus.base import MemoryBus, Outgoing, PartitionReader, PartitionWriter

__all__ = [
    "MAX_PARTITIONS", "UNDIVIDED", "BusUrl", "Outgoing", "check_bus", "is_bus", "memory_bus", "open_reader",
    "open_writer", "parse_bus_url",
]  # fmt: skip

MakeReader = Callable[[BusUrl, int], PartitionReader]
MakeWriter = Callable[[BusUrl, int], PartitionWriter]

_memory: dict[str, MemoryBus] = {}


def memory_bus(name: str) -> MemoryBus:
    """The bus behind `memory://NAME/...`: one a name in this process."""
    return _memory.setdefault(name, MemoryBus())


def _makers(address: BusUrl) -> tuple[MakeReader, MakeWriter]:
    """What makes readers and writers of this kind of bus."""
    if address.kind == "memory":
        bus = memory_bus(address.servers[0])
        return (lambda to, partition: bus.reader(to.topic, partition)), (
            lambda to, partitions: bus.writer(to.topic, partitions)
        )
    if address.kind == "kafka":
        from netclust.stream.bus.kafka_bus import KafkaReader, KafkaWriter

        return KafkaReader, KafkaWriter
    if address.kind == "nats":
        from netclust.stream.bus.nats_bus import NatsReader, NatsWriter

        return NatsReader, NatsWriter
    from netclust.stream.bus.redis_bus import RedisReader, RedisWriter

    return RedisReader, RedisWriter


def open_reader(url: str, partition: int) -> PartitionReader:
    """Return a reader of one partition, not yet opened; partition -1 is the topic itself, undivided."""
    address = parse_bus_url(url)
    if not UNDIVIDED <= partition < MAX_PARTITIONS:
        raise InputError(f"{address}: partition {partition}: partitions are numbered from 0 to {MAX_PARTITIONS - 1}")
    return _makers(address)[0](address, partition)


def open_writer(url: str, partitions: int) -> PartitionWriter:
    """Return a writer to N partitions, not yet opened; with 0 it writes to the topic itself, as partition -1."""
    address = parse_bus_url(url)
    if not 0 <= partitions <= MAX_PARTITIONS:
        raise InputError(f"{address}: {partitions} partitions: 1 to {MAX_PARTITIONS}, or 0 for the topic undivided")
    return _makers(address)[1](address, partitions)


def check_bus(url: str) -> BusUrl:
    """All that can be known of a URL before it is used: its form, its files, and that the client library is there."""
    address = parse_bus_url(url)
    open_reader(url, UNDIVIDED)
    open_writer(url, 0)
    address.password()
    return address
