"""`netclust reproduce wikiqa`: ranking answers, beside the published table."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from netclust.models.experiments.paired_tests import PairedComparison
from netclust.models.experiments.ranking.wikiqa import (
    MODELS,
    Model,
    WikiqaData,
    WikiqaRow,
    WikiqaRun,
    run_wikiqa_model,
    wikiqa_comparisons,
    wikiqa_rows,
)
from netclust.models.test_set_ledger import find_ledger, record_test_use
from netclust.options.output import check_folders, echo, output_note, output_result, output_table, progress, write_json

COMMAND = ["reproduce", "wikiqa"]
ALWAYS_EQUAL: tuple[Model, ...] = ("feature",)  # no seed changes them


def run_ranking_reproduction(folder: Path, seeds: int, epochs: int, jobs: int, json: Path | None) -> None:
    """Train every model with every seed, then show the table and the tests."""
    check_folders(json)
    data = WikiqaData.read(folder)
    tasks: list[tuple[Model, int]] = [
        (model, seed) for seed in range(seeds) for model in MODELS if seed == 0 or model not in ALWAYS_EQUAL
    ]
    runs: list[WikiqaRun] = []
    with progress("training") as tick, ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_one, folder, model, seed, epochs) for model, seed in tasks]
        for done, one in enumerate(as_completed(waiting), 1):
            runs.append(one.result())
            tick(done, len(tasks))
    runs.sort(key=lambda one: (list(MODELS).index(one.model), one.seed))
    test = next(checksum for name, checksum in data.sha256.items() if name.startswith("WikiQA-test"))
    if record_test_use(" ".join(COMMAND), test, rows=len(MODELS), draws=seeds):  # before anything is shown
        output_note(f"a look at WikiQA's test questions: noted in {find_ledger()}")
    rows, tested = wikiqa_rows(runs), wikiqa_comparisons(runs)
    if str(json) != "-":
        _print(rows, tested)
    body = {"rows": rows, "comparisons": tested, "epochs": epochs, "features": data.names}
    write_json(json, output_result(COMMAND, body, seed=0, data=data.sha256))


def _one(folder: Path, model: Model, seed: int, epochs: int) -> WikiqaRun:
    return run_wikiqa_model(WikiqaData.read(folder), model, seed, epochs)


def _print(rows: list[WikiqaRow], tested: dict[str, PairedComparison]) -> None:
    columns = ["model", "questions", "MAP", "sd", "MRR", "P@1", "published", "MAP, mixed only", "chosen (first seed)"]
    for part in ("dev", "test"):
        shown = [
            [
                row.name,
                row.questions,
                f"{row.mean[0]:.2f}",
                "-" if row.sd is None else f"{row.sd[0]:.2f}",
                f"{row.mean[1]:.2f}",
                f"{row.mean[2]:.2f}",
                "-" if row.published is None else " / ".join(f"{value:.2f}" for value in row.published),
                f"{row.mixed[0]:.2f} ({row.mixed_questions})",
                row.chosen[0],
            ]
            for row in rows
            if row.part == part
        ]
        output_table(f"WikiQA, {part}", columns, shown)
    echo("published: MAP / MRR / P@1; with a tree kernel and explicit semantic analysis among the features")
    echo()
    lines = [
        [name, c.n, f"{c.difference:+.2f}", f"{c.interval.low:+.2f} to {c.interval.high:+.2f}", f"{c.t.p:.4f}"]
        for name, c in tested.items()
    ]
    output_table("Test MAP, by question", ["models", "n", "difference", "95 %", "p"], lines)
