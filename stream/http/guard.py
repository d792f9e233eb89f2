"""What every request must pass before it is answered: the host it names, the site it comes from, the token, how often,
the content type. And what every answer carries: the headers that keep a browser from doing more with it than meant.

>>> parse_listen("127.0.0.1:9471"), parse_listen("[::1]:80"), is_loopback("0.0.0.0")
(('127.0.0.1', 9471), ('::1', 80), False)
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from netclust.errors import InputError
from netclust.stream.http.rate_limits import RequestLimits

__all__ = [
    "ALWAYS", "API_POLICY", "PAGE_POLICY", "SESSION", "Guard", "RefusedError", "error_response", "is_loopback",
    "is_page", "json_response", "parse_listen",
]  # fmt: skip

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
SESSION = "/api/v1/session"
"""Asks nobody for a token, and says whether the one that was sent is right."""

ALWAYS = re.compile(r"/api/v1/alerts/[^/]+/packets")
"""What is not read without the token on loopback either: payloads. The beginning of a path is enough: the router takes
`packets%0A` for `packets`."""

_log = logging.getLogger("netclust.http")
_READS = ("GET", "HEAD")
_OPEN = ("/metrics", "/healthz", "/readyz")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, code: int, error: str, detail: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(detail)
        self.code, self.error, self.detail, self.headers = code, error, detail, headers


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 address stands in brackets."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:\[\]\s]+)):([0-9]{1,5})", text.strip())
    if found is None or int(found[3]) > 65_535:
        raise InputError(f"listen {text[:80]!r}: write HOST:PORT, such as 127.0.0.1:9471 or [::1]:9471")
    return found[1] or found[2], int(found[3])


def is_loopback(host: str) -> bool:
    """Whether only this machine is meant."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def json_response(body: Any, code: int = 200) -> Response:
    """An answer."""
    return Response(msgspec.json.encode(body) + b"\n", code, media_type="application/json")


def error_response(code: int, error: str, detail: str) -> Response:
    """An error, as every error is written."""
    return json_response({"error": error, "detail": detail}, code)


class Guard:
    """Lets a request pass, or answers itself.

    What it found out is in the scope: `netclust.authenticated`, whether the request came with the right token. It looks
    at a token only where one counts: on an open loopback read it says no, whatever was sent.
    """

    def __init__(
        self, app: ASGIApp, *, token: Callable[[], str], loopback: bool, limits: RequestLimits | None = None
    ) -> None:
        self.app = app
        self.token = token
        self.loopback = loopback
        self.limits = limits or RequestLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer of the application, or why there is none."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                page = is_page(scope["path"])
                headers.update(_HEADERS)
                headers["content-security-policy"] = PAGE_POLICY if page else API_POLICY
                headers["cache-control"] = "no-cache" if page and message["status"] < 400 else "no-store"
                if message["status"] >= 400 and scope["method"] not in _READS:
                    headers["connection"] = "close"  # the rest of a body is not waited for
            await send(message)

        try:
            scope["netclust.authenticated"] = self.check(scope)
            await self.app(scope, receive, send_with_headers)
        except RefusedError as refused:
            if started:
                raise
            response = error_response(refused.code, refused.error, refused.detail)
            response.headers.update(refused.headers)
            await response(scope, receive, send_with_headers)
        except Exception:
            if started:
                raise
            _log.exception("a request could not be answered: %s %s", scope["method"], scope["path"])
            response = error_response(500, "internal", "something went wrong: see the daemon's log")
            await response(scope, receive, send_with_headers)

    def check(self, scope: Scope) -> bool:
        """Whether the request came with the right token; RefusedError unless it may be answered."""
        method, path, headers = scope["method"], scope["path"], Headers(scope=scope)
        if self.loopback and not is_loopback(_host_name(headers.get("host", ""))):
            raise RefusedError(421, "host", "this is a loopback listener: call it localhost, 127.0.0.1 or [::1]")
        if (method not in _READS or path.startswith("/api/")) and _is_cross_site(scope["scheme"], headers):
            raise RefusedError(403, "cross_site", "a page of another site asked: only this server's own pages may")
        if method == "OPTIONS":  # asks on behalf of another site's page
            raise RefusedError(405, "method", "there is nothing to ask for", {"allow": "GET, HEAD, POST, DELETE"})
        if method in _READS:
            return self._check_read(scope, path, headers)
        if not self.token():
            raise RefusedError(403, "no_token", "nothing can be changed over HTTP: the configuration has no token_file")
        self._check_token(scope, headers)
        if wait := self.limits.wait_to_write():
            raise _too_many("too many changes at once", wait)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if method != "DELETE" or has_body:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(415, "content_type", "send JSON, with Content-Type: application/json")
        return True

    def _check_read(self, scope: Scope, path: str, headers: Headers) -> bool:
        if path == SESSION:
            needed = "authorization" in headers
        elif ALWAYS.match(path):
            needed = True
            if not self.token():
                raise RefusedError(403, "no_token", "this needs a token, and the configuration has no token_file")
        else:
            needed = not self.loopback and path not in _OPEN and not is_page(path)
        if needed:
            self._check_token(scope, headers)
        return needed

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        address = (scope.get("client") or ("",))[0]
        if wait := self.limits.wait_to_try(address):  # the right one too: whoever guesses must not learn it
            raise _too_many("too many wrong tokens", wait)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        expected = self.token()
        same = hmac.compare_digest(given.strip().encode(), expected.encode())  # takes as long for every wrong one
        if scheme.lower() != "bearer" or not expected or not same:
            if expected and "authorization" in headers:  # to send none is no guess
                self.limits.note_wrong(address)
            challenge = {"www-authenticate": "Bearer"}
            raise RefusedError(401, "token", "send the token: Authorization: Bearer TOKEN", challenge)


def is_page(path: str) -> bool:
    """Whether this is a file of the console: the same for all, and open to all."""
    return path in ("/", "/favicon.ico") or path.startswith("/console/")


def _is_cross_site(scheme: str, headers: Headers) -> bool:
    """Whether a browser says that a page from elsewhere asks. What is no browser sends neither header."""
    if any(site.strip().lower() not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
        return True
    own = _origin(scheme, headers.get("host", ""))
    return any(_origin(*origin.partition("://")[::2]) != own for origin in headers.getlist("origin"))


def _origin(scheme: str, host: str) -> tuple[str, str]:
    """Scheme, and host with its port unless that is the scheme's own."""
    scheme = scheme.strip().lower()
    return scheme, host.strip().lower().removesuffix({"http": ":80", "https": ":443"}.get(scheme, ""))


def _too_many(what: str, wait: int) -> RefusedError:
    return RefusedError(429, "too_many", f"{what}: try again in {wait} s", {"retry-after": str(wait)})


def _host_name(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
