"""The placement of partitions: partition p of the input, its shard and its outputs all on worker p mod N.

Bytewax hands out parts of sources and sinks in turn, and keys by the hash of their text (SipHash-1-3 of Rust, modulo
the number of workers): four keys can all come to lie on one of two workers. So the key of a partition is chosen by its
hash: shards are spread evenly, and no message crosses a process boundary. If Bytewax changes its hash, results stay the
same and only the spreading gets worse.

>>> [sip_hash(key) % 4 for key in partition_keys(6)]
[0, 1, 2, 3, 0, 1]
"""

from __future__ import annotations

from functools import cache

__all__ = ["part_name", "partition_keys", "sip_hash"]

WORKERS = 240
"""Partitions are spread evenly over any number of workers that divides this."""
_MASK = (1 << 64) - 1


def part_name(partition: int) -> str:
    """Return the name of a part of a source or a sink; names sort as partitions do."""
    return f"{partition:05d}"


@cache
def partition_keys(partitions: int) -> tuple[str, ...]:
    """Return a key for every partition."""
    keys = []
    for partition in range(partitions):
        salt = 0
        while sip_hash(f"{partition}.{salt}") % WORKERS != partition % WORKERS:
            salt += 1
        keys.append(f"{partition}.{salt}")
    return tuple(keys)


def sip_hash(text: str) -> int:
    """SipHash-1-3 with key 0 of a text as Rust hashes it: its bytes, and 0xff."""
    data = text.encode() + b"\xff"
    size = len(data)
    data += bytes(7 - size % 8) + bytes([size & 255])
    state = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        state = _round(state[0], state[1], state[2], state[3] ^ word)
        state = (state[0] ^ word, *state[1:])
    state = (state[0], state[1], state[2] ^ 0xFF, state[3])
    for _ in range(3):
        state = _round(*state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    a = (a + b) & _MASK
    b = _rotated(b, 13) ^ a
    a = _rotated(a, 32)
    c = (c + d) & _MASK
    d = _rotated(d, 16) ^ c
    a = (a + d) & _MASK
    d = _rotated(d, 21) ^ a
    c = (c + b) & _MASK
    b = _rotated(b, 17) ^ c
    return a, b, _rotated(c, 32), d


def _rotated(x: int, by: int) -> int:
    return ((x << by) | (x >> (64 - by))) & _MASK
