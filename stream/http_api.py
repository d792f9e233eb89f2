"""The daemon over HTTP: metrics, health, alerts, and the answers of people to them.

Reading is open on loopback; beyond it, all but metrics and health needs the token. Changing anything needs the token
everywhere, in a header that no web page can send from elsewhere, and a JSON content type. On loopback a request must
name a loopback host: a web page that turns its own name to 127.0.0.1 gets nothing.

| route | what |
|---|---|
| `GET /metrics`, `/healthz`, `/readyz` | for Prometheus and for whoever restarts it |
| `GET /api/v1/status` | what the daemon is doing |
| `GET /api/v1/alerts?state=&since=&severity=&text=&limit=`, `/api/v1/alerts/{id}` | alerts |
| `GET /api/v1/clusters?limit=`, `/api/v1/audit?limit=` | clusters; decisions |
| `GET /api/v1/labels?after=&limit=&newest=`, `POST /api/v1/labels`, `POST /api/v1/labels/{seq}/undo` | labels |
| `GET /api/v1/suppressions?all=`, `POST /api/v1/suppressions`, `DELETE /api/v1/suppressions/{id}` | suppressions |
| `POST /api/v1/reload` | build configuration and model anew, and swap |

Errors are `{"error": ..., "detail": ...}`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from netclust.errors import InputError
from netclust.stream.alert_events import Severity
from netclust.stream.http_guard import Guard, RefusedError, error_response, is_loopback, json_response, parse_listen
from netclust.stream.store import Store, StoreError
from netclust.stream.store_feedback import NotFoundError
from netclust.stream.store_rows import LabelStatus
from netclust.stream.store_words import Rule, parse_since, parse_until

__all__ = ["DEFAULT_LISTEN", "Control", "make_app"]

DEFAULT_LISTEN = "127.0.0.1:9471"
MAX_BODY_BYTES = 64 << 10
BODY_SECONDS = 10.0
MAX_LIMIT = 1000


class Control(Protocol):
    """What the daemon gives to its HTTP side. Called from several threads."""

    store: Store

    @property
    def token(self) -> str:
        """What changes need; empty: nothing can be changed."""
        ...

    def metrics(self) -> tuple[bytes, str]:
        """The exposition and its content type."""
        ...

    def healthy(self) -> tuple[bool, dict[str, Any]]:
        """Whether it should be left running."""
        ...

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether it gives verdicts."""
        ...

    def status(self) -> dict[str, Any]:
        """What it is doing."""
        ...

    def reload(self) -> tuple[bool, str]:
        """Build configuration and model anew and swap them in, or say why it went on with the old ones."""
        ...

    def note_change(self) -> None:
        """The store has something new for it."""
        ...


class _Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand behind the question mark; what is unknown is refused."""

    limit: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.limit <= MAX_LIMIT:
            raise ValueError(f"limit is a number from 1 to {MAX_LIMIT}")


class _AlertQuery(_Query, frozen=True, kw_only=True):
    state: Literal["open", "closed", "all"] = "all"
    since: str = ""
    severity: Severity | None = None
    text: str = ""


class _LabelQuery(_Query, frozen=True, kw_only=True):
    after: int = 0
    newest: bool = False
    status: LabelStatus | None = None


class _SuppressionQuery(_Query, frozen=True, kw_only=True):
    all: bool = False


class _Who(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who asks, and why."""

    by: str = "http"
    why: str = ""


class _Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: str
    label: str
    by: str
    why: str = ""


class _Suppression(Rule, frozen=True, kw_only=True):
    reason: str
    by: str
    until: str = ""

    def rule(self) -> Rule:
        return Rule(**{name: getattr(self, name) for name in Rule.__struct_fields__})


Body = TypeVar("Body", bound=msgspec.Struct)
Query = TypeVar("Query", bound=_Query)
Answer = Callable[[Request], Awaitable[Response]]


def make_app(control: Control, listen: str = DEFAULT_LISTEN) -> Starlette:
    """The application for a listener. Beyond loopback it is refused without a token."""
    loopback = is_loopback(parse_listen(listen)[0])
    if not loopback and not control.token:
        raise InputError(f"{listen}: beyond loopback a token is needed: set token_file, or listen at 127.0.0.1")
    api = _Api(control)
    return Starlette(
        routes=api.routes(),
        middleware=[Middleware(Guard, token=lambda: control.token, loopback=loopback)],
        exception_handlers={
            NotFoundError: _say(404, "not_found"),
            StoreError: _say(503, "store"),
            InputError: _say(400, "input"),
            ClientDisconnect: _say(400, "disconnected"),
            HTTPException: _http,
        },
    )


class _Api:
    """The answers."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.store = control.store

    def routes(self) -> list[Route]:
        v1 = "/api/v1"
        return [
            Route("/metrics", self.metrics),
            Route("/healthz", self.health),
            Route("/readyz", self.readiness),
            Route(f"{v1}/status", self.status),
            Route(f"{v1}/alerts", self.alerts),
            Route(f"{v1}/alerts/{{id}}", self.alert),
            Route(f"{v1}/clusters", self.clusters),
            Route(f"{v1}/audit", self.audit),
            Route(f"{v1}/labels", self.labels),
            Route(f"{v1}/labels", self.add_label, methods=["POST"]),
            Route(f"{v1}/labels/{{seq:int}}/undo", self.undo, methods=["POST"]),
            Route(f"{v1}/suppressions", self.suppressions),
            Route(f"{v1}/suppressions", self.add_suppression, methods=["POST"]),
            Route(f"{v1}/suppressions/{{id}}", self.remove_suppression, methods=["DELETE"]),
            Route(f"{v1}/reload", self.reload, methods=["POST"]),
        ]

    async def metrics(self, request: Request) -> Response:
        body, kind = await run_in_threadpool(self.control.metrics)
        return Response(body, headers={"content-type": kind})

    async def health(self, request: Request) -> Response:
        fine, facts = await run_in_threadpool(self.control.healthy)
        return json_response({"healthy": fine, **facts}, 200 if fine else 503)

    async def readiness(self, request: Request) -> Response:
        fine, facts = await run_in_threadpool(self.control.ready)
        return json_response({"ready": fine, **facts}, 200 if fine else 503)

    async def status(self, request: Request) -> Response:
        return json_response(await run_in_threadpool(self.control.status))

    async def alerts(self, request: Request) -> Response:
        q = _query(request, _AlertQuery)
        since = parse_since(q.since, self.store.clock()) if q.since else None
        state = None if q.state == "all" else q.state
        found = await run_in_threadpool(self.store.alerts, state, since, q.severity, q.text, q.limit)
        return json_response({"alerts": found})

    async def alert(self, request: Request) -> Response:
        return json_response({"alert": await run_in_threadpool(self.store.alert, request.path_params["id"])})

    async def clusters(self, request: Request) -> Response:
        limit = _query(request, _Query).limit
        return json_response({"clusters": await run_in_threadpool(self.store.clusters, limit)})

    async def audit(self, request: Request) -> Response:
        limit = _query(request, _Query).limit
        return json_response({"audit": await run_in_threadpool(self.store.audit, limit)})

    async def labels(self, request: Request) -> Response:
        q = _query(request, _LabelQuery)
        found = await run_in_threadpool(self.store.labels, q.after, q.limit, newest=q.newest, status=q.status)
        return json_response({"labels": found})

    async def add_label(self, request: Request) -> Response:
        said = await _body(request, _Label)
        row = await run_in_threadpool(self.store.add_label, said.target, said.label, said.by, said.why)
        self.control.note_change()
        return json_response({"label": row}, 201)

    async def undo(self, request: Request) -> Response:
        said = await _body(request, _Who)
        row = await run_in_threadpool(self.store.add_undo, request.path_params["seq"], said.by, said.why)
        self.control.note_change()
        return json_response({"label": row}, 201)

    async def suppressions(self, request: Request) -> Response:
        q, now = _query(request, _SuppressionQuery), self.store.clock()
        found = await run_in_threadpool(self.store.suppressions, not q.all, now, q.limit)
        return json_response({"suppressions": [row.shown(now) for row in found]})

    async def add_suppression(self, request: Request) -> Response:
        said, now = await _body(request, _Suppression), self.store.clock()
        until = parse_until(said.until, now)
        row = await run_in_threadpool(
            self.store.add_suppression, said.rule(), reason=said.reason, by=said.by, until=until
        )
        self.control.note_change()
        return json_response({"suppression": row.shown(now)}, 201)

    async def remove_suppression(self, request: Request) -> Response:
        said = await _body(request, _Who)
        row = await run_in_threadpool(self.store.remove_suppression, request.path_params["id"], said.by, said.why)
        self.control.note_change()
        return json_response({"suppression": row.shown(self.store.clock())})

    async def reload(self, request: Request) -> Response:
        said = await _body(request, _Who)
        done, message = await run_in_threadpool(self.control.reload)
        with contextlib.suppress(StoreError):  # it has happened, whether it can be noted or not
            await run_in_threadpool(
                self.store.add_audit, "reload", "reload", by=said.by, why=said.why, result=message[:1000]
            )
        return json_response({"reloaded": done, "detail": message}, 200 if done else 409)


def _query(request: Request, kind: type[Query]) -> Query:
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise RefusedError(400, "query", str(error)) from None


async def _body(request: Request, kind: type[Body]) -> Body:
    """What was sent: read within a bound and a time; nothing at all stands for `{}`."""
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > MAX_BODY_BYTES:
                    raise RefusedError(413, "too_large", f"a body has at most {MAX_BODY_BYTES} bytes")
    except TimeoutError:
        raise RefusedError(408, "timeout", f"the body did not come within {BODY_SECONDS:g} seconds") from None
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(400, "body", str(error)) from None


def _say(code: int, what: str) -> Callable[[Request, Exception], Response]:
    return lambda request, error: error_response(code, what, str(error))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    response = error_response(error.status_code, "http", error.detail)
    response.headers.update(error.headers or {})
    return response
