"""The simulated captures: packets are well formed, labelled without a gap, and the same for the same seed."""

from __future__ import annotations

import csv
import gzip
import lzma
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from needed import need_module, need_program

from netclust.cli import main
from netclust.datasets.simulators.capture_simulator import HELD_BACK, KNOWN, LABEL_HEADER, NOTICE, simulate_capture
from netclust.errors import InputError
from netclust.kernels.packets.packet_frames import checksum

START = "2024-01-03T10:00:00Z"
Packet = tuple[int, int, bytes]  # microseconds, length on the wire, captured bytes


@dataclass(frozen=True)
class Made:
    path: Path
    labels: Path
    packets: list[Packet]
    rows: list[dict[str, str]]


def read(path: Path) -> Iterator[Packet]:
    data = path.read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1"
    at = 24
    while at < len(data):
        seconds, micro, kept, whole = struct.unpack_from("<IIII", data, at)
        assert kept <= whole
        yield seconds * 1_000_000 + micro, whole, data[at + 16 : at + 16 + kept]
        at += 16 + kept
    assert at == len(data)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def key(frame: bytes) -> tuple[object, ...]:
    """Both ends and the protocol, whichever direction."""
    kind = frame[12:14]
    if kind == b"\x08\x06":
        return ("arp", *sorted((f"{ip_address(frame[28:32])}:", f"{ip_address(frame[38:42])}:")))
    if kind == b"\x08\x00":
        proto, a, b, l4 = frame[23], ip_address(frame[26:30]), ip_address(frame[30:34]), 34
    else:
        proto, a, b, l4 = frame[20], ip_address(frame[22:38]), ip_address(frame[38:54]), 54
    name = {6: "tcp", 17: "udp", 1: "icmp", 58: "icmp"}[proto]
    ports = struct.unpack_from(">HH", frame, l4) if proto in (6, 17) else ("", "")
    return (name, *sorted((f"{a}:{ports[0]}", f"{b}:{ports[1]}")))


def row_key(row: dict[str, str]) -> tuple[object, ...]:
    ends = sorted((f"{row['source']}:{row['source_port']}", f"{row['destination']}:{row['destination_port']}"))
    return (row["protocol"], *ends)


def micro(text: str) -> int:
    return int(text.replace(".", ""))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Twelve busy minutes, every attack among them, whole frames."""
    folder = tmp_path_factory.mktemp("capture")
    path, labels = folder / "all.pcap", folder / "all.csv"
    simulate_capture(path, labels, hours=0.2, seed=5, attacks="all", start=START, snaplen=0, hosts=60, scale=1.5)
    return Made(path, labels, list(read(path)), rows_of(labels))


def plain_checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def test_the_checksum_kernel_equals_its_plain_twin() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 3, 20, 41, 1500):
        data = rng.integers(0, 256, size, np.uint8)
        assert int(checksum(data, 0, size)) == plain_checksum(data.tobytes())


def test_every_frame_has_the_right_length_and_checksum(made: Made) -> None:
    for _, whole, frame in made.packets:
        assert len(frame) == whole
        assert 60 <= len(frame) <= 1514
        kind = frame[12:14]
        if kind == b"\x08\x06":
            assert frame[14:20] == b"\0\1\x08\0\6\4"
            continue
        if kind == b"\x08\x00":
            assert plain_checksum(frame[14:34]) == 0
            proto, size, at = frame[23], struct.unpack_from(">H", frame, 16)[0] - 20, 34
            pseudo = frame[26:34] + struct.pack(">HH", proto, size)
        else:
            assert kind == b"\x86\xdd"
            proto, size, at = frame[20], struct.unpack_from(">H", frame, 18)[0], 54
            pseudo = frame[22:54] + struct.pack(">IHH", size, 0, proto)
        assert at + size == len(frame) or len(frame) == 60
        body = frame[at : at + size]
        assert len(body) == size
        assert plain_checksum(body if proto == 1 else pseudo + body) == 0
        if proto == 17:
            assert struct.unpack_from(">H", body, 4)[0] == size


@pytest.mark.peers
def test_scapy_rebuilds_every_packet_byte_for_byte(made: Made) -> None:
    need_module("scapy")
    from scapy.layers.inet import ICMP, IP, TCP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Ether

    # One of every protocol, port and flag combination.
    sample = {(frame[12:14], frame[20], frame[23], frame[34:38], frame[46:48]): frame for _, _, frame in made.packets}
    chosen = list(sample.values())[:: max(1, len(sample) // 400)]
    seen = set()
    for frame in chosen:
        packet = Ether(frame)
        for layer in (IP, TCP, UDP, ICMP):
            # Only the outer layers: what an ICMP error quotes is cut short.
            found = packet.getlayer(layer)
            if found is not None and (layer is IP or found.underlayer in (packet.getlayer(IP), packet.getlayer(IPv6))):
                seen.add(layer.__name__)
                del found.chksum
                if layer is IP:
                    del found.len
        assert bytes(packet)[: len(frame)] == frame[: len(bytes(packet))]
    assert seen == {"IP", "TCP", "UDP", "ICMP"}


@pytest.mark.peers
def test_tshark_finds_no_malformed_packet(made: Made) -> None:
    tshark = need_program("tshark")
    bad = ("ip.checksum.status==0", "tcp.checksum.status==0", "udp.checksum.status==0", "icmp.checksum.status==0")
    command = [tshark, "-r", str(made.path), "-Y", " || ".join(("_ws.malformed", *bad)), "-T", "fields"]
    command += ["-e", "frame.number", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"]
    for protocol in ("ip", "tcp", "udp"):
        command += ["-o", f"{protocol}.check_checksum:TRUE"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    # What a flood sends to a port is not what the port's protocol is.
    flood = {row_key(row) for row in made.rows if row["label"] == "udp_flood"}
    found = [
        line for line in done.stdout.splitlines() if key(made.packets[int(line.split("\t")[0]) - 1][2]) not in flood
    ]
    assert found == []


def test_times_rise_strictly(made: Made) -> None:
    times = [time for time, _, _ in made.packets]
    assert all(a < b for a, b in pairwise(times))
    assert times[0] >= 1704276000 * 10**6
    assert times[-1] < (1704276000 + 720) * 10**6


def test_every_packet_belongs_to_a_labelled_connection(made: Made) -> None:
    spans = defaultdict(list)
    for row in made.rows:
        spans[row_key(row)].append((micro(row["start"]), micro(row["end"])))
    for time, _, frame in made.packets:
        assert any(start <= time <= end for start, end in spans[key(frame)]), key(frame)


def test_every_labelled_connection_has_packets(made: Made) -> None:
    times = defaultdict(set)
    for time, _, frame in made.packets:
        times[key(frame)].add(time)
    for row in made.rows:
        assert {micro(row["start"]), micro(row["end"])} <= times[row_key(row)], row
    assert made.labels.read_text().startswith(LABEL_HEADER + "\n")


def test_the_first_packet_comes_from_the_originator(made: Made) -> None:
    first = {time: frame for time, _, frame in made.packets}
    for row in made.rows:
        frame = first[micro(row["start"])]
        if row["protocol"] == "tcp":
            at = 34 if frame[12:14] == b"\x08\x00" else 54
            assert str(struct.unpack_from(">H", frame, at)[0]) == row["source_port"]


def test_exactly_the_attacks_asked_for_are_there(made: Made) -> None:
    assert {row["label"] for row in made.rows} == {"normal", *KNOWN, *HELD_BACK}


def test_benign_traffic_has_every_kind(made: Made) -> None:
    kinds = {row["kind"] for row in made.rows if row["label"] == "normal"}
    wanted = {
        "web",
        "http",
        "visitor",
        "dns",
        "smtp",
        "pop3",
        "imap",
        "mail_tls",
        "ssh",
        "ftp",
        "ftp_data",
        "smb",
        "print",
        "quic",
        "telemetry",
        "mqtt",
        "push",
        "updates",
        "ntp",
        "mdns",
        "ssdp",
        "arp",
        "dhcp",
        "ping",
        "snmp",
        "noise",
        "neighbour",
    }
    assert wanted <= kinds
    benign = [row for row in made.rows if row["label"] == "normal" and row["protocol"] in ("tcp", "udp")]
    assert 0.04 < sum(":" in row["source"] for row in benign) / len(benign) < 0.25


def test_ttl_and_card_alone_do_not_give_attackers_away(made: Made) -> None:
    spans = {}
    for row in made.rows:
        spans.setdefault(row_key(row), []).append((micro(row["start"]), micro(row["end"]), row["label"] != "normal"))
    values = {False: set(), True: set()}
    for time, _, frame in made.packets:
        if frame[12:14] == b"\x08\x00":
            hostile = any(bad for start, end, bad in spans[key(frame)] if start <= time <= end)
            values[hostile].add((frame[22], frame[6:9]))
    assert len(values[True] - values[False]) <= 0.25 * len(values[True])


def test_connections_continue_across_slices(tmp_path: Path) -> None:
    whole = tmp_path / "two.csv"
    simulate_capture(tmp_path / "two.pcap", whole, hours=0.6, seed=2, attacks="none", start=START, hosts=12)
    ends = [1704276000 + 900, 1704276000 + 1800]
    over = [row for row in rows_of(whole) for end in ends if float(row["start"]) < end < float(row["end"])]
    assert len(over) > 3
    # A sequence that is not repaired would show as a row of its own that starts at the cut.
    spans = defaultdict(list)
    for row in rows_of(whole):
        spans[row_key(row)].append((float(row["start"]), float(row["end"])))
    for row in over:
        assert not any(start in ends for start, _ in spans[row_key(row)])
    flows: dict[tuple[object, ...], list[bytes]] = defaultdict(list)
    for _, _, frame in read(tmp_path / "two.pcap"):
        flows[key(frame)].append(frame)
    assert any(row["protocol"] == "tcp" for row in over)
    for row in over:
        if row["protocol"] == "tcp" and len(spans[row_key(row)]) == 1:
            syns = [f for f in flows[row_key(row)] if f[(34 if f[12:14] == b"\x08\x00" else 54) + 13] & 18 == 2]
            assert len(syns) == 1 or syns[0][38:42] == syns[-1][38:42] or ":" in row["source"]


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    options = {"hours": 0.05, "attacks": "port_scan,beaconing", "hosts": 10, "start": START}
    texts = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        simulate_capture(tmp_path / f"{name}.pcap", tmp_path / f"{name}.csv", seed=seed, **options)
        texts[name] = (tmp_path / f"{name}.pcap").read_bytes() + (tmp_path / f"{name}.csv").read_bytes()
    assert texts["a"] == texts["b"]
    assert texts["a"] != texts["c"]
    for suffix, opened in ((".gz", gzip.open), (".xz", lzma.open)):
        packed = tmp_path / f"p.pcap{suffix}"
        simulate_capture(packed, seed=3, **options)
        assert opened(packed).read() == (tmp_path / "a.pcap").read_bytes()


def test_a_snapped_capture_differs_in_bulk_data_alone(tmp_path: Path) -> None:
    for snap in (0, 128):
        simulate_capture(
            tmp_path / f"{snap}.pcap", hours=0.05, seed=3, attacks="none", hosts=10, start=START, snaplen=snap
        )
    cut = 0
    for full, snapped in zip(read(tmp_path / "0.pcap"), read(tmp_path / "128.pcap"), strict=True):
        assert full[:2] == snapped[:2]
        assert full[2].startswith(snapped[2])
        cut += len(snapped[2]) < snapped[1]
    assert cut > 50


def test_addresses_lie_within_the_networks_asked_for(tmp_path: Path) -> None:
    labels = tmp_path / "x.csv"
    simulate_capture(
        tmp_path / "x.pcap", labels, hours=0.05, seed=1, attacks="syn_flood,arp_scan", clients="172.30.5.0/26",
        servers="172.30.6.0/28", hosts=12, start=START,
    )  # fmt: skip
    networks = (
        ip_network("172.30.5.0/26"),
        ip_network("172.30.6.0/28"),
        ip_network("224.0.0.0/3"),
        ip_network("0.0.0.0/32"),
    )
    for row in rows_of(labels):
        for end in (row["source"], row["destination"]):
            assert ":" in end or any(ip_address(end) in network for network in networks), end


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hours": 0.0}, "--hours"),
        ({"hours": float("nan")}, "--hours"),
        ({"seed": -1}, "--seed"),
        ({"scale": -1.0}, "--scale"),
        ({"hosts": 2}, "--hosts"),
        ({"clients": "10.0.0.0/28", "hosts": 40}, "--hosts"),
        ({"clients": "10.0.0.300/24"}, "--clients"),
        ({"servers": "x"}, "--servers"),
        ({"clients": "10.0.0.0/24", "servers": "10.0.0.0/16"}, "--servers"),
        ({"start": "yesterday"}, "--start"),
        ({"start": "1960-01-01"}, "--start"),
        ({"day": -1}, "--day"),
        ({"snaplen": 10}, "--snaplen"),
        ({"attacks": "sharknado"}, "--attacks"),
        ({"attacks": ""}, "--attacks"),
        ({"campaigns_per_hour": -1.0}, "--campaigns-per-hour"),
    ],
)
def test_bad_options_are_refused_by_name(tmp_path: Path, options: dict[str, object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        simulate_capture(tmp_path / "x.pcap", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        simulate_capture(tmp_path / "x.pcap", tmp_path / "no" / "x.csv", hours=0.01)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_that_it_is_synthetic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.pcap"
    arguments = ["simulate", "capture", "-o", str(path), "--hours", "0.02", "--attacks", "none", "--hosts", "10"]
    with pytest.raises(SystemExit, match="0"):
        main(arguments)
    assert NOTICE in capsys.readouterr().err
    assert path.stat().st_size > 1000
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--clients", "nowhere"])
    assert "--clients" in capsys.readouterr().err
