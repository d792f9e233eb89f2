"""The detector at real sites, beside its rivals: days of PCs on the Internet, moved malware, benign captures.

`python benchmarks/site.py [NAME]` writes `results/site-NAME.json` (default: before). The isolation forest
is run with five seeds, half-space trees and KitNet, which are slow, with one; these two are left out on captures and
where attacks are in the warm-up. Benign captures are left out a fifth at a time.
The files are those of the shared data sets (NETCLUST_DATA), and are not part of the repository.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from common import ROOT, data_folder, save

from netclust.models.network.site.run_site import print_result, record_site_look, site_result
from netclust.models.network.site.site_rivals import FAST_RIVALS

INSIDE = ROOT / "benchmarks" / "inside-malware.csv"
CAPTURES = ROOT / "benchmarks" / "pcap-labels.csv"
DAYS = ("008", "010")
DRAWS = 5
SLOW = ("half-space trees", "KitNet")
FOLDS = 5


def main() -> None:
    folder = data_folder()
    name = sys.argv[1] if len(sys.argv) > 1 else "before"
    if folder is None or not (folder / "real").is_dir():
        raise SystemExit("skipped: real traffic not found, set NETCLUST_DATA to the folder of the data sets")
    days = [str(folder / "real" / "zeek-days" / f"{day}.conn.log.labeled") for day in DAYS]
    files = sorted({line.partition(",")[0] for line in INSIDE.read_text().splitlines()[1:]})
    malware = [str(folder / "pcap" / file) for file in files]
    body = site_result(days, malware, ["host", "time"], labels=INSIDE, rivals=FAST_RIVALS, draws=DRAWS)
    slow = site_result(days, malware, ["host", "time"], labels=INSIDE, rivals=SLOW, poison=False, alerts=False)
    for rival in SLOW:
        for question, same in zip(body["questions"], slow["questions"], strict=True):
            question["scorers"][rival] = same["scorers"][rival]
        for split, scorers in slow["summary"].items():
            body["summary"][split][rival] = scorers[rival]
    ordinary = [folder / "real" / "ndpi-benign", folder / "pcap" / "benign"]
    attacks = [folder / "pcap" / "attack", folder / "pcap" / "mixed"]
    for model in ("flow", "conn"):
        found = site_result(
            [str(path) for path in ordinary], [str(path) for path in attacks], ["capture"], model=model,
            labels=CAPTURES, rivals=FAST_RIVALS, folds=FOLDS,
        )  # fmt: skip
        print_result(found)
        for measures in found["captures"]["scorers"].values():
            del measures["benign_captures"]
        body[f"captures_{model}"] = found["captures"]
    print_result(body)
    seen = [*map(Path, days), *(path for part in (*ordinary, *attacks) for path in part.iterdir())]
    checksums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in seen if path.is_file()]
    record_site_look(f"benchmarks/site.py {name}", checksums, rows=len(body["detectors"]), draws=DRAWS)
    body["detectors"] = sorted({*body["detectors"], *slow["detectors"]})
    save(f"site-{name}", rounded(body))


def rounded(value: Any) -> Any:
    """Five decimals are enough, and keep the file small."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
