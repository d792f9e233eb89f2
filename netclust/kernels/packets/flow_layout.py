"""How a connection lies in memory: what both directions share (FLOW), what each counts (SIDE), the table's settings."""

from __future__ import annotations

import numpy as np

# Zeek's states of an endpoint.
INACTIVE, SYN_SENT, SYN_ACK_SENT, PARTIAL, ESTABLISHED, CLOSED, RESET = range(7)

# Why a record was written.
END_CLOSED, END_ATTEMPT, END_IDLE, END_INTERIM, END_EVICTED, END_CLOCK, END_STOPPED = range(7)
END_NAMES = ("closed", "attempt", "idle", "interim", "evicted", "clock", "stopped")

# Lists of flows, each in the order in which its flows fall due.
ATTEMPT_LIST, IDLE_LIST, CLOSED_LIST, LISTS = 0, 1, 2, 3

# Protocols whose payload is looked into, by port.
NO_APP, FTP, TELNET, SMTP, POP3, IMAP, HTTP, DNS = range(8)
SERVER_PORT = 128  # this bit of a port's entry: a service listens there

# Settings (conf) and what the table keeps between calls (state).
SEED, ATTEMPT_NS, IDLE_NS, CLOSE_NS, ACTIVE_NS, STEP_NS, CONTENT, SETTINGS = range(8)
(
    NOW, FREE, NEXT_ID, EVICTED, ORPHAN_FRAGMENTS, WRONG_FRAGMENTS, CLOCK_STEPS, CLOCK_LEAPS, REORDERED, PORT_REUSE,
    STEPPING, DUE, STATES,
) = range(13)  # fmt: skip

NAME_BYTES = 64  # of a server's name or a query's that are kept
LINE_BYTES = 128  # of an unfinished line of a dialogue
GAPS = 4  # holes in a direction's sequence that are remembered

_COUNTS = ("packets", "frame_bytes", "ip_bytes", "payload_bytes", "retransmitted_bytes", "missed_bytes")
_FLAGS = ("syn", "fin", "rst", "psh", "ack", "urg")

SIDE = np.dtype(
    [
        *((name, np.int64) for name in _COUNTS),
        ("last", np.int64),
        *((name, np.float64) for name in ("size_squares", "gap_sum", "gap_squares", "gap_max")),
        *((name, np.uint32) for name in ("isn", "low", "high", "size_min", "size_max")),
        *((name, np.uint32) for name in ("retransmitted", "out_of_order", *_FLAGS)),
        ("window", np.uint16),  # of the first packet
        ("line", np.uint16),  # bytes of the unfinished line
        ("ttl", np.uint8),  # of the first packet
        ("started", np.uint8),  # 1: the sequence numbers are known, 2: from a SYN
        ("gaps", np.uint8),
        ("skip", np.uint8),  # the rest of an overlong line
    ],
    align=True,
)

CONTENT_NAMES = (
    "hot", "num_failed_logins", "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root",
    "num_file_creations", "num_shells", "num_access_files", "is_host_login", "is_guest_login",
)  # fmt: skip

FLOW = np.dtype(
    [
        *((name, np.uint64) for name in ("a_hi", "a_lo", "b_hi", "b_lo", "hash")),
        ("id", np.int64),
        ("time", np.int64),  # when it was over, in traffic time
        ("first", np.int64),
        ("last", np.int64),
        ("active", np.int64),  # traffic time of the last packet
        ("due_from", np.int64),  # what the timeout of its list counts from
        ("since", np.int64),  # traffic time of this part's beginning
        *((name, np.float64) for name in ("gap_sum", "gap_squares", "gap_max")),
        ("tls_hash", np.uint64),
        ("vlan", np.uint32),
        *((name, np.uint32) for name in ("fragments", "wrong_fragments", "urgent", "dns_queries", "dns_failures")),
        *((name, np.uint32) for name in CONTENT_NAMES),
        ("dns_entropy", np.float32),  # of the most varied name, bits a character
        ("a_port", np.uint16),
        ("b_port", np.uint16),
        ("part", np.uint16),
        ("tls_version", np.uint16),
        ("tls_ciphers", np.uint16),
        ("tls_extensions", np.uint16),
        ("tls_alpn", np.uint16),
        ("dns_length", np.uint16),  # of the longest name
        ("dns_type", np.uint16),
        ("family", np.uint8),
        ("proto", np.uint8),
        ("swapped", np.uint8),  # the originator is endpoint b
        ("list", np.uint8),
        ("orig_state", np.uint8),
        ("resp_state", np.uint8),
        ("orig_before", np.uint8),
        ("resp_before", np.uint8),
        ("icmp_type", np.uint8),  # of the first packet; ARP's operation
        ("icmp_code", np.uint8),
        ("end", np.uint8),
        ("app", np.uint8),
        ("command", np.uint8),  # of the dialogue: what an answer will answer
        ("name_bytes", np.uint8),
    ],
    align=True,
)

FRAGMENT = np.dtype(
    [
        ("hash", np.uint64),
        ("time", np.int64),
        ("end", np.int64),
        ("sport", np.uint16),
        ("dport", np.uint16),
        ("icmp_type", np.uint8),
        ("icmp_code", np.uint8),
    ],
    align=True,
)

RECORD = np.dtype(
    [("time", np.int64), ("flow", FLOW), ("orig", SIDE), ("resp", SIDE), ("name", f"S{NAME_BYTES}")], align=True
)
"""A finished connection, or a part of one."""
