"""What fuzz_captures.py does in each of its processes: spoil, follow, check."""

from __future__ import annotations

import io
import random
import traceback
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from capture_bytes import Packet, pcap
from capture_spoiling import Sample, load_samples, spoiled_capture
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import decode
from netclust.kernels.packets import flow_layout as layout
from netclust.kernels.seam import read_only
from netclust.records.traffic_counts import SlidingCounts, TrafficCounts
from netclust.stream.packets.capture_walk import CaptureWalk
from netclust.stream.packets.connections import connection_maker
from netclust.stream.packets.flow_table import FlowTable, FlowTimeouts
from netclust.stream.packets.packet_blocks import PacketBlock

TIMEOUTS = (
    FlowTimeouts(),
    FlowTimeouts(attempt=0.01, idle=0.05, active=0.02, close=0.001, step=0.5),
    FlowTimeouts(idle=0, active=0, attempt=1e9, close=1e9, step=1e9),
    FlowTimeouts(attempt=0, idle=1, active=0, close=0, step=0),
    FlowTimeouts(idle=0, active=1, attempt=1, close=10, step=3600),
)
SIZES = (16, 16, 64, 1024)
WINDOW = 48
KEPT = 100  # inputs that one table and one stream of records live for
COUNTED = [name for name in decode.STATUS_NAMES if name]


def fuzz(inputs: int, seed: int, data: Path) -> Counter[str]:
    """Try so many; raises on the first that breaks a promise, and says how to repeat it."""
    samples = load_samples(data)
    done: Counter[str] = Counter()
    for number in range(inputs):
        if number % KEPT == 0:
            path = _Path(random.Random(f"{seed}.{number}"))
        try:
            _one(samples, random.Random(f"{seed}:{number}"), path, done)
        except Exception:
            raise SystemExit(f"seed {seed}, input {number} of {inputs}:\n{traceback.format_exc()}") from None
    return done


def crowd(count: int = 4000) -> int:
    """More records from one block than the kernel's output holds: how many.

    So many connections fall due with the first packet, and each of the following packets ends a part of another one.
    """
    table = FlowTable(4 * count, FlowTimeouts(idle=100, active=20, step=1000))
    sent = [(0, host) for host in range(count)] + [(90, count + host) for host in range(count)]
    sent += [(120, count + host) for host in range(count)]
    records, counters = _follow(table, [_datagrams(sent)], [])
    assert len(records) == 3 * count
    assert int((records["orig"]["packets"] + records["resp"]["packets"]).sum()) == counters["decoded"] == 3 * count
    return len(records)


def _datagrams(sent: list[tuple[int, int]]) -> PacketBlock:
    frames = [
        Packet(second * 10**9, 46, 1, bytes(12) + b"\x08\0" + bytes.fromhex("4500002000000000401100000a000001")
               + (0x0B000000 + host).to_bytes(4, "big") + bytes.fromhex("13881389000c0000") + b"data")
        for second, host in sent
    ]  # fmt: skip
    (block,) = _read(pcap(frames), None)
    return block


class _Path:
    """A table that has been used, how to make a new one like it, and streams of records."""

    def __init__(self, chance: random.Random) -> None:
        self.arguments = {
            "max_flows": chance.choice(SIZES),
            "timeouts": chance.choice(TIMEOUTS),
            "tunnels": chance.random() < 0.5,
            "content": chance.random() < 0.9,
        }
        self.seed = chance.randrange(2**56)
        self.used = self.new()
        context = chance.random() < 0.25  # addresses and times written out take half of the time
        self.streams = [connection_maker("kdd", context=context), connection_maker("flow", context=context)]
        # Small windows: they run full, and are quickly emptied when the time goes back.
        self.streams[0]._traffic = TrafficCounts(WINDOW)
        relations = self.streams[1]._relations
        parents = {k: (int(a), int(b)) for k, (a, b) in enumerate(relations._fan_out._parent) if a >= 0}
        relations._fan_out = SlidingCounts(6, relations._fan_out.span, WINDOW, parents)

    def new(self) -> FlowTable:
        table = FlowTable(**self.arguments)
        # Which datagrams' fragments share a place is drawn by lot: here, all tables draw the same.
        table._conf[layout.SEED] = self.seed
        return table

    def again(self) -> FlowTable:
        """The used table at the beginning of another capture: no time, no fragments, but what lay in its slots."""
        self.used._state[layout.NOW] = -1
        self.used._table[9][:] = np.zeros((), layout.FRAGMENT)
        return self.used


def _one(samples: list[Sample], chance: random.Random, path: _Path, done: Counter[str]) -> None:
    content, kinds = spoiled_capture(samples, chance)
    done.update(inputs=1, bytes=len(content), **{f"spoiled by {kind}": 1 for kind in kinds})
    try:
        blocks = _read(content, chance)
    except InputError:
        done["refused"] += 1
        return
    done["packets"] += sum(len(block) for block in blocks)
    records, counters = _follow(path.again(), blocks, [])
    _check_table(records, counters, blocks, path)
    cut = [chance.randrange(1, 12) for _ in range(8)]
    other, _ = _follow(path.new(), blocks, cut)
    differing = _differing(records, other)
    assert not differing, f"records depend on the blocks or on what lay in the table before: {differing}"
    for stream in path.streams:
        _check_records(stream, records)
    done.update(records=len(records), **{name: counters[name] for name in counters if counters[name]})


def _read(content: bytes, chance: random.Random | None) -> list[PacketBlock]:
    walk = CaptureWalk("fuzz", Counter())
    stream, blocks = io.BytesIO(content), []
    whole = chance is not None and chance.random() < 0.5
    while walk.fill(stream, None if chance is None or whole else chance.randrange(1, 3000)):
        blocks += [PacketBlock(block.data.copy(), block.index.copy()) for block in walk.blocks()]
    return blocks + [PacketBlock(block.data.copy(), block.index.copy()) for block in walk.blocks(final=True)]


def _follow(table: FlowTable, blocks: list[PacketBlock], cut: list[int]) -> tuple[NDArray[Any], Counter[str]]:
    before = table.counters
    ended = []
    for block in blocks:
        places = [0, *(int(x) for x in np.cumsum(cut)), len(block)]
        for begin, end in pairwise(min(place, len(block)) for place in places):
            if end > begin:
                ended.append(table.feed(PacketBlock(block.data, block.index[begin:end])))
    ended.append(table.finish())
    assert table.open_flows == 0
    counters = table.counters
    counters.subtract(before)
    # Joined as bytes: numpy takes a millisecond for a record of so many fields.
    return np.frombuffer(b"".join(part.tobytes() for part in ended), layout.RECORD), counters


def _differing(records: NDArray[Any], other: NDArray[Any]) -> list[str]:
    """Fields that are not the same, without what is drawn by lot, and with identities counted from the first."""
    if len(records) != len(other):
        return [f"{len(records)} and {len(other)} records"]
    found = [name for name in ("time", "name") if (records[name] != other[name]).any()]
    for part in ("flow", "orig", "resp"):
        for name in records.dtype[part].names:
            ours, theirs = records[part][name], other[part][name]
            if name == "id" and len(ours):
                ours, theirs = ours - ours.min(), theirs - theirs.min()
            if name != "hash" and (ours != theirs).any():
                found.append(f"{part}.{name}: {ours[ours != theirs][:3]} and {theirs[ours != theirs][:3]}")
    return found


def _check_table(records: NDArray[Any], counters: Counter[str], blocks: list[PacketBlock], path: _Path) -> None:
    """Every packet is in one record or counted as why not, and records come in the order of time."""
    flow, orig, resp = records["flow"], records["orig"], records["resp"]
    packets = frame_bytes = 0
    statuses = np.zeros(decode.STATUSES, np.int64)
    for block in blocks:
        out = np.zeros(len(block), decode.PACKET)
        decode.decode_packets(read_only(block.data), block.index, path.arguments["tunnels"], out, statuses)
        good = out["status"] < decode.FIRST_BAD
        packets += int(good.sum())
        frame_bytes += int(block.index["wirelen"][good].sum())
        here = out[good & (out["payload_here"] > 0)]
        assert (here["payload"] + here["payload_here"] <= len(block.data)).all(), "a payload beyond the block"
    assert sum(counters[name] for name in COUNTED) == sum(len(block) for block in blocks)
    assert (
        int((orig["packets"] + resp["packets"]).sum())
        == packets
        == counters["decoded"] + counters["length_beyond_frame"]
    )
    assert int((orig["frame_bytes"] + resp["frame_bytes"]).sum()) == frame_bytes
    assert (orig["packets"] + resp["packets"] > 0).all() or path.arguments["timeouts"].active
    backwards = int((np.diff(records["time"]) < 0).sum())
    assert backwards <= counters["clock_set_back"], "records out of order"
    assert (records["time"] >= 0).all()
    assert (records["time"] == flow["time"]).all()
    assert (flow["first"] <= flow["last"]).all()
    assert (flow["gap_max"] >= 0).all()
    for side in (orig, resp):
        for name in ("packets", "frame_bytes", "ip_bytes", "payload_bytes", "retransmitted_bytes", "missed_bytes"):
            assert (side[name] >= 0).all(), name
        assert (side["gaps"] <= layout.GAPS).all()
        assert (side["line"] <= layout.LINE_BYTES).all()
    if not path.arguments["content"]:
        assert not flow["name_bytes"].any()
    assert (flow["name_bytes"] >= np.char.str_len(records["name"])).all(), "a name that nobody sent"


def _check_records(stream: Any, records: NDArray[Any]) -> None:
    """Numbers are finite and within what the schema says, and symbols are named."""
    table = stream.table(records)
    assert np.isfinite(table.num).all()
    for column, attribute in zip(table.num.T, stream.schema.numeric, strict=True):
        low, high = attribute.min, attribute.max
        assert low is None or (column >= low).all(), (attribute.name, column.min())
        assert high is None or (column <= high).all(), (attribute.name, column.max())
    for column, names in zip(table.sym.T, table.symbols, strict=True):
        assert ((column >= 0) & (column < len(names))).all()
