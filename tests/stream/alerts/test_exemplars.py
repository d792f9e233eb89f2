"""Records kept of alerts: the first and the last ones of each, of the newest alerts, the same after a restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from netclust.errors import ModelError
from netclust.stream.alerts import exemplars as module
from netclust.stream.alerts.exemplars import AN_ALERT, Exemplars

WIDTHS = (2, 3)


def filled(alerts: int = 3, records: int = 2) -> Exemplars:
    """Record k of an alert has k in its numbers, and cluster 10 * alert + k."""
    found = Exemplars()
    for alert in range(alerts):
        for k in range(records):
            found.add(f"a-{alert}", 10 * alert + k, np.full(2, k, np.float32), np.full(3, alert, np.uint16))
    return found


def numbers(rows: Any) -> list[float]:
    return [] if rows is None else rows[0][:, 0].tolist()


def test_of_an_alert_the_first_record_and_the_last_ones_are_kept() -> None:
    found = filled(1, AN_ALERT)
    assert numbers(found.of_alert("a-0")) == list(range(AN_ALERT))
    found = filled(1, AN_ALERT + 5)
    assert numbers(found.of_alert("a-0")) == [0, *range(6, AN_ALERT + 5)]
    assert found.of_alert("a-1") is None


def test_records_are_found_by_cluster_over_all_alerts_the_newest_of_them() -> None:
    found = filled()
    assert found.of_cluster(99) is None
    assert numbers(found.of_cluster(11)) == [1.0]
    for k in range(2 * AN_ALERT):
        found.add(f"b-{k}", 11, np.full(2, 100 + k, np.float32), np.zeros(3, np.uint16))
    assert numbers(found.of_cluster(11)) == [100 + k for k in range(AN_ALERT, 2 * AN_ALERT)]


def test_the_oldest_alerts_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ALERTS", 2)
    found = filled(4)
    assert [found.of_alert(f"a-{k}") is not None for k in range(4)] == [False, False, True, True]


def test_what_is_kept_does_not_change_with_the_batch_that_it_came_from() -> None:
    num, code = np.ones(2, np.float32), np.ones(3, np.uint16)
    found = Exemplars()
    found.add("a", 1, num, code)
    num[:], code[:] = 9, 9
    rows = found.of_alert("a")
    assert rows is not None
    assert rows[0].tolist() == [[1, 1]]
    assert rows[1].tolist() == [[1, 1, 1]]


def test_a_restored_state_is_the_same() -> None:
    found, again = filled(), filled(7)
    again.restore(*found.state(), WIDTHS, "here")
    assert again.state()[0] == found.state()[0] == ["a-0", "a-0", "a-1", "a-1", "a-2", "a-2"]
    for name, array in found.state()[1].items():
        assert np.array_equal(again.state()[1][name], array)
    assert numbers(again.of_cluster(21)) == [1.0]
    again.restore([], {}, WIDTHS, "here")
    assert again.state() == ([], {})


def test_another_model_needs_other_records() -> None:
    found = filled()
    found.clear()
    assert found.of_alert("a-0") is None


@pytest.mark.parametrize("name", ["cluster", "num", "code"])
@pytest.mark.parametrize("spoil", ["missing", "short", "kind"])
def test_a_state_that_does_not_fit_is_refused(name: str, spoil: str) -> None:
    names, arrays = filled().state()
    array = arrays.pop(f"exemplars.{name}")
    if spoil != "missing":
        arrays[f"exemplars.{name}"] = array[:-1] if spoil == "short" else array.astype(np.int8)
    with pytest.raises(ModelError, match=r"^here: the records kept of alerts"):
        Exemplars().restore(names, arrays, WIDTHS, "here")


@pytest.mark.parametrize("widths", [(3, 3), (2, 2)])
def test_records_of_another_schema_are_refused(widths: tuple[int, int]) -> None:
    with pytest.raises(ModelError, match="do not fit"):
        Exemplars().restore(*filled().state(), widths, "here")
