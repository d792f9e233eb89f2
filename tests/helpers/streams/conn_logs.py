"""Connections of a capture written as Zeek and as Suricata would write them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.kernels.packets import decode, tcp
from netclust.stream.packets.connections import conn_states, connection_addresses, connection_endpoints, iso_times

ZEEK_FIELDS = (
    "ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service", "duration", "orig_bytes",
    "resp_bytes", "conn_state", "local_orig", "missed_bytes", "history", "orig_pkts", "orig_ip_bytes", "resp_pkts",
    "resp_ip_bytes", "tunnel_parents",
)  # fmt: skip
PROTOCOLS = {decode.TCP: "tcp", decode.UDP: "udp", decode.ICMP: "icmp", decode.ICMPV6: "icmp"}
ZEEK_HEADER = "\n".join(
    ["#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-", "#path\tconn",
     "#open\t2026-01-02-03-04-05", "#fields\t" + "\t".join(ZEEK_FIELDS), "#types\ttime\tstring", ""]
)  # fmt: skip
FIN, SYN, RST, ACK = 1, 2, 4, 16
# Flags of either side from which the state follows again.
STATE_FLAGS = {
    "S0": (SYN, 0), "S1": (SYN, SYN), "SF": (SYN | FIN, SYN | FIN), "REJ": (SYN, RST), "S2": (SYN | FIN, SYN),
    "S3": (SYN, SYN | FIN), "RSTO": (SYN | RST, SYN), "RSTR": (SYN, SYN | RST), "RSTOS0": (SYN | RST, 0),
    "RSTRH": (0, SYN | RST), "SH": (SYN | FIN, 0), "SHR": (0, SYN | FIN), "OTH": (ACK, ACK),
}  # fmt: skip


def loggable(records: NDArray[Any]) -> NDArray[Any]:
    """Those of protocols that both have names for."""
    return records[np.isin(records["flow"]["proto"], list(PROTOCOLS))]


def zeek_rows(records: NDArray[Any]) -> list[dict[str, Any]]:
    """One dict a connection, without what is unset."""
    source, source_port, destination, port = connection_endpoints(records)
    family = records["flow"]["family"]
    ends = connection_addresses(source, family), connection_addresses(destination, family)
    found = []
    for i, record in enumerate(records):
        flow, orig, resp = record["flow"], record["orig"], record["resp"]
        icmp = flow["proto"] in (decode.ICMP, decode.ICMPV6)
        header = 8 if icmp else 0  # which Zeek does not count
        found.append({
            "ts": int(flow["first"]) / 1e9, "uid": f"C{i}",
            "id.orig_h": ends[0][i], "id.orig_p": int(flow["icmp_type"] if icmp else source_port[i]),
            "id.resp_h": ends[1][i], "id.resp_p": int(flow["icmp_code"] if icmp else port[i]),
            "proto": PROTOCOLS[int(flow["proto"])], "duration": int(flow["last"] - flow["first"]) / 1e9,
            "orig_bytes": int(orig["payload_bytes"]) - header * int(orig["packets"]),
            "resp_bytes": int(resp["payload_bytes"]) - header * int(resp["packets"]),
            "conn_state": "OTH" if icmp else tcp.FLAG_NAMES[conn_states(records[i : i + 1])[0]],
            "missed_bytes": int(orig["missed_bytes"] + resp["missed_bytes"]),
            "orig_pkts": int(orig["packets"]), "orig_ip_bytes": int(orig["ip_bytes"]),
            "resp_pkts": int(resp["packets"]), "resp_ip_bytes": int(resp["ip_bytes"]),
            "history": "ShADadFf", "tunnel_parents": [],
        })  # fmt: skip
    return found


def zeek_json(records: NDArray[Any]) -> list[str]:
    return [json.dumps(row) + "\n" for row in zeek_rows(records)]


def zeek_tsv(records: NDArray[Any], fields: tuple[str, ...] = ZEEK_FIELDS) -> list[str]:
    def text(value: Any) -> str:
        return (
            "-"
            if value is None
            else "(empty)"
            if value == []
            else f"{value:.6f}"
            if isinstance(value, float)
            else str(value)
        )

    return ["\t".join(text(row.get(name)) for name in fields) + "\n" for row in zeek_rows(records)]


def labelled_tsv(records: NDArray[Any], **columns: list[str]) -> str:
    """A Zeek log with more columns behind its own."""
    header = ZEEK_HEADER.replace("\t".join(ZEEK_FIELDS), "\t".join((*ZEEK_FIELDS, *columns)))
    lines = [line.rstrip("\n") for line in zeek_tsv(records)]
    more = zip(*columns.values(), strict=True)
    return header + "".join("\t".join((line, *values)) + "\n" for line, values in zip(lines, more, strict=True))


def eve_lines(records: NDArray[Any]) -> list[str]:
    """Flow events, each behind an event of another kind."""
    lines = []
    start, end = (iso_times(records["flow"][name]) for name in ("first", "last"))
    for i, row in enumerate(zeek_rows(records)):
        v6 = ":" in row["id.orig_h"]
        icmp = row["proto"] == "icmp"
        event: dict[str, Any] = {
            "timestamp": _suricata(end[i]), "flow_id": i, "in_iface": "eth0", "event_type": "flow",
            "src_ip": row["id.orig_h"], "dest_ip": row["id.resp_h"],
            "proto": "IPv6-ICMP" if icmp and v6 else row["proto"].upper(), "app_proto": "failed",
            "flow": {
                "pkts_toserver": row["orig_pkts"], "pkts_toclient": row["resp_pkts"],
                "bytes_toserver": row["orig_ip_bytes"] + 14 * row["orig_pkts"],
                "bytes_toclient": row["resp_ip_bytes"] + 14 * row["resp_pkts"],
                "start": _suricata(start[i]), "end": _suricata(end[i]), "age": 1, "state": "closed", "alerted": False,
            },
        }  # fmt: skip
        if icmp:
            event |= {"icmp_type": row["id.orig_p"], "icmp_code": row["id.resp_p"]}
        else:
            event |= {"src_port": row["id.orig_p"], "dest_port": row["id.resp_p"]}
        if row["proto"] == "tcp":
            orig, resp = STATE_FLAGS[row["conn_state"]]
            event["tcp"] = {"tcp_flags": "1b", "tcp_flags_ts": f"{orig:02x}", "tcp_flags_tc": f"{resp:02x}"}
        lines += ['{"event_type":"dns","flow":"something else"}\n', json.dumps(event) + "\n"]
    return lines


def _suricata(iso: str) -> str:
    """2026-01-02T03:04:05.678901+0200, as Suricata writes local time."""
    from datetime import datetime, timedelta, timezone

    moment = datetime.fromisoformat(iso[:26] + "+00:00")
    return moment.astimezone(timezone(timedelta(hours=2))).strftime("%Y-%m-%dT%H:%M:%S.%f%z")
