"""The detector: records in, verdicts and alert events out. A deterministic state machine without threads or clocks.

Everything that changes its course (the end of the warm-up, answers of people, rules) happens at an arrival number, so
that the same records give the same verdicts however they are cut into batches, and again after a restart.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> from netclust.stream.config import parse_config
>>> from netclust.stream.sources.base import Arrival
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> config = parse_config('[[source]]\\nkind="records"\\npath="-"\\n[warmup]\\nrecords=0')
>>> detector = Detector(model, config)
>>> outcomes = detector.take(0, Arrival(simulate(500, seed=2, day=1).table(), None, 0.0))
>>> sum(len(outcome.verdicts) for outcome in outcomes), detector.linker.tick
(500, 500)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, ModelError
from netclust.foundation.container import Arrays
from netclust.linking.adaptation import clearly_attacks
from netclust.linking.evidence import Evidence
from netclust.linking.explanation import Explanation, explain
from netclust.linking.linker import Linker
from netclust.linking.verdicts import NOVEL, Verdicts
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding, ShownRecord
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_book import AlertBook, AnomalousRows
from netclust.stream.alerts.alert_events import AlertEvent, Event, Notice
from netclust.stream.alerts.exemplars import Exemplars
from netclust.stream.alerts.suppression import Suppression, SuppressionSet, suppression_of
from netclust.stream.alerts.traffic_clock import TrafficClock
from netclust.stream.config import Config
from netclust.stream.detection.answers import Answer, Answers, Applied, Result
from netclust.stream.detection.drift import DriftWatch
from netclust.stream.detection.warm_up import WarmUp
from netclust.stream.sources.base import Arrival

DRIFT_NS = 3600 * 10**9
NOTICE_RECORDS = 2048
"""Notices of drift are told after so many records: at the same place, however the stream is cut."""

__all__ = ["Detector", "ModelChange", "Outcome", "RuleChange"]


class RuleChange(msgspec.Struct, frozen=True, kw_only=True):
    """A suppression rule begins, or ends (`rule` None), at an arrival number."""

    id: str
    from_tick: int
    rule: Suppression | None


class ModelChange(msgspec.Struct, frozen=True, kw_only=True):
    """Another model takes over at an arrival number: one that was in use before."""

    model: Model
    from_tick: int


Decision = Answer | RuleChange | ModelChange


@dataclass(eq=False)
class Outcome:
    """What became of some records, in order. `rows` are those of the arrival."""

    batch: Batch
    verdicts: Verdicts
    labels: list[str]  # of the linker, at that time
    rows: NDArray[np.int64]
    arrival: Arrival
    first_tick: int  # the arrival number of the first of them
    encoding: Encoding  # of the batch: another model may take over behind it
    events: list[Event] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)

    def shown(self, row: int) -> ShownRecord:
        """Return a record of the batch as it came, for people."""
        return self.encoding.shown(self.arrival.table, int(self.rows[row]))


class Detector:
    """A model, its linker, the book of alerts, and what people decided.

    `patient`: its sources wait while the model is fitted to the site; else that is done while records come.
    """

    def __init__(
        self,
        model: Model,
        config: Config,
        *,
        linker: Linker | None = None,
        names: Sequence[str] | None = None,
        patient: bool = True,
    ) -> None:
        self.config = config
        self.linker = linker or Linker(model, config.window.linker(), threads=config.window.threads)
        self.generation = 0
        self.shipped = model  # what a warm-up starts from, and where online updates of weights began
        names = [source.name for source in config.sources] if names is None else names
        self.book = AlertBook(config.alerts, source_names=names, categories=model.encoding.schema.category_of)
        self._clock = TrafficClock()
        self.rules: dict[str, Suppression] = {}
        self.counters: Counter[str] = Counter()
        self.drift = DriftWatch()
        self.answers = Answers(update_rate=config.model.update_rate if config.model.online_updates else 0.0)
        self.answers.start = model
        self.exemplars = Exemplars()
        self._due: list[Decision] = []
        self._held: list[AnomalousRows] = []  # not told in the warm-up of a file, in case it ends before that is over
        self._drift_reported: dict[str, int] = {}
        self._notices: list[Notice] = []  # to be told at the next multiple of NOTICE_RECORDS
        self._patient = patient
        self._warm_up = self._new_warm_up(model)
        self._configured: dict[str, Suppression] = {}
        self.configure(config)

    @property
    def model(self) -> Model:
        """The model in use: the one given, adapted to the site and steered by answers."""
        return self.linker.model

    @property
    def warming(self) -> bool:
        """Whether the site is still being learned."""
        return self._warm_up.active

    @property
    def warmth(self) -> float:
        """How far the warm-up has come, from 0 to 1."""
        return self._warm_up.progress

    def _new_warm_up(self, model: Model) -> WarmUp:
        warm = self.config.warmup
        return WarmUp(
            model,
            records=warm.records,
            references=warm.references,
            rate=self.config.model.false_alarm_rate,
            reserve=0 if self._patient else warm.records // 2,
        )

    def configure(self, config: Config) -> None:
        """Take over what can change while it runs: rules and alert settings."""
        rules = [suppression_of(rule, f"suppress {i}") for i, rule in enumerate(config.suppress, 1)]
        self._configured = {rule.id: rule for rule in rules}
        self.config = config
        self.book.configure(config.alerts)
        self._set_rules()

    def _set_rules(self) -> None:
        self.book.suppressions = SuppressionSet([*self._configured.values(), *self.rules.values()])

    def decide(self, decision: Decision) -> None:
        """Have a decision applied when its arrival number comes (now, if it has passed)."""
        self._due.append(decision)
        self._due.sort(key=lambda d: d.from_tick)

    def swap(self, model: Model) -> None:
        """Go on with another model, at this arrival number."""
        self.shipped = model
        self.answers.start = model
        self.linker = self.linker.with_model(model)
        self.generation += 1
        self.drift.restart()
        self.exemplars.clear()
        self._warm_up = self._new_warm_up(model)

    # Records

    def take(self, number: int, arrival: Arrival) -> list[Outcome]:
        """Link the records of an arrival of source `number`."""
        outcomes = []
        table = arrival.table
        at, n = 0, len(table)
        while True:
            results, events = self._apply_due()
            if at == n and not (results or events):
                break
            stop = n
            if self._due:
                stop = min(stop, at + max(self._due[0].from_tick - self.linker.tick, 0))
            if self.warming:
                stop = min(stop, at + self._warm_up.until_next)
            stop = min(stop, at + NOTICE_RECORDS - self.linker.tick % NOTICE_RECORDS)
            rows = np.arange(at, stop)
            part = table if stop - at == n else table[at:stop]
            batch = self.model.encoding.encode(part, self.linker.labels, delivered=True)
            batch.source[:] = number
            outcome = self._link(batch, rows, arrival)
            outcome.results[:0], outcome.events[:0] = results, events
            outcomes.append(outcome)
            at = stop
            if at == n and not self._due:
                break
        return outcomes

    def advance(self, now: int, arrival: Arrival) -> Outcome | None:
        """Let traffic time pass without records."""
        events = [*self.book.advance(now), *self.book.report_grown()]
        return self._nothing(arrival, events) if events else None

    def finish(self) -> list[Event]:
        """The stream is over: alerts close. If it was too short to learn the site from, what was held back is told."""
        return [*self.report_held(), *self.book.close_all("stopped")]

    @property
    def now(self) -> int:
        """The traffic time."""
        return self._clock.now

    def drop_held(self) -> None:
        """Forget what is held back while the site is learned: where a stream does not end, nobody tells it."""
        self._held.clear()

    def report_held(self) -> list[Event]:
        """Report what was held back while the site was learned: nothing more will come."""
        events: list[Event] = []
        if self.warming and self._held:
            message = "it ended before the site was learned: what was held back is told as it is"
            facts: dict[str, float | int | str | None] = {"records": sum(map(len, self._held))}
            key = f"short:{self.linker.tick}"
            events.append(Notice(topic="warmup", time=self._clock.now, key=key, message=message, facts=facts))
            for rows in self._held:
                events += self.book.take(replace(rows, clock=np.full(len(rows), self._clock.now)))
            self._held = []
        return events

    def _nothing(self, arrival: Arrival, events: Sequence[Event]) -> Outcome:
        batch = self.model.encoding.encode(arrival.table[:0], self.linker.labels)
        nobody, names = np.zeros(0, np.int64), self.linker.labels.names
        tick, encoding = self.linker.tick, self.model.encoding
        return Outcome(batch, Verdicts.empty(0), names, nobody, arrival, tick, encoding, events=list(events))

    def _link(self, batch: Batch, rows: NDArray[np.int64], arrival: Arrival) -> Outcome:
        first = self.linker.tick
        verdicts, evidence = self.linker.process_with_evidence(batch)
        outcome = Outcome(batch, verdicts, self.linker.labels.names, rows, arrival, first, self.model.encoding)
        alarming = evidence.rows
        clock = self._clock.run(batch.time)
        if self.warming:
            # Before the site is known only what is clearly a known attack is told.
            clear = (verdicts.verdict[alarming] != NOVEL) & clearly_attacks(self.shipped, batch[alarming])
            held, alarming = alarming[~clear], alarming[clear]
            self.counters["not_told_in_warmup"] += len(held)
            if self._patient and len(held):
                self._held.append(self._anomalous(outcome, evidence, held, clock[held]))
        if len(alarming):
            events = self.book.take(self._anomalous(outcome, evidence, alarming, clock[alarming]))
            self._keep_exemplars(events, batch, verdicts)
            outcome.events += events
        # Traffic time as the records tell it, not as the source has come: that depends on where arrivals are cut.
        outcome.events += self.book.advance(self._clock.now)
        time = int(batch.time.max(initial=-1))
        if self.warming:
            outcome.events += self._warm(batch, time)
        else:
            self._note_drift(self.drift.observe(verdicts, time))
        if self.linker.tick % NOTICE_RECORDS == 0 and self._notices:
            outcome.events += self._notices
            self._notices = []
        return outcome

    def _note_drift(self, found: Sequence[Notice]) -> None:
        """Count every change; tell of one kind at most once an hour of traffic time."""
        for notice in found:
            what = str(notice.facts.get("what", ""))
            self.counters[f"drift_{what}"] += 1
            last = self._drift_reported.get(what)
            if last is None or notice.time < 0 or not 0 <= notice.time - last < DRIFT_NS:
                self._drift_reported[what] = notice.time
                self._notices.append(notice)

    def _keep_exemplars(self, events: Sequence[AlertEvent], batch: Batch, verdicts: Verdicts) -> None:
        """Keep the records at which alerts were opened or told again."""
        for event in events:
            source, _, seq = event.alert.last_record.partition(":")
            if event.action == "close":
                continue
            for row in np.flatnonzero((batch.seq == np.uint64(int(seq))) & (batch.source == int(source))):
                self.exemplars.add(event.alert.id, int(verdicts.cluster[row]), batch.num[row], batch.code[row])

    def _anomalous(
        self, outcome: Outcome, evidence: Evidence, alarming: NDArray[np.int64], clock: NDArray[np.int64]
    ) -> AnomalousRows:
        """The alarming records as the book of alerts wants them; what is costly is made when it is asked for."""
        batch, verdicts, linker = outcome.batch, outcome.verdicts, self.linker
        context = outcome.arrival.context_of(outcome.rows[alarming])
        encoding = outcome.encoding

        def why(i: int) -> Explanation:
            return explain(linker, batch, verdicts, evidence, int(alarming[i]))

        def example(i: int) -> dict[str, float | str | None]:
            shown = outcome.shown(int(alarming[i])).values()
            return {**{name: str(column[i]) for name, column in context.items()}, **shown}

        symbols = {a.name: s for s, a in enumerate(encoding.schema.coded)}

        def column(*among: str) -> NDArray[np.object_] | None:
            for name in among:
                if name in context:
                    return context[name]
                if name in symbols:
                    return encoding.texts(outcome.arrival.table, outcome.rows[alarming], symbols[name])
            return None

        def symbolic(i: int) -> Mapping[str, str]:
            return {name: str(value) for name, value in example(i).items() if isinstance(value, str)}

        return AnomalousRows(
            source_id=batch.source[alarming],
            seq=batch.seq[alarming],
            time=batch.time[alarming],
            clock=clock,
            cluster=verdicts.cluster[alarming],
            kind=verdicts.verdict[alarming],
            label=[linker.labels.name(label) for label in verdicts.label[alarming].tolist()],
            score=verdicts.score[alarming],
            source=column("source"),
            destination=column("destination"),
            destination_port=column("destination_port"),
            protocol=column("protocol", "protocol_type"),
            service=column("service"),
            explain=why,
            example=example,
            attributes=symbolic,
        )

    def _warm(self, batch: Batch, time: int) -> list[Event]:
        """Count records in; at the end of the warm-up go on with the model that fits the site."""
        try:
            model = self._warm_up.take(batch)
        except InputError as error:  # hardly anything but attacks: better luck with the next records
            key, message = f"warmup-failed:{self.linker.tick}", f"the site could not be learned yet: {error}"
            return [Notice(topic="warmup", time=time, key=key, message=message)]
        if model is None:
            return []
        self.linker = self.linker.with_model(model)
        self.generation += 1
        self._held = []
        records = self._warm_up.records
        return [
            Notice(
                topic="warmup",
                time=time,
                key=f"warmup:{self.generation}:{self.linker.tick}",
                message=f"warmed up on {records:,} records of this site: alerts on what is new begin now",
                facts={"records": records, "not_told": self.counters["not_told_in_warmup"]},
            )
        ]

    # Decisions

    def _apply_due(self) -> tuple[list[Result], list[Event]]:
        """Apply what counts from the next record on."""
        results: list[Result] = []
        events: list[Event] = []
        while self._due and self._due[0].from_tick <= self.linker.tick:
            decision = self._due.pop(0)
            if isinstance(decision, ModelChange):
                self.linker = self.linker.with_model(decision.model)
                self.generation += 1
                self.drift.restart()
                results.append(Result(number=-1, from_tick=decision.from_tick))
                continue
            if isinstance(decision, RuleChange):
                self.rules.pop(decision.id, None)
                if decision.rule is not None:
                    self.rules[decision.id] = decision.rule
                self._set_rules()
                results.append(Result(number=-1, from_tick=decision.from_tick))
                continue
            before = self.linker
            about = [self.exemplars.of_alert(decision.alert), *map(self.exemplars.of_cluster, decision.clusters)]
            kept = [rows for rows in about if rows is not None]
            self.linker, result = self.answers.apply(decision, self.linker, kept)
            self.generation += self.linker is not before
            if self.linker.model.w is not before.model.w:
                self.drift.restart()  # scores are on another scale now
            if not result.refused and decision.undo is None:
                classes = len(self.model.encoding.labels)  # of a class of the model only these records were meant
                clusters = [cluster for cluster in decision.clusters if cluster >= classes]
                closed = self.book.labelled(decision.alert, decision.label in self.linker.labels.normal, clusters)
                events += closed
                result = msgspec.structs.replace(result, closed=tuple(event.alert.id for event in closed))
            results.append(result)
        return results, events

    def alert_counts(self) -> dict[tuple[str, ...], int]:
        """For metrics: what the book of alerts has opened, closed and held back, and what is open."""
        counters = self.book.counters
        counts: dict[tuple[str, ...], int] = {("open",): self.book.open_count}
        for kind, by_severity in counters.opened.items():
            counts |= {("opened", kind, severity): n for severity, n in by_severity.items()}
        counts |= {("closed", by): n for by, n in counters.closed.items()}
        counts |= {("suppressed", by): n for by, n in counters.suppressed_alerts.items()}
        return counts | {("records_suppressed", by): n for by, n in counters.suppressed_records.items()}

    # Restart

    def freeze(self) -> tuple[dict[str, Any], Arrays]:
        """What is remembered besides the linker and the model: facts for JSON, and arrays."""
        facts = {
            "book": self.book.state(),
            "drift": self.drift.state(),
            "rules": list(self.rules.values()),
            "answers": {str(number): done for number, done in self.answers.applied.items()},
            "pins": self.answers.pins,
            # A model that is asked for is looked up again in the store after a restart.
            "due": [
                {"answer": d} if isinstance(d, Answer) else {"rule": d}
                for d in self._due
                if not isinstance(d, ModelChange)
            ],
            "counters": dict(self.counters),
            "generation": self.generation,
            "warming": self._warm_up.left,
            "clock": self._clock,
            "notices": self._notices,
            "drift_told": self._drift_reported,
        }
        facts["exemplars"], kept = self.exemplars.state()
        arrays: Arrays = {**kept, **self._warm_up.state()}
        return msgspec.to_builtins(facts), arrays

    def restore(self, facts: dict[str, Any], arrays: Arrays, where: str) -> None:
        """Go on where a checkpoint was cut; the linker was given to the constructor."""
        try:
            state = msgspec.convert(facts, _Facts)
        except msgspec.ValidationError as error:
            raise ModelError(f"{where}: {error}") from None
        self.book.restore(state.book)
        self.drift.restore(state.drift)
        self.rules = {rule.id: rule for rule in state.rules}
        self.answers.applied = {int(number): done for number, done in state.answers.items()}
        self.answers.pins = state.pins
        self._due = [d.answer or d.rule for d in state.due if d.answer or d.rule]  # type: ignore[misc]
        self.counters = Counter(state.counters)
        self.generation = state.generation
        self._warm_up.restore(state.warming, arrays, where)
        self._clock = state.clock
        self._notices = state.notices
        self._drift_reported = state.drift_reported
        widths = (len(self.model.encoding.kept), len(self.model.encoding.widths))
        self.exemplars.restore(state.exemplars, arrays, widths, where)
        self._set_rules()


class _Due(msgspec.Struct):
    answer: Answer | None = None
    rule: RuleChange | None = None


class _Facts(msgspec.Struct, forbid_unknown_fields=True, rename={"drift_reported": "drift_told"}):
    book: dict[str, Any]
    drift: dict[str, Any]
    rules: list[Suppression]
    answers: dict[str, Applied]
    pins: int
    due: list[_Due]
    counters: dict[str, int]
    generation: int
    warming: int
    clock: TrafficClock
    exemplars: list[str] = []
    notices: list[Notice] = []
    drift_reported: dict[str, int] = {}
