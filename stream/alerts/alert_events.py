"""What the daemon tells the world: alerts as they open, grow and close, and notices about itself.

>>> alert = Alert(id="a-0123456789ab", kind="novel", label="novel", entity="10.0.0.7", entity_kind="source")
>>> AlertEvent(action="open", alert=alert).key
'a-0123456789ab:0'
"""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Alert", "AlertEvent", "AttributeNote", "Count", "Event", "Notice", "Severity"]

Severity = Literal["low", "medium", "high", "critical"]
Kind = Literal["novel", "known_attack"]
EntityKind = Literal["source", "destination", "cluster"]
Action = Literal["open", "update", "close"]
ClosedBy = Literal["", "quiet", "stopped", "label", "limit"]


class Count(msgspec.Struct, frozen=True):
    """A value and how many of the alert's records have it."""

    value: str
    records: int


class AttributeNote(msgspec.Struct, frozen=True, kw_only=True):
    """What an attribute adds to the margin: its value here, and in the nearest normal record."""

    name: str
    contribution: float
    value: float | str | None
    normal: float | str | None


class Alert(msgspec.Struct, kw_only=True):
    """What one entity does that is not normal, in one episode. Times are nanoseconds since the epoch, -1 if unknown.

    Lists are bounded: the most frequent values first; `*_count` says how many different ones there were, as far as
    they were counted. `label` is what most of its records are taken for, and `kind` follows from it. `update` counts
    what was told of it. `example` is one record: its attributes and its context; `examples` are more of them, without
    what is zero or empty. `parts` add up to the `margin` of the example over `normal_record`, the nearest normal one.
    """

    id: str
    kind: Kind
    label: str
    entity: str
    entity_kind: EntityKind
    labels: list[Count] = msgspec.field(default_factory=list)
    state: Literal["open", "closed"] = "open"
    closed_by: ClosedBy = ""
    update: int = 0
    severity: Severity = "low"
    severity_score: int = 0  # 0 to 100
    source: str = ""  # the name of the source of its first record
    clusters: list[int] = msgspec.field(default_factory=list)
    records: int = 0
    first_seen: int = -1
    last_seen: int = -1
    first_record: str = ""  # source:seq
    last_record: str = ""
    record_ids: list[str] = msgspec.field(default_factory=list)
    sources: list[Count] = msgspec.field(default_factory=list)
    source_count: int = 0
    destinations: list[Count] = msgspec.field(default_factory=list)
    destination_count: int = 0
    ports: list[Count] = msgspec.field(default_factory=list)
    port_count: int = 0
    protocol: str = ""
    service: str = ""
    top_score: float = 0.0
    attributes: list[AttributeNote] = msgspec.field(default_factory=list)
    example: dict[str, float | str | None] = msgspec.field(default_factory=dict)
    examples: list[dict[str, float | str | None]] = msgspec.field(default_factory=list)
    parts: list[AttributeNote] = msgspec.field(default_factory=list)
    margin: float | None = None
    normal_record: str = ""
    explanation: str = ""
    summary: str = ""  # one line for people


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True, tag="alert", tag_field="type"):
    """An alert was opened, has grown, or was closed. `key` is the same when it is told again after a restart."""

    action: Action
    alert: Alert

    @property
    def key(self) -> str:
        """An idempotency key."""
        return f"{self.alert.id}:{self.alert.update}"


class Notice(msgspec.Struct, frozen=True, kw_only=True, tag="notice", tag_field="type"):
    """Something about the daemon that people should know: drift, the end of the warm-up, feedback, a reload."""

    topic: Literal["drift", "warmup", "feedback", "reload", "model", "loss"]
    time: int  # nanoseconds since the epoch; traffic time where there is one
    key: str
    message: str
    facts: dict[str, float | int | str | None] = msgspec.field(default_factory=dict)


Event = AlertEvent | Notice
