"""The daemon: reads its sources, links their records, tells its sinks, and can be killed at any moment."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from netclust.errors import InputError
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_events import Event, Notice
from netclust.stream.bus.addresses import is_bus
from netclust.stream.config import Config
from netclust.stream.daemon import build
from netclust.stream.daemon.background_writer import BackgroundWriter
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut, Loaded
from netclust.stream.daemon.checkpointing import Checkpointer
from netclust.stream.daemon.daemon_metrics import register_daemon_metrics, trouble_of
from netclust.stream.daemon.decisions import Decisions
from netclust.stream.daemon.kernel_preload import leaving_cache, log_kernel_preload, preload_kernels
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.daemon.notify import Notifier
from netclust.stream.daemon.operator_warnings import TroubleLog
from netclust.stream.daemon.outputs import Outputs
from netclust.stream.daemon.queues import Inbox
from netclust.stream.daemon.reloading import Reloader
from netclust.stream.daemon.resuming import bridge_gap, resumed_detector, resumed_source_numbers
from netclust.stream.daemon.source_states import SourceStates
from netclust.stream.detection.detector import Outcome
from netclust.stream.logs import Log
from netclust.stream.sinks.base import Sink
from netclust.stream.sinks.store_sink import StoreSink
from netclust.stream.sources.base import Arrival, Source, SourceState, empty_table
from netclust.stream.store.store import Store, StoreCorruptError, move_aside
from netclust.stream.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from netclust.stream.daemon.console_feed import ConsoleFeed
    from netclust.stream.daemon.control import DaemonControl
    from netclust.stream.daemon.shipping import Shipping

Phase = Literal["starting", "running", "stopping", "stopped"]

HEARTBEAT_SECONDS = 5.0
MAX_CLUSTERS_REPORTED = 4096
"""At a heartbeat the store hears of so many clusters, the newest."""
HELD = "verdicts.held"
"""Under this name a checkpoint has lines that the log of verdicts did not take."""


class Daemon:
    """One configuration at work. `open`, then `run` until the sources end or `stop` is called."""

    def __init__(
        self,
        config: Config,
        *,
        path: str | Path | None = None,
        sources: Sequence[Source] | None = None,
        sinks: Sequence[Sink] = (),
        log: Log | None = None,
    ) -> None:
        self.config = config
        self.path = path
        self.log = log or Log(config.log.format, config.log.level)
        self.telemetry = Telemetry()
        self.phase: Phase = "starting"
        self.came_round = time.monotonic()
        self.folder = build.state_dir(config)
        self.address = ""  # where it listens, once it does
        self._given_sources = sources
        self._given_sinks = list(sinks)
        self._stop = threading.Event()
        self._reopen = threading.Event()
        self.notifier = Notifier()
        self.reloader = Reloader(
            path, self.log, self.telemetry, running=lambda: self.config, take_over=self.take_over,
            begin=self.notifier.reloading, done=self._tell_ready,
        )  # fmt: skip
        self._beat = 0.0
        self._clocks: dict[int, tuple[int, float]] = {}
        self._drift_counted: dict[str, int] = {}
        self.keeps_state = True  # what is in its folder outlives it
        self.control: DaemonControl | None = None
        self.closes_alerts = False  # also when it is told to stop: nobody will go on with them
        self.lingers = False  # goes on to show what there was, and to take answers, when its sources have ended
        self._lingering = False
        self._told_tick = 0
        self._stopping_since = 0.0
        self._undo = contextlib.ExitStack()  # what is open, should the rest of it fail to

    # Beginning

    def open(self) -> None:
        """Open everything; InputError says what is wrong, and then nothing is left open."""
        try:
            self._open()
        except BaseException:
            self._undo.close()
            raise

    def _open(self) -> None:
        self.trouble_log = TroubleLog(self.log)
        log_kernel_preload(self.log)
        self.log_old_spellings(self.config)
        model = build.check_config(self.config)
        self._lock_folder()
        self.store = self._open_store()
        self._undo.callback(self.store.close)
        self.background_writer = BackgroundWriter(self.log)
        self._undo.callback(lambda: self.background_writer.close(5.0))
        self.checkpoints = CheckpointStore(self.folder)
        self.archive = ModelArchive(self.folder)
        loaded = self._load(model)
        self.log.info(
            "model", name=build.model_name(self.config), fingerprint=self.detector.model.fingerprint[:12],
            references=len(self.detector.model.reference), warming_up=self.detector.warming,
        )  # fmt: skip
        facts = {} if loaded is None else loaded.facts
        self.source_states = SourceStates(loaded, self.store, self.log)
        sources, states = self._open_sources()
        all_lost = self.source_states.lost and not any(source.replayable for source in sources)
        if self.source_states.lost:
            bridge_gap(self.detector, self.store, self.log, all_lost=all_lost)
        self.inbox = Inbox(sources, records=self.config.daemon.queue_records, seconds=self.config.daemon.max_queue_age)
        self.outputs = Outputs(self.telemetry, self.folder / "spool")
        self._undo.callback(lambda: self.outputs.close(1.0))
        self._open_sinks(facts.get("sinks", {}))
        self.shipping = self._open_shipping(sources, facts)
        if (shipping := self.shipping) is not None:
            self._undo.callback(lambda: shipping.close(1.0))
            self.telemetry.add_samples("ship", shipping.samples)
        if self.config.verdicts.path:
            held = b"" if loaded is None else loaded.arrays.get(HELD, np.zeros(0, np.uint8)).tobytes()
            self.outputs.open_verdicts(self.config.verdicts.path, None if all_lost else facts.get("verdicts"), held)
        self.decisions = Decisions(
            self.store, self.detector, self.telemetry, self.log, archive=self.archive,
            label_seq=int(facts.get("label_seq", 0)), rollback=int(facts.get("rollback", 0)),
        )  # fmt: skip
        register_daemon_metrics(
            self.telemetry, self.config, self.inbox, self.detector, self.folder, lambda: self.phase == "running"
        )
        # Before rights are given up: the cache may be root's.
        preload_kernels(self.config, self.detector.model, warming=self.detector.warming)
        self.console_feed = self._open_viewing()
        self._open_http()
        self._drop_rights()
        self.checkpointer = Checkpointer(
            self.checkpoints, self.inbox, self.telemetry, self.log, seconds=self.config.daemon.checkpoint_seconds
        )
        self.checkpointer.states = states

    def _lock_folder(self) -> None:
        """One daemon a state folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.folder / "spool").mkdir(exist_ok=True, mode=0o700)
            lock = self._undo.enter_context((self.folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{self.folder}: another netclust runs with this state folder: stop it, or set daemon.state_dir"
            ) from None
        except OSError as error:
            raise InputError(f"state folder {self.folder}: {error.strerror}: set daemon.state_dir") from None

    def _open_store(self) -> Store:
        path = self.folder / "netclust.db"
        limits: dict[str, Any] = {"max_days": self.config.store.max_days, "max_bytes": self.config.store.max_bytes}
        try:
            store = Store(path, **limits)
            store.check()
        except StoreCorruptError as error:
            aside = move_aside(path)
            self.log.error("the store is corrupt: a new one is begun", old=str(aside), why=str(error))
            store = Store(path, **limits)
        return store

    def _load(self, model: Model) -> Loaded | None:
        """The newest checkpoint that can be used, and a detector that goes on from it; else a new one."""
        loaded = self.checkpoints.load()
        for why in self.checkpoints.refused:
            self.telemetry.checkpointed(False)
            self.log.error("a checkpoint cannot be used, an older one is tried", why=why)
        self.numbers = resumed_source_numbers(self.config, loaded)
        names = sorted(self.numbers, key=self.numbers.__getitem__)
        self.detector = resumed_detector(self.config, model, loaded, self.archive, names, self.log)
        counted = self.detector.counters
        self._drift_counted = {what: counted[f"drift_{what}"] for what in self.detector.drift.scores()}
        self._configured = model.fingerprint
        return loaded

    def _open_sources(self) -> tuple[list[Source], list[SourceState | None]]:
        """The sources, open, and where each one stands."""
        given = self._given_sources
        sources = (
            list(given)
            if given is not None
            else [build.build_source(s, self.detector.model) for s in self.config.sources]
        )
        states = []
        for source in sources:
            self._undo.callback(source.close)
            states.append(self.source_states.open(source))
        names = [source.name for source in sources]
        self.telemetry.add_samples("source states", lambda: self.source_states.samples(names))
        return sources, states

    def _open_sinks(self, facts: dict[str, Any]) -> None:
        # A file that is replayed may wait for its own log; nothing else waits for a sink.
        block = all(not source.sheds and source.replayable for source in self._sources())
        self.outputs.add(StoreSink(self.store), self.config, facts.get("store"))
        for sink in [*build.build_sinks(self.config), *self._given_sinks]:
            kind = next((s.kind for s in self.config.sinks if s.name == sink.name), "")
            # What is lost is not told again: a file keeps what it has.
            keeps = self.source_states.lost and getattr(sink, "cuts_back", False)
            kept_facts = None if keeps else facts.get(sink.name)
            self.outputs.add(sink, self.config, kept_facts, block=block and kind in ("jsonl", "terminal"))

    def _sources(self) -> list[Source]:
        return [queue.source for queue in self.inbox.queues]

    def _open_shipping(self, sources: Sequence[Source], facts: Mapping[str, Any]) -> Shipping | None:
        ship = self.config.ship
        if not ship.url and not ship.verdicts_url:
            return None
        from netclust.stream.daemon.shipping import open_shipping

        return open_shipping(
            ship, sources, self.numbers,
            sensor=build.sensor_name(self.config), spool=self.folder / "spool", facts=facts,
        )  # fmt: skip

    def _open_viewing(self) -> ConsoleFeed | None:
        """Return what feeds the console, or None where nobody can ever look: without HTTP, in a state that goes."""
        if not self.config.http.listen and not self.keeps_state:
            return None
        from netclust.stream.daemon.console_feed import ConsoleFeed

        console_feed = ConsoleFeed(
            self.store, self.config, self.detector, self.telemetry, self.inbox, self.outputs, lambda: self.phase
        )
        console_feed.restore()
        return console_feed

    def _open_http(self) -> None:
        if self.console_feed is None:
            return
        from netclust.stream.daemon.control import DaemonControl

        self.control = DaemonControl(
            self.store, self.console_feed.view, build.read_token(self.config),
            detector=self.detector, telemetry=self.telemetry, inbox=self.inbox, outputs=self.outputs,
            decisions=self.decisions, reloader=self.reloader, phase=lambda: self.phase,
            last_round=lambda: self.came_round,
        )  # fmt: skip
        http = self.config.http
        if http.listen:
            from netclust.stream.daemon.http_app import make_app
            from netclust.stream.http.server import serve

            app = make_app(self.control, listen=http.listen)
            server = serve(app, http.listen, tls_cert=http.tls_cert, tls_key=http.tls_key)
            self._undo.callback(server.stop)
            self._undo.callback(self.console_feed.view.hub.close)
            self.address = server.url
            self.log.info("listens", address=http.listen, changes="with the token" if self.control.token else "none")

    def _drop_rights(self) -> None:
        if os.geteuid() != 0:
            return
        from netclust.stream.daemon.privileges import DEFAULT_USER, drop_root

        live = any(source.kind == "live" for source in self.config.sources)
        user = self.config.daemon.user or (DEFAULT_USER if live else "")
        if not user:
            if self.path is not None:  # who watches a file as root knows it
                self.log.warning("runs as root: set daemon.user to an ordinary user")
        else:
            logs = [Path(sink.path) for sink in self.config.sinks if sink.path] + [Path(self.config.verdicts.path)]
            with leaving_cache():
                drop_root(user, keep_net_raw=live, own=[self.folder, *(path for path in logs if path.is_file())])
            self.log.info("gave up root", user=user, kept="CAP_NET_RAW" if live else "nothing")

    # Running

    def stop(self) -> None:
        """End soon, in order. From a signal handler or any thread."""
        self._stop.set()

    def reopen_logs(self) -> None:
        """Logs were rotated away. From a signal handler or any thread."""
        self._reopen.set()

    def run(self) -> int:
        """Link until the sources end or somebody says stop; the exit code."""
        # From the first record on there is a checkpoint to go back to: files are cut back to it, ids not given twice.
        self.checkpointer.cut_now(self._cut)
        self.checkpointer.wait(self.config.daemon.shutdown_timeout)
        self.inbox.start()
        self.phase = "running"
        self._tell_ready()
        deadline: float | None = None
        while True:
            self.came_round = time.monotonic()
            if self._stop.is_set() and deadline is None:
                deadline = self._begin_stop()
            got = self.inbox.get(timeout=0.1)
            self._house()
            if got is not None:
                self._take(*got)
            elif self.inbox.finished:
                if not self.lingers or self._stop.is_set():
                    break
                self._linger()
            if deadline is not None and time.monotonic() > deadline:
                self.log.error("not drained in time: what is left is read again after a restart where it can be")
                self.inbox.abandon()
                break
            self.checkpointer.progress(self._cut)
        return self._end(stopped=deadline is not None, began=self._stopping_since or time.monotonic())

    def _linger(self) -> None:
        """The sources have ended: what was held back is told, and answers count although no batch comes."""
        if not self._lingering:
            self._lingering = True
            self.log.warning("everything has been read: what there was is shown until it is stopped")
            self.report(self.detector.report_held())
        for outcome in self.detector.take(0, Arrival(empty_table(self.detector.model.encoding.schema), None, 0.0)):
            self._deliver(outcome, 0.0)

    def _take(self, number: int, arrival: Arrival) -> None:
        began = time.perf_counter()
        source = self.inbox.queues[number].source
        if not source.replayable and len(arrival.table) and int(arrival.table.time.max()) < 0:
            arrival.table.time[:] = time.time_ns()  # records without a time came now
        if self.shipping is not None:
            self.shipping.submit(source, arrival)
        outcomes = self.detector.take(self.numbers[source.name], arrival)
        outcomes += self._pass_time(number, arrival)
        seconds = time.perf_counter() - began
        for outcome in outcomes:
            self._deliver(outcome, seconds)
        self.checkpointer.taken(number, arrival)

    def _pass_time(self, number: int, arrival: Arrival) -> list[Outcome]:
        """Where records come as they happen, an empty minute is a minute of traffic time."""
        newest = int(arrival.table.time.max(initial=-1))
        if newest >= 0:
            self._clocks[number] = (newest, time.monotonic())
        if len(arrival.table) or not self._is_live(number):
            return []
        now = arrival.now
        if number in self._clocks:
            last, since = self._clocks[number]
            now = max(now, last + int((time.monotonic() - since) * 1e9))
        passed = self.detector.advance(now, arrival)
        return [passed] if passed is not None else []

    def _is_live(self, number: int) -> bool:
        queue = self.inbox.queues[number]
        config = next((s for s in self.config.sources if s.name == queue.source.name), None)
        return queue.source.sheds or (config is not None and (config.follow or is_bus(config.path)))

    def _deliver(self, outcome: Outcome, seconds: float) -> None:
        if outcome.results:
            rows = self.decisions.done(outcome.results)
            if self.console_feed is not None:
                self.console_feed.labelled(rows)
        if len(outcome.batch):
            latency = time.monotonic() - outcome.arrival.received
            if self.console_feed is not None:
                self.console_feed.observe(outcome, latency)
            self.telemetry.observe_batch(outcome.verdicts, np.full(len(outcome.batch), latency), seconds)
            if self.outputs.verdicts is not None:
                self.outputs.verdicts.write_outcome(outcome, self.config.verdicts.which)
            if self.shipping is not None:
                self.shipping.report(outcome, self.config.verdicts.which)
        self.report(outcome.events)

    def report(self, events: Sequence[Event]) -> None:
        """Tell the sinks, and log what is about the daemon itself."""
        for event in events:
            if isinstance(event, Notice):
                self.log.info(event.message, **event.facts)
        self.outputs.submit(events)
        if self.console_feed is not None:
            self.console_feed.report(events)

    def _tell_ready(self) -> None:
        self.notifier.ready(f"watching {len(self.inbox.queues)} sources")

    def _house(self) -> None:
        """What is to be done between batches."""
        self.decisions.poll()
        self.notifier.alive()
        if self._reopen.is_set():
            self._reopen.clear()
            self.outputs.reopen()
            self.log.info("logs reopened")
        self.reloader.progress()
        if self.console_feed is not None:
            self.console_feed.progress(self.background_writer.do)
        if time.monotonic() - self._beat > HEARTBEAT_SECONDS:
            self._beat = time.monotonic()
            self._heartbeat()

    def _heartbeat(self) -> None:
        detector = self.detector
        self.telemetry.heartbeat()
        self.telemetry.set_model(
            detector.model.fingerprint, detector.model.encoding.schema.name,
            generation=detector.generation, references=len(detector.model.reference),
        )  # fmt: skip
        for what, score in detector.drift.scores().items():
            self.telemetry.set("drift_score", score, what=what)
            count = detector.counters[f"drift_{what}"]
            self.telemetry.inc("drift_events_total", count - self._drift_counted.get(what, 0), what=what)
            self._drift_counted[what] = count
        self.telemetry.set("drift_watched", detector.drift.watched)
        self.telemetry.set("label_events", len(detector.answers.applied))
        self._log_troubles()
        self._note(running=True)
        self.notifier.status(f"{detector.linker.tick:,} records, {detector.book.open_count} open alerts")

    def _log_troubles(self) -> None:
        """Log what does not work, once, and when it works again; and the first lines that could not be read."""
        now = {f"source {queue.source.name}": trouble_of(queue) for queue in self.inbox.queues}
        now |= {f"sink {name}": why for name, why in self.outputs.troubles().items()}
        if self.shipping is not None:
            now |= {f"shipping {name}": why for name, why in self.shipping.troubles().items()}
        self.trouble_log.troubles(now)
        self.trouble_log.labels(self.detector.linker.labels)
        for queue in self.inbox.queues:
            self.trouble_log.lines(queue.source.name, getattr(queue.source, "first_skipped", []))

    def _note(self, *, running: bool) -> None:
        """Have the store say that we run, which clusters have grown, and what rules have hidden."""
        tick, since = self.detector.linker.tick, self._told_tick
        clusters = self.detector.linker.clusters(since)[-MAX_CLUSTERS_REPORTED:]
        hidden = self.decisions.newly_hidden()
        facts = {"records": tick, "pid": os.getpid(), "phase": self.phase, "model": self.detector.model.fingerprint}

        def write() -> None:
            self.store.heartbeat(facts, running=running)
            self.store.save_clusters(clusters)
            for rule, count in hidden.items():
                self.store.add_hidden(rule, count)
            self.telemetry.set("store_rows", self.store.rows())
            self.telemetry.set("store_bytes", self.store.bytes())
            self.telemetry.set("feedback_pending", len(self.store.labels(status="pending")))

        if self.background_writer.do(write):
            self._told_tick = tick

    # Checkpoints

    def _cut(self, *, clean: bool = False) -> tuple[Cut, list[tuple[str, Any]]]:
        """A copy of everything, between two batches."""
        detector = self.detector
        facts, arrays = detector.freeze()
        model = detector.model.fingerprint
        used = detector.model

        def save_model() -> None:
            self.archive.save(used)
            if lines is not None:
                lines.log.flush()

        window = self.config.window.referent_window * self.config.window.partitions
        states = {
            queue.source.name: state for queue, state in zip(self.inbox.queues, self.checkpointer.states, strict=True)
        }
        lines = self.outputs.verdicts
        cut = Cut(
            facts={
                "clean": clean,
                "continuing": self.source_states.facts(),
                "detector": facts,
                "model": model,
                "configured_model": self._configured,
                "numbers": self.numbers,
                "label_seq": self.decisions.label_seq,
                "rollback": self.decisions.rollback,
                "sources": {name: state.facts for name, state in states.items() if state is not None},
                "verdicts": None if lines is None else lines.log.facts(),
                "streams": {} if self.shipping is None else dict(self.shipping.streams),
            },
            arrays={
                **({HELD: np.frombuffer(lines.held, np.uint8)} if lines is not None and lines.held else {}),
                **{f"detector.{name}": array for name, array in arrays.items()},
                **{
                    f"source.{name}.{key}": array
                    for name, state in states.items()
                    if state is not None
                    for key, array in state.arrays.items()
                },
            },
            linker=detector.linker.freeze(self.checkpoints.since(detector.linker.tick, window, model)),
            before=save_model,
        )
        marks: list[tuple[str, Any]] = [*self.outputs.mark()]
        if self.shipping is not None:
            marks.append((self.shipping.name, self.shipping.mark()))
        return cut, marks

    def log_old_spellings(self, config: Config) -> None:
        """Warn of options that the configuration spells as an earlier release did."""
        for warning in config.old_spellings:
            self.log.warning(warning)

    def take_over(self, config: Config, model: Model) -> None:
        """Go on with another configuration, which was checked, and its model."""
        self.outputs.swap(self.config, config)  # what may still fail goes first
        self.config = config
        self.detector.configure(config)
        self.log.form, self.log.level = config.log.format, config.log.level
        self.log_old_spellings(config)
        if self.control is not None:
            self.control.token = build.read_token(config)
        if model.fingerprint != self._configured:
            self._configured = model.fingerprint
            self.detector.swap(model)
            self.checkpointer.request()

    # Ending

    def _begin_stop(self) -> float:
        self.phase = "stopping"
        self.notifier.stopping()
        self.log.info("stopping")
        self.inbox.request_stop()
        self._stopping_since = time.monotonic()
        return self._stopping_since + self.config.daemon.shutdown_timeout / 2  # the other half is for the checkpoint

    def _end(self, *, stopped: bool, began: float) -> int:
        def left() -> float:
            return max(began + self.config.daemon.shutdown_timeout - time.monotonic(), 0.5)

        self.phase = "stopping"
        self.inbox.resume()
        if not stopped or self.closes_alerts:
            self.report(self.detector.finish())
        self.checkpointer.wait(left() / 2)
        if all(state is not None for state in self.checkpointer.states):
            self.checkpointer.cut_now(lambda: self._cut(clean=True))
        else:
            self.log.warning("no last checkpoint: what came since the one before is read again, where it can be")
        self.checkpointer.close(left())
        self._heartbeat()
        self.inbox.stop(min(left(), 2.0))
        runners = {f"sink {name}": runner for name, runner in self.outputs.runners.items()}
        if self.shipping is not None:
            runners |= {f"shipping of {what}": runner for what, runner in self.shipping.runners.items()}
            self.shipping.close(min(left(), 5.0))
        self.outputs.close(left())
        for name, runner in runners.items():
            if runner.pending:  # who stops it now must know that the other end does not have all
                kept = "waits on disk, and goes first at the next start" if runner.spool_bytes else "is lost"
                self.log.warning(f"not delivered: it {kept}", what=name, messages=runner.pending)
        self.phase = "stopped"
        self._note(running=False)
        if self.console_feed is not None:
            self.console_feed.save(self.background_writer.do)
        self._undo.close()
        self.log.info("stopped", records=self.detector.linker.tick)
        failed = [
            queue for queue in self.inbox.queues if queue.failure is not None or (not stopped and trouble_of(queue))
        ]
        return 1 if failed and len(failed) == len(self.inbox.queues) else 0
