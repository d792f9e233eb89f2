"""`netclust train network` and `netclust evaluate network`."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from netclust.errors import InputError
from netclust.linking.linker import Feedback
from netclust.linking.linking_protocols import Protocol, linker_config, stream_facts
from netclust.linking.verdicts import VERDICTS
from netclust.models.network.evaluation import Evaluation, evaluate_network
from netclust.models.network.params import PRESETS, TrainParams, load_params
from netclust.models.network.stream_perceptron import EpochReport
from netclust.models.network.train_network import taken_for_normal, train_network
from netclust.models.test_set_ledger import TEST_SETS, find_ledger, record_test_use
from netclust.options.output import (
    check_folders,
    check_not_input,
    check_outputs,
    data_of,
    echo,
    output_note,
    output_result,
    output_table,
    percent,
    progress,
    report_skipped,
    write_json,
)
from netclust.records.reader import OnError, load_reader_kernels
from netclust.records.relabelling import LabelOptions
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.scoring.model import Model
from netclust.stream.alerts.cluster_alerts import alerts_of
from netclust.stream.sources.record_files import open_records


def run_network_training(
    file: str,
    output: Path,
    params: str | None,
    seed: int,
    schema: str | None,
    false_alarm_rate: float | None,
    assume_normal: bool,
    labels: LabelOptions,
    on_error: OnError,
    json: Path | None,
) -> None:
    """Read, learn, write the model."""
    check_folders(output, json)
    check_outputs(output, json)
    for given in (file, *([] if labels.file is None else [str(labels.file)])):
        check_not_input(given, output, json)
    reader = open_records(
        file, load_schema(schema) if schema else None, on_error=on_error, context=False, labels=labels.file,
        label_column=labels.column, normal=labels.normal, leave_out=labels.leave_out,
    )  # fmt: skip
    chosen = TrainParams() if params is None else load_params(params, reader.schema)
    if false_alarm_rate is not None:
        chosen = msgspec.structs.replace(chosen, false_alarm_rate=false_alarm_rate)
        chosen.__post_init__()
    records = concat_tables(list(reader))
    report_skipped(reader)
    if assume_normal:
        records = taken_for_normal(records)
        if chosen.false_alarm_rate is None:
            raise InputError("without labels nothing but the root can raise an alarm: give a --false-alarm-rate")
        if chosen.learner != "unlearned":  # there is nothing to tell apart
            chosen = msgspec.structs.replace(chosen, learner="unlearned", loss="edge", scale="spread")
    if false_alarm_rate is None and params in PRESETS:
        chosen = _rate_that_can_be(chosen, records)
    start = time.perf_counter()
    epochs: list[EpochReport] = []
    with progress("training") as tick:
        model = train_network(
            records,
            chosen,
            seed=seed,
            data=Path(file).name,
            sha256=reader.sha256,
            on_progress=tick,
            on_epoch=epochs.append,
        )
    seconds = time.perf_counter() - start
    model.save(output)
    to_stdout = str(json) == "-"
    if not to_stdout:
        title = f"Trained on {len(records):,} records in {seconds:.1f} s"
        if chosen.learner == "unlearned" or (chosen.learner == "margin" and not model.provenance.epochs):
            echo(f"{title}: nothing was learned, the weights are the unlearned rule's")
        elif chosen.learner == "margin":
            shown = [[e["step"], f"{e['loss']:.4f}"] for e in model.provenance.epochs]
            output_table(title, ["step", "mean loss"], shown)
        else:
            output_table(
                title,
                ["epoch", "updates", "loss", "root links", "no correct arc"],
                [[e.epoch, e.updates, int(e.loss), e.root_links, e.no_correct_arc] for e in epochs],
            )
        if learned := model.provenance.params.get("learned_loss"):
            _print_prices(learned)
        if model.calibration is not None:
            c = model.calibration
            known = "" if assume_normal else f", {percent(c.alarms)} with those that link to a known attack"
            echo(
                f"root {c.root:.4f}: false alarms {percent(c.obtained)} of {c.records:,} held-out normal records{known}"
            )
        if constant := constant_attributes(model):
            echo(f"not scored, because constant in training: {', '.join(constant)}")
        echo(f"wrote {output} ({output.stat().st_size:,} bytes, {len(model.reference)} referents, seed {seed})")
    body = {
        "model": str(output),
        "records": len(records),
        "seconds": seconds,
        "epochs": [asdict(e) for e in epochs] or model.provenance.epochs,
        "params": msgspec.to_builtins(chosen),
        "learned_loss": model.provenance.params.get("learned_loss"),
        "calibration": msgspec.to_builtins(model.calibration),
        "skipped": dict(reader.skipped),
    }
    write_json(json, output_result(["train", "network"], body, seed=seed, data={Path(file).name: reader.sha256}))


def _print_prices(learned: dict[str, Any]) -> None:
    """Print the costs of wrong links under a learned loss, and how well they predict the measure."""
    rows = [[kind.replace("_", " "), f"{price:.2f}"] for kind, price in learned["prices"].items()]
    output_table("Prices of wrong links, learned from the measure", ["link", "price"], rows)
    echo(
        f"they tell the measure of {learned['blocks']:,} blocks of records with a mean squared error of "
        f"{learned['mse']:.2f} and a squared correlation of {learned['scc']:.3f}"
    )


def _rate_that_can_be(params: TrainParams, records: Table) -> TrainParams:
    """A preset's false-alarm rate, or the lowest one that so few normal records can be held out for."""
    normal = [i for i, name in enumerate(records.labels) if name in records.schema.normal]
    held_out = int(0.8 * params.holdout * np.isin(records.label, normal).sum())  # which ones is drawn: some less
    if params.false_alarm_rate is None or held_out < 1 or params.false_alarm_rate >= 1 / (held_out + 1):
        return params
    lowest = 1 / (held_out + 1)
    asked = f"a false-alarm rate of {params.false_alarm_rate:g}"
    output_note(f"{asked} needs more normal records than there are: {lowest:.2g} instead")
    return msgspec.structs.replace(params, false_alarm_rate=lowest)


def constant_attributes(model: Model) -> list[str]:
    """Numeric attributes that nothing can be learned about: they did not vary."""
    without = model.provenance.params.get("without", ())
    return [a.name for a in model.encoding.schema.numeric if a.name not in {*model.encoding.kept, *without}]


def run_network_evaluation(
    model_path: Path,
    test: str,
    protocol: Protocol,
    feedback: Feedback,
    delay: int,
    window: int,
    partial: bool,
    mature: float | None,
    json: Path | None,
    alerts: int,
    labels: LabelOptions,
    on_error: OnError,
) -> None:
    """Link the test records and print the metrics."""
    check_folders(json)
    check_not_input(test, json)
    model = Model.load(model_path)
    reader = open_records(
        test, model.encoding.schema, on_error=on_error, context=False, labels=labels.file,
        label_column=labels.column, normal=labels.normal, leave_out=labels.leave_out,
    )  # fmt: skip
    load_reader_kernels(reader.schema)  # before the clock starts
    config = linker_config(protocol, feedback, delay, window, mature, whole=not partial)
    evaluation = evaluate_network(model, reader, config, where=test)
    if record_test_use("evaluate network", reader.sha256, rows=1, draws=1):
        output_note(f"a look at {TEST_SETS[reader.sha256]}: noted in {find_ledger()}")
    report_skipped(reader)
    metrics = evaluation.metrics()
    if str(json) != "-":
        window_used = evaluation.linker.config.referent_window
        referents = f"{len(model.reference):,} references, referent window {window_used:,}"
        _print_evaluation(evaluation, metrics, f"{protocol} protocol, feedback {feedback}, {referents}")
        if alerts:
            _print_alerts(evaluation, alerts)
    found = alerts_of(evaluation.linker.clusters())[:alerts]
    body = metrics | {"alerts": [msgspec.to_builtins(alert) for alert in found]}
    body |= stream_facts(model, protocol, feedback, delay, window, partial, mature, reader)
    data = data_of(model, test, reader)
    write_json(json, output_result(["evaluate", "network"], body, seed=model.provenance.seed, data=data))


def _print_evaluation(evaluation: Evaluation, metrics: dict[str, Any], how: str) -> None:
    """Print metrics, the confusion by class of traffic, and the rate."""
    shown = ["accuracy", "precision", "detection_rate", "false_positive_rate", "f1", "unseen_detection_rate"]
    rows = [[name.replace("_", " "), percent(metrics[name])] for name in shown]
    rows += [[name.replace("_", " "), _decimal(metrics[name])] for name in ("auc", "average_precision")]
    rows += [[f"detection at {r} false positives", percent(d)] for r, d in metrics["detection_at_fpr"].items()]
    output_table(f"{metrics['records']:,} records, {how}", ["metric", "value"], rows)
    category = evaluation.linker.model.encoding.schema.category_of
    trained = set(evaluation.linker.model.encoding.labels)
    groups = np.array(
        [
            name if not bad else category.get(name, "attack") + ("" if name in trained else ", unseen type")
            for name, bad in zip(evaluation.label_names, evaluation.truth, strict=True)
        ],
        object,
    )
    counts = Counter(zip(groups.tolist(), evaluation.verdicts.verdict.tolist(), strict=True))
    names = sorted(set(groups.tolist()), key=lambda name: (name not in trained, name))
    output_table(
        "Truth (rows) and verdicts",
        ["", *(v.replace("_", " ") for v in VERDICTS)],
        [[name, *(counts[name, v] for v in range(len(VERDICTS)))] for name in names],
    )
    echo(f"{metrics['records_per_second']:,.0f} records a second, from file to verdict")


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _print_alerts(evaluation: Evaluation, most: int) -> None:
    """Print the largest alerts with their true classes, which are known here."""
    found = alerts_of(evaluation.linker.clusters())
    rows = []
    for alert in found[:most]:
        inside = (evaluation.verdicts.cluster == alert.cluster) & evaluation.verdicts.anomalous
        truth, n = Counter(evaluation.label_names[inside].tolist()).most_common(1)[0]
        span = f"{alert.first_tick:,} - {alert.last_tick:,}"
        rows.append(
            [
                alert.cluster,
                alert.kind,
                alert.records,
                span,
                f"{alert.top_score:.2f}",
                f"{truth} {n / inside.sum():.0%}",
            ]
        )
    left = f" (of {len(found):,})" if len(found) > most else ""
    echo()
    output_table(
        f"Alerts{left}: one a cluster, largest first",
        ["cluster", "taken for", "records", "first - last record", "top score", "truth, mostly"],
        rows,
    )
