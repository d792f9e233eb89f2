"""TCP of one connection: the endpoints' states as Zeek keeps them, and each byte of the sequence space counted once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel
from netclust.kernels.packets.decode import ACK, FIN, RST, SYN
from netclust.kernels.packets.flow_layout import (
    CLOSED,
    ESTABLISHED,
    GAPS,
    INACTIVE,
    PARTIAL,
    RESET,
    SYN_ACK_SENT,
    SYN_SENT,
)

SEE_GAPS, BROKEN = -2, -1

_FAR = 1 << 30  # no window is larger: a jump of this size is no gap but another numbering

# Zeek's conn_state, which is KDD's flag.
SF, S0, S1, S2, S3, REJ, RSTO, RSTR, RSTOS0, RSTRH, SH, SHR, OTH = range(13)
FLAG_NAMES = ("SF", "S0", "S1", "S2", "S3", "REJ", "RSTO", "RSTR", "RSTOS0", "RSTRH", "SH", "SHR", "OTH")


@borrowing(inner)
def next_states(own: int, own_before: int, peer: int, peer_before: int, is_orig: bool, flags: int, size: int) -> Any:
    """The states (and those before them) of a packet's sender and of its peer after the packet."""
    new, other = own, peer
    if own == INACTIVE:
        if flags & SYN:
            if is_orig:
                new = SYN_ACK_SENT if flags & ACK else SYN_SENT
            else:
                new = ESTABLISHED
                if peer == SYN_SENT:
                    other = ESTABLISHED
        if flags & FIN:
            new = CLOSED
        if flags & RST:
            new = RESET
        if new == INACTIVE:
            if not is_orig and size == 0 and peer == SYN_SENT:
                pass  # some hosts acknowledge a SYN before they answer it
            elif flags & ACK and peer == ESTABLISHED:
                new = ESTABLISHED  # its SYN was missed
            else:
                new = PARTIAL
    elif own in (SYN_SENT, SYN_ACK_SENT):
        if flags & FIN:
            new = CLOSED
        if flags & RST:
            new = RESET
    elif own in (ESTABLISHED, PARTIAL):
        if flags & SYN and own == PARTIAL and peer == INACTIVE and not flags & ACK:
            new = SYN_SENT
        if flags & FIN and not flags & RST:
            new = CLOSED
            if peer == RESET and peer_before == CLOSED:
                other = CLOSED  # a FIN, then a RST: it was an ordinary end
        if flags & RST:
            new = RESET
    elif own == CLOSED and flags & RST and peer != CLOSED:
        new = RESET
    if new != own:
        own_before = own
    if other != peer:
        peer_before = peer
    return new, own_before, other, peer_before


@borrowing(inner)
def is_tcp_over(orig: int, resp: int) -> bool:
    """Return whether a connection in these states will not go on."""
    if orig == RESET or resp == RESET:
        return True
    if orig == CLOSED:
        return resp in (CLOSED, INACTIVE)
    return resp == CLOSED and orig == INACTIVE


@borrowing(inner)
def tcp_flag(orig: int, resp: int, payload: int) -> int:
    """Zeek's conn_state; `payload` is what both sides sent together."""
    orig_inactive = orig in (INACTIVE, PARTIAL)
    resp_inactive = resp in (INACTIVE, PARTIAL)
    if resp == RESET:
        if orig in (SYN_SENT, SYN_ACK_SENT) or (orig == RESET and payload == 0):
            return REJ
        return RSTRH if orig_inactive else RSTR
    if orig == RESET:
        return RSTOS0 if resp_inactive else RSTO
    if orig == CLOSED and resp == CLOSED:
        return SF
    if orig == CLOSED:
        return SH if resp_inactive else S2
    if resp == CLOSED:
        return SHR if orig_inactive else S3
    if orig == SYN_SENT and resp == INACTIVE:
        return S0
    return S1 if orig == ESTABLISHED and resp == ESTABLISHED else OTH


@borrowing(kernel)
def tcp_flags(
    orig: NDArray[np.uint8], resp: NDArray[np.uint8], payload: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """The flag of every connection."""
    for i in range(len(orig)):
        out[i] = tcp_flag(orig[i], resp[i], payload[i])


@borrowing(inner)
def _ahead(a: int, b: int) -> int:
    """a - b in the circle of sequence numbers, from -2^31 to 2^31 - 1."""
    return ((np.int64(a) - np.int64(b) + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


@borrowing(inner)
def count_in_order(side: Any, seq: int, syn: bool, size: int) -> int:
    """Count a segment that begins a direction or goes on where it left off; its new bytes, SEE_GAPS if it does not."""
    start = (seq + 1) & 0xFFFFFFFF if syn else seq
    if side.started == 0:
        side.started, side.isn, side.low = 2 if syn else 1, seq, start
    elif size == 0:
        return 0
    elif start != side.high:
        return SEE_GAPS
    side.high = (start + size) & 0xFFFFFFFF
    side.payload_bytes += size
    return size


@borrowing(inner)
def count_out_of_order(side: Any, gaps: NDArray[np.uint32], seq: int, syn: bool, size: int) -> int:
    """Count any other segment by sequence; how many of its last bytes are new, BROKEN if some before it are missing."""
    start = (seq + 1) & 0xFFFFFFFF if syn else seq
    end = (start + size) & 0xFFFFFFFF
    ahead = _ahead(start, side.high)
    if ahead >= _FAR or ahead <= -_FAR:
        side.low, side.high, side.gaps = start, end, 0
        side.payload_bytes += size
        return BROKEN
    if ahead > 0:
        _open_gap(side, gaps, side.high, start)
        side.high = end
        side.payload_bytes += size
        return BROKEN
    fresh = max(_ahead(end, side.high), 0)
    filled = _fill_gaps(side, gaps, start, size)
    before = min(_ahead(side.low, start), size)
    if before > 0 and side.started == 1:  # from before the capture began
        filled += before
        side.low = start
    if fresh:
        side.high = end
    side.payload_bytes += filled + fresh
    if filled:
        side.out_of_order += 1
    again = size - filled - fresh
    if again > 0:
        side.retransmitted += 1
        side.retransmitted_bytes += again
    return fresh


@borrowing(inner)
def _open_gap(side: Any, gaps: NDArray[np.uint32], start: int, end: int) -> None:
    """Remember a hole; the oldest is given up for it, and what it lacks stays missed."""
    if side.gaps == GAPS:
        for k in range(GAPS - 1):
            gaps[k, 0], gaps[k, 1] = gaps[k + 1, 0], gaps[k + 1, 1]
        side.gaps -= 1
    gaps[side.gaps, 0], gaps[side.gaps, 1] = start, end
    side.gaps += 1
    side.missed_bytes += _ahead(end, start)


@borrowing(inner)
def _fill_gaps(side: Any, gaps: NDArray[np.uint32], start: int, size: int) -> int:
    """Take what a late segment brings out of the holes; how many bytes that were."""
    filled, k = 0, 0
    end = (start + size) & 0xFFFFFFFF
    while k < side.gaps:
        gap_start, gap_end = np.int64(gaps[k, 0]), np.int64(gaps[k, 1])
        low = start if _ahead(start, gap_start) > 0 else gap_start
        high = end if _ahead(end, gap_end) < 0 else gap_end
        part = _ahead(high, low)
        if part <= 0:
            k += 1
            continue
        filled += part
        side.missed_bytes = max(side.missed_bytes - part, 0)  # an earlier part of the connection may have counted it
        left, right = _ahead(low, gap_start), _ahead(gap_end, high)
        if left > 0 and right > 0:
            gaps[k, 1] = low
            if side.gaps < GAPS:  # else the right part stays missed
                gaps[side.gaps, 0], gaps[side.gaps, 1] = high, gap_end
                side.gaps += 1
            k += 1
        elif left > 0:
            gaps[k, 1] = low
            k += 1
        elif right > 0:
            gaps[k, 0] = high
            k += 1
        else:
            side.gaps -= 1
            gaps[k, 0], gaps[k, 1] = gaps[side.gaps, 0], gaps[side.gaps, 1]
    return filled
