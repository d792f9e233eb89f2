"""What `train`, `predict`, `evaluate` and `info` do for every structured task; what reads and writes is the task's."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.foundation.model_file import Provenance
from netclust.models.structured_model import StructuredModel
from netclust.models.structured_task import ChosenCost, StructuredTask, choose_cost, learn
from netclust.models.test_set_ledger import TEST_SETS, find_ledger, record_test_use
from netclust.options.output import (
    Reporter,
    about,
    check_folders,
    check_not_input,
    check_outputs,
    cost_option,
    counted,
    echo,
    origin_facts,
    output_note,
    output_result,
    output_table,
    progress,
    write_json,
    write_model_info,
    write_output,
)

__all__ = ["Given", "describe_structured_model", "evaluate_task", "predict_task", "train_task"]


@dataclass(frozen=True)
class Given:
    """What a command was given: raw examples, what they are called, the files they are from and their checksums."""

    raw: Any
    noun: str
    files: Mapping[str, str]
    """Path to SHA-256 of the content; the first is the one that messages name."""

    @property
    def path(self) -> str:
        """The file that messages name."""
        return next(iter(self.files))

    @property
    def data(self) -> dict[str, str]:
        """As results have it."""
        return {Path(path).name: sha256 for path, sha256 in self.files.items()}


def _check_files(inputs: Sequence[str], *outputs: Path | None) -> None:
    """Check, before anything is read, that outputs can be written and are not inputs."""
    check_folders(*outputs)
    check_outputs(*outputs)
    for given in inputs:
        check_not_input(given, *outputs)


def train_task(
    task: StructuredTask,
    read: Callable[[], Given],
    inputs: Sequence[str],
    output: Path,
    settings: dict[str, Any],
    C: str,
    json: Path | None,
    *,
    folds: int = 5,
) -> None:
    """Read, choose C by folds if it is cv, learn, write the model; `settings` are the task's, without C."""
    _check_files(inputs, output, json)
    if str(output) == "-":
        raise InputError("a model does not go to standard output: give it the name of a file")
    chosen = task.settings(**settings, C=1.0 if C == "cv" else cost_option(C))
    given = read()
    if not len(given.raw):
        raise InputError(f"{given.path}: there is nothing to learn from in it")
    picked: ChosenCost | None = None
    with about(given.path):
        encoder = task.fit(given.raw, chosen)
        examples = task.encode(encoder, given.raw)
        for text in task.notes(encoder, given.raw, examples):
            output_note(text)
        if C == "cv":
            with progress("choosing C") as tick:
                picked = choose_cost(task, chosen, given.raw, encoder, folds=folds, on_progress=tick)
            chosen = msgspec.structs.replace(chosen, C=picked.C)
            tried = ", ".join(f"{c:g}: {loss:.2f}" for c, loss in zip(picked.grid, picked.losses, strict=True))
            output_note(f"C = {picked.C:g}, by {picked.folds} folds (C: held-out loss in percent: {tried})")
        start = time.perf_counter()
        learned = learn(task, chosen, encoder, examples, on_iteration=Reporter())
        duration = time.perf_counter() - start
    origin = Provenance.now(
        seed=chosen.seed,
        data=Path(given.path).name,
        sha256=given.files[given.path],
        records=len(given.raw),
        params={"learned_by": learned.by},
    )
    model = StructuredModel(task=task, settings=chosen, encoder=encoder, w=learned.w, provenance=origin)
    model.save(output)
    measures = model.evaluate(given.raw)
    if str(json) != "-":
        share = f", within {100 * learned.gap / learned.objective:.2g} % of the best" if learned.objective else ""
        echo(f"{learned.by}: {counted(learned.iterations, 'iteration')} in {duration:.1f} s{share}")
        _print_measures(f"{counted(len(given.raw), given.noun)} of the training file", measures)
        echo(f"wrote {output}")
    if not learned.converged:
        output_note(f"stopped after {counted(learned.iterations, 'iteration')}, before the stopping rule was met")
    if not learned.w.any():
        output_note(
            "nothing was learned, all weights are 0: too small a C, too large an epsilon, or nothing to choose between"
        )
    body = {
        "examples": len(given.raw),
        "settings": chosen,
        "chosen": picked,
        "iterations": learned.iterations,
        "converged": learned.converged,
        "objective": learned.objective,
        "gap": learned.gap,
        "training_seconds": duration,
        "training": measures,
    }
    write_json(json, output_result(["train", task.name], body, seed=chosen.seed, data=given.data))


def predict_task(
    model: StructuredModel,
    read: Callable[[], Given],
    inputs: Sequence[str],
    output: Path,
    render: Callable[[Given, list[Any]], bytes],
    json: Path | None,
) -> None:
    """Read, predict, write what `render` makes of the outputs."""
    _check_files(inputs, output, json)
    if str(output) == str(json) == "-":
        raise InputError("outputs and JSON cannot both go to standard output: give one of them a file")
    given = read()
    with about(given.path):
        found = model.predict(given.raw)
    write_output(output, render(given, found))
    if "-" not in (str(output), str(json)):
        echo(f"{counted(len(given.raw), given.noun)}, wrote {output}")
    body = {"examples": len(given.raw), "settings": model.settings}
    write_json(json, output_result(["predict", model.task.name], body, seed=None, data=given.data))


def evaluate_task(model: StructuredModel, read: Callable[[], Given], inputs: Sequence[str], json: Path | None) -> None:
    """Read examples with gold outputs, predict, print every measure."""
    _check_files(inputs, json)
    given = read()
    checksum = given.files[given.path]
    if checksum == model.provenance.sha256:
        output_note("the model was trained on this very file: these numbers say nothing about new examples")
    with about(given.path):
        measures = model.evaluate(given.raw)
    if record_test_use(f"evaluate {model.task.name}", checksum, rows=1, draws=1):  # before anything is shown
        output_note(f"a look at {TEST_SETS[checksum]}: noted in {find_ledger()}")
    if str(json) != "-":
        _print_measures(counted(len(given.raw), given.noun), measures)
    body = {"examples": len(given.raw), "measures": measures, "settings": model.settings}
    write_json(json, output_result(["evaluate", model.task.name], body, seed=model.settings.seed, data=given.data))


def describe_structured_model(path: Path, json: Path | None, top: int) -> None:
    """Describe the file of such a model."""
    model = StructuredModel.load(path)
    settings, origin, names = model.settings, model.provenance, model.names
    if str(json) != "-":
        own = {k: v for k, v in msgspec.to_builtins(settings).items() if k not in ("C", "learner", "seed")}
        facts = [
            ["task", model.task.name],
            ["learned by", f"{origin.params.get('learned_by') or settings.learner}, C = {settings.C:g}"],
            ["settings", ", ".join(f"{name} {value}" for name, value in own.items())],
            ["weights", f"{len(model.w):,}, {int(np.count_nonzero(model.w)):,} of them not 0"],
            *origin_facts(origin, "examples"),
        ]
        output_table(str(path), ["", ""], facts)
        strongest = np.argsort(-np.abs(model.w), kind="stable")[:top]
        if top:
            output_table("Strongest weights", ["of", "weight"], [[names[n], f"{model.w[n]:+.4g}"] for n in strongest])
        echo(f"{path.stat().st_size:,} bytes")
    write_model_info(
        json,
        path,
        origin,
        task=model.task.name,
        settings=settings,
        weights=dict(zip(names, model.w.tolist(), strict=True)),
    )


def _print_measures(title: str, measures: Mapping[str, float]) -> None:
    output_table(title, ["measure", ""], [[name, f"{value:.2f}"] for name, value in measures.items()])
