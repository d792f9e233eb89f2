"""Many captures as one, in order of time, in memory that does not grow with their length.

A source is opened when the merged stream comes to its first packet, where it can say when that is (`first_time`): a
folder of captures that follow each other costs no more than one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets.capture_copy import gather
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock, PacketSource

MERGED_PACKETS = 16_384
MERGED_BYTES = 4 << 20

_EARLIEST = np.iinfo(np.int64).min


def merge_captures(sources: Sequence[PacketSource]) -> PacketSource:
    """The packets of all sources, by time; those of one source stay in its order, ties go by the order of sources.

    Where a source steps back in time, its packets are due when the latest before them was. One source alone is
    given back as it is.
    """
    if not sources:
        raise InputError("no capture is named")
    return sources[0] if len(sources) == 1 else _Merged(sources)


class _Merged:
    def __init__(self, sources: Sequence[PacketSource]) -> None:
        live = [str(getattr(source, "path", source)) for source in sources if getattr(source, "follow", False)]
        if live:
            raise InputError(f"{live[0]}: a capture that is followed cannot be merged with others")
        self._sources = list(sources)
        self.counters: Counter[str] = Counter()

    def __iter__(self) -> Iterator[PacketBlock]:
        self.counters.clear()
        coming = [_Ahead(number, source, self.counters) for number, source in enumerate(self._sources)]
        coming.sort(key=lambda ahead: (ahead.due, ahead.number))
        running: list[_Ahead] = []
        data = np.empty(MERGED_BYTES, np.uint8)
        while coming or running:
            # Up to here nothing can come before what is at hand: the block that ends first says how far that is.
            first = min(running, key=lambda ahead: (ahead.last, ahead.number), default=None)
            if coming and (first is None or coming[0].due <= first.last):
                ahead = coming.pop(0)
                if ahead.advance():
                    running.append(ahead)
                    running.sort(key=lambda ahead: ahead.number)
                continue
            if first is None:
                break
            taken = [(ahead, ahead.take(first)) for ahead in running]
            taken = [(ahead, span) for ahead, span in taken if span[0] < span[1]]
            if len(taken) == 1:
                yield first.part(*taken[0][1])  # where it lies
            else:
                yield from _in_order(taken, data)
            if not first.advance():
                running.remove(first)


class _Ahead:
    """A source, its present block, and how far into that we are."""

    def __init__(self, number: int, source: PacketSource, counters: Counter[str]) -> None:
        self.number = number
        say = getattr(source, "first_time", None)
        first = say() if say else None
        self.due: int = _EARLIEST if first is None else first
        self.last: int = _EARLIEST
        self._source = source
        self._counters = counters
        self._blocks: Iterator[PacketBlock] | None = None
        self._at = 0

    def advance(self) -> bool:
        """Go to the next block that is not empty; False at the end."""
        if self._blocks is None:
            self._blocks = iter(self._source)
        before = self._source.counters.copy()
        block = next((block for block in self._blocks if len(block)), None)
        self._counters.update(self._source.counters - before)
        if block is None:
            return False
        self.block = block
        self.key: NDArray[np.int64] = np.maximum(np.maximum.accumulate(block.index["time"]), self.last)
        self.last = int(self.key[-1])
        self._at = 0
        return True

    def take(self, first: _Ahead) -> tuple[int, int]:
        """The part that is due when `first` ends; of those at that very time, sources before it only."""
        side: Any = "right" if self.number <= first.number else "left"
        begin, self._at = self._at, int(np.searchsorted(self.key, first.last, side))
        return begin, self._at

    def part(self, begin: int, end: int) -> PacketBlock:
        """Those packets, where they lie."""
        return PacketBlock(self.block.data, self.block.index[begin:end])


def _in_order(taken: list[tuple[_Ahead, tuple[int, int]]], data: NDArray[np.uint8]) -> Iterator[PacketBlock]:
    """The packets of those spans by time, copied into `data`, a block after the other."""
    keys = np.concatenate([ahead.key[begin:end] for ahead, (begin, end) in taken])
    index = np.concatenate([ahead.block.index[begin:end] for ahead, (begin, end) in taken])
    origin = np.repeat(np.arange(len(taken)), [end - begin for _, (begin, end) in taken])
    order = np.argsort(keys, kind="stable")
    index, origin = index[order], origin[order]
    ends = np.cumsum(index["caplen"], dtype=np.int64)
    begin, used = 0, 0
    while begin < len(index):
        end = min(begin + MERGED_PACKETS, int(np.searchsorted(ends, used + len(data), "right")))
        block = np.empty(end - begin, INDEX)
        block[:] = index[begin:end]
        starts = ends[begin:end] - block["caplen"] - used
        for number, (ahead, _) in enumerate(taken):
            gather(ahead.block.data, index[begin:end], origin[begin:end], number, starts, data)
        block["offset"] = starts
        yield PacketBlock(data, block)
        begin, used = end, int(ends[end - 1])
