"""Learning antecedents on documents of LitBank's size: scoring, an epoch of LSP and LSPA, planes, feature choice.

80 made documents of 290 mentions, at most 75 candidates each, 60 features a pair in 2^20 slots, and ten in 2^24. Peers
in the same run: scipy's CSR times a vector for scoring, and the same learner without sparse differences for an epoch.

    python benchmarks/antecedent_learning.py [--documents N] [--planes N]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import best_of, save, timed

from netclust.learners.latent import LatentSvm
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp, Lspa
from netclust.models.coreference.antecedent_problem import AntecedentProblem
from netclust.models.coreference.pair_classifier import SparsePairClassifier, strongest_slots
from netclust.problems.forest_problem import ForestProblem
from netclust.structures.hashed_pairs import HashedPairs

MENTIONS, CANDIDATES, FEATURES, SLOTS = 290, 75, 60, 1 << 20
MANY_SLOTS, FEW_DOCUMENTS = 1 << 24, 10


@dataclass(frozen=True)
class Dense:
    """A problem without its sparse differences: every step makes joint features of all slots."""

    problem: Any

    def __getattr__(self, name: str) -> Any:
        if name == "difference":
            raise AttributeError(name)
        return getattr(self.problem, name)


def document(rng: np.random.Generator, dimension: int = SLOTS) -> tuple[HashedPairs, np.ndarray]:
    """Pairs with a constant, common features, rare ones, and some that pairs of one entity have more often."""
    y = rng.zipf(1.4, MENTIONS).clip(max=100)
    starts = np.concatenate([[0], np.cumsum(np.minimum(np.arange(MENTIONS), CANDIDATES))]).astype(np.int64)
    pairs = int(starts[-1])
    slots = np.empty((pairs, FEATURES), np.uint32)
    slots[:, 0] = 0
    common = FEATURES // 2
    slots[:, 1:common] = 1 + (1999 * rng.random((pairs, common - 1)) ** 2).astype(np.uint32)
    # a few rare features are frequent, most are seen once or twice
    slots[:, common:] = 2000 + ((dimension - 2000) * rng.random((pairs, FEATURES - common)) ** 3).astype(np.uint32)
    x = HashedPairs(MENTIONS, dimension, starts, np.arange(pairs + 1, dtype=np.int64) * FEATURES, slots.ravel())
    told = (y[x.index.left] == y[x.index.right]) & (rng.random(pairs) < 0.7)
    slots[told, 1] = 1 + rng.integers(0, 20, int(told.sum()))
    return x, y


def scoring(examples: list[Any], w: np.ndarray, arcs: int) -> dict[str, Any]:
    """Arcs a second, beside scipy's CSR with values of 1."""
    from scipy.sparse import csr_matrix

    tables = [
        csr_matrix((np.ones(len(x.slots)), x.slots.astype(np.int32), x.at), shape=(len(x.at) - 1, SLOTS))
        for x, _ in examples
    ]
    ours = peer = np.inf
    for _ in range(7):  # in turn: the machine has quick and slow times
        ours = min(ours, timed(lambda: [x.scores(w) for x, _ in examples]))
        peer = min(peer, timed(lambda: [table @ w for table in tables]))
    return {"arcs_per_s": round(arcs / ours), "scipy_arcs_per_s": round(arcs / peer), "times_scipy": peer / ours}


def epochs(examples: list[Any]) -> dict[str, Any]:
    """Seconds of an epoch from w = 0, and how many times the dense path takes."""
    found, arcs, dimension = {}, count_arcs(examples), examples[0][0].dimension
    for name, problem, learner, C in (
        ("LSP^E", AntecedentProblem(dimension), Lsp(), 1000.0),
        ("LSP^E Delta_YJ", AntecedentProblem(dimension, "yj"), Lsp(), 1000.0),
        ("LSPA^E", AntecedentProblem(dimension), Lspa(), 1.0),
        ("LSP^K", ForestProblem(dimension), Lsp(), 1000.0),
        ("LSPA^K", ForestProblem(dimension), Lspa(), 1.0),
    ):
        learner.fit(problem, examples[:1], epochs=1)
        ours = best_of(lambda p=problem, a=learner, c=C: a.fit(p, examples, epochs=2, C=c), 2) / 2
        dense = timed(lambda p=problem, a=learner, c=C: a.fit(Dense(p), examples, epochs=1, C=c))
        found[name] = {"seconds": ours, "arcs_per_s": round(arcs / ours), "times_dense": dense / ours}
    return found


def planes(examples: list[Any], count: int) -> dict[str, Any]:
    """Seconds of so many oracle passes of a latent SVM's first round."""
    found = {}
    for name, problem in (("LSSVM^E", AntecedentProblem(SLOTS)), ("LSSVM^K", ForestProblem(SLOTS, 0.5))):
        svm = LatentSvm(OneSlack(C=100.0, epsilon=1e-3, max_iterations=count), max_rounds=1)
        fits: list[Any] = []
        seconds = timed(lambda s=svm, p=problem, f=fits: f.append(s.fit(p, examples)))
        reports = fits[0].reports
        found[name] = {
            "passes": len(reports),
            "seconds": seconds,
            "oracle_seconds": sum(report.oracle_seconds for report in reports),
            "program_seconds": sum(report.qp_seconds for report in reports),
        }
    return found


def feature_choice(examples: list[Any], arcs: int) -> dict[str, Any]:
    """Five passes of the pair classifier, and the 10,000 strongest slots."""
    fits: list[Any] = []
    seconds = timed(lambda: fits.append(SparsePairClassifier(C=0.01, tolerance=0).fit(examples)))
    choose = timed(lambda: strongest_slots(fits[0].w, 10_000))
    return {"pairs": arcs, "seconds": seconds, "pairs_per_s": round(5 * arcs / seconds), "choose_seconds": choose}


def count_arcs(examples: list[Any]) -> int:
    """Pairs of all documents."""
    return sum(int(x.starts[-1]) for x, _ in examples)


def main() -> None:
    """Measure and save."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=80)
    options.add_argument("--planes", type=int, default=100)
    chosen = options.parse_args()
    rng = np.random.default_rng(0)
    examples = [document(rng) for _ in range(chosen.documents)]
    arcs, many = count_arcs(examples), [document(rng, MANY_SLOTS) for _ in range(FEW_DOCUMENTS)]
    # compiled before anything is timed
    SparsePairClassifier(epochs=1).fit(examples[:1])
    body = {
        "documents": chosen.documents,
        "mentions": MENTIONS,
        "arcs": arcs,
        "features_a_pair": FEATURES,
        "slots": SLOTS,
        "scoring": scoring(examples, rng.normal(size=SLOTS), arcs),
        "epoch": epochs(examples),
        f"epoch_of_{FEW_DOCUMENTS}_documents_in_{MANY_SLOTS}_slots": epochs(many),
        "feature_choice": feature_choice(examples, arcs),
        "latent_svm": planes(examples, chosen.planes),
    }
    save("antecedent-learning", body)


if __name__ == "__main__":
    main()
