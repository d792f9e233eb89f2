"""A task as small as can be: is a number large?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from netclust.models.structured_task import StructuredTask, SvmSettings


class CountSettings(SvmSettings, frozen=True, kw_only=True):
    power: int = 1


class Scale(msgspec.Struct, frozen=True):
    largest: float


@dataclass(frozen=True)
class Above:
    dimension: int = 2

    def joint_features(self, x: Any, h: int) -> Any:
        return h * x

    def predict(self, x: Any, w: Any) -> int:
        return int(w @ x > 0)

    def max_violating(self, x: Any, y: int, w: Any, C: float) -> tuple[int, float]:
        h = max((0, 1), key=lambda h: h * (w @ x) + C * self.loss(y, h))
        return h, self.loss(y, h)

    def gold(self, x: Any, y: int, w: Any) -> int:
        return y

    def loss(self, y: int, h: int) -> float:
        return 100.0 * (y != h)


class Counting(StructuredTask):
    name, settings, encoder = "counting", CountSettings, Scale

    def fit(self, raw: Any, settings: CountSettings) -> Scale:
        return Scale(max(x for x, _ in raw))

    def encode(self, encoder: Scale, raw: Any) -> list[tuple[Any, Any]]:
        return [(np.array([x / encoder.largest, 1.0]), y) for x, y in raw]

    def problem(self, encoder: Scale, settings: CountSettings) -> Any:
        return Above()

    def weight_names(self, encoder: Scale, settings: CountSettings) -> list[str]:
        return ["size", "constant"]

    def measure(self, pairs: Any) -> dict[str, float]:
        return {"loss": float(np.mean([100.0 * (y != h) for y, h in pairs]))}


TASK = Counting()
RAW = [(float(x), int(x > 5)) for x in range(11)]
