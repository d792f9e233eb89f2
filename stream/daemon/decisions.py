"""What people decide, from the store to the detector: labels, their undoing, suppression rules; and what came of them.

A decision is given the arrival number from which it counts, and what it is about then, in the store before it is
applied: after a crash the replay applies it at the same place.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from netclust.errors import InputError, NetclustError
from netclust.stream.alerts.suppression import suppression_of
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.detection.answers import Answer, Result
from netclust.stream.detection.detector import Detector, ModelChange, RuleChange
from netclust.stream.logs import Log
from netclust.stream.store.store import Store, StoreError
from netclust.stream.store.store_rows import LabelRow, SuppressionRow
from netclust.stream.telemetry.telemetry import Telemetry

POLL_SECONDS = 0.25
ROLLBACK = "rollback"
"""Under this name the store keeps which model was asked for."""
ATTACK = "attack:"


class Decisions:
    """Follows the store for new decisions."""

    def __init__(
        self,
        store: Store,
        detector: Detector,
        telemetry: Telemetry,
        log: Log,
        *,
        archive: ModelArchive,
        label_seq: int = 0,
        rollback: int = 0,
    ) -> None:
        self.label_seq = label_seq
        self.rollback = rollback  # the last one that was taken up
        self._archive = archive
        self._store = store
        self._detector = detector
        self._telemetry = telemetry
        self._log = log
        self._version: int | None = None
        self._polled = 0.0
        self._requested: set[str] = set()  # rule changes that wait for their arrival number
        self._hidden: dict[str, int] = {}

    def look_now(self) -> None:
        """Let the next `poll` look, however soon it comes. From any thread."""
        self._polled = 0.0

    def poll(self) -> None:
        """Take up what was decided since, if it is time to look."""
        now = time.monotonic()
        if now - self._polled < POLL_SECONDS:
            return
        self._polled = now
        try:
            version = self._store.data_version()
            if version == self._version:
                return
            self._labels()
            self._rules()
            self._rollback()
            self._version = version  # what was decided meanwhile is read the next time
        except (StoreError, NetclustError) as error:
            self._log.error("decisions could not be read", why=str(error))

    def _labels(self) -> None:
        for row in self._store.labels(after=self.label_seq):
            answer = self._answer(row)
            if answer is not None:
                self._detector.decide(answer)
            self.label_seq = row.label_seq

    def _answer(self, row: LabelRow) -> Answer | None:
        """The answer that a row stands for; it is decided now what it is about, unless that was done before a crash."""
        known = row.from_tick is not None and isinstance(row.linker_event, dict)
        if row.status == "refused":
            return None
        try:
            about: dict[str, Any] = row.linker_event if known else self._resolve(row)
            tick = row.from_tick if row.from_tick is not None else self._detector.linker.tick
            answer = msgspec.convert({"number": row.label_seq, "from_tick": tick, **about}, Answer)
        except (InputError, msgspec.ValidationError, ValueError) as error:
            self._store.label_result(row.label_seq, status="refused", reason=str(error))
            self._telemetry.feedback("undo" if row.target_kind == "undo" else "label", False)
            return None
        if not known:
            self._store.label_result(row.label_seq, status="pending", from_tick=tick, linker_event=about)
        return answer

    def _resolve(self, row: LabelRow) -> dict[str, Any]:
        if row.target_kind == "undo":
            return {"undo": int(row.target)}
        name = row.label.removeprefix(ATTACK) if row.label.startswith(ATTACK) else self._detector.linker.normal_label
        if row.label.startswith(ATTACK) and name in self._detector.linker.labels.normal:
            raise InputError(f"{name!r} is a word for normal in this model: it cannot be the name of an attack")
        if row.target_kind == "cluster":
            return {"label": name, "clusters": [int(row.target)]}
        if row.target_kind == "record":
            return {"label": name, "records": [row.target]}
        alert = self._detector.book.find(row.target) or self._store.alert(row.target)
        classes = len(self._detector.model.encoding.labels)
        clusters = [cluster for cluster in alert.clusters if cluster >= classes]
        return {
            "label": name,
            "clusters": clusters,
            "records": alert.record_ids if not clusters else [],
            "alert": alert.id,
        }

    def _rules(self) -> None:
        for row in self._store.suppressions(active_only=False):
            active = row.removed_at is None
            token = f"{row.id}:{active}"
            if active != (row.id in self._detector.rules) and token not in self._requested:
                self._requested.add(token)
                self._change(row, active)

    def _change(self, row: SuppressionRow, active: bool) -> None:
        recorded = row.from_tick if active else row.removed_tick
        tick = self._detector.linker.tick if recorded is None else recorded
        try:
            rule = suppression_of(row.config(), row.id, origin="people", rule_id=row.id) if active else None
        except InputError as error:
            self._log.error("a suppression rule cannot be used", rule=row.id, why=str(error))
            return
        if recorded is None:
            self._store.suppression_result(row.id, tick)
        self._detector.decide(RuleChange(id=row.id, from_tick=tick, rule=rule))

    def _rollback(self) -> None:
        requested = self._store.meta(ROLLBACK)
        if not isinstance(requested, dict) or int(requested.get("number", 0)) <= self.rollback:
            return
        self.rollback = int(requested["number"])
        try:
            model = self._archive.load(str(requested["fingerprint"]))
        except (InputError, KeyError) as error:
            self._log.error("rollback refused", why=str(error))
            return
        recorded = requested.get("from_tick")
        tick = self._detector.linker.tick if recorded is None else int(recorded)
        self._store.set_meta(ROLLBACK, {**requested, "from_tick": tick})
        self._detector.decide(ModelChange(model=model, from_tick=tick))
        self._log.info("rolls back to an earlier model", model=model.fingerprint[:12], from_record=tick)

    def done(self, results: list[Result]) -> list[LabelRow]:
        """Write down what came of labels: as they are now."""
        rows: list[LabelRow] = []
        for result in results:
            if result.number < 0:
                continue
            refused = result.refused
            reason = refused or (f"{result.pinned} pinned" if result.pinned > 0 else "")
            if not refused and not result.covered and not result.pinned:
                reason = "nothing that it is about can still be linked to: it changes nothing"
            self._telemetry.feedback("label", not refused)
            try:
                row = self._store.label_result(
                    result.number,
                    status="refused" if refused else "applied",
                    covered=result.covered,
                    from_tick=result.from_tick,
                    reason=reason,
                    effect={"pinned": result.pinned, "closed": list(result.closed)},
                )
                rows.append(row)
            except (StoreError, InputError) as error:
                self._log.error("the result of a label could not be stored", label=result.number, why=str(error))
            self._log.info(
                "label refused" if refused else "label applied", label=result.number, covered=result.covered, why=reason
            )
        return rows

    def newly_hidden(self) -> dict[str, int]:
        """How many records each rule of people has hidden since the last time."""
        found = {}
        for rule, count in self._detector.book.suppressions.counts.items():
            new = count - self._hidden.get(rule, 0)
            if new > 0 and rule in self._detector.rules:
                found[rule] = new
            self._hidden[rule] = count
        return found
