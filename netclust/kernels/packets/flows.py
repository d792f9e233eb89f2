"""The flow table: packets in, finished connections out, in a memory that does not grow.

Connections lie in slots; an open-addressing table of slot numbers finds them by their normalised endpoints, protocol
and VLAN. Three lists (attempts, idle, closed) hold them in the order in which they fall due, so that nothing is ever
searched for what has timed out. When no slot is free the next one to fall due is finished early: first of the closed,
then of the unanswered attempts, then the one that has been silent for longest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.jit import borrowing, inner, kernel
from netclust.kernels.packets.decode import ACK, FIRST_BAD, ICMP, ICMPV6, RST, SYN, TCP, UDP, is_echo
from netclust.kernels.packets.dialogue import read_dialogue
from netclust.kernels.packets.flow_counts import (
    change_states,
    clear_part,
    clear_side,
    count_flags,
    count_packet,
    next_part,
)
from netclust.kernels.packets.flow_ends import (
    append_flow,
    due_time,
    end_all,
    end_due,
    finish_flow,
    take_out_flow,
    write_ended_flow,
)
from netclust.kernels.packets.flow_layout import (
    ACTIVE_NS,
    ATTEMPT_LIST,
    CLOCK_LEAPS,
    CLOCK_STEPS,
    CLOSED_LIST,
    CONTENT,
    DNS,
    DUE,
    END_CLOSED,
    END_EVICTED,
    END_INTERIM,
    ESTABLISHED,
    EVICTED,
    FREE,
    IDLE_LIST,
    IDLE_NS,
    INACTIVE,
    NEXT_ID,
    NO_APP,
    NOW,
    ORPHAN_FRAGMENTS,
    PORT_REUSE,
    REORDERED,
    SEED,
    SERVER_PORT,
    STEP_NS,
    STEPPING,
    WRONG_FRAGMENTS,
)
from netclust.kernels.packets.payload import mix, read_dns, read_hello
from netclust.kernels.packets.tcp import BROKEN, SEE_GAPS, count_in_order, count_out_of_order, is_tcp_over

_NONE = -1
_DAY_NS = 86_400 * 10**9
_NOT_ECHO = 1 << 31  # keeps other ICMP messages apart from series of pings


@borrowing(kernel)
def track_flows(
    data: NDArray[np.uint8], packets: NDArray[Any], begin: int, until: int, flows: NDArray[Any],
    sides: NDArray[Any], gaps: NDArray[np.uint32], names: NDArray[np.uint8], lines: NDArray[np.uint8],
    chain: NDArray[np.int32], ends: NDArray[np.int32], buckets: NDArray[np.int32], free: NDArray[np.int32],
    fragments: NDArray[Any], ports: NDArray[np.uint8], conf: NDArray[np.int64], state: NDArray[np.int64],
    words: tuple[NDArray[np.uint64], ...], out: NDArray[np.uint64], scratch: NDArray[np.uint16],
) -> tuple[int, int]:  # fmt: skip
    """Follow packets from `begin` on, then let the traffic time come to `until` if that is later.

    Gives the first packet that was not followed (all of them were if that is their number) and how many connections
    were written; call again while the output is full. `words` are flows, sides and names as 64-bit words, `out` too:
    a row of it is a RECORD.
    """
    flow_words, side_words, name_words = words
    room = len(out) - 2  # one packet finishes two connections at most, besides those that fell due
    done = 0
    i = begin
    while i <= len(packets):
        if done >= room:
            return i, done
        last_round = i == len(packets)
        now = until if last_round else packets[i].time
        if not last_round and packets[i].status >= FIRST_BAD:
            i += 1
            continue
        if not last_round and state[NOW] >= 0 and now < state[NOW] - conf[STEP_NS]:
            state[STEPPING] = 1  # the clock was set back: what is open ends here
        if state[STEPPING]:
            done = end_all(flows, flow_words, side_words, name_words, lines, chain, ends, buckets, free, state, out,
                            done, room)  # fmt: skip
            if done >= room:
                return i, done
            state[CLOCK_STEPS] += 1
            state[STEPPING] = 0
            state[NOW] = now
        if now > state[NOW]:
            if not last_round and state[NOW] >= 0 and now - _DAY_NS > state[NOW]:
                state[CLOCK_LEAPS] += 1
            if now > state[DUE]:
                done = end_due(flows, flow_words, side_words, name_words, lines, chain, ends, buckets, free, conf,
                                state, now, out, done, room)  # fmt: skip
                if done >= room:
                    return i, done
            state[NOW] = now
        elif not last_round and now < state[NOW]:
            state[REORDERED] += 1
        if last_round:
            return i, done
        packet = packets[i]
        if packet.fragment or packet.more:
            _join_fragment(packet, fragments, conf, state)
        if packet.proto in (ICMP, ICMPV6) and not is_echo(packet.proto, packet.icmp_type):
            packet.sport = np.int64(packet.icmp_type) << 8 | packet.icmp_code
            packet.vlan |= np.uint32(_NOT_ECHO)
        if packet.proto in (ICMP, ICMPV6):
            packet.dport = packet.sport
        from_b = _after(packet)
        code = _hash(packet, from_b, conf[SEED])
        slot = _find(flows, buckets, packet, from_b, code)
        if slot >= 0 and _is_reuse(flows[slot], sides, slot, from_b, packet):
            state[PORT_REUSE] += 1
            finish_flow(slot, END_CLOSED, state[NOW], flows, flow_words, side_words, name_words, lines, chain, ends,
                    buckets, free, state, out, done)  # fmt: skip
            done += 1
            slot = _NONE
        if slot < 0:
            if state[FREE] == 0:
                victim = ends[CLOSED_LIST, 0]
                if victim < 0:
                    victim = ends[ATTEMPT_LIST, 0]
                if victim < 0:
                    victim = ends[IDLE_LIST, 0]
                state[EVICTED] += 1
                finish_flow(victim, END_EVICTED, state[NOW], flows, flow_words, side_words, name_words, lines, chain,
                            ends, buckets, free, state, out, done)  # fmt: skip
                done += 1
            slot = _begin(flows, sides, chain, ends, buckets, free, ports, conf, state, packet, from_b, code)
        flow = flows[slot]
        if conf[ACTIVE_NS] > 0 and state[NOW] - flow.since >= conf[ACTIVE_NS]:
            write_ended_flow(slot, END_INTERIM, state[NOW], flows, flow_words, side_words, name_words, out, done)
            done += 1
            next_part(flow, sides[slot, 0], sides[slot, 1], state[NOW], packet.time)
        d = np.int64(from_b != flow.swapped)  # 0 from the originator, 1 from the responder
        side = sides[slot, d]
        count_packet(flow, side, packet)
        fresh = np.int64(packet.payload_bytes)
        if packet.proto == TCP and not packet.fragment:
            flags = packet.flags
            fresh = 0
            if not flags & RST:  # numbers in a reset are not to be trusted
                fresh = count_in_order(side, np.int64(packet.seq), flags & SYN != 0, np.int64(packet.payload_bytes))
                if fresh == SEE_GAPS:
                    fresh = count_out_of_order(
                        side, gaps[slot, d], np.int64(packet.seq), flags & SYN != 0, np.int64(packet.payload_bytes)
                    )
            count_flags(flow, side, flags)
            change_states(flow, d == 0, flags, np.int64(packet.payload_bytes))
        elif d == 0:
            flow.orig_state = ESTABLISHED
        else:
            flow.resp_state = ESTABLISHED
        if packet.payload_here and conf[CONTENT] and (fresh > 0 or fresh == BROKEN):
            is_hello = packet.proto == TCP and d == 0 and side.payload_bytes == packet.payload_bytes
            if flow.app != NO_APP or is_hello:
                _look_inside(data, flow, side, packet, fresh, d == 0, names[slot], lines[slot, d], scratch)
        flow.active = state[NOW]
        which = flow.list
        goal = _goal(flow)
        if goal != which or (which == IDLE_LIST and ends[which, 1] != slot):
            take_out_flow(chain, ends, slot, which)
            append_flow(chain, ends, slot, goal)
            flow.list, flow.due_from = goal, state[NOW]
            state[DUE] = min(state[DUE], due_time(state[NOW], conf, goal))
        elif which == IDLE_LIST:
            flow.due_from = state[NOW]
        i += 1
    return i, done


@borrowing(inner)
def _goal(flow: Any) -> int:
    """The list where a flow belongs after a packet: an attempt and a closed one keep their place."""
    if flow.list == CLOSED_LIST:
        return CLOSED_LIST
    if flow.proto == TCP:
        if is_tcp_over(flow.orig_state, flow.resp_state):
            return CLOSED_LIST
        if flow.list == ATTEMPT_LIST and flow.resp_state == INACTIVE:
            return ATTEMPT_LIST
    return IDLE_LIST


@borrowing(inner)
def _after(packet: Any) -> bool:
    """Whether the sender is the greater endpoint, which is called b."""
    if packet.src_hi != packet.dst_hi:
        return packet.src_hi > packet.dst_hi
    if packet.src_lo != packet.dst_lo:
        return packet.src_lo > packet.dst_lo
    return packet.sport > packet.dport


@borrowing(inner)
def _hash(packet: Any, from_b: bool, seed: int) -> Any:
    """The same for both directions; seeded, so that nobody can choose endpoints that collide."""
    a_hi, a_lo, b_hi, b_lo = packet.src_hi, packet.src_lo, packet.dst_hi, packet.dst_lo
    a_port, b_port = np.uint64(packet.sport), np.uint64(packet.dport)
    if from_b:
        a_hi, a_lo, b_hi, b_lo = b_hi, b_lo, a_hi, a_lo
        a_port, b_port = b_port, a_port
    h = mix(a_lo ^ np.uint64(seed))
    h = mix(h ^ b_lo)
    if packet.family == 6:
        h = mix(h ^ a_hi)
        h = mix(h ^ b_hi)
    rest = a_port << np.uint64(48) | b_port << np.uint64(32) | np.uint64(packet.vlan)
    return mix(h ^ rest ^ (np.uint64(packet.proto) << np.uint64(24)) ^ (np.uint64(packet.family) << np.uint64(40)))


@borrowing(inner)
def _find(flows: NDArray[Any], buckets: NDArray[np.int32], packet: Any, from_b: bool, code: Any) -> int:
    mask = np.uint64(len(buckets) - 1)
    at = code & mask
    while buckets[at] >= 0:
        flow = flows[buckets[at]]
        if flow.hash == code and _same(flow, packet, from_b):
            return np.int64(buckets[at])
        at = (at + np.uint64(1)) & mask
    return _NONE


@borrowing(inner)
def _same(flow: Any, packet: Any, from_b: bool) -> bool:
    if flow.proto != packet.proto or flow.family != packet.family or flow.vlan != packet.vlan:
        return False
    a_hi, a_lo, b_hi, b_lo = packet.src_hi, packet.src_lo, packet.dst_hi, packet.dst_lo
    a_port, b_port = packet.sport, packet.dport
    if from_b:
        a_hi, a_lo, b_hi, b_lo = b_hi, b_lo, a_hi, a_lo
        a_port, b_port = b_port, a_port
    if flow.a_port != a_port or flow.b_port != b_port or flow.a_lo != a_lo or flow.b_lo != b_lo:
        return False
    return flow.a_hi == a_hi and flow.b_hi == b_hi


@borrowing(inner)
def _is_reuse(flow: Any, sides: NDArray[Any], slot: int, from_b: bool, packet: Any) -> bool:
    """A new SYN with another number on a connection that is over: the ports are used again."""
    if packet.proto != TCP or packet.flags & (SYN | ACK) != SYN or flow.list != CLOSED_LIST:
        return False
    return packet.seq != sides[slot, np.int64(from_b != flow.swapped)].isn


@borrowing(inner)
def _begin(
    flows: NDArray[Any], sides: NDArray[Any], chain: NDArray[np.int32], ends: NDArray[np.int32],
    buckets: NDArray[np.int32], free: NDArray[np.int32], ports: NDArray[np.uint8], conf: NDArray[np.int64],
    state: NDArray[np.int64], packet: Any, from_b: bool, code: Any,
) -> int:  # fmt: skip
    """A slot for a new connection, entered in the table and in its list."""
    state[FREE] -= 1
    slot = np.int64(free[state[FREE]])
    flow = flows[slot]
    flow.hash, flow.vlan, flow.family, flow.proto = code, packet.vlan, packet.family, packet.proto
    if from_b:
        flow.a_hi, flow.a_lo, flow.b_hi, flow.b_lo = packet.dst_hi, packet.dst_lo, packet.src_hi, packet.src_lo
        flow.a_port, flow.b_port = packet.dport, packet.sport
    else:
        flow.a_hi, flow.a_lo, flow.b_hi, flow.b_lo = packet.src_hi, packet.src_lo, packet.dst_hi, packet.dst_lo
        flow.a_port, flow.b_port = packet.sport, packet.dport
    flow.id = state[NEXT_ID]
    state[NEXT_ID] += 1
    flow.orig_state = flow.resp_state = flow.orig_before = flow.resp_before = INACTIVE
    flow.icmp_type, flow.icmp_code = packet.icmp_type, packet.icmp_code
    flow.part = 0
    flow.command = flow.name_bytes = 0
    flow.tls_hash = np.uint64(0)
    flow.tls_version = flow.tls_ciphers = flow.tls_extensions = flow.tls_alpn = 0
    for d in range(2):
        side = sides[slot, d]
        side.started = side.gaps = side.skip = side.ttl = 0
        side.isn = side.low = side.high = 0
        side.line = side.window = 0
        clear_side(side)
    clear_part(flow, state[NOW], packet.time)
    row = 0 if packet.proto == TCP else 1
    to_server = False
    if packet.proto == TCP or packet.proto == UDP:
        to_server = ports[row, packet.sport] & SERVER_PORT != 0 and ports[row, packet.dport] & SERVER_PORT == 0
    if packet.proto == TCP and packet.flags & SYN:
        to_server = packet.flags & ACK != 0
    flow.swapped = from_b != to_server  # an answer comes first: its receiver began
    server = packet.sport if to_server else packet.dport
    flow.app = NO_APP
    if packet.proto == TCP or packet.proto == UDP:
        flow.app = ports[row, server] & (SERVER_PORT - 1)
    is_attempt = packet.proto == TCP and packet.flags & (SYN | ACK) == SYN
    which = ATTEMPT_LIST if is_attempt else IDLE_LIST
    flow.list, flow.due_from = which, state[NOW]
    state[DUE] = min(state[DUE], due_time(state[NOW], conf, which))
    append_flow(chain, ends, slot, which)
    mask = np.uint64(len(buckets) - 1)
    at = code & mask
    while buckets[at] >= 0:
        at = (at + np.uint64(1)) & mask
    buckets[at] = slot
    return slot


@borrowing(inner)
def _look_inside(
    data: NDArray[np.uint8], flow: Any, side: Any, packet: Any, fresh: int, is_orig: bool, name: NDArray[np.uint8],
    line: NDArray[np.uint8], scratch: NDArray[np.uint16],
) -> None:  # fmt: skip
    at, end = packet.payload, packet.payload + packet.payload_here
    if fresh > 0:
        at += max(np.int64(packet.payload_bytes) - fresh, 0)
    if flow.app == DNS:
        if packet.proto == UDP and not packet.fragment:
            read_dns(data, at, end, flow, name, scratch)
        elif packet.proto == TCP:
            read_dns(data, at + 2, end, flow, name, scratch)  # behind the message's length
    elif flow.app != NO_APP:
        if at < end and packet.proto == TCP:
            read_dialogue(data, at, end, fresh == BROKEN, is_orig, flow, side, line)
    else:
        read_hello(data, at, end, flow, name)


@borrowing(inner)
def _join_fragment(packet: Any, fragments: NDArray[Any], conf: NDArray[np.int64], state: NDArray[np.int64]) -> None:
    """Later fragments get the ports of the first; what overlaps or is too long is wrong (its `more` gets bit 1)."""
    h = mix(packet.src_lo)  # not seeded: two that share a place must do so in every run
    h = mix(h ^ packet.dst_lo ^ mix(packet.src_hi ^ mix(packet.dst_hi)))
    h = mix(h ^ np.uint64(packet.ident) ^ (np.uint64(packet.proto) << np.uint64(40)))
    entry = fragments[h & np.uint64(len(fragments) - 1)]
    size = np.int64(packet.payload_bytes) + packet.header_bytes
    end = np.int64(packet.fragment) + size
    wrong = end > 65_535 or (packet.more and size % 8 != 0)
    if packet.fragment == 0:
        entry.hash, entry.time, entry.end = h, state[NOW], end
        entry.sport, entry.dport = packet.sport, packet.dport
        entry.icmp_type, entry.icmp_code = packet.icmp_type, packet.icmp_code
    elif entry.hash == h and state[NOW] - entry.time < conf[IDLE_NS]:
        packet.sport, packet.dport = entry.sport, entry.dport
        packet.icmp_type, packet.icmp_code = entry.icmp_type, entry.icmp_code
        wrong = wrong or packet.fragment < entry.end
        entry.end = max(entry.end, end)
    else:
        state[ORPHAN_FRAGMENTS] += 1
    if wrong:
        state[WRONG_FRAGMENTS] += 1
        packet.more |= 2
