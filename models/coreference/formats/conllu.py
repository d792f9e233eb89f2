"""Documents of CoNLL-U with entities in the last column, as GUM and CorefUD have them.

`Entity=(e1-person-1-new(e2-place)e1)` among the values of MISC opens a mention of e1, has one of e2 of one word, and
closes that of e1: what opens says more after its name, in the order that the comment `# global.Entity = eid-etype-head`
gives; only the name (`eid`, or `GRP` in older files, else the first) is read. Of a mention in several pieces,
`(e5[1/2]` and `(e5[2/2]`, the first piece is the mention, which is told in `notes`. Empty nodes (`3.1`) and the lines
of words that are several (`3-4`) are passed over, and brackets of an empty node with them. See Nedoluzhko and others,
CorefUD 1.0, LREC 2022.

>>> text = '''# newdoc id = letter
... # speaker = Bob
... 1\\tAnn\\tAnn\\tPROPN\\tNNP\\t_\\t2\\tnsubj\\t_\\tEntity=(e7-person)
... 2\\tleft\\tleave\\tVERB\\tVBD\\t_\\t0\\troot\\t_\\t_
... 3\\ther\\ther\\tPRON\\tPRP$\\t_\\t4\\tnmod:poss\\t_\\tEntity=(e8-animal(e7-person)
... 4\\tdog\\tdog\\tNOUN\\tNN\\t_\\t2\\tobj\\t_\\tEntity=e8)|SpaceAfter=No
... '''
>>> [document] = parse_conllu(text, "letter.conllu")
>>> document.name, document.pos, document.speakers[0]
('letter', ('NNP', 'VBD', 'PRP$', 'NN'), 'Bob')
>>> [(document.text(mention), mention.entity) for mention in document.mentions]
[('Ann', 0), ('her dog', 1), ('her', 0)]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.models.coreference.formats.brackets import Brackets
from netclust.models.coreference.formats.conll import NOTHING
from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.formats.text_files import plain_name

__all__ = ["parse_conllu"]

_FORM, _LEMMA, _UPOS, _XPOS, _MISC, _WIDTH = 1, 2, 3, 4, 9, 10
_ID = re.compile(r"[0-9]+")
_PASSED_OVER = re.compile(r"[0-9]+(?:-[0-9]+|\.[0-9]+)")
_COMMENT = re.compile(r"#\s*(?P<key>[\w.]+(?:\s+id)?)(?:\s*=\s*(?P<value>.*))?")
_PIECE = re.compile(r"(?P<name>.*)\[(?P<piece>[0-9]+)/[0-9]+\]")
# What opens runs to the next bracket; what closes has a name and perhaps a piece before its bracket.
_BRACKET = re.compile(r"\((?P<opens>[^()]*)(?P<at_once>\))?|(?P<closes>[^()]+)\)")


@dataclass
class _Draft:
    """A document while it is read."""

    name: str
    part: int
    brackets: Brackets
    words: list[str] = field(default_factory=list)
    lemmas: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    sentences: list[int] = field(default_factory=lambda: [0])
    entities: dict[str, int] = field(default_factory=dict)


def parse_conllu(text: str, file: str, *, notes: list[str] | None = None) -> list[Document]:
    """The documents of a text of this format; `file` is what messages call it. Entities are numbered as they come."""
    drafts: list[_Draft] = []
    speaker = ""
    name_place = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r")
        if not line.strip():
            if drafts:
                _end_sentence(drafts[-1])
            speaker = ""
        elif line.startswith("#"):
            comment = _COMMENT.match(line)
            key = " ".join(comment["key"].split()) if comment else ""
            value = (comment["value"] or "").strip() if comment else ""
            if key in ("newdoc", "newdoc id"):
                drafts.append(_new_draft(file, value, drafts))
            elif key == "global.Entity":
                name_place = _name_place(value, f"{file} line {number}")
            elif key == "speaker":
                speaker = value
        else:
            if not drafts:
                drafts.append(_new_draft(file, "", drafts))
            _add_word(drafts[-1], line.split("\t"), speaker, name_place, (file, number), notes)
    if not drafts:
        raise InputError(f"{file}: no words; a file of CoNLL-U is needed")
    return [_finished(draft, notes) for draft in drafts]


def _new_draft(file: str, name: str, earlier: list[_Draft]) -> _Draft:
    for draft in earlier[-1:]:
        _end_sentence(draft)
    called = name or plain_name(file)
    return _Draft(called, sum(draft.name == called for draft in earlier), Brackets(file))


def _name_place(order: str, where: str) -> int:
    """Which of the parts of an opening bracket is the name of the entity."""
    if not order:
        raise InputError(f"{where}: global.Entity says nothing; write for example `# global.Entity = eid-etype-head`")
    keys = order.split("-")
    return next((keys.index(key) for key in ("eid", "GRP") if key in keys), 0)


def _add_word(
    draft: _Draft, columns: list[str], speaker: str, name_place: int, where: tuple[str, int], notes: list[str] | None
) -> None:
    file, line = where
    if len(columns) != _WIDTH:
        raise InputError(f"{file} line {line}: {len(columns)} columns; CoNLL-U has {_WIDTH}, separated by tabs")
    entity = next((value[7:] for value in columns[_MISC].split("|") if value.startswith("Entity=")), "")
    if _PASSED_OVER.fullmatch(columns[0]):
        if entity and notes is not None:
            notes.append(f"{file} line {line}: mentions of a word that is not in the text are passed over")
        return
    if not _ID.fullmatch(columns[0]):
        raise InputError(f"{file} line {line}: {sanitize(columns[0][:40])!r} is no number of a word")
    if not columns[_FORM]:
        raise InputError(f"{file} line {line}: the word is empty; write _ for one that is not known")
    at = len(draft.words)
    draft.words.append(columns[_FORM])
    draft.lemmas.append(columns[_LEMMA])
    draft.upos.append(columns[_UPOS])
    draft.xpos.append(columns[_XPOS])
    draft.speakers.append(speaker or "-")
    if entity:
        _add_brackets(draft, entity, at, name_place, where, notes)


def _add_brackets(
    draft: _Draft, text: str, word: int, name_place: int, where: tuple[str, int], notes: list[str] | None
) -> None:
    file, line = where
    at = 0
    while at < len(text):
        bracket = _BRACKET.match(text, at)
        if bracket is None:
            raise InputError(
                f"{file} line {line}: {sanitize(text[:80])!r} are no entities; "
                "write (e1-person where a mention of e1 begins, e1) where it ends, (e1-person) for one word"
            )
        at = bracket.end()
        opens = bracket["opens"] is not None
        parts = (bracket["opens"] if opens else bracket["closes"]).split("-")
        called = parts[min(name_place, len(parts) - 1)]
        piece = _PIECE.fullmatch(called)
        name = piece["name"] if piece else called
        if not name:
            raise InputError(f"{file} line {line}: {sanitize(text[:80])!r} has a bracket without a name")
        if piece and int(piece["piece"]) != 1:
            continue
        if piece and opens and notes is not None:
            notes.append(f"{file} line {line}: of a mention of {sanitize(name)} in pieces, the first is taken")
        entity = draft.entities.setdefault(name, len(draft.entities))
        if opens:
            draft.brackets.open(entity, word, line)
        if not opens or bracket["at_once"]:
            draft.brackets.close(entity, word, line, sanitize(name))


def _end_sentence(draft: _Draft) -> None:
    if draft.sentences[-1] != len(draft.words):
        draft.sentences.append(len(draft.words))


def _finished(draft: _Draft, notes: list[str] | None) -> Document:
    _end_sentence(draft)
    names = {number: sanitize(name) for name, number in draft.entities.items()}
    mentions = draft.brackets.finish(notes, names)
    return Document(
        draft.name,
        tuple(draft.words),
        tuple(draft.sentences),
        part=draft.part,
        pos=_known(draft.xpos) or _known(draft.upos),
        lemmas=_known(draft.lemmas),
        speakers=_known(draft.speakers),
        mentions=tuple(mentions),
    )


def _known(values: list[str]) -> tuple[str, ...] | None:
    return None if NOTHING.issuperset(values) else tuple(values)
