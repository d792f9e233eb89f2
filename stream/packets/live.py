"""Packets from network interfaces: a memory-mapped AF_PACKET ring (TPACKET_V3) each, read without copying.

A block's data is the ring itself; it goes back to the Linux kernel when the next block is asked for. Blocks of several
interfaces come one after another, the one with the oldest first packet first: within a block packets are in order,
across interfaces nearly so, and a consumer takes the running maximum as the traffic time.

    with LiveCapture(["eth0"], bpf="not port 22") as capture:
        for block in capture:
            ...

CAP_NET_RAW is all that it needs. `open_live` chooses this where Linux is, scapy elsewhere.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.kernels.packets import ring as layout
from netclust.kernels.seam import read_only
from netclust.stream.packets import bpf as filters
from netclust.stream.packets.packet_blocks import (
    ETHERNET,
    HEARTBEAT,
    INDEX,
    LAG,
    MAX_PACKET_BYTES,
    RAW,
    RING_BYTES,
    InterfaceAwayError,
    PacketBlock,
    PacketSource,
)

NEW_GROUP = -1
"""A fanout group that the Linux kernel chooses an id for: 0 is an id like others."""


LOOK_SECONDS = 1.0
"""How often a patient capture looks whether a missing interface is there again."""

DRAIN = 300_000_000
"""Nanoseconds that a stopped capture waits for the block that the Linux kernel is filling: three times its timeout."""


COUNTERS = (
    "kernel_packets",
    "kernel_drops",
    "ring_freezes",
    "interface_down",
    "interface_removed",
    "outgoing_copies",
    "unreadable",
)

_RETIRE_MS = 100  # after this time a block is handed over though it is not full
_SMALLEST_BLOCK, _LARGEST_BLOCK, _FRAME_BYTES = 1 << 16, 1 << 20, 2048

# linux/if_packet.h, linux/if_ether.h, linux/sockios.h, linux/if_arp.h
_SOL_PACKET, _ALL_PROTOCOLS = 263, 0x0003
_ADD_MEMBERSHIP, _DROP_MEMBERSHIP, _RX_RING, _STATISTICS, _VERSION, _FANOUT, _IGNORE_OUTGOING = 1, 2, 5, 6, 10, 18, 23
_TPACKET_V3, _MR_PROMISC, _FANOUT_HASH, _FANOUT_UNIQUE_ID = 2, 1, 0, 0x2000
_OWNED_BY_KERNEL, _OWNED_BY_US = 0, 1
_SIOCGIFFLAGS, _SIOCGIFHWADDR, _IFF_UP = 0x8913, 0x8927, 1
_ARPHRD_ETHER, _ARPHRD_LOOPBACK, _ARPHRD_NONE = 1, 772, 65534
_LINKS = {_ARPHRD_ETHER: ETHERNET, _ARPHRD_LOOPBACK: ETHERNET, _ARPHRD_NONE: RAW}


class LivePacketSource(PacketSource, Protocol):
    """A packet source that goes on until it is stopped."""

    note: str  # what an operator should know about this way of capturing; empty for nothing

    def stop(self) -> None:
        """End the iteration; from any thread or a signal handler."""
        ...

    def close(self) -> None:
        """Give everything back, after the iteration has ended."""
        ...

    def __enter__(self) -> LivePacketSource:
        """The source itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...


class LiveCapture:
    """Packets of some interfaces until `stop`, or until the last interface is removed.

    `ring_bytes` is for each interface. `fanout` holds one group id for each interface: captures of the same group share
    its packets, both directions of a flow going to the same one; NEW_GROUP makes one, whose id is then in `.fanout`.
    An interface that goes down is waited for, one that is removed is given up; or waited for too, if `patient` (not in
    a fanout group): `trouble` says then what is missing, and no rights are needed to go on.

    Counters: kernel_packets (passed the filter, the dropped ones included), kernel_drops (no room in the ring),
    ring_freezes (how often the ring ran full), interface_down, interface_removed, outgoing_copies (on loopback, where
    every packet is shown twice), unreadable (announced by the ring but not in it).
    """

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        promiscuous: bool = False,
        bpf: str = "",
        ring_bytes: int = RING_BYTES,
        fanout: Sequence[int] | None = None,
        snaplen: int = MAX_PACKET_BYTES,
        patient: bool = False,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        names = [interfaces] if isinstance(interfaces, str) else list(dict.fromkeys(interfaces))
        if not names:
            raise InputError(f"no interface to capture from; there are: {_existing()}")
        if fanout is not None and len(fanout) != len(names):
            raise InputError(f"fanout: {len(fanout)} group ids for {len(names)} interfaces, needs one each")
        if not 0 < snaplen <= MAX_PACKET_BYTES:
            raise InputError(f"snaplen {snaplen}: must be 1 to {MAX_PACKET_BYTES} bytes")
        if fanout is not None and patient:
            raise InputError("a capture of a fanout group cannot wait for an interface that was removed")
        self.note = ""
        self.trouble = ""
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
        self._patient, self._heartbeat = patient, heartbeat
        self._looked = time.monotonic()  # for interfaces that are missing
        self._stopped = False
        self._rings: list[_Ring] = []
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            for k, name in enumerate(names):
                group = None if fanout is None else fanout[k]
                self._rings.append(_Ring(name, promiscuous, bpf, ring_bytes, group, snaplen))
        except BaseException:
            self.close()
            raise
        self._left = list(self._rings)  # those whose interface is still there
        self._gone: list[_Ring] = []
        self.fanout = None if fanout is None else [ring.group for ring in self._rings]

    def __iter__(self) -> Iterator[PacketBlock]:
        """The blocks; each is valid until the next one is asked for."""
        if self._wake < 0:
            return
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for ring in self._left:
            poll.register(ring.sock, select.POLLIN)
        try:
            stopped_at = -1
            while self._left or self._patient:
                for ring in self._left:
                    ring.give_back()  # here, not behind the yield: an iteration may have been left there
                clock = time.time_ns()
                ready = [(first, k) for k, ring in enumerate(self._left) if (first := ring.first_time()) >= 0]
                if self._stopped:
                    stopped_at = clock if stopped_at < 0 else stopped_at
                    waiting = bool(ready) and min(ready)[0] <= stopped_at
                    if not waiting:
                        if clock - stopped_at > DRAIN:
                            break
                        time.sleep(0.02)
                        continue
                if ready:
                    first, k = min(ready)
                    # Not past packets that wait in a ring, however far behind the consumer is.
                    yield self._left[k].take(min(clock - LAG, first), self.counters)
                else:
                    yield PacketBlock(np.empty(0, np.uint8), np.empty(0, INDEX), clock - LAG)
                    poll.poll(self._heartbeat * 1000)
                for ring in [ring for ring in self._left if ring.is_gone(self.counters)]:
                    poll.unregister(ring.sock)
                    self._left.remove(ring)
                    self._gone.append(ring)
                for ring in self._found_again():
                    poll.register(ring.sock, select.POLLIN)
                self._count()
        finally:
            self._count()

    def _found_again(self) -> list[_Ring]:
        """The removed interfaces that are there again; about every second, and `trouble` says what is missing."""
        if not self._patient or time.monotonic() < self._looked + LOOK_SECONDS:
            return []
        self._looked = time.monotonic()
        troubles, back = [], []
        for ring in self._rings:
            try:
                if ring in self._gone:
                    ring.rebind()
                    back.append(ring)
                else:
                    ring.check_up()
            except InputError as error:
                troubles.append(str(error))
        self.trouble = "; ".join(troubles)
        self._gone = [ring for ring in self._gone if ring not in back]
        self._left += back
        return back

    def stop(self) -> None:
        """End the iteration with what has come so far; from any thread or a signal handler."""
        self._stopped = True
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Leave the interfaces and unmap the rings, after the iteration has ended."""
        self._stopped = True
        self._count()
        while self._rings:
            self._rings.pop().close()
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def __enter__(self) -> LiveCapture:
        """The capture itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _count(self) -> None:
        for ring in self._rings:
            ring.count(self.counters)


class _Ring:
    """The socket of one interface and its mapped ring."""

    def __init__(
        self, name: str, promiscuous: bool, bpf: str, ring_bytes: int, group: int | None, snaplen: int
    ) -> None:
        self.sock = _packet_socket()
        self.name = name
        self.group = 0
        self._map: mmap.mmap | None = None
        self._promiscuous, self._member = promiscuous, b""
        self._down_since = 0.0  # when it last went down, on the monotonic clock
        self._next = 0  # block that the kernel fills, or has filled, next
        self._taken = False  # whether that block is with the consumer
        try:
            index, self._link, self._loopback = _describe(self.sock, name)
            program = filters.compile_bpf(bpf, name, snaplen)
            # Nothing comes in before the bind, and nothing before ring, group and filter are there: no packet is one
            # that the filter refuses or that another capture of the group has too.
            filters.attach_bpf(self.sock, filters.bpf_keep(0))
            self._make_ring(ring_bytes)
            if self._loopback:
                with contextlib.suppress(OSError):  # Linux before 4.20; the walk passes over them as well
                    self.sock.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
            self.sock.bind((name, _ALL_PROTOCOLS))
            if group is not None:
                self.group = _join(self.sock, name, group)
            self._see_all(index)
            self._attach(program, bpf)
        except BaseException:
            self.close()
            raise

    def _see_all(self, index: int) -> None:
        """Ask the interface for what is sent to others too, if that is wanted."""
        if self._promiscuous:
            self._member = struct.pack("@iHH8s", index, _MR_PROMISC, 0, b"")
            self.sock.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, self._member)

    def rebind(self) -> None:
        """Go on with a new interface of the same name, filter and ring as they are; InputError if it is not there."""
        index, self._link, self._loopback = _describe(self.sock, self.name)
        try:
            self.sock.bind((self.name, _ALL_PROTOCOLS))
            self._see_all(index)
        except OSError as err:
            raise InputError(f"{self.name}: cannot be captured from again ({err.strerror})") from err
        self._down_since = 0.0

    def check_up(self) -> None:
        """Raises InputError where the interface is still down."""
        if self._down_since:
            _describe(self.sock, self.name)
            self._down_since = 0.0

    def _make_ring(self, ring_bytes: int) -> None:
        """Ask for the ring and map it: blocks of an eighth of it, within what one packet and one reading need."""
        size = min(max(1 << max(ring_bytes // 8, 1).bit_length() - 1, _SMALLEST_BLOCK, mmap.PAGESIZE), _LARGEST_BLOCK)
        blocks = max(ring_bytes // size, 2)
        request = (size, blocks, _FRAME_BYTES, size // _FRAME_BYTES * blocks, _RETIRE_MS, 0, 0)
        try:
            self.sock.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
            self.sock.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("@7I", *request))
            self._map = mmap.mmap(self.sock.fileno(), size * blocks)
        except (OSError, OverflowError, struct.error) as err:
            raise InputError(f"{self.name}: no ring of {ring_bytes} bytes ({err}): choose a smaller one") from err
        self._block_bytes, self._blocks = size, blocks
        self._bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self._words: NDArray[np.uint32] = self._bytes.view(np.uint32)
        # Compiles the walk on an empty block, while no packet waits.
        layout.walk_block(read_only(self._bytes), 0, size, self._link, self._loopback, np.empty(0, INDEX))

    def _attach(self, program: filters.Program, bpf: str) -> None:
        try:
            filters.attach_bpf(self.sock, program)
        except OSError as err:
            raise InputError(f"the filter {bpf!r} is too long for the Linux kernel ({err}): shorten it") from err

    def first_time(self) -> int:
        """When the first packet of the next block was captured, -1 where the kernel still has the block."""
        start = self._next * self._block_bytes
        if not self._words[(start + layout.BLOCK_STATUS) // 4] & _OWNED_BY_US:
            return -1
        word = (start + int(self._words[(start + layout.FIRST_PACKET) // 4])) // 4
        seconds, nanoseconds = self._words[word + layout.SECONDS // 4], self._words[word + layout.NANOSECONDS // 4]
        return int(seconds) * 1_000_000_000 + int(nanoseconds)

    def take(self, now: int, counters: Counter[str]) -> PacketBlock:
        """The next block, which is there."""
        self._taken = True
        start = self._next * self._block_bytes
        room = min(int(self._words[(start + layout.PACKETS) // 4]), self._block_bytes // layout.HEADER_BYTES)
        index = np.empty(room, INDEX)
        filled, outgoing, unreadable = layout.walk_block(
            read_only(self._bytes), start, self._block_bytes, self._link, self._loopback, index
        )
        counters["outgoing_copies"] += outgoing
        counters["unreadable"] += unreadable
        return PacketBlock(self._bytes, index[:filled], now)

    def give_back(self) -> None:
        """Let the kernel fill the block again that was taken, if one was."""
        if self._taken:
            self._words[(self._next * self._block_bytes + layout.BLOCK_STATUS) // 4] = _OWNED_BY_KERNEL
            self._next = (self._next + 1) % self._blocks
            self._taken = False

    def is_gone(self, counters: Counter[str]) -> bool:
        """Whether the interface was removed and its last packet taken; notes when it goes down."""
        if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # ENETDOWN, told once
            self._down_since = time.monotonic()
            counters["interface_down"] += 1
        # The last packets may lie in a block that is not full: it is handed over all the same.
        waited = self._down_since and time.monotonic() > self._down_since + 3 * _RETIRE_MS / 1000
        if not waited or self.first_time() >= 0 or self.sock.getsockname()[0]:
            return False
        counters["interface_removed"] += 1
        return True

    def count(self, counters: Counter[str]) -> None:
        """Add what the kernel counted since the last time: reading starts its counters again."""
        packets, drops, freezes = struct.unpack("@3I", self.sock.getsockopt(_SOL_PACKET, _STATISTICS, 12))
        counters["kernel_packets"] += packets
        counters["kernel_drops"] += drops
        counters["ring_freezes"] += freezes

    def close(self) -> None:
        """Close and unmap; where a consumer still holds a block its memory stays, and nothing is written there."""
        if self._map is not None:
            # The socket lives on while its memory does.
            with contextlib.suppress(OSError):
                filters.attach_bpf(self.sock, filters.bpf_keep(0))
            with contextlib.suppress(OSError):
                if self._member:
                    self.sock.setsockopt(_SOL_PACKET, _DROP_MEMBERSHIP, self._member)
            del self._bytes, self._words
            with contextlib.suppress(BufferError):
                self._map.close()
            self._map = None
        self.sock.close()


def open_live(
    interfaces: Sequence[str],
    *,
    promiscuous: bool = False,
    bpf: str = "",
    ring_bytes: int = RING_BYTES,
    snaplen: int = MAX_PACKET_BYTES,
    patient: bool = False,
    heartbeat: float = HEARTBEAT,
) -> LivePacketSource:
    """A capture from interfaces: AF_PACKET on Linux, else scapy, whose `note` says what that costs.

    scapy's is not `patient`, and its heartbeat is fixed.
    """
    if _has_packet_sockets():
        return LiveCapture(
            interfaces, promiscuous=promiscuous, bpf=bpf, ring_bytes=ring_bytes, snaplen=snaplen, patient=patient,
            heartbeat=heartbeat,
        )  # fmt: skip
    from netclust.stream.packets.scapy_live import ScapyCapture

    return ScapyCapture(interfaces, promiscuous=promiscuous, bpf=bpf, queue_bytes=ring_bytes, snaplen=snaplen)


def load_live_kernels() -> None:
    """Compile what walks a ring, or load it from the cache."""
    layout.walk_block(read_only(np.zeros(64, np.uint8)), 0, 64, ETHERNET, False, np.empty(0, INDEX))


def _has_packet_sockets() -> bool:
    return sys.platform == "linux" and hasattr(socket, "AF_PACKET")


def _packet_socket() -> socket.socket:
    try:
        return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as err:
        python = os.path.realpath(sys.executable)
        raise InputError(
            "capturing needs the capability CAP_NET_RAW: run as a service with AmbientCapabilities=CAP_NET_RAW, "
            f"or `sudo setcap cap_net_raw+ep {python}` (every program run by it may then capture), or run as root"
        ) from err


def _describe(sock: socket.socket, name: str) -> tuple[int, int, bool]:
    """Index and link type of an interface, and whether it is a loopback, as the socket's namespace has it."""
    import fcntl  # not on Windows, where this module is loaded too

    try:
        index = socket.if_nametoindex(name)
        request = struct.pack("@16s24x", name.encode())
        (flags,) = struct.unpack_from("@H", fcntl.ioctl(sock, _SIOCGIFFLAGS, request), 16)
        (hardware,) = struct.unpack_from("@H", fcntl.ioctl(sock, _SIOCGIFHWADDR, request), 16)
    except (OSError, struct.error) as err:
        raise InterfaceAwayError(f"there is no interface {name!r}; there are: {_existing()}") from err
    if not flags & _IFF_UP:
        raise InterfaceAwayError(f"the interface {name} is down: `sudo ip link set {name} up`")
    if hardware not in _LINKS:
        raise InputError(
            f"{name}: packets of its kind (ARPHRD {hardware}) are not decoded, only Ethernet, loopback and IP tunnels; "
            "a wireless interface must not be in monitor mode"
        )
    return index, _LINKS[hardware], hardware == _ARPHRD_LOOPBACK


def _existing() -> str:
    return ", ".join(name for _, name in socket.if_nameindex())


def _join(sock: socket.socket, name: str, group: int) -> int:
    """Join a fanout group, or make one for NEW_GROUP; its id."""
    new = group == NEW_GROUP
    request = (_FANOUT_HASH | _FANOUT_UNIQUE_ID) << 16 if new else group | _FANOUT_HASH << 16
    try:
        sock.setsockopt(_SOL_PACKET, _FANOUT, struct.pack("@I", request))
    except (OSError, struct.error) as err:
        raise InputError(
            f"{name}: fanout group {group} cannot be joined ({err}): "
            "a group (0 to 65535) is for one interface and one kind of sharing, use another id"
        ) from err
    return sock.getsockopt(_SOL_PACKET, _FANOUT) & 0xFFFF
