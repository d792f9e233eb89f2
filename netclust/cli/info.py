"""`netclust info`: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from netclust.foundation.container import container_kind
from netclust.models.network.params import TrainParams
from netclust.models.network.run_network import constant_attributes
from netclust.options.output import echo, output_result, output_table, percent, write_json
from netclust.scoring.model import Model

CLUSTERING = "netclust.clustering"
COREFERENCE = "netclust.coreference"
RANKING = "netclust.ranking"
STRUCTURED = "netclust.structured"
"""The kinds of files that other tasks have: their modules are heavy, so they are loaded when there is one."""


def run_info(path: Path, json: Path | None, top: int) -> None:
    """Print facts, classes and the strongest weights."""
    if container_kind(path) == CLUSTERING:
        from netclust.models.clustering.run_clustering import describe_cluster_model

        describe_cluster_model(path, json, top)
        return
    if container_kind(path) == COREFERENCE:
        from netclust.models.coreference.run_coreference import describe_coreference_model as describe_coreference

        describe_coreference(path, json)
        return
    if container_kind(path) == RANKING:
        from netclust.models.ranking.run_ranking import describe_rank_model as describe_ranking

        describe_ranking(path, json, top)
        return
    if container_kind(path) == STRUCTURED:
        import netclust.structured_models  # noqa: F401 (makes every task known)
        from netclust.models.run_structured import describe_structured_model as describe_structured

        describe_structured(path, json, top)
        return
    model = Model.load(path)
    encoding, origin = model.encoding, model.provenance
    classes = np.bincount(model.reference.label, minlength=len(encoding.labels))
    strongest = _strongest_weights(model)[:top]
    body: dict[str, Any] = {
        "schema": encoding.schema.name,
        "numeric": list(encoding.kept),
        "coded": {a.name: len(v) for a, v in zip(encoding.schema.coded, encoding.vocabularies, strict=True)},
        "dimension": model.layout.dimension,
        "weights": model.weights,
        "sign": model.sign,
        "root": model.root,
        "far": None if model.far is None else dict(zip(encoding.kept, model.far.tolist(), strict=True)),
        "reference": {name: int(n) for name, n in zip(encoding.labels, classes, strict=True)},
        "calibration": msgspec.to_builtins(model.calibration),
        "provenance": msgspec.to_builtins(origin),
        "fingerprint": model.fingerprint,
        "bytes": path.stat().st_size,
    }
    if str(json) != "-":
        calibrated = "learned"
        if model.calibration is not None:
            c = model.calibration
            calibrated = (
                f"{c.root:.4f}, set for {percent(c.false_alarm_rate)} false alarms, {percent(c.obtained)} obtained on "
                f"{c.records:,} records, {percent(c.alarms)} with links to known attacks"
            )
        facts = [
            ["schema", encoding.schema.name],
            [
                "attributes",
                f"{len(encoding.kept)} numeric, {len(encoding.widths)} coded, {model.layout.dimension} weights",
            ],
            ["trained on", f"{origin.data or '?'} ({origin.records:,} records, seed {origin.seed})"],
            ["sha256 of that", origin.sha256 or "?"],
            ["made", f"{origin.created} by netclust {origin.netclust}"],
            ["parameters", _parameters(origin.params)],
            ["not scored, constant", ", ".join(constant_attributes(model)) or "-"],
            ["root", calibrated],
            ["fingerprint", model.fingerprint[:16]],
        ]
        output_table(str(path), ["", ""], facts)
        output_table("Reference set", ["class", "referents"], [[n, k] for n, k in body["reference"].items()])
        if top:
            output_table("Strongest weights", ["attribute", "weight"], [[n, f"{w:+.3f}"] for n, w in strongest])
        echo(f"{path.stat().st_size:,} bytes")
    write_json(json, output_result(["info"], body, seed=origin.seed, data={origin.data: origin.sha256}))


def _parameters(params: dict[str, Any]) -> str:
    """What differs from the defaults."""
    usual = msgspec.json.decode(msgspec.json.encode(TrainParams()))
    named = ["learner", *sorted(name for name in params if name != "learner" and params[name] != usual.get(name))]
    return ", ".join(f"{name} {params[name]}" for name in named if name in params) or "?"


def _strongest_weights(model: Model) -> list[tuple[str, float]]:
    """Return weights by name, the largest first; per value: both have it, one has it, neither has it."""
    w = model.w
    named = [(name, float(w[f])) for f, name in enumerate(model.encoding.kept)]
    for s, attribute in enumerate(model.encoding.schema.coded):
        for v, value in enumerate(model.encoding.vocabularies[s]):
            at = int(model.layout.at[s]) + 3 * v
            for k, what in enumerate(("both", "one", "neither")):
                named.append((f"{attribute.name}={value} ({what})", float(w[at + k])))
    named += [(f"root {k}", float(x)) for k, x in enumerate(w[len(w) - model.layout.roots :])]
    return sorted(named, key=lambda pair: -abs(pair[1]))
