"""The log of troubles: one line when something stops working and one when it works again; first unreadable lines.

>>> import io, json
>>> out = io.StringIO()
>>> trouble_log = TroubleLog(Log("json", "info", out))
>>> for why in ("no such interface", "no such interface", ""):
...     trouble_log.troubles({"source eth0": why})
>>> [json.loads(line)["message"] for line in out.getvalue().splitlines()]
['source eth0 does not work', 'source eth0 works again']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netclust.records.labels import LabelTable
from netclust.stream.logs import Log

__all__ = ["TroubleLog"]

_DROPPED_LABELS = {
    "full": "a source has brought too many different labels, and leaves out new ones: their records are unlabelled",
    "unusable": "a source has brought a label that is none: its records are unlabelled",
}


class TroubleLog:
    """A memory of what was logged, so that nothing is logged twice."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._troubles: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._labels: set[str] = set()

    def troubles(self, now: Mapping[str, str]) -> None:
        """Log what has begun not to work, and what works again; by name, "" is no trouble."""
        for name, why in now.items():
            if why and not self._troubles.get(name):
                self.log.error(f"{name} does not work", why=why)
        for name in [n for n, why in self._troubles.items() if why and not now.get(n)]:
            self.log.info(f"{name} works again")
        self._troubles = dict(now)

    def lines(self, source: str, first: Sequence[str]) -> None:
        """Log the first lines of a source that could not be read."""
        for line in first[self._lines.get(source, 0) :]:
            self.log.warning("could not be read, and is passed over", source=source, what=line)
        self._lines[source] = len(first)

    def labels(self, labels: LabelTable) -> None:
        """Log the first label of every kind that was left out."""
        for reason, label in labels.first_dropped.items():
            if reason not in self._labels:
                self._labels.add(reason)
                self.log.warning(_DROPPED_LABELS[reason], first=label)
