"""Model: everything that linking needs, in one file: schema, scaling, vocabularies, weights, referents, calibration.

>>> from netclust.models.network.train_network import train_network
>>> from netclust.datasets.simulators.simulate import simulate
>>> model = train_network(simulate(2000, seed=1).table(), seed=0)
>>> again = Model.from_bytes(model.to_bytes())
>>> again.fingerprint == model.fingerprint, len(again.reference)
(True, 280)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation import container
from netclust.foundation.container import Arrays
from netclust.foundation.model_file import MAX_WEIGHT, ModelFile, Provenance, check_known, errors_of_model, read_header
from netclust.records.batch import Batch
from netclust.records.encoding import FAR, MAX_CODES, Encoding, fit_encoding
from netclust.records.labels import MAX_LABEL_CHARACTERS, MAX_LABELS
from netclust.records.schema import Schema, check_schema
from netclust.records.table import Table
from netclust.scoring.calibration import Calibration
from netclust.scoring.similarity import (
    RootFeatures,
    WeightLayout,
    distance_weights,
    root_count,
    root_features,
    spread_units,
)

if TYPE_CHECKING:
    from netclust.kernels.linking.score import Scorer

KIND = "netclust.model"
_ARRAYS = (
    *("weights.averaged", "weights.last", "scaling.low", "scaling.span", "similarity.far"),
    *("reference.num", "reference.code", "reference.label", "reference.seq"),
)


class _Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The JSON part of the file."""

    task: str
    schema: Schema
    kept: tuple[str, ...]
    vocabularies: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    sign: Literal[-1, 1]
    root: RootFeatures
    rooted: bool
    weights: Literal["averaged", "last"]
    calibration: Calibration | None
    provenance: Provenance


@dataclass(frozen=True, eq=False)
class Model(ModelFile):
    """A trained similarity with its encoding and its reference set."""

    kind = KIND

    encoding: Encoding
    averaged: NDArray[np.float64]
    last: NDArray[np.float64]
    reference: Batch
    sign: Literal[-1, 1] = -1
    root: RootFeatures = "bias"
    far: NDArray[np.float64] | None = None  # where a difference stops to count, by attribute; None: nowhere
    rooted: bool = True  # False: nothing links to the root while there is a referent (the unlearned control)
    weights: Literal["averaged", "last"] = "averaged"
    calibration: Calibration | None = None
    provenance: Provenance = field(default_factory=Provenance)

    @cached_property
    def layout(self) -> WeightLayout:
        """Where each weight is."""
        features = len(self.encoding.kept)
        return WeightLayout(features, self.encoding.widths, root_count(features, self.root))

    @property
    def w(self) -> NDArray[np.float64]:
        """The weights in use."""
        return self.averaged if self.weights == "averaged" else self.last

    @cached_property
    def scorer(self) -> Scorer:
        """The weights in the form that kernels use."""
        from netclust.kernels.linking.score import Scorer, fold_weights
        from netclust.kernels.seam import read_only

        layout = self.layout
        offset = np.concatenate([[0], np.cumsum(layout.width)])[: len(layout.width)].astype(np.int64)
        slope = np.zeros(layout.features, np.float32)
        own, other, match = (np.zeros(int(layout.width.sum()), np.float32) for _ in range(3))
        base = fold_weights(
            self.w, layout.features, self.sign, layout.at, layout.width, offset, slope, own, other, match
        )
        far = np.full(layout.features, np.inf) if self.far is None else self.far
        arrays = (slope, far.astype(np.float32), own, other, match, offset)
        return Scorer(np.float32(base), *(read_only(array) for array in arrays))

    def root_scores(self, batch: Batch) -> NDArray[np.float32]:
        """The score of the root arc of every record: calibrated, or learned."""
        if self.calibration is not None:
            return np.full(len(batch), self.calibration.root, np.float32)
        if not self.rooted:
            return np.full(len(batch), -np.inf, np.float32)
        rho = root_features(batch, self.root)
        scores = np.zeros(len(batch), np.float32)
        for k, weight in enumerate(self.w[len(self.w) - rho.shape[1] :].astype(np.float32)):
            scores += weight * rho[:, k]
        return scores

    def with_root(self, calibration: Calibration | None) -> Model:
        """The same model with another root."""
        return replace(self, calibration=calibration)

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of everything that decides a verdict."""
        e = self.encoding
        names = (e.schema, e.kept, e.vocabularies, e.labels)
        digest = hashlib.sha256(msgspec.json.encode((names, self.sign, self.root, self.rooted, self.calibration)))
        far = np.zeros(0) if self.far is None else self.far
        for part in (self.w, far, e.low, e.span, self.reference.num, self.reference.code):
            digest.update(part.tobytes())
        digest.update(self.reference.label.tobytes())
        return digest.hexdigest()

    def _content(self) -> tuple[Arrays, msgspec.Struct]:
        e, ref = self.encoding, self.reference
        header = _Header(
            task="network",
            schema=e.schema,
            kept=e.kept,
            vocabularies=e.vocabularies,
            labels=e.labels,
            sign=self.sign,
            root=self.root,
            rooted=self.rooted,
            weights=self.weights,
            calibration=self.calibration,
            provenance=self.provenance,
        )
        arrays: Arrays = {
            "weights.averaged": self.averaged,
            "weights.last": self.last,
            "scaling.low": e.low,
            "scaling.span": e.span,
            "reference.num": ref.num,
            "reference.code": ref.code,
            "reference.label": ref.label,
            "reference.seq": ref.seq,
        }
        if self.far is not None:
            arrays["similarity.far"] = self.far
        return arrays, header

    @classmethod
    def _from_content(cls, arrays: Arrays, raw: dict[str, Any], where: str) -> Self:
        header = read_header(raw, _Header, where)
        with errors_of_model(where):
            schema = check_schema(header.schema, f"{where}: schema")
        check_known(arrays, _ARRAYS, where)
        kept = frozenset(header.kept)
        names = [a.name for a in schema.numeric if a.name in kept]
        if tuple(names) != header.kept or len(header.vocabularies) != len(schema.coded):
            raise ModelError(f"{where}: scaling or vocabularies do not fit the schema")
        if any(len(v) >= MAX_CODES or len(set(v)) < len(v) for v in header.vocabularies):
            raise ModelError(f"{where}: a vocabulary is too large or names a value twice")
        if not header.labels or len(set(header.labels)) < len(header.labels) or len(header.labels) > MAX_LABELS:
            raise ModelError(f"{where}: no labels, too many, or one named twice")
        if not all(0 < len(name) <= MAX_LABEL_CHARACTERS for name in header.labels):
            raise ModelError(f"{where}: a label has 1 to {MAX_LABEL_CHARACTERS} characters")
        features = len(header.kept)
        layout = WeightLayout(
            features, tuple(len(v) + 1 for v in header.vocabularies), root_count(features, header.root)
        )
        span = container.require_array(arrays, "scaling.span", np.float64, (features,), where)
        if (span <= 0).any():
            raise ModelError(f"{where}: scaling.span must be positive")
        far = None
        if "similarity.far" in arrays:
            far = container.require_array(arrays, "similarity.far", np.float64, (features,), where)
            if (far <= 0).any() or (far > MAX_WEIGHT).any():
                raise ModelError(f"{where}: similarity.far must be positive")
        label = container.require_array(arrays, "reference.label", np.int32, (None,), where)
        code = container.require_array(arrays, "reference.code", np.uint16, (len(label), len(layout.widths)), where)
        if (label < 0).any() or (label >= len(header.labels)).any() or (code >= layout.width).any():
            raise ModelError(f"{where}: the reference set names labels or values that the model does not have")
        if header.calibration is not None and not abs(header.calibration.root) <= float(np.finfo(np.float32).max):
            raise ModelError(f"{where}: the calibrated root is too large to be a score")
        weights = {
            name: container.require_array(arrays, f"weights.{name}", np.float64, (layout.dimension,), where)
            for name in ("averaged", "last")
        }
        num = container.require_array(arrays, "reference.num", np.float32, (len(label), features), where)
        if any(np.abs(w).max(initial=0) > MAX_WEIGHT for w in weights.values()) or (np.abs(num) > FAR).any():
            raise ModelError(f"{where}: a weight or a referent is too large to be scored")
        encoding = Encoding(
            schema=schema,
            kept=header.kept,
            low=container.require_array(arrays, "scaling.low", np.float64, (features,), where),
            span=span,
            vocabularies=header.vocabularies,
            labels=header.labels,
        )
        reference = Batch(
            num=num,
            code=code,
            label=label,
            seq=container.require_array(arrays, "reference.seq", np.uint64, (len(label),), where),
        )
        return cls(
            encoding=encoding,
            **weights,
            reference=reference,
            sign=header.sign,
            root=header.root,
            far=far,
            rooted=header.rooted,
            weights=header.weights,
            calibration=header.calibration,
            provenance=header.provenance,
        )


def distance_model(table: Table) -> Model:
    """Return the unlearned rule with every record of a table as a referent, and no root."""
    encoding = fit_encoding(table)
    batch = encoding.encode(table)
    layout = WeightLayout(batch.num.shape[1], encoding.widths, 1)
    binary = [a.kind == "binary" for a in encoding.schema.coded]
    mismatch = np.where(layout.width > 1, 1.0, 0.0)
    w = distance_weights(layout, binary, 1 / spread_units(batch.num), mismatch, 0.0, -1)
    return Model(encoding, w, w, batch, rooted=False)
