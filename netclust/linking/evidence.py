"""Evidence: the referents that verdicts came from, copied before they are forgotten.

A verdict names its best normal and its best other referent; what they looked like is copied while the records are
linked, since a member may leave before the batch ends. `netclust.linking.explanation` turns it into words.

>>> from netclust.datasets.simulators.simulate import simulate
>>> from netclust.linking.linker import Linker, LinkerConfig
>>> from netclust.models.network.train_network import train_network
>>> model = train_network(simulate(3000, seed=1).table(), seed=0)
>>> linker = Linker(model, LinkerConfig.stream(referent_window=100))
>>> verdicts, evidence = linker.process_with_evidence(model.encoding.encode(simulate(400, seed=2, day=1).table()))
>>> evidence.rows.tolist() == np.flatnonzero(verdicts.anomalous).tolist()
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.linking import link as kernels
from netclust.linking.verdicts import NO_REFERENT, Verdicts, reference_index

Which = Literal["anomalous", "all"]


@dataclass(frozen=True, eq=False)
class EvidenceSide:
    """The best referent of one side, a row a record; zeros where there is none."""

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    source: NDArray[np.uint16]
    seq: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Of the records `rows` of a batch, in order: what their best normal and their best other referent looked like."""

    rows: NDArray[np.int64]
    normal: EvidenceSide
    other: EvidenceSide

    def __len__(self) -> int:
        """How many records have evidence."""
        return len(self.rows)

    def at(self, row: int) -> int:
        """Where record `row` of the batch is in here."""
        k = int(np.searchsorted(self.rows, row))
        if k == len(self.rows) or self.rows[k] != row:
            raise InputError(
                f"no evidence was kept of record {row} of the batch: it is not anomalous; which='all' keeps it of all"
            )
        return k


@dataclass(eq=False)
class Collector:
    """Gathers evidence while the linker works through a batch."""

    which: Which
    features: int
    coded: int
    _parts: list[Evidence] = field(default_factory=list)

    def gather(
        self,
        rows: NDArray[np.int64],
        verdicts: Verdicts,
        refs: kernels.References,
        win: kernels.Window,
        end: int,
        kept: kernels.Window,
    ) -> None:
        """Of records just linked: their referents are all still in the buffer, also those that left the window.

        Or they are among the representatives that there were before these records, `kept` in order of arrival.
        """
        wanted = rows if self.which == "all" else rows[verdicts.anomalous[rows]]
        if len(wanted):
            sides = (self._side(at[wanted], refs, win, end, kept) for at in (verdicts.normal_at, verdicts.other_at))
            self._parts.append(Evidence(wanted, *sides))

    def _side(
        self, handle: NDArray[np.int64], refs: kernels.References, win: kernels.Window, end: int, kept: kernels.Window
    ) -> EvidenceSide:
        n = len(handle)
        side = EvidenceSide(
            np.zeros((n, self.features), np.float32),
            np.zeros((n, self.coded), np.uint16),
            np.zeros(n, np.uint16),
            np.zeros(n, np.uint64),
        )
        pinned = (handle < kernels.ROOT) & (handle != NO_REFERENT)
        k = reference_index(handle[pinned])
        side.num[pinned], side.code[pinned] = refs.num[:, k].T, refs.code[:, k].T
        for members, count in ((win, end), (kept, len(kept.tick))):
            found = np.isin(handle, members.tick[:count])
            at = np.searchsorted(members.tick[:count], handle[found])
            side.num[found], side.code[found] = members.num[:, at].T, members.code[:, at].T
            side.source[found], side.seq[found] = members.source[at], members.seq[at]
        return side

    def evidence(self) -> Evidence:
        """All of it, in the order of the batch."""
        nothing = np.zeros(0, np.int64)
        empty = EvidenceSide(
            np.zeros((0, self.features), np.float32),
            np.zeros((0, self.coded), np.uint16),
            np.zeros(0, np.uint16),
            np.zeros(0, np.uint64),
        )
        parts = self._parts or [Evidence(nothing, empty, empty)]
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        sides = (
            EvidenceSide(*(np.concatenate(arrays)[order] for arrays in zip(*map(_arrays, side), strict=True)))
            for side in ([part.normal for part in parts], [part.other for part in parts])
        )
        return Evidence(rows[order], *sides)


def _arrays(
    side: EvidenceSide,
) -> tuple[NDArray[np.float32], NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint64]]:
    return side.num, side.code, side.source, side.seq
