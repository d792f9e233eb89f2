"""Posts JSON to one server: no proxy, no redirects, every wait bounded, the connection kept while it works.

What the environment says about proxies is not asked: where alerts go stands in the configuration alone. A redirect is
not followed (the token would go along); its target is named, so that the configuration can be corrected.
"""

from __future__ import annotations

import email.utils
import http.client
import re
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from netclust.errors import InputError
from netclust.stream.sinks.base import SinkError
from netclust.stream.sinks.connection import tls_context

MAX_ANSWER = 1 << 16
MAX_TOKEN = 1 << 14
MAX_RETRY_AFTER = 300.0

_LATER = (401, 403, 404, 408, 425, 429)  # of 4xx: a token, an address or a load that someone will put right
_RESERVED = ("host", "content-length", "content-type", "transfer-encoding", "connection", "idempotency-key")


class RetryLaterError(SinkError):
    """The receiver asks for a pause of so many seconds."""

    def __init__(self, message: str, after_seconds: float) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class HttpPost:
    """Posts to one URL. `where` names it without its path, which may be a secret."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        token_file: str = "",
        ca_file: str = "",
        timeout: float = 5.0,
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"url {url!r}: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch(r"[!-~]+", url):
            raise InputError(f"url {url!r}: write http://HOST:PORT/PATH or https://HOST:PORT/PATH")
        if parts.username is not None or parts.password is not None:
            raise InputError(f"url of {parts.hostname}: holds a user or password: use token_file or headers")
        self.where = f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host, self._port, self._timeout = parts.hostname, port, timeout
        self._context = tls_context(ca_file) if parts.scheme == "https" else None
        self._headers = _checked(headers or {})
        self._token_file = token_file
        self._connection: http.client.HTTPConnection | None = None

    def check(self) -> None:
        """InputError if the token cannot be read."""
        try:
            self._token()
        except SinkError as error:
            raise InputError(str(error)) from None

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Post a document; an answer other than 2xx is a SinkError, which says whether to try again."""
        token = self._token()
        fields = {"Content-Type": "application/json", "User-Agent": "netclust", **self._headers, **(headers or {})}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        kept = self._connection is not None
        try:
            status, after = self._exchange(body, fields)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            if not kept:
                raise SinkError(f"{self.where}: {error}") from None
            status, after = self._again(body, fields)  # a kept connection may have been closed in the meantime
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise SinkError(f"{self.where}: {_reason(error)}") from None
        self._check_status(status, after)

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _again(self, body: bytes, fields: dict[str, str]) -> tuple[int, str]:
        try:
            return self._exchange(body, fields)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise SinkError(f"{self.where}: {_reason(error)}") from None

    def _exchange(self, body: bytes, fields: dict[str, str]) -> tuple[int, str]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("POST", self._path, body, fields)
        with self._connection.getresponse() as answer:
            answer.read(MAX_ANSWER)
            status, after = answer.status, answer.getheader("Retry-After", "")
            said = answer.getheader("Location", "") if 300 <= status < 400 else after
            unread = not answer.isclosed()
        if unread:
            self.close()
        return status, said

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _check_status(self, status: int, said: str) -> None:
        if 200 <= status < 300:
            return
        message = f"{self.where}: answered {status}"
        if status < 200 or 300 <= status < 400:
            raise SinkError(f"{message}: redirects are not followed: set url to {said[:200]!r}")
        if status in _LATER or status >= 500:
            if said:
                raise RetryLaterError(message, _retry_after(said, time.time()))
            raise SinkError(message)
        raise SinkError(message, retry=False)

    def _token(self) -> str:
        """Read each time, so that a new token counts at once."""
        if not self._token_file:
            return ""
        try:
            with open(self._token_file, "rb") as file:
                data = file.read(MAX_TOKEN)
        except OSError as error:
            raise SinkError(f"token_file {self._token_file}: {error.strerror}") from None
        token = data.strip().decode("latin-1")
        if not re.fullmatch(r"[!-~]+", token):
            raise SinkError(f"token_file {self._token_file}: holds no token (one word of printable ASCII)")
        return token


def _retry_after(said: str, now: float) -> float:
    """Return the seconds of a Retry-After header, which is a number or a date; at most MAX_RETRY_AFTER.

    >>> _retry_after("7", 0.0), _retry_after("Thu, 01 Jan 1970 00:00:30 GMT", 10.0), _retry_after("soon", 0.0)
    (7.0, 20.0, 0.0)
    """
    said = said.strip()
    if re.fullmatch(r"[0-9]{1,9}", said):
        return min(float(said), MAX_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(said[:64]).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(0.0, moment - now), MAX_RETRY_AFTER)


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", name) or name.lower() in _RESERVED:
            raise InputError(f"header {name[:40]!r}: not a name that can be set")
        if not re.fullmatch(r"[ -~]*", value):
            raise InputError(f"header {name}: its value is not printable ASCII")
    return dict(headers)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
