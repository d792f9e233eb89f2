"""Training and evaluating the network task: refusals, determinism, the control, and an honest calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig
from netclust.linking.linking_protocols import linker_config
from netclust.linking.verdicts import ROOT
from netclust.models.network import train_network as network
from netclust.models.network.evaluation import evaluate_network
from netclust.models.network.params import TrainParams
from netclust.models.network.train_network import best_scores, network_with_reference, train_network
from netclust.records.batch import Batch
from netclust.records.encoding import fit_encoding
from netclust.records.schema import parse_schema
from netclust.records.table import Table
from netclust.scoring.model import Model


@pytest.fixture(scope="module")
def table() -> Table:
    return simulate(3000, seed=1).table()


@pytest.fixture(scope="module")
def later() -> Table:
    return simulate(3000, seed=2, day=1, attacks=(*KNOWN, *HELD_BACK)).table()


@pytest.fixture(scope="module")
def model(table: Table) -> Model:
    return train_network(table, seed=0)


@pytest.fixture(autouse=True)
def at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def labelled(table: Table, names: list[str]) -> Table:
    """The table with other labels."""
    unique = ["", *dict.fromkeys(names)]
    return replace(table, labels=unique, label=np.array([unique.index(n) for n in names], np.int32))


def only(table: Table, want: str, n: int) -> Table:
    return table[np.flatnonzero((table.label_names() == "normal") == (want == "normal"))[:n]]


# Refusals


def test_unlabelled_records_are_refused(table: Table) -> None:
    label = table.label.copy()
    label[[3, 5]] = 0
    with pytest.raises(InputError, match=r"flows\.csv: 2 of 3000 records have no label \(column label\): label them"):
        train_network(replace(table, label=label), data="flows.csv")


def test_training_without_normal_records_is_refused(table: Table) -> None:
    with pytest.raises(InputError, match=r"flows\.csv: no record is normal: normal is the label for it"):
        train_network(only(table, "attack", 100), data="flows.csv")


def test_holding_out_every_normal_record_is_refused(table: Table) -> None:
    few = table[np.sort(np.concatenate([np.flatnonzero(table.label_names() == "normal")[:2], np.arange(0, 0)]))]
    few = labelled(few, ["normal", "port_scan"])
    with pytest.raises(InputError, match=r"no normal record is left to learn from, lower holdout \(0\.9\)"):
        train_network(few, TrainParams(false_alarm_rate=0.5, holdout=0.9, reference_size=2), seed=3)


def test_a_reference_set_smaller_than_the_classes_is_refused(table: Table) -> None:
    classes = len(set(table.label_names().tolist()))
    with pytest.raises(InputError, match=f"reference set of 3 cannot hold one record of each of {classes} classes"):
        train_network(table, TrainParams(reference_size=3, epochs=1))


def test_a_rate_needs_enough_records(table: Table) -> None:
    with pytest.raises(InputError, match="needs at least 9999 held-out normal records, there are "):
        train_network(table, TrainParams(false_alarm_rate=0.0001, epochs=1))


def test_constant_records_are_refused(table: Table) -> None:
    schema = parse_schema('name = "one"\nattribute = [{name = "x"}, {name = "y", role = "label"}]')
    with pytest.raises(InputError, match="every attribute is constant"):
        train_network(Table.from_columns(schema, {"x": [1.0] * 9, "y": ["normal"] * 9}))


def test_a_model_with_a_wide_vocabulary_can_be_loaded_again() -> None:
    schema = parse_schema('name = "s"\nattribute = [{name = "x", kind = "symbolic"}, {name = "y", role = "label"}]')
    n = 3000
    wide = Table.from_columns(schema, {"x": [f"v{i}" for i in range(n)], "y": ["normal", "bad"] * (n // 2)})
    model = train_network(wide, TrainParams(epochs=1), data="wide.csv")
    assert Model.from_bytes(model.to_bytes()).fingerprint == model.fingerprint


@pytest.mark.parametrize("epoch", ["yesterday", "1e9", "9" * 30, "²"])
def test_a_bad_source_date_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch, epoch: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
        train_network(table[:500], TrainParams(epochs=1, reference_size=40))


# Determinism


@pytest.mark.parametrize(
    "params",
    [
        TrainParams(),
        TrainParams(learner="lspa", epochs=2, root="attributes", sign=1),
        TrainParams(false_alarm_rate=0.05),
        TrainParams(learner="unlearned"),
    ],
)
def test_the_same_seed_gives_the_same_model(table: Table, params: TrainParams) -> None:
    first, second = (train_network(table, params, seed=7).to_bytes() for _ in range(2))
    assert first == second
    assert train_network(table, params, seed=8).to_bytes() != first


def test_the_creation_time_is_the_one_given(model: Model) -> None:
    assert train_network(
        simulate(600, seed=1).table(), TrainParams(epochs=1, reference_size=40)
    ).provenance.created == ("2023-11-14T22:13:20+00:00")


def test_the_reader_and_the_table_give_the_same_model(table: Table, tmp_path: Any) -> None:
    from netclust.records.reader import read_table

    simulate(3000, seed=1).write(tmp_path / "day.txt")
    read = read_table(tmp_path / "day.txt", table.schema)
    assert train_network(read, seed=3).fingerprint == train_network(table, seed=3).fingerprint


def test_progress_does_not_change_the_result(table: Table, model: Model) -> None:
    ticks: list[tuple[int, int]] = []
    epochs: list[Any] = []
    watched = train_network(
        table, seed=0, on_progress=lambda done, total: ticks.append((done, total)), on_epoch=epochs.append
    )
    assert watched.fingerprint == model.fingerprint
    assert ticks[-1] == (15_000, 15_000)
    assert [e.epoch for e in epochs] == [1, 2, 3, 4, 5]
    assert model.provenance.epochs[0] == {"epoch": 1, "updates": epochs[0].updates, "loss": epochs[0].loss}


# What is learned


def test_the_transform_of_the_parameters_is_used(table: Table) -> None:
    model = train_network(table, TrainParams(transform="none", epochs=1))
    assert {a.transform for a in model.encoding.schema.numeric} == {"none"}
    assert table.schema.numeric[0].transform == "log1p"  # and the caller's table is not changed


def test_provenance_says_where_a_model_comes_from(table: Table) -> None:
    p = train_network(table, TrainParams(epochs=1), seed=4, data="day.txt", sha256="ab").provenance
    assert (p.seed, p.data, p.sha256, p.records, p.params["epochs"]) == (4, "day.txt", "ab", 3000, 1)
    assert p.netclust


def test_the_unlearned_control_does_not_learn(table: Table, later: Table) -> None:
    control = train_network(table, TrainParams(learner="unlearned"), seed=0)
    assert not control.rooted
    assert set(np.unique(control.w)) == {0.0, 1.0}
    assert control.provenance.epochs == []
    batch = control.encoding.encode(later)
    # Shared bits minus absolute differences, against every referent, the oldest of equals.
    linker = Linker(control, LinkerConfig(referent_window=0))
    verdicts = linker.process(replace(batch, label=np.full(len(batch), -1, np.int32)))
    assert (verdicts.via != ROOT).all()
    ref = control.reference
    for i in range(0, len(batch), 97):
        far = np.abs(ref.num.astype(np.float64) - batch.num[i]).sum(1)
        shared = ((ref.code == batch.code[i]) & (ref.code > 0)).sum(1)
        score = len(control.encoding.kept) - far + shared
        assert verdicts.link[i] == pytest.approx(score.max(), rel=1e-5)
        assert score[-2 - verdicts.parent[i]] == pytest.approx(score.max(), rel=1e-5)


def test_training_is_better_than_chance(model: Model, later: Table) -> None:
    metrics = evaluate_network(model, [later], linker_config("stream", "predicted", 100, 100)).metrics()
    assert metrics["auc"] > 0.6  # chance is 0.5, give or take 0.013
    assert metrics["unseen_records"] > 0


# Calibration


def test_held_out_records_are_not_seen_in_training(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Batch] = []
    held_out: list[Batch] = []

    def watch_training(batch: Batch, *args: Any, **options: Any) -> Any:
        seen.append(batch)
        return learn(batch, *args, **options)

    def watch_calibration(model: Model, batch: Batch) -> Any:
        held_out.append(batch)
        return best_scores(model, batch)

    learn = network.train_stream
    monkeypatch.setattr(network, "train_stream", watch_training)
    monkeypatch.setattr(network, "best_scores", watch_calibration)
    model = train_network(table, TrainParams(false_alarm_rate=0.05, holdout=0.3, epochs=1), seed=5)
    learned, kept_back = set(seen[0].seq.tolist()), set(held_out[0].seq.tolist())
    assert learned.isdisjoint(kept_back)
    assert learned | kept_back == set(range(3000))
    assert set(model.reference.seq.tolist()) <= learned
    assert (table.label_names()[sorted(kept_back)] == "normal").all()
    assert 0.25 < len(kept_back) / 2400 < 0.35
    assert model.calibration is not None
    assert model.calibration.records == len(kept_back)
    # Scaling and vocabularies are fitted too: on the others alone.
    fitted = fit_encoding(table[np.array(sorted(learned))])
    assert (model.encoding.low.tobytes(), model.encoding.span.tobytes()) == (
        fitted.low.tobytes(),
        fitted.span.tobytes(),
    )
    assert model.encoding.vocabularies == fitted.vocabularies


def test_without_calibration_no_records_are_held_out(table: Table, model: Model) -> None:
    assert model.calibration is None
    assert train_network(table, TrainParams(holdout=0.5), seed=0).fingerprint == model.fingerprint


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("learner", ["lsp", "unlearned"])
def test_calibration_keeps_the_false_alarms_asked_for(rate: float, learner: Any) -> None:
    # Exchangeable records: held-out and new ones are drawn from one day, in random order.
    day = simulate(5000, seed=4, attacks=(), attack_share=0.0).table()
    attacks = only(simulate(3000, seed=4).table(), "attack", 300)
    order = np.random.default_rng(9).permutation(len(day))
    fresh = day[order[:1500]]
    past = day[order[1500:]]
    known = ["normal", "port_scan", "syn_flood"]
    mixed = replace(
        past,
        labels=["", *known],
        label=np.random.default_rng(1).choice([1, 2, 3], len(past), p=[0.9, 0.05, 0.05]).astype(np.int32),
    )
    assert len(attacks) == 300
    model = train_network(mixed, TrainParams(learner=learner, false_alarm_rate=rate, holdout=0.3, epochs=1), seed=2)
    calibration = model.calibration
    assert calibration is not None
    assert calibration.false_alarm_rate == rate
    assert calibration.obtained <= rate
    scores, _ = best_scores(model, model.encoding.encode(fresh))
    alarms = float((scores <= np.float32(calibration.root)).mean())
    slack = 4 * np.sqrt(rate * (1 - rate) * (1 / calibration.records + 1 / len(fresh)))
    assert rate - slack - 1 / calibration.records <= alarms <= rate + slack


def test_the_calibrated_root_is_the_one_linked_to(table: Table, later: Table) -> None:
    model = train_network(table, TrainParams(false_alarm_rate=0.05), seed=2)
    assert model.calibration is not None
    batch = model.encoding.encode(later)
    batch.label[:] = -1
    verdicts = Linker(model, LinkerConfig(referent_window=0)).process(batch)
    to_root = best_scores(model, batch)[0] <= np.float32(model.calibration.root)
    assert ((verdicts.via == ROOT) == to_root).all()
    assert to_root.any()


def test_another_draw_keeps_the_weights(table: Table, model: Model) -> None:
    batch = model.encoding.encode(table)
    other = network_with_reference(model, batch, 50, seed=3)
    assert len(other.reference) == 50
    assert other.w is model.w
    assert other.reference.seq.tolist() != network_with_reference(model, batch, 50, seed=4).reference.seq.tolist()


# Evaluation


def test_unlabelled_test_records_are_refused(model: Model, later: Table) -> None:
    label = later.label.copy()
    label[17] = 0
    with pytest.raises(InputError, match=r"today\.csv: record 18 has no label"):
        evaluate_network(model, [replace(later, label=label)], LinkerConfig(), where="today.csv")
    with pytest.raises(InputError, match="test data: no records"):
        evaluate_network(model, [], LinkerConfig())


@pytest.mark.parametrize("protocol", ["thesis", "stream"])
@pytest.mark.parametrize("feedback", ["none", "predicted", "gold"])
def test_the_numbers_do_not_depend_on_the_batches(model: Model, later: Table, protocol: Any, feedback: Any) -> None:
    config = linker_config(protocol, feedback, 50, 100)
    whole = evaluate_network(model, [later], config).metrics()
    parts = evaluate_network(model, [later[:1], later[1:1000], later[1000:]], config).metrics()
    for metrics in (whole, parts):
        assert metrics.pop("records_per_second") > 0
    assert whole == parts


def test_the_metrics_have_every_key(model: Model, later: Table) -> None:
    metrics = evaluate_network(model, [later], linker_config("stream", "none", 100, 100)).metrics()
    fractions = ["accuracy", "precision", "detection_rate", "false_positive_rate", "f1", "auc", "average_precision",
                 "unseen_detection_rate"]  # fmt: skip
    assert all(0 <= metrics[name] <= 1 for name in fractions)
    assert list(metrics["detection_at_fpr"]) == ["0.001", "0.01", "0.05"]
    assert set(metrics["per_category"]) == {"dos", "probe", "r2l", "u2r"}
    assert metrics["records"] == 3000
    held_back = [name for name in HELD_BACK if name in metrics["per_class"]]
    assert metrics["unseen_records"] == sum(metrics["per_class"][name]["records"] for name in held_back)


def test_categories_are_counted(model: Model, later: Table) -> None:
    names = ["neptune" if i % 5 == 0 else "xterm" if i % 7 == 0 else "normal" for i in range(len(later))]
    metrics = evaluate_network(model, [labelled(later, names)], linker_config("stream", "none", 0, 0)).metrics()
    assert metrics["per_category_records"]["dos"] == names.count("neptune")
    assert metrics["per_category"]["u2r"] == metrics["per_class"]["xterm"]["detection_rate"]
    assert metrics["per_category"]["probe"] is None
    assert metrics["per_category_records"]["probe"] == 0
    assert metrics["unseen_records"] == len(names) - names.count("normal")


def test_a_stream_of_one_class_has_no_rates(model: Model, later: Table) -> None:
    metrics = evaluate_network(model, [only(later, "normal", 200)], linker_config("thesis", "gold", 10, 10)).metrics()
    assert metrics["detection_rate"] is None
    assert metrics["auc"] is None
    assert metrics["detection_at_fpr"] == {"0.001": None, "0.01": None, "0.05": None}
    assert metrics["unseen_detection_rate"] is None


def test_protocols_mean_what_they_say() -> None:
    thesis = linker_config("thesis", "gold", 30, 20)
    assert (thesis.gap, thesis.label_delay, thesis.referent_window, thesis.whole) == (30, 30, 20, True)
    stream = linker_config("stream", "gold", 30, 20, 60.0)
    assert (stream.gap, stream.label_delay, stream.whole, stream.mature_after) == (0, 30, False, 60.0)
    assert linker_config("stream", "predicted", 30, 20).label_delay is None
    assert linker_config("thesis", "none", 30, 20).referent_window == 0
