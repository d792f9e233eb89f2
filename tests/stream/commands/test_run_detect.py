"""`netclust detect` as people meet it: unlabelled records in, lines of JSON out, the same verdicts as the linker's."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network
from netclust.records.labels import KEPT_FOR_PEOPLE
from netclust.records.reader import read_table
from netclust.scoring.model import Model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("detect")
    params = TrainParams(learner="unlearned", scale="spread", false_alarm_rate=0.02)
    train_network(simulate(2500, seed=1).table(), params, seed=0).save(folder / "model")
    lines = simulate(800, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).lines()
    (folder / "bare.txt").write_text("".join(",".join(line.split(",")[:41]) + ",,0\n" for line in lines))
    return folder / "model", folder / "bare.txt"


@pytest.mark.parametrize("options", [(), ("--window", "200")])
def test_a_line_says_what_the_linker_says(run: Any, files: tuple[Path, Path], tmp_path: Path, options: Any) -> None:
    model_file, bare = files
    out, log = tmp_path / "found.jsonl", tmp_path / "log.json"
    ran = run("detect", "--model", model_file, "--input", bare, "-o", out, "--every", "--why", "--json", log, *options)
    assert (ran.code, ran.err) == (0, "")
    model = Model.load(model_file)
    linker = Linker(model, LinkerConfig(referent_window=200 if options else 0))
    verdicts = linker.process(model.encoding.encode(read_table(bare, model.encoding.schema), linker.labels))
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 800
    for i, line in enumerate(lines):
        assert line["record"] == f"0:{i}"
        assert line["score"] == pytest.approx(float(verdicts.score[i]))
        assert line["referent"] == verdicts.referent(i)
        assert ("why" in line) == bool(verdicts.anomalous[i])
        assert (line["verdict"] != "normal") == bool(verdicts.anomalous[i])
    body = json.loads(log.read_text())
    assert body["records"] == sum(body["verdicts"].values()) == 800
    assert body["alerts"]
    assert str(body["verdicts"]["novel"]) in ran.out
    assert run("detect", "--model", model_file, "--input", bare, "-o", out, *options).code == 0
    anomalous = [json.loads(line)["record"] for line in out.read_text().splitlines()]
    assert anomalous == [line["record"] for line in lines if line["verdict"] != "normal"]


def test_labels_that_find_no_room_are_left_out_and_named_in_a_note(
    run: Any, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands that measure by labels stop instead: a label left out would spoil the result."""
    model, bare = files
    known = len(Model.load(model).encoding.labels)
    monkeypatch.setattr("netclust.records.labels.MAX_LABELS", known + KEPT_FOR_PEOPLE + 10)
    odd = tmp_path / "odd.txt"
    odd.write_text(
        "".join(
            line[: -len(",,0\n")] + f",odd {k},0\n" for k, line in enumerate(bare.read_text().splitlines(keepends=True))
        )
    )
    ran = run("detect", "--model", model, "--input", odd, "-o", tmp_path / "found", "--every")
    assert ran.code == 0
    assert "the labels of 790 records were left out" in ran.err
    assert (tmp_path / "found").read_text().count("\n") == 800
    monkeypatch.setattr("netclust.records.labels.MAX_LABELS", known + 10)
    ran = run("evaluate", "network", "--model", model, "--test", odd)
    assert ran.code == 2
    assert f"more than {known + 10} different labels: give rare ones a common name" in ran.err


def test_pipes_work(run: Any, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model, bare = files

    class Stdin:
        buffer = io.BytesIO(bare.read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    ran = run("detect", "--model", model, "--input", "-", "-o", "-")
    assert ran.code == 0
    assert all(json.loads(line)["verdict"] for line in ran.out.splitlines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "-", "--json", "-"), "cannot both go to standard output"),
        (("-o", "nowhere/found"), "nowhere"),
        (("-o", "."), "cannot be written"),
        ((), "output"),
    ],
)
def test_bad_calls_are_refused(run: Any, files: tuple[Path, Path], options: Any, message: str) -> None:
    model, bare = files
    ran = run("detect", "--model", model, "--input", bare, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err
    content = bare.read_bytes()
    assert run("detect", "--model", model, "--input", bare, "-o", bare).code == 2
    assert bare.read_bytes() == content


def test_a_broken_line_stops_or_is_skipped_and_counted(run: Any, files: tuple[Path, Path], tmp_path: Path) -> None:
    model, bare = files
    broken, out = tmp_path / "broken.txt", tmp_path / "found"
    broken.write_text(bare.read_text() + "nonsense\n")
    ran = run("detect", "--model", model, "--input", broken, "-o", out)
    assert ran.code == 2
    assert "line 801" in ran.err
    ran = run("detect", "--model", model, "--input", broken, "-o", out, "--on-error", "skip")
    assert ran.code == 0
    assert "skipped 1 lines" in ran.err
