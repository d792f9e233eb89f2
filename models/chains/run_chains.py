"""`netclust train chains`, `predict chains`, `evaluate chains`."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netclust.datasets.text_tables import read_text_table
from netclust.models.attractive.run_attractive import RelationOptions, with_labels
from netclust.models.chains.chain_inference import infer_max_marginals
from netclust.models.chains.task import TASK, ChainColumns, ChainEncoder, Sequences, read_sequences
from netclust.models.run_structured import Given, evaluate_task, predict_task, train_task
from netclust.models.structured_model import StructuredModel
from netclust.options.output import checksum_of

__all__ = ["evaluate_chains", "predict_chains", "train_chains"]


def _read(options: RelationOptions, columns: ChainColumns, *, known: bool) -> Given:
    """The sequences of a file; `known`: with their labels."""
    table = read_text_table(options.nodes)
    if known:
        table = with_labels(table, options, columns.label)
    else:  # whatever it is, what is predicted does not depend on it
        table = replace(table, columns={k: v for k, v in table.columns.items() if k != columns.label})
    return Given(
        read_sequences(table, columns, options.cut), "sequence", {path: checksum_of(path) for path in options.inputs}
    )


def train_chains(
    options: RelationOptions, columns: ChainColumns, output: Path, settings: dict[str, Any], C: str, json: Path | None
) -> None:
    """Learn from sequences whose labels are known."""
    train_task(TASK, lambda: _read(options, columns, known=True), options.inputs, output, settings, C, json)


def predict_chains(options: RelationOptions, model_file: Path, output: Path, json: Path | None) -> None:
    """Label new sequences; a line a row, in the order of the file."""
    model = StructuredModel.load(model_file, TASK.name)
    encoder: ChainEncoder = model.encoder

    def render(given: Given, found: list[Any]) -> bytes:
        raw: Sequences = given.raw
        parts = TASK.problem(encoder, model.settings).weights(model.w)
        lines: list[list[Any]] = [[] for _ in range(len(raw.table))]
        for name, rows, (x, _), y in zip(raw.names, raw.rows, TASK.encode(encoder, raw), found, strict=True):
            best = infer_max_marginals(parts.scores(x), parts.edge)
            other = best.copy()
            other[np.arange(len(y)), y] = -np.inf
            sure = best[np.arange(len(y)), y] - other.max(axis=1)
            for row, label, by in zip(rows.tolist(), y.tolist(), sure.tolist(), strict=True):
                lines[row] = [name, encoder.labels[label], f"{by:.6g}"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["sequence", "label", "sure"])
        writer.writerows(lines)
        return text.getvalue().encode()

    inputs = [*options.inputs, str(model_file)]
    predict_task(model, lambda: _read(options, encoder.columns, known=False), inputs, output, render, json)


def evaluate_chains(options: RelationOptions, model_file: Path, json: Path | None) -> None:
    """Label sequences whose labels are known, and measure."""
    model = StructuredModel.load(model_file, TASK.name)
    inputs = [*options.inputs, str(model_file)]
    evaluate_task(model, lambda: _read(options, model.encoder.columns, known=True), inputs, json)


def run_chain_letters(output: str, **options: Any) -> None:
    """Run `netclust simulate letters`."""
    from netclust.datasets.simulators.letter_sequences import letter_sequences
    from netclust.options.output import output_note

    made = letter_sequences(**options)
    made.write(output)
    some = ", ".join(made.text(i) for i in range(min(8, len(made))))
    output_note(f"{len(made):,} words, {len(made.letter):,} letters: {some}")
