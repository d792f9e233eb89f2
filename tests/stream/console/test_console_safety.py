"""The console against those who wish it ill: hostile records, other sites, guessed tokens."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import browser, shows, until
from console_cases import batch_of, verdicts_of
from http_cases import TOKEN, FakeControl
from store_cases import START, told

from netclust.stream.alerts.alert_events import AttributeNote, Count
from netclust.stream.daemon.http_app import make_app
from netclust.stream.http.server import HttpServer, serve
from netclust.stream.store.store import Store

pytestmark = pytest.mark.system

EVIL = [
    "<script>window.owned = 1</script>",
    "<img src=x onerror='window.owned = 1'>",
    "javascript:window.owned=1//",
    "\u202eevil\u2066\x1b[31m\x00\x07",
    "'\"><svg/onload=window.owned=1>",
    "W" * 250,
]
WATCH = """
window.owned = 0;
window.violations = [];
document.addEventListener('securitypolicyviolation', (e) => window.violations.push(e.violatedDirective));
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture
def control(tmp_path: Path) -> Iterator[FakeControl]:
    with Store(tmp_path / "netclust.db") as store:
        made = FakeControl(store)
        for k, evil in enumerate(EVIL):
            example = {"source": evil, "destination": evil, "name": evil, evil: evil, "record": f"0:{k}"}
            store.save_events([
                told(
                    f"a-{k}", entity=evil, summary=evil, explanation=f"{evil}\n  {evil}", label=evil, service=evil,
                    labels=[Count(evil, 3)], sources=[Count(evil, 3)], destinations=[Count(evil, 1)],
                    ports=[Count(evil, 1)], example=example, examples=[example, example], normal_record=evil,
                    parts=[AttributeNote(name=evil, contribution=1.0, value=evil, normal=evil)], margin=1.0,
                    clusters=[40 + k],
                ),
            ])  # fmt: skip
            store.add_label(f"a-{k}", "normal", by=evil.replace("\x00", "")[:100], why=evil.replace("\x00", ""))
            cluster = type(
                "Summary", (), {
                    "id": 40 + k, "label": evil, "records": 1, "anomalous": 1, "first_time": START, "last_time": START,
                    "top_score": 1.0,
                },
            )  # fmt: skip
            store.save_clusters([cluster()])  # type: ignore[list-item]
            made.view.forest.take(
                k, batch_of(1, k), verdicts_of([-1], 40 + k), ["normal"], None,
                lambda rows, evil=evil: {"source": [evil] * len(rows), evil: [evil] * len(rows)}, now=0,  # type: ignore[misc]
            )  # fmt: skip
        three = {"normal": 1, "known_attack": 0, "novel": 0}
        made.view.now = {
            "sources": {EVIL[0]: {"kind": EVIL[1], "ended": False, "waiting": 0, "trouble": EVIL[4]}},
            "troubles": {EVIL[1]: EVIL[0]}, "time": START, "records": 1, "records_per_second": 1.0, "verdicts": three,
            "rates": three, "alerts": {"open": 6, "opened": 6, "by_severity": {}}, "drift": {EVIL[0]: 1.0},
            "drift_watched": True, "window": {"referents": 1, "capacity": 2}, "phase": "running", "warming_up": False,
            "warmth": 1.0, "checkpoint_age": 1.0, "latency": 0.1, "queue": 0, "shed": 0, "drops": 0, "skipped": 0,
            "shed_per_second": 0, "drops_per_second": 0, "root_rate": 0.0, "anomalous_share": 0.0, "version": "0",
            "traffic_time": START, "model": EVIL[0], "schema": EVIL[1],
        }  # fmt: skip
        yield made


@pytest.fixture
def server(control: FakeControl) -> Iterator[HttpServer]:
    running = serve(make_app(control), "127.0.0.1:0")
    yield running
    control.view.hub.close()
    assert running.stop()


def visit(chromium: Any, url: str) -> tuple[Any, list[str]]:
    page = chromium.new_context(viewport={"width": 360, "height": 800}).new_page()
    page.add_init_script(WATCH)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: (trouble.append("dialog"), dialog.dismiss()))
    page.goto(url)
    page.wait_for_selector("h1")
    return page, trouble


def turn_to(page: Any, path: str) -> None:
    """Another page of the console without loading it anew: it is there when its own heading is."""
    page.evaluate("document.querySelector('main h1').dataset.old = 1")
    page.evaluate("path => { location.hash = '#/' + path; }", path)
    shows(page, "document.querySelector('main h1:not([data-old])') !== null")


@pytest.mark.parametrize("route", ["", "alerts", "alerts?view=all", "clusters", "decisions", "alert", "cluster"])
def test_hostile_records_do_nothing_in_the_page(chromium: Any, server: HttpServer, route: str) -> None:
    one_by_one = {
        "alert": [f"alerts/a-{k}" for k in range(len(EVIL))],
        "cluster": [f"clusters/{40 + k}" for k in range(len(EVIL))],
    }
    paths = one_by_one.get(route, [route])
    page, trouble = visit(chromium, f"{server.url}/#/{paths[0]}")
    for path in paths:
        if path != paths[0]:
            turn_to(page, path)
        page.wait_for_timeout(300)
        assert page.evaluate("window.owned") == 0
        assert page.evaluate("window.violations") == []
        assert page.evaluate("document.querySelectorAll('main script, main img, main iframe, main object').length") == 0
        links = page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.protocol)")
        assert set(links) <= {"http:"}
        shown = page.locator("main").inner_text()
        assert not set(shown) & set("\x1b\x00\x07\u202e\u2066"), "control characters are shown as what they are"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "long words do not widen the page"
        assert trouble == []
    page.context.close()


def test_what_events_bring_is_inert_too(chromium: Any, server: HttpServer, control: FakeControl) -> None:
    page, trouble = visit(chromium, server.url)
    until(lambda: control.view.hub.listeners == 1)
    for evil in EVIL:
        brief = control.view.triage.found(["a-0"])[0]
        brief.id, brief.summary, brief.entity, brief.answer = "a-99", evil, evil, None
        control.view.hub.publish("alert", {"action": "open", "alert": brief})
    page.wait_for_timeout(800)
    assert page.evaluate("window.owned") == 0
    assert page.evaluate("window.violations") == []
    assert trouble == []
    page.context.close()


def test_the_policy_stops_what_would_get_through(chromium: Any, server: HttpServer) -> None:
    """If the page ever had such a hole, the browser would still not run what comes in by it."""
    page, _ = visit(chromium, server.url)
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            try { script.textContent = 'window.owned = 1'; } catch {}
            try { document.body.innerHTML = '<img src=x onerror="window.owned = 1">'; } catch {}
            try { document.body.append(script); } catch {}
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.owned") == 0
    assert page.evaluate("window.violations").count("require-trusted-types-for") >= 1
    page.context.close()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another site."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>elsewhere</h1><form method=post enctype=text/plain></form>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://localhost:{site.server_address[1]}"
        site.shutdown()


def test_another_site_changes_and_reads_nothing(
    chromium: Any, server: HttpServer, control: FakeControl, elsewhere: str
) -> None:
    before = len(control.store.labels()), len(control.store.suppressions())
    page = chromium.new_page()
    page.goto(elsewhere)
    asked = page.evaluate(
        """async ([url, token]) => {
            const body = JSON.stringify({target: 'a-1', label: 'attack:x', by: 'mallory'});
            const said = [];
            for (const options of [
                {method: 'POST', body, mode: 'no-cors'},
                {method: 'POST', body, headers: {'content-type': 'application/json', authorization: 'Bearer ' + token}},
                {method: 'GET'}, {method: 'GET', mode: 'no-cors'},
            ]) {
                try {
                    const answer = await fetch(url + '/api/v1/labels', options);
                    said.push(answer.type === 'opaque' ? 'opaque' : answer.status);
                } catch { said.push('refused'); }
            }
            return said;
        }""",
        [server.url, TOKEN],
    )
    assert set(asked) <= {"refused", "opaque"}
    page.evaluate("url => { const f = document.forms[0]; f.action = url + '/api/v1/reload'; f.submit(); }", server.url)
    page.wait_for_timeout(500)
    assert (len(control.store.labels()), len(control.store.suppressions())) == before
    assert control.changes == 0
    framed = chromium.new_page()
    framed.goto(elsewhere)
    framed.evaluate(
        "url => { const f = document.createElement('iframe'); f.src = url; document.body.append(f); }", server.url
    )
    framed.wait_for_timeout(800)
    assert not any(frame.locator("h1").count() for frame in framed.frames[1:] if server.url in frame.url)
    page.close()
    framed.close()


def test_a_guesser_is_told_to_wait_in_words(chromium: Any, server: HttpServer) -> None:
    page, _ = visit(chromium, f"{server.url}/#/alerts/a-1")
    page.get_by_role("button", name="Sign in").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("mallory")
    for k in range(14):
        dialog.get_by_label("Token").fill(f"guess number {k:08}")
        dialog.get_by_role("button", name="Sign in").click()
        shows(page, "document.querySelector('dialog .trouble').textContent.length > 0")
    assert "Too many" in dialog.inner_text()
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Sign in").click()
    page.wait_for_timeout(300)
    assert "Too many" in dialog.inner_text(), "the right one has to wait as well, or guessing would not be slowed"
    page.context.close()
