"""The SQLite store of alerts, clusters, labels, suppressions and decisions: what the daemon tells and is told.

The daemon writes alerts while commands write labels; threads and processes may use it at once. It is bounded by age and
by size. Only its owner may read the file. What is kept of traffic: see `netclust.stream.store.store_rows`.

>>> import tempfile
>>> from netclust.stream.alerts.alert_events import Alert, AlertEvent
>>> folder = tempfile.TemporaryDirectory()
>>> store = Store(folder.name + "/netclust.db")
>>> alert = Alert(id="a-0123456789ab", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source")
>>> store.save_events([AlertEvent(action="open", alert=alert)])
1
>>> row = store.add_label("a-0123", "attack:scan", by="eve", why="seen before")
>>> row.label_seq, row.target, row.status
(1, 'a-0123456789ab', 'pending')
>>> store.close(); folder.cleanup()
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from netclust.stream.alerts.alert_events import Alert, AlertEvent, Event, Severity
from netclust.stream.store import store_audit, store_feedback, store_pruning, store_schema
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store_rows import (
    SEVERITIES,
    AuditRow,
    ClusterRow,
    LabelRow,
    LabelStatus,
    Redaction,
    SuppressionRow,
    finite,
)
from netclust.stream.store.store_schema import StoreCorruptError, StoreError, StoreFullError, move_aside

__all__ = ["MAX_ROWS", "Store", "StoreCorruptError", "StoreError", "StoreFullError", "move_aside"]

MAX_ROWS = 100_000
"""At most so many rows are given at a time."""

MAX_IDLE = 4  # connections that are kept open
MAX_CLUSTERS_OF_ALERT = 1000
SEEN_SECONDS = 30.0
"""A daemon that has not shown itself for this long is taken for gone."""


class Cluster(Protocol):
    """What is kept of a cluster (see netclust.linking.clusters.ClusterSummary)."""

    @property
    def id(self) -> int: ...
    @property
    def label(self) -> str: ...
    @property
    def records(self) -> int: ...
    @property
    def anomalous(self) -> int: ...
    @property
    def first_time(self) -> int: ...
    @property
    def last_time(self) -> int: ...
    @property
    def top_score(self) -> float: ...


class Store:
    """Opened for writing, it is made if there is none; `create` False or `read_only`: there must be one.

    Raises StoreCorruptError for a damaged file, StoreError for what may work later, InputError for what people got
    wrong. `dropped` counts the rows that its bounds cost, by table.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_days: float = 90.0,
        max_bytes: int = 1 << 30,
        read_only: bool = False,
        create: bool = True,
        redact: Redaction | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = Path(path)
        self.max_days = max_days
        self.max_bytes = max_bytes
        self.read_only = read_only
        self.redact = redact
        self.clock = clock
        self.dropped: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        if create and not read_only:
            store_schema.make_store_file(self.path)
        else:
            store_schema.need_store_file(self.path)
        self._watch_lock = threading.Lock()
        self._watch = self._open()

    def _open(self) -> sqlite3.Connection:
        """A connection to a store of our version; those who make it at the same time wait for each other."""
        deadline = time.monotonic() + store_schema.BUSY_SECONDS
        while True:
            try:
                with store_schema.translated_errors(self.path):
                    db = store_schema.connect_store(self.path, max_bytes=self.max_bytes, read_only=self.read_only)
                    try:
                        store_schema.prepare_store(db, self.path, read_only=self.read_only)
                    except BaseException:
                        db.close()
                        raise
                    return db
            except (StoreCorruptError, StoreFullError):
                raise
            except StoreError as error:
                # SQLite does not wait where the kind of the log is changed.
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection, for this thread for a while; for modules that keep tables of their own in the store."""
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.path}: the store was closed")
            db = self._idle.pop() if self._idle else None
        db = self._open() if db is None else db
        try:
            with store_schema.translated_errors(self.path):
                yield db
        finally:
            with self._lock:
                keep = not self._closed and len(self._idle) < MAX_IDLE and not db.in_transaction
                if keep:
                    self._idle.append(db)
            if not keep:
                db.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it, or nothing."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # SQLite may have rolled back by itself
                    db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        with self._watch_lock:
            self._watch.close()
        for db in idle:
            db.close()

    def __enter__(self) -> Store:
        """The store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def check(self) -> None:
        """Read all of the file; StoreCorruptError if it is damaged. Takes seconds a gigabyte."""
        with self.reading() as db:
            found = [row[0] for row in db.execute("PRAGMA quick_check(3)")]
        if found != ["ok"]:
            raise StoreCorruptError(f"{self.path}: damaged: {'; '.join(found)[:200]}: move it away, a new one is made")

    def data_version(self) -> int:
        """A number that changes when anybody, this process or another, has written anything. Cheap: ask every batch."""
        with self._watch_lock, store_schema.translated_errors(self.path):
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def prune(self, now: int | None = None, *, fill: float = 0.9) -> Counter[str]:
        """Keep the bounds: rows that went, by table, noted in the record of decisions. `fill`: at most this share."""
        at = self.clock() if now is None else now
        gone = store_pruning.prune(self.writing, self.reading, at, self.max_days, self.max_bytes, fill)
        if gone:
            self.dropped.update(gone)
            with contextlib.suppress(StoreFullError), self.writing() as db:
                store_audit.add_audit(db, at, "prune", "drop what is too old or too much", by="store", facts=dict(gone))
        return gone

    def bytes(self) -> int:
        """What rows take."""
        return store_pruning.used_bytes(self.reading)

    # What the daemon tells

    def rows(self) -> int:
        """How many alerts are kept."""
        with self.reading() as db:
            return int(db.execute("SELECT count(*) FROM alerts").fetchone()[0])

    def save_events(self, events: Sequence[Event]) -> int:
        """Keep alerts (never an older update over a newer one) and notices; how many rows changed."""
        now = self.clock()
        with self.writing() as db:
            return sum(
                _save_alert(db, self._as_kept(e.alert), now)
                if isinstance(e, AlertEvent)
                else store_audit.add_audit(
                    db, now, e.topic, e.message, by="daemon", facts={**e.facts, "time": e.time}, key=f"notice:{e.key}"
                )
                for e in events
            )

    def _as_kept(self, alert: Alert) -> Alert:
        return finite(alert if self.redact is None else self.redact(alert))

    def alerts(
        self,
        state: Literal["open", "closed"] | None = None,
        since: int | None = None,
        severity: Severity | None = None,
        text: str | None = None,
        limit: int = 100,
    ) -> list[Alert]:
        """Alerts, the last seen first. `since`: seen or told since then; `severity`: at least; `text`: contained in
        id, entity, label or summary.
        """
        wanted: list[tuple[str, tuple[Any, ...]]] = []
        if state is not None:
            wanted.append(("state = ?", (state,)))
        if since is not None:
            wanted.append(("(last_seen >= ? OR stored >= ?)", (since, since)))
        if severity is not None:
            wanted.append(("severity >= ?", (SEVERITIES.index(severity),)))
        if text:
            told = (
                "instr(lower(id || ' ' || entity || ' ' || label || ' ' || json_extract(body, '$.summary')), lower(?))"
            )
            wanted.append((told, (text,)))
        where = " AND ".join(sql for sql, _ in wanted) or "1"
        values = [value for _, given in wanted for value in given]
        sql = f"SELECT body FROM alerts WHERE {where} ORDER BY last_seen DESC, stored DESC, id DESC LIMIT ?"  # noqa: S608
        with self.reading() as db:
            return [_alert(body) for (body,) in db.execute(sql, (*values, _bounded(limit)))]

    def alert(self, ident: str) -> Alert:
        """One alert, by its id or the beginning of it."""
        with self.reading() as db:
            full = store_feedback.full_alert_id(db, ident)
            return _alert(db.execute("SELECT body FROM alerts WHERE id = ?", (full,)).fetchone()[0])

    def close_orphans(self, keep: Collection[str]) -> int:
        """Close the open alerts that a daemon which started anew knows nothing of: all but those to keep."""
        with self.writing() as db:
            found = [_alert(body) for (body,) in db.execute("SELECT body FROM alerts WHERE state = 'open'")]
            orphans = [a for a in found if a.id not in keep]
            for alert in orphans:
                closed = msgspec.structs.replace(alert, state="closed", closed_by="stopped")
                db.execute("UPDATE alerts SET state = 'closed', body = ? WHERE id = ?", (_body(closed), alert.id))
            return len(orphans)

    def save_clusters(self, clusters: Iterable[Cluster]) -> int:
        """Keep clusters as they are now; how many were new or had changed."""
        now = self.clock()
        rows = ((c.id, c.label, c.records, c.anomalous, c.first_time, c.last_time, c.top_score, now) for c in clusters)
        with self.writing() as db:
            return db.executemany(
                "INSERT INTO clusters VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (ident) DO UPDATE SET "
                "label = excluded.label, records = excluded.records, anomalous = excluded.anomalous, "
                "first_time = excluded.first_time, last_time = excluded.last_time, top_score = excluded.top_score, "
                "stored = excluded.stored WHERE (label, records, anomalous, first_time) "
                "<> (excluded.label, excluded.records, excluded.anomalous, excluded.first_time)",
                rows,
            ).rowcount

    def newest_cluster(self) -> int:
        """The highest number of a cluster that an alert or a summary names; -1 if there is none."""
        with self.reading() as db:
            query = "SELECT max(coalesce((SELECT max(cluster) FROM alert_clusters), -1), coalesce(max(ident), -1))"
            return int(db.execute(f"{query} FROM clusters").fetchone()[0])

    def clusters(self, limit: int = 100, *, anomalous_only: bool = False) -> list[ClusterRow]:
        """Clusters, those with most anomalous records first."""
        names = ", ".join(name for name in ClusterRow.__struct_fields__ if name != "alerts")
        rest = (
            f"FROM (SELECT {names}, (SELECT count(*) FROM alert_clusters WHERE cluster = ident) AS alerts "  # noqa: S608
            "FROM clusters WHERE anomalous > 0 OR ? ORDER BY anomalous DESC, records DESC, ident LIMIT ?)"
        )
        with self.reading() as db:
            return store_audit.fetch_audit(db, ClusterRow, rest, (not anomalous_only, _bounded(limit)))

    # What people say

    def add_label(self, target: str, label: str, by: str, why: str = "") -> LabelRow:
        """`normal` or `attack:NAME` for an alert, a cluster or a record."""
        say = store_feedback.attribution(by, why, self.clock())
        with self.writing() as db:
            return store_feedback.add_label(db, target, label, say)

    def add_undo(self, label_seq: int, by: str, why: str = "") -> LabelRow:
        """Take a label back."""
        say = store_feedback.attribution(by, why, self.clock())
        with self.writing() as db:
            return store_feedback.add_undo(db, _number(label_seq), say)

    def labels(
        self, after: int = 0, limit: int = 1000, *, newest: bool = False, status: LabelStatus | None = None
    ) -> list[LabelRow]:
        """Labels with a larger number, in the order in which they were said; or the newest first."""
        with self.reading() as db:
            return store_feedback.feedback_labels(db, _number(after), _bounded(limit), newest=newest, status=status)

    def label_result(
        self,
        label_seq: int,
        *,
        status: LabelStatus,
        reason: str = "",
        from_tick: int | None = None,
        covered: int | None = None,
        linker_event: Any = None,
        effect: Any = None,
    ) -> LabelRow:
        """What came of a label. The first `from_tick` stays: the row says which one is in force."""
        with self.writing() as db:
            return store_feedback.label_result(
                db, label_seq, status=status, reason=reason, from_tick=from_tick, covered=covered,
                linker_event=linker_event, effect=effect, now=self.clock(),
            )  # fmt: skip

    def label(self, label_seq: int) -> LabelRow:
        """One label."""
        with self.reading() as db:
            return store_feedback.label(db, _number(label_seq))

    def add_suppression(self, rule: SuppressionRule, *, reason: str, by: str, until: int = -1) -> SuppressionRow:
        """Hide alerts that match, until a time in nanoseconds (-1: for good)."""
        say = store_feedback.attribution(by, reason, self.clock(), needs_why="the reason of the suppression")
        checked = store_feedback.checked_rule(rule, say.why)
        with self.writing() as db:
            return store_feedback.add_suppression(db, checked, until, say)

    def remove_suppression(self, ident: str, by: str, why: str = "") -> SuppressionRow:
        """Let them be told again."""
        say = store_feedback.attribution(by, why, self.clock())
        with self.writing() as db:
            return store_feedback.remove_suppression(db, ident, say)

    def suppressions(
        self, active_only: bool = True, now: int | None = None, limit: int = MAX_ROWS
    ) -> list[SuppressionRow]:
        """The rules, oldest first."""
        at = self.clock() if now is None else now
        with self.reading() as db:
            return store_feedback.suppressions(db, at, active_only=active_only, limit=_bounded(limit))

    def suppression_result(self, ident: str, from_tick: int) -> SuppressionRow:
        """From which arrival number a rule, or its removal, counts. The first one stays."""
        with self.writing() as db:
            return store_feedback.suppression_result(db, ident, from_tick)

    def add_hidden(self, ident: str, count: int) -> None:
        """Count alerts that a rule has hidden."""
        with self.writing() as db:
            store_feedback.add_hidden(db, ident, count)

    # What is known of both

    def add_audit(
        self, topic: str, what: str, *, by: str = "", why: str = "", result: str = "", facts: Any = None
    ) -> None:
        """Add to the record of decisions."""
        with self.writing() as db:
            store_audit.add_audit(db, self.clock(), topic, what, by=by, why=why, result=result, facts=facts)

    def audit(self, limit: int = 100) -> list[AuditRow]:
        """The last decisions and notices, newest first."""
        with self.reading() as db:
            return store_audit.latest_audit(db, _bounded(limit))

    def set_meta(self, key: str, value: Any) -> None:
        """Keep a fact, as JSON."""
        with self.writing() as db:
            text = msgspec.json.encode(value).decode()
            db.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, text)
            )

    def meta(self, key: str) -> Any:
        """A fact, None if there is none."""
        with self.reading() as db:
            found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else msgspec.json.decode(found[0])

    def heartbeat(self, facts: dict[str, Any] | None = None, *, running: bool = True) -> None:
        """The daemon shows that it runs (every 10 seconds will do), or says that it stops."""
        self.set_meta("daemon", {**(facts or {}), "running": running, "time": self.clock()})

    def daemon(self) -> dict[str, Any] | None:
        """What the daemon last said of itself, if it seems to run."""
        said = self.meta("daemon")
        if not isinstance(said, dict) or not said.get("running"):
            return None
        return said if abs(self.clock() - int(said.get("time", 0))) <= SEEN_SECONDS * 1e9 else None


def _save_alert(db: sqlite3.Connection, alert: Alert, now: int) -> bool:
    row = (
        alert.id, alert.update, alert.state, SEVERITIES.index(alert.severity), alert.kind, alert.label, alert.entity,
        alert.first_seen, alert.last_seen, alert.records, now, _body(alert),
    )  # fmt: skip
    changed = db.execute(
        "INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        '"update" = excluded."update", state = excluded.state, severity = excluded.severity, kind = excluded.kind, '
        "label = excluded.label, entity = excluded.entity, first_seen = excluded.first_seen, "
        "last_seen = excluded.last_seen, records = excluded.records, stored = excluded.stored, body = excluded.body "
        'WHERE excluded."update" > alerts."update"',
        row,
    ).rowcount
    if changed:
        db.execute("DELETE FROM alert_clusters WHERE alert = ?", (alert.id,))
        named = [(alert.id, cluster) for cluster in alert.clusters[:MAX_CLUSTERS_OF_ALERT]]
        db.executemany("INSERT OR IGNORE INTO alert_clusters VALUES (?, ?)", named)
    return changed > 0


def _body(alert: Alert) -> str:
    return msgspec.json.encode(alert).decode()


def _alert(body: str) -> Alert:
    return msgspec.json.decode(body, type=Alert)


def _bounded(limit: int) -> int:
    return max(0, min(limit, MAX_ROWS))


def _number(value: int) -> int:
    """A number that SQLite can hold; what is beyond, no row has."""
    return max(-1, min(value, (1 << 63) - 1))
