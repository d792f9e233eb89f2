"""ActiveLearner: what it asks, how much, and what an answer reaches."""

from __future__ import annotations

import numpy as np
import pytest

import netclust.linking.active_learning
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.active_learning import ActiveLearner, allowance, pair_scores
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.batch import Batch
from netclust.scoring.model import Model

N = 1000


@pytest.fixture(scope="module")
def model() -> Model:
    params = TrainParams(learner="unlearned", false_alarm_rate=0.05)
    return train_network(simulate(2000, seed=1).table(), params, seed=0)


@pytest.fixture(scope="module")
def today() -> tuple[list[str], object]:
    made = simulate(N, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK))
    return [str(name) for name in made.label], made.table()


def ask(
    model: Model, today: tuple[list[str], object], step: int, wait: int = 100, **options: object
) -> tuple[list[str], bytes]:
    """Every question of a stream in batches of `step`, and the scores of all verdicts."""
    names, table = today
    linker = Linker(model, LinkerConfig.stream(referent_window=N))
    batch = model.encoding.encode(table)  # type: ignore[arg-type]
    active_learner = ActiveLearner(linker, **{"horizon": N, **options})  # type: ignore[arg-type]
    asked, scores, due = [], [], []
    for start in range(0, N, step):
        while due and due[0][0] <= start:
            record = due.pop(0)[1]
            active_learner.answer(record, names[int(record.split(":")[1])])
        part = batch[start : start + step]
        verdicts = linker.process(part)
        scores.append(verdicts.score)
        for record in active_learner.observe(part, verdicts):
            asked.append(record)
            due.append((start + step + wait, record))
    assert active_learner.asked == len(asked)
    assert active_learner.waiting == len(due)
    return asked, np.concatenate(scores).tobytes()


def test_scores_are_those_of_the_linker(model: Model, today: tuple[list[str], object]) -> None:
    batch = model.encoding.encode(today[1])[:50]  # type: ignore[arg-type]
    verdicts = Linker(model, LinkerConfig(referent_window=0)).score_only(batch)
    scores = pair_scores(model, model.reference, batch)
    normal = model.encoding.label_table().is_normal[model.reference.label]
    np.testing.assert_allclose(scores[normal].max(0), verdicts.normal, rtol=1e-5)
    np.testing.assert_allclose(scores[~normal].max(0), verdicts.other, rtol=1e-5)


def test_no_more_is_asked_than_the_budget(model: Model, today: tuple[list[str], object]) -> None:
    for budget in (0.0, 0.003, 0.02, 0.1):
        asked, _ = ask(model, today, 50, budget=budget)
        assert len(asked) == len(set(asked)) == round(budget * N)
    assert allowance(0.01, 0, 10) == 0


@pytest.mark.parametrize("choice", ["worth", "random"])
def test_batches_do_not_change_what_is_asked(model: Model, today: tuple[list[str], object], choice: str) -> None:
    whole = ask(model, today, 50, budget=0.02, choice=choice)
    assert ask(model, today, 10, budget=0.02, choice=choice) == whole
    assert ask(model, today, 25, budget=0.02, choice=choice) == whole


def test_an_answer_reaches_what_is_alike(model: Model, today: tuple[list[str], object]) -> None:
    batch = model.encoding.encode(today[1])  # type: ignore[arg-type]
    row = int(np.flatnonzero(~Linker(model, LinkerConfig(referent_window=0)).score_only(batch).anomalous)[0])
    same = Batch(num=batch.num[[row] * 100], code=batch.code[[row] * 100])
    linker = Linker(model, LinkerConfig.stream(referent_window=200))
    active_learner = ActiveLearner(linker, budget=0.02, horizon=100)
    before = linker.process(same[:50])
    asked = active_learner.observe(same[:50], before)
    assert len(asked) == 1  # the second would be about the same
    events = active_learner.answer(asked[0], "worm")
    assert sum(event.covered for event in events) == 50
    assert not before.anomalous.any()
    after = linker.process(same[50:])
    assert {linker.labels.name(int(label)) for label in after.label} == {"worm"}


def test_a_new_cluster_is_labelled_as_a_whole(model: Model, today: tuple[list[str], object]) -> None:
    batch = model.encoding.encode(today[1])  # type: ignore[arg-type]
    linker = Linker(model, LinkerConfig.stream(referent_window=N))
    classes = len(model.encoding.labels)
    active_learner = ActiveLearner(linker, budget=1.0, horizon=N, every=N, choice="random")
    verdicts = linker.process(batch)
    active_learner.observe(batch, verdicts)
    novel, known = (np.flatnonzero(found)[0] for found in (verdicts.cluster >= classes, verdicts.cluster < classes))
    scopes = [event.scope for event in active_learner.answer(batch.record_id(int(novel)), "worm")]
    assert scopes[:2] == ["cluster", "record"]
    assert "cluster" not in scopes[1:]
    assert {event.scope for event in active_learner.answer(batch.record_id(int(known)), "worm")} == {"record"}


def test_memory_is_bounded(model: Model, today: tuple[list[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netclust.linking.active_learning, "MOST_ANSWERS", 5)
    batch = model.encoding.encode(today[1])  # type: ignore[arg-type]
    linker = Linker(model, LinkerConfig.stream(referent_window=100))
    active_learner = ActiveLearner(linker, budget=0.05, horizon=N)
    first, *_, last = active_learner.observe(batch, linker.process(batch))
    assert active_learner.asked == 50
    assert active_learner.waiting == 5
    assert len(active_learner._memory) == 100
    with pytest.raises(InputError, match="too long ago"):
        active_learner.answer(first, "normal")
    active_learner.answer(last, "normal")
    assert active_learner.waiting == 4
    with pytest.raises(InputError, match="answered already"):
        active_learner.answer(last, "normal")


def test_nonsense_is_refused(model: Model, today: tuple[list[str], object]) -> None:
    linker = Linker(model)
    for options in ({"budget": 1.5}, {"budget": -0.1}, {"every": 0}, {"doubt": 0.0}, {"horizon": 0}, {"seed": -1}):
        with pytest.raises(InputError):
            ActiveLearner(linker, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="referent window"):
        ActiveLearner(Linker(model, LinkerConfig(referent_window=0)))
    batch = model.encoding.encode(today[1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="verdicts"):
        ActiveLearner(linker).observe(batch[:3], linker.process(batch[:2]))
    with pytest.raises(InputError, match="not asked"):
        ActiveLearner(linker).answer("0:1", "normal")
