"""The record of decisions: who asked for what, when, why, and what came of it; what the daemon noticed, too."""

from __future__ import annotations

import sqlite3
from typing import Any, TypeVar

import msgspec

from netclust.stream.store.store_rows import AuditRow

__all__ = ["add_audit", "fetch_audit", "latest_audit"]

Row = TypeVar("Row", bound=msgspec.Struct)


def add_audit(
    db: sqlite3.Connection,
    now: int,
    topic: str,
    what: str,
    *,
    by: str = "",
    why: str = "",
    result: str = "",
    facts: Any = None,
    key: str | None = None,
) -> bool:
    """Add a row; one that has a `key` is added once, however often it is told."""
    values = (now, topic, what, by, why, result, msgspec.json.encode(facts).decode(), key)
    sql = "INSERT OR IGNORE INTO audit (created, topic, what, by, why, result, facts, key) VALUES (?,?,?,?,?,?,?,?)"
    return db.execute(sql, values).rowcount > 0


def latest_audit(db: sqlite3.Connection, limit: int) -> list[AuditRow]:
    """Return the last rows, newest first."""
    return fetch_audit(db, AuditRow, "FROM audit ORDER BY number DESC LIMIT ?", (limit,), as_json=("facts",))


def fetch_audit(
    db: sqlite3.Connection,
    row: type[Row],
    rest: str,
    values: tuple[Any, ...] = (),
    *,
    as_json: tuple[str, ...] = (),
) -> list[Row]:
    """Fetch rows of one kind: `rest` is the statement behind its columns, which are named like the row's fields."""
    names = row.__struct_fields__
    found = []
    for values_of_row in db.execute(f"SELECT {', '.join(names)} {rest}", values):
        fields = dict(zip(names, values_of_row, strict=True))
        for name in as_json:
            fields[name] = None if fields[name] is None else msgspec.json.decode(fields[name])
        found.append(row(**fields))
    return found
