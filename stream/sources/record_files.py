"""The front door to records: `open_records` reads text files and captures alike.

>>> import tempfile
>>> from netclust.datasets.simulators.simulate import simulate
>>> with tempfile.TemporaryDirectory() as folder:
...     simulate(10, seed=1).write(folder + "/today.txt")
...     type(open_records(folder + "/today.txt", load_schema("kdd"))).__name__
'RecordReader'
"""

from __future__ import annotations

from pathlib import Path

from netclust.errors import InputError
from netclust.records.capture_format import is_capture
from netclust.records.reader import OnError, RecordReader
from netclust.records.schema import Schema, load_schema
from netclust.records.table import TableReader

__all__ = ["open_records"]


def open_records(
    path: str | Path,
    schema: Schema | None = None,
    *,
    on_error: OnError = "stop",
    labels: str | Path | None = None,
    context: bool = True,
) -> TableReader:
    """Return a reader for a file of records, for a capture, or for a folder of captures, whichever is given.

    Where no schema is given, records have KDD's attributes and captures get those of `flow`. Without context, addresses
    of a capture are not written out.
    """
    is_folder = str(path) != "-" and Path(path).is_dir()
    if is_folder or is_capture(path):
        from netclust.stream.packets.capture_reader import (
            open_captures_as_tables,  # a text file loads no packet kernels
        )

        return open_captures_as_tables(path, schema, labels=labels, context=context)
    if labels is not None:
        raise InputError(f"{path}: labels from a file are for captures, and this is none")
    return RecordReader(path, schema or load_schema("kdd"), on_error=on_error)
