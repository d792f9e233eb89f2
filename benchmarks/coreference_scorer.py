"""Seconds to score LitBank's documents by every metric, beside plain Python on sets in the same run.

Three responses a document: singletons, one entity, and the key with a fifth of its mentions moved, a tenth missed and a
tenth put at other words. The plain recomputation is the twin of the tests: definitions on sets, every pair of BLANC one
by one, CEAF by scipy on the full matrix of entities. It is slow, so it gets every tenth document; times quicker are on
these. Both sides start from the same sets, and their sums are compared. `mela` is without BLANC and LEA, whose pairs
cost most on sets. Also: MELA of labels, as it is called in training, on a document of 500 mentions in 200 true and 250
found entities. Scores are not kept: test documents are among these, and only the time is of interest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from common import ROOT, best_of, data_folder, save, timed

from netclust.models.coreference.coreference_metrics import document_counts, mela_of_labels
from netclust.models.coreference.formats.reading import read_documents

sys.path.insert(0, str(ROOT / "tests" / "helpers"))  # the definitions on sets
from coreference_twins import b3, both_ways, ceaf, muc, plain_counts

Clusters = list[frozenset[Any]]
EVERY = 10


def singletons(key: Clusters, _: np.random.Generator) -> Clusters:
    return [frozenset([mention]) for cluster in key for mention in cluster]


def one_entity(key: Clusters, _: np.random.Generator) -> Clusters:
    return [frozenset().union(*key)]


def perturbed(key: Clusters, random: np.random.Generator) -> Clusters:
    found: list[set[Any]] = [set() for _ in key]
    for number, cluster in enumerate(key):
        for mention in sorted(cluster):
            draw = random.random()
            if draw < 0.1:
                continue
            there = int(random.integers(len(key))) if draw < 0.3 else number
            found[there].add((*mention, "elsewhere") if draw > 0.9 else mention)
    return [frozenset(cluster) for cluster in found if cluster]


RESPONSES: dict[str, Callable[[Clusters, np.random.Generator], Clusters]] = {
    "singletons": singletons,
    "one_entity": one_entity,
    "perturbed": perturbed,
}


def same(ours: Any, plain: Any) -> bool:
    return bool(np.allclose(np.ravel(ours), np.ravel(plain), rtol=1e-9, atol=1e-9))


def plain_mela(key: Clusters, response: Clusters) -> None:
    both_ways(muc, key, response), both_ways(b3, key, response), ceaf(key, response, False)


def compare(key: list[Clusters], response: list[Clusters]) -> dict[str, Any]:
    pairs = list(zip(key, response, strict=True))
    few, plain = pairs[::EVERY], []
    slow = timed(lambda: plain.extend(plain_counts(k, r) for k, r in few))
    for (k, r), sums in zip(few, plain, strict=True):
        if not all(same(counts, sums[name]) for name, counts in document_counts(k, r).items()):
            raise SystemExit("the sums differ from the definitions")
    quick = best_of(lambda: [document_counts(k, r) for k, r in few])
    slow_mela = best_of(lambda: [plain_mela(k, r) for k, r in few], times=2)
    quick_mela = best_of(lambda: [document_counts(k, r, ["mela"]) for k, r in few])
    seconds = best_of(lambda: [document_counts(k, r) for k, r in pairs])
    return {
        "seconds": round(seconds, 4),
        "milliseconds_a_document": round(1000 * seconds / len(pairs), 3),
        "times_quicker_than_plain": {"all": round(slow / quick, 1), "mela": round(slow_mela / quick_mela, 1)},
        "plain_milliseconds_a_document": {
            "all": round(1000 * slow / len(few), 1),
            "mela": round(1000 * slow_mela / len(few), 1),
        },
    }


def labels_of_a_document() -> dict[str, Any]:
    random = np.random.default_rng(0)
    y, other = random.integers(0, 200, 500), random.integers(0, 250, 500)
    near = np.where(random.random(500) < 0.8, y, other)
    return {
        name: round(1e6 * best_of(lambda z=z: [mela_of_labels(y, z) for _ in range(20)]) / 20, 1)  # type: ignore[misc]
        for name, z in (("a_fifth_moved", near), ("at_random", other))
    }


def main() -> None:
    folder = data_folder()
    if folder is None or not (folder / "coref" / "litbank").is_dir():
        raise SystemExit("skipped: LitBank not found, set NETCLUST_DATA to the folder of the data sets")
    documents = read_documents(folder / "coref" / "litbank" / "conll")
    key = [list(document.clusters()) for document in documents]
    random = np.random.default_rng(0)
    body: dict[str, Any] = {
        "documents": len(key),
        "documents_in_plain_python": len(key[::EVERY]),
        "mentions": sum(len(cluster) for clusters in key for cluster in clusters),
        "entities": sum(map(len, key)),
        "largest_document": max(sum(map(len, clusters)) for clusters in key),
    }
    for name, make in RESPONSES.items():
        body[name] = compare(key, [make(clusters, random) for clusters in key])
    body["microseconds_mela_of_500_labels"] = labels_of_a_document()
    save("coreference-scorer", body)


if __name__ == "__main__":
    main()
