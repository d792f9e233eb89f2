"""What any learned model should beat: every mention alone, and mentions of the same head together.

>>> from netclust.models.coreference.formats.documents import Document, Mention
>>> words = tuple("The old dog barked . Ann fed the dog .".split())
>>> document = Document("story", words, (0, 5, 10), mentions=(Mention(0, 3), Mention(5, 6), Mention(7, 9)))
>>> head_match(document).tolist(), singletons(document).tolist()
([0, 1, 0], [0, 1, 2])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from netclust.models.coreference.formats.documents import Document
from netclust.models.coreference.mentions.describing import describe_mentions

__all__ = ["head_match", "singletons"]


def singletons(document: Document) -> NDArray[np.int64]:
    """Every mention an entity of its own."""
    return np.arange(len(document.mentions))


def head_match(document: Document) -> NDArray[np.int64]:
    """Mentions whose heads are the same word are one entity; a pronoun's is its plain form (he for him and his)."""
    numbers: dict[str, int] = {}
    found = []
    for fact in describe_mentions(document, [mention.span for mention in document.mentions]):
        head = fact.form if fact.kind == "pronoun" else document.words[fact.head].lower()
        found.append(numbers.setdefault(head, len(numbers)))
    return np.array(found, np.int64)
