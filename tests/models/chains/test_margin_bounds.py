"""The margin bound: its formulas and figures, what it rises and falls with; the margin loss by listing."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from chain_twins import labellings, scores_of

from netclust.errors import InputError
from netclust.models.chains.margin_bounds import (
    CliqueCounts,
    bound,
    chain_cliques,
    chain_margin_loss,
    complexity,
    log_covering_number,
)


def test_the_figures_of_a_chain_of_eight_letters() -> None:
    counts = chain_cliques(8, 26)
    assert counts == CliqueCounts(15, 676, 3)
    for examples, expected in ((600, 36.8), (10**5, 3.2), (10**6, 1.06), (10**7, 0.35)):
        assert complexity(counts, examples, norm=2.0, margin=1.0, delta=0.05) == pytest.approx(expected, rel=0.01)


def test_the_formulas_written_out() -> None:
    counts, m, norm, margin, delta = CliqueCounts(5, 9, 2), 1000, 3.0, 0.7, 0.1
    inside = 1 + 2 * math.ceil(4 * norm * 2 / margin + 2) * m * 5 * 8
    assert log_covering_number(counts, m, norm, margin) == pytest.approx(
        36 * (norm * 2 / margin) ** 2 * math.log2(inside) * math.log(2)
    )
    i = 3  # 3/8 is the first of 3/2, 3/4, 3/8 that is at most 0.7
    least = norm / 2**i
    own = math.log(4) + log_covering_number(counts, m, norm, least) + math.log(1 / (2.0**-i * delta))
    assert complexity(counts, m, norm, margin, delta) == pytest.approx(math.sqrt(32 / m * own))
    assert bound(0.25, counts, m, norm, margin, delta) == pytest.approx(0.25 + math.sqrt(32 / m * own))


def test_it_falls_with_margin_and_examples_and_rises_with_all_else() -> None:
    counts = chain_cliques(8, 26)
    margins = [complexity(counts, 10**6, 2.0, margin) for margin in np.geomspace(0.01, 50, 60)]
    assert all(a >= b for a, b in pairwise(margins))
    examples = [complexity(counts, m, 2.0, 1.0) for m in (10, 100, 10**4, 10**6, 10**8)]
    assert all(a > b for a, b in pairwise(examples))
    base = complexity(counts, 10**6, 2.0, 1.0)
    assert complexity(counts, 10**6, 2.5, 1.0) > base
    assert complexity(chain_cliques(16, 26), 10**6, 2.0, 1.0) > base
    assert complexity(chain_cliques(8, 30), 10**6, 2.0, 1.0) > base
    assert complexity(counts._replace(sharing=4), 10**6, 2.0, 1.0) > base
    assert complexity(counts, 10**6, 2.0, 1.0, delta=0.01) > base
    # logarithmic in the number of cliques
    assert complexity(chain_cliques(8000, 26), 10**6, 2.0, 1.0) < 1.5 * base


def test_the_margin_loss_is_that_of_the_worst_labelling() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        L, K = int(rng.integers(1, 6)), int(rng.integers(2, 4))
        node, edge, y = rng.normal(size=(L, K)), rng.normal(size=(K, K)), rng.integers(0, K, L)
        rows = labellings(L, K)
        own, errors = scores_of(node, edge, rows), (rows != y).sum(axis=1)
        gold, losses = own[errors == 0][0], []
        for margin in (0.01, 0.3, 1.0, 5.0):
            close = gold <= own + margin * errors + 1e-12
            losses.append(chain_margin_loss(node, edge, y, margin))
            assert losses[-1] == pytest.approx(errors[close].max() / L)
        assert losses == sorted(losses)
    assert chain_margin_loss(np.zeros((0, 2)), np.zeros((2, 2)), np.zeros(0, np.int64), 1.0) == 0.0


def test_what_is_no_network_is_refused() -> None:
    counts = chain_cliques(8, 26)
    for call in (
        lambda: chain_cliques(0, 26),
        lambda: complexity(counts, 0, 1.0, 1.0),
        lambda: complexity(counts, 10, 0.0, 1.0),
        lambda: complexity(counts, 10, 1.0, 1.0, delta=1.0),
        lambda: bound(1.5, counts, 10, 1.0, 1.0),
    ):
        with pytest.raises(InputError):
            call()
