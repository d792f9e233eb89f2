"""Learners: weights for a structured task, from examples with a gold clustering.

A task implements the verbs of `netclust.learners.problem`; those of the graphs E and K on pair features are in
`forest`, E on hashed pairs in `antecedents`. The online learners are in `netclust.learners.perceptron`, structural SVMs
in `one_slack`, `n_slack`, `latent` and `frank_wolfe`.
"""

from netclust.learners.antecedents import AntecedentProblem
from netclust.learners.cutting_plane import IterationReport, SvmFit
from netclust.learners.forest import ForestProblem, LinkProblem
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.latent import LatentSvm
from netclust.learners.n_slack import NSlack
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Fitted, Lsp, Lspa
from netclust.learners.problem import Problem, SlackProblem, SparseProblem, TreeProblem

__all__ = [
    "AntecedentProblem",
    "Fitted",
    "ForestProblem",
    "FrankWolfe",
    "IterationReport",
    "LatentSvm",
    "LinkProblem",
    "Lsp",
    "Lspa",
    "NSlack",
    "OneSlack",
    "Problem",
    "SlackProblem",
    "SparseProblem",
    "SvmFit",
    "TreeProblem",
]
