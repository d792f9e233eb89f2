"""Queries with candidate items to rank: SVMrank's format, a CSV of numbers, or pairs of a question and an answer.

    SVMrank     1 qid:7 1:0.5 3:1.2 # any comment       features are numbered from 1; what is left out is 0
    CSV         a header, a column for the query, one for the label, numbers in all others
    pairs       a header with the columns question and answer (and label), or WikiQA's: question TAB answer TAB 0/1

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "some.txt")
...     _ = path.write_text("1 qid:1 1:0.5 2:1\\n0 qid:1 2:2\\n0 qid:2 1:1\\n")
...     found = read_queries(path)
>>> found.fields, [query.name for query in found.queries], found.queries[0].labels.tolist()
(('feature 1', 'feature 2'), ['1', '2'], [1, 0])
>>> found.queries[0].numbers.tolist()
[[0.5, 1.0], [0.0, 2.0]]

A label above 0 says that an item is right. Files may be packed (gz, xz, zst, zip); text is UTF-8, or else Latin-1.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.documents import LIMITS, DocumentLimits, decode_document, read_document_bytes
from netclust.errors import InputError
from netclust.foundation.text import sanitize

__all__ = ["Queries", "Query", "QueryColumns", "QueryFormat", "read_queries"]

QueryFormat = Literal["auto", "svmrank", "csv", "pairs"]
MAX_FEATURE = 100_000
"""The highest feature number of an SVMrank file: features are kept as dense rows."""

_SVMRANK = re.compile(r"\s*[-+0-9.eE]+\s+qid:\S+")


@dataclass(frozen=True, eq=False)
class Query:
    """One query and its candidates: numbers [items, features], or a question and the texts of its answers."""

    name: str
    ids: tuple[str, ...]
    labels: NDArray[np.int64] | None = None
    """1: right, 0: wrong; None: nobody knows."""
    numbers: NDArray[np.float64] | None = None
    question: str = ""
    answers: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.ids)

    @property
    def mixed(self) -> bool:
        """Whether it has a right and a wrong candidate: others say nothing about an order."""
        return self.labels is not None and 0 < int(self.labels.sum()) < len(self.labels)


@dataclass(frozen=True, eq=False)
class Queries:
    """The queries of a file, in order of first appearance; `fields` names the numbers (() where there are texts)."""

    queries: tuple[Query, ...]
    fields: tuple[str, ...] = ()
    sha256: str = ""
    """Of the file's unpacked bytes."""

    @property
    def of_text(self) -> bool:
        """Whether candidates are texts."""
        return not self.fields

    def mixed(self) -> Queries:
        """Only those with a right and a wrong candidate."""
        return replace(self, queries=tuple(query for query in self.queries if query.mixed))

    def answered(self) -> Queries:
        """Only those with a right candidate: average precision is of these."""
        some = tuple(query for query in self.queries if query.labels is not None and query.labels.any())
        return replace(self, queries=some)


class QueryColumns(NamedTuple):
    """Names of a CSV's columns."""

    query: str | None = None
    label: str | None = None
    id: str | None = None
    question: str | None = None
    answer: str | None = None


class _Line(NamedTuple):
    """One candidate, as it stands in the file."""

    query: str
    ident: str
    label: int | None
    content: tuple[float, ...] | dict[int, float] | str


def read_queries(
    path: str | Path,
    *,
    format: QueryFormat = "auto",  # noqa: A002 (what it is called in other readers too)
    columns: QueryColumns = QueryColumns(),  # noqa: B008 (a tuple)
    fields: Sequence[str] | None = None,
    limits: DocumentLimits = LIMITS,
) -> Queries:
    """The queries of a file. Columns need names where they are not called query, label, id, question, answer.

    `fields` are the columns (SVMrank: `feature N`) to rank by, in their order: all other columns by default.
    """
    content = read_document_bytes(path, limits.total_bytes)
    text = decode_document(content)
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if not first:
        raise InputError(f"{path}: there are no queries in it")
    kind = _recognised(first, columns) if format == "auto" else format
    if kind == "svmrank":
        found = _svmrank(path, text, fields, limits)
    else:
        found = _table(path, text, kind, columns, fields, limits)
    return replace(found, sha256=hashlib.sha256(content).hexdigest())


def _recognised(first: str, columns: QueryColumns) -> QueryFormat:
    if columns.question or columns.answer:
        return "pairs"
    if _SVMRANK.match(first):
        return "svmrank"
    names = _header(first)
    if {"question", "answer"} <= set(names) or _headless(first):
        return "pairs"
    return "csv"


def _header(first: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([first], delimiter=_delimiter(first)), [])]


def _delimiter(first: str) -> str:
    return max("\t,;", key=first.count)


def _headless(first: str) -> bool:
    parts = first.split("\t")
    return len(parts) == 3 and parts[2].strip() in ("0", "1")


def _svmrank(path: str | Path, text: str, fields: Sequence[str] | None, limits: DocumentLimits) -> Queries:
    lines: list[_Line] = []
    for number, line in enumerate(text.splitlines(), 1):
        body = line.partition("#")[0].split()
        if not body:
            continue
        where = f"{path} line {number}"
        if len(body) < 2 or not body[1].startswith("qid:") or body[1] == "qid:":
            raise InputError(f"{where}: expected LABEL qid:QUERY FEATURE:VALUE ..., found {sanitize(line[:60])!r}")
        found: dict[int, float] = {}
        for part in body[2:]:
            at, colon, value = part.partition(":")
            if not (colon and at.isascii() and at.isdigit() and 1 <= int(at) <= MAX_FEATURE):
                raise InputError(f"{where}: {sanitize(part[:40])!r} is no FEATURE:VALUE (1 to {MAX_FEATURE:,})")
            if int(at) in found:
                raise InputError(f"{where}: feature {at} is there twice")
            found[int(at)] = _number(value, f"feature {at}", where)
        label = int(_number(body[0], "the label", where) > 0)
        lines.append(_Line(body[1][4:], str(number), label, found))
        if len(lines) > limits.items:
            raise InputError(f"{where}: more than {limits.items} candidates")
    width = max((max(line.content, default=0) for line in lines if isinstance(line.content, dict)), default=0)
    names = tuple(f"feature {n}" for n in range(1, width + 1)) if fields is None else tuple(fields)
    if not names:
        raise InputError(f"{path}: no line has a feature")
    places = [_feature_number(name, path) for name in names]
    rows = [
        line._replace(content=tuple(line.content.get(at, 0.0) for at in places))
        for line in lines
        if isinstance(line.content, dict)
    ]
    return _grouped(rows, names)


def _feature_number(name: str, path: str | Path) -> int:
    at = name.removeprefix("feature ")
    if not (at.isascii() and at.isdigit()):
        raise InputError(f"{path}: SVMrank's features have numbers, and {name!r} is wanted: give the file it was for")
    return int(at)


class _Places(NamedTuple):
    """Where in a row that is; None: there is none."""

    query: int | None
    label: int | None
    id: int | None
    content: tuple[int, ...]
    names: tuple[str, ...]
    width: int


def _table(
    path: str | Path,
    text: str,
    kind: QueryFormat,
    columns: QueryColumns,
    fields: Sequence[str] | None,
    limits: DocumentLimits,
) -> Queries:
    first = text.split("\n", 1)[0]
    headless = kind == "pairs" and _headless(first) and not any(columns)
    # WikiQA's texts hold quotation marks that quote nothing
    quoted: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if headless else {}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(first), strict=True, **quoted)
    lines: list[_Line] = []
    try:
        if headless:
            places = _Places(0, 2, None, (1,), (), 3)
        else:
            places = _find(path, [name.strip() for name in next(reader, [])], kind, columns, fields)
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            where = f"{path} line {reader.line_num}"
            if len(row) != places.width:
                raise InputError(f"{where}: {len(row)} columns, expected {places.width}")
            lines.append(_line(row, places, where, reader.line_num))
            if len(lines) > limits.items:
                raise InputError(f"{where}: more than {limits.items} candidates")
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: cannot be read as CSV: {error}") from None
    if not lines:
        raise InputError(f"{path}: no candidates: a header line, then one candidate a line")
    return _grouped(lines, places.names)


def _find(
    path: str | Path, header: list[str], kind: QueryFormat, columns: QueryColumns, fields: Sequence[str] | None
) -> _Places:
    known = {name: at for at, name in enumerate(header) if name}
    if len(known) < sum(map(bool, header)):
        raise InputError(f"{path} line 1: two columns have one name: {sanitize(', '.join(header))}")

    def place(role: str, needed: bool) -> int | None:
        name = getattr(columns, role) or role
        if name not in known and (needed or getattr(columns, role)):
            raise InputError(
                f"{path} line 1: no column {name!r} for the {role}: there are {sanitize(', '.join(known))}; "
                f"name it with --{role}"
            )
        return known.get(name)

    label, ident = place("label", False), place("id", False)
    if kind == "pairs":
        question, answer, query = place("question", True) or 0, place("answer", True) or 0, place("query", False)
        return _Places(question if query is None else query, label, ident, (question, answer), (), len(header))
    query = place("query", True)
    roles = {at for at in (query, label, ident) if at is not None}
    names = tuple(name for name, at in known.items() if at not in roles) if fields is None else tuple(fields)
    for name in names:
        if name not in known:
            raise InputError(f"{path} line 1: no column {name!r}: there are {sanitize(', '.join(known))}")
    if not names:
        raise InputError(f"{path}: no column is left to rank by")
    return _Places(query, label, ident, tuple(known[name] for name in names), names, len(header))


def _line(row: list[str], places: _Places, where: str, number: int) -> _Line:
    query = row[places.query or 0].strip()
    if not query:
        raise InputError(f"{where}: the query is empty: every candidate needs one")
    label = None if places.label is None else int(_number(row[places.label], "the label", where) > 0)
    ident = row[places.id].strip() if places.id is not None else str(number)
    if places.names:
        found = tuple(_number(row[at], name, where) for at, name in zip(places.content, places.names, strict=True))
        return _Line(query, ident, label, found)
    question = row[places.content[0]] if len(places.content) == 2 else query
    return _Line(query, ident, label, f"{question.strip()}\0{row[places.content[-1]].strip()}")


def _grouped(lines: Sequence[_Line], fields: tuple[str, ...]) -> Queries:
    groups: dict[str, list[_Line]] = {}
    for line in lines:
        groups.setdefault(line.query, []).append(line)
    return Queries(tuple(_query(name, members) for name, members in groups.items()), fields)


def _query(name: str, members: list[_Line]) -> Query:
    labels = [line.label for line in members]
    known = None if None in labels else np.array(labels, np.int64)
    ids = tuple(line.ident for line in members)
    if not isinstance(members[0].content, str):
        return Query(name, ids, known, np.array([line.content for line in members], np.float64))
    texts = [str(line.content).split("\0", 1) for line in members]
    return Query(name, ids, known, None, texts[0][0], tuple(answer for _, answer in texts))


def _number(text: str, what: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {what} is {sanitize(text[:40])!r}, expected a number")
    return value
