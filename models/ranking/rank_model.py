"""The file of a trained ranker: settings, how candidates are described, weights. Safetensors like every model file.

>>> from netclust.datasets.queries import Query
>>> some = Queries((Query("q", ("a", "b", "c"), np.array([0, 1, 0]), np.array([[1.0], [3.0], [2.0]])),), ("size",))
>>> model = train_ranking(some, RankSettings(C=1.0, epochs=2))
>>> again = RankModel.from_bytes(model.to_bytes())
>>> [found.order.tolist() for found in again.rank(some)]
[[1, 2, 0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.queries import Queries, Query
from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.foundation.model_file import (
    ModelFile,
    Provenance,
    check_known,
    errors_of_model,
    read_header,
    read_weights,
)
from netclust.models.ranking.answer_features import AnswerFeatures
from netclust.models.ranking.ranking_problem import RankQuery
from netclust.models.ranking.train_ranker import Ranked, RankExample, RankSettings, learn_ranking, rank_items
from netclust.structures.pairs import ComputedPairs

__all__ = ["KIND", "CandidateFeatures", "RankModel", "train_ranking"]

KIND = "netclust.ranking"


@dataclass(frozen=True, eq=False)
class CandidateFeatures:
    """How a query's candidates become numbers: their own, or those of texts; each less its centre, in its scale."""

    fields: tuple[str, ...]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    text: AnswerFeatures | None = None

    @classmethod
    def fit(cls, queries: Queries) -> CandidateFeatures:
        """Learn from training queries."""
        text = None
        if queries.of_text:
            text = AnswerFeatures.fit([(query.question, query.answers) for query in queries.queries])
        rows = np.concatenate([_rows(query, text) for query in queries.queries])
        spread = rows.std(axis=0)
        names = queries.fields if text is None else text.names
        return cls(names, rows.mean(axis=0), np.where(spread > 0, spread, 1.0), text)

    @property
    def pair_names(self) -> tuple[str, ...]:
        """What the features of two candidates are."""
        if self.text is not None:
            return self.text.pair_names
        return (*(f"{name} difference" for name in self.fields), "constant")

    def build(self, queries: Queries, *, pairs: bool) -> list[RankQuery]:
        """The features of every query, with those of pairs where they are wanted."""
        if queries.of_text != (self.text is not None):
            kinds = ("texts", "numbers") if self.text is not None else ("numbers", "texts")
            raise InputError(f"the model ranks by {kinds[0]}, and these candidates are {kinds[1]}")
        return [self._query(query, pairs) for query in queries.queries]

    def _query(self, query: Query, pairs: bool) -> RankQuery:
        rows = _rows(query, self.text)
        if rows.shape[1] != len(self.centre):
            raise InputError(f"query {query.name}: {rows.shape[1]} features, the model has {len(self.centre)}")
        items = (rows - self.centre) / self.scale
        if not pairs:
            return RankQuery(items)
        return RankQuery(items, ComputedPairs(items) if self.text is None else self.text.pairs(query.answers))


def _rows(query: Query, text: AnswerFeatures | None) -> NDArray[np.float64]:
    if text is not None:
        return text.items(query.question, query.answers)
    if query.numbers is None:
        raise InputError(f"query {query.name}: its candidates have no numbers")
    return query.numbers


def rank_examples(features: CandidateFeatures, queries: Queries, *, pairs: bool) -> list[RankExample]:
    """Return features and labels of the queries whose candidates are all labelled."""
    built = features.build(queries, pairs=pairs)
    return [(x, query.labels) for x, query in zip(built, queries.queries, strict=True) if query.labels is not None]


def train_ranking(queries: Queries, settings: RankSettings | None = None) -> RankModel:
    """Train on queries with a right and a wrong candidate."""
    settings = RankSettings() if settings is None else settings
    used = queries.mixed()
    if not used.queries:
        raise InputError("no query has both a right and a wrong candidate: there is nothing to learn an order from")
    features = CandidateFeatures.fit(used)
    examples = rank_examples(features, used, pairs=settings.model == "jsrc")
    return RankModel(settings=settings, features=features, w=learn_ranking(settings, examples))


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    settings: RankSettings
    fields: tuple[str, ...]
    of_text: bool
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class RankModel(ModelFile):
    """What ranks the candidates of new queries."""

    kind = KIND

    settings: RankSettings
    features: CandidateFeatures
    w: NDArray[np.float64]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def names(self) -> tuple[str, ...]:
        """What the weights are of: candidates' features, then (jsrc) those of pairs."""
        pairs = [f"pair: {name}" for name in self.features.pair_names] if self.settings.model == "jsrc" else []
        return (*self.features.fields, *pairs)

    def rank(self, queries: Queries) -> list[Ranked]:
        """A ranking of every query's candidates."""
        built = self.features.build(queries, pairs=self.settings.model == "jsrc")
        return [rank_items(self.settings, x, self.w) for x in built]

    def scores(self, queries: Queries) -> list[NDArray[np.float64]]:
        """The score of every candidate by itself."""
        own = self.w[: len(self.features.fields)]
        return [np.asarray(x.items @ own, np.float64) for x in self.features.build(queries, pairs=False)]

    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        given = self.features
        arrays: Arrays = {"weights": self.w, "centre": given.centre, "scale": given.scale}
        if given.text is not None:
            arrays |= {f"text.{name}": array for name, array in given.text.arrays().items()}
        header = _Header(
            settings=self.settings, fields=given.fields, of_text=given.text is not None, provenance=self.provenance
        )
        return arrays, header

    @classmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        header = read_header(raw, _Header, where)
        own = {name.removeprefix("text."): array for name, array in arrays.items() if name.startswith("text.")}
        text = None
        if header.of_text:
            with errors_of_model(where):
                text = AnswerFeatures.from_arrays(own, where)
            if header.fields != text.names:
                raise ModelError(f"{where}: ranks by features of texts that this netclust does not have")
        size = len(header.fields)
        centre = container.require_array(arrays, "centre", np.float64, (size,), where)
        scale = container.require_array(arrays, "scale", np.float64, (size,), where)
        if not size or (scale <= 0).any():
            raise ModelError(f"{where}: needs features, and scales above 0")
        features = CandidateFeatures(header.fields, centre, scale, text)
        pairs = len(features.pair_names) if header.settings.model == "jsrc" else 0
        w = read_weights(arrays, (size + pairs,), where)
        known = {"weights", "centre", "scale", *(f"text.{name}" for name in (text.arrays() if text else ()))}
        check_known(arrays, known, where)
        return cls(settings=header.settings, features=features, w=w, provenance=header.provenance)


def text_queries(
    questions: Sequence[tuple[str, Sequence[str]]], labels: Sequence[Sequence[int]] | None = None
) -> Queries:
    """Questions and their candidate answers as queries, with labels where they are known.

    >>> text_queries([("who ?", ["she", "they"])], [[1, 0]]).queries[0].labels.tolist()
    [1, 0]
    """
    if labels is not None and len(labels) != len(questions):
        raise InputError(f"{len(questions)} questions, but labels of {len(labels)}")
    found = []
    for n, (question, answers) in enumerate(questions):
        known = None if labels is None else (np.asarray(labels[n]) > 0).astype(np.int64)
        if known is not None and known.shape != (len(answers),):
            raise InputError(f"question {n} has {len(answers)} answers, but {known.size} labels")
        found.append(Query(str(n), tuple(map(str, range(len(answers)))), known, None, question, tuple(answers)))
    return Queries(tuple(found))
