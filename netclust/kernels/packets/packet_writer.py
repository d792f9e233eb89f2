"""Planned connections to packets: TCP with its sequence arithmetic, delays and faults, UDP, ICMP and ARP.

A connection is a list of messages. The capture point lies between the two ends; `trip` of an end is the time from
there to it and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import inner, kernel
from netclust.kernels.packets.packet_frames import (  # fmt: skip
    APPLE,
    ARP,
    BARE,
    BASE,
    CHECK,
    FIRST,
    HEAD,
    ICMP,
    IDENT,
    L4,
    LINUX,
    PROTO,
    QUIC,
    ROW,
    SIZE,
    SOURCE,
    TABLE,
    TARGET,
    TCP,
    TOS,
    TOTAL,
    UDP,
    WINDOWS,
    frame,
    mix,
    put16,
    put32,
    render,
    uniform,
)

# How a TCP connection begins.
OPENED, UNANSWERED, REFUSED, OPEN_RESET, HALF_OPEN, ANSWER_RESET, ANSWER_ONLY = range(7)
# How it ends.
FIN_A, FIN_B, FIN_B_RESET_A, RESET_A, RESET_B, LEFT_OPEN, HALF_CLOSED = range(7)
# What goes wrong on the way.
FINE, RESENT, REORDERED, LOST_BEFORE, SYN_LOST = range(5)

_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16
# A connection's state, by side where there are two of a thing.
_SEQ, _RCV, _TSVAL, _TSECR, _IPID, _CLOCK, _TS, _SCALED, _SACK = 0, 2, 4, 6, 8, 10, 12, 13, 14


@inner
def _shift(stack: int) -> int:
    """Window scale of a stack."""
    return 7 if stack == LINUX else 8 if stack == WINDOWS else 6


@inner
def _options(l4: Any, stack: int, st: Any, side: int, flags: int, mss: int) -> int:
    """TCP options; the length of the header with them."""
    at = 20
    if flags & _SYN:
        if stack != BARE:
            put32(l4, at, 0x02040000 + mss)
            at += 4
        if stack == LINUX and st[_TS]:
            if st[_SACK]:
                put16(l4, at, 0x0402)
            else:
                put16(l4, at, 0x0101)
            put16(l4, at + 2, 0x080A)
            put32(l4, at + 4, st[_TSVAL + side])
            put32(l4, at + 8, st[_TSECR + side])
            at += 12
        if st[_SCALED]:
            put32(l4, at, 0x01030300 + _shift(stack))
            at += 4
        if stack == APPLE and st[_TS]:
            put32(l4, at, 0x0101080A)
            put32(l4, at + 4, st[_TSVAL + side])
            put32(l4, at + 8, st[_TSECR + side])
            at += 12
        if st[_SACK] and not (stack == LINUX and st[_TS]):
            put32(l4, at, 0x01010402 if stack != APPLE else 0x04020000)
            at += 4
    elif st[_TS] and not flags & _RST:
        put32(l4, at, 0x0101080A)
        put32(l4, at + 4, st[_TSVAL + side])
        put32(l4, at + 8, st[_TSECR + side])
        at += 12
    return at


@inner
def _send(out: Any, c: Any, row: int, side: int, when: float, flags: int, first: int, size: int, late: int) -> float:
    """One TCP segment of a side, then or as soon after its last one; returns its time.

    A `late` one may be overtaken by those that are sent after it.
    """
    _, world, _, l4, _, st, tm, packet, _ = out
    when = max(when, tm[side] + 2e-6)
    if not late:
        tm[side] = when
    me, other = (c.b, c.a) if side else (c.a, c.b)
    end = world[0][me]
    stack = np.int64(end.stack)
    st[_TSVAL + side] = st[_CLOCK + side] + np.int64((when - c.start) * 1000.0)
    put16(l4, 0, np.int64(c.dport if side else c.sport))
    put16(l4, 2, np.int64(c.sport if side else c.dport))
    put32(l4, 4, st[_SEQ + side])
    put32(l4, 8, st[_RCV + side] if flags & _ACK else 0)
    l4_size = _options(l4, stack, st, side, flags, np.int64(c.mss))
    l4[12] = (l4_size // 4) << 4
    l4[13] = flags
    window = np.int64(end.window)
    if flags & _RST:
        window = 0
    elif st[_SCALED] and not flags & _SYN:
        window = (4 * window >> _shift(stack)) + ((st[_RCV + side] >> 13) & 3)
    put16(l4, 14, min(window, 65535))
    put32(l4, 16, 0)
    ident = st[_IPID + side]
    st[_IPID + side] += 1
    if end.v6:
        ident = c.seed
    elif stack == APPLE or (stack == LINUX and (flags & _RST or flags == _SYN | _ACK)):
        ident = 0
    packet[ROW], packet[SOURCE], packet[TARGET], packet[PROTO] = row, me, other, TCP
    packet[IDENT], packet[TOS], packet[L4], packet[CHECK] = ident, c.tos, l4_size, 16
    packet[FIRST], packet[SIZE] = first, size
    frame(out, when)
    st[_SEQ + side] += size + (1 if flags & (_SYN | _FIN) else 0)
    st[_TSECR + 1 - side] = st[_TSVAL + side]
    return when


@inner
def _bare(out: Any, c: Any, row: int, side: int, when: float, flags: int) -> float:
    """A segment without data."""
    return _send(out, c, row, side, when, flags, np.int64(0), np.int64(0), np.int64(0))


@inner
def _begin(st: Any, tm: Any, c: Any, ends: Any, dice: Any) -> None:
    """Sequence numbers, clocks and what both stacks can do."""
    for side in range(2):
        st[_SEQ + side] = np.int64(uniform(dice) * 4294967295.0)
        st[_RCV + side] = 0
        st[_TSECR + side] = 0
        st[_CLOCK + side] = np.int64(uniform(dice) * 4000000000.0)
        st[_IPID + side] = np.int64(uniform(dice) * 60000.0)
        tm[side] = 0.0
    a = ends[c.a].stack
    st[_TS] = 1 if a in (LINUX, APPLE) else 0
    st[_SCALED] = 1 if a <= APPLE else 0
    st[_SACK] = st[_SCALED]


@inner
def _handshake(out: Any, c: Any, row: int, trips: Any, dice: Any) -> tuple[float, bool]:
    """Whatever begins the connection: the time afterwards, and whether data can follow."""
    # Plain numbers would be compiled once for each value.
    near, far = np.int64(0), np.int64(1)
    st, ends = out[5], out[1][0]
    b = ends[c.b].stack
    when = c.start
    if c.opening >= ANSWER_RESET:
        st[_RCV] = np.int64(uniform(dice) * 4294967295.0)
        st[_TS] = 0
        for k in range(c.tries):
            st[_SEQ] -= 1 if k else 0
            when = _bare(out, c, row, near, when, _SYN | _ACK)
            if c.opening == ANSWER_RESET:
                st[_SEQ + 1] = st[_RCV]
                _bare(out, c, row, far, when + trips[1], np.int64(_RST))
            when += (1 << k) * (1.0 + 0.02 * uniform(dice))
        return when, False
    times = c.tries if c.opening in (UNANSWERED, REFUSED) else 2 if c.fault == SYN_LOST else 1
    for k in range(times):
        if k:
            # A refused Windows client tries again after half a second; an unanswered one waits 1, 2, 4 s.
            when += (
                0.5 + 0.01 * uniform(dice) if c.opening == REFUSED else (1 << (k - 1)) * (1.0 + 0.03 * uniform(dice))
            )
        st[_SEQ] -= 1 if k else 0
        _bare(out, c, row, near, when, np.int64(_SYN))
        st[_RCV + 1] = st[_SEQ]
        if c.opening == REFUSED:
            st[_SEQ + 1] = 0
            _bare(out, c, row, far, when + trips[1], _RST | _ACK)
    if c.opening in (UNANSWERED, REFUSED):
        return when, False
    st[_TS] = st[_TS] if b in (LINUX, APPLE) else 0
    st[_SCALED] = st[_SCALED] if b <= APPLE else 0
    st[_SACK] = st[_SCALED]
    tries = c.tries if c.opening == HALF_OPEN else 1
    when += trips[1]
    for k in range(tries):
        when += ((1 << (k - 1)) * (1.0 + 0.02 * uniform(dice))) if k else 0.0
        st[_SEQ + 1] -= 1 if k else 0
        when = _bare(out, c, row, far, when, _SYN | _ACK)
    st[_RCV] = st[_SEQ + 1]
    if c.opening == HALF_OPEN:
        return when, False
    when += trips[0]
    if c.opening == OPEN_RESET:
        st[_TS] = 0
        return _bare(out, c, row, near, when, np.int64(_RST)), False
    return _bare(out, c, row, near, when, np.int64(_ACK)), True


@inner
def _teardown(out: Any, c: Any, row: int, trips: Any, when: float, dice: Any) -> None:
    near, far = np.int64(0), np.int64(1)
    st = out[5]
    if c.closing == LEFT_OPEN:
        return
    if c.closing in (RESET_A, RESET_B):
        _bare(out, c, row, np.int64(c.closing) - RESET_A, when, _RST | _ACK)
        return
    first = far if c.closing in (FIN_B, FIN_B_RESET_A, HALF_CLOSED) else near
    when = _bare(out, c, row, first, when, _FIN | _ACK)
    st[_RCV + 1 - first] = st[_SEQ + first]
    when += trips[1 - first]
    if c.closing == FIN_B_RESET_A:
        _bare(out, c, row, near, when + 0.3 * uniform(dice), _RST | _ACK)
        return
    if c.closing != HALF_CLOSED:
        if uniform(dice) < 0.4:
            when = _bare(out, c, row, 1 - first, when, np.int64(_ACK))
            when += 0.03 * uniform(dice)
        when = _bare(out, c, row, 1 - first, when, _FIN | _ACK)
        st[_RCV + first] = st[_SEQ + 1 - first]
        when += trips[first]
        _bare(out, c, row, first, when, np.int64(_ACK))
    else:
        _bare(out, c, row, near, when, np.int64(_ACK))


@inner
def _tcp(out: Any, c: Any, row: int, messages: Any, book: Any, trips: Any, dice: Any) -> None:
    near, far = np.int64(0), np.int64(1)
    _, world, _, _, head, st, tm, packet, _ = out
    ends = world[0]
    _begin(st, tm, c, ends, dice)
    when, up = _handshake(out, c, row, trips, dice)
    if not up:
        return
    room = np.int64(c.mss) - (12 if st[_TS] else 0)
    faulty, segment = np.int64(uniform(dice) * 8.0), 0
    spoke, unacked = 0, 0
    for m in range(c.first, c.last):
        message = messages[m]
        side = np.int64(message.side)
        wait = np.float64(message.wait)
        if c.keepalive > 0.0 and wait > c.keepalive:
            for k in range(1, min(int(wait / c.keepalive), 400) + 1):
                probe = when + k * c.keepalive
                st[_SEQ] -= 1
                probe = _bare(out, c, row, near, probe, np.int64(_ACK))
                st[_SEQ] += 1
                _bare(out, c, row, far, probe + trips[1], np.int64(_ACK))
        if c.closing == HALF_CLOSED and m == c.last - 1 and side == 1:
            when = _bare(out, c, row, near, when, _FIN | _ACK)
            st[_RCV + 1] = st[_SEQ]
        if side != spoke:
            # An answer within the delay of delayed acknowledgements carries the acknowledgement.
            if unacked and wait > 0.04:
                _bare(out, c, row, side, when + trips[side] + 0.04, np.int64(_ACK))
            when += trips[side]
        elif unacked:
            _bare(out, c, row, 1 - side, when + trips[1 - side], np.int64(_ACK))
        spoke, unacked = side, 0
        when += wait
        head_size = render(head, book, message, c.seed)
        size = head_size + np.int64(message.filler)
        packet[HEAD], packet[TABLE], packet[TOTAL] = head_size, message.table, size
        packet[BASE] = (mix(c.seed + m * 977) >> 3) & 0xFFFFF
        peer = ends[c.a if side else c.b]
        most = max(1, (36 if st[_SCALED] else 9) * np.int64(peer.window) // (10 * room))
        flight, allowed = 0, min(10, most)
        at, late = np.int64(0), -1.0
        while at < size:
            n = min(room, size - at)
            flags = _ACK | _PSH if at + n == size or (segment & 15) == 15 else _ACK
            step = (n + 60) / c.rate
            if segment == faulty and c.fault in (REORDERED, LOST_BEFORE) and at + n < size and late < 0.0:
                delay = 2.5 * step + 3e-5 if c.fault == REORDERED else trips[0] + trips[1] + 0.002 + 2.5 * step
                late = _send(out, c, row, side, when + delay, flags, at, n, np.int64(1))
            else:
                sent = _send(out, c, row, side, when, flags, at, n, np.int64(0))
                if late > 0.0:
                    # The gap is seen at the other end: it repeats its last acknowledgement.
                    _bare(out, c, row, 1 - side, sent + trips[1 - side], np.int64(_ACK))
                    when, late = max(when, late), 0.0
                    tm[side] = max(tm[side], when)
                if segment == faulty and c.fault == RESENT:
                    st[_SEQ + side] -= n
                    when += 0.2 + 2.0 * (trips[0] + trips[1])
                    when = _send(out, c, row, side, when, flags, at, n, np.int64(0))
            if late <= 0.0:
                st[_RCV + 1 - side] = st[_SEQ + side]
                late = -1.0
            segment += 1
            unacked += 1
            flight += 1
            at += n
            if unacked >= 2 and late < 0.0:
                _bare(out, c, row, 1 - side, when + trips[1 - side], np.int64(_ACK))
                unacked = 0
            if at < size:
                when += step * (0.7 + 0.6 * uniform(dice))
                if flight >= allowed:
                    # Slow start: a full flight waits for its acknowledgements.
                    when += max(0.0, trips[0] + trips[1] - (flight - 1) * step)
                    flight, allowed = 0, min(2 * allowed, most)
    other = 1 - spoke
    if unacked:
        _bare(out, c, row, other, when + trips[other] + 0.04 * uniform(dice), np.int64(_ACK))
    closer = 1 if c.closing in (FIN_B, FIN_B_RESET_A, HALF_CLOSED, RESET_B) else 0
    when += (trips[closer] if closer != spoke else 0.0) + 0.004 * uniform(dice)
    _teardown(out, c, row, trips, max(when, tm[0], tm[1]) + c.linger, dice)


@inner
def _arp(out: Any, c: Any, row: int, side: int, when: float) -> None:
    sink, world, _, l4, _, _, _, packet, _ = out
    _, addresses, macs = world
    me, other = (c.b, c.a) if side else (c.a, c.b)
    put32(l4, 0, 0x00010800)
    put32(l4, 4, 0x06040001 + side)
    for i in range(6):
        l4[8 + i] = macs[me, i]
        l4[18 + i] = macs[other, i] if side else 0
    for i in range(4):
        l4[14 + i] = addresses[me, i]
        l4[24 + i] = addresses[other, i]
    packet[ROW], packet[SOURCE], packet[TARGET], packet[PROTO] = row, me, other, ARP
    packet[L4], packet[FIRST], packet[SIZE], packet[HEAD] = 28, 0, 0, 0
    before = sink[3][1]
    frame(out, when)
    if side == 0 and sink[3][2] == 0:
        for i in range(6):
            sink[0][before + i] = 255


@inner
def _datagram(out: Any, c: Any, row: int, side: int, when: float, first: int, size: int, salt: int) -> None:
    """One UDP or ICMP packet with a part of the message at hand."""
    _, world, _, l4, _, st, tm, packet, _ = out
    me, other = (c.b, c.a) if side else (c.a, c.b)
    if c.proto == UDP:
        put16(l4, 0, np.int64(c.dport if side else c.sport))
        put16(l4, 2, np.int64(c.sport if side else c.dport))
        put16(l4, 4, 8 + size)
    else:
        kind = np.int64(c.icmp)
        echo = kind == 0x0800 or kind == 0x8000
        if side:
            kind = 0 if c.proto == ICMP else 0x8100 if kind == 0x8000 else 0x8800
        put16(l4, 0, kind)
        put16(l4, 4, np.int64(c.sport) if echo else 0x6000 if kind == 0x8800 else 0)
        put16(l4, 6, salt if echo else 0)
    packet[ROW], packet[SOURCE], packet[TARGET], packet[PROTO] = row, me, other, c.proto
    packet[IDENT] = c.seed if world[0][me].v6 else st[_IPID + side]
    packet[TOS], packet[L4], packet[CHECK] = c.tos, 8, 6 if c.proto == UDP else 2
    packet[FIRST], packet[SIZE] = first, size
    st[_IPID + side] += 1
    tm[side] = max(when, tm[side] + 2e-6)
    frame(out, tm[side])


@inner
def _datagrams(out: Any, c: Any, row: int, messages: Any, book: Any, trips: Any, dice: Any) -> None:
    """UDP, ICMP and ARP: one packet a message, or several where it is longer than `mss`."""
    _, world, _, _, head, st, tm, packet, _ = out
    _begin(st, tm, c, world[0], dice)
    when, spoke = c.start, 0
    for m in range(c.first, c.last):
        message = messages[m]
        side = np.int64(message.side)
        when += (trips[side] if side != spoke else 0.0) + message.wait
        spoke = side
        if c.proto == ARP:
            _arp(out, c, row, side, when)
            continue
        head_size = render(head, book, message, c.seed)
        size = head_size + np.int64(message.filler)
        salt = np.int64(message.salt)
        at, count = np.int64(0), 0
        while True:
            n = min(np.int64(c.mss), size - at)
            if message.table == QUIC and 0 < size - at - n < 25:
                # No QUIC packet is as short as the rest would be.
                n -= 25
            packet[HEAD], packet[TABLE], packet[TOTAL] = head_size, message.table, size
            # The answer to an echo repeats what was asked.
            packet[BASE] = (mix(c.seed + (m if c.proto == UDP else salt) * 977) >> 3) & 0xFFFFF
            _datagram(out, c, row, side, when, at, n, salt)
            at += n
            count += 1
            if c.acks and count % c.acks == 0:
                # The other side of a datagram stream acknowledges now and then, in small datagrams.
                packet[HEAD] = 0
                packet[BASE] += count * 64
                small = 27 + np.int64(uniform(dice) * 14.0)
                _datagram(out, c, row, 1 - side, when + trips[1 - side], np.int64(0), small, salt)
            if at >= size:
                break
            when += (n + 60) / c.rate * (0.7 + 0.6 * uniform(dice))


@kernel
def write_packets(
    connections: NDArray[Any], messages: NDArray[Any], low: int, first_row: int, book: Any, world: Any, noise: Any,
    sink: Any, snap: int,
) -> int:  # fmt: skip
    """Write the connections from `low` on into the sink; the first one that had no room, else how many there are.

    `sink` is (arena, times, spans, cursor) with cursor = (packets, bytes, out of room).
    """
    l4, head = np.zeros(80, np.uint8), np.zeros(70000, np.uint8)
    st, tm = np.zeros(16, np.int64), np.zeros(2, np.float64)
    trips, dice = np.zeros(2, np.float64), np.zeros(1, np.int64)
    out = (sink, world, noise, l4, head, st, tm, np.zeros(14, np.int64), snap)
    cursor = sink[3]
    for i in range(low, len(connections)):
        c = connections[i]
        packets, size = cursor[0], cursor[1]
        dice[0] = c.seed
        trips[0] = world[0][c.a].trip * (0.9 + 0.3 * uniform(dice))
        trips[1] = world[0][c.b].trip * (0.9 + 0.3 * uniform(dice))
        if c.proto == TCP:
            _tcp(out, c, first_row + i, messages, book, trips, dice)
        else:
            _datagrams(out, c, first_row + i, messages, book, trips, dice)
        if cursor[2]:
            cursor[0], cursor[1], cursor[2] = packets, size, 0
            return i
    return len(connections)
