"""What shards write: verdicts as lines of JSON, and summaries of clusters for the campaigns.

>>> raw = Member(partition=1, id="c12", cluster=12, kind="novel", label="novel", alert="a-1", entity="10.0.0.7",
...              sensor="probe-1", records=3, first_time=5, last_time=9, root=-1.5, num=[0.25], code=[3]).pack()
>>> Member.unpack(raw).entity
'10.0.0.7'
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.linking.verdicts import REFERENCE, ROOT, VERDICTS, VIAS, reference_index
from netclust.stream.detection.detector import Outcome
from netclust.stream.sharding.streams import Streams

__all__ = ["Member", "verdict_messages"]


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster of a shard as campaigns know it: a novel one, or the records of one alert of a known attack.

    `num` and `code` are one of its records as the model encodes it, and `root` is what a link would have to beat.
    """

    partition: int
    id: str  # unique: c and the cluster's number, or the alert's id
    cluster: int
    kind: Literal["novel", "known_attack", "normal"]
    label: str
    alert: str
    entity: str
    sensor: str
    records: int
    first_time: int
    last_time: int
    root: float
    num: list[float]
    code: list[int]

    def pack(self) -> bytes:
        """As a message."""
        return msgspec.json.encode(self)

    @staticmethod
    def unpack(body: bytes) -> Member:
        """Out of a message."""
        try:
            return msgspec.json.decode(body, type=Member)
        except msgspec.DecodeError as error:
            raise InputError(f"a cluster's summary: {error}") from None


def verdict_messages(outcome: Outcome, streams: Streams, partition: int, which: str) -> bytes:
    """Return one line of JSON per record with its verdict. `which`: all records, or the anomalous ones."""
    verdicts, batch = outcome.verdicts, outcome.batch
    rows = np.arange(len(batch)) if which == "all" else np.flatnonzero(verdicts.anomalous)
    if not len(rows):
        return b""
    encode = msgspec.json.Encoder().encode
    sensor, stream, source = streams.parts(int(batch.source[0]))
    names = [*outcome.labels, "novel"]
    label_at = np.where(verdicts.label[rows] < 0, len(names) - 1, verdicts.label[rows])
    columns = (
        batch.seq, batch.time, verdicts.verdict, verdicts.via, verdicts.score, verdicts.cluster, verdicts.parent,
        verdicts.parent_source, verdicts.parent_seq,
    )  # fmt: skip
    lines = []
    for label, seq, time, verdict, via, score, cluster, parent, from_source, from_seq in zip(
        label_at.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        if via == ROOT:
            referent = "root"
        elif via == REFERENCE:
            referent = f"reference {reference_index(parent)}"
        else:
            referent = f"{streams.name(from_source)}:{from_seq}"
        line = {
            "sensor": sensor,
            "stream": stream,
            "source": source,
            "seq": seq,
            "time": time,
            "shard": partition,
            "verdict": VERDICTS[verdict],
            "via": VIAS[via],
            "label": names[label],
            "score": score if abs(score) < np.inf else None,
            "cluster": cluster,
            "referent": referent,
        }
        lines.append(encode(line))
    lines.append(b"")
    return b"\n".join(lines)
