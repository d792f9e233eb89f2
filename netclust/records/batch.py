"""Batch: many records as arrays, the unit that moves through the system.

>>> batch = Batch(num=np.zeros((2, 3), np.float32), code=np.ones((2, 1), np.uint16))
>>> len(batch), batch.record_id(1)
(2, '0:1')
>>> len(batch[1:])
1
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_LABEL = -1
NO_TIME = -1


@dataclass(eq=False)
class Batch:
    """Encoded records: what is scored (`num`, `code`), what identifies them, and what is only carried.

    Columns that are not given are filled in: `seq` counts from 0, `time` and `label` are unknown.
    `key` is the hash of the schema's key attribute and chooses the partition.
    """

    num: NDArray[np.float32]
    code: NDArray[np.uint16]
    time: NDArray[np.int64] = None  # type: ignore[assignment]
    seq: NDArray[np.uint64] = None  # type: ignore[assignment]
    source: NDArray[np.uint16] = None  # type: ignore[assignment]
    label: NDArray[np.int32] = None  # type: ignore[assignment]
    key: NDArray[np.uint64] = None  # type: ignore[assignment]
    context: dict[str, NDArray[np.object_]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in what was not given and make every array what the kernels expect."""
        n = len(self.num)
        self.num = np.ascontiguousarray(self.num, np.float32)
        self.code = np.ascontiguousarray(self.code, np.uint16)
        absent: dict[str, NDArray[Any]] = {
            "time": np.full(n, NO_TIME, np.int64),
            "seq": np.arange(n, dtype=np.uint64),
            "source": np.zeros(n, np.uint16),
            "label": np.full(n, NO_LABEL, np.int32),
            "key": np.zeros(n, np.uint64),
        }
        for name, default in absent.items():
            given = getattr(self, name)
            setattr(self, name, default if given is None else np.ascontiguousarray(given, default.dtype))
        columns: list[NDArray[Any]] = [self.code, *(getattr(self, name) for name in absent), *self.context.values()]
        for column in columns:
            if len(column) != n:
                raise ValueError(f"a batch of {n} records has a column of {len(column)}")

    def __len__(self) -> int:
        """How many records."""
        return len(self.num)

    def __getitem__(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Batch:
        """Some of the records, as a batch."""
        parts = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "context"}
        return Batch(**parts, context={name: column[rows] for name, column in self.context.items()})

    def record_id(self, i: int) -> str:
        """`source:seq` of record i: the same after every restart."""
        return f"{self.source[i]}:{self.seq[i]}"


def concat_batches(batches: list[Batch]) -> Batch:
    """Return one batch of several, in order."""
    if len(batches) == 1:
        return batches[0]
    parts = {
        f.name: np.concatenate([getattr(b, f.name) for b in batches]) for f in fields(Batch) if f.name != "context"
    }
    context = {name: np.concatenate([b.context[name] for b in batches]) for name in batches[0].context}
    return Batch(**parts, context=context)
