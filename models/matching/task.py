"""Matchings as a task of the command line: candidate pairs of a CSV, their features scaled, and a constant.

>>> rng = np.random.default_rng(0)
>>> def problem(k):
...     match = np.eye(3, dtype=bool).ravel()
...     features = np.column_stack([match + rng.normal(0, 0.3, 9), rng.normal(size=9)])
...     names = [f"{side}{n}" for side in "ab" for n in range(3)]
...     left, right = tuple(np.repeat(names[:3], 3)), tuple(names[3:] * 3)
...     return CandidatePairs(f"day {k}", left, right, features, ("alike", "noise"), match)
>>> raw, settings = [problem(k) for k in range(12)], MatchSettings(C=100.0)
>>> encoder = TASK.fit(raw, settings)
>>> learned = learn(TASK, settings, encoder, TASK.encode(encoder, raw))
>>> x, y = TASK.encode(encoder, [problem(12)])[0]
>>> TASK.problem(encoder, settings).predict(x, learned.w).tolist() == y.tolist() == [3, 4, 5, 0, 1, 2]
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from netclust.datasets.candidate_pairs import CandidatePairs
from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.matching.matching_loss import delta_matching
from netclust.models.matching.matching_problem import MatchExample, MatchingProblem
from netclust.models.matching.matchings import MatchGraph, Partners, partners_of
from netclust.models.structured_model import know_task
from netclust.models.structured_task import StructuredTask, SvmSettings, learn

__all__ = ["TASK", "MatchEncoder", "MatchSettings", "MatchingTask", "learn", "match_measures"]


class MatchSettings(SvmSettings, frozen=True, kw_only=True):
    """How matchings are learned."""

    general: bool = False
    """Left and right are names of one set, in which anything may be paired with anything."""
    perfect: bool = False
    """Nothing is left alone."""


class MatchEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The features of pairs, and how each is scaled."""

    fields: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    general: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot have been fitted."""
        numbers = np.array([*self.mean, *self.spread])
        if not (self.fields and len(self.mean) == len(self.spread) == len(self.fields)):
            raise InputError("every feature needs a mean and a spread")
        if not np.isfinite(numbers).all() or min(self.spread) <= 0:
            raise InputError("a feature's scale is no positive number")


class MatchingTask(StructuredTask):
    """See `StructuredTask`: raw examples are `CandidatePairs`."""

    name, settings, encoder = "matching", MatchSettings, MatchEncoder

    def fit(self, raw: Sequence[CandidatePairs], settings: MatchSettings) -> MatchEncoder:
        """Scales of the features over all pairs; one that never varies is left as it is."""
        rows = np.vstack([one.features for one in raw])
        spread = rows.std(axis=0)
        varies = spread > 1e-12 * (1 + np.abs(rows).max(axis=0))
        mean, spread = np.where(varies, rows.mean(axis=0), 0.0), np.where(varies, spread, 1.0)
        return MatchEncoder(raw[0].fields, tuple(mean.tolist()), tuple(spread.tolist()), settings.general)

    def encode(
        self, encoder: MatchEncoder, raw: Sequence[CandidatePairs]
    ) -> list[tuple[MatchExample, Partners | None]]:
        """Candidate edges with scaled features, and the partner of every node."""
        return [_encoded(encoder, one) for one in raw]

    def problem(self, encoder: MatchEncoder, settings: MatchSettings) -> MatchingProblem:
        """The heaviest matching, by the features and a constant."""
        return MatchingProblem(len(encoder.fields) + 1, settings.perfect)

    def weight_names(self, encoder: MatchEncoder, settings: MatchSettings) -> list[str]:
        """The features', and that of being matched at all."""
        return [*encoder.fields, "any match"]

    def measure(self, pairs: Sequence[tuple[Partners, Partners]]) -> Mapping[str, float]:
        """Of matchings y and h."""
        return match_measures(pairs)


def match_measures(pairs: Sequence[tuple[Partners, Partners]]) -> dict[str, float]:
    """In percent: the mean loss; precision, recall and F1 of all matched pairs; problems without an error."""
    right = sum(int(((y == h) & (y >= 0)).sum()) for y, h in pairs)
    true, found = (sum(int((pair[k] >= 0).sum()) for pair in pairs) for k in range(2))
    return {
        "loss": float(np.mean([delta_matching(y, h) for y, h in pairs])),
        "precision": 100.0 * right / found if found else 100.0,
        "recall": 100.0 * right / true if true else 100.0,
        "F1": 200.0 * right / (true + found) if true + found else 100.0,
        "all right": 100.0 * float(np.mean([bool((y == h).all()) for y, h in pairs])),
    }


def _encoded(encoder: MatchEncoder, one: CandidatePairs) -> tuple[MatchExample, Partners | None]:
    if missing := [name for name in encoder.fields if name not in one.fields]:
        raise InputError(f"no column {sanitize(missing[0])!r}: the model scores pairs by it")
    columns = [one.fields.index(name) for name in encoder.fields]
    scaled = (one.features[:, columns] - np.array(encoder.mean)) / np.array(encoder.spread)
    where = f"example {sanitize(one.name)!r}: " if one.name else ""
    try:
        graph = graph_of(one, general=encoder.general)
        if one.match is not None:
            _check_matches(one, general=encoder.general)
        y = None if one.match is None else partners_of(graph, one.match)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    return MatchExample(graph, np.column_stack([scaled, np.ones(len(one))])), y


def _check_matches(one: CandidatePairs, *, general: bool) -> None:
    """Refuse a name with two partners, by name."""
    partner: dict[tuple[bool, str], str] = {}
    for a, b, match in zip(one.left, one.right, one.match if one.match is not None else (), strict=True):
        for of, name, other in ((False, a, b), (not general, b, a)):
            if match and partner.setdefault((of, name), other) != other:
                two = f"{sanitize(partner[of, name])} and {sanitize(other)}"
                raise InputError(f"{sanitize(name)} is matched with {two}: in a matching with one at most")


def graph_of(one: CandidatePairs, *, general: bool) -> MatchGraph:
    """Nodes are names by first appearance, those of the left side first."""
    left = {name: n for n, name in enumerate(dict.fromkeys(one.left))}
    if general:
        for name in one.right:
            left.setdefault(name, len(left))
        right, split = left, None
    else:
        split = len(left)
        right = {name: split + n for n, name in enumerate(dict.fromkeys(one.right))}
    nodes = len(left) if general else len(left) + len(right)
    seen: set[tuple[str, str]] = set()
    for a, b in zip(one.left, one.right, strict=True):
        pair = (min(a, b), max(a, b)) if general else (a, b)
        if pair in seen:
            which = f"pair ({sanitize(a)}, {sanitize(b)}) is there twice"
            raise InputError(f"{which}: if the file has several problems, name them in a column example")
        if general and a == b:
            raise InputError(f"{sanitize(a)} is paired with itself")
        seen.add(pair)
    ends = [np.array([of[name] for name in names], np.int64) for of, names in ((left, one.left), (right, one.right))]
    return MatchGraph(nodes, ends[0], ends[1], split)


TASK = MatchingTask()
know_task("matching", lambda: TASK)
