"""Alerts and clocks for tests of the store."""

from __future__ import annotations

from typing import Any, Literal

from netclust.stream.alerts.alert_events import Alert, AlertEvent, AttributeNote, Count

SECOND = 10**9
DAY = 86_400 * SECOND
START = 1_767_225_600 * SECOND  # 2026-01-01


class Clock:
    """A wall clock that tests turn."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def alert(ident: str = "a-0123456789ab", **changes: Any) -> Alert:
    given: dict[str, Any] = {
        "kind": "novel", "label": "novel", "entity": "10.0.0.7", "entity_kind": "source", "clusters": [41],
        "records": 3, "first_seen": START, "last_seen": START + SECOND, "severity": "medium", "severity_score": 50,
        "sources": [Count("10.0.0.7", 3)], "source_count": 1, "ports": [Count("22", 2)], "port_count": 9,
        "attributes": [AttributeNote(name="duration", contribution=1.25, value=9.0, normal=0.5)],
        "example": {"service": "ssh", "duration": 9.0, "source": "10.0.0.7", "name": "secret.example"},
        "explanation": "duration is 9, nearest normal 0.5", "summary": "10.0.0.7 does something new",
        "first_record": "live:5", "last_record": "live:9",
    }  # fmt: skip
    return Alert(id=ident, **{**given, **changes})


def told(
    ident: str = "a-0123456789ab", action: Literal["open", "update", "close"] = "open", **changes: Any
) -> AlertEvent:
    return AlertEvent(action=action, alert=alert(ident, **changes))
