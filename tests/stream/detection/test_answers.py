"""Answers of people, on a linker: what they cover, what they pin, how they are taken back, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.linking.linker import Linker
from netclust.linking.verdicts import NO_REFERENT, NORMAL
from netclust.linking.weight_updates import REACH
from netclust.records.batch import Batch
from netclust.scoring.model import Model
from netclust.stream.detection import answers as module
from netclust.stream.detection.answers import PINS_AN_ANSWER, Answer, Answers, Result

ROOT = -1

ATTACK = simulate(400, seed=4, day=1, attacks=HELD_BACK, attack_share=0.9).table()


@pytest.fixture
def stream(small_model: Model) -> Batch:
    return small_model.encoding.encode(ATTACK)


@pytest.fixture
def linker(small_model: Model, stream: Batch) -> Linker:
    linker = Linker(small_model)
    linker.process(stream)
    return linker


def novel_cluster(linker: Linker) -> int:
    classes = len(linker.model.encoding.labels)
    return max((c for c in linker.clusters() if c.id >= classes), key=lambda c: c.records).id


def own(linker: Linker) -> list[str]:
    """Words of the model for an attack."""
    return [name for name in linker.model.encoding.labels if name not in linker.labels.normal]


def test_a_label_covers_the_members_of_the_cluster_and_pins_some_spread_over_them(linker: Linker) -> None:
    cluster = novel_cluster(linker)
    num, _ = linker.members(cluster=cluster)
    answers, before = Answers(), linker.model
    label = own(linker)[0]
    after, result = answers.apply(Answer(number=3, from_tick=400, label=label, clusters=(cluster,)), linker)
    pinned = min(PINS_AN_ANSWER, len(num))
    assert pinned > 2
    assert result == Result(number=3, from_tick=400, covered=len(num), pinned=pinned)
    assert answers.pins == pinned
    added = after.model.reference[len(before.reference) :]
    assert len(added) == pinned
    assert np.array_equal(added.num[0], num[0])
    assert np.array_equal(added.num[-1], num[-1])
    assert set(added.label.tolist()) == {before.encoding.labels.index(label)}
    assert answers.applied[3].pins == list(range(len(before.reference), len(before.reference) + pinned))
    assert len(answers.applied[3].events) == 1


def test_records_kept_of_an_alert_are_pinned_rather_than_what_the_window_has(linker: Linker) -> None:
    cluster = novel_cluster(linker)
    reference = linker.model.reference
    kept = (reference.num[:2], reference.code[:2])
    after, result = Answers().apply(
        Answer(number=1, from_tick=400, label="normal", clusters=(cluster,)), linker, [kept]
    )
    added = after.model.reference[len(reference) :]
    assert (result.pinned, len(added)) == (2, 2)
    assert np.array_equal(added.num, kept[0])
    assert np.array_equal(added.code, kept[1])


def test_few_members_are_all_pinned_and_those_of_no_class_of_the_model_are_not(linker: Linker) -> None:
    answers = Answers()
    after, result = answers.apply(Answer(number=1, from_tick=400, label="normal", records=("0:399", "0:398")), linker)
    assert (result.covered, result.pinned, answers.pins) == (2, 2, 2)
    again, result = answers.apply(Answer(number=2, from_tick=400, label="unheard-of", records=("0:397",)), after)
    assert (result.covered, result.pinned, answers.pins) == (1, 0, 2)
    assert again is after


def test_pins_stop_at_the_bound_of_all_answers(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PINS", PINS_AN_ANSWER + 1)
    answers = Answers()
    found = []
    for number in (1, 2, 3):
        ids = tuple(f"0:{399 - 10 * number - k}" for k in range(10))
        linker, result = answers.apply(Answer(number=number, from_tick=400, label="normal", records=ids), linker)
        found.append(result.pinned)
    assert found == [PINS_AN_ANSWER, 1, 0]


def test_taking_an_answer_back_restores_every_verdict(linker: Linker, stream: Batch) -> None:
    before = linker.score_only(stream)
    answers, cluster = Answers(), novel_cluster(linker)
    after, given = answers.apply(Answer(number=7, from_tick=400, label="normal", clusters=(cluster,)), linker)
    assert np.sum(after.score_only(stream).verdict == NORMAL) > np.sum(before.verdict == NORMAL)
    same, undone = answers.apply(Answer(number=8, from_tick=400, undo=7), after)
    assert same is after
    assert undone == Result(number=8, from_tick=400, covered=given.covered, pinned=-given.pinned)
    again = after.score_only(stream)
    for name in ("verdict", "label", "score", "cluster"):
        assert np.array_equal(getattr(again, name), getattr(before, name))


@pytest.mark.parametrize(
    ("undo", "why"), [(99, "label 99 is not known"), (0, "label 0 is not known"), (1, "undone already")]
)
def test_an_answer_can_be_taken_back_once(linker: Linker, undo: int, why: str) -> None:
    answers = Answers()
    linker, _ = answers.apply(Answer(number=1, from_tick=400, label="normal", records=("0:399",)), linker)
    linker, _ = answers.apply(Answer(number=2, from_tick=400, undo=1), linker)
    same, result = answers.apply(Answer(number=3, from_tick=401, undo=undo), linker)
    assert same is linker
    assert (result.number, result.from_tick, result.covered, result.pinned) == (3, 401, 0, 0)
    assert why in result.refused


def test_the_oldest_answers_are_forgotten_beyond_a_bound(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWERS", 3)
    answers = Answers()
    for number in range(1, 6):
        linker, _ = answers.apply(
            Answer(number=number, from_tick=400, label="x", records=(f"0:{390 + number}",)), linker
        )
    assert list(answers.applied) == [3, 4, 5]


def test_what_the_linker_has_forgotten_does_not_keep_the_rest_from_being_undone(linker: Linker) -> None:
    answers = Answers()
    linker, given = answers.apply(Answer(number=1, from_tick=400, label="x", records=("0:399", "0:398")), linker)
    assert given.covered == 2
    linker.undo(answers.applied[1].events[1])
    _, result = answers.apply(Answer(number=2, from_tick=400, undo=1), linker)
    assert (result.refused, result.covered) == ("", 1)


@pytest.mark.parametrize(
    ("clusters", "why"),
    [
        ((10**9,), "cluster 1000000000 is not known, or forgotten"),
        ((1,), "cluster 1 is a class of the model: label an alert or records of it"),
        ((10**9, 1), "cluster 1000000000 is a class of the model"),
    ],
)
def test_clusters_that_cannot_be_labelled_are_named(linker: Linker, clusters: tuple[int, ...], why: str) -> None:
    same, result = Answers().apply(Answer(number=1, from_tick=5, label="normal", clusters=clusters), linker)
    assert same is linker
    assert result.refused.startswith(why)


def test_a_class_of_the_model_keeps_its_label_though_records_of_it_are_answered(linker: Linker, stream: Batch) -> None:
    _, result = Answers().apply(Answer(number=1, from_tick=400, label="x", clusters=(1,), records=("0:399",)), linker)
    assert (result.refused, result.covered) == ("", 1)
    kept = (stream.num[:1], stream.code[:1])
    after, result = Answers().apply(Answer(number=1, from_tick=400, label="normal", clusters=(1,)), linker, [kept])
    assert (result.refused, result.covered, result.pinned) == ("", 0, 1)
    assert np.array_equal(after.model.reference.num[-1], stream.num[0])


# Weights


@pytest.mark.parametrize(("label", "toward"), [("normal", -1), ("attack", 1)])
def test_an_answer_moves_the_weights_towards_its_side_where_that_is_asked_for(
    small_model: Model, label: str, toward: int
) -> None:
    calm = small_model.encoding.encode(simulate(300, seed=9, day=1, attacks=()).table())
    linker = Linker(small_model)
    linker.process(calm)
    verdicts = linker.score_only(calm)
    has_both = (verdicts.other_at < ROOT) & (verdicts.normal_at != NO_REFERENT)
    row = int(np.flatnonzero(has_both)[-1])
    answer = Answer(number=1, from_tick=300, label=label, records=(f"0:{row}",))
    after, _ = Answers(update_rate=0.5, start=small_model).apply(answer, linker)
    assert not np.array_equal(after.model.averaged, small_model.averaged)

    def score(model: Model) -> float:
        """How clearly the record is anomalous beside the reference set alone."""
        fresh = Linker(replace(model, reference=small_model.reference))
        return float(fresh.score_only(calm[row : row + 1]).score[0])

    assert (score(after.model) - score(small_model)) * toward > 0
    unmoved, _ = Answers().apply(answer, linker)
    assert np.array_equal(unmoved.model.averaged, small_model.averaged)


def test_weights_stay_within_reach_of_where_they_began(small_model: Model) -> None:
    calm = small_model.encoding.encode(simulate(300, seed=9, day=1, attacks=()).table())
    linker = Linker(small_model)
    linker.process(calm)
    verdicts = linker.score_only(calm)
    row = int(np.flatnonzero((verdicts.other_at < ROOT) & (verdicts.normal_at != NO_REFERENT))[-1])
    answers = Answers(update_rate=1000.0, start=small_model)
    features = small_model.layout.features
    for number in range(30):
        answer = Answer(number=number, from_tick=300, label="attack", records=(f"0:{row}",))
        linker, _ = answers.apply(answer, linker)
        ratio = np.abs(linker.model.averaged[:features] / small_model.averaged[:features])
        assert np.all((ratio > np.exp(-REACH) - 1e-9) & (ratio < np.exp(REACH) + 1e-9))
    assert np.max(np.abs(np.log(ratio))) > 0.5
