"""What else the two ends of a connection did in the last minute, and how regularly they meet.

Counted in the order in which connections are given, from addresses, ports and times alone: of a capture, or of a log.

>>> relations = Relations()
>>> second, one, two = 10**9, np.ones(3, np.uint64), np.full(3, 2, np.uint64)
>>> time = np.array([0, 10, 20]) * second
>>> found = relations.add(time, time, source=[one, one], destination=[one, two], port=two, failed=np.zeros(3, bool))
>>> found["src_flows"].tolist(), found["repeat_gap"].tolist()
([1, 2, 3], [0.0, 10.0, 10.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.packets import traffic
from netclust.records.traffic_counts import SlidingCounts, traffic_key, traffic_share

__all__ = ["Relations"]

FAN_OUT_NS = 60 * 10**9
_FAN_OUT_RECORDS = 1 << 17
_REPEAT_SLOTS = 1 << 17
_REPEAT_ALPHA = 0.2

Columns = dict[str, NDArray[Any]]


class Relations:
    """The relation attributes of a stream of connections; everything in it has a fixed size."""

    def __init__(self) -> None:
        # source; its destinations; its ports; destination; its sources; source, destination and port together.
        parents = {1: (0, 0), 2: (0, 1), 4: (3, 0)}
        self._fan_out = SlidingCounts(6, FAN_OUT_NS, _FAN_OUT_RECORDS, parents)
        self._repeats = (
            np.zeros(_REPEAT_SLOTS, np.uint64),
            np.zeros(_REPEAT_SLOTS, np.int64),
            np.zeros((_REPEAT_SLOTS, 3)),
        )

    @property
    def dropped(self) -> int:
        """Connections that left the minute early, for want of room."""
        return self._fan_out.dropped

    def add(
        self,
        time: NDArray[np.int64],
        first: NDArray[np.int64],
        *,
        source: Sequence[NDArray[Any]],
        destination: Sequence[NDArray[Any]],
        port: NDArray[Any],
        failed: NDArray[Any],
    ) -> Columns:
        """By name. `time` is when they are counted, `first` when they began; an address is given by its words."""
        keys = np.stack(
            [
                traffic_key(*source, salt=10),
                traffic_key(*source, *destination, salt=11),
                traffic_key(*source, port, salt=12),
                traffic_key(*destination, salt=13),
                traffic_key(*destination, *source, salt=14),
                traffic_key(*source, *destination, port, salt=15),
            ],
            axis=1,
        )
        counts = self._fan_out.add(time, keys, failed.astype(np.uint8))
        repeats = np.zeros((len(time), 3))
        traffic.repeat_gaps(first, np.ascontiguousarray(keys[:, 5]), _REPEAT_ALPHA, *self._repeats, repeats)
        by_source, by_destination = counts[:, 0], counts[:, 3]
        return {
            "src_flows": by_source[:, traffic.ALL],
            "src_hosts": by_source[:, traffic.DISTINCT],
            "src_ports": by_source[:, traffic.DISTINCT + 1],
            "src_failed_rate": traffic_share(by_source[:, traffic.FIRST], by_source[:, traffic.ALL]),
            "dst_flows": by_destination[:, traffic.ALL],
            "dst_sources": by_destination[:, traffic.DISTINCT],
            "dst_failed_rate": traffic_share(by_destination[:, traffic.FIRST], by_destination[:, traffic.ALL]),
            "pair_flows": counts[:, 5, traffic.ALL],
            "repeats": repeats[:, 2],
            "repeat_gap": np.maximum(repeats[:, 0], 0),
            "repeat_regularity": repeats[:, 1],
        }

    def state(self, prefix: str = "") -> Arrays:
        """All that it remembers, without the empty places."""
        table, last, moments = self._repeats
        at = np.flatnonzero(table)
        repeats = {"at": at, "key": table[at], "last": last[at], "moments": moments[at]}
        fan_out = self._fan_out.state(f"{prefix}fan_out.")
        return fan_out | {f"{prefix}repeats.{name}": array for name, array in repeats.items()}

    def restore(self, arrays: Arrays, prefix: str = "") -> None:
        """Go on where `state` was taken; raises ModelError for nonsense."""
        where = "repeated connections"
        at = require_array(arrays, f"{prefix}repeats.at", np.int64, (None,), where)
        key = require_array(arrays, f"{prefix}repeats.key", np.uint64, (len(at),), where)
        last = require_array(arrays, f"{prefix}repeats.last", np.int64, (len(at),), where)
        moments = require_array(arrays, f"{prefix}repeats.moments", np.float64, (len(at), 3), where)
        inside = ((at >= 0) & (at < _REPEAT_SLOTS)).all() and len(np.unique(at)) == len(at)
        # A key is looked for at its own place and at the neighbouring one only.
        found = ((key & np.uint64(_REPEAT_SLOTS - 1)).astype(np.int64) ^ at) <= 1
        if not inside or not found.all() or not key.all() or not np.isfinite(moments).all():
            raise ModelError(f"{where}: {prefix}repeats holds what is never written")
        self._fan_out.restore(arrays, f"{prefix}fan_out.")
        for array, values in zip(self._repeats, (key, last, moments), strict=True):
            array[:] = 0
            array[at] = values
