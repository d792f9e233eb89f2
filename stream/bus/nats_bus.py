"""The bus on NATS: a partition is the subject `TOPIC.PARTITION` of one JetStream stream, `TOPIC` undivided.

A stream that is missing is made: on disk, 1 GiB and 7 days at most, unless the URL says otherwise.
Reading leaves no consumer behind: an ephemeral one, which acknowledges nothing, begins at a sequence of the stream.
A number is in a header. Within a partition a message waits for the one before, so that none is missing before a later
one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.stream.bus.addresses import UNDIVIDED, BusUrl
from netclust.stream.bus.base import BusError, Incoming, MessageRefusedError, Outgoing

__all__ = ["NatsReader", "NatsWriter"]

MAX_BYTES = 1 << 30
MAX_AGE = 7 * 86_400
NUMBER = "Netclust-Number"
PULL_MESSAGES = 256
PULL_SECONDS = 30.0
HEARTBEAT_SECONDS = 2.0
"""While there is nothing, the server says this often that it is still there."""
SILENT_SECONDS = 4 * HEARTBEAT_SECONDS

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
Result = TypeVar("Result")


class _Loop:
    """One event loop in a thread of its own for all clients of this process; it ends with the last of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def enter(self) -> None:
        """One more user."""
        with self._lock:
            self._users += 1
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name="nats", daemon=True)
                self._thread.start()

    def leave(self) -> None:
        """One less."""
        with self._lock:
            self._users -= 1
            if self._users or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5.0)
            self._loop = self._thread = None

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    def call(self, job: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """What a coroutine returns; TimeoutError after so many seconds."""
        loop = self._loop
        if loop is None:
            job.close()
            raise ConnectionError("is closed")
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(job, seconds), loop)
        try:
            return future.result(seconds + 1.0)
        finally:
            future.cancel()


_loop = _Loop()


class _Client:
    """A connection that is made when it is needed, and let go when it fails."""

    def __init__(self, address: BusUrl, *, makes: bool = True) -> None:
        self.address = address
        self.timeout = address.timeout
        self.stream = address.options.get("stream", "")
        self._makes = makes  # a stream that is missing
        self.connection: Any = None
        self.jetstream: Any = None
        self._max_bytes = address.number("max_bytes", MAX_BYTES, least=1 << 20)
        self._max_age = address.number("max_age", MAX_AGE, least=1)
        self._replicas = address.number("replicas", 1, least=1, most=5)
        require_optional("nats", str(address), "nats")
        self._library = require_optional("nats.aio.client", str(address), "nats")
        self.errors = require_optional("nats.errors", str(address), "nats")
        self.js_errors = require_optional("nats.js.errors", str(address), "nats")
        self.api = require_optional("nats.js.api", str(address), "nats")
        self._entered = False

    def subject(self, partition: int) -> str:
        """Return the subject of a partition."""
        return self.address.topic if partition == UNDIVIDED else f"{self.address.topic}.{partition}"

    def run(self, job: Callable[[], Awaitable[Result]], seconds: float | None = None) -> Result:
        """Connect if need be and do something; whatever goes wrong becomes a BusError, and the next call connects."""
        if not self._entered:
            self._entered = True
            _loop.enter()
        try:
            return _loop.call(self._connected(job), self.timeout if seconds is None else seconds)
        except InputError:
            raise
        except self.errors.MaxPayloadError:
            raise MessageRefusedError(f"{self.address}: a message is larger than the server's max_payload") from None
        except (self.errors.Error, OSError, TimeoutError, ValueError, *_CANCELLED) as error:
            self._leave_loop()
            why = str(error) or type(error).__name__
            if isinstance(error, self.js_errors.ServiceUnavailableError):  # it says nothing by itself
                why = "the server has no JetStream, or not yet: start it with `nats-server -js`"
            raise BusError(f"{self.address}: {why}") from None

    async def _connected(self, job: Callable[[], Awaitable[Result]]) -> Result:
        if self.connection is None or self.connection.is_closed:
            await self._connect()
        return await job()

    async def _connect(self) -> None:
        address = self.address
        failure: Exception | None = None

        async def on_error(error: Exception) -> None:
            nonlocal failure
            failure = error

        options: dict[str, Any] = {"allow_reconnect": False, "connect_timeout": self.timeout, "error_cb": on_error}
        options |= {"max_reconnect_attempts": 1, "reconnect_time_wait": 0}
        password = address.password()
        if address.user:
            options |= {"user": address.user, "password": password}
        elif password:
            options["token"] = password
        if address.tls:
            options["tls"] = _tls(address)
        for server in address.servers:
            self.connection = self._library.Client()
            try:
                await self.connection.connect(f"nats://{server}", name="netclust", **options)
                self.jetstream = self.connection.jetstream(timeout=self.timeout)
                return await self._find_stream()
            except (self.errors.Error, OSError, TimeoutError) as error:
                await self._end(self.connection)
                self.connection, failure = None, failure or error
        raise failure or ConnectionError("no server")

    async def _find_stream(self) -> None:
        """The stream that has the subjects: the named one, the one that there is, or a new one."""
        topic = self.address.topic
        subjects = [topic, f"{topic}.*"]
        if not self.stream:
            with contextlib.suppress(self.js_errors.NotFoundError):
                self.stream = await self.jetstream.find_stream_name_by_subject(topic)
        if self.stream:
            with contextlib.suppress(self.js_errors.NotFoundError):
                await self.jetstream.stream_info(self.stream)
                return
        if not self._makes:
            raise ConnectionError("the stream is not there (yet)")
        self.stream = self.stream or topic.replace(".", "_")
        config = self.api.StreamConfig(
            name=self.stream,
            subjects=subjects,
            storage=self.api.StorageType.FILE,
            max_bytes=self._max_bytes,
            max_age=self._max_age,
            num_replicas=self._replicas,
        )
        try:
            await self.jetstream.add_stream(config)
        except self.js_errors.BadRequestError as error:
            with contextlib.suppress(self.js_errors.NotFoundError):  # somebody else was faster
                await self.jetstream.stream_info(self.stream)
                return
            raise InputError(f"{self.address}: stream {self.stream} cannot be made: {error.description}") from None

    def _leave_loop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                _loop.call(self._end(connection), 1.0)

    @staticmethod
    async def _end(connection: Any) -> None:
        if connection is not None:
            with contextlib.suppress(Exception, asyncio.CancelledError):  # the library cancels what it waits for
                await asyncio.wait_for(connection.close(), 0.5)
            transport = getattr(connection, "_transport", None)  # what was never connected is not closed by that
            if transport is not None:
                with contextlib.suppress(Exception, asyncio.CancelledError):
                    transport.close()
                    await asyncio.wait_for(transport.wait_closed(), 0.5)

    def close(self) -> None:
        """Let go of everything; it may be used again."""
        self._leave_loop()
        if self._entered:
            self._entered = False
            _loop.leave()


def _tls(address: BusUrl) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca_file or None)
        if "tls_cert" in address.options:
            context.load_cert_chain(address.options["tls_cert"], address.options["tls_key"])
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{address}: its certificates cannot be used: {error}") from None
    return context


def _number(headers: Any) -> int:
    text = (headers or {}).get(NUMBER, "0")
    return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else 0


class NatsReader:
    """A reader of one partition. Positions are sequences; `lost`: how often messages behind one were removed."""

    def __init__(self, address: BusUrl, partition: int) -> None:
        self._client = _Client(address)
        self._subject = self._client.subject(partition)
        self._at = 0
        self._subscription: Any = None
        self._consumer = ""
        self._expected = 1  # the next message's number with this consumer: none was lost on the way
        self._requested = 0  # messages that the server was asked for and has not sent
        self._last_heard = 0.0
        self.lost = 0

    def open(self, position: str | None) -> None:
        """Go on behind a sequence."""
        at = self._parsed(position)
        self._client.close()
        self._at = at
        self._client.run(self._begin)

    def _parsed(self, position: str | None) -> int:
        if position is not None and not (position.isascii() and position.isdigit() and len(position) < 20):
            raise InputError(f"{self._client.address}: {position[:40]!r} is no position in a NATS stream")
        return int(position or 0)

    async def _begin(self) -> None:
        client = self._client
        state = (await client.jetstream.stream_info(client.stream)).state
        if self._at > state.last_seq:  # another stream than the one that was read
            self._at = 0
            self.lost += 1
        elif self._at and state.first_seq > self._at + 1:
            self.lost += 1
        inbox = client.connection.new_inbox()
        self._subscription = await client.connection.subscribe(inbox)
        info = await self._consumer_behind(client, self._at)
        self._inbox, self._consumer = inbox, info.name
        self._expected, self._requested, self._last_heard = 1, 0, time.monotonic()

    async def _consumer_behind(self, client: _Client, at: int) -> Any:
        """What the server says of a consumer of our own, which it forgets by itself."""
        api = client.api
        return await client.jetstream.add_consumer(
            client.stream,
            api.ConsumerConfig(
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=at + 1,
                ack_policy=api.AckPolicy.NONE,
                filter_subject=self._subject,
                inactive_threshold=4 * PULL_SECONDS,
                mem_storage=True,
                num_replicas=1,
            ),
        )

    def take(self, timeout: float, most: int) -> list[Incoming]:
        """The next messages."""
        if self._client.connection is None:
            self._client.run(self._begin)
        found = self._client.run(lambda: self._take(timeout, max(most, 1)), timeout + self._client.timeout)
        if found:
            self._at = int(found[-1].position)
        return found

    def waiting(self, position: str | None) -> int:
        """What a consumer would be sent, which is made and removed again: nobody else's is touched."""
        at = self._parsed(position)
        client = _Client(self._client.address, makes=False)
        try:
            return client.run(lambda: self._count(client, at))
        finally:
            client.close()

    async def _count(self, client: _Client, at: int) -> int:
        state = (await client.jetstream.stream_info(client.stream)).state
        info = await self._consumer_behind(client, at if at <= state.last_seq else 0)
        await client.jetstream.delete_consumer(client.stream, info.name)
        return int(info.num_pending or 0)

    async def _take(self, timeout: float, most: int) -> list[Incoming]:
        deadline = time.monotonic() + timeout
        found: list[Incoming] = []
        if not self._subscription.pending_msgs:
            await self._pull()
        while len(found) < most:
            waiting = self._subscription.pending_msgs
            if found and not waiting:
                break
            patience = min(deadline, self._last_heard + SILENT_SECONDS) - time.monotonic()
            try:
                message = await self._subscription.next_msg(timeout=max(patience, 0.001))
            except self._client.errors.TimeoutError:
                if time.monotonic() - self._last_heard >= SILENT_SECONDS:
                    raise ConnectionError("nothing is heard of the server") from None
                break
            self._last_heard = time.monotonic()
            if message.headers is not None and "Status" in message.headers:
                await self._note_status(message.headers)
            else:
                found.append(self._incoming(message))
        return found

    async def _pull(self) -> None:
        if self._requested > 0:
            return
        request = {"batch": PULL_MESSAGES, "expires": int(PULL_SECONDS * 1e9)}
        request["idle_heartbeat"] = int(HEARTBEAT_SECONDS * 1e9)
        name = f"$JS.API.CONSUMER.MSG.NEXT.{self._client.stream}.{self._consumer}"
        await self._client.connection.publish(name, msgspec.json.encode(request), reply=self._inbox)
        self._requested, self._last_heard = PULL_MESSAGES, time.monotonic()

    async def _note_status(self, headers: dict[str, str]) -> None:
        status = headers["Status"]
        if status in ("404", "408"):  # the time of a request is up
            self._requested = 0
            await self._pull()
        elif status != "100":
            raise ConnectionError(f"the server says {status} {headers.get('Description', '')}")

    def _incoming(self, message: Any) -> Incoming:
        sequence = message.metadata.sequence
        if sequence.consumer != self._expected:
            raise ConnectionError("a message was lost on the way: it is read again")
        self._expected += 1
        self._requested -= 1
        return Incoming(str(sequence.stream), message.data, _number(message.headers))

    def close(self) -> None:
        """Let go; the server forgets the consumer by itself."""
        self._client.close()


class NatsWriter:
    """A writer to `partitions` subjects."""

    def __init__(self, address: BusUrl, partitions: int) -> None:
        self._client = _Client(address)
        self._partitions = range(partitions) if partitions else range(UNDIVIDED, 0)
        self._last: dict[int, int] = {}  # what is known of the newest numbers, until something fails

    def open(self) -> None:
        """Reach the server; make the stream if there is none."""
        self._client.close()
        self._last = {}
        self._client.run(self._nothing)

    async def _nothing(self) -> None:
        pass

    def last(self, partition: int) -> int:
        """The number of the newest message."""
        return self._client.run(lambda: self._fetch_last(partition))

    async def _fetch_last(self, partition: int) -> int:
        client = self._client
        try:
            message = await client.jetstream.get_last_msg(client.stream, client.subject(partition))
        except client.js_errors.NotFoundError:
            return 0
        return _number(message.headers)

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish; a number that is not above the last one is there already."""
        partitions: dict[int, list[Outgoing]] = {}
        for message in messages:
            if message.partition not in self._partitions:
                raise InputError(
                    f"{self._client.address}: there are {len(self._partitions)} partitions, "
                    f"no partition {message.partition}"
                )
            partitions.setdefault(message.partition, []).append(message)
        deadline = time.monotonic() + self._client.timeout * (1 + len(messages) / 100)
        try:
            for part in _turns(partitions):
                left = max(deadline - time.monotonic(), 0.1)
                self._client.run(lambda part=part: self._send(part), left)  # type: ignore[misc]
        except BaseException:
            self._last = {}
            raise

    async def _send(self, partitions: dict[int, list[Outgoing]]) -> None:
        await asyncio.gather(*(self._send_partition(partition, messages) for partition, messages in partitions.items()))

    async def _send_partition(self, partition: int, messages: list[Outgoing]) -> None:
        client = self._client
        subject = client.subject(partition)
        for message in messages:
            headers = None
            if message.number:
                if partition not in self._last:
                    self._last[partition] = await self._fetch_last(partition)
                if message.number <= self._last[partition]:
                    continue
                headers = {NUMBER: str(message.number), "Nats-Msg-Id": f"{subject}:{message.number}"}
            await client.jetstream.publish(subject, message.body, stream=client.stream, headers=headers)
            if message.number:
                self._last[partition] = message.number

    def close(self) -> None:
        """Let go."""
        self._client.close()


def _turns(partitions: dict[int, list[Outgoing]], most: int = 100) -> list[dict[int, list[Outgoing]]]:
    """Return the same messages in parts of at most `most` per partition."""
    longest = max((len(messages) for messages in partitions.values()), default=0)
    return [
        {partition: messages[at : at + most] for partition, messages in partitions.items() if messages[at : at + most]}
        for at in range(0, longest, most)
    ]
