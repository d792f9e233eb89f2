"""The tables of docs/detection.md, section "Real traffic", from a result of benchmarks/site.py.

`python benchmarks/site_markdown.py [NAME]` prints them (default: before).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from common import RESULTS

ORDER = (
    "netclust", "netclust, window", "isolation forest", "10th neighbour", "half-space trees", "ECOD", "KitNet",
    "rule: begun outside", "rule: failed connections",
)  # fmt: skip


def main() -> None:
    body = json.loads((RESULTS / f"site-{sys.argv[1] if len(sys.argv) > 1 else 'before'}.json").read_text())
    for split, scorers in body["summary"].items():
        table(split, HEADER, [row(name, scorers[name]) for name in _ordered(scorers)])
    for model in ("flow", "conn"):
        scorers = body[f"captures_{model}"]["scorers"]
        rows = [
            row(name, {**scorers[name]["mean"], "obtained_worst": scorers[name]["obtained_worst_capture"]})
            for name in _ordered(scorers)
        ]
        table(f"P, model {model}", HEADER[:-1], [cells[:-1] for cells in rows])
    asked = body["questions"]
    rows = [
        [
            q["split"],
            q["name"],
            *(percent(q["scorers"][n]["obtained"][r]) for n in NAMED for r in ("0.001", "0.01", "0.05")),
        ]
        for q in asked
    ]
    table(
        "False alarms obtained",
        ["split", "host", *(f"{n}, {r} asked" for n in NAMED for r in ("0.1 %", "1 %", "5 %"))],
        rows,
    )
    poisoned = body["poisoning"]
    names = _ordered(poisoned[0]["scorers"])
    table(
        "poison", ["poison", "site", "share", *names],
        [[q["split"], q["name"], percent(q["share_of_attacks_learned"]), *(auc(q["scorers"][n]["auc"]) for n in names)]
         for q in poisoned],
    )  # fmt: skip
    table("alerts", ["site", "warm-up", "attacks", "benign", "alerts", "benign only", "first alert"], [
        [a["site"], f"{a['warmup_records']:,}", percent(a["attacks_in_alert"]), percent(a["benign_in_alert"]),
         f"{a['alerts_per_day']:.1f}", f"{a['benign_only_alerts_per_day']:.1f}",
         "-" if a["seconds_to_first_alert"] is None else f"{a['seconds_to_first_alert']:.0f} s"]
        for a in body["alerts"]
    ])  # fmt: skip
    kinds: dict[str, list[str]] = {}
    for q in asked:
        if q["split"].startswith("I"):
            for kind, m in q["scorers"]["netclust, window"]["kinds"].items():
                other = q["scorers"]["isolation forest"]["kinds"][kind]
                kinds.setdefault(f"{kind} ({m['records']})", []).append(f"{auc(m['auc'])} / {auc(other['auc'])}")
    table("kinds", ["malware", *(f"{q['split']}, {q['name']}" for q in asked if q["split"].startswith("I"))],
          [[kind, *cells] for kind, cells in kinds.items()])  # fmt: skip


NAMED = ("netclust, window", "isolation forest")
HEADER = [
    "detector", "AUC (worst)", "average precision", "found at 0.1 %", "1 % (worst)", "5 %",
    "false alarms for 1 % asked (worst)",
    "answered attacks, AUC",
]  # fmt: skip


def row(name: str, m: dict[str, Any]) -> list[str]:
    at, worst = m["detection_at"], m["detection_at_worst"]
    return [
        name, f"{auc(m['auc'])} ({auc(m['auc_worst'])})", auc(m["average_precision"]), percent(at["0.001"]),
        f"{percent(at['0.01'])} ({percent(worst['0.01'])})", percent(at["0.05"]),
        f"{percent(m['obtained']['0.01'])} ({percent(m['obtained_worst']['0.01'])})", auc(m.get("answered_auc")),
    ]  # fmt: skip


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def auc(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ordered(scorers: dict[str, Any]) -> list[str]:
    return [name for name in ORDER if name in scorers]


if __name__ == "__main__":
    main()
