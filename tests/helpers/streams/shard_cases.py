"""Records of a simulated office cut into partitions, what shards say of them in one process and in several."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from brokers import patiently
from needed import need_module

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.factory import open_reader, open_writer
from netclust.stream.bus.record_messages import merged, pack_records
from netclust.stream.config import Config, SourceConfig, parse_config
from netclust.stream.sharding.shard import Output, Shard
from netclust.stream.sources.captures import open_packet_source

PARTITIONS = 4
ROWS = 32
PATIENCE = 120.0
CONN = load_shipped("conn")


def office(folder: Path, *, hours: float = 0.1, seed: int = 3, **options: Any) -> Table:
    """Connections of a simulated office with attacks, as schema `conn` has them."""
    path = folder / f"office-{hours}-{seed}.pcap"
    simulate_capture(path, hours=hours, seed=seed, attacks="all", **options)
    source = open_packet_source(SourceConfig(kind="capture", name="in", path=str(path)), CONN.encoding.schema)
    source.open(None)
    tables = []
    for arrival in source:
        if len(arrival.table):
            arrival.table.context = arrival.context_of(np.arange(len(arrival.table)))
            tables.append(arrival.table)
    source.close()
    return merged(tables)


def messages(
    table: Table, partitions: int = PARTITIONS, rows: int = ROWS, sensor: str = "probe-1", source: str = "eth0"
) -> list[Outgoing]:
    """A sensor's messages in the order in which it sends them."""
    found = []
    for begin in range(0, len(table), rows * partitions):
        some = table[begin : begin + rows * partitions]
        for partition in range(partitions):
            part = some[some.key % np.uint64(partitions) == partition]
            if len(part):
                found.append(Outgoing(partition, 0, pack_records(part, sensor=sensor, stream="s1", source=source)))
    return found


def settings(more: str = "", *, warmup: int = 0, partitions: int = PARTITIONS) -> Config:
    """A configuration of a cluster whose bus is never reached."""
    return parse_config(
        f'[sharding]\ninput = "memory://x/records"\nevents = "memory://x/events"\npartitions = {partitions}\n'
        f'[model]\npath = "conn"\n[warmup]\nrecords = {warmup}\nreferences = {warmup // 2}\n'
        f'[verdicts]\nwhich = "all"\n{more}'
    )


def alone(
    sent: Sequence[Outgoing], config: Config, partitions: int = PARTITIONS, model: Model = CONN
) -> list[list[Output]]:
    """What P shards in one process say, by partition."""
    return [
        Shard(model, config, p, partitions).step([m.body for m in sent if m.partition == p]) for p in range(partitions)
    ]


def by_kind(outputs: Sequence[Output], kind: str) -> list[tuple[int, bytes]]:
    """Numbers and messages of one kind."""
    return [(o.number, o.body) for o in outputs if o.kind == kind]


class ShardsProcess:
    """`netclust shards run` on a bus."""

    def __init__(self, folder: Path, bus: Callable[[str], str], more: str = "", *, partitions: int = PARTITIONS,
                 epoch: float = 0.3, warmup: int = 0) -> None:  # fmt: skip
        need_module("bytewax")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.partitions = folder, partitions
        self.urls = {name: bus(name) for name in ("input", "verdicts", "events", "campaigns")}
        urls = "".join(f'{name} = "{url}"\n' for name, url in self.urls.items())
        self.config = folder / "netclust.toml"
        self.config.write_text(
            f'[sharding]\n{urls}partitions = {partitions}\nrecovery = "{folder}/recovery"\nepoch_seconds = {epoch}\n'
            f'batch_messages = 4\nmax_restarts = 1000\n[model]\npath = "conn"\n[verdicts]\nwhich = "all"\n'
            f"[warmup]\nrecords = {warmup}\nreferences = {warmup // 2}\n{more}"
        )
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def send(self, sent: Sequence[Outgoing]) -> None:
        """What sensors do: without an acknowledgement all of it is sent again, and shards count it once."""
        writer = open_writer(self.urls["input"], self.partitions)

        def attempt() -> None:
            writer.open()
            writer.send(sent)

        patiently(attempt)
        writer.close()

    def received(self, topic: str, partition: int) -> list[tuple[int, bytes]]:
        """All messages of a partition."""
        reader = open_reader(self.urls[topic], partition)

        def attempt() -> list[tuple[int, bytes]]:
            reader.open(None)
            count, deadline = reader.waiting(None), time.monotonic() + PATIENCE
            found: list[tuple[int, bytes]] = []
            while len(found) < count:  # that nothing comes for a while does not mean that this was all
                assert time.monotonic() < deadline, (
                    f"{len(found)} of {count} messages of {topic}, partition {partition}"
                )
                found += [(m.number, m.body) for m in reader.take(0.2, 1000)]
            return found

        found = patiently(attempt)
        reader.close()
        return found

    def start(self, workers: int, *words: str) -> ShardsProcess:
        """Begin, in a session of its own."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "netclust", "shards", "run", "-c", str(self.config), f"-w{workers}", *words],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=dict(os.environ),
            )  # fmt: skip
        return self

    def workers(self) -> list[int]:
        """Process ids of the workers that are there."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()] if children.exists() else []

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def stop(self) -> int:
        """End it cleanly."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def judged(self) -> int:
        """Verdicts that were written."""
        return sum(body.count(b"\n") for p in range(self.partitions) for _, body in self.received("verdicts", p))

    def until(self, done: Callable[[], bool], what: str) -> None:
        """Wait for something."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert self.process is not None
            assert self.process.poll() is None, f"it ended before {what}:\n{self.log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, f"no {what}:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.1)

    def __enter__(self) -> ShardsProcess:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()  # workers end with it
            self.process.wait()


def alerts(found: Sequence[tuple[int, bytes]]) -> Iterator[dict[str, Any]]:
    """The alerts among events."""
    for _, body in found:
        document = json.loads(body)
        if "alert" in document["netclust"]:
            yield document
