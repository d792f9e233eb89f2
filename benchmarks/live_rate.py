"""How many packets a second live capture takes without a drop: tcpreplay at rising rates between two namespaces.

    sudo .venv/bin/python benchmarks/live_rate.py [CAPTURE.pcap]

A simulated capture is replayed, once received only, once followed to finished records. Sender and receiver share
the machine, and tcpreplay takes a core: the highest rate without a drop is a lower bound.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, save

sys.path.insert(0, str(ROOT / "tests" / "helpers"))
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "streams"))  # the same namespaces as the tests'

from namespaces import Link, inside, ip, joined

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.kernels.packets.flow_layout import RECORD
from netclust.stream.packets.connections import connection_maker
from netclust.stream.packets.flow_table import FlowTable
from netclust.stream.packets.live import LiveCapture
from netclust.stream.packets.packet_blocks import INDEX, PacketBlock

RATES = (10_000, 30_000, 100_000, 200_000, 300_000, 0)  # packets a second; 0 is as fast as tcpreplay can
SECONDS = 3.0
SETTLED_ROUNDS = 3  # heartbeats without a packet after which nothing more will come

Consumer = Callable[[PacketBlock], object]


def main() -> None:
    if shutil.which("tcpreplay") is None or shutil.which("ip") is None:
        raise SystemExit("skipped: needs tcpreplay and ip (iproute2)")
    with tempfile.TemporaryDirectory() as folder, joined() as link:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "simulated.pcap")
        if len(sys.argv) < 2:
            simulate_capture(
                path, hours=0.25, seed=1, attacks="port_scan,syn_flood", start="2024-01-01T10:00:00Z", snaplen=0,
                clients="10.77.0.0/25", servers="10.77.0.128/25", hosts=20,
            )  # fmt: skip
        for namespace, face in ((link.a, "va"), (link.b, "vb")):
            ip("-n", namespace, "link", "set", face, "mtu", "65535")
        table, records = FlowTable(), connection_maker("flow", context=False)

        def follow(block: PacketBlock) -> None:
            if len(ended := table.feed(block)):
                records.table(ended)

        follow(PacketBlock(np.zeros(64, np.uint8), np.zeros(1, INDEX)))  # kernels loaded
        records.table(np.zeros(1, RECORD))
        body = {"received": measure(link, path), "followed_to_records": measure(link, path, follow)}
        save("live_rate", {"capture": path.name, **body})


def measure(link: Link, path: Path, consume: Consumer = len) -> dict[str, Any]:
    """Every rate once; `consume` is what is done with a block, in the thread that captures."""
    packets = replayed(link, path, ["--pps", "10000", "--limit", "1000000"])["sent"]
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
            sender.update(replayed(link, path, [*speed, "--preload-pcap", "--loop", str(loops)]))

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


def replayed(link: Link, path: Path, flags: list[str]) -> dict[str, Any]:
    """Run tcpreplay; what it says that it sent."""
    command = ["ip", "netns", "exec", link.a, "tcpreplay", "-i", "va", *flags, str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    sent = re.search(r"Successful packets:\s+(\d+)", ran.stdout)
    rated = re.search(r"Rated: [\d.]+ Bps, ([\d.]+) Mbps, ([\d.]+) pps", ran.stdout)
    if sent is None or rated is None:
        raise SystemExit(f"tcpreplay failed: {ran.stderr.strip() or ran.stdout.strip()}")
    return {"sent": int(sent[1]), "pps": round(float(rated[2])), "mbps": round(float(rated[1]))}


if __name__ == "__main__":
    main()
