"""Real captures made wrong: their packets, the order and time of these, and the file around them.

Every way to spoil is a function that changes a list of packets in place; which ones are used is drawn by lot.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from capture_bytes import MICRO, NANO, Packet, pcap, pcapng
from packet_paths import frames_of, names_of_captures

SECOND = 1_000_000_000
IP, IHL, TRANSPORT = 14, 14, 34  # where they begin in an Ethernet frame of IPv4 without options


@dataclass
class Frame:
    """A packet that may still be changed; `extra` is what the wire had more than was captured."""

    time: int
    data: bytearray
    link: int = 1
    extra: int = 0


Sample = list[Frame]
WORDS = (
    b"USER anonymous\r\n", b"USER root\r\nPASS toor\r\n", b"230 ok\r\n", b"530 no\r\n", b"550 no\r\n",
    b"STOR /etc/passwd\r\n", b"login: ", b"Login incorrect\r\n", b"su\r\n", b"# ", b"$ ", b"cat /etc/shadow\n",
    b"./run > /bin/sh\n", b"\n\n\r\r", b"EXPN root\r\n", b"354 go on\r\n", b"535 no\r\n", b"PASS x\r\n", b"+OK\r\n",
    b"-ERR\r\n", b"a1 LOGIN u p\r\n", b"a1 OK done\r\n", b"a1 NO\r\n", b"* OK\r\n",
    b"GET /../../etc/passwd?x=union+select HTTP/1.1\r\n", b"HTTP/1.1 404 N\r\n", b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 401 N\r\n", b"A" * 130, b"B" * 600, b"\xff\xfb\x01", b" ",
)  # fmt: skip
PORTS = (20, 21, 22, 23, 25, 53, 80, 110, 143, 443, 4789, 8080, 65535, 0)
EDGES = (0, 1, 7, 8, 15, 16, 20, 40, 63, 64, 127, 128, 254, 255)
HELLO = bytes.fromhex(
    "16030100750100007103030000000000000000000000000000000000000000000000000000000000000000000004130113020a0a01000044"
    "0000000e000c0000096c6f63616c686f7374001000050003026832002b0003020304"
)
QUERY = bytes.fromhex("000101000001000000000000") + b"\3www\7example\3com\0\0\1\0\1"


def load_samples(data: Path) -> list[Sample]:
    """Some packets of each shared capture, from its beginning, middle and end."""
    samples = []
    for name in names_of_captures(data):
        frames = frames_of(data / "pcap" / name)
        for start in (0, len(frames) // 2, max(len(frames) - 60, 0)):
            part = frames[start : start + 60]
            samples.append([Frame(p.time, bytearray(p.payload), p.link, p.wirelen - len(p.payload)) for p in part])
    return samples


def spoiled_capture(samples: list[Sample], chance: random.Random) -> tuple[bytes, list[str]]:
    """The bytes of a file, and how it was spoiled."""
    sample = chance.choice(samples)
    begin = chance.randrange(max(len(sample) - 5, 1))
    chosen = sample[begin : begin + chance.randrange(5, 36)]
    if chance.random() < 0.1:
        chosen = chosen + chance.choice(samples)[:20]
    frames = [replace(frame, data=bytearray(frame.data)) for frame in chosen]
    kinds = chance.choices(list(SPOIL), k=chance.randrange(1, 5))
    for kind in kinds:
        SPOIL[kind](frames, chance)
    sent = [Packet(min(f.time, 2**63 - 1), len(f.data) + f.extra, f.link, bytes(f.data)) for f in frames]
    if chance.random() < 0.5 or any(p.time >= 2**32 * SECOND for p in sent):
        content = pcapng(sent, chance.choice("<>"))
    else:
        content = pcap(sent, chance.choice("<>"), chance.choice([MICRO, NANO]), sent[0].link if sent else 1)
    if chance.random() < 0.2:
        kinds.append("file bytes")
        content = _spoil_file(bytearray(content), chance)
    return content, sorted(set(kinds))


def _spoil_file(content: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(content) or 1)
        kind = chance.randrange(5)
        if kind == 0 and content:
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at > 30:
            del content[at:]
        elif kind == 2:
            content[at:at] = chance.randbytes(chance.randrange(1, 64))
        elif kind == 3:
            content[at : at + 4] = struct.pack("<I", chance.choice([0, 1, 0xFFFF, 0x40000, 0x7FFFFFFF, 0xFFFFFFFF]))
        else:
            del content[at : at + chance.randrange(1, 64)]
    return bytes(content)


def _any(frames: Sample, chance: random.Random) -> list[Frame]:
    """Some of the packets: those that will be spoiled."""
    return [f for f in frames if chance.random() < 0.4 and len(f.data) > 0]


def _put(frame: Frame, at: int, value: int, size: int = 2) -> None:
    if at + size <= len(frame.data):
        frame.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "big")


def flip_bits(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        for _ in range(chance.randrange(1, 8)):
            reach = len(frame.data) if chance.random() < 0.3 else min(len(frame.data), 80)
            frame.data[chance.randrange(reach)] ^= 1 << chance.randrange(8)


def set_edges(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        for _ in range(chance.randrange(1, 4)):
            frame.data[chance.randrange(min(len(frame.data), 90))] = chance.choice(EDGES)


def lengths(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        value = chance.choice([0, 1, 7, 19, 20, 28, 40, len(frame.data) - 14, 0x7FFF, 0xFFFF, chance.randrange(65536)])
        at = chance.choice([IP + 2, IP + 4, TRANSPORT + 4, TRANSPORT + 44])  # IPv4, IPv6, UDP, UDP in IPv6
        if chance.random() < 0.4:
            _put(frame, IHL, 0x40 | chance.randrange(16), 1)
        if chance.random() < 0.4:
            _put(frame, TRANSPORT + 12, chance.randrange(256), 1)  # TCP's
        _put(frame, at, value)


def cut(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        reach = len(frame.data) if chance.random() < 0.3 else min(len(frame.data), 120)
        size = chance.randrange(reach + 1)
        if chance.random() < 0.6:
            frame.extra += len(frame.data) - size
        del frame.data[size:]


def splice(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        other = chance.choice(frames).data
        frame.data[chance.randrange(len(frame.data)) :] = other[chance.randrange(len(other) + 1) :][:2000]


def reorder(frames: Sample, chance: random.Random) -> None:
    if chance.random() < 0.5:
        chance.shuffle(frames)
    else:
        times = [frame.time for frame in frames]
        chance.shuffle(times)
        for frame, time in zip(frames, times, strict=True):
            frame.time = time


def repeat(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance)[:8]:
        copy = replace(frame, data=bytearray(frame.data), time=frame.time + chance.choice([0, 1, SECOND]))
        frames.insert(chance.randrange(len(frames) + 1), copy)


def drop(frames: Sample, chance: random.Random) -> None:
    frames[:] = [frame for frame in frames if chance.random() < 0.7] or frames[:1]


def jump(frames: Sample, chance: random.Random) -> None:
    shift = 0
    for frame in frames:
        if chance.random() < 0.15:
            far = chance.choice([1, 5, 61, 300, 3600, 86_401, 10**8, 10**9])
            shift += chance.choice([-1, 1]) * far * chance.choice([1, 10**6, SECOND])
        frame.time = min(max(frame.time + shift, 0), 2**63 - 1)
    if chance.random() < 0.1:
        chance.choice(frames).time = chance.choice([0, 2**32 * SECOND - 1, 2**62, 2**63 - 1])


def other_link(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        frame.link = chance.choice([0, 1, 12, 51, 101, 108, 113, 147, 228, 229, 276])
        if chance.random() < 0.8:
            head = {1: frame.data[:14], 113: b"\0" * 14 + frame.data[12:14], 276: frame.data[12:14] + b"\0" * 18}
            loop = b"\2\0\0\0" if frame.data[12:14] == b"\x08\0" else b"\0\0\0\x1e"
            pppoe = b"\x11\0\0\0\0\0\0\x21"
            frame.data[:14] = {0: loop, 108: loop, 51: pppoe, **head}.get(frame.link, b"")


def wrap(frames: Sample, chance: random.Random) -> None:
    """Tags and tunnels around a packet, up to deeper than is followed."""
    for frame in _any(frames, chance):
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            frame.data[12:12] = chance.choice([_tag, _tag, _gre, _vxlan, _ip_in_ip, _pppoe])(frame.data, chance)


def _tag(data: bytearray, chance: random.Random) -> bytes:
    return struct.pack("!HH", chance.choice([0x8100, 0x88A8, 0x9100]), chance.randrange(65536))


def _outer(proto: int, size: int, chance: random.Random) -> bytes:
    bits = chance.choice([0, 0, 0, 0x2000, 5])
    return b"\x08\0" + struct.pack(
        "!BBHHHBBHII", 0x45, 0, min(size + 20, 65535), 9, bits, 64, proto, 0, 0x0A000001, 0x0A000002
    )


def _ip_in_ip(data: bytearray, chance: random.Random) -> bytes:
    return _outer(chance.choice([4, 41]), len(data) - 14, chance)


def _gre(data: bytearray, chance: random.Random) -> bytes:
    head = struct.pack("!BBH", chance.choice([0, 0x80, 0x20, 0x30, 0xB0]), 0, chance.choice([0x0800, 0x86DD, 0x6558]))
    return _outer(47, len(data) + 4, chance) + head


def _vxlan(data: bytearray, chance: random.Random) -> bytes:
    head = struct.pack("!HHHH", 50_000, 4789, len(data) + 28 & 0xFFFF, 0) + b"\x08\0\0\0\0\0\5\0"
    return _outer(17, len(data) + 28, chance) + head + bytes(12)


def _pppoe(data: bytearray, chance: random.Random) -> bytes:
    return b"\x88\x64\x11\0\0\1" + struct.pack("!HH", len(data) & 0xFFFF, chance.choice([0x21, 0x57, 0xC021]))


def fragment(frames: Sample, chance: random.Random) -> None:
    ident = chance.randrange(65536)
    for frame in _any(frames, chance):
        _put(frame, IP + 4, ident)
        _put(frame, IP + 6, chance.choice([0x2000, 0x2001, 0x0001, 0x1FFF, 0x3FFF, chance.randrange(65536)]))


def protocol(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        _put(frame, IP + 9, chance.choice([0, 1, 2, 4, 6, 17, 41, 47, 50, 58, 132, 255]), 1)


def sixth(frames: Sample, chance: random.Random) -> None:
    """As IPv6, with a chain of extension headers that may lie about their lengths."""
    for frame in _any(frames, chance):
        rest = frame.data[TRANSPORT:]
        chain = [chance.choice([0, 43, 44, 51, 60, 135, 139]) for _ in range(chance.choice([0, 1, 2, 4, 14]))]
        kinds = [*chain, chance.choice([6, 17, 58, 59, 132])]
        body = b"".join(
            bytes([following, chance.choice([0, 0, 0, 1, 255]), 0, chance.choice([0, 0, 1, 8])]) + b"\0\0\0\7"
            for following in kinds[1:]
        )
        size = len(body) + len(rest)
        head = struct.pack("!IHBB", 6 << 28, chance.choice([size, size, 0, 1, 65535]) & 0xFFFF, kinds[0], 64)
        address = b"\x20\1\x0d\xb8" + bytes(12)
        frame.data[12:] = b"\x86\xdd" + head + address + address[:-1] + b"\1" + body + rest


def numbering(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        seq = chance.choice([0, 2**31, 2**32 - 1, 2**32 - 100, 2**30, chance.randrange(2**32)])
        if chance.random() < 0.5 and len(frame.data) > TRANSPORT + 8:
            seq = int.from_bytes(frame.data[TRANSPORT + 4 : TRANSPORT + 8], "big") + chance.randrange(-3000, 3000)
        _put(frame, TRANSPORT + 4, seq, 4)


def flags(frames: Sample, chance: random.Random) -> None:
    for frame in _any(frames, chance):
        _put(frame, TRANSPORT + 13, chance.choice([0, 1, 2, 4, 16, 17, 18, 20, 24, 255, chance.randrange(256)]), 1)


def dialogue(frames: Sample, chance: random.Random) -> None:
    """A conversation in clear on one connection: its bytes in order, in pieces, some lost or late."""
    ports = struct.pack("!HH", 40_000 + chance.randrange(5), chance.choice(PORTS))
    numbers, proto = [chance.randrange(2**32), chance.randrange(2**32)], chance.choice([6, 6, 6, 17])
    for frame in frames:
        if chance.random() < 0.3:
            continue
        back = chance.randrange(2)
        text = chance.choice([*WORDS, HELLO, QUERY, b"\0\x1d" + QUERY])
        text = text[chance.randrange(len(text)) :] if chance.random() < 0.1 else text
        text = text[: chance.randrange(1, len(text) + 1)] if chance.random() < 0.3 else text
        here = ports[2:] + ports[:2] if back else ports
        if proto == 6:
            bits = chance.choice([0x18, 0x18, 0x18, 0x10, 0x02, 0x12, 0x11, 0x04])
            late = chance.choice([0, 0, 0, 0, -len(text), 40, -3])
            head = here + struct.pack("!IIBBHI", numbers[back] + late & 0xFFFFFFFF, 0, 0x50, bits, 512, 0)
            numbers[back] += len(text)
        else:
            head = here + struct.pack("!HH", len(text) + 8, 0)
        ends = struct.pack("!II", 0x0A000001 + back, 0x0A000002 - back)
        size = 20 + len(head) + len(text)
        frame.data[12:] = b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, size, 1, 0, 64, proto, 0) + ends + head + text
        frame.data[:0] = bytes(max(12 - frame.data.index(b"\x08\0\x45"), 0))
        frame.link = 1


SPOIL: dict[str, Callable[[Sample, random.Random], None]] = {
    f.__name__: f
    for f in (
        flip_bits, set_edges, lengths, cut, splice, reorder, repeat, drop, jump, other_link, wrap, fragment, protocol,
        sixth, numbering, flags, dialogue,
    )
}  # fmt: skip
