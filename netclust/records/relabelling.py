"""Labels of other people's data: those that mean normal, and those whose records are left out.

>>> from netclust.records.schema import load_schema
>>> choice = LabelOptions(normal=("Benign",), leave_out=("Background",))
>>> choice.meaning("benign", load_schema("conn")), choice.meaning("scan", load_schema("conn"))
('normal', 'scan')
>>> choice.leaves_out("background")
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from netclust.errors import InputError
from netclust.records.schema import Schema
from netclust.records.table import LEFT_OUT, SharedNames, Table, TableReader

__all__ = ["LabelOptions", "RelabelledReader"]


@dataclass(frozen=True)
class LabelOptions:
    """The origin and the meaning of labels. Case does not count in `normal` and `leave_out`.

    `file` is a label file, `column` the field of a log that has the label. The label "" stands for none.
    """

    file: Path | None = None
    column: str | None = None
    normal: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()

    def meaning(self, label: str, schema: Schema) -> str:
        """Return the schema's name for normal if the label means it, else the label itself."""
        return schema.normal[0] if label.casefold() in {name.casefold() for name in self.normal} else label

    def leaves_out(self, label: str) -> bool:
        """Return whether records with this label are left out."""
        return label.casefold() in {name.casefold() for name in self.leave_out}


@dataclass
class RelabelledReader:
    """The tables of another reader, with labels that mean normal renamed and some records left out.

    The others keep their attributes: traffic counts were made with all records. They are numbered from 0.
    """

    reader: TableReader
    choice: LabelOptions
    where: str
    skipped: Counter[str] = field(default_factory=Counter, init=False)
    first_skipped: str = field(default="", init=False)
    records: int = field(default=0, init=False)
    sha256: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Take over the schema."""
        self.schema = self.reader.schema

    def __iter__(self) -> Iterator[Table]:
        """The tables."""
        self.skipped, self.first_skipped, self.records, self.sha256 = Counter(), "", 0, ""
        names, left_out = SharedNames(), 0
        for table in self.reader:
            kept = self._relabelled(table, names)
            left_out += len(table) - len(kept)
            if len(kept):
                kept.seq = np.arange(self.records, self.records + len(kept), dtype=np.uint64)
                self.records += len(kept)
                yield kept
        self.skipped = Counter(self.reader.skipped)
        if left_out:
            self.skipped[LEFT_OUT] = left_out
        self.first_skipped, self.sha256 = self.reader.first_skipped, self.reader.sha256
        if not self.records:
            raise InputError(f"{self.where}: all {left_out:,} records have a label that is left out")

    def _relabelled(self, table: Table, names: SharedNames) -> Table:
        used = np.unique(table.label).tolist()
        dropped = [number for number in used if self.choice.leaves_out(table.labels[number])]
        if dropped:
            table = table[~np.isin(table.label, dropped)]
        meanings = list(table.labels)
        for number in used:
            meanings[number] = self.choice.meaning(table.labels[number], self.schema)
        return replace(table, label=names.renumber(table.label, meanings), labels=names.names)
