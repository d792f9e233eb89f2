"""Memory while a capture of ten million packets is read, and under a flood of a million spoofed connections.

Each in a process of its own, which reports its resident memory as it goes: flat means that it does not grow from the
first tenth of the packets to the last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from common import save
from made_packets import make_capture

from netclust.records.schema import load_schema
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.capture_reader import capture_tables, flow_records
from netclust.stream.packets.capture_writer import CaptureWriter
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.packets.packet_blocks import ETHERNET, INDEX, NO_VLAN, PacketBlock

PACKETS, FLOOD = 10_000_000, 1_000_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        once, long, flood = (Path(folder, name) for name in ("once.pcap", "long.pcap", "flood.pcap"))
        make_capture(once, PACKETS // 20, 2500)
        repeat(once, long, 20)
        once.unlink()
        write_flood(flood)
        body = {"ten_million_packets": _watched(long, 131_072), "flood_of_a_million": _watched(flood, 65_536)}
    save("capture_memory", {"target": "flat on a 10-million-packet file and under a flood of 1 million flows", **body})


def repeat(once: Path, out: Path, times: int) -> None:
    """The same packets again and again, snapped to headers, an hour later each time."""
    with CaptureWriter(out, nano=False, snaplen=96) as writer:
        for k in range(times):
            for block in CaptureFile(once, offset_ns=k * 3600 * 10**9):
                writer.write(block)


def write_flood(path: Path) -> None:
    """SYNs of as many sources as there are packets, at 100,000 a second."""
    frame = np.frombuffer(
        bytes(12) + b"\x08\0" + bytes([69, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 0, 0, 0, 0, 10, 9, 9, 9])
        + bytes([4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 80, 2, 4, 0, 0, 0, 0, 0]), np.uint8,
    )  # fmt: skip
    with CaptureWriter(path) as writer:
        for begin in range(0, FLOOD, 10_000):
            numbers = np.arange(begin, begin + 10_000, dtype=">u4")
            frames = np.tile(frame, (len(numbers), 1))
            frames[:, 26:30] = (numbers + 0x14000000).astype(">u4").view(np.uint8).reshape(-1, 4)
            index = np.zeros(len(numbers), INDEX)
            index["offset"] = np.arange(len(numbers)) * len(frame)
            index["time"] = 1_700_000_000 * 10**9 + numbers.astype(np.int64) * 10_000
            index["caplen"] = index["wirelen"] = len(frame)
            index["link"], index["vlan"] = ETHERNET, NO_VLAN
            writer.write(PacketBlock(frames.reshape(-1), index))


def _watched(path: Path, max_flows: int) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, __file__, str(path), str(max_flows)], capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


def watch(path: Path, max_flows: int) -> None:
    """What the child does: follow the capture and report."""
    table = FlowTable(max_flows)
    resident: list[float] = []
    state = {"packets": 0, "records": 0}
    total = PACKETS if path.name == "long.pcap" else FLOOD

    def blocks() -> Any:
        for block in CaptureFile(path):
            state["packets"] += len(block)
            yield block
            if state["packets"] * 10 >= (len(resident) + 1) * total:
                resident.append(_resident_megabytes())

    for rows, _ in capture_tables(flow_records(blocks(), table), load_schema("kdd").name, context=False):
        state["records"] += len(rows)
    print(
        json.dumps(
            state
            | {"max_flows": max_flows, "evicted": table.counters["flows_evicted"]}
            | {"resident_megabytes_by_tenths": resident, "growth_after_the_first_tenth": resident[-1] - resident[0]}
        )
    )


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watch(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
