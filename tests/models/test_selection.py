"""Settings are chosen on training examples alone, and the same way every time."""

from __future__ import annotations

import pytest

from netclust.errors import InputError
from netclust.models.selection import k_folds, leave_one_out, select_candidate


def test_every_example_is_held_out_once_and_never_trained_on_then():
    for folds in (leave_one_out(7), k_folds(7, 3), k_folds(7, 3, seed=5)):
        assert sorted(i for fold in folds for i in fold.held) == list(range(7))
        for fold in folds:
            assert sorted((*fold.train, *fold.held)) == list(range(7))
    assert k_folds(50, 5) == k_folds(50, 5)
    assert k_folds(50, 5, seed=1) != k_folds(50, 5, seed=2)


def test_nothing_but_the_training_part_reaches_the_fit():
    seen = []
    examples = ["a", "b", "c"]

    def fit(candidate, train):
        seen.append((candidate, tuple(train)))
        return train

    def measure(candidate, model, held):
        assert not set(model) & set(held)
        return candidate

    choice = select_candidate([2, 1, 1], examples, leave_one_out(3), fit, measure)
    assert seen[:3] == [(2, ("b", "c")), (2, ("a", "c")), (2, ("a", "b"))]
    assert (choice.best, choice.loss, choice.losses) == (1, 1.0, (2.0, 1.0, 1.0))


def test_of_equal_candidates_the_first_is_chosen():
    choice = select_candidate(["simple", "other"], [1, 2], leave_one_out(2), lambda c, t: None, lambda c, f, h: 3.0)
    assert choice.best == "simple"


def test_nothing_to_choose_from_is_refused():
    for examples, folds in ((1, 1), (1, 2), (3, 4)):
        with pytest.raises(InputError, match="cross-validation needs"):
            k_folds(examples, folds)
    with pytest.raises(InputError, match="nothing to choose"):
        select_candidate([], [1, 2], leave_one_out(2), lambda c, t: None, lambda c, f, h: 0.0)
    with pytest.raises(InputError, match="no number"):
        select_candidate([1], [1, 2], leave_one_out(2), lambda c, t: None, lambda c, f, h: float("nan"))
