"""A shard: the daemon's detector on one partition. `state, messages -> state, outputs`, with nothing outside of it.

Its output depends only on the order of messages in its partition. So a shard that goes on from a snapshot, on whichever
machine, says the same again, with the same numbers: whoever writes its outputs leaves out what was written before.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.models.network.train_network import train_network
>>> from netclust.stream.bus.record_messages import pack_records
>>> from netclust.stream.config import parse_config
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> text = '[sharding]\\ninput="memory://a/b"\\n[warmup]\\nrecords=0\\n[verdicts]\\nwhich="all"'
>>> shard = Shard(model, parse_config(text), 0, 1)
>>> body = pack_records(simulate(50, seed=2).table(), sensor="probe-1", stream="s1", source="eth0")
>>> outputs = shard.step([body, body])
>>> [(o.kind, o.number, o.body.count(b"\\n")) for o in outputs if o.kind == "verdicts"], shard.counters["duplicates"]
([('verdicts', 1, 50)], 50)
>>> Shard.restore(model, parse_config(text), shard.snapshot()).records
50
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.records.batch import Batch
from netclust.scoring.model import Model
from netclust.stream.alerts.alert_events import Alert, AlertEvent, Event, Notice
from netclust.stream.bus.record_messages import LabelMessage, RecordMessage, unpack_message
from netclust.stream.config import Config
from netclust.stream.detection.answers import Answer, Result
from netclust.stream.detection.detector import Detector, Outcome
from netclust.stream.sharding.messages import Member, verdict_messages
from netclust.stream.sharding.shard_state import ShardHeader, pack_shard, unpack_shard
from netclust.stream.sharding.streams import Streams
from netclust.stream.sinks.ecs import encode_ecs
from netclust.stream.sources.base import Arrival, empty_table

__all__ = ["MAX_LABELS_KNOWN", "Output", "Shard", "shard_linker_config"]

MAX_LABELS_KNOWN = 1024
"""Labels whose ids are remembered, so that they can be undone."""

MAX_BODY = 512 << 10
"""Verdicts of one message are cut in several if they are longer: NATS and Kafka take 1 MiB."""

Kind = Literal["verdicts", "events", "members"]
Seen = Callable[[Outcome], None]


class Output(NamedTuple):
    """A message to write: the `number`th of its kind, counted from 1."""

    kind: Kind
    number: int
    body: bytes


def shard_linker_config(config: Config, partition: int, partitions: int) -> LinkerConfig:
    """Return the daemon's window, as partition p of P."""
    window = msgspec.structs.replace(config.window, partitions=1)
    return msgspec.structs.replace(window.linker(), shard=(partition, partitions))


class Shard:
    """Partition `partition` of `partitions`. `seen` is shown every outcome, for metrics, and changes nothing."""

    def __init__(
        self, model: Model, config: Config, partition: int, partitions: int, *, seen: Seen | None = None
    ) -> None:
        if not 0 <= partition < partitions:
            raise InputError(f"partition {partition} of {partitions}: there is none")
        if partitions > 1 and model.encoding.schema.with_role("key") is None:
            raise InputError(f"schema {model.encoding.schema.name} has no key attribute, so there is 1 partition")
        self.config = config
        self.partition, self.partitions = partition, partitions
        self.configured = model
        self.detector = self._detector(Linker(model, shard_linker_config(config, partition, partitions)))
        self.streams = Streams()
        self.counters: Counter[str] = Counter()
        self.numbers: dict[str, int] = {"verdicts": 0, "events": 0, "members": 0}
        self.labels: dict[str, int] = {}  # ids of labels, and their numbers
        self.labels_taken = 0
        self.seen = seen
        self.unreadable = ""  # why the last message that was passed over was
        self._where = f"shard {partition} of {partitions}"

    def _detector(self, linker: Linker) -> Detector:
        # Patient: a partition waits while the site is learned, and then nothing depends on how long that takes.
        return Detector(self.configured, self.config, linker=linker, names=[], patient=True)

    @property
    def records(self) -> int:
        """Records judged so far."""
        return self.detector.linker.tick

    def step(self, messages: Sequence[bytes]) -> list[Output]:
        """Take the next messages of the partition and return what is to be written. Unreadable ones are counted."""
        outputs: list[Output] = []
        for body in messages:
            self.counters["messages"] += 1
            try:
                message = unpack_message(body, self.configured.encoding.schema, self._where)
            except InputError as error:
                self.counters["unreadable"] += 1
                self.unreadable = str(error)
                continue
            outcomes = self.take(message)
            # One message for one, so that how many are taken at a time does not show in what is written.
            self._collect(outputs, outcomes)
        return outputs

    def take(self, message: RecordMessage | LabelMessage) -> list[Outcome]:
        """What became of one message."""
        if isinstance(message, LabelMessage):
            return self._answer(message)
        table = message.table
        ours = table.key % np.uint64(self.partitions) == self.partition
        if not ours.all():
            self.counters["wrong_lane"] += int((~ours).sum())
            table = table[ours]
        number, old = self.streams.fresh(message.sensor, message.stream, message.source, table.seq)
        self.detector.book.source_names = self.streams.names()
        if old:
            self.counters["duplicates"] += old
            table = table[old:]
        if not len(table):
            return []
        self.counters["records"] += len(table)
        return self._detect(number, Arrival(table, None, 0.0))

    def _detect(self, number: int, arrival: Arrival) -> list[Outcome]:
        outcomes = self.detector.take(number, arrival)
        self.detector.drop_held()  # a partition does not end: nothing is told in the end
        if self.seen is not None:
            for outcome in outcomes:
                self.seen(outcome)
        return outcomes

    # Labels

    def _answer(self, message: LabelMessage) -> list[Outcome]:
        """Apply a person's label where it concerns this shard; every shard gets all labels, in partition order."""
        linker = self.detector.linker
        if message.id in self.labels:
            self.counters["duplicates"] += 1
            return []
        self.labels_taken += 1
        self.labels[message.id] = self.labels_taken
        while len(self.labels) > MAX_LABELS_KNOWN:
            del self.labels[next(iter(self.labels))]
        answer = self._meant(message)
        if answer is None:
            if message.label:
                with contextlib.suppress(InputError):  # no room: the shard that it concerns says so
                    linker.labels.add(message.label)  # labels have the same numbers in all shards
            return []
        self.detector.decide(answer)
        outcomes = self._detect(0, Arrival(empty_table(linker.model.encoding.schema), None, 0.0))
        for outcome in outcomes:
            outcome.events += [_feedback_notice(message, result, self.detector.now) for result in outcome.results]
        return outcomes

    def _meant(self, message: LabelMessage) -> Answer | None:
        """The answer to give the detector; None: others are concerned."""
        linker = self.detector.linker
        number, tick = self.labels[message.id], linker.tick
        if message.undo is not None:
            undone = self.labels.get(message.undo, -1)
            return (
                Answer(number=number, from_tick=tick, undo=undone) if undone in self.detector.answers.applied else None
            )
        if message.cluster is not None:
            classes = len(self.configured.encoding.labels)
            of = (message.cluster - classes) % self.partitions if message.cluster >= classes else 0
            if of != self.partition:
                return None
            return Answer(number=number, from_tick=tick, label=message.label, clusters=(message.cluster,))
        place = message.record
        if place is not None:
            for stream in self.streams.numbers(place.sensor, place.source, place.stream):
                record = f"{stream}:{place.seq}"
                if len(linker.members(record_id=record)[0]):
                    return Answer(number=number, from_tick=tick, label=message.label, records=(record,))
        return None

    # Outputs

    def _collect(self, outputs: list[Output], outcomes: Sequence[Outcome]) -> None:
        which = self.config.verdicts.which
        lines = b"".join(verdict_messages(o, self.streams, self.partition, which) for o in outcomes)
        while lines:
            end = len(lines) if len(lines) <= MAX_BODY else lines.rfind(b"\n", 0, MAX_BODY) + 1 or len(lines)
            outputs.append(self._numbered("verdicts", lines[:end]))
            lines = lines[end:]
        for outcome in outcomes:
            for event in outcome.events:
                outputs.append(self._numbered("events", encode_ecs(self._named(event), f"shard-{self.partition}")))
                if isinstance(event, AlertEvent):
                    outputs += [self._numbered("members", member.pack()) for member in self._members(event.alert)]

    def _numbered(self, kind: Kind, body: bytes) -> Output:
        self.numbers[kind] += 1
        return Output(kind, self.numbers[kind], body)

    def _named(self, event: Event) -> Event:
        """An event whose records are named as everybody knows them."""
        if not isinstance(event, AlertEvent):
            return msgspec.structs.replace(event, key=f"{self.partition}:{event.key}")
        alert, record = event.alert, self.streams.record
        named = msgspec.structs.replace(
            alert,
            first_record=record(alert.first_record),
            last_record=record(alert.last_record),
            normal_record=record(alert.normal_record),
            record_ids=[record(one) for one in alert.record_ids],
            explanation=self.streams.text(alert.explanation),
        )
        return msgspec.structs.replace(event, alert=named)

    def _members(self, alert: Alert) -> list[Member]:
        """The clusters of an alert, as far as one of their records is at hand."""
        linker, kept = self.detector.linker, self.detector.exemplars
        classes = len(self.configured.encoding.labels)
        members = []
        for cluster in alert.clusters:
            novel = cluster >= classes
            rows = kept.of_cluster(cluster) if novel else kept.of_alert(alert.id)
            summary = linker.cluster(cluster)
            if rows is None or summary is None:
                continue
            num, code = rows[0][-1], rows[1][-1]
            label = summary.label
            if not novel and label != alert.label:
                continue  # an alert is one member: told as each of its attacks in turn, it would go back and forth
            is_normal = label in linker.labels.normal
            members.append(
                Member(
                    partition=self.partition,
                    id=f"c{cluster}" if novel else alert.id,
                    cluster=cluster,
                    kind="normal" if is_normal else "novel" if novel and label == "novel" else "known_attack",
                    label=label,
                    alert=alert.id,
                    entity=alert.entity,
                    sensor=alert.source.partition("/")[0],
                    records=summary.records if novel else alert.records,
                    first_time=summary.first_time if novel else alert.first_seen,
                    last_time=summary.last_time if novel else alert.last_seen,
                    root=self._root(num, code),
                    num=num.tolist(),
                    code=code.tolist(),
                )
            )
        return members

    def _root(self, num: NDArray[np.float32], code: NDArray[np.uint16]) -> float:
        return float(self.detector.model.root_scores(Batch(num=num[None], code=code[None]))[0])

    # Snapshot

    def snapshot(self) -> bytes:
        """Everything that the next output depends on, the model included; no pickle."""
        detector = self.detector
        facts, arrays = detector.freeze()
        header = ShardHeader(
            partition=self.partition,
            partitions=self.partitions,
            configured=self.configured.fingerprint,
            window=msgspec.to_builtins(self.config.window),
            detector=facts,
            streams=self.streams.state(),
            given_up=self.streams.given_up,
            counters=dict(self.counters),
            numbers=self.numbers,
            labels=self.labels,
            labels_taken=self.labels_taken,
        )
        return pack_shard(header, detector, arrays)

    @classmethod
    def restore(cls, model: Model, config: Config, snapshot: bytes, *, seen: Seen | None = None) -> Shard:
        """Go on where a snapshot was taken. Under another configured model the site is learned anew."""
        opened = unpack_shard(snapshot)
        header, where = opened.header, opened.where
        shard = cls(model, config, header.partition, header.partitions, seen=seen)
        same = header.configured == model.fingerprint
        # What was written is counted on, whatever else changes: numbers must not be given twice.
        shard.counters = Counter(header.counters)
        shard.numbers = dict(header.numbers)
        shard.labels, shard.labels_taken = dict(header.labels), header.labels_taken
        shard.streams.restore(header.streams, where)
        shard.streams.given_up = header.given_up
        if not same and not opened.has_model:
            shard.counters["begun_anew"] += 1  # by another model: nothing that was learned fits it
            return shard
        used = opened.model(model)
        wanted = shard_linker_config(config, header.partition, header.partitions)
        linker = opened.linker(used, wanted.shard)
        if header.window != msgspec.to_builtins(config.window):
            shard.counters["begun_anew"] += 1
            linker = linker.with_model(used, wanted)
        detector = shard._detector(linker)
        detector.restore(header.detector, opened.detector_arrays(), where)
        detector.book.source_names = shard.streams.names()
        shard.detector = detector
        if not same:
            shard.counters["begun_anew"] += 1
            detector.swap(model)
        return shard


def _feedback_notice(message: LabelMessage, result: Result, time: int) -> Notice:
    """Return the notice of what came of a label."""
    what = f"label {message.id}" if message.undo is None else f"undoing of label {message.undo}"
    done = (
        f"refused: {result.refused}"
        if result.refused
        else f"covers {result.covered} record{'' if result.covered == 1 else 's'}"
    )
    facts: dict[str, float | int | str | None] = {
        "label": message.label, "by": message.by, "covered": result.covered, "pinned": result.pinned,
        "refused": result.refused or None,
    }  # fmt: skip
    return Notice(topic="feedback", time=time, key=f"label:{message.id}", message=f"{what} {done}", facts=facts)
