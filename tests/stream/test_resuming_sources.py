"""Where sources stand after a restart."""

from __future__ import annotations

import numpy as np

from netclust.container import Arrays
from netclust.datasets.simulate import simulate
from netclust.stream.daemon.resuming import state_of
from netclust.stream.sources.base import MemorySource

TODAY = simulate(10, seed=2, day=1).table()


def source(*, replayable: bool = True) -> MemorySource:
    found = MemorySource("a", TODAY.schema)
    found.replayable = replayable
    return found


def test_a_source_continues_with_its_own_facts_and_arrays() -> None:
    facts = {"sources": {"a": {"seq": 12, "line": 3}, "b": {"seq": 1}}, "clean": False}
    arrays: Arrays = {"source.a.open": np.arange(3), "source.b.open": np.arange(4), "detector.x": np.arange(5)}
    state = state_of(source(), facts, arrays)
    assert state is not None
    assert state.facts == {"seq": 12, "line": 3}
    assert list(state.arrays) == ["open"]
    assert state.arrays["open"].tolist() == [0, 1, 2]


def test_a_source_that_was_never_read_begins_by_itself() -> None:
    assert state_of(source(), {}, {}) is None
    assert state_of(source(), {"sources": {"b": {"seq": 1}}}, {}) is None
    assert state_of(source(replayable=False), {}, {}) is None


def test_after_a_clean_end_a_source_that_cannot_be_replayed_stands_where_it_stood() -> None:
    state = state_of(source(replayable=False), {"sources": {"a": {"seq": 12}}, "clean": True}, {})
    assert state is not None
    assert state.facts == {"seq": 12}


def test_after_an_unclean_end_the_records_of_a_source_that_cannot_be_replayed_have_numbers_of_their_own() -> None:
    for seq in (12, (1 << 32) + 5):
        state = state_of(source(replayable=False), {"sources": {"a": {"seq": seq}}, "clean": False}, {})
        assert state is not None
        assert state.facts == {"seq": ((seq >> 32) + 1) << 32}
    state = state_of(source(), {"sources": {"a": {"seq": 12}}, "clean": False}, {})
    assert state is not None
    assert state.facts == {"seq": 12}
