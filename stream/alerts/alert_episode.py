"""What the alert book is given (the anomalous records of a batch) and what it keeps (an episode of one entity).

>>> episode = Episode(
...     id="a-0", kind="novel", label="novel", entity="10.0.0.9", entity_kind="source", source="", first_record="0:7"
... )
>>> alert_of(episode).summary
'new from 10.0.0.9: 0 records to 0 hosts'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.linking.explanation import ROOT_PART, Explanation, Part
from netclust.stream.alerts.alert_events import Alert, AttributeNote, ClosedBy, EntityKind, Kind
from netclust.stream.alerts.alert_severity import severity_name
from netclust.stream.alerts.alert_summary import RATE_LIMIT, counted, summary_of
from netclust.stream.alerts.alert_tallies import Tally

__all__ = [
    "HIGHEST",
    "NEVER",
    "AnomalousRows",
    "Episode",
    "alert_of",
    "note_example",
    "note_examples",
    "note_explanation",
    "texts",
]

NEVER = 1 << 62
"""A time that does not come."""
HIGHEST = 1e9
"""Scores are cut to this: without any normal referent a score is infinite, and JSON has no such number."""
SHOWN = 8
CLUSTERS_SHOWN = 16
RECORD_IDS = 16
NOTES = 5
PARTS = 10
REST_PART = "(rest)"
"""All contributions that are not among the PARTS strongest, as one."""
EXAMPLES = 8
LONGEST = 128
"""Characters of an address or a port that are kept: they come from outside."""
LONGEST_EXAMPLE = 256

Example = Mapping[str, float | str | None]


@dataclass(frozen=True, eq=False, kw_only=True)
class AnomalousRows:
    """The anomalous records of one batch, in order. A record's id is `source_id:seq`.

    `kind` is the verdict (KNOWN_ATTACK or NOVEL of netclust.linking.verdicts), `label` its name. `clock` is the traffic
    time at each record, counted over all records (TrafficClock); without it the book runs one over `time`. Context
    columns are None where the schema has none. The callables are asked rarely: at opening, and for rules on attributes.
    """

    source_id: NDArray[np.uint16]
    seq: NDArray[np.uint64]
    time: NDArray[np.int64]
    cluster: NDArray[np.int64]
    kind: NDArray[np.uint8]
    label: list[str]
    score: NDArray[np.float32]
    clock: NDArray[np.int64] | None = None
    source: NDArray[np.object_] | None = None
    destination: NDArray[np.object_] | None = None
    destination_port: NDArray[np.object_] | None = None
    protocol: NDArray[np.object_] | None = None
    service: NDArray[np.object_] | None = None
    explain: Callable[[int], Explanation | None] = lambda i: None
    example: Callable[[int], Example] = lambda i: {}
    attributes: Callable[[int], Mapping[str, str]] = lambda i: {}

    def __len__(self) -> int:
        """How many records."""
        return len(self.seq)


Role = Literal["single", "many", "overflow"]
Held = Literal["", "min_records", "severity", "cooldown", "rate_limit"]


class Episode(
    msgspec.Struct,
    kw_only=True,
    rename={
        "reported": "told",
        "reported_clock": "told_clock",
        "reported_label": "told_label",
        "reported_rank": "told_rank",
        "reported_records": "told_records",
    },
):
    """An alert in the making. Everything in it is bounded, and all of it goes into a checkpoint.

    `victim` is the only destination so far of a source. `held` is why it is not reported; records before `held_from`
    are counted already. The book looks at it when it has `look_at` records, at `look_clock`, or above `look_score`.
    """

    id: str
    kind: Kind
    label: str
    entity: str
    entity_kind: EntityKind
    source: str
    first_record: str
    role: Role = "single"
    group: str = ""  # of records without addresses: what they are taken for
    victim: str = ""
    records: int = 0
    first_seen: int = -1
    last_seen: int = -1
    activity: int = -1  # traffic time of the last record's arrival
    last_source: int = 0
    last_seq: int = 0
    record_ids: list[str] = msgspec.field(default_factory=list)
    sources: Tally = msgspec.field(default_factory=Tally)
    destinations: Tally = msgspec.field(default_factory=Tally)
    ports: Tally = msgspec.field(default_factory=Tally)
    clusters: Tally = msgspec.field(default_factory=Tally)
    labels: Tally = msgspec.field(default_factory=Tally)  # `label` is the most frequent when it was last looked at
    protocol: str = ""  # empty also if there were several
    service: str = ""
    top_score: float = 0.0
    severity_score: int = 0
    reported: bool = False
    update: int = 0
    reported_records: int = 0
    reported_clock: int = -1
    reported_rank: int = -1
    reported_label: str = ""
    held: Held = ""
    held_from: int = 0
    summed: int = 0  # of its records, those that the rate limit's alert has taken in
    alerts: int = 0  # of the rate limit's alert: how many it stands for
    look_at: int = 1
    look_clock: int = NEVER
    look_score: float = 2 * HIGHEST
    attributes: list[AttributeNote] = msgspec.field(default_factory=list)
    example: dict[str, float | str | None] = msgspec.field(default_factory=dict)
    examples: list[dict[str, float | str | None]] = msgspec.field(default_factory=list)
    parts: list[AttributeNote] = msgspec.field(default_factory=list)
    margin: float | None = None
    normal_record: str = ""
    explanation: str = ""

    @property
    def seconds(self) -> float:
        """From the first to the last of its records."""
        return max(self.last_seen - self.first_seen, 0) / 1e9 if self.first_seen >= 0 else 0.0

    @property
    def fan_out(self) -> int:
        """The most of different sources, destinations and ports."""
        return max(self.sources.distinct, self.destinations.distinct, self.ports.distinct)


def alert_of(episode: Episode, closed_by: ClosedBy = "") -> Alert:
    """The episode as it is told now: nothing in it changes later."""
    alert = Alert(
        id=episode.id,
        kind=episode.kind,
        label=episode.label,
        labels=episode.labels.top(SHOWN),
        entity=episode.entity,
        entity_kind=episode.entity_kind,
        state="closed" if closed_by else "open",
        closed_by=closed_by,
        update=episode.update,
        severity=severity_name(episode.severity_score),
        severity_score=episode.severity_score,
        source=episode.source,
        clusters=[int(each.value) for each in episode.clusters.top(CLUSTERS_SHOWN)],
        records=episode.records,
        first_seen=episode.first_seen,
        last_seen=episode.last_seen,
        first_record=episode.first_record,
        last_record=f"{episode.last_source}:{episode.last_seq}",
        record_ids=list(episode.record_ids),
        sources=episode.sources.top(SHOWN),
        source_count=episode.sources.distinct,
        destinations=episode.destinations.top(SHOWN),
        destination_count=episode.destinations.distinct,
        ports=episode.ports.top(SHOWN),
        port_count=episode.ports.distinct,
        protocol=episode.protocol,
        service=episode.service,
        top_score=episode.top_score,
        attributes=list(episode.attributes),
        example=dict(episode.example),
        examples=list(episode.examples),
        parts=list(episode.parts),
        margin=episode.margin,
        normal_record=episode.normal_record,
        explanation=episode.explanation,
    )
    if episode.role == "overflow":
        alert.summary = (
            f"{RATE_LIMIT}: {counted(episode.alerts, 'more alert')} not told one by one, "
            f"{counted(episode.records, 'record')}"
        )
    else:
        alert.summary = summary_of(alert)
    return alert


def note_explanation(episode: Episode, explanation: Explanation | None) -> None:
    """Why, from the record at hand: the words, and the attributes that speak most for the verdict."""
    if explanation is None:
        return
    episode.explanation = explanation.text()
    parts = explanation.parts
    speaking = [part for part in parts if part.contribution > 0 and part.attribute != ROOT_PART]
    episode.attributes = [_note(part) for part in speaking[:NOTES]]
    episode.parts = [_note(part) for part in parts[:PARTS]]
    if len(parts) > PARTS:
        left = _finite(math.fsum(part.contribution for part in parts[PARTS:]))
        episode.parts.append(AttributeNote(name=REST_PART, contribution=left, value=None, normal=None))
    episode.margin = None if explanation.margin is None else _finite(explanation.margin)
    episode.normal_record = "" if explanation.opposite is None else explanation.opposite.id


def _note(part: Part) -> AttributeNote:
    return AttributeNote(
        name=part.attribute,
        contribution=_finite(part.contribution),
        value=_plain(part.value),
        normal=_plain(part.opposite),
    )


def note_example(episode: Episode, example: Example) -> None:
    """One record, its attributes and its context."""
    episode.example = {name: _plain(value) for name, value in example.items()}


def note_examples(episode: Episode, record: str, example: Example) -> None:
    """One more record for the table: the first ones stay, the last place is always that of the newest."""
    shown = {name: plain for name, value in example.items() if (plain := _plain(value)) not in ("", 0.0, None)}
    del episode.examples[EXAMPLES - 1 :]
    episode.examples.append({"record": record, **shown})


def _finite(number: float) -> float:
    """Return a number as JSON can hold it: cut to what scores are cut to."""
    return 0.0 if math.isnan(number) else max(-HIGHEST, min(float(number), HIGHEST))


def _plain(value: float | str | None) -> float | str | None:
    """As JSON can hold it."""
    if isinstance(value, str):
        return _text(value, LONGEST_EXAMPLE)
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def texts(column: NDArray[np.object_] | None, rows: int) -> list[str]:
    """A context column as short clean texts, empty where there is no value; equal values share one text."""
    if column is None:
        return [""] * rows
    values = column.tolist()
    known = {value: "" if value is None else _text(str(value), LONGEST) for value in set(values)}
    return [known[value] for value in values]


def _text(value: str, longest: int) -> str:
    if len(value) > longest:
        value = value[:longest]
    return value if value.isascii() else value.encode(errors="replace").decode()
