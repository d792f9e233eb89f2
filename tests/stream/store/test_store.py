"""The store keeps what it is told, in the state it was last told, and gives it back."""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_cases import DAY, SECOND, START, Clock, alert, told

from netclust.errors import InputError
from netclust.linking.clusters import ClusterSummary
from netclust.stream.alerts.alert_events import Notice
from netclust.stream.config import SuppressConfig
from netclust.stream.daemon.paths import default_state_dir, store_path
from netclust.stream.store.requests import SuppressionRule, parse_label, parse_since, parse_target, parse_until
from netclust.stream.store.store import Store
from netclust.stream.store.store_feedback import NotFoundError
from netclust.stream.store.store_rows import redaction


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with Store(tmp_path / "state" / "netclust.db", clock=clock) as opened:
        yield opened


def cluster(ident: int, **changes: Any) -> ClusterSummary:
    given: dict[str, Any] = {
        "label": "novel", "records": 5, "anomalous": 4, "alarm": "novel", "alarm_tick": 3, "first_tick": 0,
        "last_tick": 9, "first_time": START, "last_time": START + SECOND, "top_score": 1.5,
    }  # fmt: skip
    return ClusterSummary(id=ident, **{**given, **changes})


# Alerts and clusters


def test_others_may_not_read_the_store(store: Store) -> None:
    store.save_events([told()])
    for file in store.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_an_alert_comes_back_unchanged(store: Store) -> None:
    store.save_events([told()])
    assert store.alerts() == [alert()]
    assert store.alert("a-01") == alert() == store.alert("a-0123456789ab")


@given(order=st.permutations(range(6)))
def test_an_older_update_does_not_overwrite_a_newer_one(
    order: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Store(tmp_path_factory.mktemp("s") / "netclust.db") as store:
        changed = [store.save_events([told(update=k, records=10 * k)]) for k in order]
        assert store.alert("a-0").records == 50
        highest = [max(order[: i + 1]) == order[i] for i in range(6)]
        assert changed == [int(one) for one in highest]
        assert store.save_events([told(update=5, records=7)]) == 0


def test_an_infinite_score_can_be_read_again(store: Store) -> None:
    store.save_events([told(top_score=math.inf), told("a-2", top_score=math.nan)])
    assert all(math.isfinite(a.top_score) for a in store.alerts())


def test_alerts_are_found_by_what_they_are(store: Store, clock: Clock) -> None:
    store.save_events([
        told("a-1", severity="low", last_seen=START),
        told("a-2", severity="high", last_seen=START + 2 * SECOND, state="closed"),
        told("a-3", severity="critical", last_seen=START + SECOND, entity="192.0.2.9", summary="A Flood"),
    ])  # fmt: skip
    ids = lambda **wanted: [a.id for a in store.alerts(**wanted)]  # noqa: E731
    assert ids() == ["a-2", "a-3", "a-1"]
    assert ids(state="open") == ["a-3", "a-1"]
    assert ids(severity="high") == ["a-2", "a-3"]
    assert ids(text="192.0") == ids(text="flood") == ["a-3"]
    assert ids(text="%") == []
    assert ids(limit=1) == ["a-2"]
    clock.now += 3600 * SECOND
    store.save_events([told("a-4", last_seen=-1)])
    assert ids(since=START + 60 * SECOND) == ["a-4"]  # told since then, though its records carry no time


def test_the_right_alert_is_taken(store: Store) -> None:
    store.save_events([told("a-12"), told("a-123"), told("a-2")])
    assert store.alert("a-12").id == "a-12"
    with pytest.raises(InputError, match=r"several alerts \(a-12, a-123\)"):
        store.alert("a-1")
    for wrong in ("a-3", "a-", "", "%", "a-2~", "zz"):
        with pytest.raises(InputError):
            store.alert(wrong)


def test_names_are_not_kept_where_they_should_not_be(tmp_path: Path) -> None:
    with Store(tmp_path / "netclust.db", redact=redaction(["service", "duration"])) as store:
        store.save_events([told()])
        assert store.alert("a-0").example == {"service": "ssh", "duration": 9.0, "source": "10.0.0.7"}
    for file in tmp_path.iterdir():
        assert b"secret.example" not in file.read_bytes()


def test_alerts_of_a_lost_run_are_closed(store: Store) -> None:
    store.save_events([told("a-1"), told("a-2", update=4), told("a-3", state="closed")])
    assert store.close_orphans({"a-1"}) == 1
    assert {a.id: (a.state, a.closed_by) for a in store.alerts()} == {
        "a-1": ("open", ""), "a-2": ("closed", "stopped"), "a-3": ("closed", ""),
    }  # fmt: skip
    store.save_events([told("a-2", update=5)])  # it was not lost after all
    assert store.alert("a-2").state == "open"


def test_clusters_are_those_of_the_last_checkpoint(store: Store) -> None:
    store.save_events([told("a-1", clusters=[41, 7, 41]), told("a-2", clusters=[41])])
    assert store.save_clusters([cluster(41), cluster(7, anomalous=9), cluster(1, anomalous=0)]) == 3
    assert store.save_clusters([cluster(41, records=50), cluster(7, anomalous=9)]) == 1
    assert [(c.ident, c.records, c.alerts) for c in store.clusters()] == [(7, 5, 1), (41, 50, 2), (1, 5, 0)]
    assert [c.ident for c in store.clusters(anomalous_only=True)] == [7, 41]


def test_a_notice_is_kept_once(store: Store) -> None:
    notice = Notice(topic="drift", time=5, key="drift:1", message="scores moved", facts={"p": math.inf})
    assert [store.save_events([notice]), store.save_events([notice, told()])] == [1, 1]
    assert [(row.topic, row.what, row.by) for row in store.audit()] == [("drift", "scores moved", "daemon")]


# Labels


def test_a_label_is_kept_with_who_and_why(store: Store, clock: Clock) -> None:
    store.save_events([told()])
    row = store.add_label("a-01", "attack:scan", by="eve", why="seen before")
    assert (row.label_seq, row.target_kind, row.target, row.label) == (1, "alert", "a-0123456789ab", "attack:scan")
    assert (row.by, row.why, row.created, row.status, row.from_tick) == ("eve", "seen before", START, "pending", None)
    second = store.add_label("7", "normal", by="bob")
    third = store.add_label("live:12", "normal", by="bob")
    assert [r.target for r in store.labels(after=1)] == ["7", "live:12"]
    assert store.labels(newest=True, limit=1) == [third]
    applied = store.label_result(1, status="applied", from_tick=500, covered=3, linker_event={"event": 0})
    assert (applied.status, applied.from_tick, applied.covered, applied.linker_event) == (
        "applied",
        500,
        3,
        {"event": 0},
    )
    refused = store.label_result(second.label_seq, status="refused", reason="no such cluster")
    assert (refused.status, refused.reason) == ("refused", "no such cluster")
    assert [r.label_seq for r in store.labels(status="pending")] == [3]
    attribution = [(row.what, row.by, row.why, row.result) for row in store.audit()][::-1]
    assert attribution[0] == ("label alert a-0123456789ab attack:scan", "eve", "seen before", "label 1")
    assert attribution[-1] == ("take up label 2", "daemon", "", "refused: no such cluster")


def test_a_resumed_run_does_not_move_a_label(store: Store) -> None:
    store.add_label("7", "normal", by="bob")
    store.label_result(1, status="applied", from_tick=500)
    assert store.label_result(1, status="applied", from_tick=800, covered=2).from_tick == 500
    assert sum(row.what.startswith("take up") for row in store.audit()) == 1


def test_an_undo_is_taken_once_and_of_a_label(store: Store) -> None:
    store.add_label("7", "normal", by="bob")
    undo = store.add_undo(1, by="eve", why="wrong one")
    assert (undo.label_seq, undo.target_kind, undo.target, undo.label) == (2, "undo", "1", "normal")
    assert store.labels()[0].undone_by == 2
    for seq, message in ((1, "already undone"), (2, "itself an undo"), (9, "no label 9"), (1 << 70, "no label")):
        with pytest.raises(InputError, match=message):
            store.add_undo(seq, by="eve")
    store.label_result(2, status="refused", reason="too old")
    assert store.labels()[0].undone_by is None  # it may be tried again
    store.label_result(1, status="refused", reason="gone")
    with pytest.raises(InputError, match="nothing to undo: gone"):
        store.add_undo(1, by="eve")


def test_a_number_is_given_to_one_label(store: Store, clock: Clock) -> None:
    store.add_label("7", "normal", by="bob")
    store.label_result(1, status="applied")
    clock.now += 1000 * DAY
    assert store.prune()["labels"] == 1
    assert store.add_label("7", "normal", by="bob").label_seq == 2


@pytest.mark.parametrize(
    ("text", "kind", "kept"),
    [
        ("a-12ab", "alert", "a-12ab"), (" 7 ", "cluster", "7"), ("cluster:007", "cluster", "7"),
        ("live:12", "record", "live:12"), ("0:18446744073709551615", "record", "0:18446744073709551615"),
    ],
)  # fmt: skip
def test_targets_are_told_apart(text: str, kind: str, kept: str) -> None:
    target = parse_target(text)
    assert (target.kind, target.text) == (kind, kept)
    assert parse_target(target.text) == target


@pytest.mark.parametrize(
    "text",
    ["", "a-", "alert", "cluster:", "cluster:x", "-1", "1.5", "live:", ":5", "x y:5", "a:b:5", f"cluster:{1 << 63}",
     f"live:{1 << 64}", "a-" + "x" * 63, "\0", "٣", "a-1\n2"],
)  # fmt: skip
def test_bad_targets_are_refused(text: str, store: Store) -> None:
    with pytest.raises(InputError):
        store.add_label(text, "normal", by="eve")
    assert store.labels() == []


@pytest.mark.parametrize(
    "text",
    ["", "Normal", "attack", "attack:", "attack:a b", "attack:" + "x" * 65, "attack:é", "scan", "attack:normal",
     "attack:Novel"],
)  # fmt: skip
def test_bad_labels_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="no label"):
        parse_label(text)


def test_labels_of_the_longest_length_are_accepted() -> None:
    longest = "attack:" + "x" * 64
    assert [parse_label(text) for text in (" normal", longest)] == ["normal", longest]


def test_who_said_it_is_needed(store: Store) -> None:
    for by, why in (("", ""), ("  ", ""), ("x" * 129, ""), ("eve", "x" * 1001), ("eve\udc80", ""), ("eve", "\0")):
        with pytest.raises(InputError):
            store.add_label("7", "normal", by=by, why=why)
    with pytest.raises(NotFoundError):
        store.add_label("a-99", "normal", by="eve")


# Suppressions


def test_a_suppression_ends_at_its_end_or_its_removal(store: Store, clock: Clock) -> None:
    hour = 3600 * SECOND
    one = store.add_suppression(
        SuppressionRule(address="10.0.0.0/8", port=22), reason="scanner", by="eve", until=START + hour
    )
    two = store.add_suppression(SuppressionRule(attribute="service=ssh"), reason="known", by="eve")
    assert [s.id for s in store.suppressions()] == ["s-1", "s-2"]
    config = one.config()
    assert (config.address, config.port, config.until) == ("10.0.0.0/8", 22, "2026-01-01T01:00:00Z")
    store.suppression_result("s-2", 100)
    store.suppression_result("s-2", 900)
    removed = store.remove_suppression(two.id, by="bob", why="over")
    assert (removed.from_tick, removed.removed_by, removed.removed_tick) == (100, "bob", None)
    store.suppression_result("s-2", 1000)
    assert store.suppression_result("s-2", 2000).removed_tick == 1000
    store.add_hidden("s-1", 3)
    store.add_hidden("s-1", 2)
    assert [(s.id, s.hidden) for s in store.suppressions()] == [("s-1", 5)]
    assert store.suppressions(now=START + hour) == []
    clock.now += 2 * hour
    assert store.suppressions() == []
    assert [s.id for s in store.suppressions(active_only=False)] == ["s-1", "s-2"]
    with pytest.raises(InputError, match="removed already, by bob"):
        store.remove_suppression("s-2", by="eve")
    assert [row.what for row in store.audit()] == ["remove s-2", "suppress s-2", "suppress s-1"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (SuppressionRule(), "nothing to match"),
        (SuppressionRule(address="10.0.0"), "neither an address"),
        (SuppressionRule(port=70_000), "port"),
        (SuppressionRule(cluster=-1), "cluster"),
        (SuppressionRule(attribute="ssh"), "name=value"),
        (SuppressionRule(label="\udc80"), "not text"),
    ],
)
def test_a_suppression_of_everything_or_nothing_is_refused(store: Store, rule: SuppressionRule, message: str) -> None:
    with pytest.raises(InputError, match=message):
        store.add_suppression(rule, reason="why not", by="eve")
    assert store.suppressions(active_only=False) == []


def test_a_suppression_needs_a_reason_and_a_future(store: Store) -> None:
    with pytest.raises(InputError, match="reason"):
        store.add_suppression(SuppressionRule(port=22), reason=" ", by="eve")
    with pytest.raises(InputError, match="over before it begins"):
        store.add_suppression(SuppressionRule(port=22), reason="x", by="eve", until=START)
    for ident in ("s-1", "s-", "x", "s-99999999999999999999", "s-²"):
        with pytest.raises(NotFoundError):
            store.remove_suppression(ident, by="eve")


def test_a_rule_of_the_configuration_can_say_what_one_of_the_store_can() -> None:
    assert set(SuppressionRule.__struct_fields__) == set(SuppressConfig.__struct_fields__) - {"reason", "until"}


# Times, places, the daemon


def test_times_are_read() -> None:
    now = START
    assert parse_until("90s", now) == now + 90 * SECOND
    assert parse_since("1.5d", now) == now - 36 * 3600 * SECOND
    assert parse_until("2026-01-01T01:00:00+01:00", 0) == parse_until("2026-01-01", 0) == START
    assert parse_until(" ", now) == -1
    for wrong in ("8", "h", "-1h", "tomorrow", "1969-12-31", "9999-01-01", "2026-13-01", "1e9h", "nan"):
        with pytest.raises(InputError, match="time"):
            parse_until(wrong, now)


def test_the_store_is_where_it_is_sought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("STATE_DIRECTORY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert default_state_dir() == tmp_path / ".local/state/netclust"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_state_dir() == tmp_path / ".local/state/netclust"
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    assert store_path() == Path("/s/netclust/netclust.db")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_state_dir() == Path("/var/lib/netclust")
    monkeypatch.setenv("STATE_DIRECTORY", "/a:/b")
    assert default_state_dir() == Path("/a")
    assert store_path("/c") == Path("/c/netclust.db")


def test_a_daemon_that_is_gone_does_not_seem_to_run(store: Store, clock: Clock) -> None:
    assert store.daemon() is None
    store.heartbeat({"pid": 7})
    running = store.daemon()
    assert running is not None
    assert running["pid"] == 7
    clock.now += 31 * SECOND
    assert store.daemon() is None
    store.heartbeat()
    store.heartbeat(running=False)
    assert store.daemon() is None
    store.set_meta("daemon", "nonsense")
    assert store.daemon() is None
