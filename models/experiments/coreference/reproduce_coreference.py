"""`netclust reproduce coreference`: the published experiments on LitBank's ten splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from netclust.errors import InputError
from netclust.models.coreference.features import void_templates
from netclust.models.experiments.coreference.coreference_report import Claim, CoreferenceRow, report_claims, report_rows
from netclust.models.experiments.coreference.coreference_trials import Trials
from netclust.models.experiments.coreference.litbank import read_split, split_files
from netclust.models.experiments.coreference.litbank_experiments import (
    FEATURES,
    MODELS,
    SIZED,
    SIZES,
    SplitData,
    measure_regression,
    run_litbank_split,
    tune_litbank,
)
from netclust.models.test_set_ledger import find_ledger, record_test_use
from netclust.options.output import (
    check_folders,
    check_outputs,
    checksum_of,
    echo,
    output_note,
    output_result,
    output_table,
    progress,
    write_json,
)

COMMAND = ["reproduce", "coreference"]


def run_coreference_reproduction(
    litbank: Path, state: Path, splits: int, sized: int, jobs: int, plots: Path | None, json: Path | None
) -> None:
    """Choose on split 0's development documents, then train on every split; print the table and the tests."""
    check_folders(state, json)
    check_outputs(state, json)
    if plots is not None and not plots.is_dir():
        raise InputError(f"{plots}: no such folder")
    for number in range(splits):
        split_files(litbank, number, "test")  # what is not there is told now, not after hours
    void = void_templates(read_split(litbank, 0).train)
    checksum = checksum_of(str(litbank / "conll"))
    trials = Trials(state)
    if str(json) != "-":
        echo(f"features: 2^{FEATURES.bits} slots, {FEATURES.distance} mentions back; void templates: {', '.join(void)}")
    _in_parallel(_tune, [(litbank, state, (model,)) for model in MODELS], jobs, "tuning")
    tasks = [(litbank, state, number, number < sized) for number in range(splits)]
    _in_parallel(_split, tasks, jobs, "splits")
    trials.reload()
    if record_test_use(
        " ".join(COMMAND), checksum, rows=len(report_rows(trials)), draws=splits
    ):  # before anything is shown
        output_note(f"a look at LitBank: noted in {find_ledger()}")
    regression = measure_regression(SplitData(litbank, 0))
    found, tested = report_rows(trials), report_claims(list(trials))
    if str(json) != "-":
        _print(found, tested)
        for one in regression:
            outputs = f"{one.train} to {one.test}, {one.examples:,} outputs"
            echo(f"learned loss, {outputs}: MSE {one.mse:.2f}, SCC {one.scc:.4f}")
    if plots is not None:
        from netclust.models.experiments.coreference.coreference_plots import write_curves, write_sizes

        write_curves(list(trials), plots / "coreference-curves.svg")
        write_sizes(found, plots / "coreference-sizes.svg")
    body = {
        "rows": found,
        "claims": tested,
        "regression": regression,
        "features": FEATURES,
        "void": void,
        "trials": list(trials),
    }
    write_json(json, output_result(COMMAND, body, seed=0, data={"litbank/conll": checksum}))


def _tune(litbank: Path, state: Path, models: Sequence[str]) -> None:
    trials = Trials(state)
    tune_litbank(SplitData(litbank, 0), trials, models)


def _split(litbank: Path, state: Path, number: int, sized: bool) -> None:
    trials = Trials(state)
    data = SplitData(litbank, number)
    run_litbank_split(data, trials, tuple(MODELS))
    if sized:
        run_litbank_split(data, trials, SIZED, [size for size in SIZES if size is not None])


def _in_parallel(function: Callable[..., None], tasks: Sequence[tuple[object, ...]], jobs: int, what: str) -> None:
    """Tasks in processes (one: in this one); what is done is in the state file, so that nothing comes back."""
    if jobs == 1:
        with progress(what) as tick:
            for done, task in enumerate(tasks, 1):
                function(*task)
                tick(done, len(tasks))
        return
    with progress(what) as tick, ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(function, *task) for task in tasks]
        for done, one in enumerate(as_completed(waiting), 1):
            one.result()
            tick(done, len(tasks))


def _print(found: Sequence[CoreferenceRow], tested: Sequence[Claim]) -> None:
    columns = ["model", "features", "splits", "MELA", "sd", "MUC", "B3", "CEAF_e", "dev", "epochs", "s", "published"]
    shown = []
    for row in found:
        parts = [f"{row.parts[name]:.2f}" for name in ("muc", "b3", "ceafe")]
        epochs = f"{min(row.epochs)}-{max(row.epochs)}" if row.epochs else "-"
        shown.append(
            [
                row.name,
                "all" if row.features is None else f"{row.features:,}",
                row.draws,
                f"{row.mean:.2f}",
                "-" if row.sd is None else f"{row.sd:.2f}",
                *parts,
                "-" if row.dev is None else f"{row.dev:.2f}",
                epochs,
                f"{row.seconds:.0f}",
                "-" if row.published is None else f"{row.published:.2f}",
            ]
        )
    output_table("LitBank, gold mentions, test documents", columns, shown)
    echo("published: CoNLL-2012 English, detected mentions; only the order can be compared")
    echo()
    lines = []
    for claim in tested:
        c = claim.comparison
        size = "all" if claim.features is None else f"{claim.features:,}"
        what = f"{claim.a} less {claim.b}"
        lines.append([claim.claim, what, size, c.n, f"{c.difference:+.2f}", f"{c.t.p:.4f}", claim.verdict])
    output_table("The published order, tested over splits", ["claim", "", "features", "n", "MELA", "p", ""], lines)
