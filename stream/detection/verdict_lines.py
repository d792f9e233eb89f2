"""Verdicts as lines of JSON, for a log."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from netclust.linking.verdicts import VERDICTS
from netclust.stream.detection.detector import Outcome

__all__ = ["verdict_lines"]


def verdict_lines(outcome: Outcome, which: str, origin: Mapping[int, Mapping[str, str]] | None = None) -> bytes:
    """A line of JSON a record: what was said of it. `which`: all records, or the anomalous ones.

    `origin`: what else is said of records of a source, by its number.
    """
    verdicts, batch = outcome.verdicts, outcome.batch
    rows = np.arange(len(batch)) if which == "all" else np.flatnonzero(verdicts.anomalous)
    if not len(rows):
        return b""
    encode = msgspec.json.Encoder().encode
    names = [*outcome.labels, "novel"]  # number -2 of labels is novel
    lines = []
    label_at = np.where(verdicts.label[rows] < 0, len(names) - 1, verdicts.label[rows])
    columns = zip(
        batch.source[rows].tolist(), batch.seq[rows].tolist(), batch.time[rows].tolist(),
        verdicts.verdict[rows].tolist(), label_at.tolist(), verdicts.score[rows].tolist(),
        verdicts.cluster[rows].tolist(), rows.tolist(), strict=True,
    )  # fmt: skip
    for source, seq, time, verdict, label, score, cluster, row in columns:
        line = {
            "record": f"{source}:{seq}",
            "time": time,
            "verdict": VERDICTS[verdict],
            "label": names[label],
            "score": score if np.isfinite(score) else None,
            "cluster": cluster,
            "referent": verdicts.referent(row),
        }
        lines.append(encode(line if origin is None else {**origin[source], **line}))
    lines.append(b"")
    return b"\n".join(lines)
