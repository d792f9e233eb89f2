"""What the trainings on LitBank show: the table, the published order tested, few features against many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from netclust.models.experiments.coreference.coreference_trials import CoreferenceTrial
from netclust.models.experiments.paired_tests import PairedComparison, paired_comparison

__all__ = ["PUBLISHED", "Claim", "CoreferenceRow", "report_claims", "report_rows"]

PUBLISHED: dict[str, float] = {
    "LSSVM^K": 59.89,
    "LSSVM^E": 61.88,
    "LSP^K": 60.00,
    "LSPA^K": 60.16,
    "LSP^E": 63.04,
    "LSPA^E": 62.81,
    "LSP_YJ": 62.76,
    "LSP_rho": 63.37,
}
"""Test MELA on CoNLL-2012 English, all features, detected mentions (tables 5.2 and 5.5): another corpus and task."""

_FEW = (10_000, 100_000)


class CoreferenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A model with so many features (None: all): mean and deviation of test MELA over splits, and its training."""

    name: str
    setting: str
    features: int | None
    mean: float
    sd: float | None
    draws: int
    parts: dict[str, float]
    dev: float | None
    epochs: tuple[int, ...]
    seconds: float
    C: float | None
    r: float | None
    published: float | None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A published order, tested over splits: a less b, `expected` higher or level."""

    claim: str
    a: str
    b: str
    features: int | None
    expected: str
    comparison: PairedComparison
    verdict: str


def report_rows(trials: Iterable[CoreferenceTrial]) -> list[CoreferenceRow]:
    """Return a row per model and number of features, in the order of their first training."""
    groups: dict[tuple[str, int | None], list[CoreferenceTrial]] = {}
    for trial in trials:
        if trial.stage == "table":
            groups.setdefault((trial.model, trial.settings.strongest), []).append(trial)
    return [_row(model, size, own) for (model, size), own in groups.items()]


def report_claims(trials: Sequence[CoreferenceTrial]) -> list[Claim]:
    """Check the published orders: E above K, LSP level with LSPA, the learned loss ahead with few features, else
    level."""
    found: list[Claim] = []

    def test(claim: str, a: str, b: str, expected: str, size: int | None = None) -> None:
        first, second = _by_split(trials, a, size), _by_split(trials, b, size)
        shared = sorted(first.keys() & second.keys())
        if len(shared) < 2:
            return
        comparison = paired_comparison([first[k] for k in shared], [second[k] for k in shared])
        verdict = _verdict(expected, comparison)
        found.append(
            Claim(claim=claim, a=a, b=b, features=size, expected=expected, comparison=comparison, verdict=verdict)
        )

    for learner in ("LSP", "LSPA", "LSSVM"):
        test("E above K", f"{learner}^E", f"{learner}^K", "higher")
    for structure in "EK":
        test("LSP level with LSPA", f"LSP^{structure}", f"LSPA^{structure}", "level")
        test("LSP level with or above LSSVM", f"LSP^{structure}", f"LSSVM^{structure}", "level")
    for learned in ("LSP_rho", "LSP*_rho", "LSP*_rho,online"):
        for other in ("LSP^E", "LSP_YJ"):
            for size in _FEW:
                test("learned loss ahead with few features", learned, other, "higher", size)
            test("learned loss level with all features", learned, other, "level")
    return found


def _verdict(expected: str, comparison: PairedComparison) -> str:
    clear = comparison.t.p < 0.05
    if expected == "higher":
        if not clear:
            return "not shown"
        return "confirmed" if comparison.difference > 0 else "refuted"
    return "no difference shown" if not clear else ("a is better" if comparison.difference > 0 else "b is better")


def _row(model: str, size: int | None, own: list[CoreferenceTrial]) -> CoreferenceRow:
    means = [trial.test["mela"] for trial in own]
    learned = [trial for trial in own if trial.curve]
    settings = own[0].settings
    return CoreferenceRow(
        name=model,
        setting=f"{model}, {'all' if size is None else f'{size:,}'} features",
        features=size,
        draws=len(own),
        mean=float(np.mean(means)),
        sd=float(np.std(means, ddof=1)) if len(means) > 1 else None,
        parts={name: float(np.mean([trial.test[name] for trial in own])) for name in own[0].test},
        dev=float(np.mean([trial.dev for trial in learned])) if learned else None,
        epochs=tuple(trial.epochs for trial in learned) if settings.learner != "lssvm" else (),
        seconds=float(np.mean([trial.seconds for trial in own])),
        C=settings.cost if learned else None,
        r=settings.r if learned else None,
        published=PUBLISHED.get(model) if size is None else None,
    )


def _by_split(trials: Iterable[CoreferenceTrial], model: str, size: int | None) -> dict[int, Any]:
    return {
        trial.split: trial.test["mela"]
        for trial in trials
        if trial.stage == "table" and trial.model == model and trial.settings.strongest == size
    }
