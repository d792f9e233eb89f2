"""Max-margin chains, independent SVMs and a CRF on generated letter sequences: python benchmarks/letter_chains.py

The published protocol: trained on one fold of words, tested on the nine others, ten times. C is chosen on the training
words of the first fold (trained on one half, measured on the other, both ways) and stays for all folds. It is given a
training word, since the sum of losses, not their mean, is what a prior is weighed against.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from common import save

from netclust.datasets.simulators.letter_sequences import letter_sequences
from netclust.models.chains.chain_inference import Labelling
from netclust.models.chains.chain_problem import ChainExample, ChainProblem, mean_chain_length
from netclust.models.chains.crf import train_crf
from netclust.models.chains.node_products import NodeKernel
from netclust.models.chains.structured_smo import StructuredSmo
from netclust.models.experiments.paired_tests import paired_comparison

Predict = Callable[[Any], Labelling]
LINEAR, SQUARE, CUBE = NodeKernel(), NodeKernel("polynomial", degree=2), NodeKernel("polynomial", degree=3)
METHODS: dict[str, tuple[NodeKernel | None, bool, tuple[float, ...]]] = {
    "svm linear": (LINEAR, False, (0.1, 0.3, 1.0, 3.0)),
    "svm cubic": (CUBE, False, (3.0, 10.0, 30.0, 100.0)),
    "crf": (None, True, (0.03, 0.1, 0.3, 1.0)),
    "m3n linear": (LINEAR, True, (0.1, 0.3, 1.0, 3.0)),
    "m3n quadratic": (SQUARE, True, (3.0, 10.0, 30.0, 100.0)),
    "m3n cubic": (CUBE, True, (3.0, 10.0, 30.0, 100.0)),
}
PAIRS = (
    ("m3n linear", "svm linear"), ("m3n cubic", "svm cubic"), ("m3n linear", "crf"), ("m3n cubic", "crf"),
    ("m3n cubic", "m3n linear"), ("m3n linear", "svm cubic"), ("crf", "svm linear"),
)  # fmt: skip


def fit(method: str, each: float, train: list[ChainExample]) -> tuple[Predict, bool]:
    kernel, transitions, _ = METHODS[method]
    C = each * len(train)
    problem = ChainProblem(26, train[0][0].shape[1], transitions=transitions, places=mean_chain_length(train))
    if kernel is None:
        found = train_crf(problem, train, C=C)
        return (lambda x: problem.predict(x, found.w)), found.converged
    made = StructuredSmo(C=C, epsilon=2.0, kernel=kernel, max_passes=40).fit(problem, train)
    return made.model.predict, made.converged


def error(predict: Predict, test: list[ChainExample]) -> float:
    """The share of wrong letters."""
    wrong = [predict(x) != y for x, y in test]
    return float(np.concatenate(wrong).mean())


def choose_c(method: str, train: list[ChainExample]) -> tuple[float, dict[str, float]]:
    halves = (train[::2], train[1::2])
    tried = {}
    for C in METHODS[method][2]:
        tried[C] = float(np.mean([error(fit(method, C, halves[k])[0], halves[1 - k]) for k in range(2)]))
    return min(tried, key=lambda C: tried[C]), {f"{C:g}": value for C, value in tried.items()}


def rules() -> None:
    """How near structured SMO is to the optimum after 35 passes, by what gives mass; linear, 100 words, C = 100."""
    train = letter_sequences(words=100, seed=1)
    examples = train.examples(np.arange(100))
    found = {}
    for select in ("largest", "weighted", "shared"):
        fit = StructuredSmo(C=100.0, epsilon=1e-6, select=select, max_passes=35).fit(ChainProblem(26, 129), examples)
        gaps = [one.gap for one in fit.passes]
        found[select] = {"primal": fit.primal, "dual": fit.dual, "gap, percent of loss": gaps[::5]}
    save("structured-smo", {"words": 100, "C": 100.0, "passes": 35, "rules": found})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=1200)
    parser.add_argument("--folds", type=int, default=10, help="so many are trained on")
    parser.add_argument("--test", type=int, default=400, help="words of the nine other folds that are tested on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--name", default="letter-chains", help="of the result")
    parser.add_argument("--rules", action="store_true", help="compare rules of structured SMO instead")
    given = parser.parse_args()
    if given.rules:
        rules()
        return
    began = time.perf_counter()
    data = letter_sequences(words=given.words, seed=given.seed, noise=given.noise)
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    chosen: dict[str, Any] = {}
    unfinished = dict.fromkeys(METHODS, 0)
    for fold in range(given.folds):
        train = data.examples(np.flatnonzero(data.fold == fold))
        test = data.examples(np.flatnonzero(data.fold != fold)[: given.test])
        for name in METHODS:
            if name not in chosen:
                C, tried = choose_c(name, train)
                chosen[name] = {"C a word": C, "held-out error": tried}
            predict, converged = fit(name, chosen[name]["C a word"], train)
            errors[name].append(error(predict, test))
            unfinished[name] += not converged
        print(
            fold,
            round(time.perf_counter() - began),
            {name: round(own[-1], 4) for name, own in errors.items()},
            flush=True,
        )
    tests = {
        f"{a} - {b}": msgspec.to_builtins(paired_comparison(errors[a], errors[b], better="lower")) for a, b in PAIRS
    }
    save(
        given.name,
        {
            "words": given.words, "folds": given.folds, "tested words": given.test, "seed": given.seed,
            "noise": given.noise,
            "mean error": {name: float(np.mean(own)) for name, own in errors.items()},
            "errors": errors, "chosen": chosen, "fits that stopped at 40 passes": unfinished, "tests": tests,
            "seconds": time.perf_counter() - began,
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
