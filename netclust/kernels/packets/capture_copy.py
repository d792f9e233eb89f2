"""Copy packets: into one buffer, and into the records of a capture that is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inner, kernel

PCAP_HEADER, ENHANCED_HEADER, ENHANCED_OVERHEAD = 16, 28, 32
ENHANCED = 6
SECOND = 1_000_000_000


@borrowing(inner)
def _copy(data: Any, begin: Any, count: Any, out: Any, at: Any) -> None:
    """Copy bytes; through views, because an index that may be negative is not vectorised."""
    source, target = data[begin : begin + count], out[at : at + count]
    for k in range(count):
        target[k] = source[k]


@borrowing(kernel)
def gather(data: Any, index: Any, origin: Any, number: Any, starts: Any, out: Any) -> None:
    """Copy the packets of that origin from its data to their places in `out`."""
    for i in range(len(index)):
        if origin[i] == number:
            _copy(data, index[i].offset, np.int64(index[i].caplen), out, starts[i])


@borrowing(inner)
def _put32(out: Any, at: Any, value: Any) -> None:
    out[at] = value & 0xFF
    out[at + 1] = (value >> 8) & 0xFF
    out[at + 2] = (value >> 16) & 0xFF
    out[at + 3] = (value >> 24) & 0xFF


@borrowing(kernel)
def write_pcap_records(data: Any, index: Any, first: Any, unit: Any, snaplen: Any, out: Any) -> Any:
    """(packets, bytes) written to `out`, from the packet `first` on, as many as there is room for.

    `unit` is how many nanoseconds a sub-second is: 1 or 1000.
    """
    at = 0
    i = first
    while i < len(index):
        caplen = min(np.int64(index[i].caplen), snaplen)
        if at + PCAP_HEADER + caplen > len(out):
            break
        time = index[i].time
        _put32(out, at, time // SECOND)
        _put32(out, at + 4, time % SECOND // unit)
        _put32(out, at + 8, caplen)
        _put32(out, at + 12, np.int64(index[i].wirelen))
        at += PCAP_HEADER
        _copy(data, index[i].offset, caplen, out, at)
        at += caplen
        i += 1
    return i - first, at


@borrowing(kernel)
def write_pcapng_records(data: Any, index: Any, interface: Any, first: Any, unit: Any, snaplen: Any, out: Any) -> Any:
    """(packets, bytes) written to `out` as enhanced packet blocks; `interface` has a number for each packet."""
    at = 0
    i = first
    while i < len(index):
        caplen = min(np.int64(index[i].caplen), snaplen)
        padded = (caplen + 3) & ~3
        total = ENHANCED_OVERHEAD + padded
        if at + total > len(out):
            break
        ticks = index[i].time // unit
        _put32(out, at, ENHANCED)
        _put32(out, at + 4, total)
        _put32(out, at + 8, np.int64(interface[i]))
        _put32(out, at + 12, ticks >> 32)
        _put32(out, at + 16, ticks)
        _put32(out, at + 20, caplen)
        _put32(out, at + 24, np.int64(index[i].wirelen))
        _copy(data, index[i].offset, caplen, out, at + ENHANCED_HEADER)
        for k in range(caplen, padded):
            out[at + ENHANCED_HEADER + k] = 0
        _put32(out, at + total - 4, total)
        at += total
        i += 1
    return i - first, at
