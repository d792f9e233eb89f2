"""What web, TLS, QUIC, DNS, mail and file transfer say on the wire, as parts of templates.

>>> from netclust.datasets.simulators.capture_templates import size_of
>>> size_of(client_hello("firefox", "example.test")) > 200
True
>>> dns_query("example.test", A)[1]
b'\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x07example\\x04test\\x00\\x00\\x01\\x00\\x01'
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from netclust.datasets.simulators.capture_templates import (
    Part,
    Patch,
    size_of,
    template_digits,
    template_hexdigits,
    template_length,
    template_length_decimal,
    template_noise,
    template_tag,
)

A, PTR, MX, TXT, AAAA, SRV, HTTPS, ANY = 1, 12, 15, 16, 28, 33, 65, 255
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """What one TLS library offers."""

    ciphers: tuple[int, ...]
    groups: tuple[int, ...]
    signatures: tuple[int, ...]
    extensions: tuple[int, ...]
    alpn: tuple[str, ...]
    tls13: bool = True


_MODERN = (
    0x1301,
    0x1302,
    0x1303,
    0xC02B,
    0xC02F,
    0xC02C,
    0xC030,
    0xCCA9,
    0xCCA8,
    0xC013,
    0xC014,
    0x9C,
    0x9D,
    0x2F,
    0x35,
)
_SIGNATURES = (0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601)
HELLOS = {
    "chrome": Hello(
        (0x4A4A, *_MODERN), (0x6A6A, 29, 23, 24), _SIGNATURES,
        (0x8A8A, 0, 23, 0xFF01, 10, 11, 35, 16, 5, 13, 18, 51, 45, 43, 27, 17513, 0xAAAA, 21), ("h2", "http/1.1"),
    ),
    "firefox": Hello(
        (
            0x1301, 0x1303, 0x1302, 0xC02B, 0xC02F, 0xCCA9, 0xCCA8, 0xC02C, 0xC030,
            0xC00A, 0xC009, 0xC013, 0xC014, 0x9C, 0x9D,
        ),
        (29, 23, 24, 25, 256, 257), (0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601),
        (0, 23, 0xFF01, 10, 11, 35, 16, 5, 34, 51, 43, 13, 45, 28), ("h2", "http/1.1"),
    ),
    "safari": Hello(
        (
            0x3A3A, 0x1301, 0x1302, 0x1303, 0xC02C, 0xC02B, 0xCCA9, 0xC030, 0xC02F, 0xCCA8,
            0xC00A, 0xC009, 0xC014, 0xC013,
        ),
        (0x2A2A, 29, 23, 24, 25), (0x0403, 0x0804, 0x0401, 0x0503, 0x0203, 0x0805, 0x0501, 0x0806, 0x0601, 0x0201),
        (0x1A1A, 0, 23, 0xFF01, 10, 11, 16, 5, 13, 18, 51, 45, 43, 27), ("h2", "http/1.1"),
    ),
    "windows": Hello(
        (
            0xC02C, 0xC02B, 0xC030, 0xC02F, 0xC024, 0xC023, 0xC028, 0xC027,
            0xC00A, 0xC009, 0xC014, 0xC013, 0x9D, 0x9C, 0x3D,
        ),
        (29, 23, 24), (0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0201, 0x0403, 0x0503, 0x0203),
        (0, 5, 10, 11, 13, 35, 23, 0xFF01), (), False,
    ),
    "openssl": Hello(
        (
            0x1302, 0x1303, 0x1301, 0xC02C, 0xC030, 0x9F, 0xCCA9, 0xCCA8,
            0xCCAA, 0xC02B, 0xC02F, 0x9E, 0xC024, 0xC028, 0x6B,
        ),
        (29, 23, 30, 25, 24), (0x0403, 0x0503, 0x0603, 0x0807, 0x0808, 0x0809, 0x080A, 0x080B, 0x0804, 0x0805, 0x0806),
        (0, 11, 10, 35, 22, 23, 13, 43, 45, 51), (),
    ),
    "go": Hello(
        (0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0xCCA8, 0xC009, 0xC013, 0xC00A, 0xC014, 0x1301, 0x1302, 0x1303),
        (29, 23, 24, 25), (0x0804, 0x0403, 0x0807, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0503, 0x0603),
        (0, 5, 10, 11, 13, 0xFF01, 18, 43, 51), ("h2", "http/1.1"),
    ),
    "device": Hello(
        (0xC02B, 0xC02F, 0xC023, 0xC027, 0x9C, 0x2F), (23, 24), (0x0403, 0x0401, 0x0501), (0, 10, 11, 13, 23), (),
        False,
    ),
    "mail": Hello(
        (0x1302, 0x1303, 0x1301, 0xC030, 0xC02F, 0xCCA8, 0xC028, 0xC027, 0x9D, 0x9C), (29, 23, 24), _SIGNATURES,
        (0, 11, 10, 35, 22, 23, 13, 43, 45, 51), ("imap",),
    ),
}  # fmt: skip


def _u16s(values: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(values)}H", *values)


def _sized(data: bytes, width: int = 2) -> bytes:
    return len(data).to_bytes(width, "big") + data


def _record(kind: int, parts: Parts, version: int = 0x0303) -> Parts:
    return (struct.pack(">BHH", kind, version, size_of(parts)), *parts)


def client_hello(kind: str, name: str) -> Parts:
    """A TLS ClientHello record as this kind of client sends it to the server of this name."""
    hello = HELLOS[kind]
    groups = hello.groups
    fixed = {
        0: _sized(b"\0" + _sized(name.encode())),
        5: b"\1\0\0\0\0",
        10: _sized(_u16s(groups)),
        11: b"\1\0",
        13: _sized(_u16s(hello.signatures)),
        16: _sized(b"".join(_sized(p.encode(), 1) for p in hello.alpn)),
        27: b"\2\0\2",
        28: b"\x40\x01",
        34: _sized(_u16s((0x0403, 0x0503, 0x0603, 0x0203))),
        43: _sized(_u16s((0x0304, 0x0303)), 1),
        45: b"\1\1",
        17513: b"\0\3\2h2",
        21: bytes(64 + 16 * (len(name) % 5)),
        0xFF01: b"\0",
    }
    extensions: list[Part] = []
    for number in hello.extensions:
        if number == 16 and not hello.alpn:
            continue
        if number == 51:
            extensions += [_u16s((51, 38, 36, 29, 32)), template_noise(32)]
        else:
            extensions.append(struct.pack(">H", number) + _sized(fixed.get(number, b"")))
    body: Parts = (
        _u16s((0x0303,)), template_noise(32), b"\x20", template_noise(32, rank=0),
        _sized(_u16s(hello.ciphers)) + b"\1\0",
        struct.pack(">H", size_of(tuple(extensions))), *extensions,
    )  # fmt: skip
    return _record(22, (b"\1" + size_of(body).to_bytes(3, "big"), *body), 0x0301)


_CHANGE = bytes.fromhex("140303000101")


def server_hello(kind: str, cipher: int) -> Parts:
    """A ServerHello and the head of what follows encrypted; TLS 1.2 clients resume, so no certificate is seen."""
    modern = HELLOS[kind].tls13
    extensions: Parts = (
        (bytes.fromhex("002b0002030400330024001d0020"), template_noise(32)) if modern else (b"\xff\1\0\1\0",)
    )
    body: Parts = (
        _u16s((0x0303,)), template_noise(32), b"\x20", template_noise(32, rank=0), _u16s((cipher,)) + b"\0",
        struct.pack(">H", size_of(extensions)), *extensions,
    )  # fmt: skip
    head = _record(22, (b"\2" + size_of(body).to_bytes(3, "big"), *body))
    return (*head, _CHANGE, *_sealed(23 if modern else 22))


def client_finished(kind: str) -> Parts:
    """ChangeCipherSpec and the client's Finished."""
    if HELLOS[kind].tls13:
        return (_CHANGE, b"\x17\3\3\0\x45", template_noise(69))
    return (_CHANGE, b"\x16\3\3\0\x28", template_noise(40))


def _sealed(kind: int = 23) -> Parts:
    """Return the head of an encrypted record; the filler is its content."""
    return (struct.pack(">BH", kind, 0x0303), template_length())


def quic_initial(long_id: int) -> Parts:
    """A QUIC version 1 Initial packet that fills a datagram of 1,200 bytes."""
    head = size_of((b"\xc3\0\0\0\1\x08", template_noise(long_id), b"\0\0", b"\x44\x00"))
    rest = 1200 - head
    return (
        b"\xc3\0\0\0\1" + bytes([long_id]),
        template_noise(long_id),
        b"\0\0",
        struct.pack(">H", 0x4000 | rest),
        template_noise(rest),
    )


def quic_handshake() -> Parts:
    """The server's Initial and Handshake in one datagram."""
    rest = 1200 - 9 - 8 - 3
    return (b"\xc1\0\0\0\1\0\x08", template_noise(8), b"\0", struct.pack(">H", 0x4000 | rest), template_noise(rest))


def _name(name: str) -> bytes:
    return b"".join(_sized(label.encode(), 1) for label in name.rstrip(".").split(".") if label) + b"\0"


def dns_query(name: str, kind: int, edns: bool = False) -> Parts:
    """A DNS question."""
    extra = b"\0\0\x29\x04\xd0\0\0\0\0\0\0" if edns else b""
    return (
        template_tag(),
        struct.pack(">5H", 0x0100, 1, 0, 0, int(edns)) + _name(name) + struct.pack(">2H", kind, 1) + extra,
    )


def dns_answer(name: str, kind: int, data: tuple[bytes, ...], code: int = 0, ttl: int = 300) -> Parts:
    """The answer to it: these resource data, or an error code."""
    head = struct.pack(">5H", 0x8180 | code, 1, len(data), 0, 0) + _name(name) + struct.pack(">2H", kind, 1)
    records = b"".join(b"\xc0\x0c" + struct.pack(">2HIH", kind, 1, ttl, len(rdata)) + rdata for rdata in data)
    return (template_tag(), head + records)


def text_data(text: str) -> bytes:
    """TXT resource data."""
    return b"".join(_sized(text[i : i + 255].encode(), 1) for i in range(0, len(text), 255))


def mail_data(name: str) -> bytes:
    """MX resource data."""
    return b"\0\x0a" + _name(name)


def name_data(name: str) -> bytes:
    """PTR resource data."""
    return _name(name)


def dns_carrier(zone: str, widths: tuple[int, ...], alphabet: type[Patch] | int, kind: int) -> Parts:
    """A question whose first labels are encoded data, as tunnels ask it."""
    labels: list[Part] = []
    for width in widths:
        labels += [bytes([width]), Patch(int(alphabet), width) if isinstance(alphabet, int) else alphabet(0, width)]
    return (template_tag(), struct.pack(">5H", 0x0100, 1, 0, 0, 0), *labels, _name(zone) + struct.pack(">2H", kind, 1))


def carried(query: Parts, kind: int, rdata: Parts, code: int = 0) -> Parts:
    """The answer to such a question, which it repeats."""
    labels = query[2:]
    answers = 1 if rdata else 0
    records: Parts = ()
    if rdata:
        records = (b"\xc0\x0c" + struct.pack(">2HIH", kind, 1, 1, size_of(rdata)), *rdata)
    return (template_tag(), struct.pack(">5H", 0x8180 | code, 1, answers, 0, 0), *labels, *records)


def over_tcp(message: Parts) -> Parts:
    """A DNS message with the length that TCP needs before it."""
    return (struct.pack(">H", size_of(message)), *message)


AGENTS = {
    "chrome": "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 "
    "Safari/537.36",
    "firefox": "Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
    "safari": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
    "Version/17.2 Safari/605.1.15",
    "windows": "Microsoft-CryptoAPI/10.0",
    "openssl": "Debian APT-HTTP/1.3 (2.6.1)",
    "go": "Go-http-client/1.1",
    "device": "ESP32 HTTP Client/1.0",
    "mail": "Thunderbird/115.6.0",
    "crawler": "Mozilla/5.0 (compatible; ExampleBot/2.1; +http://example.test/bot.html)",
    "curl": "curl/8.5.0",
    "python": "python-requests/2.31.0",
}  # fmt: skip


def http_request(agent: str, host: str, path: str, method: str = "GET", extra: str = "") -> Parts:
    """A request head; a POST announces the filler as its content."""
    lines = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENTS[agent]}\r\n"
    if agent in ("chrome", "firefox", "safari"):
        lines += "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        lines += "Accept-Language: en-US,en;q=0.5\r\n"
        lines += "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    else:
        lines += "Accept: */*\r\n"
    lines += extra
    if agent in ("chrome", "firefox", "safari"):
        cookie: Parts = (b"Cookie: session=", template_hexdigits(16 + len(host) % 17), b"\r\n")
    else:
        cookie = ()
    if method == "POST":
        form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: "
        return (lines.encode(), *cookie, form, template_length_decimal(), b"\r\n\r\n")
    return (lines.encode(), *cookie, b"\r\n")


def http_response(code: str, content: str, server: str) -> Parts:
    """A response head that announces the filler as its content."""
    head = f'HTTP/1.1 {code}\r\nServer: {server}\r\nContent-Type: {content}\r\nETag: "'
    return (
        head.encode(),
        template_hexdigits(12),
        b'"\r\nConnection: keep-alive\r\nContent-Length: ',
        template_length_decimal(),
        b"\r\n\r\n",
    )


def mqtt_connect(client: str) -> Parts:
    """An MQTT 3.1.1 CONNECT."""
    body = b"\0\4MQTT\4\2\0\x3c" + _sized(client.encode())
    return (b"\x10" + bytes([len(body)]) + body,)


def mqtt_publish(topic: str) -> Parts:
    """A PUBLISH of one reading."""
    body: Parts = (
        _sized(topic.encode()) + b'{"value":2',
        template_digits(1),
        b".",
        template_digits(2),
        b',"n":',
        template_digits(4),
        b"}",
    )
    return (b"\x30" + bytes([size_of(body)]), *body)
