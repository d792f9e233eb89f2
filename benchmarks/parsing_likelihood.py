"""The treebanks of `benchmarks/parsing.py`, with weights by conditional likelihood instead of by a margin."""

from __future__ import annotations

from common import save
from parsing import TEST, TRAIN, quality, summary

GRID = (10.0, 100.0)
SEEDS = 3
MODELS = ("basic, likelihood", "lexical, likelihood")


def main() -> None:
    runs = [quality(seed, MODELS, GRID) for seed in range(SEEDS)]
    about = {"train_trees": TRAIN, "test_trees": TEST, "seeds": SEEDS}
    save("parsing_likelihood", {**about, **summary(runs, [(MODELS[1], MODELS[0])]), "runs": runs})


if __name__ == "__main__":
    main()
