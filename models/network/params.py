"""Training parameters of the network task: a TOML file, a preset, or defaults.

>>> load_params("thesis").transform
'none'
>>> parse_params("epochs = 2").epochs
2
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from netclust.errors import InputError
from netclust.models.network.margin_learner import MarginRule
from netclust.models.network.network_loss import Measure
from netclust.models.network.stream_perceptron import Absent, StreamRule
from netclust.records.schema import Schema, Transform
from netclust.scoring.reference import Choice
from netclust.scoring.similarity import RootFeatures

PRESETS = (
    *("thesis", "perceptron-late", "reference", "reference-280", "late", "capture"),
    *("unlearned-reference", "unlearned-reference-280", "unlearned-late", "nearest-normal", "nearest-normal-280"),
)
_MAX_BYTES = 1 << 20


class TrainParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that training can be told. Names as in the specs; see docs/parameters.md."""

    learner: Literal["margin", "lsp", "lspa", "unlearned"] = "lsp"
    transform: Transform | Literal["schema"] = "schema"
    training_window: int = 100
    epochs: int = 5
    C: float = 1.0
    r: float = 1.0
    cap: float | None = None
    loss: Literal["edge", "learned"] = "edge"
    measure: Literal["f_beta", "budget"] = "f_beta"
    beta: float = 1.0
    alarm_budget: float = 0.01
    absent: Absent = "window"
    sign: Literal[-1, 1] = -1
    root: RootFeatures = "bias"
    weights: Literal["averaged", "last"] = "averaged"
    scale: Literal["range", "spread"] = "range"
    symbol_weight: float = 1.0
    far: float | None = None
    steps: int = 400
    temperature: float = 3.0
    reach: float | None = None
    pull: float = 1e-3
    hide: float = 0.25
    kind_balance: float = 0.5
    class_balance: float = 0.5
    without: tuple[str, ...] = ()
    reference_size: int = 280
    reference_choice: Choice = "proportional"
    false_alarm_rate: float | None = None
    holdout: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what cannot work, by name."""
        checks = {
            "training_window must be 1 to 1,000,000": 1 <= self.training_window <= 1_000_000,
            "epochs must be 1 to 10,000": 1 <= self.epochs <= 10_000,
            "C must be 0 or more": 0 <= self.C < 1e9,
            "r must be 0 or more": 0 <= self.r < 1e9,
            "cap must be above 0": self.cap is None or self.cap > 0,
            f"loss {self.loss} is for learners lsp and lspa, not {self.learner}": (
                self.loss == "edge" or self.learner in ("lsp", "lspa")
            ),
            "beta must lie between 0.01 and 100": 0.01 <= self.beta <= 100,
            "alarm_budget must lie between 0 and 1": 0 < self.alarm_budget < 1,
            "symbol_weight must be above 0, at most 1,000": 0 < self.symbol_weight <= 1000,
            "far must be above 0": self.far is None or 0 < self.far < 1e6,
            "steps must be 1 to 1,000,000": 1 <= self.steps <= 1_000_000,
            "temperature must be above 0": 0 < self.temperature < 1e6,
            "reach must lie between 0 and 10": self.reach is None or 0 <= self.reach <= 10,
            "pull must be 0 or more": 0 <= self.pull < 1e6,
            "hide must lie between 0 and 0.95": 0 <= self.hide <= 0.95,
            "kind_balance must lie between 0 and 1": 0 <= self.kind_balance <= 1,
            "class_balance must lie between 0 and 1": 0 <= self.class_balance <= 1,
            "reference_size must be 1 to 16,777,216": 1 <= self.reference_size <= 1 << 24,
            "false_alarm_rate must lie between 0 and 1": self.false_alarm_rate is None or 0 < self.false_alarm_rate < 1,
            "holdout must lie between 0 and 0.9": 0 < self.holdout <= 0.9,
        }
        for problem, fine in checks.items():
            if not fine:
                raise InputError(problem)

    @property
    def rule(self) -> StreamRule:
        """What the stream learner needs of it."""
        return StreamRule(
            update="lspa" if self.learner == "lspa" else "lsp",
            training_window=self.training_window,
            epochs=self.epochs,
            C=self.C,
            r=self.r,
            absent=self.absent,
            sign=self.sign,
            root=self.root,
            cap=self.cap,
        )

    @property
    def judged_by(self) -> Measure:
        """What a learned loss is learned from."""
        return Measure(name=self.measure, beta=self.beta, budget=self.alarm_budget)

    @property
    def margin_rule(self) -> MarginRule:
        """What the margin learner needs of it."""
        return MarginRule(
            candidates=self.training_window,
            steps=self.steps,
            temperature=self.temperature,
            reach=self.reach,
            pull=self.pull,
            hide=self.hide,
            kind_balance=self.kind_balance,
            class_balance=self.class_balance,
        )


def parse_params(text: str | bytes, where: str = "parameters") -> TrainParams:
    """Parameters from TOML text."""
    try:
        return msgspec.toml.decode(text, type=TrainParams)
    except (msgspec.DecodeError, ValueError, RecursionError, InputError) as error:
        known = ", ".join(f.name for f in msgspec.structs.fields(TrainParams))
        raise InputError(f"{where}: {error}. Known parameters: {known}") from None


def load_params(name_or_path: str | Path, schema: Schema | None = None) -> TrainParams:
    """A preset by name (`thesis`), or a TOML file. Of what a preset leaves out, only what the schema has counts."""
    if str(name_or_path) in PRESETS:
        data = resources.files("netclust").joinpath(f"presets/{name_or_path}.toml").read_bytes()
        params = parse_params(data, str(name_or_path))
        if schema is None:
            return params
        features = {a.name for a in schema.features}
        return msgspec.structs.replace(params, without=tuple(name for name in params.without if name in features))
    path = Path(name_or_path)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}. Presets: {', '.join(PRESETS)}") from None
    if len(data) > _MAX_BYTES:
        raise InputError(f"{path}: larger than {_MAX_BYTES} bytes, not parameters")
    return parse_params(data, str(path))
