"""What a linker takes from outside, exactly at its limits and just beyond; and its counts by name."""

from __future__ import annotations

from typing import Any

import pytest
from linker_cases import line, line_model

from netclust.errors import InputError
from netclust.kernels.linking import link as kernels
from netclust.linking.feedback import Before, LabelEvent
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.state import MAX_NUMBER

MOST = 1 << 24


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("referent_window", 0, MOST),
        ("gap", 0, MOST),
        ("partitions", 1, MOST),
        ("max_clusters", 1, MOST),
        ("max_events", 1, MOST),
        ("label_delay", 0, MOST),
        ("representatives", 0, 1 << 16),
        ("mature_share", 0, 1),
    ],
)
def test_a_setting_is_taken_at_its_limits_and_refused_by_name_beyond(name: str, least: Any, most: Any) -> None:
    for value in (least, most):
        assert getattr(LinkerConfig(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(InputError, match=f"^{name} "):
            LinkerConfig(**{name: value})


@pytest.mark.parametrize("shard", [(0, 1), (4, 5), (MOST - 1, MOST)])
def test_a_shard_is_one_of_so_many(shard: tuple[int, int]) -> None:
    assert LinkerConfig(shard=shard).shard == shard
    p, count = shard
    for wrong in ((-1, count), (count, count), (p, MOST + 1)):
        with pytest.raises(InputError, match=r"^shard "):
            LinkerConfig(shard=wrong)
    with pytest.raises(InputError, match=r"^shard "):
        LinkerConfig(shard=shard, partitions=2)


def test_maturing_takes_no_time_or_much() -> None:
    for seconds in (0.0, 1e9 - 1):
        assert LinkerConfig(mature_after=seconds).mature_after == seconds
    for seconds in (-0.1, 1e9, float("nan")):
        with pytest.raises(InputError, match=r"^mature_after "):
            LinkerConfig(mature_after=seconds)


def test_protocols_differ_in_what_is_remembered_and_when_labels_count() -> None:
    thesis = LinkerConfig.thesis(referent_window=7, delay=3)
    assert (thesis.referent_window, thesis.gap, thesis.whole, thesis.label_delay, thesis.kept) == (7, 3, True, 3, 10)
    assert LinkerConfig.thesis(feedback="predicted").label_delay is None
    nothing = LinkerConfig.thesis(feedback="none", delay=3)
    assert (nothing.referent_window, nothing.gap, nothing.label_delay, nothing.kept) == (0, 0, None, 0)
    stream = LinkerConfig.stream(referent_window=7, delay=3)
    assert (stream.referent_window, stream.gap, stream.whole, stream.label_delay) == (7, 0, False, None)
    assert LinkerConfig.stream(feedback="gold", delay=3).label_delay == 3
    assert LinkerConfig.stream(feedback="none").referent_window == 0
    assert LinkerConfig(referent_window=10, mature_share=0.25).mature_cap == 2


@pytest.mark.parametrize("record", ["0:0", "65535:18446744073709551615"])
def test_a_record_id_is_taken_up_to_its_limits(record: str) -> None:
    linker = Linker(line_model())
    event = linker.label_record(record, "worm")
    assert (event.covered, f"{event.source}:{event.number}") == (0, record)
    for wrong in ("65536:0", "0:18446744073709551616", "0", ":1", "1:", "0:-1", "x0:1"):
        with pytest.raises(InputError, match="a record id is source:seq"):
            linker.label_record(wrong, "worm")


@pytest.mark.parametrize("value", [-1, MAX_NUMBER])
def test_numbers_of_clusters_and_arrivals_have_limits(value: int) -> None:
    linker = Linker(line_model())
    with pytest.raises(InputError, match="lies between 0 and"):
        linker.label_cluster(value, "worm")
    with pytest.raises(InputError, match="from_tick lies between 0 and"):
        linker.label_cluster(1, "worm", from_tick=value)
    assert linker.label_cluster(1, "worm", from_tick=MAX_NUMBER - 1).from_tick == MAX_NUMBER - 1


def test_counts_have_their_names_and_values() -> None:
    linker = Linker(line_model(), LinkerConfig(referent_window=4, representatives=2))
    linker.process(line([10.0, 20.0, 30.0, 0.1, 0.1, 0.1]))
    counts = linker.counters()
    assert counts["records_total"] == 6
    assert counts["referents"] == 4
    assert counts["clusters_opened_total"] == 3
    assert counts["representatives"] == 2
    assert (counts["trusted"], counts["matured_total"], counts["clusters_forgotten_total"]) == (0, 0, 0)


def test_a_member_is_found_by_its_arrival_number_for_as_long_as_it_can_be_linked_to() -> None:
    linker = Linker(line_model(), LinkerConfig(referent_window=4))
    values = [0.25 * k for k in range(50)]
    linker.process(line(values))
    (part,) = linker.memory.partitions
    assert part.live.start > 0
    for tick in range(46, 50):
        found = part.find(tick)
        assert found is not None
        assert found[0].tolist() == [values[tick]]
    assert part.find(45) is None
    assert part.find(50) is None


# Label events of a snapshot

KNOWN: dict[int, Before] = {5: (0, 0, -1, 4), 6: (kernels.NOVEL_LABEL, kernels.OTHER_SIDE, 2, kernels.ROOT)}


def event(**changes: Any) -> LabelEvent:
    given: dict[str, Any] = {
        "event": 2, "scope": "record", "from_tick": 9, "label": 1, "source": 3, "number": 4, "covered": 2,
        "before": dict(KNOWN), "cluster_before": (0, 1),
    }  # fmt: skip
    return LabelEvent(**{**given, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"event": 0},
        {"label": 0},
        {"label": 2},
        {"scope": "undo", "label": -1},
        {"from_tick": 0},
        {"from_tick": MAX_NUMBER - 1},
        {"covered": 0},
        {"source": 0},
        {"source": 65535},
        {"number": 0},
        {"number": (1 << 64) - 1},
        {"cluster_before": None},
        {"cluster_before": (kernels.NOVEL_LABEL, -1)},
        {"cluster_before": (2, 2)},
        {"before": {}},
        {"before": {MAX_NUMBER - 1: (0, 0, -1, 1 - MAX_NUMBER)}},
        {"before": {5: (0, kernels.OTHER_SIDE, 0, 0)}},
    ],
)
def test_an_event_that_can_be_is_taken(changes: dict[str, Any]) -> None:
    assert event(**changes).fits(labels=3, events=3)


@pytest.mark.parametrize(
    "changes",
    [
        {"event": -1},
        {"event": 3},
        {"label": -1},
        {"label": 3},
        {"from_tick": -1},
        {"from_tick": MAX_NUMBER},
        {"covered": -1},
        {"covered": MAX_NUMBER},
        {"source": -1},
        {"source": 65536},
        {"number": -1},
        {"number": 1 << 64},
        {"cluster_before": (3, 1)},
        {"cluster_before": (kernels.NOVEL_LABEL - 1, 1)},
        {"cluster_before": (0, 3)},
        {"cluster_before": (0, -2)},
        {"before": {5: (3, 0, -1, 4)}},
        {"before": {5: (kernels.NOVEL_LABEL - 1, 0, -1, 4)}},
        {"before": {5: (0, -1, -1, 4)}},
        {"before": {5: (0, kernels.OTHER_SIDE + 1, -1, 4)}},
        {"before": {5: (0, 0, 3, 4)}},
        {"before": {5: (0, 0, -2, 4)}},
        {"before": {5: (0, 0, -1, MAX_NUMBER)}},
        {"before": {MAX_NUMBER: (0, 0, -1, 0)}},
        {"before": {-MAX_NUMBER: (0, 0, -1, 0)}},
    ],
)
def test_an_event_that_cannot_be_is_not(changes: dict[str, Any]) -> None:
    assert not event(**changes).fits(labels=3, events=3)
