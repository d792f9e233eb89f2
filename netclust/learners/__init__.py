"""Learners: weights for a structured task, from examples with a gold clustering.

A task implements the verbs of `netclust.learners.problem`; the online learners are in
`netclust.learners.perceptron`.
"""

from netclust.learners.perceptron import Fitted, Lsp, Lspa
from netclust.learners.problem import Problem, TreeProblem

__all__ = ["Fitted", "Lsp", "Lspa", "Problem", "TreeProblem"]
