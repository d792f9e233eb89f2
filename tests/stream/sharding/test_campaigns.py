"""Campaigns: the same components whoever is heard first; joined by what was learned; bounded; told as they change."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import shard_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from shard_cases import CONN

from netclust.errors import ModelError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.records.batch import Batch
from netclust.scoring.model import Model
from netclust.stream.sharding.campaigns import Campaigns, pair_scores
from netclust.stream.sharding.messages import Member

FEATURES, CODES = len(CONN.encoding.kept), len(CONN.encoding.widths)
ROOT = -0.5


def member(ident: str, **facts: Any) -> Member:
    whole: dict[str, Any] = {
        "partition": 0, "cluster": 20, "kind": "novel", "label": "novel", "alert": "a-1", "entity": f"10.0.0.{ident}",
        "sensor": "probe-1", "records": 1, "first_time": 0, "last_time": 0, "root": ROOT, "num": [0.0] * FEATURES,
        "code": [0] * CODES,
    }  # fmt: skip
    return Member(id=ident, **{**whole, **facts})


def new_campaigns(most: int = 100, state: bytes | None = None, model: Model = CONN) -> Campaigns:
    return Campaigns(model, gap_seconds=10, most=most, state=state)


MEMBERS = st.builds(
    lambda i, kind, label, first, span, place, partition: member(
        f"m{i}", kind=kind, label="novel" if kind == "novel" else label, first_time=first * 10**9, partition=partition,
        last_time=(first + span) * 10**9, num=[place / 4] * FEATURES, cluster=i,
    ),
    st.integers(0, 30), st.sampled_from(["novel", "known_attack", "normal"]), st.sampled_from(["scan", "flood"]),
    st.integers(0, 100), st.integers(0, 10), st.integers(0, 8), st.integers(0, 3),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(members=st.lists(MEMBERS, max_size=14, unique_by=lambda m: m.id), data=st.data())
def test_any_order_of_arrival_gives_the_same_campaigns(members: list[Member], data: st.DataObject) -> None:
    found = []
    for _ in range(3):
        campaigns = new_campaigns()
        told: dict[str, list[str]] = {}
        for one in data.draw(st.permutations(members)):
            for event in map(json.loads, campaigns.take(one.pack())):
                for old in event["was"]:
                    del told[old]
                told[event["campaign"]] = sorted(m["id"] for m in event["members"])
            if data.draw(st.booleans()):
                campaigns = new_campaigns(state=campaigns.snapshot())
        found.append((campaigns.components(), told))
        assert sorted(told.values()) == campaigns.components()  # who listens knows as much
    assert found[1:] == found[:-1]


def test_scores_are_those_of_the_kernel() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(CONN.reference), 40)
    for a, b in rows.reshape(-1, 2).tolist():
        one, other = (CONN.reference[[k]] for k in (a, b))
        linker = Linker(replace(CONN, reference=replace(one, label=np.zeros(1, np.int32))), LinkerConfig())
        kernel = float(linker.process(Batch(num=other.num, code=other.code)).normal[0])
        members = [
            member(str(k), num=row.num[0].tolist(), code=row.code[0].tolist()) for k, row in enumerate((one, other))
        ]
        there, back = (pair_scores(CONN.scorer, x, [y])[0] for x, y in (members, members[::-1]))
        assert there == back
        assert there == pytest.approx(kernel, abs=1e-4 * max(1.0, abs(kernel)))


def hidden(name: str) -> Model:
    """The model, as if it had never been shown an attack."""
    kept = np.array([CONN.encoding.labels[label] != name for label in CONN.reference.label])
    return replace(CONN, reference=CONN.reference[kept])


def test_an_attack_that_no_shard_knows_from_hosts_of_all_shards_is_one_campaign(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    model = hidden("syn_flood")
    sent = cases.messages(cases.office(tmp_path_factory.mktemp("office")))
    shards = cases.alone(sent, cases.settings(), model=model)
    told = [body for outputs in shards for _, body in cases.by_kind(outputs, "members")]
    campaigns = Campaigns(model, gap_seconds=3600, most=100)
    events: dict[str, dict[str, Any]] = {}
    for body in told:
        for event in map(json.loads, campaigns.take(body)):
            for old in event["was"]:
                events.pop(old)
            events[event["campaign"]] = event
    novel = [event for event in events.values() if event["label"] == "novel"]
    assert len(novel) == 1  # the flood, by forged addresses of all partitions
    assert novel[0]["shards"] == [0, 1, 2, 3]
    assert novel[0]["clusters"] >= 4
    assert novel[0]["sensors"] == ["probe-1"]
    assert novel[0]["entities"] == 1  # its target
    known = [event for event in events.values() if event["label"] == "udp_flood"]
    assert len(known) == 1
    assert len(known[0]["shards"]) > 1


def test_known_attacks_are_joined_within_the_gap_alone() -> None:
    campaigns = new_campaigns()
    seconds = {"a": (0, 5), "b": (16, 20), "c": (9, 10)}
    events = []
    for ident, (first, last) in seconds.items():
        one = member(ident, kind="known_attack", label="scan", first_time=first * 10**9, last_time=last * 10**9)
        events += campaigns.take(one.pack())
    (event,) = map(json.loads, events)
    assert (event["action"], event["campaign"]) == ("open", "k-a")
    assert [m["id"] for m in event["members"]] == ["a", "c", "b"]
    assert event["last_time"] == 20 * 10**9


def test_a_cluster_that_people_call_normal_leaves() -> None:
    campaigns = new_campaigns()
    for ident in "abc":
        campaigns.take(member(ident).pack())
    assert campaigns.components() == [["a", "b", "c"]]
    (event,) = map(json.loads, campaigns.take(member("a", kind="normal", label="normal").pack()))
    assert (event["action"], event["campaign"], event["was"]) == ("shrink", "k-b", ["k-a"])
    (event,) = map(json.loads, campaigns.take(member("b", kind="normal", label="normal").pack()))
    assert (event["action"], event["campaign"]) == ("end", "k-b")
    assert campaigns.components() == []


def test_the_first_record_of_a_cluster_stands_for_it() -> None:
    campaigns = new_campaigns()
    campaigns.take(member("a").pack())
    campaigns.take(member("a", num=[9.0] * FEATURES, records=7).pack())
    (event,) = map(json.loads, campaigns.take(member("b").pack()))
    assert event["records"] == 8


def test_clusters_are_bounded_and_nonsense_is_counted() -> None:
    campaigns = new_campaigns(most=5)
    for i in range(20):
        campaigns.take(member(f"m{i:02d}", kind="known_attack", label=f"l{i % 2}", last_time=i).pack())
    assert campaigns.given_up == 15
    assert campaigns.components() == [["m15", "m17", "m19"], ["m16", "m18"]]
    for bad in (b"", b"{}", member("x", num=[0.0]).pack(), member("x", code=[60_000] * CODES).pack()):
        assert campaigns.take(bad) == []
    assert campaigns.unreadable == 4
    with pytest.raises(ModelError):
        new_campaigns(state=b"{")


def test_under_another_model_old_clusters_are_given_up() -> None:
    from netclust.shipped.loading import load_shipped

    campaigns = new_campaigns()
    for ident in "ab":
        campaigns.take(member(ident).pack())
    other = new_campaigns(state=campaigns.snapshot(), model=load_shipped("kdd"))
    assert other.components() == []


def test_a_member_is_a_small_message() -> None:
    one = member("a")
    assert Member.unpack(one.pack()) == one
    assert len(msgspec.json.encode(one)) < 2000
