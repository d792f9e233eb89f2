"""Answers: what people say of alerts, clusters and records, as the detector applies it between two records.

An answer names the clusters and records that it is about as they were when the daemon took it up, and the arrival
number from which it counts, so that a replay after a crash applies it at the same place. Members that it covers keep
steering as pinned referents after they have left the window, where its label is a class of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.linker import Linker
from netclust.linking.weight_updates import update_weights
from netclust.records.batch import Batch, concat_batches
from netclust.scoring.model import Model
from netclust.stream.alerts.exemplars import Rows

PINS_AN_ANSWER = 8
MAX_PINS = 4096
MAX_ANSWERS = 1024
"""How many answers can still be undone."""


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """A label, or the undoing of one (`undo`: its number). `label` is a class name; the model's word for normal."""

    number: int
    from_tick: int
    label: str = ""
    clusters: tuple[int, ...] = ()
    records: tuple[str, ...] = ()
    alert: str = ""
    undo: int | None = None


class Result(msgspec.Struct, kw_only=True, frozen=True):
    """What came of it: how many referents it changed, how many were pinned; or why not."""

    number: int
    from_tick: int
    covered: int = 0
    pinned: int = 0
    refused: str = ""
    closed: tuple[str, ...] = ()  # alerts


class Applied(msgspec.Struct, kw_only=True):
    """What is needed to undo an answer."""

    events: list[int] = msgspec.field(default_factory=list)
    pins: list[int] = msgspec.field(default_factory=list)  # indices in the reference set


class Answers:
    """Applies answers to a linker; gives back the linker to go on with, since pins make a new model."""

    def __init__(self, *, update_rate: float = 0.0, start: Model | None = None) -> None:
        self.applied: dict[int, Applied] = {}
        self.pins = 0
        self.update_rate = update_rate
        self.start = start  # where online updates of the weights began

    def apply(self, answer: Answer, linker: Linker, exemplars: Sequence[Rows] = ()) -> tuple[Linker, Result]:
        """Bring an answer into force on the next record; `exemplars` are records that it is about and were kept."""
        try:
            if answer.undo is not None:
                return linker, self._undo(answer, linker)
            return self._label(answer, linker, exemplars)
        except InputError as error:
            return linker, Result(number=answer.number, from_tick=answer.from_tick, refused=str(error))

    def _label(self, answer: Answer, linker: Linker, exemplars: Sequence[Rows]) -> tuple[Linker, Result]:
        classes = len(linker.model.encoding.labels)
        clusters = [c for c in answer.clusters if c >= classes and linker.knows_cluster(c)]
        # A class of the model is more than this alert: its pinned referents keep their label.
        if answer.clusters and not clusters and not answer.records and not exemplars:
            known = [c for c in answer.clusters if c < classes]
            why = "is a class of the model: label an alert or records of it" if known else "is not known, or forgotten"
            raise InputError(f"cluster {answer.clusters[0]} {why}")
        members = [
            *exemplars,
            *(linker.members(cluster=c) for c in clusters),
            *(linker.members(record_id=r) for r in answer.records),
        ]
        num = np.concatenate([m[0] for m in members]) if members else np.zeros((0, 0), np.float32)
        code = np.concatenate([m[1] for m in members]) if members else np.zeros((0, 0), np.uint16)
        if self.update_rate:
            linker = self._steer(answer, linker, num, code)
        done = Applied()
        covered = 0
        for event in [linker.label_cluster(c, answer.label) for c in clusters] + [
            linker.label_record(r, answer.label) for r in answer.records
        ]:
            done.events.append(event.event)
            covered += event.covered
        if exemplars:
            num, code = exemplars[0]
        linker, done.pins = self._pin(linker, num, code, answer.label)
        self.applied[answer.number] = done
        while len(self.applied) > MAX_ANSWERS:
            del self.applied[next(iter(self.applied))]
        return linker, Result(number=answer.number, from_tick=answer.from_tick, covered=covered, pinned=len(done.pins))

    def _pin(
        self, linker: Linker, num: NDArray[np.float32], code: NDArray[np.uint16], label: str
    ) -> tuple[Linker, list[int]]:
        """Keep some of the members as pinned referents: the newest, and others evenly spread before it."""
        model = linker.model
        room = min(PINS_AN_ANSWER, MAX_PINS - self.pins, len(num))
        if room <= 0 or label not in model.encoding.labels:
            return linker, []
        rows = np.unique(np.linspace(0, len(num) - 1, room).round().astype(np.int64))
        first = len(model.reference)
        pins = Batch(
            num=num[rows],
            code=code[rows],
            label=np.full(len(rows), model.encoding.labels.index(label), np.int32),
            seq=np.zeros(len(rows), np.uint64),
        )
        self.pins += len(rows)
        return linker.with_model(replace(model, reference=concat_batches([model.reference, pins]))), list(
            range(first, first + len(rows))
        )

    def _steer(self, answer: Answer, linker: Linker, num: NDArray[np.float32], code: NDArray[np.uint16]) -> Linker:
        """Move the weights by the newest member, where both sides have a referent."""
        if not len(num):
            return linker
        record = (num[-1], code[-1])
        verdict = linker.score_only(Batch(num=num[-1:], code=code[-1:]))
        ends = [linker.find_referent(int(at[0])) for at in (verdict.normal_at, verdict.other_at)]
        normal, other = ends
        if normal is None or other is None:
            return linker
        right, wrong = (normal, other) if answer.label in linker.labels.normal else (other, normal)
        model = update_weights(
            linker.model, record, right, wrong, rate=self.update_rate, start=self.start or linker.model
        )
        return linker.with_model(model)

    def _undo(self, answer: Answer, linker: Linker) -> Result:
        done = self.applied.pop(answer.undo if answer.undo is not None else -1, None)
        if done is None:
            raise InputError(f"label {answer.undo} is not known, was undone already, or is too old to be undone")
        covered = 0
        for event in reversed(done.events):
            try:
                covered += linker.undo(event).covered
            except InputError:
                continue  # the linker has forgotten it: it stays in force on what is left of it
        linker.withhold_references(done.pins)
        return Result(number=answer.number, from_tick=answer.from_tick, covered=covered, pinned=-len(done.pins))
