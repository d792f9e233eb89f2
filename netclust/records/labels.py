"""The table of class names behind label numbers: grows when people or streams bring new names.

>>> table = LabelTable(["normal", "smurf"], normal=["normal"])
>>> table.add("worm"), table.id("worm"), table.id("unheard of")
(2, 2, -1)
>>> table.is_normal.tolist()
[True, False, False]

Records of a stream can have any label, so a name that finds no room is left out and counted, never an error:

>>> table.take("x" * 1000), table.dropped["unusable"]
(-1, 1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.records.batch import NO_LABEL

MAX_LABELS = 65_536
MAX_LABEL_CHARACTERS = 255
KEPT_FOR_PEOPLE = 1024
"""Of MAX_LABELS, names that records of a stream cannot take up: answers of people always find room."""
MAX_CHARACTERS = 1 << 22
"""Of all names together, from which on records of a stream bring no new ones: every snapshot holds them."""
SHOWN_CHARACTERS = 40

Dropped = Literal["full", "unusable"]
NOVEL_NAME = "novel"
NOVEL = -2
"""The predicted label of what hangs on the root."""


class LabelTable:
    """Names, numbered from 0; numbers never change their meaning."""

    def __init__(self, names: Iterable[str], normal: Iterable[str]) -> None:
        self.normal = frozenset(normal)
        self.dropped: Counter[Dropped] = Counter({"full": 0, "unusable": 0})
        """Records whose label was left out: there were too many names, or it was no name."""
        self.first_dropped: dict[Dropped, str] = {}
        """The first such label of either kind, shortened and escaped."""
        self.names: list[str] = []
        self._characters = 0
        self._is_normal = np.zeros(0, np.bool_)
        self._ids: dict[str, int] = {}
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        """How many names."""
        return len(self.names)

    def copy(self) -> LabelTable:
        """One that can grow on its own."""
        return LabelTable(self.names, self.normal)

    def id(self, name: str) -> int:
        """The number of a name, -1 if it has none."""
        return self._ids.get(name, NO_LABEL)

    def add(self, name: str) -> int:
        """The number of a name, given now if need be."""
        found = self._ids.get(name)
        if found is not None:
            return found
        if not _is_name(name):
            raise InputError(f"a label is text of 1 to {MAX_LABEL_CHARACTERS} characters, not {_shown(name)}")
        if len(self.names) >= MAX_LABELS:
            raise InputError(f"more than {MAX_LABELS} different labels: give rare ones a common name")
        self._ids[name] = len(self.names)
        self._characters += len(name)
        self.names.append(name)
        return self._ids[name]

    def take(self, name: str, records: int = 1) -> int:
        """The number of a label that `records` records of a stream have; -1 where it is left out, which is counted."""
        found = self._ids.get(name)
        if found is not None:
            return found
        if not _is_name(name):
            return self._drop("unusable", name, records)
        if len(self.names) >= MAX_LABELS - KEPT_FOR_PEOPLE or len(name) > MAX_CHARACTERS - self._characters:
            return self._drop("full", name, records)
        return self.add(name)

    def _drop(self, reason: Dropped, name: str, records: int) -> int:
        self.dropped[reason] += records
        self.first_dropped.setdefault(reason, _shown(name))
        return NO_LABEL

    def name(self, label: int) -> str:
        """The name of a number: "novel" for what hangs on the root, "" for no label."""
        if label == NOVEL:
            return NOVEL_NAME
        return self.names[label] if label >= 0 else ""

    @property
    def is_normal(self) -> NDArray[np.bool_]:
        """For every number whether it means normal; not to be changed."""
        known = len(self._is_normal)
        if known < len(self.names):
            new = np.array([name in self.normal for name in self.names[known:]], np.bool_)
            self._is_normal = np.concatenate([self._is_normal, new])
        return self._is_normal


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_LABEL_CHARACTERS and not any("\ud800" <= c <= "\udfff" for c in name)


def _shown(name: str) -> str:
    """A label from outside, shortened and escaped."""
    return f"{name[:SHOWN_CHARACTERS]!a}" + ("..." if len(name) > SHOWN_CHARACTERS else "")
