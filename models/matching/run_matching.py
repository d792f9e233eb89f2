"""`netclust train matching`, `predict matching`, `evaluate matching`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from netclust.datasets.candidate_pairs import read_candidate_pairs
from netclust.errors import InputError
from netclust.models.matching.matchings import chosen_edges
from netclust.models.matching.task import TASK
from netclust.models.run_structured import Given, evaluate_task, predict_task, train_task
from netclust.models.structured_model import StructuredModel
from netclust.options.output import checksum_of


def _read(path: str, fields: list[str] | None = None, *, known: bool = False) -> Given:
    """Read the problems of a file; `known`: they must say which pairs match."""
    problems, _ = read_candidate_pairs(path, fields=fields or None)
    if known and problems[0].match is None:
        raise InputError(f"{path} line 1: no column 'match' that says which pairs belong together (1) or not (0)")
    return Given(problems, "matching", {path: checksum_of(path)})


def train_matching(
    pairs: str, output: Path, fields: list[str] | None, settings: dict[str, Any], C: str, json: Path | None
) -> None:
    """Learn from pairs whose matches are known."""
    train_task(TASK, lambda: _read(pairs, fields, known=True), [pairs], output, settings, C, json)


def predict_matching(pairs: str, model_file: Path, output: Path, json: Path | None) -> None:
    """Match new pairs."""
    model = StructuredModel.load(model_file, "matching")

    def render(given: Given, found: list[Any]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["example", "left", "right", "match", "score"])
        encoded = TASK.encode(model.encoder, given.raw)
        for one, (x, _), partner in zip(given.raw, encoded, found, strict=True):
            scores = (x.features @ model.w).tolist()
            chosen = chosen_edges(x.graph, partner).tolist()
            for a, b, match, score in zip(one.left, one.right, chosen, scores, strict=True):
                writer.writerow([one.name, a, b, int(match), f"{score:.6g}"])
        return text.getvalue().encode()

    predict_task(model, lambda: _read(pairs), [pairs, str(model_file)], output, render, json)


def evaluate_matching(model_file: Path, test: str, json: Path | None) -> None:
    """Match pairs whose matches are known, and measure."""
    model = StructuredModel.load(model_file, "matching")
    evaluate_task(model, lambda: _read(test, known=True), [test, str(model_file)], json)
