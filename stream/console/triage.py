"""Alerts as a list to be worked off: which are answered or muted, and how much one answer would settle.

An answer labels the clusters of an alert; it settles every other alert that is about nothing else. What is to be
answered comes in the order of how much one answer settles: alerts, then severity, then records.

>>> one, two, both = (_Row(id=i, clusters=c, records=1) for i, c in (("a-1", [7]), ("a-2", [8]), ("a-3", [7, 8])))
>>> [(row.id, settled.alerts) for row, settled in _ranked([one, two, both], classes=5)]
[('a-3', 3), ('a-1', 1), ('a-2', 1)]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Alert, ClosedBy, EntityKind, Kind, Severity
from netclust.stream.alerts.alert_severity import severity_rank_of
from netclust.stream.alerts.suppression import SuppressionSet, suppression_of
from netclust.stream.store.store import Store
from netclust.stream.store.store_feedback import labels_about, labels_of
from netclust.stream.store.store_rows import LabelRow

__all__ = ["Answered", "Brief", "Resolution", "Triage"]

MOST = 1000
"""So many of the newest alerts are looked at for what is to be answered."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said of an alert, or of the clusters that it is about."""

    label_seq: int
    label: str
    by: str
    status: str


class Brief(msgspec.Struct, kw_only=True):
    """An alert in a line. `muted_by` is the rule that hides records like its example."""

    id: str
    kind: Kind = "novel"
    label: str = ""
    severity: Severity = "low"
    severity_score: int = 0
    state: str = "open"
    closed_by: ClosedBy = ""
    entity: str = ""
    entity_kind: EntityKind = "source"
    summary: str = ""
    records: int = 0
    first_seen: int = -1
    last_seen: int = -1
    update: int = 0
    clusters: list[int] = msgspec.field(default_factory=list)
    answer: Answered | None = None
    muted_by: str = ""

    @classmethod
    def of(cls, alert: Alert) -> Self:
        """An alert in a line, before it is known what people said of it."""
        names = [name for name in cls.__struct_fields__ if name not in ("answer", "muted_by")]
        return cls(**{name: getattr(alert, name) for name in names})


class _Row(Brief, kw_only=True):
    """An alert as the store has it, without what no list shows."""

    example: dict[str, Any] = msgspec.field(default_factory=dict)

    def brief(self) -> Brief:
        return Brief(**{name: getattr(self, name) for name in Brief.__struct_fields__})


class Resolution(NamedTuple):
    """The alerts and records that one answer resolves."""

    alerts: int
    records: int


class Triage:
    """Reads alerts and what was decided about them. Every method may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def briefs(self, alerts: Sequence[Alert]) -> list[Brief]:
        """Alerts as lines."""
        return self._decided([_Row.of(alert) for alert in alerts])

    def found(self, idents: Sequence[str]) -> list[Brief]:
        """Those that there are of these alerts."""
        with self._store.reading() as db:
            sql = f"SELECT body FROM alerts WHERE id IN ({', '.join('?' * len(idents))})"  # noqa: S608
            return self._decided([_row(body) for (body,) in db.execute(sql, tuple(idents))])

    def of_cluster(self, cluster: int, limit: int) -> list[Brief]:
        """Alerts that are about a cluster, the last seen first."""
        with self._store.reading() as db:
            sql = (
                "SELECT body FROM alerts JOIN alert_clusters ON alert = id WHERE cluster = ? "
                "ORDER BY last_seen DESC, stored DESC, id DESC LIMIT ?"
            )
            return self._decided([_row(body) for (body,) in db.execute(sql, (cluster, limit))])

    def labels(self, kind: str, target: str) -> list[LabelRow]:
        """All that was said of an alert or a cluster, newest first."""
        with self._store.reading() as db:
            return labels_about(db, kind, target)

    def backlog(self, classes: int) -> list[tuple[Brief, Resolution]]:
        """What is neither answered nor muted, what settles most first. The first `classes` clusters are the model's."""
        with self._store.reading() as db:
            sql = "SELECT body FROM alerts ORDER BY stored DESC, id DESC LIMIT ?"
            rows = [_row(body) for (body,) in db.execute(sql, (MOST,))]
        self._decided(rows)
        return [(row.brief(), settled) for row, settled in _ranked([r for r in rows if _waits(r)], classes)]

    def resolves(self, ident: str, classes: int) -> Resolution:
        """Return what an answer to this alert would resolve; nothing if it is answered."""
        return next((settled for brief, settled in self.backlog(classes) if brief.id == ident), Resolution(0, 0))

    def _decided(self, rows: list[_Row]) -> list[Brief]:
        """The same with what people said of them."""
        with self._store.reading() as db:
            said = labels_of(db, [row.id for row in rows], sorted({c for row in rows for c in row.clusters}))
        rules = self._rules()
        now = self._store.clock()
        for row in rows:
            row.answer = _answer(row, said)
            row.muted_by = _muted(row, rules, now)
        return [row.brief() for row in rows]

    def _rules(self) -> SuppressionSet:
        rules = []
        for row in self._store.suppressions():
            try:
                rules.append(suppression_of(row.config(), row.id, origin="people", rule_id=row.id))
            except InputError:  # of another release: the daemon does not use it either, and says so
                continue
        return SuppressionSet(rules)


def _row(body: str) -> _Row:
    return msgspec.json.decode(body, type=_Row)


def _waits(row: Brief) -> bool:
    return row.answer is None and not row.muted_by


def _answer(row: _Row, said: Mapping[tuple[str, str], LabelRow]) -> Answered | None:
    own = said.get(("alert", row.id))
    if own is None and row.clusters:  # all that it is about was answered by other ways
        each = [said.get(("cluster", str(cluster))) for cluster in row.clusters]
        own = None if None in each else each[0]
    if own is None:
        return None
    return Answered(label_seq=own.label_seq, label=own.label, by=own.by, status=own.status)


def _muted(row: _Row, rules: SuppressionSet, now: int) -> str:
    seen = row.example
    source, destination, port = (str(seen.get(name) or "") for name in ("source", "destination", "destination_port"))
    number = int(port) if port.isdecimal() and port.isascii() and len(port) < 6 else None
    words = {name: value for name, value in seen.items() if isinstance(value, str)}
    for cluster in row.clusters or [-1]:
        rule = rules.hidden(source, destination, number, cluster, row.label, lambda: words, now)
        if rule is None:
            return ""
    return rule.id if rule is not None else ""


def _ranked(rows: Sequence[_Row], classes: int) -> list[tuple[_Row, Resolution]]:
    """Return alerts with what an answer to each settles, most first."""
    about = {row.id: frozenset(row.clusters) for row in rows}
    sharing: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        for cluster in about[row.id]:
            sharing[cluster].append(row)
    found = []
    for row in rows:
        labelled = {cluster for cluster in about[row.id] if cluster >= classes}
        others = {other.id: other for cluster in labelled for other in sharing[cluster]}
        others = {ident: other for ident, other in others.items() if about[ident] <= labelled} | {row.id: row}
        found.append((row, Resolution(len(others), sum(other.records for other in others.values()))))
    return sorted(found, key=lambda f: (-f[1].alerts, -severity_rank_of(f[0].severity_score), -f[1].records, f[0].id))
