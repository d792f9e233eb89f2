"""What an anomalous record costs in the alert book: floods are all anomalous, so this must not be the bottleneck.

    .venv/bin/python benchmarks/alert_book.py [--save]

Beside it, as a peer that does nothing but count: records by (source, destination) in a plain dict.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from common import best_of, save
from numpy.typing import NDArray

from netclust.linking.verdicts import KNOWN_ATTACK
from netclust.stream.alerts.alert_book import AlertBook, AnomalousRows
from netclust.stream.alerts.suppression import SuppressionSet, suppression_of
from netclust.stream.config import AlertConfig, SuppressConfig

RECORDS = 100_000
BATCH = 8192
SECONDS = 60


def addresses(numbers: NDArray[np.int64]) -> NDArray[np.object_]:
    return np.array([f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in numbers.tolist()], object)


def traffic(name: str) -> AnomalousRows:
    """RECORDS anomalous records of a minute."""
    random, one = np.random.default_rng(1), np.ones(RECORDS, np.int64)
    spread = random.integers(0, 1 << 22, RECORDS)
    source, destination, port = one, 2 * one, 80 * one
    if name == "scan of ports":
        port = np.arange(RECORDS) % 65_536
    elif name == "scan of hosts":
        destination = np.arange(RECORDS)
    elif name == "spoofed flood":
        source = spread
    elif name == "many to many":
        source, destination = spread % 4096, random.integers(0, 4096, RECORDS)
    return AnomalousRows(
        source_id=np.zeros(RECORDS, np.uint16),
        seq=np.arange(RECORDS).astype(np.uint64),
        time=np.linspace(1, SECONDS, RECORDS).astype(np.int64) * 10**9,
        cluster=3 * one,
        kind=np.full(RECORDS, KNOWN_ATTACK, np.uint8),
        label=["attack"] * RECORDS,
        score=random.random(RECORDS).astype(np.float32),
        source=addresses(source),
        destination=addresses(destination),
        destination_port=port.astype(object),
        protocol=np.full(RECORDS, "tcp", object),
        service=np.full(RECORDS, "http", object),
    )


def batches(rows: AnomalousRows) -> Iterator[AnomalousRows]:
    columns = {name: value for name, value in vars(rows).items() if isinstance(value, np.ndarray | list)}
    for start in range(0, RECORDS, BATCH):
        yield AnomalousRows(**{name: value[start : start + BATCH] for name, value in columns.items()})


def thousand_rules() -> SuppressionSet:
    """None of which matches."""
    return SuppressionSet(
        suppression_of(SuppressConfig(reason="elsewhere", source=f"192.168.{i // 4}.{64 * (i % 4)}/26"))
        for i in range(1000)
    )


def run(parts: list[AnomalousRows], rules: SuppressionSet | None = None) -> int:
    book = AlertBook(AlertConfig(), source_names=["wire"])
    if rules is not None:
        book.suppressions = rules
    return sum(len(book.take(part)) for part in parts) + len(book.close_all())


def count_pairs(parts: list[AnomalousRows]) -> int:
    """The peer."""
    counts: dict[tuple[str, str], int] = {}
    for part in parts:
        if part.source is None or part.destination is None:
            raise ValueError("addresses are wanted")
        for key in zip(part.source.tolist(), part.destination.tolist(), strict=True):
            counts[key] = counts.get(key, 0) + 1
    return len(counts)


def main() -> None:
    result = {}
    rules = thousand_rules()
    for name in ("flood", "scan of ports", "scan of hosts", "spoofed flood", "many to many"):
        parts = list(batches(traffic(name)))
        result[name] = {
            "events": run(parts),
            "ns_per_record": _ns(best_of(lambda parts=parts: run(parts))),
            "ns_per_record_1000_rules": _ns(best_of(lambda parts=parts: run(parts, rules), 3)),
            "ns_per_record_dict_count": _ns(best_of(lambda parts=parts: count_pairs(parts))),
        }
        print(name, result[name], flush=True)
    if "--save" in sys.argv:
        save("alert_book", {"records": RECORDS, "batch": BATCH, "traffic": result})


def _ns(seconds: float) -> int:
    return round(seconds / RECORDS * 1e9)


if __name__ == "__main__":
    main()
