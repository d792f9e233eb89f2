"""The simulator: valid records, the shares asked for, and a task that is neither trivial nor hopeless."""

from __future__ import annotations

import gzip
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from needed import need_module
from numpy.typing import NDArray

from netclust.datasets.simulators.profiles import ATTACKS, BENIGN, CATEGORIES, HELD_BACK, KNOWN, PROFILES
from netclust.datasets.simulators.simulate import NOTICE, Simulated, simulate
from netclust.errors import InputError
from netclust.records.schema import load_schema
from netclust.records.traffic_counts import traffic_attributes

KDD = load_schema("kdd")


@pytest.fixture(scope="module")
def today() -> Simulated:
    return simulate(20_000)


@pytest.fixture(scope="module")
def everything() -> Simulated:
    return simulate(60_000, seed=5, day=2, attacks=(*KNOWN, *HELD_BACK), attack_share=0.3)


def same(a: Simulated, b: Simulated) -> bool:
    return (
        np.array_equal(a.time, b.time)
        and np.array_equal(a.label, b.label)
        and all(np.array_equal(a.columns[name], b.columns[name]) for name in a.columns)
    )


def test_the_same_arguments_give_the_same_records(today: Simulated) -> None:
    assert same(today, simulate(20_000))
    assert not same(today, simulate(20_000, seed=1))


def test_days_differ_a_bit_in_mix_and_volume() -> None:
    mixes = []
    for day in (0, 1, 5):
        stream = simulate(30_000, day=day, attacks=())
        services = np.unique([s for p in BENIGN for s in p.services])
        mixes.append(np.array([(stream.columns["service"] == s).mean() for s in services]))
    monday, tuesday, saturday = mixes
    assert 0.005 < np.abs(monday - tuesday).sum() < 0.2
    assert np.abs(monday - saturday).sum() > np.abs(monday - tuesday).sum()


def test_the_mix_follows_the_hour(today: Simulated) -> None:
    benign = today.label == "normal"
    per_hour = np.bincount(today.hours[benign], minlength=24)
    assert per_hour.min() > 0
    assert per_hour[17] > 2 * per_hour[5]
    smtp = benign & (today.columns["service"] == "smtp")
    assert smtp[today.hours == 13].mean() > 2 * smtp[today.hours == 23].mean()


def test_a_class_looks_the_same_whatever_else_is_simulated() -> None:
    alone = simulate(4000, attacks=("port_scan",), attack_share=0.1)
    joined = simulate(4000, attacks=("port_scan", "host_sweep"), attack_share=0.175)
    sent = [s.columns["dst_bytes"][s.label == "port_scan"] for s in (alone, joined)]
    assert len(sent[0]) == len(sent[1]) == 400
    assert (PROFILES["port_scan"].share, PROFILES["host_sweep"].share) == (2, 1.5)
    assert np.array_equal(np.sort(sent[0]), np.sort(sent[1]))


def test_every_value_fits_the_schema(everything: Simulated) -> None:
    assert list(everything.columns) == [a.name for a in KDD.features]
    for attribute in KDD.features:
        values = everything.columns[attribute.name]
        assert len(values) == len(everything) == 60_000
        if attribute.kind == "symbolic":
            assert values.dtype.kind == "U"
            continue
        assert values.min() >= (attribute.min or 0)
        assert values.max() <= {"binary": 1, "numeric": attribute.max or np.inf}[attribute.kind]
        if values.dtype.kind == "f":
            assert np.array_equal(values, np.round(values, 2))
    assert everything.columns["count"].max() == 511
    assert everything.columns["dst_host_count"].max() <= 255
    assert set(everything.columns["protocol_type"]) == {"tcp", "udp", "icmp"}
    assert set(everything.columns["flag"]) == {"SF", "S0", "S1", "REJ", "RSTO", "RSTR"}
    assert np.all(np.diff(everything.time) >= 0)
    assert set(everything.hours) == set(range(24))


def test_attributes_agree_with_each_other(everything: Simulated) -> None:
    c = everything.columns
    assert np.all(c["count"] >= 1)
    assert np.allclose(c["same_srv_rate"] + c["diff_srv_rate"], 1, atol=0.011)
    silent = np.isin(c["flag"], ["S0", "REJ"])
    assert not c["src_bytes"][silent].any()
    assert not c["logged_in"][silent].any()
    assert np.all(c["rerror_rate"][(c["flag"] == "REJ") & (c["count"] < 100)] > 0)


def test_traffic_attributes_equal_a_plain_count() -> None:
    rng = np.random.default_rng(3)
    n = 400
    time = np.sort(rng.integers(0, 20 * 10**9, n))
    host, service, port = rng.integers(0, 5, n), rng.integers(0, 3, n), rng.integers(0, 4, n)
    flag = rng.choice(["SF", "S0", "REJ"], n)
    got = traffic_attributes(time, host=host, service=service, port=port, flag=flag)
    for i in range(0, n, 7):
        recent = (time >= time[i] - 2 * 10**9) & (np.arange(n) <= i)
        last = (np.arange(n) > i - 255) & (np.arange(n) <= i)
        assert got["count"][i] == (recent & (host == host[i])).sum()
        assert got["srv_serror_rate"][i] == round((flag[recent & (service == service[i])] == "S0").mean(), 2)
        assert got["same_srv_rate"][i] == round((service[recent & (host == host[i])] == service[i]).mean(), 2)
        there = last & (host == host[i])
        assert got["dst_host_count"][i] == there.sum()
        assert got["dst_host_same_src_port_rate"][i] == round((port[there] == port[i]).mean(), 2)
        assert got["dst_host_srv_diff_host_rate"][i] == round(
            (host[last & (service == service[i])] != host[i]).mean(), 2
        )
        assert got["dst_host_rerror_rate"][i] == round((flag[there] == "REJ").mean(), 2)


def test_a_syn_flood_ramps_up_to_the_cap() -> None:
    stream = simulate(20_000, attacks=("syn_flood",))
    flood = stream.label == "syn_flood"
    c = {name: values[flood] for name, values in stream.columns.items()}
    assert set(c["flag"]) == {"S0"}
    assert c["count"].max() == 511
    assert np.median(c["serror_rate"]) > 0.97
    growth = np.diff(c["count"])[c["count"][:-1] < 300]
    assert (growth > 0).mean() > 0.95


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.9])
def test_exactly_as_many_attacks_as_asked(share: float) -> None:
    stream = simulate(5000, attack_share=share)
    assert len(stream) == 5000
    assert (stream.label != "normal").sum() == round(5000 * share)


def test_every_attack_appears_and_the_held_back_do_not(today: Simulated, everything: Simulated) -> None:
    assert set(today.label) == {"normal", *KNOWN}
    assert set(everything.label) == {"normal", *KNOWN, *HELD_BACK}
    assert set(simulate(20_000, attacks=HELD_BACK).label) == {"normal", *HELD_BACK}
    assert not set(KNOWN) & set(HELD_BACK)
    assert set(CATEGORIES) == {*KNOWN, *HELD_BACK}
    assert {CATEGORIES[name] for name in HELD_BACK} == set(CATEGORIES.values())
    not_ours = {label for labels in KDD.categories.values() for label in labels}
    assert not not_ours & set(CATEGORIES)


def test_attacks_come_in_bursts_among_benign_traffic(everything: Simulated) -> None:
    for profile in ATTACKS:
        at = np.flatnonzero(everything.label == profile.name)
        # Within an episode the next record of the attack follows shortly; episodes are few.
        episodes = 1 + int((np.diff(at) > 500).sum())
        assert np.median(np.diff(at)) < 40, profile.name
        assert episodes <= 1 + 2 * len(at) / profile.session, profile.name
    assert (np.diff(np.flatnonzero(everything.label != "normal")) > 1).sum() > 1000


def test_altered_attributes_are_those_that_differ(everything: Simulated) -> None:
    service = everything.columns["service"]
    normal = everything.label == "normal"
    ranks = {name: np.unique(v, return_inverse=True)[1] for name, v in everything.columns.items()}
    for profile in ATTACKS:
        attack = everything.label == profile.name
        shift = dict.fromkeys(ranks, 0.0)
        for used in np.unique(service[attack]):
            own, usual = attack & (service == used), normal & (service == used)
            usual = usual if usual.sum() > 100 else normal
            for name, rank in ranks.items():
                symbolic = everything.columns[name].dtype.kind == "U"
                shift[name] += own.sum() / attack.sum() * distance(rank[own], rank[usual], symbolic)
        assert profile.altered <= set(shift)
        assert {name for name in profile.altered if shift[name] < 0.1} == set(), profile.name
        assert {name for name in set(shift) - profile.altered if shift[name] > 0.6} == set(), profile.name


def distance(a: NDArray[np.int64], b: NDArray[np.int64], symbolic: bool) -> float:
    """Kolmogorov-Smirnov for numbers, total variation for symbols: both in 0..1."""
    size = int(max(a.max(), b.max())) + 1
    gap = np.bincount(a, minlength=size) / len(a) - np.bincount(b, minlength=size) / len(b)
    return float(np.abs(gap).sum() / 2 if symbolic else np.abs(np.cumsum(gap)).max())


@pytest.mark.parametrize("ending", ["txt", "gz", "xz"])
def test_a_written_file_reads_back(tmp_path: Path, ending: str) -> None:
    stream = simulate(1500, seed=2)
    path = tmp_path / f"day.{ending}"
    stream.write(path)
    unpack: dict[str, Callable[[bytes], bytes]] = {"txt": bytes, "gz": gzip.decompress, "xz": lzma.decompress}
    lines = unpack[ending](path.read_bytes()).decode("ascii").splitlines()
    assert lines == list(stream.lines())
    assert len(lines) == 1500
    names = [a.name for a in KDD.attributes]
    for i, line in enumerate(lines):
        row = dict(zip(names, line.split(","), strict=True))
        assert row["label"] == stream.label[i]
        assert row["difficulty"] == "0"
        assert int(row["src_bytes"]) == stream.columns["src_bytes"][i]
        assert row["dst_host_serror_rate"] == f"{stream.columns['dst_host_serror_rate'][i]:.2f}"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "day.txt"
    path.write_text("before")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match=r"day.txt: .*No space left"):
        simulate(10).write(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    with pytest.raises(InputError, match="No such file"):
        simulate(10).write(tmp_path / "missing" / "day.txt")


def test_a_pipe_is_written_to_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.extend(pipe.read_text().splitlines()), daemon=True)
    reader.start()
    simulate(10).write(pipe)
    reader.join(timeout=30)
    assert len(read) == 10
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"records": 0}, "at least 1"),
        ({"attack_share": 0.95}, r"between 0 and 0\.9"),
        ({"attack_share": -0.1}, "between 0"),
        ({"attack_share": float("nan")}, "between 0"),
        ({"attacks": ("sharknado",)}, "sharknado.*syn_flood"),
        ({"seed": -1}, "seed"),
        ({"day": -1}, "day"),
    ],
)
def test_what_cannot_be_simulated_is_said(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(**({"records": 100} | arguments))  # type: ignore[arg-type]


def test_tiny_and_benign_only_streams() -> None:
    for records in (1, 2, 17):
        assert len(simulate(records, attack_share=0.9)) == records
    assert set(simulate(300, attacks=()).label) == {"normal"}


def test_it_says_that_it_is_synthetic() -> None:
    assert "Synthetic" in NOTICE
    assert "synthetic" in (simulate.__doc__ or "")


def test_learnable_but_not_trivial(today: Simulated) -> None:
    tree = need_module("sklearn.tree")
    tomorrow = simulate(20_000, day=1)
    symbols = {a.name: np.unique(today.columns[a.name]) for a in KDD.features if a.kind == "symbolic"}

    def matrix(stream: Simulated) -> NDArray[np.float64]:
        columns = stream.columns
        coded = {name: np.searchsorted(values, columns[name]) for name, values in symbols.items()}
        return np.column_stack([coded.get(name, values) for name, values in columns.items()]).astype(float)

    model = tree.DecisionTreeClassifier(random_state=0).fit(matrix(today), today.label)
    predicted = model.predict(matrix(tomorrow))
    assert 0.9 < (predicted == tomorrow.label).mean() < 0.9999
    normal = tomorrow.label == "normal"
    assert 0 < (predicted[normal] != "normal").mean() < 0.05
    assert 0.7 < (predicted[~normal] != "normal").mean() < 0.9999
