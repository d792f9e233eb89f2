"""Mentions from opening and closing brackets, as files of coreference mark them.

Brackets are paired entity by entity, innermost first, which is what the official scorer does (Pradhan and others, ACL
2014). Crossing mentions of two entities are fine; those of one entity cannot be told from nested ones.

>>> brackets = Brackets("letter.conll")
>>> brackets.open(7, 0, line=1)
>>> brackets.open(7, 2, line=3)
>>> brackets.close(7, 2, line=3)
>>> brackets.close(7, 4, line=5)
>>> brackets.finish(notes=None)
[Mention(start=0, end=5, entity=7), Mention(start=2, end=3, entity=7)]
"""

from __future__ import annotations

from netclust.errors import InputError
from netclust.models.coreference.formats.documents import Mention, Span

__all__ = ["Brackets"]


class Brackets:
    """The mentions of one document while its file is read. Places are numbers of words, `end` the last word itself."""

    def __init__(self, file: str) -> None:
        """Nothing is open yet."""
        self._file = file
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._found: list[tuple[Mention, int]] = []
        self._first_seen: dict[int, int] = {}

    def open(self, entity: int, word: int, line: int) -> None:
        """A mention of the entity begins at this word."""
        self._first_seen.setdefault(entity, len(self._first_seen))
        self._open.setdefault(entity, []).append((word, line))

    def close(self, entity: int, word: int, line: int, name: str = "") -> None:
        """The mention of the entity that was opened last ends with this word."""
        waiting = self._open.get(entity)
        if not waiting:
            raise InputError(
                f"{self._file} line {line}: a mention of entity {name or entity} ends here that did not begin; "
                "put its opening bracket where it begins"
            )
        start, opened_at = waiting.pop()
        self._found.append((Mention(start, word + 1, entity), opened_at))

    def finish(self, notes: list[str] | None, names: dict[int, str] | None = None) -> list[Mention]:
        """All mentions in the order of the text; a span is kept once, for the entity that the file named first.

        What is passed over so is told in `notes`.
        """
        left = [(line, entity) for entity, waiting in self._open.items() for _, line in waiting]
        if left:
            line, entity = min(left)
            raise InputError(
                f"{self._file} line {line}: a mention of entity {(names or {}).get(entity, entity)} begins here "
                "and does not end in its document; close its bracket"
            )
        kept: dict[Span, Mention] = {}
        for mention, line in sorted(self._found, key=lambda found: self._first_seen[found[0].entity]):
            before = kept.setdefault(mention.span, mention)
            if before is not mention and notes is not None:
                again = "again" if before.entity == mention.entity else "of another entity"
                notes.append(f"{self._file} line {line}: the same words are a mention {again}, the first one is kept")
        return sorted(kept.values(), key=lambda mention: (mention.start, -mention.end))
