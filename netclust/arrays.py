"""Train and detect on arrays and frames: the whole library in two calls, for those who have their records in memory.

>>> rng = np.random.default_rng(0)
>>> bytes_sent, service = rng.lognormal(5, 1, 600), rng.choice(["http", "dns"], 600)
>>> attack = np.arange(600) % 10 == 9
>>> frame = {"bytes": np.where(attack, 5e6, bytes_sent), "service": service}
>>> model = train(frame, np.where(attack, "flood", "normal"), reference_size=100, false_alarm_rate=0.05)
>>> found = detect(model, {"bytes": [150.0, 5.2e6, 1e-9], "service": ["http", "http", "gopher"]})
>>> found.columns()["verdict"].tolist(), found.anomalous.tolist()
(['normal', 'known_attack', 'novel'], [False, True, True])
>>> print(found.explain(1).text().splitlines()[0])  # doctest: +ELLIPSIS
Record 0:1 is a known attack (flood), by a margin of ...
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.linking.evidence import Evidence
from netclust.linking.explanation import Explanation, explain
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import VERDICTS, Verdicts
from netclust.models.network.params import TrainParams, load_params
from netclust.models.network.train_network import taken_for_normal, train_network
from netclust.records.batch import Batch
from netclust.records.frames import as_table
from netclust.records.schema import Schema
from netclust.scoring.model import Model

__all__ = ["Detection", "detect", "train"]

WARM = TrainParams(learner="unlearned", scale="spread", reference_size=1000, false_alarm_rate=0.01)


def train(
    data: Any,
    labels: Any = None,
    *,
    params: str | TrainParams | None = None,
    schema: Schema | None = None,
    normal: Any = "normal",
    seed: int = 0,
    **changes: Any,
) -> Model:
    """A model from labelled records, or, without labels, from traffic that is taken for normal.

    `data` is a numpy array, a pandas or polars frame, columns by name, or dicts; `normal` the label (or labels) that
    mean normal. `params` is a preset or parameters, of which `changes` replaces some; by default the preset `late`.
    Without labels the rule is the unlearned one, calibrated to 1 % false alarms unless told otherwise.
    """
    table = as_table(data, labels, schema=schema, normal=normal)
    unlabelled = not table.has_labels
    chosen = (WARM if unlabelled else "late") if params is None else params
    if isinstance(chosen, str):
        chosen = load_params(chosen, table.schema)
    try:
        chosen = msgspec.convert(msgspec.to_builtins(chosen) | changes, TrainParams)
    except msgspec.ValidationError as error:
        raise InputError(f"training parameters: {error}") from None
    if unlabelled:
        table = taken_for_normal(table)
        if chosen.learner != "unlearned":  # there is nothing to tell apart
            chosen = msgspec.structs.replace(chosen, learner="unlearned", loss="edge", scale="spread")
    return train_network(table, chosen, seed=seed)


@dataclass(frozen=True, eq=False)
class Detection:
    """Verdicts on records, with what explains the anomalous ones."""

    verdicts: Verdicts
    evidence: Evidence
    batch: Batch
    linker: Linker

    def __len__(self) -> int:
        """How many records."""
        return len(self.verdicts)

    @property
    def anomalous(self) -> NDArray[np.bool_]:
        """Everything not attached to normal traffic."""
        return self.verdicts.anomalous

    @property
    def score(self) -> NDArray[np.float32]:
        """Above 0 is anomalous."""
        return self.verdicts.score

    def columns(self) -> dict[str, NDArray[Any]]:
        """What people read of the verdicts, by column: `pandas.DataFrame(found.columns())`."""
        verdicts, names = self.verdicts, self.linker.labels
        return {
            "verdict": np.array(VERDICTS, object)[verdicts.verdict],
            "label": np.array([names.name(int(label)) for label in verdicts.label], object),
            "score": verdicts.score,
            "margin": verdicts.margin,
            "cluster": verdicts.cluster,
            "referent": np.array([verdicts.referent(i) for i in range(len(verdicts))], object),
        }

    def explain(self, row: int) -> Explanation:
        """Why an anomalous record is one."""
        return explain(self.linker, self.batch, self.verdicts, self.evidence, row)


def detect(
    model: Model | str | Path, data: Any, labels: Any = None, *, config: LinkerConfig | None = None
) -> Detection:
    """Verdicts on records in arrival order, by default against the reference set alone; `model` may be a file.

    True labels count late if the configuration says so: `LinkerConfig.stream(feedback="gold", delay=100)`.
    """
    loaded = Model.load(model) if isinstance(model, str | Path) else model
    linker = Linker(loaded, config or LinkerConfig.stream(feedback="none"))
    table = as_table(data, labels, schema=loaded.encoding.schema)
    batch = loaded.encoding.encode(table, linker.labels)
    if linker.config.label_delay is not None and (batch.label < 0).any():
        raise InputError(f"record {int(np.argmax(batch.label < 0))} has no label, and the configuration waits for one")
    return Detection(*linker.process_with_evidence(batch), batch, linker)
