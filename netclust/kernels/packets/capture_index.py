"""Where the packets lie in the bytes of a pcap or pcapng capture.

One call walks as many whole records as there are, and leaves its place in `state` for the next call, which has more
bytes. Every length is checked before it is used. What is corrupt is counted by reason and passed over: the walk goes
on at the next place that looks like a record and is followed by another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inner, kernel

MAX_PACKET_BYTES = 1 << 18  # as in netclust.stream.packets.packet_blocks
MAX_BLOCK_BYTES = 1 << 20  # of pcapng, that is looked at as a whole; longer ones of known types are passed over
MAX_PASSED_BYTES = 1 << 28
MAX_INTERFACES = 4096
NEED_BYTES = 4 * (MAX_PACKET_BYTES + 24)  # no decision needs to see more than this at once

# Slots of the state. HEADER: bytes of a record's header; LIMIT: sub-seconds in a second; PASS: bytes to pass over yet.
POSITION, LOST, BIG, HEADER, LIMIT, LINK, LAST_TIME, INTERFACES, PASS = range(9)
STATE_SLOTS = 9

# Columns of the interface table: a time is ticks (LIMIT at most) * TIMES // OVER + SHIFT; TIMES 0: a fraction of BITS.
I_LINK, I_SNAPLEN, I_TIMES, I_OVER, I_BITS, I_SHIFT, I_LIMIT = range(7)
INTERFACE_COLUMNS = 7

# Slots of the counts.
REASONS = (
    "bad_length",  # a packet's length is absurd, or longer than its block
    "bad_record",  # a pcap record's header is zeros, or odd and nothing sound follows it
    "bad_block",  # a pcapng block's length is impossible, or differs from that at its end
    "bad_interface",  # an interface description is too short, or its resolution is impossible
    "unknown_interface",  # a packet of an interface that was not described
    "caplen_above_wirelen",  # taken, with the longer one as length on the wire
    "bad_time",  # sub-seconds above a second, or a time out of all range
    "joined_files",  # another capture's header between records: one file was appended to another
    "truncated_file",  # the last record is cut short
    "skipped_bytes",  # passed over to find the next sound record
)
(
    BAD_LENGTH,
    BAD_RECORD,
    BAD_BLOCK,
    BAD_INTERFACE,
    UNKNOWN_INTERFACE,
    CAPLEN_ABOVE_WIRELEN,
    BAD_TIME,
    JOINED_FILES,
    TRUNCATED_FILE,
    SKIPPED_BYTES,
) = range(10)

MICRO, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34  # MODIFIED: microseconds and 24 bytes of header
VERSION_2_4, VERSION_2_4_BIG = 0x00040002, 0x04000200  # as little-endian numbers
GLOBAL_HEADER_BYTES = 24
LINK_MASK = 0x03FFFFFF  # the bits above say how long a frame check sequence is

SECTION, INTERFACE, OLD_PACKET, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
BYTE_ORDER = 0x1A2B3C4D

SECOND = 1_000_000_000
DAY = 86_400
NO_PLACE = np.int64(-1)
NO, MORE, YES = -1, 0, 1  # NO_PLACE and these: answers of the parts below; MORE: cannot be said without more bytes


@borrowing(inner)
def u32(buf: Any, at: Any, big: Any) -> Any:
    """An unsigned 32-bit number, as int64."""
    a, b, c, d = np.uint32(buf[at]), np.uint32(buf[at + 1]), np.uint32(buf[at + 2]), np.uint32(buf[at + 3])
    if big:
        return np.int64((a << 24) | (b << 16) | (c << 8) | d)
    return np.int64((d << 24) | (c << 16) | (b << 8) | a)


@borrowing(inner)
def u16(buf: Any, at: Any, big: Any) -> Any:
    """An unsigned 16-bit number, as int64."""
    a, b = np.int64(buf[at]), np.int64(buf[at + 1])
    return (a << 8) | b if big else (b << 8) | a


@borrowing(inner)
def emit(out: Any, n: Any, offset: Any, time: Any, caplen: Any, wirelen: Any, link: Any) -> None:
    """Write down one packet."""
    out[n].offset = offset
    out[n].time = time
    out[n].caplen = caplen
    out[n].wirelen = max(caplen, wirelen)
    out[n].link = link
    out[n].vlan = -1


@borrowing(inner)
def _global_header(buf: Any, at: Any, state: Any) -> Any:
    """Whether a pcap file's header begins here (24 bytes are there); if so the state is set for what follows it."""
    for big in (False, True):
        magic = u32(buf, at, big)
        if magic in (MICRO, NANO, MODIFIED):
            state[BIG] = big
            state[HEADER] = 24 if magic == MODIFIED else 16
            state[LIMIT] = SECOND if magic == NANO else 1_000_000
            state[LINK] = u32(buf, at + 20, big) & LINK_MASK
            return True
    return False


@borrowing(inner)
def _sound_record(buf: Any, at: Any, end: Any, final: Any, state: Any, second: Any, strict: Any) -> Any:
    """Whether a record may begin here, within a day of that second (-1: any): YES, NO, or MORE to say."""
    if at == end and final:
        return YES
    if at + state[HEADER] > end:
        return NO if final else MORE
    big = state[BIG] != 0
    when, fraction = u32(buf, at, big), u32(buf, at + 4, big)
    caplen, wirelen = u32(buf, at + 8, big), u32(buf, at + 12, big)
    if caplen > MAX_PACKET_BYTES or wirelen > MAX_PACKET_BYTES or (when == 0 and fraction == 0 and wirelen == 0):
        return NO
    if strict and (fraction >= state[LIMIT] or caplen > wirelen or caplen == 0):
        return NO
    return YES if second < 0 or abs(when - second) <= DAY else NO


@borrowing(inner)
def _find_record(buf: Any, at: Any, end: Any, final: Any, state: Any) -> Any:
    """(place, whether a record begins there): the next one that the following ones confirm."""
    last = state[LAST_TIME] // SECOND if state[LAST_TIME] >= 0 else NO_PLACE
    big = state[BIG] != 0
    while at + state[HEADER] <= end:
        # The length alone refuses almost every place.
        if (
            u32(buf, at + 8, big) <= MAX_PACKET_BYTES
            and _sound_record(buf, at, end, False, state, NO_PLACE, True) == YES
        ):
            second = u32(buf, at, big)
            # Far from the last packet in time is not impossible, but needs more that speaks for it.
            depth = 1 if last >= 0 and abs(second - last) <= DAY else 3
            place = at
            answer = YES
            for _ in range(depth):
                place += state[HEADER] + u32(buf, place + 8, big)
                answer = _sound_record(buf, place, end, final, state, second, True)
                if answer != YES or place == end:
                    break
            if answer == MORE:
                return at, False
            if answer == YES:
                return at, True
        at += 1
    return (end if final else at), False


@borrowing(kernel)
def begin_pcap(buf: Any, state: Any) -> Any:
    """Read a global header at the beginning of the buffer (24 bytes are there): whether it is one."""
    state[:] = 0
    state[LAST_TIME] = -1
    state[POSITION] = GLOBAL_HEADER_BYTES
    return _global_header(buf, np.int64(0), state)


@borrowing(kernel)
def walk_pcap(buf: Any, end: Any, final: Any, state: Any, counts: Any, out: Any) -> Any:
    """Index the whole records of buf[:end], from the state's place: how many. Less than `out` holds: needs more bytes.

    `final` says that no more bytes will come.
    """
    big, header, limit, link = state[BIG] != 0, state[HEADER], state[LIMIT], state[LINK]
    unit = SECOND // limit
    at = state[POSITION]
    n = 0
    while n < len(out):
        if state[LOST] != 0:
            place, found = _find_record(buf, at, end, final, state)
            counts[SKIPPED_BYTES] += place - at
            at = place
            if not found:
                break
            state[LOST] = 0
        body = at + header
        if body > end:
            if final and at < end:
                counts[TRUNCATED_FILE] += 1
                counts[SKIPPED_BYTES] += end - at
                at = end
            break
        second, fraction = u32(buf, at, big), u32(buf, at + 4, big)
        caplen, wirelen = u32(buf, at + 8, big), u32(buf, at + 12, big)
        if caplen > MAX_PACKET_BYTES or wirelen > MAX_PACKET_BYTES:
            counts[BAD_LENGTH] += 1
            state[LOST] = 1
        elif fraction >= limit or caplen > wirelen or caplen == 0:
            if wirelen == 0 and u32(buf, at + 4, False) in (VERSION_2_4, VERSION_2_4_BIG):
                if at + GLOBAL_HEADER_BYTES > end and not final:
                    break
                if at + GLOBAL_HEADER_BYTES <= end and _global_header(buf, at, state):
                    counts[JOINED_FILES] += 1
                    big, header, limit, link = state[BIG] != 0, state[HEADER], state[LIMIT], state[LINK]
                    unit = SECOND // limit
                    at += GLOBAL_HEADER_BYTES
                    continue
            answer = NO
            if second != 0 or fraction != 0 or wirelen != 0:
                answer = _sound_record(buf, body + caplen, end, final, state, second, False)
            if answer == MORE:
                break
            if answer == NO:
                counts[BAD_RECORD] += 1
                state[LOST] = 1
        if state[LOST] != 0:
            at += 1
            counts[SKIPPED_BYTES] += 1
            continue
        if body + caplen > end:
            if not final:
                break
            # Cut short; or a wrong length, if sound records follow before it ends.
            place, found = _find_record(buf, at + 1, end, final, state)
            counts[BAD_LENGTH if found else TRUNCATED_FILE] += 1
            counts[SKIPPED_BYTES] += place - at
            at = place
            continue
        counts[BAD_TIME] += fraction >= limit
        counts[CAPLEN_ABOVE_WIRELEN] += caplen > wirelen
        time = second * SECOND + fraction * unit
        emit(out, n, body, time, caplen, wirelen, link)
        state[LAST_TIME] = time
        n += 1
        at = body + caplen
    state[POSITION] = at
    return n
