"""Live capture between two namespaces of the test's own: what is captured, counted, refused, and how it ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from namespaces import Link, inside, ip, joined_or_skip
from needed import need_file, need_filters, need_module, need_program, need_root

from netclust.errors import InputError
from netclust.stream.packets import bpf, live
from netclust.stream.packets.fanout import FanoutFlows
from netclust.stream.packets.live import LiveCapture, LivePacketSource, open_live
from netclust.stream.packets.packet_blocks import ETHERNET, NO_VLAN, RAW, PacketBlock
from netclust.stream.packets.scapy_live import ScapyCapture

pytestmark = pytest.mark.system

link = pytest.fixture(joined_or_skip)

GIVE_UP_SECONDS = 15  # only a test that fails waits so long


class Frame(NamedTuple):
    data: bytes
    vlan: int = NO_VLAN
    wirelen: int = -1
    link: int = -1


def frames_of(block: PacketBlock) -> list[Frame]:
    found = []
    for packet in block.index:
        start, size = int(packet["offset"]), int(packet["caplen"])
        data = block.data[start : start + size].tobytes()
        found.append(Frame(data, int(packet["vlan"]), int(packet["wirelen"]), int(packet["link"])))
    return found


def captured(capture: LivePacketSource, enough: Callable[[list[Frame]], bool]) -> list[Frame]:
    """What comes until it is enough, or until it is clear that it never will be."""
    frames: list[Frame] = []
    deadline = time.monotonic() + GIVE_UP_SECONDS
    for block in capture:
        frames += frames_of(block)
        if enough(frames) or time.monotonic() > deadline:
            break
    return frames


def until_end(capture: LivePacketSource, end: bytes = b"END") -> list[Frame]:
    return captured(capture, lambda frames: any(frame.data.endswith(end) for frame in frames))


def opened(link: Link, *names: str, **options: Any) -> LiveCapture:
    if options.get("bpf"):
        need_filters()
    return inside(link.b, lambda: LiveCapture(names or ("vb",), **options))


def packets_of(path: Path) -> list[bytes]:
    """The packets of a pcap file as tcpdump writes it here; a packet that is half written is left out."""
    blob, at, found = path.read_bytes(), 24, []
    while at + 16 <= len(blob):
        (size,) = struct.unpack_from("=I", blob, at + 8)
        found.append(blob[at + 16 : at + 16 + size])
        at += 16 + size
    return found if at == len(blob) else found[:-1]


def tagged(link: Link, *tags: int) -> None:
    """Send one frame with VLAN tags, by hand: a VLAN interface is not in every Linux kernel."""
    mac = bytes.fromhex(ip("-n", link.b, "-br", "link", "show", "vb").split()[2].replace(":", ""))
    header = mac + bytes(6) + b"".join(struct.pack("!HH", 0x8100, tag) for tag in tags) + b"\x08\x00"
    with inside(link.a, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)) as sock:
        inside(link.a, lambda: sock.bind(("va", 0)))
        sock.send(header + b"\x45" + bytes(50) + b"TAGGED")


def talk(link: Link, rounds: int) -> None:
    """UDP and TCP in both directions."""
    server = inside(link.b, lambda: socket.create_server(("10.77.0.2", 8000)))
    client = inside(link.a, lambda: socket.create_connection(("10.77.0.2", 8000), timeout=GIVE_UP_SECONDS))
    peer, _ = server.accept()
    for number in range(rounds):
        client.sendall(bytes([number]) * 700)
        peer.recv(700, socket.MSG_WAITALL)
        peer.sendall(b"ok")
        client.recv(2, socket.MSG_WAITALL)
    for sock in (client, peer, server):
        sock.close()
    link.send(rounds)


def test_captured_packets_are_those_of_tcpdump(link: Link, tmp_path: Path) -> None:
    need_program("tcpdump")
    path = tmp_path / "dump.pcap"
    # In immediate mode it has room for a few packets of the greatest size, so it is told theirs.
    flags = ["-i", "vb", "-U", "--immediate-mode", "-s", "4096", "-B", "8192", "-Z", "root", "-w", str(path)]
    dump = subprocess.Popen(["ip", "netns", "exec", link.b, "tcpdump", *flags], stderr=subprocess.PIPE, text=True)
    try:
        assert dump.stderr is not None
        assert any("listening" in line for line in dump.stderr)
        with opened(link) as capture:
            talk(link, rounds=100)
            frames = until_end(capture)
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not any(packet.endswith(b"END") for packet in packets_of(path)) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        dump.terminate()
        _, said = dump.communicate()
    assert "\n0 packets dropped by kernel" in said
    ours, theirs = _to_end([frame.data for frame in frames]), _to_end(packets_of(path))
    assert len(ours) > 300
    assert Counter(ours) == Counter(theirs)
    assert {(frame.vlan, frame.link) for frame in frames} == {(NO_VLAN, ETHERNET)}
    assert all(frame.wirelen == len(frame.data) for frame in frames)


def _to_end(packets: list[bytes]) -> list[bytes]:
    """Without what the hosts said when the test was over."""
    return packets[: next(k for k, packet in enumerate(packets) if packet.endswith(b"END")) + 1]


def test_times_are_those_of_the_clock_and_rise(link: Link) -> None:
    with opened(link) as capture:
        before = time.time_ns()
        link.send(50)
        after = time.time_ns()
        blocks = [(block.index["time"].copy(), block.now) for block, _ in zip(capture, range(3), strict=False)]
    times = np.concatenate([times for times, _ in blocks])
    assert len(times) >= 51
    assert np.all(np.diff(times) >= 0)
    assert before <= times.min()
    assert times.max() <= after
    assert all(now <= time.time_ns() - live.LAG for _, now in blocks)


def test_the_time_does_not_pass_packets_that_still_wait(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LAG", -3600 * 10**9)  # as if every packet had waited for an hour
    with opened(link, "vb", "lo", ring_bytes=1 << 17) as capture:
        link.send(60, size=1400)
        told = -1
        for block in capture:
            if len(block):
                assert block.index["time"].min() >= max(told, block.now)
                told = block.now
            elif told >= 0:
                break
    assert told >= 0


def test_a_quiet_interface_does_not_hold_the_time_up(link: Link) -> None:
    with opened(link, bpf="port 1") as capture:
        blocks = [block for block, _ in zip(capture, range(3), strict=False)]
    assert [len(block) for block in blocks] == [0, 0, 0]
    assert blocks[0].now < blocks[1].now < blocks[2].now <= time.time_ns() - live.LAG


def test_a_block_that_is_held_is_not_overwritten(link: Link) -> None:
    with opened(link, bpf="udp", ring_bytes=1 << 17) as capture:
        link.send(60, size=1400)
        for block in capture:
            if len(block):
                break
        before = frames_of(block)
        link.send(500, size=1400)
        assert frames_of(block) == before
        later = next(found for found in capture if len(found))
        assert np.shares_memory(later.data, block.data)  # and yet nothing is copied
    assert frames_of(block) is not None  # memory that was given back would end the process


def test_packets_that_the_filter_refuses_stay_out(link: Link) -> None:
    with opened(link, bpf="udp and src host 10.77.0.1 and less 100") as capture:
        talk(link, rounds=20)
        link.send(20, size=20)
        frames = captured(capture, lambda frames: len(frames) >= 22)
    assert len(frames) == 22
    assert {frame.data[23] for frame in frames} == {socket.IPPROTO_UDP}


@pytest.mark.parametrize("library", [True, False], ids=["libpcap", "tcpdump"])
def test_a_filter_means_the_same_without_libpcap(link: Link, monkeypatch: pytest.MonkeyPatch, library: bool) -> None:
    if library and bpf._libpcap() is None:
        pytest.skip("needs libpcap: apt install libpcap0.8")
    if not library:
        need_program("tcpdump")
        monkeypatch.setattr(bpf, "_libpcap", lambda: None)
        # A child process is in the namespace of the thread that starts it.
    program = inside(link.b, lambda: bpf.compile_bpf("vlan 7 or udp port 53", "vb", 128))
    assert len(program) > 5
    assert program[-2:] == [(6, 0, 0, 128), (6, 0, 0, 0)]
    with pytest.raises(InputError, match="prot 53"):
        inside(link.b, lambda: bpf.compile_bpf("udp prot 53", "vb", 128))


def test_a_filter_is_refused_where_nothing_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf, "_libpcap", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *args, **options: None)
    with pytest.raises(InputError, match="install libpcap"):
        bpf.compile_bpf("udp", "lo", 128)
    assert bpf.compile_bpf(" ", "lo", 128) == bpf.bpf_keep(128)


def test_a_cut_packet_keeps_its_length(link: Link) -> None:
    with opened(link, bpf="udp dst port 9999", snaplen=60) as capture:
        link.send(5, size=500, end=b"E" * 500)
        frames = captured(capture, lambda frames: len(frames) >= 6)
    assert {(len(frame.data), frame.wirelen) for frame in frames} == {(60, 542)}


def test_a_vlan_tag_is_kept(link: Link) -> None:
    with opened(link) as capture:
        tagged(link, 0x6000 | 7)
        tagged(link, 8, 9)
        frames = captured(capture, lambda frames: sum(f.data.endswith(b"TAGGED") for f in frames) >= 2)
    found = [(frame.vlan, frame.data[12:20]) for frame in frames if frame.data.endswith(b"TAGGED")]
    assert found == [(7, b"\x08\x00\x45" + bytes(5)), (8, b"\x81\x00\x00\x09\x08\x00\x45\x00")]


def test_a_vlan_filter_matches_although_the_tag_was_taken_off(link: Link) -> None:
    with opened(link, bpf="vlan 7") as capture:
        tagged(link, 9)
        tagged(link, 7)
        assert [frame.vlan for frame in captured(capture, lambda frames: len(frames) >= 1)] == [7]


def test_promiscuous_mode_is_set_and_taken_back(link: Link) -> None:
    def promiscuity() -> int:
        shown = ip("-n", link.b, "-d", "link", "show", "vb")
        return int(shown.split("promiscuity ")[1].split()[0])

    with opened(link) as capture:
        assert promiscuity() == 0
    with opened(link, promiscuous=True) as capture:
        link.send(1)
        held = next(block for block in capture if len(block))
        assert promiscuity() == 1
    assert promiscuity() == 0
    assert len(frames_of(held)) > 0  # and this though a block is held


@pytest.mark.parametrize("kernel_does_it", [True, False])
def test_loopback_packets_are_seen_once(link: Link, monkeypatch: pytest.MonkeyPatch, kernel_does_it: bool) -> None:
    if not kernel_does_it:
        monkeypatch.setattr(live, "_IGNORE_OUTGOING", 9999)
    with opened(link, "lo", bpf="udp") as capture, link.udp(link.b) as sock, link.udp(link.b) as sink:
        sink.bind(("127.0.0.1", 9999))
        for number in range(20):
            sock.sendto(b"%d END" % number if number == 19 else b"%d" % number, ("127.0.0.1", 9999))
        frames = until_end(capture)
        for block in capture:  # copies that came behind the last one
            frames += frames_of(block)
            if not len(block):
                break
    assert [frame.data[42:].split()[0] for frame in frames] == [b"%d" % number for number in range(20)]
    assert capture.counters["outgoing_copies"] == (0 if kernel_does_it else 20)


def test_a_tunnel_is_not_taken_for_ethernet(link: Link) -> None:
    need_file("/dev/net/tun", "load the kernel's module tun")

    def tunnel() -> int:
        handle = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(handle, 0x400454CA, struct.pack("16sH22x", b"tunnel", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
        return handle

    handle = inside(link.b, tunnel)
    try:
        ip("-n", link.b, "addr", "add", "10.78.0.1/24", "dev", "tunnel")
        ip("-n", link.b, "link", "set", "tunnel", "up")
        with opened(link, "tunnel", bpf="udp") as capture, link.udp(link.b) as sock:
            sock.sendto(b"END", ("10.78.0.2", 9999))
            frames = until_end(capture)
    finally:
        os.close(handle)
    assert [(frame.link, frame.data[:1], len(frame.data)) for frame in frames] == [(RAW, b"\x45", 31)]


def test_packets_of_the_second_interface_are_captured(link: Link) -> None:
    with opened(link, "vb", "lo", bpf="udp") as capture, link.udp(link.b) as sock:
        link.send(10)
        sock.sendto(b"local", ("127.0.0.1", 9999))
        frames = captured(capture, lambda frames: len(frames) >= 12)
    assert Counter(frame.data[26:30] for frame in frames) == {
        socket.inet_aton("10.77.0.1"): 11,
        socket.inet_aton("127.0.0.1"): 1,
    }


def test_drops_are_counted(link: Link) -> None:
    with opened(link, bpf="udp", ring_bytes=1 << 17) as capture:
        link.send(1000, size=1000)
        frames = captured(capture, lambda frames: _settled(capture, len(frames)))
        assert capture.counters["kernel_drops"] > 0
        assert capture.counters["ring_freezes"] > 0
        assert capture.counters["kernel_packets"] == len(frames) + capture.counters["kernel_drops"] >= 1001


def _settled(capture: LiveCapture, seen: int) -> bool:
    counted = capture.counters["kernel_packets"]
    return counted > 0 and counted == seen + capture.counters["kernel_drops"]


def test_stop_ends_the_iteration(link: Link) -> None:
    with opened(link) as capture:
        thread = threading.Timer(0.1, capture.stop)
        thread.start()
        for _ in capture:
            pass
        thread.join()
        assert list(capture) == []
    capture.stop()
    capture.close()
    assert list(capture) == []


def test_stop_in_a_signal_handler_ends_the_iteration(link: Link) -> None:
    with opened(link) as capture:
        before = signal.signal(signal.SIGALRM, lambda *_: capture.stop())
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            for _ in capture:
                pass
        finally:
            signal.signal(signal.SIGALRM, before)


def test_a_removed_interface_does_not_end_the_others(link: Link) -> None:
    with opened(link, "vb", "lo", bpf="udp") as capture, link.udp(link.b) as sock:
        link.send(1)
        assert len(captured(capture, lambda frames: len(frames) >= 2)) == 2
        ip("-n", link.b, "link", "del", "vb")
        captured(capture, lambda _: capture.counters["interface_removed"] > 0)
        sock.sendto(b"END", ("127.0.0.1", 9999))
        assert len(until_end(capture)) == 1
        assert (capture.counters["interface_down"], capture.counters["interface_removed"]) == (1, 1)


def test_the_iteration_ends_when_no_interface_is_left(link: Link) -> None:
    with opened(link, bpf="udp") as capture:
        link.send(1)
        ip("-n", link.b, "link", "del", "vb")
        frames = captured(capture, lambda _: False)
        assert len(frames) == 2  # captured before the end
        assert capture.counters["interface_removed"] == 1
        assert list(capture) == []


def test_an_interface_that_comes_back_up_is_heard_again(link: Link) -> None:
    with opened(link, bpf="udp") as capture:
        ip("-n", link.b, "link", "set", "vb", "down")
        captured(capture, lambda _: capture.counters["interface_down"] > 0)
        ip("-n", link.b, "link", "set", "vb", "up")
        ip("-n", link.b, "route", "replace", "10.77.0.0/24", "dev", "vb")
        link.send(1)
        assert len(until_end(capture)) == 2
        assert (capture.counters["interface_down"], capture.counters["interface_removed"]) == (1, 0)


class Addresses:
    """A table that notes which conversations its worker saw: a stand-in for flows."""

    def __init__(self) -> None:
        self.now, self.record = 0, np.dtype([("time", np.int64), ("table", np.int64), ("port", np.int32)])

    def feed(self, block: PacketBlock) -> Any:
        rows = []
        for frame, stamp in zip(frames_of(block), block.index["time"].tolist(), strict=True):
            self.now = max(self.now, stamp)
            rows.append((self.now, id(self), max(struct.unpack_from("!HH", frame.data, 34))))
        return np.array(rows, self.record)

    def advance(self, now: int) -> Any:
        self.now = max(self.now, now)
        return np.empty(0, self.record)

    def finish(self) -> Any:
        return np.empty(0, self.record)


def test_fanout_keeps_packets_single_and_flows_together(link: Link) -> None:
    need_filters()
    flows = inside(link.b, lambda: FanoutFlows.on(["vb"], Addresses, workers=2, bpf="udp", ring_bytes=1 << 20))
    ports = range(20000, 20064)
    with flows, link.udp(link.b) as server:
        server.bind(("10.77.0.2", 9999))
        for port in ports:
            with link.udp(link.a) as client:
                client.bind(("10.77.0.1", port))
                client.sendto(b"ping", ("10.77.0.2", 9999))
                server.sendto(*server.recvfrom(4))
        seen: list[tuple[int, int, int]] = []
        deadline = time.monotonic() + GIVE_UP_SECONDS
        for records, _ in flows:
            seen += records.tolist()
            if len(seen) >= 2 * len(ports) or time.monotonic() > deadline:
                flows.stop()
        assert flows.counters["kernel_packets"] == 2 * len(ports)
    assert Counter(port for _, _, port in seen) == dict.fromkeys(ports, 2)
    assert len({(table, port) for _, table, port in seen}) == len(ports)
    assert len({table for _, table, _ in seen}) == 2
    assert seen == sorted(seen, key=lambda row: row[0])


def test_a_foreign_fanout_group_is_not_joined(link: Link) -> None:
    with opened(link, fanout=(live.NEW_GROUP,)) as capture:
        assert capture.fanout is not None
        (group,) = capture.fanout
        with pytest.raises(InputError, match=f"group {group} cannot be joined"):
            opened(link, "lo", fanout=(group,))
    with pytest.raises(InputError, match="1 group ids for 2 interfaces"):
        opened(link, "vb", "lo", fanout=(1,))


@pytest.fixture
def scapy_capture(link: Link, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LivePacketSource]:
    """Opens a capture as on a system without AF_PACKET."""
    need_module("scapy")
    need_filters()
    monkeypatch.setattr(live, "_has_packet_sockets", lambda: False)
    return lambda *names, **options: inside(link.b, lambda: open_live(names, **options))


def test_scapy_captures_the_same(link: Link, scapy_capture: Callable[..., LivePacketSource]) -> None:
    with scapy_capture("vb", bpf="udp") as capture, opened(link, bpf="udp") as ours:
        assert isinstance(capture, ScapyCapture)
        assert "scapy" in capture.note
        link.send(50)
        theirs = until_end(capture)
        capture.stop()
        assert list(capture) == []
        assert theirs == until_end(ours)
        assert len(theirs) == 51


def test_scapy_shows_loopback_packets_once(link: Link, scapy_capture: Callable[..., LivePacketSource]) -> None:
    with scapy_capture("lo", bpf="udp") as capture, link.udp(link.b) as sock:
        sock.sendto(b"one", ("127.0.0.1", 9999))
        sock.sendto(b"END", ("127.0.0.1", 9999))
        assert [frame.data[42:] for frame in until_end(capture)] == [b"one", b"END"]


def test_scapy_is_bounded(link: Link, scapy_capture: Callable[..., LivePacketSource]) -> None:
    with scapy_capture("vb", bpf="udp", ring_bytes=1000) as capture:
        assert isinstance(capture, ScapyCapture)
        link.send(40)
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while capture.counters["queue_drops"] < 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        captured(capture, lambda frames: len(frames) + capture.counters["queue_drops"] >= 41)
        assert capture.counters["queue_drops"] > 0
    with pytest.raises(InputError, match=r"no interface 'nothing'; there are: .*vb"):
        scapy_capture("nothing")


def test_open_live_is_the_quick_one_on_linux(link: Link) -> None:
    with inside(link.b, lambda: open_live(["vb"])) as capture:
        assert isinstance(capture, LiveCapture)
        assert capture.note == ""


def test_an_interface_that_cannot_be_captured_is_explained(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"no interface 'vx'; there are: lo, vb"):
        opened(link, "vx")
    with pytest.raises(InputError, match="no interface to capture from"):
        inside(link.b, lambda: LiveCapture([]))
    with pytest.raises(InputError, match="snaplen 0"):
        opened(link, snaplen=0)
    ip("-n", link.b, "link", "set", "lo", "down")
    with pytest.raises(InputError, match="lo is down"):
        opened(link, "lo")
    monkeypatch.setattr(live, "_LINKS", {})
    with pytest.raises(InputError, match="ARPHRD 1"):
        opened(link)


def test_a_missing_capability_is_explained() -> None:
    need_root("to take a capability away")
    need_program("setpriv")
    code = "from netclust.stream.packets.live import LiveCapture; LiveCapture(['lo'])"
    drop = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    ran = subprocess.run([*drop, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InputError: capturing needs the capability CAP_NET_RAW" in ran.stderr
    assert "setcap cap_net_raw+ep /" in ran.stderr
