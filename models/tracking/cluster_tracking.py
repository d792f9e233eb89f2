"""Cluster identity: which cluster of a linker is which of an earlier one that had no state in common with it.

After a restart without state, under another model or at another sensor, numbers of clusters mean nothing. Profiles of
the clusters (`netclust.linking.cluster_profiles`) are matched instead: each has at most one predecessor, and those that
nothing resembles have none. Candidates are the nearest ones by an unlearned distance. What makes two the same is
learned on windows of a stream whose classes are known: the weights of a matching (`netclust.models.matching.task`).

>>> from netclust.linking.cluster_profiles import Spread
>>> def seen(ident, flag, rate):
...     return ClusterProfile(
...         id=ident, label="novel", normal=False, records=9, anomalous=9, members=9, first_time=-1, last_time=-1,
...         top_score=1.0, numbers={"rate": Spread(rate, 0.1, rate)}, values={"flag": {flag: 1.0}},
...         firsts={"flag": flag})
>>> old = [seen(31, "S0", 0.9), seen(32, "SF", 0.1)]
>>> new = [seen(40, "SF", 0.2), seen(41, "REJ", 0.5), seen(42, "S0", 0.8)]
>>> [(t.old, t.new) for t in track(old, new, limit=0.6)]
[(32, 40), (31, 42)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.datasets.candidate_pairs import CandidatePairs
from netclust.errors import InputError
from netclust.learners.cutting_plane import OnIteration, SvmFit
from netclust.learners.latent import LatentSvm
from netclust.learners.one_slack import OneSlack
from netclust.linking.cluster_profiles import ClusterProfile, profile_clusters
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.matching.matching_problem import Allowed, AllowedMatchingProblem
from netclust.models.matching.matchings import MatchGraph, Partners, best_matching, chosen_edges, partners_of
from netclust.models.matching.task import TASK, MatchEncoder, MatchingTask, MatchSettings, graph_of
from netclust.models.structured_model import StructuredModel
from netclust.models.structured_task import LearnedTask
from netclust.models.tracking.profile_pairs import candidate_pairs, pairs_at, profile_distances
from netclust.records.table import Table
from netclust.scoring.model import Model

__all__ = [
    "LEAST",
    "LIMIT",
    "NORMAL",
    "TRACKING",
    "Known",
    "Tracked",
    "TrackingTask",
    "matched_pairs",
    "of_class",
    "same_class",
    "track",
    "track_nearest_first",
    "tracking_windows",
]

ROUNDS = 10
"""Of the latent structural SVM, at most."""
NORMAL = "normal"
LEAST = 3
"""A cluster of fewer records is not tracked."""
LIMIT = 0.3
"""Unlearned: two clusters whose distance is above are not the same."""


class Tracked(NamedTuple):
    """A cluster that was found again."""

    old: int
    new: int
    score: float
    """By how much the pair is worth more than leaving both alone."""


class Known(NamedTuple):
    """The clusters of a window, and the class that most records of each have (NORMAL: whatever is normal traffic)."""

    profiles: list[ClusterProfile]
    classes: list[str]


def track(
    old: Sequence[ClusterProfile],
    new: Sequence[ClusterProfile],
    model: StructuredModel | None = None,
    *,
    limit: float = LIMIT,
) -> list[Tracked]:
    """The clusters of `old` that are in `new` again, in its order; without a model by distance, up to `limit`."""
    if not (old and new):
        return []
    pairs = candidate_pairs(old, new)
    if model is None:
        graph, scores = graph_of(pairs, general=False), limit - profile_distances(pairs)
    else:
        if model.task.name != "matching":
            raise InputError(f"clusters are tracked by a model of matchings, not of {model.task.name}")
        ((x, _),) = TASK.encode(model.encoder, [pairs])
        graph, scores = x.graph, x.features @ model.w
    chosen = chosen_edges(graph, best_matching(graph, scores))
    found = [Tracked(int(pairs.left[e]), int(pairs.right[e]), float(scores[e])) for e in np.flatnonzero(chosen)]
    place = {profile.id: at for at, profile in enumerate(new)}
    return sorted(found, key=lambda each: place[each.new])


def track_nearest_first(graph: MatchGraph, scores: NDArray[np.float64]) -> Partners:
    """Track without a matching: the highest scores first, each if it is above 0 and both are still free."""
    chosen, taken = np.zeros(len(scores), np.bool_), np.zeros(graph.nodes, np.bool_)
    for e in np.argsort(-scores, kind="stable"):
        a, b = graph.left[e], graph.right[e]
        if scores[e] > 0 and not (taken[a] or taken[b]):
            chosen[e] = taken[a] = taken[b] = True
    return partners_of(graph, chosen)


def tracking_windows(
    model: Model, table: Table, size: int, *, least: int = LEAST, config: LinkerConfig | None = None
) -> Iterator[Known]:
    """Cut a labelled stream into windows, each linked by a new linker that knows nothing of the others."""
    if size < 1:
        raise InputError(f"windows of {size} records: at least 1 is needed")
    names = table.label_names()
    for start in range(0, len(table) - size + 1, size):
        rows = slice(start, start + size)
        linker = Linker(model, config or LinkerConfig(referent_window=min(size, 1 << 16)))
        cluster = linker.process(model.encoding.encode(table[rows])).cluster
        profiles = profile_clusters(linker, least=least)
        classes = [Counter(names[rows][cluster == profile.id].tolist()).most_common(1)[0][0] for profile in profiles]
        classes = [NORMAL if name in model.encoding.schema.normal else name for name in classes]
        yield Known(profiles, classes)


def same_class(pairs: CandidatePairs, old: Known, new: Known) -> NDArray[np.bool_]:
    """Which candidate pairs have records of one class."""
    of = [{str(p.id): c for p, c in zip(k.profiles, k.classes, strict=True)} for k in (old, new)]
    return np.array([of[0][a] == of[1][b] for a, b in zip(pairs.left, pairs.right, strict=True)], np.bool_)


def matched_pairs(old: Known, new: Known, name: str = "") -> CandidatePairs | None:
    """An example to learn from: `match` is whether two clusters are of one class. None without a candidate.

    Pairs of two clusters that are both normal traffic are left out: of those nobody knows.
    """
    if not (old.profiles and new.profiles):
        return None
    pairs = candidate_pairs(old.profiles, new.profiles, name)
    same = same_class(pairs, old, new)
    kept = np.flatnonzero(~(same & of_class(pairs, old, NORMAL)))
    return pairs_at(pairs, kept, same[kept]) if len(kept) else None


class TrackingTask(MatchingTask):
    """Matchings of which only the classes are known: any with as many right pairs as can be is as good."""

    def encode(self, encoder: MatchEncoder, raw: Sequence[CandidatePairs]) -> list[tuple[Any, Any]]:
        """Candidate edges with scaled features, and which of them are right; the nearest ones to begin with."""
        plain = super().encode(encoder, [replace(one, match=None) for one in raw])
        return [
            (x, None if one.match is None else Allowed(x.graph, one.match, -profile_distances(one)))
            for (x, _), one in zip(plain, raw, strict=True)
        ]

    def problem(self, encoder: MatchEncoder, settings: MatchSettings) -> Any:
        """The heaviest matching, which of the right ones is meant being latent."""
        return AllowedMatchingProblem(len(encoder.fields) + 1)

    def measure(self, pairs: Sequence[tuple[Any, Any]]) -> Mapping[str, float]:
        """Of y and matchings h, in percent."""
        problem = AllowedMatchingProblem(0)
        chosen = [chosen_edges(y.graph, h) for y, h in pairs]
        right = sum(int((own & y.right).sum()) for (y, _), own in zip(pairs, chosen, strict=True))
        told, possible = sum(int(own.sum()) for own in chosen), sum(y.possible for y, _ in pairs)
        return {
            "loss": float(np.mean([problem.loss(y, h) for y, h in pairs])),
            "identities kept": 100.0 * right / max(possible, 1),
            "identities right": 100.0 * right / told if told else 100.0,
        }

    def learn(
        self,
        settings: Any,
        problem: Any,
        examples: Sequence[tuple[Any, Any]],
        *,
        warm: SvmFit | None = None,
        on_iteration: OnIteration | None = None,
    ) -> LearnedTask:
        """By the latent structural SVM."""
        convex = OneSlack(C=settings.C, epsilon=settings.epsilon, max_iterations=settings.max_iterations)
        fit = LatentSvm(convex, max_rounds=ROUNDS).fit(problem, examples, on_iteration=on_iteration)
        return LearnedTask(fit.w, fit.iterations, fit.converged, fit.objective, fit.gap, "latent structural SVM", fit)


def of_class(pairs: CandidatePairs, old: Known, name: str) -> NDArray[np.bool_]:
    """Of which pairs the old cluster is of a class."""
    own = {str(profile.id) for profile, c in zip(old.profiles, old.classes, strict=True) if c == name}
    return np.array([a in own for a in pairs.left], np.bool_)


TRACKING = TrackingTask()
