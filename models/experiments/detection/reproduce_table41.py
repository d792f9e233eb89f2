"""`netclust reproduce table-4.1`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from netclust.errors import InputError, MissingExtraError
from netclust.models.experiments.bootstrap import RESAMPLES, ConfidenceInterval
from netclust.models.experiments.detection.table41 import UNLEARNED, Paired, Results, Table41Row, TestStream
from netclust.models.experiments.detection.table41_plots import write_plots
from netclust.models.experiments.detection.table41_runs import PeerChoice, check_peers, chosen_peers, run_table41
from netclust.models.network.params import PRESETS, load_params
from netclust.models.test_set_ledger import TEST_SETS, count_test_uses, find_ledger, record_test_use
from netclust.options.output import (
    check_folders,
    echo,
    output_note,
    output_result,
    output_table,
    progress,
    report_skipped,
    write_json,
)
from netclust.records.reader import RecordReader, load_reader_kernels
from netclust.records.schema import Schema, load_schema
from netclust.records.table import Table, concat_tables

COMMAND = "reproduce table-4.1"
PUBLISHED_ON = "KDDTest+"


def run_table41_reproduction(
    train: str,
    tests: Sequence[str],
    draws: int,
    seeds: int,
    json: Path | None,
    plots: Path | None,
    peers: PeerChoice,
    pretrain: int | None,
    schema: str,
    jobs: int,
) -> None:
    """Read, run everything, and print the table with the comparison."""
    check_folders(json)
    names = chosen_peers(peers)
    check_peers(names)
    _check_plots(plots)
    presets = {name: load_params(name) for name in PRESETS}
    kind = load_schema(schema)
    load_reader_kernels(kind)
    past, past_sha256 = _read(train, kind)
    streams, checksums = _test_streams(tests, kind)
    if past_sha256 in checksums.values():
        raise InputError(f"{train}: trained and tested on the same records, nothing would follow from it")
    if checksums[streams[0].name] not in TEST_SETS:
        output_note(f"the published numbers are about {PUBLISHED_ON}, {streams[0].name} is another file")
    with progress("runs") as tick:
        results = run_table41(
            past,
            streams,
            draws=draws,
            seeds=seeds,
            peers=names,
            pretrain=pretrain,
            picture=plots is not None,
            jobs=jobs,
            presets=presets,
            on_progress=tick,
        )
    looks = _record_uses(results, checksums, draws)  # before anything is shown
    rows, paired = results.rows(), results.paired()
    if str(json) != "-":
        for stream in streams:
            _print_rows(stream.name, len(stream.table), [row for row in rows if row.test == stream.name])
            _print_paired(stream.name, [pair for pair in paired if pair.test == stream.name])
    if plots is not None:
        for path in write_plots(results, plots):
            output_note(f"wrote {path}")
    body = {
        "rows": rows,
        "windows": results.rows(picture=True),
        "paired": paired,
        "looks": looks,
        "tests": {stream.name: len(stream.table) for stream in streams},
        "training_records": len(past),
        "draws": draws,
        "seeds": seeds,
        "peers": names,
        "pretrain": pretrain,
        "resamples": RESAMPLES,
        "params": {name: msgspec.to_builtins(params) for name, params in presets.items()},
    }
    data = {Path(train).name: past_sha256} | checksums
    write_json(json, output_result(COMMAND.split(), body, seed=0, data=data))


def _read(path: str, schema: Schema) -> tuple[Table, str]:
    reader = RecordReader(path, schema)
    records = concat_tables(list(reader))
    report_skipped(reader)
    return records, reader.sha256


def _test_streams(paths: Sequence[str], schema: Schema) -> tuple[list[TestStream], dict[str, str]]:
    """The test sets by the names that the table shows, and their checksums."""
    streams: list[TestStream] = []
    checksums: dict[str, str] = {}
    for path in paths:
        records, sha256 = _read(path, schema)
        name = TEST_SETS.get(sha256) or Path(path).name
        if sha256 in checksums.values():
            raise InputError(f"{path}: the same records twice, a table needs them once")
        if name in checksums:
            raise InputError(f"{path}: there is another test file of that name, and the table goes by names")
        # The printed numbers stand beside the first file, unless that is known to be another test set.
        printed = not streams and TEST_SETS.get(sha256, PUBLISHED_ON) == PUBLISHED_ON
        streams.append(TestStream(name, records, printed))
        checksums[name] = sha256
    return streams, checksums


def _check_plots(folder: Path | None) -> None:
    if folder is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("a picture", "matplotlib", "plot")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None


def _record_uses(results: Results, checksums: dict[str, str], draws: int) -> dict[str, Any]:
    """Record the use of every test set; return what the ledger holds then."""
    noted: dict[str, Any] = {}
    for name, sha256 in checksums.items():
        rows = sum(at[0] == name for at in results.entries)
        done = record_test_use(COMMAND, sha256, rows=rows, draws=draws)
        if done:
            output_note(f"a look at {name}: noted in {find_ledger()}")
        noted[name] = {"noted": done, "rows": rows, "draws": draws}
    ledger = find_ledger()
    runs, total = (0, 0) if ledger is None else count_test_uses(ledger)
    return {"tests": noted, "ledger": None if ledger is None else {"runs": runs, "rows": total}}


# What people read


def _print_rows(name: str, records: int, rows: list[Table41Row]) -> None:
    """Published and ours, by setting."""
    shown = ("accuracy", "detection_rate", "false_positive_rate")
    printed = any(row.published for row in rows)
    cells = []
    for row in rows:
        published = " / ".join(f"{100 * row.published[m]:.2f}" for m in shown) if row.published else ""
        ours = [_spread(row.mean[m], row.sd[m]) for m in (*shown, "unseen_detection_rate")]
        area = "-" if row.mean["auc"] is None else f"{row.mean['auc']:.4f}"
        runs = f"{row.draws}" if row.seeds == 1 else f"{row.seeds} x {row.draws}"
        cells.append([row.setting, row.name, *([published] if printed else []), *ours, area, runs])
    columns = ["setting", "method", *(["published: acc / det / FP"] if printed else [])]
    columns += ["accuracy", "detection", "false positives", "unseen types", "AUC", "runs"]
    output_table(f"{name}, {records:,} records: percent, mean ± standard deviation over runs", columns, cells)


def _spread(mean: float | None, sd: float | None) -> str:
    if mean is None:
        return "-"
    return f"{100 * mean:.2f}" if sd is None else f"{100 * mean:.2f} ± {100 * sd:.2f}"


def _print_paired(name: str, paired: list[Paired]) -> None:
    """What learning adds, and whether that can be told from chance."""
    cells = [
        [
            pair.against,
            pair.setting,
            _points(pair.accuracy),
            "-" if pair.auc is None else f"{pair.auc.difference:+.4f} ({pair.auc.low:+.4f} to {pair.auc.high:+.4f})",
            "-" if pair.detection_at_6 is None else _points(pair.detection_at_6),
            _in_words(pair.accuracy),
        ]
        for pair in paired
    ]
    columns = ["less", "setting", "accuracy, points (95 %)", "AUC (95 %)", "detection at 6 % (95 %)", "in accuracy"]
    output_table(f"{name}: netclust less other rules, the same draws", columns, cells)
    for pair in paired:
        if not pair.same_referents and pair.against == UNLEARNED:
            echo(f"{pair.setting}: the two had different referents, so the difference is not that of learning alone")


def _points(interval: ConfidenceInterval) -> str:
    return f"{100 * interval.difference:+.2f} ({100 * interval.low:+.2f} to {100 * interval.high:+.2f})"


def _in_words(interval: ConfidenceInterval) -> str:
    """Return an interval in words.

    >>> _in_words(ConfidenceInterval(0.01, 0.002, 0.02, True)), _in_words(ConfidenceInterval(0.01, -0.002, 0.02, False))
    ('learning helps', 'no difference shown')
    """
    if not interval.excludes_zero:
        return "no difference shown"
    return "learning helps" if interval.difference > 0 else "learning hurts"
