"""`netclust train attractive`, `predict attractive`, `evaluate attractive`, `info`: a stranger's way, and misuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import complaint


def nodes_file(path: Path, seed: int, networks: int = 4, rows: int = 40, *, label: str = "label") -> Path:
    """Hosts that are well or ill for a while; what is seen of them is noisy."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "network", "time", "host", "seen", "kind", label])
        for k in range(networks):
            for i in range(rows):
                ill = np.sin(i / 5 + k + seed) > 0.2
                seen, kind = ill + rng.normal(0, 0.8), "odd" if rng.random() < 0.2 + 0.4 * ill else "plain"
                writer.writerow([f"n{k}.{i}", k, float(i), f"h{k}", f"{seen:.4f}", kind, "ill" if ill else "well"])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def edges_file(path: Path, networks: int = 4, rows: int = 40) -> Path:
    lines = [f"n{k}.{i},n{k}.{i + 1},next" for k in range(networks) for i in range(rows - 1)]
    lines += [f"n{k}.{i},n{k}.{(7 * i) % rows},far" for k in range(networks) for i in range(0, rows, 4)]
    path.write_text("from,to,relation\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    template = tmp_path / "t.toml"
    template.write_text('[[template]]\nname = "same host"\nwhere = ["a.host = b.host"]\nnearest = 2\n')
    return {
        "train": nodes_file(tmp_path / "train.csv", 1),
        "test": nodes_file(tmp_path / "test.csv", 2),
        "edges": edges_file(tmp_path / "edges.csv"),
        "templates": template,
        "model": tmp_path / "m.model",
        "out": tmp_path / "out.csv",
        "json": tmp_path / "result.json",
    }


def measured(run: Any, files: dict[str, Path], *more: Any) -> dict[str, float]:
    ran = run(
        "evaluate", "attractive", "--model", files["model"], "--test", files["test"], *more, "--json", files["json"]
    )
    assert ran.code == 0, ran.err
    found: dict[str, float] = json.loads(files["json"].read_text())["measures"]
    return found


def test_templates_make_nodes_better(run, files) -> None:
    trained = run(
        "train", "attractive", files["train"], "--templates", files["templates"], "-o", files["model"], "--C", "100",
        "--field", "seen", "--field", "kind",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    tied = measured(run, files)
    predicted = run("predict", "attractive", files["test"], "--model", files["model"], "-o", files["out"])
    assert predicted.code == 0, predicted.err
    rows = rows_of(files["out"])
    truth = [row["label"] for row in rows_of(files["test"])]
    assert [row["id"] for row in rows] == [row["id"] for row in rows_of(files["test"])]
    wrong = np.mean([row["label"] != t for row, t in zip(rows, truth, strict=True)])
    alone = np.mean([row["alone"] != t for row, t in zip(rows, truth, strict=True)])
    assert 100 * wrong == pytest.approx(tied["wrong nodes"])
    assert wrong < 0.7 * alone
    told = run("info", files["model"])
    assert told.code == 0
    assert "tie same host: both ill" in told.out


def test_edges_say_what_their_relations_say(run, files) -> None:
    """Neighbours are alike, the far ones are not: their weights tell."""
    trained = run("train", "attractive", files["train"], "--edges", files["edges"], "-o", files["model"], "--C", "100")
    assert trained.code == 0, trained.err
    assert measured(run, files, "--edges", files["edges"])["wrong nodes"] < 25
    run("info", files["model"], "--json", files["json"])
    weights = json.loads(files["json"].read_text())["weights"]
    assert min(weights[f"tie {name}: both {label}"] for name in ("next", "far") for label in ("ill", "well")) >= 0
    near, far = (sum(weights[f"tie {name}: both {label}"] for label in ("ill", "well")) for name in ("next", "far"))
    assert near > far
    refused = run("predict", "attractive", files["test"], "--model", files["model"], "-o", files["out"])
    complaint(refused, files["test"], "give --edges FILE")


def test_ties_that_tie_nothing_are_told(run, files, tmp_path) -> None:
    nobody = tmp_path / "nobody.csv"
    nobody.write_text("from,to\nx,y\n")
    ran = run("train", "attractive", files["train"], "--edges", nobody, "-o", files["model"], "--C", "1")
    assert ran.code == 0, ran.err
    assert "tied by: 0 edge" in ran.err
    assert "nothing is tied" in ran.err


def test_c_by_folds_and_the_truth_of_another_file(run, files, tmp_path) -> None:
    """As verdicts of `netclust detect`: JSON lines without truth, whose labels stand in the records."""
    lines = []
    for row in rows_of(files["train"]):
        own = {"record": row["id"], "host": row["host"], "time": row["time"], "score": float(row["seen"]), "label": "x"}
        lines.append(json.dumps(own if own["score"] < 2 else own | {"score": None}))
    verdicts = tmp_path / "verdicts.jsonl"
    verdicts.write_text("\n".join(lines) + "\n")
    trained = run(
        "train", "attractive", verdicts, "--truth", files["train"], "--normal", "well", "--id", "record", "--cut", 40,
        "--templates", files["templates"], "-o", files["model"], "--json", files["json"], "--balanced",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    result = json.loads(files["json"].read_text())
    assert result["examples"] == 4
    assert result["chosen"]["C"] in result["chosen"]["grid"]
    predicted = run("predict", "attractive", verdicts, "--model", files["model"], "-o", "-")
    assert predicted.code == 0, predicted.err
    rows = list(csv.DictReader(predicted.out.splitlines()))
    assert {row["label"] for row in rows} == {"attack", "normal"}


def test_misuse_is_refused(run, files, tmp_path) -> None:
    train = ("train", "attractive", files["train"], "-o", files["model"], "--C", "1")
    bad = tmp_path / "bad.csv"
    for content, arguments, word in [
        (None, train, "nothing ties the nodes"),
        (None, (*train, "--edges", files["templates"]), "no column 'from'"),
        (None, (*train, "--templates", files["edges"]), "edges.csv"),
        (None, (*train, "--templates", "connections"), "no column 'source'"),
        (None, (*train, "--templates", files["templates"], "--field", "nothing"), "no column 'nothing'"),
        (None, (*train, "--templates", files["templates"], "--label", "host", "--normal", "x"), "no row has"),
        (None, (*train, "--templates", files["templates"], "--table", "links"), "NAME=FILE"),
        (None, (*train, "--templates", files["templates"], "--truth", files["edges"]), "a truth each"),
        ("id,label\na,x\n", ("train", "attractive", bad, "--edges", files["edges"], "-o", files["model"]), "all nodes"),
        ("id,label\na\n", ("train", "attractive", bad, "--edges", files["edges"], "-o", files["model"]), "line 2"),
        ("", ("train", "attractive", bad, "--edges", files["edges"], "-o", files["model"]), "nothing in it"),
        ('{"id": 1\n', ("train", "attractive", bad, "--edges", files["edges"], "-o", files["model"]), "line 1"),
        (
            "id,label,time\na,x,noon\nb,y,1\n",
            ("train", "attractive", bad, "--edges", files["edges"], "-o", files["model"], "--field", "id"),
            "no time",
        ),
    ]:
        if content is not None:
            bad.write_text(content)
        complaint(run(*arguments), word)
    assert not files["model"].exists()
