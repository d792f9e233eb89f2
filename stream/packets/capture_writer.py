"""Write packets as a capture: pcap or pcapng, nanoseconds or microseconds, little-endian.

>>> import tempfile
>>> from pathlib import Path
>>> from netclust.stream.packets.packet_blocks import INDEX
>>> index = np.zeros(1, INDEX)
>>> index["caplen"] = index["wirelen"] = 14
>>> index["link"] = 1
>>> with tempfile.TemporaryDirectory() as folder:
...     write_capture(Path(folder, "one.pcap"), [PacketBlock(np.zeros(14, np.uint8), index)])
...     Path(folder, "one.pcap").stat().st_size
1
54
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets.capture_copy import write_pcap_records, write_pcapng_records
from netclust.kernels.packets.capture_index import BYTE_ORDER, INTERFACE, MICRO, NANO, SECTION
from netclust.kernels.seam import read_only
from netclust.stream.packets.packet_blocks import MAX_PACKET_BYTES, PacketBlock

_BUFFER_BYTES = 1 << 20
_MAX_PCAP_SECONDS = 1 << 32


def write_capture(
    path: str | Path,
    blocks: Iterable[PacketBlock],
    *,
    format: Literal["pcap", "pcapng"] = "pcap",  # noqa: A002
    nano: bool = True,
    snaplen: int = MAX_PACKET_BYTES,
) -> int:
    """Write all blocks to a file: how many packets."""
    with CaptureWriter(path, format=format, nano=nano, snaplen=snaplen) as writer:
        for block in blocks:
            writer.write(block)
    return writer.packets


class CaptureWriter:
    """A capture that is written block by block. A pcap file has one link type, a pcapng file one interface for each.

    With `file` it is written there and left open; the path is then a name for messages.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        format: Literal["pcap", "pcapng"] = "pcap",  # noqa: A002
        nano: bool = True,
        snaplen: int = MAX_PACKET_BYTES,
        file: BinaryIO | None = None,
    ) -> None:
        if not 0 < snaplen <= MAX_PACKET_BYTES:
            raise InputError(f"{path}: a snap length of {snaplen}, it must be between 1 and {MAX_PACKET_BYTES}")
        self.path = path
        self.packets = 0
        self._pcapng = format == "pcapng"
        self._nano = nano
        self._snaplen = snaplen
        self._interfaces: dict[int, int] = {}  # of link types
        self._out = np.empty(_BUFFER_BYTES, np.uint8)
        self._given = file is not None
        try:
            self._file: BinaryIO = file or open(path, "wb")  # noqa: SIM115 (see close)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        if self._pcapng:
            self._file.write(struct.pack("<IIIHHqI", SECTION, 28, BYTE_ORDER, 1, 0, -1, 28))

    def write(self, block: PacketBlock) -> None:
        """Append packets; their bytes may be gone after it."""
        index = block.index
        if not len(index):
            return
        if not (index["time"].min() >= 0 and index["time"].max() < _MAX_PCAP_SECONDS * 1_000_000_000):
            raise InputError(f"{self.path}: a packet's time is before 1970 or after 2106, no capture can hold that")
        interface = self._declare(index["link"])
        unit = 1 if self._nano else 1000
        first, data = 0, read_only(block.data)
        while first < len(index):
            if self._pcapng:
                packets, size = write_pcapng_records(data, index, interface, first, unit, self._snaplen, self._out)
            else:
                packets, size = write_pcap_records(data, index, first, unit, self._snaplen, self._out)
            self._put(self._out[:size].data)
            first += packets
        self.packets += len(index)

    def flush(self) -> None:
        """Hand over to the system what was written, so that others can read it."""
        self._file.flush()

    def close(self) -> None:
        """End the file. One without packets is a sound capture too."""
        if self._file.closed:
            return
        if not self._pcapng and not self._interfaces:
            self._declare(np.ones(1, np.int32))
        if not self._given:
            self._file.close()

    def __enter__(self) -> CaptureWriter:
        """Itself: `with` closes it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _declare(self, links: NDArray[np.int32]) -> NDArray[np.int32]:
        """Write a header for link types that are new: the number of each packet's interface."""
        distinct, inverse = np.unique(links, return_inverse=True)
        for link in distinct.tolist():
            if link in self._interfaces:
                continue
            if self._pcapng:
                resolution = struct.pack("<HHB3xHH", 9, 1, 9 if self._nano else 6, 0, 0)
                size = 20 + len(resolution)
                head = struct.pack("<IIHHI", INTERFACE, size, link, 0, self._snaplen)
                self._put(head + resolution + struct.pack("<I", size))
            elif self._interfaces:
                known = next(iter(self._interfaces))
                raise InputError(f"{self.path}: link types {known} and {link} in one file: write pcapng, not pcap")
            else:
                magic = NANO if self._nano else MICRO
                self._put(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, self._snaplen, link))
            self._interfaces[link] = len(self._interfaces)
        numbers = np.array([self._interfaces[link] for link in distinct.tolist()], np.int32)
        return numbers[inverse]

    def _put(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}") from None
