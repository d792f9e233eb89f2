"""Results do not depend on how a stream is cut into batches, nor on where it was saved, nor on the buffer's end."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linker_cases import (
    CLASSES,
    assert_same,
    build_model,
    columns,
    configs,
    examples,
    line,
    line_model,
    random_model,
    random_script,
    random_stream,
    say,
    with_names,
)

from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.linking import state
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import concat_verdicts
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network


def cut(data, n):
    """Some way of cutting n records: sorted positions, repeats (empty batches) included."""
    return sorted(data.draw(st.lists(st.integers(0, n), max_size=8), label="cuts"))


def in_batches(linker, batch, cuts):
    edges = [0, *cuts, len(batch)]
    return concat_verdicts([linker.process(batch[a:b]) for a, b in pairwise(edges)])


def as_it_counts(script):
    """The feedback in the order in which it counts, without what is taken back before it does."""
    lines, new = [], {}
    for old in sorted(range(len(script)), key=lambda k: (script[k][4], k)):
        _, scope, target, label, from_tick = script[old]
        if scope == "undo":
            if target[0] not in new:
                continue
            target = (new[target[0]],)
        new[old] = len(lines)
        lines.append((scope, target, label, from_tick))
    return lines


@examples(few=60, many=1500)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), config=configs())
def test_any_cut_gives_the_same_verdicts_and_the_same_state(data, seed, config):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, 160, len(model.encoding.kept), model.encoding.widths)
    script = random_script(rng, batch, 12)
    whole, parts = with_names(Linker(model, config)), with_names(Linker(model, config))
    for _, *line_ in script:
        say(whole, *line_)
        say(parts, *line_)
    assert_same(whole.process(batch), in_batches(parts, batch, cut(data, len(batch))))
    assert whole.snapshot() == parts.snapshot()
    assert whole.clusters() == parts.clusters()
    assert whole.counters() == parts.counters()


@examples(few=40, many=1000)
@given(seed=st.integers(0, 2**32 - 1), config=configs())
def test_a_label_said_early_equals_one_said_when_it_counts(seed, config):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, 100, len(model.encoding.kept), model.encoding.widths)
    script = [line_ for line_ in as_it_counts(random_script(rng, batch, 12)) if line_[3] <= len(batch)]
    early, late = with_names(Linker(model, config)), with_names(Linker(model, config))
    for line_ in script:
        say(early, *line_)
    verdicts = []
    for scope, target, label, from_tick in script:
        verdicts.append(late.process(batch[late.tick : from_tick]))
        say(late, scope, target, label, None)
    verdicts.append(late.process(batch[late.tick :]))
    assert_same(early.process(batch), concat_verdicts(verdicts))
    assert early.snapshot() == late.snapshot()


@examples(few=60, many=1500)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), config=configs())
def test_a_restored_linker_goes_on_bit_for_bit(data, seed, config):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, 120, len(model.encoding.kept), model.encoding.widths)
    script = random_script(rng, batch, 12)
    saved = set(cut(data, len(batch)))
    on, again = with_names(Linker(model, config)), with_names(Linker(model, config))
    at = 0
    for said, *rest in [*script, (len(batch), None)]:
        for stop in sorted({s for s in saved if at < s < said} | {said}):
            assert_same(on.process(batch[at:stop]), again.process(batch[at:stop]))
            at = stop
            if stop in saved:
                again = Linker.restore(model, again.snapshot())
        if rest[0] is not None:
            a, b = say(on, *rest), say(again, *rest)
            assert (a.event, a.covered, a.applied) == (b.event, b.covered, b.applied)
    assert on.snapshot() == again.snapshot()
    assert on.clusters() == again.clusters()
    assert on.counters() == again.counters()
    assert on.labels.names == again.labels.names


def test_the_end_of_the_buffer_does_not_show():
    model = line_model([(0.1, "normal")])
    rng = np.random.default_rng(5)
    batch = line(rng.uniform(0, 3, 1000))
    one = Linker(model, LinkerConfig(referent_window=31, gap=2))
    verdicts = one.process(batch)
    # A linker restored every 7 records keeps its members at the front of the buffer and never reaches the end.
    other, parts = Linker(model, one.config), []
    for at in range(0, len(batch), 7):
        parts.append(other.process(batch[at : at + 7]))
        other = Linker.restore(model, other.snapshot())
    assert_same(verdicts, concat_verdicts(parts))
    assert (verdicts.parent >= 0).mean() > 0.5
    ages = np.arange(1000)[verdicts.parent >= 0] - verdicts.parent[verdicts.parent >= 0]
    assert (ages.min(), ages.max()) == (3, 33)


@examples(few=40, many=1000)
@given(seed=st.integers(0, 2**32 - 1), config=configs(partitions=(2, 3, 5)))
def test_partitions_equal_separate_linkers_on_the_split_stream(seed, config):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, 120, len(model.encoding.kept), model.encoding.widths)
    count = config.partitions
    together = with_names(Linker(model, config))
    verdicts = columns(together.process(batch))
    total = dict.fromkeys(together.counters(), 0)
    for p in range(count):
        rows = np.flatnonzero(batch.key % np.uint64(count) == p)
        alone = with_names(Linker(model, msgspec.structs.replace(config, partitions=1)))
        own = columns(alone.process(batch[rows]))
        hung = own["cluster"] >= len(CLASSES)
        own["cluster"][hung] = len(CLASSES) + (own["cluster"][hung] - len(CLASSES)) * count + p
        for name in ("parent", "normal_at", "other_at"):
            in_window = own[name] >= 0
            own[name][in_window] = rows[own[name][in_window]]
        for name, column in own.items():
            assert column.tobytes() == verdicts[name][rows].tobytes(), name
        for name, value in alone.counters().items():
            total[name] += value
    assert total == together.counters()


def test_one_partition_is_the_default_and_does_not_look_at_the_key():
    rng = np.random.default_rng(3)
    model = random_model(rng)
    batch = random_stream(rng, 80, len(model.encoding.kept), model.encoding.widths)
    keyless = batch[:]
    keyless.key = np.zeros(len(batch), np.uint64)
    a, b = with_names(Linker(model)), with_names(Linker(model, LinkerConfig(partitions=1)))
    assert_same(a.process(batch), b.process(keyless))
    assert a.snapshot() == b.snapshot()


def test_partitions_need_a_key_attribute():
    reference = (np.zeros((1, 1), np.float32), np.zeros((1, 0), np.uint16), [0], [1.0, 0.5])
    assert Linker(build_model(*reference), LinkerConfig(partitions=2)).tick == 0
    with pytest.raises(InputError, match="key"):
        Linker(build_model(*reference, key=False), LinkerConfig(partitions=2))


@pytest.mark.parametrize("config", [LinkerConfig(referent_window=7), LinkerConfig.thesis(referent_window=5, delay=4)])
def test_moving_the_window_in_its_buffer_changes_nothing(config, monkeypatch):
    rng = np.random.default_rng(3)
    model = train_network(simulate(600, seed=1).table(), TrainParams(epochs=1, reference_size=30))
    batch = model.encoding.encode(simulate(700, seed=2, day=1).table())
    want = None
    for spare in (1, 2, 13, 100_000):
        monkeypatch.setattr(state, "SPARE", spare)
        linker = Linker(model, config)
        cuts = np.sort(rng.integers(0, 700, 5))
        parts = [linker.process(batch[a:b]) for a, b in zip([0, *cuts], [*cuts, 700], strict=True)]
        got = (np.concatenate([v.score for v in parts]).tobytes(), linker.snapshot())
        want = want or got
        assert got == want
