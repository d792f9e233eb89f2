"""The way from bytes to connections, in one call each, for the tests that compare it with other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from capture_bytes import Packet, packets
from numpy.typing import NDArray

from netclust.kernels.packets import decode
from netclust.kernels.packets.flow_layout import RECORD
from netclust.kernels.seam import read_only
from netclust.stream.packets.capture_files import CaptureFile
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import INDEX, NO_VLAN, PacketBlock

NEVER = FlowTimeouts(idle=0, active=0, attempt=1e9, close=1e9, step=1e9)
"""Nothing times out: one connection for all that two endpoints ever did."""


def names_of_captures(data_folder: Path) -> list[str]:
    """The shared captures, by the path that labels.csv gives."""
    with (data_folder / "pcap" / "labels.csv").open(newline="") as file:
        return [row["file"] for row in csv.DictReader(file)]


def block_of(
    frames: Sequence[bytes], links: Sequence[int], times: Sequence[int] | None = None, cut: Sequence[int] | None = None
) -> PacketBlock:
    """Frames as a block, without a byte between them or behind the last; `cut`: how many bytes the wire had more."""
    index = np.zeros(len(frames), INDEX)
    index["caplen"] = [len(frame) for frame in frames]
    index["offset"] = np.cumsum(index["caplen"]) - index["caplen"]
    index["wirelen"] = index["caplen"] + (0 if cut is None else np.asarray(cut))
    index["link"], index["vlan"] = links, NO_VLAN
    index["time"] = range(len(frames)) if times is None else times
    return PacketBlock(np.frombuffer(b"".join(frames) or b"\0", np.uint8), index)


def decoded(block: PacketBlock, tunnels: bool = False) -> NDArray[Any]:
    """Every packet of a block; what the kernel leaves as it was is all ones, so that nothing stale looks right."""
    packets = np.zeros(len(block), decode.PACKET)
    packets.view(np.uint8)[:] = 0xFF
    counts = np.zeros(decode.STATUSES, np.int64)
    decode.decode_packets(read_only(block.data), block.index, tunnels, packets, counts)
    assert counts.tolist() == np.bincount(packets["status"], minlength=decode.STATUSES).tolist()
    return packets


def followed(
    blocks: Iterable[PacketBlock], timeouts: FlowTimeouts = NEVER, *, max_flows: int = 131_072, tunnels: bool = False
) -> tuple[NDArray[Any], FlowTable]:
    """The records of a source, and the table that made them."""
    table = FlowTable(max_flows, timeouts, tunnels=tunnels)
    ended = [table.feed(block) for block in blocks]
    return np.concatenate([np.empty(0, RECORD), *ended, table.finish()]), table


def whole(path: Path) -> PacketBlock:
    """A capture as one block."""
    data, index, at = [], [], 0
    for block in CaptureFile(path):
        part = block.index.copy()
        part["offset"] += at
        data.append(block.data.copy())
        index.append(part)
        at += len(block.data)
    return PacketBlock(np.concatenate(data), np.concatenate(index))


def frames_of(path: Path) -> list[Packet]:
    """The packets of a capture, one by one."""
    return packets(CaptureFile(path))
