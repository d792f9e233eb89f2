"""`netclust evaluate capture`: attacks in captures, false alarms on ordinary traffic, beside three rivals."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from netclust.errors import InputError
from netclust.models.experiments.captures.capture_detectors import RIVALS
from netclust.models.experiments.captures.capture_table import OURS, CapturePlan, CaptureResult, compare_on_captures
from netclust.models.network.params import load_params
from netclust.models.test_set_ledger import TEST_SETS, find_ledger, record_test_use
from netclust.options.output import check_folders, echo, output_note, output_result, output_table, percent, write_json
from netclust.records.schema import load_schema
from netclust.stream.packets.capture_files import list_captures
from netclust.stream.packets.capture_labels import load_labels

RIVAL_CHOICES = {"all": tuple(RIVALS), "fast": ("isolation forest",), "none": ()}
PRESET = "capture"


def run_capture_evaluation(
    captures: list[str],
    labels: Path,
    schemas: Sequence[str],
    params: str | None,
    rate: float,
    hours: float,
    draws: int,
    seeds: int,
    every: int,
    peers: str,
    seed: int,
    picture: Path | None,
    json: Path | None,
) -> None:
    """Simulate, train, mix, judge, compare; for one schema or for both."""
    check_folders(json, picture)
    rules = load_labels(labels)
    paths = [Path(path) for path in _with_folders(captures)]
    data = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    found: dict[str, Any] = {}
    for schema in schemas:
        chosen = load_params(params or PRESET, load_schema(schema))
        plan = CapturePlan(
            schema=schema, params=chosen, rate=rate, hours=hours, draws=draws, rivals=RIVAL_CHOICES[peers],
            rival_seeds=seeds, every=every, seed=seed,
        )  # fmt: skip
        outcome = compare_on_captures(plan, paths, rules, on_step=lambda step, s=schema: output_note(f"{s}: {step}"))  # type: ignore[misc]
        looked = next((sha for sha in data.values() if sha in TEST_SETS), "")
        if record_test_use(f"evaluate capture, schema {schema}", looked, rows=1 + len(plan.rivals), draws=draws):
            output_note(f"a look at the public captures: noted in {find_ledger()}")
        if str(json) != "-":
            _print(outcome)
        if picture is not None and outcome.rows:
            from netclust.models.experiments.captures.capture_plots import plot_captures

            named = picture if len(schemas) == 1 else picture.with_stem(f"{picture.stem}-{schema}")
            plot_captures(outcome.rows, named)
            output_note(f"wrote {named}")
        found[schema] = {
            "params": msgspec.to_builtins(plan.params),
            "rows": outcome.rows,
            "detectors": outcome.detectors,
            "ordinary": outcome.ordinary,
            "score": {rival: outcome.score(rival) for rival in plan.rivals},
        }
    body = {
        "false_alarm_rate": rate, "hours": hours, "draws": draws, "rival_seeds": seeds, "every": every,
        "schemas": found,
    }  # fmt: skip
    write_json(json, output_result(["evaluate", "capture"], body, seed=seed, data=data))


def _with_folders(captures: list[str]) -> list[str | Path]:
    """Captures, and those of folders and of the folders in them."""
    expanded: list[str | Path] = []
    for given in captures:
        inner = sorted(p for p in Path(given).iterdir() if p.is_dir()) if Path(given).is_dir() else []
        expanded += inner or [given]
    if "-" in expanded:
        raise InputError("captures are read more than once here, so standard input will not do: give files")
    return list_captures(expanded)


def _print(outcome: CaptureResult) -> None:
    plan = outcome.plan
    names = [OURS, *plan.rivals]
    rows = []
    for row in outcome.rows:
        few = row["flows"] < 20
        cells: list[Any] = [row["capture"], row["kind"], row["flows"]]
        for name in names:
            detection = row["detection"][name]
            shown = ("found" if row["found"][name] else "missed") if few else percent(detection["mean"])
            mark = "" if name == OURS else {"win": " +", "loss": " -", "tie": ""}[row["against"][name]["outcome"]]
            cells.append(shown + mark)
        wait = row["seconds_to_first_alert"][OURS]
        rows.append([*cells, "-" if wait is None else f"{wait:.1f} s"])
    title = f"Schema {plan.schema}: attack connections found, thresholds at {percent(plan.rate)} of a simulated day"
    output_table(title, ["capture", "attack", "flows", *names, "first alert"], rows)
    rows = []
    for name in names:
        d = outcome.detectors[name]
        low, high = d["benign_interval"]
        share = d["benign_flagged"] / d["benign_flows"] if d["benign_flows"] else 0.0
        rows.append(
            [
                name,
                f"{percent(d['false_alarm_rate']['mean'])} of {d['false_alarms_counted_on']:,}",
                f"{d['benign_flagged']:.1f} of {d['benign_flows']} = {percent(share)} ({percent(low)}-{percent(high)})",
                f"{d['auc_against_benign']['mean']:.3f}",
            ]
        )
    columns = ["detector", f"simulated, {plan.hours:g} hours", "real ordinary captures", "attacks against those, AUC"]
    output_table("False alarms", columns, rows)
    rows = [[o["capture"], o["flows"], *(f"{o['flagged'][name]:.1f}" for name in names)] for o in outcome.ordinary]
    output_table("Real ordinary captures: connections flagged", ["capture", "flows", *names], rows)
    for rival in plan.rivals:
        score = outcome.score(rival)
        echo(f"against {rival}: {score['win']} wins, {score['tie']} ties, {score['loss']} losses")
    echo()
