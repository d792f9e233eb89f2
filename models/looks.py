"""The ledger of runs on a public test set: one JSON line a run, so that no look at the test labels goes uncounted.

A test set is known by the SHA-256 of its unpacked bytes (`RecordReader.sha256`), whatever its file is called. The
ledger is the file that NETCLUST_LOOKS names (`off` or nothing: none), else `benchmarks/test-looks.jsonl` of the source
checkout that this package runs from; an installed package has none.

>>> import tempfile
>>> kdd_test = "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84"
>>> with tempfile.TemporaryDirectory() as folder:
...     ledger = Path(folder, "looks.jsonl")
...     record_look("an example", kdd_test, rows=36, draws=5, ledger=ledger)
...     record_look("our own records", "0" * 64, rows=1, draws=1, ledger=ledger)
...     count_looks(ledger)
True
False
(1, 36)
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from netclust.errors import InputError

__all__ = ["TEST_SETS", "Look", "count_looks", "find_ledger", "record_look"]

VARIABLE = "NETCLUST_LOOKS"
LEDGER = Path(__file__).resolve().parent.parent / "benchmarks" / "test-looks.jsonl"

TEST_SETS = {
    "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84": "KDDTest+",
    "746993ac9e25868827cacf09eab450050a2a1056e1ce48a1ad39f5dc801d531d": "KDDTest-21",
}


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the ledger: a run that evaluated `rows` settings, each with `draws` reference sets."""

    date: str
    what: str
    set: str
    rows: int
    draws: int


def record_look(what: str, sha256: str, rows: int, draws: int, ledger: Path | None = None) -> bool:
    """Append a line if the checksum is a test set's; whether that was done. No ledger given: `find_ledger()`."""
    name = TEST_SETS.get(sha256)
    path = find_ledger() if ledger is None else ledger
    if name is None or path is None:
        return False
    date = datetime.now(UTC).isoformat(timespec="seconds")
    look = Look(date=date, what=what, set=name, rows=rows, draws=draws)
    _append(path, json.dumps(msgspec.to_builtins(look)).encode() + b"\n")
    return True


def find_ledger() -> Path | None:
    """Where looks are noted, None where they are not."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named in ("", "off") else Path(named)
    return LEDGER if LEDGER.is_file() and os.access(LEDGER, os.W_OK) else None


def count_looks(ledger: Path) -> tuple[int, int]:
    """(runs, rows): the lines of a ledger, and the settings evaluated in them; (0, 0) before the first."""
    try:
        lines = ledger.read_bytes().splitlines()
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise InputError(f"{ledger}: {error.strerror}") from None
    looks = [_look(line, f"{ledger} line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    return len(looks), sum(look.rows for look in looks)


def _look(line: bytes, where: str) -> Look:
    try:
        return msgspec.json.decode(line, type=Look)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: not a look ({error})") from None


def _append(path: Path, line: bytes) -> None:
    """In one write to the end of the file: runs at the same time do not mix their lines."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
    except OSError as error:
        why = f"the look at the test set cannot be noted there: {error.strerror}"
        raise InputError(f"{path}: {why}; {VARIABLE} names another file, or is off") from None
    if written != len(line):
        raise InputError(f"{path}: the last line is cut short, the disk is full")
