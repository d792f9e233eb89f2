"""Documents from a file or folder, in whichever of the formats it is.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "b.txt").write_text("Ann left.")
...     _ = Path(folder, "a.conll").write_text("#begin document (a)\\nAnn\\t(1)\\n#end document\\n")
...     documents = read_documents(folder)
>>> [(document.name, document.words, len(document.mentions)) for document in documents]
[('a', ('Ann',), 1), ('b', ('Ann', 'left', '.'), 0)]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, get_args

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.coreference.formats.conll import parse_conll
from netclust.models.coreference.formats.conllu import parse_conllu
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.formats.plain import plain_document
from netclust.models.coreference.formats.text_files import PACKED, plain_name, read_text
from netclust.records.opening import STDIN, unreadable

__all__ = ["ENDINGS", "Format", "find_format", "read_documents"]

Format = Literal["auto", "conll", "conllu", "text"]

ENDINGS = (".conll", "_conll", ".conllu", ".txt")
"""What the names of files end in that are read from a folder; .gz, .xz, .zst or .zip may follow."""

_CONLL = re.compile(r"^#\s*begin document\b", re.MULTILINE)
_CONLLU = re.compile(
    r"^(?:#\s*newdoc(?:\s+id\s*=.*)?\r?$|#\s*(?:global\.Entity|sent_id|text)\s*=|[0-9]+(?:[-.][0-9]+)?(?:\t[^\t\n]*){9}$)",
    re.MULTILINE,
)
_CONLL_ROW = re.compile(r"\A(?:(?:[^\t\n]*\t){11}|\S+[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+\S+[ \t]+)")


def read_documents(
    path: str | Path,
    *,
    format: Format = "auto",  # noqa: A002
    notes: list[str] | None = None,
) -> list[Document]:
    """All documents of a file (`-`: standard input) or of a folder's files, which are read in the order of their names.

    The format is told by the content unless it is given: CoNLL-2012 and its kin, CoNLL-U, or plain text. What was
    passed over is appended to `notes`.
    """
    if format not in get_args(Format):
        raise InputError(f"the format {format!r} is not known; there are {', '.join(get_args(Format))}")
    if str(path) == STDIN or not Path(path).is_dir():
        return _read_file(path, format, notes)
    documents: list[Document] = []
    seen: dict[tuple[str, int], Path] = {}
    for file in _files(Path(path)):
        for document in _read_file(file, format, notes):
            other = seen.setdefault((document.name, document.part), file)
            if other != file:
                what = f"document {sanitize(document.name)} part {document.part} is in {other.name} too"
                raise InputError(f"{file}: {what}; keep one of them")
            documents.append(document)
    return documents


def find_format(text: str) -> Format:
    """Which format a text is in.

    >>> find_format("#begin document (a)"), find_format("# newdoc id = a"), find_format("Once upon a time")
    ('conll', 'conllu', 'text')
    """
    if _CONLL.search(text):
        return "conll"
    if _CONLLU.search(text):
        return "conllu"
    # A table of words without its first line is not taken for a text: its reader says what is wrong.
    return "conll" if _CONLL_ROW.match(text) else "text"


def _read_file(path: str | Path, given: Format, notes: list[str] | None) -> list[Document]:
    text = read_text(path)
    found = find_format(text) if given == "auto" else given
    if found == "conll":
        return parse_conll(text, str(path), notes=notes)
    if found == "conllu":
        return parse_conllu(text, str(path), notes=notes)
    try:
        return [plain_document(text, plain_name(path))]
    except InputError:
        raise InputError(f"{path}: no words in it; a text or a file of CoNLL is needed") from None


def _files(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from None
    files = [entry for entry in entries if entry.is_file() and _unpacked_name(entry).endswith(ENDINGS)]
    files = [file for file in files if not file.name.startswith(".")]
    if not files:
        raise InputError(f"{folder}: holds no file named *{', *'.join(ENDINGS)} (packed or not); name another folder")
    return files


def _unpacked_name(path: Path) -> str:
    name = path.name
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name
