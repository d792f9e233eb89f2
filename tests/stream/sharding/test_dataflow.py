"""The dataflow on real brokers: what shards in one process say, once; stopped, rescaled, told labels, refused."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import shard_cases as cases
from daemon_cases import cli
from needed import need_module
from shard_cases import CONN, PARTITIONS, ShardsProcess

from netclust.errors import InputError
from netclust.stream.bus.base import BusError, Incoming, MessageRefusedError, Outgoing
from netclust.stream.bus.factory import memory_bus
from netclust.stream.bus.record_messages import LabelMessage, pack_label
from netclust.stream.config import Config, ShardingConfig, parse_config
from netclust.stream.sharding.placement import partition_keys, sip_hash
from netclust.stream.sharding.recovery import lock_recovery, prepare_recovery

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def _bytewax_is_here() -> None:
    need_module("bytewax")


TOPICS = ("input", "verdicts", "events", "campaigns")


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> list[Outgoing]:
    return cases.messages(cases.office(tmp_path_factory.mktemp("office")))


# Of the whole story one broker is enough each time: reading and writing is the same for all (test_bus_conformance.py).
@pytest.mark.parametrize(
    "broker",
    ["redis", pytest.param("nats", marks=pytest.mark.long), pytest.param("kafka", marks=pytest.mark.long)],
    indirect=True,
)
def test_labels_stops_and_other_numbers_of_workers_change_nothing(
    broker: Any, sent: list[Outgoing], tmp_path: Path
) -> None:
    if "kafka" in broker.url("x"):  # its mock is slow
        sent = sent[:60]
    half = len(sent) // 2
    with ShardsProcess(tmp_path / "c", broker.url) as engine:
        engine.send(sent[:half])
        assert engine.start(2, "--until-idle", "2").wait() == 0, engine.log.read_text()
        first = cases.alone(sent[:half], cases.settings())
        lines = [json.loads(line) for o in first[1] if o.kind == "verdicts" for line in o.body.splitlines()]
        target = f"{lines[-1]['sensor']}/{lines[-1]['source']}:{lines[-1]['seq']}"
        told = cli("shards", "label", "-c", str(engine.config), target, "attack:worm", "--by", "ann")
        assert told.returncode == 0, told.stderr
        engine.send(sent[half:])
        assert engine.start(1, "--until-idle", "2").wait() == 0, engine.log.read_text()
        assert "skipped=0" in engine.log.read_text()
        label = _heard(engine)
        labels = [Outgoing(partition, 0, pack_label(label)) for partition in range(PARTITIONS)]
        expected = cases.alone([*sent[:half], *labels, *sent[half:]], cases.settings())
        for p in range(PARTITIONS):
            for kind in ("verdicts", "events"):
                assert engine.received(kind, p) == cases.by_kind(expected[p], kind), (kind, p)
        assert any(b"label l-" in body for _, body in engine.received("events", 1))
        numbers = [number for number, _ in engine.received("campaigns", 0)]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("broker", [pytest.param("nats", marks=pytest.mark.story), "kafka"], indirect=True)
def test_another_broker_changes_nothing(broker: Any, sent: list[Outgoing], tmp_path: Path) -> None:
    sent = sent[:24]
    with ShardsProcess(tmp_path / "c", broker.url) as engine:
        engine.send(sent)
        assert engine.start(1, "--until-idle", "2").wait() == 0, engine.log.read_text()
        expected = cases.alone(sent, cases.settings())
        for p in range(PARTITIONS):
            for kind in ("verdicts", "events"):
                assert engine.received(kind, p) == cases.by_kind(expected[p], kind), (kind, p)


def _heard(engine: ShardsProcess) -> LabelMessage:
    """The label that the command wrote, in every partition."""
    import msgspec

    found = {body for p in range(PARTITIONS) for _, body in engine.received("input", p) if body[:1] == b"{"}
    (body,) = found
    return msgspec.json.decode(body, type=LabelMessage)


# Within this process, on the bus in memory


def whole_config(folder: Path, more: str = "") -> tuple[Config, ShardingConfig]:
    urls = "".join(f'{topic} = "memory://{folder.name}/{topic}"\n' for topic in TOPICS)
    config = parse_config(
        f'[sharding]\n{urls}partitions = {PARTITIONS}\nrecovery = "{folder}/recovery"\nbatch_messages = 2\n'
        f'[model]\npath = "conn"\n[verdicts]\nwhich = "all"\n[warmup]\nrecords = 0\n{more}'
    )
    assert config.sharding is not None
    return config, config.sharding


def run_here(folder: Path, workers: int, fail_after: int | None = None) -> dict[int, int]:
    """Run the flow on worker threads until the partitions are empty, or until so many writes; thread of every shard."""
    from bytewax.recovery import RecoveryConfig
    from bytewax.testing import cluster_main

    from netclust.stream.sharding.dataflow import build_flow
    from netclust.stream.sharding.partitions import Progress
    from netclust.stream.sharding.shard import Shard

    config, engine = whole_config(folder)
    store = prepare_recovery(Path(engine.recovery), engine)
    threads: dict[int, int] = {}

    def watch(shard: Shard) -> None:
        threads[shard.partition] = threading.get_ident()

    progress = Progress(until_idle=0.3)
    bus = memory_bus(folder.name)
    memory = bus.writer
    left = [fail_after]

    def writer(topic: str, partitions: int) -> Any:
        made: Any = memory(topic, partitions)
        send = made.send

        def failing(messages: Any) -> None:
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    send(messages[: len(messages) // 2])  # some were written
                    raise RuntimeError("crash")
            send(messages)

        made.send = failing
        return made

    bus.writer = writer  # type: ignore[method-assign]
    try:
        cluster_main(
            build_flow(CONN, config, engine, progress, watch=watch),
            [],
            0,
            epoch_interval=timedelta(seconds=0.05),
            recovery_config=RecoveryConfig(str(store)),
            worker_count_per_proc=workers,
        )
    finally:
        bus.writer = memory  # type: ignore[method-assign]
    return threads


def told(folder: Path, topic: str) -> list[list[tuple[int, bytes]]]:
    bus = memory_bus(folder.name)
    return [[(m.number, m.body) for m in bus.partition(topic, p)] for p in range(PARTITIONS)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_says_the_same_and_has_an_even_share(
    workers: int, sent: list[Outgoing], tmp_path: Path
) -> None:
    expected = cases.alone(sent, cases.settings())
    memory_bus(tmp_path.name).writer("input", PARTITIONS).send(sent)
    threads = run_here(tmp_path, workers)
    for topic in ("verdicts", "events"):
        assert told(tmp_path, topic) == [cases.by_kind(outputs, topic) for outputs in expected]
    assert len(set(threads.values())) == workers
    counts = [list(threads.values()).count(thread) for thread in set(threads.values())]
    assert counts == [PARTITIONS // workers] * workers
    campaigns = [json.loads(body) for _, body in told(tmp_path, "campaigns")[0]]
    last = {event["campaign"]: event for event in campaigns}
    assert any(len(event["shards"]) > 1 for event in last.values())


def test_crashes_between_any_two_writes_lose_and_double_nothing(sent: list[Outgoing], tmp_path: Path) -> None:
    expected = cases.alone(sent, cases.settings())
    writer = memory_bus(tmp_path.name).writer("input", PARTITIONS)
    crashes = 0
    step = max(len(sent) // 12, 1)
    for i, begin in enumerate(range(0, len(sent), step)):
        writer.send(sent[begin : begin + step])
        try:
            run_here(tmp_path, (1, 2, 4)[i % 3], fail_after=i % 5)
        except BaseException:  # other threads panic when one has crashed
            crashes += 1
    assert crashes >= 6
    run_here(tmp_path, 2)
    for topic in ("verdicts", "events"):
        assert told(tmp_path, topic) == [cases.by_kind(outputs, topic) for outputs in expected]


class StubbornWriter:
    """Writes half and fails, the first time; refuses what is long."""

    def __init__(self) -> None:
        self.written: list[tuple[int, bytes]] = [(3, b"before")]
        self.failed = False

    def last(self, partition: int) -> int:
        assert partition == 2
        return self.written[-1][0]

    def send(self, messages: Any) -> None:
        for i, message in enumerate(messages):
            if len(message.body) > 9:
                raise MessageRefusedError("too long")
            if i == 1 and not self.failed:
                self.failed = True
                raise BusError("gone")
            self.written.append((message.number, message.body))


def test_a_lane_is_written_once_whatever_the_bus_does() -> None:
    from netclust.stream.sharding.partitions import PartitionOutput, Progress, _Shared

    writer, progress = StubbornWriter(), Progress()
    part = PartitionOutput(_Shared(writer, 1), 2, "events", progress)  # type: ignore[arg-type]
    part.write_batch([(2, b"old"), (3, b"before"), (4, b"a"), (5, b"b"), (6, b"far too long"), (7, b"c")])
    part.write_batch([(7, b"c"), (8, b"d")])
    assert writer.written == [(3, b"before"), (4, b"a"), (5, b"b"), (7, b"c"), (8, b"d")]
    assert progress.counters["events_refused"] == 1
    assert progress.counters["events_skipped"] == 3
    assert progress.counters["bus_errors_out"] == 1
    part.write_batch([(0, b"e"), (0, b"f")])  # numbered when it is written
    assert writer.written[-2:] == [(9, b"e"), (10, b"f")]


class LateReader:
    """Says what waits, and gives these messages, each as late as it stands."""

    def __init__(self, waiting: list[int], given: list[list[Incoming]]) -> None:
        self._waiting, self._given = waiting, given

    def take(self, timeout: float, most: int) -> list[Incoming]:
        return self._given.pop(0) if self._given else []

    def waiting(self, position: str | None) -> int:
        return self._waiting.pop(0)


@pytest.mark.parametrize(("waiting", "late"), [([1, 0], 1), ([3, 2, 2], 0), ([0], 0)])
def test_a_lane_is_idle_only_if_nothing_waits(waiting: list[int], late: int) -> None:
    """However long other partitions have kept the worker busy; but not for ever, if what waits does not come."""
    from netclust.stream.sharding.partitions import PartitionInput, Progress

    reader = LateReader(waiting, [[], [Incoming("7", b"late")]] if late else [])
    part = PartitionInput(reader, 0, "0", None, 16, Progress(until_idle=0.0))  # type: ignore[arg-type]

    def batches() -> Iterator[Any]:
        while True:
            time.sleep(0.001)
            try:
                yield from part.next_batch()
            except StopIteration:
                return

    assert len(list(batches())) == late
    assert not waiting


def test_a_process_adds_up_the_numbers_of_its_shards(sent: list[Outgoing]) -> None:
    from netclust.stream.sharding.partitions import Progress
    from netclust.stream.sharding.shard import Shard
    from netclust.stream.sharding.shard_metrics import Measures

    progress = Progress()
    progress.counters.update(verdicts_written=7, bus_errors_out=2)
    measures = Measures(progress)
    judged = 0
    for p in (1, 3):
        shard = Shard(CONN, cases.settings(), p, PARTITIONS, seen=measures.seen)
        measures.watch(shard)
        shard.step([m.body for m in sent if m.partition == p] + [b"x"])
        judged += shard.records
    lines = measures.telemetry.exposition()[0].decode().splitlines()
    found = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    assert found["netclust_shards"] == 2
    assert sum(value for name, value in found.items() if name.startswith("netclust_verdicts_total")) == judged
    assert found['netclust_bus_messages_total{result="unreadable",topic="input"}'] == 2
    assert found['netclust_bus_messages_total{result="written",topic="verdicts"}'] == 7
    assert found['netclust_bus_errors_total{way="out"}'] == 2
    assert found['netclust_shard_behind_seconds{shard="3"}'] > 0
    assert found["netclust_alerts_open"] > 0
    assert found["netclust_scrape_errors_total"] == 0
    assert measures.records == judged


def test_keys_of_lanes_are_spread_over_workers() -> None:
    keys = partition_keys(48)
    assert len(set(keys)) == 48
    for workers in (1, 2, 3, 4, 5, 6, 8, 12, 16):
        assert [sip_hash(key) % workers for key in keys] == [partition % workers for partition in range(48)]


def test_state_of_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    _, engine = whole_config(tmp_path)
    folder = tmp_path / "state"
    store = prepare_recovery(folder, engine)
    assert store == prepare_recovery(folder, engine)
    assert [p.name for p in folder.iterdir()] == ["bytewax"]
    import msgspec

    with pytest.raises(InputError, match="the state of 4 partitions"):
        prepare_recovery(folder, msgspec.structs.replace(engine, partitions=8))
    with pytest.raises(InputError, match="holds positions in"):
        prepare_recovery(folder, msgspec.structs.replace(engine, input="memory://other/input"))
    (store / "cluster.json").write_text("{")
    with pytest.raises(InputError, match=r"cluster\.json"):
        prepare_recovery(folder, engine)


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    _, engine = whole_config(tmp_path)
    folder = tmp_path / "state"
    store = prepare_recovery(folder, engine)
    for shared in (folder, store):
        os.chmod(shared, 0o770)  # noqa: S103
        with pytest.raises(InputError, match="chmod 700"):
            prepare_recovery(folder, engine)
        os.chmod(shared, 0o700)
    with lock_recovery(folder), pytest.raises(InputError, match="in use by another"):
        lock_recovery(folder)
    with (
        lock_recovery(folder, shared=True),
        lock_recovery(folder, shared=True),
        pytest.raises(InputError, match="in use by another"),
    ):
        lock_recovery(folder)
    lock_recovery(folder).close()


def test_commands_say_what_is_wrong(run: Any, tmp_path: Path) -> None:
    config = tmp_path / "netclust.toml"
    config.write_text('[sharding]\ninput = "redis://127.0.0.1:1/in?timeout=1"\nevents = "redis://127.0.0.1:1/out"\n'
                      f'recovery = "{tmp_path}/r"\n[model]\npath = "conn"\n')  # fmt: skip
    assert "1 partition of schema conn: it would start" in run("shards", "check", "-c", config).out
    for words, why in (
        (("run", "--addresses", "a:1"), "needs --process-id"),
        (("run", "--process-id", "0", "--addresses", "here"), "is not HOST:PORT"),
        (("label",), "what is what"),
        (("label", "cluster:x", "normal"), "a cluster is cluster:N"),
        (("label", "cluster:5", "normal", "--undo", "l-1"), "give nothing else"),
        (("label", "cluster:5", "normal"), "nobody was told"),
        (("status",), "what waits in partition 0 is not known"),
    ):
        said = run("shards", words[0], "-c", config, *words[1:])
        assert said.code == 2, said
        assert why in said.err
