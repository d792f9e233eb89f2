"""Whatever a source delivers, however odd, the detector judges it, and what it says can be written."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import InputError
from netclust.models.network.train_network import train_network
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.stream.bus.record_messages import LabelMessage, pack_label, pack_records, unpack_records
from netclust.stream.config import parse_config
from netclust.stream.daemon.service import Daemon
from netclust.stream.detection.detector import Detector, Outcome
from netclust.stream.detection.verdict_lines import verdict_lines
from netclust.stream.logs import Log
from netclust.stream.sharding.shard import Shard
from netclust.stream.sinks.cef import to_cef
from netclust.stream.sinks.ecs import encode_ecs
from netclust.stream.sources.base import Arrival, MemorySource

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TIMES = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([-1, 0, -(1 << 63), (1 << 63) - 1])
TEXTS = st.text(max_size=300)
CONFIG = '[[source]]\nkind="records"\npath="tcp://127.0.0.1:1"\n[warmup]\nrecords=0\n'
SHARDS = '[sharding]\ninput="memory://a/b"\n[warmup]\nrecords=0\n[verdicts]\nwhich="all"\n'


@pytest.fixture(scope="module")
def model() -> Model:
    return train_network(simulate(2000, seed=1).table(), seed=0)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Records as a stranger on a bus might send them: every column is text or numbers of any kind."""
    table = simulate(draw(st.integers(1, 12)), seed=draw(st.integers(0, 50)), day=1, attacks=HELD_BACK).table()
    n = len(table)
    if draw(st.booleans()):
        table.num = draw(arrays(np.float64, table.num.shape, elements=NUMBERS))
    table.time = draw(arrays(np.int64, n, elements=TIMES))
    table.key = draw(arrays(np.uint64, n))
    table.seq = np.cumsum(draw(arrays(np.uint64, n, elements=st.integers(1, 1 << 60)))).astype(np.uint64)
    names = ["", *draw(st.lists(TEXTS, min_size=1, max_size=4))]
    table.labels, table.label = names, draw(arrays(np.int32, n, elements=st.integers(0, len(names) - 1)))
    table.symbols = [[*own, *draw(st.lists(TEXTS, max_size=2))] for own in table.symbols]
    for s, own in enumerate(table.symbols):
        table.sym[:, s] = draw(arrays(np.int32, n, elements=st.integers(0, len(own) - 1)))
    table.context = {
        name: np.array([draw(TEXTS) for _ in range(n)], object)
        for name in draw(
            st.lists(st.sampled_from(["source", "destination", "destination_port", "uid", "x"]), unique=True)
        )
    }
    return table


def told(outcomes: list[Outcome]) -> None:
    """Everything that is said of them, as sinks write it."""
    for outcome in outcomes:
        verdict_lines(outcome, "all")
        for event in outcome.events:
            msgspec.json.decode(encode_ecs(event, "here"))
            to_cef(event, 2048)


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(tables(), min_size=1, max_size=3))
def test_the_detector_judges_any_records(model: Model, batches: list[Table]) -> None:
    detector = Detector(model, parse_config(CONFIG), patient=False)
    for table in batches:
        told(detector.take(0, Arrival(table, None, 0.0)))
    passed = detector.advance(2_000_000_000 * 10**9, Arrival(table, None, 0.0))
    told([] if passed is None else [passed])
    assert detector.linker.tick == sum(map(len, batches))
    facts, kept = detector.freeze()
    again = Detector(
        model, parse_config(CONFIG), linker=type(detector.linker).restore(model, detector.linker.snapshot())
    )
    again.restore(msgspec.json.decode(msgspec.json.encode(facts)), kept, "test")


@settings(suppress_health_check=list(HealthCheck))
@given(tables(), TEXTS, TEXTS)
def test_a_shard_takes_any_message_that_can_be_packed(model: Model, table: Table, sensor: str, label: str) -> None:
    shard = Shard(model, parse_config(SHARDS), 0, 1)
    messages: list[bytes] = []
    for make in (
        lambda: pack_records(table, sensor=sensor, stream="s", source="x"),
        lambda: pack_label(LabelMessage(id="1", label=label, by="eve", cluster=1 << 40)),
        lambda: pack_label(LabelMessage(id="2", label=label, by="eve", cluster=1)),
    ):
        try:
            messages.append(make())
        except InputError:
            continue
    shard.step(messages)
    assert shard.counters["messages"] == len(messages)
    assert Shard.restore(model, parse_config(SHARDS), shard.snapshot()).records == shard.records


def test_labels_that_arrive_over_a_lane_leave_a_shard_at_work(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.records.labels.MAX_LABELS", 1024 + 40)
    shard = Shard(model, parse_config(SHARDS), 0, 1)
    table = simulate(50, seed=2).table()
    table.labels, table.label = ["", *(f"label {k}" for k in range(50))], np.arange(1, 51, dtype=np.int32)
    body = pack_records(table, sensor="a", stream="s", source="x")
    assert unpack_records(body, table.schema, "test").table.labels == table.labels
    long = simulate(3, seed=3).table()
    long.labels, long.label = ["", "x" * 5000], np.ones(3, np.int32)
    outputs = shard.step([body, pack_records(long, sensor="b", stream="s", source="x")])
    assert sum(o.body.count(b"\n") for o in outputs if o.kind == "verdicts") == 53
    assert shard.detector.linker.labels.dropped["full"] > 0
    assert shard.detector.linker.labels.dropped["unusable"] == 3
    for k in range(1100):  # what people say of another shard's clusters
        shard.take(LabelMessage(id=str(k), label=f"answer {k}", by="eve", undo="none"))
    assert len(shard.detector.linker.labels) == 1024 + 40


def test_a_zeek_label_of_256_characters_is_left_out(model: Model) -> None:
    """A line of a log may have one; no label is that long."""
    from collections import Counter

    from netclust.shipped.loading import load_shipped
    from netclust.stream.sources.dialects import Notes
    from netclust.stream.sources.log_format import LogFormat
    from netclust.stream.sources.zeek import ZeekDialect

    line: dict[str, Any] = {
        "ts": 1.5, "id.orig_h": "10.0.0.1", "id.orig_p": 4000, "id.resp_h": "10.0.0.2", "id.resp_p": 53,
        "proto": "udp", "label": "y" * 256,
    }  # fmt: skip
    form = LogFormat("conn", ZeekDialect)
    table = form.table(form.dialect("log", Notes(Counter())).parse(msgspec.json.encode(line) + b"\n"))
    assert table is not None
    detector = Detector(load_shipped("conn"), parse_config(CONFIG))
    detector.take(0, Arrival(table, None, 0.0))
    assert detector.linker.labels.dropped["unusable"] == 1


@settings(suppress_health_check=list(HealthCheck), max_examples=10)
@given(st.lists(tables(), min_size=5, max_size=20))
def test_a_daemon_lives_through_any_records(
    tmp_path_factory: pytest.TempPathFactory, model: Model, batches: list[Table]
) -> None:
    """With its store, its console and its logs."""
    folder = tmp_path_factory.mktemp("any")
    model.save(folder / "model")
    config = parse_config(
        f'[daemon]\nstate_dir = "{folder}/state"\n[http]\nlisten = ""\n'
        f'[model]\npath = "{folder}/model"\n[verdicts]\npath = "{folder}/verdicts"\n'
        f'[[sink]]\nkind = "jsonl"\nname = "file"\npath = "{folder}/alerts"\n{CONFIG}'
    )
    out = io.StringIO()
    daemon = Daemon(config, sources=[MemorySource("records", batches[0].schema, batches)], log=Log(stream=out))
    daemon.open()
    assert daemon.run() == 0
    assert daemon.detector.linker.tick == sum(map(len, batches))
    assert [queue.failure for queue in daemon.inbox.queues] == [None]
    assert " error " not in out.getvalue()
