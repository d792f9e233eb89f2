"""The text of a file of documents, whatever it is packed with.

>>> import gzip, tempfile
>>> with tempfile.NamedTemporaryFile() as file:
...     _ = Path(file.name).write_bytes(gzip.compress("naïve".encode()))
...     read_text(file.name)
'naïve'
"""

from __future__ import annotations

from pathlib import Path

from netclust.datasets.documents import LIMITS, read_document_bytes
from netclust.errors import InputError
from netclust.foundation.container import container_kind
from netclust.records.opening import STDIN

__all__ = ["PACKED", "plain_name", "read_text"]

PACKED = (".gz", ".xz", ".zst", ".zip")
"""What the names of packed files end in."""


def read_text(path: str | Path) -> str:
    """All of a file (plain, gz, xz, zst, zip; `-`: standard input), which must be UTF-8."""
    content = read_document_bytes(path, LIMITS.total_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{path}: is UTF-16; convert it, for example with: iconv -f utf-16 -t utf-8") from None
        if b"\0" in content[:1024]:
            what = "a file of netclust (a model?)" if container_kind(path) else "no text"
            raise InputError(f"{path}: is {what}, expected documents: CoNLL, CoNLL-U or plain text") from None
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path} line {line}: not UTF-8 text; convert it, for example with: iconv -f latin1 -t utf-8"
        ) from None


def plain_name(path: str | Path) -> str:
    """What a document is called that its file does not name: the file without folder and endings.

    >>> plain_name("texts/my.letter.txt.gz"), plain_name("-")
    ('my.letter', 'stdin')
    """
    if str(path) == STDIN:
        return "stdin"
    name = Path(path).name
    for ending in (*PACKED, ".txt", ".conll", ".conllu"):
        shorter = name.removesuffix(ending)
        name = shorter or name
    return name
