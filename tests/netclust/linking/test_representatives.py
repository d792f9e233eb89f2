"""Representatives: a long memory in little room. What is rare outlasts a flood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linker_cases import SECOND, assert_same, line, line_model, with_names

from netclust.errors import InputError
from netclust.kernels.linking import link as kernels
from netclust.linking import state
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import DESCENDANT, ROOT, WINDOW
from netclust.records.batch import concat_batches
from netclust.scoring.calibration import Calibration

POLICIES = ["reservoir", "medoid", "difficulty"]


def kept_ticks(linker):
    return sorted(int(t) for part in linker.memory.partitions for t in part.representatives.tick)


def flooded(representatives, keep="reservoir", window=20, **more):
    """Three records of a rare kind at 0.5, then ten windows of a flood at 0.9."""
    config = LinkerConfig(referent_window=window, representatives=representatives, keep=keep, **more)
    linker = with_names(Linker(line_model(), config))
    linker.process(line([0.5, 0.5, 0.5]))
    linker.process(line(np.linspace(0.88, 0.92, 10 * window), first=3))
    return linker


@pytest.mark.parametrize("keep", POLICIES)
@pytest.mark.parametrize("room", [4, 8, 40, 64])
def test_a_rare_class_survives_a_flood_of_ten_windows(keep, room):
    assert flooded(0).process(line([0.5], first=500)).via.tolist() == [ROOT]
    linker = flooded(room, keep)
    v = linker.process(line([0.5], first=500))
    assert v.via.tolist() == [DESCENDANT]
    assert v.cluster.tolist() == [3]
    assert v.parent[0] in (0, 1, 2)
    assert v.referent(0) == f"0:{v.parent[0]}"
    assert linker.counters()["representatives"] == room


def test_the_store_never_grows_and_is_never_larger_than_it_was_made():
    linker = Linker(line_model(), LinkerConfig(referent_window=10, representatives=7))
    arrays = [a for part in linker.memory.partitions for a in (*part.kept.member, *part.kept[1:])]
    rng = np.random.default_rng(0)
    for first in range(0, 1000, 100):
        linker.process(line(rng.random(100), first=first))
        assert linker.counters()["representatives"] == 7
        assert linker.counters()["referents"] == 10
    after = [a for part in linker.memory.partitions for a in (*part.kept.member, *part.kept[1:])]
    assert all(a is b for a, b in zip(arrays, after, strict=True))
    assert not any(
        a.size for part in Linker(line_model()).memory.partitions for a in (part.kept.weight, part.kept.held)
    )


@pytest.mark.parametrize("room", [16, 200])
def test_a_reservoir_is_a_uniform_sample_of_its_cluster(room):
    n, bins, counts = 8000, 10, np.zeros(10)
    for shift in range(20):
        linker = Linker(line_model(), LinkerConfig(referent_window=5, representatives=room))
        linker.memory.partitions[0].cursor[kernels.PUSHED] = shift * 100_000  # other numbers, another sample
        linker.process(line(np.full(n, 0.9)))
        found = np.array(kept_ticks(linker))
        counts += np.histogram(found, bins, (0, n))[0]
    expected = 20 * room / bins
    assert ((counts - expected) ** 2 / expected).sum() < 28  # chi-square of 9 degrees: one in a thousand is above


def test_a_medoid_is_what_records_linked_to_and_difficulty_the_closest_verdict():
    model = line_model([(0.1, "normal"), (0.9, "dos")], root=0.0)
    hub = [0.70, 0.71, 0.69, 0.70, 0.70, 0.80, 0.95, 0.85]  # 0 draws 1 to 4
    linker = Linker(model, LinkerConfig(referent_window=8, representatives=1, keep="medoid"))
    v = linker.process(line([*hub, *[0.9] * 12]))
    assert (v.parent[1:5] == 0).all()
    assert kept_ticks(linker) == [0]
    linker = Linker(model, LinkerConfig(referent_window=2, representatives=1, keep="difficulty"))
    v = linker.process(line([0.9, 0.55, 0.95, 0.9, 0.9, 0.9]))
    assert np.abs(v.score).argmin() == 1
    assert kept_ticks(linker) == [1]


def test_a_record_without_a_normal_referent_is_as_hard_as_can_be():
    linker = Linker(line_model([(0.9, "dos")]), LinkerConfig(referent_window=1, representatives=1, keep="difficulty"))
    assert linker.process(line([0.9, 0.9, 0.9])).score.tolist() == [np.inf] * 3
    assert linker.memory.partitions[0].kept.priority.tolist() == [0.0]


def test_ties_go_to_references_then_to_the_oldest_kept_then_to_the_window():
    # No reference is near; the root is low. Records 0.5 (tick 0), 0.5 (1), then others push them out.
    model = line_model([(0.0, "normal")], root=0.75)
    linker = Linker(model, LinkerConfig(referent_window=2, representatives=8))
    v = linker.process(line([0.5, 0.5, 1.0, 0.5, 1.0, 0.5, 0.0, 0.0]))
    assert v.parent.tolist() == [-1, 0, -1, 0, 2, 0, -2, -2]
    # 0.75 is as near to 0.5 as to 1.0: the root wins at 0.75; with it out of the way, the oldest of all.
    low = replace(model, calibration=Calibration(root=0.5, false_alarm_rate=0.1, obtained=0.1, records=1))
    assert linker.with_model(low).score_only(line([0.75])).parent.tolist() == [0]


def test_of_equals_on_both_sides_the_older_is_linked_to_wherever_it_lies():
    linker = with_names(Linker(line_model([], root=0.8), LinkerConfig(referent_window=1, representatives=2)))
    linker.process(line([0.25, 0.75, 1.5]))  # 0 and 1 are kept
    linker.label_record("0:1", "normal")
    root = Calibration(root=0.1, false_alarm_rate=0.1, obtained=0.1, records=1)
    linker = linker.with_model(replace(linker.model, calibration=root))
    v = linker.score_only(line([0.5]))
    assert (v.parent[0], v.score[0]) == (0, 0.0)
    kept = linker.memory.partitions[0].kept  # the same two, in the other order
    for array in (*kept.member, kept.priority):
        array[..., :2] = array[..., [1, 0]]
    assert_same(linker.score_only(line([0.5])), v)


def test_feedback_reaches_what_is_kept_and_can_be_undone():
    linker = flooded(8)
    said = linker.label_cluster(3, "worm")
    assert said.covered == sum(t < 3 for t in kept_ticks(linker)) > 0
    assert linker.knows_cluster(3)
    v = linker.score_only(line([0.5]))
    assert (v.via[0], linker.labels.name(v.label[0])) == (WINDOW, "worm")
    linker.undo(said)
    assert linker.score_only(line([0.5])).via.tolist() == [DESCENDANT]
    tick = kept_ticks(linker)[0]
    assert linker.label_record(f"0:{tick}", "benign").covered == 1
    assert linker.members(record_id=f"0:{tick}")[0].tolist() == [[0.5]]
    assert len(linker.members(cluster=3)[0]) == said.covered
    assert linker.memory.partitions[0].find(tick)[0].tolist() == [0.5]


def test_what_is_withheld_is_not_kept_and_what_has_matured_is_not_trusted_for_good():
    linker = Linker(
        line_model(), LinkerConfig(referent_window=4, representatives=9, mature_after=2.0, mature_share=0.5)
    )
    linker.process(line([0.1] * 40, times=range(40)))
    assert linker.counters()["trusted"] <= 2
    part = linker.memory.partitions[0]
    assert len(part.representatives.tick) == 9
    assert not part.representatives.trusted.any()
    never = Linker(line_model(), LinkerConfig(referent_window=4, representatives=9, mature_after=1e6))
    never.process(line([0.1] * 40, times=range(40)))
    assert never.counters()["representatives"] == 0


@pytest.mark.parametrize("size", [1, 7, 100])
def test_evidence_finds_referents_that_were_given_up_within_the_batch(size, monkeypatch):
    monkeypatch.setattr(state, "SPARE", 30)
    linker = Linker(line_model(), LinkerConfig(referent_window=3, representatives=4))
    values = np.random.default_rng(1).random(300).astype(np.float32)
    found = 0
    for first in range(0, 300, size):
        v, evidence = linker.process_with_evidence(line(values[first : first + size], first=first), "all")
        for side, at in ((evidence.normal, v.normal_at), (evidence.other, v.other_at)):
            for k in np.flatnonzero(at >= 0):
                assert (side.num[k, 0], side.seq[k]) == (values[at[k]], at[k])
                found += at[k] < first + k - 3
    assert found > 20


def test_snapshots_whole_and_of_changes_go_on_bit_for_bit():
    for keep in POLICIES:
        linker = flooded(8, keep)
        base = linker.freeze()
        packed = base.pack()
        linker.process(line([0.5, 0.2, 0.8], first=600))
        changes = linker.freeze(since=base.tick).pack()
        after = line(np.random.default_rng(2).random(200), first=700)
        assert base.pack() == packed
        whole = Linker.restore(linker.model, linker.snapshot())
        joined = Linker.restore(linker.model, changes, base=packed)
        assert whole.snapshot() == joined.snapshot() == linker.snapshot()
        expected = linker.process(after)
        assert_same(whole.process(after), expected)
        assert_same(joined.process(after), expected)
        assert whole.snapshot() == linker.snapshot()


def test_another_reference_set_keeps_the_representatives():
    linker = flooded(8)
    more = replace(linker.model, reference=concat_batches([linker.model.reference, linker.model.reference[:1]]))
    ticks = kept_ticks(linker)
    adopted = linker.with_model(more)
    assert kept_ticks(adopted) == ticks
    assert adopted.score_only(line([0.5])).via.tolist() == [DESCENDANT]


def test_without_a_window_nothing_leaves_it():
    linker = Linker(line_model(), LinkerConfig(referent_window=0, representatives=5))
    linker.process(line([0.5] * 5, times=np.arange(5) * SECOND))
    assert linker.counters()["representatives"] == 0
    assert Linker.restore(linker.model, linker.snapshot()).snapshot() == linker.snapshot()


@pytest.mark.parametrize("wrong", [{"representatives": -1}, {"representatives": 65_537}, {"keep": "newest"}])
def test_configurations_that_cannot_work_are_refused(wrong):
    with pytest.raises(InputError):
        LinkerConfig(**wrong)
