"""Pair features of text items: cosines of TF-IDF vectors, a field and an n-gram order each, as news are compared.

>>> from netclust.datasets.item_sets import ItemTable
>>> titles = ("learning to cluster", "learning to cluster news", "a rigged casino", "")
>>> table = ItemTable(("title",), (titles,), ("1", "2", "3", "4"))
>>> text = TextPairs.fit(TextFeatures(fields=("title",), words=(1, 2)), [table])
>>> text.names
('title 1-grams', 'title 2-grams', 'title missing', 'constant')
>>> text.build(table).scores(np.array([1.0, 0.0, 0.0, 0.0])).round(2).tolist()  # 1 and 2 are alike
[0.81, 0.0, 0.0, 0.0, 0.0, 0.0]

Frequencies are those of the training items alone. Words are hashed, so that a model has a fixed size and new words have
a place. A set of many items needs `candidates`: pairs that share a rare word; others are then not compared at all.

Reference: T. Finley and T. Joachims, "Supervised clustering with support vector machines", ICML 2005; section 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.item_sets import ItemTable
from netclust.errors import InputError
from netclust.foundation import container
from netclust.foundation.optional import require_optional
from netclust.models.clustering.cosines import CosinePairs, KeptPairs
from netclust.models.clustering.stemming import stem
from netclust.structures.pairs import ComputedPairs, PairFeatures, PairIndex, StackedPairs, pair_count

__all__ = ["TextFeatures", "TextPairs"]

KEPT_BYTES = 256 << 20
"""Features of a set are kept if they need no more than this, and computed each time if they do."""

_MAX_SLOTS = 1 << 22
_WORD = re.compile(r"\w+")
_ROWS = 1024  # of the product that finds candidates, at a time


class TextFeatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which features a pair of text items has."""

    fields: tuple[str, ...]
    words: tuple[int, ...] = (1, 2, 3)
    """Orders of word n-grams."""
    characters: tuple[int, ...] = ()
    """Orders of character n-grams, within words."""
    stem: bool = False
    """Word n-grams of Porter's stems as well."""
    numbers: tuple[str, ...] = ()
    """Fields that are numbers: their difference, in units of its spread in training."""
    sublinear: bool = False
    """A word that is there n times counts 1 + ln n, not n."""
    common: float = 1.0
    """n-grams that more than this share of the training items have are not compared."""
    missing: bool = True
    """An indicator a field: either item does not have it."""
    constant: bool = True
    """A feature that is always 1: the threshold between joining and not joining."""
    slots: int = 1 << 16
    """Places that the n-grams of a field and order are hashed to."""


class _View(NamedTuple):
    """One way to look at a field: a feature."""

    name: str
    field: str
    order: int
    kind: str


@dataclass(frozen=True, eq=False)
class TextPairs:
    """What was learned about texts (how rare n-grams are) and builds pair features from it."""

    spec: TextFeatures
    idf: dict[str, NDArray[np.float32]] = field(repr=False)
    """Of every cosine feature, by its name."""
    centre: NDArray[np.float64]
    spread: NDArray[np.float64]

    @classmethod
    def fit(cls, spec: TextFeatures, tables: Sequence[ItemTable]) -> TextPairs:
        """Count n-grams in the training items."""
        _check(spec)
        items = sum(map(len, tables))
        if not items:
            raise InputError("no training items to learn the frequencies of words from")
        idf = {}
        for view in _views(spec):
            count = np.zeros(spec.slots)
            for table in tables:
                count += np.bincount(_counts(view, table.column(view.field), spec).indices, minlength=spec.slots)
            rarity = np.log((1 + items) / (1 + count)) + 1
            idf[view.name] = np.where(count > spec.common * items, 0.0, rarity).astype(np.float32)
        numbers = np.concatenate([_numbers(spec, table) for table in tables])
        known = [column[~np.isnan(column)] for column in numbers.T]
        centre = np.array([column.mean() if len(column) else 0.0 for column in known])
        spread = np.array([column.std() if len(column) else 0.0 for column in known])
        return cls(spec, idf, centre, np.where(spread > 0, spread, 1.0))

    @property
    def names(self) -> tuple[str, ...]:
        """What the features are, in order."""
        spec = self.spec
        missing = [f"{name} missing" for name in (*spec.fields, *spec.numbers)] if spec.missing else []
        differences = [f"{name} difference" for name in spec.numbers]
        return (*self.idf, *missing, *differences, *(["constant"] if spec.constant else []))

    def arrays(self) -> container.Arrays:
        """What a model file keeps, beside the spec in its header."""
        found: container.Arrays = {f"idf.{k}": idf for k, idf in enumerate(self.idf.values())}
        return {**found, "numbers.centre": self.centre, "numbers.spread": self.spread}

    @classmethod
    def from_arrays(cls, spec: TextFeatures, arrays: container.Arrays, where: str) -> TextPairs:
        """The opposite of `arrays`."""
        _check(spec)
        views, numbers = _views(spec), len(spec.numbers)
        idf = {
            view.name: container.require_array(arrays, f"idf.{k}", np.float32, (spec.slots,), where)
            for k, view in enumerate(views)
        }
        centre = container.require_array(arrays, "numbers.centre", np.float64, (numbers,), where)
        spread = container.require_array(arrays, "numbers.spread", np.float64, (numbers,), where)
        if (spread <= 0).any():
            raise InputError(f"{where}: numbers.spread must be above 0")
        return cls(spec, idf, centre, spread)

    def vectors(self, table: ItemTable) -> list[Any]:
        """The items' TF-IDF vectors: one CSR matrix of unit rows (or empty ones) a cosine feature."""
        normalize = require_optional("sklearn.preprocessing", "comparing texts").normalize
        found = []
        for view in _views(self.spec):
            counts = _counts(view, table.column(view.field), self.spec)
            if self.spec.sublinear:
                counts.data = 1 + np.log(counts.data)
            counts.data *= self.idf[view.name][counts.indices]
            found.append(normalize(counts, copy=False) if len(table) else counts)
        return found

    def build(self, table: ItemTable, index: PairIndex | None = None, kept_bytes: int = KEPT_BYTES) -> PairFeatures:
        """The features of a set's pairs: of all of them, or of those in `index` (see `candidates`)."""
        numbers = _numbers(self.spec, table)
        unknown = np.isnan(numbers)
        flags = [[not text.strip() for text in table.column(name)] for name in self.spec.fields]
        missing = np.column_stack([np.array(flags, bool).reshape(len(flags), len(table)).T, unknown])
        cosines = CosinePairs(self.vectors(table), missing if self.spec.missing else missing[:, :0], index)
        scaled = np.where(unknown, 0.0, (numbers - self.centre) / self.spread)
        rest = ComputedPairs(scaled, "difference", self.spec.constant, index)
        pairs = StackedPairs([cosines, rest]) if rest.dimension else cosines
        count = pair_count(len(table)) if index is None else len(index.left)
        if count * pairs.dimension * 8 > kept_bytes:
            return pairs
        psi = cosines.dense()
        return KeptPairs(pairs, np.column_stack([psi, rest.dense()]) if rest.dimension else psi)

    def candidates(self, table: ItemTable, *, most: int = 50, neighbours: int = 25) -> PairIndex:
        """Pairs that share a rare word in some field: one that no more than `most` items of the set have.

        Of an item those `neighbours` are taken that share the rarest words with it, so that pairs grow with items,
        not with their square. A pair is in if either item chose it.
        """
        if most < 2 or neighbours < 1:
            raise InputError("candidates need words that 2 items may share, and 1 neighbour an item at least")
        sparse = require_optional("scipy.sparse", "finding candidate pairs")
        words = [_counts(_View("", name, 1, "words"), table.column(name), self.spec) for name in self.spec.fields]
        found = sparse.hstack([*words, sparse.csr_matrix((len(table), 1))]).tocsr()
        found.data[:] = 1
        frequency = np.asarray(found.sum(axis=0)).ravel()
        rare = np.flatnonzero((frequency >= 2) & (frequency <= most))
        weight = np.log(len(table) / frequency[rare]) + 1
        shared = found[:, rare]
        weighted = shared.multiply(weight).tocsr()
        keys = [
            _nearest((weighted[at : at + _ROWS] @ shared.T).tocsr(), at, len(table), neighbours)
            for at in range(0, len(table), _ROWS)
        ]
        key = np.unique(np.concatenate([*keys, np.zeros(0, np.int64)]))
        return PairIndex(key // len(table), key % len(table))


def _nearest(alike: Any, at: int, items: int, neighbours: int) -> NDArray[np.int64]:
    """The best pairs of some rows, as left * items + right; equal ones by their place in the set."""
    row = np.repeat(np.arange(alike.shape[0]), np.diff(alike.indptr)) + at
    column = alike.indices.astype(np.int64)
    other = row != column
    row, column, value = row[other], column[other], alike.data[other]
    order = np.lexsort((column, -value, row))
    row, column = row[order], column[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    row, column = row[rank < neighbours], column[rank < neighbours]
    return np.asarray(np.minimum(row, column) * items + np.maximum(row, column), np.int64)


def _check(spec: TextFeatures) -> None:
    if not spec.fields and not spec.numbers:
        raise InputError("text features need a field to compare items by")
    orders = (*spec.words, *spec.characters)
    if spec.fields and not orders:
        raise InputError("text features need an order of word or character n-grams")
    twice = any(len(set(some)) < len(some) for some in (spec.words, spec.characters))
    if twice or any(not 1 <= order <= 10 for order in orders):
        raise InputError(f"orders of n-grams are different numbers from 1 to 10, not {list(orders)}")
    if not 2 <= spec.slots <= _MAX_SLOTS:
        raise InputError(f"slots is {spec.slots}, expected 2 to {_MAX_SLOTS}")
    if not 0 < spec.common <= 1:
        raise InputError(f"common is {spec.common}, expected a share above 0, up to 1")
    names = (*spec.fields, *spec.numbers)
    if len(set(names)) < len(names):
        raise InputError(f"a field is there twice: {', '.join(names)}")


def _views(spec: TextFeatures) -> list[_View]:
    kinds = [("words", order) for order in spec.words]
    kinds += [("stems", order) for order in spec.words if spec.stem]
    kinds += [("characters", order) for order in spec.characters]
    called = {"words": "{} {}-grams", "stems": "{} stemmed {}-grams", "characters": "{} {}-character grams"}
    return [_View(called[kind].format(name, n), name, n, kind) for name in spec.fields for kind, n in kinds]


def _counts(view: _View, texts: Sequence[str], spec: TextFeatures) -> Any:
    """How often every n-gram is in every text: CSR [texts, slots]."""
    hashing = require_optional("sklearn.feature_extraction.text", "comparing texts").HashingVectorizer(
        analyzer=_ANALYZERS[view.kind](view.order), n_features=spec.slots, alternate_sign=False, norm=None
    )
    return hashing.transform(texts) if len(texts) else hashing.transform([""])[:0]


def _word_grams(order: int, change: Callable[[str], str] | None = None) -> Callable[[str], list[str]]:
    def grams(text: str) -> list[str]:
        words = _WORD.findall(text.lower())
        if change is not None:
            words = [change(word) for word in words]
        return words if order == 1 else [" ".join(words[k : k + order]) for k in range(len(words) - order + 1)]

    return grams


def _character_grams(order: int) -> Callable[[str], Iterator[str]]:
    def grams(text: str) -> Iterator[str]:
        for word in _WORD.findall(text.lower()):
            padded = f" {word} "
            for k in range(max(len(padded) - order + 1, 1)):
                yield padded[k : k + order]

    return grams


_ANALYZERS: dict[str, Callable[[int], Callable[[str], Any]]] = {
    "words": _word_grams,
    "stems": lambda order: _word_grams(order, stem),
    "characters": _character_grams,
}


def _numbers(spec: TextFeatures, table: ItemTable) -> NDArray[np.float64]:
    """The number fields [items, numbers]; NaN where there is none."""
    found = np.full((len(table), len(spec.numbers)), np.nan)
    for k, name in enumerate(spec.numbers):
        for i, text in enumerate(table.column(name)):
            if text.strip():
                found[i, k] = _number(text, name, table.ids[i])
    return found


def _number(text: str, name: str, item: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"item {item}: {name} is {text!r}, expected a number or nothing")
    return value
