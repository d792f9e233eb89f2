"""The formats of captures and logs, recognised by the first bytes of a file, never by its name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from netclust.errors import InputError
from netclust.records.opening import peek_bytes

__all__ = ["CaptureFormat", "TextKind", "is_capture", "recognise_capture", "text_kind"]

CaptureFormat = Literal["", "pcap", "pcapng"]
TextKind = Literal["records", "zeek", "eve"]

_FIRST_BYTES = 12
_BEGINNING = 4096  # of a log: its header, or its first event
_ZEEK_HEADER = re.compile(rb"^#(separator|fields)", re.MULTILINE)
_PCAP_MAGIC = tuple(  # times in microseconds, in nanoseconds, and a variant with longer packet headers
    magic.to_bytes(4, order) for magic in (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34) for order in ("little", "big")
)
_PCAPNG_SECTION = b"\x0a\x0d\x0d\x0a"
_PCAPNG_ORDERS = tuple((0x1A2B3C4D).to_bytes(4, order) for order in ("little", "big"))


def recognise_capture(first: bytes) -> CaptureFormat:
    """Return the format of a file by its first 12 bytes, or "" if it is no capture.

    >>> recognise_capture(bytes.fromhex("d4c3b2a1") + bytes(20)), recognise_capture(b"time,src,dst")
    ('pcap', '')
    """
    if first[:4] in _PCAP_MAGIC:
        return "pcap"
    return "pcapng" if first[:4] == _PCAPNG_SECTION and first[8:12] in _PCAPNG_ORDERS else ""


def is_capture(path: str | Path) -> bool:
    """Whether the unpacked bytes begin like a capture; False also for what is not there or cannot be unpacked.

    Standard input (`-`) is looked at without taking anything from it. Of a pipe that is only what has arrived: where
    it is packed as zip or zst, or its first bytes come one by one, the answer is False.

    >>> is_capture("no such file")
    False
    """
    try:
        return recognise_capture(peek_bytes(path, _FIRST_BYTES)) != ""
    except InputError:
        return False


def text_kind(path: str | Path) -> TextKind:
    """Return what kind of text a file has, by its first unpacked bytes: `records` unless it begins like a log.

    Of standard input (`-`) only what has arrived is looked at, and nothing is taken.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "some.txt")
    ...     _ = path.write_text('{"timestamp": "2026-01-02T03:04:05Z", "event_type": "flow"}')
    ...     text_kind(path)
    'eve'
    """
    try:
        head = peek_bytes(path, _BEGINNING).lstrip()
    except InputError:
        return "records"  # whoever reads it says what is wrong
    if head.startswith(b"#") and _ZEEK_HEADER.search(head):
        return "zeek"
    if head.startswith(b"{"):
        return "eve" if b'"event_type"' in head else "zeek"
    return "records"
