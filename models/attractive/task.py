"""Attractive networks as a task of the command line: nodes of a table, tied by edges or relational templates.

>>> rng = np.random.default_rng(0)
>>> def network(k):
...     wave = (np.sin(np.arange(60) / 8 + k) > 0).astype(int)
...     seen = wave + rng.normal(0, 0.8, 60)
...     return RawNetwork(TextTable({"seen": tuple(map(str, seen)), "label": tuple("nm"[k] for k in wave),
...                                  "host": ("h",) * 60}), templates=(tie,))
>>> tie = Template(name="next", where=("a.host = b.host",), nearest=2)
>>> task, raw, settings = AttractiveTask(), [network(k) for k in range(4)], AttractiveSettings(C=1e4)
>>> encoder = task.fit(raw, settings)
>>> learned = task.learn(settings, task.problem(encoder, settings), task.encode(encoder, raw))
>>> [x, y] = task.encode(encoder, [network(9)])[0]
>>> found = task.measure([(y, task.problem(encoder, settings).predict(x, learned.w))])
>>> found["wrong nodes"] < 12 < 20 < task.measure([(y, (x.nodes[:, 0] < 0).astype(int))])["wrong nodes"]
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from netclust.datasets.text_tables import TextTable
from netclust.foundation.text import sanitize
from netclust.models.attractive.attractive_networks import Labels
from netclust.models.attractive.attractive_problem import AttractiveProblem, NetworkFeatures
from netclust.models.attractive.relational_templates import Template, template_columns
from netclust.models.attractive.tables import AttractiveEncoder, RawNetwork, encode_network, field_notes, fit_encoder
from netclust.models.structured_model import know_task
from netclust.models.structured_task import StructuredTask, SvmSettings

__all__ = ["TASK", "AttractiveSettings", "AttractiveTask", "RawNetwork", "Template", "TextTable", "node_measures"]


class AttractiveSettings(SvmSettings, frozen=True, kw_only=True):
    """How networks are learned."""

    oracle: Literal["cut", "lp"] = "cut"
    """How the worst labelling is searched for: cuts, or (three labels and more) the linear relaxation."""
    balanced: bool = False
    """Every label counts the same in the loss, however few nodes have it."""


class AttractiveTask(StructuredTask):
    """See `StructuredTask`: raw examples are `RawNetwork`s."""

    name, settings, encoder = "attractive", AttractiveSettings, AttractiveEncoder

    def fit(self, raw: Sequence[RawNetwork], settings: AttractiveSettings) -> AttractiveEncoder:
        """Labels, scales and values; columns and templates are those that the networks came with."""
        return fit_encoder(raw, balanced=settings.balanced)

    def encode(
        self, encoder: AttractiveEncoder, raw: Sequence[RawNetwork]
    ) -> list[tuple[NetworkFeatures, Labels | None]]:
        """Features of nodes and cliques, and the labels of nodes."""
        return [encode_network(encoder, one) for one in raw]

    def notes(
        self,
        encoder: AttractiveEncoder,
        raw: Sequence[RawNetwork],
        examples: Sequence[tuple[NetworkFeatures, Labels | None]],
    ) -> list[str]:
        """Which columns nodes are judged by, and how many ties there are of every template."""
        columns, tables = encoder.columns, [one.nodes for one in raw]
        taken = {columns.label, columns.id, columns.time, columns.network, *template_columns(encoder.templates)}
        used = {one.name for one in encoder.fields}
        left = () if columns.fields else tuple(name for name in tables[0].columns if name not in taken | used)
        told = field_notes(encoder.fields, left, lambda name: [text for table in tables for text in table.column(name)])
        counts = np.bincount(np.concatenate([x.relation for x, _ in examples]), minlength=len(encoder.templates))
        ties = ", ".join(f"{int(n):,} {sanitize(t.name)}" for t, n in zip(encoder.templates, counts, strict=True))
        told.append(f"{sum(len(x.nodes) for x, _ in examples):,} nodes, tied by: {ties}")
        if not counts.any():
            told.append("nothing is tied: do the ids of edges, or the columns of templates, name what they should?")
        return told

    def problem(self, encoder: AttractiveEncoder, settings: AttractiveSettings) -> AttractiveProblem:
        """Node features by label, a weight a template and label."""
        return AttractiveProblem(
            labels=len(encoder.labels),
            node_features=len(encoder.feature_names),
            relations=max(len(encoder.templates), 1),
            oracle=settings.oracle,
            costs=encoder.costs,
        )

    def weight_names(self, encoder: AttractiveEncoder, settings: AttractiveSettings) -> list[str]:
        """Of every label: its node features; of every template: what it ties nodes of each label by."""
        nodes = [f"{label}: {name}" for label in encoder.labels for name in encoder.feature_names]
        ties = [one.name for one in encoder.templates] or ["no tie"]
        return nodes + [f"tie {name}: both {label}" for name in ties for label in encoder.labels]

    def measure(self, pairs: Sequence[tuple[Labels, Labels]]) -> Mapping[str, float]:
        """Of labels y and h."""
        return node_measures(pairs)


def node_measures(pairs: Sequence[tuple[Labels, Labels]]) -> dict[str, float]:
    """In percent: nodes that are wrong; the mean over true labels of what is found of them, and of its F1."""
    y, h = (np.concatenate([pair[k] for pair in pairs]) for k in range(2))
    found, f1 = [], []
    for k in np.unique(y):
        right = float(((y == k) & (h == k)).sum())
        found.append(100.0 * right / float((y == k).sum()))
        f1.append(200.0 * right / float((y == k).sum() + (h == k).sum()))
    return {
        "wrong nodes": 100.0 * float((y != h).mean()) if len(y) else 0.0,
        "mean recall": float(np.mean(found)) if found else 100.0,
        "mean F1": float(np.mean(f1)) if f1 else 100.0,
    }


TASK = AttractiveTask()
know_task("attractive", lambda: TASK)
