"""Table 4.1 of the thesis beside ours: the published settings and more referents, on any labelled test records.

`published method` is the thesis' own learner, `perceptron, trained as used` the same with a training window as long as
the referent window; `netclust` is the tuned one; `unlearned, tuned alike` has every tuned choice but the learned
weights, with the same referents in every draw. `nearest normal, same referents` knows the normal ones of these alone,
`nearest normal, as many` has as many, all normal. Other people's detectors (`netclust.models.experiments.peers`) stand
beside them. Runs come from `netclust.models.experiments.detection.table41_runs`.

>>> [setting.label for setting in table41_settings() if setting.short]
['TR', 'TR+TE_gold d=100', 'gold d=100, 1000 referents', 'no test labels']
>>> table41_settings()[0].published
Published(accuracy=75.82, detection_rate=59.35, false_positive_rate=2.42)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from netclust.linking.linker import LinkerConfig
from netclust.metrics.detection_metrics import auc, decision_metrics, detection_at
from netclust.models.experiments.bootstrap import RESAMPLES, ConfidenceInterval, paired_interval
from netclust.models.experiments.peers import Published, anomalies
from netclust.records.table import Table

__all__ = [
    "METHODS",
    "Paired",
    "Results",
    "Run",
    "Setting",
    "Table41Method",
    "Table41Row",
    "TestStream",
    "measure_table41",
    "table41_settings",
]

REFERENTS = 280
"""The published size of a reference set."""
RATES = (0.001, 0.01, 0.06)
DELAY = 100
WINDOWS = (100, 300, 1000, 3000, 5000)

NETCLUST, UNLEARNED = "netclust", "unlearned, tuned alike"
NEAREST, NEAREST_MANY = "nearest normal, same referents", "nearest normal, as many"
PUBLISHED_METHOD, PERCEPTRON = "published method", "perceptron, trained as used"


@dataclass(frozen=True)
class Setting:
    """What a method may know of the test stream, and how many referents it has."""

    key: str
    label: str
    config: LinkerConfig
    published: Published | None = None
    size: int | None = REFERENTS
    """Of the reference set; None: the preset's own."""
    late: bool = False
    """True labels come back: the preset that is tuned for that."""
    short: bool = False
    """Also run on the second and later test sets."""
    picture: bool = False
    """Run for the picture of windows alone: no row of the table."""


@dataclass(frozen=True)
class Table41Method:
    """A row's name, the settings that it has rows in, and its presets: few referents, many, late labels."""

    name: str
    few: str
    many: str
    late: str
    has: Callable[[Setting], bool]
    normal_of_ours: bool = False
    """Its referents are the normal ones of netclust's reference set."""

    def preset(self, setting: Setting) -> str:
        """What it is trained with."""
        if setting.late:
            return self.late
        return self.many if setting.size is None else self.few


def _without_labels(setting: Setting) -> bool:
    return setting.key in ("TR", "none")


METHODS = (
    Table41Method(PUBLISHED_METHOD, "thesis", "thesis", "thesis", lambda s: s.published is not None),
    Table41Method(PERCEPTRON, "perceptron-late", "perceptron-late", "perceptron-late", lambda s: s.late),
    Table41Method(NETCLUST, "reference-280", "reference", "late", lambda s: True),
    Table41Method(UNLEARNED, "unlearned-reference-280", "unlearned-reference", "unlearned-late", lambda s: True),
    Table41Method(
        NEAREST, "nearest-normal-280", "nearest-normal", "nearest-normal", _without_labels, normal_of_ours=True
    ),
    Table41Method(NEAREST_MANY, "nearest-normal-280", "nearest-normal", "nearest-normal", _without_labels),
)


def table41_settings(*, picture: bool = False) -> list[Setting]:
    """Return the settings in the order of the table; with those that only the picture of windows needs."""

    def gold(window: int, delay: int, whole: bool) -> LinkerConfig:
        return LinkerConfig.thesis(referent_window=window, delay=delay, feedback="gold", whole=whole)

    predicted = LinkerConfig.thesis(referent_window=100, delay=DELAY, feedback="predicted")
    nothing = LinkerConfig.thesis(feedback="none")
    published = {
        100: Published(89.18, 86.61, 7.85),
        200: Published(89.24, 86.82, 7.56),
        1000: Published(88.55, 85.23, 7.06),
        2000: Published(88.26, 84.44, 6.69),
    }
    found = [
        Setting("TR", "TR", nothing, Published(75.82, 59.35, 2.42), short=True),
        Setting("predicted", f"TR+TE_pred d={DELAY}", predicted, Published(74.30, 56.86, 2.65)),
    ]
    for delay, printed in published.items():
        label = f"TR+TE_gold d={delay}"
        config = gold(100, delay, whole=True)
        found.append(Setting(f"gold-{delay}", label, config, printed, late=True, short=delay == DELAY))
    for window in WINDOWS[1:] if picture else (1000, 5000):
        label = f"gold d={DELAY}, {window} referents"
        config = gold(window, DELAY, whole=False)
        found.append(
            Setting(
                f"window-{window}",
                label,
                config,
                late=True,
                short=window == 1000,
                picture=window not in (1000, 5000),
            )
        )
    found.append(Setting("none", "no test labels", nothing, size=None, short=True))
    return found


@dataclass(frozen=True, eq=False)
class TestStream:
    """Labelled test records. The first of a table has every setting, later ones the short list."""

    __test__ = False  # of the table, not of the suite

    name: str
    table: Table
    published: bool = False
    """Whether the printed numbers are about these records."""

    @property
    def truth(self) -> NDArray[np.bool_]:
        """Which records are anomalies."""
        return anomalies(self.table)


@dataclass(frozen=True, eq=False)
class Run:
    """One pass over a test set."""

    anomalous: NDArray[np.bool_]
    score: NDArray[np.floating[Any]]
    metrics: dict[str, Any]
    referents: NDArray[np.uint64]
    """The record numbers of the reference set; of a peer none."""


class Table41Row(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table: fractions, mean and standard deviation (None of a single run) over draws and seeds."""

    name: str
    setting: str
    test: str
    mean: dict[str, Any]
    sd: dict[str, Any]
    draws: int
    seeds: int
    published: dict[str, float] | None


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """netclust less another rule whose referents come from the same draws."""

    against: str
    setting: str
    test: str
    accuracy: ConfidenceInterval
    auc: ConfidenceInterval | None
    """Resampled over runs alone, as is the next: a single draw says nothing of it."""
    detection_at_6: ConfidenceInterval | None
    draws: int
    seeds: int
    same_referents: bool


Runs = dict[tuple[int, int], Run]
"""By training seed and draw."""
Place = tuple[str, str, str]
"""Of a row: test set, method, key of the setting."""


@dataclass(eq=False)
class Entry:
    """A row in the making."""

    setting: str
    published: Published | None = None
    picture: bool = False
    runs: Runs = field(default_factory=dict)


@dataclass(eq=False)
class Results:
    """Every run, by row, in the order of the table."""

    tests: Sequence[TestStream]
    seeds: int
    draws: int
    entries: dict[Place, Entry] = field(default_factory=dict)

    def rows(self, *, picture: bool = False) -> list[Table41Row]:
        """The table, or the rows that only the picture of windows has."""
        return [self.row(at) for at, entry in self.entries.items() if entry.picture == picture]

    def row(self, at: Place) -> Table41Row:
        """What the runs of a row say together."""
        entry = self.entries[at]
        metrics = [run.metrics for run in entry.runs.values()]
        printed = entry.published
        return Table41Row(
            name=at[1],
            setting=entry.setting,
            test=at[0],
            mean=_summary(metrics, lambda values: float(np.mean(values))),
            sd=_summary(metrics, lambda values: float(np.std(values, ddof=1)) if len(values) > 1 else None),
            draws=len({draw for _, draw in entry.runs}),
            seeds=len({seed for seed, _ in entry.runs}),
            published=None if printed is None else {k: round(v / 100, 6) for k, v in printed._asdict().items()},
        )

    def paired(self, resamples: int = RESAMPLES) -> list[Paired]:
        """netclust against the unlearned rule in every setting of the table, and against the nearest normal record."""
        ours = [at for at, entry in self.entries.items() if at[1] == NETCLUST and not entry.picture]
        places = [(at, (at[0], other, at[2])) for other in (UNLEARNED, NEAREST, NEAREST_MANY) for at in ours]
        return [self._pair(at, other, resamples) for at, other in places if other in self.entries]

    def _pair(self, ours: Place, other: Place, resamples: int) -> Paired:
        truth = next(test.truth for test in self.tests if test.name == ours[0])
        first, second = self._grid(ours), self._grid(other)
        right = [np.array([[run.anomalous == truth for run in row] for row in grid]) for grid in (first, second)]
        accuracy = paired_interval(right[0].astype(np.int8), right[1].astype(np.int8), resamples=resamples)

        def over_runs(number: Callable[[dict[str, Any]], float | None]) -> ConfidenceInterval | None:
            values = [
                np.array([[number(run.metrics) for run in row] for row in grid], float) for grid in (first, second)
            ]
            if self.draws < 2 or np.isnan(values).any():
                return None
            return paired_interval(*values, resamples=resamples)

        return Paired(
            against=other[1],
            setting=self.entries[ours].setting,
            test=ours[0],
            accuracy=accuracy,
            auc=over_runs(lambda metrics: metrics["auc"]),
            detection_at_6=over_runs(lambda metrics: metrics["detection_at_fpr"]["0.06"]),
            draws=self.draws,
            seeds=self.seeds,
            same_referents=all(
                np.array_equal(a.referents, b.referents)
                for pair in zip(first, second, strict=True)
                for a, b in zip(*pair, strict=True)
            ),
        )

    def _grid(self, at: Place) -> list[list[Run]]:
        """The runs by seed and draw; where no seed changes anything, seed 0's stand for all."""
        runs = self.entries[at].runs
        return [[runs.get((seed, draw)) or runs[0, draw] for draw in range(self.draws)] for seed in range(self.seeds)]


def measure_table41(
    anomalous: NDArray[np.bool_],
    score: NDArray[np.floating[Any]],
    truth: NDArray[np.bool_],
    unseen: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return the numbers of a run; None where there is nothing to divide by. `unseen`: anomalies of types not
    trained on."""
    d = decision_metrics(anomalous, truth)
    return {
        "accuracy": d.accuracy,
        "detection_rate": d.detection_rate,
        "false_positive_rate": d.false_positive_rate,
        "auc": auc(score, truth),
        "unseen_detection_rate": float(anomalous[unseen].mean()) if unseen.any() else None,
        "detection_at_fpr": {f"{rate:g}": detection_at(score, truth, rate) for rate in RATES},
    }


def _summary(runs: list[dict[str, Any]], of: Callable[[list[float]], float | None]) -> dict[str, Any]:
    """A number for every metric, of its values in all runs; None if it has none in one of them."""
    found: dict[str, Any] = {}
    for name, value in runs[0].items():
        values = [run[name] for run in runs]
        if isinstance(value, dict):
            found[name] = _summary(values, of)
        else:
            found[name] = None if any(v is None for v in values) else of(values)
    return found
