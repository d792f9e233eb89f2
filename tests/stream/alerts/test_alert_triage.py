"""The order of triage: severity decides, but similar alerts stand together."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from netclust.stream.alerts import alert_triage
from netclust.stream.alerts.alert_events import Alert, Count
from netclust.stream.alerts.alert_triage import in_triage_order


def alert(ident: str, severity: int, **changes: Any) -> Alert:
    given: dict[str, Any] = {"kind": "novel", "label": "novel", "entity": ident, "entity_kind": "source", "records": 1}
    return Alert(id=ident, severity_score=severity, **{**given, **changes})


def ids(alerts: list[Alert]) -> list[str]:
    return [one.id for one in alerts]


def test_alerts_that_share_nothing_are_in_order_of_severity() -> None:
    some = [alert(f"a-{n}", severity) for n, severity in enumerate((10, 90, 50))]
    found, groups = in_triage_order(some)
    assert ids(found) == ["a-1", "a-2", "a-0"]
    assert groups == [1, 2, 3]
    assert in_triage_order([]) == ([], [])
    assert in_triage_order(some[:1]) == (some[:1], [1])


def test_similar_alerts_stand_together() -> None:
    scan = {"ports": [Count("22", 5)], "destinations": [Count("10.0.0.9", 5)]}
    some = [alert("a", 80, clusters=[3], **scan), alert("b", 60), alert("c", 40, clusters=[3], **scan), alert("d", 20)]
    found, groups = in_triage_order(some)
    assert ids(found) == ["a", "c", "b", "d"]
    assert groups == [1, 1, 2, 3]


def test_groups_stay_together_and_no_alert_is_lost(monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    some = [
        alert(
            f"a-{n}", int(rng.integers(0, 101)), clusters=[int(rng.integers(0, 6))], entity=f"10.0.0.{n % 4}", records=1
        )
        for n in range(40)
    ]
    found, groups = in_triage_order(some)
    assert sorted(ids(found)) == sorted(ids(some))
    assert [group for group, _ in groupby(groups)] == list(range(1, max(groups) + 1))
    monkeypatch.setattr(alert_triage, "MOST", 10)
    few, numbers = in_triage_order(some)
    assert sorted(ids(few)) == sorted(ids(some))
    severities = [one.severity_score for one in few[10:]]
    assert severities == sorted(severities, reverse=True)
    assert len(set(numbers[10:])) == 30
