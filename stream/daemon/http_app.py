"""The daemon over HTTP: metrics, health, alerts, and the answers of people to them.

Reading is open on loopback; beyond it, all but metrics and health needs the token. Changing anything needs the token
everywhere, in a header that no web page can send from elsewhere, and a JSON content type. On loopback a request must
name a loopback host: a web page that turns its own name to 127.0.0.1 gets nothing.

| route | what |
|---|---|
| `GET /metrics`, `/healthz`, `/readyz` | for Prometheus and for whoever restarts it |
| `GET /api/v1/status` | what the daemon is doing |
| `GET /api/v1/alerts?state=&since=&severity=&text=&limit=&brief=&order=` | alerts |
| `GET /api/v1/clusters?limit=`, `/api/v1/audit?limit=` | clusters; decisions |
| `GET /api/v1/labels?after=&limit=&newest=`, `POST /api/v1/labels`, `POST /api/v1/labels/{seq}/undo` | labels |
| `GET /api/v1/suppressions?all=`, `POST /api/v1/suppressions`, `DELETE /api/v1/suppressions/{id}` | suppressions |
| `POST /api/v1/reload` | build configuration and model anew, and swap |
| `GET /api/v1/openapi.json` | all of this for programs, with what the console asks (netclust.stream.console.api) |
| `GET /`, `/console/...` | the console |

Errors are `{"error": ..., "detail": ...}`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from netclust._version import __version__
from netclust.errors import InputError
from netclust.stream.alerts.alert_events import Severity
from netclust.stream.alerts.alert_triage import in_triage_order
from netclust.stream.console.api import ConsoleApi
from netclust.stream.console.assets import console_routes
from netclust.stream.console.view import View
from netclust.stream.http.guard import Guard, error_response, is_loopback, json_response, parse_listen
from netclust.stream.http.operations import (
    ListQuery,
    Operation,
    Strict,
    describe_operations,
    operation_body,
    operation_query,
    operation_routes,
)
from netclust.stream.store.requests import SuppressionRule, parse_since, parse_until
from netclust.stream.store.store import Store, StoreError
from netclust.stream.store.store_feedback import NotFoundError
from netclust.stream.store.store_rows import AuditRow, ClusterRow, LabelRow, LabelStatus

__all__ = ["DEFAULT_LISTEN", "Control", "make_app"]

DEFAULT_LISTEN = "127.0.0.1:9471"
V1 = "/api/v1"


class Control(Protocol):
    """What the daemon gives to its HTTP side. Called from several threads."""

    store: Store
    view: View

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


MOST_ALERTS = 1000
"""So many of the last seen are put in the order of triage."""


class _AlertQuery(ListQuery, frozen=True, kw_only=True):
    state: Literal["open", "closed", "all"] = "all"
    since: str = ""
    severity: Severity | None = None
    text: str = ""
    brief: bool = False
    order: Literal["newest", "triage"] = "newest"


class _LabelQuery(ListQuery, frozen=True, kw_only=True):
    after: int = 0
    newest: bool = False
    status: LabelStatus | None = None


class _SuppressionQuery(ListQuery, frozen=True, kw_only=True):
    all: bool = False


class _Who(Strict, frozen=True, kw_only=True):
    """Who asks, and why."""

    by: str = "http"
    why: str = ""


class _Label(Strict, frozen=True, kw_only=True):
    target: str
    label: str
    by: str
    why: str = ""


class _Suppression(SuppressionRule, frozen=True, kw_only=True):
    reason: str
    by: str
    until: str = ""

    def rule(self) -> SuppressionRule:
        return SuppressionRule(**{name: getattr(self, name) for name in SuppressionRule.__struct_fields__})


class _Alerts(msgspec.Struct, frozen=True):
    alerts: list[dict[str, Any]]  # Alert, or Brief of netclust.stream.console.triage


class _Clusters(msgspec.Struct, frozen=True):
    clusters: list[ClusterRow]


class _Audit(msgspec.Struct, frozen=True):
    audit: list[AuditRow]


class _Labels(msgspec.Struct, frozen=True):
    labels: list[LabelRow]


class _OneLabel(msgspec.Struct, frozen=True):
    label: LabelRow


class _Suppressions(msgspec.Struct, frozen=True):
    suppressions: list[dict[str, Any]]


class _OneSuppression(msgspec.Struct, frozen=True):
    suppression: dict[str, Any]


class _Reloaded(msgspec.Struct, frozen=True):
    reloaded: bool
    detail: str


def make_app(control: Control, listen: str = DEFAULT_LISTEN) -> Starlette:
    """The application for a listener. Beyond loopback it is refused without a token."""
    loopback = is_loopback(parse_listen(listen)[0])
    if not loopback and not control.token:
        raise InputError(f"{listen}: beyond loopback a token is needed: set token_file, or listen at 127.0.0.1")
    console = ConsoleApi(control.view, reads_need_token=not loopback, changes=lambda: bool(control.token))
    operations = [*console.operations(), *_Api(control).operations()]

    async def openapi(request: Request) -> Response:
        return json_response(describe_operations(operations, __version__))

    operations.append(Operation("GET", f"{V1}/openapi.json", openapi, "This.", result=dict[str, Any]))
    return Starlette(
        routes=[*console_routes(), *operation_routes(operations)],
        middleware=[Middleware(Guard, token=lambda: control.token, loopback=loopback)],
        exception_handlers={
            NotFoundError: _error_handler(404, "not_found"),
            StoreError: _error_handler(503, "store"),
            InputError: _error_handler(400, "input"),
            ClientDisconnect: _error_handler(400, "disconnected"),
            HTTPException: _http,
        },
    )


class _Api:
    """The answers."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.store = control.store

    def operations(self) -> list[Operation]:
        facts = dict[str, Any]
        return [
            Operation("GET", "/metrics", self.metrics, "For Prometheus.", media="text/plain"),
            Operation("GET", "/healthz", self.health, "Whether it should be left running.", result=facts),
            Operation("GET", "/readyz", self.readiness, "Whether it gives verdicts.", result=facts),
            Operation("GET", f"{V1}/status", self.status, "What the daemon is doing.", result=facts),
            Operation("GET", f"{V1}/alerts", self.alerts, "Alerts, the last seen first.", _AlertQuery, result=_Alerts),
            Operation("GET", f"{V1}/clusters", self.clusters, "Clusters.", ListQuery, result=_Clusters),
            Operation("GET", f"{V1}/audit", self.audit, "The last decisions and notices.", ListQuery, result=_Audit),
            Operation("GET", f"{V1}/labels", self.labels, "What people said.", _LabelQuery, result=_Labels),
            Operation(
                "POST", f"{V1}/labels", self.add_label, "Say what something is.", None, _Label, _OneLabel, 201,
                errors=(404,),
            ),
            Operation(
                "POST", f"{V1}/labels/{{seq:int}}/undo", self.undo, "Take a label back.", None, _Who, _OneLabel, 201
            ),
            Operation(
                "GET", f"{V1}/suppressions", self.suppressions, "What is hidden.", _SuppressionQuery,
                result=_Suppressions,
            ),
            Operation(
                "POST", f"{V1}/suppressions", self.add_suppression, "Hide alerts.", None, _Suppression,
                _OneSuppression, 201,
            ),
            Operation(
                "DELETE", f"{V1}/suppressions/{{id}}", self.remove_suppression, "Let alerts be told again.", None,
                _Who, _OneSuppression,
            ),
            Operation(
                "POST", f"{V1}/reload", self.reload, "Build configuration and model anew.", None, _Who, _Reloaded,
                errors=(409,),
            ),
        ]  # fmt: skip

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
        q = operation_query(request, _AlertQuery)
        since = parse_since(q.since, self.store.clock()) if q.since else None
        state = None if q.state == "all" else q.state
        among = q.limit if q.order == "newest" else MOST_ALERTS
        found = await run_in_threadpool(self.store.alerts, state, since, q.severity, q.text, among)
        if q.order == "triage":
            found = (await run_in_threadpool(in_triage_order, found))[0][: q.limit]
        if q.brief:
            return json_response({"alerts": await run_in_threadpool(self.control.view.triage.briefs, found)})
        return json_response({"alerts": found})

    async def clusters(self, request: Request) -> Response:
        limit = operation_query(request, ListQuery).limit
        return json_response({"clusters": await run_in_threadpool(self.store.clusters, limit)})

    async def audit(self, request: Request) -> Response:
        limit = operation_query(request, ListQuery).limit
        return json_response({"audit": await run_in_threadpool(self.store.audit, limit)})

    async def labels(self, request: Request) -> Response:
        q = operation_query(request, _LabelQuery)
        found = await run_in_threadpool(self.store.labels, q.after, q.limit, newest=q.newest, status=q.status)
        return json_response({"labels": found})

    async def add_label(self, request: Request) -> Response:
        attribution = await operation_body(request, _Label)
        row = await run_in_threadpool(
            self.store.add_label, attribution.target, attribution.label, attribution.by, attribution.why
        )
        self._changed("label", row)
        return json_response({"label": row}, 201)

    async def undo(self, request: Request) -> Response:
        attribution = await operation_body(request, _Who)
        row = await run_in_threadpool(self.store.add_undo, request.path_params["seq"], attribution.by, attribution.why)
        self._changed("label", row)
        return json_response({"label": row}, 201)

    async def suppressions(self, request: Request) -> Response:
        q, now = operation_query(request, _SuppressionQuery), self.store.clock()
        found = await run_in_threadpool(self.store.suppressions, not q.all, now, q.limit)
        return json_response({"suppressions": [row.shown(now) for row in found]})

    async def add_suppression(self, request: Request) -> Response:
        attribution, now = await operation_body(request, _Suppression), self.store.clock()
        until = parse_until(attribution.until, now)
        row = await run_in_threadpool(
            self.store.add_suppression, attribution.rule(), reason=attribution.reason, by=attribution.by, until=until
        )
        self._changed("rules", {})
        return json_response({"suppression": row.shown(now)}, 201)

    async def remove_suppression(self, request: Request) -> Response:
        attribution = await operation_body(request, _Who)
        row = await run_in_threadpool(
            self.store.remove_suppression, request.path_params["id"], attribution.by, attribution.why
        )
        self._changed("rules", {})
        return json_response({"suppression": row.shown(self.store.clock())})

    async def reload(self, request: Request) -> Response:
        attribution = await operation_body(request, _Who)
        done, message = await run_in_threadpool(self.control.reload)
        with contextlib.suppress(StoreError):  # it has happened, whether it can be noted or not
            await run_in_threadpool(
                self.store.add_audit, "reload", "reload", by=attribution.by, why=attribution.why, result=message[:1000]
            )
        return json_response({"reloaded": done, "detail": message}, 200 if done else 409)

    def _changed(self, event: str, what: Any) -> None:
        """It counts from the next batch on, and pages that are open hear of it."""
        self.control.note_change()
        self.control.view.hub.publish(event, what)


def _error_handler(code: int, what: str) -> Callable[[Request, Exception], Response]:
    return lambda request, error: error_response(code, what, str(error))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    response = error_response(error.status_code, "http", error.detail)
    response.headers.update(error.headers or {})
    return response
