"""Zeek logs made of connections, to be read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from netclust.kernels.packets import decode
from netclust.stream.sources.conn_records import Conn

_NAMES = {
    decode.TCP: "tcp", decode.UDP: "udp", decode.ICMP: "icmp", decode.ICMPV6: "icmp", decode.SCTP: "sctp",
}  # fmt: skip
_FIELDS = (
    "ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service", "duration", "orig_bytes",
    "resp_bytes", "conn_state", "missed_bytes", "orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes",
)  # fmt: skip


def write_zeek_json(path: Path, conns: Sequence[Conn], label: str = "label") -> None:
    """Write connections as JSON lines, with their label in a column of this name."""
    lines = [{**_values(conn), label: conn.label} for conn in conns]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_zeek_tsv(path: Path, conns: Sequence[Conn], label: str = "label") -> None:
    """Write connections as a tab-separated log, with their label in a column of this name."""
    head = ["#separator \\x09", "#unset_field\t-", "#path\tconn", "\t".join(["#fields", *_FIELDS, label])]
    rows = [
        "\t".join("-" if v in ("", None) else f"{v:.6f}" if isinstance(v, float) else str(v) for v in line)
        for line in ([*_values(conn).values(), conn.label] for conn in conns)
    ]
    path.write_text("\n".join([*head, *rows]) + "\n")


def _values(conn: Conn) -> dict[str, str | int | float]:
    icmp = 8 if conn.proto in (decode.ICMP, decode.ICMPV6) else 0  # that Zeek does not count as payload
    ports = conn.icmp if icmp else (conn.source_port, conn.destination_port)
    found = (
        conn.start / 1e9, conn.uid or "C1", conn.source, ports[0], conn.destination, ports[1],
        _NAMES.get(conn.proto, "unknown_transport"), conn.app, (conn.end - conn.start) / 1e9,
        conn.orig[1] - icmp * conn.orig[0], conn.resp[1] - icmp * conn.resp[0], conn.state, conn.missed,
        conn.orig[0], conn.orig[2], conn.resp[0], conn.resp[2],
    )  # fmt: skip
    return dict(zip(_FIELDS, found, strict=True))
