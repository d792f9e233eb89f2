"""`netclust tune network` as people meet it: a file that training reads, what was tried, one-line errors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from netclust.datasets.simulators.simulate import simulate
from netclust.models.network.params import load_params
from netclust.models.test_set_ledger import TEST_SETS


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "train.txt"
    simulate(2500, seed=1).write(path)
    return path


def test_what_is_found_can_be_trained_with(run: Any, records: Path, tmp_path: Path) -> None:
    best, log = tmp_path / "best.toml", tmp_path / "log.json"
    options = ("--learner", "unlearned", "--budget", "1s", "--jobs", "1")
    code, out, err = run("tune", "network", records, "-o", best, "--json", log, *options)
    assert code == 0, err
    body = json.loads(log.read_text())
    sha256 = hashlib.sha256(records.read_bytes()).hexdigest()
    text = best.read_text()
    assert sha256 in text
    assert "train.txt" in text
    assert "budget: 1s" in text
    assert body["data"] == {"train.txt": sha256}
    assert body["command"] == "tune network"
    assert "AUC" in out
    assert len(body["candidates"]) == err.count("\n") >= 2
    assert all(len(trial["folds"]) == 5 for trial in body["candidates"] if not trial["error"])
    assert len(body["folds"]) == 5
    params = load_params(best)
    assert json.loads(json.dumps(body["params"])) == body["params"]
    assert params.learner == body["params"]["learner"] == "unlearned"
    assert params.false_alarm_rate == body["params"]["false_alarm_rate"]
    code, _, err = run("train", "network", records, "--params", best, "-o", tmp_path / "m")
    assert code == 0, err
    # And it can be started from.
    options = ("--start", best, "--use", "late", "--budget", "1s", "--jobs", "1", "--json", "-")
    code, out, err = run("tune", "network", records, "-o", tmp_path / "late.toml", *options)
    assert code == 0, err
    assert json.loads(out)["use"] == "late"


def test_an_interruption_leaves_the_best_so_far(
    run: Any, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import netclust.models.network.run_tune as command

    def stop(self: object, trial: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command._Progress, "__call__", stop)
    # Interrupted within the first candidate there is no best yet.
    best = tmp_path / "best.toml"
    args = ("tune", "network", records, "-o", best, "--learner", "unlearned", "--jobs", "1")
    code, out, err = run(*args)
    assert (code, out, best.exists()) == (130, "", False)
    assert err == "netclust: interrupted\n"
    shown = []

    def stop_later(self: object, trial: object) -> None:
        shown.append(trial)
        if len(shown) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command._Progress, "__call__", stop_later)
    code, out, err = run(*args)
    assert code == 130
    assert "interrupted" in best.read_text()
    assert f"{best} holds the best so far" in err
    assert load_params(best).learner == "unlearned"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "soon"), "such as 90s, 30m or 2h"),
        (("--start", "nothing.toml"), "Presets"),
        (("--start", "thesis", "--learner", "margin"), "is for learner lsp"),
        (("--use", "never"), "never"),
        (("--learner", "svm"), "svm"),
        (("--jobs", "0"), "jobs"),
        (("--fix", "epochs", "--learner", "unlearned"), "epochs is not searched for learner unlearned"),
        (("--schema", "none"), "schema"),
    ],
)
def test_impossible_options_are_refused(run: Any, records: Path, tmp_path: Path, options: Any, message: str) -> None:
    code, out, err = run("tune", "network", records, "-o", tmp_path / "best.toml", *options)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert message in err


@pytest.mark.parametrize(
    ("attacks", "message"),
    [((), "no attack type at all"), (("syn_flood",), "the only attack type is syn_flood")],
)
def test_files_that_cannot_be_folded_are_refused(run: Any, tmp_path: Path, attacks: Any, message: str) -> None:
    from netclust.datasets.simulators.simulate import KNOWN

    path = tmp_path / "few.txt"
    attacks = attacks and KNOWN[:1]
    simulate(600, seed=1, attacks=attacks).write(path)
    code, out, err = run("tune", "network", path, "-o", tmp_path / "best.toml")
    assert (code, out) == (2, ""), err
    assert message.replace("syn_flood", KNOWN[0]) in err


def test_tuning_on_a_test_set_is_refused(
    run: Any, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEST_SETS, hashlib.sha256(records.read_bytes()).hexdigest(), "a test set of ours")
    code, _, err = run("tune", "network", records, "-o", tmp_path / "best.toml")
    assert code == 2
    assert "this is a test set of ours" in err
