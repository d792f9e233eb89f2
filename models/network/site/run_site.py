"""`netclust evaluate site`: how a detector does at real sites, beside its rivals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from netclust.errors import InputError
from netclust.models.network.site.site_captures import judge_captures, thinned
from netclust.models.network.site.site_evaluation import ExtraScorers, SitePlan, evaluate_sites, make_scorers
from netclust.models.network.site.site_records import (
    LEFT_OUT_LABELS,
    NORMAL_LABELS,
    Site,
    capture_table,
    load_connections,
    site_of,
)
from netclust.models.network.site.site_rivals import FAST_RIVALS, SITE_RIVALS
from netclust.models.network.site.site_splits import load_malware
from netclust.models.test_set_ledger import TEST_SETS, find_ledger, record_test_use
from netclust.options.output import check_folders, echo, output_note, output_result, output_table, percent, write_json
from netclust.records.table import Table
from netclust.scoring.model import Model
from netclust.shipped.loading import load_shipped, shipped_models
from netclust.stream.packets.capture_files import list_captures
from netclust.stream.packets.capture_labels import LabelRules, load_labels

__all__ = ["evaluate", "print_result", "record_site_look", "site_result"]

RIVAL_CHOICES = {"all": tuple(SITE_RIVALS), "fast": FAST_RIVALS, "none": ()}
MOST_ATTACKS = 500
MOST_BENIGN = 300


def evaluate(
    benign: Sequence[str],
    attacks: Sequence[str],
    splits: Sequence[str],
    model: str,
    labels: Path | None,
    label_column: str,
    peers: str,
    folds: int,
    poison: bool,
    alerts: bool,
    draws: int,
    seed: int,
    json: Path | None,
) -> None:
    """Read the files, ask every question, print the tables."""
    check_folders(json)
    data = {str(path): hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in _files([*benign, *attacks])}
    body = site_result(
        benign, attacks, splits, model=model, labels=labels, label_column=label_column, rivals=RIVAL_CHOICES[peers],
        folds=folds, poison=poison, alerts=alerts, draws=draws, seed=seed,
    )  # fmt: skip
    what = f"evaluate site, splits {' '.join(splits)}"
    for name in record_site_look(what, data.values(), rows=len(body["detectors"]), draws=draws):
        output_note(f"a look at {name}: noted in {find_ledger()}")
    if str(json) != "-":
        print_result(body)
    write_json(
        json, output_result(["evaluate", "site"], body, seed=seed, data={Path(p).name: s for p, s in data.items()})
    )


def record_site_look(what: str, checksums: Iterable[str], rows: int, draws: int) -> list[str]:
    """Count a use of each test set that these files belong to; return the names of the sets."""
    looked = {TEST_SETS[sha]: sha for sha in checksums if sha in TEST_SETS}
    return [name for name, sha in looked.items() if record_test_use(what, sha, rows=rows, draws=draws)]


def site_result(
    benign: Sequence[str],
    attacks: Sequence[str],
    splits: Sequence[str],
    *,
    model: str = "",
    labels: Path | None = None,
    label_column: str = "label",
    rivals: tuple[str, ...] = (),
    folds: int = 5,
    poison: bool = True,
    alerts: bool = True,
    draws: int = 1,
    seed: int = 0,
    extra: ExtraScorers = tuple,
) -> dict[str, Any]:
    """Return what `netclust evaluate site` writes as JSON; `extra` makes detectors that are judged in the same run."""
    rules = None if labels is None else load_labels(labels)
    body: dict[str, Any] = {"splits": list(splits)}
    detectors: set[str] = set()
    if logs := tuple(split for split in splits if split != "capture"):
        plan = SitePlan(
            model=_load(model or "conn"),
            splits=logs,
            rivals=rivals,
            poison=poison,
            alerts=alerts,
            draws=draws,
            seed=seed,
            extra=extra,
        )
        sites = load_sites(benign, label_column, rules, plan.model.encoding.schema.name)
        malware = [each for path in _files(attacks) for each in load_malware(path, rules, label_column)]
        body["sites"] = [_facts(site) for site in sites]
        body["malware"] = [
            {"capture": m.name, "kind": m.kind, "inside": m.inside, "connections": len(m.conns)} for m in malware
        ]
        body |= evaluate_sites(sites, malware, plan, output_note)
        detectors |= {name for each in body["questions"] for name in each["scorers"]}
    if "capture" in splits:
        plan = SitePlan(model=_load(model or "flow"), rivals=rivals, seed=seed, extra=extra)
        schema = plan.model.encoding.schema.name
        ordinary = {Path(p).name: thinned(capture_table(p, schema), MOST_BENIGN) for p in _readable(benign, schema)}
        found = {Path(p).name: thinned(_attacks_of(p, schema, rules), MOST_ATTACKS) for p in _files(attacks)}
        found = {name: records for name, records in found.items() if len(records)}
        body["captures"] = {
            "schema": schema,
            "benign_captures": len(ordinary),
            "benign_records": sum(map(len, ordinary.values())),
            "folds": min(folds, len(ordinary)),
            "scorers": judge_captures(
                ordinary, found, lambda: make_scorers(plan, frozenset(), window=False)[:-2], folds, output_note
            ),
        }
        detectors |= set(body["captures"]["scorers"])
    body["detectors"] = sorted(detectors)
    return body


def load_sites(paths: Sequence[str], label_column: str, rules: LabelRules | None, schema: str) -> list[Site]:
    """Return a site for each file: its name is the file's without endings."""
    sites = []
    for path in _files(paths):
        conns = load_connections(path, label_column, rules)
        sites.append(site_of(Path(path).name.partition(".")[0], conns, schema))
    return sites


def print_result(body: dict[str, Any]) -> None:
    """Print a table for each split, for poisoning, and for alerts."""
    for split, scorers in body.get("summary", {}).items():
        rows = [_row(name, found) for name, found in scorers.items() if found]
        hosts = sum(each["split"] == split for each in body["questions"])
        output_table(f"{split}: mean over {hosts} and the worst", _COLUMNS, rows)
    if "captures" in body:
        rows = [
            _row(name, {**found["mean"], "obtained_worst": found["obtained_worst_capture"]})
            for name, found in body["captures"]["scorers"].items()
        ]
        output_table("P: attack captures against benign captures, mean per capture and the worst", _COLUMNS, rows)
    if body.get("poisoning"):
        asked = body["poisoning"]
        names = list(asked[0]["scorers"])
        rows = [
            [q["split"], q["name"], percent(q["share_of_attacks_learned"]), *(_auc(q["scorers"][n]) for n in names)]
            for q in asked
        ]
        output_table("AUC with attacks in the warm-up", ["poison", "site", "share", *names], rows)
    if body.get("alerts"):
        rows = [
            [
                a["site"], a["warmup_records"], percent(a["attacks_in_alert"]), percent(a["benign_in_alert"]),
                f"{a['alerts_per_day']:.1f}", f"{a['benign_only_alerts_per_day']:.1f}",
                "-" if a["seconds_to_first_alert"] is None else f"{a['seconds_to_first_alert']:.0f} s",
            ]
            for a in body["alerts"]
        ]  # fmt: skip
        columns = ["site", "warm-up", "attacks in an alert", "benign in an alert", "alerts per day", "benign only",
                   "first alert"]  # fmt: skip
        output_table("Alerts with the settings of watch", columns, rows)
    if "summary" in body:
        echo("The label of attacks from outside nearly equals direction: read every figure beside `begun outside`.")


_COLUMNS = [
    "detector", "AUC", "worst", "average precision", "found at 0.1 %", "1 %", "5 %", "obtained for 1 %", "worst ",
    "answered, AUC",
]  # fmt: skip


def _row(name: str, m: dict[str, Any]) -> list[str]:
    at = m["detection_at"]
    return [
        name, _decimal(m.get("auc")), _decimal(m.get("auc_worst")), _decimal(m.get("average_precision")),
        *(percent(at.get(rate)) for rate in ("0.001", "0.01", "0.05")), percent(m["obtained"].get("0.01")),
        percent(m["obtained_worst"].get("0.01")), _decimal(m.get("answered_auc")),
    ]  # fmt: skip


def _auc(measures: dict[str, Any]) -> str:
    return "refused" if "refused" in measures else _decimal(measures["auc"])


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _load(model: str) -> Model:
    return load_shipped(model) if model in shipped_models() else Model.load(Path(model))


def _facts(site: Site) -> dict[str, Any]:
    return {
        "name": site.name,
        "host": site.host,
        "records": len(site),
        "benign": int(site.benign.sum()),
        "attacks": int(site.attack.sum()),
        "answered_attacks": int((site.attack & site.answered).sum()),
        "left_out": int((~site.judged).sum()),
        "days": round(site.days, 3),
    }


def _files(given: Sequence[str]) -> list[str]:
    """Files, and those in folders."""
    found: list[str] = []
    for each in given:
        if each == "-":
            raise InputError("files are read more than once here, so standard input will not do: give files")
        found += [str(path) for path in list_captures([each])] if Path(each).is_dir() else [each]
    for path in found:
        if not Path(path).is_file():
            raise InputError(f"{path}: no such file")
    return found


def _readable(given: Sequence[str], schema: str) -> list[str]:
    """Captures with at least one connection."""
    found = []
    for path in _files(given):
        try:
            capture_table(path, schema)
        except InputError as error:
            output_note(f"passed over: {error}")
        else:
            found.append(path)
    return found


def _attacks_of(path: str, schema: str, rules: LabelRules | None) -> Table:
    """The attacks of a capture; all of its connections where no label file was given."""
    records = capture_table(path, schema, rules)
    if rules is None:
        return records
    names = records.label_names()
    ordinary = {"", *NORMAL_LABELS, *LEFT_OUT_LABELS}
    return records[np.array([str(name).lower() not in ordinary for name in names], np.bool_)]
