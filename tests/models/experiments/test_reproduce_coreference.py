"""`netclust reproduce coreference` on a small folder like LitBank's, and every way to misuse it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli_cases import complaint
from mini_litbank import FEATURES, SIZES, hurry, make_litbank

import netclust.models.experiments.coreference.reproduce_coreference as command
from netclust.models.experiments.coreference import litbank_experiments
from netclust.models.experiments.coreference.litbank_experiments import BASELINES, MODELS, SIZED

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def litbank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_litbank(tmp_path_factory.mktemp("data") / "litbank", stories=6)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, command, choices=1)


@pytest.fixture
def reproduce(run: Any) -> Any:
    return lambda *args: run("reproduce", "coreference", "--splits", 2, *args, "--jobs", 1)


def test_the_command_says_what_its_json_says(
    reproduce: Any, litbank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, out, plots = tmp_path / "trials.jsonl", tmp_path / "out.json", tmp_path / "plots"
    plots.mkdir()
    options = [litbank, "--state", state, "--splits", 2, "--sized", 1, "--json", out, "--plots", plots]
    ran = reproduce(*options)
    assert ran.code == 0, ran.err
    found = json.loads(out.read_bytes())
    assert found["command"] == "reproduce coreference"
    assert set(found["data"]) == {"litbank/conll"}
    assert found["features"]["distance"] == FEATURES.distance
    assert found["void"] == ["genre", "named", "pos", "same speaker"]
    rows = {(row["name"], row["features"]): row for row in found["rows"]}
    assert set(rows) == {
        *((name, None) for name in (*MODELS, *BASELINES)),
        *((name, size) for name in SIZED for size in SIZES if size is not None),
    }
    assert {row["draws"] for (_, size), row in rows.items() if size is None} == {2}
    assert {row["draws"] for (_, size), row in rows.items() if size is not None} == {1}
    assert {claim["expected"] for claim in found["claims"]} == {"higher", "level"}
    assert [(one["train"], one["test"]) for one in found["regression"]] == [("S1", "S2"), ("S2", "S1")]
    for row in rows.values():
        assert row["name"] in ran.out
        assert f"{row['mean']:.2f}" in ran.out
    assert "only the order can be compared" in ran.out
    assert sorted(path.name for path in plots.iterdir()) == ["coreference-curves.svg", "coreference-sizes.svg"]
    lines = state.read_bytes()
    assert lines.count(b"\n") == len(found["trials"])

    def refuse(*_: object) -> None:
        raise AssertionError("what is done is trained again")

    monkeypatch.setattr(litbank_experiments, "learn_coreference", refuse)
    again = reproduce(litbank, "--state", state, "--splits", 2, "--sized", 1, "--json", "-")
    assert again.code == 0, again.err
    assert state.read_bytes() == lines
    assert json.loads(again.out)["rows"] == found["rows"]  # nothing but the JSON


def test_misuse_is_refused_in_one_line(reproduce: Any, litbank: Path, tmp_path: Path) -> None:
    state = tmp_path / "trials.jsonl"
    complaint(reproduce(tmp_path / "none", "--state", state), tmp_path / "none")
    complaint(reproduce(tmp_path, "--state", state), "name the folder of LitBank")
    complaint(reproduce(litbank, "--state", tmp_path / "no" / "x"), "there is no folder")
    complaint(reproduce(litbank, "--state", tmp_path), tmp_path, "it is a folder")
    complaint(reproduce(litbank, "--state", state, "--json", state), "two outputs")
    complaint(reproduce(litbank, "--state", state, "--plots", tmp_path / "none"), "none", "no such folder")
    complaint(reproduce(litbank, "--state", state, "--splits", 11), "splits")
    complaint(reproduce(litbank, "--state", state, "--splits", 3), "name the folder of LitBank")
    foreign = tmp_path / "notes.txt"
    foreign.write_text("my notes\n")
    complaint(reproduce(litbank, "--state", foreign), foreign, "line 1", "no training")
    assert foreign.read_text() == "my notes\n"


def test_a_file_of_something_else_is_not_cut(reproduce: Any, litbank: Path, tmp_path: Path) -> None:
    """Its last line has no end, as that of a stopped run; but it is not ours."""
    foreign = tmp_path / "notes.txt"
    for text in ("my notes\nand more", "my notes", "{}"):
        foreign.write_text(text)
        complaint(reproduce(litbank, "--state", foreign), foreign, "no training")
        assert foreign.read_text() == text


def test_tasks_in_processes_are_done_and_their_errors_raised(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    command._in_parallel(os.mkdir, [(folder,) for folder in folders], 2, "folders")
    assert all(folder.is_dir() for folder in folders)
    with pytest.raises(FileExistsError):
        command._in_parallel(os.mkdir, [(folders[0],)], 2, "folders")
