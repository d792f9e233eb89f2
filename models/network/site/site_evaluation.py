"""The evaluation of a detector at real sites, beside its rivals: all splits, poisoning, and alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from netclust.errors import InputError
from netclust.models.network.site.site_alerts import watch_site
from netclust.models.network.site.site_measures import RATES, mean_measures, measure_scores, summarise
from netclust.models.network.site.site_records import Site
from netclust.models.network.site.site_rivals import make_rivals
from netclust.models.network.site.site_scorers import (
    AdaptedScorer,
    BegunOutside,
    FailedConnections,
    NoveltyScorer,
    SiteScorer,
)
from netclust.models.network.site.site_splits import (
    Malware,
    Question,
    host_questions,
    poisoned_questions,
    time_questions,
)
from netclust.scoring.model import Model
from netclust.stream.config import WindowConfig

__all__ = ["POISON", "ExtraScorers", "SitePlan", "evaluate_sites", "judge", "make_scorers"]

POISON = (0.0, 0.01, 0.03, 0.2)
"""Shares of attacks in the warm-up."""

ExtraScorers = Callable[[], Sequence[SiteScorer]]
"""Makes detectors that are judged beside netclust: fresh ones for every question."""


@dataclass(frozen=True, kw_only=True)
class SitePlan:
    """What is run: the model that is judged, the splits, the rivals by name, and detectors of somebody else."""

    model: Model
    splits: tuple[str, ...] = ("host", "time")
    rivals: tuple[str, ...] = ()
    seed: int = 0
    draws: int = 1
    """Seeds of each rival that draws random numbers."""
    poison: bool = True
    alerts: bool = True
    extra: ExtraScorers = tuple


def make_scorers(plan: SitePlan, inside: frozenset[str], *, window: bool = True, draws: int = 1) -> list[SiteScorer]:
    """Return netclust (and the same with the window of `watch`), its novelty score, other detectors, rivals, rules."""
    scorers: list[SiteScorer] = [AdaptedScorer(plan.model)]
    if window:
        scorers.append(AdaptedScorer(plan.model, name="netclust, window", window=WindowConfig().linker()))
    scorers.append(NoveltyScorer(plan.model.encoding))
    return [
        *scorers, *plan.extra(), *make_rivals(plan.rivals, plan.seed, draws), BegunOutside(inside), FailedConnections()
    ]  # fmt: skip


def judge(question: Question, scorer: SiteScorer) -> dict[str, Any]:
    """Return the measures of a scorer on a question; one that cannot learn from the records says why."""
    try:
        scorer.fit(question.train)
        score = scorer.scores(question.test)
        flags = {rate: scorer.flags(question.test, rate) for rate in RATES}
    except InputError as error:
        return {"refused": str(error)}
    return measure_scores(score, question.truth, flags, question.answered, question.kind)


def evaluate_sites(
    sites: Sequence[Site],
    malware: Sequence[Malware],
    plan: SitePlan,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return all questions with the measures of every detector, their summary by split, poisoning and alerts."""
    asked: list[dict[str, Any]] = []
    if "host" in plan.splits:
        asked += _answers(host_questions(sites, malware), plan, on_step)
    if "time" in plan.splits:
        asked += _answers(time_questions(sites, malware), plan, on_step)
    found: dict[str, Any] = {"questions": asked, "summary": _summary(asked)}
    if plan.poison and "time" in plan.splits:
        poisoned: list[dict[str, Any]] = []
        for site in sites:
            poisoned += _answers(poisoned_questions(site, malware, POISON, plan.seed), plan, on_step)
        found["poisoning"] = poisoned
    if plan.alerts:
        on_step("alerts")
        found["alerts"] = [
            {"site": site.name, **watch_site(site, plan.model, **how)} for site in sites for how in ({}, {"warmup": 0})
        ]
    return found


def _answers(questions: Iterable[Question], plan: SitePlan, on_step: Callable[[str], None]) -> list[dict[str, Any]]:
    asked = []
    for question in questions:
        answers: dict[str, list[dict[str, Any]]] = {}
        for scorer in make_scorers(plan, question.inside, draws=plan.draws):
            on_step(f"{question.split}, {question.name}: {scorer.name}")
            answers.setdefault(scorer.name, []).append(judge(question, scorer))
        asked.append(
            {
                "split": question.split,
                "name": question.name,
                "learned": len(question.train),
                "share_of_attacks_learned": question.share,
                "benign": int((~question.truth).sum()),
                "attacks": int(question.truth.sum()),
                "scorers": {name: mean_measures(each) for name, each in answers.items()},
            }
        )
    return asked


def _summary(asked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By split and detector: means over hosts, and the worst host."""
    splits = dict.fromkeys(each["split"] for each in asked)
    summary: dict[str, Any] = {}
    for split in splits:
        of_split = [each["scorers"] for each in asked if each["split"] == split]
        summary[split] = {
            name: summarise([each[name] for each in of_split if "refused" not in each[name]]) for name in of_split[0]
        }
    return summary
