"""Packets as they come from a file or a ring: bytes, and where each packet lies in them.

Sources give blocks; the decode kernel reads a block's bytes in place, and a block is valid until the next one is asked
for. Link types are those of the pcap format.

>>> block = PacketBlock(np.zeros(60, np.uint8), np.zeros(1, INDEX))
>>> len(block)
1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

ETHERNET, NULL, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2, PPPOE = 1, 0, 101, 108, 113, 228, 229, 276, 51
"""Link types that are decoded (https://www.tcpdump.org/linktypes.html); 12 and 14 also mean RAW."""

MAX_PACKET_BYTES = 1 << 18
"""No capture tool writes longer packets: a length above this is corrupt."""

NO_VLAN = -1

INDEX = np.dtype(
    [
        ("offset", np.int64),  # of the packet's first byte in the block's data
        ("time", np.int64),  # nanoseconds since the epoch
        ("caplen", np.int32),  # bytes captured: data[offset : offset + caplen] is there, whoever made the index checked
        ("wirelen", np.int32),  # bytes on the wire, caplen or more
        ("link", np.int32),  # link type
        ("vlan", np.int32),  # VLAN id that the kernel took off the frame, or NO_VLAN
    ],
    align=True,
)


RING_BYTES = 64 << 20
"""Of each live interface: a second of traffic at 500 Mbit/s."""
HEARTBEAT = 0.5
"""Seconds after which an empty block is given where nothing arrives."""
LAG = 1_000_000_000
"""Nanoseconds by which the traffic time stays behind the clock: the Linux kernel holds a packet back for less."""


class InterfaceAwayError(InputError):
    """An interface is not there, or down: it may come later."""


@dataclass(frozen=True, eq=False)
class PacketBlock:
    """Some packets, in the order in which they were captured."""

    data: NDArray[np.uint8]
    index: NDArray[Any]  # of dtype INDEX
    now: int = -1  # live: the traffic time has come at least this far (nanoseconds), even without packets

    def __len__(self) -> int:
        """How many packets."""
        return len(self.index)


class PacketSource(Protocol):
    """Where packets come from. After or during the iteration `counters` says what was passed over, by reason."""

    counters: Counter[str]

    def __iter__(self) -> Iterator[PacketBlock]:
        """The blocks; each is valid until the next one is asked for."""
        ...
