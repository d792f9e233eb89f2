"""The console's files, read once when the server starts. What is asked for is looked up by name, never on the disk.

Every file has a strong ETag, so a browser asks anew each time and gets no more than a 304; texts are packed in advance.

>>> page = Asset.of("app.js", b"export const title = 'netclust';" * 40)
>>> page.kind, len(page.plain.body), page.packed is not None
('text/javascript; charset=utf-8', 1280, True)
>>> takes_gzip("br, gzip;q=0.8"), takes_gzip("gzip;q=0, br"), takes_gzip("")
(True, False, False)
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from netclust.errors import InputError

__all__ = ["KINDS", "STATIC", "Asset", "Variant", "console_routes", "read_assets", "takes_gzip"]

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
"""What is served, and as what. A file of another kind is not."""

_PACKED = (".png", ".ico")  # as small as they get
_ICONS = ("favicon.ico", "icon.svg")


class Variant(msgspec.Struct, frozen=True):
    """What is sent, and its name in a browser's cache."""

    body: bytes
    etag: str


class Asset(msgspec.Struct, frozen=True):
    """A file in memory."""

    kind: str
    plain: Variant
    packed: Variant | None  # where that pays

    @staticmethod
    def of(name: str, body: bytes) -> Asset:
        """A file of that name."""
        suffix = Path(name).suffix
        digest = hashlib.sha256(body).hexdigest()[:32]
        small = body if suffix in _PACKED else gzip.compress(body, mtime=0)
        pays = len(small) < 0.9 * len(body)
        packed = Variant(small, f'"{digest}-gzip"') if pays else None  # other bytes have another strong ETag
        return Asset(KINDS[suffix], Variant(body, f'"{digest}"'), packed)

    def answer(self, request: Request) -> Response:
        """The file, or that the browser has it."""
        headers = {"content-type": self.kind}
        chosen = self.plain
        if self.packed is not None:
            headers["vary"] = "Accept-Encoding"
            if takes_gzip(",".join(request.headers.getlist("accept-encoding"))):
                chosen = self.packed
        headers["etag"] = chosen.etag
        if _has(",".join(request.headers.getlist("if-none-match")), chosen.etag):
            del headers["content-type"]
            return Response(status_code=304, headers=headers)
        if chosen is self.packed:
            headers["content-encoding"] = "gzip"
        return Response(chosen.body, headers=headers)


def read_assets(folder: Path = STATIC) -> dict[str, Asset]:
    """The files of a folder by name; those of its subfolders, hidden ones and those of another kind are left out."""
    try:
        paths = sorted(
            path for path in folder.iterdir()
            if path.suffix in KINDS and not path.name.startswith(".") and path.is_file()
        )  # fmt: skip
        assets = {path.name: Asset.of(path.name, path.read_bytes()) for path in paths}
    except OSError as error:
        raise InputError(
            f"{folder}: the console's files cannot be read: {error.strerror}: install netclust anew"
        ) from None
    if "index.html" not in assets:
        raise InputError(f"{folder}: the console has no index.html: install netclust anew")
    return assets


def console_routes(folder: Path = STATIC) -> list[Route]:
    """`/` is index.html, `/console/NAME` a file, `/favicon.ico` the icon if there is one.

    >>> [route.path for route in console_routes()][:2]
    ['/', '/console/{name}']
    """
    assets = read_assets(folder)

    async def index(request: Request) -> Response:
        return assets["index.html"].answer(request)

    async def file(request: Request) -> Response:
        found = assets.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404, "the console has no such file")
        return found.answer(request)

    async def icon(request: Request) -> Response:
        return next(assets[name] for name in _ICONS if name in assets).answer(request)

    routes = [Route("/", index), Route("/console/{name}", file)]
    return [*routes, Route("/favicon.ico", icon)] if any(name in assets for name in _ICONS) else routes


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding names gzip, and does not rule it out."""
    for part in accepted.lower().split(","):
        name, _, weight = part.replace(" ", "").replace("\t", "").partition(";")
        if name == "gzip":
            try:
                return not weight or (weight.startswith("q=") and float(weight[2:]) > 0)
            except ValueError:
                return False
    return False


def _has(known: str, etag: str) -> bool:
    """Whether an If-None-Match holds the ETag. A proxy that packs makes it a weak one: that counts too."""
    return any(each.strip().removeprefix("W/") in (etag, "*") for each in known.split(","))
