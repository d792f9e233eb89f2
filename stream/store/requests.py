"""What people say to the store, read in one place for the command line and for HTTP: targets, labels, times, rules.

>>> parse_target("cluster:7"), parse_target("7").text, parse_target("live:12").kind
(LabelTarget(kind='cluster', text='7'), '7', 'record')
>>> parse_label(" normal"), parse_label("attack:smurf")
('normal', 'attack:smurf')
>>> parse_until("8h", now=0) // 10**9, parse_since("2024-01-01", now=0) // 10**9
(28800, 1704067200)
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal

import msgspec

from netclust.errors import InputError

__all__ = [
    "MAX_TEXT",
    "MAX_WHO",
    "LabelTarget",
    "SuppressionRule",
    "check_text",
    "iso",
    "parse_label",
    "parse_since",
    "parse_target",
    "parse_until",
]

MAX_WHO = 128
MAX_TEXT = 1000
MAX_NUMBER = 1 << 63  # what SQLite keeps, and the linker counts to

TargetKind = Literal["alert", "cluster", "record"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LATEST = datetime(2262, 1, 1, tzinfo=UTC)  # nanoseconds end there


class LabelTarget(msgspec.Struct, frozen=True):
    """What a label is about; `text` is the alert's id, the cluster's number, or the record's SOURCE:SEQ."""

    kind: TargetKind
    text: str


def parse_target(text: str) -> LabelTarget:
    """An alert id or its beginning, `cluster:N` or just N, or a record as SOURCE:SEQ."""
    text = text.strip()
    if re.fullmatch(r"a-[0-9A-Za-z]{1,62}", text):
        return LabelTarget("alert", text)
    found = re.fullmatch(r"(?:([A-Za-z0-9_-]{1,32}):)?([0-9]{1,20})", text)
    if found is None:
        raise InputError(
            f"{text[:80]!r} is nothing that can be labelled: give an alert (a-...), a cluster (cluster:N) or a record "
            "(SOURCE:SEQ), as `netclust alerts` shows them"
        )
    kind: TargetKind = "cluster" if found[1] in (None, "cluster") else "record"
    number = int(found[2])
    if number >= (MAX_NUMBER if kind == "cluster" else 2 * MAX_NUMBER):
        raise InputError(f"{text[:80]!r}: there is no {kind} of that number")
    return LabelTarget(kind, str(number) if kind == "cluster" else f"{found[1]}:{number}")


def parse_label(text: str) -> str:
    """`normal`, or `attack:NAME`."""
    found = re.fullmatch(r"normal|attack:([A-Za-z0-9_.-]{1,64})", text.strip())
    if found is None or (found[1] or "").lower() in ("normal", "novel"):
        raise InputError(
            f"{text[:80]!r} is no label: say normal, or attack:NAME with 1 to 64 letters, digits, _ . or - "
            "(not normal or novel)"
        )
    return found[0]


def check_text(text: str, what: str, most: int, *, needed: bool = False) -> str:
    """Text from a person, without white space around it; refused if it is too long or no text."""
    text = text.strip()
    if needed and not text:
        raise InputError(f"{what} is missing: it is kept for those who come later")
    if len(text) > most:
        raise InputError(f"{what} has {len(text)} characters: at most {most}")
    if any("\ud800" <= c <= "\udfff" or c == "\0" for c in text):
        raise InputError(f"{what} is not text")
    return text


def parse_until(text: str, now: int) -> int:
    """When something ends, in nanoseconds: `8h` from now, or an ISO time (UTC unless it says so). Empty: -1, never."""
    return -1 if not text.strip() else _time(text, now, 1)


def parse_since(text: str, now: int) -> int:
    """When something began, in nanoseconds: `2h` ago, or an ISO time."""
    return _time(text, now, -1)


def _time(text: str, now: int, sign: int) -> int:
    text = text.strip()
    found = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,6})?)([smhdw])", text)
    if found:
        return now + sign * round(float(found[1]) * _UNITS[found[2]] * 1e9)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text[:40]!r} is no time: say 90s, 30m, 8h, 7d, 2w or 2026-01-31T12:00:00Z") from None
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    if not datetime(1970, 1, 1, tzinfo=UTC) <= moment < _LATEST:
        raise InputError(f"{text[:40]!r} is too early or too late for a time of traffic")
    return round(moment.timestamp() * 1_000_000) * 1000


def iso(nanoseconds: int) -> str:
    """A time for people, in UTC; nothing for -1.

    >>> iso(1_704_067_200_000_000_000), iso(-1)
    ('2024-01-01T00:00:00Z', '')
    """
    if nanoseconds < 0:
        return ""
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).isoformat().replace("+00:00", "Z")


class SuppressionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a suppression matches, as people give it; `netclust.stream.alerts.suppression` checks it. All given must
    match."""

    address: str = ""
    source: str = ""
    destination: str = ""
    port: int | None = None
    cluster: int | None = None
    label: str = ""
    attribute: str = ""
