"""One block of a TPACKET_V3 ring to an index of packets; the frames stay where the Linux kernel wrote them.

Layouts are those of `linux/if_packet.h`: a block starts with `tpacket_block_desc`, each packet with `tpacket3_hdr`, and
`sockaddr_ll` follows that. The Linux kernel wrote them and is trusted; the checks cost next to nothing and stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, kernel

BLOCK_HEADER_BYTES = 48
HEADER_BYTES = 48  # of tpacket3_hdr
ADDRESS_BYTES = 20  # of sockaddr_ll

# Offsets in tpacket_block_desc.
BLOCK_STATUS, PACKETS, FIRST_PACKET = 8, 12, 16

# Offsets in tpacket3_hdr, and of the packet type in the sockaddr_ll behind it.
NEXT, SECONDS, NANOSECONDS, CAPTURED, LENGTH, STATUS, FRAME, VLAN_TCI = 0, 4, 8, 12, 16, 20, 24, 32
PACKET_TYPE = HEADER_BYTES + 10

VLAN_VALID = 1 << 4  # TP_STATUS_VLAN_VALID
OUTGOING = 4  # PACKET_OUTGOING


@borrowing(kernel)
def walk_block(ring: Any, start: Any, size: Any, link: Any, drop_outgoing: Any, out: Any) -> Any:
    """Fill `out` (dtype INDEX) from the block at ring[start : start + size], 8-byte aligned; offsets are into `ring`.

    Returns how many packets were filled in, how many copies of outgoing packets were passed over, and how many packets
    the block announced that could not be read.
    """
    words = ring.view(np.uint32)
    halves = ring.view(np.uint16)
    end = min(start + size, ring.size)
    if start < 0 or start % 4 or end - start < BLOCK_HEADER_BYTES:
        return 0, 0, 0
    packets = np.int64(words[(start + PACKETS) // 4])
    at = start + np.int64(words[(start + FIRST_PACKET) // 4])
    filled = 0
    outgoing = 0
    for seen in range(packets):
        if at < start + BLOCK_HEADER_BYTES or at % 4 or at + HEADER_BYTES + ADDRESS_BYTES > end or filled == out.size:
            return filled, outgoing, packets - seen
        word = at // 4
        frame = at + np.int64(halves[(at + FRAME) // 2])
        captured = np.int64(words[word + CAPTURED // 4])
        if frame + captured > end:
            return filled, outgoing, packets - seen
        if drop_outgoing and ring[at + PACKET_TYPE] == OUTGOING:
            outgoing += 1
        else:
            packet = out[filled]
            packet.offset = frame
            packet.time = np.int64(words[word + SECONDS // 4]) * 1_000_000_000 + np.int64(
                words[word + NANOSECONDS // 4]
            )
            packet.caplen = captured
            packet.wirelen = max(captured, np.int64(words[word + LENGTH // 4]))
            packet.link = link
            tagged = words[word + STATUS // 4] & np.uint32(VLAN_VALID)
            packet.vlan = np.int64(words[word + VLAN_TCI // 4] & np.uint32(0x0FFF)) if tagged else -1
            filled += 1
        step = np.int64(words[word + NEXT // 4])
        if step == 0 and seen + 1 < packets:
            return filled, outgoing, packets - seen - 1
        at += step
    return filled, outgoing, 0
