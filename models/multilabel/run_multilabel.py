"""`netclust train multilabel`, `predict multilabel`, `evaluate multilabel` and `simulate labels`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netclust.datasets.label_names import LabelChoice
from netclust.datasets.label_sets import LabelSetTable, read_labels
from netclust.datasets.label_writing import WrittenFormat, label_lines
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.multilabel.task import TASK, describe_labels
from netclust.models.run_structured import Given, evaluate_task, predict_task, train_task
from netclust.models.structured_model import StructuredModel
from netclust.options.output import check_folders, counted, echo, output_note, write_output


@dataclass(frozen=True)
class LabelFileOptions:
    """How a file of rows is read."""

    format: Any = "auto"
    labels: str | None = None
    prefix: str | None = None
    label_file: Path | None = None
    id: str | None = None

    def reader(self, path: str, model: StructuredModel | None = None) -> Callable[[], Given]:
        """What reads the file; for a model, with its features and labels."""

        def read() -> Given:
            choice = LabelChoice.of(self.labels, self.prefix, self.label_file)
            known: Any = {} if model is None else {"features": model.encoder.features, "labels": model.encoder.labels}
            table = read_labels(path, format=self.format, choice=choice, id_column=self.id, **known)
            return Given(table, "row", {path: table.sha256})

        return read


def train_labels(
    file: str, output: Path, options: LabelFileOptions, settings: dict[str, Any], C: str, folds: int, json: Path | None
) -> None:
    """Say what the labels are, then as every task does."""
    read = options.reader(file)

    def read_counted() -> Given:
        given = read()
        table: LabelSetTable = given.raw
        some = ", ".join(map(sanitize, table.labels[:6])) + (", ..." if len(table.labels) > 6 else "")
        output_note(f"{counted(len(table.features), 'feature')}, {counted(len(table.labels), 'label')}: {some}")
        output_note(describe_labels(TASK.settings(**settings), len(table.labels)))
        return given

    train_task(TASK, read_counted, [file], output, settings, C, json, folds=folds)


def predict_labels(file: str, model_file: Path, output: Path, options: LabelFileOptions, json: Path | None) -> None:
    """One row a row: its id, then 0 or 1 a label, 0.5 where a relaxed search leaves it open."""
    model = StructuredModel.load(model_file, TASK.name)
    reader = options.reader(file, model)
    predict_task(model, reader, [file, str(model_file)], output, _rendered(model.encoder.labels), json)


def evaluate_labels(model_file: Path, test: str, options: LabelFileOptions, json: Path | None) -> None:
    """Predict rows whose labels are known, and measure."""
    model = StructuredModel.load(model_file, TASK.name)
    evaluate_task(model, options.reader(test, model), [test, str(model_file)], json)


def _rendered(labels: tuple[str, ...]) -> Callable[[Given, list[Any]], bytes]:
    def render(given: Given, found: list[Any]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        first = "row" if "row" not in labels else "row id"
        writer.writerow([first, *labels])
        rows = np.concatenate([one.labels for one in found]).tolist()
        writer.writerows([ident, *(f"{v:g}" for v in row)] for ident, row in zip(given.raw.ids, rows, strict=True))
        return text.getvalue().encode()

    return render


def simulate_labels(kind: str, output: Path, rows: int, seed: int, bias: bool, format_: WrittenFormat | None) -> None:
    """Write made rows; the format is that of the file's name unless it is given."""
    from netclust.datasets.simulators.synth_labels import synth1, synth2

    check_folders(output)
    if kind == "synth1" and bias:
        raise InputError("--bias is for synth2: synth1 does not need it")
    by_name: dict[str, WrittenFormat] = {".arff": "arff", ".csv": "csv"}
    written = format_ or by_name.get(output.suffix.lower(), "libsvm")
    table = synth1(rows, seed) if kind == "synth1" else synth2(rows, seed, bias)
    write_output(output, "".join(label_lines(table, written, name=kind)).encode())
    if str(output) != "-":
        echo(f"{counted(rows, 'row')} of {kind} with {len(table.labels)} labels, as {written}: wrote {output}")
