"""The console in a real browser, on a daemon that runs: every flow of an operator, from a look to an answer."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import browser, counting_events, shows, until
from daemon_process import free_port

from netclust.datasets.simulators.capture_simulator import simulate_capture

pytestmark = pytest.mark.system

PATIENCE = 60_000
SIZE = {"width": 1360, "height": 900}


class Console:
    """`netclust watch --console` on a capture, which it shows until it is stopped."""

    def __init__(self, folder: Path, capture: Path) -> None:
        self.folder, self.capture, self.port = folder, capture, free_port()
        self.start()

    def start(self) -> None:
        self.out = (self.folder / "out").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "netclust", "watch", str(self.capture), "--console", "--warmup", "1500",
             "--http", f"127.0.0.1:{self.port}", "--state-dir", str(self.folder / "state")],
            stdout=self.out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        limit = time.monotonic() + 90
        while "console: " not in self.text():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < limit, self.text()
            time.sleep(0.1)

    def text(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def address(self) -> str:
        found = re.search(r"console: (\S+)", self.text())
        assert found is not None
        return found[1]

    @property
    def plain(self) -> str:
        """Without the token."""
        return self.address.split("#")[0]

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.out.close()
        return code


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("day") / "day.pcap"
    simulate_capture(path, hours=0.4, seed=5, attacks="all", campaigns_per_hour=30)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def console(chromium: Any, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    running = Console(tmp_path_factory.mktemp("console"), capture)
    yield running
    if running.process.poll() is None:
        assert running.stop() == 0
        assert "anomalous" in running.text()


@pytest.fixture
def page(chromium: Any, console: Console) -> Iterator[Any]:
    """A page that is signed in as eve; what goes wrong in it fails the test."""
    context = chromium.new_context(viewport=SIZE, timezone_id="Asia/Tokyo", accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.add_init_script("localStorage.setItem('netclust.by', 'eve')")
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(console.address)
    opened.wait_for_selector("h1")
    yield opened
    context.close()
    assert wrong == []
    assert all(url.startswith((console.plain, "blob:")) for url in asked), "nothing is asked of another host"


def api(page: Any, path: str) -> Any:
    return page.evaluate("path => fetch('/api/v1/' + path).then(r => r.json())", path)


def waiting(page: Any) -> list[Any]:
    """The backlog, once there is one."""
    until(lambda: api(page, "backlog?limit=100")["backlog"])
    return list(api(page, "backlog?limit=100")["backlog"])


def go(page: Any, console: Console, route: str) -> None:
    page.goto(f"{console.plain}#/{route}")
    page.wait_for_selector("h1")


# Looking


def test_the_token_does_not_stay_in_the_address(page: Any) -> None:
    assert "token" not in page.url
    assert page.get_by_role("button", name="eve").or_(page.get_by_role("button", name="Signed in")).count()


def test_the_overview_says_what_is_wrong_and_goes_on_saying(page: Any) -> None:
    waiting(page)
    shows(page, "document.querySelector('h1').textContent.includes('need an answer')")

    def told() -> bool:  # the page follows the backlog by events, so it may be a moment behind
        first, headline = waiting(page)[0]["alert"], page.locator("h1").inner_text()
        return first["summary"] in headline or first["severity"] in headline

    until(told)
    counted = counting_events(page)
    until(lambda: counted() >= 3)
    for name in ("Records", "Verdicts", "Alerts over time", "root", "Drift", "window", "Checkpoint", "capture"):
        assert page.get_by_text(re.compile(name, re.I)).count(), name
    assert re.match(r"\(\d+\)", page.title())


def test_the_forest_shows_records_and_opens_clusters(page: Any, console: Console) -> None:
    waiting(page)
    go(page, console, "clusters")
    shows(page, "window.netclustForest?.nodes > 100")
    frames = page.evaluate("window.netclustForest.frames")
    shows(page, f"window.netclustForest.frames > {frames}")
    canvas = page.locator("canvas").first
    assert "cluster" in (canvas.get_attribute("aria-label") or "")
    box = canvas.bounding_box()
    assert box is not None
    tip = page.locator(".forest-tip")
    for at in range(0, int(box["width"] * 0.8), 5):  # along the band of the normal ones, until a record is pointed at
        page.mouse.move(box["x"] + box["width"] - 12 - at, box["y"] + box["height"] - 45 - at % 30)
        if tip.is_visible():
            break
    assert "record" in tip.inner_text()
    shows(page, "/source\\s*\\d/.test(document.querySelector('.forest-tip').textContent)")
    page.mouse.down()
    page.mouse.up()
    shows(page, "location.hash.startsWith('#/clusters/')")
    page.get_by_role("table").first.wait_for()


def test_the_past_can_be_looked_at_and_left(page: Any, console: Console) -> None:
    until(lambda: api(page, "forest/extent")["nodes"] > 20)
    go(page, console, "clusters")
    slider = page.get_by_role("slider").first
    slider.wait_for()
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    with page.expect_request(lambda request: "until=" in request.url):
        page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Live").click()
    shows(page, "window.netclustForest?.nodes > 0")


def test_an_alert_is_explained_on_one_page(page: Any, console: Console) -> None:
    found = next(entry["alert"] for entry in waiting(page) if entry["alert"]["records"] > 5)
    go(page, console, f"alerts/{found['id']}")
    page.get_by_role("heading", level=1, name=found["summary"]).wait_for()
    facts = api(page, f"alerts/{found['id']}")
    for section in ("Who and where", "Why it was told", "From its newest told record to the root", "Example records"):
        page.get_by_role("heading", name=section).wait_for()
    text = page.locator("main").inner_text()
    assert facts["alert"]["sources"][0]["value"] in text
    assert facts["alert"]["parts"][0]["name"] in text
    last = facts["path"][-1]
    assert last["kind"] in ("root", "reference")
    assert (last["record"].split()[-1]) in text
    assert facts["alert"]["examples"][0]["record"] in text
    # Records end on 2 January 2024 in UTC by the simulator's clock; the viewer sits in Tokyo.
    assert "GMT+9" in page.locator("time, [title]").evaluate_all("all => all.map(e => e.title).join(' ')")


def test_filters_can_be_copied_and_packets_taken_home(page: Any, console: Console, tmp_path: Path) -> None:
    found = next(
        entry["alert"]["id"]
        for entry in waiting(page)
        if api(page, f"alerts/{entry['alert']['id']}")["packets"]["available"]
    )
    go(page, console, f"alerts/{found}")
    filters = api(page, f"alerts/{found}")["filters"]
    page.get_by_role("button", name=re.compile("Copy.*BPF")).click()
    assert page.evaluate("navigator.clipboard.readText()") == filters["bpf"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download packets").click()
    download.value.save_as(tmp_path / "some.pcap")
    assert (tmp_path / "some.pcap").read_bytes()[:4].hex() in ("d4c3b2a1", "4d3cb2a1", "0a0d0d0a")
    page.get_by_text("The alert as JSON").click()
    assert f'"id": "{found}"' in page.locator("details pre").inner_text()


def test_search_and_filters_are_in_the_address(page: Any, console: Console) -> None:
    entity = waiting(page)[0]["alert"]["entity"]
    go(page, console, "alerts?view=all")
    rows = page.locator("ol.rows > li")
    shows(page, "document.querySelectorAll('ol.rows > li a').length > 1")
    page.keyboard.press("/")
    page.keyboard.type(entity)
    shows(page, "location.hash.includes('text=')")
    shows(
        page,
        "word => [...document.querySelectorAll('ol.rows > li')].every(li => li.textContent.includes(word))",
        entity,
    )
    assert rows.count() >= 1
    page.get_by_label("Severity").select_option("critical")
    shows(page, "location.hash.includes('severity=critical')")
    page.reload()
    assert page.get_by_label("Search alerts").input_value() == entity


def test_the_list_is_walked_by_keys(page: Any, console: Console) -> None:
    found = waiting(page)
    go(page, console, "alerts")
    shows(page, "document.querySelectorAll('ol.rows > li a').length > 1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    shows(page, f"location.hash.includes('{found[0]['alert']['id']}')")
    page.get_by_role("heading", level=1, name=found[0]["alert"]["summary"]).wait_for()  # a turn of pages closes dialogs
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")


# Answering


def test_one_key_answers_and_another_takes_it_back(page: Any, console: Console) -> None:
    before = waiting(page)
    one = before[-1]["alert"]["id"]
    go(page, console, f"alerts/{one}")
    page.get_by_role("button", name="Normal").wait_for()
    page.keyboard.press("n")
    page.get_by_text("It counts from record").first.wait_for()
    assert re.search(r"\d+ referents? relabelled", page.locator(".outcome").inner_text())
    assert one not in {entry["alert"]["id"] for entry in api(page, "backlog?limit=100")["backlog"]}
    page.keyboard.press("u")
    page.get_by_text("is taken back").first.wait_for()
    until(lambda: one in {entry["alert"]["id"] for entry in api(page, "backlog?limit=100")["backlog"]})
    labels = api(page, "labels?newest=true")["labels"]
    assert [(row["target_kind"], row["by"], row["status"]) for row in labels[:2]] == [
        ("undo", "eve", "applied"), ("alert", "eve", "applied"),
    ]  # fmt: skip


def test_an_attack_gets_its_name(page: Any, console: Console) -> None:
    one = waiting(page)[0]["alert"]["id"]
    go(page, console, f"alerts/{one}")
    page.get_by_role("button", name="Attack").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("my-worm")
    dialog.get_by_role("button", name="Save").click()
    page.get_by_text("It counts from record").first.wait_for()
    assert api(page, f"alerts/{one}")["labels"][0]["label"] == "attack:my-worm"
    go(page, console, "decisions")
    page.get_by_text("attack:my-worm").first.wait_for()


def test_a_mute_has_an_end_and_a_reason_and_can_be_removed(page: Any, console: Console) -> None:
    one = next(e["alert"] for e in waiting(page) if e["alert"]["entity_kind"] in ("source", "destination"))["id"]
    go(page, console, f"alerts/{one}")
    page.get_by_role("button", name="Mute").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("the scanner of our own")
    dialog.get_by_text("1 day").click()
    dialog.get_by_role("button", name="Mute").click()
    page.get_by_text(re.compile("Rule s-\\d+ hides this")).wait_for()
    (rule,) = api(page, "suppressions")["suppressions"]
    assert rule["reason"] == "the scanner of our own"
    assert rule["until"] > time.time_ns()
    assert one not in {entry["alert"]["id"] for entry in api(page, "backlog?limit=100")["backlog"]}
    page.get_by_role("button", name="Remove").first.click()
    until(lambda: not api(page, "suppressions")["suppressions"])


def test_without_a_token_an_answer_asks_for_one(chromium: Any, console: Console) -> None:
    context = chromium.new_context(viewport=SIZE)
    page = context.new_page()
    page.goto(console.plain)
    page.wait_for_selector("h1")
    one = waiting(page)[0]["alert"]["id"]
    go(page, console, f"alerts/{one}")
    page.get_by_role("button", name="Normal").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill("wrong, wrong, wrong, wrong")
    dialog.get_by_label("Your name").fill("bob")
    dialog.get_by_role("button", name="Sign in").click()
    dialog.get_by_text("not the daemon's").wait_for()
    dialog.get_by_label("Token").fill(console.address.split("token=")[1])
    dialog.get_by_role("button", name="Sign in").click()
    page.get_by_text("It counts from record").first.wait_for()
    page.keyboard.press("u")
    page.get_by_text("is taken back").first.wait_for()
    context.close()


# Restarts: last, since the daemon is another one afterwards


def test_a_restart_of_the_daemon_is_survived(page: Any, console: Console) -> None:
    before = {entry["alert"]["id"] for entry in waiting(page)}
    counted = counting_events(page)
    until(lambda: counted() >= 1)
    assert console.stop(signal.SIGKILL) != 0
    page.get_by_text(re.compile("not reachable")).first.wait_for()
    console.start()
    shows(page, "document.getElementById('connection').textContent.includes('Live')")
    here = counted()
    until(lambda: counted() > here + 1)
    assert before <= {alert["id"] for alert in api(page, "alerts?brief=true&limit=1000")["alerts"]}
    assert api(page, "forest/extent")["nodes"] > 0
