"""What the console costs, and how it feels, beside a daemon that takes 20,000 records a second.

    .venv/bin/python benchmarks/console.py [cost] [browser] [memory] [--seconds 600]

`cost`: processor time of the daemon a record, with three pages that listen and with none, in turns, in one run.
`browser`: a real Chromium on the other core: first paint, and the frames a second of a link forest of 10,000 records.
`memory`: what the pages take over time, and whether updates keep coming; the overview for twice as long, since it keeps
ten minutes by the second. Parts that are not named keep the result of the run before.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from common import ROOT, save
from daemon_rate import SOCKET
from loading import OTHER_CORE, WARM_UP, PinnedDaemon, make_pools, start_feeder, total
from soak import QUICK_SOCKET, QUICK_WARM_UP, slope

sys.path.insert(0, str(ROOT / "tests" / "helpers"))
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "streams"))

from browsing import browser, counting_events, shows

RATE = 20_000
PAGES = 3
TURN_SECONDS = 10.0
TURNS = 6
FRAMES = """async ([x, y, dragged]) => {
    const canvas = document.querySelector('canvas');
    const begin = window.netclustForest.frames, began = performance.now();
    for (let step = 0; performance.now() - began < 5000; step += 1) {
        await new Promise(requestAnimationFrame);
        const clientX = x + 90 * Math.sin(step / 5);
        const at = { pointerId: 1, isPrimary: true, buttons: 1, bubbles: true, clientY: y, clientX };
        if (dragged) canvas.dispatchEvent(new PointerEvent('pointermove', at));
    }
    return (window.netclustForest.frames - begin) / ((performance.now() - began) / 1000);
}"""
"""Frames a second over five seconds; dragged: the pointer moves with every frame, as a quick hand moves it."""
RESULT = ROOT / "benchmarks" / "results" / "console.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    if (os.cpu_count() or 1) > OTHER_CORE:
        os.sched_setaffinity(0, {OTHER_CORE})  # the browser inherits it: the daemon has a core to itself
    body: dict[str, Any] = {}
    if RESULT.exists():
        body = {k: v for k, v in json.loads(RESULT.read_text()).items() if k in PARTS}
    with tempfile.TemporaryDirectory() as folder:
        for part in given.parts:
            where = Path(folder, part)
            body[part] = PARTS[part](where) if part != "memory" else memory(where, given.seconds)
    save("console", body)


@contextmanager
def fed(folder: Path, seconds: float, rate: int = RATE, *, quick: bool = False) -> Iterator[PinnedDaemon]:
    """A daemon that has learned its site and is being fed."""
    folder.mkdir(exist_ok=True)
    pools = make_pools(folder, 4000 if quick else 50_000, 2)
    with PinnedDaemon(folder / "daemon", QUICK_SOCKET if quick else SOCKET) as daemon:
        daemon.ready()
        plan = [QUICK_WARM_UP if quick else WARM_UP, (seconds, rate, "mixed")]
        with start_feeder(daemon.feed_port, pools, plan) as feeder:
            daemon.until(lambda: daemon.status() and not daemon.status()["warming_up"], "the end of the warm-up")
            try:
                yield daemon
            finally:
                feeder.kill()
        daemon.stop()


def cost(folder: Path, turns: int = TURNS, seconds: float = TURN_SECONDS, rate: int = RATE) -> dict[str, Any]:
    """Processor time a record, of the whole process and of the detector's thread, without pages and with three."""
    found: dict[int, list[dict[str, float]]] = {0: [], PAGES: []}
    with fed(folder, 2 * turns * (seconds + 2) + 20, rate) as daemon:
        time.sleep(2.0)
        for _ in range(turns):
            for pages in found:
                with ExitStack() as opened:
                    for _ in range(pages):
                        opened.enter_context(listening(daemon))
                    time.sleep(1.0)
                    before = _used(daemon)
                    time.sleep(seconds)
                    after = _used(daemon)
                records = after["records"] - before["records"]
                found[pages].append({k: (after[k] - before[k]) / records * 1e6 for k in ("process", "detector")})
    shown: dict[str, Any] = {"records_per_second": rate, "pages": PAGES, "turns": turns, "turn_seconds": seconds}
    for what in ("process", "detector"):
        none, some = ([turn[what] for turn in found[pages]] for pages in (0, PAGES))
        pairs = [b / a for a, b in zip(none, some, strict=True)]
        shown[what] = {
            "microseconds_a_record_without": round(statistics.mean(none), 3),
            "microseconds_a_record_with": round(statistics.mean(some), 3),
            "ratio": round(statistics.mean(some) / statistics.mean(none), 4),
            "ratio_by_turn_sd": round(statistics.stdev(pairs), 4) if len(pairs) > 1 else None,
        }
    return shown


def _used(daemon: PinnedDaemon) -> dict[str, float]:
    """Records judged, and processor seconds so far."""
    fields = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        "records": float(total(daemon.metrics(), "netclust_verdicts_total")),
        "process": daemon.cpu_seconds(),
        "detector": (int(fields[11]) + int(fields[12])) / ticks,
    }


@contextmanager
def listening(daemon: PinnedDaemon) -> Iterator[None]:
    """A page's event stream, read to the end of the block."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
    connection.request("GET", "/api/v1/events")
    response = connection.getresponse()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set() and response.read1(65_536):
            pass

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5.0)
        connection.close()


def in_browser(folder: Path, rate: int = RATE, nodes: int = 10_000) -> dict[str, Any]:
    """First paint and frames, while the daemon takes its records."""
    with fed(folder, 240, rate) as daemon, browser() as chromium:
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{daemon.port}/")
        page.wait_for_selector("h1")
        page.wait_for_timeout(1500)
        paint = page.evaluate(
            "Object.fromEntries(performance.getEntriesByType('paint').map(p => [p.name, p.startTime]))"
        )
        return {
            "records_per_second": rate,
            "first_paint_ms": round(paint["first-paint"], 1),
            "first_contentful_paint_ms": round(paint["first-contentful-paint"], 1),
            "forest": _frames(page, daemon, nodes),
        }


def memory(folder: Path, seconds: float, rate: int = RATE, *, quick: bool = False) -> dict[str, Any]:
    """The pages' memory, and the updates that came, while the daemon takes its records."""
    with fed(folder, 3 * seconds + 120, rate, quick=quick) as daemon, browser() as chromium:
        page = chromium.new_page()
        shown: dict[str, Any] = {"records_per_second": rate}
        for name, route, long in (("overview", "", 2 * seconds), ("clusters", "clusters", seconds)):
            page.goto(f"http://127.0.0.1:{daemon.port}/#/{route}")
            page.wait_for_selector("h1")
            page.wait_for_timeout(2000)
            shown[name] = _memory(page, long)
        shown["records_judged"] = total(daemon.metrics(), "netclust_verdicts_total")
    return shown


def _frames(page: Any, daemon: PinnedDaemon, nodes: int) -> dict[str, Any]:
    """Frames a second of a full picture, at rest and while it is dragged."""
    page.goto(f"http://127.0.0.1:{daemon.port}/#/clusters")
    shows(page, f"window.netclustForest?.nodes >= {nodes}", seconds=180.0)
    box = page.locator("canvas").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown = {
        "nodes": page.evaluate("window.netclustForest.nodes"),
        "screen": page.viewport_size,
        "frames_per_second_live": round(page.evaluate(FRAMES, [x, y, False]), 1),
    }
    page.mouse.move(x, y)
    page.mouse.down()
    shown["frames_per_second_dragged"] = round(page.evaluate(FRAMES, [x, y, True]), 1)
    page.mouse.up()
    shown["draw_milliseconds"] = round(page.evaluate("window.netclustForest.drawMilliseconds"), 2)
    return shown


def _memory(page: Any, seconds: float) -> dict[str, Any]:
    """The page's heap after collection, over time, and how many updates came."""
    counted = counting_events(page)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    samples, began = [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        session.send("HeapProfiler.collectGarbage")
        metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        samples.append((passed, int(metrics["JSHeapUsedSize"]), int(metrics["Nodes"])))
        page.wait_for_timeout(max(1000, min(10_000, seconds * 50)))
    return {
        "seconds": round(seconds),
        "updates_per_second": round(counted() / (time.monotonic() - began), 3),
        "heap_mb_first": round(samples[0][1] / 2**20, 2),
        "heap_mb_last": round(samples[-1][1] / 2**20, 2),
        "elements_first": samples[0][2],
        "elements_last": samples[-1][2],
        "heap": slope([(at, heap) for at, heap, _ in samples]),
    }


PARTS: dict[str, Callable[..., dict[str, Any]]] = {"cost": cost, "browser": in_browser, "memory": memory}

if __name__ == "__main__":
    main()
