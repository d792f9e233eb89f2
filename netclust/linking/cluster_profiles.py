"""Cluster profiles: what the records of a cluster look like, in the schema's own terms, whichever model found it.

A cluster's number means nothing to another linker: one that began anew, has another model or sits at another sensor.
Its profile does: of every numeric attribute the mean and spread (as the schema transforms it, not as a model scales
it), of every other one how often each value occurs. They are made from the records that can still be linked to.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.linking.linker import LinkerConfig
>>> from netclust.models.network.train_network import train_network
>>> from netclust.models.network.params import load_params
>>> model = train_network(simulate(2000, seed=1, attacks=()).table(), load_params("unlearned-reference"), seed=0)
>>> linker = Linker(model, LinkerConfig(referent_window=2000))
>>> _ = linker.process(model.encoding.encode(simulate(2000, seed=2, day=1, attacks=("syn_flood",)).table()))
>>> largest = max(profile_clusters(linker), key=lambda profile: profile.members)
>>> largest.values["flag"], round(largest.numbers["serror_rate"].mean, 1)
({'S0': 1.0}, 1.0)
>>> decode_profiles(encode_profiles([largest], "kdd"), "a.json") == ([largest], "kdd")
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.clusters import ClusterSummary
from netclust.linking.linker import Linker
from netclust.records.encoding import Encoding

__all__ = ["ClusterProfile", "ClusteredRows", "Spread", "decode_profiles", "encode_profiles", "profile_clusters"]

MOST_VALUES = 16
"""Of one attribute: those that occur most."""
MOST_PROFILES = 4000
Finite = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A numeric attribute, transformed as the schema says."""

    mean: Finite
    spread: Finite
    first: Finite
    """Of the oldest record."""


class ClusterProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster; `records` joined it, and `members` of them were looked at."""

    id: int
    label: str
    """What it is: "novel", or what a person said."""
    normal: bool
    """Whether a person said that it is normal."""
    records: Count
    anomalous: Count
    members: Count
    first_time: int
    last_time: int
    top_score: float | None
    numbers: dict[str, Spread]
    values: dict[str, dict[str, Share]]
    firsts: dict[str, str]
    """The values of the oldest record; "" where it has none."""


class ClusteredRows(NamedTuple):
    """Encoded records, a row each, and the cluster of each."""

    cluster: NDArray[np.int64]
    num: NDArray[np.float32]
    code: NDArray[np.uint16]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    clusters: Annotated[list[ClusterProfile], msgspec.Meta(max_length=MOST_PROFILES)]


def profile_clusters(linker: Linker, *, least: int = 1, kept: ClusteredRows | None = None) -> list[ClusterProfile]:
    """The clusters that are no class of the model and that at least so many records joined; by id.

    Looked at are those records that can still be linked to, else those that were `kept` elsewhere; without either there
    is no profile.
    """
    encoding = linker.model.encoding
    known = len(encoding.labels)
    groups = [group for part in linker.memory.partitions for group in part.groups()]
    cluster = np.concatenate([members.cluster[live] for members, live in groups])
    tick = np.concatenate([members.tick[live] for members, live in groups])
    num = np.concatenate([members.num[:, live] for members, live in groups], axis=1)
    code = np.concatenate([members.code[:, live] for members, live in groups], axis=1)
    by_cluster = np.lexsort((tick, cluster))
    idents, starts = np.unique(cluster[by_cluster], return_index=True)
    rows_of = dict(zip(idents.tolist(), np.split(by_cluster, starts[1:]), strict=True))
    found = []
    for summary in linker.clusters():
        if summary.id < known or summary.records < least:
            continue
        if (rows := rows_of.get(summary.id)) is not None:
            found.append(_profile(encoding, summary, num[:, rows].astype(np.float64), code[:, rows]))
        elif kept is not None and len(own := np.flatnonzero(kept.cluster == summary.id)):
            found.append(_profile(encoding, summary, kept.num[own].T.astype(np.float64), kept.code[own].T))
    return found


def encode_profiles(profiles: Sequence[ClusterProfile], schema: str) -> bytes:
    """As a file's content: JSON."""
    return msgspec.json.format(msgspec.json.encode(_File(schema, list(profiles)))) + b"\n"


def decode_profiles(content: bytes, where: str) -> tuple[list[ClusterProfile], str]:
    """Profiles out of a file, and the schema's name."""
    try:
        found = msgspec.json.decode(content, type=_File)
    except msgspec.DecodeError as error:
        raise InputError(f"{where}: is no file of cluster profiles: {error}") from None
    if len({profile.id for profile in found.clusters}) < len(found.clusters):
        raise InputError(f"{where}: a cluster is there twice")
    return found.clusters, found.schema


def _profile(
    encoding: Encoding, summary: ClusterSummary, num: NDArray[np.float64], code: NDArray[Any]
) -> ClusterProfile:
    own = encoding.low[:, None] + num * encoding.span[:, None]
    numbers = {
        attribute.name: Spread(*(_rounded(x) for x in (row.mean(), row.std(), row[0])))
        for attribute, row in zip(encoding.numeric, own, strict=True)
    }
    values, firsts = {}, {}
    for s, attribute in enumerate(encoding.schema.coded):
        names = ("", *encoding.vocabularies[s])
        counts = np.bincount(code[s])
        most = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        values[attribute.name] = {names[c]: _rounded(counts[c] / code.shape[1]) for c in most.tolist() if counts[c]}
        firsts[attribute.name] = names[int(code[s, 0])]
    return ClusterProfile(
        id=summary.id,
        label=summary.label,
        normal=summary.label in encoding.schema.normal,
        records=summary.records,
        anomalous=summary.anomalous,
        members=num.shape[1],
        first_time=summary.first_time,
        last_time=summary.last_time,
        top_score=summary.top_score if np.isfinite(summary.top_score) else None,
        numbers=numbers,
        values=values,
        firsts=firsts,
    )


def _rounded(x: float) -> float:
    return float(f"{float(x):.6g}")
