"""Simulated days as the detector judged them: records, hosts, verdicts and truth, to learn what to make of verdicts.

The similarity is trained on one day; the days that are judged are later ones of the same office that it has not seen,
with attack types that were held back from training. So verdicts are as wrong as they are in use, and a second model can
be fitted to those of one day and measured on those of another.

>>> few = "port_scan,ssh_brute_force"
>>> plan = DayPlan(hours=0.2, hosts=8, rate=0.05, references=100, trained_on=few, attacks=few)
>>> first, second = judged_days(plan)
>>> len(first) == len(first.verdicts) == len(first.source), bool(first.attack.any())
(True, True)
>>> names, x = first.features()
>>> x.shape == (len(first), len(names)), names[:3]
(True, ('score', 'nearest', 'anomalous'))

The days of one plan are of one office (its addresses and habits), with other traffic and other attacks every day.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.datasets.simulators.capture_simulator import simulate_capture
from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.verdicts import VERDICTS, VIAS, Verdicts
from netclust.models.network.params import load_params
from netclust.models.network.train_network import fit_network
from netclust.records.batch import Batch
from netclust.records.encoding import Encoding
from netclust.records.schema import load_schema
from netclust.records.table import Table, concat_tables
from netclust.scoring.model import Model
from netclust.stream.packets.capture_reader import open_captures_as_tables

__all__ = ["DayPlan", "JudgedDay", "judge_day", "judged_days"]

MOST = 20.0
"""Scores and links are cut at this size: without a normal referent they are infinite."""


@dataclass(frozen=True, kw_only=True)
class DayPlan:
    """Which days are made, and how the detector is trained for them."""

    seed: int = 0
    days: int = 2
    """How many are judged, after the one that the detector is trained on."""
    hours: float = 24.0
    hosts: int = 40
    scale: float = 1.0
    trained_on: str = "known"
    attacks: str = "all"
    """Of the judged days; as of `netclust simulate capture`."""
    campaigns_per_hour: float = 1.5
    schema: str = "flow"
    preset: str = "capture"
    references: int = 5000
    rate: float = 0.001
    """Of false alarms, which the root is set for on held-out records of the training day."""
    linker: LinkerConfig = field(default_factory=lambda: LinkerConfig(referent_window=0))
    """What the linker remembers of a day; by default nothing, so that a verdict depends on its record alone."""


@dataclass(frozen=True, eq=False)
class JudgedDay:
    """A day's records in the order in which they were judged; every array has one entry a record."""

    table: Table
    batch: Batch
    verdicts: Verdicts
    encoding: Encoding

    def __len__(self) -> int:
        """How many records."""
        return len(self.table)

    @cached_property
    def source(self) -> NDArray[np.str_]:
        """The address of who began."""
        return self.table.context["source"].astype(str)

    @cached_property
    def destination(self) -> NDArray[np.str_]:
        """The address of who was called."""
        return self.table.context["destination"].astype(str)

    @cached_property
    def label(self) -> NDArray[np.str_]:
        """The true class."""
        return self.table.label_names().astype(str)

    @cached_property
    def attack(self) -> NDArray[np.bool_]:
        """The truth: everything that is not normal."""
        return np.asarray(~np.isin(self.label, ["", *self.table.schema.normal]))

    @property
    def alarm(self) -> NDArray[np.bool_]:
        """What the detector alone says."""
        return self.verdicts.anomalous

    @cached_property
    def score(self) -> NDArray[np.float64]:
        """How anomalous the detector finds a record: above 0 is an alarm."""
        return np.clip(self.verdicts.score.astype(np.float64), -MOST, MOST)

    def features(self, *, attributes: bool = False) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Names and columns that describe a verdict; with `attributes`, the record itself as the model sees it too.

        The score and the score of the link, whether it is an alarm, and a 0/1 column for every verdict and via.
        """
        v = self.verdicts
        columns: list[tuple[str, NDArray[np.float64]]] = [
            ("score", self.score),
            ("nearest", np.clip(v.link.astype(np.float64), -MOST, MOST)),
            ("anomalous", v.anomalous.astype(np.float64)),
            *((f"verdict={name}", (v.verdict == k).astype(np.float64)) for k, name in enumerate(VERDICTS)),
            *((f"via={name}", (v.via == k).astype(np.float64)) for k, name in enumerate(VIAS)),
        ]
        if attributes:
            columns += list(self._attributes())
        return tuple(name for name, _ in columns), np.stack([column for _, column in columns], axis=1)

    def _attributes(self) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Encoded numbers, and a 0/1 column for every symbolic value of the day that the detector was trained on."""
        for f, attribute in enumerate(self.encoding.numeric):
            yield attribute.name, self.batch.num[:, f].astype(np.float64)
        for s, (attribute, values) in enumerate(
            zip(self.encoding.schema.coded, self.encoding.vocabularies, strict=True)
        ):
            for code, value in enumerate(values, 1):
                yield f"{attribute.name}={value}", (self.batch.code[:, s] == code).astype(np.float64)


def judged_days(plan: DayPlan) -> list[JudgedDay]:
    """Train on day 0 of the plan, judge the days after it, each by a linker that has seen nothing else."""
    if plan.days < 1:
        raise InputError(f"{plan.days} judged days: at least one is needed")
    params = msgspec.structs.replace(
        load_params(plan.preset, load_schema(plan.schema)),
        reference_size=plan.references,
        false_alarm_rate=plan.rate,
    )
    training = _simulated(plan, 0, plan.trained_on)
    model = fit_network(training, params, seed=plan.seed).draw(plan.seed)
    return [judge_day(model, _simulated(plan, day, plan.attacks), plan.linker) for day in range(1, plan.days + 1)]


def judge_day(model: Model, table: Table, config: LinkerConfig) -> JudgedDay:
    """What a fresh linker says of records; their labels are not shown to it."""
    linker = Linker(model, config)
    batch = model.encoding.encode(table, linker.labels)
    hidden = replace(batch, label=np.full(len(batch), -1, np.int32))
    return JudgedDay(table, batch, linker.process(hidden), model.encoding)


def _simulated(plan: DayPlan, day: int, attacks: str) -> Table:
    """One day of the plan's office; its traffic is drawn for the day, its attacks too."""
    with tempfile.TemporaryDirectory(prefix="netclust-") as folder:
        capture, labels = Path(folder, "day.pcap"), Path(folder, "day.csv")
        simulate_capture(
            capture, labels, hours=plan.hours, seed=plan.seed, hosts=plan.hosts, scale=plan.scale, day=day,
            attacks=attacks, campaigns_per_hour=plan.campaigns_per_hour,
        )  # fmt: skip
        return concat_tables(list(open_captures_as_tables(capture, load_schema(plan.schema), labels=labels)))
