"""`netclust train attractive`, `predict attractive`, `evaluate attractive`."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netclust.datasets.documents import LIMITS, decode_document, read_document_bytes
from netclust.datasets.text_tables import TextTable, read_text_table
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.attractive.relational_templates import NODES, Template, read_templates
from netclust.models.attractive.tables import (
    EDGES,
    RELATIONS,
    AttractiveEncoder,
    RawNetwork,
    RelationColumns,
    cut_table_networks,
    edge_templates,
)
from netclust.models.attractive.task import TASK
from netclust.models.run_structured import Given, evaluate_task, predict_task, train_task
from netclust.models.structured_model import StructuredModel
from netclust.options.output import checksum_of

__all__ = ["RelationOptions", "evaluate_networks", "predict_networks", "train_networks", "with_labels"]

ATTACK, NORMAL = "attack", "normal"


@dataclass(frozen=True)
class RelationOptions:
    """Which tables a command was given."""

    nodes: str
    edges: str | None = None
    templates: str | None = None
    tables: tuple[str, ...] = ()
    """NAME=FILE."""
    truth: str | None = None
    normal: tuple[str, ...] = ()
    cut: int | None = None

    @property
    def others(self) -> dict[str, str]:
        """Files of further tables by name."""
        found = {EDGES: self.edges} if self.edges is not None else {}
        for text in self.tables:
            name, equal, path = text.partition("=")
            if not (name and equal and path) or name in (NODES, EDGES) or name in found:
                raise InputError(
                    f"--table {sanitize(text)}: expected NAME=FILE, each name once, none {NODES} or {EDGES}"
                )
            found[name] = path
        return found

    @property
    def inputs(self) -> list[str]:
        """All files that are read."""
        return [self.nodes, *self.others.values(), *([self.truth] if self.truth else [])]


def _templates(options: RelationOptions, others: dict[str, TextTable]) -> tuple[Template, ...]:
    """What ties nodes, as the command line says."""
    found = edge_templates(others[EDGES]) if EDGES in others else ()
    if options.templates == "connections":
        found += RELATIONS
    elif options.templates is not None:
        text = decode_document(read_document_bytes(options.templates, LIMITS.document_bytes))
        found += read_templates(text, options.templates)
    if not found:
        raise InputError("nothing ties the nodes: give --edges, or --templates (a file, or connections)")
    if len({one.name for one in found}) < len(found):
        raise InputError("a relation of the edges and a template have one name")
    return found


def _read(
    options: RelationOptions,
    columns: RelationColumns,
    *,
    known: bool,
    learn: bool = False,
    needed: Sequence[Template] = (),
) -> Given:
    """The networks of the files; `known`: with the labels of nodes; `needed`: a model's templates."""
    nodes = read_text_table(options.nodes)
    if known:
        nodes = with_labels(nodes, options, columns.label)
    elif columns.label in nodes.columns:  # whatever it is, what is predicted does not depend on it
        nodes = replace(nodes, columns={k: v for k, v in nodes.columns.items() if k != columns.label})
    others = {name: read_text_table(path) for name, path in options.others.items()}
    for table in sorted({name for one in needed for name in one.variables.values()} - {NODES, *others}):
        how = "--edges FILE" if table == EDGES else f"--table {sanitize(table)}=FILE"
        raise InputError(f"{options.nodes}: the model ties nodes by another table too: give {how}")
    templates = _templates(options, others) if learn else ()
    whole = RawNetwork(nodes, others, columns, templates)
    raw = cut_table_networks(whole, columns, options.cut) if known else [whole]
    return Given(raw, "network", {path: checksum_of(path) for path in options.inputs})


def with_labels(nodes: TextTable, options: RelationOptions, label: str) -> TextTable:
    """The nodes with their true labels in the label column."""
    truth = nodes if options.truth is None else read_text_table(options.truth)
    if len(truth) != len(nodes):
        raise InputError(f"{options.truth}: {len(truth):,} rows, and {options.nodes} has {len(nodes):,}: a truth each")
    labels = truth.column(label)
    if options.normal:
        if not set(options.normal) & set(labels):
            raise InputError(f"{truth.path}: no row has the label {sanitize(' or '.join(options.normal))}")
        labels = tuple(NORMAL if text in options.normal else ATTACK for text in labels)
    return replace(nodes, columns={**nodes.columns, label: labels})


def train_networks(
    options: RelationOptions,
    columns: RelationColumns,
    output: Path,
    settings: dict[str, Any],
    C: str,
    json: Path | None,
) -> None:
    """Learn from nodes whose labels are known."""
    inputs = [*options.inputs, *([options.templates] if options.templates not in (None, "connections") else [])]
    train_task(
        TASK,
        lambda: _read(options, columns, known=True, learn=True),
        [str(i) for i in inputs],
        output,
        settings,
        C,
        json,
    )


def predict_networks(options: RelationOptions, model_file: Path, output: Path, json: Path | None) -> None:
    """Label new nodes."""
    model = StructuredModel.load(model_file, TASK.name)
    encoder: AttractiveEncoder = model.encoder

    def render(given: Given, found: list[Any]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["id", "label", "alone"])
        problem = TASK.problem(encoder, model.settings)
        for raw, (x, _), y in zip(given.raw, TASK.encode(encoder, given.raw), found, strict=True):
            alone = problem.network(x, model.w).node.argmax(axis=1)
            names = raw.nodes.columns.get(encoder.columns.id) or tuple(map(str, range(len(raw))))
            for name, own, first in zip(names, y.tolist(), alone.tolist(), strict=True):
                writer.writerow([name, encoder.labels[own], encoder.labels[first]])
        return text.getvalue().encode()

    inputs = [*options.inputs, str(model_file)]
    predict_task(
        model,
        lambda: _read(options, encoder.columns, known=False, needed=encoder.templates),
        inputs,
        output,
        render,
        json,
    )


def evaluate_networks(options: RelationOptions, model_file: Path, json: Path | None) -> None:
    """Label nodes whose labels are known, and measure."""
    model = StructuredModel.load(model_file, TASK.name)
    inputs = [*options.inputs, str(model_file)]
    evaluate_task(
        model, lambda: _read(options, model.encoder.columns, known=True, needed=model.encoder.templates), inputs, json
    )
