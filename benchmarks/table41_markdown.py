"""The tables of docs/detection.md, from benchmarks/results/table-4.1.json: `python benchmarks/table41_markdown.py`."""

from __future__ import annotations

import json
from typing import Any

from common import RESULTS

HEAD = (
    "| setting | method | published: accuracy / detection / false alarms | accuracy | detection | false alarms | AUC | "
    "detection at 0.1 % false alarms | at 1 % | at 6 % | unseen types found |"
)
SHOWN = ("accuracy", "detection_rate", "false_positive_rate")


def percent(mean: float | None, sd: float | None = None) -> str:
    if mean is None:
        return "-"
    return f"{100 * mean:.2f}" if sd is None else f"{100 * mean:.2f} ± {100 * sd:.2f}"


def row(found: dict[str, Any]) -> str:
    mean, sd, printed = found["mean"], found["sd"], found["published"]
    published = " / ".join(f"{100 * printed[name]:.2f}" for name in SHOWN) if printed else ""
    at = mean["detection_at_fpr"]
    cells = [found["setting"], found["name"], published, *(percent(mean[name], sd[name]) for name in SHOWN)]
    cells += [f"{mean['auc']:.4f}", *(f"{100 * at[rate]:.1f}" for rate in ("0.001", "0.01", "0.06"))]
    return "| " + " | ".join([*cells, percent(mean["unseen_detection_rate"])]) + " |"


def interval(found: dict[str, float] | None, scale: float, digits: int) -> str:
    if found is None:
        return "-"
    d, low, high = (f"{scale * found[name]:+.{digits}f}" for name in ("difference", "low", "high"))
    return f"{d} ({low} to {high})"


def words(found: dict[str, Any]) -> str:
    if not found["excludes_zero"]:
        return "no difference shown"
    return "netclust is above" if found["difference"] > 0 else "netclust is below"


def main() -> None:
    table = json.loads((RESULTS / "table-4.1.json").read_text())
    for test, records in table["tests"].items():
        print(f"\n### netclust less other rules, {test}\n")
        print(
            "| less | setting | accuracy, points (95 %) | AUC (95 %) | detection at 6 %, points (95 %) | in accuracy |"
        )
        print("|---|---|---|---|---|---|")
        for pair in (pair for pair in table["paired"] if pair["test"] == test):
            cells = [interval(pair["accuracy"], 100, 2), interval(pair["auc"], 1, 4)]
            cells += [interval(pair["detection_at_6"], 100, 2), words(pair["accuracy"])]
            print(f"| {pair['against']} | {pair['setting']} | " + " | ".join(cells) + " |")
        print(f"\n### {test} ({records:,} records)\n\n{HEAD}\n|" + "---|" * 11)
        for found in table["rows"]:
            if found["test"] == test:
                print(row(found))


if __name__ == "__main__":
    main()
