"""The store at its bounds: how many rules, what the record of decisions holds, how many rows there are."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_cases import DAY, SECOND, START, Clock, alert, told

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import AttributeNote
from netclust.stream.store import store_feedback
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import SEEN_SECONDS, Store
from netclust.stream.store.store_rows import finite, redaction


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with Store(tmp_path / "netclust.db", clock=clock) as opened:
        yield opened


def test_rows_are_the_alerts_that_are_kept(store: Store) -> None:
    assert store.rows() == 0
    store.save_events([told("a-1"), told("a-2"), told("a-2", update=1)])
    assert store.rows() == 2


def test_active_rules_are_bounded_and_those_that_are_over_do_not_count(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_feedback, "MAX_ACTIVE", 2)
    store.add_suppression(SuppressionRule(label="a"), reason="test", by="eve", until=START + DAY)
    store.add_suppression(SuppressionRule(label="b"), reason="test", by="eve")
    with pytest.raises(InputError, match="2 suppressions already"):
        store.add_suppression(SuppressionRule(label="c"), reason="test", by="eve")
    clock.now = START + DAY
    store.add_suppression(SuppressionRule(label="c"), reason="test", by="eve")
    store.remove_suppression("s-2", by="eve")
    store.add_suppression(SuppressionRule(label="d"), reason="test", by="eve")
    assert [row.label for row in store.suppressions()] == ["c", "d"]


def test_a_rule_is_active_until_its_end_or_its_removal(store: Store) -> None:
    row = store.add_suppression(SuppressionRule(label="a"), reason="test", by="eve", until=START + DAY)
    assert [row.active(START + DAY - 1), row.active(START + DAY)] == [True, False]
    removed = store.remove_suppression(row.id, by="eve")
    assert not removed.active(START)
    forever = store.add_suppression(SuppressionRule(label="b"), reason="test", by="eve")
    assert forever.active(START + 1000 * DAY)
    assert not store.remove_suppression(forever.id, by="eve").active(START)


def test_waiting_labels_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_feedback, "MAX_PENDING", 2)
    for record in ("0:1", "0:2"):
        store.add_label(record, "normal", by="eve")
    with pytest.raises(InputError, match="2 labels wait"):
        store.add_label("0:3", "normal", by="eve")
    store.label_result(1, status="applied")
    assert store.add_label("0:3", "normal", by="eve").label_seq == 3


def test_decisions_are_on_record_with_who_why_and_what(store: Store, clock: Clock) -> None:
    store.add_suppression(SuppressionRule(label="x", port=22), reason="scanner", by="eve", until=START + DAY)
    store.add_hidden("s-1", 7)
    clock.now += SECOND
    store.remove_suppression("s-1", by="ada", why="gone")
    store.add_label("0:1", "attack:worm", by="eve", why="seen before")
    store.label_result(1, status="applied", from_tick=9, covered=3, reason="2 pinned")
    applied, label, removed, added = store.audit()
    assert (added.what, added.by, added.why, added.facts) == (
        "suppress s-1", "eve", "scanner", {"label": "x", "port": 22, "until": START + DAY}
    )  # fmt: skip
    assert (removed.created, removed.what, removed.by, removed.why, removed.facts) == (
        START + SECOND, "remove s-1", "ada", "gone", {"hidden": 7}
    )  # fmt: skip
    assert (label.what, label.by, label.why, label.result) == (
        "label record 0:1 attack:worm", "eve", "seen before", "label 1"
    )  # fmt: skip
    assert (applied.what, applied.by, applied.result, applied.facts) == (
        "take up label 1", "daemon", "applied: 2 pinned", {"from_tick": 9, "covered": 3}
    )  # fmt: skip


def test_redaction_leaves_addresses_times_and_what_is_allowed_in_every_example() -> None:
    seen = {"record": "0:5", "service": "ssh", "name": "secret", "source": "a", "destination_port": "22", "uid": "u"}
    shown = redaction(["service"])(alert(example=seen, examples=[seen, {"name": "secret"}]))
    kept = {name: value for name, value in seen.items() if name != "name"}
    assert shown.example == kept
    assert shown.examples == [kept, {}]


def test_a_daemon_seems_to_run_for_a_while_after_it_has_shown_itself(store: Store, clock: Clock) -> None:
    store.heartbeat({"pid": 7})
    for seconds, runs in ((0, True), (SEEN_SECONDS, True), (SEEN_SECONDS + 1, False), (-SEEN_SECONDS - 1, False)):
        clock.now = START + int(seconds * SECOND)
        assert (store.daemon() is not None) == runs
    clock.now = START
    assert store.daemon() == {"pid": 7, "running": True, "time": START}
    store.heartbeat(running=False)
    assert store.daemon() is None


def test_numbers_that_json_cannot_say_are_cut_wherever_they_stand() -> None:
    def note(contribution: float) -> AttributeNote:
        return AttributeNote(name="x", contribution=contribution, value=1.0, normal=None)

    odd = finite(alert(attributes=[note(math.inf)], parts=[note(-math.inf), note(math.nan)], top_score=math.inf))
    most = sys.float_info.max
    assert [odd.top_score, *(each.contribution for each in (*odd.attributes, *odd.parts))] == [most, most, -most, 0.0]
    plain = alert(attributes=[note(1.0)], parts=[note(2.0)])
    assert finite(plain) is plain


def test_context_that_people_look_for_survives_redaction() -> None:
    names = ("uid", "start", "end", "vlan", "part", "source", "source_port", "destination", "destination_port")
    seen: dict[str, float | str | None] = dict.fromkeys(names, "x")
    assert redaction([])(alert(example=seen)).example == seen
