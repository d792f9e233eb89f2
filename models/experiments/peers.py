"""Other people's detectors on the same records: the rows that a table sets beside netclust's.

Offline peers never see a test label; online ones learn from t_{j-d} just before they score t_j (spec 6.9). Every peer
gets the input that suits it best: the thesis' linear scaling and one-hot symbols for its own baselines, the schema's
transforms for river. What needs scikit-learn or river asks for `pip install 'netclust[bench]'`.

>>> from netclust.datasets.simulators.simulate import simulate
>>> past, today = simulate(2000, seed=1).table(), simulate(1000, seed=2, day=1).table()
>>> run = run_peer("online-perceptron-averaged", past, today, delay=50)
>>> run.score.shape, bool((run.anomalous == anomalies(today)).mean() > 0.8)
((1000,), True)
>>> PEERS["online-perceptron-averaged"].published
Published(accuracy=77.46, detection_rate=67.44, false_positive_rate=8.2)
"""

from __future__ import annotations

import importlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, MissingExtraError
from netclust.models.network.train_network import label_column
from netclust.records.encoding import Encoding, fit_encoding
from netclust.records.table import Table
from netclust.scoring.calibration import threshold_for

__all__ = ["PEERS", "Peer", "PeerRun", "Published", "anomalies", "run_peer", "unary_features"]

EPOCHS = 10  # of the perceptrons
LANDMARKS = 300  # of the cubic kernel: 99.9% of the decisions of the exact solver, which would take most of an hour
TREES = 10
HOLDOUT = 0.1  # of the normal training records, to set the threshold of a peer that has none
CHUNK = 4096

Inputs = Literal["mixed", "numbers", "unary"]


class Published(NamedTuple):
    """What Table 4.1 prints for NSL-KDD, in percent; online, with labels 100 records late."""

    accuracy: float
    detection_rate: float
    false_positive_rate: float


@dataclass(frozen=True, eq=False)
class PeerRun:
    """What a peer decided about every test record, and the time it took: encoding included, imports not."""

    anomalous: NDArray[np.bool_]
    score: NDArray[np.float64]
    """Higher is more anomalous: a margin or a probability."""
    training_seconds: float
    seconds: float
    """From the first test record to the last decision."""


@dataclass(frozen=True)
class Peer:
    """One row of the table, and how to run it."""

    label: str
    setting: Literal["no test labels", "late labels"]
    varies: str
    """What the seed changes; "" if nothing: then one draw says it all."""
    package: Literal["", "river", "scikit-learn"]
    published: Published | None
    run: Callable[[_Task], PeerRun] = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Task:
    train: Table
    test: Table
    seed: int
    delay: int
    false_alarm_rate: float

    def order(self) -> NDArray[np.int64]:
        """The training records in file order, shuffled for every seed but 0."""
        rows = np.arange(len(self.train))
        return np.random.default_rng(self.seed).permutation(rows) if self.seed else rows


def run_peer(
    name: str,
    train: Table,
    test: Table,
    *,
    seed: int = 0,
    delay: int = 100,
    false_alarm_rate: float = 0.01,
    pretrain: int | None = None,
) -> PeerRun:
    """Train a peer on labelled records and let it decide about others, in order; one seed, one outcome.

    `pretrain` keeps the last so many training records only: river learns some hundred to some thousand a second.
    `false_alarm_rate` is for river-hst alone, which has no threshold of its own.
    """
    if name not in PEERS:
        raise InputError(f"no peer is called {name!r}. Known: {', '.join(PEERS)}")
    peer = PEERS[name]
    for what, value, least in (("delay", delay, 1), ("pretrain", pretrain, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise InputError(f"{what} must be at least {least}, not {value}")
    train = train if pretrain is None else train[-pretrain:]
    for where, table in (("training data", train), ("test data", test)):
        unlabelled = int((table.label == 0).sum())
        if unlabelled and (table is train or peer.setting == "late labels"):
            raise InputError(f"{where}: {unlabelled} records have no label ({label_column(table.schema)})")
    if not len(test):
        raise InputError("test data: no records")
    if len(np.unique(anomalies(train))) < 2:
        raise InputError("training data: a peer needs normal and anomalous records to learn from")
    return peer.run(_Task(train, test, seed, delay, false_alarm_rate))


def anomalies(table: Table) -> NDArray[np.bool_]:
    """Which records are labelled as something else than normal."""
    return ~np.isin(table.label, [i for i, name in enumerate(table.labels) if name in table.schema.normal])


def unary_features(encoding: Encoding, table: Table) -> NDArray[np.float64]:
    """Every record as a vector of its own: scaled numbers, then one bit a value; a value never seen has no bit.

    >>> from netclust.records.schema import parse_schema
    >>> schema = parse_schema('name = "t"\\nattribute = [{name = "size"}, {name = "kind", kind = "symbolic"}]')
    >>> past = Table.from_columns(schema, {"size": [0, 10], "kind": ["a", "b"]})
    >>> today = Table.from_columns(schema, {"size": [5, 20], "kind": ["b", "c"]})
    >>> unary_features(fit_encoding(past), today).tolist()
    [[0.5, 0.0, 1.0], [2.0, 0.0, 0.0]]
    """
    batch = encoding.encode(table)
    bits = [batch.code[:, s, None] == np.arange(1, width) for s, width in enumerate(encoding.widths)]
    return np.concatenate([batch.num, *bits], axis=1, dtype=np.float64)


def _module(name: str) -> Any:
    """A module of an extra, loaded when it is needed."""
    package = name.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError("this peer", package, "bench") from None


# The baselines of Table 4.1


def _linearly_scaled(task: _Task) -> tuple[Encoding, NDArray[np.float64]]:
    """LIBSVM's scaling to [0, 1], no other transform, and the training records by it."""
    train = replace(task.train, schema=task.train.schema.with_transform("none"))
    encoding = fit_encoding(train)
    return encoding, unary_features(encoding, train)


def _linear_svm(task: _Task) -> PeerRun:
    """LIBSVM's default C; squared hinge loss in the primal, so that nothing is random."""
    svm = _module("sklearn.svm")
    return _fit_and_decide(task, lambda features: svm.LinearSVC(C=1.0, dual=False))


def _cubic_svm(task: _Task) -> PeerRun:
    """LIBSVM's defaults C = 1, gamma = 1 / features, coef0 = 0 and hinge loss, the kernel approximated.

    Not a subsample: the kernel is so small that the decisions depend on how many records C is multiplied by.
    """
    svm, approximation = _module("sklearn.svm"), _module("sklearn.kernel_approximation")
    pipeline = _module("sklearn.pipeline")
    landmarks = min(LANDMARKS, len(task.train))

    def make(features: int) -> Any:
        kernel = approximation.Nystroem(
            kernel="poly", degree=3, gamma=1 / features, coef0=0, n_components=landmarks, random_state=task.seed
        )
        # The features are small: beside an intercept column of ones the solver would not converge.
        solver = svm.LinearSVC(
            C=1.0, loss="hinge", tol=1e-3, intercept_scaling=0.3, max_iter=10_000, random_state=task.seed
        )
        return pipeline.make_pipeline(kernel, solver)

    return _fit_and_decide(task, make)


def _fit_and_decide(task: _Task, make: Callable[[int], Any]) -> PeerRun:
    """On one core, as every other peer; the sums do not depend on how many there are then."""
    with _module("threadpoolctl").threadpool_limits(1):
        start = time.perf_counter()
        encoding, x = _linearly_scaled(task)
        machine = make(x.shape[1]).fit(x, anomalies(task.train))
        trained = time.perf_counter()
        score = np.asarray(machine.decision_function(unary_features(encoding, task.test)), np.float64)
    return PeerRun(score > 0, score, trained - start, time.perf_counter() - trained)


def _perceptron(task: _Task, *, online: bool, averaged: bool) -> PeerRun:
    from netclust.models.experiments.perceptron_kernels import Perceptron, follow, learn_perceptron

    def labelled(x: NDArray[np.float64], table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.concatenate([x, np.ones((len(x), 1))], axis=1), np.where(anomalies(table), 1.0, -1.0)

    def fresh(n: int) -> Perceptron:
        return Perceptron(np.zeros(n), np.zeros(n), np.zeros(1, np.int64))

    nothing = np.zeros((0, 1)), np.zeros(0)
    learn_perceptron(fresh(1), *nothing, task.order()[:0])  # load the kernels before the clock
    follow(fresh(1), *nothing, 1, averaged, np.zeros(0))
    start = time.perf_counter()
    encoding, features = _linearly_scaled(task)
    x, y = labelled(features, task.train)
    p = fresh(x.shape[1])
    for _ in range(EPOCHS):
        learn_perceptron(p, x, y, task.order())
    trained = time.perf_counter()
    x, y = labelled(unary_features(encoding, task.test), task.test)
    score = np.zeros(len(x))
    follow(p, x, y, task.delay if online else len(x), averaged, score)
    return PeerRun(score > 0, score, trained - start, time.perf_counter() - trained)


# river


def _records(encoding: Encoding, table: Table, inputs: Inputs) -> Iterator[dict[Any, Any]]:
    """The records as river takes them: numbers with the schema's transforms; symbols as text, as bits, or left out."""
    numbers, symbols = encoding.kept, [a.name for a in table.schema.coded]
    for at in range(0, len(table), CHUNK):
        part = table[at : at + CHUNK]
        if inputs == "unary":
            yield from (dict(enumerate(row)) for row in unary_features(encoding, part).tolist())
            continue
        for row, ids in zip(encoding.encode(part).num.tolist(), part.sym.tolist(), strict=True):
            record: dict[Any, Any] = dict(zip(numbers, row, strict=True))
            if inputs == "mixed":
                record |= {name: texts[i] for name, texts, i in zip(symbols, part.symbols, ids, strict=True)}
            yield record


def _follow(
    learn: Callable[[Any, bool], object],
    score: Callable[[Any], float],
    records: Iterator[Any],
    truth: NDArray[np.bool_],
    delay: int,
) -> NDArray[np.float64]:
    """Score every record of a stream; before t_j, learn from t_{j - delay}."""
    waiting: deque[Any] = deque()
    late = iter(truth.tolist())
    scores = np.empty(len(truth))
    for j, record in enumerate(records):
        waiting.append(record)
        if j >= delay:
            learn(waiting.popleft(), next(late))
        scores[j] = score(record)
    return scores


def _river(task: _Task, make: Callable[[int], Any], inputs: Inputs = "mixed", *, shuffle: bool = False) -> PeerRun:
    """A classifier, which learns every record one by one."""
    classifier = make(task.seed)
    start = time.perf_counter()
    encoding = fit_encoding(task.train)
    train = task.train[task.order()] if shuffle else task.train
    for x, y in zip(_records(encoding, train, inputs), anomalies(train).tolist(), strict=True):
        classifier.learn_one(x, y)
    trained = time.perf_counter()
    score = _follow(
        classifier.learn_one,
        lambda x: classifier.predict_proba_one(x).get(True, 0.0),
        _records(encoding, task.test, inputs),
        anomalies(task.test),
        task.delay,
    )
    return PeerRun(score > 0.5, score, trained - start, time.perf_counter() - trained)


def _forest(seed: int) -> Any:
    return _module("river.forest").ARFClassifier(n_models=TREES, seed=seed)


def _tree(seed: int) -> Any:
    return _module("river.tree").HoeffdingAdaptiveTreeClassifier(seed=seed)


def _logistic_regression(seed: int) -> Any:
    return _module("river.preprocessing").StandardScaler() | _module("river.linear_model").LogisticRegression()


def _half_space_trees(task: _Task) -> PeerRun:
    """Learns what is known to be normal; `false_alarm_rate` of the held-out normal records lie above its threshold."""
    detector = _module("river.anomaly").HalfSpaceTrees(seed=task.seed)
    start = time.perf_counter()
    train, normal = task.train, ~anomalies(task.train)
    held_out = normal & (np.random.default_rng(task.seed).random(len(train)) < HOLDOUT)
    encoding = fit_encoding(train[~held_out])
    for x in _records(encoding, train[normal & ~held_out], "numbers"):
        detector.learn_one(x)
    usual = np.array([detector.score_one(x) for x in _records(encoding, train[held_out], "numbers")])
    threshold = -threshold_for(-usual, task.false_alarm_rate)
    trained = time.perf_counter()

    def learn(x: Any, anomalous: bool) -> None:
        if not anomalous:
            detector.learn_one(x)

    records = _records(encoding, task.test, "numbers")
    score = _follow(learn, detector.score_one, records, anomalies(task.test), task.delay)
    return PeerRun(score > threshold, score, trained - start, time.perf_counter() - trained)


PEERS: dict[str, Peer] = {
    "linear-svm": Peer("SVM, linear", "no test labels", "", "scikit-learn", Published(74.96, 61.58, 7.34), _linear_svm),
    "cubic-svm": Peer(
        f"SVM, cubic (Nyström, {LANDMARKS} landmarks)",
        "no test labels",
        "landmarks",
        "scikit-learn",
        Published(76.83, 60.50, 1.59),
        _cubic_svm,
    ),
    "perceptron": Peer(
        "perceptron, averaged",
        "no test labels",
        "training order",
        "",
        Published(76.28, 66.09, 8.37),
        partial(_perceptron, online=False, averaged=True),
    ),
    "online-perceptron-averaged": Peer(
        "online perceptron, averaged",
        "late labels",
        "training order",
        "",
        Published(77.46, 67.44, 8.20),
        partial(_perceptron, online=True, averaged=True),
    ),
    "online-perceptron-last": Peer(
        "online perceptron, last weights",
        "late labels",
        "training order",
        "",
        None,
        partial(_perceptron, online=True, averaged=False),
    ),
    "river-arf": Peer(
        f"river adaptive random forest, {TREES} trees",
        "late labels",
        "the forest's own draws",
        "river",
        None,
        partial(_river, make=_forest),
    ),
    "river-hat": Peer(
        "river Hoeffding adaptive tree",
        "late labels",
        "the tree's own draws",
        "river",
        None,
        partial(_river, make=_tree),
    ),
    "river-lr": Peer(
        "river logistic regression",
        "late labels",
        "training order",
        "river",
        None,
        partial(_river, make=_logistic_regression, inputs="unary", shuffle=True),
    ),
    "river-hst": Peer(
        "river half-space trees, numbers only",
        "late labels",
        "trees and held-out records",
        "river",
        None,
        _half_space_trees,
    ),
}
"""Every peer by the name that `run_peer` takes, in the order of the table."""
