"""Exemplars: some records of every alert, kept so that an answer counts long after they have left the window.

The records at which an alert was opened or told again are kept: the first, and the latest.

>>> kept = Exemplars()
>>> for k in range(10):
...     kept.add("a-1", cluster=7, num=np.full(2, k, np.float32), code=np.zeros(1, np.uint16))
>>> kept.of_alert("a-1")[0][:, 0].tolist()
[0.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation.container import Arrays

AN_ALERT = 8
MAX_ALERTS = 1024

Rows = tuple[NDArray[np.float32], NDArray[np.uint16]]


class _One(NamedTuple):
    cluster: int
    num: NDArray[np.float32]
    code: NDArray[np.uint16]


class Exemplars:
    """Of the last MAX_ALERTS alerts, AN_ALERT records each, as the model encodes them."""

    def __init__(self) -> None:
        self._of: dict[str, list[_One]] = {}

    def add(self, alert: str, cluster: int, num: NDArray[np.float32], code: NDArray[np.uint16]) -> None:
        """One more record of an alert."""
        held = self._of.setdefault(alert, [])
        if len(held) == AN_ALERT:
            del held[1]  # the first one stays
        held.append(_One(cluster, num.copy(), code.copy()))
        while len(self._of) > MAX_ALERTS:
            del self._of[next(iter(self._of))]

    def of_alert(self, alert: str) -> Rows | None:
        """The records that are kept of an alert."""
        return _rows(self._of.get(alert, []))

    def of_cluster(self, cluster: int) -> Rows | None:
        """Those of a cluster, of whichever alert."""
        return _rows([one for held in self._of.values() for one in held if one.cluster == cluster][-AN_ALERT:])

    def clear(self) -> None:
        """They were encoded for another model."""
        self._of.clear()

    def state(self) -> tuple[list[str], Arrays]:
        """For a checkpoint: the alert of each record, and the records."""
        names = [alert for alert, held in self._of.items() for _ in held]
        every = [one for held in self._of.values() for one in held]
        if not every:
            return names, {}
        arrays: Arrays = {
            "exemplars.cluster": np.array([one.cluster for one in every], np.int64),
            "exemplars.num": np.stack([one.num for one in every]),
            "exemplars.code": np.stack([one.code for one in every]),
        }
        return names, arrays

    def restore(self, names: list[str], arrays: Arrays, widths: tuple[int, int], where: str) -> None:
        """Go on with those of a checkpoint."""
        self._of.clear()
        if not names:
            return
        found = [arrays.get(f"exemplars.{name}") for name in ("cluster", "num", "code")]
        shapes = [(len(names),), (len(names), widths[0]), (len(names), widths[1])]
        for array, shape, kind in zip(found, shapes, (np.int64, np.float32, np.uint16), strict=True):
            if array is None or array.shape != shape or array.dtype != kind:
                raise ModelError(f"{where}: the records kept of alerts do not fit")
        cluster, num, code = found
        for i, name in enumerate(names):
            self.add(name, int(cluster[i]), num[i], code[i])  # type: ignore[index]


def _rows(held: list[_One]) -> Rows | None:
    if not held:
        return None
    return np.stack([one.num for one in held]), np.stack([one.code for one in held])
