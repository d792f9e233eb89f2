"""A capture for the benchmarks: TCP, UDP and ICMP of some thousand connections, interleaved, with ordinary sizes."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_START = 1_700_000_000


def make_capture(path: Path, packets: int, flows: int, seed: int = 0) -> None:
    """Connections of equal length, as many at a time as fit: each has a beginning, data both ways, and an end."""
    rng = np.random.default_rng(seed)
    each = max(packets // flows, 8)
    kinds = rng.choice(3, flows, p=[0.7, 0.27, 0.03])
    starts = np.sort(rng.random(flows)) * (packets / 20_000)
    rows = []
    for k in range(flows):
        times = starts[k] + np.cumsum(rng.exponential(0.02, each))
        rows += [(t, k, i) for i, t in enumerate(times.tolist())]
    rows.sort()
    sizes = np.where(rng.random(len(rows)) < 0.35, 0, np.minimum(rng.lognormal(5.6, 1.1, len(rows)), 1400)).astype(int)
    seqs = np.zeros((flows, 2), np.int64)
    filler = bytes(range(256)) * 6
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for (t, k, i), size in zip(rows, sizes.tolist(), strict=True):
            back = i % 2 if kinds[k] else (i % 3 == 1)
            frame = _frame(int(kinds[k]), k, i, each, int(back), int(size), seqs, filler)
            seconds = _START + int(t)
            out.write(struct.pack("<IIII", seconds, int(t % 1 * 1e6), len(frame), len(frame)) + frame)


def _frame(kind: int, k: int, i: int, each: int, back: int, size: int, seqs: np.ndarray, filler: bytes) -> bytes:
    client, server = struct.pack("!I", 0x0A000001 + k % 200), struct.pack("!I", 0xC0A80001 + k % 60)
    ports = 20_000 + k % 40_000, (443, 80, 22, 25, 8080)[k % 5] if kind == 0 else 53 if k % 2 else 5000
    if back:
        client, server, ports = server, client, ports[::-1]
    if kind == 0:
        flags = 2 if i == 0 else 18 if i == 1 else 17 if i >= each - 2 else 24 if size else 16
        size = 0 if i < 3 or i >= each - 2 else size
        seq = int(seqs[k, back])
        seqs[k, back] += size + (flags & 3 != 0)
        body = struct.pack("!HHIIBBHHH", *ports, seq & 0xFFFFFFFF, 1, 80, flags, 8192, 0, 0) + filler[:size]
    elif kind == 1:
        body = struct.pack("!HHHH", *ports, 8 + size, 0) + filler[:size]
    else:
        body = struct.pack("!BBHHH", 0 if back else 8, 0, 0, k & 0xFFFF, i) + filler[:56]
    ip = struct.pack("!BBHHHBBH4s4s", 69, 0, 20 + len(body), i & 0xFFFF, 0, 64, (6, 17, 1)[kind], 0, client, server)
    return b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0" + ip + body
