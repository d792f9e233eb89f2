"""Tables of nodes as attractive networks: how columns become features, and templates cliques.

A numeric column is centred, scaled and cut at `MOST` deviations; one with empty values has a second feature that says
so. A text column is a 0/1 feature a value. The last feature is a constant.

>>> table = TextTable({"score": ("1", "", "5"), "via": ("root", "window", "root"), "label": ("a", "b", "b")})
>>> raw = RawNetwork(table, columns=RelationColumns(fields=("score", "via")))
>>> encoder = fit_encoder([raw])
>>> encoder.labels, encoder.feature_names
(('a', 'b'), ['score', 'no score', 'via=root', 'via=window', 'constant'])
>>> x, y = encode_network(encoder, raw)
>>> (x.nodes / SCALE).tolist(), y.tolist()
([[-1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0]], [0, 1, 1])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.text_tables import TextTable, seconds_of
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.attractive.attractive_networks import Labels
from netclust.models.attractive.attractive_problem import NetworkFeatures
from netclust.models.attractive.relation_joins import unroll_relations
from netclust.models.attractive.relational_templates import NODES, Template, template_columns

__all__ = [
    "EDGES",
    "RELATIONS",
    "AttractiveEncoder",
    "Field",
    "RawNetwork",
    "RelationColumns",
    "cut_table_networks",
    "edge_templates",
    "encode_network",
    "field_notes",
    "fit_encoder",
    "fit_field",
]

MOST = 5.0
"""Deviations from the mean at which a number is cut."""
SCALE = 3.0
"""Features are so many times as large: losses are in percent, so weights are, and the usual C would keep them small."""
MOSTLY = 0.2
"""Of a column: with fewer texts than this among its numbers, somebody may have meant numbers."""
MAX_VALUES = 1000
"""Values of a text column, and labels."""
EDGES = "edges"
"""The table of given ties: columns `from` and `to` hold ids of nodes."""

RELATIONS = (
    Template(name="source", where=("a.source = b.source",), nearest=3),
    Template(name="source to destination", where=("a.source = b.source", "a.destination = b.destination"), nearest=3),
    Template(
        name="service of destination",
        where=("a.destination = b.destination", "a.destination_port = b.destination_port"),
        nearest=3,
    ),
    Template(
        name="service of source", where=("a.source = b.source", "a.destination_port = b.destination_port"), nearest=3
    ),
    Template(name="called, then calls", where=("a.source = b.destination",), nearest=3),
)
"""How connections are tied by whom they are between: each to the last three that are alike."""


class RelationColumns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of a table's columns."""

    fields: tuple[str, ...] = ()
    """What nodes are judged by. Empty: every column that is all numbers, and nothing else's."""
    label: str = "label"
    id: str = "id"
    """What edges name; rows are numbered from 0 where there is no such column."""
    time: str = "time"
    network: str = "network"
    """Rows with one value here are one network; all rows are, where there is no such column."""


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one column becomes features: by its scale, or (if there are values) a feature a value."""

    name: str
    mean: float = 0.0
    spread: float = 1.0
    missing: bool = False
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot have been fitted."""
        if not (np.isfinite(self.mean) and np.isfinite(self.spread) and self.spread > 0):
            raise InputError(f"the scale of {sanitize(self.name)!r} is no positive number")
        if len(self.values) > MAX_VALUES:
            raise InputError(f"{sanitize(self.name)!r} has more than {MAX_VALUES} values")

    @property
    def feature_names(self) -> list[str]:
        """Names of its features."""
        if self.values:
            return [f"{self.name}={value}" for value in self.values]
        return [self.name, f"no {self.name}"] if self.missing else [self.name]

    def features(self, column: Sequence[str], where: str) -> NDArray[np.float64]:
        """Its features of a column, a row each."""
        if self.values:
            place = {value: k for k, value in enumerate(self.values)}
            at = np.array([place.get(value, -1) for value in column], np.int64)
            return np.asarray(at[:, None] == np.arange(len(self.values)), np.float64)
        numbers, empty = _numbers(column, f"{where}: column {sanitize(self.name)!r}")
        scaled = np.where(empty, 0.0, np.clip((numbers - self.mean) / self.spread, -MOST, MOST))
        return np.column_stack([scaled, empty]) if self.missing else scaled[:, None]


class AttractiveEncoder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model knows of tables besides weights."""

    columns: RelationColumns
    labels: tuple[str, ...]
    fields: tuple[Field, ...]
    templates: tuple[Template, ...]
    costs: tuple[float, ...] | None = None
    """What a wrong node of each label counts; None: all the same."""

    def __post_init__(self) -> None:
        """Refuse what cannot have been fitted."""
        if not 2 <= len(self.labels) <= MAX_VALUES or len(set(self.labels)) < len(self.labels):
            raise InputError(f"{len(self.labels)} labels, expected 2 to {MAX_VALUES}, each once")
        if not self.fields:
            raise InputError("nodes have nothing to be judged by")
        if self.costs is not None and (len(self.costs) != len(self.labels) or not 0 < min(self.costs) < np.inf):
            raise InputError("costs are a number above 0 for every label")

    @property
    def feature_names(self) -> list[str]:
        """What nodes have weights for."""
        return [name for one in self.fields for name in one.feature_names] + ["constant"]


@dataclass(frozen=True, eq=False)
class RawNetwork:
    """The nodes of one network as a table, and other tables that templates are about."""

    nodes: TextTable
    others: Mapping[str, TextTable] = field(default_factory=dict)
    columns: RelationColumns = RelationColumns()  # noqa: RUF009 (frozen)
    templates: tuple[Template, ...] = ()
    """Columns and templates to learn by; a model that is learned has its own."""

    def __len__(self) -> int:
        """How many nodes."""
        return len(self.nodes)


def cut_table_networks(raw: RawNetwork, columns: RelationColumns, most: int | None = None) -> list[RawNetwork]:
    """Cut a table into networks: by its network column, or of at most `most` consecutive rows."""
    table, n = raw.nodes, len(raw)
    if columns.network in table.columns:
        groups: dict[str, list[int]] = {}
        for row, name in enumerate(table.columns[columns.network]):
            groups.setdefault(name, []).append(row)
        cuts = [np.array(rows) for rows in groups.values()]
    elif most is None or most >= n:
        return [raw]
    else:
        cuts = np.array_split(np.arange(n), -(-n // most))
    return [replace(raw, nodes=table.rows(rows)) for rows in cuts]


def edge_templates(edges: TextTable) -> tuple[Template, ...]:
    """The ties of an edge table: one relation, or one for every value of its column `relation`."""
    edges.column("from"), edges.column("to")
    ends = ("a.id = e.from", "b.id = e.to")
    if "relation" not in edges.columns:
        return (Template(name="edge", from_={"e": EDGES}, where=ends),)
    names = sorted(set(edges.columns["relation"]))
    if len(names) > 100 or any("'" in name or not name for name in names):
        raise InputError(f"{edges.path}: relations are up to 100 names, none of them empty or with a quote in it")
    return tuple(Template(name=name, from_={"e": EDGES}, where=(*ends, f"e.relation = '{name}'")) for name in names)


def fit_encoder(raw: Sequence[RawNetwork], *, balanced: bool = False) -> AttractiveEncoder:
    """Labels, scales and values of training networks."""
    columns, templates = raw[0].columns, raw[0].templates
    tables = [one.nodes for one in raw]
    counts = Counter(label for table in tables for label in table.column(columns.label))
    if "" in counts:
        lacking = next(row for table in tables for row, text in enumerate(table.column(columns.label), 1) if not text)
        where = f"{tables[0].path}: row {lacking}" if len(tables) == 1 else f"{tables[0].path}: a row"
        raise InputError(f"{where} has no label in column {columns.label!r}, and all need one to learn from")
    labels = tuple(sorted(counts))
    if len(labels) < 2:
        raise InputError(f"{tables[0].path}: all nodes have the label {sanitize(labels[0])!r}: nothing can be learned")
    names = columns.fields or _numeric_columns(tables, columns, templates)
    if not names:
        raise InputError(f"{tables[0].path}: no column is left to judge nodes by: name some")
    fields = tuple(fit_field(name, [value for table in tables for value in table.column(name)]) for name in names)
    mean = sum(counts.values()) / len(labels)
    costs = tuple(mean / counts[label] for label in labels) if balanced else None
    return AttractiveEncoder(columns=columns, labels=labels, fields=fields, templates=templates, costs=costs)


def encode_network(encoder: AttractiveEncoder, raw: RawNetwork) -> tuple[NetworkFeatures, Labels | None]:
    """The features of a network, and its labels where the table has them."""
    columns, table = encoder.columns, raw.nodes
    n, where = len(table), table.path
    parts = [one.features(table.column(one.name), where) for one in encoder.fields]
    nodes = np.column_stack([*parts, np.ones(n)])
    cells: dict[str, Sequence[str] | NDArray[np.float64]] = {
        name: table.column(name) for name in template_columns(encoder.templates) if name != "id"
    }
    cells["id"] = table.columns.get(columns.id) or [str(row) for row in range(n)]
    if columns.time in table.columns:
        cells["time"] = seconds_of(table.columns[columns.time], f"{where}: column {columns.time}")
    others = {name: dict(one.columns) for name, one in raw.others.items()}
    found = unroll_relations(encoder.templates, {NODES: cells, **others})
    y = None
    if columns.label in table.columns:
        place = {label: k for k, label in enumerate(encoder.labels)}
        texts = table.columns[columns.label]
        if unknown := next((text for text in texts if text not in place), None):
            raise InputError(
                f"{where}: the label {sanitize(unknown)!r} is none of {sanitize(', '.join(encoder.labels))}"
            )
        y = np.array([place[text] for text in texts], np.int64) if all(texts) else None
    ties = np.full((len(found.cliques), 1), SCALE)
    return NetworkFeatures(SCALE * nodes, found.cliques, found.relation, ties), y


def _numeric_columns(
    tables: Sequence[TextTable], columns: RelationColumns, templates: Sequence[Template]
) -> tuple[str, ...]:
    """Columns of numbers that are nobody else's."""
    taken = {columns.label, columns.id, columns.time, columns.network, *template_columns(templates)}
    found = []
    for name in tables[0].columns:
        if name in taken:
            continue
        try:
            for table in tables:
                _numbers(table.column(name), name)
        except InputError:
            continue
        found.append(name)
    return tuple(found)


def fit_field(name: str, column: Sequence[str]) -> Field:
    """How a column of training rows becomes features."""
    try:
        numbers, empty = _numbers(column, name)
    except InputError:
        values = tuple(sorted({value for value in column if value}))
        if len(values) > MAX_VALUES:
            raise InputError(f"column {sanitize(name)!r} has {len(values)} texts, {MAX_VALUES} are taken") from None
        return Field(name=name, values=values)
    there = numbers[~empty]
    mean, spread = (float(there.mean()), float(there.std())) if len(there) else (0.0, 0.0)
    varies = spread > 1e-12 * (1 + abs(mean))
    missing = bool(empty.any())
    return Field(name=name, mean=mean, spread=spread if varies else 1.0, missing=missing)


def field_notes(fields: Sequence[Field], left_out: Sequence[str], column: Callable[[str], Sequence[str]]) -> list[str]:
    """Which columns are numbers and which texts, and those that seem to be what they are by mistake."""
    names = [
        ", ".join(sanitize(one.name) for one in fields if bool(one.values) == text) or "-" for text in (False, True)
    ]
    found = [f"numbers: {names[0]}; texts: {names[1]}; not looked at: {sanitize(', '.join(left_out)) or '-'}"]
    for name in [*(one.name for one in fields if one.values), *left_out]:
        values = [(row, text) for row, text in enumerate(column(name), 1) if text]
        odd = [(row, text) for row, text in values if not _is_number(text)]
        if 0 < len(odd) <= MOSTLY * len(values):
            row, text = odd[0]
            what = f"column {sanitize(name)!r} is not taken for numbers: {sanitize(text[:40])!r} in row {row} is none"
            found.append(f"{what}, most are; leave it empty if it is not known")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(column: Sequence[str], where: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers (0 where it is empty), and where it is empty. True and False are 1 and 0."""
    numbers = np.zeros(len(column))
    for row, text in enumerate(column):
        try:
            numbers[row] = float({"": "0", "True": "1", "False": "0", "true": "1", "false": "0"}.get(text, text))
        except ValueError:
            raise InputError(f"{where}: {sanitize(text)!r} in row {row + 1} is no number") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{where}: row {int(np.argmin(np.isfinite(numbers))) + 1} is no finite number")
    return numbers, np.array([text == "" for text in column], np.bool_)
