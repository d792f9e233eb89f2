"""The base of structured tasks: any learner, C by folds of training examples alone, a file that is never trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from counting_task import RAW, TASK, CountSettings

from netclust.cli.info import run_info as info
from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.models import run_structured
from netclust.models.structured_model import KIND, StructuredModel, know_task, task_named
from netclust.models.structured_task import choose_cost, learn

ENCODER = TASK.fit(RAW, CountSettings())


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.models.structured_model.NAMES", ("counting",))
    know_task("counting", lambda: TASK)


def trained(**chosen: Any) -> StructuredModel:
    settings = CountSettings(**{"C": 1e4, **chosen})
    learned = learn(TASK, settings, ENCODER, TASK.encode(ENCODER, RAW))
    return StructuredModel(task=TASK, settings=settings, encoder=ENCODER, w=learned.w)


@pytest.mark.parametrize("learner", ["one-slack", "n-slack", "frank-wolfe"])
def test_every_learner_tells_large_from_small(learner: Any) -> None:
    model = trained(learner=learner, C=1e4 if learner != "frank-wolfe" else 10.0, max_iterations=3000)
    assert model.predict([(0.5, None), (10.5, None)]) == [0, 1]
    assert list(model.evaluate(RAW)) == ["loss"]


def test_c_is_chosen_by_what_is_held_out_and_warm_starts_change_nothing() -> None:
    seen = []
    chosen = choose_cost(
        TASK, CountSettings(), RAW, ENCODER, grid=(1e4, 1e-3), folds=3, on_progress=lambda *p: seen.append(p)
    )
    assert (chosen.C, chosen.grid, chosen.folds, seen[-1]) == (1e4, (1e-3, 1e4), 3, (6, 6))
    warm = learn(TASK, CountSettings(C=1e-3), ENCODER, TASK.encode(ENCODER, RAW)).fit
    examples = TASK.encode(ENCODER, RAW)
    again = learn(TASK, CountSettings(C=50.0), ENCODER, examples, warm=warm)
    cold = learn(TASK, CountSettings(C=50.0), ENCODER, examples)
    assert again.objective == pytest.approx(cold.objective, abs=0.1 * 50)
    with pytest.raises(InputError, match="one only"):
        choose_cost(TASK, CountSettings(), RAW[:1], ENCODER)
    with pytest.raises(InputError, match="no gold output"):
        learn(TASK, CountSettings(), ENCODER, TASK.encode(ENCODER, [(1.0, None)]))


def test_settings_that_cannot_be_meant_are_refused() -> None:
    for wrong in ({"C": 0.0}, {"C": float("inf")}, {"epsilon": 0.0}, {"max_iterations": 0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            CountSettings(**wrong)


def test_the_file_comes_back_and_nothing_else_is_taken(tmp_path: Path) -> None:
    model = trained(power=3)
    model.save(tmp_path / "m")
    again = StructuredModel.load(tmp_path / "m", "counting")
    assert (again.settings, again.encoder, again.w.tolist()) == (model.settings, model.encoder, model.w.tolist())
    data = model.to_bytes()
    for size in (0, 7, 8, 60, len(data) - 1):
        with pytest.raises(ModelError):
            StructuredModel.from_bytes(data[:size])
    header = container.unpack_container(data, KIND, "m")[1]
    for spoiled, what in (
        ({"task": "other"}, "'other'"),
        ({"settings": {"C": -1.0}}, "C is -1"),
        ({"settings": {"colour": 1}}, "colour"),
        ({"encoder": {}}, "largest"),
        ({"more": 1}, "more"),
    ):
        with pytest.raises(ModelError, match=what):
            StructuredModel.from_bytes(container.pack_container(KIND, {"weights": model.w}, header | spoiled))
    for arrays, what in (
        ({}, "weights"),
        ({"weights": np.zeros(3)}, r"\[2\]"),
        ({"weights": np.full(2, 1e30)}, "too large"),
        ({"weights": model.w, "more": model.w}, "more"),
    ):
        with pytest.raises(ModelError, match=what):
            StructuredModel.from_bytes(container.pack_container(KIND, arrays, header))
    with pytest.raises(ModelError, match="counting, not of chains"):
        StructuredModel.load(tmp_path / "m", "chains")
    with pytest.raises(InputError, match="no task"):
        task_named("none")


def given(path: Path, raw: Any = RAW) -> run_structured.Given:
    return run_structured.Given(raw, "number", {str(path): "0" * 64})


def test_commands_train_predict_evaluate_and_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, model, out = tmp_path / "numbers", tmp_path / "m", tmp_path / "out"
    source.write_text("11 numbers")
    run_structured.train_task(TASK, lambda: given(source), [str(source)], model, {}, "cv", tmp_path / "t.json", folds=3)
    told = json.loads((tmp_path / "t.json").read_text())
    assert (told["examples"], told["converged"], told["chosen"]["folds"]) == (11, True, 3)
    printed = capsys.readouterr()
    assert "11 numbers of the training file" in printed.out
    assert "by 3 folds" in printed.err
    loaded = StructuredModel.load(model)
    run_structured.predict_task(
        loaded, lambda: given(source), [str(source)], out, lambda _, found: msgspec.json.encode(found), None
    )
    assert len(json.loads(out.read_text())) == 11
    run_structured.evaluate_task(loaded, lambda: given(source), [str(source)], None)
    printed = capsys.readouterr()
    assert "trained on this very file" in printed.err
    info(model, None, 2)
    printed = capsys.readouterr().out
    assert "counting" in printed
    assert "power 1" in printed
    with pytest.raises(InputError, match="is the input"):
        run_structured.train_task(TASK, lambda: given(source), [str(source)], source, {}, "1", None)
    with pytest.raises(InputError, match="nothing to learn"):
        run_structured.train_task(TASK, lambda: given(source, []), [str(source)], model, {}, "1", None)
    with pytest.raises(InputError, match=f"{source}: .*gold output"):
        run_structured.evaluate_task(loaded, lambda: given(source, [(1.0, None)]), [str(source)], None)
    with pytest.raises(InputError, match="standard output"):
        run_structured.predict_task(
            loaded, lambda: given(source), [str(source)], Path("-"), lambda _, found: b"", Path("-")
        )
