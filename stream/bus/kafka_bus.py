"""The bus on Kafka: partitions are those of a topic. Undivided, readers take all and writers leave it to Kafka.

Partitions are assigned, not subscribed to, and offsets are ours to keep: there is no consumer group to rebalance. A
number is in a header. The producer is idempotent and waits for all replicas; what a broken connection leaves in doubt
is settled by reading the last message of the partition.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.stream.bus.addresses import UNDIVIDED, BusUrl
from netclust.stream.bus.base import BusError, Incoming, MessageRefusedError, Outgoing

__all__ = ["KafkaReader", "KafkaWriter"]

NUMBER = "netclust-number"
_TOO_LARGE = ("MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE", "_MSG_SIZE_TOO_LARGE")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class _Library:
    """confluent_kafka, and how its errors become ours."""

    def __init__(self, address: BusUrl) -> None:
        self.address = address
        self.timeout = address.timeout
        self.kafka = require_optional("confluent_kafka", str(address), "kafka")
        self.trouble = ""  # what librdkafka said last in the background

    def settings(self, **more: Any) -> dict[str, Any]:
        """Of any client."""
        address = self.address
        milliseconds = int(self.timeout * 1000)
        found: dict[str, Any] = {
            "bootstrap.servers": ",".join(address.servers),
            "client.id": "netclust",
            "socket.timeout.ms": max(milliseconds, 1000),
            "socket.connection.setup.timeout.ms": max(milliseconds, 1000),
            "reconnect.backoff.max.ms": 2000,
            "log_level": 0,
            "error_cb": self._on_error,
        }
        if address.tls:
            files = {"ssl.ca.location": address.ca_file, "ssl.certificate.location": address.options.get("tls_cert")}
            files["ssl.key.location"] = address.options.get("tls_key")
            found |= {"security.protocol": "SSL"} | {name: path for name, path in files.items() if path}
        if address.user:
            mechanism = address.options.get("mechanism", "SCRAM-SHA-512")
            if mechanism not in _MECHANISMS:
                raise InputError(f"{address}: mechanism={mechanism[:40]}: {', '.join(_MECHANISMS)}")
            found |= {"security.protocol": "SASL_SSL" if address.tls else "SASL_PLAINTEXT"}
            found |= {"sasl.mechanism": mechanism, "sasl.username": address.user, "sasl.password": address.password()}
        return found | more

    def _on_error(self, error: Any) -> None:
        self.trouble = str(error.str())

    def partitions(self, client: Any) -> int:
        """How many the topic has; 0: there is no such topic."""
        try:
            # All topics, as to ask for one may make it, with another number of partitions.
            found = client.list_topics(timeout=self.timeout).topics.get(self.address.topic)
        except self.kafka.KafkaException as error:
            raise self.failed(error) from None
        return 0 if found is None or found.error is not None else len(found.partitions)

    def watermarks(self, consumer: Any, partition: int) -> tuple[int, int]:
        """The oldest offset of a partition, and the one that the next message will have."""
        place = self.kafka.TopicPartition(self.address.topic, partition)
        try:
            found = consumer.get_watermark_offsets(place, timeout=self.timeout)
        except self.kafka.KafkaException as error:
            raise self.failed(error) from None
        if found is None:
            raise BusError(f"{self.address}: no answer in {self.timeout:g} seconds")
        low, high = found
        return int(low), int(high)

    def consumer(self) -> Any:
        """One that is not in any group."""
        return self.kafka.Consumer(
            self.settings(
                **{
                    "group.id": "netclust",  # named, as the library wants; never joined
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 100,
                    "queued.max.messages.kbytes": 16_384,
                    "allow.auto.create.topics": False,
                }
            )
        )

    def failed(self, error: Any) -> BusError:
        """An error that may pass."""
        return BusError(f"{self.address}: {error.args[0].str() if error.args else error}")


def _number(headers: Any) -> int:
    for name, value in headers or ():
        if name == NUMBER and value is not None and len(value) < 20 and value.isdigit():
            return int(value)
    return 0


def _begin_at(wanted: int, low: int, high: int) -> int:
    """The offset to go on at: the oldest one where those that were wanted are gone, or are of another topic."""
    return wanted if low <= wanted <= high else low


class KafkaReader:
    """Reads a partition, or all. A position is an offset, of several `PARTITION:OFFSET,...`; `lost` counts messages."""

    def __init__(self, address: BusUrl, partition: int) -> None:
        self._library = _Library(address)
        self._partition = partition
        self._consumer: Any = None
        self._at: dict[int, int] = {}  # the next offset, by partition
        self.lost = 0

    def open(self, position: str | None) -> None:
        """Go on behind a position. Partitions that were added since begin with their oldest message."""
        self._at = self._parsed(position)
        self.close()
        self._begin()

    def _parsed(self, position: str | None) -> dict[int, int]:
        if position is None:
            return {}
        try:
            parts = [part.split(":") for part in position[:200_000].split(",")] if self._partition == UNDIVIDED else []
            found = {int(p): int(o) + 1 for p, o in parts} if parts else {self._partition: int(position) + 1}
        except ValueError:
            found = {-1: 0}
        if min(found) < 0 or min(found.values()) < 0 or max(found.values()) >= 1 << 62:
            raise InputError(f"{self._library.address}: {position[:40]!r} is no position in a Kafka topic")
        return found

    def _begin(self) -> None:
        library = self._library
        consumer = library.consumer()
        try:
            at = {}
            for partition, (low, high) in self._bounds(consumer).items():
                wanted = self._at.get(partition, low)
                at[partition] = _begin_at(wanted, low, high)
                self.lost += max(low - wanted, 0) + (wanted > high)
            topic = library.address.topic
            consumer.assign([library.kafka.TopicPartition(topic, p, offset) for p, offset in at.items()])
        except library.kafka.KafkaException as error:
            consumer.close()
            raise library.failed(error) from None
        except BaseException:
            consumer.close()
            raise
        self._at, self._consumer = at, consumer
        library.trouble = ""

    def _bounds(self, consumer: Any) -> dict[int, tuple[int, int]]:
        """Of every partition that is read its oldest offset, and the one that the next message will have."""
        library = self._library
        there = library.partitions(consumer)
        partitions = range(there) if self._partition == UNDIVIDED else [self._partition]
        if not there or max(partitions) >= there:
            what = f"has {there} partitions, and none numbered {self._partition}" if there else "is not there (yet)"
            raise BusError(f"{library.address}: the topic {what}")
        return {partition: library.watermarks(consumer, partition) for partition in partitions}

    def take(self, timeout: float, most: int) -> list[Incoming]:
        """The next messages."""
        if self._consumer is None:
            self._begin()
        library = self._library
        try:
            messages = self._consumer.consume(num_messages=1, timeout=max(timeout, 0.001))
            if messages and most > 1:  # what has come with it
                messages += self._consumer.consume(num_messages=most - 1, timeout=0.02)
        except library.kafka.KafkaException as error:
            self.close()
            raise library.failed(error) from None
        found: list[Incoming] = []
        for message in messages:
            if (wrong := message.error()) is not None:
                self.close()  # what is behind it is read again
                if not found:
                    raise BusError(f"{library.address}: {wrong.str()}")
                break
            if message.offset() < self._at[message.partition()]:  # a fetch that was under way when it was assigned
                continue
            self._at[message.partition()] = message.offset() + 1
            found.append(Incoming(self._position(), message.value() or b"", _number(message.headers())))
        if not found and library.trouble:
            self.close()
            raise BusError(f"{library.address}: {library.trouble}")
        return found

    def waiting(self, position: str | None) -> int:
        """By offsets: where a topic is compacted or has transactions, there may be fewer."""
        at = self._parsed(position)
        consumer = self._library.consumer()
        try:
            bounds = self._bounds(consumer)
        finally:
            consumer.close()
        return sum(high - _begin_at(at.get(partition, low), low, high) for partition, (low, high) in bounds.items())

    def _position(self) -> str:
        if self._partition != UNDIVIDED:
            return str(self._at[self._partition] - 1)
        return ",".join(f"{partition}:{offset - 1}" for partition, offset in self._at.items())

    def close(self) -> None:
        """Let go."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


class KafkaWriter:
    """A writer to `partitions` partitions of a topic, which is made if there is none."""

    def __init__(self, address: BusUrl, partitions: int) -> None:
        self._library = _Library(address)
        self._partitions = range(partitions) if partitions else range(UNDIVIDED, 0)
        self._replicas = address.number("replicas", 0, most=32) or -1  # -1: as the cluster is set up
        self._producer: Any = None
        self._last: dict[int, int] = {}  # what is known of the newest numbers, until something fails
        self._refused: list[Any] = []

    def open(self) -> None:
        """Reach the cluster; make the topic, or see that it has partitions enough."""
        self.close()
        self._begin()

    def _begin(self) -> None:
        library = self._library
        producer = library.kafka.Producer(
            library.settings(
                **{
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 5,
                    "compression.type": "lz4",
                    "delivery.timeout.ms": max(int(library.timeout * 1000), 1000),
                }
            )
        )
        there = library.partitions(producer) or self._make()
        if there < len(self._partitions):
            raise InputError(
                f"{library.address}: the topic has {there} partitions, {len(self._partitions)} are needed: "
                "add partitions, or take another topic"
            )
        self._producer, self._last, library.trouble = producer, {}, ""

    def _make(self) -> int:
        library = self._library
        admin = require_optional("confluent_kafka.admin", str(library.address), "kafka")
        topic = admin.NewTopic(library.address.topic, len(self._partitions), self._replicas)
        client = admin.AdminClient(library.settings())
        try:
            made = client.create_topics([topic], operation_timeout=library.timeout, request_timeout=library.timeout)
            made[library.address.topic].result(library.timeout + 1.0)
        except (library.kafka.KafkaException, TimeoutError) as error:
            if not library.partitions(client):  # else somebody else was faster
                raise BusError(f"{library.address}: the topic cannot be made: {error}") from None
        return library.partitions(client)

    def last(self, partition: int) -> int:
        """The number of the newest message."""
        library = self._library
        consumer = library.consumer()
        try:
            low, high = library.watermarks(consumer, partition)
            deadline = time.monotonic() + library.timeout
            # The newest offset may hold no message (a transaction's end, something compacted): look before it, too.
            for begin in sorted({max(low, high - 1), max(low, high - 100)}, reverse=True):
                newest = self._newest(consumer, partition, begin, high, deadline)
                if newest is not None:
                    return newest
            return 0
        except library.kafka.KafkaException as error:
            raise library.failed(error) from None
        finally:
            consumer.close()

    def _newest(self, consumer: Any, partition: int, begin: int, end: int, deadline: float) -> int | None:
        """The number of the last message from one offset up to another; None: there is no message."""
        if begin >= end:
            return 0
        library = self._library
        consumer.assign([library.kafka.TopicPartition(library.address.topic, partition, begin)])
        number: int | None = None
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                number = _number(message.headers())
                if message.offset() >= end - 1:
                    return number
            elif message is None and consumer.position(consumer.assignment())[0].offset >= end:
                return number
        raise BusError(f"{library.address}: partition {partition} cannot be read in {library.timeout:g} seconds")

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Produce; a number that is not above the last one is there already."""
        library = self._library
        for message in messages:
            if message.partition not in self._partitions:
                raise InputError(
                    f"{library.address}: there are {len(self._partitions)} partitions, no partition {message.partition}"
                )
        if self._producer is None:
            self._begin()
        self._refused = []
        try:
            for message in messages:
                self._produce(message)
            left = self._producer.flush(library.timeout + 1.0)
        except library.kafka.KafkaException as error:
            self._give_up()
            if error.args[0].name() in _TOO_LARGE:
                raise MessageRefusedError(f"{library.address}: a message is too large: {error.args[0].str()}") from None
            raise library.failed(error) from None
        except BaseException:
            self._give_up()
            raise
        if left or self._refused:
            refused = self._refused
            self._give_up()
            if refused and refused[0].name() in _TOO_LARGE:
                raise MessageRefusedError(f"{library.address}: a message is too large: {refused[0].str()}")
            why = refused[0].str() if refused else library.trouble or "no answer"
            raise BusError(f"{library.address}: {why}")

    def _produce(self, message: Outgoing) -> None:
        partition, number = message.partition, message.number
        headers = None
        if number:
            if partition not in self._last:
                self._last[partition] = self.last(max(partition, 0))
            if number <= self._last[partition]:
                return
            self._last[partition] = number
            headers = [(NUMBER, str(number).encode())]
        chosen = {} if partition == UNDIVIDED else {"partition": partition}
        deadline = time.monotonic() + self._library.timeout
        while True:
            try:
                self._producer.produce(
                    self._library.address.topic, message.body, headers=headers, on_delivery=self._on_delivery, **chosen
                )
                break
            except BufferError:
                self._producer.poll(0.05)
                if time.monotonic() > deadline:
                    raise BusError(f"{self._library.address}: no answer in {self._library.timeout:g} seconds") from None
        self._producer.poll(0)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._refused.append(error)

    def _give_up(self) -> None:
        """What is left in the producer must not come later, behind what is sent again."""
        producer, self._producer, self._last = self._producer, None, {}
        if producer is not None:
            producer.purge()
            producer.flush(0.5)

    def close(self) -> None:
        """Let go."""
        self._give_up()
