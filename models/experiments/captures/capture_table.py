"""How well attacks in real captures are found, and at what cost in false alarms, beside three rivals.

Weights come from a simulated day with labelled attacks. Thresholds are set on another simulated day without attacks, at
the same false-alarm rate for every detector; false alarms are counted on a third, and on real ordinary captures. Real
captures are looked at by nobody before that.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.metrics.detection_metrics import auc
from netclust.models.experiments.bootstrap import paired_interval
from netclust.models.experiments.captures.capture_cases import Case, attack_case, benign_table
from netclust.models.experiments.captures.capture_detectors import RIVALS, ConnectionScorer, Netclust, make_rival
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import fit_network
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.stream.packets.capture_labels import LabelRules, load_labels
from netclust.stream.packets.capture_reader import CaptureReader

__all__ = ["OURS", "CapturePlan", "CaptureResult", "compare_on_captures", "wilson"]

OURS = "netclust"
FEW_FLOWS = 20
HOUR = 3600.0
TRAIN_DAY, WARM_DAY, CALIBRATION_DAY, TEST_DAY = range(4)


@dataclass(frozen=True, kw_only=True)
class CapturePlan:
    """What is run. `every`: rivals that are slow get every so many-th connection of a simulated day."""

    schema: str
    params: TrainParams
    rate: float = 0.01
    hours: float = 24.0
    draws: int = 5
    rivals: tuple[str, ...] = tuple(RIVALS)
    rival_seeds: int = 2
    every: int = 10
    most: int = 2000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _Judged:
    """One detector's decisions, by draw: on the cases, on the simulated day, on the real ordinary captures."""

    cases: list[NDArray[np.bool_]]  # [draw, connection]
    day: NDArray[np.bool_]
    benign: NDArray[np.bool_]
    apart: NDArray[np.float64]  # [draw, case]: AUC of an attack against the real ordinary connections


@dataclass(eq=False)
class CaptureResult:
    """Rows for people and for JSON."""

    plan: CapturePlan
    rows: list[dict[str, Any]] = field(default_factory=list)
    detectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    ordinary: list[dict[str, Any]] = field(default_factory=list)

    def score(self, rival: str) -> dict[str, int]:
        """Wins, ties and losses against a rival."""
        outcomes = [row["against"][rival]["outcome"] for row in self.rows]
        return {name: outcomes.count(name) for name in ("win", "tie", "loss")}


def compare_on_captures(
    plan: CapturePlan, captures: Sequence[Path], rules: LabelRules, *, on_step: Callable[[str], None] = lambda _: None
) -> CaptureResult:
    """The whole comparison; files of simulated traffic are made in a temporary folder and removed."""
    with tempfile.TemporaryDirectory(prefix="netclust-") as folder:
        work = _Work(plan, Path(folder), on_step)
        training, warm, calibration, test = (work.day(n, n == TRAIN_DAY) for n in range(4))
        cases, ordinary = _cases(plan, captures, rules, work)
    tables = [benign_table([path], plan.schema) for path in ordinary]
    benign = concat_tables(tables) if tables else test[:0]
    on_step("netclust")
    fit = fit_network(training, plan.params, seed=plan.seed)
    judged = {
        OURS: _judge(plan, [Netclust(fit, plan.seed + k) for k in range(plan.draws)], calibration, cases, test, benign)
    }
    for name in plan.rivals:
        on_step(name)
        made = [make_rival(name, warm[:: plan.every], plan.seed + k) for k in range(plan.rival_seeds)]
        every = slice(None, None, plan.every)
        judged[name] = _judge(plan, made, calibration[every], cases, test[every], benign)
    result = _result(plan, judged, cases)
    at = 0
    for path, table in zip(ordinary, tables, strict=True):
        flagged = {
            name: float(each.benign[:, at : at + len(table)].sum(axis=1).mean()) for name, each in judged.items()
        }
        result.ordinary.append({"capture": path.name, "flows": len(table), "flagged": flagged})
        at += len(table)
    return result


class _Work:
    """Simulated traffic, made as it is asked for."""

    def __init__(self, plan: CapturePlan, folder: Path, on_step: Callable[[str], None]) -> None:
        self.plan, self.folder, self.on_step = plan, folder, on_step
        self._around: dict[float, Path] = {}

    def day(self, number: int, attacked: bool) -> Table:
        """A day's connections."""
        self.on_step(f"simulated day {number}")
        path, labels = self.folder / "day.pcap", self.folder / "day.csv"
        attacks = "known" if attacked else "none"
        simulate_capture(
            path, labels, hours=self.plan.hours, seed=self.plan.seed + 100 * number, day=number, attacks=attacks
        )
        reader = CaptureReader(
            [path], load_schema(self.plan.schema), labels=load_labels(labels), context=False, checksum=False
        )
        table = concat_tables(list(reader))
        path.unlink()
        return table

    def around(self, seconds: float) -> Path:
        """A capture of ordinary traffic from a later day, from ten in the morning, or a day and more from midnight."""
        long = seconds > 4 * HOUR
        hours = math.ceil(seconds / HOUR + 0.2) if long else 1.5 if seconds < 1.4 * HOUR else 4.2
        if hours not in self._around:
            path = self.folder / f"around-{hours}.pcap"
            start = f"2024-01-{TEST_DAY + 1:02d}T{'00' if long else '10'}:00:00Z"
            simulate_capture(path, None, hours=hours, seed=self.plan.seed + 900, attacks="none", start=start)
            self._around[hours] = path
        return self._around[hours]


def _cases(
    plan: CapturePlan, captures: Sequence[Path], rules: LabelRules, work: _Work
) -> tuple[list[Case], list[Path]]:
    """Attacks, twins once; and the captures without any."""
    cases: list[Case] = []
    ordinary: list[Path] = []
    for path in captures:
        work.on_step(path.name)
        case = attack_case(path, rules, plan.schema, work.around, plan.most)
        if case is None:
            ordinary.append(path)
        elif not any(np.array_equal(case.records.num, other.records.num) for other in cases):
            cases.append(case)
    return cases, ordinary


def _judge(
    plan: CapturePlan,
    detectors: Sequence[ConnectionScorer],
    calibration: Table,
    cases: Sequence[Case],
    test: Table,
    benign: Table,
) -> _Judged:
    found: list[list[NDArray[np.bool_]]] = []
    apart = np.full((len(detectors), len(cases)), np.nan)
    for d, detector in enumerate(detectors):
        usual = detector.score(calibration)
        # The nearest of their own scores: an interpolated one may lie between infinities.
        threshold = float(np.quantile(usual, 1 - plan.rate, method="higher"))
        tables = (*(c.records for c in cases), test, benign)
        scores = [detector.score(table) if len(table) else np.zeros(0) for table in tables]
        found.append([score > threshold for score in scores])
        if len(benign):
            for k, score in enumerate(scores[: len(cases)]):
                truth = np.arange(len(score) + len(benign)) < len(score)
                apart[d, k] = auc(np.concatenate([score, scores[-1]]), truth)
    stacked = [np.stack(parts) for parts in zip(*found, strict=True)]
    return _Judged(stacked[:-2], stacked[-2], stacked[-1], apart)


def _result(plan: CapturePlan, judged: dict[str, _Judged], cases: Sequence[Case]) -> CaptureResult:
    result = CaptureResult(plan)
    for name, each in judged.items():
        rates = each.day.mean(axis=1)
        flagged = float(each.benign.sum(axis=1).mean()) if each.benign.size else 0.0
        n = each.benign.shape[1]
        result.detectors[name] = {
            "false_alarm_rate": _mean_sd(rates),
            "false_alarms_counted_on": int(each.day.shape[1]),
            "benign_flagged": flagged,
            "benign_flows": n,
            "benign_interval": wilson(flagged, n),
            "auc_against_benign": _mean_sd(each.apart.mean(axis=1)),
        }
    ours = judged[OURS]
    for k, case in enumerate(cases):
        mine = ours.cases[k]
        row: dict[str, Any] = {
            "capture": case.name,
            "kind": case.kind,
            "flows": case.flows,
            "detection": {name: _mean_sd(each.cases[k].mean(axis=1)) for name, each in judged.items()},
            "found": {name: _is_found(each.cases[k]) for name, each in judged.items()},
            "auc_against_benign": {name: _mean_sd(each.apart[:, k]) for name, each in judged.items()},
            "seconds_to_first_alert": {name: _first_alert(each.cases[k], case) for name, each in judged.items()},
            "against": {},
        }
        for name in plan.rivals:
            row["against"][name] = _outcome(mine, judged[name].cases[k])
        result.rows.append(row)
    return result


def _outcome(ours: NDArray[np.bool_], theirs: NDArray[np.bool_]) -> dict[str, Any]:
    """A win is beyond a bootstrap interval; with few connections, found or not found is all that counts."""
    if ours.shape[1] < FEW_FLOWS:
        a, b = _is_found(ours), _is_found(theirs)
        return {"outcome": "win" if a > b else "loss" if b > a else "tie", "found": a, "rival_found": b}
    interval = paired_interval(ours.mean(axis=0)[None, None], theirs.mean(axis=0)[None, None])
    outcome = "tie" if not interval.excludes_zero else "win" if interval.difference > 0 else "loss"
    return {"outcome": outcome, "difference": interval.difference, "low": interval.low, "high": interval.high}


def _is_found(flags: NDArray[np.bool_]) -> bool:
    """Whether most draws flag any of the connections."""
    return bool(np.median(flags.any(axis=1)) > 0)


def _first_alert(flags: NDArray[np.bool_], case: Case) -> float | None:
    """Seconds of traffic from the attack's first packet to the first flagged record's end, mean over the draws."""
    waits = [(int(case.records.time[row].min()) - case.began) / 1e9 for row in flags if row.any()]
    return float(np.mean(waits)) if len(waits) == len(flags) else None


def _mean_sd(values: NDArray[Any]) -> dict[str, float]:
    return {"mean": float(values.mean()), "sd": float(values.std(ddof=1)) if len(values) > 1 else 0.0}


def wilson(found: float, n: int) -> tuple[float, float]:
    """Where a share probably lies, 95 %.

    >>> low, high = wilson(5, 100)
    >>> round(low, 3), round(high, 3)
    (0.022, 0.112)
    """
    if n == 0:
        return 0.0, 1.0
    z = 1.959964
    centre = (found + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * math.sqrt(found * (n - found) / n + z * z / 4)
    return centre - half, centre + half
