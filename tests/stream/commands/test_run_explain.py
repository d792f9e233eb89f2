"""`netclust explain` as people meet it: words, JSON that adds up, one-line errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.linking_protocols import linker_config
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import train_network


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("explain")
    params = TrainParams(learner="margin", scale="spread", training_window=200, steps=20, false_alarm_rate=0.02)
    train_network(simulate(2500, seed=1).table(), params, seed=0).save(folder / "model")
    simulate(1200, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).write(folder / "today.txt")
    return folder / "model", folder / "today.txt"


@pytest.mark.parametrize("options", [(), ("--feedback", "gold", "--delay", "20", "--window", "100")])
def test_an_explanation_is_that_of_the_verdict(
    run: Any, files: tuple[Path, Path], tmp_path: Path, options: Any
) -> None:
    model, today = files
    out = tmp_path / "why.json"
    numbers = [700, 3, 1199, 3]
    asked = [part for number in numbers for part in ("--record", number)]
    ran = run("explain", "--model", model, "--test", today, *asked, *options, "--json", out)
    assert (ran.code, ran.err) == (0, "")
    body = json.loads(out.read_text())
    assert body["command"] == "explain"
    assert {"version", "seed", "data", "duration", "model"} <= set(body)
    explanations = body["explanations"]
    assert [e["record"] for e in explanations] == ["0:700", "0:3", "0:1199"]
    from netclust.records.reader import RecordReader
    from netclust.scoring.model import Model

    loaded = Model.load(model)
    feedback = "gold" if options else "none"
    config = linker_config("stream", feedback, 20 if options else 100, 100)  # type: ignore[arg-type]
    verdicts = evaluate_network(loaded, RecordReader(today, loaded.encoding.schema), config).verdicts
    for number, found in zip([700, 3, 1199], explanations, strict=True):
        assert found["linked"]["id"] == verdicts.referent(number)
        assert found["score"] == pytest.approx(float(verdicts.score[number]))
        assert math.fsum(part["contribution"] for part in found["parts"]) == pytest.approx(found["margin"], rel=1e-9)
        assert f"Record 0:{number} is " in ran.out
    assert ran.out.count("Record ") == 3
    shown = run("explain", "--model", model, "--test", today, "--record", 3, *options, "--json", "-")
    assert json.loads(shown.out)["explanations"] == [explanations[1]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--record", "1200"), "has 1200 records, the first is 0: there is no record 1200"),
        (("--record", "-1"), "record"),
        ((), "record"),
        (("--record", "1", "--window", "-1"), "window"),
        (("--record", "1", "--json", "nowhere/why.json"), "nowhere"),
    ],
)
def test_bad_calls_are_refused(run: Any, files: tuple[Path, Path], options: Any, message: str) -> None:
    model, today = files
    ran = run("explain", "--model", model, "--test", today, *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err
    ran = run("explain", "--model", today, "--test", today, "--record", 1)
    assert ran.code == 2


def test_what_is_read_is_not_written_over(run: Any, files: tuple[Path, Path], tmp_path: Path) -> None:
    model, today = files
    content = today.read_bytes()
    for args in (
        ("train", "network", today, "-o", today),
        ("tune", "network", today, "-o", today),
        ("evaluate", "network", "--model", model, "--test", today, "--json", today),
        ("explain", "--model", model, "--test", today, "--record", 1, "--json", today),
    ):
        ran = run(*args)
        assert (ran.code, ran.out) == (2, ""), args
        assert "is the input, and would be overwritten" in ran.err
        assert today.read_bytes() == content


def test_labels_that_never_come_are_not_awaited(run: Any, files: tuple[Path, Path], tmp_path: Path) -> None:
    model, today = files
    bare = tmp_path / "bare.txt"
    bare.write_text("".join(",".join(line.split(",")[:41]) + ",,0\n" for line in today.read_text().splitlines()[:50]))
    ran = run("explain", "--model", model, "--test", bare, "--record", 3, "--feedback", "gold")
    assert (ran.code, ran.out) == (2, "")
    assert "record 0 has no label, and --feedback gold waits for one" in ran.err
    assert run("explain", "--model", model, "--test", bare, "--record", 3).code == 0


def test_an_option_that_does_nothing_is_noted(run: Any, files: tuple[Path, Path]) -> None:
    model, today = files
    ran = run("explain", "--model", model, "--test", today, "--record", 3, "--window", 7, "--mature", 5)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.err.splitlines()] == ["--window", "--mature"]
    ran = run("evaluate", "network", "--model", model, "--test", today, "--delay", 7)
    assert ran.err == "--delay is about window members: it does nothing with --feedback none\n"
