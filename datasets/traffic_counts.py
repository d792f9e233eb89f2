"""Traffic attributes of a whole stream at once: over the last 2 seconds, and over the last 255 connections.

Every attribute is a count of earlier connections that share something with this one (host, service, source
port), this one included, or such a count divided by another.

>>> time = np.array([0, 1, 6, 7]) * 500_000_000
>>> same = np.zeros(4, np.int64)
>>> flag = np.array(["S0", "SF", "SF", "SF"])
>>> attributes = traffic_attributes(time, host=same, service=same, port=same, flag=flag)
>>> attributes["count"].tolist(), attributes["serror_rate"].tolist(), attributes["dst_host_count"].tolist()
([1, 2, 1, 2], [1.0, 0.5, 0.0, 0.0], [1, 2, 3, 4])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SECONDS_WINDOW_NS = 2_000_000_000
CONNECTIONS_WINDOW = 255
MAX_COUNT = 511
SYN_ERRORS = ("S0", "S1", "S2", "S3")
REJECT_ERRORS = ("REJ", "RSTO", "RSTR", "RSTOS0")


class Peers:
    """For each connection i: those with the same key among connections `first[i]` to i."""

    def __init__(self, key: Ints, first: Ints) -> None:
        """Keys are small enough that a key times the number of connections fits 64 bits."""
        n = len(key)
        self._order = np.argsort(key, kind="stable")
        # Sorted by key, then by position: the peers of a connection are one run that ends at itself.
        rank = np.empty(n, np.int64)
        rank[self._order] = np.arange(n)
        self._end = rank + 1
        self._begin = np.searchsorted(key[self._order] * n + self._order, key * n + first)
        self.count: Ints = self._end - self._begin

    def rate(self, mask: NDArray[np.bool_]) -> Floats:
        """Share of the peers for which the mask holds."""
        below = np.concatenate(([0], np.cumsum(mask[self._order])))
        return share(below[self._end] - below[self._begin], self.count)


def share(part: Ints, whole: Ints) -> Floats:
    """A rate as records carry it: rounded to two decimals."""
    return np.round(part / whole, 2)


def traffic_attributes(
    time: Ints, *, host: Ints, service: Ints, port: Ints, flag: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """The 19 traffic attributes of connections in time order, by name, in the order of the schema."""
    n = len(time)
    syn_error, reject_error = np.isin(flag, SYN_ERRORS), np.isin(flag, REJECT_ERRORS)
    pair = host * (int(service.max(initial=0)) + 1) + service
    host_port = host * 65536 + port

    first = np.searchsorted(time, time - SECONDS_WINDOW_NS)
    by_host, by_service, both = (Peers(key, first) for key in (host, service, pair))
    last: dict[str, NDArray[Any]] = {
        "count": np.minimum(by_host.count, MAX_COUNT),
        "srv_count": np.minimum(by_service.count, MAX_COUNT),
        "serror_rate": by_host.rate(syn_error),
        "srv_serror_rate": by_service.rate(syn_error),
        "rerror_rate": by_host.rate(reject_error),
        "srv_rerror_rate": by_service.rate(reject_error),
        "same_srv_rate": share(both.count, by_host.count),
        "diff_srv_rate": share(by_host.count - both.count, by_host.count),
        "srv_diff_host_rate": share(by_service.count - both.count, by_service.count),
    }
    first = np.maximum(np.arange(n) - CONNECTIONS_WINDOW + 1, 0)
    by_host, by_service, both = (Peers(key, first) for key in (host, service, pair))
    return last | {
        "dst_host_count": by_host.count,
        "dst_host_srv_count": by_service.count,
        "dst_host_same_srv_rate": share(both.count, by_host.count),
        "dst_host_diff_srv_rate": share(by_host.count - both.count, by_host.count),
        "dst_host_same_src_port_rate": share(Peers(host_port, first).count, by_host.count),
        "dst_host_srv_diff_host_rate": share(by_service.count - both.count, by_service.count),
        "dst_host_serror_rate": by_host.rate(syn_error),
        "dst_host_srv_serror_rate": by_service.rate(syn_error),
        "dst_host_rerror_rate": by_host.rate(reject_error),
        "dst_host_srv_rerror_rate": by_service.rate(reject_error),
    }
