"""What can be asked of the daemon over HTTP, as one table: routes and their OpenAPI description are made from it.

>>> class Word(ListQuery, frozen=True, kw_only=True):
...     word: str = ""
>>> async def answer(request): ...
>>> asked = Operation("GET", "/api/v1/words", answer, "Words.", query=Word, result=dict[str, int])
>>> describe_operations([asked], version="1")["paths"]["/api/v1/words"]["get"]["parameters"][1]["name"]
'word'
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from netclust.stream.http.guard import RefusedError

__all__ = [
    "MAX_LIMIT",
    "Error",
    "ListQuery",
    "Operation",
    "Strict",
    "describe_operations",
    "operation_body",
    "operation_query",
    "operation_routes",
]

MAX_BODY_BYTES = 64 << 10
BODY_SECONDS = 10.0
MAX_LIMIT = 1000

Answer = Callable[[Request], Awaitable[Response]]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be said; what is unknown is refused."""


class ListQuery(Strict, frozen=True, kw_only=True):
    """What may stand behind the question mark of a list."""

    limit: int = 100

    def __post_init__(self) -> None:
        """Refuse what is too much."""
        most = self.most()
        if not 0 < self.limit <= most:
            raise ValueError(f"limit is a number from 1 to {most}")

    @staticmethod
    def most() -> int:
        """The largest limit."""
        return MAX_LIMIT


class Error(msgspec.Struct, frozen=True):
    """Every error: a code for programs and a sentence for people."""

    error: str
    detail: str


@dataclass(frozen=True, kw_only=False)
class Operation:
    """One question and its answer. `result` None: no JSON, but `media`."""

    method: str
    path: str
    answer: Answer
    summary: str
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    result: Any = None
    status: int = 200
    media: str = "application/json"
    errors: tuple[int, ...] = ()
    token: bool = False  # also on loopback

    @property
    def changes(self) -> bool:
        """Whether it is more than a look."""
        return self.method != "GET"


Given = TypeVar("Given", bound=msgspec.Struct)


def operation_query(request: Request, kind: type[Given]) -> Given:
    """Return the checked query of a request."""
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise RefusedError(400, "query", str(error)) from None


async def operation_body(request: Request, kind: type[Given]) -> Given:
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


def operation_routes(operations: Iterable[Operation]) -> list[Route]:
    """Return the operations as the application wants them."""
    return [Route(one.path, one.answer, methods=[one.method]) for one in operations]


def describe_operations(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Describe the operations in OpenAPI 3.1."""
    asked = list(operations)
    kinds = [kind for one in asked for kind in (one.body, one.result) if kind is not None]
    schemas, components = msgspec.json.schema_components([*kinds, Error], ref_template="#/components/schemas/{name}")
    found = dict(zip(map(id, [*kinds, Error]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in asked:
        paths.setdefault(_plain(one.path), {})[one.method.lower()] = _described(one, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "netclust",
            "version": version,
            "description": "The daemon and its console. Times are nanoseconds since the epoch (UTC), -1 if unknown; "
            "shares lie between 0 and 1. Reading is open on loopback; whatever changes something needs the token.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _plain(path: str) -> str:
    """A path without the kinds of its parts."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _described(one: Operation, schemas: dict[int, dict[str, Any]]) -> dict[str, Any]:
    error = {"description": "Why not.", "content": {"application/json": {"schema": schemas[id(Error)]}}}
    content: dict[str, Any] = {one.media: {"schema": schemas[id(one.result)]} if one.result is not None else {}}
    codes = {400, 401, 403, 421, 429, 500, 503, *one.errors}
    codes |= {408, 413, 415} if one.changes else set()
    codes |= {404} if "{" in one.path else set()
    found: dict[str, Any] = {
        "summary": one.summary,
        "parameters": [*_in_path(one.path), *_in_query(one.query)],
        "responses": {
            str(one.status): {"description": "What was asked for.", "content": content},
            **{str(code): error for code in sorted(codes)},
        },
        "security": [{"token": []}] if one.changes or one.token else [{}, {"token": []}],
    }
    if one.body is not None:
        found["requestBody"] = {"content": {"application/json": {"schema": schemas[id(one.body)]}}, "required": True}
    return found


def _in_path(path: str) -> list[dict[str, Any]]:
    kinds = {"int": {"type": "integer", "minimum": 0}, "": {"type": "string"}}
    return [
        {"name": name, "in": "path", "required": True, "schema": kinds[kind]}
        for name, kind in re.findall(r"\{(\w+):?(\w*)\}", path)
    ]


def _in_query(query: type[msgspec.Struct] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    _, components = msgspec.json.schema_components([query], ref_template="#/components/schemas/{name}")
    properties = components[query.__name__]["properties"]
    if issubclass(query, ListQuery):
        properties["limit"] |= {"minimum": 1, "maximum": query.most()}
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()]
