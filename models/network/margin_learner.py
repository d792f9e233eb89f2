"""Learn a similarity for the verdict itself: how far a record is from normal traffic, against attacks and the root.

The perceptron of `models.network.stream_perceptron` rebuilds classes from the few records before; a verdict needs
something else: the best normal referent above the best of the others and the root, or below it, by a margin, with
referents from far away, and for attacks whose type nobody has seen. So the loss is on that margin:

    m(b) = +-(best normal score - max(best other score, root)),    loss = log(1 + exp(-m)),

over mini-batches whose candidates are drawn from the whole stream (far referents), with the referents of some attack
types hidden at every step (so that the root has to catch them), common types and kinds of normal traffic damped. The
latent links are those of LSP: the arg-max of each side under the current weights.

score(a, b) = -sum_f w_f min(|a_f - b_f|, far_f) - sum_s c_s [a_s != b_s] with positive w and c: a distance, so that
what is far from everything scores low whatever it is. Weights start at the unlearned rule's and move by factors, no
more than e^reach, pulled back by `pull`.

>>> from netclust.records.batch import Batch
>>> rng = np.random.default_rng(0)
>>> attack = np.arange(600) % 3 == 0
>>> num = np.stack([attack * 0.6 + rng.normal(0, 0.1, 600), rng.random(600)], axis=1).astype(np.float32)
>>> stream = Batch(num=num, code=np.zeros((600, 0), np.uint16), label=attack.astype(np.int32))
>>> start = Start(weight=np.ones(2), mismatch=np.zeros(0), far=np.full(2, np.inf))
>>> fit = train_margin(stream, ~attack, start, MarginRule(candidates=100, steps=50), seed=0)
>>> bool(fit.averaged.weight[0] > fit.averaged.weight[1])  # the second attribute is noise
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.records.batch import Batch

BATCH = 512  # records a step, half of them normal
RATE = 0.03  # first step size of the logarithms of weights; falls linearly to 0
ROOT_RATE = 5.0  # the root moves in scores, not in logarithms
CLIP = 30.0
REPORT = 50  # steps between two reports


class MarginRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is learned and how; the names of docs/parameters.md."""

    candidates: int = 2000
    steps: int = 400
    temperature: float = 3.0
    reach: float | None = None
    pull: float = 1e-3
    hide: float = 0.25
    kind_balance: float = 0.5
    class_balance: float = 0.5


@dataclass(frozen=True, eq=False)
class Start:
    """The unlearned rule: a weight a numeric attribute, a price a mismatch, and where a difference stops to count."""

    weight: NDArray[np.float64]
    mismatch: NDArray[np.float64]
    far: NDArray[np.float64]


@dataclass(frozen=True)
class StepReport:
    """The mean loss of the last steps."""

    step: int
    loss: float


@dataclass(frozen=True, eq=False)
class MarginFit:
    """Learned weights: averaged over the second half of the steps, and the last ones; `root` is a score."""

    averaged: Start
    last: Start
    root: float
    last_root: float
    reports: list[StepReport] = field(default_factory=list)


def train_margin(
    batch: Batch,
    normal: NDArray[np.bool_],
    start: Start,
    rule: MarginRule,
    *,
    seed: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> MarginFit:
    """Learn from labelled records. Without any attack among them there is nothing to learn: the start is returned."""
    theta = np.concatenate([np.log(np.maximum(start.weight, 1e-12)), np.log(np.maximum(start.mismatch, 1e-12))])
    theta -= np.log(rule.temperature)
    features = len(start.weight)
    zero = theta.copy()

    def weights(values: NDArray[np.float64]) -> Start:
        positive = np.exp(values)
        return Start(positive[:features], positive[features:], start.far)

    if normal.all() or not normal.any():
        return MarginFit(weights(theta), weights(theta), -np.inf, -np.inf)
    rng = np.random.default_rng([seed, 0x6D61])
    sampler = _Sampler(batch, normal, rule, rng)
    far = start.far.astype(np.float32)
    adam = _Adam(len(theta) + 1)
    reach = CLIP if rule.reach is None else rule.reach
    averaged, averaged_root, halfway = np.zeros_like(theta), 0.0, rule.steps // 2
    root, recent = np.nan, 0.0
    reports: list[StepReport] = []
    for step in range(rule.steps):
        now = weights(theta)
        draw = sampler.draw()
        near = draw.nearest(now.weight.astype(np.float32), now.mismatch.astype(np.float32), far)
        if np.isnan(root):
            found = near.normal[draw.normal & (near.normal_at >= 0)]
            root = float(np.quantile(found, 0.05)) if len(found) else -1.0
        by_root = ~(near.other > root)
        toward = np.where(draw.normal, 1.0, -1.0)
        margin = np.clip(toward * (near.normal - np.where(by_root, root, near.other)), -CLIP, CLIP)
        # d loss / d margin = -1 / (1 + e^m); a record without any normal candidate has nothing to say.
        force = np.where(near.normal_at >= 0, 1 / (1 + np.exp(margin)), 0.0) * toward / len(toward)
        recent += float(np.log1p(np.exp(-margin)).mean())
        gradient = np.zeros(len(theta) + 1)
        for share, at in ((force, near.normal_at), (np.where(by_root, 0.0, -force), near.other_at)):
            gradient[:-1] += draw.distances(share, at, far)
        gradient[:-1] = gradient[:-1] * np.exp(theta) + rule.pull * (theta - zero)
        gradient[-1] = (force * by_root).sum()
        move = adam.step(gradient) * RATE * (1 - step / rule.steps)
        theta = np.clip(theta - move[:-1], zero - reach, zero + reach)
        root -= ROOT_RATE * float(move[-1])
        if step >= halfway:
            averaged += theta
            averaged_root += root
        if (step + 1) % REPORT == 0 or step + 1 == rule.steps:
            reports.append(StepReport(step + 1, recent / (step % REPORT + 1)))
            recent = 0.0
            if on_progress is not None:
                on_progress(step + 1, rule.steps)
    steps = rule.steps - halfway
    return MarginFit(weights(averaged / steps), weights(theta), averaged_root / steps, root, reports)


class _Adam:
    """Kingma and Ba, 2015, with a floor that leaves weights alone whose gradient is noise."""

    def __init__(self, size: int) -> None:
        self.mean, self.square, self.steps = np.zeros(size), np.zeros(size), 0

    def step(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.99 * self.square + 0.01 * gradient**2
        scale = np.sqrt(self.square / (1 - 0.99**self.steps)) + 1e-4
        return np.asarray(self.mean / (1 - 0.9**self.steps) / scale)


class _Sampler:
    """Draws the records and the candidates of a step."""

    def __init__(self, batch: Batch, normal: NDArray[np.bool_], rule: MarginRule, rng: np.random.Generator) -> None:
        self.batch, self.is_normal, self.rule, self.rng = batch, normal, rule, rng
        self.candidates = min(rule.candidates, len(batch))
        self.normals = np.flatnonzero(normal)
        kind = np.unique(batch.code[self.normals], axis=0, return_inverse=True)[1].ravel()
        self.chance = np.cumsum(np.bincount(kind)[kind] ** -rule.kind_balance)
        attacks = np.flatnonzero(~normal)
        labels = batch.label[attacks]
        classes, counts = np.unique(labels, return_counts=True)
        self.rows = [attacks[labels == c] for c in classes]
        self.share = counts**rule.class_balance / (counts**rule.class_balance).sum()
        self.types = int(batch.label.max()) + 1

    def draw(self) -> _Draw:
        """One step's records, half normal, and its candidates, with some types hidden."""
        rng = self.rng
        at = np.searchsorted(self.chance, rng.random(BATCH // 2) * self.chance[-1], side="right")
        normals = self.normals[np.minimum(at, len(self.normals) - 1)]
        per_class = rng.multinomial(BATCH - BATCH // 2, self.share)
        attacks = [rng.choice(rows, n) for rows, n in zip(self.rows, per_class, strict=True) if n]
        records = np.concatenate([normals, *attacks])
        chosen = rng.choice(len(self.batch), self.candidates, replace=False)
        hidden = rng.random(self.types) < self.rule.hide
        side = np.where(self.is_normal[chosen], 1, np.where(hidden[self.batch.label[chosen]], 0, 2)).astype(np.uint8)
        return _Draw(self.batch, records, chosen, side, self.is_normal[records])


@dataclass(frozen=True, eq=False)
class _Draw:
    batch: Batch
    records: NDArray[np.int64]
    chosen: NDArray[np.int64]
    side: NDArray[np.uint8]
    normal: NDArray[np.bool_]

    def nearest(self, weight: NDArray[np.float32], mismatch: NDArray[np.float32], far: NDArray[np.float32]) -> _Near:
        """The best candidate of either side."""
        from netclust.kernels.linking import margin as kernels
        from netclust.kernels.linking.score import score_columns

        place = np.full(len(self.batch), -1, np.int64)
        place[self.chosen] = np.arange(len(self.chosen))
        out = kernels.room_for(len(self.records))
        candidates = kernels.Candidates(
            score_columns(self.batch.num[self.chosen]), score_columns(self.batch.code[self.chosen]), self.side.copy()
        )
        kernels.nearest_sides(
            self.batch.num[self.records], self.batch.code[self.records], place[self.records], candidates,
            weight, mismatch, far, out,
        )  # fmt: skip
        return _Near(out.normal.astype(np.float64), out.normal_at, out.other.astype(np.float64), out.other_at)

    def distances(
        self, share: NDArray[np.float64], at: NDArray[np.int64], far: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """The gradient of sum share * distance(record, candidate at): by numeric attribute, then by coded one."""
        use = np.flatnonzero((at >= 0) & (share != 0))
        i, j, s = self.records[use], self.chosen[at[use]], share[use, None]
        num, code = self.batch.num, self.batch.code
        numeric = (s * np.minimum(np.abs(num[i] - num[j]), far)).sum(axis=0)
        return np.concatenate([numeric, (s * (code[i] != code[j])).sum(axis=0)])


@dataclass(frozen=True, eq=False)
class _Near:
    normal: NDArray[np.float64]
    normal_at: NDArray[np.int64]
    other: NDArray[np.float64]
    other_at: NDArray[np.int64]
