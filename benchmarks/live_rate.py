"""How many packets a second live capture takes without a drop: tcpreplay at rising rates between two namespaces.

    sudo .venv/bin/python benchmarks/live_rate.py [CAPTURE.pcap]

Sender and receiver share the machine, and tcpreplay takes a core: the highest rate without a drop is a lower bound.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import ROOT, save

sys.path.insert(0, str(ROOT / "tests" / "stream"))  # the same namespaces as the tests'

from namespaces import Link, inside, ip, joined

from netclust.stream.live import LiveCapture
from netclust.stream.packets import PacketBlock

RATES = (10_000, 30_000, 100_000, 200_000, 300_000, 0)  # packets a second; 0 is as fast as tcpreplay can
SECONDS = 3.0
SETTLED_ROUNDS = 3  # heartbeats without a packet after which nothing more will come

Consumer = Callable[[PacketBlock], object]


def main() -> None:
    if shutil.which("tcpreplay") is None or shutil.which("ip") is None:
        raise SystemExit("skipped: needs tcpreplay and ip (iproute2)")
    with tempfile.TemporaryDirectory() as folder, joined() as link:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else made_capture(Path(folder, "made.pcap"))
        for namespace, face in ((link.a, "va"), (link.b, "vb")):
            ip("-n", namespace, "link", "set", face, "mtu", "65535")
        save("live_rate", {"capture": path.name if len(sys.argv) > 1 else "generated", **measure(link, path)})


def measure(link: Link, path: Path, consume: Consumer = len) -> dict[str, Any]:
    """Every rate once; `consume` is what is done with a block, in the thread that captures."""
    packets = _replayed(link, path, ["--pps", "10000", "--limit", "1000000"])["sent"]
    rows = [replay(link, path, packets, rate, consume) for rate in RATES]
    whole = [row for row in rows if row["kernel_drops"] == 0 and row["received"] == row["sent"]]
    best = max(whole, key=lambda row: float(row["pps"]), default=None)
    return {"highest_rate_without_a_drop": best, "rates": rows}


def replay(link: Link, path: Path, packets: int, rate: int, consume: Consumer) -> dict[str, Any]:
    """One rate: what was sent, received and dropped."""
    loops = max(1, round((rate or 300_000) * SECONDS / packets))
    speed = ["--pps", str(rate)] if rate else ["--topspeed"]
    sender = {}
    with inside(link.b, lambda: LiveCapture(["vb"])) as capture:

        def send() -> None:
            sender.update(_replayed(link, path, [*speed, "--preload-pcap", "--loop", str(loops)]))

        thread = threading.Thread(target=send)
        received = quiet = 0
        before = time.process_time()
        for block in capture:
            if not thread.ident:
                thread.start()
            consume(block)
            received += len(block)
            quiet = 0 if len(block) or thread.is_alive() else quiet + 1
            if quiet == SETTLED_ROUNDS:
                break
        thread.join()
        used = time.process_time() - before
        counters = dict(capture.counters)
    return {
        "asked_pps": rate or "topspeed",
        **sender,
        "received": received,
        "kernel_drops": counters["kernel_drops"],
        "ring_freezes": counters["ring_freezes"],
        "cpu_microseconds_a_packet": round(used / max(received, 1) * 1e6, 3),
    }


def _replayed(link: Link, path: Path, flags: list[str]) -> dict[str, Any]:
    """Run tcpreplay; what it says that it sent."""
    command = ["ip", "netns", "exec", link.a, "tcpreplay", "-i", "va", *flags, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    sent = re.search(r"Successful packets:\s+(\d+)", ran.stdout)
    rated = re.search(r"Rated: [\d.]+ Bps, ([\d.]+) Mbps, ([\d.]+) pps", ran.stdout)
    if sent is None or rated is None:
        raise SystemExit(f"tcpreplay failed: {ran.stderr.strip() or ran.stdout.strip()}")
    return {"sent": int(sent[1]), "pps": round(float(rated[2])), "mbps": round(float(rated[1]))}


def made_capture(path: Path, packets: int = 20_000) -> Path:
    """UDP packets of 2,000 conversations, in the sizes of ordinary traffic, to a host that does not answer."""
    sizes = (60, 60, 60, 120, 576, 1514, 1514)
    with path.open("wb") as file:
        file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for k in range(packets):
            size = sizes[k % len(sizes)]
            source, target = struct.pack("!BBH", 10, 1, k % 2000), b"\x0a\x02\x00\x01"
            ip_header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, size - 14, k % 65536, 0, 64, 17, 0, source, target)
            udp = struct.pack("!HHHH", 1024 + k % 2000, 53, size - 34, 0)
            frame = b"\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00" + ip_header + udp
            file.write(struct.pack("=IIII", k // 10_000, k % 10_000 * 100, size, size) + frame.ljust(size, b"."))
    return path


if __name__ == "__main__":
    main()
