"""`netclust train ranking`, `rank`, `evaluate ranking`, `reproduce wikiqa`: a stranger's way, and every misuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import complaint

PLACES = ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Bonn", "Kyiv")


def svmrank(path: Path, queries: int = 12, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    lines = [
        f"{label} qid:{q} 1:{label + rng.normal(0, 0.3):.4f} 2:{rng.normal():.4f}"
        for q in range(queries)
        for label in rng.permutation([1, 0, 0, 0]).tolist()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def wikiqa(folder: Path) -> Path:
    for part, places in (("train", PLACES), ("dev", PLACES[:5]), ("test", PLACES[2:])):
        lines = []
        for n, place in enumerate(places):
            question = f"where is the tower of {place} in {part} ?"
            other = places[(n + 1) % len(places)]
            answers = [f"{other} has a river .", f"The tower of {place} is old .", f"A river is in {place} ."]
            lines += [f"{question}\t{answer}\t{k % 2}" for k, answer in enumerate(answers)]
        (folder / f"WikiQA-{part}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return svmrank(tmp_path / "train.txt")


def test_train_rank_and_evaluate(run: Any, train: Path, tmp_path: Path) -> None:
    model, ranked = tmp_path / "m", tmp_path / "ranked.csv"
    ran = run("train", "ranking", train, "-o", model, "--epochs", "3", "--json", tmp_path / "t.json")
    assert (ran.code, "feature 1" in ran.out, "C = " in ran.err) == (0, True, True)
    told = json.loads((tmp_path / "t.json").read_text())
    assert (told["queries"], told["candidates"], told["chosen"]["on"]) == (12, 48, "folds")
    assert run("rank", train, "--model", model, "-o", ranked).code == 0
    rows = list(csv.DictReader(ranked.read_text().splitlines()))
    assert [row["rank"] for row in rows[:5]] == ["1", "2", "3", "4", "1"]
    assert float(rows[0]["score"]) >= float(rows[1]["score"])
    ran = run("evaluate", "ranking", "--model", model, "--test", svmrank(tmp_path / "test.txt", seed=1), "--json", "-")
    assert json.loads(ran.out)["scores"]["map"] > 0.9
    assert "ranks, sr" in run("info", model).out


def test_joint_models_and_other_formats(run: Any, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    lines = [f"{q},{i},{int(i == q % 3)},{int(i == q % 3) + 0.01 * q},{i}" for q in range(8) for i in range(3)]
    table.write_text("query,id,label,size,age\n" + "\n".join(lines) + "\n")
    model = tmp_path / "m"
    wanted = ("--learn", "jsrc", "--C", "1", "--epochs", "2", "--field", "size")
    assert run("train", "ranking", table, "-o", model, *wanted).code == 0
    ran = run("rank", table, "--model", model, "-o", "-")
    assert ran.out.splitlines()[0] == "query,rank,candidate,score,cluster"
    ran = run("evaluate", "ranking", "--model", model, "--test", table)
    assert "100.00 %" in ran.out
    folder = wikiqa(tmp_path)
    texts = tmp_path / "texts"
    ran = run(
        "train",
        "ranking",
        folder / "WikiQA-train.txt",
        "-o",
        texts,
        "--dev",
        folder / "WikiQA-dev.txt",
        "--epochs",
        "2",
    )
    assert (ran.code, "development queries" in ran.err) == (0, True)
    questions = tmp_path / "new.csv"
    questions.write_text("question,answer\nwhere is Rome ?,Rome is here\nwhere is Rome ?,no idea\n")
    ran = run("rank", questions, "--model", texts, "-o", "-")
    assert ran.out.splitlines()[1].startswith("where is Rome ?,1,2,")


@pytest.mark.peers
def test_wikiqa_runs_on_a_small_one(run: Any, tmp_path: Path) -> None:
    folder = wikiqa(tmp_path)
    ran = run(
        "reproduce", "wikiqa", folder, "--seeds", "2", "--epochs", "2", "--jobs", "1", "--json", tmp_path / "r.json"
    )
    assert (ran.code, "JSRC less SR" in ran.out) == (0, True), ran.err
    rows = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert [row["model"] for row in rows[:5]] == ["feature", "svm", "sr-greedy", "sr", "jsrc"]
    assert [row["questions"] for row in rows] == [5] * 5 + [6] * 5
    complaint(run("reproduce", "wikiqa", tmp_path / "none"), "WikiQA-train.txt")


def test_misuse_is_understood(run: Any, train: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert run("train", "ranking", train, "-o", model, "--C", "1", "--epochs", "1").code == 0
    complaint(run("train", "ranking", train, "-o", train), train, "input")
    complaint(run("train", "ranking", train, "-o", model, "--C", "x"), "--C 'x'")
    complaint(run("train", "ranking", train, "-o", model, "--C", "1", "--dev", train), "--dev")
    complaint(run("train", "ranking", tmp_path / "none", "-o", model), "none")
    one = tmp_path / "one.csv"
    one.write_text("query,size,label\na,1,1\nb,2,1\n")
    complaint(run("train", "ranking", one, "-o", model), one, "both a right and a wrong")
    one.write_text("query,size\na,1\na,2\n")
    complaint(run("train", "ranking", one, "-o", model), one, "--label")
    complaint(run("rank", one, "--model", model, "-o", "-"), one, "'feature 1'")
    complaint(run("evaluate", "ranking", "--model", train, "--test", train), train)
    complaint(run("rank", train, "--model", model, "-o", "-", "--json", "-"), "standard output")
    none = tmp_path / "none.txt"
    none.write_text("0 qid:1 1:1\n")
    complaint(run("evaluate", "ranking", "--model", model, "--test", none), none, "no query has a right")
