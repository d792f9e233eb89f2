"""Documents of a folder, or of a tar of one, with what their folders and headers say about them.

Nothing is unpacked to disk; names and sizes that an archive claims are checked, and what is no regular file is passed
over. `netclust.datasets.item_sets.read_items` is the front door.

>>> split_message("From: a@b.org\\nSubject: Re: jiggers\\n\\nC. D. writes:\\n> Chiggers?\\nClose.\\n")["text"]
'Close.'
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.parser import HeaderParser
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.records.opening import STDIN, UNREADABLE, open_bytes, peek_bytes, unreadable

__all__ = ["LIMITS", "MESSAGE_FIELDS", "DocumentLimits", "Documents", "read_documents", "split_message"]

HEADER_FIELDS = ("subject", "from", "to", "cc", "organization", "keywords")
MESSAGE_FIELDS = ("text", "quoted", *HEADER_FIELDS)
"""Of a message: its own lines, those that it quotes, and headers."""

_DEPTH = 3  # SET/CLUSTER/FILE
_TAR_BLOCK = 512
_HEADER_LINE = re.compile(r"[!-9;-~]+:[ \t]")
_QUOTED_LINE = re.compile(r"\s{0,3}(?:\w{0,3}>|[|:]>?\s)")
_ATTRIBUTION = re.compile(r"\s*In article\b|.*\b(?:writes|wrote|says|said):\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class DocumentLimits:
    """How much is read before a file is refused."""

    items: int = 1_000_000
    document_bytes: int = 16 << 20
    total_bytes: int = 2 << 30


LIMITS = DocumentLimits()


class Documents(NamedTuple):
    """Columns as of `ItemTable`."""

    fields: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    ids: tuple[str, ...]
    labels: tuple[str, ...] | None
    sets: tuple[str, ...] | None


class _Document(NamedTuple):
    place: tuple[str, ...]
    content: bytes

    @property
    def name(self) -> str:
        return "/".join(self.place)


def read_documents(path: str | Path, limits: DocumentLimits = LIMITS) -> Documents:
    """The documents of a folder or tar, ordered by name."""
    is_folder = Path(path).is_dir()
    found: list[_Document] = []
    total = 0
    for document in _folder(Path(path), limits) if is_folder else _tar(path, limits):
        total += len(document.content)
        if total > limits.total_bytes or len(found) >= limits.items:
            raise InputError(f"{path}: more than {limits.items} documents or {limits.total_bytes} bytes of them")
        found.append(document)
    documents = sorted(found if is_folder else _without_leading_folder(found))
    documents = _items(path, documents)
    ids = tuple(document.name for document in documents)
    for one, other in pairwise(ids):
        if one == other:
            raise InputError(f"{path}: {sanitize(one)} is there twice")
    depth = len(documents[0].place)
    texts = [split_message(decode_document(document.content)) for document in documents]
    fields = MESSAGE_FIELDS if any(len(text) > 1 for text in texts) else ("text",)
    return Documents(
        fields,
        tuple(tuple(text.get(field, "") for text in texts) for field in fields),
        ids,
        tuple(document.place[-2] for document in documents) if depth > 1 else None,
        tuple(document.place[0] for document in documents) if depth == _DEPTH else None,
    )


def split_message(text: str) -> dict[str, str]:
    """The fields of a message with headers; of any other document its text alone."""
    if not _HEADER_LINE.match(text):
        return {"text": text}
    message = HeaderParser().parsestr(text)
    if "from" not in message and "subject" not in message:
        return {"text": text}
    fields = {name: _header(str(message[name])) for name in HEADER_FIELDS if name in message}
    own, quoted = [], []
    for line in str(message.get_payload()).splitlines():
        if _QUOTED_LINE.match(line):
            quoted.append(line.lstrip(" \t>|:"))
        elif not _ATTRIBUTION.match(line):
            own.append(line)
    return {"text": "\n".join(own).strip(), "quoted": "\n".join(quoted).strip(), **fields}


def decode_document(content: bytes) -> str:
    """Decode text that is UTF-8, or else Latin-1.

    >>> decode_document("é".encode()), decode_document("é".encode("latin-1"))
    ('é', 'é')
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def is_tar(path: str | Path) -> bool:
    """Whether a file, unpacked, begins as a tar does."""
    return peek_bytes(path, _TAR_BLOCK)[257:262] == b"ustar"


def read_document_bytes(path: str | Path, limit: int) -> bytes:
    """Read the unpacked bytes of a file that has no more than `limit`."""
    with open_bytes(path) as stream:
        try:
            content = stream.read(limit + 1)
        except UNREADABLE as error:
            raise unreadable(path, error) from None
    if len(content) > limit:
        raise InputError(f"{path}: more than {limit} bytes")
    return content


def _header(text: str) -> str:
    if "=?" in text:
        with suppress(HeaderParseError, LookupError, ValueError):  # not encoded as it says: taken as it is
            text = str(make_header(decode_header(text)))
    return " ".join(text.split())


def _folder(folder: Path, limits: DocumentLimits, place: tuple[str, ...] = ()) -> Iterator[_Document]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from None
    for entry in entries:
        name = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if name.startswith("."):
            continue
        if entry.is_dir():
            if len(place) + 1 >= _DEPTH:
                raise InputError(f"{sanitize(str(entry))}: deeper than SET/CLUSTER/FILE")
            yield from _folder(entry, limits, (*place, name))
        elif entry.is_file():
            try:
                with open(entry, "rb") as file:
                    content = file.read(limits.document_bytes + 1)
            except OSError as error:
                raise unreadable(entry, error) from None
            _check_size(len(content), sanitize(str(entry)), limits)
            yield _Document((*place, name), content)


def _tar(path: str | Path, limits: DocumentLimits) -> Iterator[_Document]:
    with open_bytes(path) as stream:
        counted = _Counted(stream, path, limits.total_bytes)
        try:
            with tarfile.open(fileobj=cast(Any, counted), mode="r|") as archive:
                for member in archive:
                    if document := _member(path, archive, member, limits):
                        yield document
                    cast(Any, archive).members = []  # it remembers every header otherwise
            counted.drain()
        except InputError:
            raise
        except (tarfile.TarError, *UNREADABLE) as error:
            raise unreadable(path, error) from None
        if counted.last.strip(b"\0"):
            raise InputError(f"{path}: the end of the archive is missing: it is cut short")


def _member(
    path: str | Path, archive: tarfile.TarFile, member: tarfile.TarInfo, limits: DocumentLimits
) -> _Document | None:
    """A document, if the member is a regular file that is not hidden."""
    name = member.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    place = tuple(part for part in name.split("/") if part not in ("", "."))
    if not member.isreg() or member.issparse() or not place or any(part.startswith(".") for part in place):
        return None
    where = f"{path}: {sanitize(name)}"
    _check_size(member.size, where, limits)
    file = archive.extractfile(member)
    return _Document(place, file.read() if file else b"")


def _check_size(size: int, where: str, limits: DocumentLimits) -> None:
    if size > limits.document_bytes:
        raise InputError(f"{where}: a document of more than {limits.document_bytes} bytes")


def _without_leading_folder(documents: list[_Document]) -> list[_Document]:
    """A tar of one folder names it first; so do more folders above it where names are deeper than ours can be."""
    first = True
    while documents and len({document.place[0] for document in documents}) == 1:
        depth = max(len(document.place) for document in documents)
        if min(len(document.place) for document in documents) == 1 or not (first or depth > _DEPTH):
            break
        documents = [_Document(document.place[1:], document.content) for document in documents]
        first = False
    return documents


def _items(path: str | Path, documents: list[_Document]) -> list[_Document]:
    """Documents that are all equally deep. Beside folders, and beside *.txt, another file at the top is a remark."""
    top = [document for document in documents if len(document.place) == 1]
    below = [document for document in documents if len(document.place) > 1]
    texts = [document for document in top if document.name.lower().endswith(".txt")]
    if below and texts:
        raise InputError(f"{path}: {sanitize(texts[0].name)} is in no cluster's folder, {sanitize(below[0].name)} is")
    items = below or texts or top
    if not items:
        raise InputError(f"{path}: no documents: FOLDER/FILE, FOLDER/CLUSTER/FILE or FOLDER/SET/CLUSTER/FILE")
    odd = [document for document in items if len(document.place) != len(items[0].place)]
    if odd or len(items[0].place) > _DEPTH:
        other = odd[0] if odd else items[0]
        raise InputError(
            f"{path}: {sanitize(items[0].name)} and {sanitize(other.name)} must both be CLUSTER/FILE or both "
            "SET/CLUSTER/FILE"
        )
    return items


class _Counted:
    """A stream that ends in an error where it is longer than it may be: an archive may unpack to anything."""

    def __init__(self, stream: BinaryIO, path: str | Path, limit: int) -> None:
        self._stream = stream
        self._path = "standard input" if str(path) == STDIN else path
        self._limit = limit
        self._left = limit
        self.last = b""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise InputError(f"{self._path}: an archive of more than {self._limit} bytes")
        self.last = (self.last + data[-_TAR_BLOCK:])[-_TAR_BLOCK:]
        return data

    def drain(self) -> None:
        """Read what is behind the archive's end: a checksum may still tell that it is damaged."""
        while self.read(1 << 16):
            pass
