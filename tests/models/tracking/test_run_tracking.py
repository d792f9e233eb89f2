"""`netclust profile`, `track` and `train tracking`: of files of records, and of a daemon's state folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from cli_cases import complaint

from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN, simulate
from netclust.linking.cluster_profiles import decode_profiles, profile_clusters
from netclust.linking.linker import Linker, LinkerConfig
from netclust.models.network.params import load_params
from netclust.models.network.train_network import train_network
from netclust.scoring.model import Model
from netclust.stream.daemon.checkpoint import CheckpointStore, Cut
from netclust.stream.daemon.model_archive import ModelArchive
from netclust.stream.daemon.paths import store_path
from netclust.stream.store.store import Store


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tracking")
    past = simulate(3000, seed=1, attacks=KNOWN[:3]).table()
    train_network(past, load_params("unlearned-reference"), seed=0).save(folder / "net.model")
    for number, name in enumerate(("days.txt", "before.txt", "after.txt"), 2):
        records = 6000 if name == "days.txt" else 2000
        simulate(records, seed=number, day=number, attacks=(*KNOWN, *HELD_BACK), attack_share=0.4).write(folder / name)
    return folder


def test_clusters_are_found_again(run: Any, files: Path, tmp_path: Path) -> None:
    net, model = files / "net.model", tmp_path / "track.safetensors"
    ran = run("train", "tracking", files / "days.txt", "--model", net, "-o", model, "--window", "2000", "--C", "100")
    assert (ran.code, "3 window pairs" in ran.out, "identities kept" in ran.out) == (0, True, True)
    assert "shared flag" in run("info", model, "--top", "60").out
    for name in ("before", "after"):
        ran = run("profile", files / f"{name}.txt", "--model", net, "-o", tmp_path / f"{name}.json")
        assert (ran.code, "3 records or more" in ran.out) == (0, True)
    before, after, pairs = tmp_path / "before.json", tmp_path / "after.json", tmp_path / "pairs.csv"
    ran = run("track", before, after, "--model", model, "-o", pairs, "--json", tmp_path / "t.json")
    assert (ran.code, "found again" in ran.out) == (0, True)
    told = json.loads((tmp_path / "t.json").read_text())
    with pairs.open(newline="") as file:
        rows = list(csv.DictReader(file))
    profiles = decode_profiles(after.read_bytes(), "after")[0]
    assert [int(row["new"]) for row in rows] == [profile.id for profile in profiles]
    assert {(int(r["old"]), int(r["new"])) for r in rows if r["old"]} == {(f["old"], f["new"]) for f in told["found"]}
    ran = run("track", before, before)
    assert "unlearned distance" in ran.err
    assert ", 0 not seen again" in ran.out  # everything is found in itself


def test_a_daemons_state_folder(run: Any, files: Path, tmp_path: Path) -> None:
    model = Model.load(files / "net.model")
    linker = Linker(model, LinkerConfig(referent_window=2000))
    linker.process(model.encoding.encode(simulate(2000, seed=9, day=1, attacks=KNOWN, attack_share=0.4).table()))
    state, store = tmp_path / "state", tmp_path / "state"
    state.mkdir()
    ModelArchive(state).save(model)
    facts = {"model": model.fingerprint, "detector": {"exemplars": []}}
    CheckpointStore(store).write(Cut(facts, {}, linker=linker.freeze()))
    ran = run("profile", state, "-o", tmp_path / "state.json")
    assert ran.code == 0
    found, schema = decode_profiles((tmp_path / "state.json").read_bytes(), "state")
    assert (schema, len(found) > 0) == ("kdd", True)
    ran = run("track", state, tmp_path / "state.json")
    assert f"{len(found)} clusters found again" in ran.out


def test_labels_of_attacks_are_carried_over(run: Any, files: Path, tmp_path: Path) -> None:
    model = Model.load(files / "net.model")
    batch = model.encoding.encode(simulate(2000, seed=9, day=1, attacks=KNOWN, attack_share=0.4).table())
    linkers = [Linker(model, LinkerConfig(referent_window=2000)) for _ in range(2)]
    for linker in linkers:
        linker.process(batch)
    clusters = profile_clusters(linkers[0], least=3)
    linkers[0].label_cluster(clusters[0].id, "scan")
    linkers[0].label_cluster(clusters[1].id, "normal")
    linkers[0].process(batch[:0])
    folders = [tmp_path / name for name in ("old", "new")]
    for folder, linker in zip(folders, linkers, strict=True):
        folder.mkdir()
        ModelArchive(folder).save(model)
        facts = {"model": model.fingerprint, "detector": {"exemplars": []}}
        CheckpointStore(folder).write(Cut(facts, {}, linker=linker.freeze()))
    with Store(store_path(folders[1])) as store:
        store.save_clusters(linkers[1].clusters())
    ran = run("track", *folders, "--carry-labels")
    assert (ran.code, "1 label of attacks carried over" in ran.out) == (0, True)
    with Store(store_path(folders[1]), read_only=True, create=False) as store:
        (said,) = store.labels()
    assert (said.target, said.label, said.why) == (
        str(clusters[0].id),
        "attack:scan",
        f"cluster {said.target} of {folders[0]}",
    )
    profile = tmp_path / "p.json"
    assert run("profile", folders[0], "-o", profile).code == 0
    complaint(run("track", folders[0], profile, "--carry-labels"), profile, "state folder only")


def test_a_torn_checkpoint_is_told_and_left_where_it_is(run: Any, tmp_path: Path) -> None:
    torn = tmp_path / "checkpoint-000000000001.netclust"
    torn.write_bytes(b"torn" * 20)
    complaint(run("profile", tmp_path, "-o", tmp_path / "p.json"), tmp_path, "torn or corrupt")
    assert torn.exists()


def test_what_cannot_be_compared(run: Any, files: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    complaint(run("profile", tmp_path / "empty", "-o", tmp_path / "p.json"), "has no checkpoint")
    kdd, flow, broken = (tmp_path / f"{name}.json" for name in ("kdd", "flow", "broken"))
    kdd.write_text('{"schema": "kdd", "clusters": []}')
    flow.write_text('{"schema": "flow", "clusters": []}')
    broken.write_text("{}")
    complaint(run("track", kdd, flow), "schema kdd", "schema flow")
    complaint(run("track", kdd, broken), broken, "cluster profiles")
    complaint(run("track", kdd, tmp_path / "none.json"), "none.json")
    net = files / "net.model"
    few = run("train", "tracking", files / "before.txt", "--model", net, "-o", tmp_path / "m", "--window", "2000")
    assert few.code == 2
    assert "take larger ones" in few.err
