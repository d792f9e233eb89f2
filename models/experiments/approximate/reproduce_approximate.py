"""`netclust reproduce approximate-inference`: what inexact searches do to multi-label models, beside the print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from netclust.errors import InputError
from netclust.foundation.optional import require_optional
from netclust.models.experiments.approximate.approximate_findings import Finding, findings
from netclust.models.experiments.approximate.approximate_inference import Lab, LabSettings, ModelRun, run_lab
from netclust.models.experiments.approximate.approximate_plots import write_pictures
from netclust.models.experiments.approximate.approximate_published import (
    BASELINE,
    DEFAULT,
    OPEN,
    published_loss,
    published_source,
)
from netclust.models.experiments.approximate.inference_quality import (
    DRAWS,
    Counts,
    Quality,
    Timing,
    measure_inference_quality,
    summarise,
    time_searches,
)
from netclust.models.experiments.approximate.label_corpora import CORPORA, MADE, LabelCorpus, made_corpora, read_corpora
from netclust.models.test_set_ledger import find_ledger, record_test_use
from netclust.options.output import check_folders, echo, output_note, output_result, output_table, progress, write_json

COMMAND = ["reproduce", "approximate-inference"]
SIZES = (5, 10, 14, 20, 30, 40, 60, 80)
QUALITY_LABELS = 10


def run_approximate_reproduction(
    folder: Path | None,
    only: Sequence[str],
    folds: int,
    max_iterations: int,
    networks: int,
    seed: int,
    jobs: int,
    json: Path | None,
    plots: Path | None,
) -> None:
    """Train and measure everything, then show the tables and what they say about the published findings."""
    check_folders(json)
    if plots is not None:
        require_optional("matplotlib", "drawing pictures", "plot")
        if not plots.is_dir():
            raise InputError(f"{plots}: there is no such folder for pictures")
    corpora = _corpora(folder, only, seed)
    settings = LabSettings(folds=folds, max_iterations=max_iterations, seed=seed)
    timings = time_searches(SIZES, seed=seed)  # first: nothing else runs then
    draws = DRAWS if networks else ()
    counts: dict[str, Counts] = {
        draw: measure_inference_quality(networks, QUALITY_LABELS, draw, seed) for draw in draws
    }
    solved = [row for draw in draws for row in summarise(counts[draw], draw)]
    with progress("models") as tick:
        lab = run_lab(corpora, settings, jobs=jobs, on_progress=tick)
    for corpus in corpora:  # before anything is shown
        rows = sum(len(one.predicted) for (name, _), one in lab.runs.items() if name == corpus.name)
        if corpus.test_sha256 and record_test_use(" ".join(COMMAND), corpus.test_sha256, rows=rows, draws=1):
            output_note(f"a look at {corpus.name}'s test rows: noted in {find_ledger()}")
    told = findings(lab)
    if str(json) != "-":
        _print(lab, told, timings, solved)
    if plots is not None:
        for path in write_pictures(lab, timings, counts, plots):
            output_note(f"wrote {path}")
    body = {
        "rows": [*lab.rows(), *lab.rho_rows()],
        "findings": told,
        "quality": solved,
        "timings": timings,
        "models": [_chosen(one) for one in lab.runs.values()],
        "settings": msgspec.to_builtins(settings),
    }
    checksums = {name: checksum for corpus in corpora for name, checksum in corpus.sha256.items()}
    write_json(json, output_result(COMMAND, body, seed=seed, data=checksums))


def _corpora(folder: Path | None, only: Sequence[str], seed: int) -> list[LabelCorpus]:
    unknown = [name for name in only if name not in (*MADE, *CORPORA)]
    if unknown:
        raise InputError(f"--only {unknown[0]}: the data sets are {', '.join((*MADE, *CORPORA))}")
    wanted = list(only) or [*MADE, *CORPORA]
    public = [name for name in wanted if name in CORPORA]
    if folder is None and only and public:
        raise InputError(f"--only {public[0]}: give the folder of multi-label data, which has it")
    found = [] if folder is None or not public else read_corpora(folder, public)
    return [*found, *made_corpora(seed, names=[name for name in wanted if name in MADE])]


def _chosen(run: ModelRun) -> dict[str, Any]:
    return {
        "set": run.corpus,
        "trained": run.trained,
        "C": run.C,
        "fold_losses": run.folds,
        "train_loss": run.train,
        "iterations": run.iterations,
        "capped": run.capped,
        "seconds": run.seconds,
        "lp_gap": run.lp_gap,
    }


def _print(lab: Lab, found: Sequence[Finding], timings: Sequence[Timing], solved: Sequence[Quality]) -> None:
    for name in lab.names:
        _print_grid(lab, name)
    echo("± is the standard error over test rows. *: the limit of iterations ended the training.")
    echo()
    _print_open(lab)
    _print_rho(lab)
    sizes = sorted({one.labels for one in timings})
    seconds = {(one.name, one.labels): one.seconds for one in timings}
    searches = list(dict.fromkeys(one.name for one in timings))
    shown = [[search, *(_micro(seconds.get((search, size))) for size in sizes)] for search in searches]
    output_table("Microseconds a random network, by labels", ["search", *map(str, sizes)], shown)
    lines = [[row.setting, row.name, f"{row.mean:.1f} %", f"{row.better:.2f}", row.worst] for row in solved]
    columns = ["networks", "search", "solved to the best", "labellings that are better, mean", "most"]
    if lines:
        output_table(f"Random networks of {QUALITY_LABELS} labels", columns, lines)
    for one in found:
        echo(f"{one.number}. {one.statement}: {one.verdict.upper()}")
        echo(f"   rule: {one.rule}")
        for name, why in one.because.items():
            echo(f"   {name}: {'holds' if one.holds[name] else 'does not hold'} ({why})")


def _print_grid(lab: Lab, name: str) -> None:
    columns = lab.trained(name)
    lines = []
    for trained in columns:
        run = lab.runs[name, trained]
        cells = [
            _beside(run.predicted[by].mean, run.predicted[by].error, published_loss(name, trained, by))
            for by in columns
        ]
        lines.append([trained, *cells, f"{run.C:g}{'*' if run.capped else ''}"])
    for model, printed in (("edgeless", BASELINE), ("edgeless+1", BASELINE), ("default", DEFAULT)):
        if (name, model) not in lab.runs:
            continue
        run = lab.runs[name, model]
        found = run.predicted["exact"]
        cell = _beside(found.mean, found.error, printed.get(published_source(name)))
        lines.append([model, cell, *([""] * (len(columns) - 1)), "" if run.C is None else f"{run.C:g}"])
    output_table(
        f"{name}: test loss in percent (published), by trained with and predicted by", ["", *columns, "C"], lines
    )


def _print_open(lab: Lab) -> None:
    lines = []
    for trained in OPEN:
        cells = []
        for name in lab.names:
            run = lab.runs.get((name, trained))
            if run is None:
                cells.append("-")
                continue
            published = OPEN[trained].get(published_source(name))
            cells.append(
                f"{100 * run.predicted['cut'].open:.2f}" + ("" if published is None else f" ({published:.2f})")
            )
        lines.append([trained, *cells])
    output_table("Labels left open by relaxed prediction, in percent (published)", ["trained with", *lab.names], lines)


def _print_rho(lab: Lab) -> None:
    rows = lab.rho_rows()
    names = list(dict.fromkeys(row.setting for row in rows))
    lines = []
    for rho in dict.fromkeys(row.name for row in rows):
        cells = []
        for name in names:
            row = next(row for row in rows if (row.name, row.setting) == (rho, name))
            published = "" if row.published is None else f" ({row.published_train:.2f} / {row.published:.2f})"
            cells.append(f"{row.train:.2f} / {row.mean:.2f}{published}")
        lines.append([rho, *cells])
    if lines:
        output_table("Known rho: training / test loss in percent (published)", ["", *names], lines)


def _beside(mean: float, error: float, published: float | None) -> str:
    return f"{mean:.2f} ± {error:.2f}" + ("" if published is None else f" ({published:.2f})")


def _micro(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e6 * seconds:.3g}"
