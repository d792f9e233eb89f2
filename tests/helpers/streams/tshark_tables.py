"""What tshark says about a capture: fields of every packet, and its tables of conversations. One run for both."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from needed import need_program

FIELDS = (
    "frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.proto", "ipv6.nxt", "ip.len",
    "ipv6.plen", "ip.id", "ip.hdr_len", "ip.frag_offset", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport",
    "tcp.stream", "tcp.len", "udp.length", "tcp.seq_raw", "tcp.flags", "icmp.type", "icmp.code", "icmp.ident",
    "icmpv6.type", "icmpv6.code", "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission", "tcp.analysis.keep_alive",
    "tcp.analysis.lost_segment",
)  # fmt: skip
TABLES = ("tcp", "udp", "ip", "ipv6")
# What it would put together is left as it was sent.
WHOLE = ("ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE")
_TITLES = {"TCP": "tcp", "UDP": "udp", "IPv4": "ip", "IPv6": "ipv6"}
_SIZE = r"(\d+)\s+(\d+ (?:bytes|kB|MB))\s+"
_ROW = re.compile(rf"(\S+)\s+<->\s+(\S+)\s+{_SIZE}{_SIZE}{_SIZE}([\d.]+)\s+([\d.]+)")


@dataclass
class Row:
    """A conversation: frames and bytes as shown, from the left to the right end and back; seconds."""

    left: str
    right: str
    back: tuple[int, str]
    there: tuple[int, str]
    start: float
    duration: float


@dataclass
class Dissection:
    packets: list[dict[str, str]] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)


@cache
def dissect(path: Path) -> Dissection:
    command = [need_program("tshark"), "-n", "-r", str(path), "-E", "occurrence=f", "-T", "fields"]
    for name in FIELDS:
        command += ["-e", name]
    for table in TABLES:
        command += ["-z", f"conv,{table}"]
    for setting in WHOLE:
        command += ["-o", setting]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()
    found, table = Dissection(), ""
    for line in lines:
        title = line.split(" Conversations")[0]
        if line.endswith(" Conversations") and title in _TITLES:
            table = _TITLES[title]
            found.tables[table] = []
        elif row := _ROW.match(line):
            left, right, n_back, back, n_there, there, _, _, start, duration = row.groups()
            ends = (int(n_back), back), (int(n_there), there)
            found.tables[table].append(Row(left, right, *ends, float(start), float(duration)))
        elif line.count("\t") == len(FIELDS) - 1:
            found.packets.append(dict(zip(FIELDS, line.split("\t"), strict=True)))
    return found


def shown(size: int) -> str:
    """A number of bytes as those tables show it: whole units, cut off."""
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if size // unit >= 10:
            return f"{size // unit} {name}"
    return f"{size} bytes"
