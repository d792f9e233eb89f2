"""What a coreference model is trained by.

>>> CoreferenceSettings(learner="lsp", structure="K").edge_loss, CoreferenceSettings().name
('yj', 'LSP*_rho')
>>> CoreferenceSettings(learner="rho", structure="K")
Traceback (most recent call last):
    ...
netclust.errors.InputError: the learned loss is for the E structure, not for 'K': use the learner lsp, lspa or lssvm
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec

from netclust.errors import InputError
from netclust.models.coreference.antecedent_problem import AntecedentLoss
from netclust.models.coreference.examples import MentionSource
from netclust.models.coreference.features import FeatureSettings

__all__ = ["LEARNED_LOSS", "CoreferenceSettings", "LearnerName", "Structure"]

LearnerName = Literal["lsp", "lspa", "lssvm", "rho", "rho-joint", "rho-online"]
Structure = Literal["E", "K"]

LEARNED_LOSS = ("rho", "rho-joint", "rho-online")
USUAL_C: dict[str, float] = {
    "lsp": 100.0,
    "lspa": 1.0,
    "lssvm": 0.01,
    "rho": 1000.0,
    "rho-joint": 1000.0,
    "rho-online": 1000.0,
}
_NAMES = {"lsp": "LSP", "lspa": "LSPA", "lssvm": "LSSVM", "rho": "LSP_rho", "rho-joint": "LSP*_rho"}


class CoreferenceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The learner, the structure that clusters are found by, the loss, and how mentions and pairs are made.

    C multiplies the loss in the search of the perceptrons, and is the slack's price in the SVM; None is what served the
    learner best on LitBank. `loss` None is Delta_F for E and Delta_YJ for K; `r` None is their usual one. `strongest`
    keeps so many features, those of the largest weight in a classifier of pairs; None keeps all.
    """

    learner: LearnerName = "rho-joint"
    structure: Structure = "E"
    loss: AntecedentLoss | None = None
    C: float | None = None
    r: float | None = None
    epochs: int = 20
    seed: int = 0
    strongest: int | None = None
    mentions: MentionSource = "gold"
    features: FeatureSettings = FeatureSettings()

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        for name, kind in (("learner", LearnerName), ("structure", Structure), ("mentions", MentionSource)):
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} {getattr(self, name)!r} is not known: one of {', '.join(get_args(kind))}")
        if self.structure == "K" and self.learner in LEARNED_LOSS:
            raise InputError("the learned loss is for the E structure, not for 'K': use the learner lsp, lspa or lssvm")
        if self.structure == "K" and self.loss == "f":
            raise InputError("Delta_F charges root arcs, and K has none: its loss is 'yj'")
        if self.loss is not None and self.loss not in get_args(AntecedentLoss):
            raise InputError(f"loss {self.loss!r} is not known: one of {', '.join(get_args(AntecedentLoss))}")
        if self.C is not None and not (self.C > 0 and math.isfinite(self.C)):
            raise InputError(f"C must be above 0, not {self.C}")
        if self.r is not None and not (
            math.isfinite(self.r) and (self.r > 0 or (self.r == 0 and self.edge_loss == "f"))
        ):
            raise InputError(f"r must be above 0 (0 is for the loss 'f' alone), not {self.r}")
        if self.epochs < 1:
            raise InputError(f"epochs must be at least 1, not {self.epochs}")
        if self.seed < 0:
            raise InputError(f"seed must be at least 0, not {self.seed}")
        if self.strongest is not None and self.strongest < 1:
            raise InputError(f"at least one feature is needed, not {self.strongest}")

    @property
    def edge_loss(self) -> AntecedentLoss:
        """The loss that splits over arcs; a learned loss starts from it."""
        return self.loss or ("f" if self.structure == "E" else "yj")

    @property
    def cost(self) -> float:
        """C, or the learner's usual one."""
        return USUAL_C[self.learner] if self.C is None else self.C

    @property
    def name(self) -> str:
        """What the model is called in the literature."""
        if self.learner == "rho-online":
            return "LSP*_rho,online"
        return _NAMES[self.learner] + ("" if self.learner in LEARNED_LOSS else f"^{self.structure}")
