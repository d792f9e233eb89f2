"""The store among others: several processes, kill -9, damage, a full disk, another version, and its own bounds."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from store_cases import DAY, SECOND, START, Clock, alert, told

from netclust.errors import InputError
from netclust.stream.alerts.alert_events import AlertEvent
from netclust.stream.sinks.base import Sink, SinkError
from netclust.stream.sinks.store_sink import StoreSink
from netclust.stream.store.requests import SuppressionRule
from netclust.stream.store.store import Store, StoreCorruptError, StoreError, StoreFullError, move_aside
from netclust.stream.store.store_schema import APPLICATION, VERSION

HERE = Path(__file__).parents[2] / "helpers" / "streams"


def started(program: str, *args: object) -> subprocess.Popen[str]:
    """Another process that uses the store."""
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", program, *map(str, args)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


LABELS = """
import sys
from netclust.stream.store.store import Store
store = Store(sys.argv[1])
for k in range(int(sys.argv[2])):
    store.add_label(f"cluster:{k}", "normal", by=sys.argv[3])
    print(k, flush=True)
store.close()
"""


# Several at once


def test_labels_of_two_processes_and_alerts_of_a_third_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    writers = [started(LABELS, path, 60, name) for name in ("eve", "bob")]  # both may have to make the file
    with Store(path) as store:
        for k in range(60):
            store.save_events([told("a-1", update=k), told(f"a-x{k}")])
        assert [writer.wait(60) for writer in writers] == [0, 0]
        for writer in writers:
            writer.communicate()
        labels = store.labels()
        assert [row.label_seq for row in labels] == list(range(1, 121))
        for name in ("eve", "bob"):
            assert [row.target for row in labels if row.by == name] == [str(k) for k in range(60)]
        assert len(store.alerts()) == 61
        assert store.alert("a-1").update == 59
        store.check()


def test_threads_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    with Store(tmp_path / "netclust.db") as store:
        errors: list[BaseException] = []

        def work(name: str) -> None:
            try:
                for k in range(15):
                    store.add_label(f"cluster:{k}", "normal", by=name)
                    store.save_events([told(f"a-{name}{k}")])
                    store.alerts()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert (len(store.labels()), len(store.alerts(limit=1000))) == (120, 120)
    with pytest.raises(StoreError, match="closed"):
        store.alerts()


def test_a_change_by_another_process_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    with Store(path) as store:
        seen = store.data_version()
        assert store.data_version() == seen
        store.add_label("7", "normal", by="eve")
        own = store.data_version()
        assert own != seen
        assert started(LABELS, path, 1, "bob").communicate()[0] == "0\n"
        assert store.data_version() not in (seen, own)


def test_a_locked_store_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netclust.stream.store.store_schema.BUSY_SECONDS", 0.1)
    path = tmp_path / "netclust.db"
    with Store(path) as store:
        sink: Sink = StoreSink(store)
        sink.write([told()])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SinkError, match="locked") as caught:
            sink.write([told("a-2")])
        assert caught.value.retry
        with Store(path, read_only=True) as reader, Store(path) as another:  # reading goes on
            assert len(store.alerts()) == len(reader.alerts()) == len(another.alerts()) == 1
        other.execute("ROLLBACK")
        other.close()
        sink.write([told("a-2")])
        assert len(store.alerts()) == 2
        assert sink.sync() == {}


# kill -9


def test_a_kill_between_writes_keeps_what_was_answered_for(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    written = 0
    for round_ in range(4):
        writer = started(LABELS, path, 100_000, f"round{round_}")
        assert writer.stdout is not None
        for _ in range(5 + 7 * round_):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        answered = 5 + 7 * round_ + len(writer.stdout.read().splitlines())
        writer.wait()
        writer.stdout.close()
        with Store(path) as store:
            store.check()
            kept = len(store.labels(limit=100_000)) - written
            assert answered <= kept <= answered + 1
            assert len(store.audit(limit=100_000)) == kept + written  # both, or neither
            written += kept


def test_half_of_a_batch_is_not_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "netclust.db") as store:
        bad = AlertEvent(action="open", alert=alert("a-2", records=1 << 70))
        with pytest.raises(OverflowError):
            store.save_events([told("a-1"), bad])
        assert store.alerts() == []
        store.save_events([told("a-1")])


# Damage


def test_a_file_that_is_no_store_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    path.write_bytes(b"not a database at all " * 500)
    with pytest.raises(StoreCorruptError, match="move it away") as caught:
        Store(path)
    assert isinstance(caught.value, InputError)
    assert path.read_bytes().startswith(b"not a database")
    aside = move_aside(path)
    assert aside.name == "netclust.db.damaged-0"
    with Store(path) as store:
        store.save_events([told()])
    assert move_aside(path).name == "netclust.db.damaged-1"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["netclust.db.damaged-0", "netclust.db.damaged-1"]


def test_damaged_pages_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    with Store(path) as store:
        store.save_events([told(f"a-{k}") for k in range(300)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
    with pytest.raises(StoreCorruptError, match=r"netclust\.db"), Store(path) as store:
        store.check()
    with pytest.raises((StoreError, SinkError)), Store(path) as store:
        StoreSink(store).write([told()])
    path.write_bytes(whole[: len(whole) // 2 // 4096 * 4096])
    with pytest.raises(StoreCorruptError), Store(path) as store:
        store.check()


def test_a_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    with pytest.raises(StoreCorruptError, match="another program"):
        Store(path)


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "netclust.db").mkdir()
    with pytest.raises(InputError, match="is no file"):
        Store(tmp_path / "netclust.db")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        Store(tmp_path / "file" / "netclust.db")
    for options in ({"read_only": True}, {"create": False}):
        with pytest.raises(InputError, match="there is no store"):
            Store(tmp_path / "none.db", **options)
    assert not (tmp_path / "none.db").exists()


def test_a_reader_does_not_write(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    path.touch()
    with pytest.raises(InputError, match="is empty"):
        Store(path, read_only=True)
    with Store(path) as store, Store(path, read_only=True) as reader:
        store.save_events([told()])
        assert len(reader.alerts()) == 1
        with pytest.raises(StoreError, match="readonly"):
            reader.add_label("7", "normal", by="eve")
        assert store.labels() == []


# Versions

RELEASED = """
CREATE TABLE alerts (
    id TEXT PRIMARY KEY, "update" INTEGER NOT NULL, state TEXT NOT NULL, severity INTEGER NOT NULL, kind TEXT NOT NULL,
    label TEXT NOT NULL, entity TEXT NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
    records INTEGER NOT NULL, stored INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX alerts_by_time ON alerts (last_seen, stored, id);
CREATE INDEX alerts_by_state ON alerts (state, last_seen, stored, id);
CREATE INDEX alerts_by_age ON alerts (state, stored, id);
CREATE INDEX alerts_by_entity ON alerts (entity);
CREATE INDEX alerts_by_label ON alerts (label);
CREATE TABLE alert_clusters (
    alert TEXT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE, cluster INTEGER NOT NULL, PRIMARY KEY (alert, cluster)
) WITHOUT ROWID;
CREATE INDEX alerts_of_cluster ON alert_clusters (cluster);
CREATE TABLE clusters (
    ident INTEGER PRIMARY KEY, label TEXT NOT NULL, records INTEGER NOT NULL, anomalous INTEGER NOT NULL,
    first_time INTEGER NOT NULL, last_time INTEGER NOT NULL, top_score REAL NOT NULL, stored INTEGER NOT NULL
);
CREATE INDEX clusters_by_age ON clusters (stored);
CREATE TABLE labels (
    label_seq INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, target_kind TEXT NOT NULL,
    target TEXT NOT NULL, label TEXT NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL, from_tick INTEGER, covered INTEGER,
    linker_event TEXT, status TEXT NOT NULL DEFAULT 'pending', reason TEXT NOT NULL DEFAULT '',
    undone_by INTEGER REFERENCES labels (label_seq) ON DELETE SET NULL
);
CREATE INDEX labels_by_undo ON labels (undone_by);
CREATE TABLE suppressions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL,
    address TEXT NOT NULL, source TEXT NOT NULL, destination TEXT NOT NULL, port INTEGER, cluster INTEGER,
    label TEXT NOT NULL, attribute TEXT NOT NULL, until INTEGER NOT NULL, from_tick INTEGER, removed_at INTEGER,
    removed_by TEXT NOT NULL DEFAULT '', removed_why TEXT NOT NULL DEFAULT '', removed_tick INTEGER,
    hidden INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, topic TEXT NOT NULL, what TEXT NOT NULL,
    by TEXT NOT NULL, why TEXT NOT NULL, result TEXT NOT NULL, facts TEXT NOT NULL, key TEXT UNIQUE
);
CREATE INDEX audit_by_age ON audit (created);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = 1852009589;
PRAGMA user_version = 1;
INSERT INTO alerts VALUES ('a-old', 3, 'open', 2, 'novel', 'novel', '10.0.0.7', 5, 6, 9, 7,
    '{"id":"a-old","kind":"novel","label":"novel","entity":"10.0.0.7","entity_kind":"source","update":3,"records":9}');
INSERT INTO alert_clusters VALUES ('a-old', 41);
INSERT INTO clusters VALUES (41, 'novel', 9, 9, 5, 6, 1.5, 7);
INSERT INTO labels (created, target_kind, target, label, by, why) VALUES (8, 'alert', 'a-old', 'normal', 'eve', 'mine');
INSERT INTO suppressions (created, by, reason, address, source, destination, port, label, attribute, until)
    VALUES (8, 'eve', 'scanner', '10.0.0.0/8', '', '', 22, '', '', -1);
INSERT INTO audit (created, topic, what, by, why, result, facts) VALUES (8, 'label', 'x', 'eve', '', '', 'null');
INSERT INTO meta VALUES ('model', '"abc"');
"""


def test_a_store_of_version_1_loads(tmp_path: Path) -> None:
    assert APPLICATION == 1852009589
    path = tmp_path / "netclust.db"
    old = sqlite3.connect(path)
    old.executescript(RELEASED)
    old.close()
    with Store(path) as store:
        assert (store.alert("a-old").records, store.meta("model")) == (9, "abc")
        assert [(c.ident, c.alerts) for c in store.clusters()] == [(41, 1)]
        assert [(row.label_seq, row.by) for row in store.labels()] == [(1, "eve")]
        assert [(s.id, s.config().address) for s in store.suppressions()] == [("s-1", "10.0.0.0/8")]
        assert len(store.audit()) == 1
        store.save_events([told("a-old", update=4, records=10)])
        store.add_undo(1, by="bob")
        store.check()


def test_a_store_of_a_newer_version_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "netclust.db"
    Store(path).close()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    for read_only in (False, True):
        with pytest.raises(InputError, match=f"version {VERSION + 1}.*install the newer netclust") as caught:
            Store(path, read_only=read_only)
        assert not isinstance(caught.value, StoreCorruptError)  # nothing to move away


# Bounds


def test_what_is_too_old_is_pruned(tmp_path: Path) -> None:
    clock = Clock()
    with Store(tmp_path / "netclust.db", max_days=90, clock=clock) as store:
        store.save_events([told("a-old", state="closed"), told("a-orphan")])
        store.add_suppression(SuppressionRule(port=1), reason="x", by="eve", until=START + SECOND)
        store.add_suppression(SuppressionRule(port=2), reason="x", by="eve")
        store.add_label("7", "normal", by="eve")
        store.label_result(1, status="applied")
        store.add_label("8", "normal", by="eve")
        clock.now += 60 * DAY
        store.save_events([told("a-new", state="closed")])
        clock.now += 60 * DAY
        assert store.prune() == {"alerts": 2, "suppressions": 1}
        assert [a.id for a in store.alerts()] == ["a-new"]
        assert [s.id for s in store.suppressions(active_only=False)] == ["s-2"]
        assert len(store.labels()) == 2
        clock.now += 1000 * DAY
        assert set(store.prune()) == {"alerts", "labels", "audit"}
        assert [row.status for row in store.labels()] == ["pending"]  # nobody has heard it yet
        assert store.dropped["alerts"] == 3
        assert store.audit()[0].facts["alerts"] == 1


def test_the_store_stays_within_its_bound(tmp_path: Path) -> None:
    clock = Clock()
    limit = 2 << 20
    with Store(tmp_path / "netclust.db", max_bytes=limit, clock=clock) as store:
        store.save_events([told("a-open")])
        store.add_label("7", "normal", by="eve")
        sink = StoreSink(store)
        for k in range(60):
            clock.now += SECOND
            sink.write([told(f"a-{k}x{n}", state="closed", explanation="x" * 500) for n in range(100)])
            assert store.path.stat().st_size <= limit
        assert store.bytes() <= limit
        kept = {a.id for a in store.alerts(limit=10_000)}
        assert store.dropped["alerts"] + len(kept) == 6001
        assert {"a-open", "a-59x99"} <= kept
        assert "a-0x0" not in kept
        assert len(store.labels()) == 1
        store.check()


def test_the_disk_is_given_back(tmp_path: Path) -> None:
    clock = Clock()
    with Store(tmp_path / "netclust.db", clock=clock) as store:
        store.save_events([told(f"a-{n}", state="closed", explanation="x" * 2000) for n in range(3000)])
        before = store.bytes()
        clock.now += 100 * DAY
        assert store.prune()["alerts"] == 3000
        assert store.bytes() < before / 20
    assert store.path.stat().st_size < before / 2


def test_a_full_store_is_an_error_that_the_sink_can_retry(tmp_path: Path) -> None:
    with Store(tmp_path / "netclust.db", max_bytes=1) as store:  # 64 pages at least
        sink = StoreSink(store)
        many = [told(f"a-{n}", explanation="x" * 5000) for n in range(200)]
        with pytest.raises(StoreFullError):
            store.save_events(many)
        with pytest.raises(SinkError, match="full") as caught:
            sink.write(many)
        assert caught.value.retry


FULL_DISK = """
import resource, signal, sys
from store_cases import told
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.store_sink import StoreSink
from netclust.stream.store.store import Store
store = Store(sys.argv[1])
sink = StoreSink(store)
sink.write([told("a-first")])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
many = [told(f"a-{n}", explanation="x" * 5000) for n in range(200)]
try:
    sink.write(many)
except SinkError as error:
    print("SinkError", error.retry)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
sink.write(many)
store.check()
print(len(store.alerts(limit=1000)))
"""


def test_a_disk_that_takes_no_more_does_not_stop_the_sink_for_good(tmp_path: Path) -> None:
    assert resource.RLIM_INFINITY in resource.getrlimit(resource.RLIMIT_FSIZE)
    assert started(FULL_DISK, tmp_path / "netclust.db").communicate(timeout=60)[0] == "SinkError True\n201\n"


def test_a_label_does_not_wait_for_the_daemons_alerts(tmp_path: Path) -> None:
    """Detection asks on every batch, while a sink writes all the time."""
    with Store(tmp_path / "netclust.db") as store:
        stop = threading.Event()

        def write() -> None:
            k = 0
            while not stop.is_set():
                k += 1
                store.save_events([told(f"a-{n}", update=k) for n in range(50)])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            deadline = time.monotonic() + 20
            for k in range(20):
                store.add_label(f"cluster:{k}", "normal", by="eve")
                store.data_version()
                assert store.labels(after=k)[0].label_seq == k + 1
            assert time.monotonic() < deadline
        finally:
            stop.set()
            writer.join()
