"""How severe an alert is, from 0 to 100: a sum of five parts that a person can redo by hand.

| part | points |
|---|---|
| what it is | new 15; known attack, by category: probe 20, dos 30, r2l 40, exfiltration, c2 and u2r 50, other 35 |
| how far from normal | 4 log2(1 + top score), at most 12 |
| how much | 4 log10(records), at most 20 |
| how widely | 5 log10 of the most of sources, destinations and ports, at most 20 |
| how long | 2.5 log10(1 + seconds / 10), at most 10 |

Below 30 it is low, below 55 medium, below 80 high, from 80 on critical. It never falls while an alert is open.

>>> one_odd_record = severity_score("novel", "", top_score=2.0, records=1, fan_out=1, seconds=0)
>>> scan = severity_score("known_attack", "probe", top_score=2.0, records=812, fan_out=799, seconds=41)
>>> flood = severity_score("known_attack", "dos", top_score=4.0, records=100_000, fan_out=1, seconds=60)
>>> [(score, severity_name(score)) for score in (one_odd_record, scan, flood)]
[(21, 'low'), (54, 'medium'), (61, 'high')]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from netclust.stream.alerts.alert_events import Kind, Severity

__all__ = ["CATEGORY_POINTS", "SEVERITIES", "severity_name", "severity_rank_of", "severity_score"]

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high", "critical")
_BELOW = (30, 55, 80)
_NOVEL_POINTS = 15
_OTHER_POINTS = 35
CATEGORY_POINTS: Mapping[str, int] = MappingProxyType(
    {"probe": 20, "dos": 30, "r2l": 40, "exfiltration": 50, "c2": 50, "u2r": 50}
)
"""Of a known attack, by its category: what was merely tried weighs less than what has got in."""


def severity_score(kind: Kind, category: str, *, top_score: float, records: int, fan_out: int, seconds: float) -> int:
    """The sum of the five parts."""
    what = _NOVEL_POINTS if kind == "novel" else CATEGORY_POINTS.get(category, _OTHER_POINTS)
    far = min(12.0, 4 * math.log2(1 + max(top_score, 0.0)))
    much = min(20.0, 4 * math.log10(max(records, 1)))
    widely = min(20.0, 5 * math.log10(max(fan_out, 1)))
    long = min(10.0, 2.5 * math.log10(1 + max(seconds, 0.0) / 10))
    return min(100, int(what + far + much + widely + long))


def severity_rank_of(score: int) -> int:
    """Return 0 for low to 3 for critical."""
    return sum(score >= limit for limit in _BELOW)


def severity_name(score: int) -> Severity:
    """The word for a score."""
    return SEVERITIES[severity_rank_of(score)]
