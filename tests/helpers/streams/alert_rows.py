"""Anomalous records for tests of the alert book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netclust.linking.explanation import Explanation, Part, Referent
from netclust.linking.verdicts import KNOWN_ATTACK, NOVEL
from netclust.stream.alerts.alert_book import AnomalousRows

SECOND = 10**9
START = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Record:
    """One anomalous record; `at` is in seconds after START, None without a time. No label: it is new."""

    at: float | None = 0.0
    source: str | None = None
    destination: str | None = None
    port: int | None = None
    label: str = ""
    cluster: int = 7
    score: float = 1.0
    protocol: str | None = None


def rows_of(records: Sequence[Record], first: int = 0, clock: Sequence[float] | None = None) -> AnomalousRows:
    """As the book takes them; `first` is the number of the first one."""

    def column(name: str) -> np.ndarray | None:
        values = [getattr(record, name) for record in records]
        return None if all(value is None for value in values) else np.array([*values, None], object)[:-1]

    def explain(i: int) -> Explanation:
        record = records[i]
        linked = Referent(kind="root", id="root", label="", score=1.0)
        opposite = Referent(kind="reference", id="reference 3", label="normal", score=0.0)
        parts = [
            Part(attribute="(root)", contribution=9.0, value=None, linked=None, opposite=None),
            Part(attribute="duration", contribution=record.score, value=12.5, linked=None, opposite=0.5),
            Part(attribute="flag", contribution=-0.5, value="S0", linked=None, opposite="SF"),
        ]
        return Explanation(
            record=f"0:{first + i}", verdict="known_attack" if record.label else "novel", label=record.label,
            via="root", cluster=record.cluster, score=record.score, margin=record.score, linked=linked,
            opposite=opposite, parts=parts,
        )  # fmt: skip

    def example(i: int) -> Mapping[str, float | str | None]:
        return {"score": float(records[i].score), "number": str(first + i), "odd": float("nan")}

    def attributes(i: int) -> Mapping[str, str]:
        return {"protocol": records[i].protocol or ""}

    n = len(records)
    return AnomalousRows(
        source_id=np.zeros(n, np.uint16),
        seq=np.arange(first, first + n).astype(np.uint64),
        time=np.array([-1 if r.at is None else START + round(r.at * SECOND) for r in records], np.int64),
        clock=None if clock is None else np.array([START + round(at * SECOND) for at in clock], np.int64),
        cluster=np.array([r.cluster for r in records], np.int64),
        kind=np.array([KNOWN_ATTACK if r.label else NOVEL for r in records], np.uint8),
        label=[r.label or "novel" for r in records],
        score=np.array([r.score for r in records], np.float32),
        source=column("source"),
        destination=column("destination"),
        destination_port=column("port"),
        protocol=column("protocol"),
        explain=explain,
        example=example,
        attributes=attributes,
    )
