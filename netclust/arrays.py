"""Train and detect on arrays and frames: the whole library in three calls, for those who have their records in memory.

>>> rng = np.random.default_rng(0)
>>> bytes_sent, service = rng.lognormal(5, 1, 600), rng.choice(["http", "dns"], 600)
>>> attack = np.arange(600) % 10 == 9
>>> frame = {"bytes": np.where(attack, 5e6, bytes_sent), "service": service}
>>> model = train(frame, np.where(attack, "flood", "normal"), reference_size=100, false_alarm_rate=0.05)
>>> verdicts = detect(model, {"bytes": [150.0, 5.2e6, 1e-9], "service": ["http", "http", "gopher"]})
>>> shown = verdict_columns(model, verdicts)
>>> shown["verdict"].tolist(), list(shown)
(['normal', 'known_attack', 'novel'], ['verdict', 'label', 'score', 'margin', 'cluster', 'referent'])
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError
from netclust.frames import as_table
from netclust.labels import LabelTable
from netclust.linker import Linker, LinkerConfig
from netclust.model import Model
from netclust.models.network import taken_for_normal, train_network
from netclust.models.params import TrainParams, load_params
from netclust.schema import Schema
from netclust.verdicts import VERDICTS, Verdicts

__all__ = ["detect", "train", "verdict_columns"]

WARM = TrainParams(learner="unlearned", scale="spread", reference_size=1000, false_alarm_rate=0.01)


def train(
    data: Any,
    labels: Any = None,
    *,
    params: str | TrainParams = "late",
    schema: Schema | None = None,
    normal: str = "normal",
    seed: int = 0,
    **changes: Any,
) -> Model:
    """A model from labelled records, or, without labels, from traffic that is taken for normal.

    `data` is a numpy array, a pandas or polars frame, columns by name, or dicts; `params` a preset or parameters, of
    which `changes` replaces some. Without labels the rule is the unlearned one, calibrated to 1 % false alarms.
    """
    chosen = load_params(params) if isinstance(params, str) else params
    table = as_table(data, labels, schema=schema, normal=normal)
    if labels is None and not table.has_labels:
        table, chosen = taken_for_normal(table), WARM
    try:
        chosen = msgspec.convert(msgspec.to_builtins(chosen) | changes, TrainParams)
    except msgspec.ValidationError as error:
        raise InputError(f"training parameters: {error}") from None
    known = {name for name in chosen.without if any(a.name == name for a in table.schema.features)}
    chosen = msgspec.structs.replace(chosen, without=tuple(sorted(known)))  # a preset may name another schema's
    return train_network(table, chosen, seed=seed)


def detect(model: Model, data: Any, labels: Any = None, *, config: LinkerConfig | None = None) -> Verdicts:
    """Verdicts on records in arrival order, by default against the reference set alone.

    True labels count late if the configuration says so: `LinkerConfig.stream(feedback="gold", delay=100)`.
    """
    linker = Linker(model, config or LinkerConfig.stream(feedback="none"))
    table = as_table(data, labels, schema=model.encoding.schema)
    return linker.process(model.encoding.encode(table, linker.labels))


def verdict_columns(model: Model, verdicts: Verdicts, labels: LabelTable | None = None) -> dict[str, NDArray[Any]]:
    """What people read of verdicts, as columns: `pandas.DataFrame(verdict_columns(...))`."""
    names = labels or model.encoding.label_table()
    return {
        "verdict": np.array(VERDICTS, object)[verdicts.verdict],
        "label": np.array([names.name(int(label)) for label in verdicts.label], object),
        "score": verdicts.score,
        "margin": verdicts.margin,
        "cluster": verdicts.cluster,
        "referent": np.array([verdicts.referent(i) for i in range(len(verdicts))], object),
    }
