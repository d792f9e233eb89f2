"""The file of a trained clusterer: settings, how pairs are described, weights. Safetensors like every model file.

>>> model = ClusterModel(settings=ClusterSettings(), features=SetInput("difference"), w=np.array([-1.0, 0.5]))
>>> again = ClusterModel.from_bytes(model.to_bytes())
>>> again.w.tolist(), again.cluster([np.array([[0.0], [0.1], [2.0]])])[0].tolist()
([-1.0, 0.5], [0, 0, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.item_sets import ItemTable, sets_of
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
from netclust.models.clustering.set_inputs import SetInput
from netclust.models.clustering.text_pairs import TextFeatures, TextPairs
from netclust.models.clustering.train_clusterer import ClusterSettings, cluster_with
from netclust.structures.pairs import PairFeatures, Relation
from netclust.structures.partition import Labels

__all__ = ["KIND", "ClusterModel"]

KIND = "netclust.clustering"


class _ItemFeatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="items", tag_field="of"):
    """Features of pairs from items' own numbers."""

    relation: Relation
    constant: bool
    scaled: bool
    trained_on: Literal["items", "pairs"] | None = None
    fields: tuple[str, ...] = ()


class _TextFeatures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="text", tag_field="of"):
    """Features of pairs from texts."""

    spec: TextFeatures


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    settings: ClusterSettings
    features: _ItemFeatures | _TextFeatures
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class ClusterModel(ModelFile):
    """What clusters new sets. `features` makes pair features of items: `SetInput` of numbers, `TextPairs` of texts."""

    kind = KIND

    settings: ClusterSettings
    features: SetInput | TextPairs
    w: NDArray[np.float64]
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def names(self) -> tuple[str, ...]:
        """What the features of a pair are, in order."""
        if isinstance(self.features, TextPairs):
            return self.features.names
        last = ("constant",) if self.features.constant else ()
        own = len(self.w) - len(last)
        if self.features.of == "pairs":
            return tuple(f"feature {n}" for n in range(len(self.w)))
        names = self.features.fields or tuple(f"feature {n}" for n in range(own))
        return (*(f"{name} {self.features.relation}" for name in names), *last)

    def pairs(self, sets: Sequence[Any] | ItemTable) -> list[PairFeatures]:
        """The pair features of sets: item tables (or one that names its sets) for a model of texts, else arrays."""
        if isinstance(self.features, SetInput):
            return self.features.features([sets] if isinstance(sets, ItemTable) else sets, len(self.w))
        if isinstance(sets, ItemTable):
            sets = sets_of(sets)
        if not all(isinstance(table, ItemTable) for table in sets):
            raise InputError("this model compares texts: give netclust.ItemTable sets (netclust.read_items reads them)")
        return [self.features.build(table) for table in sets]

    def cluster(self, sets: Sequence[Any] | ItemTable, k: int | None = None) -> list[Labels]:
        """The clusters of every set, numbered by first appearance."""
        return [cluster_with(self.settings, pairs, self.w, k) for pairs in self.pairs(sets)]

    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        arrays: Arrays = {"weights": self.w}
        described: _ItemFeatures | _TextFeatures
        if isinstance(self.features, TextPairs):
            described = _TextFeatures(self.features.spec)
            arrays |= {f"features.{name}": array for name, array in self.features.arrays().items()}
        else:
            given = self.features
            described = _ItemFeatures(given.relation, given.constant, given.scale is not None, given.of, given.fields)
            if given.scale is not None:
                arrays["features.scale"] = given.scale
        header = _Header(settings=self.settings, features=described, provenance=self.provenance)
        return arrays, header

    @classmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        header = read_header(raw, _Header, where)
        w = read_weights(arrays, (None,), where)
        check_known(arrays, ("weights", *(name for name in arrays if name.startswith("features."))), where)
        own = {name.removeprefix("features."): array for name, array in arrays.items() if name != "weights"}
        features: SetInput | TextPairs
        if isinstance(header.features, _TextFeatures):
            with errors_of_model(where):
                features = TextPairs.from_arrays(header.features.spec, own, where)
            if len(features.names) != len(w):
                raise ModelError(f"{where}: {len(w)} weights for {len(features.names)} features")
            known = set(features.arrays())
        else:
            constant = header.features.constant
            scale = None
            if len(w) < 1:
                raise ModelError(f"{where}: has no weights")
            if header.features.scaled:
                scale = container.require_array(own, "scale", np.float64, (len(w) - constant,), where)
                if (scale <= 0).any():
                    raise ModelError(f"{where}: features.scale must be positive")
            given = header.features
            if given.fields and len(given.fields) != len(w) - constant:
                raise ModelError(f"{where}: {len(given.fields)} fields for {len(w) - constant} weights")
            features = SetInput(given.relation, constant, scale, given.trained_on, given.fields)
            known = {"scale"} if header.features.scaled else set()
        check_known(own, known, where)
        return cls(settings=header.settings, features=features, w=w, provenance=header.provenance)
