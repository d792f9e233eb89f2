"""`netclust explain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from netclust.errors import InputError
from netclust.foundation.text import sanitize
from netclust.linking.explanation import Explanation, explain
from netclust.linking.linker import Feedback, Linker
from netclust.linking.linking_protocols import Protocol, linker_config, stream_facts
from netclust.options.output import (
    check_folders,
    check_not_input,
    data_of,
    echo,
    output_result,
    report_skipped,
    write_json,
)
from netclust.records.reader import OnError
from netclust.records.table import TableReader
from netclust.scoring.model import Model
from netclust.stream.sources.record_files import open_records

if TYPE_CHECKING:
    from netclust.records.relabelling import LabelOptions


def run_explain(
    model_path: Path,
    test: str,
    records: Sequence[int],
    protocol: Protocol,
    feedback: Feedback,
    delay: int,
    window: int,
    partial: bool,
    mature: float | None,
    top: int,
    labels: LabelOptions,
    json: Path | None,
    on_error: OnError,
) -> None:
    """Link the records up to the last one asked for, and explain those that were asked for."""
    check_folders(json)
    check_not_input(test, json)
    model = Model.load(model_path)
    linker = Linker(model, linker_config(protocol, feedback, delay, window, mature, whole=not partial))
    reader = open_records(
        test, model.encoding.schema, on_error=on_error, labels=labels.file, label_column=labels.column,
        normal=labels.normal, leave_out=labels.leave_out,
    )  # fmt: skip
    found = _explanations(linker, reader, set(records), test)
    report_skipped(reader)
    if missing := sorted(set(records) - set(found)):
        raise InputError(f"{test}: has {linker.tick} records, the first is 0: there is no record {missing[0]}")
    if str(json) != "-":
        for number in dict.fromkeys(records):
            echo(_sanitize_lines(found[number].text(top)))
    body: dict[str, Any] = {"explanations": [msgspec.to_builtins(found[number]) for number in dict.fromkeys(records)]}
    body |= stream_facts(model, protocol, feedback, delay, window, partial, mature, reader)
    write_json(json, output_result(["explain"], body, seed=model.provenance.seed, data=data_of(model, test, reader)))


def _explanations(linker: Linker, reader: TableReader, wanted: set[int], where: str) -> dict[int, Explanation]:
    """By arrival number. Read to the end all the same: the checksum is that of the file."""
    found: dict[int, Explanation] = {}
    for table in reader:
        first = linker.tick
        batch = linker.model.encoding.encode(table, linker.labels)
        if linker.config.label_delay is not None and (batch.label < 0).any():
            row = first + int((batch.label < 0).argmax())
            raise InputError(f"{where}: record {row} has no label, and --feedback gold waits for one")
        here = sorted(number - first for number in wanted if first <= number < first + len(batch))
        if not here:
            linker.process(batch)
            continue
        verdicts, evidence = linker.process_with_evidence(batch, "all")
        found |= {first + row: explain(linker, batch, verdicts, evidence, row) for row in here}
    return found


def _sanitize_lines(text: str) -> str:
    """Return text of several lines whose words come from outside, made safe to show.

    >>> _sanitize_lines("one\\n  two\\x1b")
    'one\\n  two\\\\x1b'
    """
    return "\n".join(sanitize(line) for line in text.split("\n"))
