"""A host's connections as a sequence: does a chain over them make better verdicts of the detector's?

A detector is trained on one simulated day, judges a second, and a chain over {normal, attack} is learned from those
verdicts and the truth; on a third day the chain reads the verdicts of every host, in order, and decides them together.
Beside it stand the detector alone, the same features without transitions, and a vote of neighbouring alarms.

>>> from netclust.models.experiments.detection.judged_days import DayPlan, judged_days
>>> few = "port_scan,ssh_brute_force"
>>> plan = DayPlan(hours=0.2, hosts=8, rate=0.05, references=100, days=1, trained_on=few, attacks=few)
>>> day = judged_days(plan)[0]
>>> rows = host_rows(day.source)
>>> sorted(np.concatenate(rows).tolist()) == list(range(len(day))), len(set(day.source[rows[0]].tolist()))
(True, 1)
>>> smoother = learn_smoother(day, HostSettings(cut=50, grid=(10.0,)))
>>> smoother.scores(day).shape == day.score.shape
True

A sequence is read as a whole: what a host does next counts too, so this is for verdicts that can wait, or for looking
at a day again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.learners.one_slack import OneSlack
from netclust.metrics.detection_metrics import auc
from netclust.models.chains.chain_inference import infer_max_marginals
from netclust.models.chains.chain_problem import ChainProblem, Packed, mean_chain_length
from netclust.models.experiments.detection.judged_days import JudgedDay
from netclust.models.selection import k_folds, select_candidate

__all__ = ["METHODS", "HostSettings", "HostSmoother", "compare_day", "host_rows", "learn_smoother", "voted"]

ATTACK = 1
METHODS = ("detector", "vote", "alone", "chain")
VOTERS = 5
PACKS = 20
Scores = NDArray[np.float64]


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the chain over a host's verdicts is learned."""

    cut: int = 200
    """Longer sequences are cut into even parts."""
    grid: tuple[float, ...] = (10.0, 1000.0)
    """Values of C, one of which is chosen by hosts that are held out."""
    epsilon: float = 0.005
    attributes: bool = False
    """Is a place described by its record too, not by its verdict alone?"""
    transitions: bool = True


def host_rows(hosts: NDArray[Any], most: int | None = None) -> list[NDArray[np.int64]]:
    """The rows of every host in their order, in even parts of at most `most`."""
    order = np.argsort(hosts, kind="stable")
    ends = np.flatnonzero(hosts[order][1:] != hosts[order][:-1]) + 1
    groups = np.split(order, ends) if len(order) else []
    return [part for rows in groups for part in np.array_split(rows, 1 if most is None else -(-len(rows) // most))]


@dataclass(frozen=True, eq=False)
class HostSmoother:
    """A learned chain, and the scale of its features."""

    problem: ChainProblem
    w: Scores
    mean: Scores
    spread: Scores
    settings: HostSettings
    C: float

    def scores(self, day: JudgedDay) -> Scores:
        """How much better a host's best labels with this record an attack are than those with it normal."""
        x = _features(day, self.settings, self.mean, self.spread)
        rows = host_rows(day.source, self.settings.cut)
        parts = self.problem.weights(self.w)
        order = np.concatenate(rows)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
        best = infer_max_marginals(parts.scores(x[order], offsets), parts.edge, offsets)
        found = np.empty(len(day))
        found[order] = best[:, ATTACK] - best[:, 1 - ATTACK]
        return found


def learn_smoother(day: JudgedDay, settings: HostSettings | None = None) -> HostSmoother:
    """From the verdicts of a day that the detector was not trained on, and its truth."""
    settings = settings or HostSettings()
    if not 0 < int(day.attack.sum()) < len(day):
        raise InputError("the day to learn from needs attacks, and ordinary connections too")
    raw = day.features(attributes=settings.attributes)[1]
    mean, spread = raw.mean(axis=0), raw.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    x, y = _features(day, settings, mean, spread), day.attack.astype(np.int64)
    rows = host_rows(day.source, settings.cut)
    examples = _packs(x, y, rows)
    problem = ChainProblem(2, x.shape[1], transitions=settings.transitions, places=mean_chain_length(examples))

    def fit(C: float, train: Any) -> Scores:
        return OneSlack(C=C, epsilon=settings.epsilon).fit(problem, train).w

    def wrong(C: float, w: Scores, held: Any) -> float:
        return float(np.mean([problem.loss(b, problem.predict(a, w)) for a, b in held]))

    C = settings.grid[0]
    if len(settings.grid) > 1:
        C = select_candidate(sorted(settings.grid), examples, k_folds(len(examples), 2), fit=fit, measure=wrong).best
    return HostSmoother(problem, fit(C, examples), mean, spread, settings, C)


def _packs(x: Scores, y: NDArray[np.int64], rows: list[NDArray[np.int64]]) -> list[tuple[Packed, NDArray[np.int64]]]:
    """Hosts' sequences dealt to a few examples: thousands of hosts send one connection only."""
    packs = []
    order = np.random.default_rng(0).permutation(len(rows))
    for chosen in np.array_split(order, min(PACKS, len(rows))):
        own = [rows[i] for i in chosen.tolist()]
        every = np.concatenate(own)
        packs.append((Packed(x[every], np.concatenate([[0], np.cumsum([len(part) for part in own])])), y[every]))
    return packs


def _features(day: JudgedDay, settings: HostSettings, mean: Scores, spread: Scores) -> Scores:
    raw = day.features(attributes=settings.attributes)[1]
    return np.column_stack([(raw - mean) / spread, np.ones(len(raw))])


def voted(day: JudgedDay, voters: int = VOTERS) -> Scores:
    """The share of alarms among so many neighbours in a host's sequence, less a half: what costs nothing to learn."""
    found = np.empty(len(day))
    for rows in host_rows(day.source):
        alarms = np.concatenate([[0.0], np.cumsum(day.alarm[rows])])
        at = np.arange(len(rows))
        low, high = np.maximum(at - voters // 2, 0), np.minimum(at + voters // 2 + 1, len(rows))
        found[rows] = (alarms[high] - alarms[low]) / (high - low) - 0.5
    return found


def compare_day(learned_on: JudgedDay, test: JudgedDay, settings: HostSettings | None = None) -> dict[str, Any]:
    """Detection and false alarms on the test day by method; also at as many false alarms as the detector has."""
    settings = settings or HostSettings()
    alone = learn_smoother(learned_on, msgspec.structs.replace(settings, transitions=False))
    chain = learn_smoother(learned_on, settings)
    scores = dict(zip(METHODS, (test.score, voted(test), alone.scores(test), chain.scores(test)), strict=True))
    allowed = int((test.alarm & ~test.attack).sum())
    body: dict[str, Any] = {
        "records": len(test), "attacks": int(test.attack.sum()), "hosts": len(np.unique(test.source)),
        "C": {"alone": alone.C, "chain": chain.C},
    }  # fmt: skip
    for name, own in scores.items():
        alarm = test.alarm if name == "detector" else own > 0
        body[name] = {
            **_rates(alarm, test),
            "at the detector's false alarms": _rates(own > _threshold(own[~test.attack], allowed), test),
            "auc": auc(own, test.attack),
        }
    edge = chain.problem.weights(chain.w).edge
    body["stay"] = float(edge[0, 0] + edge[1, 1] - edge[0, 1] - edge[1, 0])
    return body


def _threshold(normal: Scores, allowed: int) -> float:
    """The lowest score that at most so many normal records exceed."""
    return float(np.sort(normal)[::-1][min(allowed, len(normal) - 1)])


def _rates(alarm: NDArray[np.bool_], day: JudgedDay) -> dict[str, Any]:
    kinds = {name: float(alarm[day.label == name].mean()) for name in np.unique(day.label[day.attack]).tolist()}
    return {
        "detected": float(alarm[day.attack].mean()),
        "detected, mean of types": float(np.mean(list(kinds.values()))),
        "false alarms": int(alarm[~day.attack].sum()),
        "false alarm rate": float(alarm[~day.attack].mean()),
        "wrong": float((alarm != day.attack).mean()),
        "by type": kinds,
    }
