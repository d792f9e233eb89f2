"""Frames of the capture simulator: headers, patched protocol text, filler and checksums, and pcap records of them.

A message is a template (real protocol bytes with patched fields) and then filler from a table of noise. The noise has
running sums, so the checksum of filler costs the same for 1 byte and for 1,400.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel

CONNECTION = np.dtype(
    [
        ("a", "i4"), ("b", "i4"), ("sport", "u2"), ("dport", "u2"), ("icmp", "u2"), ("mss", "u2"),
        ("proto", "u1"), ("opening", "u1"), ("closing", "u1"), ("tries", "u1"), ("fault", "u1"), ("tos", "u1"),
        ("acks", "u1"), ("start", "f8"), ("rate", "f4"), ("keepalive", "f4"), ("linger", "f4"),
        ("first", "i8"), ("last", "i8"), ("seed", "i8"),
    ],
    align=True,
)  # fmt: skip
MESSAGE = np.dtype(
    [("side", "u1"), ("table", "u1"), ("template", "i4"), ("filler", "i4"), ("wait", "f4"), ("salt", "i4")], align=True
)
ENDPOINT = np.dtype([("v6", "u1"), ("ttl", "u1"), ("stack", "u1"), ("trip", "f4"), ("window", "i4")], align=True)

ICMP, TCP, UDP, ICMP6, ARP = 1, 6, 17, 58, 250
# What a patch writes into a template.
RANDOM, HEX, BASE32, DIGITS, TAG, LENGTH, DECIMAL, BASE64, LITTLE = range(9)
# What filler looks like: encrypted, text, TLS records, QUIC packets.
NOISE, TEXT, SEALED, QUIC = range(4)
SEALED_BLOCK = 16_384 + 5
# TCP stacks, by the options of their SYN.
LINUX, WINDOWS, APPLE, SMALL, BARE = range(5)

# The packet that is being made: whose, from and to, headers; then the message that it is a part of.
ROW, SOURCE, TARGET, PROTO, IDENT, TOS, L4, CHECK, FIRST, SIZE, HEAD, TABLE, BASE, TOTAL = range(14)
_BASE32 = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
# The most one frame can take up in the arena.
FRAME_ROOM = 1600
RECORD_HEADER = 16


@inner
def mix(x: int) -> int:
    """Scramble a number (splitmix64)."""
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


@inner
def uniform(dice: Any) -> float:
    """The next number in [0, 1)."""
    dice[0] += -7046029254386353131
    return (mix(dice[0]) & 0xFFFFFFFFFFFFF) / 4503599627370496.0


@inner
def _sum(data: Any, low: int, high: int) -> int:
    """Sum of big-endian 16-bit words; a last odd byte counts as the high one."""
    total: Any = 0
    for i in range(low, high - 1, 2):
        total += (np.int64(data[i]) << 8) + np.int64(data[i + 1])
    if (high - low) & 1:
        total += np.int64(data[high - 1]) << 8
    whole: int = total
    return whole


@inner
def _fold(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    whole: int = total
    return whole


@kernel
def checksum(data: NDArray[np.uint8], low: int, high: int) -> int:
    """The internet checksum of `data[low:high]` (RFC 1071).

    >>> int(checksum(np.frombuffer(bytes.fromhex("4500003c1c4640004006b1e6ac100a63ac100a0c"), np.uint8), 0, 20))
    0
    """
    return _fold(_sum(data, low, high)) ^ 0xFFFF


@kernel
def running_sums(noise: NDArray[np.uint8], sums: NDArray[np.int64]) -> None:
    """`sums[i]`: the words of `noise[:i]`, added up; even places are high bytes."""
    sums[0] = 0
    for i in range(len(noise)):
        sums[i + 1] = sums[i] + (np.int64(noise[i]) << (0 if i & 1 else 8))


@inner
def put16(out: Any, at: int, value: int) -> None:
    """Two bytes, the high one first."""
    out[at] = (value >> 8) & 255
    out[at + 1] = value & 255


@inner
def put32(out: Any, at: int, value: int) -> None:
    """Four bytes, the highest first."""
    put16(out, at, value >> 16)
    put16(out, at + 2, value)


@inner
def render(head: Any, book: Any, message: Any, seed: int) -> int:
    """A message's template with its patches, into `head`; what is random depends on the connection and the exchange."""
    blob, place, patches = book
    start: int = place[message.template, 0]
    size: int = place[message.template, 1]
    for i in range(size):
        head[i] = blob[start + i]
    dice = mix(seed + message.salt * 7919)
    for k in range(place[message.template, 2], place[message.template, 3]):
        at, width, what = patches[k, 0], patches[k, 1], patches[k, 2]
        if what == TAG:
            put16(head, at, mix(seed) + message.salt * 40503)
        elif what == LENGTH:
            put16(head, at, min(message.filler, 16384) + width)
        elif what == LITTLE:
            for i in range(4):
                head[at + i] = (np.int64(message.filler) >> (8 * i)) & 255
        elif what == DECIMAL:
            digits, rest = 1, message.filler
            while rest >= 10:
                rest //= 10
                digits += 1
            rest = message.filler
            for i in range(width):
                head[at + i] = 32
            for i in range(digits):
                head[at + digits - 1 - i] = 48 + rest % 10
                rest //= 10
        else:
            for i in range(width):
                dice = mix(dice + 1 + i)
                draw = dice & 0x7FFFFFFF
                if what == RANDOM:
                    head[at + i] = draw & 255
                elif what == HEX:
                    head[at + i] = _HEX[draw & 15]
                elif what == BASE32:
                    head[at + i] = _BASE32[draw & 31]
                elif what == BASE64:
                    head[at + i] = _BASE64[draw & 63]
                else:
                    head[at + i] = 48 + draw % 10
    return size


@inner
def _overwrite(arena: Any, at: int, kept: int, place: int, old: int, value: int) -> int:
    """Put a byte over filler, if it is captured at all; what that adds to the sum of words."""
    if place < kept:
        arena[at + place] = value
    # 65,535 is 0 in this arithmetic and keeps the sum positive.
    return ((value - old) << (0 if place & 1 else 8)) + 65535


@inner
def _filler(arena: Any, noise: Any, packet: Any, body: int, real: int, kept: int) -> int:
    """Filler from the noise table, of which `kept` bytes of the payload are captured; the sum of all its words."""
    noises, sums = noise
    head_size, first, size, table = packet[HEAD], packet[FIRST], packet[SIZE], packet[TABLE]
    which = 1 if table == TEXT else 0
    low = (packet[BASE] + first + real - head_size) % (noises.shape[1] - FRAME_ROOM)
    for i in range(real, kept):
        arena[body + i] = noises[which, low + i - real]
    words = _fold(sums[which, low + size - real] - sums[which, low])
    if (low ^ real) & 1:
        words = ((words & 255) << 8) + (words >> 8)
    if table == QUIC:
        old: Any = np.int64(noises[which, low])
        words += _overwrite(arena, body, kept, real, old, (old & 0x3F) | 0x40)
    elif table == SEALED:
        block = first // SEALED_BLOCK
        for start in (block * SEALED_BLOCK, (block + 1) * SEALED_BLOCK):
            content = min(SEALED_BLOCK, packet[TOTAL] - start) - 5
            for k in range(5):
                at = start + k - first
                if 0 <= at < size:
                    value = 23 if k == 0 else 3 if k < 3 else (content >> 8) & 255 if k == 3 else content & 255
                    old = np.int64(noises[which, low + at])
                    words += _overwrite(arena, body, kept, at, old, value)
    return words


@inner
def frame(out: Any, when: float) -> None:
    """The packet of the description, with the layer 4 header and the message at hand, into the arena."""
    sink, world, noise, l4, head, _, _, packet, snap = out
    arena, times, spans, cursor = sink
    ends, addresses, macs = world
    source, target, proto, tos = packet[SOURCE], packet[TARGET], packet[PROTO], packet[TOS]
    head_size, first, size, l4_size = packet[HEAD], packet[FIRST], packet[SIZE], packet[L4]
    n, pos = cursor[0], cursor[1]
    if n >= len(times) or pos + FRAME_ROOM > len(arena):
        cursor[2] = 1
        return
    for i in range(6):
        arena[pos + i] = macs[target, i]
        arena[pos + 6 + i] = macs[source, i]
    at = pos + 14
    l4_total = l4_size + size
    total = 0
    ttl: Any = np.int64(ends[source].ttl)
    if macs[target, 0] == 1 or (proto == ICMP6 and l4[0] >= 133):
        # Multicast and neighbour discovery: nothing that was routed may pass for it.
        ttl = 255
    if proto == ARP:
        put16(arena, pos + 12, 0x0806)
    elif ends[source].v6:
        put16(arena, pos + 12, 0x86DD)
        put32(arena, at, 0x60000000 + (tos << 20) + (packet[IDENT] & 0xFFFFF))
        put16(arena, at + 4, l4_total)
        arena[at + 6] = proto
        arena[at + 7] = ttl
        for i in range(16):
            arena[at + 8 + i] = addresses[source, i]
            arena[at + 24 + i] = addresses[target, i]
        total = _sum(arena, at + 8, at + 40) + l4_total + proto
        at += 40
    else:
        put16(arena, pos + 12, 0x0800)
        arena[at] = 0x45
        arena[at + 1] = tos
        put16(arena, at + 2, 20 + l4_total)
        put16(arena, at + 4, packet[IDENT])
        put16(arena, at + 6, 0 if ends[source].stack >= SMALL else 0x4000)
        arena[at + 8] = ttl
        arena[at + 9] = proto
        put16(arena, at + 10, 0)
        for i in range(4):
            arena[at + 12 + i] = addresses[source, i]
            arena[at + 16 + i] = addresses[target, i]
        if proto != ICMP:
            total = _sum(arena, at + 12, at + 20) + l4_total + proto
        put16(arena, at + 10, _fold(_sum(arena, at, at + 20)) ^ 0xFFFF)
        at += 20
    body = at + l4_size
    whole = body - pos + size
    # Bulk filler is cut at the snap length; protocol text is kept, as it is what fingerprints are made of.
    real = max(0, min(head_size - first, size))
    kept = size if snap == 0 else max(real, min(size, snap - (body - pos)))
    for i in range(real):
        arena[body + i] = head[first + i]
    total += _sum(head, first, first + real)
    if size > real:
        total += _filler(arena, noise, packet, body, real, kept)
    if proto != ARP:
        put16(l4, packet[CHECK], 0)
        check = _fold(total + _sum(l4, 0, l4_size)) ^ 0xFFFF
        put16(l4, packet[CHECK], 0xFFFF if proto == UDP and check == 0 else check)
    for i in range(l4_size):
        arena[at + i] = l4[i]
    captured = body - pos + kept
    # Ethernet pads short frames.
    while whole < 60:
        arena[pos + whole] = 0
        whole += 1
        captured = whole
    times[n] = np.int64(when * 1e6)
    spans[n, 0], spans[n, 1], spans[n, 2], spans[n, 3] = pos, captured, whole, packet[ROW]
    cursor[0] = n + 1
    cursor[1] = pos + captured


@kernel
def write_frame_records(
    arena: NDArray[np.uint8], times: NDArray[np.int64], spans: NDArray[np.int64], order: NDArray[np.int64],
    epoch: int, last: int, out: NDArray[np.uint8], seen: NDArray[np.int64],
) -> int:  # fmt: skip
    """Write pcap records of the packets in this order, two at one microsecond moved apart; return the last time.

    `seen[row]` becomes the first and last time and the number of packets of every connection.
    """
    at = 0
    for i in order:
        last = max(times[i] + epoch, last + 1)
        for k, value in enumerate((last // 1000000, last % 1000000, spans[i, 1], spans[i, 2])):
            for b in range(4):
                out[at + 4 * k + b] = (value >> (8 * b)) & 255
        at += RECORD_HEADER
        start = spans[i, 0]
        for b in range(spans[i, 1]):
            out[at + b] = arena[start + b]
        at += spans[i, 1]
        row = spans[i, 3]
        if seen[row, 2] == 0:
            seen[row, 0] = last
        seen[row, 1] = last
        seen[row, 2] += 1
    return last
