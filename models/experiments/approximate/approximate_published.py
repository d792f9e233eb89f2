"""The published numbers of training with approximate inference, as printed; losses and shares in percent.

Rows are how a model was trained, columns how it predicts. The printed `±` are not here: all 150 are 100 p (1 - p) /
sqrt(N), a variance where a standard deviation belongs. Of Table 5.4 the cells of Combine and Exact on Yeast are
printed the other way round, it seems: a loss cannot be below half the share of open labels.

>>> published_loss("yeast", "exact", "cut"), published_loss("emotions", "exact", "cut"), OPEN["exact"]["synth2"]
(45.9, None, 27.92)

T. Finley, "Supervised Clustering with Structural SVMs", PhD thesis, Cornell University, 2009, Tables 5.1 to 5.5.
"""

from __future__ import annotations

from netclust.models.multilabel.binary_network import Inference

__all__ = ["BASELINE", "COLUMNS", "DEFAULT", "OPEN", "RHO", "TRAINED", "published_loss", "published_source"]

COLUMNS: tuple[Inference, ...] = ("greedy", "lbp", "combine", "exact", "cut")
"""LProg is `cut` here: the same program, solved by a flow."""
_SETS = ("scene", "yeast", "reuters", "mediamill", "synth1", "synth2")

TRAINED: dict[str, dict[Inference, tuple[float, ...]]] = {
    "scene": {
        "greedy": (10.67, 10.74, 10.67, 10.67, 10.67),
        "lbp": (10.45, 10.54, 10.45, 10.42, 10.49),
        "combine": (10.72, 11.78, 10.72, 10.77, 11.20),
        "exact": (10.08, 10.33, 10.08, 10.06, 10.20),
        "cut": (10.55, 10.49, 10.49, 10.49, 10.49),
    },
    "yeast": {
        "greedy": (21.62, 21.77, 21.58, 21.62, 24.42),
        "lbp": (24.32, 24.32, 24.32, 24.32, 24.32),
        "combine": (22.33, 37.24, 22.32, 21.82, 42.72),
        "exact": (23.38, 21.99, 21.06, 20.23, 45.90),
        "cut": (20.47, 20.45, 20.47, 20.48, 20.49),
    },
    "synth1": {
        "greedy": (8.86, 8.86, 8.86, 8.86, 8.86),
        "lbp": (13.94, 13.94, 13.94, 13.94, 13.94),
        "combine": (8.86, 8.86, 8.86, 8.86, 8.86),
        "exact": (6.89, 6.86, 6.86, 6.86, 6.86),
        "cut": (8.94, 8.94, 8.94, 8.94, 8.94),
    },
    "synth2": {
        "greedy": (7.27, 27.92, 7.27, 7.28, 19.03),
        "lbp": (10.00, 10.00, 10.00, 10.00, 10.00),
        "combine": (7.90, 26.39, 7.90, 7.90, 18.11),
        "exact": (7.04, 25.71, 7.04, 7.04, 17.80),
        "cut": (5.83, 6.63, 5.83, 5.83, 6.29),
    },
}
"""Tables 5.2 and 5.3, of the data that can be had or made."""
BASELINE = {"scene": 11.43, "yeast": 20.91, "synth1": 8.99, "synth2": 9.80}
"""Table 5.1: without edges."""
DEFAULT = {"scene": 18.10, "yeast": 25.09, "synth1": 16.34, "synth2": 10.00}
"""Table 5.1: the one labelling that is best on the training data."""
OPEN: dict[Inference, dict[str, float]] = {
    "greedy": dict(zip(_SETS, (0.43, 17.02, 31.28, 20.81, 0.00, 31.17), strict=True)),
    "lbp": dict(zip(_SETS, (0.31, 0.00, 0.00, 0.00, 0.00, 0.00), strict=True)),
    "combine": dict(zip(_SETS, (2.90, 91.42, 0.44, 4.27, 0.00, 29.11), strict=True)),
    "exact": dict(zip(_SETS, (0.95, 84.30, 0.67, 65.58, 0.00, 27.92), strict=True)),
    "cut": dict(zip(_SETS, (0.00, 0.43, 0.32, 1.30, 0.00, 1.48), strict=True)),
}
"""Table 5.4: labels left open by relaxed prediction, as printed."""
RHO: dict[float, dict[str, tuple[float, float]]] = {
    1.0: {"scene": (4.97, 10.06), "yeast": (18.91, 20.23), "synth1": (0.00, 6.86), "synth2": (4.57, 7.04)},
    0.99: {"scene": (4.36, 10.87), "yeast": (19.35, 21.06), "synth1": (0.00, 8.61), "synth2": (5.20, 7.36)},
    0.975: {"scene": (3.95, 11.45), "yeast": (19.27, 20.56), "synth1": (3.64, 12.72), "synth2": (4.43, 6.76)},
    0.95: {"scene": (9.06, 10.72), "yeast": (19.90, 20.98), "synth1": (0.32, 6.64), "synth2": (5.35, 7.90)},
    0.9: {"scene": (3.96, 10.74), "yeast": (18.72, 20.14), "synth1": (2.55, 13.19), "synth2": (6.21, 8.84)},
    0.85: {"scene": (5.67, 11.32), "yeast": (20.04, 21.35), "synth1": (1.45, 9.08), "synth2": (6.74, 8.57)},
    0.8: {"scene": (5.15, 10.59), "yeast": (19.37, 21.04), "synth1": (2.72, 14.09), "synth2": (8.83, 11.02)},
    0.7: {"scene": (6.32, 11.08), "yeast": (24.24, 26.26), "synth1": (0.60, 8.69), "synth2": (9.56, 11.57)},
    0.6: {"scene": (19.01, 20.00), "yeast": (19.00, 20.80), "synth1": (4.21, 15.23), "synth2": (12.90, 15.48)},
    0.5: {"scene": (10.83, 12.28), "yeast": (21.09, 22.31), "synth1": (4.07, 10.92), "synth2": (11.85, 13.68)},
    0.0: {"scene": (71.80, 71.00), "yeast": (45.78, 45.36), "synth1": (36.62, 36.84), "synth2": (49.38, 50.01)},
}
"""Table 5.5: training and test loss where the oracle is exact but for rho."""


def published_source(name: str) -> str:
    """Return the published name of a data set: Synth2 with a constant feature stands beside Synth2."""
    return "synth2" if name.startswith("synth2") else name


def published_loss(name: str, trained: Inference, predicted: Inference) -> float | None:
    """Return the published test loss, where there is one."""
    rows = TRAINED.get(published_source(name))
    return None if rows is None else rows[trained][COLUMNS.index(predicted)]
