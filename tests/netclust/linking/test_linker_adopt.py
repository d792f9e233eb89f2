"""A linker that changes its model, and one that is frozen in parts: what it remembers, and what it must not mix up."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import ModelError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.weight_updates import REACH, update_margin, update_weights
from netclust.models.network.train_network import train_network
from netclust.records.batch import Batch, concat_batches
from netclust.scoring.calibration import Calibration
from netclust.scoring.model import Model


@cache
def trained(seed: int = 1) -> Model:
    return train_network(simulate(3000, seed=seed).table(), seed=0)


@cache
def today() -> Batch:
    return trained().encoding.encode(simulate(800, seed=2, day=1, attacks=HELD_BACK).table())


def linker() -> Linker:
    return Linker(trained(), LinkerConfig(referent_window=200, mature_after=60.0))


@given(cut=st.integers(0, 700), more=st.integers(0, 100))
def test_changes_and_their_base_are_the_whole_at_any_two_places(cut: int, more: int) -> None:
    one = linker()
    one.process(today()[:cut])
    base = one.freeze()
    if cut:
        one.label_cluster(int(one.process(today()[:1]).cluster[0]), "normal")
    one.process(today()[cut : cut + more])
    changes = one.freeze(since=base.tick)
    assert Linker.restore(trained(), changes.pack(), base=base.pack()).snapshot() == one.snapshot()


def test_a_frozen_copy_does_not_move_with_the_linker() -> None:
    one = linker()
    one.process(today()[:300])
    frozen, expected = one.freeze(), one.snapshot()
    one.label_cluster(int(one.process(today()[300:600]).cluster[-1]), "normal")
    assert frozen.pack() == expected


def test_changes_are_refused_without_their_base_or_with_another() -> None:
    one = linker()
    one.process(today()[:300])
    base = one.freeze()
    one.process(today()[300:350])
    changes = one.freeze(since=base.tick).pack()
    with pytest.raises(ModelError, match="missing"):
        Linker.restore(trained(), changes)
    later = one.freeze().pack()
    with pytest.raises(ModelError, match="another snapshot"):
        Linker.restore(trained(), changes, base=later)
    with pytest.raises(ModelError, match="another snapshot"):
        Linker.restore(trained(), changes, base=changes)


def test_a_model_with_more_referents_takes_over_the_whole_memory() -> None:
    plain, changed = linker(), linker()
    for one in (plain, changed):
        one.process(today()[:400])
        one.label_cluster(int(one.clusters()[-1].id), "normal")
    more = replace(trained(), reference=concat_batches([trained().reference, today()[:0]]))
    changed = changed.with_model(more)
    assert changed.process(today()[400:]).score.tobytes() == plain.process(today()[400:]).score.tobytes()
    assert changed.undo(changed.events[0]).covered == plain.undo(plain.events[0]).covered


def test_another_root_keeps_the_window_and_judges_by_the_new_one() -> None:
    one = linker()
    one.process(today()[:400])
    adopted = one.with_model(replace(trained(), rooted=False, calibration=None))
    assert adopted.counters()["referents"] == 200
    assert not (adopted.score_only(today()[400:]).via == 2).any()


def test_a_model_of_another_encoding_begins_anew_but_never_gives_a_cluster_id_twice() -> None:
    high = Calibration(root=1e9, false_alarm_rate=0.5, obtained=1.0, records=1)  # everything links to the root
    other = trained(7).with_root(high)
    one = Linker(trained().with_root(high), LinkerConfig(referent_window=200))
    given_ids = set(one.process(today()[:500]).cluster.tolist())
    adopted = one.with_model(other)
    assert (adopted.tick, adopted.counters()["referents"]) == (500, 0)
    later = trained(7).encoding.encode(simulate(500, seed=3, day=1, attacks=HELD_BACK).table())
    new = {c for c in adopted.process(later).cluster.tolist() if c >= len(trained(7).encoding.labels)}
    old = {c for c in given_ids if c >= len(trained().encoding.labels)}
    assert len(new) == len(old) == 500
    assert not new & old
    assert Linker.restore(other, adopted.snapshot()).snapshot() == adopted.snapshot()


def test_steering_makes_the_answered_verdict_safer_and_stays_within_reach() -> None:
    reference = trained().reference
    rng = np.random.default_rng(0)
    model = trained()
    for _ in range(200):
        record, right, wrong = ((reference.num[i], reference.code[i]) for i in rng.integers(0, len(reference), 3))
        steered = update_weights(model, record, right, wrong, rate=1.0, start=trained())
        assert update_margin(steered, record, right, wrong) >= update_margin(model, record, right, wrong) - 1e-9
        model = steered
    features = model.layout.features
    began = np.abs(trained().averaged[:features])
    factor = np.abs(model.averaged[:features])[began > 0] / began[began > 0]
    assert factor.max() <= np.exp(REACH) + 1e-9
    assert factor.min() >= np.exp(-REACH) - 1e-9
    assert np.array_equal(model.averaged[features:], trained().averaged[features:])


def test_old_names_of_methods_warn_and_do_the_same() -> None:
    batch = today()[:200]
    one, other = Linker(trained()), Linker(trained())
    one.process(batch)
    other.process(batch)
    with pytest.warns(DeprecationWarning, match="score_only"):
        old = getattr(one, "judge")(batch)  # noqa: B009
    assert old.score.tobytes() == other.score_only(batch).score.tobytes()
    with pytest.warns(DeprecationWarning, match="with_model"):
        moved = getattr(one, "adopt")(trained())  # noqa: B009
    assert moved.tick == other.with_model(trained()).tick
