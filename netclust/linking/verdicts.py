"""Verdicts: what the linker decided about a batch. Once given they do not change.

>>> v = Verdicts.empty(2)
>>> len(v), v.anomalous.tolist()
(2, [False, False])
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

VERDICTS = ("normal", "known_attack", "novel")
VIAS = ("reference", "window", "root", "descendant")

NORMAL, KNOWN_ATTACK, NOVEL = range(3)
REFERENCE, WINDOW, ROOT, DESCENDANT = range(4)

ROOT_HANDLE = -1
NO_REFERENT = int(np.iinfo(np.int64).min)


@dataclass(eq=False)
class Verdicts:
    """One entry a record. A referent is named by a handle: see `referent`.

    `score` = best(non-normal referent, root) - best(normal referent): above 0 is anomalous, below 0 is not, and at
    exactly 0 the tie rule decides (root first, then oldest to newest). With no normal referent it is +inf.
    `link` is the winning score, `normal` and `other` the best of either side (-inf where there is none), `normal_at`,
    `other_at` their handles and `normal_label`, `other_label` the labels that were in force (-1 where there is none).
    """

    verdict: NDArray[np.uint8]
    via: NDArray[np.uint8]
    label: NDArray[np.int32]
    cluster: NDArray[np.int64]
    score: NDArray[np.float32]
    link: NDArray[np.float32]
    normal: NDArray[np.float32]
    other: NDArray[np.float32]
    parent: NDArray[np.int64]
    normal_at: NDArray[np.int64]
    other_at: NDArray[np.int64]
    normal_label: NDArray[np.int32]
    other_label: NDArray[np.int32]
    parent_source: NDArray[np.uint16]
    parent_seq: NDArray[np.uint64]

    def __len__(self) -> int:
        """How many records."""
        return len(self.verdict)

    @classmethod
    def empty(cls, n: int) -> Verdicts:
        """Room for n verdicts."""
        kinds = {
            "verdict": np.uint8, "via": np.uint8, "label": np.int32, "cluster": np.int64, "score": np.float32,
            "link": np.float32, "normal": np.float32, "other": np.float32, "parent": np.int64,
            "normal_at": np.int64, "other_at": np.int64, "normal_label": np.int32, "other_label": np.int32,
            "parent_source": np.uint16, "parent_seq": np.uint64,
        }  # fmt: skip
        return cls(**{name: np.zeros(n, kind) for name, kind in kinds.items()})

    def columns(self) -> Links:
        """Return the same arrays as a tuple, which a kernel can fill."""
        return Links(**{f.name: getattr(self, f.name) for f in fields(self)})

    @property
    def anomalous(self) -> NDArray[np.bool_]:
        """Everything not attached to normal traffic."""
        return np.not_equal(self.verdict, NORMAL)

    @property
    def margin(self) -> NDArray[np.float32]:
        """How far the verdict is from turning: the size of the score."""
        return np.abs(self.score)

    def referent(self, i: int) -> str:
        """What record i was linked to, for people: "root", "reference 17" or a record id."""
        if self.via[i] == ROOT:
            return "root"
        if self.via[i] == REFERENCE:
            return f"reference {reference_index(int(self.parent[i]))}"
        return f"{self.parent_source[i]}:{self.parent_seq[i]}"


Links = namedtuple("Links", [field.name for field in fields(Verdicts)])  # type: ignore[misc]
"""The arrays of a `Verdicts`, under their names: kernels take tuples, and no classes."""

Handle = TypeVar("Handle", int, NDArray[np.int64])


def reference_index(handle: Handle) -> Handle:
    """The index in the reference set that a handle below -1 stands for; arrival numbers are handles from 0 on.

    >>> reference_index(-2)
    0
    """
    return -2 - handle


def concat_verdicts(parts: list[Verdicts]) -> Verdicts:
    """The verdicts of consecutive batches as one."""
    names = [f.name for f in fields(Verdicts)]
    return Verdicts(**{name: np.concatenate([getattr(v, name) for v in parts]) for name in names})
