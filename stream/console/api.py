"""The console's part of the HTTP API: the overview, the link forest, alerts with all that explains them, events.

Reading only; what changes something are the daemon's own endpoints (netclust.stream.daemon.http_app).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from netclust._version import __version__
from netclust.linking.verdicts import VERDICTS
from netclust.stream.alerts.alert_events import Alert
from netclust.stream.console.events import MAX_LISTENERS, event_frame
from netclust.stream.console.filters import Filters, filters_of
from netclust.stream.console.forest import CAPACITY, Node, Nodes, Step
from netclust.stream.console.overview import SECONDS, as_columns
from netclust.stream.console.packets import Extracted, extract_packets, packet_connections
from netclust.stream.console.triage import Answered, Brief
from netclust.stream.console.view import View
from netclust.stream.http.guard import RefusedError, json_response
from netclust.stream.http.operations import ListQuery, Operation, Strict, operation_query
from netclust.stream.store.requests import parse_since
from netclust.stream.store.store_feedback import NotFoundError
from netclust.stream.store.store_rows import ClusterRow, LabelRow

__all__ = ["ConsoleApi"]

LONGEST_SECONDS = 90 * 86_400
MAX_BUCKETS = 1000
PCAP = "application/vnd.tcpdump.pcap"
RECORDS_OF_CLUSTER = 100
_BIGGEST = (1 << 63) - 1
Found = TypeVar("Found")


class _Overview(Strict, frozen=True, kw_only=True):
    seconds: int = SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= LONGEST_SECONDS:
            raise ValueError(f"seconds is a number from 1 to {LONGEST_SECONDS}")


class _Buckets(Strict, frozen=True, kw_only=True):
    buckets: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.buckets <= MAX_BUCKETS:
            raise ValueError(f"buckets is a number from 1 to {MAX_BUCKETS}")


class _Timeline(_Buckets, frozen=True, kw_only=True):
    since: str = ""
    until: str = ""


class _Extent(_Buckets, frozen=True, kw_only=True):
    buckets: int = 120


class _Forest(ListQuery, frozen=True, kw_only=True):
    limit: int = CAPACITY
    after: int = -1
    until: int | None = None
    span: int = 3600 * 10**9

    @staticmethod
    def most() -> int:
        """The largest limit."""
        return CAPACITY


class _Session(msgspec.Struct, frozen=True):
    version: str
    instance: str
    reads_need_token: bool
    changes: bool
    authenticated: bool


class _Samples(msgspec.Struct, frozen=True):
    now: dict[str, Any] | None
    samples: dict[str, list[float]]


class _Packets(msgspec.Struct, frozen=True):
    available: bool
    why: str


class _AlertDetails(
    msgspec.Struct, frozen=True, rename={"resolves_alerts": "settles_alerts", "resolves_records": "settles_records"}
):
    alert: Alert
    path: list[Step]
    labels: list[LabelRow]
    answer: Answered | None
    muted_by: str
    filters: Filters
    packets: _Packets
    resolves_alerts: int
    resolves_records: int


class _Waiting(
    msgspec.Struct, frozen=True, rename={"resolves_alerts": "settles_alerts", "resolves_records": "settles_records"}
):
    alert: Brief
    resolves_alerts: int
    resolves_records: int


class _Backlog(msgspec.Struct, frozen=True):
    unanswered: int
    backlog: list[_Waiting]


class _ClusterDetails(msgspec.Struct, frozen=True):
    cluster: ClusterRow
    alerts: list[Brief]
    records: list[Node]
    labels: list[LabelRow]


class _Columns(msgspec.Struct, frozen=True):
    tick: list[int]
    link: list[int]
    hops: list[int]
    cluster: list[int]
    label: list[int]
    verdict: list[int]
    score: list[float | None]
    time: list[int]


class _Tree(msgspec.Struct, frozen=True):
    id: int
    label: str
    records: int
    anomalous: int
    first_time: int
    last_time: int
    top_score: float
    entity: str  # of the largest alert about it


class _ForestPart(msgspec.Struct, frozen=True):
    instance: str
    newest: int
    labels: list[str]
    nodes: _Columns
    clusters: list[_Tree]


class _Record(msgspec.Struct, frozen=True):
    record: Node


class _LabelDetails(msgspec.Struct, frozen=True):
    label: LabelRow
    closed: list[Brief]
    pinned: int


class ConsoleApi:
    """The answers. `reads_need_token`: it listens beyond loopback."""

    def __init__(self, view: View, *, reads_need_token: bool, changes: Callable[[], bool]) -> None:
        self.view = view
        self.store = view.store
        self._reads_need_token = reads_need_token
        self._changes = changes
        self._extracting = threading.Lock()
        self._known: dict[tuple[str, int], tuple[int, Any]] = {}

    def operations(self) -> list[Operation]:
        """What can be asked. What is more special comes first."""
        v1 = "/api/v1"
        return [
            Operation("GET", f"{v1}/session", self.session, "Who asks, and whom.", result=_Session),
            Operation("GET", f"{v1}/events", self.events, "What happens, as it happens.", media="text/event-stream"),
            Operation("GET", f"{v1}/overview", self.overview, "The daemon at a glance.", _Overview, result=_Samples),
            Operation(
                "GET", f"{v1}/alerts/timeline", self.timeline, "When alerts began.", _Timeline, result=dict[str, Any]
            ),
            Operation("GET", f"{v1}/alerts/{{id}}", self.alert, "All about an alert.", result=_AlertDetails),
            Operation(
                "GET", f"{v1}/alerts/{{id}}/packets", self.packets, "Packets of an alert's examples.", media=PCAP,
                token=True,
            ),
            Operation("GET", f"{v1}/backlog", self.backlog, "What is to be answered.", ListQuery, result=_Backlog),
            Operation(
                "GET", f"{v1}/clusters/{{id:int}}", self.cluster, "All about a cluster.", result=_ClusterDetails
            ),
            Operation(
                "GET", f"{v1}/forest/extent", self.extent, "The stored past of the forest.", _Extent,
                result=dict[str, Any],
            ),
            Operation("GET", f"{v1}/forest", self.forest, "Records and their links.", _Forest, result=_ForestPart),
            Operation("GET", f"{v1}/records/{{tick:int}}", self.record, "A record of the forest.", result=_Record),
            Operation("GET", f"{v1}/labels/{{seq:int}}", self.label, "What came of a label.", result=_LabelDetails),
        ]  # fmt: skip

    async def session(self, request: Request) -> Response:
        """Whether a token is needed, and whether the one that came is right."""
        known = bool(request.scope.get("netclust.authenticated"))
        return json_response(_Session(__version__, self.view.instance, self._reads_need_token, self._changes(), known))

    async def events(self, request: Request) -> Response:
        """A stream without an end."""
        hub = self.view.hub
        if request.method == "HEAD":  # a stream without a body would never end
            return Response(media_type="text/event-stream")
        if hub.listeners >= MAX_LISTENERS:
            raise RefusedError(503, "too_many", f"{MAX_LISTENERS} pages listen already: close one")
        request.scope["netclust.endless"] = True
        first = [event_frame("hello", {"instance": self.view.instance, "version": __version__})]
        if self.view.now is not None:
            first.append(event_frame("overview", self.view.now))
        return StreamingResponse(hub.listen(*first), media_type="text/event-stream")

    async def overview(self, request: Request) -> Response:
        """Samples of seconds, or of minutes where more is wanted."""
        seconds = operation_query(request, _Overview).seconds
        if seconds <= SECONDS:
            rows = self.view.overview.recent(seconds)
        else:
            rows = await run_in_threadpool(self.view.history.samples, self.store.clock() - seconds * 10**9)
        return json_response({"now": self.view.now, "samples": as_columns(rows)})

    async def timeline(self, request: Request) -> Response:
        """Alerts by when they began."""
        q, now = operation_query(request, _Timeline), self.store.clock()
        since, until = (parse_since(text, now) if text else None for text in (q.since, q.until))
        return json_response(await run_in_threadpool(self.view.history.timeline, since, until, q.buckets))

    async def alert(self, request: Request) -> Response:
        """One alert."""
        return json_response(await run_in_threadpool(self._alert, request.path_params["id"]))

    def _alert(self, ident: str) -> _AlertDetails:
        alert = self.store.alert(ident)
        (brief,) = self.view.triage.briefs([alert])
        labels = self.view.triage.labels("alert", alert.id)
        files, why = self.view.captures(alert)
        if files and not packet_connections(alert):
            files, why = [], "the alert has no addresses to look for"
        settles = self.view.triage.resolves(alert.id, self.view.classes())
        return _AlertDetails(
            alert, self.view.history.path(alert.id), labels, brief.answer, brief.muted_by, filters_of(alert),
            _Packets(bool(files), why), settles.alerts, settles.records,
        )  # fmt: skip

    async def packets(self, request: Request) -> Response:
        """A small capture of the example connections of an alert."""
        alert = await run_in_threadpool(self.store.alert, request.path_params["id"])
        found = await run_in_threadpool(self._extract, alert)
        if not found.packets:
            raise RefusedError(404, "no_packets", "the capture no longer holds packets of these connections")
        headers = {"content-disposition": f'attachment; filename="{alert.id}.{found.format}"'}
        if found.cut:
            headers["x-netclust-cut"] = "true"  # there were more
        return Response(found.data, media_type=PCAP, headers=headers)

    def _extract(self, alert: Alert) -> Extracted:
        files, why = self.view.captures(alert)
        wanted = packet_connections(alert)
        if not files or not wanted:
            raise RefusedError(404, "no_packets", why or "the alert has no addresses to look for")
        if not self._extracting.acquire(blocking=False):  # it reads whole captures, and threads are few
            raise RefusedError(503, "busy", "packets of another alert are being looked for: try again in some seconds")
        try:
            return extract_packets(files, wanted)
        finally:
            self._extracting.release()

    async def backlog(self, request: Request) -> Response:
        """Alerts that wait for an answer."""
        limit = operation_query(request, ListQuery).limit
        found = await run_in_threadpool(
            self._fresh, "backlog", 0, lambda: self.view.triage.backlog(self.view.classes())
        )
        rows = [_Waiting(brief, settled.alerts, settled.records) for brief, settled in found[:limit]]
        return json_response(_Backlog(len(found), rows))

    async def cluster(self, request: Request) -> Response:
        """One cluster."""
        return json_response(await run_in_threadpool(self._cluster, request.path_params["id"]))

    def _cluster(self, ident: int) -> _ClusterDetails:
        rows = self.view.history.clusters([ident]) if ident <= _BIGGEST else []
        if not rows:
            raise NotFoundError(f"there is no cluster {ident}, or it is not stored yet: `netclust clusters` lists them")
        records = self.view.forest.of_cluster(ident, RECORDS_OF_CLUSTER)
        records = records or self.view.history.of_cluster(ident, RECORDS_OF_CLUSTER)
        alerts = self.view.triage.of_cluster(ident, RECORDS_OF_CLUSTER)
        return _ClusterDetails(rows[0], alerts, records, self.view.triage.labels("cluster", str(ident)))

    async def extent(self, request: Request) -> Response:
        """From when to when records are stored."""
        buckets = operation_query(request, _Extent).buckets
        return json_response(
            await run_in_threadpool(self._fresh, "extent", buckets, lambda: self.view.history.extent(buckets))
        )

    async def forest(self, request: Request) -> Response:
        """Records, live or of a time that is stored."""
        q = operation_query(request, _Forest)
        found = await run_in_threadpool(self._live if q.until is None else self._past, q)
        return json_response(found)

    def _live(self, q: _Forest) -> _ForestPart:
        forest = self.view.forest
        nodes = forest.nodes(q.after, q.limit)
        newest = int(nodes.tick[-1]) if len(nodes) else q.after
        trees = self._trees(set(nodes.cluster.tolist()))
        return _ForestPart(self.view.instance, newest, list(forest.labels), _columns(nodes), trees)

    def _past(self, q: _Forest) -> _ForestPart:
        until = min(max(q.until or 0, 0), _BIGGEST)
        nodes = self.view.history.nodes(max(until - max(q.span, 0), 0), until, q.limit)
        labels = sorted({node.label for node in nodes})
        numbers = {label: number for number, label in enumerate(labels)}
        columns = _Columns(
            tick=[n.tick for n in nodes], link=[n.link for n in nodes], hops=[n.hops for n in nodes],
            cluster=[n.cluster for n in nodes], label=[numbers[n.label] for n in nodes],
            verdict=[VERDICTS.index(n.verdict) for n in nodes], score=[n.score for n in nodes],
            time=[n.time for n in nodes],
        )  # fmt: skip
        trees = self._trees({n.cluster for n in nodes})
        return _ForestPart(self.view.instance, nodes[-1].tick if nodes else -1, labels, columns, trees)

    def _trees(self, clusters: set[int]) -> list[_Tree]:
        entities = self.view.history.entities(sorted(clusters))
        return [
            _Tree(
                row.ident, row.label, row.records, row.anomalous, row.first_time, row.last_time, row.top_score,
                entities.get(row.ident, ""),
            )
            for row in self.view.history.clusters(sorted(clusters))
        ]  # fmt: skip

    async def record(self, request: Request) -> Response:
        """One record."""
        tick = request.path_params["tick"]
        node = self.view.forest.node(tick) if tick <= _BIGGEST else None
        if node is None and tick <= _BIGGEST:
            node = await run_in_threadpool(self.view.history.node, tick)
        if node is None:
            raise NotFoundError(f"record {tick} is not kept: only some are, for showing")
        return json_response(_Record(node))

    async def label(self, request: Request) -> Response:
        """One label, and what it changed."""
        row = await run_in_threadpool(self.store.label, request.path_params["seq"])
        effect = row.effect if isinstance(row.effect, dict) else {}
        closed = await run_in_threadpool(self.view.triage.found, list(effect.get("closed", ())))
        return json_response(_LabelDetails(row, closed, int(effect.get("pinned", 0))))

    def _fresh(self, what: str, size: int, make: Callable[[], Found]) -> Found:
        """What was made before, if nobody has written to the store since."""
        version = self.store.data_version()
        known = self._known.get((what, size))
        if known is None or known[0] != version:
            if len(self._known) > 16:  # sizes that people think of
                self._known.clear()
            known = self._known[what, size] = version, make()
        found: Found = known[1]
        return found


def _columns(nodes: Nodes) -> _Columns:
    scores = [score if abs(score) < 1e30 else None for score in nodes.score.tolist()]
    return _Columns(
        tick=nodes.tick.tolist(), link=nodes.link.tolist(), hops=nodes.hops.tolist(), cluster=nodes.cluster.tolist(),
        label=nodes.label.tolist(), verdict=nodes.verdict.tolist(), score=scores, time=nodes.time.tolist(),
    )  # fmt: skip
