"""The store's tables, their version, and how a connection to them is opened.

`PRAGMA user_version` is the version: an older file is brought forward by `MIGRATIONS`, a newer one is refused. Several
processes and threads reach it at once: write-ahead log, a busy timeout, short transactions.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from netclust.errors import InputError

__all__ = [
    "VERSION",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "connect_store",
    "move_aside",
    "prepare_store",
    "translated_errors",
]

APPLICATION = 0x6E63_6C75  # "nclu": no other program's file is taken for ours
BUSY_SECONDS = 5.0
WAL_BYTES = 16 << 20  # what the log is cut back to when all of it is in the file

FIRST = """
CREATE TABLE alerts (
    id TEXT PRIMARY KEY, "update" INTEGER NOT NULL, state TEXT NOT NULL, severity INTEGER NOT NULL, kind TEXT NOT NULL,
    label TEXT NOT NULL, entity TEXT NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
    records INTEGER NOT NULL, stored INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX alerts_by_time ON alerts (last_seen, stored, id);
CREATE INDEX alerts_by_state ON alerts (state, last_seen, stored, id);
CREATE INDEX alerts_by_age ON alerts (state, stored, id);
CREATE INDEX alerts_by_entity ON alerts (entity);
CREATE INDEX alerts_by_label ON alerts (label);
CREATE TABLE alert_clusters (
    alert TEXT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE, cluster INTEGER NOT NULL, PRIMARY KEY (alert, cluster)
) WITHOUT ROWID;
CREATE INDEX alerts_of_cluster ON alert_clusters (cluster);
CREATE TABLE clusters (
    ident INTEGER PRIMARY KEY, label TEXT NOT NULL, records INTEGER NOT NULL, anomalous INTEGER NOT NULL,
    first_time INTEGER NOT NULL, last_time INTEGER NOT NULL, top_score REAL NOT NULL, stored INTEGER NOT NULL
);
CREATE INDEX clusters_by_age ON clusters (stored);
CREATE TABLE labels (
    label_seq INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, target_kind TEXT NOT NULL,
    target TEXT NOT NULL, label TEXT NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL, from_tick INTEGER, covered INTEGER,
    linker_event TEXT, status TEXT NOT NULL DEFAULT 'pending', reason TEXT NOT NULL DEFAULT '',
    undone_by INTEGER REFERENCES labels (label_seq) ON DELETE SET NULL
);
CREATE INDEX labels_by_undo ON labels (undone_by);
CREATE TABLE suppressions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL,
    address TEXT NOT NULL, source TEXT NOT NULL, destination TEXT NOT NULL, port INTEGER, cluster INTEGER,
    label TEXT NOT NULL, attribute TEXT NOT NULL, until INTEGER NOT NULL, from_tick INTEGER, removed_at INTEGER,
    removed_by TEXT NOT NULL DEFAULT '', removed_why TEXT NOT NULL DEFAULT '', removed_tick INTEGER,
    hidden INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, topic TEXT NOT NULL, what TEXT NOT NULL,
    by TEXT NOT NULL, why TEXT NOT NULL, result TEXT NOT NULL, facts TEXT NOT NULL, key TEXT UNIQUE
);
CREATE INDEX audit_by_age ON audit (created);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

SECOND = """
CREATE TABLE samples (time INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE nodes (
    tick INTEGER PRIMARY KEY, time INTEGER NOT NULL, record TEXT NOT NULL, verdict TEXT NOT NULL, label TEXT NOT NULL,
    score REAL, cluster INTEGER NOT NULL, via TEXT NOT NULL, link INTEGER NOT NULL, hops INTEGER NOT NULL,
    "values" TEXT NOT NULL
);
CREATE INDEX nodes_by_time ON nodes (time, verdict);
CREATE INDEX nodes_of_cluster ON nodes (cluster, tick);
CREATE TABLE paths (alert TEXT PRIMARY KEY, stored INTEGER NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX paths_by_age ON paths (stored);
CREATE INDEX alerts_by_beginning ON alerts (first_seen);
CREATE INDEX labels_by_target ON labels (target_kind, target);
ALTER TABLE labels ADD COLUMN effect TEXT;
"""
"""What the console shows of the past: minutes, kept records of the link forest, paths of alerts."""

MIGRATIONS: tuple[str, ...] = (FIRST, SECOND)
"""Step k makes version k + 1 of version k. Never edit one that was released: add another."""

VERSION = len(MIGRATIONS)


class StoreError(InputError):
    """The store cannot be read or written now: locked, a full disk, no right to write."""


class StoreFullError(StoreError):
    """No room: the disk is full, or the store is as large as it may be."""


class StoreCorruptError(StoreError):
    """The file is damaged, or no store at all; the message says what to do."""


@contextlib.contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if _code(error) == sqlite3.SQLITE_FULL:
            raise StoreFullError(f"{path}: {error}: free some space, or allow the store more (max_bytes)") from None
        raise StoreError(f"{path}: {error}: {_advice(error)}") from None
    except sqlite3.DatabaseError as error:
        if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreCorruptError(
                f"{path}: {error}: the store is damaged; move it away (with -wal and -shm), a new one is made"
            ) from None
        raise


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what extends it


def _advice(error: sqlite3.OperationalError) -> str:
    return {
        sqlite3.SQLITE_BUSY: "another process keeps it locked; try again",
        sqlite3.SQLITE_LOCKED: "another thread keeps it locked; try again",
        sqlite3.SQLITE_READONLY: "no right to write; use the daemon's user, or sudo",
        sqlite3.SQLITE_CANTOPEN: "use the daemon's user, or sudo; --state-dir DIR if it is elsewhere",
        sqlite3.SQLITE_IOERR: "look at the disk",
    }.get(_code(error), "look at the file, its folder and the disk")


def connect_store(path: Path, *, max_bytes: int, read_only: bool) -> sqlite3.Connection:
    """Open a connection that any one thread at a time may use; transactions are begun by hand."""
    uri = path.absolute().as_uri() + ("?mode=ro" if read_only else "?mode=rw")
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA trusted_schema = OFF")  # a file from elsewhere calls nothing
        if read_only:
            db.execute("PRAGMA query_only = ON")
        else:
            if db.execute("PRAGMA page_count").fetchone()[0] == 0:  # later it would change nothing, and want the lock
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")  # a label that was answered for is on the disk
            db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
            db.execute(f"PRAGMA max_page_count = {max(64, max_bytes // store_page_bytes(db))}")
    except BaseException:
        db.close()
        raise
    return db


def store_page_bytes(db: sqlite3.Connection) -> int:
    """Return the size of a page."""
    return int(db.execute("PRAGMA page_size").fetchone()[0])


def make_store_file(path: Path) -> None:
    """Make an empty file that only its owner may read, before SQLite makes one that all may."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is no file: move it away, or choose another state folder")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InputError(f"{path}: cannot be made: {error.strerror}: choose another state folder") from None


def need_store_file(path: Path) -> None:
    """Say what to do where there is no store, or no right to see it."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: there is no store: has the daemon run? --state-dir DIR looks elsewhere")
    except PermissionError:
        raise InputError(f"{path}: no right to look: use the daemon's user, or sudo") from None


def prepare_store(db: sqlite3.Connection, path: Path, *, read_only: bool) -> None:
    """Check whose file it is and its version; bring it forward. Two that start at once do it once."""
    version = _version(db, path)
    if version == VERSION:
        return
    if read_only:
        what = "is empty" if version == 0 else f"has version {version}, older than {VERSION}"
        raise InputError(f"{path}: {what}: start the daemon once, which brings it forward")
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[_version(db, path) :]:  # another process may have been first
            for statement in step.split(";\n"):
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection, path: Path) -> int:
    version, application = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("user_version", "application_id")
    )
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (version or tables):
        raise StoreCorruptError(f"{path}: a database of another program: move it away, or choose another state folder")
    if not 0 <= version <= VERSION:
        raise InputError(
            f"{path}: the store has version {version}, this program knows up to {VERSION}: "
            "install the newer netclust that wrote it, or choose another state folder"
        )
    return version


def move_aside(path: Path) -> Path:
    """Rename a damaged store, with its log, so that a new one can be made; where it went."""
    number = 0
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for ending in ("-wal", "-shm", ""):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{ending}", f"{aside}{ending}")
    return aside
