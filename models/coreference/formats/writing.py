"""Documents written in the format of CoNLL-2012, which the official scorer and other systems read.

Twelve columns, separated by tabs so that a word may hold a space: name, part, number in the sentence, word, part of
speech, parse, lemma, two that are not kept, speaker, named entity, coreference; `-` where nothing is known. Mentions
without an entity are left out, as they are from `Document.clusters`.

>>> from netclust.models.coreference.formats.documents import Document, Mention
>>> letter = Document("letter", ("Ann", "left", "her", "dog"), (0, 4), mentions=(Mention(0, 1, 0), Mention(2, 4, 1)))
>>> print(to_conll(letter).replace("\\t", " "), end="")
#begin document (letter); part 000
letter 0 0 Ann - - - - - - - (0)
letter 0 1 left - - - - - - - -
letter 0 2 her - - - - - - - (1
letter 0 3 dog - - - - - - - 1)
<BLANKLINE>
#end document
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.foundation.text import sanitize
from netclust.models.coreference.formats.documents import Document, Mention
from netclust.records.opening import STDIN

__all__ = ["to_conll", "write_conll"]

_NONE = "-"


def to_conll(document: Document, *, notes: list[str] | None = None) -> str:
    """A document as text, its mentions as brackets.

    Two mentions of one entity that cross each other cannot be told in this format: the later one is left out and
    told in `notes`; without `notes` that is an error.
    """
    brackets = _brackets(document, notes)
    columns = [
        [value or _NONE for value in values] if values is not None else [_NONE] * len(document.words)
        for values in (document.pos, document.parse, document.lemmas, None, None, document.speakers, document.named)
    ]
    lines = [f"#begin document ({document.name}); part {document.part:03d}"]
    for start, end in pairwise(document.sentences):
        for at in range(start, end):
            fields = [document.words[at], *(column[at] for column in columns), brackets[at]]
            lines.append("\t".join((document.name, str(document.part), str(at - start), *fields)))
        lines.append("")
    lines.append("#end document\n")
    _check(document)
    return "\n".join(lines)


def write_conll(documents: Iterable[Document], path: str | Path, *, notes: list[str] | None = None) -> None:
    """Documents into one file (`-`: standard output), whole or not at all."""
    text = "".join(to_conll(document, notes=notes) for document in documents)
    if str(path) == STDIN:
        sys.stdout.write(text)
    else:
        write_container_bytes(path, text.encode())


def _brackets(document: Document, notes: list[str] | None) -> list[str]:
    """The last column. What is opened later is closed earlier, so that files are easy to read."""
    whole: dict[int, list[int]] = {}
    opens: dict[int, list[int]] = {}
    closes: dict[int, list[int]] = {}
    for mention in _writable(document, notes):
        last = mention.end - 1
        if mention.start == last:
            whole.setdefault(last, []).append(mention.entity)
        else:
            opens.setdefault(mention.start, []).append(mention.entity)
            closes.setdefault(last, []).insert(0, mention.entity)
    fields = []
    for at in range(len(document.words)):
        parts = [f"({entity}" for entity in opens.get(at, ())]
        parts += [f"({entity})" for entity in whole.get(at, ())]
        parts += [f"{entity})" for entity in closes.get(at, ())]
        fields.append("|".join(parts) or _NONE)
    return fields


def _writable(document: Document, notes: list[str] | None) -> list[Mention]:
    kept: list[Mention] = []
    ends: dict[int, list[int]] = {}  # of each entity, where the mentions around the next one end
    for mention in document.mentions:
        if mention.entity < 0:
            continue
        around = ends.setdefault(mention.entity, [])
        while around and around[-1] <= mention.start:
            around.pop()
        if around and around[-1] < mention.end:
            what = (
                f"{sanitize(document.name)}: two mentions of entity {mention.entity} cross at words "
                f"{mention.start} to {around[-1]}, which brackets cannot tell"
            )
            if notes is None:
                raise InputError(f"{what}; leave one of them out")
            notes.append(f"{what}: the later one is left out")
            continue
        around.append(mention.end)
        kept.append(mention)
    return kept


def _check(document: Document) -> None:
    """Refuse what would not be read again as it was."""
    texts = [document.name, *document.words]
    for values in (document.pos, document.parse, document.lemmas, document.speakers, document.named):
        texts += values or ()
    for text in texts:
        if "\t" in text or "\n" in text or "\r" in text:
            raise InputError(f"{sanitize(document.name)}: {sanitize(text)!r} holds a tab or line break; replace it")
    if "" in document.words:
        raise InputError(f"{sanitize(document.name)}: an empty word cannot be written; leave it out")
