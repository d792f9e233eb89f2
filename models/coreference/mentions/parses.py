"""Constituents from the parse column of CoNLL files, where every word has its bit of the bracketed tree.

>>> bits = ("(TOP(S(NP(NP*", "*)", "(NP*))", "(VP*)))")
>>> [(c.label, c.start, c.end) for c in constituents(bits, 0) if c.label == "NP"]
[('NP', 0, 3), ('NP', 0, 2), ('NP', 2, 3)]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Constituent", "constituents"]

_BIT = re.compile(r"\(([^()*\s]*)|\)|\*")


@dataclass
class Constituent:
    """A part of a sentence; `children` are the constituents right below it, in order."""

    label: str
    start: int
    end: int
    children: list[Constituent] = field(default_factory=list)


def constituents(bits: Sequence[str], first: int) -> list[Constituent]:
    """All constituents of a sentence whose first word is word `first`, outer before inner.

    Brackets that do not close are closed at the end of the sentence; those that close nothing are passed over.
    """
    found: list[Constituent] = []
    open_now: list[Constituent] = []
    for place, bit in enumerate(bits, start=first):
        for part in _BIT.finditer(bit):
            if part[0].startswith("("):
                label = re.split("[-=|]", part[1], maxsplit=1)[0] or part[1]
                new = Constituent(label, place, place + 1)
                if open_now:
                    open_now[-1].children.append(new)
                open_now.append(new)
                found.append(new)
            elif part[0] == ")" and open_now:
                open_now.pop().end = place + 1
    for left in open_now:
        left.end = first + len(bits)
    return found
