"""`netclust train chains`, `predict chains`, `evaluate chains`, `simulate letters`, and every misuse of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import complaint

HEADER = "sequence,seen,via,label"


def rows(path: Path, hosts: int = 12, seed: int = 0, label: bool = True) -> Path:
    """Hosts that are normal for a while and then not; what is seen of a row says little."""
    rng = np.random.default_rng(seed)
    lines = [HEADER if label else HEADER.removesuffix(",label")]
    state = np.zeros((hosts, 30), np.int64)
    for host in range(hosts):
        state[host, int(rng.integers(5, 25)) :] = 1
    for t in range(30):
        for host in range(hosts):
            own = state[host, t]
            line = (
                f"host {host},{own + rng.normal(0, 1.0):.3f},{'root' if rng.random() < 0.3 + 0.2 * own else 'window'}"
            )
            lines.append(f"{line},{('normal', 'attack')[own]}" if label else line)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_train_predict_and_evaluate(run: Any, tmp_path: Path) -> None:
    train, test, model, out = (
        rows(tmp_path / "a.csv"),
        rows(tmp_path / "b.csv", seed=1),
        tmp_path / "m",
        tmp_path / "o.csv",
    )
    wrong = {}
    for name in ("m3n", "svm", "crf"):
        ran = run("train", "chains", train, "-o", model, "--learn", name, "--C", "100", "--json", tmp_path / "t.json")
        assert ran.code == 0, ran.err
        told = json.loads((tmp_path / "t.json").read_text())
        assert (told["examples"], told["settings"]["model"], told["converged"]) == (12, name, True)
        ran = run("evaluate", "chains", "--model", model, "--test", test, "--json", "-")
        wrong[name] = json.loads(ran.out)["measures"]["wrong labels"]
    assert max(wrong["m3n"], wrong["crf"]) < 0.6 * wrong["svm"]
    assert run("predict", "chains", test, "--model", model, "-o", out).code == 0
    found, truth = (
        list(csv.DictReader(out.read_text().splitlines())),
        list(csv.DictReader(test.read_text().splitlines())),
    )
    assert [row["sequence"] for row in found] == [row["sequence"] for row in truth]
    share = np.mean([a["label"] != b["label"] for a, b in zip(found, truth, strict=True)])
    assert 100 * share == pytest.approx(wrong["crf"])
    assert min(float(row["sure"]) for row in found) >= 0
    assert "chains" in run("info", model).out


def test_labels_of_a_truth_file_and_cuts(run: Any, tmp_path: Path) -> None:
    train, bare, model = rows(tmp_path / "a.csv"), rows(tmp_path / "b.csv", label=False), tmp_path / "m"
    args = ("train", "chains", bare, "-o", model, "--truth", train, "--normal", "normal", "--cut", "10", "--C", "cv")
    ran = run(*args, "--field", "seen", "--mean", "sequences", "--json", tmp_path / "t.json")
    assert ran.code == 0, ran.err
    told = json.loads((tmp_path / "t.json").read_text())
    assert (told["examples"], told["chosen"]["folds"]) == (36, 5)
    assert run("evaluate", "chains", "--model", model, "--test", train, "--cut", "10").code == 0
    # a label that was not trained on is wrong, and no error
    other = tmp_path / "c.csv"
    other.write_text(train.read_text().replace(",attack", ",worm"))
    ran = run("evaluate", "chains", "--model", model, "--test", other, "--json", "-")
    assert json.loads(ran.out)["measures"]["wrong labels"] > 20


def test_lines_of_detect_are_rows(run: Any, tmp_path: Path) -> None:
    given = tmp_path / "verdicts.jsonl"
    given.write_text(
        "\n".join(
            json.dumps(
                {"source": f"10.0.0.{k % 3}", "score": None if k == 4 else k % 5 - 2.0, "label": "na"[k % 5 > 2]}
            )
            for k in range(60)
        )
    )
    ran = run("train", "chains", given, "-o", tmp_path / "m", "--sequence", "source", "--C", "10")
    assert ran.code == 0, ran.err
    assert run("predict", "chains", given, "--model", tmp_path / "m", "-o", tmp_path / "o.csv").code == 0
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 61


def test_letters_are_made_to_train_on(run: Any, tmp_path: Path) -> None:
    assert run("simulate", "letters", "-o", tmp_path / "w.csv", "--words", "30", "--vocabulary", "10").code == 0
    ran = run("train", "chains", tmp_path / "w.csv", "-o", tmp_path / "m", "--C", "100", "--epsilon", "5")
    assert ran.code == 0, ran.err
    complaint(run("simulate", "letters", "-o", tmp_path / "w.csv", "--noise", "-1"), "noise")


@pytest.mark.parametrize(
    ("content", "args", "word"),
    [
        ("", (), "nothing in it"),
        ("a,label\n1,x\n", (), "no column"),
        ("sequence,label\na,x\na,y\n", (), "no column is left"),
        ("sequence,seen,label\na,1,x\na,2,x\n", (), "nothing can be learned"),
        ("sequence,seen,label\na,1,x\na,2,\n", (), "has no label"),
        ("sequence,seen,label\na,1,x\na,2,y\n", ("--field", "other"), "no column 'other'"),
        ("sequence,seen,label\na,1,x\na,2,y\n", ("--C", "0"), "C is 0"),
        ("sequence,seen,label\na,1,x\na,2,y\n", ("--C", "much"), "a number, or cv"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    run: Any, tmp_path: Path, content: str, args: tuple[str, ...], word: str
) -> None:
    given = tmp_path / "a.csv"
    given.write_text(content)
    complaint(run("train", "chains", given, "-o", tmp_path / "m", *args), word)
    assert not (tmp_path / "m").exists()


def test_what_is_read_is_told_and_what_cannot_be_meant_is_refused(run: Any, tmp_path: Path) -> None:
    train, model = rows(tmp_path / "a.csv"), tmp_path / "m"
    lines = train.read_text().splitlines()
    lines[8] = ",".join([lines[8].split(",")[0], "oops", *lines[8].split(",")[2:]])
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join(lines) + "\n")
    ran = run("train", "chains", odd, "-o", model, "--C", "1", "--epsilon", "5")
    assert (ran.code, "is none, most are" in ran.err) == (0, True), ran.err
    ran = run("train", "chains", train, "-o", model, "--C", "1", "--epsilon", "5")
    assert "numbers: seen; texts: via" in ran.err
    other = tmp_path / "other.csv"
    other.write_text(train.read_text().replace(",normal\n", ",NORMAL\n").replace(",attack\n", ",ATTACK\n"))
    complaint(run("evaluate", "chains", "--model", model, "--test", other), other, "(attack, normal)", "--truth")
    blank = tmp_path / "blank.csv"
    blank.write_text(train.read_text().replace(",normal\n", ",\n", 1))
    complaint(run("train", "chains", blank, "-o", model, "--C", "1"), blank, "row 1 has no label")
    complaint(run("train", "chains", train, "-o", "-", "--C", "1"), "standard output")
