"""How much the daemon takes on one core: records over a socket, a Zeek log, captures, live packets; and a peer.

    .venv/bin/python benchmarks/daemon_rate.py [socket] [zeek] [capture] [live] [peer]

The daemon and all its threads are on one core, who feeds it is on the other; where that is allowed, both come before
other processes. Settings are the defaults: warm-up, window, checkpoints, store, a file of alerts. `sustained` is the
highest rate with nothing dropped and a 99th percentile of latency under a second. Parts that are not named keep the
result of the run before.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import RESULTS, save, timed
from loading import (
    OTHER_CORE,
    PRIORITY,
    WARM_UP,
    PinnedDaemon,
    Watch,
    balance,
    feed,
    latency_counts,
    make_pools,
    pinned,
    quantile,
    total,
    until_drained,
)

SECONDS = 8.0
RECORD_RATES = (20_000, 30_000, 40_000, 45_000, 50_000, 55_000, 60_000)
PACKET_RATES = (20_000, 50_000, 100_000, 150_000, 200_000, 300_000)
DROPS = "netclust_kernel_drops_total"
SOCKET = '[[source]]\nkind = "records"\npath = "tcp://127.0.0.1:{port}"\n'
RATED = {"records_per_second": 20_000, "packets_per_second": 100_000}
"""On one core; a round figure at or below half of what was sustained."""
SLIPS = {
    "source": "Slips, docs/immune/stress_testing.md: its soak, in flows",
    "input_per_second": round(8_686 / 60),
    "processed_per_second": round(4_975 / 60),
    "p99_latency_seconds": 1207,
}


def main() -> None:
    wanted = sys.argv[1:] or ["socket", "zeek", "capture", "live", "peer"]
    before = RESULTS / "daemon_rate.json"
    body: dict[str, Any] = {
        "rated_on_one_core": RATED,
        "pinned": bool(pinned(0)),
        "priority": PRIORITY if os.geteuid() == 0 else 0,
    }
    if before.exists():
        old = json.loads(before.read_text())
        body |= {name: old[name] for name in ("socket", "zeek", "capture", "live", "peer") if name in old}
    if pinned(OTHER_CORE):
        os.sched_setaffinity(0, {OTHER_CORE})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the daemon may give up root
        for part in wanted:
            body[part] = PARTS[part](folder)
    body["slips_published"] = SLIPS
    save("daemon_rate", body)


# Records over TCP


def sockets(folder: Path) -> dict[str, Any]:
    """A day's mix, and a flood in which everything is anomalous; then as much as is taken."""
    pools = make_pools(folder)
    return {pool: _socket(folder / f"socket-{pool}", pools, pool) for pool in ("mixed", "flood")}


def _socket(folder: Path, pools: dict[str, Path], pool: str) -> dict[str, Any]:
    with PinnedDaemon(folder, SOCKET) as daemon:
        daemon.ready()
        sent = feed(daemon.feed_port, pools, [WARM_UP]).sent
        until_drained(daemon, sent)
        rows = []
        for rate in (*RECORD_RATES, 0):
            before, cpu = daemon.metrics(), daemon.cpu_seconds()
            with Watch(daemon) as seen:
                fed = feed(daemon.feed_port, pools, [(SECONDS, rate, pool)])
            cpu = daemon.cpu_seconds() - cpu
            sent += fed.sent
            after = until_drained(daemon, sent)
            judged = balance(after)["verdicts"] - balance(before)["verdicts"]
            rows.append({
                "asked": rate or "as much as is taken",
                "sent_per_second": round(fed.sent / fed.seconds),
                "verdicts_per_second": round(judged / fed.seconds),
                "shed": balance(after)["shed"] - balance(before)["shed"],
                "cpu_share": round(cpu / fed.seconds, 2),
                "cpu_microseconds_a_record": round(cpu / max(judged, 1) * 1e6, 2),
                "kernel_queue_bytes": max(waiting for _, waiting in seen.waiting),
                **_latency(after, before),
            })  # fmt: skip
            print(pool, rows[-1], flush=True)
        daemon.stop()
    return {"sustained_records_per_second": _sustained(rows, "sent_per_second"), "rates": rows}


def _latency(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    counts = latency_counts(after), latency_counts(before)
    return {f"p{round(100 * q)}_seconds": round(quantile(q, *counts), 3) for q in (0.5, 0.99)}


def _sustained(rows: list[dict[str, Any]], key: str) -> int:
    kept = [
        row[key]
        for row in rows
        if not isinstance(row["asked"], str)
        and not row["shed"]
        and row["p99_seconds"] < 1
        and row[key] > 0.98 * row["asked"]
    ]
    return int(max(kept, default=0))


# Files


def zeek(folder: Path) -> dict[str, Any]:
    """A conn.log in Zeek's own format, of the connections of a simulated capture."""
    from conn_logs import ZEEK_HEADER, loggable, zeek_tsv

    from netclust.stream.packets.capture_files import CaptureFile
    from netclust.stream.packets.capture_reader import flow_records
    from netclust.stream.packets.flow_table import FlowTable

    log = folder / "conn.log"
    with log.open("w") as file:
        file.write(ZEEK_HEADER)
        for ended in flow_records(CaptureFile(_capture(folder)), FlowTable()):
            file.writelines(zeek_tsv(loggable(ended)))
    return _whole_file(folder / "zeek", f'[[source]]\nkind = "zeek"\npath = "{log}"\n')


def captures(folder: Path) -> dict[str, Any]:
    """A capture as flows, and as connections."""
    path = _capture(folder)
    source = '[[source]]\nkind = "capture"\npath = "{}"\n[model]\npath = "{}"\n'
    return {
        schema: _whole_file(folder / f"capture-{schema}", source.format(path, schema)) for schema in ("flow", "conn")
    }


def _capture(folder: Path) -> Path:
    from netclust.datasets.simulators.capture_simulator import simulate_capture

    path = folder / "simulated.pcap"
    if not path.exists():
        simulate_capture(path, hours=12, seed=1, attacks="all", scale=3.0)
    return path


def _whole_file(folder: Path, source: str) -> dict[str, Any]:
    """A file as fast as it goes: what came between the first and the last look at the daemon, which waits for it."""
    looks: list[tuple[float, float, dict[str, float]]] = []
    warm = 0.0
    with PinnedDaemon(folder, source) as daemon:
        daemon.until(lambda: daemon.get("/healthz")[0] == 200, "the daemon to listen")
        while daemon.process is not None and daemon.process.poll() is None:
            try:
                cpu, sample = daemon.cpu_seconds(), daemon.metrics()
            except (OSError, ValueError):
                break
            warm = warm or (time.monotonic() if sample.get("netclust_warmup_progress_ratio") == 1.0 else 0.0)
            if (
                sample and warm and time.monotonic() - warm > 1.0
            ):  # what had waited for the end of the warm-up is through
                looks.append((time.monotonic(), cpu, sample))
            time.sleep(0.25)
        code = daemon.wait()
    (began, cpu_before, before), (ended, cpu_after, after) = looks[0], looks[-1]
    seconds = ended - began
    found: dict[str, Any] = {"exit_code": code, "seconds": round(seconds, 2)}
    for what in ("packets", "records"):
        count = total(after, f"netclust_{what}_total") - total(before, f"netclust_{what}_total")
        if count:
            found[f"{what}_per_second"] = round(count / seconds)
            found[f"cpu_microseconds_a_{what[:-1]}"] = round((cpu_after - cpu_before) / count * 1e6, 2)
    found |= _latency(after, before)
    print(folder.name, found, flush=True)
    return found


# Live packets


class _InNamespace(PinnedDaemon):
    """A daemon whose interface and HTTP are in a network namespace."""

    namespace = ""

    def get(self, path: str) -> tuple[int, bytes]:
        from namespaces import inside

        return inside(self.namespace, lambda: super(_InNamespace, self).get(path))


def live(folder: Path) -> dict[str, Any]:
    """Packets on a veth pair, sent by tcpreplay."""
    if os.geteuid() != 0 or shutil.which("tcpreplay") is None or shutil.which("ip") is None:
        return {"skipped": "needs root, tcpreplay and ip (iproute2)"}
    from live_rate import replayed
    from namespaces import ip, joined

    from netclust.datasets.simulators.capture_simulator import simulate_capture

    path = folder / "live.pcap"
    made = simulate_capture(
        path, hours=0.5, seed=1, attacks="port_scan,syn_flood", start="2024-01-01T10:00:00Z", snaplen=0,
        clients="10.77.0.0/25", servers="10.77.0.128/25", hosts=20,
    )  # fmt: skip
    with joined() as link:
        for namespace, face in ((link.a, "va"), (link.b, "vb")):
            ip("-n", namespace, "link", "set", face, "mtu", "65535")
        source = '[[source]]\nkind = "live"\ninterfaces = ["vb"]\n'
        daemon = _InNamespace(folder / "live", source, prefix=["ip", "netns", "exec", link.b])
        daemon.namespace = link.b
        rows = []
        with daemon:
            daemon.ready()
            for rate in PACKET_RATES:
                before, cpu = daemon.metrics(), daemon.cpu_seconds()
                loops = max(1, round(rate * SECONDS / made.packets))
                ran = replayed(link, path, ["--pps", str(rate), "--preload-pcap", "--loop", str(loops)])
                time.sleep(2.0)
                after, cpu = daemon.metrics(), daemon.cpu_seconds() - cpu
                row = {
                    "asked": rate,
                    "sent_per_second": ran["pps"],
                    "sent": ran["sent"],
                    "packets": total(after, "netclust_packets_total") - total(before, "netclust_packets_total"),
                    "kernel_drops": total(after, DROPS) - total(before, DROPS),
                    "records": balance(after)["read"] - balance(before)["read"],
                    "shed": balance(after)["shed"] - balance(before)["shed"],
                    "cpu_share": round(cpu / (ran["sent"] / ran["pps"]), 2),
                    **_latency(after, before),
                }  # fmt: skip
                row["shed"] += row["kernel_drops"]
                rows.append(row)
                print("live", row, flush=True)
            daemon.stop()
    whole = [row["sent_per_second"] for row in rows if not row["shed"] and row["packets"] == row["sent"]]
    return {"sustained_packets_per_second": max(whole, default=0), "rates": rows}


# A peer


def peer(folder: Path) -> dict[str, Any]:
    """river's half-space trees, scoring and learning the same records from dicts that are made beforehand."""
    from river import anomaly, preprocessing

    from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate

    table = simulate(6000, seed=12, attacks=(*KNOWN, *HELD_BACK), attack_share=0.2).table()
    names = [a.name for a in table.schema.numeric]
    dicts = [dict(zip(names, row, strict=True)) for row in table.num.tolist()]
    scaler = preprocessing.MinMaxScaler()
    trees = anomaly.HalfSpaceTrees(n_trees=25, height=8, window_size=250, seed=0)

    def run() -> None:
        for x in dicts:
            scaler.learn_one(x)
            scaled = scaler.transform_one(x)
            trees.score_one(scaled)
            trees.learn_one(scaled)

    seconds = timed(run)
    return {"river_half_space_trees_records_per_second": round(len(dicts) / seconds), "trees": 25}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "socket": sockets,
    "zeek": zeek,
    "capture": captures,
    "live": live,
    "peer": peer,
}

if __name__ == "__main__":
    main()
