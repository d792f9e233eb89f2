"""Relational templates: their cliques are those of the same query in SQL; what is refused."""

# ruff: noqa: S608 (queries of this file's own)

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.attractive.relation_joins import unroll_relations
from netclust.models.attractive.relational_templates import Template, read_templates, template_columns


def some_nodes(seed: int, rows: int = 40) -> dict[str, Any]:
    """Records of a few hosts, some without a service, some at one time."""
    rng = np.random.default_rng(seed)
    hosts = np.array(["h1", "h2", "h3", "h4"])
    return {
        "id": [f"r{i}" for i in range(rows)],
        "source": hosts[rng.integers(0, 4, rows)],
        "destination": hosts[rng.integers(0, 4, rows)],
        "service": np.array(["dns", "http", ""])[rng.integers(0, 3, rows)],
        "time": rng.integers(0, 30, rows).astype(float),
    }


def ask(tables: dict[str, dict[str, Any]], *queries: str) -> list[list[Any]]:
    """What SQLite answers about the tables, which have row numbers; an empty text is NULL."""
    with closing(sqlite3.connect(":memory:")) as made:
        fill(made, tables)
        return [made.execute(query).fetchall() for query in queries]


def fill(made: sqlite3.Connection, tables: dict[str, dict[str, Any]]) -> None:
    for name, columns in tables.items():
        made.execute(f"CREATE TABLE {name} (n INTEGER, {', '.join(f'[{c}]' for c in columns)})")
        rows = zip(
            *[[v.item() if hasattr(v, "item") else v for v in column] for column in columns.values()], strict=True
        )
        marks = ", ".join("?" * (len(columns) + 1))
        made.executemany(
            f"INSERT INTO {name} VALUES ({marks})",
            [(i, *(None if value == "" else value for value in row)) for i, row in enumerate(rows)],
        )


def pairs_of(template: Template, tables: Any) -> set[tuple[int, ...]]:
    found = unroll_relations([template], tables)
    rows = [tuple(found.cliques.members[a:b].tolist()) for a, b in pairwise(found.cliques.at)]
    assert len(rows) == len(set(rows)) == found.counts[template.name]
    return {tuple(sorted(row)) for row in rows}


EARLIER = "(b.time < a.time OR (b.time = a.time AND b.n < a.n))"
QUERIES = [
    (Template(name="source", where=("a.source = b.source",)), "a.source = b.source AND a.n <> b.n"),
    (
        Template(name="two columns", where=("a.source = b.source", "b.service = a.service")),
        "a.source = b.source AND a.service = b.service AND a.n <> b.n",
    ),
    (
        Template(name="a text", where=("a.source = b.source", "a.service = 'dns'", "b.service = 'dns'")),
        "a.source = b.source AND a.service = 'dns' AND b.service = 'dns' AND a.n <> b.n",
    ),
    (
        Template(name="a text of one", where=("a.source = b.source", "a.service = 'dns'")),
        "a.source = b.source AND a.service = 'dns' AND a.n <> b.n",
    ),
    (
        Template(name="within", where=("a.source = b.source",), within=4.0),
        f"a.source = b.source AND {EARLIER} AND a.time - b.time <= 4",
    ),
    (
        Template(name="called becomes caller", where=("a.source = b.destination",)),
        "a.source = b.destination AND a.n <> b.n",
    ),
    (
        Template(name="called, within", where=("a.source = b.destination",), within=5.0),
        f"a.source = b.destination AND {EARLIER} AND a.time - b.time <= 5",
    ),
    (
        Template(name="not the many", where=("a.source = b.source",), skip_above=10),
        "a.source = b.source AND a.n <> b.n AND (SELECT COUNT(*) FROM nodes c WHERE c.source = a.source) <= 10",
    ),
    (
        Template(name="nearest", where=("a.source = b.source",), nearest=2, within=9.0),
        f"a.source = b.source AND {EARLIER} AND a.time - b.time <= 9 AND (SELECT COUNT(*) FROM nodes c WHERE "
        "c.source = a.source AND (c.time < a.time OR (c.time = a.time AND c.n < a.n)) AND "
        "(c.time > b.time OR (c.time = b.time AND c.n > b.n))) < 2",
    ),
]


@pytest.mark.parametrize(("template", "where"), QUERIES, ids=lambda p: p.name if isinstance(p, Template) else "")
@given(st.integers(0, 10_000))
@settings(max_examples=8, deadline=None)
def test_a_template_equals_its_query_in_sql(template, where, seed) -> None:
    tables = {"nodes": some_nodes(seed)}
    (rows,) = ask(tables, f"SELECT DISTINCT min(a.n, b.n), max(a.n, b.n) FROM nodes a, nodes b WHERE {where}")
    assert pairs_of(template, tables) == set(rows)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_templates_with_other_tables_equal_sql(seed) -> None:
    """Link, Cocite (section 8.2) and a triple."""
    rng, nodes = np.random.default_rng(seed), some_nodes(seed, 15)
    ids = np.array(nodes["id"])
    links = {"page": ids[rng.integers(0, 15, 30)], "to": ids[rng.integers(0, 15, 30)]}
    tables = {"nodes": nodes, "links": links}
    link = Template(name="link", from_={"l": "links"}, where=("a.id = l.page", "b.id = l.to"))
    cocite = Template(
        name="cocite", from_={"k": "links", "l": "links"}, where=("k.page = l.page", "a.id = k.to", "b.id = l.to")
    )
    triple = Template(
        name="triple",
        from_={"l": "links", "m": "links"},
        where=("a.id = l.page", "b.id = l.to", "b.id = m.page", "c.id = m.to"),
        clique=("a", "b", "c"),
    )
    pairs = "SELECT DISTINCT min(a.n, b.n), max(a.n, b.n) FROM nodes a, nodes b, "
    linked, cited, threes = ask(
        tables,
        pairs + "links l WHERE a.id = l.page AND b.id = l.[to] AND a.n <> b.n",
        pairs + "links k, links l WHERE k.page = l.page AND a.id = k.[to] AND b.id = l.[to] AND a.n <> b.n",
        "SELECT a.n, b.n, c.n FROM nodes a, nodes b, nodes c, links l, links m WHERE a.id = l.page AND b.id = l.[to] "
        "AND b.id = m.page AND c.id = m.[to] AND a.n <> b.n AND b.n <> c.n AND a.n <> c.n",
    )
    assert pairs_of(link, tables) == set(linked)
    assert pairs_of(cocite, tables) == set(cited)
    assert pairs_of(triple, tables) == {tuple(sorted(row)) for row in threes}


@given(st.integers(0, 10_000), st.integers(2, 6))
@settings(max_examples=10, deadline=None)
def test_runs_equal_sql(seed, size) -> None:
    tables = {"nodes": some_nodes(seed)}
    template = Template(name="runs", group=("destination", "service"), size=size)
    (rows,) = ask(
        tables,
        "SELECT n, destination, service, (ROW_NUMBER() OVER (PARTITION BY destination, service ORDER BY time, n) - 1) "
        f"/ {size} FROM nodes WHERE service IS NOT NULL",
    )
    runs: dict[Any, list[int]] = {}
    for n, *key in rows:
        runs.setdefault(tuple(key), []).append(n)
    assert pairs_of(template, tables) == {tuple(sorted(run)) for run in runs.values() if len(run) > 1}


def test_relations_are_told_apart() -> None:
    nodes = some_nodes(3)
    within = Template(name="within", where=("a.source = b.source",), within=4.0)
    templates = [QUERIES[0][0], Template(name="runs", group=("service",), size=4), within]
    found = unroll_relations(templates, {"nodes": nodes})
    assert list(found.counts) == ["source", "runs", "within"]
    assert np.bincount(found.relation).tolist() == list(found.counts.values())
    assert len(found.cliques) == len(found.relation)
    found.cliques.check(40)
    assert template_columns(templates) == ["service", "source"]


def test_nodes_without_times_or_matches_make_no_cliques() -> None:
    nodes = {"source": ["x", "y", "x", ""]}
    found = unroll_relations(
        [QUERIES[0][0], Template(name="last", where=("a.source = b.source",), nearest=1)], {"nodes": nodes}
    )
    assert found.cliques.members.tolist() == [0, 2, 0, 2]
    none = unroll_relations([QUERIES[0][0], Template(name="g", group=("source",))], {"nodes": {"source": ["", ""]}})
    assert len(none.cliques) == 0


def test_too_many_cliques_are_refused() -> None:
    nodes = {"source": ["x"] * 3000}
    with pytest.raises(InputError, match="4,498,500 rows"):
        unroll_relations([QUERIES[0][0]], {"nodes": nodes}, largest=1_000_000)
    assert (
        unroll_relations([Template(name="n", where=("a.source = b.source",), nearest=2)], {"nodes": nodes}).counts["n"]
        == 5997
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "template"),
        ("[[template]]\nname = 'x'", "either"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = b.s']\ngroup = ['s']", "either"),
        ("[[template]]\nname = 'x'\nwhere = ['__import__(1)']", "not an equality"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = c.s']", "c is no variable"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = a.t']", "one variable alone"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = b.s']\nnearest = 0", "1 or more"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = b.s']\nfrom = {a = 'links'}", "over nodes"),
        (
            "[[template]]\nname = 'x'\nwhere = ['a.s = l.s', 'b.s = l.s']\nfrom = {l = 'links'}\nnearest = 1",
            "two nodes",
        ),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = b.s']\nsurprise = 1", "surprise"),
        ("[[template]]\nname = 'x'\ngroup = ['s']\nsize = 1", "size"),
        ("[[template]]\nname = 'x'\nwhere = ['a.s = b.s']\n" * 2, "one name"),
        ("[[template]", "t.toml"),
    ],
)
def test_a_file_that_says_nothing_is_refused(text, word) -> None:
    with pytest.raises(InputError, match=word):
        read_templates(text, "t.toml")


def test_tables_that_do_not_fit_are_refused() -> None:
    one = QUERIES[0][0]
    with pytest.raises(InputError, match="no column 'source'"):
        unroll_relations([one], {"nodes": {"other": ["x"]}})
    with pytest.raises(InputError, match="there is none"):
        unroll_relations([one], {"records": {"source": ["x"]}})
    apart = Template(name="x", from_={"l": "links"}, where=("a.id = l.page",))
    with pytest.raises(InputError, match="no equality ties b"):
        unroll_relations([apart], {"nodes": {"id": ["x"]}, "links": {"page": ["x"]}})
    with pytest.raises(InputError, match="no table 'links'"):
        unroll_relations([apart], {"nodes": {"id": ["x"]}})
