"""The bytes of a capture, as they arrive, to blocks of packets: one fixed buffer and the kernels that walk it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from netclust.errors import InputError
from netclust.kernels.packets.capture_blocks import walk_pcapng
from netclust.kernels.packets.capture_index import (
    GLOBAL_HEADER_BYTES,
    I_LINK,
    INTERFACE_COLUMNS,
    INTERFACES,
    LAST_TIME,
    LINK,
    MAX_BLOCK_BYTES,
    MAX_INTERFACES,
    NEED_BYTES,
    POSITION,
    REASONS,
    STATE_SLOTS,
    begin_pcap,
    walk_pcap,
)
from netclust.records.capture_format import CaptureFormat, recognise_capture
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock

if TYPE_CHECKING:
    import hashlib

BUFFER_BYTES = 2 << 20
BLOCK_PACKETS = 16_384
SECTION_BYTES = 28  # of the smallest section header of pcapng
_READ = "pcap and pcapng captures are read, also packed by gz, xz, zst or zip"

if max(NEED_BYTES, MAX_BLOCK_BYTES) > BUFFER_BYTES:  # pragma: no cover (a full buffer must always allow a decision)
    raise AssertionError("the buffer is too small for the kernels")


class CaptureWalk:
    """Read bytes with `fill`, then take the `blocks` that are whole; the rest is carried over."""

    def __init__(self, name: str, counters: Counter[str], digest: hashlib._Hash | None = None) -> None:
        self.name = name
        self.counters = counters
        self.digest = digest
        self.format: CaptureFormat = ""
        self.links: set[int] = set()
        self.packets = 0
        self.bytes = 0
        self._buffer = np.empty(BUFFER_BYTES, np.uint8)
        self._view = self._buffer.data
        self._filled = 0
        self._index = np.empty(BLOCK_PACKETS, INDEX)
        self._state = np.zeros(STATE_SLOTS, np.int64)
        self._state[LAST_TIME] = -1
        self._counts = np.zeros(len(REASONS), np.int64)
        self._interfaces = np.zeros((0, INTERFACE_COLUMNS), np.int64)

    def fill(self, stream: Any, at_most: int | None = None) -> int:
        """Read once, what is there already: how many bytes. 0 is the end."""
        position = int(self._state[POSITION])
        if position:
            rest = self._filled - position
            self._buffer[:rest] = self._buffer[position : self._filled].copy()
            self._state[POSITION], self._filled = 0, rest
        stop = BUFFER_BYTES if at_most is None else min(BUFFER_BYTES, self._filled + at_most)
        count: int = stream.readinto1(self._view[self._filled : stop])
        if self.digest is not None:
            self.digest.update(self._view[self._filled : self._filled + count])
        self._filled += count
        self.bytes += count
        return count

    def blocks(self, final: bool = False) -> Iterator[PacketBlock]:
        """The packets that are whole; `final` when no more bytes will come."""
        if not self.format and not self._begin(final):
            return
        count = BLOCK_PACKETS
        while count == BLOCK_PACKETS:
            if self.format == "pcap":
                count = walk_pcap(self._buffer, self._filled, final, self._state, self._counts, self._index)
                self.links.add(int(self._state[LINK]))
            else:
                count = walk_pcapng(
                    self._buffer, self._filled, final, self._state, self._interfaces, self._counts, self._index
                )
                self.links.update(self._interfaces[: self._state[INTERFACES], I_LINK].tolist())
            for slot in self._counts.nonzero()[0]:
                self.counters[REASONS[slot]] += int(self._counts[slot])
            self._counts[:] = 0
            self.packets += count
            if count:
                yield PacketBlock(self._buffer[: self._filled], self._index[:count])

    def _begin(self, final: bool) -> bool:
        """Recognise the format; False if more bytes are needed for that."""
        first = self._buffer[: min(self._filled, SECTION_BYTES)].tobytes()
        if len(first) < 12 and not final:
            return False
        found = recognise_capture(first)
        if not found:
            raise InputError(self._what_is_wrong(first))
        if len(first) < (GLOBAL_HEADER_BYTES if found == "pcap" else SECTION_BYTES):
            if final:
                where = f"{self.name}: offset {len(first)}"
                raise InputError(f"{where}: the header of a {found} capture is cut short, copy the file again")
            return False
        if found == "pcap":
            begin_pcap(self._buffer, self._state)
        else:
            self._interfaces = np.zeros((MAX_INTERFACES, INTERFACE_COLUMNS), np.int64)
        self.format = found
        return True

    def _what_is_wrong(self, first: bytes) -> str:
        if not first:
            return f"{self.name}: offset 0: the file is empty; {_READ}"
        begins = first[:8].hex(" ")
        return f"{self.name}: offset 0: no capture, it begins with {begins}; {_READ}, others after `editcap -F pcapng`"
