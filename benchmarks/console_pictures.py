"""Pictures of the console for README and documents: light and dark, from the simulated day of `make demo`.

.venv/bin/python benchmarks/console_pictures.py [docs/pictures]
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import ROOT

sys.path.insert(0, str(ROOT / "tests" / "helpers"))
sys.path.insert(0, str(ROOT / "tests" / "helpers" / "streams"))

from browsing import browser, shows, until
from daemon_process import free_port

DAY = ROOT / "demo" / "today.pcap"
PACE = "120"
SCREEN = {"width": 1280, "height": 860}
COLOURS = 256
"""Of a picture's palette: a page has few."""


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
    if not DAY.exists():
        raise SystemExit(f"{DAY}: not there: `make demo` simulates it")
    with tempfile.TemporaryDirectory() as state, browser() as chromium:
        command = [
            sys.executable, "-m", "netclust", "watch", str(DAY), "--console", "--pace", PACE,
            "--http", f"127.0.0.1:{free_port()}", "--state-dir", state,
        ]  # fmt: skip
        said = Path(state, "said")  # a pipe that nobody reads would hold up its alerts
        with said.open("w") as out:
            watching = subprocess.Popen(command, stdout=out)
        try:
            found = until(lambda: re.findall(r"console: (\S+)", said.read_text()))
            take(chromium, found[0], folder)
            watching.send_signal(signal.SIGINT)
            watching.wait(60)
        finally:
            watching.kill()


def take(chromium: Any, address: str, folder: Path) -> None:
    """All pictures; the day has to have come some way before there is something to see."""
    url = address.split("#")[0]
    pages = {
        scheme: chromium.new_context(
            viewport=SCREEN, color_scheme=scheme, timezone_id="Europe/Vienna", locale="en-GB"
        ).new_page()
        for scheme in ("light", "dark")
    }
    for page in pages.values():
        page.goto(address)
        page.wait_for_selector("h1")
    first = pages["light"]
    shows(
        first,
        "fetch('/api/v1/alerts?limit=1000&brief=true').then(r => r.json()).then(j => j.alerts.length >= 16)",
        seconds=200,
    )
    alert = first.evaluate(
        "fetch('/api/v1/alerts?text=dns_exfiltration&brief=true').then(r => r.json()).then(j => j.alerts[0]?.id)"
    )
    for name, route in (("overview", ""), ("clusters", "clusters"), ("alert", f"alerts/{alert}"), ("alerts", "alerts")):
        for scheme, page in pages.items():
            page.goto(f"{url}#/{route}")
            page.wait_for_selector("h1")
            page.wait_for_timeout(2500)
            save(page.screenshot(), folder / f"console-{name}-{scheme}.png")


def save(picture: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    import io

    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
