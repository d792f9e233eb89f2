"""Active learning: which few records of a stream a person should label, and what follows from each answer.

An answer is worth most where many records are alike, what is known lies far from them, and the nearest known things
disagree. Known are the reference set and the answers so far: every remembered record has a nearest known normal
one and a nearest known other one (or the root). A candidate's worth is the sum, over the latest records, of how much
nearer it would be to them than what they have now, each by its doubt, exp(-margin / (`doubt` * the median margin)). One
is chosen at a time, and what is asked already counts as known, so that two questions are never about the same thing.

An answer holds for the record, for its cluster if that hangs on the root (the first answer about it), and for the
remembered records that are nearer to it than to anything else known: their label is inferred, not given. A class of the
model is never labelled as a whole. As always verdicts do not change: answers count for later records.

What is learned early serves for longer: of the first `horizon` records, t may cost `budget` * sqrt(t * `horizon`)
questions, which at `horizon` is `budget` of the records, and stays so.

>>> from netclust.models.network.train_network import TrainParams, train_network
>>> from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
>>> from netclust.linking.linker import Linker, LinkerConfig
>>> model = train_network(simulate(2000, seed=1).table(), TrainParams(epochs=1), seed=0)
>>> linker = Linker(model, LinkerConfig.stream(referent_window=2000))
>>> active_learner = ActiveLearner(linker, budget=0.01, horizon=2000)
>>> today = simulate(2000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK))
>>> batch = model.encoding.encode(today.table())
>>> for start in range(0, 2000, 100):
...     part = batch[start : start + 100]
...     for record in active_learner.observe(part, linker.process(part)):
...         events = active_learner.answer(record, str(today.label[int(record.split(":")[1])]))
>>> active_learner.asked, active_learner.waiting
(20, 0)
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.feedback import LabelEvent
from netclust.linking.linker import Linker
from netclust.linking.verdicts import Verdicts
from netclust.records.batch import Batch
from netclust.scoring.model import Model

__all__ = ["ActiveLearner", "allowance", "pair_scores"]

Choice = Literal["worth", "random"]
MOST_ANSWERS = 10_000
"""So many answers, and questions that wait, are remembered: the oldest is given up."""
MOST_RECORDS = 50_000
"""And so many records, however long the referent window is: an answer reaches no older ones."""
NEVER = np.float32(-np.inf)


def allowance(budget: float, records: int, horizon: int) -> float:
    """How many questions so many records allow: more of them at first, `budget` of the records from `horizon` on.

    >>> allowance(0.01, 100, 10_000), allowance(0.01, 10_000, 10_000), allowance(0.01, 20_000, 10_000)
    (10.0, 100.0, 200.0)
    """
    return budget * math.sqrt(records * max(records, horizon))


def pair_scores(model: Model, referents: Batch, records: Batch) -> NDArray[np.float32]:
    """The score of every record (a column) with every referent (a row), as the linker has it but for rounding.

    >>> from netclust.shipped.loading import load_shipped
    >>> model = load_shipped("kdd")
    >>> pair_scores(model, model.reference[:3], model.reference[:5]).shape
    (3, 5)
    """
    scorer = model.scorer
    scores = np.full((len(referents), len(records)), scorer.base, np.float32)
    for f in np.flatnonzero(scorer.slope):
        apart = np.abs(referents.num[:, f, None] - records.num[None, :, f])
        np.minimum(apart, scorer.far[f], out=apart)
        apart *= scorer.slope[f]
        scores += apart
    for s, offset in enumerate(scorer.offset):
        ours, theirs = referents.code[:, s], records.code[:, s]
        scores += scorer.other[offset + ours][:, None] + scorer.own[offset + theirs][None, :]
        same = (ours[:, None] == theirs[None, :]) & (ours != 0)[:, None]
        scores += np.where(same, scorer.match[offset + theirs][None, :], np.float32(0))
    return scores


class ActiveLearner:
    """A learner beside a linker: it chooses questions and takes the answers. One `observe` after every `process`.

    `budget`: questions, as a share of the records; `horizon`: see above. It chooses after every `every` records among
    `candidates` of the `recent` ones, half of them the most doubtful, half drawn by their doubt. It remembers as many
    records as the linker's referent window has, 50,000 at most. What it chooses does not depend on how the stream is
    cut into batches.
    `choice` "random" draws among the last `every` records instead, for comparison.
    """

    def __init__(
        self,
        linker: Linker,
        budget: float = 0.01,
        *,
        horizon: int = 20_000,
        every: int = 50,
        recent: int = 2000,
        candidates: int = 64,
        doubt: float = 0.5,
        choice: Choice = "worth",
        seed: int = 0,
    ) -> None:
        if not 0 <= budget <= 1:
            raise InputError(f"budget is the share of records to ask about, 0 to 1, not {budget}")
        if min(horizon, every, recent, candidates) < 1 or not 0 < doubt < math.inf or seed < 0:
            raise InputError("horizon, every, recent and candidates are 1 or more, doubt above 0, a seed 0 or more")
        if not linker.config.referent_window:
            raise InputError("answers reach later records by the referent window: this linker has none")
        self.linker, self.budget, self.horizon, self.every = linker, budget, horizon, every
        self.recent, self.candidates, self.doubt, self.choice = recent, candidates, doubt, choice
        self.seen = self.asked = self.answered = 0
        self._rng = np.random.default_rng(seed)
        self._known = _Known(linker)
        self._memory = _Memory(linker.model.reference, min(linker.config.referent_window, MOST_RECORDS))
        self._named: set[int] = set()  # clusters that were labelled as a whole

    @property
    def waiting(self) -> int:
        """How many questions have no answer yet."""
        return int(self._known.waits.sum())

    def observe(self, batch: Batch, verdicts: Verdicts) -> list[str]:
        """Take note of records and what the linker said of them; the ids of those to ask about now."""
        if len(batch) != len(verdicts):
            raise InputError(f"{len(batch)} records and {len(verdicts)} verdicts: observe what process gave back")
        chosen: list[str] = []
        start = 0
        while start < len(batch):
            stop = min(start + self.every - self.seen % self.every, len(batch))
            part = batch[start:stop]
            said = verdicts.anomalous[start:stop]
            self._memory.add(part, said, verdicts.cluster[start:stop], *self._known.nearest(part))
            self.seen += stop - start
            start = stop
            if self.seen % self.every == 0:
                chosen += self._choose()
        return chosen

    def answer(self, record_id: str, label: str) -> list[LabelEvent]:
        """What a person said of a record that was asked about: into force at once, for it and what is nearest to it."""
        known, memory, linker = self._known, self._memory, self.linker
        at = known.find(record_id)
        if at is None:
            raise InputError(f"{record_id}: not asked about, or answered already, or too long ago")
        normal = label in linker.labels.normal
        events: list[LabelEvent] = []
        cluster = int(known.cluster[at])
        if cluster >= len(linker.model.encoding.labels) and cluster not in self._named:
            events.append(linker.label_cluster(cluster, label))
            self._named.add(cluster)
            memory.said[memory.cluster == cluster] = not normal
        scores = pair_scores(linker.model, known.records[at : at + 1], memory.records)[0]
        alike = (scores > np.maximum(memory.normal, memory.other)) & (memory.said == normal) & ~memory.asked
        events.append(linker.label_record(record_id, label))
        events += [linker.label_record(memory.records.record_id(int(i)), label) for i in np.flatnonzero(alike)]
        memory.said[alike | memory.is_record(record_id)] = not normal
        best = memory.normal if normal else memory.other
        np.maximum(best, scores, out=best)
        known.add_answer(at, normal)
        self.answered += 1
        return events

    def _choose(self) -> list[str]:
        room = int(allowance(self.budget, self.seen, self.horizon) - self.asked + 1e-9)
        chosen: list[str] = []
        for _ in range(room):
            at = self._draw() if self.choice == "random" else self._best()
            if at is None:
                break
            memory = self._memory
            one = memory.records[at : at + 1]
            self._known.add_question(one, int(memory.cluster[at]))
            memory.asked[at] = True
            np.maximum(memory.waits, pair_scores(self.linker.model, one, memory.records)[0], out=memory.waits)
            self.asked += 1
            chosen.append(one.record_id(0))
        return chosen

    def _draw(self) -> int | None:
        free = np.flatnonzero(~self._memory.asked[-self.every :])
        first = len(self._memory) - min(self.every, len(self._memory))
        return int(first + self._rng.choice(free)) if len(free) else None

    def _best(self) -> int | None:
        """The candidate that most doubt would be settled by."""
        memory = self._memory
        first = max(0, len(memory) - self.recent)
        free = np.flatnonzero(~memory.asked[first:])
        if not len(free):
            return None
        normal, other, waits = memory.normal[first:], memory.other[first:], memory.waits[first:]
        nearest = np.maximum(normal, other)
        margin = np.abs(other.astype(np.float64) - normal)
        doubt = np.exp(-margin / (self.doubt * max(float(np.median(margin)), 1e-9)))
        half = self.candidates // 2
        if len(free) > self.candidates:
            open_yet = np.where(waits[free] < nearest[free], doubt[free], 0.0)  # not what a question is out for
            top = free[np.argsort(-open_yet, kind="stable")[: self.candidates - half]]
            weight = doubt[free] + 1e-12
            free = np.union1d(top, self._rng.choice(free, half, replace=False, p=weight / weight.sum()))
        latest = memory.records[first:]
        nearer = pair_scores(self.linker.model, latest[free], latest) - np.maximum(nearest, waits)
        worth = np.maximum(nearer, 0) @ doubt
        return int(first + free[np.argmax(worth)])


class _Known:
    """The reference set, what was answered, and what was asked (`waits`)."""

    def __init__(self, linker: Linker) -> None:
        self.model = linker.model
        self.first = len(linker.model.reference)
        reference = linker.model.reference
        n = len(reference)
        self.records = Batch(num=reference.num, code=reference.code)
        self.normal = linker.labels.is_normal[reference.label]
        self.waits = np.zeros(n, np.bool_)
        self.cluster = reference.label.astype(np.int64)

    def nearest(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """The best score of every record with a normal known one, with another or the root, and with what waits."""
        scores = pair_scores(self.model, self.records, batch)
        found = [scores[of].max(0, initial=NEVER) for of in (self.normal & ~self.waits, ~self.normal & ~self.waits)]
        return found[0], np.maximum(found[1], self.model.root_scores(batch)), scores[self.waits].max(0, initial=NEVER)

    def add_question(self, one: Batch, cluster: int) -> None:
        """Add a question; beyond the bound the oldest question or answer is given up."""
        if len(self.records) - self.first >= MOST_ANSWERS:
            keep = np.arange(len(self.records)) != self.first
            self.records, self.normal = self.records[keep], self.normal[keep]
            self.waits, self.cluster = self.waits[keep], self.cluster[keep]
        self.records = _joined(self.records, one)
        self.normal, self.waits = np.append(self.normal, False), np.append(self.waits, True)
        self.cluster = np.append(self.cluster, cluster)

    def find(self, record_id: str) -> int | None:
        """Where a record is that waits for its answer."""
        found = (int(at) for at in np.flatnonzero(self.waits) if self.records.record_id(int(at)) == record_id)
        return next(found, None)

    def add_answer(self, at: int, normal: bool) -> None:
        """Add the answer to a question."""
        self.normal[at], self.waits[at] = normal, False


class _Memory:
    """The last records: their nearest known ones, and what side the linker has them on."""

    def __init__(self, like: Batch, most: int) -> None:
        self.most = most
        self.records = Batch(num=like.num[:0], code=like.code[:0])
        self.said, self.asked = np.zeros(0, np.bool_), np.zeros(0, np.bool_)
        self.cluster = np.zeros(0, np.int64)
        self.normal, self.other, self.waits = (np.zeros(0, np.float32) for _ in range(3))

    def __len__(self) -> int:
        return len(self.said)

    def add(self, batch: Batch, *columns: NDArray[Any]) -> None:
        """Records with: whether they were anomalous, their clusters, and their nearest known ones."""
        said, cluster, normal, other, waits = columns
        last = slice(-self.most, None)
        self.records = _joined(self.records, batch)[last]
        self.said = np.append(self.said, said)[last]
        self.asked = np.append(self.asked, np.zeros(len(batch), np.bool_))[last]
        self.cluster = np.append(self.cluster, cluster)[last]
        self.normal = np.append(self.normal, normal)[last]
        self.other, self.waits = np.append(self.other, other)[last], np.append(self.waits, waits)[last]

    def is_record(self, record_id: str) -> NDArray[np.bool_]:
        """Which one has an id."""
        source, seq = record_id.split(":")
        found: NDArray[np.bool_] = (self.records.source == int(source)) & (self.records.seq == np.uint64(seq))
        return found


def _joined(first: Batch, second: Batch) -> Batch:
    """Two batches as one: what is scored, and the ids."""
    return Batch(
        num=np.concatenate([first.num, second.num]),
        code=np.concatenate([first.code, second.code]),
        seq=np.concatenate([first.seq, second.seq]),
        source=np.concatenate([first.source, second.source]),
    )
