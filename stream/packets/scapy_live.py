"""Packets from network interfaces through scapy, where there is no AF_PACKET: macOS, the BSDs, Windows.

Slow (scapy dissects every packet in Python: some thousands a second) but the same blocks as
`netclust.stream.packets.live`. VLAN tags stay in the frames. scapy is loaded when a capture is opened, and by this
module alone; it comes with `pip install netclust[live-portable]`.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from netclust.errors import InputError, MissingExtraError
from netclust.stream.packets.packet_blocks import (
    ETHERNET,
    HEARTBEAT,
    INDEX,
    LAG,
    LINUX_SLL,
    MAX_PACKET_BYTES,
    NO_VLAN,
    NULL,
    RAW,
    RING_BYTES,
    InterfaceAwayError,
    PacketBlock,
)

_LINKS = {"Ether": ETHERNET, "Dot3": ETHERNET, "IP": RAW, "IPv6": RAW, "Loopback": NULL, "CookedLinux": LINUX_SLL}
_BLOCK_PACKETS = 4096
_ALL_PROTOCOLS = 0x0003
_START_SECONDS = 10.0


class _Packet(NamedTuple):
    data: bytes
    time: int
    wirelen: int
    link: int


class ScapyCapture:
    """Packets of some interfaces until `stop`, or until the last interface is removed.

    Counters: queue_drops (the consumer was `queue_bytes` behind), unknown_link (of a link type that is not decoded).
    What the operating system drops is not told.
    """

    note = "captured with scapy: slow, and packets that the operating system drops are not counted"

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        promiscuous: bool = False,
        bpf: str = "",
        queue_bytes: int = RING_BYTES,
        snaplen: int = MAX_PACKET_BYTES,
    ) -> None:
        try:
            import scapy.layers.inet6  # noqa: F401 (registers Ethernet and IP, without which no packet has a type)
            from scapy.config import conf
            from scapy.sendrecv import AsyncSniffer
        except ImportError as err:
            raise MissingExtraError("capturing on this system", "scapy (under the GPL)", "live-portable") from err
        names = [interfaces] if isinstance(interfaces, str) else list(dict.fromkeys(interfaces))
        conf.ifaces.reload()
        known = [str(face.name) for face in conf.ifaces.values()]
        for name in names or [""]:
            if name not in known:
                raise InterfaceAwayError(f"there is no interface {name!r}; there are: {', '.join(known)}")
        self.counters: Counter[str] = Counter()
        self._queue: queue.SimpleQueue[_Packet | None] = queue.SimpleQueue()
        self._queue_bytes, self._snaplen = queue_bytes, snaplen
        self._put_bytes = self._got_bytes = 0  # each written by one thread only
        self._stopped = False
        self._sockets: dict[Any, str] = {}
        self._sniffer: Any = None
        try:
            for name in names:
                self._sockets[_socket(conf, name, promiscuous, bpf)] = name
            started = threading.Event()
            self._sniffer = AsyncSniffer(
                opened_socket=self._sockets, prn=self._put, store=False, started_callback=started.set
            )
            self._sniffer.start()
            if not started.wait(_START_SECONDS):
                raise InputError(f"scapy does not start to capture: {self._sniffer.exception}")
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[PacketBlock]:
        """The blocks; each is valid until the next one is asked for."""
        while not self._stopped:
            clock = time.time_ns()
            block = self._gather()
            first = int(block.index["time"].min()) if len(block) else clock
            yield PacketBlock(block.data, block.index, min(clock - LAG, first))
            if not len(block) and self._queue.empty() and not self._sniffer.thread.is_alive():
                return

    def _gather(self) -> PacketBlock:
        """What has arrived; waits for the first packet, but not for long."""
        packets: list[_Packet] = []
        try:
            packet = self._queue.get(timeout=HEARTBEAT)
            while packet is not None:
                packets.append(packet)
                self._got_bytes += len(packet.data)
                packet = self._queue.get_nowait() if len(packets) < _BLOCK_PACKETS else None
        except queue.Empty:
            pass
        index = np.zeros(len(packets), INDEX)
        index["caplen"] = [len(packet.data) for packet in packets]
        index["offset"] = np.cumsum(index["caplen"]) - index["caplen"]
        for field in ("time", "wirelen", "link"):
            index[field] = [getattr(packet, field) for packet in packets]
        index["vlan"] = NO_VLAN
        return PacketBlock(np.frombuffer(b"".join(packet.data for packet in packets), np.uint8), index)

    def _put(self, packet: Any) -> None:
        """Called by scapy's thread with every packet."""
        link = _LINKS.get(type(packet).__name__)
        data = bytes(packet.original)[: self._snaplen]
        if link is None:
            self.counters["unknown_link"] += 1
        elif self._put_bytes - self._got_bytes + len(data) > self._queue_bytes:
            self.counters["queue_drops"] += 1
        else:
            wirelen = max(int(packet.wirelen or 0), len(packet.original))
            self._put_bytes += len(data)
            self._queue.put(_Packet(data, int(packet.time * 1_000_000_000), wirelen, link))

    def stop(self) -> None:
        """End the iteration after the block at hand; from any thread or a signal handler."""
        self._stopped = True
        self._queue.put(None)

    def close(self) -> None:
        """Stop scapy's thread and leave the interfaces."""
        self.stop()
        if self._sniffer is not None and self._sniffer.running:
            self._sniffer.stop()
        self._sniffer = None
        while self._sockets:
            self._sockets.popitem()[0].close()

    def __enter__(self) -> ScapyCapture:
        """The capture itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _socket(conf: Any, name: str, promiscuous: bool, bpf: str) -> Any:
    """A socket of scapy's; on Linux's loopback the kind that does not show every packet twice."""
    from scapy.error import Scapy_Exception

    face = conf.ifaces.dev_from_name(name)
    kind = face.l2socket() if sys.platform == "linux" and name == "lo" else face.l2listen()
    try:
        return kind(type=_ALL_PROTOCOLS, iface=name, promisc=promiscuous, filter=bpf or None)
    except (OSError, Scapy_Exception) as err:
        raise InputError(
            f"{name}: scapy cannot capture there: {err} (it needs the right to capture, and libpcap for a filter)"
        ) from err
