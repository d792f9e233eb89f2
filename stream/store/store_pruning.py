"""The bounds of the store: what is too old goes, and when there is too much, the oldest goes first.

What can be had again goes before what cannot: what is only shown (records of the link forest, minutes, paths), then
closed alerts and clusters, then rules that are over, then the record of decisions and labels, which are kept ten times
as long; open alerts go last.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from netclust.stream.store.store_schema import store_page_bytes

DAY = 86_400 * 10**9
KEEP_DECISIONS = 10  # times as long as alerts
MAX_DECISIONS = 1_000_000  # rows of labels, and of the record
MAX_NODES = 500_000  # records of the link forest
PART = 2_000  # rows that go at a time: nobody waits long for the lock
MAX_PARTS = 1_000  # of one call
VACUUM_PAGES = 4_000

Connected = Callable[[], AbstractContextManager[sqlite3.Connection]]

CLOSED = "alerts WHERE state = 'closed'", "stored", "id"
OPEN = "alerts WHERE state = 'open'", "stored", "id"
CLUSTERS = "clusters WHERE 1", "stored", "ident"
OVER = "suppressions WHERE removed_at IS NOT NULL", "removed_at", "number"
NODES = "nodes WHERE 1", "tick", "tick"
SAMPLES = "samples WHERE 1", "time", "time"
PATHS = "paths WHERE 1", "stored", "alert"
AUDIT = "audit WHERE 1", "created", "number"
LABELS = "labels WHERE status <> 'pending'", "created", "label_seq"

Group = tuple[str, str, str]


def prune(
    writing: Connected, reading: Connected, now: int, max_days: float, max_bytes: int, fill: float
) -> Counter[str]:
    """Drop what is too old and, down to a share `fill` of the bytes, too much; how many rows of each table went."""
    dropped: Counter[str] = Counter()
    expired = f"suppressions WHERE removed_at IS NULL AND until BETWEEN 0 AND {now}", "until", "number"
    old, older = now - round(max_days * DAY), now - round(KEEP_DECISIONS * max_days * DAY)
    for group in (CLOSED, OPEN, CLUSTERS, OVER, expired, SAMPLES, PATHS):
        _drop_all(writing, group, f"AND {group[1]} < {old}", dropped)
    for group in (AUDIT, LABELS):
        _drop_all(writing, group, f"AND {group[1]} < {older}", dropped)
    for group, most in ((AUDIT, MAX_DECISIONS), (LABELS, MAX_DECISIONS), (NODES, MAX_NODES)):
        _drop_beyond(writing, group, most, dropped)
    groups = (NODES, PATHS, SAMPLES, CLOSED, CLUSTERS, OVER, expired, AUDIT, LABELS, OPEN)
    _shrink(writing, fill * max_bytes, groups, dropped)
    _give_back(reading)
    return dropped


def _drop_beyond(writing: Connected, group: Group, most: int, dropped: Counter[str]) -> None:
    """Keep the rows with the largest keys."""
    table, _, key = group
    name = table.split()[0]
    with writing() as db:
        last = db.execute(f"SELECT {key} FROM {name} ORDER BY {key} DESC LIMIT 1 OFFSET {most}").fetchone()  # noqa: S608
    if last is not None:
        _drop_all(writing, group, f"AND {key} <= {int(last[0])}", dropped)


def _drop_all(writing: Connected, group: Group, which: str, dropped: Counter[str]) -> None:
    for _ in range(MAX_PARTS):
        if _drop(writing, group, which, dropped) < PART:
            return


def _drop(writing: Connected, group: Group, which: str, dropped: Counter[str], part: int = PART) -> int:
    """Drop some of a group, the oldest; how many."""
    table, age, key = group
    name = table.split()[0]
    chosen = f"SELECT {key} FROM {table} {which} ORDER BY {age}, {key} LIMIT {part}"  # noqa: S608
    with writing() as db:
        gone = db.execute(f"DELETE FROM {name} WHERE {key} IN ({chosen})").rowcount  # noqa: S608
    if gone:
        dropped[name] += gone
    return gone


def _shrink(writing: Connected, most: float, groups: Sequence[Group], dropped: Counter[str]) -> None:
    """Drop the oldest, a twentieth of a group at a time, until there is room again."""
    for group in groups:
        for _ in range(MAX_PARTS):
            if used_bytes(writing) <= most:
                return
            with writing() as db:
                rows = int(db.execute(f"SELECT count(*) FROM {group[0]}").fetchone()[0])  # noqa: S608
            if not _drop(writing, group, "", dropped, min(PART, 1 + rows // 20)):
                break


def used_bytes(writing: Connected) -> int:
    """What rows take; free pages are used again."""
    with writing() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0] - db.execute("PRAGMA freelist_count").fetchone()[0]
        return int(pages) * store_page_bytes(db)


def _give_back(reading: Connected) -> None:
    """Free pages back to the disk, some at a time."""
    with reading() as db:
        if db.execute("PRAGMA freelist_count").fetchone()[0] > VACUUM_PAGES // 4:
            db.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")  # `execute` would stop after a page
