"""The front door to records: `open_records` reads text files, Zeek and EVE logs, and captures alike.

>>> import tempfile
>>> from netclust.datasets.simulators.simulate import simulate
>>> with tempfile.TemporaryDirectory() as folder:
...     simulate(10, seed=1).write(folder + "/today.txt")
...     type(open_records(folder + "/today.txt", load_schema("kdd"))).__name__
'RecordReader'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netclust.errors import InputError
from netclust.records.capture_format import is_capture, text_kind
from netclust.records.opening import STDIN
from netclust.records.reader import OnError, RecordReader
from netclust.records.schema import Schema, load_schema
from netclust.records.table import TableReader

__all__ = ["open_records"]

NORMAL_IN_LOGS = ("benign", "normal")
"""Labels of logs that mean normal, whatever else does."""


def open_records(
    path: str | Path,
    schema: Schema | None = None,
    *,
    on_error: OnError = "stop",
    labels: str | Path | None = None,
    context: bool = True,
    label_column: str | None = None,
    normal: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> TableReader:
    r"""Return a reader for records as text, a Zeek conn.log, a Suricata EVE log, a capture, or a folder of captures.

    The content decides, also of what is packed and of standard input (`-`). In logs, lines that cannot be read are
    always passed over and counted, as `watch` does.

    Args:
        path: The file, or the folder of captures.
        schema: The attributes. Default: KDD's for text, `conn` for logs, `flow` for captures.
        on_error: For records as text: stop at a line that cannot be read, or skip and count it.
        labels: For captures and logs: a label file. It replaces labels that a log has.
        context: Whether addresses of captures and logs are written out.
        label_column: For logs: the field or JSON key that has the label. Default: `label`.
        normal: Labels that mean normal, in any case. In logs, Benign and Normal always do.
        leave_out: Labels whose records are left out, in any case; "" stands for no label.

    >>> import json, tempfile
    >>> ends = {"id.orig_h": "10.0.0.1", "id.orig_p": 4000, "id.resp_h": "10.0.0.2", "id.resp_p": 53, "proto": "udp"}
    >>> lines = [json.dumps({"ts": 1.5, **ends, "label": label}) for label in ("Benign", "Background", "scan")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "conn.log").write_text("\n".join(lines))
    ...     (table,) = open_records(folder + "/conn.log", leave_out=["background"])
    >>> table.label_names().tolist()
    ['normal', 'scan']
    """
    is_folder = str(path) != STDIN and Path(path).is_dir()
    if is_folder or is_capture(path):
        from netclust.stream.packets.capture_reader import (
            open_captures_as_tables,  # a text file loads no packet kernels
        )

        _refuse_column(path, label_column, "a capture has none, give a label file")
        reader: TableReader = open_captures_as_tables(path, schema, labels=labels, context=context)
    elif (kind := text_kind(path)) == "records":
        if labels is not None:
            raise InputError(f"{path}: labels from a file are for captures and logs, and this is none")
        _refuse_column(path, label_column, "of other records the schema says where it is")
        reader = RecordReader(path, schema or load_schema("kdd"), on_error=on_error)
    else:
        from netclust.stream.sources.log_files import LogReader  # a file of records loads no packet kernels

        rules = None
        if labels is not None:
            from netclust.stream.packets.capture_labels import load_labels

            _refuse_column(path, label_column, "give it, or a label file, not both")
            rules = load_labels(labels).for_file(path)
        reader = LogReader(path, schema or load_schema("conn"), kind, rules, label_column, context)
        normal = (*NORMAL_IN_LOGS, *normal)
    if not normal and not leave_out:
        return reader
    from netclust.records.relabelling import LabelOptions, RelabelledReader

    return RelabelledReader(reader, LabelOptions(normal=tuple(normal), leave_out=tuple(leave_out)), str(path))


def _refuse_column(path: str | Path, column: str | None, why: str) -> None:
    if column is not None:
        raise InputError(f"{path}: the label column {column!r} is for Zeek and EVE logs: {why}")
