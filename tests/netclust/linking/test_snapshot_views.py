"""A frozen linker looks at columns of the linker's own buffer: nothing may change under it."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np

from netclust.datasets.simulators.simulate import simulate
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.state import SETTLED, SPARE
from netclust.models.network.train_network import train_network

MODEL = train_network(simulate(3000, seed=1).table(), seed=0)
TODAY = MODEL.encoding.encode(simulate(4000, seed=2, day=1).table())
assert len(TODAY) > 3 * SPARE  # the buffer is full more than once


def linker() -> Linker:
    return Linker(MODEL, LinkerConfig(referent_window=200, mature_after=60.0))


def test_moving_the_window_leaves_what_was_frozen_as_it_was() -> None:
    one = linker()
    one.process(TODAY[:700])
    frozen, expected = one.freeze(), one.snapshot()
    later = one.freeze(since=650)
    changes = later.pack()
    one.process(TODAY[700:])
    assert frozen.pack() == expected
    assert later.pack() == changes


def test_freezing_again_does_not_give_up_what_was_frozen_before() -> None:
    one = linker()
    one.process(TODAY[:700])
    frozen, expected = one.freeze(), one.snapshot()
    one.freeze(since=650)  # and gone at once
    gc.collect()
    one.process(TODAY[700:])
    assert frozen.pack() == expected


def test_another_model_leaves_what_was_frozen_as_it_was() -> None:
    one = linker()
    one.process(TODAY[:700])
    frozen, expected = one.freeze(), one.snapshot()
    other = replace(MODEL, averaged=MODEL.averaged * 2, last=MODEL.last * 2)
    moved = one.with_model(other)
    assert moved.counters()["referents"] == 200  # it goes on with the same buffer
    assert not np.array_equal(moved.memory.partitions[0].window.unary[500:700], frozen.arrays["0.window.unary"])
    moved.process(TODAY[700:])
    assert frozen.pack() == expected


def test_verdicts_do_not_depend_on_what_is_frozen_meanwhile() -> None:
    one, two = linker(), linker()
    kept = []
    for at in range(0, len(TODAY), 250):
        kept.append(two.freeze(since=max(0, at - 100)))
        a, b = one.process(TODAY[at : at + 250]), two.process(TODAY[at : at + 250])
        assert a.score.tobytes() == b.score.tobytes()
        assert a.cluster.tolist() == b.cluster.tolist()
    assert one.snapshot() == two.snapshot()


def test_the_columns_that_never_change_are_not_copied() -> None:
    one = linker()
    one.process(TODAY[:700])
    frozen = one.freeze()
    window = one.memory.partitions[0].window
    for name, array in window._asdict().items():
        assert np.shares_memory(frozen.arrays[f"0.window.{name}"], array) is (name in SETTLED)


def test_a_frozen_copy_that_is_gone_keeps_no_second_buffer() -> None:
    one = linker()
    one.process(TODAY[:700])
    before = one.memory.partitions[0].window
    one.freeze()
    gc.collect()
    one.process(TODAY[700:])
    assert one.memory.partitions[0].window is before
