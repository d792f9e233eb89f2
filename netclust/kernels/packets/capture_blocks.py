"""Where the packets lie in the bytes of a pcapng capture: sections, interfaces, and the three kinds of packet blocks.

As in `capture_index`, whose state, counts and index these kernels share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inner, kernel
from netclust.kernels.packets.capture_index import (
    BAD_BLOCK,
    BAD_INTERFACE,
    BAD_LENGTH,
    BAD_TIME,
    BIG,
    BYTE_ORDER,
    CAPLEN_ABOVE_WIRELEN,
    ENHANCED,
    I_BITS,
    I_LIMIT,
    I_LINK,
    I_OVER,
    I_SHIFT,
    I_SNAPLEN,
    I_TIMES,
    INTERFACE,
    INTERFACES,
    LAST_TIME,
    LOST,
    MAX_BLOCK_BYTES,
    MAX_PACKET_BYTES,
    MAX_PASSED_BYTES,
    OLD_PACKET,
    PASS,
    POSITION,
    SECOND,
    SECTION,
    SIMPLE,
    SKIPPED_BYTES,
    TRUNCATED_FILE,
    UNKNOWN_INTERFACE,
    emit,
    u16,
    u32,
)

MAX_TIME = (1 << 63) - 1
MAX_SHIFT_SECONDS = 1 << 33
CUSTOM, CUSTOM_LOCAL = 0xBAD, 0x40000BAD
LAST_KNOWN_TYPE = 10  # of those that are numbered from 1
TSRESOL, TSOFFSET = 9, 14


@borrowing(inner)
def _known_type(kind: Any) -> Any:
    return 1 <= kind <= LAST_KNOWN_TYPE or kind in (SECTION, CUSTOM, CUSTOM_LOCAL)


@borrowing(inner)
def _order(buf: Any, at: Any) -> Any:
    """Of a section (12 bytes are there): 0 little, 1 big, -1 neither."""
    if u32(buf, at + 8, False) == BYTE_ORDER:
        return 0
    return 1 if u32(buf, at + 8, True) == BYTE_ORDER else -1


@borrowing(inner)
def _find_block(buf: Any, at: Any, end: Any, final: Any, state: Any) -> Any:
    """(place, whether a block begins there): the next one of a known type that says its length at both ends."""
    while at + 12 <= end:
        big = np.int64(state[BIG])
        if u32(buf, at, False) == SECTION:
            big = _order(buf, at)
        if big >= 0 and _known_type(u32(buf, at, big != 0)):
            total = u32(buf, at + 4, big != 0)
            if 12 <= total <= MAX_BLOCK_BYTES and total & 3 == 0:
                if at + total <= end:
                    if u32(buf, at + total - 4, big != 0) == total:
                        return at, True
                elif not final:
                    return at, False
        at += 4
    return (end if final else at), False


@borrowing(inner)
def _read_interface(buf: Any, at: Any, total: Any, big: Any, row: Any) -> Any:
    """Fill a row of the interface table; False if what the block says of its times is impossible."""
    row[I_LINK] = u16(buf, at + 8, big)
    row[I_SNAPLEN] = u32(buf, at + 12, big)
    row[I_TIMES], row[I_OVER], row[I_BITS], row[I_SHIFT] = 1000, 1, 0, 0
    sound = True
    place, end = at + 16, at + total - 4
    while place + 4 <= end:
        code, length = u16(buf, place, big), u16(buf, place + 2, big)
        value = place + 4
        if code == 0 or value + length > end:
            break
        if code == TSRESOL and length >= 1:
            power = np.int64(buf[value] & 0x7F)
            if buf[value] & 0x80:
                if power <= 63:
                    row[I_TIMES], row[I_BITS] = 0, power
                else:
                    sound = False
            elif power <= 9:
                row[I_TIMES], row[I_OVER] = 10 ** (9 - power), 1
            elif power <= 27:
                row[I_TIMES], row[I_OVER] = 1, 10 ** (power - 9)
            else:
                sound = False
        elif code == TSOFFSET and length >= 8:
            first, second = u32(buf, value, big), u32(buf, value + 4, big)
            seconds = (first << 32) | second if big else (second << 32) | first
            if -MAX_SHIFT_SECONDS < seconds < MAX_SHIFT_SECONDS:
                row[I_SHIFT] = seconds * SECOND
            else:
                sound = False
        place = value + ((length + 3) & ~3)
    row[I_LIMIT] = MAX_TIME // max(row[I_TIMES], 1)
    return sound


@borrowing(inner)
def _time(high: Any, low: Any, interfaces: Any, which: Any) -> Any:
    """Nanoseconds since the epoch, or -1 if that is out of all range."""
    ticks = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    times = np.uint64(interfaces[which, I_TIMES])
    if times == 0:
        bits = np.uint64(interfaces[which, I_BITS])
        whole, fraction = ticks >> bits, ticks & ((np.uint64(1) << bits) - np.uint64(1))
        if bits > 34:  # so that the product below fits; less than a nanosecond is lost
            fraction >>= bits - np.uint64(34)
            bits = np.uint64(34)
        if whole >= np.uint64(MAX_TIME // SECOND):
            return np.int64(-1)
        time = whole * np.uint64(SECOND) + ((fraction * np.uint64(SECOND)) >> bits)
    elif interfaces[which, I_OVER] > 1:
        time = ticks // np.uint64(interfaces[which, I_OVER])
    elif ticks > np.uint64(interfaces[which, I_LIMIT]):
        return np.int64(-1)
    else:
        time = ticks * times
    if time > np.uint64(MAX_TIME):
        return np.int64(-1)
    shift = interfaces[which, I_SHIFT]
    if shift == 0:
        return np.int64(time)
    if shift > 0 and time > np.uint64(MAX_TIME - shift):
        return np.int64(-1)
    return max(np.int64(time) + shift, np.int64(-1))


@borrowing(kernel)
def walk_pcapng(buf: Any, end: Any, final: Any, state: Any, interfaces: Any, counts: Any, out: Any) -> Any:
    """Index the whole blocks of buf[:end], from the state's place: how many packets. Less than `out` holds: more bytes.

    `final` says that no more bytes will come.
    """
    at = state[POSITION]
    last = state[LAST_TIME]
    big = state[BIG] != 0
    n = 0
    while n < len(out):
        if state[PASS] > 0:
            step = min(state[PASS], end - at)
            at += step
            state[PASS] -= step
            if state[PASS] > 0:
                counts[TRUNCATED_FILE] += 1 if final else 0
                break
        if state[LOST] != 0:
            place, found = _find_block(buf, at, end, final, state)
            counts[SKIPPED_BYTES] += place - at
            at = place
            if not found:
                break
            state[LOST] = 0
        if at + 12 > end:
            if final and at < end:
                counts[TRUNCATED_FILE] += 1
                counts[SKIPPED_BYTES] += end - at
                at = end
            break
        kind, total = u32(buf, at, big), u32(buf, at + 4, big)
        sound = True
        if kind == SECTION:  # the same in both orders
            order = _order(buf, at)
            sound = order >= 0
            if sound:
                big = order == 1
                state[BIG] = order
                total = u32(buf, at + 4, big)
        if total < 12 or total & 3 != 0:
            sound = False
        elif total > MAX_BLOCK_BYTES:
            packets = kind in (ENHANCED, SIMPLE, OLD_PACKET)
            sound = sound and total <= MAX_PASSED_BYTES and not packets and kind != SECTION and _known_type(kind)
            if sound:
                state[PASS] = total
                continue
        if sound and at + total > end:
            if not final:
                break
            # Cut short; or a wrong length, if sound blocks follow before it ends.
            place, found = _find_block(buf, at + 4, end, final, state)
            counts[BAD_BLOCK if found else TRUNCATED_FILE] += 1
            counts[SKIPPED_BYTES] += place - at
            at = place
            continue
        if not sound or u32(buf, at + total - 4, big) != total:
            counts[BAD_BLOCK] += 1
            step = min(np.int64(4), end - at)
            counts[SKIPPED_BYTES] += step
            at += step
            state[LOST] = 1
            continue
        if kind in (ENHANCED, OLD_PACKET):
            if total < 32:
                counts[BAD_LENGTH] += 1
            else:
                which = u32(buf, at + 8, big) if kind == ENHANCED else u16(buf, at + 8, big)
                caplen, wirelen = u32(buf, at + 20, big), u32(buf, at + 24, big)
                if which >= state[INTERFACES]:
                    counts[UNKNOWN_INTERFACE] += 1
                elif caplen > total - 32 or caplen > MAX_PACKET_BYTES or wirelen > MAX_PACKET_BYTES:
                    counts[BAD_LENGTH] += 1
                else:
                    time = _time(u32(buf, at + 12, big), u32(buf, at + 16, big), interfaces, which)
                    if time < 0:
                        counts[BAD_TIME] += 1
                        time = max(last, np.int64(0))
                    counts[CAPLEN_ABOVE_WIRELEN] += caplen > wirelen
                    emit(out, n, at + 28, time, caplen, wirelen, interfaces[which, I_LINK])
                    last = time
                    n += 1
        elif kind == SECTION:
            state[INTERFACES] = 0
        elif kind == INTERFACE:
            which = state[INTERFACES]
            if total < 20 or which >= len(interfaces):
                counts[BAD_INTERFACE] += 1
            else:
                if not _read_interface(buf, at, total, big, interfaces[which]):
                    counts[BAD_INTERFACE] += 1
                state[INTERFACES] = which + 1
        elif kind == SIMPLE:
            wirelen = u32(buf, at + 8, big) if total >= 16 else np.int64(0)
            caplen = min(wirelen, total - 16)
            if state[INTERFACES] > 0 and interfaces[0, I_SNAPLEN] > 0:
                caplen = min(caplen, interfaces[0, I_SNAPLEN])
            if state[INTERFACES] == 0:
                counts[UNKNOWN_INTERFACE] += 1
            elif total < 16 or wirelen > MAX_PACKET_BYTES:
                counts[BAD_LENGTH] += 1
            else:
                emit(out, n, at + 12, max(last, np.int64(0)), caplen, wirelen, interfaces[0, I_LINK])
                n += 1
        at += total
    state[POSITION] = at
    state[LAST_TIME] = last
    return n
