"""A real Chromium for tests of the console: Debian's, without a screen, that asks nobody else anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from needed import need_module, need_program

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, driven by Playwright; the test skips where either is missing."""
    found = need_program("chromium")
    playwright = need_module("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        try:
            yield opened
        finally:
            opened.close()


def counting_events(page: Any, kind: str = "overview") -> Callable[[], int]:
    """How many events of a kind the page has had from now on."""
    page.evaluate(
        """async (kind) => {
            const { events } = await import("/console/api.js");
            window.counted = 0;
            window.counting?.();
            window.counting = events.on(kind, () => { window.counted += 1; });
        }""",
        kind,
    )
    return lambda: int(page.evaluate("window.counted"))


def until(true: Callable[[], Any], seconds: float = 90.0) -> Any:
    """Wait for something; what it gave."""
    limit = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.1)
    return found


def shows(page: Any, expression: str, argument: Any = None, seconds: float = 90.0) -> Any:
    """Wait until an expression is true in the page: Playwright's own waiting needs `eval`, which the page forbids."""
    return until(lambda: page.evaluate(expression, argument), seconds)
