"""The commands of matchings, on files that are made here."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import complaint


def write_pairs(path: Path, problems: int, *, general: bool = False, match: bool = True, seed: int = 0) -> Path:
    """Names that belong together have near numbers; some are on one side alone."""
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["example", "left", "right", *(["match"] if match else []), "apart", "noise"])
        for p in range(problems):
            place = rng.uniform(0, 30, 5)
            names, numbers, of = [], [], []
            for n in range(5):
                for side in range(2):
                    if side == 0 or n < 4:  # the last is alone
                        names.append(f"{'ab'[side]}{n}")
                        numbers.append(place[n] + rng.normal(0, 0.3))
                        of.append(n)
            for i in range(len(names)):
                for j in range(len(names)):
                    if (general and i < j) or (not general and names[i][0] == "a" and names[j][0] == "b"):
                        apart = abs(numbers[i] - numbers[j])
                        row = [f"day {p}", names[i], names[j], *([int(of[i] == of[j])] if match else [])]
                        out.writerow([*row, f"{apart:.4f}", f"{rng.normal():.4f}"])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("general", [False, True], ids=["bipartite", "general"])
def test_train_predict_evaluate_and_info(run: Any, tmp_path: Path, general: bool) -> None:
    train = write_pairs(tmp_path / "train.csv", 20, general=general)
    test = write_pairs(tmp_path / "test.csv", 10, general=general, seed=1)
    new = write_pairs(tmp_path / "new.csv", 3, general=general, match=False, seed=2)
    model, found, scores = (tmp_path / name for name in ("m.safetensors", "found.csv", "scores.json"))
    options = ["--general"] if general else []
    said = run("train", "matching", train, "-o", model, "--C", "1000", *options)
    assert "20 matchings" in said.out
    run("evaluate", "matching", "--model", model, "--test", test, "--json", scores)
    measures = json.loads(scores.read_text())["measures"]
    assert measures["F1"] > 80
    assert list(measures) == ["loss", "precision", "recall", "F1", "all right"]
    assert run("predict", "matching", new, "--model", model, "-o", found).code == 0
    rows = rows_of(found)
    assert {row["example"] for row in rows} == {"day 0", "day 1", "day 2"}
    for day in ("day 0", "day 1", "day 2"):
        chosen = [row for row in rows if row["example"] == day and row["match"] == "1"]
        ends = [row["left"] for row in chosen] + [row["right"] for row in chosen]
        assert len(set(ends)) == len(ends)
        assert all(float(row["score"]) > 0 for row in chosen)
    assert "any match" in run("info", model).out


def test_c_is_chosen_by_folds(run: Any, tmp_path: Path) -> None:
    train = write_pairs(tmp_path / "train.csv", 8)
    run("train", "matching", train, "-o", tmp_path / "m.safetensors", "--epsilon", "1", "--json", tmp_path / "t.json")
    body = json.loads((tmp_path / "t.json").read_text())
    assert body["chosen"]["C"] == body["settings"]["C"]
    assert body["chosen"]["folds"] == 5


def test_perfect_matchings_leave_nothing_alone(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left,right,match,apart\na,x,1,0\na,y,0,3\nb,x,0,3\nb,y,1,9\n")
    run("train", "matching", path, "-o", tmp_path / "m.safetensors", "--perfect", "--C", "1")
    run("predict", "matching", path, "--model", tmp_path / "m.safetensors", "-o", tmp_path / "found.csv")
    assert [row["match"] for row in rows_of(tmp_path / "found.csv")] == ["1", "0", "0", "1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("right,match,x\nb,1,2\n", "no column 'left'"),
        ("left,right,x\na,b,2\n", "no column 'match'"),
        ("left,right,match\na,b,1\n", "no column with a feature"),
        ("left,right,match,x\na,b,1,two\n", "pair 1 (a, b): x is 'two', expected a number"),
        ("left,right,match,x\na,b,1,nan\n", "expected a number"),
        ("left,right,match,x\na,b,yes,2\n", "match is 'yes', expected 0 or 1"),
        ("left,right,match,x\na,,1,2\n", "pair 1 lacks a name"),
        ("left,right,match,x\na,b,1,2\na,c,1,2\n", "a is matched with b and c"),
        ("left,right,match,x\na,b,1,2\na,b,1,2\n", "twice"),
        ("example,left,right,match,x\nmonday,a,b,1,2\nmonday,a,b,1,2\n", "example 'monday'"),
        ("left,right,match,x\na,b,1\n", "line 2: 3 columns"),
    ],
)
def test_files_that_cannot_be_learned_from(run: Any, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(content)
    complaint(run("train", "matching", path, "-o", tmp_path / "m.safetensors", "--C", "1"), path, message)
    assert not (tmp_path / "m.safetensors").exists()


def test_a_model_needs_its_columns(run: Any, tmp_path: Path) -> None:
    train = write_pairs(tmp_path / "train.csv", 4)
    run("train", "matching", train, "-o", tmp_path / "m.safetensors", "--C", "1", "--field", "noise")
    other = tmp_path / "other.csv"
    other.write_text("left,right,apart\na,b,1\n")
    found = run("predict", "matching", other, "--model", tmp_path / "m.safetensors", "-o", tmp_path / "f")
    complaint(found, other, "no column 'noise'")
    found = run("train", "matching", other, "-o", tmp_path / "n.safetensors", "--field", "size")
    complaint(found, other, "no column 'size'")
