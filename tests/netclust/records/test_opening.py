"""Opening files: recognised by content, and nothing but InputError whatever the bytes are."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.records import opening
from netclust.records.opening import UNREADABLE, open_bytes, peek_bytes, unreadable

EXAMPLES = 5000 if os.environ.get("NETCLUST_LONG") else 200
TEXT = b"".join(b"%d,tcp,http,SF,normal\n" % i for i in range(5000))


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as sink:
        for name, content in files:
            sink.writestr(name, content)
    return archive.getvalue()


PACKED = {
    "plain": TEXT,
    "gz": gzip.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress(TEXT),
    "zip": zipped(("records.txt", TEXT)),
    "stored zip": zipped(("records.txt", TEXT), method=zipfile.ZIP_STORED),
}


def unpack(path: str | Path) -> bytes:
    """All bytes, read as the record reader reads them."""
    parts = []
    with open_bytes(path) as stream:
        try:
            while block := stream.read1(1 << 20):  # type: ignore[attr-defined]
                parts.append(block)
        except UNREADABLE as error:
            raise unreadable(path, error) from None
    return b"".join(parts)


def feed_standard_input(monkeypatch: pytest.MonkeyPatch, stream: io.BufferedReader) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))


def pipe(content: bytes, write: Callable[[int, bytes], object]) -> tuple[io.BufferedReader, threading.Thread]:
    """A pipe that a thread writes to."""
    out, into = os.pipe()

    def run() -> None:
        with os.fdopen(into, "wb", 0) as sink:
            write(sink.fileno(), content)

    thread = threading.Thread(target=run)
    thread.start()
    return os.fdopen(out, "rb"), thread


def write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def write_a_byte_first(descriptor: int, content: bytes) -> None:
    os.write(descriptor, content[:1])
    threading.Event().wait(0.05)
    write_all(descriptor, content[1:])


@pytest.mark.parametrize("form", PACKED)
def test_a_misleading_name_does_not_matter(tmp_path: Path, form: str) -> None:
    for name in ("records.txt", "records.gz", "records"):
        path = tmp_path / name
        path.write_bytes(PACKED[form])
        assert unpack(path) == TEXT
        assert unpack(str(path)) == TEXT


@pytest.mark.parametrize("form", PACKED)
def test_standard_input_is_unpacked_like_a_file(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    with io.BufferedReader(io.BytesIO(PACKED[form])) as stream:
        feed_standard_input(monkeypatch, stream)
        assert unpack("-") == TEXT
        assert not stream.closed, "standard input is not ours to close"


@pytest.mark.parametrize("write", [write_all, write_a_byte_first])
@pytest.mark.parametrize("form", PACKED)
def test_a_slow_pipe_is_recognised_too(
    monkeypatch: pytest.MonkeyPatch, form: str, write: Callable[[int, bytes], object]
) -> None:
    stream, thread = pipe(PACKED[form], write)
    with stream:
        feed_standard_input(monkeypatch, stream)
        assert unpack("-") == TEXT
    thread.join()


def test_a_zip_pipe_beyond_memory_goes_to_disk_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_SPOOL_BYTES", 100)
    for limit, message in ((1 << 30, ""), (100, "more than 100 bytes")):
        monkeypatch.setattr(opening, "_MAX_ZIP_BYTES", limit)
        stream, thread = pipe(PACKED["zip"], write_all)
        with stream:
            feed_standard_input(monkeypatch, stream)
            if message:
                with pytest.raises(InputError, match=message):
                    unpack("-")
            else:
                assert unpack("-") == TEXT
        thread.join()


@pytest.mark.parametrize("absent", [None, SimpleNamespace(), SimpleNamespace(buffer=None)])
def test_no_standard_input_is_said_not_a_crash(monkeypatch: pytest.MonkeyPatch, absent: object) -> None:
    monkeypatch.setattr(sys, "stdin", absent)
    with pytest.raises(InputError, match=r"^-: standard input is closed$"):
        unpack("-")


def test_a_closed_standard_input_is_said_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.BufferedReader(io.BytesIO(TEXT))
    stream.close()
    feed_standard_input(monkeypatch, stream)
    with pytest.raises(InputError, match=r"^-: standard input is closed$"):
        unpack("-")


@pytest.mark.parametrize("content", [b"", b"a", b"\n", b"\x1f", b"PK"])
def test_a_file_shorter_than_any_signature_is_plain(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "short"
    path.write_bytes(content)
    assert unpack(path) == content


@pytest.mark.parametrize(("form", "pack"), [("gz", gzip.compress), ("xz", lzma.compress), ("zst", zstandard.compress)])
def test_files_packed_in_several_parts_are_read_to_the_end(
    tmp_path: Path, form: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / form
    padding = b"\0" * 8 if form == "xz" else b""
    path.write_bytes(pack(TEXT[:1000]) + padding + pack(b"") + pack(TEXT[1000:]) + padding)
    assert unpack(path) == TEXT


def test_xz_padding_longer_than_a_block_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "padded.xz"
    path.write_bytes(lzma.compress(b"a\n") + b"\0" * 200_000 + lzma.compress(b"b\n"))
    assert unpack(path) == b"a\nb\n"


@pytest.mark.parametrize("form", ["gz", "xz", "zst", "zip", "stored zip"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_truncated_file_is_not_taken_for_a_whole_one(tmp_path: Path, form: str, share: float) -> None:
    path = tmp_path / "cut"
    packed = PACKED[form]
    path.write_bytes(packed[: max(8, int(len(packed) * share))])
    with pytest.raises(InputError, match=rf"^{path}: cannot be unpacked, it is cut short or corrupt \("):
        unpack(path)


@pytest.mark.parametrize("form", ["gz", "xz", "zst", "zip", "stored zip"])
def test_a_corrupt_file_is_not_taken_for_a_sound_one(tmp_path: Path, form: str) -> None:
    path = tmp_path / "corrupt"
    packed = bytearray(PACKED[form])
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(InputError, match=rf"^{path}: cannot be unpacked"):
        unpack(path)


@pytest.mark.parametrize("form", ["gz", "xz", "zst"])
def test_bytes_behind_the_packed_ones_are_not_ignored(tmp_path: Path, form: str) -> None:
    path = tmp_path / "longer"
    path.write_bytes(PACKED[form] + b"garbage")
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(path)


def test_an_xz_header_cannot_ask_for_gigabytes(tmp_path: Path) -> None:
    packed = bytearray(PACKED["xz"])
    assert packed[14:16] == b"\x21\x01", "a block header: LZMA2, one byte of properties"
    packed[16] = 40  # 4 GiB
    length = (packed[12] + 1) * 4
    packed[12 + length - 4 : 12 + length] = zlib.crc32(packed[12 : 12 + length - 4]).to_bytes(4, "little")
    path = tmp_path / "hungry.xz"
    path.write_bytes(packed)
    with pytest.raises(InputError, match="Memory usage limit"):
        unpack(path)


def test_a_zstd_header_cannot_ask_for_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "hungry.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + b"\x01\x00\x00")  # a window of 2 GiB
    with pytest.raises(InputError, match="too much memory"):
        unpack(path)


def test_a_zstd_bomb_is_unpacked_piece_by_piece(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    packed = zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20))
    path.write_bytes(packed)
    count = 0
    with open_bytes(path) as stream:
        while block := stream.read1(1 << 20):  # type: ignore[attr-defined]
            assert len(block) <= 1 << 20
            count += len(block)
    assert count == 256 << 20


def test_what_parallel_packers_put_before_a_zstd_frame_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "parallel.zst"
    skippable = bytes.fromhex("502a4d18 04000000 12345678")
    path.write_bytes(skippable + zstandard.compress(TEXT[:1000]) + skippable + zstandard.compress(TEXT[1000:]))
    assert unpack(path) == TEXT


def test_without_its_package_a_zstd_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "records.zst"
    path.write_bytes(PACKED["zst"])
    with pytest.raises(InputError) as error:
        unpack(path)
    assert str(error.value) == f"{path}: a file packed by zstd needs zstandard: pip install 'netclust[zstd]'"


@pytest.mark.parametrize("form", PACKED)
def test_a_look_at_the_beginning_does_not_take_it_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    path = tmp_path / form
    path.write_bytes(PACKED[form])
    assert peek_bytes(path, 10) == TEXT[:10]
    for stream in (io.BufferedReader(io.BytesIO(PACKED[form])), pipe(PACKED[form], write_all)[0]):
        with stream:
            feed_standard_input(monkeypatch, stream)
            assert peek_bytes("-", 10) in (TEXT[:10], b"" if "zip" in form else TEXT[:10])
            assert unpack("-") == TEXT


@pytest.mark.parametrize(
    ("content", "count"),
    [(zipped(), 0), (zipped(("folder/", b"")), 0), (zipped(("a", b"1\n"), ("b", b"2\n")), 2)],
)
def test_a_zip_without_a_single_file_is_refused(tmp_path: Path, content: bytes, count: int) -> None:
    path = tmp_path / "archive.zip"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        unpack(path)
    assert str(error.value) == f"{path}: the archive holds {count} files, unpack it and name the one to read"


def test_a_zip_whose_file_has_no_name_is_not_a_crash(tmp_path: Path) -> None:
    packed = bytearray(PACKED["stored zip"])
    packed[packed.rindex(b"PK\x01\x02") + 28] = 0  # the length of the name
    path = tmp_path / "nameless.zip"
    path.write_bytes(packed)
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(path)


def test_a_zip_may_have_its_file_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "archive.zip"
    path.write_bytes(zipped(("folder/", b""), ("folder/records.txt", TEXT)))
    assert unpack(path) == TEXT


def test_an_encrypted_or_rarely_packed_zip_is_refused(tmp_path: Path) -> None:
    encrypted = bytearray(PACKED["zip"])
    directory = encrypted.rindex(b"PK\x01\x02")
    encrypted[6] |= 1
    encrypted[directory + 8] |= 1
    unheard_of = bytearray(PACKED["zip"])
    unheard_of[8] = unheard_of[directory + 10] = 99
    for content in (encrypted, unheard_of, zipped(("a", TEXT), method=zipfile.ZIP_LZMA)):
        path = tmp_path / "archive.zip"
        path.write_bytes(content)
        with pytest.raises(InputError, match="encrypted or packed by a rare method, unpack it first"):
            unpack(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        unpack(tmp_path / "absent.txt")
    assert str(error.value) == f"{tmp_path}/absent.txt: No such file or directory"
    with pytest.raises(InputError) as error:
        unpack(tmp_path)
    assert str(error.value) == f"{tmp_path}: Is a directory"


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("opening") / "fuzzed"


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    form=st.sampled_from(sorted(PACKED)),
    edits=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8),
    near_the_end=st.booleans(),
)
def test_fuzz_mutated_archives_never_crash(
    anywhere: Path, form: str, edits: list[tuple[int, int]], near_the_end: bool
) -> None:
    packed = bytearray(PACKED[form])
    for place, value in edits:
        place %= 120 if near_the_end else len(packed)
        packed[-1 - place if near_the_end else place] = value
    anywhere.write_bytes(packed)
    try:
        unpack(anywhere)
    except InputError as error:
        assert str(error).startswith(f"{anywhere}: ")  # noqa: PT017
