"""Frames: what comes in as columns, rows or arrays is the same table; what cannot be compared is refused by name."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import netclust
from netclust.datasets.simulators.simulate import simulate
from netclust.errors import InputError
from netclust.linking.linker import LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.records.frames import as_table, frame_columns, infer_schema
from netclust.records.schema import load_schema

COLUMNS: dict[str, list[Any]] = {
    "bytes": [1, 5000, 7],
    "rate": [0.5, -1.0, 2.0],
    "service": ["http", None, "dns"],
    "secure": [True, False, True],
}
STRUCTURED = np.array(
    [(1, 0.5, "http", True), (5000, -1.0, "", False), (7, 2.0, "dns", True)],
    dtype=[("bytes", "i8"), ("rate", "f8"), ("service", "U4"), ("secure", "?")],
)


@pytest.mark.parametrize(
    "data",
    [
        COLUMNS,
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS).astype({"service": "category"}),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pl.DataFrame(COLUMNS),
        STRUCTURED,
        [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    ],
    ids=["columns", "pandas", "categories", "nullable", "polars", "structured", "dicts"],
)
def test_every_container_gives_the_same_table(data: Any) -> None:
    table = as_table(data, ["normal", "scan", "normal"])
    assert [(a.name, a.kind, a.transform) for a in table.schema.features] == [
        ("bytes", "numeric", "log1p"),
        ("rate", "numeric", "none"),
        ("service", "symbolic", "none"),
        ("secure", "binary", "none"),
    ]
    assert table.num.tolist() == [[1, 0.5], [5000, -1], [7, 2]]
    assert [table.symbols[0][i] for i in table.sym[:, 0]] == ["http", "", "dns"]
    assert [table.symbols[1][i] for i in table.sym[:, 1]] == ["1", "0", "1"]
    assert table.label_names().tolist() == ["normal", "scan", "normal"]


def test_rows_keep_their_names() -> None:
    assert list(frame_columns(np.zeros((2, 2)), names=["a", "b"])) == ["a", "b"]
    assert as_table(np.eye(3)).num.tolist() == np.eye(3).tolist()
    schema = infer_schema(frame_columns({"label": [1.0], "x": ["a"]}), normal=["ok", "fine"])
    assert schema.normal == ("ok", "fine")
    assert schema.attributes[-1].name == "label_"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: as_table(np.zeros(3)), "not of shape"),
        (lambda: as_table({"a": [1, 2], "b": [1]}), "different lengths: a 2, b 1"),
        (lambda: as_table({}), "no columns"),
        (lambda: as_table(np.zeros((2, 2)), names=["a"]), "1 names for 2 columns"),
        (lambda: as_table({"a": [1.0, float("nan")]}), "record 1: a is not a finite number"),
        (lambda: as_table({"a": [1.0, 2.0]}, ["normal"]), "1 labels for 2 records"),
        (lambda: as_table({"a": [1j, 2.0]}), "complex"),
        (lambda: as_table({"a": ["x", 2]}, schema=infer_schema({"a": np.zeros(2)})), "a: 'x' is not a number"),
        (
            lambda: as_table({"a": ["yes"]}, schema=infer_schema({"a": np.zeros(1, bool)})),
            "a: 'yes' is neither 0 nor 1",
        ),
        (lambda: as_table({"a": [1.0, 2.0]}, ["normal", "scan"]) and as_table({"a": 1.0}), "one is .record."),
        (lambda: as_table(pl.DataFrame(COLUMNS).lazy()), "collect it first"),
        (lambda: as_table([[1, 2], [3]]), "rows of different lengths"),
        (lambda: as_table({"a": [1.0], "label": ["normal"]}, ["normal"]), "a column label besides the labels"),
        (lambda: netclust.train({"a": [1.0, 2.0, 3.0]}, ["normal", None, "x"]), "1 of 3 records have no label"),
        (lambda: netclust.train({"a": [1.0, 2.0, 3.0]}, ["a", "b", "c"]), "no record is normal.*there are a, b, c"),
        (lambda: netclust.train({"a": [1.0, 2.0, 3.0]}, ["normal"] * 3), "all records are normal"),
        (lambda: netclust.train(np.eye(3), seed=-1), "a seed is 0 or more"),
        (lambda: netclust.train(np.eye(3), without=["q"]), "no attribute q"),
        (lambda: netclust.train(np.eye(3), tempo=3), "training parameters.*tempo"),
        (lambda: netclust.train(np.eye(3), holdout=7), "holdout must lie"),
        (lambda: as_table({"b": [1.0]}, schema=infer_schema({"a": np.zeros(2)})), "columns missing.*: a"),
    ],
)
def test_what_cannot_be_compared_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_bit_in_words_is_the_same_bit() -> None:
    schema = infer_schema({"a": np.zeros(4, bool)})
    for values in (["0", "1", "", "1"], [0, 1, None, 1.0], [False, True, float("nan"), "true"]):
        table = as_table({"a": np.array(values, object)}, schema=schema)
        assert [table.symbols[0][i] for i in table.sym[:, 0]] == ["0", "1", "0", "1"]


def test_a_missing_number_is_filled() -> None:
    assert as_table({"a": [1.0, None]}, fill={"a": 9.0}).num.tolist() == [[1.0], [9.0]]


def test_arrays_decide_as_the_engine_does() -> None:
    past, today = simulate(2500, seed=1), simulate(500, seed=2, day=1)
    schema = load_schema("kdd")
    params = TrainParams(epochs=1, reference_size=100)
    frame = pl.DataFrame(dict(past.columns))
    model = netclust.train(frame, past.label, params=params, schema=schema, seed=3)
    assert model.fingerprint == netclust.train_network(past.table(), params, seed=3).fingerprint
    config = LinkerConfig.stream(referent_window=50, feedback="gold", delay=20)
    found = netclust.detect(model, pd.DataFrame(dict(today.columns)), today.label, config=config)
    linker = netclust.Linker(model, config)
    wanted = linker.process(model.encoding.encode(today.table(), linker.labels))
    assert len(found) == 500
    assert found.score.tobytes() == wanted.score.tobytes()
    shown = pd.DataFrame(found.columns())
    assert set(shown["verdict"]) <= set(netclust.VERDICTS)
    assert (shown["score"] == wanted.score).all()
    assert shown["referent"][0] == wanted.referent(0)
    row = int(np.argmax(found.anomalous))
    assert found.explain(row).verdict == shown["verdict"][row]
    with pytest.raises(InputError, match=r"no evidence was kept of record .*which='all'"):
        found.explain(int(np.argmin(found.anomalous)))
    with pytest.raises(InputError, match="record 0 has no label"):
        netclust.detect(model, pd.DataFrame(dict(today.columns)), config=config)


def test_a_model_file_is_taken_for_the_model(tmp_path: Path) -> None:
    model = netclust.train({"a": np.arange(300.0)}, false_alarm_rate=0.1)
    model.save(tmp_path / "model")
    assert netclust.detect(tmp_path / "model", {"a": [5.0, 9e9]}).anomalous.tolist() == [False, True]


def test_a_label_among_the_columns_is_not_scored() -> None:
    frame = {"a": np.arange(300.0), "Label": np.where(np.arange(300) % 10, "normal", "scan")}
    model = netclust.train(frame, reference_size=50, steps=5)
    assert [a.name for a in model.encoding.schema.features] == ["a"]
    assert model.encoding.labels == ("normal", "scan")
    found = netclust.detect(model, {"a": [1.0], "label": ["a new name"]}, config=LinkerConfig.stream(feedback="gold"))
    assert found.columns()["label"].tolist() in (["normal"], ["scan"], ["novel"])


def test_another_word_for_normal_is_understood() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(400, 2)), rng.normal(8, 1, size=(100, 2))])
    for labels, normal in (([0] * 400 + [1] * 100, 0), ([False] * 400 + [True] * 100, False)):
        model = netclust.train(X, labels, normal=normal, reference_size=50, steps=5)
        assert netclust.detect(model, [[0.0, 0.0], [8.0, 8.0]]).anomalous.tolist() == [False, True]


def test_explicit_parameters_are_kept_without_labels() -> None:
    model = netclust.train({"a": np.arange(500.0)}, params=TrainParams(false_alarm_rate=0.1))
    assert model.calibration is not None
    assert model.calibration.false_alarm_rate == 0.1
    assert model.provenance.params["learner"] == "unlearned"


@pytest.mark.parametrize(
    "rows",
    [
        [{"n": np.int64(i), "b": np.bool_(i % 2)} for i in range(4)],
        [{"n": Decimal(i), "b": bool(i % 2)} for i in range(4)],
        [{"n": np.float32(i), "b": bool(i % 2)} for i in range(4)],
    ],
)
def test_a_number_of_another_library_is_a_number(rows: Any) -> None:
    table = as_table(rows)
    assert [(a.name, a.kind) for a in table.schema.features] == [("n", "numeric"), ("b", "binary")]
    assert table.num.tolist() == [[0], [1], [2], [3]]


def test_mixed_rows_have_kinds_by_column() -> None:
    table = as_table([[1, "a", True], [2, "b", False]])
    assert [a.kind for a in table.schema.features] == ["numeric", "symbolic", "binary"]


def test_a_warm_up_without_labels_raises_alarms() -> None:
    rng = np.random.default_rng(0)
    model = netclust.train(rng.normal(size=(2000, 3)), false_alarm_rate=0.02)
    assert model.encoding.labels == ("normal",)
    assert netclust.detect(model, rng.normal(size=(2000, 3))).anomalous.mean() < 0.05
    assert netclust.detect(model, np.full((1, 3), 30.0)).anomalous.all()


def test_a_preset_works_with_another_schema() -> None:
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(3000) % 5 == 0, "attack", "normal")
    X = rng.normal(size=(3000, 2)) + 6 * (labels == "attack")[:, None]
    for preset in ("reference", "late"):
        model = netclust.train(X, labels, params=preset, steps=20, reference_size=200)
        assert netclust.detect(model, [[6.0, 6.0], [0.0, 0.0]]).anomalous.tolist() == [True, False]
