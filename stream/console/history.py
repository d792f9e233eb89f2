"""What the store keeps for the console: records of the link forest, minutes of the overview, paths of alerts.

>>> import tempfile
>>> from netclust.stream.store.store import Store
>>> folder = tempfile.TemporaryDirectory()
>>> store = Store(folder.name + "/netclust.db")
>>> history = History(store)
>>> history.save_sample(60 * 10**9, {"records": 12.0})
>>> history.samples(since=0)
[(60000000000, {'records': 12.0})]
>>> store.close(); folder.cleanup()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from netclust.linking.verdicts import NORMAL, VERDICTS
from netclust.stream.console.forest import Node, Step
from netclust.stream.store.store import Store
from netclust.stream.store.store_audit import fetch_audit
from netclust.stream.store.store_rows import KEPT_CONTEXT, SEVERITIES, ClusterRow

__all__ = ["History"]

_NODE = ", ".join(f'"{name}"' for name in Node.__struct_fields__)
_CLUSTERS_AT_ONCE = 500


class History:
    """Tables of a store. Every method may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # Records of the link forest

    def save_nodes(self, nodes: Sequence[Node]) -> None:
        """Keep records. Of their values: addresses, ports, times and words of the schema; no names, no counts."""
        rows = [
            tuple(_kept(node) if name == "values" else getattr(node, name) for name in Node.__struct_fields__)
            for node in nodes
        ]
        marks = ", ".join("?" * len(Node.__struct_fields__))
        with self._store.writing() as db:
            db.executemany(f"INSERT OR REPLACE INTO nodes ({_NODE}) VALUES ({marks})", rows)  # noqa: S608

    def nodes(self, since: int, until: int, limit: int) -> list[Node]:
        """Kept records of a time, by arrival; where there are more, the anomalous ones and then the newest."""
        rest = "time >= ? AND time <= ? ORDER BY verdict = 'normal', time DESC LIMIT ?"
        return sorted(self._nodes(rest, (since, until, limit)), key=lambda node: node.tick)

    def newest(self, before: int, limit: int) -> list[Node]:
        """The last records before an arrival number, oldest first."""
        return self._nodes("tick < ? ORDER BY tick DESC LIMIT ?", (before, limit))[::-1]

    def of_cluster(self, cluster: int, limit: int) -> list[Node]:
        """Records of a cluster, newest first."""
        return self._nodes("cluster = ? ORDER BY tick DESC LIMIT ?", (cluster, limit))

    def node(self, tick: int) -> Node | None:
        """One record."""
        return next(iter(self._nodes("tick = ?", (tick,))), None)

    def _nodes(self, where: str, values: tuple[Any, ...]) -> list[Node]:
        with self._store.reading() as db:
            rows = db.execute(f"SELECT {_NODE} FROM nodes WHERE {where}", values).fetchall()  # noqa: S608
        names = Node.__struct_fields__
        made = (dict(zip(names, row, strict=True)) for row in rows)
        return [Node(**{**fields, "values": msgspec.json.decode(fields["values"])}) for fields in made]

    def extent(self, buckets: int) -> dict[str, Any]:
        """From when to when there are records, and how many in each part of that time."""
        with self._store.reading() as db:
            first, last, count = db.execute("SELECT min(time), max(time), count(*) FROM nodes").fetchone()
            begin, step = _steps(first, last, buckets)
            normal = VERDICTS[NORMAL]
            sql = "SELECT (time - ?) / ?, count(*), sum(verdict <> ?) FROM nodes GROUP BY 1"
            rows = db.execute(sql, (begin, step, normal)).fetchall() if count else []
        counts, anomalous = [0] * buckets, [0] * buckets
        for bucket, n, odd in rows:
            counts[min(bucket, buckets - 1)] += n
            anomalous[min(bucket, buckets - 1)] += odd
        return {
            "from": begin if count else -1, "to": last if count else -1, "step": step, "nodes": count,
            "counts": counts, "anomalous": anomalous,
        }  # fmt: skip

    # Clusters

    def clusters(self, idents: Sequence[int]) -> list[ClusterRow]:
        """Those that are known of the clusters asked for."""
        found: list[ClusterRow] = []
        names = ", ".join(name for name in ClusterRow.__struct_fields__ if name != "alerts")
        with self._store.reading() as db:
            for start in range(0, len(idents), _CLUSTERS_AT_ONCE):
                some = tuple(idents[start : start + _CLUSTERS_AT_ONCE])
                rest = (
                    f"FROM (SELECT {names}, (SELECT count(*) FROM alert_clusters WHERE cluster = ident) AS alerts "  # noqa: S608
                    f"FROM clusters WHERE ident IN ({', '.join('?' * len(some))}))"
                )
                found += fetch_audit(db, ClusterRow, rest, some)
        return found

    def entities(self, idents: Sequence[int]) -> dict[int, str]:
        """Whose the largest alert about each cluster is."""
        found: dict[int, str] = {}
        with self._store.reading() as db:
            for start in range(0, len(idents), _CLUSTERS_AT_ONCE):
                some = tuple(idents[start : start + _CLUSTERS_AT_ONCE])
                sql = (
                    "SELECT cluster, entity FROM alert_clusters JOIN alerts ON id = alert "  # noqa: S608
                    f"WHERE cluster IN ({', '.join('?' * len(some))}) ORDER BY records"
                )
                found |= dict(db.execute(sql, some).fetchall())
        return found

    # Minutes

    def save_sample(self, time: int, sample: Mapping[str, float]) -> None:
        """Keep the means of a minute."""
        with self._store.writing() as db:
            body = msgspec.json.encode(sample).decode()
            db.execute("INSERT OR REPLACE INTO samples VALUES (?, ?)", (time, body))

    def samples(self, since: int) -> list[tuple[int, dict[str, float]]]:
        """The minutes since then, oldest first."""
        with self._store.reading() as db:
            rows = db.execute("SELECT time, body FROM samples WHERE time >= ? ORDER BY time", (since,)).fetchall()
        return [(time, msgspec.json.decode(body)) for time, body in rows]

    # Paths of alerts

    def save_paths(self, paths: Mapping[str, Sequence[Step]]) -> None:
        """Keep the links from the newest record of each alert to the root."""
        now = self._store.clock()
        rows = [(alert, now, msgspec.json.encode(steps).decode()) for alert, steps in paths.items()]
        with self._store.writing() as db:
            db.executemany("INSERT OR REPLACE INTO paths VALUES (?, ?, ?)", rows)

    def path(self, alert: str) -> list[Step]:
        """The links that were kept of an alert."""
        with self._store.reading() as db:
            found = db.execute("SELECT body FROM paths WHERE alert = ?", (alert,)).fetchone()
        return [] if found is None else msgspec.json.decode(found[0], type=list[Step])

    # Alerts over time

    def timeline(self, since: int | None, until: int | None, buckets: int) -> dict[str, Any]:
        """How many alerts began in each part of a time, by severity; without ends: of all that are kept."""
        with self._store.reading() as db:
            sql = "SELECT min(first_seen), max(first_seen) FROM alerts WHERE first_seen >= 0"
            first, last = db.execute(sql).fetchone()
            begin, step = _steps(first if since is None else since, last if until is None else until, buckets)
            sql = (
                "SELECT (first_seen - ?1) / ?2, severity, count(*) FROM alerts "
                "WHERE first_seen >= ?1 AND first_seen < ?3 GROUP BY 1, 2"
            )
            rows = db.execute(sql, (begin, step, begin + buckets * step)).fetchall()
        counts = {severity: [0] * buckets for severity in SEVERITIES}
        for bucket, severity, n in rows:
            counts[SEVERITIES[severity]][bucket] += n
        return {"from": begin, "to": begin + buckets * step, "step": step, "counts": counts}


def _steps(first: int | None, last: int | None, buckets: int) -> tuple[int, int]:
    """Where the first of equal steps begins that cover a time, and how long each is."""
    begin, end = first or 0, last or 0
    return begin, max(1, -(-(end - begin + 1) // buckets))


def _kept(node: Node) -> str:
    return msgspec.json.encode(
        {name: v for name, v in node.values.items() if name in KEPT_CONTEXT or (isinstance(v, str) and name in _WORDS)}
    ).decode()


_WORDS = frozenset(("protocol", "protocol_type", "service", "flag", "state", "conn_state"))
"""Symbolic attributes of the schemas that say what a connection was."""
