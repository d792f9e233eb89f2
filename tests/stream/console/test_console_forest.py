"""The link forest: what is drawn is what was linked, bounded, and never more than a page can take."""

from __future__ import annotations

import numpy as np
import pytest
from console_cases import batch_of, grown, saved_of, verdicts_of

from netclust.linking.verdicts import KNOWN_ATTACK, NORMAL
from netclust.stream.console.forest import CAPACITY, RATES, LinkForest, Node


def test_links_are_those_of_the_verdicts() -> None:
    forest = grown(LinkForest(), [-1, 0, 0, 2])
    nodes = forest.nodes()
    assert nodes.tick.tolist() == [0, 1, 2, 3]
    assert nodes.link.tolist() == [-1, 0, 0, 2]
    assert nodes.hops.tolist() == [1, 1, 1, 1]
    assert {forest.labels[k] for k in nodes.label} == {"novel"}
    grown(forest, [-2, -9], first=4, cluster=1, verdict=KNOWN_ATTACK)
    assert forest.nodes(after=3).link.tolist() == [-2, -2]
    assert forest.labels[forest.nodes(after=3).label[0]] == "scan"


def test_a_flood_does_not_fill_the_picture_and_stays_connected() -> None:
    """Normal records are sampled; a kept one hangs on its nearest kept ancestor, and the links between are counted."""
    now = 0.0
    forest = LinkForest(clock=lambda: now)
    n = 20_000
    for first in range(0, n, 2000):
        grown(forest, [p if p >= 0 else -2 for p in range(first - 1, first + 1999)], first, cluster=0, verdict=NORMAL)
    nodes = forest.nodes()
    assert len(nodes) == int(RATES["normal"][0])
    assert (np.diff(nodes.tick) > 0).all()
    ticks = set(nodes.tick.tolist())
    for tick, link, hops in zip(nodes.tick.tolist(), nodes.link.tolist(), nodes.hops.tolist(), strict=True):
        assert link == -2 or (link in ticks and link + hops == tick)  # a chain: each is one link behind the other
    now = 1.0
    grown(forest, [n - 1] * 2000, n, cluster=0, verdict=NORMAL)
    fresh = forest.nodes(after=n - 1)
    assert len(fresh) == int(RATES["normal"][1])
    assert fresh.tick[-1] - fresh.tick[0] > 1900, "evenly spread"


def test_there_are_never_more_nodes_than_a_page_can_draw() -> None:
    now = 0.0
    forest = LinkForest(capacity=100, clock=lambda: now)
    for first in range(0, 5000, 50):
        now += 1000.0
        grown(forest, [-1] * 50, first)
        assert len(forest.nodes()) <= 100
        newest = forest.node(first + 49)
        assert newest is not None
        assert newest.record == f"0:{first + 49}"
    assert forest.nodes().tick.tolist() == list(range(4900, 5000))
    assert forest.node(0) is None
    assert forest.nodes(limit=7).tick.tolist() == list(range(4993, 5000))


def test_a_long_path_is_shown_by_its_ends_with_the_links_between_counted() -> None:
    forest = grown(LinkForest(), [-1, *range(999)])
    path = forest.path(999)
    assert [step.record for step in path] == [
        *(f"0:{k}" for k in range(999, 991, -1)), *(f"0:{k}" for k in (3, 2, 1, 0)), "root",
    ]  # fmt: skip
    assert [step.hops for step in path] == [1] * 7 + [992 - 3] + [1] * 4 + [0]
    assert sum(step.hops for step in path) == 1000
    assert forest.path(5000) == []


def test_a_path_that_memory_has_lost_still_tells_its_length_and_its_end() -> None:
    forest = grown(LinkForest(bits=6), [-4, *range(199)], cluster=1, verdict=KNOWN_ATTACK)
    path = forest.path(199)
    assert path[-1].record == "reference 2"
    assert sum(step.hops for step in path) == 200
    unknown = grown(LinkForest(bits=6), [50], first=60).path(60)  # after a restart nothing is known of record 50
    assert [(step.record, step.hops) for step in unknown] == [("0:60", 0)]


def test_a_record_shows_its_values_and_where_it_came_from() -> None:
    forest = LinkForest()
    verdicts = verdicts_of([-1])
    forest.take(
        5, batch_of(1, 5), verdicts, ["normal"], None,
        lambda rows: {"source": np.array(["10.0.0.7"] * len(rows), object)}, now=0,
    )  # fmt: skip
    node = forest.node(5)
    assert node is not None
    assert (node.via, node.verdict, node.label, node.values) == ("root", "novel", "novel", {"source": "10.0.0.7"})


def test_infinite_scores_do_not_get_out() -> None:
    forest = LinkForest()
    verdicts = verdicts_of([-1])
    verdicts.score[:] = np.inf
    forest.take(0, batch_of(1), verdicts, ["normal"], None, now=0)
    node = forest.node(0)
    assert node is not None
    assert node.score is None


def test_records_without_a_time_get_that_of_their_arrival() -> None:
    forest, batch = LinkForest(), batch_of(2)
    batch.time[0] = -1
    forest.take(0, batch, verdicts_of([-1, 0]), ["normal"], None, now=99)
    assert forest.nodes().time.tolist() == [99, 10**9]


def test_what_was_stored_is_shown_again_after_a_restart() -> None:
    saved = saved_of(grown(LinkForest(), [-1, 0, 1]))
    assert [node.tick for node in saved] == [0, 1, 2]
    forest = LinkForest()
    forest.restore(saved)
    assert forest.nodes().link.tolist() == [-1, 0, 1]
    assert forest.to_save() == [], "it is in the store already"
    grown(forest, [2], first=3)
    assert forest.nodes().link.tolist() == [-1, 0, 1, -3], "of links before the restart nothing is known"
    assert forest.to_save() == [3]
    forest.restore([])


@pytest.mark.parametrize("capacity", [1, CAPACITY])
def test_a_batch_larger_than_the_picture(capacity: int) -> None:
    forest = grown(LinkForest(capacity=capacity), [-1] * 3000)
    assert 0 < len(forest.nodes()) <= capacity
    assert isinstance(forest.node(2999), Node)
