"""A loss for the network trainer that is learned from what one is judged by: F-beta, or detection within a budget.

Delta_F charges every wrong link alike. What they do to the alarm differs: a normal record that links to an attack is a
false alarm, an attack that links to normal traffic is missed, an attack taken for another one is found all the same.
The records of an ordinary run of the trainer are dealt into blocks; in each, the links that it took under the loss say
how many there were of every kind, and what the measure was. A regression of the measure on the rates gives a price a
kind (`netclust.models.network.arc_prices`). Rates are sums over links, so the loss splits and inference stays exact.

>>> from netclust.records.batch import Batch
>>> from netclust.models.network.stream_perceptron import StreamRule
>>> rng = np.random.default_rng(0)
>>> label = rng.choice(3, 4000, p=[0.6, 0.2, 0.2])  # 0 is normal, 1 and 2 are attacks
>>> num = (label[:, None] / 2 + rng.normal(0, 0.3, (4000, 4))).astype(np.float32)
>>> stream = Batch(num=num, code=np.zeros((4000, 0), np.uint16), label=label)
>>> learned = learn_prices(stream, (), StreamRule(), np.array([True, False, False]), Measure(beta=0.5))
>>> learned.prices.false_alarm > 1.5 * learned.prices.miss > 15 * learned.prices.wrong_attack
True

I. Haponchyk, "Advanced Models of Supervised Structural Clustering", PhD thesis, University of Trento, 2018; section 3.2
(the learned loss), 4.5 (other measures of networks as a loss, named as future work).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.losses.learned_loss import LearnedLoss
from netclust.models.network.arc_prices import KINDS, PASSED_OVER, ArcPrices, arc_kinds, edge_prices
from netclust.models.network.stream_perceptron import StreamRule, root_is_right, train_stream
from netclust.problems import loss_learning
from netclust.records.batch import Batch
from netclust.structures.pairs import Vector

__all__ = ["FLOOR", "BlockLinkCounts", "LearnedPrices", "Measure", "collect_blocks", "fit_prices", "learn_prices"]

FLOOR = 0.01
"""The least price, where wrong links cost about 1: none is free, or nothing would be learned from it."""
_RECORDS = (50, 500)  # of a block, unless one side is rare
_OF_A_SIDE = 20  # attacks and normal records a block: of fewer, the measure jumps
_DEAL = 0  # the seed
_BLOCKS = 100  # an epoch, if the stream is long enough

_EFFECT = np.array([0, 0, 1, 2, 2, 2])  # of KINDS on the alarm: a false one, a missed one, none
_FALSE, _MISSED = _EFFECT == 0, _EFFECT == 1
_RARE = 30  # links of a kind: of fewer, a price is luck


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What one is judged by, in percent: the higher, the better.

    `f_beta`: the detection rate weighs beta times as much as the precision. `budget`: the detection rate, less 100
    points for every `budget` of false alarms a normal record beyond the first.
    """

    name: Literal["f_beta", "budget"] = "f_beta"
    beta: float = 1.0
    budget: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what is no measure."""
        if not 0.01 <= self.beta <= 100:
            raise InputError(f"beta must lie between 0.01 and 100, not {self.beta}")
        if not 0 < self.budget < 1:
            raise InputError(f"a budget of false alarms lies between 0 and 1, not {self.budget}")

    def value(self, false: Any, missed: Any, attacks: Any, normals: Any) -> Vector:
        """The measure of some streams: false alarms and missed attacks among so many attacks and normal records.

        >>> Measure(beta=2.0).value(false=10, missed=20, attacks=100, normals=100).round(2).tolist()
        81.63
        >>> Measure(name="budget", budget=0.05).value(false=10, missed=20, attacks=100, normals=100).round(2).tolist()
        -20.0
        """
        found = np.subtract(attacks, missed, dtype=np.float64)
        if self.name == "f_beta":
            b = self.beta**2
            weighed = (1 + b) * found
            alarms = weighed + b * np.asarray(missed) + false
            value = np.where(alarms > 0, weighed / np.maximum(alarms, 1e-300), 1.0)  # nothing to find, nothing said
            return np.asarray(100.0 * value, np.float64)
        rate = np.asarray(false) / np.maximum(normals, 1)
        detection = np.where(np.asarray(attacks) > 0, found / np.maximum(attacks, 1), 1.0)
        return np.asarray(100.0 * (detection - np.maximum(0.0, rate / self.budget - 1.0)), np.float64)


@dataclass(frozen=True, eq=False)
class BlockLinkCounts:
    """Blocks of a training stream under the loss: how many links of each kind [block, KINDS], and of what records."""

    wrong: NDArray[np.int64]
    attacks: NDArray[np.int64]
    normals: NDArray[np.int64]

    @property
    def rates(self) -> Vector:
        """Psi: links of every kind in percent of the records."""
        return 100.0 * self.wrong / (self.attacks + self.normals)[:, None]

    def value(self, measure: Measure) -> Vector:
        """The measure of every block."""
        false, missed = self.wrong @ _FALSE, self.wrong @ _MISSED
        return measure.value(false, missed, self.attacks, self.normals)


@dataclass(frozen=True)
class LearnedPrices:
    """Prices of wrong links, and the regression behind them.

    `loss.v` says how many points of the measure a percent of records with a link of each kind brings (most take points
    away), `unit` how many a price of 1 stands for; `mse` and `scc` are how well it tells the measure of the blocks.
    """

    prices: ArcPrices
    loss: LearnedLoss
    unit: float
    blocks: int
    mse: float
    scc: float

    def to_json(self) -> dict[str, Any]:
        """For the notes of a model."""
        return {
            "prices": msgspec.to_builtins(self.prices),
            "loss": self.loss.to_json(),
            "unit": self.unit,
            "blocks": self.blocks,
            "mse": self.mse,
            "scc": self.scc,
        }


def collect_blocks(
    batch: Batch,
    widths: tuple[int, ...],
    rule: StreamRule,
    is_normal: NDArray[np.bool_],
    *,
    records: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> BlockLinkCounts:
    """Run the trainer as the rule says, and count the max-violating links of every block of every epoch.

    Attacks and normal records are dealt to the blocks, shuffled, always in the same way: attacks come in bursts, and
    blocks of neighbours would differ in what there is to find more than in how it is found.
    """
    normal = is_normal[batch.label]
    n = max(1, len(batch) // (records or _block_size(normal)))
    rng, of = np.random.default_rng(_DEAL), np.zeros(len(batch), np.int64)
    for side in (~normal, normal):
        of[side] = rng.permutation(int(side.sum())) % n
    root_right = root_is_right(batch.label, rule.training_window, rule.absent)
    counts: list[Vector] = []

    def count(parents: NDArray[np.int64]) -> None:
        kinds = arc_kinds(batch.label, parents, root_right, is_normal)
        wrong = np.zeros((n, len(KINDS)), np.int64)
        np.add.at(wrong, (of[kinds >= 0], kinds[kinds >= 0]), 1)
        counted = parents != PASSED_OVER
        sides = [np.bincount(of[counted & side], minlength=n) for side in (~normal, normal)]
        counts.append(np.column_stack([wrong, *sides]))

    train_stream(batch, widths, rule, is_normal=is_normal, on_progress=on_progress, on_outputs=count)
    table = np.concatenate(counts).astype(np.int64)
    table = table[table[:, -2:].sum(axis=1) > 0]
    return BlockLinkCounts(table[:, : len(KINDS)], table[:, -2], table[:, -1])


def _block_size(normal: NDArray[np.bool_]) -> int:
    """A hundredth of the stream, within bounds, but enough for some records of either side."""
    rarer = min(int(normal.sum()), int((~normal).sum()))
    enough = -(-_OF_A_SIDE * len(normal) // rarer) if rarer else 0
    return max(enough, int(np.clip(len(normal) // _BLOCKS, *_RECORDS)))


def fit_prices(blocks: BlockLinkCounts, measure: Measure, r: float = 1.0) -> LearnedPrices:
    """Regress the measure on the rates of wrong links; what a kind takes away from it is its price, at least FLOOR.

    A kind that hardly occurs shares the price of the most frequent one that does the same to the alarm. All prices are
    divided by a unit, so that the links of the blocks cost as much as under Delta_F: C means the same.
    """
    links = blocks.wrong.sum(axis=0)
    pooled = _pool(links)
    value = blocks.value(measure)
    found = loss_learning.fit_loss(blocks.rates @ np.eye(len(KINDS))[pooled], value, "least-squares")
    loss = LearnedLoss(found.v[pooled], found.bias)
    taken = np.maximum(0.0, -loss.v)
    edge = float(links @ edge_prices(r).vector)
    unit = float(links @ taken) / edge if edge > 0 else 0.0
    if not unit > 0:
        raise InputError('no wrong link changed the measure in training, so no loss can be learned: use loss = "edge"')
    prices = np.maximum(FLOOR, taken / unit)
    mse, scc = loss_learning.measure_loss(loss, blocks.rates, value)
    named = dict(zip(KINDS, prices.tolist(), strict=True))
    return LearnedPrices(ArcPrices(**named), loss, unit, len(value), mse, scc)


def _pool(links: NDArray[np.int64]) -> NDArray[np.int64]:
    """The kind whose price each kind has.

    >>> _pool(np.array([500, 3, 4, 60, 0, 80])).tolist()
    [0, 0, 2, 3, 5, 5]
    """
    pooled = np.arange(len(KINDS))
    for kind in np.flatnonzero(links < _RARE):
        alike = np.flatnonzero(_EFFECT[kind] == _EFFECT)
        pooled[kind] = alike[links[alike].argmax()]
    return pooled


def learn_prices(
    batch: Batch,
    widths: tuple[int, ...],
    rule: StreamRule,
    is_normal: NDArray[np.bool_],
    measure: Measure,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> LearnedPrices:
    """Prices for the measure, from a run of the trainer with Delta_F; they depend on nothing but the arguments."""
    ordinary = msgspec.structs.replace(rule, prices=None)
    return fit_prices(collect_blocks(batch, widths, ordinary, is_normal, on_progress=on_progress), measure, rule.r)
