"""Learners: weights for a structured task, from examples with a gold clustering.

A task implements the verbs of `netclust.problems.base`; those of the graphs E and K on pair features are in
`forest`, E on hashed pairs in `antecedents`. The online learners are in `netclust.learners.perceptron`, structural SVMs
in `one_slack`, `n_slack`, `latent` and `frank_wolfe`.
"""
