"""The table of class names behind label numbers: grows when people or streams bring new names.

>>> table = LabelTable(["normal", "smurf"], normal=["normal"])
>>> table.add("worm"), table.id("worm"), table.id("unheard of")
(2, 2, -1)
>>> table.is_normal.tolist()
[True, False, False]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from netclust.batch import NO_LABEL
from netclust.errors import InputError

MAX_LABELS = 65_536
MAX_LABEL_CHARACTERS = 255
NOVEL_NAME = "novel"
NOVEL = -2
"""The predicted label of what hangs on the root."""


class LabelTable:
    """Names, numbered from 0; numbers never change their meaning."""

    def __init__(self, names: Iterable[str], normal: Iterable[str]) -> None:
        self.normal = frozenset(normal)
        self.names: list[str] = []
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
        if not name or len(name) > MAX_LABEL_CHARACTERS or any("\ud800" <= c <= "\udfff" for c in name):
            raise InputError(f"a label is text of 1 to {MAX_LABEL_CHARACTERS} characters, not {name[:40]!a}")
        if len(self.names) >= MAX_LABELS:
            raise InputError(f"more than {MAX_LABELS} different labels")
        self._ids[name] = len(self.names)
        self.names.append(name)
        return self._ids[name]

    def name(self, label: int) -> str:
        """The name of a number: "novel" for what hangs on the root, "" for no label."""
        if label == NOVEL:
            return NOVEL_NAME
        return self.names[label] if label >= 0 else ""

    @property
    def is_normal(self) -> NDArray[np.bool_]:
        """For every number whether it means normal."""
        return np.array([name in self.normal for name in self.names], np.bool_)

    def encode(self, names: Sequence[str], *, grow: bool) -> NDArray[np.int32]:
        """Numbers of names; with `grow` new ones are added, else they are -1. The empty name is -1."""
        look = self.add if grow else self.id
        return np.array([look(name) if name else NO_LABEL for name in names], np.int32)
