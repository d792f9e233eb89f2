"""Traffic attributes: over the last 2 seconds, and over the last 255 connections, kept up to date record by record.

Every attribute is a count of connections that share something with this one (host, service, source port), this one
included, or such a count divided by another. What the definitions leave open was read off KDDTrain+: this record
counts (where `count` is 1, `same_srv_rate` is always 1); S0 to S3 and SH are SYN errors, REJ and resets the others.

>>> time = np.array([0, 1, 6, 7]) * 500_000_000
>>> same = np.zeros(4, np.int64)
>>> flag = np.array(["S0", "SF", "SF", "SF"])
>>> attributes = traffic_attributes(time, host=same, service=same, port=same, flag=flag)
>>> attributes["count"].tolist(), attributes["serror_rate"].tolist(), attributes["dst_host_count"].tolist()
([1, 2, 1, 2], [1.0, 0.5, 0.0, 0.0], [1, 2, 3, 4])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import ModelError
from netclust.foundation.container import Arrays, require_array
from netclust.kernels.packets import traffic

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SECONDS_WINDOW_NS = 2_000_000_000
CONNECTIONS_WINDOW = 255
MAX_COUNT = 511
SYN_ERRORS = ("S0", "S1", "S2", "S3", "SH")
REJECT_ERRORS = ("REJ", "RSTO", "RSTR", "RSTOS0", "RSTRH")
NO_ERROR, SYN_ERROR, REJECT_ERROR = 0, 1, 2

_HOST, _SERVICE, _PAIR, _HOST_PORT = range(4)


class SlidingCounts:
    """Counts of keys over a time span (nanoseconds; 0 for none) of at most so many records.

    `parents` maps a column of keys to (column, 0 or 1): its distinct keys are counted there.
    """

    def __init__(
        self, columns: int, span: int, longest: int, parents: dict[int, tuple[int, int]] | None = None
    ) -> None:
        self.span, self.longest = span, longest
        slots = 1 << (2 * columns * (longest + 1)).bit_length()
        self._parent = np.full((columns, 2), -1, np.int64)
        for column, owner in (parents or {}).items():
            self._parent[column] = owner
        self._ring = (
            np.zeros(longest + 1, np.int64),
            np.zeros((longest + 1, columns), np.uint64),
            np.zeros(longest + 1, np.uint8),
        )
        self._table = np.zeros(slots, np.uint64), np.zeros((slots, traffic.COUNTERS), np.int32)
        self._state = np.zeros(traffic.STATES, np.int64)

    @property
    def dropped(self) -> int:
        """Records that left the window before their time, for want of room."""
        return int(self._state[traffic.DROPPED])

    def add(self, time: Ints, keys: NDArray[np.uint64], klass: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Let records in, in order: [record, key, counter] as they stand after each."""
        out = np.zeros((len(time), keys.shape[1], traffic.COUNTERS), np.int32)
        traffic.count_window(
            time, keys, klass, self._parent, self.span, self.longest, *self._ring, *self._table, self._state, out
        )
        return out

    def state(self, prefix: str = "") -> Arrays:
        """The records in the window, oldest first: from them everything is counted again."""
        oldest, held = int(self._state[traffic.OLDEST]), int(self._state[traffic.HELD])
        rows = (oldest + np.arange(held)) % len(self._ring[0])
        time, keys, klass = (array[rows] for array in self._ring)
        dropped = np.array([self.dropped], np.int64)
        return {f"{prefix}time": time, f"{prefix}keys": keys, f"{prefix}class": klass, f"{prefix}dropped": dropped}

    def restore(self, arrays: Arrays, prefix: str = "") -> None:
        """Go on where `state` was taken, in a window that nothing was let into; raises ModelError for nonsense."""
        where = "traffic window"
        if self._state[traffic.HELD]:
            raise ValueError("a window is restored before anything is counted in it")
        time = require_array(arrays, f"{prefix}time", np.int64, (None,), where)
        keys = require_array(arrays, f"{prefix}keys", np.uint64, (len(time), len(self._parent)), where)
        klass = require_array(arrays, f"{prefix}class", np.uint8, (len(time),), where)
        dropped = require_array(arrays, f"{prefix}dropped", np.int64, (1,), where)
        if len(time) > self.longest:
            raise ModelError(f"{where}: {prefix}time has {len(time)} records, there is room for {self.longest}")
        if (time[1:] < time[:-1]).any():
            raise ModelError(f"{where}: {prefix}time goes back")
        if self.span and len(time) and int(time[-1]) - int(time[0]) >= self.span:
            raise ModelError(f"{where}: {prefix}time is longer than {self.span} ns")
        if (keys == 0).any() or (klass > traffic.SECOND).any() or dropped[0] < 0:
            raise ModelError(f"{where}: {prefix}keys, {prefix}class or {prefix}dropped holds what is never written")
        self.add(time, np.ascontiguousarray(keys), klass)
        self._state[traffic.DROPPED] = dropped[0]


def traffic_key(*parts: NDArray[Any], salt: int) -> NDArray[np.uint64]:
    """Return one 64-bit key per record of whatever identifies something; `salt` keeps kinds of keys apart."""
    words = np.stack([np.asarray(part).astype(np.uint64) for part in parts], axis=1)
    out = np.zeros(len(words), np.uint64)
    traffic.mix_keys(words, salt, out)
    return out


def traffic_share(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Return A rate as records carry it: rounded to two decimals."""
    return np.asarray(np.round(part / whole, 2))


class TrafficCounts:
    """The 19 traffic attributes of a stream of connections in the order in which they end."""

    def __init__(self, longest: int = 1 << 17) -> None:
        self.recent = SlidingCounts(3, SECONDS_WINDOW_NS, longest)
        self.last = SlidingCounts(4, 0, CONNECTIONS_WINDOW)

    def state(self, prefix: str = "") -> Arrays:
        """Both windows."""
        return self.recent.state(f"{prefix}recent.") | self.last.state(f"{prefix}last.")

    def restore(self, arrays: Arrays, prefix: str = "") -> None:
        """Go on where `state` was taken; raises ModelError for nonsense."""
        self.recent.restore(arrays, f"{prefix}recent.")
        self.last.restore(arrays, f"{prefix}last.")

    def add(
        self,
        time: Ints,
        *,
        host: Sequence[NDArray[Any]],
        service: NDArray[Any],
        port: NDArray[Any],
        error: NDArray[np.uint8],
    ) -> dict[str, NDArray[Any]]:
        """By name, in the order of the schema. A host is given by the words of its address."""
        keys = np.stack(
            [
                traffic_key(*host, salt=_HOST),
                traffic_key(service, salt=_SERVICE),
                traffic_key(*host, service, salt=_PAIR),
                traffic_key(*host, port, salt=_HOST_PORT),
            ],
            axis=1,
        )
        recent = self.recent.add(time, np.ascontiguousarray(keys[:, :3]), error)
        last = self.last.add(time, keys, error)
        host_count, service_count, both = (recent[:, k, traffic.ALL] for k in (_HOST, _SERVICE, _PAIR))
        by_host, by_service = recent[:, _HOST], recent[:, _SERVICE]
        attributes: dict[str, NDArray[Any]] = {
            "count": np.minimum(host_count, MAX_COUNT),
            "srv_count": np.minimum(service_count, MAX_COUNT),
            "serror_rate": traffic_share(by_host[:, SYN_ERROR], host_count),
            "srv_serror_rate": traffic_share(by_service[:, SYN_ERROR], service_count),
            "rerror_rate": traffic_share(by_host[:, REJECT_ERROR], host_count),
            "srv_rerror_rate": traffic_share(by_service[:, REJECT_ERROR], service_count),
            "same_srv_rate": traffic_share(both, host_count),
            "diff_srv_rate": traffic_share(host_count - both, host_count),
            "srv_diff_host_rate": traffic_share(service_count - both, service_count),
        }
        host_count, service_count, both = (last[:, k, traffic.ALL] for k in (_HOST, _SERVICE, _PAIR))
        by_host, by_service = last[:, _HOST], last[:, _SERVICE]
        return attributes | {
            "dst_host_count": host_count,
            "dst_host_srv_count": service_count,
            "dst_host_same_srv_rate": traffic_share(both, host_count),
            "dst_host_diff_srv_rate": traffic_share(host_count - both, host_count),
            "dst_host_same_src_port_rate": traffic_share(last[:, _HOST_PORT, traffic.ALL], host_count),
            "dst_host_srv_diff_host_rate": traffic_share(service_count - both, service_count),
            "dst_host_serror_rate": traffic_share(by_host[:, SYN_ERROR], host_count),
            "dst_host_srv_serror_rate": traffic_share(by_service[:, SYN_ERROR], service_count),
            "dst_host_rerror_rate": traffic_share(by_host[:, REJECT_ERROR], host_count),
            "dst_host_srv_rerror_rate": traffic_share(by_service[:, REJECT_ERROR], service_count),
        }


def error_class(flag: NDArray[Any]) -> NDArray[np.uint8]:
    """Which kind of failure a flag (a name) stands for."""
    return np.where(np.isin(flag, SYN_ERRORS), SYN_ERROR, np.isin(flag, REJECT_ERRORS) * REJECT_ERROR).astype(np.uint8)


def traffic_attributes(
    time: Ints, *, host: Ints, service: Ints, port: Ints, flag: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """The 19 traffic attributes of connections in time order, by name, in the order of the schema."""
    return TrafficCounts().add(time, host=[host], service=service, port=port, error=error_class(flag))
