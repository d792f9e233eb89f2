"""The linker against fixture F9 and against its slow twin: every output, summary and counter, bit for bit."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linker_cases import (
    NAMES,
    build_model,
    columns,
    configs,
    examples,
    line,
    line_model,
    numbered,
    random_model,
    random_script,
    random_stream,
    say,
    with_names,
)
from slow_linker import SlowLinker

from netclust.errors import InputError
from netclust.linking import state
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import DESCENDANT, REFERENCE, ROOT, WINDOW
from netclust.metrics.detection_metrics import decision_metrics

F9_VALUES = [0.12, 0.50, 0.30, 0.88, 0.52, 0.28, 0.47, 0.20]
F9_LABELS = ["normal", "worm", "normal", "dos", "worm", "normal", "worm", "scan"]


@pytest.fixture(autouse=True, scope="module")
def small_buffers():
    """Windows move to the front of their buffer every few records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "SPARE", 3)
        yield


@pytest.mark.parametrize(
    ("feedback", "links", "table"),
    [
        ("none", "reference 0,root,root,reference 1,root,root,root,reference 0", (4, 2, 1, 1)),
        ("predicted", "reference 0,root,root,reference 1,0:2,0:3,0:5,0:6", (5, 2, 1, 0)),
        ("gold", "reference 0,root,root,reference 1,0:2,0:3,0:5,0:6", (4, 1, 2, 1)),
    ],
)
def test_fixture_f9_prediction(feedback, links, table):
    linker = Linker(line_model(), LinkerConfig.thesis(referent_window=2, delay=1, feedback=feedback))
    labels = numbered(linker.labels, F9_LABELS)
    verdicts = linker.process(line(F9_VALUES, first=1, labels=labels))
    assert ",".join(verdicts.referent(i) for i in range(8)) == links
    m = decision_metrics(verdicts.anomalous, ~linker.labels.is_normal[labels])
    assert (m.true_positives, m.false_positives, m.true_negatives, m.false_negatives) == table


def test_fixture_f9_labels_clusters_and_ways():
    linker = Linker(line_model(), LinkerConfig.thesis(referent_window=2, delay=1, feedback="predicted"))
    v = linker.process(line(F9_VALUES))
    assert [linker.labels.name(k) for k in v.label] == ["normal", "novel", "novel", "dos", *["novel"] * 4]
    assert v.cluster.tolist() == [0, 3, 4, 1, 3, 4, 3, 4]
    assert v.via.tolist() == [REFERENCE, ROOT, ROOT, REFERENCE, *[DESCENDANT] * 4]
    linker = Linker(line_model(), LinkerConfig.thesis(referent_window=2, delay=1, feedback="gold"))
    v = linker.process(line(F9_VALUES, labels=numbered(linker.labels, F9_LABELS)))
    assert [linker.labels.name(k) for k in v.label[4:]] == ["worm", "normal", "worm", "normal"]
    assert v.via[4:].tolist() == [WINDOW] * 4
    assert v.cluster.tolist() == [0, 3, 4, 1, 3, 4, 3, 4]


def run_both(model, config, batch, script=()):
    """The linker and its twin over the same stream with the same feedback, said at the same moments."""
    fast, slow = with_names(Linker(model, config)), SlowLinker(model, config, NAMES)
    at, got, want = 0, [], []
    for said, scope, target, label, from_tick in [*script, (len(batch), None, None, None, None)]:
        got.append(fast.process(batch[at:said]))
        want.append(slow.process(batch[at:said]))
        at = said
        if scope is not None:
            a = say(fast, scope, target, label, from_tick)
            b = slow.say(scope, target, NAMES.index(label) if scope != "undo" else -1, from_tick)
            assert (a.event, a.covered, a.applied) == (b.number, b.covered, b.applied)
    return fast, slow, got, want


def assert_equal_runs(fast, slow, got, want):
    for a, b in zip(got, want, strict=True):
        for name, column in columns(a).items():
            assert column.tobytes() == np.array(b.get(name, []), column.dtype).tobytes(), name
    assert [msgspec.structs.asdict(c) for c in fast.clusters()] == slow.clusters(NAMES)
    assert fast.counters() == slow.counters()
    assert [(e.covered, e.applied) for e in fast.events] == [(e.covered, e.applied) for e in slow.events]


@examples(few=150, many=5000)
@given(seed=st.integers(0, 2**32 - 1), config=configs(), n=st.sampled_from([0, 1, 5, 30, 150]))
def test_the_linker_equals_its_twin(seed, config, n):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, n, len(model.encoding.kept), model.encoding.widths)
    assert_equal_runs(*run_both(model, config, batch))


@examples(few=150, many=5000)
@given(
    seed=st.integers(0, 2**32 - 1),
    config=configs(),
    n=st.sampled_from([5, 30, 100]),
    count=st.sampled_from([1, 3, 8, 25]),
)
def test_the_linker_equals_its_twin_under_feedback(seed, config, n, count):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    batch = random_stream(rng, n, len(model.encoding.kept), model.encoding.widths)
    assert_equal_runs(*run_both(model, config, batch, random_script(rng, batch, count)))


@examples(few=40, many=500)
@given(seed=st.integers(0, 2**32 - 1), config=configs())
def test_the_sign_of_the_score_is_the_verdict(seed, config):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    v = with_names(Linker(model, config)).process(
        random_stream(rng, 80, len(model.encoding.kept), model.encoding.widths)
    )
    assert v.anomalous[v.score > 0].all()
    assert not v.anomalous[v.score < 0].any()
    assert np.array_equal(v.score == np.inf, v.normal == -np.inf)


def test_ties_go_to_the_root_then_to_the_references_then_from_oldest_to_newest():
    exact = 0.5  # numbers without rounding
    model = line_model([(0.25, "dos"), (0.25, "normal")], root=exact)
    linker = Linker(model, LinkerConfig(referent_window=4))
    v = linker.process(line([0.75, 0.25, 0.75, 0.5, 0.75]))
    # 0.75: root ties with both references. 0.25: the first of two equal references. Again 0.75: the record before it.
    # 0.5: 0.75 with references 0 and 1 and with records 0, 1 and 2: the reference. 0.75: the oldest of its equals.
    assert [v.referent(i) for i in range(5)] == ["root", "reference 0", "0:0", "reference 0", "0:0"]
    assert v.score[3] == 0


def test_a_label_is_visible_to_record_j_if_more_than_the_delay_lies_between():
    for delay in range(4):
        linker = Linker(line_model([(0.1, "dos")]), LinkerConfig(referent_window=10, label_delay=delay))
        v = linker.process(line([0.5, *[0.5] * 6], labels=[0, *[-1] * 6]))
        # Record 0 opens a cluster; the first that finds it to be normal is number delay + 1.
        assert (v.parent[1:] == 0).all()
        assert v.anomalous.tolist() == [True] * (delay + 1) + [False] * (6 - delay)


def test_without_referents_everything_goes_to_the_root():
    model = build_model(np.zeros((0, 1), np.float32), np.zeros((0, 0), np.uint16), [], [1.0, 0.5], rooted=False)
    v = Linker(model, LinkerConfig(referent_window=3, gap=2)).process(line([0.1, 0.1, 0.1, 0.1]))
    assert [v.referent(i) for i in range(4)] == ["root", "root", "root", "0:0"]
    assert v.score.tolist() == [np.inf] * 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"referent_window": -1},
        {"referent_window": 1 << 30},
        {"gap": -1},
        {"partitions": 0},
        {"max_clusters": 0},
        {"max_events": 0},
        {"label_delay": -1},
        {"label_delay": 1 << 70},
        {"mature_after": -1.0},
        {"mature_after": float("nan")},
        {"mature_share": 1.5},
        {"mature_share": float("nan")},
    ],
)
def test_configurations_that_cannot_work_are_refused(wrong):
    with pytest.raises(InputError):
        LinkerConfig(**wrong)


def test_batches_that_do_not_fit_are_refused_and_change_nothing():
    linker = Linker(line_model())
    before = linker.snapshot()
    good = line([0.1, 0.2])
    for name, value in (
        ("num", np.zeros((2, 2), np.float32)),
        ("num", np.array([[0.1], [np.nan]], np.float32)),
        ("num", np.array([[0.1], [np.inf]], np.float32)),
        ("code", np.zeros((2, 1), np.uint16)),
        ("label", np.array([0, 3], np.int32)),
    ):
        bad = good[:]
        setattr(bad, name, value)
        with pytest.raises(InputError):
            linker.process(bad)
    assert linker.snapshot() == before
    coded = build_model(np.zeros((1, 0), np.float32), np.ones((1, 1), np.uint16), [0], [0.0] * 7, widths=(3,))
    for code, fits in ((2, True), (3, False)):
        batch = line([0.1])
        batch.num, batch.code = np.zeros((1, 0), np.float32), np.full((1, 1), code, np.uint16)
        if fits:
            Linker(coded).process(batch)
        else:
            with pytest.raises(InputError, match="vocabular"):
                Linker(coded).process(batch)
