"""`netclust reproduce windows` and `label-economy` as scripts and people meet them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from quick_presets import quick

import netclust.models.experiments.detection.reproduce_growth
from netclust.datasets.simulators.simulate import simulate
from netclust.models.test_set_ledger import TEST_SETS

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("growth")
    train, test = folder / "train.txt", folder / "test.txt"
    simulate(1500, seed=1).write(train)
    simulate(600, seed=2, day=1).write(test)
    return train, test


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        netclust.models.experiments.detection.reproduce_growth, "load_params", lambda name, schema: quick(name)
    )


@pytest.mark.parametrize(("command", "rows"), [("windows", 6), ("label-economy", 23)])
def test_a_use_of_a_test_set_is_counted(
    run: Any, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, rows: int
) -> None:
    train, test = files
    ledger, out = tmp_path / "looks.jsonl", tmp_path / "found.json"
    monkeypatch.setenv("NETCLUST_LOOKS", str(ledger))
    monkeypatch.setitem(TEST_SETS, hashlib.sha256(test.read_bytes()).hexdigest(), "KDDTest+")
    options = ["--draws", 1, "--json", out, *(["--jobs", 1] if command == "label-economy" else [])]
    ran = run("reproduce", command, "--train", train, "--test", test, *options)
    assert ran.code == 0, ran.err
    found = json.loads(out.read_bytes())
    assert found["command"] == f"reproduce {command}"
    assert len(found["rows"]) == rows
    assert {"name", "setting", "mean", "sd", "draws", "published"} <= set(found["rows"][0])
    assert set(found["data"]) == {"train.txt", "KDDTest+"}
    assert json.loads(ledger.read_text()) | {"date": ""} == {
        "date": "", "what": f"reproduce {command}", "set": "KDDTest+", "rows": rows, "draws": 1,
    }  # fmt: skip
    assert "600 records" in ran.out


def test_bad_input_is_refused(run: Any, files: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = files
    for command in ("windows", "label-economy"):
        for options, why in (
            (["--test", train], "same records"),
            (["--test", test, "--plot", tmp_path / "x.pdf"], ".svg or .png"),
            (["--test", test, "--json", tmp_path / "none" / "x.json"], "no folder"),
        ):
            ran = run("reproduce", command, "--train", train, *options)
            assert ran.code == 2
            assert why in ran.err
