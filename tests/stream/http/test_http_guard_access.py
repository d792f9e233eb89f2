"""What a web page elsewhere, or somebody without the token, must not get; and what every answer must carry."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from http_cases import TOKEN
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from netclust.stream.http.guard import API_POLICY, PAGE_POLICY, Guard, RefusedError, json_response
from netclust.stream.http.rate_limits import WRITE_BURST, RequestLimits
from netclust.stream.http.server import serve

AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
WRONG = {"Authorization": "Bearer wrong"}
SESSION, ALERTS, PACKETS = "/api/v1/session", "/api/v1/alerts", "/api/v1/alerts/a-1/packets"
PAGES = ("/", "/console/app.js", "/favicon.ico")


class Site:
    """A guarded application that says whether it was reached; its clock stands still until told."""

    def __init__(self, *, loopback: bool = True, token: str = TOKEN) -> None:
        self.now = 0.0
        self.token = token
        self.reached = 0
        routes = [Route(path, self.answer) for path in (SESSION, "/api/v1/alerts/{id}/packets", "/metrics", "/healthz")]
        routes += [Route(ALERTS, self.answer, methods=["GET", "POST", "DELETE"])]
        routes += [Route(path, self.answer) for path in ("/", "/console/{name}", "/favicon.ico")]
        routes += [Route("/api/v1/broken", self.broken), Route("/api/v1/breaks", self.breaks)]
        limits = RequestLimits(clock=lambda: self.now)
        guard = Middleware(Guard, token=lambda: self.token, loopback=loopback, limits=limits)
        self.app = Starlette(routes=routes, middleware=[guard])

    async def answer(self, request: Request) -> Response:
        self.reached += 1
        return json_response({"authenticated": request.scope["netclust.authenticated"]})

    async def broken(self, request: Request) -> Response:
        raise ValueError("broken")

    async def breaks(self, request: Request) -> Response:
        async def parts() -> Any:
            yield b"x"
            raise RefusedError(400, "late", "too late to say")

        return StreamingResponse(parts())

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        server = serve(self.app, "127.0.0.1:0")
        try:
            with httpx.Client(base_url=server.url, trust_env=False, timeout=20) as opened:
                yield opened
        finally:
            assert server.stop()


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def client(site: Site) -> Iterator[httpx.Client]:
    with site.client() as opened:
        yield opened


def refused(answer: httpx.Response, code: int, error: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (code, error), answer.text


def post(client: httpx.Client, headers: dict[str, str] | None = None) -> httpx.Response:
    return client.post(ALERTS, json={}, headers=AUTHORIZED | (headers or {}))


# Pages of other sites

ELSEWHERE = ["https://evil.example", "null", "", "http://localhost", "http://127.0.0.1", "http://127.0.0.1:1", "file://",
             "http://127.0.0.1.evil.example:{port}", "https://127.0.0.1:{port}", "http://localhost:{port}",
             "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}@evil.example", "127.0.0.1:{port}",
             "http://127.0.0.1:{port} http://evil.example"]  # fmt: skip


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_a_page_elsewhere_changes_nothing(client: httpx.Client, site: Site, origin: str) -> None:
    origin = origin.format(port=client.base_url.port)
    for method in ("POST", "DELETE", "PUT", "PATCH", "OPTIONS"):
        answer = client.request(method, ALERTS, json={}, headers=AUTHORIZED | {"Origin": origin})
        refused(answer, 403, "cross_site")
    refused(client.get(ALERTS, headers={"Origin": origin}), 403, "cross_site")
    assert site.reached == 0


@pytest.mark.parametrize("where", ["cross-site", "same-site", "Cross-Site", "", "new-word", "same-origin, cross-site"])
def test_a_browser_that_names_another_page_is_believed(client: httpx.Client, site: Site, where: str) -> None:
    own = f"http://127.0.0.1:{client.base_url.port}"
    for headers in ({}, {"Origin": own}):
        refused(post(client, {"Sec-Fetch-Site": where, **headers}), 403, "cross_site")
        for path in (ALERTS, SESSION, PACKETS):
            refused(client.get(path, headers=AUTHORIZED | {"Sec-Fetch-Site": where}), 403, "cross_site")
    assert site.reached == 0


def test_a_second_header_does_not_hide_the_first(client: httpx.Client, site: Site) -> None:
    own = f"http://127.0.0.1:{client.base_url.port}"
    for name, good, bad in (("Origin", own, "https://evil.example"), ("Sec-Fetch-Site", "same-origin", "cross-site")):
        for values in ((good, bad), (bad, good)):
            headers = [*AUTHORIZED.items(), *((name, value) for value in values)]
            refused(client.post(ALERTS, json={}, headers=headers), 403, "cross_site")
    assert site.reached == 0


def test_the_console_itself_is_let_in(client: httpx.Client) -> None:
    port = client.base_url.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LocalHost:{port}", "localhost"):
        for where in ({}, {"Sec-Fetch-Site": "same-origin"}):
            assert post(client, {"Host": host, "Origin": f"http://{host.lower()}", **where}).status_code == 200
    assert post(client, {"Host": "localhost:80", "Origin": "http://localhost"}).status_code == 200
    assert post(client, {"Sec-Fetch-Site": "none"}).status_code == 200
    assert client.get(ALERTS, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_link_to_the_console_is_let_in(client: httpx.Client) -> None:
    for path in PAGES:
        assert client.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_curl_and_prometheus_are_let_in(client: httpx.Client) -> None:
    assert [client.get(path).status_code for path in ("/metrics", "/healthz", ALERTS)] == [200, 200, 200]
    assert post(client).status_code == 200


def test_another_site_is_not_let_in_by_a_preflight(client: httpx.Client, site: Site) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    foreign = client.options(ALERTS, headers={"Origin": "https://evil.example", **asked})
    refused(foreign, 403, "cross_site")
    plain = client.options(ALERTS, headers=AUTHORIZED)
    refused(plain, 405, "method")
    assert "POST" in plain.headers["allow"]
    answers = [foreign, plain, client.get("/"), client.get(ALERTS), post(client)]
    assert not [name for answer in answers for name in answer.headers if name.startswith("access-control")]
    assert site.reached == 3


def test_a_page_elsewhere_does_not_lock_the_operator_out(client: httpx.Client) -> None:
    for _ in range(30):
        refused(client.post(ALERTS, json={}, headers=WRONG | {"Origin": "https://evil.example"}), 403, "cross_site")
        refused(client.post(ALERTS, content=b"{}"), 401, "token")  # without a token, as a form would
    assert post(client).status_code == 200


# Who is who


def test_the_sign_in_page_needs_no_token() -> None:
    with Site(loopback=False).client() as client:
        for path in (*PAGES, "/metrics", "/healthz", SESSION):
            assert client.get(path).json() == {"authenticated": False}
        assert client.get(SESSION, headers=AUTHORIZED).json() == {"authenticated": True}
        for path in ("/console", "/consoles/x", "/favicon.ico/x", f"{SESSION}/", f"{SESSION}%0A", ALERTS, "/x"):
            refused(client.get(path), 401, "token")


def test_a_wrong_token_does_not_sign_in(client: httpx.Client, site: Site) -> None:
    for given_token in ("Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"bearer{TOKEN}"):
        answer = client.get(SESSION, headers={"Authorization": given_token})
        refused(answer, 401, "token")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get(SESSION).json() == {"authenticated": False}
    assert client.get(SESSION, headers=AUTHORIZED).json() == {"authenticated": True}
    assert client.get(ALERTS, headers=WRONG).json() == {"authenticated": False}  # reading is open here
    site.token = ""
    refused(client.get(SESSION, headers={"Authorization": "Bearer"}), 401, "token")
    assert client.get(SESSION).json() == {"authenticated": False}


@pytest.mark.parametrize("path", [PACKETS, f"{PACKETS}%0A", f"{PACKETS}/", "/api/v1/alerts/%0A/packets",
                                  "/api/v1/%61lerts/a-1/packet%73", f"{PACKETS}?x=1"])  # fmt: skip
def test_payloads_are_not_read_without_the_token(client: httpx.Client, site: Site, path: str) -> None:
    for method in ("GET", "HEAD"):
        assert client.request(method, path).status_code == 401
        assert client.request(method, path, headers=WRONG).status_code == 401
    assert site.reached == 0
    assert client.get(PACKETS, headers=AUTHORIZED).json() == {"authenticated": True}
    site.token = ""
    for headers in ({}, AUTHORIZED, {"Authorization": "Bearer"}):
        refused(client.get(path, headers=headers), 403, "no_token")


@given(path=st.text(max_size=40), name=st.text(min_size=1, max_size=10))
def test_a_strange_path_is_closed_beyond_loopback(path: str, name: str) -> None:
    guard = Guard(Starlette(), token=lambda: TOKEN, loopback=False)
    for each in (f"/api/v1/{path}", f"/api/v1/alerts/{name}/packets{path}", f"/metrics/{path}", f"//console/{path}"):
        scope = {"type": "http", "method": "GET", "path": each, "headers": [], "scheme": "http", "client": None}
        if each != SESSION:
            with pytest.raises(RefusedError, match="token"):
                guard.check(scope)


# Guessing and flooding


def test_guessing_the_token_is_slowed(client: httpx.Client, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    tries = [client.get(SESSION, headers=WRONG), *(client.post(ALERTS, json={}, headers=WRONG) for _ in range(9))]
    assert [answer.status_code for answer in tries] == [401] * 10
    with caplog.at_level(logging.WARNING, "netclust.http"):
        for answer in (post(client), client.get(SESSION, headers=AUTHORIZED), client.get(PACKETS), post(client, WRONG)):
            refused(answer, 429, "too_many")
            assert answer.headers["retry-after"] == "6"
        assert client.post(ALERTS, json={}).status_code == 429
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        assert "127.0.0.1" in caplog.text
        assert TOKEN not in caplog.text
    assert site.reached == 0
    assert [client.get(path).status_code for path in ("/", SESSION, ALERTS, "/metrics")] == [200] * 4  # need none
    site.now = 6.0
    assert post(client).status_code == 200
    refused(post(client, WRONG), 401, "token")
    refused(post(client), 429, "too_many")
    site.now = 72.0
    assert [post(client, WRONG).status_code for _ in range(11)] == [401] * 10 + [429]


def test_changes_are_limited(client: httpx.Client, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "netclust.http"):
        codes = [post(client).status_code for _ in range(WRITE_BURST + 5)]
    assert codes == [200] * WRITE_BURST + [429] * 5
    assert post(client).headers["retry-after"] == "1"
    assert len(caplog.records) == 1
    assert client.get(ALERTS).status_code == 200
    site.now = 1.0
    assert [post(client).status_code for _ in range(21)] == [200] * 20 + [429]


# What an answer carries


def test_every_answer_carries_the_headers_that_bind_browsers(client: httpx.Client) -> None:
    answers = {path: client.get(path) for path in (*PAGES, SESSION, ALERTS, "/metrics", "/nothing", "/console/a/b")}
    answers |= {"refused": post(client, WRONG), "host": client.get(ALERTS, headers={"Host": "evil.example"})}
    answers |= {"broken": client.get("/api/v1/broken"), "head": client.head("/"), "post": post(client)}
    assert {answer.status_code for answer in answers.values()} == {200, 401, 404, 421, 500}
    for name, answer in answers.items():
        page = name in PAGES or name in ("head", "/console/a/b")
        assert answer.headers["content-security-policy"] == (PAGE_POLICY if page else API_POLICY), name
        assert answer.headers["cache-control"] == ("no-cache" if page and answer.status_code == 200 else "no-store")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "camera=()" in answer.headers["permissions-policy"]
        assert "set-cookie" not in answer.headers


def test_the_policy_keeps_foreign_and_inline_code_out() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in PAGE_POLICY.split(";"))
    assert rules.pop("img-src") == "'self' data: blob:"
    assert {rules.pop(name) for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert set(rules) == {"default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"}
    assert set(rules.values()) == {"'none'"}


def test_a_refusal_in_the_middle_of_an_answer_breaks_it_off(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/api/v1/breaks")
    assert client.get(ALERTS).status_code == 200
