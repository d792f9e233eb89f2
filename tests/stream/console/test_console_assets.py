"""The console's files: only those, as what they are, and no byte more often than needed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware

from netclust.errors import InputError
from netclust.stream.console.assets import KINDS, STATIC, Asset, console_routes, read_assets, takes_gzip
from netclust.stream.http.guard import PAGE_POLICY, Guard
from netclust.stream.http.server import serve

PAGE = b"<!doctype html><title>netclust</title>" + b"<p>text</p>" * 500
SCRIPT = b"export const title = 'netclust';\n" * 100
PICTURE = b"\x89PNG" + bytes(5000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    static = tmp_path / "console" / "static"
    (static / "more.js").mkdir(parents=True)
    files = {"index.html": PAGE, "app.js": SCRIPT, "dot.png": PICTURE, "tiny.css": b"a{}", "icon.svg": b"<svg/>"}
    strays = {"app.js~": b"old", "notes.md": b"secret", ".app.js": b"swap", "app.py": b"code", "more.js/x.js": b"deep"}
    for name, body in (files | strays).items():
        (static / name).write_bytes(body)
    (static.parent / "secret.html").write_bytes(b"secret")
    return static


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    guard = Middleware(Guard, token=lambda: "", loopback=True)
    server = serve(Starlette(routes=console_routes(folder), middleware=[guard]), "127.0.0.1:0")
    with httpx.Client(base_url=server.url, trust_env=False, timeout=20, headers={"Accept-Encoding": "gzip"}) as opened:
        yield opened
    assert server.stop()


def test_every_file_is_sent_as_what_it_is(client: httpx.Client) -> None:
    for path, kind, body in (
        ("/", "text/html; charset=utf-8", PAGE),
        ("/console/index.html", "text/html; charset=utf-8", PAGE),
        ("/console/app.js", "text/javascript; charset=utf-8", SCRIPT),
        ("/console/dot.png", "image/png", PICTURE),
        ("/console/tiny.css", "text/css; charset=utf-8", b"a{}"),
        ("/favicon.ico", "image/svg+xml; charset=utf-8", b"<svg/>"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, kind, body), path
        assert answer.headers["content-security-policy"] == PAGE_POLICY
        assert answer.headers["cache-control"] == "no-cache"
        head = client.head(path)
        assert (head.content, head.headers["content-length"]) == (b"", answer.headers["content-length"])


@pytest.mark.parametrize(
    "path",
    ["app.py", "notes.md", ".app.js", "app.js~", "more.js", "more.js/x.js", "..%2fsecret.html", "../secret.html",
     "APP.JS", "%2e%2e/secret.html", "..\\secret.html", "app.js%00", "app.js%0a", "", "static/app.js",
     "/etc/passwd", "app.js/"],
)  # fmt: skip
def test_what_is_not_of_the_console_is_not_sent(client: httpx.Client, path: str) -> None:
    target = f"/console/{path}".encode()
    answer = client.send(httpx.Request("GET", client.base_url, extensions={"target": target}))  # as it stands
    assert answer.status_code in (307, 404), answer.text  # a slash too many is taken away
    assert b"secret" not in answer.content


def test_a_file_that_is_known_is_not_sent_again(client: httpx.Client) -> None:
    for path in ("/", "/console/app.js", "/console/dot.png"):
        for encoding in ("gzip", "identity"):
            first = client.get(path, headers={"Accept-Encoding": encoding})
            etag = first.headers["etag"]
            assert etag.startswith('"')
            for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
                again = client.get(path, headers={"Accept-Encoding": encoding, "If-None-Match": known})
                assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
                assert again.headers.get("vary") == first.headers.get("vary")
                assert again.headers["cache-control"] == "no-cache"
            for unknown in ('"other"', "", etag[:-2] + '"', etag.strip('"')):
                again = client.get(path, headers={"Accept-Encoding": encoding, "If-None-Match": unknown})
                assert (again.status_code, again.content) == (200, first.content)


def test_an_old_file_is_told_from_a_new_one(folder: Path) -> None:
    old = read_assets(folder)["app.js"]
    (folder / "app.js").write_bytes(SCRIPT + b"//")
    new = read_assets(folder)["app.js"]
    assert old.packed is not None
    assert new.packed is not None
    assert len({old.plain.etag, old.packed.etag, new.plain.etag, new.packed.etag}) == 4
    assert read_assets(folder)["app.js"] == new


def test_a_browser_gets_only_what_it_can_unpack(client: httpx.Client) -> None:
    for accepted, packed in (
        ("gzip", True), ("br, GZIP ; q=0.5", True), ("gzip;q=0", False), ("identity", False), ("xgzip", False),
        ("gzip;q=x", False), ("gzip;q=nan", False), ("", False), ("*", False), ("gzip;level=9", False),
    ):  # fmt: skip
        answer = client.get("/console/app.js", headers={"Accept-Encoding": accepted})
        assert (answer.headers.get("content-encoding") == "gzip") is packed, accepted
        assert answer.content == SCRIPT
        assert answer.headers["vary"] == "Accept-Encoding"
        assert (int(answer.headers["content-length"]) < len(SCRIPT)) is packed
    for path in ("/console/dot.png", "/console/tiny.css"):  # where it does not pay
        answer = client.get(path)
        assert "content-encoding" not in answer.headers
        assert "vary" not in answer.headers


@given(st.text())
def test_any_accept_encoding_is_understood(text: str) -> None:
    assert takes_gzip(text) in (True, False)


@given(st.binary(max_size=3000), st.sampled_from(sorted(KINDS)))
def test_packing_keeps_every_byte_and_saves_space(body: bytes, suffix: str) -> None:
    asset = Asset.of(f"x{suffix}", body)
    assert asset.plain.body == body
    if asset.packed is not None:
        assert gzip.decompress(asset.packed.body) == body
        assert len(asset.packed.body) < len(body)


def test_a_console_without_its_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        console_routes(tmp_path / "none")
    with pytest.raises(InputError, match=r"no index\.html"):
        console_routes(tmp_path)


def test_every_file_of_the_console_is_served_and_asks_no_other_host() -> None:
    assert {path.name for path in STATIC.iterdir()} == set(read_assets())
    for asset in read_assets().values():
        body = asset.plain.body.replace(b"http://www.w3.org/", b"")  # names of XML, not addresses
        assert not [word for word in (b"https://", b"http://", b'src="//', b'href="//') if word in body]
