"""The commands of multi-label models, from a file to a file, and what they say to those who get them wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netclust.datasets.label_sets import read_labels

QUICK = ("--C", "30", "--epsilon", "1")


def sea(folder: Path, name: str = "sea.csv", rows: int = 80, seed: int = 0) -> Path:
    """The label wet says that the depth is above 0, deep that it is above 1, cold something else."""
    rng = np.random.default_rng(seed)
    depth, warmth = rng.normal(0.5, 1, rows), rng.normal(0, 1, rows)
    path = folder / name
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["place", "depth", "warmth", "is wet", "is deep", "is cold"])
        for k in range(rows):
            truths = [int(depth[k] > 0), int(depth[k] > 1), int(warmth[k] < 0)]
            out.writerow([f"p{k}", f"{depth[k]:.4f}", f"{warmth[k]:.4f}", *truths])
    return path


@pytest.fixture
def model(tmp_path: Path, run: Callable[..., Any]) -> Path:
    path = tmp_path / "sea.safetensors"
    done = run("train", "multilabel", sea(tmp_path), "-o", path, "--prefix", "is ", "--id", "place", *QUICK)
    assert done.code == 0, done.err
    return path


def test_a_stranger_gets_from_file_to_file(tmp_path: Path, run: Callable[..., Any], model: Path) -> None:
    told = tmp_path / "told.json"
    new = sea(tmp_path, "new.csv", rows=60, seed=1)
    done = run("evaluate", "multilabel", "--model", model, "--test", new, "--json", told)
    assert done.code == 0, done.err
    assert "Hamming loss" in done.out
    measures = json.loads(told.read_text())["measures"]
    assert measures["Hamming loss"] < 10
    unlabelled = tmp_path / "unlabelled.csv"  # other order, other columns, a text among them
    with open(new, newline="") as file:
        rows = [{**row, "remark": "none at all"} for row in csv.DictReader(file)]
    with open(unlabelled, "w", newline="") as file:
        out = csv.DictWriter(file, ["warmth", "remark", "place", "depth"], extrasaction="ignore")
        out.writeheader()
        out.writerows(rows)
    found = tmp_path / "found.csv"
    done = run("predict", "multilabel", unlabelled, "--model", model, "-o", found, "--id", "place")
    assert done.code == 0, done.err
    with open(found, newline="") as file:
        predicted = list(csv.DictReader(file))
    assert list(predicted[0]) == ["row", "is wet", "is deep", "is cold"]
    assert [row["row"] for row in predicted] == [row["place"] for row in rows]
    wrong = np.mean([p[name] != r[name] for p, r in zip(predicted, rows, strict=True) for name in list(p)[1:]])
    assert 100 * wrong == pytest.approx(measures["Hamming loss"])
    info = run("info", model)
    assert "multilabel" in info.out
    assert "is wet + is deep" in run("info", model, "--top", "40").out


def test_training_says_what_it_takes(tmp_path: Path, run: Callable[..., Any]) -> None:
    path, told = tmp_path / "m.safetensors", tmp_path / "told.json"
    done = run(
        "train", "multilabel", sea(tmp_path), "-o", path, "--labels", "-3", "--id", "place", "--folds", 2, "--epsilon",
        "5", "--json", told, "--no-edges", "--max-iterations", 20,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "2 features, 3 labels: is wet, is deep, is cold" in done.err
    assert "labels one by one" in done.err
    assert "by 2 folds" in done.err
    body = json.loads(told.read_text())
    assert body["settings"]["C"] == body["chosen"]["C"]
    assert body["training"]["labels left open"] == 0
    assert body["examples"] == 80


def test_a_relaxed_prediction_is_noted(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "m.safetensors"
    options = ("--prefix", "is ", "--id", "place", "--predictor", "cut", "--oracle", "exact", *QUICK)
    assert run("train", "multilabel", sea(tmp_path), "-o", path, *options).code == 0
    done = run("predict", "multilabel", sea(tmp_path), "--model", path, "-o", "-")
    values = {cell for line in done.out.splitlines()[1:] for cell in line.split(",")[1:]}
    assert values <= {"0", "0.5", "1"}
    assert "labels left open" in run("evaluate", "multilabel", "--model", path, "--test", sea(tmp_path)).out


@pytest.mark.parametrize(("name", "kind"), [("a.arff", "arff"), ("a.csv", "csv"), ("a.txt", "libsvm")])
def test_a_made_file_is_read_back(tmp_path: Path, run: Callable[..., Any], name: str, kind: str) -> None:
    done = run("simulate", "labels", "synth2", "-o", tmp_path / name, "--rows", 60, "--seed", 3, "--bias")
    assert done.code == 0, done.err
    assert f"60 rows of synth2 with 10 labels, as {kind}" in done.out
    prefix = ("--prefix", "label ") if kind == "csv" else ()
    trained = run("train", "multilabel", tmp_path / name, "-o", tmp_path / "m", *prefix, "--C", 1, "--epsilon", 5)
    assert trained.code == 0, trained.err
    table = read_labels(tmp_path / name) if kind != "csv" else None
    if table is not None:
        assert table.X.shape == (60, 41)
    if kind == "libsvm":
        again = run("simulate", "labels", "synth1", "-o", "-", "--rows", 2)
        assert len(again.out.splitlines()) == 2


def test_an_arff_with_its_xml_needs_no_options(tmp_path: Path, run: Callable[..., Any]) -> None:
    assert run("simulate", "labels", "synth2", "-o", tmp_path / "pond-train.arff", "--rows", 40).code == 0
    names = "".join(f'<label name="label {k}"/>' for k in (1, 2, 3))
    (tmp_path / "pond.xml").write_text(f"<labels>{names}</labels>")
    done = run("train", "multilabel", tmp_path / "pond-train.arff", "-o", tmp_path / "m", "--C", 1, "--epsilon", 5)
    assert "47 features, 3 labels: label 1, label 2, label 3" in done.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train", "multilabel", "sea.csv", "-o", "m"], ["sea.csv", "--labels", "--prefix"]),
        (["train", "multilabel", "sea.csv", "-o", "m", "--prefix", "is "], ["line 2", "place is 'p0'"]),
        (["train", "multilabel", "sea.csv", "-o", "m", "--labels", "x", "--id", "place"], ["label 'x'"]),
        (["train", "multilabel", "sea.csv", "-o", "m", "--labels", "1", "--prefix", "is"], ["give one of them"]),
        (["train", "multilabel", "sea.csv", "-o", "m", "--prefix", "is ", "--id", "place", "--C", "x"], ["--C 'x'"]),
        (["train", "multilabel", "none.csv", "-o", "m"], ["none.csv"]),
        (["train", "multilabel", "sea.csv", "-o", "no/m"], ["no folder"]),
        (["train", "multilabel", "sea.csv", "-o", "sea.csv"], ["is the input"]),
        (["predict", "multilabel", "few.csv", "--model", "sea.safetensors", "-o", "x"], ["no column 'warmth'"]),
        (["evaluate", "multilabel", "--model", "sea.safetensors", "--test", "bare.csv"], ["gold output"]),
        (["predict", "multilabel", "sea.csv", "--model", "sea.csv", "-o", "x"], ["sea.csv"]),
        (["simulate", "labels", "synth1", "-o", "x", "--bias"], ["synth2"]),
    ],
)
def test_mistakes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any], model: Path, arguments: Any, parts: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few.csv").write_text("depth,x\n1,2\n")
    Path("bare.csv").write_text("depth,warmth\n1,2\n")
    done = run(*arguments)
    assert done.code == 2, done.out
    for part in parts:
        assert part in done.err
