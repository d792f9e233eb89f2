"""`netclust reproduce windows` and `netclust reproduce label-economy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.experiments.detection import label_economy, windows
from netclust.models.network.params import load_params
from netclust.models.test_set_ledger import TEST_SETS, count_test_uses, find_ledger, record_test_use
from netclust.options.output import (
    check_folders,
    check_outputs,
    output_note,
    output_result,
    output_table,
    progress,
    report_skipped,
    write_json,
)
from netclust.records.reader import RecordReader, load_reader_kernels
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables

WINDOWS, ECONOMY = "reproduce windows", "reproduce label-economy"
PUBLISHED_ON = "KDDTest+"


@dataclass(frozen=True)
class _Job:
    """What both commands are given: records, and where the result goes."""

    command: str
    past: Table
    stream: Table
    data: dict[str, str]  # checksums by name, the test set last
    draws: int
    json: Path | None
    plot: Path | None

    @property
    def test(self) -> tuple[str, str]:
        """Name and checksum of the test set."""
        return list(self.data.items())[-1]

    def report(
        self, rows: Sequence[Any], columns: Sequence[str], cells: Sequence[Sequence[str]], body: dict[str, Any], *,
        late: str, delay: int, seed: int, draw: Callable[[Path], None],
    ) -> None:  # fmt: skip
        """Note the look at the test set, before anything is shown; then table, picture and JSON."""
        name, sha256 = self.test
        looks = _record_use(self.command, name, sha256, len(rows), self.draws)
        if str(self.json) != "-":
            output_table(f"{name}, {len(self.stream):,} records: percent, {late} {delay} records late", columns, cells)
        if self.plot is not None:
            draw(self.plot)
            output_note(f"wrote {self.plot}")
        sizes = {"training_records": len(self.past), "test_records": len(self.stream)}
        whole = {"rows": rows, "looks": looks, "draws": self.draws, "delay": delay, **body, **sizes}
        write_json(self.json, output_result(self.command.split(), whole, seed=seed, data=self.data))


def run_windows(train: str, test: str, draws: int, json: Path | None, plot: Path | None, schema: str) -> None:
    """Read, link with every window, and print the table."""
    job = _read(WINDOWS, train, test, draws, json, plot, schema)
    params = load_params(windows.PRESET, job.past.schema)
    published = TEST_SETS.get(job.test[1]) == PUBLISHED_ON  # whether the printed numbers are about these records
    with progress("runs") as tick:
        rows = windows.run_windows(
            job.past, job.stream, draws=draws, params=params, published=published, on_progress=tick
        )
    columns = ["window", "published: acc / det / FA", "accuracy", "detection", "false alarms", "records/s"]
    cells = [
        [row.setting, _printed(row.published), *_measures(row.mean, row.sd), f"{row.records_per_second:,.0f}"]
        for row in rows
    ]
    body = {"preset": windows.PRESET, "params": msgspec.to_builtins(params)}
    draw = partial(windows.plot_window_rows, rows)
    job.report(rows, columns, cells, body, late="labels", delay=windows.DELAY, seed=windows.SEED, draw=draw)


def run_label_economy(
    train: str, test: str, draws: int, json: Path | None, plot: Path | None, schema: str, jobs: int
) -> None:
    """Read, run every way of asking with every budget, and print the table."""
    job = _read(ECONOMY, train, test, draws, json, plot, schema)
    presets = {preset: load_params(preset, job.past.schema) for preset in label_economy.PRESETS}
    with progress("rows") as tick:
        rows = label_economy.run_economy(
            job.past, job.stream, draws=draws, presets=presets, jobs=jobs, on_progress=tick
        )
    columns = [
        "asked about", "preset", "labelled", "accuracy", "detection", "false alarms", "accuracy, second half"
    ]  # fmt: skip
    cells = [
        [row.name, row.preset, _percent(row.labelled), *_measures(row.mean, row.sd), _percent(row.second_half)]
        for row in rows
    ]
    body = {"params": {preset: msgspec.to_builtins(params) for preset, params in presets.items()}}
    draw = partial(label_economy.plot_label_economy, rows)
    job.report(
        rows, columns, cells, body, late="answers", delay=label_economy.DELAY, seed=label_economy.SEED, draw=draw
    )


def _read(command: str, train: str, test: str, draws: int, json: Path | None, plot: Path | None, schema: str) -> _Job:
    """Training and test records, and the checksums of both; what cannot be written is refused first."""
    check_folders(json, plot)
    check_outputs(json, plot)
    if plot is not None:
        require_optional("matplotlib", "a picture", "plot")
        if plot.suffix.lower() not in (".svg", ".png"):
            raise InputError(f"{plot}: pictures are written as .svg or .png")
    kind = load_schema(schema)
    load_reader_kernels(kind)
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
    return _Job(command, past, stream, {first: past_sha256, name: sha256}, draws, json, plot)


def _record_use(command: str, name: str, sha256: str, rows: int, draws: int) -> dict[str, Any]:
    """Record the use of a test set; return what the ledger holds then."""
    ledger = find_ledger()
    noted = record_test_use(command, sha256, rows=rows, draws=draws)
    if noted:
        output_note(f"a look at {name}: noted in {ledger}")
    runs, total = (0, 0) if ledger is None else count_test_uses(ledger)
    return {
        "tests": {name: {"noted": noted, "rows": rows, "draws": draws}},
        "ledger": None if ledger is None else {"runs": runs, "rows": total},
    }


def _measures(mean: dict[str, float], sd: dict[str, float | None]) -> Sequence[str]:
    def spread(name: str) -> str:
        deviation = sd[name]
        shown = _percent(mean[name])
        return shown if deviation is None else f"{shown} ± {_percent(deviation)}"

    return [spread(name) for name in windows.MEASURES]


def _printed(published: dict[str, float] | None) -> str:
    return "" if published is None else " / ".join(_percent(published[name]) for name in windows.MEASURES)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"
