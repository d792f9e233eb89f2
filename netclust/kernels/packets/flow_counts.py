"""What a packet adds to its connection: counts, sizes, gaps, TCP's flags and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from netclust.kernels.jit import borrowing, inner
from netclust.kernels.packets.decode import TCP
from netclust.kernels.packets.tcp import next_states


@borrowing(inner)
def clear_side(side: Any) -> None:
    """Count a direction anew."""
    side.packets = side.frame_bytes = side.ip_bytes = side.payload_bytes = 0
    side.retransmitted_bytes = side.missed_bytes = side.last = 0
    side.size_squares = side.gap_sum = side.gap_squares = side.gap_max = 0.0
    side.size_min = side.size_max = side.retransmitted = side.out_of_order = 0
    side.syn = side.fin = side.rst = side.psh = side.ack = side.urg = 0


@borrowing(inner)
def clear_part(flow: Any, now: int, time: int) -> None:
    """Count what both directions share anew."""
    flow.since, flow.first, flow.last = now, time, time
    flow.gap_sum = flow.gap_squares = flow.gap_max = 0.0
    flow.fragments = flow.wrong_fragments = flow.urgent = flow.dns_queries = flow.dns_failures = 0
    flow.dns_length = flow.dns_type = 0
    flow.dns_entropy = np.float32(0.0)
    flow.hot = flow.num_failed_logins = flow.logged_in = flow.num_compromised = flow.root_shell = 0
    flow.su_attempted = flow.num_root = flow.num_file_creations = flow.num_shells = flow.num_access_files = 0
    flow.is_host_login = flow.is_guest_login = 0


@borrowing(inner)
def next_part(flow: Any, orig: Any, resp: Any, now: int, time: int) -> None:
    """Count anew behind an interim record; who is logged in stays so."""
    flow.part += 1
    logged_in, root, host, guest = flow.logged_in, flow.root_shell, flow.is_host_login, flow.is_guest_login
    clear_part(flow, now, time)
    clear_side(orig)
    clear_side(resp)
    flow.logged_in, flow.root_shell, flow.is_host_login, flow.is_guest_login = logged_in, root, host, guest


@borrowing(inner)
def count_packet(flow: Any, side: Any, packet: Any) -> None:
    """What every packet adds, whatever its protocol."""
    time = packet.time
    if side.packets:
        gap = (time - side.last) * 1e-9
        side.gap_sum += gap
        side.gap_squares += gap * gap
        side.gap_max = max(side.gap_max, gap)
    elif side.ttl == 0:
        side.ttl, side.window = packet.ttl, packet.window
    if time != flow.last:
        gap = (time - flow.last) * 1e-9
        flow.gap_sum += gap
        flow.gap_squares += gap * gap
        flow.gap_max = max(flow.gap_max, gap)
    side.last = time
    flow.first, flow.last = min(flow.first, time), max(flow.last, time)
    size = np.int64(packet.ip_bytes)
    side.size_min = size if side.packets == 0 else min(side.size_min, size)
    side.size_max = max(side.size_max, size)
    side.size_squares += np.float64(size) * size
    side.packets += 1
    side.frame_bytes += packet.frame_bytes
    side.ip_bytes += size
    if packet.fragment or packet.more:
        flow.fragments += 1
        flow.wrong_fragments += packet.more >> 1
    if packet.proto != TCP or packet.fragment:
        side.payload_bytes += packet.payload_bytes


@borrowing(inner)
def count_flags(flow: Any, side: Any, flags: int) -> None:
    """TCP's flags."""
    side.fin += flags & 1
    side.syn += flags >> 1 & 1
    side.rst += flags >> 2 & 1
    side.psh += flags >> 3 & 1
    side.ack += flags >> 4 & 1
    side.urg += flags >> 5 & 1
    flow.urgent += flags >> 5 & 1


@borrowing(inner)
def change_states(flow: Any, is_orig: bool, flags: int, size: int) -> None:
    """Both endpoints' states after a segment."""
    if is_orig:
        states = next_states(flow.orig_state, flow.orig_before, flow.resp_state, flow.resp_before, True, flags, size)
        flow.orig_state, flow.orig_before, flow.resp_state, flow.resp_before = states
    else:
        states = next_states(flow.resp_state, flow.resp_before, flow.orig_state, flow.orig_before, False, flags, size)
        flow.resp_state, flow.resp_before, flow.orig_state, flow.orig_before = states
