"""Makes readers and writers of lanes out of a URL; each bus's client library is loaded when it is used.

>>> writer = open_writer("memory://example/records", 2)
>>> writer.open()
>>> writer.send([Outgoing(lane=1, number=1, body=b"hello")])
>>> reader = open_reader("memory://example/records", 1)
>>> reader.open(None)
>>> [message.body for message in reader.take(0.0, 10)]
[b'hello']
"""

from __future__ import annotations

from netclust.errors import InputError
from netclust.stream.bus.addresses import MAX_LANES, UNDIVIDED, BusUrl, is_bus, parse_bus_url
from netclust.stream.bus.base import LaneReader, LaneWriter, MemoryBus, Outgoing

__all__ = [
    "MAX_LANES", "UNDIVIDED", "BusUrl", "Outgoing", "check_bus", "is_bus", "memory_bus", "open_reader", "open_writer",
    "parse_bus_url",
]  # fmt: skip

_memory: dict[str, MemoryBus] = {}


def memory_bus(name: str) -> MemoryBus:
    """The bus behind `memory://NAME/...`: one a name in this process."""
    return _memory.setdefault(name, MemoryBus())


def open_reader(url: str, lane: int) -> LaneReader:
    """A reader of one lane, not yet opened; lane -1: the topic itself, undivided."""
    address = parse_bus_url(url)
    if not UNDIVIDED <= lane < MAX_LANES:
        raise InputError(f"{address}: lane {lane}: lanes are numbered from 0 to {MAX_LANES - 1}")
    if address.kind == "memory":
        return memory_bus(address.servers[0]).reader(address.topic, lane)
    if address.kind == "kafka":
        from netclust.stream.bus.kafka_bus import KafkaReader

        return KafkaReader(address, lane)
    if address.kind == "nats":
        from netclust.stream.bus.nats_bus import NatsReader

        return NatsReader(address, lane)
    from netclust.stream.bus.redis_bus import RedisReader

    return RedisReader(address, lane)


def open_writer(url: str, lanes: int) -> LaneWriter:
    """A writer to so many lanes, not yet opened; 0 lanes: to the topic itself, as lane -1."""
    address = parse_bus_url(url)
    if not 0 <= lanes <= MAX_LANES:
        raise InputError(f"{address}: {lanes} lanes: 1 to {MAX_LANES}, or 0 for the topic undivided")
    if address.kind == "memory":
        return memory_bus(address.servers[0]).writer(address.topic, lanes)
    if address.kind == "kafka":
        from netclust.stream.bus.kafka_bus import KafkaWriter

        return KafkaWriter(address, lanes)
    if address.kind == "nats":
        from netclust.stream.bus.nats_bus import NatsWriter

        return NatsWriter(address, lanes)
    from netclust.stream.bus.redis_bus import RedisWriter

    return RedisWriter(address, lanes)


def check_bus(url: str) -> BusUrl:
    """All that can be known of a URL before it is used: its form, its files, and that the client library is there."""
    address = parse_bus_url(url)
    open_reader(url, UNDIVIDED)
    address.password()
    return address
