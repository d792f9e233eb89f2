"""The published replication on the real files: rows of the thesis protocol within their spread."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from netclust.linking.linker import LinkerConfig
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import network_with_reference, train_network
from netclust.records.reader import read_table
from netclust.records.schema import load_schema
from netclust.records.table import Table

pytestmark = pytest.mark.peers

LONG = bool(os.environ.get("NETCLUST_LONG"))

# accuracy, detection rate, false-positive rate in percent: TR, then TE_gold at d = 100.
ROWS = [
    ({"sign": 1, "absent": "window", "epochs": 1}, (80.81, 68.96, 3.52), (89.68, 86.32, 5.89)),
    ({"sign": -1, "absent": "global", "epochs": 1}, (82.23, 72.40, 4.78), (91.45, 90.57, 7.38)),
    ({"learner": "unlearned"}, (79.36, 68.66, 6.51), (90.39, 88.48, 7.08)),
    ({"sign": -1, "absent": "window", "epochs": 5}, (82.44, 72.16, 3.97), (87.94, 83.08, 5.64)),
]


@pytest.fixture(scope="module")
def files(data_folder: Path) -> tuple[Table, Table]:
    kdd = load_schema("kdd")
    folder = data_folder / "nsl-kdd"
    return read_table(folder / "KDDTrain+.txt.xz", kdd), read_table(folder / "KDDTest+.txt.xz", kdd)


@pytest.mark.parametrize(("params", "reference_only", "gold"), ROWS if LONG else ROWS[:3])
def test_replicated_rows_stay_within_their_spread(files, params, reference_only, gold) -> None:
    train, test = files
    model = train_network(train, TrainParams(transform="none", **params))
    stream = model.encoding.encode(train)
    for config, published in (
        (LinkerConfig.thesis(feedback="none"), reference_only),
        (LinkerConfig.thesis(feedback="gold"), gold),
    ):
        runs = []
        for draw in range(5):
            d = evaluate_network(network_with_reference(model, stream, 280, draw), [test], config).decisions
            runs.append([100 * x for x in (d.accuracy, d.detection_rate, d.false_positive_rate)])
        spread = np.maximum(np.std(runs, axis=0, ddof=1), 0.05)
        assert (np.abs(np.mean(runs, axis=0) - published) <= spread).all()


def test_the_sizes_that_the_spec_measured(files) -> None:
    train, test = files
    encoding = train_network(train[:2000], TrainParams(epochs=1, reference_size=60)).encoding
    category = encoding.schema.category_of
    groups = [category.get(name, name) for name in test.label_names()]
    sizes = {name: groups.count(name) for name in sorted(set(groups))}
    assert sizes == {"dos": 7458, "normal": 9711, "probe": 2421, "r2l": 2754, "u2r": 200}
    unseen = set(test.labels) - set(train.labels)
    assert len(unseen) == 17
    assert sum(name in unseen for name in test.label_names()) == 3750
