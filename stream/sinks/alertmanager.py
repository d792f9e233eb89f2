"""Alerts to the v2 API of Prometheus Alertmanager, told again while they are open.

An alert is known by its labels there. They are taken when it opens and stay; only `severity`, by which people route,
may rise: then the alert is resolved under its old severity in the same request. Notices are not sent: the metrics and
the rules that come with them tell the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from netclust.stream.alerts.alert_events import Alert, AlertEvent, Event
from netclust.stream.sinks.base import Facts
from netclust.stream.sinks.ecs import ecs_endpoints, ecs_text, ecs_time
from netclust.stream.sinks.http_post import HttpPost

PATH = "/api/v2/alerts"
MAX_VALUE = 1024
_A_POST = 64


class Posted(msgspec.Struct):
    """An alert as it was posted last."""

    labels: dict[str, str]
    annotations: dict[str, str]
    start: str


class Alertmanager:
    """Posts alerts; `tick`, called about once a second, tells the open ones again every `resend_seconds`.

    `forgotten` counts open alerts beyond `max_open`: they are not told again, and end there after a while.
    """

    cuts_back = False
    batch_events = _A_POST

    def __init__(
        self,
        name: str,
        url: str,
        *,
        observer: str = "",
        headers: Mapping[str, str] | None = None,
        token_file: str = "",
        ca_file: str = "",
        timeout: float = 5.0,
        resend_seconds: float = 60.0,
        max_open: int = 4096,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        whole = url if url.rstrip("/").endswith(PATH) else url.rstrip("/") + PATH
        self._http = HttpPost(whole, headers=headers, token_file=token_file, ca_file=ca_file, timeout=timeout)
        self._observer = observer
        self._resend = resend_seconds
        self._max_open = max_open
        self._clock = clock
        self._open: dict[str, Posted] = {}
        self._told_at = 0.0
        self.forgotten = 0

    def open(self, facts: Facts | None) -> None:
        """Go on with the alerts that were open at the checkpoint; they are told at the next tick."""
        self._http.check()
        try:
            self._open = msgspec.convert((facts or {}).get("open", {}), dict[str, Posted])
        except msgspec.ValidationError:
            self._open = {}
        self._told_at = 0.0

    def write(self, events: Sequence[Event]) -> None:
        """Post what opened, grew or was closed; what changed last, if an alert is there more than once."""
        now = self._clock()
        still = dict(self._open)
        bodies: list[dict[str, Any]] = []
        for event in events:
            if not isinstance(event, AlertEvent):
                continue
            before = still.get(event.alert.id)
            after = self._posted(event.alert, before, now)
            if before is not None and before.labels != after.labels:
                bodies.append(_body(before, now, now))
            if event.action == "close":
                still.pop(event.alert.id, None)
                bodies.append(_body(after, now, now))
            else:
                still[event.alert.id] = after
                bodies.append(_body(after, now, self._until(now)))
        self._post(_last_of_each(bodies))
        self._open = still
        while len(self._open) > self._max_open:
            del self._open[next(iter(self._open))]
            self.forgotten += 1

    def tick(self) -> None:
        """Tell the open alerts again, if it is time."""
        now = self._clock()
        if self._open and not 0 <= now - self._told_at < self._resend:
            self._post([_body(posted, now, self._until(now)) for posted in self._open.values()])
            self._told_at = now

    def sync(self) -> Facts:
        """The open alerts."""
        return {"open": msgspec.to_builtins(self._open)} if self._open else {}

    def reopen(self) -> None:
        """Connect anew."""
        self._http.close()

    def close(self) -> None:
        """Hang up; what is open stays so until its end passes."""
        self._http.close()

    def _until(self, now: float) -> float:
        """When an alert ends that is not told again: after three misses, as Prometheus does it."""
        return now + 4 * self._resend

    def _posted(self, alert: Alert, before: Posted | None, now: float) -> Posted:
        identity = {
            "alertname": "NetclustAlert",
            "id": alert.id,
            "kind": alert.kind,
            "label": alert.label,
            "entity": alert.entity,
            "entity_kind": alert.entity_kind,
            "source": alert.source,
            "observer": self._observer,
        }
        labels = {name: _short(value) for name, value in identity.items() if value} if before is None else before.labels
        start = before.start if before is not None else _wall(min(alert.first_seen / 1e9, now), now)
        return Posted({**labels, "severity": alert.severity}, _annotations(alert), start)

    def _post(self, bodies: list[dict[str, Any]]) -> None:
        for i in range(0, len(bodies), _A_POST):
            self._http.post(msgspec.json.encode(bodies[i : i + _A_POST], order="deterministic"))


def _body(posted: Posted, now: float, end: float) -> dict[str, Any]:
    return {
        "labels": posted.labels,
        "annotations": posted.annotations,
        "startsAt": posted.start,
        "endsAt": _wall(end, now),
    }


def _last_of_each(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One body for each set of labels, the last one."""
    return list({tuple(sorted(body["labels"].items())): body for body in bodies}.values())


def _annotations(alert: Alert) -> dict[str, str]:
    source, destination = ecs_endpoints(alert)
    told = {
        "summary": alert.summary,
        "description": alert.explanation,
        "records": str(alert.records),
        "source": source,
        "destination": destination,
        "first_seen": ecs_time(alert.first_seen) or "",
        "last_seen": ecs_time(alert.last_seen) or "",
    }
    return {name: _short(value) for name, value in told.items() if value}


def _short(value: str) -> str:
    return ecs_text(value[:MAX_VALUE])


def _wall(seconds: float, now: float) -> str:
    """A time of this machine's clock, by which Alertmanager lives; now if it is unknown."""
    return ecs_time(int((seconds if seconds >= 0 else now) * 1e6) * 1000) or ""
