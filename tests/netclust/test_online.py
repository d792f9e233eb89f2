"""Online linking from dicts: any cut of the stream gives the same state, features come and go, nothing grows."""

from __future__ import annotations

import math
import pickle
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linker_cases import examples
from river import checks, compose, datasets, evaluate, metrics, preprocessing

from netclust.errors import InputError
from netclust.online import OnlineClusterer, OnlineDetector, plain
from netclust.records.encoding import Encoding
from netclust.river import LinkDetector, OnlineLinkClusterer

pytestmark = pytest.mark.peers


def rows(seed: int, n: int) -> list[dict[str, Any]]:
    """Records whose features emerge, disappear and change their kind."""
    rng = random.Random(seed)
    made = []
    for i in range(n):
        x: dict[str, Any] = {"a": rng.gauss(0, 1), "kind": rng.choice("xyz")}
        if i > n // 3:
            x["late"] = rng.expovariate(1)
        if i > n // 2:
            del x["a"]
        if rng.random() < 0.1:
            x = {"odd": rng.choice([1, "one", None, float("nan"), True])}
        made.append(x)
    return made


@examples(few=20, many=300)
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 120), max_size=6), window=st.sampled_from([5, 30, 200]))
def test_cuts_do_not_change_the_state(seed: int, cuts: list[int], window: int) -> None:
    stream = rows(seed, 120)
    labels = [random.Random(seed + i).choice(["normal", "normal", "scan"]) for i in range(120)]
    for make in (
        lambda: OnlineDetector(window, min(12, window), 0.05),
        lambda: OnlineClusterer(window, min(12, window)),
    ):
        one, many = make(), make()
        for x, label in zip(stream, labels, strict=True):
            one.learn([x], [label])
        edges = [0, *sorted(cuts), 120]
        for a, b in pairwise(edges):
            many.learn(stream[a:b], labels[a:b])
        assert (one.seen, list(one.memory)) == (many.seen, list(many.memory))
        first, second = one.score_only(stream), many.score_only(stream)
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first.score.tobytes() == second.score.tobytes()
            assert first.cluster.tolist() == second.cluster.tolist()
            alone = [one.score_only([x]) for x in stream[:20]]
            assert [v.score[0] for v in alone if v is not None] == first.score[:20].tolist()


def test_dicts_are_encoded_as_tables_are() -> None:
    online = OnlineDetector(200, 50)
    stream = [{"a": float(i % 7), "b": 10.0 ** (i % 6), "kind": "xyz"[i % 3]} for i in range(120)]
    online.learn(stream)
    assert online.linker is not None
    encoding: Encoding = online.linker.model.encoding
    batch = online._encode([(plain(x), "normal") for x in stream])
    columns = {name: [x[name] for x in stream] for name in stream[0]}
    from netclust.records.frames import as_table

    table = encoding.encode(as_table(columns, ["normal"] * 120, schema=encoding.schema), online.linker.labels)
    assert batch.num.tobytes() == table.num.tobytes()
    assert batch.code.tobytes() == table.code.tobytes()
    assert batch.label.tolist() == table.label.tolist()


def test_state_does_not_grow_with_the_stream() -> None:
    rng = random.Random(1)
    detector = OnlineDetector(window=50, grace=20)
    sizes = []
    for i in range(600):
        detector.learn([{"a": rng.random(), f"once{i}": 1.0}])  # a feature of its own in every record
        if i % 100 == 99:
            sizes.append(len(pickle.dumps(detector)))
    assert len(detector.memory) == 50
    assert sizes[-1] < 1.5 * sizes[1]


def test_constant_and_empty_records_do_not_stop_it() -> None:
    detector = OnlineDetector(window=50, grace=10)
    detector.learn([{}] * 30)
    detector.learn([{"a": 1.0}] * 30)
    assert detector.scores([{"a": 1.0}, {}]).tolist() == [0, 0]
    detector.learn([{"a": float(i)} for i in range(60)])
    assert detector.scores([{"a": 500.0}])[0] > 0
    detector.learn([{"a": float(i)} for i in range(100)], ["scan"] * 100)  # nothing normal is left to calibrate on
    assert math.isfinite(detector.scores([{"a": 3.0}])[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnlineDetector(window=50, grace=51), "no more than the window"),
        (lambda: OnlineDetector(grace=1), "grace is 2 or more"),
        (lambda: OnlineDetector().learn([{}], []), "0 labels for 1 records"),
        (lambda: OnlineDetector(false_alarm_rate=0), "false-alarm rate"),
        (lambda: OnlineClusterer(stretch=0), "stretch"),
        (lambda: OnlineClusterer(radius=-1), "radius"),
        (lambda: OnlineClusterer(radius=float("nan")), "radius"),
    ],
)
def test_impossible_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_clusters_keep_their_numbers() -> None:
    rng = random.Random(2)
    clusterer = OnlineClusterer(window=60, grace=20, radius=1.0)
    centres = [0.0, 100.0, 200.0]
    for i in range(500):  # many changes of the schema on the way
        clusterer.learn([{"a": rng.gauss(centres[i % 3], 0.5)}])
        if i >= 20:
            assert clusterer.predict([{"a": c} for c in centres]).tolist() == [0, 1, 2]
    assert clusterer.predict([{"a": 5000.0}])[0] == clusterer.clusters == 3


def test_blobs_are_kept_apart_by_default() -> None:
    rng = random.Random(5)
    clusterer = OnlineClusterer(grace=60)
    clusterer.learn([{"a": rng.gauss(50 * (i % 3), 1), "b": rng.gauss(0, 1)} for i in range(400)])
    assert len({int(c) for c in clusterer.predict([{"a": 50.0 * k, "b": 0.0} for k in range(3)])}) == 3


# river


class _Cards:
    """Records of the shape of card payments, some of them odd."""

    def take(self, n: int) -> Any:
        rng = random.Random(3)
        for i in range(n):
            bad = i % 50 == 49
            x = {f"V{k}": rng.gauss(6 if bad and k < 4 else 0, 1) for k in range(28)}
            yield x | {"Amount": rng.random() * 100}, int(bad)


@pytest.mark.parametrize("model", [LinkDetector(), LinkDetector(use_labels=True), OnlineLinkClusterer()], ids=str)
def test_river_has_nothing_to_complain_about(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "CreditCard", datasets.Shuttle)  # which river would fetch; this one it brings along
    checks.check_estimator(model)


def test_late_labels_help() -> None:
    # A beacon that comes again and again: without labels it is soon taken for normal, with late ones it is known.
    rng = random.Random(4)
    data = []
    for i in range(1200):
        beacon = i % 10 == 9
        data.append(({"gap": rng.gauss(3.0 if beacon else 0.0, 0.1 if beacon else 1.0), "kind": "x"}, beacon))

    def area(use_labels: bool) -> float:
        model = LinkDetector(window=500, use_labels=use_labels)
        return float(evaluate.progressive_val_score(data, model, metrics.ROCAUC(n_thresholds=100), delay=50).get())

    assert area(True) > area(False) + 0.2
    assert area(True) > 0.85


def test_a_pipeline_takes_it() -> None:
    data = [(x, y) for x, y in _Cards().take(600)]
    numbers = compose.Select(*data[0][0])
    pipeline = numbers | preprocessing.StandardScaler() | LinkDetector(window=300, use_labels=True)
    assert evaluate.progressive_val_score(data, pipeline, metrics.ROCAUC(), delay=10).get() > 0.8
    grouped = preprocessing.StandardScaler() | OnlineLinkClusterer(grace=20, radius=3.0)
    for x, _ in data[:60]:
        grouped.learn_one(x)
    assert isinstance(grouped.predict_one(data[0][0]), int)


def test_many_at_once_equal_one_at_a_time() -> None:
    X = pd.DataFrame([x for x, _ in _Cards().take(400)], index=range(1000, 1400))
    y = pd.Series([bool(y) for _, y in _Cards().take(400)])
    one, many = LinkDetector(window=150), LinkDetector(window=150)
    for x, label in zip(X.to_dict(orient="records"), y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    scores = many.score_many(X)
    assert scores.tolist() == [one.score_one(x) for x in X.to_dict(orient="records")]
    assert scores.index.tolist() == X.index.tolist()
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in X.to_dict(orient="records")]
    assert set(np.unique(scores > 0.5)) == {False, True}
    first, second = OnlineLinkClusterer(window=150), OnlineLinkClusterer(window=150)
    for x in X.to_dict(orient="records"):
        first.learn_one(x)
    second.learn_many(X)
    assert second.predict_many(X).tolist() == [first.predict_one(x) for x in X.to_dict(orient="records")]
