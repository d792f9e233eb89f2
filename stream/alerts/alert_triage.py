"""Alerts in the order in which to look at them: the worst first, similar ones next to each other.

This is the joint ranking of `netclust.structures.rankings` (Algorithm 7): an alert's score is how severe it is, a
pair's how much the two have in common, and alerts are put together where that is worth more than the order loses by it.

>>> def alert(ident, severity, clusters, entity):
...     return Alert(id=ident, kind="novel", label="novel", entity=entity, entity_kind="source", clusters=clusters,
...                  severity_score=severity)
>>> some = [alert("a-1", 90, [7], "10.0.0.1"), alert("a-2", 60, [8], "10.0.0.2"), alert("a-3", 50, [7], "10.0.0.3")]
>>> found, groups = in_triage_order(some)
>>> [one.id for one in found], groups  # a-3 is of the same cluster as a-1
(['a-1', 'a-3', 'a-2'], [1, 1, 2])

The weights are stated here, not learned: answers are too few at most sites.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from netclust.stream.alerts.alert_events import Alert, Count

__all__ = ["MOST", "WEIGHTS", "in_triage_order"]

MOST = 300
"""So many of the most severe are ranked together; what is less severe follows by severity, each by itself."""

WEIGHTS = {"clusters": 0.6, "entity": 0.3, "label": 0.2, "destinations": 0.2, "ports": 0.2}
"""What it is worth for two alerts to have all of that in common; a severity of 100 is worth 1."""
THRESHOLD = 0.55
"""What two alerts must have in common before they are put together: less, and groups chain until all are one."""
RECORDS = 0.02
"""What ten times as many records are worth: they decide between alerts of one severity."""


def in_triage_order(alerts: Sequence[Alert]) -> tuple[list[Alert], list[int]]:
    """The alerts in that order, and the group of each, numbered from 1 down the list."""
    if not alerts:
        return [], []
    from netclust.structures.pairs import all_pairs
    from netclust.structures.partition import PairScores
    from netclust.structures.rankings import best_joint

    scores = np.array([alert.severity_score / 100 + RECORDS * np.log10(1 + alert.records) for alert in alerts])
    by_score = np.argsort(-scores, kind="stable")
    kept, rest = [alerts[i] for i in by_score[:MOST]], [alerts[i] for i in by_score[MOST:]]
    left, right = all_pairs(len(kept))
    shared = [_Shared(alert) for alert in kept]
    values = np.array([shared[i].worth(shared[j]) for i, j in zip(left.tolist(), right.tolist(), strict=True)], float)
    found = best_joint(scores[by_score[:MOST]], PairScores(len(kept), values))
    clusters = found.clusters()
    numbers: dict[int, int] = {}
    groups = [numbers.setdefault(int(clusters[i]), len(numbers) + 1) for i in found.order]
    return [*(kept[i] for i in found.order), *rest], [*groups, *range(len(numbers) + 1, len(numbers) + 1 + len(rest))]


def load_search() -> None:
    """Import the search and its kernels, which only those who ask for this order wait for."""
    import netclust.structures.partition
    import netclust.structures.rankings  # noqa: F401


class _Shared:
    """What an alert may have in common with another."""

    def __init__(self, alert: Alert) -> None:
        self.parts: dict[str, frozenset[str]] = {
            "clusters": frozenset(map(str, alert.clusters)),
            "entity": frozenset([alert.entity]),
            "label": frozenset([f"{alert.kind} {alert.label}"]),
            "destinations": _values(alert.destinations),
            "ports": _values(alert.ports),
        }

    def worth(self, other: _Shared) -> float:
        """The weighted shares that both have of what either has, less the threshold."""
        worth = sum(weight * _share(self.parts[name], other.parts[name]) for name, weight in WEIGHTS.items())
        return worth - THRESHOLD


def _values(counts: Sequence[Count]) -> frozenset[str]:
    return frozenset(str(count.value) for count in counts)


def _share(a: Collection[str], b: frozenset[str]) -> float:
    return len(b.intersection(a)) / len(b.union(a)) if a and b else 0.0
