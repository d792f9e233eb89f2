"""How a template's query is answered: joins of tables on equal columns, in numpy, counted before they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.attractive.attractive_networks import Cliques
from netclust.models.attractive.relational_templates import MAX_CLIQUES, NODES, Equality, Tables, Template
from netclust.structures.pairs import Indices

__all__ = ["TableData", "Unrolled", "relation_matches", "relation_runs", "unroll_relations"]


@dataclass(frozen=True, eq=False)
class Unrolled:
    """The cliques of all templates, in their order; `relation` is the number of a clique's template."""

    cliques: Cliques
    relation: Indices
    counts: dict[str, int]
    """Cliques by template."""


class TableData:
    """The tables, and how many cliques may still be made."""

    def __init__(self, tables: Tables, time: str, largest: int) -> None:
        self.tables, self.left, self.largest = tables, largest, largest
        self.rows = {
            name: max((len(np.asarray(c)) for c in table.values()), default=0) for name, table in tables.items()
        }
        n = self.rows[NODES]
        self.timed = time in tables[NODES]
        self.time = np.asarray(tables[NODES][time], np.float64) if self.timed else np.zeros(n)
        self.order = np.lexsort((np.arange(n), self.time))
        self.rank = np.empty(n, np.int64)
        self.rank[self.order] = np.arange(n)

    def column(self, template: Template, variable: str, name: str) -> NDArray[np.str_]:
        """A column of the table that a variable is over, as texts."""
        return self.of_table(template, template.variables[variable], name)

    def of_table(self, template: Template, table: str, name: str) -> NDArray[np.str_]:
        """A column of a table, as texts."""
        if table not in self.tables:
            raise InputError(f"template {sanitize(template.name)!r}: there is no table {sanitize(table)!r}")
        if name not in self.tables[table]:
            there = ", ".join(map(sanitize, list(self.tables[table])[:10]))
            raise InputError(
                f"template {sanitize(template.name)!r}: table {sanitize(table)} has no column {name!r} (but {there})"
            )
        return np.asarray(self.tables[table][name]).astype(str)

    def check(self, template: Template, count: int) -> None:
        """Refuse to make so many rows if fewer are left."""
        if count > self.left:
            raise InputError(
                f"template {sanitize(template.name)!r} makes {count:,} rows, and {self.left:,} of {self.largest:,} "
                "cliques are left: tie fewer (`nearest`, `within`, `skip_above`, a further equality)"
            )


def relation_matches(template: Template, data: TableData) -> Cliques:
    """Return the answer of the query as cliques, each set of nodes once."""
    equalities = template.equalities()
    rows = _first(template, data, template.clique[0], equalities)
    joined: dict[str, Indices] = {template.clique[0]: rows}
    waiting = [name for name in template.variables if name not in joined]
    while waiting:
        ready = [name for name in waiting if any({e.left, e.right} <= {name, *joined} for e in _of(name, equalities))]
        if not ready:
            raise InputError(f"template {sanitize(template.name)!r}: no equality ties {waiting[0]} to the others")
        joined = _join(template, data, joined, ready[0], equalities)
        waiting.remove(ready[0])
    found = np.sort(np.stack([joined[name] for name in template.clique], axis=1), axis=1)
    found = found[(np.diff(found, axis=1) > 0).all(axis=1)]
    found = np.unique(found, axis=0) if len(found) else found
    width = len(template.clique)
    return Cliques(width * np.arange(len(found) + 1, dtype=np.int64), found.ravel().astype(np.int64))


def _of(name: str, equalities: Sequence[Equality]) -> list[Equality]:
    """Equalities between this variable and another."""
    return [one for one in equalities if one.right is not None and name in (one.left, one.right)]


def _first(template: Template, data: TableData, variable: str, equalities: Sequence[Equality]) -> Indices:
    """The rows that a variable may stand for, by the texts that its columns must have."""
    table = template.variables[variable]
    if table not in data.rows:
        raise InputError(f"template {sanitize(template.name)!r}: there is no table {sanitize(table)!r}")
    kept = np.ones(data.rows[table], np.bool_)
    for one in equalities:
        if one.right is None and one.left == variable:
            kept &= data.column(template, variable, one.column) == (one.text or "")
    return np.flatnonzero(kept)


def _join(
    template: Template, data: TableData, joined: dict[str, Indices], name: str, equalities: Sequence[Equality]
) -> dict[str, Indices]:
    """All rows so far with every row of one more variable that fits."""
    own = _first(template, data, name, equalities)
    left, right = _values(template, data, joined, name, own, equalities)
    # Rows of the new variable by value, and where there is an order by that: those of one value stand together.
    ordered = _in_order(template, equalities)
    place = right * (data.rows[NODES] + 1) + data.rank[own] if ordered else right
    sort = np.argsort(place, kind="stable")
    low, high = np.searchsorted(right[sort], left), np.searchsorted(right[sort], left, side="right")
    dropped = left < 0
    if template.skip_above is not None:
        dropped |= high - low > template.skip_above
    if ordered:
        n, first = data.rows[NODES] + 1, joined[template.clique[0]]
        high = np.searchsorted(place[sort], left * n + data.rank[first])
        if template.within is not None:
            since = np.searchsorted(data.time[data.order], data.time[first] - template.within)
            low = np.searchsorted(place[sort], left * n + since)
        if template.nearest is not None:
            low = np.maximum(low, high - template.nearest)
    number = np.where(dropped, 0, np.maximum(high - low, 0))
    total = int(number.sum())
    data.check(template, total)
    before = np.repeat(np.arange(len(left)), number)
    step = np.arange(total) - np.repeat(np.cumsum(number) - number, number)
    return {key: rows[before] for key, rows in joined.items()} | {name: own[sort[np.repeat(low, number) + step]]}


def _values(
    template: Template,
    data: TableData,
    joined: dict[str, Indices],
    name: str,
    own: Indices,
    equalities: Sequence[Equality],
) -> tuple[Indices, Indices]:
    """What must be equal, as one number a row: of the rows so far, and of the new variable's; -1 where it is empty."""
    split = len(next(iter(joined.values())))
    code, empty = np.zeros(split + len(own), np.int64), np.zeros(split + len(own), np.bool_)
    for one in _of(name, equalities):
        mine, other, its = (one.column, one.right, one.other) if one.left == name else (one.other, one.left, one.column)
        if other not in joined or mine is None or its is None:
            continue
        there = data.column(template, str(other), its)[joined[str(other)]]
        both = np.concatenate([there, data.column(template, name, mine)[own]])
        code, empty = _numbered(code, both), empty | (both == "")
    code = np.where(empty, -1, code)
    return code[:split], code[split:]


def _numbered(code: Indices, column: NDArray[np.str_]) -> Indices:
    """Numbers from 0 for what is equal in a number and a column, so that products of them stay small."""
    values, own = np.unique(column, return_inverse=True)
    return np.asarray(np.unique(code * len(values) + own.ravel(), return_inverse=True)[1].ravel(), np.int64)


def _in_order(template: Template, equalities: Sequence[Equality]) -> bool:
    """Whether b is taken as the earlier one: it has to be, or a and b are alike and each pair would come up twice."""
    if template.within is not None or template.nearest is not None:
        return True
    texts: dict[str, set[tuple[str, str | None]]] = {name: set() for name in template.variables}
    for one in equalities:
        if one.right is None:
            texts[one.left].add((one.column, one.text))
    a, b = template.clique[:2]
    return (
        len(template.variables) == 2 and texts[a] == texts[b] and all(e.column == e.other for e in _of(a, equalities))
    )


def relation_runs(template: Template, data: TableData) -> Cliques:
    """Cut nodes that are equal in some columns, in order of time, into runs; a run of one is no clique."""
    n = data.rows[NODES]
    code, empty = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for name in template.group:
        column = data.of_table(template, NODES, name)
        code, empty = _numbered(code, column), empty | (column == "")
    size = np.bincount(code, minlength=1)
    if template.skip_above is not None:
        empty |= size[code] > template.skip_above
    order = np.lexsort((data.rank, code))
    order = order[~empty[order]]
    if not len(order):
        return Cliques.of_edges([])
    own = code[order]
    start = np.flatnonzero(np.concatenate([[True], np.diff(own) != 0]))
    within = np.arange(len(own)) - np.repeat(start, np.diff(np.append(start, len(own))))
    run = np.cumsum(within % template.size == 0) - 1
    length = np.bincount(run)
    kept = length[run] > 1
    sizes = length[length > 1]
    data.check(template, len(sizes))
    return Cliques(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), order[kept].astype(np.int64))


def unroll_relations(
    templates: Sequence[Template], tables: Tables, *, time: str = "time", largest: int = MAX_CLIQUES
) -> Unrolled:
    """Return the cliques of templates on tables. Rows are in the order of the column `time`, if there is one."""
    if NODES not in tables:
        raise InputError(f"templates are about a table {NODES!r}, and there is none")
    data = TableData(tables, time, largest)
    sizes, members, relation, counts = [], [], [], dict[str, int]()
    for number, template in enumerate(templates):
        own = relation_runs(template, data) if template.group else relation_matches(template, data)
        counts[template.name] = len(own)
        data.left -= len(own)
        sizes.append(own.sizes)
        members.append(own.members)
        relation.append(np.full(len(own), number, np.int64))
    none = [np.zeros(0, np.int64)]
    at = np.concatenate([[0], np.cumsum(np.concatenate(sizes or none))]).astype(np.int64)
    return Unrolled(Cliques(at, np.concatenate(members or none)), np.concatenate(relation or none), counts)
