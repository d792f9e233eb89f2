"""`netclust detect`."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.linking.evidence import Evidence
from netclust.linking.explanation import explain
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import VERDICTS, VIAS, Verdicts
from netclust.options.output import (
    check_folders,
    check_not_input,
    check_outputs,
    counted,
    data_of,
    echo,
    output_note,
    output_result,
    output_table,
    report_skipped,
    write_json,
)
from netclust.records.batch import NO_TIME, Batch
from netclust.records.reader import OnError, load_reader_kernels
from netclust.scoring.model import Model
from netclust.stream.alerts.cluster_alerts import alerts_of
from netclust.stream.sources.record_files import open_records


def run_detect(
    model_path: Path,
    given: str,
    output: Path,
    every: bool,
    why: bool,
    window: int,
    mature: float | None,
    most: int,
    json: Path | None,
    on_error: OnError,
) -> None:
    """Link the records as they come, and write a line for each that is asked for."""
    if str(output) == "-" == str(json):
        raise InputError("verdicts and the result cannot both go to standard output: give one of them a file")
    check_folders(output, json)
    check_outputs(output, json)
    for path in (given, str(model_path)):
        check_not_input(path, output, json)
    model = Model.load(model_path)
    if mature is not None and not window:
        output_note("--mature is about window members: it does nothing without a --window")
    linker = Linker(model, LinkerConfig(referent_window=window, mature_after=mature))
    reader = open_records(given, model.encoding.schema, on_error=on_error)
    load_reader_kernels(reader.schema)
    counts: Counter[str] = Counter()
    with _sink(output) as sink:
        for records in reader:
            batch = model.encoding.encode(records, linker.labels, delivered=True)
            verdicts, evidence = linker.process_with_evidence(batch)
            counts.update(np.array(VERDICTS, object)[verdicts.verdict].tolist())
            rows = range(len(batch)) if every else evidence.rows.tolist()
            for row in rows:
                line = _line(linker, batch, verdicts, row)
                if why and verdicts.verdict[row]:
                    line["why"] = _why(linker, batch, verdicts, evidence, row)
                sink.write(msgspec.json.encode(line) + b"\n")
    report_skipped(reader)
    if dropped := linker.labels.dropped.total():
        output_note(f"the labels of {counted(dropped, 'record')} were left out: too many different ones, or too long")
    found = alerts_of(linker.clusters())
    if "-" not in (str(output), str(json)):
        _print(counts, found, most, output)
    body: dict[str, Any] = {
        "output": str(output),
        "records": linker.tick,
        "verdicts": {name: counts[name] for name in VERDICTS},
        "alerts": [msgspec.to_builtins(alert) for alert in found[:most]],
        "model": model.fingerprint,
        "window": window,
        "mature": mature,
        "skipped": dict(reader.skipped),
    }
    write_json(json, output_result(["detect"], body, seed=model.provenance.seed, data=data_of(model, given, reader)))


def _sink(output: Path) -> Any:
    """The file, or standard output. What was judged before an error stays: it was right."""
    if str(output) == "-":
        return nullcontext(sys.stdout.buffer)
    try:
        opened: IO[bytes] = output.open("wb")
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from None
    return opened


def _line(linker: Linker, batch: Batch, verdicts: Verdicts, row: int) -> dict[str, Any]:
    score = float(verdicts.score[row])
    line = {
        "record": batch.record_id(row),
        "verdict": VERDICTS[verdicts.verdict[row]],
        "label": linker.labels.name(int(verdicts.label[row])),
        "score": score if np.isfinite(score) else None,
        "via": VIAS[verdicts.via[row]],
        "referent": verdicts.referent(row),
        "cluster": int(verdicts.cluster[row]),
    }
    if batch.time[row] != NO_TIME:
        line["time"] = str(np.datetime64(int(batch.time[row]), "ns")) + "Z"
    return line | {name: str(column[row]) for name, column in batch.context.items()}


def _why(linker: Linker, batch: Batch, verdicts: Verdicts, evidence: Evidence, row: int) -> str:
    return explain(linker, batch, verdicts, evidence, row).text()


def _print(counts: Counter[str], found: list[Any], most: int, output: Path) -> None:
    total = max(sum(counts.values()), 1)
    rows = [[name.replace("_", " "), counts[name], f"{100 * counts[name] / total:.2f} %"] for name in VERDICTS]
    output_table(f"{sum(counts.values()):,} records", ["verdict", "records", "share"], rows)
    if most and found:
        left = f" (of {len(found):,})" if len(found) > most else ""
        shown = [[a.cluster, a.kind, a.records, f"{a.top_score:.2f}"] for a in found[:most]]
        output_table(
            f"Alerts{left}: one a cluster, largest first", ["cluster", "taken for", "records", "top score"], shown
        )
    echo(f"wrote {output}")
