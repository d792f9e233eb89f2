"""The console for everybody: screen readers, keyboards, small and large screens, light and dark, any time zone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from browsing import browser, shows
from console_cases import grown, saved_of
from http_cases import TOKEN, FakeControl
from needed import need_module
from store_cases import START, told

from netclust.stream.alerts.alert_events import AttributeNote, Count
from netclust.stream.console.forest import Step
from netclust.stream.daemon.http_app import make_app
from netclust.stream.http.server import HttpServer, serve
from netclust.stream.store.store import Store

pytestmark = pytest.mark.system

LONG = bool(os.environ.get("NETCLUST_LONG"))
EVERY_RULE: dict[str, Any] = {}
COLOURS: dict[str, Any] = {"runOnly": ["cat.color"]}  # all that a scheme changes: the elements are the same
ROUTES = ("", "alerts", "alerts?view=all", "alerts/a-1", "clusters", "clusters/41", "decisions")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with Store(tmp_path_factory.mktemp("console") / "netclust.db") as store:
        control = FakeControl(store)
        seen: dict[str, float | str | None] = {"record": "0:1", "source": "10.0.0.7", "destination": "192.0.2.1"}
        more: dict[str, Any] = {
            "examples": [seen, {**seen, "record": "0:2"}], "margin": 3.5, "normal_record": "reference 3",
            "parts": [
                AttributeNote(name="duration", contribution=4.0, value=9.0, normal=0.5),
                AttributeNote(name="flag", contribution=-0.5, value="S0", normal="SF"),
            ],
            "destinations": [Count("192.0.2.1", 3)], "destination_count": 1,
        }  # fmt: skip
        for k, severity in enumerate(("low", "medium", "high", "critical"), 1):
            store.save_events([told(f"a-{k}", severity=severity, **more)])
        store.add_label("a-4", "attack:scan", by="eve", why="seen before")
        summary = {
            "id": 41, "label": "novel", "records": 3, "anomalous": 3, "first_time": START, "last_time": START,
            "top_score": 1.0,
        }  # fmt: skip
        store.save_clusters([type("Summary", (), summary)()])  # type: ignore[list-item]
        grown(control.view.forest, [-1, 0, 1, 1, 2], cluster=41)
        grown(control.view.forest, [-2] * 20, first=5, cluster=0, verdict=0)
        control.view.history.save_nodes(saved_of(control.view.forest))
        path = [Step(kind="record", record="0:9", label="novel", hops=3), Step(kind="root", record="root", hops=0)]
        control.view.history.save_paths({"a-1": path})
        running = serve(make_app(control), "127.0.0.1:0")
        yield running
        control.view.hub.close()
        assert running.stop()


def opened(chromium: Any, server: HttpServer, route: str, **how: Any) -> Any:
    page = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **how}).new_page()
    page.goto(f"{server.url}/#token={TOKEN}")
    page.goto(f"{server.url}/#/{route}")
    page.wait_for_selector("h1")
    shows(page, "document.getElementById('connection').textContent.includes('Live')")
    page.wait_for_timeout(400)
    return page


@pytest.mark.parametrize("route", ROUTES)
def test_axe_finds_nothing_and_every_screen_is_wide_enough(chromium: Any, server: HttpServer, route: str) -> None:
    axe = need_module("axe_playwright_python.sync_playwright")
    page = opened(chromium, server, route)
    for scheme, rules in (("light", EVERY_RULE), ("dark", EVERY_RULE if LONG else COLOURS)):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        found = axe.Axe().run(page, options={**rules, "resultTypes": ["violations"]}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == [], scheme
    for width in (360, 768, 3840):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 13
    page.context.close()


def test_a_chosen_theme_stays(chromium: Any, server: HttpServer) -> None:
    page = opened(chromium, server, "", color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator("#theme").click()
    dark = page.evaluate(colour)
    assert dark != light
    page.reload()
    page.wait_for_selector("h1")
    assert page.evaluate(colour) == dark
    page.context.close()


def test_times_are_the_viewers(chromium: Any, server: HttpServer) -> None:
    """It began on 1 January at 0:00 UTC: in New York it was still the last evening of the old year."""
    page = opened(chromium, server, "alerts/a-1", timezone_id="America/New_York")
    shown = page.locator(".alert-facts").inner_text()
    assert "31 Dec 2025" in shown
    assert "19:00" in shown
    page.context.close()


def test_everything_can_be_reached_by_the_keyboard(chromium: Any, server: HttpServer) -> None:
    page = opened(chromium, server, "alerts/a-1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "Skip to the content" or page.evaluate(
        "document.activeElement !== document.body"
    )
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.textContent.trim().slice(0, 12)"))
    assert {"Overview", "Decisions"} <= seen
    assert any(text.startswith("Normal") for text in seen)
    assert any(text.startswith("Mute") for text in seen)
    page.context.close()
