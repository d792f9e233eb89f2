"""`netclust reproduce correlation`, `irrelevant-features` and `clustering-scaling`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netclust.datasets.simulators.synthetic_sets import coreference_like, news_like, stars
from netclust.errors import InputError
from netclust.models.experiments.clustering.clustering_corpora import Citations, Generated, Newsgroups
from netclust.models.experiments.clustering.clustering_plots import write_curve, write_scaling
from netclust.models.experiments.clustering.clustering_scaling import EPSILON, C, Point, run_scaling, slope
from netclust.models.experiments.clustering.correlation_table import (
    PCC,
    SVM,
    SVM_SLACK,
    CorrelationTable,
    SplitCorpus,
    run_correlation_table,
)
from netclust.models.experiments.clustering.irrelevant_features import DIMENSIONS, run_curve
from netclust.models.test_set_ledger import find_ledger, record_test_use
from netclust.options.output import (
    check_folders,
    check_not_input,
    checksum_of,
    echo,
    output_note,
    output_result,
    output_table,
    progress,
    write_json,
)

COMMAND = "reproduce correlation"


def run_correlation_reproduction(
    cora: Path | None, newsgroups: Path | None, splits: int, generated: bool, jobs: int, json: Path | None
) -> None:
    """Run every split and print the 2 x 2 of each corpus with the paired tests."""
    check_folders(json)
    for path in (cora, newsgroups):
        if path is not None and not path.is_file():
            raise InputError(f"{path}: No such file")
        if path is not None:
            check_not_input(str(path), json)
    if not (generated or cora or newsgroups):
        raise InputError("nothing to run on: give --cora or --newsgroups, or leave out --no-generated")
    corpora, data = [], {}
    if generated:
        quick = (SVM, SVM_SLACK, PCC)  # local search takes long on sets of 150 items
        corpora += [
            SplitCorpus("chains", Generated(coreference_like), quick),
            SplitCorpus("stars", Generated(stars)),
            SplitCorpus("news-like", Generated(news_like), quick),
        ]
    if cora is not None:
        data[cora.name] = checksum_of(str(cora))
        corpora.append(SplitCorpus("cora", Citations(str(cora))))
    if newsgroups is not None:
        data[newsgroups.name] = checksum_of(str(newsgroups))
        corpora.append(SplitCorpus("20-newsgroups", Newsgroups(str(newsgroups))))
    with progress("splits") as tick:
        found = run_correlation_table(corpora, splits, jobs=jobs, on_progress=tick)
    rows = found.rows()
    for name, checksum in data.items():  # before anything is shown
        if record_test_use(COMMAND, checksum, rows=len(rows), draws=splits):
            output_note(f"a look at {name}: noted in {find_ledger()}")
    if str(json) != "-":
        _print_table(found, [corpus.name for corpus in corpora])
    body = {
        "rows": rows,
        "comparisons": [
            {"corpus": corpus, "what": what, "tested_under": tested, "comparison": comparison}
            for corpus, what, tested, comparison in found.comparisons()
        ],
        "splits": [
            {
                "corpus": s.corpus,
                "seed": s.seed,
                "C": {f"{m}, {loss}": c for (m, loss), c in s.chosen.items()},
                "converged": {f"{m}, {loss}": c for (m, loss), c in s.converged.items()},
                "sizes": s.sizes,
            }
            for s in found.splits
        ],
    }
    write_json(json, output_result(COMMAND.split(), body, seed=0, data=data))


def _print_table(found: CorrelationTable, corpora: Sequence[str]) -> None:
    for corpus in corpora:
        rows = [
            [
                row.name,
                row.trained_for,
                row.tested_under,
                "" if row.published is None else f"{row.published:.2f}",
                f"{row.mean:.2f}" + ("" if row.sd is None else f" ± {row.sd:.2f}"),
                row.draws,
            ]
            for row in found.rows()
            if row.corpus == corpus
        ]
        columns = ["method", "trained for", "tested under", "published (MUC-6)", "loss, percent", "splits"]
        output_table(f"{corpus}: mean ± standard deviation over splits", columns, rows)
        paired = [
            [
                what,
                tested,
                f"{c.difference:+.2f} ({c.interval.low:+.2f} to {c.interval.high:+.2f})",
                f"{c.t.p:.3g}",
                f"{c.ranks.p:.3g}",
            ]
            for where, what, tested, c in found.comparisons()
            if where == corpus
        ]
        if paired:
            columns = ["difference", "tested under", "points (95 %)", "paired t, p", "Wilcoxon, p"]
            output_table(f"{corpus}: paired over splits, below 0 is better", columns, paired)


def run_clustering_curve(oracle: str, runs: int, most: int, plot: Path | None, json: Path | None) -> None:
    """Draw the curve of edge accuracy against irrelevant dimensions."""
    check_folders(json, plot)
    dimensions = [D for D in DIMENSIONS if most >= D]
    with progress("runs") as tick:
        rows = run_curve(oracle, dimensions=dimensions, runs=runs, on_progress=tick)
    if str(json) != "-":
        names = list(dict.fromkeys(row.name for row in rows))
        by = {(row.name, row.setting): row for row in rows}
        cells = [
            [f"{D}", *(f"{by[n, f'D = {D}'].mean:.3f} ± {by[n, f'D = {D}'].sd or 0:.3f}" for n in names)]
            for D in dimensions
        ]
        title = f"Edge accuracy by irrelevant dimensions, {runs} runs (published: learned flat, k-means falls to 0.5)"
        output_table(title, ["D", *names], cells)
    if plot is not None:
        write_curve(rows, plot)
        output_note(f"wrote {plot}")
    write_json(json, output_result(["reproduce", "irrelevant-features"], {"rows": rows}, seed=0, data={}))


def run_clustering_scaling(plot: Path | None, json: Path | None) -> None:
    """Measure how time grows, and print the fitted slopes."""
    check_folders(json, plot)
    with progress("measurements") as tick:
        points = run_scaling(on_progress=tick)
    series = {name: [p for p in points if p.series == name] for name in dict.fromkeys(p.series for p in points)}
    slopes = {name: slope(found) for name, found in series.items() if len(found) > 1}
    if str(json) != "-":
        _print_scaling(series, slopes)
    if plot is not None:
        write_scaling(series, slopes, plot)
        output_note(f"wrote {plot}")
    body = {"points": points, "slopes": slopes, "C": C, "epsilon": EPSILON}
    write_json(json, output_result(["reproduce", "clustering-scaling"], body, seed=0, data={}))


def _print_scaling(series: dict[str, list[Point]], slopes: dict[str, float]) -> None:
    rows: list[list[Any]] = []
    for name, found in series.items():
        for point in found:
            gap = "" if point.gap is None else f"{point.gap / C:.3g}"
            done = ["" if point.iterations is None else str(point.iterations), gap]
            objective = "" if point.objective is None else f"{point.objective:.6g}"
            rows.append([name, point.size, f"{point.seconds:.4f}", *done, objective])
    output_table("Time by size", ["what", "size", "seconds", "iterations", "gap / C", "objective"], rows)
    published = {"training, by sets": "linear", "training, by items": "polynomial"}
    cells = [[name, published.get(name, ""), f"{exponent:.2f}"] for name, exponent in slopes.items()]
    output_table("Fitted exponents", ["what", "published", "seconds ~ size^p"], cells)
    iterations = [point.iterations for point in series["training, by sets"]]
    echo(f"iterations from the fewest to the most sets: {', '.join(map(str, iterations))} (the bound does not grow)")
    spread = np.ptp([point.objective for name, (point, *_) in series.items() if name.startswith("objective")])
    echo(f"objectives of the oracles lie within {spread:.3g}: searches below exact, relaxations above")
