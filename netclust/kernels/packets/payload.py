"""What a payload says in clear: the name and shape of a TLS hello, and DNS questions. Nothing else of it is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner
from netclust.kernels.packets.decode import u16
from netclust.kernels.packets.flow_layout import NAME_BYTES

_SERVER_NAME, _ALPN, _VERSIONS = 0, 16, 43
_MAX_LABELS = 32
_MAX_NAME = 255
_LOG2 = np.log2(np.maximum(np.arange(_MAX_NAME + 1), 1))


@borrowing(inner)
def mix(value: Any) -> Any:
    """A 64-bit value, well stirred (splitmix64's finish)."""
    x = np.uint64(value)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@borrowing(inner)
def _grease(value: int) -> bool:
    """Values that browsers throw in to keep servers tolerant (RFC 8701)."""
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


@borrowing(inner)
def read_hello(data: NDArray[np.uint8], at: int, end: int, flow: Any, name: NDArray[np.uint8]) -> None:
    """A TLS ClientHello, if the payload begins with one; as much of it as was captured."""
    if at + 44 > end or data[at] != 22 or data[at + 1] != 3 or data[at + 5] != 1:
        return
    flow.tls_version = u16(data, at + 9)
    at += 43
    at += 1 + np.int64(data[at])  # session id
    if at + 2 > end:
        return
    size = u16(data, at)
    at += 2
    digest = np.uint64(0)
    for k in range(at, min(at + size, end - 1), 2):
        cipher = u16(data, k)
        if not _grease(cipher):
            flow.tls_ciphers += 1
            digest += mix(np.uint64(cipher + 1))  # a sum: their order does not count
    flow.tls_hash = digest
    at += size
    if at + 1 > end:
        return
    at += 1 + np.int64(data[at])  # compression
    if at + 2 > end:
        return
    stop = min(at + 2 + u16(data, at), end)
    at += 2
    while at + 4 <= stop:
        kind, size = u16(data, at), u16(data, at + 2)
        at += 4
        if not _grease(kind):
            flow.tls_extensions += 1
        if kind == _SERVER_NAME and at + 5 <= stop and flow.name_bytes == 0:  # a second one would leave its rest
            length = min(u16(data, at + 3), NAME_BYTES, stop - at - 5)
            for k in range(length):
                name[k] = data[at + 5 + k]
            flow.name_bytes = max(length, 0)
        elif kind == _ALPN and at + 4 <= stop and data[at + 2] > 0 and at + 3 + np.int64(data[at + 2]) <= stop:
            flow.tls_alpn = np.int64(data[at + 3]) << 8 | np.int64(data[at + 2 + np.int64(data[at + 2])])
        elif kind == _VERSIONS and at < stop:
            for k in range(at + 1, min(at + 1 + np.int64(data[at]), stop - 1), 2):
                version = u16(data, k)
                if not _grease(version) and version > flow.tls_version:
                    flow.tls_version = version
        at += size


@borrowing(inner)
def read_dns(
    data: NDArray[np.uint8], at: int, end: int, flow: Any, name: NDArray[np.uint8], counts: NDArray[np.uint16]
) -> None:
    """A DNS message: its first question, and whether an answer says that there is no such name.

    `counts` is scratch: all 0, before and after.
    """
    if at + 12 > end:
        return
    bits, questions = u16(data, at + 2), u16(data, at + 4)
    if bits & 0x8000:
        if bits & 0x000F == 3:
            flow.dns_failures += 1
        if flow.dns_queries:
            return  # the question was seen when it was asked
    if questions == 0:
        return
    if not bits & 0x8000:
        flow.dns_queries += 1
    at += 12
    first = at
    length, letters = 0, 0
    keep = flow.name_bytes == 0
    for _ in range(_MAX_LABELS):
        if at >= end:
            break
        size = np.int64(data[at])
        at += 1
        if size == 0 or size >= 64 or at + size > end or letters + size > _MAX_NAME:
            break
        if length:
            if keep and length < NAME_BYTES:
                name[length] = 46  # a dot
            length += 1
        for k in range(at, at + size):
            if keep and length < NAME_BYTES:
                name[length] = data[k]
            length += 1
            counts[data[k]] += 1
            letters += 1
        at += size
    if keep:
        flow.name_bytes = min(length, NAME_BYTES)
    flow.dns_length = max(flow.dns_length, length)
    if at + 2 <= end:
        flow.dns_type = u16(data, at)
    if letters == 0:
        return
    # H = log2 n - (sum over the letters of log2 of how often each occurs) / n; then the counts are 0 again.
    total, seen, k = 0.0, 0, first
    while seen < letters:
        for j in range(k + 1, k + 1 + np.int64(data[k])):
            total += _LOG2[counts[data[j]]]
            seen += 1
        k += 1 + np.int64(data[k])
    k, seen = first, 0
    while seen < letters:
        for j in range(k + 1, k + 1 + np.int64(data[k])):
            counts[data[j]] = 0
            seen += 1
        k += 1 + np.int64(data[k])
    flow.dns_entropy = max(flow.dns_entropy, np.float32(max(_LOG2[letters] - total / letters, 0.0)))
