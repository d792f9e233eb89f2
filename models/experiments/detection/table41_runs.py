"""Fill Table 4.1: train, draw reference sets, link every test set in every setting, and let the peers decide too.

Draw k is the reference set of seed k; training seeds count from 0. What no seed changes is trained once.

>>> from netclust.datasets.simulators.simulate import simulate
>>> past, today = simulate(1500, seed=1).table(), simulate(800, seed=2, day=1).table()
>>> rough = {name: TrainParams(learner="unlearned", reference_size=60) for name in PRESETS}
>>> results = run_table41(past, [TestStream("today", today)], draws=2, seeds=1, presets=rough)
>>> row = results.rows()[0]
>>> row.name, row.setting, row.draws, 0.5 < row.mean["accuracy"] <= 1
('published method', 'TR', 2, True)
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from netclust.errors import InputError, MissingExtraError
from netclust.models.experiments.detection.table41 import (
    DELAY,
    METHODS,
    NETCLUST,
    Entry,
    Place,
    Results,
    Run,
    Setting,
    Table41Method,
    TestStream,
    measure_table41,
    table41_settings,
)
from netclust.models.experiments.peers import PEERS, PeerRun, anomalies, run_peer
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import PRESETS, TrainParams, load_params
from netclust.models.network.train_network import NetworkFit, fit_network, label_column
from netclust.records.table import Table
from netclust.scoring.reference import Choice

__all__ = ["PeerChoice", "check_peers", "chosen_peers", "run_table41"]

PeerChoice = Literal["all", "fast", "none"]
SLOW = "river-arf"
PEER_DRAWS = 3
SLOW_DRAWS = 2
HST_NORMAL = 1300
OURS = next(method for method in METHODS if method.name == NETCLUST)
OFFLINE, ONLINE = "no test labels", f"late labels d={DELAY}"
Progress = Callable[[int, int], None]


def chosen_peers(choice: PeerChoice) -> list[str]:
    """The peers of a table.

    >>> set(chosen_peers("all")) - set(chosen_peers("fast")), chosen_peers("none")
    ({'river-arf'}, [])
    """
    return [] if choice == "none" else [name for name in PEERS if choice == "all" or name != SLOW]


def check_peers(names: Sequence[str]) -> None:
    """Say what is not installed before hours of work, not after."""
    modules = {"scikit-learn": "sklearn", "river": "river"}
    wanted = {PEERS[name].package for name in names} - {""}
    absent = sorted(package for package in wanted if importlib.util.find_spec(modules[package]) is None)
    if absent:
        raise MissingExtraError("a peer (--peers none leaves them out)", " and ".join(absent), "bench")


@dataclass(frozen=True)
class _Line:
    """A method in a setting, on some test sets."""

    method: Table41Method
    setting: Setting
    tests: Sequence[TestStream]
    preset: str
    size: int
    choice: Choice


def _line(
    method: Table41Method, setting: Setting, tests: Sequence[TestStream], params: Mapping[str, TrainParams]
) -> _Line:
    preset = method.preset(setting)
    drawn_as = params[OURS.preset(setting) if method.normal_of_ours else preset]
    size = drawn_as.reference_size if setting.size is None else setting.size
    return _Line(method, setting, tests if setting.short else tests[:1], preset, size, drawn_as.reference_choice)


@dataclass(eq=False)
class _Filling:
    """A table while it is filled."""

    results: Results
    unseen: Mapping[str, NDArray[np.bool_]]
    total: int
    report: Progress
    done: int = 0

    def add(
        self,
        at: Place,
        place: tuple[int, int],
        anomalous: NDArray[np.bool_],
        score: NDArray[np.floating[Any]],
        referents: NDArray[np.uint64],
    ) -> None:
        """A run of a row, by training seed and draw."""
        truth = next(test.truth for test in self.results.tests if test.name == at[0])
        metrics = measure_table41(anomalous, score, truth, self.unseen[at[0]])
        self.results.entries[at].runs[place] = Run(anomalous, score, metrics, referents)
        self.done += 1
        self.report(self.done, self.total)


def run_table41(
    train: Table,
    tests: Sequence[TestStream],
    *,
    draws: int = 10,
    seeds: int = 3,
    peers: Sequence[str] = (),
    pretrain: int | None = None,
    picture: bool = False,
    presets: Mapping[str, TrainParams] | None = None,
    jobs: int = 1,
    on_progress: Progress | None = None,
) -> Results:
    """Run every row on the first test set, the short list on the others; `picture` adds windows that only plots show.

    river's peers learn from the last `pretrain` training records only: they are slow. With `jobs` above 1 peers run in
    that many processes less one, beside the rest.
    """
    _check(tests, draws, seeds)
    _check_training(train, peers, pretrain)
    params = presets or {name: load_params(name) for name in PRESETS}
    lines = [
        _line(method, setting, tests, params)
        for setting in table41_settings(picture=picture)
        for method in METHODS
        if method.has(setting)
    ]
    results = Results(tests, seeds, draws)
    runs = 0
    for test in tests:  # the order of the table; runs fill it in an order of their own
        for line in lines:
            if test in line.tests:
                setting = line.setting
                printed = setting.published if test.published and line.method is METHODS[0] else None
                at = test.name, line.method.name, setting.key
                results.entries[at] = Entry(setting.label, printed, setting.picture)
                runs += draws * (seeds if _seeded(params[line.preset]) else 1)
        for name in _peers_on(test, tests, peers):
            peer = PEERS[name]
            label = OFFLINE if peer.setting == OFFLINE else ONLINE
            at = test.name, peer.label, name
            results.entries[at] = Entry(label, peer.published if test.published else None)
            runs += _peer_draws(name, draws)
    unseen = {test.name: _unseen(train, test) for test in tests}
    filling = _Filling(results, unseen, runs, on_progress or (lambda done, total: None))
    with _peers_at_work(train, pretrain, peers, results, jobs) as decided:
        for preset in dict.fromkeys(line.preset for line in lines):
            mine = [line for line in lines if line.preset == preset]
            for seed in range(seeds if _seeded(params[preset]) else 1):  # one fit at a time is in memory
                _link(fit_network(train, params[preset], seed=seed), seed, mine, filling)
        for at, draw, run in decided:
            filling.add(at, (0, draw), run.anomalous, run.score, np.zeros(0, np.uint64))
    return results


def _check(tests: Sequence[TestStream], draws: int, seeds: int) -> None:
    if min(draws, seeds) < 1:
        raise InputError(f"a table needs 1 draw and 1 seed at least, not {draws} and {seeds}")
    if not tests or len({test.name for test in tests}) < len(tests):
        raise InputError("a table needs test records, and every test set a name of its own")
    for test in tests:
        unlabelled = int((test.table.label == 0).sum())
        if unlabelled:
            raise InputError(f"{test.name}: {unlabelled} records have no label ({label_column(test.table.schema)})")


def _check_training(train: Table, peers: Sequence[str], pretrain: int | None) -> None:
    """Half-space trees need 99 of 1 in 10 normal records for a threshold: say so before the work."""
    used = train if pretrain is None else train[-pretrain:]
    normal = int((~anomalies(used)).sum())
    if "river-hst" in peers and normal < HST_NORMAL:
        raise InputError(
            f"{PEERS['river-hst'].label}: {normal} normal records to learn from, {HST_NORMAL} are needed: "
            "raise --pretrain, or leave the peers out (--peers none)"
        )


def _seeded(params: TrainParams) -> bool:
    """Whether the training seed changes anything: the margin learner's samples, or what is held out."""
    return params.learner == "margin" or params.false_alarm_rate is not None


def _unseen(train: Table, test: TestStream) -> NDArray[np.bool_]:
    """The anomalies of types that were not trained on."""
    trained = {train.labels[i] for i in np.unique(train.label)}
    return test.truth & np.array([name not in trained for name in test.table.label_names()], np.bool_)


def _link(fit: NetworkFit, seed: int, lines: Sequence[_Line], filling: _Filling) -> None:
    """Every draw of a fit, in every setting that has a reference set like it."""
    for drawn in dict.fromkeys((line.size, line.choice, line.method.normal_of_ours) for line in lines):
        size, choice, only_normal = drawn
        alike = [line for line in lines if (line.size, line.choice, line.method.normal_of_ours) == drawn]
        mine = [(line, test) for line in alike for test in line.tests]
        for draw in range(filling.results.draws):
            model = fit.draw(draw, size=size, choice=choice, only_normal=only_normal)
            for line, test in mine:
                at = test.name, line.method.name, line.setting.key
                found = evaluate_network(model, [test.table], line.setting.config, where=test.name).verdicts
                if line.setting.size is None:
                    label = f"{line.setting.label}, {min(size, len(fit.seen))} referents"
                    filling.results.entries[at].setting = label
                filling.add(at, (seed, draw), found.anomalous, found.score, model.reference.seq)


# Peers


def _peers_on(test: TestStream, tests: Sequence[TestStream], peers: Sequence[str]) -> list[str]:
    """All of them on the first test set, the slow one on no other."""
    return [name for name in peers if test is tests[0] or name != SLOW]


def _peer_draws(name: str, draws: int) -> int:
    """How often a peer runs: once if its seed changes nothing."""
    return min(draws, SLOW_DRAWS if name == SLOW else PEER_DRAWS) if PEERS[name].varies else 1


@contextmanager
def _peers_at_work(
    train: Table, pretrain: int | None, peers: Sequence[str], results: Results, jobs: int
) -> Iterator[Iterator[tuple[Place, int, PeerRun]]]:
    """The runs of all peers, as they are asked for; with more than one job they are under way before that."""
    tasks = [
        (name, test, draw)
        for name in sorted(peers, key=lambda name: name != SLOW)  # the longest first
        for test in results.tests
        if name in _peers_on(test, results.tests, peers)
        for draw in range(_peer_draws(name, results.draws))
    ]
    places: list[tuple[Place, int]] = [((test.name, PEERS[name].label, name), draw) for name, test, draw in tasks]
    calls = [
        partial(
            run_peer,
            name,
            train,
            test.table,
            seed=draw,
            delay=DELAY,
            pretrain=pretrain if PEERS[name].package == "river" else None,
        )
        for name, test, draw in tasks
    ]
    if jobs == 1 or not calls:
        yield ((at, draw, call()) for (at, draw), call in zip(places, calls, strict=True))
        return
    pool = ProcessPoolExecutor(jobs - 1, mp_context=get_context("spawn"))
    try:
        waiting = [pool.submit(call) for call in calls]
        yield ((at, draw, run.result()) for (at, draw), run in zip(places, waiting, strict=True))
    finally:
        pool.shutdown(cancel_futures=True)
