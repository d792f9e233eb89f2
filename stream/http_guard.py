"""What every request must pass before it is answered: the host it names, the token, the content type.

>>> parse_listen("127.0.0.1:9471"), parse_listen("[::1]:80"), is_loopback("0.0.0.0")
(('127.0.0.1', 9471), ('::1', 80), False)
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from netclust.errors import InputError

__all__ = ["Guard", "RefusedError", "error_response", "is_loopback", "json_response", "parse_listen"]

_log = logging.getLogger("netclust.http")
_READS = ("GET", "HEAD")
_OPEN = ("/metrics", "/healthz", "/readyz")


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, code: int, error: str, detail: str) -> None:
        super().__init__(detail)
        self.code, self.error, self.detail = code, error, detail


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
    """Lets a request pass, or answers itself."""

    def __init__(self, app: ASGIApp, *, token: Callable[[], str], loopback: bool) -> None:
        self.app = app
        self.token = token
        self.loopback = loopback

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
                headers["cache-control"] = "no-store"
                headers["x-content-type-options"] = "nosniff"
                if message["status"] >= 400 and scope["method"] not in _READS:
                    headers["connection"] = "close"  # the rest of a body is not waited for
            await send(message)

        try:
            self.check(scope["method"], scope["path"], Headers(scope=scope))
            await self.app(scope, receive, send_with_headers)
        except RefusedError as refused:
            response = error_response(refused.code, refused.error, refused.detail)
            if refused.code == 401:
                response.headers["www-authenticate"] = "Bearer"
            await response(scope, receive, send_with_headers)
        except Exception:
            if started:
                raise
            _log.exception("a request could not be answered: %s %s", scope["method"], scope["path"])
            response = error_response(500, "internal", "something went wrong: see the daemon's log")
            await response(scope, receive, send_with_headers)

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise RefusedError unless the request may be answered."""
        if self.loopback and not is_loopback(_host_name(headers.get("host", ""))):
            raise RefusedError(421, "host", "this is a loopback listener: call it localhost, 127.0.0.1 or [::1]")
        if method in _READS:
            if not self.loopback and path not in _OPEN:
                self._check_token(headers)
            return
        if not self.token():
            raise RefusedError(403, "no_token", "nothing can be changed over HTTP: the configuration has no token_file")
        self._check_token(headers)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if method != "DELETE" or has_body:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RefusedError(415, "content_type", "send JSON, with Content-Type: application/json")

    def _check_token(self, headers: Headers) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        expected = self.token()
        same = hmac.compare_digest(given.strip().encode(), expected.encode())  # takes as long for every wrong one
        if scheme.lower() != "bearer" or not expected or not same:
            raise RefusedError(401, "token", "send the token: Authorization: Bearer TOKEN")


def _host_name(host: str) -> str:
    """The Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
