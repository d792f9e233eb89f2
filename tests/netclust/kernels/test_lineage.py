"""Lineage: what a record hangs on is what following its links one by one says, however the stream is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.kernels.linking.lineage import (
    ON_FORGOTTEN,
    ON_REFERENCE,
    ON_ROOT,
    UNKNOWN,
    Lineage,
    follow_lineage,
    new_lineage,
    walk_lineage,
)

BITS = 4
SIZE = 1 << BITS


def slow_follow(parents: list[int], kept: list[bool]) -> dict[int, tuple[int, int, int, int]]:
    """The plain twin: link, hops, depth and end of every record, but for what a ring forgets."""
    found: dict[int, tuple[int, int, int, int]] = {}
    for tick, parent in enumerate(parents):
        link, hops, depth, end = ON_FORGOTTEN, 1, 0, int(UNKNOWN)
        if parent < 0:
            link, depth, end = (ON_ROOT if parent == -1 else ON_REFERENCE), 1, parent
        elif parent > tick - 1 - SIZE:
            above = found[parent]
            depth, end = (above[2] + 1 if above[2] else 0), above[3]
            link, hops = (parent, 1) if kept[parent] else (above[0], above[1] + 1)
        found[tick] = link, hops, depth, end
    return found


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], list[bool], list[int]]:
    n = draw(st.integers(1, 60))
    parents = [draw(st.integers(max(-3, tick - 2 * SIZE), tick - 1)) if tick else -1 for tick in range(n)]
    kept = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    cuts = draw(st.lists(st.integers(0, n), max_size=4).map(sorted))
    return parents, kept, cuts


def followed(parents: list[int], kept: list[bool], cuts: list[int]) -> Lineage:
    lineage = new_lineage(BITS)
    for begin, end in zip([0, *cuts], [*cuts, len(parents)], strict=True):
        follow_lineage(begin, np.array(parents[begin:end], np.int64), np.array(kept[begin:end], np.uint8), lineage)
    return lineage


@given(streams())
def test_a_record_hangs_on_the_right_one(stream: tuple[list[int], list[bool], list[int]]) -> None:
    parents, kept, cuts = stream
    lineage = followed(parents, kept, cuts)
    expected = slow_follow(parents, kept)
    for tick in range(max(len(parents) - SIZE, 0), len(parents)):
        at = tick % SIZE
        assert lineage.tick[at] == tick
        assert lineage.parent[at] == parents[tick]
        found = tuple(int(column[at]) for column in (lineage.link, lineage.hops, lineage.depth, lineage.end))
        assert found == expected[tick]


@given(streams(), st.integers(1, 5), st.integers(1, 5))
def test_a_path_follows_the_links(stream: tuple[list[int], list[bool], list[int]], first: int, last: int) -> None:
    parents, kept, cuts = stream
    lineage = followed(parents, kept, cuts)
    tick, remembered, expected = len(parents) - 1, len(parents) - SIZE, []
    while tick >= max(remembered, 0):
        expected.append(tick)
        tick = parents[tick]
    newest, oldest = np.zeros(first, np.int64), np.zeros(last, np.int64)
    steps = walk_lineage(lineage, len(parents) - 1, newest, oldest)
    assert steps == len(expected)
    assert [int(lineage.tick[at]) for at in newest[:steps]] == expected[:first]
    for k in range(max(steps - last, 0), steps):
        assert lineage.tick[oldest[k % last]] == expected[k]


@pytest.mark.parametrize("tick", [-1, -5, 3, 10**9])
def test_nobody_has_no_path(tick: int) -> None:
    room: Any = np.zeros(2, np.int64)
    assert walk_lineage(new_lineage(BITS), tick, room, room.copy()) == 0
