"""Attributes that captures, Zeek and Suricata all know of a connection.

>>> side = ConnectionSide(*(np.array([n]) for n in (2, 100, 180)))
>>> found = conn_numbers(np.array([0]), np.array([2_000_000_000]), side, side)
>>> found["duration_ms"].tolist(), found["byte_rate"].tolist(), found["orig_share"].tolist()
([2000.0], [180.0], [0.5])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets import tcp

__all__ = ["ConnectionSide", "conn_numbers", "failed_states", "rounded"]

_FAILED = ("S0", "REJ", "RSTOS0", "RSTRH", "SH", "SHR")

Columns = dict[str, NDArray[Any]]


class ConnectionSide(NamedTuple):
    """What one end sent."""

    packets: NDArray[Any]
    payload_bytes: NDArray[Any]
    ip_bytes: NDArray[Any]  # with the headers of IP and transport


def conn_numbers(
    first: NDArray[np.int64], last: NDArray[np.int64], orig: ConnectionSide, resp: ConnectionSide
) -> Columns:
    """Duration, sizes and rates, by name; times are of the first and the last packet."""
    packets = orig.packets + resp.packets
    seconds = np.maximum(last - first, 0) * 1e-9
    payload = orig.payload_bytes + resp.payload_bytes
    return {
        "duration_ms": seconds * 1e3,
        "orig_packets": orig.packets,
        "resp_packets": resp.packets,
        "orig_bytes": orig.payload_bytes,
        "resp_bytes": resp.payload_bytes,
        "orig_size_mean": orig.ip_bytes / np.maximum(orig.packets, 1),
        "resp_size_mean": resp.ip_bytes / np.maximum(resp.packets, 1),
        # Over a second at least: two packets of one microsecond are no rate.
        "packet_rate": packets / np.maximum(seconds, 1.0),
        "byte_rate": (orig.ip_bytes + resp.ip_bytes) / np.maximum(seconds, 1.0),
        "orig_share": np.where(payload > 0, orig.payload_bytes / np.maximum(payload, 1), 0.5),
    }


def failed_states(states: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a connection came to nothing; states are numbers of FLAG_NAMES."""
    return np.isin(np.array(tcp.FLAG_NAMES)[states], _FAILED)


def rounded(numbers: Columns) -> Columns:
    """Four decimals: what is written is then short, and the same when it is read again."""
    return {name: np.round(c, 4) if c.dtype == np.float64 else c for name, c in numbers.items()}
