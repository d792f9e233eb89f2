"""The ring walker against a plain twin, on blocks made by hand, sound and damaged."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.kernels.packets.ring import walk_block
from netclust.kernels.seam import read_only
from netclust.stream.packets.packet_blocks import ETHERNET, INDEX

FUZZ = settings(max_examples=2000 if os.environ.get("NETCLUST_LONG") else 200, deadline=None)
BLOCK = 4096
GARBAGE = st.one_of(st.sampled_from([0, 1, 4, 47, 48, 4095, 4096, 2**31, 2**32 - 1]), st.integers(0, 2**32 - 1))

packets = st.fixed_dictionaries(
    {
        "data": st.binary(max_size=120),
        "more": st.integers(0, 1500),  # bytes on the wire that were not captured
        "seconds": st.integers(0, 2**32 - 1),
        "nanoseconds": st.integers(0, 999_999_999),
        "tci": st.one_of(st.none(), st.integers(0, 0xFFFF)),
        "kind": st.integers(0, 4),
        "pad": st.integers(0, 3),
    }
)


def make_block(found: list[dict[str, Any]], first: int = 48) -> bytearray:
    """A block as the Linux kernel writes it: headers on multiples of 8, frames 2 bytes off so that IP is aligned."""
    block = bytearray(BLOCK)
    struct.pack_into("=6I", block, 0, 1, 0, 1, len(found), first, 0)
    at = first
    for k, packet in enumerate(found):
        frame = 48 + 20 + 14 + packet["pad"] * 8
        size = (frame + len(packet["data"]) + 7) // 8 * 8
        status = 1 | (1 << 4 if packet["tci"] is not None else 0)
        struct.pack_into(
            "=6I2H2I", block, at,
            size if k + 1 < len(found) else 0, packet["seconds"], packet["nanoseconds"], len(packet["data"]),
            len(packet["data"]) + packet["more"], status, frame, frame + 14, 0, packet["tci"] or 0,
        )  # fmt: skip
        block[at + 58] = packet["kind"]
        block[at + frame : at + frame + len(packet["data"])] = packet["data"]
        at += size
    return block


def twin(
    ring: bytes, start: int, size: int, link: int, drop: bool, room: int
) -> tuple[list[tuple[int, ...]], int, int]:
    """The walk in plain Python."""
    block = ring[start : start + size]
    announced, at = struct.unpack_from("=2I", block, 12)
    rows: list[tuple[int, ...]] = []
    outgoing = 0
    for seen in range(announced):
        if at < 48 or at % 4 or at + 68 > len(block) or len(rows) == room:
            return rows, outgoing, announced - seen
        step, sec, nsec, captured, length, status, frame = struct.unpack_from("=6IH", block, at)
        (tci,) = struct.unpack_from("=I", block, at + 32)
        if at + frame + captured > len(block):
            return rows, outgoing, announced - seen
        if drop and block[at + 58] == 4:
            outgoing += 1
        else:
            vlan = tci & 0xFFF if status & 16 else -1
            offset, stamp = start + at + frame, sec * 10**9 + nsec
            wire = max(captured, length)
            rows.append((offset, stamp, captured, (wire + 2**31) % 2**32 - 2**31, link, vlan))
        if step == 0 and seen + 1 < announced:
            return rows, outgoing, announced - seen - 1
        at += step
    return rows, outgoing, 0


def walked(ring: bytes, start: int, drop: bool, room: int) -> tuple[list[tuple[int, ...]], int, int]:
    out = np.zeros(room, INDEX)
    filled, outgoing, unreadable = walk_block(np.frombuffer(ring, np.uint8), start, BLOCK, ETHERNET, drop, out)
    return [tuple(row) for row in out[:filled].tolist()], outgoing, unreadable


@FUZZ
@given(st.lists(packets, max_size=12), st.integers(0, 2), st.booleans())
def test_no_packet_is_lost_or_misread(found: list[dict[str, Any]], place: int, drop: bool) -> None:
    ring = bytearray(b"\xaa" * (3 * BLOCK))
    ring[place * BLOCK : (place + 1) * BLOCK] = make_block(found)
    rows, outgoing, unreadable = walked(ring, place * BLOCK, drop, len(found))
    assert (rows, outgoing, unreadable) == twin(ring, place * BLOCK, BLOCK, ETHERNET, drop, len(found))
    kept = [packet for packet in found if not (drop and packet["kind"] == 4)]
    assert [ring[row[0] : row[0] + row[2]] for row in rows] == [packet["data"] for packet in kept]
    assert [row[5] for row in rows] == [-1 if p["tci"] is None else p["tci"] & 0xFFF for p in kept]
    assert (outgoing, unreadable) == (len(found) - len(kept), 0)


@FUZZ
@given(
    st.lists(packets, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(2, 40), GARBAGE), min_size=1, max_size=6),
    st.integers(0, 15),
)
def test_a_damaged_block_is_not_read_beyond_its_end(
    found: list[dict[str, Any]], damage: list[tuple[int, int]], room: int
) -> None:
    block = make_block(found)
    for word, value in damage:
        struct.pack_into("=I", block, 4 * word, value)
    struct.pack_into("=I", block, 12, min(struct.unpack_from("=I", block, 12)[0], 100_000))  # the twin is slow
    ring = bytes(block) + b"\xaa" * BLOCK
    rows, outgoing, unreadable = walked(ring, 0, False, room)
    assert (rows, outgoing, unreadable) == twin(ring, 0, BLOCK, ETHERNET, False, room)
    assert all(row[0] >= 0 and row[0] + row[2] <= BLOCK for row in rows)


def test_a_block_outside_the_ring_is_not_walked() -> None:
    ring = np.zeros(BLOCK, np.uint8)
    for start in (-8, 2, BLOCK, 2 * BLOCK, BLOCK - 8):
        assert walk_block(read_only(ring), start, BLOCK, ETHERNET, False, np.zeros(4, INDEX)) == (0, 0, 0)
