"""`netclust reproduce windows` and `netclust reproduce label-economy`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from netclust.cli.network import report_skipped
from netclust.cli.output import check_folders, check_outputs, note, progress, result, table, write_json
from netclust.datasets.records import RecordReader, load_kernels
from netclust.errors import InputError
from netclust.models import label_economy, windows
from netclust.models.looks import TEST_SETS, count_looks, find_ledger, record_look
from netclust.models.params import load_params
from netclust.optional import need
from netclust.schema import load_schema
from netclust.table import Table, concat_tables

WINDOWS, ECONOMY = "reproduce windows", "reproduce label-economy"
PUBLISHED_ON = "KDDTest+"


def run_windows(train: str, test: str, draws: int, json: Path | None, plot: Path | None, schema: str) -> None:
    """Read, link with every window, and print the table."""
    past, stream, data = _read(train, test, schema, json, plot)
    name, sha256 = list(data.items())[-1]
    params = load_params(windows.PRESET, past.schema)
    with progress("runs") as tick:
        rows = windows.run_windows(
            past, stream, draws=draws, params=params, published=_is_published(sha256), on_progress=tick
        )
    looks = _look(WINDOWS, name, sha256, len(rows), draws)  # before anything is shown
    if str(json) != "-":
        cells = [
            [row.setting, _printed(row.published), *_measures(row.mean, row.sd), f"{row.records_per_second:,.0f}"]
            for row in rows
        ]
        columns = ["window", "published: acc / det / FA", "accuracy", "detection", "false alarms", "records/s"]
        table(f"{name}, {len(stream):,} records: percent, labels {windows.DELAY} records late", columns, cells)
    if plot is not None:
        windows.plot_rows(rows, plot)
        note(f"wrote {plot}")
    trained = {"preset": windows.PRESET, "params": msgspec.to_builtins(params)}
    body = {"rows": rows, "looks": looks, "draws": draws, "delay": windows.DELAY, **trained}
    _write(json, WINDOWS, body, past, stream, windows.SEED, data)


def run_label_economy(
    train: str, test: str, draws: int, json: Path | None, plot: Path | None, schema: str, jobs: int
) -> None:
    """Read, run every way of asking with every budget, and print the table."""
    past, stream, data = _read(train, test, schema, json, plot)
    name, sha256 = list(data.items())[-1]
    presets = {preset: load_params(preset, past.schema) for preset in label_economy.PRESETS}
    with progress("rows") as tick:
        rows = label_economy.run_economy(past, stream, draws=draws, presets=presets, jobs=jobs, on_progress=tick)
    looks = _look(ECONOMY, name, sha256, len(rows), draws)  # before anything is shown
    if str(json) != "-":
        cells = [
            [
                row.name,
                row.preset,
                f"{100 * row.labelled:.2f}",
                *_measures(row.mean, row.sd),
                f"{100 * row.second_half:.2f}",
            ]
            for row in rows
        ]
        columns = [
            "asked about",
            "preset",
            "labelled",
            "accuracy",
            "detection",
            "false alarms",
            "accuracy, second half",
        ]
        table(f"{name}, {len(stream):,} records: percent, answers {label_economy.DELAY} records late", columns, cells)
    if plot is not None:
        label_economy.plot_rows(rows, plot)
        note(f"wrote {plot}")
    trained = {preset: msgspec.to_builtins(params) for preset, params in presets.items()}
    body = {"rows": rows, "looks": looks, "draws": draws, "delay": label_economy.DELAY, "params": trained}
    _write(json, ECONOMY, body, past, stream, label_economy.SEED, data)


def _read(
    train: str, test: str, schema: str, json: Path | None, plot: Path | None
) -> tuple[Table, Table, dict[str, str]]:
    """Training and test records, and the checksums of both; what cannot be written is refused first."""
    check_folders(json, plot)
    check_outputs(json, plot)
    if plot is not None:
        need("matplotlib", "a picture", "plot")
        if plot.suffix.lower() not in (".svg", ".png"):
            raise InputError(f"{plot}: pictures are written as .svg or .png")
    kind = load_schema(schema)
    load_kernels(kind)
    found: list[tuple[Table, str]] = []
    for path in (train, test):
        reader = RecordReader(path, kind)
        records = concat_tables(list(reader))
        report_skipped(reader)
        unlabelled = int((records.label == 0).sum())
        if unlabelled:
            raise InputError(
                f"{path}: {unlabelled} of {len(records)} records have no label: label them, or leave them out"
            )
        found.append((records, reader.sha256))
    (past, past_sha256), (stream, sha256) = found
    if past_sha256 == sha256:
        raise InputError(f"{train}: trained and tested on the same records, nothing would follow from it")
    name = TEST_SETS.get(sha256) or Path(test).name
    first = Path(train).name
    if name == first:
        raise InputError(f"{test}: training and test file have the same name, and results go by names")
    return past, stream, {first: past_sha256, name: sha256}


def _is_published(sha256: str) -> bool:
    """Whether the printed numbers are about these records."""
    return TEST_SETS.get(sha256) == PUBLISHED_ON


def _look(command: str, name: str, sha256: str, rows: int, draws: int) -> dict[str, Any]:
    """Note the look at a test set; what the ledger holds then."""
    ledger = find_ledger()
    noted = record_look(command, sha256, rows=rows, draws=draws)
    if noted:
        note(f"a look at {name}: noted in {ledger}")
    runs, total = (0, 0) if ledger is None else count_looks(ledger)
    return {
        "tests": {name: {"noted": noted, "rows": rows, "draws": draws}},
        "ledger": None if ledger is None else {"runs": runs, "rows": total},
    }


def _write(
    json: Path | None,
    command: str,
    body: dict[str, Any],
    past: Table,
    stream: Table,
    seed: int,
    data: dict[str, str],
) -> None:
    sizes = {"training_records": len(past), "test_records": len(stream)}
    write_json(json, result(command.split(), {**body, **sizes}, seed=seed, data=data))


def _measures(mean: dict[str, float], sd: dict[str, float | None]) -> Sequence[str]:
    def spread(name: str) -> str:
        deviation = sd[name]
        shown = f"{100 * mean[name]:.2f}"
        return shown if deviation is None else f"{shown} ± {100 * deviation:.2f}"

    return [spread(name) for name in windows.MEASURES]


def _printed(published: dict[str, float] | None) -> str:
    return "" if published is None else " / ".join(f"{100 * published[name]:.2f}" for name in windows.MEASURES)
