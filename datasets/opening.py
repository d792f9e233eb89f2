"""Open a file for reading, whatever it is packed with: recognised by content, not by name.

>>> import gzip, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "plain-looking.txt")
...     _ = path.write_bytes(gzip.compress(b"hello"))
...     with open_bytes(path) as stream:
...         stream.read()
b'hello'
"""

from __future__ import annotations

import gzip
import lzma
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from netclust.errors import InputError

STDIN = "-"
UNREADABLE = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)

_GZIP, _XZ, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04"
_SPOOL_BYTES = 64 << 20  # a zip on standard input is kept in memory up to here, then on disk


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file (plain, gz, xz, or a zip with one file in it), or of standard input (`-`)."""
    name = str(path)
    with ExitStack() as stack:
        try:
            raw = cast(BinaryIO, sys.stdin.buffer) if name == STDIN else stack.enter_context(open(path, "rb"))
            magic = raw.peek(6)[:6]  # type: ignore[attr-defined]
            if magic.startswith(_GZIP):
                stream = cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=raw)))
            elif magic.startswith(_XZ):
                stream = cast(BinaryIO, stack.enter_context(lzma.LZMAFile(raw)))
            elif magic.startswith(_ZIP):
                stream = _open_zip(raw, name, stack)
            else:
                stream = raw
        except UNREADABLE as error:
            raise unreadable(path, error) from None
        yield stream


def unreadable(path: str | Path, error: BaseException) -> InputError:
    """What to tell the user when the bytes themselves cannot be had."""
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"{path}: {error.strerror}")
    return InputError(f"{path}: cannot be unpacked, it is cut short or corrupt ({error})")


def _open_zip(raw: BinaryIO, name: str, stack: ExitStack) -> BinaryIO:
    """The only file of an archive."""
    seekable = raw
    if name == STDIN:
        spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 (the stack closes it)
        seekable = cast(BinaryIO, stack.enter_context(spool))
        while block := raw.read(1 << 20):
            seekable.write(block)
        seekable.seek(0)
    archive = stack.enter_context(zipfile.ZipFile(seekable))
    members = [m.filename for m in archive.infolist() if not m.is_dir()]
    if len(members) != 1:
        raise InputError(f"{name}: the archive holds {len(members)} files, unpack it and name the one to read")
    return cast(BinaryIO, stack.enter_context(archive.open(members[0])))
