"""`netclust tune network`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import typer

from netclust._version import __version__
from netclust.errors import InputError
from netclust.foundation.container import write_container_bytes
from netclust.foundation.text import sanitize
from netclust.models.network.folds import SEED, Use
from netclust.models.network.params import TrainParams, load_params
from netclust.models.network.tuning import (
    OBJECTIVES,
    SEARCH_RATE,
    STARTS,
    Tuning,
    TuningTrial,
    params_toml,
    parse_budget,
    tune,
)
from netclust.models.test_set_ledger import TEST_SETS
from netclust.options.output import (
    check_folders,
    check_not_input,
    echo,
    output_note,
    output_result,
    output_table,
    percent,
    report_skipped,
    write_json,
)
from netclust.records.reader import OnError, RecordReader
from netclust.records.schema import load_schema
from netclust.records.table import concat_tables

INTERRUPTED = 130


def run_network_tuning(
    file: str,
    output: Path,
    budget: str,
    use: Use,
    learner: str | None,
    start: str | None,
    json: Path | None,
    schema: str,
    jobs: int,
    draws: int,
    fix: Sequence[str],
    on_error: OnError,
) -> None:
    """Read, search, write the parameters."""
    check_folders(output, json)
    check_not_input(file, output, json)
    seconds = parse_budget(budget)
    params = _start(learner, start)
    reader = RecordReader(file, load_schema(schema), on_error=on_error)
    records = concat_tables(list(reader))
    report_skipped(reader)
    if reader.sha256 in TEST_SETS:
        raise InputError(f"{file}: this is {TEST_SETS[reader.sha256]}, a test set: parameters are chosen without it")
    progress = _Progress(use)
    found = tune(
        records, params, use=use, budget=seconds, jobs=jobs, draws=draws, fixed=fix, on_trial=progress, where=file
    )
    ended = _ending(found, budget)
    header = _header(file, reader.sha256, len(records), found, use, budget, draws, ended)
    write_container_bytes(output, (header + params_toml(found.best.params)).encode())
    if str(json) != "-":
        _print(found, use, ended)
        echo(f"wrote {output}: netclust train network {sanitize(file)} --params {output} -o MODEL")
    body = _body(output, records_count=len(records), found=found, use=use, budget=seconds)
    body |= {"jobs": jobs, "draws": draws, "fixed": list(fix), "skipped": dict(reader.skipped)}
    write_json(json, output_result(["tune", "network"], body, seed=SEED, data={Path(file).name: reader.sha256}))
    if found.interrupted:
        output_note(f"netclust: interrupted: {output} holds the best so far")
        raise typer.Exit(INTERRUPTED)


def _start(learner: str | None, start: str | None) -> TrainParams:
    """The parameters to start from, with the learner that was asked for."""
    if start is None:
        return STARTS[learner or "margin"]
    params = load_params(start)
    if learner is None or learner == params.learner:
        return params
    raise InputError(f"--start {start} is for learner {params.learner}, not {learner}: leave out one of the two")


class _Progress:
    """One line a candidate."""

    def __init__(self, use: Use) -> None:
        self.objective, self.count = OBJECTIVES[use], 0

    def __call__(self, trial: TuningTrial) -> None:
        self.count += 1
        value = msgspec.to_builtins(getattr(trial.params, trial.step, ""))
        what = f"{trial.step} {'none' if value is None else value}" if trial.step != "start" else "start"
        if trial.error is not None:
            output_note(f"{self.count:4d}  {sanitize(what)}: cannot be measured: {sanitize(trial.error)}")
            return
        o, mean = self.objective, trial.mean
        last = o.decision if trial.step == "false_alarm_rate" else o.second
        shown = f"{_words(o.first)} {mean[o.first]:.4f}, {_words(last)} {percent(mean[last])}"
        kept = "kept" if trial.kept else "no"
        output_note(f"{self.count:4d}  {shown}, {trial.seconds:.1f} s  {kept:4s}  {sanitize(what)}")


def _words(name: str) -> str:
    """A measure for people.

    >>> _words("auc"), _words("detection_at_1"), _words("balanced_accuracy")
    ('AUC', 'detection at 1 %', 'balanced accuracy')
    """
    words = name.replace("auc", "AUC").replace("_", " ")
    return words + " %" if words[-1].isdigit() else words


def _ending(found: Tuning, budget: str) -> str:
    if found.interrupted:
        return "interrupted, the decision rule may not have been chosen"
    return f"the budget of {budget} was used up" if found.exhausted else "nothing left to improve"


def _header(file: str, sha256: str, records: int, found: Tuning, use: Use, budget: str, draws: int, ended: str) -> str:
    """Comments that say where the parameters come from."""
    measures = [
        ", ".join(f"{_words(name)} {trial.mean[name]:.4f}" for name in _shown(use))
        for trial in (found.searched, found.best)
    ]
    lines = [
        f"Chosen by netclust {__version__}: tune network, use {use}, learner {found.best.params.learner}",
        f"data: {sanitize(Path(file).name)}, {records} records, sha256 {sha256}",
        f"folds: {len(found.folds)} with hidden attack types, {draws} reference sets each, seed {SEED}",
        f"budget: {budget}, used {found.seconds:.0f} s for {len(found.trials)} candidates; {ended}",
        f"reached, mean over folds, at false-alarm rate {SEARCH_RATE} as in the search: {measures[0]}",
        f"and at the false-alarm rate below: {measures[1]}",
    ]
    return "".join(f"# {line}\n" for line in lines)


def _shown(use: Use) -> list[str]:
    names = ["auc", "detection_at_1", "detection_at_6", "overall_auc", "hidden_balanced_accuracy"]
    return names if use == "reference" else ["auc", "detection_at_1", "accuracy", "hidden_detection_rate"]


def _print(found: Tuning, use: Use, ended: str) -> None:
    columns = [trial.mean for trial in (found.trials[0], found.searched, found.best)]
    output_table(
        f"{len(found.trials)} candidates with {found.best.params.reference_size:,} referents in {found.seconds:.0f} s, "
        f"{found.passes} passes: {ended}",
        ["mean over folds", "start", "search", "with its false-alarm rate"],
        [[_words(name), *(f"{mean[name]:.4f}" for mean in columns)] for name in _shown(use)],
    )


def _body(output: Path, *, records_count: int, found: Tuning, use: Use, budget: float) -> dict[str, Any]:
    return {
        "output": str(output),
        "records": records_count,
        "use": use,
        "learner": found.best.params.learner,
        "budget": budget,
        "seconds": found.seconds,
        "passes": found.passes,
        "exhausted": found.exhausted,
        "interrupted": found.interrupted,
        "objective": msgspec.to_builtins(OBJECTIVES[use]),
        "start": msgspec.to_builtins(found.start),
        "params": msgspec.to_builtins(found.best.params),
        "mean": found.best.mean,
        "folds": [
            {
                "hidden_types": list(fold.types),
                "hidden_kinds": list(fold.kinds),
                "train": len(fold.train),
                "validation": len(fold.validation),
                "hidden": int(fold.hidden.sum()),
                "hidden_normal": int(fold.hidden_normal.sum()),
            }
            for fold in found.folds
        ],
        "candidates": [trial.to_json() for trial in found.trials],
    }
