"""The daemon in this process, on sources and sinks in memory: what is read, judged, told, answered and kept."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, simulate
from netclust.errors import InputError
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_events import AlertEvent
from netclust.stream.config import load_config
from netclust.stream.daemon.service import Daemon
from netclust.stream.logs import Log
from netclust.stream.sinks.base import MemorySink
from netclust.stream.sources.base import Arrival, MemorySource
from netclust.stream.store.store import Store

PATIENCE = 60.0


@pytest.fixture
def settings(tmp_path: Path, small_model: Model) -> Callable[..., Path]:
    """Writes a configuration and gives its path."""
    small_model.save(tmp_path / "model.safetensors")

    def write(more: str = "", *, sources: int = 1, warmup: int = 0) -> Path:
        path = tmp_path / "netclust.toml"
        listed = "".join(f'[[source]]\nkind = "records"\nname = "s{k}"\npath = "-"\n' for k in range(sources))
        path.write_text(
            f'{listed}[model]\npath = "{tmp_path}/model.safetensors"\n[http]\nlisten = ""\n'
            f"[warmup]\nrecords = {warmup}\nreferences = {warmup // 2}\n"
            f'[daemon]\nstate_dir = "{tmp_path}/state"\ncheckpoint_seconds = 0.2\n{more}'
        )
        return path

    return write


def attacks(count: int, seed: int = 2) -> Table:
    return simulate(count, seed=seed, day=1, attacks=HELD_BACK).table()


class Running:
    """A daemon in a thread."""

    def __init__(self, path: Path, sources: list[Any]) -> None:
        self.sink = MemorySink()
        self.daemon = Daemon(load_config(path), path=path, sources=sources, sinks=[self.sink], log=Log("text", "error"))
        self.daemon.open()
        self.code: int | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.code = self.daemon.run()

    def __enter__(self) -> Running:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def until(self, true: Callable[[], Any]) -> Any:
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            if found := true():
                return found
            assert self.thread.is_alive() or self.code is not None, "the daemon broke down"
            time.sleep(0.01)
        raise AssertionError("waited in vain")

    @property
    def alerts(self) -> list[AlertEvent]:
        return [event for event in self.sink.events if isinstance(event, AlertEvent)]


def verdicts(running: Running) -> float:
    text, _ = running.daemon.telemetry.exposition()
    lines = [line for line in text.decode().splitlines() if line.startswith("netclust_verdicts_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_every_record_that_was_read_is_judged_or_counted_as_shed(settings: Callable[..., Path]) -> None:
    config = settings("queue_records = 300\nqueue_seconds = 0.05\n")
    tables = [attacks(250, seed=k) for k in range(60)]
    source = MemorySource("s0", tables[0].schema, tables, sheds=True)
    with Running(config, [source]) as running:
        running.until(lambda: running.code is not None)
        shed = sum(running.daemon.inbox.queues[0].counters.values())
        assert source.counters["records"] == 60 * 250
        assert verdicts(running) + shed == 60 * 250
        assert shed > 0


def test_a_source_that_can_wait_loses_nothing_when_it_is_too_fast(settings: Callable[..., Path]) -> None:
    tables = [attacks(250, seed=k) for k in range(20)]
    with Running(settings("queue_records = 300\n"), [MemorySource("s0", tables[0].schema, tables)]) as running:
        running.until(lambda: running.code is not None)
    assert verdicts(running) == 20 * 250


class Broken(MemorySource):
    def __iter__(self) -> Iterator[Arrival]:
        raise OSError("the disk is gone")


def test_a_source_that_fails_does_not_take_the_others_with_it(settings: Callable[..., Path]) -> None:
    table = attacks(500)
    broken = Broken("s0", table.schema)
    good = MemorySource("s1", table.schema, [table], ended=False)
    with Running(settings(sources=2), [broken, good]) as running:
        running.until(lambda: running.daemon.detector.linker.tick == 500)
        assert "the disk is gone" in running.daemon.control.status()["sources"]["s0"]["trouble"]
    assert running.code == 0


def test_no_source_left_is_a_failure_that_the_exit_code_tells(settings: Callable[..., Path]) -> None:
    with Running(settings(), [Broken("s0", attacks(1).schema)]) as running:
        running.until(lambda: running.code is not None)
    assert running.code == 1


def test_an_answer_in_the_store_counts_from_the_next_batch_and_after_a_restart(
    settings: Callable[..., Path], tmp_path: Path
) -> None:
    table = attacks(600)
    source = MemorySource("s0", table.schema, [table], ended=False)
    with Running(settings(), [source]) as running:
        first = running.until(lambda: [e.alert for e in running.alerts if e.alert.kind == "novel"])[0]
        with Store(tmp_path / "state" / "netclust.db") as store:
            running.until(lambda: any(a.id == first.id for a in store.alerts()))
            row = store.add_label(first.id, "normal", by="eve", why="a backup")
            running.until(lambda: store.labels()[0].status == "applied")
            applied = store.labels()[0]
            assert applied.label_seq == row.label_seq
            assert "pinned" in applied.reason
            assert applied.from_tick is not None
            assert any(entry.by == "eve" for entry in store.audit())
        running.until(lambda: any(e.action == "close" and e.alert.id == first.id for e in running.alerts))
        pinned = len(running.daemon.detector.model.reference)
        assert pinned > len(running.daemon.detector.shipped.reference)
    again = MemorySource("s0", table.schema, [table], ended=False)
    with Running(settings(), [again]) as running:
        assert len(running.daemon.detector.model.reference) == pinned
        assert row.label_seq in running.daemon.detector.answers.applied
        with Store(tmp_path / "state" / "netclust.db") as store:
            store.add_undo(row.label_seq, by="eve")
            running.until(lambda: store.labels(after=row.label_seq)[0].status == "applied")
        assert not running.daemon.detector.answers.applied


def test_a_rule_in_the_store_hides_without_a_restart_and_says_how_much(
    settings: Callable[..., Path], tmp_path: Path
) -> None:
    from netclust.stream.store.requests import SuppressionRule

    table = attacks(400)
    source = MemorySource("s0", table.schema, [], ended=False)
    with Running(settings(), [source]) as running, Store(tmp_path / "state" / "netclust.db") as store:
        row = store.add_suppression(SuppressionRule(label="novel"), reason="a test", by="eve")
        running.until(lambda: row.id in running.daemon.detector.rules)
        source.put(table)
        running.until(lambda: running.daemon.detector.linker.tick >= 400)
        # the linker counts a batch before the alert book has seen it
        running.until(lambda: running.daemon.detector.book.suppressions.counts[row.id] > 0)
        assert not [e for e in running.alerts if e.alert.kind == "novel"]
        running.until(lambda: store.suppressions()[0].hidden > 0)


def test_a_bad_configuration_is_refused_and_the_old_one_runs_on(settings: Callable[..., Path]) -> None:
    table = attacks(300)
    source = MemorySource("s0", table.schema, [table], ended=False)
    path = settings()
    with Running(path, [source]) as running:
        path.write_text("[[source]]\nkind = 5\n")
        ok, why = running.daemon.reloader.request_and_wait(PATIENCE)
        assert not ok
        assert "kind" in why
        settings("[[suppress]]\nreason = 'x'\nport = 99999\n")
        assert running.daemon.reloader.request_and_wait(PATIENCE)[0] is False
        settings("[window]\nreferent_window = 7\n")
        assert "restart" in running.daemon.reloader.request_and_wait(PATIENCE)[1]
        settings("[[suppress]]\nreason = 'noise'\nport = 80\n")
        assert running.daemon.reloader.request_and_wait(PATIENCE) == (True, "reloaded")
        assert [r.reason for r in running.daemon.detector.book.suppressions.rules] == ["noise"]
        text, _ = running.daemon.telemetry.exposition()
        assert b'netclust_reloads_total{result="failed"} 3.0' in text


def test_another_model_is_swapped_in_without_a_record_lost(
    settings: Callable[..., Path], tmp_path: Path, small_model: Model
) -> None:
    table = attacks(300)
    source = MemorySource("s0", table.schema, [table], ended=False)
    with Running(settings(), [source]) as running:
        running.until(lambda: running.daemon.detector.linker.tick == 300)
        small_model.with_root(None).save(tmp_path / "model.safetensors")
        assert running.daemon.reloader.request_and_wait(PATIENCE)[0]
        source.put(attacks(200, seed=8))
        running.until(lambda: running.daemon.detector.linker.tick == 500)
        assert running.daemon.detector.model.calibration is None
    assert verdicts(running) == 500


def test_two_daemons_do_not_share_a_state_folder(settings: Callable[..., Path]) -> None:
    table = attacks(10)
    with (
        Running(settings(), [MemorySource("s0", table.schema, [], ended=False)]),
        pytest.raises(InputError, match="another netclust"),
    ):
        Running(settings(), [MemorySource("s0", table.schema)])


def test_a_corrupt_store_is_set_aside_and_the_daemon_starts(settings: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "netclust.db").write_bytes(b"SQLite format 3\0" + b"garbage" * 1000)
    with Running(settings(), [MemorySource("s0", attacks(10).schema, [attacks(100)])]) as running:
        running.until(lambda: running.code is not None)
    assert running.code == 0
    assert len(list((tmp_path / "state").glob("netclust.db*damaged*"))) >= 1


def test_a_clock_that_leaps_and_is_set_back_does_not_stop_verdicts(settings: Callable[..., Path]) -> None:
    tables = [attacks(300, seed=k) for k in range(4)]
    for table, shift in zip(tables, (0, 10**18, -7200 * 10**9, 0), strict=True):
        table.time += shift
    source = MemorySource("s0", tables[0].schema, tables, ended=False)
    with Running(settings(), [source]) as running:
        running.until(lambda: running.daemon.detector.linker.tick == 1200)
        assert running.daemon.detector.book.counters.clock_set_back >= 1
    assert verdicts(running) == 1200


def test_what_does_not_work_is_in_the_log_once_and_when_it_works_again(
    settings: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netclust.stream.daemon.service.HEARTBEAT_SECONDS", 0.1)
    said = io.StringIO()
    source = MemorySource("s0", attacks(1).schema, [attacks(300)], ended=False)
    running = Running(settings(), [source])
    running.daemon.log = running.daemon.trouble_log.log = Log("text", "info", said)
    running.sink.fail = True
    with running:
        running.until(lambda: "sink memory does not work" in said.getvalue())
        time.sleep(0.5)
        running.sink.fail = False
        running.until(lambda: "sink memory works again" in said.getvalue())
    assert said.getvalue().count("sink memory does not work") == 1
