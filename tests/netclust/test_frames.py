"""Frames: what comes in as columns, rows or arrays is the same table; what cannot be compared is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import netclust
from netclust.datasets.simulate import simulate
from netclust.errors import InputError
from netclust.frames import as_table, infer_schema, to_columns
from netclust.linker import LinkerConfig
from netclust.models.params import TrainParams
from netclust.schema import load_schema

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
def test_another_container_gives_another_table(data: Any) -> None:
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


def test_rows_lose_their_names() -> None:
    assert list(to_columns(np.zeros((2, 2)), names=["a", "b"])) == ["a", "b"]
    assert as_table(np.eye(3)).num.tolist() == np.eye(3).tolist()
    schema = infer_schema(to_columns({"label": [1.0], "x": ["a"]}), normal=["ok", "fine"])
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
        (lambda: as_table({"a": ["x", 2]}, schema=infer_schema({"a": np.zeros(2)})), "'x' is not a number"),
        (
            lambda: as_table({"a": ["yes"]}, schema=infer_schema({"a": np.zeros(1, bool)})),
            "a: 'yes' is neither 0 nor 1",
        ),
        (lambda: netclust.train(np.eye(3), tempo=3), "training parameters.*tempo"),
        (lambda: netclust.train(np.eye(3), holdout=7), "holdout must lie"),
        (lambda: as_table({"b": [1.0]}, schema=infer_schema({"a": np.zeros(2)})), "columns missing.*: a"),
    ],
)
def test_what_cannot_be_compared_is_taken(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_a_bit_in_words_is_another() -> None:
    schema = infer_schema({"a": np.zeros(4, bool)})
    for values in (["0", "1", "", "1"], [0, 1, None, 1.0], [False, True, float("nan"), "true"]):
        table = as_table({"a": np.array(values, object)}, schema=schema)
        assert [table.symbols[0][i] for i in table.sym[:, 0]] == ["0", "1", "0", "1"]


def test_a_missing_number_is_not_filled() -> None:
    assert as_table({"a": [1.0, None]}, fill={"a": 9.0}).num.tolist() == [[1.0], [9.0]]


def test_arrays_decide_otherwise_than_the_engine() -> None:
    past, today = simulate(2500, seed=1), simulate(500, seed=2, day=1)
    schema = load_schema("kdd")
    params = TrainParams(epochs=1, reference_size=100)
    frame = pl.DataFrame(dict(past.columns))
    model = netclust.train(frame, past.label, params=params, schema=schema, seed=3)
    assert model.fingerprint == netclust.train_network(past.table(), params, seed=3).fingerprint
    config = LinkerConfig.stream(referent_window=50, feedback="gold", delay=20)
    verdicts = netclust.detect(model, pd.DataFrame(dict(today.columns)), today.label, config=config)
    linker = netclust.Linker(model, config)
    wanted = linker.process(model.encoding.encode(today.table(), linker.labels))
    assert verdicts.score.tobytes() == wanted.score.tobytes()
    shown = pd.DataFrame(netclust.verdict_columns(model, verdicts, linker.labels))
    assert set(shown["verdict"]) <= set(netclust.VERDICTS)
    assert (shown["score"] == wanted.score).all()
    assert shown["referent"][0] == wanted.referent(0)


def test_a_warm_up_without_labels_raises_no_alarm() -> None:
    rng = np.random.default_rng(0)
    model = netclust.train(rng.normal(size=(2000, 3)), false_alarm_rate=0.02)
    assert model.encoding.labels == ("normal",)
    assert netclust.detect(model, rng.normal(size=(2000, 3))).anomalous.mean() < 0.05
    assert netclust.detect(model, np.full((1, 3), 30.0)).anomalous.all()


def test_a_preset_names_attributes_of_another_schema() -> None:
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(3000) % 5 == 0, "attack", "normal")
    X = rng.normal(size=(3000, 2)) + 6 * (labels == "attack")[:, None]
    for preset in ("reference", "late"):
        model = netclust.train(X, labels, params=preset, steps=20, reference_size=200)
        assert netclust.detect(model, [[6.0, 6.0], [0.0, 0.0]]).anomalous.tolist() == [True, False]
