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
import io
import lzma
import os
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from netclust.errors import InputError, MissingExtraError

STDIN = "-"
# What the second row has is how zipfile takes some corrupt archives.
UNREADABLE = (
    *(OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile),
    *(RuntimeError, ValueError, LookupError, struct.error),
)

_GZIP, _XZ, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", (b"PK\x03\x04", b"PK\x05\x06")
# A frame, or what parallel packers put before it.
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60)))
_MAGIC_BYTES = 6
_BLOCK_BYTES = 1 << 16
_XZ_MEMORY = 256 << 20  # `xz -9` needs 65 MiB; a hostile header asks for 4 GiB
_ZSTD_MEMORY = 128 << 20  # `zstd --long` needs this; a hostile header asks for 2 GiB
_ZSTD_STEP = 2048  # a packed byte unpacks to 32 KiB at most, and one step's bytes are in memory at once
_SPOOL_BYTES = 64 << 20  # a zip from a pipe is kept in memory up to here, then on disk
_MAX_ZIP_BYTES = 4 << 30  # and is no longer than this


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file (plain, gz, xz, zst, or a zip with one file in it), or of standard input (`-`)."""
    with ExitStack() as stack:
        try:
            raw = _standard_input() if str(path) == STDIN else stack.enter_context(open(path, "rb"))
            stream = _unpacked(raw, str(path), stack)
        except UNREADABLE as error:
            raise unreadable(path, error) from None
        yield stream


def peek_bytes(path: str | Path, count: int) -> bytes:
    """The first unpacked bytes, fewer if there are not so many; standard input can be read from its beginning after it.

    Of a pipe only what has arrived is looked at, which is too little of a zip and of most zstd files: nothing is found.

    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_bytes(b"hello")
    ...     peek_bytes(file.name, 2)
    b'he'
    """
    if str(path) != STDIN:
        with open_bytes(path) as stream:
            try:
                return stream.read(count)
            except UNREADABLE as error:
                raise unreadable(path, error) from None
    pipe = _standard_input()
    seekable = pipe.seekable()
    found, begin = b"", pipe.tell() if seekable else 0
    with ExitStack() as stack:
        if seekable:
            stack.callback(pipe.seek, begin)
        try:
            arrived = pipe if seekable else io.BufferedReader(io.BytesIO(pipe.peek(_BLOCK_BYTES)))  # type: ignore[attr-defined]
            stream = _unpacked(arrived, STDIN, stack)
            while len(found) < count and (block := stream.read1(count - len(found))):  # type: ignore[attr-defined]
                found += block
        except (*UNREADABLE, InputError):
            pass  # cut short, which is no wonder
    return found


def _unpacked(raw: BinaryIO, name: str, stack: ExitStack) -> BinaryIO:
    magic = raw.read(_MAGIC_BYTES)
    if raw.seekable():
        raw.seek(-len(magic), os.SEEK_CUR)
    else:
        raw = _buffered(_Again(magic, raw))
    if magic.startswith(_GZIP):
        return cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=raw)))
    if magic.startswith(_XZ):
        return _buffered(_Unxz(raw))
    if magic.startswith(_ZSTD):
        return _buffered(_Unzstd(raw, name))
    return _open_zip(raw, name, stack) if magic.startswith(_ZIP) else raw


def is_packed(first: bytes) -> bool:
    """Whether a file that begins so is unpacked when it is opened.

    >>> is_packed(b"\\x1f\\x8b..."), is_packed(b"hello")
    (True, False)
    """
    return first.startswith((_GZIP, _XZ, *_ZSTD, *_ZIP))


def unreadable(path: str | Path, error: BaseException) -> InputError:
    """What to tell the user when the bytes themselves cannot be had."""
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"{path}: {error.strerror}")
    return InputError(f"{path}: cannot be unpacked, it is cut short or corrupt ({error})")


def _standard_input() -> BinaryIO:
    stream = getattr(sys.stdin, "buffer", None)  # there is none where a service was started without it
    if stream is None or stream.closed:
        raise InputError(f"{STDIN}: standard input is closed")
    return cast(BinaryIO, stream)


def _open_zip(raw: BinaryIO, name: str, stack: ExitStack) -> BinaryIO:
    """The only file of an archive."""
    seekable = raw
    if not raw.seekable():
        spool = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 (the stack closes it)
        seekable = cast(BinaryIO, stack.enter_context(spool))
        while block := raw.read(1 << 20):
            seekable.write(block)
            if seekable.tell() > _MAX_ZIP_BYTES:
                raise InputError(f"{name}: an archive of more than {_MAX_ZIP_BYTES} bytes, unpack it first")
        seekable.seek(0)
    archive = stack.enter_context(zipfile.ZipFile(seekable))
    members = [m for m in archive.infolist() if not m.filename.endswith("/")]
    if len(members) != 1:
        raise InputError(f"{name}: the archive holds {len(members)} files, unpack it and name the one to read")
    encrypted = members[0].flag_bits & 1
    if encrypted or members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{name}: the archive is encrypted or packed by a rare method, unpack it first")
    return cast(BinaryIO, stack.enter_context(archive.open(members[0])))


def _buffered(raw: io.RawIOBase) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(raw, _BLOCK_BYTES))


class _Again(io.RawIOBase):
    """A pipe whose first bytes were read already, from its beginning."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._rest.fileno()

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        data = self._first[: len(out)] or self._rest.read1(len(out))  # type: ignore[attr-defined]
        self._first = self._first[len(data) :]
        out[: len(data)] = data
        return len(data)


class _Unxz(io.RawIOBase):
    """Unpacked xz, one stream or several, in bounded memory (`lzma.LZMAFile` has no bound)."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._stream = self._new_stream()

    @staticmethod
    def _new_stream() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        unpacked = b""
        while not unpacked:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data.lstrip(b"\0")  # streams may be padded
                while not data:
                    if not (block := self._read()):
                        return 0
                    data = block.lstrip(b"\0")
                self._stream = self._new_stream()
            elif self._stream.needs_input and not (data := self._read()):
                raise EOFError("the end of the last xz stream is missing")
            unpacked = self._stream.decompress(data, len(out))
        out[: len(unpacked)] = unpacked
        return len(unpacked)

    def _read(self) -> bytes:
        return cast(bytes, self._packed.read1(_BLOCK_BYTES))  # type: ignore[attr-defined]


class _Unzstd(io.RawIOBase):
    """Unpacked zstd, one frame or several, in bounded memory (its own reader takes a cut file for a whole one)."""

    def __init__(self, packed: BinaryIO, name: str) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError(f"{name}: a file packed by zstd", "zstandard", "zstd") from None
        self._packed = packed
        self._module = zstandard
        self._frame: Any = None
        self._waiting = b""  # packed
        self._unpacked = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        while not self._unpacked:
            if not self._waiting:
                self._waiting = cast(bytes, self._packed.read1(_BLOCK_BYTES))  # type: ignore[attr-defined]
            if not self._waiting:
                if self._frame is not None:
                    raise EOFError("the end of the last zstd frame is missing")
                return 0
            if self._frame is None:
                self._frame = self._module.ZstdDecompressor(max_window_size=_ZSTD_MEMORY).decompressobj()
            step, self._waiting = self._waiting[:_ZSTD_STEP], self._waiting[_ZSTD_STEP:]
            try:
                self._unpacked = memoryview(self._frame.decompress(step))
            except self._module.ZstdError as error:
                raise ValueError(str(error)) from None
            if self._frame.eof:
                self._waiting = self._frame.unused_data + self._waiting
                self._frame = None
        count = min(len(out), len(self._unpacked))
        out[:count] = self._unpacked[:count]
        self._unpacked = self._unpacked[count:]
        return count
