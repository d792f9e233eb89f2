"""Weka's ARFF as numbers: dense rows `1.5,yes` and sparse ones `{0 1.5, 3 yes}`, with the names of the attributes.

    numeric, real, integer    one column
    {0,1}, {no,yes}, ...      one column, 1 for what says yes, with the attribute's name
    {red,green,blue}          a column a value, called `name=value` (of two values: the second alone)
    string, date, relational  refused

>>> found = parse_arff("some.arff", "@relation r\\n@attribute 'a b' real\\n@attribute c {red,blue}\\n"
...                    "@attribute d {0,1}\\n@data\\n2,blue,0 % a comment\\n'3',\\"red\\",1\\n")
>>> found.relation, found.names, found.X.tolist()
('r', ('a b', 'c=blue', 'd'), [[2.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
>>> sparse = parse_arff("some.arff", "@relation r\\n@attribute a real\\n@attribute b {0,1}\\n@data\\n"
...                     "{1 1}\\n{}\\n{0 4.5}\\n")
>>> sparse.X.toarray().tolist()
[[0.0, 1.0], [0.0, 0.0], [4.5, 0.0]]

What a sparse row leaves out is 0, and of a nominal attribute its first value, as Weka has it. A missing value (`?`) is
refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netclust.datasets.documents import LIMITS, DocumentLimits
from netclust.datasets.number_rows import NumberRows, finite_number
from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.foundation.text import sanitize

__all__ = ["MAX_COLUMNS", "Arff", "ArffAttribute", "parse_arff"]

MAX_COLUMNS = 1_000_000

# What says no, and what says yes.
_TRUTHS = {"0": "1", "no": "yes", "n": "y", "false": "true", "f": "t", "-1": "1"}
_NUMERIC = ("numeric", "real", "integer")
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\")"""
_DECLARED = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_CELLS = re.compile(rf"(\s*{_QUOTED}\s*|[^,'\"%]*)(,|$|(?=%))")
_INSIDE = re.compile(rf"\{{(?:{_QUOTED}|[^'\"}}])*")
_PAIRS = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,'\"\s]+)\s*(,|$)")


@dataclass(frozen=True)
class ArffAttribute:
    """A declared attribute: numeric where it has no values."""

    name: str
    values: tuple[str, ...] | None = None

    @property
    def truth(self) -> dict[str, float] | None:
        """What each value counts for, where one says no and the other says yes."""
        if self.values is None or len(self.values) != 2:
            return None
        for no, yes in (self.values, self.values[::-1]):
            if _TRUTHS.get(no.lower()) == yes.lower():
                return {no: 0.0, yes: 1.0}
        return None

    @property
    def codes(self) -> dict[str, float] | None:
        """What each value counts for in the parsed matrix, before values get their own columns."""
        if self.values is None:
            return None
        return self.truth or {value: float(at) for at, value in enumerate(self.values)}

    @property
    def plain(self) -> bool:
        """Whether it is read as a number: numeric, or 0 and 1 in this order."""
        return self.values in (None, ("0", "1"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it becomes."""
        if self.values is None or self.truth:
            return (self.name,)
        wanted = self.values[1:] if len(self.values) == 2 else self.values
        return tuple(f"{self.name}={value}" for value in wanted)


@dataclass(frozen=True, eq=False)
class Arff:
    """A file's content; X is dense [n, columns] or CSR, as its rows are."""

    relation: str
    attributes: tuple[ArffAttribute, ...]
    names: tuple[str, ...]
    X: Any


def parse_arff(path: str | Path, text: str, limits: DocumentLimits = LIMITS) -> Arff:
    """What a file says; `path` is for messages."""
    lines = enumerate(text.splitlines(), 1)
    relation, attributes = _header(path, lines)
    rows = _Rows(path, attributes, limits)
    for number, line in lines:
        if (body := line.strip()) and body[0] != "%":
            rows.add(body, number)
    names, X = rows.matrix()
    return Arff(relation, tuple(attributes), names, X)


def _header(path: str | Path, lines: Iterator[tuple[int, str]]) -> tuple[str, list[ArffAttribute]]:
    relation, columns = "", 0
    attributes: list[ArffAttribute] = []
    seen: set[str] = set()
    for number, line in lines:
        body = line.strip()
        word = body.split(None, 1)[0].lower() if body else "%"
        where = f"{path} line {number}"
        if word.startswith("%"):
            continue
        if word == "@data":
            if not attributes:
                raise InputError(f"{where}: @data before any @attribute")
            return relation, attributes
        if word == "@relation":
            relation = _unquoted(body[len(word) :].strip())
        elif word == "@attribute":
            one = _attribute(body, where)
            if one.name in seen:
                raise InputError(f"{where}: attribute {sanitize(one.name)!r} is there twice")
            seen.add(one.name)
            attributes.append(one)
            columns += len(one.columns)
            if columns > MAX_COLUMNS:
                raise InputError(f"{where}: more than {MAX_COLUMNS:,} columns")
        else:
            raise InputError(f"{where}: expected @attribute or @data, found {sanitize(body[:60])!r}")
    raise InputError(f"{path}: no @data: it is no whole ARFF file")


def _attribute(body: str, where: str) -> ArffAttribute:
    found = _DECLARED.match(body)
    if not found:
        raise InputError(f"{where}: expected @attribute NAME TYPE, found {sanitize(body[:60])!r}")
    name, kind = _unquoted(found[1]), found[2].strip()
    if kind.startswith("{"):
        inside = kind[1 : kind.rfind("}")] if "}" in kind else None
        values = None if inside is None else _split(inside)
        if not values or len(set(values)) < len(values) or "" in values:
            raise InputError(f"{where}: the values of {sanitize(name)!r} are no {{one,other,...}}, each there once")
        return ArffAttribute(name, tuple(values))
    word = kind.split(None, 1)[0].lower() if kind else ""
    if word not in _NUMERIC:
        raise InputError(
            f"{where}: attribute {sanitize(name)!r} is {sanitize(word[:20]) or 'of no type'}: only numeric and "
            "nominal ({a,b}) ones can be used, take it out or make numbers of it"
        )
    return ArffAttribute(name)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _split(text: str) -> list[str] | None:
    """The cells of a row, quotes taken off; None where they cannot be told apart."""
    if not ("'" in text or '"' in text or "%" in text):
        return [cell.strip() for cell in text.split(",")]
    cells, at = [], 0
    while found := _CELLS.match(text, at):
        cells.append(_unquoted(found[1].strip()))
        at = found.end()
        if found[2] != ",":
            rest = text[at:].lstrip()
            return cells if not rest or rest.startswith("%") else None
    return None


class _Rows:
    """The rows of a file: the first one says whether they are dense or sparse."""

    def __init__(self, path: str | Path, attributes: list[ArffAttribute], limits: DocumentLimits) -> None:
        self._path = path
        self._attributes = attributes
        self._limits = limits
        self._count = 0
        self._sparse = False
        self._numbers = NumberRows(path, [a.name for a in attributes])
        self._odd = [(at, a) for at, a in enumerate(attributes) if not a.plain]
        self._binary = [at for at, a in enumerate(attributes) if a.values == ("0", "1")]
        self._starts: list[int] = [0]
        self._at: list[int] = []
        self._given: list[float] = []
        self._lines: list[int] = []

    def add(self, body: str, line: int) -> None:
        where = f"{self._path} line {line}"
        sparse = body.startswith("{")
        if self._count == 0:
            self._sparse = sparse
        if sparse != self._sparse:
            raise InputError(f"{where}: {{sparse}} and dense rows in one file")
        self._count += 1
        self._lines.append(line)
        if self._count > self._limits.items:
            raise InputError(f"{where}: more than {self._limits.items:,} rows")
        if sparse:
            self._add_sparse(body, where)
            return
        cells = _split(body)
        if cells is None or len(cells) != len(self._attributes):
            found = "quotes that do not match" if cells is None else f"{len(cells)} values"
            raise InputError(f"{where}: {found}, expected {len(self._attributes)} values")
        for at, attribute in self._odd:
            cells[at] = str(self._code(attribute, cells[at], where))
        self._numbers.add(cells, line)

    def _code(self, attribute: ArffAttribute, value: str, where: str) -> float:
        codes = attribute.codes or {}
        if value not in codes:
            among = ", ".join(map(sanitize, list(codes)[:5]))
            missing = ": fill missing values in first" if value == "?" else ""
            raise InputError(
                f"{where}: {sanitize(attribute.name)} is {sanitize(value[:40])!r}, expected one of {among}{missing}"
            )
        return codes[value]

    def _add_sparse(self, body: str, where: str) -> None:
        end = found.end() if (found := _INSIDE.match(body)) else 0
        rest = body[end + 1 :].lstrip()
        if body[end : end + 1] != "}" or (rest and not rest.startswith("%")):
            raise InputError(f"{where}: a sparse row ends in }}, found {sanitize(body[-20:])!r}")
        inside = body[1:end]
        places, values = self._pairs(inside, where)
        if max(places, default=0) >= len(self._attributes):
            raise InputError(f"{where}: attribute {max(places)}, the last one is {len(self._attributes) - 1}")
        if len(set(places)) < len(places):
            raise InputError(f"{where}: an attribute is there twice")
        self._given += self._numbers_of(places, values, where)
        self._at += places
        self._starts.append(len(self._at))

    def _numbers_of(self, places: list[int], values: list[str], where: str) -> list[float]:
        """What the values of a sparse row count for."""
        if all(value == "1" for value in values) and not self._odd:
            return [1.0] * len(values)
        given = [(self._attributes[at], value) for at, value in zip(places, values, strict=True)]
        return [
            finite_number(value, sanitize(one.name), where) if one.plain else self._code(one, value, where)
            for one, value in given
        ]

    @staticmethod
    def _pairs(inside: str, where: str) -> tuple[list[int], list[str]]:
        """The places and values of a sparse row."""
        if not ("'" in inside or '"' in inside):
            parts = [part.split() for part in inside.split(",")] if inside.strip() else []
            if all(len(part) == 2 and part[0].isascii() and part[0].isdigit() and len(part[0]) < 9 for part in parts):
                return [int(part[0]) for part in parts], [part[1] for part in parts]
        places, values, at = [], [], 0
        while found := _PAIRS.match(inside, at):
            places.append(min(int(found[1][:9]), MAX_COLUMNS))
            values.append(_unquoted(found[2]))
            at = found.end()
            if not found[3]:
                return places, values
        raise InputError(
            f"{where}: expected {{PLACE VALUE, PLACE VALUE, ...}}, found {sanitize(inside[at : at + 40])!r}"
        )

    def matrix(self) -> tuple[tuple[str, ...], Any]:
        """The names of the columns, and the numbers in them."""
        if not self._count:
            raise InputError(f"{self._path}: no rows after @data")
        names = tuple(name for attribute in self._attributes for name in attribute.columns)
        if len(set(names)) < len(names):
            raise InputError(
                f"{self._path}: two columns would have one name, as `name=value` is an attribute's name too"
            )
        X: Any = self._whole() if self._sparse else self._numbers.matrix()
        self._check_binary(X)
        kept, parts, start = [self._is_kept(attribute) for attribute in self._attributes], [], 0
        if all(kept):
            return names, X
        if self._sparse:
            X = X.tocsc()
        for at in [at for at, as_it_is in enumerate(kept) if not as_it_is]:
            parts += [X[:, start:at], self._expanded(X[:, at : at + 1], self._attributes[at])]
            start = at + 1
        parts.append(X[:, start:])
        if not self._sparse:
            return names, np.concatenate(parts, axis=1)
        return names, require_optional("scipy.sparse", "reading sparse rows").hstack(
            parts, format="csr", dtype=np.float64
        )

    def _whole(self) -> Any:
        sparse = require_optional("scipy.sparse", "reading sparse rows")
        shape = (self._count, len(self._attributes))
        X = sparse.csr_matrix(
            (np.array(self._given), np.array(self._at, np.int32), np.array(self._starts)), shape=shape
        )
        X.sort_indices()
        return X

    def _is_kept(self, attribute: ArffAttribute) -> bool:
        """Whether its parsed column is what it becomes: what a sparse row leaves out counts for 0."""
        if attribute.values is None:
            return True
        truth = attribute.truth
        return truth is not None and not (self._sparse and truth[attribute.values[0]])

    def _expanded(self, column: Any, attribute: ArffAttribute) -> Any:
        """The columns of a nominal attribute, from its codes."""
        values, codes = attribute.values or (), attribute.codes or {}
        if self._sparse:
            entries = column.tocoo()
            dense = np.full(self._count, codes[values[0]])
            dense[entries.row] = entries.data
        else:
            dense = column[:, 0]
        if attribute.truth:
            return dense[:, None]
        wanted = [codes[value] for value in (values[1:] if len(values) == 2 else values)]
        return (dense[:, None] == np.array(wanted)).astype(np.float64)

    def _check_binary(self, X: Any) -> None:
        """Of {0,1}: whether it is one of them."""
        if not self._binary:
            return
        if self._sparse:
            limited = np.zeros(X.shape[1], bool)
            limited[self._binary] = True
            wrong = limited[X.indices] & (X.data != 0) & (X.data != 1)
            if not wrong.any():
                return
            entry = int(np.argmax(wrong))
            row, at = int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry])
            value = X.data[entry]
        else:
            part = X[:, self._binary]
            wrong = (part != 0) & (part != 1)
            if not wrong.any():
                return
            row, place = map(int, np.argwhere(wrong)[0])
            at, value = self._binary[place], part[row, place]
        name = sanitize(self._attributes[at].name)
        raise InputError(f"{self._path} line {self._lines[row]}: {name} is {value:g}, expected one of 0, 1")
