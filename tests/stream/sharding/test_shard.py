"""Shards: the same as one linker with as many partitions; nothing global; resumed anywhere they say the same again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import shard_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_cases import CONN, PARTITIONS

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.linking.linker import Linker
from netclust.linking.verdicts import Verdicts, concat_verdicts
from netclust.records.batch import concat_batches
from netclust.records.table import Table
from netclust.shipped.loading import load_shipped
from netclust.stream.bus.base import Outgoing
from netclust.stream.bus.record_messages import LabelMessage, RecordPlace, pack_label, pack_records, unpack_message
from netclust.stream.config import parse_config
from netclust.stream.sharding.messages import Member
from netclust.stream.sharding.shard import MAX_LABELS_KNOWN, Output, Shard
from netclust.stream.sharding.streams import Streams

COMPARED = ("verdict", "via", "label", "cluster", "score", "link", "normal", "other", "parent_source", "parent_seq")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return cases.office(tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def sent(table: Table) -> list[Outgoing]:
    return cases.messages(table)


def of_partition(sent: list[Outgoing], partition: int) -> list[bytes]:
    return [message.body for message in sent if message.partition == partition]


def at_work(sent: list[Outgoing]) -> list[Shard]:
    """A shard a partition, each with all of its partition behind it."""
    shards = [Shard(CONN, cases.settings(), p, PARTITIONS) for p in range(PARTITIONS)]
    for p, shard in enumerate(shards):
        shard.step(of_partition(sent, p))
    return shards


def judged(shard: Shard, bodies: list[bytes]) -> tuple[Any, Verdicts]:
    outcomes = [
        outcome for body in bodies for outcome in shard.take(unpack_message(body, CONN.encoding.schema, "test"))
    ]
    return concat_batches([o.batch for o in outcomes]), concat_verdicts([o.verdicts for o in outcomes])


def test_shards_say_what_one_linker_with_as_many_partitions_says(table: Table, sent: list[Outgoing]) -> None:
    config = cases.settings()
    window = msgspec.structs.replace(config.window, partitions=PARTITIONS)
    linker = Linker(CONN, window.linker())
    batch = CONN.encoding.encode(table, linker.labels)
    whole = linker.process(batch)
    clusters = set()
    for p in range(PARTITIONS):
        rows = np.flatnonzero(batch.key % np.uint64(PARTITIONS) == p)
        ours, verdicts = judged(Shard(CONN, config, p, PARTITIONS), of_partition(sent, p))
        assert ours.seq.tolist() == batch.seq[rows].tolist()
        for name in COMPARED:
            assert getattr(verdicts, name).tobytes() == getattr(whole, name)[rows].tobytes(), name
        clusters |= {(c, p) for c in verdicts.cluster[verdicts.cluster >= len(CONN.encoding.labels)].tolist()}
    assert len({p for _, p in clusters}) > 1  # there was something novel in more than one
    assert len({c for c, _ in clusters}) == len(clusters)  # and no id twice


def test_nothing_is_shared_between_shards_of_one_process(sent: list[Outgoing]) -> None:
    other = load_shipped("conn").with_root(None)
    config = cases.settings(warmup=400)
    bodies = of_partition(sent, 2)
    alone = [Shard(model, config, 2, PARTITIONS).step(bodies) for model in (CONN, other)]
    shards = [Shard(model, config, 2, PARTITIONS) for model in (CONN, other)]
    together: list[list[Output]] = [[], []]
    for body in bodies:
        for shard, outputs in zip(shards, together, strict=True):
            outputs += shard.step([body])
    assert together == alone
    assert alone[0] != alone[1]


@pytest.fixture(scope="module", params=[0, 400])
def whole(request: pytest.FixtureRequest, sent: list[Outgoing]) -> tuple[int, list[bytes], list[Output]]:
    """A partition with labels among its records; with a warm-up and without."""
    bodies = of_partition(sent, 2)
    outputs = Shard(CONN, cases.settings(warmup=request.param), 2, PARTITIONS).step(bodies)
    lines = [json.loads(line) for o in outputs if o.kind == "verdicts" for line in o.body.splitlines()]
    cluster = next(line["cluster"] for line in lines if line["via"] == "root")
    bodies.insert(30, pack_label(LabelMessage(id="l-1", label="normal", by="ann", cluster=cluster)))
    bodies.insert(35, pack_label(LabelMessage(id="l-2", label="odd", by="ann", record=_place(lines, 200))))
    bodies.insert(40, pack_label(LabelMessage(id="l-3", label="", by="bob", undo="l-1")))
    return request.param, bodies, Shard(CONN, cases.settings(warmup=request.param), 2, PARTITIONS).step(bodies)


def _place(lines: list[dict[str, Any]], row: int) -> RecordPlace:
    return RecordPlace(sensor="probe-1", source="eth0", seq=lines[row]["seq"])


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_cut_and_any_restart_give_the_same_bytes(
    whole: tuple[int, list[bytes], list[Output]], data: st.DataObject
) -> None:
    warmup, bodies, expected = whole
    cuts = sorted(data.draw(st.lists(st.integers(0, len(bodies)), max_size=6)))
    config = cases.settings(warmup=warmup)
    shard, found, begin = Shard(CONN, config, 2, PARTITIONS), [], 0
    for cut in [*cuts, len(bodies)]:
        found += shard.step(bodies[begin:cut])
        shard = Shard.restore(CONN, config, shard.snapshot())
        begin = cut
    assert found == expected


def test_outputs_are_numbered_one_by_one(whole: tuple[int, list[bytes], list[Output]]) -> None:
    for kind in ("verdicts", "events", "members"):
        numbers = [number for number, _ in cases.by_kind(whole[2], kind)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers


def test_what_is_sent_twice_counts_once(sent: list[Outgoing]) -> None:
    config, bodies = cases.settings(), of_partition(sent, 0)
    shard = Shard(CONN, config, 0, PARTITIONS)
    outputs = shard.step([*bodies[:5], *bodies[2:5], *bodies[5:], *bodies])
    assert outputs == Shard(CONN, config, 0, PARTITIONS).step(bodies)
    assert shard.counters["duplicates"] == shard.records + sum(len(_table(body)) for body in bodies[2:5])


def _table(body: bytes) -> Table:
    message = unpack_message(body, CONN.encoding.schema, "test")
    assert not isinstance(message, LabelMessage)
    return message.table


def test_records_of_other_lanes_and_garbage_are_passed_over_and_counted(table: Table, sent: list[Outgoing]) -> None:
    shard = Shard(CONN, cases.settings(), 1, PARTITIONS)
    whole = pack_records(table[:100], sensor="probe-1", stream="s1", source="eth0")
    foreign = pack_records(load_table(), sensor="probe-1", stream="s1", source="eth0")
    shard.step([b"", b"\x80\x04garbage", whole[:50], foreign, b"{}", whole])
    ours = int((table.key[:100] % np.uint64(PARTITIONS) == 1).sum())
    assert shard.records == ours
    assert shard.counters["wrong_lane"] == 100 - ours
    assert shard.counters["unreadable"] == 5


def load_table() -> Table:
    from netclust.datasets.simulators.simulate import simulate

    return simulate(10, seed=1).table()


def test_a_label_of_a_cluster_acts_in_its_shard_alone_and_labels_have_the_same_numbers(sent: list[Outgoing]) -> None:
    shards = at_work(sent)
    cluster = max(c.id for c in shards[2].detector.linker.clusters() if c.label == "novel")
    body = pack_label(LabelMessage(id="l-1", label="worm", by="ann", cluster=cluster))
    told = [shard.step([body]) for shard in shards]
    assert [bool(outputs) for outputs in told] == [False, False, True, False]
    assert json.loads(told[2][-1].body)["message"].startswith("label l-1 covers")
    assert len({shard.detector.linker.labels.names.index("worm") for shard in shards}) == 1
    assert {c.id: c.label for c in shards[2].detector.linker.clusters()}[cluster] == "worm"
    assert [shard.step([body]) for shard in shards] == [[], [], [], []]  # heard before
    undo = pack_label(LabelMessage(id="l-2", label="", by="ann", undo="l-1"))
    assert [bool(shard.step([undo])) for shard in shards] == [False, False, True, False]
    assert {c.id: c.label for c in shards[2].detector.linker.clusters()}[cluster] == "novel"


def test_a_label_of_a_class_of_the_model_is_refused_once(sent: list[Outgoing]) -> None:
    body = pack_label(LabelMessage(id="l-1", label="normal", by="ann", cluster=0))
    told = []
    for p in range(PARTITIONS):
        shard = Shard(CONN, cases.settings(), p, PARTITIONS)
        shard.step(of_partition(sent, p)[:3])
        told.append(shard.step([body]))
    assert [len(outputs) for outputs in told] == [1, 0, 0, 0]
    assert "refused" in json.loads(told[0][0].body)["message"]


def test_a_label_of_a_record_acts_where_the_record_is(sent: list[Outgoing]) -> None:
    shards = at_work(sent)
    last = int(_table(of_partition(sent, 1)[-1]).seq[-1])
    place = RecordPlace(sensor="probe-1", source="eth0", seq=last)
    body = pack_label(LabelMessage(id="l-1", label="worm", by="ann", record=place))
    assert [bool(shard.step([body])) for shard in shards] == [False, True, False, False]


def test_streams_and_labels_are_bounded() -> None:
    streams = Streams(most=3)
    numbers = [streams.fresh(f"p{i}", "s", "e", np.array([5], np.uint64))[0] for i in range(6)]
    assert numbers == [0, 1, 2, 0, 1, 2]
    assert streams.given_up == 3
    assert streams.fresh("p5", "s", "e", np.array([4, 5, 6], np.uint64)) == (2, 2)
    shard = Shard(CONN, cases.settings(), 0, PARTITIONS)
    for i in range(MAX_LABELS_KNOWN + 10):
        shard.step([pack_label(LabelMessage(id=f"l-{i}", label="x", by="ann", cluster=10**6 + 1))])
    assert len(shard.labels) == MAX_LABELS_KNOWN


def test_a_snapshot_is_checked_and_holds_no_pickle(sent: list[Outgoing]) -> None:
    config = cases.settings()
    shard = Shard(CONN, config, 0, PARTITIONS)
    shard.step(of_partition(sent, 0)[:4])
    good = shard.snapshot()
    arrays, header = container.unpack_container(good, "netclust.shard", "test")
    assert header["partition"] == 0
    for bad in (b"", good[:-7], good[:100], b"\x80\x04K\x01."):
        with pytest.raises(ModelError):
            Shard.restore(CONN, config, bad)
    for change in ({"partition": 9}, {"numbers": {}}, {"streams": [["a", "b", "c", 7, 1]]}, {"partitions": -1}):
        with pytest.raises(ModelError):
            Shard.restore(CONN, config, container.pack_container("netclust.shard", arrays, {**header, **change}))
    del arrays["linker"]
    with pytest.raises(ModelError, match="no linker"):
        Shard.restore(CONN, config, container.pack_container("netclust.shard", arrays, header))


def test_under_another_model_or_window_numbers_go_on(sent: list[Outgoing]) -> None:
    bodies = of_partition(sent, 0)
    for warmup in (0, 300):
        shard = Shard(CONN, cases.settings(warmup=warmup), 0, PARTITIONS)
        shard.step(bodies[:20])
        before = dict(shard.numbers)
        again = Shard.restore(CONN.with_root(None), cases.settings(warmup=warmup), shard.snapshot())
        assert again.counters["begun_anew"] == 1
        assert again.step(bodies[:20]) == []  # heard before
        outputs = again.step(bodies[20:])
        assert min(o.number for o in outputs if o.kind == "verdicts") == before["verdicts"] + 1
    wider = cases.settings("[window]\nreferent_window = 500\n")
    other = Shard.restore(CONN, wider, shard_of(bodies).snapshot())
    assert other.detector.linker.config.referent_window == 500
    assert other.numbers["verdicts"] == 20


def shard_of(bodies: list[bytes]) -> Shard:
    shard = Shard(CONN, cases.settings(), 0, PARTITIONS)
    shard.step(bodies[:20])
    return shard


def test_a_schema_without_a_key_has_one_partition() -> None:
    kdd, config = load_shipped("kdd"), parse_config('[sharding]\ninput = "memory://x/y"\n')
    Shard(kdd, config, 0, 1)
    with pytest.raises(InputError, match="has no key"):
        Shard(kdd, config, 0, 2)
    with pytest.raises(InputError, match="there is none"):
        Shard(CONN, config, 2, 2)


def test_the_configuration_is_checked(tmp_path: Path) -> None:
    from netclust.stream.sharding.worker import check_sharding

    good = 'input = "redis://127.0.0.1:6379/a"\nevents = "redis://127.0.0.1:6379/b"\n'
    cluster, model = check_sharding(parse_config(f'[sharding]\n{good}[model]\npath = "conn"'), "test")
    assert (cluster.partitions, model.encoding.schema.name) == (1, "conn")
    for text, why in (
        ('[[source]]\nkind = "records"\npath = "-"', "no \\[sharding\\]"),
        ('[sharding]\ninput = "redis://127.0.0.1:6379/a"', "writes nothing"),
        (f"[sharding]\n{good}", "which model"),
        (f'[sharding]\n{good}verdicts = "redis://127.0.0.1:6379/b?maxlen=5"\n[model]\npath = "conn"', "topic twice"),
        (f'[sharding]\n{good}partitions = 0\n[model]\npath = "conn"', "partitions lies"),
        (f'[sharding]\n{good}partitions = 2\n[model]\npath = "kdd"', "no key attribute"),
        (f'[sharding]\n{good}epoch_seconds = 0\n[model]\npath = "conn"', "epoch_seconds"),
        (f'[sharding]\n{good}batch_messages = 0\n[model]\npath = "conn"', "batch_messages"),
        (f'[sharding]\n{good}campaign_gap_seconds = -1\n[model]\npath = "conn"', "campaign_gap"),
        (f'[sharding]\n{good}partitions = 4\n[model]\npath = "conn"\n[window]\npartitions = 3', "window.partitions"),
        (f'[sharding]\n{good}metrics = "nowhere"\n[model]\npath = "conn"', "HOST:PORT"),
    ):
        with pytest.raises(InputError, match=why):
            check_sharding(parse_config(text), "test")


def test_an_alert_of_several_known_attacks_is_one_member_by_what_most_of_it_is(sent: list[Outgoing]) -> None:
    """Else one member would be told as this attack and as that, and its campaigns would break up and join for ever."""
    several = 0
    for outputs in cases.alone(sent, cases.settings()):
        alert: dict[str, Any] = {}
        known: list[Member] = []
        for output in outputs:
            if output.kind == "events":
                assert len(known) <= 1
                alert, known = json.loads(output.body)["netclust"].get("alert", {}), []
            elif output.kind == "members" and (one := Member.unpack(output.body)).kind == "known_attack":
                assert one.label == alert["label"]
                known.append(one)
                several += len(alert["labels"]) > 1
    assert several
