"""Documents of the CoNLL-2012 format and of the sparser layouts that corpora use.

A document stands between `#begin document (name); part 000` and `#end document`, one word a line, sentences apart by an
empty line, and the coreference brackets in the last column: `(3` opens a mention of entity 3, `3)` closes it, `(3)` is
one of one word; several are joined by `|` or by nothing. Columns are separated by tabs, or else by spaces:

- 12 or more, as of the shared task (Pradhan and others, CoNLL 2012): name, part, number, word, part of speech, parse,
  lemma, frame, sense, speaker, named entity, any number of arguments, coreference. Their number may change with the
  sentence, since each verb has its own. LitBank's 13 (Bamman and others, LREC 2020), most of them `_`, are such.
- 5 to 11: name, part, number, word, what is not read, coreference.
- 3: number, word, coreference, as in OntoGUM (Zhu and others, ACL 2021). 2: word, coreference.

Outside mentions the last column is `-`, `_`, `*` or empty. Other columns that hold nothing else in a document are None
in it. Brackets are paired as the official scorer pairs them: at one word those of one word first, then what opens, then
what closes the mention opened last. Words that are marked twice are one mention, of the entity that came first; the
other is told in `notes`. A document without any empty line is cut into sentences after full stops.

>>> text = "#begin document (a/b); part 001\\nAnn\\t(4)\\nleft\\t-\\n\\nHer\\t(7(4)\\ndog\\t7)\\n#end document\\n"
>>> [document] = parse_conll(text, "a.conll")
>>> document.name, document.part, document.words, document.sentences
('a/b', 1, ('Ann', 'left', 'Her', 'dog'), (0, 2, 4))
>>> document.mentions[1:]
(Mention(start=2, end=4, entity=7), Mention(start=2, end=3, entity=4))
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.coreference.formats.brackets import Brackets
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.models.coreference.formats.sentences import sentence_starts
from netclust.models.coreference.formats.text_files import plain_name, read_text

__all__ = ["GENRES", "NOTHING", "parse_conll", "read_conll"]

GENRES = ("bc", "bn", "mz", "nw", "pt", "tc", "wb")
"""The folders of OntoNotes that name a genre: talk shows, broadcasts, magazines, newswire, Bible, telephone, web."""

NOTHING = frozenset(("", "-", "_", "*"))
"""What a column holds where it says nothing."""

_BEGIN = re.compile(r"#\s*begin document\b\s*(?P<rest>.*)")
_END = re.compile(r"#\s*end document\b")
_NAMED = re.compile(r"\((?P<name>.*)\)\s*;?\s*(?:part\s+(?P<part>[0-9]+))?\s*")
_BRACKET = re.compile(r"\((?P<whole>[0-9]+)\)|\((?P<opens>[0-9]+)|(?P<closes>[0-9]+)\)")
_FULL = 12  # columns of the shared task, at least
_WORD, _PARTED = 3, 5  # where the word is if there are so many columns
_COLUMNS = {"pos": 4, "parse": 5, "lemmas": 6, "speakers": 9, "named": 10}
_LARGEST = 2**63 - 1


class _Row(NamedTuple):
    line: int
    columns: list[str]


def read_conll(path: str | Path, *, notes: list[str] | None = None) -> list[Document]:
    """The documents of a file, every part one; what was passed over is appended to `notes`."""
    return parse_conll(read_text(path), str(path), notes=notes)


def parse_conll(text: str, file: str, *, notes: list[str] | None = None) -> list[Document]:
    """The documents of a text of this format; `file` is what messages call it."""
    documents: list[Document] = []
    seen: set[tuple[str, int]] = set()
    begun: tuple[int, str] | None = None
    sentences: list[list[_Row]] = []
    fresh = True  # whether the next word begins a sentence
    cut = False  # whether the document has empty lines
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        if line.startswith("#"):
            if (begin := _BEGIN.match(line)) is not None:
                if begun is not None:
                    raise InputError(f"{file} line {number}: a document begins before that of line {begun[0]} ended")
                begun, sentences, fresh, cut = (number, begin["rest"].strip()), [], True, False
                continue
            if _END.match(line):
                if begun is None:
                    raise InputError(f"{file} line {number}: a document ends that did not begin; add its #begin line")
                document = _document(file, begun, sentences, cut, len(documents), notes)
                if (document.name, document.part) in seen:
                    what = f"document {sanitize(document.name)} part {document.part} is there twice"
                    raise InputError(f"{file} line {begun[0]}: {what}; give each its own name or part")
                seen.add((document.name, document.part))
                documents.append(document)
                begun = None
                continue
            if "\t" not in line:  # else its word begins so
                continue
        if not line.strip():
            fresh = cut = True
            continue
        if begun is None:
            raise InputError(
                f"{file} line {number}: a word outside of a document; "
                "put a line `#begin document (name); part 000` before its first word"
            )
        row = _Row(number, line.split("\t") if "\t" in line else line.split())
        if fresh:
            sentences.append([])
            fresh = False
        sentences[-1].append(row)
    if begun is not None:
        raise InputError(f"{file} line {begun[0]}: the document has no `#end document`; is the file cut short?")
    if not documents:
        raise InputError(f"{file}: no `#begin document` line; a file of CoNLL-2012 is needed")
    return documents


def _document(
    file: str, begun: tuple[int, str], sentences: list[list[_Row]], cut: bool, earlier: int, notes: list[str] | None
) -> Document:
    rest = begun[1]
    named = _NAMED.fullmatch(rest)
    name, part = (named["name"], named["part"]) if named else (rest, None)
    _check_widths(file, sentences)
    rows = [row for sentence in sentences for row in sentence]
    at = _word_column(file, rows[0]) if rows else 0
    words = tuple(row.columns[at] for row in rows)
    for row, word in zip(rows, words, strict=True):
        if not word:
            raise InputError(f"{file} line {row.line}: the word is empty; it is column {at + 1}, counted from 1")
    if at == _WORD:
        name = name or rows[0].columns[0]
        part = part or (rows[0].columns[1] if rows[0].columns[1].isdecimal() else None)
    starts = [0]
    for sentence in sentences:
        starts.append(starts[-1] + len(sentence))
    mentions = _mentions(file, rows, notes)
    if not cut:
        starts = sentence_starts(words, mentions)
    full = bool(rows) and min(len(row.columns) for row in rows) >= _FULL
    columns = {key: _column(rows, place) for key, place in _COLUMNS.items()} if full else {}
    genre = name.split("/", 1)[0]
    return Document(
        name or plain_name(file),
        words,
        tuple(starts),
        part=int(part) if part else (0 if name else earlier),
        genre=genre if "/" in name and genre in GENRES else "",
        mentions=tuple(mentions),
        **columns,
    )


def _check_widths(file: str, sentences: list[list[_Row]]) -> None:
    for sentence in sentences:
        first = sentences[0][0] if len(sentences[0][0].columns) < _FULL else sentence[0]
        for row in sentence:
            if len(row.columns) == len(first.columns) + 1 and not row.columns[-1]:
                row.columns.pop()  # a tab too many at the end of the line
            if len(row.columns) != len(first.columns):
                raise InputError(
                    f"{file} line {row.line}: {len(row.columns)} columns, but line {first.line} has "
                    f"{len(first.columns)}; give every word of a sentence as many, with - where there is nothing"
                )


def _word_column(file: str, row: _Row) -> int:
    width = len(row.columns)
    if width >= _PARTED:
        return _WORD
    if width in (2, 3):
        return width - 2
    raise InputError(
        f"{file} line {row.line}: {width} columns; needed are 2 (word, coreference), 3 (number, word, coreference), "
        f"or {_PARTED} and more (name, part, number, word, ..., coreference), separated by tabs or spaces"
    )


def _column(rows: list[_Row], place: int) -> tuple[str, ...] | None:
    values = tuple(row.columns[place] for row in rows)
    return None if NOTHING.issuperset(values) else values


def _mentions(file: str, rows: list[_Row], notes: list[str] | None) -> list[Mention]:
    brackets = Brackets(file)
    for word, (line, columns) in enumerate(rows):
        field = columns[-1]
        if field in NOTHING:
            continue
        opens, closes = _read_brackets(field, f"{file} line {line}")
        for entity in opens:
            brackets.open(entity, word, line)
        for entity in closes:
            brackets.close(entity, word, line)
    return brackets.finish(notes)


def _read_brackets(field: str, where: str) -> tuple[list[int], list[int]]:
    """What opens and what closes at a word, mentions of it alone first."""
    whole: list[int] = []
    opens: list[int] = []
    closes: list[int] = []
    at = 0
    while at < len(field):
        bracket = _BRACKET.match(field, at)
        if bracket is None:
            raise InputError(
                f"{where}: {sanitize(field[:80])!r} is no coreference; write (3 where a mention of entity 3 begins, "
                "3) where it ends, (3) for one word, several joined by |, and - for nothing"
            )
        entity = int(bracket[bracket.lastgroup or 0])
        if entity > _LARGEST:
            raise InputError(f"{where}: entity {sanitize(bracket[0][:80])} is too large; use numbers below 2**63")
        {"whole": whole, "opens": opens, "closes": closes}[bracket.lastgroup or ""].append(entity)
        at = bracket.end()
        if field[at : at + 1] == "|" and at + 1 < len(field):
            at += 1
    return whole + opens, whole + closes
