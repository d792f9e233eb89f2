"""Kernels of node features: the dot product of what a place is mapped to, without the map.

>>> x = np.array([[1.0, 0.0], [1.0, 1.0]])
>>> NodeKernel("linear")(x, x).tolist(), NodeKernel("polynomial", degree=2, scale=1.0)(x, x).tolist()
([[1.0, 1.0], [1.0, 2.0]], [[4.0, 4.0], [4.0, 9.0]])
>>> NodeKernel("rbf", scale=1.0)(x, x).round(3).tolist()
[[1.0, 0.368], [0.368, 1.0]]
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError

__all__ = ["KernelName", "NodeKernel"]

KernelName = Literal["linear", "polynomial", "rbf"]


class NodeKernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """linear: x.z; polynomial: (scale x.z + 1)^degree; rbf: exp(-scale |x - z|^2). Scale 0: 1 over the features."""

    name: KernelName = "linear"
    degree: int = 2
    scale: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no kernel."""
        if not (1 <= self.degree <= 20 and 0 <= self.scale < np.inf):
            raise InputError(f"a kernel has a degree of 1 to 20 and a scale of 0 or more, not {self}")

    def __call__(self, x: NDArray[np.float64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """The products of all rows of x with all rows of z."""
        products = np.asarray(x @ z.T, np.float64)
        if self.name == "linear":
            return products
        scale = self.scale or 1.0 / max(x.shape[1], 1)
        if self.name == "polynomial":
            return np.asarray((scale * products + 1.0) ** self.degree, np.float64)
        squares = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1)[None] - 2 * products
        return np.asarray(np.exp(-scale * np.maximum(squares, 0.0)), np.float64)
